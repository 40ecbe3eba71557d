"""Keys by the weights of units: exact odds of a unit's own keys, the rule that is taken, what it costs.

Odds are computed anew: the drawn law is a Gaussian rounded to the nearest whole number, so P(w + X >= T) is
Phi((w - T + 1/2)/sigma), in 30 digits; weights are the largest whole numbers whose squares fit.
"""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import polars as pl
import pytest
from scipy.special import log_ndtr, ndtr

import dpframe as dp
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.thresholds import per_key_delta
from dpframe.planning import key_rules

pytestmark = pytest.mark.usefixtures("quiet")
W = 2**20
LONE = pl.DataFrame({"k": ["a"], "u": [1]})
each_relation = pytest.mark.parametrize("relation", ["add_remove", "replace_one"])


def plan_of(groups, relation="add_remove", delta=1e-6, **spend):
    """The weighted rule's plan, whether it is the best one or not."""
    with dp.Session(eps=10**6, delta=0.5, neighbors=relation, unit="u"), pytest.MonkeyPatch.context() as m:
        m.setattr(key_rules, "NEAR", math.inf)
        plan = LONE.dp.plan.groupby("k", max_groups=groups).keys(delta=delta, **(spend or {"eps": 1})).plan
    assert plan.mechanism == "weighted gaussian"
    return plan


