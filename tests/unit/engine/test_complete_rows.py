"""``complete_cases=True`` on every engine: the integers of a frame that has lost its incomplete rows beforehand.

What is compared are exact integers, so no test here has a false alarm. Planted faults that these tests find:
``tests/planted/complete_faults.py``.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpframe as dp
from dpframe.pipeline import _exact
from dpframe.testing.engines import canonical_rank, same

pytestmark = pytest.mark.usefixtures("quiet")

NAN, INF = float("nan"), float("inf")
SALT = 77
SCHEMA = {
    "x": pl.Float64,
    "y": pl.Float32,
    "i": pl.Int64,
    "w": pl.Int32,
    "b": pl.Boolean,
    "t": pl.String,
    "day": pl.Date,
    "v": pl.List(pl.Float64),
    "g": pl.String,
    "u": pl.Int64,
    "r": pl.Int64,  # another in every row, so the number of its values is that of rows
}
POOL = {
    "x": (1.0, 2.5, INF, -INF, 9.0, None, NAN),
    "y": (0.5, 3.0, None, NAN, 8.0),
    "i": (1, 2, 40, None, -7),
    "w": (1, 2, 3, 4, None),
    "b": (True, False, None),
    "t": ("p", "q", "r", None),
    "day": (dt.date(2026, 1, 1), dt.date(2024, 2, 29), None),
    "v": ([1.0, 2.0], [0.5, NAN], [None, 1.0], [1.0], [], [1.0, 2.0, 3.0], None, [-3.0, INF]),
    "g": ("a", "b", None, "else"),
    "u": (1, 2, 3, 4, None),
}


def frame(rows: int, seed: int = 1) -> pl.DataFrame:
    """Random rows; two thirds of the cells are none that are missing."""
    rng = np.random.default_rng(seed)

    def cell(name):
        pool = POOL[name] if rng.random() < 1 / 3 else [v for v in POOL[name] if present(v)]
        return pool[rng.integers(len(pool))]

    cells = {n: [cell(n) for _ in range(rows)] for n in POOL}
    return pl.DataFrame({**cells, "r": range(rows)}, schema=SCHEMA)


def present(v) -> bool:
    """Whether a value is there, looked at in Python; a vector has two numbers."""
    if isinstance(v, list):
        return len(v) == 2 and all(map(present, v))
    return v is not None and v == v


FRAME = frame(60)
NONE = FRAME.with_columns(x=pl.lit(None, pl.Float64))
FRAMES = {"many": FRAME, "few": frame(3, 5), "empty": FRAME.clear(), "none complete": NONE}


def complete(table: pl.DataFrame, columns) -> pl.DataFrame:
    """The rows in which nothing is missing in these columns, one by one in Python."""
    there = [all(present(r[c]) for c in columns) for r in table.iter_rows(named=True)]
    return table.filter(pl.Series(there, dtype=pl.Boolean))


X, Y = {"bounds": (0, 5)}, {"bounds": (-1, 10)}
CASES = {  # questions of one call, and the columns that they read
    "means": (lambda: [dp.count(), dp.clip_mean("x", **X), dp.clip_mean("y", **Y), dp.clip_mean("b")], "x y b"),
    "sums": (lambda: [dp.clip_sum("x", **X), dp.clip_sum("i", bounds=(0, 9)), dp.count("t")], "x i t"),
    "two bounds": (lambda: [dp.clip_mean("x", **X), dp.clip_mean("x", **Y).alias("z"), dp.count("i")], "x i"),
    "variance": (lambda: [dp.clip_var("x", **X), dp.clip_std("i", bounds=(0, 9)), dp.count()], "x i"),
    "covariance": (lambda: [dp.clip_cov(["x", "i"], bounds=(0, 9)), dp.count(), dp.count("y")], "x i y"),
    "weights": (
        lambda: [dp.clip_wmean("x", weights="w", weight_bounds=(0, 3), **X), dp.clip_mean("y", **Y)],
        "x w y",
    ),
    "vectors": (lambda: [dp.vector_mean(["x", "y", "i"], norm=9), dp.count("b")], "x y i b"),
    "lists": (lambda: [dp.vector_mean("v", norm=9, dim=2), dp.count(), dp.clip_sum("x", **X)], "v x"),
    "counts": (lambda: [dp.count(), dp.count("t"), dp.count("day"), dp.count("x")], "t day x"),
    "own": (lambda: [dp.clip_sum("x", eps=1, **X), dp.n_unique("r", eps=2), dp.count("i", eps=3)], "x r i"),
}  # fmt: skip
LISTED = {  # those that need listed groups, or none
    "median": (lambda: [dp.median("x", **X), dp.quantile("i", 0.2, candidates=[0, 1, 2, 5]), dp.count()], "x i"),
    "ranks": (lambda: [dp.median("x", **X), dp.clip_mean("y", **Y), dp.n_unique("r"), dp.n_unique("day")], "x y r day"),
    "histogram": (lambda: [dp.histogram("x", edges=[0, 2, 3, 10])], "x"),
    "top_k": (lambda: [dp.top_k("t", 2, candidates=["p", "q", "z", None])], "t"),
    "select": (lambda: [dp.select(["x", "y", "i"], **X)], "x y i"),
    "bounds": (lambda: [dp.bounds("x")], "x"),
}  # fmt: skip
ALL = {**CASES, **LISTED}
UNITS = {None: {}, "one": {"rows": 1, "groups": 1}, "several": {"rows": 3, "groups": 2}}
GROUPS = {"one group": None, "listed": ["a", "b", None], "found": "found"}


def planned(table, asked, *, groups=None, unit=None, whole=True):
    """The plan of a call on a frame of any library."""
    with dp.Session(eps=10**9, delta=0.5, unit=None if unit is None else "u"):
        limits, plans = UNITS[unit], dp.frame(table).plan
        delta = {}
        if groups is not None:
            plans = plans.groupby("g", keys=None if groups == "found" else groups)
            delta = {"delta": 1e-3} if groups == "found" else {}
            limits = {"max_rows_per_group": limits["rows"], "max_groups": limits["groups"]} if limits else {}
        elif limits:
            limits = {"max_rows": limits["rows"]}
        names = [a.alias(f"a{i}") for i, a in enumerate(asked())]
        eps = {} if all(a.eps for a in names) else {"eps": 1}
        return plans.agg(*names, complete_cases=whole, **eps, **delta, **limits).plan


def exact(plan, table):
    with canonical_rank():
        return _exact(plan, dp.frame(table)._source, SALT)


def check(make, table, asked, read, **how):
    """The same integers as those of the rows that are complete, on the same engine; returns them."""
    there = make(table)
    plan = planned(there, asked, **how)
    assert {a.column for a in plan.complete} == set(read.split())
    got = exact(plan, there)
    plain = make(complete(table, read.split()))
    assert same(got, exact(replace(plan, complete=()), plain))
    assert all(np.array_equal(c, got.rows) for c in got.present)  # no block is missing
    return plan, got


def arrow_table(table: pl.DataFrame):
    return table.to_arrow()


def arrow_backed(table: pl.DataFrame):
    return table.to_pandas(use_pyarrow_extension_array=True)


def numpy_backed(table: pl.DataFrame):
    """NaN for missing floats; objects with every sign of a missing cell, in turn."""
    signs = [None, NAN, pd.NA, pd.NaT, np.float64("nan")]
    made = pd.DataFrame(index=range(table.height))
    for c in table.get_columns():
        cells = c.to_list()
        if c.dtype.is_numeric():
            made[c.name] = np.array([NAN if v is None else v for v in cells], dtype=float)
        elif c.name == "day":
            made[c.name] = pd.Series(cells, dtype="datetime64[us]")
        elif c.name == "b":
            made[c.name] = pd.Series(cells, dtype="boolean")
        else:
            filled = [signs[i % len(signs)] if v is None else v for i, v in enumerate(cells)]
            made[c.name] = pd.Series(filled, dtype=object)
    return made


def nullable(table: pl.DataFrame):
    """pandas' own types beside a mask; floats have NaN beside it."""
    made = pd.DataFrame(index=range(table.height))
    for c in table.get_columns():
        cells = c.to_list()
        if c.dtype.is_float():
            gone = np.array([v is None for v in cells], dtype=bool)
            numbers = np.array([0.0 if v is None else v for v in cells], dtype=float)
            made[c.name] = pd.Series(pd.arrays.FloatingArray(numbers, gone))
        elif c.name in ("i", "w", "u"):
            made[c.name] = pd.Series(cells, dtype="Int64")
        elif c.name == "b":
            made[c.name] = pd.Series(cells, dtype="boolean")
        elif c.name == "t":
            made[c.name] = pd.Series(cells, dtype="category")
        elif c.name == "day":
            made[c.name] = pd.Series(cells, dtype="datetime64[us]")
        else:
            made[c.name] = pd.Series(cells, dtype="string" if c.name == "g" else object)
    return made


