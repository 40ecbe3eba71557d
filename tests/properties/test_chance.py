"""The thresholds of random tests, checked by exact sums: they are passed by chance as seldom as they say, and can fail."""

from __future__ import annotations

import chance
import numpy as np
import pytest
from scipy import stats


@pytest.mark.parametrize("n", [1, 60, 4_000, 200_000])
@pytest.mark.parametrize("p", [1e-6, 0.05, 0.5, 0.95, 1.0])
def test_limits_of_hits_are_the_tightest_that_keep_the_rate(n, p):
    least, most = chance.least_hits(n, p), chance.most_hits(n, p)
    assert stats.binom.cdf(least - 1, n, p) <= chance.ALARM
    assert stats.binom.sf(most, n, p) <= chance.ALARM * (1 + 1e-6)
    assert least == n or stats.binom.cdf(least, n, p) > chance.ALARM
    assert most == 0 or stats.binom.sf(most - 1, n, p) > chance.ALARM * (1 - 1e-6)
    likely = chance.likely_hits(n, p)
    assert stats.binom.cdf(likely[0] - 1, n, p) + stats.binom.sf(likely[-1], n, p) <= chance.ALARM * (
        1 + 1e-6
    )


@pytest.mark.parametrize("expected", [20, 21, 30, 100, 1000])
@pytest.mark.parametrize("share", [0.5, 0.1, 0.001])
def test_two_cells_are_taken_for_another_law_less_than_once_in_10_to_the_9(expected, share):
    """Exactly: the chance of all counts that do not fit, of a cell with 20 and more expected hits."""
    n = round(expected / share)
    k = np.arange(max(0, expected - 60 * expected), min(n, expected * 12 + 200) + 1)
    unfit = [x for x in k.tolist() if not chance.fits([x, n - x], [expected, n - expected])]
    assert stats.binom.pmf(unfit, n, expected / n).sum() + stats.binom.sf(k[-1], n, expected / n) < 1e-9


def test_three_cells_are_taken_for_another_law_less_than_once_in_10_to_the_9():
    n, p = 90, (20 / 90, 20 / 90, 50 / 90)
    total = 0.0
    for a in range(n + 1):
        b = np.arange(n - a + 1)
        x = (a - n * p[0]) ** 2 / (n * p[0]) + (b - n * p[1]) ** 2 / (n * p[1])
        x = x + (n - a - b - n * p[2]) ** 2 / (n * p[2])
        unfit = b[stats.chi2.sf(x, 2) <= chance.NOMINAL]
        total += stats.binom.pmf(a, n, p[0]) * stats.binom.pmf(unfit, n - a, p[1] / (1 - p[0])).sum()
    assert 0 < total < 1e-9


def test_counts_of_another_law_do_not_fit():
    assert not chance.fits([100, 1], [101, 0]), "what is impossible was seen"
    assert not chance.fits([1_300, 1_000, 700], [1_000] * 3)
    assert not chance.fits([0] * 50 + [100], [2] * 51), "thin cells count together"
    assert chance.fits([1_010, 985, 1_005], [1_000] * 3)
