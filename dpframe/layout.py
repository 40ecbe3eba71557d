"""Grids and layouts: how a column becomes integers, and which integer sums get noise.

A *grid* turns a clipped value into a step number. A *layout* names the integer sums (coordinates)
that are released of one column, and how far they move. A coordinate is ``a*n + b*c + d*t`` of the
engine's three integers: rows n, present rows c, and t, the sum of steps counted from the lower bound.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from dpframe.errors import InputError, show
from dpframe.schema import Column, Measure

MOST_STEPS = 1 << 30
Terms = tuple[tuple[int, Fraction], ...]  # (coordinate, coefficient in the answer's unit)


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


def make_grid(
    column: Column, low: Fraction, high: Fraction, *, sum_alone: bool, fold: int | None = None
) -> Grid:
    """Choose the grid of a column and its bounds.

    Integer and Boolean columns with integer bounds at most 2**30 apart have integer answers, and
    step 1 unless rows are scaled down per unit (``fold``, the number of rows a unit may count for:
    on steps of 1, scaling down would be a majority vote). Else the step is the least power of two that leaves at most 2**30 steps between the
    bounds (for a sum alone: between 0 and the farther bound, too) and at most 2**51 from zero.

    Raises
    ------
    InputError
        When the bounds can't be told apart on any grid, or are beyond what floats can clip to.
    """
    span, far = high - low, max(abs(low), abs(high))
    if not Fraction(1, 2**900) <= far <= 2**900:
        raise InputError(
            f"bounds=({show(low)}, {show(high)}) of {column.name!r} are outside 2**-900 to 2**900. Hint: bounds=(0, 1e6)"
        )
    if span < far / 2**40:
        raise InputError(
            f"bounds=({show(low)}, {show(high)}) of {column.name!r} are closer than a 2**-40 part of their size."
            " Hint: subtract a constant from the column first."
        )
    room = max(span, far) if sum_alone else span
    whole = column.kind in ("int", "bool") and low.denominator == high.denominator == 1
    integer = whole and room <= MOST_STEPS and far <= 2**51
    if integer and fold is None:
        return Grid(Fraction(1), int(low), int(high), True)
    # Noise grows with the rows of a unit; a coarser grid (2**20 steps at least) leaves it room.
    coarser = min(10, max(0, (fold or 1).bit_length() - 12))
    e = max(_log2_ceil(room) - 30 + coarser, _log2_ceil(far) - 51)
    while True:
        step = Fraction(2) ** e
        grid = Grid(step, floor(low / step), ceil(high / step), integer)
        if grid.count <= MOST_STEPS and (not sum_alone or max(-grid.first, grid.last) <= MOST_STEPS):
            return grid
        e += 1  # moving the bounds outward added a step


def make_measure(column: Hashable, bounds: tuple[Fraction, Fraction], grid: Grid) -> Measure:
    """What the engine needs to put a column on its grid (see :class:`~dpframe.schema.Measure`).

    Privacy: the typed bounds as float64 lie within the moved bounds, because those are exactly
    representable and rounding is monotone; adding ``magic`` is monotone too, so k of a bound lies
    between first and last, and the engine clips every k to those of the bounds.
    """
    magic = float(3 * 2**51 * grid.step)
    return Measure(column, float(bounds[0]), float(bounds[1]), magic, grid.first)


def magic_bits(magic: float) -> int:
    """The bits of ``magic`` read as a 64-bit integer: adding k steps adds k to them."""
    return int(struct.unpack("<q", struct.pack("<d", magic))[0])


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One released integer: ``a*n + b*c + d*t + e*m`` (m: units with a row in the group)."""

    a: int
    b: int
    d: int
    e: int = 0


@dataclass(frozen=True, slots=True)
class Move:
    """How far one row moves a layout, in steps.

    Attributes
    ----------
    far : int
        L1 and L2 when a row appears or vanishes.
    across : int
        When a row becomes another in the same place: \\|difference\\| of a plain sum (D0).
        Unused for cells.
    cells : bool
        Whether the coordinates are cells over which a row spreads ``far`` steps (a simplex block).
    once : bool
        Whether a unit counts once however many rows it has.
    """

    far: int
    across: int
    cells: bool = False
    once: bool = False

    def sensitivity(self, *, replace: bool, grouped: bool, rows: int = 1, groups: int = 1) -> tuple[int, int]:
        """(L1, L2 squared), in steps.

        Parameters
        ----------
        replace : bool
            The replace_one relation (else add_remove).
        grouped : bool
            Whether there are several groups between which a row can move.
        rows, groups : int
            How many rows of a unit count in one group, and in how many groups it may be.

        Privacy: add_remove: the unit's rows appear in ``groups`` groups, at most ``rows*far`` each.
        replace_one: a sum in one place changes by at most ``rows*across`` and never by 0, as the
        replaced row may be missing or filtered before or after; over groups the old place loses
        ``rows*far`` and the new one gains as much. Cells change by ``2*rows*far`` in L1 (old cells
        down, new ones up), which covers missing and filtered rows.
        """
        rows = 1 if self.once else rows
        m = rows * self.far
        if not replace:
            return groups * m, groups * m * m
        if self.cells:
            return 2 * groups * m, 2 * groups * m * m
        d = rows * self.across
        if not grouped:
            return d, d * d
        return 2 * groups * m, max(2 * groups * m * m, groups * d * d)

    def furthest(self, *, replace: bool, rows: int = 1) -> int:
        """How far one coordinate can move, in steps (for laws that hold for one coordinate).

        Privacy: a cell gains or loses at most ``far`` a row; a plain sum changes in place by ``across``.
        """
        rows = 1 if self.once else rows
        return rows * (max(self.far, self.across) if replace and not self.cells else self.far)


