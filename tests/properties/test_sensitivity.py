"""How far one row moves the released integers: found by trying, and compared with what the plan declares.

No formula is repeated here. Small frames and all their neighbours go through the real pipeline (``no_noise``
shows what reaches the mechanism), and the largest distance that occurs must be at most what the plan
declares, and must reach it: a declaration that is too small breaks privacy, one that is too large wastes
accuracy. Numbers in answer units are those of the mathematics (test points, computed independently).

Draws that cover a whole row are looked at in ``tests/unit/planning/test_one_draw.py``; what is here has a draw for every part.

Rows come from a small alphabet: at either bound, between, beyond, infinite, missing, filtered away
before ``.dp``, and in a listed, another listed or an unlisted group.

``DPFRAME_AUDIT=1`` tries every combination; else every two parameters are tried together.
"""

from __future__ import annotations

import math
from fractions import Fraction

import chance
import numpy as np
import pandas as pd
import polars as pl
import pytest
from one_row import (
    GONE,
    ROOT2,
    alphabet,
    brute_force,
    each_grouping,
    each_relation,
    frame_of,
    observed,
    same,
    two_blocks,
    vectors,
    verbs,
)

import dpframe as dp
from conftest import exact_integers
from dpframe.accounting.events import Event
from dpframe.mechanisms.laplace import DiscreteLaplace

pytestmark = pytest.mark.sweep

BOUNDS = [(-3, 10), (20, 100), (-10, 10), (-50, -10), (0, 1)]

# The table of row units: (question, relation, grouped) -> (L1, L2, Linf) in the answer's unit, from the mathematics.
COUNTS = {
    ("add_remove", False): (1, 1, 1),
    ("replace_one", False): (1, 1, 1),
    ("add_remove", True): (1, 1, 1),
    ("replace_one", True): (2, ROOT2, 1),
}
SUMS = {
    ((-3, 10), "add_remove", False): (10, 10, 10),
    ((-3, 10), "replace_one", False): (13, 13, 13),
    ((-3, 10), "add_remove", True): (10, 10, 10),
    ((-3, 10), "replace_one", True): (20, 14.142136, 13),
    ((20, 100), "add_remove", False): (100, 100, 100),
    ((20, 100), "replace_one", False): (100, 100, 100),
    ((20, 100), "add_remove", True): (100, 100, 100),
    ((20, 100), "replace_one", True): (200, 141.421356, 100),
    ((-10, 10), "add_remove", False): (10, 10, 10),
    ((-10, 10), "replace_one", False): (20, 20, 20),
    ((-10, 10), "add_remove", True): (10, 10, 10),
    ((-10, 10), "replace_one", True): (20, 20, 20),
    ((-50, -10), "add_remove", False): (50, 50, 50),
    ((-50, -10), "replace_one", False): (50, 50, 50),
    ((-50, -10), "add_remove", True): (50, 50, 50),
    ((-50, -10), "replace_one", True): (100, 70.710678, 50),
    ((0, 1), "add_remove", False): (1, 1, 1),
    ((0, 1), "replace_one", False): (1, 1, 1),
    ((0, 1), "add_remove", True): (1, 1, 1),
    ((0, 1), "replace_one", True): (2, ROOT2, 1),
}


@each_relation
@each_grouping
@pytest.mark.parametrize("column", [None, "x"])
def test_counts_move_as_declared(only_integers, kind, relation, grouped, column):
    rows = alphabet(-3.0, 10.0, grouped=grouped)
    plan, (moved,) = brute_force(lambda p: verbs(p, grouped).count(column, eps=1), kind, relation, rows, 2)
    same(moved, COUNTS[relation, grouped])
    same((plan.l1, plan.l2), COUNTS[relation, grouped][:2])


@each_relation
@each_grouping
def test_histograms_move_as_declared(only_integers, kind, relation, grouped):
    """One bin for every row: as counts of disjoint groups, even when there is one group only."""
    rows = alphabet(-3.0, 10.0, grouped=grouped)

    def ask(p):
        return verbs(p, grouped).histogram("x", edges=[-3, 0, 10], eps=1)

    plan, (moved,) = brute_force(ask, kind, relation, rows, 2)
    want = (1, 1, 1) if relation == "add_remove" else (2, ROOT2, 1)
    same(moved, want)
    same((plan.l1, plan.l2), want[:2])


