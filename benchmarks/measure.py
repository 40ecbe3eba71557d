"""How benchmarks measure: CPU time side by side, medians of short calls, peak memory in a process of its own."""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

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


def cpu(call: Call) -> float:
    """CPU seconds of all threads of this process during one call."""
    gc.collect()
    start = time.process_time()
    call()
    return time.process_time() - start


def side_by_side(private: Call, plain: Mapping[str, Call], repeat: int = 5) -> tuple[float, float, str]:
    """Best CPU seconds of ``private``, and of the best of several plain formulations, which is named.

    Repetitions are interleaved, so that what else runs on the machine meets all of them.
    """
    calls = {"": private, **plain}
    for call in calls.values():
        call()
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(repeat):
        for name, call in calls.items():
            best[name] = min(best[name], cpu(call))
    fastest = min(plain, key=lambda name: best[name])
    return best[""], best[fastest], fastest


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
    """Bytes of the highest resident set of this process so far (Linux)."""
    return _status("VmHWM")


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")
