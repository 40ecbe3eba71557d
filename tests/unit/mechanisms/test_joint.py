"""Noise that is drawn together: half-widths of its forms hold, sums of its shares are one form, shares are noises.

Tests on draws are wrong by chance below 1e-9: binomial bounds at 1e-13 a comparison (some thousands), or a fixed stream
of bits where there is no exact tail.
"""

from __future__ import annotations

import math
import pickle

import chance
import numpy as np
import pytest
from calibrated import laplace
from joint_tools import FINE, ROWS, cells, drawn, row_noise, share

import dpframe as dp
from dpframe.mechanisms.combine import covariances, halfwidth, noise_factor, std, summed, width_factor
from dpframe.mechanisms.joint import Coordinate, Share
from dpframe.mechanisms.row import Block
from dpframe.mechanisms.thresholds import least_threshold

pytestmark = pytest.mark.usefixtures("quiet")
ALARM = 1e-13
SHAPES = {
    "means": [Block(FINE)] * 5,
    "nullable": [Block(FINE, 1, True)] * 3,
    "mixed": [Block(FINE, 2, True), Block(1, 1, True), Block(64)],
    "pair": [Block(FINE, 3, True)],
    "spread": [Block(FINE, 2)],
    "Booleans": [Block(1, 1, True)] * 4,
    "table": [Block(1, 5), Block(FINE)],
}


def some_forms(noise, many):
    """Weights of every coordinate's own size: normal ones, signs, and half of them none."""
    rng = np.random.default_rng(7)
    sds = np.sqrt(np.diag(noise.covariance))
    for i in range(many):
        w = rng.normal(size=len(sds))
        w = np.sign(w) if i % 3 == 1 else np.where(rng.random(len(sds)) < 0.5, w, 0) if i % 3 == 2 else w
        if w.any():
            yield tuple(w / sds)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("eps", ["0.1", "1", "1.01", "2", "3", "10"])
def test_the_bound_of_any_form_holds(shape, eps):
    noise, n = row_noise(shape, eps), 60_000
    draws = noise.draw(n)
    for level in (0.5, 0.9, 0.95, 0.99):
        f = noise.factor(level)
        for form in some_forms(noise, 24):
            inside = np.abs(np.array(form) @ draws) <= f * noise.std(form) * (1 + 1e-9)
            assert np.mean(inside) >= chance.least_share(n, level, ALARM)


@pytest.mark.parametrize("eps", ["0.1", "1", "3"])
def test_the_bound_is_no_more_than_half_again_that_of_a_laplace_law(eps):
    for shape in SHAPES.values():
        assert 1.96 < row_noise(shape, eps).factor(0.95) < 1.5 * -math.log(0.05) / math.sqrt(2)


@pytest.mark.usefixtures("fixed_draws")
@pytest.mark.parametrize("eps", ["0.1", "1", "5"])
def test_half_widths_of_known_forms_are_exact(eps):
    noise, n, level = row_noise(SHAPES["mixed"], eps), 60_000, 0.95
    draws = noise.draw(n)
    forms = [
        {ROWS: -2.5},
        {Coordinate(1): 1},
        {Coordinate(0, 1): 3},
        {Coordinate(0): FINE, Coordinate(0, 0): -1, Coordinate(0, 1): -1},  # the cell that is dropped
        {Coordinate(1, 0): 1, Coordinate(1): -0.3},
        {Coordinate(2, 0): -0.5, ROWS: 0.5 * 0.7 * 64},
    ]
    for weights in forms:
        form = noise.form(weights)
        assert noise.known(form)
        off = np.abs(np.array(form) @ draws)
        w = noise.halfwidth(form, level)
        assert np.mean(off <= w * (1 + 1e-9)) >= chance.least_share(n, level, ALARM)
        assert w <= 1.02 * np.quantile(off, level + 0.01) + np.abs(form).max()
        assert np.allclose(noise.outside(form, np.array([-1.0])), 1)
        beyond = noise.outside(form, np.array([0.5, 1.0, 2.0]) * w)
        seen = np.array([np.mean(off > c * w * (1 + 1e-9)) for c in (0.5, 1.0, 2.0)])
        assert np.all(seen <= beyond + 7 * np.sqrt(beyond / n) + 1e-3)
    assert noise.halfwidth(noise.form({Coordinate(0, 0): 1}), level) == noise.halfwidth(
        noise.form(forms[3]), level
    )
    assert not noise.known(noise.form({Coordinate(0, 0): 1, Coordinate(2, 0): 1}))
    assert noise.halfwidth(noise.form({}), level) == 0


