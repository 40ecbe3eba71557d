"""What narwhals lacks for PySpark's DataFrames and for SQLFrame's, which have the same functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any


def refused(frame: Any) -> str | None:
    """SQLFrame speaks many dialects; DuckDB's is the one that is checked."""
    library, dialect = type(frame).__module__.split(".")[:2]
    return None if library == "pyspark" or dialect == "duckdb" else f"a SQLFrame DataFrame on {dialect}"


def name(frame: Any) -> str:
    return "SQLFrame" if type(frame).__module__.startswith("sqlframe") else "PySpark"


def call(frame: Any, function: str, columns: Mapping[str, str]) -> Any:
    """Add columns: a function of one column each."""
    place = "sqlframe.duckdb.functions" if name(frame) == "SQLFrame" else "pyspark.sql.functions"
    F = import_module(place)
    made = {"md5": F.md5, "micros": F.unix_micros}[function]
    for new, old in columns.items():
        frame = frame.withColumn(new, made(F.col(old)))
    return frame


def texts(frame: Any, columns: Mapping[str, Sequence[str]]) -> Any:
    """A table of text columns in the session of ``frame``."""
    session = frame.session if name(frame) == "SQLFrame" else frame.sparkSession
    schema = ", ".join(f"{new} string" for new in columns)
    return session.createDataFrame(list(zip(*columns.values())), schema)
