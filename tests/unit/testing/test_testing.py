"""check_mechanism: silent about right mechanisms, and naming every fault of wrong ones at once."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.accounting.events import Event
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.laplace import DiscreteLaplace
from dpframe.testing import mechanisms as testing
from dpframe.testing.mechanisms import check_mechanism


class Plugin:
    """A Laplace mechanism of one's own; ``law`` is the class of its noise."""

    name = "plugin"
    norm = "L1"
    law = DiscreteLaplace
    scale = Fraction(1)

    def calibrate(self, sensitivity, moving, target):
        noise = dp.mechanism("laplace").calibrate(self.scale * sensitivity, moving, target)
        return self.law(noise.b, noise.cost)


@pytest.fixture
def few(monkeypatch):
    """A small grid: what is looked for here is wrong everywhere."""
    monkeypatch.setattr(testing, "EPS", (Fraction(1, 2), Fraction(2)))
    monkeypatch.setattr(testing, "DELTA", (Fraction(0), Fraction(1, 10**6)))
    monkeypatch.setattr(testing, "RHO", (Fraction(1, 2),))
    monkeypatch.setattr(testing, "SENSITIVITY", (1, 8))
    monkeypatch.setattr(testing, "_WANTED", 0)


def complaints(mech) -> str:
    with pytest.raises(AssertionError) as e:
        check_mechanism(mech)
    return str(e.value)


# ---- right mechanisms ----


@pytest.mark.parametrize("name", ["laplace", "gaussian", "gaussian_classic", "discrete_gaussian"])
def test_right_mechanisms_pass(name):
    looked = check_mechanism(name)
    assert looked.points >= 200
    assert looked.points + looked.refused == 500
    assert looked.laws >= 20


class OneStep:
    """Takes counts only, as a law that is made for a sensitivity of one step does."""

    name, norm = "one_step", "L2"

    def calibrate(self, sensitivity, moving, target):
        if sensitivity != 1 or target.rho is not None:
            raise dp.MechanismError("counts only")
        return dp.mechanism("gaussian").calibrate(sensitivity, moving, target)


def test_a_law_for_one_sensitivity_is_looked_at_as_closely():
    looked = check_mechanism(OneStep)
    assert looked.points >= 200


def test_the_grid_is_large_enough():
    assert len(testing.EPS) * len(testing.DELTA) * len(testing.SENSITIVITY) >= 200
    assert len(set(testing.RHO)) * len(testing.SENSITIVITY) >= 200


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("mech", [Plugin, Plugin()], ids=["class", "instance"])
def test_a_plugin_passes_as_a_class_and_as_an_instance(mech):
    assert check_mechanism(mech).points == 10


@pytest.mark.usefixtures("few")
def test_what_passes_is_usable_end_to_end():
    mech = Plugin()
    check_mechanism(mech)
    dp.register_mechanism("plugin")(Plugin)
    try:
        df = pl.DataFrame({"x": range(1000)})
        with dp.Session(rho=10):
            assert 900 < df.dp.count(mechanism="plugin", rho=0.5) < 1100
    finally:
        dp.unregister_mechanism("plugin")


def test_import_dpframe_does_not_import_it():
    code = "import sys, dpframe; sys.exit('dpframe.testing.mechanisms' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- wrong guarantees ----


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(98, 100)])
def test_too_little_noise(scale):
    text = complaints(type("Bad", (Plugin,), {"scale": scale}))
    assert "guarantee: eps=0.5, delta=0, sensitivity 1" in text
    assert "at shift" in text
    assert "more points" in text  # the first three are shown


class HalfDelta:
    """Gaussian noise for twice the delta it claims."""

    name, norm = "half_delta", "L2"

    def calibrate(self, sensitivity, moving, target):
        noise = dp.mechanism("gaussian").calibrate(
            sensitivity, moving, replace(target, delta=2 * target.delta)
        )
        return replace(noise, cost=replace(noise.cost, delta=target.delta))


@pytest.mark.usefixtures("few")
def test_a_delta_that_is_too_small():
    text = complaints(HalfDelta)
    assert "claims delta=1e-06" in text
    assert "its true delta is 1.14914e-06" in text  # a one-step law; delta rises less than twofold


class Charges(Plugin):
    def calibrate(self, sensitivity, moving, target):
        noise = super().calibrate(sensitivity, moving, target)
        if target.rho is not None:
            return replace(noise, cost=Event(None, Fraction(1, 10), 2 * target.rho))
        return replace(noise, cost=Event(target.eps * 2, target.delta + Fraction(1, 10), noise.cost.rho))


@pytest.mark.usefixtures("few")
def test_charges_above_the_target():
    text = complaints(Charges)
    assert "charged eps=1, and eps=0.5 was asked" in text
    assert "charged delta=0.1, more than was asked" in text
    unfinished = type("NoEps", (Plugin,), {"calibrate": lambda self, s, m, t: no_eps(s, m, t)})
    assert "charged no eps" in complaints(unfinished)


def no_eps(sensitivity, moving, target):
    noise = dp.mechanism("laplace").calibrate(sensitivity, moving, target)
    return replace(noise, cost=replace(noise.cost, eps=None))


# ---- wrong laws ----


class Overconfident(DiscreteLaplace):
    @property
    def std(self):
        return super().std * 0.99

    @property
    def mean_abs(self):
        return super().mean_abs * 1.01

    def interval(self, level):
        return super().interval(level) + (1 if level > 0.9 else -1)


