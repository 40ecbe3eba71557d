"""Dask DataFrames: every partition is a pandas frame, is counted as one, and the integers are added up."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from dask import compute, delayed
from dask.dataframe import DataFrame

from dpframe.engine.arrow import from_arrow
from dpframe.engine.held import Held
from dpframe.engine.pandas import PandasSource
from dpframe.engine.polars_query import restore
from dpframe.errors import Call, Message, wrong_type
from dpframe.frames.columns import Column, Ticks
from dpframe.frames.contract import NO_PARTS, Ask, Counts, Ints, KeyColumns, Parts, Tallied
from dpframe.frames.keys import KeyTable

_AT_ONCE = 16  # partitions' answers that are added up by one task


def open_frame(frame: Any) -> DaskSource:
    """The source of a frame; TypeError for what is not a DataFrame of pandas frames."""
    if not isinstance(frame, DataFrame) or not isinstance(frame._meta, pd.DataFrame):
        raise wrong_type(
            "dp.frame takes Dask DataFrames whose partitions are pandas frames.",
            hint="dp.frame(df) with a dask.dataframe.DataFrame",
        )
    return DaskSource(frame)


class DaskSource(Held):
    """A Dask DataFrame. Its answers are Polars frames."""

    lacks: Mapping[str, Message] = {
        "parts": NO_PARTS,
        "units": Message(
            ("the rows of one unit lie in many partitions, and each is counted by itself.",),
            (
                "dp.frame(pl.scan_parquet(...)), DuckDB or Spark bound units; or protect single rows with ",
                Call("dp.Session", eps=1),
            ),
        ),
        "distinct": Message(
            ("a value may occur in many partitions, and each is counted by itself.",),
            ("dp.frame(pl.scan_parquet(...)), DuckDB or Spark",),
        ),
    }

    def __init__(self, frame: DataFrame) -> None:
        super().__init__(frame)
        self._empty = PandasSource(frame._meta)

    def __repr__(self) -> str:
        return f"<Dask DataFrame with {len(self._frame.columns)} columns>"

    def names(self) -> list[Hashable]:
        return self._empty.names()

    def column(self, name: Hashable) -> Column:
        column = self._empty.column(name)
        if (
            column.kind == "categorical" and not self._frame[name].cat.known
        ):  # nor is the type of their values
            return Column(name, "other", "category of unknown values", True)
        return column

    def foreign_step(self, unit: tuple[str, ...]) -> str | None:
        return "Dask query"  # anything may have happened in it

    def aggregate(self, ask: Ask) -> Counts:
        """Count every partition as a pandas frame, and add up.

        Privacy: a row is in one partition and moves its integers as it would move those of a frame; sums of
        integers are the same in any order and grouping, and for a partition that is counted again. Only
        sums per group leave a partition. Units are refused when the plan is made: a partition can't know
        what of a unit is elsewhere.
        """
        assert ask.bounding is None
        answer: Counts = self._added(_Sums(ask))
        return answer

    def tally(self, ask: Ask) -> tuple[Tallied, ...]:
        """As :meth:`aggregate`: a row is in one bin of one partition."""
        assert ask.bounding is None
        answer: tuple[Tallied, ...] = self._added(_Bins(ask))
        return answer

    def _added(self, question: _Sums | _Bins) -> Any:
        """The answers of all partitions to a question, added up in steps."""
        rows = self._frame[question.of.columns]
        shared, types = delayed(question, traverse=False), delayed(rows._meta.dtypes, traverse=False)
        answers = [delayed(_asked)(shared, types, p) for p in rows.to_delayed()]
        if not answers:
            return question.ask(self._empty)
        while len(answers) > 1:
            starts = range(0, len(answers), _AT_ONCE)
            answers = [delayed(_sum)(shared, answers[i : i + _AT_ONCE]) for i in starts]
        (answer,) = compute(*answers)
        return answer

    def part(self, ask: Ask) -> Parts:
        raise NotImplementedError(NO_PARTS.said[0])

    def key_columns(self, by: tuple[Column, ...], keys: KeyTable | None, found: Any) -> KeyColumns:
        columns = self._empty.key_columns(by, keys, found).columns
        polars = {
            k: restore(from_arrow(pa.array(s)), c) if isinstance(c.native, Ticks) else pl.from_pandas(s)
            for (k, s), c in zip(columns.items(), by)
        }
        return KeyColumns(self.library, {k: s.alias(k) for k, s in polars.items()})


# ---- what runs where the partitions are ----


def _asked(question: Any, types: pd.Series[Any], part: pd.DataFrame) -> Any:
    """The answer of one partition, whose columns have the types that the frame declares."""
    part = part.copy(deep=False)
    for c, t in types.items():
        cells = part[c].reset_index(drop=True)
        if isinstance(t, pd.CategoricalDtype):  # which categories there are differs by partition
            part[c] = _categories(cells, t.categories.dtype)
        elif t != cells.dtype:
            part[c] = _held(cells, t).array
    return question.ask(PandasSource(part))


def _categories(cells: pd.Series[Any], dtype: Any) -> Any:
    """The cells as a Categorical whose values have the type that those of the frame are declared to have."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        if cells.cat.categories.dtype == dtype:
            return cells.array
        cells = cells.astype(cells.cat.categories.dtype if not cells.hasnans else object)
    held = _held(cells, dtype)
    return pd.Categorical(held, categories=pd.Index(held.dropna().unique(), dtype=dtype))


