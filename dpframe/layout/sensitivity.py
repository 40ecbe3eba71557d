"""Sensitivity: how far the rows of one protected unit move the integers of a layout."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt

from dpframe.frames.contract import WEIGHT
from dpframe.mechanisms.choosers import Reach


@dataclass(frozen=True, slots=True)
class Move:
    """How far one row moves a layout, in steps.

    Attributes
    ----------
    far : int
        L1 and L2 when a row appears or vanishes.
    across : int
        When a row becomes another in the same place: \\|difference\\| of a plain sum (D0).
        Unused for cells.
    cells : bool
        Whether the coordinates are cells over which a row spreads ``far`` steps (a simplex block).
    once : bool
        Whether a unit counts once however many rows it has.
    """

    far: int
    across: int
    cells: bool = False
    once: bool = False

    def sensitivity(self, reach: Reach) -> tuple[int, int]:
        """(L1, L2 squared), in steps.

        Privacy: add_remove: the unit's rows appear in ``groups`` groups, at most ``rows*far`` each; its rows and their
        squares add up to ``Reach.most`` and ``Reach.squares`` at most.
        replace_one: a sum in one place changes by at most ``rows*across`` and never by 0, as the
        replaced row may be missing or filtered before or after; over groups the old place loses
        ``rows*far`` and the new one gains as much. Cells change by ``2*rows*far`` in L1 (old cells
        down, new ones up), which covers missing and filtered rows.

        A sum under replace_one, in groups: let u = far and v = across - far, the farthest on the other side. Where the
        unit has p rows (or parts of them) before and q after, the sum moves by u*max(p, q) + v*min(p, q) at most, and
        by convexity all rows are in full groups (R) but r of them. Full beside full, and r beside r, give (u + v)**2
        times the square; beside nothing u**2, twice as often; r beside full, twice: 2*(u*R + v*r)**2, which may be more
        than either. Any k rows of which nothing is cut move it by k times what one does at most, which they do in one group.
        """
        unit = replace(reach, rows=1, total=None) if self.once else reach
        far, l1, square = self.far, unit.most, unit.squares
        if not reach.replace:
            return far * l1, far**2 * square
        if self.cells:
            return 2 * far * l1, 2 * far**2 * square
        if not reach.several:
            return self.across * l1, self.across**2 * square
        worst = max(2 * far**2, self.across**2)
        k, r = unit.full
        beside = 2 * (far * unit.each + max(0, self.across - far) * r) ** 2 if r else 0
        rest = max(worst * (unit.each**2 + r**2), beside) if r else worst * unit.each**2
        return 2 * far * l1, worst * (k - 1) * unit.each**2 + rest

    def furthest(self, reach: Reach) -> int:
        """How far one coordinate can move, in steps (for laws that hold for one coordinate).

        Privacy: a cell gains or loses at most ``far`` a row; a plain sum changes in place by ``across``.
        """
        rows = 1 if self.once else reach.rows
        return rows * (max(self.far, self.across) if reach.replace and not self.cells else self.far)


@dataclass(frozen=True, slots=True)
class BallMove:
    """How far one vector of norm at most ``reach`` steps moves a sum of vectors.

    Privacy: add_remove: ``reach`` in the norm of ``order``. replace_one: one vector goes and another comes, in one
    place or two: at most twice that, whatever is missing. A unit adds at most ``rows`` vectors in each of
    ``groups`` groups, ``total`` of them together. In the other norm: L2 <= L1 <= sqrt(dims)*L2.
    """

    reach: int
    dims: int
    order: int

    def sensitivity(self, reach: Reach) -> tuple[int, int]:
        """(L1, L2 squared), in steps; see :class:`Move`."""
        (k, r), each = reach.full, self.reach * (2 if reach.replace else 1)

        def l1(m: int) -> int:
            return m if self.order == 1 else isqrt(self.dims * m * m)

        far = k * l1(reach.rows * each) + l1(r * each) if reach.total is None else l1(reach.most * each)
        return far, each**2 * reach.squares

    def furthest(self, reach: Reach) -> int:
        """How far one coordinate can move, in steps."""
        return reach.rows * self.reach * (2 if reach.replace else 1)


@dataclass(frozen=True, slots=True)
class WeightMove:
    """How far one unit moves the weights of its groups (:func:`~dpframe.frames.contract.unit_weight`).

    Privacy: add_remove: t weights of floor(W/sqrt(t)), whose squares add up to W**2 at most, for every t up to the groups
    that the engine enforces; t of them add up to sqrt(t)*W at most. replace_one: as many go and others come; weights are
    at least 0, so what goes and what comes in one group takes from each other, and the squares of the differences add up
    to 2*W**2 at most.
    """

    def sensitivity(self, reach: Reach) -> tuple[int, int]:
        """(L1, L2 squared), in steps; see :class:`Move`."""
        twice = 2 if reach.replace else 1
        return twice * isqrt(reach.groups * WEIGHT**2), twice * WEIGHT**2

    def furthest(self, reach: Reach) -> int:
        """How far one coordinate can move, in steps."""
        return WEIGHT
