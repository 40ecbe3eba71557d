"""Every statistic on every kind of frame, alone and in a table, for both relations, with and without a unit, at a huge eps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from conftest import as_kind

X, Y = (0, 10), (-5, 5)
EPS = {"eps": 10**6}


def table():
    rng = np.random.default_rng(0)
    n = 600
    made = pl.DataFrame(
        {
            "u": np.arange(n),
            "g": rng.choice(["a", "b"], n),
            "x": rng.normal(5, 2, n),
            "y": rng.normal(1, 3, n),
            "w": rng.random(n),
            "i": rng.integers(0, 7, n),
            "c": rng.choice(["p", "q", "r"], n, p=[0.5, 0.3, 0.2]),
        }
    )
    return made.with_columns(x=pl.when(pl.col("u") % 50 != 0).then("x"))


def clipped(d):
    return d.drop_nulls("x").with_columns(pl.col("x").clip(*X), pl.col("y").clip(*Y))


def order(q):
    return lambda d: float(np.quantile(d["i"], q, method="inverted_cdf"))


def weighted(d):
    d = clipped(d)
    return (d["x"] * d["w"]).sum() / d["w"].sum()


ANSWERS = {  # what is asked, the plain computation, how far apart they may be: grid steps of 600 rows
    "variance": (dp.clip_var("x", bounds=X), lambda d: clipped(d)["x"].var(), 0.02),
    "deviation": (dp.clip_std("x", bounds=X), lambda d: clipped(d)["x"].std(), 0.02),
    "median": (dp.median("i", bounds=(0, 6)), order(0.5), 0),
    "least": (dp.quantile("i", 0, bounds=(0, 6)), lambda d: d["i"].min(), 0),
    "most": (dp.quantile("i", 1, bounds=(0, 6)), lambda d: d["i"].max(), 0),
    "iqr": (dp.iqr("i", bounds=(0, 6)), lambda d: order(0.75)(d) - order(0.25)(d), 0),
    "different": (dp.n_unique("i"), lambda d: d["i"].n_unique(), 0),
    "weighted": (dp.clip_wmean("x", weights="w", bounds=X, weight_bounds=(0, 1)), weighted, 0.01),
    "covariance": (
        dp.clip_cov(["x", "y"], bounds=[X, Y]),
        lambda d: np.cov(clipped(d)["x"], clipped(d)["y"])[0, 1],
        0.03,
    ),
    "correlation": (
        dp.clip_corr(["x", "y"], bounds=[X, Y]),
        lambda d: np.corrcoef(clipped(d)["x"], clipped(d)["y"])[0, 1],
        0.01,
    ),
    "units": (dp.count_units(), len, 0),
}

TABLES = {  # questions whose answer is a table: with (D, bounds of a unit)
    "quantiles": lambda d, k: d.quantile("i", [0.1, 0.5, 0.9], bounds=(0, 6), **EPS, **k),
    "histogram": lambda d, k: d.histogram("x", edges=[0, 5, 10], **EPS, **k),
    "top_k": lambda d, k: d.top_k("c", 2, candidates=["r", "q", "p"], **EPS, **k),
    "select": lambda d, k: d.select(["x", "y"], bounds=(0, 10), **EPS, **k),
    "vector_sum": lambda d, k: d.vector_sum(["y", "w"], norm=5, delta=1e-6, **EPS, **k),
    "vector_mean": lambda d, k: d.vector_mean(["y", "w"], norm=5, ord=1, **EPS, **k),
    "bounds": lambda d, k: d.bounds("x", **EPS, **k),
}


def door(kind, frame):
    if kind != "duckdb":
        return as_kind(kind, frame).dp
    duckdb = pytest.importorskip("duckdb")
    return dp.frame(duckdb.connect().from_arrow(frame.to_arrow()))


def rows(answer):
    """A table as rows, floats to a tenth: noise at this eps and grid steps are far below it."""
    if isinstance(answer, tuple):
        return [answer]
    frame = pl.from_pandas(answer) if isinstance(answer, pd.DataFrame) else answer
    return frame.with_columns(pl.selectors.float().round(1)).rows()


@pytest.fixture(scope="module")
def first():
    """The first answer to every table question; all others must equal it."""
    return {}


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("kind", ["polars", "pandas", "lazy", "duckdb"])
@pytest.mark.parametrize("unit", [None, "u"])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_every_statistic_is_the_plain_one(first, kind, unit, neighbors):
    frame = table()
    d = door(kind, frame)
    alone = {} if unit is None else {"max_rows": 1}
    grouped = {} if unit is None else {"max_groups": 1, "max_rows_per_group": 1}
    asked = {k: v for k, v in ANSWERS.items() if unit or k != "units"}
    with dp.Session(eps=10**12, delta=0.1, neighbors=neighbors, unit=unit):
        groups = d.groupby("g", keys=["b", "a"], **grouped)
        together = {k: a.alias(k) for k, (a, _, _) in asked.items()}
        one = dict(zip(asked, rows(d.agg(*together.values(), n=dp.count(), eps=10**8, **alone))[0]))
        each = groups.dp_agg(*together.values(), n=dp.count(), eps=10**8)
        each = pl.from_pandas(each) if isinstance(each, pd.DataFrame) else each
        for name, (_, plain, near) in asked.items():
            assert abs(one[name] - plain(frame)) <= near + 0.05, name  # rounded to a tenth
            for g, value in zip(each["g"], each[name]):
                assert abs(value - plain(frame.filter(pl.col("g") == g))) <= 2 * near + 1e-9, (name, g)
        assert each["n"].to_list() == [frame.filter(pl.col("g") == g).height for g in ("b", "a")]
        for name, ask in TABLES.items():
            whole = rows(ask(d, alone))
            assert whole == first.setdefault(name, whole)
            by_group = rows(ask(groups, {}))
            assert by_group == first.setdefault(name + " by group", by_group)
            assert {r[0] for r in by_group} == {"a", "b"}
