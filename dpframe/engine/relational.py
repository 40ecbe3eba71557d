"""Tables that stay where they are: DuckDB relations, Ibis tables, SQLFrame's and PySpark's DataFrames.

One definition, in narwhals, for all of them. What narwhals lacks (a hash, instants as integers, a small
table next to a given one) is a module per family: ``refused``, ``call``, ``texts``. Only one row of
integers per group leaves the engine.

Numbers reach engines as integers: what a decimal point in a text becomes is the engine's own business.
Divisions are between integers whose quotient floats hold, and are corrected in integers.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import reduce
from operator import add, mul
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from dpframe.engine.polars import describe, restore
from dpframe.keys import KeyTable
from dpframe.schema import Axis, Ball, Bounding, Column, Counts, Ints, KeyColumns, Measure, Parts, lookup

_PLAIN = "Boolean Int8 Int16 Int32 Int64 Int128 UInt8 UInt16 UInt32 UInt64 Float32 Float64 String Date".split()
_BEYOND_INT64 = (pl.UInt64, pl.Int128)
_HALF = 3 << 51  # added to a float64 of size at most 2**51, it rounds it to an integer, ties to even


def polars_type(dtype: Any) -> Any:
    """The Polars type with the same values; None where there is none."""
    name = type(dtype).__name__
    if name in _PLAIN:
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


def open_frame(frame: Any, family: Any) -> RelationalSource:
    """The source of a frame; TypeError where the family can't keep what is promised."""
    reason = family.refused(frame)
    if reason is not None:
        raise TypeError(
            f"dp.frame does not know whether {reason} counts in the same integers as the others. Hint: collect"
            " what you need, for example dp.frame(table.to_polars())"
        )
    return RelationalSource(frame, family)


class RelationalSource:
    """A table in a database or on a cluster. Its answers are Polars frames."""

    library = "polars"
    part_of: Any = None

    def __init__(self, frame: Any, family: Any) -> None:
        self._native, self._family = frame, family
        self._schema = {n: (polars_type(t), str(t)) for n, t in _lazy(frame).collect_schema().items()}

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("This holds the frame and can't be pickled. Hint: pickle the release, or bound.plan")

    def __repr__(self) -> str:
        return f"<{self._family.name} {type(self._native).__name__} with {len(self._schema)} columns>"

    @property
    def identity(self) -> int:
        return id(self._native)

    def names(self) -> list[Hashable]:
        return list(self._schema)

    def column(self, name: Hashable) -> Column:
        lookup(name, self.names())
        native, text = self._schema[str(name)]
        return Column(name, "other", text, True) if native is None else describe(name, native)

    def plan_text(self) -> str | None:
        return f"{self._family.name} query"  # anything may have happened in it

    def aggregate(
        self,
        measures: tuple[Measure, ...],
        by: tuple[Column, ...],
        keys: KeyTable | None,
        bounding: Bounding | None,
        salt: int,
    ) -> Counts:
        unit = tuple(self.column(u) for u in bounding.unit) if bounding else ()
        query = _Query(self._native, self._family, self._schema, by, unit)
        return query.counts(measures, keys, bounding, salt)

    no_parts = (
        "its parts would be read at different times, and a row could be in two of them. Hint: groupby(...)"
        " answers for all keys at once; or collect it, for example dp.frame(relation.pl())"
    )

    def part(self, by: tuple[Column, ...], keys: KeyTable, bounding: Bounding | None, salt: int) -> Parts:
        raise NotImplementedError(self.no_parts)

    def key_columns(self, by: tuple[Column, ...], keys: KeyTable | None, found: Any) -> KeyColumns:
        columns = [c.engine for c in keys.columns] if keys else found.get_columns() if by else []
        return KeyColumns(self.library, {str(c.name): restore(s, c) for s, c in zip(columns, by)})


