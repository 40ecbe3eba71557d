"""A ledger in one process: what is declared, granted, refused, remembered; windows, scopes, requests."""

from __future__ import annotations

import copy
import datetime as dt
import json
import os
import pickle
import random
import sqlite3
import threading
from dataclasses import replace
from fractions import Fraction

import polars as pl
import pytest
from ledger_tools import AUDIT, Clock, claim, laplace, spent

import dpframe as dp
from dpframe.accounting.claims import Busy, Head
from dpframe.accounting.events import Event
from dpframe.accounting.filter import Budget, State
from dpframe.accounting.policy import Policy
from dpframe.ledger.book import window_text
from dpframe.ledger.rows import Broken, decode, encode


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


# ---- declaring ----


def test_a_ledger_remembers_what_was_declared(path):
    dp.Ledger.create(
        path,
        eps=3,
        delta=1e-6,
        neighbors="replace_one",
        unit=["user_id", "day"],
        per_scope={"eps": 0.1},
        window="30d",
        lifetime={"rho": 0.5, "delta_calls": 1e-7},
    ).close()
    ledger = dp.Ledger(path)
    assert ledger.policy == Policy("replace_one", ("user_id", "day"))
    assert ledger.budget == Budget(Fraction(3), Fraction(1, 10**6), Fraction(1, 2 * 10**6))
    assert ledger.per_scope == Budget(Fraction(1, 10))
    assert ledger.lifetime == Budget(None, Fraction(1, 10**7), Fraction(1, 10**7), Fraction(1, 2))
    assert ledger.window == dt.timedelta(days=30)
    assert ledger.accountant == "union"
    assert ledger.path == os.path.realpath(path)
    assert ledger.state("a") == {
        "total": (ledger.budget, State()),
        "scope": (ledger.per_scope, State()),
        "lifetime": (ledger.lifetime, State()),
    }


def test_a_plain_ledger_has_one_budget(path):
    ledger = dp.Ledger.create(path, rho=0.1)
    assert (ledger.per_scope, ledger.lifetime, ledger.window) == (None, None, None)
    assert list(ledger.state()) == ["total"]
    assert ledger.head.sequence == 0


def test_create_refuses_what_is_there(path):
    dp.Ledger.create(path, eps=1).close()
    with pytest.raises(dp.InputError, match=r"there already.*Hint"):
        dp.Ledger.create(path, eps=1)
    path.unlink()
    with pytest.raises(dp.InputError, match=r"anchor is there already"):  # a deleted ledger is no fresh start
        dp.Ledger.create(path, eps=1)


def test_opening_never_creates(path):
    with pytest.raises(dp.LedgerError, match="does not exist"):
        dp.Ledger(path)
    assert os.listdir(path.parent) == []


def test_a_ledger_that_can_not_be_made_leaves_nothing(tmp_path):
    with pytest.raises(dp.LedgerError, match="can't be made"):
        dp.Ledger.create(tmp_path / "b.db", eps=1, anchor=tmp_path / "missing" / "anchor")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({}, "eps= or rho="),
        ({"eps": 1, "rho": 1}, "eps= or rho="),
        ({"eps": 0}, "eps=0"),
        ({"eps": float("nan")}, "eps=nan"),
        ({"eps": 1, "delta": 1}, "delta=1"),
        ({"eps": 1, "neighbors": "swap"}, "neighbors='swap'"),
        ({"eps": 1, "accountant": "pdl"}, "accountant='pdl'"),
        ({"eps": 1, "per_scope": 0.1}, "per_scope=0.1"),
        ({"eps": 1, "per_scope": {}}, "per_scope={}"),
        ({"eps": 1, "per_scope": {"epsilon": 1}}, "'epsilon'"),
        ({"eps": 1, "per_scope": {"eps": 1, "rho": 1}}, "per_scope="),
        ({"eps": 1, "per_scope": {"eps": -1}}, "eps=-1"),
        ({"eps": 1, "lifetime": {"eps": 9}}, "window="),
        ({"eps": 1, "window": "30"}, "window='30'"),
        ({"eps": 1, "window": "a month"}, "window='a month'"),
        ({"eps": 1, "window": "0d"}, "window='0d'"),
        ({"eps": 1, "window": 30}, "window=30"),
        ({"eps": 1, "window": dt.timedelta(-1)}, "window="),
    ],
    ids=str,
)
def test_a_wrong_declaration_is_refused_and_makes_nothing(path, wrong, says):
    with pytest.raises(dp.InputError, match=r"Hint:|There are") as e:
        dp.Ledger.create(path, **wrong)
    assert says in str(e.value)
    assert os.listdir(path.parent) == []


