"""What comes back: library, dtypes, order, plain numbers, intervals, files; and plans, which hold no data."""

from __future__ import annotations

import copy
import csv
import datetime as dt
import decimal
import gc
import io
import json
import math
import pickle
import re
import sqlite3
import statistics
import struct
import weakref
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import as_kind, as_polars
from polars.io.plugins import register_io_source

import dpframe as dp
from dpframe.api import doors
from dpframe.release.release import rounded

pytestmark = pytest.mark.usefixtures("quiet")

EPS = 1e6
FRAME = pl.DataFrame(
    {
        "g": ["a", "b", "a", "c", None, "a"],
        "x": [1.0, 2.0, None, 40.0, 5.0, 3.0],
        "k": [1, 2, 3, 4, 5, 6],
        "late": [True, False, True, None, True, False],
    }
)
TABLE_TYPES = (pd.DataFrame, pl.DataFrame)
ASKED = {
    "n": dp.count(),
    "present": dp.count("x"),
    "k": dp.clip_sum("k", bounds=(0, 9)),
    "half": dp.clip_sum("k", bounds=(0, 9.5)),
    "x": dp.clip_mean("x", bounds=(0, 10)),
    "late": dp.clip_mean("late"),
    "lates": dp.clip_sum("late"),
}
TYPES = {
    "n": pl.Int64,
    "present": pl.Int64,
    "k": pl.Int64,
    "half": pl.Float64,
    "x": pl.Float64,
    "late": pl.Float64,
    "lates": pl.Int64,
}


def table_of(kind, frame=FRAME):
    """As pandas, with the nullable dtypes that keep integers and Booleans beside missing cells."""
    df = as_kind(kind, frame)
    return df.astype({"k": "Int64", "late": "boolean", "g": "string"}) if kind == "pandas" else df


def ask(df, *, keys=("b", "z", "a"), **more):
    with dp.Session(eps=10 * EPS):
        return df.dp.groupby("g", keys=keys).dp_agg(**ASKED, **{"eps": EPS, **more})


# ---- tables ----


def test_tables_come_back_in_the_library_of_the_frame(kind):
    table = ask(table_of(kind))
    assert isinstance(table, pd.DataFrame if kind == "pandas" else pl.DataFrame)
    assert list(table.columns) == ["g", *ASKED]
    if kind == "pandas":
        assert isinstance(table.index, pd.RangeIndex)


def test_tables_hold_the_answers_of_plain_code(kind):
    """By hand: rows of a, b and the absent z; the mean of nothing is the midpoint."""
    table = as_polars(ask(table_of(kind)))
    assert table["g"].to_list() == ["b", "z", "a"]
    assert table["n"].to_list() == [1, 0, 3]
    assert table["present"].to_list() == [1, 0, 2]
    assert table["k"].to_list() == [2, 0, 10]
    assert table["half"].to_list() == pytest.approx([2, 0, 10], abs=1e-3)
    assert table["x"].to_list() == pytest.approx([2, 5, 2], abs=1e-2)
    assert table["late"].to_list() == pytest.approx([0, 0.5, 2 / 3], abs=1e-3)
    assert table["lates"].to_list() == [0, 0, 2]


def test_dtypes_follow_from_the_question_and_never_from_the_data(kind):
    """Full, empty, all missing, one row: one schema; counts are Int64."""
    nothing = FRAME.with_columns(pl.lit(None).cast(FRAME.schema[c]).alias(c) for c in FRAME.columns)
    for frame in (FRAME, FRAME.clear(), nothing, FRAME.head(1)):
        table = ask(table_of(kind, frame))
        assert {c: t for c, t in as_polars(table).schema.items() if c != "g"} == TYPES
        if kind == "pandas":
            assert table["n"].dtype == np.dtype("int64")


def test_an_ungrouped_table_has_one_row(kind):
    for frame in (FRAME, FRAME.clear()):
        with dp.Session(eps=10 * EPS):
            table = as_kind(kind, frame).dp.agg(n=dp.count(), x=dp.clip_mean("x", bounds=(0, 10)), eps=EPS)
        assert len(table) == 1
        assert list(table.columns) == ["n", "x"]
        assert table["n"].to_list() == [len(frame)]


def test_ungrouped_answers_are_numbers_and_grouped_ones_are_tables(kind):
    df = as_kind(kind, FRAME)
    with dp.Session(eps=10):
        assert isinstance(df.dp.count(eps=1), int)
        assert isinstance(df.dp.clip_sum("k", bounds=(0, 9), eps=1), int)
        assert isinstance(df.dp.clip_sum("x", bounds=(0, 9), eps=1), float)
        assert isinstance(df.dp.clip_mean("x", bounds=(0, 9), eps=1), float)
        assert isinstance(df.dp.groupby("g", keys=["a"]).count(eps=1), TABLE_TYPES)


def test_default_names_and_aliases(kind):
    df = table_of(kind)
    with dp.Session(eps=10):
        by = df.dp.groupby("g", keys=["a"])
        assert list(by.count(eps=1).columns) == ["g", "count"]
        assert list(by.count("x", eps=1).columns) == ["g", "x_count"]
        assert list(by.clip_sum("x", bounds=(0, 1), eps=1).columns) == ["g", "x_sum"]
        assert list(by.clip_mean("x", B=1, eps=1).columns) == ["g", "x_mean"]
        mixed = by.dp_agg(dp.count().alias("rows"), dp.count("x"), m=dp.clip_mean("late"), eps=1)
        assert list(mixed.columns) == ["g", "rows", "x_count", "m"]


def test_agg_and_dp_agg_groupby_and_group_by_are_the_same_objects():
    assert dp.FrameDP.agg is dp.FrameDP.dp_agg
    assert dp.FrameDP.groupby is dp.FrameDP.group_by


def test_a_lazy_answer_is_an_eager_table_that_never_changes():
    """Case 59: noise is drawn once, and one charge is made."""
    with dp.Session(eps=1) as s:
        table = FRAME.lazy().dp.groupby("g", keys=["a", "b"]).count(eps=0.5)
        assert isinstance(table, pl.DataFrame)
        assert table.lazy().collect().equals(table)
        assert s.last.value.equals(table)
        assert s.report().height == 1


