"""A corpus of neighbouring frames: made by hand where leaks have been found, and generated.

Frames are Polars frames with the columns ``x`` and ``y`` (numbers), ``b`` (Boolean), ``i`` (integer), ``g``
(the group: "a", "b", and what else occurs) and ``u`` (the unit), so that every question can be asked of each.
Everything is made up; nothing is drawn from real data.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

from dpframe.statistics.question import AUDIT_BOUNDS

NAN, INF = math.nan, math.inf
LOW, HIGH = map(float, AUDIT_BOUNDS)  # bounds that questions about ``x`` and ``y`` are asked with
KEYS = ["b", None, "absent", "a"]  # listed groups
SCHEMA: dict[str, Any] = {
    "x": pl.Float64,
    "y": pl.Float64,
    "b": pl.Boolean,
    "i": pl.Int64,
    "g": pl.String,
    "u": pl.Int64,
}
LIBRARIES = ("polars", "lazy", "pandas")
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Pair:
    """Two frames that differ by one unit, or by a number of rows together.

    Attributes
    ----------
    name : str
    frame, neighbour : polars.DataFrame
    relation : str
        "add_remove" or "replace_one"; a pair that serves both says "add_remove".
    unit : str or None
        The unit's column; None for rows.
    contributions : int
        How many rows may differ, where rows are what is protected.
    """

    name: str
    frame: pl.DataFrame = field(repr=False)
    neighbour: pl.DataFrame = field(repr=False)
    relation: str = "add_remove"
    unit: str | None = None
    contributions: int = 1

    def of(self, library: str) -> tuple[Any, Any]:
        """Both frames in a library: "polars", "lazy" or "pandas" (Arrow dtypes, which no cell decides)."""
        if library == "pandas":
            return _to_pandas(self.frame), _to_pandas(self.neighbour)
        if library == "lazy":
            return self.frame.lazy(), self.neighbour.lazy()
        return self.frame, self.neighbour


def _to_pandas(frame: pl.DataFrame) -> Any:
    out = frame.to_pandas(use_pyarrow_extension_array=True)
    for name, dtype in frame.schema.items():
        if dtype in (pl.Categorical, pl.Enum):
            out[name] = frame[name].to_pandas()
    return out


def row(x: Any = 1.0, y: Any = 2.0, b: Any = True, i: Any = 3, g: Any = "a", u: Any = 1) -> Row:
    """A row of a corpus frame."""
    return (x, y, b, i, g, u)


def frame_of(rows: Sequence[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _base(n: int) -> list[Row]:
    """Ordinary rows, each of a unit of its own."""
    values = itertools.cycle([(1.0, 2.0), (-2.5, 9.0), (7.25, 0.5), (4.0, -1.0), (0.1, 3.3)])
    groups = itertools.cycle(["a", "a", "b"])
    return [row(x, y, k % 3 == 0, k % 7, g, 100 + k) for k, (x, y), g in zip(range(n), values, groups)]


SPECIAL_ROWS: dict[str, Row] = {
    "both at the upper bound": row(HIGH, HIGH),
    "both at the lower bound": row(LOW, LOW),
    "at either bound": row(LOW, HIGH),
    "at the midpoint": row((LOW + HIGH) / 2, (LOW + HIGH) / 2),
    "NaN": row(NAN, NAN),
    "null": row(None, None, None, None),
    "one of two missing": row(None, 3.0),
    "inf": row(INF, INF),
    "-inf": row(-INF, INF),
    "an outlier": row(1e300, -1e300, True, 2**62),
    "a listed key that did not occur": row(HIGH, HIGH, g="absent"),
    "a key that nobody listed": row(HIGH, HIGH, g="unlisted"),
    "a null key": row(HIGH, HIGH, g=None),
    "nothing at all": row(None, None, None, None, None, None),
}


def row_pairs(relation: str = "add_remove") -> list[Pair]:
    """Pairs that differ by one row: sizes, special cells, groups that empty, rows that move or turn missing."""
    return list(_appearing() if relation == "add_remove" else _replaced())


def _appearing() -> Iterator[Pair]:
    for n in (1, 2, 3, 5, 50):
        rows = _base(n - 1)
        yield Pair(f"n = {n - 1}/{n}", frame_of(rows), frame_of([*rows, row(HIGH, HIGH, i=6)]))
    for name, special in SPECIAL_ROWS.items():
        yield Pair(f"{name} appears", frame_of(_base(4)), frame_of([*_base(4), special]))
    only = row(HIGH, LOW, g="b")
    rest = [r for r in _base(6) if r[4] != "b"]
    yield Pair("a group empties", frame_of([*rest, only]), frame_of(rest))
    yield Pair("the only row vanishes", frame_of([only]), frame_of([]))
    yield Pair("in front", frame_of(_base(5)), frame_of([row(LOW, HIGH), *_base(5)]))


def _replaced() -> Iterator[Pair]:
    def pair(name: str, old: Row, new: Row, n: int = 4) -> Pair:
        rest = _base(n)
        return Pair(name, frame_of([*rest, old]), frame_of([*rest, new]), "replace_one")

    low, high = row(LOW, LOW, False, 0), row(HIGH, HIGH, True, 6)
    for n in (1, 2, 5, 50):
        yield pair(f"n = {n}, lowest to highest", low, high, n - 1)
    yield pair("one at either bound, swapped", row(LOW, HIGH), row(HIGH, LOW))
    yield pair("-inf to inf", row(-INF, -INF), row(INF, INF))
    yield pair("becomes an outlier", row(), row(1e300, -1e300))
    yield pair("NaN to null", row(NAN, NAN), row(None, None))
    yield pair("turns NaN", high, row(NAN, NAN))
    yield pair("turns null", high, row(None, None, None, None))
    yield pair("a lowest row turns missing", low, row(None, None, None, None))
    yield pair("moves to another group", high, (*high[:4], "b", 1))
    yield pair("moves, lowest to highest", low, (*high[:4], "b", 1))
    yield pair("moves to a group that is absent", high, (*high[:4], "absent", 1))
    yield pair("moves out of the listed groups", high, (*high[:4], "unlisted", 1))
    yield pair("loses its key", high, (*high[:4], None, 1))
    yield pair("the only row of a group moves", (*high[:4], "absent", 1), high)
    yield pair("changes nothing", high, high)


def unit_pairs(relation: str = "add_remove", *, heavy: int = 200) -> list[Pair]:
    """Pairs that differ by all rows of unit 1: few or ``heavy`` many, in one group or in all, missing, unlisted."""
    high, low, none = (HIGH, HIGH, True, 6), (LOW, LOW, False, 0), (None, None, None, None)

    def rows(cells: Row, groups: Sequence[Any], times: int, u: Any = 1) -> list[Row]:
        return [(*cells, g, u) for g in groups for _ in range(times)]

    everywhere = ["a", "b", "absent", None, "unlisted", "other"]
    sets: dict[str, list[Row]] = {
        "no row": [],
        "one row": rows(high, "a", 1),
        "two rows of one group": rows(high, "a", 2),
        "one row in each group": rows(high, everywhere, 1),
        "heavy in one group": rows(high, "a", heavy),
        "heavy and low": rows(low, "a", heavy),
        "heavy everywhere": rows(high, everywhere, heavy),
        "heavy, half missing": rows(high, "a", heavy // 2) + rows(none, "a", heavy // 2),
        "heavy, all missing": rows(none, "ab", heavy),
        "heavy, high here and low there": rows(high, "a", heavy) + rows(low, "b", heavy),
        "heavy and infinite": rows((INF, -INF, True, 2**62), "ab", heavy),
        "heavy and NaN": rows((NAN, NAN, None, None), "ab", heavy),
        "heavy outside the listed groups": rows(high, ["unlisted", "other"], heavy),
        "heavy without a key": rows(high, [None], heavy),
        "rows of nobody": rows(high, "ab", heavy, None),
    }
    rest = _base(9) + [(*r[:5], 101) for r in _base(4)]
    frames = {k: frame_of([*rest, *v]) for k, v in sets.items()}
    if relation == "add_remove":
        gone = frames.pop("no row")
        return [Pair(f"{k} appears", gone, f, relation, "u") for k, f in frames.items()]
    names = list(frames)
    turned = [(a, b) for a, b in zip(names, names[1:] + names[:1])]
    turned += [("heavy everywhere", "heavy and low"), ("heavy in one group", "heavy, all missing")]
    return [Pair(f"{a} becomes {b}", frames[a], frames[b], relation, "u") for a, b in turned]


def several_pairs(relation: str = "add_remove", *, rows: int = 3) -> list[Pair]:
    """Pairs that differ by so many rows together: in one group or each in another, missing, unlisted, of opposite bounds."""
    high, low, none = (HIGH, HIGH, True, 6), (LOW, LOW, False, 0), (None, None, None, None)
    groups = list(itertools.islice(itertools.cycle(["a", "absent", "b", None, "unlisted"]), rows))
    cells = {
        "high": high,
        "low": low,
        "missing": none,
        "infinite": (INF, -INF, True, 2**62),
        "NaN": (NAN,) * 2 + (None,) * 2,
    }
    sets: dict[str, list[Row]] = {"no row": []}
    for name, c in cells.items():
        sets[f"{name} in one group"] = [(*c, "a", 200 + j) for j in range(rows)]
        sets[f"{name} in a group each"] = [(*c, g, 200 + j) for j, g in enumerate(groups)]
    sets["high and low in one group"] = [(*(high, low)[j % 2], "a", 200 + j) for j in range(rows)]
    sets["unlisted"] = [(*high, f"unlisted {j}", 200 + j) for j in range(rows)]
    sets["fewer rows"] = [(*high, "a", 200 + j) for j in range(rows - 1)]
    rest = _base(7)
    frames = {k: frame_of([*rest, *v]) for k, v in sets.items()}
    if relation == "add_remove":
        gone = frames.pop("no row")
        return [Pair(f"{k} appear", gone, f, relation, None, rows) for k, f in frames.items()]
    names = list(frames)
    turned = [(a, b) for a, b in zip(names, names[1:] + names[:1])]
    turned += [("high in one group", "low in one group"), ("high in one group", "high in a group each")]
    return [Pair(f"{a} become {b}", frames[a], frames[b], relation, None, rows) for a, b in turned]


def _next(x: float, to: float) -> float:
    return math.nextafter(x, to)


# dtype -> cells of ``x`` that have gone wrong somewhere, beside ordinary ones.
SPECIAL_CELLS: dict[str, tuple[Any, list[Any]]] = {
    "Float64": (
        pl.Float64,
        [
            None, NAN, INF, -INF, 0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e300, -1e300,
            1.7976931348623157e308, 1e16, 2.0**53 + 2, 0.1, 1 / 3, LOW, HIGH, _next(LOW, INF), _next(LOW, -INF),
            _next(HIGH, INF), _next(HIGH, -INF), 2.0**-31, 13 * 2.0**-31,
        ],
    ),
    "Float32": (pl.Float32, [None, NAN, INF, -INF, -0.0, 1e-45, 3.4028234e38, 0.1]),
    "Int8": (pl.Int8, [None, -128, 127]),
    "Int16": (pl.Int16, [-32768, 32767]),
    "Int32": (pl.Int32, [None, -(2**31), 2**31 - 1]),
    "Int64": (pl.Int64, [None, -(2**63), 2**63 - 1, 2**53 + 1]),
    "Int128": (pl.Int128, [None, -(2**127), 2**127 - 1]),
    "UInt8": (pl.UInt8, [None, 0, 255]),
    "UInt64": (pl.UInt64, [None, 0, 2**64 - 1]),
    "Boolean": (pl.Boolean, [None, True, False]),
    "Decimal": (pl.Decimal(38, 2), [None, Decimal("-0.01"), Decimal("9.99"), Decimal("1" + "0" * 30)]),
    "Null": (pl.Null, [None]),
}  # fmt: skip


_CALM: dict[Any, list[Any]] = {pl.Null: [None] * 3, pl.Boolean: [True, False, True]}


def special_pairs() -> list[Pair]:
    """For every dtype and special cell: a frame of ordinary cells, and the same with that cell in one more row."""
    found = []
    for name, (dtype, cells) in SPECIAL_CELLS.items():
        calm = _CALM.get(dtype, [1, 0, 1])
        for cell in cells:
            more = _with_x([*calm, cell], dtype)
            found.append(Pair(f"{name} {cell!r}", _with_x(calm, dtype), more))
    return found


def _with_x(cells: list[Any], dtype: Any) -> pl.DataFrame:
    values = [Decimal(c) if isinstance(c, int) and dtype == pl.Decimal else c for c in cells]
    return frame_of(_base(len(cells))).with_columns(pl.Series("x", values, dtype=dtype))


def table_pairs() -> list[Pair]:
    """Pairs whose groups or shape of the table could tell them apart: keys, order, categories, chunks."""
    rows, base = _base(6), frame_of(_base(6))
    more = [*rows, row(g="zz")]

    def cast(name: str, dtype: Any, first: list[Row], second: list[Row]) -> Pair:
        a, b = (frame_of(r).with_columns(pl.col("g").cast(dtype)) for r in (first, second))
        return Pair(name, a, b)

    enum = pl.Enum(["a", "absent", "b", "zz"])
    return [
        Pair("a new key", base, frame_of(more)),
        Pair("a listed key appears", base, frame_of([*rows, row(g="absent")])),
        Pair("a key is emptied", frame_of([*rows, row(g="absent")]), base),
        Pair("a null key beside others", base, frame_of([*rows, row(g=None)])),
        Pair("an empty text key", base, frame_of([*rows, row(g="")])),
        Pair("a key with a NUL", base, frame_of([*rows, row(g="a\0")])),
        Pair("another order of rows", base, frame_of(rows[::-1])),
        Pair("a row in front", base, frame_of([row(g="b"), *rows])),
        Pair("other chunks", base, pl.concat([base[:1], base[1:4], base[4:]], rechunk=False)),
        Pair("the first row of all", frame_of([]), frame_of([row(g="b")])),
        cast("a new category", pl.Categorical, rows, more),
        cast("a category in front of the others", pl.Categorical, rows, [row(g="zz"), *rows]),
        cast("the last cell of a category", pl.Categorical, more, rows),
        cast("an unused value of an enum appears", enum, rows, more),
        cast("a null among an enum's", enum, rows, [*rows, row(g=None)]),
    ]


# ---- generated ----

CELLS = [None, NAN, INF, -INF, 1e300, -1e300, 5e-324, 0.0, -0.0, 1 / 3, LOW, HIGH, 2.5, 20.0]
GROUPS = ["a", "b", None, "unlisted", "other", "absent"]


def generated(
    rng: np.random.Generator, relation: str = "add_remove", unit: str | None = None, contributions: int = 1
) -> Pair:
    """A random pair: rows (or a unit's rows) that appear, change, turn missing, or move, and an order of their own.

    Of ``contributions`` rows some may appear as others vanish: that is no more than if all of them appeared.
    """

    def one(u: int) -> Row:
        x, y = (
            CELLS[rng.integers(len(CELLS))] if rng.random() < 0.6 else float(rng.normal(4, 8)) for _ in "xy"
        )
        b = (None, True, False)[rng.integers(3)]
        i = (None, 0, -7, 2**62, int(rng.integers(12)))[rng.integers(5)]
        return row(x, y, b, i, GROUPS[rng.integers(len(GROUPS))], None if rng.random() < 0.05 else u)

    n = int(rng.choice([0, 1, 2, 4, 12]))
    others = [one(int(rng.integers(2, 6)) if unit else 100 + k) for k in range(n)]
    sizes = [1, 1] if unit is None else [int(rng.choice([1, 2, 5, 20])) for _ in range(2)]
    vanish = 0
    if contributions > 1:
        sizes = [contributions - int(rng.integers(contributions) * (rng.random() < 0.3)) for _ in range(2)]
        vanish = int(rng.integers(contributions)) if rng.random() < 0.3 else 0
    mine, theirs = ([(*one(1)[:5], 1) for _ in range(k)] for k in sizes)
    if rng.random() < 0.3:  # the same rows turn missing
        theirs = [row(None, None, None, None, r[4], 1) for r in mine]
    if relation == "add_remove":
        mine, theirs = mine[vanish:], theirs[:vanish]
    frames = []
    for changed in (mine, theirs):
        rows = [*others, *changed]
        frames.append(frame_of([rows[k] for k in rng.permutation(len(rows))]))
    return Pair("generated", frames[0], frames[1], relation, unit, contributions)


def strategy(relation: str = "add_remove") -> Any:
    """A hypothesis strategy of :class:`Pair`, ``x`` of every dtype, rows as the unit. Needs hypothesis."""
    from hypothesis import strategies as st

    def cell(name: str) -> Any:
        dtype, cells = SPECIAL_CELLS[name]
        plain = (
            st.integers(0, 100)
            if dtype.is_integer()
            else st.floats(width=32)
            if dtype.is_float()
            else st.none()
        )
        return st.one_of(st.sampled_from(cells), plain)

    def pair(name: str) -> Any:
        rest = st.tuples(*(st.sampled_from(v) for v in (CELLS, [None, True, False], [None, 0, 9], GROUPS)))
        one = st.tuples(cell(name), rest)
        return st.builds(make, st.just(name), st.lists(one, max_size=6), one, one, st.integers(0, 6))

    def make(name: str, others: Any, mine: Any, theirs: Any, at: int) -> Pair:
        changed = [theirs] if relation == "replace_one" else []
        frames = []
        for rows in ([*others[:at], mine, *others[at:]], [*others[:at], *changed, *others[at:]]):
            frame = frame_of([row(None, y, b, i, g, k) for k, (_, (y, b, i, g)) in enumerate(rows)])
            cells = pl.Series("x", [c for c, _ in rows], dtype=SPECIAL_CELLS[name][0], strict=False)
            frames.append(frame.with_columns(cells))
        return Pair(f"generated {name}", frames[0], frames[1], relation)

    return st.sampled_from(sorted(SPECIAL_CELLS)).flatmap(pair)
