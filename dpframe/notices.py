"""What sessions tell the analyst: refusals and notices. From calls and schema, never from cells."""

from __future__ import annotations

import logging
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Hashable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpframe.accounting.accountants import others
from dpframe.accounting.filter import Budget, State
from dpframe.budget import Cost, Event
from dpframe.errors import BudgetExceeded, DPWarning, show

if TYPE_CHECKING:
    from dpframe.account import Entry
    from dpframe.plan import Charge
    from dpframe.session import Session

_ID = re.compile(
    r"(^|_)(id|uuid|guid)$|^(user|username|customer|patient|person|member|email|ssn|household)(_?(name|no|nr|number))?$",
    re.IGNORECASE,
)


def say(session: Session, entry: Entry, names: Iterable[Hashable]) -> None:
    """Tell the analyst what they may not expect. Depends on calls and schema, never on cells."""
    if not session._limited and not session._said:
        session._said = True
        warn(
            "No session is open: this call is recorded but nothing limits the total."
            " Hint: with dp.Session(eps=1) as s: ..."
        )
    if entry.closes:
        warn(
            f"{entry.question} was charged by rho alone; from now on this session adds"
            f" up rho, not eps, and would grant eps={show(session.remaining.eps)}. Hint: a larger delta_calls=, or"
            " mechanism='laplace'"
        )
    if entry.repeat_of is not None and session._limited:
        same = [e for e in session._entries if entry.repeat_of in (e.repeat_of, e.index)]
        if len(same) == 2 or sum(e.frame == entry.frame for e in same) > 1:
            warn(
                f"{entry.question} is asked for the {len(same)}{_suffix(len(same))} time in this session and was charged"
                " again." + _first_answer(session, entry.repeat_of)
            )
    if session._policy.unit is None and not session._warned_id:
        found = next((str(x) for x in names if isinstance(x, str) and _ID.search(x)), None)
        if found is not None:
            session._warned_id = True
            warn(
                f"One row is protected, not one {found!r}: whoever has many rows is protected less. See"
                " docs/unit-and-eps.md."
            )


def answer_at(session: Session, index: int) -> str | None:
    """How to read the answer that a charge paid for, if it was given."""
    entry = next((e for e in session._entries if e.index == index), None)
    if entry is None or entry.release is None:
        return None
    position = sum(1 for e in session._entries if e.release is not None and e.index < index)
    return f"s[{entry.label!r}]" if entry.label else f"s.releases[{position}]"


def _first_answer(session: Session, index: int) -> str:
    """Where the first answer to a repeated question is kept, if it was given."""
    answer = answer_at(session, index)
    if answer is None:
        return ""
    return f" The first answer is {answer}; if it was of the same data, read that instead (if of another filter, ignore this)."


def warn(text: str) -> None:
    level, here = 2, os.path.dirname(__file__)
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(here):
        frame, level = frame.f_back, level + 1
    try:
        warnings.warn(text, DPWarning, stacklevel=level)
    except DPWarning:  # warnings are errors here; the answer has been paid for and must not be lost
        logging.getLogger("dpframe").warning(text)


def _suffix(n: int) -> str:
    return "th" if 10 <= n % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")


