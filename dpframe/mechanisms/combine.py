"""How far a weighted sum of released integers is from that of the exact ones: standard deviations and half-widths.

The one rule of every margin: an integer is off by its noise, and before that by a law's rounding to a coarse grid.
Noises are independent. Roundings are not: they are functions of the data, so in a half-width they add up, each at
its largest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from dpframe.mechanisms.base import Floats, Noise

Terms = tuple[tuple[Noise, float], ...]
_POINTS = 1 << 14
_MOST = 8  # of more noises, the sum is near a normal law
_PER_STD = 192  # grid points per standard deviation: the grid reaches 42 standard deviations


def rounding(terms: Terms) -> float:
    """The most that roundings to coarse grids move the sum of coefficient * integer."""
    return sum(abs(c) * noise.rounding for noise, c in terms)


def sizes(laws: Sequence[Noise]) -> tuple[float, ...]:
    """Of each noise, in steps: the standard deviation of its draws and the most that is rounded before."""
    return tuple(law.drawn_std + law.rounding for law in laws)


@lru_cache(maxsize=1024)
def noise_factor(laws: tuple[Noise, ...], level: float) -> float:
    """Half-width over standard deviation, of the draws alone, of any sum of multiples of these noises.

    The largest among the normal law and 1 to k equal multiples of each noise (k: how many there are): sums have tails
    between the two, and laws that are mostly 0 need more for several draws than for one.
    """
    factors = [NormalDist().inv_cdf((1 + level) / 2)]
    for law in dict.fromkeys(laws):
        for j in range(1, min(len(laws), _MOST) + 1) if law.drawn_std > 0 else ():
            w = halfwidth(((law, 1.0),) * j, level) - j * law.rounding
            factors.append(w / (law.drawn_std * math.sqrt(j)))
    return max(factors)


@lru_cache(maxsize=1024)
def width_factor(laws: tuple[Noise, ...], level: float) -> float:
    """An f: sums of c_i * (released - exact integer) are within f * root of the sum of (c_i * size_i)**2 with ``level``.

    For sums whose weights depend on what was released, where ``halfwidth`` would have to be computed for each group.
    The most that k roundings move the sum is at most root k times the root of their squares; noise and roundings
    add up, in the worst mix of both.
    """
    parts = [(law.drawn_std / size, law.rounding / size) for law, size in zip(laws, sizes(laws)) if size > 0]
    drawn, rounded = (max(x, default=1.0) for x in (zip(*parts) if parts else ((), ())))
    return noise_factor(laws, level) * drawn + math.sqrt(len(laws)) * rounded


def std(terms: Terms) -> float:
    """Standard deviation of the sum of coefficient * noise."""
    return math.sqrt(sum((c * noise.std) ** 2 for noise, c in terms))


@lru_cache(maxsize=2048)
def halfwidth(terms: Terms, level: float) -> float:
    """A w with P(\\|sum of c_i * (released - exact integer)\\| <= w) >= level, for any exact integers.

    At most 1 % larger than the least one but for roundings. One term: from the law itself. More: the laws are put
    on a common grid and convolved; each term moves by at most half a grid cell, which is added to the answer.
    """
    terms = tuple((noise, abs(c)) for noise, c in terms if c)
    if not terms:
        return 0.0
    if len(terms) == 1:
        noise, c = terms[0]
        return c * noise.interval(level)
    spread = math.sqrt(sum((c * noise.drawn_std) ** 2 for noise, c in terms))
    if spread == 0.0:
        return rounding(terms)
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
    return float((np.searchsorted(within, level) + len(terms) / 2) * h) + rounding(terms)


def _masses(noise: Noise, c: float, edges: Floats) -> Floats:
    return np.diff(noise.cdf(np.floor(edges / c)))
