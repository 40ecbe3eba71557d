"""Exact figures of the row law: covariances, and the tails of single coordinates.

Sums over pairs (a, b), which have probability W(a, b) q**(a+b) / Z; given the pair, blocks are independent and uniform
among what it holds. W and the sums of moments over the points that a pair holds are polynomials, which differences at 0
determine, and sum_n C(n, u) q**n = q**u / (1-q)**(u+1).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache, lru_cache
from math import comb

import numpy as np

from dpframe.mechanisms.base import Floats
from dpframe.noise.row_shape import Cells, differences, numerators, points

_DIGITS = Context(prec=120)

At = tuple[int | None, int | None]  # (block, cell): (None, None) the rows, (j, None) its present rows


# ---- moments, exactly ----


@lru_cache(maxsize=1024)
def covariance(blocks: tuple[Cells, ...], scale: Fraction, at: tuple[At, ...]) -> Floats:
    """Covariances of the coordinates ``at`` (all means are 0)."""
    degree = sum(b.size for b in blocks) + 3
    total = _total(blocks, scale)

    def moment(u: At, v: At) -> float:
        return float(_DIGITS.divide(_series(_sums(blocks, u, v, degree), scale), total))

    return _table(blocks, at, moment)


@lru_cache(maxsize=64)
def by_size(blocks: tuple[Cells, ...], scale: Fraction, at: tuple[At, ...]) -> tuple[Floats, list[Floats]]:
    """Probabilities of s = a + b up to one of 1e-13 beyond, and covariances of the coordinates ``at`` for every such s."""
    q, _ = _q(scale)
    odds: list[float] = []
    found: list[Floats] = []
    while sum(odds) < 1 - 1e-13:
        s = len(odds)
        points = sum(_with_mirror(s, _held(blocks, s)))
        share = _DIGITS.divide(_DIGITS.multiply(Decimal(points), _DIGITS.power(q, s)), _total(blocks, scale))
        odds.append(float(share))
        found.append(_table(blocks, at, lambda u, v: _sum(blocks, u, v, s) / points))  # noqa: B023
    return np.array(odds), found


def _table(blocks: tuple[Cells, ...], at: tuple[At, ...], moment: Callable[[At, At], float]) -> Floats:
    """A symmetric matrix of what is computed once for pairs that are alike."""
    known: dict[object, float] = {}
    out = np.empty((len(at), len(at)))
    for i, u in enumerate(at):
        for j, v in enumerate(at[: i + 1]):
            kind = _kind(blocks, u, v)
            if kind not in known:
                known[kind] = moment(u, v)
            out[i, j] = out[j, i] = known[kind]
    return out


def _kind(blocks: tuple[Cells, ...], u: At, v: At) -> object:
    """Equal for coordinates that have equal covariances: blocks of one shape, and cells of one block, are alike."""
    ends = sorted((("rows" if b is None else (blocks[b], c is None)) for b, c in (u, v)), key=repr)
    return tuple(ends), u[0] == v[0], u == v


@lru_cache(maxsize=4096)
def _sums(blocks: tuple[Cells, ...], u: At, v: At, degree: int) -> tuple[int, ...]:
    """:func:`_sum` for s up to ``degree``: the same at every scale."""
    return tuple(_sum(blocks, u, v, s) for s in range(degree + 1))


def _sum(blocks: tuple[Cells, ...], u: At, v: At, s: int) -> int:
    """The sum of a product of two coordinates over all that pairs with a + b = s hold."""
    of_rows = sum(block is None for block, _ in (u, v))
    mine = {j: [cell for k, cell in (u, v) if k == j] for j, _ in (u, v) if j is not None}
    out = []
    for a, held in enumerate(_held(blocks, s)):
        b = s - a
        product = held * (a - b) ** of_rows
        for j, cells in mine.items():
            product = product // blocks[j].ways(a, b) * _block_sum(blocks[j], cells, a, b)
        out.append(product)
    return sum(_with_mirror(s, out))


@lru_cache(maxsize=4096)
def _held(blocks: tuple[Cells, ...], s: int) -> list[int]:
    """The number of points that (a, s - a) holds, for a up to s/2."""
    return [math.prod(b.ways(a, s - a) for b in blocks) for a in range(s // 2 + 1)]


def _with_mirror(s: int, values: list[int]) -> list[int]:
    """Of values for a up to s/2 that are the same for (a, b) and (b, a): those of all a, added up."""
    return [x if 2 * a == s else 2 * x for a, x in enumerate(values)]


@lru_cache(maxsize=1 << 16)
def _block_sum_cached(block: Cells, mine: tuple[int | None, ...], a: int, b: int) -> int:
    if not block.missing:
        return _cell_sum(block, mine, a, b)
    out = 0
    for here in range(-b, a + 1):
        most = min(a, b + here)
        out += here ** mine.count(None) * _cell_sum(
            block, tuple(c for c in mine if c is not None), most, most - here
        )
    return out


def _block_sum(block: Cells, mine: list[int | None], a: int, b: int) -> int:
    """Sum, over all that (a, b) holds, of the product of the block's coordinates in ``mine``."""
    cells = sorted({c for c in mine if c is not None})
    named = tuple(None if c is None else cells.index(c) for c in mine)  # cells are alike
    return _block_sum_cached(block, named, a, b)


