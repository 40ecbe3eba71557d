"""Public group keys: what may be listed, and how it meets a column's dtype.

Privacy: the groups of a release are decided before the data is touched, from literals or from
something the caller has declared public. Keys taken from the frame would reveal which groups exist,
so a Series, array, Index or frame is refused unless wrapped in :func:`public`.
"""

from __future__ import annotations

import datetime as dt
import enum
import hashlib
import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl

from dpframe.errors import InputError, did_you_mean, typed

if TYPE_CHECKING:
    from dpframe.schema import Column

MOST_KEYS = 10_000_000
CODED = ("categorical", "interval", "object")  # cells are looked up one by one, not compared by dtype


@dataclass(frozen=True, slots=True)
class Public:
    """A marker: the caller declares that these values do not come from the protected data."""

    values: Any = field(repr=False)


def public(values: Any) -> Public:
    """Declare that a Series, Index, array or frame of keys is public.

    Write it only for values that would be the same whatever people the data describe: a code book,
    a calendar, the categories of a questionnaire. ``df["city"].unique()`` is not public: it tells
    which cities occur.

    Parameters
    ----------
    values : Series, Index, array, list, or a frame with one column per grouping column

    Examples
    --------
    >>> import dpframe as dp, pandas as pd
    >>> codebook = pd.DataFrame({"icd": ["A00", "A01"]})
    >>> dp.public(codebook["icd"])
    Public()
    """
    return Public(values)


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One grouping column of a key table.

    Attributes
    ----------
    name : hashable
    kind : str
        As in :class:`~dpframe.schema.Column`.
    engine : polars.Series
        What the engine compares with: the column's own dtype, or Int64 codes of ``distinct``.
    distinct : dict or None
        For looked-up kinds: (type tag, value) of each distinct key -> its code.
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
            plain = to_python(cell)
            return -2 if plain is None else self.distinct.get(tag(plain, text=self.text), -1)
        except Exception:
            return -1


@dataclass(frozen=True, slots=True)
class KeyTable:
    """The listed groups, in the order in which they are released."""

    columns: tuple[KeyColumn, ...]
    size: int
    fingerprint: str

    @property
    def names(self) -> tuple[Hashable, ...]:
        return tuple(c.name for c in self.columns)

    def rows(self) -> list[Any]:
        """The keys in order: values of one column, tuples of several."""
        lists = [c.values if c.values is not None else c.engine.to_list() for c in self.columns]
        return list(lists[0]) if len(lists) == 1 else list(zip(*lists))


def key_table(by: tuple[Hashable, ...], types: tuple[Column, ...], keys: Any) -> KeyTable:
    """Read ``keys=`` for the grouping columns ``by``.

    Raises
    ------
    InputError
        For values that came from an array or frame without :func:`public`, sets, duplicates, mixed
        types, and keys that the column's dtype can't hold exactly.
    """
    listed = _columns_of_values(by, types, keys)
    size = len(listed[0])
    columns = tuple(_key_column(t, v) for t, v in zip(types, listed))
    table = pl.DataFrame({f"k{i}": c.engine for i, c in enumerate(columns)})
    hashes = table.hash_rows(seed=1)
    if hashes.n_unique() < size and table.is_duplicated().any():  # rows of different hashes differ
        where = int(table.is_duplicated().arg_true()[0])
        twice = tuple(v[where] for v in listed)
        raise InputError(
            f"keys= lists {twice[0] if len(twice) == 1 else twice!r} more than once; each group is released"
            " once. Hint: keys=list(dict.fromkeys(keys))"
        )
    return KeyTable(columns, size, _fingerprint(columns, hashes))


def _fingerprint(columns: tuple[KeyColumn, ...], hashes: pl.Series) -> str:
    """A digest of the listed keys in their order; looked-up keys count by type and value."""
    digest = hashlib.blake2b(hashes.to_numpy().tobytes(), digest_size=16)
    for c in columns:
        digest.update(
            repr([*c.distinct] if c.distinct is not None else None).encode("utf-8", "backslashreplace")
        )
    return digest.hexdigest()


def _columns_of_values(by: tuple[Hashable, ...], types: tuple[Column, ...], keys: Any) -> list[Sequence[Any]]:
    """Bring every accepted spelling to one sequence of values per grouping column."""
    if isinstance(keys, Public):
        return _unwrap(by, keys.values)
    if isinstance(keys, str) and keys == "declared":
        return _cross(by, [_declared(t) for t in types])
    if isinstance(keys, Mapping):
        return _from_mapping(by, types, keys)
    values = _literals(by, keys, "keys")
    if len(by) == 1:
        return [[v[0] if isinstance(v, tuple) and len(v) == 1 else v for v in values]]
    for v in values:
        if not isinstance(v, tuple | list) or len(v) != len(by):
            raise InputError(
                f"keys= for {len(by)} grouping columns must list tuples of {len(by)} values; got {v!r}. Hint:"
                f" keys=[({', '.join('...' for _ in by)})], or keys={{{by[0]!r}: [...], ...}} for every combination."
            )
    return [[v[i] for v in values] for i in range(len(by))]


