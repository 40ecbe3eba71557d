"""DuckDB, Ibis, SQLFrame and Spark through one narwhals definition: the source that the pipeline asks."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any

import narwhals.stable.v2 as nw

from dpframe.engine.held import Held
from dpframe.engine.polars import describe
from dpframe.engine.polars_query import restore
from dpframe.engine.relational_query import Query, lazy, polars_type
from dpframe.engine.relational_tally import tally
from dpframe.engine.wire import (
    wordy,
)
from dpframe.frames.columns import Column, lookup
from dpframe.frames.contract import NO_PARTS, Ask, Counts, KeyColumns, Parts, Tallied
from dpframe.frames.keys import KeyTable

_PLAIN = re.compile("Boolean|U?Int(8|16|32|64)|Int128|Float(32|64)|String|Date")
_ROUNDER = 3 << 51  # an axis' magic, in its steps


def open_frame(frame: Any, family: Any) -> RelationalSource:
    """The source of a frame; TypeError where the family can't keep what is promised."""
    reason = family.refused(frame)
    if reason is not None:
        raise TypeError(
            f"dp.frame does not take {reason}: it is not known that they count in the same integers as others."
            " Hint: dp.frame(pl.scan_parquet(...)), or collect the columns you need into a Polars frame"
        )
    return RelationalSource(frame, family)


class RelationalSource(Held):
    """A table in a database or on a cluster. Its answers are Polars frames."""

    lacks: Mapping[str, str] = {"parts": NO_PARTS}

    def __init__(self, frame: Any, family: Any) -> None:
        super().__init__(frame)
        self._family = family
        self._collations: dict[str, bool] = {}
        self._native = family.native(frame)
        self._schema = {n: (polars_type(t), str(t)) for n, t in lazy(self._native).collect_schema().items()}

    def __repr__(self) -> str:
        return f"<{self._family.name} {type(self._frame).__name__} with {len(self._schema)} columns>"

    def names(self) -> list[Hashable]:
        return list(self._schema)

    def column(self, name: Hashable) -> Column:
        lookup(name, self.names())
        native, text = self._schema[str(name)]
        if native is None:
            return Column(name, "other", text, True)
        c = describe(name, native)
        if wordy(c) and self._collated(str(name)):
            return Column(name, "other", f"{text} with a collation", True)
        return c

    def _collated(self, name: str) -> bool:
        """Whether the engine takes different texts of a column for one, or may; asked once, and no row is read.

        Privacy: it would count one row for two listed keys, and which of the texts is a found key would hang on a row.
        """
        if name in self._collations:
            return self._collations[name]
        none = lazy(self._native).head(0).select(nw.col(name).max()).select(nw.col(name).cast(nw.String))
        pairs = (("A", "a"), ("a", "\u00e1"), ("e\u0301", "\u00e9"), ("B", "a"))  # by bytes the first is less
        x = nw.col(name)
        less = [
            (nw.coalesce(x, nw.lit(a)) < nw.coalesce(x, nw.lit(b))).alias(f"less{i}")
            for i, (a, b) in enumerate(pairs)
        ]
        found = none.select(*less).collect("pyarrow").to_native()
        self._collations[name] = not all(found.column(i)[0].as_py() for i in range(len(pairs)))
        return self._collations[name]

    def plan_text(self) -> str | None:
        return f"{self._family.name} query"  # anything may have happened in it

    def aggregate(self, ask: Ask) -> Counts:
        return Query(self, ask).counts(ask)

    def tally(self, ask: Ask) -> tuple[Tallied, ...]:
        return tuple(tally(self, t, ask) for t in ask.tallies)

    def part(self, ask: Ask) -> Parts:
        raise NotImplementedError(NO_PARTS)

    def key_columns(self, by: tuple[Column, ...], keys: KeyTable | None, found: Any) -> KeyColumns:
        columns = [c.engine for c in keys.columns] if keys else found.get_columns() if by else []
        return KeyColumns(self.library, {str(c.name): restore(s, c) for s, c in zip(columns, by)})
