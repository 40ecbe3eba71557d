"""Privacy-loss distributions and reports: reference totals, closed forms, bounds that must hold."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from loss_distribution import loss_distribution
from scipy.special import log_ndtr, ndtr
from scipy.stats import binom

import dpframe as dp
from dpframe.accounting import pld
from dpframe.accounting.conversion import eps_of_rho, pure_rho
from dpframe.accounting.events import Event, compose, repeat
from dpframe.accounting.report import losses_of, report
from dpframe.mechanisms.base import Target

ZERO, DELTA = Fraction(0), Fraction(1, 10**6)
DF = pl.DataFrame({"x": [1.0, 2.0, 3.0], "g": ["a", "a", "b"]})

pytestmark = pytest.mark.usefixtures("quiet")


def gaussian(sigma: int) -> Event:
    return Event(None, ZERO, Fraction(1, 2 * sigma**2), None, "gaussian", 0, 1)


def laplace(b: int) -> Event:
    """Continuous Laplace noise, as the limit of many steps, with the usual rho = eps**2/2."""
    return Event(Fraction(1, b), ZERO, Fraction(1, 2 * b**2), None, "laplace", 1 << 40, 1)


TABLE = {
    "100 Laplace b=10": ([laplace(10)] * 100, {"sum": 10, "zcdp": 5.2215, "rdp": 4.9842, "gdp": 6.3301, "pld": 4.6927}),
    "100 Gaussian s=20": ([gaussian(20)] * 100, {"zcdp": 2.4191, "rdp": 2.4191, "gdp": 2.2541, "pld": 2.2541}),
    "50 and 50": ([laplace(10)] * 50 + [gaussian(20)] * 50, {"zcdp": 4.0103, "rdp": 3.8260, "gdp": 4.6320, "pld": 3.6002}),
}  # fmt: skip


@pytest.mark.parametrize(("events", "right"), TABLE.values(), ids=list(TABLE))
def test_the_reference_table(events, right):
    for accountant, eps in right.items():
        r = report(events, accountant, DELTA)
        assert round(r.eps, 4) == eps, accountant
        assert (r.accountant, r.charges, r.is_gate) == (accountant, 100, False)
        assert r.delta == (0 if accountant == "sum" else 1e-6)


def test_sums_of_gaussians_are_their_stand_alone_costs():
    """100 Gaussians of sigma 20, each (eps_i, delta_i), deltas of 1e-8: 23.858 in the best split of delta."""

    def total(share: float) -> float:
        each = 1e-6 * share / 100
        eps = dp.eps_of_mu(1 / 20, each)
        return 100 * eps

    assert round(total(1.0), 3) == 23.858
    half = 50 * dp.eps_of_mu(1 / 20, 1e-6 / 50) + 50 * 0.1
    assert round(half, 3) == 16.586
    events = [Event(Fraction("0.23858"), Fraction(1, 10**8), Fraction(1, 800), ZERO, "gaussian", 0, 1)] * 100
    r = report(events, "sum", DELTA)
    assert (round(r.eps, 6), r.delta) == (23.858, 1e-6)


@pytest.mark.parametrize(
    ("event", "eps"),
    [
        (Event(Fraction(1, 10), ZERO, pure_rho(Fraction(1, 10)), None, "laplace", 1, 1), 4.774568),
        (Event(Fraction(1, 10), ZERO, pure_rho(Fraction(1, 10)), kind="pure"), 4.774568),
        (Event(None, ZERO, Fraction(1, 800), None, "discrete_gaussian", 1, 1), 2.254087),
        (gaussian(20), 2.254085),
        (laplace(10), 4.692667),
    ],
)
def test_a_hundred_of_a_kind_to_six_digits(event, eps):
    got = report([event] * 100, "pld", DELTA).eps
    assert eps - 6e-7 <= got <= eps + 2e-6


def test_half_and_half_to_six_digits():
    got = report([laplace(10), gaussian(20)] * 50, "pld", DELTA).eps
    assert 3.600203 - 6e-7 <= got <= 3.600203 + 2e-6


@pytest.mark.parametrize(
    ("mu", "delta"), [(0.05, 0.3), (0.05, 1e-6), (0.5, 1e-3), (0.5, 1e-12), (3.0, 1e-6), (3.0, 1e-30)]
)
def test_one_and_many_gaussians_agree_with_the_formula(mu, delta):
    right = dp.eps_of_mu(mu, delta)
    for n in (1, 100):
        one = mu / math.sqrt(n)
        c = pld.Composition([(pld.gaussian(one, pld.step_for([(one * one / 2, n)])), n)])
        assert right * (1 - 1e-7) <= c.eps_of(delta) <= right * (1 + 1e-4) + 1e-6
        for eps in (right, 2 * right + 0.1):
            a, b = mu / 2 - eps / mu, -mu / 2 - eps / mu
            exact = math.exp(log_ndtr(a)) * -math.expm1(eps + log_ndtr(b) - log_ndtr(a))
            assert exact * (1 - 1e-7) <= c.delta_of(eps) <= exact * 1.001 + 1e-60


@pytest.mark.parametrize(("eps", "n"), [(0.1, 100), (0.5, 30), (2.0, 5), (6.0, 3)])
def test_responses_agree_with_the_binomial_law(eps, n):
    k = np.arange(n + 1)
    p = binom.pmf(k, n, 1 / (1 + math.exp(-eps)))
    loss = (2 * k - n) * eps
    c = pld.Composition([(pld.response(eps, pld.step_for([(eps * math.tanh(eps / 2), n)])), n)])

    def exact_delta(at: float) -> float:
        return float(p @ np.maximum(0, -np.expm1(np.minimum(at - loss, 0))))

    for delta in (0.5, 0.1, 1e-3, 1e-6, 1e-9, 1e-15, 1e-40):
        got = c.eps_of(delta)
        assert exact_delta(got) <= delta * (1 + 1e-9)
        assert exact_delta(max(0.0, got - 0.01 * eps - n * c.step)) > delta or got == 0
    for at in np.linspace(0, n * eps * 0.95, 13):
        exact = exact_delta(float(at))
        assert exact * (1 - 1e-9) <= c.delta_of(float(at)) <= exact * 1.02 + 1e-300


@pytest.mark.parametrize("steps", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize("eps", [0.05, 1.0, 7.0])
def test_the_laplace_pair_is_the_laws_own(eps, steps):
    """Against the hockey-stick sum over the integers."""
    k = np.arange(-int(40 * steps / eps) - 5, int(40 * steps / eps) + steps + 5)
    p = math.tanh(eps / steps / 2) * np.exp(-eps / steps * np.abs(k))
    q = math.tanh(eps / steps / 2) * np.exp(-eps / steps * np.abs(k - steps))
    x = pld.laplace(eps, steps, eps / 512)
    assert math.isclose(x.masses.sum(), 1, rel_tol=1e-9)
    for at in (0.0, eps / 8, eps / 2, eps * 15 / 16):  # grid points: exact
        got = float(np.maximum(x.masses * -np.expm1(np.minimum(at - x.losses, 0)), 0).sum())
        assert math.isclose(got, float(np.maximum(p - math.exp(at) * q, 0).sum()), rel_tol=1e-8)


def test_many_steps_and_one_law_by_its_probabilities_agree():
    """Where a law is known by formula, its probabilities at every shift give the same curve."""
    for name, steps, target in [
        ("laplace", 5, Target(Fraction(1))),
        ("gaussian", 4, Target(Fraction(1), Fraction(1, 100))),
    ]:
        noise = dp.mechanism(name).calibrate(Fraction(steps), 1, target)
        h = 1 / 256
        by_law = pld.Composition([(loss_distribution(noise, steps, h), 20)])
        own = pld.Composition([(losses_of(noise.event, h), 20)])
        for delta in (1e-3, 1e-6):
            a, b = by_law.eps_of(delta), own.eps_of(delta)
            assert a <= b + 2 * h  # a rounded Gaussian loses a little less than a Gaussian
            assert a >= b * (0.97 if name == "gaussian" else 1 - 1e-4)


def test_a_law_of_several_bumps_is_composed_by_its_worst_shift_at_every_eps():
    """multi_gaussian at (1, 1e-5), 8 steps: dominated at every shift, and better than its (eps, delta) alone."""
    noise = dp.mechanism("multi_gaussian").calibrate(Fraction(8), 1, Target(Fraction(1), Fraction(1, 10**5)))
    h = 1 / 512
    x = loss_distribution(noise, 8, h)
    k = np.arange(-4000, 4001)
    p = noise.pmf(k)
    for j in range(-8, 9):
        q = noise.pmf(k - j)
        for at in (0.0, 0.25, 0.5, 1.0, 1.5, 0.3331):
            got = float((x.masses * -np.expm1(np.minimum(at - x.losses, 0))).sum()) + x.infinite
            assert float(np.maximum(p - math.exp(at) * q, 0).sum()) <= got * (1 + 1e-6) + 1e-14
    pair = pld.response(1.0, h).weakened(1e-5)
    assert pld.Composition([(x, 10)]).eps_of(1e-3) < pld.Composition([(pair, 10)]).eps_of(1e-3)


@pytest.mark.parametrize("rho", [0.001, 0.05, 0.5, 3.0])
def test_what_is_known_by_rho_alone_dominates_gaussians_and_responses(rho):
    h = math.sqrt(2 * rho) / 100
    x = pld.concentrated(rho, h)
    assert math.isclose(float(x.masses.sum()) + x.infinite, 1, rel_tol=1e-6)
    g = pld.gaussian(math.sqrt(2 * rho), h)
    one, same = pld.Composition([(x, 1)]), pld.Composition([(g, 1)])
    for at in np.linspace(0, rho + 6 * math.sqrt(2 * rho), 5):
        assert same.delta_of(float(at)) <= one.delta_of(float(at)) * (1 + 1e-9)
    for delta in (1e-3, 1e-6):
        assert one.eps_of(delta) <= eps_of_rho(rho, delta) * 1.001 + 2 * h


def test_deltas_go_to_infinity():
    e = Event(Fraction(1, 2), Fraction(1, 10**7), pure_rho(Fraction(1, 2)))
    c = pld.Composition([(losses_of(e, 1 / 256), 5)])
    assert math.isclose(c.infinite, 1 - (1 - 1e-7) ** 5, rel_tol=1e-6)
    assert c.delta_of(100.0) >= c.infinite
    assert c.eps_of(4e-7) == math.inf
    assert report([e] * 5, "pld", Fraction(1, 10**6)).eps <= 2.5  # adding up is a reading, too
    assert report([e] * 20, "pld", Fraction(1, 10**6)).eps == math.inf


def test_nothing_adds_up_to_nothing():
    for accountant in ("pld", "rdp", "gdp", "zcdp", "sum"):
        assert report([], accountant, DELTA).eps == 0
        keys = Event(ZERO, DELTA / 2, ZERO, kind="keys")
        assert report([keys], accountant, DELTA).eps == 0


def test_parts_are_added_up_one_by_one():
    a = Event(Fraction(1, 10), ZERO, pure_rho(Fraction(1, 10)), None, "laplace", 1, 1)
    whole = compose((repeat(a, 40), gaussian(20), repeat(a, 60)))
    for accountant in ("pld", "rdp", "zcdp"):
        apart = report([a] * 100 + [gaussian(20)], accountant, DELTA).eps
        assert math.isclose(report([whole], accountant, DELTA).eps, apart, rel_tol=1e-12)


def test_eps_and_delta_are_inverse_for_every_mixture():
    generator = np.random.default_rng(7)
    for _ in range(5):
        h = float(generator.choice([0.002, 0.01]))
        pairs = [
            pld.response(float(generator.uniform(0.05, 3)), h),
            pld.response(float(generator.uniform(0.05, 3)), h).weakened(1e-9),
            pld.gaussian(float(generator.uniform(0.1, 2)), h),
            pld.laplace(float(generator.uniform(0.1, 2)), int(generator.integers(1, 9)), h),
            pld.lattice(float(generator.uniform(0.01, 1)), int(generator.integers(1, 5)), h),
        ]
        c = pld.Composition([(x, int(n)) for x, n in zip(pairs, generator.integers(0, 6, 5)) if n])
        for delta in (0.4, 0.01, 1e-5, 1e-7):
            eps = c.eps_of(delta)
            assert c.delta_of(eps) <= delta * (1 + 1e-6)
            assert eps == 0 or c.delta_of(max(0.0, eps - 2 * h)) > delta * (1 - 1e-6)


def test_no_report_is_above_a_looser_one():
    """pld <= rdp <= zcdp, whatever the mixture."""
    kinds = [
        laplace(7),
        gaussian(9),
        Event(Fraction(1, 3), ZERO, pure_rho(Fraction(1, 3)), kind="pure"),
        Event(Fraction(1, 4), ZERO, pure_rho(Fraction(1, 4)), None, "laplace", 4, 3),
        Event(Fraction(1, 5), Fraction(1, 10**8), pure_rho(Fraction(1, 5))),
        Event(None, ZERO, Fraction(1, 150), None, "discrete_gaussian", 3, 1),
        Event(None, ZERO, Fraction(1, 90), None, "discrete_gaussian", 3, 5),
        Event(None, ZERO, Fraction(1, 300)),
    ]
    generator = np.random.default_rng(5)
    for _ in range(6):
        events = [kinds[i] for i in generator.integers(0, len(kinds), 60)]
        by = {a: report(events, a, DELTA).eps for a in ("pld", "rdp", "zcdp")}
        assert by["pld"] <= by["rdp"] <= by["zcdp"] * (1 + 1e-9)


# ---- the report of a session ----


def test_a_session_reports_what_its_transcript_adds_up_to():
    with dp.Session(eps=20, delta=1e-6) as s:
        for _ in range(100):
            DF.dp.count(eps=0.1)
    r = s.report(accountant="pld")
    assert round(r.eps, 4) == 4.7746
    assert not r.is_gate
    assert "not a gate" in str(r)
    assert "no gate" in r._repr_html_()
    assert repr(r).startswith("<dpframe report: 100 charges, added up by pld: eps=4.774")
    assert s.report(accountant="sum").eps == 10
    assert s.report(accountant="zcdp").eps > s.report(accountant="rdp").eps > r.eps
    assert s.report(accountant="pld", delta=1e-9).eps > r.eps
    assert isinstance(s.report(), pl.DataFrame)
    assert s.report().height == 100


def test_a_report_knows_the_laws_that_were_used():
    with dp.Session(eps=20, delta=1e-3, delta_calls=5e-4) as s:
        DF.dp.groupby("g", keys=["a", "b"]).dp_agg(
            n=dp.count(), m=dp.clip_mean("x", bounds=(0, 5)), eps=0.5, mechanism="laplace"
        )
        DF.dp.groupby("g").count(eps=1, delta=1e-5)
        DF.dp.count(rho=0.01, mechanism="gaussian")
        DF.dp.count(rho=0.01, mechanism="discrete_gaussian")
        DF.dp.clip_sum("x", B=5, eps=0.5, mechanism="staircase")
        DF.dp.clip_sum("x", B=5, eps=0.5, delta=1e-5, mechanism="multi_gaussian")
        DF.dp.partition_by("g", keys=["a", "b"], eps=0.1)
    kinds = [{leaf.kind for leaf, _ in e.event.leaves()} for e in s._entries]
    assert kinds == [
        {"laplace"},
        {"laplace", "keys"},
        {"gaussian"},
        {"discrete_gaussian"},
        {"pure"},
        {""},
        {"pure"},
    ]
    total = sum(e.event.eps or 0 for e in s._entries)
    assert 0 < s.report(accountant="pld").eps <= s.report(accountant="rdp").eps < float(total) + 2
    with pytest.raises(dp.InputError, match="discrete_gaussian"):
        s.report(accountant="gdp")
    with pytest.raises(dp.InputError, match="zcdp"):
        s.report(accountant="sum")


def test_reports_that_can_not_be_had_are_refused():
    s = dp.Session(eps=1)
    for wrong in ("renyi", "union", 3, None):
        if wrong is not None:
            with pytest.raises(dp.InputError, match="pld"):
                s.report(accountant=wrong)
    with pytest.raises(dp.InputError, match="delta"):
        s.report(accountant="pld")
    with pytest.raises(dp.InputError, match="accountant"):
        s.report(delta=1e-6)
    for bad in (1, -1e-6, math.nan):
        with pytest.raises(dp.InputError, match="delta"):
            s.report(accountant="pld", delta=bad)
    parts = s.split(2)
    with pytest.raises(dp.InputError, match="split"):
        s.report(accountant="sum")
    DF.dp.count(session=parts[0], eps=0.5)
    assert parts[0].report(accountant="sum").eps == 0.5


# ---- another implementation ----


def test_another_implementation_agrees():
    """Final sensitivities and add-or-remove-one throughout; its distributions are rounded up, too."""
    dpa = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    relation = dpa.NeighboringRelation.ADD_OR_REMOVE_ONE
    theirs = {
        "laplace": (dpa.LaplaceDpEvent(10), laplace(10)),
        "gaussian": (dpa.GaussianDpEvent(20), gaussian(20)),
    }
    for counts in ({"laplace": 100}, {"gaussian": 100}, {"laplace": 50, "gaussian": 50}):
        events = [theirs[k][1] for k, n in counts.items() for _ in range(n)]
        accountant = PLDAccountant(relation, value_discretization_interval=1e-4)
        orders = RdpAccountant(neighboring_relation=relation, orders=np.linspace(2, 30, 500))
        for k, n in counts.items():
            accountant.compose(theirs[k][0], n)
            orders.compose(theirs[k][0], n)
        for delta in (1e-3, 1e-6, 1e-9):
            ours = report(events, "pld", Fraction(delta).limit_denominator(10**9)).eps
            assert math.isclose(ours, accountant.get_epsilon(delta), rel_tol=2e-4)
        ours = report(events, "rdp", DELTA).eps
        assert math.isclose(ours, orders.get_epsilon(1e-6), rel_tol=1e-5)


def test_the_formula_of_gdp_against_its_definition():
    for mu, eps in [(0.5, 1.0), (1.0, 3.0), (3.0, 0.0)]:
        right = ndtr(mu / 2 - eps / mu) - math.exp(eps) * ndtr(-mu / 2 - eps / mu)
        assert right <= dp.delta_of_mu(mu, eps) <= right * (1 + 1e-9)
