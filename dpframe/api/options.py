"""What a call takes beside its question, and how it is read: budget, limits, what comes after the noise."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypedDict

from dpframe.accounting.events import Number, rational
from dpframe.accounting.policy import Limits
from dpframe.base.arguments import check_word
from dpframe.errors import Arg, InputError, listed
from dpframe.mechanisms.base import Target
from dpframe.planning.request import own_epsilons
from dpframe.session.session import Session
from dpframe.statistics.base import Aggregate


class Options(TypedDict, total=False):
    """What every verb takes beside its question.

    Attributes
    ----------
    eps : number, or dict of output name -> number
        Epsilon of the call. Exactly one of ``eps``, ``rho`` and ``error`` is given.
    delta : number
        Beside ``eps``: lets Gaussian noise be used; charged only if it is. Choices (``median``, ``select``, ...)
        without sums beside them have no noise, and refuse it unless it pays for groups that are found.
    rho : number
        zCDP cost of the call.
    error : number
        The wanted half-width of the 95 % interval, in the answer's unit; eps follows.
    rows : number
        A public guess of the number of rows, where the error depends on it: ``error`` is planned for it, and
        ``plan.error`` and ``explain`` tell the error at it. It changes no answer that is asked with ``eps`` or ``rho``.
    relative_to : number
        Makes ``error`` a fraction of this expected answer.
    mechanism : str
        A registry name, or "auto" (default): the least noise for the guarantee; of two laws within 2 %
        the simpler one, so that delta is left alone unless it gains more.
    loss : {"rmse", "l1"}
        What "auto" makes least: the root mean square error (default) or the mean absolute error.
    session : Session
        Pays instead of the current session.
    max_groups, max_rows_per_group, max_rows : int
        In a session with a unit: in how many groups a unit may count, for how many rows in each; for
        how many rows in all, over all groups together or without groups. The noise grows with them; who has more
        is scaled down. With ``max_rows`` listed groups need no other limit; noise is then made for the lesser of
        ``max_rows`` and ``max_groups`` times ``max_rows_per_group``.
    threshold : {"units", "rows"}
        With unknown keys and a unit: what decides whether a group is large enough (default units).
    min_units : int
        With unknown keys: a group of fewer units (rows, where a row is the unit) is told with a probability of 2.5 % at most.
        It can only raise the threshold; where a unit may have several rows in a group, units are counted for it, as without.
    request_id : str
        In a session on a ledger: names the request for good. Asked again, it returns the stored answer and
        costs nothing.
    label : str
        Names the answer: ``s["label"]``, the first of that name.
    ci : float
        Adds ``<output>_moe`` columns: half-widths at this level. On scalars, the level that ``repr`` shows.
    nonnegative : bool
        Raise negative answers to zero, after the noise; of the questions that take it themselves.
    round : int
        Round answers to this many decimals, after the noise; of the questions that take it themselves.
    complete_cases : bool
        Leave out rows that lack a value of *any* answer of the call (weights, both columns of a covariance, parts
        of a vector, columns of ``count(x)``, histograms and choices; not the keys, not the unit) from all of them. A
        value is missing where ``count(column)`` does not count it: null and NaN. All answers are then about the same
        rows, and ``count("x")`` is ``count()``. Default False: each answer leaves out what it lacks itself. ``n=`` does
        not go with it.

        Privacy: whether a row is complete is seen from that row alone, and incomplete rows are left out before
        anything else is done, so every sensitivity is that of the frame without them.
    """

    eps: Number | Mapping[str, Number] | None
    delta: Number | None
    rho: Number | None
    error: float | None
    rows: float | None
    relative_to: float | None
    mechanism: str
    loss: str | None
    session: Session | None
    request_id: str | None
    max_groups: int | None
    max_rows_per_group: int | None
    max_rows: int | None
    threshold: str | None
    min_units: int | None
    label: str | None
    ci: float | None
    nonnegative: bool
    round: int | None
    complete_cases: bool


class _WithoutNoise(TypedDict, total=False):
    """Nothing is added noise to, so there is no mechanism and no answer to round."""

    eps: Number | None
    delta: Number | None
    rho: Number | None
    session: Session | None
    max_groups: int | None
    label: str | None


class KeysOptions(_WithoutNoise, total=False):
    """What ``groupby(...).keys`` takes."""

    request_id: str | None
    min_units: int | None


class PartOptions(_WithoutNoise, total=False):
    """What ``partition_by`` takes: the cap of each part, who pays for all of them, and what of a unit counts."""

    max_rows_per_group: int | None
    max_rows: int | None


OPTIONS = tuple(Options.__annotations__)


def read_limits(options: Options, defaults: Limits, *, grouped: bool) -> Limits:
    """The call's limits over the session's; those that don't fit the call are refused when typed."""
    wrong = () if grouped else ("max_groups", "max_rows_per_group", "threshold", "min_units")
    given: Mapping[str, Any] = options
    for name in wrong:
        if given.get(name) is not None:
            hint = "leave it out" if name in ("threshold", "min_units") else Arg("max_rows")
            raise InputError(Arg(name), " does not go with no groups.", hint=hint)
    threshold = options.get("threshold")
    if threshold is not None:
        check_word("threshold", threshold, ("units", "rows"), "rows")
    in_all = either(options.get("max_rows"), defaults.max_rows)
    if not grouped:
        return Limits(max_rows=in_all)
    groups = either(options.get("max_groups"), defaults.max_groups)
    rows = either(options.get("max_rows_per_group"), defaults.max_rows_per_group)
    return Limits(groups, rows, in_all, threshold, options.get("min_units"))


