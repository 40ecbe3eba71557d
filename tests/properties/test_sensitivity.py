"""How far one row moves the released integers: found by trying, and compared with what the plan declares.

No formula is repeated here. Small frames and all their neighbours go through the real pipeline (``no_noise``
shows what reaches the mechanism), and the largest distance that occurs must be at most what the plan
declares, and must reach it: a declaration that is too small breaks privacy, one that is too large wastes
accuracy. Numbers in answer units are those of the mathematics (test points, computed independently).

Rows come from a small alphabet: at either bound, between, beyond, infinite, missing, filtered away
before ``.dp``, and in a listed, another listed or an unlisted group.

``DPFRAME_AUDIT=1`` raises the generated neighbour pairs from 1,000 to 10,000 per relation.
"""

from __future__ import annotations

import itertools
import math
import os
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import exact_integers

import dpframe as dp
from dpframe.release.release import Release

AUDIT = os.environ.get("DPFRAME_AUDIT", "") not in ("", "0")
PAIRS = 10_000 if AUDIT else 1_000
CHUNKS = 10
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


def brute_force(ask, kind, relation, rows, most):
    """Compare with the declaration; return the observed (L1, L2, Linf) in the unit of ``plan.l1`` per part."""
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
                assert piece.noise.scale >= Fraction(len(plan.parts) * l1) / piece.noise.event.eps
    assert total == len(plan.parts), "parts that move together are each charged in full"
    units = [plan.output_unit(next(o for o in plan.outputs if o.part == i)) for i in range(len(plan.parts))]
    return plan, [
        (float(l1 * u), math.sqrt(l2) * float(u), float(linf * u)) for (l1, l2, linf), u in zip(worst, units)
    ]


BOUNDS = [(-3, 10), (20, 100), (-10, 10), (-50, -10), (0, 1)]

# The table of row units: (question, relation, grouped) -> (L1, L2, Linf) in the answer's unit, from the mathematics.
COUNTS = {
    ("add_remove", False): (1, 1, 1),
    ("replace_one", False): (1, 1, 1),
    ("add_remove", True): (1, 1, 1),
    ("replace_one", True): (2, ROOT2, 1),
}
SUMS = {
    ((-3, 10), "add_remove", False): (10, 10, 10),
    ((-3, 10), "replace_one", False): (13, 13, 13),
    ((-3, 10), "add_remove", True): (10, 10, 10),
    ((-3, 10), "replace_one", True): (20, 14.142136, 13),
    ((20, 100), "add_remove", False): (100, 100, 100),
    ((20, 100), "replace_one", False): (100, 100, 100),
    ((20, 100), "add_remove", True): (100, 100, 100),
    ((20, 100), "replace_one", True): (200, 141.421356, 100),
    ((-10, 10), "add_remove", False): (10, 10, 10),
    ((-10, 10), "replace_one", False): (20, 20, 20),
    ((-10, 10), "add_remove", True): (10, 10, 10),
    ((-10, 10), "replace_one", True): (20, 20, 20),
    ((-50, -10), "add_remove", False): (50, 50, 50),
    ((-50, -10), "replace_one", False): (50, 50, 50),
    ((-50, -10), "add_remove", True): (50, 50, 50),
    ((-50, -10), "replace_one", True): (100, 70.710678, 50),
    ((0, 1), "add_remove", False): (1, 1, 1),
    ((0, 1), "replace_one", False): (1, 1, 1),
    ((0, 1), "add_remove", True): (1, 1, 1),
    ((0, 1), "replace_one", True): (2, ROOT2, 1),
}
each_relation = pytest.mark.parametrize("relation", RELATIONS)
each_grouping = pytest.mark.parametrize("grouped", [False, True], ids=["ungrouped", "grouped"])


def verbs(plan, grouped):
    return plan.groupby("g", keys=["a", "b"]) if grouped else plan


def same(got, want):
    assert got == pytest.approx(want, rel=1e-6)


@each_relation
@each_grouping
@pytest.mark.parametrize("column", [None, "x"])
def test_counts_move_as_declared(only_integers, kind, relation, grouped, column):
    rows = alphabet(-3.0, 10.0, grouped=grouped)
    plan, (moved,) = brute_force(lambda p: verbs(p, grouped).count(column, eps=1), kind, relation, rows, 2)
    same(moved, COUNTS[relation, grouped])
    same((plan.l1, plan.l2), COUNTS[relation, grouped][:2])


