"""What a release looks like never tells two neighbouring frames apart.

Of every pair of frames below, one has a row that is special: NaN, null, infinite, enormous, of a new group,
the last of its group, without a key, or a cell that no one expects in its column. Everything that may be seen
beside the noisy numbers must be the same on both: exception and its words, warnings, type, shape, column
names and their order, dtypes, keys and their order, facts, and the row of the account.
"""

from __future__ import annotations

import datetime as dt
import math
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import as_kind, as_polars, exact_integers

import dpframe as dp

NAN, INF = math.nan, math.inf
EPS = 10**6
BOUNDS = (-3, 10)


def looks(frame, ask) -> dict:
    """All that may be seen of one release, noisy numbers left out (but whether they are finite)."""
    seen: dict = {"error": None}
    with warnings.catch_warnings(record=True) as caught, dp.Session(eps=10**9) as s:
        warnings.simplefilter("always")
        try:
            value = ask(frame)
        except Exception as e:  # whatever it is, it must be the same on both frames
            seen["error"] = (type(e), str(e))
        else:
            seen |= of_value(value)
            seen["facts"] = [{k: v for k, v in r.facts.items() if k != "time"} for r in s.releases]
        seen["account"] = s.report().drop("time").rows()
        seen["spent"] = s.spent
    seen["warnings"] = sorted((w.category.__name__, str(w.message)) for w in caught)
    return seen


def of_value(value) -> dict:
    if isinstance(value, int | float):
        return {"type": type(value), "finite": math.isfinite(value)}
    table = value
    names = [str(c) for c in table.columns]
    keys = [c for c in names if c in ("g", "h")]
    return {
        "type": type(value),
        "shape": table.shape,
        "columns": names,
        "dtypes": [str(t) for t in table.dtypes],
        "index": list(table.index) if isinstance(table, pd.DataFrame) else None,
        "keys": [[None if pd.isna(x) else x for x in table[c]] for c in keys],
        "finite": all(
            np.isfinite(np.asarray(table[c], dtype=float)).all()
            for c in names
            if c not in (*keys, "bin", "lower", "upper")
        ),
    }


def assert_alike(first, second, ask):
    a, b = looks(first, ask), looks(second, ask)
    assert a == b
    assert a.get("finite", True)
    return a


KEYS = ["b", None, "absent", "a"]


def _without(table, name):
    """The table without the column that was drawn."""
    assert name in table.columns
    return table.drop(columns=name) if isinstance(table, pd.DataFrame) else table.drop(name)


UNGROUPED = {
    "count": lambda f: f.dp.count(eps=EPS),
    "count x": lambda f: f.dp.count("x", eps=EPS),
    "sum": lambda f: f.dp.clip_sum("x", bounds=BOUNDS, eps=EPS),
    "mean": lambda f: f.dp.clip_mean("x", bounds=BOUNDS, eps=EPS),
    "mean n": lambda f: f.dp.clip_mean("x", bounds=BOUNDS, n=9, eps=EPS),
    "std": lambda f: f.dp.clip_std("x", bounds=BOUNDS, eps=EPS),
    "vector": lambda f: f.dp.vector_mean(["x"], norm=3, eps=EPS),
    "histogram": lambda f: f.dp.histogram("x", edges=[-3, 0, 10], eps=EPS),
    "n_unique": lambda f: f.dp.n_unique("x", eps=EPS),
    "median": lambda f: f.dp.median("x", bounds=BOUNDS, eps=EPS),
    "quantiles": lambda f: f.dp.quantile("x", [0, 0.5, 1], bounds=BOUNDS, eps=EPS),
    "top_k": lambda f: _without(f.dp.top_k("g", 2, candidates=[*KEYS, "z"], eps=EPS), "g"),
    "bounds": lambda f: f.dp.agg(dp.bounds("x", range=(-8, 8)).alias("x"), eps=EPS),
    "agg": lambda f: f.dp.agg(
        n=dp.count(),
        c=dp.count("x"),
        s=dp.clip_sum("x", bounds=BOUNDS),
        m=dp.clip_mean("x", B=1),
        eps=EPS,
        ci=0.9,
    ),
}
GROUPED = {
    "count": lambda f: f.dp.groupby("g", keys=KEYS).count(eps=EPS),
    "count x": lambda f: f.dp.groupby("g", keys=KEYS).count("x", eps=EPS),
    "sum": lambda f: f.dp.groupby("g", keys=KEYS).clip_sum("x", bounds=BOUNDS, eps=EPS),
    "mean": lambda f: f.dp.groupby("g", keys=KEYS).clip_mean("x", bounds=BOUNDS, eps=EPS),
    "var": lambda f: f.dp.groupby("g", keys=KEYS).clip_var("x", bounds=BOUNDS, eps=EPS),
    "histogram": lambda f: f.dp.groupby("g", keys=KEYS).histogram("x", edges=[-3, 0, 10], eps=EPS),
    "quantiles": lambda f: f.dp.groupby("g", keys=KEYS).quantile("x", [0.1, 0.9], bounds=BOUNDS, eps=EPS),
    "value_counts": lambda f: f.dp.value_counts("g", keys=KEYS, eps=EPS),
    "agg with choices": lambda f: f.dp.groupby("g", keys=KEYS).dp_agg(
        n=dp.count(), k=dp.n_unique("x"), m=dp.median("x", bounds=BOUNDS), eps=EPS, ci=0.9
    ),
    "agg": lambda f: f.dp.groupby("g", keys=KEYS).dp_agg(
        n=dp.count(), s=dp.clip_sum("x", bounds=BOUNDS), m=dp.clip_mean("x", bounds=BOUNDS), eps=EPS, ci=0.9
    ),
}
ALL = {f"ungrouped {k}": v for k, v in UNGROUPED.items()} | {f"grouped {k}": v for k, v in GROUPED.items()}
each_question = pytest.mark.parametrize("ask", ALL.values(), ids=ALL)

