"""Sessions: the policy and the budget that releases are charged to.

Privacy: everything released in a session composes sequentially, whatever frame it came from, so no
copy, filter or join of a frame can refill a budget. A charge is one step under one lock: check and
record are never apart, and it comes before any data is touched. A failure after it keeps it.
"""

from __future__ import annotations

import datetime as dt
import os
from collections import deque
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, overload

import polars as pl

from dpframe.accounting.budgets import read_budget, read_policy
from dpframe.accounting.events import Cost, Number, least, rational
from dpframe.accounting.filter import Budget, State
from dpframe.accounting.policy import Charge, Limits, Policy
from dpframe.base.html import Page
from dpframe.base.uncopied import Uncopied
from dpframe.base.wrong_calls import checked
from dpframe.errors import (
    Arg,
    Call,
    InputError,
    LedgerError,
    NearNames,
    NothingYet,
    did_you_mean,
)
from dpframe.noise import source
from dpframe.release.release import Release
from dpframe.session.account import Account, Entry, Keeper, Receipt, as_frame
from dpframe.session.current import Current, lock, opened
from dpframe.session.shares import divided
from dpframe.session.statement import Statement, statement

if TYPE_CHECKING:
    from dpframe.accounting.report import Report
    from dpframe.ledger.book import Ledger


