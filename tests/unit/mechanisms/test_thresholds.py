"""Groups that nobody listed: thresholds against the exact law, what a lone key risks, what the release costs.

Thresholds are checked by an independent computation: the integer laws are written down anew and convolved
directly (coarse grids), or compared with the continuous law of the sum, which a grid of 2**20 steps or more
follows to a part in 10**4. Continuous reference values are those of the mathematics.
"""

from __future__ import annotations

import math
from fractions import Fraction

import chance
import numpy as np
import polars as pl
import pytest
from scipy.special import ndtri
from threshold_tools import appears, questions, thresholded, union

import dpframe as dp
from conftest import as_kind

RELATIONS = ("add_remove", "replace_one")
each_relation = pytest.mark.parametrize("relation", RELATIONS)


# ---- thresholds ----

LONE = pl.DataFrame({"k": ["a"], "x": [1], "y": [2.0], "u": [1]})


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
    draws = 2 if name == "two" else 1  # of eps/2 each
    assert float(plan.event.rho) == pytest.approx(0.5 * math.tanh(0.25 / draws))
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


def test_keys_alone_need_delta_and_eps_or_rho(kind):
    frame = as_kind(kind, pl.DataFrame({"k": ["a"]}))
    with dp.Session(eps=1, delta=1e-6) as s:
        groups = frame.dp.groupby("k")
        for options in ({"rho": 0.1}, {"delta": 1e-8}):
            with pytest.raises(dp.InputError):
                groups.keys(**options)
        with pytest.raises(TypeError, match="keys has no argument 'error'"):
            groups.keys(error=5, delta=1e-8)
        with pytest.raises(dp.InputError, match=r"eps=.*delta=|keys=.*delta="):
            groups.keys(eps=0.5)
        with pytest.raises(dp.InputError, match="keys="):
            frame.dp.groupby("k", keys=["a"]).keys(eps=0.5, delta=1e-8)
        assert s.report().height == 0


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
        for k in (most, 3 * most):  # the tail is what is drawn (false alarm: 1e-10 each)
            assert np.count_nonzero(drawn >= k) in chance.likely_hits(200_000, noise.upper_tail(k, 4))
        assert bound.release().value["g"].to_list() == ["a"]
        assert s.spent.delta == Fraction(1, 10**6)