@each_relation
@each_grouping
def test_numbers_of_different_values_move_as_declared(only_integers, kind, relation, grouped):
    rows = alphabet(-3.0, 10.0, grouped=grouped)
    plan, (moved,) = brute_force(lambda p: verbs(p, grouped).n_unique("x", eps=1), kind, relation, rows, 2)
    same(moved, COUNTS[relation, grouped])
    same((plan.l1, plan.l2), COUNTS[relation, grouped][:2])


@each_relation
@each_grouping
def test_a_number_of_values_beside_a_block_has_its_share(only_integers, kind, relation, grouped):
    rows = alphabet(-3.0, 10.0, grouped=grouped)

    def ask(p):
        return verbs(p, grouped).agg(m=dp.clip_mean("x", bounds=(-3, 10)), k=dp.n_unique("x"), eps=1)

    _, (block, number) = brute_force(ask, kind, relation, rows, 2)
    same(block, (1, 1, 1) if relation == "add_remove" else (2, ROOT2, 1))
    same(number, COUNTS[relation, grouped])


@each_relation
@each_grouping
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_sums_move_as_declared(only_integers, kind, relation, grouped, bounds):
    rows = alphabet(*map(float, bounds), grouped=grouped)
    plan, (moved,) = brute_force(
        lambda p: verbs(p, grouped).clip_sum("x", bounds=bounds, eps=1), kind, relation, rows, 2
    )
    same(moved, SUMS[bounds, relation, grouped])
    same((plan.l1, plan.l2), SUMS[bounds, relation, grouped][:2])


@each_relation
@each_grouping
@pytest.mark.parametrize("bounds", [(-3, 10), (20, 100)], ids=str)
def test_means_with_a_public_n_move_by_half_the_span_over_n_or_the_span_over_n(
    only_integers, kind, relation, grouped, bounds
):
    """D/(2n), and D/n when a row becomes another; between groups the old mean and the new one move by D/(2n) each."""
    rows = alphabet(*map(float, bounds), grouped=grouped)
    plan, (moved,) = brute_force(
        lambda p: verbs(p, grouped).clip_mean("x", bounds=bounds, n=100, eps=1), kind, relation, rows, 2
    )
    d = (bounds[1] - bounds[0]) / 100
    want = (d / 2, d / 2, d / 2) if relation == "add_remove" else (d, d, d)
    same(moved, want)
    same((plan.l1, plan.l2), want[:2])


@each_relation
@each_grouping
@pytest.mark.parametrize("bounds", [(-3, 10), (20, 100)], ids=str)
@pytest.mark.parametrize("asked", ["mean", "sum and count", "everything"])
def test_a_block_moves_by_one_row_in_l1_whatever_is_asked_of_it(
    only_integers, kind, relation, grouped, bounds, asked
):
    """L1 = L2 = 1 in rows; L1 = 2 and L2 = sqrt 2 when a row becomes another."""
    questions = {
        "mean": {"m": dp.clip_mean("x", bounds=bounds)},
        "sum and count": {"s": dp.clip_sum("x", bounds=bounds), "n": dp.count()},
        "everything": {
            "n": dp.count(),
            "c": dp.count("x"),
            "s": dp.clip_sum("x", bounds=bounds),
            "m": dp.clip_mean("x", bounds=bounds),
            "p": dp.clip_mean("x", bounds=bounds, n=100),
        },
    }[asked]
    rows = alphabet(*map(float, bounds), grouped=grouped)
    split = {"eps": 1, "mechanism": "laplace"}
    plan, moved = brute_force(lambda p: verbs(p, grouped).agg(**questions, **split), kind, relation, rows, 2)
    assert len(moved) == 1, "one column and its bounds are one part"
    same(moved[0], (1, 1, 1) if relation == "add_remove" else (2, ROOT2, 1))
    part = plan.parts[0]
    assert part.l1 == plan.parts[0].layout.grid.count * (1 if relation == "add_remove" else 2)


