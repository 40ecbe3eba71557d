"""Half-widths of the row law: of linear forms whose law is known, and a bound for all others.

Given a pair (a, b), and l where a block may be missing, the cell of a block of one cell is uniform among consecutive steps, so
x - share * K * rows is beyond w with a probability that is a sum over pairs. Rows, present rows and single cells have exact
tails (:mod:`row_figures`). At a scale of many rows the law is that of a few, scaled, but for 1 % (which is added).

Any other form has a bound: its standard deviation times :func:`factor`. The law has the density exp(-J/B), J the gauge of a
convex symmetric body, up to the grid of whole rows; so a form of it is symmetric and log-concave, up to that grid. Of
such laws with one variance the largest tail is that of an exponential cut off somewhere (the localisation lemma of Fradelizi
and Guedon; uniform and Laplace are its ends). Where the grid matters, at large eps, coordinates are mostly 0 or within
their slack, and their tails are heavier: so the bound is no less than the tail of any one coordinate, and of sums
of several equal ones, each taken as the union of theirs. ``test_joint.py`` draws such forms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpframe.mechanisms import row_figures
from dpframe.mechanisms.base import Floats, Ints
from dpframe.mechanisms.joint import Coordinate, Form
from dpframe.noise.row_points import float_terms, ways
from dpframe.noise.row_shape import Cells

_CUT = np.geomspace(1e-3, 60, 512)  # where the exponential is cut off, over its mean
_FINE = 1 << 12  # steps of a row from which on half a step is little
_SUMMANDS = 8


@dataclass(frozen=True, slots=True)
class Law:
    """A multiple of one of the forms that are known.

    Attributes
    ----------
    kind : str
        "zero", "rows", "present" (a block's present rows), "cell", or "mean": x - share * K * rows.
    times : float
        Above 0; the law is symmetric.
    block : int
    share : float
        Of a mean, from 1/2 to 1 (below, the law is that of 1 - share), or beyond.
    """

    blocks: tuple[Cells, ...]
    scale: Fraction
    kind: str
    times: float = 1.0
    block: int = 0
    share: float = 0.0

    def outside(self, w: float) -> float:
        """P(\\|form\\| > w)."""
        if w < 0:
            return 1.0
        w = w / self.times
        if self.kind == "mean":
            return _outside(_canonical(self.blocks, self.block), self.scale, self.share, w)
        return min(1.0, 2 * self._above(math.floor(w * (1 + 2.0**-48)) + 1))

    def halfwidth(self, level: float) -> float:
        """The least w with P(\\|form\\| <= w) >= level."""
        if self.kind == "zero":
            return 0.0
        if self.kind == "mean":
            law = _canonical(self.blocks, self.block)
            return self.times * _halfwidth(law, self.scale, self.share, level)
        low, high = -1, 1
        while 2 * self._above(high + 1) > 1 - level:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if 2 * self._above(middle + 1) <= 1 - level else (middle, high)
        return self.times * high

    def tail(self, least: int) -> float:
        """P(form >= least), rounded up; of a mean the half of what lies outside of less."""
        if self.kind == "mean":
            return self.outside(least - 1) / 2 * (1 + 2.0**-30) if least > 0 else 1.0
        at = Fraction(least) / Fraction(self.times)
        return self._above(-(-at.numerator // at.denominator))

    def _above(self, least: int) -> float:
        if self.kind == "zero":
            return float(least <= 0)
        if least <= 0:
            return min(1.0, 1 - self._above(1 - least) * (1 - 2.0**-30) + 2.0**-50)
        if self.kind == "rows":
            return row_figures.rows_tail(self.blocks, self.scale, least)
        of = _canonical(self.blocks, self.block)
        if self.kind == "present":
            return row_figures.present_tail(of, self.scale, 0, least)
        return row_figures.cell_tail(of, self.scale, 0, least)


def law_of(
    blocks: tuple[Cells, ...], scale: Fraction, coordinates: tuple[Coordinate, ...], form: Form
) -> Law | None:
    """The law of a form, where it is known; cells of a block and the one that is dropped are alike."""
    used = {c: float(x) for c, x in zip(coordinates, form) if x}
    if not used:
        return Law(blocks, scale, "zero")
    rows = used.pop(Coordinate(), 0.0)
    if not used:
        return Law(blocks, scale, "rows", abs(rows))
    of = {c.block for c in used}
    j = of.pop()
    if of or j is None:
        return None
    b = blocks[j]
    if b.missing:
        if rows:
            return None
        rows = used.pop(Coordinate(j), 0.0)
        if not used:
            return Law(blocks, scale, "present", abs(rows), j)
    weights = list(used.values())
    if len(weights) == 1 and not rows:
        return Law(blocks, scale, "cell", abs(weights[0]), j)
    if len(set(weights)) == 1 and len(weights) == b.m and rows == -weights[0] * b.steps:
        return Law(blocks, scale, "cell", abs(rows) / b.steps, j)
    if b.m > 1:
        return None
    share = -rows / weights[0] / b.steps
    return Law(blocks, scale, "mean", abs(weights[0]), j, max(share, 1 - share))


# ---- a bound for all forms ----


@lru_cache(maxsize=256)
def factor(blocks: tuple[Cells, ...], scale: Fraction, level: float) -> float:
    """The least f with ``beyond(f)`` <= 1 - level."""
    low, high = 0.0, 2.0
    while beyond(blocks, scale, high) > 1 - level:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(blocks, scale, middle) <= 1 - level else (middle, high)
    return high


@lru_cache(maxsize=4096)
def beyond(blocks: tuple[Cells, ...], scale: Fraction, t: float) -> float:
    """A bound of P(\\|form\\| > t * its standard deviation), whatever the form (the module's docstring)."""
    if t < 0:
        return 1.0
    tails = [_cut_off(t)]
    most = min(_SUMMANDS, sum(b.size for b in blocks) + 1)
    for law, std in _single(blocks, scale):
        tails += [j * law.outside(t * math.sqrt(j) * std) for j in range(1, most + 1)]
    return min(1.0, max(tails))


def _cut_off(t: float) -> float:
    """The largest P(X > t) of an exponential that is cut off and has E X**2 = 1."""
    rest = np.exp(-_CUT)
    mass = -np.expm1(-_CUT)
    second = (2 - rest * (_CUT * _CUT + 2 * _CUT + 2)) / mass
    at = t * np.sqrt(second)
    return float(np.max(np.where(at < _CUT, (np.exp(-at) - rest) / mass, 0.0)))


@lru_cache(maxsize=256)
def _single(blocks: tuple[Cells, ...], scale: Fraction) -> tuple[tuple[Law, float], ...]:
    """Each kind of coordinate, and its standard deviation."""
    out = [Law(blocks, scale, "rows")]
    for b in dict.fromkeys(blocks):
        j = blocks.index(b)
        out += [Law(blocks, scale, "present", 1.0, j)] * b.missing + [Law(blocks, scale, "cell", 1.0, j)]
    found = []
    for law in out:
        cell = {"rows": (None, None), "present": (law.block, None), "cell": (law.block, 0)}[law.kind]
        found.append((law, math.sqrt(row_figures.covariance(blocks, scale, (cell,))[0, 0])))
    return tuple(found)


# ---- means ----


def _canonical(blocks: tuple[Cells, ...], block: int) -> tuple[Cells, ...]:
    """The same blocks, the one in question first: blocks of one shape are alike, and share what was computed."""
    rest = blocks[:block] + blocks[block + 1 :]
    return (blocks[block], *sorted(rest, key=lambda b: (b.m, b.steps, b.slack, b.missing)))


def _outside(blocks: tuple[Cells, ...], scale: Fraction, share: float, w: float) -> float:
    """P(\\|x - share * K * rows\\| > w) of the first block."""
    one, most = blocks[0], _largest(blocks)
    if scale > most:
        near = (w - 1) / (float(scale / most) * 1.01)
        return _outside(_wide(blocks), most, share, near) if near >= 0 else 1.0
    p, a, b = _pairs(blocks, scale)
    k, r = float(one.steps), one.slack
    moved = share * k * (a - b)
    high, low = a * k + r, -b * k - r  # x
    if one.steps >= _FINE:  # as if uniform on the steps' whole width, w half a step less
        over = np.clip(high - low + 1 - np.maximum(w + moved - low, 0), 0, None)
        under = np.clip(high - low + 1 - np.maximum(high + w - moved, 0), 0, None)
    else:
        nudged = w * (1 + 2.0**-48)
        over = np.clip(high - np.maximum(np.floor(moved + nudged), low - 1), 0, None)
        under = np.clip(np.minimum(np.ceil(moved - nudged), high + 1) - low, 0, None)
    return float(np.sum(p * (over + under) / (high - low + 1)))


@lru_cache(maxsize=1024)
def _halfwidth(blocks: tuple[Cells, ...], scale: Fraction, share: float, level: float) -> float:
    one, most = blocks[0], _largest(blocks)
    if scale > most:  # a slack below K/2 makes less of a difference at a larger B
        return _halfwidth(_wide(blocks), most, share, level) * float(scale / most) * 1.01 + 1
    aim = (1 - level) * (1 - 2.0**-30)
    low, high = 0.0, float(one.steps)
    while _outside(blocks, scale, share, high) > aim:
        low, high = high, 2 * high
    if _outside(blocks, scale, share, 0.0) <= aim:
        return 0.0
    for _ in range(36):
        middle = (low + high) / 2
        low, high = (low, middle) if _outside(blocks, scale, share, middle) <= aim else (middle, high)
    return high


def _wide(blocks: tuple[Cells, ...]) -> tuple[Cells, ...]:
    return tuple(Cells(b.m, b.steps, max(b.slack, b.steps // 2), b.missing) for b in blocks)


def _largest(blocks: tuple[Cells, ...]) -> Fraction:
    """B, in rows, up to which pairs are summed one by one: some 10**5 of them."""
    d = sum(b.size for b in blocks)
    return Fraction(8 if d <= 12 else 4 if d <= 40 else 2)


def mean_errors(blocks: tuple[Cells, ...], scale: Fraction, block: int) -> tuple[float, float]:
    """RMSE of x/K - share * rows at share 1/2 and 1, in rows (at a large B scaled)."""
    out, near = [], min(scale, _largest(blocks))
    p, a, b = _pairs(_canonical(blocks, block), near)
    one = blocks[block]
    more = (one.slack + 0.5) / one.steps
    for share in (0.5, 1.0):
        low, high = -b - more - share * (a - b), a + more - share * (a - b)
        each = math.sqrt(float(np.sum(p * (high * high + high * low + low * low))) / 3)
        out.append(each * float(scale / near))
    return out[0], out[1]


@lru_cache(maxsize=16)
def _pairs(blocks: tuple[Cells, ...], scale: Fraction) -> tuple[Floats, Floats, Floats]:
    """The pairs that hold the first block's cells, and their probabilities (where it may be missing: the largest, given l)."""
    d = sum(b.size for b in blocks)
    last = math.ceil(float(scale) * (d + 45 + 3 * math.sqrt(d))) + 3
    grid = np.arange(last + 1, dtype=np.int64)
    a, b = (g.ravel() for g in np.meshgrid(grid, grid, indexing="ij"))
    kept = a + b <= last
    a, b = a[kept], b[kept]
    logs = -(a + b) / float(scale)
    one = blocks[0]
    others = blocks[1:] if one.missing else blocks
    for other in dict.fromkeys(others):
        logs += others.count(other) * _log_ways(other, a, b)
    f = np.exp(logs - logs.max())
    if one.missing:
        table = np.zeros((last + 1, last + 1))
        table[a, b] = f
        up = np.cumsum(table[:, ::-1], axis=1)[:, ::-1]  # over b' >= b
        right = np.cumsum(table[::-1], axis=0)[::-1] - table  # over a' > a
        f = (up + right)[a, b] * ((a + b) * float(one.steps) + 2 * one.slack + 1)
    seen = f > f.max() * 1e-22
    a, b, f = a[seen], b[seen], f[seen]
    return f / f.sum(), a.astype(np.float64), b.astype(np.float64)


def _log_ways(block: Cells, a: Ints, b: Ints) -> Floats:
    """log W, up to a constant."""
    if block.missing:
        return np.asarray(np.log(ways(block, a, b)))
    k, r, m = block.steps, block.slack, block.m
    size = (a + b) * float(k) + (2 * r + m)
    if m == 1:
        return np.asarray(np.log(size))
    return np.asarray(np.log(np.sum(float_terms(m, a * k + r, b * k + r), axis=0)) + m * np.log(size))
