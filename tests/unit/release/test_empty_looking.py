"""Listed keys that look empty: which they are, how often an empty one is missed, what is refused."""

from __future__ import annotations

import chance
import pandas as pd
import polars as pl
import pytest
from scipy import stats as laws

import dpframe as dp
from conftest import as_kind

pytestmark = pytest.mark.usefixtures("quiet")
FRAME = pl.DataFrame({"g": ["a"] * 300 + ["b"] * 200 + [None] * 100, "u": range(600), "x": [1.0] * 600})


def listed(r, column="g"):
    assert list(r.empty_looking().columns) == [column]
    assert type(r.empty_looking()) is type(r.value)
    return [None if pd.isna(k) else k for k in r.empty_looking()[column].to_list()]


@pytest.mark.parametrize(
    "asked",
    [
        lambda g: g.count(eps=1000),
        lambda g: g.count("x", eps=1000),
        lambda g: g.count(eps=1000, nonnegative=True),
        lambda g: g.dp_agg(n=dp.count(), m=dp.clip_mean("x", bounds=(0, 2)), eps=1000),
        lambda g: g.dp_agg(m=dp.clip_mean("x", bounds=(0, 2)), n=dp.count("x"), eps=1000),
    ],
)
def test_keys_that_do_not_occur_are_listed_in_their_order(kind, asked):
    with dp.Session(eps=10**6) as s:
        asked(as_kind(kind, FRAME).dp.groupby("g", keys=["z", "a", "A", None, "b", "y"]))
        assert listed(s.last) == ["z", "A", "y"]
        spent = s.spent
        s.last.empty_looking(0.5)
        assert s.spent == spent
    with dp.Session(eps=10**6) as s:
        asked(as_kind(kind, FRAME).dp.groupby("g", keys=["a", "b"]))
        assert listed(s.last) == []


def test_units_count_too(kind):
    with dp.Session(eps=10**6, unit="u") as s:
        as_kind(kind, FRAME).dp.groupby("g", keys=["a", "q"], max_groups=1).count_units(eps=1000)
        assert listed(s.last) == ["q"]


def test_an_empty_key_is_missed_no_more_often_than_said():
    """10,000 empty keys at 80 %: at most one in five is missed, and by the law exactly (false alarm: 1e-9)."""
    many = 10_000
    with dp.Session(eps=10**6) as s:
        FRAME.dp.groupby("g", keys=[f"none {i}" for i in range(many)]).count(eps=0.1)
    seen = len(s.last.empty_looking(0.8))
    assert seen >= laws.binom.ppf(chance.ALARM, many, 0.8)
    noise = s.last.plan.pieces[0].noise
    missed = float(noise.cdf(-int(noise.interval(0.8)) - 1))
    assert seen in range(
        int(laws.binom.ppf(chance.ALARM, many, 1 - missed)),
        int(laws.binom.isf(chance.ALARM, many, 1 - missed)) + 1,
    )


def test_several_columns_and_no_keys(kind):
    with dp.Session(eps=10**6) as s:
        keys = {"g": ["a", "q"], "u": [0, 10**6]}
        as_kind(kind, FRAME).dp.groupby("g", "u", keys=keys).count(eps=10**5)
        empty = s.last.empty_looking()
        assert list(zip(empty["g"], empty["u"])) == [("a", 10**6), ("q", 0), ("q", 10**6)]
        nothing = as_kind(kind, FRAME).dp.plan.groupby("g", keys=[]).count(eps=1).release()
        assert len(nothing.empty_looking()) == 0


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda d: d.count(eps=1), "there are no groups"),
        (
            lambda d: d.groupby("g").count(eps=1, delta=1e-3),
            "found groups are told because they are not empty",
        ),
        (
            lambda d: d.groupby("g", keys=["a"]).clip_sum("x", bounds=(0, 1), eps=1),
            "reads a count, and there is none",
        ),
    ],
)
def test_what_has_no_count_of_listed_keys_is_refused(asked, said):
    with dp.Session(eps=10, delta=0.5) as s:
        asked(FRAME.dp)
        with pytest.raises(dp.InputError, match=said):
            s.last.empty_looking()
    with dp.Session(eps=10) as s:
        FRAME.dp.groupby("g", keys=["a"]).count(eps=1)
        for level in (0, 1, "x", -1):
            with pytest.raises((dp.InputError, TypeError)):
                s.last.empty_looking(level)
