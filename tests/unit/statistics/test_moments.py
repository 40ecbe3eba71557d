"""Variances, covariances, correlations, weighted means and numbers of units: right, bounded and covered.

Three kinds of check, as for counts, sums and means: at eps = 1e6 the answers are the plain clipped ones; one
row or one unit moves what reaches the mechanism by at most what is declared (and by that much); intervals hold
the exact answer as often as they say.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import as_kind, as_polars, exact_integers
from test_bounding import counts_at, pieces_of
from test_oracle import COLUMNS, EPS, KEYS, SIZES, bounds_of, make
from test_sensitivity import (
    ROOT2,
    alphabet,
    brute_force,
    each_grouping,
    each_relation,
    frame_of,
    only_integers,  # noqa: F401
    same,
    verbs,
)

import dpframe as dp

NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def silence(quiet):
    """These tests are not about notices."""


@pytest.fixture
def budget():
    with dp.Session(eps=10**13) as s:
        yield s


in_a_session = pytest.mark.usefixtures("budget")


# ---- eps = 1e6: the plain clipped answers ----


def clipped(x, low, high) -> Fraction | None:
    """The exact clipped value of a cell, None if it is missing."""
    if x is None or (isinstance(x, float) and math.isnan(x)):
        return None
    if isinstance(x, float) and math.isinf(x):
        return Fraction(high if x > 0 else low)
    return min(max(Fraction(x), Fraction(low)), Fraction(high))


def plain_variance(cells, where, low, high, ddof=1):
    """(variance, number of values); 0 for fewer than ddof + 1 values."""
    times = Counter()
    for i, n in Counter(where.tolist()).items():
        if (value := clipped(cells[i], low, high)) is not None:
            times[value] += n
    n = sum(times.values())
    if n <= ddof:
        return Fraction(0), n
    mean = sum(v * k for v, k in times.items()) / n
    return sum(k * (v - mean) ** 2 for v, k in times.items()) / (n - ddof), n


def near_variance(answer, exact, n, span) -> bool:
    """Noise of some cells, each 40 scales at most, and steps of 2**-15 spans per row."""
    margin = span**2 * (Fraction(16 * 40, EPS) / max(n - 1, 1) + Fraction(1, 2**12))
    return math.isfinite(answer) and abs(Fraction(float(answer)) - exact) <= margin


@in_a_session
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("kind", "name"), COLUMNS)
def test_variances_are_the_plain_clipped_ones(kind, name, n):
    frame, cells, where, of_key = make(kind, name, n)
    low, high = bounds_of(name)
    span = high - low
    exact, present = plain_variance(cells, where, low, high)
    value = frame.dp.clip_var("x", bounds=(low, high), eps=EPS)
    assert isinstance(value, float)
    assert value >= 0
    assert near_variance(value, exact, present, span)
    if exact > Fraction(span**2, 100):
        root = frame.dp.clip_std("x", bounds=(low, high), eps=EPS)
        assert root == pytest.approx(math.sqrt(exact), rel=1e-2)
    asked = {
        "v": dp.clip_var("x", bounds=(low, high)),
        "p": dp.clip_var("x", bounds=(low, high), ddof=0),
        "n": dp.count(),
        "c": dp.count("x"),
        "m": dp.clip_mean("x", bounds=(low, high)),
        "t": dp.clip_sum("x", bounds=(low, high)),
    }
    table = as_polars(frame.dp.groupby("g", keys=KEYS).dp_agg(**asked, eps=EPS))
    for i, rows in enumerate(of_key):
        exact, present = plain_variance(cells, rows, low, high)
        assert table["n"][i] == len(rows)
        assert table["c"][i] == present
        assert near_variance(table["v"][i], exact, present, span)
        assert near_variance(table["p"][i], plain_variance(cells, rows, low, high, 0)[0], present, span)
        values = [v for j in rows.tolist() if (v := clipped(cells[j], low, high)) is not None]
        margin = span * (len(rows) / 2**14 + 200 / EPS)
        assert abs(table["t"][i] - sum(values)) <= margin + (0.5 if table["t"].dtype == pl.Int64 else 0)
        mean = sum(values) / len(values) if values else Fraction(low + high, 2)
        assert abs(table["m"][i] - mean) <= span * (1 / 2**14 + 200 / EPS)


FLOATS = [None, NAN, INF, -INF, 1e300, 0.1, 2.5, 9.999, 10.0, -3.25]
PAIR = {
    "floats": (FLOATS, [None, 0.0, 1.0, 2.0, 3.0, NAN, 5.0, INF, 0.25, 0.5], pl.Float64),
    "ints": ([None, -7, 0, 1, 5, 9, 10, 11, 100, 3], [0, None, 2, 3, 4, 5, 1, 2, 3, 1], pl.Int16),
    "bools": ([True, False, None] * 3 + [True], [True, True, False, False, None] * 2, pl.Boolean),
}


def two_columns(kind, name, n):
    """A frame with x, y and a group, and its cells."""
    rng = np.random.default_rng([7, n])
    xs, ys, dtype = PAIR[name]
    x, y = ([c[i] for i in rng.integers(0, 10, n)] for c in (xs, ys))
    g = [str(i) for i in rng.integers(0, 3, n)]
    frame = pl.DataFrame({"x": pl.Series(x, dtype=dtype), "y": pl.Series(y, dtype=dtype), "g": g})
    if kind == "pandas" and name != "floats":  # pandas' own masked columns
        masked = "Int16" if name == "ints" else "boolean"
        return frame.to_pandas().astype({"x": masked, "y": masked}), x, y, g
    return as_kind(kind, frame), x, y, g


def complete(x, y, low, high):
    """The clipped pairs in which both are present, as floats (n, 2)."""
    pairs = [(clipped(a, low, high), clipped(b, 0, 3)) for a, b in zip(x, y)]
    kept = [(float(a), float(b)) for a, b in pairs if a is not None and b is not None]
    return np.array(kept).reshape(-1, 2)


@in_a_session
@pytest.mark.parametrize("n", [0, 1, 2, 999, 1001, 100_000])
@pytest.mark.parametrize("name", PAIR)
def test_covariances_correlations_and_weighted_means_are_the_plain_clipped_ones(kind, name, n):
    frame, x, y, g = two_columns(kind, name, n)
    low, high = (0, 1) if name == "bools" else (-3, 10)
    bounds = {"x": (low, high), "y": (0, 3)}
    span = max(high - low, 3)
    slack = span**2 * (1000 / EPS / max(n, 1) + 2**-12)
    matrix = as_polars(frame.dp.clip_cov(["x", "y"], bounds=bounds, eps=EPS))
    assert matrix["column"].to_list() == ["x", "y"]
    both = complete(x, y, low, high)
    exact = np.cov(both.T) if len(both) > 1 else np.zeros((2, 2))
    assert np.abs(matrix.drop("column").to_numpy() - exact).max() <= slack
    table = as_polars(
        frame.dp.groupby("g", keys=["0", "1", "none"]).dp_agg(
            c=dp.clip_cov(["x", "y"], bounds=bounds),
            r=dp.clip_corr(["x", "y"], bounds=bounds),
            m=dp.clip_wmean("x", weights="y", bounds=bounds["x"], weight_bounds=(0, 3)),
            eps=EPS,
        )
    )
    for i, key in enumerate(table["g"]):
        rows = [j for j, k in enumerate(g) if k == key]
        both = complete([x[j] for j in rows], [y[j] for j in rows], low, high)
        exact = np.cov(both.T) if len(both) > 1 else np.zeros((2, 2))
        assert abs(table["c"][i] - exact[0, 1]) <= span**2 * (1000 / EPS / max(len(both), 1) + 2**-12)
        assert -1 <= table["r"][i] <= 1
        if len(both) > 100 and exact[0, 0] * exact[1, 1] > 0.01:
            r = exact[0, 1] / math.sqrt(exact[0, 0] * exact[1, 1])
            assert table["r"][i] == pytest.approx(r, abs=5e-3)
        assert low <= table["m"][i] <= high
        weight = both[:, 1].sum() / 3
        if weight > 0.01:
            mean = (both[:, 0] * both[:, 1]).sum() / both[:, 1].sum()
            margin = span * ((len(both) * 2**-13 + 1000 / EPS) / weight + 2**-13)
            assert abs(table["m"][i] - mean) <= margin


@in_a_session
def test_a_matrix_of_three_columns_leaves_out_rows_that_lack_any(kind):
    rng = np.random.default_rng(3)
    table = pl.DataFrame({c: rng.uniform(0, 10, 500) for c in "abc"})
    table = table.with_columns(d=pl.col("a") / 2 + pl.col("b") / 4)
    holed = table.with_columns(pl.when(pl.col("c") > 2).then(pl.col("c")).alias("c"))
    frame = as_kind(kind, holed)
    kept = holed.drop_nulls()
    covariance = as_polars(frame.dp.clip_cov(["a", "d", "c"], B=20, eps=EPS))
    exact = np.cov(kept.select("a", "d", "c").to_numpy().T)
    assert np.abs(covariance.drop("column").to_numpy() - exact).max() < 0.05
    correlation = as_polars(frame.dp.clip_corr(["a", "d", "c"], B=20, eps=EPS, ci=0.9))
    assert correlation.columns == ["column", "a", "d", "c", "a_moe", "d_moe", "c_moe"]
    exact = np.corrcoef(kept.select("a", "d", "c").to_numpy().T)
    assert np.abs(correlation.select("a", "d", "c").to_numpy() - exact).max() < 5e-3


# ---- sensitivity, by trying ----

BLOCK = {"add_remove": (1, 1, 1), "replace_one": (2, ROOT2, 1)}


@each_relation
@each_grouping
@pytest.mark.parametrize("asked", ["var", "std", "everything"])
def test_a_triple_moves_by_one_row_in_l1(only_integers, kind, relation, grouped, asked):  # noqa: F811
    questions = {
        "var": {"v": dp.clip_var("x", bounds=(-3, 10))},
        "std": {"v": dp.clip_std("x", bounds=(-3, 10))},
        "everything": {
            "n": dp.count(),
            "v": dp.clip_var("x", bounds=(-3, 10)),
            "s": dp.clip_sum("x", bounds=(-3, 10)),
            "m": dp.clip_mean("x", bounds=(-3, 10)),
            "p": dp.clip_mean("x", bounds=(-3, 10), n=9),
        },
    }[asked]
    rows = alphabet(-3.0, 10.0, grouped=grouped)
    _, moved = brute_force(lambda p: verbs(p, grouped).agg(**questions, eps=1), kind, relation, rows, 2)
    assert len(moved) == 1, "one column and its bounds are one part"
    same(moved[0], BLOCK[relation])


TWO = {
    "cov": {"c": dp.clip_cov(["x", "y"], bounds=(-3, 10))},
    "wmean": {"m": dp.clip_wmean("x", weights="y", bounds=(-3, 10), weight_bounds=(0, 10))},
}


@each_relation
@each_grouping
@pytest.mark.parametrize("asked", TWO.values(), ids=TWO)
def test_blocks_of_two_columns_move_by_one_row_in_l1(only_integers, kind, relation, grouped, asked):  # noqa: F811
    rows = alphabet(-3.0, 10.0, grouped=grouped, second=True)
    if grouped:  # the corners are enough
        rows = [r for r in rows if r[0] != 0.0 and (r[2] == "a" or r[0] == r[1])]
    _, (moved,) = brute_force(
        lambda p: verbs(p, grouped).agg(**asked, eps=1), kind, relation, rows, 1 if grouped else 2
    )
    same(moved, BLOCK[relation])


@each_relation
def test_the_blocks_of_a_matrix_all_move_in_full(only_integers, kind, relation):  # noqa: F811
    rows = alphabet(-3.0, 10.0, grouped=False, second=True)
    plan, moved = brute_force(
        lambda p: p.clip_cov(["x", "y"], bounds=(-3, 10), eps=1), kind, relation, rows, 1
    )
    assert len(moved) == 3
    for m in moved:
        same(m, BLOCK[relation])
    for piece in plan.pieces:
        assert piece.noise.scale == 3 * plan.parts[piece.part].l1


@in_a_session
def test_every_row_adds_exactly_one_row_to_every_block(no_noise, kind):
    """Cells are not negative and sum to one row, whatever is in it; a row with a gap adds nothing."""
    values = (-3.0, 10.0, 0.1, INF, -INF, 1e300, 5e-324, 1 / 3, 9.999999, None)
    for x, y in itertools.product(values, repeat=2):
        bound = frame_of(kind, [(x, y, "a", True)]).dp.plan.agg(
            v=dp.clip_var("x", bounds=(-3, 10)),
            c=dp.clip_cov(["x", "y"], bounds=(-3, 10)),
            m=dp.clip_wmean("x", weights="y", bounds=(-3, 10), weight_bounds=(0, 10)),
            eps=1,
        )
        cells = {0: [], 1: [], 2: []}
        for piece, (value,) in zip(bound.plan.pieces, exact_integers(bound)):
            cells[piece.part].append(value)
        rows = [p.layout.row for p in bound.plan.parts]
        assert min(v for part in cells.values() for v in part) >= 0
        assert sum(cells[0]) == (0 if x is None else rows[0])
        assert sum(cells[1]) == (0 if x is None or y is None else rows[1])
        assert sum(cells[2]) <= (0 if x is None or y is None else rows[2])


# ---- units ----

UNIT_QUESTIONS = {
    "var": {"v": dp.clip_var("x", bounds=(-3, 10)), "n": dp.count()},
    "cov": {"c": dp.clip_cov(["x", "y"], bounds=(-3, 10))},
    "corr": {"r": dp.clip_corr(["x", "y"], bounds=(-3, 10))},
    "wmean": {"m": dp.clip_wmean("x", weights="y", bounds=(-3, 10), weight_bounds=(0, 10))},
    "units": {"u": dp.count_units(), "n": dp.count()},
    "sum of vectors": {"t": dp.vector_sum(["x", "y"], norm=5)},
    "mean of vectors": {"t": dp.vector_mean(["x", "y"], norm=5, ord=1)},
}
UNIT_SCHEMA = {"u": pl.Int64, "x": pl.Float64, "y": pl.Float64, "g": pl.String}


def unit_rows(rng, u):
    """The rows of one unit: sometimes very many, at extremes, with gaps."""
    n = int(rng.choice([0, 1, 2, 9]))
    pool = [-3.0, 10.0, 10.0, 0.1, None, INF, 3.0]
    pick = lambda: pool[int(rng.integers(len(pool)))]  # noqa: E731
    fixed = (pick(), pick())  # often all rows of a unit are alike: that moves most
    alike = rng.random() < 0.5
    return [(u, *(fixed if alike else (pick(), pick())), str(rng.choice(list("abc")))) for _ in range(n)]


@each_relation
@pytest.mark.parametrize("grouped", [False, True], ids=["ungrouped", "grouped"])
@pytest.mark.parametrize("question", UNIT_QUESTIONS.values(), ids=UNIT_QUESTIONS)
def test_one_unit_moves_what_reaches_the_mechanism_by_at_most_what_is_declared(
    kind, relation, grouped, question
):
    rng = np.random.default_rng([11, len(question)])
    salts = (1, 2)
    for turn in range(60):
        others = [r for u in range(3) for r in unit_rows(rng, u)]
        before, after = unit_rows(rng, 9), unit_rows(rng, 9)
        if relation == "add_remove":
            after = []
        vectors = []
        for rows in (others + before, others + after):
            frame = as_kind(kind, pl.DataFrame(rows, schema=UNIT_SCHEMA, orient="row"))
            with dp.Session(eps=10, unit="u", neighbors=relation):
                if grouped:
                    verbs_ = frame.dp.plan.groupby("g", keys=list("abc"), max_groups=2, max_rows_per_group=3)
                    plan = verbs_.agg(**question, eps=1).plan
                else:
                    plan = frame.dp.plan.agg(**question, eps=1, max_rows=3).plan
            vectors.append([pieces_of(plan, counts_at(frame, plan, s)) for s in salts])
        for a, b in zip(*vectors):
            for i, part in enumerate(plan.parts):
                moved = a[i] - b[i]
                assert sum(abs(int(v)) for v in moved) <= part.l1, (turn, before, after)
                assert sum(int(v) ** 2 for v in moved) <= part.l2_squared, (turn, before, after)


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_a_scaled_unit_keeps_its_blocks_whole(no_noise, kind, rows):
    """Whatever is scaled down, no cell is negative and a block sums to the rows that are kept."""
    rng = np.random.default_rng(13)
    pool = [-3.0, 10.0, 0.1, 3.0, 9.9999, None, -2.999]
    for _ in range(60):
        n = int(rng.integers(1, 12))
        cells = [(1, *(pool[int(i)] for i in rng.integers(0, len(pool), 2)), "a") for _ in range(n)]
        frame = as_kind(kind, pl.DataFrame(cells, schema=UNIT_SCHEMA, orient="row"))
        with dp.Session(eps=10, unit="u"):
            bound = frame.dp.plan.agg(
                v=dp.clip_var("x", bounds=(-3, 10)),
                c=dp.clip_cov(["x", "y"], bounds=(-3, 10)),
                m=dp.clip_wmean("x", weights="y", bounds=(-3, 10), weight_bounds=(0, 10)),
                eps=1,
                max_rows=rows,
            )
            got = exact_integers(bound)
        parts = {i: [v for p, (v,) in zip(bound.plan.pieces, got) if p.part == i] for i in range(3)}
        row = [p.layout.row for p in bound.plan.parts]
        one = sum(c[1] is not None for c in cells)
        two = sum(c[1] is not None and c[2] is not None for c in cells)
        assert min(v for part in parts.values() for v in part) >= 0
        assert sum(parts[0]) == min(one, rows) * row[0]
        assert sum(parts[1]) == min(two, rows) * row[1]
        assert sum(parts[2]) <= min(two, rows) * row[2]


def test_the_number_of_units(kind):
    frame = as_kind(
        kind,
        pl.DataFrame({"u": [1, 1, 2, 3, None, 3], "g": ["a", "b", "a", "a", "a", "a"], "x": [1.0] * 6}),
    )
    with dp.Session(eps=10**8, unit="u"):
        value = frame.dp.count_units(eps=EPS)
        assert isinstance(value, int)
        assert value == 3
        groups = frame.dp.groupby("g", keys=["b", "a", "c"], max_groups=2)
        table = as_polars(groups.count_units(eps=EPS))
        assert table["units"].to_list() == [1, 3, 0]
        plan = frame.dp.plan.groupby("g", keys=["b", "a", "c"], max_groups=2)
        assert (plan.count_units(eps=1).l1, frame.dp.plan.count_units(eps=1).l1) == (2, 1)
    with dp.Session(eps=10**8, unit="u", neighbors="replace_one"):
        plan = frame.dp.plan.groupby("g", keys=["b", "a", "c"], max_groups=2).count_units(eps=1)
        assert (plan.l1, plan.l2) == (4, 2)
        assert frame.dp.plan.count_units(eps=1).l1 == 1


def test_units_that_are_asked_for_are_also_the_threshold_s():
    """With unknown keys one noisy number of units does both: no piece more."""
    frame = pl.DataFrame({"u": [i % 400 for i in range(800)], "g": ["a"] * 800, "x": [1.0] * 800})
    with dp.Session(eps=10, delta=1e-5, unit="u"):
        groups = frame.dp.plan.groupby("g", max_groups=1, max_rows_per_group=2)
        plan = groups.dp_agg(u=dp.count_units(), n=dp.count(), eps=1, delta=1e-6).plan
        assert [p.layout.kind for p in plan.parts] == ["units", "rows"]
        table = frame.dp.groupby("g", max_groups=1, max_rows_per_group=2).dp_agg(
            u=dp.count_units(), n=dp.count(), eps=5, delta=1e-6
        )
    assert abs(table["u"][0] - 400) < 40


def test_rows_have_no_units_to_count(budget):
    with pytest.raises(dp.InputError, match=r"protects single rows.*Hint"):
        pl.DataFrame({"x": [1]}).dp.count_units(eps=1)
    assert budget.spent == 0


# ---- thresholds ----


def test_unknown_groups_of_a_triple_and_of_a_covariance_are_thresholded():
    """A covariance counts no group: a count is added for the threshold. A triple with gaps adds up its rows, missing ones too."""
    frame = pl.DataFrame({"g": ["a"] * 3000 + ["b"], "x": [1.0, 5.0, 3.0] * 1000 + [1.0], "y": [2.0] * 3001})
    with dp.Session(eps=100, delta=1e-3):
        groups = frame.dp.groupby("g")
        table = groups.dp_agg(n=dp.count(), v=dp.clip_var("x", bounds=(0, 10)), eps=1, delta=1e-7)
        assert table["g"].to_list() == ["a"]
        plan = frame.dp.plan.groupby("g").dp_agg(
            n=dp.count(), v=dp.clip_var("x", bounds=(0, 10)), eps=1, delta=1e-7
        )
        assert len(plan.plan.threshold.coordinates) == 4
        table = groups.dp_agg(c=dp.clip_cov(["x", "y"], bounds=(0, 10)), eps=1, delta=1e-7)
        assert table["g"].to_list() == ["a"]
        plan = frame.dp.plan.groupby("g").dp_agg(c=dp.clip_cov(["x", "y"], bounds=(0, 10)), eps=1, delta=1e-7)
        assert [p.layout.kind for p in plan.plan.parts] == ["pair", "rows"]


# ---- intervals ----

GROUPS = 4000
SHAPES = {
    "even": lambda n: np.linspace(-1, 1, n),
    "tight": lambda n: 0.5 + np.linspace(-0.05, 0.05, n),
    "both ends": lambda n: np.where(np.arange(n) % 2, 1.0, -1.0),
    "one end": lambda n: np.ones(n),
}


def second_column(x):
    n = len(x)
    return np.clip(0.5 * x + 0.4 * np.sin(np.arange(n) * 2.4), -1, 1)


def ask(x, **call):
    frame = pl.DataFrame({"g": pl.Series(range(GROUPS), dtype=pl.Int64)}).join(
        pl.DataFrame({"x": x, "y": second_column(x)}), how="cross"
    )
    with dp.Session(eps=10**9, delta=0.5, delta_calls=0.25) as s:
        frame.dp.groupby("g", keys=range(GROUPS)).dp_agg(**call)
        return s.last


def covered(release, name, truth, level):
    ends = release.interval(level)
    low, high = np.asarray(ends[f"{name}_low"]), np.asarray(ends[f"{name}_high"])
    value = np.asarray(release.value[name])
    assert ((low <= value) & (value <= high)).all()
    return float(((low <= truth + 1e-4) & (truth - 1e-4 <= high)).mean())


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize(("n", "eps"), [(10, 1), (30, 1), (100, 1), (100, 10)], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_of_second_moments_cover(shape, n, eps, mechanism):
    """At least nominal but for 1 % at 95 %, from 10 rows up; false alarms at 5.6 standard errors."""
    x = SHAPES[shape](n)
    y = second_column(x)
    release = ask(
        x,
        v=dp.clip_var("x", bounds=(-1, 1)),
        s=dp.clip_std("x", bounds=(-1, 1)),
        mechanism=mechanism,
        eps=eps,
        delta=1e-6,
    )
    truths = {"v": x.var(ddof=1), "s": x.std(ddof=1)}
    for level in (0.5, 0.95):
        least = level - 0.01 - 5.6 * math.sqrt(level * (1 - level) / GROUPS)
        for name, truth in truths.items():
            assert covered(release, name, truth, level) >= least, (name, level)
    other = ask(
        x,
        c=dp.clip_cov(["x", "y"], bounds=(-1, 1)),
        r=dp.clip_corr(["x", "y"], bounds=(-1, 1)),
        m=dp.clip_wmean("x", weights="y", bounds=(-1, 1)),
        mechanism=mechanism,
        eps=3 * eps,
        delta=1e-6,
    )
    w = np.clip(y, 0, 1)
    truths = {"c": np.cov(x, y)[0, 1], "m": (w * x).sum() / w.sum()}
    if x.std() > 0:
        truths["r"] = np.corrcoef(x, y)[0, 1]
    for level in (0.5, 0.95):
        least = level - 0.01 - 5.6 * math.sqrt(level * (1 - level) / GROUPS)
        for name, truth in truths.items():
            assert covered(other, name, truth, level) >= least, (name, level)


def test_spread_of_answers_and_forecasts_where_noise_is_small():
    """std is the spread of the answers; the forecast of a variance is no less than the interval's half-width."""
    x = SHAPES["even"](200)
    release = ask(
        x,
        v=dp.clip_var("x", bounds=(-1, 1)),
        s=dp.clip_std("x", bounds=(-1, 1)),
        eps=4,
    )
    for name in ("v", "s"):
        spread = float(np.std(np.asarray(release.value[name])))
        assert spread == pytest.approx(float(np.mean(np.asarray(release.std[name]))), rel=0.1)
    ends, forecast = release.interval(0.95), release.plan.error(200)
    half = {k: float((ends[f"{k}_high"] - ends[f"{k}_low"]).mean()) / 2 for k in ("v", "s")}
    assert half["v"] <= forecast["v"]
    assert half["s"] == pytest.approx(forecast["s"], rel=0.15)
    other = ask(x, c=dp.clip_cov(["x", "y"], B=1), r=dp.clip_corr(["x", "y"], B=1), eps=12)
    for name in ("c", "r"):
        spread = float(np.std(np.asarray(other.value[name])))
        assert spread == pytest.approx(float(np.mean(np.asarray(other.std[name]))), rel=0.1)


