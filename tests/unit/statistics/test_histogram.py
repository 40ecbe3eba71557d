"""Histograms, value counts, numbers of different values, bounds: exact integers, privacy of units, shapes.

That noise is large enough for one row is shown in test_sensitivity; here units, and what comes back.
Statistical checks have a false-alarm rate of at most 1e-9 each.
"""

from __future__ import annotations

import itertools
import math
import pickle
from decimal import Decimal

import chance
import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from conftest import as_kind, as_polars, exact_integers

RELATIONS = ("add_remove", "replace_one")
NAN, INF = math.nan, math.inf
ROOT2 = math.sqrt(2)


@pytest.fixture(autouse=True)
def _quiet(quiet):
    """No test here is about notices."""


# ---- histograms ----

CELLS = [-INF, -1.0, -0.0, 0.5, 1.0, 9.999999, 10.0, 10.000001, INF, NAN, None]


def test_bins_are_closed_below_and_the_last_one_above(kind):
    frame = as_kind(kind, pl.DataFrame({"x": CELLS}))
    with dp.Session(eps=10**9):
        h = as_polars(frame.dp.histogram("x", edges=[0, 1, 10], eps=10**6))
    assert h["bin"].to_list() == ["< 0", "[0, 1)", "[1, 10]", "> 10", "missing"]
    assert h["lower"].to_list()[:4] == [-INF, 0, 1, 10]
    assert h["upper"].to_list()[:4] == [0, 1, 10, INF]
    assert h["lower"].fill_nan(None).null_count() == h["upper"].fill_nan(None).null_count() == 1
    assert h["count"].to_list() == [2, 2, 3, 2, 2]
    assert h["count"].dtype == pl.Int64


@pytest.mark.parametrize("n", [0, 1, 2, 1000, 100_001])
@pytest.mark.parametrize(
    "dtype", [pl.Int8, pl.UInt64, pl.Int128, pl.Float32, pl.Float64, pl.Decimal(10, 1), pl.Boolean], ids=str
)
def test_at_a_huge_eps_histograms_are_the_plain_ones(kind, dtype, n):
    cells = {
        pl.UInt64: [None, 0, 1, 5, 2**64 - 1],
        pl.Int128: [None, -(2**100), 0, 3, 2**100],
        pl.Boolean: [None, True, False],
        pl.Decimal(10, 1): [None, Decimal("-0.1"), Decimal("3.0"), Decimal("99.5")],
    }.get(dtype, [None, -7, 0, 3, 100])
    base = pl.Series("x", cells, dtype=dtype)
    table = pl.DataFrame([base.gather(np.random.default_rng(n).integers(0, len(base), n))])
    if kind == "pandas" and dtype == pl.Int128:
        pytest.skip("Arrow has no such type")
    frame = as_kind(kind, table)
    if kind == "pandas" and dtype in (pl.Boolean, pl.Decimal(10, 1)):
        frame = pd.DataFrame({"x": pd.Series(pd.arrays.ArrowExtensionArray(table["x"].to_arrow()))})
    edges = [0, 1, 3, 50]
    with dp.Session(eps=10**9):
        h = as_polars(frame.dp.histogram("x", edges=edges, eps=10**6))
        alone = exact_of(frame, edges)
    x = [v for v in table["x"].to_list() if v is not None]
    plain = [
        sum(v < 0 for v in x),
        sum(0 <= v < 1 for v in x),
        sum(1 <= v < 3 for v in x),
        sum(3 <= v <= 50 for v in x),
        sum(v > 50 for v in x),
        n - len(x),
    ]
    assert h["count"].to_list() == alone == plain


def exact_of(frame, edges):
    return as_polars(frame.dp.agg(dp.histogram("x", edges=edges).alias("n"), eps=10**6))["n"].to_list()


