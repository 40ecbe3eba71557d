"""What every mechanism draws, against the law that it states: chi-square, and the exact decisions of table draws.

``DPFRAME_AUDIT=1`` raises draws from 300,000 to 10**7. False alarms: at most 1e-9 a test.
"""

from __future__ import annotations

from fractions import Fraction

import chance
import numpy as np
import pytest
from sizes import AUDIT

from dpframe.mechanisms.base import Target
from dpframe.mechanisms.registry import mechanism, names
from dpframe.noise import source
from dpframe.noise.strips import StripSampler
from dpframe.noise.table import TableSampler

DRAWS = 10**7 if AUDIT else 300_000
WIDE = ("laplace", "gaussian", "gaussian_classic", "discrete_gaussian")
EXACT = 10**5  # words that are decided a second time

# (sensitivity in steps, eps): noise of a tenth of a step, of steps, of 10**9 steps.
POINTS = [(1, 10), (1, Fraction(1, 2)), (64, 1), (1000, 1), (10**9, 1)]
CASES = [
    (n, s, e) for n in names() for s, e in POINTS if n != "cactus" and (s < 10**5 or n in WIDE)
]  # cactus takes seconds to make; its draws are those of a table


def calibrated(name, sensitivity, eps):
    rho = name == "discrete_gaussian"
    if name == "optimal_count" and sensitivity != 1:
        pytest.skip("a law for one step")
    if name == "gaussian_classic" and eps > 1:
        pytest.skip("holds below eps 1 only")
    target = Target(rho=Fraction(eps) ** 2 / 2) if rho else Target(Fraction(eps), Fraction(1, 10**6))
    return mechanism(name).calibrate(Fraction(sensitivity), 1, target)


def follows(draws, noise) -> bool:
    """Whether draws fit the law, over about 60 cells, cut where the law says."""
    half = {noise.interval(level) for level in np.arange(1, 30) / 30}
    edges = np.array(sorted({k for w in half for k in (w, -w - 1)}))
    p = np.diff([0.0, *noise.cdf(edges), 1.0])
    return chance.fits(
        np.bincount(np.searchsorted(edges, draws, side="left"), minlength=len(p)), p * len(draws)
    )


@pytest.mark.parametrize(("name", "sensitivity", "eps"), CASES, ids=lambda x: str(x))
def test_what_is_drawn_follows_the_stated_law(name, sensitivity, eps):
    noise = calibrated(name, sensitivity, eps)
    draws = np.concatenate([noise.sample(min(DRAWS, 10**6)) for _ in range(max(1, DRAWS // 10**6))])
    assert follows(draws, noise)


@pytest.mark.parametrize("name", ["laplace", "gaussian", "discrete_gaussian", "staircase", "tulap"])
def test_draws_that_are_two_percent_narrower_do_not(name):
    """The check is able to fail: of 10**6 draws the statistic is beyond the alarm."""
    noise = calibrated(name, 1000, 1)
    narrow = np.round(noise.sample(10**6) * 0.98).astype(np.int64)
    assert not follows(narrow, noise)


# ---- decisions in floats, or on 64 digits, taken a second time in exact arithmetic ----


def first_then_more(size):
    """A source: the same bytes whenever ``size`` are asked for, and others for what is drawn after them."""
    data, more = np.random.default_rng(7).bytes(size), np.random.default_rng(8).bytes
    return lambda k: data if k == size else more(k)


@pytest.mark.parametrize("scale", [Fraction(1, 10), Fraction(3), Fraction(10**9)], ids=str)
def test_exact_arithmetic_accepts_the_same_words_of_every_shape(scale, monkeypatch):
    """2,000 words (40,000 in full) for each of three shapes: with a band of 2 no decision is left to floats."""
    n = EXACT * 4 // 10 if AUDIT else 2_000
    for shape in ("linear", "square", "lattice"):
        sampler = StripSampler(shape, scale)
        with monkeypatch.context() as m, source.replaced(first_then_more(24 * n)):
            floats = sampler._attempts(n)
            m.setattr("dpframe.noise.strips._BAND", 2.0)
            exact = sampler._attempts(n)
        assert floats.tolist() == exact.tolist()


@pytest.mark.parametrize(
    "weights", [(1, 2, 3), (2**90, 1, 2**89 + 7, 3), tuple(range(1, 400)), (0, 5, 0, 1)], ids=len
)
def test_a_table_decides_its_words_as_integers_do(weights):
    """10**5 words, and all words next to an edge: the index is that of U = word/2**64 + what is drawn after it."""
    table, total = TableSampler(weights), sum(weights)
    edges = np.cumsum([0, *weights], dtype=object)
    near = [(int(c) << 64) // total + d for c in edges for d in (-2, -1, 0, 1, 2)]
    words = [w for w in near if 0 <= w < 2**64]
    words += np.random.default_rng(3).integers(0, 2**64, EXACT, dtype=np.uint64).tolist()
    later = 2**63 + 12345  # the next digits, where they are asked for
    data = np.array(words, dtype=np.uint64).tobytes()
    with source.replaced(lambda k: data if k == len(data) else later.to_bytes(8, "little")):
        got = table.sample(len(words))
    u = [((w << 64) | later) * total for w in words]
    place = [int(np.searchsorted(edges, x >> 128, side="right")) - 1 for x in u]
    assert got.tolist() == place
