"""``truncated_laplace``: the discrete Laplace law cut off at a fixed distance, for (eps, delta).

Law: P(k) proportional to exp(-eps*\\|k\\|/m) for \\|k\\| <= A, nothing beyond; m is the sensitivity in steps. A
is the least integer for which the m outermost probabilities on one side add up to at most delta; on a
fine grid A = (m/eps) * ln(1 + (e**eps - 1) / (2 delta)).

Guarantee: (eps, delta)-DP for one number of sensitivity m: inside the support a shift by j <= m changes
a probability by at most e**eps, and at most the j outermost ones can't occur after the shift. The event's
rho is eps*tanh(eps/2), beside delta.

Source: Geng, Ding, Guo and Kumar, "Tight analysis of privacy and utility tradeoff in approximate
differential privacy" (2020).

Wins when an answer must never be off by more than a known distance: the noise is bounded by A. It is within
a few percent of the best law at small eps. Loses to ``staircase`` and ``multi_gaussian`` at large eps, and to
``laplace`` wherever the bound is not wanted: the gain in E|X| is A/(m (e**(eps A/m) - 1)), nothing at small delta.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpframe.mechanisms.base import Norm, Shown, Target
from dpframe.mechanisms.certificate import certified
from dpframe.mechanisms.optimal_count import FINE, check_length, powers, request, whole
from dpframe.mechanisms.table import TableNoise


class TruncatedLaplace(Shown):
    """Discrete Laplace noise of bounded size; see the module."""

    name = "truncated_laplace"
    norm: Norm = "L1"

    def calibrate(self, sensitivity: Fraction, moving: int, target: Target) -> TableNoise:
        """Privacy: A is guessed in floats, and then moved until the tail, in integers, is within delta."""
        r = request(self.name, sensitivity, target)
        m, eps, delta = r.steps, float(r.eps), float(r.delta)
        guess = math.ceil(m / eps * math.log1p(math.expm1(eps) / (2 * delta))) + 2
        check_length(self.name, guess + 1)
        w = powers(r.eps / m, max(guess, m) + 1)
        d = int(r.delta * (1 << FINE))
        last = max(guess - 4, m - 1)  # from m - 1 on, the m outermost lie on one side
        total, tail = 2 * sum(w[: last + 1]) - w[0], sum(w[last - m + 1 : last + 1])
        while last >= m and (tail - w[last] + w[last - m]) << FINE <= d * (total - 2 * w[last]):
            total -= 2 * w[last]
            tail += w[last - m] - w[last]
            last -= 1
        while tail << FINE > d * total:
            last += 1
            total += 2 * w[last]
            tail += w[last] - w[last - m]
        return certified(TableNoise(whole(w[: last + 1]), m / r.eps, r.cost), m, self.name)
