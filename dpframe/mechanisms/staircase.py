"""``staircase``: the best pure law for sums, a staircase of steps as wide as the sensitivity.

Law: for a sensitivity of m steps, P(k) proportional to exp(-eps * floor((\\|k\\| + m - r) / m)): level 0 has
the 2r-1 integers nearest zero, every further level m integers on either side. r in 1..m has the
least E|X| (``Staircase(loss="rmse")``: the least RMSE). On a fine grid r is near m / (1 + e**(eps/2)).

Guarantee: eps-DP for one number of sensitivity m: a shift by at most m changes the level by at most 1.
It is also rho-zCDP with rho = eps*tanh(eps/2), as anything eps-DP is.

Source: Geng and Viswanath, "The optimal mechanism in differential privacy" (2014); Geng, Kairouz, Oh and
Viswanath, "The staircase mechanism in differential privacy" (2015).

Wins for one sum at large eps: E|X| is Delta * e**(eps/2) / (e**eps - 1) against Delta/eps (a
fifteenth of ``laplace``'s at eps = 10), and no pure law does better. Loses where eps is small (it gains 1 % at
eps = .5, and ``laplace`` needs no coarse grid) and where several coordinates move (each is charged), and
gains nothing for counts, where it is ``laplace``. Draws are slow at large eps (level 0 is narrow, and
accepted with probability (2r-1)/m).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from dpframe.accounting.events import Event
from dpframe.errors import Arg, MechanismError
from dpframe.mechanisms.base import Floats, Ints, Noise, Norm, Shown, Target, checked_scale
from dpframe.mechanisms.targets import pure
from dpframe.noise import source
from dpframe.noise.strips import sampler

WIDEST_LEVEL = 1 << 16
Loss = Literal["l1", "rmse"]


@dataclass(frozen=True, repr=False)
class StaircaseNoise(Noise):
    """A staircase.

    Attributes
    ----------
    width : int
        Integers of a level on one side: the sensitivity.
    near : int
        r: level 0 has the 2r-1 integers nearest zero.
    levels : Fraction
        1/eps: a level's probability is exp(-1/levels) times the one before it.
    cost : Event
    """

    width: int
    near: int
    levels: Fraction
    cost: Event

    @property
    def scale(self) -> Fraction:
        return self.width * self.levels

    @property
    def event(self) -> Event:
        return self.cost

    @cached_property
    def _rate(self) -> float:
        return 1 / float(self.levels)

    @cached_property
    def _total(self) -> float:
        """The sum of exp(-rate * level) over all integers."""
        return 2 * self.near - 1 + 2 * self.width / math.expm1(self._rate)

    def sample(self, size: int) -> Ints:
        """Draw a level, accept it by its number of integers, and choose one of them.

        Privacy: every step is exact. Levels come from discrete Laplace magnitudes (weights 1, 2q, 2q**2,
        ...); level 0 is accepted with probability (2r-1)/M and others with m/M, M the larger of the two, so
        that the weights are 2r-1, 2mq, 2mq**2, ...; place and acceptance are unbiased integers.
        """
        m, r = self.width, self.near
        most = max(2 * r - 1, m)
        accepted = self._total / (most * (1 + 2 / math.expm1(self._rate)))
        out = np.empty(size, dtype=np.int64)
        done = 0
        while done < size:
            n = min(1 << 16, int((size - done + 2) * 1.2 / accepted) + 8)
            drawn = sampler("linear", self.levels).sample(n)
            kept = drawn[_below(most, n) < np.where(drawn == 0, 2 * r - 1, m)][: size - done]
            level = np.abs(kept)
            far = np.sign(kept) * (r + (level - 1) * m + _below(m, len(kept)))
            near = _below(2 * r - 1, len(kept)) - (r - 1)
            out[done : done + len(kept)] = np.where(level == 0, near, far)
            done += len(kept)
        return out

    def pmf(self, k: npt.ArrayLike) -> Floats:
        k = np.abs(np.asarray(k, dtype=np.float64))
        level = np.floor((k + (self.width - self.near)) / self.width)
        return np.asarray(np.exp(-self._rate * level) / self._total)

    def cdf(self, k: npt.ArrayLike) -> Floats:
        k = np.floor(np.asarray(k, dtype=np.float64))
        tail = self._tail(np.where(k >= 0, k + 1, -k))
        return np.where(k >= 0, 1 - tail, tail)

    def _tail(self, k: Floats) -> Floats:
        """P(X >= k) for k >= 1: the rest of k's level, and all levels after it."""
        level = np.floor((k + (self.width - self.near)) / self.width)
        rest = self.near + level * self.width - k  # integers from k to its level's far end
        after = self.width / math.expm1(self._rate)
        return np.asarray(np.exp(-self._rate * level) * (rest + after) / self._total)

    @cached_property
    def std(self) -> float:
        return math.sqrt(float(_moments(self.width, np.array([float(self.near)]), self._rate)[1][0]))

    @cached_property
    def mean_abs(self) -> float:
        return float(_moments(self.width, np.array([float(self.near)]), self._rate)[0][0])


