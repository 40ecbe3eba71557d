"""The integers that reach the mechanism are the ones of plain Python, on every engine and in every order.

Promise 3 of the project: pre-noise integers are identical on pandas, Polars eager and lazy, under
permutation, chunking and threads. The reference below knows nothing of the package but the public
grid of the plan (itself checked against the rules of the mathematics): it takes Python numbers one by
one, makes a float64 of each, clips, rounds half to even on the grid with ``Fraction``, and adds up.

``DPFRAME_AUDIT=1`` raises the number of generated frames from 500 to 10,000.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sizes import AUDIT

import dpframe as dp
from conftest import exact_integers
from dpframe.release.release import Release

FRAMES = 10_000 if AUDIT else 500
CHUNKS = 20
SIZES = (0, 1, 2, 999, 1000, 1001, 100_000)

pytestmark = pytest.mark.usefixtures("no_noise", "quiet")


@pytest.fixture
def only_integers(monkeypatch):
    """Leave out the making of answers, which are not looked at and take most of the time."""
    monkeypatch.setattr(Release, "_answers", lambda self: {})
    monkeypatch.setattr(Release, "_value", lambda self: None)


# ---- an independent reference ----


def as_float(cell):
    """A cell as float64, or None when it is missing (null and NaN are one thing)."""
    if cell is None:
        return None
    x = float(cell)  # int, bool, float and Decimal: correctly rounded by Python
    return None if math.isnan(x) else x


def step_of(x: float, low: float, high: float, g: Fraction) -> int:
    """round_half_even(clip(x)/g), by comparison and exact rationals."""
    clipped = low if x < low else high if x > high else x
    return round(Fraction(clipped) / g)


@dataclass(frozen=True)
class Three:
    """Rows, present cells and the sum of steps counted from floor(low/g), of one group."""

    n: int
    c: int
    t: int


def reference(cells, where, low, high, grid) -> Three:
    """``cells[i]`` occurs once for each ``i`` in ``where``."""
    n = c = t = 0
    base = math.floor(Fraction(low) / grid.step)
    for i, times in Counter(where).items():
        n += times
        x = as_float(cells[i])
        if x is not None:
            c += times
            t += times * (step_of(x, float(low), float(high), grid.step) - base)
    return Three(n, c, t)


def pieces(question: str, r: Three, grid, nullable: bool) -> list[int]:
    """The released integers of a question, from the rules of the simplex block."""
    if question == "count":
        return [r.n]
    if question == "count_x":
        return [r.c]
    if question == "both_counts":
        return [r.c, r.n - r.c] if nullable else [r.c]
    k, first = grid.last - grid.first, grid.first
    if question == "sum":
        return [r.t + first * r.c]
    if question == "mean_n":
        return [2 * r.t - k * r.c]
    cells = [r.t, k * r.c - r.t]
    return [*cells, k * (r.n - r.c)] if question == "block" and nullable else cells


QUESTIONS = ("count", "count_x", "both_counts", "sum", "mean", "mean_n", "block")


def ask(verbs, question: str, bounds):
    match question:
        case "count":
            return verbs.count(eps=1)
        case "count_x":
            return verbs.count("x", eps=1)
        case "both_counts":
            return verbs.agg(n=dp.count(), c=dp.count("x"), eps=1, mechanism="laplace")
        case "sum":
            return verbs.clip_sum("x", bounds=bounds, eps=1)
        case "mean":
            return verbs.clip_mean("x", bounds=bounds, eps=1)
        case "mean_n":
            return verbs.clip_mean("x", bounds=bounds, n=7, eps=1)
        case _:
            return verbs.agg(
                n=dp.count(),
                s=dp.clip_sum("x", bounds=bounds),
                m=dp.clip_mean("x", bounds=bounds),
                c=dp.count("x"),
                eps=1,
                mechanism="laplace",  # integers of a draw for every part
            )


def check_grid(plan, kind: str, low: Fraction, high: Fraction) -> None:
    """The rules of the grid: a public power of two that covers the bounds, neither too fine nor too coarse."""
    layout = next(p.layout for p in plan.parts)
    g, k, far = layout.grid.step, layout.grid.count, max(abs(low), abs(high))
    power = g if g >= 1 else 1 / g
    assert power.denominator == 1
    assert power.numerator & (power.numerator - 1) == 0
    assert g >= far / 2**51
    assert layout.grid.first == math.floor(low / g)
    assert layout.grid.last == math.ceil(high / g)
    assert 0 < k <= 2**30
    room = high - low
    if layout.kind == "sum":
        assert max(abs(layout.grid.first), abs(layout.grid.last)) <= 2**30
        room = max(room, far)
    whole = kind in ("int", "bool") and low.denominator == high.denominator == 1
    if whole and room <= 2**30 and far <= 2**51:
        assert g == 1
    else:
        assert g <= max(room / 2**28, far / 2**50), "a finer grid would have fitted"


# ---- columns of every dtype, as pools of odd cells to take rows from ----


@dataclass(frozen=True)
class Pool:
    """The same cells in every representation that can hold them; ``nullable`` says which plan to expect."""

    cells: list
    kind: str
    polars: pl.Series
    pandas: dict


def masked(array_type, values, missing):
    return pd.Series(array_type(values, np.array(missing, dtype=bool)))


def arrow(cells, dtype):
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(cells, type=dtype)])))


INTS = {
    "int8": pl.Int8, "int16": pl.Int16, "int32": pl.Int32, "int64": pl.Int64,
    "uint8": pl.UInt8, "uint16": pl.UInt16, "uint32": pl.UInt32, "uint64": pl.UInt64,
}  # fmt: skip
INT_BOUNDS = [
    (-3, 10),
    (20, 100),
    (-50, -10),
    (0, 1),
    (-10, 1000),
    (-(2**33), 2**34),
    (0, 0.5),
    (-1.5, 99.25),
]
FLOAT_BOUNDS = [
    (0, 1), (-10, 10), (20, 100), (-3, 10), (0.1, 0.7), (Fraction(1, 3), 2), (0.49, 0.51), (-50.5, -10),
    (0, 1e200), (-1e-200, 3e-200), (1000.25, 1000.5), (-7, 1e12), (2**20, 2**20 + 1),
]  # fmt: skip


def int_pool(rng, name: str) -> Pool:
    info = np.iinfo(name)
    edge = [info.min, info.min + 1, -1, 0, 1, 2, 9, 10, 11, 99, 100, info.max - 1, info.max]
    drawn = rng.integers(info.min, info.max, 6, endpoint=True, dtype=name).tolist()
    cells = [x for x in edge if info.min <= x <= info.max] + drawn
    gaps = [*cells, None, None]
    missing = [x is None for x in gaps]
    array = np.array([0 if x is None else x for x in gaps], dtype=name)
    arrow_type = getattr(pa, name)()
    pandas = {
        "numpy": pd.Series(np.array(cells, dtype=name)),
        "nullable": masked(pd.arrays.IntegerArray, array, missing),
        "arrow": arrow(gaps, arrow_type),
    }
    return Pool(gaps, "int", pl.Series(gaps, dtype=INTS[name]), pandas)


def float_pool(rng, name: str) -> Pool:
    special = [0.0, -0.0, 1.0, -1.0, 5e-324, -2.5e-310, 1e300, -1e300, math.inf, -math.inf, 0.5, 20.0, 100.0]
    drawn = [*rng.normal(0, 20, 5), *rng.uniform(0, 1, 5), *rng.uniform(-1e-200, 3e-200, 2)]
    exponents = rng.integers(-31, -26, 8)
    odd = rng.integers(-50, 50, 8) * 2 + 1
    ties = [float(o) * 2.0 ** float(e) for o, e in zip(odd, exponents)]  # half steps of grids near 2**-29
    near = [1000.25 + 2.0**-33 * o for o in (1, 3, 5, 7)] + [2.0**20 + 2.0**-31 * o for o in (1, 3, 5)]
    with np.errstate(over="ignore", under="ignore"):
        array = np.array([*special, *drawn, *ties, *near, math.nan, math.nan], dtype=name)
    cells = [None if math.isnan(x) and i == len(array) - 1 else float(x) for i, x in enumerate(array)]
    missing = [x is None for x in cells]
    wide = name == "float64"
    nullable = masked(pd.arrays.FloatingArray, np.where(missing, 1.0, array).astype(name), missing)
    pandas = {
        "numpy": pd.Series(array),
        "nullable": nullable,  # holds NaN beside NA
        "arrow": arrow(cells, pa.float64() if wide else pa.float32()),  # NaN beside null
    }
    return Pool(cells, "float", pl.Series(cells, dtype=pl.Float64 if wide else pl.Float32), pandas)


def bool_pool(rng) -> Pool:
    cells = [True, False, True, None]
    pandas = {
        "numpy": pd.Series(np.array(cells[:3], dtype=bool)),
        "nullable": masked(pd.arrays.BooleanArray, np.array([True, False, True, True]), [0, 0, 0, 1]),
        "arrow": arrow(cells, pa.bool_()),
    }
    return Pool(cells, "bool", pl.Series(cells, dtype=pl.Boolean), pandas)


def decimal_pool(rng) -> Pool:
    texts = ["0.00", "0.01", "-0.01", "9.99", "10.00", "10.01", "-3.00", "99.95", "1" + "0" * 35 + ".00"]
    texts += [f"{a}.{b:02d}" for a, b in zip(rng.integers(-50, 200, 8), rng.integers(0, 100, 8))]
    texts += ["-" + "9" * 36 + ".99"]
    cells = [*(Decimal(x) for x in texts), None]
    exact = pl.Series(["" if x is None else str(x) for x in cells]).to_list()
    series = pl.from_arrow(pa.array(cells, type=pa.decimal128(38, 2)))
    assert len(exact) == len(series)
    return Pool(cells, "decimal", series, {"arrow": arrow(cells, pa.decimal128(38, 2))})


def int128_pool(rng) -> Pool:
    cells = [2**127 - 1, -(2**127), 2**64, -(2**64), 2**53 + 1, 0, 1, 5, 100, -7, None]
    return Pool(cells, "int", pl.Series(cells, dtype=pl.Int128), {})


def null_pool(rng) -> Pool:
    cells = [None, None]
    return Pool(cells, "null", pl.Series(cells, dtype=pl.Null), {"arrow": arrow(cells, pa.null())})


POOLS = {
    **{name: (lambda rng, name=name: int_pool(rng, name)) for name in INTS},
    "float32": lambda rng: float_pool(rng, "float32"),
    "float64": lambda rng: float_pool(rng, "float64"),
    "bool": bool_pool,
    "decimal": decimal_pool,
    "int128": int128_pool,
    "null": null_pool,
}


def bounds_for(rng, name: str):
    if name == "bool":
        return [None, (0, 1), (0, 0.5)][rng.integers(3)]
    if name in INTS or name == "int128":
        return INT_BOUNDS[rng.integers(len(INT_BOUNDS))]
    return FLOAT_BOUNDS[rng.integers(len(FLOAT_BOUNDS))]


GROUPS = ["a", "b", None, "unlisted"]
LISTED = ["b", "absent", None, "a"]


def polars_frame(pool: Pool, where, groups) -> pl.DataFrame:
    key = pl.Series(GROUPS, dtype=pl.String)
    return pl.DataFrame({"g": key.gather(groups), "x": pool.polars.gather(where)})


def pandas_frame(series: pd.Series, where, groups) -> pd.DataFrame:
    key = pd.Series(GROUPS, dtype=object)
    columns = {"g": key.take(groups), "x": series.take(where)}
    return pd.DataFrame({k: v.reset_index(drop=True) for k, v in columns.items()})


def variants(rng, pool: Pool, where, groups, *, all_pandas: bool):
    """(name, frame, whether its dtype can hold a missing value, rows): orders, chunks, engines, libraries."""
    frame = polars_frame(pool, where, groups)
    order = rng.permutation(len(where))
    yield "eager", frame, True, where, groups
    yield "lazy", frame.lazy(), True, where, groups  # the streaming engine
    shuffled = polars_frame(pool, where[order], groups[order])
    cuts = sorted(rng.integers(0, len(where) + 1, 3).tolist())
    parts = [shuffled[a:b] for a, b in zip([0, *cuts], [*cuts, len(where)])]
    chunked = pl.concat(parts, rechunk=False)
    yield "eager, shuffled, in chunks", chunked, True, where, groups
    yield "lazy, shuffled, in chunks", chunked.lazy(), True, where, groups
    names = list(pool.pandas)
    for name in names if all_pandas else names[: 1 + int(rng.integers(len(names)))] if names else ():
        series = pool.pandas[name]
        inside = where < len(series)  # NumPy's integers have no room for a gap
        w, g = where[inside], groups[inside]
        nullable = name != "numpy" or series.dtype.kind == "f"
        yield f"pandas {name}", pandas_frame(series, w, g), nullable, w, g


def compare(rng, name, pool, question, bounds, where, groups, *, grouped, all_pandas=False):
    """Every variant against the reference."""
    for label, frame, nullable, w, g in variants(rng, pool, where, groups, all_pandas=all_pandas):
        verbs = frame.dp.plan
        if grouped:
            verbs = verbs.groupby("g", keys=LISTED)
        bound = ask(verbs, question, bounds)
        got = exact_integers(bound)
        low, high = (Fraction(b) for b in (bounds or (0, 1)))
        grid = bound.plan.parts[0].layout.grid
        if question in ("sum", "mean", "mean_n", "block"):
            check_grid(bound.plan, pool.kind, low, high)
        rows = [w[g == GROUPS.index(k)] if k in GROUPS else w[:0] for k in LISTED] if grouped else [w]
        want = [
            pieces(question, reference(pool.cells, r.tolist(), low, high, grid), grid, nullable) for r in rows
        ]
        assert got == [list(column) for column in zip(*want)], (name, label, question, bounds, grouped)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_generated_frames_give_the_integers_of_plain_python_in_every_order_on_every_engine(
    chunk, only_integers
):
    rng = np.random.default_rng([3, chunk])
    with dp.Session(eps=10**9):
        for _ in range(FRAMES // CHUNKS):
            name = list(POOLS)[rng.integers(len(POOLS))]
            pool = POOLS[name](rng)
            question = QUESTIONS[rng.integers(len(QUESTIONS))]
            n = int(rng.choice([0, 1, 2, 3, 5, 8, 20, 60]))
            where, groups = rng.integers(0, len(pool.cells), n), rng.integers(0, len(GROUPS), n)
            compare(
                rng, name, pool, question, bounds_for(rng, name), where, groups, grouped=bool(rng.integers(2))
            )


@pytest.mark.sweep(1)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", POOLS)
def test_sizes_at_which_engines_change_their_path_give_the_same_integers(name, n, only_integers):
    """Cases 107 and 113: from 1,000 rows on engines have taken other, wrong, paths; from 100,000 ours streams."""
    rng = np.random.default_rng([113, n, list(POOLS).index(name)])
    pool = POOLS[name](rng)
    where, groups = rng.integers(0, len(pool.cells), n), rng.integers(0, len(GROUPS), n)
    with dp.Session(eps=10**9):
        for grouped in (False, True):
            compare(
                rng,
                name,
                pool,
                "block",
                bounds_for(rng, name),
                where,
                groups,
                grouped=grouped,
                all_pandas=True,
            )
        compare(rng, name, pool, "sum", bounds_for(rng, name), where, groups, grouped=False, all_pandas=True)


# ---- named cases ----


def integer_sum(frame, bounds) -> int:
    return exact_integers(frame.dp.plan.clip_sum("x", bounds=bounds, eps=1))[0][0]


@pytest.mark.parametrize(
    "dtype", [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64]
)
def test_a_sum_of_largest_integers_does_not_wrap(dtype, kind):
    """Case 22: n rows of the dtype's largest value add up to n times the clipped value, in Python integers."""
    most = pl.select(dtype.max()).item()
    least = pl.select(dtype.min()).item()
    n, bound = 100_000, min(most, 2**29)
    table = pl.DataFrame({"x": pl.Series([most, least], dtype=dtype).gather(np.arange(n) % 2)})
    frame = table.to_pandas() if kind == "pandas" else table.lazy() if kind == "lazy" else table
    with dp.Session(eps=10):
        total = integer_sum(frame, (-bound, bound))
        assert total == n // 2 * (bound + max(least, -bound))
        highest = integer_sum(frame.head(n) if kind != "lazy" else frame, (0, bound))
        assert highest == n // 2 * bound


@pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt64, pl.Int128])
def test_the_true_sum_may_exceed_every_64_bit_integer(dtype, kind):
    """Case 22: four times 2**62 is not 0. The answer is right to a grid step per row."""
    if dtype == pl.Int128 and kind == "pandas":
        pytest.skip("pandas has no 128-bit integers")
    table = pl.DataFrame({"x": pl.Series([2**62] * 8, dtype=dtype)})
    frame = table.to_pandas() if kind == "pandas" else table.lazy() if kind == "lazy" else table
    with dp.Session(eps=10):
        bound = frame.dp.plan.clip_sum("x", bounds=(0, 2**62), eps=1)
        assert exact_integers(bound)[0][0] * bound.plan.parts[0].layout.grid.step == 8 * 2**62
        assert frame.dp.clip_sum("x", bounds=(0, 2**62), eps=1) == float(8 * 2**62)
        # A clipped bound of its own: every row counts as 1000, whatever it holds.
        assert integer_sum(frame, (-5, 1000)) == 8000


def test_bounds_outside_the_dtypes_range_do_not_stop_the_clip(kind):
    """Case 23: UInt8 with bounds (-10, 1000): the column is cast before it is clipped."""
    table = pl.DataFrame({"x": pl.Series([0, 7, 255, None], dtype=pl.UInt8)})
    frame = table.to_pandas() if kind == "pandas" else table.lazy() if kind == "lazy" else table
    if kind == "pandas":
        frame = frame.astype({"x": "UInt8"})
    with dp.Session(eps=10):
        assert integer_sum(frame, (-10, 1000)) == 262
        assert integer_sum(frame, (-5, 100)) == 107
        assert integer_sum(frame, (300, 400)) == 900


