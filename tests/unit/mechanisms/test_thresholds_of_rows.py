"""Thresholds where any k rows are protected: the exact odds that any of their own keys appears, for every way to share them out.

Laws are written down anew and convolved (``threshold_tools``); the worst way to share rows out among keys is found by
trying all partitions, or by a recursion of this file's own.
"""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from chance import likely_hits, most_hits
from threshold_tools import appears, questions, thresholded

import dpframe as dp
from dpframe.mechanisms import thresholds
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.laplace import Laplace
from dpframe.mechanisms.thresholds import KeySelection, OwnKeys, least_of_rows

RELATIONS = ("add_remove", "replace_one")
MANY = (1, 2, 5, 36)


def partitions(n, most=None):
    """All ways to write n as a sum."""
    if n == 0:
        yield ()
        return
    for j in range(min(n, most or n), 0, -1):
        for rest in partitions(n - j, j):
            yield (j, *rest)


def worst(odds, k):
    """The largest probability, over all ways to share k rows out, that a key appears; ``odds(j)`` that one of j rows does."""
    hidden = [-math.log1p(-odds(j)) for j in range(1, k + 1)]

    @functools.cache
    def least_hidden(m):
        return max((hidden[j - 1] + least_hidden(m - j) for j in range(1, m + 1)), default=0.0)

    return -math.expm1(-least_hidden(k))


def plan_of(name, k, relation="add_remove", **options):
    frame = pl.DataFrame({"k": ["a"], "x": [1], "y": [2.0]})
    with dp.Session(eps=10**6, delta=0.5, neighbors=relation, contributions=k):
        return frame.dp.plan.groupby("k").agg(**questions(name), **options).plan


def lone(plan, k):
    """The integer that is compared, without noise, of keys of 1, 2, ... k rows of their own: the largest that rows make."""
    cells = [(10, 1.0), (0, 0.0), (None, None)]
    most = []
    for j in range(1, k + 1):
        rows = [
            pl.DataFrame(
                {"k": ["a"] * j, "x": [x] * j, "y": [y] * j},
                schema={"k": pl.String, "x": pl.Int64, "y": pl.Float64},
            )
            for x, y in cells
        ]
        most.append(max(int(thresholded(plan, r)[0]) for r in rows))
    return most


def test_the_recursion_finds_the_worst_partition():
    rng = np.random.default_rng(3)
    for k in (1, 2, 5, 9):
        odds = np.sort(rng.random(k) * 0.1)
        by_hand = max(-math.expm1(sum(math.log1p(-odds[j - 1]) for j in p)) for p in partitions(k))
        assert worst(lambda j, odds=odds: odds[j - 1], k) == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", ["count", "count x", "sum", "mean", "fused", "two"])
@pytest.mark.parametrize("k", MANY)
def test_no_key_of_k_rows_appears_with_probability_above_delta(k, name, mechanism, relation):
    """Exactly, and one lower would not do: with Gaussian noise, and where the law is followed by a continuous one, two to four."""
    delta = 1e-6
    plan = plan_of(name, k, relation, eps=1, delta=delta, mechanism=mechanism)
    assert plan.threshold.counted == "row"
    keys_delta = delta if mechanism == "laplace" else delta / 2
    assert float(plan.threshold.delta) == pytest.approx(keys_delta)
    values = lone(plan, k)
    found, error = worst(lambda j: appears(plan, values[j - 1])[0], k), appears(plan, values[0])[1]
    assert found <= keys_delta * (1 + error)
    t = plan.threshold
    convolved = plan.pieces[t.coordinates[0]].noise.scale <= 150
    slack = 1 if mechanism == "laplace" and convolved else 1 + len(t.coordinates)
    lower = plan.threshold.least - slack
    assert worst(lambda j: appears(plan, values[j - 1], lower)[0], k) > keys_delta * (1 - 1e-4)


