"""Pieces of HTML that fit any theme: cards, tables of facts, bars, the shape of a law."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import singledispatch
from html import escape

LINE = "1px solid rgba(127,127,127,.45)"
_CELL = "text-align:left;vertical-align:top;padding:.15em 1.2em .15em 0;border:0;background:none"
_CARD = f"border:{LINE};border-radius:.4em;padding:.6em .9em;margin:.3em 0;max-width:64em;line-height:1.4"


def text(x: object) -> str:
    """Escaped text, quotes included."""
    return escape(str(x), quote=True)


def card(kind: str, title: str, *parts: str) -> str:
    """One framed thing: what it is, its title, and what there is to say. ``parts`` are HTML, the rest is text."""
    head = (
        f'<div style="overflow-wrap:anywhere"><span style="opacity:.75">{text(kind)}</span>'
        f' <strong style="font-weight:600">{text(title)}</strong></div>'
    )
    return f'<div class="dpframe" style="{_CARD}">{head}{"".join(parts)}</div>'


def note(words: str) -> str:
    """A line of words, as text."""
    return f'<div style="opacity:.85;overflow-wrap:anywhere">{text(words)}</div>'


def warning(words: str) -> str:
    """A line that must not be missed."""
    style = f"border-left:.3em solid;padding:.1em .6em;margin:.4em 0;overflow-wrap:anywhere;border-top:{LINE}"
    return f'<div style="{style};border-bottom:{LINE}"><strong>{text(words)}</strong></div>'


def facts(rows: Iterable[tuple[str, str]], *, indent: bool = False) -> str:
    """Two columns: names and what there is to say of them. All text."""
    body = "".join(
        f'<tr style="background:none"><th scope="row" style="{_CELL};font-weight:400;opacity:.75;white-space:nowrap">'
        f'{text(label)}</th><td style="{_CELL};overflow-wrap:anywhere">{text(value)}</td></tr>'
        for label, value in rows
    )
    space = ";margin-left:1.2em" if indent else ""
    return (
        f'<table style="border-collapse:collapse;border:0;font-size:95%;margin:.2em 0{space}">{body}</table>'
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a head. All text."""
    head = "".join(
        f'<th scope="col" style="{_CELL};border-bottom:{LINE};font-weight:600">{text(c)}</th>'
        for c in columns
    )
    body = "".join(
        '<tr style="background:none">'
        + "".join(f'<td style="{_CELL};{_wrapping(x)}">{text(x)}</td>' for x in row)
        + "</tr>"
        for row in rows
    )
    inner = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    whole = f'<table style="border-collapse:collapse;border:0;font-size:90%;margin:.2em 0">{inner}</table>'
    return f'<div style="overflow-x:auto">{whole}</div>'


def _wrapping(x: object) -> str:
    return "white-space:nowrap" if len(str(x)) <= 24 else "overflow-wrap:anywhere;min-width:12em"


def bar(label: str, parts: Sequence[tuple[float, float]], words: str) -> str:
    """A bar that is filled from the left: (share of the whole, strength from 0 to 1) for each piece.

    ``words`` say the same, for whoever can't see it.
    """
    pieces = "".join(
        f'<div style="width:{100 * min(1.0, max(0.0, share)):.4g}%;background:currentColor;opacity:{strength:g}"></div>'
        for share, strength in parts
    )
    frame = f"display:flex;height:.7em;max-width:30em;border:{LINE};border-radius:.35em;overflow:hidden"
    said = text(f"{label}: {words}")
    return (
        f'<div style="margin:.4em 0"><div role="img" aria-label="{said}" style="{frame}">{pieces}</div>'
        f'<div style="font-size:90%;overflow-wrap:anywhere">{said}</div></div>'
    )


def shape(heights: Sequence[float], words: str) -> str:
    """Columns of the given heights, from 0 to 1."""
    columns = "".join(
        f'<div style="flex:1;height:{100 * h:.4g}%;background:currentColor;opacity:.6"></div>'
        for h in heights
    )
    frame = f"display:flex;align-items:flex-end;gap:1px;height:4em;max-width:24em;border-bottom:{LINE}"
    return f'<div role="img" aria-label="{text(words)}" style="{frame};margin:.4em 0">{columns}</div>'


_waiting: list[Callable[[], object]] = []


def when_first_shown(load: Callable[[], object]) -> None:
    """Call ``load``, which registers pages, before the first page is made."""
    _waiting.append(load)


@singledispatch
def page(x: object) -> str:
    """The page of an object; ``dpframe.display`` says how each kind looks."""
    if _waiting:
        _waiting.pop()()
        return page(x)
    return f"<pre>{text(repr(x))}</pre>"


class Page:
    """An object that notebooks show as its page."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return page(self)


__all__ = [
    "Page",
    "bar",
    "card",
    "facts",
    "note",
    "page",
    "shape",
    "table",
    "text",
    "warning",
    "when_first_shown",
]
