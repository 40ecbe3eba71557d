"""Which noise ``auto`` takes: the rule, its promises, and the figures of what it takes (docs/proofs/one-draw.md)."""

from __future__ import annotations

import math
from fractions import Fraction

import pandas as pd
import polars as pl
import pytest
from one_draw import mean, total

import dpframe as dp
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.combine import std
from dpframe.mechanisms.row import Block, calibrate

COLUMNS = [f"x{i}" for i in range(12)]
FRAME = pl.DataFrame(
    {c: [1.0] for c in COLUMNS} | {"t": [True], "u": [False], "k": [1], "g": ["a"], "who": [1]}
)
NUMPY = pd.DataFrame({c: [1] for c in COLUMNS} | {"t": [True], "g": ["a"]})


def planned(call, frame=FRAME, grouped=True, **options):
    options = {"eps": 1, **options}
    neighbors = options.pop("neighbors", "add_remove")
    unit = options.pop("unit", None)
    with dp.Session(eps=10**6, delta=0.01, neighbors=neighbors, unit=unit):
        if not grouped:
            return frame.dp.plan.agg(**call, **options).plan
        keys = {} if "delta" in options else {"keys": ["a", "b"]}
        return frame.dp.plan.groupby("g", **keys).dp_agg(**call, **options).plan


def runs(plan):
    """How many blocks each draw covers, largest first; the number of rows that it draws is none."""
    found = {}
    for p in plan.parts:
        if p.draw is not None and (p.layout.kind != "rows"):
            found[p.draw] = found.get(p.draw, 0) + 1
    return sorted(found.values(), reverse=True)


def off(plan, name, share=0.5):
    """The RMSE of an output in rows (of a mean: in D/n) or in the answer's unit, from the covariances of what it reads."""
    o = next(o for o in plan.outputs if o.name == name)
    answer, laws = o.answer, plan.laws
    if hasattr(answer, "places"):  # a mean: sum of (y - tau)*cell over n
        tau = 2 * share - 1
        return std(
            tuple((laws[i], (y - tau) / 2 / answer.steps) for i, y in zip(answer.cells, answer.places))
        )
    spread = getattr(answer, "spread", answer)
    if hasattr(spread, "product"):  # a variance or covariance of columns with mean tau, at first order
        tau = 2 * share - 1
        v = 1 / 3 if share == 0.5 else 0.0
        weights = [
            xy - tau * (x + y) + tau * tau - v
            for x, y, xy in zip(spread.first, spread.second, spread.product)
        ]
        return std(tuple((laws[i], w / spread.steps) for i, w in zip(spread.cells, weights)))
    spread = std(tuple((laws[i], float(c)) for i, c in answer.terms))
    return math.hypot(spread, 12**-0.5) if len(answer.terms) > 1 and answer.integer else spread


# ---- what the page says of the rule ----


def test_ten_complete_means_with_their_number_are_two_draws_of_five():
    call = {"n": dp.count(), **{c: mean(c) for c in COLUMNS[:10]}}
    eps = Fraction(1, 10)
    plan = planned(call, NUMPY, eps=eps)
    split = planned(call, NUMPY, eps=eps, mechanism="laplace")
    assert runs(plan) == [5, 5] == runs(planned(call, NUMPY))
    assert off(plan, "x0") / off(split, "x0") == pytest.approx(0.43, abs=0.01)
    assert off(plan, "n") / off(split, "n") == pytest.approx(0.97, abs=0.015)
    assert plan.event.eps == eps
    counts = plan.outputs[0].answer
    assert [c for _, c in counts.terms] == [Fraction(1, 2)] * 2
    assert [plan.pieces[i].noise.number for i, _ in counts.terms] == [0, 1]
    assert plan.rho == pytest.approx(0.1 * math.tanh(0.025), rel=1e-9)
    with dp.Session(eps=1):
        text = str(NUMPY.dp.plan.agg(**call, eps=eps).explain())
    assert "2 parts share the budget equally: one draw for n, x0, x1, x2, x3, x4; one draw for n, x5," in text


def test_a_mean_beside_a_table_stays_apart(monkeypatch):
    """A table is read in a pass of its own; were it one of the blocks, the rule would keep it apart."""
    with dp.Session(eps=9):
        plan = FRAME.dp.plan.agg(m=mean("x0"), k=mean("x1"), u=dp.n_unique("x2"), eps=1).plan
    kinds = {p.layout.kind: p.draw for p in plan.parts}
    assert kinds["distinct"] is None
    assert kinds["block"] is not None
    table = calibrate((Block(2**30), Block(1, 19)), Target(Fraction(1)))
    one = calibrate((Block(2**30),), Target(Fraction(1)))
    middle = [
        j.std(tuple(-(2.0**29) * (i == 0) + (i == 1) for i in range(len(j.coordinates))))
        for j in (table, one)
    ]
    assert middle[0] / middle[1] > 2 * 1.05  # a draw for each part has eps/2


