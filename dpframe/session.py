"""Sessions: the policy and the budget that releases are charged to.

Privacy: everything released in a session composes sequentially, whatever frame it came from, so no
copy, filter or join of a frame can refill a budget. A charge is one step under one lock: check and
record are never apart, and it comes before any data is touched. A failure after it keeps it.
"""

from __future__ import annotations

import datetime as dt
import os
import threading
import weakref
from collections import deque
from collections.abc import Hashable, Mapping
from contextvars import ContextVar
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import polars as pl

from dpframe.account import Entry, as_frame, read_budget, read_unit
from dpframe.accounting.filter import Budget, State
from dpframe.budget import Cost, Number, rational
from dpframe.calls import checked
from dpframe.errors import InputError, NoSession, did_you_mean, show, typed
from dpframe.noise import source
from dpframe.notices import exceeded, number
from dpframe.plan import Charge, Limits, Policy

if TYPE_CHECKING:
    from types import TracebackType

    from dpframe.release import Release
    from dpframe.schema import Source

NEIGHBORS = ("add_remove", "replace_one")
_lock = threading.RLock()  # one for all sessions: a charge may concern several at once
_stack: ContextVar[tuple[Session, ...]] = ContextVar("dpframe_sessions", default=())
_in_use: list[Session] = []  # at most one: the process-wide slot of ``use()``
_open: weakref.WeakSet[Session] = weakref.WeakSet()


