"""DuckDB, Ibis, SQLFrame and PySpark: Polars' integers, and nothing but the small aggregate leaves the engine.

``DPFRAME_AUDIT=1`` raises the number of generated frames per engine to 2,000 (on Spark, where a question
takes seconds, 25 frames share one).
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import os
import pickle
import re
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.engine.polars import PolarsSource
from dpframe.frames.contract import Ask, Bounding
from dpframe.testing.engines import canonical_rank, check_engine

AUDIT = os.environ.get("DPFRAME_AUDIT", "") not in ("", "0")

pytestmark = pytest.mark.usefixtures("quiet")


def _duckdb():
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'dpframe[duckdb]'")
    pytest.importorskip("narwhals", reason="narwhals is not installed: pip install 'dpframe[duckdb]'")
    connection = duckdb.connect()
    return lambda frame: connection.from_arrow(frame.to_arrow())


def _ibis():
    ibis = pytest.importorskip("ibis", reason="Ibis is not installed: pip install 'dpframe[ibis]'")
    return lambda frame: ibis.memtable(frame.to_arrow())


def _sqlframe():
    place = "sqlframe.duckdb"
    sqlframe = pytest.importorskip(place, reason="SQLFrame is not installed: pip install 'dpframe[sqlframe]'")
    import duckdb

    connection = duckdb.connect()
    session = sqlframe.DuckDBSession(conn=connection)
    names = (f"t{i}" for i in range(10**9))

    def make(frame):
        name, held = next(names), frame.to_arrow()
        connection.register("held", held)
        connection.execute(f"create table {name} as select * from held")
        connection.unregister("held")
        return session.read.table(name)

    return make


def _spark():
    sql = pytest.importorskip("pyspark.sql", reason="PySpark is not installed: pip install 'dpframe[spark]'")
    java = shutil.which("java")
    said = "" if java is None else subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    if not any(f'version "{v}' in said for v in ("17", "21")):
        pytest.skip("Spark needs Java 17, which is not installed")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # starts faster
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.ui.showConsoleProgress": "false",
    }
    session = sql.SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return lambda frame: session.createDataFrame(frame.to_arrow())


ENGINES = {"duckdb": _duckdb, "ibis": _ibis, "sqlframe": _sqlframe, "spark": _spark}
NAMES = {"duckdb": "DuckDB", "ibis": "Ibis", "sqlframe": "SQLFrame", "spark": "PySpark"}


on_spark = pytest.mark.xdist_group("spark")  # one process runs them all, with one Spark


@pytest.fixture(scope="module", params=[pytest.param(n, marks=pytest.mark.xdist_group(n)) for n in ENGINES])
def engine(request):
    return request.param, ENGINES[request.param]()


@pytest.fixture
def make(engine):
    return engine[1]


TABLE = pl.DataFrame(
    {
        "x": [1.0, None, float("nan"), 3.0, 99.0, 2.5, -0.5, float("inf")],
        "g": ["a", "b", "a", None, "b", "a", "zz", "b"],
        "level": [0.0, -0.0, float("nan"), None, 1.5, 1.5, 0.0, 2.0],
        "day": [dt.date(2026, 1, 1)] * 3 + [None] + [dt.date(2026, 1, 2)] * 4,
        "time": [dt.datetime(2026, 3, 8, 2, 30), dt.datetime(2026, 3, 8, 3, 30)] * 4,
        "cash": [Decimal("1.50"), None, Decimal("2.25"), Decimal("0.00")] * 2,
        "u": [1, 1, 2, 3, 3, 1, None, 2],
    },
    schema_overrides={"cash": pl.Decimal(8, 2)},
)


# ---- the same integers ----


def test_conformance(engine):
    name, make = engine
    frames = 2000 if AUDIT else 20
    got = check_engine(make, frames=frames, together=(25 if AUDIT else 5) if name == "spark" else 1)
    assert got.frames == frames
    assert frames // 3 <= got.bounded < frames


def test_answers_are_polars_frames_with_the_types_of_the_table(make, no_noise):
    with dp.Session(eps=1000):
        for by, keys in (
            (["g"], ["b", None, "c"]),
            (["level"], [0, 1.5, None]),
            (["day", "g"], [("2026-01-01", "a"), (None, None)]),
            (["time"], [dt.datetime(2026, 3, 8, 2, 30)]),
            (["cash"], [Decimal("1.5"), 0, None]),
        ):
            got, expected = (
                dp.frame(f)
                .groupby(*by, keys=keys)
                .dp_agg(n=dp.count(), m=dp.clip_mean("x", bounds=(0, 10)), eps=1)
                for f in (make(TABLE), TABLE)
            )
            assert isinstance(got, pl.DataFrame)
            assert got.equals(expected)
            assert got.schema == expected.schema
            assert got["n"].sum() > 0


def test_found_keys_are_sorted_and_typed(make, no_noise):
    many = pl.concat([TABLE.filter(pl.col("g") != "zz")] * 30 + [TABLE])
    for by in (["g"], ["level", "day"], ["time"], ["cash"]):
        with dp.Session(eps=10, delta=0.5):
            got, expected = (
                dp.frame(f).groupby(*by).dp_agg(n=dp.count(), eps=1, delta=1e-3) for f in (make(many), many)
            )
        assert got.equals(expected)
        assert got.schema == expected.schema
        assert got.height > 0
    with dp.Session(eps=10, delta=0.5):
        assert "zz" not in dp.frame(make(many)).groupby("g").keys(eps=1, delta=1e-9)["g"].to_list()


def test_ties_on_the_grid_go_to_even(make, no_noise):
    ties = pl.DataFrame({"i": [2**52 + 1, 0, 1, 3], "x": [0.5, 1.5, 2.5, 3.5]})
    ties = ties.with_columns(x=pl.col("x") * 2.0**-27)  # halves of the step of (0, 8)
    with dp.Session(eps=1000):
        plan = dp.frame(ties).plan.clip_sum("x", bounds=(0, 8), eps=1).plan
    (measure,) = plan.measures
    sums = [dp.frame(f)._source.aggregate(plan.ask(1)).sums[0][0].tolist() for f in (ties, make(ties))]
    step = measure.axes[0].magic / (3 * 2**51)
    assert step == 2.0**-27
    assert sums == [[0 + 2 + 2 + 4]] * 2


@pytest.mark.parametrize("order", [1, 2])
def test_norms_are_added_up_in_one_order(make, order):
    """Floats add up to different sums in different orders, and engines have orders of their own.

    0.3 of (0.1 + 0.2) + 0.3 is a step less than 0.3 of 0.1 + (0.2 + 0.3).
    """
    rng = np.random.default_rng(order)
    names = ["a", "b", "c", "d", "e"]
    rows = pl.DataFrame({"k": range(2000), **{n: rng.integers(-9, 10, 2000) / 10 for n in names}})
    with dp.Session(eps=1):
        plan = dp.frame(rows).plan.groupby("k", keys=range(2000)).vector_sum(names, norm=1, ord=order, eps=1)
    plan = plan.plan
    got, expected = (dp.frame(f)._source.aggregate(plan.ask(1)).sums[0] for f in (make(rows), rows))
    assert np.array_equal(got, expected)
    ball = plan.measures[0].ball
    for i, row in enumerate(rows.select(names).iter_rows()):  # the reference: ((a + b) + (c + d)) + e
        a, b, c, d, e = (x * x if order == 2 else abs(x) for x in row)
        size = ((a + b) + (c + d)) + e
        size = size**0.5 if order == 2 else size
        shrink = min(1.0, ball.norm / size if size else 1.0) * ((1 - 2.0**-20) / ball.step)
        assert [int(x * shrink) for x in row] == [int(s[i]) for s in expected]


def test_a_row_moves_sums_by_at_most_its_steps_whatever_the_cell_holds(make):
    """Privacy: extreme cells, and cells that engines treat each in their own way, stay within the clip."""
    cells = [1e308, -1e308, float("inf"), float("-inf"), float("nan"), None, -0.0, 5e-324, 2.0**53 + 2, 1e19]
    cells = pl.DataFrame({"x": cells, "k": list(range(len(cells)))})
    with dp.Session(eps=1):
        plan = dp.frame(cells).plan.groupby("k", keys=range(10)).clip_mean("x", bounds=(-1, 3), eps=1).plan
    source = dp.frame(make(cells))._source
    (steps,) = source.aggregate(plan.ask(1)).sums[0]
    top = plan.measures[0].axes[0].steps
    quarter = top // 4
    assert steps.tolist() == [top, 0, top, 0, 0, 0, quarter, quarter, top, top]


def test_missing_ids_are_left_out_and_units_scaled_down(make, no_noise):
    with dp.Session(eps=1000, unit="u"):
        got, expected = (
            [
                dp.frame(f).count(max_rows=2, eps=1),
                dp.frame(f).clip_sum("x", bounds=(0, 10), max_rows=2, eps=1),
                dp.frame(f).count_units(eps=1),
                dp.frame(f).n_unique("g", max_rows=9, eps=1),
            ]
            for f in (make(TABLE), TABLE)
        )
    assert got == expected
    assert got[2] == 3


def test_units_choose_their_groups_alike_everywhere(make, no_noise):
    rng = np.random.default_rng(5)
    many = pl.DataFrame({"u": rng.integers(0, 200, 2000), "g": rng.integers(0, 9, 2000)})
    with dp.Session(eps=1000, unit="u", max_groups=2, max_rows_per_group=1):
        plan = dp.frame(many).plan.groupby("g", keys=range(9)).count(eps=1).plan
    sources = [dp.frame(f)._source for f in (many, make(many), make(many.sample(fraction=1, shuffle=True)))]
    ask = Ask(by=plan.by, keys=plan.keys, bounding=Bounding(("u",), 1, 2), salt=77)
    with canonical_rank():
        rows = [s.aggregate(ask).rows.tolist() for s in sources]
    assert rows[0] == rows[1] == rows[2]
    assert sum(rows[0]) == 2 * 200
    other = sources[1].aggregate(dataclasses.replace(ask, salt=78)).rows.tolist()
    assert other != rows[1]


def test_units_choose_their_rows_among_texts_alike_everywhere(make, no_noise):
    rng = np.random.default_rng(6)
    rows = {"u": rng.integers(0, 50, 400), "t": rng.choice(["a", "b|", "1:a", "-"], 400)}
    many = pl.DataFrame(rows)
    with dp.Session(eps=1000, unit="u", max_rows=1):
        listed = dp.frame(many).plan.top_k("t", 2, candidates=["a", "b|", "-"], eps=1)
        distinct = dp.frame(many).plan.n_unique("t", eps=1)
    for plan in (listed.plan, distinct.plan):
        with canonical_rank():
            got = [
                [dataclasses.astuple(x) for x in dp.frame(f)._source.tally(plan.ask(77))]
                for f in (many, make(many))
            ]
        np.testing.assert_equal(got[1], got[0])


def test_one_unit_more_changes_nobody_elses_choice(make):
    """Privacy: the sums of a neighbour differ by one unit's rows alone, for every salt."""
    rng = np.random.default_rng(6)
    frame = pl.DataFrame({"u": rng.integers(0, 60, 600), "g": rng.integers(0, 9, 600)})
    fewer = frame.filter(pl.col("u") != 7)
    types = dp.frame(make(frame))._source
    by = (types.column("g"),)
    for salt in (1, 2, 3):
        both = []
        for f in (frame, fewer):
            got = dp.frame(make(f))._source.aggregate(Ask(by=by, bounding=Bounding(("u",), 1, 2), salt=salt))
            both.append(dict(zip(got.found["k0"].to_list(), got.rows.tolist())))
        assert sum(abs(both[0].get(k, 0) - both[1].get(k, 0)) for k in range(9)) == 2


