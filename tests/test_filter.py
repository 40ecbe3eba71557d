"""Accounting: conversions against 60-digit arithmetic, and the filter against adaptive adversaries.

The games are solved exactly by dynamic programming over everything an adversary may do: which event
to ask for next, given the privacy loss so far. What is granted is decided by the filter under test.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from fractions import Fraction

import mpmath
import numpy as np
import polars as pl
import pytest
from scipy.special import log_ndtr, logsumexp, ndtr
from scipy.stats import norm

import dpframe as dp
from dpframe.accounting.conversion import eps_of_rho, rho_of_eps
from dpframe.accounting.filter import Budget, State
from dpframe.budget import Event
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.gaussian import analytic_sigma
from dpframe.mechanisms.laplace import pure_rho

AUDIT = os.environ.get("DPFRAME_AUDIT") == "1"
ZERO = Fraction(0)

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


# ---- games ----


@dataclass(frozen=True)
class Kind:
    """Something an adversary may ask for: the event, and the law of its privacy loss under P.

    ``losses`` are in grid steps, rounded up (which favours the adversary); ``bad`` is the
    probability of an outcome that is impossible under Q.
    """

    name: str
    event: Event
    losses: tuple[int, ...]
    masses: tuple[float, ...]
    bad: float = 0.0


def response(eps: Fraction, h: Fraction, delta: Fraction = ZERO) -> Kind:
    """Randomised response (what is worst among all eps-DP), with probability delta all is told."""
    m = int(eps / h)
    assert m * h == eps
    p = 1 / (1 + math.exp(-float(eps)))
    good = 1 - float(delta)
    return Kind(
        f"RR({float(eps)},{float(delta)})",
        Event(eps, delta, pure_rho(eps)),
        (m, -m),
        (good * p, good * (1 - p)),
        float(delta),
    )


def leak(delta: Fraction) -> Kind:
    """With probability delta all is told, else nothing."""
    return Kind(f"leak({float(delta)})", Event(ZERO, delta, ZERO), (0,), (1 - float(delta),), float(delta))


def normal_losses(mu: float, h: Fraction) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """N(mu^2/2, mu^2) rounded up to the grid; what lies beyond 8 standard deviations goes to the end."""
    step, mean = float(h), mu * mu / 2
    ends = np.arange(math.floor((mean - 8 * mu) / step), math.ceil((mean + 8 * mu) / step) + 1)
    f = norm.cdf(ends * step, mean, mu)
    masses = np.diff(f, prepend=0)
    masses[-1] += 1 - f[-1]
    return tuple(int(x) for x in ends), tuple(masses)


def gaussian(eps: str, delta: str, h: Fraction) -> Kind:
    """A Gaussian calibrated to (eps, delta): the filter may charge it so, or by rho."""
    noise = dp.mechanism("gaussian").calibrate(Fraction(1), 1, Target(Fraction(eps), Fraction(delta)))
    return Kind(f"G({eps},{delta})", noise.event, *normal_losses(1 / float(noise.scale), h))


def gaussian_rho(rho: Fraction, h: Fraction) -> Kind:
    noise = dp.mechanism("gaussian").calibrate(Fraction(1), 1, Target(rho=rho))
    return Kind(f"G(rho={float(rho):.3g})", noise.event, *normal_losses(1 / float(noise.scale), h))


def laplace(eps: Fraction, h: Fraction) -> Kind:
    """Continuous Laplace: loss eps w.p. 1/2, -eps w.p. e^-eps/2, density between; rounded up."""
    e, m = float(eps), math.ceil(eps / h)
    ends = np.arange(-m, m + 1)
    x = np.clip(ends * float(h), -e, e)
    f = np.where(ends >= m, 1.0, 0.5 * np.exp((x - e) / 2))
    return Kind(
        f"L({e})", Event(eps, ZERO, pure_rho(eps)), tuple(int(i) for i in ends), tuple(np.diff(f, prepend=0))
    )


class Sums:
    """Filters that are not sound, with the interface of ``Budget.grant``."""

    def __init__(self, eps, delta, delta_calls, rule):
        self.b = Budget(eps, delta, delta_calls)
        self.rule = rule

    def grant(self, e, state, name):
        # State.eps holds the sum over the events that A counts
        counted = e.eps or ZERO
        after = State(state.eps + counted, state.delta + e.delta, state.rho + e.rho)
        ok = self.rule(self.b, after, e, state)
        return (ok if isinstance(ok, State) else after, "") if ok else (None, "eps")


def moving_target(b, after, e, state):
    """B's target is rho(eps, delta - sum of delta_i); no fixed split."""
    return after.delta < b.delta and after.rho <= rho_of_eps(b.eps, b.delta - after.delta)


