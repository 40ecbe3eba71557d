"""What a layout is: the integer sums (coordinates) released of one family of questions, and the answers they hold.

A coordinate is a sum of the engine's integers with integer coefficients: rows n, present rows c, and sums
of grid steps and of their products.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from dpframe.frames.contract import Counts, Ints
from dpframe.layout.grids import UNIT_GRID, Grid
from dpframe.layout.sensitivity import BallMove, Move, WeightMove
from dpframe.mechanisms.choosers import Reach

Terms = tuple[tuple[int, Fraction], ...]  # (coordinate, coefficient in the answer's unit)


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
class UnitWeights:
    """The sum of what units weigh in the group."""

    def of(self, exact: Counts, measure: int) -> Ints:
        """Its exact value per group; RuntimeError of an engine that adds up no weights."""
        if exact.weights is None:
            raise RuntimeError("the engine added up no weights")
        return exact.weights


@dataclass(frozen=True, slots=True)
class Layout:
    """The coordinates released of one family of questions, and the answers they hold.

    ``start`` is the index of the first coordinate in the plan; ``row`` is what one row adds to the cells of
    a block, in steps. ``places`` are the cells' values in half-spans from the midpoint; ``second`` is the
    grid of a pair's second column. A row is ``weight`` row steps (counted in ``row`` and in ``move``). Terms are in the
    answer's unit: ``present`` and ``rows`` in rows, ``total`` and ``centred`` (sum of distances from the
    midpoint) in the column's unit.
    """

    kind: str
    grid: Grid
    coordinates: tuple[Coordinate | BinCounts | UnitWeights, ...]
    move: Move | BallMove | WeightMove
    start: int
    row: int = 1
    places: tuple[int, ...] = ()
    second: Grid = UNIT_GRID
    weight: int = 1

    def weighed(self, weight: int) -> Layout:
        """The same, of sums in which a row is ``weight`` steps.

        Privacy: every coordinate is linear in the engine's integers, which are those of ``weight`` rows for one; so a
        unit of so many rows, or parts of them, moves it by ``weight`` times as many steps.
        """
        move = self.move
        if weight == 1 or self.kind in ("units", "bins", "distinct") or isinstance(move, WeightMove):
            return self
        far = (
            replace(move, far=move.far * weight, across=move.across * weight)
            if isinstance(move, Move)
            else replace(move, reach=move.reach * weight)
        )
        return replace(self, move=far, row=self.row * weight, weight=weight)

    @property
    def step(self) -> Fraction:
        """What a step of a sum is worth, in the column's unit."""
        return self.grid.step / self.weight

    def moving(self, reach: Reach) -> int:
        """How many released integers one unit can move, within one group (replace_one: and where it goes).

        A row is in one bin, so a unit's rows move as many bins as they are, those of another as many again.
        """
        twice = 2 if reach.replace and reach.several else 1
        there = 2 * reach.rows if reach.replace and not reach.several else reach.rows
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
            return ((self.start, self.step),)
        middle, half = self.grid.middle, self.grid.half
        return tuple((i, (middle + y * half) / self.row) for i, y in zip(self.cells, self.places))

    @property
    def centred(self) -> Terms:
        if self.kind == "centred":
            return ((self.start, self.step / 2),)
        return tuple((i, y * self.grid.half / self.row) for i, y in zip(self.cells, self.places) if y)