def test_a_triple_costs_less_than_thirds_of_the_budget():
    """The variance's error beats that of count, sum and sum of squares at eps/3 each by at least 1.7."""
    x, eps = SHAPES["even"](200), 1
    release = ask(x, v=dp.clip_var("x", bounds=(-1, 1)), eps=eps)
    fused = math.sqrt(float(((np.asarray(release.value["v"]) - x.var(ddof=1)) ** 2).mean()))
    rng = np.random.default_rng(1)
    u = (x + 1) / 2  # uncentred, as a split would have it
    n, s, q = (t + rng.laplace(0, 3 / eps, GROUPS) for t in (len(x), u.sum(), (u * u).sum()))
    split = math.sqrt(float(((4 * (q / n - (s / n) ** 2) - x.var()) ** 2).mean()))
    assert split / fused > 1.6


def test_raw_variances_may_be_negative_and_others_never_are():
    x = np.full(5, 0.5)
    release = ask(x, v=dp.clip_var("x", bounds=(-1, 1)), r=dp.clip_var("x", bounds=(-1, 1), raw=True), eps=1)
    assert (np.asarray(release.value["v"]) >= 0).all()
    assert (np.asarray(release.value["r"]) < 0).mean() > 0.1
    assert len(release.plan.parts) == 1