@pytest.mark.parametrize(
    ("typed", "means"),
    [
        ("45s", dt.timedelta(seconds=45)),
        ("90m", dt.timedelta(minutes=90)),
        ("12h", dt.timedelta(hours=12)),
        ("30d", dt.timedelta(days=30)),
        ("2w", dt.timedelta(weeks=2)),
        (dt.timedelta(hours=1.5), dt.timedelta(minutes=90)),
    ],
    ids=str,
)
def test_windows_are_text_or_timedelta(path, typed, means):
    assert dp.Ledger.create(path, eps=1, window=typed).window == means


@pytest.mark.parametrize("wrong", [1, None, b"x", ...], ids=repr)
def test_a_path_is_a_path(wrong):
    with pytest.raises(TypeError, match="path"):
        dp.Ledger(wrong)
    with pytest.raises(TypeError, match="path"):
        dp.Ledger.create(wrong, eps=1)


def test_a_path_means_the_same_file_wherever_the_process_goes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = dp.Ledger.create("b.db", eps=1)
    os.mkdir("elsewhere")
    os.symlink(tmp_path / "b.db", tmp_path / "elsewhere" / "link.db")
    monkeypatch.chdir(tmp_path / "elsewhere")
    ledger.reserve(claim(0.25))
    assert spent(dp.Ledger("link.db")) == Fraction(1, 4)


# ---- granting ----


def test_sums_are_exact(path):
    """Ten tenths fit in 1, and nothing more: 0.1 + ... is not added up in floats."""
    ledger = dp.Ledger.create(path, eps=1)
    for _ in range(10):
        ledger.reserve(claim(0.1))
    with pytest.raises(dp.BudgetExceeded):
        ledger.reserve(claim("0.000000000001"))
    assert spent(ledger) == spent(dp.Ledger(path)) == 1


def test_a_refusal_names_the_budget_and_changes_nothing(path):
    ledger = dp.Ledger.create(path, eps=1, per_scope={"eps": 0.5})
    ledger.reserve(claim(0.4), "monday")
    before = ledger.head
    with pytest.raises(dp.BudgetExceeded, match=r"The budget of scope 'monday': eps is used up") as e:
        ledger.reserve(claim(0.2, label="arrivals"), "monday")
    assert (e.value.requested, e.value.remaining) == (0.2, 0.1)
    assert (e.value.component, e.value.label) == ("eps", "arrivals")
    assert "session" not in str(e.value)
    ledger.reserve(claim(0.4), "tuesday")
    with pytest.raises(dp.BudgetExceeded, match=r"The ledger's budget: eps is used up"):
        ledger.reserve(claim(0.3), "wednesday")
    assert ledger.head.sequence == before.sequence + 1
    assert spent(ledger) == Fraction(4, 5)


def test_delta_and_rho_run_out_too(path):
    ledger = dp.Ledger.create(path, rho=0.5, delta_calls=1e-6)
    with pytest.raises(dp.BudgetExceeded, match="rho is used up") as e:
        ledger.reserve(claim(event=laplace(2)))
    assert e.value.component == "rho"
    big = Event(Fraction(1, 10), Fraction(1, 10**5), Fraction(1, 200))
    with pytest.raises(dp.BudgetExceeded, match="delta is used up") as e:
        ledger.reserve(claim(event=big))
    assert e.value.component == "delta"


