"""Tables that stay where they are: DuckDB relations, Ibis tables, SQLFrame's and PySpark's DataFrames.

One definition, in narwhals, for all of them. What narwhals lacks (a hash, instants as integers, a small
table next to a given one) is a module per family: ``refused``, ``opened``, ``call``, ``texts``. Only one row of
integers per group leaves the engine.

Floats reach engines as text that they cast: a literal with a point is a decimal number on some. Quotients of
integers are made in floats that hold them and corrected in integers.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import reduce
from operator import and_, mul
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from dpframe.engine.polars_query import added
from dpframe.engine.scaling import scaled, weighed
from dpframe.engine.wire import Cell, clipped, divided, integer, number, part, present, text
from dpframe.frames.contract import Ask, Axis, Ball, Counts, Ints, Measure
from dpframe.frames.keys import KeyTable

_ROUNDER = 3 << 51  # an axis' magic, in its steps


class Query:
    """Questions to one frame, grouped ``by`` columns k0, ... of every ``unit`` u0, ...

    ``more`` names other columns to bring to the form of keys.
    """

    def __init__(self, source: Any, ask: Ask, more: Mapping[str, Hashable] | None = None) -> None:
        self.family, self.native, self.cell = source._family, source._native, source.cell
        self.by = {f"k{i}": self.cell(c.name) for i, c in enumerate(ask.by)}
        self.unit = {f"u{i}": self.cell(u) for i, u in enumerate(ask.unit)}
        self.complete = ask.complete
        others = {name: self.cell(c) for name, c in (more or {}).items()}
        self.keyed: dict[str, Cell] = {**self.by, **self.unit, **others}

    def select(self, *values: nw.Expr) -> nw.LazyFrame[Any]:
        """The key-like columns on the wire and ``values`` of every complete row."""
        frame, columns = self.native, []
        for name, c in self.keyed.items():
            place = c.place
            if c.ticks is not None:
                place = f"t_{name}"
                frame = self.family.call(frame, c.ticks, {place: c.place})
            columns.append(c.wire(nw.col(place)).alias(name))
        columns += values
        rows = lazy(frame)
        if self.complete:
            rows = rows.filter(reduce(and_, (~self._cell(a).is_null() for a in self.complete)))
        return rows.select(*columns) if columns else rows

    def texted(
        self, rows: nw.LazyFrame[Any], names: Sequence[str], new: str, cells: Mapping[str, Cell], *first: str
    ) -> nw.LazyFrame[Any]:
        """``rows`` with one text ``new``: ``first``, then the columns ``names``, which are ``cells`` or integers."""
        words = {n: f"octets_{n}" for n in names if n in cells and cells[n].wordy}
        if words:
            rows = self.called(rows, "octets", {octets: n for n, octets in words.items()})
        parts = [*(nw.lit(x) for x in first), *(part(n, words.get(n)) for n in names)]
        return rows.with_columns(text(parts).alias(new)).drop(*words.values())

    def called(self, rows: nw.LazyFrame[Any], function: str, columns: Mapping[str, str]) -> nw.LazyFrame[Any]:
        """``rows`` with new columns: a function of the family of one column each."""
        return lazy(self.family.call(rows.to_native(), function, columns))

    def key(
        self, rows: nw.LazyFrame[Any], names: Sequence[str], new: str, cells: Mapping[str, Cell]
    ) -> nw.LazyFrame[Any]:
        """``rows`` with what they are joined by: the bytes of the text of ``names``.

        Privacy: different cells have different bytes, and bytes are compared one by one; under a collation the texts
        "-1" and "1" may be equal.
        """
        return self.called(self.texted(rows, names, "whole", cells), "bytes", {new: "whole"}).drop("whole")

    def counts(self, ask: Ask) -> Counts:
        """Count rows and present cells and add up steps and their products, per group, each unit within its bounds.

        Privacy: as in Polars' engine. Missing (null, NaN) is mapped to null before anything else, so it
        adds nothing; a cell's steps are clipped as integers after the cast, so a row moves a sum by at
        most K whatever the engine's floats do; sums are of integers. Units are bounded in the engine by
        one query, which reads the data once; nothing but counts and sums per group comes back.
        """
        measures, keys, bounding = ask.measures, ask.keys, ask.bounding
        by, unit = [*self.by], [*self.unit]
        axes = {a: f"x{j}" for j, a in enumerate(dict.fromkeys(a for m in measures for a in m.axes))}
        rows = _on_grid(self.select(*(self._cell(a).alias(name) for a, name in axes.items())), axes)
        where: list[list[str]] = []  # the columns of every measure's axes
        for i, m in enumerate(measures):
            cells = [axes[a] for a in m.axes]
            if m.ball is not None or len(cells) > 1:
                rows = _joint(rows, i, cells, m.ball)
                cells = [f"y{i}_{j}" for j in range(len(cells))]
            where.append(cells)
        names = ask.sums
        if bounding is not None:
            rows = rows.drop_nulls(unit)
        found = grouped(rows, unit + by, _sums(measures, where), names)
        listed, place = keys if by else None, by
        if bounding is not None:
            if listed is not None and (ask.chosen is not None or bounding.total is not None):
                found, place = self._listed(found, listed), ["code"]  # rows of other groups use up no limit
            if ask.chosen is not None:
                found = choose_groups(found, self, ask.chosen, ask.salt)
            if ask.weighed:
                found, names = weighed(nw, found, unit, number), ["weight", *names]
            found = scaled(nw, found, measures, unit, bounding, divided)
            totals = [nw.len().alias("m"), *(nw.col(x).sum().alias(x) for x in names)]
            names = ["m", *names]
            found = grouped(found, place, totals, names)
        if listed is not None and place == by:  # few lines are left to find in a table of texts
            found, place = self._listed(found, listed), ["code"]
        if listed is None and by:
            found = self._sent(found)
        return self._answer(collected(found.select(*place, *names), place), measures, listed)

    def _listed(self, found: nw.LazyFrame[Any], keys: KeyTable) -> nw.LazyFrame[Any]:
        """The lines of listed keys, with the place of theirs as ``code``."""
        found = self.key(found, [*self.by], "key", self.by)
        return found.join(key_table(self, [*self.by.values()], keys), on="key", how="inner")

    def _sent(self, found: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Found keys as they leave the engine: texts as bytes, as what is not Unicode is no text elsewhere."""
        found = found.with_columns(c.sent(nw.col(n)).alias(n) for n, c in self.by.items())
        words = {f"{n}_bytes": n for n, c in self.by.items() if c.wordy}
        if not words:
            return found
        made = self.called(found, "bytes", words)
        return made.drop(*words.values()).rename(words)

    def _answer(self, got: pl.DataFrame, measures: tuple[Measure, ...], keys: KeyTable | None) -> Counts:
        """The integers of every listed group, or of every found one that has a name to be released under.

        Privacy: whether a key has one is seen from the key alone, so leaving its group out leaves out rows by their
        own cells.
        """
        by, found = [*self.by], None
        if keys is None and by:
            released = {n: c.released(got[n]) for n, c in self.by.items()}
            got = got.with_columns(s.alias(n) for n, (s, _) in released.items())
            got = got.filter(reduce(and_, (fits for _, fits in released.values()))).sort(by)
            found = got.select(by)

        def of(name: str) -> Ints:
            values: Ints = got[name].cast(pl.Int64).to_numpy().astype(np.int64, copy=False)
            if keys is None:
                return values
            out = np.zeros(keys.size, dtype=np.int64)
            out[got["code"].cast(pl.Int64).to_numpy()] = values
            return out

        present = tuple(of(f"c{i}") for i in range(len(measures)))
        sums = tuple(tuple(of(f"t{i}_{p}") for p in range(len(m.products))) for i, m in enumerate(measures))
        units, weights = (of(x) if x in got.columns else None for x in ("m", "weight"))
        return Counts(of("n"), present, sums, units, found, weights=weights)

    def _cell(self, a: Axis) -> nw.Expr:
        """A row's number on this axis, null where it is missing: its steps, whole and not yet clipped, or the cell as it is."""
        cell = self.cell(a.column)
        x, dtype = nw.col(cell.place), cell.column.native
        if a.item is not None:
            x = nw.when(x.list.len() == a.length).then(x.list.get(a.item))
            dtype = dtype.inner
        if a.low is None or a.high is None:
            return present(x) if dtype is not None and dtype.is_float() else x
        magic, a_step = number(a.magic), number(_ROUNDER / a.magic)
        return ((present(x.cast(nw.Float64)) + magic) - magic) * a_step


