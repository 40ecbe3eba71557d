"""Groups that nobody listed: thresholds against the exact law, what a lone key risks, what may be seen.

Thresholds are checked by an independent computation: the integer laws are written down anew and convolved
directly (coarse grids), or compared with the continuous law of the sum, which a grid of 2**20 steps or more
follows to a part in 10**4. Continuous reference values are those of the mathematics.

Measured frequencies: fixed sizes, one-sided binomial bounds with a false alarm of at most 1e-9 each.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import math
import os
import pickle
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import KINDS, as_kind, as_polars
from scipy import stats as laws
from scipy.special import ndtr, ndtri

import dpframe as dp
from dpframe.engine.opening import as_source
from dpframe.mechanisms.thresholds import KeySelection, per_key_delta

AUDIT = os.environ.get("DPFRAME_AUDIT", "") not in ("", "0")
RELATIONS = ("add_remove", "replace_one")
ALARM = 1e-9
each_relation = pytest.mark.parametrize("relation", RELATIONS)

# ---- laws, written down anew ----


def laplace_pmf(b, draws):
    """The law of the sum of ``draws`` two-sided geometric numbers by direct convolution; index 0 is the middle."""
    k = np.arange(-math.ceil(45 * b) - 30, math.ceil(45 * b) + 31)
    q = math.exp(-1 / b)
    one = (1 - q) / (1 + q) * q ** np.abs(k)
    return convolved(one, draws)


def gaussian_pmf(sigma, draws):
    k = np.arange(-math.ceil(12 * sigma) - 3, math.ceil(12 * sigma) + 4)
    lower = -np.abs(k)
    return convolved(ndtr((lower + 0.5) / sigma) - ndtr((lower - 0.5) / sigma), draws)


def convolved(one, draws):
    total = one
    for _ in range(draws - 1):
        total = np.convolve(total, one)
    return total


def tail(pmf, k):
    """P(sum >= k)."""
    middle = len(pmf) // 2
    return float(math.fsum(pmf[max(0, middle + k) :])) if middle + k < len(pmf) else 0.0


def continuous_tail(mechanism, scale, draws, x):
    """P(sum of continuous noises >= x) for x >= 0."""
    if mechanism == "gaussian":
        return float(ndtr(-x / (scale * math.sqrt(draws))))
    y = x / scale
    return math.exp(-y) * {1: 0.5, 2: (y + 2) / 4, 3: (y * y + 5 * y + 8) / 16}[draws]


def appears(plan, value, least=None):
    """The probability that a group is released whose thresholded integer is ``value`` without noise."""
    t = plan.threshold
    noise, draws = plan.pieces[t.coordinates[0]].noise, len(t.coordinates)
    assert len({plan.pieces[i].noise for i in t.coordinates}) == 1
    mechanism = plan.parts[plan.pieces[t.coordinates[0]].part].mechanism
    k = (t.least if least is None else least) - value
    scale = float(noise.scale)
    if scale <= 150:
        pmf = laplace_pmf(scale, draws) if mechanism == "laplace" else gaussian_pmf(scale, draws)
        return tail(pmf, k), 1e-9
    return continuous_tail(mechanism, scale, draws, k), 1e-4


def thresholded(plan, frame, salt=1):
    """The integer that is thresholded, per group, without noise."""
    counts = as_source(frame).aggregate(plan.measures, plan.by, plan.keys, plan.bounding, salt)
    total = np.zeros(len(counts.rows), dtype=object)
    for i in plan.threshold.coordinates:
        p, c = plan.pieces[i], plan.pieces[i].coordinate
        total = total + c.a * counts.rows.astype(object)
        if c.e:
            total = total + c.e * counts.units.astype(object)
        if p.measure >= 0:
            total = total + c.b * counts.present[p.measure].astype(object)
            for which, factor in c.sums:
                total = total + factor * counts.sums[p.measure][which].astype(object)
    return total


def union(p, groups):
    """P(at least one of ``groups`` keys appears), without cancellation."""
    return -math.expm1(groups * math.log1p(-p))


# ---- thresholds ----

LONE = pl.DataFrame({"k": ["a"], "x": [1], "y": [2.0], "u": [1]})


def questions(name):
    return {
        "count": {"n": dp.count()},
        "count x": {"n": dp.count("x")},
        "sum": {"s": dp.clip_sum("x", bounds=(0, 10))},
        "mean": {"m": dp.clip_mean("x", bounds=(0, 10))},
        "mean n": {"m": dp.clip_mean("x", bounds=(0, 10), n=50)},
        "fused": {
            "n": dp.count(),
            "s": dp.clip_sum("x", bounds=(0, 10)),
            "m": dp.clip_mean("x", bounds=(0, 10)),
        },
        "two counts": {"n": dp.count(), "c": dp.count("x")},
        "two": {
            "n": dp.count(),
            "s": dp.clip_mean("x", bounds=(0, 10)),
            "y": dp.clip_mean("y", bounds=(0, 1)),
        },
        "two sums": {"s": dp.clip_sum("x", bounds=(0, 10)), "y": dp.clip_sum("y", bounds=(0, 1))},
    }[name]


QUESTIONS = ("count", "count x", "sum", "mean", "mean n", "fused", "two counts", "two", "two sums")


def plan_of(name, *, relation="add_remove", unit=None, frame=LONE, eps=1, delta=1e-6, rho=None, **options):
    with dp.Session(eps=10**6, delta=0.5, neighbors=relation, unit=unit):
        spend = {"rho": rho} if rho is not None else {"eps": eps}
        groups = frame.dp.plan.groupby("k")
        return groups.agg(**questions(name), delta=delta, **spend, **options).plan


@pytest.mark.parametrize(
    ("eps", "groups", "laplace", "sigma", "gaussian"),
    [  # continuous reference values: tau of Laplace, sigma and tau of Gaussian with half of delta for the keys
        (0.5, 1, 27.2447, 8.3483, 41.837),
        (0.5, 4, 117.0693, 16.6966, 87.1163),
        (0.5, 16, 509.6385, 33.3933, 181.7076),
        (1.0, 1, 14.1224, 4.3652, 22.3528),
        (1.0, 4, 59.0346, 8.7303, 46.0283),
        (1.0, 16, 255.3192, 17.4606, 95.4881),
        (3.0, 1, 5.3741, 1.5877, 8.7664),
        (3.0, 4, 20.3449, 3.1754, 17.3776),
        (3.0, 16, 85.7731, 6.3507, 35.367),
    ],
)
def test_thresholds_of_counts_follow_the_reference(eps, groups, laplace, sigma, gaussian):
    """The least integer is at most 1 1/2 above the continuous threshold: rounding up, and the steps of the law."""
    limits = {"unit": "u", "max_groups": groups, "max_rows_per_group": 1}
    plan = plan_of("count", eps=eps, mechanism="laplace", **limits)
    assert (
        laplace - 1e-4 <= plan.threshold.least <= laplace + 1.5
    )  # P(X >= k) = q**k / (1 + q), half a step wider
    q = math.exp(-eps / groups)
    per_key = 1 - (1 - 1e-6) ** (1 / groups)
    assert plan.threshold.least == 1 + math.ceil(math.log(per_key * (1 + q)) / math.log(q) - 1e-9)
    plan = plan_of("count", eps=eps, mechanism="gaussian", **limits)
    assert float(plan.pieces[0].noise.scale) == pytest.approx(sigma, rel=1e-4)
    assert gaussian <= plan.threshold.least <= gaussian + 1.5


def test_thresholds_of_blocks_follow_the_reference():
    """In rows at (1, 1e-6): U + V 16.28, U + V + W 17.99, on a fine grid; a count at eps/2 would need 27.24."""
    frame = pl.DataFrame({"k": ["a"], "x": [1.5]})
    with dp.Session(eps=10, delta=1e-3):
        groups = frame.dp.plan.groupby("k")
        mean = groups.clip_mean("x", bounds=(0, 10), eps=1, delta=1e-6, mechanism="laplace").plan
        both = groups.agg(
            n=dp.count(), m=dp.clip_mean("x", bounds=(0, 10)), eps=1, delta=1e-6, mechanism="laplace"
        ).plan
    assert mean.threshold.size == pytest.approx(16.28, abs=0.005)
    assert both.threshold.size == pytest.approx(17.99, abs=0.005)
    assert (len(mean.threshold.coordinates), len(both.threshold.coordinates)) == (2, 3)


@each_relation
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_a_row_of_its_own_appears_with_probability_at_most_delta(relation, mechanism, name, delta):
    """Exactly, from the convolved integer law, whatever the row holds; and a threshold one lower would not do."""
    plan = plan_of(name, relation=relation, mechanism=mechanism, delta=delta)
    keys_delta = delta if mechanism == "laplace" else delta / 2
    most = 0
    for x, y in ((0, 0.0), (10, 1.0), (3, 0.4), (None, None), (10**6, -1e9), (None, 1.0)):
        row = pl.DataFrame(
            {"k": ["a"], "x": [x], "y": [y]}, schema={"k": pl.String, "x": pl.Int64, "y": pl.Float64}
        )
        (value,) = thresholded(plan, row)
        most = max(most, value)
        p, error = appears(plan, value)
        assert p <= keys_delta * (1 + error)
    draws = len(plan.threshold.coordinates)
    slack = 1 if mechanism == "laplace" else 1 + draws  # rounding of each draw is bounded, not convolved
    p, _ = appears(plan, most, plan.threshold.least - slack)
    assert p > keys_delta * (1 - 1e-4), "the threshold is higher than it must be"
    assert float(plan.threshold.delta) == pytest.approx(keys_delta)


@each_relation
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", ["count", "sum", "mean", "fused", "two"])
@pytest.mark.parametrize("groups", [1, 4, 16])
@pytest.mark.parametrize(("rows", "threshold"), [(1, None), (5, None), (5, "rows")])
def test_none_of_a_units_own_keys_appears_with_probability_above_delta(
    relation, mechanism, name, groups, rows, threshold
):
    delta = 1e-6
    plan = plan_of(
        name, relation=relation, mechanism=mechanism, unit="u", delta=delta, max_groups=groups,
        max_rows_per_group=rows, threshold=threshold,
    )  # fmt: skip
    assert plan.threshold.counted == ("u" if rows > 1 and threshold is None else "row")
    many = 9
    frame = pl.DataFrame(
        {
            "k": [f"k{i}" for i in range(20) for _ in range(many)],
            "u": 1,
            "x": [10, 0, None] * 60,
            "y": [1.0, 0.0, None] * 60,
        }
    )
    values = thresholded(plan, frame)
    assert len(values) <= groups
    keys_delta = delta if mechanism == "laplace" else delta / 2
    p, error = appears(plan, max(values))
    assert union(p, groups) <= keys_delta * (1 + error)
    full = frame.with_columns(x=pl.lit(10), y=pl.lit(1.0))
    best = max(thresholded(plan, full))
    p, error = appears(plan, best)
    assert union(p, groups) <= keys_delta * (1 + error)
    draws = len(plan.threshold.coordinates)
    slack = 1 if mechanism == "laplace" else 1 + draws
    p, error = appears(plan, best, plan.threshold.least - slack)
    assert union(p, groups) > keys_delta * (1 - 1e-4)


def test_units_are_counted_when_they_may_bring_several_rows_and_cost_one_piece_more():
    """R > 1: a count of units with eps/p each; R = 1: what is there already."""
    limits = {"unit": "u", "max_groups": 2, "mechanism": "laplace"}
    one = plan_of("mean", max_rows_per_group=1, **limits)
    assert len(one.parts) == 1
    more = plan_of("mean", max_rows_per_group=3, **limits)
    assert len(more.parts) == 2
    (units,) = [p for p in more.pieces if more.parts[p.part].layout.kind == "units"]
    assert units.noise.scale == 2 * 2  # two pieces, two groups, eps 1
    rows = plan_of("mean", max_rows_per_group=3, threshold="rows", **limits)
    assert len(rows.parts) == 1


def test_a_threshold_of_a_gaussian_by_rho_gives_all_of_delta_to_the_keys():
    plan = plan_of("count", rho=0.1, mechanism="gaussian")
    assert float(plan.pieces[0].noise.scale) == pytest.approx(1 / math.sqrt(0.2))
    assert plan.event.eps is None
    assert float(plan.event.delta) == 1e-6
    assert plan.threshold.least == math.ceil(1 + float(plan.pieces[0].noise.scale) * -ndtri(1e-6) + 0.5)


def test_auto_takes_gaussian_noise_and_its_lower_threshold_for_many_groups():
    """L0 = 16: 95 against 255."""
    plan = plan_of("count", unit="u", max_groups=16, max_rows_per_group=1)
    assert plan.parts[0].mechanism == "gaussian"
    assert 95 <= plan.threshold.least <= 97
    assert plan_of("count", unit="u", max_groups=1, max_rows_per_group=1).parts[0].mechanism == "laplace"


# ---- events ----


@each_relation
@pytest.mark.parametrize("name", ["count", "fused", "two"])
def test_a_laplace_release_costs_eps_and_delta_once(relation, name):
    plan = plan_of(name, relation=relation, mechanism="laplace", eps=0.5)
    assert plan.event.eps == Fraction(1, 2)
    assert plan.event.delta == Fraction(1, 10**6)
    assert float(plan.event.rho) == pytest.approx(0.5 * math.tanh(0.25))
    assert plan.event.delta_alone is None


@pytest.mark.parametrize("name", ["count", "fused", "two"])
def test_a_gaussian_release_costs_eps_and_delta_or_rho_and_the_half_of_delta_for_keys(name):
    """sigma from (eps, delta/2): 4.3652 at (1, 1e-6)."""
    plan = plan_of(name, mechanism="gaussian")
    assert plan.event.eps == 1
    assert plan.event.delta == Fraction(1, 10**6)
    assert plan.event.delta_alone == Fraction(1, 2 * 10**6)
    assert float(plan.event.rho) == pytest.approx(1 / (2 * 4.3652**2), rel=1e-4)


def test_a_gaussian_release_falls_back_to_rho_when_delta_calls_lacks_its_half(quiet):
    frame = pl.DataFrame({"k": ["a"] * 100})
    with dp.Session(eps=3, delta=1e-6) as s:  # delta_calls = 5e-7
        frame.dp.groupby("k").count(eps=1, delta=8e-7, mechanism="gaussian")
        (row,) = s.report().to_dicts()
    assert row["eps"] is None
    assert row["delta"] == pytest.approx(4e-7)
    assert row["rho"] > 0
    with dp.Session(eps=3, delta=1e-6) as s:
        with pytest.raises(dp.BudgetExceeded) as e:
            frame.dp.groupby("k").count(eps=1, delta=8e-7, mechanism="laplace")
        assert e.value.component == "delta"
        with pytest.raises(dp.BudgetExceeded) as e:
            frame.dp.groupby("k").count(eps=1, delta=1.2e-6, mechanism="gaussian")
        assert e.value.component == "delta"
        assert s.report().height == 0


def test_one_call_is_one_line_of_the_account_with_its_delta(quiet, kind):
    frame = as_kind(kind, pl.DataFrame({"k": ["a"] * 100, "x": [1.0] * 100}))
    with dp.Session(eps=3, delta=1e-5) as s:
        frame.dp.groupby("k").dp_agg(n=dp.count(), m=dp.clip_mean("x", B=1), eps=1, delta=1e-6)
        (row,) = s.report().to_dicts()
        assert (row["eps"], row["delta"]) == (1.0, 1e-6)
        facts = s.last.facts
    assert float(facts["delta"]) == 1e-6
    assert float(facts["threshold"]["delta"]) == 1e-6, "the delta is the threshold's"
    assert facts["threshold"]["counted"] == "row"


def test_epsilons_of_single_questions_add_up_and_delta_goes_to_the_threshold(quiet):
    frame = pl.DataFrame({"k": ["a"] * 100, "x": [1.0] * 100})
    with dp.Session(eps=3, delta=1e-5):
        plan = (
            frame.dp.plan.groupby("k")
            .agg(
                n=dp.count(),
                s=dp.clip_sum("x", B=1),
                eps={"n": 0.5, "s": 0.25},
                delta=1e-6,
                mechanism="laplace",
            )
            .plan
        )
    assert plan.event.eps == Fraction(3, 4)
    assert plan.event.delta == Fraction(1, 10**6)
    assert plan.pieces[plan.threshold.coordinates[0]].noise.scale == 2


def test_explain_prints_threshold_and_odds(quiet):
    frame = pl.DataFrame({"k": ["a"]})
    with dp.Session(eps=3, delta=1e-5):
        text = str(frame.dp.plan.groupby("k").count(eps=1, delta=1e-6).explain())
    assert "threshold" in text
    assert "15" in text or "14" in text
    assert "1 1" in text or "1 9" in text or "1 8" in text, text  # a group of 1: about 1e-6


# ---- no keys and no delta ----


def test_without_keys_and_without_delta_both_ways_out_are_named(kind):
    frame = as_kind(kind, pl.DataFrame({"k": ["a"]}))
    with dp.Session(eps=1, delta=1e-6) as s:
        for call in (
            lambda: frame.dp.groupby("k").count(eps=0.5),
            lambda: frame.dp.groupby("k").dp_agg(n=dp.count(), eps=0.5),
            lambda: frame.dp.groupby("k").count(eps=0.5, delta=0),
        ):
            with pytest.raises(dp.InputError, match=r"keys=.*delta=|delta=.*keys="):
                call()
        assert s.report().height == 0


def test_keys_alone_need_eps_and_delta(kind):
    frame = as_kind(kind, pl.DataFrame({"k": ["a"]}))
    with dp.Session(eps=1, delta=1e-6) as s:
        groups = frame.dp.groupby("k")
        for options in ({"rho": 0.1, "delta": 1e-8}, {"delta": 1e-8}, {"error": 5, "delta": 1e-8}):
            with pytest.raises(dp.InputError):
                groups.keys(**options)
        with pytest.raises(dp.InputError, match=r"eps=.*delta=|keys=.*delta="):
            groups.keys(eps=0.5)
        with pytest.raises(dp.InputError, match="keys="):
            frame.dp.groupby("k", keys=["a"]).keys(eps=0.5, delta=1e-8)
        assert s.report().height == 0


# ---- measured ----

SINGLES = 500_000


@pytest.fixture(scope="module")
def singles():
    """Half a million keys with one row each, and ten that many rows have."""
    rng = np.random.default_rng(4)
    k = np.concatenate([np.arange(SINGLES), -np.repeat(np.arange(1, 11), 400)])
    x = rng.integers(0, 11, size=len(k))
    return pl.DataFrame({"k": k, "x": x, "y": rng.random(len(k)), "u": np.arange(len(k))})


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", ["count", "sum", "mean", "fused", "two"])
def test_of_half_a_million_lone_rows_no_more_appear_than_delta_allows(quiet, singles, name, mechanism):
    """delta = 1e-3; the number that appears is binomial. Laplace thresholds are tight, so it is not far fewer, too."""
    delta = Fraction(1, 1000)
    with dp.Session(eps=10**6, delta=0.5):
        bound = singles.dp.plan.groupby("k").agg(**questions(name), eps=1, delta=delta, mechanism=mechanism)
        table = bound.release().value
    lone = table.filter(pl.col("k") >= 0).height
    allowed = float(delta) if mechanism == "laplace" else float(delta) / 2
    assert lone <= laws.binom.isf(ALARM, SINGLES, allowed)
    value = int(thresholded(bound.plan, singles.head(1))[0])
    p, _ = appears(bound.plan, value)
    assert laws.binom.ppf(ALARM, SINGLES, p) <= lone <= laws.binom.isf(ALARM, SINGLES, p)
    assert set(range(-10, 0)) <= set(table["k"].to_list()), "groups of 400 appear"
    assert table["k"].is_sorted()


@pytest.mark.parametrize("rows", [1, 3])
def test_of_units_with_four_keys_of_their_own_no_more_are_betrayed_than_delta_allows(quiet, rows):
    """125,000 units with four keys each: those with a key that appears."""
    units, delta = 125_000, 1e-3
    frame = pl.DataFrame(
        {"u": np.repeat(np.arange(units), 4 * rows), "k": np.repeat(np.arange(4 * units), rows)}
    )
    with dp.Session(eps=10**6, delta=0.5, unit="u"):
        table = frame.dp.groupby("k", max_groups=4, max_rows_per_group=rows).count(
            eps=1, delta=delta, mechanism="laplace"
        )
    betrayed = len({k // 4 for k in table["k"].to_list()})
    assert betrayed <= laws.binom.isf(ALARM, units, delta)
    assert betrayed >= laws.binom.ppf(ALARM, units, delta * math.exp(-0.25) * 0.9)


def test_values_of_found_groups_are_noisy_and_unlike_each_other(quiet, kind):
    """300 groups of 1,000 rows at eps = .1: a noise of scale 10 that all share, or of none, has another spread.

    The sample mean of |noise| has relative standard error .058; 40 % is 7 of them.
    """
    frame = as_kind(kind, pl.DataFrame({"k": np.repeat(np.arange(300), 1000)}))
    with dp.Session(eps=10**6, delta=0.5):
        table = frame.dp.groupby("k").count(eps=0.1, delta=1e-6, mechanism="laplace")
    noise = np.asarray(table["count"]) - 1000
    assert len(noise) == 300
    assert 6 < np.abs(noise).mean() < 14
    assert len(set(noise.tolist())) > 20


# ---- what comes back ----


def test_rows_are_sorted_by_key_whatever_order_the_data_has(quiet, kind):
    rng = np.random.default_rng(3)
    keys = [(a, b) for a in ("z", "a", None, "m") for b in (3, None, -1)] * 60
    for _ in range(3):
        mixed = [keys[i] for i in rng.permutation(len(keys))]
        frame = pl.DataFrame(mixed, schema={"a": pl.String, "b": pl.Int64}, orient="row")
        with dp.Session(eps=10**6, delta=0.5):
            table = as_polars(as_kind(kind, frame).dp.groupby("a", "b").count(eps=100, delta=1e-3))
        got = table.select(pl.col("a").cast(pl.String), pl.col("b").cast(pl.Int64)).rows()
        assert got == sorted(
            set(keys), key=lambda r: (r[0] is not None, r[0] or "", r[1] is not None, r[1] or 0)
        )


def test_a_missing_key_is_a_group_like_any_other(quiet, kind):
    """Null and NaN are one group; alone it is as hidden as any."""
    frame = as_kind(kind, pl.DataFrame({"k": [1.0] * 90 + [None] * 40 + [math.nan] * 50 + [2.0]}))
    with dp.Session(eps=10**6, delta=0.5):
        table = as_polars(frame.dp.groupby("k").count(eps=100, delta=1e-9))
    rows = {None if k is None or math.isnan(k) else k: n for k, n in table.rows()}
    assert rows == {None: 90, 1.0: 90}


def test_minus_zero_never_shows(quiet, kind):
    """0.0 and -0.0 are one group; its printed sign must not tell that somebody's -0.0 came first."""
    for values in ([-0.0] + [0.0] * 99, [0.0] * 99 + [-0.0], [-0.0] * 100):
        frame = as_kind(kind, pl.DataFrame({"k": values}))
        with dp.Session(eps=10**6, delta=0.5):
            table = as_polars(frame.dp.groupby("k").count(eps=100, delta=1e-9))
        assert table["count"].to_list() == [100]
        assert math.copysign(1, table["k"][0]) == 1.0