SCHEMA = {"x": pl.Float64, "g": pl.String}
BASE = [(1.0, "a"), (2.5, "b"), (-9.0, "a"), (40.0, None)] * 3


def frame(kind, rows):
    if kind != "pandas":
        return as_kind(kind, pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    x = np.array([NAN if r[0] is None else r[0] for r in rows], dtype=float)
    return pd.DataFrame({"x": x, "g": pd.Series([r[1] for r in rows], dtype=object)})


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


@each_question
@pytest.mark.parametrize("row", SPECIAL.values(), ids=SPECIAL)
def test_a_special_row_that_appears_changes_nothing_that_is_seen(kind, ask, row):
    """Cases 1, 5 and 62: one row more, and one row become another."""
    assert_alike(frame(kind, BASE), frame(kind, [*BASE, row]), ask)
    assert_alike(frame(kind, BASE), frame(kind, [row, *BASE[1:]]), ask)


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


# ---- columns of other dtypes ----


def masked(array_type, values, missing, dtype):
    return pd.Series(array_type(np.array(values, dtype=dtype), np.array(missing, dtype=bool)))


def arrow(values, dtype):
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(values, type=dtype)])))


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


# ---- cells that nobody expects in a key column ----


class Hostile:
    """A cell that raises whatever is asked of it."""

    def __hash__(self):
        raise RuntimeError("secret in the hash")

    def __eq__(self, other):
        raise RuntimeError("secret in the comparison")

    def __bool__(self):
        raise RuntimeError("secret in the truth value")

    def __str__(self):
        raise RuntimeError("secret in the text")

    __repr__ = __str__


class EqualToAll(str):
    """Text that claims to equal everything; its own hash."""

    __slots__ = ()

    def __eq__(self, other):
        raise RuntimeError("secret")

    __hash__ = str.__hash__


ODD = {
    "list": [1, 2],
    "dict": {"a": 1},
    "bytes": b"a",
    "set": {1},
    "tuple": ("a",),
    "nested tuple with a list": ("a", [1]),
    "surrogate": "\ud800",
    "text with a surrogate": "a\udfff",
    "int": 7,
    "bool": True,
    "float": 1.5,
    "inf": INF,
    "NaN": NAN,
    "None": None,
    "NA": pd.NA,
    "NaT": pd.NaT,
    "Decimal": Decimal("1.5"),
    "Decimal NaN": Decimal("NaN"),
    "Decimal sNaN": Decimal("sNaN"),
    "complex NaN": complex(NAN, 1),
    "date": dt.date(2026, 1, 1),
    "datetime": dt.datetime(2026, 1, 1, 12),
    "aware datetime": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    "Timestamp": pd.Timestamp("2026-01-01"),
    "datetime64": np.datetime64("2026-01-01"),
    "datetime64 far away": np.datetime64("300000-01-01"),
    "timedelta64 NaT": np.timedelta64("NaT"),
    "Period": pd.Period("2026-01"),
    "Interval": pd.Interval(0, 1),
    "array": np.array([1, 2]),
    "empty array": np.array([]),
    "array of dimension 0": np.array(NAN),
    "Series": pd.Series([1, 2]),
    "frame": pd.DataFrame({"a": [1]}),
    "Polars series": pl.Series([1, 2]),
    "type": int,
    "str subclass": EqualToAll("a"),
    "np.str_": np.str_("a"),
    "huge int": 10**400,
    "hostile": Hostile(),
    "long text": "x" * 100_000,
}