def test_histograms_of_groups_are_long(kind):
    table = pl.DataFrame({"g": ["a", "b", "a", None, "z"], "x": [1.0, 2.0, NAN, 4.0, 5.0]})
    frame = as_kind(kind, table)
    with dp.Session(eps=10**9) as s:
        h = as_polars(
            frame.dp.groupby("g", keys=["b", None, "a", "absent"]).histogram("x", edges=[0, 3], eps=10**6)
        )
        assert h.columns == ["g", "bin", "lower", "upper", "count"]
        assert h["g"].to_list() == [k for k in ("b", None, "a", "absent") for _ in range(4)]
        assert h["count"].to_list() == [0, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0]
        low = as_polars(s.last.interval())
        assert low.columns[-2:] == ["count_low", "count_high"]
        assert low.height == 16


def test_histograms_of_found_groups(kind):
    table = pl.DataFrame({"g": ["a"] * 300 + ["b"] * 200 + ["rare"], "x": [1.0] * 501})
    with dp.Session(eps=100, delta=0.1):
        h = as_polars(as_kind(kind, table).dp.groupby("g").histogram("x", edges=[0, 3], eps=20, delta=1e-12))
    assert h["g"].to_list() == ["a"] * 4 + ["b"] * 4
    assert np.abs(h["count"].to_numpy() - [0, 300, 0, 0, 0, 200, 0, 0]).max() <= 20


@pytest.mark.parametrize("grouped", [False, True])
def test_histogram_files_and_pickles(tmp_path, kind, grouped):
    frame = as_kind(kind, pl.DataFrame({"g": ["a"], "x": [123456.75]}))
    with dp.Session(eps=10**9) as s:
        asked = frame.dp.groupby("g", keys=["a", "b"]) if grouped else frame.dp
        asked.histogram("x", edges=[0, 1], eps=1)
        s.last.write(tmp_path / "h.csv")
        s.last.write(tmp_path / "h.parquet")
    assert pl.read_parquet(tmp_path / "h.parquet").height == (8 if grouped else 4)
    assert b"123456" not in pickle.dumps(s.last)
    assert s.last.facts["question"].endswith("histogram('x', edges=[0, 1])" + (")" if grouped else ""))


# ---- units ----

RARE = [(-1.0, "a"), (5.0, "a"), (None, "b")]


def of_units(most):
    for size in range(most + 1):
        yield from itertools.combinations_with_replacement(RARE, size)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("grouped", [False, True], ids=["ungrouped", "grouped"])
@pytest.mark.parametrize("what", ["histogram", "n_unique"])
def test_units_move_bins_as_declared(no_noise, relation, limit, grouped, what):
    """Units of up to three rows, of which R count; groups: 1 of 2. Declared L1 and L2 are reached and kept."""
    salts = iter(range(10**6))
    found = {}
    with dp.Session(eps=10**9, neighbors=relation, unit="u"):
        for unit in of_units(3):
            rows = [(-1.0, "a", 7), (5.0, "b", 8), *((x, g, 1) for x, g in unit)]
            frame = pl.DataFrame(rows, schema={"x": pl.Float64, "g": pl.String, "u": pl.Int64}, orient="row")
            plan = frame.dp.plan
            limits = {"max_rows": limit}
            if grouped:
                plan = plan.groupby("g", keys=["a", "b"])
                limits = {"max_groups": 1, "max_rows_per_group": limit}
            if what == "histogram":
                bound = plan.histogram("x", edges=[0, 10], eps=1, **limits)
            else:
                bound = plan.n_unique("x", eps=1, **limits)
            for _ in range(3):  # whatever salt
                next(salts)
                found.setdefault(unit, []).append(np.array(exact_integers(bound)[0]))
        part = bound.plan.parts[0]
    pairs = itertools.combinations(found, 2)
    if relation == "add_remove":
        pairs = (((), u) for u in found)
    moved = [a - b for u, v in pairs for a in found[u] for b in found[v]]
    assert max(np.abs(m).sum() for m in moved) <= part.l1
    assert max((m * m).sum() for m in moved) <= part.l2_squared
    r = limit
    want = {
        ("histogram", "add_remove"): (r, r * r),
        ("histogram", "replace_one"): (2 * r, 2 * r * r),
        ("n_unique", "add_remove"): (r, r * r),
        ("n_unique", "replace_one"): (2 * r, 2 * r * r) if grouped else (r, r * r),
    }[what, relation]
    assert (part.l1, part.l2_squared) == want
    if what == "histogram":
        assert max(np.abs(m).sum() for m in moved) == part.l1, "and it is reached"


