"""Run by test_engines: a grouped question to a cluster of two executors, one of which is killed while it works."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import dpframe as dp
from dpframe.frames.contract import Bounding


def executors(app: str) -> list[int]:
    """Process ids of this application's executors."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                words = (place / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in words and app.encode() in words:
                found.append(int(place.name))
    return found


def main() -> None:
    from pyspark.sql import SparkSession, functions

    builder = SparkSession.builder.master("local-cluster[2,1,512]")
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # a Java machine that starts faster
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": quick,
        "spark.executor.extraJavaOptions": quick,
        "spark.sql.shuffle.partitions": "3",
        "spark.executor.memory": "512m",
        "spark.sql.adaptive.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    session = builder.config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    rows = session.range(0, 60_000, numPartitions=8)
    frame = rows.select(
        (functions.xxhash64("id") % 1_000).alias("user"),
        (functions.xxhash64("id", functions.lit(1)) % 40).alias("group"),
        (functions.xxhash64("id", functions.lit(2)) % 1000).cast("double").alias("x"),
    )
    with dp.Session(eps=1, unit="user"):
        plan = dp.frame(frame).plan.groupby("group", keys=range(40), max_groups=3, max_rows_per_group=2)
        plan = plan.clip_mean("x", bounds=(0, 500), eps=1).plan
    source = dp.frame(frame)._source
    bounding = Bounding(("user",), 2, 3)
    answers = []

    def ask() -> None:
        answers.append(source.aggregate(replace(plan.ask(5), bounding=bounding)))

    ask()  # undisturbed
    tracker = session.sparkContext.statusTracker()
    job = threading.Thread(target=ask)
    job.start()
    while not any(tracker.getStageInfo(i).numCompletedTasks > 0 for i in tracker.getActiveStageIds()):
        if not job.is_alive():
            sys.exit("the job was over before an executor could be killed")
        time.sleep(0.05)
    before = executors(session.sparkContext.applicationId)
    os.kill(before[0], signal.SIGKILL)
    job.join()
    print("executors", len(before))
    print("lost", before[0] not in executors(session.sparkContext.applicationId))
    print("same", answers[0].rows.tolist() == answers[1].rows.tolist())
    print("sums", all((a == b).all() for a, b in zip(answers[0].sums[0], answers[1].sums[0])))
    print("rows", int(answers[0].rows.sum()))
    session.stop()


if __name__ == "__main__":
    main()
