"""Ctrl-C waits while something must not be left half done, and is heard while an engine works.

A signal's handler runs between any two steps of Python. Between a charge and its record, or between an
answer and its keeping, that would lose a budget or hand out two answers for one charge. Only
the main thread hears signals, so only there is anything held back.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any


class _Held:
    """One stretch in which Ctrl-C is noted, and obeyed only where it is ``open``."""

    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None:
        self.handler, self.pressed, self.open = handler, False, False

    def note(self, number: int, frame: FrameType | None) -> None:
        """The handler while this lasts. Obeying ends the open part: what cleans up after it is not interrupted."""
        if self.open:
            self.open = False
            self.handler(number, frame)
        else:
            self.pressed = True


_held: list[_Held] = []  # of the main thread; at most one


class uninterrupted:  # noqa: N801
    """``with uninterrupted():`` holds Ctrl-C back until the block ends, but for its :class:`interruptible` parts.

    No generator: one that Ctrl-C leaves suspended would put handlers back when it is collected.
    """

    def __init__(self) -> None:
        self._mine: _Held | None = None

    def __enter__(self) -> None:
        handler = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread() and not _held and callable(handler):
            held = _Held(handler)
            signal.signal(signal.SIGINT, held.note)  # from here on nothing is raised
            _held.append(held)
            self._mine = held

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._mine is None:
            return
        _held.clear()
        signal.signal(signal.SIGINT, self._mine.handler)
        if self._mine.pressed and (kind is None or not issubclass(kind, KeyboardInterrupt)):
            self._mine.handler(signal.SIGINT, None)  # as a rule it raises KeyboardInterrupt


class interruptible:  # noqa: N801
    """``with interruptible():`` hears Ctrl-C in a part of an :class:`uninterrupted` block, and what came before it."""

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread() and _held:
            held = _held[0]
            if held.pressed:
                held.pressed = False
                held.handler(signal.SIGINT, None)
            held.open = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if threading.current_thread() is threading.main_thread() and _held:
            _held[0].open = False
