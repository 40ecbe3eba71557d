"""PySpark: what a unit, a key or a value is stays exact, for every type and its extreme cells, whatever columns are called.

Nothing here is random: every figure is counted by hand from the cells that are listed. Types share a frame, as a
question takes seconds.
"""

from __future__ import annotations

import datetime as dt
import re
import shutil
from decimal import Decimal

import pyarrow as pa
import pytest
from databases import ENGINES
from identities import identities
from lying_files import with_statistics_of

import dpframe as dp

pytestmark = [
    pytest.mark.usefixtures("quiet"),
    pytest.mark.xdist_group("spark"),  # one process runs them all, with one Spark
]

# As in test_relational_identity.py: named cells, cells without a name, missing cells.
CELLS = {
    "bigint": (["0", "1", "-1", "9223372036854775807L", "-9223372036854775807L - 1"], [], []),
    "decimal(38,10)": (["0", "cast('0.0000000001' as decimal(38,10))", "cast('9999999999999999999999999999.9999999999' as decimal(38,10))"], [], []),
    "double": (["0D", "0.1D", "4.9E-324D", "double('inf')", "double('-inf')"], [], ["double('nan')"]),
    "string": (["''", "'a'", "'A'", "'a '", "'-'", "'1:a'", "unhex('1F30')"], ["unhex('FF')", "unhex('FE')", "unhex('61FF')"], []),
    "date": (["date'1970-01-01'", "date'9999-12-31'", "date_add(date'1970-01-01', 3663382)", "date_add(date'1970-01-01', -800000)"], ["date_add(date'1970-01-01', 2147483647)", "date_add(date'1970-01-01', -2147483647)"], []),
    "timestamp_ntz": (["timestamp_ntz'1970-01-01 00:00:00'", "timestamp_ntz'1969-12-31 23:59:59.999999'", "timestamp_ntz'2026-03-08 02:30:00'"], ["timestampadd(MICROSECOND, 9223372036854775807L, timestamp_ntz'1970-01-01 00:00:00')", "timestampadd(MICROSECOND, -9223372036854775807L, timestamp_ntz'1970-01-01 00:00:00')"], []),
    "timestamp": (["timestamp_micros(0)", "timestamp_micros(-1)"], ["timestamp_micros(9223372036854775807L)"], []),
}  # fmt: skip

NO_KEYS = {
    "binary": "binary('a')",
    "an interval of days": "interval '1 2' day to hour",
    "an interval of months": "interval '1' month",
    "a calendar interval": "make_interval(1, 2)",
    "array": "array(1)",
    "array of text": "array('a', null)",
    "map": "map('a', 1)",
    "struct": "struct('a' as f, 1 as g)",
    "variant": "parse_json('1')",
    "void": "null",
}


@pytest.fixture(scope="module")
def spark():
    ENGINES["spark"]()
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


@pytest.mark.parametrize("kind", CELLS)
def test_every_cell_is_itself_as_unit_key_and_value(spark, kind):
    """Privacy: two units taken for one, or a row of two groups, would be paid for once and count for more."""
    named, unnamed, missing = CELLS[kind]
    cells = [*named, *unnamed, *missing, "null"]
    rows = (
        f"select cast({c} as {kind}) as x, {i} as i, explode(sequence(0, {i})) as j"
        for i, c in enumerate(cells)
    )
    frame = spark.sql(" union all ".join(rows)).selectExpr("x", "i * 1000 + j as row")
    got = identities(frame)
    counts = [i + 1 for i in range(len(cells))]
    exact = len(named) + len(unnamed)
    assert got.units == got.values == exact
    assert got.found == sorted([*counts[: len(named)], sum(counts[exact:])])
    assert got.tallied == got.chosen == got.found
    assert got.listed == got.expected