def test_128_bit_integers_are_clipped_like_any_other(kind):
    """Case 112."""
    if kind == "pandas":
        pytest.skip("pandas has no 128-bit integers")
    table = pl.DataFrame({"x": pl.Series([2**126, -(2**126), 3, None], dtype=pl.Int128)})
    frame = table.lazy() if kind == "lazy" else table
    with dp.Session(eps=10):
        assert integer_sum(frame, (-10, 1000)) == 993
        assert exact_integers(frame.dp.plan.count("x", eps=1)) == [[3]]


@pytest.mark.parametrize("n", [999, 1000, 100_000])
def test_decimals_with_gaps_are_counted_and_added_at_any_size(n, kind):
    """Case 107: a Decimal column with nulls, on both sides of 1,000 rows."""
    cells = [Decimal("0.25"), None, Decimal("12.50"), Decimal("-0.75")]
    source = pa.array(cells, type=pa.decimal128(38, 2))
    table = pl.DataFrame({"x": pl.from_arrow(source).gather(np.arange(n) % 4)})
    if kind == "pandas":
        frame = pd.DataFrame({"x": arrow(table["x"].to_list(), pa.decimal128(38, 2))})
    else:
        frame = table.lazy() if kind == "lazy" else table
    full, rest = divmod(n, 4)
    times = [full + (i < rest) for i in range(4)]
    with dp.Session(eps=10):
        assert exact_integers(frame.dp.plan.count("x", eps=1)) == [[n - times[1]]]
        bound = frame.dp.plan.clip_sum("x", bounds=(-0.5, 10), eps=1)
        total = exact_integers(bound)[0][0] * bound.plan.parts[0].layout.grid.step
        assert total == times[0] * Fraction(1, 4) + times[2] * 10 - times[3] * Fraction(1, 2)