# ---- H5: numbers leave plain ----


@pytest.fixture(params=["pandas", "polars"])
def answers(request):
    """An integer and a float answer."""
    df = as_kind(request.param, FRAME)
    with dp.Session(eps=10):
        return df.dp.count(eps=0.5), df.dp.clip_mean("x", bounds=(-7.5, 10), eps=0.5)


def test_h5_text_and_formats_are_digits_only(answers):
    n, m = answers
    assert str(n) == f"{n}" == f"{n!s}" == "%s" % n == "%d" % n == str(int(n))  # noqa: UP031
    assert f"{n:,}" == f"{int(n):,}"
    assert f"{n:>8d}" == f"{int(n):>8d}"
    assert str(m) == f"{m}" == "%s" % m == str(float(m))  # noqa: UP031
    assert f"{m:.2f}" == f"{float(m):.2f}" == "%.2f" % m  # noqa: UP031
    assert f"{m:.1%}" == f"{float(m):.1%}"
    assert "±" not in str(n) + str(m)


def test_h5_csv_json_and_sql(answers):
    n, m = answers
    out = io.StringIO()
    csv.writer(out).writerow([n, m])
    assert out.getvalue().strip() == f"{int(n)},{float(m)}"
    assert json.dumps({"n": n, "m": m}) == json.dumps({"n": int(n), "m": float(m)})
    base = sqlite3.connect(":memory:")
    base.execute("create table t (n integer, m real)")
    base.execute("insert into t values (?, ?)", (n, m))
    row = base.execute("select n, m, typeof(n), typeof(m) from t").fetchone()
    assert row == (int(n), float(m), "integer", "real")


def test_h5_frames_and_arrays(answers, tmp_path):
    n, m = answers
    df = pd.DataFrame({"n": [n], "m": [m]})
    assert df.dtypes.astype(str).to_dict() == {"n": "int64", "m": "float64"}
    assert df.to_csv(index=False).splitlines()[1] == f"{int(n)},{float(m)}"
    assert pd.Series([n, 1]).sum() == n + 1
    assert pl.Series([m]).dtype == pl.Float64
    assert pl.Series([n]).dtype == pl.Int64
    table = pl.DataFrame({"n": [n], "m": [m]})
    assert table.schema == {"n": pl.Int64, "m": pl.Float64}
    assert table.write_csv().splitlines()[1] == f"{int(n)},{float(m)}"
    assert table.select(pl.lit(n).cast(pl.Int64)).item() == n
    assert np.array([n]).dtype.kind == "i"
    assert np.array([n, m]).dtype == np.float64
    table.write_parquet(tmp_path / "t.parquet")
    assert pl.read_parquet(tmp_path / "t.parquet").rows() == [(int(n), float(m))]


