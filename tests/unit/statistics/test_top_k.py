"""The most frequent values: the law, privacy on neighbouring counts, cost, and what comes back.

Statistical checks have a false-alarm rate of at most 1e-9 each.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from laws import alarm, exponential_law, permute_and_flip_law, tells

import dpframe as dp
from conftest import as_kind, as_polars
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.choosers import Largest, Reach, largest

COUNTS = [100, 95, 80, 50, 10]
RELATIONS = ("add_remove", "replace_one")


@pytest.fixture(autouse=True)
def _quiet(quiet):
    """No test here is about notices."""


def chooser(k, eps, reach=None, mechanism="exponential"):
    return largest(len(COUNTS), k, reach or Reach(), Target(Fraction(eps)), mechanism)


def draw(made, counts, times):
    bins = np.flatnonzero(counts)
    return [tuple(made.choose(bins, np.array(counts)[bins])) for _ in range(times)]


@pytest.mark.parametrize(
    ("mechanism", "right"),
    [
        ("exponential", [0.571844, 0.346841, 0.077391, 0.003853, 0.000071]),
        ("permute_and_flip", [0.654554, 0.288938, 0.053879, 0.002582, 0.000047]),
    ],
)
def test_the_first_of_five_counts_has_the_reference_law(mechanism, right):
    made = chooser(1, 0.1, mechanism=mechanism)
    draws = [c for (c,) in draw(made, COUNTS, 4_000)]
    law = np.array(right) / sum(right)
    assert not alarm(np.bincount(draws, minlength=5), law)
    assert tells(law, [0.5, 0.4, 0.09, 0.009, 0.001], 4_000), "it can fail"


def test_the_exact_order_of_three_has_the_reference_probability():
    """k = 3, eps = 1: .83457."""
    draws = draw(chooser(3, 1), COUNTS, 5_000)
    assert all(len(set(d)) == 3 for d in draws)
    right = sum(d == (0, 1, 2) for d in draws)
    assert not alarm([right, 5_000 - right], [0.83457, 1 - 0.83457])


def test_equal_counts_and_empty_groups_are_drawn_evenly():
    draws = [c for (c,) in draw(chooser(1, 1), [0, 0, 0, 0, 0], 4_000)]
    assert not alarm(np.bincount(draws, minlength=5), [0.2] * 5)
    pairs = draw(chooser(2, Fraction(1, 5)), [7, 7, 7, 0, 0], 4_000)
    firsts = [a for a, _ in pairs]
    w = [math.exp(0.7)] * 3 + [1.0] * 2
    assert not alarm(np.bincount(firsts, minlength=5), np.array(w) / sum(w))


# ---- privacy ----


def law_of(made, counts):
    """Log-probability of every ordered choice, by peeling with the rate that is drawn with."""
    out = {}
    for order in itertools.permutations(range(len(counts)), made.width):
        left, p = list(range(len(counts))), 0.0
        for c in order:
            u = [counts[i] for i in left]
            law = permute_and_flip_law if made.mechanism == "permute_and_flip" else exponential_law
            p += math.log(law(u, 1, made.rate, monotone=True)[left.index(c)])
            left.remove(c)
        out[order] = p
    return out


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("k", "mechanism"), [(1, "exponential"), (2, "exponential"), (1, "permute_and_flip")]
)
@pytest.mark.parametrize("rows", [1, 2])
def test_neighbouring_counts_lose_eps_and_no_more(relation, k, mechanism, rows):
    """Every way in which R rows of a unit can come, or become others, among three candidates."""
    made = largest(3, k, Reach(relation == "replace_one", False, rows), Target(Fraction(1)), mechanism)
    base = (2, 1, 2)
    changes = [c for c in itertools.product(range(rows + 1), repeat=3) if sum(c) <= rows]
    counts = [tuple(b + x for b, x in zip(base, c)) for c in changes]
    pairs = itertools.product(counts, counts)
    if relation == "add_remove":
        pairs = ((base, c) for c in counts)
    laws = {c: law_of(made, c) for c in {base, *counts}}
    loss = max(abs(laws[a][o] - laws[b][o]) for a, b in pairs for o in laws[a])
    assert loss <= 1 + 1e-9
    assert loss >= 0.35


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_rate_is_the_documented_one(relation):
    """eps/(k R) and half of it under replace_one; over L0 groups eps/L0."""
    twice = 2 if relation == "replace_one" else 1
    reach = Reach(relation == "replace_one", True, 3, 4)
    made = largest(9, 5, reach, Target(Fraction(2)), "exponential")
    assert made.rate == Fraction(2, 5 * 3 * 4 * twice)
    assert float(made.event.rho) == pytest.approx(4 / (8 * 5 * 4))


@pytest.mark.parametrize("relation", RELATIONS)
def test_what_reaches_the_chooser_moves_by_r_rows(monkeypatch, kind, relation):
    """A unit with three rows, R = 2: its counts are 2 in all; unlisted values use up none of them."""
    seen = []
    choose = Largest.choose
    monkeypatch.setattr(
        Largest,
        "choose",
        lambda self, bins, rows: seen.append((bins.tolist(), rows.tolist())) or choose(self, bins, rows),
    )
    frame = as_kind(kind, pl.DataFrame({"u": [1] * 6, "c": ["x", "y", "x", "no", "no", None]}))
    with dp.Session(eps=10, unit="u", neighbors=relation):
        frame.dp.top_k("c", 1, candidates=["y", "x"], max_rows=2, eps=1)
        frame.dp.top_k("c", 1, candidates=["y", "x"], max_rows=9, eps=1)
    assert sum(seen[0][1]) == 2
    assert seen[1] == ([0, 1], [1, 2])


# ---- answers ----


def test_what_top_k_costs():
    frame = pl.DataFrame({"c": ["x"]})
    ask = {"candidates": ["x", "y"], "eps": 1}
    with dp.Session(eps=10):  # pure: permute and flip where it can
        one = frame.dp.plan.top_k("c", 1, **ask)
        two = frame.dp.plan.top_k("c", 2, **ask)
        asked = frame.dp.plan.top_k("c", 1, mechanism="exponential", **ask)
    with dp.Session(eps=10, delta=1e-6):
        composed = frame.dp.plan.top_k("c", 1, **ask)
    assert (one.mechanism, two.mechanism, asked.mechanism, composed.mechanism) == (
        "permute_and_flip",
        *["exponential"] * 3,
    )
    assert [float(p.rho) for p in (two, asked, composed)] == [1 / 16, 1 / 8, 1 / 8]
    assert float(one.rho) == pytest.approx(math.tanh(0.5))
    assert all(p.cost.eps == 1 and p.delta == 0 for p in (one, two, asked, composed))
    assert "exponential" in str(two.explain())
    assert two.error == pytest.approx(2 * math.log(2 * 2 / 0.05))


@pytest.mark.parametrize(
    ("dtype", "cells", "candidates", "right"),
    [
        (pl.String, ["b"] * 3 + ["a"] * 2 + ["c"] + [None] * 9, ["c", "a", "b", "z"], ["b", "a", "c"]),
        (pl.Int32, [5] * 3 + [7] * 2 + [9], range(10), [5, 7, 9]),
        (pl.Boolean, [True] * 3 + [False] * 2 + [None], [True, False, None], [True, False, None]),
        (pl.Enum(["p", "q", "r"]), ["q"] * 3 + ["r"] * 2 + ["p"], "declared", ["q", "r", "p"]),
    ],
    ids=["text", "int", "bool", "enum"],
)
def test_at_a_huge_eps_top_k_is_the_plain_one(kind, dtype, cells, candidates, right):
    if kind == "pandas" and candidates == "declared":
        pytest.skip("pandas categories come from the data")
    frame = as_kind(kind, pl.DataFrame({"x": pl.Series(cells, dtype=dtype)}))
    with dp.Session(eps=10**9, delta=0.1):
        t = as_polars(frame.dp.top_k("x", 3, candidates=candidates, eps=10**6))
    assert t.columns == ["x", "rank"]
    assert [None if v is None else v for v in t["x"].to_list()] == right
    assert t["rank"].to_list() == [1, 2, 3]


def test_top_k_of_groups_is_long(kind):
    table = pl.DataFrame(
        {"g": ["a"] * 5 + ["b"] * 5, "x": ["p", "p", "p", "q", "q", "q", "q", "q", "p", "r"]}
    )
    frame = as_kind(kind, table)
    with dp.Session(eps=10**9, delta=0.1):
        t = as_polars(
            frame.dp.groupby("g", keys=["b", "a"]).top_k("x", 2, candidates=["p", "q", "s"], eps=10**6)
        )
    assert t.rows() == [("b", "q", 1), ("b", "p", 2), ("a", "p", 1), ("a", "q", 2)]


def test_candidates_that_nobody_listed_are_found_by_their_counts(kind):
    table = pl.DataFrame({"x": ["p"] * 500 + ["q"] * 900 + ["r"] * 700 + ["rare"]})
    with dp.Session(eps=10, delta=0.1) as s:
        t = as_polars(as_kind(kind, table).dp.top_k("x", 2, eps=2, delta=1e-12))
        many = as_polars(as_kind(kind, table).dp.top_k("x", 9, eps=2, delta=1e-12))
    assert t.columns == ["x", "count"]
    assert t["x"].to_list() == ["q", "r"]
    assert abs(t["count"][0] - 900) <= 30
    assert many["x"].to_list() == ["q", "r", "p"]
    assert s.releases[0].facts["question"] == "top_k('x', 2)"
    assert s.spent.eps == 4
    assert s.spent.delta == pytest.approx(2e-12)
