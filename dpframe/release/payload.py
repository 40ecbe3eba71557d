"""Releases as bytes, as a ledger keeps them: the noisy integers and the keys that were released, the names and types of
the columns that were asked, and the answer as it would be written to a file. Nothing else.

Privacy: all of it was released or is public. Columns of an ``Enum`` are not kept: people make categories from data.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from dpframe.errors import LedgerError
from dpframe.frames.columns import Column, Ticks
from dpframe.mechanisms.base import Ints

_FORMAT = "dpframe release 2"
_FIRST = "dpframe release 1"  # of dpframe 0.1: no columns, no answer


@dataclass(frozen=True, slots=True)
class Payload:
    """What a ledger keeps of a release.

    Attributes
    ----------
    noisy : list of int64 arrays
    found : polars.DataFrame or None
        The keys that were found, in the engine's form.
    draw : str
    columns : tuple of Column or None
        Those that the plan was made for; None where they can't be kept (and of dpframe 0.1).
    table : polars.DataFrame or None
        The answer, as it is written to files; None where no file can hold it (and of dpframe 0.1).
    facts : dict
        The side-car's facts, without the ledger's head.
    """

    noisy: list[Ints]
    found: pl.DataFrame | None
    draw: str
    columns: tuple[Column, ...] | None = None
    table: pl.DataFrame | None = None
    facts: dict[str, Any] | None = None


def to_bytes(kept: Payload) -> bytes:
    """Write what was released: a line of JSON, little-endian int64 arrays, the found keys and the answer as Arrow IPC."""
    frames = [b"" if f is None else _ipc(f) for f in (kept.found, kept.table)]
    head = {
        "format": _FORMAT,
        "sizes": [len(x) for x in kept.noisy],
        "frames": [len(f) for f in frames],
        "draw": kept.draw,
        "columns": None if kept.columns is None else _written(kept.columns),
        "facts": kept.facts,
    }
    arrays = (np.ascontiguousarray(x, dtype="<i8").tobytes() for x in kept.noisy)
    return b"".join([json.dumps(head).encode(), b"\n", *arrays, *frames])


def from_bytes(payload: bytes) -> Payload:
    """Read what :func:`to_bytes` wrote. LedgerError for anything else.

    Payloads of dpframe 0.1 name no draw; theirs is a digest of the whole.
    """
    line, _, rest = payload.partition(b"\n")
    try:
        head = json.loads(line)
        if head["format"] not in (_FORMAT, _FIRST):
            raise ValueError
        noisy, at = [], 0
        for size in head["sizes"]:
            noisy.append(np.frombuffer(rest, dtype="<i8", count=size, offset=at).astype(np.int64))
            at += 8 * size
        draw = str(head.get("draw") or hashlib.sha256(payload).hexdigest())
        if head["format"] == _FIRST:
            return Payload(noisy, pl.read_ipc(io.BytesIO(rest[at:])) if head["keys"] else None, draw)
        frames: list[pl.DataFrame | None] = []
        for size in head["frames"]:
            frames.append(pl.read_ipc(io.BytesIO(rest[at : at + size])) if size else None)
            at += size
        return Payload(noisy, frames[0], draw, _read(head["columns"]), frames[1], head["facts"])
    except (ValueError, KeyError, TypeError, IndexError, pl.exceptions.PolarsError):
        raise LedgerError(
            "A stored release can't be read by this version of dpframe.",
            hint="pip install the version in its row",
        ) from None


def _ipc(frame: pl.DataFrame) -> bytes:
    """As Arrow IPC, by PyArrow in this thread: a child that is forked later would lack those that Polars would start."""
    buffer = io.BytesIO()
    try:
        table = frame.to_arrow()
    except pa.ArrowException:  # integers of 128 bits, which are Polars' own
        frame.write_ipc(buffer)
        return buffer.getvalue()
    with pa.ipc.new_file(buffer, table.schema) as file:
        file.write_table(table)
    return buffer.getvalue()


# ---- columns ----


def _written(columns: Sequence[Column]) -> list[Any] | None:
    """Columns as JSON; None where one has a name or a type that JSON does not give back."""
    found = [_column(c) for c in columns]
    return None if None in found else found


def _column(c: Column) -> dict[str, Any] | None:
    if type(c.name) not in (str, int) or c.kind == "enum":
        return None
    native = _native(c.native)
    told = {"name": c.name, "kind": c.kind, "text": c.text, "nullable": c.nullable, "native": native}
    return None if native is None else told


def _native(native: Any) -> Any:
    """A column's own type as JSON: [which, what]; None where there is no telling."""
    if native is None:
        return ["none", None]
    if isinstance(native, Column):
        inner = _column(native)
        return None if inner is None else ["column", inner]
    if isinstance(native, Ticks):
        return ["ticks", native.time_zone]
    if isinstance(native, pd.PeriodDtype | pd.IntervalDtype):
        return ["pandas", str(native)]
    try:
        empty = pl.DataFrame(schema={"x": native})
        if "Enum" in repr(empty.schema):
            return None
        buffer = io.BytesIO()
        empty.write_ipc(buffer)
        return ["polars", base64.b64encode(buffer.getvalue()).decode()]
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        return None


def _read(columns: list[Any] | None) -> tuple[Column, ...] | None:
    return None if columns is None else tuple(map(_column_of, columns))


def _column_of(told: dict[str, Any]) -> Column:
    which, what = told["native"]
    native: Any = None
    if which == "column":
        native = _column_of(what)
    elif which == "ticks":
        native = Ticks(what)
    elif which == "pandas":
        native = pd.api.types.pandas_dtype(what)
    elif which == "polars":
        native = pl.read_ipc(io.BytesIO(base64.b64decode(what))).schema["x"]
    return Column(told["name"], told["kind"], told["text"], told["nullable"], native)
