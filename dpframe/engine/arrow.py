"""PyArrow tables: the used columns become Polars series, mostly without a copy."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from dpframe.engine.polars import PolarsSource, describe
from dpframe.keys import KeyTable
from dpframe.schema import Bounding, Column, Counts, KeyColumns, Measure, Parts, lookup


class ArrowSource:
    """A PyArrow table. Its answers are Polars frames."""

    library = "polars"
    part_of: Any = None
    no_parts: str | None = None

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("This holds the frame and can't be pickled. Hint: pickle the release, or bound.plan")

    def __repr__(self) -> str:
        return f"<pyarrow.Table with {self._table.num_columns} columns>"

    @property
    def identity(self) -> int:
        return id(self._table)

    def names(self) -> list[Hashable]:
        return list(self._table.column_names)

    def column(self, name: Hashable) -> Column:
        lookup(name, self.names())
        native = self._native(name)
        if native is None:
            return Column(name, "other", str(self._table.schema.field(name).type), True)
        return describe(name, native)

    def _native(self, name: Hashable) -> Any:
        """The Polars type; None where Polars has none."""
        dtype = self._table.schema.field(name).type
        if pa.types.is_decimal256(dtype):
            return None
        try:
            return pl.from_arrow(pa.chunked_array([], type=dtype)).dtype  # type: ignore[union-attr]
        except (pl.exceptions.PolarsError, TypeError, ValueError):
            return None

    def plan_text(self) -> str | None:
        return None

    def aggregate(
        self,
        measures: tuple[Measure, ...],
        by: tuple[Column, ...],
        keys: KeyTable | None,
        bounding: Bounding | None,
        salt: int,
    ) -> Counts:
        used = [*(c for m in measures for c in m.columns), *(c.name for c in by)]
        return self._polars([*used, *_unit(bounding)]).aggregate(measures, by, keys, bounding, salt)

    def part(self, by: tuple[Column, ...], keys: KeyTable, bounding: Bounding | None, salt: int) -> Parts:
        names = [n for n in self.names() if self.names().count(n) == 1]
        return self._polars(names).part(by, keys, bounding, salt)

    def key_columns(self, by: tuple[Column, ...], keys: KeyTable | None, found: Any) -> KeyColumns:
        return self._polars([]).key_columns(by, keys, found)

    def _polars(self, names: list[Hashable]) -> PolarsSource:
        if not names:  # count() reads no column, but needs the rows
            return PolarsSource(pl.select(pl.repeat(True, self._table.num_rows, dtype=pl.Boolean)))
        return PolarsSource(pl.DataFrame({str(n): self._series(n) for n in dict.fromkeys(names)}))

    def _series(self, name: Hashable) -> pl.Series:
        """The column; of a type that Polars lacks, what is null in it."""
        cells = self._table.column(name)
        if self._native(name) is None:
            cells = pc.if_else(pc.is_valid(cells), True, None)
        series = pl.from_arrow(cells)
        assert isinstance(series, pl.Series)
        return series


def _unit(bounding: Bounding | None) -> tuple[Hashable, ...]:
    return bounding.unit if bounding else ()
