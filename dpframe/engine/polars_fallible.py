"""Steps of Polars plans that raise on some cells, which strict sessions refuse; named as in the plan's tree.

Privacy: a plan that fails tells, without noise, that there is a cell on which it fails (or, where it fails on all of
them, that there is a row at all). Each of these steps has a form that gives null instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from polars.datatypes import DataTypeClass

Type = pl.DataType | DataTypeClass

STRICT = 0  # the option of a cast as people write it; those that Polars adds itself are not strict
WHOLE = {pl.Date: 32, pl.Datetime: 64, pl.Duration: 64}  # bits of the number that a cell is
UNLESS = {  # where the tree has the option, and the value with which the step gives null
    "StringFunction.ToInteger": (1, False),
    "StringFunction.Strptime": (2, False),
    "StringFunction.HexDecode": (1, False),
    "StringFunction.Base64Decode": (1, False),
    "ListFunction.Get": (1, True),
    "ListFunction.Gather": (1, True),
    "ArrayFunction.Get": (1, True),
    "ArrayFunction.Gather": (1, True),
    "TemporalFunction.ReplaceTimeZone": (2, "null"),
}
PATTERNS = {  # texts that are read as a pattern: of a column, some are none; and where the tree says that they are not
    "StringFunction.Contains": 1,
    "StringFunction.CountMatches": 1,
    "StringFunction.Find": 1,
    "StringFunction.Replace": 2,
    "StringFunction.Extract": None,
    "StringFunction.ExtractAll": None,
    "StringFunction.SplitRegex": None,
}
PERIODS = frozenset(f"TemporalFunction.{name}" for name in ("OffsetBy", "Round", "Truncate"))
_MONTHS = ("MonthEnd", "MonthStart")
LOCAL = PERIODS | {
    f"TemporalFunction.{name}" for name in ("Combine", *_MONTHS)
}  # some hours are twice, or not at all
RANGED = {  # what raises beyond the years that a calendar has, which all types but nanoseconds can hold
    pl.Date: ("Round", "Truncate", "ToString", *_MONTHS),
    pl.Datetime: ("CastTimeUnit", "OffsetBy", "ReplaceTimeZone", "Round", "ToString", "Truncate", *_MONTHS),
    pl.Duration: ("CastTimeUnit",),
}
RANGED_IN_ZONE = (
    "BaseUtcOffset",
    "DSTOffset",
    "Date",
    "DaysInMonth",
    "IsLeapYear",
    "IsoYear",
    "OrdinalDay",
    "Time",
)
ARITHMETIC = frozenset(
    ["Plus", "Minus", "Multiply", "Divide", "TrueDivide", "FloorDivide", "TruncDivide", "Modulus"]
)
BITWISE = ("And", "Or", "Xor")
COUNTED = frozenset(
    f"StringFunction.{f}" for f in ("Head", "Tail", "Slice")
)  # by whole numbers; texts are cast
DIGITS = 38
NOT_OF_DECIMALS = frozenset(["round_sig_figs", "sum_horizontal", "mean_horizontal"])


def cast_fails(old: Type, new: Type, strict: bool) -> bool:
    """Whether a cast raises on some cell of the old type, or on all of them as Polars has no such cast."""
    if isinstance(old, pl.Struct):
        after = {f.name: f.dtype for f in new.fields} if isinstance(new, pl.Struct) else None
        if after is None:
            return strict or new.is_nested() or any(cast_fails(f.dtype, new, strict) for f in old.fields)
        return any(f.name in after and cast_fails(f.dtype, after[f.name], strict) for f in old.fields)
    if old.is_nested() or new.is_nested():
        inner, within = getattr(old, "inner", None), getattr(new, "inner", None)
        same = old.base_type() == new.base_type() and getattr(old, "shape", 0) == getattr(new, "shape", 0)
        return not same or inner is None or within is None or cast_fails(inner, within, strict)
    if old.is_(new) or old.base_type() == pl.Null:
        return False
    if old.base_type() == pl.Binary or not _known(old, new):
        return True
    return strict and not _holds(old, new)


def _known(old: Type, new: Type) -> bool:
    """Whether Polars casts between two types at all: it is asked with a cell that is made up."""
    cell = pl.lit(0) if old.is_numeric() or old.is_temporal() or old.base_type() == pl.Boolean else pl.lit("")
    if isinstance(old, pl.Enum):
        cell = pl.lit([*old.categories, ""][0])
    try:
        pl.select(cell.cast(old, strict=False).cast(new, strict=False))
    except pl.exceptions.PolarsError:
        return False
    return True


def _holds(old: Type, new: Type) -> bool:
    """Whether one type has room for every cell of another."""
    if new.base_type() in (pl.String, pl.Categorical, pl.Binary):
        return True
    if new.is_float() or new.base_type() == pl.Boolean:
        return old.is_numeric() or old.base_type() == pl.Boolean
    if old.base_type() == pl.Boolean:
        return new.is_integer()
    least, most = _range(old), _range(new)
    one_unit = not (old.is_temporal() and new.is_temporal())
    return one_unit and least is not None and most is not None and most[0] <= least[0] <= least[1] <= most[1]


def _range(dtype: Any) -> tuple[int, int] | None:
    """The whole numbers that a type holds; None for a type that is none of whole numbers."""
    if dtype.is_integer():
        low, high = (pl.select(x).item() for x in (dtype.min(), dtype.max()))
        return low, high
    bits = WHOLE.get(dtype.base_type())
    return None if bits is None else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def binary_fails(name: str, types: Sequence[Any]) -> bool:
    """Whether an operation raises on a cell: decimals have 38 digits, and no quotient by 0; lists differ in length."""
    nested = [t for t in types if t.is_nested()]
    if nested and (name in ARITHMETIC or name in BITWISE or any(t != types[0] for t in types)):
        return True
    if name not in ARITHMETIC or not any(t.base_type() == pl.Decimal for t in types):
        return False
    digits = [_digits(t) for t in types]
    if name == "Multiply":
        return sum(map(sum, digits)) > DIGITS
    most = max(whole for whole, _ in digits) + 1 + max(parts for _, parts in digits)
    return name not in ("Plus", "Minus") or most > DIGITS


def _digits(dtype: Any) -> tuple[int, int]:
    """How many digits a number has before its point, and behind it."""
    if dtype.base_type() == pl.Decimal:
        return int(dtype.precision - dtype.scale), int(dtype.scale)
    return (20, 0) if dtype.is_integer() else (DIGITS, 0)


NOT_LITERAL = object()


def function_fails(name: str, data: Sequence[Any], values: Sequence[Any], types: Sequence[Type]) -> bool:
    """Whether a function raises on a cell; ``values`` are the inputs, ``NOT_LITERAL`` where one is none."""
    literal = [v is not NOT_LITERAL for v in values]
    if name in UNLESS:
        place, safe = UNLESS[name]
        if data[place] != safe:
            return True
    if name in PATTERNS:
        plain = PATTERNS[name]
        return not literal[1] and not (plain is not None and data[plain])
    if name == "replace_strict":
        return len(types) < 4  # no default
    if name in PERIODS and not all(literal[1:]):
        return True
    if name == "pow":  # of whole numbers with a whole number that may be below 0
        powers = [values[1]] if literal[1] else [-1]
        return all(t.is_integer() for t in types) and not (
            types[1].is_unsigned_integer() or (isinstance(powers[0], int) and powers[0] >= 0)
        )
    if name in NOT_OF_DECIMALS:
        return any(t.base_type() == pl.Decimal for t in types)
    if name in COUNTED:
        return not all(v is None or t.is_integer() for v, t in zip(values[1:], types[1:]))
    if name == "StringFunction.JsonPathMatch":
        return not literal[1]
    family, _, member = name.rpartition(".")
    if family == "TemporalFunction":
        return _time_fails(member, values, types[0])
    return name == "ListFunction.ToArray"


def _time_fails(member: str, values: Sequence[Any], old: Type) -> bool:
    """Whether a function of a time raises on one. Of ``Datetime("ns")`` without a zone all are within the calendar."""
    if member == "DatetimeFunction":  # a day 31 that a month has not
        return any(v is NOT_LITERAL for v in values)
    zone = getattr(old, "time_zone", None)
    if zone not in (None, "UTC") and f"TemporalFunction.{member}" in LOCAL:
        return True
    if member == "ReplaceTimeZone" and values[1] not in ("earliest", "latest", "null"):
        return True
    if getattr(old, "time_unit", None) == "ns":
        return False
    ranged = RANGED.get(old.base_type(), ())
    return member in ranged or (zone is not None and member in RANGED_IN_ZONE)
