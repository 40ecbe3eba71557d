"""Numbers that leave plain: their text, files, arithmetic, copies; and the answer that nobody kept."""

from __future__ import annotations

import copy
import csv
import decimal
import gc
import io
import json
import math
import pickle
import sqlite3
import statistics
import struct
import weakref
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tables import FRAME

import dpframe as dp
from conftest import as_kind, as_polars

pytestmark = pytest.mark.usefixtures("quiet")


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
