"""Accountants that are fixed when a session opens: what they grant, refuse, share and say."""

from __future__ import annotations

import math
import pickle
from dataclasses import fields, is_dataclass
from fractions import Fraction

import mpmath
import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.accounting.conversion import mu_of_eps, pure_rho, rho_of_eps
from dpframe.accounting.events import Event, compose, repeat
from dpframe.accounting.filter import ACCOUNTANTS, Budget, State
from dpframe.accounting.renyi import (
    chosen_order,
    eps_of_rho_at,
    laplace_divergence,
    pure_eps_of_rho_at,
    rho_at,
    rho_of_eps_at,
)
from dpframe.mechanisms.auto import _one_by_one, worst
from dpframe.mechanisms.base import Target

ZERO, TINY = Fraction(0), Fraction(1, 10**6)
DF = pl.DataFrame({"x": [1.0, 2.0, 3.0], "g": ["a", "a", "b"], "u": [1, 2, 3]})
GAUSSIAN = {"eps": 1, "delta": 1e-6, "mechanism": "gaussian"}
NAMES = ("union", "sum", "zcdp", "rdp", "gdp")

pytestmark = pytest.mark.usefixtures("quiet")


def granted(session, **call) -> bool:
    try:
        DF.dp.count(session=session, **call)
    except dp.BudgetExceeded:
        return False
    return True


def grants(session, **call) -> int:
    n = 0
    while granted(session, **call):
        n += 1
    return n


# ---- what is granted ----


@pytest.mark.parametrize(
    ("accountant", "laplaces", "gaussians"),
    [("union", 35, 140), ("sum", 30, 0), ("zcdp", 35, 140), ("rdp", 39, 140), ("gdp", 0, 167)],
)
def test_how_many_calls_are_granted_at_3_and_one_in_a_million(accountant, laplaces, gaussians):
    def opened():
        return dp.Session(eps=3, delta=1e-6, accountant=accountant)

    assert grants(opened(), eps=0.1, mechanism="laplace") == laplaces
    assert grants(opened(), rho=Fraction(1, 800)) == gaussians


def test_a_gaussian_for_the_whole_of_a_session_is_for_gdp_and_sum():
    for accountant in NAMES:
        s = dp.Session(eps=1, delta=1e-6, accountant=accountant)
        assert granted(s, **GAUSSIAN) == (accountant in ("gdp", "sum"))
        if accountant in ("gdp", "sum"):
            assert s.spent.eps <= 1
            assert s.spent.delta <= TINY
            assert not granted(s, eps=0.01, delta=1e-9, mechanism="gaussian")


def test_gdp_adds_up_squares_exactly():
    """k Gaussians of sqrt(k) times the sigma fill the budget, and one more does not fit."""
    rho = mu_of_eps(Fraction(1), TINY) ** 2 / 2
    for k in (1, 3, 10):
        s = dp.Session(eps=1, delta=1e-6, accountant="gdp")
        call = {"rho": rho * (1 - Fraction(1, 2**60)) / k, "mechanism": "gaussian"}
        assert grants(s, **call) == k
        assert float(s.spent.eps) == pytest.approx(1, rel=1e-6)


def test_gdp_refuses_everything_but_gaussians_and_says_who_takes_it():
    s = dp.Session(eps=1, delta=1e-6, accountant="gdp")
    for call, able in [
        ({"eps": 0.1, "mechanism": "laplace"}, "'union'"),
        ({"eps": 0.1, "mechanism": "staircase"}, "'sum'"),
        ({"rho": 0.001, "mechanism": "discrete_gaussian"}, "'zcdp'"),
        ({"rho": 0.001, "mechanism": "laplace"}, "'rdp'"),
    ]:
        with pytest.raises(
            dp.BudgetExceeded, match=f"Gaussian noise alone.*{able}.*Hint: mechanism='gaussian'"
        ) as e:
            DF.dp.count(session=s, **call)
        assert e.value.component == "law"
    with pytest.raises(dp.BudgetExceeded, match="parts"):
        DF.dp.partition_by("g", keys=["a", "b"], eps=0.1, session=s)
    assert (s.spent.eps, s.spent.rho) == (0, 0)
    assert granted(s, eps=0.5, delta=1e-7, mechanism="gaussian_classic")


