"""What the rows of a ledger add up to.

Rows hold the event that each charge was granted as, in each of the budgets it concerned: ``total`` (all
of the ledger, or each window), ``scope`` and ``lifetime``. The sums are made from the rows alone, with
the same filter that granted them; rows that would not be granted are refused.

Privacy of windows: an event counts at the time of its latest row: charge, retry, failure or release; a release must
be stored within one window of its charge (or retry); and a retry whose charge has left the window is granted
anew. So take any window of release times, and the last charge g in it: every other event of that window
either was released within one window before g, or was outstanding at g, less than a window old. All of them
counted when g was granted. Events keep the form they were granted in (with a delta, or by rho alone), and
sums only shrink when events leave, so whatever held for the larger set holds for the smaller.
"""

from __future__ import annotations

import bisect
import datetime as dt
from dataclasses import dataclass
from typing import Any

import polars as pl

from dpframe.accounting.account_frame import TIME
from dpframe.accounting.claims import Head
from dpframe.accounting.events import Cost, Event
from dpframe.accounting.filter import Budget, State
from dpframe.ledger.declaration import Declaration
from dpframe.ledger.rows import Broken, Row, decode, read_time


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One charge of a ledger. Public: no value that was read from a frame.

    Attributes
    ----------
    sequence : int
        The number of its row.
    time : datetime
        When it was charged (UTC).
    scope, label : str or None
    question, mechanism, sensitivity, scale : str
    cost : Cost
        As charged to the whole (or the window): exact.
    request_id : str or None
    fingerprint : str
    repeat_of : int or None
        The first charge in this scope for the same question.
    private : bool
        False if a test's source of noise was in place, at the charge or at a retry.
    released_at : datetime or None
        When its release was stored.
    failed : bool
        Whether the engine failed, and that was told: the charge is over, and asking again is another one.
    version : str
        Of dpframe.
    head : Head
        The ledger's head with this row.
    """

    sequence: int
    time: dt.datetime
    scope: str | None
    label: str | None
    question: str
    mechanism: str
    sensitivity: str
    scale: str
    cost: Cost
    request_id: str | None
    fingerprint: str
    repeat_of: int | None
    private: bool
    released_at: dt.datetime | None
    failed: bool
    version: str
    head: Head


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored release: its row, its bytes' digest, when it was stored, and the version of dpframe that drew it."""

    head: Head
    digest: str
    time: dt.datetime
    version: str


@dataclass(slots=True)
class Charged:
    """A charge and what became of it."""

    content: dict[str, Any]
    head: Head
    time: dt.datetime
    events: dict[str, Event]  # as granted, by budget
    repeat_of: int | None
    active: dt.datetime
    private: bool  # of every try
    place: int = -1  # in the timeline
    release: Stored | None = None
    failed: bool = False

    @property
    def name(self) -> str:
        return str(self.content["label"] or self.content["question"])

    def entry(self) -> LedgerEntry:
        c, e = self.content, self.events["total"]
        return LedgerEntry(
            self.head.sequence,
            self.time,
            c["scope"],
            c["label"],
            c["question"],
            c["mechanism"],
            c["sensitivity"],
            c["scale"],
            Cost(e.eps, e.delta, e.rho),
            c["request_id"],
            c["fingerprint"],
            self.repeat_of,
            self.private,
            self.release.time if self.release else None,
            self.failed,
            c["version"],
            self.head,
        )


