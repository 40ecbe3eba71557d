"""Sessions with a part of another's budget: shares of a session, and parts of a partition."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpframe import session as sessions
from dpframe.accounting.filter import Budget
from dpframe.budget import Number, rational
from dpframe.errors import InputError, show, typed
from dpframe.plan import Limits, Policy
from dpframe.session import Session

if TYPE_CHECKING:
    from dpframe.ledger import Ledger, Ticket
    from dpframe.schema import Source


def split(session: Session, shares: int | Mapping[str, Number], by: str | None) -> Any:
    """Divide an unspent session; see ``Session.split``."""
    if by not in ("eps", "rho", None):
        raise InputError(f"by={typed(by)} must be 'eps' or 'rho'. Hint: by='eps'")
    rules = session._budget.rules
    how = by or rules.shares
    if by == "eps" and not rules.by_eps and session._budget.eps is not None:
        raise InputError(
            f"The accountant {rules.name!r} adds up no epsilons that could be shared. Hint: by='rho'"
        )
    if isinstance(shares, Mapping):
        parts = {k: rational(v, f"shares[{k!r}]") for k, v in shares.items()}
    elif isinstance(shares, int) and not isinstance(shares, bool) and shares > 0:
        parts = {str(i): Fraction(1, shares) for i in range(shares)}
    else:
        raise InputError(
            f"split takes a number of parts or a dict of fractions, not {typed(shares)}. Hint: s.split(12)"
        )
    if not parts or sum(parts.values()) > 1:
        raise InputError(
            f"The shares add up to {show(sum(parts.values(), Fraction(0)))}; at most 1 is there. Hint: {{'a': 0.5, 'b': 0.5}}"
        )
    with sessions._lock:
        session._check_process()
        if session._ledger is not None:
            raise InputError(
                "A ledger's budget can't be split: others charge it, too. Hint: dp.Ledger.create(..., per_scope=dict(eps=0.1))"
            )
        if session._split or session._charges:
            raise InputError("Only an unspent session can be split.")
        if how == "rho" and not session._budget.rho_limit:
            raise InputError("This session has no rho to share. Hint: open it with delta= or rho=.")
        session._split = True
        children = {k: _child(session, session._budget.share(f, how)) for k, f in parts.items()}
        sessions._open.discard(session)
    return children if isinstance(shares, Mapping) else list(children.values())


def _child(session: Session, budget: Budget) -> Session:
    child = _share(budget, session._policy, session._limits)
    child._whole, child._strict = session, session._strict
    child._outer = child._inherited = session._outer
    sessions._open.add(child)
    return child


def part_session(
    budget: Budget, policy: Policy, limits: Limits, paid: list[tuple[Ledger, Ticket]]
) -> Session:
    """The session of one part of a partition: its cap was charged when the partition was made."""
    session = _share(budget, policy, limits)
    session._part, session._paid = True, paid
    return session


def _share(budget: Budget, policy: Policy, limits: Limits) -> Session:
    session = Session.__new__(Session)
    session._setup(budget, policy, limits)
    return session


def check_part(session: Session, source: Source) -> None:
    """Refuse a part's session for any frame but that part, and a part under another session.

    Privacy: a part's cap was paid for its own rows; spent on others it would be a budget nobody charged.
    """
    if (session._part or source.part_of is not None) and source.part_of is not session:
        raise InputError(
            "A part of a partition is asked with its own cap, and the cap is for it alone. Hint: part.dp"
        )


def check_windows(session: Session) -> None:
    """Refuse an answer of a part that would leave in a window that does not hold the partition's charge.

    Privacy: a window's budget is for what is released in it, and a charge that has left it is counted no more.
    """
    for ledger, ticket in session._paid:
        ledger.check_window(ticket)
