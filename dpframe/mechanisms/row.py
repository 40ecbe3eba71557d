"""``row``: one draw of noise for all blocks that a row adds to, instead of one draw for each at a part of eps.

Law: a present row adds 1 to the number of rows and, to every block, K steps that its cells share; so the noise is (k; x_j; l_j):
k whole rows, x_j the free cells of block j in its steps, l_j whole present rows where block j may be missing. J is the
least a + b with a - b = k such that (a, b) holds all blocks (see :mod:`dpframe.noise.row_sampler`), and P is
proportional to q**J, q = exp(-1/B), B = R L0/eps rows (2 R L0/eps under replace_one), exactly. The slack r = K * ratio of a
fine block (0 where K is 1) is a free parameter of the law, not of its guarantee.

Guarantee: eps-DP for the whole row, so rho = eps*tanh(eps/2). A row moves J by 1 at most, whatever r is: if (a, b) holds
the noise, (a+1, b) holds it with a row added; if (a, b) holds the latter, (a, b+1) holds the former. A unit's rows, scaled to
R in each of L0 groups, move it by R in each, and groups have draws of their own; a replaced row or unit does both. Proof:
``docs/proofs/one-draw.md``.

Source: this package's own. Kin: the K-norm mechanism (Hardt and Talwar 2010; Awan and Slavkovic 2021); the general
staircase (Kulesza, Suresh and Wang 2025). One mean alone meets the best law for a number of known count.

Wins for several columns at one eps without delta: five means without missing values cost 2.16 times one, not 5.
Loses to separate draws where a few fine blocks stand beside a table of many bins, and to Gaussian noise at equal rho.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from dpframe.accounting.events import Event
from dpframe.errors import MechanismError
from dpframe.mechanisms import row_figures, row_widths
from dpframe.mechanisms.base import Floats, Ints, Norm, Shown, Target
from dpframe.mechanisms.choosers import Reach
from dpframe.mechanisms.joint import Coordinate, Form, Joint
from dpframe.mechanisms.staircase import Staircase, StaircaseNoise
from dpframe.mechanisms.targets import pure
from dpframe.noise.row_sampler import row_sampler
from dpframe.noise.row_shape import MOST_CELLS, Cells, numerators, peaks_in_the_middle, room
from dpframe.noise.strips import LARGEST_SCALE, SMALLEST_SCALE

# r/K, of which one is taken: the best falls as exp(-eps/3), to none at all where the noise is mostly 0
RATIOS = (*(2.0 ** (-i / 8) for i in range(1, 65)), *(2.0**-i for i in range(9, 31)), 0.0)
_HALF = 0.5  # r/K at small eps
_SMOOTH = 4  # rows of B from which on the law is as at any larger B, scaled
_EVEN = (
    1  # the same of several blocks, nearly: what a bound gains by another r (3 % at most), the middle loses
)


@dataclass(frozen=True, slots=True)
class Block:
    """What a present row adds to: ``steps`` in all, shared among ``cells`` free cells and the one that is dropped.

    Attributes
    ----------
    steps : int
        K, of the block's own grid; 1 for counts and tables.
    cells : int
        m: 1 for a mean, a sum or count("x"), 2 for a variance triple, bins - 1 for a table.
    missing : bool
        Whether the block may be missing from a row (then the number of present rows is drawn, too).
    """

    steps: int
    cells: int = 1
    missing: bool = False


@dataclass(frozen=True)
class RowNoise(Joint):
    """The row law, calibrated. Immutable and hashable; holds no data.

    Of the number of rows, of single cells and present rows, and of a block of one cell less a multiple of the rows that its
    mean divides by, half-widths and tails are the law's own. Of any other combination they are bounds, multiples of its
    standard deviation (:func:`row_widths.beyond`).

    Attributes
    ----------
    blocks : tuple of Cells
    scale : Fraction
        B, in rows.
    event : Event
        What one release with a draw for every group costs.
    """

    blocks: tuple[Cells, ...]
    scale: Fraction
    event: Event

    def draw(self, size: int) -> Ints:
        drawn = row_sampler(self.blocks, self.scale).sample(size)
        out = [drawn.rows]
        for cells, present in zip(drawn.cells, drawn.present):
            out += [*([] if present is None else [present]), *cells.T]
        return np.array(out, dtype=np.int64)

    @cached_property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """The numbers of a draw: rows, then block by block its present rows (where it may be missing) and cells."""
        out = [Coordinate()]
        for j, b in enumerate(self.blocks):
            out += [Coordinate(j)] * b.missing + [Coordinate(j, c) for c in range(b.m)]
        return tuple(out)

    @cached_property
    def covariance(self) -> Floats:
        return row_figures.covariance(
            self.blocks, self.scale, tuple((c.block, c.cell) for c in self.coordinates)
        )

    def known(self, form: Form) -> bool:
        return self._law(form) is not None

    def outside(self, form: Form, w: Floats) -> Floats:
        law = self._law(form)
        if law is not None:
            return law.outside(w)
        return row_widths.beyond(self.blocks, self.scale, w / max(self.std(form), 1e-300))

    def halfwidth(self, form: Form, level: float) -> float:
        law = self._law(form)
        if law is not None:
            return law.halfwidth(level)
        w, units = self.factor(level) * self.std(form), {abs(x) for x in form if x}
        unit = units.pop()
        return w if units else unit * math.ceil(w / unit)  # whole numbers: the bound holds but for their grid

    def factor(self, level: float) -> float:
        return row_widths.factor(self.blocks, self.scale, level)

    def tail(self, form: Form, least: int) -> float:
        """P(form >= least), rounded up. Exact for a multiple of the rows, of a block's present rows, or of a cell.

        Privacy: sums of exact integers and 120 digits; 2**-40 covers all rounding. Nothing else can be thresholded.
        """
        law = self._law(form)
        if law is None:
            raise MechanismError(
                "row knows no tail of this combination.", hint="a threshold on the number of rows"
            )
        return law.tail(least)

    def _law(self, form: Form) -> row_widths.Law | None:
        return row_widths.law_of(self.blocks, self.scale, self.coordinates, form)

    def __repr__(self) -> str:
        return f"<dpframe noise RowNoise: {len(self.blocks)} blocks, scale {float(self.scale):.6g} rows, {self.event.cost}>"


def calibrate(
    blocks: tuple[Block, ...], target: Target, reach: Reach | None = None, *, ratio: float | None = None
) -> RowNoise:
    """The row law for ``blocks`` that are added up in one pass over the same rows.

    Parameters
    ----------
    blocks : tuple of Block
        At least one. The number of rows is drawn beside them; none is given for it.
    target : Target
        eps or rho; delta is left alone.
    reach : Reach, optional
        The relation, and a unit's rows in a group and groups. One row, one group, add_remove by default.
    ratio : float, optional
        r/K of every fine block, 0 to 1 (default: the best, see :func:`best_ratio`). It does not bear on the guarantee.

    Returns
    -------
    RowNoise

    Raises
    ------
    MechanismError
        Without eps or rho; for more than 256 cells, a grid that is too fine for the scale (:func:`finest` says which
        is not), or a shape that can't be drawn.

    Privacy: eps-DP for the vector of all numbers under ``reach`` (the module's docstring).
    """
    eps, cost = pure("row", target, "pure")
    if not blocks or any(b.steps < 1 or b.cells < 1 for b in blocks):
        raise MechanismError("row needs blocks of at least one step and one cell.")
    scale = _scale(eps, reach or Reach())
    plain = tuple(Cells(b.cells, b.steps, 0, b.missing) for b in blocks)
    if sum(b.size for b in plain) > MOST_CELLS:
        raise MechanismError(
            f"row draws at most {MOST_CELLS} cells together.", hint="fewer columns in one call"
        )
    if scale > LARGEST_SCALE or max(b.steps for b in blocks) > room(plain, scale):
        raise MechanismError(
            f"row would need noise beyond what can be drawn exactly on grids of {max(b.steps for b in blocks)} steps.",
            hint="a larger eps, or a coarser grid",
        )
    ratio = best_ratio(plain, scale) if ratio is None else ratio
    held = tuple(_with_slack(b, ratio) for b in plain)
    if not _drawable(held):
        raise MechanismError("row can't draw this shape of blocks.", hint="separate calls")
    return RowNoise(held, scale, cost)


class Row(Shown):
    r"""The row law; see the module. Of one number alone it is a staircase: a cell of K steps has P(x) ~ q**ceil((\|x\| - r)/K)."""

    name = "row"
    norm: Norm = "L1"

    def calibrate(self, sensitivity: Fraction, moving: int, target: Target) -> StaircaseNoise:
        """Privacy: that of ``staircase``. Draws for a whole row are made by :func:`calibrate`."""
        return Staircase("rmse").calibrate(sensitivity, moving, target)


def finest(blocks: tuple[Block, ...], target: Target, reach: Reach | None = None) -> int:
    """The largest number of steps that a block may have beside the others, for :func:`calibrate`."""
    eps, _ = pure("row", target, "pure")
    plain = tuple(Cells(b.cells, b.steps, 0, b.missing) for b in blocks)
    return room(plain, _scale(eps, reach or Reach()))


def _scale(eps: Fraction, reach: Reach) -> Fraction:
    """B in rows: how far a unit moves J, over eps; more where that is too little to be drawn, which keeps the claim."""
    moved = reach.most * (2 if reach.replace else 1)
    if moved < 1:
        raise MechanismError(f"row was asked for noise for a unit of {moved} rows.")
    return max(moved / eps, SMALLEST_SCALE)


@lru_cache(maxsize=512)
def best_ratio(blocks: tuple[Cells, ...], scale: Fraction) -> float:
    """Of the values of r/K (every fourth, then those around the best) the one with the least sum of squared RMSEs of means at their bounds (share 1).

    Values at which a mean in the middle is more than 5 % worse than by separate draws, and shapes that can't be drawn, are
    left out. For a B of 4 rows and more (of several blocks, 1 row), and where no fine block has a single cell, it is 1/2.
    """
    fine = [j for j, b in enumerate(blocks) if b.steps > 1 and b.m == 1]
    if scale >= (_SMOOTH if len(blocks) == 1 else _EVEN) or not fine:
        return _HALF

    @lru_cache(maxsize=64)
    def loss(i: int) -> float:
        held = tuple(_with_slack(b, RATIOS[i]) for b in blocks)
        if not _drawable(held):
            return math.inf
        kinds = {blocks[j]: j for j in fine}
        errors = {b: row_widths.mean_errors(held, scale, j) for b, j in kinds.items()}
        if max(middle for middle, _ in errors.values()) > 1.05 * len(blocks) * float(scale):
            return math.inf
        return sum(errors[blocks[j]][1] ** 2 for j in fine)

    near = min(range(0, len(RATIOS), 4), key=loss)
    best = min(range(max(0, near - 3), min(len(RATIOS), near + 4)), key=loss)
    return RATIOS[best] if loss(best) < math.inf else _HALF


def _with_slack(b: Cells, ratio: float) -> Cells:
    return Cells(b.m, b.steps, int(b.steps * ratio) if b.steps > 1 else 0, b.missing)


def _drawable(blocks: tuple[Cells, ...]) -> bool:
    return min(numerators(blocks)) >= 0 and all(map(peaks_in_the_middle, set(blocks)))