@pytest.mark.parametrize(("bounds", "gain"), [((0, 100), 0.53), ((-100, 100), 0.75)])
def test_three_lone_sums_are_one_draw(bounds, gain):
    call = {c: total(c, *bounds) for c in COLUMNS[:3]}
    plan = planned(call, eps=Fraction(1, 10))
    assert runs(plan) == [3]
    ratio = off(plan, "x0") / off(planned(call, mechanism="laplace", eps=Fraction(1, 10)), "x0")
    assert ratio == pytest.approx(gain, rel=0.02)


def test_own_epsilons_are_calls_of_their_own():
    call = {"a": dp.clip_mean("x0", bounds=(0, 1), eps=3), "b": dp.clip_mean("x1", bounds=(0, 1), eps=3)}
    with dp.Session(eps=9):
        plan = FRAME.dp.plan.agg(**call).plan
    assert runs(plan) == [1, 1]
    assert plan.eps == 6


def test_numbers_of_units_are_rows_where_one_row_counts():
    call = {"n": dp.count(), "u": dp.count_units(), "m": mean("x0"), "k": mean("x1")}
    one = planned(call, unit="who", max_groups=1, max_rows_per_group=1)
    assert one.outputs[0].answer == one.outputs[1].answer
    assert runs(one) == [2]
    assert sum(p.layout.kind in ("rows", "units") for p in one.parts) == 1
    several = planned(call, unit="who", max_groups=1, max_rows_per_group=2)
    assert [p.draw for p in several.parts if p.layout.kind == "units"] == [None]


@pytest.mark.parametrize("target", [{"eps": 1}, {"eps": 1, "delta": 1e-6}], ids=str)
@pytest.mark.parametrize("columns", [2, 5, 9])
def test_means_share_a_draw_with_delta_and_without(columns, target):
    """At (1, 1e-6) Laplace noise would win up to 8 parts, Gaussian noise beyond; one draw leaves delta alone."""
    with dp.Session(eps=9, delta=0.01):
        plan = FRAME.dp.plan.agg(**{c: mean(c) for c in COLUMNS[:columns]}, **target).plan
    assert {p.mechanism for p in plan.parts} == {"row"}
    assert plan.event.delta == 0


def test_another_law_is_taken_by_its_name():
    call = {"m": mean("x0"), "k": mean("x1")}
    assert {p.mechanism for p in planned(call, mechanism="laplace").parts} == {"laplace"}
    assert {p.mechanism for p in planned(call).parts} == {"row"}
    with dp.Session(rho=1):
        by_rho = FRAME.dp.plan.agg(**call, rho=0.1).plan
    assert {p.mechanism for p in by_rho.parts} == {"gaussian"}
    with dp.Session(eps=1, delta=1e-6, accountant="gdp"):
        gdp = FRAME.dp.plan.agg(**call, eps=0.1, delta=1e-8).plan
    assert {p.mechanism for p in gdp.parts} == {"gaussian"}


# ---- figures ----

SMALL = {  # by columns: RMSE in the middle in D/(n eps), and sd of n in 1/eps rows, of eps <= 1
    True: {2: (1.452, 3.32), 3: (1.905, 4.1), 5: (2.815, 5.5), 10: (5.095, 8.0)},
    False: {2: (1.291, 2.52), 3: (1.581, 3.1), 5: (2.160, 4.28), 10: (3.606, 7.2)},
}


@pytest.mark.parametrize("eps", [Fraction(1, 20), Fraction(1, 2)])
@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("columns", [2, 3, 5, 10])
def test_figures_of_means_at_small_eps(columns, nullable, eps):
    """Within 2 % (of n, told in three digits at eps = 1: 2.5)."""
    call = {c: mean(c, 0, 2**20) for c in COLUMNS[:columns]}
    plan = planned(call, FRAME if nullable else NUMPY, eps=eps)
    middle, rows = SMALL[nullable][columns]
    assert runs(plan) == [columns]
    assert off(plan, "x0") * float(eps) <= 1.02 * middle
    joint = plan.pieces[0].noise.joint
    assert joint.covariance[0, 0] ** 0.5 * float(eps) <= 1.025 * rows
    if eps < Fraction(1, 4):
        assert off(plan, "x0") * float(eps) >= 0.98 * middle
        assert joint.covariance[0, 0] ** 0.5 * float(eps) >= 0.98 * rows


LARGE = {  # eps: RMSE of one mean in the middle and at a bound, of two nullable means, sd of n with two
    1: (0.979, 1.385, 1.461, 2.003, 3.30),
    3: (0.2763, 0.3907, 0.453, 0.607, 0.969),
    5: (0.1219, 0.1724, 0.218, 0.289, 0.441),
    8: (0.0411, 0.0581, 0.0883, 0.1125, 0.153),
    10: (0.0206, 0.0291, 0.0499, 0.0634, 0.083),
}


