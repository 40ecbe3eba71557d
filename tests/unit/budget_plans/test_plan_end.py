"""A plan that passes its check runs to its end; files are known by what they are; a file holds a plan exactly or not."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import os
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.budget_plans.csv_lines import header, scan

N = 1000
PEOPLE = pl.DataFrame({"x": [1.0, 2.0] * (N // 2), "late": [True] * N, "g": ["a", "b"] * (N // 2)})
BOUNDS = (0, 10)


@pytest.fixture
def folder(tmp_path):
    PEOPLE.write_parquet(tmp_path / "people.parquet")
    return tmp_path


# ---- adaptive plans ----


@pytest.mark.parametrize("rows", [0, 1, 2, N])
@pytest.mark.parametrize("k", ["rows", "relative_to"])
def test_an_answer_that_may_be_zero_takes_what_a_query_is_entitled_to(rows, k):
    """Its interval contains 0 (surely for no rows at eps = .001: within 30,000 of 0 with 1 - 1e-9): no division by it."""
    mean = dp.query(dp.clip_mean("x", bounds=BOUNDS), error=0.5, rows=100)
    queries = {
        "n": dp.query(dp.count(), eps=0.001),
        "m": dp.query(dp.clip_mean("x", bounds=BOUNDS), error=0.5, rows="n")
        if k == "rows"
        else dp.query(dp.count(), error=0.5, relative_to="n"),
        "last": mean,
    }
    plan = dp.BudgetPlan(PEOPLE.head(rows), queries, eps=1, allocation="adaptive")
    assert set(plan.run()) == set(queries)
    assert plan.log().height == 3
    assert plan.session.spent <= 1


NO_INTERVAL = {
    "median": dp.median("x", bounds=BOUNDS),
    "iqr": dp.iqr("x", bounds=BOUNDS),
    "quantile": dp.quantile("x", 0.9, bounds=BOUNDS),
    "bounds": dp.bounds("x"),
}


@pytest.mark.parametrize("name", NO_INTERVAL)
@pytest.mark.parametrize("k", ["rows", "relative_to"])
def test_an_answer_without_an_interval_is_no_size(name, k):
    queries = {"of": dp.query(NO_INTERVAL[name], eps=0.1), "n": dp.query(dp.count(), error=1, **{k: "of"})}
    with pytest.raises(dp.InputError, match=f"{k}='of' is a"):
        dp.BudgetPlan(PEOPLE, queries, eps=1, allocation="adaptive")


@pytest.mark.parametrize("name", NO_INTERVAL)
def test_a_log_has_no_margin_where_an_answer_has_none(name):
    plan = dp.BudgetPlan(PEOPLE, {"a": NO_INTERVAL[name]}, eps=1)
    plan.run()
    assert plan.log()["margin"].to_list() == [None]


def test_a_query_for_groups_has_no_error():
    with pytest.raises(dp.InputError, match="error= is of a number"):
        dp.query(groupby="g", error=5, delta=1e-7)


# ---- files by what they are ----


@pytest.mark.parametrize("name", ["v[1].parquet", "s*.parquet", "q?.csv", "v[1].csv", "year=2026.parquet"])
def test_paths_are_literal(tmp_path, name):
    for other in ("v1", "s1", "q1", "vv1"):
        for ending in (".csv", ".parquet"):
            wrong = pl.DataFrame({"x": ["9"] * 900})
            (wrong.write_csv if ending == ".csv" else wrong.write_parquet)(tmp_path / f"{other}{ending}")
    right = pl.DataFrame({"x": ["1"]})
    (right.write_csv if name.endswith(".csv") else right.write_parquet)(tmp_path / name)
    plan = dp.BudgetPlan(name, {"n": dp.count()}, eps=100, folder=str(tmp_path))
    assert plan.run()["n"].value < 10  # 1 with noise of scale .01
    keyed = dp.query(dp.count(), groupby="x", keys=name)
    plan = dp.BudgetPlan(name, {"n": keyed}, eps=100, folder=str(tmp_path))
    assert plan.run()["n"].value["x"].to_list() == ["1"]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("how", ["same", "dotted", "symlink", "hard link"])
def test_a_file_is_one_part_only(tmp_path, ending, how):
    one, other = tmp_path / f"a{ending}", tmp_path / f"b{ending}"
    pl.DataFrame({"x": ["1"]}).write_csv(one) if ending == ".csv" else PEOPLE.write_parquet(one)
    if how == "symlink":
        other.symlink_to(one)
    elif how == "hard link":
        os.link(one, other)
    paths = [one.name, {"same": one.name, "dotted": f"./{one.name}"}.get(how, other.name)]
    with pytest.raises(dp.InputError, match="same file as another part"):
        dp.BudgetPlan(paths, {"n": dp.count()}, eps=1, folder=str(tmp_path))


@pytest.mark.parametrize("how", ["same", "symlink", "hard link"])
@pytest.mark.parametrize("what", ["source", "keys", "ledger", "anchor", "facts"])
def test_an_output_is_no_file_that_is_read_or_kept(folder, what, how):
    pl.DataFrame({"g": ["a", "b"]}).write_csv(folder / "keys.csv")
    dp.Ledger.create(folder / "ledger.csv", eps=9, anchor=folder / "anchor.csv").close()
    target = {"source": "people.parquet", "keys": "keys.csv", "ledger": "ledger.csv", "anchor": "anchor.csv"}
    output = target.get(what, "twice.csv")
    if what == "facts":
        dp.Ledger.create(folder / "twice.csv.json", eps=9).close()
    elif how == "symlink":
        (folder / "link.csv").symlink_to(folder / output)
        output = "link.csv"
    elif how == "hard link" and what != "ledger":  # a ledger itself refuses a second name
        os.link(folder / output, folder / "link.parquet")
        output = "link.parquet"
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    with pytest.raises(dp.InputError, match="outputs= has"):
        dp.BudgetPlan(
            "people.parquet",
            {"n": dp.query(dp.count(), groupby="g", keys="keys.csv", outputs=output)},
            eps=1,
            name="job",
            ledger="twice.csv.json" if what == "facts" else "ledger.csv",
            folder=str(folder),
        )
    assert before.items() <= {p.name: p.read_bytes() for p in folder.iterdir()}.items()


@pytest.mark.parametrize("length", [200, 231, 245, 250, 255, 300])
def test_a_name_that_passes_the_check_is_written(folder, length):
    name = "é" * ((length - 4) // 2) + "x" * (length % 2) + ".csv"

    def plan():
        query = dp.query(dp.count(), outputs=name)
        return dp.BudgetPlan("people.parquet", {"n": query}, eps=1, folder=str(folder))

    if length > 250:
        with pytest.raises(dp.InputError, match="too long a name"):
            plan()
    else:
        plan().run()
        assert (folder / name).exists()


@pytest.mark.parametrize("where", ["source", "outputs", "keys"])
def test_a_zero_byte_is_refused_in_words(folder, where):
    query = {"outputs": "n\0.csv"} if where == "outputs" else {}
    if where == "keys":
        query = {"groupby": "g", "keys": "k\0.csv"}
    source = "people\0.parquet" if where == "source" else "people.parquet"
    with pytest.raises(dp.InputError, match="zero byte"):
        dp.BudgetPlan(source, {"n": dp.query(dp.count(), **query)}, eps=1, folder=str(folder))


def test_a_table_of_duckdb_is_never_a_file(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    pl.DataFrame({"x": [1] * 5}).write_csv(tmp_path / "people.csv")
    with duckdb.connect(str(tmp_path / "w.db")) as c:
        c.execute('CREATE TABLE visits (x INTEGER); CREATE SCHEMA s; CREATE VIEW s."v.1" AS FROM visits')
        c.execute("CREATE VIEW s.v AS FROM visits")
    plan = {"n": dp.count()}
    for wrong in ("people.csv", str(tmp_path / "people.csv"), "s.visits", "v", "a.b.c.d", "w.s.nothing"):
        with pytest.raises(dp.InputError, match="can't be opened"):
            dp.BudgetPlan(f"duckdb:w.db?table={wrong}", plan, eps=1, folder=str(tmp_path))
    for right in ("visits", "VISITS", "main.visits", "s.v", "w.s.v"):
        made = dp.BudgetPlan(f"duckdb:w.db?table={right}", plan, eps=100, folder=str(tmp_path))
        assert made.run()["n"].value < 10


# ---- one line is one row ----

LINES = [
    '1,5" pipe,3',
    '2,7" pipe,4',
    '3,"a, b",5',
    '4,"q""q",6',
    '"5","",7',
    "6",
    "7,a,8,b,c",
    '"',
    ",,",
    '8,"x',
]


@pytest.mark.parametrize("i", range(len(LINES)))
def test_a_line_of_a_csv_moves_its_own_row_only(tmp_path, i):
    """Neighbouring files: without a line, and with another in its place, the other rows are what they were."""

    def rows(lines):
        (tmp_path / "t.csv").write_text("\n".join(["u,t,x", *lines, ""]))
        path = str(tmp_path / "t.csv")
        return scan([path], header(path), {"x": "int"}).collect().rows()

    whole = rows(LINES)
    assert len(whole) == len(LINES)
    assert rows(LINES[:i] + LINES[i + 1 :]) == whole[:i] + whole[i + 1 :]
    for other in LINES:
        changed = rows([*LINES[:i], other, *LINES[i + 1 :]])
        assert changed[:i] + changed[i + 1 :] == whole[:i] + whole[i + 1 :]
        assert changed[i] == whole[LINES.index(other)]


def test_a_csv_is_read_as_others_write_it(tmp_path):
    frame = pl.DataFrame({"u": ["a,b", 'q"q', None, "", "é"], "x": [1, 2, 3, None, 5]})
    for ends in ("\n", "\r\n"):
        frame.write_csv(tmp_path / "t.csv", line_terminator=ends, include_bom=True, quote_style="non_numeric")
        path = str(tmp_path / "t.csv")
        assert header(path) == ["u", "x"]
        assert (
            scan([path], ["u", "x"], {"x": "int"})
            .collect()
            .equals(frame.with_columns(pl.col("u").replace("", None) if ends == "" else pl.col("u")))
        )


def test_texts_that_are_no_unicode_stay_apart_by_being_missing(tmp_path):
    """Two ids that differ in a byte that is no UTF-8 would be one unit."""
    (tmp_path / "t.csv").write_bytes(b"u\na\xff\na\xfe\nb\n")
    path = str(tmp_path / "t.csv")
    assert scan([path], header(path), {}).collect()["u"].to_list() == [None, None, "b"]


# ---- written and read ----


class Colour(enum.Enum):
    RED = "a"
    BLUE = "b"


DAY = dt.date(2026, 1, 1)
KEYS = {
    "text": (["a"], [["1/2", "12/25", "2024/7", "{scope}", "\x7f\n\"'"]]),
    "int": ([1], [[1, 2], [2**62], range(3), np.arange(3)]),
    "float": ([1.5], [[1.5, float("nan")], [float("inf")], [1e300, -0.0]]),
    "date": ([DAY], [[DAY, dt.date(1, 1, 1)], [np.datetime64("2026-01-01")], ["2026-01-01"]]),
    "datetime": (
        [dt.datetime(2026, 1, 1)],
        [
            [dt.datetime(2026, 1, 1, 5, 6, 7, 89)],
            [pd.Timestamp("2026-01-01 05:00:00.000001")],
            [np.datetime64("2026-01-01T05:00:00.000001000")],
        ],
    ),
    "bool": ([True], [[True, False]]),
    "decimal": ([decimal.Decimal("1.50")], [[decimal.Decimal("1.50")], [decimal.Decimal("1e-3")]]),
    "enum": (["a"], [Colour, [Colour.RED]]),
    "binary": ([b"a"], [[b"a"]]),
    "none": (["a"], [[None, "a"]]),
    "nanoseconds": (
        pl.Series([1], dtype=pl.Datetime("ns")),
        [[pd.Timestamp(1)], [np.datetime64(1, "ns")], [pd.Timestamp("2026-01-01")]],
    ),
}


@pytest.mark.parametrize(("kind", "i"), [(k, i) for k, (_, v) in KEYS.items() for i in range(len(v))])
def test_a_plan_is_written_exactly_or_not_at_all(tmp_path, kind, i):
    column, spellings = KEYS[kind]
    pl.DataFrame({"g": column}).write_parquet(tmp_path / "g.parquet")
    given = spellings[i]
    keys = dp.public(given) if isinstance(given, np.ndarray) else given
    try:
        plan = dp.BudgetPlan(
            "g.parquet", {"n": dp.query(dp.count(), groupby="g", keys=keys)}, eps=1, folder=str(tmp_path)
        )
    except dp.InputError:
        pytest.skip("no keys of that column")
    file = tmp_path / "plan.toml"
    if kind in ("decimal", "binary", "none") or (kind, i) in (("nanoseconds", 0), ("nanoseconds", 1)):
        with pytest.raises(dp.InputError, match=r"Hint: keys from a file|can't be read back"):
            plan.to_release_file(file)
        assert not file.exists()
        return
    plan.to_release_file(file)
    again = dp.BudgetPlan.from_release_file(file)
    assert again.fingerprint == plan.fingerprint
    assert repr(again.run()["n"].value["g"].to_list()) == repr(plan.run()["n"].value["g"].to_list())


def test_a_column_or_a_candidate_may_be_called_like_a_fraction(tmp_path):
    pl.DataFrame({"1/2": ["1/2", "2/3"] * 9, "x": [1.0] * 18}).write_parquet(tmp_path / "g.parquet")
    queries = {
        "n": dp.count("1/2"),
        "top": dp.query(dp.top_k("1/2", 1, candidates=["1/2", "12/25"])),
        "q": dp.query(dp.quantile("x", 0.5, candidates=[0, Fraction(1, 3)])),
    }
    plan = dp.BudgetPlan("g.parquet", queries, eps=1, folder=str(tmp_path))
    plan.to_release_file(tmp_path / "plan.toml")
    assert dp.BudgetPlan.from_release_file(tmp_path / "plan.toml").fingerprint == plan.fingerprint


def test_keys_in_a_file_of_each_scope_leave_the_fingerprint(tmp_path):
    pl.DataFrame({"g": ["a", "b"]}).write_parquet(tmp_path / "g.parquet")
    (tmp_path / "k-1.txt").write_text("a\nb\n")
    (tmp_path / "k-2.txt").write_text("b\nc\n")
    made = [
        dp.BudgetPlan(
            "g.parquet",
            {"n": dp.query(dp.count(), groupby="g", keys="k-{scope}.txt")},
            eps=1,
            folder=str(tmp_path),
            scope=s,
        )
        for s in "12"
    ]
    assert made[0].fingerprint == made[1].fingerprint
    assert made[0].run()["n"].value["g"].to_list() == ["a", "b"]