def test_a_unit_is_one_value_of_its_own_column(kind):
    """n_unique of the unit: whatever max_rows is, one unit is one value."""
    frame = as_kind(kind, pl.DataFrame({"u": [1, 1, 1, 2, 3, None], "x": [1, 2, 3, 4, 5, 6]}))
    for relation in RELATIONS:
        with dp.Session(eps=10**9, unit="u", neighbors=relation):
            bound = frame.dp.plan.n_unique("u", max_rows=5, eps=10**6)
            assert bound.l1 == 1
            assert bound.release().value == 3
            assert frame.dp.plan.n_unique("x", max_rows=5, eps=1).l1 == 5


def test_one_salt_chooses_the_same_groups_for_sums_and_bins(no_noise):
    """count() and the histogram of one release agree on which group a unit counts in."""
    table = pl.DataFrame({"u": np.repeat(np.arange(50), 3), "g": ["a", "b", "c"] * 50, "x": [1.0] * 150})
    with dp.Session(eps=10**9, unit="u"):
        bound = table.dp.plan.groupby("g", keys=["a", "b", "c"], max_groups=1, max_rows_per_group=1).agg(
            n=dp.count(), k=dp.n_unique("u"), eps=1
        )
        rows, units = exact_integers(bound)
    assert rows == units
    assert sum(rows) == 50


def test_which_rows_of_a_unit_are_kept_depends_on_the_salt_and_not_on_their_order(no_noise):
    table = pl.DataFrame({"u": [1] * 40, "x": list(range(40))})
    with dp.Session(eps=10**9, unit="u"):
        kept = set()
        for i in range(40):
            order = table if i % 2 else table.reverse()
            bound = order.dp.plan.histogram("x", edges=list(range(41)), max_rows=1, eps=1)
            ((*counts,),) = exact_integers(bound)
            assert sum(counts) == 1
            kept.add(counts.index(1))
    assert len(kept) >= 10  # 40 salts, 40 rows: fewer than 10 different ones has probability < 1e-9


def test_the_salt_and_the_rows_alone_decide(monkeypatch, no_noise):
    from dpframe import pipeline

    monkeypatch.setattr(pipeline, "words", lambda n: np.full(n, 12345, dtype=np.uint64))
    table = pl.DataFrame({"u": [1, 2] * 30, "x": list(range(60))})
    seen = set()
    with dp.Session(eps=10**9, unit="u"):
        for frame in (
            table,
            table.reverse(),
            table.lazy(),
            table.to_pandas(),
            table.sample(60, shuffle=True),
        ):
            bound = frame.dp.plan.histogram("x", edges=list(range(61)), max_rows=3, eps=1)
            seen.add(tuple(exact_integers(bound)[0]))
    assert len(seen) == 1
    assert sum(seen.pop()) == 6


# ---- different values ----


@pytest.mark.parametrize(
    ("cells", "different"),
    [
        ([0.0, -0.0, NAN, None, 1.0], 2),
        (["a", "b", "a", None], 2),
        ([True, False, None], 2),
        ([None, None], 0),
        ([], 0),
    ],
)
def test_missing_is_no_value_and_zero_has_no_sign(kind, cells, different):
    frame = as_kind(kind, pl.DataFrame({"x": cells}, strict=False))
    with dp.Session(eps=10**9):
        n = frame.dp.n_unique("x", eps=10**6)
        t = as_polars(frame.dp.agg(k=dp.n_unique("x"), n=dp.count(), eps=10**6))
    assert isinstance(n, int)
    assert n == different
    assert t.row(0) == (different, len(cells))


def test_object_cells_are_told_apart_by_type_and_value():
    frame = pd.DataFrame({"x": pd.Series([1, "1", 1.0, None, ("a",), b"x"], dtype=object)})
    with dp.Session(eps=10**9):
        assert frame.dp.n_unique("x", eps=10**6) == 4  # 1 and 1.0 are equal


# ---- value counts ----


