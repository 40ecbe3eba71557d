"""Counting rows by bins: the same integers from every engine, whichever way they are counted."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from conftest import as_kind
from dpframe.engine import tally as counting
from dpframe.frames.bins import Cuts, Steps, Tally
from dpframe.frames.contract import Ask
from dpframe.frames.keys import key_table

STEPS = Steps(0.0, 100_000 / 2**16, 2**16)
EDGES = Cuts((0.0, 10.0, 10.0 + 2**-40, 99.5), closed=True)


def values(n, seed):
    """Random ones, ones halfway between candidates as floats have it, ends, beyond, and missing ones."""
    rng = np.random.default_rng(seed)
    x = rng.random(n) * 120_000 - 10_000
    half = rng.integers(0, 2**16, n) + 0.5
    x = np.where(rng.random(n) < 0.4, half * STEPS.width, x)
    odd = [math.inf, -math.inf, 0.0, -0.0, 100_000.0, 1e300, -1e300, 5e-324, 10.0, 10.0 + 2**-40, math.nan]
    x[: min(n, len(odd))] = odd[:n]
    return pl.Series("x", [None if i % 7 == 3 else v for i, v in enumerate(x.tolist())], dtype=pl.Float64)


def told(frame, tallies, keys=None):
    """(group, bin, rows) of every tally, as the engine counts them."""
    source = dp.frame(frame)._source
    by = () if keys is None else (source.column("g"),)
    table = None if keys is None else key_table(("g",), by, keys)
    got = source.tally(Ask(tallies=tallies, by=by, keys=table))
    return [sorted(zip(t.groups.tolist(), t.bins.tolist(), t.rows.tolist())) for t in got]


def plain(table, tally, keys=None):
    """One cell after the other, in Python."""
    found = {}
    for g, v in zip(table["g"], table["x"]):
        code = 0 if keys is None else keys.index(g) if g in keys else None
        if v is None or math.isnan(v):
            b = tally.missing
        elif isinstance(tally.how, Steps):
            b = (
                min(max(math.ceil((v - tally.how.low) * tally.how.rate - 0.5), 0), tally.how.last)
                if abs(v) < 1e200
                else (tally.how.last if v > 0 else 0)
            )
        else:
            b = sum(p <= v if tally.how.closed else p < v for p in tally.how.points)
        if code is not None and b is not None:
            found[code, b] = found.get((code, b), 0) + 1
    return sorted((*k, m) for k, m in found.items())


@pytest.fixture(params=["pandas", "polars", "lazy", "duckdb"])
def door(request):
    """What makes a frame of a Polars one."""
    if request.param != "duckdb":
        return lambda table: as_kind(request.param, table)
    duckdb = pytest.importorskip("duckdb")

    def make(table):
        arrow = table.to_arrow()
        return duckdb.connect().from_arrow(arrow)

    return make


@pytest.mark.parametrize("n", [0, 1, 12, 3000])
def test_every_engine_counts_alike(door, n):
    rng = np.random.default_rng(n)
    table = pl.DataFrame({"x": values(n, n), "g": pl.Series(rng.integers(0, 5, n), dtype=pl.Int64)})
    tallies = tuple(Tally("x", how, missing) for how in (STEPS, EDGES) for missing in (None, 2**16 + 1))
    frame = door(table)
    assert told(frame, tallies) == [plain(table, t) for t in tallies]
    keys = [4, 7, 0, 2]
    assert told(frame, tallies, keys) == [plain(table, t, keys) for t in tallies]


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("counters", [True, False])
def test_counters_and_hashes_count_alike(monkeypatch, kind, counters):
    """Frames in memory have a counter for every group and bin, unless those are many."""
    if not counters:
        monkeypatch.setattr(counting.TallyQuery, "_cells", lambda *_: None)
    monkeypatch.setattr(counting, "_CHUNK", 7)
    n = 500
    table = pl.DataFrame({"x": values(n, 3), "g": pl.Series([i % 3 for i in range(n)], dtype=pl.Int64)})
    tallies = (Tally("x", Steps(0.0, 50.0, 200)), Tally("x", EDGES, 5))
    frame = as_kind(kind, table)
    assert told(frame, tallies) == [plain(table, t) for t in tallies]
    assert told(frame, tallies, [2, 0]) == [plain(table, t, [2, 0]) for t in tallies]


def test_counters_are_no_more_than_rows_and_never_for_lazy_frames():
    many = key_table(("g",), (dp.frame(pl.DataFrame({"g": [1]}))._source.column("g"),), range(100))

    def cells(height, groups):
        return counting.TallyQuery(pl.LazyFrame(), [], [], [], height)._cells(Tally("x", STEPS), groups)

    assert cells(20, None) == (1, 2**16 + 1)
    assert cells(1_000_000, many) is None
    assert cells(10_000_000, many) == (100, 2**16 + 1)
    assert cells(None, None) is None


def test_integer_columns_of_pandas_are_counted_too():
    frame = pd.DataFrame({"x": np.array([-5, 0, 3, 3, 10, 200], dtype=np.int16)})
    assert told(frame, (Tally("x", Steps(0.0, 1.0, 10)),)) == [[(0, 0, 2), (0, 3, 2), (0, 10, 2)]]
