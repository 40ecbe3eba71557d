"""Forked children: answered where engines work, refused at no cost where their threads are gone, and never hung.

Every trial is a process of its own (a fork of one that has imported this file and done nothing), and every child in
it has an alarm.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import sys
import threading
import time

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from ledger_tools import Child, ForkServer, claim

import dpframe as dp
from dpframe.base import forks

try:  # before the fork, or the child would import it
    import dask.dataframe as dd
except ImportError:
    dd = None

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"),
    reason="threads have names on Linux; elsewhere every fork is refused",
)

ALARM = (
    200  # seconds after which a child is taken to hang: a busy machine needs a tenth of it for a new Python
)
CELLS = {"g": ["a", "b", "a"], "x": [1.0, 2.0, 3.0]}
FRAMES = {
    "polars": lambda: pl.DataFrame(CELLS),
    "lazy": lambda: pl.LazyFrame(CELLS),
    "pandas": lambda: pd.DataFrame(CELLS),
    "arrow": lambda: pa.table(CELLS),
}


def answer(frame) -> list[int]:
    with dp.Session(eps=1e7):
        table = dp.frame(frame).groupby("g", keys=["a", "b"]).dp_agg(n=dp.count(), eps=1e6)
    return [round(n) for n in table["n"]]


def scan(folder):
    path = f"{folder}/x.parquet"
    pd.DataFrame(CELLS).to_parquet(path)
    pl.scan_parquet(path).collect_schema()


WORK = {
    "a question": lambda folder: answer(FRAMES["pandas"]()),
    "a filter": lambda folder: FRAMES["polars"]().filter(pl.col("x") > 1),
    "a query": lambda folder: FRAMES["lazy"]().filter(pl.col("x") > 1).collect(),
    "a stream": lambda folder: FRAMES["lazy"]().filter(pl.col("x") > 1).collect(engine="streaming"),
    "the number of threads": lambda folder: pl.thread_pool_size(),
    "a file's schema": scan,
}
if dd is not None:
    WORK["Dask"] = lambda folder: dd.from_pandas(FRAMES["pandas"](), npartitions=2).x.sum().compute()


def said_by(work) -> list:
    """What a forked child says; it must end by itself."""

    def run(say):
        signal.alarm(ALARM)
        work(say)

    child = Child(run)
    said = child.end()
    assert child.code == 0, child.code
    return said


def attempt(say, work) -> None:
    try:
        say("answered", work())
    except dp.DPError as e:
        say(type(e).__name__, str(e))


def asked_after(name, folder) -> None:
    """Work, fork, ask: what each question gets in the child and in the child's child, and what was spent."""
    dp.Ledger.create(f"{folder}/budget.db", eps=5).close()
    s = dp.Session(ledger=f"{folder}/budget.db")
    opened = dp.frame(FRAMES["polars"]())
    planned = dp.frame(FRAMES["pandas"]()).plan.count(eps=1, session=s)
    WORK[name](folder)

    def ask_all(say):
        for make in FRAMES.values():
            attempt(say, lambda make=make: answer(make()))
        attempt(say, lambda: int(opened.count(eps=1, session=s)))
        attempt(say, lambda: int(planned.release().value))
        attempt(say, lambda: len(opened.partition_by("g", keys=["a"], eps=1, session=s)))
        say("spent", float(s.spent.eps))

    def child(say):
        ask_all(say)
        for line in said_by(ask_all):
            say(*line)

    print(json.dumps(said_by(child)))


def asked_before() -> None:
    """Fork and ask, with nothing done before: the child, the child of an idle child, that of one that worked."""

    def child(say):
        idle = said_by(lambda s: attempt(s, lambda: answer(FRAMES["polars"]())))
        mine = [answer(make()) for make in FRAMES.values()]
        worked = said_by(lambda s: attempt(s, lambda: answer(FRAMES["polars"]())))
        say(idle, mine, worked)

    print(json.dumps(said_by(child)))


def in_spawned(pipe) -> None:
    signal.alarm(ALARM)
    pipe.send(answer(FRAMES["polars"]()))


def asked_in_spawned() -> None:
    WORK["a filter"](None)
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=in_spawned, args=(theirs,))
    process.start()
    print(json.dumps(mine.recv() if mine.poll(ALARM) else None))
    process.join(ALARM)