def test_value_counts_are_grouped_counts(kind):
    frame = as_kind(kind, pl.DataFrame({"c": ["x", "y", "x", None, "unlisted"]}))
    with dp.Session(eps=10**9, delta=0.1) as s:
        t = as_polars(frame.dp.value_counts("c", keys=["y", "absent", "x", None], eps=10**6))
        assert t.columns == ["c", "count"]
        assert t.rows() == [("y", 1), ("absent", 0), ("x", 2), (None, 1)]
        found = as_polars(frame.dp.value_counts("c", eps=10**5, delta=1e-3))
        assert found.rows() == [("x", 2)]  # one row alone never decides that a value is told
        assert s.last.cost.delta == pytest.approx(1e-3)
        with pytest.raises(dp.InputError, match=r"groupby\('c', 'c', keys=\.\.\.\)"):
            frame.dp.groupby("c", keys=["x"]).value_counts("c", keys=["x"], eps=1)
    with pytest.raises(AttributeError, match=r"df\.dp\.value_counts"):
        _ = dp.value_counts


# ---- bounds ----

SPREADS = [
    ([3.0, 5.0, 90.0], (2, 128)),
    ([-3.0, 5.0], (-4, 8)),
    ([0.0, 64.0], (0, 64)),
    ([-8.0, -1.0], (-8, -0.5)),
    ([-8.0, -1.0000001], (-8, -1)),
    ([0.001, 0.002], (2**-10, 2**-8)),
    ([-1e300, 1e300, INF, -INF], (-(2**64), 2**64)),
    ([5e-324, 1.0], (0, 1)),
    ([0.0, -0.0], (-(2**64), 2**64)),
    ([NAN, None], (-(2**64), 2**64)),
    ([], (-(2**64), 2**64)),
]


@pytest.mark.parametrize(("cells", "right"), SPREADS)
def test_bounds_are_the_powers_of_two_around_the_data(kind, cells, right):
    """At eps 100 an empty bin is counted as a row with a chance of e**-100."""
    frame = as_kind(kind, pl.DataFrame({"x": cells * 200}, schema={"x": pl.Float64}))
    with dp.Session(eps=100) as s:
        b = frame.dp.bounds("x", eps=100)
    assert tuple(b) == right
    assert all(lo <= v <= hi for (lo, hi) in [b] for v in cells if v is not None and abs(v) < 2**60)
    assert s.spent.eps == 100
    assert pickle.loads(pickle.dumps(b)) == b
    assert repr(b).startswith(repr(tuple(b)))


@pytest.mark.parametrize(("span", "right"), [((0, 100), (2, 100)), ((-10, 3), (-10, 3)), ((4, 5), (4, 5))])
def test_bounds_stay_in_their_range(span, right):
    frame = pl.DataFrame({"x": [3.0, 5.0, 90.0] * 200})
    with dp.Session(eps=100):
        low, high = frame.dp.bounds("x", range=span, eps=100)
    assert span[0] <= low < high <= span[1]
    assert span[0] == right[0] or low == right[0]
    assert high == right[1]


def test_bounds_are_given_on_and_both_are_charged(kind):
    """At a small eps one bounds in a hundred is of an empty bin; at 100 none is (e**-100), and a mean is off by .1."""
    frame = as_kind(kind, pl.DataFrame({"x": [3.0, 5.0, 90.0] * 500}))
    with dp.Session(eps=101) as s:
        release = frame.dp.plan.bounds("x", eps=100).release()
        m = frame.dp.clip_mean("x", bounds=release, eps=0.5)
        again = frame.dp.clip_mean("x", bounds=release.value, eps=0.5)
    assert s.spent.eps == 101
    assert s.report()["question"].to_list()[0].startswith("bounds('x'")
    assert abs(m - 98 / 3) < 5
    assert abs(again - 98 / 3) < 5


def test_empty_bins_fail_rarely():
    """At most 1 % of the bounds of nothing are anything but the range: 2,000 releases, false alarm 1e-10."""
    keys = list(range(2000))
    frame = pl.DataFrame({"g": [0], "x": [None]}, schema={"g": pl.Int64, "x": pl.Float64})
    with dp.Session(eps=10):
        t = frame.dp.groupby("g", keys=keys).bounds("x", eps=0.5)
    assert t.columns == ["g", "x_low", "x_high"]
    failed = t.filter((pl.col("x_low") != -(2**64)) | (pl.col("x_high") != 2**64)).height
    assert failed <= chance.most_hits(2000, 0.01)


