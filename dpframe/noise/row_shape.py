"""What is known of the shape of a row: how many integer points a pair (a, b) holds, and the checks that a sampler rests on.

All in Python's integers; definitions are in :mod:`dpframe.noise.row_sampler`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb

import numpy as np

MOST_CELLS = 256  # D


@dataclass(frozen=True, slots=True)
class Cells:
    """One block as the sampler sees it.

    Attributes
    ----------
    m : int
        Free cells.
    steps : int
        K: what a present row's cells add up to at most.
    slack : int
        r, from 0 to K.
    missing : bool
        Whether the block may be missing from a row.
    """

    m: int
    steps: int
    slack: int = 0
    missing: bool = False

    @property
    def size(self) -> int:
        """How much the block adds to D."""
        return self.m + self.missing

    def ways(self, a: int, b: int) -> int:
        """W: the number of (cells, l) that (a, b) holds; the same for (b, a)."""
        return _ways(self, min(a, b), max(a, b))


@lru_cache(maxsize=1 << 16)
def _ways(block: Cells, a: int, b: int) -> int:
    if not block.missing:
        return _held(block, a, b)
    if block.m == 1:
        s = a + b
        return block.steps * (s * s - (a * a + b * b - s) // 2) + (2 * block.slack + 1) * (s + 1)
    if a + b > 4 * block.m + 8:
        return sum(c * comb(a, u) * comb(b, v) for u, v, c in coefficients(block))
    return sum(_held(block, t, b) for t in range(a + 1)) + sum(_held(block, a, t) for t in range(b))


@lru_cache(maxsize=1 << 16)
def _held(block: Cells, a: int, b: int) -> int:
    return points(block.m, a * block.steps + block.slack, b * block.steps + block.slack)


def points(m: int, most: int, least: int) -> int:
    """N_m: integer points whose positive parts add up to ``most`` at most, and negative ones to ``least``."""
    if m == 1:
        return most + least + 1
    return sum(terms(m, most, least))


def terms(m: int, most: int, least: int) -> list[int]:
    """C(m,i) C(least,i) C(most+m-i,m-i) for i = 0 .. m: how many of the points have i negative cells."""
    out = [comb(most + m, m)]
    for i in range(m):
        out.append(out[-1] * (m - i) ** 2 * (least - i) // ((i + 1) ** 2 * (most + m - i)))
    return out


def room(blocks: tuple[Cells, ...], scale: Fraction) -> int:
    """The largest number of steps that a block may have beside the others at a scale of ``scale`` rows."""
    return int((1 << 60) / ((sum(b.size for b in blocks) + 64) * max(scale, Fraction(1))))


@lru_cache(maxsize=512)
def numerators(blocks: tuple[Cells, ...]) -> tuple[int, ...]:
    """h_0, ..., h_{D+1} with sum_s G(s) q**s = sum_i h_i q**i / (1-q)**(D+2)."""
    d = sum(b.size for b in blocks)
    kinds = {b: blocks.count(b) for b in blocks}
    values = []
    for s in range(d + 2):
        total = 0
        for a in range(s // 2 + 1):  # W is symmetric
            w = 1 if 2 * a == s else 2
            for b, times in kinds.items():
                w *= b.ways(a, s - a) ** times
            total += w
        values.append(total)
    return tuple(sum((-1) ** j * comb(d + 2, j) * values[i - j] for j in range(i + 1)) for i in range(d + 2))


def values(h: tuple[int, ...], d: int) -> Iterator[int]:
    """G(0), G(1), ..., by its differences, which are constant from the (D+1)-th on."""
    first = [sum(x * comb(s - i + d + 1, d + 1) for i, x in enumerate(h[: s + 1])) for s in range(d + 2)]
    column = []
    while first:
        column.append(first[0])
        first = [y - x for x, y in itertools.pairwise(first)]
    while True:
        yield column[0]
        column = [x + y for x, y in zip(column, [*column[1:], 0])]


@lru_cache(maxsize=512)
def peaks_in_the_middle(block: Cells) -> bool:
    """Whether W(a, s-a) never falls on the way to the middle, for any s.

    With b = a + d, W(a+1, b) - W(a, b+1) is a polynomial in a and d, of degree ``size`` at most; where no coefficient of it is
    negative in the basis C(a, u) C(d, v) it is not negative at all. (W is symmetric in a and b. A block that is never
    missing moves by K steps of one cell's grid, so K = 1 stands for all.)
    """
    if block.size == 1:
        return True
    one = block if block.missing else Cells(block.m, 1)
    n = block.size + 1
    if not block.missing:
        grid = _points(block.m, n + 1, 2 * n + 1)
        values = [[grid[a + 1][a + d] - grid[a][a + d + 1] for d in range(n)] for a in range(n)]
    else:
        values = [[one.ways(a + 1, a + d) - one.ways(a, a + d + 1) for d in range(n)] for a in range(n)]
    return min(c for row in differences(values) for c in row) >= 0


def _points(m: int, rows: int, columns: int) -> list[list[int]]:
    """N_m(A, B) for A < rows, B < columns: the series (1-xy)**m / ((1-x)(1-y))**(m+1)."""
    t = np.ones((rows, columns), dtype=object)
    for _ in range(m):
        less = t.copy()
        less[1:, 1:] -= t[:-1, :-1]
        t = np.cumsum(np.cumsum(less, axis=0), axis=1)
    return [list(row) for row in t]


def differences(values: list[list[int]]) -> list[list[int]]:
    """Of a polynomial known at 0, 1, ..., n-1 in both variables, in the basis C(a, u) C(d, v): its differences at 0."""
    t = np.array(values, dtype=object)
    for axis in (0, 1):
        t = np.moveaxis(t, axis, 0).copy()
        for i in range(1, len(t)):
            t[i:] = t[i:] - t[i - 1 : -1]
        t = np.moveaxis(t, 0, axis)
    return [list(row) for row in t]


@lru_cache(maxsize=512)
def coefficients(block: Cells) -> tuple[tuple[int, int, int], ...]:
    """(u, v, c): W of a block that may be missing is the sum of c C(a, u) C(b, v), a polynomial; no c is negative.

    Its degree is m + 1, so values at a, b <= m + 1 determine it.
    """
    n = block.size + 1
    found = differences([[block.ways(a, b) for b in range(n)] for a in range(n)])
    if min(c for row in found for c in row) < 0:
        raise ValueError("this shape of blocks can't be drawn")
    return tuple((u, v, c) for u, row in enumerate(found) for v, c in enumerate(row) if c)


@lru_cache(maxsize=512)
def basis(block: Cells) -> tuple[tuple[int, int, float], ...]:
    """:func:`coefficients` as floats, up to a power of two."""
    found = coefficients(block)
    top = max(c for _, _, c in found).bit_length()
    return tuple((u, v, float(Fraction(c, 1 << top))) for u, v, c in found)
