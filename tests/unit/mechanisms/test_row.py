"""The row law as a mechanism: scale, cost, figures, intervals, thresholds.

Shares of draws fail by chance at most once in 10**10 comparisons (binomial); spreads are those of a fixed stream.
"""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction

import chance
import numpy as np
import pytest
from row_law import gauge, law

import dpframe as dp
from dpframe.accounting.conversion import pure_rho
from dpframe.accounting.events import compose
from dpframe.mechanisms import row_figures, row_widths
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.choosers import Reach
from dpframe.mechanisms.joint import Coordinate, Share
from dpframe.mechanisms.row import Block, RowNoise, best_ratio, calibrate, finest
from dpframe.mechanisms.thresholds import least_threshold
from dpframe.noise.row_shape import Cells

FINE = 2**20
ROWS = Coordinate()


def made(blocks, eps="1", ratio=None, **reach) -> RowNoise:
    return calibrate(tuple(blocks), Target(Fraction(eps)), Reach(**reach) if reach else None, ratio=ratio)


def mean(noise, block, share):
    """x - share * K * rows, rows what the block's mean divides by."""
    one = noise.blocks[block]
    rows = Coordinate(block) if one.missing else ROWS
    return noise.form({Coordinate(block, 0): 1, rows: -share * one.steps})


def at(noise, coordinate):
    return noise.form({coordinate: 1})


# ---- privacy ----


@pytest.mark.parametrize(
    ("reach", "rows"),
    [
        ({}, 1),
        ({"rows": 3}, 3),
        ({"groups": 4, "several": True}, 4),
        ({"rows": 3, "groups": 4}, 12),
        ({"replace": True}, 2),
        ({"replace": True, "rows": 3, "groups": 4, "several": True}, 24),
    ],
    ids=str,
)
@pytest.mark.parametrize("eps", ["0.3", "1", "7"])
def test_the_scale_is_the_rational_that_the_unit_needs(reach, rows, eps):
    noise = made([Block(FINE), Block(1, 2)], eps, **reach)
    assert noise.scale == rows / Fraction(eps)
    assert (noise.event.eps, noise.event.delta, noise.event.kind) == (Fraction(eps), 0, "pure")
    assert noise.event.rho == pure_rho(Fraction(eps))


def test_delta_is_left_alone_and_rho_is_turned_into_eps():
    noise = calibrate((Block(FINE),), Target(Fraction(1), Fraction(1, 10**6)))
    assert noise.event.delta == 0
    by_rho = calibrate((Block(FINE),), Target(rho=Fraction(1, 10)))
    assert by_rho.event.rho == Fraction(1, 10)
    assert pure_rho(1 / by_rho.scale) <= Fraction(1, 10)
    parts = compose(tuple(made([Block(FINE)], "0.2").event for _ in range(5)))
    assert float(parts.rho) == pytest.approx(math.tanh(0.1), rel=1e-12)  # eps tanh(eps/2p)


@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.5, 0.9])
def test_the_slack_does_not_bear_on_the_cost(ratio):
    noise = made([Block(10), Block(1, 3)], ratio=ratio)
    assert [b.slack for b in noise.blocks] == [int(10 * ratio), 0]
    assert (noise.scale, noise.event) == (1, made([Block(10), Block(1, 3)]).event)


UNITS = [
    (Block(2), Block(3, 1, True)),
    (Block(2, 2), Block(1)),
    (Block(2, 1, True), Block(1, 1, True)),
]


def added(block, rows):
    """Every (cells, present rows) that a unit of so many rows can add to a block."""
    here = range(rows + 1) if block.missing else (rows,)
    for c in here:
        for y in itertools.product(range(c * block.steps + 1), repeat=block.cells):
            if sum(y) <= c * block.steps:
                yield y, c if block.missing else 0


@pytest.mark.parametrize("blocks", UNITS, ids=range(3))
@pytest.mark.parametrize("rows", [1, 2])
def test_a_unit_moves_the_gauge_by_its_rows_at_most(blocks, rows):
    """What a unit of 0 ... R rows can add (scaled ones included) to noise with J up to 2; 200 by 400 of them."""
    held = made(blocks, ratio=0.5).blocks
    rng = np.random.default_rng(11)

    def some(of, most):
        of = list(of)
        return of if len(of) <= most else [of[i] for i in rng.choice(len(of), most, replace=False)]

    moved = set()
    every = some(law(held, 1, 3), 400)
    for n in range(rows + 1):
        for change in some(itertools.product(*(added(b, n) for b in blocks)), 200):
            for k, noise in every:
                after = tuple(
                    (tuple(v + w for v, w in zip(x, y)), at + c) for (x, at), (y, c) in zip(noise, change)
                )
                moved.add(gauge(held, k + n, after) - gauge(held, k, noise))
    assert min(moved) == -rows
    assert max(moved) == rows