class Sums:
    """The rows read so far, and what they add up to."""

    def __init__(self, row: Row, declaration: Declaration) -> None:
        self.declaration = declaration
        self.hashes = [row.hash]
        self.time = read_time(declaration.time)
        self.charges: dict[int, Charged] = {}
        self.requests: dict[tuple[str | None, str], Charged] = {}
        self._asked: dict[tuple[str | None, str], int] = {}
        self._all = State()  # of the total, or of the lifetime where there is a window
        self._scopes: dict[str, State] = {}
        self._times: list[dt.datetime] = []  # of every activity, in order
        self._active: list[Charged] = []
        self._window = (0, State())  # where the window began when last asked, and its sum

    @property
    def head(self) -> Head:
        return Head(len(self.hashes) - 1, self.hashes[-1])

    # ---- adding rows ----

    def add(self, row: Row, content: dict[str, Any]) -> None:
        """Take in the next row; Broken if it is not one that would have been written."""
        time = read_time(content["time"])
        if time < self.time:
            raise Broken(f"has a row {row.sequence} that is older than the row before")
        if row.kind == "charge":
            self._charge(row, content, time)
        elif row.kind in ("retry", "failure", "release") and content["of"] in self.charges:
            charged = self.charges[content["of"]]
            if charged.release is not None or charged.failed:
                raise Broken(f"has a row {row.sequence} for a charge that was answered before, or failed")
            charged.failed = row.kind == "failure"
            charged.private &= content.get("private", True)
            if row.kind == "release":
                charged.release = Stored(row.head, content["digest"], time, content["version"])
            if "anew" in content:  # a retry after the window: it counts anew
                charged.events["total"] = decode(content["anew"], Event)
                self._move(charged, time, anew=True)
            elif row.kind != "failure" or self.in_window(
                charged, time
            ):  # nothing can stop a failure from being late
                self._move(charged, time)
        else:
            raise Broken(f"has a row {row.sequence} that concerns no charge")
        self.hashes.append(row.hash)
        self.time = time

    def _charge(self, row: Row, content: dict[str, Any], time: dt.datetime) -> None:
        event = decode(content["event"], Event)
        events = dict.fromkeys(self.domains(content["scope"]), event)
        events |= {k: decode(v, Event) for k, v in content["granted"].items()}
        asked = (content["scope"], content["fingerprint"])
        first = self._asked.setdefault(asked, row.sequence)
        charged = Charged(
            content,
            row.head,
            time,
            events,
            first if first != row.sequence else None,
            time,
            content["private"],
        )
        request = (content["scope"], content["request_id"])
        if content["request_id"] is not None:
            before = self.requests.get(request)
            if before is not None and not before.failed:
                raise Broken(f"has a row {row.sequence} for a request that was charged before")
            self.requests[request] = charged
        d = self.declaration
        if d.window is None:
            self._all = advance(d.budget, self._all, events["total"], charged.name)
        elif d.lifetime is not None:
            self._all = advance(d.lifetime, self._all, events["lifetime"], charged.name)
        if "scope" in events and d.per_scope is not None:
            spent = self._scopes.get(content["scope"], State())
            self._scopes[content["scope"]] = advance(d.per_scope, spent, events["scope"], charged.name)
        self.charges[row.sequence] = charged
        self._move(charged, time, anew=True)

    def _move(self, charged: Charged, time: dt.datetime, *, anew: bool = False) -> None:
        """Let a charge count at ``time``; ``anew`` if the window does not hold it yet."""
        if self.declaration.window is None:
            return
        start, state = self._window_at(time)
        if anew:
            state = advance(self.declaration.budget, state, charged.events["total"], charged.name)
        elif charged.place < start:
            raise Broken("holds an answer that came more than a window after its charge")
        self._window = (start, state)
        charged.active, charged.place = time, len(self._active)
        self._active.append(charged)
        self._times.append(time)

    # ---- reading ----

    def domains(self, scope: str | None) -> dict[str, Budget]:
        """The budgets that a charge in ``scope`` concerns."""
        d = self.declaration
        out = {"total": d.budget}
        if d.per_scope is not None and scope is not None:
            out["scope"] = d.per_scope
        if d.lifetime is not None:
            out["lifetime"] = d.lifetime
        return out

    def states(self, scope: str | None, now: dt.datetime) -> dict[str, tuple[Budget, State]]:
        """Every budget that a charge in ``scope`` concerns, and what is spent of it at ``now``."""
        window = self.declaration.window is not None
        out = {}
        for name, budget in self.domains(scope).items():
            if name == "scope":
                state = self._scopes.get(scope or "", State())
            elif name == "total" and window:
                start, state = self._window_at(max(now, self.time))
                self._window = (start, state)
            else:
                state = self._all
            out[name] = (budget, state)
        return out

    def in_window(self, charged: Charged, now: dt.datetime) -> bool:
        """Whether a charge still counts at ``now``."""
        window = self.declaration.window_length
        return window is None or charged.active > _before(now, window)

    def _window_at(self, now: dt.datetime) -> tuple[int, State]:
        """Where the window that ends at ``now`` begins in the timeline, and what it holds."""
        window = self.declaration.window_length
        assert window is not None
        start, state = self._window
        begins = bisect.bisect_right(self._times, _before(now, window))
        if begins >= start and all(c.place >= begins for c in self._active[start:begins]):
            return begins, state  # nothing but places that were given up has left
        state = State()
        for place in range(begins, len(self._active)):
            charged = self._active[place]
            if charged.place == place:
                state = state.after(charged.events["total"], charged.name)  # granted within a larger window
        return begins, state


def _before(now: dt.datetime, window: dt.timedelta) -> dt.datetime:
    """When the window that ends at ``now`` began; the first day of the calendar for one that is older."""
    try:
        return now - window
    except OverflowError:
        return dt.datetime.min.replace(tzinfo=dt.UTC)


def advance(budget: Budget, state: State, event: Event, name: str) -> State:
    """The state after an event, as it was charged; Broken if it would not be granted."""
    after, _ = budget.admit(event, state, name)
    if after is None:
        raise Broken("adds up to more than its budget")
    return after


COLUMNS: dict[str, Any] = {  # of a ledger as a frame; they are described in ``LedgerEntry``
    "sequence": pl.Int64,
    "time": TIME,
    "scope": pl.String,
    "label": pl.String,
    "question": pl.String,
    "mechanism": pl.String,
    "sensitivity": pl.String,
    "scale": pl.String,
    "eps": pl.Float64,
    "delta": pl.Float64,
    "rho": pl.Float64,
    "request_id": pl.String,
    "fingerprint": pl.String,
    "repeat_of": pl.Int64,
    "private": pl.Boolean,
    "released_at": TIME,
    "failed": pl.Boolean,
    "version": pl.String,
    "hash": pl.String,
}