@dataclass(frozen=True, slots=True)
class Layout:
    """The coordinates released of one column (or of rows), and the answers they hold.

    ``start`` is the index of the first coordinate in the plan. Terms are in the answer's unit:
    ``present`` and ``rows`` in rows, ``total`` and ``centred`` (sum of distances from the
    midpoint) in the column's unit.
    """

    kind: str
    grid: Grid
    coordinates: tuple[Coordinate, ...]
    move: Move
    start: int

    @property
    def cells(self) -> tuple[int, int]:
        return self.start, self.start + 1

    @property
    def present(self) -> Terms:
        cells = 2 if self.kind == "block" else 1
        return tuple((self.start + i, Fraction(1, self.grid.count)) for i in range(cells))

    @property
    def rows(self) -> Terms:
        one = Fraction(1, self.grid.count)
        return tuple((self.start + i, one) for i in range(len(self.coordinates)))

    @property
    def total(self) -> Terms:
        if self.kind == "sum":
            return ((self.start, self.grid.step),)
        u, v = self.cells
        k = self.grid.count
        return ((u, self.grid.high / k), (v, self.grid.low / k))

    @property
    def centred(self) -> Terms:
        half = self.grid.step / 2
        if self.kind == "centred":
            return ((self.start, half),)
        u, v = self.cells
        return ((u, half), (v, -half))


UNIT_GRID = Grid(Fraction(1), 0, 1, True)


def units_layout(start: int) -> Layout:
    """The number of units with a row in the group: m."""
    return Layout("units", UNIT_GRID, (Coordinate(0, 0, 0, 1),), Move(1, 1, once=True), start)


def rows_layout(start: int) -> Layout:
    """count() on its own: n."""
    return Layout("rows", UNIT_GRID, (Coordinate(1, 0, 0),), Move(1, 1), start)


def present_layout(start: int, *, missing_cell: bool) -> Layout:
    """count("x"): c; with count() of a column with gaps as well, the two cells (c, n - c)."""
    if not missing_cell:
        return Layout("present", UNIT_GRID, (Coordinate(0, 1, 0),), Move(1, 1), start)
    cells = (Coordinate(0, 1, 0), Coordinate(1, -1, 0))
    return Layout("present", UNIT_GRID, cells, Move(1, 1, cells=True), start)


def sum_layout(start: int, grid: Grid) -> Layout:
    """clip_sum on its own: the sum of k = t + first*c."""
    far = max(abs(grid.first), abs(grid.last))
    across = max(grid.last, 0) - min(grid.first, 0)
    return Layout("sum", grid, (Coordinate(0, grid.first, 1),), Move(far, across), start)


def centred_layout(start: int, grid: Grid) -> Layout:
    """clip_mean with a public n on its own: the sum of 2t - K, in half steps."""
    k = grid.count
    return Layout("centred", grid, (Coordinate(0, -k, 2),), Move(k, 2 * k), start)


def block_layout(start: int, grid: Grid, *, missing_cell: bool) -> Layout:
    """The simplex block: t, K*c - t and, if count() is asked of a column with gaps, K*(n - c).

    Privacy: a row adds (t, K-t, 0) or (0, 0, K): exactly K in L1, whatever it holds, so each cell
    needs the noise of sensitivity K only once. All cells come from one integer t; cells rounded
    independently would add up to K+1 at ties.
    """
    k = grid.count
    cells = [Coordinate(0, 0, 1), Coordinate(0, k, -1)]
    if missing_cell:
        cells.append(Coordinate(k, -k, 0))
    return Layout("block", grid, tuple(cells), Move(k, k, cells=True), start)


def _log2_ceil(x: Fraction) -> int:
    """The least e with 2**e >= x."""
    e = x.numerator.bit_length() - x.denominator.bit_length() - 1
    while Fraction(2) ** e < x:
        e += 1
    return e
