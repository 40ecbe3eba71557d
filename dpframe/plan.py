"""From a question to a plan: bounds -> grid, fusing, sensitivity, noise, forecast, cost. No data.

Everything that decides how much noise an answer gets happens here, from parameters, schema and
policy. A :class:`Plan` is frozen, hashable and printable, and holds nothing read from a cell.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.answers import Answer, Linear
from dpframe.budget import Cost, Event, compose
from dpframe.errors import InputError, MechanismError, did_you_mean, typed
from dpframe.keys import KeyTable, key_table
from dpframe.layout import (
    Coordinate,
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
from dpframe.mechanisms.base import Mechanism, Noise, Target, sqrt_up
from dpframe.mechanisms.laplace import pure_rho
from dpframe.mechanisms.registry import mechanism as find_mechanism
from dpframe.schema import MEASURABLE, Bounding, Column, Measure
from dpframe.stats import Aggregate, Count
from dpframe.unknown import KeySelection, Threshold, least_threshold, per_key_delta

AUTO = ("laplace", "gaussian")


@dataclass(frozen=True, slots=True)
class Policy:
    """Who is protected: the neighbouring relation and the unit (None: one row)."""

    neighbors: str = "add_remove"
    unit: tuple[str, ...] | None = None

    @property
    def replace(self) -> bool:
        return self.neighbors == "replace_one"

    @property
    def unit_name(self) -> str:
        return "row" if self.unit is None else " and ".join(self.unit)


@dataclass(frozen=True, slots=True)
class Charge:
    """What a session is asked to pay for. ``same`` is equal for repeats of one question; no data."""

    event: Event
    question: str
    mechanism: str
    policy: Policy
    same: Hashable


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
            v = getattr(self, k)
            if v is not None and (isinstance(v, bool) or not isinstance(v, int) or not 1 <= v <= 2**24):
                raise InputError(f"{k}={typed(v)} must be a whole number from 1 to 2**24. Hint: {k}=10")
        return self


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked, as the planner takes it."""

    aggregates: tuple[Aggregate, ...]
    target: Target
    mechanism: str = "auto"
    by: tuple[Hashable, ...] | None = None
    keys: Any = field(default=None, hash=False, compare=False, repr=False)
    scalar: bool = False
    limits: Limits = Limits()
    margins: bool = False


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


@dataclass(frozen=True, slots=True)
class Piece:
    """A released integer sum with its noise. ``measure`` is -1 for rows alone."""

    coordinate: Coordinate
    measure: int
    noise: Noise
    part: int


@dataclass(frozen=True, slots=True)
class Part:
    """The layout of one column with its sensitivity in steps and the share of the budget it was given."""

    layout: Layout
    column: Hashable | None
    l1: int
    l2_squared: int
    mechanism: str
    fused: int
    event: Event  # of all parts that share the noise's budget