@pytest.mark.parametrize("blocks", UNITS, ids=range(3))
def test_the_probability_ratio_of_neighbours_is_within_eps(blocks):
    """By the definition of the law at the very B that is calibrated: log-ratios of one row are at most eps."""
    eps = Fraction(3, 2)
    noise = made(blocks, eps, ratio=0.5)
    p = law(noise.blocks, noise.scale, 4)
    worst = 0.0
    for change in itertools.product(*(added(b, 1) for b in blocks)):
        for (k, x), one in p.items():
            after = tuple((tuple(v + w for v, w in zip(c, y)), at + d) for (c, at), (y, d) in zip(x, change))
            other = p.get((k + 1, after))
            if other is not None:
                worst = max(worst, abs(math.log(one / other)))
    assert 1.49 < worst <= 1.5 + 1e-12


# ---- figures ----

# blocks, sd of rows, RMSE in the middle, half-widths at 95 % at shares 1/2, .8, .975, 1; times 1/eps, at r = K/2
TABLE = [
    (True, 1, 2.452, 1.000, (2.056, 2.448, 2.921, 2.996)),
    (True, 2, 3.365, 1.452, (2.91, 3.46, 4.11, 4.21)),
    (True, 3, 4.185, 1.905, (3.74, 4.43, 5.24, 5.36)),
    (True, 5, 5.563, 2.815, (5.40, 6.33, 7.41, 7.58)),
    (True, 10, 8.028, 5.095, (9.48, 10.84, 12.46, 12.72)),
    (False, 2, 2.577, 1.291, (2.599, 3.116, 3.724, 3.820)),
    (False, 3, 3.166, 1.581, (3.121, 3.770, 4.512, 4.627)),
    (False, 5, 4.32, 2.160, (4.134, 5.043, 6.045, 6.199)),
    (False, 10, 7.208, 3.606, (6.629, 8.235, 9.887, 10.14)),
]


@pytest.mark.parametrize(("missing", "n", "rows", "middle", "halves"), TABLE)
@pytest.mark.parametrize("eps", ["0.01", "0.25"])
def test_figures_are_those_of_the_tables(missing, n, rows, middle, halves, eps):
    """Within 2 % of what quadrature of the limit gives (another computation)."""
    noise = made([Block(FINE, 1, missing)] * n, eps)
    e = float(Fraction(eps))
    assert noise.std(at(noise, ROWS)) * e == pytest.approx(rows, rel=0.02)
    assert row_widths.mean_errors(noise.blocks, noise.scale, 0)[0] * e == pytest.approx(middle, rel=0.02)
    for mu, half in zip((0, 0.6, 0.95, 1), halves):
        found = noise.halfwidth(mean(noise, 0, (1 + mu) / 2), 0.95) / FINE * e
        assert found == pytest.approx(half, rel=0.02)
        assert found >= half * 0.99


@pytest.mark.parametrize(
    ("blocks", "eps", "ratio", "middle", "end"),
    [
        ([Block(FINE)], 1, 0.417, 0.979, 1.385),
        ([Block(FINE)], 3, 0.260, 0.2763, 0.3907),
        ([Block(FINE)], 5, 0.1445, 0.1219, 0.1724),
        ([Block(FINE)], 8, 0.0548, 0.0411, 0.0581),
        ([Block(FINE)], 10, 0.0283, 0.0206, 0.0291),
        ([Block(FINE, 1, True)] * 2, 1, 0.533, 1.461, 2.003),
        ([Block(FINE, 1, True)] * 2, 3, 0.407, 0.453, 0.607),
        ([Block(FINE, 1, True)] * 2, 5, 0.260, 0.218, 0.289),
        ([Block(FINE, 1, True)] * 2, 8, 0.127, 0.0883, 0.1125),
        ([Block(FINE, 1, True)] * 2, 10, 0.074, 0.0499, 0.0634),
    ],
)
def test_figures_at_large_eps(blocks, eps, ratio, middle, end):
    noise = made(blocks, eps)
    assert noise.blocks[0].slack / FINE == pytest.approx(ratio, rel=0.07)
    assert row_widths.mean_errors(noise.blocks, noise.scale, 0) == pytest.approx((middle, end), rel=0.02)
    assert best_ratio(tuple(Cells(b.cells, b.steps, 0, b.missing) for b in blocks), Fraction(1, eps)) < 0.6


