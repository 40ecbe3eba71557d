"""Every row, unit and replaced row of generated frames, through the engine: J of what moves is at most what the noise is for.

The noise of a draw is q**J with q = exp(-eps/(p*reach)) of p draws, so a unit that moves J by ``reach`` at most costs eps/p.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from one_draw import draws_of, mean, moved, steps_of, total

import dpframe as dp

NULLABLE = {
    "a": [1.5, None, 250.0, -7.0, 50.0, 99.9, None, 0.0],
    "b": [float("nan"), 3.0, 4.5, 100.0, None, 0.01, -1e300, float("inf")],
    "w": [1.0, 0.2, None, 2.0, 5.0, 0.0, 1.0, -3.0],
    "i": [3, 0, 6, None, 2, 9, -1, 4],
    "t": [True, False, None, True, True, False, None, True],
    "who": [1, 1, 1, 2, 3, 3, 4, 5],
    "g": ["x", "x", "y", "y", "x", "y", "z", "x"],
}
COMPLETE = {
    "i": [3, 0, 6, 1, 2, 9, -1, 4],
    "j": [0, 100, 50, 7, 200, -5, 33, 12],
    "t": [True, False, False, True, True, False, True, True],
    "a": [1.5, np.nan, 250.0, -7.0, 50.0, 99.9, np.nan, 0.0],
    "who": [1, 1, 1, 2, 3, 3, 4, 5],
    "g": ["x", "x", "y", "y", "x", "y", "z", "x"],
}
CALLS = {
    "means": {"m": mean("a"), "k": mean("b")},
    "means and rows": {"n": dp.count(), "m": mean("a"), "k": mean("b", -50, 50), "p": mean("i", 0, 6)},
    "lone sums": {
        "n": dp.count(),
        "s": total("a", 20, 100),
        "u": total("b", -100, -20),
        "v": total("i", -3, 4),
    },
    "a public n": {"m": dp.clip_mean("a", bounds=(-10, 90), n=8), "k": mean("b"), "n": dp.count()},
    "presence": {"n": dp.count(), "c": dp.count("a"), "d": dp.count("i"), "m": mean("b")},
    "counts of columns": {"c": dp.count("a"), "d": dp.count("t"), "e": dp.count("i")},
    "booleans": {"p": dp.clip_mean("t"), "m": mean("a"), "n": dp.count()},
    "a variance": {"v": dp.clip_var("a", bounds=(0, 100)), "m": mean("i", 0, 6), "n": dp.count()},
    "two of one column": {"m": mean("a"), "k": mean("a", 0, 10), "s": total("a"), "n": dp.count()},
    "everything of one": {
        "m": mean("a"),
        "s": total("a"),
        "c": dp.count("a"),
        "v": dp.clip_std("a", bounds=(0, 100)),
    },
    "one mean": {"m": mean("a")},
}
POLARS = {
    "a covariance": {"c": dp.clip_cov(["a", "b"], bounds=(0, 100)), "m": mean("i", 0, 6), "n": dp.count()},
    "a correlation": {"c": dp.clip_corr(["a", "i"], bounds=(0, 10)), "n": dp.count()},
    "a weighted mean": {
        "w": dp.clip_wmean("a", weights="w", bounds=(0, 100), weight_bounds=(0, 2)),
        "m": mean("b"),
        "n": dp.count(),
    },
}
INTEGERS = {
    "integers": {"m": mean("i", 0, 6), "k": mean("j"), "n": dp.count()},
    "two numbers that are there": {
        "c": dp.clip_cov(["i", "j"], bounds=(0, 100)),
        "t": dp.clip_mean("t"),
        "n": dp.count(),
    },
    "some missing": {
        "m": mean("a"),
        "k": mean("j"),
        "s": total("i", -2, 5),
        "c": dp.count("a"),
        "d": dp.count("j"),
    },
    "none asked for rows": {"k": mean("j"), "t": dp.clip_mean("t")},
}
FRAMES = {
    "polars": (lambda d: pl.DataFrame(d), NULLABLE, CALLS | POLARS),
    "lazy": (lambda d: pl.DataFrame(d).lazy(), NULLABLE, {"a variance": CALLS["a variance"]}),
    "pandas": (lambda d: pd.DataFrame(d), COMPLETE, INTEGERS),
}
CASES = [pytest.param(*FRAMES[f][:2], c, id=f"{f}-{n}") for f in FRAMES for n, c in FRAMES[f][2].items()]
NEW = {"a": 77.0, "b": 100.0, "w": 1.5, "i": 5, "j": 61, "t": True, "who": 1, "g": "x"}


def without(data, i):
    return {c: v[:i] + v[i + 1 :] for c, v in data.items()}


def changed(data, i, row):
    return {c: [*v[:i], row[c], *v[i + 1 :]] for c, v in data.items()}


def grouped(frame, how):
    if how == "ungrouped":
        return frame.dp.plan.agg, {}
    if how == "listed":
        return frame.dp.plan.groupby("g", keys=["x", "y"]).dp_agg, {}
    return frame.dp.plan.groupby("g").dp_agg, {"delta": 1e-6}


def farthest(plan, pairs, reach):
    far = 0
    for one, two in pairs:
        for number, rows in moved(plan, one, two).items():
            far = max(far, sum(steps_of(plan, number, d, 4 * reach) for d in rows))
    return far


@pytest.mark.parametrize("how", ["ungrouped", "listed", "found"])
@pytest.mark.parametrize(("make", "data", "call"), CASES)
def test_every_row_moves_its_draw_by_one_row(make, data, call, how):
    frames = {None: make(data)} | {i: make(without(data, i)) for i in range(8)}
    with dp.Session(eps=10, delta=1e-3):
        ask, more = grouped(frames[None], how)
        plan = ask(**call, eps=1, mechanism="row", **more).plan
    assert draws_of(plan), "no draw is shared"
    assert {plan.pieces[p[0]].noise.joint.scale for p in draws_of(plan).values()} == {1}
    assert farthest(plan, [(frames[None], frames[i]) for i in range(8)], 1) == 1


@pytest.mark.parametrize("how", ["ungrouped", "listed", "found"])
@pytest.mark.parametrize(("make", "data", "call"), CASES)
def test_a_replaced_row_moves_its_draw_by_two(make, data, call, how):
    base = make(data)
    with dp.Session(eps=10, delta=1e-3, neighbors="replace_one"):
        ask, more = grouped(base, how)
        plan = ask(**call, eps=1, mechanism="row", **more).plan
    assert {plan.pieces[p[0]].noise.joint.scale for p in draws_of(plan).values()} == {2}
    others = [NEW, {**NEW, "g": "y"}, {c: v[1] for c, v in data.items()}, {c: v[6] for c, v in data.items()}]
    pairs = [(base, make(changed(data, i, row))) for i in range(8) for row in others]
    pairs += [(base, make(without(data, i))) for i in range(8)]  # filtered away before it was asked
    assert farthest(plan, pairs, 2) <= 2


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize(("rows", "groups"), [(1, 1), (1, 2), (2, 1), (2, 2)])
@pytest.mark.parametrize("call", CALLS | POLARS)
def test_every_unit_moves_its_draw_by_its_rows_and_groups(call, rows, groups, relation):
    call, base = (CALLS | POLARS)[call], pl.DataFrame(NULLABLE)
    options = {"max_groups": groups, "max_rows_per_group": rows}
    with dp.Session(eps=10, delta=1e-3, unit="who", neighbors=relation):
        plan = (
            base.dp.plan.groupby("g", keys=["x", "y"]).dp_agg(**call, eps=1, mechanism="row", **options).plan
        )
    twice = 2 if relation == "replace_one" else 1
    (joint,) = {plan.pieces[p[0]].noise.joint for p in draws_of(plan).values()}
    reach = rows * groups * twice
    assert joint.scale == reach * Fraction(len({p.draw for p in plan.parts if p.draw is not None}))
    pairs = [(base, base.filter(pl.col("who") != u)) for u in range(1, 6)]
    if relation == "replace_one":
        another = pl.when(pl.col("who") == 3).then(pl.lit(None)).otherwise(pl.col("a")).alias("a")
        pairs += [
            (base, base.with_columns(another)),
            (base, base.with_columns(g=pl.when(pl.col("who") == 3).then(pl.lit("y")).otherwise("g"))),
        ]
    assert farthest(plan, pairs, reach) <= reach


# ---- what is drawn ----


def test_all_numbers_of_a_draw_are_drawn_once():
    """Of columns without missing values U + V is K times the rows, noise included, in each of 300 groups."""
    frame = pd.DataFrame({"g": [0], "i": [3], "j": [4]})
    call = {"n": dp.count(), "m": mean("i"), "k": mean("j", 0, 7)}
    with dp.Session(eps=10) as s:
        frame.dp.groupby("g", keys=range(300)).dp_agg(**call, eps=1, mechanism="row")
    noisy, plan = s.last._noisy, s.last.plan
    assert len({p.noise.number for p in plan.pieces}) == 1
    for part in range(2):
        u, v = (x for x, p in zip(noisy, plan.pieces) if p.part == part)
        assert (u + v == plan.parts[part].layout.row * noisy[-1]).all()
    assert len(np.unique(noisy[0])) > 100  # one draw for all groups has one value


@pytest.mark.usefixtures("fixed_draws")
def test_two_draws_of_one_law_are_independent():
    """Two calls' worth of one shape in a plan: no correlation, of a fixed stream of bits (no false alarm)."""
    n = 20_000
    frame = pd.DataFrame({"g": [0], "i": [3], "j": [4]})
    call = {"m": dp.clip_mean("i", bounds=(0, 9), eps=1), "k": dp.clip_mean("j", bounds=(0, 9), eps=1)}
    with dp.Session(eps=10) as s:
        frame.dp.groupby("g", keys=range(1, n + 1)).dp_agg(**call, mechanism="row")
    plan, noisy = s.last.plan, s.last._noisy
    assert [p.noise.number for p in plan.pieces] == [0, 0, 1, 1]
    assert {p.noise.joint for p in plan.pieces} == {plan.pieces[0].noise.joint}
    assert abs(np.corrcoef(noisy[0], noisy[2])[0, 1]) * n**0.5 < 6.8