def with_cell(cell, base):
    cells = np.empty(len(base) + 1, dtype=object)
    for i, x in enumerate([*base, cell]):
        cells[i] = x
    return pd.Series(cells, dtype=object)


@pytest.mark.parametrize("cell", ODD.values(), ids=ODD)
@pytest.mark.parametrize("base", [["a", "b", "a", None], [1, 2, 1, None], []], ids=["text", "ints", "empty"])
def test_an_odd_cell_in_an_object_key_column_is_not_seen(cell, base):
    """A cell of any type is an unlisted key (or the null key): it never raises, warns or changes a dtype."""
    keys = [1, 2, None] if base and base[0] == 1 else ["b", "a", None]
    calm = 3 if base and base[0] == 1 else "zz"
    first, second = (
        pd.DataFrame({"g": with_cell(x, base), "x": np.arange(len(base) + 1.0)}) for x in (calm, cell)
    )

    def ask(f):
        return f.dp.groupby("g", keys=keys).dp_agg(n=dp.count(), m=dp.clip_mean("x", bounds=BOUNDS), eps=EPS)

    assert assert_alike(first, second, ask)["error"] is None


@pytest.mark.parametrize("cell", ODD.values(), ids=ODD)
def test_an_odd_cell_in_an_object_column_that_is_counted_is_not_seen(cell):
    """``count("g")`` of an object column: no cell may stop it, or make it warn."""
    first, second = (pd.DataFrame({"g": with_cell(x, ["a", None])}) for x in ("b", cell))
    asks = (
        lambda f: f.dp.count("g", eps=EPS),
        lambda f: f.dp.agg(n=dp.count(), c=dp.count("g"), eps=EPS),
    )
    for ask in asks:
        assert assert_alike(first, second, ask)["error"] is None


@pytest.mark.parametrize("cell", ODD.values(), ids=ODD)
def test_an_odd_cell_in_a_column_that_is_not_asked_about_is_not_seen(cell):
    first, second = (pd.DataFrame({"other": with_cell(x, ["a"]), "x": [1.0, 2.0]}) for x in ("b", cell))
    for ask in (UNGROUPED["count"], UNGROUPED["agg"]):
        assert assert_alike(first, second, ask)["error"] is None


@pytest.mark.parametrize("dtype", ["string", "string[python]", "str", object])
def test_text_that_is_not_unicode_is_an_unlisted_key_in_every_text_dtype(dtype):
    """A lone surrogate can't be encoded; it must not stop the release (where the dtype can hold it at all)."""
    try:
        second = pd.DataFrame({"g": pd.Series(["a", "\ud800", None], dtype=dtype)})
    except UnicodeEncodeError:
        pytest.skip(f"{dtype} can't hold it")
    first = pd.DataFrame({"g": pd.Series(["a", "b", None], dtype=dtype)})
    if str(first["g"].dtype) != str(second["g"].dtype):
        pytest.skip("pandas chooses another dtype for it")

    def ask(f):
        return f.dp.groupby("g", keys=["a", "b", None]).count(eps=EPS)

    assert assert_alike(first, second, ask)["error"] is None
    assert assert_alike(first, second, lambda f: f.dp.count("g", eps=EPS))["error"] is None
    with dp.Session(eps=10**9):
        assert ask(second)["count"].tolist() == [1, 0, 1]


