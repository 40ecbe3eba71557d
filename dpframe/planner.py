"""Making plans: which integers get noise, and how much, from parameters, schema and policy. No data."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.answers import Linear
from dpframe.bins import Distinct, Tally
from dpframe.budget import Event, compose
from dpframe.calibrate import Asked, choose, worst
from dpframe.choosing import Choosing, Counted, mechanism_for
from dpframe.errors import InputError, did_you_mean
from dpframe.families import ROWS, UNITS, Family, lay_out, widest
from dpframe.index import Index
from dpframe.keys import KeyTable, key_table
from dpframe.layout import Layout, bins_layout, distinct_layout
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.choosers import Chooser, Reach
from dpframe.mechanisms.laplace import pure_rho
from dpframe.plan import BestPiece, ChoicePiece, Output, Part, Piece, Plan, Policy, Request
from dpframe.schema import MEASURABLE, Bounding, Column, Measure, require
from dpframe.scores import Scored
from dpframe.stats import Aggregate, Count
from dpframe.units import make_bounding
from dpframe.unknown import KeySelection, Threshold, least_threshold, per_key_delta

COUNTING = ("rows", "block", "present")  # layouts that hold a number of rows


def make_plan(request: Request, source: Any, policy: Policy) -> Plan:
    """Plan a request on a frame's schema under a policy.

    Raises
    ------
    InputError, MechanismError
        Before anything is spent, from parameters and schema alone.

    Privacy: within a group of aggregates that share a target, every part is divided by its own
    sensitivity, so p parts have L1 = p and L2 = sqrt(p); each part's noise is therefore calibrated at
    p times its L1 (sqrt(p) times its L2). Parts with epsilons of their own compose by addition.
    """
    types: dict[Hashable, Column] = {}

    def column(name: Hashable) -> Column:
        if name not in types:
            types[name] = source.column(name)
        return types[name]

    by, keys = _groups(request, column)
    asked = replace(request, keys=keys)
    resolved = [a.resolved(column) for a in request.aggregates]
    request = replace(request, aggregates=tuple(a.alone() if request.scalar else a for a in resolved))
    names = _output_names(request)
    for a in request.aggregates:
        for c in a.columns:
            column(c)
        for c, bounds in a.measured:
            _check_measure(a, column(c), bounds)
        for c in a.numeric:
            _check_number(a, column(c))
    units_only = all(a.families(types) == (UNITS,) for a in request.aggregates)
    if (
        request.aggregates
        and policy.unit is None
        and any(UNITS in a.families(types) for a in request.aggregates)
    ):
        raise InputError(
            "count_units() counts units, and this session protects single rows: a row is the unit. Hint: count(),"
            " or dp.Session(eps=1, unit='user_id')"
        )
    bounding = make_bounding(
        request.limits, policy, column, grouped=bool(by), keys=keys, rows_matter=not units_only
    )
    if bounding is not None:
        require(source, "units", "A session with a unit")
    unknown = bool(by) and keys is None
    state = _State(policy, bounding, bool(by) and (keys is None or keys.size > 1), request.limits.threshold)
    for group, target in _split(request, unknown):
        state.answer(group, target, request, types, thresholded=unknown and not state.events)
    if any(isinstance(t.how, Distinct) for t in state.tallies):
        require(source, "distinct", "n_unique")
    index = _index(request, state, types)
    selection = None
    if not request.aggregates:
        selection = KeySelection(*state.select_keys(request.target))
    order = {name: i for i, name in enumerate(names)}
    outputs = tuple(sorted(state.outputs, key=lambda o: order[o.name]))
    return Plan(
        outputs,
        tuple(state.pieces),
        tuple(state.parts),
        tuple(state.measures),
        tuple(state.tallies),
        by,
        keys,
        bounding,
        state.threshold,
        selection,
        Event(Fraction(0), Fraction(0), Fraction(0))
        if keys and not keys.size
        else compose(tuple(state.events)),
        policy,
        tuple(types.values()),
        request.target,
        request.scalar and index is None and (len(outputs) == 1 or request.aggregates[0].pair),
        index,
        request.top,
        asked,
    )


def _index(request: Request, state: _State, types: Mapping[Hashable, Column]) -> Index | None:
    """The rows that the answer has in every group, if it is a table in itself."""
    for o in state.outputs:
        start = o.answer.coordinates()[0]
        index = None
        if o.question.column is not None:
            index = o.question.table(start, types[o.question.column])
        if index is not None:
            if len(request.aggregates) > 1:
                verb, column = o.question.verb, o.question.column
                raise InputError(
                    f"{verb}({column!r}) has several rows of its own and can't stand beside other answers. Hint: ask it"
                    f" alone: df.dp.{verb}({column!r}, ...), or df.dp.groupby(...).{verb}({column!r}, ...)"
                )
            return index
    return None


def _output_names(request: Request) -> list[str]:
    names: list[str] = []
    taken = {str(b) for b in request.by or ()}
    for a in request.aggregates:
        for name in a.names:
            if name in taken:
                what = (
                    "a grouping column" if request.by and name in map(str, request.by) else "another output"
                )
                raise InputError(
                    f"The output {name!r} has the name of {what}. Hint: {name}_2=... or .alias('...')"
                )
            taken.add(name)
            names.append(name)
    for name in names if request.margins else ():
        if f"{name}_moe" in taken:
            raise InputError(
                f"ci= adds a column '{name}_moe', and there is one already. Hint: rename that one"
            )
    return names


def _groups(request: Request, column: Any) -> tuple[tuple[Column, ...], KeyTable | None]:
    """The grouping columns, and the listed keys (None for keys that are found, at the price of delta)."""
    if request.by is None:
        return (), None
    if not request.by:
        raise InputError("groupby needs at least one column. Hint: df.dp.groupby('city', keys=[...])")
    if len(set(request.by)) < len(request.by):
        raise InputError(
            f"groupby lists a column twice: {', '.join(map(repr, request.by))}. Hint: name each once"
        )
    by = tuple(column(b) for b in request.by)
    if request.keys is not None:
        return by, key_table(request.by, by, request.keys)
    for c in by:
        inner = c.native if c.kind == "categorical" else c
        if inner.kind in ("other", "time"):
            raise InputError(
                f"{c.name!r} is {c.text}, which can't be a grouping column. Hint: make a text column of it"
            )
        if inner.kind == "interval":
            raise InputError(
                f"{c.name!r} has intervals, whose edges may come from the data, and released keys would show them."
                " Hint: keys=list(pd.IntervalIndex.from_breaks([0, 18, 65])) with the edges that you typed"
            )
    if not request.target.delta and not request.aggregates:
        raise InputError("keys() needs eps= and delta=. Hint: .keys(eps=1, delta=1e-6)")
    if not request.target.delta:
        first = request.by[0]
        raise InputError(
            f"groupby({', '.join(map(repr, request.by))}) needs keys= or delta=: which groups occur is private."
            f" Hint: df.dp.groupby({first!r}, keys=[...]) with all values that {first!r} could have, whether they"
            " occur or not; or .dp_agg(..., eps=0.5, delta=1e-7) in a session with delta, such as"
            " dp.Session(eps=1, delta=1e-6), and groups with enough rows are found and released."
        )
    return by, None


def _check_number(a: Aggregate, column: Column) -> None:
    if column.kind not in MEASURABLE:
        fix = {
            "string": f"cast {column.name!r} to a number first",
            "object": f"if it holds numbers, give it a dtype first, e.g. df[{column.name!r}].astype(float)",
            "duration": "turn it into a number of a unit you name, e.g. seconds",
            "datetime": "turn it into a number of a unit you name, e.g. days since a date",
            "date": "turn it into a number of a unit you name, e.g. days since a date",
        }.get(column.kind, "measure a numeric or Boolean column")
        raise InputError(f"{a.verb}({column.name!r}): the column is {column.text}, not numbers. Hint: {fix}")


def _check_measure(a: Aggregate, column: Column, bounds: Any) -> None:
    _check_number(a, column)
    if bounds is None and column.kind != "bool":
        asked = repr(column.name) if len(a.measured) == 1 else repr([c for c, _ in a.measured])
        raise InputError(
            f"{a.verb}({asked}) needs bounds: they decide how far one row can move the answer, and must"
            f" come from knowledge, not from the frame. Hint: df.dp.{a.verb}({asked}, bounds=(0, 100),"
            " eps=0.5)"
        )


def _split(request: Request, unknown: bool) -> list[tuple[list[Aggregate], Target]]:
    """Aggregates that share a target, and those with an epsilon of their own.

    They share delta equally; with unknown keys the first has it all, for the threshold.
    """
    shared = [a for a in request.aggregates if a.eps is None]
    own = [([a], Target(a.eps, request.target.delta)) for a in request.aggregates if a.eps is not None]
    if own and request.target.rho is not None:
        raise InputError(
            "An aggregate's own eps= does not go with rho= for the call. Hint: use eps= for both."
        )
    groups = ([(shared, request.target)] if shared else []) + own
    if len(groups) > 1 and request.target.delta:
        shares = [request.target.delta / len(groups)] * len(groups)
        if unknown:
            shares = [request.target.delta, *[Fraction(0)] * (len(groups) - 1)]
        groups = [(g, replace(t, delta=d)) for (g, t), d in zip(groups, shares)]
    for _, t in groups:
        if t.eps is None and t.rho is None:
            raise InputError(
                "Some aggregates have no eps. Hint: give eps= for the call, or for each aggregate."
            )
    return groups


class _State:
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


def solve_error(request: Request, source: Any, policy: Policy, error: float, rows: float | None) -> Plan:
    """The plan with the least eps (three significant digits) whose 95 % half-width is at most ``error``."""

    def plan_at(eps: Fraction) -> Plan:
        return make_plan(replace(request, target=Target(eps, request.target.delta)), source, policy)

    def meets(eps: Fraction) -> bool:
        errors = plan_at(eps).error(rows)
        values = list(errors.values()) if isinstance(errors, dict) else [errors]
        if any(v is None for v in values):
            raise InputError(
                "error= depends on how many rows there are: give a public guess as rows=, for planning only."
                " Hint: error=500, rows=10_000"
            )
        return bool(max(values) <= error)

    return plan_at(least_meeting(meets, f"error={error}"))


def least_meeting(meets: Callable[[Fraction], bool], what: str) -> Fraction:
    """The least amount with three significant digits for which ``meets`` holds (it is monotone)."""
    exponent = 0
    while not meets(Fraction(10) ** exponent):
        exponent += 1
        if exponent > 9:
            raise InputError(f"{what} can't be met with any eps up to 10**9.")
    while exponent > -9 and meets(Fraction(10) ** (exponent - 1)):
        exponent -= 1
    low, high = 100, 1000  # times 10**(exponent - 3)
    unit = Fraction(10) ** (exponent - 3)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle * unit) else (middle, high)
    return high * unit


def own_epsilons(aggregates: Sequence[Aggregate], eps: Mapping[str, Any], read: Any) -> tuple[Aggregate, ...]:
    """Apply ``eps={"name": value, ...}``: an absolute epsilon for every output."""
    names = [a.name or a.default_name for a in aggregates]
    for key in eps:
        if key not in names:
            raise InputError(f"eps= names {key!r}, which is not an output. {did_you_mean(str(key), names)}")
    missing = [n for n in names if n not in eps]
    if missing:
        raise InputError(f"eps= lacks the output {missing[0]!r}. Hint: give every output its eps.")
    return tuple(replace(a, eps=read(eps[n], f"eps[{n!r}]")) for n, a in zip(names, aggregates))
