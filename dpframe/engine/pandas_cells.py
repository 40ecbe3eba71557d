"""Columns of pandas frames as Polars series: their types, cells, identities; and released keys back as pandas columns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from dpframe.engine.arrow import from_arrow, in_seconds, ticks
from dpframe.engine.bare import counted
from dpframe.engine.polars import describe
from dpframe.frames.cells import identity, is_missing
from dpframe.frames.columns import Column, Ticks
from dpframe.frames.contract import KeyColumns
from dpframe.frames.key_types import CODED, KeyColumn
from dpframe.frames.keys import KeyTable

_NUMPY = {"b": "bool", "i": "int", "u": "int", "f": "float", "M": "datetime", "m": "duration", "O": "object"}


def key_columns(
    dtypes: Sequence[Any], by: tuple[Column, ...], keys: KeyTable | None, found: Any
) -> KeyColumns:
    """The released keys as columns of a pandas frame whose grouping columns have these dtypes."""
    columns = [c.engine for c in keys.columns] if keys else found.get_columns() if by else []
    out: dict[str, Any] = {}
    for i, (c, s, dtype) in enumerate(zip(by, columns, dtypes)):
        values = None
        if c.kind in CODED:
            values = keys.columns[i].values if keys else tuple(s.to_list())
        out[str(c.name)] = _key_values(dtype, c, s, values, found=keys is None)
    return KeyColumns("pandas", out)


@lru_cache(maxsize=1024)
def _plain_type(dtype: Any) -> tuple[str, str, bool, Any]:
    """(kind, text, nullable, Polars dtype) of a dtype that is not a Categorical."""
    kind, nullable, native = _kind_of(dtype)
    return kind, str(dtype), nullable, native


def _kind_of(dtype: Any) -> tuple[str, bool, Any]:
    if isinstance(dtype, np.dtype):
        kind = _NUMPY.get(dtype.kind, "other")
        nullable = dtype.kind not in "biu"
        if kind in ("bool", "int"):
            return kind, nullable, pl.Series(np.empty(0, dtype=dtype)).dtype
        if kind == "float":
            return kind, nullable, pl.Float32 if dtype.itemsize <= 4 else pl.Float64
        if kind not in ("datetime", "duration"):
            return kind, nullable, None
    if isinstance(dtype, pd.PeriodDtype):
        return "period", True, dtype
    if isinstance(dtype, pd.IntervalDtype):
        return "interval", True, dtype
    if isinstance(dtype, pd.SparseDtype):
        return "other", True, None
    if isinstance(dtype, pd.ArrowDtype) and pa.types.is_decimal256(dtype.pyarrow_dtype):
        return "other", True, None
    try:
        cells = pa.array(pd.Series([], dtype=dtype), from_pandas=True)
        if in_seconds(cells.type):
            return ticks("", cells.type).kind, True, ticks("", cells.type).native
        native = from_arrow(cells).dtype
    except (pa.ArrowException, pl.exceptions.PolarsError, TypeError, ValueError):
        return "other", True, None
    return describe("", native).kind, True, native


def describe_dtype(name: Hashable, dtype: Any) -> Column:
    if isinstance(dtype, pd.CategoricalDtype):
        values = dtype.categories.dtype
        kind, text, _, native = _plain_type(values)
        inner = Column(name, kind, text, True, native)
        return Column(name, "categorical", f"category of {text}", True, inner)
    return Column(name, *_plain_type(dtype))


def to_polars(s: pd.Series[Any]) -> pl.Series:
    """A numeric, temporal or text column as a Polars series."""
    if isinstance(s.dtype, np.dtype) and s.dtype.kind in "biuf":
        array = s.to_numpy(copy=False)
        if array.dtype.itemsize not in (1, 2, 4, 8) or array.dtype == np.float16:
            with np.errstate(all="ignore"):  # a warning would depend on the cells
                array = array.astype(np.float64)
        return pl.Series(array)
    try:
        return from_arrow(pa.array(s, from_pandas=True))
    except (UnicodeError, pa.ArrowException):
        return _texts(s, None)


_TAKEN = (
    (pa.types.is_string_view, lambda cells: cells.cast(pa.large_string())),
    (pa.types.is_binary_view, lambda cells: cells.cast(pa.large_binary())),
    (pa.types.is_run_end_encoded, pc.run_end_decode),
)


def takeable(s: pd.Series[Any]) -> pd.Series[Any]:
    """The same cells in a type of which rows can be taken; Arrow has types of which none can, but of an empty column."""
    if not isinstance(s.dtype, pd.ArrowDtype):
        return s
    try:
        s.iloc[:1].take([])
    except pa.ArrowException:
        cells = pa.array(s)
        made = next((f(cells) for known, f in _TAKEN if known(cells.type)), None)
        if made is None:
            return pd.Series([None, *cells.to_pylist()], dtype=object)[1:].set_axis(s.index)
        return pd.Series(pd.arrays.ArrowExtensionArray(made), index=s.index)
    return s


def _texts(s: pd.Series[Any], listed: KeyColumn | None) -> pl.Series:
    """The text cells. Text that is not valid Unicode has no type to be released in: it equals no listed key, and
    is missing among found ones."""
    other = None
    if listed is not None:
        known = set(listed.engine.to_list())
        other = next(x for x in map("\0".__mul__, range(1, len(known) + 2)) if x not in known)

    def valid(text: Any) -> str | None:
        if not isinstance(text, str):
            return None
        try:
            str.encode(text)
        except UnicodeError:
            return other
        return text

    return pl.Series(list(map(valid, s)), dtype=pl.String)


def presence(s: pd.Series[Any]) -> pl.Series:
    """A column that is null exactly where ``s`` is missing."""
    if isinstance(s.dtype, np.dtype) and s.dtype.kind in "biuf":
        return to_polars(s)
    if _floats_beside_null(s.dtype):
        return to_polars(s)  # may hold NaN beside null
    if isinstance(s.dtype, pd.ArrowDtype) or getattr(s.dtype, "storage", "") == "pyarrow":
        present = counted(pa.array(s)).is_valid().to_numpy(zero_copy_only=False)
        return from_arrow(pa.array(present, mask=~present))
    if isinstance(s.dtype, np.dtype) and s.dtype.kind == "O":  # each cell decides for itself, and none raises
        present = np.fromiter((not is_missing(x) for x in s), dtype=bool, count=len(s))
    else:
        present = s.notna().to_numpy(dtype=bool)
    return from_arrow(pa.array(present, mask=~present))


def _floats_beside_null(dtype: Any) -> bool:
    if isinstance(dtype, pd.ArrowDtype):
        return bool(pa.types.is_floating(dtype.pyarrow_dtype))
    return isinstance(dtype, pd.Float32Dtype | pd.Float64Dtype)


def key_series(s: pd.Series[Any], c: Column, listed: KeyColumn | None) -> pl.Series:
    """A grouping column in the form in which groups are compared.

    Without listed keys the text cells of an object column are keys, everything else in it is
    missing, and the categories of a Categorical are their values.
    """
    if c.kind == "period":
        ordinals = pd.PeriodIndex(s)
        return from_arrow(pa.array(ordinals.asi8, mask=np.asarray(ordinals.isna())))
    if listed is not None and c.kind in CODED:
        if c.kind == "categorical":
            code_of = np.array([*(listed.code(x) for x in s.cat.categories), -2], dtype=np.int64)
            codes = s.cat.codes.to_numpy()
            return _coded(code_of[np.where((codes < 0) | (codes >= len(code_of) - 1), -1, codes)])
        return _coded(_look_up(s, listed))
    if c.kind == "object":
        return _texts(s, None)
    if c.kind == "categorical":
        return _of_codes(s, key_series(pd.Series(s.cat.categories), c.native, None))
    if c.kind == "string":
        try:
            return from_arrow(pa.array(s, from_pandas=True))
        except UnicodeError:
            return _texts(s, listed)
    if c.kind == "null" and listed is not None:  # a column without a type takes that of its keys
        return pl.Series([None] * len(s), dtype=listed.engine.dtype)
    return to_polars(s)


def _look_up(s: pd.Series[Any], c: KeyColumn) -> npt.NDArray[np.int64]:
    """Codes of the cells of a column without a usable dtype.

    Privacy: each cell's code depends on that cell alone; text is remembered by its exact value.
    """
    memo: dict[str, int] = {}

    def code(cell: Any) -> int:
        if type(cell) is not str:
            return c.code(cell)
        known = memo.get(cell)
        if known is None:
            known = memo[cell] = c.code(cell)
        return known

    return np.fromiter(map(code, s), dtype=np.int64, count=len(s))


def id_series(s: pd.Series[Any], c: Column) -> pl.Series:
    """A unit column, or one whose different values count: equal cells stay equal, and no others become so.

    Privacy: a code that counted up over the rows would let one unit's rows change how others are
    hashed, so each cell's form depends on itself alone; text is bytes, as some of it is no text to Polars. A cell
    that has no form is no id, and its row is left out.
    """
    inner = c.native if c.kind == "categorical" else c
    if inner.kind not in ("object", "string"):
        return key_series(s, c, None)
    if c.kind == "categorical":
        return _of_codes(s, id_series(pd.Series(s.cat.categories), inner))
    if c.kind == "object":
        return pl.Series([identity(x) for x in s], dtype=pl.Binary)
    try:
        return from_arrow(pa.array(s, from_pandas=True)).cast(pl.Binary)
    except UnicodeError:
        return pl.Series([_bytes(x) for x in s], dtype=pl.Binary)


def _bytes(text: Any) -> bytes | None:
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else None


def _of_codes(s: pd.Series[Any], categories: pl.Series) -> pl.Series:
    """The values of a Categorical, given those of its categories."""
    codes = s.cat.codes.to_numpy().astype(np.int64)
    there = (codes >= 0) & (codes < len(categories))
    return categories.gather(from_arrow(pa.array(codes, mask=~there)))


def _coded(codes: npt.NDArray[np.int64]) -> pl.Series:
    return from_arrow(pa.array(codes, mask=codes == -2))


def _key_values(
    dtype: Any, c: Column, engine: pl.Series, values: tuple[Any, ...] | None, *, found: bool
) -> Any:
    """Released keys as a pandas column: the frame's dtype, a Categorical's that of its values."""
    if c.kind == "period":
        missing = engine.is_null().to_numpy()
        index: Any = pd.PeriodIndex
        return pd.Series(index.from_ordinals(engine.fill_null(0).to_numpy(), freq=dtype.freq)).mask(missing)
    if (
        c.kind == "categorical"
        and found
        and (c.native.kind == "period" or isinstance(c.native.native, Ticks))
    ):
        return _key_values(dtype.categories.dtype, c.native, engine, None, found=True)
    if values is not None:
        if c.kind == "categorical":
            dtype = dtype.categories.dtype
            # Whether a missing key is found depends on the data; the dtype must not.
            return pd.Series(list(values), dtype=_holding(dtype, found or None in values))
        return pd.Series(list(values), dtype=_holding(dtype, None in values))
    dtype = _holding(dtype, engine.null_count() > 0)
    if c.kind == "null":  # a column without a type takes that of its keys
        dtype = pd.ArrowDtype(engine.to_arrow().type)
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return pd.Series(engine.to_numpy()).astype(dtype)
    cells = engine.to_arrow()
    if isinstance(c.native, Ticks):
        kind = pa.timestamp("s", c.native.time_zone) if c.kind == "datetime" else pa.duration("s")
        cells = cells.view(kind)
    if isinstance(dtype, pd.ArrowDtype):
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([cells.cast(dtype.pyarrow_dtype)])))
    if isinstance(dtype, pd.api.extensions.ExtensionDtype) and hasattr(dtype, "__from_arrow__"):
        return pd.Series(dtype.__from_arrow__(cells))  # through no float, which holds no integer above 2**53
    return pd.Series(cells.to_pandas()).astype(dtype)


def _holding(dtype: Any, missing: bool) -> Any:
    """The dtype for released keys: one that can hold a missing key, if one is listed."""
    if isinstance(dtype, pd.ArrowDtype):
        inner = dtype.pyarrow_dtype
        inner = inner.value_type if pa.types.is_dictionary(inner) else inner
        return pd.ArrowDtype(
            pa.string() if pa.types.is_string_view(inner) else inner
        )  # which can't be taken from
    if not missing:
        return dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "biu":
        return pd.api.types.pandas_dtype({"b": "boolean", "i": "Int64", "u": "UInt64"}[dtype.kind])
    if (
        isinstance(dtype, pd.IntervalDtype)
        and isinstance(dtype.subtype, np.dtype)
        and dtype.subtype.kind in "iu"
    ):
        return pd.IntervalDtype("float64", dtype.closed)
    return dtype
