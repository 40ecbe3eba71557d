"""Tables that stay where they are: DuckDB relations, Ibis tables, SQLFrame's and PySpark's DataFrames.

One definition, in narwhals, for all of them. What narwhals lacks (a hash, instants as integers, a small
table next to a given one) is a module per family: ``refused``, ``call``, ``texts``. Only one row of
integers per group leaves the engine.

Floats reach engines as text that they cast: a literal with a point is a decimal number on some. Quotients of
integers are made in floats that hold them and corrected in integers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import mul
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from dpframe.engine.polars_query import added
from dpframe.engine.scaling import scaled
from dpframe.engine.wire import (
    clipped,
    divided,
    held,
    integer,
    key_texts,
    number,
    part,
    present,
    text,
    unwire,
    wire,
    wordy,
)
from dpframe.frames.columns import Column
from dpframe.frames.contract import Ask, Axis, Ball, Counts, Ints, Measure
from dpframe.frames.keys import KeyTable

_PLAIN = re.compile("Boolean|U?Int(8|16|32|64)|Int128|Float(32|64)|String|Date")
_ROUNDER = 3 << 51  # an axis' magic, in its steps


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


class Query:
    """Questions to one frame, grouped ``by`` columns k0, ... of every ``unit`` u0, ...

    ``more`` names other columns to bring to the form of keys.
    """

    def __init__(self, source: Any, ask: Ask, more: Mapping[str, Column] | None = None) -> None:
        self.family, self.native, self.schema = source._family, source._native, source._schema
        self.by = {f"k{i}": c for i, c in enumerate(ask.by)}
        self.unit = {f"u{i}": source.column(u) for i, u in enumerate(ask.unit)}
        self._keyed = {**self.by, **self.unit, **(more or {})}

    def text(self, names: Iterable[str]) -> nw.Expr:
        """One text for the key-like columns ``names``, and for other columns of integers."""
        words = {n for n, c in self._keyed.items() if wordy(c)}
        return text([part(n, n in words) for n in names])

    def select(self, *values: nw.Expr) -> nw.LazyFrame[Any]:
        """The key-like columns and ``values`` of every row."""
        frame, columns = self.native, []
        for name, c in self._keyed.items():
            column = str(c.name)
            if c.kind == "datetime":
                ticks = "nanos" if c.native.time_unit == "ns" else "micros"
                column = f"dpframe_{name}"
                frame = self.family.call(frame, ticks, {column: str(c.name)})
            columns.append(wire(nw.col(column), c.kind, c.native).alias(name))
        columns += values
        return lazy(frame).select(*columns) if columns else lazy(frame)

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
            if ask.chosen is not None:
                if listed is not None:  # only listed groups are chosen among
                    found, place = self._listed(found, listed), ["code"]
                found = choose_groups(found, self, ask.chosen, ask.salt)
            found = scaled(nw, found, measures, bounding.rows, divided)
            totals = [nw.len().alias("m"), *(nw.col(x).sum().alias(x) for x in names)]
            names = ["m", *names]
            found = grouped(found, place, totals, names)
        if listed is not None and place == by:  # few lines are left to find in a table of texts
            found, place = self._listed(found, listed), ["code"]
        got = found.select(*place, *names).collect("pyarrow").to_native()
        table = pl.from_arrow(got)
        assert isinstance(table, pl.DataFrame)
        return self._answer(table, measures, listed)

    def _listed(self, found: nw.LazyFrame[Any], keys: KeyTable) -> nw.LazyFrame[Any]:
        """The lines of listed keys, with the place of theirs as ``code``."""
        found = found.with_columns(self.text(self.by).alias("key"))
        return found.join(key_table(self, [*self.by.values()], keys), on="key", how="inner")

    def _answer(self, got: pl.DataFrame, measures: tuple[Measure, ...], keys: KeyTable | None) -> Counts:
        by, found = [*self.by], None
        if keys is None and by:
            got = got.with_columns(unwire(got[n], c).alias(n) for n, c in self.by.items()).sort(by)
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
        return Counts(of("n"), present, sums, of("m") if "m" in got.columns else None, found)

    def _cell(self, a: Axis) -> nw.Expr:
        """A row's number on this axis, null where it is missing: its steps, whole and not yet clipped, or the cell as it is."""
        x, dtype = nw.col(str(a.column)), self.schema[str(a.column)][0]
        if a.item is not None:
            x = nw.when(x.list.len() == a.length).then(x.list.get(a.item))
            dtype = dtype.inner
        if a.low is None or a.high is None:
            return present(x) if dtype is not None and dtype.is_float() else x
        magic, a_step = number(a.magic), number(_ROUNDER / a.magic)
        return ((present(x.cast(nw.Float64)) + magic) - magic) * a_step


def key_table(query: Query, types: Sequence[Column], keys: KeyTable) -> nw.LazyFrame[Any]:
    """The listed keys as a table of the engine: their text as ``key``, and their place as ``code``."""
    columns = {f"s{i}": key_texts(k.engine, c) for i, (k, c) in enumerate(zip(keys.columns, types))}
    columns["code"] = [str(i) for i in range(keys.size)]
    read = []
    for i, c in enumerate(types):
        s = nw.col(f"s{i}")
        value = nw.when(s != nw.lit("-")).then(s.str.slice(1)).cast(held(c))
        read.append(wire(value, c.kind, c.native, read=True).alias(f"s{i}"))
    table = lazy(query.family.texts(query.native, columns)).select(*read, nw.col("code").cast(nw.Int64))
    parts = [part(f"s{i}", wordy(c)) for i, c in enumerate(types)]
    return table.select(text(parts).alias("key"), "code")


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
    whole = nw.concat_str(nw.lit(str(salt)), query.text(of), separator="|")
    hashed = query.family.call(rows.with_columns(whole.alias("text")).to_native(), "md5", {"hash": "text"})
    order = nw.concat_str(["hash", "text"], separator="|")
    ranked = lazy(hashed).with_columns(order.alias("order"))
    ranked = ranked.with_columns(nw.col("order").rank("dense").over(*within).alias("rank"))
    return ranked.filter(nw.col("rank") <= most)


def lazy(native: Any) -> nw.LazyFrame[Any]:
    frame: nw.LazyFrame[Any] = nw.from_native(native)
    return frame


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
    there = reduce(lambda p, q: p & q, (~nw.col(x).is_null() for x in cells))
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
