"""What the tests of a ledger's file share: its place, its clock, what was used, copies, a refusal."""

from __future__ import annotations

import os
import shutil

import pytest
from ledger_tools import Clock, claim

import dpframe as dp


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


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
