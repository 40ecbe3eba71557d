"""pandas frames: the used columns become Polars series, without a copy where NumPy holds them."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa

from dpframe.engine.polars import STREAM_FROM, aggregate, describe
from dpframe.keys import CODED, KeyColumn, KeyTable
from dpframe.schema import Column, Counts, Measure, lookup

_NUMPY = {"b": "bool", "i": "int", "u": "int", "f": "float", "M": "datetime", "m": "duration", "O": "object"}


class PandasSource:
    """A pandas frame."""

    library = "pandas"

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def __repr__(self) -> str:
        return f"<pandas.DataFrame with {self._frame.shape[1]} columns>"

    def names(self) -> list[Hashable]:
        return list(self._frame.columns)

    def column(self, name: Hashable) -> Column:
        return _describe(name, self._series(name).dtype)

    def _series(self, name: Hashable) -> pd.Series[Any]:
        columns = self._frame.columns
        try:
            where = columns.get_loc(name)
        except (KeyError, TypeError):
            where = None
        if not isinstance(where, int | np.integer):
            lookup(name, self.names())
            where = self.names().index(name)
        return self._frame.iloc[:, int(where)]

    def aggregate(self, measures: tuple[Measure, ...], keys: KeyTable | None) -> Counts:
        data: dict[str, pl.Series] = {}
        floats = []
        for i, m in enumerate(measures):
            s = self._series(m.column)
            data[f"m{i}"] = _presence(s) if m.low is None else _to_polars(s)
            floats.append(data[f"m{i}"].dtype.is_float())
        kinds = []
        for i, c in enumerate(keys.columns if keys else ()):
            data[f"g{i}"] = _key_series(self._series(c.name), c)
            kinds.append("coded" if c.kind in CODED else c.kind)
        if not data:  # count() reads no column
            n = np.array([len(self._frame)], dtype=np.int64)
            return Counts(n, (), ())
        values = [pl.col(f"m{i}") for i in range(len(measures))]
        by = [pl.col(f"g{i}") for i in range(len(kinds))]
        streaming = len(self._frame) >= STREAM_FROM
        lazy = pl.DataFrame(data).lazy()
        return aggregate(lazy, values, floats, measures, by, kinds, keys, streaming=streaming)

    def table(self, keys: KeyTable | None, columns: dict[str, npt.NDArray[Any]]) -> pd.DataFrame:
        out: dict[str, Any] = {}
        for c in keys.columns if keys else ():
            out[str(c.name)] = _key_values(self._series(c.name).dtype, c)
        out.update(columns)
        return pd.DataFrame(out)


@lru_cache(maxsize=1024)
def _plain_type(dtype: Any) -> tuple[str, bool, Any]:
    """(kind, nullable, Polars dtype) of a dtype that is not a Categorical."""
    if isinstance(dtype, np.dtype):
        kind = _NUMPY.get(dtype.kind, "other")
        nullable = dtype.kind not in "biu"
        if kind in ("bool", "int"):
            return kind, nullable, pl.Series(np.empty(0, dtype=dtype)).dtype
        if kind == "float":
            return kind, nullable, pl.Float32 if dtype.itemsize <= 4 else pl.Float64
        if kind in ("datetime", "duration"):
            return kind, nullable, _arrow_type(pd.Series([], dtype=dtype))
        return kind, nullable, None
    if isinstance(dtype, pd.PeriodDtype):
        return "period", True, dtype
    if isinstance(dtype, pd.IntervalDtype):
        return "interval", True, None
    if isinstance(dtype, pd.SparseDtype):
        return "other", True, None
    try:
        native = _arrow_type(pd.Series([], dtype=dtype))
    except (pa.ArrowException, pl.exceptions.PolarsError, TypeError, ValueError):
        return "other", True, None
    return describe("", native).kind, True, native


def _arrow_type(empty: pd.Series[Any]) -> Any:
    return _from_arrow(pa.array(empty, from_pandas=True)).dtype


def _describe(name: Hashable, dtype: Any) -> Column:
    if isinstance(dtype, pd.CategoricalDtype):
        values = dtype.categories.dtype
        kind, _, native = _plain_type(values)
        inner = Column(name, kind, str(values), True, native)
        return Column(name, "categorical", f"category of {values}", True, inner)
    kind, nullable, native = _plain_type(dtype)
    return Column(name, kind, str(dtype), nullable, native)


def _from_arrow(array: Any) -> pl.Series:
    s = pl.from_arrow(array)
    assert isinstance(s, pl.Series)
    return s


def _to_polars(s: pd.Series[Any]) -> pl.Series:
    """A numeric, temporal or text column as a Polars series."""
    if isinstance(s.dtype, np.dtype) and s.dtype.kind in "biuf":
        array = s.to_numpy(copy=False)
        if array.dtype.itemsize not in (1, 2, 4, 8) or array.dtype == np.float16:
            array = array.astype(np.float64)
        return pl.Series(array)
    try:
        return _from_arrow(pa.array(s, from_pandas=True))
    except (UnicodeError, pa.ArrowException):
        # Text that is not valid Unicode (a lone surrogate) equals no key; it must not stop the release.
        return pl.Series([_valid(x) if isinstance(x, str) else None for x in s], dtype=pl.String)


def _valid(text: str) -> str:
    try:
        text.encode()
    except UnicodeError:
        return "\0not Unicode"
    return text


def _presence(s: pd.Series[Any]) -> pl.Series:
    """A column that is null exactly where ``s`` is missing."""
    if isinstance(s.dtype, np.dtype) and s.dtype.kind in "biuf":
        return _to_polars(s)
    if isinstance(s.dtype, pd.ArrowDtype | pd.Float32Dtype | pd.Float64Dtype):
        return _to_polars(s)  # may hold NaN beside null
    present = s.notna().to_numpy(dtype=bool)
    return _from_arrow(pa.array(present, mask=~present))


def _key_series(s: pd.Series[Any], c: KeyColumn) -> pl.Series:
    if c.kind == "period":
        ordinals = pd.PeriodIndex(s)
        return _from_arrow(pa.array(ordinals.asi8, mask=np.asarray(ordinals.isna())))
    if c.kind == "categorical":
        code_of = np.array([*(c.code(x) for x in s.cat.categories), -2], dtype=np.int64)
        return _coded(code_of[s.cat.codes.to_numpy()])
    if c.kind in CODED:
        return _coded(_look_up(s, c))
    return _to_polars(s)


def _look_up(s: pd.Series[Any], c: KeyColumn) -> npt.NDArray[np.int64]:
    """Codes of the cells of a column without a usable dtype.

    Privacy: columns of text alone take a faster road to the same codes; only time tells them apart.
    """
    if c.kind == "object" and pd.api.types.infer_dtype(s, skipna=True) == "string":
        found, distinct = pd.factorize(np.asarray(s, dtype=object), use_na_sentinel=True)
        code_of = np.array([*(c.code(x) for x in distinct), -2], dtype=np.int64)
        return code_of[found]
    return np.fromiter((c.code(x) for x in s), dtype=np.int64, count=len(s))


def _coded(codes: npt.NDArray[np.int64]) -> pl.Series:
    return _from_arrow(pa.array(codes, mask=codes == -2))


def _key_values(dtype: Any, c: KeyColumn) -> Any:
    """The listed keys as a pandas column: the frame's dtype, a Categorical's that of its values."""
    if c.kind == "period":
        missing = c.engine.is_null().to_numpy()
        ordinals = c.engine.fill_null(0).to_numpy()
        index: Any = pd.PeriodIndex
        values = pd.Series(index.from_ordinals(ordinals, freq=dtype.freq))
        return values.mask(missing)
    if c.kind in CODED:
        if c.kind == "categorical" and c.values:
            return pd.Series(list(c.values)).infer_objects()
        return pd.Series(list(c.values or ()), dtype=object if c.kind == "object" else dtype)
    if c.engine.null_count() and isinstance(dtype, np.dtype) and dtype.kind in "biu":
        dtype = "boolean" if dtype.kind == "b" else "Int64"
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return pd.Series(c.engine.to_numpy()).astype(dtype)
    return pd.Series(c.engine.to_arrow().to_pandas()).astype(dtype)
