"""Cells that add up with a total where units are limited: one limit over all groups and for the whole frame."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.frames.contract import ROW_STEPS

KEYS = list("abc")
pytestmark = pytest.mark.usefixtures("quiet")


def frame(most=20):
    rng = np.random.default_rng(4)
    u = np.repeat(np.arange(200), rng.integers(1, most + 1, 200))
    g = rng.choice(KEYS, len(u))
    x = [None if i % 5 == 0 else 1.0 for i in range(len(u))]
    return pl.DataFrame({"u": u, "g": g, "x": x})


def both(ask, whole, keys=KEYS, **limits):
    with dp.Session(eps=10**12, unit="u") as s:
        ask(frame().dp.groupby("g", keys=keys, **limits), label="cells")
        total = whole(frame().dp)
    return (s["cells"], total)


@pytest.mark.parametrize("most", [1, 2, 9, 30])
def test_counts_under_one_limit_add_up_without_a_word(most):
    """Units have up to 20 rows: cut at 1, 2 and 9. In exact numbers the cells miss the total by their floors at most."""
    cells, total = both(
        lambda g, **k: g.count(eps=10**9, max_rows=most, **k), lambda d: d.count(eps=10**9, max_rows=most)
    )
    n = frame().group_by("u").len()["len"].clip(upper_bound=most).sum()
    assert int(total) == n
    assert abs(cells.value["count"].sum() - n) <= 3 / 2 + 200 * 3 / ROW_STEPS  # cells are rounded at the end
    agreed = dp.consistent(cells, total).value["consistent"]
    assert agreed.sum() == pytest.approx(n, abs=3 / 2 + 200 * 3 / ROW_STEPS)


@pytest.mark.parametrize(
    ("cells", "total"),
    [
        ({"max_rows": 9}, {"max_rows": 8}),
        ({"max_rows": 9, "max_rows_per_group": 4}, {"max_rows": 9}),
        ({"max_rows": 9, "max_groups": 2}, {"max_rows": 9}),
        ({"max_groups": 3, "max_rows_per_group": 9}, {"max_rows": 9}),
    ],
)
def test_other_limits_need_the_callers_word(cells, total):
    made = both(lambda g, **k: g.count(eps=1, **cells, **k), lambda d: d.count(eps=1, **total))
    with pytest.raises(dp.InputError, match="only limit of both"):
        dp.consistent(*made)
    dp.consistent(*made, fits=True)


def test_cells_that_may_be_missing_are_shared_out_otherwise():
    """Of 10 rows with 5 cells, 5 count in the whole frame at a limit of 5, and half as many over groups."""
    limit = {"max_rows": 5}
    made = both(lambda g, **k: g.count("x", eps=1, **limit, **k), lambda d: d.count("x", eps=1, **limit))
    with pytest.raises(dp.InputError, match="fits=True"):
        dp.consistent(*made)


def test_one_listed_group_is_the_frame():
    one = both(
        lambda g, **k: g.count(eps=1, max_rows=5, **k), lambda d: d.count(eps=1, max_rows=5), keys=["a"]
    )
    assert len(dp.consistent(*one).value) == 1
