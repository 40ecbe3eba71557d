"""The registry of mechanisms: built-in names, decorated classes, plug-ins, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace

import polars as pl
import pytest

import dpframe as dp
from dpframe.mechanisms import registry

pytestmark = pytest.mark.usefixtures("quiet")


# ---- the registry ----


class Toy:
    name = "toy"
    norm = "L1"

    def calibrate(self, sensitivity, moving, target):
        return dp.mechanism("laplace").calibrate(2 * sensitivity, moving, target)


@pytest.fixture
def own_registry(monkeypatch):
    """A copy of the registry that is thrown away after the test."""
    dp.mechanism("laplace"), dp.mechanism("gaussian")
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))


def test_built_in_mechanisms_have_names():
    assert {"laplace", "gaussian"} <= set(dp.mechanisms())
    assert dp.mechanisms() == sorted(dp.mechanisms())
    assert (dp.mechanism("laplace").norm, dp.mechanism("gaussian").norm) == ("L1", "L2")


@pytest.mark.usefixtures("own_registry")
def test_a_decorated_class_serves_every_verb():
    dp.register_mechanism("toy")(Toy)
    assert "toy" in dp.mechanisms()
    df = pl.DataFrame({"x": [1, 2]})
    with dp.Session(eps=3):
        plan = df.dp.plan.count(eps=1, mechanism="toy")
        assert plan.mechanism == "toy"
        assert plan.scale == 2
        df.dp.groupby("x", keys=[1, 2]).clip_sum("x", bounds=(0, 5), eps=1, mechanism="toy")
    dp.unregister_mechanism("toy")
    assert "toy" not in dp.mechanisms()


@pytest.mark.usefixtures("own_registry")
def test_a_taken_name_is_refused():
    dp.register_mechanism("toy")(Toy)
    dp.register_mechanism("toy")(Toy)  # the same class again: a re-run notebook cell

    class Other(Toy):
        pass

    with pytest.raises(dp.MechanismError, match="toy"):
        dp.register_mechanism("toy")(Other)
    with pytest.raises(dp.MechanismError, match="laplace"):
        dp.register_mechanism("laplace")(Other)


@pytest.mark.usefixtures("own_registry")
def test_a_class_of_the_same_name_from_elsewhere_does_not_replace_a_mechanism():
    before = dp.mechanism("laplace")
    namesake = type("Laplace", (Toy,), {"__module__": "plugin", "__qualname__": "Laplace"})
    with pytest.raises(dp.MechanismError, match="laplace"):
        dp.register_mechanism("laplace")(namesake)
    assert dp.mechanism("laplace") is before


def test_a_built_in_name_is_taken_before_it_is_loaded(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})  # as in a fresh process
    with pytest.raises(dp.MechanismError, match="gaussian"):
        dp.register_mechanism("gaussian")(Toy)


@pytest.mark.usefixtures("own_registry")
def test_a_forgotten_built_in_comes_back():
    dp.unregister_mechanism("laplace")
    assert dp.mechanism("laplace").norm == "L1"


@pytest.mark.usefixtures("own_registry")
@pytest.mark.parametrize("missing", ["name", "norm", "calibrate"])
def test_missing_parts_of_the_protocol_are_named(missing):
    parts = {"name": "half", "norm": "L1", "calibrate": Toy.calibrate}
    del parts[missing]
    with pytest.raises(dp.MechanismError, match=f"lacks: {missing}"):
        dp.register_mechanism("half")(type("Half", (), parts))
    assert "half" not in dp.mechanisms()


@pytest.mark.usefixtures("own_registry")
def test_an_unknown_norm_is_refused():
    with pytest.raises(dp.MechanismError, match="Linf"):
        dp.register_mechanism("odd")(type("Odd", (Toy,), {"name": "odd", "norm": "Linf"}))


def test_an_unknown_mechanism_names_the_near_ones():
    with pytest.raises(dp.MechanismError, match=r"'lapalce'.*'laplace'"):
        dp.mechanism("lapalce")
    with dp.Session(eps=1) as s, pytest.raises(dp.MechanismError, match="gaussian"):
        pl.DataFrame({"x": [1]}).dp.count(eps=1, mechanism="gausian")
    assert s.spent == 0


@pytest.mark.usefixtures("own_registry")
def test_what_calibrate_returns_must_be_a_noise():
    dp.register_mechanism("wrong")(type("Wrong", (Toy,), {"name": "wrong", "calibrate": lambda *a: 3}))
    with dp.Session(eps=1) as s, pytest.raises(dp.MechanismError, match="not a Noise"):
        pl.DataFrame({"x": [1]}).dp.count(eps=1, mechanism="wrong")
    assert s.spent == 0


def plug_in(name, load, value="pkg:thing"):
    return SimpleNamespace(name=name, value=value, load=load, dist=None)


@pytest.fixture
def plug_ins(monkeypatch, own_registry):
    found: list[SimpleNamespace] = []
    monkeypatch.setattr(registry, "entry_points", lambda *, group: found if group == registry.GROUP else [])
    return found


def test_plug_ins_load_when_first_asked_for(plug_ins):
    loads = []
    plug_ins.append(plug_in("toy", lambda: loads.append(1) or Toy))
    assert "toy" in dp.mechanisms()
    assert not loads
    with dp.Session(eps=1):
        assert pl.DataFrame({"x": [1]}).dp.plan.count(eps=1, mechanism="toy").scale == 2
    dp.mechanism("toy")
    assert loads == [1]


def test_plug_ins_may_be_instances_or_register_themselves(plug_ins):
    made, deco = (type(name, (Toy,), {"name": name}) for name in ("made", "deco"))
    plug_ins.append(plug_in("made", lambda: made()))
    plug_ins.append(plug_in("deco", lambda: dp.register_mechanism("deco")(deco)))
    assert isinstance(dp.mechanism("made"), made)
    assert isinstance(dp.mechanism("deco"), deco)


def test_a_plug_in_that_calls_itself_otherwise_is_named(plug_ins):
    plug_ins.append(plug_in("quiet", lambda: Toy))
    with pytest.raises(dp.MechanismError, match=r"pkg:thing.*'quiet' calls itself 'toy'"):
        dp.mechanism("quiet")


def test_a_plug_in_that_fails_to_load_is_named(plug_ins):
    def load():
        raise ImportError("no module named numba")

    plug_ins.append(plug_in("broken", load, "fast_noise:Law"))
    with pytest.raises(dp.MechanismError, match=r"fast_noise:Law.*broken.*numba"):
        dp.mechanism("broken")


def test_a_plug_in_without_the_protocol_is_named(plug_ins):
    plug_ins.append(plug_in("poor", lambda: type("Poor", (), {"name": "poor", "norm": "L1"})))
    with pytest.raises(dp.MechanismError, match=r"pkg:thing.*poor.*calibrate"):
        dp.mechanism("poor")


def test_two_plug_ins_of_one_name_are_refused(plug_ins):
    plug_ins.extend([plug_in("toy", lambda: Toy, "a:Toy"), plug_in("toy", lambda: Toy, "b:Toy")])
    with pytest.raises(dp.MechanismError, match=r"a:Toy.*b:Toy"):
        dp.mechanism("toy")


def test_a_plug_in_can_not_replace_a_built_in(plug_ins):
    plug_ins.append(plug_in("laplace", lambda: Toy))
    assert not isinstance(dp.mechanism("laplace"), Toy)
