"""optimal_count, staircase, truncated_laplace, tulap: what they guarantee, what they cost, how they are drawn."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, getcontext
from fractions import Fraction
from functools import lru_cache

import chance
import mpmath
import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.accounting.conversion import pure_rho
from dpframe.accounting.events import Event
from dpframe.mechanisms import certificate
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.laplace import Laplace
from dpframe.mechanisms.staircase import Staircase, _below

FINITE = ("optimal_count", "truncated_laplace", "tulap")
LAWS = ("staircase", *FINITE)
EPS = ("1/20", "1/8", "1/3", "1/2", "1", "3/2", "2", "3", "4", "5", "7", "10", "15", "20")
DELTAS = tuple(Fraction(1, d) for d in (10**12, 10**9, 10**6, 10**4, 1000, 10))
GRID = [(Fraction(e), d, m) for e in EPS for d in DELTAS for m in (1, 8, 64)]
COUNTS = [
    (Fraction(e) * f, d, 1) for e in EPS for d in DELTAS for f in (1, Fraction(9, 10), Fraction(101, 100))
]


@lru_cache(maxsize=512)
def noise(name, eps, delta, m=1):
    return dp.mechanism(name).calibrate(Fraction(m), 1, Target(Fraction(eps), Fraction(delta)))


def mean_abs(name, eps, delta, m=64):
    return noise(name, Fraction(eps), Fraction(delta), m).mean_abs / m


# What they guarantee.


def true_delta(weights, m, eps):
    """sum of max(0, p_i - e**eps p_{i-j}) from the integer weights, the worst over j <= m (the law is even)."""
    right = np.array([float(w) for w in weights])
    p = np.concatenate([right[:0:-1], right])
    p = p / p.sum()
    growth, worst = math.exp(eps), 0.0
    for j in range(1, m + 1):
        padded = np.zeros(len(p))
        padded[j:] = p[: max(0, len(p) - j)]
        worst = max(worst, float(np.maximum(p - growth * padded, 0).sum()))
    return worst


@pytest.mark.parametrize("name", FINITE)
def test_the_weights_keep_the_claim_at_every_shift(name):
    points = COUNTS if name == "optimal_count" else GRID
    assert len(points) >= 200
    for eps, delta, m in points:
        law = noise(name, eps, delta, m)
        assert law.event == Event(eps, delta, pure_rho(eps), None)
        assert true_delta(law.weights, m, float(eps)) <= float(delta) * (1 + 1e-12), (eps, delta, m)


@pytest.mark.parametrize("name", FINITE)
@pytest.mark.parametrize(
    "point", [("1/20", 12, 8), ("1", 6, 8), ("5", 5, 8), ("20", 12, 8), ("20", 18, 1), ("60", 6, 2)]
)
def test_the_claim_in_exact_integers(name, point):
    """No floats: e**eps from below, to 80 digits."""
    eps, digits, m = Fraction(point[0]), point[1], point[2]
    if name == "optimal_count":
        m = 1
    delta = Fraction(1, 10**digits)
    w = noise(name, eps, delta, m).weights
    getcontext().prec = 80
    growth = int((Decimal(eps.numerator) / Decimal(eps.denominator)).exp() * 2**200) - 1
    row = [*w[:0:-1], *w]
    for j in range(1, m + 1):
        excess = sum(max(0, (a << 200) - growth * b) for a, b in zip(row, [0] * j + row))
        assert Fraction(excess, sum(row) << 200) <= delta


@pytest.mark.parametrize("name", FINITE)
def test_delta_is_used_up(name):
    """A law that kept much less than it is charged for would be wasteful; truncation is in whole steps."""
    for eps, delta, m in (
        (1, Fraction(1, 10**6), 64),
        (Fraction(1, 10), Fraction(1, 1000), 8),
        (3, Fraction(1, 10), 64),
    ):
        m = 1 if name == "optimal_count" else m
        used = true_delta(noise(name, Fraction(eps), delta, m).weights, m, eps) / float(delta)
        assert used > (0.9 if name == "truncated_laplace" else 0.999999)


def test_a_staircase_is_pure_at_every_shift():
    for eps, m in itertools.product(
        [Fraction(e) for e in EPS] + [Fraction(30), Fraction(80)], (1, 2, 3, 8, 37, 64)
    ):
        law = noise("staircase", eps, 0, m)
        assert law.event == Event(eps, Fraction(0), pure_rho(eps), kind="pure")
        level = [(abs(k) + m - law.near) // m for k in range(-5 * m, 5 * m + 1)]
        assert max(abs(a - b) for j in range(1, m + 1) for a, b in zip(level, level[j:])) == 1
        assert law.levels >= 1 / eps
        k = np.arange(-5 * m, 5 * m + 1)
        p = law.pmf(k)
        ok = p > 0
        assert np.allclose(
            np.log(p[ok] / law.pmf(0)), -np.array(level)[ok] / float(law.levels), rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize("name", LAWS)
def test_cores_certificate_accepts_them(name):
    for eps, delta, m in itertools.product(("1/2", "1", "5", "20"), DELTAS[::2], (1, 8, 64)):
        m = 1 if name == "optimal_count" else m
        certificate.check(noise(name, Fraction(eps), delta, m), m, name, theorems=False)


def test_a_staircase_serves_rho():
    law = dp.mechanism("staircase").calibrate(Fraction(8), 1, Target(rho=Fraction(1, 10)))
    assert law.event == Event(None, Fraction(0), Fraction(1, 10), kind="pure")
    assert float(pure_rho(1 / law.levels)) == pytest.approx(0.1, rel=1e-12)
    certificate.check(law, 8, "staircase", theorems=False)


# What they cost.


def test_optimal_count_is_its_closed_form():
    for eps, delta, _ in COUNTS[::7]:
        e, d = float(eps), float(delta)
        q = math.exp(-e)
        p0 = (1 - q + 2 * d * q) / (1 + q)
        last = math.ceil(math.log(p0 / d) / e)
        p = [p0 * q**i for i in range(last)]
        p.append((p[-1] - d) / math.expm1(e))
        found = noise("optimal_count", eps, delta).pmf(np.arange(last + 1))
        assert found[:-1] == pytest.approx(p[:-1], rel=1e-6, abs=1e-15)
        assert found[-1] == pytest.approx(p[-1], abs=d * 1e-5)
        assert sum(p) * 2 - p0 == pytest.approx(1)


def test_what_optimal_count_gains_on_laplace():
    laplace = dp.mechanism("laplace").calibrate(Fraction(1), 1, Target(Fraction(1)))
    small, large = (noise("optimal_count", Fraction(1), Fraction(1, d)) for d in (10**6, 100))
    assert laplace.std / small.std - 1 == pytest.approx(7e-5, abs=5e-6)
    assert laplace.mean_abs / large.mean_abs - 1 == pytest.approx(0.06, abs=0.006)


@pytest.mark.parametrize("square", [False, True], ids=["E|X|", "EX2"])
def test_optimal_count_is_the_optimum_of_the_linear_programme(square):
    points = list(itertools.product((0.3, 0.5, 1.0, 2.0, 3.0), (1e-5, 1e-4, 1e-3, 1e-2, 0.1)))
    assert len(points) >= 20
    for eps, delta in points:
        law = noise("optimal_count", Fraction(eps), Fraction(delta))
        found = law.std**2 if square else law.mean_abs
        assert found == pytest.approx(optimum(eps, delta, square), rel=1e-6)


def optimum(eps, delta, square):
    """The least E|X| or E X**2 of any even law on a grid that reaches far enough."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    n = len(noise("optimal_count", Fraction(eps), Fraction(delta)).weights) + 12
    # Variables: p_0..p_n (even law), t_{-n}..t_{n+1} >= p_i - e**eps p_{i-1}; objective in units of p_i.
    rows, cols, values = [], [], []
    for r, i in enumerate(range(-n, n + 2)):
        for k, v in ((abs(i), 1.0), (abs(i - 1), -math.exp(eps))):
            if k <= n:
                rows.append(r), cols.append(k), values.append(v)
        rows.append(r), cols.append(n + 1 + r), values.append(-1.0)
    total = 2 * n + 2
    for r in range(total):
        rows.append(total), cols.append(n + 1 + r), values.append(1 / delta)
    k = np.arange(n + 1, dtype=float)
    cost = np.concatenate([2 * (k * k if square else k), np.zeros(total)])
    once = np.concatenate([[1.0], np.full(n, 2.0), np.zeros(total)])[None, :]
    a = coo_array((values, (rows, cols)), shape=(total + 1, n + 1 + total)).tocsr()
    b = np.zeros(total + 1)
    b[-1] = 1.0
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(cost, a, b, once, [1.0], method="highs", options=options)
    assert found.status == 0
    return found.fun


