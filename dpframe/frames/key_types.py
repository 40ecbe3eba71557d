"""How a listed key meets a column's dtype: exactly, or not at all."""

from __future__ import annotations

import datetime as dt
import enum
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from dpframe.errors import Arg, Call, Hint, InputError, InPython, did_you_mean
from dpframe.frames.cells import NoIdentity, as_key
from dpframe.frames.columns import Column, Ticks

CODED = ("categorical", "interval", "object")  # cells are looked up one by one, not compared by dtype


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One grouping column of a key table.

    Attributes
    ----------
    name : hashable
    kind : str
        As in :class:`~dpframe.frames.contract.Column`.
    engine : polars.Series
        What the engine compares with: the column's own dtype, or Int64 codes of ``distinct``.
    distinct : dict or None
        For looked-up kinds: each distinct key, as :func:`~dpframe.frames.cells.as_key` has it -> its code.
    values : tuple or None
        The keys as Python values; None for a range.
    text : bool
        For looked-up kinds: whether the keys are text.
    """

    name: Hashable
    kind: str
    engine: pl.Series = field(repr=False, compare=False)
    distinct: Mapping[Any, int] | None = field(repr=False, compare=False, default=None)
    values: tuple[Any, ...] | None = field(repr=False, compare=False, default=None)
    text: bool = False

    def code(self, cell: Any) -> int:
        """The code of a cell: -1 for a value that is not listed, -2 for a missing one. Never raises.

        Privacy: a cell of any type, hashable or not, ends in one of these three without a trace.
        """
        assert self.distinct is not None
        try:
            key = as_key(cell, text=self.text)
            return -2 if key is None else self.distinct.get(key, -1)
        except Exception:
            return -1


def key_column(column: Column, values: Sequence[Any]) -> KeyColumn:
    if column.kind in ("other", "time"):
        sparse = column.text.startswith("Sparse[")
        raise InputError(
            f"{column.name!r} is {column.text}, which can't be a grouping column.",
            hint=f"df[{column.name!r}].sparse.to_dense()" if sparse else "make a text column of it",
        )
    if isinstance(values, range) and column.kind == "int":
        series = pl.Series(np.arange(values.start, values.stop, values.step, dtype=np.int64))
        return KeyColumn(column.name, column.kind, _fit(column, series, values))
    plain = [to_python(v) for v in values]
    _same_type(column, plain)
    if column.kind in CODED:
        return _coded(column, plain)
    converted = [None if v is None else _convert(column, v) for v in plain]
    ticks = column.kind in ("datetime", "duration")
    try:
        native = _engine_dtype(column, converted)
        series = pl.Series(converted, dtype=pl.Int64 if ticks else native, strict=True)
        series = series.cast(native) if ticks else series
    except (TypeError, OverflowError, UnicodeError, pl.exceptions.PolarsError):
        raise _unfit(column, next((v for v in plain if v is not None), None)) from None
    return KeyColumn(column.name, column.kind, series, None, tuple(plain))


def _engine_dtype(column: Column, values: list[Any]) -> Any:
    if column.kind == "period" or isinstance(column.native, Ticks):
        return pl.Int64
    if column.kind == "null":
        dtype = pl.Series(values).dtype if any(v is not None for v in values) else pl.Null
        if dtype == pl.Object:
            raise TypeError  # no column can be cast to it
        return dtype
    return _ENGINE.get(column.kind) or column.native


_ENGINE = {"string": pl.String, "enum": pl.String}


def _fit(column: Column, series: pl.Series, values: Sequence[Any]) -> pl.Series:
    native = column.native
    try:
        return series.cast(native, strict=True)
    except pl.exceptions.PolarsError:
        raise _unfit(column, values[0] if len(values) else None) from None


def to_python(v: Any) -> Any:
    """Missing values to None, library scalars to Python's."""
    if type(v) in (int, str, bool):
        return v
    if v is None or v is pd.NA or v is pd.NaT:
        return None
    if isinstance(v, np.datetime64 | np.timedelta64):
        return None if np.isnat(v) else _pandas_time(v)
    if isinstance(v, np.generic):
        v = v.item()
    if isinstance(v, float):
        return None if math.isnan(v) else v + 0.0  # -0.0 and 0.0 are one group
    if isinstance(v, enum.Enum):
        return to_python(v.value)
    if isinstance(v, str):
        return str(v)
    return v


def _pandas_time(v: Any) -> Any:
    """A Timestamp or Timedelta, where one holds the same; else as it is, which fits no column with a type."""
    try:
        held = pd.Timestamp(v) if isinstance(v, np.datetime64) else pd.Timedelta(v)
        return held if as_key(held, text=False) == as_key(v, text=False) else v
    except (ValueError, OverflowError):  # out of bounds is a ValueError
        return v


def _same_type(column: Column, values: list[Any]) -> None:
    kinds = {
        "number" if type(v) in (int, float, Decimal) else type(v).__name__ for v in values if v is not None
    }
    if kinds <= {"date", "datetime", "Timestamp"} or kinds <= {"timedelta", "Timedelta"}:
        return
    if len(kinds) > 1:
        raise InputError(
            Arg("keys"),
            f" of {column.name!r} mixes {' and '.join(sorted(kinds))}; a group must be one value of one type.",
            hint=f"write every key as the column has it ({column.text}).",
        )


