"""Every statistic, grouped or not, under every kind of budget, of no rows and of many: what passes its check runs on."""

from __future__ import annotations

import polars as pl
import pytest
from test_release_file import STATISTICS

import dpframe as dp

ROWS = pl.DataFrame({"x": [1.0, 2.0] * 50, "city": ["a", "b"] * 50, "k": [1, 2] * 50}).with_columns(
    u=pl.int_range(pl.len()), v=pl.concat_list(pl.col("x"), pl.col("x"))
)
BUDGETS = [{"eps": 1, "allocation": "adaptive"}, {"rho": 0.1}, {"eps": 1, "delta": 1e-6}]


@pytest.mark.parametrize(("verb", "asked"), [(k, a) for k, v in STATISTICS.items() for a in v])
def test_what_passes_its_check_runs_to_its_end(tmp_path, verb, asked):
    outputs = [str(tmp_path / "a.csv"), str(tmp_path / "a.parquet")]
    unit = {"unit": "u", "max_rows": 1, "max_rows_per_group": 1, "max_groups": 1}
    ran = 0
    for grouped in ({}, {"groupby": "city", "keys": ["a", "b"]}):
        for budget in BUDGETS:
            for frame in (ROWS, ROWS.head(0)):
                policy = {**budget, **(unit if verb == "count_units" else {})}
                try:
                    query = dp.query(asked, outputs=outputs, **grouped)
                    plan = dp.BudgetPlan(frame, {"a": query}, **policy)
                except dp.DPError:
                    continue
                plan.run(progress=False)
                assert plan.log()["query"].to_list() == ["a"]
                assert list(plan.charged) == ["a"]
                ran += 1
    assert ran >= 2
