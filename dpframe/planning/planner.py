"""Making plans: which integers get noise, and how much, from parameters, schema and policy. No data."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpframe.accounting.events import Event, compose
from dpframe.accounting.policy import Policy
from dpframe.errors import InputError, did_you_mean
from dpframe.frames.bins import Distinct
from dpframe.frames.columns import MEASURABLE, Column
from dpframe.frames.contract import require
from dpframe.frames.keys import KeyTable, key_table
from dpframe.layout.families import UNITS
from dpframe.layout.tables import Index
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.thresholds import KeySelection
from dpframe.planning.assembly import Draft
from dpframe.planning.bounding import make_bounding
from dpframe.planning.plan import Plan, Request
from dpframe.statistics.base import Aggregate


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
    draft = Draft(policy, bounding, bool(by) and (keys is None or keys.size > 1), request.limits.threshold)
    for group, target in _split(request, unknown):
        draft.answer(group, target, request, types, thresholded=unknown and not draft.events)
    if any(isinstance(t.how, Distinct) for t in draft.tallies):
        require(source, "distinct", "n_unique")
    index = _index(request, draft, types)
    selection = None
    if not request.aggregates:
        selection = KeySelection(*draft.select_keys(request.target))
    order = {name: i for i, name in enumerate(names)}
    outputs = tuple(sorted(draft.outputs, key=lambda o: order[o.name]))
    return Plan(
        outputs,
        tuple(draft.pieces),
        tuple(draft.parts),
        tuple(draft.measures),
        tuple(draft.tallies),
        by,
        keys,
        bounding,
        draft.threshold,
        selection,
        Event(Fraction(0), Fraction(0), Fraction(0))
        if keys and not keys.size
        else compose(tuple(draft.events)),
        policy,
        tuple(types.values()),
        request.target,
        request.scalar and index is None and (len(outputs) == 1 or request.aggregates[0].pair),
        index,
        request.top,
        asked,
    )


def _index(request: Request, draft: Draft, types: Mapping[Hashable, Column]) -> Index | None:
    """The rows that the answer has in every group, if it is a table in itself."""
    for o in draft.outputs:
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
            "string": f"cast {column.name!r} to a number first; for a CSV in a release file, types = {{ {column.name} = 'float' }}",
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
            f" come from knowledge, not from the frame. Hint: df.dp.{a.describe()[:-1]}, bounds=(0, 100), eps=0.5)"
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
                f" Hint: error={error:g}, rows=10_000"
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
