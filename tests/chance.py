"""How likely a random test is to fail though nothing is wrong: thresholds from exact tails.

Every random test of the suite uses one of these, or computes its own; none fails by chance more often than ``ALARM``.
"""

from __future__ import annotations

import math

from scipy import stats

ALARM = 1e-9


def least_hits(n: int, p: float, alarm: float = ALARM) -> int:
    """The greatest k for which at most ``alarm`` of all samples of ``n`` have fewer than k hits of chance ``p``."""
    k = max(int(stats.binom.ppf(alarm, n, p)), 0)
    while k > 0 and stats.binom.cdf(k - 1, n, p) > alarm:
        k -= 1
    return k


def most_hits(n: int, p: float, alarm: float = ALARM) -> int:
    """The least k for which at most ``alarm`` of all samples of ``n`` have more than k hits of chance ``p``."""
    return n - least_hits(n, 1 - p, alarm)


def likely_hits(n: int, p: float, alarm: float = ALARM) -> range:
    """The numbers of hits outside which a sample of ``n`` falls with a chance of at most ``alarm``."""
    return range(least_hits(n, p, alarm / 2), most_hits(n, p, alarm / 2) + 1)


def farthest_cdf(n: int, alarm: float = ALARM) -> float:
    """How far a sample's distribution function lies from the law's, but for ``alarm`` (Dvoretzky, Kiefer, Wolfowitz,
    with Massart's constant: any law, any n)."""
    return math.sqrt(math.log(2 / alarm) / (2 * n))


def largest_chi_square(cells: int, alarm: float = ALARM) -> float:
    """The limit of Pearson's statistic over ``cells`` cells, each expected at least some tens of times."""
    return float(stats.chi2.isf(alarm, cells - 1))