POLARS_KEYS = {
    "string": pl.Series(["a", "b"]),
    "int8": pl.Series([1, 2], dtype=pl.Int8),
    "uint64": pl.Series([1, 2**64 - 1], dtype=pl.UInt64),
    "float32": pl.Series([0.5, 1.5], dtype=pl.Float32),
    "bool": pl.Series([True, False]),
    "date": pl.Series([dt.date(2026, 1, 1), dt.date(2026, 1, 2)]),
    "datetime": pl.Series([dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 2)]).dt.cast_time_unit("ms"),
    "zoned": pl.Series([dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 2)]).dt.replace_time_zone(
        "America/New_York"
    ),
    "duration": pl.Series([dt.timedelta(1), dt.timedelta(2)]),
    "enum": pl.Series(["b", "a"], dtype=pl.Enum(["b", "a"])),
    "categorical": pl.Series(["b", "a"], dtype=pl.Categorical),
    "decimal": pl.Series(["1.50", "2.50"]).cast(pl.Decimal(10, 2)),
}


def released(frame, **more):
    with dp.Session(eps=10**6, delta=0.5):
        return frame.dp.groupby("k").dp_agg(
            n=dp.count(), m=dp.clip_mean("x", bounds=(0, 1)), eps=50, delta=1e-9, **more
        )


