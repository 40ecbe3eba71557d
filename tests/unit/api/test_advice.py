"""Advice: what it says is granted, is the least noise of all that was tried, and is the documented table."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp

pytestmark = pytest.mark.usefixtures("quiet")

PAGE = Path(__file__).parents[3] / "docs" / "choosing.md"
FRAME = pl.DataFrame({"x": [1.0, 2.0, None], "g": [1, 2, 3]})


def documented() -> list[tuple[str, str, str]]:
    """(arguments, mechanism, accountant) of every row of the decision table."""
    rows = [[c.strip() for c in line.strip("| \n").split("|")] for line in PAGE.read_text().splitlines()]
    return [
        (r[1].strip("`"), r[2], r[3]) for r in rows if len(r) == 4 and r[1].startswith(("`eps=", "`rho="))
    ]


def test_the_table_has_rows():
    assert len(documented()) >= 12


@pytest.mark.parametrize(("arguments", "mechanism", "accountant"), documented())
def test_the_decision_table_is_what_is_computed(arguments, mechanism, accountant):
    advice = eval(f"dp.advise({arguments})")
    assert (advice.mechanism, advice.accountant) == (mechanism, accountant)


@pytest.mark.parametrize(
    "situation",
    [
        {"eps": 1},
        {"eps": 1, "releases": 7},
        {"eps": 1, "delta": 1e-6, "releases": 30},
        {"eps": 3, "delta": 1e-6, "releases": 12},
        {"eps": 1, "delta": 1e-2},
        {"rho": 0.1, "releases": 4},
    ],
)
def test_what_is_advised_is_granted_that_often_and_hardly_more(situation):
    advice = dp.advise(**situation)
    session = eval(advice.session)
    call = eval(f"dict({advice.call})")
    releases = situation.get("releases", 1)
    for _ in range(releases):
        FRAME.dp.count(**call, session=session)
    assert len(session.releases) == releases
    more = 0
    try:
        for _ in range(releases):
            FRAME.dp.count(**call, session=session)
            more += 1
    except dp.BudgetExceeded:
        pass
    assert more <= releases * 0.01


@pytest.mark.parametrize("situation", [{}, {"releases": 20}, {"groups": 12}, {"question": "sum"}])
def test_every_option_that_was_tried_is_granted(situation):
    """The table's prices fit their accountants, each with its own plan."""
    from dpframe.accounting.events import rational, repeat
    from dpframe.accounting.filter import State
    from dpframe.api.advice import _budgets, _options, _situation

    asked = {"question": None, "columns": 1, "groups": 1, "neighbors": "add_remove", **situation}
    releases = asked.pop("releases", 1)
    whole = _situation(None, **asked)
    seen = 0
    for budget, name in _budgets(1, rational(1e-6, "delta"), None):
        for o in _options(whole, budget, name, releases, "rmse"):
            assert budget.grant(repeat(o.plan.event, releases), State(), "")[0] is not None
            seen += 1
    assert seen > 10


@pytest.mark.parametrize(
    ("eps", "below", "above"), [(0.5, 8, 10), (1, 9, 11), (3, 10, 12)]
)  # the turning points are 8.9, 10.0 and 10.7
def test_gaussian_noise_wins_where_enough_numbers_move_together(eps, below, above):
    assert dp.advise(eps=eps, delta=1e-6, groups=below).mechanism == "laplace"
    assert dp.advise(eps=eps, delta=1e-6, groups=above).mechanism == "gaussian"


@pytest.mark.parametrize(("eps", "below", "above"), [(0.5, 8, 9), (1, 9, 10), (3, 11, 12)])
def test_gaussian_noise_wins_where_enough_counts_are_asked(eps, below, above):
    """The numbers in the documentation."""
    assert dp.advise(eps=eps, delta=1e-6, releases=below).mechanism == "laplace"
    assert dp.advise(eps=eps, delta=1e-6, releases=above).mechanism == "gaussian"


