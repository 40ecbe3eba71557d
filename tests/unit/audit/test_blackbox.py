"""The black box flags what is wrong and, but for alpha, nothing that is right.

Samplers here are NumPy's with a fixed seed, so every test gives the same verdict in every run.
``DPFRAME_AUDIT=1`` raises null runs from 200 to 1,000, and repeats.
"""

from __future__ import annotations

import math

import chance
import numpy as np
import pytest
from scipy import stats
from sizes import AUDIT

import dpframe as dp
from dpframe.audit.blackbox import clopper_pearson
from dpframe.audit.events import last_digit

FINE = 2.0**-20


def rng_of(*seed):
    return np.random.default_rng(seed)


def geometric(rng, value, scale):
    """Discrete Laplace: the law of a count."""
    p = -math.expm1(-1 / scale)
    return lambda n: value + rng.geometric(p, n) - rng.geometric(p, n)


def fine_laplace(rng, value, scale):
    """Laplace on a fine public grid: the law of a sum of floats, but for a part of 2**-20."""
    return lambda n: value + np.rint(rng.laplace(scale=scale, size=n) / FINE) * FINE


def gaussian(rng, value, sigma):
    return lambda n: value + np.rint(rng.normal(scale=sigma, size=n))


def randomised_response(rng, value, eps):
    p = 1 / (1 + math.exp(-eps))
    return lambda n: np.where(rng.random(n) < p, value, 1 - value)


def vector(rng, values, scale):
    return lambda n: np.stack([geometric(rng, v, scale)(n) for v in values], axis=1)


NULLS = {
    "geometric": lambda rng, eps: (geometric(rng, 0, 1 / eps), geometric(rng, 1, 1 / eps), 0),
    "fine": lambda rng, eps: (fine_laplace(rng, 0.0, 1 / eps), fine_laplace(rng, 1.0, 1 / eps), 0),
    "response": lambda rng, eps: (randomised_response(rng, 0, eps), randomised_response(rng, 1, eps), 0),
    "vector": lambda rng, eps: (vector(rng, (0, 0), 2 / eps), vector(rng, (1, -1), 2 / eps), 0),
    "gaussian": lambda rng, eps: (gaussian(rng, 0, 3.73063 / eps), gaussian(rng, 1, 3.73063 / eps), 0.05),
}


@pytest.mark.parametrize("law", NULLS)
def test_correct_mechanisms_are_flagged_no_more_often_than_alpha(law):
    """At alpha 5 %, on laws that use their epsilon up. The bound is passed by chance once in 10**10."""
    runs = (1000 if AUDIT else 200) // len(NULLS)
    flagged = 0
    for i in range(runs):
        a, b, delta = NULLS[law](rng_of(1, i), (0.5, 1, 2)[i % 3])
        flagged += dp.audit.black_box(a, b, eps=(0.5, 1, 2)[i % 3], delta=delta, n=4_000, alpha=0.05).flagged
    assert flagged <= chance.most_hits(runs, 0.05)


def test_equal_samplers_are_at_eps_zero():
    """The hardest null: at eps 0 any difference would be flagged."""
    flagged = 0
    for i in range(40):
        rng = rng_of(2, i)
        flagged += dp.audit.black_box(
            fine_laplace(rng, 0.0, 1), fine_laplace(rng, 0.0, 1), eps=0, n=4_000, alpha=0.05
        ).flagged
    assert flagged <= chance.most_hits(40, 0.05)


@pytest.mark.parametrize("eps", [1, 2, 3])
def test_a_scale_that_is_two_percent_too_small_is_flagged(eps):
    """10**6 draws at the default alpha of 1e-6; the right scale is not."""
    for i in range(5 if AUDIT else 1):
        rng = rng_of(3, i, eps)
        wrong = (geometric(rng, v, 0.98 / eps) for v in (0, 1))
        right = (geometric(rng, v, 1 / eps) for v in (0, 1))
        found = dp.audit.black_box(*wrong, eps=eps)
        assert found.flagged
        assert found.eps_lower <= eps / 0.98
        found = dp.audit.black_box(*right, eps=eps)
        assert not found.flagged
        assert found.eps_lower > 0.98 * eps


@pytest.mark.parametrize("law", [geometric, fine_laplace])
@pytest.mark.parametrize("eps", [1, 3])
def test_a_scale_that_is_ten_percent_too_small_is_flagged_at_a_tenth_of_the_draws(law, eps):
    rng = rng_of(4, eps)
    found = dp.audit.black_box(law(rng, 0, 0.9 / eps), law(rng, 1, 0.9 / eps), eps=eps, n=10**5)
    assert found.flagged
    assert found.eps_lower <= eps / 0.9


def test_float_noise_on_a_float_is_flagged_by_last_digits():
    """Mironov's attack: NumPy's Laplace on 0 has digits that it can't have on 1."""
    rng = rng_of(5)
    found = dp.audit.black_box(
        lambda n: rng.laplace(size=n), lambda n: 1 + rng.laplace(size=n), eps=1, n=10**5
    )
    assert found.flagged
    assert found.eps_lower > 6
    assert "last binary digit" in found.witness.words


def geometric_of(rng, eps=1):
    return geometric(rng, 0, 1 / eps)


