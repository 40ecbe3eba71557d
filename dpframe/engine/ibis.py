"""Ibis tables on DuckDB: what they stand for, as a relation on their connection."""

from __future__ import annotations

from typing import Any

import ibis

from dpframe.engine import duckdb
from dpframe.engine.duckdb import call, texts

__all__ = ["call", "name", "opened", "refused", "texts"]

name = "Ibis"


def refused(frame: Any) -> str | None:
    """Whether a backend's numbers behave as others' do is checked for DuckDB only."""
    backend = frame.get_backend().name
    return None if backend == "duckdb" else f"Ibis tables on {backend}"


def opened(frame: Any) -> tuple[Any, list[tuple[str, str, bool]]]:
    """The relation of its SQL. A question for no row makes the tables in memory known to the connection."""
    frame.limit(0).count().execute()
    return duckdb.opened(frame.get_backend().con.sql(ibis.to_sql(frame, dialect="duckdb")))
