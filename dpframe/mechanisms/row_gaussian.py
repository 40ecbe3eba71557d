"""``gaussian`` for a whole row: Gaussian noise on a linear map of what a row adds, instead of equal parts for every column.

Law: what a present row adds to a block of one cell is t of K steps, and 1 to its present rows c. The map sends a row to
(lam * n; v_j - u_j; beta * (c_j - kappa * n)), with v = t/K and u = c - v (n instead of c, and no third number, where block j
is never missing). Every coordinate gets its own rounded Gaussian of one sigma: on the integers 2t - K*c of sd sigma*K, on
1024*(c - kappa*n) of sd 1024*sigma/beta, on n of sd sigma/lam. What is released is read from these integers:
c is (the third + kappa times the first) and t is half of (the second + K*c), each rounded to the nearest integer, ties by a coin.

Guarantee: rho-zCDP for rho = Delta2**2/(2 sigma**2), or (eps, delta) by the analytic formula, for the whole row. Delta2 is the
largest norm that one unit moves the map by (:func:`squared_move`); noise on integers, rounded, is post-processing of the
continuous mechanism (:mod:`dpframe.mechanisms.gaussian`), and so is all reading.

Source: the map with lam**2 = sqrt(c) for c complete columns is Lebeda's, "Better Gaussian mechanism using correlated noise"
(2024, arXiv 2408.06853); with presence and for replaced rows this package's own.

Wins over equal parts for means near their bounds (sqrt 2 at lam**2 = c) and for counts of c Boolean columns
((sqrt(c) + 1)/2 instead of sqrt(c)). Which lam, beta and kappa are taken, the planner's rule decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from dpframe.accounting.events import Event
from dpframe.errors import MechanismError
from dpframe.mechanisms.base import Floats, Ints, Target, float_up, sqrt_up
from dpframe.mechanisms.choosers import Reach
from dpframe.mechanisms.gaussian import Gaussian, RoundedGaussian
from dpframe.mechanisms.joint import Coordinate, Form, Joint
from dpframe.mechanisms.row import Block
from dpframe.noise.source import words
from dpframe.noise.strips import LARGEST_SCALE, SMALLEST_SCALE

_FINE = 1 << 10  # steps from which a rounding to one of them is nothing
_KAPPA = 1 << 10  # kappa is a multiple of 1/1024
_UNIT = Fraction(1 << 20)  # lam and beta are multiples of 2**-20


@dataclass(frozen=True, slots=True)
class Map:
    """The linear map: ``lam`` weighs the number of rows, ``beta`` presence, which is told from ``kappa/1024`` of the rows on."""

    lam: Fraction
    beta: Fraction = Fraction(1)
    kappa: int = 0

    @property
    def share(self) -> Fraction:
        """kappa as the part of the rows that presence is told from."""
        return Fraction(self.kappa, _KAPPA)


def squared_move(blocks: tuple[Block, ...], m: Map, reach: Reach) -> Fraction:
    """Delta2 squared: how far one unit moves the map at most, over all groups together.

    Privacy: a row is a vertex of the blocks' shapes or between them, and a unit's rows, scaled, add n of these to a group. So
    n rows of one unit and q of another move the map by n*a - q*b in a group (q = 0 under add_remove), by :func:`_apart` at
    most in square. That is convex in all n and q, so largest where a unit fills k groups with R rows and has r in one more
    (``reach.full``). Of a replaced unit each group of rows meets its like, or nothing, on both sides; or the r of each meet R of the
    other. In one place alone, rows that are filtered before or after come or go by themselves. Any k rows of which nothing is
    cut move it by k times what one does at most, as in one group.
    """

    def apart(n: int, q: int) -> Fraction:
        return _apart(blocks, m, n, q)

    (k, rest), full = reach.full, reach.each
    if not reach.replace:
        return k * apart(full, 0) + apart(rest, 0)
    if not reach.several:
        return max(apart(full, full), apart(full, 0))
    like, alike = (max(apart(n, n), 2 * apart(n, 0)) for n in (full, rest))
    return (k - 1) * like + max(like + alike, 2 * apart(full, rest))


def _apart(blocks: tuple[Block, ...], m: Map, n: int, q: int) -> Fraction:
    """The largest square of n*a - q*b over vertices a and b: (lam; +-1; beta*(1 - kappa)) where block j is present, (lam; 0; -beta*kappa) where it is not.

    Blocks have coordinates of their own, so it is a sum of the worst of each.
    """
    missing, square = sum(b.missing for b in blocks), m.beta**2
    here, gone = 1 - m.share, m.share
    worst = max(
        (n + q) ** 2 + square * here**2 * (n - q) ** 2,
        n**2 + square * (n * here + q * gone) ** 2,
        q**2 + square * (n * gone + q * here) ** 2,
        square * gone**2 * (n - q) ** 2,
    )
    return m.lam**2 * (n - q) ** 2 + (len(blocks) - missing) * (n + q) ** 2 + missing * worst


@dataclass(frozen=True)
class LinearGaussian(Joint):
    """The map's noise, calibrated. Immutable and hashable; holds no data.

    Attributes
    ----------
    blocks : tuple of Block
        Of one cell each.
    map : Map
    sigma : Fraction
        Of the map's coordinates, in rows.
    scale : Fraction
        The standard deviation of the number of rows, before it is rounded.
    event : Event
        What one release with a draw for every group costs.
    """

    blocks: tuple[Block, ...]
    map: Map
    sigma: Fraction
    scale: Fraction
    event: Event

    @cached_property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """The rows, then block by block present rows (where it may be missing) and the cell."""
        out = [Coordinate()]
        for j, b in enumerate(self.blocks):
            out += [Coordinate(j)] * b.missing + [Coordinate(j, 0)]
        return tuple(out)

    def draw(self, size: int) -> Ints:
        """``size`` independent draws: int64 of (coordinates, size)."""
        rows = self._rows.sample(size)
        out = [rows]
        for b in self.blocks:
            here = rows
            if b.missing:
                here = _nearest(self._presence.sample(size) + self.map.kappa * rows, _KAPPA)
                out.append(here)
            out.append(_nearest(self._centred(b).sample(size) + b.steps * here, 2))
        return np.array(out, dtype=np.int64)

    @cached_property
    def covariance(self) -> Floats:
        """Covariances of all :attr:`coordinates`, in rows and steps. Roundings count as noise of their own."""
        return np.asarray(self._mixing @ np.diag(self._variances) @ self._mixing.T)

    def halfwidth(self, form: Form, level: float) -> float:
        """A w with P(\\|form\\| <= w) >= level: of the rows alone from their own law, else see :meth:`_normal`."""
        f = np.asarray(form)
        if self.known(form):
            return float(abs(f[0]) * self._rows.interval(level))
        quantile = NormalDist().inv_cdf((1 + level) / 2)
        if (
            np.count_nonzero(f) == 1 and self._even(f).all()
        ):  # whole numbers are within w where what they were rounded from is within w + 1/2
            unit = float(np.abs(f).max())
            return unit * math.ceil(quantile * self.std(form) / unit - 0.5)
        sd, more = self._normal(f)
        return quantile * sd + more

    def outside(self, form: Form, w: Floats) -> Floats:
        """P(\\|form\\| > w), or more."""
        from scipy.special import ndtr

        f = np.asarray(form)
        if not f.any():
            return np.asarray(np.less(w, 0), dtype=np.float64)
        if self.known(form):
            return np.minimum(1.0, 2 * self._rows.cdf(-np.floor(w / abs(f[0])) - 1))
        sd, more = self._normal(f)
        return np.minimum(1.0, 2 * ndtr((more - w) / sd))

    def known(self, form: Form) -> bool:
        """Of the rows alone."""
        return not any(form[1:])

    def factor(self, level: float) -> float:
        """Sums of rounded Gaussians have their variances; laws that are mostly 0 need more, as each of them alone."""
        normal = NormalDist().inv_cdf((1 + level) / 2)
        alone = [
            self._rows,
            *(self._presence for b in self.blocks if b.missing),
            *map(self._centred, self.blocks),
        ]
        return max(normal, *(x.interval(level) / x.std for x in alone))

    def tail(self, form: Form, least: int) -> float:
        """P(form >= least), rounded up."""
        if self.known(form) and form[0]:
            return self._rows.upper_tail(math.ceil(least / abs(form[0])))
        if least <= 0:
            return 1.0
        return min(1.0, float(self.outside(form, np.array(least - 1.0))) / 2 * (1 + 2.0**-40))

    def __repr__(self) -> str:
        return f"<dpframe noise LinearGaussian: {len(self.blocks)} blocks, scale {float(self.scale):.6g} rows, {self.event.cost}>"

    @cached_property
    def _rows(self) -> RoundedGaussian:
        return self._law(self.scale)

    @cached_property
    def _presence(self) -> RoundedGaussian:
        return self._law(_KAPPA * self.sigma / self.map.beta)

    def _centred(self, b: Block) -> RoundedGaussian:
        return self._law(b.steps * self.sigma)

    def _law(self, sigma: Fraction) -> RoundedGaussian:
        return RoundedGaussian(max(sigma, SMALLEST_SCALE), self.event)

    # Every coordinate is a weighted sum of independent noises: the Gaussians, as drawn, and what is rounded when they are read.

    @cached_property
    def _parts(self) -> list[tuple[float, float, float, Floats]]:
        """Of each noise: its sd before any rounding, its variance, the most that is rounded, and its weight in every coordinate."""
        at = {c: i for i, c in enumerate(self.coordinates)}
        width = len(self.coordinates)
        kappa = self.map.kappa / _KAPPA
        rows = np.zeros(width)
        rows[0] = 1.0
        parts: list[tuple[float, float, float, Floats]] = []
        for j, b in enumerate(self.blocks):
            cell, centred = at[Coordinate(j, 0)], self._centred(b)
            if b.missing:
                here = at[Coordinate(j)]
                rows[here], rows[cell] = kappa, b.steps * kappa / 2
                weight = np.zeros(width)
                weight[here], weight[cell] = 1.0, b.steps / 2
                sd = float(self._presence.sigma) / _KAPPA
                both = math.hypot(sd, kappa * self._rows.std)
                extra = _rounding(sd, self.map.kappa, self._rows)
                parts.append((sd, sd**2 + extra, 0.5 + 0.5 / _KAPPA, weight))
                odd = _odd(centred, b.steps, RoundedGaussian(Fraction(max(both, 1 / 64)), self.event))
            else:
                rows[cell] = b.steps / 2
                odd = _odd(centred, b.steps, self._rows)
            weight = np.zeros(width)
            weight[cell] = 0.5
            parts.append((float(centred.sigma), centred.std**2 + odd, 1.5, weight))
        parts.append((float(self._rows.sigma), self._rows.std**2, 0.5, rows))
        return parts

    @cached_property
    def _mixing(self) -> Floats:
        return np.column_stack([w for *_, w in self._parts])

    @cached_property
    def _variances(self) -> Floats:
        return np.array([v for _, v, _, _ in self._parts])

    def _normal(self, form: Floats) -> tuple[float, float]:
        """A form's sd, taken for normal, and how far roundings may move it beyond that.

        Rounding a Gaussian of an sd of one whole and more is noise of its own that is spread evenly, but for 2 exp(-2 pi**2), and
        lighter in the tails than a normal one: in a form that has a fine cell, and so takes values between the whole
        ones, it counts by its variance. Any other rounding counts at its largest.
        """
        sds, variances, most = (np.array(x) for x in list(zip(*self._parts))[:3])
        weights = form @ self._mixing
        fine = any(
            w and c.block is not None and c.cell is not None and self.blocks[c.block].steps >= _FINE
            for w, c in zip(form, self.coordinates)
        )
        even = self._even(form) & fine & ~self._of_cells
        spread = np.where(even, variances, sds**2)
        return math.sqrt(float(weights**2 @ spread)), float(np.abs(weights) @ np.where(even, 0.0, most))

    def _even(self, form: Floats) -> npt.NDArray[np.bool_]:
        """Of each noise: whether a form has none of it, or its rounding spreads evenly."""
        return np.asarray(np.array([s >= 1 for s, *_ in self._parts]) | (form @ self._mixing == 0))

    @cached_property
    def _of_cells(self) -> npt.NDArray[np.bool_]:
        """Which of the noises are of cells: their roundings are of steps."""
        missing = [b.missing for b in self.blocks]
        return np.array([*(x for m in missing for x in ([False, True] if m else [True])), False])


def _nearest(x: Ints, divisor: int) -> Ints:
    """x/divisor to the nearest integer, ties by a coin.

    Privacy: x + divisor*t gives t more whatever t is, so exact integers plus what is read of the noise are what is read of
    the noisy map. (Ties to even would tell whether t is even.)
    """
    coin = words(len(x)) & np.uint64(1)
    return np.asarray((x + divisor // 2 - 1 + coin.astype(np.int64)) // divisor)


def _rounding(sd: float, kappa: int, rows: RoundedGaussian) -> float:
    """What rounding adds to the variance of a Gaussian of ``sd`` that stands kappa/1024 times the drawn rows beside an integer."""
    from scipy.special import ndtr

    if sd > 4:
        return 1 / 12
    k = np.arange(-64, 65)
    chance = np.full(len(k), 1 / len(k)) if rows.sigma > 4 else rows.pmf(k)
    phases, where = np.unique(kappa * k % _KAPPA / _KAPPA, return_inverse=True)
    weight = np.bincount(where, chance)
    ends = (np.arange(-64, 66) - 0.5 - phases[:, None]) / sd
    law = np.diff(ndtr(ends), axis=1)
    return float(weight @ (law * (k - phases[:, None]) ** 2).sum(axis=1) / weight.sum()) - sd**2


def _odd(centred: RoundedGaussian, steps: int, rows: RoundedGaussian) -> float:
    """P(centred + steps * rows is odd): the variance, in half steps, that rounding a half adds."""
    even = _alternating(centred) * (_alternating(rows) if steps % 2 else 1.0)
    return (1 - even) / 2


def _alternating(law: RoundedGaussian) -> float:
    """E of (-1)**X."""
    if law.sigma > 4:
        return 0.0
    k = np.arange(1, 65)
    return float(law.pmf(0) + 2 * np.sum((-1.0) ** k * law.pmf(k)))


def calibrate(
    blocks: tuple[Block, ...], m: Map, target: Target, reach: Reach | None = None
) -> LinearGaussian:
    """The noise of the map ``m`` for blocks of one cell each that are added up in one pass over the same rows.

    Raises
    ------
    MechanismError
        For blocks of several cells; without delta or rho; for a grid too fine for the scale.

    Privacy: sigma = Delta2 times that of a Gaussian at sensitivity 1, each rounded up.
    """
    reach = reach or Reach()
    if not blocks or any(b.cells != 1 or b.steps < 1 for b in blocks):
        raise MechanismError("The Gaussian of a row is for blocks of one cell.")
    if m.lam <= 0 or m.beta <= 0 or not 0 <= m.kappa <= _KAPPA:
        raise MechanismError("The Gaussian of a row needs positive weights.")
    move = sqrt_up(squared_move(blocks, m, reach))
    if move <= 0:
        raise MechanismError("The Gaussian of a row was asked for noise for no row.")
    moving = reach.groups * (1 + sum(1 + b.missing for b in blocks))
    one = Gaussian().calibrate(
        _UNIT, moving, target
    )  # at so many steps to the sensitivity that no least scale is met
    sigma = Fraction(float_up(move * one.sigma / _UNIT))
    fine = max(b.steps for b in blocks)
    most = max(sigma * fine, sigma * fine / m.lam, _KAPPA * sigma / m.beta, fine * sigma / m.beta)
    if 8 * most > LARGEST_SCALE:
        raise MechanismError(
            f"The Gaussian of a row would need noise beyond what can be drawn exactly on grids of {fine} steps.",
            hint="a larger eps, or a coarser grid",
        )
    return LinearGaussian(blocks, m, sigma, sigma / m.lam, one.event)


def maps(blocks: int, *, missing: bool) -> Iterator[Map]:
    """The maps that are worth comparing: from public shapes alone.

    lam**2 from half of sqrt(c) to 4c (c blocks; sqrt(c) is best for counts of Boolean columns, c keeps the error of the
    number of rows); where blocks may be missing, beta**2 of 1 and 2 and kappa of 0, 1/2 and 3/4.
    """
    root = math.sqrt(blocks)
    squares = {
        root / 2,
        root / 2**0.5,
        root,
        root * 2**0.5,
        root * 2,
        blocks,
        blocks * 2**0.5,
        blocks * 2,
        blocks * 4,
    }
    if missing:
        squares = {root / 2, root, root * 2, blocks, blocks * 2, blocks * 4}
    for square in sorted(squares):
        for presence in (1.0, 2.0) if missing else (1.0,):
            for kappa in (0, 512, 768) if missing else (0,):
                yield Map(_rational(square), _rational(presence), kappa)


def _rational(square: float) -> Fraction:
    return Fraction(round(math.sqrt(square) * int(_UNIT))) / _UNIT
