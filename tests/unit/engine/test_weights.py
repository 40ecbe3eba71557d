"""Units that weigh 1/sqrt(t) in each of their t groups: the same whole numbers on every engine."""

from __future__ import annotations

from collections import defaultdict
from math import isqrt

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.frames.contract import WEIGHT, unit_weight

pytestmark = pytest.mark.usefixtures("quiet")
HELD = {
    "polars": lambda frame: frame,
    "lazy": lambda frame: frame.lazy(),
    "pandas": lambda frame: frame.to_pandas(),
    "arrow": lambda frame: frame.to_arrow(),
}
held = pytest.mark.parametrize("make", HELD.values(), ids=HELD)


def by_hand(t: int) -> int:
    """The largest whole number of which t squares are at most WEIGHT**2."""
    low, high = 0, WEIGHT + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle * middle * t <= WEIGHT**2 else (low, middle)
    return low


def plan_of(frame, groups: int):
    with dp.Session(rho=10, delta_calls=0.1, unit="u"):
        plan = dp.frame(frame).plan.groupby("g", max_groups=groups).keys(rho=1, delta=1e-3).plan
    assert plan.mechanism == "weighted gaussian"
    return plan


def weights(frame, groups: int) -> dict:
    """What the engine adds up for every key that it finds."""
    exact = dp.frame(frame)._source.aggregate(plan_of(frame, groups).ask(7))
    keys = exact.found["k0"].to_list()
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, exact.weights.tolist()))


# Units 1 to 12 are in as many groups, with several rows in some of them; one is in 200; one group is that of no name.
LINES = [(u, f"g{k:03}") for u in range(1, 13) for k in range(u) for _ in range(1 + (u + k) % 3)]
LINES += [(99, f"g{k:03}") for k in range(200)] + [(None, "g000"), (None, "nobody's"), (5, None), (99, None)]
TABLE = pl.DataFrame(LINES, schema={"u": pl.Int64, "g": pl.String}, orient="row")


def expected() -> dict:
    groups = defaultdict(set)
    for u, g in LINES:
        if u is not None:
            groups[u].add(g)
    out = defaultdict(int)
    for mine in groups.values():
        for g in mine:
            out[g] += by_hand(len(mine))
    return dict(out)


def test_a_weight_is_the_largest_whole_number_that_fits():
    for t in (*range(1, 3000), 2**16 - 1, 2**16, 2**16 + 1, 2**20 - 1, 2**20):
        w = unit_weight(t)
        assert w == by_hand(t)
        assert t * w * w <= WEIGHT**2 < t * (w + 1) ** 2


@held
def test_frames_in_memory_weigh_units_by_the_same_integers(make):
    assert weights(make(TABLE), 300) == expected()


def test_engines_weigh_units_by_the_same_integers(make):
    assert weights(make(TABLE), 300) == expected()


def _limited(make):
    """A unit in 201 groups counts in 3, and weighs what a unit with 3 weighs: all in all 3 * floor(W/sqrt(3))."""
    for most in (1, 2, 3, 7):
        total = sum(weights(make(TABLE), most).values())
        groups = [u + (u == 5) for u in range(1, 13)] + [201]
        assert total == sum(min(t, most) * by_hand(min(t, most)) for t in groups)


@held
def test_frames_in_memory_weigh_units_by_the_groups_that_they_chose(make):
    _limited(make)


def test_engines_weigh_units_by_the_groups_that_they_chose(make):
    _limited(make)


@pytest.mark.parametrize("rows", [0, 1])
def test_hardly_any_rows(make, rows):
    frame = pl.DataFrame({"u": [4] * rows, "g": ["a"] * rows}, schema={"u": pl.Int64, "g": pl.String})
    for f in (frame, make(frame)):
        assert weights(f, 2) == {"a": WEIGHT} if rows else not weights(f, 2)


@pytest.mark.parametrize("where", ["polars", "duckdb"])
def test_every_number_of_groups_up_to_1200_has_its_weight(where):
    """Unit t is in groups 0 to t - 1, so what group t - 1 has beyond group t is one weight, alone."""
    many = 1200
    u = np.repeat(np.arange(1, many + 1), np.arange(1, many + 1))
    g = np.arange(len(u)) - np.repeat(np.cumsum(np.arange(many)), np.arange(1, many + 1))
    frame = pl.DataFrame({"u": u, "g": g})
    if where == "duckdb":
        from databases import make_duckdb

        frame = make_duckdb()(frame)
    got = weights(frame, 2000)
    alone = [got[t - 1] - got.get(t, 0) for t in range(1, many + 1)]
    assert alone == [isqrt(WEIGHT**2 // t) for t in range(1, many + 1)]


@pytest.mark.parametrize("wrong", [0.0, 1e-3, 0.9, 1.1, 1e6, 2.0**20, 2.0**40, -1.0])
def test_square_roots_that_are_wrong_never_make_a_unit_heavier(wrong):
    """Integers decide: whatever an engine's floats say, t squares are at most WEIGHT**2."""
    from dpframe.engine.scaling import weighed

    pairs = pl.DataFrame({"u": [1] + [2] * 2 + [3] * 5, "n": [1] * 8}).lazy()
    lied = weighed(pl, pairs, ["u"], lambda x: pl.lit(x * wrong)).collect()
    squares = lied.group_by("u").agg(pl.col("weight").cast(pl.Int64).pow(2).sum())["weight"]
    assert squares.max() <= WEIGHT**2
    assert lied["weight"].min() >= 0


def test_an_engine_that_adds_up_no_weights_answers_nothing(monkeypatch):
    from dataclasses import replace

    from dpframe.engine.polars import PolarsSource

    whole = PolarsSource.aggregate
    monkeypatch.setattr(PolarsSource, "aggregate", lambda self, ask: replace(whole(self, ask), weights=None))
    with dp.Session(rho=10, delta_calls=0.1, unit="u"), pytest.raises(dp.ReleaseFailed):
        TABLE.dp.groupby("g", max_groups=2).keys(rho=1, delta=1e-3)


def test_dask_says_why_it_has_no_units():
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(TABLE.to_pandas(), npartitions=2)
    with dp.Session(rho=10, delta_calls=0.1, unit="u") as s:
        with pytest.raises(dp.InputError, match="many partitions"):
            dp.frame(frame).groupby("g", max_groups=2).keys(rho=1, delta=1e-3)
        assert s.report().height == 0
