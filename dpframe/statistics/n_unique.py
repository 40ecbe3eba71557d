"""The number of different values of a column: n_unique."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from dpframe.accounting.events import Number
from dpframe.errors import InputError
from dpframe.frames.bins import Distinct, Tally
from dpframe.frames.columns import Column
from dpframe.statistics.base import common, one_column
from dpframe.statistics.histogram import Binned
from dpframe.statistics.question import question


@dataclass(frozen=True, slots=True)
class NUnique(Binned):
    verb = "n_unique"
    missing = "null and NaN are no value in n_unique"

    @property
    def default_name(self) -> str:
        return f"{self.column}_n_unique"

    def tally(self, column: Column) -> Tally:
        inner = column.native if column.kind == "categorical" else column
        if inner.kind in ("other", "interval", "time"):
            raise InputError(
                f"n_unique({column.name!r}): the values of {column.text} can't be compared.",
                hint="make a text column of it",
            )
        return Tally(self.column, Distinct())

    def width(self) -> int:
        return 0


@question(
    answer="count",
    returns="int (ungrouped), or a frame with keys and ``<column>_n_unique``",
    example="'x'",
    known_as=("nunique", "count_distinct"),
    audited={"n_unique": {"column": "i"}},
)
def n_unique(
    column: Hashable,
    *,
    eps: Number | None = None,
    nonnegative: bool = False,
    round: int | None = None,
) -> NUnique:
    """Count the different values of a column; missing cells are no value.

    Parameters
    ----------
    column : hashable

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
    Privacy: (eps, delta)-DP per protected unit. One row adds one value at most, so it moves the number by at most 1.
    With a unit, R of its different values count in a group (``max_rows``), chosen by salted hash, so it moves the
    number by at most R; by 1 if the column is the unit itself.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"city": ["Ghent", "Lille", "Ghent", None]})
    >>> with dp.Session(eps=1e6):
    ...     n = df.dp.n_unique("city", eps=1e6)
    >>> int(n)
    2
    """
    return NUnique(one_column("n_unique", column), None, **common(eps, nonnegative, round))