@each_relation
@each_grouping
def test_histograms_move_as_declared(only_integers, kind, relation, grouped):
    """One bin for every row: as counts of disjoint groups, even when there is one group only."""
    rows = alphabet(-3.0, 10.0, grouped=grouped)

    def ask(p):
        return verbs(p, grouped).histogram("x", edges=[-3, 0, 10], eps=1)

    plan, (moved,) = brute_force(ask, kind, relation, rows, 2)
    want = (1, 1, 1) if relation == "add_remove" else (2, ROOT2, 1)
    same(moved, want)
    same((plan.l1, plan.l2), want[:2])


@each_relation
@each_grouping
def test_numbers_of_different_values_move_as_declared(only_integers, kind, relation, grouped):
    rows = alphabet(-3.0, 10.0, grouped=grouped)
    plan, (moved,) = brute_force(lambda p: verbs(p, grouped).n_unique("x", eps=1), kind, relation, rows, 2)
    same(moved, COUNTS[relation, grouped])
    same((plan.l1, plan.l2), COUNTS[relation, grouped][:2])


@each_relation
@each_grouping
def test_a_number_of_values_beside_a_block_has_its_share(only_integers, kind, relation, grouped):
    rows = alphabet(-3.0, 10.0, grouped=grouped)

    def ask(p):
        return verbs(p, grouped).agg(m=dp.clip_mean("x", bounds=(-3, 10)), k=dp.n_unique("x"), eps=1)

    _, (block, number) = brute_force(ask, kind, relation, rows, 2)
    same(block, (1, 1, 1) if relation == "add_remove" else (2, ROOT2, 1))
    same(number, COUNTS[relation, grouped])


@each_relation
@each_grouping
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_sums_move_as_declared(only_integers, kind, relation, grouped, bounds):
    rows = alphabet(*map(float, bounds), grouped=grouped)
    plan, (moved,) = brute_force(
        lambda p: verbs(p, grouped).clip_sum("x", bounds=bounds, eps=1), kind, relation, rows, 2
    )
    same(moved, SUMS[bounds, relation, grouped])
    same((plan.l1, plan.l2), SUMS[bounds, relation, grouped][:2])


@each_relation
@each_grouping
@pytest.mark.parametrize("bounds", [(-3, 10), (20, 100)], ids=str)
def test_means_with_a_public_n_move_by_half_the_span_over_n_or_the_span_over_n(
    only_integers, kind, relation, grouped, bounds
):
    """D/(2n), and D/n when a row becomes another; between groups the old mean and the new one move by D/(2n) each."""
    rows = alphabet(*map(float, bounds), grouped=grouped)
    plan, (moved,) = brute_force(
        lambda p: verbs(p, grouped).clip_mean("x", bounds=bounds, n=100, eps=1), kind, relation, rows, 2
    )
    d = (bounds[1] - bounds[0]) / 100
    want = (d / 2, d / 2, d / 2) if relation == "add_remove" else (d, d, d)
    same(moved, want)
    same((plan.l1, plan.l2), want[:2])


@each_relation
@each_grouping
@pytest.mark.parametrize("bounds", [(-3, 10), (20, 100)], ids=str)
@pytest.mark.parametrize("asked", ["mean", "sum and count", "everything"])
def test_a_block_moves_by_one_row_in_l1_whatever_is_asked_of_it(
    only_integers, kind, relation, grouped, bounds, asked
):
    """L1 = L2 = 1 in rows; L1 = 2 and L2 = sqrt 2 when a row becomes another."""
    questions = {
        "mean": {"m": dp.clip_mean("x", bounds=bounds)},
        "sum and count": {"s": dp.clip_sum("x", bounds=bounds), "n": dp.count()},
        "everything": {
            "n": dp.count(),
            "c": dp.count("x"),
            "s": dp.clip_sum("x", bounds=bounds),
            "m": dp.clip_mean("x", bounds=bounds),
            "p": dp.clip_mean("x", bounds=bounds, n=100),
        },
    }[asked]
    rows = alphabet(*map(float, bounds), grouped=grouped)
    plan, moved = brute_force(lambda p: verbs(p, grouped).agg(**questions, eps=1), kind, relation, rows, 2)
    assert len(moved) == 1, "one column and its bounds are one part"
    same(moved[0], (1, 1, 1) if relation == "add_remove" else (2, ROOT2, 1))
    part = plan.parts[0]
    assert part.l1 == plan.parts[0].layout.grid.count * (1 if relation == "add_remove" else 2)


