"""Questions to a lazy Polars frame: sums per group, units within their bounds, chosen groups."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, floordiv, mul
from typing import Any, TypeVar

import numpy as np
import polars as pl

from dpframe.engine.pairs import add_up
from dpframe.engine.polars_scans import as_read
from dpframe.engine.scaling import scaled, weighed
from dpframe.frames.columns import Column, Ticks
from dpframe.frames.contract import Ask, Axis, Ball, Counts, Ints, Measure, magic_bits
from dpframe.frames.keys import KeyTable

E = TypeVar("E")
STREAM_FROM = 100_000  # rows; below it the in-memory engine starts faster

# Seconds from 1970 on that are a duration or an instant of Polars: 64 bits of milliseconds, and a calendar of 262,000
# years, beyond which nothing can be printed.
_MOST_SECONDS = {"duration": (2**63 - 1) // 1000, "datetime": 8 * 10**12}


def streams(height: int | None) -> bool:
    """Whether a frame of so many rows (None: unknown) is streamed."""
    return height is None or height >= STREAM_FROM


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


def restore(s: pl.Series, c: Column) -> pl.Series:
    """Keys that leave, in the frame's own type. Times in whole seconds are milliseconds, which Polars has; where one
    of them lies beyond what Polars can hold and print, all stay the integers they are, seconds since 1970.

    Privacy: ``s`` are listed keys, or those that passed the threshold; so its type tells nothing more.
    """
    if isinstance(c.native, Ticks):
        most = _MOST_SECONDS[c.kind]
        if not s.is_between(-most, most).all():
            return s
        return (s * 1000).cast(
            pl.Duration("ms") if c.kind == "duration" else pl.Datetime("ms", c.native.time_zone)
        )
    dtype = pl.String if c.native == pl.Categorical else c.native
    return s if dtype == pl.Null else s.cast(dtype)


@dataclass(frozen=True, slots=True)
class Query:
    """What to aggregate of a lazy frame: expressions for measured, grouping and unit columns.

    ``values`` has the expression and the type of every measured column, ``height`` is how many rows it has at most
    if it lies in memory.
    """

    frame: pl.LazyFrame
    values: Mapping[Hashable, tuple[pl.Expr, Any]]
    by: Sequence[pl.Expr]
    unit: Sequence[pl.Expr]
    height: int | None

    def counts(self, ask: Ask) -> Counts:
        """Count rows and present cells and add up steps and their products, per group, each unit within its bounds.

        Privacy: missing (null, NaN) is mapped to null first, so it adds nothing; adding the constant
        rounds to the grid and is monotone (infinities included), the integer clip leaves every row's t
        between 0 and K whatever the addition did, and integer sums are exact: one row changes the sum
        of steps by at most K, of products by at most the product of both K, in any order and chunking.
        Rows whose key is not listed fall away; listed keys without rows get zeros. A product is at most 2**30,
        so sums stay below 2**63 for 2**32 rows.
        """
        measures, keys = ask.measures, ask.keys
        by = [f"k{i}" for i in range(len(self.by))]
        unit = [f"u{i}" for i in range(len(self.unit))]
        columns = [x.alias(n) for x, n in zip((*self.by, *self.unit), (*by, *unit))]
        axes = {a: f"x{j}" for j, a in enumerate(dict.fromkeys(a for m in measures for a in m.axes))}
        columns += [_cell(a, *self.values[a.column]).alias(name) for a, name in axes.items()]
        rows = self.frame.select(columns) if columns else self.frame
        where: list[list[str]] = []  # the columns of every measure's axes
        for i, m in enumerate(measures):
            cells = [axes[a] for a in m.axes]
            if m.ball is not None or len(cells) > 1:
                rows = _joint(rows, i, cells, m.ball)
                cells = [f"y{i}_{j}" for j in range(len(cells))]
            where.append(cells)
        if ask.bounding is None:
            return self._grouped(rows, ask, by, _sums(measures, where))
        rows = rows.drop_nulls(unit)
        if self.height is None:
            (pairs,) = add_up(rows.select(*unit, *by, *_lines(measures, where)), [unit + by])
        else:
            pairs = rows.group_by(unit + by).agg(_sums(measures, where))
        if keys is not None:
            pairs = pairs.join(_listed(keys).lazy(), on=by, how="inner", nulls_equal=True)
        if ask.chosen is not None:
            pairs = choose_groups(pairs, unit, by, ask.chosen, ask.salt)
        names = ask.sums
        if ask.weighed:
            pairs, names = weighed(pl, pairs, unit, pl.lit), ["weight", *names]
        pairs = scaled(pl, pairs, measures, unit, ask.bounding, floordiv)
        return self._grouped(pairs, ask, by, [pl.len().alias("m"), *(pl.col(x).sum() for x in names)])

    def _grouped(self, rows: pl.LazyFrame, ask: Ask, by: list[str], sums: list[pl.Expr]) -> Counts:
        keys, measures = ask.keys, ask.measures
        engine: Any = "streaming" if streams(self.height) else "in-memory"
        query = rows.group_by(by).agg(sums) if by else rows.select(sums)
        if keys is not None:
            listed = _listed(keys).lazy()
            query = listed.join(query, on=by, how="left", nulls_equal=True, maintain_order="left")
            query = query.select(pl.exclude(by).fill_null(0))
        elif by:
            query = query.sort(by)
        got = query.collect(engine=engine, optimizations=as_read(query))
        found = got.select(by) if by and keys is None else None
        present = tuple(_int64(got[f"c{i}"]) for i in range(len(measures)))
        added = tuple(
            tuple(_int64(got[f"t{i}_{p}"]) for p in range(len(m.products))) for i, m in enumerate(measures)
        )
        units, weights = (_int64(got[x]) if x in got.columns else None for x in ("m", "weight"))
        return Counts(_int64(got["n"]), present, added, units, found, weights=weights)


def complete_rows(
    rows: pl.LazyFrame, axes: Iterable[Axis], values: Mapping[Hashable, tuple[pl.Expr, Any]]
) -> pl.LazyFrame:
    """The rows in which no axis is missing, by the same test as in sums; ``values`` as those of :class:`Query`."""
    there = [_cell(a, *values[a.column]).is_not_null() for a in axes]
    return rows.filter(*there) if there else rows


def _cell(a: Axis, x: pl.Expr, dtype: Any) -> pl.Expr:
    """A row's number on this axis, null where it is missing: steps from ``base``, or the cell as it is."""
    if a.item is not None:
        x = _item(x, dtype, a.item, a.length)
        dtype = dtype.inner
    if a.low is None or a.high is None:
        return x.fill_nan(None) if dtype.is_float() else x
    shifted = x.cast(pl.Float64, strict=False).fill_nan(None) + a.magic
    low, high = magic_bits(a.low + a.magic), magic_bits(a.high + a.magic)
    return shifted.reinterpret(dtype=pl.Int64).clip(low, high) - (magic_bits(a.magic) + a.base)


