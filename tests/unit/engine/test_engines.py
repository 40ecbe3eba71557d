"""DuckDB, Ibis, SQLFrame and PySpark: Polars' integers.

``DPFRAME_AUDIT=1`` raises the number of generated frames per engine to 2,000 (on Spark, where a question
takes seconds, 25 frames share one).
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from databases import TABLE
from sizes import AUDIT, FRAMES

import dpframe as dp
from dpframe.engine.polars import PolarsSource
from dpframe.frames.contract import Ask, Bounding
from dpframe.testing.engines import canonical_rank, check_engine

pytestmark = pytest.mark.usefixtures("quiet")


# ---- the same integers ----


def test_conformance(engine):
    name, make = engine
    how = (
        {"seed": 7, "together": 25 if AUDIT else 5} if name == "spark" else {}
    )  # few questions, all sorts of them
    got = check_engine(make, frames=FRAMES, **how)
    assert got.frames == FRAMES
    assert FRAMES // 3 <= got.bounded <= FRAMES
    assert 0 < got.complete < FRAMES


def test_answers_are_polars_frames_with_the_types_of_the_table(make, no_noise):
    with dp.Session(eps=1000):
        for by, keys in (
            (["g"], ["b", None, "c"]),
            (["level"], [0, 1.5, None]),
            (["day", "g"], [("2026-01-01", "a"), (None, None)]),
            (["time"], [dt.datetime(2026, 3, 8, 2, 30)]),
            (["cash"], [Decimal("1.5"), 0, None]),
        ):
            got, expected = (
                dp.frame(f)
                .groupby(*by, keys=keys)
                .dp_agg(n=dp.count(), m=dp.clip_mean("x", bounds=(0, 10)), eps=1)
                for f in (make(TABLE), TABLE)
            )
            assert isinstance(got, pl.DataFrame)
            assert got.equals(expected)
            assert got.schema == expected.schema
            assert got["n"].sum() > 0


def test_found_keys_are_sorted_and_typed(make, no_noise):
    many = pl.concat([TABLE.filter(pl.col("g") != "zz")] * 30 + [TABLE])
    for by in (["g"], ["level", "day"], ["time"], ["cash"]):
        with dp.Session(eps=10, delta=0.5):
            got, expected = (
                dp.frame(f).groupby(*by).dp_agg(n=dp.count(), eps=1, delta=1e-3) for f in (make(many), many)
            )
        assert got.equals(expected)
        assert got.schema == expected.schema
        assert got.height > 0
    with dp.Session(eps=10, delta=0.5):
        assert "zz" not in dp.frame(make(many)).groupby("g").keys(eps=1, delta=1e-9)["g"].to_list()


def test_ties_on_the_grid_go_to_even(make, no_noise):
    ties = pl.DataFrame({"i": [2**52 + 1, 0, 1, 3], "x": [0.5, 1.5, 2.5, 3.5]})
    ties = ties.with_columns(x=pl.col("x") * 2.0**-27)  # halves of the step of (0, 8)
    with dp.Session(eps=1000):
        plan = dp.frame(ties).plan.clip_sum("x", bounds=(0, 8), eps=1).plan
    (measure,) = plan.measures
    sums = [dp.frame(f)._source.aggregate(plan.ask(1)).sums[0][0].tolist() for f in (ties, make(ties))]
    step = measure.axes[0].magic / (3 * 2**51)
    assert step == 2.0**-27
    assert sums == [[0 + 2 + 2 + 4]] * 2


@pytest.mark.parametrize("order", [1, 2])
def test_norms_are_added_up_in_one_order(make, order):
    """Floats add up to different sums in different orders, and engines have orders of their own.

    0.3 of (0.1 + 0.2) + 0.3 is a step less than 0.3 of 0.1 + (0.2 + 0.3).
    """
    rng = np.random.default_rng(order)
    names = ["a", "b", "c", "d", "e"]
    rows = pl.DataFrame({"k": range(2000), **{n: rng.integers(-9, 10, 2000) / 10 for n in names}})
    with dp.Session(eps=1):
        plan = dp.frame(rows).plan.groupby("k", keys=range(2000)).vector_sum(names, norm=1, ord=order, eps=1)
    plan = plan.plan
    got, expected = (dp.frame(f)._source.aggregate(plan.ask(1)).sums[0] for f in (make(rows), rows))
    assert np.array_equal(got, expected)
    ball = plan.measures[0].ball
    for i, row in enumerate(rows.select(names).iter_rows()):  # the reference: ((a + b) + (c + d)) + e
        a, b, c, d, e = (x * x if order == 2 else abs(x) for x in row)
        size = ((a + b) + (c + d)) + e
        size = size**0.5 if order == 2 else size
        shrink = min(1.0, ball.norm / size if size else 1.0) * ((1 - 2.0**-20) / ball.step)
        assert [int(x * shrink) for x in row] == [int(s[i]) for s in expected]


def test_a_row_moves_sums_by_at_most_its_steps_whatever_the_cell_holds(make):
    """Privacy: extreme cells, and cells that engines treat each in their own way, stay within the clip."""
    cells = [1e308, -1e308, float("inf"), float("-inf"), float("nan"), None, -0.0, 5e-324, 2.0**53 + 2, 1e19]
    cells = pl.DataFrame({"x": cells, "k": list(range(len(cells)))})
    with dp.Session(eps=1):
        plan = dp.frame(cells).plan.groupby("k", keys=range(10)).clip_mean("x", bounds=(-1, 3), eps=1).plan
    source = dp.frame(make(cells))._source
    (steps,) = source.aggregate(plan.ask(1)).sums[0]
    top = plan.measures[0].axes[0].steps
    quarter = top // 4
    assert steps.tolist() == [top, 0, top, 0, 0, 0, quarter, quarter, top, top]


def test_missing_ids_are_left_out_and_units_scaled_down(make, no_noise):
    with dp.Session(eps=1000, unit="u"):
        got, expected = (
            [
                dp.frame(f).count(max_rows=2, eps=1),
                dp.frame(f).clip_sum("x", bounds=(0, 10), max_rows=2, eps=1),
                dp.frame(f).count_units(eps=1),
                dp.frame(f).n_unique("g", max_rows=9, eps=1),
            ]
            for f in (make(TABLE), TABLE)
        )
    assert got == expected
    assert got[2] == 3


def test_units_choose_their_groups_alike_everywhere(make, no_noise):
    rng = np.random.default_rng(5)
    many = pl.DataFrame({"u": rng.integers(0, 200, 2000), "g": rng.integers(0, 9, 2000)})
    with dp.Session(eps=1000, unit="u", max_groups=2, max_rows_per_group=1):
        plan = dp.frame(many).plan.groupby("g", keys=range(9)).count(eps=1).plan
    sources = [dp.frame(f)._source for f in (many, make(many), make(many.sample(fraction=1, shuffle=True)))]
    ask = Ask(by=plan.by, keys=plan.keys, bounding=Bounding(("u",), 1, 2), salt=77)
    with canonical_rank():
        rows = [s.aggregate(ask).rows.tolist() for s in sources]
    assert rows[0] == rows[1] == rows[2]
    assert sum(rows[0]) == 2 * 200
    other = sources[1].aggregate(dataclasses.replace(ask, salt=78)).rows.tolist()
    assert other != rows[1]


def test_units_choose_their_rows_among_texts_alike_everywhere(make, no_noise):
    rng = np.random.default_rng(6)
    rows = {"u": rng.integers(0, 50, 400), "t": rng.choice(["a", "b|", "1:a", "-"], 400)}
    many = pl.DataFrame(rows)
    with dp.Session(eps=1000, unit="u", max_rows=1):
        listed = dp.frame(many).plan.top_k("t", 2, candidates=["a", "b|", "-"], eps=1)
        distinct = dp.frame(many).plan.n_unique("t", eps=1)
    for plan in (listed.plan, distinct.plan):
        with canonical_rank():
            got = [
                [dataclasses.astuple(x) for x in dp.frame(f)._source.tally(plan.ask(77))]
                for f in (many, make(many))
            ]
        np.testing.assert_equal(got[1], got[0])


def test_one_unit_more_changes_nobody_elses_choice(make):
    """Privacy: the sums of a neighbour differ by one unit's rows alone, for every salt."""
    rng = np.random.default_rng(6)
    frame = pl.DataFrame({"u": rng.integers(0, 60, 600), "g": rng.integers(0, 9, 600)})
    fewer = frame.filter(pl.col("u") != 7)
    types = dp.frame(make(frame))._source
    by = (types.column("g"),)
    for salt in (1, 2, 3):
        both = []
        for f in (frame, fewer):
            got = dp.frame(make(f))._source.aggregate(Ask(by=by, bounding=Bounding(("u",), 1, 2), salt=salt))
            both.append(dict(zip(got.found["k0"].to_list(), got.rows.tolist())))
        assert sum(abs(both[0].get(k, 0) - both[1].get(k, 0)) for k in range(9)) == 2


