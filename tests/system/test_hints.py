"""What to write instead is data: no text that is raised or warned has its hint inside."""

from __future__ import annotations

import ast
from pathlib import Path

import dpframe as dp

PACKAGE = Path(dp.__file__).parent
SAID = {"print", "exit", "_stop"}  # what the command line says of itself, in its own words


def inside(source: str) -> list[int]:
    """Lines of calls and raised errors that have a text with a hint among their arguments."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", getattr(node.func, "attr", "")) not in SAID
        ):
            texts = [t for a in node.args for t in ast.walk(a) if isinstance(t, ast.Constant)]
            found += [t.lineno for t in texts if isinstance(t.value, str) and "Hint: " in t.value]
    return found


def test_hints_are_data():
    wrong = {str(p.relative_to(PACKAGE)): at for p in PACKAGE.rglob("*.py") if (at := inside(p.read_text()))}
    assert not wrong


def test_a_hint_inside_a_text_is_seen():
    assert inside('raise InputError(f"{x} is wrong. Hint: eps=1")') == [1]
    assert inside('raise InputError(f"{x} is wrong.", hint=Arg("eps", 1))') == []
