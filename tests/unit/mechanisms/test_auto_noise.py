"""``mechanism="auto"`` between Laplace and Gaussian noise."""

from __future__ import annotations

import itertools
import math

import polars as pl
import pytest

import dpframe as dp

pytestmark = pytest.mark.usefixtures("quiet")


# ---- mechanism="auto" ----

WIDE = pl.DataFrame({"g": ["a"], **{f"x{i}": [1.0] for i in range(12)}})


def chosen(blocks: int, grouped: bool = True, **target) -> str:
    """Of parts that share no draw (sums of vectors of one component)."""
    asked = {f"m{i}_": dp.vector_sum([f"x{i}"], norm=10, ord=1) for i in range(blocks)}
    with dp.Session(eps=100, delta=0.5):
        frame = WIDE.dp.plan.groupby("g", keys=["a", "b"]) if grouped else WIDE.dp.plan
        plan = frame.dp_agg(**asked, **target)
    names = {plan.mechanism} if isinstance(plan.mechanism, str) else set(plan.mechanism.values())
    assert len(names) == 1
    return names.pop()


@pytest.mark.parametrize("grouped", [True, False])
def test_auto_takes_laplace_up_to_8_blocks_and_gaussian_well_above(grouped):
    """At (1, 1e-6) k* = 8.9; at 9 blocks Gaussian gains .4 %, less than the 2 % that a delta must earn."""
    found = {k: chosen(k, grouped, eps=1, delta=1e-6) for k in (2, 7, 8, 9, 10, 12)}
    assert {k for k, name in found.items() if name == "laplace"} == {2, 7, 8, 9}


def test_auto_without_delta_is_always_laplace():
    assert {chosen(k, eps=1) for k in (2, 12)} == {"laplace"}


@pytest.mark.parametrize(
    ("eps", "name"),
    [
        (0.1, "gaussian"),
        (0.5, "gaussian"),
        (1.0, "discrete_gaussian"),  # sigma is near a step: rounding the Gaussian costs 1/12 of variance
        (1.5, "discrete_gaussian"),
        (3.0, "laplace"),
        (5.0, "laplace"),
    ],
)
def test_auto_at_a_rho_takes_a_gaussian_law_up_to_eps_about_2(eps, name):
    """A count at rho = eps tanh(eps/2): equal rho."""
    with dp.Session(eps=100, delta=0.5):
        plan = WIDE.dp.plan.count(rho=eps * math.tanh(eps / 2))
    assert plan.mechanism == name


def test_auto_charges_no_delta_when_it_takes_laplace():
    with dp.Session(eps=10, delta=1e-5):
        plan = WIDE.dp.plan.count(eps=1, delta=1e-6)
    assert (plan.mechanism, plan.delta) == ("laplace", 0)


def test_blocks_share_the_budget_by_their_norm():
    """p blocks cost L1 = p (noise of each x p) with Laplace, L2 = sqrt(p) with Gaussian."""
    scale = {}
    for p, name in itertools.product((1, 4), ("laplace", "gaussian")):
        asked = {f"m{i}": dp.clip_mean(f"x{i}", bounds=(0, 10)) for i in range(p)}
        with dp.Session(eps=10, delta=0.5):
            plan = WIDE.dp.plan.dp_agg(**asked, eps=1, delta=1e-6, mechanism=name)
        one = plan.scale if p == 1 else plan.scale["m0"]
        scale[p, name] = one
    assert math.isclose(scale[4, "laplace"], 4 * scale[1, "laplace"], rel_tol=1e-12)
    assert math.isclose(scale[4, "gaussian"], 2 * scale[1, "gaussian"], rel_tol=1e-9)
    assert math.isclose(scale[1, "laplace"], 1, rel_tol=1e-12)
    assert math.isclose(scale[1, "gaussian"], 4.22468, rel_tol=1e-5)
