"""Keys and columns at their edges: absent, missing, declared, duplicate, oddly named, of every width."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from looks import BOUNDS, EPS, INF, NAN, arrow, masked

import dpframe as dp
from conftest import as_kind, as_polars

# ---- keys: the cases by number ----


@pytest.fixture
def budget(quiet):
    with dp.Session(eps=10**12) as s:
        yield s


def test_six_hundred_absent_groups_have_noise_of_their_own(kind, quiet):
    """Case 62: absent groups all had the same noise elsewhere.

    At eps .01 a count's noise has scale 100: two given draws agree with probability 1/200, so of 600
    draws at least 200 distinct values occur (about 400 are expected). The mean |noise| of 600 is within 50 % of 100.
    False alarm: a mean of 600 exponentials is half too large with at most exp(-600 (.5 - ln 1.5)) = 5e-25, half too
    small with less. Planted: empty groups share one draw.
    """
    table = pl.DataFrame({"g": ["a"] * 5, "x": [1.0] * 5})
    keys = [f"absent {i}" for i in range(600)]
    with dp.Session(eps=100):
        out = as_polars(
            as_kind(kind, table)
            .dp.groupby("g", keys=["a", *keys])
            .dp_agg(
                n=dp.count(), s=dp.clip_sum("x", bounds=(0, 1)), m=dp.clip_mean("x", bounds=(0, 1)), eps=0.01
            )
        )
        n = as_polars(as_kind(kind, table).dp.groupby("g", keys=keys).count(eps=0.01))["count"]
    assert n.n_unique() >= 200
    assert 50 < n.abs().mean() < 150
    assert out["n"].n_unique() >= 200
    assert out["s"].n_unique() >= 590  # on a grid of 2**30 steps
    assert out["m"].n_unique() >= 60  # three in four are cut to the bounds by noise like this


def test_no_keys_make_an_empty_table_of_the_right_schema(kind, budget):
    """Case 64."""
    table = as_kind(kind, pl.DataFrame({"g": ["a"], "x": [1.0]}))
    out = table.dp.groupby("g", keys=[]).dp_agg(n=dp.count(), m=dp.clip_mean("x", bounds=(0, 1)), eps=1)
    full = table.dp.groupby("g", keys=["a"]).dp_agg(n=dp.count(), m=dp.clip_mean("x", bounds=(0, 1)), eps=1)
    assert [str(t) for t in out.dtypes] == [str(t) for t in full.dtypes]
    assert list(out.columns) == list(full.columns) == ["g", "n", "m"]
    assert out.shape == (0, 3)


def test_no_keys_cost_nothing(kind, quiet):
    """Case 64: a table without rows says nothing."""
    table = as_kind(kind, pl.DataFrame({"g": ["a"], "x": [1.0]}))
    with dp.Session(eps=1) as s:
        table.dp.groupby("g", keys=[]).count(eps=1)
        assert s.spent == 0


GROUP_NULLS = ["a", None, "b"]


@pytest.mark.parametrize(("kind", "runs"), [("polars", 20), ("lazy", 20), ("pandas", 3)])
def test_nulls_in_two_key_columns_make_the_same_groups_in_every_run(kind, runs, budget):
    """Case 67: a million rows, nulls in both columns; every group is there, and every count is right."""
    rng = np.random.default_rng(67)
    n = 1_000_000
    g, h = rng.integers(0, 3, n), rng.integers(0, 4, n)
    numbers = [1, None, 3, 99]
    table = pl.DataFrame(
        {
            "g": pl.Series(GROUP_NULLS, dtype=pl.String).gather(g),
            "h": pl.Series(numbers, dtype=pl.Int64).gather(h),
        }
    )
    if kind == "pandas":
        frame = pd.DataFrame(
            {
                "g": pd.Series(GROUP_NULLS, dtype=object).take(g).array,
                "h": pd.Series(numbers, dtype="Int64").take(h).array,
            }
        )
    else:
        frame = as_kind(kind, table)
    keys = {"g": ["b", None, "a"], "h": [None, 3, 1, 7]}
    pairs = [(a, b) for a in keys["g"] for b in keys["h"]]
    of = dict.fromkeys(pairs, 0)
    for i, a in enumerate(GROUP_NULLS):
        for j, b in enumerate(numbers):
            if (a, b) in of:
                of[a, b] = int(((g == i) & (h == j)).sum())
    for _ in range(runs):
        out = as_polars(frame.dp.groupby("g", "h", keys=keys).count(eps=EPS))
        assert list(zip(out["g"].to_list(), out["h"].to_list())) == pairs
        assert out["count"].to_list() == [of[p] for p in pairs]


def test_declared_categories_are_those_of_an_enum(budget):
    """Case 68: unobserved ones included; a pandas Categorical's only when declared public."""
    enum = pl.Enum(["low", "mid", "high"])
    for kind in ("polars", "lazy"):
        frame = as_kind(kind, pl.DataFrame({"g": pl.Series(["high", "high"], dtype=enum)}))
        out = frame.dp.groupby("g", keys="declared").count(eps=EPS)
        assert out["g"].to_list() == ["low", "mid", "high"]
        assert out["count"].to_list() == [0, 0, 2]
        assert out.schema["g"] == enum
    frame = pd.DataFrame({"g": pd.Categorical(["high", None], categories=["low", "high"])})
    spent = budget.spent
    with pytest.raises(dp.InputError, match=r"dp\.public"):
        frame.dp.groupby("g", keys="declared").count(eps=EPS)
    assert budget.spent == spent
    out = frame.dp.groupby("g", keys=dp.public(frame["g"].cat.categories)).count(eps=EPS)
    assert out["g"].tolist() == ["low", "high"]
    assert out["count"].tolist() == [0, 1]


