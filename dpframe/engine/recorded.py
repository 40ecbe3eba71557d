"""A frame of which only names and types are known: those of an answer that a ledger stored."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

from dpframe.engine.held import Held
from dpframe.engine.pandas_cells import key_columns as pandas_keys
from dpframe.engine.polars_query import restore
from dpframe.errors import InputError
from dpframe.frames.columns import Column, lookup
from dpframe.frames.contract import Ask, Counts, KeyColumns, Parts, Tallied
from dpframe.frames.keys import KeyTable


class Recorded(Held):
    """Where a stored answer is asked for again: the question is planned from what was recorded, and no frame is read.

    Privacy: nothing can be added up here. A question that is not the one that was stored is refused by the ledger.
    """

    def __init__(self, columns: tuple[Column, ...], library: str, part_of: Any = None) -> None:
        super().__init__(None)
        self._columns, self.library, self.part_of = columns, library, part_of
        if library == "pandas":
            self._dtypes = {c.name: _dtype(c) for c in columns}

    def __repr__(self) -> str:
        return f"<a stored answer of {len(self._columns)} columns>"

    def names(self) -> list[Hashable]:
        return [c.name for c in self._columns]

    def column(self, name: Hashable) -> Column:
        lookup(name, self.names())
        return next(c for c in self._columns if c.name == name and type(c.name) is type(name))

    def foreign_step(self, unit: tuple[str, ...]) -> str | None:
        return None

    def aggregate(self, ask: Ask) -> Counts:
        raise RuntimeError("there is no frame")

    def tally(self, ask: Ask) -> tuple[Tallied, ...]:
        raise RuntimeError("there is no frame")

    def part(self, ask: Ask) -> Parts:
        raise RuntimeError("there is no frame")

    def key_columns(self, by: tuple[Column, ...], keys: KeyTable | None, found: Any) -> KeyColumns:
        if self.library == "pandas":
            return pandas_keys([self._dtypes[c.name] for c in by], by, keys, found)
        columns = [c.engine for c in keys.columns] if keys else found.get_columns() if by else []
        return KeyColumns(self.library, {str(c.name): restore(s, c) for s, c in zip(columns, by)})


class Shut(Recorded):
    """A source that can't be opened, and need not be: whatever is asked of it but stored answers is refused."""

    def __init__(self, why: InputError) -> None:
        super().__init__((), "polars")
        self._why = why

    def __repr__(self) -> str:
        return "<a source that is not there>"

    def column(self, name: Hashable) -> Column:
        raise self._why


def _dtype(c: Column) -> Any:
    """The pandas dtype of a column; InputError where its text does not say it."""
    inner = c.native if c.kind == "categorical" else c
    try:
        dtype = pd.api.types.pandas_dtype(inner.text)
    except (TypeError, ValueError, NotImplementedError):
        raise InputError(f"{c.name!r} is {c.text}, of which the ledger does not hold enough.") from None
    return pd.CategoricalDtype(pd.Index([], dtype=dtype)) if c.kind == "categorical" else dtype
