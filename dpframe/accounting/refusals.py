"""The refusal of a charge: what was asked, what remains, which part ran out, what would fit. No data."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpframe.accounting.events import Cost, Event
from dpframe.accounting.filter import Budget, State, others
from dpframe.accounting.policy import Charge
from dpframe.errors import Arg, BudgetExceeded, Call, Code, InPython, Piece, number, show


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
    said: tuple[Piece, ...]
    hint: tuple[Piece, ...] = ()
    if component == "law":
        said, hint = _other_law(budget, charge, what, kind)
    elif component == "delta" and not (budget.delta_calls or budget.delta):
        said = (f"{'it' if around else f'This {kind}'} has no delta.",)
        where = "when the ledger is created" if whose else ("as in ", Call("dp.Session", eps=1, delta=1e-6))
        hint = (Arg("delta", 1e-6), " ", *((where,) if isinstance(where, str) else where))
    elif component == "delta":
        said = (
            f"delta {_short(remaining.delta)}: {what} asks for ",
            Arg("delta", requested.delta),
            "; single calls may use ",
            Arg("delta_calls", budget.delta_calls),
            f" in all, {show(remaining.delta)} is left.",
            *fits,
        )
        usual = f" ({_usual(budget)} unless you say)."
        hint = ("a smaller ", Arg("delta"), f", or a {kind} with a larger ", Arg("delta_calls"), usual)
    elif component == "rho":
        asked = Arg("rho", Code(number(requested.rho)))
        left = f"; {number(remaining.rho)} of {number(budget.rho)} remains."
        said = (f"rho {_short(remaining.rho)}: {what} asks for ", asked, left, *fits)
    else:
        said = (*_of_eps(budget, state, remaining, requested, what, bool(whose)), *fits)
        if _gaussian(charge.event) and remaining.rho:
            hint = (Arg("rho", Code(_digits(remaining.rho, math.floor))),)
    whose = "The session around this one pays, too" if around else whose
    said = (f"{whose}: ", *said) if whose else said
    return BudgetExceeded(
        *said, hint=hint, requested=requested, remaining=remaining, component=component, label=label
    )


def _short(left: Fraction | None) -> str:
    return "does not suffice" if left else "is used up"


def _of_eps(
    budget: Budget, state: State, remaining: Cost, requested: Cost, what: str, on_ledger: bool
) -> tuple[Piece, ...]:
    """What is said where eps does not suffice: what was asked, and the most that would be granted."""
    asked, left = show(requested.eps), show(remaining.eps)
    if asked == left:  # they differ beyond the digits shown
        asked, left = repr(float(requested.eps or 0)), repr(float(remaining.eps or 0))
    in_rho = Arg("rho", Code(number(remaining.rho)))
    whole = (" would be granted of ", Arg("eps", budget.eps), ".")
    granted: tuple[Piece, ...] = ("nothing is left of ", Arg("eps", budget.eps), ".")
    if remaining.eps:
        also = (" (or ", in_rho, ")") if remaining.rho else ()
        granted = ("at most ", Arg("eps", Code(left)), *also, *whole)
    elif remaining.rho:
        granted = ("at most ", in_rho, *whole)
    elif not on_ledger:
        granted = (*granted, InPython(" Earlier answers are in s.releases."))
    request = Arg("rho", Code(number(requested.rho))) if requested.eps is None else Arg("eps", Code(asked))
    closed = ""
    if state.closed_by and state.eps is None and budget.rules.by_eps:
        closed = f" Epsilons can't be added up any more since {state.closed_by} was charged by rho."
    short = _short(remaining.eps or remaining.rho)
    return (f"eps {short}: {what} asks for ", request, "; ", *granted, closed)


def _what_fits(budget: Budget, remaining: Cost, event: Event, kind: str, divided: bool) -> tuple[Piece, ...]:
    """For Gaussian events the noise multiplier that sums of rho would grant; and who would grant this event."""
    left, said = remaining.rho, tuple[Piece, ...]()
    if _gaussian(event) and left:
        sigma = _digits(float(1 / (2 * left)) ** 0.5, math.ceil)
        rho = Arg("rho", Code(_digits(left, math.floor)))
        said = (f" Gaussian noise would fit at sigma = {sigma} sensitivities (", rho, ").")
    elif _gaussian(event) and not budget.delta:
        said = (f" Gaussian noise needs a {kind} with delta.",)
    fresh, _ = budget.grant(event, State(), "")  # does it only come too late?
    return said if fresh is not None or divided else (*said, *_elsewhere(budget, event, kind))


def _gaussian(event: Event) -> bool:
    return any(leaf.kind == "gaussian" for leaf, _ in event.leaves())


def _elsewhere(budget: Budget, event: Event, kind: str) -> tuple[Piece, ...]:
    """The accountants that would grant an event that this one can't."""
    able = others(budget, event)
    if not able:
        return ()
    named = Arg("accountant", Code(" or ".join(map(repr, able))))
    return (f" A {kind} opened with ", named, " would grant it.")


def _other_law(
    budget: Budget, charge: Charge, what: str, kind: str
) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    able = _elsewhere(budget, charge.event, kind)
    if budget.rules.name == "gdp":
        asks = f"The accountant 'gdp' adds up Gaussian noise alone, and {what} asks for {charge.mechanism}."
        gaussian = (
            Arg("mechanism", "gaussian"),
            " with ",
            Arg("delta", 1e-7),
            ", or with ",
            Arg("rho", 0.01),
        )
        return (asks, *able), (*gaussian, ".")
    rho = Arg("rho", Code(number(charge.event.rho)))
    asks = f"The accountant {budget.rules.name!r} adds up epsilons, and {what} has none: it asks for "
    return (asks, rho, ".", *able), (
        Arg("eps", 0.5),
        ", with ",
        Arg("delta", 1e-7),
        " for Gaussian noise.",
    )


def _usual(budget: Budget) -> str:
    return {"sum": "all of delta", "gdp": "none of delta"}.get(budget.accountant, "half of delta")


def _digits(x: Fraction | float, rounded: Callable[[float], int]) -> str:
    """Four digits of ``x``, rounded so that what a message offers is granted."""
    step = 10.0 ** (math.floor(math.log10(x)) - 3)
    return f"{rounded(float(x) / step) * step:.4g}"
