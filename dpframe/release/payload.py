"""Releases as bytes, as a ledger keeps them: the noisy integers and the keys that were released, nothing else."""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any

import numpy as np
import polars as pl

from dpframe.errors import LedgerError
from dpframe.mechanisms.base import Ints

_FORMAT = "dpframe release 1"


def to_bytes(noisy: list[Ints], found: pl.DataFrame | None, draw: str) -> bytes:
    """Write what was released: a line of JSON, little-endian int64 arrays, the found keys as Arrow IPC."""
    keys = b""
    if found is not None:
        buffer = io.BytesIO()
        found.write_ipc(buffer)
        keys = buffer.getvalue()
    sizes = [len(x) for x in noisy]
    head = json.dumps({"format": _FORMAT, "sizes": sizes, "keys": found is not None, "draw": draw})
    return b"".join(
        [head.encode(), b"\n", *(np.ascontiguousarray(x, dtype="<i8").tobytes() for x in noisy), keys]
    )


def from_bytes(payload: bytes) -> tuple[list[Ints], Any, str]:
    """Read what :func:`to_bytes` wrote: integers, found keys, draw. LedgerError for anything else.

    Payloads of dpframe 0.1 name no draw; theirs is a digest of the whole.
    """
    line, _, rest = payload.partition(b"\n")
    try:
        head = json.loads(line)
        if head["format"] != _FORMAT:
            raise ValueError
        noisy, at = [], 0
        for size in head["sizes"]:
            noisy.append(np.frombuffer(rest, dtype="<i8", count=size, offset=at).astype(np.int64))
            at += 8 * size
        found = pl.read_ipc(io.BytesIO(rest[at:])) if head["keys"] else None
        return noisy, found, str(head.get("draw") or hashlib.sha256(payload).hexdigest())
    except (ValueError, KeyError, TypeError, pl.exceptions.PolarsError):
        raise LedgerError(
            "A stored release can't be read by this version of dpframe. Hint: pip install the version in its row"
        ) from None
