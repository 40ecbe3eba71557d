"""What a ledger tells and holds: its entries, its anchor, exact values, and nothing else."""

from __future__ import annotations

import copy
import json
import os
import pickle
import sqlite3
from dataclasses import replace
from fractions import Fraction

import polars as pl
import pytest
from ledger_tools import claim, spent

import dpframe as dp
from dpframe.accounting.claims import Head
from dpframe.accounting.events import Event
from dpframe.accounting.filter import Budget
from dpframe.ledger.rows import Broken, decode, encode

# ---- reading ----


def test_entries_tell_everything_public(path, clock):
    ledger = dp.Ledger.create(path, eps=1)
    one = ledger.reserve(claim(0.25, label="arrivals", request_id="r"))
    clock.move(1)
    ledger.store(one, b"x")
    two = ledger.reserve(claim(0.25))
    first, second = ledger.entries()
    assert (first.sequence, first.time, first.scope, first.label) == (1, one.time, None, "arrivals")
    assert (first.question, first.mechanism, first.sensitivity, first.scale) == (
        "count()",
        "laplace",
        "1",
        "10",
    )
    assert (first.cost, first.cost.rho, first.request_id) == (0.25, Fraction(1, 32), "r")
    assert (first.repeat_of, second.repeat_of) == (None, 1)
    assert (first.private, first.version) == (True, dp.__version__)
    assert (first.released_at, second.released_at) == (clock.now, None)
    assert (first.head, second.head) == (one.head, two.head)
    frame = ledger.export()
    assert frame["sequence"].to_list() == [1, 3]
    assert frame["eps"].to_list() == [0.25, 0.25]
    assert frame.schema["time"] == pl.Datetime("us", "UTC")
    assert frame["hash"].to_list() == [one.head.hash, two.head.hash]


def test_an_empty_ledger_exports_its_columns(path):
    frame = dp.Ledger.create(path, eps=1).export()
    assert frame.shape == (0, 19)


def test_heads_grow_and_print(path):
    ledger = dp.Ledger.create(path, eps=1)
    ticket = ledger.reserve(claim())
    assert ticket.head == ledger.head == Head(1, ticket.head.hash)
    assert str(ledger.head) == f"1:{ticket.head.hash}"
    assert ledger.store(ticket, b"x") == ledger.head


def test_the_file_holds_what_was_asked_and_nothing_else(path):
    """Every field of every row, by name: a new one has to be argued for."""
    ledger = dp.Ledger.create(path, eps=1, window="1d", lifetime={"eps": 9})
    ticket = ledger.reserve(claim(request_id="r"))
    ledger.fail(ticket)
    ledger.store(ledger.reserve(claim(request_id="r")), b"x")
    ledger.close()
    with sqlite3.connect(path) as c:
        rows = {kind: json.loads(body) for kind, body in c.execute("SELECT kind, body FROM log")}
    c.close()
    common = {"kind", "sequence", "time", "version"}
    asked = {"scope", "label", "question", "mechanism", "sensitivity", "scale", "request_id", "fingerprint"}
    assert rows["charge"].keys() == common | asked | {"private", "event", "granted"}
    assert rows["charge"]["event"] == {"eps": "1/10", "delta": "0", "rho": "1/200"}
    assert rows["retry"].keys() == common | {"of", "private"}
    assert rows["release"].keys() == common | {"of", "digest", "size"}


@pytest.mark.parametrize("late", [False, True])
def test_a_retry_with_a_test_source_of_noise_marks_the_charge(path, clock, late):
    ledger = dp.Ledger.create(path, eps=1, window="1d")
    ledger.fail(ledger.reserve(claim(request_id="r")))
    assert [e.private for e in ledger.entries()] == [True]
    clock.move(hours=30 if late else 1)
    ledger.store(ledger.reserve(replace(claim(request_id="r"), private=False)), b"x")
    assert [e.private for e in ledger.entries()] == [False]
    ledger.close()
    assert [e.private for e in dp.Ledger(path).entries()] == [False]


def test_exact_values_come_back_as_they_were():
    event = Event(None, Fraction(1, 3), Fraction(2**80 + 1, 3**70), Fraction(0))
    assert decode(json.loads(json.dumps(encode(event))), Event) == event
    budget = Budget(Fraction(3), Fraction(1, 10**6), Fraction(1, 2 * 10**6))
    assert decode(encode(budget), Budget) == budget
    with pytest.raises(TypeError, match="float"):
        encode(0.5)
    for wrong in (
        {"eps": 1.5, "delta": "0", "rho": "0"},
        {"eps": "1", "delta": "0", "rho": "0", "new": 1},
        "1",
        None,
    ):
        with pytest.raises(Broken):
            decode(wrong, Event)


def test_a_ledger_is_not_copied_or_pickled(path):
    ledger = dp.Ledger.create(path, eps=1)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="ledger"):
            attempt(ledger)


def test_a_closed_ledger_says_so(path):
    ledger = dp.Ledger.create(path, eps=1)
    ledger.close()
    ledger.close()
    with pytest.raises(dp.LedgerError, match="was closed"):
        ledger.reserve(claim())
    assert "eps=1 per row" in repr(ledger)


def test_two_objects_on_one_file_see_each_other(path):
    one, two = dp.Ledger.create(path, eps=1), dp.Ledger(path)
    one.reserve(claim(0.5))
    assert spent(two) == Fraction(1, 2)
    two.reserve(claim(0.5))
    with pytest.raises(dp.BudgetExceeded):
        one.reserve(claim(0.5))


def test_a_moved_ledger_takes_its_anchor_along(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir(), there.mkdir()
    dp.Ledger.create(here / "b.db", eps=1).close()
    for name in os.listdir(here):
        os.rename(here / name, there / name)
    dp.Ledger(there / "b.db").reserve(claim())


def test_an_anchor_elsewhere_is_found_and_can_be_named(tmp_path):
    safe = tmp_path / "safe"
    safe.mkdir()
    ledger = dp.Ledger.create(tmp_path / "b.db", eps=1, anchor=safe / "mark")
    ledger.reserve(claim())
    ledger.close()
    assert not (tmp_path / "b.db.anchor").exists()
    assert spent(dp.Ledger(tmp_path / "b.db")) == Fraction(1, 10)
    os.rename(safe / "mark", tmp_path / "mark")
    with pytest.raises(dp.LedgerError, match=r"anchor .* is missing"):
        dp.Ledger(tmp_path / "b.db")
    assert spent(dp.Ledger(tmp_path / "b.db", anchor=tmp_path / "mark")) == Fraction(1, 10)


def test_a_charge_is_on_the_disk_before_it_is_granted(path, monkeypatch):
    """The database waits for the disk at every commit, and so does the anchor before it takes its place."""
    from dpframe.ledger import anchor

    ledger = dp.Ledger.create(path, eps=1)
    with ledger.charging():
        said = {p: ledger._log.store._connection.execute(f"PRAGMA {p}").fetchone()[0] for p in ("synchronous", "fullfsync")}  # fmt: skip
    assert said == {"synchronous": 2, "fullfsync": 1}  # FULL
    done = []
    true = {name: getattr(os, name) for name in ("fsync", "replace")}
    for name in true:
        monkeypatch.setattr(anchor.os, name, lambda *a, n=name: (done.append(n), true[n](*a))[1])
    ledger.reserve(claim(0.1))
    assert done == ["fsync", "replace"]
    ledger.close()