def test_thousands_of_keys_with_quotes_and_separators(make, no_noise):
    keys = [f"k{i} '\"|\\ \x1f0\x1f" for i in range(3000)]
    frame = pl.DataFrame({'a "b" c': keys[:10] * 3})
    with dp.Session(eps=10):
        got = dp.frame(make(frame)).groupby('a "b" c', keys=keys).count(eps=1)
    assert got["count"].to_list() == [3] * 10 + [0] * 2990


def test_keys_of_several_texts_are_not_taken_for_each_other(make, no_noise):
    """Privacy: a row that two keys share would count twice."""
    keys = [
        ("a|b", "c"),
        ("a", "b|c"),
        ("1:a", "a"),
        ("", "|"),
        ("|", ""),
        ("-", ""),
        (None, ""),
        (None, "-"),
    ]
    rows = [k for i, k in enumerate(keys) for _ in range(i + 1)]
    frame = pl.DataFrame(rows, schema=["a", "b"], orient="row")
    with dp.Session(eps=10):
        got = dp.frame(make(frame)).groupby(["a", "b"], keys=keys).count(eps=1)
    assert sorted(zip(got["a"], got["b"], got["count"]), key=lambda r: r[2]) == [
        (*k, i + 1) for i, k in enumerate(keys)
    ]


def test_polars_own_rank_is_restored_after_the_test_hook():
    frame = pl.DataFrame({"u": [1] * 5, "g": list(range(5))})
    source = PolarsSource(frame)
    by = (source.column("g"),)

    def chosen():
        return source.aggregate(Ask(by=by, bounding=Bounding(("u",), 1, 2), salt=3)).found["k0"].to_list()

    before = chosen()
    with pytest.raises(ZeroDivisionError), canonical_rank():
        raise ZeroDivisionError
    assert chosen() == before
