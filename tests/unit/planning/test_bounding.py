"""One unit with many rows: how far it moves a release, and that it moves nobody else.

No formula of the package is repeated: small frames, and every way in which one unit's rows may change, go
through the real pipeline (``no_noise`` shows what reaches the mechanism). Figures in answer units are the
sensitivity table of the mathematics (test points, computed independently).

A unit's rows may appear, vanish, become others, turn missing, be filtered away before ``.dp``, and move to
other listed or to unlisted groups.

``DPFRAME_AUDIT=1`` raises the generated neighbour pairs from 600 to 12,000.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
import os
from decimal import Decimal
from fractions import Fraction
from operator import floordiv

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import as_kind, as_polars, exact_integers
from scipy import stats as laws

import dpframe as dp
from dpframe.engine.opening import as_source
from dpframe.engine.scaling import scaled
from dpframe.frames.contract import Axis, Measure

AUDIT = os.environ.get("DPFRAME_AUDIT", "") not in ("", "0")
PAIRS = 12_000 if AUDIT else 600
CHUNKS = 6
RELATIONS = ("add_remove", "replace_one")
SALTS = [0, 1, 2, 3, 17, 2**31, 2**32 + 1, 2**63, 2**64 - 1, 0x9E3779B97F4A7C15]
SCHEMA = {"u": pl.Int64, "x": pl.Float64, "g": pl.String, "keep": pl.Boolean}
each_relation = pytest.mark.parametrize("relation", RELATIONS)


def frame_of(kind, rows, schema=None):
    """Rows (unit, value, group, kept by the filter before .dp) as a frame of the caller's library."""
    frame = pl.DataFrame(rows, schema=schema or SCHEMA, orient="row")
    if "keep" in frame.columns:
        frame = frame.filter(pl.col("keep"))
    return as_kind(kind, frame)


def counts_at(frame, plan, salt):
    """The engine's exact integers for one salt."""
    return as_source(frame).aggregate(plan.ask(salt))


def vector(counts):
    """All of them as one list of Python integers."""
    arrays = [counts.rows, *counts.present, *(t for sums in counts.sums for t in sums)]
    if counts.units is not None:
        arrays.append(counts.units)
    return [int(v) for a in arrays for v in a]


def kept_pairs(frame, plan, salt):
    """The (unit, group) pairs that count, as a partition with this salt would keep them."""
    got = set()
    for key, make in zip(plan.keys.rows(), as_source(frame).part(plan.ask(salt))):
        part = make()._frame
        part = part.lazy().collect() if not isinstance(part, pd.DataFrame) else pl.from_pandas(part)
        got |= {(u, key) for u in part["u"].to_list()}
    return got


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
BOUNDS = {"sum 20 100": (20, 100), "sum -10 10": (-10, 10)}


def ask(verbs, question, eps=1):
    bounds = BOUNDS.get(question, (-3, 10))
    match question:
        case "count":
            return verbs.count(eps=eps)
        case "count x":
            return verbs.count("x", eps=eps)
        case "mean n":
            return verbs.clip_mean("x", bounds=bounds, n=100, eps=eps)
        case "block":
            return verbs.clip_mean("x", bounds=bounds, eps=eps)
        case "block n":
            return verbs.agg(
                n=dp.count(), s=dp.clip_sum("x", bounds=bounds), m=dp.clip_mean("x", bounds=bounds), eps=eps
            )
        case "two":
            return verbs.agg(
                n=dp.count(), s=dp.clip_mean("x", bounds=bounds), m=dp.clip_mean("x", bounds=(0, 5)), eps=eps
            )
    return verbs.clip_sum("x", bounds=bounds, eps=eps)


def plan_verbs(frame, grouped, groups=2, rows=3):
    plan = frame.dp.plan
    if grouped:
        return plan.groupby("g", keys=["a", "b", "c", "d"], max_groups=groups, max_rows_per_group=rows)
    return plan


def bound_plan(frame, question, grouped, groups=2, rows=3):
    verbs = plan_verbs(frame, grouped, groups, rows)
    if grouped:
        return ask(verbs, question)
    bounds = BOUNDS.get(question, (-3, 10))
    calls = {
        "count": lambda: verbs.count(eps=1, max_rows=rows),
        "count x": lambda: verbs.count("x", eps=1, max_rows=rows),
        "mean n": lambda: verbs.clip_mean("x", bounds=bounds, n=100, eps=1, max_rows=rows),
        "block": lambda: verbs.clip_mean("x", bounds=bounds, eps=1, max_rows=rows),
        "block n": lambda: verbs.agg(
            n=dp.count(),
            s=dp.clip_sum("x", bounds=bounds),
            m=dp.clip_mean("x", bounds=bounds),
            eps=1,
            max_rows=rows,
        ),
        "two": lambda: verbs.agg(
            n=dp.count(),
            s=dp.clip_mean("x", bounds=bounds),
            m=dp.clip_mean("x", bounds=(0, 5)),
            eps=1,
            max_rows=rows,
        ),
    }
    return calls.get(question, lambda: verbs.clip_sum("x", bounds=bounds, eps=1, max_rows=rows))()


def by_part(bound):
    """The integers that reach the mechanism, one flat object array per part of the plan."""
    got = exact_integers(bound)
    return {
        i: np.array([v for c, p in zip(got, bound.plan.pieces) if p.part == i for v in c], dtype=object)
        for i in range(len(bound.plan.parts))
    }