def test_every_row_adds_exactly_k_to_the_block(only_integers, kind):
    """The simplex: whatever a row holds, U + V + W grows by K, and each of them by at least 0."""
    rows = [x for x in alphabet(-3.0, 10.0, grouped=False) if x is not GONE]
    rows += [(v, 1.0, "a", True) for v in (math.nan, 1e300, -1e300, 5e-324, 1 / 3, 2.0**-27, 9.999999)]
    with dp.Session(eps=10**6):
        for row in rows:
            bound = frame_of(kind, [row]).dp.plan.agg(
                n=dp.count(), m=dp.clip_mean("x", bounds=(-3, 10)), eps=1, mechanism="laplace"
            )
            cells = [x for (x,) in exact_integers(bound)]
            assert len(cells) == 3
            assert sum(cells) == bound.plan.parts[0].layout.grid.count
            assert min(cells) >= 0


@each_relation
@each_grouping
def test_counts_of_rows_and_of_cells_together_are_two_cells_of_one_part(
    only_integers, kind, relation, grouped
):
    rows = alphabet(-3.0, 10.0, grouped=grouped)
    _, (moved,) = brute_force(
        lambda p: verbs(p, grouped).agg(n=dp.count(), c=dp.count("x"), eps=1), kind, relation, rows, 2
    )
    same(moved, (1, 1, 1) if relation == "add_remove" else (2, ROOT2, 1))


@each_relation
@each_grouping
def test_two_blocks_of_different_columns_each_move_in_full(only_integers, kind, relation, grouped):
    """c blocks: L1 = c, L2 = sqrt c times the block's; a row reaches the limit of both at once."""
    rows = alphabet(-3.0, 10.0, grouped=grouped, second=True)
    if grouped:  # the corners are enough: extremes, missing, another group, unlisted, filtered
        rows = [r for r in rows if r[0] != 0.0 and (r[2] == "a" or r[0] == r[1])]

    def ask(p):
        return two_blocks(p, grouped)

    most = 1 if grouped else 2
    plan, moved = brute_force(ask, kind, relation, rows, most)
    assert len(moved) == 2
    for m in moved:
        same(m, (1, 1, 1) if relation == "add_remove" else (2, ROOT2, 1))
    for piece in plan.pieces:
        assert piece.noise.scale == 2 * plan.parts[piece.part].l1


@each_relation
@each_grouping
def test_a_block_and_a_plain_sum_in_one_call(only_integers, kind, relation, grouped):
    rows = alphabet(20.0, 100.0, grouped=grouped, second=True)
    if grouped:
        rows = [r for r in rows if r[0] != 0.0 and (r[2] == "a" or r[0] == r[1])]

    def ask(p):
        return verbs(p, grouped).agg(
            a=dp.clip_mean("x", bounds=(20, 100)),
            b=dp.clip_sum("y", bounds=(20, 100)),
            eps=1,
            mechanism="laplace",
        )

    plan, (block, total) = brute_force(ask, kind, relation, rows, 1 if grouped else 2)
    same(block, (1, 1, 1) if relation == "add_remove" else (2, ROOT2, 1))
    same(total, SUMS[(20, 100), relation, grouped])
    same(plan.l1["b"], SUMS[(20, 100), relation, grouped][0])


@each_relation
def test_an_epsilon_of_its_own_buys_noise_for_the_full_sensitivity(only_integers, relation):
    """Unfused aggregates add: each part's noise is for its own sensitivity at its own eps."""
    frame = frame_of("polars", [(1.0, 2.0, "a", True)])
    with dp.Session(eps=100, neighbors=relation):
        plan = frame.dp.plan.agg(
            n=dp.count(), s=dp.clip_sum("x", bounds=(-3, 10)), eps={"n": 0.25, "s": 0.5}
        ).plan
    assert plan.cost.eps == Fraction(3, 4)
    assert len(plan.parts) == 2
    for piece in plan.pieces:
        part = plan.parts[piece.part]
        eps = Fraction(1, 4) if piece.measure < 0 else Fraction(1, 2)
        assert piece.noise.scale == part.l1 / eps
    same((plan.l1["n"], plan.l1["s"]), (1, 10 if relation == "add_remove" else 13))


