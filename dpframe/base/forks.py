"""Which forked children can be answered: the threads of engines do not live on in a child.

A fork copies a process's memory, and of its threads only the one that forks. What another thread was to do in the
child is never done, and whoever waits for it waits for ever. Polars starts its threads at its first work, and then
keeps them. So a child is refused, as are its own children, when the process that it was forked from had, at the
fork, threads of Polars, a pool of Dask, or a connection to Spark, whoever started them. A child of a process in
which they had not begun starts its own, and is answered; so is a process that was spawned.

Only Linux shows the names of threads. On other systems every forked child is refused. Where dpframe was not
imported before the fork, nobody looked, and nothing is refused.

Privacy: a process's threads decide, and no cell. What is refused costs nothing: a wait without end after the charge
would have cost its price.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator

from dpframe.errors import Call, InputError

_TASKS = "/proc/self/task"
_RUNTIMES = ("tokio-rt-worker", "async-executor-")  # of Polars, beside its pool
_IDLE = "polars-ooc"  # started with the import; nothing waits for it
_LOOKS, _PAUSE = 200, 0.005  # one second in all, for threads that have just been started

_here = threading.local()  # what the thread that forks found: the only one that is there in the child
_settled: set[tuple[int, str]] = set()  # threads of others, by number and start time
_lost = False  # in this process


def check_fork() -> None:
    """Refuse a forked child in which an engine would wait for threads that are not there.

    Raises
    ------
    InputError
        Nothing was spent.
    """
    if _lost:
        raise InputError(
            "This process was forked from one in which an engine's threads (Polars', say) were running; they are not in"
            " a forked child, and an answer would be waited for without end.",
            hint=(
                "start the process with ",
                Call("multiprocessing.get_context", "spawn"),
                ", or fork before the first question and the first work of Polars",
            ),
        )


def _tasks() -> Iterator[tuple[tuple[int, str], str, str]]:
    """Number and start time, name, and state of each thread of this process."""
    for task in os.listdir(_TASKS):
        try:
            with open(f"{_TASKS}/{task}/stat", encoding="utf-8", errors="replace") as f:
                before, _, after = f.read().rpartition(")")
        except OSError:  # it has ended
            continue
        state, *rest = after.split()
        yield (int(task), rest[18]), before.partition("(")[2], state


def _polars_works() -> bool:
    """Whether threads of Polars run. A thread has its name a moment after its start, so young ones are waited for."""
    pool = f"{os.environ.get('POLARS_THREAD_NAME', 'polars')}-"[:15]
    pythons = {t.native_id for t in threading.enumerate()}
    asleep: set[tuple[int, str]] = set()
    young: set[tuple[int, str]] = set()
    for _ in range(_LOOKS):
        young = set()
        for thread, name, state in _tasks():
            if thread[0] in pythons or name.startswith(_IDLE):
                continue
            if name.startswith((pool, *_RUNTIMES)):
                return True
            if thread in _settled:
                continue
            if state == "S" and thread in asleep:
                _settled.add(thread)
                continue
            if state == "S":
                asleep.add(thread)
            young.add(thread)
        if not young:
            return False
        time.sleep(_PAUSE)
    _settled.update(young)
    return False


def _others_work() -> bool:
    """Whether Dask has a pool, or Spark a connection."""
    dask, spark = sys.modules.get("dask.threaded"), sys.modules.get("pyspark")
    context = getattr(spark, "SparkContext", None)
    return bool(
        getattr(dask, "default_pool", None) is not None
        or getattr(dask, "pools", None)
        or getattr(context, "_active_spark_context", None) is not None
    )


def _before() -> None:
    _here.works = True  # until it is known
    _here.works = not os.path.isdir(_TASKS) or _others_work() or _polars_works()


def _in_parent() -> None:
    _here.works = True


def _in_child() -> None:
    global _lost
    _lost = _lost or getattr(_here, "works", True)
    _here.works = True


def watch() -> None:
    """Look at the threads of this process whenever it forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
