"""``cactus``: the law of least E|X| (or least RMSE) for a number that moves by m steps, found numerically.

Law: a table p on the integers, symmetric and falling away from zero, that minimises E|X| (or E X**2) under
sum_i max(0, p_i - e**eps p_{i-m}) <= delta: a linear programme, solved by HiGHS, rounded to integer weights.

Guarantee: (eps, delta)-DP for one number of sensitivity m. In a law that falls on both sides every term
that is positive grows with the shift, so the programme need only bound shift m. Nothing rests on that, nor on
the solver: the delta of what it returns is recomputed at every shift 1..m, and the programme is solved
again for a smaller delta until that holds. The event's rho is eps*tanh(eps/2), beside delta.

Source: Alghamdi, Asoodeh, Calmon, Kosut, Sankar and Wei, "Cactus mechanisms: optimal differential privacy
mechanisms in the large-composition regime" (2022), for finding a law by optimisation; they minimise the
Kullback-Leibler divergence, for many releases, and this minimises one release's delta. With delta to spend it
is the law of Geng and Viswanath, "Optimal noise adding mechanisms for approximate differential privacy" (2016).

Wins wherever delta is large: at delta = .1 its E|X| is 10 % below ``staircase``'s for eps >= 5 and 1 % below
``tulap``'s at eps = 1; at m = 1 it is ``optimal_count``. No falling law is better for one release; laws that do
not fall (their programme needs every shift) gain up to 1 % more at the points that the tests look at (2 steps at (1, .1); .4 % at the others).
Loses nothing but time (seconds at eps = .1 and 64 steps, then cached); at delta = 1e-6 it gains
2e-5 in E|X| over the pure ``staircase``, which pays no delta. Under composition ``gaussian`` is better.

Range: eps in [0.1, 10], delta in [1e-6, 0.1], at most 64 steps to a sensitivity. Where several coordinates
move, these bounds hold for the share of each.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from dpframe.errors import Arg, MechanismError, show
from dpframe.mechanisms import fitting
from dpframe.mechanisms.base import Floats, Norm, Shown, Target
from dpframe.mechanisms.table import TableNoise
from dpframe.mechanisms.targets import approximate

LEAST_EPS, LARGEST_EPS = Fraction(1, 10), Fraction(10)
LEAST_DELTA, LARGEST_DELTA = Fraction(1, 10**6), Fraction(1, 10)
MOST_STEPS = 64
_NEAR = Fraction(1, 10**9)  # a target given as a float may miss a bound of the range by its rounding
_MARGINS = (2.0**-18, 2.0**-14, 2.0**-11, 2.0**-8, 2.0**-5)  # of delta, tried in turn

Loss = Literal["l1", "rmse"]


class Cactus(Shown):
    """Numerically optimal noise; see the module.

    Parameters
    ----------
    loss : {"l1", "rmse"}, default "l1"
        What is least.
    """

    name = "cactus"
    norm: Norm = "L1"

    def __init__(self, loss: Loss = "l1") -> None:
        self.loss = loss

    def calibrate(self, sensitivity: Fraction, moving: int, target: Target) -> TableNoise:
        """Privacy: the law is used where its own delta, at every shift, is within the target's."""
        eps, delta = approximate(self.name, sensitivity, target)
        if not LEAST_EPS * (1 - _NEAR) <= eps <= LARGEST_EPS * (1 + _NEAR):
            raise MechanismError(
                f"cactus is made for eps from 0.1 to 10 for a number; it was asked for {show(eps)}.",
                hint=Arg("mechanism", "laplace" if eps < 1 else "staircase"),
            )
        if not LEAST_DELTA * (1 - _NEAR) <= delta <= LARGEST_DELTA * (1 + _NEAR):
            raise MechanismError(
                f"cactus is made for delta from 1e-6 to 0.1 for a number; it was asked for {float(delta):.3g}.",
                hint=(Arg("mechanism", "staircase"), " or 'multi_gaussian'"),
            )
        if sensitivity > MOST_STEPS:
            raise MechanismError(
                f"cactus lives on a coarse grid of at most {MOST_STEPS} steps to a sensitivity, not"
                f" {float(sensitivity):g}.",
                hint=Arg("mechanism", "laplace"),
            )
        return _certified(math.ceil(sensitivity), target, self.loss)


@lru_cache(maxsize=1024)
def _certified(steps: int, target: Target, loss: Loss) -> TableNoise:
    assert target.eps is not None
    eps, delta = float(target.eps), float(target.delta)
    goal = delta * (1 - 2.0**-20) - fitting.SLACK
    for margin in _MARGINS:
        half = optimum(steps, eps, delta * (1 - margin), loss)
        if half is not None and float(fitting.deltas(half, eps, range(1, steps + 1)).max()) <= goal:
            return fitting.table(half, steps / eps, target, steps, "cactus")
    raise MechanismError(
        f"cactus found no law that it can certify at eps={eps:.6g}, delta={delta:.6g}.",
        hint=Arg("mechanism", "staircase"),
    )


def optimum(steps: int, eps: float, delta: float, loss: Loss) -> Floats | None:
    """P(X = 0), P(X = 1), ... of least loss, within the solver's tolerance; None where it gives up.

    Everything is scaled by e**(eps*x/m), so that far and near probabilities weigh alike: y_x stands for
    p_x / w_x with w_x = (eps/m) e**(-eps*x/m). Then p_{-x} <= e**eps p_{-x-m} + s is y_x <= y_{x+m} + t, and
    p_i <= e**eps p_{i-m} + s for 0 < i < m/2 is y_i <= e**(2 eps i/m) y_{m-i} + u. Other terms are never positive.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    m, rate = steps, eps / steps
    # The truncated Laplace law fits, and keeps delta; two sensitivities more are for one that falls in stairs.
    n = math.ceil(math.log1p(math.expm1(eps) / (2 * delta)) / rate) + 2 * m + 1
    x = np.arange(n, dtype=np.float64)
    w = rate * np.exp(-rate * x)
    i = np.arange(1, (m + 1) // 2)
    k = len(i)
    both = np.where(x == 0, 1.0, 2.0) * w  # of the mass at x and -x
    outward = [sparse.eye(n) - sparse.eye(n, k=m), -sparse.eye(n), None]
    at = np.arange(k)
    pairs = (
        np.concatenate([np.ones(k), -np.exp(2 * rate * i)]),
        (np.tile(at, 2), np.concatenate([i, m - i])),
    )
    across = [sparse.csr_matrix(pairs, shape=(k, n)), None, -sparse.eye(k)]
    falls = [math.exp(-rate) * sparse.eye(n - 1, n, k=1) - sparse.eye(n - 1, n), None, None]
    excess = [None, sparse.csr_matrix(w[None] / delta), sparse.csr_matrix(w[i][None] / delta)]
    blocks: Any = [outward, across, falls, excess] if k else [outward[:2], falls[:2], excess[:2]]
    rows: Any = sparse.bmat(blocks, format="csr")
    limits = np.zeros(rows.shape[0])
    limits[-1] = 1
    rest = np.zeros(n + k)
    cost = np.concatenate([both * (x * rate) ** (1 if loss == "l1" else 2), rest])
    mass: Any = sparse.csr_matrix(np.concatenate([both, rest])[None])
    found = linprog(
        cost,
        A_ub=rows,
        b_ub=limits,
        A_eq=mass,
        b_eq=np.ones(1),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if found.status != 0 or found.x is None:
        return None
    p = np.maximum(np.asarray(found.x[:n], dtype=np.float64), 0.0) * w
    p = np.minimum.accumulate(p)
    return np.asarray(p / (2 * p.sum() - p[0]))
