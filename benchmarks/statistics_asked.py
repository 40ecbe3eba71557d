"""The other statistics on 10 M rows, and the plain Polars computation of the same thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from questions import BOUNDS, arrays

import dpframe as dp

EDGES = [float(x) for x in range(0, 100_001, 5_000)]
CENTS = [f"c{i}" for i in range(50)]
Asked = tuple[str, Callable[[], object], dict[str, Callable[[], object]], float | None]


def frame() -> pl.DataFrame:
    data = arrays()
    rng = np.random.default_rng(1)
    other = data["x"] / 2 + rng.standard_normal(len(data["x"])) * 10_000
    df = pl.DataFrame({**data, "y": other, "w": rng.random(len(other))})
    return df.with_columns(city=pl.Series(CENTS).gather(rng.integers(0, 50, df.height)))


def asked(df: pl.DataFrame) -> list[Asked]:
    """(what, private, plain formulations, target for the ratio of CPU times or None)."""
    s = dp.Session(eps=10**9, delta=0.1)
    d: Any = df
    x, y, w = pl.col("x").clip(*BOUNDS), pl.col("y").clip(*BOUNDS), pl.col("w")
    options = {"eps": 1, "session": s}
    listed = range(100)
    cut = pl.col("x").cut(EDGES)
    norm = (pl.col("x") ** 2 + pl.col("y") ** 2).sqrt()
    shrink = pl.min_horizontal(1.0, 1000 / norm)
    return [
        (
            "variance",
            lambda: d.dp.clip_var("x", bounds=BOUNDS, **options),
            {"var": lambda: df.select(x.var())},
            2.0,
        ),
        (
            "covariance",
            lambda: d.dp.clip_cov(["x", "y"], bounds=BOUNDS, **options),
            {
                "cov": lambda: df.select(x.alias("x"), y.alias("y")).select(
                    pl.cov("x", "y").alias("c"), pl.var("x").alias("vx"), pl.var("y").alias("vy")
                )
            },
            2.0,
        ),
        (
            "weighted mean",
            lambda: d.dp.clip_wmean("x", weights="w", bounds=BOUNDS, weight_bounds=(0, 1), **options),
            {"wmean": lambda: df.select((x * w).sum() / w.sum())},
            2.0,
        ),
        (
            "vector sum of 2",
            lambda: d.dp.vector_sum(["x", "y"], norm=1000, delta=1e-9, **options),
            {"sums": lambda: df.select((pl.col("x") * shrink).sum(), (pl.col("y") * shrink).sum())},
            None,
        ),
        (
            "histogram, 20 bins",
            lambda: d.dp.histogram("x", edges=EDGES, **options),
            {"cut": lambda: df.group_by(cut).len()},
            2.0,
        ),
        (
            "median",
            lambda: d.dp.median("x", bounds=BOUNDS, **options),
            {"median": lambda: df.select(pl.col("x").median())},
            2.0,
        ),
        (
            "9 quantiles",
            lambda: d.dp.quantile("x", [i / 10 for i in range(1, 10)], bounds=BOUNDS, **options),
            {
                "quantiles": lambda: df.select(
                    pl.col("x").quantile(i / 10).alias(str(i)) for i in range(1, 10)
                )
            },
            2.0,
        ),
        (
            "median in 100 groups",
            lambda: d.dp.groupby("g100", keys=listed).median("x", bounds=BOUNDS, **options),
            {"median": lambda: df.group_by("g100").agg(pl.col("x").median())},
            None,
        ),
        (
            "top 3 of 50 texts",
            lambda: d.dp.top_k("city", 3, candidates=CENTS, **options),
            {"counts": lambda: df["city"].value_counts()},
            2.0,
        ),
        (
            "distinct values",
            lambda: d.dp.n_unique("g100k", **options),
            {"n_unique": lambda: df.select(pl.col("g100k").n_unique())},
            None,
        ),
        (
            "select of 2",
            lambda: d.dp.select(["x", "y"], bounds=BOUNDS, **options),
            {"sums": lambda: df.select(x.sum(), y.sum())},
            2.0,
        ),
        (
            "bounds",
            lambda: d.dp.bounds("x", **options),
            {"min, max": lambda: df.select(pl.col("x").min(), pl.col("x").max().alias("m"))},
            None,
        ),
    ]
