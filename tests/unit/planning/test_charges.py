"""What parts that share a budget cost together: p draws of eps/p each are eps-DP, and eps*tanh(eps/2p)-zCDP."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import polars as pl
import pytest

import dpframe as dp
from dpframe.accounting.conversion import pure_rho

FRAME = pl.DataFrame({f"x{i}": [1.0] for i in range(6)})


def planned(columns, **options):
    asked = {f"v{i}": dp.vector_sum([f"x{i}"], norm=1, ord=1) for i in range(columns)}
    with dp.Session(eps=100, delta=0.01):
        return FRAME.dp.plan.agg(**asked, **options).plan


@pytest.mark.parametrize("eps", [Fraction(1, 10), 1, 3, 20])
@pytest.mark.parametrize("columns", [1, 2, 5])
def test_a_laplace_split_is_charged_for_its_parts(columns, eps):
    plan = planned(columns, eps=eps, mechanism="laplace")
    assert plan.event.eps == eps
    assert plan.rho == pytest.approx(float(eps) * math.tanh(float(eps) / 2 / columns), rel=1e-12)
    assert plan.event.rho == columns * pure_rho(Fraction(eps) / columns)
    leaves = [(e.eps, e.kind) for e, times in plan.event.leaves() for _ in range(times)]
    assert leaves == [(Fraction(eps) / columns, "laplace")] * columns
    assert {p.noise.scale for p in plan.pieces} == {columns * Fraction(plan.parts[0].l1) / Fraction(eps)}


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_rho_is_shared_by_the_parts(columns):
    plan = planned(columns, rho=Fraction(1, 10), mechanism="laplace")
    each = plan.parts[0].l1 / plan.pieces[0].noise.scale  # eps of a part
    assert plan.event.rho == Fraction(1, 10)
    assert columns * pure_rho(each) <= Fraction(1, 10) < columns * pure_rho(each * (1 + Fraction(1, 10**6)))


@pytest.mark.parametrize("accountant", ["pld", "gdp", "zcdp"])
def test_reports_add_up_the_parts(accountant):
    """Eight calls of five parts of eps = .2 are told as forty calls of eps = .2, and far below eight of eps = 1."""
    told = {}
    for columns, eps, calls in ((1, 1, 8), (5, 1, 8), (1, Fraction(1, 5), 40)):
        asked = {f"v{i}": dp.vector_sum([f"x{i}"], norm=1, ord=1) for i in range(columns)}
        with dp.Session(eps=100, delta=1e-2) as s, warnings.catch_warnings():
            warnings.simplefilter("ignore", dp.DPWarning)  # asked again, which is meant
            for _ in range(calls):
                FRAME.dp.agg(**asked, eps=eps, mechanism="laplace")
            told[columns, calls] = s.report(accountant=accountant, delta=1e-3).eps
    assert told[1, 40] <= told[5, 8] <= 1.05 * told[1, 40]  # of one number alone, a PLD knows the law
    assert told[5, 8] < 0.8 * told[1, 8]


def test_noise_with_delta_claims_for_all_parts_at_once():
    plan = planned(3, eps=1, delta=1e-6, mechanism="gaussian")
    assert (plan.event.eps, plan.event.delta, plan.event.kind) == (1, Fraction(1, 10**6), "gaussian")
