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
from typing import TYPE_CHECKING, Any, Unpack

from dpframe.accounting.budgets import SessionOptions
from dpframe.accounting.events import Number
from dpframe.accounting.filter import Budget, State
from dpframe.accounting.policy import Charge
from dpframe.base.arguments import check_flag
from dpframe.base.html import Page
from dpframe.base.uncopied import Uncopied
from dpframe.base.wrong_calls import checked
from dpframe.errors import Arg, Call, InputError, Message, NearNames, warn
from dpframe.noise import source
from dpframe.release.release import Release
from dpframe.session.account import Entry, Keeper, Receipt
from dpframe.session.current import Current, lock, opened
from dpframe.session.reported import Reported
from dpframe.session.shares import divided
from dpframe.session.terms import Terms, read_terms

if TYPE_CHECKING:
    from dpframe.ledger.book import Ledger


class Session(Current, Reported, Uncopied, Page, NearNames):
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
        is all rows of one such value. None: one row. Rows without a unit id are left out. Of several columns one
        *combination* is protected, which is less than each of them; a warning says so.
    contributions : int, optional
        Instead of ``unit``, for rows that don't say whose they are: any so many rows are one protected unit (default 1:
        one row, the same relation as without it). It is your word that nobody has more rows in what is asked; nothing is cut,
        and noise is made for so many rows. A person with more is protected less. Up to 2**24.
    ledger : path or Ledger, optional
        A budget in a file (see :class:`dpframe.Ledger`), opened and never created here. ``eps`` and ``delta``
        are then this session's own cap beside it; ``unit``, ``contributions``, ``neighbors`` and the accountant are the
        ledger's.
    scope : str, optional
        The scope of the ledger that this session charges, where it was declared with scopes or a window.
    max_groups, max_rows_per_group, max_rows : int, optional
        Defaults for the calls of a session with a unit: in how many groups a unit may count, and for
        how many rows in each group, and in all (over all groups together, or ungrouped).
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

    _copied = Message(
        ("A session can't be copied: a copy would have its budget twice.",), ("pass it along.",)
    )
    _pickled = Message(("A session can't be pickled: a copy would have its budget twice.",))

    @checked(example="dp.Session(eps=1, delta=1e-6)", options=SessionOptions.__annotations__)
    def __init__(
        self,
        *,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        scope: str | None = None,
        strict: bool = False,
        **budget: Unpack[SessionOptions],
    ) -> None:
        check_flag("strict", strict)
        self._setup(read_terms(budget, ledger, scope))
        unit = self._policy.unit or ()
        if len(unit) > 1:
            warn(
                f"Protected is one {self._policy.unit_name}: whoever has many of them is protected that many times less.",
                hint=("if one column stands for a person, ", Arg("unit", unit[0])),
            )
        self._strict = strict
        opened.add(self)

    def _setup(self, terms: Terms) -> None:
        self._budget, self._policy, self._limits, self._ledger, self._scope = terms
        self._state = State()
        self._entries: deque[Entry] = deque(maxlen=None if type(self) is Session else 100)
        self._charges = 0
        self._asked: dict[Hashable, int] = {}
        self._owed: dict[tuple[Hashable, str | None], Receipt] = {}  # of interrupted calls: not answered yet
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
        first = self._charges if replayed else self._asked.setdefault(charge.same, self._charges)
        counted = self._budget.eps is not None and self._budget.rules.by_eps
        entry = Entry(
            self._charges,
            now,
            label,
            charge.question,
            charge.mechanism,
            state.since(before),
            first if first != self._charges else None,
            source.is_private(),
            counted and before.eps is not None and state.eps is None,
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
        child = sharing(Terms(budget, self._policy, self._limits))
        child._whole, child._strict = self, self._strict
        child._outer = child._inherited = self._outer
        opened.add(child)
        return child


def sharing(terms: Terms) -> Session:
    """A session that a part of another's budget, or a charge of its own, pays for."""
    session = Session.__new__(Session)
    session._setup(terms)
    return session
