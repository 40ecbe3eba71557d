"""Run the audit of the package itself, and print its figures: ``dpframe audit``."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from dpframe.base.arguments import check_whole
from dpframe.errors import Arg, InputError, typed


@dataclass(frozen=True)
class Size:
    """How much is done.

    Attributes
    ----------
    draws : int
        Figure 1: outputs from each side of a pair.
    corpus : int
        Figure 1: pairs of the corpus for each verb.
    pairs, tabled : int
        Figure 2: generated pairs for each verb, relation and unit, asked one by one and in tables.
    frames : int
        Figure 3: generated frames, of rows and of units each.
    rows : tuple of int
        Figure 4: sizes of frames.
    points : int
        Figure 9: points of (eps, delta, sensitivity) for each mechanism, at least.
    """

    draws: int
    corpus: int
    pairs: int
    tabled: int
    frames: int
    rows: tuple[int, ...]
    points: int


ROWS = (0, 1, 2, 999, 1000, 1001, 100_000)
SIZES = {
    "small": Size(30_000, 3, 3, 30, 25, ROWS[:3], 60),
    "medium": Size(200_000, 12, 60, 600, 500, ROWS, 200),
    "full": Size(10**6, 12, 250, 4_750, 5_000, ROWS, 1_000),
}


@dataclass(frozen=True)
class Figure:
    """A line of the table: what was measured, what was wanted, and whether it is so."""

    number: int
    what: str
    measured: str
    wanted: str
    ok: bool


_OF: dict[int, str] = {
    1: "dpframe.audit.answers",
    2: "dpframe.audit.answers",
    3: "dpframe.audit.answers",
    4: "dpframe.audit.answers",
    7: "dpframe.audit.inside",
    8: "dpframe.audit.inside",
    9: "dpframe.audit.inside",
}
Task = tuple[int, str, Size]


def run(
    size: str = "medium",
    figures: Sequence[int] | None = None,
    *,
    jobs: int = 1,
    tell: Callable[[Figure, float], None] | None = None,
) -> list[Figure]:
    """Measure figures of the package.

    Parameters
    ----------
    size : {"small", "medium", "full"}
    figures : list of int, optional
        Of 1, 2, 3, 4, 7, 8, 9; by default all of them.
    jobs : int
        Processes.
    tell : callable, optional
        Gets every figure when it is there, and the seconds it took.

    Returns
    -------
    list of Figure

    Raises
    ------
    InputError
        For a size or a figure that there is not, or no number of jobs.

    Examples
    --------
    >>> from dpframe.audit.run import run
    >>> [f.ok for f in run("small", [7])]
    [True, True]
    """
    if size not in SIZES:
        raise InputError(Arg("size", size), " is not one.", hint=Arg("size", "small"))
    check_whole("jobs", jobs, 1, right=2)
    wanted = sorted(_OF) if figures is None else list(figures)
    for f in wanted:
        if f not in _OF:
            raise InputError(f"There is no figure {typed(f)} here.", hint=f"of {', '.join(map(str, _OF))}")
    tasks: list[Task] = [
        (f, part, SIZES[size]) for f in wanted for part in getattr(import_module(_OF[f]), f"parts_{f}")()
    ]
    found = []
    for figure, seconds in _measured(tasks, jobs):
        found.append(figure)
        if tell is not None:
            tell(figure, seconds)
    return found


def _measured(tasks: list[Task], jobs: int) -> Iterator[tuple[Figure, float]]:
    if jobs == 1:
        yield from map(_task, tasks)
        return
    # Processes that each run on all cores get in each other's way; Polars reads this when it is first imported.
    os.environ.setdefault("POLARS_MAX_THREADS", str(max(1, (os.cpu_count() or 1) // jobs)))
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(_task, tasks)


def _task(task: Task) -> tuple[Figure, float]:
    number, part, size = task
    start = time.perf_counter()
    measure: Any = getattr(import_module(_OF[number]), f"figure_{number}")
    figure = measure(part, size)
    return figure, time.perf_counter() - start


def line(figure: Figure) -> str:
    """A line of the printed table."""
    return (
        f"{'ok  ' if figure.ok else 'FAIL'} {figure.number}  {figure.what:<34} {figure.measured:<46}"
        f" wanted: {figure.wanted}"
    )