def test_too_many_combinations_are_refused_before_they_are_made(kind, budget):
    """Case 68: the product of the lists is what counts."""
    table = as_kind(kind, pl.DataFrame({"g": [1], "h": [1]}, schema={"g": pl.Int64, "h": pl.Int64}))
    with pytest.raises(dp.InputError, match="combinations"):
        table.dp.groupby("g", "h", keys={"g": range(10**4), "h": range(10**4)}).count(eps=1)
    with pytest.raises(dp.InputError):
        table.dp.groupby("g", keys=range(10**9)).count(eps=1)
    assert budget.report().height == 0


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32], ids=str)
def test_float_keys_know_one_zero_and_one_missing(kind, dtype, budget):
    """Case 70: -0.0 and 0.0 are one group; NaN and null are one group, listed as None."""
    cells = [0.0, -0.0, -0.0, NAN, None, 1.5, INF]
    table = pl.DataFrame({"g": pl.Series(cells, dtype=dtype)})
    frame = as_kind(kind, table)
    for zero, missing in ((0.0, None), (-0.0, NAN)):
        out = as_polars(frame.dp.groupby("g", keys=[missing, 1.5, zero, INF]).count(eps=EPS))
        assert out["count"].to_list() == [2, 1, 3, 1]
        assert not math.copysign(1, out["g"][2]) < 0
    for twice in ([0.0, -0.0], [None, NAN]):
        with pytest.raises(dp.InputError, match="more than once"):
            frame.dp.groupby("g", keys=twice).count(eps=EPS)


@pytest.mark.parametrize("dtype", ["Float64", "Float32", "double[pyarrow]", "float16"])
def test_float_keys_of_other_pandas_dtypes_are_grouped_alike(dtype, budget):
    """Case 70, pandas: nullable, Arrow and half floats."""
    if dtype == "double[pyarrow]":
        g = arrow([0.0, -0.0, NAN, None, 1.5], pa.float64())
    elif dtype == "float16":
        g = pd.Series([0.0, -0.0, NAN, NAN, 1.5], dtype=dtype)
    else:
        g = masked(pd.arrays.FloatingArray, [0.0, -0.0, NAN, 1, 1.5], [0, 0, 0, 1, 0], dtype.lower())
    out = pd.DataFrame({"g": g}).dp.groupby("g", keys=[None, 1.5, 0]).count(eps=EPS)
    assert out["count"].tolist() == [2, 1, 2]
    assert str(out["g"].dtype) == dtype


def test_groups_come_in_the_order_of_their_keys(kind, budget):
    """Case 71: on every engine, and in every run."""
    rng = np.random.default_rng(71)
    keys = [int(k) for k in rng.permutation(1000)]
    table = pl.DataFrame({"g": rng.integers(0, 2000, 5000)})
    for _ in range(5):
        out = as_polars(as_kind(kind, table).dp.groupby("g", keys=keys).count(eps=EPS))
        assert out["g"].to_list() == keys
    want = np.bincount(table["g"].to_numpy(), minlength=2000)[keys]
    assert out["count"].to_list() == want.tolist()


def test_the_grouping_column_can_be_measured(kind, budget):
    """Case 73."""
    table = pl.DataFrame({"age": pl.Series([20, 20, 70, None], dtype=pl.Int64)})
    frame = as_kind(kind, table)
    if kind == "pandas":
        frame = frame.astype({"age": "Int64"})
    out = as_polars(
        frame.dp.groupby("age", keys=[20, 70, 30, None]).dp_agg(
            m=dp.clip_mean("age", bounds=(0, 60)), c=dp.count("age"), n=dp.count(), eps=EPS
        )
    )
    assert out["c"].to_list() == [2, 1, 0, 0]
    assert out["n"].to_list() == [2, 1, 0, 1]
    assert out["m"].to_list() == pytest.approx([20, 60, 30, 30], abs=0.01)


