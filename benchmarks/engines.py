"""Speed and memory of every engine beside the plain computation in the engine's own language.

    python benchmarks/engines.py ratio     CPU and wall time, private / plain, 10 M rows
    python benchmarks/engines.py growth    time per row at 1, 10 and 100 M rows
    python benchmarks/engines.py groups    10 M rows in 100, 10,000 and 1,000,000 groups
    python benchmarks/engines.py big       peak memory over 20 GB of parquet files
    ... --engines polars,duckdb --rows 100000 --repeat 1   and so on: smaller or other runs (--help)

Prints a markdown table; exits with 1 when a target is missed. Every engine runs in a process of its own,
and the data is written to a temporary folder first.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import engine_frames as frames
from measure import Row, Times, peak, race, tree_cpu

RATIO, BOUNDING, GROWTH, BIG_GB = 1.5, 1.3, 1.2, 4.0
GROWING = ("mean", "groups", "units")
BIG = ("groups", "units", "units, 2 groups")
Options = argparse.Namespace


def ratio(o: Options, folder: Path) -> Iterator[Row]:
    """Private beside plain, every question."""
    rows = o.rows[0]
    files = frames.write(folder, rows)
    for engine in o.engines:
        for got in child("times", engine, files, list(frames.QUESTIONS), o.repeat, frames.GROUPS):
            limit = BOUNDING if got["question"].startswith("units") else RATIO
            yield from _ratios("ratio", f"{engine}, {got['question']}", got, limit)


def growth(o: Options, folder: Path) -> Iterator[Row]:
    """CPU time per row on more and more rows."""
    files = frames.write(folder, max(o.rows))
    for engine in o.engines:
        per_row: dict[str, list[tuple[float, float]]] = {}
        for rows in o.rows:
            some = files if rows == max(o.rows) else frames.write(folder / str(rows), rows)
            for got in child("times", engine, some, list(GROWING), o.repeat, frames.GROUPS):
                took = [1e9 * got[side][0] / rows for side in ("private", "plain")]
                per_row.setdefault(got["question"], []).append((took[0], took[1]))
        for question, took in per_row.items():
            rise, plain = (took[-1][i] / took[0][i] for i in (0, 1))
            note = (
                f"{_list([t[0] for t in took])} ns a row; plain {_list([t[1] for t in took])}, {plain:.2f} ×"
            )
            yield Row("growth", f"{engine}, {question}, last / first CPU a row", rise, "×", GROWTH, note=note)


def groups(o: Options, folder: Path) -> Iterator[Row]:
    """Private beside plain as the number of listed groups grows."""
    for k in o.groups:
        files = frames.write(folder / str(k), o.rows[0], k)
        for engine in o.engines:
            for got in child("times", engine, files, ["groups"], o.repeat, k):
                yield from _ratios("groups", f"{engine}, {k:,} groups", got, RATIO)


def big(o: Options, folder: Path) -> Iterator[Row]:
    """Peak memory of aggregating many files."""
    size = round(o.gigabytes * 1e9)
    files = frames.links(folder, size, o.rows[0], o.rows[0] // 4)
    logical = len(files) * Path(files[0]).stat().st_size / 1e9
    for engine in o.engines:
        for question in BIG:
            for got in child("memory", engine, files, question, o.stop_at):
                note = (
                    f"{'stopped: needs more; ' * got['stopped']}{logical:.1f} GB, {len(files) * o.rows[0] / 1e6:,.0f} M rows; before the question"
                    f" {got['before']:.2f} GB; {got['wall']:.0f} s, {got['cpu']:.0f} s CPU"
                )
                yield Row("big", f"{engine}, {question}, peak", got["peak"], "GB", BIG_GB, note=note)


def _ratios(name: str, what: str, got: dict[str, Any], limit: float) -> Iterator[Row]:
    mine, theirs = Times(*got["private"]), Times(*got["plain"])
    how = f" ({got['how']})" if got["how"] else ""
    note = f"{mine.cpu:.3f} s / {theirs.cpu:.3f} s CPU, {mine.wall:.3f} s / {theirs.wall:.3f} s wall{how}"
    yield Row(name, f"{what}, CPU private / plain", mine.cpu / theirs.cpu, "×", limit, note=note)
    yield Row(name, f"{what}, wall", mine.wall / theirs.wall, "×")


def _list(values: list[float]) -> str:
    return ", ".join(f"{v:.1f}" for v in values)


# ---- in a process of its own ----


def child(what: str, engine: str, files: list[str], *rest: Any) -> list[dict[str, Any]]:
    """Run a measurement in a fresh process; what it found."""
    command = [sys.executable, __file__, "--child"]
    asked = json.dumps([what, engine, files, *rest])
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{what} of {engine} failed:\n{done.stderr[-4000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def times(
    engine: str, files: list[str], questions: list[str], repeat: int, k: int
) -> Iterator[dict[str, Any]]:
    """Best times of the private question and of the fastest plain one."""
    with frames.opened(engine, files) as frame:
        for question in questions:
            plain = frames.plain(engine, frame, question)
            if not plain:
                continue
            best = race({"private": frames.private(frame, question, k), **plain}, repeat, tree_cpu)
            how = min(plain, key=lambda name: best[name].cpu)
            yield {"question": question, "private": best["private"], "plain": best[how], "how": how}


def memory(engine: str, files: list[str], question: str, stop_at: float) -> Iterator[dict[str, Any]]:
    """Peak memory of one question, and what it was before (libraries, and Spark's Java).

    The process ends itself where it needs more than ``stop_at`` GB, so that the machine does not.
    """
    start, asked, before = (0.0, 0.0), threading.Event(), 0.0

    def found() -> dict[str, Any]:
        cpu, wall = tree_cpu() - start[0], time.perf_counter() - start[1]
        return {"peak": peak() / 1e9, "before": before, "cpu": cpu, "wall": wall}

    def check() -> None:
        if peak() / 1e9 > stop_at:
            print(json.dumps(found() | {"stopped": True}), flush=True)
            os._exit(0)

    def watch() -> None:
        while not asked.wait(0.2):
            check()

    with frames.opened(engine, files) as frame:
        ask = frames.private(frame, question)
        before, start = peak() / 1e9, (tree_cpu(), time.perf_counter())
        check()
        threading.Thread(target=watch, daemon=True).start()
        ask()
        asked.set()
        yield found() | {"stopped": False}


# ---- the command ----

COMMANDS: dict[str, Callable[[Options, Path], Iterator[Row]]] = {
    "ratio": ratio,
    "growth": growth,
    "groups": groups,
    "big": big,
}
ROWS = {
    "ratio": [10_000_000],
    "growth": [1_000_000, 10_000_000, 100_000_000],
    "groups": [10_000_000],
    "big": [8_000_000],  # in the one file that repeats
}
ON_FILES = [name for name, (where, _) in frames.ENGINES.items() if where == "files"]


def options(argv: list[str]) -> Options:
    def names(text: str) -> list[str]:
        wrong = [n for n in text.split(",") if n not in frames.ENGINES]
        if wrong:
            raise argparse.ArgumentTypeError(f"no engine {wrong[0]!r}; there are {', '.join(frames.ENGINES)}")
        return text.split(",")

    def numbers(text: str) -> list[int]:
        return [int(n.replace("_", "")) for n in text.split(",")]

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=COMMANDS)
    parser.add_argument("--engines", type=names, help="names with commas between")
    parser.add_argument("--rows", type=numbers, help="rows; for growth several, from small to large")
    parser.add_argument("--groups", type=numbers, default=[100, 10_000, 1_000_000])
    parser.add_argument("--repeat", type=int, default=3, help="rounds of which the best counts")
    parser.add_argument("--gigabytes", type=float, default=20.0, help="size of all files together, for big")
    parser.add_argument("--stop-at", type=float, default=8.0, help="GB at which big gives up")
    parser.add_argument("--folder", type=Path, help="where a temporary folder for the data is made")
    o = parser.parse_args(argv)
    o.rows = o.rows or ROWS[o.what]
    o.engines = o.engines or (["polars-lazy", "duckdb"] if o.what == "big" else [*frames.ENGINES])
    wrong = [e for e in o.engines if o.what == "big" and e not in ON_FILES]
    if wrong:
        parser.error(f"big asks engines that read files ({', '.join(ON_FILES)}), not {wrong[0]}")
    return o


def main(argv: list[str]) -> int:
    o = options(argv)
    for engine in list(o.engines):
        lacks = frames.missing(engine)
        if lacks:
            print(f"{engine} is left out: {lacks}", file=sys.stderr)
            o.engines.remove(engine)
    start, missed = time.perf_counter(), 0
    print("| benchmark | what | measured | target | | |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=o.folder) as folder:
        need = 32e-9 * sum(o.rows) * (len(o.groups) if o.what == "groups" else 1)
        free = shutil.disk_usage(folder).free / 1e9
        if free < need + 1:
            print(f"{need + 1:.1f} GB are needed in {folder}, {free:.1f} are free.", file=sys.stderr)
            return 2
        for row in COMMANDS[o.what](o, Path(folder)):
            missed += row.met is False
            print(row.line(), flush=True)
    print(f"\n{missed} missed; {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:] == ["--child"]:
        asked: list[Any] = json.load(sys.stdin)
        for found in {"times": times, "memory": memory}[asked[0]](*asked[1:]):
            print(json.dumps(found), flush=True)
    else:
        sys.exit(main(sys.argv[1:]))
