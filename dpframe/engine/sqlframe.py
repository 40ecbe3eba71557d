"""SQLFrame's DataFrames on DuckDB: the SQL that they stand for, as a relation on their connection.

SQLFrame copies and prints its whole query at every step, which takes minutes for the queries made here.
"""

from __future__ import annotations

from typing import Any

from dpframe.engine import duckdb
from dpframe.engine.duckdb import call, texts

__all__ = ["call", "name", "opened", "refused", "texts"]

name = "SQLFrame"


def refused(frame: Any) -> str | None:
    dialect = type(frame).__module__.split(".")[1]
    return None if dialect == "duckdb" else f"SQLFrame DataFrames on {dialect}"


def opened(frame: Any) -> tuple[Any, list[tuple[str, str, bool]]]:
    return duckdb.opened(frame.session._conn.sql(frame.sql(dialect="duckdb", optimize=False)))
