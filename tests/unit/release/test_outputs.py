"""Tables that come back: library, dtypes, order, names, and what each question in them costs."""

from __future__ import annotations

import math
import pickle
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tables import FRAME

import dpframe as dp
from conftest import as_kind, as_polars
from dpframe.api import accessors
from dpframe.release.release import rounded

pytestmark = pytest.mark.usefixtures("quiet")

EPS = 1e6
TABLE_TYPES = (pd.DataFrame, pl.DataFrame)
ASKED = {
    "n": dp.count(),
    "present": dp.count("x"),
    "k": dp.clip_sum("k", bounds=(0, 9)),
    "half": dp.clip_sum("k", bounds=(0, 9.5)),
    "x": dp.clip_mean("x", bounds=(0, 10)),
    "late": dp.clip_mean("late"),
    "lates": dp.clip_sum("late"),
}
TYPES = {
    "n": pl.Int64,
    "present": pl.Int64,
    "k": pl.Int64,
    "half": pl.Float64,
    "x": pl.Float64,
    "late": pl.Float64,
    "lates": pl.Int64,
}


def table_of(kind, frame=FRAME):
    """As pandas, with the nullable dtypes that keep integers and Booleans beside missing cells."""
    df = as_kind(kind, frame)
    return df.astype({"k": "Int64", "late": "boolean", "g": "string"}) if kind == "pandas" else df


def ask(df, *, keys=("b", "z", "a"), **more):
    with dp.Session(eps=10 * EPS):
        return df.dp.groupby("g", keys=keys).dp_agg(**ASKED, **{"eps": EPS, **more})


# ---- tables ----


def test_tables_come_back_in_the_library_of_the_frame(kind):
    table = ask(table_of(kind))
    assert isinstance(table, pd.DataFrame if kind == "pandas" else pl.DataFrame)
    assert list(table.columns) == ["g", *ASKED]
    if kind == "pandas":
        assert isinstance(table.index, pd.RangeIndex)


def test_tables_hold_the_answers_of_plain_code(kind):
    """By hand: rows of a, b and the absent z; the mean of nothing is the midpoint."""
    table = as_polars(ask(table_of(kind)))
    assert table["g"].to_list() == ["b", "z", "a"]
    assert table["n"].to_list() == [1, 0, 3]
    assert table["present"].to_list() == [1, 0, 2]
    assert table["k"].to_list() == [2, 0, 10]
    assert table["half"].to_list() == pytest.approx([2, 0, 10], abs=1e-3)
    assert table["x"].to_list() == pytest.approx([2, 5, 2], abs=1e-2)
    assert table["late"].to_list() == pytest.approx([0, 0.5, 2 / 3], abs=1e-3)
    assert table["lates"].to_list() == [0, 0, 2]


def test_dtypes_follow_from_the_question_and_never_from_the_data(kind):
    """Full, empty, all missing, one row: one schema; counts are Int64."""
    nothing = FRAME.with_columns(pl.lit(None).cast(FRAME.schema[c]).alias(c) for c in FRAME.columns)
    for frame in (FRAME, FRAME.clear(), nothing, FRAME.head(1)):
        table = ask(table_of(kind, frame))
        assert {c: t for c, t in as_polars(table).schema.items() if c != "g"} == TYPES
        if kind == "pandas":
            assert table["n"].dtype == np.dtype("int64")


def test_an_ungrouped_table_has_one_row(kind):
    for frame in (FRAME, FRAME.clear()):
        with dp.Session(eps=10 * EPS):
            table = as_kind(kind, frame).dp.agg(n=dp.count(), x=dp.clip_mean("x", bounds=(0, 10)), eps=EPS)
        assert len(table) == 1
        assert list(table.columns) == ["n", "x"]
        assert table["n"].to_list() == [len(frame)]


def test_ungrouped_answers_are_numbers_and_grouped_ones_are_tables(kind):
    df = as_kind(kind, FRAME)
    with dp.Session(eps=10):
        assert isinstance(df.dp.count(eps=1), int)
        assert isinstance(df.dp.clip_sum("k", bounds=(0, 9), eps=1), int)
        assert isinstance(df.dp.clip_sum("x", bounds=(0, 9), eps=1), float)
        assert isinstance(df.dp.clip_mean("x", bounds=(0, 9), eps=1), float)
        assert isinstance(df.dp.groupby("g", keys=["a"]).count(eps=1), TABLE_TYPES)


