"""Counts of groups, released with next to no noise, and the words of a refusal."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp

EPS = 1e6


def released(df, by, keys, **more):
    """The table of counts at an epsilon that leaves no noise."""
    by = [by] if isinstance(by, str) else list(by)
    with dp.Session(eps=10 * EPS):
        return df.dp.groupby(*by, keys=keys).dp_agg(n=dp.count(), eps=EPS, **more)


def counts(df, by, keys) -> dict:
    """Released counts by key (missing as None), in the order of the rows."""
    table = released(df, by, keys)
    assert table["n"].dtype in (pl.Int64, np.dtype("int64"))
    names = [c for c in table.columns if c != "n"]
    columns = [[None if _missing(v) else v for v in table[c].to_list()] for c in names]
    rows = columns[0] if len(columns) == 1 else list(zip(*columns))
    assert len(set(rows)) == len(rows)
    return dict(zip(rows, table["n"].to_list()))


def _missing(v) -> bool:
    return v is None or v is pd.NA or v is pd.NaT or (isinstance(v, float) and v != v)


def refused(df, by, keys, *, match: str):
    by = [by] if isinstance(by, str) else list(by)
    with dp.Session(eps=1) as s:
        with pytest.raises(dp.InputError, match=match) as caught:
            df.dp.groupby(*by, keys=keys).count(eps=1)
        assert s.report().height == 0
    return str(caught.value)
