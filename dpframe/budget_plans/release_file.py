"""Release files: a budget plan as TOML as it is read. Every error names the file and the line."""

from __future__ import annotations

import inspect
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn, TypeVar

from dpframe.base.wrong_calls import MEANT
from dpframe.budget_plans.engine_uri import EngineTable
from dpframe.budget_plans.query import AMOUNTS, PASSED, Query, QueryError, query
from dpframe.budget_plans.sources import Files, MissingFile, Named, SourceError
from dpframe.budget_plans.toml import Path, key_lines
from dpframe.budget_plans.wording import IN_FILE
from dpframe.errors import (
    Arg,
    DPError,
    Hint,
    InputError,
    MechanismError,
    Message,
    did_you_mean,
    message,
    typed,
)
from dpframe.statistics.base import Aggregate
from dpframe.statistics.table import STATISTICS
from dpframe.statistics.wrong_verbs import MEANT_VERBS

TOP = ("name", "source", "sources", "budget", "query")
SOURCE = ("path", "types", "uri")
POLICY = ("neighbors", "unit", "contributions", "max_groups", "max_rows_per_group", "max_rows")
BUDGET = ("eps", "delta", "delta_calls", "rho", "accountant", "order", *POLICY, "allocation", "ledger")
QUERY = ("name", "statistic", "ask", "source", "groupby", "keys", "weight", "rows", "relative_to", "outputs")
_FRACTION = re.compile(r"-?\d+/[1-9]\d*")
_AT = re.compile(r" \(at line (\d+), column \d+\)$")


def _is_number(v: Any) -> bool:
    return isinstance(v, int | float | Fraction) and not isinstance(v, bool)


def _is_text(v: Any) -> bool:
    return isinstance(v, str)


def _is_texts(v: Any) -> bool:
    return isinstance(v, str) or (isinstance(v, list) and all(isinstance(x, str) for x in v))


class Kind(NamedTuple):
    """What a key's value must be, where Python's own check would come too late or say less."""

    test: Callable[[Any], bool]
    words: str
    hint: Any


NUMBER, TEXT = Kind(_is_number, "a number", 0.5), Kind(_is_text, "a text", "...")
TEXTS = Kind(_is_texts, "a text or a list of texts", ["..."])
SIZE = Kind(lambda v: _is_text(v) or _is_number(v), "a number, or the name of an earlier query", 1000)
KINDS = {
    **dict.fromkeys(
        ("eps", "delta", "delta_calls", "rho", "share", "error", "weight", "ci", "order"), NUMBER
    ),
    **dict.fromkeys(("rows", "relative_to"), SIZE),
    **dict.fromkeys(("name", "statistic", "source", "mechanism", "threshold"), TEXT),
    **dict.fromkeys(("neighbors", "allocation", "accountant", "ledger"), TEXT),
    **dict.fromkeys(("groupby", "unit", "outputs"), TEXTS),
    "complete_cases": Kind(lambda v: isinstance(v, bool), "true or false", True),
}
EXACT = frozenset(  # where "1/3" is a number; a key, a column and a candidate of top_k may be called so
    ["bounds", "B", "weight_bounds", "norm", "edges", "q", "range", "candidates"]
    + [k for k, kind in KINDS.items() if kind in (NUMBER, SIZE)]
)


class FileError(InputError):
    """Something is wrong in a release file.

    Attributes
    ----------
    missing : bool
        Whether a file that it names is not there: nothing was spent, and it may come.
    """

    def __init__(self, place: str, cause: object, *, missing: bool = False) -> None:
        super().__init__(f"{place}: ", message(cause))
        self.args = (IN_FILE.message(self),)
        self.missing = missing

    def __reduce__(self) -> tuple[object, ...]:
        return (_file_error, (self.said, self.missing))


def _file_error(said: tuple[Any, ...], missing: bool) -> FileError:
    return FileError(said[0][:-2], said[1], missing=missing)


P = TypeVar("P")  # the plan that is made


def load(make: Callable[..., P], path: str | os.PathLike[str], scope: str | None = None) -> P:
    """Read a release file; see ``BudgetPlan.from_release_file``."""
    name = os.fspath(path)
    try:
        with open(name, encoding="utf-8-sig") as f:
            text = f.read()
    except (OSError, ValueError) as e:
        reason = e.strerror if isinstance(e, OSError) else "it is not UTF-8"
        raise InputError(f"{name} can't be read: {reason}.", hint="the path of a release file") from None
    return read(make, name, text, scope)


