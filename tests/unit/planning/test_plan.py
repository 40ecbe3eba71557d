"""Plans: what they tell, that they hold no data, cost nothing, and refuse a frame that changed."""

from __future__ import annotations

import datetime as dt
import math
import pickle
import struct

import pandas as pd
import polars as pl
import pytest
from polars.io.plugins import register_io_source
from tables import FRAME

import dpframe as dp
from conftest import as_kind, as_polars

pytestmark = pytest.mark.usefixtures("quiet")

EPS = 1e6


# ---- plans ----


def test_answers_are_the_values_of_planned_releases(kind, no_noise):
    """df.dp.clip_mean(...) is exactly df.dp.plan.clip_mean(...).release().value."""
    df = as_kind(kind, FRAME)
    with dp.Session(eps=100) as s:
        asked = {"bounds": (0, 10), "eps": 0.5, "round": 3, "label": "m"}
        direct = df.dp.clip_mean("x", **asked)
        planned = df.dp.plan.clip_mean("x", **asked).release().value
        assert direct == planned
        assert type(direct) is type(planned)
        assert repr(direct) == repr(planned)
        table = df.dp.groupby("g", keys=["a"]).count(eps=0.5)
        again = df.dp.plan.groupby("g", keys=["a"]).count(eps=0.5).release().value
        assert as_polars(table).equals(as_polars(again))
        assert s.report()["question"].n_unique() == 2
        assert s.spent == 2


def test_making_and_reading_a_plan_costs_nothing_and_reads_no_cell():
    """The source would fail if it were read."""

    def never(*_):
        raise AssertionError("read")

    lazy = register_io_source(never, schema={"x": pl.Float64, "g": pl.String})
    with dp.Session(eps=1) as s:
        for plan in (
            lazy.dp.plan.clip_mean("x", bounds=(0, 1), eps=0.5),
            lazy.dp.plan.groupby("g", keys=["a"]).dp_agg(n=dp.count(), eps=0.5),
            lazy.dp.plan.count(error=10),
        ):
            repr(plan), plan._repr_html_(), str(plan.explain()), plan.cost, plan.error, plan.l1, plan.scale
        assert s.report().height == 0


def test_a_plan_released_twice_is_charged_twice(kind):
    """Case 46."""
    plan = as_kind(kind, FRAME).dp.plan.count(eps=0.5)
    with dp.Session(eps=1) as s:
        a, b = plan.release(), plan.release()
        assert a is not b
        assert s.spent == 1
        with pytest.raises(dp.BudgetExceeded):
            plan.release()


def test_plans_tell_sensitivity_mechanism_cost_and_error(kind):
    df = as_kind(kind, FRAME)
    plan = df.dp.plan.clip_sum("x", bounds=(-3, 10), eps=0.5)
    assert (plan.l1, plan.l2) == (10, 10)
    assert plan.mechanism == "laplace"
    assert plan.scale == pytest.approx(20, rel=1e-6)
    assert (plan.eps, plan.delta, plan.cost) == (0.5, 0, 0.5)
    assert plan.error == pytest.approx(20 * math.log(20), rel=1e-3)
    text = str(plan.explain())
    for part in (
        "clip_sum('x', bounds=(-3, 10))",
        "L1 10",
        "L2 10",
        "eps=0.5",
        "delta=0",
        "laplace",
        "scale 20",
    ):
        assert part in text
    assert "one row appears or vanishes" in text
    assert repr(plan.explain()) == text
    assert "sensitivity" in plan._repr_html_()
    both = df.dp.plan.agg(n=dp.count(), s=dp.clip_sum("x", bounds=(-3, 10)), eps=0.5)
    assert set(both.l1) == {"n", "s"}


def test_plans_under_replace_one_say_so():
    with dp.Session(eps=1, neighbors="replace_one"):
        plan = FRAME.dp.plan.clip_sum("x", bounds=(20, 100), eps=0.5)
        assert plan.l1 == 100
        assert "one row becomes another" in str(plan.explain())
        grouped = FRAME.dp.plan.groupby("g", keys=["a", "b"]).clip_sum("x", bounds=(-3, 10), eps=0.5)
        assert grouped.l1 == 20
        assert grouped.l2 == pytest.approx(14.142136, abs=1e-4)


def test_explain_names_delta_and_gaussian_when_they_are_used():
    plan = FRAME.dp.plan.count(eps=0.5, delta=1e-6, mechanism="gaussian")
    assert plan.mechanism == "gaussian"
    assert plan.delta == 1e-6
    text = str(plan.explain())
    assert "gaussian" in text
    assert "delta=1e-06" in text
    free = FRAME.dp.plan.count(eps=0.5, delta=1e-6)
    assert (free.mechanism, free.delta) == ("laplace", 0)


