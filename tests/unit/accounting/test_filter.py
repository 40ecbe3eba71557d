"""Accounting: conversions against 60-digit arithmetic, and what the filter grants."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import polars as pl
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import dpframe as dp
from dpframe.accounting.conversion import eps_of_rho, pure_rho, rho_of_eps
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.gaussian import analytic_sigma

pytestmark = pytest.mark.usefixtures("quiet")

DF = pl.DataFrame({"x": [1.0, 2.0, 3.0]})


# ---- conversions ----


def exact_eps(rho, delta) -> mpmath.mpf:
    """min over a > 1 of rho a + ln(1-1/a) - (ln delta + ln a)/(a-1), by Newton-free ternary search."""

    def bound(t):
        a1 = mpmath.exp(t)
        a = 1 + a1
        return rho * a + mpmath.log(a1 / a) - (mpmath.log(delta) + mpmath.log(a)) / a1

    low, high = mpmath.mpf(-40), mpmath.mpf(60)
    for _ in range(130):
        x, y = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, y) if bound(x) < bound(y) else (x, high)
    return max(mpmath.mpf(0), bound((low + high) / 2))


@pytest.mark.parametrize(
    ("rho", "eps"), [(0.01, 0.621693), (0.05, 1.471595), (0.1, 2.141939), (0.5, 5.221534), (1, 7.766217)]
)
def test_rho_to_eps_at_one_in_a_million(rho, eps):
    assert round(eps_of_rho(rho, 1e-6), 6) == eps


@pytest.mark.parametrize(
    ("eps", "rho"),
    [("0.1", 0.000321), ("0.5", 0.006642), ("1", 0.024356), ("2", 0.088153), ("3", 0.18507), ("5", 0.463065)],
)
def test_eps_to_rho_at_one_in_a_million(eps, rho):
    assert round(float(rho_of_eps(Fraction(eps), Fraction(1, 10**6))), 6) == rho


@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-6, 1e-3, 0.05, 0.5, 0.999])
def test_conversion_agrees_with_another_implementation_and_errs_upwards(delta):
    with mpmath.workdps(40):
        for rho in (1e-9, 1e-6, 1e-4, 0.00125, 0.01, 0.125, 0.5, 1, 4, 30, 1000):
            right = exact_eps(mpmath.mpf(rho), mpmath.mpf(delta))
            got = eps_of_rho(rho, delta)
            assert right <= got <= right * (1 + mpmath.mpf(10) ** -9) + mpmath.mpf(10) ** -12


def test_hundred_events_of_the_reference_table():
    """100 Laplace of eps .1 at rho = eps**2/2, 100 Gaussian of sigma 20, and 50 of each."""
    assert round(eps_of_rho(0.5, 1e-6), 4) == 5.2215
    assert round(eps_of_rho(0.125, 1e-6), 4) == 2.4191
    assert round(eps_of_rho(0.3125, 1e-6), 4) == 4.0103


@pytest.mark.parametrize("delta", [0.5, 0.999, 1 - 1e-12])
@pytest.mark.parametrize("rho", [0.0, 1e-12, 1e-6, 0.01, 1.0, 30.0])
def test_eps_is_never_negative(rho, delta):
    assert eps_of_rho(rho, delta) >= 0


@pytest.mark.parametrize("delta", [0.0, -1e-6, 1.0, 2.0])
def test_no_delta_no_conversion(delta):
    assert eps_of_rho(0.1, delta) == math.inf
    if delta <= 0:
        assert rho_of_eps(Fraction(1), Fraction(delta)) == 0


@pytest.mark.parametrize("delta", [1, 1.0, 2, -1e-9, math.nan])
def test_sessions_refuse_deltas_outside_the_unit_interval(delta):
    with pytest.raises(dp.InputError, match="delta"):
        dp.Session(eps=1, delta=delta)


def test_budgets_in_rho_are_rounded_down_and_not_by_much():
    with mpmath.workdps(40):
        for eps in ("1e-6", "0.01", "0.3", "1", "2.5", "10", "100"):
            for delta in ("1e-12", "1e-6", "0.001", "0.3"):
                rho = rho_of_eps(Fraction(eps), Fraction(delta))
                exact = mpmath.mpf(rho.numerator) / rho.denominator
                assert exact_eps(exact, mpmath.mpf(delta)) <= mpmath.mpf(eps)
                more = exact * (1 + mpmath.mpf(10) ** -6)
                assert exact_eps(more, mpmath.mpf(delta)) > mpmath.mpf(eps)


# ---- what the filter grants ----


def grants(session, **call) -> int:
    n = 0
    while True:
        try:
            DF.dp.count(session=session, **call)
        except dp.BudgetExceeded:
            return n
        n += 1


def test_laplace_at_3_and_one_in_a_million():
    """A alone grants 30, B 35 with the default split and 37 with delta_calls=0."""
    assert grants(dp.Session(eps=3), eps=0.1) == 30
    assert grants(dp.Session(eps=3, delta=1e-6), eps=0.1) == 35
    assert grants(dp.Session(eps=3, delta=1e-6, delta_calls=0), eps=0.1) == 37
    assert grants(dp.Session(eps=3, delta=1e-6, delta_calls=1e-6), eps=0.1) == 30


GAUSSIAN = {"eps": 1, "delta": 1e-6, "mechanism": "gaussian"}


def test_a_gaussian_for_the_whole_of_a_session_is_refused_and_told_what_fits():
    """(1, 1e-6): rho .0280 against .02294 in B; sigma 4.669 would fit."""
    s = dp.Session(eps=1, delta=1e-6)
    plan = DF.dp.plan.count(session=s, **GAUSSIAN)
    assert round(plan.scale, 4) == 4.2247
    assert round(plan.rho, 4) == 0.028
    assert round(float(s.remaining.rho), 5) == 0.02294
    with pytest.raises(dp.BudgetExceeded, match=r"4\.669"):
        DF.dp.count(session=s, **GAUSSIAN)
    assert (s.spent.eps, s.spent.delta, s.spent.rho) == (0, 0, 0)
    DF.dp.count(session=s, rho=s.remaining.rho)  # what the message offers is granted
    with pytest.raises(dp.BudgetExceeded):
        DF.dp.count(session=s, eps=1e-6)


def test_the_same_gaussian_is_granted_by_a_when_calls_may_use_all_of_delta():
    s = dp.Session(eps=1, delta=1e-6, delta_calls=1e-6)
    DF.dp.count(session=s, **GAUSSIAN)
    assert (s.spent.eps, s.spent.delta) == (1, Fraction(1, 10**6))
    with pytest.raises(dp.BudgetExceeded):
        DF.dp.count(session=s, eps=1e-9)


def test_gaussians_fall_back_to_rho_and_close_a():
    """delta_calls 5e-7 pays for one of 5e-7; the next is charged by rho, and epsilons add up no more."""
    s = dp.Session(eps=3, delta=1e-6)
    call = {"eps": 0.5, "delta": 5e-7, "mechanism": "gaussian"}
    DF.dp.count(session=s, label="first", **call)
    assert (s.report()["eps"].to_list(), s.report()["delta"].to_list()) == ([0.5], [5e-7])
    DF.dp.count(session=s, label="second", **call)
    assert s.report()["eps"].to_list() == [0.5, None]
    assert s.report()["delta"].to_list() == [5e-7, 0.0]
    with pytest.raises(dp.BudgetExceeded, match="second") as e:
        DF.dp.count(session=s, eps=2)  # 2.5 of 3 by A, but A is closed
    assert e.value.component == "eps"


def test_refusals_for_want_of_delta_name_delta_calls():
    s = dp.Session(eps=3, delta=1e-6).split(2)[0]  # a share grants by A alone, so there is no way round
    with pytest.raises(dp.BudgetExceeded, match="delta_calls=") as e:
        DF.dp.count(session=s, eps=1, delta=1e-6, mechanism="gaussian")
    assert e.value.component == "delta"
    assert e.value.requested.delta == Fraction(1, 10**6)


def test_without_delta_no_gaussian_is_granted():
    s = dp.Session(eps=1)
    with pytest.raises(dp.BudgetExceeded, match="delta"):
        DF.dp.count(session=s, **GAUSSIAN)
    with pytest.raises(dp.BudgetExceeded):
        DF.dp.count(session=s, rho=1e-9)
    assert s.spent == 0


def test_a_session_in_rho_adds_up_rho():
    s = dp.Session(rho=Fraction(1, 10))
    for _ in range(10):
        DF.dp.count(session=s, rho=0.01)
    assert s.spent.rho == Fraction(1, 10)
    with pytest.raises(dp.BudgetExceeded, match="rho") as e:
        DF.dp.count(session=s, rho=1e-12)
    assert e.value.component == "rho"
    assert s.remaining.rho == 0


def test_a_session_in_rho_charges_eps_calls_by_their_rho():
    s = dp.Session(rho=1)
    DF.dp.count(session=s, eps=1)
    assert s.spent.rho == pure_rho(Fraction(1))
    DF.dp.count(session=s, **GAUSSIAN)  # rho holds without any delta
    assert round(float(s.spent.rho), 4) == round(0.4621 + 0.0280, 4)


def test_spent_and_remaining_are_readings_of_the_filter():
    s = dp.Session(eps=3, delta=1e-6)
    left = rho_of_eps(Fraction(3), Fraction(5, 10**7))
    for _ in range(32):
        DF.dp.count(session=s, eps=0.1)
    rho = 32 * pure_rho(Fraction(1, 10))
    assert s.spent.rho == rho
    assert float(s.spent.eps) == pytest.approx(min(3.2, eps_of_rho(float(rho), 5e-7)), rel=1e-9)
    assert s.remaining.rho == left - rho
    fits = s.remaining.eps
    assert pure_rho(fits) <= left - rho
    with pytest.raises(dp.BudgetExceeded):
        DF.dp.count(session=s, eps=fits * (1 + Fraction(1, 10**9)))
    DF.dp.count(session=s, eps=fits)


# ---- shares ----


@pytest.mark.parametrize("k", [1, 3, 7, 12])
def test_shares_of_eps_never_exceed_the_parent(k):
    s = dp.Session(eps=1, delta=1e-6)
    kids = s.split(k)
    assert len(kids) == k
    assert sum(c.remaining.eps for c in kids) == 1
    assert sum(c.remaining.delta for c in kids) == Fraction(1, 2 * 10**6)
    for c in kids:
        DF.dp.count(session=c, eps=Fraction(1, k))
        with pytest.raises(dp.BudgetExceeded):
            DF.dp.count(session=c, eps=1e-12)
    with pytest.raises(dp.InputError, match="split"):
        DF.dp.count(session=s, eps=0.1)


@pytest.mark.parametrize("k", [3, 12])
def test_shares_of_rho_never_exceed_the_parent(k):
    s = dp.Session(eps=1, delta=1e-6)
    whole = s.remaining.rho
    kids = s.split(k, by="rho")
    assert sum(c.remaining.rho for c in kids) == whole
    for c in kids:
        assert grants(c, rho=whole / k / 3) == 3
        with pytest.raises(dp.BudgetExceeded):
            DF.dp.count(session=c, rho=Fraction(1, 2**60))
    kids = dp.Session(rho=0.3).split(k)
    assert sum(c.remaining.rho for c in kids) == Fraction(3, 10)


def test_named_shares_are_exact():
    kids = dp.Session(eps=2, delta=1e-6).split({"T1": 0.5, "T2": 0.3, "rest": Fraction(1, 5)})
    assert [c.remaining.eps for c in kids.values()] == [1, Fraction(3, 5), Fraction(2, 5)]
    assert sum(c.remaining.delta for c in kids.values()) == Fraction(1, 2 * 10**6)


@pytest.mark.parametrize(
    "shares", [{"a": 0.6, "b": 0.5}, {"a": 1, "b": 1e-12}, {}, 0, -1, True, 2.0, "2", None]
)
def test_shares_beyond_the_whole_are_refused(shares):
    s = dp.Session(eps=1)
    with pytest.raises(dp.InputError):
        s.split(shares)
    DF.dp.count(session=s, eps=1)


def test_only_an_unspent_session_is_split_and_only_once():
    s = dp.Session(eps=1, delta=1e-6)
    DF.dp.count(session=s, eps=0.1)
    with pytest.raises(dp.InputError, match="unspent"):
        s.split(2)
    s = dp.Session(eps=1, delta=1e-6)
    s.split(2)
    with pytest.raises(dp.InputError, match="unspent"):
        s.split(2)
    with pytest.raises(dp.InputError, match="rho"):
        dp.Session(eps=1).split(2, by="rho")


def test_shares_of_shares_never_exceed_the_whole():
    grandchildren = [g for c in dp.Session(eps=1, delta=1e-6).split(3) for g in c.split(4)]
    assert sum(c.remaining.eps for c in grandchildren) == 1
    assert sum(c.remaining.delta for c in grandchildren) == Fraction(1, 2 * 10**6)
    grandchildren = [g for c in dp.Session(rho=1).split(3) for g in c.split(2, by="rho")]
    assert sum(c.remaining.rho for c in grandchildren) == 1


# ---- the good part of a Gaussian event ----


def panels(low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of 60 Gauss-Legendre panels of 24 points."""
    x, w = np.polynomial.legendre.leggauss(24)
    ends = np.linspace(low, high, 61)
    half = np.diff(ends)[:, None] / 2
    return ((ends[:-1, None] + half) + half * x).ravel(), (half * w).ravel()


