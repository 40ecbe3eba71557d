"""The numerically optimal law: certified as it is, never worse than the laws with a formula, cached."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from sizes import AUDIT

import dpframe as dp
from dpframe.mechanisms import certificate
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.cactus import Cactus
from dpframe.mechanisms.staircase import Staircase
from dpframe.testing.mechanisms import check_mechanism

EPS = ("0.1", "0.5", "1", "2", "5", "10")
DELTA = ("1e-6", "1e-4", "1e-2", "0.1")
RIVALS = ("optimal_count", "tulap", "truncated_laplace")


def target(eps, delta):
    return Target(Fraction(eps), Fraction(delta))


def error(noise, loss):
    return noise.mean_abs if loss == "l1" else noise.std


def best_rival(steps, t, loss):
    mechanisms = [
        Staircase(loss),
        *(dp.mechanism(name) for name in RIVALS if steps == 1 or name != RIVALS[0]),
    ]
    return min(error(m.calibrate(Fraction(steps), 1, t), loss) for m in mechanisms)


@pytest.mark.parametrize("loss", ["l1", "rmse"])
@pytest.mark.parametrize("steps", [1, 3, 8])
def test_it_is_certified_and_never_worse_than_the_laws_with_a_formula(steps, loss):
    for eps, delta in itertools.product(EPS, DELTA):
        t = target(eps, delta)
        noise = Cactus(loss).calibrate(Fraction(steps), 1, t)
        certificate.check(noise, steps, "cactus")
        assert certificate.worst_delta(noise, steps, float(t.eps)).delta <= float(t.delta)
        assert error(noise, loss) <= best_rival(steps, t, loss) * (1 + 2e-4), (eps, delta)


@pytest.mark.parametrize(("eps", "delta"), [("1", "1e-6"), ("1", "0.1"), ("5", "1e-3"), ("10", "1e-6")])
def test_so_it_is_on_the_grid_of_sums(eps, delta):
    t = target(eps, delta)
    for loss in ("l1", "rmse"):
        noise = Cactus(loss).calibrate(Fraction(64), 1, t)
        certificate.check(noise, 64, "cactus")
        assert error(noise, loss) <= best_rival(64, t, loss) * (1 + 2e-4)


def test_a_large_delta_is_worth_a_tenth_of_the_error():
    t = target("5", "0.1")
    ours = Cactus().calibrate(Fraction(8), 1, t).mean_abs
    assert ours == pytest.approx(0.9 * best_rival(8, t, "l1"), rel=1e-3)


def every_law(steps, eps, delta, power):
    """The least E|X|**power over all symmetric laws (falling or not), every shift bounded."""
    from scipy.optimize import linprog

    n = int(np.ceil(steps / eps * np.log1p(np.expm1(eps) / (2 * delta)))) + 2 * steps
    k = np.arange(-n, n + 1)
    folds = np.zeros((len(k), n + 1))
    folds[np.arange(len(k)), np.abs(k)] = 1
    total = n + 1 + steps * (len(k))
    a, b = [], []
    for j in range(1, steps + 1):
        shifted = np.zeros_like(folds)
        shifted[j:] = folds[:-j]
        block = np.zeros((len(k), total))
        block[:, : n + 1] = folds - np.exp(eps) * shifted
        at = n + 1 + (j - 1) * len(k)
        block[:, at : at + len(k)] = -np.eye(len(k))
        a.append(block)
        b.append(np.zeros(len(k)))
        limit = np.zeros((1, total))
        limit[0, at : at + len(k)] = 1 / delta
        a.append(limit)
        b.append(np.ones(1))
    mass = np.zeros((1, total))
    mass[0, : n + 1] = folds.sum(axis=0)
    cost = np.zeros(total)
    cost[: n + 1] = folds.sum(axis=0) * np.arange(n + 1.0) ** power
    found = linprog(
        cost, A_ub=np.concatenate(a), b_ub=np.concatenate(b), A_eq=mass, b_eq=[1.0], method="highs"
    )
    assert found.status == 0
    return found.fun


@pytest.mark.parametrize(("steps", "eps", "delta"), [(2, 1, 0.1), (3, 2, 0.01), (4, 1, 0.05), (5, 5, 0.1)])
def test_laws_that_do_not_fall_gain_about_a_percent_at_most(steps, eps, delta):
    t = target(str(eps), str(delta))
    for loss, power in (("l1", 1), ("rmse", 2)):
        least = every_law(steps, eps, delta, power) ** (1 / power)
        ours = error(Cactus(loss).calibrate(Fraction(steps), 1, t), loss)
        assert least * (1 - 1e-5) <= ours <= least * 1.011


def test_it_passes_every_check_of_an_author():
    checked = check_mechanism(Cactus, draws=20_000)
    assert checked.points >= 100


@pytest.mark.parametrize(
    ("t", "says"),
    [
        (target("0.09", "1e-6"), "eps from 0.1 to 10"),
        (target("10.1", "1e-6"), "eps from 0.1 to 10"),
        (target("1", "9e-7"), "delta from 1e-6 to 0.1"),
        (target("1", "0.11"), "delta from 1e-6 to 0.1"),
        (target("1", "0"), "needs a delta"),
        (Target(rho=Fraction(1, 2)), "no rho guarantee"),
    ],
)
def test_outside_its_range_it_refuses_with_a_hint(t, says):
    with pytest.raises(dp.MechanismError, match=rf"{says}.*Hint: "):
        Cactus().calibrate(Fraction(1), 1, t)


def test_too_many_steps_and_sensitivity_zero_are_refused():
    with pytest.raises(dp.MechanismError, match=r"at most 64 steps.*Hint: "):
        Cactus().calibrate(Fraction(65), 1, target("1", "1e-6"))
    with pytest.raises(dp.MechanismError, match="sensitivity 0"):
        Cactus().calibrate(Fraction(0), 1, target("1", "1e-6"))


def test_floats_at_the_ends_of_the_range_are_inside():
    for eps, delta in itertools.product((0.1, 10.0), (1e-6, 0.1)):
        noise = Cactus().calibrate(Fraction(1), 1, Target(Fraction(eps), Fraction(delta)))
        certificate.check(noise, 1, "cactus")


def test_a_slow_corner_is_certified_and_then_remembered():
    """In full (DPFRAME_AUDIT=1) the slowest."""
    t, s = target("0.1", "1e-6"), 64 if AUDIT else 16
    noise = Cactus().calibrate(Fraction(s), 1, t)
    certificate.check(noise, s, "cactus")
    assert Cactus().calibrate(Fraction(s), 1, t) is noise


def test_it_answers_counts_and_means():
    df = pl.DataFrame({"x": [1.0, 2.0, 3.0] * 200})
    with dp.Session(eps=4, delta=1e-3) as s:
        assert 500 < df.dp.count(eps=1, delta=1e-6, mechanism="cactus") < 700
        assert 1 < df.dp.clip_mean("x", bounds=(0, 10), eps=2, delta=1e-5, mechanism="cactus") < 3
    assert s.report()["eps"].sum() == 3
