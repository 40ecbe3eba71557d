"""Ledgers: one durable budget for processes, threads and forks.

Privacy: everything charged to a ledger composes sequentially, whoever asks from whatever process. A charge
is reserved and on disk before any data is read; the release is on disk before it is handed out; nothing is
ever given back. Check and record are one transaction that nobody else can be in. The rows are chained by
hashes and anchored in a second file; whatever does not add up is refused, and nothing falls back to memory.
Rows hold no row count, no true value and no words of an exception.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import secrets
from collections.abc import Iterator
from typing import Unpack

import polars as pl

from dpframe._version import __version__
from dpframe.accounting.account_frame import as_frame
from dpframe.accounting.budgets import DeclaredOptions, read_budget, read_policy
from dpframe.accounting.claims import Busy, Claim, Head, Ticket
from dpframe.accounting.events import Cost, Number, least
from dpframe.accounting.filter import Budget, State
from dpframe.accounting.policy import Policy
from dpframe.base.uncopied import Uncopied
from dpframe.base.wrong_calls import checked
from dpframe.errors import (
    Arg,
    Call,
    Code,
    InputError,
    InPython,
    Message,
    NearNames,
    check_text,
    did_you_mean,
)
from dpframe.ledger.answering import Answering
from dpframe.ledger.declaration import (
    FORMAT,
    Declaration,
    length,
    read_part,
    read_window,
)
from dpframe.ledger.granting import Transaction
from dpframe.ledger.log import Log
from dpframe.ledger.rows import write_time
from dpframe.ledger.store import place_of, write_new
from dpframe.ledger.sums import COLUMNS, LedgerEntry
from dpframe.release.payload import from_bytes
from dpframe.release.stored import StoredAnswer

_RIGHT = "dp.Ledger.create('budget.db', eps=3), then dp.Ledger('budget.db')"


class Ledger(Answering, Uncopied, NearNames):
    """A budget in a file, shared by all processes, threads and forks that open it.

    Parameters
    ----------
    path : str or PathLike
        The file that ``dp.Ledger.create`` made. It is never created here.
    anchor : str or PathLike, optional
        Where its anchor lies now, if not where it was declared.

    Raises
    ------
    LedgerError
        If the file or its anchor is missing, damaged, of another version, an older copy, or locked too long.

    Notes
    -----
    Privacy: (eps, delta)-DP per unit for everything ever charged to the ledger, together (with a window: for
    everything released in any one window of that length, given what came before it). The filter is that of
    sessions (``dpframe.accounting.filter``); the rows are its transcript. What can't be detected: ledger *and*
    anchor put back together to an older copy, or copied together and both used. Nobody can tell without a head
    that was kept elsewhere, so keep the heads printed with releases. The system's clock is trusted forwards: a
    clock that runs ahead makes a window forget too early.

    Examples
    --------
    >>> import dpframe as dp, pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = dp.Ledger.create(pathlib.Path(folder.name) / "budget.db", eps=3, delta=1e-6)
    >>> ledger.spent == 0, ledger.remaining.eps == 3
    (True, True)
    >>> ledger.close(); folder.cleanup()
    """

    _copied = Message(("A ledger can't be copied.",), ("pass it along, or open its path again.",))
    _pickled = Message(("A ledger can't be pickled.",), ("open its path in the other process.",))
    _patience = 30.0  # seconds that a lock is waited for

    @checked(example=_RIGHT)
    def __init__(self, path: str | os.PathLike[str], *, anchor: str | os.PathLike[str] | None = None) -> None:
        self.path = place_of(path, "path")
        at = None if anchor is None else place_of(anchor, "anchor")
        self._log = Log(self.path, at, self._patience, lambda: Ledger._clock())

    @staticmethod
    def _clock() -> dt.datetime:
        return dt.datetime.now(dt.UTC)

    @classmethod
    @checked(example=_RIGHT, options=DeclaredOptions.__annotations__)
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        per_scope: dict[str, Number] | None = None,
        window: str | dt.timedelta | None = None,
        lifetime: dict[str, Number] | None = None,
        anchor: str | os.PathLike[str] | None = None,
        **budget: Unpack[DeclaredOptions],
    ) -> Ledger:
        """Declare a budget in a new file, once.

        Parameters
        ----------
        path : str or PathLike
            A file that is not there yet, on a local disk.
        **budget
            ``eps``, ``delta``, ``delta_calls``, ``rho``, ``accountant``, ``order``, ``neighbors``, ``unit``,
            ``contributions``: as for ``dp.Session``; fixed for good. The accountant is that of the scopes and the lifetime, too.
        per_scope : dict, optional
            A budget for each scope beside the total: ``dict(eps=0.1)``. Every session then names its scope.
        window : str or timedelta, optional
            "30d", "12h", "90m": the total is then the budget of each window of that length.
        lifetime : dict, optional
            With ``window``: a budget for all windows together.
        anchor : str or PathLike, optional
            Where the anchor lies; ``<path>.anchor`` unless given. On another disk it is not lost together
            with the ledger.

        Raises
        ------
        InputError
            If the file or its anchor is there already, or a parameter is wrong.
        LedgerError
            If it can't be written.
        """
        place = place_of(path, "path")
        if (budget.get("eps") is None) == (budget.get("rho") is None):
            raise InputError(
                "A ledger needs ",
                Arg("eps"),
                " or ",
                Arg("rho"),
                ", one of them.",
                hint=Call("dp.Ledger.create", Code("path"), eps=3),
            )
        if lifetime is not None and window is None:
            raise InputError(
                Arg("lifetime"),
                " goes with ",
                Arg("window"),
                "; without one, eps is for life.",
                hint=Arg("window", "30d"),
            )
        accountant = budget.get("accountant") or "union"
        declaration = Declaration(
            FORMAT,
            secrets.token_hex(16),
            write_time(cls._clock()),
            __version__,
            read_policy(budget),
            read_budget(budget),
            read_part(per_scope, "per_scope", accountant),
            read_part(lifetime, "lifetime", accountant),
            read_window(window),
            None if anchor is None else place_of(anchor, "anchor"),
        )
        write_new(place, declaration)
        return cls(place)

    # ---- declared ----

    @property
    def policy(self) -> Policy:
        """The neighbouring relation and the unit."""
        return self._log.declaration.policy

    @property
    def budget(self) -> Budget:
        """The total; with a window, the budget of each window."""
        return self._log.declaration.budget

    @property
    def per_scope(self) -> Budget | None:
        """The budget of each scope."""
        return self._log.declaration.per_scope

    @property
    def lifetime(self) -> Budget | None:
        """With a window: the budget of all windows together."""
        return self._log.declaration.lifetime

    @property
    def accountant(self) -> str:
        """How charges add up."""
        return self._log.declaration.budget.rules.name

    def check_scope(self, scope: str | None) -> None:
        """InputError for a scope that the ledger was not declared for, or a missing one."""
        if scope is None:
            if self.per_scope is not None:
                raise InputError(
                    f"The ledger {self.path} has a budget for each scope.",
                    hint=(Arg("scope", "2026-11-29"), ", or another name"),
                )
            return
        if not isinstance(scope, str) or not scope:
            raise InputError(Arg("scope", scope), " must be text.", hint=Arg("scope", "2026-11-29"))
        check_text(scope, "scope")
        if self.per_scope is None and self.window is None:
            raise InputError(
                f"The ledger {self.path} was declared without scopes, so ",
                Arg("scope", scope),
                " would have the whole budget.",
                hint=("leave scope out, or ", Call("dp.Ledger.create", ..., per_scope=Call("dict", eps=0.1))),
            )

    # ---- charging ----

    @contextlib.contextmanager
    def charging(self, scope: str | None = None) -> Iterator[Transaction]:
        """One atomic step of checking and charging.

        Everything reserved inside is committed, read back and anchored when the block ends; an exception
        leaves the ledger as it was. Blocks of several ledgers may be nested (enter them in the order of
        ``path``, so that two processes do not wait for each other): all are checked before any is charged.
        The block must not read data or wait.

        Raises
        ------
        LedgerError
            If anything is wrong with the ledger; nothing was granted.

        Examples
        --------
        ::

            while True:
                try:
                    with ledger.charging(scope) as t:
                        ticket = t.reserve(claim)
                    break
                except Busy as busy:
                    busy.wait()
        """
        self.check_scope(scope)
        with self._log.writing():
            yield Transaction(self, scope)

    def reserve(self, claim: Claim, scope: str | None = None) -> Ticket:
        """Charge ``claim`` in ``scope``, in a step of its own; waits where somebody alive is answering the same request."""
        while True:
            try:
                with self.charging(scope) as transaction:
                    return transaction.reserve(claim)
            except Busy as busy:
                busy.wait()

    # ---- reading ----

    @checked(example="ledger.state()")
    def state(self, scope: str | None = None) -> dict[str, tuple[Budget, State]]:
        """What is spent now: ``"total"`` (of the present window, if there is one), ``"scope"``, ``"lifetime"``.

        Each is (budget, state): ``budget.spent(state)`` and ``budget.remaining(state)`` are costs.
        """
        if scope is not None:
            self.check_scope(scope)
        with self._log.reading():
            return self._log.states(scope, self._clock())

    @property
    def spent(self) -> Cost:
        """What everybody has charged (with a window: within the present one)."""
        budget, state = self.state()["total"]
        return budget.spent(state)

    @property
    def remaining(self) -> Cost:
        """What would still be granted, by all budgets but those of scopes.

        A session on the ledger says what is left in its scope: ``dp.Session(ledger=..., scope=...).remaining``.
        """
        return least([budget.remaining(state) for budget, state in self.state().values()])

    @checked(example="ledger.entries()")
    def entries(self, scope: str | None = None) -> list[LedgerEntry]:
        """Every charge (of one scope, if given), oldest first."""
        with self._log.reading():
            charges = self._log.known.charges.values()
            return [c.entry() for c in charges if scope is None or c.content["scope"] == scope]

    @checked(example="ledger.answer('arrivals-2026-11-29')")
    def answer(self, request_id: str, *, scope: str | None = None) -> StoredAnswer:
        """The stored answer to a request. It needs neither the frame nor the question, and costs nothing.

        Parameters
        ----------
        request_id : str
            As it was asked; a query of a budget plan is "<plan>/<query>".
        scope : str, optional
            The scope in which it was asked.

        Raises
        ------
        InputError
            Where there is no such request in the scope, or no answer yet, or the answer does not say enough to be read
            without its question (dpframe 0.1 stored no table).
        """
        if not isinstance(request_id, str) or not request_id:
            raise InputError(
                Arg("request_id", request_id), " must be text.", hint=Arg("request_id", "arrivals-2026-11-29")
            )
        found = self.stored(request_id, scope)
        if found is None:
            raise self._unanswered(request_id, scope)
        charged, payload = found
        kept, stored = from_bytes(payload), charged.release
        if kept.table is None or kept.facts is None or stored is None:
            raise InputError(
                f"The answer to {request_id!r} was stored without its table.",
                hint=InPython("ask the same question with the same request_id", "run its release file again"),
            )
        facts = {**kept.facts, "ledger_head": stored.head.text}
        return StoredAnswer(request_id, scope, kept.table, facts, stored.time, stored.version)

    def _unanswered(self, request_id: str, scope: str | None) -> InputError:
        """The refusal of a request that has no answer."""
        entries = self.entries()
        if any(e.request_id == request_id and e.scope == scope for e in entries):
            return InputError(
                f"{request_id!r} was charged and has no answer: it failed, or is still asked.",
                hint=InPython("ask again with the same request_id", "run again"),
            )
        scopes = [e.scope for e in entries if e.request_id == request_id]
        if scopes:
            other = None if scopes[-1] is None else scopes[-1]
            return InputError(
                f"{request_id!r} was not asked in the scope {scope!r}.",
                hint=Arg("scope", other) if other is not None else "leave the scope out",
            )
        known = dict.fromkeys(e.request_id for e in entries if e.request_id is not None)
        return InputError(f"There is no request {request_id!r}. {did_you_mean(request_id, list(known))}")

    @property
    def anchor(self) -> str:
        """Where the anchor lies."""
        return self._log.anchor

    @property
    def head(self) -> Head:
        """Where the ledger stands now."""
        with self._log.reading():
            return self._log.known.head

    def verify(self) -> None:
        """Read everything anew: file, chain, sums, stored releases, anchor. LedgerError where broken."""
        self._log.verify()

    def export(self) -> pl.DataFrame:
        """Every charge as a row: the public columns of ``LedgerEntry``, costs as floats.

        Returns
        -------
        polars.DataFrame
        """
        return as_frame(self.entries(), COLUMNS)

    def close(self) -> None:
        """Close the file. What was charged stays charged."""
        self._log.close()

    # ---- identity ----

    def __repr__(self) -> str:
        d = self._log.declaration
        window = f" in each {length(d.window_length)}" if d.window_length is not None else ""
        scopes = f", {d.per_scope.text()} per scope" if d.per_scope is not None else ""
        return f"<dpframe ledger {os.path.basename(self.path)}: {d.budget.text()}{window}{scopes} per {d.policy.unit_name} ({d.policy.neighbors})>"


def window_text(ledger: Ledger) -> str:
    """What the ledger's budget promises over time, in words for a report."""
    return ledger._log.declaration.window_text()
