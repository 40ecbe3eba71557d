"""Sums and means of vectors: shortened as promised in exact integers, right at large budgets, covered by intervals."""

from __future__ import annotations

import math

import chance
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from many_rows import counts_at
from one_row import each_relation
from scipy import stats

import dpframe as dp
from conftest import as_kind, as_polars, exact_integers

NAN, INF = math.nan, math.inf
EPS = 10**6


@pytest.fixture(autouse=True)
def silence(quiet):
    """These tests are not about notices."""


def plain(rows, norm, order=2):
    """The sum of the shortened complete vectors, and their number."""
    total, n = 0.0, 0
    for row in rows:
        if any(v is None or math.isnan(v) for v in row):
            continue
        v = np.clip(np.array(row, dtype=float), -(2.0**400), 2.0**400)
        size = np.linalg.norm(v, order)
        total, n = total + v * min(1.0, norm / size if size else 1.0), n + 1
    return total, n


ROWS = [
    (3.0, 4.0, 0.0),
    (0.1, -0.2, 0.3),
    (INF, 1.0, -1.0),
    (1e300, -1e300, 0.0),
    (None, 1.0, 1.0),
    (1.0, NAN, 1.0),
    (0.0, 0.0, 0.0),
    (5e-324, 0.0, -1e-300),
    (-7.0, 24.0, 2.0),
]


def frames(kind, rows, form):
    """Three columns a, b, c, or one column v of arrays or lists."""
    table = pl.DataFrame(rows, schema={"a": pl.Float64, "b": pl.Float64, "c": pl.Float64}, orient="row")
    if form == "columns":
        return as_kind(kind, table), ["a", "b", "c"]
    values = [list(r) for r in rows]
    if kind == "pandas":
        arrow = pa.list_(pa.float64(), 3) if form == "array" else pa.list_(pa.float64())
        column = pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(values, type=arrow)]))
        return pd.DataFrame({"v": pd.Series(column)}), "v"
    dtype = pl.Array(pl.Float64, 3) if form == "array" else pl.List(pl.Float64)
    return as_kind(kind, pl.DataFrame({"v": values}, schema={"v": dtype})), "v"


