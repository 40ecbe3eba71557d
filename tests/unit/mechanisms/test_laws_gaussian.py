"""gaussian_classic and discrete_gaussian: laws in 50-digit arithmetic, guarantees, exact draws.

Statistical checks have a false-alarm rate of at most 1e-9 each.
"""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction

import chance
import mpmath
import numpy as np
import polars as pl
import pytest
from scipy import stats

import dpframe as dp
from dpframe.mechanisms import certificate
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.combine import halfwidth
from dpframe.noise import source, strips
from dpframe.noise.strips import StripSampler

ALARM = chance.ALARM
DF = pl.DataFrame({"x": [1.0, 2.0, 3.0] * 200, "g": ["a", "b", "c"] * 200})

pytestmark = pytest.mark.usefixtures("quiet")


def classic(eps, delta, sensitivity=1):
    target = Target(Fraction(eps), Fraction(delta))
    return dp.mechanism("gaussian_classic").calibrate(Fraction(sensitivity), 1, target)


def discrete(sigma):
    """The law with this sigma (sensitivity 1)."""
    target = Target(rho=1 / (2 * Fraction(sigma) ** 2))
    return dp.mechanism("discrete_gaussian").calibrate(Fraction(1), 1, target)


# ---- gaussian_classic ----


@pytest.mark.parametrize(("sensitivity", "sigma"), [(1, 4.84481), (50, 242.24)])
def test_textbook_sigma(sensitivity, sigma):
    noise = classic(1, "1e-5", sensitivity)
    assert float(noise.scale) == pytest.approx(sigma, rel=1e-5)
    assert noise.std == pytest.approx(sigma, rel=2e-3)


def true_delta(sigma: Fraction, eps: Fraction) -> mpmath.mpf:
    """delta of a Gaussian of ``sigma`` at sensitivity 1, straight from the definition."""
    s, e = mpmath.mpf(sigma.numerator) / sigma.denominator, mpmath.mpf(eps.numerator) / eps.denominator
    a, b = 1 / (2 * s), e * s
    return mpmath.ncdf(a - b) - mpmath.exp(e) * mpmath.ncdf(-a - b)


def test_classic_guarantees_recomputed_at_300_points():
    """Each point is granted with a true delta within the claim, or refused for a true delta above it."""
    mech, granted, refused = dp.mechanism("gaussian_classic"), 0, 0
    epses = ["0.05", "0.1", "0.25", "0.5", "0.75", "1", "2", "4", "8", "8.41", "8.42", "9", "10", "15", "20"]
    with mpmath.workdps(60):
        for eps, digits, sensitivity in itertools.product(
            epses, (1, 3, 5, 8, 12), (1, 7, Fraction(50, 3), 2**20)
        ):
            target = Target(Fraction(eps), Fraction(1, 10**digits))
            unit = mpmath.sqrt(2 * mpmath.log(mpmath.mpf(5) / 4 * 10**digits)) / mpmath.mpf(eps)
            try:
                noise = mech.calibrate(Fraction(sensitivity), 1, target)
            except dp.MechanismError:
                refused += 1
                assert true_delta(Fraction(str(unit)), target.eps) > float(target.delta) * (1 - 1e-9)
                continue
            granted += 1
            got = noise.scale / Fraction(sensitivity)
            assert abs(mpmath.mpf(got.numerator) / got.denominator / unit - 1) < 1e-12
            assert true_delta(got, target.eps) <= mpmath.mpf(1) / 10**digits
            assert noise.event.rho >= 1 / (2 * got**2)
            assert (noise.event.eps, noise.event.delta) == (target.eps, target.delta)
    assert granted + refused == 300
    assert granted >= 200
    assert refused > 20


@pytest.mark.parametrize(("eps", "delta"), [(10, "2.26537e-05"), (20, "0.0015[0-9]*")])
def test_classic_refuses_where_it_under_noises(eps, delta):
    with pytest.raises(dp.MechanismError, match=rf"under-noises.*true delta here is ({delta}).*'gaussian'"):
        classic(eps, "1e-5")
    classic("8.41", "1e-5")
    with pytest.raises(dp.MechanismError, match="under-noises"):
        classic("8.43", "1e-5")


@pytest.mark.parametrize("target", [Target(Fraction(1)), Target(rho=Fraction(1))], ids=["pure", "rho"])
def test_classic_needs_eps_and_delta(target):
    with pytest.raises(dp.MechanismError, match="gaussian"):
        dp.mechanism("gaussian_classic").calibrate(Fraction(1), 1, target)


