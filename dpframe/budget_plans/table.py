"""A budget plan's table, log and fingerprint, made from plans and releases. No data."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import polars as pl

from dpframe.budget_plans.query import Query
from dpframe.errors import MechanismError, show
from dpframe.mechanisms.registry import mechanism
from dpframe.planning.pieces import Output
from dpframe.planning.plan import Plan
from dpframe.release.release import Release

TABLE: dict[str, Any] = {
    "query": pl.String,
    "statistic": pl.String,
    "bounds": pl.String,
    "sensitivity": pl.Float64,
    "mechanism": pl.String,
    "scale": pl.Float64,
    "eps": pl.Float64,
    "delta": pl.Float64,
    "rho": pl.Float64,
    "expected_error": pl.Float64,
    "decided": pl.Boolean,
}
LOG: dict[str, Any] = {
    "query": pl.String,
    "time": pl.Datetime("us", "UTC"),
    "eps": pl.Float64,
    "delta": pl.Float64,
    "rho": pl.Float64,
    "left": pl.Float64,
    "wanted_error": pl.Float64,
    "margin": pl.Float64,
    "replayed": pl.Boolean,
}


def table_rows(name: str, plan: Plan, rows: Fraction | None, decided: bool) -> list[tuple[Any, ...]]:
    """The rows of ``BudgetPlan.table`` for one query; its cost stands in the first."""
    cost: tuple[Any, ...] = (
        None if plan.event.eps is None else float(plan.event.eps),
        float(plan.event.delta),
        float(plan.event.rho),
    )
    if not plan.outputs:
        return [(name, plan.describe(), None, None, plan.mechanism, None, *cost, None, decided)]
    out: list[tuple[Any, ...]] = []
    for o in plan.outputs:
        error = o.answer.error(plan.laws, None if rows is None else float(rows))
        out.append((name, *_asked(plan, o), *cost, error, decided))
        cost = (None, None, None)
    return out


def _asked(plan: Plan, o: Output) -> tuple[Any, ...]:
    law = plan.parts[o.part].mechanism
    l1, l2 = plan.sensitivity(o)
    bounds = o.question.bounds
    typed = None if bounds is None else f"({show(bounds[0])}, {show(bounds[1])})"
    return o.question.describe(), typed, l2 if _norm(law) == "L2" else l1, law, plan.noise_scale(o)


def _norm(law: str) -> str:
    try:
        return mechanism(law).norm
    except MechanismError:  # a choice among candidates, which is no law of the registry
        return "L1"


def log_row(name: str, release: Release, left: Fraction, wanted: Fraction | None) -> tuple[Any, ...]:
    """The row of ``BudgetPlan.log`` for one release."""
    cost, margin = release.cost, None
    if release.plan.scalar:
        low, high = (float(x) for x in release.interval(0.95))
        margin = max(high - float(release.value), float(release.value) - low)
    return (
        name,
        release.time,
        None if cost.eps is None else float(cost.eps),
        float(cost.delta),
        float(cost.rho or 0),
        float(left),
        None if wanted is None else float(wanted),
        margin,
        release.replayed,
    )


def decisive(name: str, q: Query, plan: Plan, amount: Fraction, decided: bool) -> dict[str, Any]:
    """What of a query decides its cost and its noise, as JSON holds it."""
    event = plan.event
    return {
        "name": name,
        "source": q.source,
        "asked": [repr(a.alias(a.name or a.default_name)) for a in q.statistics],
        "columns": [[repr(c.name), c.kind, c.text, c.nullable] for c in plan.columns],
        "by": [repr(c.name) for c in plan.by],
        "keys": None if plan.keys is None else _digest(plan.keys.rows()),
        "limits": repr(plan.bounding),
        "found": [repr(plan.threshold), repr(plan.selection)],
        "tallies": [[repr(t) for t in plan.tallies], repr(plan.top)],
        "options": {k: repr(v) for k, v in sorted(q.options.items())},
        "amount": exact_text(amount),
        "decided": decided,
        "rule": [exact_text(x) for x in (q.weight, q.error, q.rows, q.relative_to)],
        "event": [exact_text(x) for x in (event.eps, event.delta, event.rho, event.delta_alone)],
        "parts": [
            [p.mechanism, str(p.l1), str(p.l2_squared), p.fused, exact_text(p.layout.grid.step)]
            for p in plan.parts
        ],
        "scales": [repr(plan.noise_scale(o)) for o in plan.outputs],
    }


def exact_text(x: Fraction | str | None) -> str | None:
    """An exact number as text: ``"1/3"``."""
    return None if x is None else str(x)


def _digest(keys: Sequence[Any]) -> str:
    digest = hashlib.sha256()
    for k in keys:
        digest.update(f"{k!r}\n".encode("utf-8", "backslashreplace"))
    return digest.hexdigest()
