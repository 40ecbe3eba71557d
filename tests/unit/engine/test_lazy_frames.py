"""Lazy frames: one scan of the used columns, and failures that keep the charge and say nothing."""

from __future__ import annotations

import polars as pl
import pytest
from polars.io.plugins import register_io_source
from tables import FRAME

import dpframe as dp

pytestmark = pytest.mark.usefixtures("quiet")

EPS = 1e6


CANARY, CANARY_TEXT = 7_731_904, "canary7731904"


# ---- lazy frames ----


def counted_source(frame: pl.DataFrame):
    """A lazy frame that counts how often it is scanned."""
    scans = []

    def scan(with_columns, predicate, n_rows, batch_size):
        scans.append(with_columns)
        out = frame if with_columns is None else frame.select(with_columns)
        yield out if predicate is None else out.filter(predicate)

    return register_io_source(scan, schema=frame.schema), scans


def test_many_measures_take_one_scan_of_the_used_columns():
    """Case 115."""
    lazy, scans = counted_source(FRAME)
    with dp.Session(eps=10 * EPS) as s:
        table = lazy.dp.groupby("g", keys=["a", "b"]).dp_agg(
            n=dp.count(),
            a=dp.clip_sum("k", bounds=(0, 9)),
            b=dp.clip_mean("x", bounds=(0, 10)),
            c=dp.count("x"),
            d=dp.clip_sum("x", bounds=(0, 5)),
            eps=EPS,
        )
        assert len(scans) == 1
        assert "late" not in (scans[0] or ["late"])
        s.last.interval(0.9), s.last.facts, s.last.value
        assert len(scans) == 1
    assert table["n"].to_list() == [3, 1]


def test_an_ungrouped_question_takes_one_scan():
    lazy, scans = counted_source(FRAME)
    with dp.Session(eps=10 * EPS):
        assert lazy.dp.count(eps=EPS) == 6
        assert len(scans) == 1
        assert lazy.dp.clip_sum("k", bounds=(0, 9), eps=EPS) == 21
        assert len(scans) == 2


def test_lazy_frames_that_cannot_be_resolved_cost_nothing(tmp_path):
    with dp.Session(eps=1) as s:
        missing = pl.scan_parquet(tmp_path / "none.parquet")
        with pytest.raises((FileNotFoundError, dp.DPError, pl.exceptions.PolarsError)):
            missing.dp.count(eps=0.5)
        wrong = FRAME.lazy().select("nope")
        with pytest.raises((dp.DPError, pl.exceptions.PolarsError)):
            wrong.dp.count(eps=0.5)
        with pytest.raises(dp.InputError, match="Did you mean 'late'"):
            FRAME.lazy().dp.clip_mean("lat", eps=0.5)
        assert s.report().height == 0


def test_an_engine_failure_keeps_the_charge_and_its_words():
    """Decision 2: a failure after the charge keeps it. Promise: no cell in the error."""

    def fail(df):
        raise ValueError(CANARY_TEXT)

    lazy = FRAME.lazy().map_batches(fail, schema=FRAME.schema)
    with dp.Session(eps=1) as s:
        with pytest.raises(dp.ReleaseFailed) as caught:
            lazy.dp.count(eps=0.5)
        assert s.spent == 0.5
        assert s.releases == []
    assert CANARY_TEXT not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