@each_relation
@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int64, pl.UInt8, pl.Boolean, pl.Decimal(38, 2), pl.Float32])
def test_every_dtype_declares_the_same_sensitivity(quiet, relation, dtype):
    frame = pl.DataFrame({"x": pl.Series([], dtype=dtype)})
    bounds = (0, 1) if dtype == pl.Boolean else (20, 100)
    with dp.Session(eps=1, neighbors=relation):
        plan = frame.dp.plan.clip_sum("x", bounds=bounds, eps=1)
        assert plan.l1 == plan.l2 == bounds[1]
        assert frame.dp.plan.count("x", eps=1).l1 == 1
        assert frame.dp.plan.clip_mean("x", bounds=bounds, n=100, eps=1).l1 == pytest.approx(
            (bounds[1] - bounds[0]) / (200 if relation == "add_remove" else 100)
        )


def test_sensitivity_of_counts_in_four_cells():
    """Replace_one: (2, 1.414214, 1)."""
    frame = pl.DataFrame({"g": ["a"]})
    with dp.Session(eps=1, neighbors="replace_one"):
        plan = frame.dp.plan.groupby("g", keys=["a", "b", "c", "d"]).count(eps=1)
    same((plan.l1, plan.l2), (2, 1.414214))


@each_relation
@pytest.mark.parametrize(
    "bounds", [(0.49, 0.51), (Fraction(1, 3), 2), (0.1, 0.7), (-1e-9, 7e-9), (-0.1, 1e6 / 7)]
)
def test_bounds_off_the_grid_are_moved_outward_and_never_undercounted(only_integers, relation, bounds):
    """Sensitivities in steps come from the rounded bounds; ((.49, .51) at step 1 would be 1 step)."""
    low, high = (Fraction(b) for b in bounds)
    far = max(abs(low), abs(high))
    apart = max(high, 0) - min(low, 0)
    rows = alphabet(float(low), float(high), grouped=False)
    with dp.Session(eps=10**9, neighbors=relation):
        for ask in (
            lambda p: p.clip_sum("x", bounds=bounds, eps=1),
            lambda p: p.clip_mean("x", bounds=bounds, eps=1),
            lambda p: p.clip_mean("x", bounds=bounds, n=3, eps=1),
        ):
            found, plan = vectors(ask, "polars", rows, 1)
            ((l1, l2_squared, _),), _ = observed(relation, found, plan.parts, rows, 1)
            part = plan.parts[0]
            assert l1 <= part.l1
            assert l2_squared <= part.l2_squared
            # Not reached exactly only because typed bounds lie inside the moved ones, by less than a step each.
            assert l1 >= part.l1 - 4
        plan = ask(frame_of("polars", []).dp.plan).plan
        declared = frame_of("polars", []).dp.plan.clip_sum("x", bounds=bounds, eps=1).l1
        assert (far if relation == "add_remove" else apart) <= Fraction(declared)
        assert declared <= float(apart) * (1 + 2**-27)


@pytest.mark.parametrize("bounds", [(0, 0), (5, 5), (-2.5, -2.5)])
def test_a_question_that_nothing_can_move_is_refused(quiet, bounds):
    """Case 14: sensitivity 0 would mean no noise."""
    frame = pl.DataFrame({"x": [1.0]})
    with dp.Session(eps=1) as s:
        for call in (
            lambda: frame.dp.clip_sum("x", bounds=bounds, eps=1),
            lambda: frame.dp.agg(n=dp.count(), s=dp.clip_sum("x", bounds=bounds), eps=1),
            lambda: frame.dp.clip_sum("x", B=0, eps=1),
        ):
            with pytest.raises(dp.InputError):
                call()
        assert s.report().height == 0


def test_moving_a_row_leaves_all_other_groups_alone(only_integers, kind):
    rows = [(1.0, 1.0, g, True) for g in ("a", "b", "a", "unlisted")]
    moved = [(9.0, 1.0, "b", True), *rows[1:]]
    with dp.Session(eps=100):
        got = [
            exact_integers(
                frame_of(kind, r).dp.plan.groupby("g", keys=["c", "a", "b", "d"]).clip_sum("x", B=10, eps=1)
            )
            for r in (rows, moved)
        ]
    assert got[0][0][0] == got[1][0][0] == got[0][0][3] == got[1][0][3] == 0
    assert got[0][0][1] != got[1][0][1]
    assert got[0][0][2] != got[1][0][2]