def test_classic_end_to_end():
    with dp.Session(eps=3, delta=1e-4) as s:
        plan = DF.dp.plan.count(mechanism="gaussian_classic", eps=1, delta=1e-5)
        assert plan.scale == pytest.approx(4.84481, rel=1e-5)
        assert 540 < DF.dp.count(mechanism="gaussian_classic", eps=1, delta=1e-5) < 660
        assert s.report()["eps"].to_list() == [1.0]
        with pytest.raises(dp.MechanismError, match="under-noises"):
            DF.dp.count(mechanism="gaussian_classic", eps=10, delta=1e-5)


# ---- discrete_gaussian: the law ----

SIGMAS = [
    "1/64",
    "1/10",
    "1/2",
    "1",
    "19/10",
    "21/10",
    "39/10",
    "41/10",
    "63",
    "65",
    "1023",
    "1025",
    "100000",
]


def exact(sigma: Fraction, k: int) -> mpmath.mpf:
    s = mpmath.mpf(sigma.numerator) / sigma.denominator
    return mpmath.exp(-((k / s) ** 2) / 2)


def total(sigma: Fraction) -> mpmath.mpf:
    """Z by the faster of the two sums (mpmath's theta function agrees, below)."""
    s = mpmath.mpf(sigma.numerator) / sigma.denominator
    return mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * s**2))) if s < 3 else s * mpmath.sqrt(2 * mpmath.pi)


def points(noise):
    return [0, 1, 2, *sorted({int(z * noise.scale) + 1 for z in (0.3, 1, 2.5, 6, 12, 30)})]


@pytest.mark.parametrize("sigma", SIGMAS)
def test_pmf_is_the_formula(sigma):
    noise = discrete(sigma)
    with mpmath.workdps(50):
        z = total(noise.scale)
        for k in points(noise):
            right = exact(noise.scale, k) / z
            assert float(noise.pmf(k)) == pytest.approx(float(right), rel=2e-12, abs=1e-307)
            assert noise.pmf(k) == noise.pmf(-k)


@pytest.mark.parametrize("sigma", SIGMAS[:-1])
def test_cdf_std_and_mean_abs_are_sums_of_the_pmf(sigma):
    noise = discrete(sigma)
    k = np.arange(int(38 * noise.scale) + 3, dtype=np.float64)
    w = np.exp(-((k / float(noise.scale)) ** 2) / 2).astype(np.longdouble)
    z = w[0] + 2 * w[1:].sum()
    tails = w[::-1].cumsum()[::-1] / z
    for i in points(noise):
        if i < len(tails) and tails[i] > 1e-300:
            assert float(noise.cdf(-i)) == pytest.approx(float(tails[i]), rel=1e-11)
            assert float(noise.cdf(i - 1)) == pytest.approx(1 - float(tails[i]), rel=1e-12)
            assert noise.upper_tail(i) >= float(tails[i])
    assert noise.std == pytest.approx(float(np.sqrt(2 * (k * k * w).sum() / z)), rel=1e-12)
    assert noise.mean_abs == pytest.approx(float(2 * (k * w).sum() / z), rel=1e-12)
    assert float(noise.pmf(np.arange(-40, 41)).sum()) == pytest.approx(1) or noise.std > 4


def test_wide_laws_are_the_gaussians():
    noise = discrete(2**50)
    assert noise.std == pytest.approx(2.0**50, rel=1e-14)
    assert noise.mean_abs == pytest.approx(2.0**50 * math.sqrt(2 / math.pi))
    assert float(noise.cdf(-(2**51))) == pytest.approx(stats.norm.cdf(-2), rel=1e-9)
    assert noise.interval(0.95) == pytest.approx(1.959964 * 2**50, rel=1e-6)


@pytest.mark.parametrize("sigma", ["1/2", "3", "70"])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_intervals_are_least(sigma, level):
    noise = discrete(sigma)
    w = noise.interval(level)
    assert noise.pmf(np.arange(-w, w + 1)).sum() >= level
    assert w == 0 or noise.pmf(np.arange(-w + 1, w)).sum() < level


def test_sums_of_draws_stay_below_the_bound():
    noise = discrete(3)
    p = noise.pmf(np.arange(-200, 201))
    law = p
    for draws in (2, 3, 4):
        law = np.convolve(law, p)
        middle = len(law) // 2
        for k in (-3, 0, 1, 5, 20, 40):
            assert noise.upper_tail(k, draws) >= law[middle + k :].sum() * (1 - 1e-12)


def test_noise_is_a_value():
    noise = discrete(3)
    noise.std, noise.cdf(1)
    assert noise == discrete(3)
    assert hash(noise) == hash(discrete(3))
    assert pickle.loads(pickle.dumps(noise)) == noise


# ---- discrete_gaussian: the guarantee ----