def test_the_noise_is_that_of_known_formulas():
    table = dp.advise(eps=1, delta=1e-6, question="sum").table
    of = {}
    for r in table.iter_rows(named=True):
        of.setdefault((r["mechanism"], r["accountant"]), r["loss"])  # least first
    assert of["laplace", "sum"] == pytest.approx(2**0.5, rel=1e-3)
    assert of["gaussian", "sum"] == pytest.approx(4.2247, rel=1e-3)
    assert of["gaussian", "gdp"] == pytest.approx(4.2247, rel=2e-3)
    assert of["gaussian", "zcdp"] == pytest.approx(
        (1 / (2 * 0.024356)) ** 0.5, rel=2e-3
    )  # all of delta converts


def test_the_advised_is_least_but_for_two_percent():
    for situation in ({"eps": 1}, {"eps": 2, "delta": 1e-5, "releases": 10}, {"rho": 0.2, "groups": 3}):
        advice = dp.advise(**situation)
        assert advice.loss <= advice.table["loss"].min() / 0.98


def test_a_pure_guarantee_is_never_given_a_delta():
    table = dp.advise(eps=1, releases=50, groups=9).table
    assert set(table["mechanism"]) <= {"laplace", "staircase"}
    assert table["delta"].max() == 0
    assert table["rho"].null_count() == table.height


def test_more_sensitivity_means_more_noise():
    one = dp.advise(eps=1, groups=3).loss
    assert dp.advise(eps=1, groups=3, neighbors="replace_one").loss == pytest.approx(2 * one, rel=0.01)
    assert dp.advise(eps=1, groups=6).loss == pytest.approx(2 * one, rel=0.01)


def test_a_plans_own_bounds_unit_and_relation_count():
    with dp.Session(eps=9, unit="g", neighbors="replace_one"):
        plan = FRAME.dp.plan.clip_sum("x", bounds=(0, 50), max_rows=3, eps=1)
    assert dp.advise(plan, eps=0.1).loss == pytest.approx(2**0.5 * 150 / 0.1, rel=0.01)
    assert dp.advise(plan.plan, eps=0.1).mechanism == "laplace"


def test_advice_prints_and_shows():
    advice = dp.advise(eps=1, delta=1e-6, releases=40)
    assert advice.session in str(advice)
    assert "accountant" in advice._repr_html_()
    assert re.search(r"times the noise", str(advice))
    assert advice.table["ratio"][0] == 1


@pytest.mark.parametrize(
    ("call", "kind", "named"),
    [
        (lambda: dp.advise(), dp.InputError, "Hint: eps=1, delta=1e-6"),
        (lambda: dp.advise(eps=1, rho=1), dp.InputError, "one of them"),
        (lambda: dp.advise(eps=-1), dp.InputError, "eps=-1"),
        (lambda: dp.advise(eps=1, delta=2), dp.InputError, "delta=2"),
        (lambda: dp.advise(eps=1, releases=0), dp.InputError, "releases=0"),
        (lambda: dp.advise(eps=1, question="means"), dp.InputError, "Did you mean 'mean'"),
        (lambda: dp.advise(eps=1, groups=1.5), dp.InputError, "groups=1.5"),
        (lambda: dp.advise(eps=1, columns=True), dp.InputError, "columns=True"),
        (lambda: dp.advise(eps=1, neighbors="swap"), dp.InputError, "neighbors='swap'"),
        (lambda: dp.advise(eps=1, loss="l2"), dp.InputError, "loss='l2'"),
        (lambda: dp.advise(epsilon=1), TypeError, "Hint: eps="),
        (lambda: dp.advise(FRAME, eps=1), TypeError, "df.dp.plan"),
        (lambda: dp.advise(FRAME.dp.plan.count(eps=1), eps=1, groups=2), dp.InputError, "groups="),
        (
            lambda: dp.advise(FRAME.dp.plan.median("x", bounds=(0, 9), eps=1), eps=1),
            dp.InputError,
            "selection",
        ),
        (lambda: dp.advise(eps=1e-9, releases=10**9), dp.MechanismError, "fewer releases="),
    ],
)
def test_wrong_situations_are_refused_with_words(call, kind, named):
    with pytest.raises(kind, match=re.escape(named)):
        call()
