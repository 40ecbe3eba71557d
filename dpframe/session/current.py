"""Which session is current: blocks and ``use()``, sessions inside others, and who pays for a call.

Privacy: what is released in a session that stands inside others is part of their transcript, so they pay, too.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

from dpframe.accounting.filter import Budget
from dpframe.accounting.policy import Policy
from dpframe.base.signals import uninterrupted
from dpframe.errors import InputError, NoSession

if TYPE_CHECKING:
    from types import TracebackType


class Lock:
    """One lock for all sessions, since a charge may concern several at once; a forked child has a free one."""

    def __init__(self) -> None:
        self._held = threading.RLock()

    def __enter__(self) -> None:
        self._held.acquire()

    def __exit__(self, *error: object) -> None:
        self._held.release()

    def acquire(self, *, blocking: bool = True) -> bool:
        """Take it, or say that another thread has it."""
        return self._held.acquire(blocking=blocking)

    def release(self) -> None:
        """Give it back."""
        self._held.release()

    def renew(self) -> None:
        """A free lock, in a process in which nobody holds it."""
        self._held = threading.RLock()


lock = Lock()
stack: ContextVar[tuple[Any, ...]] = ContextVar("dpframe_sessions", default=())
in_use: list[Any] = []  # at most one: the process-wide slot of ``use()``
opened: weakref.WeakSet[Any] = weakref.WeakSet()


def outside() -> tuple[Any, ...]:
    """The sessions that are current here, outermost first."""
    return (*in_use, *stack.get())


class Current:
    """A session as one that can be current: entered, in use, closed, inside others."""

    _budget: Budget
    _policy: Policy
    _ledger: Any
    _depth: int  # how often it was entered
    _pid: int
    _outer: tuple[Any, ...]  # the sessions that it stands in
    _inherited: tuple[Any, ...]  # of a share: those that the whole stood in
    _whole: Any  # the session that this one is a share of

    def __enter__(self) -> Self:
        entered = False
        try:
            with uninterrupted():
                with lock:
                    self._check_process()
                    self._stand_in(outside())
                    self._depth += 1
                stack.set((*stack.get(), self))
                entered = True
            return self
        except KeyboardInterrupt:
            if entered:  # the block will not be entered, so nothing would leave it
                self._leave()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        left = False
        try:
            with uninterrupted():
                self._leave()
                left = True
        except KeyboardInterrupt:
            if not left:
                self._leave()
            raise

    def _leave(self) -> None:
        left = list(stack.get())
        del left[len(left) - 1 - left[::-1].index(self)]  # the innermost entry of this session
        stack.set(tuple(left))
        with lock:
            self._depth -= 1
            if self._depth == 0 and self not in in_use:
                self.close()

    def use(self) -> Self:
        """Make this the session of every call in the process that has none of its own; for notebooks.

        Returns the session itself. ``close()`` ends it. Another session in use is replaced, not closed.
        """
        with lock:
            self._check_process()
            if self not in in_use:
                in_use.clear()
                self._stand_in(outside())
                in_use.append(self)
        return self

    def close(self) -> None:
        """Stop being the current session. What was spent stays spent; releases stay readable.

        It can be used again, and goes on where it was.
        """
        with lock:
            if self in in_use:
                in_use.remove(self)
            opened.discard(self)  # _outer stays: a task or thread that began inside still pays there

    def _stand_in(self, sessions: tuple[Any, ...]) -> None:
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
                    f"A session inside another needs the same relation and unit: {self._policy.neighbors}, {self._policy.unit_name}"
                    f" inside {x._policy.neighbors}, {x._policy.unit_name}.",
                    hint="leave the outer session first",
                )
        if (self._depth or self in in_use) and outer != self._outer:
            raise InputError(
                "This session is already in use inside other sessions.", hint="close it there first."
            )
        self._outer = outer
        opened.add(self)

    def _payers(self) -> tuple[Any, ...]:
        """Who pays for a call: this session, and those it stands in.

        Privacy: a task or thread that began inside others pays them, whatever was done with this session since.
        """
        entered = stack.get()
        around = entered[: entered.index(self)] if self in entered else ()
        around = tuple(s for s in around if s is not self._whole and s._pid == self._pid)
        return tuple(dict.fromkeys((self, *self._outer, *around)))

    def _check_process(self) -> None:
        if os.getpid() != self._pid and self._ledger is not None and self._budget.unlimited:
            self._pid = os.getpid()  # the budget is in a file, and the ledger opens it anew
        if os.getpid() != self._pid:
            raise NoSession(
                "This session was opened in another process; a forked child can't share its budget.",
                hint="open a session with its own budget in the child.",
            )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lock.renew)
