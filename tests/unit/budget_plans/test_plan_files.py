"""Files of a budget plan: typed cells, keys, outputs with their facts, whole or not at all."""

from __future__ import annotations

import datetime as dt
import json
import os

import polars as pl
import pytest
from plan_tools import PEOPLE

import dpframe as dp
from dpframe.base import files as atomic
from dpframe.budget_plans.sources import Files

# ---- files ----


def test_csv_cells_that_are_not_of_their_type_are_missing(tmp_path):
    (tmp_path / "p.csv").write_bytes(
        b"n,f,b,d\n1,2.5,TRUE,2026-01-31\nx,nan,no,2026-02-31\n\xff,1e3,0\n4,5,1,2026-01-01,9\n"
    )
    plan = dp.BudgetPlan(
        Files(("p.csv",), {"n": "int", "f": "float", "b": "bool", "d": "date"}),
        {
            "n": dp.count("n"),
            "f": dp.clip_sum("f", bounds=(0, 10)),
            "b": dp.clip_sum("b"),
            "d": dp.query(dp.count(), groupby="d", keys=[dt.date(2026, 1, 31), dt.date(2026, 2, 28)]),
        },
        eps=4e6,
        folder=str(tmp_path),
    )
    got = plan.run()
    assert (int(got["n"].value), float(got["f"].value), int(got["b"].value)) == (
        2,
        pytest.approx(17.5, abs=0.01),
        2,
    )
    assert got["d"].value["count"].to_list() == [1, 0]


def test_types_of_a_csv_never_come_from_its_cells(tmp_path):
    for cells in ("1\n2\n", "a\nb\n"):
        (tmp_path / "p.csv").write_text(f"x\n{cells}")
        with pytest.raises(dp.InputError, match="the column is String"):
            dp.BudgetPlan("p.csv", {"n": dp.clip_sum("x", bounds=(0, 1))}, eps=1, folder=str(tmp_path))


@pytest.mark.parametrize(
    ("sources", "says"),
    [
        ("none.parquet", "no readable file"),
        (["a.parquet", "b.csv"], "all parts alike"),
        ("a.txt", "no readable file|all parts alike"),
        (["a.parquet", "other.parquet"], "other columns or types"),
        ("torn.parquet", "can't be read as parquet"),
        ("empty.csv", "can't be read as CSV"),
        ("{scope}.parquet", "a scope"),
    ],
)
def test_files_that_are_no_source(sources, says, tmp_path):
    PEOPLE.write_parquet(tmp_path / "a.parquet")
    PEOPLE.write_csv(tmp_path / "b.csv")
    PEOPLE.select("x").write_parquet(tmp_path / "other.parquet")
    (tmp_path / "torn.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-9])
    (tmp_path / "empty.csv").write_bytes(b"")
    with pytest.raises(dp.InputError, match=says):
        dp.BudgetPlan(sources, {"n": dp.count()}, eps=1, folder=str(tmp_path))


@pytest.mark.parametrize("scope", ["../a", "a/b", ".", "", "a b", "..", "a\n"])
def test_a_scope_can_not_leave_its_folder(scope, tmp_path):
    with pytest.raises(dp.InputError, match="part of a path"):
        dp.BudgetPlan("{scope}.parquet", {"n": dp.count()}, eps=1, folder=str(tmp_path), scope=scope)


@pytest.mark.parametrize(
    ("name", "content", "by", "expected"),
    [
        ("k.txt", "a\nb\n\nz\n", "city", ["a", "b", "z"]),
        ("k.csv", "no,city\n1,b\n2,a\n", "city", ["b", "a"]),
        ("k.csv", "code\n7\n1\n", "code", [7, 1]),
    ],
)
def test_keys_from_a_file(name, content, by, expected, tmp_path):
    (tmp_path / name).write_text(content)
    frame = PEOPLE.with_columns(code=pl.lit(7))
    plan = dp.BudgetPlan(
        frame, {"n": dp.query(dp.count(), groupby=by, keys=name)}, eps=1, folder=str(tmp_path)
    )
    assert plan.run()["n"].value[by].to_list() == expected


def test_keys_of_several_columns_from_parquet(tmp_path):
    keys = pl.DataFrame({"late": [True, False], "city": ["a", "b"], "more": [1, 2]})
    keys.write_parquet(tmp_path / "k.parquet")
    asked = dp.query(dp.count(), groupby=["city", "late"], keys="k.parquet")
    got = dp.BudgetPlan(PEOPLE, {"n": asked}, eps=1, folder=str(tmp_path)).run()["n"].value
    assert got.select("city", "late").rows() == [("a", True), ("b", False)]


def test_one_file_of_keys_serves_queries_by_different_columns(tmp_path):
    (tmp_path / "k.csv").write_text("city,code\na,7\nb,8\n")
    frame = PEOPLE.with_columns(code=pl.lit(7))
    queries = {k: dp.query(dp.count(), groupby=k, keys="k.csv") for k in ("city", "code")}
    got = dp.BudgetPlan(frame, queries, eps=1, folder=str(tmp_path)).run()
    assert got["city"].value["city"].to_list() == ["a", "b"]
    assert got["code"].value["code"].to_list() == [7, 8]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("k.csv", "town\na\n", "no column 'city'"),
        ("none.csv", None, "no readable file"),
        ("k.csv", "code\n7\nseven\n", "entry 2 is no int"),
        ("k.txt", "a\na\n", "more than once"),
    ],
)
def test_key_files_that_do_not_fit(name, content, says, tmp_path):
    if content is not None:
        (tmp_path / name).write_text(content)
    by = "code" if content and content.startswith("code") else "city"
    frame = PEOPLE.with_columns(code=pl.lit(7))
    with pytest.raises(dp.InputError, match=says):
        dp.BudgetPlan(frame, {"n": dp.query(dp.count(), groupby=by, keys=name)}, eps=1, folder=str(tmp_path))


