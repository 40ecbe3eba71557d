"""A session's statement: one page, without jargon, for whoever answers for the release."""

from __future__ import annotations

import math
import textwrap
from fractions import Fraction
from html import escape

from dpframe.accounting.conversion import eps_of_rho
from dpframe.accounting.events import round_up
from dpframe.accounting.filter import Budget, State
from dpframe.errors import show
from dpframe.session.account import Account, Entry

_REPORTED_DELTA = Fraction(1, 10**6)  # at which a budget in rho is put into words
_HARDLY_ANY = 14  # e^14 is a million
_WIDTH = 96


class Statement(str):
    """The page as text; notebooks show it in one piece."""

    def _repr_html_(self) -> str:
        return (
            f'<pre style="white-space:pre-wrap;overflow-wrap:anywhere;background:none">{escape(self)}</pre>'
        )

    def __repr__(self) -> str:
        return str(self)


def statement(session: Account) -> Statement:
    """State what ``session`` promises and has released; see ``Session.statement``."""
    eps, delta = _promised(session)
    parts = [
        ("Privacy statement", ""),
        ("Who is protected", _protected(session)),
        ("From whom", _FROM),
        ("What is promised", _promise(session, eps, delta)),
        ("What was released", _releases(session)),
        ("In total", _total(session)),
        ("Over time", _over_time(session)),
        ("What is not promised", _not_promised(session)),
    ]
    shown = [f"{title}\n{text}".rstrip() for title, text in parts if text or title == "Privacy statement"]
    return Statement("\n\n".join(shown) + "\n")


_FROM = textwrap.fill(
    "Anybody who sees the released results, all of them together, whatever else they know or will ever learn,"
    " and however much they compute. They may know everything about everybody else.",
    _WIDTH,
)


def _promised(session: Account) -> tuple[Fraction | None, Fraction]:
    """(eps, delta) that hold for everything the session ever releases; eps is None without a limit."""
    budget = _budget(session)
    if budget.eps is not None:
        return budget.eps, budget.delta
    if budget.rho is None:
        return None, Fraction(0)
    eps = round_up(eps_of_rho(float(budget.rho), float(_REPORTED_DELTA)))
    return eps, budget.delta_calls + _REPORTED_DELTA


def _budget(session: Account) -> Budget:
    """What limits everything together: the ledger's budget, if there is one."""
    return session.whole


def _protected(session: Account) -> str:
    if session.policy.unit is None:
        who = "Every single row of the data by itself. A person with several rows is protected less."
    else:
        name = session.policy.unit_name
        who = f"Whoever has a {name} of their own, with all rows that carry it. Rows without a {name} were left out."
    what = (
        "What the data say about them is protected; that they are in the data is taken as known."
        if session.policy.replace
        else "Whether they are in the data at all is protected, and with it what the data say about them."
    )
    return textwrap.fill(f"{who} {what}", _WIDTH)


def _promise(session: Account, eps: Fraction | None, delta: Fraction) -> str:
    """The guarantee in odds.

    Privacy: the likelihood ratio of any result is at most e^eps between neighbours (but for delta), so
    odds change by at most e^eps. Two records in the same place are neighbours under replace_one, and
    two steps apart under add_remove, where telling them apart has e^(2 eps).
    """
    if eps is None:
        return textwrap.fill(
            "Nothing limits the total here: the session was opened without a budget.", _WIDTH
        )
    it = "row" if session.policy.unit is None else session.policy.unit_name
    label = f"eps = {show(eps)}" if _budget(session).eps is not None else _rho(_budget(session).rho)
    technically = f"\n(Technically: {label}, delta = {show(delta)}.)"
    if eps > _HARDLY_ANY:
        text = (
            f"Hardly anything. A result may be more than a million times more or less likely with any one {it} than"
            " without it. That protects nobody in practice."
        )
        return textwrap.fill(text, _WIDTH) + technically
    replace = session.policy.replace
    other = "if it were another one" if replace else "if it were not in the data"
    believed = "a certain thing about it was true" if replace else "it is in the data"
    text = (
        f"Take any one {it}. Every result would have been nearly as likely {other}: at most"
        f" {odds(eps)} times more or less likely. So whoever thought beforehand that {believed} with odds of 1 to 1"
        f" (50 %) can be led by all results together to odds of at most {odds(eps)} to 1 ({_percent(eps)})."
    )
    if not replace:
        text += (
            f" Whoever wavers between two stories about what the data say of it can be led to at most"
            f" {odds(2 * eps)} to 1."
        )
    if eps > 5:
        text += " Such odds protect little against somebody who knows much already."
    if delta:
        text += f" This may fail, with a chance of at most {in_words(delta)}."
    return textwrap.fill(text, _WIDTH) + technically