def test_rho_recomputed_at_240_points():
    """D_alpha of the law and its shift, summed here, is at most alpha*rho at every order looked at."""
    mech, looked = dp.mechanism("discrete_gaussian"), 0
    for rho, sensitivity in itertools.product(np.geomspace(0.001, 50, 40), (1, 2, 3, 5, 16, 64)):
        target = Target(rho=Fraction(float(rho)))
        noise = mech.calibrate(Fraction(sensitivity), 1, target)
        assert noise.event.rho >= Fraction(sensitivity) ** 2 / (2 * noise.scale**2)
        assert noise.event.eps is None
        s = float(noise.scale)
        for alpha in (1.01, 1.5, 2.0, 5.0, 20.0):
            reach = int(alpha * sensitivity + 14 * s + 4)
            k = np.arange(-reach, reach + 1, dtype=np.float64)
            z = np.logaddexp.reduce(-(k**2) / (2 * s * s))
            both = -(alpha * (k - sensitivity) ** 2 + (1 - alpha) * k**2) / (2 * s * s)
            divergence = (np.logaddexp.reduce(both) - z) / (alpha - 1)
            assert divergence <= alpha * float(rho) * (1 + 1e-9) + 1e-11
        looked += 1
    assert looked == 240


def test_core_certifies_it():
    for rho, sensitivity in itertools.product((Fraction(1, 50), Fraction(1, 2), Fraction(4)), (1, 8, 64)):
        noise = dp.mechanism("discrete_gaussian").calibrate(Fraction(sensitivity), 1, Target(rho=rho))
        certificate.check(noise, sensitivity, "discrete_gaussian", theorems=False)


@pytest.mark.parametrize(("eps", "excess"), [(3, 1.38), (8, 3.0)])
def test_the_analytic_formula_would_not_calibrate_it(eps, excess):
    """Why targets of eps and delta are refused."""
    target = Target(Fraction(eps), Fraction(1, 10**6))
    sigma = dp.mechanism("gaussian").calibrate(Fraction(1), 1, target).scale
    found = certificate.worst_delta(discrete(sigma), 1, eps).delta
    assert found / 1e-6 == pytest.approx(excess, rel=0.02)
    with pytest.raises(dp.MechanismError, match=r"rho=0\.05"):
        dp.mechanism("discrete_gaussian").calibrate(Fraction(1), 1, target)


def test_sensitivity_zero_is_refused():
    for name, target in (
        ("discrete_gaussian", Target(rho=Fraction(1))),
        ("gaussian_classic", Target(Fraction(1), Fraction(1, 10**6))),
    ):
        with pytest.raises(dp.MechanismError, match="sensitivity 0"):
            dp.mechanism(name).calibrate(Fraction(0), 1, target)


# ---- discrete_gaussian: the sampler ----


@pytest.mark.parametrize(
    "sigma", ["1/64", "1/10", "1/2", "1", "3", "15", "16", "100/3", "1000", "10000000", str(2**55 - 64)]
)
def test_draws_follow_the_exact_law(sigma):
    noise, n = discrete(sigma), 300_000
    draws = noise.sample(n)
    assert draws.dtype == np.int64
    s = float(noise.scale)
    edges = {int(x) for x in np.floor(stats.norm.ppf(np.arange(1, 60) / 60) * s)}
    edges = np.array(sorted(edges | ({-2, -1, 0, 1} if s < 50 else set())))
    p = np.diff(np.concatenate([[0.0], noise.cdf(edges), [1.0]]))
    seen = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=len(p))
    assert not seen[p == 0].any()
    assert chance.fits(seen, p * n)
    positive, other = int((draws > 0).sum()), int((draws != 0).sum())
    if other:
        assert stats.binomtest(positive, other, 0.5).pvalue > ALARM
        zero = float(noise.pmf(0))
        assert stats.binomtest(n - other, n, zero).pvalue > ALARM
    if s >= 1000:
        assert chance.fits(np.bincount(draws & 15, minlength=16), [n / 16] * 16)