def read(make: Callable[..., P], name: str, text: str, scope: str | None) -> P:
    """The plan of a release file's text; ``name`` is the file's path."""
    try:
        document, lines = tomllib.loads(text), key_lines(text)
    except tomllib.TOMLDecodeError as e:
        at = _AT.search(str(e))
        line = int(at[1]) if at else text.count("\n") + 1
        raise FileError(f"{name}:{line}", f"this is no TOML: {_AT.sub('', str(e))}") from None
    except (RecursionError, ValueError):  # brackets in brackets, or more digits than Python reads
        raise FileError(
            f"{name}:1", "this is no release file: nested too deeply, or a number too long"
        ) from None
    return _Reader(name, document, lines).plan(make, scope)


class _Reader:
    """One release file. ``_fail`` is where every message gets its line."""

    def __init__(self, name: str, document: dict[str, Any], lines: dict[Path, int]) -> None:
        self.name, self.document, self.lines = name, document, lines

    def plan(self, make: Callable[..., P], scope: str | None) -> P:
        top = self._known((), TOP)
        sources = self._sources()
        if not isinstance(top.get("name", ""), str):
            self._fail(("name",), "name is a text.", hint=Arg("name", "arrivals"))
        if not isinstance(top.get("budget"), dict):
            self._fail((), "there is no [budget].", hint="[budget] with eps = 1.0")
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
            self._about(("query", list(queries).index(e.query)), e.cause, e.about)
        except SourceError as e:
            at: Path = ("sources", e.source) if "sources" in top else ("source",)
            about = ("types",) if "types" in _named(message(e.cause)) else ("path", "uri")
            self._about(at, e.cause, about, missing=isinstance(e.cause, MissingFile))
        except (InputError, MechanismError, TypeError) as e:  # a ledger's fault is not the file's
            self._about(("budget",), e)

    # ---- parts of the file ----

    def _sources(self) -> dict[str, Named]:
        one, several = self.document.get("source"), self.document.get("sources")
        if (one is None) == (several is None):
            self._fail((), "a file has [source], or [sources.<name>] for several.", hint="[source] with path")
        if one is not None:
            return {"data": self._source(("source",))}
        if not isinstance(several, dict) or not all(isinstance(s, dict) for s in several.values()):
            self._fail(("sources",), "sources are tables with names.", hint="[sources.people]")
        return {n: self._source(("sources", n)) for n in several}

    def _source(self, at: Path) -> Named:
        table = self._known(at, SOURCE)
        if "uri" in table:
            if not isinstance(table["uri"], str):
                self._fail(
                    (*at, "uri"), "uri is a text.", hint=Arg("uri", "duckdb:warehouse.db?table=visits")
                )
            if len(table) > 1:
                self._fail((*at, "uri"), "a source has uri or path, not both; types are the engine's own")
            return EngineTable(table["uri"])
        paths = table.get("path")
        paths = [paths] if isinstance(paths, str) else paths
        if not isinstance(paths, list) or not paths or not all(isinstance(p, str) for p in paths):
            self._fail(
                (*at, "path"), "path is a file or a list of files.", hint=Arg("path", "people.parquet")
            )
        types = table.get("types", {})
        if not isinstance(types, dict) or not all(isinstance(t, str) for t in types.values()):
            self._fail((*at, "types"), "types is a table of columns.", hint="types = { age = 'int' }")
        return Files(tuple(paths), types)

    def _queries(self) -> dict[str, Query]:
        given = self.document.get("query")
        if not isinstance(given, list) or not given or not all(isinstance(q, dict) for q in given):
            self._fail(
                ("query",), "queries are tables of their own.", hint="[[query]] with name and statistic"
            )
        queries: dict[str, Query] = {}
        for i, raw in enumerate(given):
            at = ("query", i)
            name = raw.get("name")
            if not isinstance(name, str) or not name:
                self._fail((*at, "name"), "a query needs a name.", hint=Arg("name", "n"))
            if name in queries:
                self._fail((*at, "name"), f"there is another query {name!r}.", hint="another name")
            queries[name] = self._query(at, raw)
        return queries

    def _query(self, at: Path, raw: dict[str, Any]) -> Query:
        known = (*QUERY, *AMOUNTS, *PASSED)
        if "ask" in raw and "statistic" in raw:
            self._fail((*at, "ask"), "a query has statistic or ask, not both.", hint="put it into ask")
        statistic = [self._statistic(at, known)] if "statistic" in raw else []
        parameters = _parameters(statistic[0].verb) if statistic else ()
        table = self._table(at, (*known, *parameters))
        named = {}
        for name, asked in table.get("ask", {}).items() if isinstance(table.get("ask"), dict) else ():
            if not isinstance(asked, dict):
                self._fail((*at, "ask", name), f"{name} is no question.", hint="{ statistic = 'count' }")
            named[name] = self._statistic((*at, "ask", name), ("statistic",))
        if "ask" in table and not named:
            self._fail((*at, "ask"), "ask is a table.", hint="ask = { n = { statistic = 'count' } }")
        others = ("name", "statistic", "ask", *parameters)  # what the statistic takes is the statistic's
        options = {k: _tuples(v) for k, v in table.items() if k not in others}
        try:
            return query(*(a.alias(n) for n, a in named.items()), *statistic, **options)
        except (DPError, TypeError) as e:
            self._about(at, e)

    def _statistic(self, at: Path, others: tuple[str, ...]) -> Aggregate:
        raw, known = self._at(at), STATISTICS
        verb = raw.get("statistic")
        if not isinstance(verb, str) or verb not in known:
            meant = MEANT_VERBS.get(str(verb))
            at, said = (*at, "statistic"), f"there is no statistic {typed(verb)}."
            if meant in known:
                self._fail(at, said, hint=Arg("statistic", meant))
            self._fail(at, f"{said} {did_you_mean(str(verb or ''), known)}")
        parameters = _parameters(verb)
        table = self._table(at, (*others, *parameters))
        try:
            return known[verb].ask(**{k: _tuples(v) for k, v in table.items() if k in parameters})
        except (DPError, TypeError, ValueError) as e:
            self._about(at, e)

    # ---- values ----

    def _at(self, at: Path) -> dict[str, Any]:
        table: Any = self.document
        for step in at:
            table = table[step]
        if not isinstance(table, dict):
            self._fail(at, f"{at[-1]} is a table.", hint=f"[{at[-1]}]")
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
            if k in EXACT and not (k == "candidates" and table.get("statistic") == "top_k"):
                table[k] = _exact(v)
            kind = KINDS.get(k)
            if kind is not None and not kind.test(table[k]):
                self._fail((*at, k), _worded(Arg(k, v), f" must be {kind.words}.", hint=Arg(k, kind.hint)))
        return table

    def _about(
        self, at: Path, cause: object, about: tuple[str, ...] = (), *, missing: bool = False
    ) -> NoReturn:
        """Fail at the key of a table that a message is about: the parameters that it names, or what was typed."""
        table, said = self._at(at), message(cause)
        told = IN_FILE.join(said.said)
        asked = table.get("ask", {})
        for name in () if about or not isinstance(asked, dict) else asked:  # which of several statistics
            if f"{asked[name].get('statistic')}({asked[name].get('column')!r}" in told:
                self._about((*at, "ask", name), said, missing=missing)
        names, words = _named(said), told.replace("(", " ").replace(")", " ").replace(":", " ").split()
        found = [k for k in about if k in table] + [k for k in table if k in names]
        found += [w for w in words if w in table and w in ("column", "bounds", "keys", "unit", "mechanism")]
        found += [k for k, v in table.items() if isinstance(v, str) and k != "name" and repr(v) in told]
        found += [k for k in ("statistic",) if k in table]
        path = (*at, *_item(found[0], table[found[0]], names, told)) if found else at
        self._fail(path, said, missing=missing)

    def _fail(self, at: Path, cause: object, *, hint: Hint = None, missing: bool = False) -> NoReturn:
        """Raise InputError with the line of ``at``, or of the nearest table around it."""
        while at and at not in self.lines:
            at = at[:-1]
        if hint is not None:
            cause = _worded(cause, hint=hint)
        raise FileError(f"{self.name}:{self.lines.get(at, 1)}", cause, missing=missing) from None