# ---- Scenario H1: replace-one at the seams ----


@pytest.fixture(params=["pandas", "polars"])
def seams(request):
    """Half of x is missing, and a flag that alternates: the frame and its filtered part."""
    x, flag = [None] * 50 + [60.0] * 50, [i % 2 == 0 for i in range(100)]
    key = list(range(100))
    if request.param == "pandas":
        df = pd.DataFrame({"x": x, "flag": flag, "k": key})
        return df, df[df.flag]
    df = pl.DataFrame({"x": x, "flag": flag, "k": key})
    return df, df.filter(pl.col("flag"))


def test_h1_declared_sensitivities_at_the_seams(seams):
    for frame in seams:
        with dp.Session(eps=10**6, neighbors="replace_one"):
            plan, grouped = frame.dp.plan, frame.dp.plan.groupby("k", keys=range(6000))
            asked = [p.count(eps=1).l1 for p in (plan, grouped)]
            assert asked == [1, 2]
            asked = [p.count("x", eps=1).l1 for p in (plan, grouped)]
            assert asked == [1, 2]
            asked = [p.clip_sum("x", bounds=(20, 100), eps=1).l1 for p in (plan, grouped)]
            assert asked == [100, 200]
            assert plan.clip_mean("x", bounds=(20, 100), n=100, eps=1).l1 == pytest.approx(0.8)


def test_h1_six_thousand_groups_carry_the_noise_of_the_doubled_sensitivity(seams, quiet):
    """E|noise| = b of the Laplace law in answer units: 2, 2 and 200 at eps 1.

    Of 6,000 groups the 5,900 that do not occur are compared (false alarm: 1e-10 a comparison, of six). Noise of half
    the sensitivity is outside; planted: a replaced row moves one group, not two.
    """
    expected = {}
    for b in (1, 2, 200):
        k, p = chance.law(DiscreteLaplace(Fraction(b), Event(Fraction(1, b), Fraction(0), Fraction(1))))
        expected[b] = chance.likely_mean(abs(k), p, 5_900)
    assert expected[1][1] < expected[2][0]
    for frame in seams:
        with dp.Session(eps=10**6, neighbors="replace_one"):
            groups = frame.dp.groupby("k", keys=range(6000))
            n = np.abs(np.asarray(groups.count(eps=1)["count"])[100:])
            c = np.abs(np.asarray(groups.count("x", eps=1)["x_count"])[100:])
            s = np.abs(np.asarray(groups.clip_sum("x", bounds=(20, 100), eps=1)["x_sum"])[100:])
        for noise, b in ((n, 2), (c, 2), (s, 200)):
            assert expected[b][0] < noise.mean() < expected[b][1]


def test_h1_a_count_is_noisy_under_replace_one(seams, quiet):
    """50 equal draws have probability at most (tanh(1/2))**49 < 1e-16."""
    for frame in seams:
        with dp.Session(eps=10**6, neighbors="replace_one"):
            assert len({int(frame.dp.count(eps=1)) for _ in range(50)}) >= 2


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_h1_a_mean_with_public_n_moves_by_at_most_half_its_sensitivity_when_a_row_turns_missing(
    library, quiet
):
    """From 100 to missing is the distance from the midpoint over n: .4; noise at eps 1e6 is below 1e-4."""
    means = []
    for last in (100.0, None):
        x = [None] * 50 + [60.0] * 49 + [last]
        frame = pd.DataFrame({"x": x}) if library == "pandas" else pl.DataFrame({"x": x})
        with dp.Session(eps=10**6, neighbors="replace_one"):
            means.append(frame.dp.clip_mean("x", bounds=(20, 100), n=100, eps=10**6))
    assert abs(means[0] - means[1]) <= 0.4 + 1e-4
    assert abs(means[0] - means[1]) == pytest.approx(0.4, abs=1e-4)
