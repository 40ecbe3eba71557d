"""DuckDB, Ibis, SQLFrame and PySpark: only the small aggregate leaves the engine, and what is refused costs nothing."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from databases import TABLE, make_duckdb, make_spark
from sizes import AUDIT

import dpframe as dp

pytestmark = pytest.mark.usefixtures("quiet")
NAMES = {"duckdb": "DuckDB", "ibis": "Ibis", "sqlframe": "SQLFrame", "spark": "PySpark"}


on_spark = pytest.mark.xdist_group("spark")  # one process runs them all, with one Spark


# ---- what leaves the engine ----


@pytest.fixture
def collected(monkeypatch):
    """What is collected of rows: the native query and what came back. How texts compare, and whether it can answer, is asked of no row."""
    nw = pytest.importorskip("narwhals.stable.v2", reason="narwhals is not installed")
    seen, collect = [], nw.LazyFrame.collect

    def spy(self, *args, **options):
        got = collect(self, *args, **options)
        if not {"less0", "ready"} & set(got.columns):
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
    make = make_duckdb()
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
    make_spark()
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
    make_spark()
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
@pytest.mark.skipif(not AUDIT, reason="a cluster of its own: make audit-engines")
def test_a_lost_executor_changes_no_integer():
    """Privacy: a task that is run again chooses the same groups, so no unit counts in more than it may."""
    make_spark()
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