def norms(moved):
    moved = np.abs(moved)
    return int(moved.sum()), int((moved * moved).sum()), int(moved.max(initial=0))


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


def pieces_of(plan, counts):
    """What reaches the mechanism, from the engine's integers: a*n + b*c + d*t."""
    out = {}
    for i in range(len(plan.parts)):
        values = []
        for p in plan.pieces:
            if p.part != i:
                continue
            c = p.coordinate
            v = c.a * counts.rows.astype(object)
            if p.measure >= 0:
                v = v + c.b * counts.present[p.measure].astype(object)
                for which, factor in c.sums:
                    v = v + factor * counts.sums[p.measure][which].astype(object)
            values += list(v)
        out[i] = np.array(values, dtype=object)
    return out


# ---- nobody else is moved, for any salt ----


def many_units(rng, units, groups="abcdefgh"):
    rows = []
    for u in range(units):
        n = int(rng.choice([1, 2, 5, 12]))
        rows += [(u, float(rng.normal(3, 6)), str(g), True) for g in rng.choice(list(groups), size=n)]
    return rows


@pytest.mark.parametrize("salt", SALTS)
def test_for_every_salt_one_unit_changes_nobody_elses_groups(quiet, kind, salt):
    """The kept (unit, group) pairs of all others are the same, however the others' rows are ordered."""
    rng = np.random.default_rng(salt % 2**32)
    rows = many_units(rng, 60)
    with dp.Session(eps=10**9, unit="u"):
        groups = frame_of(kind, rows).dp.plan.groupby("g", keys=list("abcdefg"), max_groups=2)
        plan = groups.agg(n=dp.count(), m=dp.clip_mean("x", B=10), eps=1, max_rows_per_group=3).plan
    before = kept_pairs(frame_of(kind, rows), plan, salt)
    per_unit = [sum(u == v for v, _ in before) for u in range(60)]
    assert max(per_unit) == 2
    total = vector(counts_at(frame_of(kind, rows), plan, salt))
    for new, mine in (
        (1000, [(1000, 1.0, g, True) for g in "abcdefgh"]),
        (-1, [(-1, 9.0, "a", True)] * 50),
        (10**12, [(10**12, None, g, True) for g in "gfe"]),
    ):
        more = [*mine, *rows]
        more = [more[i] for i in rng.permutation(len(more))]
        after = kept_pairs(frame_of(kind, more), plan, salt)
        assert {p for p in after if p[0] != new} == before
        assert len({p for p in after if p[0] == new}) <= 2
        # and all integers: those of the others, plus those of the new unit alone
        alone = vector(counts_at(frame_of(kind, mine), plan, salt))
        assert vector(counts_at(frame_of(kind, more), plan, salt)) == [a + b for a, b in zip(total, alone)]


@pytest.mark.parametrize("salt", SALTS)
def test_the_groups_that_count_in_a_table_are_the_groups_that_count_in_a_part(quiet, kind, salt):
    """One choice for (unit, group), whatever the number of rows, wherever it is made."""
    rows = many_units(np.random.default_rng(7), 40)
    frame = frame_of(kind, rows)
    with dp.Session(eps=10**9, unit="u"):
        plan = (
            frame.dp.plan.groupby("g", keys=list("abcdefgh"), max_groups=3)
            .count(eps=1, max_rows_per_group=1)
            .plan
        )
    counts = counts_at(frame, plan, salt)
    kept = kept_pairs(frame, plan, salt)
    assert [int(v) for v in counts.rows] == [sum(g == k for _, g in kept) for k in "abcdefgh"]


def keyed_counts(frame, plan, salt):
    source = as_source(frame)
    counts = source.aggregate(plan.ask(salt))
    table = source.key_columns(plan.by, plan.keys, counts.found).frame({})
    return dict(zip((str(k) for k in table["k"]), (int(n) for n in counts.rows)))


FOUND_KEYS = {
    "object": lambda i: pd.Series([f"group {k}" for k in i], dtype=object),
    "int": lambda i: pd.Series(i, dtype="int64"),
    "float": lambda i: pd.Series(i, dtype="float64"),
    "datetime": lambda i: pd.Series([pd.Timestamp(2026, 1, 1 + k) for k in i]),
    "period": lambda i: pd.Series(pd.PeriodIndex([f"2026-0{k + 1}" for k in i], freq="M")),
    "category of text": lambda i: pd.Series([f"group {k}" for k in i]).astype("category"),
    "category of int": lambda i: pd.Series(i).astype("category"),
}


@pytest.mark.parametrize("of", FOUND_KEYS)
def test_with_keys_that_nobody_listed_one_unit_changes_nobody_elses_groups(quiet, of):
    """The new unit brings a key that sorts before all others, so codes by position would shift."""
    units, keys = zip(*itertools.product(range(40), range(1, 6)))
    before = pd.DataFrame({"u": units, "k": FOUND_KEYS[of](list(keys))})
    after = pd.DataFrame({"u": [*units, 999], "k": FOUND_KEYS[of]([*keys, 0])})
    with dp.Session(eps=10**6, delta=0.1, unit="u"):
        plan = before.dp.plan.groupby("k", max_groups=2, max_rows_per_group=1).count(eps=1, delta=1e-3).plan
    for salt in SALTS:
        a, b = keyed_counts(before, plan, salt), keyed_counts(after, plan, salt)
        assert sum(abs(a.get(k, 0) - b.get(k, 0)) for k in {*a, *b}) <= 1


