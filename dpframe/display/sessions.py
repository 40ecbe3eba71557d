"""Sessions as pages: whom they protect, what is left, and every charge."""

from __future__ import annotations

from dpframe.api.partition import Partition
from dpframe.base.html import bar, card, facts, note, table, warning
from dpframe.errors import DPError, number, show
from dpframe.session.account import Entry
from dpframe.session.payer import budgets, standing
from dpframe.session.session import Session

SHOWN = 12  # charges


def session(s: Session) -> str:
    """Whom it protects, bars of its budgets, and its last charges."""
    parts: list[str] = []
    rows = [("protects", s.policy.protects)]
    now = standing(s)
    if not now.limited:
        parts.append(warning("No session is open: calls are recorded, and nothing limits the total."))
        rows.append(("spent", s.spent.text()))
    else:
        rows.append(("in use", _in_use(s)))
    if s.ledger is not None:
        scope = "" if s.scope is None else f", scope {s.scope!r}"
        rows.append(("ledger", f"{s.ledger!r}{scope}"))
    if s.budget.unusual and not s.budget.unlimited:
        rows.append(("accountant", s.budget.unusual))
    if now.around:
        rows.append(("inside", f"{now.around} other session{'s' * (now.around > 1)}, charged as well"))
    parts.append(facts(rows))
    if now.divided:
        parts.append(note("Split into parts that have all of it."))
    try:
        parts += _bars(s)
    except DPError as e:  # a ledger that can't be read must not hide the rest
        parts.append(warning(f"The ledger can't be read: {type(e).__name__}."))
    parts.append(_charges(s))
    return card("session", _title(s), *parts)


def partition(p: Partition) -> str:
    """What the parts cost together, and what each has left."""
    keys = list(p)[:SHOWN]
    rows = [(k, p[k].session.spent.text()) for k in keys]
    more = note(f"and {len(p) - len(keys):,} more parts") if len(p) > len(keys) else ""
    return card(
        "partition", p._charge.question, note(f"charged {p.cost}"), table(("part", "spent"), rows), more
    )


def _title(s: Session) -> str:
    b = s.budget
    if b.unlimited:
        return "on a ledger" if s.ledger is not None else "ambient, no limit"
    return b.text()


def _in_use(s: Session) -> str:
    if standing(s).here:
        return "here"
    return "open, but not here: with s: ... or s.use()" if standing(s).open else "no"


def _bars(s: Session) -> list[str]:
    out = []
    for domain, b, state in budgets(s):
        name = f"ledger {domain} " if domain else ""
        if b.eps is not None and b.rules.by_eps and state.eps is not None:
            left = show(b.remaining(state).eps)
            words = f"{show(state.eps)} of {show(b.eps)} added up; {left} would still be granted"
            out.append(bar(f"{name}eps", [(float(state.eps / b.eps), 0.75)], words))
        elif state.closed_by:
            out.append(note(f"Epsilons are added up no more since {state.closed_by} was charged by rho."))
        if b.rho_limit > 0:
            words = f"{number(state.rho)} of {number(b.rho_limit)} added up"
            words += "; from here on only sums of eps grant" * (state.rho >= b.rho_limit)
            out.append(bar(f"{name}rho", [(float(state.rho / b.rho_limit), 0.75)], words))
        if b.delta_calls > 0:
            words = f"{show(state.delta)} of {show(b.delta_calls)} used by single calls"
            out.append(bar(f"{name}delta", [(float(state.delta / b.delta_calls), 0.75)], words))
    return out


def _charges(s: Session) -> str:
    entries = list(standing(s).entries)
    if not entries:
        return note("Nothing was charged yet.")
    last = entries[-SHOWN:]
    rows = [
        (e.index, e.label or "", e.question, _cost(e), e.mechanism, f"{e.time:%H:%M:%S}", _remarks(e))
        for e in last
    ]
    hidden = standing(s).charges - len(last)
    more = note(f"{hidden:,} earlier charge{'s' * (hidden != 1)}: s.report()") if hidden else ""
    return more + table(("#", "label", "question", "cost", "mechanism", "UTC", ""), rows)


def _cost(e: Entry) -> str:
    return "free" if e.replayed else e.cost.text()


def _remarks(e: Entry) -> str:
    said = []
    if e.replayed:
        said.append("stored answer, paid for before")
    elif e.repeat_of is not None:
        said.append(f"repeat of {e.repeat_of}, charged again")
    if e.release is None and e.mechanism != "parts":  # the answers of parts are in their own sessions
        said.append("no answer: it failed, or was interrupted")
    if not e.private:
        said.append("not private: a test's noise")
    return "; ".join(said)
