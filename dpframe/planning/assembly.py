"""A plan in the making: parts, pieces and their noise, question by question. No data."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.accounting.conversion import pure_rho
from dpframe.accounting.events import Event, compose
from dpframe.accounting.policy import Policy
from dpframe.errors import InputError
from dpframe.frames.bins import Tally
from dpframe.frames.columns import Column
from dpframe.frames.contract import Bounding, Measure
from dpframe.layout.answers import Linear
from dpframe.layout.families import ROWS, UNITS, Family, bins_layout, distinct_layout, lay_out, widest
from dpframe.layout.layouts import Layout
from dpframe.mechanisms.auto import Asked, choose, worst
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.choosers import Chooser, Reach
from dpframe.mechanisms.thresholds import Threshold, least_threshold, per_key_delta
from dpframe.planning.plan import BestPiece, ChoicePiece, Output, Part, Piece, Request
from dpframe.statistics.base import Aggregate
from dpframe.statistics.base_choice import Choosing, Counted, mechanism_for
from dpframe.statistics.count import Count
from dpframe.statistics.select import Scored

COUNTING = ("rows", "block", "present")  # layouts that hold a number of rows


class Draft:
    """A plan in the making: parts, pieces and outputs of one group of aggregates after another."""

    def __init__(
        self, policy: Policy, bounding: Bounding | None, several: bool, threshold_on: str | None
    ) -> None:
        self.policy, self.bounding, self.several = policy, bounding, several
        self.rows = bounding.rows if bounding else 1
        self.groups = (bounding.groups or 1) if bounding else 1
        self.by_units = bounding is not None and bounding.rows > 1 and threshold_on != "rows"
        self.parts: list[Part] = []
        self.pieces: list[Piece | ChoicePiece | BestPiece] = []
        self.measures: list[Measure] = []
        self.tallies: list[Tally] = []
        self.outputs: list[Output] = []
        self.events: list[Event] = []
        self.threshold: Threshold | None = None

    def answer(
        self,
        group: Sequence[Aggregate],
        target: Target,
        request: Request,
        types: Mapping[Hashable, Column],
        *,
        thresholded: bool,
    ) -> None:
        """Plan the aggregates that share ``target``: sums get noise together, each choice is drawn by itself.

        Privacy: choices and parts of sums have equal shares of eps (or rho), which compose by addition.
        """
        choices = [a for a in group if isinstance(a, Choosing)]
        sums = [a for a in group if not isinstance(a, Choosing)]
        parts = len(self._lay_out(sums, types, thresholded)) if choices else 1
        total = parts + len(choices)

        def share(part: int) -> Target:
            eps, rho = (None if x is None else x * part / total for x in (target.eps, target.rho))
            return Target(eps, target.delta, rho)

        first = len(self.parts)
        if parts:
            self.add(sums, share(parts) if choices else target, request, types, thresholded=thresholded)
        for a in choices:
            self.choose(a, share(1), request, types)
        if choices:
            self.parts[first:] = [replace(p, fused=total) for p in self.parts[first:]]

    def choose(self, a: Choosing, target: Target, request: Request, types: Mapping[Hashable, Column]) -> None:
        alone = all(isinstance(x, Choosing) for x in request.aggregates)
        mechanism = mechanism_for(a, request.mechanism, pure=request.pure, alone=alone)
        reach = Reach(self.policy.replace, self.several, self.rows, self.groups)
        part, fold = len(self.parts), self.rows * self.groups if self.bounding else None
        piece: ChoicePiece | BestPiece
        if isinstance(a, Scored):
            sums = a.sums(types, fold)
            where = tuple((coordinate, self._measure(measure)) for coordinate, measure, _ in sums)
            chooser: Chooser = a.chooser(sums[0][2], reach, target)
            piece = BestPiece(where, chooser, part)
        else:
            assert isinstance(a, Counted)
            chooser = a.chooser(types[a.column], reach, target, mechanism)
            piece = ChoicePiece(self._tally(a.tally(types[a.column])), chooser, part)
        moved = chooser.sensitivity
        layout = a.layout(len(self.pieces), types[a.column], chooser.width)
        self.parts.append(Part(layout, a.column, moved, moved**2, chooser.mechanism, 1, chooser.event))
        self.pieces.append(piece)
        each = zip(a.names, a.answers([layout]))
        self.outputs += [Output(n, a, answer, part) for n, answer in each]
        self.events.append(chooser.event)

    def add(
        self,
        group: Sequence[Aggregate],
        target: Target,
        request: Request,
        types: Mapping[Hashable, Column],
        *,
        thresholded: bool,
    ) -> None:
        laid = self._lay_out(group, types, thresholded)
        replacing = self.policy.replace
        sensitivities = [
            layout.move.sensitivity(
                replace=replacing, grouped=self.several, rows=self.rows, groups=self.groups
            )
            for layout, _, _ in laid
        ]
        furthest = [layout.move.furthest(replace=replacing, rows=self.rows) for layout, _, _ in laid]
        moving = self.groups * sum(
            layout.moving(replace=replacing, grouped=self.several, rows=self.rows) for layout, _, _ in laid
        )
        for_noise = replace(target, delta=target.delta / 2) if thresholded else target
        if target.rho is not None:
            for_noise = replace(target, delta=Fraction(0))
        asked_noise = Asked(tuple(sensitivities), tuple(furthest), moving, for_noise, thresholded)
        law = request.auto if request.mechanism == "auto" else request.mechanism
        choice = choose(law, asked_noise, request.loss)
        event = worst([n.event for n in choice.noises])
        first = len(self.parts)
        numbers: dict[Family, int] = {}
        for (layout, measure, family), (l1, l2sq), noise in zip(laid, sensitivities, choice.noises):
            numbers[family] = len(self.parts)
            label = family.columns[0] if len(family.columns) == 1 else family.label
            self.parts.append(
                Part(layout, label or None, l1, l2sq, choice.mechanism, len(laid), event, choice.runner_up)
            )
            self.pieces += [Piece(c, measure, noise, numbers[family]) for c in layout.coordinates]
        for a in group:
            if not _counts_rows(a):
                where = [numbers[_joined(f, numbers)] for f in a.families(types)]
                laws: list[Any] = [p.noise for p in self.pieces]
                answers = [x.calibrated(laws) for x in a.answers([self.parts[i].layout for i in where])]
                part_of = [self.pieces[x.coordinates()[0]].part for x in answers]
                self.outputs += [Output(n, a, x, i) for n, x, i in zip(a.names, answers, part_of)]
        layouts = [layout for layout, _, _ in laid]
        self._count_rows(group, layouts, first)
        if thresholded:
            event = self._threshold(group, layouts, event, target.delta)
        self.events.append(event)

    def _threshold(
        self, group: Sequence[Aggregate], laid: list[Layout], event: Event, delta: Fraction
    ) -> Event:
        """Threshold the first layout that counts, and add what the keys cost.

        Privacy: a law without delta leaves all of delta to the keys, another half of it.
        """
        keys_delta = delta - event.delta
        rows = any(_counts_rows(a) for a in group)
        if self.by_units:
            layout = next(x for x in laid if x.kind == "units")
            terms, most, counted = layout.rows, 1, self.policy.unit_name
        else:
            holders = [x for x in laid if x.kind in COUNTING]
            layout = min(holders, key=lambda x: len(x.coordinates)) if rows else holders[0]
            terms = layout.rows if rows else layout.present
            most, counted = self.rows * layout.row, "row"
        where = tuple(i for i, _ in terms)
        noise: Any = self.pieces[where[0]].noise
        least = least_threshold(noise, len(where), most, per_key_delta(keys_delta, self.groups))
        self.threshold = Threshold(where, least, layout.row, counted, keys_delta)
        return compose((event, Event(Fraction(0), keys_delta, Fraction(0), kind="keys")))

    def select_keys(self, target: Target) -> tuple[Fraction, float]:
        """(eps', delta') of a release of keys alone; charged as an (eps, delta) event.

        Privacy: under replace_one both the old and the new keys of a unit may betray it: 2*L0 keys.
        """
        if target.eps is None or not target.delta:
            raise InputError("keys() needs eps= and delta=. Hint: .keys(eps=1, delta=1e-6)")
        many = self.groups * (2 if self.policy.replace else 1)
        self.events.append(Event(target.eps, target.delta, pure_rho(target.eps)))
        return target.eps / many, per_key_delta(target.delta, many)

    def _count_rows(self, group: Sequence[Aggregate], laid: list[Layout], first: int) -> None:
        """count(): the mean of all layouts that hold the number of rows, weighted by 1/(number of noises)."""
        if not any(_counts_rows(a) for a in group):
            return
        holders = [(first + i, x) for i, x in enumerate(laid) if x.kind in COUNTING]
        total = sum(Fraction(1, len(x.coordinates)) for _, x in holders)
        terms = tuple((i, c / len(x.coordinates) / total) for _, x in holders for i, c in x.rows)
        for a in group:
            if _counts_rows(a):
                self.outputs.append(Output(a.names[0], a, Linear(terms, integer=True), holders[0][0]))

    def _lay_out(
        self, group: Sequence[Aggregate], types: Mapping[Hashable, Column], thresholded: bool
    ) -> list[tuple[Layout, int, Family]]:
        """Decide the layout of every family, and number its coordinates."""
        families: dict[Family, list[str]] = {}
        asked = [(f, a.form) for a in group for f in a.families(types)]
        for family, form in asked:
            if not _presence(family):
                families.setdefault(family, []).append(form)
        for family, _ in asked:
            if _presence(family):
                families.setdefault(_joined(family, families), []).append("present")
        rows = any(_counts_rows(a) for a in group)
        counting = rows or (thresholded and not self.by_units)
        forms = {f: widest(x) for f, x in families.items() if f.kind == "column"}
        if counting and forms and all(x in ("sum", "centred") for x in forms.values()):
            # No family holds a count yet. Widening one to a block is cheaper than a piece more.
            forms[min(forms, key=_widening_loss)] = "block"
        if counting and not forms:
            families[ROWS] = []
        if thresholded and self.by_units:
            families.setdefault(UNITS, [])
        fold = self.rows * self.groups if self.bounding else None
        start, laid = len(self.pieces), []
        for family in families:
            missing_cell = rows and family.kind == "column" and types[family.columns[0]].nullable
            form = forms.get(family, "")
            if family.tally is not None:
                layout = bins_layout(start, family.dims)
                if family.kind == "distinct":
                    layout = distinct_layout(start, once=self.policy.unit == family.columns)
                laid.append((layout, self._tally(family.tally), family))
                start += 1
                continue
            layout, measure = lay_out(family, start, types, form=form, missing_cell=missing_cell, fold=fold)
            laid.append((layout, -1 if measure is None else self._measure(measure), family))
            start += len(layout.coordinates)
        return laid

    def _tally(self, t: Tally) -> int:
        if t not in self.tallies:
            self.tallies.append(t)
        return self.tallies.index(t)

    def _measure(self, m: Measure) -> int:
        if m not in self.measures:
            self.measures.append(m)
        return self.measures.index(m)


def _counts_rows(a: Aggregate) -> bool:
    return isinstance(a, Count) and a.column is None


def _presence(family: Family) -> bool:
    """Whether it only counts the cells of a column that are there."""
    return family.kind == "column" and family.bounds[0] is None


def _joined(family: Family, families: Iterable[Family]) -> Family:
    """The family that answers ``family``: the count of a column comes with anything measured of it."""
    if not _presence(family):
        return family
    same = (f for f in families if f.kind == "column" and f.columns == family.columns)
    return next(same, family)


def _widening_loss(family: Family) -> float:
    assert family.bounds[0] is not None
    low, high = map(float, family.bounds[0])
    scale = max(abs(low), abs(high))
    return float(np.hypot(low / scale, high / scale))