def test_an_object_column_of_ids_does_not_number_units_by_their_order(quiet):
    rows = [(f"id {u}" if u % 2 else u, g) for u in range(40) for g in "abcde"]
    before = pd.DataFrame({"u": pd.Series([r[0] for r in rows], dtype=object), "g": [r[1] for r in rows]})
    first = pd.DataFrame({"u": pd.Series(["new"] * 5, dtype=object), "g": list("abcde")})
    after = pd.concat([first, before], ignore_index=True)
    with dp.Session(eps=10**6, unit="u"):
        plan = (
            before.dp.plan.groupby("g", keys=list("abcde"), max_groups=1)
            .count(eps=1, max_rows_per_group=1)
            .plan
        )
    for salt in SALTS:
        a, b = (np.array(vector(counts_at(f, plan, salt))) for f in (before, after))
        assert np.abs(a - b).sum() <= 2  # one row and one unit


@each_relation
@pytest.mark.parametrize("library", ["pandas", "polars", "lazy"])
def test_a_heavy_user_of_100_000_rows_moves_no_more_than_declared(no_noise, quiet, library, relation):
    rng = np.random.default_rng(11)
    n = 100_000
    light = pl.DataFrame({"u": [1, 2, 3], "x": [1.0, 2.0, 3.0], "g": ["a", "b", "c"]})

    def heavy(groups, value):
        g = pl.Series(np.array(groups)[rng.integers(len(groups), size=n)])
        return pl.DataFrame({"u": np.full(n, 9), "x": np.full(n, value), "g": g})

    before = light if relation == "add_remove" else pl.concat([light, heavy(["a", "b"], -1e9)])
    after = pl.concat([light, heavy(["c", "d", "e"], 1e9)])
    with dp.Session(eps=10**9, neighbors=relation, unit="u"):
        for grouped in (True, False):
            for question in ("count", "sum -3 10", "block n"):
                bounds = [bound_plan(as_kind(library, f), question, grouped) for f in (before, after)]
                (part,) = bounds[0].plan.parts
                a, b = (by_part(x)[0] for x in bounds)
                l1, l2, _ = norms(a - b)
                assert l1 <= part.l1
                assert l1 > 0 or (question == "count" and not grouped)  # R rows before, R rows after
                assert l2 <= part.l2_squared
                if relation == "replace_one" and grouped is False and question == "sum -3 10":
                    assert l1 == part.l1


# ---- scaled down, not sampled ----


def nearest(c, t, kept):
    """kept * t / c to the nearest integer, ties up."""
    return 0 if c == 0 else math.floor(Fraction(kept * t, c) + Fraction(1, 2))


def test_scaling_down_is_the_nearest_integer_to_the_share_also_of_huge_sums():
    rng = np.random.default_rng(5)
    rows = [
        (0, 0),
        (1, 0),
        (1, 2**30),
        (2**32, 2**62),
        (2**32 - 1, (2**32 - 1) * 2**30),
        (2**32 - 1, 2**61 + 1),
    ]
    rows += [(3, 1), (2, 1), (2, 3), (6, 3), (2**24, 2**54), (2**24 + 1, 2**54 + 3)]
    for _ in range(3000):
        c = int(rng.integers(1, 2 ** int(rng.integers(1, 33))))
        rows.append((c, int(rng.integers(0, c * 2 ** int(rng.integers(0, 31)) + 1))))
    table = pl.DataFrame(
        {"n": [c + 1 for c, _ in rows], "c0": [c for c, _ in rows], "t0_0": [t for _, t in rows]},
        schema={"n": pl.Int64, "c0": pl.Int64, "t0_0": pl.Int64},
    )
    for most in (1, 2, 3, 7, 1000, 2**20, 2**24):
        measures = (Measure((Axis("x", 0.0, 1.0, 1.0, 0, 1),), ((0,),)),)
        got = scaled(pl, table.lazy(), measures, most, floordiv).collect()
        assert got["n"].to_list() == [min(c + 1, most) for c, _ in rows]
        assert got["c0"].to_list() == [min(c, most) for c, _ in rows]
        assert got["t0_0"].to_list() == [nearest(c, t, min(c, most)) for c, t in rows]


def test_a_scaled_unit_adds_its_rows_times_k_to_a_block_and_never_a_negative_cell(no_noise, quiet, kind):
    """n' = min(n, R), c' = min(c, R): cells (T', c'K - T', (n' - c')K)."""
    rng = np.random.default_rng(6)
    for rows in ([5.0], [None], [10.0] * 9, [-3.0] * 9, [None] * 9, [None] * 4 + [1 / 3] * 3):
        for most in (1, 2, 3, 100):
            values = [rows[i] for i in rng.permutation(len(rows))]
            with dp.Session(eps=10**9, unit="u"):
                frame = frame_of(kind, [(1, v, "a", True) for v in values])
                bound = frame.dp.plan.agg(
                    n=dp.count(), m=dp.clip_mean("x", bounds=(-3, 10)), eps=1, max_rows=most
                )
                u, v, w = (x[0] for x in exact_integers(bound))
            k = bound.plan.parts[0].layout.grid.count
            present = sum(x is not None for x in values)
            assert min(u, v, w) >= 0
            assert u + v == min(present, most) * k
            assert u + v + w == min(len(values), most) * k
            assert 2**20 <= k <= 2**30


