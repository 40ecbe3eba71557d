"""One rule for calls that fail: a charge buys one answer or one failure, whoever pays; what told nothing goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import polars as pl
import pytest

import dpframe as dp
from dpframe.engine.polars import PolarsSource
from dpframe.ledger.book import Ledger

FRAME = pl.DataFrame({"x": [1.0, 2.0] * 500, "g": ["a", "b"] * 500})
FAILURES = (
    RuntimeError,
    MemoryError,
    RecursionError,
    pl.exceptions.ComputeError,
    dp.LedgerError,
    dp.InputError,
)
pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture
def failing(monkeypatch):
    """Make the next read of the frame raise, once."""

    def arm(error):
        real = PolarsSource.aggregate

        def fails(self, *args):
            monkeypatch.setattr(PolarsSource, "aggregate", real)
            raise error("cell 4711")

        monkeypatch.setattr(PolarsSource, "aggregate", fails)

    return arm


def places(tmp_path):
    """Every way to be charged 1: (its name, a context of sessions, what asks, what was spent)."""

    def session(ask, **options):
        s = dp.Session(**options)
        return s, lambda: ask(s), lambda: s.spent.eps

    path = tmp_path / "b.db"
    Ledger.create(path, eps=10).close()
    inner = dp.Session(eps=10)
    inner.close()

    def nested(s):
        with inner:
            return FRAME.dp.count(eps=1)

    return {
        "session": lambda: session(lambda s: FRAME.dp.count(eps=1), eps=10),
        "ledger": lambda: session(lambda s: FRAME.dp.count(eps=1), ledger=path),
        "request": lambda: session(lambda s: FRAME.dp.count(eps=1, request_id="q"), ledger=path),
        "nested": lambda: session(nested, eps=10),
        "nested on a ledger": lambda: session(nested, ledger=path),
    }


NAMES = ("session", "ledger", "request", "nested", "nested on a ledger")


@pytest.mark.parametrize("error", FAILURES)
@pytest.mark.parametrize("name", NAMES)
def test_every_asking_after_a_failure_is_charged(tmp_path, failing, name, error):
    s, ask, spent = places(tmp_path)[name]()
    with s:
        for tries in (1, 2):
            failing(error)
            with pytest.raises(dp.ReleaseFailed) as told:
                ask()
            assert "4711" not in str(told.value)
            assert spent() == tries
        assert 900 < ask() < 1100
        assert spent() == 3
        ask()
        assert spent() == (3 if name == "request" else 4)


@pytest.mark.parametrize("name", ["session", "request", "nested"])
def test_an_interrupt_keeps_its_receipt(tmp_path, failing, name):
    """On a ledger a request that has no name is charged anew: there a charge is a claim."""
    s, ask, spent = places(tmp_path)[name]()
    with s:
        for _ in range(3):
            failing(KeyboardInterrupt)
            with pytest.raises(KeyboardInterrupt):
                ask()
            assert spent() == 1
        ask()
        assert spent() == 1


def test_a_failure_after_an_interrupt_uses_the_receipt_up(tmp_path, failing):
    for name in ("session", "request"):
        (tmp_path / name).mkdir()
        s, ask, spent = places(tmp_path / name)[name]()
        with s:
            failing(KeyboardInterrupt)
            with pytest.raises(KeyboardInterrupt):
                ask()
            failing(RuntimeError)
            with pytest.raises(dp.ReleaseFailed):
                ask()
            assert spent() == 1
            ask()
            assert spent() == 2


def test_a_part_is_charged_for_every_failure(failing):
    with dp.Session(eps=10):
        part = FRAME.dp.partition_by("g", keys=["a", "b"], eps=3)["a"]
        for tries in (1, 2):
            failing(MemoryError)
            with pytest.raises(dp.ReleaseFailed):
                part.dp.count(eps=1)
            assert part.session.spent == tries
        part.dp.count(eps=1)
        with pytest.raises(dp.BudgetExceeded):
            part.dp.count(eps=1)


def test_a_budget_plan_that_runs_again_pays_for_its_failure_again(tmp_path, failing):
    path = tmp_path / "b.db"
    Ledger.create(path, eps=10).close()

    def plan():
        asked = {"a": dp.query(dp.count(), eps=1), "b": dp.query(dp.clip_sum("x", bounds=(0, 2)), eps=1)}
        return dp.BudgetPlan(FRAME, asked, eps=2, ledger=path, name="job")

    failing(RuntimeError)
    with pytest.raises(dp.ReleaseFailed):
        plan().run()
    ledger = dp.Ledger(path)
    assert [(e.failed, e.cost.eps) for e in ledger.entries()] == [(True, 1)]
    plan().run()
    assert ledger.spent == 3  # the failure, and both answers
    plan().run()
    assert ledger.spent == 3
    ledger.verify()
    assert ledger.export()["failed"].to_list() == [True, False, False]
    ledger.close()


def test_a_failure_that_can_not_be_noted_is_noted_before_the_request_goes_on(
    tmp_path, failing, monkeypatch, caplog
):
    path = tmp_path / "b.db"
    Ledger.create(path, eps=10).close()
    with dp.Session(ledger=path) as s:
        failing(RuntimeError)
        append = type(s.ledger._log).append

        def full(self, kind, now, **content):
            if kind == "failure":
                raise dp.LedgerError("The disk is full.")
            return append(self, kind, now, **content)

        with monkeypatch.context() as m:
            m.setattr(type(s.ledger._log), "append", full)
            with pytest.raises(dp.ReleaseFailed):
                FRAME.dp.count(eps=1, request_id="q")
        assert "could not be noted" in caplog.text
        FRAME.dp.count(eps=1, request_id="q")
        assert s.spent == 2
        s.ledger.verify()


def test_another_question_is_no_way_to_use_a_failed_request(tmp_path, failing):
    path = tmp_path / "b.db"
    Ledger.create(path, eps=10).close()
    with dp.Session(ledger=path) as s:
        failing(RuntimeError)
        with pytest.raises(dp.ReleaseFailed):
            FRAME.dp.count(eps=1, request_id="q")
        with pytest.raises(dp.InputError, match="another question"):
            FRAME.dp.count(eps=0.5, request_id="q")
        assert s.spent == 1


def test_a_failed_request_is_refused_when_nothing_is_left(tmp_path, failing):
    path = tmp_path / "b.db"
    Ledger.create(path, eps=1, window="30d", per_scope={"eps": 1}, lifetime={"eps": 1}).close()
    with dp.Session(ledger=path, scope="s"):
        failing(RuntimeError)
        with pytest.raises(dp.ReleaseFailed):
            FRAME.dp.count(eps=1, request_id="q")
        with pytest.raises(dp.BudgetExceeded):
            FRAME.dp.count(eps=1, request_id="q")


def test_what_was_killed_told_nothing_and_its_request_goes_on(tmp_path):
    path = tmp_path / "b.db"
    Ledger.create(path, eps=10).close()
    child = """
        import os, signal, sys
        import polars as pl
        import dpframe as dp
        from dpframe.engine.polars import PolarsSource
        PolarsSource.aggregate = lambda *args: os.kill(os.getpid(), signal.SIGKILL)
        with dp.Session(ledger=sys.argv[1]):
            pl.DataFrame({"x": [1.0]}).dp.count(eps=1, request_id="q")
    """
    died = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(child), str(path)], check=False, env=os.environ
    )
    assert died.returncode == -signal.SIGKILL
    with dp.Session(ledger=path) as s:
        assert s.spent == 1
        pl.DataFrame({"x": [1.0]}).dp.count(eps=1, request_id="q")
        assert s.spent == 1


def test_what_kind_of_error_it_was_is_not_told(failing):
    """Which error an engine raises may depend on a cell: every failure reads the same."""
    told = set()
    for error in FAILURES:
        failing(error)
        with dp.Session(eps=1), pytest.raises(dp.ReleaseFailed) as failed:
            FRAME.dp.count(eps=1)
        assert failed.value.__cause__ is None
        assert failed.value.__context__ is None or failed.value.__suppress_context__
        told.add(str(failed.value))
    assert len(told) == 1