def test_default_names_and_aliases(kind):
    df = table_of(kind)
    with dp.Session(eps=10):
        by = df.dp.groupby("g", keys=["a"])
        assert list(by.count(eps=1).columns) == ["g", "count"]
        assert list(by.count("x", eps=1).columns) == ["g", "x_count"]
        assert list(by.clip_sum("x", bounds=(0, 1), eps=1).columns) == ["g", "x_sum"]
        assert list(by.clip_mean("x", B=1, eps=1).columns) == ["g", "x_mean"]
        mixed = by.dp_agg(dp.count().alias("rows"), dp.count("x"), m=dp.clip_mean("late"), eps=1)
        assert list(mixed.columns) == ["g", "rows", "x_count", "m"]


def test_agg_and_dp_agg_groupby_and_group_by_are_the_same_objects():
    assert dp.FrameDP.agg is dp.FrameDP.dp_agg
    assert dp.FrameDP.groupby is dp.FrameDP.group_by


def test_a_lazy_answer_is_an_eager_table_that_never_changes():
    """Case 59: noise is drawn once, and one charge is made."""
    with dp.Session(eps=1) as s:
        table = FRAME.lazy().dp.groupby("g", keys=["a", "b"]).count(eps=0.5)
        assert isinstance(table, pl.DataFrame)
        assert table.lazy().collect().equals(table)
        assert s.last.value.equals(table)
        assert s.report().height == 1


# ---- budgets within a table ----


def test_a_dict_of_eps_is_absolute_and_unfuses():
    """Each output at its own eps: Laplace scales 1/.2 and 1/.8 of its own reach, 1.0 in all."""
    plan = FRAME.dp.plan.agg(n=dp.count(), s=dp.clip_sum("x", bounds=(0, 10)), eps={"n": 0.2, "s": 0.8})
    assert plan.eps == 1
    assert plan.scale["n"] == pytest.approx(5, rel=1e-6)
    assert plan.scale["s"] == pytest.approx(12.5, rel=1e-6)
    with dp.Session(eps=1) as s:
        plan.release()
        assert s.spent == 1


def test_fused_questions_share_one_eps_and_blocks_share_it_equally():
    """By separate draws two blocks have eps/2 each; a and c share x's noise."""
    plan = FRAME.dp.plan.agg(
        n=dp.count(),
        a=dp.clip_mean("x", bounds=(0, 10)),
        b=dp.clip_mean("k", bounds=(0, 10)),
        c=dp.clip_sum("x", bounds=(0, 10)),
        eps=1,
        mechanism="laplace",
    )
    assert plan.eps == 1
    assert plan.scale["a"] == pytest.approx(2, rel=1e-6)  # rows
    assert plan.scale["b"] == pytest.approx(2, rel=1e-6)
    alone = FRAME.dp.plan.clip_mean("x", bounds=(0, 10), eps=1)
    assert alone.scale == pytest.approx(1, rel=1e-6)
    text = str(plan.explain())
    assert "2 parts" in text
    assert re.search(r"a: clip_mean.*\n.*\n.*shared with (n, )?c at no extra cost", text)


def test_fused_questions_share_one_draw():
    asked = {"a": dp.clip_mean("x", bounds=(0, 10)), "b": dp.clip_mean("k", bounds=(0, 10))}
    plan = FRAME.dp.plan.agg(
        n=dp.count(), **asked, c=dp.clip_sum("x", bounds=(0, 10)), eps=1, mechanism="row"
    )
    assert plan.eps == 1
    assert {*plan.scale.values()} == {1}  # rows
    assert "split       one draw for n, a, b, c" in str(plan.explain())
    assert {p.fused for p in plan.plan.parts} == {1}


def test_an_aggregates_own_eps_adds_to_the_calls():
    plan = FRAME.dp.plan.agg(n=dp.count(eps=0.25), s=dp.clip_sum("x", bounds=(0, 10)), eps=0.5)
    assert plan.eps == 0.75
    assert plan.scale["n"] == pytest.approx(4, rel=1e-6)
    assert plan.scale["s"] == pytest.approx(20, rel=1e-6)
    all_own = FRAME.dp.plan.agg(dp.count(eps=0.25), dp.clip_mean("late", eps=0.5))
    assert all_own.eps == 0.75


def test_named_and_positional_questions_are_the_same_plan():
    named = FRAME.dp.plan.agg(n=dp.count(), m=dp.clip_mean("late"), eps=1)
    positional = FRAME.dp.plan.agg(dp.count().alias("n"), dp.clip_mean("late").alias("m"), eps=1)
    assert named.plan == positional.plan


# ---- the namespace ----