def test_a_listed_key_that_is_not_unicode_is_refused_where_no_cell_can_hold_it(kind, budget):
    """A parameter, so it may be refused; in words of its own, and at no cost."""
    table = as_kind(kind, pl.DataFrame({"g": ["a"]}))
    if kind == "pandas":
        table = table.astype({"g": "string"})
    with pytest.raises(dp.InputError):
        table.dp.groupby("g", keys=["a", "\ud800"]).count(eps=EPS)
    assert budget.report().height == 0


@pytest.mark.parametrize(
    "cells", [[Decimal("1.00"), None], [Decimal("9" * 40), Decimal("1.00")]], ids=["small", "wide"]
)
def test_a_dtype_that_the_engine_cannot_read_is_decided_by_the_schema(cells, budget):
    """256-bit decimals of Arrow: refused by dtype or answered, never a panic of the engine."""
    frame = pd.DataFrame({"x": arrow(cells, pa.decimal256(50, 2))})
    with pytest.raises(dp.InputError):
        frame.dp.clip_sum("x", bounds=BOUNDS, eps=EPS)
    assert budget.report().height == 0
    assert frame.dp.count(eps=EPS) == 2
    assert frame.dp.count("x", eps=EPS) == sum(x is not None for x in cells)


def test_a_panic_of_the_engine_is_a_failed_release_that_quotes_nothing(kind, budget, monkeypatch):
    """Polars panics are no ``Exception``; what they say may hold cells, and the charge stands."""

    def collect(*args, **kwargs):
        raise pl.exceptions.PanicException("secret cell 12345")

    table = as_kind(kind, pl.DataFrame({"x": [1.0]}))
    monkeypatch.setattr(pl.LazyFrame, "collect", collect)
    with pytest.raises(dp.ReleaseFailed) as e:
        table.dp.clip_sum("x", bounds=BOUNDS, eps=EPS)
    assert "12345" not in str(e.value)
    assert e.value.__cause__ is None
    assert e.value.__context__ is None
    assert budget.report().height == 1


def test_categories_that_come_from_the_data_are_not_seen():
    """A pandas Categorical: a new category, an unused one, another order of categories."""
    first = pd.DataFrame({"g": pd.Categorical(["a", "b", None]), "x": [1.0, 2.0, 3.0]})
    others = [
        pd.Categorical(["a", "zz", None]),
        pd.Categorical(["a", "b", None], categories=["b", "a", "never"]),
        pd.Categorical(["a", "b", None], categories=["b", "a"], ordered=True),
        pd.Categorical(["a", None, None]),
    ]
    for g in others:
        for ask in (GROUPED["agg"], GROUPED["count"]):
            assert_alike(first, first.assign(g=g), ask)


@pytest.mark.parametrize("kind", ["polars", "lazy"])
def test_polars_categories_are_not_seen(kind):
    first, second = (
        as_kind(kind, pl.DataFrame({"g": pl.Series(g, dtype=pl.Categorical), "x": [1.0, 2.0, 3.0]}))
        for g in (["a", "b", None], ["zz", "a", "b"])
    )
    for ask in GROUPED.values():
        assert assert_alike(first, second, ask)["error"] is None
    with dp.Session(eps=1) as s:  # case 68: categories are not public
        with pytest.raises(dp.InputError):
            first.dp.groupby("g", keys="declared").count(eps=1)
        assert s.report().height == 0


# ---- keys: the cases by number ----


@pytest.fixture
def budget(quiet):
    with dp.Session(eps=10**12) as s:
        yield s


def test_six_hundred_absent_groups_have_noise_of_their_own(kind, quiet):
    """Case 62: absent groups all had the same noise elsewhere.

    At eps .01 a count's noise has scale 100: two given draws agree with probability 1/200, so of 600
    draws at least 200 distinct values occur (about 400 are expected; each step of the bound is many
    standard deviations away). The mean |noise| of 600 is within 50 % of 100: 12 standard errors.
    """
    table = pl.DataFrame({"g": ["a"] * 5, "x": [1.0] * 5})
    keys = [f"absent {i}" for i in range(600)]
    with dp.Session(eps=100):
        out = as_polars(
            as_kind(kind, table)
            .dp.groupby("g", keys=["a", *keys])
            .dp_agg(
                n=dp.count(), s=dp.clip_sum("x", bounds=(0, 1)), m=dp.clip_mean("x", bounds=(0, 1)), eps=0.01
            )
        )
        n = as_polars(as_kind(kind, table).dp.groupby("g", keys=keys).count(eps=0.01))["count"]
    assert n.n_unique() >= 200
    assert 50 < n.abs().mean() < 150
    assert out["n"].n_unique() >= 200
    assert out["s"].n_unique() >= 590  # on a grid of 2**30 steps
    assert out["m"].n_unique() >= 60  # three in four are cut to the bounds by noise like this


