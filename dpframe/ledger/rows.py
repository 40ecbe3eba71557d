"""Rows of the log: exact text, chained by hashes.

A row's body is canonical JSON; its hash covers the hash of the row before and every byte of the body,
so that no row can be changed, dropped, added or moved without every later hash changing. Rationals are
written as "p/q"; floats are refused.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from dpframe.accounting.claims import Head
from dpframe.errors import Hint, LedgerError

GENESIS = "0" * 64
KINDS = ("open", "charge", "retry", "failure", "release")


@dataclass(frozen=True, slots=True)
class Row:
    """One row as it is stored."""

    sequence: int
    kind: str
    body: str
    prev: str
    hash: str

    @property
    def head(self) -> Head:
        return Head(self.sequence, self.hash)


def broken(path: str, what: str, hint: Hint) -> LedgerError:
    """The refusal of a ledger that can't be trusted or written."""
    return LedgerError(f"The ledger {path} {what}. Nothing was released.", hint=hint)


class Broken(Exception):
    """A row is not what it has to be; carries the words for the LedgerError."""


def make(before: Head | None, kind: str, content: dict[str, Any]) -> Row:
    """The row that follows ``before``."""
    sequence = 0 if before is None else before.sequence + 1
    prev = GENESIS if before is None else before.hash
    body = json.dumps({"kind": kind, "sequence": sequence, **content}, sort_keys=True, separators=(",", ":"))
    return Row(sequence, kind, body, prev, _hash(prev, body))


def follow(before: Head | None, raw: tuple[Any, ...]) -> tuple[Row, dict[str, Any]]:
    """Check that ``raw`` is the row after ``before``, and read it."""
    sequence = 0 if before is None else before.sequence + 1
    prev = GENESIS if before is None else before.hash
    if not all(isinstance(x, t) for x, t in zip(raw, (int, str, str, str, str))) or raw[0] != sequence:
        raise Broken(f"has no row {sequence} where one belongs")
    row = Row(*raw)
    if row.prev != prev or row.hash != _hash(prev, row.body):
        raise Broken(f"was changed: row {sequence} does not continue the chain of hashes")
    content = json.loads(row.body)
    if content["sequence"] != sequence or content["kind"] != row.kind or row.kind not in KINDS:
        raise Broken(f"has a row {sequence} of an unknown kind")
    return row, content


def _hash(prev: str, body: str) -> str:
    return hashlib.sha256(f"{prev}\n{body}".encode()).hexdigest()


def digest(payload: bytes) -> str:
    """The name under which a stored release is kept."""
    return hashlib.sha256(payload).hexdigest()


# ---- exact values ----


def encode(value: Any) -> Any:
    """A dataclass of rationals, text, whole numbers and tuples as JSON. Fields at their default are left out."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, tuple):
        return [encode(v) for v in value]
    if dataclasses.is_dataclass(value):
        fields = [(f, getattr(value, f.name)) for f in dataclasses.fields(value)]
        return {f.name: encode(v) for f, v in fields if f.default is dataclasses.MISSING or v != f.default}
    raise TypeError(f"A {type(value).__name__} has no exact text.")


def decode(value: Any, kind: Any) -> Any:
    """What ``encode`` made of a ``kind`` (a type, as in annotations)."""
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if value is None and NoneType in kinds:
        return None
    for k in kinds:
        if k is Fraction and isinstance(value, str):
            return Fraction(value)
        if get_origin(k) is tuple and isinstance(value, list):
            return tuple(decode(v, get_args(k)[0]) for v in value)
        if dataclasses.is_dataclass(k) and isinstance(value, dict):
            hints = _hints(k)  # type: ignore[arg-type]
            if not value.keys() <= hints.keys():
                raise Broken("was written by another version of dpframe")
            return k(**{name: decode(v, hints[name]) for name, v in value.items()})  # type: ignore[operator]
        if k in (str, int, bool) and type(value) is k:
            return value
    raise Broken("holds a value that is none of this version's")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def write_time(t: dt.datetime) -> str:
    return t.astimezone(dt.UTC).isoformat(timespec="microseconds")


def read_time(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)
