"""Limits of a unit: asked for, checked, inherited, printed."""

from __future__ import annotations

import math

import polars as pl
import pytest

import dpframe as dp

RELATIONS = ("add_remove", "replace_one")
each_relation = pytest.mark.parametrize("relation", RELATIONS)


# ---- limits ----


@pytest.fixture
def clicks():
    return pl.DataFrame({"u": [1, 1, 2], "g": ["a", "b", "a"], "x": [1.0, 2.0, 3.0]})


def refused(s, call, *words):
    with pytest.raises(dp.InputError) as e:
        call()
    for w in words:
        assert w in str(e.value), str(e.value)
    assert s.report().height == 0


def test_a_missing_max_groups_says_what_would_drop_nothing(clicks):
    keys = [f"k{i}" for i in range(30)]
    with dp.Session(eps=1, unit="u") as s:
        refused(
            s,
            lambda: clicks.dp.groupby("g", keys=keys, max_rows_per_group=1).count(eps=0.1),
            "max_groups=3",
            "30 keys: max_groups=30 drops nothing, noise × 30, or × 5.5 with delta",
        )


def test_missing_row_limits_are_asked_for(clicks):
    with dp.Session(eps=1, delta=1e-6, unit="u") as s:
        refused(s, lambda: clicks.dp.count(eps=0.1), "max_rows=", "u")
        refused(
            s,
            lambda: clicks.dp.groupby("g", keys=["a", "b"], max_groups=1).count(eps=0.1),
            "max_rows_per_group=",
        )
        refused(
            s,
            lambda: clicks.dp.groupby("g", max_rows_per_group=1).count(eps=0.1, delta=1e-8),
            "max_groups=",
        )


def test_limits_that_do_not_fit_the_call_are_refused(clicks):
    with dp.Session(eps=1, unit="u") as s:
        grouped = clicks.dp.groupby("g", keys=["a", "b"], max_groups=1, max_rows_per_group=1)
        refused(s, lambda: grouped.count(eps=0.1, threshold="much"), "threshold")
        refused(s, lambda: clicks.dp.count(eps=0.1, max_rows=1, max_groups=1), "max_groups", "max_rows")
        refused(s, lambda: clicks.dp.count(eps=0.1, max_rows_per_group=1), "max_rows_per_group", "max_rows")


def test_limits_without_a_unit_are_refused(clicks):
    with dp.Session(eps=1) as s:
        refused(s, lambda: clicks.dp.count(eps=0.1, max_rows=1), "unit=")
        refused(s, lambda: clicks.dp.groupby("g", keys=["a"], max_groups=1).count(eps=0.1), "unit=")
    with pytest.raises(dp.InputError, match="unit"):
        dp.Session(eps=1, max_groups=3)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "3", 2**24 + 1, math.nan])
def test_a_limit_is_a_whole_number_of_at_least_one(clicks, wrong):
    with dp.Session(eps=1, unit="u") as s:
        refused(s, lambda: clicks.dp.count(eps=0.1, max_rows=wrong), "max_rows")
        refused(
            s,
            lambda: clicks.dp.groupby("g", keys=["a", "b"], max_groups=wrong, max_rows_per_group=1).count(
                eps=0.1
            ),
            "max_groups",
        )


@pytest.mark.parametrize("wrong", [0, False])
def test_a_wrong_limit_does_not_become_the_sessions_default(clicks, wrong):
    with dp.Session(eps=1, unit="u", max_groups=2, max_rows_per_group=1, max_rows=5) as s:
        refused(s, lambda: clicks.dp.count(eps=0.1, max_rows=wrong), "max_rows")
        grouped = clicks.dp.groupby("g", keys=["a", "b", "c"], max_groups=wrong)
        refused(s, lambda: grouped.count(eps=0.1), "max_groups")


def test_the_session_holds_defaults_and_the_call_overrides_them(quiet, clicks):
    with dp.Session(eps=100, unit="u", max_groups=2, max_rows_per_group=3, max_rows=4):
        grouped = clicks.dp.plan.groupby("g", keys=["a", "b", "c"])
        assert grouped.count(eps=1).l1 == 4
        assert grouped.count(eps=1, max_rows=5).l1 == 5
        assert grouped.count(eps=1, max_rows=7).l1 == 6
    with dp.Session(eps=100, unit="u", max_groups=2, max_rows_per_group=3):
        assert clicks.dp.plan.count(eps=1, max_rows=4).l1 == 4
    with dp.Session(eps=100, unit="u", max_groups=2, max_rows_per_group=3, max_rows=4):
        assert clicks.dp.plan.count(eps=1).l1 == 4
        assert clicks.dp.plan.count(eps=1, max_rows=7).l1 == 7
        grouped = clicks.dp.plan.groupby("g", keys=["a", "b", "c"])
        assert grouped.count(eps=1, max_groups=1).l1 == 3
        assert grouped.count(eps=1, max_rows_per_group=1).l1 == 2


def test_more_groups_than_keys_cost_only_the_keys(quiet, clicks):
    with dp.Session(eps=100, unit="u", max_rows_per_group=3):
        assert clicks.dp.plan.groupby("g", keys=["a", "b"], max_groups=50).count(eps=1).l1 == 6
        assert clicks.dp.plan.groupby("g", keys=["a"]).count(eps=1).l1 == 3


def test_plan_and_facts_print_what_of_a_unit_counts(quiet, clicks):
    with dp.Session(eps=100, unit="u") as s:
        grouped = clicks.dp.plan.groupby("g", keys=list("abcd"), max_groups=3, max_rows_per_group=10)
        text = "one u: at most 3 groups × 10 rows"
        assert text in str(grouped.count(eps=1).explain())
        grouped.count(eps=1).release()
        assert s.last.facts["bounding"] == text
        assert s.last.facts["unit"] == "u"


@each_relation
def test_a_mean_with_a_public_n_moves_by_the_rows_of_a_unit_times_the_span(clicks, relation):
    """R*D/(2n), replace_one R*D/n: 4 rows, D = 60, n = 30."""
    with dp.Session(eps=100, unit="u", neighbors=relation):
        plan = clicks.dp.plan.clip_mean("x", bounds=(-20, 40), n=30, eps=1, max_rows=4)
    assert plan.l1 == plan.l2 == pytest.approx(4.0 if relation == "add_remove" else 8.0)


def test_gaussian_noise_grows_with_the_root_of_max_groups(quiet, clicks):
    """Case 38: m groups: noise × m (pure), × sqrt m (Gaussian); the charge stays eps."""
    with dp.Session(eps=100, delta=1e-3, unit="u", max_rows_per_group=1):
        grouped = clicks.dp.plan.groupby("g", keys=[f"k{i}" for i in range(40)])
        for mechanism, growth in (("laplace", 16), ("gaussian", 4)):
            one, many = (grouped.count(eps=1, delta=1e-6, mechanism=mechanism, max_groups=m) for m in (1, 16))
            assert many.scale / one.scale == pytest.approx(growth)
            assert many.cost.eps == one.cost.eps == 1
