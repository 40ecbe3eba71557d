"""Grids: which multiples of a power of two a column's clipped values are rounded to."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from dpframe.errors import Arg, InputError
from dpframe.frames.columns import Column
from dpframe.frames.contract import Axis

MOST_STEPS = 1 << 30
WEIGHED_STEPS = 1 << 20  # where a row is many steps itself: sums of 2**31 rows of 2**12 steps are below 2**63
FEW_STEPS = 1 << 15  # of an axis whose steps are multiplied: a product is at most 2**30


@dataclass(frozen=True, slots=True)
class Grid:
    """A public grid: multiples of ``step`` from ``first*step`` to ``last*step``.

    Privacy: made from typed bounds and the dtype alone. Bounds are moved outward to multiples of the
    step, and every sensitivity is computed from the moved bounds in Python integers.
    """

    step: Fraction
    first: int
    last: int
    integer: bool

    @property
    def count(self) -> int:
        """K, the number of steps between the bounds."""
        return self.last - self.first

    @property
    def low(self) -> Fraction:
        return self.first * self.step

    @property
    def high(self) -> Fraction:
        return self.last * self.step

    @property
    def middle(self) -> Fraction:
        return (self.low + self.high) / 2

    @property
    def half(self) -> Fraction:
        return (self.high - self.low) / 2


UNIT_GRID = Grid(Fraction(1), 0, 1, True)


def make_grid(
    column: Column,
    low: Fraction,
    high: Fraction,
    *,
    sum_alone: bool = False,
    fold: int | None = None,
    most: int = MOST_STEPS,
) -> Grid:
    """Choose the grid of a column and its bounds.

    Integer and Boolean columns with integer bounds at most 2**30 apart have integer answers, and
    step 1 unless rows are scaled down per unit (``fold``, the number of rows a unit may count for:
    on steps of 1, scaling down would be a majority vote). Else the step is the least power of two that leaves
    at most ``most`` steps between the bounds (for a sum alone: between 0 and the farther bound, too) and at
    most 2**51 from zero.

    Raises
    ------
    InputError
        When the bounds can't be told apart on any grid, or are beyond what floats can clip to.
    """
    span, far = high - low, max(abs(low), abs(high))
    if not Fraction(1, 2**900) <= far <= 2**900:
        raise InputError(
            Arg("bounds", (low, high)),
            f" of {column.name!r} are outside 2**-900 to 2**900.",
            hint=Arg("bounds", (0, 1e6)),
        )
    if span < far / 2**40:
        raise InputError(
            Arg("bounds", (low, high)),
            f" of {column.name!r} are closer than a 2**-40 part of their size.",
            hint="subtract a constant from the column first.",
        )
    room = max(span, far) if sum_alone else span
    whole = column.kind in ("int", "bool") and low.denominator == high.denominator == 1
    integer = whole and room <= MOST_STEPS and far <= 2**51
    if integer and fold is None and room <= most:
        return Grid(Fraction(1), int(low), int(high), True)
    # Noise grows with the rows of a unit; a coarser grid (2**20 steps at least) leaves it room.
    coarser = min(10, max(0, (fold or 1).bit_length() - 12)) if most == MOST_STEPS else 0
    e = max(log2_ceil(room) - log2_ceil(Fraction(most)) + coarser, log2_ceil(far) - 51)
    while True:
        step = Fraction(2) ** e
        grid = Grid(step, floor(low / step), ceil(high / step), integer)
        if grid.count <= most and (not sum_alone or max(-grid.first, grid.last) <= MOST_STEPS):
            return grid
        e += 1  # moving the bounds outward added a step


def make_axis(column: Hashable, bounds: tuple[Fraction, Fraction], grid: Grid) -> Axis:
    """What the engine needs to put a column on its grid (see :class:`~dpframe.frames.contract.Axis`).

    Privacy: the typed bounds as float64 lie within the moved bounds, because those are exactly
    representable and rounding is monotone; adding ``magic`` is monotone too, so k of a bound lies
    between first and last, and the engine clips every k to those of the bounds.
    """
    magic = float(3 * 2**51 * grid.step)
    return Axis(column, float(bounds[0]), float(bounds[1]), magic, grid.first, grid.count)


def log2_ceil(x: Fraction) -> int:
    """The least e with 2**e >= x."""
    n, d = x.numerator, x.denominator
    e = n.bit_length() - d.bit_length() - 1
    while d << max(e, 0) < n << max(-e, 0):
        e += 1
    return e
