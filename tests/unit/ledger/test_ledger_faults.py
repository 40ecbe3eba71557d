"""Whatever happens to the file, nothing is granted that was spent: old copies, lost ends, edits, flipped bytes.

``DPFRAME_AUDIT=1``: 1,000 flipped bytes instead of 60.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest
from ledger_files import copies, refused, used
from ledger_tools import claim, spent
from sizes import AUDIT

import dpframe as dp
from dpframe.ledger import anchor, rows, store

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
