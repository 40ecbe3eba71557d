"""Laws and calibration.

Guarantees are recomputed from the laws, with mpmath where floats could hide an excess.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import polars as pl
import pytest
from calibrated import gaussian, laplace
from scipy.special import logsumexp

import dpframe as dp
from dpframe.accounting.conversion import analytic_delta, eps_of_pure_rho, pure_rho
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.gaussian import analytic_sigma

pytestmark = pytest.mark.usefixtures("quiet")


def by_rho(name, rho, sensitivity=1):
    return dp.mechanism(name).calibrate(Fraction(sensitivity), 1, Target(rho=Fraction(rho)))


LAWS = {
    "laplace eps=.1": lambda: laplace("0.1"),
    "laplace eps=1": lambda: laplace(1),
    "laplace eps=3": lambda: laplace(3),
    "laplace eps=40": lambda: laplace(40),
    "laplace eps=1e6": lambda: laplace(10**6),
    "laplace 7 steps": lambda: laplace("0.5", 7),
    "gaussian (1,1e-6)": lambda: gaussian(1, "1e-6"),
    "gaussian (5,1e-6)": lambda: gaussian(5, "1e-6"),
    "gaussian (30,1e-3)": lambda: gaussian(30, "1e-3"),
    "gaussian (1e6,1e-6)": lambda: gaussian(10**6, "1e-6"),
    "gaussian 9 steps": lambda: gaussian("0.5", "1e-5", 9),
    "gaussian rho=.01": lambda: by_rho("gaussian", "0.01", 40),
    "laplace rho=.01": lambda: by_rho("laplace", "0.01"),
}


@pytest.fixture(params=LAWS, ids=list(LAWS))
def law(request):
    return LAWS[request.param]()


def window(noise):
    return np.arange(-int(45 * noise.std + 60), int(45 * noise.std + 60) + 1)


# ---- laws ----


def test_pmf_adds_up_to_one(law):
    assert math.isclose(math.fsum(law.pmf(window(law))), 1, rel_tol=1e-12)


def test_cdf_is_the_running_sum_of_the_pmf(law):
    k = window(law)
    p, f = law.pmf(k), law.cdf(k)
    assert np.allclose(np.cumsum(p), f, rtol=0, atol=1e-12)
    low = k < 0  # in the lower tail to full relative precision
    sums = np.cumsum(p)[low] + law.cdf(k[0] - 1)
    assert np.allclose(sums[sums > 1e-250], f[low][sums > 1e-250], rtol=1e-9, atol=0)


def test_the_law_is_symmetric(law):
    k = window(law)
    assert np.array_equal(law.pmf(k), law.pmf(-k))
    assert np.allclose(law.cdf(k), 1 - law.cdf(-k - 1), rtol=0, atol=1e-15)


def test_std_and_mean_abs_are_moments_of_the_pmf(law):
    k, p = window(law), law.pmf(window(law))
    assert math.isclose(law.std, math.sqrt(math.fsum(k**2 * p)), rel_tol=1e-9, abs_tol=1e-12)
    assert math.isclose(law.mean_abs, math.fsum(np.abs(k) * p), rel_tol=1e-6, abs_tol=1e-12)


def test_moments_of_wide_laws_are_the_continuous_ones():
    wide = laplace("0.001", 10**9)
    assert math.isclose(wide.std, math.sqrt(2) * 1e12, rel_tol=1e-12)
    assert math.isclose(wide.mean_abs, 1e12, rel_tol=1e-12)
    wide = gaussian("1", "1e-6", 10**9)
    assert math.isclose(wide.std, float(wide.scale), rel_tol=1e-12)
    assert math.isclose(wide.mean_abs, float(wide.scale) * math.sqrt(2 / math.pi), rel_tol=1e-12)


def test_pmf_equals_the_formula_in_exact_arithmetic():
    with mpmath.workdps(50):
        q = mpmath.exp(-mpmath.mpf(1) / 3)
        noise = laplace(Fraction(1, 3))
        for k in (0, 1, 5, 40, 200):
            assert math.isclose(noise.pmf(k), (1 - q) / (1 + q) * q**k, rel_tol=1e-13)
        noise = gaussian(1, "1e-6")
        s = mpmath.mpf(noise.scale.numerator) / noise.scale.denominator
        for k in (0, 1, 5, 20, 60):
            right = mpmath.ncdf((-k + mpmath.mpf(1) / 2) / s) - mpmath.ncdf((-k - mpmath.mpf(1) / 2) / s)
            assert math.isclose(noise.pmf(k), right, rel_tol=1e-11)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.99, 0.9999])
def test_interval_is_the_least_that_reaches_the_level(law, level):
    w = law.interval(level)
    k = np.arange(-w, w + 1)
    within = math.fsum(law.pmf(k))
    assert within >= level - 1e-12
    assert w == 0 or within - law.pmf(w) * 2 < level


@pytest.mark.parametrize(
    ("eps", "width", "coverage"),
    [("0.1", 30, None), ("0.5", 6, None), ("1", 3, 0.973), ("3", 1, 0.995)],
)
def test_discrete_laplace_95_percent_intervals(eps, width, coverage):
    noise = laplace(eps)
    assert noise.interval(0.95) == width
    true = 1 - 2 * float(noise.cdf(-width - 1))
    with mpmath.workdps(30):
        q = mpmath.exp(-mpmath.mpf(str(eps)))
        assert math.isclose(true, 1 - 2 * q ** (width + 1) / (1 + q), rel_tol=1e-12)
    if coverage:
        assert round(true, 3) == coverage


@pytest.mark.parametrize(
    ("eps", "sd"), [("0.1", 14.136244785), ("0.5", 2.799177768), ("1", 1.356962486), ("3", 0.332087354)]
)
def test_standard_deviation_of_counts(eps, sd):
    assert math.isclose(laplace(eps).std, sd, rel_tol=1e-8)


# ---- guarantees ----

RNG = np.random.default_rng(20261129)
POINTS = [
    (
        Fraction(f"{10 ** RNG.uniform(-6, 6):.6g}"),
        Fraction(f"{10 ** RNG.uniform(-15, -0.35):.6g}"),
        Fraction(int(10 ** RNG.uniform(0, 8))),
    )
    for _ in range(1_000)
] + [
    (Fraction(e), Fraction(d), Fraction(s))
    for e in ("1e-6", "0.1", "1", "8.42", "20", "1000", "1e6")
    for d in ("1e-300", "1e-15", "1e-9", "1e-5", "0.01", "0.4", "0.999")
    for s in (1, 3, 2**20)
]


def test_laplace_never_claims_more_than_it_gives():
    """The loss of a shift by Delta1 in L1 is at most Delta1/b: compared as rationals, no rounding."""
    for eps, delta, sensitivity in POINTS:
        noise = laplace(eps, sensitivity, delta=delta)
        assert sensitivity / noise.scale <= eps
        assert noise.scale in (sensitivity / eps, Fraction(1, 64))
        assert (noise.event.eps, noise.event.delta) == (eps, 0)


def test_rho_of_a_pure_guarantee_is_rounded_up():
    with mpmath.workdps(60):
        for eps, _, _ in POINTS:
            e = mpmath.mpf(eps.numerator) / eps.denominator
            exact = e * mpmath.tanh(e / 2)
            rho = pure_rho(eps)
            given = mpmath.mpf(rho.numerator) / rho.denominator
            assert exact <= given <= exact * (1 + mpmath.mpf(2) ** -46) + mpmath.mpf(2) ** -79
    assert round(float(pure_rho(Fraction(1))), 4) == 0.4621


def test_gaussian_delta_recomputed_to_sixty_digits():
    """Balle and Wang's delta at the sigma drawn, for any vector of that L2 sensitivity: 1,147 points."""
    excess = []
    with mpmath.workdps(60):
        for eps, delta, sensitivity in POINTS:
            noise = gaussian(eps, delta, sensitivity)
            e = mpmath.mpf(eps.numerator) / eps.denominator
            s = mpmath.mpf((noise.scale / sensitivity).numerator) / (noise.scale / sensitivity).denominator
            a, b = 1 / (2 * s), e * s
            true = mpmath.ncdf(a - b) - mpmath.exp(e) * mpmath.ncdf(-a - b)
            claim = mpmath.mpf(delta.numerator) / delta.denominator
            if true > claim:
                excess.append((float(eps), float(delta), float(true / claim - 1)))
            assert noise.event.delta == delta
            assert noise.event.eps == eps
            rho = noise.event.rho
            assert mpmath.mpf(rho.numerator) / rho.denominator >= 1 / (2 * s * s)
    assert not excess


