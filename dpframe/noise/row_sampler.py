"""Exact draws of the row law: integer noise for all blocks of a row together, from the operating system's randomness.

A *block* has m free cells on a grid of K steps, a slack of r steps, and may be missing from a row or not. A pair
(a, b) of whole numbers *holds* cells x if sum(x+) <= a K + r and sum(x-) <= b K + r. A block that may be missing
has a whole number l beside its cells, with -b <= l <= a, and the largest pair within (a, b) whose difference is l
holds its cells. J(k, x, l) is the least a + b with a - b = k that holds all blocks; drawn is P proportional to
q**J, q = exp(-1/B). The proof that this is a sampler of it, step by step, is in ``docs/proofs/one-draw.md``.

* N_m(A, B) = sum_i C(m,i) C(B,i) C(A+m-i,m-i) counts the integer points with sum(x+) <= A, sum(x-) <= B.
* W(a, b) counts what (a, b) holds: the product over blocks of N_m(aK+r, bK+r), or, where a block may be missing, of
  sum_{t<=a} N_m(tK+r, bK+r) + sum_{t<b} N_m(aK+r, tK+r) (l = t - b, then l = a - t).
* q**J = (1-q**2) * sum of q**(a+b) over all (a, b) with a - b = k that hold. So: draw s = a + b with weight G(s) q**s,
  G(s) = sum_a W(a, s-a); then, *for this s*, a with weight W(a, s-a); then a point that (a, b) holds, uniformly.

**Why every decision is exact.** G is a polynomial in s of degree D + 1, D the number of free cells and of blocks that may be
missing: sum_s G(s) q**s = sum_i h_i q**i / (1-q)**(D+2) with integers h_i, which are checked not to be negative. s is taken
from a table of cumulative weights, 64 digits at a time, with errors bounded as in ``strips``; for large B, i is taken with weight
h_i q**i, and s = i + the sum of D + 2 geometrics. Uniform integers below n are words modulo n, words of the last
incomplete run thrown back. Where weights differ, a candidate is kept with probability w/w_max: in float64 where w/w_max,
sums and products of positive terms with a relative error below 2**-40, differs from the first 64 digits of a uniform
variable by more than 2**-36, else by the integers themselves and further digits. That w_max is the middle's, W(floor(s/2),
ceil(s/2)), is checked when the sampler is made, by differences of W that are not negative.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import ceil

import numpy as np

from dpframe.noise import source
from dpframe.noise.exponentials import fixed_exp_minus
from dpframe.noise.row_points import Bools, Floats, Ints, below, coins, held, held_or_missing, ways
from dpframe.noise.row_shape import MOST_CELLS, Cells, numerators, peaks_in_the_middle, room, values
from dpframe.noise.strips import LARGEST_SCALE, SMALLEST_SCALE, sampler

_CHUNK = 1 << 14
_LONGEST = 1 << 14  # entries of a table of s


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Noise for ``size`` rows of a table.

    Attributes
    ----------
    rows : int64 of (size,)
        k, in whole rows.
    cells : list of int64 of (size, m)
        x of every block, in its steps.
    present : list of int64 of (size,) or None
        l of every block that may be missing, in whole rows.
    """

    rows: Ints
    cells: list[Ints]
    present: list[Ints | None]


