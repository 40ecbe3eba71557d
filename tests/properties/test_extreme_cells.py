"""Nothing of anything, and partitions that are not what they are declared to be: an answer, never a failed release.

``FRAMES`` makes every kind of frame of one table; another engine adds its own there. A release that fails after
the charge when no unit, no group or no listed row is there would tell so with certainty.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpframe as dp

pytestmark = pytest.mark.usefixtures("quiet")
SCHEMA = {"u": pl.Int64, "g": pl.String, "x": pl.Float64}


def _dask(frame):
    dd = pytest.importorskip("dask.dataframe")
    return dd.from_pandas(frame.to_pandas(), npartitions=2)


FRAMES = {
    "polars": lambda f: f,
    "lazy": lambda f: f.lazy(),
    "arrow": lambda f: f.to_arrow(),
    "no batches": lambda f: f.to_arrow() if f.height else pa.Table.from_batches([], f.to_arrow().schema),
    "pandas": lambda f: f.to_pandas(),
    "objects": lambda f: f.to_pandas().astype({"g": object}),
    "pandas of arrow": lambda f: f.to_arrow().to_pandas(types_mapper=pd.ArrowDtype),
    "dask": _dask,
}
NOTHING = {
    "rows": {"u": [], "g": [], "x": []},
    "ids": {"u": [None, None], "g": ["a", "b"], "x": [1.0, 2.0]},
    "listed rows": {"u": [1, 2], "g": ["y", "z"], "x": [1.0, 2.0]},
    "keys": {"u": [1, 2], "g": [None, None], "x": [1.0, 2.0]},
    "values": {"u": [1, 2], "g": ["a", "b"], "x": [None, float("nan")]},
    "but one row": {"u": [1], "g": ["a"], "x": [1.0]},
}
WHOLE = {
    "count": lambda d, b: d.count(eps=1, **b),
    "several": lambda d, b: d.agg(
        dp.clip_mean("x", bounds=(0, 5)), dp.median("x", bounds=(0, 5)), eps=1, **b
    ),
    "n_unique": lambda d, b: d.n_unique("g", eps=1, **b),
    "histogram": lambda d, b: d.histogram("x", edges=[0, 1, 2], eps=1, **b),
    "top_k": lambda d, b: d.top_k("g", 1, candidates=["a", "b"], eps=1, **b),
}
GROUPED = {
    "listed": lambda d, b: d.groupby("g", keys=["a", "b"]).agg(
        dp.count(), dp.clip_mean("x", bounds=(0, 5)), dp.median("x", bounds=(0, 5)), eps=1, **b
    ),
    "found": lambda d, b: d.groupby("g").agg(dp.count(), dp.clip_sum("x", B=5), eps=1, delta=1e-3, **b),
    "found, with a tally": lambda d, b: d.groupby("g").agg(
        dp.count(), dp.n_unique("x"), eps=1, delta=1e-3, **b
    ),
    "parts": lambda d, b: [
        p.dp.count(eps=0.5, **({"max_rows": 1} if b else {}))
        for p in d.partition_by("g", keys=["a", "b"], eps=1, **b).values()
    ],
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("nothing", NOTHING)
def test_nothing_of_anything_is_answered(kind, nothing):
    frame = FRAMES[kind](pl.DataFrame(NOTHING[nothing], schema=SCHEMA))
    refused = set()
    for unit in (None, "u"):
        for name, ask in {**WHOLE, **GROUPED}.items():
            limits = {"max_rows": 2} if name in WHOLE else {"max_groups": 2, "max_rows_per_group": 2}
            with dp.Session(eps=10**6, delta=0.5, unit=unit) as s:
                try:
                    ask(dp.frame(frame), limits if unit else {})
                except dp.InputError:  # of what the engine, or a session, has not: before the charge
                    refused.add((unit, name))
                    assert s.spent.eps == 0
    few = {(None, "found, with a tally"), ("u", "found, with a tally")}
    assert kind == "dask" or refused <= few


PARTITIONS = {
    "categories of another type": pd.DataFrame({"g": pd.Categorical([1, 2]), "x": [1, 2]}),
    "nothing but missing": pd.DataFrame({"g": [None, None], "x": [None, None]}),
    "missing floats": pd.DataFrame({"g": [np.nan, np.nan], "x": [np.nan, np.nan]}),
    "texts": pd.DataFrame({"g": ["c", "d"], "x": ["q", "r"]}),
}


@pytest.mark.parametrize("categories", [False, True])
@pytest.mark.parametrize("name", PARTITIONS)
def test_a_partition_may_hold_what_is_not_declared(name, categories):
    dd = pytest.importorskip("dask.dataframe")
    from dask import delayed

    first = pd.DataFrame({"g": ["a", "b"], "x": [1, 2]})
    first = first.astype({"g": "category"}) if categories else first
    parts = [delayed(first), delayed(PARTITIONS[name])]
    frame = dd.from_delayed(parts, meta=first.iloc[:0], verify_meta=False)
    with dp.Session(eps=10**9, delta=0.5):
        d = dp.frame(frame)
        assert d.count(eps=10**6) == 4
        assert d.count("x", eps=10**6) == (4 if "another" in name else 2)
        listed = d.groupby("g", keys=["a", "b"]).agg(dp.count(), dp.clip_sum("x", bounds=(0, 5)), eps=10**6)
        assert listed["count"].to_list() == [1, 1]
        assert d.top_k("g", 1, candidates=["a", "zz"], eps=10**6)["g"].to_list() == ["a"]
        d.groupby("g").count(eps=10**6, delta=1e-3)


@pytest.mark.parametrize(
    "name", ["a.b", "`c`", '"d"', "e f", "k0", "u0", "code", "", "*", "^.*$", "^o", "日本"]
)
def test_any_name_is_a_column(name):
    table = pl.DataFrame({name: [1, 2, 2], "other": [1, 1, 1]})
    for frame in (table, table.lazy(), table.to_arrow(), table.to_pandas()):
        with dp.Session(eps=10**9):
            assert list(dp.frame(frame).groupby(name, keys=[1, 2]).count(eps=10**6)["count"]) == [1, 2]


def test_a_name_that_two_columns_have_is_refused_before_the_charge():
    twice = pa.table([[1], [2]], names=["a", "a"])
    for frame in (twice, pd.DataFrame([[1, 2]], columns=["a", "a"])):
        with dp.Session(eps=1) as s:
            with pytest.raises(dp.InputError, match="2 columns named 'a'"):
                dp.frame(frame).count("a", eps=1)
            assert s.spent.eps == 0
