"""Granting a charge: against every budget it concerns, in one transaction.

Privacy: the filter of each budget sees every event of its domain, in order, with exact rationals; one that
refuses refuses the charge. A request that was charged before is not charged again, because only one answer
to it ever leaves: the log takes one release per charge, and a release leaves only after it is there. A request
whose engine failed is charged again: that it failed left, and may depend on the data. One whose owner was killed or
interrupted is not: nobody was told anything but that it took as long as it did (time is not promised).
"""

from __future__ import annotations

import datetime as dt
import secrets
from typing import Any

from dpframe.accounting.claims import Busy, Claim, Ticket
from dpframe.accounting.events import Event
from dpframe.accounting.refusals import exceeded
from dpframe.errors import Arg, Call, Code, InputError, LedgerError
from dpframe.ledger import locks
from dpframe.ledger.declaration import length
from dpframe.ledger.rows import decode, encode
from dpframe.ledger.sums import Charged

untold: set[tuple[str, int]] = (
    set()
)  # (ledger, charge) of failures that could not be written, in this process


class Transaction:
    """The inside of ``Ledger.charging``."""

    def __init__(self, ledger: Any, scope: str | None) -> None:
        self._ledger, self._scope = ledger, scope

    def reserve(self, claim: Claim) -> Ticket:
        """Charge ``claim``, or find what was charged for the same request before.

        Raises
        ------
        BudgetExceeded
            By the total (or the window), the scope or the lifetime; nothing was spent.
        InputError
            If the claim is for another policy, or its request was charged for another question.
        Busy
            If somebody alive is answering the same request.
        """
        ledger = self._ledger
        if not ledger._log.store.inside:
            raise LedgerError(
                "This charge is over.",
                hint=(
                    "with ",
                    Call("ledger.charging", Code("scope")),
                    " as t: ",
                    Call("t.reserve", Code("claim")),
                ),
            )
        if claim.charge.policy != ledger.policy:
            raise InputError(
                f"The plan was made for {claim.charge.policy.neighbors}, {claim.charge.policy.unit_name}; the"
                f" ledger protects {ledger.policy.neighbors}, {ledger.policy.unit_name}.",
                hint="plan it in a session on the ledger",
            )
        request = claim.request_id
        if request is not None and (not isinstance(request, str) or not request):
            raise InputError(
                Arg("request_id", request), " must be text.", hint=Arg("request_id", "arrivals-2026-11-29")
            )
        now = ledger._log.now()
        found = None if request is None else ledger._log.known.requests.get((self._scope, request))
        if found is not None:
            self._check_same(found, claim)
            if (ledger.path, found.head.sequence) in untold and not found.failed:
                ledger._log.append(
                    "failure", now, of=found.head.sequence
                )  # it could not be written when it came
            if not found.failed:
                return self._again(found, claim, now)
        event = claim.charge.event
        granted = self._grant(claim, now)
        head = ledger._log.append(
            "charge",
            now,
            scope=self._scope,
            label=claim.label,
            question=claim.charge.question,
            mechanism=claim.charge.mechanism,
            sensitivity=claim.sensitivity,
            scale=claim.scale,
            request_id=request,
            fingerprint=claim.fingerprint,
            private=claim.private,
            event=encode(event),
            granted={k: encode(e) for k, e in granted.items() if e != event},
        )
        ticket = Ticket(head.sequence, now, True, None, None, head)
        if request is not None:
            self._lease(ticket)
        return ticket

    def _check_same(self, found: Charged, claim: Claim) -> None:
        """Refuse a request that was charged for another question."""
        event = decode(found.content["event"], Event)
        if found.content["fingerprint"] != claim.fingerprint or event != claim.charge.event:
            raise InputError(
                Arg("request_id", claim.request_id),
                f" was charged for another question, or with other parameters: {found.content['question']} ({found.time.isoformat(' ', 'seconds')}). Nothing was spent.",
                hint="another request_id",
            )

    def _again(self, found: Charged, claim: Claim, now: dt.datetime) -> Ticket:
        """What is left to do for a request that was charged before."""
        ledger, sequence = self._ledger, found.head.sequence
        if found.release is not None:
            payload = ledger._log.store.payload(found.release.digest)
            kept = found.release
            return Ticket(sequence, found.time, False, payload, kept.time, kept.head, kept.version)
        if ledger._answering(found):
            raise Busy(str(claim.request_id), lambda: ledger._settle(self._scope, str(claim.request_id)))
        if ledger._log.known.in_window(found, now):
            head, anew = ledger._log.append("retry", now, of=sequence, private=claim.private), False
        else:  # its answer will leave in a window that does not hold the charge
            granted = self._grant(claim, now, window_only=True)
            head = ledger._log.append(
                "retry", now, of=sequence, private=claim.private, anew=encode(granted["total"])
            )
            anew = True
        ticket = Ticket(sequence, found.time, anew, None, None, head)
        self._lease(ticket)
        return ticket

    def _grant(self, claim: Claim, now: dt.datetime, *, window_only: bool = False) -> dict[str, Event]:
        """The event in the form in which each budget grants it; BudgetExceeded if one does not."""
        charge, out = claim.charge, {}
        for name, (budget, state) in self._ledger._log.states(self._scope, now).items():
            if window_only and name != "total":
                continue
            after, part = budget.grant(charge.event, state, claim.label or charge.question)
            if after is None:
                raise exceeded(budget, state, charge, part, claim.label, self._whose(name))
            charged = budget.charged(charge.event, state)
            assert charged is not None  # it was granted
            out[name] = charged
        return out

    def _whose(self, name: str) -> str:
        window = self._ledger.window
        if name == "scope":
            return f"The budget of scope {self._scope!r}"
        if name == "lifetime":
            return "The ledger's lifetime budget"
        return "The ledger's budget" if window is None else f"The ledger's budget of each {length(window)}"

    def _lease(self, ticket: Ticket) -> None:
        nonce = secrets.token_hex(8)
        self._ledger._log.store.set_lease(ticket.sequence, locks.owner(self._ledger.path), nonce)
        ticket._lease = nonce
        locks.hold(nonce, ticket)
