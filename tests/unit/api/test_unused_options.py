"""An option that a question does not use is refused before the charge, not passed over."""

from __future__ import annotations

import polars as pl
import pytest

import dpframe as dp

ROWS = pl.DataFrame({"g": ["a", "b"] * 50, "x": [-1.26, 2.33] * 50, "u": range(100)})
CHOICES = {
    "median": lambda f, **k: f.median("x", bounds=(-9, 9), **k),
    "quantile": lambda f, **k: f.quantile("x", [0.2, 0.5], bounds=(-9, 9), **k),
    "iqr": lambda f, **k: f.iqr("x", bounds=(-9, 9), **k),
}
LISTED = {
    **CHOICES,
    "count": lambda f, **k: f.count(**k),
    "sum": lambda f, **k: f.clip_sum("x", bounds=(-9, 9), **k),
    "histogram": lambda f, **k: f.histogram("x", edges=[-3, 0, 3], **k),
    "n_unique": lambda f, **k: f.n_unique("x", **k),
    "bounds": lambda f, **k: f.bounds("x", **k),
}


@pytest.mark.parametrize("ask", CHOICES.values(), ids=CHOICES)
@pytest.mark.parametrize("keys", [None, ["a", "b"]])
def test_a_choice_has_no_loss(ask, keys):
    frame = ROWS.dp if keys is None else ROWS.dp.groupby("g", keys=keys)
    with dp.Session(eps=1) as s:
        for loss in ("l1", "rmse"):
            with pytest.raises(dp.InputError, match="has a choice in its place"):
                ask(frame, eps=0.5, loss=loss)
        assert s.spent == 0
        ask(frame, eps=0.5)


@pytest.mark.parametrize("ask", LISTED.values(), ids=LISTED)
def test_listed_groups_have_no_threshold(ask):
    with dp.Session(eps=1, unit="u", max_groups=1, max_rows_per_group=1) as s:
        with pytest.raises(dp.InputError, match=r"threshold=.*its groups are listed"):
            ask(ROWS.dp.groupby("g", keys=["a", "b"]), eps=0.5, threshold="rows")
        assert s.spent == 0


def test_units_or_rows_are_for_sessions_with_a_unit(quiet):
    with dp.Session(eps=1, delta=1e-3) as s:
        with pytest.raises(dp.InputError, match=r"threshold=.*a row is the unit"):
            ROWS.dp.groupby("g").count(eps=0.5, delta=1e-6, threshold="rows")
        assert s.spent == 0
    with dp.Session(eps=1, delta=1e-3, unit="u", max_groups=1, max_rows_per_group=2):
        for threshold in ("units", "rows"):
            ROWS.dp.groupby("g").count(eps=0.5, delta=1e-6, threshold=threshold)