def without_nulls(table: pl.DataFrame):
    """Integers of NumPy, which can't be missing: -9 stands for a null of ``i`` and ``w``, and is a value."""
    made = numpy_backed(table)
    for c in ("i", "w"):
        made[c] = made[c].fillna(-9).astype("int32")
    return made


HELD = {
    "polars": pl.DataFrame,
    "lazy": pl.DataFrame.lazy,
    "arrow": arrow_table,
    "arrow-backed": arrow_backed,
    "numpy-backed": numpy_backed,
    "nullable": nullable,
}


def taken(library: str, case: str) -> bool:
    """Lists in pandas are objects, which no vector is made of."""
    return case != "lists" or library in ("polars", "lazy", "arrow", "arrow-backed")


@pytest.mark.parametrize("size", FRAMES)
@pytest.mark.parametrize("case", ALL)
@pytest.mark.parametrize("library", HELD)
def test_the_integers_are_those_of_the_complete_rows(library, case, size):
    if not taken(library, case):
        pytest.skip("pandas has lists as objects")
    asked, read = ALL[case]
    for groups in (None, ["a", "b", None]):
        plan, got = check(HELD[library], FRAMES[size], asked, read, groups=groups)
        reference = planned(FRAMES[size], asked, groups=groups)
        of_polars = exact(reference, FRAMES[size])
        if plan.measures == reference.measures:  # else integers are floats here, on another grid
            assert same(got, of_polars)
        assert np.array_equal(got.rows, of_polars.rows)
        if size == "none complete" and "x" in read.split():
            assert not got.rows.any()
            assert not any(t.rows.size for t in got.tallies)
    assert plan.keys.size == 3


