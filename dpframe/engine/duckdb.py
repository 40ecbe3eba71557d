"""What narwhals lacks for DuckDB relations: columns by place, days and instants as integers, a table of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
from duckdb import ConstantExpression, FunctionExpression, SQLExpression, StarExpression

name = "DuckDB"

# Of a column {0}. None of them raises on a cell, and infinite days and instants are null. Seconds and milliseconds may
# lie beyond microseconds, which no cast forgives; the key that DuckDB sorts by holds all of their 64 bits.
_SORTED = """
    nullif(nullif(
        TRY_CAST('0x' || substr(hex(create_sort_key("{0}", 'ASC NULLS LAST')), 3) AS UBIGINT)::HUGEINT
        - 9223372036854775808, 9223372036854775807), -9223372036854775807)
"""
_FUNCTIONS = {
    "md5": 'md5("{0}")',
    "bytes": 'encode("{0}")',
    "octets": 'strlen("{0}")',
    "days": """datediff('day', DATE '1970-01-01', "{0}")""",
    "seconds": f"({_SORTED}) * 1000000",
    "millis": f"({_SORTED}) * 1000",
    "micros": 'epoch_us("{0}")',
    "nanos": 'epoch_ns("{0}")',
}
_AS_TEXT = ("UUID", "JSON")


def refused(frame: duckdb.DuckDBPyRelation) -> str | None:
    return None


def opened(frame: duckdb.DuckDBPyRelation) -> tuple[Any, list[tuple[str, str, bool]]]:
    """The relation with columns c0, c1, ... by place, and of each its name, type, and whether that may be used.

    Privacy: TRY changes no cell, and DuckDB knows nothing of what comes out of it. Of a column it believes the
    statistics that a file has of itself: told that no cell is above 4, it leaves out the clip at 10, and packs ids
    into the bytes that they would need, so that one unit becomes many, or many one.
    """
    types = [str(t) for t in frame.types]
    columns = (f"TRY(#{i + 1}{'::VARCHAR' if t in _AS_TEXT else ''}) AS c{i}" for i, t in enumerate(types))
    return frame.project(", ".join(columns)), [(n, t, True) for n, t in zip(frame.columns, types)]


def call(frame: Any, function: str, columns: Mapping[str, str]) -> Any:
    """Add columns: a function of one column each."""
    made = (SQLExpression(_FUNCTIONS[function].format(old)).alias(new) for new, old in columns.items())
    return frame.select(StarExpression(), *made)


def texts(frame: Any, columns: Mapping[str, Sequence[str]]) -> Any:
    """A table of text columns on the connection of ``frame``.

    A relation does not give away its connection, so the table grows out of the frame without its rows.
    """
    one = frame.limit(0).aggregate([FunctionExpression("count", ConstantExpression(1)).alias("none")])
    split = one.select(*(_split(values).alias(new) for new, values in columns.items()))
    whole = """replace(replace("{0}", '%1', chr(31)), '%0', '%')"""
    return split.select(*(SQLExpression(whole.format(new)).alias(new) for new in columns))


def _split(values: Sequence[str]) -> Any:
    """One long text that DuckDB splits, as it would bind a list of constants one by one.

    Privacy: the sign between two texts is in none of them, as "%1" stands for it there and "%0" for a "%", so each
    key arrives as it was, once; one stands before each, so of none there is none.
    """
    sent = "".join("\x1f" + v.replace("%", "%0").replace("\x1f", "%1") for v in values)
    parts = FunctionExpression("string_split", ConstantExpression(sent), ConstantExpression("\x1f"))
    listed = FunctionExpression(
        "array_slice", parts, ConstantExpression(2), ConstantExpression(len(values) + 1)
    )
    return FunctionExpression("unnest", listed)