LEAKS = {
    "NaN once in two hundred": lambda rng: (
        geometric_of(rng),
        lambda n: np.where(rng.random(n) < 0.005, math.nan, geometric_of(rng)(n)),
    ),
    "None once in two hundred": lambda rng: (
        geometric_of(rng),
        lambda n: np.where(rng.random(n) < 0.005, None, geometric_of(rng)(n).astype(object)),
    ),
    "infinite": lambda rng: (
        geometric_of(rng),
        lambda n: np.where(rng.random(n) < 0.005, math.inf, geometric_of(rng)(n)),
    ),
    "an atom": lambda rng: (
        fine_laplace(rng, 0.0, 1),
        lambda n: np.where(rng.random(n) < 0.005, 0.125, fine_laplace(rng, 0.0, 1)(n)),
    ),
    "even numbers only": lambda rng: (geometric(rng, 0, 30), lambda n: geometric(rng, 0, 15)(n) * 2),
    "a coarser grid": lambda rng: (
        fine_laplace(rng, 0.0, 1),
        lambda n: np.rint(fine_laplace(rng, 0.0, 1)(n) / 4 / FINE) * 4 * FINE,
    ),
    "no noise": lambda rng: (lambda n: np.zeros(n), lambda n: np.ones(n)),
    "negative zero": lambda rng: (lambda n: np.zeros(n), lambda n: -np.zeros(n)),
    "one noise for two cells": lambda rng: (
        vector(rng, (0, 0), 30),
        lambda n: np.repeat(geometric(rng, 0, 30)(n)[:, None], 2, axis=1),
    ),
    "a sum that is exact": lambda rng: (
        lambda n: np.stack([x := geometric(rng, 0, 30)(n), -x], axis=1),
        lambda n: np.stack([x := geometric(rng, 0, 30)(n), 1 - x], axis=1),
    ),
    "a block at twice its eps": lambda rng: (vector(rng, (0, 0), 1), vector(rng, (1, 1), 1)),
}


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("leak", LEAKS)
def test_leaks_of_many_kinds_are_found_on_either_side(leak, swapped):
    pair = LEAKS[leak](rng_of(6))
    found = dp.audit.black_box(*(pair[::-1] if swapped else pair), eps=1, n=60_000)
    assert found.flagged, leak


def test_delta_is_taken_off_the_probability():
    """An event of probability .02 on one side only is within (0, .03) and not within (0, .01)."""
    rng = rng_of(7)
    pair = (lambda n: np.zeros(n, dtype=int), lambda n: (rng.random(n) < 0.02).astype(int))
    assert dp.audit.black_box(*pair, eps=0.001, delta=0.01, n=10**5).flagged
    assert not dp.audit.black_box(*pair, eps=0.001, delta=0.03, n=10**5).flagged


def test_a_witness_can_be_tested_on_fresh_draws():
    rng = rng_of(8)
    first, second = geometric(rng, 0, 0.5), geometric(rng, 1, 0.5)
    found = dp.audit.black_box(first, second, eps=1, n=50_000)
    w = found.witness
    shares = [w.holds(f(50_000)).mean() for f in (first, second)]
    assert shares == pytest.approx([h / w.of for h in w.hits], abs=0.02)
    assert (shares[0] > shares[1]) == (w.more_likely == "first")
    assert "the output" in str(w)
    assert "witness.holds" in str(w)


def test_the_last_binary_digit():
    x = np.array([1.0, 3.0, 0.5, 0.75, 96.0, -(2.0**-1074), 1 + 2.0**-52, 0.0, math.inf, math.nan])
    got = last_digit(x).tolist()
    assert got[:7] == [0, 0, -1, -2, 5, -1074, -52]
    assert all(math.isnan(v) for v in got[7:])


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (10, 10), (3, 10), (500, 10_000)])
def test_clopper_pearson_bounds_hold_by_the_binomial_law(hits, n):
    low, high = (clopper_pearson(hits, n, 0.01, upper=u) for u in (False, True))
    assert low == 0 if hits == 0 else stats.binom.sf(hits - 1, n, low) == pytest.approx(0.01)
    assert high == 1 if hits == n else stats.binom.cdf(hits, n, high) == pytest.approx(0.01)


@pytest.mark.parametrize(
    "wrong",
    [
        {"eps": -1},
        {"eps": 1, "delta": 1},
        {"eps": 1, "n": 10},
        {"eps": 1, "n": 1e6},
        {"eps": 1, "alpha": 0.0},
        {"eps": 1, "alpha": 2},
    ],
)
def test_wrong_parameters_are_named(wrong):
    with pytest.raises(dp.InputError, match="Hint"):
        dp.audit.black_box(np.zeros, np.zeros, **wrong)


@pytest.mark.parametrize(
    "outputs",
    [lambda n: np.zeros(n + 1), lambda n: 0.0, lambda n: np.zeros((n, 0)), lambda n: np.array(["a"] * n)],
)
def test_outputs_of_a_wrong_shape_are_refused(outputs):
    with pytest.raises(dp.InputError, match="sampler_b"):
        dp.audit.black_box(np.zeros, outputs, eps=1, n=100)
    with pytest.raises(dp.InputError, match="columns"):
        dp.audit.black_box(np.zeros, lambda n: np.zeros((n, 2)), eps=1, n=100)