def test_thousands_of_keys_with_quotes_and_separators(make, no_noise):
    keys = [f"k{i} '\"|\\ \x1f0\x1f" for i in range(3000)]
    frame = pl.DataFrame({'a "b" c': keys[:10] * 3})
    with dp.Session(eps=10):
        got = dp.frame(make(frame)).groupby('a "b" c', keys=keys).count(eps=1)
    assert got["count"].to_list() == [3] * 10 + [0] * 2990


def test_keys_of_several_texts_are_not_taken_for_each_other(make, no_noise):
    """Privacy: a row that two keys share would count twice."""
    keys = [
        ("a|b", "c"),
        ("a", "b|c"),
        ("1:a", "a"),
        ("", "|"),
        ("|", ""),
        ("-", ""),
        (None, ""),
        (None, "-"),
    ]
    rows = [k for i, k in enumerate(keys) for _ in range(i + 1)]
    frame = pl.DataFrame(rows, schema=["a", "b"], orient="row")
    with dp.Session(eps=10):
        got = dp.frame(make(frame)).groupby(["a", "b"], keys=keys).count(eps=1)
    assert sorted(zip(got["a"], got["b"], got["count"]), key=lambda r: r[2]) == [
        (*k, i + 1) for i, k in enumerate(keys)
    ]


