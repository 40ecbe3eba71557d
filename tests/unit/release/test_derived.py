"""Differences, ratios and tables that add up: right, covered by their intervals, refused where noise is shared."""

from __future__ import annotations

import math

import chance
import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from conftest import as_kind, as_polars

GROUPS = 4000
KEYS = range(GROUPS)


@pytest.fixture(autouse=True)
def silence(quiet):
    """These tests are not about notices."""


def copies(values):
    """Every group holds the same values."""
    one = pl.DataFrame({"x": [float(v) for v in values]})
    return pl.DataFrame({"g": pl.Series(KEYS, dtype=pl.Int64)}).join(one, how="cross")


def ask(frame, mechanism="laplace", eps=1, **asked):
    with dp.Session(eps=10**9, delta=0.5, delta_calls=0.25) as s:
        frame.dp.groupby("g", keys=KEYS).dp_agg(**asked, mechanism=mechanism, eps=eps, delta=1e-6)
        return s.last


def covered(derived, truth, level, name):
    ends = derived.interval(level)
    low, high = ends[f"{name}_low"], ends[f"{name}_high"]
    return float(((low <= truth + 1e-9) & (truth - 1e-9 <= high)).mean())


def at_least(share, level):
    """But for a chance of 1e-10: the groups are independent, so the number covered is binomial."""
    return share >= chance.least_share(GROUPS, level)


@pytest.mark.usefixtures("fixed_draws")
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_differences_and_ratios_of_independent_answers_are_covered(mechanism, level):
    first, second = copies([1, 5, 9] * 10), copies([2, 2, 6] * 5)
    for question in (dp.count(), dp.clip_sum("x", bounds=(0, 10)), dp.clip_mean("x", bounds=(0, 10))):
        a, b = ask(first, mechanism, n=question), ask(second, mechanism, n=question)
        truths = {"count": (30, 15), "clip_sum": (150, 50), "clip_mean": (5, 10 / 3)}[question.verb]
        d, r = dp.difference(a, b), dp.ratio(a, b)
        assert at_least(covered(d, truths[0] - truths[1], level, "difference"), level), question.verb
        assert at_least(covered(r, truths[0] / truths[1], level, "ratio"), level), question.verb
        if question.verb == "clip_mean":  # cut to the bounds here and there
            continue
        spread = float(np.std(np.asarray(d.value["difference"])))
        assert spread == pytest.approx(
            float(np.mean(np.asarray(d.std["difference"]))), rel=0.13
        )  # 7 standard errors of a Laplace spread


@pytest.mark.usefixtures("fixed_draws")
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_shared_noise_of_counts_and_sums_is_taken_together(level):
    """Of one block: the sum minus the count times 3 has a law of its own; missing ones from two cells of a pair."""
    frame = copies([1, 5, math.nan] * 10)
    block = ask(frame, n=dp.count("x"), t=dp.clip_sum("x", bounds=(0, 10)))
    d, r = dp.difference((block, "t"), (block, "n")), dp.ratio((block, "t"), (block, "n"))
    assert at_least(covered(d, 60 - 20, level, "difference"), level)
    assert at_least(covered(r, 3, level, "ratio"), level)
    cells = ask(frame, n=dp.count(), c=dp.count("x"))
    d = dp.difference((cells, "n"), (cells, "c"))
    assert at_least(covered(d, 10, level, "difference"), level)
    ends = d.interval(level)  # shared draws cancel: one cell's noise is left
    noise = cells.plan.pieces[1].noise
    assert ((ends["difference_high"] - ends["difference_low"]) == 2 * noise.interval(level)).all()
    assert float(np.std(np.asarray(d.value["difference"]))) == pytest.approx(
        math.sqrt(2), rel=0.13
    )  # 7 standard errors of a Laplace spread


def test_shared_noise_of_means_is_refused():
    block = ask(copies([1, 2]), n=dp.count("x"), m=dp.clip_mean("x", bounds=(0, 10)))
    for f in (dp.difference, dp.ratio):
        with pytest.raises(dp.InputError, match=r"made of the same noise.*Hint"):
            f((block, "m"), (block, "n"))
    split = ask(
        copies([1, 2]),
        eps={"n": 1, "m": 1},
        n=dp.count("x"),
        m=dp.clip_mean("x", bounds=(0, 10)),
    )
    assert dp.difference((split, "m"), (split, "n")).value.columns == ["g", "difference"]