def test_no_keys_make_an_empty_table_of_the_right_schema(kind, budget):
    """Case 64."""
    table = as_kind(kind, pl.DataFrame({"g": ["a"], "x": [1.0]}))
    out = table.dp.groupby("g", keys=[]).dp_agg(n=dp.count(), m=dp.clip_mean("x", bounds=(0, 1)), eps=1)
    full = table.dp.groupby("g", keys=["a"]).dp_agg(n=dp.count(), m=dp.clip_mean("x", bounds=(0, 1)), eps=1)
    assert [str(t) for t in out.dtypes] == [str(t) for t in full.dtypes]
    assert list(out.columns) == list(full.columns) == ["g", "n", "m"]
    assert out.shape == (0, 3)


def test_no_keys_cost_nothing(kind, quiet):
    """Case 64: a table without rows says nothing."""
    table = as_kind(kind, pl.DataFrame({"g": ["a"], "x": [1.0]}))
    with dp.Session(eps=1) as s:
        table.dp.groupby("g", keys=[]).count(eps=1)
        assert s.spent == 0


GROUP_NULLS = ["a", None, "b"]


@pytest.mark.parametrize(("kind", "runs"), [("polars", 20), ("lazy", 20), ("pandas", 3)])
def test_nulls_in_two_key_columns_make_the_same_groups_in_every_run(kind, runs, budget):
    """Case 67: a million rows, nulls in both columns; every group is there, and every count is right."""
    rng = np.random.default_rng(67)
    n = 1_000_000
    g, h = rng.integers(0, 3, n), rng.integers(0, 4, n)
    numbers = [1, None, 3, 99]
    table = pl.DataFrame(
        {
            "g": pl.Series(GROUP_NULLS, dtype=pl.String).gather(g),
            "h": pl.Series(numbers, dtype=pl.Int64).gather(h),
        }
    )
    if kind == "pandas":
        frame = pd.DataFrame(
            {
                "g": pd.Series(GROUP_NULLS, dtype=object).take(g).array,
                "h": pd.Series(numbers, dtype="Int64").take(h).array,
            }
        )
    else:
        frame = as_kind(kind, table)
    keys = {"g": ["b", None, "a"], "h": [None, 3, 1, 7]}
    pairs = [(a, b) for a in keys["g"] for b in keys["h"]]
    of = dict.fromkeys(pairs, 0)
    for i, a in enumerate(GROUP_NULLS):
        for j, b in enumerate(numbers):
            if (a, b) in of:
                of[a, b] = int(((g == i) & (h == j)).sum())
    for _ in range(runs):
        out = as_polars(frame.dp.groupby("g", "h", keys=keys).count(eps=EPS))
        assert list(zip(out["g"].to_list(), out["h"].to_list())) == pairs
        assert out["count"].to_list() == [of[p] for p in pairs]


def test_declared_categories_are_those_of_an_enum(budget):
    """Case 68: unobserved ones included; a pandas Categorical's only when declared public."""
    enum = pl.Enum(["low", "mid", "high"])
    for kind in ("polars", "lazy"):
        frame = as_kind(kind, pl.DataFrame({"g": pl.Series(["high", "high"], dtype=enum)}))
        out = frame.dp.groupby("g", keys="declared").count(eps=EPS)
        assert out["g"].to_list() == ["low", "mid", "high"]
        assert out["count"].to_list() == [0, 0, 2]
        assert out.schema["g"] == enum
    frame = pd.DataFrame({"g": pd.Categorical(["high", None], categories=["low", "high"])})
    spent = budget.spent
    with pytest.raises(dp.InputError, match=r"dp\.public"):
        frame.dp.groupby("g", keys="declared").count(eps=EPS)
    assert budget.spent == spent
    out = frame.dp.groupby("g", keys=dp.public(frame["g"].cat.categories)).count(eps=EPS)
    assert out["g"].tolist() == ["low", "high"]
    assert out["count"].tolist() == [0, 1]


