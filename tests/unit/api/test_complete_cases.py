"""``complete_cases=True`` in every kind of call: what it refuses, what it says, what it costs, who knows of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from conftest import as_kind, exact_integers
from dpframe.planning.plan import fingerprint

NAN = float("nan")
FRAME = pl.DataFrame(
    {
        "g": ["a", "a", "b", None, "a", "b"],
        "x": [1.0, NAN, 3.0, 4.0, None, 5.0],
        "y": [1.0, 2.0, None, 5.0, 6.0, 7.0],
        "w": [1, 1, 1, None, 1, 2],
        "t": ["p", "q", "r", "s", "t", None],
    }
)
BOUNDS = (0, 10)

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture
def session():
    with dp.Session(eps=10**9, delta=0.5) as s:
        yield s


def rows(*missing: int) -> pl.DataFrame:
    """The frame without these rows."""
    return FRAME.with_row_index("row").filter(~pl.col("row").is_in(missing)).drop("row")


def test_all_answers_are_of_the_same_rows(kind, session):
    got = as_kind(kind, FRAME).dp.agg(
        n=dp.count(),
        k=dp.count("t"),
        x=dp.clip_mean("x", bounds=BOUNDS),
        y=dp.clip_sum("y", bounds=BOUNDS),
        eps=1e7,
        complete_cases=True,
    )
    (row,) = pl.DataFrame(got).rows()
    assert row == pytest.approx((2, 2, 2.5, 6), abs=1e-3)


def test_keys_may_be_missing_and_are_kept(kind, session):
    groups = as_kind(kind, FRAME).dp.groupby("g", keys=["a", "b", None])
    got = groups.dp_agg(dp.count(), dp.count("x"), dp.count("y"), eps=1e7, complete_cases=True)
    numbers = pl.DataFrame(got).drop("g").rows()
    assert numbers == [(1, 1, 1), (1, 1, 1), (1, 1, 1)]


def test_one_predicate_for_answers_that_pay_by_themselves(kind, session):
    """A tally, a rank, a number of values and sums, each with its own eps: five draws, one set of rows."""
    eps = dict.fromkeys(("n", "x", "m", "u", "p"), 1e7)
    got = as_kind(kind, FRAME).dp.agg(
        n=dp.count(),
        x=dp.clip_sum("x", bounds=BOUNDS),
        m=dp.quantile("y", 0.5, candidates=[1, 2, 5, 6, 7]),
        u=dp.n_unique("t"),
        p=dp.clip_sum("w", bounds=(0, 5)),
        eps=eps,
        complete_cases=True,
    )
    ((n, x, m, u, p),) = pl.DataFrame(got).select("n", "x", "m", "u", "p").rows()
    assert (n, u, m, x, p) == pytest.approx((1, 1, 1, 1, 1), abs=1e-3)  # the first row alone


def test_each_single_verb_takes_it(kind, session):
    door = as_kind(kind, FRAME).dp
    options = {"eps": 1e7, "complete_cases": True}
    assert door.count("x", **options) == 4
    assert door.count(**options) == 6
    assert door.n_unique("t", **options) == 5
    table = pl.DataFrame(door.histogram("x", edges=[0, 4, 10], **options))
    assert table["count"].to_list() == [0, 2, 2, 0, 0]  # nothing is missing
    top = pl.DataFrame(door.top_k("t", 2, candidates=["s", None, "z"], **options))
    assert top["t"][0] == "s"
    assert door.clip_wmean("x", weights="w", bounds=BOUNDS, weight_bounds=(0, 2), **options) == pytest.approx(
        14 / 4, abs=0.01
    )


def test_found_values_leave_out_what_is_missing(kind, session):
    """``top_k`` without candidates groups by its column, and that is what it reads."""
    frame = as_kind(kind, pl.DataFrame({"t": ["p"] * 30 + [None] * 40}))
    found = pl.DataFrame(frame.dp.top_k("t", 3, eps=10, delta=1e-3))
    assert found["t"].to_list() == [None, "p"]
    found = pl.DataFrame(frame.dp.top_k("t", 3, eps=10, delta=1e-3, complete_cases=True))
    assert found["t"].to_list() == ["p"]
    counted = pl.DataFrame(frame.dp.value_counts("t", keys=["p", None], eps=100, complete_cases=True))
    assert counted["count"].to_list() == [30, 40]  # values are keys there


def test_keys_that_are_found_are_those_of_complete_rows(kind, session):
    frame = as_kind(kind, pl.DataFrame({"g": ["a"] * 50 + ["b"] * 50, "x": [1.0] * 50 + [None] * 50}))
    for complete, keys in ((False, ["a", "b"]), (True, ["a"])):
        got = frame.dp.groupby("g").dp_agg(
            n=dp.count(), x=dp.count("x"), eps=10, delta=1e-6, complete_cases=complete
        )
        assert pl.DataFrame(got)["g"].to_list() == keys


@pytest.mark.parametrize("rows_per_unit", [1, 2])
def test_units_have_rows_that_are_complete(kind, rows_per_unit):
    frame = pl.DataFrame({"u": [1, 1, 1, 2, 2, 3], "x": [None, 1.0, 9.0, NAN, None, 3.0]})
    with dp.Session(eps=10**9, unit="u"):
        (row,) = pl.DataFrame(
            as_kind(kind, frame).dp.agg(
                n=dp.count(),
                units=dp.count_units(),
                x=dp.clip_sum("x", bounds=BOUNDS),
                max_rows=rows_per_unit,
                eps=1e7,
                complete_cases=True,
            )
        ).rows()
    expected = (2, 2, 8) if rows_per_unit == 1 else (3, 2, 13)  # filtered before a unit is scaled
    assert row == pytest.approx(expected, abs=1e-3)


# ---- the layouts ----


def test_no_block_has_a_missing_cell(session):
    """``count()`` beside a nullable mean takes a third cell; of complete rows it takes none. Nor do draws have present rows."""
    plan = FRAME.dp.plan
    asked = {"n": dp.count(), "x": dp.clip_mean("x", bounds=BOUNDS)}
    split = {"eps": 1, "mechanism": "laplace"}
    assert len(plan.agg(**asked, **split).plan.pieces) == 3
    complete = plan.agg(**asked, **split, complete_cases=True).plan
    assert len(complete.pieces) == 2
    joint = {"eps": 1, "mechanism": "row"}
    for more, missing in ({}, True), ({"complete_cases": True}, False):
        (block,) = plan.agg(**asked, **joint, **more).plan.pieces[0].noise.joint.blocks
        assert block.missing == missing
    assert [c.nullable for c in complete.columns] == [
        True
    ]  # the frame's own types are what the plan is held to


def test_a_count_of_a_column_is_the_count_of_rows(session):
    asked = FRAME.dp.plan.agg(dp.count(), dp.count("x"), dp.count("y"), eps=1, complete_cases=True).plan
    assert len(asked.pieces) == len(asked.parts) == 1
    assert not asked.measures
    assert [o.name for o in asked.outputs] == ["count", "x_count", "y_count"]
    assert asked.scale == dict.fromkeys(("count", "x_count", "y_count"), 1.0)
    alone = FRAME.dp.plan.agg(dp.count("x"), eps={"x_count": 1}, complete_cases=True).plan
    assert alone.mechanism == FRAME.dp.plan.count("x", eps=1).mechanism


@pytest.mark.parametrize("kind_of_group", ["units", "rows"])
def test_thresholds_count_what_they_count_else(kind_of_group):
    with dp.Session(eps=10, delta=0.1, unit="t"):
        asked = FRAME.dp.plan.groupby("g").agg(
            dp.count("x"), eps=1, delta=1e-6, max_groups=1, max_rows_per_group=2, threshold=kind_of_group,
            complete_cases=True,
        )  # fmt: skip
    assert asked.plan.threshold.counted == ("t" if kind_of_group == "units" else "row")


# ---- what is refused ----


@pytest.mark.parametrize(
    "asked",
    [
        lambda: dp.clip_mean("x", bounds=BOUNDS, n=6),
        lambda: dp.vector_mean(["x", "y"], norm=5, n=6),
    ],
)
def test_a_public_number_of_rows_is_refused(asked, kind, session):
    with pytest.raises(dp.InputError, match=r"takes n=6 .*complete_cases=True.*\n?.*leave n= out"):
        as_kind(kind, FRAME).dp.agg(dp.count(), m=asked(), eps=1, complete_cases=True)
    assert session.spent == 0


@pytest.mark.parametrize("wrong", [1, 0, "yes", np.True_, None, ["x"]])
def test_it_is_true_or_false(wrong, session):
    door = FRAME.dp
    if wrong is None:  # as with every option: not given
        assert door.plan.count("x", eps=1, complete_cases=None).plan.complete == ()
        return
    with pytest.raises(
        dp.InputError, match=r"complete_cases=.* must be True or False\. Hint: complete_cases=True"
    ):
        door.agg(dp.count("x"), eps=1, complete_cases=wrong)
    assert session.spent == 0


def test_keys_take_no_such_option(session):
    with pytest.raises(TypeError, match="complete_cases"):
        FRAME.dp.groupby("g").keys(eps=1, delta=1e-6, complete_cases=True)


# ---- what is said ----


def test_it_is_explained_and_described(session):
    plan = FRAME.dp.plan
    asked = plan.groupby("g", keys=["a"]).agg(
        dp.clip_wmean("x", weights="w", bounds=BOUNDS), dp.count("y"), eps=1, complete_cases=True
    )
    assert "rows that lack x, w or y are left out of every answer" in str(asked.explain())
    assert asked.plan.describe().endswith(", count('y'), complete_cases=True)")
    one = plan.clip_mean("x", bounds=BOUNDS, eps=1, complete_cases=True)
    assert one.plan.describe() == "clip_mean('x', bounds=(0, 10), complete_cases=True)"
    assert "rows that lack x are left out" in str(one.explain())
    two = plan.agg(dp.count("x"), dp.count("y"), eps=1, complete_cases=True)
    assert "rows that lack x or y are left out" in str(two.explain())
    assert two.plan.describe() == "agg(count('x'), count('y'), complete_cases=True)"
    assert "lack" not in str(plan.agg(dp.count("x"), eps=1).explain())


def test_its_fingerprint_is_another(session):
    def print_of(**options):
        return fingerprint(FRAME.dp.plan.clip_mean("x", bounds=BOUNDS, eps=1, **options).plan)

    assert print_of() == print_of(complete_cases=False) != print_of(complete_cases=True)

    def pair(*verbs):
        return fingerprint(FRAME.dp.plan.agg(*verbs, eps=1, complete_cases=True).plan)

    assert pair(dp.count("x"), dp.count("y")) != pair(dp.count("x"), dp.count("w"))
    found = FRAME.dp.plan.top_k("t", 2, eps=1, delta=1e-6, complete_cases=True).plan
    assert found.describe() == "top_k('t', 2, complete_cases=True)"
    assert fingerprint(found) != fingerprint(FRAME.dp.plan.top_k("t", 2, eps=1, delta=1e-6).plan)


def test_a_request_answered_for_all_rows_is_no_answer_for_complete_ones(tmp_path):
    with dp.Session(eps=100, ledger=dp.Ledger.create(tmp_path / "l.db", eps=100)) as s:
        FRAME.dp.clip_mean("x", bounds=BOUNDS, eps=1, request_id="r")
        with pytest.raises(dp.DPError):
            FRAME.dp.clip_mean("x", bounds=BOUNDS, eps=1, request_id="r", complete_cases=True)
        assert s.spent == 1


def test_an_error_is_planned_for_with_it(session):
    bound = FRAME.dp.plan.agg(dp.count(), dp.count("x"), error=3, complete_cases=True)
    assert bound.plan.complete
    assert len(bound.plan.pieces) == 1


# ---- where it goes ----


def test_a_part_takes_it(session):
    for kind in ("pandas", "polars", "lazy"):
        parts = as_kind(kind, FRAME).dp.partition_by("g", keys=["a", "b"], eps=1e7)
        counts = {
            k: pl.DataFrame(
                p.dp.agg(dp.count(), dp.count("x"), dp.count("y"), eps=1e6, complete_cases=True)
            ).row(0)
            for k, p in parts.items()
        }
        assert counts == {"a": (1, 1, 1), "b": (1, 1, 1)}


def test_plans_and_release_files_hold_it(tmp_path):
    FRAME.write_parquet(tmp_path / "people.parquet")
    queries = {
        "whole": dp.query(n=dp.count(), x=dp.count("x"), eps=1e6),
        "complete": dp.query(n=dp.count(), x=dp.count("x"), eps=1e6, complete_cases=True),
    }
    plan = dp.BudgetPlan(eps=2e6, sources={"people": str(tmp_path / "people.parquet")}, queries=queries)
    path = tmp_path / "release.toml"
    plan.to_release_file(path)
    text = path.read_text()
    assert text.count("complete_cases = true") == 1
    again = dp.BudgetPlan.from_release_file(path)
    assert again.fingerprint == plan.fingerprint
    path.write_text(text.replace("complete_cases = true", "complete_cases = false"))
    assert dp.BudgetPlan.from_release_file(path).fingerprint != plan.fingerprint
    got = again.run()
    assert got["whole"].value.row(0) == (6, 4)
    assert got["complete"].value.row(0) == (4, 4)
    path.write_text(text.replace("complete_cases = true", "complete_cases = 'yes'"))
    with pytest.raises(dp.InputError, match=r"release\.toml:\d+: complete_cases = .* must be true or false"):
        dp.BudgetPlan.from_release_file(path)


def test_an_engine_that_leaves_nothing_out_fails(session, monkeypatch):
    """Noise is made for columns without gaps; an engine that says there is one is not believed."""
    from dpframe.engine import polars

    monkeypatch.setattr(polars, "complete_rows", lambda rows, axes, values: rows)
    with pytest.raises(dp.ReleaseFailed):
        FRAME.dp.clip_mean("x", bounds=BOUNDS, eps=1, complete_cases=True)


@pytest.mark.parametrize("cells", [[], [None], [NAN, None], [1.0], [1.0, None]])
def test_few_rows_or_none_that_are_complete(kind, cells, session, no_noise):
    frame = pl.DataFrame(
        {"x": pl.Series(cells, dtype=pl.Float64), "y": pl.Series([1.0] * len(cells), dtype=pl.Float64)}
    )
    whole = sum(c == 1.0 for c in cells)
    bound = as_kind(kind, frame).dp.plan.agg(
        dp.count("x"), dp.clip_mean("y", bounds=(0, 2)), eps=1, complete_cases=True
    )
    (below,), (above,), (rows,) = exact_integers(bound)
    assert below == above == whole * bound.plan.parts[0].layout.row // 2
    assert rows == whole


def test_integers_of_numpy_are_never_missing(session):
    frame = pd.DataFrame({"i": [1, 2, 3]})
    assert frame.dp.count("i", eps=1e7, complete_cases=True) == 3
