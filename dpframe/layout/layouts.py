"""Grids and layouts: how a column becomes integers, and which integer sums get noise.

A *grid* turns a clipped value into a step number. A *layout* names the integer sums (coordinates)
that are released of one column (or a few together), and how far they move. A coordinate is a sum of the
engine's integers with integer coefficients: rows n, present rows c, and sums of steps and of their products.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, isqrt

from dpframe.errors import InputError, show
from dpframe.frames.columns import Column
from dpframe.frames.contract import Axis, Counts, Ints

MOST_STEPS = 1 << 30
FEW_STEPS = 1 << 15  # of an axis whose steps are multiplied: a product is at most 2**30
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


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One released integer: ``a*n + b*c + e*m`` (m: units with a row in the group) plus ``sums``.

    ``sums`` has pairs (which of the measure's sums, coefficient).
    """

    a: int = 0
    b: int = 0
    sums: tuple[tuple[int, int], ...] = ()
    e: int = 0

    def of(self, exact: Counts, measure: int) -> Ints:
        """Its exact value per group.

        Privacy: the value itself is within 2**62 for 2**32 rows; terms on the way may wrap modulo 2**64,
        which cancels.
        """
        value: Ints = self.a * exact.rows
        if self.e and exact.units is not None:
            value = value + self.e * exact.units
        if self.b:
            value = value + self.b * exact.present[measure]
        for i, factor in self.sums:
            value = value + factor * exact.sums[measure][i]
        return value


@dataclass(frozen=True, slots=True)
class BinCounts:
    """The rows of each of ``width`` bins of a tally: released integers that each have noise of their own."""

    width: int

    def of(self, exact: Counts, tally: int) -> Ints:
        """Its exact values, bins of the first group first."""
        return exact.tallies[tally].dense(len(exact.rows), self.width)


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
class BallMove:
    """How far one vector of norm at most ``reach`` steps moves a sum of vectors.

    Privacy: add_remove: ``reach`` in the norm of ``order``. replace_one: one vector goes and another comes, in one
    place or two: at most twice that, whatever is missing. A unit adds at most ``rows`` vectors in each of
    ``groups`` groups. In the other norm: L2 <= L1 <= sqrt(dims)*L2.
    """

    reach: int
    dims: int
    order: int

    def sensitivity(self, *, replace: bool, grouped: bool, rows: int = 1, groups: int = 1) -> tuple[int, int]:
        """(L1, L2 squared), in steps; see :class:`Move`."""
        m = rows * self.reach * (2 if replace else 1)
        l1 = m if self.order == 1 else isqrt(self.dims * m * m)
        return groups * l1, groups * m * m

    def furthest(self, *, replace: bool, rows: int = 1) -> int:
        """How far one coordinate can move, in steps."""
        return rows * self.reach * (2 if replace else 1)


@dataclass(frozen=True, slots=True)
class Layout:
    """The coordinates released of one family of questions, and the answers they hold.

    ``start`` is the index of the first coordinate in the plan; ``row`` is what one row adds to the cells of
    a block, in steps. ``places`` are the cells' values in half-spans from the midpoint; ``second`` is the
    grid of a pair's second column. Terms are in the
    answer's unit: ``present`` and ``rows`` in rows, ``total`` and ``centred`` (sum of distances from the
    midpoint) in the column's unit.
    """

    kind: str
    grid: Grid
    coordinates: tuple[Coordinate | BinCounts, ...]
    move: Move | BallMove
    start: int
    row: int = 1
    places: tuple[int, ...] = ()
    second: Grid = UNIT_GRID

    def moving(self, *, replace: bool, grouped: bool, rows: int) -> int:
        """How many released integers one unit can move, within one group (replace_one: and where it goes).

        A row is in one bin, so a unit's rows move as many bins as they are, those of another as many again.
        """
        twice = 2 if replace and grouped else 1
        there = 2 * rows if replace and not grouped else rows
        width = sum(min(c.width, there) if isinstance(c, BinCounts) else 1 for c in self.coordinates)
        return twice * width

    @property
    def cells(self) -> tuple[int, ...]:
        """The coordinates that hold present rows."""
        return tuple(range(self.start, self.start + (len(self.places) or 1)))

    @property
    def present(self) -> Terms:
        return tuple((i, Fraction(1, self.row)) for i in self.cells)

    @property
    def rows(self) -> Terms:
        one = Fraction(1, self.row)
        return tuple((self.start + i, one) for i in range(len(self.coordinates)))

    @property
    def total(self) -> Terms:
        if self.kind == "sum":
            return ((self.start, self.grid.step),)
        middle, half = self.grid.middle, self.grid.half
        return tuple((i, (middle + y * half) / self.row) for i, y in zip(self.cells, self.places))

    @property
    def centred(self) -> Terms:
        if self.kind == "centred":
            return ((self.start, self.grid.step / 2),)
        return tuple((i, y * self.grid.half / self.row) for i, y in zip(self.cells, self.places) if y)


def units_layout(start: int) -> Layout:
    """The number of units with a row in the group: m."""
    return Layout("units", UNIT_GRID, (Coordinate(e=1),), Move(1, 1, once=True), start)


def rows_layout(start: int) -> Layout:
    """count() on its own: n."""
    return Layout("rows", UNIT_GRID, (Coordinate(a=1),), Move(1, 1), start)


