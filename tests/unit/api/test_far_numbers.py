"""Numbers that no float holds, wherever one can be typed: an answer or a refusal in words, before the charge."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import polars as pl
import pytest

import dpframe as dp

pytestmark = pytest.mark.usefixtures("quiet")
FRAME = pl.DataFrame({"g": ["a", "b"] * 5, "x": [1.0, 2.0] * 5, "y": [2.0, None] * 5, "u": [1, 2] * 5})
FAR = [10**400, 10**151, Decimal("1E+9000"), Decimal("1E-500"), 1e-200]
ASKS = {
    "sum": lambda d, **o: d.clip_sum("x", bounds=(0, 5), **o),
    "mean": lambda d, **o: d.clip_mean("y", bounds=(0, 5), **o),
    "ols": lambda d, **o: d.ols("y", ["x"], bounds=(0, 5), **o),
    "median": lambda d, **o: d.median("x", bounds=(0, 5), **o),
    "groups": lambda d, **o: d.groupby("g", keys=["a"]).count(**o),
}


@pytest.mark.parametrize("far", FAR, ids=lambda x: f"{Decimal(x):.0E}")
@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
def test_sizes_and_errors_that_no_float_holds_are_refused(ask, far):
    with dp.Session(eps=10) as s:
        for typed in (
            {"eps": 1, "rows": far},
            {"error": far},
            {"error": 0.5, "relative_to": far},
            {"error": 0.1, "rows": far},
        ):
            with pytest.raises(dp.InputError) as refused:
                ask(FRAME.dp, **typed)
            assert len(str(refused.value)) < 500
        plan = ask(FRAME.dp.plan, eps=1)
        for typed in ({"rows": far}, {"relative_to": far}, {"units": far}):
            with pytest.raises(dp.InputError, match="beyond what errors are forecast for"):
                plan.explain(**typed)
        assert s.spent == 0


@pytest.mark.parametrize("amount", [{"eps": 10**400}, {"rho": 10**400}, {"rho": 1e300}])
@pytest.mark.parametrize("accountant", [None, "rdp", "zcdp", "sum"])
def test_amounts_that_no_float_holds_are_beyond_the_budget_or_answered(amount, accountant):
    budgets = {"delta": 1e-6} if accountant in ("rdp", "zcdp") else {}
    for budget in (10**6, 10**500):
        with dp.Session(eps=budget, accountant=accountant, **budgets) as s:
            for ask in (
                lambda: FRAME.dp.clip_sum("x", bounds=(0, 5), **amount),
                lambda: FRAME.dp.partition_by("g", keys=["a"], **amount),
            ):
                before = len(s.releases)
                try:
                    ask()
                except dp.DPError as e:
                    assert not isinstance(e, dp.ReleaseFailed)  # noqa: PT017
                    assert len(s.releases) == before
                repr(s)


@pytest.mark.parametrize("label", [5, b"a", np.array([1, 2]), pl.Series([1]), pl.col("x"), object()])
def test_a_label_of_parts_is_text(label):
    with dp.Session(eps=10) as s:
        with pytest.raises(TypeError, match="label"):
            FRAME.dp.partition_by("g", keys=["a"], eps=1, label=label)
        assert s.spent == 0
