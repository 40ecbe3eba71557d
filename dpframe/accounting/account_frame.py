"""Accounts as frames: one row for each charge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from dpframe.errors import printable

TIME = pl.Datetime("us", "UTC")


def as_frame(entries: Iterable[Any], columns: Mapping[str, Any]) -> pl.DataFrame:
    """The attributes of entries that ``columns`` names, costs as floats, text as it can be written."""

    def cell(e: Any, name: str) -> Any:
        if name in ("eps", "delta", "rho"):
            x = getattr(e.cost, name)
            return None if x is None else float(x)
        x = e.head.hash if name == "hash" else getattr(e, name)
        return printable(x) if isinstance(x, str) else x

    rows = [[cell(e, name) for name in columns] for e in entries]
    return pl.DataFrame(rows, schema=dict(columns), orient="row")
