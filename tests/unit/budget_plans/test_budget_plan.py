"""Budget plans: their table, their runs, their fingerprints; nothing is asked or paid twice."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction

import pandas as pd
import polars as pl
import pytest
from plan_tools import BOUNDS, PEOPLE, adaptive

import dpframe as dp

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
    for part in ("b", "c"):
        PEOPLE.head(30).write_csv(tmp_path / f"{part}.csv")
    plan = dp.BudgetPlan(
        {
            "pandas": PEOPLE.head(10).to_pandas(),
            "lazy": PEOPLE.head(20).lazy(),
            "file": "a.parquet",
            "csv": ["b.csv", "c.csv"],
        },
        {k: dp.query(dp.count(), source=k) for k in ("pandas", "lazy", "file", "csv")},
        eps=4000,
        folder=str(tmp_path),
    )
    assert [int(r.value) for r in plan.run().values()] == [10, 20, 1200, 60]
    with pytest.raises(dp.InputError, match="is a frame"):
        plan.to_release_file(tmp_path / "q.toml")


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