def test_what_is_read_in_a_second_pass_has_a_draw_of_its_own():
    """A lazy frame may have changed between them: a row in one and not the other would move a shared draw twice."""
    frame = pl.DataFrame(NULLABLE).lazy()
    call = {"m": mean("a"), "k": mean("b"), "h": dp.n_unique("i"), "v": dp.vector_sum(["a", "b"], norm=1)}
    with dp.Session(eps=10):
        plan = frame.dp.plan.agg(**call, eps=1, mechanism="row").plan
    (pieces,) = draws_of(plan).values()
    assert {plan.parts[plan.pieces[i].part].layout.kind for i in pieces} == {"block"}
    assert plan.event.eps == 1
    assert {p.fused for p in plan.parts} == {3}
    (joint,) = {plan.pieces[i].noise.joint for i in pieces}
    assert joint.event.eps == Fraction(1, 3)
    others = [p for i, p in enumerate(plan.pieces) if i not in pieces]
    assert all(not hasattr(p.noise, "joint") for p in others)


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda d: d.clip_sum("a", bounds=(0, 3), eps=1, mechanism="row"), "one plain number"),
        (lambda d: d.count(eps=1, mechanism="row"), "one plain number"),
        (lambda d: d.count("a", eps=1, mechanism="row"), "one plain number"),
        (lambda d: d.clip_mean("a", bounds=(0, 3), n=9, eps=1, mechanism="row"), "one plain number"),
        (lambda d: d.histogram("a", edges=[0, 1], eps=1, mechanism="row"), "counts of bins"),
        (lambda d: d.n_unique("i", eps=1, mechanism="row"), "n_unique"),
        (lambda d: d.vector_mean(["a", "b"], norm=1, eps=1, mechanism="row"), "vectors"),
    ],
)
def test_where_nothing_is_shared_the_name_is_refused_before_the_charge(ask, why):
    with dp.Session(eps=10) as s:
        with pytest.raises(dp.MechanismError, match=why):
            ask(pl.DataFrame(NULLABLE).dp)
        assert s.spent == 0