def _held(cells: pd.Series[Any], dtype: Any) -> pd.Series[Any]:
    """The cells in the type that the frame declares; those that are missing, or that it can't hold, are missing.

    Privacy: each cell decides for itself, and none raises or warns: one row must not stop the release.
    """
    there = cells.notna().to_numpy(dtype=bool)
    kind = getattr(dtype, "kind", "")
    if kind in "iu" and pd.api.types.is_numeric_dtype(cells.dtype) and cells.dtype.kind != "b":
        ends = np.iinfo(
            getattr(dtype, "numpy_dtype", dtype)
        )  # what lies beyond has no integer, nor has a fraction
        inside = (cells >= ends.min) & (cells < ends.max + 1)
        there = there & (inside & (cells % 1 == 0)).fillna(False).to_numpy(dtype=bool)
    if kind == "b" and pd.api.types.is_numeric_dtype(cells.dtype):
        there = there & cells.isin([0, 1]).to_numpy(dtype=bool)
    if not there.all():
        held = pd.Series([None] * len(cells), dtype=_with_missing(dtype))
        held[there] = _held(cells[there], dtype).array
        return held
    try:
        with np.errstate(all="ignore"):
            held = cells.astype(dtype)
    except Exception:
        if len(cells) == 1:
            return pd.Series([None], dtype=_with_missing(dtype))
        half = len(cells) // 2
        held = pd.concat([_held(cells.iloc[:half], dtype), _held(cells.iloc[half:], dtype)])
    return held


def _with_missing(dtype: Any) -> Any:
    """The dtype, or of numbers that can't be missing the one that can."""
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biu":
        return dtype
    return "boolean" if dtype.kind == "b" else f"{'U' * (dtype.kind == 'u')}Int{8 * dtype.itemsize}"


def _sum(question: Any, answers: Sequence[Any]) -> Any:
    return question.add(answers)


@dataclass(frozen=True, slots=True)
class _Sums:
    of: Ask

    def ask(self, source: PandasSource) -> Counts:
        return source.aggregate(self.of)

    def add(self, answers: Sequence[Counts]) -> Counts:
        """Group by group; of found groups, those with the same keys."""
        tables = [_columns(a) for a in answers]
        names = list(tables[0])
        if answers[0].found is None:
            return self._counts({n: sum(t[n] for t in tables) for n in names}, None)
        rows = pl.concat([a.found.with_columns(**t) for a, t in zip(answers, tables)])
        by = answers[0].found.columns
        rows = rows.group_by(by).agg(pl.col(names).sum()).sort(by)
        return self._counts({n: rows[n].to_numpy() for n in names}, rows.select(by))

    def _counts(self, columns: Mapping[str, Any], found: Any) -> Counts:
        sums = tuple(
            tuple(columns[f"t{i}_{p}"] for p in range(len(m.products)))
            for i, m in enumerate(self.of.measures)
        )
        present = tuple(columns[f"c{i}"] for i in range(len(self.of.measures)))
        return Counts(columns["n"], present, sums, None, found)


def _columns(a: Counts) -> dict[str, Ints]:
    named = {"n": a.rows, **{f"c{i}": x for i, x in enumerate(a.present)}}
    return named | {f"t{i}_{p}": x for i, sums in enumerate(a.sums) for p, x in enumerate(sums)}


@dataclass(frozen=True, slots=True)
class _Bins:
    of: Ask

    def ask(self, source: PandasSource) -> tuple[Tallied, ...]:
        return source.tally(self.of)

    def add(self, answers: Iterable[tuple[Tallied, ...]]) -> tuple[Tallied, ...]:
        return tuple(map(_together, zip(*answers)))


def _together(parts: Sequence[Tallied]) -> Tallied:
    rows = pl.DataFrame(
        {n: np.concatenate([getattr(t, n) for t in parts]) for n in ("groups", "bins", "rows")}
    )
    rows = rows.group_by("groups", "bins").agg(pl.col("rows").sum()).sort("groups", "bins")
    return Tallied(*(rows[n].to_numpy() for n in ("groups", "bins", "rows")))
