"""Every answer of the statement says what its values were counted as, and which rows were left out: the margin covers neither.

And a rounded answer's margin holds what rounding moves.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import dpframe as dp

pytestmark = pytest.mark.usefixtures("quiet")
FRAME = pl.DataFrame(
    {
        "g": ["a", "b"] * 50,
        "x": [1.0, None] * 50,
        "y": [2.0, 9.0] * 50,
        "b": [True, False] * 50,
        "v": [[3.0, 4.0]] * 100,
    }
)
CUTS = {
    "count": (lambda d: d.count(eps=1), []),
    "sum": (lambda d: d.clip_sum("x", bounds=(0, 5), eps=1), ["values counted as at least 0 and at most 5"]),
    "Boolean": (lambda d: d.clip_sum("b", eps=1), ["values counted as at least 0 and at most 1"]),
    "wmean": (lambda d: d.clip_wmean("x", weights="y", bounds=(0, 5), weight_bounds=(0, 3), eps=1), ["values of x counted as at least 0 and at most 5, of y as at least 0 and at most 3"]),
    "cov": (lambda d: d.clip_cov(["x", "y"], bounds=[(0, 5), (1, 2)], eps=1), ["values of x counted as at least 0 and at most 5, of y as at least 1 and at most 2"] * 3),
    "corr": (lambda d: d.clip_corr(["x", "b"], bounds={"x": (0, 5)}, eps=1), ["values of x counted as at least 0 and at most 5, of b as at least 0 and at most 1"]),
    "ols": (lambda d: d.ols("y", ["x"], bounds=(0, 5), eps=1), ["values of y counted as at least 0 and at most 5, of x as at least 0 and at most 5"]),
    "vector": (lambda d: d.vector_sum("v", norm=2.5, dim=2, eps=1), ["vectors counted as at most 2.5 long"] * 2),
    "vector, ord 1": (lambda d: d.vector_mean(["x", "y"], norm=3, ord=1, eps=1), ["components that add up to at most 3"] * 2),
    "select": (lambda d: d.select(["x", "y"], B=4, eps=1), ["values counted as at least -4 and at most 4"]),
    "median": (lambda d: d.median("x", bounds=(0, 5), eps=1), ["values counted as at least 0 and at most 5"]),
}  # fmt: skip


def _stated(ask, complete=False):
    with dp.Session(eps=10) as s:
        ask(FRAME.dp)
    text = str(s.statement())
    return text[text.index("What was released") : text.index("In total")]


@pytest.mark.parametrize("name", CUTS)
def test_what_values_are_counted_as(name):
    ask, cuts = CUTS[name]
    lines = _stated(ask).splitlines()
    said = [line for line in lines if "counted as" in line]
    assert len(said) == len(cuts)
    assert all(cut in line for cut, line in zip(cuts, said))


def test_rows_that_are_left_out():
    left = "rows that lack x or y are left out of every answer"
    complete = _stated(
        lambda d: d.agg(dp.count(), dp.clip_sum("x", B=1), dp.clip_sum("y", B=1), eps=1, complete_cases=True)
    )
    assert left in complete
    assert "rows that lack y or x are left out" in _stated(CUTS["ols"][0])
    assert "left out" not in _stated(CUTS["cov"][0])


ROUNDED = {
    "count": lambda d, r: d.count(eps=100, round=r),
    "sum": lambda d, r: d.clip_sum("y", bounds=(0, 9), eps=100, round=r),
    "mean": lambda d, r: d.clip_mean("y", bounds=(0, 9), n=100, eps=100, round=r),
    "n_unique": lambda d, r: d.n_unique("y", eps=100, round=r),
    "in groups": lambda d, r: d.groupby("g", keys=["a", "b"]).clip_sum("y", bounds=(0, 9), eps=100, round=r),
}
EXACT = {"count": 100, "sum": 550, "mean": 5.5, "n_unique": 2, "in groups": [100, 450]}


@pytest.mark.parametrize("decimals", [-3, -2, -1, 0, 1, None])
@pytest.mark.parametrize("name", ROUNDED)
def test_a_margin_holds_what_rounding_moves(name, decimals):
    """Planted by 0.1.0: the count 16 at ``round=-2`` was told as 0, within 0 of the exact figure. At eps = 100 noise of more
    than ten times the margin has a chance below 1e-12."""
    with dp.Session(eps=10**4) as s:
        plan = ROUNDED[name](FRAME.dp.plan, decimals)
        ROUNDED[name](FRAME.dp, decimals)
    released, (fact,) = s.last, s.last.facts["outputs"].values()
    values = np.ravel(
        np.asarray(released.value if np.isscalar(EXACT[name]) else released.value[:, 1], dtype=float)
    )
    half = 0 if decimals is None or (decimals >= 0 and name in ("count", "n_unique")) else 10.0**-decimals / 2
    bare = ROUNDED[name](FRAME.dp.plan, None).error
    assert plan.error == pytest.approx(fact["margin_95"])
    assert fact["margin_95"] == pytest.approx(bare + half)
    assert np.all(np.abs(values - EXACT[name]) <= 10 * bare + half + 1e-9)
    assert f"within {fact['margin_95']:.4g} of the exact" in str(s.statement()).replace(",", "")
    if half > bare:
        assert f"{fact['margin_95']:,.6g}" in str(plan.explain())


def test_the_rank_of_a_chosen_value_is_that_before_rounding():
    with dp.Session(eps=10) as s:
        FRAME.dp.median("y", bounds=(0, 9), eps=1, round=-1)
    (fact,) = s.last.facts["outputs"].values()
    assert fact["margin_of"].endswith(", before the answer was rounded")
    assert "before the answer was rounded, within" in str(s.statement())


def test_an_error_that_rounding_alone_passes_can_not_be_met():
    with dp.Session(eps=10**9) as s:
        with pytest.raises(dp.InputError, match="can't be met"):
            FRAME.dp.clip_sum("y", bounds=(0, 9), error=40, round=-2)
        assert s.spent == 0
        plan = FRAME.dp.plan.clip_sum("y", bounds=(0, 9), error=60, round=-2)
        assert plan.error <= 60