class Session:
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
    neighbors : {"add_remove", "replace_one"}
        What one protected row may do: appear or vanish, or become another.
    unit : str or list of str, optional
        The column (or columns, together) whose value says whom a row belongs to; one protected change
        is all rows of one such value. None: one row. Rows without a unit id are left out.
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
        For a budget that is not a positive finite number, or an unknown relation.

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

    @checked()
    def __init__(
        self,
        *,
        eps: Number | None = None,
        delta: Number | None = None,
        delta_calls: Number | None = None,
        rho: Number | None = None,
        neighbors: str = "add_remove",
        unit: str | list[str] | None = None,
        max_groups: int | None = None,
        max_rows_per_group: int | None = None,
        max_rows: int | None = None,
        strict: bool = False,
    ) -> None:
        if not isinstance(strict, bool):
            raise InputError(f"strict={typed(strict)} must be True or False. Hint: strict=True")
        if not isinstance(neighbors, str) or neighbors not in NEIGHBORS:
            raise InputError(
                f"neighbors={typed(neighbors)} is not a relation. {did_you_mean(neighbors if isinstance(neighbors, str) else '', NEIGHBORS)}"
            )
        policy = Policy(neighbors, read_unit(unit))
        limits = Limits(max_groups, max_rows_per_group, max_rows).checked()
        if policy.unit is None and limits != Limits():
            raise InputError(
                "max_groups, max_rows_per_group and max_rows go with unit=. Hint: unit='user_id'"
            )
        self._setup(read_budget(eps, delta, delta_calls, rho), policy, limits)
        self.strict = strict
        _open.add(self)

    def _setup(self, budget: Budget, policy: Policy, limits: Limits | None = None) -> None:
        self._budget, self._policy, self._limits = budget, policy, limits or Limits()
        self._state = State()
        self._entries: deque[Entry] = deque(maxlen=100 if budget.unlimited else None)
        self._charges = 0
        self._asked: dict[Hashable, int] = {}
        self._labels: dict[str, Release] = {}
        self._outer: tuple[Session, ...] = ()
        self._inherited: tuple[Session, ...] = ()
        self._part = False
        self._depth = 0
        self.strict = False
        self._split = False
        self._whole: Session | None = None  # the session that this one is a share of
        self._warned_id = self._said = False
        self._pid = os.getpid()

    # ---- being current ----

    def __enter__(self) -> Session:
        with _lock:
            self._check_process()
            self._stand_in(outside())
            self._depth += 1
        _stack.set((*_stack.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stack = list(_stack.get())
        del stack[len(stack) - 1 - stack[::-1].index(self)]  # the innermost entry of this session
        _stack.set(tuple(stack))
        with _lock:
            self._depth -= 1
            if self._depth == 0 and self not in _in_use:
                self.close()

    def use(self) -> Session:
        """Make this the session of every call in the process that has none of its own; for notebooks.

        Returns the session itself. ``close()`` ends it. Another session in use is replaced, not closed.
        """
        with _lock:
            self._check_process()
            if self not in _in_use:
                _in_use.clear()
                self._stand_in(outside())
                _in_use.append(self)
        return self

    def close(self) -> None:
        """Stop being the current session. What was spent stays spent; releases stay readable.

        It can be used again, and goes on where it was.
        """
        with _lock:
            if self in _in_use:
                _in_use.remove(self)
            _open.discard(self)  # _outer stays: a task or thread that began inside still pays there

    def _stand_in(self, sessions: tuple[Session, ...]) -> None:
        """Stand inside other sessions: they pay for this one's calls, too.

        Privacy: what is released here is part of their transcript. A session that this one is a share
        of is left out (its budget was divided), and so are those of a parent process (their budget is
        not here; using them is refused).
        """
        outer = (*self._inherited, *sessions)
        outer = tuple(dict.fromkeys(x for x in outer if x not in (self, self._whole) and x._pid == self._pid))
        for x in outer:
            if x._policy != self._policy:
                raise InputError(
                    f"A session inside another needs the same relation and unit: {self._policy.neighbors},"
                    f" {self._policy.unit_name} inside {x._policy.neighbors}, {x._policy.unit_name}."
                    " Hint: leave the outer session first"
                )
        if (self._depth or self in _in_use) and outer != self._outer:
            raise InputError(
                "This session is already in use inside other sessions. Hint: close it there first."
            )
        self._outer = outer
        _open.add(self)

    # ---- charging ----

    def _charge(self, charge: Charge, label: str | None, frame: int = 0) -> list[Entry]:
        """Charge this session and those it stands in, or none of them.

        Privacy: one step under one lock; the numbers are exact rationals and there is no tolerance.
        """
        with _lock:
            chain = (self, *self._outer)
            name = label or charge.question
            after = []
            for s in chain:
                s._check_process()
                if s._policy != charge.policy:
                    raise InputError(
                        f"The plan was made for {charge.policy.neighbors}, {charge.policy.unit_name}; the session"
                        f" protects {s._policy.neighbors}, {s._policy.unit_name}. Hint: plan it inside the session."
                    )
                if s._split:
                    raise InputError(
                        "This session's budget was split; its parts grant calls, it grants none."
                    )
                state, component = s._budget.grant(charge.event, s._state, name)
                if state is None:
                    raise exceeded(s, charge, component, label)
                after.append(state)
            now = dt.datetime.now(dt.UTC)
            return [s._record(state, charge, label, now, frame) for s, state in zip(chain, after)]

    def _record(self, state: State, charge: Charge, label: str | None, now: dt.datetime, frame: int) -> Entry:
        before, self._state = self._state, state
        charged = Cost(
            None if state.eps is None or before.eps is None else state.eps - before.eps,
            state.delta - before.delta,
            state.rho - before.rho,
        )
        first = self._asked.setdefault(charge.same, self._charges)
        repeat = first if first != self._charges else None
        closes = before.eps is not None and state.eps is None and self._budget.eps is not None
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
            frame,
        )
        self._charges += 1
        self._entries.append(entry)
        return entry

    def _keep(self, entry: Entry, release: Release) -> None:
        with _lock:
            entry.release = release
            if entry.label is not None:
                self._labels.setdefault(entry.label, release)

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise NoSession(
                "This session was opened in another process; a forked child can't share its budget."
                " Hint: open a session with its own budget in the child."
            )

    # ---- reading ----

    @property
    def spent(self) -> Cost:
        """What has been charged: exact ``.eps``, ``.delta``, ``.rho``; ``float()`` gives eps.

        eps is the least of the sum of epsilons and the conversion of the sum of rho. It is a reading
        of an odometer; the guarantee of a session is its budget.
        """
        return self._budget.spent(self._state)

    @property
    def remaining(self) -> Cost:
        """The largest pure eps that would be granted now, and what is left of delta_calls and rho."""
        if self._budget.unlimited:
            raise InputError("The ambient session has no limit. Hint: with dp.Session(eps=1) as s: ...")
        if self._split:
            return Cost(Fraction(0), Fraction(0), Fraction(0))
        return self._budget.remaining(self._state)

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
            raise InputError("Nothing has been released in this session yet.")
        return kept[-1]

    def __getitem__(self, label: str) -> Release:
        if label not in self._labels:
            there = did_you_mean(str(label), self._labels) if self._labels else "No label was given."
            raise KeyError(f"No release has the label {label!r}. {there} Hint: s.releases[0], s.last")
        return self._labels[label]

    def report(self) -> pl.DataFrame:
        """The account: one row per charge, oldest first.

        Returns
        -------
        polars.DataFrame
            ``index``, ``label``, ``question``, ``eps`` (null when charged by rho alone), ``delta``, ``rho``,
            ``mechanism``, ``time`` (UTC), ``repeat_of`` (index of the first charge for the same question)
            and ``private`` (false if a test's source of noise was in place).
        """
        return as_frame(list(self._entries))

    def split(self, shares: int | Mapping[str, Number], *, by: str = "eps") -> Any:
        """Divide an unspent budget into sessions of their own.

        Parameters
        ----------
        shares : int or mapping
            A number of equal parts (a list comes back), or names with their fractions (a dict comes
            back; the fractions add up to at most 1).
        by : {"eps", "rho"}
            Whether the parts share eps (each grants while its epsilons add up to its share) or rho.

        Notes
        -----
        Privacy: all parts are one transcript of this session's filter: sums of shares of eps and
        delta_calls (or of rho) are at most the whole. This session grants nothing more.
        """
        if by not in ("eps", "rho"):
            raise InputError(f"by={typed(by)} must be 'eps' or 'rho'.")
        if isinstance(shares, Mapping):
            parts = {k: rational(v, f"shares[{k!r}]") for k, v in shares.items()}
        elif isinstance(shares, int) and not isinstance(shares, bool) and shares > 0:
            parts = {str(i): Fraction(1, shares) for i in range(shares)}
        else:
            raise InputError(
                f"split takes a number of parts or a dict of fractions, not {typed(shares)}. Hint: s.split(12)"
            )
        if not parts or sum(parts.values()) > 1:
            raise InputError(
                f"The shares add up to {show(sum(parts.values(), Fraction(0)))}; at most 1 is there."
            )
        with _lock:
            self._check_process()
            if self._split or self._charges:
                raise InputError("Only an unspent session can be split.")
            if by == "rho" and not self._budget.rho_limit:
                raise InputError("This session has no rho to share. Hint: open it with delta= or rho=.")
            self._split = True
            children = {k: self._child(self._budget.share(f, by)) for k, f in parts.items()}
            _open.discard(self)
        return children if isinstance(shares, Mapping) else list(children.values())

    def _child(self, budget: Budget) -> Session:
        child = _share(budget, self._policy, self._limits)
        child._whole, child.strict = self, self.strict
        child._outer = child._inherited = self._outer
        _open.add(child)
        return child

    def __repr__(self) -> str:
        b = self._budget
        if b.unlimited:
            return f"<dpframe ambient session: no limit, {self._charges} charges, spent {_cost(self.spent)}>"
        total = f"rho={number(b.rho)}" if b.eps is None else f"eps={show(b.eps)}"
        if b.eps is not None and b.delta:
            total += f", delta={show(b.delta)}"
        elif b.delta_calls:
            total += f", delta_calls={show(b.delta_calls)}"
        return (
            f"<dpframe session: {total} per {self._policy.unit_name} ({self._policy.neighbors}),"
            f" {self._charges} charge{'s' * (self._charges != 1)}, spent {_cost(self.spent)}"
            + (", split into parts that have it all>" if self._split else ">")
        )

    def __copy__(self) -> Any:
        raise TypeError("A session can't be copied: a copy would have its budget twice. Hint: pass it along.")

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("A session can't be copied: a copy would have its budget twice. Hint: pass it along.")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("A session can't be pickled: a copy would have its budget twice.")


def part_session(budget: Budget, policy: Policy, limits: Limits) -> Session:
    """The session of one part of a partition: its cap was charged when the partition was made."""
    session = _share(budget, policy, limits)
    session._part = True
    return session


def _share(budget: Budget, policy: Policy, limits: Limits) -> Session:
    session = Session.__new__(Session)
    session._setup(budget, policy, limits)
    return session


def check_part(session: Session, source: Source) -> None:
    """Refuse a part's session for any frame but that part, and a part under another session.

    Privacy: a part's cap was paid for its own rows; spent on others it would be a budget nobody charged.
    """
    if (session._part or source.part_of is not None) and source.part_of is not session:
        raise InputError(
            "A part of a partition is asked with its own cap, and the cap is for it alone. Hint: part.dp"
        )


class _Ambient(Session):
    """Where calls go when nobody opened a session: records, has no limit, and says so once."""

    def __init__(self) -> None:
        self._setup(Budget(), Policy())


_ambient = _Ambient()


def policy_of(session: Session | None) -> tuple[Policy, Limits]:
    """What a plan is made under: the policy and limits of the given session, the current one, or none."""
    if session is None:
        stack = _stack.get() or tuple(_in_use)
        session = stack[-1] if stack else _ambient
    return session._policy, session._limits


def outside() -> tuple[Session, ...]:
    """The sessions that are current here, outermost first."""
    return (*_in_use, *_stack.get())


def current(session: Session | None = None) -> Session:
    """The session to charge.

    Raises
    ------
    NoSession
        When a budgeted session is open but not in use here, or ``DPFRAME_REQUIRE_SESSION`` is set and
        there is none: a query never falls through to the session without a limit.
    """
    if session is not None:
        if not isinstance(session, Session):
            raise TypeError(f"session= takes a dp.Session, not a {type(session).__name__}. Hint: session=s")
        return session
    stack = _stack.get() or tuple(_in_use)
    if stack:
        return stack[-1]
    if len(_open):
        raise NoSession(
            "A session with a budget is open but not in use here, so it is unclear who pays. Hint: with s: ..."
            " or s.use(), or pass session=s; s.close() gives it up."
        )
    if os.environ.get("DPFRAME_REQUIRE_SESSION", "") not in ("", "0"):
        raise NoSession(
            "DPFRAME_REQUIRE_SESSION is set and no session is in use. Hint: with dp.Session(eps=1) as s: ..."
        )
    return _ambient


def after_fork() -> None:
    """A child starts with free locks and an ambient session of its own."""
    global _lock, _ambient
    _lock = threading.RLock()
    _ambient = _Ambient()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)


def _cost(c: Cost) -> str:
    if c.eps is None:
        return f"rho={number(c.rho)}"
    return f"eps={show(c.eps)}" + (f", delta={show(c.delta)}" if c.delta else "")


__all__ = ["NEIGHBORS", "Session", "current", "policy_of"]
