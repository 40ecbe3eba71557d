"""What a question would leave of the budgets that pay for it.

Privacy: everything here is computed from plans and from accounts, which are public; nothing is charged, and
no frame is read.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpframe.accounting.events import Cost, Event, least
from dpframe.accounting.forecast import Forecast
from dpframe.errors import LedgerError, NoSession
from dpframe.session.payer import budgets, current
from dpframe.session.session import Session


def forecast(session: Session | None, event: Event) -> Forecast:
    """What ``session`` (or the current one) and those it stands in would leave after ``event``."""
    try:
        payer = current(session)
        budgets = _budgets(payer)
    except NoSession:
        return Forecast("unclear")
    except LedgerError:
        return Forecast("unread")
    if not budgets:
        return Forecast("unlimited")
    before = least([b.remaining(state) for b, state in budgets])
    states = [b.grant(event, state, "")[0] for b, state in budgets]
    shares = [(left.eps or Fraction(0)) / b.eps for (b, s) in budgets if b.eps for left in [b.remaining(s)]]
    eps = [b.eps for b, _ in budgets if b.eps]
    total = None if len(eps) < len(budgets) else eps[shares.index(min(shares))]
    if any(s._split for s in payer._payers()):
        return Forecast("refused", Cost(Fraction(0), Fraction(0), Fraction(0)), None, total)
    after = [b.remaining(s) for (b, _), s in zip(budgets, states) if s is not None]
    if len(after) < len(budgets):
        return Forecast("refused", before, None, total)
    return Forecast("open", before, least(after), total)


def _budgets(payer: Session) -> list[tuple[Any, Any]]:
    """Every budget that a call is charged to, with its state."""
    found: list[tuple[Any, Any]] = []
    for s in payer._payers():
        found += [(budget, state) for _, budget, state in budgets(s)]
    return found