@pytest.mark.parametrize("sigma", ["1/2", "15", "16", "1000/7", "10000000000000", str(2**55)])
def test_attempts_agree_with_exact_arithmetic(sigma, monkeypatch):
    """Integer and acceptance of every attempt, recomputed in fractions and mpmath from the words."""
    sigma, n = Fraction(sigma), 3_000
    s = StripSampler("lattice", sigma)
    w = np.random.default_rng(11).integers(0, 2**64, size=3 * n, dtype=np.uint64)
    e = 0
    while Fraction(2) ** (e + 1) <= sigma / 8 and e < 51:
        e += 1
    expected = []
    strip = s._strips(w[:n])
    with mpmath.workdps(50):
        weights = [exact(sigma, v << e) for v in range(int(40 * sigma / 2**e) + 2)]
        sums = list(itertools.accumulate(weights, initial=mpmath.mpf(0)))
        for i in range(n):
            v = int(strip[i])
            u = mpmath.mpf(int(w[i])) / 2**64
            assert sums[v] / sums[-1] - 2.0**-60 <= u <= sums[v + 1] / sums[-1] + 2.0**-60
            word = int(w[n + i])
            y = (v << e) + ((word & (2**52 - 1)) >> (52 - e))
            if mpmath.mpf(int(w[2 * n + i])) / 2**64 < exact(sigma, y) / exact(sigma, v << e):
                minus = word >> 63
                if y or not minus:
                    expected.append(-y if minus else y)
    with source.replaced(lambda size: w.tobytes() if size == 24 * n else bytes(size)):
        assert s._attempts(n).tolist() == expected
        monkeypatch.setattr(strips, "_BAND", 2.0)  # every acceptance in decimal arithmetic
        assert s._attempts(n).tolist() == expected


@pytest.mark.parametrize("side", [-1, 1], ids=["below", "above"])
def test_acceptance_is_decided_right_at_any_depth(side):
    """U' agrees with exp(-z) to 150 binary places; the place is an integer and draws nothing further."""
    sigma, places = Fraction(1000, 7), 320  # strips of 16
    s = StripSampler("lattice", sigma)
    with mpmath.workdps(150):
        for strip, at in ((0, 7), (5, 1), (11, 15)):
            a = exact(sigma, strip * 16 + at) / exact(sigma, strip * 16)
            u = int(mpmath.floor((a + side * mpmath.mpf(2) ** -150) * mpmath.mpf(2) ** places))
            digits = [(u >> (places - 64 * (i + 1))) & (2**64 - 1) for i in range(places // 64)]
            left = [*digits[1:], *[0] * 8]
            with source.replaced(lambda n, left=left: left.pop(0).to_bytes(n, "little")):
                assert s._accept_exactly(strip, at << 48, digits[0]) is (side < 0)
            assert len(left) >= 8


def test_the_left_edge_of_a_strip_is_always_kept():
    s = StripSampler("lattice", Fraction(100))
    assert s._accept_exactly(3, 0, 2**64 - 1)
    top = np.array([2**64 - 1], dtype=np.uint64)
    assert s._accepted(np.array([3]), np.array([0], dtype=np.uint64), top).all()


@pytest.mark.parametrize("word", [2**64 - 1, 2**64 - 2, 2**64 - 3, 0])
def test_narrow_laws_decide_extreme_words_exactly(word):
    """At sigma = 1/4 strip 1 begins at 1/(1 + exp(-8) + ...); the table has few entries."""
    s, sigma = StripSampler("lattice", Fraction(1, 4)), Fraction(1, 4)
    with mpmath.workdps(80):
        weights = [exact(sigma, v) for v in range(12)]
        sums = [c / sum(weights) for c in itertools.accumulate(weights, initial=mpmath.mpf(0))]
        u = (mpmath.mpf(word) + 0.5) / 2**64
        right = sum(c <= u for c in sums) - 1
    with source.replaced(lambda n: (2**63).to_bytes(8, "little") * (n // 8)):
        assert s._strips(np.array([word], dtype=np.uint64)).tolist() == [right]


# ---- end to end ----


def test_discrete_gaussian_end_to_end():
    with dp.Session(rho=5) as s:
        plan = DF.dp.plan.count(mechanism="discrete_gaussian", rho=0.02)
        assert plan.scale == pytest.approx(5)
        answer = DF.dp.count(mechanism="discrete_gaussian", rho=0.02)
        assert 560 <= answer <= 640
        assert int(answer) == answer
        table = DF.dp.groupby("g", keys=["a", "b", "c"]).clip_mean(
            "x", bounds=(0, 4), mechanism="discrete_gaussian", rho=0.5
        )
        assert len(table) == 3
        with pytest.raises(dp.MechanismError, match="rho"):
            DF.dp.count(mechanism="discrete_gaussian", eps=1, delta=1e-6)
    assert s.report()["rho"].sum() == pytest.approx(0.52)


def test_the_interval_of_a_count_covers():
    """1000 counts in one call; as many are covered as a binomial of 95 % leaves, but for 1e-10."""
    df = pl.DataFrame({"g": np.arange(1000)})
    with dp.Session(rho=1):
        table = df.dp.groupby("g", keys=range(1000)).count(mechanism="discrete_gaussian", rho=0.005)
    w = halfwidth(((discrete(10), 1.0),), 0.95)
    inside = int((np.abs(table["count"].to_numpy() - 1) <= w).sum())
    assert inside >= chance.least_hits(1000, 0.95)
