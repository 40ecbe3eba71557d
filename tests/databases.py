"""A table in DuckDB, Ibis, SQLFrame and Spark."""

from __future__ import annotations

import datetime as dt
import functools
import shutil
import subprocess
from decimal import Decimal

import polars as pl
import pytest


def make_duckdb():
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'dpframe[duckdb]'")
    pytest.importorskip("narwhals", reason="narwhals is not installed: pip install 'dpframe[duckdb]'")
    connection = duckdb.connect()
    return lambda frame: connection.from_arrow(frame.to_arrow())


def make_ibis():
    ibis = pytest.importorskip("ibis", reason="Ibis is not installed: pip install 'dpframe[ibis]'")
    return lambda frame: ibis.memtable(frame.to_arrow())


@functools.cache
def make_sqlframe():
    """The one session of a process: SQLFrame makes no second one, whatever connection it is given."""
    place = "sqlframe.duckdb"
    sqlframe = pytest.importorskip(place, reason="SQLFrame is not installed: pip install 'dpframe[sqlframe]'")
    session = sqlframe.DuckDBSession.builder.getOrCreate()
    connection = session._conn
    names = (f"made_{i}" for i in range(10**9))

    def make(frame):
        name, held = next(names), frame.to_arrow()
        connection.register("held", held)
        connection.execute(f"create table {name} as select * from held")
        connection.unregister("held")
        return session.read.table(name)

    return make


@functools.cache
def make_spark():
    """One session for every test of a process; xdist runs them all in one (the group "spark")."""
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


ENGINES = {"duckdb": make_duckdb, "ibis": make_ibis, "sqlframe": make_sqlframe, "spark": make_spark}


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
