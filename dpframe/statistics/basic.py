"""What can be asked: count, count_units, clip_sum, clip_mean; more in ``second`` and ``vectors``.

A statistic says which families of coordinates it needs, and how its answer is made from noisy ones.
Adding one means adding a class; planner, engines and mechanisms know no statistics.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.accounting.events import Number, rational
from dpframe.base.calls import checked
from dpframe.base.released import Released
from dpframe.errors import InputError, show, typed, warn
from dpframe.frames.columns import Column
from dpframe.layout.answers import Answer, Linear, Ratio
from dpframe.layout.families import UNITS, Bounds, Family
from dpframe.layout.layouts import Layout
from dpframe.layout.tables import Index

BOOLEAN: Bounds = (Fraction(0), Fraction(1))


@dataclass(frozen=True, slots=True)
class Aggregate(ABC):
    """One question about a column (or about rows). Immutable; holds no data.

    Attributes
    ----------
    column : hashable or None
    bounds : (Fraction, Fraction) or None
    name : str or None
        The name of the output column.
    eps : Fraction or None
        An epsilon of its own: the aggregate then shares no noise with others.
    nonnegative : bool
        Raise negative answers to zero (free post-processing; biases small answers upwards).
    round : int or None
        Round the answer to this many decimals (free post-processing).
    """

    column: Hashable | None
    bounds: Bounds | None = None
    name: str | None = None
    eps: Fraction | None = None
    nonnegative: bool = False
    round: int | None = None

    def alias(self, name: str) -> Aggregate:
        """Return the same question with an output name."""
        if not isinstance(name, str):
            raise TypeError(f"alias takes a str, not {type(name).__name__}. Hint: .alias('n')")
        return replace(self, name=name)

    @property
    def measured(self) -> tuple[tuple[Hashable, Bounds | None], ...]:
        """The columns whose values are measured, each with the bounds that it needs."""
        return ((self.column, self.bounds),)

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """Every column that is read."""
        return tuple(name for name, _ in self.measured)

    @property
    def form(self) -> str:
        """What of its own column it needs when nothing else is asked of it: "sum", "centred", "block" or "triple"."""
        return "block"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the output columns."""
        return (self.name or self.default_name,)

    def resolved(self, column: Callable[[Hashable], Column]) -> Aggregate:
        """The same question with what the columns' types say: Boolean columns need no bounds."""
        if not self.measured or self.bounds is not None or column(self.column).kind != "bool":
            return self
        return replace(self, bounds=BOOLEAN)

    def families(self, types: Mapping[Hashable, Column]) -> tuple[Family, ...]:
        """What it needs."""
        return (Family("column", (self.column,), (self.bounds,)),)

    @property
    def numeric(self) -> tuple[Hashable, ...]:
        """Columns that must hold numbers though they have no bounds."""
        return ()

    @property
    def in_rows(self) -> bool:
        """Whether noise and sensitivity are told in rows rather than in the answer's unit."""
        return False

    @property
    def missing(self) -> str:
        """What becomes of missing and infinite cells, in words."""
        return "null and NaN are left out of sums, means and count(column); infinities are clipped"

    @property
    def pair(self) -> bool:
        """Whether its two answers are one value, (low, high)."""
        return False

    def alone(self) -> Aggregate:
        """The same question when it is all that is asked of a whole frame."""
        return self

    def table(self, start: int, column: Column) -> Index | None:
        """The rows of its answer in every group, if there are several."""
        return None

    @property
    @abstractmethod
    def verb(self) -> str: ...

    @property
    @abstractmethod
    def default_name(self) -> str: ...

    def answer(self, layout: Layout) -> Answer:
        """How the noisy coordinates of its one family become its one answer."""
        raise NotImplementedError

    def answers(self, layouts: Sequence[Layout]) -> tuple[Answer, ...]:
        """An answer for each of ``names``, from the layouts of its ``families``."""
        return (self.answer(*layouts),)

    def arrange(self, columns: dict[str, Any]) -> dict[str, Any]:
        """The table of an answer to this question alone."""
        return columns

    def argument(self, name: str) -> Any:
        """What its function was given as ``name``; None for what it does not keep."""
        return getattr(self, name, None)

    def describe(self) -> str:
        """The call, as one would type it."""
        parts = [] if self.column is None else [repr(self.column)]
        if self.bounds is not None:
            parts.append(f"bounds=({show(self.bounds[0])}, {show(self.bounds[1])})")
        return f"{self.verb}({', '.join(parts)})"


