"""What a cell of a relational engine is, as a unit, a key and a value, and how it goes there and comes back.

One description for DuckDB, Ibis, SQLFrame and Spark, in narwhals' expressions. A cell has three forms:

* *on the wire*, typed: rows are grouped by it. Different cells differ; -0.0 is 0.0, and NaN, an infinite day or
  instant and null are missing, which is null.
* *as text*, made of the wire form by the engine itself, for listed keys too: joins and hashes use its bytes, so no
  collation decides. Several texts are one text in which it is seen where each ends.
* *released*, once it has come back. A group whose key has no released form (a text that is no Unicode, a day that
  Polars can't hold) is left out, with all its rows; no join ever uses this form.

Privacy: every form is made of one cell alone, and the first two are injective, so a row is in one group, of one unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import narwhals.stable.v2 as nw
import polars as pl

from dpframe.frames.columns import Column

_BEYOND_INT64 = (pl.UInt64, pl.Int128)
_YEARS = 262_000  # Polars has a calendar for so many on both sides
_DAYS = 365 * _YEARS


@dataclass(frozen=True, slots=True)
class Cell:
    """One column of an engine's frame.

    Attributes
    ----------
    column : Column
        What it is to the caller.
    place : str
        Its name here; the caller's name never reaches a query.
    ticks : str or None
        The family's function that makes a number of a day or instant: days, seconds, millis, micros or nanos.
    """

    column: Column
    place: str
    ticks: str | None = None

    @property
    def wordy(self) -> bool:
        """Whether its text may hold anything, the sign between two texts too."""
        return self.column.kind in ("string", "enum")

    def wire(self, x: nw.Expr) -> nw.Expr:
        """The cell on the wire; ``x`` is what ``ticks`` made of it, where there is such a function."""
        kind, dtype = self.column.kind, self.column.native
        if kind == "float":
            return _one_zero(present(x.cast(nw.Float64)))
        if kind == "bool" or (kind == "int" and dtype not in _BEYOND_INT64):
            return x.cast(nw.Int64)
        return x.cast(nw.String) if self.wordy else x

    def texts(self, keys: pl.Series) -> list[str | None]:
        """Released or listed keys as texts for :meth:`read`."""
        if self.column.kind == "float":
            return [None if v is None else repr(v) for v in keys.cast(pl.Float64).to_list()]
        if self.column.kind in ("bool", "date", "datetime"):
            keys = keys.to_physical().cast(pl.Int64)
        return keys.cast(pl.String).to_list()

    def read(self, text: nw.Expr) -> nw.Expr:
        """What the engine makes of a text of :meth:`texts`: the wire form, or for whole numbers and words its text."""
        kind, dtype = self.column.kind, self.column.native
        if kind == "float":
            return _one_zero(text.cast(nw.Float64))
        return text.cast(nw.Decimal(dtype.precision, dtype.scale)) if kind == "decimal" else text

    def sent(self, x: nw.Expr) -> nw.Expr:
        """The wire form as it leaves the engine: integers beyond 38 digits fit no Arrow type of it."""
        beyond = self.column.kind == "int" and self.column.native in _BEYOND_INT64
        return x.cast(nw.String) if beyond or self.ticks in ("seconds", "millis") else x

    def released(self, s: pl.Series) -> tuple[pl.Series, pl.Series]:
        """What came back, in the column's own type (text of an enum), and which of them have such a form."""
        kind, dtype = self.column.kind, self.column.native
        if self.wordy:
            texts = pl.Series(s.name, [_unicode(b) for b in s.to_list()], dtype=pl.String)
            return texts, texts.is_not_null() | s.is_null()
        if kind in ("date", "datetime"):
            s = s.cast(pl.Int128)
            most = _DAYS if kind == "date" else _DAYS * 86_400 * (10**9 if dtype.time_unit == "ns" else 10**6)
            fits = s.is_null() | s.is_between(-most, most)
            physical = pl.Int32 if kind == "date" else pl.Int64
            fits &= s.is_null() | s.cast(physical, strict=False).is_not_null()
            return s.cast(physical, strict=False).cast(dtype), fits
        return s.cast(dtype), pl.repeat(True, len(s), eager=True)


def _unicode(b: bytes | None) -> str | None:
    try:
        return None if b is None else b.decode()
    except UnicodeDecodeError:
        return None


def _one_zero(x: nw.Expr) -> nw.Expr:
    return nw.when(x == 0).then(number(0.0)).otherwise(x)


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


def text(parts: Sequence[nw.Expr]) -> nw.Expr:
    """One text for several texts of ``part``; different ones have different texts."""
    return nw.concat_str(*parts, separator="|") if len(parts) > 1 else parts[0]


def part(name: str, octets: str | None = None) -> nw.Expr:
    """A column on the wire as text in which it is seen where it ends: one of words begins with its ``octets``.

    They are bytes: what is not Unicode has no number of characters that says where it ends. It is never null, which
    engines see: a key that may be null would be looked for in every row before a join.
    """
    s = nw.col(name).cast(nw.String)
    if octets is not None:
        s = nw.concat_str(nw.col(octets).cast(nw.String), s, separator=":")
    return nw.coalesce(s, nw.lit("-"))
