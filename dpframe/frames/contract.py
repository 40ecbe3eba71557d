"""The contract of engines: what a source is asked, and the integers that it gives."""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import isqrt
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl

from dpframe.errors import InputError, Message
from dpframe.frames.bins import Tally
from dpframe.frames.columns import MEASURABLE, Column, lookup
from dpframe.frames.key_types import KeyColumn
from dpframe.frames.keys import KeyTable

Ints = npt.NDArray[np.int64]
ROW_STEPS = 1 << 12  # of a row of a unit that is scaled down over all of its groups
WEIGHT = 1 << 20  # steps that a unit adds to the only group it is in, where units are weighed
NO_PARTS = Message(
    ("its parts would be read at different times, and a row could be in two of them.",),
    ("groupby(...) answers for all keys at once; or collect the columns you need into a Polars frame",),
)


@dataclass(frozen=True, slots=True)
class Axis:
    """One number of every row, as engines see it.

    On a grid: ``k = round_half_even(clip(x, low, high) / step)`` and ``t = k - base``, an integer from 0 to
    ``steps``. ``magic`` is 1.5 * 2**52 * step: adding it to a float64 of size at most 2**51 * step rounds
    that to a multiple of ``step``. Without bounds (``low is None``) the cell itself: only its presence
    is used, or it is a component of a vector. ``item`` is a position in a column of lists; ``length``
    how long those must be.
    """

    column: Hashable
    low: float | None = None
    high: float | None = None
    magic: float = 0.0
    base: int = 0
    steps: int = 0
    item: int | None = None
    length: int = 0


