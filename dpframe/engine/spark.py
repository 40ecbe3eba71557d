"""What narwhals lacks for PySpark's DataFrames and for SQLFrame's, which have the same functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

name = "SQLFrame"


def refused(frame: Any) -> str | None:
    dialect = type(frame).__module__.split(".")[1]
    return None if dialect == "duckdb" else f"a SQLFrame DataFrame on {dialect}"
