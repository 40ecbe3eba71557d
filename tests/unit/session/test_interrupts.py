"""Ctrl-C at every stage: no budget is lost, none is spent twice, no charge has two answers. And progress."""

from __future__ import annotations

import contextvars
import gc
import io
import signal
import sys
import threading
import types
from functools import partial
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from dpframe.base import signals as interrupts
from dpframe.base.progress import Progress
from dpframe.engine.polars import PolarsSource

pytestmark = pytest.mark.usefixtures("quiet")

PACKAGE = str(Path(dp.__file__).parent)
FRAME = pl.DataFrame({"x": [1.0, 2.0, None] * 20, "g": ["a", "b", "c"] * 20})
QUERIES = {
    "n": dp.count(),
    "mean": dp.clip_mean("x", bounds=(0, 10)),
    "by g": dp.query(dp.count(), groupby="g", keys=["a", "b"]),
}
NEAR = (
    "pipeline.py",
    "charging.py",
    "signals.py",
    "session.py",
    "budget_plan.py",
    "release.py",
    "account.py",
)


def lines_of(call, at: int | None = None, files: tuple[str, ...] = ()) -> int:
    """Run ``call`` and count the lines of dpframe that it takes; press Ctrl-C before the one numbered ``at``."""
    seen = 0

    def trace(frame, event, arg):
        nonlocal seen
        name = frame.f_code.co_filename
        if not name.startswith(PACKAGE) or (files and not name.endswith(files)):
            return None
        if frame.f_code.co_name == "__exit__" and name.endswith("session.py"):
            return None  # before the first step of an __exit__ no code of Python's can protect anything
        if event == "line":
            seen += 1
            if seen == at:
                sys.settrace(None)
                signal.raise_signal(signal.SIGINT)
        return trace

    before = sys.gettrace()
    gc.disable()  # a collection would run finalizers at lines of its own choice
    sys.settrace(trace)
    try:  # in a context of its own: Ctrl-C just before an __exit__ leaves a session entered
        contextvars.copy_context().run(call)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
        gc.enable()
    return seen


