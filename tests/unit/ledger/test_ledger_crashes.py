"""Whatever dies while a ledger is written, nothing is granted that was spent: crashes and kills.

``DPFRAME_AUDIT=1``: every executed line instead of every 31st, 1,000 kills instead of 20.
"""

from __future__ import annotations

import os
import random
import secrets
import sys
import time
from fractions import Fraction
from pathlib import Path

from ledger_files import copies, used
from ledger_tools import Child, claim, spent
from sizes import AUDIT

import dpframe as dp
import dpframe.ledger as package
from dpframe.ledger import anchor

HOME = str(Path(package.__file__).parent)


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
        line, trials = line + (1 if AUDIT else 31), trials + 1
    assert line > 800
    assert trials > (800 if AUDIT else 25)


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
