"""``max_rows=`` with groups: how far one unit moves exact integers, by trying every unit of a few rows.

Units have up to four rows of a small alphabet, in listed and unlisted groups. What each unit counts for comes from the
engine, all units in one frame; a unit that appears, or becomes any other, moves what is released by the difference.
The largest that occurs is at most what the plan declares, and reaches it where the declaration is tight.
"""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from databases import make_duckdb, make_ibis, make_sqlframe

import dpframe as dp
from dpframe.frames.contract import ROW_STEPS, Ask, Bounding
from dpframe.frames.keys import key_table
from dpframe.pipeline import _exact
from dpframe.testing.shared_out import shared_out

GROUPS = ["a", "b", "c", "d"]
pytestmark = pytest.mark.usefixtures("quiet")


def units(values, most=4):
    """Every multiset of up to so many rows (group, x); "z" is not listed."""
    rows = [*itertools.product(GROUPS, values), ("z", values[-1])]
    return [u for n in range(most + 1) for u in itertools.combinations_with_replacement(rows, n)]


def frame_of(histories):
    lines = [(i, i, g, x) for i, rows in enumerate(histories) for g, x in rows]
    schema = {"h": pl.Int64, "u": pl.Int64, "g": pl.String, "x": pl.Float64}
    return pl.DataFrame(lines, schema=schema, orient="row")


def integers(plan, histories):
    """By part the integers of every unit alone: units × coordinates of all groups."""
    source = dp.frame(frame_of(histories))._source
    by = (source.column("h"), source.column("g"))
    keys = key_table(("h", "g"), by, {"h": range(len(histories)), "g": GROUPS})
    b = plan.bounding
    ask = Ask(plan.measures, plan.tallies, by, keys, Bounding(b.unit, b.rows, None, b.total), 5)
    exact = source.aggregate(ask)
    if plan.tallies:
        exact = type(exact)(exact.rows, exact.present, exact.sums, exact.units, None, source.tally(ask))
    out = {}
    for p in plan.pieces:
        each = p.exact(exact).reshape(len(histories), -1)
        out.setdefault(p.part, []).append(each)
    return {part: np.concatenate(x, axis=1) for part, x in out.items()}


def furthest(vectors, relation):
    """(L1, L2 squared); squares are beyond 64 bits, and exact to 52."""
    l1, l2 = 0, 0.0
    for v in vectors if relation == "replace_one" else vectors[:1]:
        moved = np.abs(vectors - v)
        l1, l2 = (
            max(l1, int(moved.sum(1).max())),
            max(l2, float((moved.astype(np.float64) ** 2).sum(1).max())),
        )
    return l1, l2


QUESTIONS = {
    "count": ([1.0], lambda g, o: g.count(eps=1, **o)),
    "count of a column": ([1.0, None], lambda g, o: g.count("x", eps=1, **o)),
    "both": ([1.0, None], lambda g, o: g.agg(dp.count("x"), dp.count(), eps=1, **o)),
    "sum": ([-2.0, 5.0], lambda g, o: g.clip_sum("x", bounds=(-2, 5), eps=1, **o)),
    "sum of one sign": ([2.0, 5.0], lambda g, o: g.clip_sum("x", bounds=(2, 5), eps=1, **o)),
    "sum around 0": ([-5.0, 5.0], lambda g, o: g.clip_sum("x", bounds=(-5, 5), eps=1, **o)),
    "mean": ([0.0, 1 / 3, 1.0], lambda g, o: g.clip_mean("x", bounds=(0, 1), eps=1, **o)),
    "mean and rows": (
        [0.0, None, 1.0],
        lambda g, o: g.agg(dp.clip_mean("x", bounds=(0, 1)), dp.count(), eps=1, **o),
    ),
    "variance": ([0.0, 0.3, 1.0], lambda g, o: g.clip_var("x", bounds=(0, 1), eps=1, **o)),
    "vectors": ([-1.0, 1.0], lambda g, o: g.vector_sum(["x"], norm=1, eps=1, **o)),
    "histogram": ([0.0, 2.0], lambda g, o: g.histogram("x", edges=[0, 1, 3], eps=1, **o)),
    "different values": ([0.0, 1.0, 2.0], lambda g, o: g.n_unique("x", eps=1, **o)),
}
LOOSE = ("vectors", "different values")  # triangle inequality; a unit's values need not be others'


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("limits", [(3, None), (3, 2), (2, 1), (1, None)], ids=str)
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_unit_moves_integers_by_what_is_declared(question, limits, relation):
    values, ask = QUESTIONS[question]
    total, each = limits
    options = {"max_rows": total} | ({} if each is None else {"max_rows_per_group": each})
    histories = units(values, 4 if len(values) < 3 else 3)
    with dp.Session(eps=100, unit="u", neighbors=relation):
        plan = ask(dp.frame(frame_of(histories)).plan.groupby("g", keys=GROUPS), options).plan
    assert plan.bounding.total == total
    for part, vectors in integers(plan, histories).items():
        l1, l2 = furthest(vectors, relation)
        declared = plan.parts[part]
        assert l1 <= declared.l1
        assert l2 <= declared.l2_squared * (1 + 1e-12)
        if question not in LOOSE or relation == "add_remove":
            assert l1 >= declared.l1 * (1 - 1e-3)
            assert l2 >= declared.l2_squared * (1 - 1e-3)


