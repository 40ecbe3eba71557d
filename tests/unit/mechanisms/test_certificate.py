"""Third-party laws: what they claim is recomputed before they are used."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.accounting.events import Event
from dpframe.mechanisms import certificate
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.coarse import STEPS, Coarse
from dpframe.mechanisms.laplace import DiscreteLaplace

DF = pl.DataFrame({"x": [1.0, 2.0, 3.0] * 200, "g": ["a", "b", "c"] * 200})


class Toy:
    """A law that draws like a built-in one, with its sensitivity or its claim changed."""

    def __init__(self, name, law, *, scale=1, delta=1):
        self.name, self.law = name, dp.mechanism(law)
        self.norm = self.law.norm
        self.scale, self.delta = Fraction(scale), delta

    def calibrate(self, sensitivity, moving, target):
        honest = replace(target, delta=target.delta / self.delta) if self.delta != 1 else target
        noise = self.law.calibrate(self.scale * sensitivity, moving, honest)
        claim = Event(target.eps, noise.event.delta * self.delta, noise.event.rho, noise.event.delta_alone)
        return replace(noise, cost=claim)


@pytest.fixture
def register():
    names = []

    def add(mech):
        dp.register_mechanism(mech.name)(type("Made", (), {"__new__": lambda cls: mech}))
        names.append(mech.name)
        return mech.name

    yield add
    for name in names:
        dp.unregister_mechanism(name)


def ask(name, **options):
    options = {"eps": 1, "delta": 1e-6} | options
    count = DF.dp.plan.count(mechanism=name, **options)
    mean = DF.dp.plan.clip_mean("x", bounds=(0, 10), mechanism=name, **options)
    return count, mean


@pytest.mark.parametrize(
    "toy",
    [
        Toy("half_scale", "laplace", scale=Fraction(1, 2)),
        Toy("two_percent", "laplace", scale=Fraction(98, 100)),
        Toy("half_gaussian", "gaussian", scale=Fraction(1, 2)),
        Toy("two_percent_gaussian", "gaussian", scale=Fraction(98, 100)),
        Toy("half_delta", "gaussian", delta=Fraction(1, 2)),
    ],
    ids=lambda t: t.name,
)
@pytest.mark.parametrize("eps", [0.1, 1, 3])
def test_a_law_that_claims_too_much_is_refused_with_its_shift(register, toy, eps):
    name = register(toy)
    with pytest.raises(dp.MechanismError, match=r"at shift -?1 of 1.*refused"):
        DF.dp.plan.count(eps=eps, delta=1e-6, mechanism=name)
    with pytest.raises(dp.MechanismError, match=r"at shift -?\d+ of 64.*refused"):
        DF.dp.plan.clip_mean("x", bounds=(0, 10), eps=eps, delta=1e-6, mechanism=name)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_an_honest_law_is_used_and_answers_well(register, law):
    name = register(Toy(f"honest_{law}", law))
    with dp.Session(eps=10, delta=0.1) as s:
        for plan in ask(name):
            plan.release()
        assert 580 < DF.dp.count(eps=1, delta=1e-6, mechanism=name) < 620
    assert s.report()["eps"].sum() == 3


def test_a_law_for_one_coordinate_is_charged_for_each_that_moves(register):
    """Gaussian noise for L2, sold by a plug-in for a block: two cells move, each has half of eps and delta."""
    name = register(Toy("one_dimension", "gaussian"))
    _, mean = ask(name)
    noise = mean.plan.pieces[0].noise
    assert isinstance(noise, Coarse)
    assert noise.law.event.eps == Fraction(1, 2)
    assert noise.law.event.delta == Fraction(1, 2 * 10**6)
    assert (mean.eps, mean.delta) == (1.0, 1e-6)


def test_replacing_a_row_moves_two_groups(register):
    name = register(Toy("groups", "laplace"))
    with dp.Session(eps=10, neighbors="replace_one"):
        plan = DF.dp.plan.groupby("g", keys=["a", "b"]).count(eps=1, mechanism=name)
        assert plan.plan.pieces[0].noise.law.event.eps == Fraction(1, 2)
        assert DF.dp.plan.count(eps=1, mechanism=name).plan.pieces[0].noise.law.event.eps == 1


def test_the_certificate_equals_the_closed_form_of_discrete_laplace():
    noise = dp.mechanism("laplace").calibrate(Fraction(8), 1, Target(Fraction(1)))
    q = float(np.exp(-1 / 8))
    for eps in (0.25, 0.5, 0.9):
        k = np.arange(-4000, 4001)
        p = (1 - q) / (1 + q) * q ** np.abs(k)
        shifted = (1 - q) / (1 + q) * q ** np.abs(k - 8)
        exact = np.sum(np.maximum(0, p - np.exp(eps) * shifted))
        found = certificate.worst_delta(noise, 8, eps)
        assert found.shift in (8, -8)
        assert exact <= found.delta <= exact * (1 + 1e-8)
    assert certificate.least_pure_eps(noise, 8).delta == pytest.approx(1, rel=1e-9)


def test_the_worst_shift_of_a_law_with_bumps_is_found_inside():
    """Two spikes 5 apart: shift 5 hides what shift 2 shows."""

    class Spikes(type(dp.mechanism("laplace").calibrate(Fraction(1), 1, Target(Fraction(1))))):
        def pmf(self, k):
            k = np.abs(np.asarray(k))
            return np.where(k % 5 == 0, 0.3 * np.exp(-k / 5.0), 1e-4 * np.exp(-k / 5.0)) / self._total()

        def _total(self):
            k = np.abs(np.arange(-2000, 2001))
            return float(np.sum(np.where(k % 5 == 0, 0.3 * np.exp(-k / 5.0), 1e-4 * np.exp(-k / 5.0))))

        def cdf(self, k):
            j = np.arange(-2000, 2001)
            return np.interp(np.asarray(k, dtype=float), j, np.cumsum(self.pmf(j)), left=0)

    law = Spikes(Fraction(5), Event(Fraction(1), Fraction(0), Fraction(1)))
    found = certificate.least_pure_eps(law, 5)
    assert abs(found.shift) != 5
    assert found.delta > 5


def test_a_law_that_does_not_sum_to_one_is_refused():
    class Leaky(type(dp.mechanism("laplace").calibrate(Fraction(1), 1, Target(Fraction(1))))):
        def pmf(self, k):
            return super().pmf(k) * 0.9

    law = Leaky(Fraction(1), Event(Fraction(1), Fraction(0), Fraction(1)))
    with pytest.raises(dp.MechanismError, match="sum to 1"):
        certificate.check(law, 1, "leaky")


def test_a_rho_that_is_too_small_is_refused():
    honest = dp.mechanism("gaussian").calibrate(Fraction(10), 1, Target(rho=Fraction(1, 10)))
    certificate.check(honest, 10, "honest")
    cheat = replace(honest, cost=Event(None, Fraction(0), Fraction(9, 100)))
    with pytest.raises(dp.MechanismError, match="true rho"):
        certificate.check(cheat, 10, "cheat")


def test_coarse_rounding_moves_by_no_more_than_the_coarse_steps():
    """Half up, once: sums m*h apart are at most m coarse steps apart, ties and negative sums included."""
    law = dp.mechanism("laplace").calibrate(Fraction(STEPS), 1, Target(Fraction(1)))
    for step in (1, 2, 3, 10, 1024):
        coarse = Coarse(law, step, law.event)
        s = np.arange(-5 * step, 5 * step, max(1, step // 7), dtype=np.int64)
        for m in (1, 3):
            a, b = coarse.prepare(s), coarse.prepare(s + m * step)
            assert np.array_equal(b - a, np.full(len(s), m * step))
        assert np.max(np.abs(coarse.prepare(s) - s)) <= step / 2


@pytest.mark.parametrize(
    "claim",
    [
        {"rho": Fraction(0)},
        {"rho": Fraction(1, 1000), "delta_alone": None},
        {"delta": Fraction(-1, 10)},
        {"delta_alone": Fraction(-1, 10)},
        {"rho": Fraction(-1)},
    ],
    ids=str,
)
def test_a_claim_that_would_refill_a_budget_is_refused(claim):
    """The filter adds up delta and rho too: none may be understated, whatever eps says."""
    honest = dp.mechanism("gaussian").calibrate(Fraction(8), 1, Target(Fraction(1), Fraction(1, 10**6)))
    certificate.check(honest, 8, "honest")
    with pytest.raises(
        dp.DPError, match=r"refused|less than zero"
    ):  # an event itself refuses what is negative
        certificate.check(replace(honest, cost=replace(honest.event, **claim)), 8, "cheat")


@pytest.mark.parametrize(
    "shaped",
    [
        lambda x: x[:1],  # one draw for all groups: their differences would be exact
        lambda x: int(x[0]),
        lambda x: x.astype(np.float64),
        lambda x: x.astype(np.int32),
        lambda x: x[:, None],
        list,
    ],
    ids=["one", "int", "float", "int32", "column", "list"],
)
def test_draws_that_are_not_one_integer_for_each_group_are_refused_before_anything_is_spent(register, shaped):
    class Shaped(type(dp.mechanism("laplace").calibrate(Fraction(1), 1, Target(Fraction(1))))):
        def sample(self, size):
            return shaped(super().sample(size))

    class Odd(Toy):
        def calibrate(self, sensitivity, moving, target):
            noise = super().calibrate(sensitivity, moving, target)
            return Shaped(noise.b, noise.cost)

    name = register(Odd("odd", "laplace"))
    with dp.Session(eps=1) as s, pytest.raises(dp.MechanismError, match="int64 array"):
        DF.dp.groupby("g", keys=["a", "b", "c"]).count(eps=1, mechanism=name)
    assert s.spent == 0


def test_a_law_too_wide_to_certify_is_refused(register):
    class Wide(DiscreteLaplace):
        """By the theorem about its base it would do; an heir is judged by what it states."""

    class Huge(Toy):
        def calibrate(self, sensitivity, moving, target):
            noise = super().calibrate(sensitivity, moving, target)
            return Wide(noise.b, noise.cost)

    name = register(Huge("huge", "laplace"))
    with pytest.raises(dp.MechanismError, match="too wide"):
        DF.dp.plan.clip_sum("x", bounds=(0, 10.5), eps=1e-10, mechanism=name)
