"""Sums per pair of unit and group: any number of rows, in the memory of the pairs."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from dpframe.engine.polars_scans import as_read

AT_ONCE = 1 << 22  # rows


def add_up(rows: pl.LazyFrame, keys: Sequence[Sequence[str]]) -> list[pl.LazyFrame]:
    """For every list of key columns the sums of all other columns of it, from one pass over ``rows``.

    ``keys`` are disjoint but for those that all lists share; other columns are integers that all lists add up.

    Polars' streaming group-by keeps what it has added up of a few rows at a time until the last row is
    there, so its memory grows with the rows. Here rows are collected until they are as many as the pairs
    so far, and added to those: memory is that of twice the pairs (and of ``AT_ONCE`` rows), and every
    row is added up twice on average at most.

    Privacy: sums of integers are the same however the rows are cut, and each row is read once.
    """
    own = {k for some in keys for k in some}
    numbers = [n for n in rows.collect_schema().names() if n not in own]
    sums = [_Sums(some, numbers) for some in keys]

    def take(portion: pl.DataFrame) -> None:
        for s in sums:
            s.add(portion)

    rows.sink_batches(
        take, chunk_size=AT_ONCE, maintain_order=False, engine="streaming", optimizations=as_read(rows)
    )
    return [s.lines().lazy() if s.any else rows.select(*s.keys, *numbers).clear() for s in sums]


class _Sums:
    """Lines of keys and numbers, several or one for equal keys."""

    def __init__(self, keys: Sequence[str], numbers: Sequence[str]) -> None:
        self.keys, self._numbers = list(keys), list(numbers)
        self._held: list[pl.DataFrame] = []
        self._summed = self._new = 0

    @property
    def any(self) -> bool:
        return bool(self._held)

    def add(self, rows: pl.DataFrame) -> None:
        self._held.append(rows.select(*self.keys, *self._numbers))
        self._new += rows.height
        if self._new >= max(self._summed, AT_ONCE):
            self.lines()

    def lines(self) -> pl.DataFrame:
        """One line for equal keys."""
        if self._new:
            held = pl.concat(self._held).lazy()
            self._held = []  # what is added up below may be dropped on the way
            self._held = [
                held.group_by(self.keys).agg(pl.col(self._numbers).sum()).collect(engine="streaming")
            ]
            self._summed, self._new = self._held[0].height, 0
        return self._held[0]
