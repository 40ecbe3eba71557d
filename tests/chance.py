"""How likely a random test is to fail though nothing is wrong: thresholds from exact tails.

A comparison fails by chance at most once in 10**10 times (``ALARM``), so a test of up to ten comparisons at most once
in 10**9. Tests that compare more say so and hand in a smaller ``alarm``.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

ALARM = 1e-10
THIN = 20  # fewer expected hits than this make no cell of their own
# Pearson's statistic has a heavier tail than its limit where cells are thin. At this nominal rate its true tail is
# below 1e-9 from 20 expected hits a cell on: test_chance computes it exactly.
NOMINAL = 1e-13


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


def least_share(n: int, p: float, alarm: float = ALARM) -> float:
    return least_hits(n, p, alarm) / n


def most_share(n: int, p: float, alarm: float = ALARM) -> float:
    return most_hits(n, p, alarm) / n


def fits(seen, expected, nominal: float = NOMINAL) -> bool:
    """Whether counts follow a law (Pearson); False by a chance below 1e-9 if they do.

    Parameters
    ----------
    seen, expected : sequences of numbers, shape (cells,)
        Hits and expected hits of each cell, in the order of the outcomes: thin cells join their neighbour.
    """
    seen, expected = np.asarray(seen, dtype=float), np.asarray(expected, dtype=float)
    if seen[expected <= 0].any():
        return False
    cells = [[0.0, 0.0]]
    for s, e in zip(seen, expected):
        if cells[-1][1] >= THIN:
            cells.append([0.0, 0.0])
        cells[-1][0] += s
        cells[-1][1] += e
    if len(cells) > 1 and cells[-1][1] < THIN:
        s, e = cells.pop()
        cells[-1] = [cells[-1][0] + s, cells[-1][1] + e]
    statistic = math.fsum((s - e) ** 2 / e for s, e in cells)
    return len(cells) == 1 or bool(stats.chi2.sf(statistic, len(cells) - 1) > nominal)