def _from_mapping(by: tuple[Hashable, ...], types: tuple[Column, ...], keys: Mapping[Any, Any]) -> list[Any]:
    for name in keys:
        if name not in by:
            raise InputError(
                f"keys= has {name!r}, which is not a grouping column. {did_you_mean(str(name), map(str, by))}"
            )
    missing = [b for b in by if b not in keys]
    if missing:
        raise InputError(
            f"keys= lacks the grouping column {missing[0]!r}. Hint: keys={{{missing[0]!r}: [...]}}"
        )
    lists: list[Sequence[Any]] = []
    for b, t in zip(by, types):
        value = keys[b]
        if isinstance(value, Public):
            lists.append(_unwrap((b,), value.values)[0])
        elif isinstance(value, str) and value == "declared":
            lists.append(_declared(t))
        else:
            lists.append(_literals((b,), value, f"keys[{b!r}]"))
    return _cross(by, lists)


def _cross(by: tuple[Hashable, ...], lists: list[Sequence[Any]]) -> list[Sequence[Any]]:
    size = math.prod(len(x) for x in lists)
    if size > MOST_KEYS:
        raise InputError(
            f"keys= makes {size:,} combinations of {', '.join(map(repr, by))}; at most {MOST_KEYS:,} are held."
            " Hint: list the tuples that you need, or release each grouping column on its own."
        )
    if len(lists) == 1:
        return lists
    rows = list(itertools.product(*lists))
    return [[r[i] for r in rows] for i in range(len(lists))]


def _literals(by: tuple[Hashable, ...], keys: Any, what: str) -> Sequence[Any]:
    if isinstance(keys, type) and issubclass(keys, enum.Enum):
        return [member.value for member in keys]
    if isinstance(keys, range):
        if len(keys) > MOST_KEYS:
            raise _too_many(what, len(keys))
        return keys
    if isinstance(keys, set | frozenset):
        raise InputError(f"{what} is a set, which has no order to release groups in. Hint: sorted(keys)")
    if isinstance(keys, list | tuple):
        if len(keys) > MOST_KEYS:
            raise _too_many(what, len(keys))
        return keys
    if isinstance(keys, str):
        raise InputError(
            f"{what}={keys!r} is one string. Hint: keys=[{keys!r}], or keys='declared' for a pl.Enum column."
        )
    column = f"{by[0]!r}" if len(by) == 1 else "these columns"
    raise InputError(
        f"{what} is of type {type(keys).__name__}. Keys read from the data would reveal which groups exist, so"
        f" lists are typed, and anything else must be declared. Hint: keys=[...] with the values of {column},"
        " or keys=dp.public(...) if it comes from a public source such as a code book."
    )


def _too_many(what: str, n: int) -> InputError:
    return InputError(
        f"{what} has {n:,} values; at most {MOST_KEYS:,} are held. Hint: group by something coarser, or ask in parts"
    )


def _unwrap(by: tuple[Hashable, ...], values: Any) -> list[Sequence[Any]]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable | pl.LazyFrame):
        raise InputError(
            f"dp.public() takes a Series, Index, array, list or frame, not {typed(values)}. Hint:"
            " dp.public(codebook['icd'])"
        )
    if isinstance(values, pl.LazyFrame):
        values = values.collect()
    if isinstance(values, pd.DataFrame | pl.DataFrame):
        names: list[Any] = list(values.columns)
        table: Any = values
        for b in by:
            if names.count(b) != 1:
                raise InputError(
                    f"dp.public(frame) needs one column {b!r}. {did_you_mean(str(b), map(str, names))}"
                )
        return [_unwrap((b,), table[b])[0] for b in by]
    if isinstance(values, Mapping):
        return _cross(by, [_unwrap((b,), values[b])[0] for b in by])
    if len(by) > 1 and not isinstance(values, pd.MultiIndex):
        return _columns_of_values(by, (), list(values))
    if isinstance(values, pd.MultiIndex):
        return [list(values.get_level_values(i)) for i in range(len(by))]
    if isinstance(values, pl.Series):
        return [values.to_list()]
    if isinstance(values, np.ndarray):
        return [list(values)] if values.dtype.kind in "Mm" else [values.tolist()]
    return [list(values)]


def _declared(column: Column) -> Sequence[Any]:
    if column.kind == "enum":
        return list(column.native.categories)
    if column.kind == "categorical":
        raise InputError(
            f"{column.name!r} is a {column.text}, whose categories come from the data. Hint:"
            f" keys=dp.public(df[{column.name!r}].cat.categories) if they are public, or list them."
        )
    raise InputError(
        f"keys='declared' needs a column whose dtype declares its values (pl.Enum); {column.name!r} is"
        f" {column.text}. Hint: keys=[...]"
    )


# ---- one column ----


