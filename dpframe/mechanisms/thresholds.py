"""Groups that nobody listed: which keys may be released.

A key that occurs because of one unit betrays that unit when it appears. So a group is released only
if a noisy count of it reaches a threshold that a single unit's key reaches with probability at most
delta' = 1 - (1 - delta)**(1/L0): then all of a unit's L0 keys stay hidden with probability 1 - delta.
Nothing tells how many groups were dropped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dpframe.mechanisms.base import Ints, Noise
from dpframe.noise import source

_SAFE = 1 - 2.0**-30
_LARGEST_EPS = Fraction(256)  # e**256 takes the least probability there is, 2**-128, to 1


def per_key_delta(delta: Fraction, groups: int) -> float:
    """delta' for each of a unit's keys, rounded down."""
    return -math.expm1(math.log1p(-float(delta)) / groups) * _SAFE


@dataclass(frozen=True, slots=True)
class Threshold:
    """Release a group iff the sum of these noisy coordinates is at least ``least``.

    Attributes
    ----------
    coordinates : tuple of int
    least : int
        In steps.
    unit_steps : int
        Steps that one counted thing (a unit or a row) adds.
    counted : str
        What is counted, for words: the unit's name, or "row".
    delta : Fraction
        What the keys are charged.
    """

    coordinates: tuple[int, ...]
    least: int
    unit_steps: int
    counted: str
    delta: Fraction

    @property
    def size(self) -> float:
        """The threshold in counted things."""
        return self.least / self.unit_steps

    def odds(self, noise: Noise, size: int) -> float:
        """The probability that a group of ``size`` is released."""
        return noise.upper_tail(self.least - size * self.unit_steps, len(self.coordinates))

    def keep(self, noisy: list[Ints]) -> npt.NDArray[np.bool_]:
        total = sum((noisy[i] for i in self.coordinates[1:]), noisy[self.coordinates[0]])
        return np.asarray(total >= self.least)


def least_threshold(noise: Noise, draws: int, most: int, delta: float) -> int:
    """The least integer T with P(most + noise >= T) <= delta, from the law of the noise itself.

    Privacy: ``most`` is what one unit adds to the thresholded integer in one key; a law on a coarser
    grid rounds it, monotonely, before the noise.
    """
    most = int(noise.prepare(np.array([most], dtype=np.int64))[0])
    low, high = 0, 1
    while noise.upper_tail(high, draws) > delta:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if noise.upper_tail(middle, draws) <= delta else (middle, high)
    return most + high


@dataclass(frozen=True, slots=True)
class KeySelection:
    """Keys alone: a group of n units (or rows) is released with probability p_n (truncated geometric).

    p_n is the largest sequence from p_0 = 0 with p_n <= e**eps' p_{n-1} + delta' and
    1 - p_{n-1} <= e**eps' (1 - p_n) + delta': the optimal selection of one key. Source: Desfontaines,
    Voss, Gipson, Mandayam, "Differentially private partition selection" (2022).

    Privacy: (eps, delta) over the L0 keys of a unit, by composition of eps' = eps/L0 and delta' each.
    The probabilities are integers over 2**128, rounded down in a recursion with outward-rounded
    exponentials, so both inequalities hold for the very integers that are drawn with.
    """

    eps: Fraction
    delta: float

    def table(self) -> tuple[int, ...]:
        return _selection_table(self.eps, self.delta)

    def keep(self, counts: Ints) -> npt.NDArray[np.bool_]:
        table = self.table()
        last = len(table) - 1
        high = np.array([p >> 64 for p in table], dtype=object)
        out = np.zeros(len(counts), dtype=np.bool_)
        words = source.words(2 * len(counts)).reshape(-1, 2)
        where = np.minimum(counts, last)
        top = np.array([min(int(h), 2**64 - 1) for h in high], dtype=np.uint64)[where]
        out[:] = words[:, 0] < top
        for i in np.flatnonzero(words[:, 0] == top):
            out[i] = (int(words[i, 0]) << 64) + int(words[i, 1]) < table[int(where[i])]
        return out

    def odds(self, size: int) -> float:
        table = self.table()
        return table[min(size, len(table) - 1)] / 2**128

    @property
    def size(self) -> int:
        """The size at which a group is released with probability one half."""
        return next(i for i, p in enumerate(self.table()) if p >= 2**127)


@lru_cache(maxsize=64)
def _selection_table(eps: Fraction, delta: float) -> tuple[int, ...]:
    one = 1 << 128
    digits = 60
    eps = min(eps, _LARGEST_EPS)
    e = Decimal(eps.numerator), Decimal(eps.denominator)
    down, up = Context(prec=digits, rounding=ROUND_FLOOR), Context(prec=digits, rounding=ROUND_CEILING)
    slack = Fraction(1, 10**50)
    grow = Fraction(Context(prec=digits).exp(down.divide(*e))) * (1 - slack)
    shrink = Fraction(Context(prec=digits).exp(up.divide(*e).copy_negate())) * (1 + slack)
    d = int(Fraction(delta) * one)
    table = [0]
    while table[-1] < one and len(table) < 1 << 22:
        p = table[-1]
        first = int(grow * p) + d
        second = one - (-((-shrink.numerator * max(0, one - p - d)) // shrink.denominator))
        table.append(max(p, min(first, second, one)))
        if table[-1] == p:
            break
    return tuple(table)
