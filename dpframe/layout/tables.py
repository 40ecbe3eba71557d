"""Answers that are tables in themselves: the rows that each group has, beside its keys."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from dpframe.frames.columns import Column
from dpframe.frames.contract import Ints, KeyColumns, Source
from dpframe.frames.keys import KeyTable


class Index(ABC):
    """How many rows a group has, and what stands beside them. ``piece`` is the released piece that fills them."""

    piece: int
    width: int

    @abstractmethod
    def lines(self, source: Source) -> KeyColumns:
        """The columns from which rows are taken."""

    @abstractmethod
    def places(self, noisy: Ints) -> Ints:
        """Which line every row of the answer takes."""

    def rows(self, keys: KeyColumns, source: Source, noisy: list[Ints]) -> KeyColumns:
        """The keys of every row of the answer: its group's, then its own."""
        released = noisy[self.piece]
        groups = np.repeat(np.arange(len(released) // self.width), self.width)
        return keys.take(groups).beside(self.lines(source).take(self.places(released)).columns)


@dataclass(frozen=True, slots=True)
class Fixed(Index):
    """The same public rows in every group: bins, or quantiles."""

    piece: int
    width: int
    columns: tuple[tuple[str, Any, tuple[Any, ...]], ...]  # name, Polars dtype, values

    def lines(self, source: Source) -> KeyColumns:
        columns: dict[str, Any] = {n: pl.Series(n, v, dtype=t) for n, t, v in self.columns}
        if source.library == "pandas":
            columns = {n: pd.Series(list(v)) for n, _, v in self.columns}
        return KeyColumns(source.library, columns)

    def places(self, noisy: Ints) -> Ints:
        return np.tile(np.arange(self.width), len(noisy) // self.width)


@dataclass(frozen=True, slots=True)
class Named(Index):
    """The chosen ones of some names, best first."""

    piece: int
    width: int
    title: str
    names: tuple[str, ...]

    def lines(self, source: Source) -> KeyColumns:
        make = pd.Series if source.library == "pandas" else pl.Series
        return KeyColumns(source.library, {self.title: make(list(self.names))})

    def places(self, noisy: Ints) -> Ints:
        return noisy


@dataclass(frozen=True, slots=True)
class Chosen(Index):
    """The chosen values among public candidates, best first."""

    piece: int
    width: int
    column: Column
    candidates: KeyTable

    def lines(self, source: Source) -> KeyColumns:
        return source.key_columns((self.column,), self.candidates, None)

    def places(self, noisy: Ints) -> Ints:
        return noisy
