"""What goes to relational engines and comes back: numbers, keys and ids, in narwhals' expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from dpframe.frames.columns import Column

_BEYOND_INT64 = (pl.UInt64, pl.Int128)


def number(x: float) -> nw.Expr:
    """A float64, exactly: every engine reads the shortest text of one as that one."""
    return nw.lit(repr(x)).cast(nw.Float64)


def integer(k: int) -> nw.Expr:
    return nw.lit(k).cast(nw.Int64)


def present(x: nw.Expr) -> nw.Expr:
    """Null where a float is NaN; engines say of null that it is no NaN, or null."""
    return nw.when(~x.is_nan()).then(x)


def clipped(x: nw.Expr, low: nw.Expr, high: nw.Expr) -> nw.Expr:
    """The number between two; null stays null, which the engines' own least and greatest don't promise.

    ``x`` is written three times: make it a column first.
    """
    return nw.when(x < low).then(low).otherwise(nw.when(x > high).then(high).otherwise(x))


def divided(a: nw.Expr, b: nw.Expr) -> nw.Expr:
    """The floor of a/b, for integers a >= 0, b > 0 with a quotient below 2**50.

    The float quotient is off by less than a half, and what it rounds to is corrected in integers.
    """
    q = (a / b).round(0).cast(nw.Int64)
    return nw.when(q * b > a).then(q - 1).otherwise(q)


def wire(x: nw.Expr, kind: str, dtype: Any, *, read: bool = False) -> nw.Expr:
    """A key or id as Int64, Float64 or text: equal keys are equal, a missing one (NaN too) is null, -0.0 is 0.0.

    With ``read`` the key was a text of the driver's.
    """
    if kind == "float":
        x = present(x.cast(nw.Float64))
        return nw.when(x == 0).then(number(0.0)).otherwise(x)
    if read or kind == "datetime":
        return x
    return x.cast(nw.Int64 if kind == "bool" or (kind == "int" and dtype not in _BEYOND_INT64) else nw.String)


def held(c: Column) -> Any:
    """The narwhals type of a key on the wire."""
    if c.kind == "float":
        return nw.Float64
    whole = c.kind in ("bool", "datetime") or (c.kind == "int" and c.native not in _BEYOND_INT64)
    return nw.Int64 if whole else nw.String


def key_texts(keys: pl.Series, c: Column) -> list[str]:
    """Listed keys as texts of what is on the wire; "-" is a missing one, others start with "="."""
    if c.kind == "float":
        values = [None if v is None else repr(v) for v in keys.cast(pl.Float64).to_list()]
    else:
        keys = keys.cast(pl.Int64) if c.kind in ("bool", "datetime") else keys
        values = keys.cast(pl.String).to_list()
    return ["-" if v is None else f"={v}" for v in values]


def unwire(s: pl.Series, c: Column) -> pl.Series:
    """A found key column in the column's own type (text for a pl.Enum)."""
    if c.kind == "date":
        return s.str.to_date("%Y-%m-%d", strict=False)
    return s.cast(pl.String if c.kind == "enum" else c.native)


def wordy(c: Column) -> bool:
    """Whether a key's text may hold anything, the sign between two texts too."""
    return c.kind in ("string", "enum")


def text(parts: Sequence[nw.Expr]) -> nw.Expr:
    """One text for several texts of ``part``; different ones have different texts."""
    return nw.concat_str(*parts, separator="|") if len(parts) > 1 else parts[0]


def part(name: str, words: bool) -> nw.Expr:
    """A column on the wire as text in which it is seen where it ends: one of ``words`` begins with its length.

    It is never null, which engines see: a key that may be null would be looked for in every row before a join.
    """
    s = nw.col(name).cast(nw.String)
    if words:
        s = nw.concat_str(s.str.len_chars().cast(nw.String), s, separator=":")
    return nw.coalesce(s, nw.lit("-"))
