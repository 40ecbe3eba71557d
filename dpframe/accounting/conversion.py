"""zCDP and GDP to (eps, delta) and back, rounded outward: costs up, budgets down.

Sources: Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy" (2020), Prop. 12:
rho-zCDP gives (eps, delta) for eps = rho*a + ln(1 - 1/a) - (ln delta + ln a)/(a - 1), for every a > 1.
Dong, Roth, Su, "Gaussian differential privacy" (2022): mu-GDP is (eps, delta)-DP for every eps with
delta = Phi(mu/2 - eps/mu) - e**eps * Phi(-mu/2 - eps/mu), the curve of Gaussian noise of sigma = 1/mu.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from dpframe.accounting.events import round_down, round_up

_MARGIN = 1 + 1e-12
MOST = Fraction(
    10**15
)  # a larger budget is converted as this one: floats hold it, and less is granted, not more


@lru_cache(maxsize=4096)
def eps_of_rho(rho: float, delta: float) -> float:
    """An eps for which anything rho-zCDP is (eps, delta)-DP; the least over the order, rounded up.

    Privacy: the bound holds at every order a, so a search that stops early errs upwards only.
    """
    if rho <= 0:
        return 0.0
    if not 0 < delta < 1:
        return math.inf
    return max(0.0, _best(rho, delta)[0] * _MARGIN + 1e-15)


def best_order(rho: float, delta: float) -> float:
    """The order at which ``rho`` converts best, less 1."""
    return math.exp(_best(rho, delta)[1])


def _best(rho: float, delta: float) -> tuple[float, float]:
    """(the least bound, log of the order less 1)."""
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
    return (fx, x) if fx <= fy else (fy, y)


@lru_cache(maxsize=1024)
def rho_of_eps(eps: Fraction, delta: Fraction) -> Fraction:
    """The largest rho (rounded down) with eps_of_rho(rho, delta) <= eps; 0 when delta is 0."""
    if delta <= 0:
        return Fraction(0)
    target, d = float(min(eps, MOST)), float(delta) * (1 - 1e-15)
    low, high = 0.0, target + 1.0
    for _ in range(80):
        middle = (low + high) / 2
        if eps_of_rho(middle, d) <= target * (1 - 1e-15):
            low = middle
        else:
            high = middle
    return round_down(low)


def delta_of_mu(mu: float, eps: float) -> float:
    """The delta of mu-GDP at ``eps``, rounded up."""
    return min(1.0, analytic_delta(1 / mu, eps)) if mu > 0 else 0.0


@lru_cache(maxsize=4096)
def eps_of_mu(mu: float, delta: float) -> float:
    """The least eps (rounded up) for which anything mu-GDP is (eps, delta)-DP."""
    if mu <= 0:
        return 0.0
    if not 0 < delta < 1:
        return math.inf
    if delta_of_mu(mu, 0.0) <= delta:
        return 0.0
    low, high = 0.0, mu * mu / 2 + mu
    while delta_of_mu(mu, high) > delta:
        low, high = high, 2 * high
    while high - low > high * 2.0**-46:
        middle = (low + high) / 2
        low, high = (low, middle) if delta_of_mu(mu, middle) <= delta else (middle, high)
    return high * _MARGIN + 1e-15


@lru_cache(maxsize=1024)
def mu_of_eps(eps: Fraction, delta: Fraction) -> Fraction:
    """The largest mu (rounded down) for which anything mu-GDP is (eps, delta)-DP; 0 when delta is 0."""
    if delta <= 0:
        return Fraction(0)
    e, d = float(min(eps, MOST)), float(delta) * (1 - 2.0**-48)
    low, high = 0.0, 1.0
    while delta_of_mu(high, e) <= d:
        low, high = high, 2 * high
    while high - low > high * 2.0**-46:
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of_mu(middle, e) <= d else (low, middle)
    return round_down(low * (1 - 2.0**-44))


def pure_rho(eps: Fraction) -> Fraction:
    """The zCDP cost of anything eps-DP: eps*tanh(eps/2), rounded up.

    Privacy: for a pair that is eps-DP, D_alpha <= alpha * eps*tanh(eps/2) for every alpha > 1
    (worst for randomised response). float64's tanh is right to 2 units; 2**-48 covers it.
    """
    if eps > 1000:  # tanh(eps/2) is 1 to every digit
        return round_up(eps)
    return round_up(eps * Fraction(min(1.0, math.tanh(float(eps) / 2) * (1 + 2.0**-48))))


def eps_of_pure_rho(rho: Fraction) -> Fraction:
    """The largest eps (rounded down) whose :func:`pure_rho` is at most ``rho``."""
    rho = min(rho, MOST)
    low, high = Fraction(0), max(Fraction(2), 2 * rho)
    for _ in range(90):
        middle = Fraction(int((low + high) / 2 * 2**80), 2**80)
        low, high = (middle, high) if pure_rho(middle) <= rho else (low, middle)
    return low


def analytic_delta(sigma: float, eps: float) -> float:
    """delta of Gaussian noise of ``sigma`` at sensitivity 1, rounded up.

    In log space, so that large eps loses no digits. At small eps the two terms nearly cancel: their
    logarithms are taken to be wrong by up to 2**-46 of their size, in the direction that adds to delta.
    """
    from scipy.special import log_ndtr

    a, b = 1 / (2 * sigma), eps * sigma
    first, second = float(log_ndtr(a - b)), float(log_ndtr(-a - b))
    error = 2.0**-46 * (1 + abs(first) + abs(second) + eps)
    gap = eps + second - first - error
    return math.exp(first + error) * -math.expm1(gap) if gap < 0 else 0.0