# ---- neighbours look alike ----

ASKED = {
    "var": lambda f: f.dp.clip_var("x", bounds=(-3, 10), eps=1),
    "cov": lambda f: f.dp.clip_cov(["x", "y"], bounds=(-3, 10), eps=1),
    "corr": lambda f: f.dp.clip_corr(["x", "y"], bounds=(-3, 10), eps=1),
    "wmean": lambda f: f.dp.clip_wmean("x", weights="y", bounds=(-3, 10), eps=1),
    "vectors": lambda f: f.dp.vector_mean(["x", "y"], norm=3, eps=1),
    "groups": lambda f: f.dp.groupby("g", keys=["a", "b"]).dp_agg(
        v=dp.clip_std("x", B=3), t=dp.vector_sum(["x", "y"], norm=3), r=dp.clip_corr(["x", "y"], B=3), eps=1
    ),
}


def looks(frame, question):
    with dp.Session(eps=10) as s:
        value = question(frame)
        facts = {k: v for k, v in s.last.facts.items() if k != "time"}
        if not isinstance(value, float):
            numbers = as_polars(value).select(pl.col(pl.Float64))
            assert np.isfinite(numbers.to_numpy()).all()
            return type(value), value.shape, list(value.columns), list(map(str, value.dtypes)), facts
        assert math.isfinite(value)
        return type(value), facts


