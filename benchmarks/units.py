"""Units and unknown keys beside the best plain formulation of the same work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import dpframe as dp

ROWS, UNITS, KEYS = 10_000_000, 1_000_000, 2_000
BOUNDS = (0, 100)


def frame() -> pl.DataFrame:
    """10 M rows of 1 M units in 2,000 groups: about 10 M (unit, group) pairs."""
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {"u": rng.integers(0, UNITS, ROWS), "g": rng.integers(0, KEYS, ROWS), "x": rng.random(ROWS) * 100}
    )


def private(df: pl.DataFrame, max_groups: int, *, keys: bool = True) -> Callable[[], Any]:
    session = dp.Session(eps=10**9, delta=0.5, delta_calls=0.4, unit="u")
    limits: dict[str, Any] = {"max_groups": max_groups, "max_rows_per_group": 2}
    if keys:
        limits["keys"] = range(KEYS)
    more = {} if keys else {"delta": 1e-9}
    return lambda: df.dp.groupby("g", **limits).dp_agg(
        n=dp.count(), x=dp.clip_mean("x", bounds=BOUNDS), eps=1, session=session, **more
    )


def plain(df: pl.DataFrame, max_groups: int | None) -> dict[str, Callable[[], Any]]:
    """The pre-aggregation per (unit, group), with the same choice of groups, without privacy."""
    pairs = (
        df.lazy().group_by("u", "g").agg(n=pl.len(), c=pl.col("x").count(), t=pl.col("x").clip(*BOUNDS).sum())
    )
    if max_groups is not None:
        rank = pl.struct("u", "g").hash(seed=7).rank("ordinal").over("u")
        pairs = pairs.filter(rank <= max_groups)
    query = pairs.group_by("g").agg(pl.col("n", "c", "t").sum())
    engines: tuple[Any, ...] = ("in-memory", "streaming")
    return {e: (lambda e=e: query.collect(engine=e)) for e in engines}


def cities() -> Callable[[], Any]:
    """Mean income by city with persons as the unit, on 1 M rows."""
    rng = np.random.default_rng(1)
    n = 1_000_000
    df = pl.DataFrame(
        {"person": rng.integers(0, 200_000, n), "city": rng.integers(0, 50, n), "income": rng.random(n) * 1e5}
    )
    session = dp.Session(eps=10**9, unit="person")
    return lambda: df.dp.groupby("city", keys=range(50), max_groups=3, max_rows_per_group=5).clip_mean(
        "income", bounds=(0, 1e5), eps=1, session=session
    )