def test_gdp_adds_gaussian_noise_to_calls_that_name_no_mechanism():
    s = dp.Session(eps=1, delta=1e-6, accountant="gdp")
    with s:
        DF.dp.count(rho=0.001)
        DF.dp.agg(n=dp.count(), x=dp.clip_mean("x", bounds=(0, 1)), eps=0.2, delta=1e-7)
    assert [r.plan.mechanism for r in s.releases] == ["gaussian", {"n": "gaussian", "x": "gaussian"}]
    with pytest.raises(dp.MechanismError, match=r"no pure guarantee.*rho="):
        DF.dp.count(eps=0.1, session=s)
    with pytest.raises(dp.BudgetExceeded, match="asks for exponential"):  # a choice is none of its laws
        DF.dp.top_k("g", 1, candidates=["a", "b"], eps=0.1, session=s)


def test_gdp_takes_thresholds_from_delta_calls():
    s = dp.Session(eps=1, delta=1e-6, delta_calls=1e-7, accountant="gdp")
    call = {"eps": 0.5, "delta": 1e-7, "mechanism": "gaussian"}
    DF.dp.groupby("g").count(session=s, **call)
    assert s.spent.delta == Fraction(1, 2 * 10**7) + Fraction(9, 10**7)  # half for the keys, and delta_z
    with pytest.raises(dp.BudgetExceeded, match="delta_calls=") as e:
        DF.dp.groupby("g").count(session=s, eps=0.5, delta=2e-7, mechanism="gaussian")
    assert e.value.component == "delta"
    none = dp.Session(eps=1, delta=1e-6, accountant="gdp")
    with pytest.raises(dp.BudgetExceeded, match="none of delta"):
        DF.dp.groupby("g").count(session=none, **call)


def test_sum_adds_up_eps_and_delta_and_nothing_else():
    s = dp.Session(eps=1, delta=1e-6, accountant="sum")
    call = {"eps": 0.25, "delta": 2.5e-7, "mechanism": "gaussian"}
    assert grants(s, **call) == 4
    assert (s.spent.eps, s.spent.delta) == (1, TINY)
    s = dp.Session(eps=1, delta=1e-6, accountant="sum")
    with pytest.raises(dp.BudgetExceeded, match=r"epsilons.*'union' or 'zcdp'.*Hint") as e:
        DF.dp.count(session=s, rho=0.001)
    assert e.value.component == "law"


def test_rdp_counts_laplace_by_its_own_divergence():
    """On one grid step to the sensitivity a count is randomised response; a sum costs less."""
    s = dp.Session(eps=3, delta=1e-6, accountant="rdp", order=8)
    DF.dp.count(session=s, eps=0.5)
    first = s.spent.rho
    DF.dp.clip_sum("x", B=10, session=s, eps=0.5)
    second = s.spent.rho - first
    assert second < first < pure_rho(Fraction(1, 2))
    with mpmath.workdps(30):
        a, e = mpmath.mpf(8), mpmath.mpf("0.5")
        response = mpmath.log((mpmath.exp(a * e) + mpmath.exp((1 - a) * e)) / (1 + mpmath.exp(e))) / (a - 1)
        smooth = mpmath.log((a * mpmath.exp((a - 1) * e) + (a - 1) * mpmath.exp(-a * e)) / (2 * a - 1)) / (
            a - 1
        )
        assert response <= float(first) * 8 <= response * (1 + 1e-9)
        assert smooth <= float(second) * 8 <= smooth * (1 + 1e-6)


@pytest.mark.parametrize("accountant", NAMES)
def test_what_remains_is_granted_and_no_more(accountant):
    s = dp.Session(eps=2, delta=1e-6, delta_calls=5e-7, accountant=accountant)
    assert granted(s, rho=0.02, mechanism="gaussian") == (accountant != "sum")
    left = s.remaining
    if accountant == "gdp":
        assert left.eps == 0
        assert granted(s, rho=left.rho, mechanism="gaussian")
    else:
        assert not granted(s, eps=left.eps * (1 + Fraction(1, 10**8)))
        assert granted(s, eps=left.eps)


