"""pandas frames: the used columns become Polars series, without a copy where NumPy holds them."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from dpframe.engine.held import Held
from dpframe.engine.pandas_cells import (
    describe_dtype,
    id_series,
    key_columns,
    key_series,
    presence,
    takeable,
    to_polars,
)
from dpframe.engine.polars_query import Query, code_rows, complete_rows, key_form
from dpframe.engine.tally import TallyQuery
from dpframe.errors import InputError
from dpframe.frames.bins import Among, Distinct
from dpframe.frames.columns import Column, lookup
from dpframe.frames.contract import Ask, Axis, Counts, KeyColumns, Parts, Tallied
from dpframe.frames.keys import KeyTable


class PandasSource(Held):
    """A pandas frame."""

    library = "pandas"
    _frame: pd.DataFrame

    def __repr__(self) -> str:
        return f"<pandas.DataFrame with {self._frame.shape[1]} columns>"

    def names(self) -> list[Hashable]:
        return list(self._frame.columns)

    def column(self, name: Hashable) -> Column:
        return describe_dtype(name, self._series(name).dtype)

    def _series(self, name: Hashable) -> pd.Series[Any]:
        columns = self._frame.columns
        try:
            where = columns.get_loc(name)
        except (KeyError, TypeError):
            where = None
        if not isinstance(where, int | np.integer):
            if where is None and name is not None and name in list(self._frame.index.names):
                raise InputError(
                    f"{name!r} is a level of the index, not a column.", hint="df.reset_index() makes it one"
                )
            lookup(name, self.names())
            where = self.names().index(name)
            return self._frame.iloc[:, where]
        return self._frame[name]

    def foreign_step(self, unit: tuple[str, ...]) -> str | None:
        return None

    def aggregate(self, ask: Ask) -> Counts:
        data = self._placed(ask)
        valued = {a.column for m in ask.measures if m.products for a in m.axes}
        for i, name in enumerate(ask.measured):
            s = self._series(name)
            data[f"m{i}"] = to_polars(s) if name in valued else presence(s)
        if not data and not self._gaps(ask):  # count() reads no column
            return Counts(np.array([len(self._frame)], dtype=np.int64), (), ())
        query = Query(
            self._complete(ask, data),
            {c: (pl.col(f"m{i}"), data[f"m{i}"].dtype) for i, c in enumerate(ask.measured)},
            [_form(f"k{i}", data) for i in range(len(ask.by))],
            [_form(f"u{i}", data) for i in range(len(ask.unit))],
            len(self._frame),
        )
        return query.counts(ask)

    def tally(self, ask: Ask) -> tuple[Tallied, ...]:
        data = self._placed(ask)
        for i, t in enumerate(ask.tallies):
            s, c = self._series(t.column), self.column(t.column)
            if isinstance(t.how, Among):
                data[f"m{i}"] = key_series(s, c, t.how.keys.columns[0])
            else:
                data[f"m{i}"] = id_series(s, c) if isinstance(t.how, Distinct) else to_polars(s)
        query = TallyQuery(
            self._complete(ask, data),
            [
                _form(f"m{i}", data) if isinstance(t.how, Among | Distinct) else pl.col(f"m{i}")
                for i, t in enumerate(ask.tallies)
            ],
            [_form(f"k{i}", data) for i in range(len(ask.by))],
            [_form(f"u{i}", data) for i in range(len(ask.unit))],
            len(self._frame),
        )
        return query.counts(ask)

    def _complete(self, ask: Ask, data: dict[str, pl.Series]) -> pl.LazyFrame:
        """The complete rows of ``data``."""
        axes = self._gaps(ask)
        in_lists = {a.column for a in axes if a.item is not None}
        values: dict[Hashable, tuple[pl.Expr, Any]] = {}
        beside = dict(data)
        for i, name in enumerate(dict.fromkeys(a.column for a in axes)):
            s = self._series(name)
            cells = beside[f"c{i}"] = to_polars(s) if name in in_lists else presence(s)
            values[name] = (pl.col(f"c{i}"), cells.dtype)
        return complete_rows(pl.DataFrame(beside).lazy(), axes, values)

    def _gaps(self, ask: Ask) -> list[Axis]:
        """What must be there in complete rows, but for columns whose type holds no missing cell."""
        return [a for a in ask.complete if self.column(a.column).nullable]

    def _placed(self, ask: Ask) -> dict[str, pl.Series]:
        """The grouping columns k0, ... and the unit's columns u0, ..."""
        keys = ask.keys.columns if ask.keys else [None] * len(ask.by)
        data = {f"k{i}": key_series(self._series(c.name), c, k) for i, (c, k) in enumerate(zip(ask.by, keys))}
        for i, u in enumerate(ask.unit):
            data[f"u{i}"] = id_series(self._series(u), self.column(u))
        return data

    def key_columns(self, by: tuple[Column, ...], keys: KeyTable | None, found: Any) -> KeyColumns:
        return key_columns([self._series(c.name).dtype for c in by], by, keys, found)

    def part(self, ask: Ask) -> Parts:
        assert ask.keys is not None
        data = self._placed(ask)
        rows = pl.DataFrame(data).with_columns(_form(name, data).alias(name) for name in data)
        coded = code_rows(rows.with_row_index("row").lazy(), ask)
        found = coded.select("row", "code").sort("code", "row").collect()
        edges = np.searchsorted(found["code"].to_numpy(), np.arange(ask.keys.size + 1))
        where = found["row"].to_numpy()
        frame = self._frame.copy()  # parts must not follow later changes in place
        for i, t in enumerate(frame.dtypes):
            if isinstance(t, pd.ArrowDtype):
                frame.isetitem(i, takeable(frame.iloc[:, i]).array)
        return [
            (lambda low=low, high=high: PandasSource(frame.iloc[where[low:high]]))  # type: ignore[misc]
            for low, high in pairwise(edges)
        ]


def _form(name: str, data: dict[str, pl.Series]) -> pl.Expr:
    return key_form(pl.col(name), "float" if data[name].dtype.is_float() else "")
