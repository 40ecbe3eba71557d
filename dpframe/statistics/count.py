"""Numbers of rows, of cells that are not missing, and of units: count, count_units."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from dpframe.accounting.events import Number
from dpframe.frames.columns import Column
from dpframe.layout.answers import Answer, Linear
from dpframe.layout.families import UNITS, Family
from dpframe.layout.layouts import Layout
from dpframe.statistics.base import Aggregate, common, one_column
from dpframe.statistics.question import question


@dataclass(frozen=True, slots=True)
class Count(Aggregate):
    """``complete``: all rows have the column, as those without it are left out of the whole call."""

    complete: bool = field(default=False, repr=False)
    measured = ()
    in_rows = True
    verb = "count"

    @property
    def columns(self) -> tuple[Hashable, ...]:
        return () if self.column is None else (self.column,)

    @property
    def counts_rows(self) -> bool:
        return self.column is None or self.complete

    def among_complete(self) -> Count:
        return replace(self, complete=True)

    def families(self, types: Mapping[Hashable, Column]) -> tuple[Family, ...]:
        return () if self.column is None else (Family("column", (self.column,), (None,)),)

    @property
    def default_name(self) -> str:
        return "count" if self.column is None else f"{self.column}_count"

    def answer(self, layout: Layout) -> Answer:
        return Linear(layout.present, integer=True)


@dataclass(frozen=True, slots=True)
class CountUnits(Aggregate):
    column: Hashable | None = None
    measured = ()
    verb = "count_units"
    default_name = "units"

    def families(self, types: Mapping[Hashable, Column]) -> tuple[Family, ...]:
        return (UNITS,)

    def answer(self, layout: Layout) -> Answer:
        return Linear(layout.present, integer=True)


@question(
    answer="count",
    returns="int (ungrouped), or a frame with keys and ``count`` (of a column: ``<column>_count``)",
    example="",
    known_as=("size", "len", "length", "shape"),
    audited={"count": {}, "count x": {"column": "x"}},
)
def count(
    column: Hashable | None = None,
    *,
    eps: Number | None = None,
    nonnegative: bool = False,
    round: int | None = None,
) -> Count:
    """Count rows, or the rows in which ``column`` is not missing.

    Parameters
    ----------
    column : hashable, optional
        None counts rows; a name counts its non-missing cells (null and NaN are missing).

    Returns
    -------
    Count
        The answer is Int64.

    Raises
    ------
    InputError, TypeError
        For a column that is no name, or wrong ``nonnegative`` or ``round``.

    Notes
    -----
    Privacy: (eps, delta)-DP per protected unit. One row changes the count by at most 1 under both relations (a
    replaced row may have been filtered away, so it is never 0); of groups under replace_one by 2 in L1 and sqrt 2
    in L2. Source: Dwork et al. 2006; the distribution of the noise is the mechanism's.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"x": [1.0, None, 3.0]})
    >>> with dp.Session(eps=100):
    ...     n = df.dp.count(eps=50)
    >>> int(n)
    3
    """
    return Count(one_column("count", column), None, **common(eps, nonnegative, round))


@question(
    answer="count",
    returns="int (ungrouped), or a frame with keys and ``units``",
    example="",
    audited={"count_units": {}},
    of_units=True,
)
def count_units(
    *, eps: Number | None = None, nonnegative: bool = False, round: int | None = None
) -> CountUnits:
    """Count the distinct units (persons, say) that have a row.

    Returns
    -------
    CountUnits
        The answer is Int64. Rows without a unit id are left out; a unit in more than ``max_groups`` groups is
        counted in those that are chosen for it.

    Raises
    ------
    InputError
        In a session without ``unit=``: rows are its units.

    Notes
    -----
    Privacy: (eps, delta)-DP per unit. One unit changes the number by at most 1, however many rows it has, so no
    ``max_rows`` is needed; over groups by ``max_groups`` in L1, and by twice that under replace_one.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"who": ["a", "a", "b"]})
    >>> with dp.Session(eps=100, unit="who"):
    ...     n = df.dp.count_units(eps=50)
    >>> int(n)
    2
    """
    return CountUnits(None, None, **common(eps, nonnegative, round))
