"""The exact laws of choices, read off the pipeline: what every draw would be drawn with.

A draw is stopped where the gaps and the rate are known; the law over candidates follows from them, and the draw then
returns what the test tells it to. That draws follow this law has tests of its own.
"""

from __future__ import annotations

import contextlib
import math

import chance
import mpmath
import numpy as np
import pytest

from dpframe.mechanisms import ranks, selection


def log_law(gaps, sizes, rate) -> list[float]:
    """Log-probabilities of all candidates, in order: ``sizes`` neighbours share a gap."""
    with mpmath.workdps(40):
        z = [mpmath.mpf(int(g)) * rate.numerator / rate.denominator for g in gaps]
        total = mpmath.log(mpmath.fsum(int(k) * mpmath.exp(-x) for x, k in zip(z, sizes)))
        return [float(-x - total) for x, k in zip(z, sizes) for _ in range(int(k))]


@contextlib.contextmanager
def ranks_told(script=()):
    """Inside, draws of ranks return the places of ``script`` (then the lowest); yields their log-probabilities.

    A place is a candidate, counted from the lowest that can be drawn, or one of ``PLACES`` of a candidate.
    """
    laws, left = [], list(script)

    def told(line, rate):
        gaps = line.gap(np.arange(line.size))
        laws.append(log_law(gaps, [1] * len(gaps), rate / line.d))
        return left.pop(0) if left else 0

    with pytest.MonkeyPatch.context() as m:
        m.setattr(ranks, "draw", told)
        yield laws


def joint_law(run, draws: int) -> dict[tuple[int, ...], float]:
    """Log-probability of every sequence of choices that ``run`` (which draws ``draws`` ranks) can make."""
    found: dict[tuple[int, ...], float] = {}

    def follow(path: tuple[int, ...], so_far: float) -> None:
        with ranks_told(path) as laws:
            run()
        for i, p in enumerate(laws[len(path)]):
            longer = (*path, i)
            if len(longer) == draws:
                found[longer] = so_far + p
            else:
                follow(longer, so_far + p)

    follow((), 0.0)
    return found


def furthest(a: dict, b: dict) -> float:
    """The largest |log-ratio| of two laws on the same outcomes."""
    assert a.keys() == b.keys()
    return max(abs(a[x] - b[x]) for x in a)


def alarm(observed, law) -> bool:
    """Whether counts are too far from a law for chance (below 1e-9; Pearson, rare outcomes together)."""
    p = np.asarray(law, dtype=float)
    order = np.argsort(-p, kind="stable")
    return not chance.fits(np.asarray(observed)[order], p[order] * np.sum(observed))


def tells(law, other, draws: int) -> bool:
    """Whether counts just as ``other`` expects them are taken as not from ``law``: what a test of draws can see.

    Of expected counts, not of draws from ``other``: a wrong law that is seen only mostly would fail a test by chance.
    """
    return alarm(np.round(np.asarray(other, dtype=float) * draws), law)


def exp(x: list[float]) -> np.ndarray:
    return np.array([math.exp(v) for v in x])


def exponential_law(utilities, sensitivity, eps, *, monotone: bool = False) -> np.ndarray:
    """The probabilities of ``exponential``, from the sampler's integer weights."""
    w = selection._weights(selection._exponents(utilities, sensitivity, eps, monotone), 1200)
    total = sum(w)
    return np.array([x / total for x in w])


def permute_and_flip_law(utilities, sensitivity, eps, *, monotone: bool = False) -> np.ndarray:
    """The probabilities of ``permute_and_flip``, from the sampler's weights (quadratic in candidates).

    P(i) = w_i * E[1/(1 + N_i)], N_i the number of heads among the others, which is the integral over t
    in [0, 1] of w_i * prod_{j != i} (1 - w_j + w_j t), a polynomial: Gauss-Legendre is exact for it.
    """
    z = selection._exponents(utilities, sensitivity, eps, monotone)
    w = np.array([x / (1 << 1200) for x in selection._weights(z, 1200)])
    x, dx = np.polynomial.legendre.leggauss(len(w) // 2 + 1)
    t, dt = (x + 1) / 2, dx / 2
    # Leave one factor out by products from either side: a factor may be 0.
    factors = 1 - w[:, None] * (1 - t)
    ones = np.ones((1, len(t)))
    before = np.cumprod(np.concatenate([ones, factors[:-1]]), axis=0)
    after = np.cumprod(np.concatenate([ones, factors[:0:-1]]), axis=0)[::-1]
    return np.asarray(w * ((before * after) @ dt))