@pytest.mark.parametrize("of", POLARS_KEYS)
@pytest.mark.parametrize("library", ["polars", "lazy", "pandas"])
def test_the_schema_is_the_same_whether_groups_are_released_or_none(quiet, library, of):
    """All released, some, none but a lone row, no row at all, a missing key: one schema."""
    if library == "pandas" and of in ("categorical", "decimal"):
        pytest.skip("has no plain dtype in pandas; see the test of pandas keys")
    one, two = POLARS_KEYS[of].head(1), POLARS_KEYS[of].tail(1)
    missing = pl.Series([None], dtype=one.dtype)
    x = pl.Series([0.5], dtype=pl.Float64)
    schemas, heights = set(), []
    columns = ([one] * 80 + [two] * 80, [one] * 80 + [two], [one], [], [missing] * 80 + [one] * 80)
    if library == "pandas" and one.dtype in (pl.Int8, pl.UInt64, pl.Boolean):
        columns = columns[:-1]  # NumPy's integers and Booleans have no missing value
    for parts in columns:
        k = pl.concat(parts) if parts else one.head(0)
        frame = as_kind(
            library, pl.DataFrame({"k": k, "x": pl.concat([x] * len(k)) if len(k) else x.head(0)})
        )
        table = released(frame)
        heights.append(len(table))
        dtypes = table.dtypes if isinstance(table, pl.DataFrame) else table.dtypes.to_dict().values()
        schemas.add((tuple(map(str, table.columns)), tuple(map(str, dtypes))))
    assert heights == [2, 1, 0, 0, 2][: len(heights)]
    assert len(schemas) == 1, schemas