def test_a_gaussian_event_is_kept_in_the_form_in_which_it_was_granted(path):
    """While delta lasts it has eps; afterwards it is charged by rho, and epsilons can't be added up any more."""
    ledger = dp.Ledger.create(path, eps=3, delta=1e-6)
    event = Event(Fraction(1, 10), Fraction(3, 10**7), Fraction(1, 1000), Fraction(0))
    ledger.reserve(claim(event=event))
    ledger.reserve(claim(event=event, label="second"))
    again = dp.Ledger(path)
    assert [(e.cost.eps, e.cost.delta) for e in again.entries()] == [
        (Fraction(1, 10), Fraction(3, 10**7)),
        (None, 0),
    ]
    _, state = again.state()["total"]
    assert state == State(None, Fraction(3, 10**7), Fraction(1, 500), "second")


def test_what_is_charged_stays_charged_without_a_release(path):
    ledger = dp.Ledger.create(path, eps=1)
    ticket = ledger.reserve(claim(0.25, request_id="a"))
    ledger.fail(ticket)
    assert spent(ledger) == spent(dp.Ledger(path)) == Fraction(1, 4)


def test_an_exception_in_the_block_takes_back_what_was_not_committed(path):
    ledger = dp.Ledger.create(path, eps=1)
    with pytest.raises(ZeroDivisionError), ledger.charging() as t:  # noqa: PT012
        t.reserve(claim(0.25))
        1 / 0  # noqa: B018
    assert spent(ledger) == 0
    assert ledger.head.sequence == 0
    ledger.reserve(claim(1))
    assert spent(ledger) == 1


def test_two_ledgers_are_charged_both_or_not_at_all(tmp_path):
    rich = dp.Ledger.create(tmp_path / "a.db", eps=10)
    poor = dp.Ledger.create(tmp_path / "b.db", eps=0.5)
    with rich.charging() as a, poor.charging() as b:
        a.reserve(claim(0.5))
        b.reserve(claim(0.5))
    with pytest.raises(dp.BudgetExceeded), rich.charging() as a, poor.charging() as b:  # noqa: PT012
        a.reserve(claim(0.5))
        b.reserve(claim(0.5))
    assert (spent(rich), spent(poor)) == (Fraction(1, 2), Fraction(1, 2))


def test_several_charges_in_one_step_are_added_up(path):
    ledger = dp.Ledger.create(path, eps=1)
    with pytest.raises(dp.BudgetExceeded), ledger.charging() as t:  # noqa: PT012
        t.reserve(claim(0.6))
        t.reserve(claim(0.6))
    assert spent(ledger) == 0
    with ledger.charging() as t:
        first, second = t.reserve(claim(0.5)), t.reserve(claim(0.5))
    assert (first.sequence, second.sequence) == (1, 2)
    assert spent(ledger) == 1


def test_a_charge_that_is_over_grants_nothing(path):
    ledger = dp.Ledger.create(path, eps=1)
    with ledger.charging() as t:
        pass
    with pytest.raises(dp.LedgerError, match="over"):
        t.reserve(claim())


def test_a_ledger_in_the_middle_of_a_charge_says_so_instead_of_waiting_for_itself(path):
    ledger, same = dp.Ledger.create(path, eps=1), dp.Ledger(path)
    with ledger.charging():
        for other in (ledger, same):
            with pytest.raises(dp.LedgerError, match="in the middle of a charge"):
                other.reserve(claim())
        with pytest.raises(dp.LedgerError, match="in the middle of a charge"):
            ledger.state()
    ledger.reserve(claim())