def exceeded(
    budget: Budget,
    state: State,
    charge: Charge,
    component: str,
    label: str | None,
    whose: str = "",
    *,
    divided: bool = False,
    around: bool = False,
) -> BudgetExceeded:
    """The refusal of a charge: what was asked, what remains, which part ran out, what would fit.

    ``whose`` names the budget of a ledger; without it, it is a session's. ``divided``: the budget is a share
    of another's, so that no accountant could be chosen for it. ``around``: it is that of a session around the
    one that was asked.
    """
    remaining, kind = budget.remaining(state), "ledger" if whose else "session"
    fits = _what_fits(budget, remaining, charge.event, kind, divided)
    requested = charge.event.cost
    what = charge.question + (f" (label {label!r})" if label else "")
    if component == "law":
        text = _other_law(budget, charge, what, kind)
    elif component == "delta":
        where = "when the ledger is created" if whose else "as in dp.Session(eps=1, delta=1e-6)"
        text = f"{'it' if around else f'This {kind}'} has no delta. Hint: delta=1e-6 {where}"
        if budget.delta_calls or budget.delta:
            text = (
                f"delta is used up: {what} asks for delta={show(requested.delta)}; single calls may use"
                f" delta_calls={show(budget.delta_calls)} in all, {show(remaining.delta)} is left.{fits} Hint: a smaller"
                f" delta=, or a {kind} with a larger delta_calls= ({_usual(budget)} unless you say)."
            )
    elif component == "rho":
        text = (
            f"rho is used up: {what} asks for rho={number(requested.rho)}; "
            f"{number(remaining.rho)} of {number(budget.rho)} remains.{fits}"
        )
    else:
        asked = f"eps={show(requested.eps)}" if requested.eps is not None else f"rho={number(requested.rho)}"
        closed = (
            f" Epsilons can't be added up any more since {state.closed_by} was charged by rho."
            if state.closed_by and state.eps is None and budget.rules.by_eps
            else ""
        )
        in_rho = f" (or rho={number(remaining.rho)})" if remaining.rho else ""
        left = show(remaining.eps)
        if requested.eps is not None and left == show(requested.eps):  # they differ beyond the digits shown
            left, asked = repr(float(remaining.eps or 0)), f"eps={float(requested.eps)!r}"
        granted = f"at most eps={left}{in_rho} would be granted of eps={show(budget.eps)}."
        if not remaining.eps:
            granted = f"at most rho={number(remaining.rho)} would be granted of eps={show(budget.eps)}."
        if not remaining.eps and not remaining.rho:
            earlier = "" if whose else " Earlier answers are in s.releases."
            granted = f"nothing is left of eps={show(budget.eps)}.{earlier}"
        text = f"eps is used up: {what} asks for {asked}; {granted}{closed}{fits}"
        if _gaussian(charge.event) and remaining.rho:
            text += f" Hint: rho={_digits(remaining.rho, math.floor)}"
    whose = "The session around this one pays, too" if around else whose
    text = f"{whose}: {text}" if whose else text
    return BudgetExceeded(text, requested=requested, remaining=remaining, component=component, label=label)


def _what_fits(budget: Budget, remaining: Cost, event: Event, kind: str, divided: bool) -> str:
    """For Gaussian events the noise multiplier that sums of rho would grant; and who would grant this event."""
    left, text = remaining.rho, ""
    if _gaussian(event) and left:
        sigma = _digits(float(1 / (2 * left)) ** 0.5, math.ceil)
        text = (
            f" Gaussian noise would fit at sigma = {sigma} sensitivities (rho={_digits(left, math.floor)})."
        )
    elif _gaussian(event) and not budget.delta:
        text = f" Gaussian noise needs a {kind} with delta."
    fresh, _ = budget.grant(event, State(), "")  # does it only come too late?
    return text if fresh is not None or divided else text + _elsewhere(budget, event, kind)


def _gaussian(event: Event) -> bool:
    return any(leaf.kind == "gaussian" for leaf, _ in event.leaves())


def _elsewhere(budget: Budget, event: Event, kind: str) -> str:
    """The accountants that would grant an event that this one can't."""
    able = others(budget, event)
    if not able:
        return ""
    return f" A {kind} opened with accountant={' or '.join(map(repr, able))} would grant it."


def _other_law(budget: Budget, charge: Charge, what: str, kind: str) -> str:
    if budget.rules.name == "gdp":
        return (
            f"The accountant 'gdp' adds up Gaussian noise alone, and {what} asks for {charge.mechanism}."
            f"{_elsewhere(budget, charge.event, kind)} Hint: mechanism='gaussian' with delta=1e-7, or with rho=0.01."
        )
    return (
        f"The accountant {budget.rules.name!r} adds up epsilons, and {what} has none: it asks for"
        f" rho={number(charge.event.rho)}.{_elsewhere(budget, charge.event, kind)} Hint: eps=0.5, with delta=1e-7 for"
        " Gaussian noise."
    )


def _usual(budget: Budget) -> str:
    return {"sum": "all of delta", "gdp": "none of delta"}.get(budget.accountant, "half of delta")


def _digits(x: Fraction | float, rounded: Callable[[float], int]) -> str:
    """Four digits of ``x``, rounded so that what a message offers is granted."""
    step = 10.0 ** (math.floor(math.log10(x)) - 3)
    return f"{rounded(float(x) / step) * step:.4g}"


def number(x: Fraction | None) -> str:
    return "none" if x is None else f"{float(x):.6g}"
