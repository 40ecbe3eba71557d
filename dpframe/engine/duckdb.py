"""What narwhals lacks for DuckDB relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import duckdb
from duckdb import ColumnExpression, ConstantExpression, FunctionExpression, StarExpression

name = "DuckDB"
_FUNCTIONS = {"md5": "md5", "micros": "epoch_us", "nanos": "epoch_ns"}


def refused(frame: duckdb.DuckDBPyRelation) -> str | None:
    return None


def native(frame: duckdb.DuckDBPyRelation) -> Any:
    """The relation, with UUIDs as text."""
    types = {c: t.id for c, t in zip(frame.columns, frame.types)}
    if "uuid" not in types.values():
        return frame
    columns = {c: ColumnExpression(c) for c in types}
    return frame.select(
        *((x.cast("VARCHAR") if types[c] == "uuid" else x).alias(c) for c, x in columns.items())
    )


def call(frame: Any, function: str, columns: Mapping[str, str]) -> Any:
    """Add columns: a function of one column each."""
    made = (
        FunctionExpression(_FUNCTIONS[function], ColumnExpression(old)).alias(new)
        for new, old in columns.items()
    )
    return frame.select(StarExpression(), *made)


def texts(frame: Any, columns: Mapping[str, Sequence[str]]) -> Any:
    """A table of text columns on the connection of ``frame``.

    A relation does not give away its connection, so the table grows out of the frame without its rows.
    """
    one = frame.limit(0).aggregate([FunctionExpression("count", ConstantExpression(1)).alias("none")])
    return one.select(*(_unnested(values).alias(new) for new, values in columns.items()))


def _unnested(values: Sequence[str]) -> Any:
    """One long text that DuckDB splits: a list of constants would be bound one by one."""
    mark = next(m for m in (f"\x1f{i}\x1f" for i in count()) if not any(m in v for v in values))
    parts = FunctionExpression(
        "string_split", ConstantExpression(mark.join(values)), ConstantExpression(mark)
    )
    return FunctionExpression("unnest", parts)
