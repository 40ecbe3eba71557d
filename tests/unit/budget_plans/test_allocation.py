"""Budget plans: who gets how much and what that rests on, also when later queries get what earlier ones left."""

from __future__ import annotations

import random
import re
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from plan_tools import BOUNDS, PEOPLE, adaptive

import dpframe as dp
from dpframe.noise import strips


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
            "'a': more than the plan's budget: eps does not suffice: count() asks for eps=2; at most eps=1 would",
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
