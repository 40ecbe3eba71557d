"""Only the mechanisms that the registry made itself are believed; what a class says of itself proves nothing."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import pytest

import dpframe as dp
from dpframe.accounting.events import Event
from dpframe.mechanisms import registry
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.mechanisms.laplace import Laplace
from dpframe.mechanisms.staircase import Staircase
from dpframe.mechanisms.table import TableNoise

DF = pl.DataFrame({"x": [1, 2, 3], "g": ["a", "b", "a"]})


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})


def nothing(target):
    """No noise at all, sold at the price asked for."""
    return TableNoise((1,), Fraction(1), Event(target.eps, Fraction(0), Fraction(10**6), kind="pure"))


class Liar:
    name, norm = "liar", "L1"

    def calibrate(self, sensitivity, moving, target):
        return nothing(target)


def subclass(of):
    class Heir(of):
        name = "liar"

        def calibrate(self, sensitivity, moving, target):
            return nothing(target)

    return Heir


def moved(cls, module, qualname=None):
    cls.__module__ = module
    cls.__qualname__ = qualname or cls.__qualname__
    return cls


def disguised():
    """An object whose class is a built-in one, with a method of its own."""
    made = Laplace()
    made.name = "liar"
    made.calibrate = lambda sensitivity, moving, target: nothing(target)
    return made


LIARS = {
    "plain": lambda: Liar,
    "module": lambda: moved(type("Liar", (Liar,), {}), "dpframe.mechanisms.liar"),
    "vector law's module": lambda: moved(type("Liar", (Liar,), {}), "dpframe.mechanisms.laplace"),
    "name and module": lambda: moved(type("Liar", (Liar,), {}), "dpframe.mechanisms.laplace", "Laplace"),
    "heir of laplace": lambda: subclass(Laplace),
    "heir of gaussian": lambda: moved(subclass(Gaussian), "dpframe.mechanisms.gaussian", "Gaussian"),
    "heir of staircase": lambda: subclass(Staircase),
    "built-in class": lambda: type("Liar", (), {"__new__": lambda cls: disguised()}),
}


@pytest.mark.parametrize("liar", LIARS.values(), ids=LIARS)
@pytest.mark.parametrize("moving", [1, 2])
def test_a_law_without_noise_is_refused_whatever_its_class_says(liar, moving):
    dp.register_mechanism("liar")(liar())
    question = dp.count() if moving == 1 else dp.clip_mean("x", bounds=(0, 5))
    with dp.Session(eps=1) as s, pytest.raises(dp.MechanismError, match="refused"):
        DF.dp.dp_agg(n=question, eps=1, mechanism="liar")
    assert s.spent == 0


@pytest.mark.parametrize("name", ["laplace", "gaussian", "cactus"])
@pytest.mark.parametrize("liar", ["name and module", "built-in class"])
def test_nobody_takes_the_name_of_a_built_in_mechanism(name, liar, monkeypatch):
    monkeypatch.setattr(registry, "_own", {})  # as in a fresh process
    made = LIARS[liar]()
    made.name = name
    with pytest.raises(dp.MechanismError, match=f"wants the name '{name}'"):
        dp.register_mechanism(name)(moved(made, f"dpframe.mechanisms.{name}", name.title()))
    dp.unregister_mechanism(name)
    assert registry.built_in(dp.mechanism(name))


def test_an_honest_heir_is_checked_and_charged_for_each_number_that_moves():
    """It inherits Laplace's name for a theorem about vectors, and may have changed what it is about."""

    @dp.register_mechanism("heir")
    class Heir(Laplace):
        name = "heir"

    with dp.Session(eps=10):
        own, heir = (
            DF.dp.plan.clip_mean("x", bounds=(0, 5), eps=1, mechanism=name).plan.pieces[0].noise
            for name in ("laplace", "heir")
        )
        assert DF.dp.plan.count(eps=1, mechanism="heir").scale == 1
    assert (own.event.kind, own.event.eps) == ("laplace", 1)
    assert heir.law.event.eps == Fraction(1, 2)
    assert (heir.event.eps, heir.event.kind) == (1, "")


def test_an_object_made_by_hand_is_no_built_in_mechanism():
    assert registry.built_in(dp.mechanism("staircase"))
    assert not registry.built_in(Staircase())
    assert not registry.built_in("staircase")