class _Query:
    """One aggregation of one frame."""

    def __init__(
        self,
        native: Any,
        family: Any,
        schema: Mapping[str, tuple[Any, str]],
        by: tuple[Column, ...],
        unit: tuple[Column, ...],
    ) -> None:
        self.family, self.schema = family, schema
        self.by = {f"k{i}": c for i, c in enumerate(by)}
        self.unit = {f"u{i}": c for i, c in enumerate(unit)}
        self.frame, self.native = native, native
        for name, c in {**self.by, **self.unit}.items():
            if c.kind == "datetime":
                ticks = "nanos" if c.native.time_unit == "ns" else "micros"
                self.frame = family.call(self.frame, ticks, {f"dpframe_{name}": str(c.name)})

    def counts(
        self, measures: tuple[Measure, ...], keys: KeyTable | None, bounding: Bounding | None, salt: int
    ) -> Counts:
        """Count rows and present cells and add up steps and their products, per group, each unit within its bounds.

        Privacy: as in Polars' engine. Missing (null, NaN) is mapped to null before anything else, so it
        adds nothing; a cell's steps are clipped as integers after the cast, so a row moves a sum by at
        most K whatever the engine's floats do; sums are of integers. Units are bounded in the engine by
        one query, which reads the data once; nothing but counts and sums per group comes back.
        """
        by, unit = [*self.by], [*self.unit]
        axes = {a: f"x{j}" for j, a in enumerate(dict.fromkeys(a for m in measures for a in m.axes))}
        columns = [wire(self._key(n, c), c.kind, c.native).alias(n) for n, c in (self.by | self.unit).items()]
        columns += [self._cell(a).alias(name) for a, name in axes.items()]
        rows = _lazy(self.frame)
        rows = rows.select(*columns) if columns else rows
        where: list[list[str]] = []  # the columns of every measure's axes
        for i, m in enumerate(measures):
            cells = [axes[a] for a in m.axes]
            if m.ball is not None or len(cells) > 1:
                rows = _joint(rows, i, cells, m.ball)
                cells = [f"y{i}_{j}" for j in range(len(cells))]
            where.append(cells)
        names = ["n", *(f"c{i}" for i in range(len(measures)))]
        names += [f"t{i}_{p}" for i, m in enumerate(measures) for p in range(len(m.products))]
        if bounding is not None:
            rows = rows.drop_nulls(unit)
        found = _grouped(rows, unit + by, _sums(measures, where), names)
        listed = keys is not None and bool(by)
        if listed:
            assert keys is not None
            found = found.with_columns(text([nw.col(k) for k in by]).alias("key"))
            found = found.join(self._listed(keys), on="key", how="inner")
        if bounding is not None:
            if bounding.groups is not None and (keys is None or keys.size > bounding.groups):
                found = self._choose(found, bounding.groups, salt)
            found = _scaled(found, measures, bounding.rows)
            totals = [nw.len().alias("m"), *(nw.col(x).sum().alias(x) for x in names)]
            names = ["m", *names]
            found = _grouped(found, ["code"] if listed else by, totals, names)
        got = found.select(*(["code"] if listed else by), *names).collect("pyarrow").to_native()
        table = pl.from_arrow(got)
        assert isinstance(table, pl.DataFrame)
        return self._answer(table, measures, keys if listed else None)

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

    def _key(self, name: str, c: Column) -> nw.Expr:
        return nw.col(f"dpframe_{name}" if c.kind == "datetime" else str(c.name))

    def _cell(self, a: Axis) -> nw.Expr:
        """A row's number on this axis, null where it is missing: steps from ``base``, or the cell as it is."""
        x, dtype = nw.col(str(a.column)), self.schema[str(a.column)][0]
        if a.item is not None:
            x = nw.when(x.list.len() == a.length).then(x.list.get(a.item))
            dtype = dtype.inner
        if a.low is None or a.high is None:
            return _present(x) if dtype is not None and dtype.is_float() else x
        x = _present(x.cast(nw.Float64))
        magic = number(a.magic)
        step = a.magic / _HALF
        steps = times(((x + magic) - magic), 1 / step)
        low, high = (int(((b + a.magic) - a.magic) / step) for b in (a.low, a.high))
        return _clipped(_clipped(steps, low, high).cast(nw.Int64) - a.base, low - a.base, high - a.base)

    def _listed(self, keys: KeyTable) -> nw.LazyFrame[Any]:
        """The listed keys as a table of the engine: their text, and their position."""
        columns = {f"s{i}": key_texts(c.engine, t) for i, (c, t) in enumerate(zip(keys.columns, self.by.values()))}
        columns["code"] = [str(i) for i in range(keys.size)]
        table = _lazy(self.family.texts(self.native, columns))
        read = []
        for i, c in enumerate(self.by.values()):
            s = nw.col(f"s{i}")
            value = nw.when(s != nw.lit("-")).then(s.str.slice(1))
            read.append(wire(value.cast(_held(c)), c.kind, c.native, read=True).alias(f"s{i}"))
        table = table.select(*read, nw.col("code").cast(nw.Int64))
        return table.select(text([nw.col(f"s{i}") for i in range(len(read))]).alias("key"), "code")

    def _choose(self, pairs: nw.LazyFrame[Any], most: int, salt: int) -> nw.LazyFrame[Any]:
        """Keep at most ``most`` groups of every unit, chosen by salted hash rank, ties by key.

        Privacy: a unit's ranks depend on its own groups, its own id and the salt alone, in whatever order
        and however often the engine computes them, so for every salt one unit's rows change nobody else's
        choice; fairness, not privacy, rests on the hash.
        """
        by, unit = [*self.by], [*self.unit]
        whole = rank_text([nw.col(n) for n in (*unit, *by)], salt)
        hashed = self.family.call(pairs.with_columns(whole.alias("text")).to_native(), "md5", {"hash": "text"})
        ranked = _lazy(hashed).with_columns(
            nw.col("n").cum_count().over(*unit, order_by=["hash", *by]).alias("rank")
        )
        return ranked.filter(nw.col("rank") <= most)