def test_where_the_rest_of_one_unit_meets_a_full_group_of_another_a_sum_moves_furthest():
    """2 rows at 5 in a, 1 at -2 in b, against 1 at -2 in a, 2 at 5 in b: 12 in either group. max(√2·5, 7)·√5 is less."""
    histories = [(), (("a", 5.0),) * 2 + (("b", -2.0),), (("a", -2.0),) + (("b", 5.0),) * 2]
    with dp.Session(eps=100, unit="u", neighbors="replace_one"):
        bound = dp.frame(frame_of(histories)).plan.groupby("g", keys=GROUPS)
        plan = bound.clip_sum("x", bounds=(-2, 5), max_rows=3, max_rows_per_group=2, eps=1).plan
    _, l2 = furthest(integers(plan, histories)[0], "replace_one")
    assert l2 == pytest.approx(plan.parts[0].l2_squared)
    assert plan.l2**2 == pytest.approx(2 * 12**2)
    assert plan.l2**2 > max(2 * 5**2, 7**2) * (2**2 + 1)


@pytest.mark.parametrize(
    ("total", "each", "groups", "most", "squares"),
    [
        (9, 9, 8, 9, 81),
        (9, 4, 8, 9, 4 * 4 * 2 + 1),
        (9, 4, 2, 8, 32),
        (5, 1, 8, 5, 5),
        (7, 3, 3, 7, 9 + 9 + 1),
    ],
)
def test_sensitivities_are_those_of_the_rows_that_count(total, each, groups, most, squares):
    frame = frame_of(units([1.0], 1))
    with dp.Session(eps=100, unit="u"):
        bound = dp.frame(frame).plan.groupby("g", keys=list(map(str, range(8))), max_groups=groups)
        plan = bound.count(max_rows=total, max_rows_per_group=each, eps=1).plan
        assert plan.l1 == most
        assert plan.l2 == pytest.approx(squares**0.5)
        gaussian = bound.count(max_rows=total, max_rows_per_group=each, rho=0.5, mechanism="gaussian").plan
        assert gaussian.scale >= (squares / (2 * 0.5)) ** 0.5 * (1 - 1e-3)


# ---- what counts ----


def shops(seed, lines=400):
    rng = np.random.default_rng(seed)
    many = rng.zipf(1.5, lines).clip(1, 40)
    u = np.repeat(np.arange(lines), many)[:3000]
    x = rng.choice([-1.0, 0.25, 1 / 3, 3.0, 7.5], len(u))
    frame = pl.DataFrame({"u": u, "g": rng.choice([*"abcdefgh", "z"], len(u)), "x": x})
    return frame.with_columns(pl.when(pl.int_range(pl.len()) % 7 > 0).then("x"))


def ask_of(bound):
    return bound.plan.ask(5)


@pytest.mark.parametrize(
    "make",
    [
        lambda f: f.lazy(),
        lambda f: f.to_pandas(),
        lambda f: f.to_arrow(),
        make_duckdb(),
        make_ibis(),
        make_sqlframe(),
    ],
    ids=["lazy", "pandas", "arrow", "duckdb", "ibis", "sqlframe"],
)
def test_every_engine_shares_units_out_as_whole_numbers_do(make):
    frame = shops(1)
    for keys in (list("abcdefgh"), ["a", "b", "nobody"], None):
        for limits in ({"max_rows": 3}, {"max_rows": 5, "max_rows_per_group": 2}):
            with dp.Session(eps=10**6, delta=0.5, unit="u"):
                found = {} if keys else {"max_groups": 50, "delta": 1e-3}
                bound, there = (
                    dp.frame(f)
                    .plan.groupby("g", keys=keys)
                    .agg(dp.count(), dp.count("x"), dp.clip_var("x", bounds=(0, 5)), eps=1, **found, **limits)
                    for f in (frame, make(frame))
                )
                expected = shared_out(dp.frame(frame)._source, ask_of(bound))
                got = _exact(there.plan, dp.frame(make(frame))._source, 5)
            assert expected.rows.sum() <= limits["max_rows"] * ROW_STEPS * frame["u"].n_unique()
            assert np.array_equal(got.rows, expected.rows)
            assert all(map(np.array_equal, got.present, expected.present))
            assert all(map(np.array_equal, itertools.chain(*got.sums), itertools.chain(*expected.sums)))


