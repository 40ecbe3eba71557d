"""Steps of a user's own plan over a column that says it is sorted and is not: windows, groups by the unit."""

from __future__ import annotations

import polars as pl
import pytest

import dpframe as dp

pytestmark = pytest.mark.usefixtures("quiet")
FRAME = pl.DataFrame({"g": [1, 2] * 50, "u": [3, 1, 2, 0] * 25})
LIARS = {
    "series": lambda f, down: f.with_columns(f[c].set_sorted(descending=down) for c in f.columns).lazy(),
    "expression": lambda f, down: f.lazy().with_columns(pl.col(f.columns).set_sorted(descending=down)),
    "frame": lambda f, down: f.lazy().set_sorted(f.columns[0], descending=down),
}


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("liar", LIARS)
def test_windows_of_columns_that_lie(liar, down):
    frame = LIARS[liar](FRAME, down)
    with dp.Session(eps=10**9):
        assert frame.with_columns(n=pl.len().over("g")).dp.clip_sum("n", bounds=(0, 100), eps=10**6) == 5_000


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("liar", LIARS)
def test_a_unit_that_a_lying_group_by_splits_is_one_unit_still(liar, down):
    """Polars may make 100 groups of two; each unit counts within its limits all the same."""
    frame = LIARS[liar](FRAME, down).group_by("g").agg(n=pl.len())
    with dp.Session(eps=10**9, unit="g"):
        assert frame.dp.count(max_rows=1, eps=10**6) == 2
        assert frame.dp.count_units(eps=10**6) == 2
