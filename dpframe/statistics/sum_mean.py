"""Sums and means of values within public bounds: clip_sum, clip_mean."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from dpframe.accounting.events import Number
from dpframe.layout.answers import Answer, Linear, Ratio
from dpframe.layout.layouts import Layout
from dpframe.statistics.base import Aggregate, common, no_public_rows, one_column, parse_bounds, public_rows
from dpframe.statistics.question import AUDIT_BOUNDS, question


@dataclass(frozen=True, slots=True)
class ClipSum(Aggregate):
    form = "sum"
    verb = "clip_sum"

    @property
    def default_name(self) -> str:
        return f"{self.column}_sum"

    def answer(self, layout: Layout) -> Answer:
        return Linear(layout.total, integer=layout.grid.integer)


@dataclass(frozen=True, slots=True)
class ClipMean(Aggregate):
    n: int | None = None
    verb = "clip_mean"

    @property
    def form(self) -> str:
        return "block" if self.n is None else "centred"

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

    def among_complete(self) -> ClipMean:
        if self.n is not None:
            raise no_public_rows(self)
        return self

    def describe(self) -> str:
        text = super(ClipMean, self).describe()
        return text if self.n is None else f"{text[:-1]}, n={self.n})"


@question(
    answer="number",
    returns="int or float (ungrouped), or a frame with keys and ``<column>_sum``",
    example="'x', bounds=(0, 100)",
    known_as=("sum", "total"),
    audited={"clip_sum": {"column": "x", "bounds": AUDIT_BOUNDS}},
)
def clip_sum(
    column: Hashable,
    *,
    bounds: tuple[Number, Number] | None = None,
    B: Number | None = None,
    eps: Number | None = None,
    nonnegative: bool = False,
    round: int | None = None,
) -> ClipSum:
    """Sum a column's values, each clipped to public bounds.

    Returns
    -------
    ClipSum
        The answer is Int64 for integer and Boolean columns with integer bounds at most 2**30 apart, else Float64.

    Raises
    ------
    InputError
        Without bounds, with both ``bounds`` and ``B``, or with bounds that are equal, reversed or not finite.

    Notes
    -----
    Privacy: (eps, delta)-DP per protected unit. One row changes the sum by at most max(\\|low\\|, \\|high\\|)
    when it appears or vanishes, and by at most max(high, 0) - min(low, 0) when it becomes another.

    Examples
    --------
    >>> import dpframe as dp, pandas as pd
    >>> df = pd.DataFrame({"minutes": [10, 500, None]})
    >>> with dp.Session(eps=1e6):
    ...     total = df.dp.clip_sum("minutes", bounds=(0, 60), eps=1e6)
    >>> round(total)
    70
    """
    return ClipSum(
        one_column("clip_sum", column),
        parse_bounds("clip_sum", column, bounds, B),
        **common(eps, nonnegative, round),
    )


@question(
    answer="measure",
    returns="float within the bounds (ungrouped), or a frame with keys and ``<column>_mean``",
    example="'x', bounds=(0, 100)",
    known_as=("mean", "avg", "average"),
    audited={
        "clip_mean": {"column": "x", "bounds": AUDIT_BOUNDS},
        "clip_mean n": {"column": "x", "bounds": AUDIT_BOUNDS, "n": 9},
        "clip_mean integer": {"column": "i", "bounds": (0, 6)},
        "clip_mean Boolean": {"column": "b"},
    },
)
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
    """Average a column's non-missing values, each clipped to public bounds.

    Parameters
    ----------
    n : int, optional
        The number of values, if it is public: a number you type, never read from the frame.

    Returns
    -------
    ClipMean
        The answer is Float64 and lies within the bounds; the mean of nothing is their midpoint (plus noise).

    Raises
    ------
    InputError
        As for :func:`dpframe.clip_sum`, and for an ``n`` that is no number of rows.

    Notes
    -----
    Privacy: (eps, delta)-DP per protected unit; the true number of rows is never used, nor needed. Without ``n``
    each row is spread over two cells (its place between the bounds, in exact steps), so it moves them by 1 in L1
    altogether, and mean, sum and count come from the same noise. The 95 % error is at most
    3 (high - low)/(eps * rows) with Laplace noise. With ``n`` the sum of distances from the midpoint is published,
    moved by at most (high - low)/2 (twice that when a row becomes another).

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"age": [20.0, 30.0, 40.0]})
    >>> with dp.Session(eps=1e6):
    ...     mean = df.dp.clip_mean("age", bounds=(0, 100), eps=1e6)
    >>> round(mean, 2)
    30.0
    """
    n = public_rows(n)
    one_column("clip_mean", column)
    parsed = parse_bounds("clip_mean", column, bounds, B)
    return ClipMean(column, parsed, n=n, **common(eps, nonnegative, round))