@dataclass(frozen=True, slots=True)
class Plan:
    """A costed question. Frozen, hashable, without data.

    Attributes
    ----------
    outputs : tuple of Output
    pieces : tuple of Piece
        The integers that get noise, in order.
    parts : tuple of Part
    measures : tuple of Measure
        What the engine adds up.
    by : tuple of Column
        The grouping columns.
    keys : KeyTable or None
        The listed groups; None for one group, or for groups found by ``threshold`` or ``selection``.
    bounding : Bounding or None
        How much of a unit counts; None when a row is the unit.
    threshold, selection : Threshold, KeySelection or None
        Which found groups are released.
    event : Event
        What the release costs.
    policy : Policy
    columns : tuple of Column
        The types that the plan was made for.
    target : Target
        What was asked.
    scalar : bool
        Whether the answer is a number rather than a table.
    """

    outputs: tuple[Output, ...]
    pieces: tuple[Piece, ...]
    parts: tuple[Part, ...]
    measures: tuple[Measure, ...]
    by: tuple[Column, ...]
    keys: KeyTable | None
    bounding: Bounding | None
    threshold: Threshold | None
    selection: KeySelection | None
    event: Event
    policy: Policy
    columns: tuple[Column, ...]
    target: Target
    scalar: bool

    @property
    def charge(self) -> Charge:
        """What a session is asked to pay for."""
        mechanisms = ", ".join(dict.fromkeys(p.mechanism for p in self.parts)) or "truncated geometric"
        return Charge(self.event, self.describe(), mechanisms, self.policy, self)

    @property
    def grouped(self) -> bool:
        """Whether the answer has a row per group."""
        return bool(self.by)

    @property
    def cost(self) -> Cost:
        """What the release costs (exact)."""
        return self.event.cost

    @property
    def eps(self) -> float | None:
        """Epsilon of the release; None for a call with ``rho=``."""
        return None if self.event.eps is None else float(self.event.eps)

    @property
    def delta(self) -> float:
        """Delta that the release charges."""
        return float(self.event.delta)

    @property
    def rho(self) -> float:
        """The zCDP cost that the release charges beside (or instead of) eps."""
        return float(self.event.rho)

    @property
    def mechanism(self) -> Any:
        """The registry name of the mechanism; one per output when they differ."""
        if not self.outputs:
            return "truncated geometric"
        return self._per_output(lambda o: self.parts[o.part].mechanism)

    @property
    def l1(self) -> Any:
        """L1 sensitivity in the answer's unit (of a block: in rows); one per output when they differ."""
        return self._per_output(lambda o: self.sensitivity(o)[0])

    @property
    def l2(self) -> Any:
        """L2 sensitivity in the answer's unit (of a block: in rows); one per output when they differ."""
        return self._per_output(lambda o: self.sensitivity(o)[1])

    @property
    def scale(self) -> Any:
        """Noise scale in the unit of ``l1`` (b of Laplace, sigma of Gaussian); one per output when they differ."""
        return self._per_output(self.noise_scale)

    @property
    def laws(self) -> list[Noise]:
        """The noise of every piece, in order."""
        return [p.noise for p in self.pieces]

    def error(self, rows: float | None = None, level: float = 0.95) -> Any:
        """Half-width of the interval per output; None where it depends on ``rows`` and they are not given."""
        return self._per_output(lambda o: o.answer.error(self.laws, rows, level)) if self.outputs else None

    def output_unit(self, output: Output) -> Fraction:
        """What one step of the output's coordinates is worth: the answer's unit, or rows for cells."""
        layout = self.parts[output.part].layout
        if isinstance(output.answer, Linear) and len(output.answer.terms) == 1:
            return abs(output.answer.terms[0][1])
        return Fraction(1, layout.grid.count)

    def sensitivity(self, output: Output) -> tuple[float, float]:
        """(L1, L2) of an output, in its ``output_unit``."""
        part, unit = self.parts[output.part], self.output_unit(output)
        return float(part.l1 * unit), float(sqrt_up(Fraction(part.l2_squared)) * unit)

    def noise_scale(self, output: Output) -> float:
        """Noise scale of an output, in its ``output_unit``."""
        return float(self.pieces[output.answer.coordinates()[0]].noise.scale * self.output_unit(output))

    def describe(self) -> str:
        """The question, as one would type it."""
        asked = [o.question.describe() for o in self.outputs]
        if not self.grouped:
            return asked[0] if self.scalar else f"agg({', '.join(asked)})"
        names = ", ".join(repr(c.name) for c in self.by)
        return f"groupby({names})." + (f"dp_agg({', '.join(asked)})" if asked else "keys()")

    def _per_output(self, f: Any) -> Any:
        values = {o.name: f(o) for o in self.outputs}
        return next(iter(values.values())) if len(self.outputs) == 1 else values


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
        state.add(group, target, request.mechanism, types, thresholded=unknown and not state.events)
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
            " occur or not; or delta=1e-6 in the call, and only groups with enough rows are released."
        )
    return by, None


def _check_measure(a: Aggregate, column: Column) -> None:
    if not a.bounded:
        return
    if column.kind not in MEASURABLE:
        fix = {
            "string": f"cast {column.name!r} to a number first",
            "object": f"give it a dtype first, e.g. df[{column.name!r}].astype(float)",
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
        mechanism: str,
        types: Mapping[Hashable, Column],
        *,
        thresholded: bool,
    ) -> None:
        laid = self._lay_out(group, types, thresholded)
        sensitivities = [
            layout.move.sensitivity(
                replace=self.policy.replace, grouped=self.several, rows=self.rows, groups=self.groups
            )
            for layout, _, _ in laid
        ]
        moving = sum(len(layout.coordinates) for layout, _, _ in laid) * self.groups
        moving *= 2 if self.policy.replace else 1
        for_noise = replace(target, delta=target.delta / 2) if thresholded else target
        if target.rho is not None:
            for_noise = replace(target, delta=Fraction(0))
        name, noises = choose(mechanism, sensitivities, moving, for_noise)
        event = _worst([n.event for n in noises])
        first = len(self.parts)
        for (layout, measure, asked), (l1, l2sq), noise in zip(laid, sensitivities, noises):
            column = asked[0][1].column if asked else None
            self.parts.append(Part(layout, column, l1, l2sq, name, len(laid), event))
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
        alone = None if event.delta_alone is None else event.delta_alone + keys_delta
        return Event(event.eps, event.delta + keys_delta, event.rho, alone)

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