def test_numbers_and_columns(kind):
    frame = as_kind(kind, pl.DataFrame({"g": ["a", "b", "b", None], "x": [True, False, True, True]}))
    with dp.Session(eps=10**8) as s:
        n, late = frame.dp.count(eps=10**6), frame.dp.clip_sum("x", eps=10**6)
        d, r = dp.difference(n, late), dp.ratio(late, n)
        assert (d.value, r.value) == (1, 0.75)
        assert float(d) == 1
        assert d.interval()[0] <= 1 <= d.interval()[1]
        assert "free" in repr(d)
        frame.dp.groupby("g", keys=["b", None, "a"]).count(eps=10**6)
        one = s.last
        frame.dp.groupby("g", keys=["b", None, "a"]).clip_sum("x", eps=10**6)
        two = s.last
        spent = float(s.spent)
        table = as_polars(dp.ratio(two, one).value)
        assert table["g"].to_list() == ["b", None, "a"]
        assert table["ratio"].to_list() == [0.5, 1, 1]
        assert as_polars(dp.difference(n, one).value)["difference"].to_list() == [2, 3, 3]
        assert type(dp.ratio(two, one).value) is (pd.DataFrame if kind == "pandas" else pl.DataFrame)
        frame.dp.groupby("g", keys=["a", "b", None]).count(eps=10**6)
        with pytest.raises(dp.InputError, match=r"different groups.*Hint"):
            dp.difference(s.last, one)
        assert float(s.spent) == spent + 10**6  # that one call, and nothing for what was made of releases


def test_a_denominator_of_zero_has_no_bounds():
    with dp.Session(eps=10**8):
        one = pl.DataFrame({"x": [1]}).dp.count(eps=10**6)
        none = pl.DataFrame({"x": []}).dp.count(eps=10**6)
        r = dp.ratio(one, none)
    assert r.value == 0
    assert r.interval() == (-math.inf, math.inf)


@pytest.mark.usefixtures("fixed_draws")
def test_groups_are_adjusted_to_their_total_and_get_better():
    """Least squares by hand for equal variances: each group takes an equal share; the sum is nearer the truth."""
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({"g": rng.integers(0, 40, 5000)})
    sums, errors, share = [], [], []
    with dp.Session(eps=10**6) as s:
        for _ in range(300):
            total = frame.dp.count(eps=1)
            table = frame.dp.groupby("g", keys=range(40)).count(eps=1)
            fitted = dp.consistent(s.last, total)
            x, t = table["count"].to_numpy(), int(total)
            assert np.allclose(fitted.value["consistent"], x + (t - x.sum()) / 41)
            sums.append(float(fitted.value["consistent"].sum()) - 5000)
            errors.append(float(x.sum()) - 5000)
            truth = pl.Series(np.bincount(frame["g"].to_numpy(), minlength=40))
            ends = fitted.interval(0.95)
            share.append(((ends["consistent_low"] <= truth) & (truth <= ends["consistent_high"])).to_numpy())
    assert np.std(sums) < 0.25 * np.std(errors)  # .157 by the law; 7 standard errors
    # Each group's 300 intervals are independent. The 40 of a call have a covariance of -1/41 of their variance, so the
    # number of all is spread less than a binomial: at 8 standard deviations.
    assert (np.sum(share, axis=0) >= chance.least_hits(300, 0.95, chance.ALARM / 40)).all()
    assert np.mean(share) >= chance.least_share(300 * 40, 0.95, 1e-15)
    first = float(np.mean(np.asarray(fitted.std["consistent"])))
    assert first == pytest.approx(
        math.sqrt(1 - 1 / 41) * float(np.mean(np.asarray(s.last.std["count"]))), rel=1e-6
    )


def test_unequal_variances_are_weighted():
    frame = pl.DataFrame({"g": ["a", "b"]})
    with dp.Session(eps=10**6) as s:
        total = frame.dp.count(eps=100)
        table = frame.dp.groupby("g", keys=["a", "b"]).count(eps=0.1)
        fitted = dp.consistent(s.last, total)
    x = table["count"].to_numpy()
    assert float(fitted.value["consistent"].sum()) == pytest.approx(int(total), abs=0.01)
    assert np.allclose(np.diff(fitted.value["consistent"]), np.diff(x))


