"""``flipped_huber``: Laplace in the middle, Gaussian in the tails.

Law: density proportional to exp(-r(x)/gamma**2) with r(x) = a*\\|x\\| for \\|x\\| <= a and
(x**2 + a**2)/2 beyond, rounded to the nearest step; in integer weights, cut off where what is left
would add less than a millionth to delta.

Guarantee: (eps, delta)-DP for one coordinate that moves by at most Delta steps. The density is
log-concave (r is convex), so the largest shift is the worst; the delta of the table itself is
computed at every shift all the same. Of all (a, gamma) that reach the claim the one with the least
RMSE is taken (a -> 0 is the Gaussian, a -> infinity Laplace). Vectors are charged coordinate by coordinate.

Source: Muthukrishnan and Kalyani, "Grafting Laplace and Gaussian distributions: a new noise mechanism
for differential privacy" (2023).

Wins over ``gaussian`` for one number at one (eps, delta), and over ``laplace`` in E\\|X\\| and the tails
by a little at large delta. Loses to ``gaussian`` when many coordinates move, to ``laplace`` in accounting
(no pure guarantee), and to ``staircase`` from about eps = 1.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpframe.mechanisms import fitting
from dpframe.mechanisms.base import Floats, Norm, Shown, Target
from dpframe.mechanisms.gaussian import analytic_sigma
from dpframe.mechanisms.table import TableNoise

_GOLDEN = (math.sqrt(5) - 1) / 2


class _Density:
    """The law on the reals at sensitivity 1; it only chooses a, so float64 needs no margin here."""

    def __init__(self, a: float, gamma: float) -> None:
        self.a, self.gamma, self.s = a, gamma, gamma**2 / a  # s: scale of the Laplace part
        self.edge = math.exp(-a / self.s)  # density at a, relative to that at 0
        self.half = self._upper(0.0)

    def _beyond(self, t: float) -> float:
        """The integral of exp(-(x**2 + a**2)/(2 gamma**2)) from t >= a on."""
        root = self.gamma * math.sqrt(math.pi / 2)
        return root * math.exp(-self.a / (2 * self.s)) * math.erfc(t / (self.gamma * math.sqrt(2)))

    def _upper(self, t: float) -> float:
        if t >= self.a:
            return self._beyond(t)
        return self.s * (math.exp(-t / self.s) - self.edge) + self._beyond(self.a)

    def _r(self, x: float) -> float:
        x = abs(x)
        return self.a * x if x <= self.a else (x * x + self.a**2) / 2

    def delta(self, eps: float) -> float:
        """P(X >= t) - e**eps P(X >= t+1), where the loss at t is eps (it grows with t)."""
        goal = eps * self.gamma**2
        low, high = -0.5, max(self.a, goal) + 1.0
        while high - low > 1e-9 * (1 + high):
            t = (low + high) / 2
            low, high = (low, t) if self._r(t + 1) - self._r(t) >= goal else (t, high)
        above = self._upper(high) if high >= 0 else 2 * self.half - self._upper(-high)
        return float((above - math.exp(eps) * self._upper(high + 1)) / (2 * self.half))

    def variance(self) -> float:
        a, s, g = self.a, self.s, self.gamma
        middle = 2 * s**3 - self.edge * s * (a * a + 2 * a * s + 2 * s * s)
        tail = self.edge * g * g * a + g * g * self._beyond(a)
        return float((middle + tail) / self.half)


def best_shape(eps: float, delta: float, sigma: float) -> tuple[float, float]:
    """Return the (a, gamma) at sensitivity 1 with the least RMSE; ``sigma`` is the Gaussian's."""

    def fitted(u: float) -> tuple[float, float]:
        """RMSE and gamma at a = gamma*u."""
        low, high = 0.0, sigma
        while _Density(u * high, high).delta(eps) > delta:
            low, high = high, 2 * high
        while high - low > 1e-4 * high:
            g = (low + high) / 2
            low, high = (low, g) if _Density(u * g, g).delta(eps) <= delta else (g, high)
        return _Density(u * high, high).variance(), high

    # Golden section over u = a/gamma (0 Gaussian; beyond about 8 the tails hold nothing).
    left, right = 1e-3, 2 + math.sqrt(-2 * math.log(delta))
    x, y = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
    fx, fy = fitted(x), fitted(y)
    for _ in range(8):
        if fx[0] <= fy[0]:
            right, y, fy = y, x, fx
            x = right - _GOLDEN * (right - left)
            fx = fitted(x)
        else:
            left, x, fx = x, y, fy
            y = left + _GOLDEN * (right - left)
            fy = fitted(y)
    u, (_, gamma) = (x, fx) if fx[0] <= fy[0] else (y, fy)
    return u * gamma, gamma


def rounded(a: float, gamma: float, eps: float, delta: float) -> Floats:
    """P(X = 0), P(X = 1), ... of the rounded law; ``a`` and ``gamma`` in steps."""
    from scipy.special import erfc

    s = gamma**2 / a
    # Beyond a the tail is a Gaussian's, within it Laplace's: both run out where exp(-depth) is left.
    depth = -math.log(1e-9 * delta) + eps
    end = fitting.room(min(s * depth, gamma * math.sqrt(2 * depth)) + 2, "flipped_huber")
    edges = np.concatenate([[0.0], np.arange(end) + 0.5])
    inner, outer = np.minimum(edges, a), np.maximum(edges, a)
    laplace = s * np.exp(-inner[:-1] / s) * -np.expm1((inner[:-1] - inner[1:]) / s)
    tail = math.exp(-a / (2 * s)) * gamma * math.sqrt(math.pi / 2) * erfc(outer / (gamma * math.sqrt(2)))
    p = laplace + (tail[:-1] - tail[1:])
    p[0] *= 2
    return fitting.cut(p / (2 * p.sum() - p[0]), eps, delta)


class FlippedHuber(Shown):
    """Flipped Huber noise; see the module."""

    name = "flipped_huber"
    norm: Norm = "L2"

    def calibrate(self, sensitivity: Fraction, moving: int, target: Target) -> TableNoise:
        """Privacy: the shape is only chosen; gamma is fitted to the table's own delta at every shift."""
        steps, eps, delta = fitting.asked(sensitivity, target, self.name)
        assert target.eps is not None
        a, gamma = best_shape(eps, delta, analytic_sigma(target.eps, target.delta))

        @lru_cache(maxsize=2)  # the scale that is found is looked at three times
        def law(g: float, steps: int) -> Floats:
            return rounded(g * (a / gamma) * steps, g * steps, eps, delta)

        g = fitting.fit(law, 0.05 * gamma, 1.01 * gamma, steps, eps, delta)
        return fitting.table(law(g, steps), g * steps, target, steps, self.name)