def _item(x: pl.Expr, dtype: Any, item: int, length: int) -> pl.Expr:
    """One component of a column of lists; all components of a list of another length are missing."""
    if dtype.base_type() == pl.Array:
        return x.arr.get(item, null_on_oob=True)
    return pl.when(x.list.len() == length).then(x.list.get(item, null_on_oob=True))


def _joint(rows: pl.LazyFrame, i: int, cells: list[str], ball: Ball | None) -> pl.LazyFrame:
    """Leave out rows in which a cell is missing, and put vectors into their ball: columns y<i>_0, y<i>_1, ...

    Privacy: a float norm may be wrong, so it decides nothing. Components are cut toward zero to
    integers of at most the reach + 1, whose norm is then checked exactly; a vector that fails is
    zero. Infinite components are clipped to 2**400 first, so squares stay finite.
    """
    there = pl.all_horizontal(pl.col(x).is_not_null() for x in cells)
    rows = rows.with_columns(there.alias(f"there{i}"))
    y = [f"y{i}_{j}" for j in range(len(cells))]
    if ball is None:
        steps = [pl.col(x) for x in cells]
    else:
        far, two = 2.0**400, ball.order == 2
        rows = rows.with_columns(
            pl.col(x).cast(pl.Float64, strict=False).clip(-far, far).alias(name) for x, name in zip(cells, y)
        )
        size = added(pl.col(x) * pl.col(x) if two else pl.col(x).abs() for x in y)
        size = size.sqrt() if two else size
        shrink = pl.min_horizontal(1.0, ball.norm / size) * ((1 - 2.0**-20) / ball.step)
        rows = rows.with_columns(shrink.alias(f"shrink{i}"))
        most = ball.reach + 1  # beyond the ball, and its square leaves room for 2**12 of them
        cut = [(pl.col(x) * pl.col(f"shrink{i}")).cast(pl.Int64, strict=False) for x in y]
        rows = rows.with_columns(k.fill_null(0).clip(-most, most).alias(x) for k, x in zip(cut, y))
        exact = pl.sum_horizontal(pl.col(x) * pl.col(x) if two else pl.col(x).abs() for x in y)
        rows = rows.with_columns((exact <= ball.reach ** (2 if two else 1)).alias(f"short{i}"))
        steps = [pl.when(pl.col(f"short{i}")).then(pl.col(x)).otherwise(0) for x in y]
    return rows.with_columns(pl.when(pl.col(f"there{i}")).then(x).alias(name) for x, name in zip(steps, y))


