"""Plug-ins whose distributions look right and are not: each is refused before anything is spent, and found by
``check_mechanism``."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.accounting.conversion import pure_rho
from dpframe.accounting.events import Event
from dpframe.mechanisms import certificate, registry
from dpframe.mechanisms.base import Noise, Target
from dpframe.mechanisms.table import TableNoise, integer_weights
from dpframe.noise import source
from dpframe.testing import check_mechanism, mechanisms

DF = pl.DataFrame({"x": [1.0, 2.0, 3.0], "g": ["a", "b", "a"]})


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    few = {
        "EPS": (Fraction(1, 2), Fraction(3)),
        "DELTA": (Fraction(0), Fraction(1, 10**6)),
        "RHO": (Fraction(1, 20),),
    }
    for name, points in (few | {"SENSITIVITY": (1, 3)}).items():  # check_mechanism's: a few are enough
        monkeypatch.setattr(mechanisms, name, points)
    monkeypatch.setattr(mechanisms, "_WANTED", 0)


@dataclass(frozen=True, repr=False)
class Stated(Noise):
    """A distribution that states ``left`` and ``right``, the probabilities of -1, -2, ... and 0, 1, 2, ...; not a table."""

    left: tuple[float, ...]
    right: tuple[float, ...]
    cost: Event

    scale = Fraction(1)

    @property
    def event(self):
        return self.cost

    def _all(self):
        return np.array([*self.left[::-1], *self.right])

    def pmf(self, k):
        at = np.asarray(k) + len(self.left)
        p = self._all()
        return np.where((at >= 0) & (at < len(p)), p[np.clip(at, 0, len(p) - 1)], 0.0)

    def cdf(self, k):
        sums = np.array([0.0, *accumulate(self._all().tolist())])
        return sums[np.clip(np.asarray(k, dtype=np.int64) + len(self.left) + 1, 0, len(sums) - 1)]

    def sample(self, size):
        p = self._all()
        return np.random.default_rng(source.words(4)).choice(len(p), size, p=p / p.sum()) - len(self.left)

    @property
    def std(self):
        k = np.arange(-len(self.left), len(self.right))
        return math.sqrt(float(k**2 @ self._all()))

    @property
    def mean_abs(self):
        return float(np.abs(np.arange(-len(self.left), len(self.right))) @ self._all())


def both(logs, cost):
    """The same symmetric distribution as a table and as one that states its probabilities."""
    table = TableNoise(integer_weights(logs), Fraction(1), cost)
    p = table.pmf(np.arange(len(table.weights))).tolist()
    return table, Stated(tuple(p[1:]), tuple(p), cost)


def plug_in(make):
    class Wrong:
        name, norm = "wrong", "L1"

        def calibrate(self, sensitivity, moving, target):
            if sensitivity <= 0:
                raise dp.MechanismError("no noise at sensitivity 0")
            return make(int(sensitivity), target)

    return Wrong


def refused(make, **price):
    """The message with which a count is refused; nothing was spent. check_mechanism finds it, too."""
    wrong = plug_in(make)
    dp.register_mechanism("wrong")(wrong)
    with dp.Session(eps=10, delta=0.1, rho=None) as s, pytest.raises(dp.MechanismError) as e:
        DF.dp.count(mechanism="wrong", **price)
    assert s.spent == 0
    with pytest.raises(AssertionError):
        check_mechanism(wrong, draws=200)
    return str(e.value)


def bell(steps, sigmas, rho):
    """The Gaussian of a rho, cut at so many sigmas."""
    sigma = steps / math.sqrt(2 * rho)
    return -(np.arange(max(1, int(sigmas * sigma)) + 1) ** 2) / (2 * sigma**2)


@pytest.mark.parametrize("sigmas", [0.5, 1, 2, 5, 12, 30])
@pytest.mark.parametrize("form", [0, 1], ids=["table", "stated"])
def test_a_cut_gaussian_keeps_no_rho(sigmas, form):
    """(a) Where it is cut a value is possible before a shift and impossible after it: infinite loss at every order."""

    def make(steps, target):
        if target.rho is None:
            raise dp.MechanismError("rho only")
        return both(bell(steps, sigmas, float(target.rho)), Event(None, Fraction(0), target.rho))[form]

    assert "true rho is" in refused_rho(make)
    for steps in (1, 3, 64):
        noise = both(bell(steps, sigmas, 0.05), Event(None, Fraction(0), Fraction(1, 20)))[form]
        with pytest.raises(dp.MechanismError, match=r"true rho is.*inf"):
            certificate.check(noise, steps, "wrong")


def refused_rho(make):
    wrong = plug_in(make)
    dp.register_mechanism("wrong")(wrong)
    with dp.Session(rho=1) as s, pytest.raises(dp.MechanismError) as e:
        DF.dp.count(mechanism="wrong", rho=0.05)
    assert not s.spent.rho
    with pytest.raises(AssertionError, match="true rho is"):
        check_mechanism(wrong, draws=200)
    return str(e.value)


def laplace_to(last, steps, eps):
    return -eps / steps * np.arange(last + 1)


@pytest.mark.parametrize("cut", [1, 3, 7, 8, 9, 15, 16, 17, 32, 64, 128, 256, 500])
@pytest.mark.parametrize("form", [0, 1], ids=["table", "stated"])
def test_a_cut_laplace_is_not_pure(cut, form):
    """(b) Cut at 8, 16, 32, ... sensitivities the last value lies on the edge of the window that is looked at."""

    def make(steps, target):
        if target.eps is None or target.delta:
            raise dp.MechanismError("pure only")
        cost = Event(target.eps, Fraction(0), pure_rho(target.eps))
        return both(laplace_to(cut * steps, steps, float(target.eps)), cost)[form]

    assert "differ by eps=inf" in refused(make, eps=0.1)
    eps = Fraction(1, 10)
    for steps in (2, 64):
        noise = both(laplace_to(cut * steps, steps, 0.1), Event(eps, Fraction(0), pure_rho(eps)))[form]
        with pytest.raises(dp.MechanismError, match="differ by eps=inf"):
            certificate.check(noise, steps, "wrong")


def skewed(steps, target):
    """Two thirds of the mass lies above zero."""
    if target.eps is None:
        raise dp.MechanismError("eps only")
    q = math.exp(-float(target.eps) / steps)
    p = (1 - q) * q ** np.arange(math.ceil(570 * steps / float(target.eps)))
    cost = Event(target.eps, target.delta, pure_rho(target.eps))
    up = (p * 2 * (1 - q) / (2 + q) / (1 - q)).tolist()
    down = (p[1:] * (1 - q) / (2 + q) / (1 - q)).tolist()
    total = math.fsum(up) + math.fsum(down)
    return Stated(tuple(x / total for x in down), tuple(x / total for x in up), cost)


@pytest.mark.parametrize("price", [{"eps": 1}, {"eps": 1, "delta": 1e-6}], ids=["pure", "delta"])
def test_an_asymmetric_distribution_is_refused(price):
    """(c) Thresholds and intervals read one tail for the other."""
    assert "asymmetric" in refused(skewed, **price)


def test_a_distribution_that_is_shifted_up_is_refused():
    """Right in its own terms, and every single row passes a threshold that was read off its lower tail."""

    def make(steps, target):
        noise = dp.mechanism("laplace").calibrate(Fraction(steps), 1, target)
        p = noise.pmf(np.arange(-700 * steps, 700 * steps + 1))
        return Stated(tuple(p[: 680 * steps][::-1]), tuple(p[680 * steps :]), noise.event)

    assert "asymmetric" in refused(make, eps=1)


@pytest.mark.parametrize("lie", [0.5, 1 - 1e-5])
def test_a_cdf_that_hides_the_tail_is_refused(lie):
    class Hiding(type(dp.mechanism("laplace").calibrate(Fraction(1), 1, Target(Fraction(1))))):
        def cdf(self, k):
            tail = super().cdf(k)
            return np.where(tail < 1e-3, tail * lie, tail)

    def make(steps, target):
        noise = dp.mechanism("laplace").calibrate(Fraction(steps), 1, target)
        return Hiding(noise.b, noise.cost)

    assert "cdf" in refused(make, eps=1)


def forged(event, claim):
    """An event that its own constructor would refuse."""
    made = replace(event)
    for part, value in claim.items():
        object.__setattr__(made, part, value)
    return made


@pytest.mark.parametrize(
    "claim",
    [
        {"eps": Fraction(-1)},
        {"eps": Fraction(-1, 10**9)},
        {"delta": Fraction(-1, 10)},
        {"rho": Fraction(-1)},
        {"delta_alone": Fraction(-1, 10**9)},
        {"eps": math.nan},
        {"rho": math.nan},
        {"delta": math.nan},
        {"delta_alone": math.nan},
        {"eps": 1.0},
        {"rho": np.float64(5)},
        {"eps": math.inf},
        {"rho": None},
        {"delta": "0"},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["laplace", "gaussian", "tulap"])
def test_a_claim_that_would_refill_a_budget_is_refused(claim, kind):
    """(d) Filters add claims up: -1 gives eps back, and NaN exceeds nothing."""

    def make(steps, target):
        noise = dp.mechanism(kind).calibrate(Fraction(steps), 1, target)
        return replace(noise, cost=forged(noise.event, claim))

    assert "refused" in refused(make, eps=1, delta=1e-6)


def test_an_event_that_is_none_is_refused():
    def make(steps, target):
        noise = dp.mechanism("laplace").calibrate(Fraction(steps), 1, target)
        return replace(noise, cost=(target.eps, 0, 0))

    assert "not an Event" in refused(make, eps=1)


@pytest.mark.parametrize(
    "weights",
    [(), (0,), (-1, 2), (3, -1), (1.0, 0.5), (True, 1), [2, 1], (np.int64(5), 1), (1 << 300, 1)],
    ids=str,
)
def test_weights_that_are_no_table_are_refused(weights):
    cost = Event(Fraction(1), Fraction(1, 2), Fraction(10))
    with pytest.raises(dp.MechanismError, match=r"weights.*refused"):
        certificate.check(TableNoise(weights, Fraction(1), cost), 1, "wrong")


@pytest.mark.parametrize("missing", [1e-8, 1e-11])
def test_mass_that_is_nowhere_counts_as_delta(missing):
    """A pmf that sums to a little less than 1 hides what it may do with the rest."""
    p = dp.mechanism("laplace").calibrate(Fraction(1), 1, Target(Fraction(1))).pmf(np.arange(900))
    p = p * (1 - missing)
    cost = Event(Fraction(1), Fraction(1, 10**12), pure_rho(Fraction(1)))
    with pytest.raises(dp.MechanismError, match=r"refused|sum to 1"):
        certificate.check(Stated(tuple(p[1:]), tuple(p), cost), 1, "wrong")
    certificate.check(
        Stated(tuple(p[1:]), tuple(p), replace(cost, delta=Fraction(1, 10**7))), 1, "wrong"
    ) if (missing < 1e-9) else None


def test_the_worst_shift_of_a_table_with_bumps_is_found():
    """Spikes 5 apart: shift 5 hides what shift 2 shows."""
    table = TableNoise(
        (100, 1, 1, 1, 1, 50, 1, 1, 1, 1, 25), Fraction(5), Event(Fraction(1), Fraction(1, 5), Fraction(1))
    )
    with pytest.raises(dp.MechanismError, match=r"at shift [1-4] of 5 its true delta is 0\.[6-9]"):
        certificate.check(table, 5, "bumps")


def test_what_cannot_be_decided_is_refused():
    """A pure claim of 200 by stated probabilities: the next value's may be 0, or e**-200 of a small one."""
    eps = Fraction(200)
    p = np.exp(-200.0 * np.arange(4))
    p /= 2 * p.sum() - p[0]
    noise = Stated(tuple(p[1:]), tuple(p), Event(eps, Fraction(0), pure_rho(eps)))
    with pytest.raises(dp.MechanismError, match="can be decided"):
        certificate.check(noise, 1, "wrong")
    own = dp.mechanism("laplace").calibrate(Fraction(1), 1, Target(Fraction(10**6)))
    certificate.check(own, 1, "theorem")  # decided from its parameters, in rationals
    with pytest.raises(dp.MechanismError, match="refused"):
        certificate.check(replace(own, b=own.b / 10**6), 1, "less")


def test_rho_between_the_orders_is_not_far_above():
    """The distance of the orders bounds by how much rho can be exceeded between them."""
    t = np.array(certificate._ORDERS) - 1
    above = (t[1:] - t[:-1]) ** 2 / (4 * t[:-1] * (1 + t[:-1]))  # of the chord of rho t (t+1)
    assert above.max() < 0.01
    assert t[0] <= 0.01 * (1 + 1e-9)
    assert t[-1] > 500
