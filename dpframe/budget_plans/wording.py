"""Messages in the words of whoever reads them: the keys of a release file, or the options of the command line.

What is raised is written for Python and hints at calls. Whoever typed a file or a command gets the same words as
they would type them: ``bounds=(0, 100)`` is ``bounds = [0, 100]`` in a file, ``eps=0.5`` is ``--eps 0.5`` in a command.
"""

from __future__ import annotations

import ast
import inspect
import re
import shlex
import warnings
from collections.abc import Callable, Iterator

from dpframe.statistics.table import STATISTICS

OPTIONS = frozenset(
    [
        "eps",
        "delta",
        "delta_calls",
        "rho",
        "neighbors",
        "unit",
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
_PHRASES = (  # what only Python has
    (r" A privacy-loss distribution is no filter: s\.report\([^)]*\) reads one\.", ""),
    (r" Earlier answers are in s\.releases\.", ""),
    (r"(The first answer is) s\[('[^']*')\]", r"\1 that of query \2"),
    (r"ask again (with|under) the same (request_)?id", "run again"),
)
_STOPS = (
    r"(?<![\w/.\-',])(?<!--per-scope )(?<!--lifetime )"  # not inside a word, a path, a quotation, an option
)
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")
_NOTHING = r"(?:[\s,;:)]|\.(?![\d.])|$)"
_TOKEN = re.compile(
    rf"(?P<quoted>(?<!\w)(?:{_QUOTED.pattern}))|{_STOPS}(?P<call>\.?[A-Za-z][\w.]*)\("
    rf"|{_STOPS}(?P<name>[A-Za-z_]+)=(?!=|{_NOTHING})|{_STOPS}(?P<bare>[A-Za-z_]+)=(?={_NOTHING})"
)
_SIMPLE = re.compile(r"[^\s,;()]*[^\s,;().:]")
Words = Callable[[ast.expr], str]


def in_file(message: object) -> str:
    """The message in the keys and values of a release file."""
    return _in(str(message), _file_pair, _file_call)


def in_command(message: object) -> str:
    """The message in the options of the command line."""
    return _in(str(message), _option, _command)


def scope_in_command(message: object) -> str:
    """The message with its scope as an option, which no release file has."""
    return re.sub(rf"{_STOPS}scope=('[^']*')", lambda m: f"--scope {shlex.quote(m[1][1:-1])}", str(message))


def _in(
    text: str, pair: Callable[[str, ast.expr | None], str], call: Callable[[ast.Call], str | None]
) -> str:
    for pattern, said in _PHRASES:
        text = re.sub(pattern, said, text)
    told, hint, advice = text.partition("Hint:")
    try:
        return "".join(_pieces(told, pair, None)) + hint + "".join(_pieces(advice, pair, call))
    except (RecursionError, MemoryError):  # nested too deeply to be read; it is said as it is
        return text


def _pieces(
    text: str,
    pair: Callable[[str, ast.expr | None], str],
    call: Callable[[ast.Call], str | None] | None,
) -> Iterator[str]:
    """The text, token by token. Calls before the hint name what was asked, and stay."""
    at = 0
    while (m := _TOKEN.search(text, at)) is not None:
        yield text[at : m.start()]
        at = m.end()
        said: str | None = None
        if m["bare"]:
            said = pair(m["bare"], None)
        elif m["name"]:
            at = _end(text, m.end())
            value = _parsed(text[m.end() : at])
            said = None if value is None else pair(m["name"], value)
        elif m["call"]:
            at = _end(text, m.start())
            made = _parsed(text[m.start() : at].removeprefix("."))
            if call is not None and isinstance(made, ast.Call):
                said = call(made)
        yield text[m.start() : at] if said is None else said
    yield text[at:]


def _end(text: str, start: int) -> int:
    """Where the value or the chain of calls that starts there ends: brackets and quotations are closed."""
    at, depth = start, 0
    while at < len(text):
        quoted = _QUOTED.match(text, at)
        if quoted is not None:
            at = quoted.end()
        elif text[at] in "([{":
            at, depth = at + 1, depth + 1
        elif text[at] in ")]}":
            if not depth:
                return at
            at, depth = at + 1, depth - 1
        elif depth:
            at += 1
        else:
            word = _SIMPLE.match(re.split(r"""[(\[{'")\]}]""", text[at:], maxsplit=1)[0])
            if word is None:
                return at
            at += len(word[0])
            continue
        if not depth and not re.match(r"\.\w+\(", text[at:]):
            return at
        if not depth:
            at += text[at:].index("(")
    return at


def _parsed(source: str) -> ast.expr | None:
    for text in (source, source.replace(", ...}", "}")):
        try:
            with warnings.catch_warnings():  # of odd escapes: nothing runs
                warnings.simplefilter("ignore")
                tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError):
            continue
        lines = text.encode().splitlines()  # as Python counts them
        for node in ast.walk(tree):  # numbers stay as they were typed
            if isinstance(node, ast.Constant) and not isinstance(node.value, str | bytes | bool | type(None)):
                node.kind = lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode()
        return tree
    return None


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _fraction(node: ast.expr) -> str | None:
    if isinstance(node, ast.Call) and _name(node.func) == "Fraction":
        return ast.unparse(node)[len("Fraction(") : -1].replace(", ", "/").removesuffix("/1")
    return None


def _entries(node: ast.expr, words: Words) -> list[tuple[str, str]] | None:
    """Keys and values of a dict, however it is written."""
    if isinstance(node, ast.Dict):
        return [(_plain(k), words(v)) for k, v in zip(node.keys, node.values) if k is not None]
    if isinstance(node, ast.Call) and _name(node.func) == "dict":
        return [(k.arg or "", words(k.value)) for k in node.keywords]
    return None


def _plain(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value) if isinstance(node.value, str) else node.kind or str(node.value)
    return ast.unparse(node)


# ---- release files ----


def _toml(node: ast.expr) -> str:
    entries, fraction = _entries(node, _toml), _fraction(node)
    if entries is not None:
        return "{ " + ", ".join(f"{k} = {v}" for k, v in entries) + " }"
    if fraction is not None:
        return f"'{fraction}'" if "/" in fraction else fraction
    if isinstance(node, ast.Tuple | ast.List):
        return f"[{', '.join(map(_toml, node.elts))}]"
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bool):
        return repr(node.value) if isinstance(node.value, str) else str(node.value).lower()
    if isinstance(node, ast.Call):
        return "[...]"  # what Python would compute is typed in a file
    return _plain(node)


