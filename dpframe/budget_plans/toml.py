"""TOML as text: where each key stands, and writing. Reading is ``tomllib``'s.

``tomllib`` gives values without places. :func:`key_lines` walks over a text that ``tomllib`` has
accepted and notes the line of every key and array item, so it skips values and checks nothing.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

Path = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SKIPPED = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_PLAIN = re.compile(r"[^,\]}\n#]*")
_LITERAL = re.compile(r"'''(?s:.*?)'''(?!')|'[^'\n]*'")
_BASIC = re.compile(r'"""(?s:(?:\\.|[^\\])*?)"""(?!")|"(?:\\.|[^"\\\n])*"')


def key_lines(text: str) -> dict[Path, int]:
    """The line (from 1) of every key, table and array item of a valid TOML text.

    Paths are those of the parsed value: ``("query", 0, "bounds", 1)``. A table that is opened by a
    header has the header's line, one that only dotted keys make has that of the first.

    Examples
    --------
    >>> key_lines("a = 1\\n[[q]]\\nb.c = [\\n  1,\\n  2]\\n")[("q", 0, "b", "c", 1)]
    5
    """
    walk = _Walk(text)
    walk.document()
    return walk.lines


class _Walk:
    """One pass over a text; ``at`` is the place of the next character."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.lines: dict[Path, int] = {}
        self.tables: dict[Path, int] = {}  # arrays of tables: how many there are so far

    def document(self) -> None:
        base: Path = ()
        while self._skip(_SKIPPED) < len(self.text):
            if self._takes("["):
                several = self._takes("[")
                base = self._header(self._key(), several)
                self.at += 2 if several else 1
            else:
                self._pair(base)

    def _header(self, key: list[str], several: bool) -> Path:
        path: Path = ()
        for i, name in enumerate(key):
            path = (*path, name)
            last = i == len(key) - 1
            if several and last:
                self.tables[path] = self.tables.get(path, 0) + 1
                self._mark(path)
            if path in self.tables:  # a header speaks of the newest table of an array
                path = (*path, self.tables[path] - 1)
            self._mark(path, again=last)
        return path

    def _pair(self, base: Path) -> None:
        line, path = self._line(), base
        for name in self._key():
            path = (*path, name)
            self.lines.setdefault(path, line)
        self.at += 1  # the equals sign
        self._value(path)

    def _value(self, path: Path) -> None:
        self._skip(_SKIPPED)
        if self._takes("["):
            item = 0
            while self._more("]"):
                self._mark((*path, item))
                self._value((*path, item))
                item += 1
        elif self._takes("{"):
            while self._more("}"):
                self._pair(path)
        else:
            self._skip({"'": _LITERAL, '"': _BASIC}.get(self.text[self.at], _PLAIN))

    def _more(self, end: str) -> bool:
        """Whether another item comes before ``end``."""
        self._skip(_SKIPPED)
        if self._takes(","):
            self._skip(_SKIPPED)
        return not self._takes(end)

    def _key(self) -> list[str]:
        names = []
        while True:
            self._skip(_SKIPPED)
            start = self.at
            if self.text[start] == "'":
                self._skip(_LITERAL)
                names.append(self.text[start + 1 : self.at - 1])
            elif self.text[start] == '"':
                self._skip(_BASIC)
                names.append(_unescaped(self.text[start : self.at]))
            else:
                self._skip(_BARE)
                names.append(self.text[start : self.at])
            self._skip(_SKIPPED)
            if not self._takes("."):
                return names

    def _takes(self, character: str) -> bool:
        found = self.text.startswith(character, self.at)
        self.at += found
        return found

    def _skip(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self.text, self.at)
        assert found is not None, "the text was not checked before"
        self.at = found.end()
        return self.at

    def _line(self) -> int:
        return self.text.count("\n", 0, self.at) + 1

    def _mark(self, path: Path, again: bool = False) -> None:
        if again:
            self.lines[path] = self._line()
        self.lines.setdefault(path, self._line())


def _unescaped(quoted: str) -> str:
    import tomllib

    return next(iter(tomllib.loads(f"{quoted} = 0")))


def to_toml(document: Mapping[str, Any]) -> str:
    """Write a mapping of plain values; tables become sections, lists of tables arrays of tables.

    Numbers keep their value: a fraction that no float has is written as ``"1/3"`` in quotes.

    Raises
    ------
    TypeError
        For a value that TOML does not hold.
    """
    return "\n".join(_section((), document)).strip("\n") + "\n"


def _section(path: tuple[str, ...], table: Mapping[str, Any]) -> list[str]:
    """The lines of a table: at the top level tables and arrays of tables get headers, deeper they are inline."""
    if path:
        return [f"{_name(k)} = {_written(v)}" for k, v in table.items()]
    plain = {k: v for k, v in table.items() if not isinstance(v, Mapping) and not _tables(v)}
    lines = _section(("",), plain)
    for k, v in table.items():
        if isinstance(v, Mapping) and v and all(isinstance(x, Mapping) for x in v.values()):
            for name, x in v.items():
                lines += ["", f"[{_name(k)}.{_name(name)}]", *_section((k, name), x)]
        elif isinstance(v, Mapping):
            lines += ["", f"[{_name(k)}]", *_section((k,), v)]
        elif _tables(v):
            for x in v:
                lines += ["", f"[[{_name(k)}]]", *_section((k,), x)]
    return lines


def _tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(x, Mapping) for x in value)


def _name(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):  # JSON's escapes are TOML's; but DEL must be escaped
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Fraction):
        return _number(value)
    if isinstance(value, float):
        return repr(value)
    if type(value) in (dt.datetime, dt.date, dt.time):  # of exactly these: a pandas time has nanoseconds
        return str(value.isoformat())
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_name(k)} = {_written(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple | range):
        return "[" + ", ".join(_written(x) for x in value) + "]"
    raise TypeError(f"TOML holds no {type(value).__name__}")


def _number(x: Fraction) -> str:
    from dpframe.accounting.events import rational

    if x.denominator == 1:
        return str(x.numerator)
    same = Fraction(float(x)) == x or (x > 0 and rational(float(x), "number") == x)
    return repr(float(x)) if same else f'"{x.numerator}/{x.denominator}"'
