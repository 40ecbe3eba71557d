"""Neighbouring frames, generated: they look alike, and their integers differ by no more than is declared.

``DPFRAME_AUDIT=1`` raises the pairs from 400 to 10,000.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from one_row import RELATIONS, frame_of
from sizes import AUDIT

import dpframe as dp

PAIRS = 10_000 if AUDIT else 400
CHUNKS = 10


# ---- Promise 2: the grey box ----

VALUES = [
    None,
    math.nan,
    math.inf,
    -math.inf,
    1e300,
    -1e300,
    5e-324,
    0.0,
    -0.0,
    1 / 3,
    -3.0,
    10.0,
    20.0,
    100.0,
]
QUESTIONS = ["count", "count x", "sum", "mean", "mean n", "block", "two blocks", "own eps"]


def random_row(rng):
    x, y = (
        VALUES[rng.integers(len(VALUES))] if rng.random() < 0.6 else float(rng.normal(5, 20)) for _ in "xy"
    )
    return (x, y, ["a", "b", None, "unlisted", "other"][rng.integers(5)], bool(rng.random() < 0.8))


def ask_any(verbs, question, bounds, eps):
    match question:
        case "count":
            return verbs.count(eps=eps)
        case "count x":
            return verbs.count("x", eps=eps)
        case "sum":
            return verbs.clip_sum("x", bounds=bounds, eps=eps)
        case "mean":
            return verbs.clip_mean("x", bounds=bounds, eps=eps)
        case "mean n":
            return verbs.clip_mean("x", bounds=bounds, n=7, eps=eps)
        case "block":
            return verbs.agg(n=dp.count(), s=dp.clip_sum("x", bounds=bounds), eps=eps)
        case "two blocks":
            return verbs.agg(
                n=dp.count(), m=dp.clip_mean("x", bounds=bounds), z=dp.clip_mean("y", bounds=(0, 5)), eps=eps
            )
        case _:
            return verbs.agg(n=dp.count(), m=dp.clip_mean("x", bounds=bounds), eps={"n": eps, "m": eps})


def look(frame, relation, question, bounds, grouped):
    """Everything about a release that may be seen, and the integers before the noise."""
    error = None
    with dp.Session(eps=10, neighbors=relation) as s:
        verbs = frame.dp.plan.groupby("g", keys=["b", None, "a", "absent"]) if grouped else frame.dp.plan
        bound = ask_any(verbs, question, bounds, 1)
        try:
            release = bound.release()
        except Exception as e:  # whatever it is, it must be the same on both frames
            return {"error": (type(e), str(e)), "plan": bound.plan, "row": s.report().drop("time").rows()}, []
        value = release.value
        seen = {
            "error": error,
            "plan": bound.plan,
            "row": s.report().drop("time").rows(),
            "type": type(value),
            "shape": getattr(value, "shape", None),
            "columns": None if not hasattr(value, "columns") else [str(c) for c in value.columns],
            "dtypes": None if not hasattr(value, "dtypes") else [str(t) for t in value.dtypes],
            "keys": None if not grouped else [None if pd.isna(k) else k for k in value["g"]],
            "facts": {k: v for k, v in release.facts.items() if k != "time"},
        }
        return seen, [(x.astype(object), p.part) for x, p in zip(release._noisy, bound.plan.pieces)]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_generated_neighbours_look_alike_and_differ_by_no_more_than_declared(
    no_noise, quiet, relation, chunk
):
    """Rows that appear, vanish, turn missing, are filtered, move to another or an unlisted group."""
    rng = np.random.default_rng([2, chunk, RELATIONS.index(relation)])
    for turn in range(PAIRS // CHUNKS):
        rows = [random_row(rng) for _ in range(rng.choice([0, 1, 2, 4, 9, 30]) + (relation == "replace_one"))]
        at = int(rng.integers(len(rows) + (relation == "add_remove")))
        if relation == "add_remove":
            other = [*rows[:at], random_row(rng), *rows[at:]]
        else:
            new = random_row(rng)
            if rng.random() < 0.3:  # the same row turns missing, or is filtered away
                x, y, g, keep = rows[at]
                new = (None, None, g, keep) if rng.random() < 0.5 else (x, y, g, not keep)
            other = [*rows[:at], new, *rows[at + 1 :]]
        if rng.random() < 0.3:
            other = [other[i] for i in rng.permutation(len(other))]  # row order is not protected, nor seen
        kind = ("pandas", "polars", "lazy")[rng.integers(3)]
        question = QUESTIONS[turn % len(QUESTIONS)]
        bounds = [(-3, 10), (20, 100), (-50, -10), (0.1, 0.7), (0, 1e200)][rng.integers(5)]
        grouped = bool(rng.integers(2))
        (seen, a), (seen_too, b) = (
            look(frame_of(kind, r), relation, question, bounds, grouped) for r in (rows, other)
        )
        assert seen == seen_too, (kind, question, rows, other)
        assert seen["error"] is None
        for i, part in enumerate(seen["plan"].parts):
            moved = [abs(d) for (x, p), (y, _) in zip(a, b) if p == i for d in (x - y).tolist()]
            assert sum(moved) <= part.l1, (kind, question, bounds, grouped, rows, other)
            assert sum(m * m for m in moved) <= part.l2_squared, (kind, question, bounds, rows, other)
