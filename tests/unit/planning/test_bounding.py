"""One unit with many rows: how far it moves a release, and that it moves nobody else.

No formula of the package is repeated: small frames, and every way in which one unit's rows may change, go
through the real pipeline (``no_noise`` shows what reaches the mechanism). Figures in answer units are the
sensitivity table of the mathematics (test points, computed independently).

A unit's rows may appear, vanish, become others, turn missing, be filtered away before ``.dp``, and move to
other listed or to unlisted groups.

``DPFRAME_AUDIT=1`` raises the generated neighbour pairs from 300 to 12,000.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from many_rows import BOUNDS, bound_plan, by_part, counts_at, frame_of, norms, pieces_of
from sizes import AUDIT

import dpframe as dp

PAIRS = 12_000 if AUDIT else 300
CHUNKS = 6
RELATIONS = ("add_remove", "replace_one")
each_relation = pytest.mark.parametrize("relation", RELATIONS)


# ---- the sensitivity table, by trying ----


def rowsets(low, high):
    """What the rows of unit 1 may be, with L0 = 2 and R = 3 in mind."""

    def rows(groups, values, keep=True):
        return [(1, v, g, keep) for g in groups for v in values]

    sets = [[]]
    for groups in ("ab", "cd", "ac", "a", "d"):
        for values in ([high] * 3, [low] * 3, [high] * 5, [low, high, None], [None] * 3, [0.0]):
            sets.append(rows(groups, values))
    sets += [
        rows("ab", [high] * 3, keep=False),
        rows("abcd", [high] * 3),
        rows("abcd", [low] * 4),
        rows("ab", [high] * 3) + rows("cd", [low] * 3),
        rows("a", [high] * 3) + rows("b", [low] * 3),
        rows("a", [low] * 3) + rows("b", [high] * 3),
        rows(["unlisted"], [high] * 9),
        rows(["unlisted", None], [high] * 9) + rows("ab", [high] * 3),
        rows("ab", [math.inf] * 3),
        rows("ab", [-math.inf] * 3),
        rows("ab", [None, None, None, high, high]),
        rows("ab", [(low + high) / 2, high, low, low / 3, high / 7]),
        [(None, high, g, True) for g in "abcd"],
    ]
    return sets


OTHERS = [(u, float(u % 7), "abcd"[u % 4], True) for u in range(2, 9)] * 2
ROOT2 = math.sqrt(2)

# (question, grouped) -> add_remove (L1, L2, Linf), replace_one (L1, L2, Linf); L0 = 2, R = 3.
TABLE = {
    ("count", True): ((6, 4.242641, 3), (12, 6, 3)),
    ("count x", True): ((6, 4.242641, 3), (12, 6, 3)),
    ("sum -3 10", True): ((60, 42.426407, 30), (120, 60, 39)),
    ("sum 20 100", True): ((600, 424.264069, 300), (1200, 600, 300)),
    ("sum -10 10", True): ((60, 42.426407, 30), (120, 84.852814, 60)),
    ("mean n", True): ((0.39, 0.195 * ROOT2, 0.195), (0.78, 0.39 * ROOT2, 0.39)),  # n = 100, D = 13
    ("block", True): ((6, 4.242641, 3), (12, 6, 3)),
    ("block n", True): ((6, 4.242641, 3), (12, 6, 3)),
    ("count", False): ((3, 3, 3), (3, 3, 3)),
    ("count x", False): ((3, 3, 3), (3, 3, 3)),
    ("sum -3 10", False): ((30, 30, 30), (39, 39, 39)),
    ("sum 20 100", False): ((300, 300, 300), (300, 300, 300)),
    ("sum -10 10", False): ((30, 30, 30), (60, 60, 60)),
    ("mean n", False): ((0.195, 0.195, 0.195), (0.39, 0.39, 0.39)),
    ("block", False): ((3, 3, 3), (6, 3 * ROOT2, 3)),
    ("block n", False): ((3, 3, 3), (6, 3 * ROOT2, 3)),
}


@pytest.mark.sweep
@pytest.mark.parametrize("grouped", [False, True], ids=["ungrouped", "grouped"])
@pytest.mark.parametrize("question", sorted({q for q, _ in TABLE}))
def test_one_unit_moves_a_release_as_far_as_declared_and_no_farther(no_noise, quiet, kind, question, grouped):
    low, high = map(float, BOUNDS.get(question, (-3, 10)))
    found, plans = [], {}
    for relation in RELATIONS:
        with dp.Session(eps=10**9, neighbors=relation, unit="u"):
            plans[relation] = bound_plan(frame_of(kind, OTHERS), question, grouped).plan
    with dp.Session(eps=10**9, unit="u"):
        for rows in rowsets(low, high):
            found.append(by_part(bound_plan(frame_of(kind, [*OTHERS, *rows]), question, grouped))[0])
    for relation, want in zip(RELATIONS, TABLE[question, grouped]):
        plan = plans[relation]
        (part,) = plan.parts
        pairs = zip(itertools.repeat(found[0]), found[1:])
        if relation == "replace_one":
            pairs = itertools.combinations(found, 2)
        worst = [0, 0, 0]
        for a, b in pairs:
            worst = [max(x, y) for x, y in zip(worst, norms(a - b))]
        assert worst[0] <= part.l1, "one unit moves more than is declared"
        assert worst[1] <= part.l2_squared, "one unit moves more than is declared"
        unit = float(plan.output_unit(plan.outputs[0]))
        declared = (plan.l1, plan.l2) if len(plan.outputs) == 1 else (plan.l1["n"], plan.l2["n"])
        assert declared == pytest.approx(want[:2], rel=1e-6)
        assert worst[2] * unit <= want[2] * (1 + 1e-6)
        reached = (worst[0] * unit, math.sqrt(worst[1]) * unit, worst[2] * unit)
        assert reached[0] == pytest.approx(want[0], rel=1e-6), "declared L1 is never reached"
        assert reached[1] == pytest.approx(want[1], rel=1e-6), "declared L2 is never reached"
        for piece in plan.pieces:  # at eps = 1
            assert piece.noise.scale >= part.l1


@each_relation
def test_the_count_of_units_behind_a_threshold_moves_by_one_in_each_group(quiet, kind, relation):
    """L0, sqrt(L0); 2*L0, sqrt(2*L0): declared, and found by trying on the engine's integers."""
    with dp.Session(eps=10**9, delta=0.1, neighbors=relation, unit="u"):
        plan = (
            frame_of(kind, OTHERS)
            .dp.plan.groupby("g", max_groups=2, max_rows_per_group=3)
            .count(eps=1, delta=1e-6)
            .plan
        )
    (units,) = [p for p in plan.parts if p.layout.kind == "units"]
    c = 1 if relation == "add_remove" else 2
    assert (units.l1, units.l2_squared) == (2 * c, 2 * c)
    found = []
    for rows in rowsets(-3.0, 10.0):
        frame = frame_of(kind, [*OTHERS, *rows])
        counts = counts_at(frame, plan, 5)
        keys = [None if k is None else str(k) for k in counts.found.to_series().to_list()]
        found.append(dict(zip(keys, map(int, counts.units))))
    for a, b in itertools.combinations(found, 2):
        moved = np.array([a.get(k, 0) - b.get(k, 0) for k in {*a, *b}])
        assert np.abs(moved).max(initial=0) <= 1
        assert np.abs(moved).sum() <= 4
    none = found[0]
    for a in found[1:]:
        assert sum(abs(a.get(k, 0) - none.get(k, 0)) for k in {*a, *none}) <= 2


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_generated_neighbouring_units_differ_by_no_more_than_declared(no_noise, quiet, chunk):
    """Random units, limits, questions and frames; rows appear, vanish, turn missing, are filtered, move."""
    rng = np.random.default_rng([3, chunk])
    questions = ["count", "count x", "sum -3 10", "mean n", "block", "block n", "two"]
    values = [None, math.nan, math.inf, -math.inf, 1e300, 5e-324, -3.0, 10.0, 0.0, 1 / 3, 4.999]

    def unit_rows(u):
        n = int(rng.choice([0, 1, 2, 5, 40]))
        groups = rng.choice(["a", "b", "c", "d", "unlisted", "e"], size=n)
        return [(u, values[rng.integers(len(values))], str(g), bool(rng.random() < 0.85)) for g in groups]

    for turn in range(PAIRS // CHUNKS):
        relation = RELATIONS[turn % 2]
        kind = ("pandas", "polars", "lazy")[int(rng.integers(3))]
        others = [r for u in range(2, 2 + int(rng.integers(5))) for r in unit_rows(u)]
        before, after = unit_rows(1), unit_rows(1)
        if relation == "add_remove":
            before = []
        elif rng.random() < 0.3:
            after = [(u, None, g, keep) for u, _, g, keep in before]
        question, grouped = questions[turn % len(questions)], bool(rng.integers(2))
        groups, rows = int(rng.integers(1, 5)), int(rng.choice([1, 2, 3, 100]))
        with dp.Session(eps=10**9, neighbors=relation, unit="u"):
            two = []
            for mine in (before, after):
                all_rows = [*others, *mine]
                all_rows = [all_rows[i] for i in rng.permutation(len(all_rows))]
                bound = bound_plan(frame_of(kind, all_rows), question, grouped, groups, rows)
                if grouped and groups < 4:  # the salt must be the same: the exact integers of one choice
                    counts = counts_at(frame_of(kind, all_rows), bound.plan, turn)
                    two.append((bound, pieces_of(bound.plan, counts)))
                else:
                    two.append((bound, by_part(bound)))
        (bound, a), (_, b) = two
        for i, part in enumerate(bound.plan.parts):
            l1, l2, _ = norms(a[i] - b[i])
            assert l1 <= part.l1, (relation, kind, question, groups, rows, before, after)
            assert l2 <= part.l2_squared, (relation, kind, question, groups, rows, before, after)
