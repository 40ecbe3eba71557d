"""What narwhals lacks for Ibis tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ibis
import pyarrow as pa
from ibis import udf

name = "Ibis"


def _builtin(function: str, takes: str, gives: str) -> Any:
    """A function that DuckDB has and Ibis does not name."""

    def declared(x): ...  # type: ignore[no-untyped-def]

    return udf.scalar.builtin(name=function, signature=((takes,), gives))(declared)


_FUNCTIONS = {
    "md5": _builtin("md5", "string", "string"),
    "micros": _builtin("epoch_us", "timestamp", "int64"),
    "nanos": _builtin("epoch_ns", "timestamp", "int64"),
}


def refused(frame: Any) -> str | None:
    """Whether a backend's numbers behave as others' do is checked for DuckDB only."""
    backend = frame.get_backend().name
    return None if backend == "duckdb" else f"Ibis tables on {backend}"


def native(frame: Any) -> Any:
    """The table, with UUIDs as text."""
    uuids = [c for c, t in frame.schema().items() if t.is_uuid()]
    return frame.mutate(**{c: frame[c].cast("string") for c in uuids}) if uuids else frame


def call(frame: Any, function: str, columns: Mapping[str, str]) -> Any:
    """Add columns: a function of one column each."""
    return frame.mutate(**{new: _FUNCTIONS[function](frame[old]) for new, old in columns.items()})


def texts(frame: Any, columns: Mapping[str, Sequence[str]]) -> Any:
    """A table of text columns that can be joined to ``frame``."""
    return ibis.memtable(pa.table({new: pa.array(v, pa.string()) for new, v in columns.items()}))