# ---- writing ----


def test_outputs_are_written_with_their_facts(tmp_path):
    plan = dp.BudgetPlan(
        PEOPLE,
        {"n": dp.query(dp.count(), groupby="city", keys=["a"], outputs=["n.parquet", "{scope}.csv"])},
        eps=1,
        folder=str(tmp_path),
        scope="2026-11-29",
    )
    plan.run()
    facts = json.loads(pl.read_parquet_metadata(tmp_path / "n.parquet")["dpframe"])
    assert facts == json.loads((tmp_path / "n.parquet.json").read_text())
    assert facts == json.loads((tmp_path / "2026-11-29.csv.json").read_text())
    assert (facts["unit"], facts["neighbors"], facts["eps"], facts["delta"]) == (
        "row",
        "add_remove",
        "1",
        "0",
    )
    assert facts["outputs"]["count"]["mechanism"] == "laplace"
    assert facts["outputs"]["count"]["scale"] == 1
    assert facts["dpframe"] == dp.__version__
    assert pl.read_parquet(tmp_path / "n.parquet").equals(pl.read_csv(tmp_path / "2026-11-29.csv"))


def test_the_same_release_gives_the_same_bytes(tmp_path):
    release = dp.BudgetPlan(
        PEOPLE, {"n": dp.query(n=dp.count(), groupby="city", keys=["a", "b"])}, eps=1
    ).run()["n"]
    for name in ("a.parquet", "b.parquet", "a.csv", "b.csv"):
        release.write(tmp_path / name)
    for end in ("parquet", "csv", "parquet.json", "csv.json"):
        assert (tmp_path / f"a.{end}").read_bytes() == (tmp_path / f"b.{end}").read_bytes()


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    release = dp.BudgetPlan(PEOPLE, {"n": dp.count()}, eps=1).run()["n"]
    release.write(tmp_path / "n.csv")
    before = (tmp_path / "n.csv").read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    other = dp.BudgetPlan(PEOPLE.clear(), {"n": dp.count()}, eps=1).run()["n"]
    with pytest.raises(OSError, match="No space"):
        other.write(tmp_path / "n.csv")
    assert (tmp_path / "n.csv").read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["n.csv", "n.csv.json"]


def test_two_queries_can_not_write_one_file(tmp_path):
    queries = {k: dp.query(dp.count(), outputs=p) for k, p in (("a", "n.csv"), ("b", "./n.csv"))}
    with pytest.raises(dp.InputError, match="which is an output of 'a'"):
        dp.BudgetPlan(PEOPLE, queries, eps=1, folder=str(tmp_path))


def test_nothing_that_a_plan_shows_holds_a_true_value(tmp_path):
    secret = 123_457
    frame = pl.DataFrame({"x": [secret / 1000] * 1000})
    plan = dp.BudgetPlan(
        frame,
        {"s": dp.query(dp.clip_sum("x", bounds=(0, 1000)), outputs="s.parquet")},
        eps=0.01,
        folder=str(tmp_path),
    )
    plan.run()
    shown = (
        f"{plan!r} {plan.table().rows()} {plan.log().rows()} {plan.session.statement()} {plan.fingerprint}"
    )
    shown += (tmp_path / "s.parquet.json").read_text()
    assert str(secret) not in shown
    assert "123.457" not in shown