def test_what_need_not_add_up_is_refused():
    frame = pl.DataFrame({"g": ["a", "b"], "x": [1.0, 2.0], "u": [1, 2]})
    with dp.Session(eps=100, delta=1e-3) as s:
        n, m = frame.dp.count(eps=1), frame.dp.clip_mean("x", bounds=(0, 5), eps=1)
        groups = frame.dp.groupby("g", keys=["a", "b"])
        groups.count(eps=1)
        counts = s.last
        groups.clip_mean("x", bounds=(0, 5), eps=1)
        means = s.last
        frame.dp.groupby("g").count(eps=1, delta=1e-6)
        found = s.last
        for first, second, words in (
            (n, n, "a release of groups"),
            (counts, counts, "one of the whole frame"),
            (means, m, "means do not"),
            (counts, m, r"not count\(\) and clip_mean"),
            (found, n, "listed groups"),
        ):
            with pytest.raises(dp.InputError, match=words):
                dp.consistent(first, second)
    with dp.Session(eps=100, unit="u") as s:
        units, n = frame.dp.count_units(eps=1), frame.dp.count(eps=1, max_rows=1)
        groups = frame.dp.groupby("g", keys=["a", "b"], max_groups=2, max_rows_per_group=1)
        groups.count(eps=1)
        with pytest.raises(dp.InputError, match=r"need not add up.*fits=True"):
            dp.consistent(s.last, n)
        groups.count_units(eps=1)
        with pytest.raises(dp.InputError, match=r"counted in each.*max_groups=2"):
            dp.consistent(s.last, units, fits=True)
        of_units = s.last
    with dp.Session(eps=100, unit="g"):
        other = frame.dp.count_units(eps=1)
    with pytest.raises(dp.InputError, match="one unit"):
        dp.consistent(of_units, other, fits=True)


@pytest.mark.usefixtures("fixed_draws")
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_units_that_fit_are_adjusted_and_covered(neighbors):
    """800 units of two rows in one group each; the total costs more noise than a group, and counts less."""
    frame = pl.DataFrame({"u": np.repeat(np.arange(800), 2), "x": [1.0, 3.0] * 800})
    frame = frame.with_columns(g=pl.col("u") % 8)
    ask = {
        "count": lambda d, **k: d.count(eps=1, **k),
        "sum": lambda d, **k: d.clip_sum("x", bounds=(0, 4), eps=1, **k),
    }
    truths = {"count": 200.0, "sum": 400.0}
    for name, question in ask.items():
        share, errors, plain = [], [], []
        with dp.Session(eps=10**6, unit="u", neighbors=neighbors) as s:
            for _ in range(120):
                total = question(frame.dp, max_rows=5)
                question(frame.dp.groupby("g", keys=range(8), max_groups=1, max_rows_per_group=2))
                fitted = dp.consistent(s.last, total, fits=True)
                ends = fitted.interval(0.95)
                low, high = ends["consistent_low"].to_numpy(), ends["consistent_high"].to_numpy()
                share.append((low <= truths[name]) & (truths[name] <= high))
                errors.append(fitted.value["consistent"].to_numpy() - truths[name])
                plain.append(s.last.value[s.last.value.columns[1]].to_numpy() - truths[name])
        # 120 independent calls: each group's intervals are binomial, those of one call are not independent
        assert (np.sum(share, axis=0) >= chance.least_hits(120, 0.95)).all()
        spread = float(np.mean(np.asarray(fitted.std["consistent"])))
        assert np.std(errors) == pytest.approx(spread, rel=0.25)  # 7 standard errors
        assert spread < float(np.mean(np.asarray(s.last.std[s.last.std.columns[1]])))
        assert abs(np.mean(errors)) < 6 * spread / 960**0.5 * 3
        assert np.std(errors) < 1.15 * np.std(plain)


def test_only_releases_are_taken():
    with dp.Session(eps=100) as s:
        frame = pl.DataFrame({"x": [1.0]})
        frame.dp.agg(n=dp.count(), c=dp.count("x"), eps=1)
        for f in (dp.difference, dp.ratio, dp.consistent):
            with pytest.raises(TypeError, match=rf"dp.{f.__name__}"):
                f(3, 4)
            with pytest.raises(dp.InputError, match="Hint"):
                f(s.last, s.last)
            with pytest.raises(dp.InputError, match="no output 'm'"):
                f((s.last, "m"), s.last)
        frame.dp.groupby("x", keys=[1.0, 2.0]).count(eps=1)
        with pytest.raises(TypeError, match=r"Hint: \.value"):
            float(dp.difference(s.last, s.last))