class Session(Current, Uncopied, Page, NearNames):
    """A budget, a neighbouring relation and an account of what was released.

    Parameters
    ----------
    eps : number
        The total epsilon. Everything released in the session is (eps, delta)-DP together.
    delta : number
        The total delta (default 0: pure).
    delta_calls : number, optional
        The part of delta that single calls may use (default: half); the rest converts rho.
    rho : number
        Instead of ``eps``: the total zCDP cost. The guarantee is then delta_calls-approximate rho-zCDP.
    accountant : {"union", "sum", "zcdp", "rdp", "gdp"}, default "union"
        What is added up to see whether a call is granted (docs/accounting.md); fixed when the session
        opens. ``delta_calls`` is by default half of delta, all of it under "sum", none under "gdp".
    order : number, optional
        The order of the Renyi divergence of ``accountant="rdp"``. By default the one at which (eps,
        delta - delta_calls) pays for most Gaussian noise.
    neighbors : {"add_remove", "replace_one"}, default "add_remove"
        What one protected row may do: appear or vanish, or become another.
    unit : str or list of str, optional
        The column (or columns, together) whose value says whom a row belongs to; one protected change
        is all rows of one such value. None: one row. Rows without a unit id are left out.
    ledger : path or Ledger, optional
        A budget in a file (see :class:`dpframe.Ledger`), opened and never created here. ``eps`` and ``delta``
        are then this session's own cap beside it; ``unit``, ``neighbors`` and the accountant are the ledger's.
    scope : str, optional
        The scope of the ledger that this session charges, where it was declared with scopes or a window.
    max_groups, max_rows_per_group, max_rows : int, optional
        Defaults for the calls of a session with a unit: in how many groups a unit may count, and for
        how many rows in each group, or ungrouped.
    strict : bool
        Refuse lazy frames whose plan has steps that are not known to be row by row: joins, windows, group_by
        (unless its keys hold the unit), sorting, slices, Python functions. An eager frame's past can't be seen,
        and it passes.

    Raises
    ------
    InputError
        For a budget that is not a positive finite number, an unknown relation or accountant, or an
        accountant that could grant nothing.
    LedgerError
        For a ledger that is missing, damaged, an older copy, or locked too long.

    Notes
    -----
    Privacy: (eps, delta)-DP per unit for the session's whole transcript, with costs chosen
    adaptively; the filter is stated and argued in ``dpframe.accounting.filter``.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"late": [True, False, True, True]})
    >>> with dp.Session(eps=1) as s:
    ...     share = df.dp.clip_mean("late", eps=0.25)
    >>> s.spent == 0.25
    True
    """

    _copied = "A session can't be copied: a copy would have its budget twice. Hint: pass it along."
    _pickled = "A session can't be pickled: a copy would have its budget twice."
    _ledger: Ledger | None

    @checked(example="dp.Session(eps=1, delta=1e-6)")
    def __init__(
        self,
        *,
        eps: Number | None = None,
        delta: Number | None = None,
        delta_calls: Number | None = None,
        rho: Number | None = None,
        accountant: str | None = None,
        order: Number | None = None,
        neighbors: str | None = None,
        unit: str | list[str] | None = None,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        scope: str | None = None,
        max_groups: int | None = None,
        max_rows_per_group: int | None = None,
        max_rows: int | None = None,
        strict: bool = False,
    ) -> None:
        if not isinstance(strict, bool):
            raise InputError(Arg("strict", strict), " must be True or False.", hint=Arg("strict", True))
        policy = read_policy("add_remove" if neighbors is None else neighbors, unit)
        book = None if ledger is None else _book(ledger)
        if book is not None:
            policy = _same_policy(book, neighbors, policy.unit)
            book.check_scope(scope)
        elif scope is not None:
            raise InputError(
                Arg("scope", scope),
                " goes with ",
                Arg("ledger"),
                ".",
                hint=Call("dp.Session", ledger="budget.db", scope=...),
            )
        limits = Limits(max_groups, max_rows_per_group, max_rows).checked()
        if policy.unit is None and limits != Limits():
            raise InputError(
                "max_groups, max_rows_per_group and max_rows go with ",
                Arg("unit"),
                ".",
                hint=Arg("unit", "user_id"),
            )
        capped = any(x is not None for x in (eps, delta, delta_calls, rho, order))
        usual = "union" if book is None else book.accountant
        budget = Budget()
        if book is None or capped:
            budget = read_budget(
                eps, delta, delta_calls, rho, usual if accountant is None else accountant, order
            )
        elif accountant not in (None, usual):
            raise InputError(
                f"The ledger {book.path} has ",
                Arg("accountant", usual),
                "; ",
                Arg("accountant", accountant),
                " was given.",
                hint="leave it out",
            )
        self._setup(budget, policy, limits, book, scope)
        self._strict = strict
        opened.add(self)

    def _setup(
        self,
        budget: Budget,
        policy: Policy,
        limits: Limits | None = None,
        ledger: Ledger | None = None,
        scope: str | None = None,
    ) -> None:
        self._ledger, self._scope = ledger, scope
        self._budget, self._policy, self._limits = budget, policy, limits or Limits()
        self._state = State()
        self._entries: deque[Entry] = deque(maxlen=None if type(self) is Session else 100)
        self._charges = 0
        self._asked: dict[Hashable, int] = {}
        self._owed: dict[
            tuple[Hashable, str | None], Receipt
        ] = {}  # of interrupted calls: paid for, and not answered yet
        self._labels: dict[str, Release] = {}
        self._outer: tuple[Session, ...] = ()
        self._inherited: tuple[Session, ...] = ()
        self._part = False
        self._paid: list[tuple[Keeper, Any]] = []  # of a part: what pays for its answers
        self._depth = 0
        self._strict = False
        self._split = False
        self._whole: Session | None = None  # the session that this one is a share of
        self._warned_id = self._said = False
        self._pid = os.getpid()

    # ---- charging ----

    def _record(self, state: State | None, charge: Charge, label: str | None, now: dt.datetime) -> Entry:
        """Add a line to the account; ``state`` is None for an answer that was paid for before."""
        replayed = state is None
        state = self._state if state is None else state
        before, self._state = self._state, state
        charged = Cost(
            None if state.eps is None or before.eps is None else state.eps - before.eps,
            state.delta - before.delta,
            state.rho - before.rho,
        )
        first = self._charges if replayed else self._asked.setdefault(charge.same, self._charges)
        repeat = first if first != self._charges else None
        counted = self._budget.eps is not None and self._budget.rules.by_eps
        closes = counted and before.eps is not None and state.eps is None
        entry = Entry(
            self._charges,
            now,
            label,
            charge.question,
            charge.mechanism,
            charged,
            repeat,
            source.is_private(),
            closes,
            charge.event,
            replayed,
        )
        self._charges += 1
        self._entries.append(entry)
        return entry

    def _keep(self, entry: Entry, release: Release) -> None:
        with lock:
            entry.release = release
            if entry.label is not None:
                self._labels.setdefault(entry.label, release)

    # ---- reading ----

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
            raise KeyError(f"No release has the label {label!r}. {there} Hint: s.releases[0], s.last")
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
            return as_frame(list(self._entries))
        if self._split or self._charges > len(self._entries):
            raise InputError(
                "This session was split, so its parts report. Hint: parts[0].report(accountant='pld')"
                if self._split
                else "The ambient session keeps its last 100 charges only. Hint: with dp.Session(eps=1) as s: ..."
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

    @checked(example="s.split(12), or s.split({'a': 0.5, 'b': 0.5})")
    def split(self, shares: int | Mapping[str, Number], *, by: str | None = None) -> Any:
        """Divide an unspent budget into sessions of their own.

        Parameters
        ----------
        shares : int or mapping
            A number of equal parts (a list comes back), or names with their fractions (a dict comes
            back; the fractions add up to at most 1).
        by : {"eps", "rho"}, optional
            Whether the parts share eps (each grants while its epsilons add up to its share) or rho (as
            this session's accountant measures it). By default eps under the accountants "union" and
            "sum", else rho.

        Notes
        -----
        Privacy: all parts are one transcript of this session's filter: sums of shares of eps and
        delta_calls (or of rho) are at most the whole. This session grants nothing more.
        """
        how, parts = divided(self._budget, shares, by)
        with lock:
            self._check_process()
            if self._ledger is not None:
                raise InputError(
                    "A ledger's budget can't be split: others charge it, too.",
                    hint=Call("dp.Ledger.create", ..., per_scope=Call("dict", eps=0.1)),
                )
            if self._split or self._charges:
                raise InputError("Only an unspent session can be split.")
            if how == "rho" and not self._budget.rho_limit:
                raise InputError(
                    "This session has no rho to share.",
                    hint=("open it with ", Arg("delta"), " or ", Arg("rho"), "."),
                )
            self._split = True
            children = {k: self._child(self._budget.share(f, how)) for k, f in parts.items()}
            opened.discard(self)
        return children if isinstance(shares, Mapping) else list(children.values())

    def _child(self, budget: Budget) -> Session:
        child = share(budget, self._policy, self._limits)
        child._whole, child._strict = self, self._strict
        child._outer = child._inherited = self._outer
        opened.add(child)
        return child

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


def _book(ledger: Any) -> Ledger:
    from dpframe.ledger.book import Ledger

    return ledger if isinstance(ledger, Ledger) else Ledger(ledger)


def _same_policy(book: Ledger, neighbors: str | None, unit: tuple[str, ...] | None) -> Policy:
    """The ledger's policy, which what was typed beside it must match."""
    p = book.policy
    if (neighbors or p.neighbors) != p.neighbors or (unit is not None and unit != p.unit):
        raise InputError(
            f"The ledger {book.path} protects {p.neighbors}, {p.unit_name}; ",
            Arg("neighbors", neighbors),
            ", ",
            Arg("unit", unit),
            " were given.",
            hint="leave them out",
        )
    return p


def share(budget: Budget, policy: Policy, limits: Limits) -> Session:
    session = Session.__new__(Session)
    session._setup(budget, policy, limits)
    return session