# ---- shares ----


@pytest.mark.usefixtures("fixed_draws")
def test_shares_of_one_draw_have_its_covariances():
    noise = row_noise([Block(FINE, 2, True), Block(1, 1, True), Block(64)], "1")
    laws = [share(noise, {ROWS: 1}), *cells(noise, 0), *cells(noise, 1), *cells(noise, 2), laplace(1)]
    n = 60_000
    draws = [*drawn(laws[:-1], n), laws[-1].sample(n)]
    found = covariances(laws)
    sds = np.sqrt(np.diag(found))
    z = np.array(draws, dtype=np.float64) / sds[:, None]
    for i in range(len(laws)):
        for j in range(i + 1):
            product = z[i] * z[j]
            error = 7 * product.std() / math.sqrt(n) + 1e-9
            assert abs(product.mean() - found[i, j] / sds[i] / sds[j]) < error
    weights = np.arange(1, len(laws) + 1) / sds
    assert std(tuple(zip(laws, weights))) == pytest.approx(math.sqrt(weights @ found @ weights))
    assert std(tuple(zip(laws, weights))) == pytest.approx(float((weights @ np.array(draws)).std()), rel=0.02)


def test_cells_of_one_draw_add_up_to_their_rows():
    noise = row_noise([Block(FINE, 1, True), Block(FINE, 1, True)], "0.2")
    u, v = cells(noise, 0)
    present = share(noise, {Coordinate(0): 1})
    both = halfwidth(((u, 1.0), (v, 1.0)), 0.95)
    assert both == FINE * present.interval(0.95) == summed([u, v])[0].interval(0.95)
    apart = std(((u, 1.0), (cells(noise, 0, number=1)[1], 1.0)))
    assert std(((u, 1.0), (v, 1.0))) < 0.99 * apart  # as if they were of two draws
    assert summed([u, v])[1] == 1
    assert summed([laplace(1), laplace(1)]) == (laplace(1), 2)
    assert std(((u, 1.0), (v, 1.0))) == pytest.approx(FINE * present.std)
    assert std(((u, 1.0), (u, -1.0))) == 0 == halfwidth(((u, 1.0), (u, -1.0)), 0.95)
    with pytest.raises(dp.MechanismError, match="one combination"):
        u.upper_tail(5, 2)


@pytest.mark.parametrize("eps", ["0.2", "1", "4"])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_a_count_over_two_draws_and_more_noise(eps, level):
    """Exact laws of independent draws are convolved."""
    one, two = row_noise([Block(FINE)] * 3, eps), row_noise([Block(FINE, 1, True)] * 2, eps)
    terms = (
        (share(one, {ROWS: 1}, number=0), 0.5),
        (share(two, {ROWS: 1}, number=1), 0.3),
        (laplace(eps), 0.2),
    )
    n = 60_000
    total = np.abs(sum(c * law.sample(n) for law, c in terms))
    w = halfwidth(terms, level)
    assert np.mean(total <= w + 1e-9) >= chance.least_share(n, level, ALARM)
    assert w <= np.quantile(total, level + 0.02) * 1.03 + 0.5
    assert std(terms) == pytest.approx(float(np.sqrt(np.mean(total**2))), rel=0.03)


