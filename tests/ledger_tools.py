"""What the tests of the ledger share: claims, clocks, and children made by fork."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import subprocess
import sys
import traceback
from fractions import Fraction

import dpframe as dp
from dpframe.accounting.claims import Claim
from dpframe.accounting.events import Event
from dpframe.accounting.policy import Charge, Details, Policy

TESTS = os.path.dirname(__file__)


def laplace(eps) -> Event:
    """A pure event; rho is the cheap upper bound eps**2 / 2."""
    eps = Fraction(str(eps))
    return Event(eps, Fraction(0), eps * eps / 2)


def claim(eps=0.1, *, request_id=None, label=None, fingerprint="f", event=None, policy=None) -> Claim:
    charge = Charge(
        event or laplace(eps), "count()", "laplace", policy or Policy(), None, lambda: Details("", "", "")
    )
    return Claim(charge, label, request_id, fingerprint, "1", "10", True)


def spent(ledger, scope=None, part="total"):
    return ledger.state(scope)[part][1].eps


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, monkeypatch) -> None:
        self.now = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)
        monkeypatch.setattr(dp.Ledger, "_clock", staticmethod(lambda: self.now))

    def move(self, seconds=0, **more) -> None:
        self.now += dt.timedelta(seconds=seconds, **more)


class Child:
    """A forked process that runs ``work(say)``; ``said`` holds what it said before it ended or was killed."""

    def __init__(self, work) -> None:
        self._read, write = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                os.close(self._read)
                work(lambda *x: os.write(write, (json.dumps(x) + "\n").encode()))
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        os.close(write)
        self.code = None

    def first(self):
        """Wait for one thing to be said."""
        line = b""
        while not line.endswith(b"\n"):
            byte = os.read(self._read, 1)
            if not byte:
                raise AssertionError("the child said nothing")
            line += byte
        return json.loads(line)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def end(self) -> list:
        """Wait until it has ended; everything it said."""
        with os.fdopen(self._read, "rb") as f:
            said = [json.loads(line) for line in f.read().splitlines(keepends=True) if line.endswith(b"\n")]
        _, status = os.waitpid(self.pid, 0)
        self.code = os.waitstatus_to_exitcode(status)
        return said


_SERVER = """
import json, os, sys, traceback
from importlib import import_module
sys.path[:0] = json.loads(sys.argv[1])
module = import_module(sys.argv[2])
for line in sys.stdin:
    what, *given = json.loads(line)
    if what == "wait":
        answer = os.waitstatus_to_exitcode(os.waitpid(given[0], 0)[1])
    else:
        answer = os.fork()
        if answer == 0:
            code, out, err, arguments = 1, *given
            for name, number in ((out, 1), (err, 2)):
                os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            try:
                code = getattr(module, what)(*arguments) or 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
    print(json.dumps(answer), flush=True)
"""


class ForkServer:
    """A process that has imported a module of tests and run nothing: a trial is a fork of it, not a new Python.

    A fork of the test's own process would find locks of threads that it does not have.
    """

    def __init__(self, module: str, folder) -> None:
        command = [sys.executable, "-c", _SERVER, json.dumps(sys.path), module]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._folder, self._started = folder, 0

    def ask(self, *what):
        self._server.stdin.write(json.dumps(what) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())

    def start(self, name: str, *arguments) -> Forked:
        """Begin ``module.name(*arguments)`` in a fork; what it returns (None: 0) is the exit code."""
        self._started += 1
        out, err = (self._folder / f"fork{self._started}.{end}" for end in ("out", "err"))
        return Forked(self, self.ask(name, str(out), str(err), arguments), out, err)

    def close(self) -> None:
        self._server.stdin.close()
        self._server.wait(60)
        self._server.stdout.close()


class Forked:
    """A fork of a server, in the words of ``subprocess.Popen``."""

    def __init__(self, server: ForkServer, pid: int, out, err) -> None:
        self._server, self._pid, self._out, self._err = server, pid, out, err
        self.returncode: int | None = None

    def kill(self) -> None:
        if self.returncode is None:  # not waited for: the number is still its own
            os.kill(self._pid, signal.SIGKILL)

    def communicate(self) -> tuple[str, str]:
        """Wait for its end; what it said."""
        if self.returncode is None:
            self.returncode = self._server.ask("wait", self._pid)
        return self._out.read_text(), self._err.read_text()


def together(*works) -> list[list]:
    """Run every work in a process of its own, all let go at the same moment."""
    wait, go = os.pipe()

    def held(work):
        def run(say):
            os.close(go)
            os.read(wait, 1)  # ends when the parent closes its end
            work(say)

        return run

    children = [Child(held(w)) for w in works]
    os.close(wait)
    os.close(go)
    said = [c.end() for c in children]
    assert [c.code for c in children] == [0] * len(works)
    return said