@pytest.mark.parametrize("accountant", ["zcdp", "rdp", "gdp"])
def test_spent_never_exceeds_the_budget(accountant):
    s = dp.Session(eps=1.5, delta=1e-5, accountant=accountant)
    while granted(s, rho=0.003, mechanism="gaussian"):
        assert s.spent.eps <= Fraction(3, 2)
        assert s.spent.delta <= Fraction(1, 10**5)
    assert s.spent.eps > 1


# ---- opening ----


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"eps": 1, "accountant": "pld"}, "no filter"),
        ({"eps": 1, "accountant": "renyi"}, "'rdp'"),
        ({"eps": 1, "accountant": 3}, "accountant=3"),
        ({"eps": 1, "accountant": "zcdp"}, "delta"),
        ({"eps": 1, "accountant": "rdp"}, "delta"),
        ({"eps": 1, "accountant": "gdp"}, "delta"),
        ({"eps": 1, "delta": 1e-6, "delta_calls": 1e-6, "accountant": "zcdp"}, "delta_calls"),
        ({"eps": 1, "delta": 1e-6, "delta_calls": 2e-6}, "delta_calls"),
        ({"eps": 1, "delta": 1e-6, "order": 12}, "accountant='rdp'"),
        ({"eps": 1, "delta": 1e-6, "accountant": "rdp", "order": 12}, "order=23.3"),
        ({"eps": 1, "delta": 1e-6, "accountant": "rdp", "order": 1}, "1.001"),
        ({"eps": 1, "delta": 1e-6, "accountant": "rdp", "order": -2}, "order"),
        ({"eps": 1, "delta": 1e-6, "accountant": "rdp", "order": math.nan}, "order"),
        ({"rho": 1, "accountant": "sum"}, "zcdp"),
        ({"rho": 1, "accountant": "gdp"}, "zcdp"),
        ({"rho": 1, "accountant": "rdp"}, "zcdp"),
    ],
)
def test_accountants_that_can_grant_nothing_are_refused_when_opened(arguments, word):
    with pytest.raises(dp.InputError, match=word) as e:
        dp.Session(**arguments)
    assert "Hint" in str(e.value)


def test_a_session_names_its_accountant_unless_it_is_the_usual_one():
    assert "accountant" not in repr(dp.Session(eps=1, delta=1e-6))
    assert "accountant" not in repr(dp.Session(rho=1))
    assert "accountant" not in repr(dp.Session(eps=1, accountant="sum"))  # without delta they are one
    assert ", accountant sum " in repr(dp.Session(eps=1, delta=1e-6, accountant="sum"))
    assert ", accountant zcdp " in repr(dp.Session(eps=1, delta=1e-6, accountant="zcdp"))
    assert ", accountant gdp " in repr(dp.Session(eps=1, delta=1e-6, accountant="gdp"))
    s = dp.Session(eps=3, delta=1e-6, accountant="rdp", order=12)
    assert repr(s).startswith("<dpframe session: eps=3, delta=1e-06, accountant rdp at order 12 per row")


def test_the_order_depends_on_the_budget_alone_and_is_best_for_gaussians():
    for eps, delta in [("0.1", "1e-6"), ("1", "1e-6"), ("3", "5e-7"), ("20", "1e-9"), ("0.5", "0.01")]:
        e, d = Fraction(eps), Fraction(delta)
        order, best = chosen_order(e, d), rho_of_eps(e, d)
        assert best * Fraction(9999, 10000) <= rho_of_eps_at(e, order, d) <= best
    assert dp.Session(eps=3, delta=1e-6, accountant="rdp")._budget.order == chosen_order(
        Fraction(3), TINY / 2
    )


# ---- shares and parts ----


