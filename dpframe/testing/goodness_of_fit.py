"""Whether counts follow a distribution: tests whose false-alarm probability is proven, however few the counts."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

_THIN = 20  # fewer expected hits than this make no cell of their own: nothing would be seen in it
_POWERS = np.arange(1, 25) / 50  # of the exponential moments; each gives a bound, so the least does


def least_hits(n: int, p: float | npt.NDArray[np.float64], alarm: float) -> npt.NDArray[np.int64]:
    """The greatest k for which at most ``alarm`` of all samples of ``n`` have fewer than k hits of chance ``p``."""
    from scipy.stats import binom

    k = np.maximum(np.asarray(binom.ppf(alarm, n, p)).astype(np.int64), 0)
    while np.any(high := (k > 0) & (binom.cdf(k - 1, n, p) > alarm)):
        k = k - high
    return k


def fits(seen: npt.ArrayLike, expected: npt.ArrayLike, alarm: float) -> bool:
    """Whether counts may come from a distribution; if they do, False has a probability of at most ``alarm``.

    Parameters
    ----------
    seen : array-like of numbers, shape (cells,)
        How often each outcome was seen, in independent draws.
    expected : array-like of numbers, shape (cells,)
        In proportion to the probabilities. Cells are in the order of the outcomes: thin ones join their neighbour.
    alarm : float

    Notes
    -----
    Half of ``alarm`` goes to single cells, by exact binomial tails. The other half goes to Pearson's statistic, the
    sum of ``(seen - expected)**2 / expected``, over samples whose cells are all within those tails. Given their sum
    n, independent Poisson counts are multinomial, so a multinomial sample has any property with at most the
    probability that Poisson counts have it, divided by the probability that these sum to n. For them the exponential
    moment of the statistic is a product of sums over single cells, and Markov's inequality bounds its tail. Rounding
    is far below what the bound gives away.
    """
    from scipy.special import logsumexp
    from scipy.stats import chi2, poisson

    o, e = np.asarray(seen, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    n = int(o.sum())
    if o[e <= 0].any():
        return False
    o, e = _joined(o, e * (n / e.sum()))
    if len(e) < 2:
        return True
    share = alarm / 4 / len(e)
    least, most = least_hits(n, e / n, share), n - least_hits(n, 1 - e / n, share)
    if np.any((o < least) | (o > most)):
        return False
    statistic = math.fsum((o - e) ** 2 / e)
    if chi2.sf(statistic, len(e) - 1) > alarm:
        return True  # what the bound gives away is on top of the limit for many draws
    logs = -_POWERS * statistic - float(poisson.logpmf(n, n))
    for (mean, low, high), many in _alike(e, least, most):
        k = np.arange(low, high + 1)
        terms = poisson.logpmf(k, mean) + _POWERS[:, None] * (k - mean) ** 2 / mean
        logs += many * logsumexp(terms, axis=1)
    return float(logs.min()) > math.log(alarm / 2)


def _joined(
    o: npt.NDArray[np.float64], e: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Neighbours together until each cell expects ``_THIN`` hits."""
    cells = [[0.0, 0.0]]
    for pair in zip(o.tolist(), e.tolist()):
        if cells[-1][1] >= _THIN:
            cells.append([0.0, 0.0])
        cells[-1] = [a + b for a, b in zip(cells[-1], pair)]
    if len(cells) > 1 and cells[-1][1] < _THIN:
        last = cells.pop()
        cells[-1] = [a + b for a, b in zip(cells[-1], last)]
    together = np.array(cells)
    return together[:, 0], together[:, 1]


def _alike(
    e: npt.NDArray[np.float64], least: npt.NDArray[np.int64], most: npt.NDArray[np.int64]
) -> list[tuple[tuple[float, int, int], int]]:
    """Cells of the same expectation and limits, and how many there are of each."""
    cells, many = np.unique(np.stack([e, least, most]), axis=1, return_counts=True)
    return [((float(a), int(b), int(c)), int(m)) for (a, b, c), m in zip(cells.T, many)]