def odds(eps: Fraction) -> str:
    """e^eps to three digits, rounded up so that it is never understated."""
    factor = math.exp(eps)
    grain = Fraction(10) ** (math.floor(math.log10(factor)) - 2)
    shown = math.ceil(Fraction(factor) / grain) * grain
    return f"{int(shown):,}" if grain >= 1 else f"{float(shown):.{2 - math.floor(math.log10(factor))}f}"


def _percent(eps: Fraction) -> str:
    if eps > 7:
        return "practically certainty"
    chance = 100 / (1 + math.exp(-float(eps)))
    return f"{math.ceil(10 * chance) / 10:g} %"


def in_words(delta: Fraction) -> str:
    """A small chance as one in so many, rounded so that it is never understated."""
    return f"1 in {math.floor(1 / delta):,}"


def _releases(session: Account) -> str:
    entries = list(session.entries)
    if not entries:
        return "Nothing yet."
    return "\n".join(line for i, e in enumerate(entries, 1) for line in _release(i, e))


def _release(number: int, e: Entry) -> list[str]:
    name = f"{e.label}: " if e.label else ""
    cost = _rho(e.cost.rho) if e.cost.eps is None else f"eps = {show(e.cost.eps)}"
    lines = [f"{number}. {e.time:%Y-%m-%d %H:%M} UTC  {name}{e.question}  (uses {cost})"]
    if e.replayed:
        lines.append("   an answer that was given and paid for before")
    if e.release is None:
        return [*lines, "   charged, and no result was kept"]
    plan = e.release.plan
    for o in plan.outputs:
        bounds = o.question.bounds
        kept = (
            ""
            if bounds is None
            else f"values counted as at least {show(bounds[0])} and at most {show(bounds[1])}; "
        )
        lines.append(f"   {o.name}: {kept}{_error(o.answer.error(plan.laws, None), o.answer.margin_of)}")
    return lines


def _error(margin: float | None, of: str) -> str:
    if margin is None:
        return "how exact it is depends on the number of rows; the result comes with its interval"
    shown = f"{margin:,.0f}" if margin >= 1000 else f"{margin:.4g}"
    about = "" if of == "the answer" else f"{of}, "
    return f"{about}within {shown} of the exact figure, 95 times in 100"


def _total(session: Account) -> str:
    if session.shared is None:
        return textwrap.fill(
            _used(session.budget, session.state, "The promise above is for all of it"), _WIDTH
        )
    names = {
        "total": "Everybody who uses the ledger",
        "scope": f"The scope {session.scope!r}",
        "lifetime": "All windows together",
    }
    lines = [
        f"{names[domain]}: {_used(budget, state, 'This holds for all of it')}"
        for domain, (budget, state) in session.shared.items()
    ]
    lines.append(
        "The promise above is for everything that was ever charged to the ledger, listed here or not."
    )
    return "\n".join(textwrap.fill(line, _WIDTH) for line in lines)


def _used(budget: Budget, state: State, holds: str) -> str:
    spent = budget.spent(state)
    used = _rho(spent.rho) if budget.eps is None and budget.rho else f"eps = {show(spent.eps)}"
    if budget.unlimited:
        return f"{used} has been used, of no limit."
    whole = _rho(budget.rho) if budget.eps is None else f"eps = {show(budget.eps)}"
    return f"{used} of {whole} has been used. {holds}: nothing more can be released once it is used up."


def _over_time(session: Account) -> str:
    """What a window means; nothing without one."""
    return textwrap.fill(session.over_time, _WIDTH)


def _rho(x: Fraction | None) -> str:
    return f"rho = {float(x or 0):.6g}"


def _not_promised(session: Account) -> str:
    points = [
        "That nothing can be learnt about a person: what is true of people in general applies to each of them.",
        "Anything about the analyst, who works with the data themselves and sees them.",
        "How long a computation took, or how much memory it used: that may depend on the data.",
        "Anything about other data sets, or other releases from the same data, that this account does not list."
        " Each of them adds to what is known.",
        "That the data, the bounds or the choice of the questions are right.",
    ]
    return "\n".join(textwrap.fill(p, _WIDTH, initial_indent="- ", subsequent_indent="  ") for p in points)
