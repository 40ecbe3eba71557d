"""What is typed as a session, read: its budget, its policy, its limits, and the ledger that pays."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from dpframe.accounting.budgets import SessionOptions, read_budget, read_limits, read_policy
from dpframe.accounting.filter import Budget
from dpframe.accounting.policy import Limits, Policy
from dpframe.errors import Arg, Call, InputError

if TYPE_CHECKING:
    from dpframe.ledger.book import Ledger

_NUMBERS = ("eps", "delta", "delta_calls", "rho", "order")


class Terms(NamedTuple):
    """What a session grants, to whom, and who pays."""

    budget: Budget
    policy: Policy
    limits: Limits
    ledger: Ledger | None = None
    scope: str | None = None


def read_terms(
    typed: SessionOptions, ledger: str | os.PathLike[str] | Ledger | None, scope: str | None
) -> Terms:
    """The terms that were typed, or InputError; a ledger's policy and accountant hold for its sessions."""
    policy = read_policy(typed)
    if ledger is None:
        if scope is not None:
            raise InputError(
                Arg("scope", scope),
                " goes with ",
                Arg("ledger"),
                ".",
                hint=Call("dp.Session", ledger="budget.db", scope=...),
            )
        limits = read_limits(typed, policy)
        return Terms(read_budget(typed), policy, limits)
    from dpframe.ledger.book import Ledger  # brings SQLite

    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    policy = _same_policy(book, typed, policy)
    book.check_scope(scope)
    limits, budget, accountant = read_limits(typed, policy), Budget(), typed.get("accountant")
    if any(typed.get(k) is not None for k in _NUMBERS):
        budget = read_budget(typed, book.accountant)
    elif accountant not in (None, book.accountant):
        raise InputError(
            f"The ledger {book.path} has ",
            Arg("accountant", book.accountant),
            "; ",
            Arg("accountant", accountant),
            " was given.",
            hint="leave it out",
        )
    return Terms(budget, policy, limits, book, scope)


def _same_policy(book: Ledger, typed: SessionOptions, read: Policy) -> Policy:
    """The ledger's policy, which what was typed beside it must match.

    Privacy: what one relation was charged says nothing about another, so any 36 rows and any 12 never share a ledger.
    """
    p, neighbors, rows = book.policy, typed.get("neighbors"), typed.get("contributions")
    wrong = (neighbors or p.neighbors) != p.neighbors or (read.unit is not None and read.unit != p.unit)
    if wrong or (rows is not None and (p.unit is not None or rows != p.contributions)):
        raise InputError(
            f"The ledger {book.path} protects {p.neighbors}, {p.unit_name}; ",
            Arg("neighbors", neighbors),
            ", ",
            Arg("unit", read.unit) if rows is None else Arg("contributions", rows),
            " were given.",
            hint="leave them out",
        )
    return p
