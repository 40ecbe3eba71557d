"""A query of a budget plan: what is asked of which source, and how much it may cost."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpframe.accounting.events import Number, rational
from dpframe.base.arguments import check_type
from dpframe.errors import Arg, Call, DPError, Hint, InputError, Piece, listed, wrong_type
from dpframe.statistics.base import Aggregate, output
from dpframe.statistics.wrong_verbs import not_a_question

PASSED = (
    "delta",
    "mechanism",
    "ci",
    "max_groups",
    "max_rows_per_group",
    "max_rows",
    "threshold",
    "min_units",
    "complete_cases",
)
AMOUNTS = ("eps", "rho", "share", "error")


class QueryError(InputError):
    """Something is wrong with one query of a plan.

    Attributes
    ----------
    query : str
        Its name.
    cause : DPError
        What is wrong, without the name.
    about : tuple of str
        The parameters that it is about, if that is known.
    """

    def __init__(self, query: str, *said: Piece, hint: Hint = None, about: tuple[str, ...] = ()) -> None:
        super().__init__(f"query {query!r}: ", *said, hint=hint)
        self.query, self.about = query, about
        self.cause = DPError(*said, hint=hint)

    def __reduce__(self) -> tuple[object, ...]:
        return (_query_error, (self.query, self.said[1:], self.hint, self.about))


def _query_error(query: str, said: Any, hint: Any, about: tuple[str, ...]) -> QueryError:
    return QueryError(query, *said, hint=hint, about=about)


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """One question of a budget plan; made by :func:`query`. Holds no data.

    Attributes
    ----------
    statistics : tuple of Aggregate
        Empty asks which groups occur.
    scalar : bool
        Whether the answer is a number rather than a table.
    source : str or None
        The source's name; None where there is one source.
    groupby : tuple of str
    keys : object
        As ``groupby(keys=...)`` takes them.
    eps, rho, share, error : Fraction or None
        At most one. ``share`` is a fraction of the plan's total; ``error`` the wanted half-width of
        the 95 % interval.
    weight : Fraction or None
        The part of what is left to queries without an amount, relative to the others' weights.
    rows, relative_to : Fraction, str or None
        Beside ``error``: a public guess, or the name of an earlier query whose released value is taken.
    outputs : tuple of str
        Files to write.
    options : mapping
        What is passed on to the call: ``delta``, ``mechanism``, ``ci``, ``max_rows``, ...

    Examples
    --------
    >>> import dpframe as dp
    >>> q = dp.query(dp.count(), eps=0.25)
    >>> q.eps, q.scalar
    (Fraction(1, 4), True)
    """

    statistics: tuple[Aggregate, ...]
    scalar: bool
    source: str | None
    groupby: tuple[str, ...]
    keys: Any = field(repr=False)
    eps: Fraction | None
    rho: Fraction | None
    share: Fraction | None
    error: Fraction | None
    weight: Fraction | None
    rows: Fraction | str | None
    relative_to: Fraction | str | None
    outputs: tuple[str, ...]
    options: Mapping[str, Any]

    @property
    def fixed(self) -> bool:
        """Whether the amount does not depend on other queries."""
        return self.eps is not None or self.rho is not None or self.share is not None


def query(
    *statistics: Aggregate,
    source: str | None = None,
    groupby: str | Sequence[str] | None = None,
    keys: Any = None,
    eps: Number | None = None,
    rho: Number | None = None,
    share: Number | None = None,
    error: Number | None = None,
    weight: Number | None = None,
    rows: Number | str | None = None,
    relative_to: Number | str | None = None,
    outputs: str | Sequence[str] = (),
    **named: Any,
) -> Query:
    """Describe one query of a :class:`~dpframe.budget_plans.budget_plan.BudgetPlan`.

    Parameters
    ----------
    *statistics, **named : Aggregate
        As in ``agg``: ``dp.count()``, or ``n=dp.count()``. One statistic by position and no ``groupby``
        give a number, anything else a table. Only ``groupby`` and no statistic asks which groups occur.
    source : str, optional
        The name of the source; not needed where there is only one.
    groupby, keys
        As in ``df.dp.groupby(...)``.
    eps, rho, share, error : number, optional
        At most one: an amount; a fraction of the plan's total; or the wanted half-width of the 95 %
        interval. Without any, the plan's allocation decides.
    weight : number, optional
        How much of the rest this query gets, relative to the others (default 1); for the allocations
        "weighted" and "adaptive".
    rows, relative_to : number or str, optional
        Beside ``error``, as in every call. In the allocation "adaptive" also the name of an earlier
        query: the end nearest to zero of its released 95 % interval is taken.
    outputs : str or list of str, optional
        Files (``.parquet``, ``.csv``) to write the release to.
    **options
        ``delta``, ``mechanism``, ``ci``, ``max_groups``, ``max_rows_per_group``, ``max_rows``,
        ``threshold``, ``min_units``, ``complete_cases``: as in every call.

    Returns
    -------
    Query

    Raises
    ------
    InputError, TypeError
        For amounts that exclude each other or are no positive numbers, and for what is no question.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.query(n=dp.count(), groupby="city", keys=["Ghent", "Lille"], share=0.25).share
    Fraction(1, 4)
    """
    options = {k: named.pop(k) for k in PASSED if k in named}
    asked = [output(a, None) for a in statistics]
    for name, a in named.items():
        if a is None or isinstance(a, int | float | str | Mapping):
            known = (
                "source",
                "groupby",
                "keys",
                *PASSED,
                *AMOUNTS,
                "weight",
                "rows",
                "relative_to",
                "outputs",
            )
            raise not_a_question(name, a, known, "query")
        asked.append(output(a, name))
    own = next((a for a in asked if a.eps is not None), None)
    if own is not None:
        raise InputError(
            f"{own.describe()} has an ",
            Arg("eps"),
            " of its own; in a plan the query has it.",
            hint=Call("dp.query", ..., eps=0.5),
        )
    by = () if groupby is None else (groupby,) if isinstance(groupby, str) else tuple(groupby)
    if not asked and not by:
        raise wrong_type("A query needs a statistic.", hint=Call("dp.query", Call("dp.count"), eps=0.5))
    if keys is not None and not by:
        raise InputError(
            Arg("keys"),
            " goes with ",
            Arg("groupby"),
            ".",
            hint=Call("dp.query", Call("dp.count"), groupby="city", keys=[...]),
        )
    if source is not None:
        check_type("source", source, str, "a name", Arg("source", "people"))
    amounts = {"eps": eps, "rho": rho, "share": share, "error": error}
    given = [k for k in AMOUNTS if amounts[k] is not None]
    if len(given) > 1:
        raise InputError(
            *listed(given),
            " were given; a query has one amount.",
            hint=Arg("eps", 0.5),
        )
    exact = {k: rational(amounts[k], k) for k in given}
    if exact.get("share", 0) > 1:
        raise InputError(
            Arg("share", share), " is a fraction of the total, at most 1.", hint=Arg("share", 0.25)
        )
    if error is not None and not asked:
        raise InputError(
            Arg("error"),
            " is of a number, and a query without a statistic only finds groups.",
            hint=Arg("eps", 0.5),
        )
    if weight is not None and given and given != ["error"]:
        raise InputError(
            Arg("weight"), " divides what is left; ", Arg(given[0]), " leaves nothing to it.", hint="drop one"
        )
    for k, v in (("rows", rows), ("relative_to", relative_to)):
        if v is not None and error is None:
            raise InputError(
                Arg(k), " goes with ", Arg("error"), ".", hint=(Arg("error", 5), ", ", Arg(k, 1000))
            )
    paths = (outputs,) if isinstance(outputs, str | os.PathLike) else tuple(outputs)
    return Query(
        tuple(asked),
        len(statistics) == 1 and not named and not by,
        source,
        by,
        keys,
        exact.get("eps"),
        exact.get("rho"),
        exact.get("share"),
        exact.get("error"),
        None if weight is None else rational(weight, "weight"),
        _size(rows, "rows"),
        _size(relative_to, "relative_to"),
        tuple(os.fspath(p) for p in paths),
        {k: v for k, v in options.items() if v is not None},
    )


def _size(value: Number | str | None, name: str) -> Fraction | str | None:
    return value if value is None or isinstance(value, str) else rational(value, name)