def _file_pair(name: str, value: ast.expr | None) -> str:
    if name == "scope":
        return "scope=" + ("" if value is None else ast.unparse(value))
    return name if value is None else f"{name} = {_toml(value)}"


def _file_call(made: ast.Call) -> str | None:
    verb, known = _name(made.func), STATISTICS
    given = [a for a in made.args if not (isinstance(a, ast.Constant) and a.value is ...)]
    pairs = [_file_pair(k.arg or "", k.value) for k in made.keywords]
    if verb in ("create", "Ledger"):
        return _command(made)
    if verb == "public":
        return " ".join(map(_toml, given)) or "[...]"
    if verb == "Session":
        return f"[budget] with {', '.join(pairs)}"
    if verb == "groupby":
        by = given[0] if len(given) == 1 else ast.List(given)
        pairs = [f"groupby = {_toml(by)}", *pairs]
    elif verb in known:
        names = inspect.signature(known[verb].ask).parameters
        pairs = [f"statistic = {verb!r}", *(f"{n} = {_toml(a)}" for n, a in zip(names, given)), *pairs]
    elif verb in ("query", "dp_agg", "agg"):
        inner = [_file_call(a) for a in given if isinstance(a, ast.Call)]
        pairs = [*(x for x in inner if x is not None), *pairs]
    else:
        return None
    if isinstance(made.func, ast.Attribute) and isinstance(made.func.value, ast.Call):  # of groups
        pairs = [*filter(None, [_file_call(made.func.value)]), *pairs]
    return ", ".join(pairs)


# ---- the command line ----


def _typed(node: ast.expr) -> str:
    if isinstance(node, ast.Name):  # a path that a hint doesn't know
        return "budget.db"
    entries, fraction = _entries(node, _typed), _fraction(node)
    if entries is not None:
        return ",".join(f"{k}={v}" for k, v in entries)
    text = _plain(node) if fraction is None else fraction
    return text if fraction or (isinstance(node, ast.Constant) and node.value is ...) else shlex.quote(text)


def _option(name: str, value: ast.expr | None) -> str:
    option = f"--{name.replace('_', '-')}"
    if name not in OPTIONS:
        return f"{name}=" + ("" if value is None else ast.unparse(value))
    if isinstance(value, ast.List):
        return " ".join(f"{option} {_typed(x)}" for x in value.elts)
    return option if value is None else f"{option} {_typed(value)}"


def _command(made: ast.Call) -> str | None:
    verb = _name(made.func)
    pairs = [_option(k.arg or "", k.value) for k in made.keywords]
    if verb == "Session":
        return " ".join(pairs)
    if verb in ("create", "Ledger"):
        return " ".join(
            [f"dpframe ledger {'create' if verb == 'create' else 'show'}", *pairs, *map(_typed, made.args)]
        )
    return None
