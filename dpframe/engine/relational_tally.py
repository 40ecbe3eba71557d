"""Rows per group and bin of tables that stay where they are."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from dpframe.bins import Among, Cuts, Distinct, Steps, Tally
from dpframe.engine.relational import (
    Query,
    RelationalSource,
    choose_groups,
    grouped,
    keep_least,
    key_table,
    number,
    present,
    text,
)
from dpframe.keys import KeyTable
from dpframe.schema import Bounding, Column, Tallied


def tally(
    source: RelationalSource,
    t: Tally,
    by: tuple[Column, ...],
    groups: KeyTable | None,
    bounding: Bounding | None,
    salt: int,
) -> Tallied:
    """Count rows by group and bin, each unit within its bounds; groups by their place in ``groups``.

    Privacy: as in Polars' engine: a row is in one bin by its own cell; of a unit only the chosen groups
    count, in each at most R rows, which ones depends on the unit's own rows and the salt alone. Rows
    in one bin are alike, so how the engine numbers them does not matter.
    """
    column = source.column(t.column)
    keyed = isinstance(t.how, Among | Distinct)
    query = Query(source, by, bounding.unit if bounding else (), {"bin": column} if keyed else None)
    unit, place = [*query.unit], [*query.unit, *query.by]
    rows = query.select() if keyed else query.select(_bin(nw.col(str(t.column)), t).alias("bin"))
    if unit:
        rows = rows.drop_nulls(unit)
    if groups is None:
        rows = rows.with_columns(nw.lit(0).cast(nw.Int64).alias("code"))
    else:
        rows = rows.with_columns(text([nw.col(k) for k in query.by]).alias("key"))
        rows = rows.join(key_table(query, [*query.by.values()], groups), on="key", how="inner")
        if bounding is not None and bounding.groups is not None and groups.size > bounding.groups:
            rows = choose_groups(rows, source._family, unit, [*query.by], bounding.groups, salt)
    if t.missing is not None:
        rows = rows.with_columns(nw.col("bin").fill_null(t.missing))
    elif not isinstance(t.how, Among):  # there, missing is a bin when it is listed
        rows = rows.drop_nulls("bin")
    if isinstance(t.how, Among):
        listed = key_table(query, [column], t.how.keys).select("key", nw.col("code").alias("place"))
        rows = rows.select(*place, "code", text([nw.col("bin")]).alias("key")).join(listed, on="key", how="inner")
        rows = rows.with_columns(nw.col("place").alias("bin"))
    rows = rows.select(*place, "code", "bin")
    if bounding is not None:
        rows = _keep_rows(rows, source._family, place, isinstance(t.how, Distinct), bounding.rows, salt)
    counts = grouped(rows, ["code", "bin"], [nw.len().alias("rows")], ["rows"])
    if isinstance(t.how, Distinct):
        counts = grouped(counts, ["code"], [nw.len().alias("rows")], ["rows"])
        counts = counts.with_columns(nw.lit(0).cast(nw.Int64).alias("bin"))
    got = pl.from_arrow(counts.collect("pyarrow").to_native())
    assert isinstance(got, pl.DataFrame)
    got = got.select(pl.col("code", "bin", "rows").cast(pl.Int64)).sort("code", "bin")
    return Tallied(*(got[c].to_numpy().astype(np.int64, copy=False) for c in ("code", "bin", "rows")))


def _keep_rows(rows: Any, family: Any, place: list[str], once: bool, most: int, salt: int) -> Any:
    """At most ``most`` rows of every unit in every group (``once``: of its different values), by salted hash rank."""
    rows = rows.with_columns((nw.col("code").cum_count().over(*place, "bin", order_by="bin") - 1).alias("twin"))
    if once:
        rows = rows.filter(nw.col("twin") == 0).select(*place, "code", "bin")
        return keep_least(rows, family, place, [*place, "bin"], most, salt)
    return keep_least(rows, family, place, [*place, "bin", "twin"], most, salt)


def _bin(x: nw.Expr, t: Tally) -> nw.Expr:
    x = present(x.cast(nw.Float64))
    if isinstance(t.how, Cuts):
        return nw.when(~x.is_null()).then(_place(x, t.how, 0, len(t.how.points)))
    assert isinstance(t.how, Steps)
    how = t.how
    low, high, width = number(how.low), number(how.low + how.width * how.last), number(how.width)
    place = ((x.clip(low, high) - low) / width - number(0.5)).ceil()
    return nw.when(~x.is_null()).then(place.clip(0, how.last).cast(nw.Int64))


def _place(x: nw.Expr, how: Cuts, low: int, high: int) -> nw.Expr:
    """The number of points below ``x``, known to be from ``low`` to ``high``, by halving."""
    if low == high:
        return nw.lit(low).cast(nw.Int64)
    middle = (low + high) // 2
    point = number(how.points[middle])
    above = x >= point if how.closed else x > point
    return nw.when(above).then(_place(x, how, middle + 1, high)).otherwise(_place(x, how, low, middle))