class RowSampler:
    """Draw from the row law.

    Parameters
    ----------
    blocks : tuple of Cells
    scale : Fraction
        B, in rows.

    Raises
    ------
    ValueError
        Beyond what can be drawn exactly (see :func:`room`), or where a check of the shape fails.
    """

    def __init__(self, blocks: tuple[Cells, ...], scale: Fraction) -> None:
        if not SMALLEST_SCALE <= scale <= LARGEST_SCALE or any(b.steps > room(blocks, scale) for b in blocks):
            raise ValueError("the scale or a grid is beyond what can be drawn exactly")
        if sum(b.size for b in blocks) > MOST_CELLS:
            raise ValueError(f"a draw has at most {MOST_CELLS} cells")
        self.blocks, self.scale = blocks, scale
        self.degree = sum(b.size for b in blocks)
        self.numerators = numerators(blocks)
        if min(self.numerators) < 0 or not all(map(peaks_in_the_middle, set(blocks))):
            raise ValueError("this shape of blocks can't be drawn")
        self._sloping = [b for b in blocks if b.size > 1]  # the others have W(a, b) of a + b alone
        self._tabled = (self.degree + 48) * scale < _LONGEST
        self._choice = (
            _Choice(self._cumulative, ends=False) if self._tabled else _Choice(self._starts, ends=True)
        )

    def sample(self, size: int) -> Draws:
        """Return ``size`` independent draws."""
        parts = [self._some(min(_CHUNK, size - i)) for i in range(0, size, _CHUNK)] or [self._some(0)]
        if len(parts) == 1:
            return parts[0]
        cells = [np.concatenate(c) for c in zip(*(p.cells for p in parts))]
        present = [None if c[0] is None else np.concatenate(c) for c in zip(*(p.present for p in parts))]
        return Draws(np.concatenate([p.rows for p in parts]), cells, present)

    def _some(self, size: int) -> Draws:
        s = self._totals(size)
        most = int(s.max(initial=0))
        if any((most + 1) * b.steps + 2 * b.slack >= 1 << 62 for b in self.blocks):
            raise OverflowError("a draw that has a probability below e**-400")
        a = self._sides(s)
        b = s - a
        cells: list[Ints] = []
        present: list[Ints | None] = []
        for block in self.blocks:
            x, row = held_or_missing(block, a, b) if block.missing else (held(block, a, b), None)
            cells.append(x)
            present.append(row)
        return Draws(a - b, cells, present)

    # ---- s ----

    def _totals(self, size: int) -> Ints:
        s = self._choice.sample(size)
        if not self._tabled:
            steps = sampler("linear", self.scale)
            for _ in range(self.degree + 2):
                s = s + steps.geometric(size)
        return s

    def _starts(self, bits: int) -> list[int]:
        """Cumulative weights h_i q**i in units of ``2**-bits`` of their sum, each within 2 units."""
        fine = bits + 64 + ceil(2 * (self.degree + 2) / self.scale)
        q, power, weights = fixed_exp_minus(1 / self.scale, fine), 1 << fine, []
        for h in self.numerators:
            weights.append(h * power)
            power = (power * q) >> fine
        return _prefixes(weights, bits)

    def _cumulative(self, bits: int) -> list[int]:
        """Cumulative weights G(s) q**s in units of ``2**-bits`` of their sum, each within 2 units.

        q**s is known to 3 s units of ``2**-fine``, 2**-64 of it and less. As no h is negative, G(s+1)/G(s) is at most
        (s+1)/(s-D) from s on, so what follows the last entry is less than a geometric series, and less than a unit.
        """
        d = self.degree
        last = ceil(self.scale * (bits + 4 * d + 40)) + 4 * d + 8
        fine = bits + 80 + ceil(Fraction(3, 2) * last / self.scale)
        q, power, weights, total = fixed_exp_minus(1 / self.scale, fine), 1 << fine, [], 0
        for s, g in enumerate(values(self.numerators, d)):
            weights.append(g * power)
            total += weights[-1]
            power = (power * q) >> fine
            if s > 2 * d + 2:
                left = (s - d) * (1 << fine) - (s + 1) * (q + 2)  # 1 - ratio, times (s-d) 2**fine
                if left > 0 and weights[-1] * ((s + 1) * (q + 2)) << (bits + 10) < left * total:
                    return _prefixes(weights, bits)
        raise AssertionError

    # ---- a ----

    def _sides(self, s: Ints) -> Ints:
        """a of a + b = s with weight W(a, b). Privacy: a rejected a is drawn again for the *same* s."""
        a = below(s + 1)
        if not self._sloping:
            return a
        top = self._sizes(s // 2, s - s // 2)
        left = np.arange(len(s))
        while True:
            kept = self._kept(a[left], s[left], [x[left] for x in top])
            left = left[~kept]
            if not len(left):
                return a
            a[left] = below(s[left] + 1)

    def _kept(self, a: Ints, s: Ints, top: list[Floats]) -> Bools:
        def exact(i: int) -> tuple[int, int]:
            n, total = int(a[i]), int(s[i])
            return self.weight(n, total - n), self.weight(total // 2, total - total // 2)

        odds = np.ones(len(a))
        for size, most in zip(self._sizes(a, s - a), top):
            odds *= size / most  # one by one: their products would leave float64
        return coins(odds, exact)

    def weight(self, a: int, b: int) -> int:
        """W of the blocks on which the choice of a, for one a + b, depends."""
        out = 1
        for block in self._sloping:
            out *= block.ways(a, b)
        return out

    def _sizes(self, a: Ints, b: Ints) -> list[Floats]:
        """W of every such block, up to factors that depend on a + b alone; relative errors are below 2**-48."""
        return [ways(block, a, b) for block in self._sloping]


@lru_cache(maxsize=512)
def row_sampler(blocks: tuple[Cells, ...], scale: Fraction) -> RowSampler:
    """The sampler of a law (kept, as its tables take longer than a draw)."""
    return RowSampler(blocks, scale)


def _prefixes(weights: list[int], bits: int) -> list[int]:
    sums = [0, *accumulate(weights)]
    return [(c << bits) // sums[-1] for c in sums[:-1]]


class _Choice:
    """Draws an index by cumulative weights that are known as exactly as one asks (cf. ``strips``)."""

    def __init__(self, cumulative: Callable[[int], list[int]], *, ends: bool) -> None:
        self._cumulative, self._ends = cumulative, ends  # ends: whether the last entry goes on to 1 exactly
        scaled = [c >> 32 for c in cumulative(96)]
        self._table = np.array([t for t in scaled if t < (1 << 64) - 1], dtype=np.uint64)

    def sample(self, size: int) -> Ints:
        w, t = source.words(size), self._table
        at = np.searchsorted(t, w, side="right") - 1
        one = np.uint64(1)
        below_ = (w - t[at] <= one) & (at > 0)
        above = t[np.minimum(at + 1, len(t) - 1)] - w <= one
        beyond = (at == len(t) - 1) & (w >= np.uint64((1 << 64) - 2))
        for i in np.flatnonzero(below_ | above | beyond):
            at[i] = self._exactly(int(w[i]))
        return np.asarray(at, dtype=np.int64)

    def _exactly(self, word: int) -> int:
        n = 64
        while True:
            word, n = (word << 64) | source.bits(64), n + 64
            c = self._cumulative(n + 64)
            low, high = (word << 64) - 64, ((word + 1) << 64) + 64
            v = max(bisect_right(c, low) - 1, 0)  # the first entry is exactly 0
            if (v == len(c) - 1 and self._ends) or (v < len(c) - 1 and high < c[v + 1]):
                return v