def test_every_row_adds_exactly_k_to_the_block(only_integers, kind):
    """The simplex: whatever a row holds, U + V + W grows by K, and each of them by at least 0."""
    rows = [x for x in alphabet(-3.0, 10.0, grouped=False) if x is not GONE]
    rows += [(v, 1.0, "a", True) for v in (math.nan, 1e300, -1e300, 5e-324, 1 / 3, 2.0**-27, 9.999999)]
    with dp.Session(eps=10**6):
        for row in rows:
            bound = frame_of(kind, [row]).dp.plan.agg(
                n=dp.count(), m=dp.clip_mean("x", bounds=(-3, 10)), eps=1
            )
            cells = [x for (x,) in exact_integers(bound)]
            assert len(cells) == 3
            assert sum(cells) == bound.plan.parts[0].layout.grid.count
            assert min(cells) >= 0


@each_relation
@each_grouping
def test_counts_of_rows_and_of_cells_together_are_two_cells_of_one_part(
    only_integers, kind, relation, grouped
):
    rows = alphabet(-3.0, 10.0, grouped=grouped)
    _, (moved,) = brute_force(
        lambda p: verbs(p, grouped).agg(n=dp.count(), c=dp.count("x"), eps=1), kind, relation, rows, 2
    )
    same(moved, (1, 1, 1) if relation == "add_remove" else (2, ROOT2, 1))


@each_relation
@each_grouping
def test_two_blocks_of_different_columns_each_move_in_full(only_integers, kind, relation, grouped):
    """c blocks: L1 = c, L2 = sqrt c times the block's; a row reaches the limit of both at once."""
    rows = alphabet(-3.0, 10.0, grouped=grouped, second=True)
    if grouped:  # the corners are enough: extremes, missing, another group, unlisted, filtered
        rows = [r for r in rows if r[0] != 0.0 and (r[2] == "a" or r[0] == r[1])]

    def ask(p):
        return verbs(p, grouped).agg(
            n=dp.count(), a=dp.clip_mean("x", bounds=(-3, 10)), b=dp.clip_mean("y", bounds=(-3, 10)), eps=1
        )

    most = 1 if grouped else 2
    plan, moved = brute_force(ask, kind, relation, rows, most)
    assert len(moved) == 2
    for m in moved:
        same(m, (1, 1, 1) if relation == "add_remove" else (2, ROOT2, 1))
    for piece in plan.pieces:
        assert piece.noise.scale == 2 * plan.parts[piece.part].l1


@each_relation
@each_grouping
def test_a_block_and_a_plain_sum_in_one_call(only_integers, kind, relation, grouped):
    rows = alphabet(20.0, 100.0, grouped=grouped, second=True)
    if grouped:
        rows = [r for r in rows if r[0] != 0.0 and (r[2] == "a" or r[0] == r[1])]

    def ask(p):
        return verbs(p, grouped).agg(
            a=dp.clip_mean("x", bounds=(20, 100)), b=dp.clip_sum("y", bounds=(20, 100)), eps=1
        )

    plan, (block, total) = brute_force(ask, kind, relation, rows, 1 if grouped else 2)
    same(block, (1, 1, 1) if relation == "add_remove" else (2, ROOT2, 1))
    same(total, SUMS[(20, 100), relation, grouped])
    same(plan.l1["b"], SUMS[(20, 100), relation, grouped][0])


@each_relation
def test_an_epsilon_of_its_own_buys_noise_for_the_full_sensitivity(only_integers, relation):
    """Unfused aggregates add: each part's noise is for its own sensitivity at its own eps."""
    frame = frame_of("polars", [(1.0, 2.0, "a", True)])
    with dp.Session(eps=100, neighbors=relation):
        plan = frame.dp.plan.agg(
            n=dp.count(), s=dp.clip_sum("x", bounds=(-3, 10)), eps={"n": 0.25, "s": 0.5}
        ).plan
    assert plan.cost.eps == Fraction(3, 4)
    assert len(plan.parts) == 2
    for piece in plan.pieces:
        part = plan.parts[piece.part]
        eps = Fraction(1, 4) if piece.measure < 0 else Fraction(1, 2)
        assert piece.noise.scale == part.l1 / eps
    same((plan.l1["n"], plan.l1["s"]), (1, 10 if relation == "add_remove" else 13))


