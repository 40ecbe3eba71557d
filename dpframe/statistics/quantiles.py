"""What can be asked that a selection mechanism answers: quantiles, the most frequent values."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import polars as pl

from dpframe.accounting.events import Number, rational
from dpframe.base.calls import checked
from dpframe.errors import InputError, MechanismError, show, typed
from dpframe.frames.bins import Among, Tally
from dpframe.frames.columns import Column
from dpframe.frames.keys import Public, key_table
from dpframe.layout.answers import Answer
from dpframe.layout.choices import ChoiceLayout, Difference, Picked, Places, Points, ladder, listed
from dpframe.layout.families import Bounds, Family
from dpframe.layout.layouts import UNIT_GRID, Layout, Move
from dpframe.layout.tables import Chosen, Fixed, Index
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.choosers import Chooser, Reach, largest
from dpframe.mechanisms.ranks import quantiles
from dpframe.statistics.basic import Aggregate, _bound, common, one_column, parse_bounds

_PARTS = 1 << 20


@dataclass(frozen=True, slots=True)
class Choosing(Aggregate):
    """A question answered by choosing among public candidates."""

    @property
    def measured(self) -> tuple[tuple[Hashable, Bounds | None], ...]:
        return ()

    @property
    def columns(self) -> tuple[Hashable, ...]:
        return (self.column,)

    def families(self, types: Mapping[Hashable, Column]) -> tuple[Family, ...]:
        return ()

    @property
    def in_rows(self) -> bool:
        return True

    def points(self, column: Column) -> Points | None:
        """The candidates as numbers, if they are."""
        return None

    @property
    def flips(self) -> bool:
        """Whether permute and flip can answer it."""
        return False

    def layout(self, start: int, column: Column, width: int) -> ChoiceLayout:
        return ChoiceLayout(
            "choice", UNIT_GRID, (), Move(1, 1), start, width=width, points=self.points(column)
        )


@dataclass(frozen=True, slots=True)
class Counted(Choosing):
    """Candidates are compared by the rows in their bins."""

    @abstractmethod
    def tally(self, column: Column) -> Tally:
        """The bins, one for each candidate; InputError for a column that has none."""

    @abstractmethod
    def chooser(self, column: Column, reach: Reach, target: Target, mechanism: str) -> Chooser:
        """The calibrated mechanism; ``mechanism`` is "exponential" or "permute_and_flip"."""


def mechanism_for(a: Choosing, asked: str, *, pure: bool, alone: bool) -> str:
    """Which mechanism chooses: permute and flip where it can and pure eps is what is paid.

    Raises
    ------
    MechanismError
        For a law of noise when there are no sums to add it to, or when permute and flip can't answer.
    """
    if asked == "permute_and_flip" and not a.flips:
        raise MechanismError(
            f"{a.describe()} is not answered by permute and flip. Hint: mechanism='exponential'"
        )
    if asked in ("exponential", "permute_and_flip"):
        return asked
    if asked != "auto" and alone:
        raise MechanismError(
            f"{a.describe()} is chosen, not added noise to; mechanism={typed(asked)} does not go with it. Hint:"
            " mechanism='exponential'"
        )
    return "permute_and_flip" if pure and a.flips else "exponential"


@dataclass(frozen=True, slots=True)
class Quantile(Counted):
    ranks: tuple[Fraction, ...] = ()
    many: bool = False
    candidates: tuple[Fraction, ...] | None = None
    asked: str = "quantile"
    whole: bool = False

    def argument(self, name: str) -> Any:
        if name == "q":
            return list(self.ranks) if self.many else self.ranks[0]
        return getattr(self, name, None)

    @property
    def numeric(self) -> tuple[Hashable, ...]:
        return (self.column,)

    @property
    def missing(self) -> str:
        return "null and NaN are left out of quantiles; infinities count at the last candidates"

    def alone(self) -> Quantile:
        return replace(self, whole=True)

    @property
    def verb(self) -> str:
        return self.asked

    @property
    def default_name(self) -> str:
        if self.many:
            return str(self.column)
        return f"{self.column}_{_percent(self.ranks[0]) if self.asked == 'quantile' else self.asked}"

    @property
    def names(self) -> tuple[str, ...]:
        name = self.name or self.default_name
        if not self.many or self.whole:
            return (name,)
        return tuple(f"{name}_{_percent(q)}" for q in self.ranks)

    def points(self, column: Column) -> Points:
        if self.candidates is not None:
            return listed(column, self.candidates)
        if self.bounds is None and column.kind != "bool":
            raise InputError(
                f"{self.verb}({column.name!r}) needs bounds= (or candidates=): the answer is chosen among public numbers,"
                f" which must come from knowledge, not from the frame. Hint: df.dp.{self.describe()[:-1]}, bounds=(0, 100),"
                " eps=0.5)"
            )
        return ladder(column, *(self.bounds or (Fraction(0), Fraction(1))))

    def tally(self, column: Column) -> Tally:
        return Tally(self.column, self.points(column).binning)

    def chooser(self, column: Column, reach: Reach, target: Target, mechanism: str) -> Chooser:
        parts = math.lcm(*(q.denominator for q in self.ranks))
        ranks = tuple(int(q * parts) for q in self.ranks)
        return quantiles(self.points(column).last, ranks, parts, reach, target)

    def answers(self, layouts: Sequence[Layout]) -> tuple[Answer, ...]:
        (layout,) = layouts
        assert isinstance(layout, ChoiceLayout)
        assert layout.points is not None
        m = len(self.ranks)
        if self.asked == "iqr":
            return (Difference(layout.start, m, layout.points),)
        if self.whole or not self.many:
            return (Picked(layout.start, m, layout.points),)
        return tuple(Picked(layout.start, m, layout.points, i) for i in range(m))

    def table(self, start: int, column: Column) -> Index | None:
        if not (self.many and self.whole):
            return None
        q = tuple(map(float, self.ranks))
        return Fixed(start, len(q), (("q", pl.Float64, q),))

    def describe(self) -> str:
        parts = [repr(self.column)]
        if self.asked == "quantile":
            q = ", ".join(map(show, self.ranks))
            parts.append(f"[{q}]" if self.many else q)
        if self.bounds is not None:
            parts.append(f"bounds=({show(self.bounds[0])}, {show(self.bounds[1])})")
        if self.candidates is not None:
            parts.append(f"candidates=[{show(self.candidates[0])}, ..., {show(self.candidates[-1])}]")
        return f"{self.asked}({', '.join(parts)})"


@dataclass(frozen=True, slots=True)
class TopK(Counted):
    k: int = 1
    candidates: Any = field(default=None, hash=False, compare=False, repr=False)

    @property
    def verb(self) -> str:
        return "top_k"

    @property
    def default_name(self) -> str:
        return "rank"

    @property
    def flips(self) -> bool:
        return self.k == 1

    @property
    def missing(self) -> str:
        return "null and NaN are one candidate if None is listed, else left out"

    def tally(self, column: Column) -> Tally:
        try:
            keys = key_table((self.column,), (column,), self.candidates)
        except InputError as e:
            raise InputError(
                str(e).replace("keys=", "candidates=").replace("keys is", "candidates= is")
            ) from None
        if keys.size < self.k:
            raise InputError(
                f"top_k({column.name!r}, {self.k}) has only {keys.size} candidates to choose from. Hint: a smaller k"
            )
        return Tally(self.column, Among(keys))

    def chooser(self, column: Column, reach: Reach, target: Target, mechanism: str) -> Chooser:
        how = self.tally(column).how
        assert isinstance(how, Among)
        return largest(how.keys.size, self.k, reach, target, mechanism)

    def answer(self, layout: Layout) -> Answer:
        return Places(layout.start, self.k)

    def table(self, start: int, column: Column) -> Index:
        how = self.tally(column).how
        assert isinstance(how, Among)
        return Chosen(start, self.k, column, how.keys)

    def describe(self) -> str:
        return f"top_k({self.column!r}, {self.k}, candidates=...)"


@checked()
def quantile(
    column: Hashable,
    q: Number | Sequence[Number],
    *,
    bounds: tuple[Number, Number] | None = None,
    candidates: Sequence[Number] | None = None,
    eps: Number | None = None,
    nonnegative: bool = False,
    round: int | None = None,
) -> Quantile:
    """Ask for one quantile of a column's non-missing values, or for several together.

    Parameters
    ----------
    column : hashable
        A Boolean, integer, float or Decimal column.
    q : number, or list of numbers in increasing order
        Between 0 and 1. Several together are about twice as exact as one by one for the same eps.
    bounds : (low, high)
        In the column's unit, from knowledge. The range is cut into 2**16 equal steps; of an integer
        column, its integers are the candidates (every 2**j-th if there are more than 2**16).
    candidates : list of numbers, increasing
        Instead of ``bounds``: what can be the answer.
    eps, nonnegative, round
        As in :func:`~dpframe.count`.

    Returns
    -------
    Quantile
        In ``agg`` and ``dp_agg`` a column for each q (``<name>_q25``): Int64 for integer columns with
        integer candidates, else Float64. The quantile of nothing is any of the candidates, by chance.

    Raises
    ------
    InputError
        Without bounds and candidates, or with both; for q outside 0 to 1.

    Notes
    -----
    Every value is first moved to the nearest candidate (halfway: down), so values beyond the bounds count at
    their ends. Of several quantiles drawn together, the middle one divides the rows for the others, those tied with it
    too; ranks within a part are whole, which is half a row off for each division. Extreme quantiles stand in for
    minimum and maximum, which are single rows' values and so can't be released.

    Privacy: the exponential mechanism with the utility -max(0, #(x < c) - q n, q n - #(x <= c)), moved by
    max(q, 1-q) by one row (replace_one: 1), R times that with a unit; at q = 0 and 1 all utilities move
    the same way, and eps need not pay for both. Several: recursively, halves in parallel; a row is in one of them, by its value and
    by a place that was drawn before.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.quantile("age", [0.25, 0.75], bounds=(0, 120)).describe()
    "quantile('age', [0.25, 0.75], bounds=(0, 120))"
    """
    many = isinstance(q, list | tuple)
    given: Any = list(q) if isinstance(q, list | tuple) else [q]
    ranks = tuple(_rank(x) for x in given)
    if ranks and math.lcm(*(x.denominator for x in ranks)) > _PARTS:
        ranks = tuple(Fraction(int(x * 2 * _PARTS + 1) // 2, _PARTS) for x in ranks)  # to the nearest part
    if not ranks or any(a >= b for a, b in pairwise(ranks)):
        raise InputError("q= must list numbers in increasing order. Hint: q=[0.25, 0.5, 0.75]")
    return _quantile("quantile", column, ranks, many, bounds, candidates, common(eps, nonnegative, round))


@checked()
def median(
    column: Hashable,
    *,
    bounds: tuple[Number, Number] | None = None,
    candidates: Sequence[Number] | None = None,
    eps: Number | None = None,
    nonnegative: bool = False,
    round: int | None = None,
) -> Quantile:
    """Ask for the median: :func:`quantile` at one half.

    Parameters
    ----------
    column, bounds, candidates, eps, nonnegative, round
        As in :func:`quantile`.

    Returns
    -------
    Quantile
        The answer is one of the candidates, Int64 where they are integers.

    Raises
    ------
    InputError
        As for :func:`quantile`.

    Notes
    -----
    Privacy: that of :func:`quantile` at 0.5.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.median("age", bounds=(0, 120)).describe()
    "median('age', bounds=(0, 120))"
    """
    half = (Fraction(1, 2),)
    return _quantile("median", column, half, False, bounds, candidates, common(eps, nonnegative, round))


@checked()
def iqr(
    column: Hashable,
    *,
    bounds: tuple[Number, Number] | None = None,
    candidates: Sequence[Number] | None = None,
    eps: Number | None = None,
    nonnegative: bool = False,
    round: int | None = None,
) -> Quantile:
    """Ask for the interquartile range: the difference of two quantiles that are drawn together.

    Parameters
    ----------
    column, bounds, candidates, eps, nonnegative, round
        As in :func:`quantile`.

    Returns
    -------
    Quantile
        The answer is a difference of two candidates, and never negative.

    Raises
    ------
    InputError
        As for :func:`quantile`.

    Notes
    -----
    Privacy: that of :func:`quantile` for ``[0.25, 0.75]``; the difference is post-processing.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.iqr("age", bounds=(0, 120)).describe()
    "iqr('age', bounds=(0, 120))"
    """
    quartiles = (Fraction(1, 4), Fraction(3, 4))
    return _quantile("iqr", column, quartiles, False, bounds, candidates, common(eps, nonnegative, round))


@checked()
def top_k(column: Hashable, k: int, *, candidates: Any = None, eps: Number | None = None) -> TopK:
    """Ask for the k most frequent of public candidates, best first.

    Parameters
    ----------
    column : hashable
    k : int
    candidates : list, range, Enum class, ``dp.public(...)`` or "declared"
        As ``keys=`` of ``groupby``: the values that can be chosen, whether they occur or not.
    eps : number, optional
        As in :func:`~dpframe.count`.

    Returns
    -------
    TopK
        The answer has k rows, with the column and ``rank``; counts are not released.

    Raises
    ------
    InputError
        Without candidates, with fewer than k, or with ones that the column's dtype can't hold.

    Notes
    -----
    Privacy: k draws of the exponential mechanism without putting back, each with eps/k. One row moves every
    count the same way (add_remove), so weights are exp(eps/(k R) * count); replace_one: half of that.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.top_k("city", 3, candidates=["Ghent", "Lille", "Metz", "Nancy"]).describe()
    "top_k('city', 3, candidates=...)"
    """
    checked_k(column, k)
    if candidates is None:
        raise InputError(
            f"top_k({column!r}, {k}) needs candidates=: which values occur is private. Hint: candidates=[...] with the"
            f" values that {column!r} could have; or df.dp.top_k({column!r}, {k}, eps=0.5, delta=1e-6), and those with"
            " enough rows are found"
        )
    return TopK(one_column("top_k", column), k=k, candidates=candidates, **common(eps, False, None))


def checked_k(column: Hashable, k: Any) -> int:
    """``k``, or InputError."""
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InputError(
            f"k={typed(k)} must be a whole number from 1. Hint: top_k({column!r}, 3, candidates=[...])"
        )
    return k


def _quantile(
    verb: str,
    column: Hashable,
    ranks: tuple[Fraction, ...],
    many: bool,
    bounds: Any,
    candidates: Any,
    shared: dict[str, Any],
) -> Quantile:
    one_column(verb, column)
    if bounds is not None and candidates is not None:
        raise InputError(f"{verb}({column!r}) got both bounds= and candidates=. Hint: give one of them")
    parsed = parse_bounds(verb, column, bounds, None)
    exact = None if candidates is None else _candidates(verb, column, candidates)
    return Quantile(column, parsed, ranks=ranks, many=many, candidates=exact, asked=verb, **shared)


def _candidates(verb: str, column: Hashable, values: Any) -> tuple[Fraction, ...]:
    if isinstance(values, Public):
        values = list(values.values)
    if not isinstance(values, list | tuple | range) or not values:
        raise InputError(
            f"candidates= of {verb}({column!r}) must be a list of numbers that you type, not {type(values).__name__}: taken"
            " from the frame, they tell about it. Hint: candidates=[0, 10, 20], or dp.public(...) if they are public"
        )
    exact = tuple(_bound(v, f"candidates[{i}]", verb) for i, v in enumerate(values))
    if any(float(a) >= float(b) for a, b in pairwise(exact)):
        raise InputError(f"candidates= of {verb}({column!r}) must increase. Hint: candidates=sorted(...)")
    return exact


def _rank(q: Any) -> Fraction:
    exact = rational(q, "q", zero=True)
    if exact > 1:
        raise InputError(f"q={typed(q)} must lie between 0 and 1. Hint: q=0.5")
    return exact


def _percent(q: Fraction) -> str:
    return f"q{float(q * 100):.6g}"