def test_h5_arithmetic_gives_plain_numbers(answers):
    n, m = answers
    for result in (n + 1, n * 2, -n, abs(n), n // 2, int(n), round(n), n & 1):
        assert type(result) is int
    for result in (m + 1, n / 2, m * n, -m, abs(m), float(m), float(n), round(m, 2), math.sqrt(abs(m))):
        assert type(result) is float
    assert math.floor(m) == math.floor(float(m))
    assert decimal.Decimal(n) == int(n)
    assert Fraction(m) == Fraction(float(m))
    assert struct.pack("<qd", n, m) == struct.pack("<qd", int(n), float(m))
    assert list(range(10))[n - n] == 0
    assert {n: "n"}[int(n)] == "n"
    assert {m: "m"}[float(m)] == "m"
    assert hash(n) == hash(int(n))
    assert sorted([m, 99.0, -99.0]) == [-99.0, m, 99.0]
    assert (n == int(n), n < n + 1, m >= m) == (True, True, True)


def test_h5_the_statistics_module_averages_answers(answers):
    """It makes its result by calling the type of the data with a plain number."""
    n, m = answers
    assert statistics.mean([n, n]) == n
    assert statistics.fmean([n, n]) == n
    assert statistics.mean([m, m]) == m
    assert statistics.median([m, m, 1e9]) == m


def test_h5_answers_survive_copying_and_pickling(answers):
    for x in answers:
        for twin in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            assert twin == x
            assert type(twin) is type(x)
            assert repr(twin) == repr(x)
            assert twin.interval(0.9) == x.interval(0.9)


def test_h5_repr_and_notebook_show_the_error_and_the_unit(answers):
    for x in answers:
        for text in (repr(x), x._repr_html_()):
            assert "±" in text
            assert "eps=0.5" in text
            assert "per row" in text
            assert "95%" in text.replace("95 %", "95%")
        shown, margin = (float(part) for part in repr(x).split(" (")[0].split(" ± "))
        assert abs(shown - x) <= margin / 10
        assert shown == x or isinstance(x, float)


def test_a_scalars_ci_is_the_level_that_repr_shows():
    with dp.Session(eps=10):
        n = FRAME.dp.count(eps=0.5, ci=0.5)
    low, high = n.interval(0.5)
    assert "50%" in repr(n).replace("50 %", "50%")
    assert f"± {max(high - n, n - low):.0f}" in repr(n)


def test_scalars_carry_std_and_interval():
    """Discrete Laplace, scale 4: variance 2p/(1-p)^2, and the interval is the least w with enough mass."""
    p = math.exp(-1 / 4)
    with dp.Session(eps=10):
        n = FRAME.dp.count(eps=0.25)
    assert n.std == pytest.approx(math.sqrt(2 * p) / (1 - p), rel=1e-9)
    for level in (0.5, 0.9, 0.95, 0.999):
        w = next(w for w in range(1000) if 1 - 2 * p ** (w + 1) / (1 + p) >= level)
        assert n.interval(level) == (n - w, n + w)
    assert n.interval() == n.interval(0.95)
    for bad in (95, 0, 1, "0.9", None, True):
        with pytest.raises(dp.InputError, match="between 0 and 1"):
            n.interval(bad)


# ---- ci ----


def test_ci_adds_a_margin_beside_every_output(kind):
    df = as_kind(kind, FRAME)
    with dp.Session(eps=10) as s:
        table = df.dp.groupby("g", keys=["a", "z"]).dp_agg(
            n=dp.count(), x=dp.clip_mean("x", bounds=(0, 10)), eps=1, ci=0.9
        )
        ends = as_polars(s.last.interval(0.9))
        assert s.spent == 1
    assert list(table.columns) == ["g", "n", "n_moe", "x", "x_moe"]
    got = as_polars(table)
    assert got["n_moe"].to_list() == [
        max(v - lo, hi - v) for v, lo, hi in zip(got["n"], ends["n_low"], ends["n_high"])
    ]
    assert (got["x_moe"] >= 0).all()
    assert (got["x_moe"] <= 10).all()
    assert ends.columns == ["g", "n_low", "n_high", "x_low", "x_high"]


def test_margins_of_counts_cover_as_often_as_the_law_says():
    """Case 104: 20,000 empty groups at eps 1/2; 6 sd of a binomial is a false alarm of 2e-9."""
    p, groups = math.exp(-1 / 2), 20_000
    w = next(w for w in range(1000) if 1 - 2 * p ** (w + 1) / (1 + p) >= 0.95)
    truth = 1 - 2 * p ** (w + 1) / (1 + p)
    with dp.Session(eps=10):
        table = FRAME.dp.groupby("k", keys=range(100, 100 + groups)).dp_agg(n=dp.count(), eps=0.5, ci=0.95)
    assert table["n_moe"].unique().to_list() == [w]
    covered = (table["n"].abs() <= table["n_moe"]).mean()
    assert abs(covered - truth) < 6 * math.sqrt(truth * (1 - truth) / groups)


def test_margins_of_means_cover():
    """4,000 groups of 50 rows at eps 1, mean 3 of bounds (0, 10); coverage at least .94 - 6 sd of sampling."""
    groups = 4_000
    df = pl.DataFrame({"k": np.repeat(np.arange(groups), 50), "x": np.tile([1.0, 5.0], groups * 25)})
    with dp.Session(eps=10) as s:
        table = df.dp.groupby("k", keys=range(groups)).dp_agg(
            m=dp.clip_mean("x", bounds=(0, 10)), eps=1, ci=0.95
        )
        ends = s.last.interval(0.95)
    assert ((table["m"] - 3).abs() <= table["m_moe"]).mean() > 0.94 - 6 * math.sqrt(0.05 * 0.95 / groups)
    inside = ((ends["m_low"] <= 3) & (ends["m_high"] >= 3)).mean()
    assert inside > 0.94 - 6 * math.sqrt(0.05 * 0.95 / groups)


# ---- post-processing ----


def test_counts_may_be_negative_unless_raised_to_zero(kind):
    """Case 98: 2,000 empty groups at eps 1/10: (1 - tanh(.05))/2 = .475 are negative (6 sd: 134)."""
    df = as_kind(kind, FRAME)
    with dp.Session(eps=10) as s:
        by = df.dp.groupby("k", keys=range(100, 2100))
        raw = as_polars(by.count(eps=0.1))["count"]
        assert 950 - 134 < (raw < 0).sum() < 950 + 134
        raised = as_polars(by.count(eps=0.1, nonnegative=True))["count"]
        assert (raised >= 0).all()
        assert raised.dtype == pl.Int64
        assert (raised == 0).sum() > 800
        assert (as_polars(s.last.interval())["count_low"] >= 0).all()
        assert s.spent == Fraction(1, 5)


def test_round_keeps_decimals_and_integers_stay_integers(kind):
    df = as_kind(kind, FRAME)
    with dp.Session(eps=10):
        m = df.dp.clip_mean("x", bounds=(0, 10), eps=0.5, round=2)
        assert float(m) == round(float(m), 2)
        tens = df.dp.groupby("k", keys=range(200)).count(eps=0.05, round=-1)
        assert as_polars(tens)["count"].dtype == pl.Int64
        assert all(v % 10 == 0 for v in tens["count"].to_list())
        n = df.dp.count(eps=0.05, round=-2)
        assert isinstance(n, int)
        assert n % 100 == 0
        assert isinstance(df.dp.count(eps=1, round=0), int)


def test_decimals_do_not_make_a_count_a_float(kind):
    """round=2 is meant for the means beside it."""
    df = as_kind(kind, FRAME)
    with dp.Session(eps=10):
        assert isinstance(df.dp.count(eps=1, round=2), int)
        table = df.dp.agg(n=dp.count(), m=dp.clip_mean("x", bounds=(0, 10)), eps=1, round=2, ci=0.9)
    assert as_polars(table)["n"].dtype == pl.Int64
    assert as_polars(table)["n_moe"].dtype == pl.Int64


def test_post_processing_of_one_question_leaves_the_others(kind):
    df = as_kind(kind, FRAME)
    with dp.Session(eps=10 * EPS):
        table = df.dp.agg(
            a=dp.clip_mean("x", bounds=(-10, 7), round=0),
            b=dp.clip_sum("k", bounds=(-9, -1), nonnegative=True),
            c=dp.clip_sum("k", bounds=(-9, -1)),
            eps=EPS,
        )
    row = as_polars(table).row(0, named=True)
    assert row["a"] == 4.0  # (1 + 2 + 7 + 5 + 3)/5 = 3.6
    assert (row["b"], row["c"]) == (0, -6)


# ---- H3: the answer that was not kept ----


def test_h3_the_session_keeps_the_answer(kind, tmp_path):
    frame = as_kind(kind, FRAME)
    with dp.Session(eps=3) as s:
        table = frame.dp.groupby("g", keys=["a", "b"]).dp_agg(
            n=dp.count(), x=dp.clip_mean("x", bounds=(0, 10)), eps=1, label="first"
        )
        assert as_polars(s.last.value).equals(as_polars(table))
        assert s["first"] is s.last
        assert s.releases == [s.last]
        assert s.last.label == "first"
        json.dumps(s.last.facts)
        s.last.interval(0.9)
        s.last.write(tmp_path / "t.csv")
        assert s.spent == 1
        with pytest.warns(dp.DPWarning, match=r"2nd time.*charged again.*s\['first'\]"):
            frame.dp.groupby("g", keys=["a", "b"]).dp_agg(
                n=dp.count(), x=dp.clip_mean("x", bounds=(0, 10)), eps=1
            )
        assert s.spent == 2
        assert s.report()["repeat_of"].to_list() == [None, 0]
        with pytest.raises(KeyError, match="first"):
            s["fist"]
    assert pl.read_csv(tmp_path / "t.csv").columns == ["g", "n", "x"]


def test_h3_a_release_holds_no_reference_to_the_frame(kind):
    frame = as_kind(kind, FRAME.clone())
    gone = weakref.ref(frame)
    with dp.Session(eps=3) as s:
        number = frame.dp.count(eps=1)
        frame.dp.groupby("g", keys=["a"]).dp_agg(x=dp.clip_mean("x", bounds=(0, 10)), eps=1)
        del frame
        gc.collect()
        assert gone() is None
        assert s.last.value is not None
        assert number.release.facts["outputs"]


def test_h3_a_pickled_release_holds_no_true_value():
    """At eps = 1e-6 a noisy integer equals the true one with probability below 1e-6."""
    df = pl.DataFrame({"x": [97_713_157] * 1_009 + [-5], "g": ["a"] * 1_010})
    exact = [1_010, 1_009, 97_713_157 * 1_009, 97_713_157 * 1_009 - 5]
    with dp.Session(eps=3) as s:
        df.dp.clip_sum("x", bounds=(-10, 100_000_000), eps=1e-6)
        df.dp.groupby("g", keys=["a", "b"]).dp_agg(
            n=dp.count(),
            s=dp.clip_sum("x", bounds=(-10, 100_000_000)),
            m=dp.clip_mean("x", bounds=(-10, 100_000_000)),
            eps=1e-6,
        )
        for release in s.releases:
            data = pickle.dumps(release) + repr(release).encode() + repr(release.facts).encode()
            for value in exact:
                assert struct.pack("<q", value) not in data
                assert struct.pack("<d", value) not in data
                assert value < 10_000 or str(value).encode() not in data  # four digits occur by chance
            assert struct.pack("<q", 97_713_157) not in data
            assert b"97713157" not in data
            twin = pickle.loads(pickle.dumps(release))
            assert twin.facts == release.facts
            assert repr(twin) == repr(release)


# ---- Release ----


def test_a_release_has_value_std_interval_facts_cost_and_label(kind):
    df = as_kind(kind, FRAME)
    with dp.Session(eps=3):
        r = df.dp.plan.clip_sum("k", bounds=(0, 9), eps=0.5, label="k").release()
    p = math.exp(-1 / 18)  # scale 9/.5
    assert isinstance(r, dp.Release)
    assert isinstance(r.value, int)
    assert r.std == pytest.approx(math.sqrt(2 * p) / (1 - p), rel=1e-6)
    assert r.cost == 0.5
    assert r.label == "k"
    low, high = r.interval(0.95)
    assert low < r.value < high
    assert "±" in repr(r)
    assert "clip_sum('k', bounds=(0, 9))" in repr(r)
    assert "clip_sum" in r._repr_html_()


def test_a_grouped_release_shapes_std_and_interval_like_its_table(kind):
    with dp.Session(eps=3):
        r = (
            as_kind(kind, FRAME)
            .dp.plan.groupby("g", keys=["a", "z"])
            .dp_agg(n=dp.count(), m=dp.clip_mean("x", bounds=(0, 10)), eps=1)
            .release()
        )
    assert type(r.std) is type(r.value)
    assert list(r.std.columns) == ["g", "n", "m"]
    assert r.std["g"].to_list() == ["a", "z"]
    assert list(r.interval(0.5).columns) == ["g", "n_low", "n_high", "m_low", "m_high"]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_stranger_recomputes_scale_and_margin_from_the_side_car(kind, ending, tmp_path):
    """From the file alone: Laplace scale l1 * parts / eps, margin from the discrete law."""
    path = tmp_path / f"cities.{ending}"
    with dp.Session(eps=3) as s:
        table = (
            as_kind(kind, FRAME)
            .dp.groupby("g", keys=["a", "b"])
            .dp_agg(n=dp.count(), s=dp.clip_sum("k", bounds=(0, 9)), eps={"n": 0.25, "s": 0.5}, label="t")
        )
        s.last.write(path)
    read = pl.read_parquet(path) if ending == "parquet" else pl.read_csv(path)
    assert read.columns == ["g", "n", "s"]
    assert read.rows() == as_polars(table).rows()
    facts = json.loads((tmp_path / f"cities.{ending}.json").read_text())
    assert facts["unit"] == "row"
    assert facts["neighbors"] == "add_remove"
    assert facts["groups"] == 2
    assert facts["grouped_by"] == ["g"]
    assert float(facts["eps"]) == 0.75
    assert float(facts["delta"]) == 0
    assert facts["dpframe"] == dp.__version__
    for name, eps, reach in (("n", 0.25, 1), ("s", 0.5, 9)):
        f = facts["outputs"][name]
        assert f["mechanism"] == "laplace"
        assert f["l1"] == reach
        assert f["scale"] == pytest.approx(f["l1"] * f["fused_parts"] / eps, rel=1e-6)
        p = math.exp(-1 / f["scale"])
        margin = next(w for w in range(10_000) if 1 - 2 * p ** (w + 1) / (1 + p) >= 0.95)
        assert f["margin_95"] == margin
    assert facts["outputs"]["s"]["bounds"] == [0, 9]


def test_the_side_car_tells_what_each_output_of_its_own_eps_cost(tmp_path):
    """Without it a stranger can't tell which part of eps = .75 made which scale."""
    with dp.Session(eps=3) as s:
        FRAME.dp.agg(n=dp.count(), s=dp.clip_sum("k", bounds=(0, 9)), eps={"n": 0.25, "s": 0.5})
        outputs = s.last.facts["outputs"]
    assert float(outputs["n"]["eps"]) == 0.25
    assert float(outputs["s"]["eps"]) == 0.5


def test_scalar_releases_are_written_as_one_cell(tmp_path):
    with dp.Session(eps=3) as s:
        n = FRAME.dp.count(eps=1)
        s.last.write(str(tmp_path / "n.csv"))
        s.last.write(tmp_path / "n.parquet")
        with pytest.raises(dp.InputError, match=r"parquet.*csv"):
            s.last.write(tmp_path / "n.xlsx")
    assert (tmp_path / "n.csv").read_text().split() == ["count", str(n)]
    assert pl.read_parquet(tmp_path / "n.parquet").item() == n
    assert not (tmp_path / "n.xlsx").exists()
    assert not (tmp_path / "n.xlsx.json").exists()


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_intervals_periods_and_object_keys_can_be_written(ending, tmp_path):
    df = pd.DataFrame(
        {
            "band": pd.cut([5, 30], [0, 18, 40]),
            "month": pd.PeriodIndex(["2026-01", "2026-02"], freq="M"),
            "flag": pd.Series([True, None], dtype=object),
        }
    )
    with dp.Session(eps=10 * EPS) as s:
        df.dp.groupby(
            "band",
            "month",
            "flag",
            keys=[
                (pd.Interval(0, 18), pd.Period("2026-01", "M"), True),
                (pd.Interval(18, 40), pd.Period("2026-02", "M"), None),
            ],
        ).count(eps=EPS)
        s.last.write(tmp_path / f"t.{ending}")
    read = pl.read_parquet(tmp_path / "t.parquet") if ending == "parquet" else pl.read_csv(tmp_path / "t.csv")
    assert read["count"].to_list() == [1, 1]
    assert read["band"].to_list() == ["(0, 18]", "(18, 40]"]
    assert read["month"].to_list() == ["2026-01", "2026-02"]


# ---- budgets within a table ----


def test_a_dict_of_eps_is_absolute_and_unfuses():
    """Each output at its own eps: Laplace scales 1/.2 and 1/.8 of its own reach, 1.0 in all."""
    plan = FRAME.dp.plan.agg(n=dp.count(), s=dp.clip_sum("x", bounds=(0, 10)), eps={"n": 0.2, "s": 0.8})
    assert plan.eps == 1
    assert plan.scale["n"] == pytest.approx(5, rel=1e-6)
    assert plan.scale["s"] == pytest.approx(12.5, rel=1e-6)
    with dp.Session(eps=1) as s:
        plan.release()
        assert s.spent == 1


def test_fused_questions_share_one_eps_and_blocks_share_it_equally():
    """Two blocks, eps/2 each; a and c share x's noise."""
    plan = FRAME.dp.plan.agg(
        n=dp.count(),
        a=dp.clip_mean("x", bounds=(0, 10)),
        b=dp.clip_mean("k", bounds=(0, 10)),
        c=dp.clip_sum("x", bounds=(0, 10)),
        eps=1,
    )
    assert plan.eps == 1
    assert plan.scale["a"] == pytest.approx(2, rel=1e-6)  # rows
    assert plan.scale["b"] == pytest.approx(2, rel=1e-6)
    alone = FRAME.dp.plan.clip_mean("x", bounds=(0, 10), eps=1)
    assert alone.scale == pytest.approx(1, rel=1e-6)
    text = str(plan.explain())
    assert "2 parts" in text
    assert re.search(r"a: clip_mean.*\n.*\n.*shared with (n, )?c at no extra cost", text)


def test_an_aggregates_own_eps_adds_to_the_calls():
    plan = FRAME.dp.plan.agg(n=dp.count(eps=0.25), s=dp.clip_sum("x", bounds=(0, 10)), eps=0.5)
    assert plan.eps == 0.75
    assert plan.scale["n"] == pytest.approx(4, rel=1e-6)
    assert plan.scale["s"] == pytest.approx(20, rel=1e-6)
    all_own = FRAME.dp.plan.agg(dp.count(eps=0.25), dp.clip_mean("late", eps=0.5))
    assert all_own.eps == 0.75


def test_named_and_positional_questions_are_the_same_plan():
    named = FRAME.dp.plan.agg(n=dp.count(), m=dp.clip_mean("late"), eps=1)
    positional = FRAME.dp.plan.agg(dp.count().alias("n"), dp.clip_mean("late").alias("m"), eps=1)
    assert named.plan == positional.plan


# ---- plans ----


def test_answers_are_the_values_of_planned_releases(kind, no_noise):
    """df.dp.clip_mean(...) is exactly df.dp.plan.clip_mean(...).release().value."""
    df = as_kind(kind, FRAME)
    with dp.Session(eps=100) as s:
        asked = {"bounds": (0, 10), "eps": 0.5, "round": 3, "label": "m"}
        direct = df.dp.clip_mean("x", **asked)
        planned = df.dp.plan.clip_mean("x", **asked).release().value
        assert direct == planned
        assert type(direct) is type(planned)
        assert repr(direct) == repr(planned)
        table = df.dp.groupby("g", keys=["a"]).count(eps=0.5)
        again = df.dp.plan.groupby("g", keys=["a"]).count(eps=0.5).release().value
        assert as_polars(table).equals(as_polars(again))
        assert s.report()["question"].n_unique() == 2
        assert s.spent == 2


def test_making_and_reading_a_plan_costs_nothing_and_reads_no_cell():
    """The source would fail if it were read."""

    def never(*_):
        raise AssertionError("read")

    lazy = register_io_source(never, schema={"x": pl.Float64, "g": pl.String})
    with dp.Session(eps=1) as s:
        for plan in (
            lazy.dp.plan.clip_mean("x", bounds=(0, 1), eps=0.5),
            lazy.dp.plan.groupby("g", keys=["a"]).dp_agg(n=dp.count(), eps=0.5),
            lazy.dp.plan.count(error=10),
        ):
            repr(plan), plan._repr_html_(), str(plan.explain()), plan.cost, plan.error, plan.l1, plan.scale
        assert s.report().height == 0


def test_a_plan_released_twice_is_charged_twice(kind):
    """Case 46."""
    plan = as_kind(kind, FRAME).dp.plan.count(eps=0.5)
    with dp.Session(eps=1) as s:
        a, b = plan.release(), plan.release()
        assert a is not b
        assert s.spent == 1
        with pytest.raises(dp.BudgetExceeded):
            plan.release()


def test_plans_tell_sensitivity_mechanism_cost_and_error(kind):
    df = as_kind(kind, FRAME)
    plan = df.dp.plan.clip_sum("x", bounds=(-3, 10), eps=0.5)
    assert (plan.l1, plan.l2) == (10, 10)
    assert plan.mechanism == "laplace"
    assert plan.scale == pytest.approx(20, rel=1e-6)
    assert (plan.eps, plan.delta, plan.cost) == (0.5, 0, 0.5)
    assert plan.error == pytest.approx(20 * math.log(20), rel=1e-3)
    text = str(plan.explain())
    for part in (
        "clip_sum('x', bounds=(-3, 10))",
        "L1 10",
        "L2 10",
        "eps=0.5",
        "delta=0",
        "laplace",
        "scale 20",
    ):
        assert part in text
    assert "one row appears or vanishes" in text
    assert repr(plan.explain()) == text
    assert "sensitivity" in plan._repr_html_()
    both = df.dp.plan.agg(n=dp.count(), s=dp.clip_sum("x", bounds=(-3, 10)), eps=0.5)
    assert set(both.l1) == {"n", "s"}


def test_plans_under_replace_one_say_so():
    with dp.Session(eps=1, neighbors="replace_one"):
        plan = FRAME.dp.plan.clip_sum("x", bounds=(20, 100), eps=0.5)
        assert plan.l1 == 100
        assert "one row becomes another" in str(plan.explain())
        grouped = FRAME.dp.plan.groupby("g", keys=["a", "b"]).clip_sum("x", bounds=(-3, 10), eps=0.5)
        assert grouped.l1 == 20
        assert grouped.l2 == pytest.approx(14.142136, abs=1e-4)


def test_explain_names_delta_and_gaussian_when_they_are_used():
    plan = FRAME.dp.plan.count(eps=0.5, delta=1e-6, mechanism="gaussian")
    assert plan.mechanism == "gaussian"
    assert plan.delta == 1e-6
    text = str(plan.explain())
    assert "gaussian" in text
    assert "delta=1e-06" in text
    free = FRAME.dp.plan.count(eps=0.5, delta=1e-6)
    assert (free.mechanism, free.delta) == ("laplace", 0)


def test_explain_of_a_grouped_mean_prints_the_error_at_three_sizes():
    text = str(FRAME.dp.plan.groupby("g", keys=["a", "b"]).clip_mean("x", bounds=(0, 10), eps=0.5).explain())
    for part in ("100 rows", "1,000 rows", "10,000 rows", "2 listed by g"):
        assert part in text


def test_explain_says_how_missing_cells_are_treated_and_what_is_left():
    with dp.Session(eps=1):
        text = str(FRAME.dp.plan.count(eps=0.5).explain())
    assert "null and NaN are left out" in text
    assert "infinities are clipped" in text
    assert "eps=1" in text


@pytest.mark.parametrize("bad", [{"eps": 0.5, "error": 3}, {"error": -1}, {"error": 3, "rows": 0}])
def test_wrong_errors_are_refused(bad):
    with pytest.raises(dp.InputError):
        FRAME.dp.plan.count(**bad)


def test_error_finds_the_least_eps_of_the_designs_example():
    """Error 500 at 10,000 rows of (0, 1e5) needs eps .06 (2.996 * 1e5 / 5e6)."""
    df = pl.DataFrame({"income": [1.0]})
    plan = df.dp.plan.clip_mean("income", bounds=(0, 1e5), error=500, rows=10_000)
    assert plan.eps == pytest.approx(0.06, abs=0.0002)
    assert plan.error <= 500
    less = df.dp.plan.clip_mean("income", bounds=(0, 1e5), eps=round(plan.eps - 0.0002, 6))
    assert less.plan.error(10_000) > 500
    fraction = df.dp.plan.clip_mean("income", bounds=(0, 1e5), error=0.01, relative_to=50_000, rows=10_000)
    assert fraction.eps == plan.eps


def test_error_works_alone_for_counts_and_sums(kind):
    """By the discrete law: P(|Z| > w) = 2 p^(w+1)/(1+p)."""
    df = as_kind(kind, FRAME)
    plan = df.dp.plan.count(error=10)
    p = math.exp(-plan.eps)
    assert 2 * p**11 / (1 + p) <= 0.05 < 2 * p**10 / (1 + p)
    assert plan.error == 10
    total = df.dp.plan.clip_sum("x", bounds=(0, 50), error=1000)
    assert total.eps == pytest.approx(50 * math.log(20) / 1000, rel=0.01)
    assert total.error <= 1000
    share = df.dp.plan.count(error=0.01, relative_to=1000)
    assert share.eps == plan.eps
    with dp.Session(eps=3) as s:
        df.dp.count(error=10)
        assert s.spent == plan.cost.eps


def test_equal_questions_are_equal_plans_and_hash_alike(kind):
    df, other = as_kind(kind, FRAME), as_kind(kind, FRAME.reverse())

    def plan(frame, **more):
        asked = {"n": dp.count(), "m": dp.clip_mean("x", bounds=(0, 10)), "eps": 0.5, **more}
        return frame.dp.plan.groupby("g", keys=["a", "b"]).dp_agg(**asked).plan

    assert plan(df) == plan(other)
    assert hash(plan(df)) == hash(plan(other))
    assert plan(df) != plan(df, eps=0.25)


def test_plans_with_other_keys_are_other_plans(kind):
    """Equal plans ask for the same table: same groups, same order."""
    df = as_kind(kind, FRAME)
    plans = [
        df.dp.plan.groupby("g", keys=k).count(eps=1).plan for k in (["a", "b"], ["b", "a"], ["a", "c"], ["a"])
    ]
    assert len(set(plans)) == 4


@pytest.mark.parametrize(
    ("cells", "one", "two"),
    [
        (pd.Series(["a"], dtype=object), ["a", "b"], ["c", "d"]),
        (pd.Series(pd.Categorical(["a"])), ["a", "b"], ["c", "d"]),
        (pd.Series(pd.cut([5], [0, 18, 40])), [pd.Interval(0, 18)], [pd.Interval(18, 40)]),
        (pd.Series(pd.PeriodIndex(["2026-01"], freq="M")), ["2026-01"], ["2026-02"]),
    ],
)
def test_plans_with_other_keys_of_looked_up_columns_are_other_plans(cells, one, two):
    """And asking for other groups is no repetition."""
    df = pd.DataFrame({"g": cells})
    plans = [df.dp.plan.groupby("g", keys=k).count(eps=1) for k in (one, two)]
    assert plans[0].plan != plans[1].plan
    with dp.Session(eps=3) as s:
        for p in plans:
            p.release()
        assert s.report()["repeat_of"].to_list() == [None, None]


def test_plans_are_frozen():
    plan = FRAME.dp.plan.count(eps=0.5).plan
    with pytest.raises((AttributeError, TypeError)):
        plan.event = None


CANARY, CANARY_TEXT = 7_731_904, "canary7731904"


def canary_frame(kind):
    frame = pl.DataFrame(
        {"g": [CANARY_TEXT], "x": [float(CANARY)], "k": [CANARY], "day": [dt.date(2026, 1, 1)]}
    )
    df = as_kind(kind, frame)
    if kind == "pandas":
        df["c"] = pd.Categorical([CANARY_TEXT])
        df["o"] = pd.Series([CANARY_TEXT], dtype=object)
    return df


def test_plans_hold_no_cell(kind):
    df = canary_frame(kind)
    columns = ["g", "k", *(["c", "o"] if kind == "pandas" else [])]
    for by in columns:
        key = 5 if by == "k" else "a"
        bound = df.dp.plan.groupby(by, keys=[key]).dp_agg(
            n=dp.count(), m=dp.clip_mean("x", bounds=(0, 9)), eps=1
        )
        data = pickle.dumps(bound.plan)
        texts = f"{bound.plan!r}{bound!r}{bound.explain()}{bound._repr_html_()}{df.dp!r}{df.dp.groupby(by)!r}"
        for shown in (data, texts.encode()):
            assert CANARY_TEXT.encode() not in shown
            assert str(CANARY).encode() not in shown
        assert struct.pack("<q", CANARY) not in data
        assert struct.pack("<d", CANARY) not in data
        assert pickle.loads(data) == bound.plan


# ---- lazy frames ----


def counted_source(frame: pl.DataFrame):
    """A lazy frame that counts how often it is scanned."""
    scans = []

    def scan(with_columns, predicate, n_rows, batch_size):
        scans.append(with_columns)
        out = frame if with_columns is None else frame.select(with_columns)
        yield out if predicate is None else out.filter(predicate)

    return register_io_source(scan, schema=frame.schema), scans


def test_many_measures_take_one_scan_of_the_used_columns():
    """Case 115."""
    lazy, scans = counted_source(FRAME)
    with dp.Session(eps=10 * EPS) as s:
        table = lazy.dp.groupby("g", keys=["a", "b"]).dp_agg(
            n=dp.count(),
            a=dp.clip_sum("k", bounds=(0, 9)),
            b=dp.clip_mean("x", bounds=(0, 10)),
            c=dp.count("x"),
            d=dp.clip_sum("x", bounds=(0, 5)),
            eps=EPS,
        )
        assert len(scans) == 1
        assert "late" not in (scans[0] or ["late"])
        s.last.interval(0.9), s.last.facts, s.last.value
        assert len(scans) == 1
    assert table["n"].to_list() == [3, 1]


def test_an_ungrouped_question_takes_one_scan():
    lazy, scans = counted_source(FRAME)
    with dp.Session(eps=10 * EPS):
        assert lazy.dp.count(eps=EPS) == 6
        assert len(scans) == 1
        assert lazy.dp.clip_sum("k", bounds=(0, 9), eps=EPS) == 21
        assert len(scans) == 2


def test_lazy_frames_that_cannot_be_resolved_cost_nothing(tmp_path):
    with dp.Session(eps=1) as s:
        missing = pl.scan_parquet(tmp_path / "none.parquet")
        with pytest.raises((FileNotFoundError, dp.DPError, pl.exceptions.PolarsError)):
            missing.dp.count(eps=0.5)
        wrong = FRAME.lazy().select("nope")
        with pytest.raises((dp.DPError, pl.exceptions.PolarsError)):
            wrong.dp.count(eps=0.5)
        with pytest.raises(dp.InputError, match="Did you mean 'late'"):
            FRAME.lazy().dp.clip_mean("lat", eps=0.5)
        assert s.report().height == 0


def test_an_engine_failure_keeps_the_charge_and_its_words():
    """Decision 2: a failure after the charge keeps it. Promise: no cell in the error."""

    def fail(df):
        raise ValueError(CANARY_TEXT)

    lazy = FRAME.lazy().map_batches(fail, schema=FRAME.schema)
    with dp.Session(eps=1) as s:
        with pytest.raises(dp.ReleaseFailed) as caught:
            lazy.dp.count(eps=0.5)
        assert s.spent == 0.5
        assert s.releases == []
    assert CANARY_TEXT not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


# ---- the namespace ----


def test_a_column_named_dp_is_read_by_brackets_and_can_be_asked(kind):
    """Case 58."""
    df = as_kind(kind, pl.DataFrame({"dp": [1, 2, 3]}))
    with dp.Session(eps=10 * EPS):
        assert df.dp.clip_sum("dp", bounds=(0, 9), eps=EPS) == 6
        assert df.dp.groupby("dp", keys=[3, 9]).count(eps=EPS)["count"].to_list() == [1, 0]
    if kind != "lazy":
        assert df["dp"].to_list() == [1, 2, 3]


def test_registering_again_changes_nothing():
    before = pd.DataFrame.dp, pl.DataFrame.dp, pl.LazyFrame.dp
    doors.register()
    assert (pd.DataFrame.dp, pl.DataFrame.dp, pl.LazyFrame.dp) == before


def test_polars_expressions_have_no_dp_of_ours():
    ours = getattr(pl.Expr, "dp", None)
    assert ours is None or not getattr(ours, "__module__", "").startswith("dpframe")


def test_dp_frame_is_the_same_door(kind, no_noise):
    df = as_kind(kind, FRAME)
    assert isinstance(dp.frame(df), dp.FrameDP)
    with dp.Session(eps=10):
        assert dp.frame(df).count(eps=1) == df.dp.count(eps=1) == 6


def test_copies_filters_and_pickles_of_a_frame_pay_from_the_same_session(kind):
    """Case 55: nothing lives on the accessor or the frame."""
    df = as_kind(kind, FRAME)
    frames = [df, df.head(2)]
    frames += [df.copy(), pickle.loads(pickle.dumps(df))] if kind == "pandas" else [df.clone()]
    with dp.Session(eps=1) as s:
        for f in frames:
            f.dp.count(eps=0.125)
        assert s.spent == Fraction(len(frames), 8)
    if kind == "pandas":
        assert df.attrs == {}


# ---- mutation ----


def test_a_pandas_frame_changed_after_planning_is_refused_before_the_charge():
    """Case 116: dtype changed, column gone, column doubled, key dtype changed."""

    def retype(df):
        df["x"] = df["x"].astype(str)

    def drop(df):
        df.drop(columns="x", inplace=True)

    def double(df):
        df.columns = ["g", "x", "x", "late"]

    def rekey(df):
        df["g"] = range(len(df))

    for change in (retype, drop, double, rekey):
        df = FRAME.to_pandas()
        bound = df.dp.plan.groupby("g", keys=["a"]).clip_mean("x", bounds=(0, 10), eps=0.5)
        change(df)
        with dp.Session(eps=1) as s:
            with pytest.raises(dp.InputError, match=r"'(x|g)'"):
                bound.release()
            assert s.report().height == 0


POLARS_CHANGES = {
    "retype": lambda df: df.replace_column(1, pl.Series("x", ["a"] * len(df))),
    "drop": lambda df: df.drop_in_place("x"),
    "rename": lambda df: setattr(df, "columns", ["g", "y", "k", "late"]),
    "rekey": lambda df: df.replace_column(0, pl.Series("g", range(len(df)))),
}


@pytest.mark.parametrize("change", POLARS_CHANGES)
def test_a_polars_frame_changed_after_planning_is_refused_before_the_charge(change):
    df = FRAME.clone()
    bound = df.dp.plan.groupby("g", keys=["a"]).clip_mean("x", bounds=(0, 10), eps=0.5)
    POLARS_CHANGES[change](df)
    with dp.Session(eps=1) as s:
        with pytest.raises(dp.InputError, match=r"'(x|g)'"):
            bound.release()
        assert s.report().height == 0


def test_a_grouping_kept_over_a_change_of_the_frame_sees_one_state_of_it():
    """A snapshot or the new frame, never a mixture: rows and values are of the same moment."""
    for df in (FRAME.to_pandas(), FRAME.clone()):
        by = df.dp.groupby("g", keys=["a"])
        if isinstance(df, pd.DataFrame):
            df.loc[len(df)] = ["a", 9.0, 7, True]
        else:
            df.extend(pl.DataFrame({"g": ["a"], "x": [9.0], "k": [7], "late": [True]}))
        with dp.Session(eps=10 * EPS):
            table = by.dp_agg(n=dp.count(), k=dp.clip_sum("k", bounds=(0, 9)), eps=EPS)
        assert (table["n"].to_list()[0], table["k"].to_list()[0]) in [(3, 10), (4, 17)]


def test_a_column_added_after_planning_does_no_harm(kind):
    df = as_kind(kind, FRAME)
    bound = df.dp.plan.count("x", eps=EPS)
    if kind == "pandas":
        df.insert(0, "new", 1)
    elif kind == "polars":
        df.insert_column(0, pl.Series("new", [1] * 6))
    with dp.Session(eps=2 * EPS):
        assert bound.release().value == 5


def test_swapped_arguments_are_refused(kind):
    """Case 119: eps where bounds belong, a column where eps belongs, bounds as two numbers."""
    df = as_kind(kind, FRAME)
    with dp.Session(eps=1) as s:
        for wrong in (
            lambda: df.dp.clip_mean("x", 0.5, (0, 10)),
            lambda: df.dp.clip_mean("x", (0, 10), 0.5),
            lambda: df.dp.clip_sum("x", 0, 10, eps=1),
            lambda: df.dp.count("x", 1e-6),
        ):
            with pytest.raises(TypeError, match=r"position.*Hint"):
                wrong()
        for wrong in (
            lambda: df.dp.clip_mean("x", bounds=0.5, eps=(0, 10)),
            lambda: df.dp.count(eps="x"),
            lambda: df.dp.clip_mean("x", bounds=(0, 10), eps=0.5, n=1e-6),
        ):
            with pytest.raises(dp.InputError):
                wrong()
        assert s.report().height == 0


def test_attainable_outputs_do_not_depend_on_the_data():
    """Case 100: float sums lie on one public grid, whatever the cells."""
    with dp.Session(eps=100):
        for cells in ([0.1, 0.2], [0.3, 1 / 3], [7.0, None], [math.pi, -math.e]):
            df = pl.DataFrame({"x": cells})
            step = None
            for _ in range(20):
                r = df.dp.plan.clip_sum("x", bounds=(-4, 10), eps=0.5).release()
                step = r.facts["outputs"]["x_sum"]["grid_step"]
                assert r.value / step == int(r.value / step)
            assert step == 2.0**-26  # 16/2**30, the least power of two that leaves 2**30 steps in 14


@pytest.mark.parametrize("decimals", [16, -16, 2**70, 1.5, True])
def test_decimals_beyond_a_float_are_refused_before_anything_is_spent(decimals):
    with dp.Session(eps=1) as s, pytest.raises(dp.InputError, match=r"round=.*Hint"):
        pl.DataFrame({"x": [1.0]}).dp.clip_mean("x", bounds=(0, 10), eps=1, round=decimals)
    assert s.spent == 0


def test_rounding_makes_no_answer_infinite():
    """A variance near 1e270 times 10**15 is within float64, and one near 1e300 would not be."""
    with dp.Session(eps=10**6):
        spread = pl.DataFrame({"x": [0.0, 1e135]}).dp.clip_var("x", bounds=(0, 1e135), eps=10**6, round=15)
    assert 0 < spread < 1e270
    assert rounded(np.array([1e300, 0.123456]), 15).tolist() == [1e300, 0.123456]
    assert rounded(np.array([125, -7]), -1).tolist() == [120, -10]
