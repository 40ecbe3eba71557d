"""Release files: a budget plan as TOML, read and written. Every error names the file and the line."""

from __future__ import annotations

import enum
import inspect
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, NoReturn, TypeVar

import numpy as np

from dpframe.base.files import write_atomic
from dpframe.base.wrong_calls import MEANT
from dpframe.budget_plans.engine_uri import EngineTable
from dpframe.budget_plans.query import AMOUNTS, PASSED, Query, QueryError, query
from dpframe.budget_plans.sources import KEY_FILES, Files, Named, SourceError
from dpframe.budget_plans.toml import Path, key_lines, to_toml
from dpframe.budget_plans.wording import in_file
from dpframe.errors import DPError, InputError, MechanismError, did_you_mean, typed
from dpframe.frames.public import Public
from dpframe.statistics.base import Aggregate
from dpframe.statistics.table import STATISTICS
from dpframe.statistics.wrong_verbs import MEANT_VERBS

TOP = ("name", "source", "sources", "budget", "query")
SOURCE = ("path", "types", "uri")
POLICY = ("neighbors", "unit", "max_groups", "max_rows_per_group", "max_rows")
BUDGET = ("eps", "delta", "delta_calls", "rho", "accountant", "order", *POLICY, "allocation", "ledger")
QUERY = ("name", "statistic", "ask", "source", "groupby", "keys", "weight", "rows", "relative_to", "outputs")
NUMBERS = (
    "eps",
    "delta",
    "delta_calls",
    "rho",
    "share",
    "error",
    "weight",
    "rows",
    "relative_to",
    "ci",
    "order",
)
TEXTS = (
    "name",
    "statistic",
    "source",
    "mechanism",
    "threshold",
    "neighbors",
    "allocation",
    "accountant",
    "ledger",
)
_FRACTION = re.compile(r"-?\d+/[1-9]\d*")
_AT = re.compile(r" \(at line (\d+), column \d+\)$")


P = TypeVar("P")  # the plan that is made


def load(make: Callable[..., P], path: str | os.PathLike[str], scope: str | None = None) -> P:
    """Read a release file; see ``BudgetPlan.from_release_file``."""
    name = os.fspath(path)
    try:
        with open(name, encoding="utf-8-sig") as f:
            text = f.read()
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else "it is not UTF-8"
        raise InputError(f"{name} can't be read: {reason}. Hint: the path of a release file") from None
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        at = _AT.search(str(e))
        line = int(at[1]) if at else text.count("\n") + 1
        raise InputError(f"{name}:{line}: this is no TOML: {_AT.sub('', str(e))}") from None
    return _Reader(name, document, key_lines(text)).plan(make, scope)


