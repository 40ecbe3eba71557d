"""Every line of the table of statistics against its plain computation and against all neighbours; and what is caught."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from sizes import AUDIT

import dpframe as dp
from dpframe.layout.sensitivity import Move
from dpframe.statistics import sum_mean
from dpframe.statistics.table import STATISTICS
from dpframe.testing import check_statistic
from dpframe.testing import statistics as checks

LOW, HIGH = BOUNDS = (-3, 10)


def present(d: pl.DataFrame, *names: str) -> list[np.ndarray]:
    """The clipped values of rows in which no cell is missing."""
    kept = d.select(pl.col(n).cast(pl.Float64).fill_nan(None) for n in names).drop_nulls()
    return [np.clip(kept[n].to_numpy(), LOW, HIGH) for n in names]


def mean(d):
    (x,) = present(d, "x")
    return float(x.mean()) if len(x) else None


def variance(d):
    (x,) = present(d, "x")
    return float(x.var(ddof=1)) if len(x) > 1 else None


def weighted(d):
    kept = d.select("x", "y").fill_nan(None).drop_nulls()
    x, w = np.clip(kept["x"].to_numpy(), LOW, HIGH), np.clip(kept["y"].to_numpy(), 0, 4)
    return float((x * w).sum() / w.sum()) if w.sum() > 0.5 else None


def covariances(d):
    x, y = present(d, "x", "y")
    return float(np.cov(x, y)[0, 1]) if len(x) > 1 else None


def correlation(d):
    x, y = present(d, "x", "y")
    flat = len(x) < 2 or min(x.std(), y.std()) < 0.01  # a variance of nearly 0 decides by its noise
    return None if flat else float(np.corrcoef(x, y)[0, 1])


def regressed(d):
    """Least squares; nothing of fewer than four rows, and either of a regressor that hardly varies."""
    x, y = present(d, "x", "y")
    if len(x) < 4:
        return {"estimate": [None, None], "low": [None, None], "residual_sd": [None, None]}
    if x.std() < 0.1:
        return None
    found = np.linalg.lstsq(np.column_stack([np.ones(len(x)), x]), y, rcond=None)[0]
    return {"term": ["intercept", "x"], "estimate": [float(b) for b in found]}


def ordered(q):
    """The q-quantile of ``i``, None where ranks fall between two different values."""

    def plain(d):
        x = np.sort(np.clip(d["i"].drop_nulls().to_numpy(), 0, 6))
        at = len(x) * q
        around = {x[k] for k in (math.ceil(at) - 1, math.floor(at)) if 0 <= k < len(x)}
        return int(around.pop()) if len(around) == 1 else None

    return plain


def iqr(d):
    ends = ordered(0.25)(d), ordered(0.75)(d)
    return None if None in ends or len(d) < 20 else ends[1] - ends[0]  # few rows: parts have whole ranks


def histogram(d):
    x = d["x"].fill_nan(None).drop_nulls().to_numpy()
    inside = np.histogram(x[(x >= 0) & (x <= 10)], [0, 2.5, 10])[0]
    return {"count": [int((x < 0).sum()), *map(int, inside), int((x > 10).sum()), len(d) - len(x)]}


def most_frequent(d):
    many = [int((d["i"] == k).sum()) for k in range(4)]
    return {"i": [int(np.argmax(many))]} if sorted(many)[-1] > sorted(many)[-2] else None


def chosen(d):
    sums = [float(present(d, n)[0].sum()) for n in "xy"]
    return {"candidate": ["xy"[int(np.argmax(sums))]]} if abs(sums[0] - sums[1]) > 0.1 else None


def around(d):
    """The powers of two around ``i`` within 0 and 64."""
    x = d["i"].drop_nulls().to_numpy()
    if len(x) == 0:
        return (0.0, 64.0)
    if x.min() <= 0:
        return None  # 0 is an edge itself
    return float(2 ** math.floor(math.log2(x.min()))), float(2 ** (math.floor(math.log2(x.max())) + 1))


def shortened(d, ord=2):
    kept = d.select("x", "y").fill_nan(None).drop_nulls().to_numpy()
    kept = np.clip(kept, -1e200, 1e200) if len(kept) else np.zeros((0, 2))
    length = np.linalg.norm(kept / 1e150, ord, axis=1) * 1e150
    return kept * np.minimum(1, 5 / np.maximum(length, 1e-300))[:, None]


def total(d):
    return tuple(map(float, shortened(d, 1).sum(axis=0)))


def average(d):
    vectors = shortened(d)
    return tuple(map(float, vectors.mean(axis=0))) if len(vectors) else None


GAUSSIAN = {"delta": 1e-6, "mechanism": "gaussian"}  # sigma of a mean of one: at most 0.05 here
# What is asked, the plain computation, how far apart: grid steps of two rows, or 100 scales of noise (e**-100); options.
CASES = {
    "bounds": (dp.bounds("i", range=(0, 64)), around, 0, {}),
    "clip_corr": (dp.clip_corr(["x", "y"], bounds=BOUNDS), correlation, 0.02, {}),
    "clip_cov": (dp.clip_cov(["x", "y"], bounds=BOUNDS), covariances, 0.05, {}),
    "clip_mean": (dp.clip_mean("x", bounds=BOUNDS), mean, 0.005, {}),
    "clip_std": (dp.clip_std("x", bounds=BOUNDS), lambda d: _root(variance(d)), 0.2, {}),
    "clip_sum": (dp.clip_sum("x", bounds=BOUNDS), lambda d: float(present(d, "x")[0].sum()), 0.005, {}),
    "clip_var": (dp.clip_var("x", bounds=BOUNDS), variance, 0.05, {}),
    "clip_wmean": (
        dp.clip_wmean("x", weights="y", bounds=BOUNDS, weight_bounds=(0, 4)), weighted, 0.01, {},
    ),
    "count": (dp.count("x"), lambda d: len(present(d, "x")[0]), 0, {}),
    "count_units": (dp.count_units(), lambda d: d["u"].drop_nulls().n_unique(), 0, {}),
    "histogram": (dp.histogram("x", edges=[0, 2.5, 10]), histogram, 0, {}),
    "iqr": (dp.iqr("i", bounds=(0, 6)), iqr, 0, {}),
    "median": (dp.median("i", bounds=(0, 6)), ordered(0.5), 0, {}),
    "n_unique": (dp.n_unique("i"), lambda d: d["i"].drop_nulls().n_unique(), 0, {}),
    "ols": (dp.ols("y", ["x"], bounds=BOUNDS), regressed, 0.005, {}),
    "quantile": (dp.quantile("i", 0.3, bounds=(0, 6)), ordered(0.3), 0, {}),
    "select": (dp.select(["x", "y"], bounds=BOUNDS), chosen, 0, {}),
    "top_k": (dp.top_k("i", 1, candidates=[0, 1, 2, 3]), most_frequent, 0, {}),
    "vector_mean": (dp.vector_mean(["x", "y"], norm=5), average, 0.5, GAUSSIAN),
    "vector_sum": (dp.vector_sum(["x", "y"], norm=5, ord=1), total, 0.005, {}),
}  # fmt: skip


def _root(x):
    return None if x is None else math.sqrt(x)


def test_every_statistic_has_a_line():
    assert set(CASES) == set(STATISTICS)


@pytest.fixture(autouse=True)
def some_pairs(monkeypatch):
    """Of the pairs of neighbours every other one, but for the audit: of each kind there are several."""
    if not AUDIT:
        every = checks._neighbours
        monkeypatch.setattr(checks, "_neighbours", lambda rng: list(every(rng))[::2])


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_statistic_is_what_it_says(name):
    asked, plain, within, options = CASES[name]
    seen = check_statistic(asked, plain, within=within, **options)
    assert seen.values >= (4 if name == "iqr" else 20)
    assert seen.pairs >= (50 if AUDIT else 25)


@pytest.fixture
def no_pairs(monkeypatch):
    """No neighbours, for what is seen without them."""
    monkeypatch.setattr(checks, "_neighbours", lambda rng: [])


@pytest.mark.usefixtures("no_pairs")
def test_a_wrong_value_is_seen():
    with pytest.raises(AssertionError, match=r"value .*x_mean is"):
        check_statistic(dp.clip_mean("x", bounds=BOUNDS), lambda d: d["x"].mean(), within=0.001)


@pytest.mark.usefixtures("no_pairs")
def test_a_missing_cell_that_counts_is_seen():
    with pytest.raises(AssertionError, match=r"value .*x_count is"):
        check_statistic(dp.count("x"), len)


def test_a_sensitivity_that_is_too_small_is_seen(monkeypatch):
    true = Move.sensitivity

    def half(self, reach):
        l1, l2 = true(self, reach)
        return max(1, l1 // 2), max(1, l2 // 4)

    monkeypatch.setattr(Move, "sensitivity", half)
    asked, plain, within, _ = CASES["clip_sum"]
    with pytest.raises(AssertionError, match="not within, paid"):
        check_statistic(asked, plain, within=within)


@pytest.mark.usefixtures("no_pairs")
def test_a_question_without_documentation_is_seen(monkeypatch):
    monkeypatch.setattr(STATISTICS["clip_sum"].ask, "__doc__", "Sum.")
    asked, plain, within, _ = CASES["clip_sum"]
    with pytest.raises(AssertionError, match="documentation of the question"):
        check_statistic(asked, plain, within=within)


@pytest.mark.usefixtures("no_pairs")
def test_a_statistic_that_a_file_gives_back_as_another_is_seen(monkeypatch):
    """The class does not keep ``n``: what is written lacks it."""
    monkeypatch.setattr(
        sum_mean.ClipMean, "argument", lambda a, name: None if name == "n" else getattr(a, name, None)
    )
    with pytest.raises((AssertionError, dp.InputError)):
        check_statistic(dp.clip_mean("x", bounds=BOUNDS, n=9), lambda d: None)
