"""Whatever happens to the file, nothing is granted that was spent: crashes, kills, old copies, bad disks.

``DPFRAME_AUDIT=1``: every executed line instead of every 13th, 1,000 kills instead of 20, 1,000 flipped
bytes instead of 60.
"""

from __future__ import annotations

import json
import os
import random
import resource
import secrets
import shutil
import sqlite3
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import pytest
from ledger_tools import AUDIT, Child, Clock, claim, spent

import dpframe as dp
import dpframe.ledger as package
from dpframe.ledger import anchor, locks, rows, store
from dpframe.ledger.sums import Sums

HOME = str(Path(package.__file__).parent)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


def used(path, charges: int = 4) -> None:
    """A ledger at ``path`` with charges, releases and a retry; closed."""
    ledger = dp.Ledger.create(path, eps=1)
    for i in range(charges):
        ticket = ledger.reserve(claim(0.1, request_id=str(i)))
        if i == 0:
            ledger.fail(ticket)
            ticket = ledger.reserve(claim(0.1, request_id=str(i)))
        if i % 2 == 0:
            ledger.store(ticket, b"release %d" % i * 20)
    ledger.close()


def copies(path, to) -> None:
    """Everything that belongs to a ledger, to another folder."""
    to.mkdir()
    for name in os.listdir(path.parent):
        if name.startswith(path.name) and not name.endswith(".locks"):
            shutil.copy(path.parent / name, to / name)


def refused(path, says: str = "Hint: ") -> str:
    """Opening and charging is refused in public words with a way out."""
    with pytest.raises(dp.LedgerError, match=says) as e:
        dp.Ledger(path).reserve(claim(0.1))
    text = str(e.value)
    assert "Hint: " in text
    assert "sqlite" not in text.lower()
    assert e.value.__cause__ is None
    assert e.value.__suppress_context__ or e.value.__context__ is None
    return text


# ---- crashes ----


def one_release(path, say) -> None:
    ledger = dp.Ledger(path)
    ticket = ledger.reserve(claim(0.5, request_id="r"))
    say("granted", ticket.sequence, ticket.charged)
    if ticket.stored is None:
        ledger.store(ticket, b"answer of %d" % os.getpid())
    say("released")


def dying_at(line: int, path):
    """Release once; die without a word when the ledger's code comes to its ``line``-th executed line."""

    def work(say) -> None:
        left = line

        def trace(frame, event, arg):
            nonlocal left
            if not frame.f_code.co_filename.startswith(HOME):
                return None
            if event == "line":
                left -= 1
                if left == 0:
                    os._exit(9)
            return trace

        sys.settrace(trace)
        one_release(path, say)
        sys.settrace(None)

    return work


def test_a_death_at_any_line_loses_no_charge_and_a_retry_charges_once(tmp_path):
    """0 lost: what was said to be granted or released is in the file, and the request costs one half in the end."""
    line, ended, trials = 1, False, 0
    fresh = tmp_path / "fresh" / "budget.db"
    fresh.parent.mkdir()
    dp.Ledger.create(fresh, eps=1).close()
    while not ended:
        copies(fresh, tmp_path / str(line))
        path = tmp_path / str(line) / "budget.db"
        child = Child(dying_at(line, path))
        said = [s[0] for s in child.end()]
        assert child.code in (0, 9)
        ended = child.code == 0
        ledger = dp.Ledger(path)
        charges = ledger.entries()
        assert len(charges) == 1 or (not charges and "granted" not in said)
        released = [e for e in charges if e.released_at]
        assert released or "released" not in said
        ticket = ledger.reserve(claim(0.5, request_id="r"))
        assert ticket.charged is not bool(charges)
        assert (ticket.stored is not None) is bool(released)
        if ticket.stored is None:
            ledger.store(ticket, b"retry")
        assert spent(ledger) == Fraction(1, 2)
        assert len(ledger.entries()) == 1
        ledger.verify()
        ledger.close()
        line, trials = line + (1 if AUDIT else 13), trials + 1
    assert line > 800
    assert trials > (800 if AUDIT else 60)


def endless(path):
    """Charge and release until killed, saying each step after it is done."""

    def work(say) -> None:
        ledger, i, mine = dp.Ledger(path), 0, secrets.token_hex(8)  # the number of a process comes again
        while True:
            name = f"{mine}.{i}"
            ticket = ledger.reserve(claim("0.0001", request_id=name))
            say("granted", name)
            ledger.store(ticket, name.encode())
            say("released", name)
            i += 1

    return work


