"""Budget plans to try things with: a small table of people, and what each query was given."""

from __future__ import annotations

import polars as pl

import dpframe as dp

PEOPLE = pl.DataFrame(
    {
        "x": [10.0, 20.0, 60.0] * 400,
        "city": ["a", "b", "c"] * 400,
        "late": [True, False, None] * 400,
        "y": [1.0] * 1200,
    }
)
BOUNDS = (0, 100)


# ---- adaptive ----


def adaptive(frame=PEOPLE, **policy):
    return dp.BudgetPlan(
        frame,
        {
            "n": dp.query(dp.count(), error=30),
            "mean": dp.query(dp.clip_mean("x", bounds=BOUNDS), error=5, rows="n", weight=2),
            "sum": dp.clip_sum("x", bounds=BOUNDS),
        },
        **{"eps": 1, "allocation": "adaptive", **policy},
    )
