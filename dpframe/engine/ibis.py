"""What narwhals lacks for Ibis tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ibis
import pyarrow as pa
from ibis import udf

name = "Ibis"


@udf.scalar.builtin(name="md5")
def _md5(x: str) -> str: ...  # type: ignore[empty-body]


@udf.scalar.builtin(name="epoch_us", signature=(("timestamp",), "int64"))
def _micros(x): ...  # type: ignore[no-untyped-def]


@udf.scalar.builtin(name="epoch_ns", signature=(("timestamp",), "int64"))
def _nanos(x): ...  # type: ignore[no-untyped-def]


_FUNCTIONS: dict[str, Any] = {"md5": _md5, "micros": _micros, "nanos": _nanos}


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