def unit_weight(groups: int) -> int:
    """What a unit in so many groups adds to each of them: floor(WEIGHT / sqrt(groups)), by whole numbers.

    Privacy: its square is at most WEIGHT**2 / groups, so a unit's weights have the norm WEIGHT at most.
    """
    return isqrt(WEIGHT**2 // groups)


def magic_bits(magic: float) -> int:
    """The bits of ``magic`` read as a 64-bit integer: adding k steps adds k to them."""
    return int(struct.unpack("<q", struct.pack("<d", magic))[0])


@dataclass(frozen=True, slots=True)
class Ball:
    """Vectors are shortened to ``norm`` in the norm of this ``order`` (1 or 2), and cut to multiples of ``step``.

    ``reach`` is floor(norm / step): no vector of integers is longer.
    """

    norm: float
    order: int
    step: float
    reach: int


@dataclass(frozen=True, slots=True)
class Measure:
    """What the engine adds up about rows in which all ``axes`` are present.

    It returns the number of those rows and one sum for every product: (0,) is the sum of the first
    axis' steps, (0, 0) of their squares, (0, 1) of first times second. Without products only
    presence is counted. With a ``ball`` the axes are components of one vector.
    """

    axes: tuple[Axis, ...]
    products: tuple[tuple[int, ...], ...] = ()
    ball: Ball | None = None

    @property
    def columns(self) -> tuple[Hashable, ...]:
        return tuple(dict.fromkeys(a.column for a in self.axes))


@dataclass(frozen=True, slots=True)
class Bounding:
    """How much of one unit counts.

    Attributes
    ----------
    unit : tuple of column names
    rows : int
        R: rows a unit may count for in one group. A unit with more is scaled down, not sampled.
    groups : int or None
        L0: groups a unit may be in, chosen by salted hash; None when there is one group.
    total : int or None
        T: rows a unit may count for in all groups together, where that is less than ``rows`` in each. What is added up
        is then in row steps of 1/``ROW_STEPS``, as units are scaled to parts of rows; what is tallied is rows.
    """

    unit: tuple[Hashable, ...]
    rows: int
    groups: int | None
    total: int | None = None

    @property
    def row_steps(self) -> int:
        """How many steps a row is in what is added up."""
        return 1 if self.total is None else ROW_STEPS


@dataclass(frozen=True, slots=True)
class Ask:
    """One question to an engine: what is added up or tallied, in which groups, and how much of a unit counts.

    Attributes
    ----------
    measures : tuple of Measure
        For ``aggregate``.
    tallies : tuple of Tally
        For ``tally``.
    by : tuple of Column
        The grouping columns; without any, all rows are one group.
    keys : KeyTable or None
        The listed groups; None for one group, or for the groups that occur.
    bounding : Bounding or None
        None when a row is the unit.
    salt : int
        Of the hash by which a unit's groups and rows are chosen.
    found : polars.DataFrame or None
        For ``tally`` when no groups are listed: those that ``aggregate`` found. Private.
    complete : tuple of Axis
        Rows in which one of these is missing are left out of everything. Without bounds: only presence matters.
    weighed : bool
        Whether the weights of units are added up, too (:func:`unit_weight` of the groups that a unit has chosen).

    Privacy: whether a row is complete is seen from that row alone, and rows are left out before anything else is
    done with them: before groups are found or chosen, units scaled and rows ranked. So what the engine says is what
    it would say of the frame without those rows; adding or replacing a row of the frame adds, removes or replaces at
    most that row there, as for a unit, and every sensitivity holds as it is.
    """

    measures: tuple[Measure, ...] = ()
    tallies: tuple[Tally, ...] = ()
    by: tuple[Column, ...] = ()
    keys: KeyTable | None = None
    bounding: Bounding | None = None
    salt: int = 0
    found: Any = field(repr=False, compare=False, default=None)
    complete: tuple[Axis, ...] = ()
    weighed: bool = False

    @property
    def unit(self) -> tuple[Hashable, ...]:
        """The unit's columns; none when a row is the unit."""
        return self.bounding.unit if self.bounding else ()

    @property
    def measured(self) -> list[Hashable]:
        """The columns that are measured, each once."""
        return list(dict.fromkeys(c for m in self.measures for c in m.columns))

    @property
    def columns(self) -> list[Hashable]:
        """Every column that is read, each once."""
        read = [*self.measured, *(t.column for t in self.tallies), *(a.column for a in self.complete)]
        return list(dict.fromkeys([*read, *(c.name for c in self.by), *self.unit]))

    @property
    def sums(self) -> list[str]:
        """The names of what is added up: n rows, c<i> present cells of a measure, t<i>_<p> of its products."""
        names = ["n", *(f"c{i}" for i in range(len(self.measures)))]
        return names + [f"t{i}_{p}" for i, m in enumerate(self.measures) for p in range(len(m.products))]

    @property
    def chosen(self) -> int | None:
        """L0 where a unit can be in more of the groups than count; None where all of its groups do."""
        most = self.bounding.groups if self.bounding else None
        return None if most is None or (self.keys is not None and self.keys.size <= most) else most

    @property
    def groups(self) -> KeyTable | None:
        """The groups that are tallied: the listed ones, or those that were found; None for one group."""
        if self.keys is not None or not self.by:
            return self.keys
        columns = tuple(KeyColumn(c.name, c.kind, s) for c, s in zip(self.by, self.found.get_columns()))
        return KeyTable(columns, self.found.height, "")


@dataclass(frozen=True, slots=True)
class Tallied:
    """Rows per group and bin, without the empty ones, sorted by group and bin. Private, as :class:`Counts`."""

    groups: Ints = field(repr=False)
    bins: Ints = field(repr=False)
    rows: Ints = field(repr=False)

    def dense(self, groups: int, bins: int) -> Ints:
        """One number per group and bin, zeros included, group by group."""
        out = np.zeros((groups, bins), dtype=np.int64)
        out[self.groups, self.bins] = self.rows
        return out.ravel()

    def of_groups(self, groups: int) -> Iterator[tuple[Ints, Ints]]:
        """(bins, rows) of one group after the other."""
        edges = np.searchsorted(self.groups, np.arange(groups + 1))
        for low, high in pairwise(edges.tolist()):
            yield self.bins[low:high], self.rows[low:high]


@dataclass(frozen=True, slots=True)
class Counts:
    """The engine's answer: exact integers per group (or one group). Private; never leaves the pipeline.

    Per measure: ``present``, and ``sums`` with an array for each of its products. ``weights`` are the sums of what units
    weigh, where that was asked. ``found`` holds the keys of the groups, in the engine's form and sorted, when none were listed.
    """

    rows: Ints = field(repr=False)
    present: tuple[Ints, ...] = field(repr=False)
    sums: tuple[tuple[Ints, ...], ...] = field(repr=False)
    units: Ints | None = field(repr=False, default=None)
    found: Any = field(repr=False, default=None)
    tallies: tuple[Tallied, ...] = field(repr=False, default=())
    weights: Ints | None = field(repr=False, default=None)


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """Released keys: columns by name, in the frame library they go back to (none if there are no groups)."""

    library: str
    columns: dict[str, Any]

    def take(self, where: Ints) -> KeyColumns:
        """The rows at these places."""
        if self.library == "pandas":
            taken = {k: s.take(where).reset_index(drop=True) for k, s in self.columns.items()}
        else:
            taken = {k: s.gather(where) for k, s in self.columns.items()}
        return KeyColumns(self.library, taken)

    def beside(self, columns: dict[str, Any]) -> KeyColumns:
        """With further columns."""
        return KeyColumns(self.library, {**self.columns, **columns})

    def frame(self, answers: dict[str, npt.NDArray[Any]]) -> Any:
        """A frame of the caller's library: the keys, then the answers, where NaN is an answer that is missing."""
        table = {**self.columns, **answers}
        return pd.DataFrame(table) if self.library == "pandas" else pl.DataFrame(table, nan_to_null=True)


Parts = list[Callable[[], "Source"]]


class Source(Protocol):
    """A frame as the pipeline sees it. Its repr shows no cell."""

    library: str
    part_of: Any  # the session of the part of a partition that this is, or None
    lacks: Mapping[str, Message]  # what can't be asked of it ("parts", "units", "distinct"), and why

    def names(self) -> list[Hashable]:
        """Column names, for messages and hints."""
        ...

    def column(self, name: Hashable) -> Column:
        """The type of one column; InputError when it is absent or there are two of that name."""
        ...

    def foreign_step(self, unit: tuple[str, ...]) -> str | None:
        """A step before the frame gets here that is not known to be row by row, or within units; None if there is none.

        An eager frame does not tell how it was made: None.
        """
        ...

    def wrong_literal(self) -> str | None:
        """A function of a lazy frame's plan that was given a pattern, format or the like that it can't use, or None."""
        ...

    def out_of_order(self) -> bool:
        """Whether the engine can't answer now, whatever the data are: a connection that is closed or in use, a table
        that was dropped. Asked of no row."""
        ...

    def aggregate(self, ask: Ask) -> Counts:
        """One pass over the data. ``by`` without ``keys``: the groups that occur."""
        ...

    def tally(self, ask: Ask) -> tuple[Tallied, ...]:
        """Rows per group and bin, all tallies in one pass."""
        ...

    def part(self, ask: Ask) -> Parts:
        """The rows of every listed key, of every unit only the chosen groups; made when called for."""
        ...

    def key_columns(self, by: tuple[Column, ...], keys: KeyTable | None, found: Any) -> KeyColumns:
        """The released keys in the caller's library."""
        ...


def require(source: Source, ability: str, asked: str) -> None:
    """Raise InputError when ``source`` lacks an ability that ``asked`` needs."""
    why = source.lacks.get(ability)
    if why is not None:
        raise InputError(f"{asked} does not take {source!r}: ", *why.said, hint=why.hint)


__all__ = [
    "MEASURABLE",
    "NO_PARTS",
    "Ask",
    "Axis",
    "Ball",
    "Bounding",
    "Column",
    "Counts",
    "Ints",
    "KeyColumns",
    "Measure",
    "Parts",
    "Source",
    "Tallied",
    "lookup",
    "magic_bits",
    "require",
]
