"""A verb refuses what it does not use: every verb, with every option of the signatures, against the plan without it."""

from __future__ import annotations

import inspect

import polars as pl
import pytest

import dpframe as dp
from dpframe.api.options import OPTIONS
from dpframe.planning.plan import fingerprint
from dpframe.statistics.table import STATISTICS

pytestmark = pytest.mark.usefixtures("quiet")
FRAME = pl.DataFrame(
    {
        "x": [1.0, 2.0, 3.0, -1.0] * 20,
        "y": [1.0, 2.0, 3.0, 0.0] * 20,
        "g": ["a", "b", "c", "d"] * 20,
        "u": range(80),
        "w": [1.0] * 80,
        "i": [0, 3, 6, 9] * 20,
    }
)
GIVEN = {
    "delta": 1e-4, "rows": 500, "relative_to": 5, "mechanism": "laplace", "loss": "l1", "max_groups": 1,
    "max_rows_per_group": 1, "max_rows": 1, "threshold": "rows", "min_units": 30, "nonnegative": True, "round": 1, "complete_cases": True,
}  # fmt: skip
ELSEWHERE = {
    "eps",
    "rho",
    "error",
    "session",
    "label",
    "request_id",
    "ci",
}  # who pays, and how the answer is called and shown
# What may be given though it changes nothing here: a guess that no error depends on; complete rows where all are, or
# where the answer is always about them; limits that groupby may bring.
HARMLESS = {
    "rows": STATISTICS,
    "complete_cases": {"count", "count_units", "ols"},
    "max_rows_per_group": {"count_units"},
    "max_rows": {"count_units"},
    # one draw for the whole row is better than any law that uses delta, and as good for either loss
    "delta": {"clip_mean", "clip_cov", "clip_corr", "ols"},
    "loss": {"clip_mean", "clip_cov", "clip_corr", "ols"},
}


def told(bound):
    return fingerprint(bound.plan), str(bound.explain())


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("unit", [None, "u"])
@pytest.mark.parametrize("verb", STATISTICS)
def test_an_option_changes_the_plan_or_is_refused(verb, unit, grouped):
    statistic = STATISTICS[verb]
    if statistic.of_units and unit is None:
        pytest.skip("asked of units only")
    asked = next(iter(statistic.audited.values()))
    asked = {"eps": 1, **{k: v for k, v in asked.items() if k not in ("delta", "mechanism")}}
    if unit and grouped:
        asked |= {"max_groups": 2, "max_rows_per_group": 3}
    elif unit and not statistic.of_units:
        asked |= {"max_rows": 3}
    assert (
        set(GIVEN) | ELSEWHERE
        == set(OPTIONS)
        == set(inspect.signature(getattr(FRAME.dp, verb)).parameters) & set(OPTIONS)
    )
    with dp.Session(eps=10**6, delta=0.5, unit=unit) as s:
        place = FRAME.dp.plan.groupby("g", keys=["a", "b", "c"]) if grouped else FRAME.dp.plan
        base, ignored = told(getattr(place, verb)(**asked)), set()
        for option, value in GIVEN.items():
            try:
                with_it = told(getattr(place, verb)(**{**asked, option: value}))
            except dp.DPError:
                continue
            if with_it == base:
                ignored.add(option)
        assert s.spent == 0
    assert {o for o in ignored if verb not in HARMLESS.get(o, ())} == set()


@pytest.mark.parametrize("option", ["nonnegative", "round"])
@pytest.mark.parametrize("verb", STATISTICS)
def test_what_comes_after_the_noise_is_taken_by_the_verb_if_by_the_question(verb, option):
    """``bounds(nonnegative=True)`` was (0, 0), a rank was rounded to 0."""
    statistic = STATISTICS[verb]
    asked = {"eps": 1, **next(iter(statistic.audited.values()))}
    takes = option in inspect.signature(getattr(dp, verb)).parameters
    with dp.Session(eps=100, delta=1e-3, unit="u", max_rows=1) as s:
        if takes:
            getattr(FRAME.dp.plan, verb)(**asked, **{option: 1 if option == "round" else True})
            return
        with pytest.raises(dp.InputError, match=f"^{option}=.*is left as it is. Hint: leave it out"):
            getattr(FRAME.dp, verb)(**asked, **{option: 1 if option == "round" else True})
        getattr(FRAME.dp.plan, verb)(**asked, **{option: None if option == "round" else False})
        assert s.spent == 0


def test_among_several_questions_those_are_given_an_option_that_take_it():
    pair = FRAME.select(low=pl.lit(-3.0), x="x")
    with dp.Session(eps=10**9):
        got = pair.dp.agg(
            s=dp.clip_sum("low", bounds=(-4, 0)), b=dp.bounds("low"), eps=10**6, nonnegative=True, round=-1
        )
    assert got.row(0, named=True) == {"s": 0.0, "b_low": -4.0, "b_high": -2.0}


def test_a_unit_counts_once_however_many_rows_it_has():
    with dp.Session(eps=1, unit="u") as s:
        with pytest.raises(dp.InputError, match=r"^max_rows= says .* it counts once. Hint: leave it out"):
            FRAME.dp.count_units(eps=1, max_rows=3)
        assert s.spent == 0