def test_gaussian_sigma_is_the_least_that_serves():
    """No budget is wasted: a sigma smaller by a millionth has a larger delta than asked."""
    with mpmath.workdps(60):
        for eps, delta, _ in POINTS[:200]:
            s = mpmath.mpf(analytic_sigma(eps, delta)) * (1 - mpmath.mpf(10) ** -6)
            e = mpmath.mpf(eps.numerator) / eps.denominator
            true = mpmath.ncdf(1 / (2 * s) - e * s) - mpmath.exp(e) * mpmath.ncdf(-1 / (2 * s) - e * s)
            assert true > mpmath.mpf(delta.numerator) / delta.denominator


def delta_of(noise, eps: float, shift: int) -> float:
    """Sum of (p(k) - e^eps p(k - shift))+ over a window, terms as p (1 - e^-loss)."""
    k = window(noise)
    p, other = noise.pmf(k), noise.pmf(k - shift)
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.log(p) - np.log(other) - eps
    use = (p > 0) & (loss > 0)
    return math.fsum(p[use] * -np.expm1(-loss[use]))


def test_rounded_gaussian_delta_from_its_pmf_at_every_scalar_shift():
    """The rounded law keeps the claim at each shift up to the sensitivity: 1,000 (eps, delta) points."""
    rng = np.random.default_rng(3)
    for _ in range(1_000):
        eps, delta = Fraction(f"{rng.uniform(0.05, 12):.4g}"), Fraction(f"{10 ** rng.uniform(-9, -1):.4g}")
        sensitivity = int(rng.integers(1, 6))
        noise = gaussian(eps, delta, sensitivity)
        for shift in {1, sensitivity}:
            assert delta_of(noise, float(eps), shift) <= float(delta) * (1 + 1e-7)