def test_a_column_named_dp_is_read_by_brackets_and_can_be_asked(kind):
    """Case 58."""
    df = as_kind(kind, pl.DataFrame({"dp": [1, 2, 3]}))
    with dp.Session(eps=10 * EPS):
        assert df.dp.clip_sum("dp", bounds=(0, 9), eps=EPS) == 6
        assert df.dp.groupby("dp", keys=[3, 9]).count(eps=EPS)["count"].to_list() == [1, 0]
    if kind != "lazy":
        assert df["dp"].to_list() == [1, 2, 3]


def test_registering_again_changes_nothing():
    before = pd.DataFrame.dp, pl.DataFrame.dp, pl.LazyFrame.dp
    accessors.register()
    assert (pd.DataFrame.dp, pl.DataFrame.dp, pl.LazyFrame.dp) == before


def test_polars_expressions_have_no_dp_of_ours():
    ours = getattr(pl.Expr, "dp", None)
    assert ours is None or not getattr(ours, "__module__", "").startswith("dpframe")


def test_dp_frame_is_the_same_door(kind, no_noise):
    df = as_kind(kind, FRAME)
    assert isinstance(dp.frame(df), dp.FrameDP)
    with dp.Session(eps=10):
        assert dp.frame(df).count(eps=1) == df.dp.count(eps=1) == 6


def test_copies_filters_and_pickles_of_a_frame_pay_from_the_same_session(kind):
    """Case 55: nothing lives on the accessor or the frame."""
    df = as_kind(kind, FRAME)
    frames = [df, df.head(2)]
    frames += [df.copy(), pickle.loads(pickle.dumps(df))] if kind == "pandas" else [df.clone()]
    with dp.Session(eps=1) as s:
        for f in frames:
            f.dp.count(eps=0.125)
        assert s.spent == Fraction(len(frames), 8)
    if kind == "pandas":
        assert df.attrs == {}


def test_swapped_arguments_are_refused(kind):
    """Case 119: eps where bounds belong, a column where eps belongs, bounds as two numbers."""
    df = as_kind(kind, FRAME)
    with dp.Session(eps=1) as s:
        for wrong in (
            lambda: df.dp.clip_mean("x", 0.5, (0, 10)),
            lambda: df.dp.clip_mean("x", (0, 10), 0.5),
            lambda: df.dp.clip_sum("x", 0, 10, eps=1),
            lambda: df.dp.count("x", 1e-6),
        ):
            with pytest.raises(TypeError, match=r"position.*Hint"):
                wrong()
        for wrong in (
            lambda: df.dp.clip_mean("x", bounds=0.5, eps=(0, 10)),
            lambda: df.dp.count(eps="x"),
            lambda: df.dp.clip_mean("x", bounds=(0, 10), eps=0.5, n=1e-6),
        ):
            with pytest.raises(dp.InputError):
                wrong()
        assert s.report().height == 0


def test_attainable_outputs_do_not_depend_on_the_data():
    """Case 100: float sums lie on one public grid, whatever the cells."""
    with dp.Session(eps=100):
        for cells in ([0.1, 0.2], [0.3, 1 / 3], [7.0, None], [math.pi, -math.e]):
            df = pl.DataFrame({"x": cells})
            step = None
            for _ in range(20):
                r = df.dp.plan.clip_sum("x", bounds=(-4, 10), eps=0.5).release()
                step = r.facts["outputs"]["x_sum"]["grid_step"]
                assert r.value / step == int(r.value / step)
            assert step == 2.0**-26  # 16/2**30, the least power of two that leaves 2**30 steps in 14


@pytest.mark.parametrize("decimals", [16, -16, 2**70, 1.5, True])
def test_decimals_beyond_a_float_are_refused_before_anything_is_spent(decimals):
    with dp.Session(eps=1) as s, pytest.raises(dp.InputError, match=r"round=.*Hint"):
        pl.DataFrame({"x": [1.0]}).dp.clip_mean("x", bounds=(0, 10), eps=1, round=decimals)
    assert s.spent == 0


def test_rounding_makes_no_answer_infinite():
    """A variance near 1e270 times 10**15 is within float64, and one near 1e300 would not be."""
    with dp.Session(eps=10**6):
        spread = pl.DataFrame({"x": [0.0, 1e135]}).dp.clip_var("x", bounds=(0, 1e135), eps=10**6, round=15)
    assert 0 < spread < 1e270
    assert rounded(np.array([1e300, 0.123456]), 15).tolist() == [1e300, 0.123456]
    assert rounded(np.array([125, -7]), -1).tolist() == [120, -10]
