"""Integer points that a pair (a, b) holds: their number in float64, and uniform draws of them, decided exactly.

Definitions, and why every decision is exact, are in :mod:`dpframe.noise.row_sampler`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from math import comb

import numpy as np
import numpy.typing as npt

from dpframe.noise import source
from dpframe.noise.row_shape import Cells, basis, points, terms

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_BAND = 2.0**-36


def ways(block: Cells, a: Ints, b: Ints) -> Floats:
    """``block.ways`` up to a factor that depends on a + b alone, by sums of positive terms."""
    k, r, m = block.steps, block.slack, block.m
    if not block.missing:
        return np.asarray(np.sum(float_terms(m, a * k + r, b * k + r), axis=0))
    x, y = a.astype(np.float64), b.astype(np.float64)
    if m == 1:
        s = x + y
        return np.asarray(k * (s * s - (x * x + y * y - s) / 2) + (2 * r + 1) * (s + 1))
    out = np.zeros(len(a))
    ups, downs = _binomials(x, block.size), _binomials(y, block.size)
    for u, v, c in basis(block):
        out += c * ups[u] * downs[v]
    return out


def _binomials(x: Floats, most: int) -> list[Floats]:
    out = [np.ones(len(x))]
    for u in range(most):
        out.append(out[-1] * np.maximum(x - u, 0.0) / (u + 1))
    return out


def float_terms(m: int, most: Ints, least: Ints) -> Floats:
    """C(m,i) C(least,i) C(most+m-i,m-i) for i = 0 .. m, times m!/(most+least+m)**m."""
    up, down = most.astype(np.float64), least.astype(np.float64)
    size = up + down + m
    ups = np.ones((m + 1, len(up)))  # ups[j]: product of (most + t)/size for t = 1 .. j
    downs = np.ones((m + 1, len(up)))
    for t in range(1, m + 1):
        ups[t] = ups[t - 1] * ((up + t) / size)
        downs[t] = downs[t - 1] * (np.maximum(down - (t - 1), 0.0) / size)
    each = np.array([float(comb(m, i) ** 2) for i in range(m + 1)])
    return np.asarray(each[:, None] * downs * ups[::-1])


# ---- uniform points ----


def held(block: Cells, a: Ints, b: Ints) -> Ints:
    return _points_of(block.m, a * block.steps + block.slack, b * block.steps + block.slack)


def held_or_missing(block: Cells, a: Ints, b: Ints) -> tuple[Ints, Ints]:
    """Cells and l: l uniform among -b .. a, kept in proportion to what it leaves to the cells; most at l = a - b."""
    k, r = block.steps, block.slack
    row = np.empty(len(a), dtype=np.int64)
    x = np.empty((len(a), block.m), dtype=np.int64)
    left = np.arange(len(a))
    while len(left):
        up, down = a[left], b[left]
        some = below(up + down + 1) - down
        most = np.minimum(up, down + some)
        least = most - some
        if block.m == 1:  # the place of the cell among those of the widest l decides, too
            place = below((up + down) * k + (2 * r + 1))
            kept = place < (most + least) * k + (2 * r + 1)
            x[left[kept], 0] = (place - (least * k + r))[kept]
        else:
            kept = _smaller(block, most, least, up, down)
            x[left[kept]] = held(block, most[kept], least[kept])
        row[left[kept]] = some[kept]
        left = left[~kept]
    return x, row


def _smaller(block: Cells, most: Ints, least: Ints, up: Ints, down: Ints) -> Bools:
    """Heads with probability N(most, least) / N(up, down)."""
    k, r, m = block.steps, block.slack, block.m

    def exact(i: int) -> tuple[int, int]:
        a, b, c, d = (int(v[i]) * k + r for v in (most, least, up, down))
        return points(m, a, b), points(m, c, d)

    part, whole = (
        np.sum(float_terms(m, x * k + r, y * k + r), axis=0) for x, y in ((most, least), (up, down))
    )
    narrower = ((most + least) * k + (2 * r + m)) / ((up + down) * k + (2 * r + m))
    return coins(part / whole * narrower**m, exact)


def _points_of(m: int, most: Ints, least: Ints) -> Ints:
    """Uniform among the integer points with sum(x+) <= most and sum(x-) <= least."""
    n = len(most)
    if m == 1:
        return (below(most + least + 1) - least)[:, None]
    out = np.empty((n, m), dtype=np.int64)
    negative = _negatives(m, most, least)
    for i in range(m + 1):
        at = np.flatnonzero(negative == i)
        if not len(at):
            continue
        low = -_gaps(least[at], i)  # the gaps of an i-subset of 1 .. least
        high = _gaps(most[at] + (m - i), m - i) - 1
        order = _shuffled(len(at), m) if 0 < i < m else np.arange(m)[None, :]
        out[at[:, None], order] = np.concatenate([low, high], axis=1)
    return out


def _negatives(m: int, most: Ints, least: Ints) -> Ints:
    """i with weight C(m,i) C(least,i) C(most+m-i,m-i), out of cumulative sums."""
    sums = np.cumsum(float_terms(m, most, least), axis=0)
    w = source.words(len(most))
    u = w * 2.0**-64 * sums[-1]
    band = _BAND * sums[-1]
    i = np.sum(sums[:-1] <= u, axis=0)
    near = np.min(np.abs(sums[:-1] - u), axis=0) <= band
    for at in np.flatnonzero(near):
        a, b = int(most[at]), int(least[at])
        i[at] = _place(list(accumulate(terms(m, a, b))), int(w[at]))
    return np.asarray(i, dtype=np.int64)


def _place(edges: list[int], word: int) -> int:
    """Place U, whose first 64 digits are ``word``, among exact edges."""
    n = 64
    while True:
        low = bisect_right(edges, (word * edges[-1]) >> n)
        if low == bisect_right(edges, ((word + 1) * edges[-1] - 1) >> n):
            return low
        word, n = (word << 64) | source.bits(64), n + 64


def _gaps(most: Ints, size: int) -> Ints:
    """Gaps of a uniform subset of 1 .. most with ``size`` elements (Floyd's algorithm), the first from 0."""
    chosen = np.zeros((len(most), size), dtype=np.int64)
    for t in range(size):
        last = most - (size - 1 - t)
        one = below(last) + 1
        taken = np.any(chosen[:, :t] == one[:, None], axis=1)
        chosen[:, t] = np.where(taken, last, one)
    chosen.sort(axis=1)
    return np.asarray(np.diff(chosen, axis=1, prepend=0))


def _shuffled(n: int, m: int) -> Ints:
    """Uniform orders of 0 .. m-1: of words, drawn again where two are equal."""
    keys = source.words(n * m).reshape(n, m).copy()
    while True:
        order = np.argsort(keys, axis=1)
        sorted_keys = np.take_along_axis(keys, order, axis=1)
        again = np.flatnonzero(np.any(sorted_keys[:, 1:] == sorted_keys[:, :-1], axis=1))
        if not len(again):
            return order
        keys[again] = source.words(len(again) * m).reshape(-1, m)


# ---- exact decisions ----


def below(n: Ints) -> Ints:
    """Uniform integers below each of ``n`` (1 to 2**63); words of the last, incomplete run are drawn again."""
    size = n.astype(np.uint64)
    w = source.words(len(size)).copy()
    out = w % size
    # A word beyond 2**64 - n may belong to a run that is cut off: exactly those of at least 2**64 - 2**64 % n do.
    doubtful = np.flatnonzero(w >= np.uint64(0) - size)
    while len(doubtful):
        of = size[doubtful]
        rest = (np.uint64(0) - of) % of  # 2**64 modulo n
        again = doubtful[(rest > 0) & (w[doubtful] >= np.uint64(0) - rest)]
        w[again] = source.words(len(again))
        out[again] = w[again] % size[again]
        doubtful = again
    return np.asarray(out.astype(np.int64))


def coins(odds: Floats, exact: Callable[[int], tuple[int, int]]) -> Bools:
    """Heads with probability x/y for (x, y) = exact(i), of which ``odds`` is the float."""
    w = source.words(len(odds))
    gap = odds - w * 2.0**-64
    heads: Bools = gap > 0
    for i in np.flatnonzero(~(np.abs(gap) > _BAND)):  # NaN is undecided, too
        x, y = exact(int(i))
        heads[i] = x >= y or _coin(x, y, int(w[i]))
    return heads


def _coin(x: int, y: int, word: int) -> bool:
    n = 64
    while True:
        if (word + 1) * y <= x << n:
            return True
        if word * y >= x << n:
            return False
        word, n = (word << 64) | source.bits(64), n + 64