@dataclass(frozen=True, slots=True)
class Count(Aggregate):
    @property
    def measured(self) -> tuple[tuple[Hashable, Bounds | None], ...]:
        return ()

    @property
    def columns(self) -> tuple[Hashable, ...]:
        return () if self.column is None else (self.column,)

    def families(self, types: Mapping[Hashable, Column]) -> tuple[Family, ...]:
        return () if self.column is None else (Family("column", (self.column,), (None,)),)

    @property
    def in_rows(self) -> bool:
        return True

    @property
    def verb(self) -> str:
        return "count"

    @property
    def default_name(self) -> str:
        return "count" if self.column is None else f"{self.column}_count"

    def answer(self, layout: Layout) -> Answer:
        return Linear(layout.present, integer=True)


@dataclass(frozen=True, slots=True)
class CountUnits(Aggregate):
    column: Hashable | None = None

    @property
    def measured(self) -> tuple[tuple[Hashable, Bounds | None], ...]:
        return ()

    @property
    def verb(self) -> str:
        return "count_units"

    @property
    def default_name(self) -> str:
        return "units"

    def families(self, types: Mapping[Hashable, Column]) -> tuple[Family, ...]:
        return (UNITS,)

    def answer(self, layout: Layout) -> Answer:
        return Linear(layout.present, integer=True)


@dataclass(frozen=True, slots=True)
class ClipSum(Aggregate):
    @property
    def form(self) -> str:
        return "sum"

    @property
    def verb(self) -> str:
        return "clip_sum"

    @property
    def default_name(self) -> str:
        return f"{self.column}_sum"

    def answer(self, layout: Layout) -> Answer:
        return Linear(layout.total, integer=layout.grid.integer)


@dataclass(frozen=True, slots=True)
class ClipMean(Aggregate):
    n: int | None = None

    @property
    def form(self) -> str:
        return "block" if self.n is None else "centred"

    @property
    def verb(self) -> str:
        return "clip_mean"

    @property
    def default_name(self) -> str:
        return f"{self.column}_mean"

    def answer(self, layout: Layout) -> Answer:
        middle, half, row = layout.grid.middle, layout.grid.half, layout.row
        assert self.bounds is not None
        if self.n is None:
            return Ratio(layout.cells, layout.places, row, row, middle, half, self.bounds)
        terms = tuple((i, c / self.n) for i, c in layout.centred)
        return Linear(terms, const=middle, clamp=self.bounds)

    def describe(self) -> str:
        text = super(ClipMean, self).describe()
        return text if self.n is None else f"{text[:-1]}, n={self.n})"


@checked()
def count(
    column: Hashable | None = None,
    *,
    eps: Number | None = None,
    nonnegative: bool = False,
    round: int | None = None,
) -> Count:
    """Ask for the number of rows, or of the rows in which ``column`` is not missing.

    Parameters
    ----------
    column : hashable, optional
        None counts rows; a name counts non-missing cells (null and NaN are missing).
    eps : number, optional
        An epsilon of its own within ``dp_agg``.
    nonnegative : bool
        Raise negative answers to zero.
    round : int, optional
        Decimals to round to (negative: tens, hundreds).

    Returns
    -------
    Count
        For ``agg(...)`` and ``dp_agg(...)``; ``.alias(name)`` names the output. The answer is Int64.

    Raises
    ------
    InputError, TypeError
        For a wrong ``eps``, ``nonnegative`` or ``round``, or a column that is no name.

    Notes
    -----
    Privacy: one row changes the count by at most 1 under both relations (a replaced row may have
    been filtered away, so it is never 0).

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.count().describe()
    'count()'
    """
    return Count(one_column("count", column), None, **common(eps, nonnegative, round))


