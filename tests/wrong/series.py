"""A Series, however lazy the frame."""

from __future__ import annotations

import polars as pl


def series(df, name: str):
    return (df.collect() if isinstance(df, pl.LazyFrame) else df)[name]
