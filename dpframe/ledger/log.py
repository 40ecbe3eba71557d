"""The log of a ledger: rows in a store, known as far as they were read, and held against the anchor.

Every transaction reads the rows after the last one seen and checks that they continue the chain, that the
last row seen is still there, that the file is the one that was opened, and that the anchor's row stands.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import json
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from dpframe._version import __version__
from dpframe.accounting.claims import Head
from dpframe.accounting.filter import Budget, State
from dpframe.errors import Call, Code
from dpframe.ledger import anchor as anchors
from dpframe.ledger import locks
from dpframe.ledger.declaration import FORMAT, Declaration
from dpframe.ledger.rows import Broken, Row, broken, decode, follow, make, write_time
from dpframe.ledger.store import RESTORE, Store
from dpframe.ledger.sums import Sums

_lock = threading.RLock()  # one for all ledgers: a charge may concern several at once
_logs: weakref.WeakSet[Log] = weakref.WeakSet()
_SLACK = dt.timedelta(seconds=1)
F = TypeVar("F", bound=Callable[..., Any])


def _whole(method: F) -> F:
    """Turn what a broken row says into a LedgerError, and read everything anew next time."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except Broken as e:
            said = str(e)
        except (KeyError, ValueError, TypeError):
            said = "holds a row that can't be read"
        except BaseException:  # it may have been half added up
            self._sums = None
            raise
        self._sums = None
        raise broken(self.path, said, RESTORE) from None

    return call  # type: ignore[return-value]


