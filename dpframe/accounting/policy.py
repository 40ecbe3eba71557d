"""Who is protected, how much of a unit may count, and what a session is asked to pay for. No data."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
NEIGHBORS_OF_ROWS = {"add_remove": "appear or vanish", "replace_one": "become others"}


@dataclass(frozen=True, slots=True, repr=False)
class Policy:
    """Who is protected: the neighbouring relation, and the unit (None: rows) or how many rows together (1: each row).

    Privacy: any two of relation, unit and number of rows are a relation of their own; policies are equal only if all are.
    """

    neighbors: str = "add_remove"
    unit: tuple[str, ...] | None = None
    contributions: int = 1

    @property
    def replace(self) -> bool:
        return self.neighbors == "replace_one"

    @property
    def protects(self) -> str:
        """What one unit may do without its being seen."""
        if self.contributions > 1:
            return f"any {self.unit_name} {NEIGHBORS_OF_ROWS[self.neighbors]}"
        return f"one {self.unit_name} {NEIGHBORS[self.neighbors]}"

    @property
    def unit_name(self) -> str:
        """What one of those who are protected is called: of several columns, a combination of values."""
        if self.contributions > 1:
            return f"{self.contributions} rows"
        if self.unit is None:
            return "row"
        names = " and ".join(self.unit)
        return names if len(self.unit) == 1 else f"combination of {names}"

    @property
    def counted(self) -> str:
        """What a number of units counts: rows where any rows are protected."""
        return "row" if self.unit is None else self.unit_name

    def __repr__(self) -> str:
        """Without the number of rows where it is 1: stored answers are found by these words."""
        rows = f", contributions={self.contributions}" if self.contributions > 1 else ""
        return f"Policy(neighbors={self.neighbors!r}, unit={self.unit!r}{rows})"

    @property
    def key(self) -> list[Any]:
        """For fingerprints; as before there was a number of rows where it is 1."""
        rows = [self.contributions] if self.contributions > 1 else []
        return [self.neighbors, self.unit, *rows]


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
    """How much of a unit may count, as typed: groups, rows in a group, rows ungrouped; what is thresholded, and from how many on."""

    max_groups: int | None = None
    max_rows_per_group: int | None = None
    max_rows: int | None = None
    threshold: str | None = None
    min_units: int | None = None

    def checked(self) -> Limits:
        """These limits, or InputError for one that is not a whole number from 1."""
        for k in ("max_groups", "max_rows_per_group", "max_rows", "min_units"):
            if getattr(self, k) is not None:
                least = 2 if k == "min_units" else 1
                check_whole(k, getattr(self, k), least, 2**24, right=10 * least, said="2**24")
        return self