def test_kills_lose_nothing(path):
    """Every charge and release that was told before a SIGKILL is there afterwards, with its bytes."""
    dp.Ledger.create(path, eps=10**4).close()
    draw, said = random.Random(6), []
    trials = 1000 if AUDIT else 20
    for trial in range(trials):
        pair = [Child(endless(path)) for _ in range(1 + trial % 2)]
        said += [pair[0].first() for _ in range(2 * draw.randint(1, 10 if AUDIT else 2))]
        time.sleep(draw.uniform(0, 0.01))
        for child in pair:
            child.kill()
        said += [line for child in pair for line in child.end()]
        if trial % 10 == 9:
            dp.Ledger(path).close()
    granted = [name for what, name in said if what == "granted"]
    released = [name for what, name in said if what == "released"]
    assert len(released) >= (5000 if AUDIT else 20)
    ledger = dp.Ledger(path)
    ledger.verify()
    held = {e.request_id: e for e in ledger.entries()}
    assert set(granted) <= held.keys()
    assert all(held[name].released_at for name in released)
    assert spent(ledger) == Fraction(len(held), 10**4)
    for name in released if AUDIT else released[:20]:
        assert ledger.reserve(claim("0.0001", request_id=name)).stored == name.encode()
    assert len(ledger.entries()) == len(held)


def test_a_crash_between_commit_and_anchor_is_healed(path, monkeypatch):
    used(path)
    behind = (path.parent / "budget.db.anchor").read_bytes()
    ledger = dp.Ledger(path)
    ledger.reserve(claim(0.1))
    head = ledger.head
    ledger.close()
    (path.parent / "budget.db.anchor").write_bytes(behind)
    again = dp.Ledger(path)
    assert spent(again) == Fraction(1, 2)
    assert anchor.read(f"{path}.anchor").head == head


# ---- old copies, lost ends ----


def test_an_older_copy_is_refused(path, tmp_path):
    used(path)
    shutil.copy(path, tmp_path / "old")
    ledger = dp.Ledger(path)
    ledger.reserve(claim(0.1))
    ledger.close()
    shutil.copy(tmp_path / "old", path)
    assert "older copy" in refused(path, "ends at row")


def test_a_copy_that_went_another_way_is_refused(path, tmp_path):
    """As long as the anchor knows, but with other rows."""
    used(path)
    copies(path, tmp_path / "other")
    for p in (path, tmp_path / "other" / path.name):
        ledger = dp.Ledger(p)
        ledger.reserve(claim(0.1, label=str(p)))
        ledger.close()
    shutil.copy(tmp_path / "other" / path.name, path)
    refused(path, "has another row")


def test_an_older_copy_put_under_an_open_ledger_is_refused_for_good(path, tmp_path):
    """Even together with its anchor: this process has seen more."""
    used(path)
    copies(path, tmp_path / "old")
    ledger = dp.Ledger(path)
    ledger.reserve(claim(0.1))
    for name in os.listdir(tmp_path / "old"):
        os.replace(tmp_path / "old" / name, path.parent / name)
    for _ in range(3):
        with pytest.raises(dp.LedgerError, match=r"replaced|deleted|older copy"):
            ledger.reserve(claim(0.1))
    with pytest.raises(dp.LedgerError):
        ledger.state()


def test_an_older_copy_written_over_an_open_ledger_is_refused_for_good(path, tmp_path):
    used(path)
    copies(path, tmp_path / "old")
    ledger = dp.Ledger(path)
    ledger.reserve(claim(0.1))
    ledger._log.store.disconnect()  # as before a fork; the file is the same, its bytes are older
    for name in os.listdir(tmp_path / "old"):
        shutil.copy(tmp_path / "old" / name, path.parent / name)
    for _ in range(3):
        with pytest.raises(dp.LedgerError, match="not what it was"):
            ledger.reserve(claim(0.1))


def test_a_lost_write_ahead_log_is_refused(path, tmp_path):
    used(path)
    ledger = dp.Ledger(path)
    ledger.reserve(claim(0.1))
    copies(path, tmp_path / "crashed")  # as a crash would leave it: the newest rows are in the log
    crashed = tmp_path / "crashed" / path.name
    copies(crashed, tmp_path / "whole")
    assert spent(dp.Ledger(tmp_path / "whole" / path.name)) == Fraction(1, 2)
    os.unlink(f"{crashed}-wal")
    assert "lost its end" in refused(crashed)


