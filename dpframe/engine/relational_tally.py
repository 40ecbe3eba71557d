"""Rows per group and bin of tables that stay where they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from dpframe.engine.polars_query import added
from dpframe.engine.relational_query import (
    Query,
    choose_groups,
    collected,
    grouped,
    keep_least,
    key_table,
    told,
)
from dpframe.engine.wire import integer, number, present
from dpframe.frames.bins import Among, Cuts, Distinct, Steps, Tally
from dpframe.frames.contract import Ask, Bounding, Tallied

_FEW = 32  # points that a row is compared with at a time


def tally(source: Any, t: Tally, ask: Ask) -> Tallied:
    """Count rows by group and bin, each unit within its bounds; groups by their place in ``ask.groups``.

    Privacy: as in Polars' engine: a row is in one bin by its own cell; of a unit only the chosen groups
    count, in each at most R rows, which ones depends on the unit's own rows and the salt alone. Rows
    in one bin are alike, so how the engine numbers them does not matter. Which groups were ``found`` depends
    on other units, so then a unit chooses among all it has, as it did when they were found.
    """
    keyed = (
        {"among": t.column}
        if isinstance(t.how, Among)
        else {"bin": t.column}
        if isinstance(t.how, Distinct)
        else {}
    )
    groups, bounding, listed = ask.groups, ask.bounding, ask.keys is not None
    query = Query(source, ask, keyed)
    unit, place = [*query.unit], [*query.unit, *query.by]
    if keyed:
        rows = query.select()
    else:
        x = nw.col(source.cell(t.column).place).cast(nw.Float64)
        rows = query.select(present(x).alias("x"))
        if isinstance(t.how, Steps):
            rows = _stepped(rows, t.how)
        else:
            assert isinstance(t.how, Cuts)
            rows = _cut(rows, query, t.how)
    if unit:
        rows = rows.drop_nulls(unit)
    if ask.chosen is not None and not listed:
        rows = choose_groups(rows, query, ask.chosen, ask.salt)
    if groups is None:
        rows = rows.with_columns(integer(0).alias("code"))
    else:
        rows = query.key(rows, [*query.by], "key", query.by)
        rows = rows.join(key_table(query, [*query.by.values()], groups), on="key", how="inner")
        if ask.chosen is not None and listed:
            rows = choose_groups(rows, query, ask.chosen, ask.salt)
    if t.missing is not None:
        rows = rows.with_columns(nw.col("bin").fill_null(t.missing))
    elif not isinstance(t.how, Among):  # there, missing is a bin when it is listed
        rows = rows.drop_nulls("bin")
    if isinstance(t.how, Among):
        rows = query.key(rows, ["among"], "said", query.keyed)
        candidates = key_table(query, [source.cell(t.column)], t.how.keys)
        candidates = candidates.select(nw.col("key").alias("said"), nw.col("code").alias("bin"))
        rows = rows.join(candidates, on="said", how="inner")
    rows = rows.select(*place, "code", "bin")
    if bounding is not None:
        rows = _keep_rows(rows, query, place, isinstance(t.how, Distinct), bounding, ask.salt)
    counts = grouped(rows, ["code", "bin"], [nw.len().alias("rows")], ["rows"])
    if isinstance(t.how, Distinct):
        counts = grouped(counts, ["code"], [nw.len().alias("rows")], ["rows"])
        counts = counts.with_columns(nw.lit(0).cast(nw.Int64).alias("bin"))
    got = collected(counts, ["code", "bin"])
    got = got.select(pl.col("code", "bin", "rows").cast(pl.Int64)).sort("code", "bin")
    return Tallied(*(got[c].to_numpy().astype(np.int64, copy=False) for c in ("code", "bin", "rows")))


def _keep_rows(rows: Any, query: Query, place: list[str], once: bool, bounding: Bounding, salt: int) -> Any:
    """At most R rows of every unit in every group, and T in all (``once``: of its different values), by salted hash rank."""
    rows = rows.with_columns(
        (nw.col("code").cum_count().over(*place, "bin", order_by="bin") - 1).alias("twin")
    )
    rows = rows.filter(nw.col("twin") == 0) if once else rows
    kept = keep_least(rows, query, place, [*place, "bin", "twin"], bounding.rows, salt)
    if bounding.total is None:
        return kept
    kept = kept.with_columns(nw.col("order").rank("dense").over(*query.unit).alias("rank"))
    return kept.filter(nw.col("rank") <= bounding.total)


def _stepped(rows: Any, how: Steps) -> Any:
    low, high, rate = number(how.low), number(how.low + how.width * how.last), number(how.rate)
    place = ((nw.col("x").clip(low, high) - low) * rate - number(0.5)).ceil()
    return rows.with_columns(
        nw.when(~nw.col("x").is_null()).then(place.clip(0, how.last).cast(nw.Int64)).alias("bin")
    )


def _cut(rows: Any, query: Query, how: Cuts) -> Any:
    """Count the points below every x as one looks a word up: ``_FEW`` comparisons, then as many on the page they name.

    ``bin`` is at least q if and only if point q - 1 lies below x; a page of ``span`` bins is cut into ``_FEW``.
    """
    m, span = len(how.points), 1
    while span * _FEW <= m:
        span *= _FEW
    rows = rows.with_columns(_below((number(p) for p in how.points[span - 1 :: span]), how).alias("bin"))
    names = [f"p{j}" for j in range(1, _FEW)]
    while span > 1:
        pages, span = range(0, m + 1, span), span // _FEW
        columns: dict[str, list[str | None]] = {
            p: [repr(how.points[q - 1]) if q <= m else None for q in (first + j * span for first in pages)]
            for j, p in enumerate(names, 1)
        }
        columns["bin"] = [str(i) for i in range(len(pages))]
        table = told(query, columns)
        points = (nw.col(p).cast(nw.Float64).alias(p) for p in names)
        table = table.select(*points, nw.col("bin").cast(nw.Int64))
        rows = rows.join(table, on="bin", how="inner")
        rows = rows.with_columns((nw.col("bin") * _FEW + _below(map(nw.col, names), how)).alias("bin"))
        rows = rows.drop(names)
    return rows.with_columns(nw.when(~nw.col("x").is_null()).then(nw.col("bin")).alias("bin"))


def _below(points: Iterable[nw.Expr], how: Cuts) -> nw.Expr:
    """How many points lie below x."""
    x, one, none = nw.col("x"), nw.lit(1).cast(nw.Int64), nw.lit(0).cast(nw.Int64)
    terms = [nw.when(x >= p if how.closed else x > p).then(one).otherwise(none) for p in points]
    return added(terms or [none])