def test_rows_of_unlisted_groups_use_up_nothing():
    mine = [("a", 1.0)] * 3
    for other in (0, 50):
        frame = frame_of([mine + [("z", 1.0)] * other])
        with dp.Session(eps=10**9, unit="u"):
            r = frame.dp.groupby("g", keys=GROUPS).count(max_rows=3, eps=10**8)
        assert r["count"].to_list() == [3, 0, 0, 0]


def test_a_unit_with_more_rows_than_can_be_shared_out_counts_as_nothing():
    from operator import floordiv

    from dpframe.engine.scaling import MOST_ROWS, scaled
    from dpframe.frames.contract import Axis, Measure

    pairs = pl.DataFrame(
        {"u": [1, 1, 2, 3], "n": [MOST_ROWS, 5, 7, MOST_ROWS - 1], "c0": [9, 5, 7, MOST_ROWS - 1]}
    )
    pairs = pairs.with_columns(t0_0=pl.col("c0") * 2**20)
    measures = (Measure((Axis("x", 0.0, 1.0, 1.0, 0, 2**20),), ((0,),)),)
    for rows in (2**18, 4):
        bounding = Bounding(("u",), rows, 9, 2**18)
        got = scaled(pl, pairs.lazy(), measures, ["u"], bounding, floordiv).collect()
        assert got["n"].to_list()[0] == got["t0_0"].to_list()[0] == 0
        assert got["n"].to_list()[2] == min(7, rows) * ROW_STEPS
        assert got["n"].to_list()[3] == rows * ROW_STEPS
        assert got["t0_0"].to_list()[3] == rows * ROW_STEPS * 2**20


def test_pieces_of_rows_add_up_to_the_limit_and_not_beyond():
    """16 groups of one row at 9: rounded up, or each by itself, count("x") was 16."""
    keys = list(map(str, range(16)))
    frame = pl.DataFrame({"u": [1] * 16, "g": keys, "x": [1.0] * 16})
    with dp.Session(eps=10**12, unit="u"):
        plan = frame.dp.plan.groupby("g", keys=keys).count("x", max_rows=9, eps=1)
        (present,) = _exact(plan.plan, dp.frame(frame)._source, 1).present
    assert 9 * ROW_STEPS - 16 <= present.sum() <= 9 * ROW_STEPS


# ---- the household table ----


def test_a_table_of_households_has_the_noise_of_nine_rows():
    """Its largest household has nine persons: nothing is cut, so nothing is biased."""
    rng = np.random.default_rng(3)
    persons = rng.integers(1, 10, 3000)
    u = np.repeat(np.arange(3000), persons)
    region = np.repeat(rng.choice(list("NESW"), 3000), persons)
    age = rng.choice(["0-17", "18-64", "65+"], len(u))
    frame = pl.DataFrame({"u": u, "region": region, "age": age})
    keys = {"region": list("NESW"), "age": ["0-17", "18-64", "65+"]}
    with dp.Session(eps=10**9, unit="u"):
        bound = frame.dp.plan.groupby("region", "age", keys=keys)
        count, before = (
            bound.count(max_rows=9, eps=0.5),
            bound.count(max_groups=8, max_rows_per_group=9, eps=0.5),
        )
        one = frame.dp.plan.count(max_rows=9, eps=0.5)
        exact = frame.dp.groupby("region", "age", keys=keys).count(max_rows=9, eps=10**7)
    error, least, most = (b.plan.error() for b in (count, one, before))
    assert error <= 1.02 * least
    assert most > 7.5 * error
    truth = frame.group_by("region", "age").len()
    both = exact.join(truth, on=["region", "age"])
    assert both.height == 12
    assert (both["count"] - both["len"]).abs().max() == 0


