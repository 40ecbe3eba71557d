"""Half-widths of the row law: of linear forms whose law is known, and a bound for all others.

Given a pair (a, b), and l where a block may be missing, the cell of a block of one cell is uniform among consecutive steps, so
x - share * K * rows is beyond w with a probability that is a sum over pairs. Rows, present rows and single cells have exact
tails (:mod:`row_figures`). At a scale of many rows the law is that of a few, scaled, but for 1 % (which is added).

Any other form has a bound: its standard deviation times :func:`factor`.

* At a scale of a row or more the law has the density exp(-J/B), J the gauge of a convex symmetric body, up to the grid of
  whole rows, so a form is symmetric and log-concave, up to that grid. Of such laws with one variance the largest tail is
  that of an exponential cut off somewhere (the localisation lemma of Fradelizi and Guedon; uniform and Laplace are its ends).
* Below, rows are a coarse grid. Given s = a + b the point is uniform among those of the body J <= s, with rows of one
  parity. Of s = 0, where no row is drawn, that is log-concave as it stands; so it nearly is for s beyond two. For s of 1 and 2
  it is in lumps, each log-concave around a mean of its own: of these with one second moment the largest tails are
  exp(-1 - root(t**2 - 1)) and exp(-1 - t). How much larger a form is given s than at large is an eigenvalue.
* Laws that are mostly 0 need more for several draws than for one: so the tail is no less than that of any one coordinate, and
  of several equal ones, taken as the union of theirs.

``test_joint.py`` draws such forms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpframe.mechanisms import row_figures
from dpframe.mechanisms.base import Floats, Ints
from dpframe.mechanisms.joint import Coordinate, Form
from dpframe.noise.row_points import float_terms, ways
from dpframe.noise.row_shape import Cells

_LUMPS = 2  # s up to which what is drawn given s is in lumps
_CUT = np.geomspace(1e-3, 60, 512)  # where the exponential is cut off, over its mean
_FINE = 1 << 12  # steps of a row from which on half a step is little
_PRODUCTS = 1 << 20  # pairs times widths that are looked at one by one
_SUMMANDS = 8
_PARTS = 64  # shares that are multiples of a 64th have edges on a lattice
_MOST_EXACT = 24


@dataclass(frozen=True, slots=True)
class Law:
    """A multiple of one of the forms that are known.

    Attributes
    ----------
    kind : str
        "zero", "rows", "present" (a block's present rows), "absent" (rows less those), "cell", "mean": x - share * K * rows.
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

    def outside(self, w: Floats) -> Floats:
        """P(\\|form\\| > w), in float64; at a large scale an upper bound."""
        if self.kind == "zero":
            return np.asarray(w < 0, dtype=np.float64)
        of = self.blocks if self.kind == "rows" else _canonical(self.blocks, self.block)
        most = _largest(of)
        at = w / self.times
        if self.kind == "cell" and of[0].m > 1:
            found = _cell(of, self.scale, at)
        elif self.scale > most:  # a slack below K/2 makes less of a difference at a larger B
            wide = tuple(Cells(b.m, b.steps, max(b.slack, b.steps // 2), b.missing) for b in of)
            found = _outside(wide, most, self.kind, self.share, (at - 1) / (float(self.scale / most) * 1.01))
        else:
            found = _outside(of, self.scale, self.kind, self.share, at)
        return np.where(w < 0, 1.0, np.clip(found, 0.0, 1.0))

    def halfwidth(self, level: float) -> float:
        """The least w with P(\\|form\\| <= w) >= level."""
        if self.kind == "zero":
            return 0.0
        if self.kind == "mean":
            return self.times * _halfwidth(_canonical(self.blocks, self.block), self.scale, self.share, level)

        def within(w: int) -> bool:
            if self.kind == "absent":
                return float(self.outside(np.array(self.times * w))) <= (1 - level) * (1 - 2.0**-30)
            return 2 * self._above(w + 1) <= 1 - level

        low, high = -1, 1 if self.kind == "absent" else max(1, int(2 * self.std()))
        while not within(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if within(middle) else (middle, high)
        return self.times * high

    def tail(self, least: int) -> float:
        """P(form >= least), rounded up; of a mean, and of absent rows, the half of what lies outside of less."""
        if self.kind in ("mean", "absent"):
            return float(self.outside(np.array(least - 1.0))) / 2 * (1 + 2.0**-30) if least > 0 else 1.0
        at = Fraction(least) / Fraction(self.times)
        return self._above(-(-at.numerator // at.denominator))

    def std(self) -> float:
        """Of the rows, present rows or one cell."""
        cell = {"rows": (None, None), "present": (self.block, None), "cell": (self.block, 0)}[self.kind]
        return math.sqrt(row_figures.covariance(self.blocks, self.scale, (cell,))[0, 0])

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
        present = used.pop(Coordinate(j), 0.0)
        if rows:
            return None if used or present != -rows else Law(blocks, scale, "absent", abs(rows), j)
        rows = present
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
    return _least(lambda t: beyond(blocks, scale, t), 1 - level, 2.0)


def _least(outside: Callable[[Floats], Floats], aim: float, first: float) -> float:
    """The least w at which ``outside`` is ``aim`` at most, from above to 9 digits."""
    if outside(np.array(0.0)) <= aim:
        return 0.0
    low, high = 0.0, first
    while outside(np.array(high)) > aim:
        low, high = high, 2 * high
    for _ in range(6):
        at = np.linspace(low, high, 33)
        i = int(np.argmax(outside(at) <= aim))
        low, high = float(at[max(i - 1, 0)]), float(at[i])
    return high


def beyond(blocks: tuple[Cells, ...], scale: Fraction, t: Floats) -> Floats:
    """A bound of P(\\|form\\| > t * its standard deviation), whatever the form (the module's docstring)."""
    tails = [_cut_off(t) if scale >= 1 else _of_sizes(blocks, scale, t)]
    for law, std in _single(blocks, scale):
        tails += [j * law.outside(t * math.sqrt(j) * std) for j in range(1, _SUMMANDS + 1)]
    return np.where(t < 0, 1.0, np.minimum(1.0, np.max(tails, axis=0)))


def _of_sizes(blocks: tuple[Cells, ...], scale: Fraction, t: Floats) -> Floats:
    """The same at a scale of less than a row, by s = a + b."""
    odds, widest = _sizes(blocks, scale)
    out = np.zeros(np.shape(t))
    for s, (p, wide) in enumerate(zip(odds, widest)):
        at = np.minimum(np.maximum(t, 0.0) / max(wide, 1e-300), 1e9)
        lumps = np.exp(-1 - np.sqrt(np.maximum(at, 1.0) ** 2 - 1)) + np.exp(-1 - at)
        out = out + p * (np.where(at > 1 + 1e-9, lumps, 1.0) if 0 < s <= _LUMPS else _cut_off(at))
    return out + 1e-13


@lru_cache(maxsize=64)
def _sizes(blocks: tuple[Cells, ...], scale: Fraction) -> tuple[Floats, list[float]]:
    """Probabilities of s, and how much larger than its own a form's standard deviation is given s at most."""
    at: list[row_figures.At] = [(None, None)]
    for j, b in enumerate(blocks):
        at += [(j, None)] * b.missing + [(j, c) for c in range(b.m)]
    whole = row_figures.covariance(blocks, scale, tuple(at))
    std = np.sqrt(np.maximum(np.diag(whole), 1e-300))
    values, vectors = np.linalg.eigh(whole / np.outer(std, std))
    kept = values > 1e-9 * values[-1]
    to = (vectors[:, kept] / np.sqrt(values[kept])) / std[:, None]
    odds, found = row_figures.by_size(blocks, scale, tuple(at))
    return odds, [math.sqrt(max(0.0, float(np.linalg.eigvalsh(to.T @ m @ to)[-1]))) for m in found]


def _cut_off(t: Floats) -> Floats:
    """The largest P(X > t) of an exponential that is cut off and has E X**2 = 1."""
    rest, mass = np.exp(-_CUT), -np.expm1(-_CUT)
    second = (2 - rest * (_CUT * _CUT + 2 * _CUT + 2)) / mass
    at = np.multiply.outer(np.maximum(t, 0.0), np.sqrt(second))
    return np.asarray(np.max(np.where(at < _CUT, (np.exp(-at) - rest) / mass, 0.0), axis=-1))


@lru_cache(maxsize=256)
def _single(blocks: tuple[Cells, ...], scale: Fraction) -> tuple[tuple[Law, float], ...]:
    """Each kind of coordinate, and its standard deviation; of large tables the rows alone, as their cells' tails take long."""
    out = [Law(blocks, scale, "rows")]
    few = sum(b.size for b in blocks) <= _MOST_EXACT
    for b in dict.fromkeys(blocks):
        j = blocks.index(b)
        out += [Law(blocks, scale, "present", 1.0, j)] * b.missing
        out += [Law(blocks, scale, "cell", 1.0, j)] * (few or b.m == 1)
    return tuple((law, law.std()) for law in out)


# ---- means ----


def _canonical(blocks: tuple[Cells, ...], block: int) -> tuple[Cells, ...]:
    """The same blocks, the one in question first: blocks of one shape are alike, and share what was computed."""
    rest = blocks[:block] + blocks[block + 1 :]
    return (blocks[block], *sorted(rest, key=lambda b: (b.m, b.steps, b.slack, b.missing)))


def _outside(blocks: tuple[Cells, ...], scale: Fraction, kind: str, share: float, w: Floats) -> Floats:
    """P(\\|form\\| > w), of the rows or of the first block."""
    if kind in ("rows", "present", "absent"):
        tails = _whole(blocks, scale, kind)
        at = np.clip(np.floor(w * (1 + 2.0**-48)), -1, len(tails) - 2).astype(np.int64)
        return np.asarray(tails[at + 1])
    p, a, b = _pairs(blocks, scale, of_cells=True)
    k, r = float(blocks[0].steps), blocks[0].slack
    if kind == "cell" or k >= _FINE or len(p) * np.size(w) > _PRODUCTS:
        # As if x were uniform on the steps' whole width and w half a step less: one sum for all w. Of x alone it is exact
        # at whole w.
        w = np.floor(w * (1 + 2.0**-48)) + 1 if kind == "cell" else w
        edges, sums, moments = _lines(blocks, scale, share)
        at = np.searchsorted(edges, w, side="right")
        return np.asarray(np.where(w < 0, 1.0, 2 * (moments[at] - w * sums[at])))
    found = np.empty(np.size(w))
    high, low, moved = a * k + r, -b * k - r, share * k * (a - b)  # of x, and what is taken off
    for i, each in enumerate(np.ravel(w * (1 + 2.0**-48))):
        over = np.clip(high - np.maximum(np.floor(moved + each), low - 1), 0, None)
        under = np.clip(np.minimum(np.ceil(moved - each), high + 1) - low, 0, None)
        found[i] = np.sum(p * (over + under) / (high - low + 1))
    return np.where(w < 0, 1.0, found.reshape(np.shape(w)))


def _cell(blocks: tuple[Cells, ...], scale: Fraction, w: Floats) -> Floats:
    """P(\\|x\\| > w) of one of several cells of the first block."""
    at, logs = _cell_tails(blocks, scale)
    return np.asarray(2 * np.exp(np.interp(np.floor(w * (1 + 2.0**-48)) + 1, at, logs)))


@lru_cache(maxsize=64)
def _cell_tails(blocks: tuple[Cells, ...], scale: Fraction) -> tuple[Floats, Floats]:
    """Whole numbers, and the logarithms of the tails there; between them they are nearly linear."""
    std = math.sqrt(row_figures.covariance(blocks, scale, ((0, 0),))[0, 0])
    far = std * np.concatenate([np.arange(1, 33) / 8, np.arange(9, 41) / 2])
    at = np.unique(np.concatenate([np.arange(1, 9), np.ceil(far)]))
    return at, np.log([row_figures.cell_tail(blocks, scale, 0, int(v)) for v in at])


@lru_cache(maxsize=32)
def _whole(blocks: tuple[Cells, ...], scale: Fraction, kind: str) -> Floats:
    """P(\\|k\\| > w), or of l or k - l of the first block, for w = -1, 0, 1, ..."""
    if kind == "absent":
        mass = _absent(blocks, scale)
    else:
        p, a, b = _pairs(blocks, scale, of_cells=kind == "present")
        mass = np.asarray(np.bincount(np.abs(a - b).astype(np.int64), p), dtype=np.float64)
    return np.append(np.cumsum(mass[::-1])[::-1], 0.0)


def _absent(blocks: tuple[Cells, ...], scale: Fraction) -> Floats:
    """P(\\|k - l\\| = u) of the first block, for u = 0, 1, ...: with l = k + u, (a, b) holds its cells as (a, b - u) does."""
    last = _last(blocks, scale)
    a, b = (g.ravel() for g in np.meshgrid(np.arange(last + 1), np.arange(last + 1), indexing="ij"))
    logs = [-(a + b) / float(scale) + sum(_log_ways(x, a, b) for x in blocks[1:])]
    logs.append(_log_ways(Cells(blocks[0].m, blocks[0].steps, blocks[0].slack), a, b))
    others, held = (np.exp(x - x.max()).reshape(last + 1, last + 1) for x in logs)
    mass = np.array(
        [np.sum(others[:, u:] * held[:, : last + 1 - u]) * (2 if u else 1) for u in range(last + 1)]
    )
    return np.asarray(mass / mass.sum())


@lru_cache(maxsize=32)
def _lines(blocks: tuple[Cells, ...], scale: Fraction, share: float) -> tuple[Floats, Floats, Floats]:
    """Edges e, and the sums of s and of s*e beyond each, of which P(form > w) is the sum of s*(e - w) over e > w."""
    p, a, b = _pairs(blocks, scale, of_cells=True)
    k, r = float(blocks[0].steps), blocks[0].slack
    slopes = p / ((a + b) * k + 2 * r + 1)
    parts = share * _PARTS
    if share <= 1 and parts == int(
        parts
    ):  # the upper edges are on a lattice, and the lower ones are never beyond 0
        rows = (_PARTS - int(parts)) * a.astype(np.int64) + int(parts) * b.astype(np.int64)
        slopes = np.asarray(np.bincount(rows, slopes), dtype=np.float64)
        edges = np.arange(len(slopes), dtype=np.float64) * (k / _PARTS) + (r + 1)
    else:
        moved = share * k * (a - b)
        edges = np.asarray(np.concatenate([a * k + r + 1 - moved, -b * k - r - moved]), dtype=np.float64)
        slopes = np.concatenate([slopes, -slopes])
        order = np.argsort(edges)
        edges, slopes = edges[order], slopes[order]
    sums, moments = (np.append(np.cumsum(x[::-1])[::-1], 0.0) for x in (slopes, slopes * edges))
    return edges, np.asarray(sums), np.asarray(moments)


@lru_cache(maxsize=1024)
def _halfwidth(blocks: tuple[Cells, ...], scale: Fraction, share: float, level: float) -> float:
    law = Law(blocks, scale, "mean", 1.0, 0, share)
    return _least(law.outside, (1 - level) * (1 - 2.0**-30), float(blocks[0].steps))


def _largest(blocks: tuple[Cells, ...]) -> Fraction:
    """B, in rows, up to which pairs are summed one by one: some 10**5 of them."""
    d = sum(b.size for b in blocks)
    return Fraction(8 if d <= 12 else 4 if d <= 40 else 2)


def mean_errors(blocks: tuple[Cells, ...], scale: Fraction, block: int) -> tuple[float, float]:
    """RMSE of x/K - share * rows at share 1/2 and 1, in rows (at a large B scaled)."""
    out, near = [], min(scale, _largest(blocks))
    p, a, b = _pairs(_canonical(blocks, block), near, of_cells=True)
    one = blocks[block]
    held = (a + b) + (2 * one.slack + 1) / one.steps  # given the pair x is uniform among so many rows' steps
    spread = np.maximum(held * held - 1 / one.steps**2, 0.0) / 12
    for share in (0.5, 1.0):
        each = math.sqrt(float(np.sum(p * (spread + (share - 0.5) ** 2 * (a - b) ** 2))))
        out.append(each * float(scale / near))
    return out[0], out[1]


def _last(blocks: tuple[Cells, ...], scale: Fraction) -> int:
    """What a + b is at most, but for nothing."""
    d = sum(b.size for b in blocks)
    return math.ceil(float(scale) * (d + 45 + 3 * math.sqrt(d))) + 3


@lru_cache(maxsize=16)
def _pairs(blocks: tuple[Cells, ...], scale: Fraction, *, of_cells: bool) -> tuple[Floats, Floats, Floats]:
    """Probabilities of pairs, a and b; ``of_cells``: of those that hold the first block's (the largest, given l)."""
    last = _last(blocks, scale)
    grid = np.arange(last + 1, dtype=np.int64)
    a, b = (g.ravel() for g in np.meshgrid(grid, grid, indexing="ij"))
    kept = a + b <= last
    a, b = a[kept], b[kept]
    logs = -(a + b) / float(scale)
    one = blocks[0]
    others = blocks[1:] if one.missing and of_cells else blocks
    for other in dict.fromkeys(others):
        logs += others.count(other) * _log_ways(other, a, b)
    f = np.exp(logs - logs.max())
    if one.missing and of_cells:
        table = np.zeros((last + 1, last + 1))
        table[a, b] = f
        up = np.cumsum(table[:, ::-1], axis=1)[:, ::-1]  # over b' >= b
        right = np.cumsum(table[::-1], axis=0)[::-1] - table  # over a' > a
        logs = _log_ways(Cells(one.m, one.steps, one.slack), a, b)
        f = (up + right)[a, b] * np.exp(logs - logs.max())
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
