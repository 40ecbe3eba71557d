"""One draw for a row where units are scaled over all of their groups (``max_rows=``): the draw is of row steps, not of rows.

A unit that counts for T rows in all moves J by T rows' steps at most, whatever its rows are and wherever they lie.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import polars as pl
import pytest
from one_draw import draws_of, in_coordinates, mean, moved, steps_of, total
from test_linear_map import norm_squared
from test_one_draw import CALLS, POLARS

import dpframe as dp
from dpframe.frames.contract import ROW_STEPS
from dpframe.mechanisms.choosers import Reach
from dpframe.mechanisms.row import Block
from dpframe.mechanisms.row_gaussian import LinearGaussian, Map, squared_move

pytestmark = pytest.mark.usefixtures("quiet")
GROUPS = ["x", "y", "z"]
LIMITS = [(1, None), (3, None), (5, 2), (4, 3)]
MORE = {
    "all lone": {"n": dp.count(), "s": total("a", 20, 100), "u": total("b", -100, -20), "c": dp.count("i")}
}


def generated(units=7):
    """Units of 1 to 12 rows in listed groups and one that is not, with every kind of cell, cells at bounds among them."""
    rng = np.random.default_rng(5)
    who = np.repeat(np.arange(units), rng.integers(1, 13, units))
    n = len(who)
    cells = {
        "a": [1.5, None, 250.0, 0.0, 50.0, 100.0],
        "b": [float("nan"), 3.0, 100.0, None, -1e300, float("inf"), -50.0],
        "w": [1.0, 0.2, None, 2.0, 5.0, 0.0],
        "i": [3, 0, 6, None, 9, -1],
        "t": [True, False, None],
    }
    picked = {c: [v[i] for i in rng.integers(0, len(v), n)] for c, v in cells.items()}
    groups = [[*GROUPS, "unlisted"][i] for i in rng.integers(0, 4, n)]
    return pl.DataFrame({**picked, "who": who, "g": groups}, strict=False)


def planned(frame, call, limits, relation, **options):
    most, each = limits
    bounds = {"max_rows": most} | ({} if each is None else {"max_rows_per_group": each})
    with dp.Session(eps=10**6, delta=0.01, unit="who", neighbors=relation):
        return frame.dp.plan.groupby("g", keys=GROUPS).dp_agg(**call, **bounds, **options).plan


def others(frame, relation):
    """The frame without each unit; under replace_one with another's rows in its place."""
    for u in frame["who"].unique():
        kept = frame.filter(pl.col("who") != u)
        if relation == "add_remove":
            yield kept
        else:
            another = frame.filter(pl.col("who") == (u + 1) % 7).with_columns(
                who=pl.lit(u, frame["who"].dtype)
            )
            yield pl.concat([kept, another])


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("call", CALLS | POLARS | MORE)
def test_every_unit_moves_its_draw_by_the_steps_of_its_rows(call, limits, relation):
    """Planted: rows rounded up when a unit is shared out; a draw for R rows where T are meant."""
    call, frame = (CALLS | POLARS | MORE)[call], generated()
    plan = planned(frame, call, limits, relation, eps=1, mechanism="row")
    ((number, pieces),) = draws_of(plan).items()
    joint = plan.pieces[pieces[0]].noise.joint
    twice = 2 if relation == "replace_one" else 1
    draws = len({p.draw if p.draw is not None else -i for i, p in enumerate(plan.parts)})
    most = limits[0] * ROW_STEPS * twice
    assert joint.scale == most * draws
    far = 0
    for other in others(frame, relation):
        moves = moved(plan, frame, other)[number]
        if any(in_coordinates(plan, number, d)[0] is None for d in moves):
            assert {k for d in moves for k in [in_coordinates(plan, number, d)[0]]} == {None}
            continue  # the rows are not read: no law is easier to hold
        far = max(far, sum(steps_of(plan, number, d, most) for d in moves))
    assert far <= most
    if "n" in call:
        assert far >= 0.9 * most / twice, "and such units are there"


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_no_unit_moves_the_map_further_than_the_noise_is_for(limits, relation):
    frame = generated()
    call = {"n": dp.count(), "m": mean("a"), "k": mean("i", 0, 6), "s": total("b", -1, 3), "c": dp.count("i")}
    plan = planned(frame, call, limits, relation, rho=1)
    ((number, pieces),) = draws_of(plan).items()
    joint = plan.pieces[pieces[0]].noise.joint
    assert isinstance(joint, LinearGaussian)
    most, each = limits[0], limits[1] or limits[0]
    reach = Reach(relation == "replace_one", True, each, 3, most).in_steps(ROW_STEPS)
    allowed = squared_move(joint.blocks, joint.map, reach)
    assert float(joint.sigma) ** 2 == pytest.approx(float(allowed / 2), rel=1e-6)
    far = max(norm_squared(plan, number, moved(plan, frame, o)[number]) for o in others(frame, relation))
    assert 0 < far <= allowed


