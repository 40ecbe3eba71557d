"""One step that charges a session, the sessions it stands in, and their ledgers: all of them or none.

Privacy: the sums of sessions are checked, and the rows of ledgers written, before anything is recorded as
granted, and before data is touched. A release whose row in a ledger is stored is never drawn a second time.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from dpframe.accounting.claims import Busy, Claim, Ticket
from dpframe.accounting.filter import State
from dpframe.accounting.policy import Charge
from dpframe.accounting.refusals import exceeded
from dpframe.base.signals import interruptible
from dpframe.errors import Arg, Call, InputError, check_text
from dpframe.noise import source
from dpframe.session.account import Entry, Receipt
from dpframe.session.current import lock
from dpframe.session.session import Session

log = logging.getLogger("dpframe")


def charge(session: Session, asked: Charge, label: str | None, request_id: str | None = None) -> Receipt:
    """Charge ``session`` and those it stands in, or none of them.

    Raises
    ------
    BudgetExceeded, NoSession, InputError, LedgerError
        Nothing was charged.
    """
    for text, name in ((label, "label"), (request_id, "request_id")):
        if isinstance(text, str):
            check_text(text, name)
    while True:
        try:
            with lock:
                chain = session._payers()
                owed = _resumed(session, asked, chain, request_id)
                if any(s._ledger is not None for s in chain):
                    return _with_ledgers(chain, asked, label, request_id, owed)
                if owed is not None:
                    return Receipt(_go_on(session, asked, owed, label, None), owed.time)
                if request_id is not None:
                    raise InputError(
                        Arg("request_id"),
                        " names a row of a ledger, and this session has none.",
                        hint=Call("dp.Session", ledger="budget.db"),
                    )
                after = _grants(chain, asked, label)
                return _record(chain, asked, label, Receipt([], dt.datetime.now(dt.UTC)), after)
        except Busy as busy:
            log.info("Request %r is being answered by somebody else; waiting.", busy.request_id)
            with interruptible():
                busy.wait()


def owe(session: Session, asked: Charge, receipt: Receipt, request_id: str | None) -> None:
    """Keep the receipt of an interrupted call, for the same question when it is asked again.

    Privacy: nothing was released for it. On a ledger only a request that is named goes on: there a charge is a claim.
    """
    with lock:
        if request_id is not None or not receipt.tickets:
            session._owed[asked.same, request_id] = receipt


def _resumed(
    session: Session, asked: Charge, chain: tuple[Session, ...], request_id: str | None
) -> Receipt | None:
    """The receipt of an interrupted call for this question, if the same sessions would pay now."""
    receipt = session._owed.get((asked.same, request_id))
    if receipt is None or tuple(s for s, _ in receipt.entries) != chain:
        return None
    for s in chain:
        s._check_process()
    return receipt


def _go_on(
    session: Session, asked: Charge, owed: Receipt, label: str | None, request_id: str | None
) -> list[tuple[Session, Entry]]:
    """The lines that an interrupted call left, for the one that goes on with it. Once."""
    del session._owed[asked.same, request_id]
    for _, entry in owed.entries:
        entry.label = label or entry.label
        entry.private = entry.private and source.is_private()
    return owed.entries


def _with_ledgers(
    chain: tuple[Session, ...],
    asked: Charge,
    label: str | None,
    request_id: str | None,
    owed: Receipt | None,
) -> Receipt:
    """The step with ledgers: all are opened and checked before any commits, the nearest one first.

    Privacy: a commit that fails leaves later ledgers uncharged and nothing granted; earlier ones stay charged
    for nothing. A request that is asked again after its owner died is charged again to the sessions (not by
    the session that was interrupted, which holds a receipt), and to every ledger but the one that holds the request.
    """
    books: dict[str, tuple[Any, str | None]] = {}
    for s in chain:
        s._check_process()
        if s._ledger is not None:
            scope = books.setdefault(s._ledger.path, (s._ledger, s._scope))[1]
            if scope != s._scope:
                raise InputError(
                    f"A session inside another on the same ledger needs the same scope: {s._scope!r} inside {scope!r}.",
                    hint="leave the outer session first",
                )
    claim = _claim(asked, label)
    tickets: list[tuple[Any, Ticket]] = []
    with ExitStack() as stack:
        opened = {p: stack.enter_context(books[p][0].charging(books[p][1])) for p in sorted(books)}
        for i, (path, (ledger, _)) in enumerate(books.items()):
            ticket = opened[path].reserve(claim(request_id if i == 0 else None))
            tickets.append((ledger, ticket))
            if ticket.stored is not None:
                break
        replayed = tickets[0][1].stored is not None
        goes_on = owed is not None and not replayed and not tickets[0][1].charged
        after: list[State | None] = [None] * len(chain)
        if not replayed and not goes_on:
            after = _grants(chain, asked, label)
    first = tickets[0][1]
    if owed is not None and goes_on:
        entries = _go_on(chain[0], asked, owed, label, request_id)
        return Receipt(entries, first.time, tickets=tickets)
    if replayed:
        log.info("Request %r was answered on %s; that answer is returned.", request_id, first.released_at)
        receipt = Receipt([], first.time, first.stored, first.released_at, first.head.text, first.version)
    else:
        receipt = Receipt([], first.time, tickets=tickets)
    return _record(chain, asked, label, receipt, after)


def _claim(asked: Charge, label: str | None) -> Callable[[str | None], Claim]:
    details = asked.details()

    def claim(request_id: str | None) -> Claim:
        return Claim(asked, label, request_id, *details, source.is_private())

    return claim


def _grants(chain: tuple[Session, ...], asked: Charge, label: str | None) -> list[State | None]:
    """The states after the charge, or the refusal of the first session that does not grant it."""
    name = label or asked.question
    after: list[State | None] = []
    for s in chain:
        s._check_process()
        if s._policy != asked.policy:
            raise InputError(
                f"The plan was made for {asked.policy.neighbors}, {asked.policy.unit_name}; the session"
                f" protects {s._policy.neighbors}, {s._policy.unit_name}.",
                hint="plan it inside the session.",
            )
        if s._split:
            raise InputError("This session's budget was split; its parts grant calls, it grants none.")
        state, component = s._budget.grant(asked.event, s._state, name)
        if state is None:
            divided = s._part or s._whole is not None
            raise exceeded(
                s._budget, s._state, asked, component, label, divided=divided, around=s is not chain[0]
            )
        after.append(state)
    return after


def _record(
    chain: tuple[Session, ...],
    asked: Charge,
    label: str | None,
    receipt: Receipt,
    after: list[State | None],
) -> Receipt:
    receipt.entries = [(s, s._record(state, asked, label, receipt.time)) for s, state in zip(chain, after)]
    return receipt