def _lazy(native: Any) -> nw.LazyFrame[Any]:
    return nw.from_native(native)


def _grouped(rows: Any, by: Sequence[str], sums: Sequence[nw.Expr], names: Sequence[str]) -> nw.LazyFrame[Any]:
    """Sums per group; engines widen or narrow them as they like, so all are Int64 again afterwards."""
    made = rows.group_by(*by).agg(*sums) if by else rows.select(*sums)
    return made.select(*by, *(nw.col(n).cast(nw.Int64) for n in names))  # type: ignore[no-any-return]


def _sums(measures: tuple[Measure, ...], where: list[list[str]]) -> list[nw.Expr]:
    sums = [nw.len().alias("n")]
    for i, (m, cells) in enumerate(zip(measures, where)):
        sums.append(nw.col(cells[0]).count().alias(f"c{i}"))
        for p, product in enumerate(m.products):
            sums.append(reduce(mul, (nw.col(cells[j]) for j in product)).sum().alias(f"t{i}_{p}"))
    return sums


# ---- numbers ----


def number(x: float) -> nw.Expr:
    """A float64, exactly: an integer times a power of two."""
    top, bottom = x.as_integer_ratio()
    shift = max(0, abs(top).bit_length() - 53)
    return times(nw.lit(top >> shift).cast(nw.Float64), 2.0**shift / bottom)


def times(x: nw.Expr, power: float) -> nw.Expr:
    """``x`` times a power of two, in factors that are integers."""
    top, bottom = power.as_integer_ratio()
    e = top.bit_length() - bottom.bit_length()
    while e:
        some = min(abs(e), 60)
        factor = nw.lit(1 << some).cast(nw.Float64)
        x, e = (x * factor, e - some) if e > 0 else (x / factor, e + some)
    return x


def _present(x: nw.Expr) -> nw.Expr:
    return nw.when(~x.is_null() & ~x.is_nan()).then(x)


def _clipped(x: nw.Expr, low: int, high: int) -> nw.Expr:
    """Clipped to integers; null stays null, which the engines' own least and greatest don't promise."""
    return nw.when(~x.is_null()).then(x.clip(low, high))


def _divided(a: nw.Expr, b: nw.Expr) -> nw.Expr:
    """The floor of a/b, for integers a >= 0, b > 0 with a quotient below 2**50.

    The float quotient is off by less than a half, and what it rounds to is corrected in integers.
    """
    q = (a / b).round(0).cast(nw.Int64)
    return nw.when(q * b > a).then(q - 1).otherwise(q)


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
        size = reduce(add, (nw.col(x) * nw.col(x) if two else nw.col(x).abs() for x in y))
        rows = rows.with_columns((size.sqrt() if two else size).alias(f"size{i}"))
        norm, step = number(ball.norm), number((1 - 2.0**-20) / ball.step)
        within = nw.col(f"size{i}") <= norm
        shrink = nw.when(within).then(nw.lit(1).cast(nw.Float64)).otherwise(norm / nw.col(f"size{i}"))
        rows = rows.with_columns((shrink * step).alias(f"shrink{i}"))
        most = ball.reach + 1
        rows = rows.with_columns((nw.col(x) * nw.col(f"shrink{i}")).clip(-most, most).alias(x) for x in y)
        cut = [nw.when(nw.col(x) < 0).then(nw.col(x).ceil()).otherwise(nw.col(x).floor()) for x in y]
        rows = rows.with_columns(_clipped(k.cast(nw.Int64), -most, most).alias(x) for k, x in zip(cut, y))
        exact = reduce(add, (nw.col(x) * nw.col(x) if two else nw.col(x).abs() for x in y))
        rows = rows.with_columns((exact <= ball.reach ** (2 if two else 1)).alias(f"short{i}"))
        steps = [nw.when(f"short{i}").then(nw.col(x)).otherwise(nw.lit(0).cast(nw.Int64)) for x in y]
    return rows.with_columns(nw.when(f"there{i}").then(x).alias(name) for x, name in zip(steps, y))


