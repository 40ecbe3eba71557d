"""Polars: the embedded engine. Frames of other in-memory libraries enter here, column by column."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from dpframe.errors import InputError
from dpframe.keys import KeyTable
from dpframe.layout import magic_bits
from dpframe.schema import Column, Counts, Measure, lookup

STREAM_FROM = 100_000  # rows; below it the in-memory engine starts faster

_KINDS: dict[Any, str] = {
    pl.Boolean: "bool",
    pl.Decimal: "decimal",
    pl.String: "string",
    pl.Categorical: "string",
    pl.Date: "date",
    pl.Datetime: "datetime",
    pl.Duration: "duration",
    pl.Time: "time",
    pl.Enum: "enum",
    pl.Null: "null",
}


def describe(name: Hashable, dtype: Any, text: str | None = None) -> Column:
    """The type of a column that Polars holds. Every Polars dtype can hold a null."""
    kind = _KINDS.get(dtype.base_type())
    if kind is None:
        kind = "int" if dtype.is_integer() else "float" if dtype.is_float() else "other"
    return Column(name, kind, text or str(dtype.base_type() if kind == "enum" else dtype), True, dtype)


class PolarsSource:
    """A Polars frame, eager or lazy."""

    library = "polars"

    def __init__(self, frame: pl.DataFrame | pl.LazyFrame) -> None:
        self._frame = frame
        self._schema = frame.collect_schema()

    def __repr__(self) -> str:
        return f"<{type(self._frame).__name__} with {len(self._schema)} columns>"

    def names(self) -> list[Hashable]:
        return list(self._schema.names())

    def column(self, name: Hashable) -> Column:
        if not isinstance(name, str) or name not in self._schema:
            lookup(name, self.names())
        return describe(name, self._schema[str(name)])

    def aggregate(self, measures: tuple[Measure, ...], keys: KeyTable | None) -> Counts:
        small = isinstance(self._frame, pl.DataFrame) and self._frame.height < STREAM_FROM
        by = [pl.col(str(c.name)) for c in keys.columns] if keys else []
        kinds = [c.kind for c in keys.columns] if keys else []
        values = [pl.col(str(m.column)) for m in measures]
        floats = [self._schema[str(m.column)].is_float() for m in measures]
        return aggregate(self._frame.lazy(), values, floats, measures, by, kinds, keys, streaming=not small)

    def table(self, keys: KeyTable | None, columns: dict[str, npt.NDArray[Any]]) -> pl.DataFrame:
        out: dict[str, Any] = {}
        for c in keys.columns if keys else ():
            dtype = self._schema[str(c.name)]
            out[str(c.name)] = c.engine if dtype == pl.Null else c.engine.cast(dtype)
        out.update(columns)
        return pl.DataFrame(out)


def aggregate(
    frame: pl.LazyFrame,
    values: Sequence[pl.Expr],
    floats: Sequence[bool],
    measures: tuple[Measure, ...],
    by: Sequence[pl.Expr],
    kinds: Sequence[str],
    keys: KeyTable | None,
    *,
    streaming: bool,
) -> Counts:
    """Count rows and present cells and add up steps, per listed group.

    Parameters
    ----------
    values, by : the expressions of the measured and the grouping columns
    floats : whether each measured column can hold NaN

    Privacy: missing (null, NaN) is mapped to null before clipping, so it adds nothing; clip, the
    added constant and the integer sum are monotone and exact, so one row changes ``t`` by at most
    last - first, in any order and chunking. Sums of bit patterns wrap modulo 2**64 and are unwrapped
    by the present count; the sum of steps itself stays below 2**63 for 2**32 rows. Rows whose key is
    not listed fall away in the join; listed keys without rows get zeros.
    """
    prepared = []
    for i, (x, m, is_float) in enumerate(zip(values, measures, floats)):
        if m.low is None or m.high is None:
            prepared.append((x.fill_nan(None) if is_float else x).alias(f"y{i}"))
        else:
            clipped = x.cast(pl.Float64, strict=False).fill_nan(None).clip(m.low, m.high)
            prepared.append((clipped + m.magic).reinterpret(dtype=pl.Int64).alias(f"y{i}"))
    sums = [pl.len().alias("n")]
    for i, m in enumerate(measures):
        sums.append(pl.col(f"y{i}").count().alias(f"c{i}"))
        if m.low is not None:
            sums.append(pl.col(f"y{i}").sum().alias(f"t{i}"))
    engine: Any = "streaming" if streaming else "in-memory"
    if keys is None:
        query = frame.select(prepared).select(sums) if prepared else frame.select(sums)
        got = query.collect(engine=engine)
    else:
        canonical = [
            _key(x, kind, c.engine.dtype).alias(f"k{i}")
            for i, (x, kind, c) in enumerate(zip(by, kinds, keys.columns))
        ]
        names = [f"k{i}" for i in range(len(by))]
        query = frame.select(canonical + prepared).group_by(names).agg(sums)
        found = query.collect(engine=engine)
        listed = pl.DataFrame({f"k{i}": c.engine for i, c in enumerate(keys.columns)})
        got = listed.join(found, on=names, how="left", nulls_equal=True, maintain_order="left")
        got = got.with_columns(pl.exclude(names).fill_null(0))
    rows = _int64(got["n"])
    present = tuple(_int64(got[f"c{i}"]) for i in range(len(measures)))
    steps = tuple(
        rows[:0] if m.low is None else _steps(_int64(got[f"t{i}"]), present[i], m)
        for i, m in enumerate(measures)
    )
    return Counts(rows, present, steps)


def _key(x: pl.Expr, kind: str, dtype: Any) -> pl.Expr:
    """Bring equal keys to one form: NaN is null, -0.0 is 0.0, categories are their text."""
    if kind == "float":
        return x.fill_nan(None) + 0.0
    if kind in ("enum", "string", "null"):
        return x.cast(dtype)
    return x


def _int64(s: pl.Series) -> npt.NDArray[np.int64]:
    return s.cast(pl.Int64).to_numpy().astype(np.int64, copy=False)


def _steps(bits: npt.NDArray[np.int64], present: npt.NDArray[np.int64], m: Measure) -> npt.NDArray[np.int64]:
    zero = np.uint64((magic_bits(m.magic) + m.base) % 2**64)
    return (bits.view(np.uint64) - present.view(np.uint64) * zero).view(np.int64)


def as_source(frame: Any) -> Any:
    """The source for a pandas or Polars frame; TypeError for anything else."""
    if isinstance(frame, pl.DataFrame | pl.LazyFrame):
        return PolarsSource(frame)
    import pandas as pd

    if isinstance(frame, pd.DataFrame):
        from dpframe.engine.pandas import PandasSource

        return PandasSource(frame)
    raise TypeError(
        f"dp.frame takes a pandas or Polars frame, not a {type(frame).__module__}.{type(frame).__qualname__}."
        " Hint: dp.frame(df)"
    )


__all__ = ["InputError", "PolarsSource", "aggregate", "as_source", "describe"]
