"""Groups that nobody listed, released: how often, with which schema, and that nothing tells what was dropped.

Measured frequencies: fixed sizes, one-sided binomial bounds with a false alarm of at most 1e-9 each.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import math
import pickle
from fractions import Fraction

import chance
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats as laws
from threshold_tools import appears, questions, thresholded

import dpframe as dp
from conftest import KINDS, as_kind, as_polars

ALARM = chance.ALARM


# ---- measured ----

SINGLES = 500_000


@pytest.fixture(scope="module")
def singles():
    """Half a million keys with one row each, and ten that many rows have."""
    rng = np.random.default_rng(4)
    k = np.concatenate([np.arange(SINGLES), -np.repeat(np.arange(1, 11), 400)])
    x = rng.integers(0, 11, size=len(k))
    return pl.DataFrame({"k": k, "x": x, "y": rng.random(len(k)), "u": np.arange(len(k))})


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", ["count", "sum", "mean", "fused", "two"])
def test_of_half_a_million_lone_rows_no_more_appear_than_delta_allows(quiet, singles, name, mechanism):
    """delta = 1e-3; the number that appears is binomial. Laplace thresholds are tight, so it is not far fewer, too."""
    delta = Fraction(1, 1000)
    with dp.Session(eps=10**6, delta=0.5):
        bound = singles.dp.plan.groupby("k").agg(**questions(name), eps=1, delta=delta, mechanism=mechanism)
        table = bound.release().value
    lone = table.filter(pl.col("k") >= 0).height
    allowed = float(delta) if mechanism == "laplace" else float(delta) / 2
    assert lone <= laws.binom.isf(ALARM, SINGLES, allowed)
    value = int(thresholded(bound.plan, singles.head(1))[0])
    p, _ = appears(bound.plan, value)
    assert laws.binom.ppf(ALARM, SINGLES, p) <= lone <= laws.binom.isf(ALARM, SINGLES, p)
    assert set(range(-10, 0)) <= set(table["k"].to_list()), "groups of 400 appear"
    assert table["k"].is_sorted()


@pytest.mark.parametrize("rows", [1, 3])
def test_of_units_with_four_keys_of_their_own_no_more_are_betrayed_than_delta_allows(quiet, rows):
    """125,000 units with four keys each: those with a key that appears."""
    units, delta = 125_000, 1e-3
    frame = pl.DataFrame(
        {"u": np.repeat(np.arange(units), 4 * rows), "k": np.repeat(np.arange(4 * units), rows)}
    )
    with dp.Session(eps=10**6, delta=0.5, unit="u"):
        table = frame.dp.groupby("k", max_groups=4, max_rows_per_group=rows).count(
            eps=1, delta=delta, mechanism="laplace"
        )
    betrayed = len({k // 4 for k in table["k"].to_list()})
    assert betrayed <= laws.binom.isf(ALARM, units, delta)
    assert betrayed >= laws.binom.ppf(ALARM, units, delta * math.exp(-0.25) * 0.9)


def test_values_of_found_groups_are_noisy_and_unlike_each_other(quiet, kind):
    """300 groups of 1,000 rows at eps = .1: a noise of scale 10 that all share, or of none, has another spread.

    A sample mean of 300 exponentials is 50 % too large with a probability below 1e-12 (Chernoff), 40 % too small below 1e-14.
    """
    frame = as_kind(kind, pl.DataFrame({"k": np.repeat(np.arange(300), 1000)}))
    with dp.Session(eps=10**6, delta=0.5):
        table = frame.dp.groupby("k").count(eps=0.1, delta=1e-6, mechanism="laplace")
    noise = np.asarray(table["count"]) - 1000
    assert len(noise) == 300
    assert 6 < np.abs(noise).mean() < 15
    assert len(set(noise.tolist())) > 20


# ---- what comes back ----


def test_rows_are_sorted_by_key_whatever_order_the_data_has(quiet, kind):
    rng = np.random.default_rng(3)
    keys = [(a, b) for a in ("z", "a", None, "m") for b in (3, None, -1)] * 60
    for _ in range(3):
        mixed = [keys[i] for i in rng.permutation(len(keys))]
        frame = pl.DataFrame(mixed, schema={"a": pl.String, "b": pl.Int64}, orient="row")
        with dp.Session(eps=10**6, delta=0.5):
            table = as_polars(as_kind(kind, frame).dp.groupby("a", "b").count(eps=100, delta=1e-3))
        got = table.select(pl.col("a").cast(pl.String), pl.col("b").cast(pl.Int64)).rows()
        assert got == sorted(
            set(keys), key=lambda r: (r[0] is not None, r[0] or "", r[1] is not None, r[1] or 0)
        )


def test_a_missing_key_is_a_group_like_any_other(quiet, kind):
    """Null and NaN are one group; alone it is as hidden as any."""
    frame = as_kind(kind, pl.DataFrame({"k": [1.0] * 90 + [None] * 40 + [math.nan] * 50 + [2.0]}))
    with dp.Session(eps=10**6, delta=0.5):
        table = as_polars(frame.dp.groupby("k").count(eps=100, delta=1e-9))
    rows = {None if k is None or math.isnan(k) else k: n for k, n in table.rows()}
    assert rows == {None: 90, 1.0: 90}


def test_minus_zero_never_shows(quiet, kind):
    """0.0 and -0.0 are one group; its printed sign must not tell that somebody's -0.0 came first."""
    for values in ([-0.0] + [0.0] * 99, [0.0] * 99 + [-0.0], [-0.0] * 100):
        frame = as_kind(kind, pl.DataFrame({"k": values}))
        with dp.Session(eps=10**6, delta=0.5):
            table = as_polars(frame.dp.groupby("k").count(eps=100, delta=1e-9))
        assert table["count"].to_list() == [100]
        assert math.copysign(1, table["k"][0]) == 1.0


