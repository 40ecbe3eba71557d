"""Intervals of several answers of one draw hold the exact ones in 94.5 % of all releases and more, asked for 95 %.

Grouped releases over groups that all hold the same rows: as many independent answers. A comparison fails by
chance less than once in 10**10 times (``chance``). Planted: every mean has the interval of one in the middle of its bounds.
"""

from __future__ import annotations

import chance
import polars as pl
import pytest
from sizes import AUDIT

import dpframe as dp

pytestmark = pytest.mark.usefixtures("quiet")

PLACES = [(0.0, 0.5), (0.05, 0.3), (0.95, 1.0)]  # means of the two columns
SETTINGS = {
    "row": {},
    "replaced row": {"neighbors": "replace_one"},
    "unit": {"unit": "who", "max_groups": 1, "max_rows_per_group": 2},
    "gaussian": {"rho": True},
    "no missing values": {"complete_cases": True},
}
POINTS = [(s, eps, n) for s in SETTINGS for eps in (0.1, 1, 3, 10) for n in (1, 2, 5, 20, 100, 1000, 100_000)]
SMALL = [p for i, p in enumerate(POINTS) if i % 3 == 0 and p[2] <= 100] + [("row", 1, 1000)]


def values(n: int, mean: float) -> list[float]:
    apart = min(0.1, mean, 1 - mean)
    return [mean] * (n % 2) + [mean + apart, mean - apart] * (n // 2)


def groups_of(n: int, places: tuple[float, float], groups: int) -> pl.DataFrame:
    """So many groups of ``n`` rows, and in each a row that lacks the first value; every row is of another unit."""
    one = pl.DataFrame({"x": [*values(n, places[0]), None], "y": [*values(n, places[1]), places[1]]})
    frame = pl.DataFrame({"g": pl.Series(range(groups), dtype=pl.Int64)}).join(one, how="cross")
    return frame.with_row_index("who")


@pytest.mark.parametrize("places", PLACES, ids=str)
@pytest.mark.parametrize(("setting", "eps", "n"), POINTS if AUDIT else SMALL)
def test_intervals_of_a_draw_hold(setting, eps, n, places):
    total = 40_000 if AUDIT else 4000
    groups = max(20, min(total, (2_000_000 if AUDIT else 200_000) // n))
    frame = groups_of(n, places, groups)
    options = dict(SETTINGS[setting])
    session = {k: options.pop(k) for k in ("neighbors", "unit") if k in options}
    if options.pop("rho", False):
        budget, price = {"rho": 10**9}, {"rho": eps**2 / 2}
    else:
        budget, price = {"eps": 10**9}, {"eps": eps}
    rows = n if "complete_cases" in options else n + 1
    truth = {"n": rows, "x": places[0], "y": places[1]}
    hits, asked = dict.fromkeys(truth, 0), 0
    with dp.Session(**budget, **session) as s:
        while asked < total and asked < 40 * groups:
            frame.dp.groupby("g", keys=range(groups)).dp_agg(
                n=dp.count(),
                x=dp.clip_mean("x", bounds=(0, 1)),
                y=dp.clip_mean("y", bounds=(0, 1)),
                **price,
                **options,
            )
            assert s.last.plan.parts[0].draw is not None or setting == "gaussian"
            ends = s.last.interval(0.95)
            asked += groups
            for name, t in truth.items():
                hits[name] += int(
                    ((ends[f"{name}_low"] <= t + 1e-9) & (t - 1e-9 <= ends[f"{name}_high"])).sum()
                )
    for name, k in hits.items():
        assert k >= chance.least_hits(asked, 0.945), (name, k / asked)