def _worded(*said: Any, hint: Any) -> Message:
    return Message(said, (hint,))


def _named(said: Message) -> dict[str, int | None]:
    """The parameters that a message names, each with the place in its list if it is one item."""
    found: dict[str, int | None] = {}
    for p in said.said:
        if isinstance(p, Arg):
            name, _, place = p.name.removesuffix("]").partition("[")
            found.setdefault(name, int(place) if place.isdecimal() else None)
        elif isinstance(p, Message):
            found = {**_named(p), **found}
    return found


def _item(key: str, value: Any, names: Mapping[str, int | None], told: str) -> Path:
    """The key, or the item of its list or table that a message names by place or by text."""
    place = names.get(key)
    if place is not None:
        return (key, place)
    inner = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    named = [i for i, x in inner if any(isinstance(t, str) and f"{t}'" in told for t in (i, x))]
    return (key, *named[:1])


def _parameters(verb: str) -> tuple[str, ...]:
    """What a statistic takes; its own eps is the query's."""
    return tuple(p for p in inspect.signature(STATISTICS[verb].ask).parameters if p != "eps")


def _exact(v: Any) -> Any:
    """Texts such as "1/3" as fractions, in lists too."""
    if isinstance(v, list):
        return [_exact(x) for x in v]
    short = isinstance(v, str) and len(v) <= 1000 and _FRACTION.fullmatch(v)
    return Fraction(v) if short else v


def _tuples(v: Any) -> Any:
    """Lists in a list (keys of several columns) are tuples."""
    return [tuple(x) if isinstance(x, list) else x for x in v] if isinstance(v, list) else v