# ---- what leaves the engine ----


@pytest.fixture
def collected(monkeypatch):
    """What is collected of rows: the native query and what came back. How texts compare is asked of no row."""
    nw = pytest.importorskip("narwhals.stable.v2", reason="narwhals is not installed")
    seen, collect = [], nw.LazyFrame.collect

    def spy(self, *args, **options):
        got = collect(self, *args, **options)
        if "less0" not in got.columns:
            seen.append((self.to_native(), got.to_native()))
        return got

    monkeypatch.setattr(nw.LazyFrame, "collect", spy)
    return seen


@pytest.mark.parametrize("unit", [None, "u"])
def test_only_sums_per_group_come_back(make, collected, unit):
    many = pl.concat([TABLE] * 200)
    limits = {} if unit is None else {"max_groups": 1, "max_rows_per_group": 2}
    with dp.Session(eps=10, delta=1e-3, unit=unit):
        frame = dp.frame(make(many))
        frame.groupby("g", keys=["a", "b"]).dp_agg(
            n=dp.count(),
            s=dp.clip_sum("x", bounds=(0, 1)),
            v=dp.clip_var("cash", bounds=(0, 2)),
            eps=1,
            **limits,
        )
        frame.groupby("g").dp_agg(n=dp.count(), eps=1, delta=1e-6, **limits)
    assert 1 <= collected[0][1].num_rows <= 2
    assert 1 <= collected[1][1].num_rows <= 4  # of 1,600 rows
    for _, got in collected:
        assert {str(t) for n, t in zip(got.schema.names, got.schema.types) if not n.startswith("k")} == {
            "int64"
        }


