"""A plan in the making: parts, pieces and outputs so far, and how the columns that sums need are laid out."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpframe.accounting.events import Event
from dpframe.accounting.policy import Policy
from dpframe.frames.bins import Tally
from dpframe.frames.columns import Column
from dpframe.frames.contract import Bounding, Measure
from dpframe.layout.families import ROWS, UNITS, Family, bins_layout, distinct_layout, lay_out, widest
from dpframe.layout.grids import MOST_STEPS, WEIGHED_STEPS
from dpframe.layout.layouts import Layout
from dpframe.mechanisms.choosers import Reach
from dpframe.mechanisms.thresholds import KeySelection, OwnKeys, Threshold
from dpframe.planning.pieces import ChoicePiece, Output, Part, Piece
from dpframe.planning.request import Request
from dpframe.statistics.base import Aggregate

Laid = tuple[Layout, int, Family]  # the measure's place: -1 for rows alone


class Draft:
    """What has been planned so far, and what it is planned for."""

    def __init__(
        self,
        request: Request,
        types: Mapping[Hashable, Column],
        policy: Policy,
        bounding: Bounding | None,
        reach: Reach,
    ) -> None:
        self.request, self.types, self.policy, self.bounding = request, types, policy, bounding
        self.reach = reach
        self.fold = reach.most if bounding else None
        one_row = bounding is not None and bounding.rows == 1 and bounding.total is None
        self.rows_are_units = one_row
        self.by_units = bounding is not None and not one_row and request.limits.threshold != "rows"
        self.parts: list[Part] = []
        self.pieces: list[Piece | ChoicePiece] = []
        self.measures: list[Measure] = []
        self.tallies: list[Tally] = []
        self.outputs: list[Output] = []
        self.events: list[Event] = []
        self.threshold: Threshold | None = None
        self.selection: KeySelection | None = None
        self.rules: tuple[tuple[str, float], ...] = ()
        self.draws = 0  # that cover several pieces

    def fork(self) -> Draft:
        """A copy that goes on by itself."""
        other = copy.copy(self)
        for name in ("parts", "pieces", "measures", "tallies", "outputs", "events"):
            setattr(other, name, list(getattr(self, name)))
        return other

    @property
    def row_steps(self) -> int:
        """How many steps a row is in what the engine adds up."""
        return self.bounding.row_steps if self.bounding else 1

    @property
    def most_steps(self) -> int:
        """How many steps a grid may have: noise grows with the rows of a unit, and a coarser grid leaves it room."""
        if self.bounding is None:
            return MOST_STEPS >> min(10, max(0, self.reach.most.bit_length() - 12))
        return MOST_STEPS if self.row_steps == 1 else WEIGHED_STEPS

    def tally(self, t: Tally) -> int:
        """The place of a tally that the engine is asked for."""
        if t not in self.tallies:
            self.tallies.append(t)
        return self.tallies.index(t)

    def measure(self, m: Measure) -> int:
        """The place of a measure that the engine is asked for."""
        if m not in self.measures:
            self.measures.append(m)
        return self.measures.index(m)

    # ---- what is asked ----

    def counts_rows(self, a: Aggregate) -> bool:
        """Whether any layout that holds the number of rows answers it.

        Privacy: where one row of a unit counts in a group, rows and units are the same number, and one noise is
        enough for both; the engine keeps that one row.
        """
        return a.counts_rows or (self.rows_are_units and a.families(self.types) == (UNITS,))

    def missing(self, family: Family) -> bool:
        """Whether a row may lack what the family reads."""
        return any(self.types[c].nullable for c in family.columns)

    def families(self, group: Sequence[Aggregate]) -> tuple[list[Family], dict[Family, str]]:
        """What the questions need that don't count rows, and the forms of those that are one column."""
        needed: dict[Family, list[str]] = {}
        asked = [(f, a.form) for a in group for f in a.families(self.types)]
        for family, form in asked:
            if not presence(family):
                needed.setdefault(family, []).append(form)
        for family, _ in asked:
            if presence(family):
                needed.setdefault(joined(family, needed), []).append("present")
        return list(needed), {f: widest(x) for f, x in needed.items() if f.kind == "column"}

    # ---- how it is laid out ----

    def lay_split(self, group: Sequence[Aggregate], thresholded: bool) -> list[Laid]:
        """The layout of every family where each has noise of its own; coordinates are numbered from the last piece on."""
        counts = [a for a in group if self.counts_rows(a)]
        families, forms = self.families([a for a in group if not self.counts_rows(a)])
        counting = bool(counts) or (thresholded and not self.by_units)
        if counting and forms and all(x in ("sum", "centred") for x in forms.values()):
            # No family holds a count yet. Widening one to a block is cheaper than a piece more.
            forms[min(forms, key=_widening_loss)] = "block"
        if counting and not forms:
            families.append(ROWS if all(a.counts_rows for a in counts) else UNITS)
        if thresholded and self.by_units:
            families.append(UNITS)
        families = list(dict.fromkeys(families))
        start, laid = len(self.pieces), []
        for family in families:
            gaps = bool(counts) and family.kind == "column" and self.missing(family)
            laid.append(self.lay(family, start, forms.get(family, ""), missing_cell=gaps))
            start += len(laid[-1][0].coordinates)
        return laid

    def lay(self, family: Family, start: int, form: str, *, missing_cell: bool = False) -> Laid:
        """The layout of one family from coordinate ``start`` on, and the place of what the engine adds up for it."""
        if family.tally is not None:
            layout = bins_layout(start, family.dims)
            if family.kind == "distinct":
                layout = distinct_layout(start, once=self.policy.unit == family.columns)
            return layout, self.tally(family.tally), family
        layout, measure = lay_out(
            family,
            start,
            self.types,
            form=form,
            missing_cell=missing_cell,
            fold=self.fold,
            most=self.most_steps,
        )
        layout = layout.weighed(self.row_steps)
        return layout, -1 if measure is None else self.measure(measure), family

    def sensitivity(self, layout: Layout) -> tuple[int, int]:
        """(L1, L2 squared) of a layout, in its steps."""
        return layout.move.sensitivity(self.reach)

    def moving(self, layouts: Iterable[Layout]) -> int:
        """How many coordinates of these one unit can move, over all of its groups.

        Privacy: in each of its groups those that R rows move there. Rows of which nothing is cut are whole ones, so k of them
        move no more than k times what one does, however they are divided among groups; parts of rows may be in more.
        """
        here = list(layouts)
        in_groups = self.reach.groups * sum(x.moving(self.reach) for x in here)
        if self.bounding is not None:
            return in_groups
        one = replace(self.reach, rows=1, groups=1, total=None)
        return min(in_groups, self.reach.most * sum(x.moving(one) for x in here))

    def own_keys(self, *, units: bool = False) -> OwnKeys:
        """What keys of one unit's own hold: rows, or the unit itself where units are counted."""
        if self.bounding is None:
            return OwnKeys(self.reach.most, self.reach.most, shared=self.reach.most > 1, small=self.small)
        return OwnKeys(1 if units else self.reach.rows, self.reach.groups, small=self.small)

    @property
    def small(self) -> int:
        """The units of a group that is too small for ``min_units``; 0 where that was not asked."""
        return (self.request.limits.min_units or 1) - 1

    def answer(self, group: Sequence[Aggregate], numbers: Mapping[Family, int]) -> None:
        """Append the outputs of questions that don't count rows; ``numbers`` are the parts of their families."""
        laws: list[Any] = [p.noise for p in self.pieces]
        for a in group:
            if not self.counts_rows(a):
                where = [numbers[joined(f, numbers)] for f in a.families(self.types)]
                answers = [x.calibrated(laws) for x in a.answers([self.parts[i].layout for i in where])]
                part_of = [self.pieces[x.coordinates()[0]].part for x in answers]
                self.outputs += [Output(n, a, x, i) for n, x, i in zip(a.names, answers, part_of)]


def presence(family: Family) -> bool:
    """Whether it only counts the cells of a column that are there."""
    return family.kind == "column" and family.bounds[0] is None


def joined(family: Family, families: Iterable[Family]) -> Family:
    """The family that answers ``family``: the count of a column comes with anything measured of it."""
    if not presence(family):
        return family
    same = (f for f in families if f.kind == "column" and f.columns == family.columns)
    return next(same, family)


def label(family: Family) -> Hashable | None:
    """What a part is about, for explanations."""
    return (family.columns[0] if len(family.columns) == 1 else family.label) or None


def _widening_loss(family: Family) -> float:
    assert family.bounds[0] is not None
    low, high = map(float, family.bounds[0])
    scale = max(abs(low), abs(high))
    return float(np.hypot(low / scale, high / scale))
