"""Releases as bytes, as a ledger keeps them: the noisy integers and the keys that were released, nothing else."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import polars as pl

from dpframe.errors import LedgerError
from dpframe.mechanisms.base import Ints

_FORMAT = "dpframe release 1"


def to_bytes(noisy: list[Ints], found: pl.DataFrame | None) -> bytes:
    """Write what was released: a line of JSON, little-endian int64 arrays, the found keys as Arrow IPC."""
    keys = b""
    if found is not None:
        buffer = io.BytesIO()
        found.write_ipc(buffer)
        keys = buffer.getvalue()
    sizes = [len(x) for x in noisy]
    head = json.dumps({"format": _FORMAT, "sizes": sizes, "keys": found is not None})
    return b"".join(
        [head.encode(), b"\n", *(np.ascontiguousarray(x, dtype="<i8").tobytes() for x in noisy), keys]
    )


def from_bytes(payload: bytes) -> tuple[list[Ints], Any]:
    """Read what :func:`to_bytes` wrote. LedgerError for anything else."""
    line, _, rest = payload.partition(b"\n")
    try:
        head = json.loads(line)
        if head["format"] != _FORMAT:
            raise ValueError
        noisy, at = [], 0
        for size in head["sizes"]:
            noisy.append(np.frombuffer(rest, dtype="<i8", count=size, offset=at).astype(np.int64))
            at += 8 * size
        return noisy, pl.read_ipc(io.BytesIO(rest[at:])) if head["keys"] else None
    except (ValueError, KeyError, TypeError, pl.exceptions.PolarsError):
        raise LedgerError(
            "A stored release can't be read by this version of dpframe. Hint: pip install the version in its row"
        ) from None