def added(terms: Iterable[E]) -> E:
    """The sum of at least one expression, by pairs of neighbours.

    Every engine then adds floats in one order (``sum_horizontal`` has an order of its threads'), and no chain is
    too deep for one.
    """
    left = list(terms)
    while len(left) > 1:
        left = [reduce(add, left[i : i + 2]) for i in range(0, len(left), 2)]
    return left[0]


def choose_groups(pairs: pl.LazyFrame, unit: list[str], by: list[str], most: int, salt: int) -> pl.LazyFrame:
    """Keep at most ``most`` groups of every unit, chosen by salted hash rank.

    Privacy: a unit's rank depends on its own groups, its own id and the salt alone, so for every salt
    one unit's rows change nobody else's choice; fairness, not privacy, rests on the hash. Groups of equal hash have
    the largest of their ranks: the engine's order, which other rows can change, decides nothing.
    """
    return pairs.filter(rank_key(unit, by, salt).rank("max").over(unit) <= most)


def code_rows(rows: pl.LazyFrame, ask: Ask) -> pl.LazyFrame:
    """Give each row the position of its key as ``code``; rows of other keys, and of groups that their
    unit did not choose, are left out. ``rows`` has the columns k0, ... and u0, ...

    Privacy: a unit chooses among its groups that are listed. Which groups were found depends on other units, so
    then it chooses among all it has, as it did when they were found.
    """
    groups = ask.groups
    assert groups is not None
    by = [f"k{i}" for i in range(len(groups.columns))]
    if ask.keys is None:
        rows = _chosen(rows, by, ask)
    rows = rows.join(_listed(groups).with_row_index("code").lazy(), on=by, how="inner", nulls_equal=True)
    return rows if ask.keys is None else _chosen(rows, by, ask)


def _chosen(rows: pl.LazyFrame, by: list[str], ask: Ask) -> pl.LazyFrame:
    """The rows of units, in the groups that each of them chooses."""
    if ask.bounding is None:
        return rows
    unit = [f"u{i}" for i in range(len(ask.unit))]
    rows = rows.drop_nulls(unit)
    if ask.chosen is None:
        return rows
    chosen = choose_groups(rows.select(*unit, *by).unique(), unit, by, ask.chosen, ask.salt)
    return rows.join(chosen, on=[*unit, *by], how="semi", nulls_equal=True)


def rank_key(unit: list[str], by: list[str], salt: int) -> pl.Expr:
    """The number by which a unit's groups are ranked."""
    return pl.struct(*unit, *by).hash(salt)


def _listed(keys: KeyTable) -> pl.DataFrame:
    return pl.DataFrame({f"k{i}": c.engine for i, c in enumerate(keys.columns)})


def _sums(measures: tuple[Measure, ...], where: list[list[str]]) -> list[pl.Expr]:
    sums = [pl.len().cast(pl.Int64).alias("n")]
    for i, (m, cells) in enumerate(zip(measures, where)):
        sums.append(pl.col(cells[0]).count().cast(pl.Int64).alias(f"c{i}"))
        for p, product in enumerate(m.products):
            factors = [pl.col(cells[j]) for j in product]
            sums.append(reduce(mul, factors).sum().alias(f"t{i}_{p}"))
    return sums


def _lines(measures: tuple[Measure, ...], where: list[list[str]]) -> list[pl.Expr]:
    """What a row adds to each of ``_sums``."""
    lines = [pl.lit(1, pl.Int64).alias("n")]
    for i, (m, cells) in enumerate(zip(measures, where)):
        lines.append(pl.col(cells[0]).is_not_null().cast(pl.Int64).alias(f"c{i}"))
        for p, product in enumerate(m.products):
            lines.append(reduce(mul, (pl.col(cells[j]) for j in product)).alias(f"t{i}_{p}"))
    return lines


def _int64(s: pl.Series) -> Ints:
    return s.cast(pl.Int64).to_numpy().astype(np.int64, copy=False)
