"""Intervals cover the exact clipped answer as often as their laws say; errors are as promised.

One grouped release over thousands of groups that all hold the same rows gives as many independent
answers: the number that is covered is binomial. It must lie where its law, or the level, leaves it but for a chance of
1e-10 a comparison (``chance``). Spreads and widths, which have no exact tail, are those of a
fixed stream of bits (``fixed_draws``): no false alarm.
"""

from __future__ import annotations

import math
from fractions import Fraction

import chance
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sizes import AUDIT

import dpframe as dp
from dpframe.mechanisms.base import Noise

pytestmark = pytest.mark.usefixtures("quiet")

GROUPS = 200_000 if AUDIT else 20_000
PAIRS = {"laplace": {"eps": 1}, "gaussian": {"eps": 1, "delta": 1e-6}, "rho": {"rho": 0.05}}


def copies(values, groups=GROUPS, kind="polars"):
    """A frame in which every group holds the same rows."""
    one = pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64), "i": [3] * len(values)})
    frame = pl.DataFrame({"g": pl.Series(range(groups), dtype=pl.Int64)}).join(one, how="cross")
    return frame.to_pandas() if kind == "pandas" else frame


def ask(frame, groups=GROUPS, **call):
    """The release of one call over all groups, unlimited in budget."""
    with dp.Session(eps=10**9, delta=0.5, delta_calls=0.25) as s:
        frame.dp.groupby("g", keys=range(groups)).dp_agg(**call)
        return s.last


def share_covered(release, name: str, truth: float, level: float, ends=None) -> float:
    ends = release.interval(level) if ends is None else ends
    low, high = np.asarray(ends[f"{name}_low"]), np.asarray(ends[f"{name}_high"])
    slack = 1e-9 * max(1, abs(truth))
    return float(((low <= truth + slack) & (truth - slack <= high)).mean())


def within(noise: Noise, w: float) -> float:
    """P(|X| <= w) in float64."""
    return float(1 - 2 * noise.cdf(-math.floor(w) - 1))