def test_grids_are_coarsened_where_the_noise_needs_the_room():
    """At eps = 1e-9, B = 1e9 rows: 2**30 steps would leave no room for exact draws."""
    frame = pl.DataFrame(NULLABLE)
    with dp.Session(eps=10):
        plan = frame.dp.plan.agg(
            m=mean("a"), k=mean("b"), s=total("a", -5, 5), eps=1e-9, mechanism="row"
        ).plan
        fine = frame.dp.plan.agg(m=mean("a"), k=mean("b"), s=total("a", -5, 5), eps=1, mechanism="row").plan
        with pytest.raises(dp.MechanismError, match="beyond what can be drawn"):
            frame.dp.plan.agg(m=mean("a"), k=mean("b"), eps=1e-13, mechanism="row")
    steps = [[b.steps for b in p.pieces[0].noise.joint.blocks] for p in (plan, fine)]
    assert all(2**20 <= k < 2**25 for k in steps[0])
    assert all(k > 2**28 for k in steps[1])
    assert len(plan.measures) == len(fine.measures)
    plan.pieces[0].noise.joint.draw(3)


@pytest.mark.parametrize("call", [{"m": mean("a")}, {"s": total("a")}, {"c": dp.count("a")}])
def test_rows_beside_one_block_are_all_rows(call):
    with dp.Session(eps=10**9):
        n = pl.DataFrame(NULLABLE).dp.agg(n=dp.count(), **call, eps=10**7, mechanism="row")["n"].item()
    assert n == 8
