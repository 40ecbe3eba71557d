"""How much of a unit counts in the parts of a partition."""

from __future__ import annotations

import polars as pl
import pytest

import dpframe as dp


@pytest.mark.parametrize(
    ("limits", "rows"),
    [
        ({"max_rows": 4}, 4),
        ({"max_rows": 4, "max_rows_per_group": 2}, 2),
        ({"max_rows": 2, "max_rows_per_group": 9}, 2),
    ],
)
@pytest.mark.parametrize("where", ["session", "call"])
def test_rows_in_all_are_a_limit_in_every_part_and_nothing_of_its_price(limits, rows, where):
    df = pl.DataFrame({"k": ["a", "a", "b"] * 9, "u": [1] * 27})
    session, call = (limits, {}) if where == "session" else ({}, limits)
    with dp.Session(eps=10, unit="u", **session) as s:
        parts = df.dp.partition_by("k", keys=["a", "b"], eps=2, max_groups=2, **call)
        assert s.spent == 4
        assert parts["a"].dp.plan.count(eps=1).l1 == rows
        with pytest.raises(dp.InputError, match="max_rows"):
            df.dp.partition_by("k", keys=["a"], eps=1, max_groups=1, max_rows=0)
        assert s.spent == 4
