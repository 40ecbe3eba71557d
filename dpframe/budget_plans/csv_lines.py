"""CSV files, read line by line: one line of the file is one row, whatever it holds.

Privacy: the guarantee is for one row more, less or changed, and a row here is a line. A reader that lets a quotation
run on over line ends would let one person's stray quotes (``5" pipe``) swallow the rows up to the next quote: a
change of one line would change many rows. So quotes are closed with their line at the latest, and a line that is no
CSV is still one row; what a cell means depends on its own line alone. Nothing is refused because of a line.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from dpframe.errors import Arg, InputError, did_you_mean, typed

DATE, TIME = "%Y-%m-%d", "%Y-%m-%dT%H:%M:%S%.f"
LOST = "�"  # what stands for bytes that are no UTF-8; texts that differ in such bytes must not become one
LONGEST = 1 << 20  # bytes of a header
_LINE = "line"
_NEVER = "\x01"  # separates nothing: every line is one cell, which is taken apart below
_FIELD = r',(?:"(?:[^"]|"")*"[^,]*|[^,]*)'
_TRUE, _FALSE = ["true", "1"], ["false", "0"]


def _boolean(x: pl.Expr) -> pl.Expr:
    lower = x.str.to_lowercase()
    return pl.when(lower.is_in(_TRUE)).then(True).when(lower.is_in(_FALSE)).then(False)


READ: dict[str, Any] = {  # CSV holds text; a cell that is not of its type is missing, and never raises
    "text": lambda x: pl.when(~x.str.contains(LOST, literal=True)).then(x),
    "int": lambda x: x.cast(pl.Int64, strict=False),
    "float": lambda x: x.cast(pl.Float64, strict=False),
    "bool": _boolean,
    "date": lambda x: x.str.to_date(DATE, strict=False),
    "datetime": lambda x: x.str.replace(" ", "T", literal=True).str.to_datetime(TIME, strict=False),
}


def read_as(text: pl.Expr, kind: str) -> pl.Expr:
    """Text cells as values of a kind; what is none becomes null."""
    read: pl.Expr = READ[kind](text)
    return read


def header(path: str) -> list[str]:
    """The names of a CSV file's columns, from its first line. Public: no cell is read.

    Raises
    ------
    InputError
        For a file without a first line, and for names that occur twice.
    OSError
    """
    with open(path, "rb") as f:
        line = f.readline(LONGEST).decode("utf-8-sig", "replace").rstrip("\r\n")
    names = next(csv.reader([line]), [])
    if not names:
        raise InputError(f"{path!r} can't be read as CSV: its first line names no columns.", hint="a header")
    twice = next((n for i, n in enumerate(names) if n in names[:i]), None)
    if twice is not None:
        raise InputError(f"{path!r} names the column {twice!r} twice.", hint="rename all but one")
    return names


def scan(paths: Sequence[str], names: Sequence[str], types: Mapping[str, str]) -> pl.LazyFrame:
    """CSV files with the same header as one lazy frame, of text but for ``types``.

    Parameters
    ----------
    paths : sequence of str
        Taken literally: no pattern is expanded.
    names : sequence of str
        The header.
    types : mapping of name -> kind
        int, float, bool, date, datetime or text.

    Raises
    ------
    InputError
        For a type that is unknown or of no column.
    """
    for name, kind in types.items():
        if name not in names:
            raise InputError(
                Arg("types"), f" names {name!r}, which is no column. {did_you_mean(name, names)}"
            )
        if kind not in READ:
            raise InputError(Arg("types"), f" has {name} = {typed(kind)}. {did_you_mean(str(kind), READ)}")
    lines = pl.scan_csv(
        list(paths),
        has_header=False,
        skip_lines=1,
        separator=_NEVER,
        quote_char=None,
        infer_schema=False,
        schema={_LINE: pl.String},
        truncate_ragged_lines=True,
        encoding="utf8-lossy",
        raise_if_empty=False,
        glob=False,
    )
    line = pl.col(_LINE).str.strip_suffix("\r")
    quoted = line.str.contains('"', literal=True)
    parts = lines.filter(line.is_not_null() & (line != "")).select(
        plain=pl.when(~quoted).then(line).str.split(","),
        quoted=pl.when(quoted).then(pl.lit(",") + line).str.extract_all(_FIELD),
    )
    return parts.select(read_as(_cell(i), types.get(n, "text")).alias(n) for i, n in enumerate(names))


def _cell(i: int) -> pl.Expr:
    """The text of the i-th cell of a line; null where there is nothing."""
    plain = pl.col("plain").list.get(i, null_on_oob=True)
    typed = pl.col("quoted").list.get(i, null_on_oob=True).str.strip_prefix(",")
    whole = typed.str.extract(r'^"((?:[^"]|"")*)"$', 1).str.replace_all('""', '"', literal=True)
    bare = pl.coalesce(plain, typed)
    return pl.coalesce(whole, pl.when(bare != "").then(bare))