@pytest.mark.parametrize("grouped", [False, True])
def test_with_one_row_per_unit_the_share_of_true_is_the_average_of_the_units_shares(quiet, kind, grouped):
    """Within 1e-5 at eps = 1e6; a step of 1 would take a majority vote (.232 came out .0055)."""
    rng = np.random.default_rng(8)
    rows, shares = [], []
    for u in range(400):
        n = int(rng.integers(1, 30))
        late = rng.random(n) < 0.232
        shares.append(Fraction(int(late.sum()), n))
        rows += [(u, bool(x), "a") for x in late]
    frame = frame_of(kind, rows, {"u": pl.Int64, "late": pl.Boolean, "g": pl.String})
    want = float(sum(shares) / len(shares))
    with dp.Session(eps=10**7, unit="u"):
        if grouped:
            table = frame.dp.groupby("g", keys=["a", "b"], max_groups=2, max_rows_per_group=1).clip_mean(
                "late", eps=10**6
            )
            got = as_polars(table)["late_mean"][0]
        else:
            got = frame.dp.clip_mean("late", eps=10**6, max_rows=1)
    assert abs(float(got) - want) < 1e-5


def test_an_integer_column_is_scaled_on_a_fine_grid_and_answered_in_integers(no_noise, quiet, kind):
    """Unit 1 averages 4/3, unit 2 averages 5/2: 3.8333 with one row each, rounded once at the end."""
    rows = [(1, 1, "a"), (1, 1, "a"), (1, 2, "a"), (2, 2, "a"), (2, 3, "a")]
    frame = frame_of(kind, rows, {"u": pl.Int64, "x": pl.Int64, "g": pl.String})
    with dp.Session(eps=10**9, unit="u"):
        assert frame.dp.clip_sum("x", bounds=(0, 10), max_rows=1, eps=10**6) == 4
        assert isinstance(frame.dp.clip_sum("x", bounds=(0, 10), max_rows=1, eps=10**6), int)
        mean = frame.dp.clip_mean("x", bounds=(0, 10), max_rows=1, eps=10**6)
    assert float(mean) == pytest.approx((4 / 3 + 5 / 2) / 2, abs=1e-5)


@pytest.mark.parametrize("grouped", [False, True])
def test_every_library_order_and_chunking_gives_the_same_integers(no_noise, quiet, grouped):
    """Where max_groups does not bind nothing is chosen, so nothing can differ."""
    rng = np.random.default_rng(12)
    for _ in range(12):
        rows = [(None, 1.0, "a", True), (3, None, "b", True)]
        rows += many_units(rng, int(rng.integers(1, 60)), "abcd")
        got = []
        with dp.Session(eps=10**9, unit="u"):
            for kind in ("pandas", "polars", "lazy"):
                got.append(
                    [
                        x.tolist()
                        for x in by_part(bound_plan(frame_of(kind, rows), "two", grouped, 4, 2)).values()
                    ]
                )
            mixed = [rows[i] for i in rng.permutation(len(rows))]
            parts = [frame_of("polars", mixed[i::3]) for i in range(3)]
            chunked = pl.concat(parts, rechunk=False)
            got.append([x.tolist() for x in by_part(bound_plan(chunked, "two", grouped, 4, 2)).values()])
            got.append(
                [x.tolist() for x in by_part(bound_plan(chunked.to_pandas(), "two", grouped, 4, 2)).values()]
            )
        assert all(g == got[0] for g in got)


# ---- who is a unit ----


@pytest.mark.parametrize("grouped", [False, True])
def test_rows_without_a_unit_are_left_out(no_noise, quiet, kind, grouped):
    rows = [(1, 1.0, "a", True), (None, 1.0, "a", True), (None, 9.0, "b", True), (2, 1.0, "a", True)]
    with dp.Session(eps=10**9, unit="u"):
        bound = bound_plan(frame_of(kind, rows), "count", grouped)
        assert exact_integers(bound)[0] == ([2, 0, 0, 0] if grouped else [2])


def test_nan_none_and_na_are_no_unit(no_noise, quiet):
    frames = [
        pl.DataFrame({"u": [1.5, math.nan, None, 1.5]}),
        pd.DataFrame({"u": [1.5, math.nan, None, 1.5]}),
        pd.DataFrame({"u": pd.Series(["a", None, math.nan, pd.NA, pd.NaT, "a"], dtype=object)}),
        pd.DataFrame({"u": pd.array([1, None, 1], dtype="Int64")}),
        pd.DataFrame({"u": pd.to_datetime(["2026-01-01", None, "2026-01-01"])}),
        pl.DataFrame({"u": ["a", None, "a"]}, schema={"u": pl.Categorical}),
    ]
    with dp.Session(eps=10**9, unit="u"):
        for frame in frames:
            assert frame.dp.count(max_rows=1, eps=1) == 1


def test_groups_that_are_not_listed_take_no_slot(no_noise, quiet, kind):
    """max_groups=1 and one listed group among a thousand: the listed one always counts."""
    rows = [(u, 1.0, f"other {i}", True) for u in range(20) for i in range(50)]
    rows += [(u, 1.0, "b", True) for u in range(20)] + [(u, 1.0, None, True) for u in range(20)]
    frame = frame_of(kind, rows)
    with dp.Session(eps=10**9, unit="u"):
        verbs = frame.dp.plan.groupby("g", keys=["a", "b", "c"], max_groups=1, max_rows_per_group=1)
        for _ in range(5):
            assert exact_integers(verbs.count(eps=1))[0] == [0, 20, 0]


