"""Released integers with the noise of one draw, put together by hand: blocks, their cells, and answers from them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpframe.layout.answers import Ratio
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.joint import Coordinate, Share
from dpframe.mechanisms.row import RowNoise, calibrate

FINE = 2**20
ROWS = Coordinate()
MIDDLE = Fraction(1, 2)


def row_noise(blocks, eps) -> RowNoise:
    return calibrate(tuple(blocks), Target(Fraction(eps)))


def share(noise, weights, row=1, number=0) -> Share:
    return Share(noise, number, tuple(int(x) for x in noise.form(weights)), row)


def cells(noise, block, number=0) -> list[Share]:
    """The free cells of a block and the one that its rows say."""
    one = noise.blocks[block]
    free = [Coordinate(block, c) for c in range(one.m)]
    rows = Coordinate(block) if one.missing else ROWS
    last = {rows: one.steps, **dict.fromkeys(free, -1)}
    return [share(noise, w, one.steps, number) for w in (*({c: 1} for c in free), last)]


def drawn(laws, size):
    """Noise of every integer, each draw made once."""
    draws = {(law.joint, law.number): law.joint.draw(size) for law in laws}
    return [law.of(draws[law.joint, law.number]) for law in laws]


def mean(first, steps) -> Ratio:
    """Of a column in [0, 1], from the cells of its block of which ``first`` is the first."""
    return Ratio((first, first + 1), (1, -1), steps, steps, MIDDLE, MIDDLE, (Fraction(0), Fraction(1)))


def exact_cells(steps, rows, mu) -> tuple[int, int]:
    """Of ``rows`` rows with mean ``mu``, as close as whole steps are."""
    top = round(steps * rows * mu)
    return top, steps * rows - top


def released(laws, exact, size):
    return [np.int64(e) + x for e, x in zip(exact, drawn(laws, size))]
