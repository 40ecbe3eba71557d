"""A budget plan's table and log, made from plans and releases. No data."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import polars as pl

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
        error = o.error(plan.laws, None if rows is None else float(rows))
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
    if release.plan.scalar and all(o.answer.ranged for o in release.plan.outputs):
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
