"""What a release looks like never tells two neighbouring frames apart.

Of every pair of frames below, one has a row that is special: NaN, null, infinite, enormous, of a new group,
the last of its group, without a key, or a cell that no one expects in its column. Everything that may be seen
beside the noisy numbers must be the same on both: exception and its words, warnings, type, shape, column
names and their order, dtypes, keys and their order, facts, and the row of the account.
"""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from looks import BOUNDS, EPS, GROUPED, INF, KEYS, NAN, SCHEMA, UNGROUPED, arrow, assert_alike, frame, masked

import dpframe as dp
from conftest import as_kind, exact_integers

ALL = {f"ungrouped {k}": v for k, v in UNGROUPED.items()} | {f"grouped {k}": v for k, v in GROUPED.items()}
each_question = pytest.mark.parametrize("ask", ALL.values(), ids=ALL)
BASE = [(1.0, "a"), (2.5, "b"), (-9.0, "a"), (40.0, None)] * 3


SPECIAL = {
    "NaN": (NAN, "a"),
    "null": (None, "a"),
    "inf": (INF, "a"),
    "-inf": (-INF, "b"),
    "1e300": (1e300, "a"),
    "denormal": (5e-324, "a"),
    "-0.0": (-0.0, "b"),
    "a new key": (1.0, "never seen"),
    "a listed key that did not occur": (1.0, "absent"),
    "a null key": (1.0, None),
    "an empty text key": (1.0, ""),
    "a key with a null character": (1.0, "a\0"),
    "nothing at all": (None, None),
}


@pytest.mark.sweep
@each_question
@pytest.mark.parametrize("row", SPECIAL.values(), ids=SPECIAL)
def test_a_special_row_that_appears_changes_nothing_that_is_seen(kind, ask, row):
    """Cases 1, 5 and 62: one row more, and one row become another."""
    assert_alike(frame(kind, BASE), frame(kind, [*BASE, row]), ask)
    assert_alike(frame(kind, BASE), frame(kind, [row, *BASE[1:]]), ask)


@pytest.mark.sweep
@each_question
@pytest.mark.parametrize("row", [(1.0, "a"), (NAN, "a"), (None, None), (INF, "other")], ids=str)
def test_an_empty_frame_looks_like_a_frame_of_one_row(kind, ask, row):
    """Cases 80, 82 and 118: the empty frame has the same schema, the same row set and the same price."""
    seen = assert_alike(frame(kind, []), frame(kind, [row]), ask)
    assert seen["error"] is None
    assert len(seen["account"]) == 1


@each_question
def test_an_emptied_group_stays_in_its_place(kind, ask):
    """Cases 62 and 82: the only row of 'b' vanishes or moves; 'b' is still released."""
    with_b = [*[r for r in BASE if r[1] != "b"], (2.0, "b")]
    assert_alike(frame(kind, with_b), frame(kind, with_b[:-1]), ask)
    assert_alike(frame(kind, with_b), frame(kind, [*with_b[:-1], (2.0, "a")]), ask)


@each_question
def test_the_order_of_rows_is_never_seen(kind, ask):
    """Case 71: groups come in the order of ``keys``, in whatever order the rows are."""
    seen = assert_alike(frame(kind, BASE), frame(kind, BASE[::-1]), ask)
    keys = seen.get("keys")
    assert keys in ([], None) or [list(dict.fromkeys(k)) for k in keys] == [KEYS]


