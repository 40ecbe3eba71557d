"""Runs: parts of a call whose noise is one draw for the whole row, and what of the draw each released integer gets.

A run covers *blocks*: families that one pass of the engine adds up over the same rows. Of a draw (k; l; x) of a row law, k is
whole rows, and a block has l whole present rows where it may be missing, and free cells x in its steps. A released
integer is a sum over rows of a whole-number combination of what a row adds to these, and its noise is the same combination of
the draw. So one look at a row shows that the law covers what is released:

=================== ===================== ======================================= ==================
family              a row's K, and cells  what it adds to the cells               noise
=================== ===================== ======================================= ==================
mean or sum, (U, V) K; t                  U: t; V: K - t, or nothing if missing   x; K*l - x
lone clip_sum       max - min; s - min    s, or 0 if missing, min <= 0 <= max     x + min*k
lone clip_mean(n=)  2K; 2t                2t - K, or 0 if missing                 x - K*k
variance            K*K; two of three     the three cells, or nothing if missing  x; y; K*K*l - x - y
covariance          K*L; three of four    the four cells, or nothing if missing   likewise
product             K*L; P                P, K*L - P, or nothing if missing       x; K*L*l - x
weighted mean       W*K; w*t, w*(K-t)     both, or nothing if missing             x; y
count("x")          1; 1 if present       1 or 0                                  x
=================== ===================== ======================================= ==================

Privacy. The law takes any row that adds (1; c; y) with y >= 0, 0 <= c <= 1, sum(y) <= c*K of each block (c = 1 where it is never missing;
docs/proofs/one-draw.md), and a unit's rows that are scaled to R of them likewise. That holds of every line: a missing value lies
at 0 within lone sums (whose bounds are widened to hold 0), in the middle within a mean of a public n, and adds no weight, so
these three are never missing. Of a column whose type has no missing values, cells count *all* rows (K*n - t, not K*c - t):
whatever an engine makes of a cell that lies, the row adds K steps. Where a block is alone in its run and nobody asks for the rows,
the rows that it is about are the present ones, to which a missing row adds nothing at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpframe.layout.layouts import Coordinate, Layout
from dpframe.mechanisms.joint import Joint
from dpframe.mechanisms.row import Block

FORMS = ("sum", "centred", "present")  # of these, one alone is a plain number
BLOCKS = ("block", "pair", "spread", "product", "weighted", *FORMS)


@dataclass(frozen=True, slots=True)
class Weights:
    """The noise of one cell: ``rows`` times the rows that its block counts (present ones where it may be missing), and its cells."""

    rows: int
    cells: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Seat:
    """A layout as a block of a run: the same integers, and the noise of each."""

    layout: Layout
    block: Block
    weights: tuple[Weights, ...]

    def shares(self, joint: Joint, number: int) -> list[tuple[int, ...]]:
        """Of each released integer the weights over the coordinates of ``joint``, in which this is block ``number``."""
        out = []
        for w in self.weights:
            row = []
            for c in joint.coordinates:
                if c.cell is None:
                    counts = c.block == (number if self.block.missing else None)
                    row.append(w.rows if counts else 0)
                else:
                    row.append(w.cells[c.cell] if c.block == number else 0)
            out.append(tuple(row))
        return out


def seated(layout: Layout, *, missing: bool, alone: bool = False) -> Seat | None:
    """A layout as a block; None for what is none (tallies, vectors, numbers of units and rows).

    Parameters
    ----------
    layout : Layout
        Without a cell for missing rows.
    missing : bool
        Whether a row may lack what it reads.
    alone : bool
        Whether its run has no other block, and nobody reads the rows.
    """
    grid, one = layout.grid, (Weights(0, (1,)),)
    if layout.kind == "present":
        return Seat(layout, Block(1), one)
    if layout.kind == "sum":
        low = min(grid.first, 0)
        return Seat(layout, Block(max(grid.last, 0) - low), (Weights(low, (1,)),))
    if layout.kind == "centred":
        return Seat(layout, Block(2 * grid.count), (Weights(-grid.count, (1,)),))
    if layout.kind == "weighted":
        return Seat(layout, Block(layout.row, 2), (Weights(0, (1, 0)), Weights(0, (0, 1))))
    if layout.kind not in BLOCKS:
        return None
    free = len(layout.coordinates) - 1
    cells = [Weights(0, tuple(int(i == j) for i in range(free))) for j in range(free)]
    weights = (*cells, Weights(layout.row, (-1,) * free))
    if not missing:
        layout = replace(layout, coordinates=tuple(map(_of_all_rows, layout.coordinates)))
    return Seat(layout, Block(layout.row, free, missing and not alone), weights)


def _of_all_rows(c: object) -> Coordinate:
    """The same integer of a column that is never missing, by the number of all rows."""
    assert isinstance(c, Coordinate)
    return replace(c, a=c.a + c.b, b=0)
