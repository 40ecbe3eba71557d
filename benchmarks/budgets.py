"""How fast budgets are charged and read.

    python benchmarks/budgets.py   half a minute

Prints a markdown table. Durable charges end with the disk; the machine's disk decides how fast they are.
"""

from __future__ import annotations

import multiprocessing
import pathlib
import tempfile
import time
import warnings
from collections.abc import Callable
from fractions import Fraction

import polars as pl

import dpframe as dp
from dpframe.accounting.claims import Claim
from dpframe.accounting.events import Event
from dpframe.accounting.filter import ACCOUNTANTS, State
from dpframe.accounting.policy import Charge, Details, Policy
from dpframe.accounting.report import report
from dpframe.mechanisms.base import Target

FRAME = pl.DataFrame({"x": [1.0, 2.0] * 500})


def claim() -> Claim:
    event = dp.mechanism("laplace").calibrate(Fraction(1), 1, Target(Fraction(1, 1000))).event
    details = Details("", "", "")
    return Claim(
        Charge(event, "count()", "laplace", Policy(), None, lambda: details), None, None, *details, True
    )


def seconds(call: Callable[[], object], times: int = 1) -> list[float]:
    took = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        took.append(time.perf_counter() - start)
    return sorted(took)


def writer(path: pathlib.Path, times: int, said: multiprocessing.SimpleQueue) -> None:  # type: ignore[type-arg]
    ledger = dp.Ledger(path)
    said.put(seconds(lambda: ledger.reserve(claim()), times))


def main() -> None:
    warnings.simplefilter("ignore")
    rows: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "budget.db"
        ledger = dp.Ledger.create(path, eps=10**6)
        took = seconds(lambda: ledger.reserve(claim()), 300)
        rows.append(("durable charges a second, one writer", f"{300 / sum(took):.0f}"))
        said: multiprocessing.SimpleQueue[list[float]] = multiprocessing.SimpleQueue()
        writers = [multiprocessing.Process(target=writer, args=(path, 150, said)) for _ in range(4)]
        start = time.perf_counter()
        for w in writers:
            w.start()
        shared = sorted(t for _ in writers for t in said.get())
        rows.append(("the same, 4 writers together", f"{600 / (time.perf_counter() - start):.0f}"))
        rows.append(
            ("one charge of 4 writers: median, p99", f"{shared[300] * 1e3:.0f}, {shared[594] * 1e3:.0f} ms")
        )
        with ledger.charging() as t:
            for _ in range(100):
                t.reserve(claim())
        rows.append(("what is spent, 1,000 charges", f"{seconds(ledger.state, 9)[4] * 1e3:.2f} ms"))
        rows.append(
            ("opening, 1,000 charges", f"{seconds(lambda: dp.Ledger(path).close(), 3)[1] * 1e3:.0f} ms")
        )
        with dp.Session(ledger=path) as s:
            call = seconds(lambda: FRAME.dp.count(eps=0.001, session=s), 50)[25]
        with dp.Session(eps=1) as s:
            plain = seconds(lambda: FRAME.dp.count(eps=0.001, session=s), 50)[25]
        rows.append(
            ("one count in a session on a ledger, in memory", f"{call * 1e3:.1f}, {plain * 1e3:.1f} ms")
        )
    tiny = Fraction(1, 10**7)
    gauss = [
        dp.mechanism("gaussian").calibrate(Fraction(3), 1, Target(Fraction(i, 7), tiny)).event for i in (1, 2)
    ]
    pure = [dp.mechanism("laplace").calibrate(Fraction(3), 1, Target(Fraction(i, 11))).event for i in (1, 2)]
    for name in ACCOUNTANTS:
        events: list[Event] = (gauss * 2 if name == "gdp" else gauss + pure) * 250
        budget = dp.Session(eps=10**6, delta=0.01, delta_calls=0.009, accountant=name)._budget
        budget.spent(State())
        took = seconds(lambda b=budget, e=events: b.spent(b.state_of(e)), 7)  # type: ignore[misc]
        rows.append((f"state and `spent` of 1,000 events, {name}", f"{took[0] * 1e3:.1f} ms"))
    took = seconds(lambda: report((gauss[:1] + pure[:1]) * 500, "pld", Fraction(1, 10**6)), 3)
    rows.append(("PLD report of 1,000 events of two kinds", f"{took[0]:.2f} s"))
    print("| what | measured |\n|---|---|")
    for what, value in rows:
        print(f"| {what} | {value} |")


if __name__ == "__main__":
    main()
