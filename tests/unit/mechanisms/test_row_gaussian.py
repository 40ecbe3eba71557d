"""The Gaussian of a whole row: how far a unit moves the map, covariances, what is read of the draws, half-widths.

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

from dpframe.accounting.conversion import analytic_delta
from dpframe.errors import MechanismError
from dpframe.mechanisms import row_gaussian
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.choosers import Reach
from dpframe.mechanisms.joint import Coordinate
from dpframe.mechanisms.row import Block
from dpframe.mechanisms.row_gaussian import Map, calibrate, maps, squared_move

RHO = Target(rho=Fraction(1, 2))  # sigma is Delta2
FINE = 2**20
SHAPES = [
    (Block(FINE),),
    (Block(FINE), Block(1)),
    (Block(FINE, missing=True),),
    (Block(FINE, missing=True), Block(7), Block(1, missing=True)),
]
MAPS = [Map(Fraction(1)), Map(Fraction(3, 2), Fraction(1, 2), 512), Map(Fraction(2), Fraction(2), 1024)]
REACHES = [
    Reach(),
    Reach(rows=3),
    Reach(rows=2, groups=2, several=True),
    Reach(replace=True),
    Reach(replace=True, rows=2),
    Reach(replace=True, several=True),
    Reach(replace=True, rows=2, groups=2, several=True),
]


def vertices(blocks, m):
    """The map of every row whose cells lie at their bounds."""
    kappa = m.kappa / 1024
    each = []
    for b in blocks:
        if b.missing:
            here = float(m.beta) * (1 - kappa)
            each.append([(1.0, here), (-1.0, here), (0.0, -float(m.beta) * kappa)])
        else:
            each.append([(1.0,), (-1.0,)])
    return [np.array([float(m.lam), *itertools.chain(*v)]) for v in itertools.product(*each)]


def moves(blocks, m, reach):
    """How far units can move the map: their rows are equal, or half of one kind and half of another."""
    rows = vertices(blocks, m)
    zero = np.zeros_like(rows[0])
    kinds = [*rows, zero]
    if not reach.replace:
        yield from (math.sqrt(reach.groups) * reach.rows * np.linalg.norm(v) for v in rows)
        return
    stay = max(np.linalg.norm(v - w) for v in kinds for w in kinds if v is not w)
    yield reach.rows * stay * math.sqrt(reach.groups if reach.several else 1)
    if reach.several:
        yield from (reach.rows * math.sqrt(reach.groups * (v @ v + w @ w)) for v in rows for w in rows)


@pytest.mark.parametrize("reach", REACHES, ids=str)
@pytest.mark.parametrize("m", MAPS, ids=str)
@pytest.mark.parametrize("blocks", SHAPES, ids=len)
def test_no_unit_moves_the_map_further_and_some_unit_moves_it_so_far(blocks, m, reach):
    """Planted: a replaced row at sqrt 2 times a row's norm (short where columns are never missing and lam is large, long else)."""
    far = max(moves(blocks, m, reach))
    assert math.sqrt(squared_move(blocks, m, reach)) == pytest.approx(far, rel=1e-12)


def test_a_replaced_row_is_not_sqrt_two_of_an_added_one():
    blocks, m = (Block(FINE),) * 4, Map(Fraction(2))
    added, replaced = (squared_move(blocks, m, r) for r in (Reach(), Reach(replace=True)))
    assert (added, replaced) == (8, 16)
    assert squared_move(blocks, Map(Fraction(8)), Reach(replace=True)) == 68  # filtered before or after
    assert squared_move(blocks, Map(Fraction(1, 8)), Reach(replace=True)) == 16 > 2 * (4 + Fraction(1, 64))


