"""Who is a unit: ids of every dtype, missing ids, unlisted groups, several columns."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from many_rows import bound_plan, frame_of

import dpframe as dp
from conftest import as_kind, exact_integers

# ---- who is a unit ----


@pytest.mark.parametrize("grouped", [False, True])
def test_rows_without_a_unit_are_left_out(no_noise, quiet, kind, grouped):
    rows = [(1, 1.0, "a", True), (None, 1.0, "a", True), (None, 9.0, "b", True), (2, 1.0, "a", True)]
    with dp.Session(eps=10**9, unit="u"):
        bound = bound_plan(frame_of(kind, rows), "count", grouped)
        assert exact_integers(bound)[0] == ([2, 0, 0, 0] if grouped else [2])


def test_nan_none_and_na_are_no_unit(no_noise, quiet):
    frames = [
        pl.DataFrame({"u": [1.5, math.nan, None, 1.5]}),
        pd.DataFrame({"u": [1.5, math.nan, None, 1.5]}),
        pd.DataFrame({"u": pd.Series(["a", None, math.nan, pd.NA, pd.NaT, "a"], dtype=object)}),
        pd.DataFrame({"u": pd.array([1, None, 1], dtype="Int64")}),
        pd.DataFrame({"u": pd.to_datetime(["2026-01-01", None, "2026-01-01"])}),
        pl.DataFrame({"u": ["a", None, "a"]}, schema={"u": pl.Categorical}),
    ]
    with dp.Session(eps=10**9, unit="u"):
        for frame in frames:
            assert frame.dp.count(max_rows=1, eps=1) == 1


def test_groups_that_are_not_listed_take_no_slot(no_noise, quiet, kind):
    """max_groups=1 and one listed group among a thousand: the listed one always counts."""
    rows = [(u, 1.0, f"other {i}", True) for u in range(20) for i in range(50)]
    rows += [(u, 1.0, "b", True) for u in range(20)] + [(u, 1.0, None, True) for u in range(20)]
    frame = frame_of(kind, rows)
    with dp.Session(eps=10**9, unit="u"):
        verbs = frame.dp.plan.groupby("g", keys=["a", "b", "c"], max_groups=1, max_rows_per_group=1)
        for _ in range(5):
            assert exact_integers(verbs.count(eps=1))[0] == [0, 20, 0]


def test_a_null_key_that_is_listed_is_a_group_like_any_other(no_noise, quiet, kind):
    rows = [(u, 1.0, g, True) for u in range(10) for g in (None, "a")]
    frame = frame_of(kind, rows)
    with dp.Session(eps=10**9, unit="u"):
        verbs = frame.dp.plan.groupby("g", keys=["a", None, "c"], max_groups=2, max_rows_per_group=1)
        assert exact_integers(verbs.count(eps=1))[0] == [10, 10, 0]


def test_a_unit_may_be_several_columns(no_noise, quiet, kind):
    """A user's day: (1, x), (1, y), (2, x); a row that lacks either is left out."""
    rows = [(1, "x")] * 5 + [(1, "y")] * 3 + [(2, "x")] + [(2, None), (None, "x")]
    frame = frame_of(kind, rows, {"user": pl.Int64, "day": pl.String})
    with dp.Session(eps=10**9, unit=["user", "day"]):
        assert frame.dp.count(max_rows=1, eps=1) == 3
        assert frame.dp.count(max_rows=4, eps=1) == 4 + 3 + 1
    with dp.Session(eps=10**9, unit="user"):
        assert frame.dp.count(max_rows=1, eps=1) == 2


def test_columns_of_a_unit_are_not_glued_together(no_noise, quiet, kind):
    rows = [("a", "bc"), ("ab", "c"), ("abc", "")]
    frame = frame_of(kind, rows, {"p": pl.String, "q": pl.String})
    with dp.Session(eps=10**9, unit=["p", "q"]):
        assert frame.dp.count(max_rows=1, eps=1) == 3


DATES = [dt.date(2026, 1, 1), dt.date(2026, 1, 2)]
IDS = {  # two units with two rows each
    "int": pl.Series([1, 2]),
    "int128": pl.Series([1, 2**100], dtype=pl.Int128),
    "uint64": pl.Series([1, 2**64 - 1], dtype=pl.UInt64),
    "float": pl.Series([0.5, 1e300]),
    "float32": pl.Series([0.5, 1.5], dtype=pl.Float32),
    "string": pl.Series(["a", "ä" * 40]),
    "categorical": pl.Series(["a", "b"], dtype=pl.Categorical),
    "enum": pl.Series(["a", "b"], dtype=pl.Enum(["a", "b", "c"])),
    "date": pl.Series(DATES),
    "datetime": pl.Series([dt.datetime(2026, 1, 1, 3), dt.datetime(2026, 1, 2)]),
    "duration": pl.Series([dt.timedelta(1), dt.timedelta(2)]),
    "bool": pl.Series([True, False]),
    "decimal": pl.Series([Decimal("1.50"), Decimal("2.50")]),
}