ROLES = {
    "listed key": lambda f: f.groupby("x", keys=["a"]).count(eps=1),
    "listed key beside another": lambda f: f.groupby("n", "x", keys=[(1, "a")]).count(eps=1),
    "found key": lambda f: f.groupby("x").count(eps=1, delta=0.01),
    "released key": lambda f: f.groupby("x").keys(eps=1, delta=0.01),
    "different values": lambda f: f.n_unique("x", eps=1),
    "candidate": lambda f: f.top_k("x", 1, candidates=["a"], eps=1),
    "sum": lambda f: f.clip_sum("x", bounds=(0, 1), eps=1),
    "median": lambda f: f.median("x", bounds=(0, 1), eps=1),
    "bins": lambda f: f.histogram("x", edges=[0, 1], eps=1),
}


@pytest.mark.parametrize("kind", NO_KEYS)
def test_what_can_be_no_key_unit_or_value_is_refused_from_its_type(spark, kind):
    frame = spark.sql(f"select {NO_KEYS[kind]} as x, 1 as n")
    with dp.Session(eps=10, delta=0.1) as s:
        for role, ask in ROLES.items():
            with pytest.raises(dp.InputError, match="'x'"):
                ask(dp.frame(frame))
            assert s.spent == 0, role
    for unit in ("x", ["n", "x"]):
        with dp.Session(eps=10, unit=unit) as s, pytest.raises(dp.InputError, match="'x'"):
            dp.frame(frame).count(max_rows=1, eps=1)
        assert s.spent == 0


def test_beside_such_columns_others_are_answered(spark, no_noise):
    frame = spark.sql("select 1 as n, " + ", ".join(f"{v} as x{i}" for i, v in enumerate(NO_KEYS.values())))
    with dp.Session(eps=10, unit="n"):
        assert dp.frame(frame).groupby("n", keys=[1]).count(max_groups=1, max_rows_per_group=1, eps=1)["count"].to_list() == [1]  # fmt: skip


def test_without_ansi_a_listed_zero_is_found(spark, no_noise):
    """Spark's text of a decimal zero is then "0E-8"."""
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        frame = spark.sql("select cast(0 as decimal(12,8)) as x union all select cast(1.5 as decimal(12,8))")
        with dp.Session(eps=10):
            got = dp.frame(frame).groupby("x", keys=[Decimal(0), Decimal("1.5")]).count(eps=1)
        assert got["count"].to_list() == [1, 1]
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_texts_that_are_filled_up_are_refused_and_nobody_is_told_by_a_failure(spark, tmp_path, no_noise):
    place = tmp_path / "ch"
    spark.sql(f"create table padded(c char(5), n int) using parquet location '{place}'")
    try:
        spark.sql("insert into padded values ('a', 1)")
        frame = spark.table("padded")
        with dp.Session(eps=10, delta=0.1) as s:
            for keys in ({"keys": ["a"]}, {"delta": 0.01}):
                more = {"delta": keys.pop("delta")} if "delta" in keys else {}
                with pytest.raises(dp.InputError, match=r"'c' is char\(5\)"):
                    dp.frame(frame).groupby("c", **keys).count(eps=1, **more)
            assert s.spent == 0
            trimmed = frame.selectExpr("rtrim(c) as c", "n")
            assert dp.frame(trimmed).groupby("c", keys=["a"]).count(eps=1)["count"].to_list() == [1]
    finally:
        spark.sql("drop table padded")


def test_names_may_be_anything_and_twice_is_refused(spark, no_noise):
    names = [
        "Name",
        "name",
        "a.b",
        "a",
        "`q`",
        'd"q',
        "dpframe_k0",
        "k0",
        "c1",
        "key",
        "x y",
        "twice",
        "twice",
    ]
    day = dt.date(2026, 1, 1)
    frame = spark.createDataFrame([tuple([day] * len(names))], [f"z{i}" for i in range(len(names))]).toDF(
        *names
    )
    with dp.Session(eps=100, delta=0.1) as s:
        with pytest.raises(dp.InputError, match="2 columns named 'twice'"):
            dp.frame(frame).groupby("twice", keys=[day]).count(eps=1)
        with pytest.raises(dp.InputError, match="no column 'NAME'"):
            dp.frame(frame).groupby("NAME", keys=[day]).count(eps=1)
        assert s.spent == 0
        asked = [n for n in names if n != "twice"]
        got = dp.frame(frame).groupby(*asked, keys=[(day,) * len(asked), (None,) * len(asked)]).count(eps=1)
        assert got["count"].to_list() == [1, 0]
        assert dp.frame(frame).n_unique("a.b", eps=1) == 1


