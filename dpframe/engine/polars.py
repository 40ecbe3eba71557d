"""Polars: the embedded engine. Frames of other in-memory libraries enter here, column by column."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import polars as pl

from dpframe.engine.bare import bare, named
from dpframe.engine.held import Held
from dpframe.engine.polars_literals import wrong_literal
from dpframe.engine.polars_plan import foreign_step
from dpframe.engine.polars_query import Query, _key, code_rows, complete_rows, key_form, restore, streams
from dpframe.engine.polars_scans import as_read
from dpframe.engine.tally import TallyQuery
from dpframe.frames.bins import Among, Distinct, Tally
from dpframe.frames.columns import Column, lookup
from dpframe.frames.contract import Ask, Counts, KeyColumns, Parts, Tallied
from dpframe.frames.keys import KeyTable

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


class PolarsSource(Held):
    """A Polars frame, eager or lazy."""

    def __init__(self, frame: pl.DataFrame | pl.LazyFrame) -> None:
        super().__init__(frame)
        self._known: pl.Schema | None = None

    @property
    def _schema(self) -> pl.Schema:
        """Names and types. A lazy frame is opened when they are first asked for, as a stored answer needs none."""
        if self._known is None or isinstance(self._frame, pl.DataFrame):  # which may be changed in place
            self._known = self._frame.collect_schema()
        return self._known

    def __repr__(self) -> str:
        return f"<{type(self._frame).__name__} with {len(self._schema)} columns>"

    def names(self) -> list[Hashable]:
        return list(self._schema.names())

    def column(self, name: Hashable) -> Column:
        if not isinstance(name, str) or name not in self._schema:
            lookup(name, self.names())
        return describe(name, self._schema[str(name)])

    def foreign_step(self, unit: tuple[str, ...]) -> str | None:
        return None if isinstance(self._frame, pl.DataFrame) else foreign_step(self._frame, unit)

    def wrong_literal(self) -> str | None:
        return wrong_literal(self._frame) if isinstance(self._frame, pl.LazyFrame) else None

    def _opened(self, names: Sequence[Hashable] | None) -> tuple[pl.LazyFrame, int | None]:
        """The frame with these columns (None: all), and how many rows it has, if that is known."""
        height = self._frame.height if isinstance(self._frame, pl.DataFrame) else None
        if names is not None and not names:  # count() reads no column, but needs the rows
            return self._frame.lazy(), height
        return bare(self._frame, None if names is None else [str(n) for n in names]), height

    def _rows(self, ask: Ask) -> tuple[pl.LazyFrame, int | None]:
        """The complete rows with the columns that are asked for, and how many rows the frame has, if that is known."""
        frame, height = self._opened(ask.columns)
        return complete_rows(frame, ask.complete, self._values(a.column for a in ask.complete)), height

    def _values(self, names: Iterable[Hashable]) -> dict[Hashable, tuple[pl.Expr, Any]]:
        return {c: (named(str(c)), self._schema[str(c)]) for c in names}

    def aggregate(self, ask: Ask) -> Counts:
        frame, height = self._rows(ask)
        query = Query(
            frame,
            self._values(ask.measured),
            self._by(ask),
            self._unit(ask),
            height,
        )
        return query.counts(ask)

    def tally(self, ask: Ask) -> tuple[Tallied, ...]:
        frame, height = self._rows(ask)
        values = [self._tallied(t) for t in ask.tallies]
        return TallyQuery(frame, values, self._by(ask), self._unit(ask), height).counts(ask)

    def _tallied(self, t: Tally) -> pl.Expr:
        c, x = self.column(t.column), named(str(t.column))
        if isinstance(t.how, Among):
            return _key(x, c, t.how.keys, 0)
        return key_form(x, c.kind) if isinstance(t.how, Distinct) else x

    def _by(self, ask: Ask) -> list[pl.Expr]:
        return [_key(named(str(c.name)), c, ask.keys, i) for i, c in enumerate(ask.by)]

    def _unit(self, ask: Ask) -> list[pl.Expr]:
        return [key_form(named(str(u)), self.column(u).kind) for u in ask.unit]

    def part(self, ask: Ask) -> Parts:
        temporary = {f"k{i}": x for i, x in enumerate(self._by(ask))}
        temporary |= {f"u{i}": x for i, x in enumerate(self._unit(ask))}
        frame, height = self._opened(None)
        rows = frame.select(
            pl.struct(pl.all()).alias("row"), *(x.alias(name) for name, x in temporary.items())
        )
        # Collected once, a lazy frame too: read again, it could put a row into two parts.
        rows = code_rows(rows, ask)
        engine: Any = "streaming" if streams(height) else "in-memory"
        coded = rows.collect(engine=engine, optimizations=as_read(rows)).lazy()
        assert ask.keys is not None
        return [
            (lambda i=i: PolarsSource(coded.filter(pl.col("code") == i).select("row").unnest("row")))  # type: ignore[misc]
            for i in range(ask.keys.size)
        ]

    def key_columns(self, by: tuple[Column, ...], keys: KeyTable | None, found: Any) -> KeyColumns:
        columns = [c.engine for c in keys.columns] if keys else found.get_columns() if by else []
        return KeyColumns(self.library, {str(c.name): restore(s, c) for s, c in zip(columns, by)})
