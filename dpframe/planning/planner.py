"""Where the noise of every number is decided, from the question, column types and the policy. No data."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.accounting.conversion import pure_rho
from dpframe.accounting.events import Event, compose
from dpframe.accounting.policy import Policy
from dpframe.errors import Arg, Call, InputError
from dpframe.frames.bins import Tally
from dpframe.frames.columns import Column
from dpframe.frames.contract import Bounding, Measure, require
from dpframe.layout.answers import Linear
from dpframe.layout.families import ROWS, UNITS, Family, bins_layout, distinct_layout, lay_out, widest
from dpframe.layout.layouts import Layout
from dpframe.mechanisms.auto import Asked, choose, worst
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.choosers import Reach
from dpframe.mechanisms.thresholds import KeySelection, Threshold, least_threshold, per_key_delta
from dpframe.planning.bounding import make_bounding
from dpframe.planning.pieces import ChoicePiece, Output, Part, Piece, index_of
from dpframe.planning.plan import Plan
from dpframe.planning.request import Request, by_target, check_numbers, grouping, output_names
from dpframe.statistics.base import Aggregate

COUNTING = ("rows", "block", "present")  # layouts that hold a number of rows
NOTHING = Event(Fraction(0), Fraction(0), Fraction(0))


def make_plan(request: Request, source: Any, policy: Policy) -> Plan:
    """Plan a request on a frame's schema under a policy.

    Parameters
    ----------
    request : Request
    source : Source
        Of which the columns' types are read, and what its engine can't do.
    policy : Policy
        The protected unit and the neighbouring relation.

    Raises
    ------
    InputError, MechanismError
        Before anything is spent, from parameters and schema alone.

    Privacy: :meth:`Planner.add_sums` and :meth:`Planner.add_choice` say what the noise is for. Aggregates with
    epsilons of their own are planned one after another, and their costs compose by addition.
    """
    types: dict[Hashable, Column] = {}

    def column(name: Hashable) -> Column:
        if name not in types:
            types[name] = source.column(name)
        return types[name]

    by, keys = grouping(request, column)
    asked = replace(request, keys=keys)
    resolved = [a.resolved(column) for a in request.aggregates]
    request = replace(request, aggregates=tuple(a.alone() if request.scalar else a for a in resolved))
    names = output_names(request)
    check_numbers(request.aggregates, column)
    about_units = [UNITS in a.families(types) for a in request.aggregates]
    if policy.unit is None and any(about_units):
        raise InputError(
            "count_units() counts units, and this session protects single rows: a row is the unit.",
            hint=(Call("count"), ", or ", Call("dp.Session", eps=1, unit="user_id")),
        )
    rows_matter = not all(a.families(types) == (UNITS,) for a in request.aggregates)
    bounding = make_bounding(
        request.limits, policy, column, by=[c.name for c in by], keys=keys, rows_matter=rows_matter
    )
    if bounding is not None:
        require(source, "units", "A session with a unit")
    unknown = bool(by) and keys is None
    several = bool(by) and (keys is None or keys.size > 1)
    planner = Planner(request, types, policy, bounding, several=several)
    for group, target in by_target(request, unknown):
        planner.add(group, target, thresholded=unknown and not planner.events)
    if any(t.distinct for t in planner.tallies):
        require(source, "distinct", "n_unique")
    index = index_of(planner.outputs, types, alone=len(request.aggregates) == 1)
    selection = None if request.aggregates else planner.select_keys(request.target)
    outputs = tuple(sorted(planner.outputs, key=lambda o: names.index(o.name)))
    one = len(outputs) == 1 or (bool(outputs) and request.aggregates[0].pair)
    return Plan(
        outputs=outputs,
        pieces=tuple(planner.pieces),
        parts=tuple(planner.parts),
        measures=tuple(planner.measures),
        tallies=tuple(planner.tallies),
        by=by,
        keys=keys,
        bounding=bounding,
        threshold=planner.threshold,
        selection=selection,
        event=NOTHING if keys and not keys.size else compose(tuple(planner.events)),
        policy=policy,
        columns=tuple(types.values()),
        target=request.target,
        scalar=request.scalar and index is None and one,
        index=index,
        top=request.top,
        request=asked,
    )


class Planner:
    """A plan in the making: the parts, pieces and outputs of one group of aggregates after another."""

    def __init__(
        self,
        request: Request,
        types: Mapping[Hashable, Column],
        policy: Policy,
        bounding: Bounding | None,
        *,
        several: bool,
    ) -> None:
        self.request, self.types, self.policy, self.bounding = request, types, policy, bounding
        self.several = several
        self.rows = bounding.rows if bounding else 1
        self.groups = (bounding.groups or 1) if bounding else 1
        self.fold = self.rows * self.groups if bounding else None
        self.rows_are_units = bounding is not None and bounding.rows == 1
        self.by_units = self.rows > 1 and request.limits.threshold != "rows"
        self.parts: list[Part] = []
        self.pieces: list[Piece | ChoicePiece] = []
        self.measures: list[Measure] = []
        self.tallies: list[Tally] = []
        self.outputs: list[Output] = []
        self.events: list[Event] = []
        self.threshold: Threshold | None = None

    def add(self, group: Sequence[Aggregate], target: Target, *, thresholded: bool) -> None:
        """Plan the aggregates that share ``target``: sums get noise together, each choice is drawn by itself.

        Privacy: choices and parts of sums have equal shares of eps (or rho), which compose by addition: of p parts
        and c choices the sums together have p/(p + c) of it, and each choice 1/(p + c).
        """
        choices = [a for a in group if a.chosen]
        sums = [a for a in group if not a.chosen]
        parts = len(self._lay_out(sums, thresholded)) if choices else 1
        total = parts + len(choices)

        def share(part: int) -> Target:
            eps, rho = (None if x is None else x * part / total for x in (target.eps, target.rho))
            return Target(eps, target.delta, rho)

        first = len(self.parts)
        if parts:
            self.add_sums(sums, share(parts) if choices else target, thresholded=thresholded)
        for a in choices:
            self.add_choice(a, share(1))
        if choices:
            self.parts[first:] = [replace(p, fused=total) for p in self.parts[first:]]

    def add_choice(self, a: Aggregate, target: Target) -> None:
        """Calibrate the mechanism that chooses the answer of ``a``, and append its piece, part, outputs and cost.

        Privacy: what is compared (the rows in a candidate's bin, or its sum) moves by as much as the rows of one
        unit that count in one group: R of them (``Reach.rows``), each by 1 or by the span of the bounds; twice that
        under replace_one where it matters, which each chooser's own argument says. Every group is chosen for by
        itself, so a unit in L0 groups (``Reach.groups``) meets L0 choices, and each gets eps/L0; groups nobody
        listed are compared by the same bins, and their keys are paid for by the threshold of the sums. The
        chooser's event is what all of this costs; nothing else of the target is spent.
        """
        alone = all(x.chosen for x in self.request.aggregates)
        reach = Reach(self.policy.replace, self.several, self.rows, self.groups)
        selection = a.selection(
            self.types,
            reach,
            target,
            self.request.mechanism,
            fold=self.fold,
            pure=self.request.pure,
            alone=alone,
        )
        chooser, part = selection.chooser, len(self.parts)
        tally = 0 if selection.tally is None else self._tally(selection.tally)
        sums = tuple((coordinate, self._measure(measure)) for coordinate, measure in selection.sums)
        moved, layout = chooser.sensitivity, selection.layout(len(self.pieces))
        self.parts.append(Part(layout, a.column, moved, moved**2, chooser.mechanism, 1, chooser.event))
        self.pieces.append(ChoicePiece(tally, chooser, part, sums))
        self.outputs += [Output(n, a, answer, part) for n, answer in zip(a.names, a.answers([layout]))]
        self.events.append(chooser.event)

    def add_sums(self, group: Sequence[Aggregate], target: Target, *, thresholded: bool) -> None:
        """Size the noise of all sums of ``group``, and append their pieces, parts, outputs and cost.

        Parameters
        ----------
        group : aggregates that share the target
        target : Target
            What all of them together may cost.
        thresholded : bool
            Whether groups are found, and this call's noise decides which of them are released.

        Privacy.

        *What moves.* The aggregates are laid out as families, one part each (:func:`dpframe.layout.families.lay_out`):
        everything asked of one column within one pair of bounds is read from the same noisy integers, which costs
        nothing more (post-processing). A part's ``move`` says how far one protected unit moves it, in steps: R rows in
        each of L0 groups under add_remove (a row unit: 1 and 1, whatever the number of groups, which are disjoint);
        under replace_one the old rows go and the new ones come, in place or into other groups, so up to twice as
        far, and never 0 (:mod:`dpframe.layout.sensitivity`). R, L0 are enforced by the engine inside the release.

        *How eps is split.* Divided by its own L1 (its L2), each of p parts moves by 1, the p of them together by p
        (by sqrt(p)). So the noise of every part is calibrated to the whole target at p times its L1 (sqrt(p) times its
        L2): with Laplace noise each part has eps/p. That holds for vectors by theorem for the laws that
        ``mechanisms.auto`` counts among VECTOR_LAWS. Any other law covers one coordinate: then ``moving``
        coordinates (all that one unit can move, over its groups) get target/moving each, and all of them are charged.

        *What a draw covers.* Every coordinate of every group, empty ones too, has a draw of its own; a part's noise
        covers the move of all its coordinates in all groups together.

        *What is charged.* The worst event of the parts' noises: each of them claims it for the whole vector. Where
        groups are found, noise with delta may use half of it, and the threshold costs the rest (:meth:`_threshold`).
        """
        laid = self._lay_out(group, thresholded)
        layouts = [layout for layout, _, _ in laid]
        replacing, grouped, rows = self.policy.replace, self.several, self.rows
        sensitivities = tuple(
            x.move.sensitivity(replace=replacing, grouped=grouped, rows=rows, groups=self.groups)
            for x in layouts
        )
        furthest = tuple(x.move.furthest(replace=replacing, rows=rows) for x in layouts)
        moving = self.groups * sum(x.moving(replace=replacing, grouped=grouped, rows=rows) for x in layouts)
        for_noise = replace(target, delta=target.delta / 2) if thresholded else target
        if target.rho is not None:
            for_noise = replace(target, delta=Fraction(0))
        law = self.request.auto if self.request.mechanism == "auto" else self.request.mechanism
        asked = Asked(sensitivities, furthest, moving, for_noise, thresholded)
        choice = choose(law, asked, self.request.loss)
        event = worst([n.event for n in choice.noises])
        first = len(self.parts)
        numbers: dict[Family, int] = {}
        for (layout, measure, family), (l1, l2sq), noise in zip(laid, sensitivities, choice.noises):
            part = numbers[family] = len(self.parts)
            label = family.columns[0] if len(family.columns) == 1 else family.label
            self.parts.append(
                Part(layout, label or None, l1, l2sq, choice.mechanism, len(laid), event, choice.runner_up)
            )
            self.pieces += [Piece(c, measure, noise, part) for c in layout.coordinates]
        laws: list[Any] = [p.noise for p in self.pieces]
        for a in group:
            if not self._counts_rows(a):
                where = [numbers[_joined(f, numbers)] for f in a.families(self.types)]
                answers = [x.calibrated(laws) for x in a.answers([self.parts[i].layout for i in where])]
                part_of = [self.pieces[x.coordinates()[0]].part for x in answers]
                self.outputs += [Output(n, a, x, i) for n, x, i in zip(a.names, answers, part_of)]
        self._count_rows(group, layouts, first)
        if thresholded:
            event = self._threshold(group, layouts, event, target.delta)
        self.events.append(event)

    def select_keys(self, target: Target) -> KeySelection:
        """How keys alone are released; charged as an (eps, delta) event.

        Privacy: a unit is in L0 groups, each of which has eps/L0 and its share of delta; under replace_one both the old
        and the new keys of a unit may betray it: 2*L0 keys.
        """
        if target.eps is None or not target.delta:
            raise InputError(
                "keys() needs ", Arg("eps"), " and ", Arg("delta"), ".", hint=Call("keys", eps=1, delta=1e-6)
            )
        many = self.groups * (2 if self.policy.replace else 1)
        self.events.append(Event(target.eps, target.delta, pure_rho(target.eps)))
        return KeySelection(target.eps / many, per_key_delta(target.delta, many))

    def _threshold(
        self, group: Sequence[Aggregate], laid: list[Layout], event: Event, delta: Fraction
    ) -> Event:
        """Threshold the first layout that counts, and add what the keys cost.

        Privacy: a law without delta leaves all of delta to the keys, another half of it.
        """
        keys_delta = delta - event.delta
        rows = any(self._counts_rows(a) for a in group)
        if self.by_units:
            layout = next(x for x in laid if x.kind == "units")
            terms, most, counted = layout.rows, 1, self.policy.unit_name
        else:
            holders = [x for x in laid if self._holds_rows(x)]
            layout = min(holders, key=lambda x: len(x.coordinates)) if rows else holders[0]
            terms = layout.rows if rows else layout.present
            units = any(self._counts_rows(a) and not a.counts_rows for a in group)
            most, counted = self.rows * layout.row, self.policy.unit_name if units else "row"
        where = tuple(i for i, _ in terms)
        noise: Any = self.pieces[where[0]].noise
        least = least_threshold(noise, len(where), most, per_key_delta(keys_delta, self.groups))
        self.threshold = Threshold(where, least, layout.row, counted, keys_delta)
        return compose((event, Event(Fraction(0), keys_delta, Fraction(0), kind="keys")))

    def _counts_rows(self, a: Aggregate) -> bool:
        """Whether any layout that holds the number of rows answers it.

        Privacy: where one row of a unit counts in a group, rows and units are the same number, and one noise is
        enough for both; the engine keeps that one row.
        """
        return a.counts_rows or (self.rows_are_units and a.families(self.types) == (UNITS,))

    def _holds_rows(self, layout: Layout) -> bool:
        return layout.kind in COUNTING or (self.rows_are_units and layout.kind == "units")

    def _count_rows(self, group: Sequence[Aggregate], laid: list[Layout], first: int) -> None:
        """count(): the mean of all layouts that hold the number of rows, weighted by 1/(number of noises)."""
        counts = [a for a in group if self._counts_rows(a)]
        if not counts:
            return
        holders = [(first + i, x) for i, x in enumerate(laid) if self._holds_rows(x)]
        total = sum(Fraction(1, len(x.coordinates)) for _, x in holders)
        terms = tuple((i, c / len(x.coordinates) / total) for _, x in holders for i, c in x.rows)
        answer = Linear(terms, integer=True)
        self.outputs += [Output(a.names[0], a, answer, holders[0][0]) for a in counts]

    def _lay_out(self, group: Sequence[Aggregate], thresholded: bool) -> list[tuple[Layout, int, Family]]:
        """Decide the layout of every family, and number its coordinates."""
        families: dict[Family, list[str]] = {}
        counts = [a for a in group if self._counts_rows(a)]
        asked = [(f, a.form) for a in group if not self._counts_rows(a) for f in a.families(self.types)]
        for family, form in asked:
            if not _presence(family):
                families.setdefault(family, []).append(form)
        for family, _ in asked:
            if _presence(family):
                families.setdefault(_joined(family, families), []).append("present")
        rows = bool(counts)
        counting = rows or (thresholded and not self.by_units)
        forms = {f: widest(x) for f, x in families.items() if f.kind == "column"}
        if counting and forms and all(x in ("sum", "centred") for x in forms.values()):
            # No family holds a count yet. Widening one to a block is cheaper than a piece more.
            forms[min(forms, key=_widening_loss)] = "block"
        if counting and not forms:
            families[ROWS if all(a.counts_rows for a in counts) else UNITS] = []
        if thresholded and self.by_units:
            families.setdefault(UNITS, [])
        start, laid = len(self.pieces), []
        for family in families:
            if family.tally is not None:
                layout = bins_layout(start, family.dims)
                if family.kind == "distinct":
                    layout = distinct_layout(start, once=self.policy.unit == family.columns)
                laid.append((layout, self._tally(family.tally), family))
                start += 1
                continue
            missing_cell = rows and family.kind == "column" and self.types[family.columns[0]].nullable
            layout, measure = lay_out(
                family,
                start,
                self.types,
                form=forms.get(family, ""),
                missing_cell=missing_cell,
                fold=self.fold,
            )
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