def test_explain_of_a_grouped_mean_prints_the_error_at_three_sizes():
    text = str(FRAME.dp.plan.groupby("g", keys=["a", "b"]).clip_mean("x", bounds=(0, 10), eps=0.5).explain())
    for part in ("100 rows", "1,000 rows", "10,000 rows", "2 listed by g"):
        assert part in text


def test_explain_says_how_missing_cells_are_treated_and_what_is_left():
    with dp.Session(eps=1):
        text = str(FRAME.dp.plan.count(eps=0.5).explain())
    assert "null and NaN are left out" in text
    assert "infinities are clipped" in text
    assert "eps=1" in text


@pytest.mark.parametrize("bad", [{"eps": 0.5, "error": 3}, {"error": -1}, {"error": 3, "rows": 0}])
def test_wrong_errors_are_refused(bad):
    with pytest.raises(dp.InputError):
        FRAME.dp.plan.count(**bad)


def test_error_finds_the_least_eps_of_the_designs_example():
    """Error 500 at 10,000 rows of (0, 1e5) needs eps .06 (2.996 * 1e5 / 5e6)."""
    df = pl.DataFrame({"income": [1.0]})
    plan = df.dp.plan.clip_mean("income", bounds=(0, 1e5), error=500, rows=10_000)
    assert plan.eps == pytest.approx(0.06, abs=0.0002)
    assert plan.error <= 500
    less = df.dp.plan.clip_mean("income", bounds=(0, 1e5), eps=round(plan.eps - 0.0002, 6))
    assert less.plan.error(10_000) > 500
    fraction = df.dp.plan.clip_mean("income", bounds=(0, 1e5), error=0.01, relative_to=50_000, rows=10_000)
    assert fraction.eps == plan.eps


def test_error_works_alone_for_counts_and_sums(kind):
    """By the discrete law: P(|Z| > w) = 2 p^(w+1)/(1+p)."""
    df = as_kind(kind, FRAME)
    plan = df.dp.plan.count(error=10)
    p = math.exp(-plan.eps)
    assert 2 * p**11 / (1 + p) <= 0.05 < 2 * p**10 / (1 + p)
    assert plan.error == 10
    total = df.dp.plan.clip_sum("x", bounds=(0, 50), error=1000)
    assert total.eps == pytest.approx(50 * math.log(20) / 1000, rel=0.01)
    assert total.error <= 1000
    share = df.dp.plan.count(error=0.01, relative_to=1000)
    assert share.eps == plan.eps
    with dp.Session(eps=3) as s:
        df.dp.count(error=10)
        assert s.spent == plan.cost.eps


def test_equal_questions_are_equal_plans_and_hash_alike(kind):
    df, other = as_kind(kind, FRAME), as_kind(kind, FRAME.reverse())

    def plan(frame, **more):
        asked = {"n": dp.count(), "m": dp.clip_mean("x", bounds=(0, 10)), "eps": 0.5, **more}
        return frame.dp.plan.groupby("g", keys=["a", "b"]).dp_agg(**asked).plan

    assert plan(df) == plan(other)
    assert hash(plan(df)) == hash(plan(other))
    assert plan(df) != plan(df, eps=0.25)


def test_plans_with_other_keys_are_other_plans(kind):
    """Equal plans ask for the same table: same groups, same order."""
    df = as_kind(kind, FRAME)
    plans = [
        df.dp.plan.groupby("g", keys=k).count(eps=1).plan for k in (["a", "b"], ["b", "a"], ["a", "c"], ["a"])
    ]
    assert len(set(plans)) == 4


@pytest.mark.parametrize(
    ("cells", "one", "two"),
    [
        (pd.Series(["a"], dtype=object), ["a", "b"], ["c", "d"]),
        (pd.Series(pd.Categorical(["a"])), ["a", "b"], ["c", "d"]),
        (pd.Series(pd.cut([5], [0, 18, 40])), [pd.Interval(0, 18)], [pd.Interval(18, 40)]),
        (pd.Series(pd.PeriodIndex(["2026-01"], freq="M")), ["2026-01"], ["2026-02"]),
    ],
)
def test_plans_with_other_keys_of_looked_up_columns_are_other_plans(cells, one, two):
    """And asking for other groups is no repetition."""
    df = pd.DataFrame({"g": cells})
    plans = [df.dp.plan.groupby("g", keys=k).count(eps=1) for k in (one, two)]
    assert plans[0].plan != plans[1].plan
    with dp.Session(eps=3) as s:
        for p in plans:
            p.release()
        assert s.report()["repeat_of"].to_list() == [None, None]