@pytest.mark.parametrize("unit", [u for u in UNITS if u])
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("case", ALL)
@pytest.mark.parametrize("library", ["polars", "lazy", "arrow-backed", "nullable"])
def test_units_and_groups_are_of_the_complete_rows(library, case, groups, unit):
    """Rows are left out before a unit is scaled, before its rows are ranked and before its groups are chosen."""
    if not taken(library, case) or (groups == "found" and case in LISTED):
        pytest.skip("not asked so")
    asked, read = ALL[case]
    units = (lambda: [*asked(), dp.count_units()]) if case in CASES and case != "own" else asked
    for table in (FRAME, frame(200, 2)):
        _, got = check(HELD[library], table, units, read, groups=GROUPS[groups], unit=unit)
        if case in CASES:
            assert got.rows.sum() > 0


@pytest.mark.parametrize("case", ["means", "weights", "own", "median", "histogram"])
def test_integers_that_are_never_missing_are_all_kept(case):
    asked, read = ALL[case]
    table = FRAME
    there = without_nulls(table)
    plan = planned(there, asked)
    plain = without_nulls(complete(table, [c for c in read.split() if c not in ("i", "w")]))
    assert same(exact(plan, there), exact(replace(plan, complete=()), plain))


# ---- engines that stay where they are ----


def test_engines_that_stay_where_they_are(engine):
    """Sums, choices and values together, of rows and of units, in groups and not: the integers are Polars'."""
    name, make = engine

    def everything():
        asked = ("means", "covariance", "weights", "vectors", "median", "ranks")
        return [a for c in asked for a in CASES.get(c, LISTED.get(c))[0]()]

    read = "x y b i w r day"
    cases = [(everything, read, None, None), (everything, read, ["a", "b", None], "several")]
    cases += [
        (CASES["lists"][0], "v x", "found", "several"),
        (LISTED["histogram"][0], "x", ["a", None], "one"),
    ]
    for asked, columns, groups, unit in cases[:2] if name == "spark" else cases:
        _, got = check(make, FRAME, asked, columns, groups=groups, unit=unit)
        plan = planned(FRAME, asked, groups=groups, unit=unit)
        assert same(got, exact(plan, FRAME))


