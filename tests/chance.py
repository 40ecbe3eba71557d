"""How likely a random test is to fail though nothing is wrong: thresholds from exact or proven tails.

A comparison fails by chance at most once in 10**10 times (``ALARM``), so a test of up to ten comparisons at most once
in 10**9. Tests that compare more say so and hand in a smaller ``alarm``.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from dpframe.testing import goodness_of_fit

ALARM = 1e-10


def least_hits(n: int, p: float, alarm: float = ALARM) -> int:
    """The greatest k for which at most ``alarm`` of all samples of ``n`` have fewer than k hits of chance ``p``."""
    return int(goodness_of_fit.least_hits(n, p, alarm))


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


def fits(seen, expected, alarm: float = ALARM) -> bool:
    """Whether counts follow a law; False by a chance of at most ``alarm`` if they do.

    Cells are in the order of the outcomes, as thin ones join their neighbour; ``expected`` is in proportion.
    """
    return goodness_of_fit.fits(seen, expected, alarm)


def likely_mean(values, p, n: int, alarm: float = ALARM) -> tuple[float, float]:
    """Two numbers between which the mean of ``n`` independent values lies but for a chance of ``alarm``.

    A quarter of the alarm is for the rarest values together, which are left out; for the rest, the exponential moment
    of a sum bounds both of its tails (Chernoff), whatever the law.

    Parameters
    ----------
    values, p : array-like of numbers, shape (outcomes,)
        What can occur, and how likely it is.
    """
    values, p = np.asarray(values, dtype=float), np.asarray(p, dtype=float)
    away = np.argsort(-np.abs(values - values @ p))
    away = away[np.cumsum(p[away]) <= alarm / 4 / n]
    values, p = np.delete(values, away), np.delete(p, away)
    centre, spread = values @ p / p.sum(), math.sqrt(np.cov(values, aweights=p))
    rates = np.geomspace(0.1, 10, 60) * math.sqrt(2 * math.log(4 / alarm) / n) / spread

    def furthest(z):
        """How far above 0 the mean of centred values can be; what was left out has no part in the sum."""
        moments = special.logsumexp(rates[:, None] * z, b=p, axis=1)
        return float(((moments + math.log(4 / alarm) / n) / rates).min())

    return centre - furthest(centre - values), centre + furthest(values - centre)


def law(*noises) -> tuple[np.ndarray, np.ndarray]:
    """The values of a sum of independent noises in steps, and their probabilities (but for 1e-15 or so)."""
    p = np.ones(1)
    for noise in noises:
        w = noise.interval(1 - 1e-15)
        p = np.convolve(p, noise.pmf(np.arange(-w, w + 1)))
    half = len(p) // 2
    return np.arange(-half, half + 1), p