def test_too_many_combinations_are_refused_before_they_are_made(kind, budget):
    """Case 68: the product of the lists is what counts."""
    table = as_kind(kind, pl.DataFrame({"g": [1], "h": [1]}, schema={"g": pl.Int64, "h": pl.Int64}))
    with pytest.raises(dp.InputError, match="combinations"):
        table.dp.groupby("g", "h", keys={"g": range(10**4), "h": range(10**4)}).count(eps=1)
    with pytest.raises(dp.InputError):
        table.dp.groupby("g", keys=range(10**9)).count(eps=1)
    assert budget.report().height == 0


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32], ids=str)
def test_float_keys_know_one_zero_and_one_missing(kind, dtype, budget):
    """Case 70: -0.0 and 0.0 are one group; NaN and null are one group, listed as None."""
    cells = [0.0, -0.0, -0.0, NAN, None, 1.5, INF]
    table = pl.DataFrame({"g": pl.Series(cells, dtype=dtype)})
    frame = as_kind(kind, table)
    for zero, missing in ((0.0, None), (-0.0, NAN)):
        out = as_polars(frame.dp.groupby("g", keys=[missing, 1.5, zero, INF]).count(eps=EPS))
        assert out["count"].to_list() == [2, 1, 3, 1]
        assert not math.copysign(1, out["g"][2]) < 0
    for twice in ([0.0, -0.0], [None, NAN]):
        with pytest.raises(dp.InputError, match="more than once"):
            frame.dp.groupby("g", keys=twice).count(eps=EPS)


@pytest.mark.parametrize("dtype", ["Float64", "Float32", "double[pyarrow]", "float16"])
def test_float_keys_of_other_pandas_dtypes_are_grouped_alike(dtype, budget):
    """Case 70, pandas: nullable, Arrow and half floats."""
    if dtype == "double[pyarrow]":
        g = arrow([0.0, -0.0, NAN, None, 1.5], pa.float64())
    elif dtype == "float16":
        g = pd.Series([0.0, -0.0, NAN, NAN, 1.5], dtype=dtype)
    else:
        g = masked(pd.arrays.FloatingArray, [0.0, -0.0, NAN, 1, 1.5], [0, 0, 0, 1, 0], dtype.lower())
    out = pd.DataFrame({"g": g}).dp.groupby("g", keys=[None, 1.5, 0]).count(eps=EPS)
    assert out["count"].tolist() == [2, 1, 2]
    assert str(out["g"].dtype) == dtype


def test_groups_come_in_the_order_of_their_keys(kind, budget):
    """Case 71: on every engine, and in every run."""
    rng = np.random.default_rng(71)
    keys = [int(k) for k in rng.permutation(1000)]
    table = pl.DataFrame({"g": rng.integers(0, 2000, 5000)})
    for _ in range(5):
        out = as_polars(as_kind(kind, table).dp.groupby("g", keys=keys).count(eps=EPS))
        assert out["g"].to_list() == keys
    want = np.bincount(table["g"].to_numpy(), minlength=2000)[keys]
    assert out["count"].to_list() == want.tolist()


def test_the_grouping_column_can_be_measured(kind, budget):
    """Case 73."""
    table = pl.DataFrame({"age": pl.Series([20, 20, 70, None], dtype=pl.Int64)})
    frame = as_kind(kind, table)
    if kind == "pandas":
        frame = frame.astype({"age": "Int64"})
    out = as_polars(
        frame.dp.groupby("age", keys=[20, 70, 30, None]).dp_agg(
            m=dp.clip_mean("age", bounds=(0, 60)), c=dp.count("age"), n=dp.count(), eps=EPS
        )
    )
    assert out["c"].to_list() == [2, 1, 0, 0]
    assert out["n"].to_list() == [2, 1, 0, 1]
    assert out["m"].to_list() == pytest.approx([20, 60, 30, 30], abs=0.01)


