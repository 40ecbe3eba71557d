"""How large a weighted sum of independent noises gets: half-widths of intervals."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpframe.mechanisms.base import Floats, Noise

Terms = tuple[tuple[Noise, float], ...]
_POINTS = 1 << 14
_PER_STD = 192  # grid points per standard deviation: the grid reaches 42 standard deviations


def std(terms: Terms) -> float:
    """Standard deviation of the sum of coefficient * noise."""
    return math.sqrt(sum((c * noise.std) ** 2 for noise, c in terms))


@lru_cache(maxsize=2048)
def halfwidth(terms: Terms, level: float) -> float:
    """A w with P(\\|sum of c_i X_i\\| <= w) >= level, at most 1 % larger than the least one.

    One term: from the law itself. More: the laws are put on a common grid and convolved; each term
    moves by at most half a grid cell, which is added to the answer.
    """
    terms = tuple((noise, abs(c)) for noise, c in terms if c)
    if not terms:
        return 0.0
    if len(terms) == 1:
        noise, c = terms[0]
        return c * noise.interval(level)
    spread = std(terms)
    if spread == 0.0:
        return 0.0
    h = spread / _PER_STD
    edges = np.asarray((np.arange(_POINTS + 1) - _POINTS // 2 - 0.5) * h, dtype=np.float64)
    spectrum = np.ones(_POINTS // 2 + 1, dtype=np.complex128)
    for noise, c in terms:
        spectrum *= np.fft.rfft(np.fft.ifftshift(_masses(noise, c, edges)))
    both = np.fft.fftshift(np.fft.irfft(spectrum, _POINTS))
    centre = _POINTS // 2
    right = both[centre:]
    left = np.concatenate([[0.0], both[1:centre][::-1]])
    within = np.cumsum(right[: len(left)] + left)
    return float((np.searchsorted(within, level) + len(terms) / 2) * h)


def _masses(noise: Noise, c: float, edges: Floats) -> Floats:
    return np.diff(noise.cdf(np.floor(edges / c)))