PANDAS_KEYS = {  # two keys and, where the dtype has one, a missing value
    "object text": lambda k: pd.Series([[("b"), "a", None][i] for i in k], dtype=object),
    "category of text": lambda k: pd.Series(pd.Categorical.from_codes([i if i < 2 else -1 for i in k], ["b", "a"])),
    "category of int": lambda k: pd.Series(pd.Categorical.from_codes([i if i < 2 else -1 for i in k], [7, 3])),
    "category of bool": lambda k: pd.Series(pd.Categorical.from_codes([i if i < 2 else -1 for i in k], [True, False])),
    "category of float": lambda k: pd.Series(pd.Categorical.from_codes([i if i < 2 else -1 for i in k], [0.5, 0.25])),
    "period": lambda k: pd.Series(pd.PeriodIndex([["2026-01", "2026-02", None][i] for i in k], freq="M")),
    "datetime": lambda k: pd.Series(pd.DatetimeIndex([["2026-01-01", "2026-02-01", None][i] for i in k]).as_unit("ns")),
    "timedelta": lambda k: pd.Series(pd.to_timedelta([[1.0, 2.0, None][i] for i in k], unit="D").as_unit("ns")),
    "Int64": lambda k: pd.Series(pd.array([[1, 2, None][i] for i in k], dtype="Int64")),
    "boolean": lambda k: pd.Series(pd.array([[True, False, None][i] for i in k], dtype="boolean")),
    "string": lambda k: pd.Series(pd.array([["b", "a", None][i] for i in k], dtype="string")),
}  # fmt: skip


