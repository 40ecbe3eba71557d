"""A session's statement: one page, without jargon, for whoever answers for the release."""

from __future__ import annotations

import math
import textwrap
from fractions import Fraction
from html import escape

from dpframe.accounting.conversion import eps_of_rho
from dpframe.accounting.events import Cost, round_up
from dpframe.accounting.filter import Budget, State
from dpframe.planning.plan import Plan
from dpframe.session.account import Account, Entry

_REPORTED_DELTA = Fraction(1, 10**6)  # at which a budget in rho is put into words
_HARDLY_ANY = 14  # e^14 is a million
_MUCH = 1000.0  # a rho that stands for far more than that
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
    parts = [
        ("Privacy statement", ""),
        ("Who is protected", _protected(session)),
        ("From whom", _from_whom(session)),
        ("What is promised", _promise(session)),
        ("What was released", _releases(session)),
        ("In total", _total(session)),
        ("Over time", textwrap.fill(session.over_time, _WIDTH)),
        ("What is not promised", _not_promised()),
    ]
    shown = [f"{title}\n{text}".rstrip() for title, text in parts if text or title == "Privacy statement"]
    return Statement("\n\n".join(shown) + "\n")


def _protected(session: Account) -> str:
    policy = session.policy
    k = policy.contributions
    if k > 1:
        who = (
            f"Any {k} rows of the data together, whosever they are. A person with at most {k} rows is protected with all of"
            f" them; one with more is protected less."
        )
    elif policy.unit is None:
        who = "Every single row of the data by itself. A person with several rows is protected less."
    else:
        name = policy.unit_name
        lacks = f"a {name}" if len(policy.unit) == 1 else "one of these"
        who = (
            f"Every single {name} by itself, with all rows that carry it. A person with several of them is protected"
            f" less. Rows without {lacks} were left out."
        )
    it, they = ("them", "they are") if k > 1 else ("it", "it is")
    what = (
        f"What the data say about {it} is protected; that {they} in the data is taken as known."
        if policy.replace
        else f"Whether {they} in the data at all is protected, and with it what the data say about {it}."
    )
    return textwrap.fill(f"{who} {what}", _WIDTH)


def _from_whom(session: Account) -> str:
    together = "" if session.window and session.lifetime is None else ", all of them together,"
    return textwrap.fill(
        f"Anybody who sees the released results{together or ','} whatever else they know or will ever learn,"
        " and however much they compute. They may know everything about everybody else.",
        _WIDTH,
    )


def _promise(session: Account) -> str:
    """The guarantee, of everything together or of each window, as far as the budgets go.

    Privacy: a window's budget is for what is released within it, given what was released before; only the
    budget of a lifetime says anything about all windows together.
    """
    it = session.policy.unit_name
    if session.policy.contributions > 1:
        it = f"set of {it}"
    replace = session.policy.replace
    if not session.window:
        text = _guarantee(session.whole, it, replace, "all results together")
    else:
        each = _guarantee(
            session.whole,
            it,
            replace,
            f"the results of any {session.window}, beside what was released before",
        )
        if session.lifetime is None:
            text = (
                each
                + "\n"
                + textwrap.fill(
                    "Nothing limits what all windows together can show: there the factors multiply.", _WIDTH
                )
            )
        else:
            life = _guarantee(session.lifetime, it, replace, "all results together, over all windows")
            text = f"{life}\n{each}"
    if any(not e.private for e in session.entries):
        text += "\n" + textwrap.fill(
            "None of this holds for the results below that were drawn by a test's source of randomness.",
            _WIDTH,
        )
    return text


