"""Threads and processes: one budget, granted once, and never a second one."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import math
import multiprocessing
import os
import pickle
import sys
import threading
import warnings

import pandas as pd
import polars as pl
import pytest
from ledger_tools import ForkServer

import dpframe as dp
from dpframe.session import current

DF = pl.DataFrame({"x": [1.0, 2.0, 3.0], "g": ["a", "b", "a"], "s": ["u", "v", "w"]})

quiet = pytest.mark.usefixtures("quiet")


# ---- threads: case 47 ----


def race(n: int, call) -> list:
    barrier, outcomes = threading.Barrier(n), []

    def run():
        barrier.wait()
        with warnings.catch_warnings():
            try:
                outcomes.append(call())
            except dp.DPError as e:
                outcomes.append(e)

    threads = [threading.Thread(target=run) for _ in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return outcomes


@quiet
@pytest.mark.parametrize("how", ["session=", "use", "nested"])
@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_32_threads_get_exactly_ten_tenths(how, library):
    frame = DF if library == "polars" else DF.to_pandas()
    for _ in range(3):
        s = dp.Session(eps=1)
        if how == "session=":
            outcomes = race(32, lambda s=s: frame.dp.count(eps=0.1, session=s))
        elif how == "use":
            s.use()
            outcomes = race(32, lambda: frame.dp.count(eps=0.1))
        else:
            outer = dp.Session(eps=1).use()
            with s:
                outcomes = race(32, lambda s=s: frame.dp.count(eps=0.1, session=s))
            assert outer.spent == 1
            outer.close()
        refused = [x for x in outcomes if isinstance(x, dp.BudgetExceeded)]
        assert len(refused) == 22
        assert sum(isinstance(x, int) for x in outcomes) == 10
        assert s.spent == 1
        assert s.report().height == len(s.releases) == 10
        s.close()


@quiet
def test_a_thread_does_not_inherit_a_with_block_and_is_told():
    with dp.Session(eps=1) as s:
        (outcome,) = race(1, lambda: DF.dp.count(eps=0.1))
        assert isinstance(outcome, dp.NoSession)
        assert s.spent == 0


# ---- no second budget ----


@pytest.mark.parametrize(
    "way",
    [
        copy.copy,
        copy.deepcopy,
        pickle.dumps,
        lambda s: pickle.dumps({"s": s}, protocol=2),
        lambda s: copy.deepcopy([s]),
    ],
    ids=["copy", "deepcopy", "pickle", "pickle in a dict", "deepcopy in a list"],
)
def test_sessions_refuse_to_be_copied(way):
    with pytest.raises(TypeError, match="budget twice"):
        way(dp.Session(eps=1))


def in_child(work) -> str:
    """Run ``work`` in a forked child and return what it says."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            text = str(work())
        except BaseException as e:
            text = f"{type(e).__name__}: {e}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as f:
        text = f.read()
    os.waitpid(pid, 0)
    return text


ONE = pd.DataFrame({"x": [1.0]})

needs_fork = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="a forked child is answered on Linux only"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with contextlib.closing(ForkServer(__name__, tmp_path_factory.mktemp("forks"))) as made:
        yield made


def fresh(test):
    """Run a test in a process in which no engine has worked: a child of pytest's own would be refused."""
    alone = f"alone_{test.__name__}"
    globals()[alone] = test  # for the server to find

    @functools.wraps(test)
    def run(server, **given):
        started = server.start(alone, *given.values())
        _, wrong = started.communicate()
        assert started.returncode == 0, wrong

    asks = inspect.Parameter("server", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__signature__ = inspect.Signature([asks, *inspect.signature(test).parameters.values()])
    return run


@needs_fork
@quiet
@pytest.mark.parametrize("how", ["session=", "with", "use"])
@fresh
def test_a_forked_child_can_not_spend_the_parents_budget(how):
    s = dp.Session(eps=1)
    if how == "session=":
        told = in_child(lambda: ONE.dp.count(eps=0.1, session=s))
    elif how == "with":
        with s:
            told = in_child(lambda: ONE.dp.count(eps=0.1))
    else:
        s.use()
        told = in_child(lambda: ONE.dp.count(eps=0.1))
    assert told.startswith("NoSession")
    assert "process" in told
    assert s.spent == 0


@needs_fork
@quiet
@fresh
def test_a_forked_child_may_open_a_session_of_its_own():
    def own():
        with dp.Session(eps=1) as mine:
            ONE.dp.count(eps=0.1)
        return float(mine.spent)

    assert in_child(own) == "0.1"


@needs_fork
@quiet
@fresh
def test_what_the_refusal_in_a_forked_child_advises_works():
    """Forked within a block, the child opens a session with its own budget, as the hint says."""

    def own():
        with dp.Session(eps=1) as mine:
            ONE.dp.count(eps=0.1)
        return float(mine.spent)

    with dp.Session(eps=1) as s:
        assert in_child(own) == "0.1"
    assert s.spent == 0


@needs_fork
@quiet
@fresh
def test_a_child_forked_while_a_lock_is_held_does_not_hang():
    with current.lock:
        told = in_child(lambda: float(ONE.dp.count(eps=0.1, session=dp.Session(eps=1)) < math.inf))
    assert told == "1.0"


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@quiet
@fresh
def test_worker_processes_are_refused_the_parents_session():
    """multiprocessing with fork: the job author passes the session along and is told."""
    s = dp.Session(eps=1)
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()

    def work():
        try:
            ONE.dp.count(eps=0.1, session=s)
        except dp.NoSession as e:
            answers.put(str(e))

    workers = [context.Process(target=work) for _ in range(3)]
    for w in workers:
        w.start()
    told = [answers.get() for _ in workers]
    for w in workers:
        w.join()
    assert all("own budget" in t for t in told)
    assert s.spent == 0


@quiet
def test_a_forked_child_cannot_split_a_budget():
    s = dp.Session(eps=2)
    s._pid += 1  # as in a child
    with pytest.raises(dp.NoSession, match="another process"):
        s.split(2)


def test_nobody_gets_in_between_checking_and_recording(monkeypatch):
    """While a charge is recorded, another thread can't begin one: it would be checked against the old sum."""
    from dpframe.session import charging

    entered = []
    record = charging._record

    def watched(*args):
        def knock():
            got = current.lock.acquire(blocking=False)
            entered.append(got)
            if got:
                current.lock.release()

        other = threading.Thread(target=knock)
        other.start()
        other.join()
        return record(*args)

    monkeypatch.setattr(charging, "_record", watched)
    with dp.Session(eps=1) as s:
        pl.DataFrame({"x": [1]}).dp.count(eps=0.5)
    assert s.spent == 0.5
    assert entered == [False]