@lru_cache(maxsize=1 << 16)
def _cell_sum(block: Cells, cells: tuple[int | None, ...], a: int, b: int) -> int:
    m, up, down = block.m, a * block.steps + block.slack, b * block.steps + block.slack
    if not cells:
        return points(m, up, down)
    if len(cells) == 1:
        return _one(m, up, down, 1) - _one(m, down, up, 1)
    if cells[0] == cells[1]:
        return _one(m, up, down, 2) + _one(m, down, up, 2)
    return _two(m, up, down) + _two(m, down, up)


def _one(m: int, up: int, down: int, power: int) -> int:
    """Sum of x**power over points with a positive first cell x: by sum_v v C(A-v+n, n) = C(A+n+1, n+2), and so on."""
    out = 0
    for i in range(m):
        n = m - 1 - i
        each = comb(up + n + 1, n + 2)
        if power == 2:
            each = 2 * comb(up + n + 2, n + 3) - each
        out += comb(m - 1, i) * comb(down, i) * each
    return out


def _two(m: int, up: int, down: int) -> int:
    """Sum of x y over points whose first two cells are positive, less that of half of those of opposite signs."""
    out = 0
    for i in range(m - 1):
        n = m - 2 - i
        both = comb(down, i) * comb(up + n + 2, n + 4)
        opposite = comb(down + 1, i + 2) * comb(up + n + 1, n + 2)
        out += comb(m - 2, i) * (both - opposite)
    return out


def _series(values: Sequence[int], scale: Fraction) -> Decimal:
    """sum_s f(s) q**s of the polynomial f that has ``values`` at 0, 1, ... (more of them than its degree)."""
    q, rest = _q(scale)
    out, power, column = Decimal(0), _DIGITS.divide(Decimal(1), rest), list(values)
    while column:
        out = _DIGITS.add(out, _DIGITS.multiply(Decimal(column[0]), power))
        power = _DIGITS.multiply(power, _DIGITS.divide(q, rest))
        column = [y - x for x, y in itertools.pairwise(column)]
    return out


def _total(blocks: tuple[Cells, ...], scale: Fraction) -> Decimal:
    """Z = sum over pairs of W(a, b) q**(a+b)."""
    q, rest = _q(scale)
    out = Decimal(0)
    for i, h in enumerate(numerators(blocks)):
        out = _DIGITS.add(out, _DIGITS.multiply(Decimal(h), _DIGITS.power(q, i)))
    return _DIGITS.divide(out, _DIGITS.power(rest, sum(b.size for b in blocks) + 2))


@lru_cache(maxsize=64)
def _q(scale: Fraction) -> tuple[Decimal, Decimal]:
    """q and 1 - q."""
    q = _DIGITS.exp(_DIGITS.divide(Decimal(-scale.denominator), Decimal(scale.numerator)))
    return q, _DIGITS.subtract(Decimal(1), q)


# ---- tails ----


@lru_cache(maxsize=4096)
def rows_tail(blocks: tuple[Cells, ...], scale: Fraction, least: int) -> float:
    """P(k >= least) for 1 or more, rounded up: sum over b, u >= 0 of W(least + b + u, b) q**(least + 2b + u) / Z."""
    kinds = {b: blocks.count(b) for b in blocks}

    def beyond(u: int, b: int) -> int:  # k = least + u
        return math.prod(x.ways(least + b + u, b) ** times for x, times in kinds.items())

    q, _ = _q(scale)
    return _tail(beyond, blocks, scale, least, _DIGITS.multiply(q, q))


