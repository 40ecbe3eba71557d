"""``discrete_gaussian``: the Gaussian's density on the integers, made a law.

Law: P(k) = exp(-k**2 / (2 sigma**2)) / Z on every integer k, Z the sum over all of them.

Guarantee: rho-zCDP for rho = Delta2**2 / (2 sigma**2), with Delta2 the L2 sensitivity in steps, for vectors
of independent draws too. Only ``rho`` targets are taken: the analytic formula calibrates the continuous
and the rounded Gaussian and not this law, whose true delta is 1.38 times the formula's at (3, 1e-6) and
3.0 times at (8, 1e-6), at sensitivity 1.

Source: Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy" (2020), for zCDP,
vectors and sub-Gaussian tails. The sampler is this package's own (``dpframe.noise.strips``).

Wins, barely, against ``gaussian`` at one rho: its variance is sigma**2 or less, the rounded law's
sigma**2 + 1/12, which shows when sigma is about a step (counts at rho > 0.1). Loses where (eps, delta) is what is
asked: only the conversion from rho holds for it, the Gaussian's own curve does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpframe.accounting.events import Event
from dpframe.errors import Arg, MechanismError
from dpframe.mechanisms.base import Floats, Ints, Noise, Norm, Shown, Target, checked_scale
from dpframe.mechanisms.targets import zcdp_sigma
from dpframe.noise.strips import sampler

_TABLE = 1024.0  # up to this sigma sums are taken term by term
_SLACK = 2.0**-30  # more than the relative error of any tail here


@dataclass(frozen=True, repr=False)
class DiscreteGaussianNoise(Noise):
    """The law with parameter ``sigma`` (its standard deviation, unless sigma is below about a step)."""

    sigma: Fraction
    cost: Event

    @property
    def scale(self) -> Fraction:
        return self.sigma

    @property
    def event(self) -> Event:
        return self.cost

    @cached_property
    def _sigma(self) -> float:
        return float(self.sigma)

    @cached_property
    def _right(self) -> Floats:
        """exp(-k**2 / (2 sigma**2)) for k = 0, 1, ... down to the least float (sigma <= 1024)."""
        k = np.arange(int(39 * self._sigma) + 3, dtype=np.float64)
        return np.asarray(np.exp(-((k / self._sigma) ** 2) / 2))

    @cached_property
    def _total(self) -> float:
        """Z. By Poisson summation sigma * sqrt(2 pi) * (1 + 2 exp(-2 pi**2 sigma**2) + ...)."""
        if self._sigma > 2:
            return self._sigma * math.sqrt(2 * math.pi)
        return 1 + 2 * math.fsum(self._right[1:].tolist())

    @cached_property
    def _tails(self) -> Floats:
        """P(X >= k) for k = 0, 1, ..., summed from the far end, and a final 0."""
        return np.append(np.cumsum(self._right[::-1])[::-1] / self._total, 0.0)

    def sample(self, size: int) -> Ints:
        return sampler("lattice", self.sigma).sample(size)

    def pmf(self, k: npt.ArrayLike) -> Floats:
        z = np.asarray(k, dtype=np.float64) / self._sigma
        return np.asarray(np.exp(-z * z / 2) / self._total)

    def cdf(self, k: npt.ArrayLike) -> Floats:
        k = np.floor(np.asarray(k, dtype=np.float64))
        lower = self._lower(np.where(k >= 0, -k - 1, k))
        return np.where(k >= 0, 1 - lower, lower)

    def _lower(self, k: Floats) -> Floats:
        """P(X <= k) for k < 0."""
        if self._sigma <= _TABLE:
            return np.asarray(self._tails[np.clip(-k, 0, len(self._tails) - 1).astype(np.int64)])
        # Sums by the midpoint rule of Euler and Maclaurin: the sum of f up to k is the integral of f up to
        # k + 1/2, less f'/24, plus 7 f'''/5760, less 31 f'''''/967680 there. What is left out is below
        # 1e-15 of the tail down to the least float, as z/sigma is below 0.04.
        from scipy.special import ndtr

        s = self._sigma
        z = (k + 0.5) / s
        first = z / 24
        third = -7 / 5760 * (z**3 - 3 * z) / s**2
        fifth = 31 / 967680 * (z**5 - 10 * z**3 + 15 * z) / s**4
        return np.asarray(
            ndtr(z) + np.exp(-z * z / 2) / math.sqrt(2 * math.pi) * (first + third + fifth) / s**2
        )

    def upper_tail(self, k: int, draws: int = 1) -> float:
        """P(sum >= k); several draws by their sub-Gaussian bound exp(-k**2 / (2 draws sigma**2))."""
        if draws != 1:
            x = max(k, 0) / self._sigma
            return min(1.0, math.exp(-x * x / (2 * draws)) * (1 + _SLACK))
        return min(1.0, float(self.cdf(-k)) * (1 + _SLACK))

    @cached_property
    def std(self) -> float:
        if self._sigma > 4:  # the correction is below exp(-2 pi**2 sigma**2)
            return self._sigma
        k = np.arange(len(self._right))
        return math.sqrt(2 * math.fsum((k**2 * self._right).tolist()) / self._total)

    @cached_property
    def mean_abs(self) -> float:
        s = self._sigma
        if s > 64:  # Euler and Maclaurin at 0; the next term is below 1e-13 of it
            return math.sqrt(2 / math.pi) * (s - 1 / (12 * s) - 1 / (240 * s**3))
        k = np.arange(len(self._right))
        return 2 * math.fsum((k * self._right).tolist()) / self._total


class DiscreteGaussian(Shown):
    """Discrete Gaussian noise; see the module."""

    name = "discrete_gaussian"
    norm: Norm = "L2"

    def calibrate(self, sensitivity: Fraction, moving: int, target: Target) -> DiscreteGaussianNoise:
        """Privacy: sigma = Delta2 / sqrt(2 rho), rounded up."""
        if target.rho is None:
            raise MechanismError(
                "discrete_gaussian is calibrated by rho alone: the formula for eps and delta does not hold for it.",
                hint=(Arg("rho", 0.05), ", or ", Arg("mechanism", "gaussian")),
            )
        sigma = zcdp_sigma(sensitivity, target.rho)
        cost = Event(
            None, Fraction(0), target.rho, None, "discrete_gaussian", max(1, int(sensitivity)), moving
        )
        return DiscreteGaussianNoise(checked_scale(sigma, sensitivity, self.name), cost)
