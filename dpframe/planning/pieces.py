"""What a plan is made of: outputs, the integers or choices that are released, and the parts that share the budget.

No noise is drawn here: pieces say what of the exact counts a draw is for, and ``pipeline`` draws.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpframe.accounting.events import Event
from dpframe.errors import Call, InputError
from dpframe.frames.columns import Column
from dpframe.frames.contract import Counts, Ints
from dpframe.layout.answers import Answer, Laws
from dpframe.layout.layouts import BinCounts, Coordinate, Layout, UnitWeights
from dpframe.layout.tables import Index
from dpframe.mechanisms.auto import RunnerUp
from dpframe.mechanisms.base import Noise
from dpframe.mechanisms.choosers import Chooser
from dpframe.statistics.base import Aggregate


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the answer."""

    name: str
    question: Aggregate
    answer: Answer
    part: int

    @property
    def integer(self) -> bool:
        return self.answer.integer

    @property
    def _rounding(self) -> float:
        """How far rounding moves the answer at most: half a unit of the last digit that is kept."""
        kept = self.question.round
        return 0.0 if kept is None or (self.integer and kept >= 0) else 10.0**-kept / 2

    def error(self, laws: Laws, rows: float | None, level: float = 0.95) -> float | None:
        """How far what is released is off at most with ``level``: by its noise, and by being rounded; None if it needs
        ``rows``. What is said of a chosen value's rank is said before it is rounded (``margin_of``)."""
        error = self.answer.error(laws, rows, level)
        return error + self._rounding if error is not None and self.answer.ranged else error

    def cases(self, laws: Laws, rows: float, level: float = 0.95) -> tuple[tuple[str, float], ...]:
        """As :meth:`error`, for data that are better than the worst."""
        return tuple((of, error + self._rounding) for of, error in self.answer.cases(laws, rows, level))

    @property
    def margin_of(self) -> str:
        """What the margin is a margin of."""
        of = self.answer.margin_of
        return of if self.answer.ranged or not self._rounding else f"{of}, before the answer was rounded"


@dataclass(frozen=True, slots=True)
class Piece:
    """Released integers with their noise. ``measure`` is -1 for rows alone, and the tally's place for bins."""

    coordinate: Coordinate | BinCounts | UnitWeights
    measure: int
    noise: Noise
    part: int

    def exact(self, counts: Counts) -> Ints:
        """The integers of every group that noise is added to.

        Privacy: coordinates stay within 2**62 and noise scales below 2**55, so their sum does not wrap.
        """
        return self.coordinate.of(counts, self.measure)

    @property
    def text(self) -> str:
        """Which integers it releases, in words that are equal for equal ones."""
        return repr(self.coordinate)

    @property
    def tallied(self) -> bool:
        """Whether it needs nothing but a tally."""
        return isinstance(self.coordinate, BinCounts)


@dataclass(frozen=True, slots=True)
class ChoicePiece:
    """Chosen candidates, in every group. ``noise`` is the chooser, ``measure`` the place of the tally.

    Candidates are compared by the rows in their bins, or by ``sums``: of every candidate its coordinate, and the
    place of the measure that it is a sum of.
    """

    measure: int
    noise: Chooser
    part: int
    sums: tuple[tuple[Coordinate, int], ...] = ()

    @property
    def text(self) -> str:
        """Which integers it releases, in words that are equal for equal ones."""
        return repr((self.sums, self.noise) if self.sums else self.noise)

    @property
    def tallied(self) -> bool:
        """Whether it needs nothing but a tally."""
        return not self.sums

    def compared(self, counts: Counts) -> Iterable[tuple[Ints, Ints]]:
        """For one group after the other: the candidates that anything speaks for, and by how much.

        Privacy: the chooser sees one group at a time; a group without rows is there like any other.
        """
        if not self.sums:
            yield from counts.tallies[self.measure].of_groups(len(counts.rows))
            return
        sums = np.array([c.of(counts, m) for c, m in self.sums])
        for g in range(sums.shape[1]):
            yield np.arange(len(self.sums)), sums[:, g]


@dataclass(frozen=True, slots=True)
class Part:
    """The layout of one column with its sensitivity in steps and the share of the budget it was given."""

    layout: Layout
    column: Hashable | None
    l1: int | Fraction  # of a choice: of one utility
    l2_squared: int | Fraction
    mechanism: str
    fused: int
    event: Event  # of all parts that share the noise's budget
    runner_up: RunnerUp | None = None  # what ``auto`` would have taken else
    draw: int | None = None  # the draw that it shares with other parts


def index_of(outputs: Sequence[Output], types: Mapping[Hashable, Column], *, alone: bool) -> Index | None:
    """The rows that the answer has in every group, if it is a table in itself."""
    for o in outputs:
        verb, column = o.question.verb, o.question.column
        index = None if column is None else o.question.table(o.answer.coordinates()[0], types[column])
        if index is None:
            continue
        if not alone:
            raise InputError(
                f"{verb}({column!r}) has several rows of its own and can't stand beside other answers.",
                hint=(
                    "ask it alone: ",
                    Call(f"df.dp.{verb}", column, ...),
                    ", or ",
                    Call(f"{verb}", column, ..., on=Call("df.dp.groupby", ...)),
                ),
            )
        return index
    return None