def _key_column(column: Column, values: Sequence[Any]) -> KeyColumn:
    if column.kind in ("other", "time"):
        raise InputError(
            f"{column.name!r} is {column.text}, which can't be a grouping column. Hint: make a text column of it"
        )
    if isinstance(values, range) and column.kind == "int":
        series = pl.Series(np.arange(values.start, values.stop, values.step, dtype=np.int64))
        return KeyColumn(column.name, column.kind, _fit(column, series, values))
    plain = [to_python(v) for v in values]
    _same_type(column, plain)
    if column.kind in CODED:
        return _coded(column, plain)
    converted = [None if v is None else _convert(column, v) for v in plain]
    native = _engine_dtype(column, converted)
    ticks = column.kind in ("datetime", "duration")
    try:
        series = pl.Series(converted, dtype=pl.Int64 if ticks else native, strict=True)
        series = series.cast(native) if ticks else series
    except (TypeError, OverflowError, UnicodeError, pl.exceptions.PolarsError):
        raise _unfit(column, next((v for v in plain if v is not None), None)) from None
    return KeyColumn(column.name, column.kind, series, None, tuple(plain))


def _engine_dtype(column: Column, values: list[Any]) -> Any:
    if column.kind == "period":
        return pl.Int64
    if column.kind == "null":
        return pl.Series(values).dtype if any(v is not None for v in values) else pl.Null
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
        return None if np.isnat(v) else (pd.Timestamp(v) if isinstance(v, np.datetime64) else pd.Timedelta(v))
    if isinstance(v, np.generic):
        v = v.item()
    if isinstance(v, float):
        return None if math.isnan(v) else v + 0.0  # -0.0 and 0.0 are one group
    if isinstance(v, enum.Enum):
        return to_python(v.value)
    if isinstance(v, str):
        return str(v)
    return v


def tag(v: Any, *, text: bool = False) -> Any:
    """What a looked-up cell or key is compared by: its type and value (1, 1.0 and True are three keys).

    A day is one key whether written as a date or as a datetime at midnight, and, when the listed keys
    are ``text``, as its ISO text. Raises TypeError for a value that can't be hashed.
    """
    if (
        isinstance(v, dt.datetime)
        and v.tzinfo is None
        and v == v.replace(hour=0, minute=0, second=0, microsecond=0)
    ):
        v = v.date()
    if isinstance(v, dt.date) and not isinstance(v, dt.datetime):
        return ("str", v.isoformat()) if text else ("date", v)
    name = "datetime" if isinstance(v, dt.datetime) else type(v).__name__
    hash(v)
    return (name, v)


def _same_type(column: Column, values: list[Any]) -> None:
    kinds = {
        "number" if type(v) in (int, float, Decimal) else type(v).__name__ for v in values if v is not None
    }
    if kinds <= {"date", "datetime", "Timestamp"} or kinds <= {"timedelta", "Timedelta"}:
        return
    if len(kinds) > 1:
        raise InputError(
            f"keys= of {column.name!r} mixes {' and '.join(sorted(kinds))}; a group must be one value of one"
            f" type. Hint: write every key as the column has it ({column.text})."
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
                f"keys= of {column.name!r} lists {v!r}, which its {column.text} does not have."
                f" {did_you_mean(v, column.native.categories)}"
            )
    elif kind == "decimal":
        if isinstance(v, int | Decimal) and not isinstance(v, bool):
            exact = Decimal(v)
            if exact == round(exact, column.native.scale):
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
    per_second = {"ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
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
    line = {
        "int": "keys=[1, 2, 3]",
        "float": "keys=[0.5, 1.0]",
        "bool": "keys=[True, False]",
        "string": "keys=['a', 'b']",
        "enum": "keys='declared'",
        "date": "keys=[datetime.date(2026, 1, 31)] or keys=['2026-01-31']",
        "datetime": "keys=[datetime.datetime(2026, 1, 31, 12)] (with tzinfo if the column has a time zone)",
        "period": "keys=['2026-01', '2026-02'] or pd.Period values of the column's frequency",
        "decimal": "keys=[Decimal('1.50')]",
        "interval": "keys=list(pd.IntervalIndex.from_breaks([0, 18, 65])), with the edges that you gave to pd.cut",
        "categorical": "keys=list(pd.IntervalIndex.from_breaks([0, 18, 65])) for pd.cut, else the categories' values",
        "duration": "keys=[datetime.timedelta(days=1)]",
    }.get(column.kind, "keys=[...]")
    return InputError(
        f"The key {v!r} ({type(v).__name__}) does not fit {column.name!r}, which is {column.text}; no row could"
        f" match it exactly. Hint: {line}"
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
            codes.append(None if v is None else distinct.setdefault(tag(v, text=text), len(distinct)))
        except TypeError:
            raise _unfit(column, v) from None
    engine = pl.Series(codes, dtype=pl.Int64)
    return KeyColumn(column.name, column.kind, engine, distinct, tuple(values), text)


def _interval(column: Column, inner: Column, v: Any) -> Any:
    if v is None or (isinstance(v, pd.Interval) and v.closed == inner.native.closed):
        return v
    raise _unfit(column, v)