def test_a_log_deleted_under_an_open_ledger_is_noticed_before_anything_is_granted(path):
    used(path)
    ledger = dp.Ledger(path)
    os.unlink(f"{path}-wal")
    with pytest.raises(dp.LedgerError, match="deleted while it was open"):
        ledger.reserve(claim(0.1))


def test_a_missing_anchor_is_refused(path):
    used(path)
    ledger = dp.Ledger(path)
    os.rename(f"{path}.anchor", f"{path}.away")
    with pytest.raises(dp.LedgerError, match=r"anchor .* is missing"):
        ledger.reserve(claim(0.1))
    refused(path, "anchor .* is missing")
    os.rename(f"{path}.away", f"{path}.anchor")
    ledger.reserve(claim(0.1))
    assert spent(ledger) == Fraction(1, 2)


@pytest.mark.parametrize("garbage", [b"", b"x", b"{}\nx\n", b"\xff\xfe" * 40, b"\x00" * 300], ids=repr)
def test_a_damaged_anchor_is_refused(path, garbage):
    used(path)
    Path(f"{path}.anchor").write_bytes(garbage)
    refused(path, "anchor .* is damaged")


def test_every_flipped_byte_of_an_anchor_is_refused(path):
    used(path)
    good = Path(f"{path}.anchor").read_bytes()
    for i in range(0, len(good), 1 if AUDIT else 7):
        Path(f"{path}.anchor").write_bytes(good[:i] + bytes([good[i] ^ 1]) + good[i + 1 :])
        refused(path, "anchor")


def test_the_anchor_of_another_ledger_is_refused(path, tmp_path):
    used(path)
    used(tmp_path / "other.db")
    shutil.copy(f"{tmp_path / 'other.db'}.anchor", f"{path}.anchor")
    refused(path, "anchor of another ledger")


def test_an_anchor_never_moves_backwards(path):
    used(path)
    at = f"{path}.anchor"
    before = anchor.read(at)
    anchor.write(at, anchor.Mark(before.ledger, rows.Head(0, rows.GENESIS)))
    assert anchor.read(at) == before


# ---- bad files ----


def test_a_deleted_ledger_is_refused(path):
    used(path)
    ledger = dp.Ledger(path)
    os.unlink(path)
    with pytest.raises(dp.LedgerError, match="deleted while it was open"):
        ledger.reserve(claim(0.1))
    refused(path, "does not exist")


@pytest.mark.parametrize("keep", [0, 1, 15, 16, 99, 100, 4095, 4096, 4097, -4096])
def test_a_truncated_ledger_is_refused(path, keep):
    used(path)
    data = path.read_bytes()
    path.write_bytes(data[:keep])
    refused(path)


def test_a_file_that_is_no_database_is_refused(path):
    used(path)
    path.write_bytes(b"date,eps\n2026-11-29,0.5\n" * 400)
    refused(path, "not a database")


def test_a_database_that_is_no_ledger_is_refused(path):
    with sqlite3.connect(path) as c:
        c.execute("CREATE TABLE log (x)")
    c.close()
    refused(path, "not a ledger of dpframe")


@pytest.mark.parametrize("version", [0, store.SCHEMA + 1, 999])
def test_an_unknown_schema_is_refused(path, version):
    used(path)
    edit(path, f"PRAGMA user_version = {version}")
    refused(path, f"schema {version}")


def edit(path, sql: str) -> None:
    c = sqlite3.connect(path, isolation_level=None)
    c.execute(sql)
    c.close()


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE log SET body = replace(body, '1/10', '1/100') WHERE sequence = 1",
        "UPDATE log SET kind = 'retry' WHERE sequence = 1",
        "UPDATE log SET hash = prev WHERE sequence = 2",
        "UPDATE log SET body = CAST(body AS BLOB) WHERE sequence = 2",
        "DELETE FROM log WHERE sequence = 3",
        "DELETE FROM log WHERE sequence > 4",
        "DELETE FROM log",
        "UPDATE log SET sequence = 100 WHERE sequence = 2",
        "INSERT INTO log SELECT 99, kind, body, prev, hash FROM log WHERE sequence = 2",
        "DROP TABLE log",
        "ALTER TABLE log ADD COLUMN x",
        "CREATE TRIGGER quiet BEFORE INSERT ON log BEGIN SELECT RAISE(IGNORE); END",
    ],
)
def test_an_edited_ledger_is_refused(path, sql):
    used(path)
    edit(path, sql)
    refused(path)


