"""With ``complete_cases=True`` one row moves the released integers by what is declared, whatever it lacks.

All small frames and all their neighbours, as in ``test_sensitivity.py``: no false alarm. A row that turns incomplete
leaves every answer at once, which is a row that vanishes; under replace_one that is part of every neighbour.
"""

from __future__ import annotations

import itertools

import pytest
from one_row import (
    ROOT2,
    alphabet,
    brute_force,
    each_grouping,
    each_relation,
    frame_of,
    same,
    two_blocks,
    verbs,
)

import dpframe as dp
from conftest import exact_integers

ALPHABET = alphabet(-3.0, 10.0, grouped=False, second=True)
GROUPED = [r for r in alphabet(-3.0, 10.0, grouped=True, second=True) if r[0] != 0.0 and r[2] != "unlisted"]
CELLS = (1, 1, 1), (2, ROOT2, 1)


def rows(grouped):
    return GROUPED if grouped else ALPHABET


def only(grouped):
    return 1 if grouped else 2


@each_relation
@each_grouping
def test_two_blocks_and_their_number_move_as_complete_rows(only_integers, kind, relation, grouped):
    def ask(p):
        return two_blocks(p, grouped, complete_cases=True)

    plan, moved = brute_force(ask, kind, relation, rows(grouped), only(grouped))
    assert [len(p.layout.coordinates) for p in plan.parts] == [2, 2]  # no cell for what is missing
    for m in moved:
        same(m, CELLS[relation == "replace_one"])


@each_relation
@each_grouping
def test_a_tally_beside_sums_moves_as_complete_rows(only_integers, kind, relation, grouped):
    """Two passes, one predicate: the number of values of one column, and a block of another."""

    def ask(p):
        return verbs(p, grouped).agg(
            a=dp.clip_mean("x", bounds=(-3, 10)),
            u=dp.n_unique("y"),
            eps=1,
            mechanism="laplace",
            complete_cases=True,
        )

    _, (block, number) = brute_force(ask, kind, relation, rows(grouped), only(grouped))
    same(block, CELLS[relation == "replace_one"])
    same(number, (1, 1, 1) if not (grouped and relation == "replace_one") else (2, ROOT2, 1))


@pytest.mark.parametrize("grouped", [False, True])
def test_a_complete_row_adds_one_row_to_every_block_and_another_adds_nothing(only_integers, kind, grouped):
    with dp.Session(eps=10**9):
        for row in itertools.chain(ALPHABET, GROUPED):
            bound = two_blocks(frame_of(kind, [row]).dp.plan, grouped, complete_cases=True)
            got = exact_integers(bound)
            there = row[3] and None not in row[:2]
            for i, part in enumerate(bound.plan.parts):
                cells = [c for c, p in zip(got, bound.plan.pieces) if p.part == i]
                assert sum(map(sum, cells)) == there * part.layout.row
                assert min(map(min, cells)) >= 0
