"""What stands beside an answer, and what is done to it afterwards: intervals, zero, rounding."""

from __future__ import annotations

import math
from fractions import Fraction

import chance
import numpy as np
import polars as pl
import pytest
from tables import FRAME

import dpframe as dp
from conftest import as_kind, as_polars

pytestmark = pytest.mark.usefixtures("quiet")

EPS = 1e6


# ---- ci ----


def test_ci_adds_a_margin_beside_every_output(kind):
    df = as_kind(kind, FRAME)
    with dp.Session(eps=10) as s:
        table = df.dp.groupby("g", keys=["a", "z"]).dp_agg(
            n=dp.count(), x=dp.clip_mean("x", bounds=(0, 10)), eps=1, ci=0.9
        )
        ends = as_polars(s.last.interval(0.9))
        assert s.spent == 1
    assert list(table.columns) == ["g", "n", "n_moe", "x", "x_moe"]
    got = as_polars(table)
    assert got["n_moe"].to_list() == [
        max(v - lo, hi - v) for v, lo, hi in zip(got["n"], ends["n_low"], ends["n_high"])
    ]
    assert (got["x_moe"] >= 0).all()
    assert (got["x_moe"] <= 10).all()
    assert ends.columns == ["g", "n_low", "n_high", "x_low", "x_high"]


def test_margins_of_counts_cover_as_often_as_the_law_says():
    """Case 104: 20,000 empty groups at eps 1/2; the number covered is binomial (1e-10)."""
    p, groups = math.exp(-1 / 2), 20_000
    w = next(w for w in range(1000) if 1 - 2 * p ** (w + 1) / (1 + p) >= 0.95)
    truth = 1 - 2 * p ** (w + 1) / (1 + p)
    with dp.Session(eps=10):
        table = FRAME.dp.groupby("k", keys=range(100, 100 + groups)).dp_agg(n=dp.count(), eps=0.5, ci=0.95)
    assert table["n_moe"].unique().to_list() == [w]
    assert (table["n"].abs() <= table["n_moe"]).sum() in chance.likely_hits(groups, truth)


def test_margins_of_means_cover():
    """4,000 groups of 50 rows at eps 1, mean 3 of bounds (0, 10); coverage at least .94, but for 1e-10."""
    groups = 4_000
    df = pl.DataFrame({"k": np.repeat(np.arange(groups), 50), "x": np.tile([1.0, 5.0], groups * 25)})
    with dp.Session(eps=10) as s:
        table = df.dp.groupby("k", keys=range(groups)).dp_agg(
            m=dp.clip_mean("x", bounds=(0, 10)), eps=1, ci=0.95
        )
        ends = s.last.interval(0.95)
    assert ((table["m"] - 3).abs() <= table["m_moe"]).mean() >= chance.least_share(groups, 0.94)
    inside = ((ends["m_low"] <= 3) & (ends["m_high"] >= 3)).mean()
    assert inside >= chance.least_share(groups, 0.94)


# ---- post-processing ----


def test_counts_may_be_negative_unless_raised_to_zero(kind):
    """Case 98: 2,000 empty groups at eps 1/10: (1 - tanh(.05))/2 are negative, but for 1e-10."""
    df = as_kind(kind, FRAME)
    with dp.Session(eps=10) as s:
        by = df.dp.groupby("k", keys=range(100, 2100))
        raw = as_polars(by.count(eps=0.1))["count"]
        assert (raw < 0).sum() in chance.likely_hits(2000, (1 - math.tanh(0.05)) / 2)
        raised = as_polars(by.count(eps=0.1, nonnegative=True))["count"]
        assert (raised >= 0).all()
        assert raised.dtype == pl.Int64
        assert (raised == 0).sum() > 800
        assert (as_polars(s.last.interval())["count_low"] >= 0).all()
        assert s.spent == Fraction(1, 5)


def test_round_keeps_decimals_and_integers_stay_integers(kind):
    df = as_kind(kind, FRAME)
    with dp.Session(eps=10):
        m = df.dp.clip_mean("x", bounds=(0, 10), eps=0.5, round=2)
        assert float(m) == round(float(m), 2)
        tens = df.dp.groupby("k", keys=range(200)).count(eps=0.05, round=-1)
        assert as_polars(tens)["count"].dtype == pl.Int64
        assert all(v % 10 == 0 for v in tens["count"].to_list())
        n = df.dp.count(eps=0.05, round=-2)
        assert isinstance(n, int)
        assert n % 100 == 0
        assert isinstance(df.dp.count(eps=1, round=0), int)


def test_decimals_do_not_make_a_count_a_float(kind):
    """round=2 is meant for the means beside it."""
    df = as_kind(kind, FRAME)
    with dp.Session(eps=10):
        assert isinstance(df.dp.count(eps=1, round=2), int)
        table = df.dp.agg(n=dp.count(), m=dp.clip_mean("x", bounds=(0, 10)), eps=1, round=2, ci=0.9)
    assert as_polars(table)["n"].dtype == pl.Int64
    assert as_polars(table)["n_moe"].dtype == pl.Int64


def test_post_processing_of_one_question_leaves_the_others(kind):
    df = as_kind(kind, FRAME)
    with dp.Session(eps=10 * EPS):
        table = df.dp.agg(
            a=dp.clip_mean("x", bounds=(-10, 7), round=0),
            b=dp.clip_sum("k", bounds=(-9, -1), nonnegative=True),
            c=dp.clip_sum("k", bounds=(-9, -1)),
            eps=EPS,
        )
    row = as_polars(table).row(0, named=True)
    assert row["a"] == 4.0  # (1 + 2 + 7 + 5 + 3)/5 = 3.6
    assert (row["b"], row["c"]) == (0, -6)