@pytest.mark.parametrize("unit", [None, "u"])
def test_duckdb_reads_the_used_columns_once(collected, unit):
    make = _duckdb()
    with dp.Session(eps=10, unit=unit):
        limits = {} if unit is None else {"max_groups": 1, "max_rows_per_group": 2}
        dp.frame(make(TABLE)).groupby("g", keys=["a", "b"]).dp_agg(
            n=dp.count(),
            s=dp.clip_sum("x", bounds=(0, 1)),
            m=dp.clip_mean("x", bounds=(0, 1)),
            eps=1,
            **limits,
        )
    ((query, _),) = collected
    plan = query.explain()
    assert plan.count("ARROW_SCAN") == 1
    assert "cash" not in plan
    assert "level" not in plan


@on_spark
def test_the_documentations_spark_lines_answer_as_its_others_do(tmp_path):
    """docs/cluster.md: its lines, on a folder in place of the bucket, with the session and the question of its page."""
    _spark()
    page = (Path(__file__).parents[3] / "docs" / "cluster.md").read_text()
    lines = re.search(r"^```text\n(from pyspark.*?)^```", page, re.DOTALL | re.MULTILINE)[1]
    asked = re.search(r">>> def session.*?(?=\n\n```)", page, re.DOTALL)[0]
    printed: list = []
    space = {"dp": dp, "print": printed.append}
    exec("\n".join(line[4:] for line in asked.splitlines()), space)
    users, minutes = [u for u in range(500) for _ in range(2)], [10.0, 35.0] * 500
    frame = pl.DataFrame({"user": users, "city": ["Oslo", "Rome"] * 500, "minutes": minutes})
    frame.write_parquet(tmp_path / "visits.parquet")
    exec(lines.replace("s3://.../visits/", str(tmp_path / "visits.parquet")), space)
    assert printed == [[("Oslo", 500, 500, 10.0), ("Rome", 500, 500, 35.0)]]


