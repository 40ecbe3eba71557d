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
AUDIT = os.environ.get("DPFRAME_AUDIT", "") not in ("", "0")


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
import json, sys
from importlib import import_module
sys.path[:0] = json.loads(sys.argv[1])
from ledger_tools import Child
module = import_module(sys.argv[2])
for line in sys.stdin:
    name, *arguments = json.loads(line)
    child = Child(lambda say: getattr(module, name)(*arguments, say))
    said = child.end()
    print(json.dumps([child.code, said]), flush=True)
"""


class ForkServer:
    """A process that has imported a module of tests and run nothing: every trial is a fork of it, not a new Python.

    A fork of the test's own process would find locks of threads that it does not have.
    """

    def __init__(self, module: str) -> None:
        command = [sys.executable, "-c", _SERVER, json.dumps(sys.path), module]
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def run(self, name: str, *arguments) -> tuple[int, list]:
        """(exit code, what was said) of ``module.name(*arguments, say)``."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps([name, *arguments]) + "\n")
        self._server.stdin.flush()
        code, said = json.loads(self._server.stdout.readline())
        return code, said

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self._server.stdin.close()
        self._server.wait(60)


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