def greedy_a(b, after, e, state):
    """A may use all of delta; B has delta_z."""
    by_a = after.eps <= b.eps and after.delta <= b.delta
    by_b = after.delta <= b.delta_calls and after.rho <= rho_of_eps(b.eps, b.delta_z)
    return by_a or by_b


def some_events(b, after, e, state):
    """A counts only the events that B would not grant."""
    if after.delta > b.delta_calls:
        return False
    if after.rho <= rho_of_eps(b.eps, b.delta_z):
        return State(state.eps, after.delta, after.rho)
    if after.eps <= b.eps:
        return State(after.eps, after.delta, state.rho)
    return False


def worst_delta(filter_, kinds, eps: Fraction, h: Fraction, reach: float) -> tuple[float, int]:
    """The largest delta(eps) any adaptive adversary reaches, and the number of filter states seen.

    V(state, loss) = max(stop: (1 - e^(eps - loss))+, over granted kinds: bad + sum of masses * V(next)).
    """
    n = math.ceil(reach / float(h))
    loss = np.arange(-n, n + 1) * float(h)
    stop = np.maximum(0, -np.expm1(float(eps) - loss))
    memo: dict[State, np.ndarray] = {}

    def shifted(v: np.ndarray, by: int) -> np.ndarray:
        """V at loss + by: 1 beyond the top, the bottom value below (both favour the adversary)."""
        if by == 0:
            return v
        out = np.empty_like(v)
        if by > 0:
            out[: len(v) - by], out[len(v) - by :] = v[by:], 1.0
        else:
            out[-by:], out[:-by] = v[:by], v[0]
        return out

    def value(state: State) -> np.ndarray:
        if state in memo:
            return memo[state]
        best = stop
        for kind in kinds:
            after, _ = filter_.grant(kind.event, state, "x")
            if after is None or after == state:
                continue
            v = value(after)
            if len(kind.losses) <= 2:
                mixed = sum(m * shifted(v, by) for by, m in zip(kind.losses, kind.masses))
            else:
                low, high = kind.losses[0], kind.losses[-1]
                padded = np.concatenate([np.full(max(0, -low), v[0]), v, np.ones(max(0, high))])
                start = max(0, -low) + low
                mixed = np.correlate(
                    padded[start : start + len(v) + high - low], np.array(kind.masses), "valid"
                )
            best = np.maximum(best, mixed + kind.bad)
        memo[state] = best
        return best

    return float(value(State())[n]), len(memo)


def test_the_game_knows_the_delta_of_fixed_compositions():
    """100 randomised responses of .1 under pure addition: 10; and one Gaussian: its own delta."""
    h = Fraction(1, 10)
    free = Budget(Fraction(10), ZERO, ZERO)
    delta, states = worst_delta(free, [response(h, h)], Fraction("4.774568"), h, 11)
    assert states == 101
    assert math.isclose(delta, 1e-6, rel_tol=1e-4)  # 100 discrete Laplace of scale 10
    h = Fraction(1, 1000)
    one = gaussian("1", "0.001", h)
    once = Budget(Fraction(1), Fraction("0.001"), Fraction("0.001"))
    delta, _ = worst_delta(once, [one], Fraction(1), h, 5)
    assert 0.001 <= delta <= 0.00102
    mu = 0.3
    exact = ndtr(mu / 2 - 1 / mu) - math.e * math.exp(log_ndtr(-mu / 2 - 1 / mu))
    free = Budget(None, ZERO, ZERO, Fraction(9, 200))
    delta, _ = worst_delta(free, [gaussian_rho(Fraction(9, 200), h)], Fraction(1), h, 5)
    assert exact <= delta <= exact * 1.02