class Log:
    """The rows at ``path``.

    Attributes
    ----------
    declaration : Declaration
    known : Sums
        The rows read so far; as new as the transaction, inside one.
    """

    def __init__(
        self, path: str, anchor: str | None, patience: float, clock: Callable[[], dt.datetime]
    ) -> None:
        self.path, self.patience, self.clock = path, patience, clock
        self.store = Store(path, patience)
        self._sums: Sums | None = None
        self._seen: Head | None = None  # the last head that was there; outlives faults
        self._pending = self._closed = False
        if not locks.available():
            raise broken(path, "needs a system with file locks (POSIX)", "Linux, macOS or WSL")
        with _lock:
            _logs.add(self)
            weakref.finalize(self, self.store.disconnect)
            self._open(anchor)

    @property
    def known(self) -> Sums:
        assert self._sums is not None
        return self._sums

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction; what was appended in it is committed, read back and anchored when it ends."""
        with _lock:
            self._check_open()
            self._pending = False
            try:
                with locks.writing(self.path, self.patience):
                    with self.store.writing():
                        self._refresh(anchors.read(self.anchor))
                        start = self.known.head
                        yield
                        if self._sums is None:  # a row was refused, and the refusal not passed on
                            raise broken(self.path, "could not take a row; all was taken back", "ask again")
                    if self.known.head != start:
                        self._confirm(start)
            except BaseException:
                if self._pending:  # rows that were added up and then taken back
                    self._sums = None
                raise

    @_whole
    def _confirm(self, start: Head) -> None:
        """Read back what was committed, and anchor it."""
        with self.store.reading():
            rows = self.store.rows(start.sequence + 1)
        if [r[4] for r in rows] != self.known.hashes[start.sequence + 1 :]:
            raise Broken("does not hold what was written to it")
        head = start
        for raw in rows:
            head = follow(head, raw)[0].head
        self._pending, self._seen = False, head
        anchors.write(self.anchor, anchors.Mark(self.declaration.ledger, head))

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """One snapshot, known up to its end."""
        with _lock:
            self._check_open()
            mark = anchors.read(self.anchor)  # before the snapshot, which is then at least as new
            with self.store.reading():
                self._refresh(mark)
                yield

    def _check_open(self) -> None:
        if self._closed:
            raise broken(self.path, "was closed", (Call("dp.Ledger", Code("path")), " opens it again"))
        if self.store.inside:
            raise broken(self.path, "is in the middle of a charge in this thread", "ask when it is done")

    @_whole
    def _refresh(self, mark: anchors.Mark) -> None:
        """Add the rows after the last one seen, and hold all against the anchor."""
        seen = self._sums
        if seen is None:
            rows = self.store.rows(0)
            if not rows:
                raise Broken("has no rows")
            first, content = follow(None, rows[0])
            del content["kind"], content["sequence"]
            sums = Sums(first, decode(content, Declaration))
            if sums.declaration != self.declaration:
                raise Broken("was exchanged for another")
        else:
            sums = seen
            rows = self.store.rows(seen.head.sequence)
            if not rows or rows[0][4] != seen.head.hash:
                raise Broken("is not what it was a moment ago: an older copy, or another")
        for raw in rows[1:]:
            sums.add(*follow(sums.head, raw))
        if self._seen and sums.hashes[self._seen.sequence : self._seen.sequence + 1] != [self._seen.hash]:
            raise Broken("is not what it was a moment ago: an older copy, or another")
        self._check_anchor(mark, sums)
        self._sums, self._seen = sums, sums.head

    def _check_anchor(self, mark: anchors.Mark, sums: Sums) -> None:
        if mark.ledger != self.declaration.ledger:
            raise broken(
                self.anchor,
                "is the anchor of another ledger",
                ("name the right one: ", Call("dp.Ledger", Code("path"), anchor=...)),
            )
        at = mark.head.sequence
        if at >= len(sums.hashes):
            raise broken(
                self.path,
                f"ends at row {len(sums.hashes) - 1}, and its anchor knows row {at}: it is an older copy, or lost its end",
                RESTORE,
            )
        if sums.hashes[at] != mark.head.hash:
            raise broken(self.path, f"has another row {at} than its anchor knows", RESTORE)

    @_whole
    def _open(self, anchor: str | None) -> None:
        with self.store.reading():
            rows = self.store.rows(0, 1)
        if not rows:
            raise Broken("has no rows")
        _, content = follow(None, rows[0])
        if content.pop("kind") != "open" or content["format"] != FORMAT:
            raise Broken(f"is of format {content.get('format')}; this version of dpframe knows {FORMAT}")
        del content["sequence"]
        self.declaration: Declaration = decode(content, Declaration)
        self.anchor = anchor or self.declaration.anchor or f"{self.path}.anchor"
        with self.reading():
            behind = anchors.read(self.anchor).head.sequence < self.known.head.sequence
        if behind:  # a crash between commit and anchor; what it names stands in the chain
            with locks.writing(self.path, self.patience), self.store.reading():
                mark = anchors.read(self.anchor)
                self._refresh(mark)
                anchors.write(self.anchor, anchors.Mark(mark.ledger, self.known.head))

    def now(self) -> dt.datetime:
        """The time of the next row; never before the last one."""
        now, last = self.clock(), self.known.time
        if now < last - _SLACK:
            raise broken(
                self.path,
                f"has a row of {last.isoformat(' ', 'seconds')}, and the clock says {now.isoformat(' ', 'seconds')}",
                "set the clock",
            )
        return max(now, last)

    def append(self, kind: str, now: dt.datetime, **content: Any) -> Head:
        """Write the next row (inside ``writing``)."""
        row = make(self.known.head, kind, {"time": write_time(now), "version": __version__, **content})
        self._pending = True
        self.store.append(row)
        self._add(row)
        return row.head

    @_whole
    def _add(self, row: Row) -> None:
        self.known.add(row, json.loads(row.body))

    @_whole
    def states(self, scope: str | None, now: dt.datetime) -> dict[str, tuple[Budget, State]]:
        return self.known.states(scope, now)

    def verify(self) -> None:
        """Read everything anew: file, chain, sums, stored releases, anchor."""
        with _lock:
            self._sums = None
            with self.reading():
                self.store.sound()
                for charged in self.known.charges.values():
                    if charged.release is not None:
                        self.store.payload(charged.release.digest)

    def close(self) -> None:
        with _lock:
            self._closed = True
            self.store.disconnect()


def _before_fork() -> None:
    _lock.acquire()
    for log in list(_logs):
        if not log.store.inside:
            log.store.disconnect()


def _in_child() -> None:
    for log in list(_logs):
        log.store.abandon()
    locks.in_child()
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=lambda: _lock.release(), after_in_child=_in_child
    )
