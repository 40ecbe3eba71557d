"""What a session says of itself: its budget, its releases, its account. Public; no true value."""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from typing import TYPE_CHECKING, overload

import polars as pl

from dpframe.accounting.account_frame import as_frame
from dpframe.accounting.events import Cost, Number, least, rational
from dpframe.accounting.filter import Budget, State
from dpframe.accounting.policy import Policy
from dpframe.base.wrong_calls import checked
from dpframe.errors import Arg, Call, InputError, InPython, LedgerError, NothingYet, did_you_mean, worded
from dpframe.release.release import Release
from dpframe.session.account import COLUMNS, Account, Entry
from dpframe.session.statement import Statement, statement

if TYPE_CHECKING:
    from dpframe.accounting.report import Report
    from dpframe.ledger.book import Ledger


class Reported:
    """A session as one reads it. Reading costs nothing."""

    _budget: Budget
    _policy: Policy
    _ledger: Ledger | None
    _scope: str | None
    _state: State
    _entries: deque[Entry]
    _charges: int  # with those whose entries an ambient session has dropped
    _labels: dict[str, Release]
    _strict: bool
    _split: bool

    @property
    def _limited(self) -> bool:
        return self._ledger is not None or not self._budget.unlimited

    @property
    def policy(self) -> Policy:
        """The neighbouring relation and the unit."""
        return self._policy

    @property
    def budget(self) -> Budget:
        """What the session may spend in all; without a limit where a ledger alone limits, and for the ambient one."""
        return self._budget

    @property
    def ledger(self) -> Ledger | None:
        """The ledger that pays, if there is one."""
        return self._ledger

    @property
    def scope(self) -> str | None:
        """The scope of the ledger that this session charges."""
        return self._scope

    @property
    def spent(self) -> Cost:
        """What has been charged: exact ``.eps``, ``.delta``, ``.rho``; ``float()`` gives eps.

        eps is the least of the sum of epsilons and the conversion of the sum of rho. It is a reading
        of an odometer; the guarantee of a session is its budget. With a ledger it is what everybody
        has charged to it (with a window: within the present one).
        """
        if self._ledger is not None:
            budget, state = self._ledger.state(self._scope)["total"]
            return budget.spent(state)
        return self._budget.spent(self._state)

    @property
    def remaining(self) -> Cost:
        """The largest pure eps that would be granted now, and what is left of delta_calls and rho.

        With a ledger: the least that the session's own cap and the ledger's budgets leave.
        """
        if not self._limited:
            raise NothingYet(
                "The ambient session has no limit.", hint=("with ", Call("dp.Session", eps=1), " as s: ...")
            )
        if self._split:
            return Cost(Fraction(0), Fraction(0), Fraction(0))
        left = [] if self._budget.unlimited else [self._budget.remaining(self._state)]
        if self._ledger is not None:
            left += [b.remaining(state) for b, state in self._ledger.state(self._scope).values()]
        return least(left)

    @property
    def strict(self) -> bool:
        """Whether lazy frames must be row by row."""
        return self._strict

    @property
    def neighbors(self) -> str:
        """The neighbouring relation."""
        return self._policy.neighbors

    @property
    def releases(self) -> list[Release]:
        """Everything released, oldest first. Releases are public; reading them costs nothing."""
        return [e.release for e in self._entries if e.release is not None]

    @property
    def last(self) -> Release:
        """The newest release."""
        kept = self.releases
        if not kept:
            raise NothingYet(
                "Nothing has been released in this session yet.",
                hint=("with s: ", Call("df.dp.count", eps=0.1)),
            )
        return kept[-1]

    def __getitem__(self, label: str) -> Release:
        if label not in self._labels:
            there = did_you_mean(str(label), self._labels) if self._labels else "No label was given."
            raise worded(
                KeyError, f"No release has the label {label!r}. {there}", hint="s.releases[0], s.last"
            )
        return self._labels[label]

    @overload
    def report(self) -> pl.DataFrame: ...
    @overload
    def report(self, *, accountant: str, delta: Number | None = None) -> Report: ...

    @checked(example="s.report(), or s.report(accountant='pld')")
    def report(self, *, accountant: str | None = None, delta: Number | None = None) -> pl.DataFrame | Report:
        """The account: one row per charge, oldest first; or what all charges add up to.

        Parameters
        ----------
        accountant : {"pld", "rdp", "gdp", "zcdp", "sum"}, optional
            What to add up by. This is a report for plans that were fixed beforehand, not a gate: where a
            question depended on earlier answers, only the session's budget holds (docs/accounting.md).
        delta : number, optional
            Of that report; by default the session's.

        Returns
        -------
        polars.DataFrame or Report
            A Report has ``eps``, ``delta``, ``accountant``, ``charges`` and ``is_gate`` (false). The frame has
            ``index``, ``label``, ``question``, ``eps`` (null when charged by rho alone), ``delta``, ``rho``,
            ``mechanism``, ``time`` (UTC), ``repeat_of`` (index of the first charge for the same question)
            ``private`` (false if a test's source of noise was in place) and ``replayed`` (true for an answer
            that was paid for and stored in the ledger earlier; it costs nothing).
        """
        if accountant is None:
            if delta is not None:
                raise InputError(
                    Arg("delta"),
                    " goes with ",
                    Arg("accountant"),
                    ".",
                    hint=Call("report", accountant="pld", delta=1e-6),
                )
            return as_frame(self._entries, COLUMNS)
        if self._split or self._charges > len(self._entries):
            raise InputError(
                "This session was split, so its parts report."
                if self._split
                else "The ambient session keeps its last 100 charges only.",
                hint=InPython(
                    "parts[0].report(accountant='pld')" if self._split else "with dp.Session(eps=1) as s: ..."
                ),
            )
        from dpframe.accounting.report import report

        whole = self._budget if self._ledger is None else self._ledger.budget
        at = whole.delta if delta is None else rational(delta, "delta", zero=True, below=1)
        return report([e.event for e in self._entries if not e.replayed], accountant, at)

    def statement(self) -> Statement:
        """The account on one page and without jargon, for whoever answers for the release.

        Returns
        -------
        Statement
            Text (a ``str``): who is protected and from whom, what the budget means in odds, every release with
            its date, bounds and error, the total, and what is not promised. Public; no true value.
        """
        return statement(self._account())

    def _account(self) -> Account:
        whole, shared, over_time, window, lifetime = self._budget, None, "", "", None
        if self._ledger is not None:
            from dpframe.ledger.book import window_text
            from dpframe.ledger.declaration import length

            whole, shared = self._ledger.budget, self._ledger.state(self._scope)
            if self._ledger.window is not None:
                over_time, window = window_text(self._ledger), length(self._ledger.window)
                lifetime = self._ledger.lifetime
        return Account(
            self._policy,
            self._budget,
            self._state,
            tuple(self._entries),
            whole,
            shared,
            self._scope,
            over_time,
            window,
            lifetime,
        )

    def __repr__(self) -> str:
        b = self._budget
        if self._ledger is not None:
            return f"<dpframe session on {self._ledger!r}{self._on_the_ledger()}>"
        if b.unlimited:
            return f"<dpframe ambient session: no limit, {self._charges} charges, spent {self.spent.text()}>"
        total = b.text() + (f", accountant {b.unusual}" if b.unusual else "")
        return (
            f"<dpframe session: {total} per {self._policy.unit_name} ({self._policy.neighbors}),"
            f" {self._charges} charge{'s' * (self._charges != 1)}, spent {self.spent.text()}"
            + (", split into parts that have it all>" if self._split else ">")
        )

    def _on_the_ledger(self) -> str:
        """What everybody has spent there, and what was released here; stored answers were released before."""
        try:
            spent = f"spent {self.spent.text()}"
        except LedgerError:
            spent = "which can't be read"
        new = sum(e.release is not None and not e.replayed for e in self._entries)
        again = sum(e.replayed for e in self._entries)
        scope = f", scope {self._scope!r}" if self._scope is not None else ""
        replayed = f", {again} replayed" if again else ""
        return f"{scope}, {spent}, {new} release{'s' * (new != 1)} here{replayed}"
