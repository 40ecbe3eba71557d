"""What a cell of a column without a type is: as a listed key, as a unit's id, and as one of different values."""

from __future__ import annotations

import datetime as dt
import enum
import ipaddress
import math
import uuid
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

_DAY = 86_400 * 10**18
_SECOND = {"s": 10**18, "ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 10**3, "as": 1}
_SECOND |= {"m": 60 * 10**18, "h": 3_600 * 10**18, "D": _DAY, "W": 7 * _DAY}
_EPOCH = dt.datetime(1970, 1, 1)


class Cell(NamedTuple):
    """A cell that is there: ``kind`` is the name of its type, ``form`` is equal for equal cells of any type.

    Ids and different values are compared by ``form`` (1 and 1.0 are one id), keys by both (1, 1.0 and True are three).
    """

    kind: str
    form: bytes


class NoIdentity(Exception):
    """Of a cell whose type is not in the table: it is no key, no id, and none of different values."""


def known(cell: Any) -> Cell | None:
    """What a cell is; None for a missing one (None, NA, NaT, NaN). NoIdentity for types that are not in the table.

    Privacy: the form depends on the cell alone, and different cells have different forms: none goes through a float, a
    unit of time or a text that holds less than the cell does.
    """
    if cell is None or cell is pd.NA or cell is pd.NaT:
        return None
    if isinstance(cell, enum.Enum):
        return known(cell.value)
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return None if np.isnat(cell) else _numpy_time(cell)
    if isinstance(cell, np.generic):
        cell = cell.item()
        if isinstance(cell, np.longdouble):  # no type of Python's holds it
            cell = Fraction(*cell.as_integer_ratio()) if np.isfinite(cell) else float(cell)
    for types, kind, form in _TABLE:
        if isinstance(cell, types):
            made = form(cell)
            return None if made is None else Cell(kind or type(cell).__name__, made)
    raise NoIdentity


def as_key(cell: Any, *, text: bool) -> tuple[str, bytes] | None:
    """What a listed key and a cell are compared by; None for a missing one.

    A day is one key whether written as a date or as a datetime at midnight, and, when the listed keys are
    ``text``, as its ISO text.
    """
    found = known(cell)
    if found is not None and found.kind == "datetime":
        ticks = int(found.form.partition(b":")[2])
        if ticks % _DAY == 0:
            found = Cell("date", b"date:%d" % (ticks // _DAY))
    if found is not None and found.kind == "date" and text:
        day = _EPOCH.date() + dt.timedelta(int(found.form.partition(b":")[2]))
        return known(day.isoformat())
    return found


def is_missing(cell: Any) -> bool:
    """Whether a cell counts as missing. Never raises: what can't say so is present."""
    try:
        return known(cell) is None
    except Exception:
        return False


def identity(cell: Any) -> bytes | None:
    """What an id or one of different values is compared by; None for a cell that is missing or has none. Never raises."""
    try:
        found = known(cell)
    except Exception:
        return None
    return None if found is None else found.form


def _number(v: int | float | Decimal | Fraction) -> bytes | None:
    """Sign, digits without zeros at the end, and power of ten; of other fractions numerator and denominator.

    No power of ten is ever written out: that of a Decimal may have a billion zeros.
    """
    if isinstance(v, Decimal):
        sign, digits, power = v.as_tuple()
        if not isinstance(power, int):  # a letter: infinite, or NaN of two kinds
            return None if power != "F" else b"num:-inf" if sign else b"num:inf"
        return _of_digits("-" if sign else "", "".join(map(str, digits)), power)
    if isinstance(v, float) and not math.isfinite(v):
        return None if v != v else b"num:inf" if v > 0 else b"num:-inf"
    power = 0
    if isinstance(v, Fraction | float):
        over, under = v.as_integer_ratio()
        rest, twos, fives = under, (under & -under).bit_length() - 1, 0
        rest >>= twos
        while rest % 5 == 0:
            rest, fives = rest // 5, fives + 1
        if rest != 1:
            return b"num:%x/%x" % (over, under)
        power = -max(twos, fives)
        v = over * 2 ** (-power - twos) * 5 ** (-power - fives)
    exact = Decimal(int(v)).as_tuple()
    return _of_digits("-" if exact.sign else "", "".join(map(str, exact.digits)), power)


def _of_digits(sign: str, digits: str, power: int) -> bytes:
    short = digits.lstrip("0").rstrip("0")
    if not short:
        return b"num:0"
    power += len(digits) - len(digits.rstrip("0"))
    return f"num:{sign}{short}E{power}".encode()


def _complex(v: complex) -> bytes | None:
    if v.imag == 0:
        return _number(v.real)
    parts = (_number(v.real), _number(v.imag))
    return None if None in parts else _joined(b"complex", parts)


def _text(v: str) -> bytes:
    """UTF-8; of what is not valid Unicode the bytes that no valid text has."""
    return b"str:" + str.encode(v, "utf-8", "surrogatepass")


def _numpy_time(v: Any) -> Cell:
    name, many = np.datetime_data(v.dtype)
    moment, count = isinstance(v, np.datetime64), int(v.astype(np.int64)) * many
    if name in ("Y", "M"):
        months = count * (12 if name == "Y" else 1)
        if not moment:
            return Cell("timedelta", b"months:%d" % months)
        count, name = _days(*divmod(months, 12)), "D"
    if name not in _SECOND:  # a bare number
        return Cell("timedelta", b"steps:%d" % count)
    ticks = count * _SECOND[name]
    return Cell("datetime", b"datetime:%d" % ticks) if moment else Cell("timedelta", b"duration:%d" % ticks)


def _days(years: int, month: int) -> int:
    """Days from 1970 to the first of a month (0 to 11), so many years after 1970."""
    y = years + 1970 - (month < 2)
    cycle, of = divmod(y, 400)
    return cycle * 146_097 + of * 365 + of // 4 - of // 100 + (153 * ((month - 2) % 12) + 2) // 5 - 719_468


def _moment(v: dt.datetime) -> bytes:
    if isinstance(v, pd.Timestamp):  # its own ticks, those of UTC if it has a zone
        ticks = _own(v)
    elif v.tzinfo is not None:
        ticks = _micros(v - dt.datetime(1970, 1, 1, tzinfo=dt.UTC))
    else:
        ticks = _micros(v - _EPOCH)
    return b"%s:%d" % (b"datetime" if v.tzinfo is None else b"instant", ticks)


def _own(v: Any) -> int:
    """A Timestamp's or Timedelta's whole number of its own unit."""
    return int(v._value) * _SECOND[v.unit]


def _micros(v: dt.timedelta) -> int:
    return v // dt.timedelta(microseconds=1) * _SECOND["us"]


def _duration(v: dt.timedelta) -> bytes:
    ticks = _own(v) if isinstance(v, pd.Timedelta) else _micros(v)
    return b"duration:%d" % ticks


def _clock(v: dt.time) -> bytes:
    offset = v.utcoffset()
    zone = "" if offset is None else f"{v.tzinfo!r}{offset!r}"
    return b"time:" + f"{v.replace(tzinfo=None, fold=0).isoformat()}{zone}".encode()


def _members(kind: bytes, cells: Any, *, sort: bool = False) -> bytes:
    forms = [b"missing" if c is None else c.form for c in map(known, cells)]
    return _joined(kind, sorted(forms) if sort else forms)


def _joined(kind: bytes, forms: Any) -> bytes:
    return kind + b":" + b"".join(b"%d:%s" % (len(f), f) for f in forms)


_ADDRESSES = (ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network)
_Row = tuple[Any, str | None, Callable[[Any], bytes | None]]
_TABLE: tuple[_Row, ...] = (  # types, their kind (None: the name of the type), and the form of equal cells
    (str, "str", _text),
    (bool, "bool", lambda v: b"bool:%d" % v),
    (int, "int", _number),
    (float, "float", _number),
    (Decimal, "Decimal", _number),
    (Fraction, "Fraction", _number),
    (complex, "complex", _complex),
    (bytes, "bytes", lambda v: b"bytes:" + v),
    (dt.datetime, "datetime", _moment),
    (dt.date, "date", lambda v: b"date:%d" % (v - _EPOCH.date()).days),
    (dt.timedelta, "timedelta", _duration),
    (dt.time, "time", _clock),
    (uuid.UUID, "UUID", lambda v: b"uuid:" + v.bytes),
    (_ADDRESSES, None, lambda v: f"ip:{type(v).__name__}:{v}".encode()),
    (PurePath, None, lambda v: b"path:" + repr(v).encode("utf-8", "surrogatepass")),
    (pd.Interval, "Interval", lambda v: _members(b"interval:" + v.closed.encode(), (v.left, v.right))),
    (pd.Period, "Period", lambda v: f"period:{v.freqstr}:{v.ordinal}".encode()),
    (tuple, "tuple", lambda v: _members(b"tuple", v)),
    (frozenset, "frozenset", lambda v: _members(b"frozenset", v, sort=True)),
)
