"""Tables that add up: groups adjusted to a total that was released beside them. Free.

Privacy: a function of releases and of their plans (post-processing); no frame is read and nothing is charged.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpframe.base.wrong_calls import checked
from dpframe.errors import Arg, Call, Code, InputError
from dpframe.mechanisms.combine import noise_factor, rounding
from dpframe.release.derived import Derived, Ends, Operand, operand, weights_of
from dpframe.statistics.count import CountUnits


@checked(example="dp.consistent(by_city, total)")
def consistent(groups: Any, total: Any, *, fits: bool = False) -> Derived:
    """Adjust a column of groups so that it adds up with a total that was released beside it. Free.

    Parameters
    ----------
    groups : Release, or (Release, output name)
        Counts or sums of listed groups; together the groups must be all rows that ``total`` is about.
    total : answer, Release, or (Release, output name)
        The same question about the whole frame.
    fits : bool
        In sessions with a unit: your word that no unit has more than ``max_rows_per_group`` and ``max_rows`` rows, nor
        more than ``max_groups`` groups. Else a unit is cut to so many rows in each group, and to so many in the whole
        frame: two different numbers, of which neither estimates the other. Not needed for ``count()`` where ``max_rows`` is the one
        limit of both: what a unit counts for is then shared out over the groups, and adds up.

    Returns
    -------
    Derived
        The adjusted groups (Float64). Their sum is the best estimate of the total: the least-squares one, each
        number weighted by the inverse of its noise's variance.

    Raises
    ------
    InputError
        For means, for groups that were found and not listed, for different questions; with a unit without ``fits``,
        unless both count rows under one ``max_rows``; and for ``count_units`` with more than one group to a unit, who is
        then counted in each.

    Notes
    -----
    Privacy: post-processing of both releases, also when ``fits`` is not true: then the numbers are biased and no less
    private. No adjusted number has more noise than before.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"g": ["a", "b", "b"]})
    >>> with dp.Session(eps=2000) as s:
    ...     n = df.dp.count(eps=1000)
    ...     table = df.dp.groupby("g", keys=["a", "b"]).count(eps=1000)
    >>> dp.consistent(s.last, n).value["consistent"].to_list()
    [1.0, 2.0]
    """
    parts, whole = operand("consistent", groups), operand("consistent", total)
    if parts.keys is None or whole.keys is not None:
        raise InputError(
            "consistent takes a release of groups and one of the whole frame.",
            hint=Call("dp.consistent", Code("s['by_city']"), Code("n")),
        )
    if parts.release.plan.keys is None:
        raise InputError(
            "consistent needs listed groups: of found ones, some were left out.", hint=Arg("keys", [...])
        )
    _check_units(parts, whole, fits)
    asked, other = parts.output.question.describe(), whole.output.question.describe()
    if parts.linear is None or whole.linear is None or asked != other:
        raise InputError(
            f"consistent needs one count or sum, asked twice, not {asked} and {other}.",
            hint="clip_sum and count add up; means do not",
        )
    x, t, v, u = parts.values, whole.values, parts.std**2, whole.std**2
    everything = v.sum() + u
    value = x + v * (t - x.sum()) / np.where(everything > 0, everything, 1)
    spread = np.sqrt(np.maximum(v - v * v / np.where(everything > 0, everything, 1), 0))
    laws = tuple(o.laws[i] for o in (parts, whole) for i in o.output.answer.coordinates())
    share = v / np.where(everything > 0, everything, 1)
    one, all_of = (rounding(tuple((o.laws[i], c) for i, c in weights_of(o).items())) for o in (parts, whole))
    moved = (1 - share) * one + share * (all_of + (len(x) - 1) * one)

    def ends(level: float) -> Ends:
        w = noise_factor(laws, level) * spread + moved
        return value - w, value + w

    return Derived("consistent", parts.keys, value, spread, ends)


def _shared_out(parts: Operand, whole: Operand) -> bool:
    """Whether both count rows, and of each unit as many in all groups together as in the whole frame.

    With N rows a unit counts for min(N, T) in the whole frame, and over groups that are shared out for as many, but for less
    than 2**-12 of a row in each (:mod:`dpframe.engine.scaling`).
    """
    groups, frame, keys = parts.release.plan.bounding, whole.release.plan.bounding, parts.release.plan.keys
    if groups is None or frame is None or keys is None or (groups.groups or 1) < keys.size:
        return False
    one_limit = groups.total == groups.rows or (groups.total is None and keys.size == 1)
    rows = parts.output.question.counts_rows and whole.output.question.counts_rows
    return rows and one_limit and groups.rows == frame.rows


def _check_units(parts: Operand, whole: Operand, fits: bool) -> None:
    """InputError unless groups and total are of the same rows of every unit, or the caller says so."""
    bounding = parts.release.plan.bounding
    if parts.release.plan.policy.unit != whole.release.plan.policy.unit:
        raise InputError(
            "consistent needs both answers from sessions with one unit.",
            hint="ask for the total in the same session",
        )
    if bounding is None:
        return
    if not fits and not _shared_out(parts, whole):
        raise InputError(
            "With a unit, rows beyond max_rows_per_group and groups beyond max_groups are cut, and for"
            " the total those beyond max_rows: the two need not add up.",
            hint="count() with max_rows= as the only limit of both; or fits=True if you know that no unit has more;"
            " else .value.sum() of the groups is the total of what counted there",
        )
    if isinstance(parts.output.question, CountUnits) and (bounding.groups or 1) > 1:
        raise InputError(
            f"A unit is counted in each of its groups, up to max_groups={bounding.groups}, and once in the"
            " total.",
            hint="groups that a unit can't share, and max_groups=1",
        )