@lru_cache(maxsize=4096)
def cell_tail(blocks: tuple[Cells, ...], scale: Fraction, block: int, least: int) -> float:
    """P(x >= least) for one cell of a block, ``least`` 1 or more, rounded up.

    Pairs with a K + r >= least have such points, their number being a polynomial in a beyond the first such a: with A and B
    as in N, sum_i C(m-1,i) C(B,i) C(A-least+m-i, m-i).
    """
    mine = blocks[block]
    k, r, m = mine.steps, mine.slack, mine.m
    first = max(0, -((r - least) // k))
    others = {b: (blocks[:block] + blocks[block + 1 :]).count(b) for b in blocks}

    @cache
    def above(a: int, b: int) -> int:
        over, down = a * k + r - least, b * k + r
        return sum(
            comb(m - 1, i) * comb(down, i) * comb(over + m - i, m - i) for i in range(min(m - 1, down) + 1)
        )

    def beyond(u: int, b: int) -> int:
        a = first + u
        out: int = math.prod(x.ways(a, b) ** times for x, times in others.items())
        if not mine.missing:
            return out * above(a, b)
        rising = sum(above(t, b) for t in range(first, a + 1))
        return out * (rising + sum(above(a, t) for t in range(b)))

    q, _ = _q(scale)
    return _tail(beyond, blocks, scale, first, q)


@lru_cache(maxsize=4096)
def present_tail(blocks: tuple[Cells, ...], scale: Fraction, block: int, least: int) -> float:
    """P(l >= least) for the present rows of a block, ``least`` 1 or more, rounded up.

    With a = least + u, every such l has all of a and b' = a - l <= u where u < b; else those with b' < b, and the rest all of b.
    On either side of u = b the sums are polynomials, in u and b - u - 1, and in b and u - b.
    """
    mine = blocks[block]
    others = {b: (blocks[:block] + blocks[block + 1 :]).count(b) for b in blocks}

    @cache
    def held(a: int, b: int) -> int:
        return points(mine.m, a * mine.steps + mine.slack, b * mine.steps + mine.slack)

    def rest(a: int, b: int) -> int:
        return math.prod(x.ways(a, b) ** times for x, times in others.items())

    def few(v: int, u: int) -> int:
        a, b = least + u, u + 1 + v
        return rest(a, b) * sum(held(a, t) for t in range(u + 1))

    def many(v: int, b: int) -> int:
        a = least + b + v
        falling = sum(held(a, t) for t in range(b))
        return rest(a, b) * (falling + sum(held(t, b) for t in range(least + b, a + 1)))

    q, _ = _q(scale)
    twice = _DIGITS.multiply(q, q)
    return min(1.0, _tail(few, blocks, scale, least + 1, twice) + _tail(many, blocks, scale, least, twice))


def _tail(
    beyond: Callable[[int, int], int], blocks: tuple[Cells, ...], scale: Fraction, power: int, of_b: Decimal
) -> float:
    """q**power / Z times the sum over u, b >= 0 of beyond(u, b) q**u of_b**b, rounded up.

    Differences are taken of whole numbers: of rounded ones they would lose as many digits as there are cells, and more.
    """
    n = sum(b.size for b in blocks) + 1
    q, _ = _q(scale)
    rows, columns = _geometric(q, n), _geometric(of_b, n)
    found = Decimal(0)
    for row, c in zip(rows, differences([[beyond(u, b) for b in range(n)] for u in range(n)])):
        inner = Decimal(0)
        for column, times in zip(columns, c):
            inner = _DIGITS.add(inner, _DIGITS.multiply(column, Decimal(times)))
        found = _DIGITS.add(found, _DIGITS.multiply(row, inner))
    found = _DIGITS.divide(found, _total(blocks, scale))
    return min(1.0, float(_DIGITS.multiply(found, _DIGITS.power(q, power))) * (1 + 2.0**-40) + 1e-320)


def _geometric(q: Decimal, n: int) -> list[Decimal]:
    """sum_x C(x, u) q**x = q**u / (1-q)**(u+1) for u < n."""
    rest = _DIGITS.subtract(Decimal(1), q)
    out = [_DIGITS.divide(Decimal(1), rest)]
    while len(out) < n:
        out.append(_DIGITS.multiply(out[-1], _DIGITS.divide(q, rest)))
    return out