def test_a_duplicate_of_a_used_column_is_refused_and_of_another_is_not(budget):
    """Case 74."""
    twice = pd.DataFrame([[1.0, 2.0, "a"], [3.0, 4.0, "b"]], columns=["x", "x", "g"])
    for ask in (
        lambda: twice.dp.clip_sum("x", bounds=BOUNDS, eps=1),
        lambda: twice.dp.count("x", eps=1),
        lambda: twice.dp.groupby("x", keys=[1.0]).count(eps=1),
        lambda: twice.dp.agg(n=dp.count(), s=dp.clip_sum("x", bounds=BOUNDS), eps=1),
    ):
        with pytest.raises(dp.InputError, match="2 columns named 'x'"):
            ask()
    assert budget.report().height == 0
    assert twice.dp.groupby("g", keys=["a", "b"]).count(eps=EPS)["count"].tolist() == [1, 1]
    assert twice.dp.count(eps=EPS) == 2
    also = pd.DataFrame([[1.0, 2.0, 5.0]], columns=["y", "y", "x"])
    assert round(also.dp.clip_sum("x", bounds=BOUNDS, eps=EPS), 2) == 5


@pytest.mark.parametrize(
    "name", [0, -1, ("a", 1), 2.5, dt.date(2026, 1, 1), "dp", "", "x y", "k0", "n"], ids=str
)
def test_column_names_of_any_type_work(name, budget, tmp_path):
    """Case 76: answers come under text names, and can be written."""
    frame = pd.DataFrame({"g": ["a", "b", "a"], "other": [0.0, 0.0, 0.0]})
    frame.insert(1, name, [1.0, 2.0, NAN])
    frame.columns = pd.Index(["g", name, "other"], dtype=object, tupleize_cols=False)
    assert round(frame.dp.clip_sum(name, bounds=BOUNDS, eps=EPS), 2) == 3
    assert frame.dp.count(name, eps=EPS) == 2
    out = frame.dp.groupby("g", keys=["b", "a"]).clip_sum(name, bounds=BOUNDS, eps=EPS)
    assert all(isinstance(c, str) for c in out.columns)
    assert out.iloc[:, 1].tolist() == pytest.approx([2, 1], abs=0.01)
    path = tmp_path / "t.parquet"
    budget.last.write(path)
    assert pl.read_parquet(path).columns == list(out.columns)
    by = frame.dp.groupby(name, keys=[1.0, 7.0, None]).dp_agg(answer=dp.count(), eps=EPS)
    assert by["answer"].tolist() == [1, 0, 1]
    assert all(isinstance(c, str) for c in by.columns)
    budget.last.write(path)


def test_a_column_named_none_works_or_is_refused_in_words(budget):
    """Case 76: None means rows to ``count``; other verbs answer about the column or say what to write."""
    frame = pd.DataFrame({None: [1.0, 2.0], "g": ["a", "b"]})
    for ask in (
        lambda: frame.dp.clip_sum(None, bounds=BOUNDS, eps=EPS),
        lambda: frame.dp.agg(m=dp.clip_mean(None, bounds=BOUNDS), eps=EPS),
        lambda: frame.dp.groupby("g", keys=["a"]).clip_sum(None, bounds=BOUNDS, eps=EPS),
    ):
        before = budget.report().height
        try:
            ask()
        except dp.InputError:
            assert budget.report().height == before


@pytest.mark.parametrize("name", ["k0", "y0", "n", "c0", "t0", "g0", "m0", "_", "len", "literal", "count"])
def test_column_names_that_engines_use_inside_do_not_collide(kind, name, budget):
    """Design: reserved temporary names."""
    table = pl.DataFrame({name: ["a", "b", "a"], "x": [1.0, 2.0, 3.0], "y1": [5.0, 5.0, 5.0]})
    out = as_polars(
        as_kind(kind, table)
        .dp.groupby(name, keys=["b", "a"])
        .dp_agg(
            total=dp.count(),
            sx=dp.clip_sum("x", bounds=(0, 10)),
            sy=dp.clip_sum("y1", bounds=(0, 10)),
            eps=EPS,
        )
    )
    assert out[name].to_list() == ["b", "a"]
    assert out["total"].to_list() == [1, 2]
    assert out["sx"].to_list() == pytest.approx([2, 4], abs=0.01)
    assert out["sy"].to_list() == pytest.approx([5, 10], abs=0.01)


