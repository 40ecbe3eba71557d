"""Who pays: the session that is given, the current one, or the ambient one; and what others may know of a session.

Privacy: a query never falls through to the session without a limit while one with a budget is open.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import dataclass

from dpframe.accounting.filter import Budget, State
from dpframe.accounting.policy import Limits, Policy
from dpframe.base.arguments import check_type
from dpframe.errors import Arg, Call, Code, NoSession
from dpframe.release.payload import Payload, from_bytes
from dpframe.release.release import Release
from dpframe.session.account import Entry, Receipt, answer_at
from dpframe.session.current import in_use, opened, outside, stack
from dpframe.session.session import Session, sharing
from dpframe.session.terms import Terms


class _Ambient(Session):
    """Where calls go when nobody opened a session: records, has no limit, and says so once."""

    def __init__(self) -> None:
        self._setup(Terms(Budget(), Policy(), Limits()))


_ambient = _Ambient()


def terms_of(session: Session | None) -> tuple[Budget, Policy, Limits]:
    """What a plan is made under: budget, policy and limits of the given session, the current one, or none."""
    if session is not None:
        current(session)
    paying = _paying(session)
    return paying._budget, paying._policy, paying._limits


def _paying(session: Session | None) -> Session:
    here = stack.get() or tuple(in_use)
    return session or (here[-1] if here else _ambient)


def current(session: Session | None = None) -> Session:
    """The session to charge.

    Raises
    ------
    NoSession
        When a budgeted session is open but not in use here, or ``DPFRAME_REQUIRE_SESSION`` is set and
        there is none: a query never falls through to the session without a limit.
    """
    if session is not None:
        check_type("session", session, Session, "a dp.Session", Arg("session", Code("s")))
        return session
    here = stack.get() or tuple(in_use)
    if here:
        found: Session = here[-1]
        return found
    if len(opened):
        raise NoSession(
            "A session with a budget is open but not in use here, so it is unclear who pays.",
            hint=(
                "with s: ... or ",
                Call("s.use"),
                ", or pass ",
                Arg("session", Code("s")),
                "; ",
                Call("s.close"),
                " gives it up.",
            ),
        )
    if os.environ.get("DPFRAME_REQUIRE_SESSION", "") not in ("", "0"):
        raise NoSession(
            "DPFRAME_REQUIRE_SESSION is set and no session is in use.",
            hint=("with ", Call("dp.Session", eps=1), " as s: ..."),
        )
    return _ambient


def after_fork() -> None:
    """A child starts with an ambient session of its own."""
    global _ambient
    _ambient = _Ambient()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)


def part_session(
    budget: Budget, policy: Policy, limits: Limits, payer: Session, receipt: Receipt | None
) -> Session:
    """The session of one part of a partition: its cap was charged to ``payer`` when the partition was made."""
    session = sharing(Terms(budget, policy, limits))
    session._part = True
    session._paid = [*payer._paid, *(receipt.tickets if receipt is not None else ())]
    return session


def stored_answer(session: Session | None, request_id: str | None) -> Payload | None:
    """What the ledger that would pay for a request has stored as its answer; None if there is nothing yet."""
    if request_id is None:
        return None
    payers = _paying(session)._payers()
    book = next(((s._ledger, s._scope) for s in payers if s._ledger is not None), None)
    kept = None if book is None else book[0].stored(request_id, book[1])
    return None if kept is None else from_bytes(kept[1])


def answer_to(session: Session, asked: Hashable) -> str | None:
    """Where the first answer to the same question is in ``session``, if there is one."""
    index = session._asked.get(asked)
    found = None if index is None else answer_at(session._entries, index)
    return None if found is None else found.text


def released(session: Session, label: str) -> Release | None:
    """The first release under ``label``, if there is one."""
    return session._labels.get(label)


def limits_of(session: Session) -> Limits:
    """The defaults of a session for how much of a unit counts."""
    return session._limits


@dataclass(frozen=True, slots=True)
class Standing:
    """A session as it stands, for whoever shows it; no ledger is read for it."""

    entries: tuple[Entry, ...]
    charges: int  # with the entries that an ambient session has dropped
    limited: bool
    divided: bool
    around: int  # how many other sessions pay, too
    here: bool  # whether it is current here
    open: bool


def standing(session: Session) -> Standing:
    """How a session stands now."""
    return Standing(
        tuple(session._entries),
        session._charges,
        session._limited,
        session._split,
        len(session._outer),
        session in outside(),
        session in opened,
    )


def budgets(session: Session) -> list[tuple[str, Budget, State]]:
    """The session's own budget ("") and its ledger's (by domain), with what is spent of them."""
    found = [] if session._budget.unlimited else [("", session._budget, session._state)]
    if session._ledger is not None:
        found += [(k, b, state) for k, (b, state) in session._ledger.state(session._scope).items()]
    return found
