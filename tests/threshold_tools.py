"""Integer laws written down anew, and what a threshold on them gives away."""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy.special import ndtr

import dpframe as dp
from dpframe.engine.opening import as_source

# ---- laws, written down anew ----


@functools.lru_cache(maxsize=64)
def laplace_pmf(b, draws):
    """The law of the sum of ``draws`` two-sided geometric numbers by direct convolution; index 0 is the middle."""
    k = np.arange(-math.ceil(45 * b) - 30, math.ceil(45 * b) + 31)
    q = math.exp(-1 / b)
    one = (1 - q) / (1 + q) * q ** np.abs(k)
    return convolved(one, draws)


@functools.lru_cache(maxsize=64)
def gaussian_pmf(sigma, draws):
    k = np.arange(-math.ceil(12 * sigma) - 3, math.ceil(12 * sigma) + 4)
    lower = -np.abs(k)
    return convolved(ndtr((lower + 0.5) / sigma) - ndtr((lower - 0.5) / sigma), draws)


def convolved(one, draws):
    total = one
    for _ in range(draws - 1):
        total = np.convolve(total, one)
    return total


def tail(pmf, k):
    """P(sum >= k)."""
    middle = len(pmf) // 2
    return float(math.fsum(pmf[max(0, middle + k) :])) if middle + k < len(pmf) else 0.0


def continuous_tail(mechanism, scale, draws, x):
    """P(sum of continuous noises >= x) for x >= 0."""
    if mechanism == "gaussian":
        return float(ndtr(-x / (scale * math.sqrt(draws))))
    y = x / scale
    return math.exp(-y) * {1: 0.5, 2: (y + 2) / 4, 3: (y * y + 5 * y + 8) / 16}[draws]


def appears(plan, value, least=None):
    """The probability that a group is released whose thresholded integer is ``value`` without noise."""
    t = plan.threshold
    noise, draws = plan.pieces[t.coordinates[0]].noise, len(t.coordinates)
    assert len({plan.pieces[i].noise for i in t.coordinates}) == 1
    mechanism = plan.parts[plan.pieces[t.coordinates[0]].part].mechanism
    k = (t.least if least is None else least) - value
    scale = float(noise.scale)
    if scale <= 150:
        pmf = laplace_pmf(scale, draws) if mechanism == "laplace" else gaussian_pmf(scale, draws)
        return tail(pmf, k), 1e-9
    return continuous_tail(mechanism, scale, draws, k), 1e-4


def thresholded(plan, frame, salt=1):
    """The integer that is thresholded, per group, without noise."""
    counts = as_source(frame).aggregate(plan.ask(salt))
    total = np.zeros(len(counts.rows), dtype=object)
    for i in plan.threshold.coordinates:
        p, c = plan.pieces[i], plan.pieces[i].coordinate
        total = total + c.a * counts.rows.astype(object)
        if c.e:
            total = total + c.e * counts.units.astype(object)
        if p.measure >= 0:
            total = total + c.b * counts.present[p.measure].astype(object)
            for which, factor in c.sums:
                total = total + factor * counts.sums[p.measure][which].astype(object)
    return total


def union(p, groups):
    """P(at least one of ``groups`` keys appears), without cancellation."""
    return -math.expm1(groups * math.log1p(-p))


def questions(name):
    return {
        "count": {"n": dp.count()},
        "count x": {"n": dp.count("x")},
        "sum": {"s": dp.clip_sum("x", bounds=(0, 10))},
        "mean": {"m": dp.clip_mean("x", bounds=(0, 10))},
        "mean n": {"m": dp.clip_mean("x", bounds=(0, 10), n=50)},
        "fused": {
            "n": dp.count(),
            "s": dp.clip_sum("x", bounds=(0, 10)),
            "m": dp.clip_mean("x", bounds=(0, 10)),
        },
        "two counts": {"n": dp.count(), "c": dp.count("x")},
        "two": {
            "n": dp.count(),
            "s": dp.clip_mean("x", bounds=(0, 10)),
            "y": dp.clip_mean("y", bounds=(0, 1)),
        },
        "two sums": {"s": dp.clip_sum("x", bounds=(0, 10)), "y": dp.clip_sum("y", bounds=(0, 1))},
    }[name]