SHAPES = {
    "means": [Block(FINE)] * 3,
    "nullable": [Block(FINE, 1, True)] * 2,
    "mixed": [Block(FINE, 2, True), Block(1, 1, True), Block(64)],
    "table": [Block(1, 5), Block(FINE)],
    "cells": [Block(2**30, 3)],
}


@pytest.mark.usefixtures("fixed_draws")
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("eps", ["0.02", "1", "4"])
def test_covariances_are_those_of_the_draws(shape, eps):
    noise, n = made(shape, eps), 60_000
    scales = np.sqrt(np.diag(noise.covariance))
    z = noise.draw(n) / scales[:, None]
    assert z.shape == (len(noise.coordinates), n)
    for i, j in itertools.combinations_with_replacement(range(len(z)), 2):
        product = z[i] * z[j]
        error = product.std() / math.sqrt(n) + 1e-9
        assert abs(product.mean() - noise.covariance[i, j] / scales[i] / scales[j]) < 7 * error
    assert np.all(np.abs(z.mean(axis=1)) < 7 / math.sqrt(n))
    assert noise.std(at(noise, Coordinate(0, 0))) == pytest.approx(
        scales[noise.coordinates.index(Coordinate(0, 0))]
    )


@pytest.mark.parametrize(
    ("shape", "block"), [("means", 1), ("nullable", 0), ("mixed", 2), ("table", 1)], ids=str
)
@pytest.mark.parametrize("share", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("eps", ["0.02", "1", "6"])
def test_half_widths_hold_and_are_not_too_wide(shape, block, share, eps):
    noise, n, level = made(SHAPES[shape], eps), 60_000, 0.95
    form = mean(noise, block, share)
    off = np.abs(np.array(form) @ noise.draw(n))
    covered = float(np.mean(off <= noise.halfwidth(form, level) * (1 + 1e-12)))
    assert covered >= chance.least_share(n, level)
    assert covered <= level + 0.02


def halfwidth_by_pairs(noise, share, level):
    """Without the scaling of a large B."""
    kept = row_widths._largest
    row_widths._largest = lambda _: noise.scale
    try:
        return row_widths._halfwidth.__wrapped__(noise.blocks, noise.scale, share, level)
    finally:
        row_widths._largest = kept


def test_beyond_eight_rows_the_law_is_the_scaled_one():
    for shape, share in itertools.product((SHAPES["means"], SHAPES["nullable"]), (0.5, 1.0)):
        noise = made(shape, "0.0625")
        exact = halfwidth_by_pairs(noise, share, 0.95)
        assert exact - 1 <= noise.halfwidth(mean(noise, 0, share), 0.95) <= 1.02 * exact


# ---- the number of rows ----


def pairs(noise, last):
    """P(k) by summing over pairs, in floats."""
    found = {}
    for a, b in itertools.product(range(last), repeat=2):
        w = math.exp(-(a + b) / float(noise.scale))
        for block in noise.blocks:
            w *= block.ways(a, b)
        found[a - b] = found.get(a - b, 0.0) + w
    total = sum(found.values())
    return {k: p / total for k, p in found.items()}


@pytest.mark.parametrize(
    "shape", [[Block(7)], [Block(7, 1, True)] * 2, [Block(1, 3), Block(5, 2, True)]], ids=str
)
@pytest.mark.parametrize("eps", ["0.8", "3"])
def test_the_tail_of_the_rows_is_never_below_the_truth(shape, eps):
    noise = made(shape, eps)
    p = pairs(noise, 110)
    for least in (-5, -1, 0, 1, 2, 5, 17, 30):
        true = sum(x for k, x in p.items() if k >= least)
        found = noise.rows_tail(least)
        assert true * (1 - 1e-9) <= found <= true * (1 + 1e-6)
    for delta in (1e-2, 1e-6, 1e-9):
        rows = Share(noise, 0, at(noise, ROWS), 1)
        t = least_threshold(rows, 1, 1, delta)
        assert noise.rows_tail(t - 1) <= delta < noise.rows_tail(t - 2)
        assert least_threshold(rows, 1, 3, delta) == t + 2


@pytest.mark.parametrize(("n", "least"), [(2, 21.3), (5, 29.6), (10, 40.9)])
def test_thresholds_are_near_those_of_the_limit(n, least):
    noise = made([Block(FINE, 1, True)] * n)
    assert least - 1 <= least_threshold(Share(noise, 0, at(noise, ROWS), 1), 1, 1, 1e-6) <= least + 2


HALF_N = [([Block(FINE)], 4.113), ([Block(FINE)] * 5, 8.28), ([Block(FINE, 1, True)] * 2, 6.698)]


@pytest.mark.parametrize(("blocks", "half"), HALF_N, ids=str)
def test_the_rows_interval_is_that_of_the_limit(blocks, half):
    noise = made(blocks, "0.01")
    assert noise.halfwidth(at(noise, ROWS), 0.95) * 0.01 == pytest.approx(half, rel=0.02)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("eps", ["0.02", "1", "4"])
def test_intervals_of_cells_and_rows_hold_and_are_the_least(shape, eps):
    noise, n, level = made(shape, eps), 60_000, 0.9
    drawn = np.abs(noise.draw(n))
    for x, c in zip(drawn, noise.coordinates):
        w = noise.halfwidth(at(noise, c), level)
        assert np.mean(x <= w) >= chance.least_share(n, level)
        assert w == 0 or np.mean(x <= w - 1) <= chance.most_share(n, level)


@pytest.mark.parametrize("missing", [False, True])
def test_the_tail_of_a_cell_is_that_of_the_definition(missing):
    """Of a draw with few values nearly all of which are listed."""
    noise = made([Block(2, 1, missing), Block(1, 2)], "4", ratio=0.5)
    p = law(noise.blocks, noise.scale, 7)
    for block in (0, 1):
        for least in (1, 2, 3, 4):
            true = sum(x for (_, cells), x in p.items() if cells[block][0][0] >= least)
            found = row_figures.cell_tail(noise.blocks, noise.scale, block, least)
            assert true * (1 - 1e-9) <= found <= true * (1 + 1e-2) + 1e-7
    for least in (1, 2, 3) if missing else ():
        true = sum(x for (_, cells), x in p.items() if cells[0][1] >= least)
        found = row_figures.present_tail(noise.blocks, noise.scale, 0, least)
        assert true * (1 - 1e-9) <= found <= true * (1 + 1e-2) + 1e-7


def test_a_weighted_sum_of_one_draw_has_its_covariances():
    """x/K - share * rows, by the covariance matrix and by summing over pairs."""
    noise = made([Block(FINE)] * 3)
    by_pairs = row_widths.mean_errors(noise.blocks, noise.scale, 1)
    for share, rmse in zip((0.5, 1.0), by_pairs):
        assert noise.std(mean(noise, 1, share)) / FINE == pytest.approx(rmse, rel=1e-5)


# ---- what is taken ----


def test_refusals():
    one = Target(Fraction(1))
    for blocks, target, words in (
        ((), one, "at least one"),
        ((Block(0),), one, "at least one"),
        ((Block(4, 0),), one, "at least one"),
        ((Block(4),), Target(), "eps or rho"),
        ((Block(1, 200), Block(1, 57)), one, "256 cells"),
        ((Block(2**55),), one, r"2|exactly"),
        ((Block(4),), Target(Fraction(1, 10**30)), "exactly"),
    ):
        with pytest.raises(dp.MechanismError, match=words):
            calibrate(blocks, target)
    with pytest.raises(dp.MechanismError, match="0 rows"):
        calibrate((Block(4),), one, Reach(rows=0))


def test_the_finest_grid_is_drawn_and_one_step_more_is_not():
    target = Target(Fraction(1, 10**6))
    most = finest((Block(1), Block(1, 1, True)), target)
    assert most > 2**30
    calibrate((Block(most), Block(most, 1, True)), target).draw(100)
    with pytest.raises(dp.MechanismError, match="exactly"):
        calibrate((Block(most + 1), Block(1, 1, True)), target)


@pytest.mark.parametrize("eps", ["0.001", "50", "1000", "1000000"])
def test_extreme_eps(eps):
    noise = made([Block(2**25, 1, True), Block(1, 2)], eps)
    assert noise.draw(1_000).shape == (5, 1_000)
    assert noise.scale >= 1 / Fraction(eps)
    assert noise.std(at(noise, ROWS)) >= 0


def test_noise_is_a_value():
    a, b = made([Block(FINE), Block(1, 2)]), made([Block(FINE), Block(1, 2)])
    assert a == b
    assert hash(a) == hash(b)
    assert pickle.loads(pickle.dumps(a)) == a
    assert "FINE" not in repr(a)
    assert not np.array_equal(a.draw(200), a.draw(200))
