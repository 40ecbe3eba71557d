"""A budget plan asks a table where it is: the same answers as from a file, and no table opened by mistake."""

from __future__ import annotations

import shutil
import sys

import polars as pl
import pytest
from databases import make_spark

import dpframe as dp
from dpframe.budget_plans.sources import named

RELEASE_FILE = """\
name = "visits"

[source]
uri = "duckdb:warehouse.db?table=clinic.visits"

[budget]
eps = 2000000

[[query]]
name = "by_city"
groupby = "city"
keys = ["a", "b"]
[query.ask.n]
statistic = "count"
[query.ask.x]
statistic = "clip_mean"
column = "x"
bounds = [0, 100]
"""


@pytest.fixture
def folder(tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    frame = pl.DataFrame({"x": [1.0, 2.0, None, 300.0] * 50, "city": ["a", "b"] * 100, "u": range(200)})
    frame.write_parquet(tmp_path / "visits.parquet")
    with duckdb.connect(str(tmp_path / "warehouse.db")) as c:
        c.execute("CREATE SCHEMA clinic")
        c.execute(f"CREATE TABLE clinic.visits AS SELECT * FROM '{tmp_path / 'visits.parquet'}'")
        c.execute('CREATE VIEW clinic."odd""name" AS SELECT * FROM clinic.visits WHERE city = \'a\'')
    (tmp_path / "q.toml").write_text(RELEASE_FILE)
    return tmp_path


def test_a_table_answers_as_its_file_does(folder):
    plan = dp.BudgetPlan.from_release_file(folder / "q.toml")
    files = dp.BudgetPlan(str(folder / "visits.parquet"), plan.queries, eps=2_000_000)
    a, b = plan.run()["by_city"].value, files.run()["by_city"].value
    assert a["n"].to_list() == b["n"].to_list() == [100, 100]
    assert a["x"].to_list() == pytest.approx(b["x"].to_list(), abs=1e-2)


def test_a_view_and_a_unit(folder):
    plan = dp.BudgetPlan(
        'duckdb:warehouse.db?table=clinic.odd"name',
        {"n": dp.query(dp.count(), max_rows=2)},
        eps=1e6,
        unit="u",
        folder=str(folder),
    )
    assert plan.run()["n"].value == 100


def test_it_is_written_and_read_as_the_same_plan(folder):
    plan = dp.BudgetPlan.from_release_file(folder / "q.toml")
    (folder / "deep").mkdir()
    plan.to_release_file(folder / "deep" / "again.toml")
    assert (
        'uri = "duckdb:../warehouse.db?table=clinic.visits"' in (folder / "deep" / "again.toml").read_text()
    )
    again = dp.BudgetPlan.from_release_file(folder / "deep" / "again.toml")
    assert again.run()["by_city"].value["n"].to_list() == [100, 100]
    plan.to_release_file(folder / "again.toml")
    assert dp.BudgetPlan.from_release_file(folder / "again.toml").fingerprint == plan.fingerprint


def test_only_the_path_is_moved():
    """Its letters occur in the scheme and in the table's name as well."""
    for uri, moved in [
        ("duckdb:db?table=db", "duckdb:../db?table=db"),
        ("duckdb:d?table=d", "duckdb:../d?table=d"),
        ("duckdb:///d?table=d", "duckdb://..//d?table=d"),
        ("spark:?table=k", "spark:?table=k"),
    ]:
        assert named(uri).written(lambda path: f"../{path}") == {"uri": moved}


def test_another_table_has_another_fingerprint(folder):
    def plan(uri):
        return dp.BudgetPlan(uri, {"n": dp.count()}, eps=1, folder=str(folder)).fingerprint

    assert plan("duckdb:warehouse.db?table=clinic.visits") != plan(
        'duckdb:warehouse.db?table=clinic.odd"name'
    )


def test_the_scope_stands_in_the_path(folder):
    shutil.copy(folder / "warehouse.db", folder / "warehouse-2026-11.db")
    plan = dp.BudgetPlan(
        "duckdb:warehouse-{scope}.db?table=clinic.visits",
        {"n": dp.count()},
        eps=1e6,
        folder=str(folder),
        scope="2026-11",
    )
    assert plan.run()["n"].value == 200


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("duckdb:warehouse.db", "must name one table"),
        ("duckdb:warehouse.db?table=", "must name one table"),
        ("duckdb:warehouse.db?table=clinic..visits", "must name one table"),
        ("duckdb:warehouse.db?table=a&table=b", "must name one table"),
        ("duckdb:warehouse.db?tabel=clinic.visits", "must name one table"),
        ("duckdb:?table=clinic.visits", "must name a file"),
        ("duckdb://warehouse.db?table=clinic.visits", "must name a file"),
        ("duckdb:nowhere.db?table=clinic.visits", "no readable file"),
        ("duckdb:visits.parquet?table=visits", "can't be opened"),
        ("duckdb:warehouse.db?table=visits", "can't be opened"),
        ("duckdb:warehouse.db?table=clinic.visits; DROP TABLE clinic.visits", "can't be opened"),
        ("spark://host/path?table=t", "has a path"),
        ("postgres://host/db?table=t", "names no engine"),
        ("s3://bucket/visits.parquet", "names no engine"),
    ],
)
def test_a_table_that_can_not_be_opened_is_named_with_its_line(folder, uri, says):
    (folder / "q.toml").write_text(RELEASE_FILE.replace("duckdb:warehouse.db?table=clinic.visits", uri))
    with pytest.raises(dp.InputError, match=says) as e:
        dp.BudgetPlan.from_release_file(folder / "q.toml")
    assert str(e.value).startswith(f"{folder}/q.toml:4: ")
    assert "Hint: " in str(e.value)
    assert e.value.__suppress_context__


