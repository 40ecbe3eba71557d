"""Polars: the embedded engine. Frames of other in-memory libraries enter here, column by column."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from dpframe.keys import KeyTable
from dpframe.layout import magic_bits
from dpframe.schema import Bounding, Column, Counts, Ints, KeyColumns, Measure, Parts, lookup

STREAM_FROM = 100_000  # rows; below it the in-memory engine starts faster

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


class PolarsSource:
    """A Polars frame, eager or lazy."""

    library = "polars"
    part_of: Any = None

    def __init__(self, frame: pl.DataFrame | pl.LazyFrame) -> None:
        self._frame = frame
        self._schema = frame.collect_schema()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("This holds the frame and can't be pickled. Hint: pickle the release, or bound.plan")

    def __repr__(self) -> str:
        return f"<{type(self._frame).__name__} with {len(self._schema)} columns>"

    @property
    def identity(self) -> int:
        return id(self._frame)

    def names(self) -> list[Hashable]:
        return list(self._schema.names())

    def column(self, name: Hashable) -> Column:
        if isinstance(self._frame, pl.DataFrame):  # it may have been changed in place
            self._schema = self._frame.schema
        if not isinstance(name, str) or name not in self._schema:
            lookup(name, self.names())
        return describe(name, self._schema[str(name)])

    def aggregate(
        self,
        measures: tuple[Measure, ...],
        by: tuple[Column, ...],
        keys: KeyTable | None,
        bounding: Bounding | None,
        salt: int,
    ) -> Counts:
        small = isinstance(self._frame, pl.DataFrame) and self._frame.height < STREAM_FROM
        unit = bounding.unit if bounding else ()
        query = Query(
            self._frame.lazy(),
            [pl.col(str(m.column)) for m in measures],
            [self._schema[str(m.column)].is_float() for m in measures],
            [_key(pl.col(str(c.name)), c, keys, i) for i, c in enumerate(by)],
            [key_form(pl.col(str(u)), self.column(u).kind) for u in unit],
            streaming=not small,
        )
        return query.counts(measures, keys, bounding, salt)

    def part(self, by: tuple[Column, ...], keys: KeyTable, bounding: Bounding | None, salt: int) -> Parts:
        temporary = {f"k{i}": _key(pl.col(str(c.name)), c, keys, i) for i, c in enumerate(by)}
        for i, u in enumerate(bounding.unit if bounding else ()):
            temporary[f"u{i}"] = key_form(pl.col(str(u)), self.column(u).kind)
        rows = self._frame.lazy().select(
            pl.struct(pl.all()).alias("row"), *(x.alias(name) for name, x in temporary.items())
        )
        # Collected once, a lazy frame too: read again, it could put a row into two parts.
        lazy = isinstance(self._frame, pl.LazyFrame)
        coded = code_rows(rows, keys, bounding, salt)
        coded = coded.collect(engine="streaming" if lazy else "in-memory").lazy()
        return [
            (lambda i=i: PolarsSource(coded.filter(pl.col("code") == i).select("row").unnest("row")))  # type: ignore[misc]
            for i in range(keys.size)
        ]

    def key_columns(self, by: tuple[Column, ...], keys: KeyTable | None, found: Any) -> KeyColumns:
        columns = [c.engine for c in keys.columns] if keys else found.get_columns() if by else []
        return KeyColumns(self.library, {str(c.name): _restore(s, c) for s, c in zip(columns, by)})


def key_form(x: pl.Expr, kind: str) -> pl.Expr:
    """Bring equal keys to one form: NaN is null, -0.0 is 0.0, categories are their text."""
    if kind == "float":
        x = x.fill_nan(None)
        return pl.when(x == 0).then(pl.lit(0.0)).otherwise(x)
    return x.cast(pl.String) if kind in ("enum", "string") else x


def _key(x: pl.Expr, c: Column, keys: KeyTable | None, i: int) -> pl.Expr:
    if c.kind == "null" and keys is not None:  # a column without a type takes that of its keys
        return x.cast(keys.columns[i].engine.dtype)
    return key_form(x, c.kind)


def _restore(s: pl.Series, c: Column) -> pl.Series:
    dtype = pl.String if c.native == pl.Categorical else c.native
    return s if dtype == pl.Null else s.cast(dtype)


@dataclass(frozen=True, slots=True)
class Query:
    """What to aggregate of a lazy frame: expressions for measured, grouping and unit columns.

    ``floats`` says which measured columns can hold NaN.
    """

    frame: pl.LazyFrame
    values: Sequence[pl.Expr]
    floats: Sequence[bool]
    by: Sequence[pl.Expr]
    unit: Sequence[pl.Expr]
    streaming: bool

    def counts(
        self,
        measures: tuple[Measure, ...],
        keys: KeyTable | None,
        bounding: Bounding | None,
        salt: int,
    ) -> Counts:
        """Count rows and present cells and add up steps, per group, each unit within its bounds.

        Privacy: missing (null, NaN) is mapped to null first, so it adds nothing; adding the constant
        rounds to the grid and is monotone (infinities included), the integer clip leaves every row
        within the bounds whatever the addition did, and integer sums are exact: one row changes the sum
        of steps by at most last - first, in any order and chunking. Rows whose key is not listed fall away;
        listed keys without rows get zeros. Sums of bit patterns wrap modulo 2**64 and are unwrapped by
        the present count; the sum of steps itself stays below 2**63 for 2**32 rows.
        """
        by = [f"k{i}" for i in range(len(self.by))]
        unit = [f"u{i}" for i in range(len(self.unit))]
        columns = [x.alias(n) for x, n in zip((*self.by, *self.unit), (*by, *unit))]
        columns += [self._prepared(i, m) for i, m in enumerate(measures)]
        rows = self.frame.select(columns) if columns else self.frame
        if bounding is None:
            return self._grouped(rows, measures, by, keys, _sums(measures), unwrap=True)
        pairs = rows.drop_nulls(unit).group_by(unit + by).agg(_sums(measures))
        pairs = pairs.with_columns(_unwrapped(i, m) for i, m in enumerate(measures) if m.low is not None)
        if keys is not None:
            pairs = pairs.join(_listed(keys).lazy(), on=by, how="inner", nulls_equal=True)
        if bounding.groups is not None and (keys is None or keys.size > bounding.groups):
            pairs = choose_groups(pairs, unit, by, bounding.groups, salt)
        return self._grouped(
            _scaled(pairs, measures, bounding.rows), measures, by, keys, _totals(measures), unwrap=False
        )

    def _prepared(self, i: int, m: Measure) -> pl.Expr:
        x = self.values[i]
        if m.low is None or m.high is None:
            return (x.fill_nan(None) if self.floats[i] else x).alias(f"y{i}")
        shifted = x.cast(pl.Float64, strict=False).fill_nan(None) + m.magic
        low, high = magic_bits(m.low + m.magic), magic_bits(m.high + m.magic)
        return shifted.reinterpret(dtype=pl.Int64).clip(low, high).alias(f"y{i}")

    def _grouped(
        self,
        rows: pl.LazyFrame,
        measures: tuple[Measure, ...],
        by: list[str],
        keys: KeyTable | None,
        sums: list[pl.Expr],
        *,
        unwrap: bool,
    ) -> Counts:
        engine: Any = "streaming" if self.streaming else "in-memory"
        query = rows.group_by(by).agg(sums) if by else rows.select(sums)
        if keys is not None:
            listed = _listed(keys).lazy()
            query = listed.join(query, on=by, how="left", nulls_equal=True, maintain_order="left")
            query = query.select(pl.exclude(by).fill_null(0))
        elif by:
            query = query.sort(by)
        got = query.collect(engine=engine)
        found = got.select(by) if by and keys is None else None
        present = tuple(_int64(got[f"c{i}"]) for i in range(len(measures)))
        steps = []
        for i, m in enumerate(measures):
            t = _int64(got[f"t{i}"]) if m.low is not None else present[i][:0]
            steps.append(_unwrap(t, present[i], m) if unwrap and m.low is not None else t)
        units = _int64(got["m"]) if "m" in got.columns else None
        return Counts(_int64(got["n"]), present, tuple(steps), units, found)


def choose_groups(pairs: pl.LazyFrame, unit: list[str], by: list[str], most: int, salt: int) -> pl.LazyFrame:
    """Keep at most ``most`` groups of every unit, chosen by salted hash rank.

    Privacy: a unit's rank depends on its own groups, its own id and the salt alone, so for every salt
    one unit's rows change nobody else's choice; fairness, not privacy, rests on the hash.
    """
    return pairs.filter(rank_key(unit, by, salt).rank("ordinal").over(unit) <= most)


def code_rows(rows: pl.LazyFrame, keys: KeyTable, bounding: Bounding | None, salt: int) -> pl.LazyFrame:
    """Give each row the position of its key as ``code``; rows of other keys, and of groups that their
    unit did not choose, are left out. ``rows`` has the columns k0, ... and u0, ..."""
    by = [f"k{i}" for i in range(len(keys.columns))]
    listed = _listed(keys).with_row_index("code").lazy()
    rows = rows.join(listed, on=by, how="inner", nulls_equal=True)
    if bounding is None:
        return rows
    unit = [f"u{i}" for i in range(len(bounding.unit))]
    rows = rows.drop_nulls(unit)
    if bounding.groups is None or keys.size <= bounding.groups:
        return rows
    chosen = choose_groups(rows.select(*unit, *by).unique(), unit, by, bounding.groups, salt)
    return rows.join(chosen, on=[*unit, *by], how="semi", nulls_equal=True)


def rank_key(unit: list[str], by: list[str], salt: int) -> pl.Expr:
    """The number by which a unit's groups are ranked."""
    return pl.struct(*unit, *by).hash(salt)