def key_table(query: Query, cells: Sequence[Cell], keys: KeyTable) -> nw.LazyFrame[Any]:
    """The listed keys as a table of the engine: their bytes as ``key``, and their place as ``code``."""
    names = [f"s{i}" for i in range(len(cells))]
    columns: dict[str, list[str | None]] = {
        n: c.texts(k.engine) for n, k, c in zip(names, keys.columns, cells)
    }
    columns["code"] = [str(i) for i in range(keys.size)]
    table = told(query, columns)
    read = (c.read(nw.col(n)).alias(n) for n, c in zip(names, cells))
    table = table.select(*read, nw.col("code").cast(nw.Int64))
    return query.key(table, names, "key", dict(zip(names, cells))).select("key", "code")


def told(query: Query, columns: Mapping[str, Sequence[str | None]]) -> nw.LazyFrame[Any]:
    """A table of texts in the engine of the query; one begins with "=", and a missing one is empty on the way."""
    sent = {n: ["" if v is None else f"={v}" for v in values] for n, values in columns.items()}
    table = lazy(query.family.texts(query.native, sent))
    return table.select(
        nw.when(nw.col(n).str.len_chars() > 0).then(nw.col(n).str.slice(1)).alias(n) for n in sent
    )


def choose_groups(pairs: nw.LazyFrame[Any], query: Query, most: int, salt: int) -> nw.LazyFrame[Any]:
    """Keep at most ``most`` groups of every unit, chosen by salted hash rank, ties by key.

    Privacy: a unit's ranks depend on its own groups, its own id and the salt alone, in whatever order
    and however often the engine computes them, so for every salt one unit's rows change nobody else's
    choice; fairness, not privacy, rests on the hash.
    """
    return keep_least(pairs, query, [*query.unit], [*query.unit, *query.by], most, salt)


