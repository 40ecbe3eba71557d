"""One budget for processes, threads and forks; requests asked at the same moment; rates (printed).

``DPFRAME_AUDIT=1`` raises 4 processes × 40 attempts at a budget for 50 to 16 × 625 at one for 100.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from fractions import Fraction

import pytest
from ledger_tools import TESTS, Child, claim, spent, together
from sizes import AUDIT

import dpframe as dp
from dpframe.ledger import locks

PROCESSES, ATTEMPTS, ROOM = (16, 625, 100) if AUDIT else (4, 40, 50)


def attempts(ledger, n) -> list[str]:
    """n attempts at a tenth: how each ended."""
    ends = []
    for _ in range(n):
        try:
            ledger.store(ledger.reserve(claim(0.1)), b"x")
            ends.append("granted")
        except dp.BudgetExceeded:
            ends.append("refused")
        except BaseException as e:
            ends.append(repr(e))
    return ends


# ---- one budget ----


def test_processes_share_one_budget(path):
    dp.Ledger.create(path, eps=Fraction(ROOM, 10)).close()
    ends = together(*[lambda say: say(*attempts(dp.Ledger(path), ATTEMPTS))] * PROCESSES)
    flat = [end for said in ends for end in said[0]]
    assert len(flat) == PROCESSES * ATTEMPTS
    assert (flat.count("granted"), flat.count("refused")) == (ROOM, PROCESSES * ATTEMPTS - ROOM), set(flat)
    ledger = dp.Ledger(path)
    ledger.verify()
    assert spent(ledger) == Fraction(ROOM, 10)
    assert len(ledger.entries()) == ROOM


def test_threads_share_one_budget(path):
    ledger, ends = dp.Ledger.create(path, eps=1), []
    threads = [threading.Thread(target=lambda: ends.extend(attempts(ledger, 5))) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert (ends.count("granted"), ends.count("refused")) == (10, 30), set(ends)
    assert spent(ledger) == 1


def test_a_fork_shares_the_budget_of_its_parent(path):
    """The parent's ledger is used on both sides, before, during and after."""
    ledger = dp.Ledger.create(path, eps=3)
    attempts(ledger, 2)
    children = [Child(lambda say: say(*attempts(ledger, 20))) for _ in range(3)]
    mine = attempts(ledger, 20)
    flat = mine + [end for c in children for end in c.end()[0]]
    assert [c.code for c in children] == [0, 0, 0]
    assert (flat.count("granted"), flat.count("refused")) == (28, 52), set(flat)
    assert spent(ledger) == 3
    ledger.verify()


def test_forks_while_other_threads_are_charging(path):
    """A child never inherits half a transaction, nor a lock that nobody will give back."""
    ledger, stop, ends = dp.Ledger.create(path, eps=1000), threading.Event(), []

    def busy():
        while not stop.is_set():
            ends.extend(attempts(ledger, 1))

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for t in threads:
        t.start()
    children = [Child(lambda say: say(*attempts(ledger, 3))) for _ in range(6)]
    said = [c.end() for c in children]
    stop.set()
    for t in threads:
        t.join()
    assert said == [[["granted"] * 3]] * 6
    assert set(ends) == {"granted"}
    ledger.verify()
    assert len(ledger.entries()) == len(ends) + 18


def test_a_child_forked_in_the_middle_of_a_charge_can_not_use_the_ledger(path):
    ledger = dp.Ledger.create(path, eps=1)

    def child(say):
        for book in (lambda: ledger.reserve(claim()), lambda: dp.Ledger(path)):
            try:
                book()
            except dp.LedgerError as e:
                say(str(e))

    with ledger.charging() as t:
        ticket = t.reserve(claim(0.5))
        child = Child(child)
        said = child.end()
    assert child.code == 0
    assert len(said) == 2
    assert "middle of a charge" in said[0][0]
    assert "middle of a charge" in said[1][0]
    ledger.store(ticket, b"x")
    assert spent(ledger) == Fraction(1, 2)
    ledger.verify()


@pytest.mark.parametrize("how", ["in order", "by an exception"])
def test_a_child_that_leaves_its_parents_charge_takes_nothing_along(path, how):
    """Unwinding the parent's block in the child neither commits nor rolls back nor unlocks."""
    ledger, code = dp.Ledger.create(path, eps=1), None
    try:
        with ledger.charging() as t:
            t.reserve(claim(0.5))
            pid = os.fork()
            if pid == 0 and how == "by an exception":
                raise ZeroDivisionError
            if pid:
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

                def stranger(say):
                    with open(os.path.join(locks.folder(str(path)), "writer"), "ab") as f:
                        say(locks._locked(f, locks.fcntl.LOCK_EX))

                assert Child(stranger).end() == [[False]]
    except (ZeroDivisionError, dp.LedgerError):
        os._exit(7)  # only the child comes here
    assert code == 7
    assert spent(ledger) == spent(dp.Ledger(path)) == Fraction(1, 2)
    ledger.verify()