@pytest.mark.parametrize("of", PANDAS_KEYS)
def test_pandas_keys_that_nobody_listed_keep_their_dtype(quiet, of):
    """Two keys and a missing one, each often enough, in key order; and the same dtype with nothing released."""
    make = PANDAS_KEYS[of]
    tables = []
    for codes in ([0] * 60 + [1] * 60 + [2] * 60, [0] * 60 + [1] * 60, [2] * 60, [0], []):
        frame = pd.DataFrame({"k": make(codes), "x": 0.5})
        tables.append(released(frame))
    assert [len(t) for t in tables] == [3, 2, 1, 0, 0]
    assert len({str(t["k"].dtype) for t in tables}) == 1, [str(t["k"].dtype) for t in tables]
    assert {str(t["n"].dtype) for t in tables} == {"int64"}
    full = tables[0]
    assert sorted(full["n"]) == [60, 60, 60]
    assert full["k"].isna().sum() == 1
    kept = [v for v in full["k"] if not pd.isna(v)]
    assert kept == sorted(kept)
    expected = make([0, 1]).tolist()
    assert sorted(kept) == sorted(expected)


def test_intervals_that_nobody_listed_are_refused(quiet):
    """Their edges may come from the data; a release would show them, and codes by position would depend on others."""
    ages = [5.0, 30.0, math.nan] * 60
    for k in (pd.cut(ages, [0, 18, 65]), pd.arrays.IntervalArray.from_tuples([(0.0, 18.0)] * 180)):
        frame = pd.DataFrame({"k": k})
        with dp.Session(eps=10, delta=1e-3) as s:
            with pytest.raises(dp.InputError, match="keys="):
                frame.dp.groupby("k").count(eps=1, delta=1e-6)
            with pytest.raises(dp.InputError, match="keys="):
                frame.dp.groupby("k").keys(eps=1, delta=1e-6)
            assert s.report().height == 0


