"""Fixtures shared by all tests: frames of every kind, sessions that never run dry, silence."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.mechanisms.coarse import Coarse
from dpframe.noise import strips
from dpframe.session import session as sessions

# Their fixtures: path, clock; only_integers; engine, make.
pytest_plugins = ("ledger_files", "one_row", "databases")
# Helpers whose assertions print what they compared, as those of a test do.
pytest.register_assert_rewrite("key_tools", "looks", "threshold_tools", "ledger_tools")

KINDS = ("pandas", "polars", "lazy")


@pytest.fixture(autouse=True)
def nothing_left_over():
    """Every test starts and ends without a session in use."""
    yield
    for s in list(sessions._open):
        s.close()
    sessions._stack.set(())


@pytest.fixture
def quiet():
    """Silence dpframe's notices where a test is not about them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dp.DPWarning)
        yield


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def as_kind(kind: str, frame: pl.DataFrame):
    """The same table as a pandas frame, a Polars frame or a lazy Polars frame."""
    if kind == "pandas":
        return frame.to_pandas()
    return frame.lazy() if kind == "lazy" else frame


def as_polars(table) -> pl.DataFrame:
    """A released table as a Polars frame, to compare across libraries."""
    return pl.from_pandas(table) if isinstance(table, pd.DataFrame) else table


@pytest.fixture
def no_noise(monkeypatch):
    """Draw zeros, so that ``release._noisy`` holds exactly the integers that reach the mechanism."""
    monkeypatch.setattr(strips.StripSampler, "sample", lambda self, size: np.zeros(size, dtype=np.int64))
    monkeypatch.setattr(Coarse, "sample", lambda self, size: np.zeros(size, dtype=np.int64))
    monkeypatch.setattr(Coarse, "prepare", lambda self, exact: exact)


def exact_integers(bound) -> list[list[int]]:
    """The integers that reach the mechanism, one list per piece (needs the ``no_noise`` fixture)."""
    return [x.tolist() for x in bound.release()._noisy]