@each_relation
@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int64, pl.UInt8, pl.Boolean, pl.Decimal(38, 2), pl.Float32])
def test_every_dtype_declares_the_same_sensitivity(quiet, relation, dtype):
    frame = pl.DataFrame({"x": pl.Series([], dtype=dtype)})
    bounds = (0, 1) if dtype == pl.Boolean else (20, 100)
    with dp.Session(eps=1, neighbors=relation):
        plan = frame.dp.plan.clip_sum("x", bounds=bounds, eps=1)
        assert plan.l1 == plan.l2 == bounds[1]
        assert frame.dp.plan.count("x", eps=1).l1 == 1
        assert frame.dp.plan.clip_mean("x", bounds=bounds, n=100, eps=1).l1 == pytest.approx(
            (bounds[1] - bounds[0]) / (200 if relation == "add_remove" else 100)
        )


def test_sensitivity_of_counts_in_four_cells():
    """Replace_one: (2, 1.414214, 1)."""
    frame = pl.DataFrame({"g": ["a"]})
    with dp.Session(eps=1, neighbors="replace_one"):
        plan = frame.dp.plan.groupby("g", keys=["a", "b", "c", "d"]).count(eps=1)
    same((plan.l1, plan.l2), (2, 1.414214))


@each_relation
@pytest.mark.parametrize(
    "bounds", [(0.49, 0.51), (Fraction(1, 3), 2), (0.1, 0.7), (-1e-9, 7e-9), (-0.1, 1e6 / 7)]
)
def test_bounds_off_the_grid_are_moved_outward_and_never_undercounted(only_integers, relation, bounds):
    """Sensitivities in steps come from the rounded bounds; ((.49, .51) at step 1 would be 1 step)."""
    low, high = (Fraction(b) for b in bounds)
    far = max(abs(low), abs(high))
    apart = max(high, 0) - min(low, 0)
    rows = alphabet(float(low), float(high), grouped=False)
    with dp.Session(eps=10**9, neighbors=relation):
        for ask in (
            lambda p: p.clip_sum("x", bounds=bounds, eps=1),
            lambda p: p.clip_mean("x", bounds=bounds, eps=1),
            lambda p: p.clip_mean("x", bounds=bounds, n=3, eps=1),
        ):
            found, plan = vectors(ask, "polars", rows, 1)
            ((l1, l2_squared, _),), _ = observed(relation, found, plan.parts, rows, 1)
            part = plan.parts[0]
            assert l1 <= part.l1
            assert l2_squared <= part.l2_squared
            # Not reached exactly only because typed bounds lie inside the moved ones, by less than a step each.
            assert l1 >= part.l1 - 4
        plan = ask(frame_of("polars", []).dp.plan).plan
        declared = frame_of("polars", []).dp.plan.clip_sum("x", bounds=bounds, eps=1).l1
        assert (far if relation == "add_remove" else apart) <= Fraction(declared)
        assert declared <= float(apart) * (1 + 2**-27)


@pytest.mark.parametrize("bounds", [(0, 0), (5, 5), (-2.5, -2.5)])
def test_a_question_that_nothing_can_move_is_refused(quiet, bounds):
    """Case 14: sensitivity 0 would mean no noise."""
    frame = pl.DataFrame({"x": [1.0]})
    with dp.Session(eps=1) as s:
        for call in (
            lambda: frame.dp.clip_sum("x", bounds=bounds, eps=1),
            lambda: frame.dp.agg(n=dp.count(), s=dp.clip_sum("x", bounds=bounds), eps=1),
            lambda: frame.dp.clip_sum("x", B=0, eps=1),
        ):
            with pytest.raises(dp.InputError):
                call()
        assert s.report().height == 0


def test_moving_a_row_leaves_all_other_groups_alone(only_integers, kind):
    rows = [(1.0, 1.0, g, True) for g in ("a", "b", "a", "unlisted")]
    moved = [(9.0, 1.0, "b", True), *rows[1:]]
    with dp.Session(eps=100):
        got = [
            exact_integers(
                frame_of(kind, r).dp.plan.groupby("g", keys=["c", "a", "b", "d"]).clip_sum("x", B=10, eps=1)
            )
            for r in (rows, moved)
        ]
    assert got[0][0][0] == got[1][0][0] == got[0][0][3] == got[1][0][3] == 0
    assert got[0][0][1] != got[1][0][1]
    assert got[0][0][2] != got[1][0][2]


