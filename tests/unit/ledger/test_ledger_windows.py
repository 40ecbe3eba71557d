"""A ledger's windows: no window of releases ever holds more than the budget, whatever the clock does."""

from __future__ import annotations

import datetime as dt
import random
from fractions import Fraction

import pytest
from ledger_tools import claim, spent
from sizes import AUDIT

import dpframe as dp
from dpframe.ledger.book import window_text

# ---- windows ----


def test_each_window_has_the_budget(path, clock):
    ledger = dp.Ledger.create(path, eps=1, window="30d")
    ledger.reserve(claim(0.75))
    clock.move(days=10)
    ledger.reserve(claim(0.25))
    with pytest.raises(dp.BudgetExceeded, match="The ledger's budget of each 30 days"):
        ledger.reserve(claim(0.25))
    clock.move(days=20, seconds=-1)
    assert spent(ledger) == 1
    with pytest.raises(dp.BudgetExceeded):
        ledger.reserve(claim(0.25))
    clock.move(seconds=1)  # the first is 30 days old: any window of 30 days that ends now is without it
    assert spent(ledger) == spent(dp.Ledger(path)) == Fraction(1, 4)
    ledger.reserve(claim(0.75))
    with pytest.raises(dp.BudgetExceeded):
        ledger.reserve(claim(0.25))


def test_a_lifetime_limits_all_windows_together(path, clock):
    ledger = dp.Ledger.create(path, eps=1, window="1d", lifetime={"eps": 2.5})
    for _ in range(2):
        ledger.reserve(claim(1))
        clock.move(days=1)
    with pytest.raises(dp.BudgetExceeded, match="The ledger's lifetime budget"):
        ledger.reserve(claim(1))
    ledger.reserve(claim(0.5))
    assert spent(ledger, part="lifetime") == Fraction(5, 2)
    assert spent(ledger) == Fraction(1, 2)


def test_a_late_retry_counts_in_the_window_in_which_its_answer_leaves(path, clock):
    """Else old charges could be saved up and answered together."""
    ledger = dp.Ledger.create(path, eps=1, window="1d")
    ledger.fail(ledger.reserve(claim(1, request_id="old")))
    clock.move(days=2)
    ledger.reserve(claim(0.5, request_id="new", fingerprint="g"))
    with pytest.raises(dp.BudgetExceeded):
        ledger.reserve(claim(1, request_id="old"))
    clock.move(days=2)
    ticket = ledger.reserve(claim(1, request_id="old"))
    assert (ticket.charged, ticket.sequence) == (True, 1)
    assert spent(ledger) == spent(dp.Ledger(path)) == 1
    ledger.store(ticket, b"answer")
    clock.move(days=9)
    assert ledger.reserve(claim(1, request_id="old")).stored == b"answer"  # bytes that are out are free
    assert spent(ledger) == 0


def test_an_early_retry_is_free_and_counts_from_now(path, clock):
    ledger = dp.Ledger.create(path, eps=1, window="1d")
    ledger.fail(ledger.reserve(claim(1, request_id="a")))
    clock.move(hours=20)
    ticket = ledger.reserve(claim(1, request_id="a"))
    assert ticket.charged is False
    clock.move(hours=20)  # the charge has left, the retry has not
    assert spent(ledger) == spent(dp.Ledger(path)) == 1


def test_an_answer_later_than_a_window_after_its_charge_is_not_kept(path, clock):
    ledger = dp.Ledger.create(path, eps=1, window="1d")
    ticket = ledger.reserve(claim(1))
    clock.move(days=1)
    with pytest.raises(dp.LedgerError, match="more than 1 day after its charge"):
        ledger.store(ticket, b"late")
    ledger.verify()


@pytest.mark.parametrize("seed", range(40 if AUDIT else 8))
def test_no_window_of_releases_ever_holds_more_than_the_budget(path, clock, seed):
    """Random charges, slow answers, failures and retries; every window of release times is added up by hand."""
    draw = random.Random(seed)
    ledger = dp.Ledger.create(path, eps=1, window="100s", per_scope={"eps": 8}, lifetime={"eps": 12})
    waiting, released, costs, scopes = {}, [], {}, {}
    for step in range(150):
        clock.move(draw.choice([0, 1, 5, 20, 60]))
        what = draw.random()
        try:
            if what < 0.5 or not waiting:
                name = str(step)
                costs[name] = Fraction(draw.randint(1, 9), 20)
                scopes[name] = draw.choice("ab")
                waiting[name] = ledger.reserve(claim(costs[name], request_id=name), scopes[name])
            elif what < 0.7:
                name = draw.choice(list(waiting))
                ledger.fail(waiting[name])
                waiting[name] = ledger.reserve(claim(costs[name], request_id=name), scopes[name])
            else:
                name = draw.choice(list(waiting))
                ledger.store(waiting.pop(name), name.encode())
                released.append((clock.now, costs[name], scopes[name]))
        except (dp.BudgetExceeded, dp.LedgerError):
            pass
    assert len(released) > 5
    length = dt.timedelta(seconds=100)
    for end, _, _ in released:
        assert sum(c for t, c, _ in released if end - length < t <= end) <= 1
    assert sum(c for _, c, _ in released) <= 12
    for scope in "ab":
        assert sum(c for _, c, s in released if s == scope) <= 8
    assert {k: s for k, (_, s) in dp.Ledger(path).state("a").items()} == {
        k: s for k, (_, s) in ledger.state("a").items()
    }
    ledger.verify()


def test_a_report_says_what_a_window_promises(tmp_path):
    plain = dp.Ledger.create(tmp_path / "a.db", eps=1)
    assert "whole life" in window_text(plain)
    month = window_text(dp.Ledger.create(tmp_path / "b.db", eps=1, delta=1e-6, window="30d"))
    assert "eps=1, delta=1e-06" in month
    assert "within any 30 days" in month
    assert "not a budget for a lifetime" in month
    assert "over a year to 13 times" in month
    assert "Nothing limits the total" in month
    limited = dp.Ledger.create(tmp_path / "c.db", eps=1, window="12h", lifetime={"eps": 9})
    assert "All windows together have eps=9" in window_text(limited)


# ---- clocks ----


def test_charge_times_do_not_go_backwards(path, clock):
    ledger = dp.Ledger.create(path, eps=1)
    first = ledger.reserve(claim())
    clock.move(-1)
    assert ledger.reserve(claim()).time == first.time  # within a second the last time is taken again
    clock.move(-0.5)
    with pytest.raises(dp.LedgerError) as e:
        ledger.reserve(claim())
    assert "2026-11-29 12:00:00" in str(e.value)
    assert "2026-11-29 11:59:58" in str(e.value)
    assert spent(ledger) == Fraction(1, 5)