def test_a_bin_with_enough_rows_is_seen():
    """plan.error is T; T + ln(2/1e-10)/eps rows are seen but for 1e-10."""
    frame = pl.DataFrame({"x": [1.0] * 200})
    with dp.Session(eps=10):
        bound = frame.dp.plan.bounds("x", eps=0.5)
        least = bound.error["x_low"]
        assert bound.error == {"x_low": least, "x_high": least}
        assert 15 <= least <= 25
        assert least + math.log(2e10) / 0.5 <= 200
        low, high = bound.release().value
        assert low <= 0.5  # an empty bin may be seen, too: that is no matter of chances so small
        assert high >= 1.0


# ---- ledgers ----

RETRIED = {
    "histogram": lambda f, **more: f.dp.histogram("x", edges=[0, 50, 100], **more),
    "median": lambda f, **more: f.dp.median("x", bounds=(0, 100), **more),
    "quantiles": lambda f, **more: f.dp.groupby("g", keys=["a", "b"]).quantile(
        "x", [0.2, 0.6], bounds=(0, 100), **more
    ),
    "top_k": lambda f, **more: f.dp.top_k("g", 2, candidates=["a", "b", "z"], **more),
    "found": lambda f, **more: f.dp.top_k("g", 2, delta=1e-7, **more),
    "bounds": lambda f, **more: f.dp.bounds("x", **more),
}


@pytest.mark.parametrize("ask", RETRIED.values(), ids=RETRIED)
def test_a_retry_on_a_ledger_charges_once_and_gives_the_stored_answer(tmp_path, kind, ask):
    frame = as_kind(kind, pl.DataFrame({"x": list(range(100)) * 5, "g": ["a", "b"] * 250}))
    dp.Ledger.create(tmp_path / "budget.db", eps=5, delta=1e-6)
    with dp.Session(ledger=tmp_path / "budget.db") as s:
        first = ask(frame, eps=0.5, request_id="q")
        again = ask(frame, eps=0.5, request_id="q")
        assert float(s.spent) == 0.5
    same = first == again if isinstance(first, int | tuple) else as_polars(first).equals(as_polars(again))
    assert same


def test_a_stored_choice_of_found_groups_keeps_each_count_with_its_key(tmp_path):
    """Half of the tests above can't tell: their two groups are alike."""
    frame = pl.DataFrame({"g": ["a"] * 100 + ["b"] * 300 + ["c"] * 200})
    dp.Ledger.create(tmp_path / "budget.db", eps=100, delta=1e-6)
    with dp.Session(ledger=tmp_path / "budget.db"):
        first, again = (frame.dp.top_k("g", 2, eps=30, delta=1e-7, request_id="q") for _ in range(2))
    assert first["g"].to_list() == again["g"].to_list() == ["b", "c"]
    assert first.equals(again)


def test_plans_say_of_every_question_what_becomes_of_missing_cells(kind):
    frame = as_kind(kind, pl.DataFrame({"x": [1.0, None], "g": ["a", None]}))
    asked = {
        "left out of sums": frame.dp.plan.clip_sum("x", B=1, eps=1),
        "left out of quantiles": frame.dp.plan.median("x", bounds=(0, 1), eps=1),
        "a row of their own": frame.dp.plan.histogram("x", edges=[0, 1], eps=1),
        "no value in n_unique": frame.dp.plan.n_unique("x", eps=1),
        "left out of bounds": frame.dp.plan.bounds("x", eps=1),
        "if None is listed": frame.dp.plan.top_k("g", 1, candidates=["a", None], eps=1),
    }
    for words, bound in asked.items():
        said = [line for line in str(bound.explain()).splitlines() if line.startswith("  missing")]
        assert len(said) == 1
        assert words in said[0]
        assert words in bound.release().facts["missing"]
    both = frame.dp.plan.agg(dp.median("x", bounds=(0, 1)), dp.count("x"), eps=1)
    text = str(both.explain())
    assert text.count("  missing") == 2
    assert "2 parts share the budget equally" in text
