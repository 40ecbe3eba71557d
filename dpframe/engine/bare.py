"""The cells of a Polars frame without what the frame says about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from polars import selectors


class _Cells:
    """A frame behind Arrow's C interface, which carries cells and types and no flags; cells are not copied."""

    __slots__ = ("_frame",)

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._frame.__arrow_c_stream__(requested_schema)


def named(column: str) -> pl.Expr:
    """The column of exactly this name; ``pl.col`` takes "*" and "^...$" for patterns, and finds no empty name."""
    return selectors.by_name(column).as_expr()


def bare(frame: pl.DataFrame | pl.LazyFrame, names: Sequence[str] | None = None) -> pl.LazyFrame:
    """These columns (None: all), of which nothing is known but names, types and cells.

    Polars' group-by, joins, comparisons and sorts trust a column's sorted flag, which ``set_sorted`` and the
    ``sorting_columns`` of a Parquet file set unchecked, and which passes through most expressions; the optimizer
    derives the same from a lazy plan, and skips rows by a file's statistics.

    Privacy: if a flag is wrong, each run of equal ids would be a unit of its own, and one row could move any number of
    groups. Here flags end, of every batch; and as a lazy plan's cells pass through a function of ours, the optimizer
    sees neither order nor statistics beyond it. What a batch holds in another type than the schema says is cast cell by
    cell.
    """
    if isinstance(frame, pl.DataFrame):
        frame = frame if names is None else pl.DataFrame({n: frame.get_column(n) for n in names})
        return _stripped(frame, frame.schema).lazy()
    frame = frame if names is None else frame.select(map(named, names))
    schema = frame.collect_schema()
    return frame.map_batches(
        lambda batch: _stripped(batch, schema),
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
        validate_output_schema=False,
        schema=pl.Schema((n, _told(t)) for n, t in schema.items()),
        streamable=True,
    )


def _stripped(frame: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    objects = [n for n, t in schema.items() if t == pl.Object]
    if objects:  # Python's own, which Arrow can't carry: whether they are there
        frame = frame.with_columns(pl.when(named(n).is_not_null()).then(True).alias(n) for n in objects)
    cells = pl.DataFrame(_Cells(frame))
    if cells.schema != schema and not objects:
        cells = cells.cast(schema, strict=False)
    wrong = [s.name for s in cells.get_columns() if s.null_count() and not _counted(s)]
    return cells.with_columns(named(n).gather(pl.int_range(pl.len())) for n in wrong) if wrong else cells


def _counted(s: pl.Series) -> bool:
    """Whether as many cells are null as the series says (one made of an Arrow array says what that said)."""
    return bool(np.count_nonzero(s.is_not_null().to_numpy()) == len(s) - s.null_count())


def _told(dtype: Any) -> Any:
    return pl.Boolean() if dtype == pl.Object else dtype
