"""Messages in the words of whoever reads them: the keys of a release file, or the options of the command line.

Errors carry parameters and calls as data (``dpframe.errors``). Whoever typed a file or a command gets them as they
would type them: ``bounds=(0, 100)`` is ``bounds = [0, 100]`` in a file, ``eps=0.5`` is ``--eps 0.5`` in a command.
"""

from __future__ import annotations

import datetime as dt
import inspect
import shlex
from fractions import Fraction

from dpframe.errors import Arg, Call, Code, InPython, Unset, Words, typed
from dpframe.statistics.table import STATISTICS

OPTIONS = frozenset(
    [
        "eps",
        "delta",
        "delta_calls",
        "rho",
        "neighbors",
        "unit",
        "contributions",
        "accountant",
        "order",
        "per_scope",
        "window",
        "lifetime",
        "anchor",
        "scope",
        "size",
        "figures",
        "jobs",
        "output",
    ]
)


class FileWords(Words):
    """The keys and values of a release file."""

    def only_python(self, p: InPython) -> str:
        return p.elsewhere

    def arg(self, a: Arg) -> str:
        if a.name == "scope":  # no file has it
            return super().arg(a)
        return a.name if a.value is Unset else f"{a.name} = {toml(a.value)}"

    def call(self, c: Call) -> str:
        if c.verb in ("create", "Ledger"):
            return _ledger(c)
        if c.verb == "public":
            return " ".join(map(toml, _given(c))) or "[...]"
        pairs = self._keys(c)
        if c.verb == "Session":
            return f"[budget] with {', '.join(pairs)}"
        return ", ".join(pairs) or super().call(c)

    def _keys(self, c: Call | None) -> list[str]:
        """A question as keys of its table: what it is asked of, then its own."""
        if c is None:
            return []
        given, known = _given(c), STATISTICS
        pairs = [self.arg(Arg(k, v)) for k, v in c.named.items()]
        if c.verb == "groupby":
            pairs = (
                [self.arg(Arg("groupby", given[0] if len(given) == 1 else given)), *pairs] if given else pairs
            )
        elif c.verb in known:
            names = inspect.signature(known[c.verb].ask).parameters
            pairs = [self.arg(Arg(n, v)) for n, v in zip(names, given)] + pairs
            pairs = [self.arg(Arg("statistic", c.verb)), *pairs]
        else:
            pairs = [p for a in given if isinstance(a, Call) for p in self._keys(a)] + pairs
        return self._keys(c.on) + pairs


class CommandWords(Words):
    """The options of the command line."""

    def only_python(self, p: InPython) -> str:
        return p.elsewhere

    def arg(self, a: Arg) -> str:
        return option(a) if a.name in OPTIONS else super().arg(a)

    def call(self, c: Call) -> str:
        if c.verb in ("create", "Ledger"):
            return _ledger(c)
        if c.verb == "Session":
            return " ".join(self.arg(Arg(k, v)) for k, v in c.named.items())
        return super().call(c)


class RunWords(FileWords):
    """The words of a release file, whose scope is an option of the command that reads it."""

    def arg(self, a: Arg) -> str:
        return option(a) if a.name == "scope" else super().arg(a)


IN_FILE, IN_COMMAND, IN_RUN = FileWords(), CommandWords(), RunWords()


def toml(value: object, depth: int = 4) -> str:
    """A value as a release file holds it, so many levels deep."""
    if depth == 0 and isinstance(value, dict | list | tuple):
        return "..."
    if isinstance(value, dict):
        pairs = (f"{k} = {toml(v, depth - 1)}" for k, v in value.items() if k is not ...)
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml(v, depth - 1) for v in value)}]" if len(value) <= 5 else "[...]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Call):
        return "[...]"  # what Python would compute is typed in a file
    said = typed(value)
    return f"'{said}'" if isinstance(value, Fraction) and "/" in said else said


def option(a: Arg) -> str:
    """A parameter as an option of the command line."""
    name = f"--{a.name.replace('_', '-')}"
    if isinstance(a.value, list):
        return " ".join(f"{name} {shell(x)}" for x in a.value)
    return name if a.value is Unset else f"{name} {shell(a.value)}"


def shell(value: object) -> str:
    """A value as it is typed in a shell."""
    if isinstance(value, dict):
        return ",".join(f"{k}={shell(v)}" for k, v in value.items() if k is not ...)
    if isinstance(value, Call) and value.verb == "dict":
        return shell(value.named)
    if isinstance(value, Code) and value.text.isidentifier():  # a path that a hint doesn't know
        return "budget.db"
    if value is ... or isinstance(value, Fraction):
        return typed(value)
    text = value if isinstance(value, str) else typed(value)
    return shlex.quote(text if len(text) <= 300 else f"{text[:60]}...")


def _given(c: Call) -> list[object]:
    return [a for a in c.args if a is not ...]


def _ledger(c: Call) -> str:
    options = [option(Arg(k, v)) for k, v in c.named.items()]
    verb = "create" if c.verb == "create" else "show"
    return " ".join([f"dpframe ledger {verb}", *options, *("..." if a is ... else shell(a) for a in c.args)])