# ---- Promise 2: the grey box ----

VALUES = [
    None,
    math.nan,
    math.inf,
    -math.inf,
    1e300,
    -1e300,
    5e-324,
    0.0,
    -0.0,
    1 / 3,
    -3.0,
    10.0,
    20.0,
    100.0,
]
QUESTIONS = ["count", "count x", "sum", "mean", "mean n", "block", "two blocks", "own eps"]


def random_row(rng):
    x, y = (
        VALUES[rng.integers(len(VALUES))] if rng.random() < 0.6 else float(rng.normal(5, 20)) for _ in "xy"
    )
    return (x, y, ["a", "b", None, "unlisted", "other"][rng.integers(5)], bool(rng.random() < 0.8))


def ask_any(verbs, question, bounds, eps):
    match question:
        case "count":
            return verbs.count(eps=eps)
        case "count x":
            return verbs.count("x", eps=eps)
        case "sum":
            return verbs.clip_sum("x", bounds=bounds, eps=eps)
        case "mean":
            return verbs.clip_mean("x", bounds=bounds, eps=eps)
        case "mean n":
            return verbs.clip_mean("x", bounds=bounds, n=7, eps=eps)
        case "block":
            return verbs.agg(n=dp.count(), s=dp.clip_sum("x", bounds=bounds), eps=eps)
        case "two blocks":
            return verbs.agg(
                n=dp.count(), m=dp.clip_mean("x", bounds=bounds), z=dp.clip_mean("y", bounds=(0, 5)), eps=eps
            )
        case _:
            return verbs.agg(n=dp.count(), m=dp.clip_mean("x", bounds=bounds), eps={"n": eps, "m": eps})


