"""Variances, covariances, correlations, weighted means and numbers of units: right, bounded and covered.

Three kinds of check, as for counts, sums and means: at eps = 1e6 the answers are the plain clipped ones; one
row or one unit moves what reaches the mechanism by at most what is declared (and by that much); intervals hold
the exact answer as often as they say.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import chance
import numpy as np
import pandas as pd
import polars as pl
import pytest
from oracle_frames import COLUMNS, EPS, KEYS, SIZES, bounds_of, make

import dpframe as dp
from conftest import as_kind, as_polars

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


@pytest.mark.sweep(1)
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


@pytest.mark.sweep
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
    """At least nominal but for 1 %, from 10 rows up; false alarms: 1e-10 a comparison, of ten."""
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
        least = chance.least_share(GROUPS, level - 0.01)
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
        least = chance.least_share(GROUPS, level - 0.01)
        for name, truth in truths.items():
            assert covered(other, name, truth, level) >= least, (name, level)


@pytest.mark.usefixtures("fixed_draws")
def test_spread_of_answers_and_forecasts_where_noise_is_small():
    """std is the spread of the answers; the forecast of a variance is no less than the interval's half-width.

    Of a fixed stream: no false alarm. (10 % are 7 standard errors; a std that leaves out one cell's noise is off by more.)
    """
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
    assert half["s"] <= forecast["s"]
    root = next(o.answer for o in release.plan.outputs if o.name == "s")
    ((_, usual),) = root.cases(release.plan.laws, 200)  # of values spread evenly, which these are
    assert half["s"] == pytest.approx(usual, rel=0.15)
    other = ask(x, c=dp.clip_cov(["x", "y"], B=1), r=dp.clip_corr(["x", "y"], B=1), eps=12)
    for name in ("c", "r"):
        spread = float(np.std(np.asarray(other.value[name])))
        assert spread == pytest.approx(float(np.mean(np.asarray(other.std[name]))), rel=0.1)


@pytest.mark.usefixtures("fixed_draws")
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


@pytest.mark.usefixtures("fixed_draws")
def test_raw_variances_may_be_negative_and_others_never_are():
    x = np.full(5, 0.5)
    release = ask(x, v=dp.clip_var("x", bounds=(-1, 1)), r=dp.clip_var("x", bounds=(-1, 1), raw=True), eps=1)
    assert (np.asarray(release.value["v"]) >= 0).all()
    assert (np.asarray(release.value["r"]) < 0).mean() > 0.1
    assert len(release.plan.parts) == 1


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
    plan = frame.dp.plan.agg(**asked, eps=1, mechanism="laplace").plan
    assert len(plan.parts) == 1
    assert len(plan.pieces) == 4
    assert {p.noise.scale for p in plan.pieces} == {Fraction(plan.parts[0].layout.row)}
    assert plan.parts[0].layout.grid.count <= 2**15
    joint = frame.dp.plan.agg(**asked, eps=1, mechanism="row").plan
    assert [p.layout.kind for p in joint.parts] == ["block", "rows"]
    assert {p.noise.joint.scale for p in joint.pieces} == {1}


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
