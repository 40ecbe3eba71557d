"""Writes what type checkers read of ``dpframe`` and of its verbs: ``python tests/write_stubs.py``."""

from __future__ import annotations

from pathlib import Path

import dpframe as dp
from dpframe.api import verbs
from dpframe.base.docstrings import sections
from dpframe.statistics.question import Statistic
from dpframe.statistics.table import STATISTICS

COMES_BACK = {
    "count": "N",
    "number": "N | F",
    "measure": "F",
    "pair": "P",
}  # every other answer is a table: R
HEAD = '''\
"""What type checkers see of ``verbs.py``; written by ``tests/write_stubs.py`` from the table of statistics."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar, Unpack, overload

from dpframe.accounting.events import Number
from dpframe.api.options import Options
from dpframe.statistics.question import Statistic

N = TypeVar("N")
F = TypeVar("F")
P = TypeVar("P")
R = TypeVar("R")

def verb(statistic: Statistic) -> Callable[..., Any]: ...

class Verbs(Generic[N, F, P, R]):
    def _ask_statistic(
        self, statistic: Statistic, args: tuple[Any, ...], arguments: dict[str, Any], options: Options
    ) -> Any: ...
'''


def method(s: Statistic, types: dict[str, str], answer: str, *, document: bool = True) -> str:
    """One method, with ``types`` for parameters instead of what the question takes."""
    shown = ["self"]
    for p in s.parameters.values():
        if p.kind is p.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        default = "" if p.default is p.empty else f" = {p.default!r}"
        shown.append(f"{p.name}: {types.get(p.name, p.annotation)}{default}")
    shown.append("**options: Unpack[Options]")
    summary = sections(s.ask.__doc__ or "")[""].strip().split("\n")[0]
    body = f'\n        """{summary}"""\n' if document else " ...\n"
    one = f"    def {s.name}({', '.join(shown)}) -> {answer}:"
    if len(one) <= 110 - (0 if document else 4):
        return one + body
    lines = "".join(f"        {p},\n" for p in shown)
    return f"    def {s.name}(\n{lines}    ) -> {answer}:{body}"


def of_verbs() -> str:
    """A method for each statistic."""
    out = HEAD
    for s in STATISTICS.values():
        answer = COMES_BACK.get(s.answer, "R")
        if s.several is None:
            out += method(s, {}, answer)
            continue
        one, many = s.parameters[s.several].annotation.split(" | ")
        for kind, comes in ((one, answer), (many, "R")):
            out += "    @overload\n" + method(s, {s.several: kind}, comes, document=False)
    return out


def of_names() -> str:
    """``import dpframe``: every public name, from where it is."""
    homes = {home: list(names) for home, names in dp._HOMES.items()}
    homes |= {s.ask.__module__.removeprefix("dpframe."): [] for s in STATISTICS.values()}
    for s in STATISTICS.values():
        homes[s.ask.__module__.removeprefix("dpframe.")].append(s.name)
    lines = [f"from dpframe import {m} as {m}" for m in dp._MODULES]
    lines += ["from dpframe._version import __version__ as __version__"]
    for home in sorted(homes):
        renamed = {"names": "mechanisms"} if home == "mechanisms.registry" else {}
        names = sorted([*homes[home], *renamed])
        lines += [f"from dpframe.{home} import {name} as {renamed.get(name, name)}" for name in names]
    every = "".join(f'    "{name}",\n' for name in dp.__all__)
    head = '"""What type checkers see of ``dpframe``; written by ``tests/write_stubs.py``."""'
    return f"{head}\n\n" + "\n".join(lines) + f"\n\n__all__ = [\n{every}]\n"


STUBS = {Path(dp.__file__).with_suffix(".pyi"): of_names, Path(verbs.__file__).with_suffix(".pyi"): of_verbs}

if __name__ == "__main__":
    for path, text in STUBS.items():
        path.write_text(text())
