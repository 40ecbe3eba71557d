"""Frames in which a unit has many rows, and the integers that reach the mechanism."""

from __future__ import annotations

import numpy as np
import polars as pl

import dpframe as dp
from conftest import as_kind, exact_integers
from dpframe.engine.opening import as_source

SCHEMA = {"u": pl.Int64, "x": pl.Float64, "g": pl.String, "keep": pl.Boolean}


def frame_of(kind, rows, schema=None):
    """Rows (unit, value, group, kept by the filter before .dp) as a frame of the caller's library."""
    frame = pl.DataFrame(rows, schema=schema or SCHEMA, orient="row")
    if "keep" in frame.columns:
        frame = frame.filter(pl.col("keep"))
    return as_kind(kind, frame)


def counts_at(frame, plan, salt):
    """The engine's exact integers for one salt."""
    return as_source(frame).aggregate(plan.ask(salt))


BOUNDS = {"sum 20 100": (20, 100), "sum -10 10": (-10, 10)}


def ask(verbs, question, eps=1):
    bounds = BOUNDS.get(question, (-3, 10))
    match question:
        case "count":
            return verbs.count(eps=eps)
        case "count x":
            return verbs.count("x", eps=eps)
        case "mean n":
            return verbs.clip_mean("x", bounds=bounds, n=100, eps=eps)
        case "block":
            return verbs.clip_mean("x", bounds=bounds, eps=eps)
        case "block n":
            return verbs.agg(
                n=dp.count(), s=dp.clip_sum("x", bounds=bounds), m=dp.clip_mean("x", bounds=bounds), eps=eps
            )
        case "two":
            return verbs.agg(
                n=dp.count(), s=dp.clip_mean("x", bounds=bounds), m=dp.clip_mean("x", bounds=(0, 5)), eps=eps
            )
    return verbs.clip_sum("x", bounds=bounds, eps=eps)


def plan_verbs(frame, grouped, groups=2, rows=3):
    plan = frame.dp.plan
    if grouped:
        return plan.groupby("g", keys=["a", "b", "c", "d"], max_groups=groups, max_rows_per_group=rows)
    return plan


def bound_plan(frame, question, grouped, groups=2, rows=3):
    verbs = plan_verbs(frame, grouped, groups, rows)
    if grouped:
        return ask(verbs, question)
    bounds = BOUNDS.get(question, (-3, 10))
    calls = {
        "count": lambda: verbs.count(eps=1, max_rows=rows),
        "count x": lambda: verbs.count("x", eps=1, max_rows=rows),
        "mean n": lambda: verbs.clip_mean("x", bounds=bounds, n=100, eps=1, max_rows=rows),
        "block": lambda: verbs.clip_mean("x", bounds=bounds, eps=1, max_rows=rows),
        "block n": lambda: verbs.agg(
            n=dp.count(),
            s=dp.clip_sum("x", bounds=bounds),
            m=dp.clip_mean("x", bounds=bounds),
            eps=1,
            max_rows=rows,
        ),
        "two": lambda: verbs.agg(
            n=dp.count(),
            s=dp.clip_mean("x", bounds=bounds),
            m=dp.clip_mean("x", bounds=(0, 5)),
            eps=1,
            max_rows=rows,
        ),
    }
    return calls.get(question, lambda: verbs.clip_sum("x", bounds=bounds, eps=1, max_rows=rows))()


def by_part(bound):
    """The integers that reach the mechanism, one flat object array per part of the plan."""
    got = exact_integers(bound)
    return {
        i: np.array([v for c, p in zip(got, bound.plan.pieces) if p.part == i for v in c], dtype=object)
        for i in range(len(bound.plan.parts))
    }


def norms(moved):
    moved = np.abs(moved)
    return int(moved.sum()), int((moved * moved).sum()), int(moved.max(initial=0))


def pieces_of(plan, counts):
    """What reaches the mechanism, from the engine's integers: a*n + b*c + d*t."""
    out = {}
    for i in range(len(plan.parts)):
        values = []
        for p in plan.pieces:
            if p.part != i:
                continue
            c = p.coordinate
            v = c.a * counts.rows.astype(object)
            if p.measure >= 0:
                v = v + c.b * counts.present[p.measure].astype(object)
                for which, factor in c.sums:
                    v = v + factor * counts.sums[p.measure][which].astype(object)
            values += list(v)
        out[i] = np.array(values, dtype=object)
    return out


# ---- nobody else is moved, for any salt ----


def many_units(rng, units, groups="abcdefgh"):
    rows = []
    for u in range(units):
        n = int(rng.choice([1, 2, 5, 12]))
        rows += [(u, float(rng.normal(3, 6)), str(g), True) for g in rng.choice(list(groups), size=n)]
    return rows
