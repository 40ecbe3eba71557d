"""Visits of people to groups in parquet files, opened by every engine, and the plain computations on them."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dpframe as dp

LOW, HIGH = 0.0, 100_000.0
PART = 1_000_000  # rows of one file
GROUPS = 100
CHOSEN = 2  # of the three groups that a person is in
QUESTIONS = ("sum", "mean", "groups", "units", "units, 2 groups")
Calls = dict[str, Callable[[], object]]

ENGINES = {  # name: (where the data is, packages that it needs beside dpframe's own)
    "polars": ("memory", ()),
    "polars-lazy": ("files", ()),
    "pandas": ("memory", ()),
    "pyarrow": ("memory", ()),
    "duckdb": ("files", ("duckdb", "narwhals")),
    "ibis": ("files", ("ibis", "narwhals")),
    "sqlframe": ("files", ("sqlframe", "narwhals")),
    "spark": ("files", ("pyspark", "narwhals")),
}


def missing(engine: str) -> str | None:
    """What an engine lacks here; None when it can run."""
    for package in ENGINES[engine][1]:
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed"
    return "there is no java" if engine == "spark" and shutil.which("java") is None else None


def write(folder: Path, rows: int, groups: int = GROUPS) -> list[str]:
    """Parquet files of at most a million rows, each with people of its own, who have 20 rows in three groups."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for i, start in enumerate(range(0, rows, PART)):
        path = folder / f"{i:04}.parquet"
        files.append(str(path))
        if not path.exists():
            part(i, min(PART, rows - start), groups).write_parquet(path, compression="uncompressed")
    return files


def part(seed: int, rows: int, groups: int, people: int | None = None) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    people = people or max(rows // 20, 1)
    person = rng.integers(0, people, rows)
    return pl.DataFrame(
        {
            "person": person + seed * people,
            "g": (person * 7919 + rng.integers(0, 3, rows) * 31) % groups,
            "k": rng.integers(0, groups, rows),
            "x": rng.standard_normal(rows) * 30_000 + 50_000,
        }
    )


def links(folder: Path, size: int, rows: int, people: int) -> list[str]:
    """One file of random cells under as many names as make ``size`` bytes of it."""
    folder.mkdir(parents=True, exist_ok=True)
    first = folder / "0000.parquet"
    part(0, rows, GROUPS, people).write_parquet(first, compression="uncompressed", row_group_size=500_000)
    files = [first]
    while len(files) * first.stat().st_size < size:
        files.append(folder / f"{len(files):04}.parquet")
        os.link(first, files[-1])
    return [str(f) for f in files]


@contextmanager
def opened(engine: str, files: list[str]) -> Iterator[Any]:
    """The frame of an engine: read into memory, or a query of the files."""
    if engine == "polars":
        yield pl.read_parquet(files)
    elif engine == "polars-lazy":
        yield pl.scan_parquet(files)
    elif engine == "pandas":
        yield pl.read_parquet(files).to_pandas()
    elif engine == "pyarrow":
        yield pl.read_parquet(files).to_arrow()
    elif engine == "duckdb":
        import duckdb

        with duckdb.connect() as connection:
            yield connection.read_parquet(files)
    elif engine == "ibis":
        import ibis

        yield ibis.duckdb.connect().read_parquet(files)
    elif engine == "sqlframe":
        from sqlframe.duckdb import DuckDBSession

        yield DuckDBSession.builder.getOrCreate().read.load(files, format="parquet")
    else:
        with spark_session() as session:
            yield session.read.parquet(*files)


@contextmanager
def spark_session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "3g",
        "spark.sql.shuffle.partitions": "2",
    }
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


