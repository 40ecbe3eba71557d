"""Renyi divergence at one order: what an event costs, and what (eps, delta) leaves for it.

Divergences are kept as *rho at the order*: the divergence over the order, so that a Gaussian costs its
rho at every order, and anything else its rho or less.

An event's good part (all but its delta) is bounded by the least of

* order * rho, as it is rho-zCDP;
* for anything eps-DP, the divergence of randomised response at eps, which is the worst;
* for the discrete Laplace law with m steps to its L1 sensitivity, that of one number that moves by m.

**The discrete Laplace law.** With r = eps/m, q = e**-r and s = q**(2a - 1), one number that moves by j steps has

    e**((a-1) D_a) = A e**((a-1) r j) + B e**(-a r j),  B = (q - s) / ((1+q)(1-s)),  A = 1 - B,

by summing the three pieces of its loss (r j, -r j, and r(j - 2k) between). Privacy: its logarithm is
convex in j and 0 at j = 0, hence superadditive: coordinates that move by j_1 + j_2 + ... = m together
lose at most what one loses that moves by m. At a fixed t = r j it grows with r, as B =
sinh((a-1) r) / (2 cosh(r/2) sinh((a-1/2) r)) falls in r: of coordinates on different grids the
coarsest bounds all. At m = 1 it is randomised response, for m to infinity the continuous law.

Conversion at a fixed order: Canonne, Kamath, Steinke (2020), Prop. 12. A filter at one order fixed
beforehand: Feldman and Zrnic, "Individual privacy accounting via a Renyi filter" (2021).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from dpframe.accounting.conversion import MOST, best_order, eps_of_pure_rho, rho_of_eps
from dpframe.accounting.events import Event, round_down, round_up

_TINY = 2.0**-48  # more than the relative error of any of the few operations below
_MOST_EPS = 10**300  # beyond it divergences are no floats


def pure_eps(leaf: Event) -> Fraction | None:
    """The eps of an event's good part; None where it is known by rho alone."""
    if leaf.eps is not None and leaf.delta_alone is None:
        return leaf.eps
    return eps_of_pure_rho(leaf.rho) if leaf.eps is None and leaf.kind in ("laplace", "pure") else None


def laplace_divergence(eps: float, steps: int, order: float) -> float:
    """D of the discrete Laplace law with ``steps`` to its sensitivity, rounded up (see the module)."""
    a1, r = order - 1, eps / steps
    q = math.exp(-r)
    b = q * math.expm1(-2 * a1 * r) / ((1 + q) * math.expm1(-(2 * a1 + 1) * r)) if r else 0.0
    if a1 * eps > 1:
        inner = (1 - b) + b * math.exp(-(2 * a1 + 1) * eps)
        return (a1 * eps + math.log(inner) + _TINY * (2 + a1 * eps)) / a1
    up, down = (1 - b) * math.expm1(a1 * eps), b * math.expm1(-order * eps)
    return math.log1p(up + down + _TINY * (up - down)) / a1 * (1 + _TINY)


@lru_cache(maxsize=8192)
def _pure_rho_at(num: int, den: int, steps: int, order: float) -> Fraction:
    """Keyed by integers: hashing a fraction takes longer than adding it."""
    return round_up(laplace_divergence(num / den, steps, order) / order * (1 + _TINY))


def rho_at(event: Event, order: Fraction) -> Fraction:
    """The Renyi divergence of an event's good part at ``order``, over the order; rounded up.

    Privacy: the least of bounds that hold (see the module); where the event has parts they add up. A
    Gaussian is bounded by its rho alone, as its eps holds only together with its delta.
    """
    if event.parts:
        return event.times * sum((rho_at(part, order) for part in event.parts), Fraction(0))
    eps = pure_eps(event)
    if eps is None:
        return event.rho
    if eps > _MOST_EPS:
        return event.rho
    steps = event.steps if event.kind == "laplace" and event.steps else 1
    return min(event.rho, _pure_rho_at(eps.numerator, eps.denominator, steps, float(order)))


def eps_of_rho_at(rho: float, order: float, delta: float) -> float:
    """An eps for which a divergence of order*rho at ``order`` is (eps, delta)-DP, rounded up."""
    if not 0 < delta < 1:
        return math.inf
    terms = (rho * order, math.log1p(-1 / order), -(math.log(delta) + math.log(order)) / (order - 1))
    return max(0.0, sum(terms) + 2.0**-44 * sum(map(abs, terms)))


@lru_cache(maxsize=1024)
def rho_of_eps_at(eps: Fraction, order: Fraction, delta: Fraction) -> Fraction:
    """What divergences over the order may add up to for (eps, delta), rounded down; 0 if nothing may."""
    if delta <= 0:
        return Fraction(0)
    a, d = float(order), float(delta) * (1 - 1e-15)
    terms = (float(min(eps, MOST)), -math.log1p(-1 / a), (math.log(d) + math.log(a)) / (a - 1))
    return max(Fraction(0), round_down((sum(terms) - 2.0**-44 * sum(map(abs, terms))) / a))


def chosen_order(eps: Fraction, delta: Fraction) -> Fraction:
    """The order at which (eps, delta) pays for most Gaussian noise, its excess over 1 to three digits.

    It is where rho(eps, delta) converts to eps, and depends on the two numbers alone.
    """
    a1 = best_order(float(rho_of_eps(eps, delta)), float(delta))
    return 1 + Fraction(f"{a1:.3g}")


def pure_eps_of_rho_at(rho: Fraction, order: Fraction) -> Fraction:
    """The largest eps (rounded down) of a pure event that costs at most ``rho`` at ``order``."""
    rho = min(rho, MOST)
    low, high = Fraction(0), max(Fraction(4), 4 * rho)
    for _ in range(70):
        middle = round_down((low + high) / 2)
        cost = laplace_divergence(float(middle), 1, float(order)) / float(order) * (1 + _TINY)
        low, high = (middle, high) if round_up(cost) <= rho else (low, middle)
    return low