def present_layout(start: int, *, missing_cell: bool) -> Layout:
    """count("x"): c; with count() of a column with gaps as well, the two cells (c, n - c)."""
    if not missing_cell:
        return Layout("present", UNIT_GRID, (Coordinate(b=1),), Move(1, 1), start)
    cells = (Coordinate(b=1), Coordinate(a=1, b=-1))
    return Layout("present", UNIT_GRID, cells, Move(1, 1, cells=True), start)


def bins_layout(start: int, width: int) -> Layout:
    """A histogram: the rows of every bin.

    Privacy: a row is in one bin, so R rows of a unit add R in L1 and at most R in L2; when others take
    their place, R go and R come.
    """
    return Layout("bins", UNIT_GRID, (BinCounts(width),), Move(1, 1, cells=True), start)


def distinct_layout(start: int, *, once: bool) -> Layout:
    """A number of different values: one unit has at most R of them (``once``: the column names the unit)."""
    return Layout("distinct", UNIT_GRID, (BinCounts(1),), Move(1, 1, once=once), start)


def sum_layout(start: int, grid: Grid) -> Layout:
    """clip_sum on its own: the sum of k = t + first*c."""
    far = max(abs(grid.first), abs(grid.last))
    across = max(grid.last, 0) - min(grid.first, 0)
    return Layout("sum", grid, (Coordinate(b=grid.first, sums=((0, 1),)),), Move(far, across), start)


def centred_layout(start: int, grid: Grid) -> Layout:
    """clip_mean with a public n on its own: the sum of 2t - K, in half steps."""
    k = grid.count
    return Layout("centred", grid, (Coordinate(b=-k, sums=((0, 2),)),), Move(k, 2 * k), start)


def block_layout(start: int, grid: Grid, *, missing_cell: bool) -> Layout:
    """The simplex block: t, K*c - t and, if count() is asked of a column with gaps, K*(n - c).

    Privacy: a row adds (t, K-t, 0) or (0, 0, K): exactly K in L1, whatever it holds, so each cell
    needs the noise of sensitivity K only once. All cells come from one integer t; cells rounded
    independently would add up to K+1 at ties.
    """
    k = grid.count
    cells = (Coordinate(sums=((0, 1),)), Coordinate(b=k, sums=((0, -1),)))
    return _simplex("block", start, grid, cells, k, (1, -1), missing_cell)


def triple_layout(start: int, grid: Grid, *, missing_cell: bool) -> Layout:
    """The block of a variance: the sums of (K-t)**2, 2t(K-t) and t**2.

    Privacy: as :func:`block_layout`; a row adds ((K-t)**2, 2t(K-t), t**2), which sum to K**2 exactly.
    """
    k = grid.count
    cells = (
        Coordinate(b=k * k, sums=((0, -2 * k), (1, 1))),
        Coordinate(sums=((0, 2 * k), (1, -2))),
        Coordinate(sums=((1, 1),)),
    )
    return _simplex("block", start, grid, cells, k * k, (-1, 0, 1), missing_cell)


def pair_layout(start: int, first: Grid, second: Grid) -> Layout:
    """The block of a covariance: the sums of (K-s)(L-t), s(L-t), (K-s)t and st.

    Privacy: as :func:`block_layout`; a row in which both are present adds K*L in L1, any other nothing.
    """
    k, m = first.count, second.count
    cells = (
        Coordinate(b=k * m, sums=((0, -m), (1, -k), (2, 1))),
        Coordinate(sums=((0, m), (2, -1))),
        Coordinate(sums=((1, k), (2, -1))),
        Coordinate(sums=((2, 1),)),
    )
    layout = _simplex("pair", start, first, cells, k * m, (-1, 1, -1, 1), False)
    return replace(layout, second=second)


def weighted_layout(start: int, grid: Grid, weights: Grid) -> Layout:
    """The block of a weighted mean: the sums of w*t, w*(K-t) and the weight that is left, (W-w)*K.

    Privacy: as :func:`block_layout`; a row in which both are present adds W*K in L1, any other nothing.
    The third cell is not released; leaving it out changes no guarantee.
    """
    k, w = grid.count, weights.count
    cells = (Coordinate(sums=((1, 1),)), Coordinate(sums=((0, k), (1, -1))))
    return _simplex("weighted", start, grid, cells, k * w, (1, -1), False)


def vector_layout(start: int, step: Fraction, move: BallMove) -> Layout:
    """The sums of the components of vectors."""
    cells = tuple(Coordinate(sums=((i, 1),)) for i in range(move.dims))
    return Layout("vector", Grid(step, -move.reach, move.reach, False), cells, move, start)


def _simplex(
    kind: str,
    start: int,
    grid: Grid,
    cells: tuple[Coordinate, ...],
    row: int,
    places: tuple[int, ...],
    missing_cell: bool,
) -> Layout:
    if missing_cell:
        cells = (*cells, Coordinate(a=row, b=-row))
    return Layout(kind, grid, cells, Move(row, row, cells=True), start, row, places)


def log2_ceil(x: Fraction) -> int:
    """The least e with 2**e >= x."""
    e = x.numerator.bit_length() - x.denominator.bit_length() - 1
    while Fraction(2) ** e < x:
        e += 1
    return e
