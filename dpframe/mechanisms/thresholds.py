"""Groups that nobody listed: which keys may be released.

A key that occurs because of one unit betrays that unit when it appears. So a group is released only
if a noisy count of it reaches a threshold that a single unit's key reaches with probability at most
delta' = 1 - (1 - delta)**(1/L0): then all of a unit's L0 keys stay hidden with probability 1 - delta. Any k rows may
be shared out among keys of their own in every way; the threshold is one under which they stay hidden in each
(:func:`least_of_rows`). Nothing tells how many groups were dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dpframe.errors import Arg, Call, MechanismError
from dpframe.mechanisms.base import Ints, Noise
from dpframe.noise import source

_SAFE = 1 - 2.0**-30
SMALL = 0.025  # the probability with which a group below min_units may be told
_EXACT = 512  # rows together of which every partition is looked at
_LARGEST_TOGETHER, _LONGEST = Fraction(40), 1 << 20
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
    filled : int or None
        Where units are weighed by their number of groups: of how many ``unit_steps`` are the weight.
    small : int
        A group of so many is told with probability ``SMALL`` at most; 0 where nothing was asked of small groups.
    """

    coordinates: tuple[int, ...]
    least: int
    unit_steps: int
    counted: str
    delta: Fraction
    # not in fingerprints, which ``least`` and the pieces decide
    filled: int | None = field(default=None, repr=False)
    small: int = field(default=0, repr=False)

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


def least_for_all(noise: Noise, most: Ints, delta: Sequence[float]) -> int:
    """The least integer T with P(most[i] + noise >= T) <= delta[i] for every i, from the (symmetric) law of the noise.

    Privacy: a unit in i + 1 groups adds ``most[i]`` to each of them, and each of its own keys stays hidden but for
    delta[i]; however many groups a unit is in, all of them are.
    """
    odds = np.asarray(delta)
    return _least_integer(lambda least: bool(np.all(noise.cdf(most - least) * (1 + 2.0**-40) <= odds)), 1)


@dataclass(frozen=True, slots=True)
class OwnKeys:
    """What the keys hold that occur because of one unit.

    Attributes
    ----------
    most : int
        Rows (or units) in one of them.
    keys : int
        How many there may be.
    shared : bool
        Whether ``most`` is what all of them hold together.
    small : int
        A group of so many, of any units, is to be told with probability ``SMALL`` at most.
    """

    most: int
    keys: int
    shared: bool = False
    small: int = 0

    def least(self, noise: Noise, draws: int, row: int, delta: Fraction) -> int:
        """The least threshold that hides them, and small groups, if asked; a row adds ``row`` steps.

        Privacy: that groups are small can only raise it.
        """
        least = self.hiding(noise, draws, row, delta)
        return max(least, least_threshold(noise, draws, self.small * row, SMALL)) if self.small else least

    def hiding(self, noise: Noise, draws: int, row: int, delta: Fraction) -> int:
        """The least threshold that any of them reaches with probability ``delta`` at most."""
        if self.shared:
            return least_of_rows(noise, draws, row, self.most, delta)
        return least_threshold(noise, draws, self.most * row, per_key_delta(delta, self.keys))


def least_of_rows(noise: Noise, draws: int, row: int, rows: int, delta: Fraction) -> int:
    """The least integer T under which ``rows`` rows, shared out among keys in any way, all stay hidden but for ``delta``.

    Privacy: with h(j) = -ln(1 - P(j rows + noise >= T)), keys of j1, j2, ... rows, whose draws are independent, stay
    hidden with probability exp(-h(j1) - h(j2) - ...). So what is needed is best(rows) <= -ln(1 - delta), where best(m) is the
    largest sum over all partitions of m: the max over 1 <= j <= m of h(j) + best(m - j), best(0) = 0. It falls in T. For
    more than ``_EXACT`` rows best is bounded by rows * max h(j)/j, as a sum of h(j) is one of j * (h(j)/j); h rises, so
    between sizes that are looked at h(j)/j is at most that of the larger over the smaller.
    """
    budget = -math.log1p(-float(delta)) * _SAFE
    sizes = _sizes(rows)
    moved = noise.prepare(np.array(sizes, dtype=np.int64) * row).tolist()

    def h(least: int, i: int) -> float:
        p = noise.upper_tail(least - moved[i], draws)
        return math.inf if p >= 1 else -math.log1p(-p)

    def alone(least: int) -> bool:  # every row in a key of its own, and all in one: needed, and mostly enough
        return rows * h(least, 0) <= budget and h(least, -1) <= budget

    def hidden(least: int) -> bool:
        return alone(least) and _best([h(least, i) for i in range(len(sizes))], sizes) <= budget

    return _least_integer(hidden, _least_integer(alone, moved[0] + 1))


def _least_integer(holds: Callable[[int], bool], low: int) -> int:
    """The least integer from ``low`` on for which something holds, that holds for all larger ones."""
    if holds(low):
        return low
    step = 1
    while not holds(low + step):
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _sizes(rows: int) -> list[int]:
    """Numbers of rows that are looked at: all, or all up to ``_EXACT`` and from there on in steps of a part in it."""
    out = list(range(1, min(rows, _EXACT) + 1))
    while out[-1] < rows:
        out.append(min(rows, out[-1] + max(1, out[-1] // _EXACT)))
    return out


def _best(h: list[float], sizes: list[int]) -> float:
    """The largest sum of h over the partitions of the last size, or a bound on it (:func:`least_of_rows`)."""
    rows = sizes[-1]
    if len(sizes) < rows:
        return rows * max(x / (before + 1) for x, before in zip(h, [0, *sizes[:-1]]))
    each, best = np.array(h), np.zeros(rows + 1)
    for m in range(1, rows + 1):
        best[m] = (each[:m] + best[:m][::-1]).max()
    return float(best[rows])


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

    @classmethod
    def of_rows(cls, eps: Fraction, delta: float, rows: int) -> KeySelection:
        """The selection under which ``rows`` rows, in however many keys, cost (eps, delta) together.

        Privacy: with eps' = eps/rows and delta' for one row, a key that gains or loses j rows is (j*eps', D(j))-DP, where D(j) =
        delta' * (e**(j*eps') - 1)/(e**eps' - 1): both inequalities, j times over. Keys of j1, j2, ... rows compose to
        (eps, D(j1) + D(j2) + ...), and D is convex with D(0) = 0, so all rows in one key are the worst: D(rows) = delta. What eps is
        beyond 40 is not used, as e**40 takes any delta' that is told apart from 0 to 1.
        """
        used = min(eps, _LARGEST_TOGETHER)
        each, whole = float(used / rows), float(used)
        part = math.expm1(-each) / math.expm1(-whole) * math.exp(each - whole)
        half = (whole + math.log(-math.expm1(-whole) / (2 * delta))) / each
        if half > _LONGEST:
            raise MechanismError(
                f"keys() of any {rows} rows would release groups of more than {half:.3g} rows, beyond what is drawn from a table.",
                hint=("a larger ", Arg("eps"), ", or ", Call("groupby", "city", keys=[...])),
            )
        return cls(used / rows, delta * part * _SAFE)

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