def _guarantee(budget: Budget, it: str, replace: bool, what: str) -> str:
    """What one budget promises, first as it is defined, then in odds, where odds can be told from it.

    Privacy: without delta, the likelihood ratio of every result between neighbours is at most e^eps, so odds
    change by at most e^eps. With delta it may be larger, and by more than delta alone says: of the results S
    whose ratio exceeds c e^eps, P(S) <= e^eps Q(S) + delta <= P(S) / c + delta, so P(S) <= delta c / (c - 1).
    With c = 2 that is 2 delta, for every (eps, delta)-DP release; Q(S) is smaller still. Two records in one
    place are neighbours under replace_one and two steps apart under add_remove, where (2 eps, (1 + e^eps) delta)
    holds.
    """
    if budget.unlimited:
        return textwrap.fill(
            "Nothing limits the total here: the session was opened without a budget.", _WIDTH
        )
    eps, delta = _promised(budget)
    other = "if it were another one" if replace else "if it were not in the data"
    believed = "a certain thing about it was true" if replace else "it is in the data"
    technically = f"\n({_technically(budget, eps, delta)}.)"
    if eps > _HARDLY_ANY:
        text = (
            f"Take any one {it}, and {what}. Hardly anything is promised: they may be more than a million times more"
            f" or less likely than {other}. That protects nobody in practice."
        )
        return textwrap.fill(text, _WIDTH) + technically
    times = _above(math.exp(eps))
    if not delta:
        text = (
            f"Take any one {it}, and {what}. Whatever they show would have been nearly as likely {other}: at most"
            f" {times} times more or less likely. So whoever thought before them that {believed} with odds of 1 to 1"
            f" (50 %) can be led to odds of at most {times} to 1 ({_percent(math.exp(eps))})."
        )
        if not replace:
            text += (
                " Whoever wavers between two stories about what the data say of it can be led to at most"
                f" {_above(math.exp(2 * eps))} to 1."
            )
    else:
        text = (
            f"Take any one {it}, and {what}. Whatever one looks for in them, the chance to find it is at most {times}"
            f" times the chance {other}, plus {in_words(delta)}; and the other way round."
        )
        twice, stories = 2 * delta, 2 * delta * Fraction(math.exp(eps) + 1.000001)
        if twice < 1:
            factor = 2 * math.exp(eps)
            text += (
                f" So whoever thought before them that {believed} with odds of 1 to 1 (50 %) is led to odds of more"
                f" than {_above(factor)} to 1 ({_percent(factor)}) with a chance of at most {in_words(twice)}."
            )
        if stories < 1 and not replace:
            text += (
                " Whoever wavers between two stories about what the data say of it is led to more than"
                f" {_above(2 * math.exp(2 * eps))} to 1 with a chance of at most {in_words(stories)}."
            )
    if eps > 5:
        text += " Such odds protect little against somebody who knows much already."
    return textwrap.fill(text, _WIDTH) + technically


def _promised(budget: Budget) -> tuple[Fraction, Fraction]:
    """(eps, delta) that hold for everything that the budget ever grants."""
    if budget.eps is not None:
        return budget.eps, budget.delta
    rho = min(float(min(budget.rho or Fraction(0), Fraction(_MUCH))), _MUCH)
    return round_up(eps_of_rho(rho, float(_REPORTED_DELTA))), budget.delta_calls + _REPORTED_DELTA


def _technically(budget: Budget, eps: Fraction, delta: Fraction) -> str:
    promised = Cost(eps, delta).text(" = ", zeros=True)
    if budget.eps is not None:
        return f"Technically: {promised}"
    technically = f"Technically: {budget.text(' = ')}"
    return technically if (budget.rho or 0) > _MUCH else f"{technically}; that is {promised}"


def _above(factor: float) -> str:
    """Three digits, rounded up so that it is never understated."""
    factor = factor * (1 + 2.0**-50)
    grain = Fraction(10) ** (math.floor(math.log10(factor)) - 2)
    shown = math.ceil(Fraction(factor) / grain) * grain
    return f"{int(shown):,}" if grain >= 1 else f"{float(shown):.{2 - math.floor(math.log10(factor))}f}"


def odds(eps: Fraction) -> str:
    """e^eps to three digits, rounded up so that it is never understated."""
    return _above(math.exp(eps))


def _percent(factor: float) -> str:
    """The chance that odds of ``factor`` to 1 are: rounded up, and never to certainty."""
    chance = 100 / (1 + 1 / (factor * (1 + 2.0**-50)))
    for digits in range(1, 12):
        shown = math.ceil(10**digits * chance) / 10**digits
        if shown < 100:
            return f"{shown:.{digits}f} %" if digits > 1 else f"{shown:g} %"
    raise AssertionError("odds beyond what is put into words")


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
    cost = e.cost.text(" = ")
    lines = [f"{number}. {e.time:%Y-%m-%d %H:%M} UTC  {name}{e.question}  (uses {cost})"]
    if e.replayed:
        lines.append("   an answer that was given and paid for before")
    if not e.private:
        lines.append("   NOT PRIVATE: drawn by a test's source of randomness")
    if e.release is None:
        return [*lines, "   charged, and no result was kept"]
    plan = e.release.plan
    cut = _limits(plan)
    lines += [f"   {x}" for x in (cut, _missing_groups(plan), plan.left_out) if x]
    for o in plan.outputs:
        kept = f"{o.question.clipped}; " if o.question.clipped else ""
        margin = _error(o.error(plan.laws, None), o.margin_of, limited=bool(cut))
        lines.append(f"   {o.name}: {kept}{margin}")
    return lines


