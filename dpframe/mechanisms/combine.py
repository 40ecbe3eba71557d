"""How far a weighted sum of released integers is from that of the exact ones: standard deviations and half-widths.

The one rule of every margin: an integer is off by its noise, and before that by a law's rounding to a coarse grid.
Noises are independent, but for those that are shares of one draw: what a sum has of one draw is one form of it, with the
covariances of the joint law, and this module alone knows which they are. Roundings are not independent: they are
functions of the data, so in a half-width they add up, each at its largest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from dpframe.mechanisms.base import Floats, Noise
from dpframe.mechanisms.joint import Form, Joint, Share, merged

Terms = tuple[tuple[Noise, float], ...]
_POINTS = 1 << 14
_MOST = 8  # of more noises, the sum is near a normal law
_PER_STD = 192  # grid points per standard deviation: the grid reaches 42 standard deviations


def rounding(terms: Terms) -> float:
    """The most that roundings to coarse grids move the sum of coefficient * integer."""
    return sum(abs(c) * noise.rounding for noise, c in terms)


def summed(laws: Sequence[Noise]) -> tuple[Noise, int]:
    """The noise of a plain sum: of integers of one draw their one combination, else a law and how many draws of it."""
    one, *rest = laws
    if isinstance(one, Share):
        weights = merged([(s, 1.0) for s in laws if isinstance(s, Share)])
        return Share(one.joint, one.number, tuple(int(w) for w in weights), one.row), 1
    return one, 1 + len(rest)


def covariances(laws: Sequence[Noise]) -> Floats:
    """Covariances of these noises, in steps: diagonal but for shares of one draw."""
    return _matrix(tuple(laws), sizes=False)


def sizes(laws: Sequence[Noise]) -> Floats:
    """Like :func:`covariances`, of standard deviations of draws plus the most that is rounded before."""
    return _matrix(tuple(laws), sizes=True)


@lru_cache(maxsize=256)
def _matrix(laws: tuple[Noise, ...], *, sizes: bool) -> Floats:
    out = np.diag([(law.drawn_std + law.rounding if sizes else law.std) ** 2 for law in laws])
    for draw in {(law.joint, law.number) for law in laws if isinstance(law, Share)}:
        at = [i for i, s in enumerate(laws) if isinstance(s, Share) and (s.joint, s.number) == draw]
        weights = np.array([s.weights for s in laws if isinstance(s, Share) and (s.joint, s.number) == draw])
        out[np.ix_(at, at)] = weights @ draw[0].covariance @ weights.T
    out.setflags(write=False)
    return out


def product(matrix: Floats, one: Sequence[Any], other: Sequence[Any]) -> Floats:
    """The sum over i, j of one_i * matrix_ij * other_j; weights are numbers, or arrays with one for every group."""
    total = sum(matrix[i, j] * (one[i] * other[j]) for i, j in zip(*np.nonzero(matrix)))
    return np.asarray(total, dtype=np.float64)


def spread(laws: Sequence[Noise], weights: Sequence[Any]) -> Floats:
    """Standard deviation of the sum of weight * noise, weights as in :func:`product`."""
    return np.sqrt(np.maximum(product(covariances(laws), weights, weights), 0.0))


@lru_cache(maxsize=1024)
def noise_factor(laws: tuple[Noise, ...], level: float) -> float:
    """Half-width over standard deviation, of the draws alone, of any sum of multiples of these noises.

    The largest among the normal law, 1 to k equal multiples of each noise (k: how many there are), and what a joint law
    says of its forms: sums have tails between them, and laws that are mostly 0 need more for several draws than for one.
    """
    factors = [NormalDist().inv_cdf((1 + level) / 2)]
    factors += [joint.factor(level) for joint in {law.joint for law in laws if isinstance(law, Share)}]
    for law in dict.fromkeys(law for law in laws if not isinstance(law, Share)):
        for j in range(1, min(len(laws), _MOST) + 1) if law.drawn_std > 0 else ():
            w = halfwidth(((law, 1.0),) * j, level) - j * law.rounding
            factors.append(w / (law.drawn_std * math.sqrt(j)))
    return max(factors)


@lru_cache(maxsize=1024)
def width_factor(laws: tuple[Noise, ...], level: float) -> float:
    """An f: sums of c_i * (released - exact integer) are within f * root of c S c, S the :func:`sizes`, with ``level``.

    For sums whose weights depend on what was released, where ``halfwidth`` would have to be computed for each group.
    The most that k roundings move the sum is at most root k times the root of their squares; noise and roundings
    add up, in the worst mix of both.
    """
    each = [(law.drawn_std, law.rounding) for law in laws if law.drawn_std + law.rounding > 0]
    drawn = max((d / (d + r) for d, r in each), default=1.0)
    rounded = max((r / (d + r) for d, r in each), default=1.0)
    return noise_factor(laws, level) * drawn + math.sqrt(len(laws)) * rounded


def std(terms: Terms) -> float:
    """Standard deviation of the sum of coefficient * noise."""
    return float(spread([noise for noise, _ in terms], [c for _, c in terms])) if terms else 0.0


@lru_cache(maxsize=2048)
def halfwidth(terms: Terms, level: float) -> float:
    """A w with P(\\|sum of c_i * (released - exact integer)\\| <= w) >= level, for any exact integers.

    At most 1 % larger than the least one but for roundings. One term, or terms of one draw: from the law itself. More: the
    laws are put on a common grid and convolved; each moves by at most half a grid cell, which is added to the answer.
    Where the law of a form of a draw is not known, by :func:`noise_factor`.
    """
    terms = tuple((noise, abs(c) if not isinstance(noise, Share) else c) for noise, c in terms if c)
    alone = [(noise, c) for noise, c in terms if not isinstance(noise, Share)]
    drawn = _draws(terms)
    if not drawn and len(alone) == 1:
        noise, c = alone[0]
        return c * noise.interval(level)
    if not alone and len(drawn) == 1:
        ((joint, form),) = drawn
        return joint.halfwidth(form, level)
    spread = math.sqrt(
        sum((c * noise.drawn_std) ** 2 for noise, c in alone) + sum(j.std(form) ** 2 for j, form in drawn)
    )
    if spread == 0.0:
        return rounding(terms)
    if not all(joint.known(form) for joint, form in drawn):
        return noise_factor(tuple(noise for noise, _ in terms), level) * spread + rounding(terms)
    h = spread / _PER_STD
    edges = np.asarray((np.arange(_POINTS + 1) - _POINTS // 2 - 0.5) * h, dtype=np.float64)
    spectrum = np.ones(_POINTS // 2 + 1, dtype=np.complex128)
    for masses in [*(_masses(n, c, edges) for n, c in alone), *(_form_masses(j, f, edges) for j, f in drawn)]:
        spectrum *= np.fft.rfft(np.fft.ifftshift(masses))
    both = np.fft.fftshift(np.fft.irfft(spectrum, _POINTS))
    centre = _POINTS // 2
    right = both[centre:]
    left = np.concatenate([[0.0], both[1:centre][::-1]])
    within = np.cumsum(right[: len(left)] + left)
    return float((np.searchsorted(within, level) + (len(alone) + len(drawn)) / 2) * h) + rounding(terms)


def _draws(terms: Terms) -> list[tuple[Joint, Form]]:
    """One form for every draw that these terms have shares of."""
    of: dict[tuple[Joint, int], list[tuple[Share, float]]] = {}
    for noise, c in terms:
        if isinstance(noise, Share):
            of.setdefault((noise.joint, noise.number), []).append((noise, c))
    forms = [(joint, merged(shares)) for (joint, _), shares in of.items()]
    return [(joint, form) for joint, form in forms if any(form)]


def _masses(noise: Noise, c: float, edges: Floats) -> Floats:
    return np.diff(noise.cdf(np.floor(edges / c)))


def _form_masses(joint: Joint, form: Form, edges: Floats) -> Floats:
    """Of a symmetric law: P(form <= e) is half of P(\\|form\\| >= -e) for e < 0. No edge is 0."""
    half = joint.outside(form, np.abs(edges)) / 2
    return np.diff(np.where(edges < 0, half, 1 - half))