class _Reader:
    """One release file. ``_fail`` is where every message gets its line."""

    def __init__(self, name: str, document: dict[str, Any], lines: dict[Path, int]) -> None:
        self.name, self.document, self.lines = name, document, lines

    def plan(self, make: Callable[..., P], scope: str | None) -> P:
        top = self._known((), TOP)
        sources = self._sources()
        if not isinstance(top.get("name", ""), str):
            self._fail(("name",), "name is a text. Hint: name = 'arrivals'")
        if not isinstance(top.get("budget"), dict):
            self._fail((), "there is no [budget]. Hint: [budget] with eps = 1.0")
        budget = self._table(("budget",), BUDGET)
        queries = self._queries()
        try:
            return make(
                sources,
                queries,
                **budget,
                name=top.get("name"),
                folder=os.path.dirname(os.path.abspath(self.name)),
                scope=scope,
            )
        except QueryError as e:
            i = list(queries).index(e.query)
            self._about(("query", i), e.message, e.about)
        except SourceError as e:
            self._about(
                ("sources", e.source) if "sources" in top else ("source",),
                e.message,
                ("types",) if "types=" in e.message else ("path", "uri"),
            )
        except (InputError, MechanismError, TypeError) as e:  # a ledger's fault is not the file's
            self._about(("budget",), str(e))

    # ---- parts of the file ----

    def _sources(self) -> dict[str, Named]:
        one, several = self.document.get("source"), self.document.get("sources")
        if (one is None) == (several is None):
            self._fail((), "a file has [source], or [sources.<name>] for several. Hint: [source] with path")
        if one is not None:
            return {"data": self._source(("source",))}
        if not isinstance(several, dict) or not all(isinstance(s, dict) for s in several.values()):
            self._fail(("sources",), "sources are tables with names. Hint: [sources.people]")
        return {n: self._source(("sources", n)) for n in several}

    def _source(self, at: Path) -> Named:
        table = self._known(at, SOURCE)
        if "uri" in table:
            if not isinstance(table["uri"], str):
                self._fail((*at, "uri"), "uri is a text. Hint: uri = 'duckdb:warehouse.db?table=visits'")
            if len(table) > 1:
                self._fail((*at, "uri"), "a source has uri= or path=, not both; types are the engine's own")
            return EngineTable(table["uri"])
        paths = table.get("path")
        paths = [paths] if isinstance(paths, str) else paths
        if not isinstance(paths, list) or not paths or not all(isinstance(p, str) for p in paths):
            self._fail((*at, "path"), "path is a file or a list of files. Hint: path = 'people.parquet'")
        types = table.get("types", {})
        if not isinstance(types, dict) or not all(isinstance(t, str) for t in types.values()):
            self._fail((*at, "types"), "types is a table of columns. Hint: types = { age = 'int' }")
        return Files(tuple(paths), types)

    def _queries(self) -> dict[str, Query]:
        given = self.document.get("query")
        if not isinstance(given, list) or not given or not all(isinstance(q, dict) for q in given):
            self._fail(("query",), "queries are tables of their own. Hint: [[query]] with name and statistic")
        queries: dict[str, Query] = {}
        for i, raw in enumerate(given):
            at = ("query", i)
            name = raw.get("name")
            if not isinstance(name, str) or not name:
                self._fail((*at, "name"), "a query needs a name. Hint: name = 'n'")
            if name in queries:
                self._fail((*at, "name"), f"there is another query {name!r}. Hint: another name")
            queries[name] = self._query(at, raw)
        return queries

    def _query(self, at: Path, raw: dict[str, Any]) -> Query:
        known = (*QUERY, *AMOUNTS, *PASSED)
        if "ask" in raw and "statistic" in raw:
            self._fail((*at, "ask"), "a query has statistic= or ask=, not both. Hint: put it into ask")
        statistic = [self._statistic(at, known)] if "statistic" in raw else []
        parameters = _parameters(statistic[0].verb) if statistic else ()
        table = self._table(at, (*known, *parameters))
        named = {}
        for name, asked in table.get("ask", {}).items() if isinstance(table.get("ask"), dict) else ():
            if not isinstance(asked, dict):
                self._fail((*at, "ask", name), f"{name} is no question. Hint: {{ statistic = 'count' }}")
            named[name] = self._statistic((*at, "ask", name), ("statistic",))
        if "ask" in table and not named:
            self._fail((*at, "ask"), "ask is a table. Hint: ask = { n = { statistic = 'count' } }")
        others = ("name", "statistic", "ask", *parameters)  # what the statistic takes is the statistic's
        options = {k: _tuples(v) for k, v in table.items() if k not in others}
        try:
            return query(*(a.alias(n) for n, a in named.items()), *statistic, **options)
        except (DPError, TypeError) as e:
            self._about(at, str(e))

    def _statistic(self, at: Path, others: tuple[str, ...]) -> Aggregate:
        raw, known = self._at(at), STATISTICS
        verb = raw.get("statistic")
        if not isinstance(verb, str) or verb not in known:
            meant = MEANT_VERBS.get(str(verb))
            near = f"Hint: statistic = {meant!r}" if meant in known else did_you_mean(str(verb or ""), known)
            self._fail((*at, "statistic"), f"there is no statistic {typed(verb)}. {near}")
        parameters = _parameters(verb)
        table = self._table(at, (*others, *parameters))
        try:
            return known[verb].ask(**{k: _tuples(v) for k, v in table.items() if k in parameters})
        except (DPError, TypeError, ValueError) as e:
            self._about(at, str(e))

    # ---- values ----

    def _at(self, at: Path) -> dict[str, Any]:
        table: Any = self.document
        for step in at:
            table = table[step]
        if not isinstance(table, dict):
            self._fail(at, f"{at[-1]} is a table. Hint: [{at[-1]}]")
        return dict(table)

    def _known(self, at: Path, known: tuple[str, ...]) -> dict[str, Any]:
        """A table as it stands; InputError for a key that is not known."""
        table = self._at(at)
        for k in table:
            if k not in known:
                meant = MEANT.get(k.lower(), k)
                near = f"Did you mean {meant!r}?" if meant in known else did_you_mean(k, known)
                self._fail((*at, k), f"there is no key {k!r} here. {near}")
        return table

    def _table(self, at: Path, known: tuple[str, ...]) -> dict[str, Any]:
        """A table of known keys with its numbers read; InputError for a value of a wrong type."""
        table = self._known(at, known)
        for k, v in table.items():
            names = k in ("rows", "relative_to") and isinstance(v, str)
            if k in TEXTS and not isinstance(v, str):
                self._fail((*at, k), f"{k}={typed(v)} must be a text. Hint: {k}='...'")
            if k in NUMBERS and not names and not _is_number(v):
                self._fail((*at, k), f"{k}={typed(v)} must be a number. Hint: {k}=0.5")
            if k in ("groupby", "unit", "outputs") and not _is_texts(v):
                self._fail((*at, k), f"{k}={typed(v)} must be a text or a list of texts. Hint: {k}=['...']")
            table[k] = v if names or k in TEXTS else _numbers(v)
        return table

    def _about(self, at: Path, message: str, about: tuple[str, ...] = ()) -> NoReturn:
        """Fail at the key of a table that a message is about: named in ``about`` or in its text."""
        table = self._at(at)
        told = message.split(" Hint:")[0]
        for name, asked in (
            () if about else table.get("ask", {}).items()
        ):  # which of several statistics it is about
            if f"{asked.get('statistic')}({asked.get('column')!r}" in told:
                self._about((*at, "ask", name), message)
        found = [k for k in about if k in table]
        found += [k for k in table if re.search(rf"\b{re.escape(k)}(=|\[\d+\])", told)]
        spoken = [(m.start(), k) for k in table if (m := re.search(rf"\b{re.escape(k)}\b", told))]
        found += [k for _, k in sorted(spoken) if k in ("column", "bounds", "keys", "unit", "mechanism")]
        found += [k for k, v in table.items() if isinstance(v, str) and k != "name" and repr(v) in told]
        found += [k for k in ("statistic",) if k in table]
        self._fail((*at, *_item(found[0], table[found[0]], told)) if found else at, message)

    def _fail(self, at: Path, message: str) -> NoReturn:
        """Raise InputError with the line of ``at``, or of the nearest table around it."""
        while at and at not in self.lines:
            at = at[:-1]
        raise InputError(f"{self.name}:{self.lines.get(at, 1)}: {in_file(message)}") from None


