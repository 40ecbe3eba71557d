"""Quantiles, one or several together: quantile, median, iqr."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import polars as pl

from dpframe.accounting.events import Number, rational
from dpframe.errors import Arg, Call, InputError, exactly
from dpframe.frames.bins import Tally
from dpframe.frames.columns import Column
from dpframe.frames.public import Public
from dpframe.layout.answers import Answer
from dpframe.layout.choices import ChoiceLayout, Difference, Picked, Points, ladder, listed
from dpframe.layout.layouts import Layout
from dpframe.layout.tables import Fixed, Index
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.choosers import Chooser, Reach
from dpframe.mechanisms.ranks import quantiles
from dpframe.statistics.base import asking, common, one_column, one_number, parse_bounds
from dpframe.statistics.base_choice import Counted
from dpframe.statistics.question import AUDIT_BOUNDS, question

_PARTS = 1 << 20


@dataclass(frozen=True, slots=True)
class Quantile(Counted):
    ranks: tuple[Fraction, ...] = ()
    many: bool = False
    candidates: tuple[Fraction, ...] | None = None
    asked: str = "quantile"
    whole: bool = False
    missing = "null and NaN are left out of quantiles; infinities count at the last candidates"

    def argument(self, name: str) -> Any:
        if name == "q":
            return list(self.ranks) if self.many else self.ranks[0]
        return getattr(self, name, None)

    @property
    def numeric(self) -> tuple[Hashable, ...]:
        return (self.column,)

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
                f"{self.verb}({column.name!r}) needs ",
                Arg("bounds"),
                " (or ",
                Arg("candidates"),
                "): the answer is chosen among public numbers, which must come from knowledge, not from the frame.",
                hint=asking(self, bounds=(0, 100)),
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
            q = ", ".join(map(exactly, self.ranks))
            parts.append(f"[{q}]" if self.many else q)
        if self.bounds is not None:
            parts.append(f"bounds=({exactly(self.bounds[0])}, {exactly(self.bounds[1])})")
        if self.candidates is not None:
            parts.append(f"candidates=[{exactly(self.candidates[0])}, ..., {exactly(self.candidates[-1])}]")
        return f"{self.asked}({', '.join(parts)})"


@question(
    answer="number",
    returns="number (one q); frame with ``q`` and ``<column>`` (a list); of groups a column ``<column>_q25`` for each",
    example="'x', 0.5, bounds=(0, 100)",
    known_as=("quantiles", "percentile"),
    audited={
        "quantile": {"column": "x", "q": 0.5, "candidates": [-3, 0, 2, 5, 10]},
        "quantiles": {"column": "x", "q": [0.25, 0.5, 0.9], "candidates": [-3, 0, 2, 5, 10]},
    },
    several="q",
)
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
    """Estimate one quantile of a column's non-missing values, or several together.

    Parameters
    ----------
    q : number, or list of numbers in increasing order
        Between 0 and 1. Several together are about twice as exact as one by one for the same eps.
    bounds : (low, high)
        In the column's unit, from knowledge. The range is cut into 2**16 equal steps; of an integer
        column, its integers are the candidates (every 2**j-th if there are more than 2**16).
    candidates : list of numbers, increasing
        Instead of ``bounds``: what can be the answer.

    Returns
    -------
    Quantile
        Int64 for integer columns with integer candidates, else Float64. The quantile of nothing is any of the
        candidates, by chance.

    Raises
    ------
    InputError
        Without bounds and candidates, or with both; for q outside 0 to 1.

    Notes
    -----
    Every value is first moved to the nearest candidate (halfway: down), so values beyond the bounds count at
    their ends. Of several quantiles drawn together, the middle one divides the rows for the others, those tied with it
    too; ranks within a part are whole, which is half a row off for each division. The error that is known
    (``error=``, ``plan.error``) is that of the rank, in rows; how far the value is off depends on the data, so there is
    no interval. Extreme quantiles stand in for minimum and maximum, which are single rows' values and so can't be
    released.

    Privacy: eps-DP per protected unit (rho = eps**2/8). The exponential mechanism with the utility
    -max(0, #(x < c) - q n, q n - #(x <= c)), drawn exactly, moved by max(q, 1-q) by one row (replace_one: 1), R times
    that with a unit; at q = 0 and 1 all utilities move the same way, and eps need not pay for both. Several:
    recursively, halves in parallel; a row is in one of them, by its value and by a place that was drawn before.
    Source: McSherry and Talwar 2007, Smith 2011; several: Kaplan, Schnapp, Stemmer 2022.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"age": [20, 30, 30, 40, 90]})
    >>> with dp.Session(eps=1e6):
    ...     half = df.dp.quantile("age", 0.5, bounds=(0, 120), eps=1e3)
    ...     table = df.dp.quantile("age", [0.5, 0.9], bounds=(0, 120), eps=1e3)
    >>> int(half), table.rows()
    (30, [(0.5, 30), (0.9, 90)])
    """
    many = isinstance(q, list | tuple)
    given: Any = list(q) if isinstance(q, list | tuple) else [q]
    ranks = tuple(_rank(x) for x in given)
    if ranks and math.lcm(*(x.denominator for x in ranks)) > _PARTS:
        ranks = tuple(Fraction(int(x * 2 * _PARTS + 1) // 2, _PARTS) for x in ranks)  # to the nearest part
    if not ranks or any(a >= b for a, b in pairwise(ranks)):
        raise InputError(
            Arg("q"), " must list numbers in increasing order.", hint=Arg("q", [0.25, 0.5, 0.75])
        )
    return _quantile("quantile", column, ranks, many, bounds, candidates, common(eps, nonnegative, round))


@question(
    answer="number",
    returns="a candidate (ungrouped), or a frame with keys and ``<column>_median``",
    example="'x', bounds=(0, 100)",
    audited={"median": {"column": "i", "bounds": (0, 6)}},
    like=quantile,
)
def median(
    column: Hashable,
    *,
    bounds: tuple[Number, Number] | None = None,
    candidates: Sequence[Number] | None = None,
    eps: Number | None = None,
    nonnegative: bool = False,
    round: int | None = None,
) -> Quantile:
    """Estimate the median: ``quantile(column, 0.5)``.

    Returns
    -------
    Quantile
        The answer is one of the candidates, Int64 where they are integers.

    Raises
    ------
    InputError
        As for :func:`dpframe.quantile`.

    Notes
    -----
    Privacy: that of :func:`dpframe.quantile` at 0.5. The error is one of rank, in rows.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"g": ["a", "a", "b"], "age": [20, 20, 40]})
    >>> with dp.Session(eps=1e6):
    ...     df.dp.groupby("g", keys=["a", "b"]).median("age", bounds=(0, 120), eps=1e3).rows()
    [('a', 20), ('b', 40)]
    """
    half = (Fraction(1, 2),)
    return _quantile("median", column, half, False, bounds, candidates, common(eps, nonnegative, round))


@question(
    answer="number",
    returns="number, at least 0 (ungrouped), or a frame with keys and ``<column>_iqr``",
    example="'x', bounds=(0, 100)",
    audited={"iqr": {"column": "x", "bounds": AUDIT_BOUNDS}},
    like=quantile,
)
def iqr(
    column: Hashable,
    *,
    bounds: tuple[Number, Number] | None = None,
    candidates: Sequence[Number] | None = None,
    eps: Number | None = None,
    nonnegative: bool = False,
    round: int | None = None,
) -> Quantile:
    """Estimate the interquartile range from two quantiles that are drawn together.

    Returns
    -------
    Quantile
        The answer is a difference of two candidates, and never negative.

    Raises
    ------
    InputError
        As for :func:`dpframe.quantile`.

    Notes
    -----
    Privacy: that of :func:`dpframe.quantile` for ``[0.25, 0.75]``; the difference is post-processing.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"age": list(range(101))})
    >>> with dp.Session(eps=1e6):
    ...     int(df.dp.iqr("age", bounds=(0, 120), eps=1e5))
    50
    """
    quartiles = (Fraction(1, 4), Fraction(3, 4))
    return _quantile("iqr", column, quartiles, False, bounds, candidates, common(eps, nonnegative, round))


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
        raise InputError(
            f"{verb}({column!r}) got both ",
            Arg("bounds"),
            " and ",
            Arg("candidates"),
            ".",
            hint="give one of them",
        )
    parsed = parse_bounds(verb, column, bounds, None)
    exact = None if candidates is None else _candidates(verb, column, candidates)
    return Quantile(column, parsed, ranks=ranks, many=many, candidates=exact, asked=verb, **shared)


def _candidates(verb: str, column: Hashable, values: Any) -> tuple[Fraction, ...]:
    if isinstance(values, Public):
        values = list(values.values)
    if not isinstance(values, list | tuple | range) or not values:
        raise InputError(
            Arg("candidates"),
            f" of {verb}({column!r}) must be a list of numbers that you type, not {type(values).__name__}: taken from the frame, they tell about it.",
            hint=(Arg("candidates", [0, 10, 20]), ", or ", Call("dp.public", ...), " if they are public"),
        )
    exact = tuple(one_number(v, f"candidates[{i}]", verb) for i, v in enumerate(values))
    if any(float(a) >= float(b) for a, b in pairwise(exact)):
        raise InputError(
            Arg("candidates"),
            f" of {verb}({column!r}) must increase.",
            hint=Arg("candidates", Call("sorted", ...)),
        )
    return exact


def _rank(q: Any) -> Fraction:
    exact = rational(q, "q", zero=True)
    if exact > 1:
        raise InputError(Arg("q", q), " must lie between 0 and 1.", hint=Arg("q", 0.5))
    return exact


def _percent(q: Fraction) -> str:
    return f"q{float(q * 100):.6g}"
