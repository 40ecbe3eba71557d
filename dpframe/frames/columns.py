"""Columns by name and type, as every library's dtype is understood here."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from dpframe.errors import InputError, did_you_mean

MEASURABLE = ("bool", "int", "float", "decimal", "null")


@dataclass(frozen=True, slots=True)
class Column:
    """One column's type.

    Attributes
    ----------
    name : hashable
    kind : str
        bool, int, float, decimal, string, date, datetime, duration, enum, categorical, period,
        interval, object, null or other.
    text : str
        The dtype as its library prints it (without categories that came from the data).
    nullable : bool
        Whether the dtype can hold a missing value (NaN counts as missing).
    native : object
        The library's dtype; of a pandas Categorical the dtype of its categories' values, because
        the categories themselves come from the data.
    """

    name: Hashable
    kind: str
    text: str
    nullable: bool
    native: Any = field(compare=False, repr=False, default=None)


@dataclass(frozen=True, slots=True)
class Ticks:
    """The type of times in whole seconds (datetimes of a zone or none, durations), which Polars has not: engines hold
    the seconds since 1970 as they are, as some don't fit in a finer unit."""

    time_zone: str | None = None
    time_unit: str = "s"


def lookup(name: Hashable, names: Iterable[Hashable]) -> None:
    """Raise InputError unless ``name`` occurs exactly once."""
    names = list(names)
    found = sum(1 for x in names if _same(x, name))
    if found == 0:
        raise InputError(f"There is no column {name!r}. {did_you_mean(str(name), map(str, names))}")
    if found > 1:
        raise InputError(f"There are {found} columns named {name!r}.", hint="rename all but one.")


def _same(a: Hashable, b: Hashable) -> bool:
    return (type(a) is type(b) and a == b) or (isinstance(a, str) and isinstance(b, str) and a == b)