def _item(key: str, value: Any, told: str) -> Path:
    """The key, or the item of its list or table that a message names by place or by text."""
    place = re.search(rf"\b{re.escape(key)}\[(\d+)\]", told)
    if place is not None:
        return (key, int(place[1]))
    inner = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    named = [i for i, x in inner if any(isinstance(t, str) and f"{t}'" in told for t in (i, x))]
    return (key, *named[:1])


def _parameters(verb: str) -> tuple[str, ...]:
    """What a statistic takes; its own eps is the query's."""
    return tuple(p for p in inspect.signature(STATISTICS[verb].ask).parameters if p != "eps")


def _is_number(v: Any) -> bool:
    if isinstance(v, str):
        return _FRACTION.fullmatch(v) is not None
    return isinstance(v, int | float) and not isinstance(v, bool)


def _is_texts(v: Any) -> bool:
    return isinstance(v, str) or (isinstance(v, list) and all(isinstance(x, str) for x in v))


def _numbers(v: Any) -> Any:
    """Texts such as "1/3" as fractions, in lists too."""
    if isinstance(v, list):
        return [_numbers(x) for x in v]
    return Fraction(v) if isinstance(v, str) and _FRACTION.fullmatch(v) else v


def _tuples(v: Any) -> Any:
    """Lists in a list (keys of several columns) are tuples."""
    return [tuple(x) if isinstance(x, list) else x for x in v] if isinstance(v, list) else v