@pytest.mark.parametrize("rows", [0, 1, 2, 3])
def test_tiny_frames_give_exactly_one_row_ungrouped(kind, rows, budget):
    """Case 80: no threshold without unknown groups, no null, whatever the noise."""
    table = as_kind(kind, pl.DataFrame({"x": [1.0] * rows}, schema={"x": pl.Float64}))
    for _ in range(10):
        out = as_polars(table.dp.agg(n=dp.count(), m=dp.clip_mean("x", bounds=BOUNDS), eps=0.1))
        assert out.shape == (1, 2)
        assert out.null_count().row(0) == (0, 0)


def test_an_absent_group_is_a_noised_number(kind, budget):
    """Case 82: neither null nor left out; on a frame without rows as well."""
    table = pl.DataFrame({"g": ["a"], "x": [1.0]})
    for frame in (as_kind(kind, table), as_kind(kind, table.head(0))):
        out = as_polars(
            frame.dp.groupby("g", keys=["absent", "gone"]).dp_agg(
                n=dp.count(),
                s=dp.clip_sum("x", bounds=BOUNDS),
                m=dp.clip_mean("x", bounds=BOUNDS),
                eps=EPS,
                mechanism="laplace",  # one draw for the row would be 0 at this eps, but for a chance of exp(-eps)
            )
        )
        assert out["n"].to_list() == [0, 0]
        assert out["s"].to_list() == pytest.approx([0, 0], abs=1e-2)
        assert out["m"].to_list() == pytest.approx([3.5, 3.5], abs=1e-2)
        assert out["s"][0] != out["s"][1]


@pytest.mark.parametrize("value", [NAN, None])
def test_one_missing_cell_among_a_hundred_is_left_out(kind, value, budget):
    """Case 1: the sum is that of the others, and the mean's denominator too."""
    x = [1.0] * 99
    table = pl.DataFrame({"x": [*x, value]}, schema={"x": pl.Float64})
    frame = as_kind(kind, table)
    assert frame.dp.clip_sum("x", B=10, eps=EPS) == pytest.approx(99, abs=1e-3)
    assert frame.dp.clip_mean("x", B=10, eps=EPS) == pytest.approx(1, abs=1e-4)
    assert frame.dp.count("x", eps=EPS) == 99
    assert frame.dp.count(eps=EPS) == 100


def test_int128_and_uint64_keys_are_matched(budget):
    """Case 112: keys beyond 64 bits, and beyond the signed ones."""
    for dtype, big in ((pl.Int128, 2**100), (pl.UInt64, 2**64 - 1)):
        for kind in ("polars", "lazy"):
            frame = as_kind(kind, pl.DataFrame({"g": pl.Series([1, big, big, None], dtype=dtype)}))
            out = frame.dp.groupby("g", keys=[big, 1, 5, None]).count(eps=EPS)
            assert out["count"].to_list() == [2, 1, 0, 1]
            assert out.schema["g"] == dtype
    frame = pd.DataFrame({"g": np.array([1, 2**64 - 1], dtype="uint64")})
    assert frame.dp.groupby("g", keys=[2**64 - 1, 3]).count(eps=EPS)["count"].tolist() == [1, 0]


@pytest.mark.usefixtures("no_noise", "quiet")
def test_text_with_a_nul_is_its_own_text():
    """C strings end at NUL; a row with "a" and a NUL must not take the group "a" with it."""
    for extra in (["a\x00"], []):
        frame = pd.DataFrame({"g": pd.Series([*extra, *["a"] * 50], dtype=object)})
        with dp.Session(eps=10) as s:
            frame.dp.groupby("g", keys=["a", "b"]).count(eps=1)
            assert s.last._noisy[0].tolist() == [50, 0]


@pytest.mark.usefixtures("no_noise", "quiet")
@pytest.mark.parametrize("odd", [complex("nan"), np.longdouble("nan"), [None], np.array([np.nan])], ids=repr)
@pytest.mark.parametrize("other", [1, Decimal("sNaN"), {}], ids=repr)
def test_what_a_cell_counts_as_does_not_depend_on_other_rows(odd, other):
    """One row of another kind sent the whole column down another road."""
    counts = []
    for extra in ([], [other]):
        cells = pd.Series([*["a"] * 5, *[odd] * 20, *extra], dtype=object)
        frame = pd.DataFrame({"g": cells})
        with dp.Session(eps=10) as s:
            frame.dp.groupby("g", keys=["a", None]).count(eps=1)
            groups = s.last._noisy[0].tolist()
            frame.dp.count("g", eps=1)
            counts.append((groups, s.last._noisy[0].tolist()[0] - len(extra)))
    missing = isinstance(
        other, Decimal
    )  # a NaN of its own kind: the row is in the missing group, and moves no other
    assert counts[1][0] == [counts[0][0][0], counts[0][0][1] + missing]
    assert abs(counts[0][1] - counts[1][1]) <= 1
