"""Which groups of a unit count: nobody else is moved for any salt, every choice is equally likely, everywhere the same."""

from __future__ import annotations

import itertools

import chance
import numpy as np
import pandas as pd
import polars as pl
import pytest
from many_rows import bound_plan, by_part, counts_at, frame_of, many_units, norms

import dpframe as dp
from conftest import as_kind, exact_integers
from dpframe.engine.opening import as_source

RELATIONS = ("add_remove", "replace_one")
SALTS = [0, 1, 2, 3, 17, 2**31, 2**32 + 1, 2**63, 2**64 - 1, 0x9E3779B97F4A7C15]
each_relation = pytest.mark.parametrize("relation", RELATIONS)


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


# ---- the choice is fair ----


@pytest.mark.parametrize("ids", ["int", "string"])
@pytest.mark.parametrize("listed", ["text", "numbers"])
def test_every_group_of_a_unit_is_chosen_equally_often(quiet, ids, listed):
    """400 salts, 200 units, 8 groups, one chosen: by the unit, by the salt, and by two units or two salts together.

    Salts and ids are fixed, so a hash passes always or never; one drawn at random fails but for 1e-9. Planted: groups
    are ranked over all units.
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
    even = np.ones(8)
    assert chance.fits(totals, even)
    assert all(chance.fits(np.bincount(x, minlength=8), even, chance.ALARM / units) for x in chosen.T)
    assert all(chance.fits(np.bincount(x, minlength=8), even, chance.ALARM / salts) for x in chosen)
    # joint choices of one unit under consecutive salts, and of neighbouring units under one salt: 64 cells
    for a, b in ((chosen[:-1:2], chosen[1::2]), (chosen[:, :-1:2], chosen[:, 1::2])):
        cells = np.bincount((a * 8 + b).ravel(), minlength=64)
        assert chance.fits(cells, np.ones(64))


def test_pairs_of_groups_are_chosen_equally_often(quiet):
    """L0 = 2 of 5: ten pairs over 300 salts and 100 units (false alarm: 1e-10 of a hash drawn at random)."""
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
    assert chance.fits(n, np.ones(10))


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
