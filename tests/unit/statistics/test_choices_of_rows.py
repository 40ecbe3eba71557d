"""Choices where any k rows are protected: what they lose, by their laws written down anew, over all groups together.

Every frame of a few rows on three candidates in one or two groups, and every neighbour: up to k rows appear or vanish
(some of both), or k become others, wherever they are.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest

import dpframe as dp

pytestmark = pytest.mark.usefixtures("quiet")
RELATIONS = ("add_remove", "replace_one")
FRAME = pl.DataFrame({"i": [0, 1, 2], "g": ["a", "b", "a"], "x": [1.0, 2.0, 3.0]})
ASKED = {
    "median": (0.5, lambda d: d.median("i", bounds=(0, 2), eps=1)),
    "quantile": (0.9, lambda d: d.quantile("i", 0.9, bounds=(0, 2), eps=1)),
    "end": (1.0, lambda d: d.quantile("i", 1, bounds=(0, 2), eps=1)),
    "top": (None, lambda d: d.top_k("i", 1, candidates=[0, 1, 2], eps=1)),
}


def chooser(ask, k, relation, groups):
    with dp.Session(eps=10, contributions=k, neighbors=relation):
        plan = ask(FRAME.dp.plan if groups == 1 else FRAME.dp.plan.groupby("g", keys=["a", "b"])).plan
    assert plan.event.eps == 1
    return plan.pieces[0].noise


def law(counts, q, scale):
    """Log-probabilities of three candidates with so many rows."""
    below = np.cumsum([0, *counts[:-1]])
    n = sum(counts)
    if q is None:
        u = np.array(counts, dtype=float)
    else:
        u = -np.maximum(0, np.maximum(below - q * n, q * n - below - np.array(counts)))
    u = u / float(scale)
    return u - math.log(np.exp(u - u.max()).sum()) - u.max()


def moves(k, cells, relation):
    """Differences of counts that k rows make: a multiset of single steps."""
    nowhere = np.zeros(cells, dtype=int)
    one = [nowhere, *(s * np.eye(cells, dtype=int)[c] for c in range(cells) for s in (1, -1))]
    if relation == "replace_one":
        one = [
            a + b for a, b in itertools.product(one, one)
        ]  # a row goes (or was filtered), another comes (or is)
    steps = {tuple(nowhere)}
    for _ in range(k):
        steps = {
            tuple(np.add(s, o)) for s in steps for o in one if relation == "add_remove" or abs(sum(o)) <= 1
        }
    return [np.array(s) for s in steps]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("asked", ASKED)
def test_choices_lose_eps_over_all_groups_and_no_more(asked, k, groups, relation):
    q, ask = ASKED[asked]
    made = chooser(ask, k, relation, groups)
    cells, worst = 3 * groups, 0.0
    known = {}

    def of(counts):
        if counts not in known:
            known[counts] = law(counts, q, made.scale)
        return known[counts]

    for before in itertools.product((0, 2), repeat=cells):
        for move in moves(k, cells, relation):
            after = np.add(before, move)
            if after.min() < 0:
                continue
            loss = 0.0
            for g in range(groups):
                a, b = of(tuple(before[3 * g : 3 * g + 3])), of(tuple(after[3 * g : 3 * g + 3]))
                loss += np.abs(a - b).max()
            worst = max(worst, loss)
    assert worst <= 1 + 1e-9
    assert worst >= 0.3, "and the budget is not wasted"


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("q", "per_row"), [(0.5, 1.0), (0.9, 1.8), (0.25, 1.5)])
def test_the_scales_of_36_rows(q, per_row, groups):
    """s = eps/(2*36*max(q, 1-q)), the same in groups: rows in all of them together are 36."""
    for relation, twice in (("add_remove", 1), ("replace_one", 2)):
        made = chooser(lambda d: d.quantile("i", q, bounds=(0, 2), eps=1), 36, relation, groups)
        flat = relation == "replace_one" and groups == 1  # a row in place of another moves a rank by one
        assert float(made.scale) == pytest.approx(72 if flat else 36 * per_row * twice)
        assert float(made.event.rho) <= 1 / 8 + 1e-12
    for relation, twice in (("add_remove", 1), ("replace_one", 2)):
        made = chooser(lambda d: d.top_k("i", 2, candidates=range(5), eps=1), 36, relation, groups)
        assert made.rate * 2 * 36 * twice == 1
