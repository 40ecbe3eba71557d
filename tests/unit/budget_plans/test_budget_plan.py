"""Budget plans: who gets how much, what that rests on, and that nothing is asked or paid twice."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import re
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.base import files as atomic
from dpframe.budget_plans.sources import Files
from dpframe.noise import strips

PEOPLE = pl.DataFrame(
    {
        "x": [10.0, 20.0, 60.0] * 400,
        "city": ["a", "b", "c"] * 400,
        "late": [True, False, None] * 400,
        "y": [1.0] * 1200,
    }
)
BOUNDS = (0, 100)


def amounts(plan: dp.BudgetPlan) -> list[Fraction]:
    return [t.amount for t in plan._turns().values()]


# ---- allocations ----


def test_even_divides_exactly():
    plan = dp.BudgetPlan(PEOPLE, {k: dp.count() for k in "abc"}, eps=1)
    assert amounts(plan) == [Fraction(1, 3)] * 3


def test_weighted_divides_by_weight_what_fixed_amounts_leave():
    plan = dp.BudgetPlan(
        PEOPLE,
        {
            "fixed": dp.query(dp.count(), eps=0.1),
            "share": dp.query(dp.count("x"), share=0.25),
            "one": dp.clip_sum("x", bounds=BOUNDS),
            "three": dp.query(dp.clip_mean("x", bounds=BOUNDS), weight=3),
        },
        eps=2,
        allocation="weighted",
    )
    assert amounts(plan) == [Fraction(1, 10), Fraction(1, 2), Fraction(7, 20), Fraction(21, 20)]
    assert sum(amounts(plan)) == 2


def test_a_wanted_error_is_charged_what_meets_it():
    plan = dp.BudgetPlan(
        PEOPLE, {"n": dp.query(dp.count(), error=30), "sum": dp.clip_sum("x", bounds=BOUNDS)}, eps=1
    )
    assert PEOPLE.dp.plan.count(error=30).eps == float(amounts(plan)[0]) < 0.11
    assert sum(amounts(plan)) == 1
    assert plan.table()["expected_error"][0] <= 30


def test_a_budget_in_rho_is_divided_in_rho():
    plan = dp.BudgetPlan(
        PEOPLE,
        {
            "n": dp.query(dp.count(), rho=0.01),
            "s": dp.query(dp.count("x"), error=20),
            "m": dp.clip_mean("late"),
        },
        rho=0.1,
    )
    n, s, m = amounts(plan)
    assert n == Fraction(1, 100)
    assert n + s + m == Fraction(1, 10)
    assert plan.table()["mechanism"].to_list() == ["gaussian"] * 3
    assert plan.table()["expected_error"][1] <= 20
    plan.run()
    assert plan.session.spent.rho <= Fraction(1, 10)


@pytest.mark.parametrize(
    ("queries", "policy", "says"),
    [
        (
            {"a": dp.query(dp.count(), eps=2)},
            {"eps": 1},
            "'a': more than the plan's budget: eps is used up: count() asks for eps=2; at most eps=1 would",
        ),
        ({"a": dp.query(dp.count(), eps=1), "b": dp.count()}, {"eps": 1}, "'b': nothing is left"),
        ({"a": dp.query(dp.count(), share=0.6), "b": dp.query(dp.count(), share=0.6)}, {"eps": 1}, "'b'"),
        ({"a": dp.query(dp.count(), rho=1)}, {"eps": 1}, "rho= does not go with"),
        ({"a": dp.query(dp.count(), eps=1)}, {"rho": 1}, "eps= does not go with"),
        ({"a": dp.query(dp.count(), weight=2)}, {"eps": 1}, "allocation='weighted'"),
        ({"a": dp.query(dp.count(), error=1, rows="b")}, {"eps": 1}, "allocation='adaptive'"),
        (
            {"a": dp.query(dp.count(), error=1, rows="b")},
            {"eps": 1, "allocation": "adaptive"},
            "no earlier query",
        ),
        (
            {
                "v": dp.query(dp.vector_sum(["x", "y"], norm=1, ord=1), eps=0.1),
                "a": dp.query(dp.count(), error=1, relative_to="v"),
            },
            {"eps": 1, "allocation": "adaptive"},
            "'a': relative_to='v' is a query whose answer is a table",
        ),
        ({"a": dp.query(dp.clip_mean("late"), error=1)}, {"eps": 1}, "give a public guess as rows="),
        (
            {"a": dp.query(dp.count(), groupby="city", eps=1, delta=1e-6)},
            {"eps": 1, "delta": 1e-6},
            "delta_calls",
        ),
        ({"a": dp.query(dp.count(), source="x")}, {"eps": 1}, "source='x' is not one"),
        ({"a": dp.clip_sum("x")}, {"eps": 1}, "needs bounds"),
        ({"a": dp.query(dp.count(), mechanism="no")}, {"eps": 1}, "There is no mechanism 'no'"),
        ({"a": dp.query(dp.count(), outputs="no/n.csv")}, {"eps": 1}, "no directory"),
        ({"a": dp.query(dp.count(), outputs="n.txt")}, {"eps": 1}, "neither in .parquet nor in .csv"),
    ],
)
def test_what_would_fail_is_refused_before_anything_is_spent(queries, policy, says, monkeypatch):
    monkeypatch.setattr(pl.LazyFrame, "collect", lambda *a, **k: pytest.fail("cells were read"))
    with pytest.raises(dp.InputError, match=re.escape(says)):
        dp.BudgetPlan(PEOPLE, queries, **policy)


@pytest.mark.parametrize("bad", [0, -1, float("nan"), True, "0.5", float("inf")])
@pytest.mark.parametrize("name", ["eps", "share", "error", "weight"])
def test_amounts_are_positive_numbers(name, bad):
    with pytest.raises(dp.InputError, match=name):
        dp.query(dp.count(), **{name: bad})


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: dp.query(), "needs a statistic"),
        (lambda: dp.query(dp.count(), eps=1, share=1), "eps= and share="),
        (lambda: dp.query(dp.count(), share=1.5), "at most 1"),
        (lambda: dp.query(dp.count(), eps=1, weight=1), "weight="),
        (lambda: dp.query(dp.count(), rows=5), "goes with error="),
        (lambda: dp.query(dp.count(), keys=["a"]), "goes with groupby="),
        (lambda: dp.query(dp.count(eps=1)), "eps= of its own"),
        (lambda: dp.query(n=3), "n="),
        (lambda: dp.BudgetPlan(PEOPLE, {"a": 3}, eps=1), "query 'a' is a int"),
        (lambda: dp.BudgetPlan(PEOPLE, {}, eps=1), "queries="),
        (lambda: dp.BudgetPlan({}, {"a": dp.count()}, eps=1), "needs a source"),
        (lambda: dp.BudgetPlan(PEOPLE, {"a": dp.count()}, eps=1, allocation="odd"), "allocation='odd'"),
        (lambda: dp.BudgetPlan(PEOPLE, {"a": dp.count()}, epsilon=1), "Hint: eps="),
        (lambda: dp.BudgetPlan({"a": PEOPLE, "b": PEOPLE}, {"n": dp.count()}, eps=1), "which source"),
    ],
)
def test_wrong_calls_say_what_to_write(call, says):
    with pytest.raises((dp.InputError, TypeError), match=says):
        call()


# ---- adaptive ----


def adaptive(frame=PEOPLE, **policy):
    return dp.BudgetPlan(
        frame,
        {
            "n": dp.query(dp.count(), error=30),
            "mean": dp.query(dp.clip_mean("x", bounds=BOUNDS), error=5, rows="n", weight=2),
            "sum": dp.clip_sum("x", bounds=BOUNDS),
        },
        **{"eps": 1, "allocation": "adaptive", **policy},
    )


def test_what_a_query_did_not_need_goes_to_those_that_follow():
    plan = adaptive()
    before = plan.table()
    assert before["decided"].to_list() == [True, False, False]
    plan.run()
    n, mean, total = (plan.releases[k].cost.eps for k in ("n", "mean", "sum"))
    assert n == amounts(plan)[0] < Fraction(1, 4)
    entitled = (1 - n) * Fraction(2, 3)
    rows = plan.releases["n"].interval(0.95)[0]
    assert mean == PEOPLE.dp.plan.clip_mean("x", bounds=BOUNDS, error=5, rows=rows).cost.eps
    assert mean < entitled
    assert total == 1 - n - mean


def test_a_wanted_error_that_costs_more_than_its_part_gets_its_part():
    plan = dp.BudgetPlan(
        PEOPLE,
        {"n": dp.query(dp.count(), error=0.5), "m": dp.query(dp.count("x"), weight=3)},
        eps=1,
        allocation="adaptive",
    )
    assert amounts(plan) == [Fraction(1, 4), Fraction(3, 4)]


def test_fixed_amounts_to_come_are_kept():
    plan = dp.BudgetPlan(
        PEOPLE,
        {"n": dp.query(dp.count(), error=0.5), "m": dp.query(dp.count("x"), share=0.9)},
        eps=1,
        allocation="adaptive",
    )
    assert amounts(plan) == [Fraction(1, 10), Fraction(9, 10)]


def test_an_answer_that_may_be_zero_leaves_a_relative_error_its_part():
    plan = dp.BudgetPlan(
        PEOPLE.clear(),
        {"n": dp.query(dp.count(), eps=0.5), "m": dp.query(dp.count("x"), error=0.1, relative_to="n")},
        eps=1,
        allocation="adaptive",
    )
    plan.run()
    assert plan.releases["m"].cost.eps == Fraction(1, 2)


def test_the_rule_sees_released_values_only(monkeypatch):
    """Neighbouring frames whose released values agree have the same charges; other values have others."""

    def run(frame, shift):
        draws = iter([shift, 0, 0, 0])
        monkeypatch.setattr(
            strips.StripSampler, "sample", lambda self, size: np.full(size, next(draws), dtype=np.int64)
        )
        plan = adaptive(frame)
        plan.run()
        return int(plan.releases["n"].value), plan.log()["eps"].to_list()

    small, large = PEOPLE.head(40), PEOPLE.head(41)
    assert run(small, 1) == run(large, 0)
    assert run(small, 0) != run(large, 0)


def test_amounts_never_add_up_to_more_than_the_total():
    rng = random.Random(5)
    for _ in range(40):
        queries = {}
        for i in range(rng.randrange(1, 6)):
            kind = rng.choice(["weight", "error", "share", "plain"])
            value = {
                "weight": rng.randrange(1, 5),
                "error": rng.choice([0.5, 5, 50]),
                "share": 0.1,
                "plain": None,
            }
            options = {} if kind == "plain" else {kind: value[kind]}
            queries[f"q{i}"] = dp.query(dp.count(), **options)
        plan = dp.BudgetPlan(PEOPLE, queries, eps=Fraction(rng.randrange(1, 7), 7), allocation="adaptive")
        free = [q for q in queries.values() if not q.fixed and q.error is None]
        total = sum(amounts(plan))
        assert total <= plan.total
        if free and plan.queries[list(queries)[-1]] in free:
            assert total == plan.total


# ---- the table ----


@pytest.mark.parametrize(
    ("neighbors", "bounds", "scales"),
    [
        ("replace_one", (0, 100), [2.5, 166.667, 0.02]),
        ("replace_one", (-100, 100), [2.5, 333.333, 0.04]),
        ("add_remove", (0, 100), [2.5, 166.667, 0.01]),
        ("add_remove", (-100, 100), [2.5, 166.667, 0.02]),
    ],
)
def test_the_worked_example(neighbors, bounds, scales):
    plan = dp.BudgetPlan(
        PEOPLE,
        {
            "rows": dp.query(dp.count(), eps=0.4),
            "total": dp.query(dp.clip_sum("x", bounds=bounds), eps=0.6),
            "mean": dp.query(dp.clip_mean("x", bounds=bounds, n=10_000), eps=0.5),
        },
        eps=2,
        delta=1e-6,
        neighbors=neighbors,
    )
    assert plan.table()["scale"].to_list() == pytest.approx(scales, rel=1e-4)
    assert plan.table()["sensitivity"].to_list() == pytest.approx(
        [s * e for s, e in zip(scales, (0.4, 0.6, 0.5))], rel=1e-4
    )


def test_the_table_has_a_row_per_output_and_its_costs_add_up():
    plan = dp.BudgetPlan(
        PEOPLE,
        {
            "by_city": dp.query(
                n=dp.count(), x=dp.clip_mean("x", bounds=BOUNDS), groupby="city", keys=["a", "b"]
            ),
            "found": dp.query(groupby="city", eps=0.2, delta=1e-7),
            "total": dp.query(dp.clip_sum("x", bounds=BOUNDS), eps=0.3),
        },
        eps=1,
        delta=1e-6,
    )
    table = plan.table()
    assert table["query"].to_list() == ["by_city", "by_city", "found", "total"]
    assert table["eps"].to_list() == [0.5, None, 0.2, 0.3]
    assert table["delta"].sum() == 1e-7
    assert table["statistic"].to_list() == [
        "count()",
        "clip_mean('x', bounds=(0, 100))",
        "groupby('city').keys()",
        "clip_sum('x', bounds=(0, 100))",
    ]
    assert table["bounds"].to_list() == [None, "(0, 100)", None, "(0, 100)"]


# ---- running ----


def test_a_plan_runs_once_and_keeps_its_releases():
    plan = dp.BudgetPlan(PEOPLE, {"n": dp.count(), "x": dp.clip_mean("x", bounds=BOUNDS)}, eps=1)
    first = plan.run()
    assert plan.run() == first
    assert plan.session.spent == 1
    assert plan.session.report().height == 2
    assert plan.log()["query"].to_list() == ["n", "x"]
    assert plan.log()["left"].to_list() == [0.5, 0]
    assert repr(plan) == "<dpframe budget plan: 2 queries, eps=1, even, 2 released>"


def test_a_plan_leaves_other_calls_alone(quiet):
    plan = dp.BudgetPlan(PEOPLE, {"n": dp.count()}, eps=1)
    PEOPLE.dp.count(eps=1)
    plan.run()
    PEOPLE.dp.count(eps=1)


def test_sessions_around_a_plan_pay_too():
    with dp.Session(eps=3) as around:
        dp.BudgetPlan(PEOPLE, {"n": dp.count()}, eps=1).run()
    given = dp.Session(eps=3)
    dp.BudgetPlan(PEOPLE, {"n": dp.count()}, eps=1).run(session=given)
    assert around.spent == given.spent == 1


def test_a_refused_query_stops_the_plan_which_goes_on_later():
    plan = dp.BudgetPlan(PEOPLE, {k: dp.count() for k in "abcd"}, eps=1)
    with dp.Session(eps=0.6), pytest.raises(dp.BudgetExceeded):
        plan.run()
    kept = plan.releases
    assert list(kept) == ["a", "b"]
    assert plan.session.spent == 0.5
    done = plan.run()
    assert [done[k] is kept[k] for k in "ab"] == [True, True]
    assert plan.session.spent == 1


def test_a_charge_that_failed_stays_and_the_budget_holds(monkeypatch):
    bad = pl.LazyFrame({"x": [1]}).map_batches(lambda f: 1 / 0, schema={"x": pl.Int64})
    plan = dp.BudgetPlan({"bad": bad}, {"n": dp.count()}, eps=1)
    with pytest.raises(dp.ReleaseFailed):
        plan.run()
    assert plan.session.spent == 1
    with pytest.raises(dp.BudgetExceeded):
        plan.run()


def test_sources_of_every_kind_in_one_plan(tmp_path):
    PEOPLE.write_parquet(tmp_path / "a.parquet")
    PEOPLE.head(30).write_csv(tmp_path / "b.csv")
    plan = dp.BudgetPlan(
        {
            "pandas": PEOPLE.head(10).to_pandas(),
            "lazy": PEOPLE.head(20).lazy(),
            "file": "a.parquet",
            "csv": ["b.csv", "b.csv"],
        },
        {k: dp.query(dp.count(), source=k) for k in ("pandas", "lazy", "file", "csv")},
        eps=4000,
        folder=str(tmp_path),
    )
    assert [int(r.value) for r in plan.run().values()] == [10, 20, 1200, 60]
    with pytest.raises(dp.InputError, match="is a frame"):
        plan.to_release_file(tmp_path / "q.toml")


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


# ---- fingerprints ----


def base(**changes):
    given = {
        "frame": PEOPLE,
        "keys": ["a", "b"],
        "bounds": BOUNDS,
        "query": {},
        "policy": {},
        "statistic": {},
        **changes,
    }
    queries = {
        "n": dp.query(dp.count(), groupby="city", keys=given["keys"], weight=1),
        "x": dp.query(dp.clip_sum("x", bounds=given["bounds"], **given["statistic"]), **given["query"]),
    }
    return dp.BudgetPlan(
        given["frame"], queries, **{"eps": 1, "delta": 1e-6, "allocation": "weighted", **given["policy"]}
    ).fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"keys": ["a", "c"]},
        {"keys": ["b", "a"]},
        {"bounds": (0, 101)},
        {"frame": PEOPLE.with_columns(pl.col("x").cast(pl.Int64))},
        {"query": {"weight": 2}},
        {"query": {"error": 500}},
        {"query": {"mechanism": "gaussian", "delta": 1e-7}},
        {"query": {"ci": 0.9}},
        {"statistic": {"round": 1}},
        {"statistic": {"nonnegative": True}},
        {"policy": {"eps": Fraction(10**9 + 1, 10**9)}},
        {"policy": {"delta": 1e-7}},
        {"policy": {"delta_calls": 1e-7}},
        {"policy": {"neighbors": "replace_one"}},
        {"policy": {"allocation": "adaptive"}},
        {"policy": {"accountant": "sum"}},
    ],
)
def test_a_fingerprint_covers_what_decides_cost_and_noise(change):
    assert base(**change) != base()


def test_a_fingerprint_covers_the_name_that_a_ledger_pays_under(tmp_path):
    dp.Ledger.create(tmp_path / "l.db", eps=2).close()

    def plan(name, **more):
        return dp.BudgetPlan(PEOPLE, {"a": dp.count()}, eps=1, name=name, **more).fingerprint

    assert plan("one") == plan("two")
    assert plan("one", ledger=tmp_path / "l.db") != plan("two", ledger=tmp_path / "l.db")


def test_a_fingerprint_covers_candidates():
    found = {
        dp.BudgetPlan(PEOPLE, {"a": dp.top_k("city", 1, candidates=c)}, eps=1).fingerprint
        for c in (["a", "b"], ["a", "c"], ["b", "a"])
    }
    assert len(found) == 3


def test_a_fingerprint_holds_no_data_and_no_run():
    assert base(frame=PEOPLE.clear()) == base(frame=PEOPLE.lazy()) == base()
    plan = adaptive()
    before = plan.fingerprint
    plan.run()
    assert plan.fingerprint == before == adaptive(PEOPLE.head(3)).fingerprint


def test_a_fingerprint_is_the_same_in_every_process():
    code = (
        "import dpframe as dp, polars as pl;"
        "f = pl.DataFrame({'x': [1.0], 'city': ['a']});"
        "q = {'n': dp.query(dp.count(), x=dp.clip_mean('x', bounds=(0, 1)), groupby='city', keys=['a', 'b'])};"
        "print(dp.BudgetPlan(f, q, eps=1).fingerprint)"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_a_pandas_frame_has_plans_as_well():
    frame = pd.DataFrame({"x": [1.0, None]})
    plan = dp.BudgetPlan(frame, {"x": dp.query(x=dp.clip_mean("x", bounds=(0, 1)), n=dp.count())}, eps=1)
    assert isinstance(plan.run()["x"].value, pd.DataFrame)
