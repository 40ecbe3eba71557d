"""Releases as pages: the answer, its error, what it cost, and what to know about it."""

from __future__ import annotations

from typing import Any

from dpframe.accounting.report import Report
from dpframe.base.html import card, facts, note, text, warning
from dpframe.release.release import Release


def release(r: Release) -> str:
    """The answer, and a table of what made it."""
    inner = getattr(r.value, "_repr_html_", None)
    number = r.plan.scalar
    if number or inner is None:
        body = f'<div style="font-size:120%;margin:.2em 0">{text(shown(r.value))}</div>'
    else:
        body = f'<div style="overflow-x:auto">{inner()}</div>'
    rows = [("cost", r._paid)]
    if not number:
        rows += [(f"{o.name} ±", _margin(r, o)) for o in r.plan.outputs]
    rows.append(("noise", r.plan.mechanisms))
    if r.label:
        rows.append(("label", r.label))
    if r.released_at is not None:
        rows.append(("stored", f"drawn {r.released_at:%Y-%m-%d %H:%M:%S} UTC; asked again for nothing"))
    if r.head:
        rows.append(("ledger", f"head {r.head[:24]}"))
    return card("release", r.plan.describe(), body, facts(rows), remarks(r))


def answer(value: Any) -> str:
    """A released number with its margin, and what to know about it."""
    return f"<div>{text(repr(value))}{remarks(value.release)}</div>"


def remarks(r: Release) -> str:
    """What must not be missed: the session without a limit, and questions that were asked before."""
    said = ""
    if not r.limited:
        said += warning("No session was open: nothing limits the total.")
    if r.repeat_of is not None and not r.replayed:
        said += note(f"The same question was charged before (charge {r.repeat_of}) and was charged again.")
    return said


def report(r: Report) -> str:
    """What charges add up to."""
    rows = [("accountant", r.accountant), ("eps", f"{r.eps:.6g}"), ("delta", f"{r.delta:.6g}")]
    words = "A reading of plans that were fixed beforehand; no gate."
    return card("report", f"{r.charges:,} charge{'s' * (r.charges != 1)}", facts(rows), note(words))


def shown(value: Any) -> str:
    """A released number or pair with its margin, without what it cost."""
    return repr(value).rsplit(" (", 1)[0]


def _margin(r: Release, o: Any) -> str:
    fixed = o.error(r.plan.laws, None)
    if not o.answer.ranged:
        return f"{fixed:,.6g}, of {o.margin_of}"
    return "differs from row to row: .interval(0.95)" if fixed is None else f"{fixed:,.6g} (95 %)"