@pytest.mark.parametrize("total", range(1, 8))
@pytest.mark.parametrize("each", [1, 2, 3, 7])
@pytest.mark.parametrize(
    "m",
    [
        Map(Fraction(3, 2), Fraction(1), 512),
        Map(Fraction(1, 4), Fraction(7, 2), 256),
        Map(Fraction(3), Fraction(1), 0),
    ],
    ids=["usual", "heavy presence", "heavy rows"],
)
def test_the_square_of_a_replaced_unit_is_that_of_its_worst_rows(total, each, m):
    """By trying all: two units' rows in 4 groups, of every pair of vertices, whole rows. It is reached."""
    blocks = (Block(1), Block(1, missing=True))
    reach = Reach(True, True, min(each, total), 4, total)
    vertices = [(m.lam, v, z, m.beta * (p - m.share)) for v in (1, -1) for z, p in ((1, 1), (-1, 1), (0, 0))]
    sizes = range(reach.each + 1)
    worst = {
        (n, q): max(sum((n * x - q * y) ** 2 for x, y in zip(a, b)) for a, b in product(vertices, repeat=2))
        for n, q in product(sizes, repeat=2)
    }
    shares = [x for x in combinations_with_replacement(sizes, 4) if sum(x) <= total]
    far = max(sum(worst[p] for p in zip(x, y)) for x in shares for z in shares for y in set(permutations(z)))
    allowed = squared_move(blocks, m, reach)
    assert far <= allowed
    if len([n for n in reach.full if n]) * reach.full[0] <= 2:  # so that groups are left to come from
        assert far == allowed


def test_a_household_table_of_means_has_half_the_error_of_equal_parts():
    frame = generated()
    call = {"n": dp.count(), "a": mean("a"), "b": mean("b", -50, 50), "i": mean("i", 0, 6)}
    one, split = (
        planned(frame, call, (9, None), "add_remove", eps=1, **more)
        for more in ({}, {"mechanism": "laplace"})
    )
    assert draws_of(one)
    for o, other in zip(one.outputs[1:], split.outputs[1:]):
        assert o.answer.error(one.laws, 10**5) < other.answer.error(split.laws, 10**5) / 1.6
    assert one.outputs[0].answer.error(one.laws, None) < split.outputs[0].answer.error(split.laws, None)


@pytest.mark.parametrize("kind", ["eager", "lazy"])
def test_answers_are_those_of_the_rows(kind):
    frame = generated()
    call = {
        "n": dp.count(),
        "a": mean("a"),
        "i": mean("i", 0, 6),
        "v": dp.clip_var("i", bounds=(0, 6)),
        "s": total("a"),
    }
    asked = frame if kind == "eager" else frame.lazy()
    with dp.Session(eps=10**9, unit="who"):
        r = asked.dp.groupby("g", keys=GROUPS).dp_agg(**call, max_rows=12, eps=10**7, mechanism="row")
    right = (
        frame.filter(pl.col("g") != "unlisted")
        .group_by("g")
        .agg(
            pl.len().alias("n"),
            pl.col("a").clip(0, 100).mean(),
            pl.col("i").clip(0, 6).mean(),
            pl.col("i").clip(0, 6).var().alias("v"),
            pl.col("a").clip(0, 100).sum().alias("s"),
        )
        .sort("g")
    )
    got = (r.collect() if kind == "lazy" and hasattr(r, "collect") else r).sort("g")
    assert got["n"].to_list() == right["n"].to_list()
    for c in ("a", "i", "v", "s"):
        assert got[c].to_list() == pytest.approx(right[c].to_list(), abs=1e-3)


def test_a_lone_unit_betrays_no_key_of_a_shared_draw():
    """c = min(R, T) rows' steps: what one unit adds to the thresholded number of rows of one key."""
    call = {"n": dp.count(), "a": mean("a"), "i": mean("i", 0, 6)}
    with dp.Session(eps=10, delta=0.1, unit="who"):
        bound = generated().dp.plan.groupby("g", max_groups=3)
        limits = {"max_rows": 4, "max_rows_per_group": 3, "threshold": "rows"}
        plan = bound.dp_agg(**call, eps=1, delta=1e-3, mechanism="row", **limits).plan
    noise = plan.pieces[plan.threshold.coordinates[0]].noise
    assert plan.threshold.unit_steps == ROW_STEPS
    allowed = 1 - (1 - 1e-3) ** (1 / 3)
    assert noise.upper_tail(plan.threshold.least - 3 * ROW_STEPS) <= allowed
    assert noise.upper_tail(plan.threshold.least - 3 * ROW_STEPS - 1) > allowed * (1 - 1e-6)
