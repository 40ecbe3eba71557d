"""zCDP to (eps, delta) and back, rounded outward.

Source: Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy" (2020), Prop. 12:
rho-zCDP gives (eps, delta) for eps = rho*a + ln(1 - 1/a) - (ln delta + ln a)/(a - 1), for every a > 1.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from dpframe.budget import round_down

_MARGIN = 1 + 1e-12


@lru_cache(maxsize=4096)
def eps_of_rho(rho: float, delta: float) -> float:
    """An eps for which anything rho-zCDP is (eps, delta)-DP; the least over the order, rounded up.

    Privacy: the bound holds at every order a, so a search that stops early errs upwards only.
    """
    if rho <= 0:
        return 0.0
    if not 0 < delta < 1:
        return math.inf
    log_delta = math.log(delta)

    def bound(log_a1: float) -> float:  # a = 1 + exp(log_a1)
        a1 = math.exp(log_a1)
        a = 1 + a1
        return rho * a + math.log(a1 / a) - (log_delta + math.log(a)) / a1

    low, high = -25.0, 45.0  # the bound is quasi-convex in the order
    golden = (math.sqrt(5) - 1) / 2
    x, y = high - golden * (high - low), low + golden * (high - low)
    fx, fy = bound(x), bound(y)
    for _ in range(90):
        if fx <= fy:
            high, y, fy = y, x, fx
            x = high - golden * (high - low)
            fx = bound(x)
        else:
            low, x, fx = x, y, fy
            y = low + golden * (high - low)
            fy = bound(y)
    return max(0.0, min(fx, fy) * _MARGIN + 1e-15)


@lru_cache(maxsize=1024)
def rho_of_eps(eps: Fraction, delta: Fraction) -> Fraction:
    """The largest rho (rounded down) with eps_of_rho(rho, delta) <= eps; 0 when delta is 0."""
    if delta <= 0:
        return Fraction(0)
    target, d = float(eps), float(delta) * (1 - 1e-15)
    low, high = 0.0, target + 1.0
    for _ in range(80):
        middle = (low + high) / 2
        if eps_of_rho(middle, d) <= target * (1 - 1e-15):
            low = middle
        else:
            high = middle
    return round_down(low)
