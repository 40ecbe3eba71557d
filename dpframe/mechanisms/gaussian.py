"""``gaussian``: the rounded Gaussian law, calibrated by the analytic formula.

Law: P(k) = Phi((k+1/2)/sigma) - Phi((k-1/2)/sigma): a Gaussian rounded to the nearest step.

Guarantee: with Delta2 the L2 sensitivity in steps, (eps, delta)-DP for
delta = Phi(a-b) - e**eps * Phi(-a-b), a = Delta2/(2 sigma), b = eps*sigma/Delta2, and
rho-zCDP for rho = Delta2**2 / (2 sigma**2). The exact answer is an integer, so rounding the sum
"answer + Gaussian" is post-processing of the continuous mechanism, for vectors too: no claim has
to be weakened. (This does not hold for the *discrete* Gaussian, another law.)

Source: Balle and Wang, "Improving the Gaussian mechanism for differential privacy" (2018); Bun and
Steinke, "Concentrated differential privacy" (2016).

Wins when more than about 7-12 coordinates move together, or when rho is what is paid.
Loses to ``laplace`` for a few numbers at one (eps, delta).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from dpframe.accounting.conversion import analytic_delta
from dpframe.accounting.events import Event
from dpframe.errors import Arg, MechanismError
from dpframe.mechanisms.base import (
    Floats,
    Ints,
    Noise,
    Norm,
    Shown,
    Target,
    checked_scale,
    float_up,
)
from dpframe.mechanisms.targets import gaussian_cost, zcdp_sigma
from dpframe.noise.strips import sampler

_LARGEST_EPS = Fraction(10**9)  # a larger eps gets the noise for this one


@lru_cache(maxsize=4096)
def analytic_sigma(eps: Fraction, delta: Fraction) -> float:
    """The least sigma at sensitivity 1 for (eps, delta), rounded up by a relative 2**-30.

    Privacy: delta falls with sigma; the bisection ends where the computed delta is at most
    delta * (1 - 2**-30), and the margin on sigma covers the rounding errors of the formula.
    """
    e, d = float(eps), float(delta) * (1 - 2.0**-30)
    low, high = 1e-9, 1.0
    while analytic_delta(high, e) > d:
        low, high = high, high * 2
    while high - low > high * 2.0**-40:
        middle = (low + high) / 2
        low, high = (low, middle) if analytic_delta(middle, e) <= d else (middle, high)
    return high * (1 + 2.0**-30)


@dataclass(frozen=True, repr=False)
class RoundedGaussian(Noise):
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

    def sample(self, size: int) -> Ints:
        return sampler("square", self.sigma).sample(size)

    def cdf(self, k: npt.ArrayLike) -> Floats:
        from scipy.special import ndtr

        return np.asarray(ndtr((np.floor(np.asarray(k, dtype=np.float64)) + 0.5) / self._sigma))

    def pmf(self, k: npt.ArrayLike) -> Floats:
        from scipy.special import ndtr

        k = -np.abs(np.asarray(k, dtype=np.float64))  # in the lower tail differences keep their digits
        return np.asarray(ndtr((k + 0.5) / self._sigma) - ndtr((k - 0.5) / self._sigma))

    def upper_tail(self, k: int, draws: int = 1) -> float:
        """P(sum >= k): each draw is at most 1/2 above its Gaussian, so the sum at most draws/2."""
        from scipy.special import ndtr

        return float(ndtr(-(k - draws / 2) / (math.sqrt(draws) * self._sigma))) * (1 + 2.0**-40)

    @cached_property
    def std(self) -> float:
        if self._sigma > 4:  # the correction to 1/12 is below exp(-2 pi**2 sigma**2)
            return math.sqrt(self._sigma**2 + 1 / 12)
        k = np.arange(1, 65)
        return math.sqrt(2 * float(np.sum(k**2 * self.pmf(k))))

    @cached_property
    def mean_abs(self) -> float:
        s = self._sigma
        if s > 64:
            return s * math.sqrt(2 / math.pi) - 1 / (24 * s) * math.sqrt(2 / math.pi)
        k = np.arange(1, int(12 * s) + 16)
        return 2 * float(np.sum(self.cdf(-k)))


class Gaussian(Shown):
    """Rounded Gaussian noise; see the module."""

    name = "gaussian"
    norm: Norm = "L2"

    def calibrate(self, sensitivity: Fraction, moving: int, target: Target) -> RoundedGaussian:
        """Privacy: sigma is rounded up, rho is computed from the rounded sigma and rounded up."""
        if target.rho is not None:
            sigma = zcdp_sigma(sensitivity, target.rho)
            cost = Event(None, Fraction(0), target.rho, None, "gaussian", 0, moving)
        elif target.eps is not None and target.delta > 0:
            unit = Fraction(analytic_sigma(min(target.eps, _LARGEST_EPS), target.delta))
            sigma = Fraction(float_up(sensitivity * unit))
            cost = gaussian_cost(target, unit, moving)
        else:
            raise MechanismError(
                "gaussian noise has no pure guarantee: it needs delta or rho.",
                hint=(
                    Arg("delta", 1e-6),
                    ", or ",
                    Arg("rho", 0.05),
                    ", or ",
                    Arg("mechanism", "laplace"),
                    ".",
                ),
            )
        return RoundedGaussian(checked_scale(sigma, sensitivity, self.name), cost)