@on_spark
@pytest.mark.parametrize("unit", [None, "u"])
def test_spark_scans_the_used_columns_once(collected, tmp_path, unit):
    _spark()
    from pyspark.sql import SparkSession

    for i in range(3):
        TABLE.write_parquet(tmp_path / f"{i}.parquet")
    frame = SparkSession.getActiveSession().read.parquet(str(tmp_path))
    limits = {} if unit is None else {"max_groups": 1, "max_rows_per_group": 2}
    with dp.Session(eps=10, unit=unit):
        dp.frame(frame).groupby("g", keys=["a", "b"]).dp_agg(
            n=dp.count(),
            s=dp.clip_sum("x", bounds=(0, 1)),
            m=dp.clip_mean("x", bounds=(0, 1)),
            eps=1,
            **limits,
        )
    ((query, got),) = collected
    assert got.num_rows == 2 if unit is None else got.num_rows <= 2  # units may all choose the same group
    plan = query._jdf.queryExecution().executedPlan().toString()
    (read,) = re.findall(r"ReadSchema: struct<(.*?)>", plan)
    assert sorted(c.split(":")[0] for c in read.split(",")) == ["g", *(["u"] if unit else []), "x"]
    assert unit or not re.search(r"\bFilter ", plan), "the text of keys is for groups, not for every row"


# ---- what is refused, before anything is spent ----


def test_partitions_are_refused_before_the_charge(engine):
    name, make = engine
    with dp.Session(eps=1) as s:
        with pytest.raises(dp.InputError, match=rf"{NAMES[name]}.*read at different times.*Hint: groupby"):
            dp.frame(make(TABLE)).partition_by("g", keys=["a"], eps=1)
        assert s.spent == 0


def test_strict_sessions_refuse_queries(engine):
    name, make = engine
    with dp.Session(eps=1, strict=True) as s:
        with pytest.raises(dp.InputError, match=f"not known to be row by row: {NAMES[name]}"):
            dp.frame(make(TABLE)).count(eps=1)
        assert s.spent == 0


def test_columns_are_checked_from_the_schema(make):
    frame = dp.frame(make(TABLE))
    with dp.Session(eps=1) as s:
        with pytest.raises(dp.InputError, match="no column 'xx'"):
            frame.count("xx", eps=1)
        with pytest.raises(dp.InputError, match="the column is String, not numbers"):
            frame.clip_sum("g", bounds=(0, 1), eps=1)
        with pytest.raises(dp.InputError, match="does not fit 'day'"):
            frame.groupby("day", keys=[1]).count(eps=1)
        assert s.spent == 0


def test_a_failing_engine_says_nothing(no_noise):
    """A division by zero, or a cast that fails, quotes the cell; the words stay inside."""
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    relation = connection.sql("select cast(x as integer) as x from (values ('canary-4711')) t(x)")
    with dp.Session(eps=1) as s:
        with pytest.raises(dp.ReleaseFailed) as failed:
            dp.frame(relation).clip_sum("x", bounds=(0, 1), eps=1)
        assert s.spent == 1
    assert "canary" not in str(failed.value)
    assert failed.value.__context__ is None
    assert failed.value.__cause__ is None