def test_a_duplicate_of_a_used_column_is_refused_and_of_another_is_not(budget):
    """Case 74."""
    twice = pd.DataFrame([[1.0, 2.0, "a"], [3.0, 4.0, "b"]], columns=["x", "x", "g"])
    for ask in (
        lambda: twice.dp.clip_sum("x", bounds=BOUNDS, eps=1),
        lambda: twice.dp.count("x", eps=1),
        lambda: twice.dp.groupby("x", keys=[1.0]).count(eps=1),
        lambda: twice.dp.agg(n=dp.count(), s=dp.clip_sum("x", bounds=BOUNDS), eps=1),
    ):
        with pytest.raises(dp.InputError, match="2 columns named 'x'"):
            ask()
    assert budget.report().height == 0
    assert twice.dp.groupby("g", keys=["a", "b"]).count(eps=EPS)["count"].tolist() == [1, 1]
    assert twice.dp.count(eps=EPS) == 2
    also = pd.DataFrame([[1.0, 2.0, 5.0]], columns=["y", "y", "x"])
    assert round(also.dp.clip_sum("x", bounds=BOUNDS, eps=EPS), 2) == 5


@pytest.mark.parametrize(
    "name", [0, -1, ("a", 1), 2.5, dt.date(2026, 1, 1), "dp", "", "x y", "k0", "n"], ids=str
)
def test_column_names_of_any_type_work(name, budget, tmp_path):
    """Case 76: answers come under text names, and can be written."""
    frame = pd.DataFrame({"g": ["a", "b", "a"], "other": [0.0, 0.0, 0.0]})
    frame.insert(1, name, [1.0, 2.0, NAN])
    frame.columns = pd.Index(["g", name, "other"], dtype=object, tupleize_cols=False)
    assert round(frame.dp.clip_sum(name, bounds=BOUNDS, eps=EPS), 2) == 3
    assert frame.dp.count(name, eps=EPS) == 2
    out = frame.dp.groupby("g", keys=["b", "a"]).clip_sum(name, bounds=BOUNDS, eps=EPS)
    assert all(isinstance(c, str) for c in out.columns)
    assert out.iloc[:, 1].tolist() == pytest.approx([2, 1], abs=0.01)
    path = tmp_path / "t.parquet"
    budget.last.write(path)
    assert pl.read_parquet(path).columns == list(out.columns)
    by = frame.dp.groupby(name, keys=[1.0, 7.0, None]).dp_agg(answer=dp.count(), eps=EPS)
    assert by["answer"].tolist() == [1, 0, 1]
    assert all(isinstance(c, str) for c in by.columns)
    budget.last.write(path)


def test_a_column_named_none_works_or_is_refused_in_words(budget):
    """Case 76: None means rows to ``count``; other verbs answer about the column or say what to write."""
    frame = pd.DataFrame({None: [1.0, 2.0], "g": ["a", "b"]})
    for ask in (
        lambda: frame.dp.clip_sum(None, bounds=BOUNDS, eps=EPS),
        lambda: frame.dp.agg(m=dp.clip_mean(None, bounds=BOUNDS), eps=EPS),
        lambda: frame.dp.groupby("g", keys=["a"]).clip_sum(None, bounds=BOUNDS, eps=EPS),
    ):
        before = budget.report().height
        try:
            ask()
        except dp.InputError:
            assert budget.report().height == before


@pytest.mark.parametrize("name", ["k0", "y0", "n", "c0", "t0", "g0", "m0", "_", "len", "literal", "count"])
def test_column_names_that_engines_use_inside_do_not_collide(kind, name, budget):
    """Design: reserved temporary names."""
    table = pl.DataFrame({name: ["a", "b", "a"], "x": [1.0, 2.0, 3.0], "y1": [5.0, 5.0, 5.0]})
    out = as_polars(
        as_kind(kind, table)
        .dp.groupby(name, keys=["b", "a"])
        .dp_agg(
            total=dp.count(),
            sx=dp.clip_sum("x", bounds=(0, 10)),
            sy=dp.clip_sum("y1", bounds=(0, 10)),
            eps=EPS,
        )
    )
    assert out[name].to_list() == ["b", "a"]
    assert out["total"].to_list() == [1, 2]
    assert out["sx"].to_list() == pytest.approx([2, 4], abs=0.01)
    assert out["sy"].to_list() == pytest.approx([5, 10], abs=0.01)


@pytest.mark.parametrize("rows", [0, 1, 2, 3])
def test_tiny_frames_give_exactly_one_row_ungrouped(kind, rows, budget):
    """Case 80: no threshold without unknown groups, no null, whatever the noise."""
    table = as_kind(kind, pl.DataFrame({"x": [1.0] * rows}, schema={"x": pl.Float64}))
    for _ in range(10):
        out = as_polars(table.dp.agg(n=dp.count(), m=dp.clip_mean("x", bounds=BOUNDS), eps=0.1))
        assert out.shape == (1, 2)
        assert out.null_count().row(0) == (0, 0)


