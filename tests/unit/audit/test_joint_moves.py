"""What neighbours cost a joint draw: by the definition of J, and by the linear map; what no row does costs everything."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from row_law import gauge

import dpframe as dp
from dpframe.audit.greybox import grey_box
from dpframe.audit.joint_moves import norm_squared, rows_moved, solved
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.row import Block, calibrate
from dpframe.mechanisms.row_gaussian import Map
from dpframe.mechanisms.row_gaussian import calibrate as calibrate_map
from dpframe.noise.row_shape import Cells

SHAPES = [
    (Block(1),),
    (Block(7, 2), Block(1)),
    (Block(5, 1, True),),
    (Block(4, 2, True), Block(3), Block(1, 1, True)),
]
FRAME = pl.DataFrame({"x": [0.5, 7.0, None, 3.0], "y": [1.0, None, 3.0, 4.0]})


@pytest.mark.parametrize("blocks", SHAPES, ids=len)
def test_moves_of_rows_are_j_by_its_definition(blocks):
    rng = np.random.default_rng(3)
    noise = calibrate(blocks, Target(Fraction(1)))
    bare = tuple(Cells(b.cells, b.steps, 0, b.missing) for b in blocks)
    for _ in range(200):
        k = int(rng.integers(-4, 5))
        each = [
            (tuple(map(int, rng.integers(-9, 10, b.cells))), int(rng.integers(-4, 5)) if b.missing else 0)
            for b in blocks
        ]
        j = rows_moved(noise, (k, each))
        assert j == gauge(bare, k, each)
        assert rows_moved(noise, (None, each)) <= j


def test_moves_of_the_map_are_its_norm():
    noise = calibrate_map(
        (Block(4), Block(6, 1, True)), Map(Fraction(2), Fraction(3), 512), Target(rho=Fraction(1))
    )
    # n = 2; of the first block 1 of 4 steps more than none; of the second 1 present row with 2 of 6 steps
    assert (
        norm_squared(noise, (2, [((1,), 0), ((2,), 1)]))
        == 16 + Fraction(2 - 8, 4) ** 2 + Fraction(-2, 6) ** 2 + 0
    )


def test_coordinates_are_solved_for_and_contradictions_seen():
    noise = calibrate((Block(5, 1, True),), Target(Fraction(1)))  # rows, present rows, one cell
    weights = [(0, 0, 1), (0, 5, -1)]
    assert solved(noise, weights, (3, 7)) == (None, [((3,), 2)])
    assert solved(noise, weights, (3, 6)) is None  # 9 steps are no whole rows
    assert solved(noise, [*weights, (1, 0, 0)], (3, 7, 4)) == (4, [((3,), 2)])
    assert solved(noise, [*weights, (0, 0, 1)], (3, 7, 4)) is None  # one cell moves by 3 and by 4


@pytest.mark.parametrize("law", ["row", "auto"])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_a_grey_box_looks_at_a_draw_as_a_whole(law, neighbors):
    """Two rows are no neighbours: planted, as every integer alone may still move within what its part declares."""

    def ask(d):
        return d.agg(
            n=dp.count(),
            a=dp.clip_mean("x", bounds=(0, 10)),
            b=dp.clip_mean("y", bounds=(0, 4)),
            eps=1,
            mechanism=law,
        )

    other = FRAME[:3] if neighbors == "add_remove" else pl.concat([FRAME[:3], FRAME[1:2]])
    assert grey_box(ask, FRAME, other, neighbors=neighbors).ok
    found = grey_box(ask, FRAME, FRAME[:1], neighbors=neighbors)
    assert "paid" in found.failures


def test_a_grey_box_looks_at_gaussian_draws():
    def ask(d):
        return d.agg(
            n=dp.count(), a=dp.clip_mean("x", bounds=(0, 10)), b=dp.clip_mean("y", bounds=(0, 4)), rho=1
        )

    assert grey_box(ask, FRAME, FRAME[1:]).ok
    assert "paid" in grey_box(ask, FRAME, FRAME[2:]).failures


def test_rows_that_a_gaussian_draw_does_not_tell_are_no_cost_of_their_own():
    """Presence is told from kappa of the rows: taken not to move, they made a paid release look unpaid."""
    full = pl.DataFrame({"x": [10.0], "y": [1.0], "z": [0.0]})
    ask = [
        dp.clip_mean("x", bounds=(-5, 10)),
        dp.clip_mean("y", bounds=(-1, 1)),
        dp.clip_mean("z", bounds=(0, 1)),
    ]
    for row in itertools.product((True, False), repeat=3):
        frame = full.with_columns(**{c: pl.col(c) if here else None for c, here in zip(full.columns, row)})
        frame = frame.cast(pl.Float64)
        found = grey_box(lambda d: d.dp_agg(*ask, rho=0.5), frame, frame[:0])
        assert found.error is None
        assert found.ok, found.failures