@pytest.mark.parametrize("accountant", NAMES)
def test_shares_never_exceed_the_whole(accountant):
    s = dp.Session(eps=2, delta=1e-6, delta_calls=4e-7, accountant=accountant)
    whole, budget = s.remaining, s._budget
    kids = s.split({"a": 0.5, "b": 0.3, "c": Fraction(1, 5)})
    left = [k.remaining for k in kids.values()]
    if accountant in ("union", "sum"):
        assert sum(x.eps for x in left) == 2
    else:
        assert sum(x.rho for x in left) == whole.rho
        for k in kids.values():
            assert k._budget.accountant == accountant
            assert k._budget.order == budget.order
    assert sum(x.delta for x in left) == Fraction(4, 10**7)
    for k in kids.values():
        if accountant in ("union", "sum"):
            assert granted(k, eps=k.remaining.eps)
        else:
            assert granted(k, rho=k.remaining.rho, mechanism="gaussian")
        assert not granted(k, eps=1e-6, mechanism="laplace")
    with pytest.raises(dp.InputError, match="split"):
        DF.dp.count(session=s, eps=0.1, mechanism="laplace")


@pytest.mark.parametrize("accountant", ["zcdp", "rdp", "gdp"])
def test_shares_of_an_eps_that_is_not_added_up_are_refused(accountant):
    s = dp.Session(eps=2, delta=1e-6, accountant=accountant)
    with pytest.raises(dp.InputError, match="by='rho'"):
        s.split(2, by="eps")
    with pytest.raises(dp.InputError, match="rho"):
        dp.Session(eps=1, delta=1e-6, accountant="sum").split(2, by="rho")


@pytest.mark.parametrize("accountant", ["union", "sum", "zcdp", "rdp"])
def test_partitions_are_charged_to_every_accountant_but_gdp(accountant):
    s = dp.Session(eps=3, delta=1e-5, accountant=accountant, neighbors="replace_one")
    parts = DF.dp.partition_by("g", keys=["a", "b"], eps=0.1, delta=1e-7, session=s)
    assert s.spent.eps == Fraction(2, 10)
    assert s.report()["delta"].to_list() == [2e-7]
    one = Event(Fraction(1, 10), Fraction(1, 10**7), pure_rho(Fraction(1, 10)))
    rho = 2 * rho_at(one, s._budget.order) if accountant == "rdp" else 2 * one.rho
    assert s.spent.rho == rho
    parts["a"].dp.count(eps=0.1)
    with pytest.raises(dp.BudgetExceeded):
        parts["a"].dp.count(eps=1e-9)
    if accountant != "sum":
        by_rho = DF.dp.partition_by("g", keys=["a", "b"], rho=0.001, session=s)
        by_rho["b"].dp.count(rho=0.001)


@pytest.mark.parametrize("accountant", NAMES)
def test_a_session_inside_another_is_charged_by_both_accountants(accountant):
    with (
        dp.Session(eps=3, delta=1e-6) as outer,
        dp.Session(eps=2, delta=1e-6, accountant=accountant) as inner,
    ):
        DF.dp.count(eps=0.3, delta=1e-7, mechanism="gaussian", session=inner)
        assert inner.spent.rho == outer.spent.rho


# ---- events ----


def leaf_events(plan) -> list[tuple[str, int, int, int]]:
    return [(e.kind, e.steps, e.moving, n) for e, n in plan.plan.event.leaves()]


def test_events_know_their_law():
    plan = DF.dp.plan.count
    with dp.Session(eps=100, delta=1e-2, unit=None):
        assert leaf_events(plan(eps=0.1)) == [("laplace", 1, 1, 1)]
        assert leaf_events(plan(rho=0.1, mechanism="laplace")) == [("laplace", 1, 1, 1)]
        assert leaf_events(plan(**GAUSSIAN)) == [("gaussian", 0, 1, 1)]
        assert leaf_events(plan(rho=0.1, mechanism="discrete_gaussian")) == [("discrete_gaussian", 1, 1, 1)]
        assert leaf_events(plan(eps=1, delta=1e-3, mechanism="optimal_count")) == [("", 0, 1, 1)]
        mean = DF.dp.plan.clip_mean("x", bounds=(0, 4), eps=1, mechanism="laplace")
        assert [(k, m) for k, _, m, _ in leaf_events(mean)] == [("laplace", 2)]
        mean = DF.dp.plan.clip_mean("x", bounds=(0, 4), eps=1, mechanism="row")
        assert [(k, n) for k, _, _, n in leaf_events(mean)] == [("pure", 1)]
        mean = DF.dp.plan.clip_mean("x", bounds=(0, 4), eps=1, mechanism="staircase")
        assert [(k, n) for k, _, _, n in leaf_events(mean)] == [("pure", 2)]
        assert mean.plan.event.eps == 1
        keys = DF.dp.plan.groupby("g").count(eps=1, delta=1e-5)
        assert [k for k, *_ in leaf_events(keys)] == ["laplace", "keys"]


