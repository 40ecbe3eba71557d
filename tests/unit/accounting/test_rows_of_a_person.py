"""Rows are not persons: what promises.md and SECURITY.md say of somebody with k rows, from the exact law of the noise."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import dpframe as dp

FRAME = pl.DataFrame({"x": [1.0]})


def _loss(noise, k):
    """The greatest log-ratio between the law and itself, k steps on."""
    at = np.arange(-200, 200)
    p = noise.pmf(at)
    q = noise.pmf(at - k)
    there = (p > 1e-250) & (q > 1e-250)
    return float(np.max(np.abs(np.log(p[there] / q[there]))))


@pytest.mark.parametrize("eps", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("k", [1, 2, 5, 30])
def test_somebody_with_k_rows_is_protected_by_k_eps(eps, k):
    """By no more than k eps, and by no less: the sentence is no bound that is never met."""
    with dp.Session(eps=10):
        (noise,) = FRAME.dp.plan.count(eps=eps, mechanism="laplace").plan.laws
    assert _loss(noise, k) == pytest.approx(k * eps, rel=1e-6)


def test_a_unit_that_is_named_is_protected_by_eps_however_many_rows_it_has():
    """The noise of a unit of at most 30 rows is 30 times as wide: 30 rows on it lose what one row loses otherwise."""
    with dp.Session(eps=10, unit="x"):
        (noise,) = FRAME.dp.plan.count(eps=1, max_rows=30, mechanism="laplace").plan.laws
    assert _loss(noise, 30) <= 1 + 1e-9
    assert math.isclose(_loss(noise, 30), 1, rel_tol=1e-2)