@pytest.mark.parametrize(("eps", "delta"), [("3", "1e-6"), ("8", "1e-6"), ("1", "1e-5"), ("0.5", "1e-3")])
def test_rounded_gaussian_delta_in_exact_arithmetic(eps, delta):
    """Sensitivity of one step, where a discrete Gaussian of the same sigma would break the claim."""
    noise = gaussian(eps, delta)
    with mpmath.workdps(50):
        s = mpmath.mpf(noise.scale.numerator) / noise.scale.denominator
        reach = int(14 * s + 14)

        def p(k):
            return mpmath.ncdf((-abs(k) + mpmath.mpf(1) / 2) / s) - mpmath.ncdf(
                (-abs(k) - mpmath.mpf(1) / 2) / s
            )

        e = mpmath.exp(mpmath.mpf(eps))
        true = mpmath.fsum(max(0, p(k) - e * p(k - 1)) for k in range(-reach, reach + 1))
        assert true <= mpmath.mpf(delta)

        def g(k):  # the discrete Gaussian: this check can fail
            return mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * s * s))

        total = mpmath.fsum(g(k) for k in range(-reach, reach + 1))
        discrete = mpmath.fsum(max(0, g(k) - e * g(k - 1)) for k in range(-reach, reach + 1)) / total
        if (eps, delta) in {("3", "1e-6"): 1, ("8", "1e-6"): 1}:
            assert discrete > mpmath.mpf(delta) * mpmath.mpf("1.3")


ORDERS = np.concatenate([1 + np.logspace(-4, 0, 30), np.linspace(2.1, 12, 30), np.logspace(1.1, 3.5, 32)])