@pytest.mark.parametrize("of", IDS)
def test_a_unit_may_have_any_plain_dtype(no_noise, quiet, kind, of):
    if kind == "pandas" and of == "int128":
        pytest.skip("pandas has no 128-bit integers")
    ids = IDS[of]
    missing = pl.Series([None], dtype=ids.dtype)
    frame = pl.DataFrame({"u": pl.concat([ids, ids, missing]), "g": list("aabbb")})
    frame = as_kind(kind, frame)
    with dp.Session(eps=10**9, unit="u"):
        assert frame.dp.count(max_rows=1, eps=1) == 2
        assert frame.dp.count(max_rows=2, eps=1) == 4
        verbs = frame.dp.plan.groupby("g", keys=list("abc"), max_groups=1, max_rows_per_group=1)
        assert sum(exact_integers(verbs.count(eps=1))[0]) == 2


def ids_counted(ids, **session):
    with dp.Session(eps=10**9, unit="u", **session):
        return int(pd.DataFrame({"u": ids}).dp.count(max_rows=1, eps=1))


def test_pandas_categories_of_any_kind_are_units(no_noise, quiet):
    assert ids_counted(pd.Categorical(["a", "b", None, "a"])) == 2
    assert ids_counted(pd.Categorical([1, 2, 1])) == 2
    assert ids_counted(pd.Categorical([0.5, None, 0.5])) == 1
    assert ids_counted(pd.Categorical([True, False, None, True])) == 2
    assert ids_counted(pd.Categorical(pd.period_range("2026-01", periods=3, freq="M"))) == 3


def test_a_missing_integer_category_does_not_stop_the_release(no_noise, quiet):
    """A cell must never decide whether a release happens."""
    assert ids_counted(pd.Categorical([1, 2, None, 1])) == 2


def test_categories_that_are_not_text_are_units_too(no_noise, quiet):
    """As in an object column: dates and mixed values identify people; nobody is dropped silently."""
    assert ids_counted(pd.Categorical([*DATES, None, DATES[0]])) == 2
    assert ids_counted(pd.Categorical([1, "a", 2, "a"])) == 3


def test_an_object_column_of_mixed_ids_separates_types_and_leaves_out_what_identifies_nobody(no_noise, quiet):
    """1, "1" and True are three; lists, dicts and arbitrary objects are nobody, and raise nothing."""
    ids = [
        1,
        "1",
        True,
        b"1",
        DATES[0],
        1,
        "1",
        [1],
        {"a": 1},
        {1},
        object(),
        None,
        math.nan,
        np.array([1, 2]),
    ]
    assert ids_counted(pd.Series(ids, dtype=object)) == 5


def test_equal_numbers_are_one_unit_whatever_library_made_them(no_noise, quiet):
    """A person counted as two is protected half."""
    assert ids_counted(pd.Series([5, np.int64(5), np.int32(5)], dtype=object)) == 1
    assert ids_counted(pd.Series([1.5, np.float64(1.5)], dtype=object)) == 1


def test_zero_and_minus_zero_are_one_unit(no_noise, quiet, kind):
    frame = as_kind(kind, pl.DataFrame({"u": [0.0, -0.0, 0.0], "g": list("abc")}))
    with dp.Session(eps=10**9, unit="u"):
        assert frame.dp.count(max_rows=1, eps=1) == 1
        verbs = frame.dp.plan.groupby("g", keys=list("abc"), max_groups=1, max_rows_per_group=1)
        assert sum(exact_integers(verbs.count(eps=1))[0]) == 1


def test_zero_and_minus_zero_in_an_object_column_are_one_unit(no_noise, quiet):
    assert ids_counted(pd.Series([0.0, -0.0], dtype=object)) == 1


def test_equal_decimals_are_one_unit_and_signalling_nans_stop_nothing(no_noise, quiet):
    assert ids_counted(pd.Series([Decimal("1.0"), Decimal("1.00")], dtype=object)) == 1
    assert ids_counted(pd.Series([Decimal(1), Decimal("sNaN"), Decimal("NaN")], dtype=object)) == 1