@pytest.mark.parametrize("eps", ["0.05", "0.1", "0.3", "0.5", "1", "2", "3", "5", "8", "12"])
def test_the_clipped_good_part_of_a_gaussian_is_pure_and_keeps_its_rho(eps):
    """60 (eps, delta) in all, 90 orders each: D_alpha(kept) <= rho alpha.

    Given |loss| = l the pair is a randomised response RR(l); beyond eps the weight 1 - delta_l of it is
    RR(eps) and kept. The delta_l add up to delta. Orders beyond eps/rho need no check: eps <= rho alpha.
    """
    for delta in ("1e-9", "1e-6", "1e-5", "1e-3", "0.01", "0.1"):
        event = (
            dp.mechanism("gaussian").calibrate(Fraction(1), 1, Target(Fraction(eps), Fraction(delta))).event
        )
        mu, e, rho = 1 / analytic_sigma(Fraction(eps), Fraction(delta)), float(eps), float(event.rho)
        assert math.isclose(rho, mu * mu / 2, rel_tol=1e-9)
        top = max(e, mu * mu / 2) + 40 * mu
        parts = [panels(0, e), panels(e, top)]
        loss, weight = (np.concatenate(x) for x in zip(*parts))
        log_mass = np.log(weight) + np.logaddexp(
            norm.logpdf(loss, mu * mu / 2, mu), norm.logpdf(-loss, mu * mu / 2, mu)
        )
        assert math.isclose(float(np.exp(logsumexp(log_mass))), 1, rel_tol=1e-12)
        bad = np.where(loss > e, -np.expm1(-np.maximum(loss - e, 0)) / (1 + np.exp(-loss)), 0)
        total_bad = float((np.exp(log_mass) * bad).sum())
        assert 0.99 * float(delta) < total_bad <= float(delta)
        log_kept = log_mass + np.log1p(-np.minimum(bad, 1 - 1e-15)) - math.log1p(-total_bad)
        kept = np.minimum(loss, e)
        for a in 1 + np.geomspace(1e-3, max(2.0, 1.1 * e / rho), 90):
            moment = np.logaddexp((a - 1) * kept, -a * kept) - np.log1p(np.exp(-kept))
            assert logsumexp(log_kept + moment) / (a - 1) <= rho * a * (1 + 1e-9) + 1e-12 / (a - 1)
