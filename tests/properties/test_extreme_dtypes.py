"""The extreme cells of every dtype, as unit, as found key, in n_unique and as values: told apart, and never a failed release.

A release that fails after the charge because of one cell tells that the cell is there. At eps = 1e6 a noise of 0.5 or
more has a chance below 1e-9 by far, so every figure is plain Python's.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
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


NO_ARROW = ("objects", "polars int128")
PLAIN_SECONDS = ("numpy datetime64[s]", "numpy timedelta64[s]")  # as found they are pandas', and listed so


@pytest.mark.parametrize("name", [n for n in CELLS if n not in NO_ARROW])
@pytest.mark.parametrize("arrow", [False, True])
def test_found_keys_are_listed_again(name, arrow):
    """Exactly, down to nanoseconds; or they are refused from the list alone, before the charge."""
    df = frame(name)
    if arrow:
        df = df.to_arrow() if isinstance(df, pl.DataFrame) else pa.Table.from_pandas(df)
    with dp.Session(eps=100 * EPS, delta=1e-3) as s:
        d = dp.frame(df)
        keys = dp.public(d.groupby("c").keys(eps=EPS, delta=1e-6)["c"])
        spent = s.spent
        if name == "polars date" or (arrow and name in PLAIN_SECONDS):
            with pytest.raises(dp.InputError):
                d.groupby("c", keys=keys).count(eps=EPS)
            assert s.spent == spent
            return
        counts = d.groupby("c", keys=keys).count(eps=EPS)["count"]
        assert [round(n) for n in counts] == [TIMES] * 4
        assert len(set(d.top_k("c", 4, candidates=keys, eps=EPS)["rank"])) == 4


@pytest.mark.parametrize("name", [n for n in NUMBERS if n not in NO_ARROW])
@pytest.mark.parametrize("arrow", [False, True])
def test_extreme_cells_are_ranked_and_binned(name, arrow):
    df, cells = frame(name), [float(v) for v in CELLS[name].to_list()]
    if arrow:
        df = df.to_arrow() if isinstance(df, pl.DataFrame) else pa.Table.from_pandas(df)
    right = [
        sum(test(v) for v in cells) * TIMES
        for test in (lambda v: v < -3, lambda v: -3 <= v <= 2, lambda v: v > 2)
    ]
    with dp.Session(eps=100 * EPS):
        got = dp.frame(df).histogram("c", edges=[-3, 2], eps=EPS)
        assert [round(n) for n in got["count"]][:3] == right
        assert sum(round(n) for n in got["count"]) == 4 * TIMES
        for q, at in ((0.01, min(cells)), (0.99, max(cells))):
            assert dp.frame(df).quantile("c", q, candidates=[-3, 0, 3], eps=EPS) == max(
                -3, min(3, round(at)) if abs(at) < 9 else 3 if at > 0 else -3
            )


ODD_FLOATS = [float("nan"), -0.0, 0.0, 1.5, None]


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("kind", ["polars", "lazy", "arrow", "pandas", "pandas of arrow"])
def test_nan_is_missing_and_both_zeros_are_one(kind, bits):
    """As key, listed and found, as unit, in n_unique, as candidates and as values."""
    whole = pl.DataFrame({"c": pl.Series(ODD_FLOATS * 20, dtype=pl.Float32 if bits == 32 else pl.Float64)})
    table = {
        "polars": whole,
        "lazy": whole.lazy(),
        "arrow": whole.to_arrow(),
        "pandas": pd.DataFrame(
            {"c": np.array([np.nan if v is None else v for v in ODD_FLOATS * 20], f"float{bits}")}
        ),
        "pandas of arrow": whole.to_arrow().to_pandas(types_mapper=pd.ArrowDtype),
    }[kind]
    with dp.Session(eps=100 * EPS, delta=1e-3):
        d = dp.frame(table)
        assert d.n_unique("c", eps=EPS) == 2
        assert list(d.groupby("c", keys=[0.0, 1.5, None]).count(eps=EPS)["count"]) == [40, 20, 40]
        found = d.groupby("c").count(eps=EPS, delta=1e-6)
        assert sorted(found["count"]) == [20, 40, 40]
        assert d.count("c", eps=EPS) == 60
        assert list(d.top_k("c", 2, candidates=[1.5, 0.0], eps=EPS)["c"]) == [0.0, 1.5]
        assert list(d.histogram("c", edges=[0, 1, 2], eps=EPS)["count"])[1:3] == [40, 20]
        assert d.clip_sum("c", bounds=(-3, 3), eps=EPS) == pytest.approx(30, abs=0.01)
        assert d.median("c", candidates=[-1, 0, 1.5], eps=EPS) == 0
    with dp.Session(eps=100 * EPS, unit="c", max_rows=100):
        assert dp.frame(table).count_units(eps=EPS) == 2
        assert dp.frame(table).count(eps=EPS) == 60
