"""Speed and memory of dpframe beside the plain query.

    python benchmarks/run.py               everything (about five minutes)
    python benchmarks/run.py polars calls  some of: polars pandas others memory keys units calls sampler row import

Prints a markdown table; exits with 1 when a target is missed.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import count
from typing import Any

from measure import Row, cpu, extra_peak, in_child, median_ms, peak, side_by_side

POLARS_LIMITS = {"sum": 1.6, "mean": 1.6, "100 keys": 1.25, "100,000 keys": 1.5}
PANDAS_LIMITS = {"sum": 0.8, "mean": 0.8, "100 keys": 0.8, "100,000 keys": 1.3}
SMALL = ("polars", "lazy", "pandas")


def polars() -> Iterator[Row]:
    """10 M rows in memory against the fastest plain clipped Polars query."""
    yield from _ratios("polars", POLARS_LIMITS)


def pandas() -> Iterator[Row]:
    """10 M rows in memory against the fastest plain clipped pandas expression."""
    yield from _ratios("pandas", PANDAS_LIMITS)


def _ratios(library: str, limits: dict[str, float]) -> Iterator[Row]:
    import questions

    df = questions.frame(library)
    for question, limit in limits.items():
        ours, theirs, how = side_by_side(questions.private(df, question), questions.plain(df, question))
        note = f"{ours:.3f} s / {theirs:.3f} s CPU ({how})"
        yield Row(library, f"{question}, CPU private / plain", ours / theirs, "×", limit, note=note)


def others() -> Iterator[Row]:
    """The other statistics on 10 M rows in memory against plain Polars."""
    import statistics_asked as asked

    for what, private, plain, limit in asked.asked(asked.frame()):
        ours, theirs, how = side_by_side(private, plain, repeat=3)
        note = f"{ours:.3f} s / {theirs:.3f} s CPU ({how})"
        yield Row("others", f"{what}, CPU private / plain", ours / theirs, "×", limit, note=note)


def memory() -> Iterator[Row]:
    """Extra peak memory of one call on 10 M rows, as a share of the columns it reads."""
    for library in ("polars", "pandas"):
        for question in POLARS_LIMITS:
            share = in_child("memory", library, question)
            yield Row("memory", f"{library}, {question}: extra peak / used columns", share, "×", 1.0)


def keys() -> Iterator[Row]:
    """1 M public keys × 2 aggregates on 2 M rows."""
    yield Row("keys", "1 M keys × 2 aggregates on 2 M rows, CPU", in_child("keys", "cpu"), "s", 3.0)
    size = in_child("keys", "peak")
    yield Row("keys", "the same, peak of the whole process", size, "GB", 1.0)


def units() -> Iterator[Row]:
    """10 M rows, 1 M units, 10 M (unit, group) pairs: bounding and unknown keys."""
    import units as asked

    df = asked.frame()
    for what, most, limit in (("scale-down alone", None, 1.3), ("max_groups=3", 3, 1.15)):
        ours = asked.private(df, most or asked.KEYS)
        mine, theirs, how = side_by_side(ours, asked.plain(df, most), repeat=3)
        note = f"{mine:.2f} s / {theirs:.2f} s CPU ({how})"
        yield Row("units", f"{what}, CPU private / plain", mine / theirs, "×", limit, note=note)
    found, listed, _ = side_by_side(
        asked.private(df, 3, keys=False), {"listed": asked.private(df, 3)}, repeat=3
    )
    yield Row("units", "unknown keys / listed keys, CPU", found / listed, "×", 1.2)
    ask = asked.cities()
    seconds = median_ms(lambda i: ask(), batches=2, size=5) / 1e3
    yield Row("units", "mean by city, persons as unit, 1 M rows", seconds, "s", 0.5)


def calls() -> Iterator[Row]:
    """One call on 20 rows, median wall time; the same question again, and one with a new eps."""
    import dpframe as dp

    unseen = (Fraction(10_000_000 + i, 10_000_000) for i in count())
    for library in SMALL:
        df = _small(library)
        for name, ask in _small_questions(dp).items():
            with dp.Session(eps=10**9):
                again = median_ms(lambda i, ask=ask, df=df: ask(df, 1))
            with dp.Session(eps=10**9):
                new = median_ms(lambda i, ask=ask, df=df: ask(df, next(unseen)))
            yield Row(
                "calls",
                f"{library}, {name}",
                again,
                "ms",
                3.0,
                note=f"{new:.1f} ms with an eps not seen before",
            )


def _small(library: str) -> Any:
    import pandas as pd
    import polars as pl

    data = {"x": [5.0 * i for i in range(20)], "g": ["a", "b", "c", "d"] * 5}
    if library == "pandas":
        return pd.DataFrame(data)
    return pl.DataFrame(data) if library == "polars" else pl.LazyFrame(data)


def _small_questions(dp: Any) -> dict[str, Callable[[Any, Any], object]]:
    bounds, abc = (0, 100), ["a", "b", "c"]
    return {
        "count": lambda df, eps: df.dp.count(eps=eps),
        "count(x)": lambda df, eps: df.dp.count("x", eps=eps),
        "clip_sum": lambda df, eps: df.dp.clip_sum("x", bounds=bounds, eps=eps),
        "clip_mean": lambda df, eps: df.dp.clip_mean("x", bounds=bounds, eps=eps),
        "agg of 2": lambda df, eps: df.dp.agg(n=dp.count(), x=dp.clip_mean("x", bounds=bounds), eps=eps),
        "groupby, count": lambda df, eps: df.dp.groupby("g", keys=abc).count(eps=eps),
        "groupby, agg of 2": lambda df, eps: df.dp.groupby("g", keys=abc).dp_agg(
            n=dp.count(), x=dp.clip_mean("x", bounds=bounds), eps=eps
        ),
    }


def sampler() -> Iterator[Row]:
    """Draws a second on one core: the least over scales from 1 to 1e13."""
    from dpframe.noise.strips import sampler as make

    size = 1_000_000
    for law, shape, limit in (("laplace", "linear", 2.0), ("gaussian", "square", 1.0)):
        speeds = {}
        for exponent in range(14):
            s = make(shape, Fraction(10**exponent))
            s.sample(1000)
            speeds[exponent] = size / min(cpu(lambda s=s: s.sample(size)) for _ in range(5)) / 1e6
        slowest = min(speeds, key=lambda e: speeds[e])
        note = f"slowest at scale 1e{slowest}; fastest {max(speeds.values()):.1f}"
        yield Row("sampler", f"{law}, scales 1 to 1e13", speeds[slowest], "M/s", limit, least=True, note=note)


def row() -> Iterator[Row]:
    """One draw for a row: draws a second on one core, and 1 M groups beside a draw for every part."""
    import numpy as np
    import polars as pl

    import dpframe as dp
    from dpframe.mechanisms.base import Target
    from dpframe.mechanisms.row import Block, calibrate

    for what, means, missing in (("n and 5 means", 5, False), ("n and 3 means that may be missing", 3, True)):
        law = calibrate((Block(1 << 30, 1, missing),) * means, Target(Fraction(1)))
        law.draw(1000)
        speed = 0.3 / min(cpu(lambda law=law: law.draw(300_000)) for _ in range(3))
        yield Row("row", f"one draw of {what}, 2**30 steps, one core", speed, "M/s", 0.3, least=True)
    keys = dp.public(pl.Series("k", np.arange(1_000_000)))
    df = pl.DataFrame({"k": np.arange(1_000_000), "x": np.ones(1_000_000), "y": np.ones(1_000_000)})

    def ask(law: str) -> None:
        with dp.Session(eps=10):
            df.dp.groupby("k", keys=keys).dp_agg(
                n=dp.count(),
                x=dp.clip_mean("x", bounds=(0, 100)),
                y=dp.clip_mean("y", bounds=(0, 100)),
                eps=1,
                mechanism=law,
            )

    spent: dict[str, list[float]] = {"row": [], "laplace": []}
    for _ in range(3):
        for law in spent:
            spent[law].append(cpu(lambda law=law: ask(law)))
    one, apart = (min(times) for times in spent.values())
    note = f"{one:.2f} s / {apart:.2f} s CPU"
    yield Row(
        "row",
        "n and 2 means of 1 M groups, one draw / a draw for every part, CPU",
        one / apart,
        "×",
        1.2,
        note=note,
    )


def imports() -> Iterator[Row]:
    """What ``import dpframe`` adds to importing pandas and Polars."""
    command = (
        "import pandas, polars, time; a = time.process_time(); import dpframe; print(time.process_time() - a)"
    )
    times = []
    for _ in range(9):
        done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
        times.append(float(done.stdout))
    yield Row("import", "import dpframe after pandas and Polars, CPU", statistics.median(times), "s", 0.1)


def child(what: str, *args: str) -> float:
    """The measurements that need a process of their own."""
    import questions

    import dpframe as dp

    if what == "memory":
        library, question = args
        questions.private(questions.frame(library, 1000), question)()  # imports, threads
        questions.arrays.cache_clear()
        df = questions.frame(library)
        return extra_peak(questions.private(df, question)) / questions.used_bytes(question)
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(0)
    df = pl.DataFrame({"k": rng.integers(0, 1_100_000, 2_000_000), "x": rng.random(2_000_000) * 100})
    codebook = pl.Series("k", np.arange(1_000_000))
    session = dp.Session(eps=10**9)

    def ask() -> object:
        return df.dp.groupby("k", keys=dp.public(codebook)).dp_agg(
            n=dp.count(), x=dp.clip_mean("x", bounds=(0, 100)), eps=1, session=session
        )

    if args[0] == "cpu":
        return min(cpu(ask) for _ in range(3))
    ask()
    return peak() / 1e9


BENCHMARKS: dict[str, Callable[[], Iterator[Row]]] = {
    "polars": polars,
    "pandas": pandas,
    "others": others,
    "memory": memory,
    "keys": keys,
    "units": units,
    "calls": calls,
    "sampler": sampler,
    "row": row,
    "import": imports,
}


def main(names: list[str]) -> int:
    unknown = [n for n in names if n not in BENCHMARKS]
    if unknown:
        print(f"There is no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}.", file=sys.stderr)
        return 2
    start, missed = time.perf_counter(), 0
    print("| benchmark | what | measured | target | | |")
    print("|---|---|---|---|---|---|")
    for name in names or BENCHMARKS:
        for row in BENCHMARKS[name]():
            missed += row.met is False
            print(row.line(), flush=True)
    print(f"\n{missed} missed; {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["--child"]:
        print(child(*sys.argv[2:]))
    else:
        sys.exit(main(sys.argv[1:]))