POLARS_KEYS = {
    "string": pl.Series(["a", "b"]),
    "int8": pl.Series([1, 2], dtype=pl.Int8),
    "uint64": pl.Series([1, 2**64 - 1], dtype=pl.UInt64),
    "float32": pl.Series([0.5, 1.5], dtype=pl.Float32),
    "bool": pl.Series([True, False]),
    "date": pl.Series([dt.date(2026, 1, 1), dt.date(2026, 1, 2)]),
    "datetime": pl.Series([dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 2)]).dt.cast_time_unit("ms"),
    "zoned": pl.Series([dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 2)]).dt.replace_time_zone(
        "America/New_York"
    ),
    "duration": pl.Series([dt.timedelta(1), dt.timedelta(2)]),
    "enum": pl.Series(["b", "a"], dtype=pl.Enum(["b", "a"])),
    "categorical": pl.Series(["b", "a"], dtype=pl.Categorical),
    "decimal": pl.Series(["1.50", "2.50"]).cast(pl.Decimal(10, 2)),
}


def released(frame, **more):
    with dp.Session(eps=10**6, delta=0.5):
        return frame.dp.groupby("k").dp_agg(
            n=dp.count(), m=dp.clip_mean("x", bounds=(0, 1)), eps=50, delta=1e-9, **more
        )


@pytest.mark.parametrize("of", POLARS_KEYS)
@pytest.mark.parametrize("library", ["polars", "lazy", "pandas"])
def test_the_schema_is_the_same_whether_groups_are_released_or_none(quiet, library, of):
    """All released, some, none but a lone row, no row at all, a missing key: one schema."""
    if library == "pandas" and of in ("categorical", "decimal"):
        pytest.skip("has no plain dtype in pandas; see the test of pandas keys")
    one, two = POLARS_KEYS[of].head(1), POLARS_KEYS[of].tail(1)
    missing = pl.Series([None], dtype=one.dtype)
    x = pl.Series([0.5], dtype=pl.Float64)
    schemas, heights = set(), []
    columns = ([one] * 80 + [two] * 80, [one] * 80 + [two], [one], [], [missing] * 80 + [one] * 80)
    if library == "pandas" and one.dtype in (pl.Int8, pl.UInt64, pl.Boolean):
        columns = columns[:-1]  # NumPy's integers and Booleans have no missing value
    for parts in columns:
        k = pl.concat(parts) if parts else one.head(0)
        frame = as_kind(
            library, pl.DataFrame({"k": k, "x": pl.concat([x] * len(k)) if len(k) else x.head(0)})
        )
        table = released(frame)
        heights.append(len(table))
        dtypes = table.dtypes if isinstance(table, pl.DataFrame) else table.dtypes.to_dict().values()
        schemas.add((tuple(map(str, table.columns)), tuple(map(str, dtypes))))
    assert heights == [2, 1, 0, 0, 2][: len(heights)]
    assert len(schemas) == 1, schemas


