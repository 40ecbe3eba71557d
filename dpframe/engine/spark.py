"""What narwhals lacks for PySpark's DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
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
    made = {"md5": lambda old: F.md5(F.col(old)), "micros": lambda old: _micros(frame, old)}[function]
    return frame.withColumns({new: made(old) for new, old in columns.items()})


def _micros(frame: Any, column: str) -> Any:
    """Microseconds since 1970; of a local time as if it were UTC, so that no zone's lost or double hour matters."""
    if not isinstance(frame.schema[column].dataType, TimestampNTZType):
        return F.unix_micros(F.col(column))
    x, second = F.col(column), 1_000_000
    minutes = (F.unix_date(x.cast("date")) * 24 + F.hour(x)) * 60 + F.minute(x)
    seconds = F.expr(f"extract(SECOND FROM `{column}`)")  # with six decimals
    return minutes.cast("long") * (60 * second) + (seconds * second).cast("long")


def texts(frame: Any, columns: Mapping[str, Sequence[str]]) -> Any:
    """A table of text columns in the session of ``frame``."""
    return frame.sparkSession.createDataFrame(
        pa.table({new: pa.array(v, pa.string()) for new, v in columns.items()})
    )