def weight(t):
    return math.isqrt(W * W // t)


def log_odds(plan, t, least=None):
    """log P(one key of a unit in t groups is told), for one t or an array of them."""
    sigma = float(plan.pieces[0].noise.scale)
    w = np.array([weight(x) for x in np.atleast_1d(t)], dtype=np.float64)
    return log_ndtr((w - (plan.threshold.least if least is None else least) + 0.5) / sigma)


@each_relation
@pytest.mark.parametrize("eps", [0.1, 1, 5])
@pytest.mark.parametrize("groups", [1, 2, 3, 4, 10, 16, 50, 100, 300, 1000])
def test_none_of_a_units_own_keys_is_told_with_more_than_half_of_delta(relation, eps, groups):
    """For every number t of groups up to max_groups; and a threshold one unit step lower would not do."""
    plan = plan_of(groups, relation, eps=eps)
    t = np.arange(1, groups + 1)
    any_of = -np.expm1(t * np.log1p(-np.exp(log_odds(plan, t))))
    assert any_of.max() <= 5e-7
    lower = -np.expm1(t * np.log1p(-np.exp(log_odds(plan, t, plan.threshold.least - 1))))
    assert lower.max() > 5e-7 * (1 - 1e-8), "the threshold is higher than it must be"
    assert plan.threshold.delta == Fraction(1, 2 * 10**6)


@each_relation
@pytest.mark.parametrize("groups", [1, 7, 1000])
def test_the_worst_unit_in_thirty_digits(relation, groups):
    plan = plan_of(groups, relation)
    t = int(np.argmax(np.arange(1, groups + 1) * np.exp(log_odds(plan, np.arange(1, groups + 1))))) + 1
    sigma = plan.pieces[0].noise.scale
    with mpmath.workdps(30):
        x = (weight(t) - plan.threshold.least + mpmath.mpf(1) / 2) / (
            mpmath.mpf(sigma.numerator) / sigma.denominator
        )
        assert 1 - (1 - mpmath.ncdf(x)) ** t <= mpmath.mpf(5) / 10**7


def test_the_noise_is_rounded_and_the_threshold_knows_it():
    """A threshold from the continuous law, rounded up, is reached too often where steps are coarse."""
    noise = dp.mechanism("gaussian").calibrate(Fraction(1), 1, Target(Fraction(5), Fraction(1, 100)))
    delta, most = float(ndtr(-2 / float(noise.scale))), np.array([1], dtype=np.int64)
    least = key_rules.least_for_all(noise, most, [delta])
    assert float(noise.cdf(most - 3)[0]) > delta >= float(noise.cdf(most - least)[0])
    assert least == 4


@each_relation
@pytest.mark.parametrize("eps", [0.1, 1, 5])
def test_noise_is_made_for_a_norm_of_one_weight_at_half_of_delta(relation, eps):
    """sigma/W is that of the Gaussian mechanism at (eps, delta/2) and sensitivity 1 (replace_one: sqrt(2))."""
    plan = plan_of(50, relation, eps=eps)
    far = math.sqrt(2) if relation == "replace_one" else 1.0
    sigma = float(plan.pieces[0].noise.scale) / W / far
    a, b = 1 / (2 * sigma), eps * sigma
    delta = mpmath.ncdf(a - b) - mpmath.exp(eps) * mpmath.ncdf(-a - b)
    assert 5e-7 * (1 - 1e-6) < delta <= 5e-7
    (part,) = plan.parts
    assert part.l2_squared == (2 if relation == "replace_one" else 1) * W * W
    assert part.l1 == (2 if relation == "replace_one" else 1) * math.isqrt(50 * W * W)
    assert plan.event.eps == Fraction(eps).limit_denominator(10)
    assert plan.event.delta == Fraction(1, 10**6)
    assert plan.event.delta_alone == Fraction(1, 2 * 10**6)
    assert float(plan.event.rho) == pytest.approx(1 / (2 * sigma**2), rel=1e-6)


def test_at_rho_the_keys_have_all_of_delta():
    plan = plan_of(16, rho=0.1)
    assert float(plan.pieces[0].noise.scale) == pytest.approx(W / math.sqrt(0.2), rel=1e-9)
    assert (plan.event.eps, plan.event.delta, float(plan.event.rho)) == (None, Fraction(1, 10**6), 0.1)
    assert plan.threshold.delta == Fraction(1, 10**6)
    t = np.arange(1, 17)
    any_of = -np.expm1(t * np.log1p(-np.exp(log_odds(plan, t))))
    assert 9.9e-7 < any_of.max() <= 1e-6


def test_sessions_in_rho_find_keys(kind):
    from conftest import as_kind

    frame = as_kind(kind, pl.DataFrame({"k": ["a"] * 500 + ["b"], "u": range(501)}))
    with dp.Session(rho=1, delta_calls=1e-6, unit="u") as s:
        assert list(frame.dp.groupby("k", max_groups=5).keys(rho=0.5, delta=1e-9)["k"]) == ["a"]
        (row,) = s.report().to_dicts()
    assert (row["eps"], row["delta"], row["rho"]) == (None, 1e-9, 0.5)
    frame = as_kind(kind, pl.DataFrame({"k": ["a"] * 500 + ["b"]}))
    with dp.Session(rho=1, delta_calls=1e-6) as s:
        assert list(frame.dp.groupby("k").keys(rho=0.5, delta=1e-9)["k"]) == ["a"]


# ---- which rule ----


def rules_of(groups, relation="add_remove", unit="u", eps=1, delta=1e-6):
    with dp.Session(eps=10**6, delta=0.5, neighbors=relation, unit=unit):
        limits = {"max_groups": groups} if unit else {}
        return LONE.dp.plan.groupby("k", **limits).keys(eps=eps, delta=delta)


def odds_of(plan, size):
    return plan.selection.odds(size) if plan.selection else plan.threshold.odds(plan.laws[0], size)


@each_relation
@pytest.mark.parametrize("eps", [0.01, 0.1, 1, 5, 50])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
def test_the_rule_that_is_taken_tells_the_smallest_groups(relation, eps, delta):
    """Or the weighted one, where a group needs at most a tenth more."""
    for groups in (1, 2, 3, 4, 8, 16, 100):
        plan = rules_of(groups, relation, eps=eps, delta=delta).plan
        sizes = dict(plan.rules)
        assert set(sizes) == {"truncated geometric", "laplace", "gaussian", "weighted gaussian"}
        best, near = min(sizes.values()), sizes["weighted gaussian"]
        if plan.mechanism == "weighted gaussian":
            assert near <= 1.1 * best
        else:
            assert sizes[plan.mechanism] == best
            assert near > 1.1 * best
        size = sizes[plan.mechanism]
        assert odds_of(plan, math.ceil(size)) >= 0.5 - 1e-3
        assert odds_of(plan, math.floor(size) - 1) < 0.5


def test_one_group_or_a_row_as_the_unit_is_for_the_geometric_rule():
    assert rules_of(1).plan.mechanism == "truncated geometric"
    assert rules_of(None, unit=None).plan.mechanism == "truncated geometric"
    assert [rules_of(n).plan.mechanism for n in (3, 16, 1000)] == ["weighted gaussian"] * 3


def test_the_choice_is_the_same_for_every_frame_of_the_same_types():
    plans = set()
    for rows in (0, 1, 7, 4000):
        frame = pl.DataFrame({"k": ["a"] * rows, "u": range(rows)}, schema={"k": pl.String, "u": pl.Int64})
        with dp.Session(eps=10**6, delta=0.5, unit="u"):
            plans.add(frame.dp.plan.groupby("k", max_groups=3).keys(eps=1, delta=1e-6).plan)
    assert len(plans) == 1


@pytest.mark.parametrize("eps", [Fraction(1, 10**7), Fraction(1, 10**9)])
def test_a_tiny_eps_needs_no_table_that_is_too_long(eps):
    bound = rules_of(1, eps=eps, delta=1e-12)
    assert "truncated geometric" not in dict(bound.plan.rules)
    assert str(bound.explain())


@pytest.mark.parametrize("groups", [1, 2, 5])
def test_even_odds_of_the_geometric_rule_without_its_table(groups):
    for eps in (0.01, 0.3, 1, 4, 150, 10**4):
        each = per_key_delta(Fraction(1, 10**6), groups)
        about = key_rules.even_odds(eps / groups, each)
        exact = key_rules.KeySelection(Fraction(eps).limit_denominator(1000) / groups, each).size
        assert exact - 2 <= about <= exact * 1.01 + 1


# ---- what is said ----


def test_explain_facts_and_statement_name_the_rule():
    frame = pl.DataFrame({"k": ["a"] * 900, "u": range(900)})
    with dp.Session(eps=3, delta=1e-5, unit="u") as s:
        bound = frame.dp.plan.groupby("k", max_groups=16).keys(eps=1, delta=1e-6)
        said = str(bound.explain())
        bound.release()
        fact = s.last.facts["threshold"]
        text = " ".join(str(s.statement()).split())
        page = s.last._repr_html_()
        (row,) = s.report().to_dicts()
    assert (
        "keys        by weighted gaussian; even odds by other rules at truncated geometric 211, laplace 256, gaussian 96"
        in said
    )
    assert "about 95.49 distinct u (if each is in 16 groups, fewer if in fewer)" in said
    assert (fact["rule"], fact["filled"], fact["delta"]) == ("weighted gaussian", 16, "5e-07")
    assert fact["weights"] == "1/sqrt(groups of the u)"
    assert fact["least"] == pytest.approx(95.49, abs=0.01)
    assert (
        "fewer than about 95.49 u (each of them in 16 groups; fewer where they are in fewer) are mostly missing"
        in text
    )
    assert "weighted gaussian" in page
    assert row["mechanism"] == "weighted gaussian"
    with dp.Session(eps=3, delta=1e-5, unit="u") as s:
        frame.dp.groupby("k", max_groups=1).keys(eps=1, delta=1e-6)
        assert s.last.facts["threshold"] == {
            "even_odds": 14, "counted": "u", "delta": "1e-06", "rule": "truncated geometric",
        }  # fmt: skip


@pytest.mark.parametrize("limit", ["max_rows_per_group", "max_rows"])
def test_limits_on_rows_are_refused_as_a_unit_counts_once(limit):
    with dp.Session(eps=3, delta=1e-5, unit="u", max_groups=2, max_rows_per_group=3) as s:
        with pytest.raises(
            dp.InputError, match=f"^{limit}= says .* it counts once in a group. Hint: leave it out"
        ):
            LONE.dp.groupby("k", **{limit: 3}).keys(eps=1, delta=1e-6)
        assert s.spent == 0
        LONE.dp.groupby("k").keys(eps=1, delta=1e-6)  # those of the session are for other calls


def test_a_stored_answer_of_weighted_keys_is_answered_again(tmp_path, kind):
    from conftest import as_kind

    frame = as_kind(kind, pl.DataFrame({"k": ["a"] * 900 + ["b"], "u": range(901)}))
    dp.Ledger.create(tmp_path / "b.db", eps=3, delta=1e-5, unit="u").close()
    with dp.Session(ledger=tmp_path / "b.db") as s:
        groups = frame.dp.groupby("k", max_groups=16)
        first = groups.keys(eps=1, delta=1e-6, request_id="r")
        again = groups.keys(eps=1, delta=1e-6, request_id="r")
        assert list(first["k"]) == list(again["k"]) == ["a"]
        assert [(r["eps"], r["delta"]) for r in s.report().to_dicts()] == [(1.0, 1e-6), (0.0, 0.0)]