class Leaky(DiscreteLaplace):
    def pmf(self, k):
        return super().pmf(k) * 0.9


class OtherCdf(DiscreteLaplace):
    def cdf(self, k):
        return super().cdf(np.asarray(k) + 1)


class Lopsided(DiscreteLaplace):
    def pmf(self, k):
        return super().pmf(np.asarray(k) - 1)

    def cdf(self, k):
        return super().cdf(np.asarray(k) - 1)


class TooNarrow(DiscreteLaplace):
    def sample(self, size):
        return DiscreteLaplace.sample(replace(self, b=self.b * Fraction(9, 10)), size)


class Floating(DiscreteLaplace):
    def sample(self, size):
        return super().sample(size).astype(np.float64)


class Seeded(DiscreteLaplace):
    def sample(self, size):
        rng = np.random.default_rng(0)
        q = -math.expm1(-1 / float(self.b))
        return (rng.geometric(q, size) - rng.geometric(q, size)).astype(np.int64)


class Broken(DiscreteLaplace):
    def interval(self, level):
        raise ZeroDivisionError("no level")


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("law", "said"),
    [
        (Overconfident, ["std: ", "mean_abs: ", "holds", "wider than needed"]),
        (Leaky, ["adds up to 0.9", "not a probability law"]),
        (OtherCdf, ["cdf: "]),
        (Lopsided, ["not symmetric"]),
        (TooNarrow, ["draws do not follow the pmf"]),
        (Floating, ["not an int64 array"]),
        (Seeded, ["return the same draws"]),
        (Broken, ["law: ", "ZeroDivisionError: no level"]),
    ],
    ids=lambda x: x.__name__ if isinstance(x, type) else "",
)
def test_wrong_laws(law, said):
    text = complaints(type("Bad", (Plugin,), {"law": law}))
    for words in said:
        assert words in text


# ---- state and protocol ----


@dataclass(frozen=True, eq=False)
class Unequal(DiscreteLaplace):
    __hash__ = object.__hash__

    def __eq__(self, other):
        return self is other


@dataclass
class Unhashable(DiscreteLaplace.__base__):
    b: Fraction
    cost: Event
    scale = DiscreteLaplace.scale
    event = DiscreteLaplace.event
    sample = DiscreteLaplace.sample
    pmf = DiscreteLaplace.pmf
    cdf = DiscreteLaplace.cdf
    std = DiscreteLaplace.std
    mean_abs = DiscreteLaplace.mean_abs


class Unpicklable(DiscreteLaplace):
    def __reduce__(self):
        raise TypeError("not this one")


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("law", "said"),
    [
        (Unequal, "not equal"),
        (Unhashable, "unhashable"),
        (Unpicklable, "can't be pickled: TypeError: not this one"),
    ],
)
def test_state(law, said):
    text = complaints(type("Bad", (Plugin,), {"law": law}))
    assert "state: " in text
    assert said in text


class Crashes:
    name, norm = "crashes", "L1"

    def calibrate(self, sensitivity, moving, target):
        raise ValueError("what?")


class Numbers(Crashes):
    def calibrate(self, sensitivity, moving, target):
        return 3.0


class Refuses(Crashes):
    def calibrate(self, sensitivity, moving, target):
        raise dp.MechanismError("never")


class Zero(Plugin):
    def calibrate(self, sensitivity, moving, target):
        return super().calibrate(max(sensitivity, Fraction(1, 100)), moving, target)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("mech", "said"),
    [
        (type("Nothing", (), {}), ["lacks 'name'", "lacks 'norm'", "lacks 'calibrate'"]),
        (type("L0", (Plugin,), {"norm": "L0"}), ["norm is 'L0'"]),
        (Crashes, ["by a MechanismError only, not by ValueError: what?", "sensitivity 0"]),
        (Numbers, ["returned a float, not a Noise"]),
        (Refuses, ["refused every target"]),
        (Zero, ["sensitivity 0: it gives noise"]),
    ],
    ids=lambda x: x.__name__ if isinstance(x, type) else "",
)
def test_protocol(mech, said):
    text = complaints(mech)
    for words in said:
        assert words in text


@pytest.mark.usefixtures("few")
def test_all_complaints_come_in_one_text():
    law = type("Worst", (Overconfident,), {"sample": TooNarrow.sample})
    text = complaints(type("Bad", (Plugin,), {"law": law, "scale": Fraction(1, 2)}))
    assert "complaints about mechanism 'plugin':" in text
    for kind in ("guarantee", "std", "mean_abs", "interval", "state"):
        assert f"- {kind}: " in text


def test_the_guarantee_is_looked_at_in_every_shift():
    """Independent of the certificate: the delta that it lets pass is the definition's, at 200 points and more."""
    looked = 0
    for eps in testing.EPS:
        for delta in testing.DELTA[1:]:
            for sensitivity in testing.SENSITIVITY:
                noise = dp.mechanism("gaussian").calibrate(Fraction(sensitivity), 1, Target(eps, delta))
                w = int(20 * noise.std) + 40
                k = np.arange(-w, w + 1)
                p, q = noise.pmf(k), noise.pmf(k - sensitivity)
                assert np.sum(np.maximum(p - math.exp(eps) * q, 0)) <= float(delta) * (1 + 1e-6)
                looked += 1
    assert looked >= 200
