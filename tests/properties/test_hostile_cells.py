"""Cells that nobody expects in a column, and categories that come from the data, are not seen in a release."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from looks import BOUNDS, EPS, GROUPED, INF, NAN, UNGROUPED, arrow, assert_alike

import dpframe as dp
from conftest import as_kind

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
