"""explain() says of each limit on a unit what it may cut and what it costs, and nothing of those that cut nothing."""

from __future__ import annotations

import polars as pl
import pytest

import dpframe as dp

FRAME = pl.DataFrame({"u": ["a", "b"] * 4, "g": ["x", "y", "x", "x"] * 2, "x": [1.0, 2.0, 3.0, 4.0] * 2})
KEYS = ["x", "y", "z"]
BOTH = {"max_groups": 2, "max_rows_per_group": 4}


def limits(ask, **session):
    with dp.Session(eps=100, delta=0.1, unit="u", **session):
        lines = ask(FRAME.dp.plan, FRAME.dp.plan.groupby("g", keys=KEYS)).explain().lines
    return {x.label: x.text for x in lines if x.label in ("max_rows", "rows/group", "max_groups")}


ROWS = "a u with more in a group counts for 4 rows; noise × 4"
CASES = {
    "rows": (
        lambda p, g: p.count(eps=1, max_rows=5),
        {"max_rows": "a u with more counts for 5 rows; noise × 5"},
    ),
    "one row": (
        lambda p, g: p.count(eps=1, max_rows=1),
        {"max_rows": "a u with more counts for 1 row; noise × 1"},
    ),
    "units": (lambda p, g: p.count_units(eps=1), {}),
    "groups": (
        lambda p, g: g.count(eps=1, **BOTH),
        {"rows/group": ROWS, "max_groups": "a u in more groups counts in 2 of them; noise × 2"},
    ),
    "squares": (
        lambda p, g: g.count(rho=0.1, **BOTH),
        {"rows/group": ROWS, "max_groups": "a u in more groups counts in 2 of them; noise × 1.41"},
    ),
    "all groups": (lambda p, g: g.count(eps=1, max_groups=3, max_rows_per_group=4), {"rows/group": ROWS}),
    "units in groups": (
        lambda p, g: g.count_units(eps=1, max_groups=2),
        {"max_groups": "a u in more groups counts in 2 of them; noise × 2"},
    ),
    "the groups are the units": (
        lambda p, g: p.groupby("u", keys=["a", "b"]).count(eps=1, max_rows_per_group=4),
        {"rows/group": ROWS, "max_groups": "a u in more groups counts in 1 of them; noise × 1"},
    ),
    "all together": (
        lambda p, g: g.count(eps=1, max_rows=9, max_rows_per_group=4),
        {
            "rows/group": "a u with more in a group counts for 4 rows; noise × 4",
            "max_rows": "a u with more than 9 rows in these groups counts for 9, shared out in proportion;"
            " noise for 9 rows; without max_rows for 12 (3 × 4)",
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_limit_is_told_with_what_it_cuts_and_costs(case):
    ask, said = CASES[case]
    assert limits(ask) == said


def test_what_is_said_of_the_noise_is_so():
    with dp.Session(eps=100, delta=0.1, unit="u"):
        g = FRAME.dp.plan.groupby("g", keys=KEYS)
        one = g.count(eps=1, max_groups=1, max_rows_per_group=1).plan
        assert g.count(eps=1, **BOTH).plan.l1 == 2 * 4 * one.l1
        one = g.count(rho=0.1, max_groups=1, max_rows_per_group=1).plan
        assert g.count(rho=0.1, **BOTH).plan.l2 == pytest.approx(1.41 * 4 * one.l2, rel=1e-2)


def test_where_each_row_is_protected_there_is_no_limit():
    with dp.Session(eps=1):
        assert "max_groups" not in str(FRAME.dp.plan.groupby("g", keys=KEYS).count(eps=1).explain())
