"""Mean of values with weights, both within public bounds: clip_wmean."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpframe.accounting.events import Number
from dpframe.errors import Arg, InputError, exactly
from dpframe.frames.columns import Column
from dpframe.layout.answers import Answer, Ratio
from dpframe.layout.families import Bounds, Family
from dpframe.layout.grids import FEW_STEPS
from dpframe.layout.layouts import Layout
from dpframe.statistics.base import BOOLEAN, Aggregate, common, one_column, parse_bounds
from dpframe.statistics.question import AUDIT_BOUNDS, question


@dataclass(frozen=True, slots=True)
class ClipWMean(Aggregate):
    weights: Hashable = None
    weight_bounds: Bounds = BOOLEAN
    verb = "clip_wmean"

    @property
    def measured(self) -> tuple[tuple[Hashable, Bounds | None], ...]:
        return ((self.column, self.bounds), (self.weights, self.weight_bounds))

    @property
    def default_name(self) -> str:
        return f"{self.column}_wmean"

    def families(self, types: Mapping[Hashable, Column]) -> tuple[Family, ...]:
        return (Family("weighted", (self.column, self.weights), (self.bounds, self.weight_bounds)),)

    def answer(self, layout: Layout) -> Answer:
        assert self.bounds is not None
        least = max(1, layout.row >> 10)
        grid = layout.grid
        light, heavy = self.weight_bounds
        lightest = max(Fraction(0), light / heavy - Fraction(1, FEW_STEPS))  # weights are rounded to the grid
        return Ratio(
            layout.cells, layout.places, least, layout.row, grid.middle, grid.half, self.bounds, lightest
        )

    def describe(self) -> str:
        low, high = map(exactly, self.weight_bounds)
        text = super(ClipWMean, self).describe()[:-1]
        return f"{text}, weights={self.weights!r}, weight_bounds=({low}, {high}))"


@question(
    answer="measure",
    returns="float within the bounds (ungrouped), or a frame with keys and ``<column>_wmean``",
    example="'x', weights='w', bounds=(0, 100)",
    known_as=("weighted_mean", "wmean"),
    audited={
        "clip_wmean": {"column": "x", "weights": "y", "bounds": AUDIT_BOUNDS, "weight_bounds": (0, 4)},
    },
)
def clip_wmean(
    column: Hashable,
    *,
    weights: Hashable,
    bounds: tuple[Number, Number] | None = None,
    B: Number | None = None,
    weight_bounds: tuple[Number, Number] = (0, 1),
    eps: Number | None = None,
    nonnegative: bool = False,
    round: int | None = None,
) -> ClipWMean:
    """Take the weighted mean of a column, values and weights clipped to public bounds.

    Parameters
    ----------
    weights : hashable
        The column of weights; they are data, and protected like the values.
    weight_bounds : (low, high)
        What a weight is clipped to, from 0 up. Noise grows with the high one, so weights far below it are
        drowned: choose it close to what is common.

    Returns
    -------
    ClipWMean
        The answer is Float64 and lies within the bounds. A row without a value or a weight is left out.

    Raises
    ------
    InputError
        As for :func:`dpframe.clip_sum`, and for weight bounds below 0.

    Notes
    -----
    With ``error=``, ``rows=`` is a public guess of how many rows of the largest weight all weights add up to.

    Privacy: (eps, delta)-DP per protected unit. A row of weight w (a part of the largest) and place u between the
    bounds adds w*u and w*(1-u) to two cells: at most 1 in L1 altogether. Weights and values are rounded to a 2**-15
    part of their span.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"x": [10.0, 40.0], "w": [2.0, 1.0]})
    >>> with dp.Session(eps=1e6):
    ...     m = df.dp.clip_wmean("x", weights="w", bounds=(0, 100), weight_bounds=(0, 2), eps=1e6)
    >>> round(m, 1)
    20.0
    """
    one_column("clip_wmean", column)
    one_column("clip_wmean", weights)
    if column == weights:
        raise InputError(Arg("weights", weights), " is the column itself.", hint=Arg("weights", "w"))
    parsed = parse_bounds("clip_wmean", column, bounds, B)
    heavy = parse_bounds("clip_wmean", weights, weight_bounds, None, "weight_bounds")
    if heavy is None or heavy[0] < 0:
        raise InputError(
            Arg("weight_bounds", weight_bounds),
            " must be a pair from 0 up.",
            hint=Arg("weight_bounds", (0, 10)),
        )
    return ClipWMean(column, parsed, weights=weights, weight_bounds=heavy, **common(eps, nonnegative, round))
