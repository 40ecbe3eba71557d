"""What narwhals lacks for PySpark's DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import functions
from pyspark.sql.types import TimestampNTZType

name = "PySpark"


def refused(frame: Any) -> str | None:
    """A dot in a name means a field of a struct to Spark."""
    return (
        "PySpark DataFrames with a dot in a column's name" if any("." in c for c in frame.columns) else None
    )


def native(frame: Any) -> Any:
    return frame


def call(frame: Any, function: str, columns: Mapping[str, str]) -> Any:
    """Add columns: a function of one column each."""
    made: Any = _micros if function == "micros" else _md5
    return frame.withColumns({new: made(frame, old) for new, old in columns.items()})


def _md5(frame: Any, column: str) -> Any:
    return functions.md5(functions.col(column))


def _micros(frame: Any, column: str) -> Any:
    """Microseconds since 1970; of a local time as if it were UTC, so that no zone's lost or double hour matters."""
    if not isinstance(frame.schema[column].dataType, TimestampNTZType):
        return functions.unix_micros(functions.col(column))
    x, second = functions.col(column), 1_000_000
    days = functions.unix_date(x.cast("date")).cast("long")
    minutes = (days * 24 + functions.hour(x)) * 60 + functions.minute(x)
    seconds = functions.expr(f"extract(SECOND FROM `{column}`)")  # with six decimals
    return minutes * (60 * second) + (seconds * second).cast("long")


def texts(frame: Any, columns: Mapping[str, Sequence[str]]) -> Any:
    """A table of text columns in the session of ``frame``."""
    return frame.sparkSession.createDataFrame(
        pa.table({new: pa.array(v, pa.string()) for new, v in columns.items()})
    )
