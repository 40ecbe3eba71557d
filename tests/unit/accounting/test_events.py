"""Typed numbers as exact rationals, what is refused as a number, and sums without tolerance."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.accounting.events import Cost, Event, compose, rational, round_down, round_up

pytestmark = pytest.mark.usefixtures("quiet")

DF = pl.DataFrame({"x": [1.0, 2.0, 3.0], "g": ["a", "b", "a"]})


# ---- numbers ----


@pytest.mark.parametrize(
    ("typed", "exact"),
    [
        (0.1, Fraction(1, 10)),
        (1 / 11, Fraction(1, 11)),
        (2 / 3, Fraction(2, 3)),
        (1e-12, Fraction(1, 10**12)),
        (1e-6, Fraction(1, 10**6)),
        (0.30000000000000004, Fraction("0.30000000000000004")),
        (math.pi, Fraction(repr(math.pi))),
        (5e-324, Fraction("5e-324")),
        (1e308, Fraction(1e308)),
        (3, Fraction(3)),
        (Fraction(1, 3), Fraction(1, 3)),
        (Decimal("0.1"), Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.int32(2), Fraction(2)),
    ],
)
def test_typed_numbers_are_the_rationals_they_look_like(typed, exact):
    assert rational(typed, "eps") == exact


def test_floats_that_look_alike_stay_apart():
    assert rational(0.1 + 0.2, "eps") > rational(0.3, "eps")
    assert float(rational(0.1 + 0.2, "eps")) == 0.1 + 0.2


def test_every_float_survives_the_reading():
    rng = np.random.default_rng(1)
    for x in 10 ** rng.uniform(-15, 15, 2_000):
        assert float(rational(float(x), "eps")) == x


@pytest.mark.parametrize("below", [1])
def test_an_upper_end_is_excluded(below):
    with pytest.raises(dp.InputError, match="less than 1"):
        rational(1, "delta", below=below)


def test_rounding_goes_outward():
    for x in (Fraction(1, 3), 0.1, math.pi, Fraction(1, 10**30)):
        assert round_down(x) <= Fraction(x) <= round_up(x)
        assert round_up(x) - round_down(x) <= Fraction(1, 2**80)
    assert round_up(0.5) == round_down(0.5) == Fraction(1, 2)


# ---- refusals: cases 31 and 32 ----

BAD = [
    math.nan, math.inf, -math.inf, -1, -0.1, True, False, "0.5", "", 1 + 0j, [0.5], (0.5,), {0.5}, b"1",
    Decimal("NaN"), Decimal("Infinity"), Decimal("-1"), Fraction(-1, 2), np.float64("nan"), np.bool_(True),
    np.array([0.5]), np.array(0.5), pd.NA, ...,
]  # fmt: skip
ZEROS = [0, 0.0, -0.0, Fraction(0), Decimal(0), np.float64(0)]


@pytest.mark.parametrize("bad", [*BAD, *ZEROS], ids=repr)
def test_no_call_takes_it_as_eps(bad):
    with dp.Session(eps=1, delta=1e-6) as s:
        for call in (
            lambda: DF.dp.count(eps=bad),
            lambda: DF.dp.clip_mean("x", bounds=(0, 5), eps=bad),
            lambda: DF.dp.groupby("g", keys=["a"]).dp_agg(n=dp.count(), eps=bad),
            lambda: DF.dp.dp_agg(n=dp.count(), m=dp.clip_sum("x", B=1), eps={"n": bad, "m": 0.1}),
            lambda: DF.dp.dp_agg(n=dp.count(eps=bad)),
            lambda: DF.dp.plan.count(eps=bad),
        ):
            with pytest.raises(dp.InputError, match="eps"):
                call()
        assert (s.spent.eps, s.spent.delta, s.spent.rho) == (0, 0, 0)
        assert s.report().height == 0


@pytest.mark.parametrize("bad", [*BAD, *ZEROS], ids=repr)
@pytest.mark.parametrize("which", ["rho", "error"])
def test_no_call_takes_it_as_rho_or_error(bad, which):
    with dp.Session(eps=1, delta=1e-6) as s:
        with pytest.raises(dp.InputError, match=which):
            DF.dp.count(**{which: bad})
        assert s.spent == 0


@pytest.mark.parametrize("bad", [*BAD, 1, 1.0, 2], ids=repr)
def test_no_call_takes_it_as_delta(bad):
    with dp.Session(eps=1, delta=1e-6) as s:
        with pytest.raises(dp.InputError, match="delta"):
            DF.dp.count(eps=0.1, delta=bad)
        assert s.spent == 0


@pytest.mark.parametrize("bad", [*BAD, *ZEROS], ids=repr)
@pytest.mark.parametrize("which", ["eps", "rho"])
def test_no_session_takes_it_as_its_total(bad, which):
    with pytest.raises(dp.InputError, match=which):
        dp.Session(**{which: bad})


@pytest.mark.parametrize("bad", [*BAD, 1, 1.5], ids=repr)
def test_no_session_takes_it_as_delta_or_delta_calls(bad):
    with pytest.raises(dp.InputError, match="delta"):
        dp.Session(eps=1, delta=bad)
    with pytest.raises(dp.InputError, match="delta_calls"):
        dp.Session(eps=1, delta=1e-6, delta_calls=bad)
    with pytest.raises(dp.InputError, match="delta_calls"):
        dp.Session(rho=1, delta_calls=bad)


@pytest.mark.parametrize("bad", [None])
def test_none_is_no_budget(bad):
    """eps=None never means 'no limit' or 'no noise'."""
    with dp.Session(eps=1) as s:
        with pytest.raises(dp.InputError, match="spend"):
            DF.dp.count(eps=bad)
        with pytest.raises(dp.InputError, match="eps"):
            DF.dp.dp_agg(n=dp.count(), eps={"n": bad})
        assert s.spent == 0
    with pytest.raises(dp.InputError, match="budget"):
        dp.Session(eps=bad)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"eps": 1, "rho": 1},
        {"rho": 1, "delta": 1e-6},
        {"eps": 1, "delta": 1e-6, "delta_calls": 2e-6},
        {"eps": 1, "delta_calls": 1e-9},
        {"eps": 1, "neighbors": "remove_one"},
    ],
    ids=repr,
)
def test_budgets_that_contradict_themselves_are_refused(arguments):
    with pytest.raises(dp.InputError):
        dp.Session(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"eps": 0.1, "rho": 0.1},
        {"eps": 0.1, "error": 3},
        {"rho": 0.1, "delta": 1e-7},
        {"eps": 0.1, "relative_to": 3},
        {},
    ],
    ids=repr,
)
def test_calls_with_two_costs_or_none_are_refused(arguments):
    with dp.Session(eps=1, delta=1e-6) as s:
        with pytest.raises(dp.InputError):
            DF.dp.count(**arguments)
        assert s.spent == 0


SECRET = 731_624_598_091.25


@pytest.mark.parametrize(
    "column",
    [pd.Series([SECRET]), pl.Series([SECRET]), np.array([SECRET])],
    ids=["pandas", "polars", "numpy"],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda c: DF.dp.count(eps=c),
        lambda c: DF.dp.count(rho=c),
        lambda c: DF.dp.count(eps=0.1, delta=c),
        lambda c: DF.dp.count(error=c),
        lambda c: DF.dp.count(eps=0.1, ci=c),
        lambda c: DF.dp.count(eps=0.1, round=c),
        lambda c: DF.dp.count(eps=0.1, nonnegative=c),
        lambda c: DF.dp.clip_mean("x", bounds=(0, 1), n=c, eps=0.1),
        lambda c: DF.dp.clip_mean("x", bounds=(0, c), eps=0.1),
        lambda c: DF.dp.clip_mean("x", bounds=c, eps=0.1),
        lambda c: DF.dp.clip_mean("x", B=c, eps=0.1),
        lambda c: dp.Session(eps=c),
        lambda c: dp.Session(eps=1).split(c),
    ],
    ids=[
        "eps",
        "rho",
        "delta",
        "error",
        "ci",
        "round",
        "nonnegative",
        "n",
        "bound",
        "bounds",
        "B",
        "session",
        "split",
    ],
)
def test_a_column_given_for_a_number_is_refused_without_quoting_it(call, column):
    """A Series where a number belongs (df["x"] for df["x"].max()) must not put cells into the message."""
    with dp.Session(eps=1, delta=1e-6) as s:
        with pytest.raises((dp.InputError, TypeError)) as e:
            call(column)
        assert s.spent == 0
    assert "73162" not in str(e.value)
    assert "7.3162" not in str(e.value)


# ---- sums: case 34 ----


@pytest.mark.parametrize(
    ("share", "times", "total"),
    [(0.1, 10, 1), (0.1, 3, 0.3), (1 / 11, 11, 1), (1 / 3, 3, 1.0), (1e-3, 1000, 1)],
)
def test_equal_shares_fit_and_nothing_more_does(share, times, total):
    s = dp.Session(eps=total)
    plan = DF.dp.plan.count(eps=share, session=s)
    for _ in range(times):
        plan.release()
    assert s.spent == total
    assert s.remaining == 0
    for more in (1e-12, 1e-15, Fraction(1, 2**55)):
        with pytest.raises(dp.BudgetExceeded):
            DF.dp.count(eps=more, session=s)
    assert s.spent == total


def test_a_tenth_and_nine_tenths_are_one():
    s = dp.Session(eps=1.0)
    for eps in (0.1, 0.9):
        DF.dp.count(eps=eps, session=s)
    assert s.spent == 1


def test_a_thousand_specks_do_not_pass_at_the_end():
    s = dp.Session(eps=1)
    DF.dp.count(eps=1, session=s)
    plan = DF.dp.plan.count(eps=1e-9, session=s)
    for _ in range(1_000):
        with pytest.raises(dp.BudgetExceeded):
            plan.release()
    assert s.spent == 1


def test_deltas_add_up_exactly_too():
    s = dp.Session(eps=100, delta=1e-6, delta_calls=1e-6)
    call = {"eps": 1, "delta": 1e-7, "mechanism": "gaussian", "session": s}
    for _ in range(10):
        DF.dp.count(**call)
    assert s.spent.delta == Fraction(1, 10**6)
    with pytest.raises(dp.BudgetExceeded, match="delta_calls") as e:  # of eps, 90 are left
        DF.dp.count(**{**call, "delta": 1e-12})
    assert e.value.component == "delta"


def test_what_is_charged_is_what_is_drawn():
    """The scale is made from the same rational as the charge."""
    for eps in (0.1, 1 / 11, 0.3, 0.1 + 0.2):
        plan = DF.dp.plan.count(eps=eps).plan
        assert plan.pieces[0].noise.scale == 1 / plan.cost.eps


# ---- Cost and compose ----


def test_a_cost_is_a_number_when_there_is_no_delta():
    assert Cost(Fraction(1, 10)) == 0.1
    assert Cost(Fraction(1, 10)) == Fraction(1, 10)
    assert Cost(Fraction(1, 10)) != 0.2
    assert Cost(Fraction(1, 10), Fraction(1, 10**6)) != 0.1
    assert Cost(None, rho=Fraction(1)) != 1
    assert Cost(Fraction(1)) != True  # noqa: E712
    assert float(Cost(Fraction(1, 4))) == 0.25
    assert float(Cost(None)) == math.inf
    assert hash(Cost(Fraction(1))) == hash(1)


def test_a_cost_is_frozen():
    with pytest.raises(AttributeError):
        Cost(Fraction(1)).eps = Fraction(2)


def test_parts_of_a_call_add_up():
    pure = Event(Fraction(1, 10), Fraction(0), Fraction(1, 200))
    other = Event(Fraction(1, 5), Fraction(1, 10**6), Fraction(1, 50))
    both = compose((pure, other))
    assert (both.eps, both.delta, both.rho) == (Fraction(3, 10), Fraction(1, 10**6), Fraction(5, 200))
    by_rho = Event(None, Fraction(0), Fraction(1, 100))
    assert compose((pure, by_rho)).eps is None
    assert compose((pure, by_rho)).rho == Fraction(3, 200)


# ---- case 38: what is charged for groups ----


def test_disjoint_groups_are_charged_once_and_questions_asked_twice_twice():
    n = 1_000
    df = pd.DataFrame({"city": np.arange(n) % 50, "age": np.arange(n) % 7})
    with dp.Session(eps=1) as s:
        df.dp.groupby("city", keys=range(1_000)).count(eps=0.1)
        assert s.spent == 0.1
        df.dp.groupby("age", keys=range(7)).count(eps=0.1)
        assert s.spent == 0.2
        df[df.city == 1].dp.count(eps=0.1)
        df[df.city == 2].dp.count(eps=0.1)
        assert s.spent == 0.4