def test_a_null_key_that_is_listed_is_a_group_like_any_other(no_noise, quiet, kind):
    rows = [(u, 1.0, g, True) for u in range(10) for g in (None, "a")]
    frame = frame_of(kind, rows)
    with dp.Session(eps=10**9, unit="u"):
        verbs = frame.dp.plan.groupby("g", keys=["a", None, "c"], max_groups=2, max_rows_per_group=1)
        assert exact_integers(verbs.count(eps=1))[0] == [10, 10, 0]


def test_a_unit_may_be_several_columns(no_noise, quiet, kind):
    """A user's day: (1, x), (1, y), (2, x); a row that lacks either is left out."""
    rows = [(1, "x")] * 5 + [(1, "y")] * 3 + [(2, "x")] + [(2, None), (None, "x")]
    frame = frame_of(kind, rows, {"user": pl.Int64, "day": pl.String})
    with dp.Session(eps=10**9, unit=["user", "day"]):
        assert frame.dp.count(max_rows=1, eps=1) == 3
        assert frame.dp.count(max_rows=4, eps=1) == 4 + 3 + 1
    with dp.Session(eps=10**9, unit="user"):
        assert frame.dp.count(max_rows=1, eps=1) == 2


def test_columns_of_a_unit_are_not_glued_together(no_noise, quiet, kind):
    rows = [("a", "bc"), ("ab", "c"), ("abc", "")]
    frame = frame_of(kind, rows, {"p": pl.String, "q": pl.String})
    with dp.Session(eps=10**9, unit=["p", "q"]):
        assert frame.dp.count(max_rows=1, eps=1) == 3


DATES = [dt.date(2026, 1, 1), dt.date(2026, 1, 2)]
IDS = {  # two units with two rows each
    "int": pl.Series([1, 2]),
    "int128": pl.Series([1, 2**100], dtype=pl.Int128),
    "uint64": pl.Series([1, 2**64 - 1], dtype=pl.UInt64),
    "float": pl.Series([0.5, 1e300]),
    "float32": pl.Series([0.5, 1.5], dtype=pl.Float32),
    "string": pl.Series(["a", "ä" * 40]),
    "categorical": pl.Series(["a", "b"], dtype=pl.Categorical),
    "enum": pl.Series(["a", "b"], dtype=pl.Enum(["a", "b", "c"])),
    "date": pl.Series(DATES),
    "datetime": pl.Series([dt.datetime(2026, 1, 1, 3), dt.datetime(2026, 1, 2)]),
    "duration": pl.Series([dt.timedelta(1), dt.timedelta(2)]),
    "bool": pl.Series([True, False]),
    "decimal": pl.Series([Decimal("1.50"), Decimal("2.50")]),
}


@pytest.mark.parametrize("of", IDS)
def test_a_unit_may_have_any_plain_dtype(no_noise, quiet, kind, of):
    if kind == "pandas" and of == "int128":
        pytest.skip("pandas has no 128-bit integers")
    ids = IDS[of]
    missing = pl.Series([None], dtype=ids.dtype)
    frame = pl.DataFrame({"u": pl.concat([ids, ids, missing]), "g": list("aabbb")})
    frame = as_kind(kind, frame)
    with dp.Session(eps=10**9, unit="u"):
        assert frame.dp.count(max_rows=1, eps=1) == 2
        assert frame.dp.count(max_rows=2, eps=1) == 4
        verbs = frame.dp.plan.groupby("g", keys=list("abc"), max_groups=1, max_rows_per_group=1)
        assert sum(exact_integers(verbs.count(eps=1))[0]) == 2


def ids_counted(ids, **session):
    with dp.Session(eps=10**9, unit="u", **session):
        return int(pd.DataFrame({"u": ids}).dp.count(max_rows=1, eps=1))


def test_pandas_categories_of_any_kind_are_units(no_noise, quiet):
    assert ids_counted(pd.Categorical(["a", "b", None, "a"])) == 2
    assert ids_counted(pd.Categorical([1, 2, 1])) == 2
    assert ids_counted(pd.Categorical([0.5, None, 0.5])) == 1
    assert ids_counted(pd.Categorical([True, False, None, True])) == 2
    assert ids_counted(pd.Categorical(pd.period_range("2026-01", periods=3, freq="M"))) == 3


def test_a_missing_integer_category_does_not_stop_the_release(no_noise, quiet):
    """A cell must never decide whether a release happens."""
    assert ids_counted(pd.Categorical([1, 2, None, 1])) == 2


def test_categories_that_are_not_text_are_units_too(no_noise, quiet):
    """As in an object column: dates and mixed values identify people; nobody is dropped silently."""
    assert ids_counted(pd.Categorical([*DATES, None, DATES[0]])) == 2
    assert ids_counted(pd.Categorical([1, "a", 2, "a"])) == 3


def test_an_object_column_of_mixed_ids_separates_types_and_leaves_out_what_identifies_nobody(no_noise, quiet):
    """1, "1" and True are three; lists, dicts and arbitrary objects are nobody, and raise nothing."""
    ids = [
        1,
        "1",
        True,
        b"1",
        DATES[0],
        1,
        "1",
        [1],
        {"a": 1},
        {1},
        object(),
        None,
        math.nan,
        np.array([1, 2]),
    ]
    assert ids_counted(pd.Series(ids, dtype=object)) == 5


def test_equal_numbers_are_one_unit_whatever_library_made_them(no_noise, quiet):
    """A person counted as two is protected half."""
    assert ids_counted(pd.Series([5, np.int64(5), np.int32(5)], dtype=object)) == 1
    assert ids_counted(pd.Series([1.5, np.float64(1.5)], dtype=object)) == 1


