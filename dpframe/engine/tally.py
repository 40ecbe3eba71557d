"""Exact counts of rows per group and bin: what histograms, quantiles and choices are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from dpframe.engine import polars_query as engine
from dpframe.engine.pairs import add_up
from dpframe.engine.polars_query import STREAM_FROM, code_rows
from dpframe.engine.polars_scans import as_read
from dpframe.frames.bins import Among, Cuts, Distinct, Tally
from dpframe.frames.contract import Ask, Bounding, Ints, Tallied
from dpframe.frames.keys import KeyTable

_CHUNK = 1 << 17  # numbers that are counted at a time
_FEW = 1 << 17  # counters that take no time


@dataclass(frozen=True, slots=True)
class TallyQuery:
    """What to tally of a lazy frame: expressions for the tallied, grouping and unit columns.

    ``height`` is how many rows it has at most if it lies in memory.
    """

    frame: pl.LazyFrame
    values: Sequence[pl.Expr]
    by: Sequence[pl.Expr]
    unit: Sequence[pl.Expr]
    height: int | None

    def counts(self, ask: Ask) -> tuple[Tallied, ...]:
        """Count rows by group and bin, each unit within its bounds; groups by their place in ``ask.groups``.

        Privacy: a cell's bin depends on that cell alone, and a row is in one bin, so it moves one count
        by 1. With a unit, only its chosen groups count (as in the sums of the same release), and in
        each at most R of its rows, so its counts in a group sum to R at most. Which ones depends on the
        unit's own rows and the salt alone. Where T rows of a unit count in all groups together, it is T of those.
        """
        tallies = ask.tallies
        by = [f"k{i}" for i in range(len(self.by))]
        unit = [f"u{i}" for i in range(len(self.unit))]
        columns = [x.alias(n) for x, n in zip((*self.by, *self.unit), (*by, *unit))]
        columns += [_bin(x, t).alias(f"b{i}") for i, (x, t) in enumerate(zip(self.values, tallies))]
        rows = self.frame.select(columns)
        cells = [self._cells(t, ask.groups) for t in tallies]
        lines = self._lines(rows, [[*unit, *by, f"b{i}"] for i in range(len(tallies))], unit)
        queries = [
            _one(lines[i].rename({f"b{i}": "bin"}), t, by, unit, ask)
            if size is None
            else _numbers(rows, i, t, ask, size[1])
            for i, (t, size) in enumerate(zip(tallies, cells))
        ]
        small = self.height is not None and self.height < STREAM_FROM
        engine: Any = "in-memory" if small else "streaming"
        return tuple(
            Tallied(*(_int64(got[c]) for c in ("code", "bin", "rows")))
            if size is None
            else _count(got["number"], size)
            for got, size in zip(pl.collect_all(queries, engine=engine, optimizations=as_read(rows)), cells)
        )

    def _cells(self, tally: Tally, groups: KeyTable | None) -> tuple[int, int] | None:
        """(groups, bins) if every pair of them can have a counter of its own: of rows in memory, when they are no more than those.

        A frame that does not lie in memory may not fit there, and the rows of a unit are counted by unit first.
        """
        if self.height is None or self.unit or isinstance(tally.how, Among | Distinct):
            return None
        size = (groups.size if groups else 1, max(tally.how.size, 1 + (tally.missing or 0)))
        return size if size[0] * size[1] <= max(_FEW, self.height) else None

    def _lines(
        self, rows: pl.LazyFrame, keys: Sequence[list[str]], unit: Sequence[str]
    ) -> list[pl.LazyFrame]:
        """The number of ``rows`` per unit, group and bin, for the keys of every tally."""
        if not unit or self.height is not None:
            rows = rows.drop_nulls(unit) if unit else rows
            return [rows.group_by(some).agg(pl.len().cast(pl.Int64).alias("rows")) for some in keys]
        return add_up(rows.drop_nulls(unit).with_columns(pl.lit(1, pl.Int64).alias("rows")), keys)


def _one(pairs: pl.LazyFrame, tally: Tally, by: list[str], unit: list[str], ask: Ask) -> pl.LazyFrame:
    """The counts of one tally, from lines of unit, group, bin and number of rows."""
    if ask.bounding is not None:  # used twice, and the data shall be read once
        pairs = pairs.cache()
    pairs = code_rows(pairs, ask) if ask.by else pairs.with_columns(pl.lit(0, pl.UInt32).alias("code"))
    if tally.missing is not None:
        pairs = pairs.with_columns(pl.col("bin").fill_null(tally.missing))
    elif not isinstance(tally.how, Among):  # there, missing is a bin when it is listed
        pairs = pairs.drop_nulls("bin")
    if isinstance(tally.how, Among):
        listed = tally.how.keys.columns[0].engine.alias("bin")
        places = pl.DataFrame([listed]).with_row_index("place").lazy()
        pairs = pairs.join(places, on="bin", how="inner", nulls_equal=True)
        pairs = pairs.with_columns(pl.col("place").alias("bin"))
    once = isinstance(tally.how, Distinct)
    if once:
        pairs = pairs.with_columns(pl.lit(1, pl.Int64).alias("rows"))
    if ask.bounding is not None:
        pairs = keep_rows(pairs, unit, by, ask.bounding, ask.salt)
    pairs = pairs.group_by("code", "bin").agg(pl.col("rows").sum())
    if once:
        pairs = pairs.group_by("code").agg(
            pl.lit(0, pl.Int64).alias("bin"), pl.len().cast(pl.Int64).alias("rows")
        )
    return pairs.sort("code", "bin")


def _numbers(rows: pl.LazyFrame, i: int, tally: Tally, ask: Ask, bins: int) -> pl.LazyFrame:
    """A row's number among all pairs of group and bin; rows of no bin or no group are left out."""
    rows = rows.rename({f"b{i}": "bin"})
    rows = (
        rows.drop_nulls("bin")
        if tally.missing is None
        else rows.with_columns(pl.col("bin").fill_null(tally.missing))
    )
    if not ask.by:
        return rows.select(number="bin")
    return code_rows(rows, ask).select(number=pl.col("code").cast(pl.Int64) * bins + pl.col("bin"))