def look(frame, relation, question, bounds, grouped):
    """Everything about a release that may be seen, and the integers before the noise."""
    error = None
    with dp.Session(eps=10, neighbors=relation) as s:
        verbs = frame.dp.plan.groupby("g", keys=["b", None, "a", "absent"]) if grouped else frame.dp.plan
        bound = ask_any(verbs, question, bounds, 1)
        try:
            release = bound.release()
        except Exception as e:  # whatever it is, it must be the same on both frames
            return {"error": (type(e), str(e)), "plan": bound.plan, "row": s.report().drop("time").rows()}, []
        value = release.value
        seen = {
            "error": error,
            "plan": bound.plan,
            "row": s.report().drop("time").rows(),
            "type": type(value),
            "shape": getattr(value, "shape", None),
            "columns": None if not hasattr(value, "columns") else [str(c) for c in value.columns],
            "dtypes": None if not hasattr(value, "dtypes") else [str(t) for t in value.dtypes],
            "keys": None if not grouped else [None if pd.isna(k) else k for k in value["g"]],
            "facts": {k: v for k, v in release.facts.items() if k != "time"},
        }
        return seen, [(x.astype(object), p.part) for x, p in zip(release._noisy, bound.plan.pieces)]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_generated_neighbours_look_alike_and_differ_by_no_more_than_declared(
    no_noise, quiet, relation, chunk
):
    """Rows that appear, vanish, turn missing, are filtered, move to another or an unlisted group."""
    rng = np.random.default_rng([2, chunk, RELATIONS.index(relation)])
    for turn in range(PAIRS // CHUNKS):
        rows = [random_row(rng) for _ in range(rng.choice([0, 1, 2, 4, 9, 30]) + (relation == "replace_one"))]
        at = int(rng.integers(len(rows) + (relation == "add_remove")))
        if relation == "add_remove":
            other = [*rows[:at], random_row(rng), *rows[at:]]
        else:
            new = random_row(rng)
            if rng.random() < 0.3:  # the same row turns missing, or is filtered away
                x, y, g, keep = rows[at]
                new = (None, None, g, keep) if rng.random() < 0.5 else (x, y, g, not keep)
            other = [*rows[:at], new, *rows[at + 1 :]]
        if rng.random() < 0.3:
            other = [other[i] for i in rng.permutation(len(other))]  # row order is not protected, nor seen
        kind = ("pandas", "polars", "lazy")[rng.integers(3)]
        question = QUESTIONS[turn % len(QUESTIONS)]
        bounds = [(-3, 10), (20, 100), (-50, -10), (0.1, 0.7), (0, 1e200)][rng.integers(5)]
        grouped = bool(rng.integers(2))
        (seen, a), (seen_too, b) = (
            look(frame_of(kind, r), relation, question, bounds, grouped) for r in (rows, other)
        )
        assert seen == seen_too, (kind, question, rows, other)
        assert seen["error"] is None
        for i, part in enumerate(seen["plan"].parts):
            moved = [abs(d) for (x, p), (y, _) in zip(a, b) if p == i for d in (x - y).tolist()]
            assert sum(moved) <= part.l1, (kind, question, bounds, grouped, rows, other)
            assert sum(m * m for m in moved) <= part.l2_squared, (kind, question, bounds, rows, other)


# ---- Scenario H1: replace-one at the seams ----


@pytest.fixture(params=["pandas", "polars"])
def seams(request):
    """Half of x is missing, and a flag that alternates: the frame and its filtered part."""
    x, flag = [None] * 50 + [60.0] * 50, [i % 2 == 0 for i in range(100)]
    key = list(range(100))
    if request.param == "pandas":
        df = pd.DataFrame({"x": x, "flag": flag, "k": key})
        return df, df[df.flag]
    df = pl.DataFrame({"x": x, "flag": flag, "k": key})
    return df, df.filter(pl.col("flag"))


def test_h1_declared_sensitivities_at_the_seams(seams):
    for frame in seams:
        with dp.Session(eps=10**6, neighbors="replace_one"):
            plan, grouped = frame.dp.plan, frame.dp.plan.groupby("k", keys=range(6000))
            asked = [p.count(eps=1).l1 for p in (plan, grouped)]
            assert asked == [1, 2]
            asked = [p.count("x", eps=1).l1 for p in (plan, grouped)]
            assert asked == [1, 2]
            asked = [p.clip_sum("x", bounds=(20, 100), eps=1).l1 for p in (plan, grouped)]
            assert asked == [100, 200]
            assert plan.clip_mean("x", bounds=(20, 100), n=100, eps=1).l1 == pytest.approx(0.8)


def test_h1_six_thousand_groups_carry_the_noise_of_the_doubled_sensitivity(seams, quiet):
    """E|noise| = b of the Laplace law in answer units: 2, 2 and 200 at eps 1.

    Of 6,000 groups the 5,900 that do not occur are compared. |X| has standard deviation b, so the mean's
    standard error is .013 b; .09 b is 6.9 of them, a false alarm of 5e-12 per comparison.
    """
    for frame in seams:
        with dp.Session(eps=10**6, neighbors="replace_one"):
            groups = frame.dp.groupby("k", keys=range(6000))
            n = np.abs(np.asarray(groups.count(eps=1)["count"])[100:])
            c = np.abs(np.asarray(groups.count("x", eps=1)["x_count"])[100:])
            s = np.abs(np.asarray(groups.clip_sum("x", bounds=(20, 100), eps=1)["x_sum"])[100:])
        discrete = 1 / math.sinh(0.5)  # E|X| of the two-sided geometric law with b = 2
        assert abs(n.mean() - discrete) < 0.18
        assert abs(c.mean() - discrete) < 0.18
        assert abs(s.mean() - 200) < 18


def test_h1_a_count_is_noisy_under_replace_one(seams, quiet):
    """50 equal draws have probability at most (tanh(1/2))**49 < 1e-16."""
    for frame in seams:
        with dp.Session(eps=10**6, neighbors="replace_one"):
            assert len({int(frame.dp.count(eps=1)) for _ in range(50)}) >= 2


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_h1_a_mean_with_public_n_moves_by_at_most_half_its_sensitivity_when_a_row_turns_missing(
    library, quiet
):
    """From 100 to missing is the distance from the midpoint over n: .4; noise at eps 1e6 is below 1e-4."""
    means = []
    for last in (100.0, None):
        x = [None] * 50 + [60.0] * 49 + [last]
        frame = pd.DataFrame({"x": x}) if library == "pandas" else pl.DataFrame({"x": x})
        with dp.Session(eps=10**6, neighbors="replace_one"):
            means.append(frame.dp.clip_mean("x", bounds=(20, 100), n=100, eps=10**6))
    assert abs(means[0] - means[1]) <= 0.4 + 1e-4
    assert abs(means[0] - means[1]) == pytest.approx(0.4, abs=1e-4)
