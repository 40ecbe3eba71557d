"""Public group keys of every dtype: matched exactly, or refused when no cell could equal them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from key_tools import counts, refused, released

import dpframe as dp
from conftest import as_kind

pytestmark = pytest.mark.usefixtures("quiet")


LETTERS = pl.DataFrame({"g": ["b", "a", "c", "a", None, "a"], "k": [1, 1, 2, 2, 2, 1]})


# ---- dtypes: Polars ----

NY = ZoneInfo("America/New_York")
D1, D2 = dt.date(2026, 1, 1), dt.date(2026, 1, 2)
T1, T2 = dt.datetime(2026, 1, 1, 12), dt.datetime(2026, 1, 2)
POLARS = {
    **{
        str(t): (t, [1, 2, 1], [2, 1, 100], {2: 1, 1: 2, 100: 0})
        for t in (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
    },
    "UInt64 beyond Int64": (pl.UInt64, [2**63, 1], [2**63, 2**64 - 1], {2**63: 1, 2**64 - 1: 0}),
    "Int128 beyond Int64": (pl.Int128, [2**100, 1], [2**100], {2**100: 1}),
    "Float32": (pl.Float32, [0.5, 0.1, 0.5], [0.5, np.float32(0.1), 3], None),
    "Float64": (pl.Float64, [0.1, 0.2, 0.1], [0.1, 2], {0.1: 2, 2.0: 0}),
    "Boolean": (pl.Boolean, [True, False, True, None], [True, False, None], {True: 2, False: 1, None: 1}),
    "String": (pl.String, ["ä", "b", "ä"], ["ä", ""], {"ä": 2, "": 0}),
    "Categorical": (pl.Categorical, ["a", "b", "a"], ["a", "z"], {"a": 2, "z": 0}),
    "Enum": (pl.Enum(["a", "b", "z"]), ["a", "b", "a"], ["z", "a"], {"z": 0, "a": 2}),
    "Decimal": (
        pl.Decimal(10, 2),
        [Decimal("1.50"), Decimal("2"), None],
        [Decimal("1.5"), 2, Decimal("3.25"), None],
        {Decimal("1.50"): 1, Decimal("2.00"): 1, Decimal("3.25"): 0, None: 1},
    ),
    "Date": (pl.Date, [D1, D1, D2], [D1, dt.date(1900, 1, 1)], {D1: 2, dt.date(1900, 1, 1): 0}),
    "Date as text": (pl.Date, [D1, D1, D2], ["2026-01-02", "2026-01-01"], {D2: 1, D1: 2}),
    "Date as midnights": (
        pl.Date,
        [D1, D1, D2],
        dp.public(pd.date_range("2026-01-01", periods=2)),
        {D1: 2, D2: 1},
    ),
    "Datetime": (pl.Datetime("us"), [T1, T2, T1], [T1, T2], {T1: 2, T2: 1}),
    "Datetime ms": (pl.Datetime("ms"), [T1, T2, T1], [T1, T2], {T1: 2, T2: 1}),
    "Datetime ns": (pl.Datetime("ns"), [T1, T2, T1], [T1, T2], {T1: 2, T2: 1}),
    "Datetime as days": (pl.Datetime("us"), [T1, T2, T1], [D2], {T2: 1}),
    "Datetime as text": (pl.Datetime("us"), [T1, T2, T1], ["2026-01-01T12:00", "2026-01-02"], {T1: 2, T2: 1}),
    "Datetime zone": (
        pl.Datetime("us", "America/New_York"),
        [T1.replace(tzinfo=NY), T2.replace(tzinfo=NY)],
        [T2.replace(tzinfo=NY), (T1.replace(tzinfo=NY)).astimezone(dt.UTC)],
        {T2.replace(tzinfo=NY): 1, T1.replace(tzinfo=NY): 1},
    ),
    "Duration": (
        pl.Duration("us"),
        [dt.timedelta(seconds=1), dt.timedelta(days=1)],
        [dt.timedelta(days=1), dt.timedelta(days=2)],
        {dt.timedelta(days=1): 1, dt.timedelta(days=2): 0},
    ),
}


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("name", POLARS)
def test_polars_keys_match_exactly_and_keep_the_dtype(name, lazy):
    dtype, cells, keys, wanted = POLARS[name]
    df = pl.DataFrame({"k": pl.Series(cells, dtype=dtype)})
    df = df.lazy() if lazy else df
    assert released(df, "k", keys)["k"].dtype == (pl.String if dtype == pl.Categorical else dtype)
    found = counts(df, "k", keys)
    if name == "Float32":
        wanted = {0.5: 2, float(np.float32(0.1)): 1, 3.0: 0}
    assert list(found.items()) == list(wanted.items())


# ---- dtypes: pandas ----

I64 = [1, 2, 1]
PANDAS = {
    **{
        t: (pd.Series(I64, dtype=t), [2, 1, 100], {2: 1, 1: 2, 100: 0})
        for t in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    },
    **{
        t: (pd.Series([1, 2, 1, None], dtype=t), [2, 1, 100, None], {2: 1, 1: 2, 100: 0, None: 1})
        for t in ("Int8", "Int64", "UInt8", "UInt64", "int32[pyarrow]", "uint8[pyarrow]", "int64[pyarrow]")
    },
    **{
        t: (pd.Series([0.5, 2, 0.5, None], dtype=t), [2, 0.5, None], {2.0: 1, 0.5: 2, None: 1})
        for t in ("float32", "float64", "Float32", "Float64", "float[pyarrow]", "double[pyarrow]")
    },
    "bool": (pd.Series([True, False, True]), [False, True], {False: 1, True: 2}),
    **{
        t: (pd.Series([True, False, True, None], dtype=t), [False, True, None], {False: 1, True: 2, None: 1})
        for t in ("boolean", "bool[pyarrow]", "object")
    },
    **{
        f"text {t}": (
            pd.Series(["a", "b", "a", None], dtype=t),
            ["b", "a", "z", None],
            {"b": 1, "a": 2, "z": 0, None: 1},
        )
        for t in (
            "string",
            "string[pyarrow]",
            "object",
            pd.ArrowDtype(pa.string()),
            pd.ArrowDtype(pa.large_string()),
        )
    },
    "inferred text": (pd.Series(["a", "b", "a"]), ["b", "a", "z"], {"b": 1, "a": 2, "z": 0}),
    "decimal[pyarrow]": (
        pd.Series([Decimal("1.50"), Decimal("2.00")], dtype=pd.ArrowDtype(pa.decimal128(10, 2))),
        [Decimal("1.5"), 2, Decimal("9.75")],
        {Decimal("1.5"): 1, Decimal(2): 1, Decimal("9.75"): 0},
    ),
    "object Decimal": (
        pd.Series([Decimal("1.50"), Decimal("2.00"), None], dtype=object),
        [Decimal("1.5"), Decimal(2)],
        {Decimal("1.5"): 1, Decimal(2): 1},
    ),
    "object dates": (pd.Series([D1, D1, D2, None], dtype=object), [D1, D2, None], {D1: 2, D2: 1, None: 1}),
    "date32[pyarrow]": (
        pd.Series([D1, D1, D2], dtype=pd.ArrowDtype(pa.date32())),
        ["2026-01-01", "2026-01-02"],
        {D1: 2, D2: 1},
    ),
    "timestamp[pyarrow]": (
        pd.Series([T1, T2, T1], dtype=pd.ArrowDtype(pa.timestamp("us"))),
        ["2026-01-01T12:00", "2026-01-02"],
        {pd.Timestamp(T1): 2, pd.Timestamp(T2): 1},
    ),
    **{
        f"datetime64[{u}]": (
            pd.Series(pd.to_datetime([T1, T2, T1, None])).astype(f"datetime64[{u}]"),
            [T1, T2, None],
            {pd.Timestamp(T1): 2, pd.Timestamp(T2): 1, None: 1},
        )
        for u in ("s", "ms", "us", "ns")
    },
    "datetime with zone": (
        pd.Series(pd.to_datetime([T1, T2])).dt.tz_localize("America/New_York"),
        [pd.Timestamp(T2, tz="America/New_York"), pd.Timestamp(T1, tz="America/New_York").tz_convert("UTC")],
        {pd.Timestamp(T2, tz="America/New_York"): 1, pd.Timestamp(T1, tz="America/New_York"): 1},
    ),
    **{
        f"timedelta64[{u}]": (
            pd.Series(pd.to_timedelta([1, 86400], unit="s")).astype(f"timedelta64[{u}]"),
            [pd.Timedelta("1D"), pd.Timedelta("2D")],
            {pd.Timedelta("1D"): 1, pd.Timedelta("2D"): 0},
        )
        for u in ("s", "ms", "us", "ns")
    },
    "period[M]": (
        pd.Series(pd.PeriodIndex(["2026-01", "2026-02", "2026-01"], freq="M")),
        [pd.Period("2026-02", "M"), pd.Period("2026-01", "M"), pd.Period("2025-12", "M")],
        {pd.Period("2026-02", "M"): 1, pd.Period("2026-01", "M"): 2, pd.Period("2025-12", "M"): 0},
    ),
    "period[D] as text": (
        pd.Series(pd.PeriodIndex(["2026-01-01", None], freq="D")),
        ["2026-01-01", None],
        {pd.Period("2026-01-01", "D"): 1, None: 1},
    ),
}


@pytest.mark.parametrize("name", PANDAS)
def test_pandas_keys_match_exactly_and_keep_the_dtype(name):
    cells, keys, wanted = PANDAS[name]
    df = pd.DataFrame({"k": cells})
    assert released(df, "k", keys)["k"].dtype == cells.dtype
    assert list(counts(df, "k", keys).items()) == list(wanted.items())


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [([1, 2, 1], "Int64"), ([True, False, True], "boolean")],
)
def test_a_missing_key_of_a_column_that_cannot_hold_it_comes_back_nullable(cells, wanted):
    """None may be listed for int64: it is absent, not refused, and the dtype follows from the keys alone."""
    table = released(pd.DataFrame({"k": cells}), "k", [None, cells[0]])
    assert str(table["k"].dtype) == wanted
    assert table["n"].to_list() == [0, 2]


# ---- dtypes: refused when not exact ----


@pytest.mark.parametrize(
    ("dtype", "keys", "names"),
    [
        (pl.Int8, [300], ["300", "Int8"]),
        (pl.UInt8, [-1], ["-1", "UInt8"]),
        (pl.Int8, range(200), ["Int8"]),
        (pl.Int64, [1.5], ["1.5", "Int64"]),
        (pl.Int64, ["1"], ["'1'", "str", "Int64"]),
        (pl.Int64, [True], ["True", "bool", "Int64"]),
        (pl.Int64, [2**63], ["Int64"]),
        (pl.Float32, [0.1], ["0.1", "Float32"]),
        (pl.Float64, [2**53 + 1], [str(2**53 + 1), "Float64"]),
        (pl.Float64, ["0.5"], ["'0.5'", "Float64"]),
        (pl.Boolean, [1, 0], ["1", "Boolean"]),
        (pl.String, [2139], ["2139", "int", "String"]),
        (pl.Decimal(10, 2), [Decimal("1.505")], ["1.505", "Decimal"]),
        (pl.Date, ["2026-02-30"], ["'2026-02-30'", "Date"]),
        (pl.Date, [dt.datetime(2026, 1, 1, 7)], ["Date"]),
        (pl.Date, [1], ["1", "Date"]),
        (pl.Datetime("us"), [T1.replace(tzinfo=NY)], ["Datetime"]),
        (pl.Datetime("us", "UTC"), [T1], ["UTC"]),
        (pl.Datetime("ms"), [dt.datetime(2026, 1, 1, 0, 0, 0, 1)], ["Datetime"]),
        (pl.Datetime("us"), [pd.Timestamp("2026-01-01 00:00:00.000000001")], ["Datetime"]),
        (pl.Duration("ms"), [dt.timedelta(microseconds=1)], ["Duration"]),
        (pl.Enum(["aa", "b"]), ["aaa"], ["'aaa'", "Enum", "Did you mean 'aa'"]),
        (pl.List(pl.Int64), [1], ["List"]),
        (pl.Struct({"a": pl.Int64}), [1], ["Struct"]),
    ],
)
def test_keys_that_no_cell_could_equal_are_refused_with_both_types(dtype, keys, names):
    """Case 65: refused at the call from the schema, never 0 rows and never a table of absent groups."""
    df = pl.DataFrame({"k": pl.Series([], dtype=dtype)})
    for frame in (df, df.lazy()):
        text = refused(frame, "k", keys, match="'k'")
        for name in names:
            assert name in text
        assert any(guide in text for guide in ("Hint: ", "Did you mean"))


@pytest.mark.parametrize(
    ("cells", "keys"),
    [
        (pd.Series([1], dtype="int8"), [300]),
        (pd.Series([1], dtype="Int64"), [1.5]),
        (pd.Series([1.0], dtype="float32"), [0.1]),
        (pd.Series([T1]).astype("datetime64[s]"), [T1.replace(microsecond=5)]),
        (pd.Series(pd.to_datetime([T1])).dt.tz_localize("UTC"), [T1]),
        (pd.Series(pd.PeriodIndex(["2026-01"], freq="M")), [pd.Period("2026-01-01", "D")]),
        (pd.Series(pd.PeriodIndex(["2026-01"], freq="M")), [dt.date(2026, 1, 1)]),
        (pd.Series(pd.Categorical([1, 2])), ["1"]),
        (pd.Series(pd.Categorical(pd.Series(["1", "2"], dtype="string"))), [1]),
        (pd.Series(pd.cut([3], [0, 18, 65])), ["(0, 18]"]),
        (pd.Series(pd.cut([3], [0, 18, 65])), [18]),
        (pd.Series(pd.arrays.SparseArray([1, 0])), [1]),
        (pd.Series([1 + 2j]), [1]),
    ],
)
def test_pandas_keys_that_no_cell_could_equal_are_refused_with_the_line_to_write(cells, keys):
    text = refused(pd.DataFrame({"k": cells}), "k", keys, match="'k'")
    assert "Hint: " in text


def test_nanoseconds_are_not_cut_off():
    """Two instants a nanosecond apart are two keys."""
    one, two = pd.Timestamp("2026-01-01 00:00:00.000000001"), pd.Timestamp("2026-01-01")
    cells = pd.Series([one, two, two]).astype("datetime64[ns]")
    for df in (pd.DataFrame({"k": cells}), pl.DataFrame({"k": pl.Series(cells.to_numpy())})):
        assert released(df, "k", [one, two])["n"].to_list() == [1, 2]
    late, later = pd.Timedelta(1, "ns"), pd.Timedelta(0, "ns")
    gaps = pd.DataFrame({"k": pd.Series([late, later, later]).astype("timedelta64[ns]")})
    assert released(gaps, "k", [late, later])["n"].to_list() == [1, 2]


def test_timestamps_and_timedeltas_of_pandas_are_datetimes_and_timedeltas(kind):
    """They are subclasses of Python's, so lists may hold both."""
    gaps = [dt.timedelta(days=1), dt.timedelta(days=2)]
    df = as_kind(kind, pl.DataFrame({"t": [T1, T2], "gap": gaps}))
    assert released(df, "t", [T1, pd.Timestamp(T2)])["n"].to_list() == [1, 1]
    assert released(df, "gap", [gaps[0], pd.Timedelta("2D")])["n"].to_list() == [1, 1]


