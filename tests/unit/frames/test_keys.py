"""Public group keys: every spelling, absent and missing keys, declared categories, column names.

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
from fractions import Fraction

import chance
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from key_tools import EPS, counts, refused, released

import dpframe as dp
from conftest import KINDS, as_kind
from dpframe.accounting.events import Event
from dpframe.mechanisms.laplace import DiscreteLaplace

pytestmark = pytest.mark.usefixtures("quiet")


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

    For Laplace with b = 1/eps = 4 on the integers: the mean square of 3,000 is where it is likely but for 1e-10 (of
    six). The lag-one correlation has sd 1/sqrt(3000) = .0183; 7 sd are .13, and products of two such draws, of
    kurtosis 36, are beyond on average once in 10**11 (of nine).
    """
    df = as_kind(kind, pl.DataFrame({"k": list(range(3000)) * 2}))
    with dp.Session(eps=10):
        got = df.dp.groupby("k", keys=range(6000)).count(eps=0.25)["count"].to_numpy()
    noise = got - np.array([2] * 3000 + [0] * 3000)
    k, p = chance.law(DiscreteLaplace(Fraction(4), Event(Fraction(1, 4), Fraction(0), Fraction(1))))
    low, high = chance.likely_mean(k**2, p, 3000)
    for half in (noise[:3000], noise[3000:]):
        assert len(np.unique(half)) > 15
        assert low < (half**2).mean() < high
        assert abs(np.corrcoef(half[1:], half[:-1])[0, 1]) < 0.13
    assert abs(np.corrcoef(noise[:3000], noise[3000:])[0, 1]) < 0.13


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


D1, D2 = dt.date(2026, 1, 1), dt.date(2026, 1, 2)
T1, T2 = dt.datetime(2026, 1, 1, 12), dt.datetime(2026, 1, 2)


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


def test_every_kind_is_tested():
    assert KINDS == ("pandas", "polars", "lazy")


@pytest.mark.parametrize("key", [object, "\ud800"], ids=["type", "surrogate"])
def test_keys_that_no_column_can_hold_do_not_fit_a_column_without_a_type_either(key):
    frame = pl.DataFrame({"x": pl.Series([None, None], dtype=pl.Null)})
    with dp.Session(eps=1) as s:
        with pytest.raises(dp.InputError, match="does not fit 'x', which is Null"):
            frame.dp.groupby("x", keys=[key]).count(eps=1)
        assert s.spent == 0