def either(typed: int | None, default: int | None) -> int | None:
    """What was typed, or else the default."""
    return default if typed is None else typed


def read_target(
    aggregates: tuple[Aggregate, ...], options: Options, *, unknown: bool
) -> tuple[tuple[Aggregate, ...], Target, float | None, float | None]:
    """Exactly one of eps, rho, error; the rest must go with it."""
    eps, rho, error = options.get("eps"), options.get("rho"), options.get("error")
    given = [k for k, v in (("eps", eps), ("rho", rho), ("error", error)) if v is not None]
    own = bool(aggregates) and all(a.eps is not None for a in aggregates)
    if len(given) > 1:
        raise InputError(
            *listed(given),
            " were given; a call takes one of ",
            Arg("eps"),
            ", ",
            Arg("rho"),
            ", ",
            Arg("error"),
            ".",
            hint=Arg("eps", 0.5),
        )
    if not given and not own:
        odd = next((a.column for a in aggregates if isinstance(a.column, int | float)), None)
        read = "" if odd is None else f" ({odd!r} was read as a column.)"
        raise InputError(
            f"How much may this call spend?{read}",
            hint=(Arg("eps", 0.5), " (or ", Arg("rho"), ", or ", Arg("error"), " for a wanted error)"),
        )
    rows, relative = options.get("rows"), options.get("relative_to")
    numbers = {"rows": rows, "relative_to": relative, "error": error}
    exact = {k: rational(v, k) for k, v in numbers.items() if v is not None}
    if "relative_to" in exact and error is None:
        raise InputError(
            Arg("relative_to"),
            " makes ",
            Arg("error"),
            " a fraction, and there is no ",
            Arg("error"),
            ".",
            hint=(Arg("error", 0.05), ", ", Arg("relative_to", 1000)),
        )
    if "relative_to" in exact and exact["error"] > 1:
        raise InputError(
            Arg("error", error),
            " is a fraction of ",
            Arg("relative_to", relative),
            ", and must be at most 1.",
            hint=(Arg("error", 0.05), ", or ", Arg("error", error), " alone, in the answer's unit"),
        )
    for name, value in (("eps", eps), ("rho", rho)):
        if isinstance(value, int | Fraction) and not isinstance(value, bool) and value > 10**300:
            raise InputError(Arg(name, value), " is beyond what noise can be drawn for.", hint=Arg(name, 0.5))
    delta = options.get("delta")
    d = Fraction(0) if delta is None else rational(delta, "delta", zero=True, below=1)
    if d and rho is not None and not unknown:
        raise InputError(
            Arg("delta"),
            " does not go with ",
            Arg("rho"),
            ": Gaussian noise has a rho without any delta.",
            hint="leave delta out.",
        )
    if isinstance(eps, Mapping):
        aggregates, eps = own_epsilons(aggregates, eps, rational), None
        target = Target(None, d)
    elif rho is not None:
        target = Target(None, d, rational(rho, "rho"))
    else:
        target = Target(None if eps is None else rational(eps, "eps"), d)
    wanted = None
    if error is not None:
        wanted = float(exact["error"] * exact.get("relative_to", Fraction(1)))
    return aggregates, target, wanted, float(exact["rows"]) if rows is not None else None
