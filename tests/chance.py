"""How likely a random test is to fail though nothing is wrong: thresholds from exact or proven tails.

A comparison fails by chance at most once in 10**10 times (``ALARM``), so a test of up to ten comparisons at most once
in 10**9. Tests that compare more say so and hand in a smaller ``alarm``.
"""

from __future__ import annotations

from dpframe.testing import goodness_of_fit

ALARM = 1e-10


def least_hits(n: int, p: float, alarm: float = ALARM) -> int:
    """The greatest k for which at most ``alarm`` of all samples of ``n`` have fewer than k hits of chance ``p``."""
    return goodness_of_fit.least_hits(n, p, alarm)


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
