"""A unit that says in which group it is counts in one group: nobody is asked in how many."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp

DAYS = list(range(30))
FRAME = pl.DataFrame({"user": [u for u in range(20) for _ in DAYS], "day": DAYS * 20, "g": ["a", "b"] * 300})
UNIT = ["user", "day"]
pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("by", [["day"], ["user"], ["day", "user"], ["user", "day"]])
@pytest.mark.parametrize("typed", [None, 1, 30])
def test_a_unit_that_holds_the_keys_is_in_one_group(by, typed, neighbors):
    with dp.Session(eps=10, delta=1e-6, unit=UNIT, neighbors=neighbors, max_rows_per_group=2):
        keys = {"day": DAYS, "user": list(range(20))}
        options = {} if typed is None else {"max_groups": typed}
        plan = FRAME.dp.plan.groupby(*by, keys={k: keys[k] for k in by}, **options).count(eps=1)
        assert plan.plan.bounding.groups == 1
        found = FRAME.dp.plan.groupby(*by, **options).count(eps=1, delta=1e-7)
        assert found.plan.bounding.groups == 1


@pytest.mark.parametrize("by", [["g"], ["day", "g"]])
def test_other_groups_are_asked_for(by):
    with dp.Session(eps=10, unit=UNIT, max_rows_per_group=2):
        keys = {"day": DAYS, "g": ["a", "b"]}
        with pytest.raises(dp.InputError, match="In how many groups"):
            FRAME.dp.groupby(*by, keys={k: keys[k] for k in by}).count(eps=1)


def test_a_partition_by_the_unit_is_charged_once():
    with dp.Session(eps=10, unit=UNIT, max_rows_per_group=2) as s:
        parts = FRAME.dp.partition_by("day", keys=DAYS, eps=1)
        assert s.spent == 1
        assert abs(parts[3].dp.count(eps=1) - 20) < 60


@pytest.mark.parametrize("day", [[0.0, -0.0], [float("nan"), None], [1, None]], ids=str)
@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_one_group_is_enforced_not_believed(library, day):
    """Whatever one unit's two rows are, no more than one group may move by them (eps=1e6: noise of 0)."""
    frame = pl.DataFrame({"user": [1, 1], "day": pl.Series(day, strict=False)})
    frame = frame.to_pandas() if library == "pandas" else frame
    keys = [0, 1, None] if frame["day"].dtype in (pl.Int64,) else [0.0, 1.0, None]
    with dp.Session(eps=2 * 10**6, unit=UNIT, max_rows_per_group=1):
        out = frame.dp.groupby("day", keys=keys).count(eps=10**6)
    counts = np.asarray(out.iloc[:, -1] if isinstance(out, pd.DataFrame) else out[:, -1])
    assert (np.abs(counts) >= 0.5).sum() <= 1