def private(frame: Any, question: str, groups: int = GROUPS) -> Callable[[], Any]:
    """A private question, paid by a session that never runs out."""
    bounds, door = (LOW, HIGH), dp.frame(frame)
    if question in ("sum", "mean"):
        session = dp.Session(eps=10**9)
        ask = door.clip_sum if question == "sum" else door.clip_mean
        return lambda: ask("x", bounds=bounds, eps=1, session=session)
    limits: dict[str, Any] = {}
    if question == "groups":
        session, by = dp.Session(eps=10**9), "k"
    else:
        session, by = dp.Session(eps=10**9, unit="person"), "g"
        limits = {"max_groups": CHOSEN if "2" in question else groups, "max_rows_per_group": 5}
    return lambda: door.groupby(by, keys=range(groups), **limits).dp_agg(
        n=dp.count(), x=dp.clip_mean("x", bounds=bounds), eps=1, session=session
    )


def plain(engine: str, frame: Any, question: str) -> Calls:
    """The same without privacy, as a user of the engine writes it; the fastest of several is compared with.

    With units it is the sums per pair of person and group, then those per group. Every call builds its query
    anew, as the private one does: a Spark DataFrame that is asked again skips the stages that it has finished.
    """
    if engine in ("polars", "polars-lazy"):
        return _polars(frame, question)
    if engine == "pandas":
        return _pandas(frame, question)
    if engine == "pyarrow":
        return _pyarrow(frame, question)
    if engine == "ibis":
        return {"": lambda: _ibis(frame, question).to_pyarrow()}
    if engine == "spark":
        from pyspark.sql import Window, functions

        return {"": lambda: _dataframe(frame, question, functions, Window).toArrow()}
    if engine == "sqlframe":
        from sqlframe.duckdb import Window, functions

        return {"": lambda: _dataframe(frame, question, functions, Window).toArrow()}
    return _duckdb(frame, question)


def _polars(frame: Any, question: str) -> Calls:
    lazy, x = frame.lazy(), pl.col("x").clip(LOW, HIGH)
    queries = {"": lazy.select(x.mean() if question == "mean" else x.sum())}
    if question == "groups":
        queries = {
            "clip inside": lazy.group_by("k").agg(n=pl.len(), x=x.mean()),
            "clip before": lazy.select("k", x).group_by("k").agg(n=pl.len(), x=pl.col("x").mean()),
        }
    elif question.startswith("units"):
        pairs = lazy.group_by("person", "g").agg(n=pl.len(), c=pl.col("x").count(), t=x.sum())
        if "2" in question:
            rank = pl.struct("person", "g").hash(seed=7).rank("ordinal").over("person")
            pairs = pairs.filter(rank <= CHOSEN)
        queries = {"": pairs.group_by("g").agg(pl.col("n", "c", "t").sum())}
    engines: tuple[Any, ...] = ("in-memory", "streaming")
    return {
        f"{engine} {how}".strip(): (lambda q=q, engine=engine: q.collect(engine=engine))
        for how, q in queries.items()
        for engine in engines
    }


def _pandas(df: Any, question: str) -> Calls:
    def clipped() -> Any:
        return df["x"].clip(LOW, HIGH)

    def pairs() -> Any:
        return df[["person", "g"]].assign(x=clipped()).groupby(["person", "g"], sort=False)["x"]

    def chosen() -> Any:
        from pandas.util import hash_pandas_object

        found = pairs().agg(["size", "count", "sum"]).reset_index()
        found["h"] = hash_pandas_object(found[["person", "g"]], index=False)
        return found[found.groupby("person")["h"].rank("first") <= CHOSEN]

    names = ["size", "count", "sum"]
    return {
        "sum": {"": lambda: clipped().sum()},
        "mean": {"": lambda: clipped().mean()},
        "groups": {
            "sorted": lambda: clipped().groupby(df["k"]).agg(["size", "mean"]),
            "unsorted": lambda: clipped().groupby(df["k"], sort=False).agg(["size", "mean"]),
        },
        "units": {"": lambda: pairs().agg(names).groupby("g").sum()},
        "units, 2 groups": {"": lambda: chosen().groupby("g")[names].sum()},
    }[question]


