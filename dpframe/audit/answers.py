"""Figures 1 to 4: what comes out, what reaches the mechanism, on every library alike, and whether it is right."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from dpframe.audit import neighbours, questions
from dpframe.audit.blackbox import black_box
from dpframe.audit.copies import copies
from dpframe.audit.greybox import grey_box
from dpframe.audit.neighbours import HIGH, LIBRARIES, LOW, Pair
from dpframe.audit.recording import observe
from dpframe.audit.run import Figure, Size
from dpframe.audit.tables import differing
from dpframe.session.session import Session

# Pairs of figure 1 in the order in which a shorter run takes them.
FIRST = (
    "n = 0/1", "NaN appears", "both at the lower bound appears", "n = 1/2", "n = 2/3", "n = 4/5", "n = 49/50",
    "inf appears", "an outlier appears", "a group empties", "a null key appears", "null appears",
)  # fmt: skip
MOVES = (
    "moves, lowest to highest", "turns NaN", "n = 2, lowest to highest", "moves to a group that is absent",
    "moves out of the listed groups", "turns null", "becomes an outlier", "-inf to inf", "loses its key",
    "one at either bound, swapped", "the only row of a group moves", "a lowest row turns missing",
)  # fmt: skip
HEAVY = ("heavy everywhere appears", "heavy in one group appears", "heavy, half missing appears")
TOGETHER = ("high in one group appear", "high in a group each appear", "high and low in one group appear")


SLOW = ("quantile", "quantiles", "iqr", "bounds")  # drawn group by group, or in a hundred bins of each


def parts_1() -> list[str]:
    verbs = [v for v in questions.asked_of(None) if v not in questions.ROWS_CHOSEN]
    moved = [
        v for v in verbs if v not in ("iqr", "bounds")
    ]  # those are made of quantiles, and of a histogram
    return [*verbs, *(f"{v}, moved" for v in moved), "heavy units", "three rows"]


def figure_1(part: str, size: Size) -> Figure:
    """The black box over the corpus: nothing is flagged at the claimed eps, and little of it is wasted.

    A frame that is a side of several pairs is drawn from once: each pair's two samples are independent of each other.
    """
    verb, _, moved = part.partition(", ")
    if part == "heavy units":
        pairs = [p for p in neighbours.unit_pairs(heavy=10) if p.name in HEAVY[: max(1, size.corpus // 4)]]
        asked = [(questions.grouped(v), p) for p in pairs for v in ("count", "clip_sum", "clip_mean")]
    elif part == "three rows":
        pairs = [p for p in neighbours.several_pairs() if p.name in TOGETHER[: max(1, size.corpus // 4)]]
        asked = [
            (questions.grouped(v), p) for p in pairs for v in ("count", "clip_sum", "clip_mean", "histogram")
        ]
    else:
        corpus = neighbours.row_pairs("replace_one" if moved else "add_remove")
        named = {p.name: p for p in corpus}
        few = size.corpus // 2 if moved and verb in SLOW else size.corpus
        pairs = [named[n] for n in (MOVES if moved else FIRST)[:few]]
        ask = (questions.grouped if moved else questions.ungrouped)(verb)
        asked = [(ask, p) for p in pairs]
    flagged, worst = 0, 0.0
    slow = moved or part in ("heavy units", "three rows")  # tables with several groups to a copy
    draws = max(30_000, size.draws // 10) if slow else size.draws
    draws = max(10_000, size.draws // 50) if verb in SLOW else draws
    drawn: dict[Any, Any] = {}

    def sampler(ask: Any, pair: Pair, frame: Any) -> Callable[[int], Any]:
        key = (ask, str(frame.rows()))
        if key not in drawn:
            drawn[key] = copies(
                ask, frame, **questions.session(pair.relation, pair.unit, pair.contributions)
            )(draws)
        return lambda n: drawn[key]

    for ask, pair in asked:
        sides = [sampler(ask, pair, f) for f in (pair.frame, pair.neighbour)]
        found = black_box(*sides, eps=1, delta=questions.delta(verb), n=draws)
        flagged += found.flagged
        worst = max(worst, found.eps_lower)
    tight = 0.85 if verb in ("count", "clip_sum") and size.draws >= 200_000 and not moved else 0.0
    return Figure(
        1,
        f"black box: {part}",
        f"{len(asked)} pairs, {draws} draws: {flagged} flagged, eps >= {worst:.3f}",
        "0 flagged at eps 1" + (f", eps >= {tight}" if tight else ""),
        flagged == 0 and worst >= tight,
    )


def parts_2() -> list[str]:
    relations = ("add_remove", "replace_one")
    sessions = ((None, "row"), ("u", "unit"), (None, "3 rows"))
    return [f"{v}; {r}; {n}" for unit, n in sessions for v in questions.asked_of(unit) for r in relations]


def figure_2(part: str, size: Size) -> Figure:
    """The grey box over generated pairs: nothing moves farther than declared, nothing else differs."""
    verb, relation, unit = part.split("; ")
    rows = 3 if unit == "3 rows" else 1
    pairs = _pairs(relation, "u" if unit == "unit" else None, rows, size.pairs + size.tabled)
    failures = 0
    for turn, pair in enumerate(pairs[: size.pairs]):
        ask = (questions.ungrouped, questions.grouped)[turn % 2](verb)
        sides = pair.of(LIBRARIES[turn // 2 % 3])
        found = grey_box(ask, *sides, **questions.session(relation, pair.unit, rows))
        failures += not found.ok or found.error is not None or not found.moved
    rest = pairs[size.pairs :]
    step = -(-len(rest) // 6)
    for turn in range(6):  # each form in each library
        some = rest[turn * step : (turn + 1) * step]
        failures += differing(verb, turn % 2 == 1, some, LIBRARIES[turn % 3], salt=turn) if some else 0
    return Figure(
        2,
        f"grey box: {part}",
        f"{size.pairs} pairs one by one, {len(rest)} in tables: {failures} differ",
        "0",
        failures == 0,
    )


@lru_cache(maxsize=4)
def _pairs(relation: str, unit: str | None, rows: int, n: int) -> list[Pair]:
    """Generated pairs; the same ones for every question."""
    rng = np.random.default_rng([2, relation == "replace_one", unit is not None, *[rows] * (rows > 1)])
    return [neighbours.generated(rng, relation, unit, rows) for _ in range(n)]


def parts_3() -> list[str]:
    return ["rows", "units"]


def figure_3(part: str, size: Size) -> Figure:
    """One answer before the noise, whatever the library, the order of rows, the chunks and the thread."""
    rng = np.random.default_rng([3, part == "units"])
    unit = "u" if part == "units" else None
    names, different = questions.asked_of(unit), 0
    options = questions.session("add_remove", unit)
    with ThreadPoolExecutor(4) as pool:
        for turn in range(size.frames):
            frame = neighbours.generated(rng, unit=unit).frame
            ask = questions.ungrouped if unit or turn % 2 else questions.grouped
            query = ask(names[turn % len(names)])
            shuffled = frame[rng.permutation(frame.height)]
            cut = int(rng.integers(frame.height + 1))
            chunked = pl.concat([frame[:cut], frame[cut:]], rechunk=False)
            variants = [*(Pair("", f, f).of(k)[0] for k in LIBRARIES for f in (frame, shuffled)), chunked]
            got = [observe(query, v, turn, **options).asked for v in variants]
            got += pool.map(lambda v, q=query, t=turn: observe(q, v, t, **options).asked, [frame] * 2)
            integers = [[a.integers for a in asked] for asked in got]
            different += any(x != integers[0] for x in integers) or not all(integers[0])
    return Figure(
        3,
        f"same integers everywhere: {part}",
        f"{size.frames} frames, 9 variants of each: {different} differ",
        "0",
        different == 0,
    )


def parts_4() -> list[str]:
    return [f"{k}, {d}" for k in LIBRARIES for d in _DTYPES]


_DTYPES: dict[str, tuple[Any, list[Any]]] = {
    "Float64": (
        pl.Float64,
        [None, math.nan, math.inf, -math.inf, 1e300, 5e-324, -0.0, 0.1, 2.5, 9.99, -3.25],
    ),
    "Float32": (pl.Float32, [None, math.nan, math.inf, -math.inf, 0.5, 2.5, 9.75, -3.25]),
    "Int8": (pl.Int8, [None, -7, 0, 5, 9, 100]),
    "Int64": (pl.Int64, [None, -7, 0, 5, 9, 100, 2**63 - 1, -(2**63)]),
    "UInt64": (pl.UInt64, [None, 0, 5, 9, 100, 2**64 - 1]),
    "Boolean": (pl.Boolean, [True, False, True, None]),
    "Decimal": (pl.Decimal(38, 2), [None, 1, -4, 9, 10**30]),
}
EPS = 10**6


def figure_4(part: str, size: Size) -> Figure:
    """At eps = 1e6 every answer is the plain clipped one, within 40 sensitivities over eps and a grid step per row."""
    library, _, dtype = part.partition(", ")
    cells = _DTYPES[dtype][1]
    bounds = (0.0, 1.0) if dtype == "Boolean" else (LOW, HIGH)
    wrong = cases = 0
    for n in size.rows:
        rng = np.random.default_rng([4, n])
        where = rng.integers(0, len(cells), n)
        x = pl.Series("x", cells, dtype=_DTYPES[dtype][0], strict=False).gather(where)
        frame = Pair("", pl.DataFrame([x]), pl.DataFrame([x])).of(library)[0]
        for ask, plain, margin in _plain(bounds, n):
            with Session(eps=10**12) as s:
                got = ask(frame.dp)
                got = got if isinstance(got, int | float) else s.last._columns[s.last.plan.outputs[0].name][0]
            values = np.array([_number(c) for c in cells], dtype=float)[where]
            exact = plain(np.clip(values[~np.isnan(values)], *bounds), n)
            cases += 1
            wrong += not (math.isfinite(got) and abs(got - exact) <= margin)
    return Figure(4, f"right at eps 1e6: {part}", f"{cases} answers: {wrong} wrong", "0", wrong == 0)


def _number(cell: Any) -> float:
    return math.nan if cell is None else float(cell)


def _plain(
    bounds: tuple[float, float], n: int
) -> list[tuple[Callable[[Any], Any], Callable[[Any, int], float], float]]:
    """Per verb: the private question, the plain answer, and how far they may be apart (counts: not at all)."""
    low, high = bounds
    middle, span, far, public = (low + high) / 2, high - low, max(abs(low), abs(high)), max(n, 1)

    def mean(v: Any, n: int) -> float:
        return float(v.mean()) if len(v) else middle

    def mean_n(v: Any, n: int) -> float:
        return float(min(max(middle + float((v - middle).sum()) / public, low), high))

    def variance(v: Any, n: int) -> float:
        return float(v.var()) if len(v) else 0.0

    b: Any = bounds
    part, step = 40 / EPS, span / 2**28
    return [
        (lambda d: d.count(eps=EPS), lambda v, n: n, 0),
        (lambda d: d.count("x", eps=EPS), lambda v, n: len(v), 0),
        (
            lambda d: d.clip_sum("x", bounds=b, eps=EPS),
            lambda v, n: float(v.sum()),
            far * part + n * step,
        ),
        (lambda d: d.clip_mean("x", bounds=b, eps=EPS), mean, span * part + step),
        (
            lambda d: d.clip_mean("x", bounds=b, n=public, eps=EPS),
            mean_n,
            span * part / public + step,
        ),
        (
            lambda d: d.clip_var("x", bounds=b, ddof=0, eps=EPS),
            variance,
            2 * span**2 * (part + 2.0**-14),
        ),
    ]


__all__ = ["figure_1", "figure_2", "figure_3", "figure_4", "parts_1", "parts_2", "parts_3", "parts_4"]