def test_cells_of_an_object_column_that_are_not_text_are_one_missing_group(quiet):
    cells = ["a"] * 60 + [1, 2.5, None, [1], {}, object(), dt.date(2026, 1, 1), b"a", math.nan] * 10
    frame = pd.DataFrame({"k": pd.Series(cells, dtype=object), "x": 0.5})
    table = released(frame)
    assert [(None if pd.isna(k) else k, n) for k, n in zip(table["k"], table["n"])] == [(None, 90), ("a", 60)]


def test_the_same_groups_are_found_on_every_library(quiet):
    rng = np.random.default_rng(9)
    frame = pl.DataFrame(
        {"k": rng.integers(0, 30, size=5000), "x": rng.random(5000), "g": rng.choice(list("ab"), 5000)}
    )
    tables = []
    for kind in KINDS:
        with dp.Session(eps=10**7, delta=0.5):
            table = (
                as_kind(kind, frame)
                .dp.groupby("g", "k")
                .dp_agg(
                    n=dp.count(),
                    m=dp.clip_mean("x", bounds=(0, 1), eps=10**6),
                    eps=10**5,
                    delta=1e-3,
                    round=4,
                )
            )
        tables.append(as_polars(table).select("g", "k", "n", "m").rows())
    assert len(tables[0]) == 60
    assert tables[0] == tables[1] == tables[2]


# ---- nothing tells what was dropped ----

CANARY = "CANARY_a_group_name_that_is_long_enough_for_a_buffer_{}"


def buffers(frame):
    """The memory behind a frame's columns, all of it."""
    table = frame.to_arrow(compat_level=pl.CompatLevel.newest())
    chunks = [chunk for column in table.columns for chunk in column.chunks]
    return [bytes(b) for chunk in chunks for b in chunk.buffers() if b is not None]