@pytest.mark.parametrize("eps", LARGE)
def test_figures_of_means_at_large_eps(eps):
    """Within 2 %. One mean at a bound is the best law for a number of known count."""
    one, two = planned({"x0": mean("x0")}, eps=eps), planned({"x0": mean("x0"), "x1": mean("x1")}, eps=eps)
    both = planned({"n": dp.count(), "x0": mean("x0"), "x1": mean("x1")}, eps=eps)
    middle, bound, middle2, bound2, rows = LARGE[eps]
    assert off(one, "x0") == pytest.approx(middle, rel=0.02)
    assert off(one, "x0", 1) == pytest.approx(bound, rel=0.02)
    assert off(two, "x0") == pytest.approx(middle2, rel=0.02)
    assert off(two, "x0", 1) == pytest.approx(bound2, rel=0.02)
    assert 0.97 * rows <= off(both, "n") <= 1.02 * rows


@pytest.mark.parametrize(("eps", "gain"), [(3, 1.5), (5, 1.9), (8, 3.0), (10, 4.3)])
def test_pairs_of_means_at_a_bound_gain_much_at_large_eps(eps, gain):
    call = {"x0": mean("x0"), "x1": mean("x1")}
    assert off(planned(call, eps=eps, mechanism="laplace"), "x0", 1) >= gain * off(
        planned(call, eps=eps), "x0", 1
    )


# ---- thresholds ----

THRESHOLDS = {1: 16.28, 2: 21.3, 5: 29.6, 10: 40.9}


@pytest.mark.parametrize("columns", THRESHOLDS)
def test_thresholds_are_within_one_row_of_the_limit(columns):
    """At (1, 1e-6): the K-norm limit of nullable columns, in whole rows; one column keeps the present rows of its block."""
    call = {c: mean(c) for c in COLUMNS[:columns]}
    plan = planned(call, delta=1e-6)
    assert THRESHOLDS[columns] * 0.999 <= plan.threshold.size <= THRESHOLDS[columns] * 1.02 + 2
    law = plan.pieces[plan.threshold.coordinates[0]].noise
    least = plan.threshold.least
    if plan.threshold.coordinates[1:]:
        return
    assert law.upper_tail(least - 1) <= 1e-6
    assert law.upper_tail(least - 2) > 1e-6 * (1 - 2.0**-20)


def test_found_groups_are_thresholded_on_the_run_that_lets_most_through():
    call = {c: mean(c) for c in COLUMNS[:3]} | {"n": dp.count()}
    plan = planned(call, delta=1e-6)
    (where,) = plan.threshold.coordinates
    assert plan.pieces[where].coordinate.a == 1
    assert plan.pieces[where].noise.weights[0] == 1
    assert plan.outputs[-1].answer.coordinates() == (where,)
    assert plan.delta == pytest.approx(1e-6)


@pytest.mark.parametrize("eps", [14, 25, 100, 1000, 10**6])
def test_one_draw_by_name_has_less_noise_than_separate_draws_at_huge_eps(eps):
    """The constant r goes to nothing as exp(-eps/3): beside a column of few steps, too (it stayed at K/2, or at K/256)."""
    call = {"x0": mean("x0"), "k": mean("k", 0, 4), "n": dp.count()}
    one, split = planned(call, eps=eps, mechanism="row"), planned(call, eps=eps, mechanism="laplace")
    for share in (0.5, 1):
        assert off(one, "x0", share) <= min(2 * math.exp(-eps / 3), 1.05 * off(split, "x0", share)) + 1e-6
    if eps >= 100:
        with dp.Session(eps=eps):
            found = FRAME.dp.agg(**call, eps=eps, mechanism="row")
        assert found.rows() == [(pytest.approx(1, abs=1e-4), pytest.approx(1, abs=1e-4), 1)]


def test_beside_a_choice_a_draw_is_one_part_of_several_that_are_not_equal():
    """Two means have a draw with two thirds of eps, a median beside them a third."""
    frame = pl.DataFrame({"x": [1.0, None], "y": [1.0, 2.0]})
    with dp.Session(eps=1):
        bound = frame.dp.plan.agg(
            m=mean("x"), k=mean("y"), q=dp.median("x", candidates=[1, 2]), eps=1, mechanism="auto"
        )
        (said,) = [x.text for x in bound.explain().lines if x.label == "split"]
    assert said == "2 parts share the budget: one draw for m, k; x"
    assert [p.event.eps for p in bound.plan.parts] == [Fraction(2, 3), Fraction(2, 3), Fraction(1, 3)]