def test_unknown_forms_beside_other_noise_have_the_bound():
    noise = row_noise([Block(FINE)] * 3, "1")
    a, b = cells(noise, 0)[0], cells(noise, 1)[0]
    other = laplace("0.5", FINE)
    terms = ((a, 1.0), (b, 1.0), (other, 1.0))
    w = halfwidth(terms, 0.95)
    assert w == pytest.approx(noise_factor((a, b, other), 0.95) * std(terms))
    n = 60_000
    total = np.abs(sum(drawn([a, b], n)) + other.sample(n))
    assert np.mean(total <= w) >= chance.least_share(n, 0.95, ALARM)
    assert width_factor((a, b, other), 0.95) == noise_factor((a, b, other), 0.95)


@pytest.mark.parametrize("eps", ["0.3", "2"])
@pytest.mark.parametrize("weights", [{ROWS: 1}, {Coordinate(0): 1}, {Coordinate(0, 0): 1}], ids=str)
def test_a_share_is_a_noise(eps, weights):
    noise = row_noise([Block(3, 1, True), Block(1, 2)], eps)
    law = share(noise, weights)
    k = np.arange(-400, 401)
    p = law.pmf(k)
    assert p.sum() == pytest.approx(1, abs=1e-9)
    assert np.allclose(p, p[::-1])
    assert law.cdf(400) == pytest.approx(1)
    assert law.std == pytest.approx(math.sqrt(np.sum(p * k**2)), rel=1e-6)
    assert law.mean_abs == pytest.approx(np.sum(p * np.abs(k)), rel=1e-6)
    assert law.cdf(-law.interval(0.9) - 1) <= 0.05 < law.cdf(-law.interval(0.9))
    assert law.upper_tail(4) == pytest.approx(float(law.cdf(-4)), rel=1e-6)
    n = 50_000
    x = law.sample(n)
    assert chance.fits([np.sum(x == v) for v in k], n * p)
    assert law.scale == noise.scale
    assert law.event == noise.event


@pytest.mark.usefixtures("fixed_draws")
def test_mean_abs_of_a_fine_share():
    law = cells(row_noise([Block(FINE, 1, True)] * 2, "1"), 0)[1]
    assert law.mean_abs == pytest.approx(float(np.abs(law.sample(100_000)).mean()), rel=0.03)


def test_a_threshold_on_present_rows_or_their_cells():
    noise = row_noise([Block(FINE, 1, True)], "1")
    law, draws = summed(cells(noise, 0))
    least = least_threshold(law, draws, FINE, 1e-6)
    assert 15 * FINE < least <= 19 * FINE
    present = share(noise, {Coordinate(0): 1})
    assert -(-least // FINE) == least_threshold(present, 1, 1, 1e-6)
    mixed = row_noise([Block(FINE, 1, True)] * 2, "1")
    with pytest.raises(dp.MechanismError, match="no tail"):
        share(mixed, {Coordinate(0, 0): 1, Coordinate(1, 0): 1}).upper_tail(5)


def test_shares_are_values():
    noise = row_noise([Block(FINE), Block(FINE)], "1")
    a, b = cells(noise, 0), cells(noise, 0)
    assert a == b
    assert a != cells(noise, 0, number=1)
    assert pickle.loads(pickle.dumps(a)) == a
    assert hash(a[0]) == hash(b[0])
    assert isinstance(a[0], Share)
    assert "draw 0" in repr(a[0])


@pytest.mark.parametrize("cells_of_it", [12, 100])
def test_tails_of_large_tables_are_those_of_small_ones(cells_of_it):
    """One bin of a table is Laplace whatever the others are: the tail of a bin of 2 and of 101."""
    bin_of, two = (share(row_noise([Block(1, m)], "0.05"), {Coordinate(0, 0): 1}) for m in (cells_of_it, 1))
    for least in (1, 100, 800):
        assert bin_of.upper_tail(least) == pytest.approx(two.upper_tail(least), rel=1e-9)
