"""The refusal of a charge: what was asked, what remains, which part ran out, what would fit. No data."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpframe.accounting.events import Cost, Event
from dpframe.accounting.filter import Budget, State, others
from dpframe.accounting.policy import Charge
from dpframe.errors import BudgetExceeded, show


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