def test_staircase_has_the_known_least_mean():
    """Delta * e**(eps/2) / (e**eps - 1) on a continuous line; a grid of 64 steps comes within 1 % of it."""
    for eps in (0.1, 0.5, 1.0, 2.0, 5.0):
        known = math.exp(eps / 2) / math.expm1(eps)
        assert mean_abs("staircase", eps, 0) == pytest.approx(known, rel=1e-3 if eps <= 2 else 1e-2)
    assert mean_abs("staircase", 5, 0) == pytest.approx(0.0826, abs=2e-4)
    for m, eps in ((64, 1), (64, 5), (1000, 3)):
        assert noise("staircase", eps, 0, m).near == pytest.approx(m / (1 + math.exp(eps / 2)), abs=1)
    fine = dp.mechanism("staircase").calibrate(Fraction(2**16), 1, Target(Fraction(3)))
    assert fine.mean_abs / 2**16 == pytest.approx(math.exp(1.5) / math.expm1(3), rel=1e-6)


def test_staircase_r_is_the_best_of_all():
    for eps, m in ((Fraction(1, 3), 8), (Fraction(2), 8), (Fraction(6), 37)):
        for loss in ("l1", "rmse"):
            law = Staircase(loss).calibrate(Fraction(m), 1, Target(eps))
            losses = []
            k = np.arange(-400 * m, 400 * m + 1)
            for r in range(1, m + 1):
                p = np.exp(-float(eps) * ((np.abs(k) + m - r) // m))
                losses.append(np.sum(p * np.abs(k) ** (1 if loss == "l1" else 2)) / p.sum())
            assert losses[law.near - 1] == pytest.approx(min(losses), rel=1e-12)
            mine = law.mean_abs if loss == "l1" else law.std**2
            assert mine == pytest.approx(min(losses), rel=1e-9)


@pytest.mark.parametrize("eps", [1.0, 2.0, 5.0])
@pytest.mark.parametrize("loss", ["l1", "rmse"])
def test_staircase_is_the_optimum_of_the_linear_programme(eps, loss):
    """The least E|X| (E X**2) of any even law whose ratios within m steps are at most e**eps."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    m = 8
    n = int(m * 32 / eps)
    rows, cols, values = [], [], []
    pairs = [(a, b) for a in range(n + 1) for b in (abs(a - m), *range(a, min(a + m, n) + 1)) if a != b]
    for r, (a, b) in enumerate(pairs + [(b, a) for a, b in pairs]):
        rows += [r, r]
        cols += [a, b]
        values += [1.0, -math.exp(eps)]
    k = np.arange(n + 1, dtype=float)
    once = np.concatenate([[1.0], np.full(n, 2.0)])[None, :]
    power = 1 if loss == "l1" else 2
    a = coo_array((values, (rows, cols)), shape=(2 * len(pairs), n + 1)).tocsr()
    found = linprog(2 * k**power, a, np.zeros(2 * len(pairs)), once, [1.0], method="highs")
    assert found.status == 0
    law = Staircase(loss).calibrate(Fraction(m), 1, Target(Fraction(eps)))
    mine = law.mean_abs if loss == "l1" else law.std**2
    assert mine == pytest.approx(found.fun, rel=1e-3)


def test_for_counts_a_staircase_is_laplace():
    k = np.arange(-40, 41)
    for eps in (0.3, 1.0, 4.0):
        laplace = dp.mechanism("laplace").calibrate(Fraction(1), 1, Target(Fraction(eps)))
        assert noise("staircase", eps, 0).pmf(k) == pytest.approx(laplace.pmf(k), rel=1e-12)
        assert noise("staircase", eps, 0).std == pytest.approx(laplace.std)


def test_truncated_laplace_has_the_known_mean_and_range():
    for eps, delta in itertools.product((0.1, 0.5, 1.0, 2.0, 5.0), (1e-6, 1e-4, 1e-2, 0.1)):
        lam = 1 / eps
        a = lam * math.log(1 + math.expm1(eps) / (2 * delta))
        s = a / lam
        law = noise("truncated_laplace", Fraction(eps), Fraction(delta), 1024)
        assert law.mean_abs / 1024 == pytest.approx(lam * (1 - s / math.expm1(s)), rel=2e-3)
        assert (len(law.weights) - 1) / 1024 == pytest.approx(a, abs=2e-3)


def test_truncated_laplace_is_cut_at_the_least_distance():
    for eps, delta, m in ((1.0, 1e-5, 8), (0.2, 0.1, 64), (5.0, 0.6, 4), (3.0, 1e-9, 1)):
        w = noise("truncated_laplace", Fraction(eps), Fraction(delta), m).weights
        assert true_delta(w, m, eps) <= delta
        assert len(w) <= m or true_delta(w[:-1], m, eps) > delta * (1 - 1e-6)


def test_tulap_has_the_known_density_and_cut():
    for eps, delta in itertools.product((0.1, 0.5, 1.0, 2.0, 5.0), (1e-6, 1e-4, 1e-2, 0.1)):
        b = math.exp(-eps)
        q = 2 * delta * b / (1 - b + 2 * delta * b)
        x = (np.arange(400_000) + 0.5) * (60 / eps / 400_000)  # continuous density, cut to its central 1-q
        height = (1 - b) / (1 + b) * b ** np.floor(x + 0.5)
        k = np.floor(x + 0.5)
        inside = 2 * b**k * (b + (k + 0.5 - x) * (1 - b)) / (1 + b) >= q
        known = np.sum((x * height)[inside]) / np.sum(height[inside])
        assert mean_abs("tulap", eps, delta) == pytest.approx(known, rel=1e-3)
        assert len(noise("tulap", Fraction(eps), Fraction(delta), 64).weights) / 64 == pytest.approx(
            x[inside][-1], abs=0.03
        )


def test_tulap_of_counts_is_the_optimum():
    k = np.arange(-60, 61)
    for eps, delta in itertools.product((0.3, 1.0, 2.5, 6.0), (1e-6, 1e-3, 0.05, 0.3)):
        mine, best = noise("tulap", eps, delta), noise("optimal_count", eps, delta)
        assert mine.pmf(k) == pytest.approx(best.pmf(k), rel=1e-6, abs=1e-8 * delta)


def test_the_table_of_ratios():
    """E|X| over the best known at (1, 1e-5) and (5, 1e-5)."""
    best = {e: math.exp(e / 2) / math.expm1(e) for e in (1, 5)}
    laws = {
        "staircase": (1.00, 1.00),
        "tulap": (1.01, 3.15),
        "truncated_laplace": (1.04, 2.42),
    }
    for name, ratios in laws.items():
        for eps, ratio in zip((1, 5), ratios):
            assert mean_abs(name, eps, Fraction(1, 10**5)) / best[eps] == pytest.approx(ratio, abs=0.006)


# How they are drawn, and what they say about themselves.

SHAPES = [(n, e, d, m) for n in LAWS for e, d in ((0.3, 1e-4), (2.0, 1e-2), (6.0, 0.1)) for m in (1, 8, 64)]
SHAPES = [(n, Fraction(e), Fraction(d), m) for n, e, d, m in SHAPES if n != "optimal_count" or m == 1]


@pytest.mark.parametrize(("name", "eps", "delta", "m"), SHAPES)
def test_draws_follow_the_pmf(name, eps, delta, m):
    law, n = noise(name, eps, delta, m), 150_000
    draws = law.sample(n)
    assert draws.dtype == np.int64
    assert len(draws) == n
    reach = int(np.abs(draws).max())
    k = np.arange(-reach, reach + 1)
    expected, seen = law.pmf(k) * n, np.bincount(draws + reach, minlength=len(k))
    assert chance.fits(seen, expected)


@pytest.mark.parametrize(("name", "eps", "delta", "m"), SHAPES)
def test_pmf_cdf_and_moments_agree(name, eps, delta, m):
    law = noise(name, eps, delta, m)
    reach = int(40 * m / eps) + 2 * m
    k = np.arange(-reach, reach + 1)
    p = law.pmf(k)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert np.array_equal(p, p[::-1])
    assert law.cdf(k) == pytest.approx(np.cumsum(p), abs=1e-12)
    assert law.cdf(k + 0.5) == pytest.approx(law.cdf(k))
    low = k[: len(k) // 2][p[: len(k) // 2] > 1e-16]
    assert law.cdf(low) == pytest.approx(np.cumsum(p)[: len(k) // 2][p[: len(k) // 2] > 1e-16], rel=1e-4)
    assert law.mean_abs == pytest.approx(np.sum(np.abs(k) * p), rel=1e-9)
    assert law.std == pytest.approx(math.sqrt(np.sum(k * k * p)), rel=1e-9)
    for level in (0.5, 0.9, 0.95, 0.999):
        w = law.interval(level)
        assert p[np.abs(k) <= w].sum() >= level - 1e-12
        assert p[np.abs(k) < w].sum() < level + 1e-12
    assert law.scale > 0
    assert law.prepare(k) is k
    assert hash(law) == hash(dp.mechanism(name).calibrate(Fraction(m), 1, Target(eps, delta)))


def test_uniform_integers_are_uniform():
    """The last, incomplete run of words is drawn again: by a source of few bits, exactly."""
    for n in (2, 3, 127, 65535):
        draws = _below(n, 200_000)
        assert draws.min() >= 0
        cells = np.bincount(draws * min(n, 100) // n, minlength=min(n, 100))
        sizes = np.bincount(np.arange(n) * min(n, 100) // n) * (200_000 / n)
        assert chance.fits(cells, sizes)
    words = iter([2**64 - 1, 2**64 - 1, 5])  # 2**64 - 1 is the one word beyond the last whole run of 3
    with dp.noise.source.replaced(lambda size: next(words).to_bytes(size, "little")):
        assert _below(3, 1).tolist() == [5 % 3]


def test_calibration_is_deterministic():
    for name in LAWS:
        a, b = (
            dp.mechanism(name).calibrate(Fraction(1), 1, Target(Fraction(1), Fraction(1, 1000))) for _ in "ab"
        )
        assert a == b


# Refusals, and use.


@pytest.mark.parametrize("name", FINITE)
def test_targets_that_a_finite_law_cannot_serve(name):
    mech = dp.mechanism(name)
    one = Fraction(1)
    for target, words in (
        (Target(one), "needs a delta. Hint"),
        (Target(rho=one), "no rho guarantee.*Hint"),
        (Target(one, Fraction(1, 10**30)), r"share of delta lies.*Hint"),
        (Target(Fraction(1, 10**7), Fraction(1, 10**6)), "would need a table.*Hint"),
    ):
        with pytest.raises(dp.MechanismError, match=words):
            mech.calibrate(one, 1, target)
    with pytest.raises(dp.MechanismError, match="sensitivity 0"):
        mech.calibrate(Fraction(0), 1, Target(one, Fraction(1, 100)))


def test_other_refusals():
    one = Target(Fraction(1), Fraction(1, 100))
    with pytest.raises(dp.MechanismError, match=r"exactly 1 step.*moves by 2\. Hint"):
        dp.mechanism("optimal_count").calibrate(Fraction(2), 1, one)
    for sensitivity, target, words in (
        (0, one, "sensitivity 0"),
        (1, Target(), "needs eps or rho.*Hint"),
        (2**17, one, "at most 65536 steps.*Hint"),
        (1, Target(Fraction(1, 2**60)), "2\\*\\*60 grid steps"),
    ):
        with pytest.raises(dp.MechanismError, match=words):
            dp.mechanism("staircase").calibrate(Fraction(sensitivity), 1, target)


@pytest.mark.parametrize("name", LAWS)
def test_end_to_end(name):
    df = pl.DataFrame({"x": [1.0, 2.0, 3.0] * 200, "g": ["a", "b", "c"] * 200})
    with dp.Session(eps=20, delta=0.1) as s:
        assert 570 < df.dp.count(eps=1, delta=1e-3, mechanism=name) < 630
        if name != "optimal_count":
            assert 1.5 < df.dp.clip_mean("x", bounds=(0, 10), eps=2, delta=1e-3, mechanism=name) < 2.5
        groups = df.dp.groupby("g", keys=["a", "b", "c"]).count(eps=1, delta=1e-3, mechanism=name)
        assert len(groups) == 3
    charged = s.report()
    assert charged["eps"].sum() == (2 if name == "optimal_count" else 4)


@pytest.mark.parametrize("eps", [Fraction(1, 50), Fraction(1, 3), Fraction(2), Fraction(12)])
@pytest.mark.parametrize("draws", [1, 2, 3, 4, 5, 8])
def test_the_tail_of_a_sum_of_draws_is_that_of_the_convolved_laws(eps, draws):
    """In 40 digits, and never below: thresholds are taken from it."""
    noise = Laplace().calibrate(Fraction(1), 1, Target(eps))
    reach = min(1500, 60 + int(60 / eps))
    with mpmath.workdps(40):
        q = mpmath.exp(-mpmath.mpf(eps.numerator) / eps.denominator)
        half = [mpmath.binomial(i + draws - 1, draws - 1) * (1 - q) ** draws * q**i for i in range(2 * reach)]
        rest = [mpmath.mpf(0)]
        for p in reversed(half):
            rest.append(rest[-1] + p)
        rest.reverse()  # P(one of the two negative binomials >= i)
        for k in (1, 2, 7, reach // 3):
            right = mpmath.fsum(half[m] * rest[m + k] for m in range(reach))
            got = noise.upper_tail(k, draws)
            if right > 1e-200:
                assert (
                    -1e-9 < got / right - 1 < 1e-6 if eps == Fraction(1, 50) else 0 <= got / right - 1 < 3e-12
                )
            mirrored = noise.upper_tail(1 - k, draws)
            assert mirrored == pytest.approx(float(1 - right), abs=1e-6)