def points(make, files=(), most=150) -> list[int]:
    """Numbers of lines of what ``make()`` returns, as it runs when every cache is warm: the same whatever ran before."""
    for _ in range(2):
        make()()
    total = lines_of(make(), files=files)
    assert total > 100
    return sorted({*range(1, total + 1, max(1, total // most))})


@pytest.fixture(autouse=True)
def ctrl_c():
    """The usual handler, before and after."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert interrupts._held == []
    signal.signal(signal.SIGINT, before)


def budget_plan(**more):
    return dp.BudgetPlan(FRAME, QUERIES, eps=3, **more)


@pytest.mark.parametrize("files", [(), NEAR], ids=["everywhere", "near the charge"])
def test_a_plan_that_is_interrupted_anywhere_goes_on_and_pays_once(files):
    for at in points(lambda: budget_plan().run, files):
        plan = budget_plan()
        lines_of(plan.run, at, files)
        told = dict(plan.releases)
        kept = list(plan.session.releases)
        plan.run()
        assert set(plan.releases) == set(QUERIES), at
        assert plan.session.spent == 3, at
        assert plan.session.report().height == 3, at
        assert len(plan.session.releases) == 3, at
        assert all(plan.releases[n] is r for n, r in told.items()), at
        assert all(r in plan.session.releases for r in kept), at


def test_a_plan_on_a_ledger_that_is_interrupted_anywhere_goes_on_and_pays_once(tmp_path):
    def made(i):
        path = tmp_path / f"budget-{i}.db"
        dp.Ledger.create(path, eps=3)
        return path, budget_plan(ledger=path, name="p")

    dry = iter(range(3))
    for at in points(lambda: made(f"dry {next(dry)}")[1].run, most=40):
        path, plan = made(at)
        lines_of(plan.run, at)
        plan.run()
        assert set(plan.releases) == set(QUERIES), at
        with dp.Session(ledger=path) as s:
            assert s.spent == 3, at
        assert len(dp.Ledger(path).entries()) == 3, at


def test_a_plan_on_a_ledger_goes_on_in_another_session_object(tmp_path):
    path = tmp_path / "budget.db"
    dp.Ledger.create(path, eps=3)
    first = budget_plan(ledger=path, name="p")
    lines_of(first.run, 400)
    second = budget_plan(ledger=path, name="p")
    second.run()
    with dp.Session(ledger=path) as s:
        assert s.spent == 3


def test_a_call_that_is_interrupted_anywhere_is_one_charge_for_one_answer():
    def ask(s):
        FRAME.dp.clip_mean("x", bounds=(0, 10), eps=0.5, session=s)

    for at in points(lambda: partial(ask, dp.Session(eps=9)), NEAR, most=400):
        s = dp.Session(eps=9)
        lines_of(lambda: ask(s), at, NEAR)  # noqa: B023
        ask(s)
        assert s.spent == 0.5 * len(s.releases), at
        assert s.report().height == len(s.releases), at
        assert s._owed == {}, at


def test_a_partition_that_is_interrupted_is_made_under_the_same_charge():
    def make(s):
        return FRAME.dp.partition_by("g", keys=["a", "b"], eps=0.5, session=s)

    for at in points(lambda: partial(make, dp.Session(eps=9)), (*NEAR, "partition.py"), most=60):
        s = dp.Session(eps=9)
        lines_of(lambda: make(s), at, (*NEAR, "partition.py"))  # noqa: B023
        paid = float(s.spent.eps)
        parts = make(s)
        assert paid in (0, 0.5)
        assert s.spent == (0.5 if s.report().height == 1 else 1)
        assert parts["a"].dp.count(eps=0.5) is not None


# ---- who pays after an interrupt ----


def interrupted(s, monkeypatch, **options):
    def aggregate(*args):
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("not reached")

    with monkeypatch.context() as m:
        m.setattr(PolarsSource, "aggregate", aggregate)
        with pytest.raises(KeyboardInterrupt) as caught:
            FRAME.dp.count(eps=0.5, session=s, **options)
    assert caught.value.__context__ is None
    assert s.spent == 0.5
    assert s.releases == []


def test_the_engine_hears_ctrl_c_and_the_next_equal_question_is_paid(monkeypatch):
    s = dp.Session(eps=1)
    interrupted(s, monkeypatch)
    n = FRAME.dp.count(eps=0.5, session=s, label="again")
    assert s.spent == 0.5
    assert s["again"].value == n
    assert s.report()["repeat_of"].to_list() == [None]
    FRAME.dp.count(eps=0.5, session=s)
    assert s.spent == 1


def test_another_question_pays_for_itself(monkeypatch):
    s = dp.Session(eps=2)
    interrupted(s, monkeypatch)
    FRAME.dp.count(eps=0.25, session=s)
    FRAME.dp.clip_sum("x", bounds=(0, 1), eps=0.5, session=s)
    assert s.spent == 1.25


def test_another_payer_pays_in_full(monkeypatch):
    """A session around this one has paid nothing for the interrupted call."""
    s = dp.Session(eps=2)
    interrupted(s, monkeypatch)
    with dp.Session(eps=2) as outer, s:
        FRAME.dp.count(eps=0.5)
    assert outer.spent == 0.5
    assert s.spent == 1


def test_a_failure_of_the_engine_leaves_nothing_to_go_on_with(monkeypatch):
    """Whether an engine fails may depend on cells: each look at it is paid."""

    def fails(*args):
        raise RuntimeError

    s = dp.Session(eps=2)
    with monkeypatch.context() as m:
        m.setattr(PolarsSource, "aggregate", fails)
        with pytest.raises(dp.ReleaseFailed):
            FRAME.dp.count(eps=0.5, session=s)
    FRAME.dp.count(eps=0.5, session=s)
    assert s.spent == 1


def test_a_draw_that_was_dropped_is_never_seen(monkeypatch):
    """Ctrl-C after the noise was drawn: the answer is kept, and the interrupt comes after it."""
    from dpframe import pipeline

    drawn = []
    noisy = pipeline._noisy

    def spy(plan, exact):
        out = noisy(plan, exact)
        drawn.append(out[0][0].copy())
        signal.raise_signal(signal.SIGINT)
        return out

    monkeypatch.setattr(pipeline, "_noisy", spy)
    s = dp.Session(eps=1)
    with pytest.raises(KeyboardInterrupt):
        FRAME.dp.count(eps=0.5, session=s)
    assert len(drawn) == 1
    assert s.last.value == drawn[0][0]
    assert s._owed == {}


def test_other_threads_are_left_alone():
    before = signal.getsignal(signal.SIGINT)
    answers = []

    def work():
        with interrupts.uninterrupted():
            answers.append(signal.getsignal(signal.SIGINT) is before)

    t = threading.Thread(target=work)
    t.start()
    t.join()
    assert answers == [True]


def test_ctrl_c_waits_for_the_end_of_the_block_and_no_longer():
    steps = []
    with pytest.raises(KeyboardInterrupt), interrupts.uninterrupted():  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        steps.append("goes on")
    assert steps == ["goes on"]
    with pytest.raises(KeyboardInterrupt), interrupts.uninterrupted():  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        with interrupts.interruptible():
            steps.append("not reached")
    assert steps == ["goes on"]


def test_a_handler_of_the_programs_own_is_called():
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    try:
        with interrupts.uninterrupted():
            signal.raise_signal(signal.SIGINT)
            assert heard == []
        assert heard == [1]
    finally:
        signal.signal(signal.SIGINT, before)


# ---- progress ----


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_sees_a_line_and_a_pipe_sees_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    budget_plan().run()
    assert "1/3 n" in sys.stderr.getvalue()
    assert "3/3 by g" in sys.stderr.getvalue()
    assert sys.stderr.getvalue().endswith("\r\x1b[K")
    for quiet in ({"progress": False}, {"progress": lambda name: None}):
        monkeypatch.setattr(sys, "stderr", Terminal())
        budget_plan().run(**quiet)
        assert sys.stderr.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    budget_plan().run()
    assert sys.stderr.getvalue() == ""


def test_progress_is_turned_off_by_the_environment(monkeypatch):
    monkeypatch.setenv("DPFRAME_PROGRESS", "0")
    monkeypatch.setattr(sys, "stderr", Terminal())
    budget_plan().run()
    assert sys.stderr.getvalue() == ""


def test_a_notebook_sees_a_bar_that_is_updated(monkeypatch):
    pages = []
    display = types.ModuleType("IPython.display")
    display.HTML = lambda page: page
    display.display = lambda page, display_id: types.SimpleNamespace(update=pages.append)
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    budget_plan().run()
    assert len(pages) == 4
    assert "2 of 3, mean" in pages[1]
    assert "3 of 3 done" in pages[-1]


def test_a_function_is_called_with_every_name():
    names = []
    budget_plan().run(progress=names.append)
    assert names == list(QUERIES)
    with pytest.raises(TypeError, match="progress= takes True, False or a function"):
        budget_plan().run(progress=3)


def test_an_interrupt_leaves_a_clean_line(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    progress = Progress(["a", "b"])
    progress.show("a")
    progress.close(1)
    assert sys.stderr.getvalue().endswith("\r\x1b[K")