@pytest.mark.parametrize("what", ["count", "keys"])
@pytest.mark.parametrize("found", [1, 500])
def test_nothing_in_a_release_tells_which_or_how_many_groups_were_dropped(quiet, kind, what, found, tmp_path):
    """repr, html, facts, explain, report, pickle, buffers and files are equal in all but time and noise."""
    kept = [f"a group name that is released and long {i}" for i in range(3)]

    def look(dropped):
        keys = [k for k in kept for _ in range(200)] + [CANARY.format(i) for i in range(dropped)]
        frame = as_kind(kind, pl.DataFrame({"k": keys}))
        with dp.Session(eps=10**6, delta=0.5) as s:
            groups = frame.dp.plan.groupby("k")
            bound = groups.count(eps=20, delta=1e-9) if what == "count" else groups.keys(eps=20, delta=1e-9)
            release = bound.release()
            report = s.report().drop("time").rows()
        value = as_polars(release.value)
        assert value["k"].to_list() == kept
        stream = io.BytesIO()
        value.write_ipc(stream, compression="uncompressed")
        release.write(tmp_path / "t.csv")
        texts = [
            repr(release), release._repr_html_(), str(bound.explain()), repr(bound), repr(release.value),
            json.dumps(release.facts, default=str), (tmp_path / "t.csv").read_text(),
            (tmp_path / "t.csv.json").read_text(), repr(report),
        ]  # fmt: skip
        blobs = [pickle.dumps(release), pickle.dumps(release.value), stream.getvalue()]
        for t in texts:
            assert "CANARY" not in t
        for b in blobs:
            assert b"CANARY" not in b
        if isinstance(release._keys, pl.DataFrame):
            for b in buffers(release._keys):
                assert b"CANARY" not in b, "a column of the released names still holds the dropped ones"
        facts = {k: v for k, v in release.facts.items() if k != "time"}
        return facts, report, str(bound.explain()), [len(x) for x in release._noisy], len(pickle.dumps(value))

    assert look(0) == look(found)


# ---- keys alone ----

REFERENCE = {  # (eps, L0): sizes released with probability 1/2, .99, 1; and P(released) by size, at delta = 1e-6
    (0.5, 1): (26, 34, 51, {1: 1e-6, 5: 1.724e-5, 10: 2.272e-4, 14: 1.689e-3, 15: 2.786e-3, 20: 0.03395, 30: 0.9519}),
    (0.5, 4): (100, 132, 200, {1: 2.5e-7, 5: 1.63e-6, 10: 4.676e-6, 20: 2.1e-5, 50: 9.707e-4, 60: 3.393e-3, 100: 0.5038}),
    (0.5, 16): (399, 524, 797, {1: 6.25e-8, 5: 3.33e-7, 20: 1.71e-6, 100: 4.284e-5, 200: 1.018e-3, 256: 5.867e-3}),
    (1.0, 1): (14, 18, 28, {1: 1e-6, 5: 8.579e-5, 10: 0.01282, 14: 0.6999, 15: 0.8896, 20: 0.9993, 30: 1.0}),
    (1.0, 4): (53, 69, 106, {1: 2.5e-7, 5: 2.192e-6, 10: 9.843e-6, 20: 1.298e-4, 30: 1.591e-3, 50: 0.2362, 60: 0.9131}),
    (1.0, 16): (211, 274, 421, {1: 6.25e-8, 5: 3.555e-7, 60: 4.024e-5, 100: 5.01e-4, 200: 0.26, 256: 0.971}),
    (3.0, 1): (6, 7, 11, {1: 1e-6, 5: 0.1713, 10: 1.0, 14: 1.0}),
    (3.0, 4): (20, 25, 39, {1: 2.5e-7, 5: 9.293e-6, 10: 4.044e-4, 14: 8.128e-3, 15: 0.01721, 20: 0.6909, 30: 0.9998}),
    (3.0, 16): (77, 98, 153, {1: 6.25e-8, 5: 4.708e-7, 10: 1.673e-6, 30: 8.373e-5, 50: 3.573e-3, 60: 0.0233, 100: 0.9941}),
}  # fmt: skip


def selection_of(relation="add_remove", unit=None, eps=1, delta=1e-6, **limits):
    with dp.Session(eps=10**6, delta=0.5, neighbors=relation, unit=unit):
        return LONE.dp.plan.groupby("k", **limits).keys(eps=eps, delta=delta).plan


@pytest.mark.parametrize(("eps", "groups"), REFERENCE)
def test_keys_are_selected_with_the_optimal_probabilities(eps, groups):
    n50, n99, certain, keep = REFERENCE[eps, groups]
    plan = selection_of(unit="u", eps=eps, max_groups=groups)
    odds = plan.selection.odds
    for n, p in keep.items():
        assert odds(n) == pytest.approx(p, rel=1e-3)
    assert odds(0) == 0
    assert odds(n50) >= 0.5 > odds(n50 - 1)
    assert odds(n99) >= 0.99 > odds(n99 - 1)
    assert odds(certain) == pytest.approx(1, abs=1e-12)
    assert odds(certain - 1) < 1 - 1e-9
    assert plan.event.eps == Fraction(eps)
    assert plan.event.delta == Fraction(1, 10**6)


def exp_below(x):
    """A rational below exp(x), by less than one part in 10**60."""
    with mpmath.workdps(90):
        value = mpmath.exp(mpmath.mpf(x.numerator) / x.denominator)
        scaled = int(mpmath.floor(value * mpmath.mpf(10) ** 70))
    return Fraction(scaled - 1, 10**70)


@pytest.mark.parametrize(
    ("eps", "delta"),
    [
        (1, 1e-6),
        (0.5, 1e-9),
        (3, 1e-3),
        (Fraction(1, 16), 6.25e-8),
        (10, 1e-12),
        (0.01, 1e-3),
        (Fraction(1, 3), 0.1),
        (Fraction(2, 3), 0.1),
    ],
)
def test_the_drawn_probabilities_satisfy_both_inequalities_exactly(eps, delta):
    """p(n) <= e**eps p(n-1) + delta, and the same of not being released, in rationals; and hardly anything is lost."""
    selection = KeySelection(Fraction(eps).limit_denominator(10**6), delta)
    table = [Fraction(p, 2**128) for p in selection.table()]
    grow, d = exp_below(selection.eps), Fraction(delta)
    assert table[0] == 0
    for a, b in pairwise(table):
        assert a <= b <= 1
        assert b <= grow * a + d
        assert 1 - a <= grow * (1 - b) + d
        best = min(grow * a + d, 1 - (1 - a - d) / grow, Fraction(1))
        assert best - b <= Fraction(len(table), 2**120), "less than optimal"
    assert 1 - table[-1] <= Fraction(1, 2**100)


