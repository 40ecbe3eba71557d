"""Sources of a budget plan: frames, and files and tables that are opened by name. Opening reads no cell."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from dpframe.budget_plans.engine_uri import EngineTable, is_uri
from dpframe.errors import Arg, InputError, did_you_mean, typed
from dpframe.frames.columns import Column
from dpframe.frames.public import Public, public

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
KEY_FILES = (".txt", ".csv", ".parquet")
_TRUE, _FALSE = ["true", "1"], ["false", "0"]
DATE, TIME = "%Y-%m-%d", "%Y-%m-%dT%H:%M:%S%.f"


def _boolean(x: pl.Expr) -> pl.Expr:
    lower = x.str.to_lowercase()
    return pl.when(lower.is_in(_TRUE)).then(True).when(lower.is_in(_FALSE)).then(False)


_READ: dict[str, Any] = {  # CSV holds text; a cell that is not of its type is missing, and never raises
    "text": lambda x: x,
    "int": lambda x: x.cast(pl.Int64, strict=False),
    "float": lambda x: x.cast(pl.Float64, strict=False),
    "bool": _boolean,
    "date": lambda x: x.str.to_date(DATE, strict=False),
    "datetime": lambda x: x.str.replace(" ", "T", literal=True).str.to_datetime(TIME, strict=False),
}


class MissingFile(InputError):
    """A file that is to be read is not there, or not readable: it may come."""


class SourceError(InputError):
    """Something is wrong with a source; ``source`` is its name."""

    def __init__(self, source: str, cause: Exception) -> None:
        super().__init__(f"source {source!r}: ", cause)
        self.source, self.cause = source, cause

    def __reduce__(self) -> tuple[object, ...]:
        return (SourceError, (self.source, self.cause))


@dataclass(frozen=True, slots=True)
class Files:
    """One table in one or several files.

    Attributes
    ----------
    paths : tuple of str
        As typed; ``{scope}`` stands for the run's scope.
    types : mapping
        For CSV: the type of each column that is not text (int, float, bool, date, datetime).
    """

    paths: tuple[str, ...]
    types: Mapping[str, str] = field(default_factory=dict)

    def written(self, move: Callable[[str], str]) -> dict[str, Any]:
        """As keys of a release file, with the paths as ``move`` has them."""
        paths = [move(p) for p in self.paths]
        return {
            "path": paths[0] if len(paths) == 1 else paths,
            **({"types": self.types} if self.types else {}),
        }

    def open(self, place: Callable[[str], str]) -> pl.LazyFrame:
        """The table as a lazy frame; reads names and types. ``place`` says where a typed path lies.

        Raises
        ------
        InputError
            For a file that is not there, can't be read or is of another kind, and for parts that differ
            in their columns.

        Privacy: the types come from the file's schema, or (CSV) from ``types``: they are never guessed
        from cells, so neighbouring files have the same.
        """
        paths = [place(p) for p in self.paths]
        for p in paths:
            if not os.path.isfile(p) or not os.access(p, os.R_OK):
                raise MissingFile(
                    f"There is no readable file {p!r}. Hint: the path of a .parquet or .csv file"
                )
        csv = {p.endswith(".csv") for p in paths}
        if len(csv) > 1 or not all(p.endswith((".csv", ".parquet")) for p in paths):
            raise InputError(
                f"A source is .parquet or .csv, all parts alike, not {typed(list(self.paths))}."
                " Hint: path = 'people.parquet'"
            )
        if not csv.pop():
            if self.types:
                raise InputError(
                    Arg("types"), " is for CSV; a parquet file has types of its own.", hint="leave it out"
                )
            _alike(paths, [_schema(p, pl.read_parquet_schema) for p in paths])
            return pl.scan_parquet(paths)
        columns = _alike(paths, [_schema(p, _header) for p in paths])
        for name, kind in self.types.items():
            if name not in columns:
                raise InputError(
                    Arg("types"), f" names {name!r}, which is no column. {did_you_mean(name, columns)}"
                )
            if kind not in _READ:
                raise InputError(
                    Arg("types"), f" has {name} = {typed(kind)}. {did_you_mean(str(kind), _READ)}"
                )
        table = pl.scan_csv(paths, infer_schema=False, truncate_ragged_lines=True, encoding="utf8-lossy")
        return table.with_columns(read_as(pl.col(n), kind).alias(n) for n, kind in self.types.items())


def read_as(text: pl.Expr, kind: str) -> pl.Expr:
    """Text cells as values of a kind; what is none becomes null."""
    read: pl.Expr = _READ[kind](text)
    return read


def read_keys(path: str, columns: Sequence[Column]) -> Public:
    """Public keys from a file: one a line (.txt), or a column for each grouping column (.csv, .parquet).

    Text is read as the type of the grouping column.

    Raises
    ------
    InputError
        For a file that is not there or lacks a column, and for a text that is no value of the type.
        The message names the row: the file is public.
    """
    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        raise InputError(
            Arg("keys"), f" names {path!r}, which is no readable file.", hint=Arg("keys", ["a", "b"])
        )
    names = [str(c.name) for c in columns]
    if path.endswith(".parquet"):
        table = pl.scan_parquet(path)
    elif path.endswith(".csv"):
        table = pl.scan_csv(path, infer_schema=False)
    elif len(names) > 1:
        raise InputError(
            Arg("keys"), " of several columns need a .csv or .parquet file.", hint="a header with the names"
        )
    else:
        with open(path, encoding="utf-8") as f:
            table = pl.LazyFrame({names[0]: [line for line in f.read().splitlines() if line]})
    there = list(_schema(path, lambda _: table.collect_schema()))
    for n in names:
        if n not in there:
            raise InputError(
                Arg("keys"), f" names {path!r}, which has no column {n!r}. {did_you_mean(n, there)}"
            )
    keys = table.select(names).collect()
    if path.endswith(".parquet"):
        return public(keys)
    out = []
    for c, n in zip(columns, names):
        kind = c.kind if c.kind in _READ else "text"
        read = keys.select(read_as(pl.col(n), kind).alias(n))[n]
        wrong = (read.is_null() & keys[n].is_not_null()).arg_true()
        if len(wrong):
            raise InputError(
                Arg("keys"),
                f" names {path!r}, whose entry {int(wrong[0]) + 1} is no {kind}, the type of {n!r}.",
                hint="write it as the column has it",
            )
        out.append(read)
    return public(pl.DataFrame(out))


def located(path: str, folder: str, scope: str | None) -> str:
    """A typed path in its folder, with the scope filled in."""
    if "{scope}" in path:
        if scope is None:
            raise InputError(
                f"{path!r} has a place for a scope, and none is given.", hint=Arg("scope", "2026-11-29")
            )
        if not isinstance(scope, str) or not _PART.fullmatch(scope):
            raise InputError(
                Arg("scope", scope),
                " is part of a path, so it may hold letters, digits, '.', '-' and '_' only.",
                hint=Arg("scope", "2026-11-29"),
            )
        path = path.replace("{scope}", scope)
    return os.path.join(folder, path)


Named = Files | EngineTable  # what is opened by name


def named(value: Any) -> Named | None:
    """``value`` as a source that is opened by name, if it is a path, a list of paths, or a URI."""
    if isinstance(value, Named):
        return value
    if isinstance(value, str) and is_uri(value):
        return EngineTable(value)
    if isinstance(value, str | os.PathLike):
        return Files((os.fspath(value),))
    if isinstance(value, Sequence) and value and all(isinstance(p, str | os.PathLike) for p in value):
        return Files(tuple(os.fspath(p) for p in value))
    return None


def _schema(path: str, read: Any) -> dict[str, Any]:
    try:
        return dict(read(path))
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError):
        kind = "parquet" if path.endswith(".parquet") else "CSV"
        raise InputError(f"{path!r} can't be read as {kind}. Hint: check that it is complete") from None


def _header(path: str) -> dict[str, Any]:
    return pl.scan_csv(path, infer_schema=False, encoding="utf8-lossy").collect_schema()


def _alike(paths: list[str], schemas: list[dict[str, Any]]) -> dict[str, Any]:
    for p, s in zip(paths, schemas):
        if s != schemas[0]:
            raise InputError(f"{p!r} has other columns or types than {paths[0]!r}. Hint: write them alike")
    return schemas[0]