@pytest.mark.sweep
@each_question
@pytest.mark.parametrize("n", [1, 2, 999, 1000, 99_999])
def test_sizes_at_which_engines_change_their_path_are_not_seen(kind, ask, n):
    """Case 113: one row more takes another path through the engine, and looks the same."""
    rows = (BASE * (n // len(BASE) + 1))[: n + 1]
    big = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    first, second = (
        (as_kind(kind, big.head(n)), as_kind(kind, big))
        if kind != "pandas"
        else (frame(kind, rows[:n]), frame(kind, rows))
    )
    assert_alike(first, second, ask)


PANDAS_TWINS = {
    "Int64": lambda: (pd.Series([1, 2, 50], dtype="Int64"), pd.Series([1, pd.NA, 50], dtype="Int64")),
    "UInt8": lambda: (pd.Series([1, 2, 250], dtype="UInt8"), pd.Series([pd.NA] * 3, dtype="UInt8")),
    "Float64 NaN": lambda: (
        masked(pd.arrays.FloatingArray, [1, 2, 5], [0, 0, 0], float),
        masked(pd.arrays.FloatingArray, [1, NAN, 5], [0, 0, 0], float),
    ),
    "Float64 NA": lambda: (
        masked(pd.arrays.FloatingArray, [1, 2, 5], [0, 0, 0], float),
        masked(pd.arrays.FloatingArray, [1, INF, 5], [1, 0, 0], float),
    ),
    "boolean": lambda: (
        pd.Series([True, False, True], dtype="boolean"),
        pd.Series([pd.NA] * 3, dtype="boolean"),
    ),
    "int64[pyarrow]": lambda: (arrow([1, 2, 2**62], pa.int64()), arrow([1, None, 2**62], pa.int64())),
    "double[pyarrow]": lambda: (arrow([1.0, 2, 5], pa.float64()), arrow([NAN, None, -INF], pa.float64())),
    "decimal[pyarrow]": lambda: (
        arrow([Decimal("1.00"), Decimal("2.50")], pa.decimal128(38, 2)),
        arrow([Decimal("1.00"), Decimal("9" * 30)], pa.decimal128(38, 2)),
    ),
    "bool[pyarrow]": lambda: (arrow([True, False], pa.bool_()), arrow([True, None], pa.bool_())),
    "float32": lambda: (pd.Series([1, 2], dtype="float32"), pd.Series([NAN, INF], dtype="float32")),
    "float16": lambda: (pd.Series([1, 2], dtype="float16"), pd.Series([NAN, INF], dtype="float16")),
}


@pytest.mark.parametrize("ask", UNGROUPED.values(), ids=UNGROUPED)
@pytest.mark.parametrize("twins", PANDAS_TWINS.values(), ids=PANDAS_TWINS)
def test_missing_cells_of_pandas_extension_dtypes_are_not_seen(twins, ask):
    """Case 8: ``pd.NA``, and NaN inside Float64 or beside a null."""
    first, second = (pd.DataFrame({"x": x, "g": "a"}) for x in twins())
    assert assert_alike(first, second, ask)["error"] is None


@pytest.mark.skipif(np.finfo(np.longdouble).max <= np.finfo(float).max, reason="no extended floats here")
@pytest.mark.parametrize("ask", UNGROUPED.values(), ids=UNGROUPED)
def test_an_extended_float_beyond_float64_makes_no_warning(ask):
    """NumPy warns when it turns such a cell into a float64; a warning would tell that the cell is there."""
    cells = np.array([1, 2, 3], dtype=np.longdouble)
    huge = cells.copy()
    huge[1] = np.longdouble("1e4000")
    assert_alike(pd.DataFrame({"x": cells}), pd.DataFrame({"x": huge}), ask)


def test_pandas_nullable_columns_give_the_integers_of_their_float_twin(no_noise, quiet):
    """Case 8: Int64, Float64 and boolean with ``pd.NA`` add up as the float64 column with NaN does."""
    cells = [1, None, 0, 1, None]
    floats = pd.DataFrame({"x": [NAN if x is None else float(x) for x in cells]})
    with dp.Session(eps=100):
        for dtype in ("Int64", "Int8", "Float64", "Float32", "boolean", "int64[pyarrow]", "bool[pyarrow]"):
            twin = pd.DataFrame({"x": pd.Series(cells, dtype=dtype)})
            for ask in (
                lambda f: f.dp.plan.count("x", eps=1),
                lambda f: f.dp.plan.agg(n=dp.count(), m=dp.clip_mean("x", bounds=(0, 0.75)), eps=1),
                lambda f: f.dp.plan.clip_sum("x", bounds=(0.25, 1.5), eps=1),
            ):
                assert exact_integers(ask(twin)) == exact_integers(ask(floats)), dtype


@pytest.mark.parametrize(
    "dtype",
    [pl.Int8, pl.Int64, pl.UInt64, pl.Int128, pl.Float32, pl.Float64, pl.Boolean, pl.Decimal(38, 2), pl.Null],
    ids=str,
)
@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_a_column_without_any_value_is_answered_like_any_other(kind, dtype, rows, quiet):
    """Case 7: the sum of nothing is 0, its mean the midpoint; the price is that of a full column."""
    if kind == "pandas" and dtype in (pl.Int128, pl.Null, pl.Decimal):
        pytest.skip("pandas turns it into another column")
    table = pl.DataFrame({"x": pl.Series([None] * rows, dtype=dtype)})
    empty = as_kind(kind, table)
    if kind == "pandas":
        empty = pd.DataFrame({"x": arrow(table["x"].to_list(), table["x"].to_arrow().type)})
    with dp.Session(eps=10**9) as s:
        assert abs(empty.dp.clip_sum("x", bounds=BOUNDS, eps=EPS)) <= 40 * 10 / EPS
        mean = empty.dp.clip_mean("x", bounds=BOUNDS, eps=EPS)
        assert abs(mean - 3.5) <= 40 * 13 / EPS
        assert empty.dp.count("x", eps=EPS) == 0
        assert empty.dp.count(eps=EPS) == rows
        assert s.spent.eps == 4 * EPS
        assert math.isfinite(float(s.spent))


@pytest.mark.parametrize("kind", ["polars", "lazy"])
@pytest.mark.parametrize("ask", UNGROUPED.values(), ids=UNGROUPED)
def test_a_measure_of_dtype_null_is_alike_with_and_without_rows(kind, ask):
    """Case 118: empty Polars lists make dtype Null."""
    frames = (
        pl.DataFrame({"x": pl.Series([None] * n, dtype=pl.Null), "g": pl.Series(["a"] * n, dtype=pl.String)})
        for n in (0, 1)
    )
    first, second = (as_kind(kind, f) for f in frames)
    assert assert_alike(first, second, ask)["error"] is None


@pytest.mark.parametrize("kind", ["polars", "lazy"])
@pytest.mark.parametrize("keys", [["a", None], [None], [1, 2], []], ids=str)
def test_a_key_of_dtype_null_is_alike_with_and_without_rows(kind, keys):
    """Case 118: every listed key is released; the null key counts the rows."""

    def ask(f):
        return f.dp.groupby("g", keys=keys).dp_agg(n=dp.count(), c=dp.count("x"), eps=EPS)

    first, second = (
        as_kind(
            kind,
            pl.DataFrame(
                {"x": [1.0] * n, "g": pl.Series([None] * n, dtype=pl.Null)},
                schema_overrides={"x": pl.Float64},
            ),
        )
        for n in (0, 2)
    )
    seen = assert_alike(first, second, ask)
    assert seen["error"] is None
    assert seen["shape"][0] == len(keys)
    with dp.Session(eps=10**9):
        assert ask(second)["n"].to_list() == [2 if k is None else 0 for k in keys]


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy"])
def test_a_frame_without_columns_can_be_counted(kind, quiet):
    """Case 118: zero columns."""
    table = pd.DataFrame(index=range(5)) if kind == "pandas" else as_kind(kind, pl.DataFrame(height=5))
    empty = pd.DataFrame() if kind == "pandas" else as_kind(kind, pl.DataFrame())
    with dp.Session(eps=10**9):
        assert table.dp.count(eps=EPS) == 5
        assert empty.dp.count(eps=EPS) == 0
