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


def function_fails(name: str, data: Sequence[Any], literal: Sequence[bool], types: Sequence[Type]) -> bool:
    """Whether a function raises on a cell; ``literal`` says of each input whether it is one."""
    if name in UNLESS:
        place, safe = UNLESS[name]
        return bool(data[place] != safe)
    if name in PATTERNS:
        plain = PATTERNS[name]
        return not literal[1] and not (plain is not None and data[plain])
    if name == "replace_strict":
        return len(types) < 4  # no default
    if name in PERIODS:
        return not all(literal[1:])
    if name == "pow":  # of whole numbers with a whole number that may be below 0
        return all(t.is_integer() for t in types) and not (literal[1] or types[1].is_unsigned_integer())
    return name == "ListFunction.ToArray"
