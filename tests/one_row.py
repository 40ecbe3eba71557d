"""How far one row moves the released integers: small frames, their neighbours, and every way from one to the other."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from conftest import exact_integers
from dpframe.release.release import Release

RELATIONS = ("add_remove", "replace_one")
ROOT2 = 1.4142135623730951


@pytest.fixture
def only_integers(monkeypatch, no_noise, quiet):
    """What reaches the mechanism; answers are not made, as thousands of frames are tried."""
    monkeypatch.setattr(Release, "_answers", lambda self: {})
    monkeypatch.setattr(Release, "_value", lambda self: None)


# ---- small frames ----

# A row: (x, y, group, whether the filter before .dp keeps it)
GONE = (None, None, "a", False)
SCHEMA = {"x": pl.Float64, "y": pl.Float64, "g": pl.String, "keep": pl.Boolean}


def frame_of(kind: str, rows):
    """The rows as a frame of the caller's library, filtered before it reaches ``.dp``."""
    if kind == "pandas":
        columns = list(zip(*rows)) if rows else [[], [], [], []]
        frame = pd.DataFrame(
            {
                "x": np.array([math.nan if v is None else v for v in columns[0]], dtype=float),
                "y": np.array([math.nan if v is None else v for v in columns[1]], dtype=float),
                "g": pd.Series(columns[2], dtype=object),
                "keep": np.array(columns[3], dtype=bool),
            }
        )
        return frame[frame["keep"]]
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    frame = frame.lazy() if kind == "lazy" else frame
    return frame.filter(pl.col("keep"))


def alphabet(low, high, *, grouped: bool, second: bool = False):
    """Rows that matter: extremes, the middle, zero, beyond the bounds, missing, filtered away, unlisted."""
    values = [low, high, (low + high) / 2, 0.0, None, math.inf, -math.inf]
    if grouped:
        values = [low, high, 0.0, None]
    seconds = (low, high, None) if second else (1.0,)
    groups = ("a", "b", "unlisted") if grouped else ("a",)
    rows = [(x, y, g, True) for x in values for y in seconds for g in groups]
    return [*rows, GONE]


def vectors(ask, kind, rows, most):
    """The released integers of every multiset of at most ``most`` rows, one array per part of the plan."""
    found = {}
    for size in range(most + 1):
        for chosen in itertools.combinations_with_replacement(range(len(rows)), size):
            bound = ask(frame_of(kind, [rows[i] for i in chosen]).dp.plan)
            got = exact_integers(bound)
            found[chosen] = {
                part: np.array([c for c, p in zip(got, bound.plan.pieces) if p.part == part], dtype=object)
                for part in range(len(bound.plan.parts))
            }
    return found, bound.plan


def neighbours(relation, rows, most):
    """Pairs of multisets: a row more, or one row become another."""
    for size in range(most):
        for shared in itertools.combinations_with_replacement(range(len(rows)), size):
            for i in range(len(rows)):
                if relation == "add_remove":
                    yield shared, tuple(sorted((*shared, i)))
                else:
                    for j in range(i):
                        yield tuple(sorted((*shared, i))), tuple(sorted((*shared, j)))


def observed(relation, found, parts, rows, most):
    """Per part the largest L1, squared L2 and Linf that occur, and the largest total of L1/declared."""
    worst = [[0, 0, 0] for _ in parts]
    total = Fraction(0)
    for a, b in neighbours(relation, rows, most):
        together = Fraction(0)
        for i, part in enumerate(parts):
            moved = np.abs(found[a][i] - found[b][i]).ravel()
            l1 = int(moved.sum())
            together += Fraction(l1, part.l1)
            worst[i][0] = max(worst[i][0], l1)
            worst[i][1] = max(worst[i][1], int((moved * moved).sum()))
            worst[i][2] = max(worst[i][2], int(moved.max(initial=0)))
        total = max(total, together)
    return worst, total


def brute_force(ask, kind, relation, rows, most, together=True):
    """Compare with the declaration; return the observed (L1, L2, Linf) in the unit of ``plan.l1`` per part.

    ``together``: whether some row moves all parts in full at once.
    """
    with dp.Session(eps=10**9, neighbors=relation):
        found, plan = vectors(ask, kind, rows, most)
    worst, total = observed(relation, found, plan.parts, rows, most)
    for part, (l1, l2_squared, _) in zip(plan.parts, worst):
        assert l1 <= part.l1, "one row moves more than is declared"
        assert l2_squared <= part.l2_squared, "one row moves more than is declared"
        assert l1 == part.l1, "declared L1 is never reached"
        assert l2_squared == part.l2_squared, "declared L2 is never reached"
        for piece in plan.pieces:  # and the noise is made for it, all parts of a call together
            if plan.parts[piece.part] is part and piece.noise.event.eps is not None:
                assert piece.noise.scale >= Fraction(len(plan.parts) * l1) / plan.event.eps
    assert total <= len(plan.parts), "parts are charged for less than they move together"
    assert total == len(plan.parts) or not together, "parts that move together are each charged in full"
    rows = [Fraction(1, p.layout.row) for p in plan.parts]  # of a part whose cells no output reads first
    of = {o.part: plan.output_unit(o) for o in reversed(plan.outputs)}
    units = [of.get(i, row) for i, row in enumerate(rows)]
    return plan, [
        (float(l1 * u), math.sqrt(l2) * float(u), float(linf * u)) for (l1, l2, linf), u in zip(worst, units)
    ]


each_relation = pytest.mark.parametrize("relation", RELATIONS)
each_grouping = pytest.mark.parametrize("grouped", [False, True], ids=["ungrouped", "grouped"])


def verbs(plan, grouped):
    return plan.groupby("g", keys=["a", "b"]) if grouped else plan


def two_blocks(p, grouped, **options):
    """Two columns' means and the number of rows, each with a draw of its own."""
    return verbs(p, grouped).agg(
        n=dp.count(),
        a=dp.clip_mean("x", bounds=(-3, 10)),
        b=dp.clip_mean("y", bounds=(-3, 10)),
        eps=1,
        mechanism="laplace",
        **options,
    )


def same(got, want):
    assert got == pytest.approx(want, rel=1e-6)
