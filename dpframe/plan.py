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
from dpframe.errors import InputError, MechanismError, did_you_mean
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
)
from dpframe.mechanisms.base import Mechanism, Noise, Target, sqrt_up
from dpframe.mechanisms.registry import mechanism as find_mechanism
from dpframe.schema import MEASURABLE, Column, Measure
from dpframe.stats import Aggregate, Count

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
class Request:
    """What is asked, as the planner takes it. ``own`` holds the epsilons of single aggregates."""

    aggregates: tuple[Aggregate, ...]
    target: Target
    mechanism: str = "auto"
    by: tuple[Hashable, ...] | None = None
    keys: Any = field(default=None, hash=False, compare=False, repr=False)
    scalar: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the answer."""

    name: str
    question: Aggregate
    answer: Answer
    part: int

    @property
    def integer(self) -> bool:
        return self.answer.integer and (self.question.round is None or self.question.round <= 0)


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
    keys : KeyTable or None
        The listed groups; None for one group.
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
    keys: KeyTable | None
    event: Event
    policy: Policy
    columns: tuple[Column, ...]
    target: Target
    grouped: bool
    scalar: bool

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
        return [p.noise for p in self.pieces]

    def error(self, rows: float | None = None, level: float = 0.95) -> Any:
        """Half-width of the interval per output; None where it depends on ``rows`` and they are not given."""
        return self._per_output(lambda o: o.answer.error(self.laws, rows, level))

    def output_unit(self, output: Output) -> Fraction:
        """What one step of the output's coordinates is worth: the answer's unit, or rows for cells."""
        layout = self.parts[output.part].layout
        if isinstance(output.answer, Linear) and len(output.answer.terms) == 1:
            return abs(output.answer.terms[0][1])
        return Fraction(1, layout.grid.count)

    def sensitivity(self, output: Output) -> tuple[float, float]:
        part, unit = self.parts[output.part], self.output_unit(output)
        return float(part.l1 * unit), float(sqrt_up(Fraction(part.l2_squared)) * unit)

    def noise_scale(self, output: Output) -> float:
        return float(self.pieces[output.answer.coordinates()[0]].noise.scale * self.output_unit(output))

    def describe(self) -> str:
        """The question, as one would type it."""
        asked = [o.question.describe() for o in self.outputs]
        if not self.grouped:
            return asked[0] if len(asked) == 1 else f"agg({', '.join(asked)})"
        assert self.keys is not None
        names = ", ".join(repr(n) for n in self.keys.names)
        return f"groupby({names}).dp_agg({', '.join(asked)})"

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
    if policy.unit is not None:
        raise InputError("Units other than one row are not supported yet.")
    names = _output_names(request)
    types: dict[Hashable, Column] = {}

    def column(name: Hashable) -> Column:
        if name not in types:
            types[name] = source.column(name)
        return types[name]

    keys = None
    if request.by is not None:
        keys = _group_keys(request, column, names)
    for a in request.aggregates:
        if a.column is not None:
            _check_measure(a, column(a.column))
    state = _State(policy, keys is not None)
    for group, target in _split(request, names):
        state.add(group, target, request.mechanism, types)
    order = {name: i for i, name in enumerate(names)}
    outputs = tuple(sorted(state.outputs, key=lambda o: order[o.name]))
    return Plan(
        outputs,
        tuple(state.pieces),
        tuple(state.parts),
        tuple(state.measures),
        keys,
        compose(tuple(state.events)),
        policy,
        tuple(types.values()),
        request.target,
        keys is not None,
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
    return names


def _group_keys(request: Request, column: Any, names: list[str]) -> KeyTable:
    assert request.by is not None
    if not request.by:
        raise InputError("groupby needs at least one column. Hint: df.dp.groupby('city', keys=[...])")
    if len(set(request.by)) < len(request.by):
        raise InputError(f"groupby lists a column twice: {', '.join(map(repr, request.by))}.")
    types = tuple(column(b) for b in request.by)
    if request.keys is None:
        first = request.by[0]
        raise InputError(
            f"groupby({', '.join(map(repr, request.by))}) needs keys=: which groups occur is private, so the"
            f" groups to release are listed. Hint: df.dp.groupby({first!r}, keys=[...]) with all values that"
            f" {first!r} could have, whether they occur or not."
        )
    return key_table(request.by, types, request.keys)


def _check_measure(a: Aggregate, column: Column) -> None:
    if not a.bounded:
        return
    if column.kind not in MEASURABLE:
        fix = {
            "string": "cast it to a number first, e.g. df['x'].astype(float)",
            "object": "give it a dtype first, e.g. df['x'].astype(float)",
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


def _split(request: Request, names: list[str]) -> list[tuple[list[tuple[str, Aggregate]], Target]]:
    """Aggregates that share a target, and those with an epsilon of their own."""
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
        share = request.target.delta / len(groups)
        groups = [(g, replace(t, delta=share)) for g, t in groups]
    for _, t in groups:
        if t.eps is None and t.rho is None:
            raise InputError(
                "Some aggregates have no eps. Hint: give eps= for the call, or for each aggregate."
            )
    return groups


class _State:
    """A plan in the making: parts, pieces and outputs of one group of aggregates after another."""

    def __init__(self, policy: Policy, grouped: bool) -> None:
        self.policy, self.grouped = policy, grouped
        self.parts: list[Part] = []
        self.pieces: list[Piece] = []
        self.measures: list[Measure] = []
        self.outputs: list[Output] = []
        self.events: list[Event] = []

    def add(
        self,
        group: Sequence[tuple[str, Aggregate]],
        target: Target,
        mechanism: str,
        types: Mapping[Hashable, Column],
    ) -> None:
        laid = self._lay_out(group, types)
        sensitivities = [
            layout.move.sensitivity(replace=self.policy.replace, grouped=self.grouped)
            for layout, _, _ in laid
        ]
        moving = sum(len(layout.coordinates) for layout, _, _ in laid)
        if self.policy.replace:
            moving *= 2
        name, noises = choose(mechanism, sensitivities, moving, target)
        first = len(self.parts)
        for (layout, measure, asked), (l1, l2sq), noise in zip(laid, sensitivities, noises):
            column = asked[0][1].column if asked else None
            self.parts.append(Part(layout, column, l1, l2sq, name, len(laid)))
            part = len(self.parts) - 1
            self.pieces += [Piece(c, measure, noise, part) for c in layout.coordinates]
            self.outputs += [Output(n, a, a.answer(layout), part) for n, a in asked]
        self._count_rows(group, [layout for layout, _, _ in laid], first)
        self.events.append(noises[0].event)

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
        self, group: Sequence[tuple[str, Aggregate]], types: Mapping[Hashable, Column]
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
        if rows and not blocks and not any(b is None for _, b in families):
            # No family holds the number of rows yet. Widening one to a block is cheaper than a piece more.
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
                grid = make_grid(column, *bounds, sum_alone=sum_alone)
                measure = make_measure(name, bounds, grid)
                if block:
                    layout = block_layout(start, grid, missing_cell=missing_cell)
                else:
                    layout = (sum_layout if sum_alone else centred_layout)(start, grid)
            laid.append((layout, self._measure(measure), asked))
            start += len(layout.coordinates)
        if rows and not any(x.kind in ("block", "present") for x, _, _ in laid):
            laid.append((rows_layout(start), -1, []))
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
