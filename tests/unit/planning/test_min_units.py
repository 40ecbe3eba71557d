"""``min_units=``: groups of fewer units are told with a probability of 2.5 % at most, by the law that is drawn."""

from __future__ import annotations

import math
from fractions import Fraction

import chance
import numpy as np
import polars as pl
import pytest
from scipy import stats as laws

import dpframe as dp
from conftest import as_kind

pytestmark = pytest.mark.usefixtures("quiet")
FRAME = pl.DataFrame({"g": ["a"], "u": [1], "x": [1.0]})
QUESTIONS = {
    "count": lambda: {"n": dp.count()},
    "units": lambda: {"n": dp.count_units()},
    "mean": lambda: {"m": dp.clip_mean("x", bounds=(0, 1))},
    "mean and count": lambda: {"m": dp.clip_mean("x", bounds=(0, 1)), "n": dp.count()},
    "sum": lambda: {"s": dp.clip_sum("x", bounds=(0, 5))},
}


def plan_of(asked, rows, relation, **options):
    with dp.Session(eps=10**6, delta=0.5, unit="u", neighbors=relation):
        groups = FRAME.dp.plan.groupby("g", max_groups=2, max_rows_per_group=rows)
        return groups.dp_agg(**QUESTIONS[asked](), delta=1e-6, **options).plan


def told(plan, size):
    return plan.threshold.odds(plan.laws[plan.threshold.coordinates[0]], size)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("mechanism", ["auto", "laplace", "gaussian"])
@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("asked", QUESTIONS)
def test_a_smaller_group_is_told_with_a_probability_of_a_fortieth_at_most(asked, rows, mechanism, relation):
    """A lone unit is hidden as before, at the same cost; and no higher threshold is taken than these two need."""
    for eps, least in ((0.3, 20), (1, 60), (5, 20), (5, 2)):
        without, plan = (
            plan_of(asked, rows, relation, eps=eps, mechanism=mechanism, **more)
            for more in ({}, {"min_units": least})
        )
        assert told(plan, least - 1) <= 0.025
        assert (plan.event.eps, plan.event.delta) == (without.event.eps, without.event.delta)
        assert plan.threshold.small == least - 1
        if plan.laws == without.laws:
            assert plan.threshold.least >= without.threshold.least
            if plan.threshold.least > without.threshold.least:
                law, draws = plan.laws[plan.threshold.coordinates[0]], len(plan.threshold.coordinates)
                beyond = plan.threshold.least - (least - 1) * plan.threshold.unit_steps
                assert law.upper_tail(beyond - 1, draws) > 0.025


@pytest.mark.parametrize("unit", [None, "u"])
def test_keys_are_found_by_a_count_of_units(unit):
    for eps in (0.1, 1, 5):
        with dp.Session(eps=10**6, delta=0.5, unit=unit):
            limits = {"max_groups": 30} if unit else {}
            plan = FRAME.dp.plan.groupby("g", **limits).keys(eps=eps, delta=1e-6, min_units=20).plan
        assert plan.mechanism in ("laplace", "gaussian")
        assert told(plan, 19) <= 0.025
        assert plan.threshold.counted == (unit or "row")
        assert plan.event.eps == Fraction(eps).limit_denominator(10)


def test_groups_are_told_as_often_as_the_law_says(kind):
    """10,000 groups of 19 and as many of 30 at eps = 3 (two-sided, 1e-9 each)."""
    many = 10_000
    frame = pl.DataFrame({"g": np.repeat(np.arange(2 * many), np.repeat([19, 30], many))}).with_row_index("u")
    with dp.Session(eps=10, delta=0.5, unit="u", max_groups=1) as s:
        got = np.asarray(as_kind(kind, frame).dp.groupby("g").keys(eps=3, delta=1e-6, min_units=20)["g"])
        plan = s.last.plan
    for size, n in ((19, (got < many).sum()), (30, (got >= many).sum())):
        p = told(plan, size)
        assert laws.binom.ppf(chance.ALARM, many, p) <= n <= laws.binom.isf(chance.ALARM, many, p)
    assert told(plan, 19) <= 0.025 < 0.9 < told(plan, 30)


def test_explain_and_facts_say_it_and_questions_that_differ_in_it_are_not_the_same():
    frame = pl.DataFrame({"g": ["a"] * 500, "u": range(500)})
    with dp.Session(eps=10, delta=0.5, unit="u", max_groups=1) as s:
        groups = frame.dp.plan.groupby("g")
        bound = groups.count_units(eps=3, delta=1e-6, min_units=20)
        assert bound.plan != groups.count_units(eps=3, delta=1e-6).plan
        assert "; min_units: 19 at most 0.025" in str(bound.explain())
        bound.release()
        fact = s.last.facts["threshold"]
    assert (fact["min_units"], fact["small"]) == (
        20,
        "a group of 19 is told with a probability of at most 2.5 %",
    )


@pytest.mark.parametrize("wrong", [0, 1, -3, 2.5, True, "20", math.nan])
def test_what_is_no_number_of_units_is_refused(wrong):
    for unit in ({}, {"unit": "u", "max_groups": 1}):
        with dp.Session(eps=1, delta=1e-3, **unit) as s:
            with pytest.raises((dp.InputError, TypeError), match="min_units"):
                FRAME.dp.groupby("g").keys(eps=1, delta=1e-6, min_units=wrong)
            assert s.spent == 0


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda d: d.groupby("g", keys=["a"]).count_units(eps=1, min_units=20), "here they are listed"),
        (lambda d: d.count_units(eps=1, min_units=20), "does not go with no groups"),
        (
            lambda d: d.groupby("g", max_rows_per_group=3).count(
                eps=1, delta=1e-6, threshold="rows", min_units=20
            ),
            "rows decide here",
        ),
    ],
)
def test_where_no_count_of_units_decides_it_is_refused(asked, said):
    with dp.Session(eps=1, delta=1e-3, unit="u", max_groups=1) as s:
        with pytest.raises(dp.InputError, match=f"^min_units= .*{said}"):
            asked(FRAME.dp)
        assert s.spent == 0


def test_any_rows_are_no_units():
    with dp.Session(eps=1, delta=1e-3, contributions=5) as s:
        with pytest.raises(dp.InputError, match=r"^min_units= .*there is no unit to be counted"):
            FRAME.dp.groupby("g").count(eps=1, delta=1e-6, min_units=20)
        assert s.spent == 0


def test_queries_of_plans_and_release_files_take_it(tmp_path):
    pl.DataFrame({"g": ["a"] * 900 + ["b"] * 15, "u": range(915)}).write_parquet(tmp_path / "t.parquet")
    text = """[source]
path = "t.parquet"
[budget]
eps = 3
delta = 1e-5
unit = "u"
max_groups = 1
[[query]]
name = "q"
statistic = "count_units"
groupby = "g"
delta = 1e-6
min_units = 20
share = 1.0
"""
    (tmp_path / "r.toml").write_text(text)
    plan = dp.BudgetPlan.from_release_file(tmp_path / "r.toml")
    plan.to_release_file(tmp_path / "again.toml")
    assert "min_units = 20" in (tmp_path / "again.toml").read_text()
    plan.run()
    assert plan.releases["q"].facts["threshold"]["min_units"] == 20