def test_another_policy_is_refused(path):
    ledger = dp.Ledger.create(path, eps=1, unit="user_id")
    with pytest.raises(dp.InputError, match=r"row.*user_id"):
        ledger.reserve(claim())
    ledger.reserve(claim(policy=Policy("add_remove", ("user_id",))))


@pytest.mark.parametrize("accountant", ["union", "sum", "zcdp", "rdp", "gdp"])
def test_every_accountant_is_kept_and_adds_up_again(path, accountant):
    ledger = dp.Ledger.create(path, eps=3, delta=1e-6, accountant=accountant)
    event = Event(Fraction(1, 10), Fraction(1, 10**8), Fraction(1, 1000), Fraction(0), kind="gaussian")
    ledger.reserve(claim(event=event))
    if accountant == "gdp":
        with pytest.raises(dp.BudgetExceeded, match="The ledger's budget: The accountant 'gdp'"):
            ledger.reserve(claim(event=laplace(0.1)))
    else:
        ledger.reserve(claim(event=laplace(0.1)))
    again = dp.Ledger(path)
    assert again.accountant == accountant
    assert again.budget == ledger.budget
    assert again.state() == ledger.state()
    assert again.entries() == ledger.entries()
    again.verify()


# ---- scopes ----


def test_scopes_are_asked_for_where_they_were_declared(tmp_path):
    plain = dp.Ledger.create(tmp_path / "a.db", eps=1)
    plain.check_scope(None)
    with pytest.raises(dp.InputError, match=r"without scopes.*per_scope="):
        plain.check_scope("x")
    scoped = dp.Ledger.create(tmp_path / "b.db", eps=1, per_scope={"eps": 0.1})
    scoped.check_scope("x")
    with pytest.raises(dp.InputError, match=r"budget for each scope.*scope="):
        scoped.check_scope(None)
    window = dp.Ledger.create(tmp_path / "c.db", eps=1, window="1d")
    window.check_scope(None)
    window.check_scope("x")
    for wrong in (1, b"x", "", dt.date(2026, 1, 1)):
        with pytest.raises(dp.InputError, match="scope="):
            scoped.check_scope(wrong)
        with pytest.raises(dp.InputError, match="scope="), scoped.charging(wrong):
            pass


def test_every_scope_has_its_budget_and_all_share_the_total(path):
    ledger = dp.Ledger.create(path, eps=1, per_scope={"eps": 0.4})
    for scope in ("a", "b"):
        ledger.reserve(claim(0.4), scope)
        with pytest.raises(dp.BudgetExceeded, match=f"scope '{scope}'"):
            ledger.reserve(claim(0.1), scope)
    assert spent(ledger, "a", "scope") == spent(ledger, "b", "scope") == Fraction(2, 5)
    assert spent(ledger, "new", "scope") == 0
    assert [e.scope for e in ledger.entries()] == ["a", "b"]
    assert [e.scope for e in ledger.entries("b")] == ["b"]


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


# ---- requests ----


def test_a_request_is_charged_once_and_answered_with_the_same_bytes(path, clock):
    ledger = dp.Ledger.create(path, eps=1)
    first = ledger.reserve(claim(0.25, request_id="r"))
    assert (first.charged, first.stored, first.released_at) == (True, None, None)
    clock.move(5)
    head = ledger.store(first, b"\x00answer")
    for book in (ledger, dp.Ledger(path)):
        clock.move(days=1)
        again = book.reserve(claim(0.25, request_id="r"))
        assert (again.charged, again.stored, again.head) == (False, b"\x00answer", head)
        assert again.time == first.time
        assert again.released_at == first.time + dt.timedelta(seconds=5)
        with pytest.raises(dp.InputError, match="answered before"):
            book.store(again, b"other")
        book.fail(again)  # nothing to give up
    assert spent(ledger) == Fraction(1, 4)
    assert ledger.head == head