@pytest.mark.parametrize("blocks", SHAPES, ids=len)
@pytest.mark.parametrize("m", MAPS, ids=str)
def test_what_is_released_is_read_from_the_noisy_map_alone(blocks, m, monkeypatch):
    """Exact integers plus a draw are a function of the map's noisy integers, whatever the exact ones are: post-processing.

    Planted: ties to even, which tell whether the exact integer is even.
    """
    monkeypatch.setattr(row_gaussian, "words", lambda size: np.zeros(size, dtype=np.uint64))
    noise = calibrate(blocks, m, RHO)
    rng = np.random.default_rng(1)
    drawn = iter([])
    monkeypatch.setattr(row_gaussian.RoundedGaussian, "sample", lambda self, size: next(drawn))
    for _ in range(50):
        e = rng.integers(-(10**4), 10**4, (1 + 2 * len(blocks), 1))
        n = int(rng.integers(0, 1000))
        exact = [n]
        read = [n + int(e[0, 0])]
        order, i = [e[0]], 1
        for b in blocks:
            here, whole = n, read[0]
            if b.missing:
                here = int(rng.integers(0, n + 1))
                third = 1024 * here - m.kappa * n + int(e[i, 0])
                order.append(e[i])
                i += 1
                exact.append(here)
                whole = (third + m.kappa * read[0] + 511) // 1024
                read.append(whole)
            t = int(rng.integers(0, b.steps * here + 1))
            centred = 2 * t - b.steps * here + int(e[i, 0])
            order.append(e[i])
            i += 1
            exact.append(t)
            read.append((centred + b.steps * whole) // 2)
        drawn = iter(order)
        got = np.array(exact) + noise.draw(1)[:, 0]
        assert got.tolist() == read


@pytest.mark.usefixtures("fixed_draws")
@pytest.mark.parametrize("blocks", SHAPES, ids=len)
@pytest.mark.parametrize("m", MAPS, ids=str)
@pytest.mark.parametrize("rho", ["1/2", "1/200", "8"])
def test_covariances_are_those_of_draws(blocks, m, rho):
    """Planted: the noise of the rows left out of a cell's variance."""
    size = 200_000
    noise = calibrate(blocks, m, Target(rho=Fraction(rho)))
    x = noise.draw(size).astype(float)
    c = noise.covariance
    sd = np.sqrt(np.maximum(np.diag(c), 0.05))
    got = (x @ x.T) / size / np.outer(sd, sd)
    # an average of products of unit noises (tails no heavier than Gaussian ones') has a standard error of sqrt(2/size) at most;
    # roundings of small noises are no noise of their own: 3 % of a variance
    assert np.abs(got - c / np.outer(sd, sd)).max() < 7 * math.sqrt(2.2 / size) + 0.03
    bare = c - np.outer(c[0], c[0]) / c[0, 0]
    assert np.abs(got - bare / np.outer(sd, sd)).max() > 7 * math.sqrt(2.2 / size) + 0.03


def test_counts_of_boolean_columns_are_off_by_half_of_root_c_plus_one():
    for c in (2, 5, 20):
        blocks = (Block(1),) * c
        noise = calibrate(
            blocks, Map(Fraction(round(c**0.25 * 2**20), 2**20)), Target(rho=Fraction(1, 20_000))
        )
        sigma = 100.0
        at = noise.coordinates.index(Coordinate(0, 0))
        assert math.sqrt(noise.covariance[at, at]) / sigma == pytest.approx((math.sqrt(c) + 1) / 2, rel=2e-3)


@pytest.mark.parametrize(("c", "gain"), [(2, 1.1716), (5, 1.382), (20, 1.6345)])
def test_means_at_their_bounds_gain(c, gain):
    noise = calibrate(
        (Block(FINE),) * c, Map(Fraction(round(c**0.25 * 2**20), 2**20)), Target(rho=Fraction(1, 5000))
    )
    at = noise.coordinates.index(Coordinate(0, 0))
    form = np.zeros(len(noise.coordinates))
    form[at], form[0] = 2 / FINE, -2  # 2t/K - 2n: a mean at its upper bound
    now = 50 * 2 * math.sqrt(c)
    assert now / math.sqrt(form @ noise.covariance @ form) == pytest.approx(gain, rel=2e-3)


def test_half_widths_hold_and_are_close():
    noise = calibrate(SHAPES[3], MAPS[1], Target(rho=Fraction(1, 200)))
    size = 400_000
    x = noise.draw(size)
    rng = np.random.default_rng(2)
    scale = np.sqrt(np.diag(noise.covariance))
    for form in [*np.eye(len(scale)), *(rng.normal(size=len(scale)) / scale for _ in range(5))]:
        form = tuple(map(float, form))
        w = noise.halfwidth(form, 0.95)
        inside = np.mean(np.abs(np.array(form) @ x) <= w)
        assert chance.least_share(size, 0.95) <= inside < 0.972
        assert noise.outside(form, w) <= 0.06  # a bound


def test_thresholds_read_the_rows():
    noise = calibrate(SHAPES[0], MAPS[0], RHO)
    k = np.arange(-40, 41)
    upper = np.array([noise._rows.pmf(k)[k >= t].sum() for t in (1, 3, 5)])
    assert [noise.rows_tail(t) for t in (1, 3, 5)] == pytest.approx(upper, rel=0.8)
    assert all(noise.rows_tail(t) >= u for t, u in zip((1, 3, 5), upper))


def test_sigma_has_the_delta_it_was_asked_for():
    noise = calibrate((Block(FINE),) * 3, Map(Fraction(1)), Target(Fraction(1), Fraction(1, 10**6)))
    assert (
        analytic_delta(float(noise.sigma) / 2, 1.0)
        <= 1e-6
        < analytic_delta(float(noise.sigma) / 2 * 0.999, 1.0)
    )
    assert (noise.event.eps, noise.event.delta) == (1, Fraction(1, 10**6))


def test_the_maps_hold_those_that_are_best_by_hand():
    squares = [float(m.lam**2) for m in maps(5, missing=False)]
    assert any(x == pytest.approx(math.sqrt(5), rel=1e-5) for x in squares)
    assert any(x == pytest.approx(5, rel=1e-5) for x in squares)
    assert {m.kappa for m in maps(1, missing=True)} == {0, 512, 768}


def test_refusals_and_identity():
    for blocks, m, target in [
        ((), Map(Fraction(1)), RHO),
        ((Block(FINE, 2),), Map(Fraction(1)), RHO),
        ((Block(FINE),), Map(Fraction(0)), RHO),
        ((Block(FINE),), Map(Fraction(1)), Target(Fraction(1))),
        ((Block(2**30),), Map(Fraction(1)), Target(rho=Fraction(1, 10**20))),
    ]:
        with pytest.raises(MechanismError):
            calibrate(blocks, m, target)
    noise = calibrate(SHAPES[3], MAPS[1], RHO)
    assert pickle.loads(pickle.dumps(noise)) == noise
    assert hash(noise) == hash(calibrate(SHAPES[3], MAPS[1], RHO))