class Staircase(Shown):
    """Staircase noise; see the module.

    Parameters
    ----------
    loss : {"l1", "rmse"}, default "l1"
        What r is chosen for.
    """

    name = "staircase"
    norm: Norm = "L1"

    def __init__(self, loss: Loss = "l1") -> None:
        self.loss = loss

    def calibrate(self, sensitivity: Fraction, moving: int, target: Target) -> StaircaseNoise:
        """Privacy: eps is used exactly, as a rational, on levels as wide as the sensitivity, rounded up."""
        eps, cost = pure(self.name, target, "pure")
        checked_scale(sensitivity / eps, sensitivity, self.name)
        width = math.ceil(sensitivity)
        if width > WIDEST_LEVEL:
            raise MechanismError(
                f"staircase is made for sensitivities of at most {WIDEST_LEVEL} steps, not {width}.",
                hint=(Arg("mechanism", "laplace"), ", or a coarser grid."),
            )
        levels = checked_scale(1 / eps, sensitivity, self.name)
        near = np.arange(1, width + 1, dtype=np.float64)
        losses = _moments(width, near, 1 / float(levels))[self.loss == "rmse"]
        return StaircaseNoise(width, int(np.argmin(losses)) + 1, levels, cost)


def _moments(m: int, r: Floats, rate: float) -> tuple[Floats, Floats]:
    """E|X| and E X**2 for every r: sums over level 0 and over levels 1, 2, ... of m integers a side."""
    s0 = 1 / math.expm1(rate)  # sums over j >= 1 of q**j * (1, j-1, (j-1)**2)
    s1 = s0 / math.expm1(rate)
    s2 = s1 * (1 + 2 / math.expm1(rate))
    total = 2 * r - 1 + 2 * m * s0
    first = r * (r - 1) + m * ((2 * r + m - 1) * s0 + 2 * m * s1)
    a0 = m * r * r + r * m * (m - 1) + (m - 1) * m * (2 * m - 1) / 6
    a1 = 2 * r * m * m + m * m * (m - 1)
    second = (r - 1) * r * (2 * r - 1) / 3 + 2 * (a0 * s0 + a1 * s1 + m**3 * s2)
    return first / total, second / total


def _below(n: int, size: int) -> Ints:
    """Uniform integers below ``n``; words in the last, incomplete run of n are drawn again."""
    if n == 1:
        return np.zeros(size, dtype=np.int64)
    last = np.uint64(2**64 - 2**64 % n - 1)
    w = source.words(size).copy()
    while True:
        again = np.flatnonzero(w > last)
        if not len(again):
            return (w % np.uint64(n)).astype(np.int64)
        w[again] = source.words(len(again))