def test_a_child_forked_in_a_charge_may_end_as_any_program_does(path):
    """With everything closed and collected, while the parent's transaction goes on."""
    dp.Ledger.create(path, eps=1).close()
    code = f"""
import os, sys
sys.path.insert(0, {TESTS!r})
import dpframe as dp
from ledger_tools import claim
ledger = dp.Ledger({str(path)!r})
with ledger.charging() as t:
    for i in range(5):
        t.reserve(claim(0.1))
    if os.fork() == 0:
        sys.exit(0)
    os.wait()
    t.reserve(claim(0.1))
ledger.verify()
print(len(ledger.entries()))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (run.stdout, run.returncode) == ("6\n", 0), run.stderr
    ledger = dp.Ledger(path)
    ledger.verify()
    assert spent(ledger) == Fraction(3, 5)


def test_a_ticket_is_answered_where_it_was_charged(path):
    ledger = dp.Ledger.create(path, eps=1)
    ticket = ledger.reserve(claim(request_id="r"))

    def child(say):
        for use in (lambda: ledger.store(ticket, b"child"), lambda: ledger.fail(ticket)):
            try:
                use()
            except dp.LedgerError as e:
                say(str(e))

    said = Child(child).end()
    assert len(said) == 2
    assert all("forked" in s[0] for s in said)
    ledger.store(ticket, b"parent")
    assert ledger.reserve(claim(request_id="r")).stored == b"parent"


# ---- requests at the same moment ----


def answer(ledger, mark: bytes) -> bytes:
    """What a session does with a request."""
    ticket = ledger.reserve(claim(0.5, request_id="r"))
    if ticket.stored is not None:
        return ticket.stored
    time.sleep(0.05)
    ledger.store(ticket, mark)
    return mark


@pytest.mark.parametrize("trial", range(20 if AUDIT else 3))
def test_processes_that_ask_the_same_at_the_same_moment_get_the_same_bytes(path, trial):
    dp.Ledger.create(path, eps=1).close()
    works = [lambda say, i=i: say(answer(dp.Ledger(path), b"%d" % i).decode()) for i in range(3)]
    said = together(*works)
    assert len({s[0][0] for s in said}) == 1
    ledger = dp.Ledger(path)
    assert len(ledger.entries()) == 1
    assert spent(ledger) == Fraction(1, 2)
    assert ledger.head.sequence == 2  # one charge, one release, no retry


@pytest.mark.parametrize("trial", range(20 if AUDIT else 3))
def test_threads_that_ask_the_same_at_the_same_moment_get_the_same_bytes(path, trial):
    ledger, got, barrier = dp.Ledger.create(path, eps=1), [], threading.Barrier(4)

    def work(i):
        barrier.wait()
        got.append(answer(ledger, b"%d" % i))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(got) == 4
    assert len(set(got)) == 1
    assert ledger.head.sequence == 2


def test_a_waiting_request_takes_over_when_its_owner_is_killed(path):
    dp.Ledger.create(path, eps=1).close()

    def owner(say):
        ledger = dp.Ledger(path)
        ticket = ledger.reserve(claim(0.5, request_id="r"))
        say(ticket.sequence)
        time.sleep(300)

    first = Child(owner)
    assert first.first() == [1]
    second = Child(lambda say: say(answer(dp.Ledger(path), b"second").decode()))
    time.sleep(0.2)
    ledger = dp.Ledger(path)
    assert ledger.head.sequence == 1  # while it lives, nobody takes over
    first.kill()
    first.end()
    assert second.end() == [["second"]]
    assert [e.sequence for e in ledger.entries()] == [1]
    assert spent(ledger) == Fraction(1, 2)


def test_a_killed_owner_that_was_not_collected_is_dead(path):
    """A zombie has a number and a start time, and will never answer."""
    dp.Ledger.create(path, eps=1).close()

    def owner(say):
        ticket = dp.Ledger(path).reserve(claim(0.5, request_id="r"))
        say(ticket.sequence)
        time.sleep(300)

    child = Child(owner)
    child.first()
    child.kill()
    time.sleep(0.1)
    assert dp.Ledger(path).reserve(claim(0.5, request_id="r")).charged is False
    child.end()


def test_a_fork_of_the_owner_does_not_keep_it_alive(path):
    """The grandchild has the parent's files open; the locks must not live on in it."""
    dp.Ledger.create(path, eps=1).close()

    def owner(say):
        ledger = dp.Ledger(path)
        ticket = ledger.reserve(claim(0.5, request_id="r"))
        grandchild = Child(lambda more: time.sleep(300))
        say(ticket.sequence, grandchild.pid)
        time.sleep(300)

    child = Child(owner)
    _, grandchild = child.first()
    os.kill(child.pid, 9)
    os.waitpid(child.pid, 0)
    try:
        assert dp.Ledger(path).reserve(claim(0.5, request_id="r")).charged is False
    finally:
        os.kill(grandchild, 9)


def test_an_owner_lives_while_either_its_lock_or_its_process_is_there(path):
    dp.Ledger.create(path, eps=1).reserve(claim(request_id="r"))
    place = locks.folder(str(path))
    name = locks.owner(str(path))
    assert Child(lambda say: say(locks.alive(str(path), name))).end() == [[True]]
    os.unlink(os.path.join(place, name))  # the process is there
    assert Child(lambda say: say(locks.alive(str(path), name))).end() == [[True]]
    stranger = f"{2**22 + 1}-1.x-00"  # no such process; its lock is held
    with open(os.path.join(place, stranger), "w") as f:
        locks.fcntl.flock(f, locks.fcntl.LOCK_EX)
        assert locks.alive(str(path), stranger)
    assert not locks.alive(str(path), stranger)
    reused = f"{os.getpid()}-1.x-00"  # the number of a living process that started at another time
    assert not locks.alive(str(path), reused)
    for garbage in ("", "x", "1-2", "../../etc-1-2", "1-2-3-4"):
        assert not locks.alive(str(path), garbage)


def test_start_times_without_proc_come_from_ps(monkeypatch):
    real = os.path.exists
    monkeypatch.setattr(locks.os.path, "exists", lambda p: False if p == "/proc/self/stat" else real(p))
    mine = locks.started(os.getpid())
    assert mine
    assert mine == locks.started(os.getpid())
    assert "-" not in mine
    assert locks.started(2**22 + 1) is None
