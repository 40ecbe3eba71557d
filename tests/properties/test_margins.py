"""Margins and forecasts hold whatever the data are, from eps = 0.1 to 100, rounding to coarse grids included.

2,000 answers (``DPFRAME_AUDIT=1``: 20,000) to one question over data that are chosen to be bad: at a bound, near
constant, correlated, light weights. A margin that holds with 95 % is kept by fewer than LEAST of them (91.2 %; of 20,000:
93.9 %) with a probability of at most 1e-9 in all comparisons of a run together (binomial).
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom
from sizes import AUDIT

import dpframe as dp
from dpframe import pipeline

DRAWS = 20_000 if AUDIT else 2_000
EPS = (0.1, 1, 4, 10, 30, 100) if AUDIT else (0.1, 1, 10, 100)
COMPARISONS = 2_000
LEAST = (float(binom.ppf(1e-9 / COMPARISONS, DRAWS, 0.95)) - 1) / DRAWS

DATA = {
    "at a bound": (np.full(40, 1.0), np.full(40, 1.0)),
    "one apart": (np.array([-1.0] + [1.0] * 39), np.array([1.0] * 39 + [-1.0])),
    "alike inside": (np.full(41, 0.3137), np.full(41, -0.5919)),  # between two coarse integers
    "opposite": (np.array([-1.0, 1.0] * 20), np.array([1.0, -1.0] * 20)),
    "spread": (np.arange(-16, 16) / 16, np.arange(16, -16, -1) / 16),
}
WEIGHTS = {"heavy": 1.0, "light": 0.25}
ALL = {
    "mean": lambda: dp.clip_mean("x", B=1),
    "known n": lambda: dp.clip_mean("x", B=1, n=40),
    "wmean": lambda: dp.clip_wmean("x", weights="w", B=1, weight_bounds=(0.25, 1)),
    "var": lambda: dp.clip_var("x", B=1),
    "std": lambda: dp.clip_std("x", B=1),
    "cov": lambda: dp.clip_cov(["x", "y"], B=1),
    "corr": lambda: dp.clip_corr(["x", "y"], B=1),
    "vector_mean": lambda: dp.vector_mean(["x", "y"], norm=2),
}


def frame(data, weight=1.0):
    x, y = DATA[data]
    return pl.DataFrame({"x": x, "y": y, "w": np.full(len(x), weight)})


def drawn(df, eps, mechanism, delta=None, **asked):
    """(outputs, laws, noisy integers): DRAWS draws over the exact integers of one frame."""
    with dp.Session(eps=1e9, delta=0.5):
        extra = {} if delta is None else {"delta": delta}
        bound = df.dp.plan.agg(eps=eps, mechanism=mechanism, **asked, **extra)
    plan = bound.plan
    exact = pipeline._passes(plan, bound._source, 1)
    noisy = []
    for p in plan.pieces:
        value = np.repeat(p.exact(exact), DRAWS)
        noisy.append(p.noise.prepare(value) + p.noise.sample(DRAWS))
    return {o.name: o for o in plan.outputs}, plan.laws, noisy


def truths(name, df):
    x, y, w = (df[c].to_numpy() for c in "xyw")
    corr = 0.0 if x.std() == 0 or y.std() == 0 else np.corrcoef(x, y)[0, 1]
    one = {
        "mean": x.mean(),
        "known n": x.mean(),
        "wmean": (x * w).sum() / w.sum(),
        "var": x.var(ddof=1),
        "std": x.std(ddof=1),
        "cov": np.cov(x, y)[0, 1],
        "corr": corr,
    }
    return {"x": x.mean(), "y": y.mean()} if name == "vector_mean" else {name: one[name]}


def named(name, n=40):
    question = dp.clip_mean("x", B=1, n=n) if name == "known n" else ALL[name]()
    return {"v": question} if name == "vector_mean" else {name: question}


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("mechanism", ["auto", "laplace", "staircase"])
@pytest.mark.parametrize("name", [n for n in ALL if n not in ("std", "corr", "cov")])
def test_intervals_cover_and_forecasts_hold_at_every_eps(name, mechanism):
    for eps in EPS:
        for data in DATA:
            df = frame(data)
            outputs, laws, noisy = drawn(df, eps, mechanism, **named(name, df.height))
            check(name, df, outputs, laws, noisy, (name, mechanism, eps, data))


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("name", ["std", "corr", "cov"])
def test_intervals_of_second_moments_cover_and_their_forecasts_hold(name):
    for eps in (1, 8, 30, 100) if AUDIT else (1, 30):
        for data in DATA:
            df = frame(data)
            for mechanism in ("auto", "staircase"):
                outputs, laws, noisy = drawn(df, eps, mechanism, **named(name, df.height))
                check(name, df, outputs, laws, noisy, (name, mechanism, eps, data))


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("delta", [1e-6, 1e-2])
@pytest.mark.parametrize("name", ["mean", "var", "vector_mean"])
def test_intervals_cover_under_every_law_that_auto_takes_with_delta(name, delta):
    for eps in (0.1, 1, 10, 30):
        for data in ("at a bound", "alike inside"):
            df = frame(data)
            outputs, laws, noisy = drawn(df, eps, "auto", delta, **named(name, df.height))
            check(name, df, outputs, laws, noisy, (name, delta, eps, data))


def check(name, df, outputs, laws, noisy, about):
    for key, truth in truths(name, df).items():
        output = next(o for n, o in outputs.items() if n.endswith(key))
        value = output.answer.value(noisy)
        low, high = output.answer.interval(noisy, laws, 0.95)
        tiny = 3e-4 if name in ("wmean", "var", "std", "cov", "corr") else 1e-6  # grids of 2**-15 parts
        covered = ((low - tiny <= truth) & (truth <= high + tiny)).mean()
        assert covered >= LEAST, (*about, "interval", covered)
        forecast = output.answer.error(laws, df.height)
        kept = (np.abs(value - truth) <= forecast + tiny).mean()
        assert kept >= LEAST, (*about, "forecast", kept, forecast)
        spread = output.answer.std(noisy, laws)
        assert (spread <= 4).all(), (*about, "std")  # of answers within 2 of each other, or 4 (variances)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("eps", [0.1, 1])
def test_light_weights_are_in_the_forecast(eps):
    for data in DATA:
        df = frame(data, WEIGHTS["light"])
        outputs, laws, noisy = drawn(df, eps, "auto", **named("wmean"))
        check("wmean", df, outputs, laws, noisy, (eps, data))
        heavy = outputs["wmean"].answer.cases(laws, df.height)
        assert [name for name, _ in heavy] == ["rows of full weight"]


def test_explain_names_the_case_beside_the_worst():
    with dp.Session(eps=1e9):
        text = {
            name: str(frame("spread").dp.plan.agg(**named(name), eps=1).explain(rows=1000)) for name in ALL
        }
    assert "at worst; of values spread evenly between the bounds: ±" in text["std"]
    assert "± 2 at worst; of independent columns spread evenly between their bounds: ±" in text["corr"]
    assert "at worst; of rows of full weight: ±" in text["wmean"]
    assert "at worst" not in text["mean"]


def test_error_plans_for_the_worst():
    with dp.Session(eps=1e9):
        plan = frame("spread").dp.plan.clip_std("x", B=1, error=0.05, rows=100_000).plan
        assert plan.error(100_000) <= 0.05
        with pytest.raises(dp.errors.InputError, match="can't be met"):
            frame("spread").dp.plan.clip_corr(["x", "y"], B=1, error=0.5, rows=10**9)
        with pytest.raises(dp.errors.InputError, match="can't be met"):
            frame("spread").dp.plan.clip_wmean("x", weights="w", B=1, error=0.5, rows=10**6)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("mechanism", ["laplace", "staircase", "gaussian"])
@pytest.mark.parametrize("eps", EPS)
def test_differences_and_ratios_of_answers_cover(eps, mechanism):
    """Of two releases, each over DRAWS draws: means and sums, and counts of groups that are small."""
    delta = 1e-6 if mechanism == "gaussian" else None
    for data in ("at a bound", "alike inside"):
        x = frame(data)["x"].to_numpy()
        n = len(x)
        columns = {
            "m": (lambda: dp.clip_mean("x", B=1), x.mean()),
            "s": (lambda: dp.clip_sum("x", B=1), x.sum()),
            "n": (lambda: dp.count(), n),
        }
        made = {k: many(frame(data), eps, mechanism, delta, **{k: q()}) for k, (q, _) in columns.items()}
        again = {k: many(frame(data), eps, mechanism, delta, **{k: q()}) for k, (q, _) in columns.items()}
        for one, two in (("m", "m"), ("s", "s"), ("n", "n"), ("m", "s")):
            low, high = ends(dp.difference(made[one], again[two]))
            truth = columns[one][1] - columns[two][1]
            covered = ((low - 1e-6 <= truth) & (truth <= high + 1e-6)).mean()
            assert covered >= LEAST, ("difference", one, two, eps, data, covered)
        for one, two in (("s", "n"), ("n", "n"), ("m", "n")):
            low, high = ends(dp.ratio(made[one], again[two]))
            truth = columns[one][1] / columns[two][1]
            covered = ((low - 1e-6 <= truth) & (truth <= high + 1e-6)).mean()
            assert covered >= LEAST, ("ratio", one, two, eps, data, covered)


def many(df, eps, mechanism, delta=None, **asked):
    """A release over DRAWS groups that all hold the same integers."""
    with dp.Session(eps=1e9, delta=0.5):
        extra = {} if delta is None else {"delta": delta}
        release = df.dp.plan.agg(eps=eps, mechanism=mechanism, **asked, **extra).release()
        bound = df.dp.plan.agg(eps=eps, mechanism=mechanism, **asked, **extra)
    exact = pipeline._passes(bound.plan, bound._source, 1)
    release._noisy = [
        p.noise.prepare(np.repeat(p.exact(exact), DRAWS)) + p.noise.sample(DRAWS) for p in bound.plan.pieces
    ]
    return release


def ends(derived):
    return derived._ends(0.95)