@pytest.mark.parametrize("question", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("row", [(NAN, 1.0), (None, None), (INF, -INF), (1e300, NAN), (1.0, 2.0)], ids=str)
def test_neighbours_look_alike(kind, question, row):
    base = [(1.0, 2.0, "a", True)] * 3
    for rows, other in ((base, [*base, (*row, "b", True)]), ([], [(*row, "a", True)])):
        assert looks(frame_of(kind, rows), question) == looks(frame_of(kind, other), question)


# ---- refusals, before anything is spent ----

REFUSED = [
    (lambda f: f.dp.clip_var("x", eps=1), r"needs bounds.*Hint"),
    (lambda f: f.dp.clip_var("x", bounds=(0, 1), ddof=3, eps=1), r"ddof=3.*Hint"),
    (lambda f: f.dp.clip_var("x", bounds=(0, 1), ddof=True, eps=1), r"ddof=True.*Hint"),
    (lambda f: f.dp.clip_var("x", bounds=(0, 1), raw=1, eps=1), r"raw=1.*Hint"),
    (lambda f: f.dp.clip_cov(["x"], bounds=(0, 1), eps=1), r"at least two columns.*Hint"),
    (lambda f: f.dp.clip_cov(["x", "x"], bounds=(0, 1), eps=1), r"lists a column twice.*Hint"),
    (lambda f: f.dp.clip_cov(["x", "nope"], bounds=(0, 1), eps=1), r"no column 'nope'"),
    (lambda f: f.dp.clip_cov(["x", "g"], bounds=(0, 1), eps=1), r"not numbers.*Hint"),
    (lambda f: f.dp.clip_cov(["x", "y"], eps=1), r"needs bounds.*Hint"),
    (lambda f: f.dp.clip_cov(["x", "y"], bounds=[(0, 1)], eps=1), r"1 pairs for 2 columns.*Hint"),
    (lambda f: f.dp.clip_cov(["x", "y"], bounds={"z": (0, 1)}, eps=1), r"names 'z'"),
    (lambda f: f.dp.agg(c=dp.clip_corr(["x", "y", "w"], B=1), eps=1), r"is a matrix.*Hint"),
    (lambda f: f.dp.groupby("g", keys=["a"]).clip_cov(["x", "y", "w"], B=1, eps=1), r"is a matrix.*Hint"),
    (lambda f: f.dp.clip_wmean("x", weights="x", bounds=(0, 1), eps=1), r"is the column itself.*Hint"),
    (
        lambda f: f.dp.clip_wmean("x", weights="y", bounds=(0, 1), weight_bounds=(-1, 1), eps=1),
        r"from 0 up.*Hint",
    ),
    (lambda f: f.dp.clip_wmean("x", weights="g", bounds=(0, 1), eps=1), r"not numbers.*Hint"),
    (lambda f: f.dp.vector_sum([], norm=1, eps=1), r"at least one column.*Hint"),
    (lambda f: f.dp.vector_sum(["x"], norm=0, eps=1), r"norm="),
    (lambda f: f.dp.vector_sum(["x"], norm=2.0**400, eps=1), r"outside 2\*\*-300.*Hint"),
    (lambda f: f.dp.vector_sum(["x"], norm=1, ord=3, eps=1), r"ord=3.*Hint"),
    (lambda f: f.dp.vector_sum(["x", "g"], norm=1, eps=1), r"'g' is .*Hint"),
    (lambda f: f.dp.vector_sum(["x", "y"], norm=1, dim=2, eps=1), r"dim= goes with"),
    (lambda f: f.dp.vector_mean(["x", "y"], norm=1, n=0, eps=1), r"n=0.*Hint"),
]


@pytest.mark.parametrize(("question", "words"), REFUSED, ids=[w for _, w in REFUSED])
def test_wrong_questions_are_refused_before_they_cost_anything(kind, question, words, budget):
    table = pl.DataFrame({"x": [1.0], "y": [2.0], "w": [1.0], "g": ["a"]})
    with pytest.raises(dp.InputError, match=words):
        question(as_kind(kind, table))
    assert budget.spent == 0


def test_verbs_of_other_libraries_point_here():
    frame = pl.DataFrame({"x": [1.0], "y": [2.0]})
    for name, verb in {"std": "clip_std", "var": "clip_var", "corr": "clip_corr", "cov": "clip_cov"}.items():
        with pytest.raises(AttributeError, match=f"Hint: df.dp.{verb}"):
            getattr(frame.dp, name)
        with pytest.raises(AttributeError, match=f"Hint: dp.{verb}"):
            getattr(dp, name)


@in_a_session
def test_a_triple_serves_every_question_of_its_column_at_no_extra_cost():
    frame = pl.DataFrame({"x": [1.0, None]})
    asked = {
        "n": dp.count(),
        "c": dp.count("x"),
        "t": dp.clip_sum("x", bounds=(0, 4)),
        "m": dp.clip_mean("x", bounds=(0, 4)),
        "v": dp.clip_var("x", bounds=(0, 4)),
        "s": dp.clip_std("x", bounds=(0, 4)),
    }
    plan = frame.dp.plan.agg(**asked, eps=1).plan
    assert len(plan.parts) == 1
    assert len(plan.pieces) == 4
    assert {p.noise.scale for p in plan.pieces} == {Fraction(plan.parts[0].layout.row)}
    assert plan.parts[0].layout.grid.count <= 2**15


def test_a_matrix_can_be_written_and_read_back(tmp_path, budget):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [2.0, 1.0, 3.0]})
    frame.dp.clip_cov(["x", "y"], bounds=(0, 4), eps=1)
    budget.last.write(tmp_path / "c.csv")
    assert pl.read_csv(tmp_path / "c.csv").columns == ["column", "x", "y"]


