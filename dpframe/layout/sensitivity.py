"""Sensitivity: how far the rows of one protected unit move the integers of a layout."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt


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

    def sensitivity(self, *, replace: bool, grouped: bool, rows: int = 1, groups: int = 1) -> tuple[int, int]:
        """(L1, L2 squared), in steps.

        Parameters
        ----------
        replace : bool
            The replace_one relation (else add_remove).
        grouped : bool
            Whether there are several groups between which a row can move.
        rows, groups : int
            How many rows of a unit count in one group, and in how many groups it may be.

        Privacy: add_remove: the unit's rows appear in ``groups`` groups, at most ``rows*far`` each.
        replace_one: a sum in one place changes by at most ``rows*across`` and never by 0, as the
        replaced row may be missing or filtered before or after; over groups the old place loses
        ``rows*far`` and the new one gains as much. Cells change by ``2*rows*far`` in L1 (old cells
        down, new ones up), which covers missing and filtered rows.
        """
        rows = 1 if self.once else rows
        m = rows * self.far
        if not replace:
            return groups * m, groups * m * m
        if self.cells:
            return 2 * groups * m, 2 * groups * m * m
        d = rows * self.across
        if not grouped:
            return d, d * d
        return 2 * groups * m, max(2 * groups * m * m, groups * d * d)

    def furthest(self, *, replace: bool, rows: int = 1) -> int:
        """How far one coordinate can move, in steps (for laws that hold for one coordinate).

        Privacy: a cell gains or loses at most ``far`` a row; a plain sum changes in place by ``across``.
        """
        rows = 1 if self.once else rows
        return rows * (max(self.far, self.across) if replace and not self.cells else self.far)


@dataclass(frozen=True, slots=True)
class BallMove:
    """How far one vector of norm at most ``reach`` steps moves a sum of vectors.

    Privacy: add_remove: ``reach`` in the norm of ``order``. replace_one: one vector goes and another comes, in one
    place or two: at most twice that, whatever is missing. A unit adds at most ``rows`` vectors in each of
    ``groups`` groups. In the other norm: L2 <= L1 <= sqrt(dims)*L2.
    """

    reach: int
    dims: int
    order: int

    def sensitivity(self, *, replace: bool, grouped: bool, rows: int = 1, groups: int = 1) -> tuple[int, int]:
        """(L1, L2 squared), in steps; see :class:`Move`."""
        m = rows * self.reach * (2 if replace else 1)
        l1 = m if self.order == 1 else isqrt(self.dims * m * m)
        return groups * l1, groups * m * m

    def furthest(self, *, replace: bool, rows: int = 1) -> int:
        """How far one coordinate can move, in steps."""
        return rows * self.reach * (2 if replace else 1)