def test_sources_show_no_cell_and_are_not_pickled(engine):
    name, make = engine
    frame = dp.frame(make(TABLE))
    assert repr(frame).startswith(f"<df.dp of <{NAMES[name]}")
    assert "zz" not in repr(frame)
    with pytest.raises(TypeError, match="can't be pickled"):
        pickle.dumps(frame._source)


def test_unchecked_dialects_are_refused(monkeypatch):
    ibis = pytest.importorskip("ibis")
    pytest.importorskip("sqlframe")
    from sqlframe.standalone import StandaloneSession

    frame = StandaloneSession.builder.getOrCreate().createDataFrame([(1,)], ["a"])
    with pytest.raises(TypeError, match=r"SQLFrame DataFrames on standalone.*Hint"):
        dp.frame(frame)
    table = ibis.memtable({"a": [1]})
    assert dp.frame(table)._source.column("a").kind == "int"
    monkeypatch.setattr(type(table), "get_backend", lambda self: SimpleNamespace(name="bigquery"))
    with pytest.raises(TypeError, match=r"Ibis tables on bigquery.*Hint"):
        dp.frame(table)


# ---- a cluster that loses a machine ----


@on_spark
def test_a_lost_executor_changes_no_integer():
    """Privacy: a task that is run again chooses the same groups, so no unit counts in more than it may."""
    _spark()
    script = Path(__file__).parents[2] / "lose_an_executor.py"
    paths = {"PYTHONPATH": os.pathsep.join([str(script.parent.parent), os.environ.get("PYTHONPATH", "")])}
    run = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=os.environ | paths, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
    said = dict(line.split() for line in run.stdout.splitlines())
    assert said["executors"] == "2"
    assert said["lost"] == said["same"] == said["sums"] == "True"
    assert int(said["rows"]) > 1000


# ---- types that only databases have ----


@pytest.mark.parametrize("how", ["NOCASE", "NOACCENT", "NFC", "de", "set"])
def test_texts_that_an_engine_takes_for_one_are_no_keys(how):
    """Privacy: a row of 'a' would count for the listed key 'A', too."""
    duckdb, ibis = pytest.importorskip("duckdb"), pytest.importorskip("ibis")
    pytest.importorskip("narwhals")
    connection = duckdb.connect()
    declared = "" if how == "set" else f"COLLATE {how}"
    connection.execute(f"CREATE TABLE t(g VARCHAR {declared}, plain ENUM('a', 'A'), x INTEGER)")
    connection.execute("INSERT INTO t VALUES ('a', 'a', 1), ('A', 'A', 2), ('b', 'a', 3)")
    names = ["g"]
    if how == "set":
        connection.execute("SET default_collation = 'NOCASE'")
        names.append("plain")
    elsewhere = ibis.duckdb.connect()
    elsewhere.raw_sql(f"CREATE TABLE t(g VARCHAR {declared or 'COLLATE NOCASE'}, x INTEGER)")
    for table, of in ((connection.table("t"), names), (elsewhere.table("t"), ["g"])):
        for name in of:
            with dp.Session(eps=1, delta=1e-3) as s:
                for keys, more in (({"keys": ["a", "A"]}, {}), ({}, {"delta": 1e-6})):
                    with pytest.raises(dp.InputError, match=f"'{name}' is .* with a collation"):
                        dp.frame(table).groupby(name, **keys).count(eps=0.1, **more)
                with pytest.raises(dp.InputError, match="with a collation"):
                    dp.frame(table).n_unique(name, eps=0.1)
                assert s.spent == 0
            with dp.Session(eps=1, unit=name), pytest.raises(dp.InputError, match="with a collation"):
                dp.frame(table).count(eps=0.1)
    with dp.Session(eps=1):
        dp.frame(connection.table("t")).clip_sum("x", bounds=(0, 3), eps=0.1)


