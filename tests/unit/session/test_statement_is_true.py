"""What the statement says is guaranteed, checked by computation on the pairs that come closest to it."""

from __future__ import annotations

import math
import re
import warnings
from contextlib import closing
from fractions import Fraction

import polars as pl
import pytest
from scipy.stats import norm

import dpframe as dp
from dpframe.accounting.conversion import analytic_delta

FRAME = pl.DataFrame({"x": [1.0, 5.0] * 300, "who": [i // 30 for i in range(600)], "day": [1, 2, 3] * 200})
EPS = (Fraction(1, 10**9), Fraction(1, 10), Fraction(1), Fraction(3), Fraction(139, 20), Fraction(13))
DELTA = (Fraction(1, 10**9), Fraction(1, 10**6), Fraction(1, 100), Fraction(2, 5))
POLICY = ({}, {"neighbors": "replace_one"}, {"unit": "who"}, {"unit": ["who", "day"]})

quiet = pytest.mark.usefixtures("quiet")


def stated(**policy) -> str:
    s = dp.Session(**policy)
    s.close()
    return " ".join(str(s.statement()).split())


def number(text: str) -> float:
    return float(text.replace(",", ""))


def exceeding(text: str) -> list[tuple[float, str, Fraction]]:
    """(odds, percent, chance) of every "led to more than X to 1 with a chance of at most 1 in N"."""
    found = re.findall(
        r"more than ([\d.,]+) to 1(?: \(([\d.]+) %\))? with a chance of at most 1 in ([\d,]+)", text
    )
    return [(number(x), p, Fraction(1, int(number(n)))) for x, p, n in found]


def gaussian(eps: float, delta: float) -> float:
    """The mu of Gaussian noise that is exactly (eps, delta)-DP."""
    low, high = 0.0, 100.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if analytic_delta(1 / middle, eps) <= delta else (low, middle)
    return low


def beyond(mu: float, factor: float) -> float:
    """The chance that Gaussian noise of ``mu`` gives a likelihood ratio above ``factor``, with the person in."""
    return float(norm.sf((math.log(factor) - mu * mu / 2) / mu)) if mu else 0.0


@pytest.mark.parametrize("policy", POLICY, ids=str)
@pytest.mark.parametrize("delta", DELTA, ids=str)
@pytest.mark.parametrize("eps", EPS, ids=str)
def test_odds_pass_what_is_said_no_more_often_than_is_said(eps, delta, policy):
    """Gaussian noise at exactly (eps, delta), and randomised response that tells all with delta."""
    text, mu = stated(eps=eps, delta=delta, **policy), gaussian(float(eps), float(delta))
    times, plus = re.search(r"at most ([\d.,]+) times the chance if .* plus 1 in ([\d,]+);", text).groups()
    assert math.exp(eps) <= number(times) <= math.exp(eps) * 1.011
    assert Fraction(1, int(number(plus))) >= delta
    said = exceeding(text)
    assert len(said) >= (2 * delta < 1)
    for (odds, percent, chance), steps in zip(said, (1, 2), strict=False):
        assert beyond(steps * mu, odds) <= chance
        # both worlds of the mixture: with delta the answer is told, else randomised response of eps
        told = delta if steps == 1 else delta * (1 + Fraction(math.exp(eps)))
        assert told <= chance
        assert odds >= math.exp(steps * eps)
        assert (
            (not percent)
            if steps == 2
            else 100 > float(percent) > 100 * (2 * math.exp(eps)) / (1 + 2 * math.exp(eps))
        )
    assert len(said) <= 1 + (not policy.get("neighbors"))


@pytest.mark.parametrize(("eps", "delta", "times"), [(1, 1e-6, 19), (0.1, 1e-6, 149), (1, 1e-2, 5)])
def test_the_power_of_these_checks(eps, delta, times):
    """What 0.1.0 said (odds beyond e**eps with a chance of at most delta) fails them; the factors stand in the docs."""
    assert beyond(gaussian(eps, delta), math.exp(eps)) == pytest.approx(times * delta, rel=0.1)


@pytest.mark.parametrize("policy", POLICY, ids=str)
@pytest.mark.parametrize("eps", EPS, ids=str)
def test_without_delta_the_odds_hold_always(eps, policy):
    text = stated(eps=eps, **policy)
    odds = [number(x) for x in re.findall(r"odds of at most ([\d.,]+) to 1", text)]
    stories = [number(x) for x in re.findall(r"be led to at most ([\d.,]+) to 1", text)]
    percent = float(re.search(r"\(([\d.]+) %\)\.", text)[1])
    assert len(odds) == 1
    assert math.exp(eps) * (1 + 1e-16) <= odds[0] <= math.exp(eps) * 1.011
    assert 100 / (1 + math.exp(-eps)) <= percent < 100
    assert [x >= math.exp(2 * eps) for x in stories] == [True] * (not policy.get("neighbors"))
    assert "chance" not in text


@pytest.mark.parametrize("calls", [None, 1e-7])
@pytest.mark.parametrize("rho", [0.001, 0.1, 0.5, 2])
def test_a_budget_in_rho_is_put_into_odds_that_hold(rho, calls):
    text = stated(rho=rho, **({} if calls is None else {"delta_calls": calls}))
    mu = math.sqrt(2 * rho)
    for (odds, _, chance), steps in zip(exceeding(text), (1, 2), strict=True):
        assert beyond(steps * mu, odds) + (calls or 0) <= chance
    eps, delta = map(float, re.search(r"that is eps = ([\d.]+), delta = ([\de.-]+)\.", text).groups())
    assert analytic_delta(1 / mu, eps * (1 - 1e-5)) + (calls or 0) <= delta


@pytest.mark.parametrize("accountant", ["sum", "zcdp", "rdp", "gdp"])
def test_every_accountant_is_stated_by_its_eps_and_delta(accountant):
    assert exceeding(stated(eps=1, delta=1e-6, accountant=accountant)) == exceeding(stated(eps=1, delta=1e-6))


@pytest.mark.parametrize("huge", [15, 10**3, 10**400])
def test_huge_budgets_are_not_put_into_odds(huge):
    for text in (stated(eps=huge), stated(eps=huge, delta=1e-6), stated(rho=huge)):
        assert "protects nobody in practice" in text
        assert "100 %" not in text


# ---- ledgers ----


def on_ledger(tmp_path, **declared) -> str:
    with closing(dp.Ledger.create(tmp_path / "b.db", **declared)) as ledger:
        scope = "n1" if "per_scope" in declared else None
        with dp.Session(ledger=ledger, scope=scope) as s:
            FRAME.dp.count(eps=0.25)
        return " ".join(str(s.statement()).split())


@quiet
def test_a_ledger_without_a_window_promises_for_everything(tmp_path):
    text = on_ledger(tmp_path, eps=1)
    assert "all results together. Whatever they show" in text
    assert "everything that was ever charged to the ledger, listed here or not" in text
    assert "Once it is used up, nothing new is released." in text


@quiet
def test_a_window_promises_for_windows_alone(tmp_path):
    """Each window may spend eps again: 12 months of it are 12 eps, so nothing may be said of all results."""
    text = on_ledger(tmp_path, eps=1, window="30d")
    promise = text[text.index("What is promised") : text.index("What was released")]
    assert "the results of any 30 days, beside what was released before" in promise
    assert "all results together" not in text
    assert "all of them together" not in text
    assert "everything that was ever charged" not in text
    assert "charged to the ledger within any 30 days" in text
    assert "nothing new is released until earlier charges are 30 days old" in text
    assert "Nothing limits what all windows together can show" in promise


@quiet
def test_with_a_lifetime_the_headline_is_that_of_the_lifetime(tmp_path):
    text = on_ledger(tmp_path, eps=1, window="30d", lifetime={"eps": 5}, per_scope={"eps": 0.5})
    odds = [number(x) for x in re.findall(r"odds of at most ([\d.,]+) to 1", text)]
    assert [round(math.log(x), 2) for x in odds] == [5, 1]
    assert text.index("all results together, over all windows") < text.index("any 30 days")
    assert (
        "All windows together: eps = 0.25 of eps = 5 has been used. Once it is used up, nothing new is released."
        in text
    )
    assert "The scope 'n1': eps = 0.25 of eps = 0.5" in text


# ---- what was released ----


@quiet
def test_a_margin_says_that_limits_cut_more(tmp_path):
    """10,000 rows of 500 units, 8 of each: the count is 4,000 within 24 of what counted, not of 10,000."""
    frame = pl.DataFrame({"u": [i // 20 for i in range(10_000)]})
    with dp.Session(eps=1, unit="u", max_rows=8) as s:
        got = frame.dp.count(eps=1)
    text = " ".join(str(s.statement()).split())
    margin = number(re.search(r"within ([\d.,]+) of the exact figure of what counted", text)[1])
    assert abs(got - 4_000) < 20 * margin
    assert abs(got - 10_000) > 20 * margin
    assert (
        "of each u at most 8 rows counted; what was beyond is missing, and no margin below says how much"
        in text
    )


@quiet
def test_delta_and_missing_groups_are_named():
    with dp.Session(eps=3, delta=1e-6, unit="who", max_groups=2, max_rows_per_group=3) as s:
        FRAME.dp.groupby("day").dp_agg(n=dp.count(), eps=1, delta=1e-7)
        FRAME.dp.groupby("day").keys(eps=0.5, delta=1e-7)
    text = " ".join(str(s.statement()).split())
    assert text.count("delta = 1e-07)") == 2
    assert len(re.findall(r"groups with fewer than about [\d.]+ who are mostly missing", text)) == 2
    assert "at most 3 rows in a group and 2 groups counted" in text


@quiet
@pytest.mark.parametrize("unit", [None, "who"])
def test_a_sessions_rows_without_limits_have_no_such_line(unit):
    with dp.Session(eps=3) as s:
        FRAME.dp.count(eps=1)
    text = str(s.statement())
    assert "of what counted" not in text
    assert "at most" not in text[text.index("What was released") : text.index("In total")]


def test_a_tests_noise_is_named(monkeypatch):
    from dpframe.noise import source

    monkeypatch.setattr(source, "is_private", lambda: False)
    with dp.Session(eps=1) as s:
        FRAME.dp.count(eps=0.5)
    text = " ".join(str(s.statement()).split())
    assert "NOT PRIVATE" in text
    assert "None of this holds" in text


def test_units_of_several_columns_are_combinations():
    text = stated(eps=1, unit=["user_id", "day"])
    assert "Every single combination of user_id and day by itself" in text
    assert "Take any one combination of user_id and day" in text
    assert "of their own" not in text


@pytest.mark.parametrize("unit", [["sender", "receiver"], ["a", "b", "c"]])
def test_a_session_says_when_it_opens_that_several_columns_protect_combinations(unit):
    names = " and ".join(unit)
    with pytest.warns(
        dp.DPWarning, match=f"Protected is one combination of {names}: .*Hint: .*unit='{unit[0]}'"
    ):
        session = dp.Session(eps=1, unit=unit)
    frame = pl.DataFrame({c: [1, 2] for c in unit})
    with session:
        text = str(frame.dp.plan.count(eps=0.5, max_rows=2).explain())
        assert f"protects    one combination of {names} appears or vanishes" in text
    assert f"combination of {names}" in repr(session)


@pytest.mark.parametrize("unit", [None, "u", ["u"]])
def test_one_column_needs_no_such_warning(unit):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dp.Session(eps=1, unit=unit)