def test_equal_events_are_equal_and_the_law_is_part_of_it():
    a = Event(Fraction(1), ZERO, pure_rho(Fraction(1)))
    assert a == Event(Fraction(1), ZERO, pure_rho(Fraction(1)), None)
    assert hash(a) == hash(Event(Fraction(1), ZERO, pure_rho(Fraction(1))))
    assert a != Event(Fraction(1), ZERO, pure_rho(Fraction(1)), kind="laplace")
    whole = compose((a, repeat(a, 3)))
    assert (whole.eps, whole.rho, whole.times) == (4, 4 * a.rho, 1)
    assert sum(n for _, n in whole.leaves()) == 4
    assert {whole: 1}[pickle.loads(pickle.dumps(whole))] == 1
    assert compose((a,)) is a
    assert repeat(a, 1) is a


def test_budgets_and_states_are_exact_and_frozen():
    for cls in (Budget, State, Event):
        assert is_dataclass(cls)
        assert cls.__dataclass_params__.frozen
    budget = dp.Session(eps=3, delta=1e-6, accountant="rdp")._budget
    state, _ = budget.grant(Event(Fraction(1, 10), ZERO, pure_rho(Fraction(1, 10))), State(), "x")
    for x in (budget, state):
        for f in fields(x):
            assert isinstance(getattr(x, f.name), Fraction | str | int | None)
        assert pickle.loads(pickle.dumps(x)) == x


def test_a_law_that_is_not_known_by_theorem_is_not_believed():
    """A plug-in that calls itself Gaussian, or a part of something cheaper, is charged by what was recomputed."""

    class Liar:
        name, norm = "liar", "L2"

        def calibrate(self, sensitivity, moving, target):
            noise = dp.mechanism("discrete_gaussian").calibrate(sensitivity, 1, target)
            cheap = Event(None, ZERO, ZERO, kind="gaussian")
            from dataclasses import replace

            return replace(noise, cost=Event(None, ZERO, target.rho, None, "gaussian", 1, 1, (cheap,)))

    noise = _one_by_one(Liar(), 1, 3, Target(rho=Fraction(3, 10)), own=False)
    assert [(e.kind, e.rho, n) for e, n in noise.event.leaves()] == [("", Fraction(1, 10), 3)]
    gdp = Budget(Fraction(9), TINY, ZERO, accountant="gdp")
    assert gdp.grant(noise.event, State(), "x") == (None, "law")


def test_one_event_of_several_noises_keeps_the_fewest_steps():
    a, b = (Event(Fraction(1), ZERO, pure_rho(Fraction(1)), None, "laplace", m, 2) for m in (5, 3))
    assert worst([a, b]) == b
    assert worst([a, Event(Fraction(1), ZERO, pure_rho(Fraction(1)), kind="pure")]).kind == ""


# ---- Renyi divergences ----


def exact_divergence(eps: float, steps: int, moves: list[int], order: float) -> float:
    """Of discrete Laplace noise on every coordinate, by sums over the integers."""
    r, total = eps / steps, 0.0
    k = np.arange(-int(60 / r) - 50, int(60 / r) + 50, dtype=np.float64)
    for j in moves:
        logs = math.log(math.tanh(r / 2)) - r * np.abs(k) + (order - 1) * r * (np.abs(k - j) - np.abs(k))
        top = logs.max()
        total += (top + math.log(np.exp(logs - top).sum())) / (order - 1)
    return total