def renyi(noise, shift: int) -> np.ndarray:
    """D_alpha of the law against its shift at every order in ORDERS, from log-probabilities."""
    k = window(noise)
    log_p = log_pmf(noise, k)
    log_q = log_pmf(noise, k - shift)
    return np.array([logsumexp(a * log_p + (1 - a) * log_q) / (a - 1) for a in ORDERS])


def log_pmf(noise, k):
    from scipy.special import log_ndtr

    s, k = float(noise.scale), -np.abs(k.astype(float))
    if type(noise).__name__ == "DiscreteLaplace":
        return np.log(np.tanh(0.5 / s)) + k / s
    above, below = log_ndtr((k + 0.5) / s), log_ndtr((k - 0.5) / s)
    return above + np.log(-np.expm1(below - above))


@pytest.mark.parametrize("steps", [1, 2, 5, 16])
@pytest.mark.parametrize("eps", ["0.05", "0.5", "1", "3", "8"])
def test_rho_of_laplace_bounds_every_renyi_order(eps, steps):
    noise = laplace(eps, steps)
    for shift in {1, (steps + 1) // 2, steps}:
        # 1e-9 of slack: float sums of probabilities cut at 45 standard deviations
        assert (renyi(noise, shift) <= float(noise.event.rho) * ORDERS * (1 + 1e-9) + 1e-9).all()
    if steps == 1:  # and is attained: randomised response
        assert (renyi(noise, 1) / ORDERS).max() > 0.995 * float(noise.event.rho)


@pytest.mark.parametrize("steps", [1, 3, 10])
@pytest.mark.parametrize(("eps", "delta"), [("0.1", "1e-6"), ("1", "1e-6"), ("5", "1e-6"), ("1", "0.01")])
def test_rho_of_gaussian_bounds_every_renyi_order(eps, delta, steps):
    noise = gaussian(eps, delta, steps)
    for shift in {1, (steps + 1) // 2, steps}:
        assert (renyi(noise, shift) <= float(noise.event.rho) * ORDERS * (1 + 1e-9) + 1e-9).all()


@pytest.mark.parametrize("rho", ["1e-6", "0.001", "0.05", "0.4621", "2", "40"])
@pytest.mark.parametrize("steps", [1, 6])
@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_rho_targets_are_met_at_every_order(name, rho, steps):
    noise = by_rho(name, rho, steps)
    assert noise.event.rho == Fraction(rho)
    assert noise.event.eps is None
    assert noise.event.delta == 0
    if name == "gaussian":
        assert noise.scale**2 >= Fraction(steps) ** 2 / (2 * Fraction(rho))
    else:
        assert pure_rho(steps / noise.scale) <= Fraction(rho) or noise.scale == Fraction(1, 64)
    if noise.std < 3_000:
        for shift in {1, steps}:
            assert (renyi(noise, shift) <= float(rho) * ORDERS * (1 + 1e-9) + 1e-9).all()


@pytest.mark.parametrize(
    "rho", [Fraction(1, 10**12), Fraction(1, 100), Fraction(1), Fraction(3), Fraction(700)]
)
def test_the_eps_of_a_rho_is_the_largest(rho):
    eps = eps_of_pure_rho(rho)
    assert pure_rho(eps) <= rho
    assert pure_rho(eps * (1 + Fraction(1, 2**40))) > rho


# Sigma at sensitivity 1, computed independently
SIGMAS = {
    ("0.1", "1e-5"): 30.74957, ("0.1", "1e-6"): 36.30469, ("0.1", "1e-7"): 41.32945, ("0.1", "1e-9"): 50.20982,
    ("0.25", "1e-5"): 13.28553, ("0.25", "1e-6"): 15.40981, ("0.25", "1e-7"): 17.34332, ("0.25", "1e-9"): 20.78436,
    ("0.5", "1e-5"): 7.03183, ("0.5", "1e-6"): 8.05762, ("0.5", "1e-7"): 8.99568, ("0.5", "1e-9"): 10.6739,
    ("1", "1e-5"): 3.73063, ("1", "1e-6"): 4.22468, ("1", "1e-7"): 4.67866, ("1", "1e-9"): 5.49527,
    ("2", "1e-5"): 1.99381, ("2", "1e-6"): 2.23048, ("2", "1e-7"): 2.44906, ("2", "1e-9"): 2.84455,
    ("3", "1e-5"): 1.39059, ("3", "1e-6"): 1.54386, ("3", "1e-7"): 1.68586, ("3", "1e-9"): 1.94372,
    ("5", "1e-5"): 0.89187, ("5", "1e-6"): 0.98005, ("5", "1e-7"): 1.06206, ("5", "1e-9"): 1.21171,
    ("8", "1e-5"): 0.60023, ("8", "1e-6"): 0.65294, ("8", "1e-7"): 0.70211, ("8", "1e-9"): 0.79224,
    ("10", "1e-5"): 0.49989, ("10", "1e-6"): 0.54109, ("10", "1e-7"): 0.57958, ("10", "1e-9"): 0.65025,
    ("20", "1e-5"): 0.29004, ("20", "1e-6"): 0.30908, ("20", "1e-7"): 0.32692, ("20", "1e-9"): 0.35981,
}  # fmt: skip


@pytest.mark.parametrize(("point", "sigma"), SIGMAS.items(), ids=str)
def test_analytic_sigma_has_the_published_digits(point, sigma):
    assert abs(analytic_sigma(Fraction(point[0]), Fraction(point[1])) - sigma) < 6e-6


def test_the_classical_formula_is_not_what_is_used():
    """At eps = 10 it gives too little noise (true delta 2.27e-5 at a claimed 1e-5)."""
    classical = math.sqrt(2 * math.log(1.25 / 1e-5)) / 10
    assert round(classical, 5) == 0.48448
    assert math.isclose(analytic_delta(classical, 10), 2.2653743648e-5, rel_tol=1e-9)
    assert analytic_sigma(Fraction(10), Fraction("1e-5")) > classical


@pytest.mark.parametrize("eps", [10**3, 10**6, 10**12, 10**300])
def test_huge_epsilons_draw_nothing_but_zeros_and_never_fail(eps):
    assert not laplace(eps).sample(1_000).any()
    if eps <= 10**12:
        assert not gaussian(eps, "1e-6").sample(1_000).any()


# ---- what is refused ----


@pytest.mark.parametrize("sensitivity", [0, -1, Fraction(-1, 2)])
@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_sensitivity_zero_is_refused(name, sensitivity):
    for target in (Target(Fraction(1), Fraction(1, 10**6)), Target(rho=Fraction(1))):
        with pytest.raises(dp.MechanismError, match="sensitivity"):
            dp.mechanism(name).calibrate(Fraction(sensitivity), 1, target)


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_no_sensitivity_at_all_is_an_error(name):
    with pytest.raises((dp.MechanismError, TypeError)):
        dp.mechanism(name).calibrate(None, 1, Target(Fraction(1), Fraction(1, 10**6)))


def test_noise_wider_than_the_integers_is_refused():
    assert laplace(1, 2**55).scale == 2**55
    with pytest.raises(dp.MechanismError, match=r"2\*\*55"):
        laplace(1, 2**55 + 1)
    with pytest.raises(dp.MechanismError, match=r"2\*\*55"):
        gaussian(1, "1e-6", 2**53)
    df = pl.DataFrame({"x": [1.0]})
    with dp.Session(eps=1) as s, pytest.raises(dp.MechanismError, match="Hint"):
        df.dp.clip_sum("x", bounds=(0, 1), eps=Decimal("1e-9"))
    assert s.spent == 0


def test_gaussian_needs_delta_or_rho():
    with pytest.raises(dp.MechanismError, match="delta"):
        dp.mechanism("gaussian").calibrate(Fraction(1), 1, Target(Fraction(1)))
    with dp.Session(eps=1) as s, pytest.raises(dp.MechanismError, match="delta"):
        pl.DataFrame({"x": [1]}).dp.count(eps=1, mechanism="gaussian")
    assert s.spent == 0
