"""The number of different values of a column: n_unique."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from dpframe.accounting.events import Number
from dpframe.base.calls import checked
from dpframe.errors import InputError
from dpframe.frames.bins import Distinct, Tally
from dpframe.frames.columns import Column
from dpframe.statistics.base import common, one_column
from dpframe.statistics.histogram import Binned


@dataclass(frozen=True, slots=True)
class NUnique(Binned):
    @property
    def verb(self) -> str:
        return "n_unique"

    @property
    def default_name(self) -> str:
        return f"{self.column}_n_unique"

    @property
    def missing(self) -> str:
        return "null and NaN are no value in n_unique"

    def tally(self, column: Column) -> Tally:
        inner = column.native if column.kind == "categorical" else column
        if inner.kind in ("other", "interval", "time"):
            raise InputError(
                f"n_unique({column.name!r}): the values of {column.text} can't be compared. Hint: make a text column"
                " of it"
            )
        return Tally(self.column, Distinct())

    def width(self) -> int:
        return 0


@checked()
def n_unique(
    column: Hashable,
    *,
    eps: Number | None = None,
    nonnegative: bool = False,
    round: int | None = None,
) -> NUnique:
    """Ask how many different values a column has; missing ones are no value.

    Parameters
    ----------
    column : hashable
    eps, nonnegative, round
        As in :func:`~dpframe.count`.

    Returns
    -------
    NUnique
        The answer is Int64.

    Raises
    ------
    InputError
        For a column of lists, structs, intervals or times.

    Notes
    -----
    Privacy: one row adds one value at most, so it moves the number by at most 1. With a unit, R of its
    different values count in a group, chosen by salted hash, so it moves the number by at most R; by 1 if
    the column is the unit itself.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.n_unique("city").describe()
    "n_unique('city')"
    """
    return NUnique(one_column("n_unique", column), None, **common(eps, nonnegative, round))
