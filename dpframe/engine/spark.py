"""What narwhals lacks for PySpark's DataFrames: columns by place, days and instants as integers, a table of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import functions
from pyspark.sql.types import TimestampNTZType

name = "PySpark"
embedded = False


def refused(frame: Any) -> str | None:
    return None


def opened(frame: Any) -> tuple[Any, list[tuple[str, str, bool]]]:
    """The frame with columns c0, c1, ... by place, and of each its name, type, and whether that may be used.

    By place, as to Spark a dot in a name is a field of a struct, and ``Name`` and ``name`` are one. A CHAR is filled
    up with blanks, so a listed 'a' would never be found in it.

    Privacy: a column that is made anew lies in no bucket. Of a table written in buckets Spark believes that all rows
    of a unit are in one file, and would add up each file by itself.
    """
    columns = [(f.name, _type(f)) for f in frame.schema.fields]
    named = frame.toDF(*(f"c{i}" for i in range(len(columns))))
    cells = [functions.col(c) for c in named.columns]
    named = named.select(*(functions.when(x.isNotNull(), x).alias(c) for x, c in zip(cells, named.columns)))
    return named, [(n, t, not t.lower().startswith("char(")) for n, t in columns]


def _type(field: Any) -> str:
    return str(field.metadata.get("__CHAR_VARCHAR_TYPE_STRING", field.dataType.simpleString()))


def call(frame: Any, function: str, columns: Mapping[str, str]) -> Any:
    """Add columns: a function of one column each."""
    made = {new: _FUNCTIONS[function](frame, functions.col(old), old) for new, old in columns.items()}
    return frame.withColumns(made)


def _micros(frame: Any, x: Any, column: str) -> Any:
    """Microseconds since 1970; of a local time as if it were UTC, so that no zone's lost or double hour matters.

    Before 1970 they are counted back from the end of the minute: its beginning may lie before what 64 bits hold.
    """
    if not isinstance(frame.schema[column].dataType, TimestampNTZType):
        return functions.unix_micros(x)
    minute = 60_000_000
    days = functions.unix_date(x.cast("date")).cast("long")
    minutes = (days * 24 + functions.hour(x)) * 60 + functions.minute(x)
    seconds = functions.expr(f"extract(SECOND FROM `{column}`)")  # with six decimals
    micros = (seconds * 1_000_000).cast("long")
    before = (minutes + 1) * minute + (micros - minute)
    return functions.when(minutes < 0, before).otherwise(minutes * minute + micros)


_FUNCTIONS: Mapping[str, Any] = {
    "md5": lambda frame, x, column: functions.md5(x),
    "bytes": lambda frame, x, column: x.cast("binary"),
    "octets": lambda frame, x, column: functions.octet_length(x),
    "days": lambda frame, x, column: functions.unix_date(x),
    "micros": _micros,
}


def texts(frame: Any, columns: Mapping[str, Sequence[str]]) -> Any:
    """A table of text columns in the session of ``frame``."""
    table = {new: pa.array(v, pa.string()) for new, v in columns.items()}
    return frame.sparkSession.createDataFrame(pa.table(table))
