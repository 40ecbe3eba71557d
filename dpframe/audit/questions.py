"""Every question that a frame of the corpus can be asked, as functions of a frame accessor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dpframe as dp
from dpframe.audit.neighbours import HIGH, KEYS, LOW

Ask = Callable[[Any], Any]
BOUNDS = (LOW, HIGH)

# Asked of a frame or of groups; ``eps`` is filled in.
VERBS: dict[str, Callable[[Any, Any], Any]] = {
    "count": lambda d, eps: d.count(eps=eps),
    "count x": lambda d, eps: d.count("x", eps=eps),
    "clip_sum": lambda d, eps: d.clip_sum("x", bounds=BOUNDS, eps=eps),
    "clip_mean": lambda d, eps: d.clip_mean("x", bounds=BOUNDS, eps=eps),
    "clip_mean n": lambda d, eps: d.clip_mean("x", bounds=BOUNDS, n=9, eps=eps),
    "clip_mean integer": lambda d, eps: d.clip_mean("i", bounds=(0, 6), eps=eps),
    "clip_mean Boolean": lambda d, eps: d.clip_mean("b", eps=eps),
    "clip_var": lambda d, eps: d.clip_var("x", bounds=BOUNDS, eps=eps),
    "clip_std": lambda d, eps: d.clip_std("x", bounds=BOUNDS, eps=eps),
    "clip_wmean": lambda d, eps: d.clip_wmean("x", weights="y", bounds=BOUNDS, weight_bounds=(0, 4), eps=eps),
    "clip_cov": lambda d, eps: d.clip_cov(["x", "y"], bounds=BOUNDS, eps=eps),
    "clip_corr": lambda d, eps: d.clip_corr(["x", "y"], bounds=BOUNDS, eps=eps),
    "vector_sum": lambda d, eps: d.vector_sum(["x", "y"], norm=5, ord=1, eps=eps),
    "vector_mean": lambda d, eps: d.vector_mean(["x", "y"], norm=5, eps=eps, delta=1e-6, mechanism="gaussian"),
    "histogram": lambda d, eps: d.histogram("x", edges=[-3, 0, 2.5, 10], eps=eps),
    "quantile": lambda d, eps: d.quantile("x", 0.5, candidates=[-3, 0, 2, 5, 10], eps=eps),
    "quantiles": lambda d, eps: d.quantile("x", [0.25, 0.5, 0.9], candidates=[-3, 0, 2, 5, 10], eps=eps),
    "iqr": lambda d, eps: d.iqr("x", bounds=BOUNDS, eps=eps),
    "n_unique": lambda d, eps: d.n_unique("i", eps=eps),
    "bounds": lambda d, eps: d.bounds("x", range=(-8, 64), eps=eps),
    "top_k": lambda d, eps: d.top_k("i", 1, candidates=[0, 3, 6, 9], eps=eps),
    "select": lambda d, eps: d.select(["x", "y"], bounds=BOUNDS, eps=eps),
    "agg": lambda d, eps: d.agg(
        n=dp.count(),
        c=dp.count("x"),
        s=dp.clip_sum("x", bounds=BOUNDS),
        m=dp.clip_mean("x", bounds=BOUNDS),
        other=dp.clip_sum("y", bounds=(1, 4)),
        eps=eps,
    ),
}  # fmt: skip
# Asked of a frame, and in groups as a count of the groups' values.
VALUES: dict[str, Callable[[Any, Any], Any]] = {
    "value_counts": lambda d, eps: d.value_counts("g", keys=KEYS, eps=eps),
}
ROWS_CHOSEN = ("top_k", "select")  # their answer is which rows there are: no numbers for a black box
OF_UNITS: dict[str, Callable[[Any, Any], Any]] = {"count_units": lambda d, eps: d.count_units(eps=eps)}
ROWS, PER_GROUP, GROUPS = 4, 3, 2  # limits of sessions with a unit
LIMITS = {"max_rows": ROWS, "max_rows_per_group": PER_GROUP, "max_groups": GROUPS}


def ungrouped(name: str, eps: Any = 1) -> Ask:
    """The question about the whole frame."""
    verb = {**VERBS, **OF_UNITS, **VALUES}[name]
    return lambda d: verb(d, eps)


def grouped(name: str, eps: Any = 1) -> Ask:
    """The question about the listed groups."""
    if name in VALUES:
        return lambda d: d.groupby("b", "g", keys={"b": [True, None], "g": KEYS}).count(eps=eps)
    verb = {**VERBS, **OF_UNITS}[name]
    return lambda d: verb(d.groupby("g", keys=KEYS), eps)


def asked_of(unit: str | None) -> list[str]:
    """Every question that a session of this unit can be asked."""
    return [*VERBS, *VALUES, *(OF_UNITS if unit else {})]


def session(relation: str, unit: str | None) -> dict[str, Any]:
    """What a session of the corpus is opened with."""
    return {"neighbors": relation, **({"unit": unit, **LIMITS} if unit else {})}


def delta(name: str) -> float:
    """What the question charges beside eps."""
    return 1e-6 if name == "vector_mean" else 0.0
