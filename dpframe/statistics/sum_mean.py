"""Sums and means of values within public bounds: clip_sum, clip_mean."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from dpframe.accounting.events import Number
from dpframe.base.calls import checked
from dpframe.layout.answers import Answer, Linear, Ratio
from dpframe.layout.layouts import Layout
from dpframe.statistics.base import Aggregate, common, one_column, parse_bounds, public_rows


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