def _scaled(pairs: Any, measures: tuple[Measure, ...], most: int) -> Any:
    """Scale every (unit, group) pair down to at most ``most`` rows, as Polars' engine does.

    Privacy: see there; every product of integers here is one that stays below 2**63 there.
    """
    sums = [(i, p, m) for i, m in enumerate(measures) for p in range(len(m.products))]
    top = nw.lit(most).cast(nw.Int64)
    begun, whole, rest, made, bounded = {}, {}, {}, {}, {}
    begun["n"] = nw.when(nw.col("n") > most).then(top).otherwise(nw.col("n"))
    for i in range(len(measures)):
        c = nw.col(f"c{i}")
        begun[f"kept{i}"] = nw.when(c > most).then(top).otherwise(c)
        begun[f"safe{i}"] = nw.when(c > 0).then(c).otherwise(nw.lit(1).cast(nw.Int64))
        made[f"c{i}"] = nw.col(f"kept{i}")
    for i, p, m in sums:
        t, at, kept, safe = nw.col(f"t{i}_{p}"), f"{i}_{p}", nw.col(f"kept{i}"), nw.col(f"safe{i}")
        whole[f"whole{at}"] = _divided(t.abs(), safe)
        rest[f"rest{at}"] = t.abs() - nw.col(f"whole{at}") * safe
        left = kept * nw.col(f"rest{at}")
        part = _divided(left, safe) if m.ball is not None else _divided(2 * left + safe, 2 * safe)
        near = kept * nw.col(f"whole{at}") + part
        made[f"t{at}"] = near if m.ball is None else nw.when(t < 0).then(0 - near).otherwise(near)
        if len(m.products[p]) == 2:
            bounded[f"t{at}"] = _product_bounds(i, p, m)
    for step in (begun, whole, rest, made, bounded):
        if step:
            pairs = pairs.with_columns(*(x.alias(name) for name, x in step.items()))
    return pairs


def _product_bounds(i: int, p: int, m: Measure) -> nw.Expr:
    a, b = m.products[p]
    ka, kb = m.axes[a].steps, m.axes[b].steps
    halves = [
        nw.col(f"t{i}_{m.products.index((x,))}") * k for x, k in ((a, kb), (b, ka)) if (x,) in m.products
    ]
    low = [nw.lit(0).cast(nw.Int64)]
    if len(halves) == 2:
        low.append(halves[0] + halves[1] - nw.col(f"c{i}") * (ka * kb))
    return nw.min_horizontal(nw.max_horizontal(f"t{i}_{p}", *low), *halves)


# ---- keys and ids ----


def wire(x: nw.Expr, kind: str, dtype: Any, *, read: bool = False) -> nw.Expr:
    """A key or id as Int64, Float64 or text: equal keys are equal, a missing one (NaN too) is null, -0.0 is 0.0.

    With ``read`` the key was a text of the driver's.
    """
    if kind == "float":
        x = _present(x.cast(nw.Float64))
        return nw.when(x == 0).then(nw.lit(0).cast(nw.Float64)).otherwise(x)
    if read or kind == "datetime":
        return x
    return x.cast(nw.Int64 if kind == "bool" or (kind == "int" and dtype not in _BEYOND_INT64) else nw.String)


def _held(c: Column) -> Any:
    """The narwhals type of a key on the wire."""
    if c.kind == "float":
        return nw.Float64
    whole = c.kind in ("bool", "datetime") or (c.kind == "int" and c.native not in _BEYOND_INT64)
    return nw.Int64 if whole else nw.String


def key_texts(keys: pl.Series, c: Column) -> list[str]:
    """Listed keys as texts of what is on the wire; "-" is a missing one, others start with "="."""
    if c.kind == "float":
        values = [None if v is None else repr(v) for v in keys.cast(pl.Float64).to_list()]
    else:
        keys = keys.cast(pl.Int64) if c.kind in ("bool", "datetime") else keys
        values = keys.cast(pl.String).to_list()
    return ["-" if v is None else f"={v}" for v in values]


def unwire(s: pl.Series, c: Column) -> pl.Series:
    """A found key column in the column's own type (text for a pl.Enum)."""
    if c.kind == "date":
        return s.str.to_date("%Y-%m-%d", strict=False)
    return s.cast(pl.String if c.kind == "enum" else c.native)


def text(parts: Sequence[nw.Expr]) -> nw.Expr:
    """One text for several keys or ids; different ones have different texts."""
    return nw.concat_str([_part(x) for x in parts], separator="|")


def rank_text(parts: Sequence[nw.Expr], salt: int) -> nw.Expr:
    """What is hashed to rank a unit's groups: salt, ids, keys."""
    return nw.concat_str([nw.lit(str(salt)), *(_part(x) for x in parts)], separator="|")


def _part(x: nw.Expr) -> nw.Expr:
    s = x.cast(nw.String)
    long = nw.concat_str([s.str.len_chars().cast(nw.String), s], separator=":")
    return nw.when(x.is_null()).then(nw.lit("-")).otherwise(long)
