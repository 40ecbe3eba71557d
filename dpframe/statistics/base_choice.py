"""What questions share that are answered by choosing among public candidates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from dpframe.errors import Arg, Call, InputError, MechanismError
from dpframe.frames.bins import Tally
from dpframe.frames.columns import Column
from dpframe.layout.choices import Points, Selection
from dpframe.layout.families import Bounds, Family
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.choosers import Chooser, Reach
from dpframe.statistics.base import Aggregate, ChoiceTerms


@dataclass(frozen=True, slots=True)
class Choosing(Aggregate):
    """A question answered by choosing among public candidates."""

    in_rows = True
    chosen = True

    @property
    def measured(self) -> tuple[tuple[Hashable, Bounds | None], ...]:
        return ()

    @property
    def columns(self) -> tuple[Hashable, ...]:
        return (self.column,)

    def families(self, types: Mapping[Hashable, Column]) -> tuple[Family, ...]:
        return ()

    @property
    def flips(self) -> bool:
        """Whether permute and flip can answer it."""
        return False


@dataclass(frozen=True, slots=True)
class Counted(Choosing):
    """Candidates are compared by the rows in their bins."""

    def points(self, column: Column) -> Points | None:
        """The candidates as numbers, if they are."""
        return None

    @abstractmethod
    def tally(self, column: Column) -> Tally:
        """The bins, one for each candidate; InputError for a column that has none."""

    @abstractmethod
    def chooser(self, column: Column, reach: Reach, target: Target, mechanism: str) -> Chooser:
        """The calibrated mechanism; ``mechanism`` is "exponential" or "permute_and_flip"."""

    def selection(self, terms: ChoiceTerms) -> Selection:
        assert self.column is not None
        column, taken = terms.types[self.column], mechanism_for(self, terms)
        chooser = self.chooser(column, terms.reach, terms.target, taken)
        return Selection(chooser, tally=self.tally(column), points=self.points(column))


def mechanism_for(a: Choosing, terms: ChoiceTerms) -> str:
    """Which mechanism chooses: permute and flip where it can and pure eps is what is paid.

    Raises
    ------
    MechanismError
        For a law of noise when there are no sums to add it to, or when permute and flip can't answer.
    """
    asked = terms.mechanism
    if asked == "permute_and_flip" and not a.flips:
        raise MechanismError(
            f"{a.describe()} is not answered by permute and flip.", hint=Arg("mechanism", "exponential")
        )
    if asked in ("exponential", "permute_and_flip"):
        return asked
    if asked != "auto" and terms.alone:
        raise MechanismError(
            f"{a.describe()} is chosen, not added noise to; ",
            Arg("mechanism", asked),
            " does not go with it.",
            hint=Arg("mechanism", "exponential"),
        )
    return "permute_and_flip" if terms.pure and a.flips else "exponential"


def checked_k(column: Hashable, k: Any) -> int:
    """``k``, or InputError."""
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InputError(
            Arg("k", k), " must be a whole number from 1.", hint=Call("top_k", column, 3, candidates=[...])
        )
    return k
