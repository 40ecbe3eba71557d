"""A ledger's requests: charged once, answered with the same bytes, never by two at a time."""

from __future__ import annotations

import datetime as dt
import threading
from fractions import Fraction

import pytest
from ledger_tools import claim, spent

import dpframe as dp
from dpframe.accounting.claims import Busy

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
        answer.wait(200)
        ledger.store(ticket, b"x")

    thread = threading.Thread(target=work)
    thread.start()
    asked.wait(200)
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
