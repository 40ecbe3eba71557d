"""Numbers of rows, of cells that are not missing, and of units: count, count_units."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from dpframe.accounting.events import Number
from dpframe.base.calls import checked
from dpframe.frames.columns import Column
from dpframe.layout.answers import Answer, Linear
from dpframe.layout.families import UNITS, Bounds, Family
from dpframe.layout.layouts import Layout
from dpframe.statistics.base import Aggregate, common, one_column


@dataclass(frozen=True, slots=True)
class Count(Aggregate):
    @property
    def measured(self) -> tuple[tuple[Hashable, Bounds | None], ...]:
        return ()

    @property
    def columns(self) -> tuple[Hashable, ...]:
        return () if self.column is None else (self.column,)

    def families(self, types: Mapping[Hashable, Column]) -> tuple[Family, ...]:
        return () if self.column is None else (Family("column", (self.column,), (None,)),)

    @property
    def in_rows(self) -> bool:
        return True

    @property
    def verb(self) -> str:
        return "count"

    @property
    def default_name(self) -> str:
        return "count" if self.column is None else f"{self.column}_count"

    def answer(self, layout: Layout) -> Answer:
        return Linear(layout.present, integer=True)


@dataclass(frozen=True, slots=True)
class CountUnits(Aggregate):
    column: Hashable | None = None

    @property
    def measured(self) -> tuple[tuple[Hashable, Bounds | None], ...]:
        return ()

    @property
    def verb(self) -> str:
        return "count_units"

    @property
    def default_name(self) -> str:
        return "units"

    def families(self, types: Mapping[Hashable, Column]) -> tuple[Family, ...]:
        return (UNITS,)

    def answer(self, layout: Layout) -> Answer:
        return Linear(layout.present, integer=True)


@checked()
def count(
    column: Hashable | None = None,
    *,
    eps: Number | None = None,
    nonnegative: bool = False,
    round: int | None = None,
) -> Count:
    """Ask for the number of rows, or of the rows in which ``column`` is not missing.

    Parameters
    ----------
    column : hashable, optional
        None counts rows; a name counts non-missing cells (null and NaN are missing).
    eps : number, optional
        An epsilon of its own within ``dp_agg``.
    nonnegative : bool
        Raise negative answers to zero.
    round : int, optional
        Decimals to round to (negative: tens, hundreds).

    Returns
    -------
    Count
        For ``agg(...)`` and ``dp_agg(...)``; ``.alias(name)`` names the output. The answer is Int64.

    Raises
    ------
    InputError, TypeError
        For a wrong ``eps``, ``nonnegative`` or ``round``, or a column that is no name.

    Notes
    -----
    Privacy: one row changes the count by at most 1 under both relations (a replaced row may have
    been filtered away, so it is never 0).

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.count().describe()
    'count()'
    """
    return Count(one_column("count", column), None, **common(eps, nonnegative, round))


@checked()
def count_units(
    *, eps: Number | None = None, nonnegative: bool = False, round: int | None = None
) -> CountUnits:
    """Ask for the number of distinct units (persons, say) that have a row.

    Parameters
    ----------
    eps, nonnegative, round
        As in :func:`count`.

    Returns
    -------
    CountUnits
        The answer is Int64. Rows without a unit id are left out; a unit in more than ``max_groups`` groups is
        counted in those that are chosen for it.

    Raises
    ------
    InputError
        When the question is planned in a session without ``unit=``: rows are its units then.

    Notes
    -----
    Privacy: one unit changes the number by at most 1, however many rows it has; over groups by ``max_groups``
    in L1, and by twice that under replace_one.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.count_units().describe()
    'count_units()'
    """
    return CountUnits(None, None, **common(eps, nonnegative, round))
