"""Keys alone: the optimal probabilities, drawn exactly, and counts of units, not of rows."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import chance
import mpmath
import numpy as np
import polars as pl
import pytest
from scipy import stats as laws
from threshold_tools import union

import dpframe as dp
from conftest import as_kind
from dpframe.mechanisms.thresholds import KeySelection, per_key_delta

RELATIONS = ("add_remove", "replace_one")
ALARM = chance.ALARM


# ---- thresholds ----

LONE = pl.DataFrame({"k": ["a"], "x": [1], "y": [2.0], "u": [1]})


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


@pytest.mark.usefixtures("only_geometric")
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


@pytest.mark.usefixtures("only_geometric")
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
