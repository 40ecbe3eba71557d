"""A bad disk, a lock that is never given back, a clock that jumps, an interrupt: nothing is granted, nothing lost."""

from __future__ import annotations

import os
import resource
import sqlite3
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import pytest
from ledger_files import refused, used
from ledger_tools import Child, Clock, claim, spent

import dpframe as dp
from dpframe.ledger import locks
from dpframe.ledger.sums import Sums

# ---- a bad disk ----


def full(ledger) -> None:
    c = ledger._log.store.connection()
    pages = c.execute("PRAGMA page_count").fetchone()[0]
    c.execute(f"PRAGMA max_page_count = {pages}")


def test_a_full_disk_grants_nothing(path):
    used(path)
    ledger = dp.Ledger(path)
    full(ledger)
    with pytest.raises(dp.LedgerError, match="no room on the disk"):  # noqa: PT012
        for _ in range(6):  # the last page has room for some
            ledger.reserve(claim("0.01", label="x" * 900))
            full(ledger)
    held = len(dp.Ledger(path).entries())
    assert len(ledger.entries()) == held
    assert spent(ledger) == Fraction(4, 10) + Fraction(held - 4, 100)
    ledger.reserve(claim("0.01"))  # there is room again
    ledger.verify()


def test_a_release_that_can_not_be_kept_is_not_handed_out(path):
    used(path)
    ledger = dp.Ledger(path)
    ticket = ledger.reserve(claim(0.1, request_id="big"))
    full(ledger)
    with pytest.raises(dp.LedgerError, match="no room on the disk"):
        ledger.store(ticket, os.urandom(100_000))
    assert spent(ledger) == Fraction(1, 2)
    again = dp.Ledger(path).reserve(claim(0.1, request_id="big"))
    assert (again.charged, again.stored) == (False, None)