def test_a_file_beside_a_table_is_refused(folder):
    (folder / "q.toml").write_text(RELEASE_FILE.replace("uri =", "path = 'visits.parquet'\nuri ="))
    with pytest.raises(dp.InputError, match=r"q.toml:5: a source has uri or path, not both"):
        dp.BudgetPlan.from_release_file(folder / "q.toml")


def test_no_output_falls_on_the_database(folder):
    (folder / "warehouse.db").rename(folder / "warehouse.csv")
    queries = {"n": dp.query(dp.count(), outputs="./warehouse.csv")}
    with pytest.raises(dp.InputError, match="which is the source"):
        dp.BudgetPlan("duckdb:warehouse.csv?table=clinic.visits", queries, eps=1, folder=str(folder))


def test_a_variable_of_that_name_is_not_opened(folder):
    private_frame = pl.read_parquet(folder / "visits.parquet")
    with pytest.raises(dp.InputError, match="can't be opened"):
        dp.BudgetPlan("duckdb:warehouse.db?table=private_frame", {"n": dp.count()}, eps=1, folder=str(folder))
    assert private_frame.height == 200


def test_the_database_is_opened_read_only(folder):
    frame = named("duckdb:warehouse.db?table=clinic.visits").open(lambda p: str(folder / p))
    with pytest.raises(Exception, match="read-only"):
        frame.create("copy")


@pytest.mark.parametrize(
    ("uri", "module"), [("duckdb:warehouse.db?table=clinic.visits", "duckdb"), ("spark:?table=t", "pyspark")]
)
def test_an_engine_that_is_not_installed_is_named_with_its_extra(folder, monkeypatch, uri, module):
    for name in [m for m in sys.modules if m.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    extra = uri.split(":")[0]
    with pytest.raises(dp.InputError, match=rf"needs {module}.*pip install 'dpframe\[{extra}\]'"):
        dp.BudgetPlan(uri, {"n": dp.count()}, eps=1, folder=str(folder))


@pytest.mark.parametrize("path", ["C:\\data\\visits.parquet", "data-10:30.csv", "2026-11-30T10:00.parquet"])
def test_a_path_with_a_colon_is_a_path(path):
    assert named(path).paths == (path,)


@pytest.mark.xdist_group("spark")
def test_a_table_of_spark(folder, tmp_path):
    make_spark()
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    spark.read.parquet(str(folder / "visits.parquet")).createOrReplaceTempView("visits_of_a_test")
    plan = dp.BudgetPlan("spark:?table=visits_of_a_test", {"n": dp.count()}, eps=1e6, folder=str(folder))
    assert plan.run()["n"].value == 200
    with pytest.raises(dp.InputError, match="can't be opened"):
        dp.BudgetPlan("spark:?table=nowhere", {"n": dp.count()}, eps=1)
