"""What was typed as a budget and a unit, read and checked."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpframe.accounting.events import rational
from dpframe.accounting.filter import ACCOUNTANTS, Budget
from dpframe.accounting.renyi import chosen_order
from dpframe.errors import InputError, did_you_mean, show, typed


def read_unit(unit: Any) -> tuple[str, ...] | None:
    if unit is None:
        return None
    names = tuple(unit) if isinstance(unit, list | tuple) else (unit,)
    if not names or len(set(map(str, names))) < len(names):
        raise InputError(
            f"unit={typed(unit)} must name at least one column, and each once. Hint: unit='user_id'"
        )
    for n in names:
        if not isinstance(n, str):
            raise TypeError(f"unit= takes column names, not a {type(n).__name__}. Hint: unit='user_id'")
    return names


def read_budget(
    eps: Any, delta: Any, delta_calls: Any, rho: Any, accountant: Any = "union", order: Any = None
) -> Budget:
    """The budget that was typed, or InputError. The accountant's rules are in ``dpframe.accounting``."""
    if not isinstance(accountant, str) or accountant not in ACCOUNTANTS:
        near = did_you_mean(accountant if isinstance(accountant, str) else "", ACCOUNTANTS)
        pld = " A privacy-loss distribution is no filter: s.report(accountant='pld') reads one." * (
            accountant == "pld"
        )
        raise InputError(f"accountant={typed(accountant)} is not one. {near}{pld} Hint: accountant='zcdp'")
    if order is not None and accountant != "rdp":
        raise InputError(f"order={typed(order)} goes with accountant='rdp'. Hint: leave order= out")
    if eps is None and rho is None:
        raise InputError("A session needs a budget. Hint: dp.Session(eps=1) or dp.Session(eps=1, delta=1e-6)")
    if eps is not None and rho is not None:
        raise InputError(
            "A session has one budget: eps= (with delta=) or rho=, not both. Hint: eps=1, delta=1e-6"
        )
    if rho is not None:
        if accountant not in ("union", "zcdp"):
            raise InputError(
                f"rho= is a budget of accountant='zcdp', not of {accountant!r}. Hint: eps=1, delta=1e-6"
            )
        if delta is not None:
            raise InputError(
                "rho= goes with delta_calls=, not with delta=. Hint: dp.Session(rho=0.1, delta_calls=1e-6)"
            )
        calls = (
            Fraction(0) if delta_calls is None else rational(delta_calls, "delta_calls", zero=True, below=1)
        )
        return Budget(None, calls, calls, rational(rho, "rho"))
    total = Fraction(0) if delta is None else rational(delta, "delta", zero=True, below=1)
    rules, whole = ACCOUNTANTS[accountant], rational(eps, "eps")
    calls = (
        total * rules.calls
        if delta_calls is None
        else rational(delta_calls, "delta_calls", zero=True, below=1)
    )
    if calls > total:
        raise InputError(
            f"delta_calls={show(calls)} is more than delta={show(total)}. Hint: delta_calls={show(total / 2)}"
        )
    if not rules.by_eps and calls == total:
        raise InputError(
            f"accountant={accountant!r} converts with delta - delta_calls, and that is 0. Hint: delta=1e-6, or"
            " accountant='sum'"
        )
    at = _order(order, whole, total - calls) if accountant == "rdp" else None
    budget = Budget(whole, total, calls, accountant=accountant, order=at)
    if not rules.by_eps and not budget.rho_limit:
        raise InputError(
            f"accountant={accountant!r}{f' at order={show(at)}' if at else ''} grants nothing at eps={show(whole)},"
            f" delta={show(total - calls)}. Hint: {f'order={show(chosen_order(whole, total - calls))}' if at else 'a larger delta='}, or accountant='sum'"
        )
    return budget


def _order(order: Any, eps: Fraction, delta: Fraction) -> Fraction:
    if order is None:
        return chosen_order(eps, delta)
    exact = rational(order, "order")
    if not Fraction(1001, 1000) <= exact <= 10**6:
        raise InputError(f"order={typed(order)} must lie between 1.001 and 1e6. Hint: order=12")
    return exact