def test_nothing_of_anything_is_answered(spark):
    """Privacy: a question that fails when nobody is there tells that nobody is."""
    some = "select cast('a' as string) as g, cast(1 as int) as u, 1D as v from range(3)"
    for what in (
        f"select * from ({some}) where false",
        f"select g, cast(null as int) as u, v from ({some})",
        f"select cast(null as string) as g, u, cast(null as double) as v from ({some})",
    ):
        for unit, limits in ((None, {}), ("u", {"max_groups": 1, "max_rows_per_group": 2})):
            with dp.Session(eps=1000, delta=0.5, unit=unit):
                f = dp.frame(spark.sql(what))
                for listed, more in (({"keys": ["zz", None]}, {}), ({}, {"delta": 1e-3})):
                    f.groupby("g", **listed).dp_agg(n=dp.count(), q=dp.median("v", bounds=(0, 9)), d=dp.n_unique("u"), eps=1, **more, **limits)  # fmt: skip


def test_buckets_are_not_believed(spark, tmp_path):
    """Privacy: Spark would add up every bucket by itself, so a unit in two files would be two units."""
    place = tmp_path / "bucketed"
    frame = spark.range(40).selectExpr("id % 20 as user", "cast(id % 20 as string) as name")
    for key in ("user", "name"):
        frame.write.bucketBy(2, key).option("path", str(place / key)).saveAsTable(f"by_{key}")
        try:
            files = sorted((place / key).glob("*.parquet"))
            for f in files:  # the rows of each bucket lie in the other one, too
                bucket = re.search(r"_(\d{5})\.c000", f.name)[1]
                other = f"{1 - int(bucket):05}"
                copy = f.name.replace(f"_{bucket}.c000", f"_{other}.c000").replace("part-", "part-9", 1)
                shutil.copy(f, f.with_name(copy))
            spark.sql(f"refresh table by_{key}")
            table = spark.table(f"by_{key}")
            assert table.count() == 80
            assert len(table.groupBy(key).count().collect()) == 40, "Spark does not believe them itself"
            with dp.Session(eps=10, unit=key):
                plan = dp.frame(table).plan.count(max_rows=1, eps=1).plan
            assert dp.frame(table)._source.aggregate(plan.ask(1)).rows.tolist() == [20]
        finally:
            spark.sql(f"drop table by_{key}")


def test_statistics_of_a_file_decide_about_no_cell(spark, tmp_path):
    """Told that no cell is above 4, none of 150 is cut, left out or taken for another; the caller's own filter has a switch."""
    cells, told = ({"x": [k % m for k in range(150)], "u": [k % 3 for k in range(150)]} for m in (150, 5))
    place = with_statistics_of(pa.table(cells), pa.table(told), tmp_path / "f.parquet")
    frame = spark.read.parquet(str(place))
    got = identities(frame, "x", "x")
    assert got.units == got.values == 150
    assert got.found == got.listed == [1] * 150
    with dp.Session(eps=10**9):
        assert dp.frame(frame).clip_sum("x", bounds=(0, 149), eps=10**6) == pytest.approx(11_175, abs=1e-2)
        spark.conf.set("spark.sql.parquet.filterPushdown", "false")
        try:
            assert dp.frame(frame.filter("x > 60")).count(eps=10**6) == 89
        finally:
            spark.conf.unset("spark.sql.parquet.filterPushdown")


def test_a_failure_is_paid_and_says_nothing(spark):
    frame = spark.sql("select raise_error('canary-4711') as x from range(2)").selectExpr(
        "cast(x as string) as x"
    )
    with dp.Session(eps=2) as s:
        with pytest.raises(dp.ReleaseFailed) as failed:
            dp.frame(frame).groupby("x", keys=["a"]).count(eps=1)
        assert s.spent == 1
    assert "canary" not in str(failed.value)