@pytest.mark.parametrize(("relation", "groups"), [(r, g) for r in RELATIONS for g in (1, 4)])
def test_keys_of_a_unit_share_eps_and_delta(relation, groups):
    """L0 keys of a unit, 2*L0 when a unit becomes another: basic composition gives back the whole."""
    plan = selection_of(relation, unit="u", max_groups=groups)
    many = groups * (2 if relation == "replace_one" else 1)
    assert plan.selection.eps * many == 1
    assert 1e-6 * (1 - 1e-8) <= union(plan.selection.delta, many) <= 1e-6
    rows = selection_of(relation)
    assert rows.selection.eps == (1 if relation == "add_remove" else Fraction(1, 2))


def test_the_share_of_delta_is_rounded_down():
    for delta in (Fraction(1, 10**6), Fraction(1, 3), Fraction(1, 1000), Fraction(1, 10**12)):
        for groups in (1, 2, 3, 4, 16, 1000):
            each = Fraction(per_key_delta(delta, groups))
            assert 1 - (1 - each) ** groups <= delta
            assert 1 - (1 - each * (1 + Fraction(1, 10**8))) ** groups >= delta


def test_measured_odds_of_keys_follow_the_table(quiet, kind):
    """20,000 keys of each size 1..8 at (1, .01): binomial, two-sided, 1e-9 each."""
    keys = 20_000
    sizes = np.repeat(np.arange(1, 9), keys)
    k = np.repeat(np.arange(len(sizes)), sizes)
    frame = as_kind(kind, pl.DataFrame({"k": k}))
    with dp.Session(eps=10**6, delta=0.5):
        bound = frame.dp.plan.groupby("k").keys(eps=1, delta=0.01)
        got = np.asarray(bound.release().value["k"])
    assert np.all(np.diff(got) > 0)
    p = 0.0
    for size in range(1, 9):
        p = min(math.e * p + 0.01, 1 - math.exp(-1) * (1 - p - 0.01), 1.0)
        assert bound.plan.selection.odds(size) == pytest.approx(p, rel=1e-9)
        n = int((got // keys == size - 1).sum())
        assert laws.binom.ppf(ALARM, keys, p) <= n <= laws.binom.isf(ALARM, keys, p)


def test_keys_count_units_not_rows(quiet, kind):
    """One unit with 10,000 rows is as hidden as one with a single row: 500 keys, P(any) < 500 * 1e-10."""
    k = np.repeat(np.arange(500), 20)
    heavy = pl.DataFrame({"u": k, "k": k})
    shared = pl.DataFrame({"u": np.arange(1000, 1200), "k": np.full(200, 7777)})
    frame = as_kind(kind, pl.concat([heavy, shared]))
    with dp.Session(eps=10**6, delta=0.5, unit="u", max_groups=1):
        table = frame.dp.groupby("k").keys(eps=1, delta=1e-10)
    assert list(table["k"]) == [7777]
    assert list(table.columns) == ["k"]


def test_keys_keep_their_schema_when_none_is_released(quiet, kind):
    schemas = set()
    for n in (0, 1, 500):
        frame = as_kind(
            kind, pl.DataFrame({"k": ["a"] * n, "j": [1] * n}, schema={"k": pl.String, "j": pl.Int64})
        )
        with dp.Session(eps=10**6, delta=0.5) as s:
            table = frame.dp.groupby("k", "j").keys(eps=1, delta=1e-9)
            (row,) = s.report().to_dicts()
            assert (row["eps"], row["delta"]) == (1.0, 1e-9)
        assert len(table) == (n == 500)
        dtypes = table.dtypes if isinstance(table, pl.DataFrame) else table.dtypes.to_dict().values()
        schemas.add((tuple(table.columns), tuple(map(str, dtypes))))
    assert len(schemas) == 1


def test_four_noises_together_are_thresholded_at_their_own_tail():
    """count() beside a variance of a column with missing cells: the triple and the missing rows."""
    frame = pl.DataFrame({"g": ["a"] * 3000, "x": [1.0, None, 3.0] * 1000})
    with dp.Session(eps=10, delta=1e-3) as s:
        bound = frame.dp.plan.groupby("g").dp_agg(
            n=dp.count(), v=dp.clip_var("x", bounds=(0, 4)), eps=1, delta=1e-6, mechanism="laplace"
        )
        t, noise = bound.plan.threshold, bound.plan.pieces[0].noise
        assert len(t.coordinates) == 4
        most = t.unit_steps
        assert noise.upper_tail(t.least - most, 4) <= 1e-6
        assert noise.upper_tail(t.least - most - 1, 4) > 1e-6 * (1 - 2**-29)
        drawn = sum(noise.sample(200_000) for _ in range(4))
        for k in (most, 3 * most):  # the tail is what is drawn: within 6 standard deviations
            p = noise.upper_tail(k, 4)
            assert abs(np.mean(drawn >= k) - p) < 6 * (p / 200_000) ** 0.5
        assert bound.release().value["g"].to_list() == ["a"]
        assert s.spent.delta == Fraction(1, 10**6)