@pytest.mark.parametrize("form", ["columns", "array", "list"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("repeat", [0, 1, 111, 12_000])
def test_sums_and_means_are_those_of_the_shortened_vectors(kind, form, order, repeat):
    rows = ROWS * repeat
    frame, columns = frames(kind, rows, form)
    dim = {"dim": 3} if form == "list" else {}
    exact, n = plain(ROWS, 5.0, order)
    exact, n = exact * repeat, n * repeat
    margin = 5 * (3 * 80 / EPS + len(rows) * 2.0**-19)
    with dp.Session(eps=10**9):
        total = as_polars(frame.dp.vector_sum(columns, norm=5, ord=order, eps=EPS, **dim))
        mean = as_polars(frame.dp.vector_mean(columns, norm=5, ord=order, eps=EPS, **dim))
        public = as_polars(frame.dp.vector_mean(columns, norm=5, ord=order, eps=EPS, n=100, **dim))
    assert total.columns == mean.columns == (["a", "b", "c"] if form == "columns" else ["v0", "v1", "v2"])
    assert total.height == 1
    assert np.abs(total.to_numpy()[0] - exact).max() <= margin
    assert np.abs(mean.to_numpy()[0] - exact / max(n, 1)).max() <= 2 * margin / max(n, 1)
    assert np.abs(public.to_numpy()[0] - np.clip(exact / 100, -5, 5)).max() <= margin / 100


def test_lists_of_another_length_are_missing(kind):
    values = [[3.0, 4.0], [1.0], [1.0, 2.0, 3.0], None, [0.0, None], [], [0.6, 0.8]]
    if kind == "pandas":
        column = pa.chunked_array([pa.array(values, type=pa.list_(pa.float64()))])
        frame = pd.DataFrame({"v": pd.Series(pd.arrays.ArrowExtensionArray(column))})
    else:
        frame = as_kind(kind, pl.DataFrame({"v": values}, schema={"v": pl.List(pl.Float64)}))
    with dp.Session(eps=10**9):
        total = as_polars(frame.dp.vector_sum("v", norm=1, dim=2, eps=EPS))
        mean = as_polars(frame.dp.vector_mean("v", norm=1, dim=2, eps=EPS))
    assert np.abs(total.to_numpy()[0] - [1.2, 1.6]).max() < 1e-3
    assert np.abs(mean.to_numpy()[0] - [0.6, 0.8]).max() < 1e-3


def test_groups_and_names(kind):
    table = pl.DataFrame({"g": ["a", "b", "a"], "x": [1.0, 0.0, 0.5], "y": [0.0, 2.0, 0.0]})
    with dp.Session(eps=10**9):
        groups = as_kind(kind, table).dp.groupby("g", keys=["b", "a", "c"])
        out = as_polars(
            groups.dp_agg(s=dp.vector_sum(["x", "y"], norm=1), n=dp.count(), eps=EPS, ci=0.9, round=3)
        )
    assert out.columns == ["g", "s_x", "s_x_moe", "s_y", "s_y_moe", "n", "n_moe"]
    assert out["s_x"].to_list() == [0, 1.5, 0]
    assert out["s_y"].to_list() == [1, 0, 0]
    assert out["n"].to_list() == [1, 2, 0]


# ---- the norm, in exact integers ----


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("norm", [1, 5, 0.3, 1e-12, 2.0**200, 3.3e7])
def test_no_vector_is_longer_than_its_norm_in_exact_integers(no_noise, order, norm):
    """Random and hostile vectors, one per group: the released integers' norm is at most floor(norm/step)."""
    rng = np.random.default_rng(5)
    dims = 7
    v = rng.normal(size=(3000, dims)) * norm * 10.0 ** rng.uniform(-3, 3, (3000, 1))
    v[:1000] /= np.linalg.norm(v[:1000], order, axis=1, keepdims=True) / norm  # right at the edge
    v[1000:1100] = rng.choice([INF, -INF, 1e308, 5e-324, 0.0], (100, dims))
    frame = pl.DataFrame({f"x{i}": v[:, i] for i in range(dims)} | {"g": np.arange(len(v))})
    with dp.Session(eps=10**9):
        groups = frame.dp.plan.groupby("g", keys=range(len(v)))
        bound = groups.agg(s=dp.vector_sum([f"x{i}" for i in range(dims)], norm=norm, ord=order), eps=1)
        got = np.array(exact_integers(bound), dtype=object)
    part = bound.plan.parts[0]
    reach = part.layout.move.reach
    size = np.abs(got).sum(axis=0) if order == 1 else (got**2).sum(axis=0)
    assert size.max() <= reach**order
    assert reach <= 2**25
    assert reach * float(part.layout.grid.step) <= norm
    assert (part.l1, part.l2_squared) == (
        (reach, reach**2) if order == 1 else (math.isqrt(dims * reach**2), reach**2)
    )
    step = float(part.layout.grid.step)
    whole = np.linalg.norm(got[:, :1000].astype(float) * step, order, axis=0)
    assert whole.min() > norm * (1 - 1e-5), "vectors at the edge are kept, not dropped"


@each_relation
@pytest.mark.parametrize("grouped", [False, True], ids=["ungrouped", "grouped"])
@pytest.mark.parametrize("order", [1, 2])
def test_declared_sensitivities(relation, grouped, order):
    """norm, twice that under replace_one; the other norm from it by the number of components."""
    frame = pl.DataFrame({"x": [1.0], "y": [1.0], "g": ["a"]})
    twice = 2 if relation == "replace_one" else 1
    with dp.Session(eps=10, neighbors=relation):
        plans = frame.dp.plan.groupby("g", keys=["a", "b"]) if grouped else frame.dp.plan
        plan = plans.vector_sum(["x", "y"], norm=8, ord=order, eps=1)
        l1, l2 = plan.plan.sensitivity(plan.plan.outputs[0])
    assert l2 == pytest.approx(8 * twice)
    assert l1 == pytest.approx(8 * twice * (1 if order == 1 else math.sqrt(2)))
    with dp.Session(eps=10, neighbors=relation):
        mean = plans.vector_mean(["x", "y"], norm=8, ord=order, eps=2)
        assert mean.l2["x"] == pytest.approx(l2), "of the sum, in the components' unit"
        assert mean.scale["x"] == pytest.approx(l1)  # two parts at eps 2


@each_relation
@pytest.mark.parametrize("order", [1, 2])
def test_rows_move_the_sum_by_up_to_the_declared_norm_and_no_more(no_noise, kind, relation, order):
    """Opposite vectors at the edge, missing ones, infinite ones."""
    s = 1 / math.sqrt(2)
    rows = [(5.0, 0.0), (-5.0, 0.0), (0.0, 9.0), (5 * s, 5 * s), (-5 * s, -5 * s), (INF, -INF), (None, 5.0)]
    rows += [(NAN, NAN), (0.0, 0.0), (4.0, 3.0), (1e-9, 5.0)]
    with dp.Session(eps=10**9, neighbors=relation):
        sums = []
        for row in rows:
            frame = as_kind(
                kind, pl.DataFrame([row], schema={"x": pl.Float64, "y": pl.Float64}, orient="row")
            )
            bound = frame.dp.plan.vector_sum(["x", "y"], norm=5, ord=order, eps=1)
            sums.append([int(v[0]) for v in exact_integers(bound)])
    part = bound.plan.parts[0]
    moved = [
        [x - y for x, y in zip(a, b)] for a in sums for b in (sums if relation == "replace_one" else [[0, 0]])
    ]
    l1 = max(sum(map(abs, m)) for m in moved)
    l2 = max(sum(v * v for v in m) for m in moved)
    assert part.l1 * (1 - 1e-5) <= l1 <= part.l1
    assert part.l2_squared * (1 - 1e-5) <= l2 <= part.l2_squared


def test_a_unit_s_vectors_are_scaled_toward_zero():
    """9 equal vectors count as R of them, cut toward zero: never longer than R norms."""
    frame = pl.DataFrame({"u": [1] * 9, "x": [-3.1] * 9, "y": [4.1] * 9})
    for most in (1, 2, 3, 20):
        with dp.Session(eps=10, unit="u"):
            plan = frame.dp.plan.vector_sum(["x", "y"], norm=5, eps=1, max_rows=most).plan
        counts = counts_at(frame, plan, 1)
        one = counts_at(frame.head(1), plan, 1)
        rows = min(9, most)
        got, single = ([int(s[0]) for s in c.sums[0]] for c in (counts, one))
        for g, s in zip(got, single):
            assert abs(g) <= abs(s) * rows
            assert abs(g - s * rows) <= 1
        assert sum(g * g for g in got) <= (rows * plan.parts[0].layout.move.reach) ** 2
        assert plan.parts[0].l2_squared == (most * plan.parts[0].layout.move.reach) ** 2


# ---- noise and intervals ----


def test_gaussian_noise_of_a_rho_is_norm_over_root_two_rho():
    frame = pl.DataFrame({f"x{i}": [0.0] for i in range(400)})
    with dp.Session(rho=100) as s:
        out = frame.dp.vector_sum([f"x{i}" for i in range(400)], norm=3, rho=0.02)
        assert s.last.plan.mechanism["x0"] == "gaussian"
        assert float(s.spent.rho) == pytest.approx(0.02)
    sigma = 3 / math.sqrt(2 * 0.02)
    spread = out.to_numpy()[0].std()
    low, high = (
        stats.chi2.ppf(1e-10, 399),
        stats.chi2.isf(1e-10, 399),
    )  # of a Gaussian's squares: false alarm 2e-10
    assert low < 400 * (spread / sigma) ** 2 < high, "noise of half the sensitivity has a quarter of it"
    with dp.Session(eps=10):
        plan = frame.dp.plan.vector_sum([f"x{i}" for i in range(400)], norm=3, ord=1, eps=1)
        assert plan.mechanism["x0"] == "laplace"
        assert plan.scale["x0"] == pytest.approx(3)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize(("n", "eps"), [(5, 1), (40, 1), (40, 10)])
def test_intervals_cover(mechanism, n, eps):
    groups = 4000
    rows = {"x": np.linspace(-0.5, 0.8, n), "y": np.linspace(0.1, 0.2, n)}
    frame = pl.DataFrame({"g": pl.Series(range(groups), dtype=pl.Int64)}).join(
        pl.DataFrame(rows), how="cross"
    )
    with dp.Session(eps=10**9, delta=0.5, delta_calls=0.25) as s:
        frame.dp.groupby("g", keys=range(groups)).dp_agg(
            t=dp.vector_sum(["x", "y"], norm=1),
            m=dp.vector_mean(["x", "y"], norm=1),
            mechanism=mechanism,
            eps=2 * eps,
            delta=1e-6,
        )
        release = s.last
    truths = {
        "t_x": rows["x"].sum(),
        "t_y": rows["y"].sum(),
        "m_x": rows["x"].mean(),
        "m_y": rows["y"].mean(),
    }
    for level in (0.5, 0.95):
        ends = release.interval(level)
        for name, truth in {k: float(v) for k, v in truths.items()}.items():
            low, high = ends[f"{name}_low"], ends[f"{name}_high"]
            share = float(((low <= truth + 1e-5) & (truth - 1e-5 <= high)).mean())
            assert share >= chance.least_share(groups, level - 0.005), (name, level)
            if name.startswith("t"):
                assert share <= chance.most_share(groups, level + 0.005), (name, level)


def test_a_vector_of_4096_components_is_answered_and_a_longer_one_refused():
    table = pl.DataFrame({"v": np.ones((20, 4096)) / 64}, schema={"v": pl.Array(pl.Float64, 4096)})
    with dp.Session(rho=10**6) as s:
        out = table.dp.vector_sum("v", norm=1, rho=10**5)
        assert out.shape == (1, 4096)
        assert np.abs(out.to_numpy() - 20 / 64).max() < 0.05
        assert len(s.last.plan.describe()) < 200
    wide = pl.DataFrame(schema={"v": pl.Array(pl.Float64, 4097)})
    with dp.Session(rho=1), pytest.raises(dp.InputError, match="at most 4096"):
        wide.dp.vector_sum("v", norm=1, rho=0.1)


def test_columns_of_other_objects_are_refused():
    with dp.Session(eps=1) as s:
        frame = pd.DataFrame({"v": [[1.0, 2.0], [3.0, 4.0]]})
        with pytest.raises(dp.InputError, match=r"whose cells could be anything.*Hint: df.join"):
            frame.dp.vector_sum("v", norm=1, dim=2, eps=1)
        table = pl.DataFrame({"v": [[1.0], [2.0]], "w": [["a"], ["b"]]})
        with pytest.raises(dp.InputError, match=r"must be public. Hint: dim="):
            table.dp.vector_sum("v", norm=1, eps=1)
        with pytest.raises(dp.InputError, match="not lists of numbers"):
            table.dp.vector_sum("w", norm=1, dim=1, eps=1)
        with pytest.raises(dp.InputError, match=r"dim=2, but.*Hint: leave dim out"):
            table.select(pl.col("v").cast(pl.Array(pl.Float64, 1))).dp.vector_sum("v", norm=1, dim=2, eps=1)
        assert s.spent == 0