@pytest.mark.parametrize("options", [{"eps": 1}, {"eps": 5}, {"rho": 0.1}, {"rho": 1}], ids=str)
@pytest.mark.parametrize("k", MANY)
def test_thresholds_on_a_joint_draw_too(k, options):
    """Of the number of rows that a draw for all columns holds; its tails are checked with the laws."""
    plan = plan_of("two", k, delta=1e-6, **options)
    t = plan.threshold
    noise = plan.pieces[t.coordinates[0]].noise
    for least, within in ((t.least, True), (t.least - 1, False)):
        odds = worst(lambda j, least=least: noise.upper_tail(least - j * t.unit_steps, len(t.coordinates)), k)
        assert (odds <= float(t.delta)) is within


def test_one_row_has_the_threshold_of_rows():
    for name, relation in itertools.product(("count", "mean", "two"), RELATIONS):
        with dp.Session(eps=10**6, delta=0.5, neighbors=relation):
            frame = pl.DataFrame({"k": ["a"], "x": [1], "y": [2.0]})
            today = frame.dp.plan.groupby("k").agg(**questions(name), eps=1, delta=1e-6).plan
        assert plan_of(name, 1, relation, eps=1, delta=1e-6) == today


def test_the_reference_of_36_rows():
    """36 keys of one row each: 36 * q**(T - 1) / (1 + q) <= 1e-6, q = exp(-1/36)."""
    q = math.exp(-1 / 36)
    for delta in (1e-3, 1e-6, 1e-9):
        plan = plan_of("count", 36, eps=1, delta=delta, mechanism="laplace")
        assert plan.threshold.least == 1 + math.ceil(math.log(delta * (1 + q) / 36) / math.log(q))


class Stairs:
    """A law of few, uneven steps."""

    def __init__(self, tails):
        self.tails = tails

    def prepare(self, exact):
        return exact

    def upper_tail(self, k, draws=1):
        return 1.0 if k <= 0 else self.tails[k - 1] if k <= len(self.tails) else 0.0