def test_every_question_can_be_kept_in_a_release_file(tmp_path):
    """Written and read again, it is the same question."""
    pl.DataFrame({"x": [1.0], "y": [2.0], "u": [1], "v": [[1.0, 2.0]]}).write_parquet(tmp_path / "p.parquet")
    asked = {
        "v": dp.clip_var("x", bounds=(0, 4), ddof=0, raw=True),
        "s": dp.clip_std("x", B=3),
        "m": dp.clip_wmean("x", weights="y", bounds=(0, 4), weight_bounds=(0, 2)),
        "c": dp.clip_cov(["x", "y"], bounds=[(0, 4), (-1, 1)]),
        "r": dp.clip_corr(["x", "y"], bounds=(0, 4)),
        "n": dp.count_units(),
        "t": dp.vector_sum("v", norm=2, ord=1, dim=2),
        "w": dp.vector_mean(["x", "y"], norm=0.5, n=30),
    }
    plan = dp.BudgetPlan(str(tmp_path / "p.parquet"), asked, eps=8, unit="u", max_rows=2)
    plan.to_release_file(tmp_path / "plan.toml")
    again = dp.BudgetPlan.from_release_file(tmp_path / "plan.toml")
    for name, question in asked.items():
        assert again.queries[name].statistics == (question,)
    assert again.table().equals(plan.table())
    assert set(again.run()) == set(asked)


@pytest.mark.parametrize("far", [1e160, 1e200, 1e-150])
@pytest.mark.parametrize("verb", ["clip_var", "clip_std", "clip_cov", "clip_corr"])
def test_bounds_whose_squares_are_beyond_floats_are_refused_before_anything_is_spent(verb, far):
    df = pl.DataFrame({"x": [0.0, far], "y": [far, 0.0]})
    of = "x" if verb in ("clip_var", "clip_std") else ["x", "y"]
    with dp.Session(eps=1) as s, pytest.raises(dp.InputError, match=r"squared.*Hint"):
        getattr(df.dp, verb)(of, bounds=(0, far), eps=1)
    assert s.spent == 0
    assert not s.releases
