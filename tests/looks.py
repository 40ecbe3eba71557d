"""What a release looks like: everything that may not depend on one row."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import dpframe as dp
from conftest import as_kind

NAN, INF = math.nan, math.inf
EPS = 10**6
BOUNDS = (-3, 10)


def looks(frame, ask) -> dict:
    """All that may be seen of one release, noisy numbers left out (but whether they are finite)."""
    seen: dict = {"error": None}
    with warnings.catch_warnings(record=True) as caught, dp.Session(eps=10**9) as s:
        warnings.simplefilter("always")
        try:
            value = ask(frame)
        except Exception as e:  # whatever it is, it must be the same on both frames
            seen["error"] = (type(e), str(e))
        else:
            seen |= of_value(value)
            seen["facts"] = [{k: v for k, v in r.facts.items() if k != "time"} for r in s.releases]
        seen["account"] = s.report().drop("time").rows()
        seen["spent"] = s.spent
    seen["warnings"] = sorted((w.category.__name__, str(w.message)) for w in caught)
    return seen


def of_value(value) -> dict:
    if isinstance(value, int | float):
        return {"type": type(value), "finite": math.isfinite(value)}
    table = value
    names = [str(c) for c in table.columns]
    keys = [c for c in names if c in ("g", "h")]
    return {
        "type": type(value),
        "shape": table.shape,
        "columns": names,
        "dtypes": [str(t) for t in table.dtypes],
        "index": list(table.index) if isinstance(table, pd.DataFrame) else None,
        "keys": [[None if pd.isna(x) else x for x in table[c]] for c in keys],
        "finite": all(
            np.isfinite(np.asarray(table[c], dtype=float)).all()
            for c in names
            if c not in (*keys, "bin", "lower", "upper")
        ),
    }


def assert_alike(first, second, ask):
    a, b = looks(first, ask), looks(second, ask)
    assert a == b
    assert a.get("finite", True)
    return a


KEYS = ["b", None, "absent", "a"]


def _without(table, name):
    """The table without the column that was drawn."""
    assert name in table.columns
    return table.drop(columns=name) if isinstance(table, pd.DataFrame) else table.drop(name)


UNGROUPED = {
    "count": lambda f: f.dp.count(eps=EPS),
    "count x": lambda f: f.dp.count("x", eps=EPS),
    "sum": lambda f: f.dp.clip_sum("x", bounds=BOUNDS, eps=EPS),
    "mean": lambda f: f.dp.clip_mean("x", bounds=BOUNDS, eps=EPS),
    "mean n": lambda f: f.dp.clip_mean("x", bounds=BOUNDS, n=9, eps=EPS),
    "std": lambda f: f.dp.clip_std("x", bounds=BOUNDS, eps=EPS),
    "vector": lambda f: f.dp.vector_mean(["x"], norm=3, eps=EPS),
    "histogram": lambda f: f.dp.histogram("x", edges=[-3, 0, 10], eps=EPS),
    "n_unique": lambda f: f.dp.n_unique("x", eps=EPS),
    "median": lambda f: f.dp.median("x", bounds=BOUNDS, eps=EPS),
    "quantiles": lambda f: f.dp.quantile("x", [0, 0.5, 1], bounds=BOUNDS, eps=EPS),
    "top_k": lambda f: _without(f.dp.top_k("g", 2, candidates=[*KEYS, "z"], eps=EPS), "g"),
    "bounds": lambda f: f.dp.agg(dp.bounds("x", range=(-8, 8)).alias("x"), eps=EPS),
    "agg": lambda f: f.dp.agg(
        n=dp.count(),
        c=dp.count("x"),
        s=dp.clip_sum("x", bounds=BOUNDS),
        m=dp.clip_mean("x", B=1),
        eps=EPS,
        ci=0.9,
    ),
}
GROUPED = {
    "count": lambda f: f.dp.groupby("g", keys=KEYS).count(eps=EPS),
    "count x": lambda f: f.dp.groupby("g", keys=KEYS).count("x", eps=EPS),
    "sum": lambda f: f.dp.groupby("g", keys=KEYS).clip_sum("x", bounds=BOUNDS, eps=EPS),
    "mean": lambda f: f.dp.groupby("g", keys=KEYS).clip_mean("x", bounds=BOUNDS, eps=EPS),
    "var": lambda f: f.dp.groupby("g", keys=KEYS).clip_var("x", bounds=BOUNDS, eps=EPS),
    "histogram": lambda f: f.dp.groupby("g", keys=KEYS).histogram("x", edges=[-3, 0, 10], eps=EPS),
    "quantiles": lambda f: f.dp.groupby("g", keys=KEYS).quantile("x", [0.1, 0.9], bounds=BOUNDS, eps=EPS),
    "value_counts": lambda f: f.dp.value_counts("g", keys=KEYS, eps=EPS),
    "agg with choices": lambda f: f.dp.groupby("g", keys=KEYS).dp_agg(
        n=dp.count(), k=dp.n_unique("x"), m=dp.median("x", bounds=BOUNDS), eps=EPS, ci=0.9
    ),
    "agg": lambda f: f.dp.groupby("g", keys=KEYS).dp_agg(
        n=dp.count(), s=dp.clip_sum("x", bounds=BOUNDS), m=dp.clip_mean("x", bounds=BOUNDS), eps=EPS, ci=0.9
    ),
}

SCHEMA = {"x": pl.Float64, "g": pl.String}


def frame(kind, rows):
    if kind != "pandas":
        return as_kind(kind, pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    x = np.array([NAN if r[0] is None else r[0] for r in rows], dtype=float)
    return pd.DataFrame({"x": x, "g": pd.Series([r[1] for r in rows], dtype=object)})


# ---- columns of other dtypes ----


def masked(array_type, values, missing, dtype):
    return pd.Series(array_type(np.array(values, dtype=dtype), np.array(missing, dtype=bool)))


def arrow(values, dtype):
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(values, type=dtype)])))