def _pyarrow(table: Any, question: str) -> Calls:
    import pyarrow.compute as pc

    def clipped() -> Any:
        return pc.min_element_wise(pc.max_element_wise(table["x"], LOW), HIGH)

    def pairs() -> Any:
        rows = table.select(["person", "g"]).append_column("x", clipped())
        return rows.group_by(["person", "g"]).aggregate([([], "count_all"), ("x", "count"), ("x", "sum")])

    def groups() -> Any:
        rows = table.select(["k"]).append_column("x", clipped())
        return rows.group_by("k").aggregate([([], "count_all"), ("x", "mean")])

    totals = [(n, "sum") for n in ("count_all", "x_count", "x_sum")]
    known: dict[str, Calls] = {
        "sum": {"": lambda: pc.sum(clipped())},
        "mean": {"": lambda: pc.mean(clipped())},
        "groups": {"": groups},
        "units": {"": lambda: pairs().group_by("g").aggregate(totals)},
    }
    return known.get(question, {})  # Arrow has no rank within groups


_SQL = {
    "sum": "SELECT sum({x}) FROM rows",
    "mean": "SELECT avg({x}) FROM rows",
    "groups": "SELECT k, count(*) AS n, avg({x}) AS x FROM rows GROUP BY k",
    "units": "SELECT g, sum(n) AS n, sum(c) AS c, sum(t) AS t FROM ({pairs}) GROUP BY g",
    "units, 2 groups": "SELECT g, sum(n) AS n, sum(c) AS c, sum(t) AS t FROM (SELECT * FROM ({pairs}) QUALIFY"
    " row_number() OVER (PARTITION BY person ORDER BY hash(person, g, 7)) <= {chosen}) GROUP BY g",
}


def _duckdb(frame: Any, question: str) -> Calls:
    x = f"least(greatest(x, {LOW}), {HIGH})"
    pairs = f"SELECT person, g, count(*) AS n, count(x) AS c, sum({x}) AS t FROM rows GROUP BY person, g"
    query = _SQL[question].format(x=x, pairs=pairs, chosen=CHOSEN)
    return {"": lambda: frame.query("rows", query).to_arrow_table()}


def _ibis(table: Any, question: str) -> Any:
    import ibis

    x = table.x.clip(LOW, HIGH)
    if question in ("sum", "mean"):
        query = x.sum() if question == "sum" else x.mean()
    elif question == "groups":
        query = table.group_by("k").aggregate(n=table.count(), x=x.mean())
    else:
        pairs = table.group_by("person", "g").aggregate(n=table.count(), c=table.x.count(), t=x.sum())
        if "2" in question:
            key = (pairs.person.cast("string") + "|" + pairs.g.cast("string")).hash()
            window = ibis.window(group_by="person", order_by=key)
            pairs = pairs.mutate(rank=ibis.row_number().over(window)).filter(lambda t: t["rank"] < CHOSEN)
        query = pairs.group_by("g").aggregate(n=pairs.n.sum(), c=pairs.c.sum(), t=pairs.t.sum())
    return query


def _dataframe(df: Any, question: str, f: Any, window: Any) -> Any:
    """Spark's interface, which SQLFrame has, too."""
    x = f.least(f.greatest(f.col("x"), f.lit(LOW)), f.lit(HIGH))
    if question in ("sum", "mean"):
        query = df.agg((f.sum if question == "sum" else f.avg)(x).alias("x"))
    elif question == "groups":
        query = df.groupBy("k").agg(f.count(f.lit(1)).alias("n"), f.avg(x).alias("x"))
    else:
        sums = (f.count(f.lit(1)).alias("n"), f.count("x").alias("c"), f.sum(x).alias("t"))
        pairs = df.groupBy("person", "g").agg(*sums)
        if "2" in question:
            key = f.md5(f.concat(f.col("person").cast("string"), f.lit("|"), f.col("g").cast("string")))
            place = f.row_number().over(window.partitionBy("person").orderBy("key"))
            pairs = pairs.withColumn("key", key).withColumn("place", place).where(f.col("place") <= CHOSEN)
        query = pairs.groupBy("g").agg(*(f.sum(n).alias(n) for n in ("n", "c", "t")))
    return query
