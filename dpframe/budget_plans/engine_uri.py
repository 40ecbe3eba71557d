"""Sources of a budget plan that stay in an engine: a table of a DuckDB file or of a Spark catalog, by URI."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from dpframe.errors import InputError, did_you_mean

_SHAPES = {"duckdb": "'duckdb:warehouse.db?table=visits'", "spark": "'spark:?table=lake.visits'"}
_URI = re.compile(rf"(?:{'|'.join(_SHAPES)}):|[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True, slots=True)
class EngineTable:
    """One table (or view) of an engine.

    Attributes
    ----------
    uri : str
        As typed: ``duckdb:<file>?table=<name>`` (the file is opened read-only; ``{scope}`` stands for the
        run's scope), ``spark:?table=<name>`` (the Spark session of this process, or the one that its
        configuration makes) or ``spark://<host>:<port>?table=<name>``. A name may have parts
        (``schema.table``).
    """

    uri: str

    @property
    def paths(self) -> tuple[str, ...]:
        """The file that is read, as typed; none for Spark."""
        _, where, _ = self._parts()
        return (where,) if where and self.uri.startswith("duckdb:") else ()

    def written(self, move: Callable[[str], str]) -> dict[str, Any]:
        """As keys of a release file, with the file's path as ``move`` has it."""
        scheme, _, rest = self.uri.partition(":")  # the path's letters may occur in the scheme
        for old in self.paths:
            rest = rest.replace(old, move(old), 1)
        return {"uri": f"{scheme}:{rest}"}

    def open(self, place: Callable[[str], str]) -> Any:
        """The table as a relation or DataFrame of its engine; reads names and types.

        Raises
        ------
        InputError
            For a URI of another form, an engine that is not installed, and a table that can't be opened.
            No message of the engine is passed on.

        Privacy: only the schema is read here; the types are the engine's own.
        """
        scheme, where, table = self._parts()
        opened = _duckdb if scheme == "duckdb" else _spark
        try:
            return opened(place(where) if scheme == "duckdb" else where, table)
        except ModuleNotFoundError as e:
            raise InputError(
                f"{self.uri!r} needs {e.name}.", hint=f"pip install 'dpframe[{scheme}]'"
            ) from None
        except InputError:
            raise
        except Exception:
            raise InputError(
                f"{self.uri!r} can't be opened: there is no such table, another process has it, or the engine"
                " does not run.",
                hint=_SHAPES[scheme],
            ) from None

    def _parts(self) -> tuple[str, str, str]:
        """The engine, where it is, and the table."""
        try:
            uri = urlsplit(self.uri)
        except ValueError:  # a bracket in the host's name
            raise InputError(f"{self.uri!r} is no URI.", hint=_SHAPES["duckdb"]) from None
        if uri.scheme not in _SHAPES:
            near = did_you_mean(uri.scheme, _SHAPES)
            raise InputError(
                f"{self.uri!r} names no engine that can be opened by URI. {near}", hint=_SHAPES["duckdb"]
            )
        shape = _SHAPES[uri.scheme]
        asked = parse_qsl(uri.query, keep_blank_values=True)
        if [k for k, _ in asked] != ["table"] or not all(asked[0][1].split(".")) or uri.fragment:
            raise InputError(f"{self.uri!r} must name one table.", hint=shape)
        if uri.scheme == "duckdb":
            if uri.netloc or not uri.path:
                raise InputError(
                    f"{self.uri!r} must name a file.", hint=f"{shape}, or 'duckdb:///data/warehouse.db?...'"
                )
            return "duckdb", uri.path, asked[0][1]
        if uri.path:
            raise InputError(f"{self.uri!r} has a path, and Spark has none.", hint=shape)
        return "spark", f"spark://{uri.netloc}" if uri.netloc else "", asked[0][1]


def is_uri(text: str) -> bool:
    """Whether a typed source is a URI and no path."""
    return _URI.match(text) is not None


def _duckdb(path: str, table: str) -> Any:
    import duckdb

    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        raise InputError(f"There is no readable file {path!r}.", hint="the path of a DuckDB database")
    connection = duckdb.connect(path, read_only=True)
    connection.execute("SET python_enable_replacements = false")  # a table, and never a variable of that name
    parts = table.split(".")
    if not _in_catalog(connection, parts):  # DuckDB would take the name for a file's
        raise LookupError(table)
    name = ".".join('"' + part.replace('"', '""') + '"' for part in parts)
    return connection.sql(f"SELECT * FROM {name}")


def _in_catalog(connection: Any, parts: list[str]) -> bool:
    """Whether a database has a table or view of that name; [database.][schema.]name, in any case of letters."""
    keys = ("lower(name)", "lower(schema_name)", "lower(database_name)")
    here = connection.execute("SELECT current_schema(), current_database()").fetchall()[0]
    wanted = dict(zip(keys, (p.lower() for p in (*reversed(parts), *here[len(parts) - 1 :]))))
    known = " UNION ALL ".join(
        f"SELECT {kind}_name AS name, schema_name, database_name FROM duckdb_{kind}s()"
        for kind in ("table", "view")
    )
    where = " AND ".join(f"{k} = ?" for k in wanted)
    found = connection.execute(f"SELECT 1 FROM ({known}) WHERE {where} LIMIT 1", list(wanted.values()))
    return bool(found.fetchall()) and len(parts) <= 3


def _spark(master: str, table: str) -> Any:
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    frame = (builder.master(master) if master else builder).getOrCreate().table(table)
    frame.schema  # a table that is not there fails here and not after the charge  # noqa: B018
    return frame
