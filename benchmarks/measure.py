"""How benchmarks measure: CPU time side by side, medians of short calls, peak memory in a process of its own."""

from __future__ import annotations

import contextlib
import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

Call = Callable[[], object]
HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. ``limit`` is None where there is no target; ``least`` turns it round."""

    name: str
    what: str
    measured: float
    unit: str
    limit: float | None = None
    least: bool = False
    note: str = ""

    @property
    def met(self) -> bool | None:
        if self.limit is None:
            return None
        return self.measured >= self.limit if self.least else self.measured <= self.limit

    def line(self) -> str:
        """The row as markdown."""
        sign = "" if self.limit is None else f"{'≥' if self.least else '≤'} {self.limit:g} {self.unit}"
        verdict = {True: "met", False: "missed", None: ""}[self.met]
        return f"| {self.name} | {self.what} | {self.measured:.2f} {self.unit} | {sign} | {verdict} | {self.note} |"


class Times(NamedTuple):
    cpu: float
    wall: float


def cpu(call: Call) -> float:
    """CPU seconds of all threads of this process during one call."""
    gc.collect()
    start = time.process_time()
    call()
    return time.process_time() - start


def tree_cpu() -> float:
    """CPU seconds so far of this process and of those it has started that live (Spark's Java is one; Linux)."""
    ticks = 0
    for child in children():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            ticks += sum(map(int, _stat(child)[11:13]))
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def children() -> list[int]:
    """The process ids of all living descendants (Linux)."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int(_stat(int(entry.name))[1])
    found, new = [], [os.getpid()]
    while new:
        new = [p for p, parent in parents.items() if parent in new]
        found += new
    return found


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat that follow the command's name."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def race(
    calls: Mapping[str, Call], repeat: int, clock: Callable[[], float] = time.process_time
) -> dict[str, Times]:
    """Best CPU and best wall seconds of every call, after one call of each that is not counted.

    Repetitions are interleaved, so that what else runs on the machine meets all of them.
    """
    best = {}
    for call in calls.values():
        call()
    for _ in range(repeat):
        for name, call in calls.items():
            gc.collect()
            start = clock(), time.perf_counter()
            call()
            took = Times(clock() - start[0], time.perf_counter() - start[1])
            least = best.get(name, took)
            best[name] = Times(min(least.cpu, took.cpu), min(least.wall, took.wall))
    return best


def side_by_side(private: Call, plain: Mapping[str, Call], repeat: int = 5) -> tuple[float, float, str]:
    """Best CPU seconds of ``private``, and of the best of several plain formulations, which is named."""
    best = race({"": private, **plain}, repeat)
    fastest = min(plain, key=lambda name: best[name].cpu)
    return best[""].cpu, best[fastest].cpu, fastest


def median_ms(call: Callable[[int], object], batches: int = 5, size: int = 40) -> float:
    """Median wall milliseconds of ``call(i)``: of several batches the quietest one's."""
    medians = []
    for batch in range(batches + 1):  # the first one warms up
        times = []
        for i in range(size):
            start = time.perf_counter()
            call(batch * size + i)
            times.append(time.perf_counter() - start)
        medians.append(statistics.median(times))
    return 1e3 * min(medians[1:])


def in_child(*args: str) -> float:
    """Run ``run.py --child args`` in a fresh process; the number that it prints last."""
    command = [sys.executable, str(HERE / "run.py"), "--child", *args]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def extra_peak(call: Call) -> int:
    """Bytes by which the resident set peaks above where it stood before ``call`` (Linux)."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = _status("VmRSS")
    kept = call()
    after = _status("VmHWM")
    del kept
    return after - before


def peak() -> int:
    """Bytes of the highest resident sets so far of this process and of those it has started that live (Linux)."""
    total = _status("VmHWM")
    for child in children():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            total += _status("VmHWM", child)
    return total


def _status(field: str, pid: int | str = "self") -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/{pid}/status has no {field}")
