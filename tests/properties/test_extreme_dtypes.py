"""The extreme cells of every dtype, as unit, as found key, in n_unique and as values: told apart, and never a failed release.

A release that fails after the charge because of one cell tells that the cell is there. At eps = 1e6 a noise of 0.5 or
more has a chance below 1e-9 by far, so every figure is plain Python's.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp

pytestmark = pytest.mark.usefixtures("quiet")
EPS, TIMES = 1e6, 100  # rows of each cell, above any threshold

INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = [float("inf"), -float("inf"), 5e-324, 1.7976931348623157e308]
TIMES64 = [-(2**63) + 1, 2**63 - 1, 0, 1]
TEXTS = ["", "\0", "a" * 100_000, "\U0010ffff"]


def _ints(t: str) -> list[int]:
    return [int(np.iinfo(t).min), int(np.iinfo(t).max), 1, 2]


def _nullable(t: str) -> str:
    return t.replace("uint", "UInt").replace("int", "Int")


CELLS = {
    **{f"numpy {t}": pd.Series(_ints(t), dtype=t) for t in INTS},
    **{f"nullable {t}": pd.Series(_ints(t), dtype=_nullable(t)) for t in INTS},
    **{f"arrow {t}": pd.Series(_ints(t), dtype=f"{t}[pyarrow]") for t in INTS},
    **{f"polars {t}": pl.Series(_ints(t), dtype=getattr(pl, _nullable(t))) for t in INTS},
    "polars int128": pl.Series([-(2**127), 2**127 - 1, 1, 2], dtype=pl.Int128),
    **{f"numpy {t}": pd.Series(FLOATS, dtype=t) for t in ("float64",)},
    "nullable float64": pd.Series(FLOATS, dtype="Float64"),
    "arrow double": pd.Series(FLOATS, dtype="double[pyarrow]"),
    "polars float64": pl.Series(FLOATS),
    **{
        f"numpy {kind}[{u}]": pd.Series(np.array(TIMES64).view(f"{kind}[{u}]"))
        for u in ("s", "ms", "us", "ns")
        for kind in ("datetime64", "timedelta64")
    },
    **{
        f"polars {t.__name__} {u}": pl.Series(TIMES64).cast(t(u))
        for u in ("ms", "us", "ns")
        for t in (pl.Datetime, pl.Duration)
    },
    "polars date": pl.Series([-(2**31), 2**31 - 1, 0, 1], dtype=pl.Int32).cast(pl.Date),
    "polars text": pl.Series(TEXTS),
    "pandas text": pd.Series(TEXTS, dtype="str"),
    "objects": pd.Series([*TEXTS[:3], "\ud800"], dtype=object),
}
NUMBERS = [name for name in CELLS if "int" in name or "float" in name or "double" in name]


def frame(name):
    s = CELLS[name]
    if isinstance(s, pl.Series):
        return pl.DataFrame({"c": pl.concat([s] * TIMES)})
    return pd.DataFrame({"c": pd.concat([s] * TIMES, ignore_index=True)})


@pytest.mark.parametrize("name", CELLS)
def test_extreme_cells_are_told_apart(name):
    df = frame(name)
    with dp.Session(eps=10 * EPS, delta=1e-3):
        assert round(df.dp.n_unique("c", eps=EPS)) == 4
        found = df.dp.groupby("c").dp_agg(n=dp.count(), eps=EPS, delta=1e-6)
        assert [round(n) for n in found["n"]] == [TIMES] * 4
    with dp.Session(eps=10 * EPS, unit="c", max_rows=1):
        assert round(df.dp.count_units(eps=EPS)) == 4


@pytest.mark.parametrize("name", NUMBERS)
def test_extreme_cells_are_clipped(name):
    """The sum is of what the bounds leave: the low bound for the least cell, the high one for the greatest."""
    df = frame(name)
    s = CELLS[name]
    right = sum(min(max(float(v), -3), 3) for v in s.to_list()) * TIMES
    with dp.Session(eps=10 * EPS):
        assert df.dp.clip_sum("c", bounds=(-3, 3), eps=EPS) == pytest.approx(right, abs=0.5)
        assert df.dp.clip_mean("c", bounds=(-3, 3), eps=EPS) == pytest.approx(right / 4 / TIMES, abs=0.01)
        assert -3 <= df.dp.median("c", bounds=(-3, 3), eps=EPS) <= 3
