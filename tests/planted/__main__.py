"""Plant every fault in a copy of the package, one at a time, and run tests until one fails: ``make planted``."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from planted.fault import Fault
from planted.faults import FAULTS

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 600  # seconds that the tests of one fault may take
_FAILED = re.compile(r"^FAILED (?:tests/)?(.+?)(?: - .*)?$", re.MULTILINE)
_PASSED = re.compile(r"(\d+) passed")


@dataclass(frozen=True)
class Outcome:
    """Which test found a fault (None: no test), what was said instead, and the seconds it took."""

    fault: str
    caught_by: str | None
    said: str
    seconds: float


def copy_of_the_package(folder: Path) -> Path:
    """A copy of everything that tests need, in ``folder``."""
    for name in ("dpframe", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "conftest.py"):
        shutil.copy(ROOT / name, folder)
    return folder


def look_for(fault: Fault, copy: Path) -> Outcome:
    """Plant ``fault`` in the copy, run its tests until one fails, and heal the copy."""
    path = copy / "dpframe" / fault.file
    healthy = path.read_text()
    path.write_text(fault.planted_in(healthy))
    start = time.perf_counter()
    try:
        code, said = run_tests(fault.tests, copy)
    finally:
        path.write_text(healthy)
    found = _FAILED.search(said) if code == 1 else None
    passed = _PASSED.search(said)
    last = (
        f"{passed[0]}, nothing failed" if code == 0 and passed else f"pytest ended with {code}: {said[-300:]}"
    )
    return Outcome(
        fault.name, found[1] if found else None, "" if found else last, time.perf_counter() - start
    )


def run_tests(files: Sequence[str], copy: Path) -> tuple[int | None, str]:
    """(exit code, output) of pytest on some files of the copy; None for one that took too long."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-rf", "--tb=no", "-p", "no:cacheprovider", "-o"]
    command += ["addopts=--strict-markers", *(f"tests/{f}" for f in files)]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        return None, f"no end within {PATIENCE} s"
    return done.returncode, done.stdout + done.stderr


def look_for_all(faults: Sequence[Fault], jobs: int) -> list[Outcome]:
    """Every fault in turn, in as many copies as there are jobs; a line for each is printed."""
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(jobs) as pool:
        free: SimpleQueue[Path] = SimpleQueue()
        for i in range(jobs):
            free.put(copy_of_the_package(Path(place) / str(i)))

        def one(fault: Fault) -> Outcome:
            copy = free.get()
            try:
                return look_for(fault, copy)
            finally:
                free.put(copy)

        out = []
        for outcome in pool.map(one, faults):
            found = outcome.caught_by or f"NOT CAUGHT: {outcome.said}"
            print(f"{outcome.fault:<52} {found} ({outcome.seconds:.0f} s)", flush=True)
            out.append(outcome)
        return out


def control(outcomes: Sequence[Outcome]) -> Outcome:
    """The tests that found something, on a copy in which nothing is planted: they must pass, or prove nothing."""
    tests = sorted({o.caught_by for o in outcomes if o.caught_by})
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        code, said = run_tests(tests, copy_of_the_package(Path(place) / "0"))
    passed = _PASSED.search(said)
    fine = code == 0 and passed is not None
    last = f"nothing: {passed[0]}" if fine and passed else said[-500:]
    return Outcome("nothing planted", None if fine else "a test", last, time.perf_counter() - start)


def main() -> int:
    parser = argparse.ArgumentParser(prog="planted", description=__doc__)
    parser.add_argument("names", nargs="*", help="faults whose name holds one of these words (default: all)")
    parser.add_argument("--jobs", type=int, default=2)
    a = parser.parse_args()
    faults = [f for f in FAULTS if not a.names or any(n in f.name for n in a.names)]
    print(f"{'fault':<52} found by")
    outcomes = look_for_all(faults, a.jobs)
    nothing = control(outcomes)
    print(f"{nothing.fault:<52} {nothing.said} ({nothing.seconds:.0f} s)")
    healthy = nothing.caught_by is None
    missed = [o for o in outcomes if o.caught_by is None]
    print(f"{len(outcomes)} faults planted, {len(outcomes) - len(missed)} caught")
    return 0 if healthy and not missed else 1


if __name__ == "__main__":
    sys.exit(main())
