"""Widths of weighted sums of noise: they reach their level, by exact arithmetic and by draws."""

from __future__ import annotations

import math
from fractions import Fraction

import chance
import numpy as np
import pytest
from calibrated import gaussian, laplace

from dpframe.mechanisms.base import sqrt_up
from dpframe.mechanisms.combine import halfwidth, std

pytestmark = pytest.mark.usefixtures("quiet")


# ---- widths of weighted sums ----


def covered(terms, w: float) -> float:
    """P(|sum c_i X_i| <= w) by direct summation over all but the last term."""
    *rest, (last, c) = terms
    c = abs(c)
    grids = []
    for noise, _ in rest:
        reach = int(40 * noise.std + 40) if len(rest) == 1 else noise.interval(1 - 1e-9)
        grids.append(np.arange(-reach, reach + 1))
    mesh = np.meshgrid(*grids, indexing="ij", sparse=True)
    centre = sum(ci * m for (_, ci), m in zip(rest, mesh))
    weight = 1.0
    for (noise, _), m in zip(rest, mesh):
        weight = weight * noise.pmf(m)
    tiny = 1e-9 * max(1.0, w)  # points on the edge belong to the interval
    high = last.cdf(np.floor((w + tiny - centre) / c))
    low = last.cdf(np.ceil((-w - tiny - centre) / c) - 1)
    return float((weight * (high - low)).sum())


PAIRS = [
    ((laplace(1), 1.0), (laplace(1), 1.0)),
    ((laplace("0.1"), 1.0), (laplace("0.1"), -1.0)),
    ((laplace(3), 0.5), (laplace(1), 0.5)),
    ((laplace("0.2"), 0.4), (laplace("0.2"), 1.6)),
    ((laplace("0.5", 100), 1e-3), (laplace("0.5", 100), 1.999)),
    ((gaussian(1, "1e-6"), 1.0), (gaussian(1, "1e-6"), 0.3)),
    ((gaussian(5, "1e-6"), 1 / 3), (laplace("0.3"), 1 / 7)),
    ((laplace(8), 1.0), (laplace(8), 1.0)),
    ((laplace(1, 1000), 1 / 1000), (laplace(1, 1000), 1 / 1000)),
]


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99, 0.999])
@pytest.mark.parametrize("pair", PAIRS, ids=range(len(PAIRS)))
def test_widths_of_two_terms_reach_the_level(pair, level):
    w = halfwidth(pair, level)
    assert covered(pair, w) >= level
    if min(noise.std for noise, _ in pair) > 5 and level >= 0.95:  # fine lattices: hardly wider than needed
        assert covered(pair, 0.985 * w) < level


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("coefficients", [(1, 1, 1), (0.5, 0.25, 0.25), (1, -2, 0.1)])
def test_widths_of_three_terms_reach_the_level(coefficients, level):
    terms = tuple((laplace(e), float(c)) for e, c in zip(("0.3", "0.5", "1"), coefficients))
    w = halfwidth(terms, level)
    assert covered(terms, w) >= level - 1e-8
    assert covered(terms, 0.96 * w) < level or w < 8


def test_width_of_one_term_is_the_laws_own():
    assert halfwidth(((laplace(1), 1.0),), 0.95) == 3
    assert halfwidth(((laplace(1), -0.5),), 0.95) == 1.5
    assert halfwidth(((laplace(1), 0.0), (laplace("0.1"), 2.0)), 0.95) == 60
    assert halfwidth(((laplace(1), 0.0),), 0.95) == 0


@pytest.mark.usefixtures("fixed_draws")
def test_widths_against_draws():
    """2e5 sums of five draws: shares and spread, of a fixed stream (no false alarm)."""
    terms = tuple(
        (noise, c) for noise, c in zip([laplace("0.5"), gaussian(1, "1e-6")] * 3, (1, 0.5, 2, 0.25, 1))
    )
    n = 200_000
    total = sum(c * noise.sample(n) for noise, c in terms)
    for level in (0.5, 0.9, 0.95, 0.99):
        share = float((np.abs(total) <= halfwidth(terms, level)).mean())
        assert chance.least_share(n, level) <= share <= level + 0.02
    assert math.isclose(std(terms), float(total.std()), rel_tol=0.02)


def test_widths_of_all_zero_noise_are_zero():
    assert halfwidth(((laplace(10**6), 1.0), (laplace(10**6), 1.0)), 0.95) < 1e-9


def test_the_square_root_is_rounded_up():
    for x in (Fraction(2), Fraction(1, 3), Fraction(10**40 + 1), Fraction(1, 10**12), Fraction(49)):
        root = sqrt_up(x)
        assert root * root >= x
        assert root * root <= x * (1 + Fraction(1, 2**50))