def keep_least(
    rows: nw.LazyFrame[Any], query: Query, within: Sequence[str], of: Sequence[str], most: int, salt: int
) -> nw.LazyFrame[Any]:
    """Rows whose ``of`` is one of the ``most`` that rank lowest in their ``within``, by salted hash, then by text."""
    rows = query.called(query.texted(rows, of, "text", query.keyed, str(salt)), "md5", {"hash": "text"})
    rows = rows.with_columns(nw.concat_str("hash", "text", separator="|").alias("text"))
    ranked = query.called(rows, "bytes", {"order": "text"})
    ranked = ranked.with_columns(nw.col("order").rank("dense").over(*within).alias("rank"))
    return ranked.filter(nw.col("rank") <= most)


def lazy(native: Any) -> nw.LazyFrame[Any]:
    frame: nw.LazyFrame[Any] = nw.from_native(native)
    return frame


def collected(rows: nw.LazyFrame[Any], by: Sequence[str]) -> pl.DataFrame:
    """What comes back: one line of integers per group, which is checked, as a group that came twice would count twice."""
    table = pl.from_arrow(rows.collect("pyarrow").to_native())
    assert isinstance(table, pl.DataFrame)
    if table.height > 1 and (not by or table.select(by).is_duplicated().any()):
        raise ValueError("a group came back twice")
    return table


def grouped(rows: Any, by: Sequence[str], sums: Sequence[nw.Expr], names: Sequence[str]) -> nw.LazyFrame[Any]:
    """Sums per group; engines widen or narrow them as they like, so all are Int64 again afterwards."""
    made: nw.LazyFrame[Any] = rows.group_by(*by).agg(*sums) if by else rows.select(*sums)
    return made.select(*by, *(nw.col(n).cast(nw.Int64) for n in names))


