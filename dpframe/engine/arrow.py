"""PyArrow tables: the used columns become Polars series, mostly without a copy."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from dpframe.engine.bare import counted
from dpframe.engine.polars import PolarsSource, describe
from dpframe.frames.columns import Column, Ticks, lookup


class ArrowSource(PolarsSource):
    """A PyArrow table. Its answers are Polars frames."""

    def __init__(self, table: pa.Table) -> None:
        super().__init__(table)

    @property
    def _schema(self) -> pl.Schema:
        if self._known is None:
            self._known = pl.Schema((n, self._native(n) or pl.Boolean()) for n in _once(self._frame))
        return self._known

    def __repr__(self) -> str:
        return f"<pyarrow.Table with {self._frame.num_columns} columns>"

    def names(self) -> list[Hashable]:
        return list(self._frame.column_names)

    def column(self, name: Hashable) -> Column:
        lookup(name, self.names())
        native = self._native(name)
        if in_seconds(self._frame.schema.field(name).type):
            return ticks(name, self._frame.schema.field(name).type)
        if native is None:
            return Column(name, "other", str(self._frame.schema.field(name).type), True)
        return describe(name, native)

    def _native(self, name: Hashable) -> Any:
        """The Polars type; None where Polars has none."""
        dtype = self._frame.schema.field(name).type
        if pa.types.is_decimal256(dtype):
            return None
        if in_seconds(dtype):
            return pl.Int64()
        try:
            return pl.from_arrow(pa.chunked_array([], type=dtype)).dtype  # type: ignore[union-attr]
        except (pl.exceptions.PolarsError, TypeError, ValueError):
            return None

    def foreign_step(self, unit: tuple[str, ...]) -> str | None:
        return None

    def _opened(self, names: Sequence[Hashable] | None) -> tuple[pl.LazyFrame, int | None]:
        names = _once(self._frame) if names is None else names
        if names:
            frame = pl.DataFrame({str(n): self._series(n) for n in dict.fromkeys(names)})
        else:  # count() reads no column, but needs the rows
            frame = pl.select(pl.repeat(True, self._frame.num_rows, dtype=pl.Boolean))
        return frame.lazy(), frame.height

    def _series(self, name: Hashable) -> pl.Series:
        """The column; of a type that Polars lacks, what is null in it."""
        cells = counted(self._frame.column(name))
        return from_arrow(
            cells if self._native(name) is not None else pc.if_else(pc.is_valid(cells), True, None)
        )


def from_arrow(cells: pa.Array | pa.ChunkedArray) -> pl.Series:
    """The cells as Polars has them; what is null is looked at, not believed."""
    cells = counted(cells)
    if pa.types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    if in_seconds(cells.type):
        cells = (
            cells.view(pa.int64())
            if isinstance(cells, pa.Array)
            else pa.chunked_array([c.view(pa.int64()) for c in cells.chunks], type=pa.int64())
        )
    series = pl.from_arrow(cells)
    assert isinstance(series, pl.Series)
    return series


def in_seconds(dtype: Any) -> bool:
    """Whether the type is that of times in whole seconds, of which Polars would make finer ones that wrap around."""
    return bool((pa.types.is_timestamp(dtype) or pa.types.is_duration(dtype)) and dtype.unit == "s")


def ticks(name: Hashable, dtype: Any) -> Column:
    """A column of times in whole seconds."""
    kind = "datetime" if pa.types.is_timestamp(dtype) else "duration"
    return Column(name, kind, str(dtype), True, Ticks(getattr(dtype, "tz", None)))


def _once(table: pa.Table) -> list[str]:
    """The names that one column has."""
    names = table.column_names
    return [n for n in names if names.count(n) == 1]