def within_two(first: Noise, a: float, second: Noise, b: float, w: float) -> float:
    """P(|a X + b Y| <= w) for rescaled laws, by quadrature over X (exact for narrow integer laws)."""
    a, b = abs(a), abs(b)
    if a * first.std < b * second.std:
        first, a, second, b = second, b, first, a
    if b * second.std == 0:
        return within(first, w / a)
    reach = int(38 * second.std + 40)
    step = max(1, reach // 200_000)
    x = np.arange(-reach, reach + 1, step)
    p = np.diff(second.cdf(np.append(x, x[-1] + step) - 1 - step // 2))
    tiny = 1e-9 * max(w, 1)
    high = first.cdf(np.floor((w + tiny - b * x) / a))
    low = first.cdf(np.ceil((-w - tiny - b * x) / a) - 1)
    return float((p * (high - low)).sum())


def assert_share(got: float, predicted: float, level: float, groups=GROUPS, *, at_least_only=False):
    """The law is known to 1e-6 (quadrature)."""
    assert got >= chance.least_share(groups, max(predicted - 1e-6, 0)), (got, predicted)
    if not at_least_only:
        assert got <= chance.most_share(groups, min(predicted + 1e-6, 1)), (got, predicted)
    assert got >= chance.least_share(groups, level), (got, level)


LEVELS = (0.5, 0.9, 0.95, 0.99)


# ---- one piece: the law itself ----


@pytest.mark.parametrize("kind", ["polars", "pandas"])
@pytest.mark.parametrize("target", PAIRS, ids=list(PAIRS))
def test_counts(target, kind):
    mechanism = "gaussian" if target == "rho" else target
    release = ask(copies([1.0, 2.0], kind=kind), n=dp.count(), mechanism=mechanism, **PAIRS[target])
    (piece,) = release._plan.pieces
    for level in LEVELS:
        w = piece.noise.interval(level)
        assert_share(share_covered(release, "n", 2, level), within(piece.noise, w), level)


@pytest.mark.parametrize("eps", [0.1, 0.5, 3])
def test_counts_at_other_epsilons(eps):
    release = ask(copies([1.0, math.nan, 2.0]), n=dp.count("x"), eps=eps)
    width = {0.1: 30, 0.5: 6, 3: 1}[eps]
    ends = release.interval(0.95)
    assert ((ends["n_high"] - ends["n_low"]) == 2 * width).all()
    (piece,) = release._plan.pieces
    assert_share(share_covered(release, "n", 2, 0.95), within(piece.noise, width), 0.95)


@pytest.mark.parametrize("target", PAIRS, ids=list(PAIRS))
@pytest.mark.parametrize(
    ("column", "bounds", "truth"),
    [("x", (0, 10), 13.0), ("x", (-3, 7), 10.0), ("i", (0, 5), 9)],
    ids=["float", "signed", "integer"],
)
def test_sums(target, column, bounds, truth):
    mechanism = "gaussian" if target == "rho" else target
    call = {**PAIRS[target], "mechanism": mechanism}
    release = ask(copies([1.0, 2.0, 50.0]), t=dp.clip_sum(column, bounds=bounds), **call)
    (piece,) = release._plan.pieces
    for level in LEVELS:
        w = piece.noise.interval(level)
        assert_share(share_covered(release, "t", truth, level), within(piece.noise, w), level)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_means_of_a_public_number_of_rows(mechanism):
    release = ask(
        copies([1.0, 2.0, 9.0, 50.0]),
        m=dp.clip_mean("x", bounds=(0, 10), n=4),
        mechanism=mechanism,
        eps=4,
        delta=1e-6,
    )
    (piece,) = release._plan.pieces
    for level in LEVELS:
        predicted = within(piece.noise, piece.noise.interval(level))
        inside = 5 - 2 * abs(5.5 - 5)  # the interval is cut to the bounds, which hold the truth
        assert inside > 0
        assert_share(share_covered(release, "m", 5.5, level), predicted, level)


# ---- several pieces ----


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("rows", [0, 3, 30])
def test_fused_questions(mechanism, rows):
    """count, sum and count of a column from one block: weighted sums of two and three noises."""
    values = [2.0, 4.0, 9.0] * (rows // 3) + [math.nan] * 2
    release = ask(
        copies(values),
        n=dp.count(),
        c=dp.count("x"),
        t=dp.clip_sum("x", bounds=(-2, 10)),
        m=dp.clip_mean("x", bounds=(-2, 10)),
        mechanism=mechanism,
        eps=1,
        delta=1e-6,
    )
    plan = release._plan
    noise = plan.pieces[0].noise
    k = plan.parts[0].layout.grid.count
    for level in LEVELS:
        ends = release.interval(level)
        truths = {"n": rows + 2, "c": rows, "t": 5.0 * rows}
        got = {name: share_covered(release, name, x, level, ends) for name, x in truths.items()}
        for name, share in got.items():
            # Rounded counts and convolved widths may be a little wide, never short.
            assert share >= chance.least_share(GROUPS, level), name
            assert share <= level + (0.12 if name != "t" else 0.02), name
        high, low = float(plan.parts[0].layout.grid.high), float(plan.parts[0].layout.grid.low)
        w = float((ends["t_high"] - ends["t_low"])[0]) / 2
        predicted = within_two(noise, high / k, noise, low / k, w)
        assert_share(got["t"], predicted, level)


@pytest.mark.parametrize("blocks", [2, 10])
def test_blocks_of_several_columns(blocks):
    """Shares of the budget: each block's noise is wider, and the row count is their weighted mean."""
    one = {f"x{i}": [1.0 + i, 4.0] for i in range(blocks)}
    frame = pl.DataFrame({"g": pl.Series(range(GROUPS // 4), dtype=pl.Int64)}).join(
        pl.DataFrame(one), how="cross"
    )
    asked = {f"t{i}": dp.clip_sum(f"x{i}", bounds=(0, 20)) for i in range(blocks)}
    release = ask(
        frame, GROUPS // 4, n=dp.count(), **asked, m=dp.clip_mean("x0", bounds=(0, 20)), eps=2, delta=1e-6
    )
    for i in range(blocks):
        share = share_covered(release, f"t{i}", 5.0 + i, 0.95)
        assert chance.least_share(GROUPS // 4, 0.95) <= share <= chance.most_share(GROUPS // 4, 0.97)
    assert share_covered(release, "n", 2, 0.95) >= chance.least_share(GROUPS // 4, 0.95)
    assert share_covered(release, "m", 2.5, 0.95) >= chance.least_share(GROUPS // 4, 0.95)


# ---- means with a private number of rows ----


def values_of_mean(n: int, mu: float) -> list[float]:
    """n values in [-1, 1] with mean mu, on both sides of it where there is room."""
    apart = min(0.05, 1 - abs(mu))
    return [mu] * (n % 2) + [mu + apart, mu - apart] * (n // 2)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("mu", [0.0, -0.6, 0.95, 1.0])
@pytest.mark.parametrize(("n", "eps"), [(1, 1), (5, 1), (10, 3), (100, 10)], ids=["1", "5", "30", "1000"])
def test_fieller_intervals_of_means(mechanism, mu, n, eps):
    """At n*eps about 1, 5, 30 and 1000: at least what the law of T(tau) says, and just that when n*eps is large."""
    groups = GROUPS if n < 100 else GROUPS // 4
    frame = copies(values_of_mean(n, mu), groups)
    release = ask(
        frame, groups, m=dp.clip_mean("x", bounds=(-1, 1)), mechanism=mechanism, eps=eps, delta=1e-6
    )
    u, v = (p.noise for p in release._plan.pieces)
    truth = float(np.mean(values_of_mean(n, mu)))
    ends = release.interval(0.95)
    low, high = np.asarray(ends["m_low"]), np.asarray(ends["m_high"])
    assert (low <= high).all()
    assert (low >= -1).all()
    assert (high <= 1).all()
    value = np.asarray(release.value["m"])
    assert ((low - 1e-12 <= value) & (value <= high + 1e-12)).all()
    # T(tau) = (1-tau) Z1 - (1+tau) Z2 at the truth, and its width from the library's own convolution
    from dpframe.mechanisms.combine import halfwidth

    w = halfwidth(((u, 1 - truth), (v, 1 + truth)), 0.95)
    predicted = within_two(u, 1 - truth, v, 1 + truth, w)
    assert predicted >= 0.95 - 1e-6
    got = share_covered(release, "m", truth, 0.95)
    assert_share(
        got, predicted, 0.95, groups, at_least_only=n * eps < 1000 or abs(mu) > 0.9 or mechanism == "gaussian"
    )


# reference/quantile_topk_ci.json, "mean_ci_coverage": eps, n, mu -> coverage, width in units of D
REFERENCE = {
    (0.5, 10, 0.0): (0.957, 0.8571), (0.5, 10, -0.6): (0.954, 0.6584), (0.5, 10, 0.95): (0.965, 0.4893),
    (0.5, 30, 0.0): (0.951, 0.2951), (0.5, 30, -0.6): (0.944, 0.3088), (0.5, 30, 0.95): (0.965, 0.2024),
    (0.5, 100, 0.0): (0.959, 0.0842), (0.5, 100, -0.6): (0.957, 0.0998), (0.5, 100, 0.95): (0.958, 0.0893),
    (1.0, 10, 0.0): (0.952, 0.4735), (1.0, 10, -0.6): (0.956, 0.3933), (1.0, 10, 0.95): (0.965, 0.2813),
    (1.0, 30, 0.0): (0.951, 0.1411), (1.0, 30, -0.6): (0.952, 0.1673), (1.0, 30, 0.95): (0.972, 0.126),
    (1.0, 100, 0.0): (0.961, 0.0425), (1.0, 100, -0.6): (0.953, 0.0503), (1.0, 100, 0.95): (0.956, 0.0544),
}  # fmt: skip


@pytest.mark.usefixtures("fixed_draws")
@pytest.mark.parametrize("point", REFERENCE, ids=str)
def test_fieller_intervals_are_about_the_reference_widths(point):
    """Mean width within 15 % of another implementation's (it rounds differently), coverage within .03."""
    eps, n, mu = point
    coverage, width = REFERENCE[point]
    groups = 5_000
    release = ask(copies(values_of_mean(n, mu), groups), groups, m=dp.clip_mean("x", bounds=(-1, 1)), eps=eps)
    ends = release.interval(0.95)
    mean_width = float((ends["m_high"] - ends["m_low"]).mean()) / 2  # D = 2
    assert 0.85 * width <= mean_width <= 1.15 * width
    assert abs(share_covered(release, "m", mu, 0.95) - coverage) < 0.03


@pytest.mark.usefixtures("fixed_draws")
def test_the_mean_of_nothing_is_uncertain_everywhere():
    groups = 5_000
    frame = pl.DataFrame({"g": [0], "x": [1.0]})
    with dp.Session(eps=10) as s:
        frame.dp.groupby("g", keys=range(1, groups + 1)).clip_mean("x", bounds=(0, 100), eps=1)
    ends = s.last.interval(0.95)
    assert (ends["x_mean_high"] - ends["x_mean_low"]).mean() > 60
    inside = (ends["x_mean_low"] <= 50) & (ends["x_mean_high"] >= 50)
    assert inside.mean() >= chance.least_share(groups, 0.95)


# ---- margins, errors and promises ----


@pytest.mark.usefixtures("fixed_draws")
@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_margin_columns_cover(kind):
    release = ask(
        copies([1.0, 5.0, 9.0, 50.0] * 5, kind=kind),
        n=dp.count(),
        t=dp.clip_sum("x", bounds=(0, 10)),
        m=dp.clip_mean("x", bounds=(0, 10)),
        eps=2,
        ci=0.95,
    )
    table = release.value if isinstance(release.value, pl.DataFrame) else pl.from_pandas(release.value)
    assert table.columns == ["g", "n", "n_moe", "t", "t_moe", "m", "m_moe"]
    truth = {"n": 20, "t": 125.0, "m": 6.25}
    for name, x in truth.items():
        covered = ((table[name] - x).abs() <= table[f"{name}_moe"] + 1e-9).mean()
        assert covered >= chance.least_share(GROUPS, 0.95), name
        assert covered <= 0.985, name
        ends = release.interval(0.95)
        reach = np.maximum(
            np.asarray(ends[f"{name}_high"]) - table[name], table[name] - np.asarray(ends[f"{name}_low"])
        )
        assert np.allclose(table[f"{name}_moe"], reach)


@pytest.mark.usefixtures("fixed_draws")
@pytest.mark.parametrize("mu", [0.0, 0.6, 0.95, 1.0, -1.0])
def test_rmse_and_error_of_the_mean_are_as_promised(mu):
    """By Laplace noise: RMSE D sqrt(1+mu^2)/(eps n); 95 % error c D/(eps n) with c = 2.056 to 2.996, at most 3 D/(eps n)."""
    n, eps, groups = 100, 10, 20_000
    frame = copies(values_of_mean(n, mu), groups)
    release = ask(frame, groups, m=dp.clip_mean("x", bounds=(-1, 1)), eps=eps, mechanism="laplace")
    error = np.asarray(release.value["m"]) - mu
    unit = 2 / (eps * n)
    if abs(mu) < 1:
        rmse = math.sqrt(float((error**2).mean()))
        # relative standard error of a Laplace RMSE below 0.8 %; 6 of them
        assert rmse == pytest.approx(unit * math.sqrt(1 + mu * mu), rel=0.05)
    else:  # half of the answers are cut to the bound: the error is one-sided
        assert math.sqrt(float((error**2).mean())) < unit * math.sqrt(2)
    c = {0.0: 2.056, 0.6: 2.448, 0.95: 2.921, 1.0: 2.996}[abs(mu)]
    quantile = float(np.quantile(np.abs(error), 0.95))
    if abs(mu) < 1:
        assert quantile == pytest.approx(c * unit, rel=0.06)
    # The promise: at most 5 % of the answers are farther than 3 D/(eps n).
    assert float((np.abs(error) > 3 * unit).mean()) <= chance.most_share(groups, 0.05)
    width = release.interval(0.95)
    half = float((width["m_high"] - width["m_low"]).mean()) / 2
    if abs(mu) < 1:
        assert half <= 1.04 * 3 * unit


@pytest.mark.usefixtures("fixed_draws")
@pytest.mark.parametrize(("eps", "middle"), [(1, 0.979), (5, 0.1219), (10, 0.0206)])
def test_the_rmse_of_the_mean_is_that_of_the_staircase_of_its_shape(eps, middle):
    """In the middle of the bounds, in D/n; Laplace noise has 1/eps (4.9 times as much at eps = 10)."""
    n, groups = 100, 20_000
    release = ask(
        copies(values_of_mean(n, 0.0), groups), groups, m=dp.clip_mean("x", bounds=(-1, 1)), eps=eps
    )
    rmse = math.sqrt(float((np.asarray(release.value["m"]) ** 2).mean()))
    # fourth moments are below 40 times the squared second ones, so 20,000 squares have a relative standard error below 4.5 %
    assert rmse == pytest.approx(2 * middle / n, rel=0.15)
    width = release.interval(0.95)
    inside = float(((width["m_low"] <= 0) & (width["m_high"] >= 0)).mean())
    assert inside >= 1 - chance.most_share(groups, 0.05)


@pytest.mark.parametrize(("rows", "eps"), [(1_000, 0.5), (100, 1), (50, 3)])
def test_the_planned_error_of_a_mean_is_at_most_3_d_over_eps_n(rows, eps):
    df = pl.DataFrame({"x": [1.0]})
    with dp.Session(eps=100):
        plan = df.dp.plan.clip_mean("x", bounds=(0, 10), eps=eps).plan
    promised = 3 * 10 / (eps * rows)
    assert 0.95 * promised < plan.error(rows) <= promised


@pytest.mark.usefixtures("fixed_draws")
def test_the_release_std_is_the_spread_of_the_answers():
    release = ask(
        copies([1.0, 5.0, 9.0] * 20),
        n=dp.count(),
        t=dp.clip_sum("x", bounds=(0, 10)),
        m=dp.clip_mean("x", bounds=(0, 10)),
        eps=1,
    )
    for name in ("n", "t", "m"):
        spread = float(release.value[name].std())
        assert spread == pytest.approx(float(release.std[name].mean()), rel=0.06)


@pytest.mark.usefixtures("fixed_draws")
def test_price_of_the_block():
    """count("x") has sd sqrt 2 x and count() sqrt 3 x that of a plain count at the same eps."""
    values = copies([1.0, 5.0, math.nan])
    asked = {"n": dp.count(), "c": dp.count("x"), "m": dp.clip_mean("x", bounds=(0, 10))}
    block = ask(values, **asked, eps=0.2)
    continuous = math.sqrt(2) / 0.2
    assert float(block.value["c"].std()) == pytest.approx(math.sqrt(2) * continuous, rel=0.05)
    assert float(block.value["n"].std()) == pytest.approx(math.sqrt(3) * continuous, rel=0.05)


def test_noise_scales_with_epsilon():
    """Case 44: the error at eps .1 is ten times that at 1 and a hundred times that at 10.

    10,000 Laplace draws have a standard error of 1.1 % (kurtosis 6): 10 % are beyond 8 of them, skewness included 1e-14.
    """
    frame, spread = copies([1.0, 5.0], 10_000), {}
    for eps in (0.1, 1, 10):
        total = dp.clip_sum("x", bounds=(0, 10))
        release = ask(frame, 10_000, t=total, eps=Fraction(str(eps)), mechanism="laplace")
        spread[eps] = float(release.value["t"].std())
        assert spread[eps] == pytest.approx(math.sqrt(2) * 10 / eps, rel=0.1)


def test_scalar_answers_carry_the_same_interval():
    for frame in (pl.DataFrame({"x": [1.0, 5.0]}), pd.DataFrame({"x": [1.0, 5.0]})):
        with dp.Session(eps=1000):
            covered = 0
            for _ in range(60):
                low, high = frame.dp.clip_sum("x", bounds=(0, 10), eps=1).interval(0.999)
                covered += low <= 6 <= high
        assert covered >= 55  # binomial(60, .999): fewer has probability 5e-11