@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 7.3, 64.0])
@pytest.mark.parametrize(("eps", "steps"), [(0.05, 1), (0.7, 4), (3.0, 5), (9.0, 2)])
def test_laplace_divergence_is_that_of_the_law_and_bounds_vectors(eps, steps, order):
    got = laplace_divergence(eps, steps, order)
    right = exact_divergence(eps, steps, [steps], order)
    assert right * (1 - 1e-9) - 1e-12 <= got <= right * (1 + 1e-8) + 1e-12
    for moves in ([1] * steps, [steps - 1, 1], [-1, steps - 1] if steps > 1 else [1], [steps // 2]):
        assert exact_divergence(eps, steps, moves, order) <= got * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("order", [1.001, 1.2, 3.0, 50.0, 1e5])
def test_laplace_divergence_grows_with_the_grid_and_is_rounded_up(order):
    with mpmath.workdps(60):
        for eps in (1e-7, 1e-3, 0.1, 2.0, 40.0, 800.0):
            values = [laplace_divergence(eps, m, order) for m in (1 << 40, 1000, 7, 2, 1)]
            for few, many in zip(values[1:], values):
                assert many <= few * (1 + 1e-6)
            a, e = mpmath.mpf(order), mpmath.mpf(eps)
            exact = mpmath.log((mpmath.exp(a * e) + mpmath.exp((1 - a) * e)) / (1 + mpmath.exp(e))) / (a - 1)
            assert values[-1] >= exact
            cost = rho_at(Event(Fraction(eps), ZERO, pure_rho(Fraction(eps)), kind="pure"), Fraction(order))
            assert exact / a <= mpmath.mpf(cost.numerator) / cost.denominator
            assert cost <= pure_rho(Fraction(eps))


def test_a_gaussian_costs_its_rho_at_every_order_even_with_an_eps_beside():
    e = dp.mechanism("gaussian").calibrate(Fraction(1), 1, Target(Fraction(1, 100), Fraction(1, 10))).event
    for order in (2, 10, 500):
        assert rho_at(e, Fraction(order)) == e.rho  # its eps of .01 holds only together with its delta


def test_conversions_at_an_order_are_rounded_outward():
    with mpmath.workdps(40):
        for eps, order, delta in [
            ("1", "23.3", "1e-6"),
            ("3", "9", "5e-7"),
            ("50", "1.4", "1e-9"),
            ("0.2", "90", "0.01"),
        ]:
            e, a, d = Fraction(eps), Fraction(order), Fraction(delta)
            rho = rho_of_eps_at(e, a, d)
            A, D = mpmath.mpf(order), mpmath.mpf(delta)
            exact = (mpmath.mpf(eps) - mpmath.log(1 - 1 / A) + (mpmath.log(D) + mpmath.log(A)) / (A - 1)) / A
            assert exact * (1 - mpmath.mpf(10) ** -9) <= mpmath.mpf(rho.numerator) / rho.denominator <= exact
            assert float(e) <= eps_of_rho_at(float(exact), float(a), float(d)) * (1 + 1e-12)
            fits = pure_eps_of_rho_at(rho, a)
            assert rho_at(Event(fits, ZERO, Fraction(10**6), kind="pure"), a) <= rho


# ---- conversions ----


def test_public_conversions():
    for rho, eps in [(0.01, 0.621693), (0.05, 1.471595), (0.1, 2.141939), (0.5, 5.221534), (1, 7.766217)]:
        assert round(dp.eps_of_rho(rho, 1e-6), 6) == eps
    for eps, rho in [
        (0.1, 0.000321),
        (0.5, 0.006642),
        (1, 0.024356),
        (2, 0.088153),
        (3, 0.18507),
        (5, 0.463065),
    ]:
        assert round(dp.rho_of_eps(eps, 1e-6), 6) == rho
    for eps, delta, sigma in [
        (1, 1e-5, 3.73063), (0.5, 1e-5, 7.03183), (1, 1e-6, 4.2247), (1, 1e-7, 4.67866), (3, 1e-6, 1.54386),
        (0.1, 1e-6, 36.3047), (5, 1e-6, 0.98005),
    ]:  # fmt: skip
        assert 1 / dp.mu_of_eps(eps, delta) == pytest.approx(sigma, rel=6e-6)


def test_conversions_there_and_back_never_gain():
    for eps in (0.01, 0.3, 1, 4, 30):
        for delta in (1e-12, 1e-6, 0.01, 0.4):
            assert dp.eps_of_rho(dp.rho_of_eps(eps, delta), delta) <= eps * (1 + 1e-10)
            mu = dp.mu_of_eps(eps, delta)
            assert dp.delta_of_mu(mu, eps) <= delta
            assert eps * (1 - 1e-6) <= dp.eps_of_mu(mu, delta) <= eps * (1 + 1e-9)
            assert dp.delta_of_mu(mu * (1 + 1e-6), eps) > delta * (1 - 1e-9)


@pytest.mark.parametrize("delta", [0.5, 0.999, 1 - 1e-12])
def test_delta_near_one_never_gives_a_negative_eps(delta):
    for x in (0, 1e-9, 0.01, 1, 5):
        assert dp.eps_of_rho(x, delta) >= 0
        assert dp.eps_of_mu(x, delta) >= 0


@pytest.mark.parametrize("delta", [1, 1.0, 2, -1e-9, math.nan, math.inf, True, "0.1", None])
def test_conversions_refuse_deltas_that_are_none(delta):
    for f in (dp.eps_of_rho, dp.rho_of_eps, dp.mu_of_eps, dp.eps_of_mu):
        with pytest.raises(dp.InputError, match="delta"):
            f(1, delta)
    for bad in (-1, math.nan, "1", None):
        with pytest.raises(dp.InputError):
            dp.eps_of_rho(bad, 1e-6)
        with pytest.raises(dp.InputError):
            dp.delta_of_mu(1, bad)


def test_conversions_without_delta():
    assert dp.eps_of_rho(0.1, 0) == dp.eps_of_mu(0.1, 0) == math.inf
    assert dp.rho_of_eps(1, 0) == dp.mu_of_eps(1, 0) == 0


# ---- refusals ----


def test_refusals_offer_a_sigma_that_is_granted():
    for accountant in ("union", "zcdp", "rdp", "gdp"):
        s = dp.Session(eps=1, delta=1e-6, accountant=accountant)
        granted(s, rho=0.013, mechanism="gaussian")
        with pytest.raises(dp.BudgetExceeded, match=r"sigma = [\d.]+ sensitivities \(rho=") as e:
            DF.dp.count(session=s, **GAUSSIAN)
        text = str(e.value)
        assert granted(s, rho=Fraction(text.split("(rho=")[1].split(")")[0]), mechanism="gaussian"), (
            accountant
        )
    with pytest.raises(dp.BudgetExceeded, match=r"sigma = 4\.669 .*accountant='sum' or 'gdp'"):
        DF.dp.count(session=dp.Session(eps=1, delta=1e-6), **GAUSSIAN)


def test_refusals_name_another_accountant_only_where_it_would_grant():
    with pytest.raises(dp.BudgetExceeded, match="'union' or 'sum' would grant"):
        DF.dp.count(session=dp.Session(eps=1, delta=1e-6, accountant="zcdp"), eps=1)
    with pytest.raises(dp.BudgetExceeded) as e:
        DF.dp.count(session=dp.Session(eps=1, delta=1e-6), eps=2)
    assert "would grant it" not in str(e.value)
    s = dp.Session(eps=1, delta=1e-6)
    DF.dp.count(session=s, eps=0.9)
    with pytest.raises(dp.BudgetExceeded) as e:
        DF.dp.count(session=s, eps=0.5)  # it only comes too late
    assert "would grant it" not in str(e.value)


# ---- long accounts ----


@pytest.mark.parametrize("accountant", NAMES)
def test_the_state_of_a_thousand_events_is_recomputed_exactly(accountant):
    gauss = [
        dp.mechanism("gaussian").calibrate(Fraction(3), 1, Target(Fraction(i, 7), TINY)).event for i in (1, 2)
    ]
    pure = [dp.mechanism("laplace").calibrate(Fraction(3), 1, Target(Fraction(i, 11))).event for i in (1, 2)]
    events = (gauss if accountant == "gdp" else gauss + pure) * (500 if accountant == "gdp" else 250)
    budget = dp.Session(eps=10**6, delta=0.01, delta_calls=0.009, accountant=accountant)._budget
    state = State()
    for e in events:
        state, short = budget.grant(e, state, "")
        assert not short
    again = State()
    for e in events:
        again = again.after(budget.charged(e, again), "")
    assert (again.rho, again.delta) == (state.rho, state.delta)


def test_every_accountant_is_tested_here():
    assert set(NAMES) == set(ACCOUNTANTS)