def test_on_coarse_laws_every_partition_is_looked_at():
    """Six rows as 4 + 2: neither six of one, two of three, three of two, nor one of six are as likely to show.

    At each delta between the odds of the worst of those and the worst of all, a rule that looked at those alone
    would have a lower threshold.
    """
    law = Stairs([0.5, 0.4, 0.4, 0.03, 0.03, 0.012, 0.012, 0.0001, 0.0001, 0.0001])

    def most(least, ways):
        return max(1 - math.prod(1 - law.upper_tail(least - j) for j in p) for p in ways)

    equal = [(j,) * (6 // j) for j in (1, 2, 3, 6)]
    told = 0
    for least in range(7, 18):
        some, every = most(least, equal), most(least, partitions(6))
        if some < 0.99 * every:
            told += 1
            delta = Fraction((some + every) / 2)
            found = least_of_rows(law, 1, 1, 6, delta)
            assert found > least
            assert most(found, partitions(6)) <= float(delta) < most(found - 1, partitions(6))
    assert told, "equal groups would do, and this law shows nothing"


@pytest.mark.parametrize("eps", [Fraction(1, 100), Fraction(1), Fraction(8), Fraction(100)])
def test_of_very_many_rows_a_bound_is_little_above(eps, monkeypatch):
    """Beyond 512 rows partitions are bounded: at least the exact threshold, and hardly more."""
    k = 1200
    noise = Laplace().calibrate(Fraction(k), 1, Target(eps))
    bound = least_of_rows(noise, 1, 1, k, Fraction(1, 10**6))
    monkeypatch.setattr(thresholds, "_EXACT", k)
    exact = least_of_rows(noise, 1, 1, k, Fraction(1, 10**6))
    assert exact <= bound <= exact * 1.01 + 1
    assert OwnKeys(k, k, shared=True).least(noise, 1, 1, Fraction(1, 10**6)) == exact


def test_a_bound_covers_every_size_in_between(monkeypatch):
    """Where h(j)/j is largest between two sizes that are looked at."""
    monkeypatch.setattr(thresholds, "_EXACT", 4)
    sizes = thresholds._sizes(40)
    assert sizes[:4] == [1, 2, 3, 4]
    assert sizes[-1] == 40
    for rows, start in itertools.product(range(5, 41), range(1, 41)):  # steps in every place
        if start <= rows:
            sizes = thresholds._sizes(rows)
            assert thresholds._best([float(j >= start) for j in sizes], sizes) >= rows // start


# ---- keys alone ----


@pytest.mark.usefixtures("only_geometric")
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("eps", [Fraction(1, 2), Fraction(1), Fraction(6), Fraction(60)])
@pytest.mark.parametrize("k", MANY)
def test_keys_of_k_rows_cost_what_is_charged(k, eps, relation):
    """From the very integers that are drawn with: what a key of j rows more costs beside j parts of eps, over all partitions.

    Under replace_one k rows come and k go, each side with half of eps.
    """
    delta, one = Fraction(1, 10**6), 1 << 128
    with dp.Session(eps=10**6, delta=0.5, neighbors=relation, contributions=k):
        plan = pl.DataFrame({"k": ["a"]}).dp.plan.groupby("k").keys(eps=eps, delta=delta).plan
    assert (plan.event.eps, plan.event.delta) == (eps, delta)
    sides = 1 if relation == "add_remove" else 2
    p = [Fraction(x, one) for x in plan.selection.table()]
    p += [p[-1]] * k
    each = [0.0]
    for j in range(1, k + 1):
        grow = Fraction(math.exp(float(eps) * j / (k * sides)) * (1 - 1e-12))
        beside = [max(p[n] - grow * p[n - j], (1 - p[n - j]) - grow * (1 - p[n])) for n in range(j, len(p))]
        each.append(max(0.0, float(max(beside)), float(p[j])))
    assert 1 - (1 - worst(lambda j: each[j], k)) ** sides == pytest.approx(float(delta), rel=2e-6)
    assert plan.selection.odds(0) == 0


@pytest.mark.usefixtures("only_geometric")
def test_keys_that_no_table_holds_are_refused_before_the_charge():
    with dp.Session(eps=1, delta=1e-3, contributions=10**6) as s:
        with pytest.raises(
            dp.MechanismError, match=r"groups of more than .* rows, beyond what is drawn"
        ) as e:
            pl.DataFrame({"k": ["a"]}).dp.groupby("k").keys(eps=0.1, delta=1e-6)
        assert "Hint" in str(e.value)
        assert s.spent == 0


def test_half_odds_of_keys_are_those_of_one_unit_times_the_rows():
    """p_n = delta * (e**(n*eps/k) - 1)/(e**eps - 1) up to one half."""
    for k in (2, 36):
        found = KeySelection.of_rows(Fraction(1), 1e-6, k)
        assert found.size == math.ceil(k * math.log1p((math.e - 1) / 2e-6))
        assert found.odds(k) == pytest.approx(1e-6, rel=1e-6)


@pytest.mark.parametrize("split", [(1,) * 6, (6,), (4, 2)], ids=str)
def test_of_sets_of_six_lone_rows_no_more_are_betrayed_than_delta_allows(split, quiet):
    """20,000 sets of six rows with keys of their own, shared out alike; those with a key that appears are binomial."""
    sets, delta = 20_000, 0.01
    sizes = np.tile(split, sets)
    frame = pl.DataFrame({"k": np.repeat(np.arange(len(sizes)), sizes)})
    with dp.Session(eps=10**6, delta=0.5, contributions=6):
        bound = frame.dp.plan.groupby("k").count(eps=1, delta=delta, mechanism="laplace")
        shown = bound.release().value["k"].to_numpy()
    betrayed = len(np.unique(shown // len(split)))
    by_law = 1 - math.prod(1 - appears(bound.plan, j)[0] for j in split)
    assert by_law <= delta
    assert betrayed <= most_hits(sets, delta)
    assert betrayed in likely_hits(sets, by_law)