@pytest.mark.parametrize("keys", [["02139", 2139], [1, True], [1, "1"], [D1, "2026-01-02"], [1.5, True]])
def test_keys_of_mixed_types_are_refused(kind, keys):
    refused(as_kind(kind, LETTERS), "g", keys, match=r"'g'.*mixes")


def test_mixed_types_are_refused_for_object_columns_too():
    df = pd.DataFrame({"g": pd.Series([1, "1", 1.0, True, None], dtype=object)})
    refused(df, "g", ["02139", 2139], match="mixes")
    refused(df, "g", [1, True], match="mixes")


# ---- pandas object columns ----


class Odd:
    """A cell that no code should ever compare, hash or print."""

    __hash__ = None

    def __eq__(self, other):
        raise RuntimeError("compared")

    def __repr__(self):
        raise RuntimeError("printed")


def test_object_cells_belong_to_the_key_of_their_type_and_value():
    cells = pd.Series([1, 1.0, True, "1", 2, None, float("nan"), [1], {}, Odd(), b"1"], dtype=object)
    df = pd.DataFrame({"g": cells})
    assert counts(df, "g", [1, 2]) == {1: 1, 2: 1}
    assert counts(df, "g", [1.0]) == {1.0: 1}
    assert counts(df, "g", [True]) == {True: 1}
    assert counts(df, "g", ["1", None]) == {"1": 1, None: 2}


def test_an_object_column_gives_the_same_schema_whatever_its_cells_are():
    frames = [
        pd.DataFrame({"g": pd.Series(c, dtype=object)}) for c in (["a"], [1], [None], [Odd()], [], ["\ud800"])
    ]
    tables = [released(df, "g", ["a", None]) for df in frames]
    assert {str(t.dtypes.to_dict()) for t in tables} == {str(tables[0].dtypes.to_dict())}
    assert [t["n"].to_list() for t in tables] == [[1, 0], [0, 0], [0, 1], [0, 0], [0, 0], [0, 0]]


def test_an_object_boolean_with_none_has_three_groups():
    df = pd.DataFrame({"g": pd.Series([True, None, False, True, None], dtype=object)})
    assert counts(df, "g", [True, False, None]) == {True: 2, False: 1, None: 2}
    assert counts(df, "g", [True]) == {True: 2}
