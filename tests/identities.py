"""What a database or cluster tells apart in a column, in every role."""

from __future__ import annotations

import datetime as dt
from types import SimpleNamespace

import pandas as pd
import polars as pl

import dpframe as dp
from dpframe.pipeline import _exact


def identities(frame, name="x", row="row"):
    """What an engine tells apart in a column, in every role, as the exact integers before any noise.

    ``row`` is a column with another value in every row. Of ``found`` keys those that Python has a value for are listed,
    too: ``listed`` are their counts, and ``expected`` what was found of them.
    """

    def exact(ask, unit=None):
        with dp.Session(eps=10**9, delta=0.5, unit=unit):
            plan = ask(dp.frame(frame).plan).plan
        return _exact(plan, dp.frame(frame)._source, 77)

    units = exact(lambda f: f.count(max_rows=1, eps=1), name).rows.sum()
    values = exact(lambda f: f.n_unique(name, eps=1)).tallies[0].rows.sum()
    found = exact(lambda f: f.groupby(name).dp_agg(n=dp.count(), d=dp.n_unique(row), eps=1, delta=0.1))
    limits = {"max_groups": 1, "max_rows_per_group": 1}
    chosen = exact(lambda f: f.groupby(name).dp_agg(n=dp.count(), eps=1, delta=0.1, **limits), row)
    assert found.found.n_unique() == found.found.height
    keys = found.found.to_series()
    typed = [
        _typed(keys.dtype, k) for k in (keys.to_physical() if keys.dtype.is_temporal() else keys).to_list()
    ]
    there = [i for i, k in enumerate(typed) if k is not ...]
    listed = (
        exact(lambda f: f.groupby(name, keys=[typed[i] for i in there]).count(eps=1)).rows if there else []
    )
    return SimpleNamespace(
        units=units,
        values=values,
        found=sorted(found.rows.tolist()),
        tallied=sorted(found.tallies[0].dense(len(keys), 1).tolist()),
        chosen=sorted(chosen.rows.tolist()),
        listed=list(listed),
        expected=[found.rows[i] for i in there],
    )


def _typed(dtype, physical):
    """A found key as one types it; ... where Python's calendar ends."""
    if physical is None or dtype not in (pl.Date, pl.Datetime):
        return physical
    try:
        if dtype == pl.Date:
            return dt.date(1970, 1, 1) + dt.timedelta(days=physical)
        zone = None if dtype.time_zone is None else dt.UTC
        if dtype.time_unit == "ns":
            return pd.Timestamp(physical, unit="ns", tz=zone)
        return dt.datetime(1970, 1, 1, tzinfo=zone) + dt.timedelta(microseconds=physical)
    except OverflowError:
        return ...