def _limits(plan: Plan) -> str:
    """How much of a unit counts: what is beyond is missing, and no margin covers it."""
    if plan.bounding is None:
        return ""
    rows, groups = plan.bounding.rows, plan.bounding.groups
    most = (
        [f"{rows} row{'s' * (rows != 1)}{' in a group' * plan.grouped}"]
        if plan.summed or plan.tallies
        else []
    )
    if plan.bounding.total is not None:
        most = [f"{plan.bounding.total} rows over all groups together", *most]
    most += [f"{groups} group{'s' * (groups != 1)}"] if groups else []
    return (
        f"of each {plan.policy.unit_name} at most {' and '.join(most)} counted; what was beyond is missing, and no margin"
        " below says how much"
        if most
        else ""
    )


def _missing_groups(plan: Plan) -> str:
    """That small groups are missing, where groups are shown that nobody listed."""
    if plan.threshold is not None:
        size, what = plan.threshold.size, plan.threshold.counted
    elif plan.selection is not None:
        size, what = float(plan.selection.size), plan.policy.counted
    else:
        return ""
    things = "rows" if what == "row" else what
    if plan.threshold is not None and plan.threshold.filled is not None:
        things += f" (each of them in {plan.threshold.filled:,} groups; fewer where they are in fewer)"
    return f"groups with fewer than about {size:,.4g} {things} are mostly missing"


def _error(margin: float | None, of: str, *, limited: bool) -> str:
    if margin is None:
        return "how exact it is depends on the number of rows; the result comes with its interval"
    shown = f"{margin:,.0f}" if margin >= 1000 else f"{margin:.4g}"
    about = "" if of == "the answer" else f"{of}, "
    exact = "the exact figure of what counted" if limited else "the exact figure"
    return f"{about}within {shown} of {exact}, 95 times in 100"


def _total(session: Account) -> str:
    own = _used(session.budget, session.state)
    if session.shared is None:
        return textwrap.fill(own, _WIDTH)
    window = session.window
    names = {
        "total": f"Everybody who uses the ledger, within the {window} up to now"
        if window
        else "Everybody who uses the ledger",
        "scope": f"The scope {session.scope!r}",
        "lifetime": "All windows together",
    }
    lines = [
        f"{names[domain]}: {_used(budget, state, window if domain == 'total' else '')}"
        for domain, (budget, state) in session.shared.items()
    ]
    if not session.budget.unlimited:
        lines.append(f"This session: {own}")
    within = (
        f"everything that is charged to the ledger within any {window}"
        if window
        else "everything that was ever charged to the ledger"
    )
    if session.lifetime is not None:
        within = "everything that was ever charged to the ledger"
    lines.append(f"The promise above is for {within}, listed here or not.")
    return "\n".join(textwrap.fill(line, _WIDTH) for line in lines)


def _used(budget: Budget, state: State, window: str = "") -> str:
    in_rho = budget.eps is None and not budget.unlimited
    used, whole = (
        Cost(None if in_rho else c.eps, rho=c.rho).text(" = ") for c in (budget.spent(state), budget)
    )
    if budget.unlimited:
        return f"{used} has been used, of no limit."
    until = f" until earlier charges are {window} old" if window else ""
    return f"{used} of {whole} has been used. Once it is used up, nothing new is released{until}."


def _not_promised() -> str:
    points = [
        "That nothing can be learnt about a person: what is true of people in general applies to each of them.",
        "Anything about the analyst, who works with the data themselves and sees them.",
        "How long a computation took, or how much memory it used: that may depend on the data.",
        "Anything about other data sets, or other releases from the same data, that this account does not list."
        " Each of them adds to what is known.",
        "That the data, the bounds or the choice of the questions are right.",
    ]
    return "\n".join(textwrap.fill(p, _WIDTH, initial_indent="- ", subsequent_indent="  ") for p in points)