@checked()
def count_units(
    *, eps: Number | None = None, nonnegative: bool = False, round: int | None = None
) -> CountUnits:
    """Ask for the number of distinct units (persons, say) that have a row.

    Parameters
    ----------
    eps, nonnegative, round
        As in :func:`count`.

    Returns
    -------
    CountUnits
        The answer is Int64. Rows without a unit id are left out; a unit in more than ``max_groups`` groups is
        counted in those that are chosen for it.

    Raises
    ------
    InputError
        When the question is planned in a session without ``unit=``: rows are its units then.

    Notes
    -----
    Privacy: one unit changes the number by at most 1, however many rows it has; over groups by ``max_groups``
    in L1, and by twice that under replace_one.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.count_units().describe()
    'count_units()'
    """
    return CountUnits(None, None, **common(eps, nonnegative, round))


@checked()
def clip_sum(
    column: Hashable,
    *,
    bounds: tuple[Number, Number] | None = None,
    B: Number | None = None,
    eps: Number | None = None,
    nonnegative: bool = False,
    round: int | None = None,
) -> ClipSum:
    """Ask for the sum of a column's values, each clipped to public bounds.

    Parameters
    ----------
    column : hashable
        A Boolean, integer, float or Decimal column. Missing cells add nothing; inf is clipped.
    bounds : (low, high)
        In the column's unit, from knowledge about the world and never from the frame.
        Boolean columns need none.
    B : number
        Short for ``bounds=(-B, B)``.
    eps, nonnegative, round
        As in :func:`count`.

    Returns
    -------
    ClipSum
        The answer is Int64 for integer and Boolean columns with integer bounds, else Float64.

    Raises
    ------
    InputError
        Without bounds, with both, or with bounds that are equal, reversed or not finite.

    Notes
    -----
    Privacy: one row changes the sum by at most max(\\|low\\|, \\|high\\|) when it appears or vanishes,
    and by at most max(high, 0) - min(low, 0) when it becomes another.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.clip_sum("age", bounds=(0, 100)).describe()
    "clip_sum('age', bounds=(0, 100))"
    """
    return ClipSum(
        one_column("clip_sum", column),
        parse_bounds("clip_sum", column, bounds, B),
        **common(eps, nonnegative, round),
    )


@checked()
def clip_mean(
    column: Hashable,
    *,
    bounds: tuple[Number, Number] | None = None,
    B: Number | None = None,
    n: int | None = None,
    eps: Number | None = None,
    nonnegative: bool = False,
    round: int | None = None,
) -> ClipMean:
    """Ask for the mean of a column's non-missing values, each clipped to public bounds.

    Parameters
    ----------
    column, bounds, B, eps, nonnegative, round
        As in :func:`clip_sum`.
    n : int, optional
        The number of values, if it is public: a number you type, never read from the frame.

    Returns
    -------
    ClipMean
        The answer is Float64 and lies within the bounds; the mean of nothing is their midpoint.

    Raises
    ------
    InputError
        As for :func:`clip_sum`, and for an ``n`` that is no number of rows.

    Notes
    -----
    Privacy: without ``n`` each row is spread over two cells (its place between the bounds, in exact
    steps), so it moves them by 1 in L1 altogether, and mean, sum and count come from the same noise.
    With ``n`` the published number is the sum of distances from the midpoint, moved by at most
    (high - low)/2 (twice that when a row becomes another).

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.clip_mean("age", bounds=(0, 100), n=5000).describe()
    "clip_mean('age', bounds=(0, 100), n=5000)"
    """
    n = public_rows(n)
    one_column("clip_mean", column)
    parsed = parse_bounds("clip_mean", column, bounds, B)
    return ClipMean(column, parsed, n=n, **common(eps, nonnegative, round))


def public_rows(n: Any) -> int | None:
    """``n=`` as a Python int, or InputError."""
    if n is not None and (isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1):
        raise InputError(
            f"n={typed(n)} must be a whole number of rows that is public, at least 1. Hint: leave n out, and"
            " the number of rows is estimated privately."
        )
    return None if n is None else int(n)


