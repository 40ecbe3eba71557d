"""Fixtures shared by all tests: frames of every kind, sessions that never run dry, silence."""

from __future__ import annotations

import functools
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from _pytest.doctest import DoctestModule
from sizes import AUDIT, left_to_the_audit

import dpframe as dp
from dpframe.mechanisms.coarse import Coarse
from dpframe.mechanisms.row import RowNoise
from dpframe.mechanisms.row_gaussian import LinearGaussian
from dpframe.noise import source, strips
from dpframe.planning import key_rules
from dpframe.session import current

# Their fixtures: path, clock; only_integers; engine, make.
pytest_plugins = ("ledger_files", "one_row", "databases")
# Helpers whose assertions print what they compared, as those of a test do.
pytest.register_assert_rewrite("key_tools", "looks", "threshold_tools", "ledger_tools")

KINDS = ("pandas", "polars", "lazy")


def pytest_addoption(parser):
    parser.addoption(
        "--only-pandas", action="store_true", help="only tests in which a pandas frame can occur"
    )


def pytest_collection_modifyitems(config, items):
    """Leave out what the audit is for, and, with ``--only-pandas``, what another pandas can not change.

    A test that is marked as a ``sweep`` runs in full with ``DPFRAME_AUDIT=1``. Else it keeps as many of its runs as it
    takes for every two values of its parameters to occur together (``sweep(1)``: for every value to occur).

    With ``--only-pandas`` there remain tests of files that use pandas, or a helper that does, but not their runs on
    Polars frames, and no sweep: how far integers move is decided after cells have been read.
    """
    left = set() if AUDIT else left_to_the_audit(items)
    if config.getoption("--only-pandas", False):
        for place, i in enumerate(items):
            swept = not AUDIT and i.get_closest_marker("sweep") is not None
            if swept or not _uses_pandas(i.module) or _runs_on_polars(i):
                left.add(place)
    config.hook.pytest_deselected(items=[i for place, i in enumerate(items) if place in left])
    items[:] = [i for place, i in enumerate(items) if place not in left]


def _runs_on_polars(item) -> bool:
    given = getattr(item, "callspec", None)
    return given is not None and given.params.get("kind") in ("polars", "lazy")


@functools.cache
def _uses_pandas(module) -> bool:
    """Whether pandas is among a module's names, or one of them comes from a helper among whose names it is."""
    if any(value is pd for value in vars(module).values()):
        return True
    homes = {getattr(value, "__module__", None) for value in vars(module).values()}
    homes |= {value.__name__ for value in vars(module).values() if isinstance(value, types.ModuleType)}
    homes -= {module.__name__}
    return any(name in _HELPERS and _uses_pandas(sys.modules[name]) for name in homes if name in sys.modules)


_HELPERS = {path.stem for path in Path(__file__).parent.glob("*.py")}


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Examples are in the package and in the pages; a file of tests has none."""
    return [c for c in (yield) if not isinstance(c, DoctestModule)]


@pytest.fixture(autouse=True)
def nothing_left_over():
    """Every test starts and ends without a session in use."""
    yield
    for s in list(current.opened):
        s.close()
    current.stack.set(())


@pytest.fixture
def quiet():
    """Silence dpframe's notices where a test is not about them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dp.DPWarning)
        yield


@pytest.fixture
def fixed_draws():
    """Draw from one fixed stream even in the audit: no false alarm where a threshold is not an exact tail."""
    with source.replaced(np.random.default_rng(0).bytes):
        yield


@pytest.fixture
def only_geometric(monkeypatch):
    """The other rules, which find more where a unit is in several groups, are out."""

    def refused(draft, target, *law):
        raise dp.MechanismError("not here")

    for rule in ("counted", "weighted"):
        monkeypatch.setattr(key_rules, rule, refused)


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
    for joint in (RowNoise, LinearGaussian):
        monkeypatch.setattr(
            joint, "draw", lambda self, size: np.zeros((len(self.coordinates), size), dtype=np.int64)
        )


def exact_integers(bound) -> list[list[int]]:
    """The integers that reach the mechanism, one list per piece (needs the ``no_noise`` fixture)."""
    return [x.tolist() for x in bound.release()._noisy]
