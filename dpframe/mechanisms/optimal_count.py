"""``optimal_count``: the best (eps, delta) law for a number that moves by one step.

Law: on the integers with q = exp(-eps) and p0 = (1-q+2 delta q)/(1+q), P(k) = p0 * q**|k| for |k| < M,
P(+-M) = (P(M-1) - delta) / (e**eps - 1), and nothing beyond; M = ceil(ln(p0/delta)/eps).

Guarantee: (eps, delta)-DP for one number of sensitivity 1 step. Only the last two values on one side
lose more than eps, and what they lose in excess is P(M-1) - e**eps P(M) + P(M) = delta. The event's rho
is eps*tanh(eps/2), beside delta.

Source: Geng, Ding, Guo and Kumar, "Optimal noise-adding mechanism in additive differential privacy"
(2019), for the problem; the closed form equals the optimum of the linear programme, for E|X| and E X**2.

Wins for single counts, over every other law, when delta is at hand: by 6 % in E|X| over ``laplace`` at
(1, 1e-2). Loses where delta is small, as the gain then is nothing (7e-5 at (1, 1e-6)) and ``laplace``
pays no delta; it can't serve anything but counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpframe.accounting.conversion import pure_rho
from dpframe.accounting.events import Event
from dpframe.errors import Arg, MechanismError
from dpframe.mechanisms.base import Norm, Shown, Target
from dpframe.mechanisms.certificate import certified
from dpframe.mechanisms.table import TableNoise
from dpframe.mechanisms.targets import approximate
from dpframe.noise.exponentials import fixed_exp_minus

FINE = 192  # bits of the fixed point in which weights are computed
LONGEST = 1 << 18  # weights of a table
_LARGEST_EPS = Fraction(40)
_LEAST_DELTA = Fraction(1, 10**18)


@dataclass(frozen=True, slots=True)
class Request:
    """What a finite law is calibrated to: ``eps`` and ``delta`` are a little less than what ``cost`` claims."""

    steps: int
    eps: Fraction
    delta: Fraction
    cost: Event


def request(name: str, sensitivity: Fraction, target: Target) -> Request:
    """Check the target of an (eps, delta) law on a table.

    Privacy: the margins (a relative 2**-32 of eps, 2**-30 of delta, and 2**-38 in eps) are a thousand times
    the rounding of the weights and of the certificate that recomputes them. An eps above 40 gets the law of 40.
    """
    asked, delta = approximate(name, sensitivity, target)
    if not _LEAST_DELTA <= delta < 1:
        raise MechanismError(
            f"{name} can't be had at delta={float(delta):.3g}; its share of delta lies in [1e-18, 1).",
            hint=(Arg("delta", 1e-6), ", or ", Arg("mechanism", "laplace")),
        )
    eps = min(asked, _LARGEST_EPS)
    eps -= min(eps / 1024, eps / 2**32 + Fraction(1, 2**38))
    cost = Event(asked, delta, pure_rho(asked))
    return Request(math.ceil(sensitivity), eps, delta * (1 - Fraction(1, 2**30)), cost)


def check_length(name: str, steps: int) -> None:
    if steps >= LONGEST:
        raise MechanismError(
            f"{name} would need a table of {steps} steps; at most {LONGEST} are made.",
            hint=("ask for a larger eps or delta, or ", Arg("mechanism", "laplace")),
        )


def powers(rate: Fraction, count: int) -> list[int]:
    """exp(-rate)**i for i < count, in units of 2**-FINE, each within 2 i + 1 units."""
    q, w, out = fixed_exp_minus(rate, FINE), 1 << FINE, []
    for _ in range(count):
        out.append(w)
        w = (w * q) >> FINE
    return out


def whole(fine: list[int]) -> tuple[int, ...]:
    """Weights whose total is just below 2**191, rounded up.

    Privacy: up, because a weight bounds others that are at most e**eps times it: rounding up by 1
    then costs those a relative 1/(e**eps w), and never makes a small weight too small. The least weight
    of all is about delta e**-eps of the total, 2**72 or more.
    """
    total = 2 * sum(fine) - fine[0]
    shift = total.bit_length() - 190
    if shift <= 0:
        return tuple(w << -shift for w in fine)
    return tuple(-(-w >> shift) for w in fine)


class OptimalCount(Shown):
    """The optimal law for counts; see the module."""

    name = "optimal_count"
    norm: Norm = "L1"

    def calibrate(self, sensitivity: Fraction, moving: int, target: Target) -> TableNoise:
        """Privacy: see :func:`request`; the last weight is rounded up, which lowers delta."""
        if sensitivity > 1:
            raise MechanismError(
                f"optimal_count is a law for numbers that move by exactly 1 step, as counts do; this one moves by"
                f" {float(sensitivity):g}.",
                hint=(Arg("mechanism", "staircase"), ", 'tulap' or 'laplace'"),
            )
        r = request(self.name, sensitivity, target)
        one = 1 << FINE
        q = fixed_exp_minus(r.eps, FINE)
        d = int(r.delta * one)
        p0 = ((one - q + ((2 * d * q) >> FINE)) << FINE) // (one + q)
        last = max(1, math.ceil((math.log(p0 / one) - math.log(d / one)) / float(r.eps)))
        check_length(self.name, last)
        p = [(p0 * w) >> FINE for w in powers(r.eps, last + 1)]
        while len(p) > 2 and p[-2] <= d:  # the float that chose M was one too large
            p.pop()
        before = p[-2]
        p[-1] = min(p[-1], (max(before - d, 0) * q) // (one - q) + 1)
        return certified(TableNoise(whole(p), 1 / r.eps, r.cost), 1, self.name)