def test_an_absent_group_is_a_noised_number(kind, budget):
    """Case 82: neither null nor left out; on a frame without rows as well."""
    table = pl.DataFrame({"g": ["a"], "x": [1.0]})
    for frame in (as_kind(kind, table), as_kind(kind, table.head(0))):
        out = as_polars(
            frame.dp.groupby("g", keys=["absent", "gone"]).dp_agg(
                n=dp.count(), s=dp.clip_sum("x", bounds=BOUNDS), m=dp.clip_mean("x", bounds=BOUNDS), eps=EPS
            )
        )
        assert out["n"].to_list() == [0, 0]
        assert out["s"].to_list() == pytest.approx([0, 0], abs=1e-2)
        assert out["m"].to_list() == pytest.approx([3.5, 3.5], abs=1e-2)
        assert out["s"][0] != out["s"][1]


@pytest.mark.parametrize("value", [NAN, None])
def test_one_missing_cell_among_a_hundred_is_left_out(kind, value, budget):
    """Case 1: the sum is that of the others, and the mean's denominator too."""
    x = [1.0] * 99
    table = pl.DataFrame({"x": [*x, value]}, schema={"x": pl.Float64})
    frame = as_kind(kind, table)
    assert frame.dp.clip_sum("x", B=10, eps=EPS) == pytest.approx(99, abs=1e-3)
    assert frame.dp.clip_mean("x", B=10, eps=EPS) == pytest.approx(1, abs=1e-4)
    assert frame.dp.count("x", eps=EPS) == 99
    assert frame.dp.count(eps=EPS) == 100


def test_int128_and_uint64_keys_are_matched(budget):
    """Case 112: keys beyond 64 bits, and beyond the signed ones."""
    for dtype, big in ((pl.Int128, 2**100), (pl.UInt64, 2**64 - 1)):
        for kind in ("polars", "lazy"):
            frame = as_kind(kind, pl.DataFrame({"g": pl.Series([1, big, big, None], dtype=dtype)}))
            out = frame.dp.groupby("g", keys=[big, 1, 5, None]).count(eps=EPS)
            assert out["count"].to_list() == [2, 1, 0, 1]
            assert out.schema["g"] == dtype
    frame = pd.DataFrame({"g": np.array([1, 2**64 - 1], dtype="uint64")})
    assert frame.dp.groupby("g", keys=[2**64 - 1, 3]).count(eps=EPS)["count"].tolist() == [1, 0]


@pytest.mark.usefixtures("no_noise", "quiet")
def test_text_with_a_nul_is_its_own_text():
    """C strings end at NUL; a row with "a" and a NUL must not take the group "a" with it."""
    for extra in (["a\x00"], []):
        frame = pd.DataFrame({"g": pd.Series([*extra, *["a"] * 50], dtype=object)})
        with dp.Session(eps=10) as s:
            frame.dp.groupby("g", keys=["a", "b"]).count(eps=1)
            assert s.last._noisy[0].tolist() == [50, 0]


@pytest.mark.usefixtures("no_noise", "quiet")
@pytest.mark.parametrize("odd", [complex("nan"), np.longdouble("nan"), [None], np.array([np.nan])], ids=repr)
@pytest.mark.parametrize("other", [1, Decimal("sNaN"), {}], ids=repr)
def test_what_a_cell_counts_as_does_not_depend_on_other_rows(odd, other):
    """One row of another kind sent the whole column down another road."""
    counts = []
    for extra in ([], [other]):
        cells = pd.Series([*["a"] * 5, *[odd] * 20, *extra], dtype=object)
        frame = pd.DataFrame({"g": cells})
        with dp.Session(eps=10) as s:
            frame.dp.groupby("g", keys=["a", None]).count(eps=1)
            groups = s.last._noisy[0].tolist()
            frame.dp.count("g", eps=1)
            counts.append((groups, s.last._noisy[0].tolist()[0] - len(extra)))
    assert counts[0][0] == counts[1][0]
    assert abs(counts[0][1] - counts[1][1]) <= 1