def test_zero_and_minus_zero_are_one_unit(no_noise, quiet, kind):
    frame = as_kind(kind, pl.DataFrame({"u": [0.0, -0.0, 0.0], "g": list("abc")}))
    with dp.Session(eps=10**9, unit="u"):
        assert frame.dp.count(max_rows=1, eps=1) == 1
        verbs = frame.dp.plan.groupby("g", keys=list("abc"), max_groups=1, max_rows_per_group=1)
        assert sum(exact_integers(verbs.count(eps=1))[0]) == 1


def test_zero_and_minus_zero_in_an_object_column_are_one_unit(no_noise, quiet):
    assert ids_counted(pd.Series([0.0, -0.0], dtype=object)) == 1


def test_equal_decimals_are_one_unit_and_signalling_nans_stop_nothing(no_noise, quiet):
    assert ids_counted(pd.Series([Decimal("1.0"), Decimal("1.00")], dtype=object)) == 1
    assert ids_counted(pd.Series([Decimal(1), Decimal("sNaN"), Decimal("NaN")], dtype=object)) == 1


# ---- the choice is fair ----


@pytest.mark.parametrize("ids", ["int", "string"])
@pytest.mark.parametrize("listed", ["text", "numbers"])
def test_every_group_of_a_unit_is_chosen_equally_often(quiet, ids, listed):
    """Chi-square over 400 salts: 200 units, 8 groups, one chosen. False alarm 1e-9 per comparison.

    Also that two salts choose independently: agreement of consecutive salts is 1/8, binomial.
    """
    units, salts = 200, 400
    keys = [f"group {i}" for i in range(8)] if listed == "text" else list(range(8))
    u = [i if ids == "int" else f"user {i}" for i in range(units) for _ in keys]
    frame = pl.DataFrame({"u": u, "g": keys * units})
    with dp.Session(eps=10**6, unit="u"):
        plan = frame.dp.plan.groupby("g", keys=keys, max_groups=1).count(eps=1, max_rows_per_group=1).plan
    chosen = []
    totals = np.zeros(8)
    rng = np.random.default_rng(1)
    for salt in [*range(salts // 2), *rng.integers(0, 2**63, size=salts // 2).tolist()]:
        table = sorted(kept_pairs(frame, plan, int(salt)))
        assert len(table) == units
        picks = [keys.index(g) for _, g in table]
        totals += np.bincount(picks, minlength=8)
        chosen.append(picks)
    chosen = np.array(chosen)
    expected = units * salts / 8
    assert laws.chi2.sf(((totals - expected) ** 2 / expected).sum(), 7) > 1e-9
    # each unit on its own, all units together: a sum of 200 chi-squares
    each = np.array([np.bincount(chosen[:, i], minlength=8) for i in range(units)])
    assert laws.chi2.sf(((each - salts / 8) ** 2 / (salts / 8)).sum(), 7 * units) > 1e-9
    # and each salt over units
    over = np.array([np.bincount(row, minlength=8) for row in chosen])
    assert laws.chi2.sf(((over - units / 8) ** 2 / (units / 8)).sum(), 7 * salts) > 1e-9
    # joint choices of one unit under consecutive salts, and of neighbouring units under one salt: 64 cells
    for a, b in ((chosen[:-1:2], chosen[1::2]), (chosen[:, :-1:2], chosen[:, 1::2])):
        cells = np.bincount((a * 8 + b).ravel(), minlength=64)
        assert laws.chi2.sf(((cells - cells.sum() / 64) ** 2 / (cells.sum() / 64)).sum(), 63) > 1e-9


def test_pairs_of_groups_are_chosen_equally_often(quiet):
    """L0 = 2 of 5: ten pairs; chi-square over 300 salts and 100 units, false alarm 1e-9."""
    frame = pl.DataFrame({"u": [i for i in range(100) for _ in "abcde"], "g": list("abcde") * 100})
    with dp.Session(eps=10**6, unit="u"):
        plan = (
            frame.dp.plan.groupby("g", keys=list("abcde"), max_groups=2)
            .count(eps=1, max_rows_per_group=1)
            .plan
        )
    seen: dict[tuple[str, ...], int] = {}
    for salt in range(300):
        per_unit: dict[int, list[str]] = {}
        for u, g in kept_pairs(frame, plan, salt):
            per_unit.setdefault(u, []).append(g)
        for g in per_unit.values():
            key = tuple(sorted(g))
            seen[key] = seen.get(key, 0) + 1
    assert len(seen) == 10
    n = np.array(list(seen.values()))
    assert n.sum() == 30_000
    assert laws.chi2.sf(((n - 3000) ** 2 / 3000).sum(), 9) > 1e-9


def test_a_release_uses_one_salt_and_the_next_release_another(no_noise, quiet, kind):
    """All questions of a call see the same choice (also of a lazy frame); equal choices in 5 calls: 4**-240."""
    rows = [(u, 1.0, g, True) for u in range(60) for g in "abcd"]
    frame = frame_of(kind, rows)
    with dp.Session(eps=10**9, unit="u"):
        verbs = frame.dp.plan.groupby("g", keys=list("abcd"), max_groups=1, max_rows_per_group=1)
        seen = []
        for _ in range(5):
            n, c, s = exact_integers(
                verbs.agg(
                    n=dp.count(),
                    c=dp.count("x"),
                    s=dp.clip_sum("x", bounds=(0, 1)),
                    eps={"n": 1, "c": 1, "s": 1},
                )
            )
            assert n == c
            assert sum(n) == 60
            ratio = {v / m for v, m in zip(s, n) if m}
            assert len(ratio) == 1
            seen.append(n)
    assert len({tuple(n) for n in seen}) > 1


# ---- limits ----


@pytest.fixture
def clicks():
    return pl.DataFrame({"u": [1, 1, 2], "g": ["a", "b", "a"], "x": [1.0, 2.0, 3.0]})


def refused(s, call, *words):
    with pytest.raises(dp.InputError) as e:
        call()
    for w in words:
        assert w in str(e.value), str(e.value)
    assert s.report().height == 0


def test_a_missing_max_groups_says_what_would_drop_nothing(clicks):
    keys = [f"k{i}" for i in range(30)]
    with dp.Session(eps=1, unit="u") as s:
        refused(
            s,
            lambda: clicks.dp.groupby("g", keys=keys, max_rows_per_group=1).count(eps=0.1),
            "max_groups=3",
            "30 keys: max_groups=30 drops nothing, noise × 30, or × 5.5 with delta",
        )


def test_missing_row_limits_are_asked_for(clicks):
    with dp.Session(eps=1, delta=1e-6, unit="u") as s:
        refused(s, lambda: clicks.dp.count(eps=0.1), "max_rows=", "u")
        refused(
            s,
            lambda: clicks.dp.groupby("g", keys=["a", "b"], max_groups=1).count(eps=0.1),
            "max_rows_per_group=",
        )
        refused(
            s,
            lambda: clicks.dp.groupby("g", max_rows_per_group=1).count(eps=0.1, delta=1e-8),
            "max_groups=",
        )


def test_limits_that_do_not_fit_the_call_are_refused(clicks):
    with dp.Session(eps=1, unit="u") as s:
        grouped = clicks.dp.groupby("g", keys=["a", "b"], max_groups=1, max_rows_per_group=1)
        refused(s, lambda: grouped.count(eps=0.1, max_rows=1), "max_rows", "max_rows_per_group")
        refused(s, lambda: clicks.dp.count(eps=0.1, max_rows=1, max_groups=1), "max_groups", "max_rows")
        refused(s, lambda: clicks.dp.count(eps=0.1, max_rows_per_group=1), "max_rows_per_group", "max_rows")


def test_limits_without_a_unit_are_refused(clicks):
    with dp.Session(eps=1) as s:
        refused(s, lambda: clicks.dp.count(eps=0.1, max_rows=1), "unit=")
        refused(s, lambda: clicks.dp.groupby("g", keys=["a"], max_groups=1).count(eps=0.1), "unit=")
    with pytest.raises(dp.InputError, match="unit"):
        dp.Session(eps=1, max_groups=3)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "3", 2**24 + 1, math.nan])