def _convert(column: Column, v: Any) -> Any:
    """The Python value that Polars turns into the column's dtype, exactly; else InputError."""
    kind = column.kind
    if kind == "int":
        if isinstance(v, int) and not isinstance(v, bool):
            return v
        if isinstance(v, float) and v.is_integer():
            return int(v)
    elif kind == "float":
        if isinstance(v, int | float) and not isinstance(v, bool):
            held = float(np.float32(v)) if column.native == pl.Float32 else float(v)
            if held == v:
                return held
    elif kind == "bool":
        if isinstance(v, bool):
            return v
    elif kind == "string":
        if isinstance(v, str):
            return v
    elif kind == "enum":
        if isinstance(v, str) and v in set(column.native.categories):
            return v
        if isinstance(v, str):
            raise InputError(
                Arg("keys"),
                f" of {column.name!r} lists {v!r}, which its {column.text} does not have. {did_you_mean(v, column.native.categories)}",
            )
    elif kind == "decimal":
        if isinstance(v, int | Decimal) and not isinstance(v, bool):
            exact = Decimal(v)
            if exact.is_finite() and -exact.as_tuple().exponent <= column.native.scale:  # type: ignore[operator]
                return exact
    elif kind == "date":
        d = _as_datetime(v)
        if d is not None and d == d.replace(hour=0, minute=0, second=0, microsecond=0) and d.tzinfo is None:
            return d.date()
    elif kind == "datetime":
        d = _as_datetime(v)
        if d is not None and (d.tzinfo is None) == (column.native.time_zone is None):
            ticks = _ticks(pd.Timestamp(d), column.native.time_unit)
            if ticks is not None:
                return ticks
    elif kind == "duration":
        if isinstance(v, dt.timedelta):
            ticks = _ticks(pd.Timedelta(v), column.native.time_unit)
            if ticks is not None:
                return ticks
    elif kind == "period":
        ordinal = _period_ordinal(column, v)
        if ordinal is not None:
            return ordinal
    elif kind == "null":
        return v
    raise _unfit(column, v)


def _as_datetime(v: Any) -> dt.datetime | None:
    if isinstance(v, dt.datetime):
        return v
    if isinstance(v, dt.date):
        return dt.datetime(v.year, v.month, v.day)
    if isinstance(v, str):
        try:
            return dt.datetime.fromisoformat(v)
        except ValueError:
            return None
    return None


def _ticks(v: Any, unit: str) -> int | None:
    """A Timestamp or Timedelta as a whole number of the column's unit; None if it falls between two."""
    v = v.tz_convert("UTC").tz_localize(None) if getattr(v, "tzinfo", None) is not None else v
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    # Exact: the value's own unit may be coarser or finer than the column's.
    own = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[v.unit]
    ticks, rest = divmod(int(v._value) * per_second, own)
    return None if rest else ticks


def _period_ordinal(column: Column, v: Any) -> int | None:
    freq = column.native.freq
    if isinstance(v, str):
        try:
            return int(pd.Period(v, freq=freq).ordinal)
        except ValueError:
            return None
    if isinstance(v, pd.Period) and v.freq == freq:
        return int(v.ordinal)
    return None


def _unfit(column: Column, v: Any) -> InputError:
    keys, cut = partial(Arg, "keys"), Call("list", Call("pd.IntervalIndex.from_breaks", [0, 18, 65]))
    hints: dict[str, Hint] = {
        "int": keys([1, 2, 3]),
        "float": keys([0.5, 1.0]),
        "bool": keys([True, False]),
        "string": keys(["a", "b"]),
        "enum": keys("declared"),
        "date": (keys([dt.date(2026, 1, 31)]), " or ", keys(["2026-01-31"])),
        "datetime": (
            keys([dt.datetime(2026, 1, 31, 12)]),
            " (with tzinfo if the column has a time zone)",
        ),
        "period": (keys(["2026-01", "2026-02"]), InPython(" or pd.Period values of the column's frequency")),
        "decimal": InPython("keys=[Decimal('1.50')]"),
        "interval": (keys(cut), ", with the edges that you gave to pd.cut"),
        "categorical": (keys(cut), " for pd.cut, else the categories' values"),
        "duration": InPython("keys=[datetime.timedelta(days=1)]"),
    }
    return InputError(
        f"The key {v!r} ({type(v).__name__}) does not fit {column.name!r}, which is {column.text}; no row could"
        " match it exactly.",
        hint=hints.get(column.kind, keys([...])),
    )


def _coded(column: Column, values: list[Any]) -> KeyColumn:
    """Keys for cells that are looked up by type and value.

    Of a Categorical, the dtype of the categories' values still says what can match.
    """
    inner = column.native if column.kind == "categorical" else column
    if inner.kind == "interval":
        values = [_interval(column, inner, v) for v in values]
    elif inner.kind in ("bool", "int", "float", "string"):
        values = [None if v is None else _convert(inner, v) for v in values]
    text = any(isinstance(v, str) for v in values)
    distinct: dict[Any, int] = {}
    codes: list[int | None] = []
    for v in values:
        try:
            key = as_key(v, text=text)
            codes.append(None if key is None else distinct.setdefault(key, len(distinct)))
        except (NoIdentity, OverflowError):
            raise _unfit(column, v) from None
    engine = pl.Series(codes, dtype=pl.Int64)
    return KeyColumn(column.name, column.kind, engine, distinct, tuple(values), text)


def _interval(column: Column, inner: Column, v: Any) -> Any:
    if v is None or (isinstance(v, pd.Interval) and v.closed == inner.native.closed):
        return v
    raise _unfit(column, v)