def test_infinities_are_clipped_and_gaps_left_out(kind):
    """Case 5: [inf, -inf, 5] within (0, 10) is 10, 0 and 5."""
    table = pl.DataFrame({"x": [math.inf, -math.inf, 5.0, math.nan, None]})
    frame = table.to_pandas() if kind == "pandas" else table.lazy() if kind == "lazy" else table
    with dp.Session(eps=10):
        bound = frame.dp.plan.clip_sum("x", bounds=(0, 10), eps=1)
        assert exact_integers(bound)[0][0] * bound.plan.parts[0].layout.grid.step == 15
        mean = frame.dp.plan.clip_mean("x", bounds=(0, 10), eps=1)
        (u,), (v,) = exact_integers(mean)
        k = mean.plan.parts[0].layout.grid.count
        assert (u, v) == (15 * k // 10, 3 * k - 15 * k // 10)


def test_ties_go_to_the_even_step(kind):
    """On a grid of step 1, 0.5, 1.5, 2.5 and 3.5 are 0, 2, 2 and 4; below zero alike."""
    values = [0.5, 1.5, 2.5, 3.5, -0.5, -1.5, -2.5]
    table = pl.DataFrame({"x": values})
    frame = table.to_pandas() if kind == "pandas" else table.lazy() if kind == "lazy" else table
    with dp.Session(eps=100):
        bound = frame.dp.plan.clip_sum("x", bounds=(-(2**30), 2**29), eps=1)
        step = bound.plan.parts[0].layout.grid.step
        assert step == 2  # 3 * 2**29 needs 2**30 steps of 2
        assert exact_integers(bound)[0][0] == 0 + 1 + 1 + 2 + 0 - 1 - 1
        block = frame.dp.plan.clip_mean("x", bounds=(-(2**29), 2**29), eps=1)
        assert block.plan.parts[0].layout.grid.step == 1
        (u,), _ = exact_integers(block)
        assert u - 7 * 2**29 == 0 + 2 + 2 + 4 + 0 - 2 - 2


def test_pandas_half_and_extended_floats_and_foreign_byte_orders_give_the_same_integers():
    values = [1.5, 2.25, math.nan, 7.0, math.inf]
    want = None
    with dp.Session(eps=100):
        for dtype in ("float64", "float16", "float32", "longdouble", ">f8", ">f4"):
            frame = pd.DataFrame({"x": np.array(values, dtype=dtype)})
            got = exact_integers(frame.dp.plan.clip_mean("x", bounds=(0, 5), eps=1))
            want = want or got
            assert got == want, dtype
        for dtype in (">i4", "<i2", ">u8"):
            frame = pd.DataFrame({"x": np.array([1, 2, 3, 250], dtype=dtype)})
            assert integer_sum(frame, (0, 100)) == 106, dtype


@pytest.mark.parametrize(
    "cells",
    [
        [1, 2, None],
        [1.5, math.nan],
        [Decimal("1.50"), Decimal("2.25")],
        [Decimal("NaN"), None],
        [True, None],
        ["1", "2"],
        [],
        [None, None],
    ],
)
@pytest.mark.parametrize("verb", ["clip_sum", "clip_mean"])
def test_object_columns_are_refused_by_dtype_and_nothing_is_spent(cells, verb):
    """Cases 10 and 109: numbers, Decimals or text in an object column; what the cells hold makes no difference."""
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    with dp.Session(eps=1) as s:
        with pytest.raises(dp.InputError) as e:
            getattr(frame.dp, verb)("x", bounds=(0, 10), eps=1)
        with pytest.raises(dp.InputError):
            frame.dp.agg(n=dp.count(), y=getattr(dp, verb)("x", bounds=(0, 10)), eps=1)
        assert "astype(float)" in str(e.value)
        assert s.spent == 0
        assert s.report().height == 0


@pytest.mark.parametrize(
    "dtype", [pl.String, pl.Categorical, pl.Date, pl.Duration("us"), pl.List(pl.Int64), pl.Object]
)
def test_columns_that_are_not_numbers_are_refused_and_nothing_is_spent(dtype):
    """Cases 109 and 110."""
    frame = pl.DataFrame({"x": pl.Series([], dtype=dtype)})
    with dp.Session(eps=1) as s:
        for table in (frame, frame.lazy()):
            with pytest.raises(dp.InputError, match="Hint"):
                table.dp.clip_sum("x", bounds=(0, 10), eps=1)
        assert s.report().height == 0


def test_text_of_numbers_is_never_coerced():
    """Case 109, pandas: str columns of every kind."""
    with dp.Session(eps=1) as s:
        for dtype in (object, "string", "string[pyarrow]"):
            frame = pd.DataFrame({"x": pd.Series(["1", "2", "x"], dtype=dtype)})
            with pytest.raises(dp.InputError, match="Hint: "):
                frame.dp.clip_sum("x", bounds=(0, 10), eps=1)
        assert s.report().height == 0


def test_rows_of_lazy_plans_and_filters_are_the_frames_rows(kind):
    """A filter before ``.dp`` is the analyst's: missing and filtered rows never reach the sum."""
    table = pl.DataFrame({"x": [1.0, 2.0, math.nan, None, 50.0], "keep": [True, False, True, True, True]})
    if kind == "pandas":
        frame = table.to_pandas()
        frame = frame[frame["keep"]]
    else:
        frame = (table.lazy() if kind == "lazy" else table).filter(pl.col("keep"))
    with dp.Session(eps=10):
        assert exact_integers(frame.dp.plan.count(eps=1)) == [[4]]
        assert exact_integers(frame.dp.plan.count("x", eps=1)) == [[2]]
        bound = frame.dp.plan.clip_sum("x", bounds=(0, 10), eps=1)
        assert exact_integers(bound)[0][0] * bound.plan.parts[0].layout.grid.step == 11