def _listed(keys: KeyTable) -> pl.DataFrame:
    return pl.DataFrame({f"k{i}": c.engine for i, c in enumerate(keys.columns)})


def _sums(measures: tuple[Measure, ...]) -> list[pl.Expr]:
    sums = [pl.len().cast(pl.Int64).alias("n")]
    for i, m in enumerate(measures):
        sums.append(pl.col(f"y{i}").count().cast(pl.Int64).alias(f"c{i}"))
        if m.low is not None:
            sums.append(pl.col(f"y{i}").sum().alias(f"t{i}"))
    return sums


def _totals(measures: tuple[Measure, ...]) -> list[pl.Expr]:
    names = ["n", *(f"c{i}" for i in range(len(measures)))]
    names += [f"t{i}" for i, m in enumerate(measures) if m.low is not None]
    return [pl.len().alias("m"), *(pl.col(x).sum() for x in names)]


def _scaled(pairs: pl.LazyFrame, measures: tuple[Measure, ...], most: int) -> pl.LazyFrame:
    """Scale every (unit, group) pair down to at most ``most`` rows: no row is chosen, none is dropped.

    n' = min(n, R), c' = min(c, R), T' = the nearest integer to c' * T / c, computed without overflow.

    Privacy: T' <= c' * K <= n' * K, so a unit's cells (T', c'K - T', (n' - c')K) sum to n'K <= R*K.
    """
    scaled = [pl.min_horizontal("n", pl.lit(most, pl.Int64)).alias("n")]
    for i, m in enumerate(measures):
        c, kept = pl.col(f"c{i}"), pl.min_horizontal(f"c{i}", pl.lit(most, pl.Int64))
        scaled.append(kept.alias(f"c{i}"))
        if m.low is not None:
            t = pl.col(f"t{i}")
            safe = pl.when(c > 0).then(c).otherwise(1)
            whole, rest = t // safe, t % safe
            near = kept * whole + (2 * kept * rest + safe) // (2 * safe)
            scaled.append(pl.when(c > 0).then(near).otherwise(0).alias(f"t{i}"))
    return pairs.with_columns(scaled)