def test_a_limit_is_a_whole_number_of_at_least_one(clicks, wrong):
    with dp.Session(eps=1, unit="u") as s:
        refused(s, lambda: clicks.dp.count(eps=0.1, max_rows=wrong), "max_rows")
        refused(
            s,
            lambda: clicks.dp.groupby("g", keys=["a", "b"], max_groups=wrong, max_rows_per_group=1).count(
                eps=0.1
            ),
            "max_groups",
        )


@pytest.mark.parametrize("wrong", [0, False])
def test_a_wrong_limit_does_not_become_the_sessions_default(clicks, wrong):
    with dp.Session(eps=1, unit="u", max_groups=2, max_rows_per_group=1, max_rows=5) as s:
        refused(s, lambda: clicks.dp.count(eps=0.1, max_rows=wrong), "max_rows")
        grouped = clicks.dp.groupby("g", keys=["a", "b", "c"], max_groups=wrong)
        refused(s, lambda: grouped.count(eps=0.1), "max_groups")


def test_the_session_holds_defaults_and_the_call_overrides_them(quiet, clicks):
    with dp.Session(eps=100, unit="u", max_groups=2, max_rows_per_group=3, max_rows=4):
        assert clicks.dp.plan.count(eps=1).l1 == 4
        assert clicks.dp.plan.count(eps=1, max_rows=7).l1 == 7
        grouped = clicks.dp.plan.groupby("g", keys=["a", "b", "c"])
        assert grouped.count(eps=1).l1 == 6
        assert grouped.count(eps=1, max_groups=1).l1 == 3
        assert grouped.count(eps=1, max_rows_per_group=1).l1 == 2


def test_more_groups_than_keys_cost_only_the_keys(quiet, clicks):
    with dp.Session(eps=100, unit="u", max_rows_per_group=3):
        assert clicks.dp.plan.groupby("g", keys=["a", "b"], max_groups=50).count(eps=1).l1 == 6
        assert clicks.dp.plan.groupby("g", keys=["a"]).count(eps=1).l1 == 3


def test_plan_and_facts_print_what_of_a_unit_counts(quiet, clicks):
    with dp.Session(eps=100, unit="u") as s:
        grouped = clicks.dp.plan.groupby("g", keys=list("abcd"), max_groups=3, max_rows_per_group=10)
        text = "one u: at most 3 groups × 10 rows"
        assert text in str(grouped.count(eps=1).explain())
        grouped.count(eps=1).release()
        assert s.last.facts["bounding"] == text
        assert s.last.facts["unit"] == "u"


