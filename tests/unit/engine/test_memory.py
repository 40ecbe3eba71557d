"""The memory that bounding units takes: what explain() says of it, and what a process took."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.frames.columns import Column
from dpframe.planning.memory import bytes_per_pair


def memory(bound, **guess) -> str:
    (line,) = [x for x in str(bound.explain(**guess)).splitlines() if x.startswith("  memory")]
    return line.removeprefix("  memory").strip()


def test_explain_forecasts_the_memory_of_bounding(quiet):
    frame = pl.DataFrame({"u": [1], "v": ["a"], "g": [1], "x": [1.0]}).lazy()
    with dp.Session(eps=9, unit="u"):
        plans = frame.dp.plan.groupby("g", keys=range(20), max_groups=3, max_rows_per_group=2)
        count = plans.count(eps=1)
        sums = "about 164 bytes a u and group (on Polars 48 more for each further row that is held)"
        assert memory(count) == f"{sums}, as many as the data have"
        assert memory(count, units=10**7).endswith("have; 32.8 GB and further rows")
        assert memory(count, rows=10**8, units=10**6).endswith("have; at most 98.3 GB")
        assert memory(count, rows=10**6, units=10**7).endswith("have; at most 3.28 GB")
        means = plans.dp_agg(*(dp.clip_mean("x", bounds=(0, b)).alias(f"m{b}") for b in range(1, 5)), eps=1)
        assert "about 292 bytes a u and group" in memory(means)
        both = plans.dp_agg(n=dp.count(), m=dp.median("x", bounds=(0, 1)), eps=1)
        text = f"{sums} and 188 bytes a u, group and value of x, as many as the data have"
        assert memory(both) == text
        assert memory(both, units=5) == text  # a unit may have any number of values
        assert memory(both, rows=1000).endswith("; at most 0.00704 GB")
        assert memory(both, rows=1000, units=500).endswith("; at most 0.00588 GB")
        assert memory(frame.dp.plan.count(max_rows=2, eps=1), units=10**9).endswith(
            "; 140 GB and further rows"
        )
        found = frame.dp.plan.groupby("g", max_groups=3, max_rows_per_group=2)
        with dp.Session(eps=9, delta=0.1, unit="u"):
            assert memory(found.count(eps=1, delta=1e-9), units=5).endswith("as many as the data have")
        for wrong in (0, -1, "many", float("nan")):
            with pytest.raises((dp.InputError, TypeError), match="units"):
                count.explain(units=wrong)
    with dp.Session(eps=9, unit=["u", "v"]):
        plan = frame.dp.plan.groupby("g", keys=range(20), max_groups=3, max_rows_per_group=2).count(eps=1)
        assert "about 252 bytes a combination of u and v and group" in memory(plan)
    with dp.Session(eps=9):
        assert "memory" not in str(frame.dp.plan.count(eps=1).explain(rows=10))


ASK = """
import sys, polars as pl, dpframe as dp

def peak():
    return next(1024 * int(x.split()[1]) for x in open("/proc/self/status") if x.startswith("VmHWM"))

def ask(path):
    before = peak()
    with dp.Session(eps=9, unit="u"):
        frame = pl.scan_parquet(path).dp.groupby("g", keys=range(4), max_groups=2, max_rows_per_group=1)
        frame.clip_mean("x", bounds=(0, 1), eps=1)
    return peak() - before

ask(sys.argv[1])
print(ask(sys.argv[2]))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="a process's peak is read from /proc")
def test_bounding_takes_no_more_memory_than_is_forecast(tmp_path):
    """Half a million pairs; what a process takes once is taken by a small question before."""
    pairs = 500_000
    paths = [tmp_path / "small.parquet", tmp_path / "large.parquet"]
    for path, n in zip(paths, (1000, pairs)):
        i = np.random.default_rng(1).permutation(n)
        pl.DataFrame({"u": i // 4, "g": i % 4, "x": i / n}).write_parquet(path)
    few = {**os.environ, "POLARS_MAX_THREADS": "2"}  # buffers of each thread are no part of the forecast
    run = subprocess.run(
        [sys.executable, "-c", ASK, *paths], capture_output=True, text=True, check=True, env=few
    )
    forecast = pairs * bytes_per_pair([Column(n, "int", "Int64", True) for n in "ug"], 3)
    assert forecast / 5 < int(run.stdout) < forecast + 50e6
