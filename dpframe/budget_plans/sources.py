"""Sources of a budget plan: frames, and files and tables that are opened by name. Opening reads no cell."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import polars as pl

from dpframe.budget_plans import csv_lines
from dpframe.budget_plans.engine_uri import EngineTable, is_uri
from dpframe.errors import Arg, InputError, did_you_mean, typed
from dpframe.frames.columns import Column
from dpframe.frames.public import Public, public

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
KEY_FILES = (".txt", ".csv", ".parquet")


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
                    f"There is no readable file {p!r}.", hint="the path of a .parquet or .csv file"
                )
        twice = same_file(paths)
        if twice is not None:
            raise InputError(
                f"{self.paths[twice]!r} is the same file as another part, so its rows would count twice.",
                hint="name each file once",
            )
        csv = {p.endswith(".csv") for p in paths}
        if len(csv) > 1 or not all(p.endswith((".csv", ".parquet")) for p in paths):
            raise InputError(
                f"A source is .parquet or .csv, all parts alike, not {typed(list(self.paths))}.",
                hint=Arg("path", "people.parquet"),
            )
        if not csv.pop():
            if self.types:
                raise InputError(
                    Arg("types"), " is for CSV; a parquet file has types of its own.", hint="leave it out"
                )
            _alike(paths, [_schema(p, pl.read_parquet_schema) for p in paths])
            return pl.scan_parquet(paths, glob=False, hive_partitioning=False)
        names = _alike(paths, [_read(p, csv_lines.header) for p in paths])
        return csv_lines.scan(paths, names, self.types)


def is_key_file(keys: Any) -> bool:
    """Whether keys are typed as the path of a file."""
    return isinstance(keys, str) and keys.endswith(KEY_FILES)


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
        table = pl.scan_parquet(path, glob=False, hive_partitioning=False)
    elif path.endswith(".csv"):
        table = pl.scan_csv(path, infer_schema=False, glob=False)
    elif len(names) > 1:
        raise InputError(
            Arg("keys"), " of several columns need a .csv or .parquet file.", hint="a header with the names"
        )
    else:
        table = pl.LazyFrame({names[0]: [line for line in _read(path, _text).splitlines() if line]})
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
        kind = c.kind if c.kind in csv_lines.READ else "text"
        read = keys.select(csv_lines.read_as(pl.col(n), kind).alias(n))[n]
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
    if "\0" in path:
        raise InputError(f"{path!r} is no path: it holds a zero byte.", hint="another name")
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


def same_file(paths: Sequence[str]) -> int | None:
    """The place of the first path that is the same file (device and inode) as one before it."""
    seen: set[Identity] = set()
    for i, path in enumerate(paths):
        known = identity(path)
        if known in seen:
            return i
        seen.add(known)
    return None


Identity = tuple[int, int] | tuple[int, int, str] | str


def identity(path: str) -> Identity:
    """What makes two paths one file: device and inode, or, while there is no file, its folder's and its name."""
    try:
        s = os.stat(path)
        return s.st_dev, s.st_ino
    except OSError:
        pass
    full = os.path.realpath(path)
    try:
        s = os.stat(os.path.dirname(full))
        return s.st_dev, s.st_ino, os.path.basename(full)
    except OSError:
        return full


R = TypeVar("R")
S = TypeVar("S")


def _read(path: str, read: Callable[[str], R]) -> R:
    try:
        return read(path)
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError):
        kind = "parquet" if path.endswith(".parquet") else "CSV" if path.endswith(".csv") else "text"
        raise InputError(f"{path!r} can't be read as {kind}.", hint="check that it is complete") from None


def _schema(path: str, read: Any) -> dict[str, Any]:
    return dict(_read(path, read))


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as f:
        return f.read()


def _alike(paths: list[str], schemas: list[S]) -> S:
    for p, s in zip(paths, schemas):
        if s != schemas[0]:
            raise InputError(f"{p!r} has other columns or types than {paths[0]!r}.", hint="write them alike")
    return schemas[0]