def charged_alone(folder) -> None:
    """A ledger needs no engine: a child whose engines are gone still charges and reads it."""
    WORK["a filter"](None)
    ledger = dp.Ledger.create(f"{folder}/budget.db", eps=5)

    def child(say):
        ledger.store(ledger.reserve(claim(0.5)), b"x")
        say(len(ledger.entries()), float(dp.Session(ledger=ledger).spent.eps))

    print(json.dumps(said_by(child)))


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    with contextlib.closing(ForkServer(__name__, tmp_path_factory.mktemp("forks"))) as server:

        def run(name, *arguments):
            started = server.start(name, *arguments)
            out, err = started.communicate()
            assert started.returncode == 0, err
            return json.loads(out)

        yield run


@pytest.mark.parametrize("name", WORK)
def test_a_child_forked_after_an_engines_work_is_refused_and_nothing_is_spent(trial, tmp_path, name):
    said = trial("asked_after", name, str(tmp_path))
    refused, spent = [s for s in said if s[0] != "spent"], [s[1] for s in said if s[0] == "spent"]
    assert len(refused) == 2 * (len(FRAMES) + 3)
    assert {kind for kind, _ in refused} == {"InputError"}
    assert all("multiprocessing.get_context('spawn')" in text for _, text in refused)
    assert spent == [0.0, 0.0]


def test_a_child_forked_before_any_work_is_answered(trial):
    ((idle, mine, worked),) = trial("asked_before")
    assert idle == [["answered", [2, 1]]]
    assert mine == [[2, 1]] * len(FRAMES)
    assert [kind for kind, _ in worked] == ["InputError"]


def test_a_spawned_process_is_answered(trial):
    assert trial("asked_in_spawned") == [2, 1]


def test_a_child_without_engines_still_charges_a_ledger(trial, tmp_path):
    assert trial("charged_alone", str(tmp_path)) == [[1, 0.5]]


@pytest.mark.parametrize("looked", [True, False], ids=["no names", "no look before the fork"])
def test_where_nothing_is_known_of_the_threads_a_child_is_refused(monkeypatch, looked):
    monkeypatch.setattr(forks, "_here", threading.local())
    monkeypatch.setattr(forks, "_lost", False)
    monkeypatch.setattr(forks, "_TASKS", "/nowhere")
    door = dp.frame(pl.DataFrame(CELLS))
    if looked:
        forks._before()
    forks._in_child()
    s = dp.Session(eps=1)
    with pytest.raises(dp.InputError, match="spawn"):
        door.count(eps=1, session=s)
    assert s.spent == 0


def test_a_connection_to_spark_is_lost_in_a_child(monkeypatch):
    class Spark:
        class SparkContext:
            _active_spark_context = None

    monkeypatch.setitem(sys.modules, "dask.threaded", None)
    monkeypatch.setitem(sys.modules, "pyspark", Spark)
    assert not forks._others_work()
    Spark.SparkContext._active_spark_context = object()
    assert forks._others_work()


@pytest.mark.parametrize("prefix", [None, "swimmers", "a-very-long-name-of-threads"])
def test_a_young_thread_is_waited_for_until_it_has_its_name(monkeypatch, prefix):
    """Threads of the pool show the name of the process until they have run."""
    if prefix is not None:
        monkeypatch.setenv("POLARS_THREAD_NAME", prefix)
    looks = iter([("python", "R"), ("python", "S"), (f"{prefix or 'polars'}-3"[:15], "S")])
    monkeypatch.setattr(forks, "_settled", set())
    monkeypatch.setattr(forks, "_tasks", lambda: iter([((0, "7"), *next(looks))]))
    assert forks._polars_works()


def test_threads_of_others_hold_up_one_fork(monkeypatch):
    """Threads that sleep for two looks, or are busy for all of them, are no engine's, and are not looked at again."""
    looks = []

    def tasks():
        looks.append(1)
        return iter([((0, "7"), "python", "S"), ((0, "8"), "blas", "R"), ((0, "9"), "polars-ooc-clea", "R")])

    monkeypatch.setattr(forks, "_settled", set())
    monkeypatch.setattr(forks, "_PAUSE", 0)
    monkeypatch.setattr(forks, "_tasks", tasks)
    assert not forks._polars_works()
    assert forks._settled == {(0, "7"), (0, "8")}
    assert len(looks) == forks._LOOKS
    assert not forks._polars_works()
    assert len(looks) == forks._LOOKS + 1


def test_threads_are_read_as_linux_writes_them():
    """A name may hold brackets and blanks."""
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        with open(f"/proc/self/task/{thread.native_id}/comm", "w") as f:
            f.write("a) R (b")
        found = {}
        for _ in range(1_000):  # until the thread has come to its wait
            found = {number[0]: (name, state) for number, name, state in forks._tasks()}
            if found[thread.native_id][1] == "S":
                break
            time.sleep(0.05)
    finally:
        done.set()
        thread.join()
    assert found[thread.native_id] == ("a) R (b", "S")
    assert os.getpid() in found