@pytest.mark.parametrize("room", [0, 300, 3000, 20_000, 40_000])
def test_writes_that_stop_half_way_grant_nothing_and_lose_nothing(path, room):
    """A limit on file sizes in a child: the write-ahead log, the anchor or the lock file can't grow."""
    used(path)

    def child(say) -> None:
        ledger = dp.Ledger(path)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        for i in range(30):
            try:
                say("granted", ledger.reserve(claim("0.001", label="x" * 900, request_id=f"n{i}")).sequence)
            except dp.LedgerError as e:
                say("refused", str(e))

    child = Child(child)
    said = child.end()
    assert child.code == 0
    granted = {n for what, n in said if what == "granted"}
    assert "refused" in {what for what, _ in said}
    ledger = dp.Ledger(path)
    ledger.verify()
    assert granted <= {e.sequence for e in ledger.entries()}


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_read_only_ledger_grants_nothing(what):
    """As a user who may not write (root may always)."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "budget.db"
        used(path)
        for f in folder.rglob("*"):
            f.chmod(0o777 if f.is_dir() else 0o666)
        if what == "file":
            folder.chmod(0o777)
            path.chmod(0o444)
        else:
            folder.chmod(0o555)

        def child(say) -> None:
            if os.geteuid() == 0:
                os.setuid(65534)
            try:
                dp.Ledger(path).reserve(claim(0.1))
            except dp.LedgerError as e:
                say(str(e))

        said = Child(child).end()
        folder.chmod(0o777)
        assert len(said) == 1
        assert "Hint: " in said[0][0]
        assert "writ" in said[0][0]
        path.chmod(0o666)
        assert spent(dp.Ledger(path)) == Fraction(4, 10)


def test_an_anchor_that_can_not_be_written_stops_the_release_but_keeps_the_charge(path, tmp_path):
    away = tmp_path / "away"
    away.mkdir()
    ledger = dp.Ledger.create(path, eps=1, anchor=away / "mark")
    os.mkdir(away / "mark.new")  # where the new one is written
    with pytest.raises(dp.LedgerError, match=r"anchor .* can't be written"):
        ledger.reserve(claim(0.1, request_id="r"))
    os.rmdir(away / "mark.new")
    assert spent(dp.Ledger(path)) == Fraction(1, 10)
    assert ledger.reserve(claim(0.1, request_id="r")).charged is False


@pytest.mark.parametrize("how", ["by another writer", "by another program"])
def test_locked_too_long(path, monkeypatch, how):
    monkeypatch.setattr(dp.Ledger, "_patience", 0.2)
    used(path)

    def holder(say) -> None:
        if how == "by another writer":
            with dp.Ledger(path).charging():
                say("held")
                time.sleep(300)
        else:
            c = sqlite3.connect(path, isolation_level=None)
            c.execute("BEGIN IMMEDIATE")
            say("held")
            time.sleep(300)

    child = Child(holder)
    child.first()
    ledger = dp.Ledger(path)
    assert spent(ledger) == Fraction(4, 10)  # reading goes on
    with pytest.raises(dp.LedgerError, match=r"locked by others for more than 0.2 seconds"):
        ledger.reserve(claim(0.1))
    child.kill()
    child.end()
    ledger.reserve(claim(0.1))
    assert spent(ledger) == Fraction(1, 2)


def test_a_clock_that_jumped_back_is_named(path, monkeypatch):
    clock = Clock(monkeypatch)
    used(path)
    clock.move(days=-1)
    assert "2026-11-28" in refused(path, "the clock says")


@pytest.mark.parametrize("request_id", ["r", None])
def test_an_interrupt_while_rows_are_read_counts_nothing_twice(path, monkeypatch, request_id):
    reader, writer = dp.Ledger.create(path, eps=1), dp.Ledger(path)
    writer.reserve(claim(0.3, request_id=request_id))
    with monkeypatch.context() as m:

        def interrupted(*args, **more):
            raise KeyboardInterrupt

        m.setattr(Sums, "_move", interrupted)  # the last step of adding a charge
        with pytest.raises(KeyboardInterrupt):
            reader.state()
    assert spent(reader) == spent(writer) == Fraction(3, 10)
    assert len(reader.entries()) == 1


@pytest.mark.parametrize("call", ["os.getpid", "fcntl.flock", "contextlib.suppress"])
def test_no_call_that_an_interrupt_could_stop_comes_before_the_writers_lock_is_given_back(
    path, monkeypatch, call
):
    """Signals are heard after calls of Python; closing the file by ``with`` is none."""

    def interrupted(*args):
        raise KeyboardInterrupt

    dp.Ledger.create(path, eps=1).close()
    kept = []  # as a notebook keeps the last traceback, with the frames in it
    with monkeypatch.context() as m:
        try:
            with locks.writing(str(path), 1):
                m.setattr(f"dpframe.ledger.locks.{call}", interrupted)
        except KeyboardInterrupt as e:
            kept.append(e)
    with locks.writing(str(path), 1):
        pass
    assert not kept


@pytest.mark.parametrize("how", ["BEGIN", "BEGIN IMMEDIATE"])
def test_a_transaction_that_an_interrupt_left_open_is_no_damage(path, how):
    ledger = dp.Ledger.create(path, eps=1)
    ledger.reserve(claim(0.3))
    ledger._log.store.connection().execute(how)
    assert spent(ledger) == Fraction(3, 10)
    ledger._log.store.connection().execute(how)
    ledger.reserve(claim(0.3))
    assert spent(ledger) == spent(dp.Ledger(path)) == Fraction(3, 5)


def test_nothing_falls_back_to_memory(path):
    """After a fault the same object refuses until the file is right again, and counts from the file."""
    used(path)
    ledger = dp.Ledger(path)
    ledger.reserve(claim(0.1))
    good = Path(f"{path}.anchor").read_bytes()
    Path(f"{path}.anchor").write_bytes(b"")
    for use in (
        ledger.state,
        ledger.entries,
        ledger.verify,
        lambda: ledger.head,
        lambda: ledger.reserve(claim()),
    ):
        with pytest.raises(dp.LedgerError):
            use()
    Path(f"{path}.anchor").write_bytes(good)
    assert spent(ledger) == Fraction(1, 2)
    ledger.verify()
