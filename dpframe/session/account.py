"""A session's account: a line for every charge, the receipt of each, and all that a statement says."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import polars as pl

from dpframe.accounting.account_frame import TIME
from dpframe.accounting.events import Cost, Event
from dpframe.accounting.filter import Budget, State
from dpframe.accounting.policy import Policy
from dpframe.errors import InPython
from dpframe.release.release import Release


@dataclass(slots=True)
class Entry:
    """One line of a session's account. Public: no value that was read from a frame."""

    index: int
    time: dt.datetime
    label: str | None
    question: str
    mechanism: str
    cost: Cost
    repeat_of: int | None
    private: bool
    closes: bool  # whether this charge ended the adding up of eps
    event: Event  # as it was asked for; ``cost`` is what it was charged as
    replayed: bool = False  # whether the answer was paid for and stored earlier
    release: Release | None = field(default=None, repr=False)


def answer_at(entries: Iterable[Entry], index: int) -> InPython | None:
    """How to read the answer that a charge paid for, if it was given."""
    entries = list(entries)
    entry = next((e for e in entries if e.index == index), None)
    if entry is None or entry.release is None:
        return None
    position = sum(1 for e in entries if e.release is not None and e.index < index)
    read = f"s[{entry.label!r}]" if entry.label else f"s.releases[{position}]"
    return InPython(read, f"that of query {entry.label!r}" if entry.label else f"release {position}")


class Keeper(Protocol):
    """A ledger, as a receipt uses it."""

    path: str

    def store(self, ticket: Any, payload: bytes) -> Any: ...

    def fail(self, ticket: Any) -> None: ...

    def failed(self, ticket: Any) -> None: ...

    def check_window(self, ticket: Any) -> None: ...


log = logging.getLogger("dpframe")


@dataclass(eq=False)
class Receipt:
    """A paid charge: the right to one release, or a release that was paid for earlier.

    Attributes
    ----------
    entries : list of (Session, Entry)
        The session's line, then those of the sessions it stands in.
    time : datetime
        When it was charged (UTC).
    stored : bytes or None
        The answer, if this request was answered before.
    released_at : datetime or None
        When it was stored.
    head : str or None
        Where the ledger stood with the release, as "row:hash".
    version : str or None
        The version of dpframe that drew a stored answer.
    """

    entries: list[tuple[Any, Entry]]  # (session, its line)
    time: dt.datetime
    stored: bytes | None = None
    released_at: dt.datetime | None = None
    head: str | None = None
    version: str | None = None
    tickets: list[tuple[Keeper, Any]] = field(default_factory=list)

    def keep(self, release: Release) -> None:
        """Keep the release in the accounts that paid for it."""
        for session, entry in self.entries:
            session._keep(entry, release)

    def store(self, payload: bytes) -> None:
        """Keep the release in the ledgers, before it is handed out. LedgerError if one can't."""
        for i, (ledger, ticket) in enumerate(self.tickets):
            head = ledger.store(ticket, payload)
            if i == 0:  # the ledger nearest to the call
                self.head = head.text
                log.info("A release was stored in %s; its head is %s.", ledger.path, head)

    def fail(self, *, told: bool) -> None:
        """Give up answering. The charge stands; with ``told`` (the engine failed, and it will be said) it is over.

        Privacy: one rule for every session, ledger and request. That an engine failed may depend on the data,
        and it is told: a charge buys one answer or one failure, and whoever asks again pays again. What was
        interrupted or killed told nothing, so the same question goes on under the charge that was paid.
        """
        for ledger, ticket in self.tickets:
            if told:
                ledger.failed(ticket)
            else:
                ledger.fail(ticket)


@dataclass(frozen=True, slots=True)
class Account:
    """All that a session can say of itself: whom it protects, its budgets with what they hold, every charge."""

    policy: Policy
    budget: Budget
    state: State
    entries: tuple[Entry, ...]
    whole: Budget  # what limits everything together: the ledger's budget, if there is one
    shared: dict[str, tuple[Budget, State]] | None = None  # of a ledger: its budgets by domain
    scope: str | None = None
    over_time: str = ""
    window: str = ""  # of a ledger: its length in words
    lifetime: Budget | None = None  # of a ledger with a window: what limits all windows together


COLUMNS: dict[str, Any] = {  # of an account as a frame; they are described in ``Session.report``
    "index": pl.Int64,
    "label": pl.String,
    "question": pl.String,
    "eps": pl.Float64,
    "delta": pl.Float64,
    "rho": pl.Float64,
    "mechanism": pl.String,
    "time": TIME,
    "repeat_of": pl.Int64,
    "private": pl.Boolean,
    "replayed": pl.Boolean,
}
