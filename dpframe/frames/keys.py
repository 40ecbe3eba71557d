"""Public group keys: what may be listed, and how it meets a column's dtype.

Privacy: the groups of a release are decided before the data is touched, from literals or from
something the caller has declared public. Keys taken from the frame would reveal which groups exist,
so a Series, array, Index or frame is refused unless wrapped in :func:`public`.
"""

from __future__ import annotations

import contextlib
import enum
import hashlib
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from dpframe.errors import Arg, Call, Code, InputError, did_you_mean, typed
from dpframe.frames.columns import Column
from dpframe.frames.key_types import KeyColumn, key_column
from dpframe.frames.public import Public

MOST_KEYS = 10_000_000


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
    """Read ``keys=`` for the grouping columns ``by``; keys that were read before stay as they are.

    Raises
    ------
    InputError
        For values that came from an array or frame without :func:`public`, sets, duplicates, mixed
        types, and keys that the column's dtype can't hold exactly.
    """
    if isinstance(keys, KeyTable):
        return keys
    listed = _columns_of_values(by, types, keys)
    size = len(listed[0])
    columns = tuple(key_column(t, v) for t, v in zip(types, listed))
    table = pl.DataFrame({f"k{i}": c.engine for i, c in enumerate(columns)})
    hashes = table.hash_rows(seed=1)
    if hashes.n_unique() < size and table.is_duplicated().any():  # rows of different hashes differ
        where = int(table.is_duplicated().arg_true()[0])
        twice = tuple(v[where] for v in listed)
        raise InputError(
            Arg("keys"),
            f" lists {twice[0] if len(twice) == 1 else twice!r} more than once; each group is released once.",
            hint=Arg("keys", Call("list", Call("dict.fromkeys", Code("keys")))),
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
    if len(by) == 1 and isinstance(values, range):
        return [values]
    if len(by) == 1:
        return [[v[0] if isinstance(v, tuple) and len(v) == 1 else v for v in values]]
    for v in values:
        if not isinstance(v, tuple | list) or len(v) != len(by):
            raise InputError(
                Arg("keys"),
                f" for {len(by)} grouping columns must list tuples of {len(by)} values; got {v!r}.",
                hint=(
                    Arg("keys", [Code(", ".join("..." for _ in by))]),
                    ", or ",
                    Arg("keys", {by[0]: [...], ...: ...}),
                    " for every combination.",
                ),
            )
    return [[v[i] for v in values] for i in range(len(by))]


def _from_mapping(by: tuple[Hashable, ...], types: tuple[Column, ...], keys: Mapping[Any, Any]) -> list[Any]:
    for name in keys:
        if name not in by:
            raise InputError(
                Arg("keys"),
                f" has {name!r}, which is not a grouping column. {did_you_mean(str(name), map(str, by))}",
            )
    missing = [b for b in by if b not in keys]
    if missing:
        raise InputError(
            Arg("keys"), f" lacks the grouping column {missing[0]!r}.", hint=Arg("keys", {missing[0]: [...]})
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
            Arg("keys"),
            f" makes {size:,} combinations of {', '.join(map(repr, by))}; at most {MOST_KEYS:,} are held.",
            hint="list the tuples that you need, or release each grouping column on its own.",
        )
    if len(lists) == 1:
        return lists
    return [_repeated(x, size, lists[i + 1 :]) for i, x in enumerate(lists)]


def _repeated(values: Sequence[Any], size: int, inner: list[Sequence[Any]]) -> list[Any]:
    """One column of a cross product of ``size`` rows, the last column changing fastest."""
    if not size:
        return []
    each = [v for v in values for _ in range(math.prod(map(len, inner)))]
    return each * (size // len(each))


def _literals(by: tuple[Hashable, ...], keys: Any, what: str) -> Sequence[Any]:
    if isinstance(keys, type) and issubclass(keys, enum.Enum):
        return [member.value for member in keys]
    if isinstance(keys, range):
        if len(keys) > MOST_KEYS:
            raise _too_many(what, len(keys))
        return keys
    if isinstance(keys, set | frozenset):
        raise InputError(
            f"{what} is a set, which has no order to release groups in.", hint=Call("sorted", Code("keys"))
        )
    if isinstance(keys, list | tuple):
        if len(keys) > MOST_KEYS:
            raise _too_many(what, len(keys))
        return keys
    if isinstance(keys, str):
        raise InputError(
            Arg(what, keys),
            " is one string.",
            hint=(Arg("keys", [keys]), ", or ", Arg("keys", "declared"), " for a pl.Enum column."),
        )
    column = f"{by[0]!r}" if len(by) == 1 else "these columns"
    raise InputError(
        f"{what} is of type {type(keys).__name__}. Keys read from the data would reveal which groups exist, so lists are typed, and anything else must be declared.",
        hint=(
            Arg("keys", [...]),
            f" with the values of {column}, or ",
            Arg("keys", Call("dp.public", ...)),
            " if it comes from a public source such as a code book or an earlier release.",
        ),
    )


def _too_many(what: str, n: int) -> InputError:
    return InputError(
        f"{what} has {n:,} values; at most {MOST_KEYS:,} are held.",
        hint="group by something coarser, or ask in parts",
    )


def _cells(values: pl.Series) -> list[Any]:
    """Its cells as Python has them; times that Python has not, or not exactly, as those of NumPy and pandas."""
    if values.dtype not in (pl.Date, pl.Datetime, pl.Duration):
        return values.to_list()
    odd = (pl.exceptions.PanicException, pl.exceptions.PolarsError, OverflowError, ValueError)
    with contextlib.suppress(*odd):
        held = values.to_list()
        if pl.Series(held, dtype=values.dtype).equals(values):
            return held
    if values.dtype == pl.Date:
        raise InputError(
            Arg("keys"),
            " hold a day beyond the years 1 to 9999, which Python has not.",
            hint=Arg("keys", [Call("datetime.date", 2026, 1, 31)]),
        )
    zone = getattr(values.dtype, "time_zone", None)
    exact = [None if np.isnat(v) else v for v in values.to_numpy()]
    return [v if v is None or zone is None else pd.Timestamp(v, tz="UTC").tz_convert(zone) for v in exact]


def _unwrap(by: tuple[Hashable, ...], values: Any) -> list[Sequence[Any]]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable | pl.LazyFrame):
        raise InputError(
            f"dp.public() takes a Series, Index, array, list or frame, not {typed(values)}.",
            hint=Call("dp.public", Code("codebook['icd']")),
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
        return [_cells(values)]
    if isinstance(values, np.ndarray):
        return [list(values)] if values.dtype.kind in "Mm" else [values.tolist()]
    return [list(values)]


def _declared(column: Column) -> Sequence[Any]:
    if column.kind == "enum":
        return list(column.native.categories)
    if column.kind == "categorical" and column.native.kind == "interval":
        raise InputError(
            f"{column.name!r} is a {column.text}; its edges may come from the data.",
            hint=(
                Call("pd.cut", Code("x"), [0, 18, 65]),
                " and ",
                Arg("keys", Call("list", Call("pd.IntervalIndex.from_breaks", [0, 18, 65]))),
                ", with edges you type",
            ),
        )
    if column.kind == "categorical":
        raise InputError(
            f"{column.name!r} is a {column.text}, whose categories come from the data.",
            hint=(
                Arg("keys", Call("dp.public", Code(f"df[{column.name!r}].cat.categories"))),
                " if they are public, or list them.",
            ),
        )
    raise InputError(
        Arg("keys", "declared"),
        f" needs a column whose dtype declares its values (pl.Enum); {column.name!r} is {column.text}.",
        hint=Arg("keys", [...]),
    )