def _count(numbers: pl.Series, size: tuple[int, int]) -> Tallied:
    counts = np.zeros(size[0] * size[1], dtype=np.int64)
    flat, chunk = numbers.to_numpy(), max(_CHUNK, len(counts))
    for i in range(0, len(flat), chunk):
        counts += np.bincount(flat[i : i + chunk], minlength=len(counts))
    there = np.flatnonzero(counts)
    return Tallied(there // size[1], there % size[1], counts[there])


def keep_rows(
    pairs: pl.LazyFrame, unit: list[str], by: list[str], bounding: Bounding, salt: int
) -> pl.LazyFrame:
    """Keep at most R rows of every unit in every group, and T of it in all, by rank of a salted hash.

    ``pairs`` has one line per unit, group and bin, with its number of ``rows``; rows of one bin are alike,
    so a row is known by its unit, keys, bin and number among them.

    Privacy: the rank is within one unit and group and hashes nothing of others, so for every salt a
    unit's rows change nobody else's choice, and at most R remain (ties: as in ``choose_groups``), of which at most T
    remain over all of its groups.
    """
    place, most, total = [*unit, *by], bounding.rows, bounding.total
    heavy = pl.col("rows").sum().over(place) > most
    if total is not None:
        heavy |= pl.col("rows").sum().over(unit) > total
    one_by_one = (
        pairs.filter(heavy).with_columns(pl.int_ranges(0, pl.col("rows")).alias("twin")).explode("twin")
    )
    one_by_one = one_by_one.with_columns(engine.rank_key([*place], ["bin", "twin"], salt).alias("order"))
    kept = one_by_one.filter(pl.col("order").rank("max").over(place) <= most)
    if total is not None:
        kept = kept.filter(pl.col("order").rank("max").over(unit) <= total)
    kept = kept.with_columns(pl.lit(1, pl.Int64).alias("rows")).drop("twin", "order")
    return pl.concat([pairs.filter(~heavy), kept])


def _bin(x: pl.Expr, tally: Tally) -> pl.Expr:
    how = tally.how
    if isinstance(how, Among | Distinct):
        return x
    x = x.cast(pl.Float64, strict=False)
    if isinstance(how, Cuts):
        x = x.fill_nan(None)
        points = pl.lit(pl.Series(how.points, dtype=pl.Float64))
        place = points.search_sorted(x, side="right" if how.closed else "left").cast(pl.Int32)
        return pl.when(x.is_not_null()).then(place)
    place = ((x - how.low) * how.rate - 0.5).ceil().clip(0, how.last)
    return place.cast(pl.Int32, strict=False)  # NaN is null


def _int64(s: pl.Series) -> Ints:
    return s.cast(pl.Int64).to_numpy()
