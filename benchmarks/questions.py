"""The frames that are asked, the private questions, and the plain ones they are compared with."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

import dpframe as dp

ROWS = 10_000_000
LOW, HIGH = 0.0, 100_000.0
BOUNDS = (LOW, HIGH)
GROUPS = {"g100": 100, "g100k": 100_000}
QUESTIONS = ("sum", "mean", "100 keys", "100,000 keys")


@lru_cache(maxsize=1)
def arrays(rows: int = ROWS) -> dict[str, np.ndarray[Any, Any]]:
    """Incomes (some beyond the bounds) and two keys."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(rows)
    x *= 30_000
    x += 50_000
    return {"x": x} | {name: rng.integers(0, k, rows) for name, k in GROUPS.items()}


def frame(library: str, rows: int = ROWS) -> Any:
    return (pl if library == "polars" else pd).DataFrame(arrays(rows))


def used_bytes(question: str) -> int:
    """The size of the columns that a question reads."""
    return ROWS * (16 if "keys" in question else 8)


def private(df: Any, question: str) -> Callable[[], object]:
    """A private question on ``df``, paid by a session that never runs out."""
    session = dp.Session(eps=10**9)
    if question == "sum":
        return lambda: df.dp.clip_sum("x", bounds=BOUNDS, eps=1, session=session)
    if question == "mean":
        return lambda: df.dp.clip_mean("x", bounds=BOUNDS, eps=1, session=session)
    by = _by(question)
    keys = list(range(GROUPS[by]))
    return lambda: df.dp.groupby(by, keys=keys).dp_agg(
        n=dp.count(), x=dp.clip_mean("x", bounds=BOUNDS), eps=1, session=session
    )


def plain(df: Any, question: str) -> dict[str, Callable[[], object]]:
    """The same without privacy, in the formulations among which the fastest is taken."""
    return _plain_polars(df, question) if isinstance(df, pl.DataFrame) else _plain_pandas(df, question)


def _plain_polars(df: pl.DataFrame, question: str) -> dict[str, Callable[[], object]]:
    clipped = pl.col("x").clip(LOW, HIGH)
    if question == "sum":
        queries = {"": df.lazy().select(clipped.sum())}
    elif question == "mean":
        queries = {"": df.lazy().select(clipped.mean())}
    else:
        by = _by(question)
        queries = {
            "clip inside": df.lazy().group_by(by).agg(n=pl.len(), x=clipped.mean()),
            "clip before": df.lazy().select(by, clipped).group_by(by).agg(n=pl.len(), x=pl.col("x").mean()),
        }
    engines: tuple[Any, ...] = ("in-memory", "streaming")
    return {
        f"{engine} {how}".strip(): (lambda q=q, engine=engine: q.collect(engine=engine))
        for how, q in queries.items()
        for engine in engines
    }


def _plain_pandas(df: pd.DataFrame, question: str) -> dict[str, Callable[[], object]]:
    if question == "sum":
        return {"pandas": lambda: df["x"].clip(LOW, HIGH).sum()}
    if question == "mean":
        return {"pandas": lambda: df["x"].clip(LOW, HIGH).mean()}
    by = _by(question)
    return {
        "series": lambda: df["x"].clip(LOW, HIGH).groupby(df[by]).agg(["size", "mean"]),
        "frame": lambda: (
            df[[by, "x"]].assign(x=df["x"].clip(LOW, HIGH)).groupby(by).agg(n=("x", "size"), x=("x", "mean"))
        ),
        "unsorted": lambda: df["x"].clip(LOW, HIGH).groupby(df[by], sort=False).agg(["size", "mean"]),
    }


def _by(question: str) -> str:
    return "g100" if question == "100 keys" else "g100k"