def test_the_same_request_in_another_scope_is_another(path):
    ledger = dp.Ledger.create(path, eps=1, per_scope={"eps": 0.5})
    ledger.store(ledger.reserve(claim(0.25, request_id="r"), "a"), b"a")
    assert ledger.reserve(claim(0.25, request_id="r"), "b").charged is True


@pytest.mark.parametrize("other", [{"fingerprint": "g"}, {"eps": 0.5}], ids=str)
def test_another_question_under_the_same_request_is_refused(path, other):
    ledger = dp.Ledger.create(path, eps=1)
    ledger.store(ledger.reserve(claim(request_id="r")), b"a")
    with pytest.raises(dp.InputError, match=r"request_id='r' was charged for another question"):
        ledger.reserve(claim(**{"eps": 0.1, "request_id": "r"} | other))
    assert spent(ledger) == Fraction(1, 10)


@pytest.mark.parametrize("wrong", [1, "", b"r", 0.5], ids=repr)
def test_a_request_is_text(path, wrong):
    with pytest.raises(dp.InputError, match="request_id="):
        dp.Ledger.create(path, eps=1).reserve(claim(request_id=wrong))


def test_a_request_that_was_given_up_is_taken_over_free(path):
    ledger = dp.Ledger.create(path, eps=1)
    first = ledger.reserve(claim(1, request_id="r"))
    ledger.fail(first)
    ledger.fail(first)
    with pytest.raises(dp.LedgerError, match="one charge buys one release"):
        ledger.store(first, b"after it was given up")
    second = ledger.reserve(claim(1, request_id="r"))
    assert (second.charged, second.stored, second.sequence) == (False, None, first.sequence)
    assert second.time == first.time
    assert ledger.head.sequence == 2  # the retry stands in the chain
    with pytest.raises(dp.LedgerError, match="somebody else"):
        ledger.store(first, b"first")
    ledger.store(second, b"second")
    with pytest.raises(dp.LedgerError, match="one charge buys one release"):
        ledger.store(second, b"again")
    assert ledger.reserve(claim(1, request_id="r")).stored == b"second"


def test_a_charge_without_a_request_buys_one_release(path):
    ledger = dp.Ledger.create(path, eps=1)
    ticket = ledger.reserve(claim())
    ledger.store(ticket, b"x")
    with pytest.raises(dp.LedgerError, match="one charge buys one release"):
        ledger.store(ticket, b"y")
    with pytest.raises(TypeError, match="bytes"):
        ledger.store(ledger.reserve(claim()), "text")


def test_the_same_thread_takes_over_from_itself(path):
    """It can't be answering: an error in a notebook may keep a ticket alive for ever."""
    ledger = dp.Ledger.create(path, eps=1)
    kept = ledger.reserve(claim(request_id="r"))
    assert ledger.reserve(claim(request_id="r")).charged is False
    assert kept.charged


def test_a_request_of_another_living_thread_is_busy_until_it_is_answered(path):
    ledger, asked, answer = dp.Ledger.create(path, eps=1), threading.Event(), threading.Event()

    def work():
        ticket = ledger.reserve(claim(request_id="r"))
        asked.set()
        answer.wait(20)
        ledger.store(ticket, b"x")

    thread = threading.Thread(target=work)
    thread.start()
    asked.wait(20)
    with pytest.raises(Busy), ledger.charging() as t:
        t.reserve(claim(request_id="r"))
    answer.set()
    assert ledger.reserve(claim(request_id="r")).stored == b"x"
    thread.join()
    assert len(ledger.entries()) == 1


def test_a_request_whose_thread_ended_without_a_word_is_taken_over(path):
    ledger, kept = dp.Ledger.create(path, eps=1), []
    thread = threading.Thread(target=lambda: kept.append(ledger.reserve(claim(request_id="r"))))
    thread.start()
    thread.join()
    assert ledger.reserve(claim(request_id="r")).charged is False
    assert kept[0].charged


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
    assert frame.shape == (0, 18)


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
