"""What becomes of a charge: its answer is stored, its failure noted, or it is given up and goes on later.

Privacy: a charge buys one answer or one failure. An answer is on disk before it is handed out, and a failure
before it is told, so that neither leaves twice for one charge, whichever process asks.
"""

from __future__ import annotations

import datetime as dt
import logging
import os
import time

from dpframe.accounting.claims import Head, Ticket
from dpframe.errors import InputError, InPython, LedgerError
from dpframe.ledger import granting, locks
from dpframe.ledger.declaration import length
from dpframe.ledger.log import Log
from dpframe.ledger.rows import broken, digest
from dpframe.ledger.sums import Charged


class Answering:
    """A ledger as the keeper of answers."""

    path: str
    _log: Log

    @property
    def window(self) -> dt.timedelta | None:
        """The window's length."""
        return self._log.declaration.window_length

    def store(self, ticket: Ticket, payload: bytes) -> Head:
        """Keep the release that ``ticket`` was charged for, as the bytes ``payload``, before it is handed out.

        Raises
        ------
        LedgerError
            If it can't be kept, was kept before, or came later than a window after its charge. It must not
            be handed out then.
        """
        if not isinstance(payload, bytes):
            raise TypeError(f"payload must be bytes, not a {type(payload).__name__}.")
        self._check_ticket(ticket)
        if ticket.stored is not None:
            raise InputError("This request was answered before; its release is ticket.stored.")
        with self._log.writing():
            head = self._release(ticket, payload)
        if ticket._lease is not None:
            locks.let_go(ticket._lease)
        return head

    def _release(self, ticket: Ticket, payload: bytes) -> Head:
        charged = self._log.known.charges.get(ticket.sequence)
        if charged is None or charged.release is not None or charged.failed or not self._owns(ticket):
            raise LedgerError(
                "This charge was answered by somebody else meanwhile; one charge buys one release. ",
                hint=InPython("ask again with the same request_id", "run again"),
            )
        now = self._log.now()
        self._check_window(charged, now)
        name = digest(payload)
        self._log.store.keep(payload)
        self._log.store.end_lease(ticket.sequence)
        return self._log.append("release", now, of=ticket.sequence, digest=name, size=len(payload))

    def stored(self, request_id: str, scope: str | None = None) -> tuple[Charged, bytes] | None:
        """The charge of the request ``request_id`` in ``scope``, and the release that was stored for it, as bytes.

        None without an answer.
        """
        with self._log.reading():
            charged = self._log.known.requests.get((scope, request_id))
            if charged is None or charged.release is None:
                return None
            return charged, self._log.store.payload(charged.release.digest)

    def check_window(self, ticket: Ticket) -> None:
        """LedgerError if an answer to ``ticket`` would leave now in a window that does not hold its charge."""
        if self.window is not None:
            with self._log.reading():
                self._check_window(self._log.known.charges[ticket.sequence], self._log.now())

    def _check_window(self, charged: Charged, now: dt.datetime) -> None:
        if not self._log.known.in_window(charged, now):
            raise LedgerError(
                f"The answer came more than {length(self.window or dt.timedelta(0))} after its charge, so no window"
                " holds both; it was dropped. The charge stands.",
                hint=(
                    InPython("ask again with the same request_id", "run again"),
                    ", or make the partition anew",
                ),
            )

    def failed(self, ticket: Ticket) -> None:
        """Note that the engine failed for a ``ticket``, before that is told. The charge stands, and is over.

        Privacy: a failure may depend on the data, and whoever asked is told of it. So it is what the charge
        bought, as an answer would be: the same request, asked again, is charged again.
        """
        self._check_ticket(ticket)
        granting.untold.add((self.path, ticket.sequence))
        try:
            with self._log.writing():
                charged = self._log.known.charges.get(ticket.sequence)
                if (
                    charged is not None
                    and charged.release is None
                    and not charged.failed
                    and self._owns(ticket)
                ):
                    self._log.append("failure", self._log.now(), of=ticket.sequence)
                    self._log.store.end_lease(ticket.sequence)
            granting.untold.discard((self.path, ticket.sequence))
        except LedgerError as e:  # the caller is failing already; this process will not take the request over
            logging.getLogger("dpframe").warning("A failure could not be noted: %s", e)
        if ticket._lease:
            locks.let_go(ticket._lease)
            ticket._lease = ""

    def fail(self, ticket: Ticket) -> None:
        """Give up the lease of ``ticket``, of which nothing was told: the same request goes on. The charge stands."""
        self._check_ticket(ticket)
        lease = ticket._lease
        if not lease:
            return
        ticket._lease = ""  # no lease has this name
        locks.let_go(lease)  # from here on this process counts as done
        try:
            with self._log.writing():
                held = self._log.store.lease(ticket.sequence)
                if held is not None and held[1] == lease:
                    self._log.store.end_lease(ticket.sequence)
        except LedgerError as e:  # the caller is failing already; others wait until this process has ended
            logging.getLogger("dpframe").warning("A request could not be given up: %s", e)

    def _check_ticket(self, ticket: Ticket) -> None:
        if ticket._pid != os.getpid():
            raise broken(
                self.path,
                "was charged in the process that this one was forked from",
                "answer where you charged",
            )

    def _owns(self, ticket: Ticket) -> bool:
        held = self._log.store.lease(ticket.sequence)
        return (None if held is None else held[1]) == ticket._lease

    def _settle(self, scope: str | None, request_id: str) -> None:
        """Wait until the request is answered, free, or its owner dead. Outside any transaction."""
        pause, until = 0.002, time.monotonic() + 5
        while True:
            with self._log.reading():
                charged = self._log.known.requests.get((scope, request_id))
                if charged is None or charged.release is not None or not self._answering(charged):
                    return
            time.sleep(pause)
            pause = min(2 * pause, 0.1)
            if time.monotonic() > until:
                until = float("inf")
                logging.getLogger("dpframe").info(
                    "Request %r is being answered elsewhere; waiting.", request_id
                )

    def _answering(self, charged: Charged) -> bool:
        held = self._log.store.lease(charged.head.sequence)
        return held is not None and locks.leased(self.path, *held)