@pytest.mark.parametrize("partitions", [1, 7])
@pytest.mark.parametrize("case", [c for c in ALL if c not in ("own", "ranks", "lists")])
def test_partitions_leave_out_their_own_rows(case, partitions):
    dd = pytest.importorskip("dask.dataframe", reason="Dask is not installed: pip install 'dpframe[dask]'")
    import dask

    asked, _ = ALL[case]
    with dask.config.set(scheduler="sync"):
        for groups in (None, ["a", "b", None]):
            there = dd.from_pandas(nullable(FRAME), npartitions=partitions)
            got = exact(planned(there, asked, groups=groups), there)
            assert same(got, exact(planned(FRAME, asked, groups=groups), FRAME))


# ---- what a column may hold ----


@pytest.mark.parametrize(
    "cells",
    [
        pd.Series([1.0, NAN, 3.0, 4.0]),
        pd.Series([1.0, NAN, 3.0, 4.0], dtype="float32"),
        pd.Series([1.0, NAN, 3.0, 4.0], dtype="float16"),
        pd.Series([1, None, 3, 4], dtype="Int8"),
        pd.Series([True, None, False, True], dtype="boolean"),
        pd.Series([1, None, 3, 4], dtype=pd.ArrowDtype(pa.uint64())),
        pd.Series([1, None, 3, 4], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
        pd.Series(["a", None, "c", "d"], dtype="string"),
        pd.Series(["a", None, "c", "d"], dtype=object),
        pd.Series([1, pd.NaT, "c", ["d"]], dtype=object),
        pd.Series(["a", None, "c", "a"], dtype="category"),
        pd.Series([1.5, NAN, 2.5, 1.5], dtype="category"),
        pd.to_datetime(pd.Series(["2026-01-01", None, "2026-01-02", "2026-01-03"])),
        pd.to_timedelta(pd.Series(["1s", None, "2s", "3s"])),
        pd.Series(pd.PeriodIndex(["2026-01", None, "2026-02", "2026-03"], freq="M")),
        pd.Series(pd.arrays.IntervalArray.from_tuples([(0, 1), NAN, (1, 2), (2, 3)])),
        pd.Series([1 + 1j, complex(NAN, 0), 2, 3]),
    ],
    ids=lambda s: str(s.dtype),
)
def test_a_value_is_missing_where_a_count_leaves_it_out(cells):
    table = pd.DataFrame({"c": cells, "i": [1, 2, 4, 8]})
    alone = planned(table, lambda: [dp.count("c")], whole=False)
    plan = planned(table, lambda: [dp.clip_sum("i", bounds=(0, 10)), dp.count("c")])
    assert exact(alone, table).present[0].tolist() == [3]
    got = exact(plan, table)
    assert got.rows.tolist() == got.present[0].tolist() == [3]
    assert got.sums[0][0].tolist() == [13]


# ---- privacy: the filter looks at one row ----


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("library", HELD)
def test_an_incomplete_row_changes_nothing(library, unit):
    """A row that lacks a value is in no answer: not in its unit's rows, ranks or groups, and in no group's keys."""
    make, asked = HELD[library], ALL["means"][0]
    table = complete(FRAME, ("x", "y", "b"))
    for groups in GROUPS.values():
        plan = planned(make(table), asked, groups=groups, unit=unit)
        before = exact(plan, make(table))
        for gap in ("x", "y", "b"):
            row = {**table.row(0, named=True), gap: None, "g": "new", "u": 1}
            more = pl.concat([pl.DataFrame([row] * 3, schema=SCHEMA), table])
            assert same(exact(plan, make(more)), before), gap


@pytest.mark.parametrize("together", [False, True])
def test_a_frame_of_many_rows_is_read_as_a_small_one(together, tmp_path):
    """At sizes at which engines change their path; from a file, as one stream."""
    table = pl.concat([frame(1_000, s) for s in range(3)] * 50)
    asked, read = ALL["ranks"]
    table.write_parquet(tmp_path / "t.parquet")
    there = pl.scan_parquet(tmp_path / "t.parquet") if together else table
    for groups in (None, ["a", "b", None]):
        plan = planned(there, asked, groups=groups, unit="several" if groups else None)
        got = exact(plan, there)
        assert same(got, exact(replace(plan, complete=()), complete(table, read.split())))
        assert got.rows.sum() > 0
