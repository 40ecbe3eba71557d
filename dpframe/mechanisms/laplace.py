"""``laplace``: the discrete (two-sided geometric) Laplace law.

Law: P(k) = (1-q)/(1+q) * q**|k| with q = exp(-1/b), b = Delta1/eps, on every integer k.

Guarantee: eps-DP for any vector whose L1 sensitivity is at most Delta1 steps: the ratio of the
probabilities of one output is at most exp(||shift||_1 / b), whatever coordinates move.
It is also rho-zCDP with rho = eps*tanh(eps/2), as anything eps-DP is (attained at Delta1 = 1 step,
where the loss is +-eps: randomised response).

Source: Ghosh, Roughgarden, Sundararajan, "Universally utility-maximizing privacy mechanisms" (2009).

Wins for pure guarantees on counts and few coordinates. Loses to ``gaussian`` when many coordinates
move together, or when rho is what is paid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpframe.accounting.events import Event
from dpframe.mechanisms.base import Floats, Ints, Noise, Norm, Shown, Target, checked_scale
from dpframe.mechanisms.targets import pure
from dpframe.noise.strips import sampler


@dataclass(frozen=True, repr=False)
class DiscreteLaplace(Noise):
    b: Fraction
    cost: Event

    @property
    def scale(self) -> Fraction:
        return self.b

    @property
    def event(self) -> Event:
        return self.cost

    @cached_property
    def _rate(self) -> float:
        return 1.0 / float(self.b)

    def sample(self, size: int) -> Ints:
        return sampler("linear", self.b).sample(size)

    def pmf(self, k: npt.ArrayLike) -> Floats:
        k = np.abs(np.asarray(k, dtype=np.float64))
        return np.asarray(np.tanh(self._rate / 2) * np.exp(-self._rate * k))

    def cdf(self, k: npt.ArrayLike) -> Floats:
        k = np.floor(np.asarray(k, dtype=np.float64))
        tail = np.exp(-self._rate * np.where(k >= 0, k + 1, -k)) / (1 + math.exp(-self._rate))
        return np.where(k >= 0, 1 - tail, tail)

    def upper_tail(self, k: int, draws: int = 1) -> float:
        """P(sum of the draws >= k), from sums all of whose terms are positive.

        With q = exp(-1/b), n draws are a difference of two negative binomials, so P(sum = k) is (1-q)^2n q^k times the
        sum over m of C(m+n-1, n-1) C(m+k+n-1, n-1) q^2m, for k >= 0. Split twice by Vandermonde's identity, that is the
        sum over r + s = n-1 of C(k+r, r) times that over i <= s of C(s-1, s-i) C(n-1+i, i) q^2i / (1-q^2)^(n+i); and the sum of
        q^j C(j+r, r) over j >= k is q^k times that over w <= r of C(k+r, w) q^(r-w) / (1-q)^(r-w+1). No power of
        1-q is left below.
        """
        if k <= 0:
            return min(1.0, 1 - self.upper_tail(1 - k, draws) + 2.0**-38)
        rate = self._rate
        q, p = math.exp(-rate), -math.expm1(-rate)  # q and 1 - q
        total = 0.0
        for s in range(draws):
            r = draws - 1 - s
            left = [
                math.comb(draws - 1 + i, i) * q ** (2 * i) * p ** (s - i) / (1 + q) ** (draws + i)
                for i in range(s + 1)
            ]
            mixed = sum(x * (math.comb(s - 1, s - i) if s else 1) for i, x in enumerate(left))
            ways = 1.0  # C(k+r, w) * (1-q)^w
            for w in range(r + 1):
                total += mixed * q ** (r - w) * ways
                ways *= (k + r - w) * p / (w + 1)
        return min(1.0, math.exp(-rate * k) * total * (1 + 2.0**-40))

    @property
    def std(self) -> float:
        if self._rate > 700:
            return 0.0
        return 1 / (math.sqrt(2) * math.sinh(self._rate / 2))

    @property
    def mean_abs(self) -> float:
        return 1 / math.sinh(self._rate) if self._rate < 700 else 0.0


class Laplace(Shown):
    """Discrete Laplace noise; see the module."""

    name = "laplace"
    norm: Norm = "L1"

    def calibrate(self, sensitivity: Fraction, moving: int, target: Target) -> DiscreteLaplace:
        """Privacy: b = Delta1/eps exactly, as a rational."""
        eps, cost = pure(self.name, target, "laplace", max(1, int(sensitivity)), moving)
        return DiscreteLaplace(checked_scale(sensitivity / eps, sensitivity, self.name), cost)
