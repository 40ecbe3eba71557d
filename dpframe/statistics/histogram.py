"""Numbers of rows between public edges: histogram; and what questions share that count bins."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import polars as pl

from dpframe.accounting.events import Number
from dpframe.errors import Arg, Call, InputError, exactly
from dpframe.frames.bins import Tally, between
from dpframe.frames.columns import Column
from dpframe.frames.keys import MOST_KEYS
from dpframe.frames.public import Public
from dpframe.layout.answers import Answer, Linear
from dpframe.layout.families import Family
from dpframe.layout.layouts import Layout
from dpframe.layout.tables import Fixed, Index
from dpframe.statistics.base import Aggregate, common, one_column, one_number
from dpframe.statistics.question import question


@dataclass(frozen=True, slots=True)
class Binned(Aggregate):
    """A question answered by noisy counts of bins."""

    measured = ()
    in_rows = True

    @property
    def columns(self) -> tuple[Hashable, ...]:
        return (self.column,)

    @abstractmethod
    def tally(self, column: Column) -> Tally:
        """The bins; InputError for a column that has none."""

    @abstractmethod
    def width(self) -> int:
        """How many bins there are; 0 for one that counts different values."""

    def families(self, types: Mapping[Hashable, Column]) -> tuple[Family, ...]:
        kind = "bins" if self.width() else "distinct"
        return (Family(kind, (self.column,), dims=self.width(), tally=self.tally(types[self.column])),)

    def answer(self, layout: Layout) -> Answer:
        return Linear(layout.present, integer=True)


@dataclass(frozen=True, slots=True)
class Histogram(Binned):
    edges: tuple[Fraction, ...] = ()
    verb = "histogram"
    default_name = "count"
    missing = "null and NaN have a row of their own in histograms; infinities lie below or above the edges"

    @property
    def numeric(self) -> tuple[Hashable, ...]:
        return (self.column,)

    def width(self) -> int:
        return len(self.edges) + 2  # below, the bins, above, missing

    def tally(self, column: Column) -> Tally:
        return Tally(self.column, between(self.edges), missing=self.width() - 1)

    def table(self, start: int, column: Column) -> Index:
        ends = [float(e) for e in self.edges]
        text = [exactly(e) for e in self.edges]
        pairs = [*itertools.pairwise(text)]
        labels = [f"[{a}, {b})" for a, b in pairs[:-1]] + [f"[{pairs[-1][0]}, {pairs[-1][1]}]"]
        names = (f"< {text[0]}", *labels, f"> {text[-1]}", "missing")
        lower = (-float("inf"), *ends, None)
        upper = (*ends, float("inf"), None)
        columns = (
            ("bin", pl.String, names),
            ("lower", pl.Float64, lower),
            ("upper", pl.Float64, upper),
        )
        return Fixed(start, self.width(), columns)

    def describe(self) -> str:
        return f"histogram({self.column!r}, edges=[{_few(self.edges)}])"


@question(
    answer="table",
    returns="frame with ``bin``, ``lower``, ``upper`` and ``count``; of groups those rows for each, after the keys",
    example="'x', edges=[0, 10, 20]",
    known_as=("hist",),
    audited={"histogram": {"column": "x", "edges": [-3, 0, 2.5, 10]}},
)
def histogram(
    column: Hashable,
    *,
    edges: Sequence[Number] | None = None,
    eps: Number | None = None,
    nonnegative: bool = False,
    round: int | None = None,
) -> Histogram:
    """Count rows between public edges.

    Parameters
    ----------
    edges : list of at least two numbers, increasing
        In the column's unit; from knowledge, never from the frame. Bins are [a, b), the last one [a, b].

    Returns
    -------
    Histogram
        ``len(edges) + 2`` rows: below the first edge, the bins, above the last one, missing (null and NaN). Counts
        are Int64.

    Raises
    ------
    InputError
        Without edges, or for edges that are not finite numbers in increasing order.

    Notes
    -----
    Privacy: (eps, delta)-DP per protected unit. A row is in one bin, so it moves the counts by 1 in L1 and L2
    (replace_one: 2 and sqrt 2). With a unit, R of its rows are kept, chosen by salted hash: R in L1 (2R) and R in L2
    (sqrt 2 R). Source: Dwork et al. 2006.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"age": [3.0, 40.0, 41.0, None]})
    >>> with dp.Session(eps=1e6):
    ...     h = df.dp.histogram("age", edges=[0, 18, 65], eps=1e6)
    >>> h.select("bin", "count").rows()
    [('< 0', 0), ('[0, 18)', 1), ('[18, 65]', 2), ('> 65', 0), ('missing', 1)]
    """
    one_column("histogram", column)
    return Histogram(column, edges=_edges(column, edges), **common(eps, nonnegative, round))


def _edges(column: Hashable, edges: Any) -> tuple[Fraction, ...]:
    hint = Arg("edges", [0, 10, 20, 50])
    if isinstance(edges, Public):
        edges = edges.values.tolist() if hasattr(edges.values, "tolist") else list(edges.values)
    if edges is None or isinstance(edges, str) or not isinstance(edges, list | tuple | range):
        raise InputError(
            f"histogram({column!r}) needs ",
            Arg("edges"),
            f" that you type, as a list of numbers, not {type(edges).__name__}: edges taken from the frame tell about it.",
            hint=(hint, ", or ", Call("dp.public", ...), " if they come from a public source"),
        )
    if not 2 <= len(edges) <= MOST_KEYS:
        raise InputError(
            Arg("edges"),
            f" of histogram({column!r}) has {len(edges)} numbers; two or more make bins.",
            hint=hint,
        )
    exact = tuple(one_number(e, f"edges[{i}]", "histogram") for i, e in enumerate(edges))
    for a, b in itertools.pairwise(exact):
        if float(a) >= float(b):
            raise InputError(
                Arg("edges"),
                f" of histogram({column!r}) must increase; {exactly(a)} is followed by {exactly(b)}.",
                hint=hint,
            )
    return exact


def _few(numbers: tuple[Fraction, ...]) -> str:
    """All of a short list, the ends of a long one."""
    if len(numbers) <= 8:
        return ", ".join(map(exactly, numbers))
    return f"{exactly(numbers[0])}, {exactly(numbers[1])}, ..., {exactly(numbers[-1])}"