# ---- choices ----


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("verb", ["median", "q90", "top_k", "select", "histogram"])
def test_choices_in_all_groups_together_lose_no_more_than_is_paid(verb, relation):
    asks = {
        "median": lambda g: g.median("x", candidates=[0, 1, 2, 3], eps=1),
        "q90": lambda g: g.quantile("x", 0.9, candidates=[0, 1, 2, 3], eps=1),
        "top_k": lambda g: g.top_k("k", 1, candidates=["p", "q"], eps=1),
        "select": lambda g: g.select(["x", "y"], bounds=(-1, 3), eps=1),
        "histogram": lambda g: g.histogram("x", edges=[0, 1, 2, 3], eps=1),
    }
    rng = np.random.default_rng(7)
    for _ in range(25):
        sizes = rng.integers(1, 7, 3)
        u = np.repeat(np.arange(3), sizes)
        n = len(u)
        frame = pl.DataFrame(
            {
                "u": u,
                "g": rng.choice([*GROUPS, "z"], n),
                "x": rng.integers(0, 4, n) * 1.0,
                "y": rng.integers(-1, 4, n) * 1.0,
                "k": rng.choice(["p", "q"], n),
            }
        )
        other = frame.filter(pl.col("u") < 2)
        if relation == "replace_one":
            new = frame.filter(pl.col("u") == 0).with_columns(u=pl.lit(2), g=pl.lit("b"), x=3 - pl.col("x"))
            other = pl.concat([other, new.cast(frame.schema)])
        found = dp.audit.grey_box(
            lambda d: asks[verb](d.groupby("g", keys=GROUPS)),
            frame,
            other,
            unit="u",
            neighbors=relation,
            max_rows=3,
            max_rows_per_group=2,
        )
        assert found.ok, found.failures


def test_a_grouped_quantile_has_all_of_eps_for_the_rows_of_a_unit():
    frame = frame_of(units([1.0], 2))
    with dp.Session(eps=10, unit="u"):
        bound = dp.frame(frame).plan.groupby("g", keys=list(map(str, range(20))))
        plan = bound.median("x", candidates=[0, 1, 2], max_rows=4, max_rows_per_group=2, eps=1).plan
        alone = dp.frame(frame).plan.median("x", candidates=[0, 1, 2], max_rows=4, eps=1).plan
    assert plan.pieces[0].noise.scale == alone.pieces[0].noise.scale


# ---- limits ----


def test_limits_are_found_where_they_are_looked_for():
    frame = frame_of(units([1.0], 2))
    with dp.Session(eps=10, delta=0.1, unit="u", max_rows=9) as s:
        grouped = dp.frame(frame).plan.groupby("g", keys=GROUPS)
        plan = grouped.count(eps=1).plan
        assert plan.l1 == 9
        text = str(grouped.count(eps=1).explain())
        assert "at most 9 rows in all groups together" in text
        assert "noise for 9 rows; without max_rows for 36 (4 × 9)" in text
        assert grouped.count(eps=1, max_groups=1).plan.bounding.total is None
        with pytest.raises(dp.InputError, match="In how many groups"):
            grouped.agg(dp.count(), dp.count_units(), eps=1)
        with pytest.raises(dp.InputError, match="In how many groups"):
            dp.frame(frame).plan.groupby("g").count(eps=1, delta=1e-3)
        with pytest.raises(dp.InputError, match="at most 262,144"):
            grouped.count(eps=1, max_rows=2**18 + 1)
        assert s.spent == 0
    with dp.Session(eps=10, unit="u"):
        grouped = dp.frame(frame).plan.groupby("g", keys=GROUPS)
        with pytest.raises(dp.InputError, match="max_rows=9"):
            grouped.count(eps=1, max_rows_per_group=9)
        with pytest.raises(dp.InputError, match="max_rows="):
            grouped.count(eps=1)
        assert grouped.count(eps=1, max_rows=9).plan != grouped.count(eps=1, max_rows=8).plan


def test_a_lone_unit_betrays_no_key():
    """c = min(R, T): what one unit adds to the thresholded integer of one key."""
    with dp.Session(eps=10, delta=0.1, unit="u"):
        bound = dp.frame(frame_of(units([1.0], 2))).plan.groupby("g", max_groups=3)
        limits = {"max_rows": 4, "max_rows_per_group": 3, "threshold": "rows"}
        plan = bound.count(eps=1, delta=1e-3, **limits).plan
    noise = plan.pieces[plan.threshold.coordinates[0]].noise
    most = 3 * ROW_STEPS
    assert plan.threshold.unit_steps == ROW_STEPS
    assert noise.upper_tail(plan.threshold.least - most) <= 1 - (1 - 1e-3) ** (1 / 3)
    assert noise.upper_tail(plan.threshold.least - most - 1) > 1 - (1 - 1e-3) ** (1 / 3)
