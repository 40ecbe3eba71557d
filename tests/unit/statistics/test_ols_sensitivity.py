"""Regressions: how far one row or one unit moves their blocks, and that each holds whole rows whatever is in them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest
from one_row import ROOT2, alphabet, brute_force, each_grouping, each_relation, frame_of, same, verbs

import dpframe as dp
from conftest import as_kind, exact_integers

pytestmark = pytest.mark.usefixtures("quiet")
BLOCK = {"add_remove": (1, 1, 1), "replace_one": (2, ROOT2, 1)}
ASKED = {"b": dp.ols("y", ["x"], bounds=(-3, 10))}
INF = math.inf


@each_relation
@each_grouping
def test_every_block_of_a_regression_moves_by_one_row_in_l1(only_integers, kind, relation, grouped):
    rows = alphabet(-3.0, 10.0, grouped=grouped, second=True)
    if grouped:  # the corners are enough
        rows = [r for r in rows if r[0] != 0.0 and (r[2] == "a" or r[0] == r[1])]
    # A row whose x and y both go from end to end within a group leaves their product where it was.
    at_once = grouped or relation == "add_remove"
    _, moved = brute_force(
        lambda p: verbs(p, grouped).agg(**ASKED, eps=1, mechanism="laplace"), kind, relation, rows, 1, at_once
    )
    assert len(moved) == 3  # x, y and their product
    for m in moved:
        same(m, BLOCK[relation])


def cells_of(bound):
    """The exact cells of each part, and what a row adds to it."""
    parts = [[] for _ in bound.plan.parts]
    for piece, (value,) in zip(bound.plan.pieces, exact_integers(bound)):
        parts[piece.part].append(value)
    return parts, [p.layout.row for p in bound.plan.parts]


def test_every_complete_row_adds_exactly_one_row_to_every_block(no_noise, kind):
    values = (-3.0, 10.0, 0.1, INF, -INF, 1e300, 5e-324, 1 / 3, 9.999999, None)
    for x, y in itertools.product(values, repeat=2):
        with dp.Session(eps=10):
            bound = frame_of(kind, [(x, y, "a", True)]).dp.plan.agg(**ASKED, eps=1)
            parts, rows = cells_of(bound)
        there = x is not None and y is not None
        assert min(v for part in parts for v in part) >= 0
        assert [sum(part) for part in parts] == [row * there for row in rows]


@pytest.mark.parametrize("most", [1, 2, 3, 7])
def test_a_scaled_unit_keeps_its_blocks_whole(no_noise, kind, most):
    rng = np.random.default_rng(17)
    pool = [-3.0, 10.0, 0.1, 3.0, 9.9999, None, -2.999]
    schema = {"u": pl.Int64, "x": pl.Float64, "y": pl.Float64}
    for _ in range(60):
        cells = [
            (1, *(pool[int(i)] for i in rng.integers(0, len(pool), 2))) for _ in range(rng.integers(1, 12))
        ]
        frame = as_kind(kind, pl.DataFrame(cells, schema=schema, orient="row"))
        with dp.Session(eps=10, unit="u"):
            parts, rows = cells_of(frame.dp.plan.agg(**ASKED, eps=1, max_rows=most))
        complete = sum(None not in c for c in cells)
        assert min(v for part in parts for v in part) >= 0
        assert [sum(part) for part in parts] == [row * min(complete, most) for row in rows]