# (session eps, delta, delta_calls as a share of delta, grid, the kinds on offer)
H = Fraction(1, 20)
F = Fraction(1, 50)
GAMES = {
    "responses at (3,1e-6)": (3, "1e-6", "1/2", Fraction(1, 10), lambda h, d: [response(h, h), response(5 * h, h), leak(d / 4)]),
    "small responses at (1,1e-6)": (1, "1e-6", "1/2", F, lambda h, d: [response(h, h), response(5 * h, h), leak(d / 2)]),
    "small responses, all of delta for calls": (1, "1e-6", "1", F, lambda h, d: [response(h, h), response(5 * h, h), leak(d / 4)]),
    "small responses, no delta for calls": (1, "1e-6", "0", F, lambda h, d: [response(h, h), response(3 * h, h)]),
    "leaky responses at (1,.01)": (1, "0.01", "1/2", H, lambda h, d: [response(h, h), response(2 * h, h, d / 8), leak(d / 8)]),
    "all eight sizes at (1,.05)": (1, "0.05", "1/2", H, lambda h, d: [response(k * h, h) for k in (1, 3, 10)] + [response(4 * h, h, d / 4), leak(d / 4)]),
    "gaussians by rho at (1,.01)": (1, "0.01", "1/2", F, lambda h, d: [gaussian_rho(Fraction("0.01"), h), response(5 * h, h), leak(d / 4)]),
    "gaussians by (eps,delta) at (1,.01)": (1, "0.01", "1/2", F, lambda h, d: [gaussian("0.4", "0.0025", h), response(5 * h, h), leak(d / 4)]),
    "gaussians, laplace and leaks at (2,.01)": (2, "0.01", "1/2", F, lambda h, d: [gaussian("0.8", "0.0025", h), laplace(20 * h, h), gaussian_rho(Fraction("0.04"), h), leak(d / 2)]),
    "mostly for calls at (1,.01)": (1, "0.01", "9/10", F, lambda h, d: [gaussian("0.4", "0.001", h), response(5 * h, h), leak(d * 3 / 10)]),
    "hardly for calls at (1,.01)": (1, "0.01", "1/10", F, lambda h, d: [gaussian("0.4", "0.001", h), response(5 * h, h), leak(d / 20)]),
}  # fmt: skip


@pytest.mark.parametrize("game", GAMES.values(), ids=list(GAMES))
def test_no_adaptive_adversary_gets_beyond_the_sessions_delta(game):
    eps, delta, share, h, kinds = game
    if AUDIT:
        h_kinds = kinds
        h, kinds = h / 2, lambda step, d: h_kinds(2 * step, d)
    eps, delta = Fraction(eps), Fraction(delta)
    offered = kinds(h, delta)
    if AUDIT:  # the same events on a finer grid
        offered = [
            replace(k, losses=tuple(2 * x for x in k.losses)) if len(k.losses) <= 2 else k for k in offered
        ]
        offered = [k for k in offered if len(k.losses) <= 2]
    budget = Budget(eps, delta, delta * Fraction(share))
    worst, states = worst_delta(budget, offered, eps, h, 3.0 * float(eps) + 2)
    assert states > 15
    assert worst <= float(delta)
    assert worst > 0.05 * float(delta)  # the adversary does get somewhere


@pytest.mark.parametrize("share", ["0", "1/4", "1/2", "3/4", "1"])
def test_the_split_of_delta_holds_whatever_it_is(share):
    h, eps, delta = H, Fraction(1), Fraction("0.01")
    kinds = [response(h, h), response(4 * h, h), response(2 * h, h, delta / 16), leak(delta / 4)]
    worst, _ = worst_delta(Budget(eps, delta, delta * Fraction(share)), kinds, eps, h, 5)
    assert worst <= float(delta)


def test_a_rho_session_is_approximate_zcdp_against_adversaries():
    """Sum of rho <= .05, delta_calls .002: at (eps(.05, d), .002 + d) for every d."""
    h, calls, rho = F, Fraction("0.002"), Fraction("0.05")
    budget = Budget(None, calls, calls, rho)
    kinds = [
        response(5 * h, h),
        gaussian_rho(Fraction("0.0125"), h),
        leak(calls / 2),
        gaussian("0.4", "0.001", h),
    ]
    for d in (0.01, 0.001):
        eps = Fraction(math.ceil(eps_of_rho(0.05, d) / float(h))) * h
        worst, states = worst_delta(budget, kinds, eps, h, 5)
        assert states > 10
        assert worst <= float(calls) + d


@pytest.mark.parametrize(
    ("rule", "delta", "calls", "least"),
    [
        (moving_target, "1e-6", "0", 1.03),
        (moving_target, "0.01", "0", 1.1),
        (greedy_a, "1e-6", "0", 1.05),
        (greedy_a, "0.01", "1/4", 1.01),
        (some_events, "1e-6", "1/2", 1.5),
        (some_events, "0.01", "1/2", 1.5),
    ],
)
def test_unsound_filters_lose_the_game(rule, delta, calls, least):
    """The game can fail: three rules that look reasonable exceed delta."""
    h, eps, delta = F, Fraction(1), Fraction(delta)
    kinds = [response(h, h), leak(delta * Fraction(9, 10)), leak(delta * Fraction(1, 10))]
    if rule is some_events:
        kinds = [response(h, h), response(25 * h, h)]
    worst, _ = worst_delta(Sums(eps, delta, delta * Fraction(calls), rule), kinds, eps, h, 5)
    assert worst > least * float(delta)
    sound, _ = worst_delta(Budget(eps, delta, delta * Fraction(calls)), kinds, eps, h, 5)
    assert sound <= float(delta)