def test_plans_are_frozen():
    plan = FRAME.dp.plan.count(eps=0.5).plan
    with pytest.raises((AttributeError, TypeError)):
        plan.event = None


CANARY, CANARY_TEXT = 7_731_904, "canary7731904"


def canary_frame(kind):
    frame = pl.DataFrame(
        {"g": [CANARY_TEXT], "x": [float(CANARY)], "k": [CANARY], "day": [dt.date(2026, 1, 1)]}
    )
    df = as_kind(kind, frame)
    if kind == "pandas":
        df["c"] = pd.Categorical([CANARY_TEXT])
        df["o"] = pd.Series([CANARY_TEXT], dtype=object)
    return df


def test_plans_hold_no_cell(kind):
    df = canary_frame(kind)
    columns = ["g", "k", *(["c", "o"] if kind == "pandas" else [])]
    for by in columns:
        key = 5 if by == "k" else "a"
        bound = df.dp.plan.groupby(by, keys=[key]).dp_agg(
            n=dp.count(), m=dp.clip_mean("x", bounds=(0, 9)), eps=1
        )
        data = pickle.dumps(bound.plan)
        texts = f"{bound.plan!r}{bound!r}{bound.explain()}{bound._repr_html_()}{df.dp!r}{df.dp.groupby(by)!r}"
        for shown in (data, texts.encode()):
            assert CANARY_TEXT.encode() not in shown
            assert str(CANARY).encode() not in shown
        assert struct.pack("<q", CANARY) not in data
        assert struct.pack("<d", CANARY) not in data
        assert pickle.loads(data) == bound.plan


# ---- mutation ----


def test_a_pandas_frame_changed_after_planning_is_refused_before_the_charge():
    """Case 116: dtype changed, column gone, column doubled, key dtype changed."""

    def retype(df):
        df["x"] = df["x"].astype(str)

    def drop(df):
        df.drop(columns="x", inplace=True)

    def double(df):
        df.columns = ["g", "x", "x", "late"]

    def rekey(df):
        df["g"] = range(len(df))

    for change in (retype, drop, double, rekey):
        df = FRAME.to_pandas()
        bound = df.dp.plan.groupby("g", keys=["a"]).clip_mean("x", bounds=(0, 10), eps=0.5)
        change(df)
        with dp.Session(eps=1) as s:
            with pytest.raises(dp.InputError, match=r"'(x|g)'"):
                bound.release()
            assert s.report().height == 0


POLARS_CHANGES = {
    "retype": lambda df: df.replace_column(1, pl.Series("x", ["a"] * len(df))),
    "drop": lambda df: df.drop_in_place("x"),
    "rename": lambda df: setattr(df, "columns", ["g", "y", "k", "late"]),
    "rekey": lambda df: df.replace_column(0, pl.Series("g", range(len(df)))),
}


@pytest.mark.parametrize("change", POLARS_CHANGES)
def test_a_polars_frame_changed_after_planning_is_refused_before_the_charge(change):
    df = FRAME.clone()
    bound = df.dp.plan.groupby("g", keys=["a"]).clip_mean("x", bounds=(0, 10), eps=0.5)
    POLARS_CHANGES[change](df)
    with dp.Session(eps=1) as s:
        with pytest.raises(dp.InputError, match=r"'(x|g)'"):
            bound.release()
        assert s.report().height == 0


def test_a_grouping_kept_over_a_change_of_the_frame_sees_one_state_of_it():
    """A snapshot or the new frame, never a mixture: rows and values are of the same moment."""
    for df in (FRAME.to_pandas(), FRAME.clone()):
        by = df.dp.groupby("g", keys=["a"])
        if isinstance(df, pd.DataFrame):
            df.loc[len(df)] = ["a", 9.0, 7, True]
        else:
            df.extend(pl.DataFrame({"g": ["a"], "x": [9.0], "k": [7], "late": [True]}))
        with dp.Session(eps=10 * EPS):
            table = by.dp_agg(n=dp.count(), k=dp.clip_sum("k", bounds=(0, 9)), eps=EPS)
        assert (table["n"].to_list()[0], table["k"].to_list()[0]) in [(3, 10), (4, 17)]


def test_a_column_added_after_planning_does_no_harm(kind):
    df = as_kind(kind, FRAME)
    bound = df.dp.plan.count("x", eps=EPS)
    if kind == "pandas":
        df.insert(0, "new", 1)
    elif kind == "polars":
        df.insert_column(0, pl.Series("new", [1] * 6))
    with dp.Session(eps=2 * EPS):
        assert bound.release().value == 5