def test_duckdb_types(no_noise):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    relation = connection.sql(
        """
        select 'abcd1234-0000-0000-0000-00000000000' || (i % 3) :: varchar as id_text,
               ('abcd1234-0000-0000-0000-00000000000' || (i % 3)) :: uuid as id,
               (i * 1000000000000) :: hugeint as huge, (18446744073709551615 - i) :: ubigint as unsigned,
               (case when i % 2 = 0 then 'low' else 'high' end) :: enum('high', 'low') as size,
               case when i = 0 then 'infinity' else timestamptz '2026-01-01 00:00:00+00' end as at,
               timestamp_ns '2026-01-01 00:00:00.000000001' as nano, time '12:00' as clock,
               [i, 1.0] :: double[] as list, [i, 1.0] :: double[2] as pair, interval 1 day as lasts
        from range(6) t(i)
        """
    )
    frame = dp.frame(relation)
    with dp.Session(eps=1000):
        sizes = frame.groupby("size", keys="declared").count(eps=1)
        assert sizes.to_dict(as_series=False) == {"size": ["high", "low"], "count": [3, 3]}
        assert frame.groupby("unsigned", keys=[2**64 - 1, 5]).count(eps=1)["count"].to_list() == [1, 0]
        assert frame.groupby("huge", keys=[10**12, 0]).count(eps=1)["count"].to_list() == [1, 1]
        instants = [dt.datetime(2026, 1, 1, tzinfo=dt.UTC), None]
        assert frame.groupby("at", keys=instants).count(eps=1)["count"].to_list() == [5, 1]
        assert frame.clip_sum("huge", bounds=(0, 3e12), eps=1) == pytest.approx(12e12, rel=1e-6)
        for column in ("list", "pair"):
            total = frame.vector_sum(column, dim=2 if column == "list" else None, norm=10, eps=1)
            assert total["1" if "1" in total.columns else total.columns[1]].to_list() == pytest.approx(
                [6], abs=1e-4
            )
        for column in ("clock", "lasts"):
            with pytest.raises(dp.InputError, match="can't be a grouping column"):
                frame.groupby(column, keys=["x"]).count(eps=1)
        ids = [str(UUID(f"abcd1234-0000-0000-0000-00000000000{i}")) for i in range(3)]
        assert frame.groupby("id", keys=ids).count(eps=1)["count"].to_list() == [2, 2, 2]
    with dp.Session(eps=10, unit="id"):
        assert frame.count_units(eps=1) == 3


# ---- extras ----


def test_importing_dpframe_imports_no_engine():
    code = (
        "import sys, dpframe, polars as pl\n"
        "with dpframe.Session(eps=1): pl.DataFrame({'x': [1]}).dp.count(eps=1)\n"
        "print([m for m in ('narwhals', 'duckdb', 'ibis', 'sqlframe', 'pyspark', 'dask') if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"


def test_a_missing_library_names_the_extra():
    code = (
        "import sys\n"
        "sys.modules['narwhals'] = None\n"
        "import duckdb, dpframe\n"
        "try: dpframe.frame(duckdb.sql('select 1 as a'))\n"
        "except TypeError as e: print(e)"
    )
    pytest.importorskip("duckdb")
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "dpframe[duckdb]" in said
    assert "narwhals" in said


def test_polars_own_rank_is_restored_after_the_test_hook():
    frame = pl.DataFrame({"u": [1] * 5, "g": list(range(5))})
    source = PolarsSource(frame)
    by = (source.column("g"),)

    def chosen():
        return source.aggregate(Ask(by=by, bounding=Bounding(("u",), 1, 2), salt=3)).found["k0"].to_list()

    before = chosen()
    with pytest.raises(ZeroDivisionError), canonical_rank():
        raise ZeroDivisionError
    assert chosen() == before
