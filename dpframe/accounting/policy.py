"""Who is protected, how much of a unit may count, and what a session is asked to pay for. No data."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from dpframe.accounting.events import Event
from dpframe.base.arguments import check_whole


class Details(NamedTuple):
    """The columns of a ledger's row that describe a question."""

    fingerprint: str
    sensitivity: str
    scale: str


NEIGHBORS = {  # what one unit does between neighbouring frames, by the relation's name
    "add_remove": "appears or vanishes",
    "replace_one": "becomes another",
}


@dataclass(frozen=True, slots=True)
class Policy:
    """Who is protected: the neighbouring relation and the unit (None: one row)."""

    neighbors: str = "add_remove"
    unit: tuple[str, ...] | None = None

    @property
    def replace(self) -> bool:
        return self.neighbors == "replace_one"

    @property
    def protects(self) -> str:
        """What one unit may do without its being seen."""
        return f"one {self.unit_name} {NEIGHBORS[self.neighbors]}"

    @property
    def unit_name(self) -> str:
        """What one of those who are protected is called: of several columns, a combination of values."""
        if self.unit is None:
            return "row"
        names = " and ".join(self.unit)
        return names if len(self.unit) == 1 else f"combination of {names}"


@dataclass(frozen=True, slots=True)
class Charge:
    """What a session is asked to pay for. ``same`` is equal for repeats of one question; no data."""

    event: Event
    question: str
    mechanism: str
    policy: Policy
    same: Hashable
    details: Callable[[], Details] = field(compare=False, repr=False)  # for a ledger's row


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a unit may count, as typed: groups, rows in a group, rows ungrouped; what is thresholded."""

    max_groups: int | None = None
    max_rows_per_group: int | None = None
    max_rows: int | None = None
    threshold: str | None = None

    def checked(self) -> Limits:
        """These limits, or InputError for one that is not a whole number from 1."""
        for k in ("max_groups", "max_rows_per_group", "max_rows"):
            if getattr(self, k) is not None:
                check_whole(k, getattr(self, k), 1, 2**24, right=10, said="2**24")
        return self
