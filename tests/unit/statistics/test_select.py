"""Choosing by sums of utilities: the law on neighbouring frames, and what comes back."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from laws import alarm, tells

import dpframe as dp
from conftest import as_kind, as_polars
from dpframe.engine.polars import PolarsSource
from dpframe.mechanisms.choosers import Best

pytestmark = pytest.mark.usefixtures("quiet")
SCHEMA = {"a": pl.Int64, "b": pl.Int64, "c": pl.Int64, "g": pl.String, "u": pl.Int64}


def sums(frame, plan):
    """The exact utilities that reach the chooser, of every group."""
    piece = plan.pieces[0]
    exact = PolarsSource(frame).aggregate(plan.ask(1))
    return [
        [int(c.of(exact, m)[g]) for c, m in piece.sums]
        for g in range(1 if plan.keys is None else plan.keys.size)
    ]


def law(piece, utilities) -> dict[tuple[int, ...], float]:
    """log-probability of every ordered choice of k, from the rate alone."""
    rate, out = float(piece.noise.rate), {}
    for order in itertools.permutations(range(len(utilities)), piece.noise.width):
        left, total = list(range(len(utilities))), 0.0
        for i in order:
            z = [rate * utilities[j] for j in left]
            top = max(z)
            total += rate * utilities[i] - top - math.log(sum(math.exp(x - top) for x in z))
            left.remove(i)
        out[order] = total
    return out


def frames(relation):
    """Neighbouring frames of few rows; a unit (u = 9) has up to two rows, in up to two groups."""
    others = [(1, -1, 2, "x", 1), (0, 2, None, "y", 2)]
    values = (-1, 2, None)
    one = [(a, b, c, g, 9) for a, b, c in itertools.product(values, repeat=3) for g in ("x", "y")]
    few = one[::5]
    for row in one:
        yield others, [*others, row]
    for r, s in itertools.combinations(few, 2):
        if relation == "replace_one":
            yield [*others, r], [*others, s]
            yield [*others, r, r], [*others, s, s]
        else:
            yield others, [*others, r, s]


@pytest.mark.sweep
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("bounds", [(-1, 2), (0, 2), (-2, -1)])
@pytest.mark.parametrize("shape", ["row", "unit", "grouped", "grouped unit"])
def test_no_neighbour_tells_more_than_eps(k, relation, bounds, shape):
    unit = "u" if "unit" in shape else None
    options = {"unit": unit, "max_groups": 2, "max_rows_per_group": 2, "max_rows": 2} if unit else {}
    losses = []
    with dp.Session(eps=1e6, neighbors=relation, **options):
        for rows, other in frames(relation):
            if unit is None and max(len(rows), len(other)) > 3:
                continue  # two rows are one change for a unit alone
            pair = [pl.DataFrame(r, schema=SCHEMA, orient="row") for r in (rows, other)]
            here = pair[0].dp.plan
            if "grouped" in shape:
                here = here.groupby("g", keys=["x", "y"])
            plan = here.select(["a", "b", "c"], bounds=bounds, k=k, eps=1).plan
            (piece,) = plan.pieces
            total = 0.0
            for p, q in zip(*(sums(f, plan) for f in pair)):
                p, q = law(piece, p), law(piece, q)
                total += max(abs(p[x] - q[x]) for x in p)
            losses.append(total)
    assert max(losses) <= 1 + 1e-9
    assert max(losses) >= 0.1, "and the budget is not wasted"


def test_the_draws_follow_the_law():
    frame = pl.DataFrame({"a": [1.5] * 4, "b": [1.0] * 4, "c": [0.25] * 4})
    with dp.Session(eps=1e6):
        plan = frame.dp.plan.select(["a", "b", "c"], bounds=(0, 2), k=2, eps=2).plan
    (piece,) = plan.pieces
    utilities = sums(frame, plan)[0]
    assert [u * float(piece.noise.step) for u in utilities] == [6, 4, 1]
    assert float(piece.noise.rate / piece.noise.step) == pytest.approx(0.5)  # eps/k over 2
    right = law(piece, utilities)
    odds = [math.exp(x) for x in right.values()]
    drawn = [tuple(piece.noise.choose(np.arange(3), np.array(utilities))) for _ in range(4000)]
    seen = [sum(d == order for d in drawn) for order in right]
    assert not alarm(seen, odds)
    assert tells(odds, odds[::-1], len(drawn)), "it can fail"


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_at_a_huge_eps_the_best_are_chosen(kind, neighbors):
    frame = pl.DataFrame(
        {
            "g": ["x"] * 3 + ["y"] * 3,
            "a": [5.0, None, 1] * 2,
            "b": [9.0, math.nan, 2, 0, 0, 0],
            "c": [0.5] * 6,
        }
    )
    with dp.Session(eps=1e9, neighbors=neighbors) as s:
        whole = as_polars(as_kind(kind, frame).dp.select(["a", "b", "c"], bounds=(0, 10), k=3, eps=1e6))
        groups = as_polars(
            as_kind(kind, frame)
            .dp.groupby("g", keys=["y", "x", "z"])
            .select(["a", "b", "c"], bounds=(0, 10), eps=1e6)
        )
    assert whole["candidate"].to_list() == ["a", "b", "c"]
    assert whole["rank"].to_list() == [1, 2, 3]
    assert groups["g"].to_list() == ["y", "x", "z"]
    assert groups["candidate"].to_list()[:2] == ["a", "b"]
    assert groups["candidate"][2] in ("a", "b", "c")
    assert s.spent == 2e6


def test_columns_of_different_types_are_compared_on_one_grid():
    frame = pl.DataFrame({"i": [3] * 10, "f": [2.9] * 10, "b": [True] * 10})
    with dp.Session(eps=1e9):
        assert frame.dp.select(["f", "b", "i"], bounds=(0, 4), k=3, eps=1e6)["candidate"].to_list() == [
            "i",
            "f",
            "b",
        ]
        votes = frame.with_columns(n=pl.lit(False))
        assert votes.dp.select(["n", "b"], eps=1e3)["candidate"].item() == "b"


def test_what_it_costs_and_says():
    frame = pl.DataFrame({"a": [1], "b": [2], "u": [1]})
    with dp.Session(eps=9, unit="u", max_rows=3, neighbors="replace_one"):
        plan = frame.dp.plan.select(["a", "b"], bounds=(-1, 4), eps=1)
        assert (plan.cost.eps, plan.rho, plan.mechanism) == (1, 0.125, "exponential")
        assert plan.l1 == 30  # twice the range 5, of 3 rows
        assert plan.scale == pytest.approx(30)
        assert isinstance(plan.plan.pieces[0].noise, Best)
        assert "utilities of those chosen" in str(plan.explain())
        mixed = frame.dp.plan.agg(n=dp.count("a"), eps=1)
        assert mixed.cost.eps == 1
    with dp.Session(eps=9):
        by_rho = frame.dp.plan.select(["a", "b"], bounds=(-1, 4), rho=Fraction(1, 8))
        assert by_rho.scale == pytest.approx(5)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda d: d.select(["a"], bounds=(0, 1), eps=1), "at least 2 columns"),
        (lambda d: d.select(["a", "b"], k=3, bounds=(0, 1), eps=1), "at least 3 columns"),
        (lambda d: d.select(["a", "a"], bounds=(0, 1), eps=1), "twice"),
        (lambda d: d.select(["a", "b"], eps=1), "needs bounds"),
        (lambda d: d.select(["a", "s"], bounds=(0, 1), eps=1), "not numbers"),
        (lambda d: d.select(["a", "b"], bounds=(0, 1), k=0, eps=1), "k=0"),
        (lambda d: d.agg(dp.select(["a", "b"], bounds=(0, 1)), dp.count(), eps=1), "can't stand beside"),
    ],
)
def test_wrong_calls_cost_nothing(ask, words):
    frame = pl.DataFrame({"a": [1], "b": [2], "s": ["x"]})
    with dp.Session(eps=1) as s, pytest.raises(dp.InputError, match=words):
        ask(frame.dp)
    assert s.spent == 0
