"""One row of a unit counts in a group: rows and units are one number there, paid for once.

The threshold of a count at (1, 1e-6) is that of one discrete Laplace noise of scale 1, computed here by hand.
"""

from __future__ import annotations

import math

import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from conftest import exact_integers

ROWS = {
    "user": [1, 1, 1, 2, 3, 3, 4, None, 5],
    "g": ["a", "a", "b", "a", "b", "b", "b", "a", "c"],
    "x": [1.0, 2.0, 3.0, None, 5.0, 6.0, 7.0, 8.0, None],
}
COUNTS = {"a": 2, "b": 3, "c": 1}  # users of each group (everybody keeps all groups)
LIMITS = {"max_groups": 2, "max_rows_per_group": 1}
each_frame = pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame, lambda d: pl.DataFrame(d).lazy()])


def one_laplace_threshold(eps, delta, groups, twice):
    """Least T with P(1 + noise >= T) <= delta', of the discrete Laplace with q = e**(-eps/(twice*groups))."""
    q, each = math.exp(-eps / (groups * twice)), 1 - (1 - delta) ** (1 / groups)
    k = 0
    while q**k / (1 + q) > each:
        k += 1
    return 1 + k


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("groups", [1, 3])
def test_found_groups_of_units_have_one_noise_and_its_threshold(relation, groups):
    session = dp.Session(eps=100, delta=1e-2, unit="user", neighbors=relation)
    with session:
        plan = pl.DataFrame(ROWS).dp.plan.groupby("g").count_units(eps=1, delta=1e-6, max_groups=groups).plan
    twice = 2 if relation == "replace_one" else 1
    assert len(plan.pieces) == 1
    assert plan.threshold.size == one_laplace_threshold(1, 1e-6, groups, twice)
    q = math.exp(-1 / (groups * twice))
    assert plan.pieces[0].noise.std == pytest.approx(math.sqrt(2 * q) / (1 - q), rel=1e-6)
    assert plan.threshold.counted == "user"


def test_listed_groups_pay_once_for_rows_and_units():
    with dp.Session(eps=1, unit="user"):
        both = pl.DataFrame(ROWS).dp.plan.groupby("g", keys=["a", "b"])
        plan = both.dp_agg(n=dp.count(), u=dp.count_units(), eps=1, **LIMITS).plan
        alone = both.count(eps=1, **LIMITS).plan
    assert len(plan.pieces) == 1
    assert plan.scale == {"n": alone.scale, "u": alone.scale}


def test_several_rows_of_a_unit_are_two_numbers_still():
    with dp.Session(eps=1, unit="user"):
        both = pl.DataFrame(ROWS).dp.plan.groupby("g", keys=["a", "b"])
        plan = both.dp_agg(n=dp.count(), u=dp.count_units(), eps=1, max_groups=2, max_rows_per_group=2).plan
    assert len(plan.pieces) == 2


@each_frame
def test_rows_and_units_are_the_same_integers(make, no_noise):
    with dp.Session(eps=1e9, unit="user"):
        out = (
            make(ROWS)
            .dp.groupby("g", keys=["a", "b", "c", "d"])
            .dp_agg(n=dp.count(), u=dp.count_units(), m=dp.clip_mean("x", bounds=(0, 10)), eps=1, **LIMITS)
        )
    assert list(out["n"]) == list(out["u"]) == [*COUNTS.values(), 0]


@pytest.mark.parametrize("found", [False, True])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_one_unit_moves_what_is_released_as_far_as_declared(no_noise, relation, found):
    """Unit 9 comes, goes, or becomes another set of rows; in groups of 80, which every threshold lets through."""
    base = [(100 * i + u, g, 1.0) for i, g in enumerate("abc", start=1) for u in range(80)]
    sets = [[], [(9, "a", 1.0)] * 5, [(9, g, None) for g in "abc"], [(9, g, 2.0) for g in "bc" for _ in "12"]]

    def integers(rows):
        frame = pl.DataFrame(
            base + rows, schema={"user": pl.Int64, "g": pl.String, "x": pl.Float64}, orient="row"
        )
        with dp.Session(eps=1e9, delta=1e-2, unit="user", neighbors=relation):
            keys = {} if found else {"keys": ["a", "b", "c"]}
            delta = {"delta": 1e-6} if found else {}
            grouped = frame.dp.plan.groupby("g", **keys)
            bound = grouped.dp_agg(
                n=dp.count(), u=dp.count_units(), m=dp.clip_mean("x", B=4), eps=1, **delta, **LIMITS
            )
            (part,) = bound.plan.parts
            return exact_integers(bound), part

    worst = 0
    for one in sets:
        for two in sets:
            if relation == "add_remove" and one and two:
                continue
            (a, part), (b, _) = integers(one), integers(two)
            moved = sum(abs(x - y) for p, q in zip(a, b) for x, y in zip(p, q))
            assert moved <= part.l1
            worst = max(worst, moved / part.l1)
    assert worst == 1