def _zero(m: Measure) -> int:
    """The bit pattern of step 0, counted from the lower bound."""
    return (magic_bits(m.magic) + m.base) % 2**64


def _unwrapped(i: int, m: Measure) -> pl.Expr:
    bits = pl.col(f"t{i}").reinterpret(dtype=pl.UInt64)
    zeros = pl.col(f"c{i}").reinterpret(dtype=pl.UInt64) * pl.lit(_zero(m), pl.UInt64)
    return (bits - zeros).reinterpret(dtype=pl.Int64).alias(f"t{i}")


def _unwrap(bits: Ints, present: Ints, m: Measure) -> Ints:
    return (bits.view(np.uint64) - present.view(np.uint64) * np.uint64(_zero(m))).view(np.int64)


def _int64(s: pl.Series) -> Ints:
    return s.cast(pl.Int64).to_numpy().astype(np.int64, copy=False)


def as_source(frame: Any) -> Any:
    """The source for a pandas or Polars frame; TypeError for anything else."""
    if isinstance(frame, pl.DataFrame | pl.LazyFrame):
        return PolarsSource(frame)
    import pandas as pd

    if isinstance(frame, pd.DataFrame):
        from dpframe.engine.pandas import PandasSource

        return PandasSource(frame)
    raise TypeError(
        f"dp.frame takes a pandas or Polars frame, not a {type(frame).__module__}.{type(frame).__qualname__}."
        " Hint: dp.frame(df)"
    )