def make_bounding(
    limits: Limits,
    policy: Policy,
    column: Any,
    *,
    grouped: bool,
    keys: KeyTable | None,
    rows_matter: bool,
) -> Bounding | None:
    """How much of a unit counts, from what was typed.

    Privacy: the bounds multiply the sensitivity and are enforced in the engine, inside the release, after
    every transform the caller made.
    """
    typed = {k: getattr(limits.checked(), k) for k in ("max_groups", "max_rows_per_group", "max_rows")}
    if policy.unit is None:
        given = next((k for k, v in typed.items() if v is not None), None)
        if given is not None:
            raise InputError(
                f"{given}= bounds what one unit may contribute, and this session protects single rows. Hint:"
                " dp.Session(eps=1, unit='user_id')"
            )
        return None
    for u in policy.unit:
        c = column(u)
        inner = c.native if c.kind == "categorical" else c
        if inner.kind in ("other", "interval", "time"):
            raise InputError(f"The unit {u!r} is {c.text}, which does not identify anybody.")
    name = policy.unit_name
    if not grouped:
        if limits.max_rows is None:
            raise InputError(
                f"How many rows may one {name} count for? Hint: max_rows=10. A {name} with more rows is scaled"
                " down to 10; the noise grows with this number."
            )
        return Bounding(policy.unit, limits.max_rows, None)
    rows, groups = limits.max_rows_per_group if rows_matter else 1, limits.max_groups
    if rows is None:
        raise InputError(
            f"How many rows may one {name} count for in a group? Hint: max_rows_per_group=10. A {name} with more"
            " rows is scaled down to 10; the noise grows with this number."
        )
    if groups is None and (keys is None or keys.size > 1):
        ceiling = (
            ""
            if keys is None
            else (
                f" {keys.size} keys: max_groups={keys.size} drops nothing, noise × {keys.size}, or ×"
                f" {keys.size**0.5:.1f} with delta."
            )
        )
        raise InputError(f"In how many groups may one {name} count? Hint: max_groups=3.{ceiling}")
    groups = groups or 1
    return Bounding(policy.unit, rows, groups if keys is None else min(groups, max(1, keys.size)))


def _worst(events: Sequence[Event]) -> Event:
    """One event for a vector whose every noise claims one for all of it: the largest of each part."""
    eps = None if any(e.eps is None for e in events) else max(e.eps for e in events if e.eps is not None)
    alone = [e.delta_alone for e in events if e.delta_alone is not None]
    return Event(
        eps,
        max(e.delta for e in events),
        max(e.rho for e in events),
        max(alone) if len(alone) == len(events) else None,
    )


def _counts_rows(a: Aggregate) -> bool:
    return isinstance(a, Count) and a.column is None


def _widening_loss(key: Any) -> float:
    low, high = (float(x) for x in key[1])
    scale = max(abs(low), abs(high))
    return float(np.hypot(low / scale, high / scale))


def choose(
    name: str, sensitivities: Sequence[tuple[int, int]], moving: int, target: Target
) -> tuple[str, list[Noise]]:
    """Calibrate every part with one mechanism; ``auto`` takes the least RMSE.

    A law without delta is preferred unless another gains more than 2 %.
    """
    if name != "auto":
        return name, _calibrate(find_mechanism(name), sensitivities, moving, target)
    best: tuple[float, str, list[Noise]] | None = None
    for candidate in AUTO:
        if candidate == "gaussian" and target.rho is None and not target.delta:
            continue
        noises = _calibrate(find_mechanism(candidate), sensitivities, moving, target)
        loss = sum((n.std / float(l1)) ** 2 for n, (l1, _) in zip(noises, sensitivities)) ** 0.5
        if best is None or loss < best[0] * 0.98:
            best = (loss, candidate, noises)
    assert best is not None
    return best[1], best[2]


def _calibrate(
    mech: Mechanism, sensitivities: Sequence[tuple[int, int]], moving: int, target: Target
) -> list[Noise]:
    p = len(sensitivities)
    noises = []
    for l1, l2sq in sensitivities:
        size = Fraction(p * l1) if mech.norm == "L1" else sqrt_up(Fraction(p * l2sq))
        noise = mech.calibrate(size, moving, target)
        if not isinstance(noise, Noise):
            raise MechanismError(
                f"The mechanism {mech.name!r} returned a {type(noise).__name__}, not a Noise."
            )
        noises.append(noise)
    return noises


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

    exponent = 0
    while not meets(Fraction(10) ** exponent):
        exponent += 1
        if exponent > 9:
            raise InputError(f"error={error} can't be met with any eps up to 10**9.")
    while exponent > -9 and meets(Fraction(10) ** (exponent - 1)):
        exponent -= 1
    low, high = 100, 1000  # times 10**(exponent - 3)
    unit = Fraction(10) ** (exponent - 3)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle * unit) else (middle, high)
    return plan_at(high * unit)


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
