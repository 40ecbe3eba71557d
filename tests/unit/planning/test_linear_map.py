"""Gaussian noise of a whole row in plans: when the rule takes it, how far a unit moves it, through the engine; coverage."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from chance import least_hits
from one_draw import draws_of, in_coordinates, mean, moved, total
from test_one_draw import NEW, NULLABLE, changed, without

import dpframe as dp
from dpframe.mechanisms.choosers import Reach
from dpframe.mechanisms.joint import Share
from dpframe.mechanisms.row_gaussian import LinearGaussian, squared_move

CALLS = {
    "means": {"n": dp.count(), "m": mean("a"), "k": mean("b")},
    "all sorts": {
        "n": dp.count(),
        "m": mean("a"),
        "s": total("b", -1, 3),
        "c": dp.count("i"),
        "t": dp.clip_sum("t"),
    },
    "beside a variance": {
        "n": dp.count(),
        "m": mean("a"),
        "k": mean("b"),
        "v": dp.clip_var("i", bounds=(0, 9)),
    },
}


def planned(call, data=NULLABLE, neighbors="add_remove", by=True, unit=None, **options):
    limits = {} if unit is None else {"max_rows_per_group": 2, "max_groups": 2} if by else {"max_rows": 2}
    budget = {"rho": 10**6} if "rho" in options else {"eps": 10**6, "delta": 0.01}
    with dp.Session(**budget, neighbors=neighbors, unit=unit):
        frame = pl.DataFrame(data)
        if by:
            return frame.dp.plan.groupby("g", keys=["x", "y"]).dp_agg(**call, **limits, **options).plan
        return frame.dp.plan.agg(**call, **limits, **options).plan


def norm_squared(plan, number, differences):
    """Of the move of the map in all groups together."""
    joint = next(
        p.noise.joint for p in plan.pieces if isinstance(p.noise, Share) and p.noise.number == number
    )
    m, out = joint.map, Fraction(0)
    for difference in differences:
        k, blocks = in_coordinates(plan, number, difference)
        out += (m.lam * k) ** 2
        for b, ((x,), here) in zip(joint.blocks, blocks):
            rows = here if b.missing else k
            out += Fraction(2 * x - b.steps * rows, b.steps) ** 2
            out += (m.beta * (here - Fraction(m.kappa, 1024) * k)) ** 2 if b.missing else 0
    return out


@pytest.mark.parametrize("complete", [False, True], ids=["missing", "complete"])
@pytest.mark.parametrize("unit", [None, "who"])
@pytest.mark.parametrize("by", [True, False], ids=["listed", "ungrouped"])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_no_neighbour_moves_the_map_further_than_the_noise_is_for(call, neighbors, by, unit, complete):
    """Planted: a replaced row at sqrt 2 times an added one."""
    plan = planned(call, neighbors=neighbors, by=by, unit=unit, rho=1, complete_cases=complete)
    draws = draws_of(plan)
    if not draws:
        pytest.skip("equal parts are as good here")
    (number,) = draws
    joint = plan.pieces[draws[number][0]].noise.joint
    assert isinstance(joint, LinearGaussian)
    reach = Reach(neighbors == "replace_one", by, *((2, 2 if by else 1) if unit else (1, 1)))
    allowed = squared_move(joint.blocks, joint.map, reach)
    share = Fraction(1, len({p.draw if p.draw is not None else -i for i, p in enumerate(plan.parts)}))
    assert float(joint.sigma) ** 2 == pytest.approx(float(allowed / (2 * share)), rel=1e-6)
    rows = range(len(NULLABLE["a"]))
    if unit is None:
        others = [without(NULLABLE, i) for i in rows]
        if neighbors == "replace_one":
            others = [changed(NULLABLE, i, NEW | {"g": g}) for i in rows for g in "xy"] + others
    else:
        others = []
        for who in sorted(set(NULLABLE["who"])):
            mine = [i for i in rows if NULLABLE["who"][i] == who]
            if neighbors == "replace_one":
                other = NULLABLE
                for i in mine:
                    other = changed(other, i, NEW | {"who": who, "g": "y"})
                others.append(other)
            kept = NULLABLE
            for i in reversed(mine):
                kept = without(kept, i)
            others.append(kept)
    far = Fraction(0)
    for other in others:
        for found in moved(plan, pl.DataFrame(NULLABLE), pl.DataFrame(other)).values():
            far = max(far, norm_squared(plan, number, found))
    assert 0 < far <= allowed


def test_rho_takes_the_map_and_no_output_is_much_worse():
    for call in CALLS.values():
        for options in ({}, {"complete_cases": True}):
            for by in (True, False):
                plan = planned(call, by=by, rho=1, **options)
                today = planned(call, by=by, rho=1, mechanism="gaussian", **options)
                assert plan.event.rho == today.event.rho == 1
                for o, old in zip(plan.outputs, today.outputs):
                    for share in (0.5, 1.0):
                        assert off(plan, o, share) <= 1.051 * off(today, old, share)


def off(plan, o, share):
    """The standard deviation of an output of very many rows, at columns that lie at one place between their bounds."""
    from dpframe.planning.candidates import _integers, _made_up

    exact = _made_up(plan.measures, share, 1)
    noisy = [_integers(p, exact) for p in plan.pieces]
    return float(o.answer.std(noisy, plan.laws)[0])


def test_delta_takes_the_map_for_many_columns():
    data = {f"b{i}": [1.0, None] for i in range(20)} | {"g": ["x", "y"]}
    call = {f"b{i}": mean(f"b{i}") for i in range(20)}
    price = {"eps": 0.05, "delta": 0.01}
    plan = planned(call, data, **price, complete_cases=True)
    assert {type(p.noise.joint) for p in plan.pieces} == {LinearGaussian}
    assert (plan.event.eps, plan.event.delta) == (Fraction(1, 20), Fraction(1, 100))
    split = planned(call, data, **price, mechanism="gaussian", complete_cases=True)
    assert off(plan, plan.outputs[0], 1.0) < off(split, split.outputs[0], 1.0) / 1.35


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_a_law_by_name_keeps_its_meaning(law):
    assert not draws_of(planned(CALLS["means"], rho=1, mechanism=law))


def test_sums_of_boolean_columns_gain():
    """(sqrt 9 + 1)/2 = 2 instead of sqrt 9 = 3."""
    data = {f"b{i}": [True, False] for i in range(9)} | {"g": ["x", "y"]}
    plan = planned({f"b{i}": dp.clip_sum(f"b{i}") for i in range(9)}, data, rho=Fraction(1, 20_000))
    assert off(plan, plan.outputs[0], 0.5) == pytest.approx(200, rel=0.01)


def test_intervals_hold_and_answers_are_right():
    """3,000 groups: with probability 1e-10 fewer intervals hold than where 95 % do (of three)."""
    rows = pl.DataFrame({"a": [9.0] * 400 + [None] * 100, "b": [1.0] * 500})
    groups = range(3000)
    frame = pl.DataFrame({"g": groups}).join(rows, how="cross")
    with dp.Session(rho=10**9) as s:
        by = frame.dp.groupby("g", keys=groups)
        right = by.dp_agg(**CALLS["means"], rho=10**5).drop("g").to_numpy()
        assert np.abs(right - [500, 9, 1]).max() < 0.01
        by.dp_agg(**CALLS["means"], rho=Fraction(1, 100))
        ends = s.last.interval(0.95)
    assert isinstance(s.last.plan.pieces[0].noise.joint, LinearGaussian)
    for name, true in (("n", 500), ("m", 9.0), ("k", 1.0)):
        hits = ((ends[f"{name}_low"] <= true) & (true <= ends[f"{name}_high"])).sum()
        assert hits >= least_hits(3000, 0.95), name


def test_explain_names_the_draw():
    with dp.Session(rho=10):
        said = str(pl.DataFrame(NULLABLE).dp.plan.agg(**CALLS["means"], rho=1).explain())
    assert "one draw for n, m, k" in said
    assert "gaussian" in said