def test_an_edit_whose_hash_was_made_anew_is_refused(path):
    """Even where the next row was told of it, the rest of the chain and the anchor were not."""
    used(path)
    c = sqlite3.connect(path, isolation_level=None)
    prev, body = c.execute("SELECT prev, body FROM log WHERE sequence = 1").fetchone()
    content = json.loads(body) | {"event": {"eps": "1/1000", "delta": "0", "rho": "1/1000000"}}
    row = rows.make(rows.Head(0, prev), content.pop("kind"), content)
    c.execute("UPDATE log SET body = ?, hash = ? WHERE sequence = 1", (row.body, row.hash))
    c.execute("UPDATE log SET prev = ? WHERE sequence = 2", (row.hash,))
    c.close()
    refused(path, "row 2 does not continue the chain")


def test_rows_written_by_hand_are_refused_unless_they_would_have_been_granted(path):
    """Even with a right chain: sums are made with the filter that grants."""
    used(path)
    ledger = dp.Ledger(path)
    content = ledger._log.known.charges[1].content
    fields = {k: v for k, v in content.items() if k not in ("kind", "sequence", "time", "version")}
    fields |= {"request_id": None, "event": {"eps": "5", "delta": "0", "rho": "1"}}

    def write() -> None:
        ledger._log.append("charge", ledger._log.now(), **fields)

    with pytest.raises(dp.LedgerError, match="more than its budget"), ledger._log.writing():
        write()
    with (
        pytest.raises(dp.LedgerError, match="all was taken back"),
        ledger._log.writing(),
        pytest.raises(dp.LedgerError, match="more than its budget"),  # not passed on
    ):
        write()
    assert spent(ledger) == spent(dp.Ledger(path)) == Fraction(4, 10)


@pytest.mark.parametrize("sql", ["DELETE FROM stored", "UPDATE stored SET payload = x'00'"])
def test_a_lost_or_changed_release_is_not_handed_out(path, sql):
    used(path)
    edit(path, sql)
    ledger = dp.Ledger(path)
    with pytest.raises(dp.LedgerError, match="stored release"):
        ledger.reserve(claim(0.1, request_id="0"))
    with pytest.raises(dp.LedgerError, match="stored release"):
        ledger.verify()


def test_a_hard_link_is_refused(path, tmp_path):
    used(path)
    os.link(path, tmp_path / "second.db")
    refused(path, "second name")


def test_flipped_bytes_are_refused_or_change_nothing(path, tmp_path):
    """Anywhere in the file: opening and verifying refuses, or the account is what it was."""
    used(path, 8)
    ledger = dp.Ledger(path)
    before, state = ledger.entries(), ledger.state()
    ledger.close()
    good, draw = path.read_bytes(), random.Random(1)
    caught = 0
    for _ in range(1000 if AUDIT else 60):
        at, mask = draw.randrange(len(good)), draw.randrange(1, 256)
        path.write_bytes(good[:at] + bytes([good[at] ^ mask]) + good[at + 1 :])
        try:
            ledger = dp.Ledger(path)
            ledger.verify()
            assert ledger.entries() == before
            assert ledger.state() == state
            ledger.close()
        except dp.LedgerError:
            caught += 1
        for rest in ("-wal", "-shm"):
            Path(f"{path}{rest}").unlink(missing_ok=True)
    assert caught > 0


def test_flipped_bytes_of_the_write_ahead_log_are_refused_or_change_nothing(path, tmp_path):
    dp.Ledger.create(path, eps=1).close()
    ledger = dp.Ledger(path)
    for _ in range(4):
        ledger.reserve(claim(0.1))
    state = ledger.state()
    copies(path, tmp_path / "crashed")
    names = os.listdir(tmp_path / "crashed")
    good, draw, caught = Path(f"{path}-wal").read_bytes(), random.Random(2), 0
    for trial in range(300 if AUDIT else 30):
        to = tmp_path / str(trial)
        to.mkdir()
        for name in names:
            shutil.copy(tmp_path / "crashed" / name, to / name)
        at = draw.randrange(len(good))
        Path(f"{to / path.name}-wal").write_bytes(good[:at] + bytes([good[at] ^ 16]) + good[at + 1 :])
        try:
            assert dp.Ledger(to / path.name).state() == state
        except dp.LedgerError:
            caught += 1
    assert caught > 0


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
                time.sleep(30)
        else:
            c = sqlite3.connect(path, isolation_level=None)
            c.execute("BEGIN IMMEDIATE")
            say("held")
            time.sleep(30)

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