@each_relation
def test_a_mean_with_a_public_n_moves_by_the_rows_of_a_unit_times_the_span(clicks, relation):
    """R*D/(2n), replace_one R*D/n: 4 rows, D = 60, n = 30."""
    with dp.Session(eps=100, unit="u", neighbors=relation):
        plan = clicks.dp.plan.clip_mean("x", bounds=(-20, 40), n=30, eps=1, max_rows=4)
    assert plan.l1 == plan.l2 == pytest.approx(4.0 if relation == "add_remove" else 8.0)


def test_gaussian_noise_grows_with_the_root_of_max_groups(quiet, clicks):
    """Case 38: m groups: noise × m (pure), × sqrt m (Gaussian); the charge stays eps."""
    with dp.Session(eps=100, delta=1e-3, unit="u", max_rows_per_group=1):
        grouped = clicks.dp.plan.groupby("g", keys=[f"k{i}" for i in range(40)])
        for mechanism, growth in (("laplace", 16), ("gaussian", 4)):
            one, many = (grouped.count(eps=1, delta=1e-6, mechanism=mechanism, max_groups=m) for m in (1, 16))
            assert many.scale / one.scale == pytest.approx(growth)
            assert many.cost.eps == one.cost.eps == 1


@pytest.mark.skipif(pl.__version__ < "2.1", reason="before Polars 2.1 its two engines hash differently")
@pytest.mark.usefixtures("no_noise", "quiet")
def test_where_max_groups_binds_every_kind_of_frame_chooses_the_same_groups(monkeypatch):
    """One salt, one choice: pandas, Polars eager and lazy, whatever the order of the rows.

    (Keys of an object column are looked up, and hashed by their place among the listed keys.)
    """
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "u": rng.integers(0, 60, 2_000),
            "g": rng.integers(0, 9, 2_000),
            "x": rng.normal(size=2_000),
        }
    )
    monkeypatch.setattr("dpframe.pipeline.words", lambda n: np.full(n, 2**63 + 12345, dtype=np.uint64))
    seen = []
    with dp.Session(eps=1000, unit="u"):
        for df in (frame, frame.lazy(), frame.to_pandas(), frame.sample(fraction=1, shuffle=True, seed=1)):
            groups = df.dp.plan.groupby("g", keys=range(9), max_groups=2, max_rows_per_group=4)
            bound = groups.dp_agg(n=dp.count(), x=dp.clip_mean("x", B=3), eps=1)
            seen.append([p.tolist() for p in bound.release()._noisy])
    assert seen[0] == seen[1] == seen[2] == seen[3]
    assert sum(seen[0][0]) > 0


@pytest.mark.parametrize("convert", [pl.DataFrame, pl.DataFrame.lazy, pl.DataFrame.to_pandas])
def test_which_groups_were_found_decides_no_choice(monkeypatch, quiet, convert):
    """One hash for all: a unit of two groups has none, also when others make only one of them known."""
    from dpframe import pipeline

    monkeypatch.setattr(
        "dpframe.engine.polars_query.rank_key", lambda unit, by, salt: pl.struct(*unit, *by).hash(7) % 1
    )

    def counted(units, groups):
        frame = pl.DataFrame({"u": units, "g": groups, "x": [1.0] * len(units)})
        with dp.Session(eps=9, delta=0.5, unit="u"):
            d = convert(frame).dp.plan.groupby("g", max_groups=1, max_rows_per_group=1)
            bound = d.histogram("x", edges=[0, 2], eps=1, delta=0.1)
        exact = pipeline._passes(bound.plan, bound._source, 0)
        names = exact.found["k0"].to_list()
        of_groups = {names[g]: 0 for g in range(len(names))}
        for g, rows in zip(exact.tallies[0].groups, exact.tallies[0].rows):
            of_groups[names[g]] += int(rows)
        return of_groups

    assert counted([1, 1, 2], ["a", "b", "a"]) == {"a": 1}
    assert counted([1, 1, 2, 3], ["a", "b", "a", "b"]) == {"a": 1, "b": 1}


@pytest.mark.parametrize("ask", ["sums", "bins"])
def test_groups_of_equal_hash_are_chosen_alike_in_every_order(no_noise, quiet, monkeypatch, ask):
    """With a hash of one bit nearly all tie: at most max_groups groups remain, and rows of others decide nothing."""
    monkeypatch.setattr(
        "dpframe.engine.polars_query.rank_key", lambda unit, by, salt: pl.struct(*unit, *by).hash(7) % 2
    )
    keys = list("abcdefgh")
    mine = pl.DataFrame({"u": [1] * 8, "g": keys, "x": [1.0] * 8})
    others = pl.DataFrame({"u": [2, 3, 3, 4], "g": ["h", "a", "b", "c"], "x": [1.0] * 4})

    def counts(frame):
        d = frame.dp.plan.groupby("g", keys=keys)
        limits = {"max_groups": 4, "max_rows_per_group": 1, "eps": 1}
        with dp.Session(eps=100, unit="u"):
            bound = d.count(**limits) if ask == "sums" else d.histogram("x", edges=[0, 2], **limits)
            return np.array(exact_integers(bound)).reshape(-1)

    seen = set()
    for seed in range(12):
        shuffled = pl.concat([mine, others]).sample(fraction=1, shuffle=True, seed=seed)
        of_me = counts(shuffled) - counts(others)
        assert of_me.min() >= 0
        assert of_me.sum() <= 4
        seen.add(of_me.tobytes())
    assert len(seen) == 1
