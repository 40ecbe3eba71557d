"""Options that a question does not use are refused before the charge; hints and digits follow what was typed."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.statistics.table import STATISTICS

FRAME = pl.DataFrame(
    {
        "x": [1.0, 2.0, 3.0],
        "y": [0.5, 1.0, 1.5],
        "i": [1, 2, 3],
        "b": [True, False, True],
        "g": ["a", "b", "a"],
    }
)
NO_MARGIN = {"quantile", "quantiles", "median", "iqr", "top_k", "select", "bounds"}
RANK = {"quantile", "median", "iqr"}  # alone on a frame: repr shows the rank's margin at that level


@pytest.fixture
def session():
    with dp.Session(eps=100, delta=1e-3) as s:
        yield s


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("title", sorted(t for s in STATISTICS.values() if not s.of_units for t in s.audited))
def test_a_level_is_used_or_refused(title, grouped, session):
    """``ci=`` adds a margin, is shown, or is refused at no cost; never ignored."""
    statistic = next(s for s in STATISTICS.values() if title in s.audited)
    door = FRAME.dp.groupby("g", keys=["a"]) if grouped else FRAME.dp
    options = {"eps": 1, "ci": 0.9, **statistic.audited[title]}
    if title in NO_MARGIN and not (title in RANK and not grouped):
        with pytest.raises(dp.InputError, match=r"^ci= asks for margins"):
            getattr(door, statistic.name)(**options)
        assert session.spent == 0
        return
    answer = getattr(door, statistic.name)(**options)
    if isinstance(answer, pl.DataFrame):
        assert any(c.endswith("_moe") for c in answer.columns) or {"low", "high"} <= set(answer.columns)
    else:
        assert "90%" in repr(answer)


def test_a_level_beside_an_answer_that_has_a_margin_is_its(session):
    table = FRAME.dp.agg(n=dp.count(), m=dp.median("x", bounds=(0, 9)), eps=1, ci=0.9)
    assert table.columns == ["n", "n_moe", "m"] or set(table.columns) == {"n", "n_moe", "m"}


@pytest.mark.parametrize(
    "option",
    [
        {"mechanism": "nonsense"}, {"mechanism": "laplace"}, {"threshold": "rows"}, {"ci": 0.9}, {"nonnegative": True},
        {"loss": "l1"}, {"round": 1}, {"error": 3}, {"rows": 10}, {"relative_to": 3}, {"max_rows": 3},
        {"max_rows_per_group": 2},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("plan", [False, True])
def test_keys_takes_only_what_it_uses(option, plan, session):
    door = FRAME.dp.plan if plan else FRAME.dp
    with pytest.raises(TypeError, match=f"keys has no argument '{next(iter(option))}'"):
        door.groupby("g").keys(eps=1, delta=1e-6, **option)
    assert session.spent == 0


def test_an_error_of_more_than_all_is_no_fraction(session):
    with pytest.raises(
        dp.InputError,
        match=r"error=500 is a fraction of relative_to=1000, .*Hint: error=0.05, or error=500 alone",
    ):
        FRAME.dp.count(error=500, relative_to=1000)
    assert session.spent == 0
    assert FRAME.dp.plan.count(error=1, relative_to=30).error == pytest.approx(30, abs=1)


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        ((10, 3), "bounds=(10, 3) are the wrong way round; low must be less than high. Hint: bounds=(3, 10)"),
        ((5, 5), "bounds=(5, 5) are equal; low must be less than high. Hint: bounds=(0, 10)"),
        ((-3, -3), "Hint: bounds=(-6, 0)"),
        ((0, 0), "Hint: bounds=(-1, 1)"),
        ((10**15 + 1, 10**15), "bounds=(1000000000000001, 1e+15) are the wrong way"),
        ((1234567.25, 1.0), "bounds=(1234567.25, 1) are the wrong way"),
        ((-(2**996), -(2**997)), "about -2**997) are the wrong way"),
    ],
)
def test_hints_of_bounds_follow_what_was_typed(bounds, says):
    with pytest.raises(dp.InputError) as e:
        dp.clip_mean("x", bounds=bounds)
    assert says in str(e.value)


@pytest.mark.parametrize(
    ("ask", "hint"),
    [
        (lambda: dp.clip_sum("x", B=-3), "Hint: B=3"),
        (lambda: dp.clip_sum("x", B="3"), "Hint: B=100"),
        (lambda: dp.histogram("x", edges=[0, "a"]), "Hint: edges=[0, 10, 20]"),
        (lambda: dp.median("x", candidates=[0, float("nan")]), "Hint: candidates=[0, 10, 20]"),
        (lambda: dp.bounds("x", range=(1, 0)), "Hint: range=(0, 1)"),
        (
            lambda: dp.clip_wmean("x", weights="y", bounds=(0, 1), weight_bounds=(2, 1)),
            "Hint: weight_bounds=(1, 2)",
        ),
    ],
)
def test_hints_name_the_argument_that_was_wrong(ask, hint):
    with pytest.raises(dp.InputError) as e:
        ask()
    assert str(e.value).endswith(hint)


def test_descriptions_keep_the_digits_that_tell_numbers_apart():
    assert (
        dp.clip_mean("x", bounds=(10**15, 10**15 + 2)).describe()
        == "clip_mean('x', bounds=(1e+15, 1000000000000002))"
    )
    assert dp.clip_sum("x", bounds=(0.1234567891, 1)).describe() == "clip_sum('x', bounds=(0.1234567891, 1))"
    assert (
        dp.histogram("x", edges=[1.0000001, 1.0000002]).describe()
        == "histogram('x', edges=[1.0000001, 1.0000002])"
    )


def test_bins_of_close_edges_have_names_of_their_own(session):
    bins = FRAME.dp.histogram("x", edges=[1.0000001, 1.0000002, 1.0000003], eps=1)["bin"].to_list()
    assert len(set(bins)) == len(bins)


def test_a_level_of_the_index_says_so(session):
    indexed = FRAME.to_pandas().set_index("g")
    for ask in (
        lambda: indexed.dp.groupby("g", keys=["a"]).count(eps=1),
        lambda: indexed.dp.count("g", eps=1),
        lambda: indexed.set_index("x", append=True).dp.clip_sum("x", bounds=(0, 1), eps=1),
    ):
        with pytest.raises(
            dp.InputError, match=r"is a level of the index, not a column. Hint: df.reset_index\(\)"
        ):
            ask()
    assert session.spent == 0


def test_a_sparse_column_is_said_to_be_sparse(session):
    sparse = pd.DataFrame({"x": pd.arrays.SparseArray([0.0, 1.0, 2.0])})
    with pytest.raises(
        dp.InputError, match=r"sparse columns are not read. Hint: df\['x'\].sparse.to_dense\(\)"
    ):
        sparse.dp.clip_mean("x", bounds=(0, 1), eps=1)
    with pytest.raises(dp.InputError, match=r"Hint: df\['x'\].sparse.to_dense\(\)"):
        sparse.dp.groupby("x", keys=[1.0]).count(eps=1)
    assert session.spent == 0
    dense = sparse.assign(x=sparse["x"].sparse.to_dense())
    assert round(dense.dp.clip_mean("x", bounds=(0, 2), eps=99), 1) == pytest.approx(1, abs=5)


def test_a_small_answer_is_not_minus_zero(session):
    """An answer of -0.2 beside a margin of 30 is 0."""
    answer = FRAME.dp.clip_sum("x", bounds=(-30.5, 30.5), eps=3)
    assert repr(type(answer)(-0.2, answer.release)).startswith("0 ± ")
    assert repr(type(answer)(-7.2, answer.release)).startswith("-7 ± ")
