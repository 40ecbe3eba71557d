"""Who may write, and who is alive: locks that the operating system drops when a process ends.

Beside a ledger lies the folder ``<path>.locks``: the file ``writer``, locked for the length of a
transaction, the file ``turn`` for whoever is next, and a file for every process that is answering a
request, locked while it lives.

A lease (who answers a request) is over when its owner is dead: the lock on its file is free *and* no
process has its number and start time. In the owner's own process it is over when its ticket is gone or
its thread has ended, or when the same thread asks again.

Privacy: leases only decide who waits. Two owners of one request could not both release: the log takes
one release per charge.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import random
import re
import secrets
import subprocess
import threading
import time
import weakref
from collections.abc import Iterator
from functools import cache
from io import FileIO
from typing import Any

from dpframe.ledger.rows import broken

try:
    import fcntl
except ImportError:  # Windows: ledgers say so when one is opened
    fcntl = None  # type: ignore[assignment]

_mine: dict[str, tuple[str, FileIO]] = {}  # folder -> this process's name there and its open file
_held: dict[str, tuple[weakref.ref[Any], threading.Thread]] = {}  # leases of this process
_inside: dict[str, FileIO] = {}  # writer's locks by path; this process holds those that are not closed


def available() -> bool:
    """Whether this system has file locks."""
    return fcntl is not None


def folder(path: str) -> str:
    return f"{path}.locks"


@contextlib.contextmanager
def writing(path: str, patience: float) -> Iterator[None]:
    """Hold the writer's lock of the ledger at ``path``; LedgerError if others hold it for ``patience`` seconds."""
    held = _inside.get(path)
    if held is not None and not held.closed:  # by another Ledger object, in this thread
        raise broken(path, "is in the middle of a charge in this thread", "ask when it is done")
    until = time.monotonic() + patience
    # Whoever has just written has to wait for a turn like the others.
    with _faults(path), _take(path, "turn", patience, until):
        file = _take(path, "writer", patience, until)
    with file:  # closing unlocks, an interrupt or not; in a forked child it does not: the parent has it open
        _inside[path] = file
        yield


def _take(path: str, kind: str, patience: float, until: float) -> FileIO:
    """One of the writers' files, locked; closing it unlocks."""
    name = os.path.join(folder(path), kind)
    os.makedirs(folder(path), exist_ok=True)
    while True:
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(FileIO(name, "a"))
            while not _locked(file, fcntl.LOCK_EX):
                if time.monotonic() > until:
                    raise broken(
                        path,
                        f"was locked by others for more than {patience:g} seconds",
                        "see which program keeps it locked, then ask again",
                    )
                time.sleep(random.uniform(0.0005, 0.002))
            if _is(name, file):
                stack.pop_all()
                return file  # else it was removed or replaced meanwhile


@contextlib.contextmanager
def _faults(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        said = e.strerror
    else:
        return
    what = f"can't be locked: {folder(path)} can't be written ({said})"
    raise broken(path, what, "make room or give permission") from None


def _locked(file: FileIO, how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is(name: str, file: FileIO) -> bool:
    try:
        return os.path.samestat(os.stat(name), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


# ---- owners ----


def owner(path: str) -> str:
    """This process's name among the owners of requests, with its file locked until the process ends."""
    place = folder(path)
    if place not in _mine:
        with _faults(path):
            for name in os.listdir(place):
                if name not in ("turn", "writer"):
                    alive(path, name)  # removes the files of the dead
            name = f"{os.getpid()}-{started(os.getpid())}-{secrets.token_hex(8)}"
            file = FileIO(os.path.join(place, name), "x")
            fcntl.flock(file, fcntl.LOCK_EX)
            _mine[place] = (name, file)
    return _mine[place][0]


def hold(lease: str, ticket: Any) -> None:
    """Remember that ``ticket`` is being answered in this thread."""
    _held[lease] = (weakref.ref(ticket, lambda _: _held.pop(lease, None)), threading.current_thread())


def let_go(lease: str) -> None:
    _held.pop(lease, None)


def leased(path: str, name: str, lease: str) -> bool:
    """Whether somebody is still answering under this lease of owner ``name``."""
    if folder(path) not in _mine or _mine[folder(path)][0] != name:
        return alive(path, name)
    ticket, thread = _held.get(lease, (lambda: None, threading.current_thread()))
    return ticket() is not None and thread.is_alive() and thread is not threading.current_thread()


def alive(path: str, name: str) -> bool:
    """Whether the owner lives: its lock is held, or a process has its number and start time."""
    parts = name.split("-")
    if len(parts) != 3 or not parts[0].isdecimal() or "/" in name:
        return False
    file = os.path.join(folder(path), name)
    try:
        with FileIO(file, "r") as opened:
            if not _locked(opened, fcntl.LOCK_SH):
                return True
    except FileNotFoundError:
        pass
    except PermissionError:  # another user's; nobody can tell
        return True
    if started(int(parts[0])) == parts[1]:
        return True
    with contextlib.suppress(OSError):
        os.unlink(file)
    return False


def started(pid: int) -> str | None:
    """When the process with this number started (in the words of its system); None if there is none.

    A process that has ended and was not collected by its parent is none.
    """
    if os.path.exists("/proc/self/stat"):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] in "ZX" else f"{fields[19]}.{_boot()}"
    ps = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True)
    state, _, text = ps.stdout.strip().partition(" ")
    return re.sub(r"\W+", "_", text.strip()) if state and state[0] not in "ZX" else None


@cache
def _boot() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            return f.read(8)
    except OSError:
        return ""


def in_child() -> None:
    """A forked child is not its parent: it has no leases, and the locks stay the parent's."""
    for file in (*(f for _, f in _mine.values()), *_inside.values()):
        file.close()  # does not unlock: the parent has it open
    _inside.clear()
    _mine.clear()
    _held.clear()


@atexit.register
def _leave() -> None:
    for place, (name, _) in _mine.items():
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(place, name))