PANDAS_KEYS = {  # two keys and, where the dtype has one, a missing value
    "object text": lambda k: pd.Series([[("b"), "a", None][i] for i in k], dtype=object),
    "category of text": lambda k: pd.Series(pd.Categorical.from_codes([i if i < 2 else -1 for i in k], ["b", "a"])),
    "category of int": lambda k: pd.Series(pd.Categorical.from_codes([i if i < 2 else -1 for i in k], [7, 3])),
    "category of bool": lambda k: pd.Series(pd.Categorical.from_codes([i if i < 2 else -1 for i in k], [True, False])),
    "category of float": lambda k: pd.Series(pd.Categorical.from_codes([i if i < 2 else -1 for i in k], [0.5, 0.25])),
    "period": lambda k: pd.Series(pd.PeriodIndex([["2026-01", "2026-02", None][i] for i in k], freq="M")),
    "datetime": lambda k: pd.Series(pd.DatetimeIndex([["2026-01-01", "2026-02-01", None][i] for i in k]).as_unit("ns")),
    "timedelta": lambda k: pd.Series(pd.to_timedelta([[1.0, 2.0, None][i] for i in k], unit="D").as_unit("ns")),
    "Int64": lambda k: pd.Series(pd.array([[1, 2, None][i] for i in k], dtype="Int64")),
    "boolean": lambda k: pd.Series(pd.array([[True, False, None][i] for i in k], dtype="boolean")),
    "string": lambda k: pd.Series(pd.array([["b", "a", None][i] for i in k], dtype="string")),
}  # fmt: skip


@pytest.mark.parametrize("of", PANDAS_KEYS)
def test_pandas_keys_that_nobody_listed_keep_their_dtype(quiet, of):
    """Two keys and a missing one, each often enough, in key order; and the same dtype with nothing released."""
    make = PANDAS_KEYS[of]
    tables = []
    for codes in ([0] * 60 + [1] * 60 + [2] * 60, [0] * 60 + [1] * 60, [2] * 60, [0], []):
        frame = pd.DataFrame({"k": make(codes), "x": 0.5})
        tables.append(released(frame))
    assert [len(t) for t in tables] == [3, 2, 1, 0, 0]
    assert len({str(t["k"].dtype) for t in tables}) == 1, [str(t["k"].dtype) for t in tables]
    assert {str(t["n"].dtype) for t in tables} == {"int64"}
    full = tables[0]
    assert sorted(full["n"]) == [60, 60, 60]
    assert full["k"].isna().sum() == 1
    kept = [v for v in full["k"] if not pd.isna(v)]
    assert kept == sorted(kept)
    expected = make([0, 1]).tolist()
    assert sorted(kept) == sorted(expected)


def test_intervals_that_nobody_listed_are_refused(quiet):
    """Their edges may come from the data; a release would show them, and codes by position would depend on others."""
    ages = [5.0, 30.0, math.nan] * 60
    for k in (pd.cut(ages, [0, 18, 65]), pd.arrays.IntervalArray.from_tuples([(0.0, 18.0)] * 180)):
        frame = pd.DataFrame({"k": k})
        with dp.Session(eps=10, delta=1e-3) as s:
            with pytest.raises(dp.InputError, match="keys="):
                frame.dp.groupby("k").count(eps=1, delta=1e-6)
            with pytest.raises(dp.InputError, match="keys="):
                frame.dp.groupby("k").keys(eps=1, delta=1e-6)
            assert s.report().height == 0


