"""DuckDB, Ibis, SQLFrame and Spark through one narwhals definition: the source that the pipeline asks."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from dpframe.engine.held import Held
from dpframe.engine.polars import describe
from dpframe.engine.polars_query import restore
from dpframe.engine.relational_query import Query, lazy
from dpframe.engine.relational_tally import tally
from dpframe.engine.wire import Cell
from dpframe.errors import Message, wrong_type
from dpframe.frames.columns import Column, lookup
from dpframe.frames.contract import NO_PARTS, Ask, Counts, KeyColumns, Parts, Tallied
from dpframe.frames.keys import KeyTable

_PLAIN = re.compile("Boolean|U?Int(8|16|32|64)|Int128|Float(32|64)|String|Date")
_TICKS = {"s": "seconds", "ms": "millis", "us": "micros", "ns": "nanos"}


def polars_type(dtype: Any) -> Any:
    """The Polars type with the same values; None where there is none."""
    name = type(dtype).__name__
    if _PLAIN.fullmatch(name):
        return getattr(pl, name)()
    if name == "Datetime":
        return pl.Datetime("ns" if dtype.time_unit == "ns" else "us", dtype.time_zone)
    if name == "Decimal":
        return pl.Decimal(dtype.precision, dtype.scale)
    if name == "Enum":
        return pl.Enum(dtype.categories)
    inner = polars_type(dtype.inner) if name in ("List", "Array") else None
    if inner is None:
        return None
    return pl.List(inner) if name == "List" else pl.Array(inner, dtype.shape)


def _cell(place: str, dtype: Any, name: str, text: str, fits: bool) -> Cell:
    native = polars_type(dtype) if fits else None
    if native is None:
        return Cell(Column(name, "other", text, True), place)
    column = describe(name, native, None if type(dtype).__name__ == "Enum" else str(dtype))
    ticks = (
        _TICKS[dtype.time_unit] if column.kind == "datetime" else "days" if column.kind == "date" else None
    )
    return Cell(column, place, ticks)


def open_frame(frame: Any, family: Any) -> RelationalSource:
    """The source of a frame; TypeError where the family can't keep what is promised."""
    reason = family.refused(frame)
    if reason is not None:
        raise wrong_type(
            f"dp.frame does not take {reason}: it is not known that they count in the same integers as"
            " others.",
            hint="dp.frame(pl.scan_parquet(...)), or collect the columns you need into a Polars frame",
        )
    return RelationalSource(frame, family)


def _opened(frame: Any, family: Any) -> tuple[Any, list[Cell]] | str:
    """The family's frame with its columns by place, and what they are; the name of the error where it can't say it."""
    try:
        native, columns = family.opened(frame)
        schema = lazy(native).collect_schema()
    except Exception as e:  # its words may quote what lies around it
        return type(e).__name__
    return native, [_cell(p, t, *c) for (p, t), c in zip(schema.items(), columns, strict=True)]


class RelationalSource(Held):
    """A table in a database or on a cluster. Its answers are Polars frames."""

    lacks: Mapping[str, Message] = {"parts": NO_PARTS}

    def __init__(self, frame: Any, family: Any) -> None:
        super().__init__(frame)
        self._family = family
        self._collations: dict[str, bool] = {}
        opened = _opened(frame, family)
        if isinstance(opened, str):
            raise wrong_type(
                f"{family.name} can't tell the columns of this frame ({opened}; its words are withheld).",
                hint="look at frame.limit(0) outside of dpframe",
            )
        self._native, self._cells = opened

    def __repr__(self) -> str:
        return f"<{self._family.name} {type(self._frame).__name__} with {len(self._cells)} columns>"

    def names(self) -> list[Hashable]:
        return [c.column.name for c in self._cells]

    def cell(self, name: Hashable) -> Cell:
        """How a column is read; InputError when it is absent or there are two of that name."""
        lookup(name, self.names())
        return next(c for c in self._cells if c.column.name == name)

    def column(self, name: Hashable) -> Column:
        cell = self.cell(name)
        if cell.wordy and self._collated(cell.place):
            return Column(name, "other", f"{cell.column.text} with a collation", True)
        return cell.column

    def _collated(self, place: str) -> bool:
        """Whether the engine takes different texts of a column for one, or may; asked once, and no row is read.

        Privacy: it would count one row for two listed keys, and which of the texts is a found key would hang on a row.
        """
        if place in self._collations:
            return self._collations[place]
        x = nw.col(place)
        none = lazy(self._native).head(0).select(x.max()).select(x.cast(nw.String))
        pairs = (("A", "a"), ("a", "\u00e1"), ("e\u0301", "\u00e9"), ("B", "a"))  # by bytes the first is less
        less = [
            (nw.coalesce(x, nw.lit(a)) < nw.coalesce(x, nw.lit(b))).alias(f"less{i}")
            for i, (a, b) in enumerate(pairs)
        ]
        try:
            found = none.select(*less).collect("pyarrow").to_native()
            bytewise = all(found.column(i)[0].as_py() for i in range(len(pairs)))
        except Exception:  # an engine that can't say it of no row
            bytewise = False
        self._collations[place] = not bytewise
        return self._collations[place]

    def foreign_step(self, unit: tuple[str, ...]) -> str | None:
        return f"{self._family.name} query"  # anything may have happened in it

    def out_of_order(self) -> bool:
        """See the contract. A cluster is not asked: that would take as long as a small query."""
        if not getattr(self._family, "embedded", True) or not self._cells:
            return False
        try:
            lazy(self._native).head(0).select(nw.col(self._cells[0].place).alias("ready")).collect("pyarrow")
        except Exception:
            return True
        return False

    def aggregate(self, ask: Ask) -> Counts:
        return Query(self, ask).counts(ask)

    def tally(self, ask: Ask) -> tuple[Tallied, ...]:
        if ask.groups is not None and not ask.groups.size:  # nothing was found, so nothing is left to count
            return tuple(Tallied(*np.empty((3, 0), dtype=np.int64)) for _ in ask.tallies)
        return tuple(tally(self, t, ask) for t in ask.tallies)

    def part(self, ask: Ask) -> Parts:
        raise NotImplementedError(NO_PARTS.said[0])

    def key_columns(self, by: tuple[Column, ...], keys: KeyTable | None, found: Any) -> KeyColumns:
        columns = [c.engine for c in keys.columns] if keys else found.get_columns() if by else []
        return KeyColumns(self.library, {str(c.name): restore(s, c) for s, c in zip(columns, by)})