def _sums(measures: tuple[Measure, ...], where: list[list[str]]) -> list[nw.Expr]:
    sums = [nw.len().alias("n")]
    for i, (m, cells) in enumerate(zip(measures, where)):
        sums.append(nw.col(cells[0]).count().alias(f"c{i}"))
        for p, product in enumerate(m.products):
            sums.append(reduce(mul, (nw.col(cells[j]) for j in product)).sum().alias(f"t{i}_{p}"))
    return sums


# ---- what is added up ----


def _on_grid(rows: nw.LazyFrame[Any], axes: Mapping[Axis, str]) -> nw.LazyFrame[Any]:
    """Steps from ``base`` of every axis that has bounds, from its whole steps.

    Column by column: an engine computes a column once, and an expression as often as it is written.

    Privacy: clipped as floats they fit an integer, and clipped as integers they are within the bounds
    whatever the engine made of the floats.
    """
    clips: list[tuple[str, int, int, int]] = []
    for a, name in axes.items():
        if a.low is not None and a.high is not None:
            step = a.magic / _ROUNDER
            low, high = (int(((b + a.magic) - a.magic) / step) for b in (a.low, a.high))
            clips.append((name, a.base, low, high))
    if not clips:
        return rows
    rows = rows.with_columns(
        clipped(nw.col(x), number(float(low)), number(float(high))).cast(nw.Int64).alias(x)
        for x, _, low, high in clips
    )
    return rows.with_columns(
        (clipped(nw.col(x), integer(low), integer(high)) - base).alias(x) for x, base, low, high in clips
    )


def _joint(rows: Any, i: int, cells: list[str], ball: Ball | None) -> Any:
    """Leave out rows in which a cell is missing, and put vectors into their ball: columns y<i>_0, y<i>_1, ...

    Privacy: as in Polars' engine: the exact norm of the integers decides. Operations on floats are the
    same ones in the same order; a cast of a fraction to an integer rounds on one engine and cuts on
    another, so it is cut before.
    """
    there = reduce(and_, (~nw.col(x).is_null() for x in cells))
    rows = rows.with_columns(there.alias(f"there{i}"))
    y = [f"y{i}_{j}" for j in range(len(cells))]
    if ball is None:
        steps = [nw.col(x) for x in cells]
    else:
        far, two = number(2.0**400), ball.order == 2
        floats = [nw.when(f"there{i}").then(nw.col(x).cast(nw.Float64)) for x in cells]
        rows = rows.with_columns(x.clip(-far, far).alias(name) for x, name in zip(floats, y))
        size = added(nw.col(x) * nw.col(x) if two else nw.col(x).abs() for x in y)
        rows = rows.with_columns((size.sqrt() if two else size).alias(f"size{i}"))
        norm, step = number(ball.norm), number((1 - 2.0**-20) / ball.step)
        within = nw.col(f"size{i}") <= norm
        shrink = nw.when(within).then(number(1.0)).otherwise(norm / nw.col(f"size{i}"))
        rows = rows.with_columns((shrink * step).alias(f"shrink{i}"))
        most = ball.reach + 1
        rows = rows.with_columns((nw.col(x) * nw.col(f"shrink{i}")).clip(-most, most).alias(x) for x in y)
        cut = [nw.when(nw.col(x) < 0).then(nw.col(x).ceil()).otherwise(nw.col(x).floor()) for x in y]
        rows = rows.with_columns(k.cast(nw.Int64).alias(x) for k, x in zip(cut, y))
        rows = rows.with_columns(clipped(nw.col(x), integer(-most), integer(most)).alias(x) for x in y)
        exact = added(nw.col(x) * nw.col(x) if two else nw.col(x).abs() for x in y)
        rows = rows.with_columns((exact <= ball.reach ** (2 if two else 1)).alias(f"short{i}"))
        steps = [nw.when(f"short{i}").then(nw.col(x)).otherwise(integer(0)) for x in y]
    return rows.with_columns(nw.when(f"there{i}").then(x).alias(name) for x, name in zip(steps, y))
