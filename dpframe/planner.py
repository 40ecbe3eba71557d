"""Making plans: which integers get noise, and how much, from parameters, schema and policy. No data."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.answers import Linear
from dpframe.budget import Event, compose
from dpframe.calibrate import Asked, choose, worst
from dpframe.errors import InputError, did_you_mean
from dpframe.keys import KeyTable, key_table
from dpframe.layout import (
    Layout,
    block_layout,
    centred_layout,
    make_grid,
    make_measure,
    present_layout,
    rows_layout,
    sum_layout,
    units_layout,
)
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.laplace import pure_rho
from dpframe.plan import Output, Part, Piece, Plan, Policy, Request
from dpframe.schema import MEASURABLE, Bounding, Column, Measure
from dpframe.stats import Aggregate, Count
from dpframe.units import make_bounding
from dpframe.unknown import KeySelection, Threshold, least_threshold, per_key_delta


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
    names = _output_names(request)
    types: dict[Hashable, Column] = {}

    def column(name: Hashable) -> Column:
        if name not in types:
            types[name] = source.column(name)
        return types[name]

    by, keys = _groups(request, column)
    for a in request.aggregates:
        if a.column is not None or a.bounded:
            _check_measure(a, column(a.column))
    whole = bool(request.aggregates)
    bounding = make_bounding(request.limits, policy, column, grouped=bool(by), keys=keys, rows_matter=whole)
    unknown = bool(by) and keys is None
    state = _State(policy, bounding, bool(by) and (keys is None or keys.size > 1), request.limits.threshold)
    for group, target in _split(request, names, unknown):
        state.add(group, target, request, types, thresholded=unknown and not state.events)
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
        request.scalar,
    )


def _output_names(request: Request) -> list[str]:
    names: list[str] = []
    taken = {str(b) for b in request.by or ()}
    for a in request.aggregates:
        name = a.name or a.default_name
        if name in taken:
            what = "a grouping column" if request.by and name in map(str, request.by) else "another output"
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


def _check_measure(a: Aggregate, column: Column) -> None:
    if not a.bounded:
        return
    if column.kind not in MEASURABLE:
        fix = {
            "string": f"cast {column.name!r} to a number first",
            "object": f"if it holds numbers, give it a dtype first, e.g. df[{column.name!r}].astype(float)",
            "duration": "turn it into a number of a unit you name, e.g. seconds",
            "datetime": "turn it into a number of a unit you name, e.g. days since a date",
            "date": "turn it into a number of a unit you name, e.g. days since a date",
        }.get(column.kind, "measure a numeric or Boolean column")
        raise InputError(f"{a.verb}({column.name!r}): the column is {column.text}, not numbers. Hint: {fix}")
    if a.bounds is None and column.kind != "bool":
        raise InputError(
            f"{a.verb}({column.name!r}) needs bounds: they decide how far one row can move the answer, and must"
            f" come from knowledge, not from the frame. Hint: df.dp.{a.verb}({column.name!r}, bounds=(0, 100),"
            " eps=0.5)"
        )


def _split(
    request: Request, names: list[str], unknown: bool
) -> list[tuple[list[tuple[str, Aggregate]], Target]]:
    """Aggregates that share a target, and those with an epsilon of their own.

    They share delta equally; with unknown keys the first has it all, for the threshold.
    """
    shared = [(n, a) for n, a in zip(names, request.aggregates) if a.eps is None]
    own = [
        ([(n, a)], Target(a.eps, request.target.delta))
        for n, a in zip(names, request.aggregates)
        if a.eps is not None
    ]
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
        self.pieces: list[Piece] = []
        self.measures: list[Measure] = []
        self.outputs: list[Output] = []
        self.events: list[Event] = []
        self.threshold: Threshold | None = None

    def add(
        self,
        group: Sequence[tuple[str, Aggregate]],
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
        moving = sum(len(layout.coordinates) for layout, _, _ in laid) * self.groups
        moving *= 2 if replacing and self.several else 1  # a row that moves changes two groups
        for_noise = replace(target, delta=target.delta / 2) if thresholded else target
        if target.rho is not None:
            for_noise = replace(target, delta=Fraction(0))
        asked_noise = Asked(tuple(sensitivities), tuple(furthest), moving, for_noise, thresholded)
        choice = choose(request.mechanism, asked_noise, request.loss)
        event = worst([n.event for n in choice.noises])
        first = len(self.parts)
        for (layout, measure, asked), (l1, l2sq), noise in zip(laid, sensitivities, choice.noises):
            column = asked[0][1].column if asked else None
            self.parts.append(
                Part(layout, column, l1, l2sq, choice.mechanism, len(laid), event, choice.runner_up)
            )
            part = len(self.parts) - 1
            self.pieces += [Piece(c, measure, noise, part) for c in layout.coordinates]
            self.outputs += [Output(n, a, a.answer(layout), part) for n, a in asked]
        layouts = [layout for layout, _, _ in laid]
        self._count_rows(group, layouts, first)
        if thresholded:
            event = self._threshold(group, layouts, event, target.delta)
        self.events.append(event)

    def _threshold(
        self, group: Sequence[tuple[str, Aggregate]], laid: list[Layout], event: Event, delta: Fraction
    ) -> Event:
        """Threshold the first layout that counts, and add what the keys cost.

        Privacy: a law without delta leaves all of delta to the keys, another half of it.
        """
        keys_delta = delta - event.delta
        rows = any(_counts_rows(a) for _, a in group)
        if self.by_units:
            layout = next(x for x in laid if x.kind == "units")
            terms, most, counted = layout.rows, 1, self.policy.unit_name
        else:
            kinds = ("rows", "block", "present")
            holders = [x for x in laid if x.kind in kinds]
            layout = min(holders, key=lambda x: len(x.coordinates)) if rows else holders[0]
            terms = layout.rows if rows else layout.present
            most, counted = self.rows * layout.grid.count, "row"
        where = tuple(i for i, _ in terms)
        noise = self.pieces[where[0]].noise
        least = least_threshold(noise, len(where), most, per_key_delta(keys_delta, self.groups))
        self.threshold = Threshold(where, least, layout.grid.count, counted, keys_delta)
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

    def _count_rows(self, group: Sequence[tuple[str, Aggregate]], laid: list[Layout], first: int) -> None:
        """count(): the mean of all layouts that hold the number of rows, weighted by 1/(number of noises)."""
        if not any(_counts_rows(a) for _, a in group):
            return
        holders = [(first + i, x) for i, x in enumerate(laid) if x.kind in ("rows", "block", "present")]
        total = sum(Fraction(1, len(x.coordinates)) for _, x in holders)
        terms = tuple((i, c / len(x.coordinates) / total) for _, x in holders for i, c in x.rows)
        for n, a in group:
            if _counts_rows(a):
                self.outputs.append(Output(n, a, Linear(terms, integer=True), holders[0][0]))

    def _lay_out(
        self, group: Sequence[tuple[str, Aggregate]], types: Mapping[Hashable, Column], thresholded: bool
    ) -> list[tuple[Layout, int, list[tuple[str, Aggregate]]]]:
        """Decide the layout of every family (column, bounds), and number its coordinates."""
        families: dict[Any, list[tuple[str, Aggregate]]] = {}
        for name, a in group:
            if a.bounded:
                bounds = a.bounds or (Fraction(0), Fraction(1))
                families.setdefault((a.column, bounds), []).append((name, replace(a, bounds=bounds)))
        for name, a in group:
            if not a.bounded and a.column is not None:
                joined = next((k for k in families if k[0] == a.column), (a.column, None))
                families.setdefault(joined, []).append((name, a))
        rows = any(_counts_rows(a) for _, a in group)
        blocks = {
            k
            for k, asked in families.items()
            if k[1] is not None and not (len(asked) == 1 and asked[0][1].alone)
        }
        counting = rows or (thresholded and not self.by_units)
        if counting and not blocks and not any(b is None for _, b in families):
            # No family holds a count yet. Widening one to a block is cheaper than a piece more.
            blocks |= set(sorted(families, key=_widening_loss)[:1])
        start, laid = len(self.pieces), []
        for key, asked in families.items():
            name, bounds = key
            column = types[name]
            missing_cell = rows and column.nullable
            if bounds is None:
                layout, measure = present_layout(start, missing_cell=missing_cell), Measure(name)
            else:
                block = key in blocks
                sum_alone = not block and asked[0][1].verb == "clip_sum"
                fold = self.rows * self.groups if self.bounding else None
                grid = make_grid(column, *bounds, sum_alone=sum_alone, fold=fold)
                measure = make_measure(name, bounds, grid)
                if block:
                    layout = block_layout(start, grid, missing_cell=missing_cell)
                else:
                    layout = (sum_layout if sum_alone else centred_layout)(start, grid)
            laid.append((layout, self._measure(measure), asked))
            start += len(layout.coordinates)
        if rows and not any(x.kind in ("block", "present") for x, _, _ in laid):
            laid.append((rows_layout(start), -1, []))
            start += 1
        if thresholded and self.by_units:
            laid.append((units_layout(start), -1, []))
        return laid

    def _measure(self, m: Measure) -> int:
        if m not in self.measures:
            self.measures.append(m)
        return self.measures.index(m)


def _counts_rows(a: Aggregate) -> bool:
    return isinstance(a, Count) and a.column is None


def _widening_loss(key: Any) -> float:
    low, high = (float(x) for x in key[1])
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