def one_column(verb: str, column: Any) -> Any:
    """The column's name; TypeError for a list, an expression or anything else that is no name."""
    if isinstance(column, list):
        raise TypeError(
            f"{verb} takes one column, not a list. Hint: agg(dp.{verb}(...), dp.{verb}(...), eps=1)"
        )
    try:
        hash(column)
    except TypeError:
        raise TypeError(
            f"{verb} takes a column's name, not a {type(column).__name__}. Hint: add the expression as a column"
            " first, e.g. df.with_columns(x=...) or df.assign(x=...)"
        ) from None
    return column


def common(eps: Number | None, nonnegative: bool, round: int | None) -> dict[str, Any]:
    """The arguments that every question takes, checked."""
    if not isinstance(nonnegative, bool):
        raise InputError(f"nonnegative={typed(nonnegative)} must be True or False. Hint: nonnegative=True")
    if round is not None and (isinstance(round, bool) or not isinstance(round, int)):
        raise InputError(f"round={typed(round)} must be a whole number of decimals. Hint: round=2")
    if round is not None and abs(round) > 15:
        raise InputError(f"round={typed(round)} must be from -15 to 15 decimals. Hint: round=2")
    exact = None if eps is None else rational(eps, "eps")
    return {"eps": exact, "nonnegative": nonnegative, "round": round}


def parse_bounds(verb: str, column: Hashable, bounds: Any, B: Any, name: str = "bounds") -> Bounds | None:
    """Read ``bounds=(low, high)`` or ``B=b`` into exact rationals (None for neither).

    Privacy: bounds are typed by the caller. Anything that may have been read from a column (an
    array, a Series) is refused by type.
    """
    if isinstance(bounds, Released):
        bounds = bounds.value
    if bounds is not None and B is not None:
        raise InputError(f"{verb}({column!r}) got both bounds= and B=. Hint: B=b means bounds=(-b, b).")
    if B is not None:
        b = _bound(B, "B", verb)
        if b <= 0:
            raise InputError(
                f"B={typed(B)} must be more than zero: it means bounds=(-B, B), and equal bounds would leave no"
                " room for an answer. Hint: bounds=(0, 100)"
            )
        return (-b, b)
    if bounds is None:
        return None
    if isinstance(bounds, str) or not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise InputError(
            f"{name} of {verb}({column!r}) must be a pair (low, high) of numbers that you type, not"
            f" {_kind(bounds)}. Hint: {name}=(0, 100)"
        )
    low, high = _bound(bounds[0], f"{name}[0]", verb), _bound(bounds[1], f"{name}[1]", verb)
    if low >= high:
        how = "equal" if low == high else "the wrong way round"
        raise InputError(
            f"{name}=({show(low)}, {show(high)}) are {how}; low must be less than high. Hint: {name}=(0, 100)"
        )
    return (low, high)


def _bound(x: Any, name: str, verb: str) -> Fraction:
    value = x.item() if isinstance(x, np.generic) else x
    if isinstance(x, np.generic):
        warn(
            f"{name} of {verb} is a {type(x).__name__}, not a number that was typed. Bounds computed from the frame are"
            " not private. Hint: type them, from knowledge about the world"
        )
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | Decimal):
        raise InputError(
            f"{name} of {verb} must be a number that you type, not {_kind(x)}. Hint: bounds=(0, 100)"
        )
    odd = isinstance(value, Decimal) and not value.is_finite()
    if odd or (isinstance(value, float) and not np.isfinite(value)):
        raise InputError(f"{name}={value} of {verb} must be finite. Hint: bounds=(0, 100)")
    exact = Fraction(value)
    if abs(exact) > 2**1023:
        raise InputError(f"{name} of {verb} is beyond 2**1023. Hint: bounds=(0, 1e6)")
    return exact


def _kind(x: object) -> str:
    if isinstance(x, tuple | list):
        return f"{len(x)} values"
    return repr(x) if isinstance(x, str | bool | type(None)) else f"a {type(x).__name__}"


def post_processing(nonnegative: Any, round: Any) -> dict[str, Any]:
    """The call's ``nonnegative=`` and ``round=``, checked; only those that were given."""
    given: dict[str, Any] = {}
    if nonnegative is not None:
        given["nonnegative"] = nonnegative
    if round is not None:
        given["round"] = round
    common(None, given.get("nonnegative", False), given.get("round"))
    return given