def test_cells_of_an_object_column_that_are_not_text_are_one_missing_group(quiet):
    cells = ["a"] * 60 + [1, 2.5, None, [1], {}, object(), dt.date(2026, 1, 1), b"a", math.nan] * 10
    frame = pd.DataFrame({"k": pd.Series(cells, dtype=object), "x": 0.5})
    table = released(frame)
    assert [(None if pd.isna(k) else k, n) for k, n in zip(table["k"], table["n"])] == [(None, 90), ("a", 60)]


def test_the_same_groups_are_found_on_every_library(quiet):
    rng = np.random.default_rng(9)
    frame = pl.DataFrame(
        {"k": rng.integers(0, 30, size=5000), "x": rng.random(5000), "g": rng.choice(list("ab"), 5000)}
    )
    tables = []
    for kind in KINDS:
        with dp.Session(eps=10**7, delta=0.5):
            table = (
                as_kind(kind, frame)
                .dp.groupby("g", "k")
                .dp_agg(
                    n=dp.count(),
                    m=dp.clip_mean("x", bounds=(0, 1), eps=10**6),
                    eps=10**5,
                    delta=1e-3,
                    round=4,
                )
            )
        tables.append(as_polars(table).select("g", "k", "n", "m").rows())
    assert len(tables[0]) == 60
    assert tables[0] == tables[1] == tables[2]


# ---- nothing tells what was dropped ----

CANARY = "CANARY_a_group_name_that_is_long_enough_for_a_buffer_{}"


def buffers(frame):
    """The memory behind a frame's columns, all of it."""
    table = frame.to_arrow(compat_level=pl.CompatLevel.newest())
    chunks = [chunk for column in table.columns for chunk in column.chunks]
    return [bytes(b) for chunk in chunks for b in chunk.buffers() if b is not None]


@pytest.mark.parametrize("what", ["count", "keys"])
@pytest.mark.parametrize("found", [1, 500])
def test_nothing_in_a_release_tells_which_or_how_many_groups_were_dropped(quiet, kind, what, found, tmp_path):
    """repr, html, facts, explain, report, pickle, buffers and files are equal in all but time and noise."""
    kept = [f"a group name that is released and long {i}" for i in range(3)]

    def look(dropped):
        keys = [k for k in kept for _ in range(200)] + [CANARY.format(i) for i in range(dropped)]
        frame = as_kind(kind, pl.DataFrame({"k": keys}))
        with dp.Session(eps=10**6, delta=0.5) as s:
            groups = frame.dp.plan.groupby("k")
            bound = groups.count(eps=20, delta=1e-9) if what == "count" else groups.keys(eps=20, delta=1e-9)
            release = bound.release()
            report = s.report().drop("time").rows()
        value = as_polars(release.value)
        assert value["k"].to_list() == kept
        stream = io.BytesIO()
        value.write_ipc(stream, compression="uncompressed")
        release.write(tmp_path / "t.csv")
        texts = [
            repr(release), release._repr_html_(), str(bound.explain()), repr(bound), repr(release.value),
            json.dumps(release.facts, default=str), (tmp_path / "t.csv").read_text(),
            (tmp_path / "t.csv.json").read_text(), repr(report),
        ]  # fmt: skip
        blobs = [pickle.dumps(release), pickle.dumps(release.value), stream.getvalue()]
        for t in texts:
            assert "CANARY" not in t
        for b in blobs:
            assert b"CANARY" not in b
        if isinstance(release._keys, pl.DataFrame):
            for b in buffers(release._keys):
                assert b"CANARY" not in b, "a column of the released names still holds the dropped ones"
        facts = {k: v for k, v in release.facts.items() if k != "time"}
        return facts, report, str(bound.explain()), [len(x) for x in release._noisy], len(pickle.dumps(value))

    assert look(0) == look(found)