def dump(plan: Any, path: str | os.PathLike[str]) -> None:
    """Write a plan as a release file; see ``BudgetPlan.to_release_file``."""
    target = os.path.abspath(os.fspath(path))

    def moved(typed: str) -> str:
        """A relative path, seen from the release file."""
        if os.path.isabs(typed):
            return typed
        return os.path.relpath(os.path.join(plan._folder, typed), os.path.dirname(target))

    frames = [n for n, s in plan._given.items() if not isinstance(s, Named)]
    if frames:
        raise InputError(
            f"The source {frames[0]!r} is a frame, and a release file names files or tables. Hint: write it as"
            f" parquet and make the plan with sources={{{frames[0]!r}: 'people.parquet'}}"
        )
    sources = {n: s.written(moved) for n, s in plan._given.items()}
    alone = list(sources) == ["data"]
    document: dict[str, Any] = {"source": sources["data"]} if alone else {"sources": sources}
    if plan._name is not None:
        document = {"name": plan._name, **document}
    budget = {**plan._typed, "ledger": None if plan._session.ledger is None else moved(plan._typed["ledger"])}
    document["budget"] = {k: _plain(v) for k, v in budget.items() if v is not None}
    document["query"] = [_written(n, q, moved) for n, q in plan.queries.items()]
    try:
        text = to_toml(document)
    except TypeError as e:
        raise InputError(f"The plan has a value that no file holds: {e}. Hint: keys from a file") from None
    write_atomic(target, text.encode())


def _written(name: str, q: Query, moved: Callable[[str], str]) -> dict[str, Any]:
    table: dict[str, Any] = {"name": name}
    if len(q.statistics) == 1 and q.statistics[0].name is None:
        table |= _asked(name, q.statistics[0])
    elif q.statistics:
        table["ask"] = {a.name or a.default_name: _asked(name, a) for a in q.statistics}
    given = {
        "source": q.source,
        "groupby": list(q.groupby) or None,
        "keys": moved(q.keys) if isinstance(q.keys, str) and q.keys.endswith(KEY_FILES) else _plain(q.keys),
        **{k: getattr(q, k) for k in (*AMOUNTS, "weight", "rows", "relative_to")},
        **{k: _plain(v) for k, v in q.options.items()},
        "outputs": [moved(p) for p in q.outputs] or None,
    }
    return table | {k: v for k, v in given.items() if v is not None}


def _asked(name: str, a: Aggregate) -> dict[str, Any]:
    """A statistic as keys of a file: every parameter of its function that is not at its default."""
    make = STATISTICS[a.verb].ask if a.verb in STATISTICS else None
    parameters = {} if make is None else inspect.signature(make).parameters
    given = {k: v for k, p in parameters.items() if (v := a.argument(k)) not in (p.default, None)}
    try:
        same = make is not None and replace(make(**given), name=a.name) == a
    except (DPError, TypeError):
        same = False
    if not same:
        raise QueryError(name, f"{a.describe()} can't be written to a file. Hint: a statistic of dpframe")
    return {"statistic": a.verb, **{k: _plain(v) for k, v in given.items()}}


def _plain(v: Any) -> Any:
    """Values as TOML has them; what it lacks is refused when it is written."""
    if isinstance(v, Public):
        v = v.values.to_list() if hasattr(v.values, "to_list") else v.values
    if isinstance(v, np.generic):
        return v.item()
    if isinstance(v, Mapping):
        return {str(k): _plain(x) for k, x in v.items()}
    if isinstance(v, type) and issubclass(v, enum.Enum):
        return [m.value for m in v]
    return [_plain(x) for x in v] if isinstance(v, list | tuple | range) else v
