"""Public candidates for quantiles, and answers that are chosen among candidates."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dpframe.errors import Arg, InputError
from dpframe.frames.bins import Cuts, Steps, Tally, nearest
from dpframe.frames.columns import Column
from dpframe.frames.contract import Measure
from dpframe.layout.answers import Answer, Laws, Noisy
from dpframe.layout.grids import UNIT_GRID
from dpframe.layout.layouts import Coordinate, Layout
from dpframe.layout.sensitivity import Move
from dpframe.mechanisms.base import Floats, Ints
from dpframe.mechanisms.choosers import Chooser

FINEST = 1 << 16
_WHOLE = 2**53  # floats hold every integer up to here


@dataclass(frozen=True, slots=True)
class Ladder:
    """Candidates ``low + i*step`` for i = 0 to ``last``."""

    low: Fraction
    step: Fraction
    last: int
    integer: bool

    @property
    def binning(self) -> Steps:
        return Steps(float(self.low), float(self.step), self.last)

    def at(self, places: Ints) -> npt.NDArray[Any]:
        if self.integer:
            return int(self.low) + int(self.step) * places
        high = float(self.low + self.step * self.last)
        return np.asarray(np.minimum(float(self.low) + float(self.step) * places, high))


@dataclass(frozen=True, slots=True)
class Listed:
    """Candidates that the caller listed, in increasing order."""

    values: tuple[Fraction, ...]
    integer: bool

    @property
    def last(self) -> int:
        return len(self.values) - 1

    @property
    def binning(self) -> Cuts:
        return nearest(self.values)

    def at(self, places: Ints) -> npt.NDArray[Any]:
        kind = np.int64 if self.integer else np.float64
        return np.array([int(v) if self.integer else float(v) for v in self.values], dtype=kind)[places]


Points: TypeAlias = Ladder | Listed


def ladder(column: Column, low: Fraction, high: Fraction) -> Ladder:
    """Cut a public range into 2**16 equal steps; of an integer column, its integers (every 2**j-th).

    Raises
    ------
    InputError
        For bounds between which no candidates can be told apart.

    Privacy: from typed bounds and the dtype alone.
    """
    far = max(abs(low), abs(high))
    if column.kind in ("int", "bool"):
        first, final = -((-low) // 1), high // 1
        if first > final or max(abs(first), abs(final)) > _WHOLE:
            raise InputError(
                Arg("bounds", (low, high)),
                f" of {column.name!r}, an integer column, must hold integers up to 2**53.",
                hint=Arg("bounds", (0, 100)),
            )
        step = 1
        while (final - first) // step >= FINEST:
            step *= 2
        return Ladder(Fraction(first), Fraction(step), int((final - first) // step), True)
    if not Fraction(1, 2**900) <= far <= 2**900 or high - low < far / 2**36:
        raise InputError(
            Arg("bounds", (low, high)),
            f" of {column.name!r} can't be cut into {FINEST:,} steps that floats tell apart.",
            hint=(Arg("bounds", (0, 100)), ", or ", Arg("candidates", [...])),
        )
    return Ladder(low, (high - low) / FINEST, FINEST, False)


def listed(column: Column, values: tuple[Fraction, ...]) -> Listed:
    whole = column.kind in ("int", "bool") and all(v.denominator == 1 and abs(v) < 2**63 for v in values)
    return Listed(values, whole)


@dataclass(frozen=True, slots=True)
class Selection:
    """How a question is answered by choosing among candidates.

    Attributes
    ----------
    chooser : Chooser
        The calibrated mechanism.
    tally : Tally or None
        Candidates are compared by the rows in their bins,
    sums : pairs of a coordinate and its measure
        or by these sums, one for each.
    points : Points or None
        The candidates as numbers, if they are.
    """

    chooser: Chooser
    tally: Tally | None = None
    sums: tuple[tuple[Coordinate, Measure], ...] = ()
    points: Points | None = None

    def layout(self, start: int) -> ChoiceLayout:
        """What is released, from coordinate ``start`` on."""
        width, points = self.chooser.width, self.points
        return ChoiceLayout("choice", UNIT_GRID, (), Move(1, 1), start, width=width, points=points)


@dataclass(frozen=True, slots=True)
class ChoiceLayout(Layout):
    """One piece of chosen places, ``width`` of them for a group."""

    width: int = 1
    points: Points | None = None


class _Choice(Answer):
    """Shared by answers that are chosen. What is known of their error is not about their values."""

    ranged = False
    margin_of = "its rank, in rows"
    piece: int

    def interval(self, noisy: Noisy, laws: Laws, level: float) -> tuple[Floats, Floats]:
        raise InputError(
            "A chosen value has no interval: which values are within its rank error depends on the data.",
            hint=".facts['outputs'] holds its rank error, margin_95",
        )

    def std(self, noisy: Noisy, laws: Laws) -> Floats:
        raise InputError(
            "A chosen value has no standard deviation that is public.",
            hint=".facts['outputs'] holds its rank error, margin_95",
        )

    def error(self, laws: Laws, rows: float | None, level: float = 0.95) -> float:
        law: Any = laws[self.piece]
        return float(law.error(level, rows))

    def coordinates(self) -> tuple[int, ...]:
        return (self.piece,)


@dataclass(frozen=True, slots=True)
class Picked(_Choice):
    """The candidate chosen for rank number ``pick`` of ``width``; all of them, in order, when it is None."""

    piece: int
    width: int
    points: Points
    pick: int | None = None

    @property
    def integer(self) -> bool:  # type: ignore[override]
        return self.points.integer

    def value(self, noisy: Noisy) -> npt.NDArray[Any]:
        places = noisy[self.piece]
        return self.points.at(places if self.pick is None else places[self.pick :: self.width])


@dataclass(frozen=True, slots=True)
class Difference(_Choice):
    """The last of ``width`` chosen candidates minus the first."""

    piece: int
    width: int
    points: Points

    @property
    def integer(self) -> bool:  # type: ignore[override]
        return self.points.integer

    def value(self, noisy: Noisy) -> npt.NDArray[Any]:
        values = self.points.at(noisy[self.piece])
        return np.asarray(values[self.width - 1 :: self.width] - values[:: self.width])


@dataclass(frozen=True, slots=True)
class Places(_Choice):
    """1 for the best, 2 for the second, ..."""

    piece: int
    width: int
    margin_of: str = "the counts of those chosen, in rows"

    integer = True

    def value(self, noisy: Noisy) -> npt.NDArray[Any]:
        return np.tile(np.arange(1, self.width + 1), len(noisy[self.piece]) // self.width)
