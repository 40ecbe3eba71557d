"""The cells of a Polars frame, or an Arrow array, without what these say about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
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
    wrong = [s for s in cells.get_columns() if s.dtype.is_nested() or (s.null_count() and not _counted(s))]
    return cells.with_columns(_recounted(s) for s in wrong) if wrong else cells


def _counted(s: pl.Series) -> bool:
    """Whether as many cells are null as the series says (one made of an Arrow array says what that said)."""
    return bool(np.count_nonzero(s.is_not_null().to_numpy()) == len(s) - s.null_count())


def _recounted(s: pl.Series) -> pl.Series:
    """The same cells, with the nulls that they have; those inside of lists, arrays and structs, too."""
    try:
        found = pl.from_arrow(counted(s.to_arrow(compat_level=pl.CompatLevel.newest())))
    except pa.ArrowException:  # integers of 128 bits, which no Arrow array holds
        return s.gather(pl.int_range(len(s), eager=True))
    assert isinstance(found, pl.Series)
    return (found if found.dtype == s.dtype else found.cast(s.dtype)).alias(s.name)


def counted(cells: Any) -> Any:
    """The same cells of an Arrow array, of which nobody has said how many are null, nor inside of how many lists.

    An Arrow array carries that number, which nothing checks; readers skip the bits that say which if it is 0, and some
    take all for null if it is the length.
    """
    if isinstance(cells, pa.ChunkedArray):
        return pa.chunked_array([counted(c) for c in cells.chunks], type=cells.type)
    t, n, at = cells.type, len(cells), cells.offset
    if isinstance(cells, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(t, counted(cells.storage))
    if pa.types.is_dictionary(t):
        return pa.DictionaryArray.from_arrays(
            _within(counted(cells.indices), len(cells.dictionary)),
            counted(cells.dictionary),
            ordered=t.ordered,
        )
    if t.num_fields == 0:
        return pa.Array.from_buffers(t, n, cells.buffers(), -1, at)
    if pa.types.is_struct(t):
        fields = [counted(cells.field(i)) for i in range(t.num_fields)]
        return pa.StructArray.from_arrays(fields, fields=list(t), mask=_null(cells))
    own = next((size for known, size in _LISTS if known(t)), None)
    if own is None:
        return cells
    buffers = cells.buffers()[:own]
    found = pa.Array.from_buffers(t, n, buffers, -1, at, [counted(cells.values)])
    if pa.types.is_fixed_size_list(t) and at:  # Polars can't read it from the middle
        return found.take(pa.array(np.arange(n)))
    return found


def _within(places: Any, size: int) -> Any:
    """Places in a dictionary; one that lies beyond it, which nothing checks where an array is made, is missing.

    Privacy: each cell decides for itself, and none makes the release fail.
    """
    inside = pc.and_(pc.greater_equal(places, 0), pc.less(pc.cast(places, pa.float64()), float(size)))
    return pc.if_else(inside, places, None)


_LISTS = (
    (pa.types.is_list, 2),
    (pa.types.is_large_list, 2),
    (pa.types.is_map, 2),
    (pa.types.is_fixed_size_list, 1),
    (pa.types.is_list_view, 3),
    (pa.types.is_large_list_view, 3),
)  # and how many buffers are a list's own


def _null(cells: Any) -> Any:
    """Which cells are null, by the bits that say so."""
    bits = cells.buffers()[0]
    if bits is None:
        return pa.array(np.zeros(len(cells), dtype=bool))
    return pc.invert(pa.Array.from_buffers(pa.bool_(), len(cells), [None, bits], 0, cells.offset))


def _told(dtype: Any) -> Any:
    return pl.Boolean() if dtype == pl.Object else dtype
