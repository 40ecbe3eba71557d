"""What a frame says about itself changes no integer: flags that lie, against plain Python.

``LIARS`` makes a frame whose metadata lie about one column; another engine adds its own there.
"""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sizes import AUDIT

import dpframe as dp
from dpframe.api.bound_plan import BoundPlan
from dpframe.engine.bare import bare
from dpframe.pipeline import _exact

pytestmark = pytest.mark.usefixtures("quiet")


def _sorted_series(frame, column, down, place):
    return frame.with_columns(frame[column].set_sorted(descending=down))


def _sorted_plan(frame, column, down, place):
    return frame.lazy().with_columns(pl.col(column).set_sorted(descending=down))


def _sorted_frame(frame, column, down, place):
    return frame.lazy().set_sorted([column, "x"], descending=[down, False])


def _file(frame, column, down, place):
    by = [pq.SortingColumn(frame.columns.index(column), descending=down)]
    pq.write_table(frame.to_arrow(), place, sorting_columns=by)  # the writer does not check
    return place


def _read(frame, column, down, place):
    return pl.read_parquet(_file(frame, column, down, place))


def _scanned(frame, column, down, place):
    return pl.scan_parquet(_file(frame, column, down, place))


def _all_null(cells):
    """An Arrow column that says that all of it is missing."""
    a = pa.concat_arrays(cells.chunks) if cells.chunks else pa.array([], cells.type)
    buffers = a.buffers()
    if buffers[0] is None:
        buffers[0] = pa.py_buffer(b"\xff" * (len(a) // 8 + 1))
    return pa.Array.from_buffers(a.type, len(a), buffers, len(a), a.offset)


def _said_null(frame, column):
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    i = table.column_names.index(column)
    return table.set_column(i, column, _all_null(table.column(column)))


def _arrow(frame, column, down, place):
    return _said_null(frame, column)


def _from_arrow(frame, column, down, place):
    return pl.from_arrow(_said_null(frame, column))


def _pandas(frame, column, down, place):
    return _said_null(frame, column).to_pandas(types_mapper=pd.ArrowDtype)


LIARS = {
    f.__name__.strip("_"): f
    for f in (_sorted_series, _sorted_plan, _sorted_frame, _read, _scanned, _arrow, _from_arrow, _pandas)
}
SIZES = (0, 1, 2, 5, 300)
ROLES = {"unit": "u", "key": "g", "value": "x", "text": "t", "float": "f"}


def table(n):
    """Rows in an order that no column has; ids, keys and values recur, and some are missing."""
    i = np.arange(n)
    cells = {
        "u": [None if k % 11 == 10 else int(k * 7 % 5) for k in i],
        "g": [None if k % 13 == 12 else int(k * 5 % 3) for k in i],
        "t": [None if k % 7 == 6 else "abc"[k * 2 % 3] for k in i],
        "f": [None if k % 7 == 5 else (float("nan"), -0.0, 0.0, 1.5)[k * 3 % 4] for k in i],
        "x": [None if k % 5 == 4 else float(k * 3 % 8) for k in i],
    }
    return pl.DataFrame(
        cells, schema={"u": pl.Int64, "g": pl.Int64, "t": pl.String, "f": pl.Float64, "x": pl.Float64}
    )


KEYS = {"g": [0, 1, 2, None, 7], "t": ["c", "a", None], "f": [0.0, 1.5, None]}


def canonical(v):
    return None if v is None or v != v else v + 0.0 if isinstance(v, float) else v


def expected(frame, by, unit):
    """Rows, cells and different values per listed group (R and L0 above all): plain Python."""
    rows, present, units, values, bins = Counter(), Counter(), {}, {}, Counter()
    for row in frame.iter_rows(named=True):
        key = canonical(row[by]) if by else "all"
        if unit and row["u"] is None:
            continue
        rows[key] += 1
        units.setdefault(key, set()).add(row["u"])
        if row["x"] is not None:
            present[key] += 1
            bins[key, row["x"] >= 4] += 1
        if row["t"] is not None:
            values.setdefault(key, set()).add(row["t"])
    groups = KEYS[by] if by else ["all"]
    out = {
        "rows": [rows[g] for g in groups],
        "present": [present[g] for g in groups],
        "bins": [bins[g, b] for g in groups for b in (False, True)],
        "distinct": [len(values.get(g, ())) for g in groups],
    }
    if unit:
        out["units"] = [len(units.get(g, ())) for g in groups]
    return out


def integers(frame, by, unit):
    """The integers that would get noise."""
    bounds = {} if not unit else {"max_rows_per_group": 400} | ({"max_groups": 9} if by else {})
    if unit and not by:
        bounds = {"max_rows": 400}
    with dp.Session(eps=10**9, unit="u" if unit else None):
        plans = dp.frame(frame).plan
        place = plans.groupby(by, keys=KEYS[by]) if by else plans
        summed = place.agg(
            dp.count(), dp.count("x").alias("p"), *([dp.count_units()] if unit else []), eps=1, **bounds
        )
        cut = place.histogram("x", edges=[0, 4, 8], eps=1, **bounds)
        distinct = place.n_unique("t", eps=1, **bounds)
    assert isinstance(summed, BoundPlan)
    sums, histogram, different = (_exact(b.plan, dp.frame(frame)._source, 5) for b in (summed, cut, distinct))
    groups = len(KEYS[by]) if by else 1
    (t,), (d,) = histogram.tallies, different.tallies
    dense = t.dense(groups, cut.plan.tallies[0].how.size + 1).reshape(groups, -1)  # and the missing
    out = {
        "rows": sums.rows.tolist(),
        "present": sums.present[0].tolist(),
        "bins": dense[:, 1:3].ravel().tolist(),
        "distinct": d.dense(groups, 1).tolist(),
    }
    if unit:
        out["units"] = sums.units.tolist()
    return out


@pytest.mark.parametrize("liar", LIARS)
@pytest.mark.parametrize("role", ROLES)
def test_what_a_frame_says_about_a_column_changes_no_integer(liar, role, tmp_path):
    place, column = tmp_path / "t.parquet", ROLES[role]
    by_column = (None, "g", "t", "f") if AUDIT else (None, column if column in KEYS else "g")
    for n, down in itertools.product(SIZES, (False, True)):
        if down and n < 2:
            continue
        frame = table(n)
        lying = LIARS[liar](frame, column, down, place)
        for by, unit in itertools.product(by_column, (False, True)):
            assert integers(lying, by, unit) == expected(frame, by, unit), (n, down, by, unit)


@pytest.mark.parametrize("liar", ["sorted_series", "sorted_plan", "sorted_frame", "scanned"])
def test_nor_in_a_frame_that_is_streamed(liar, tmp_path):
    frame = table(120_000)
    right = {unit: expected(frame, "g", unit) for unit in (False, True)}
    right[True].pop("rows"), right[True].pop("present"), right[True].pop("bins")  # R is below a unit's rows
    for column, down in itertools.product("ug", (False, True)):
        lying = LIARS[liar](frame, column, down, tmp_path / "t.parquet")
        for unit in (False, True):
            got = integers(lying, "g", unit)
            assert {k: got[k] for k in right[unit]} == right[unit], (column, down, unit)


@pytest.mark.parametrize("liar", ["sorted_series", "sorted_plan", "sorted_frame", "read", "scanned"])
@pytest.mark.parametrize("column", ["u", "g"])
def test_found_groups_come_once(liar, column, tmp_path):
    frame = table(200)
    lying = LIARS[liar](frame, column, False, tmp_path / "t.parquet")
    for unit in (None, "u"):
        with dp.Session(eps=10**9, delta=0.5, unit=unit):
            limits = {"max_groups": 9, "max_rows_per_group": 400} if unit else {}
            got = dp.frame(lying).groupby("g").count(eps=10**6, delta=1e-3, **limits)
        there = frame if unit is None else frame.drop_nulls("u")
        counts = dict(zip(got["g"].to_list(), got["count"].to_list()))
        assert len(counts) == got.height
        assert counts == {g: there["g"].to_list().count(g) for g in there["g"].to_list()}


@pytest.mark.parametrize("liar", ["sorted_series", "sorted_plan", "sorted_frame", "read", "scanned"])
@pytest.mark.parametrize("column", ["u", "g"])
def test_parts_hold_every_row_once(liar, column, tmp_path):
    frame = table(200)
    lying = LIARS[liar](frame, column, False, tmp_path / "t.parquet")
    with dp.Session(eps=10**9):
        parts = dp.frame(lying).partition_by("g", keys=[0, 1, 2, None], eps=10**6)
        got = {k: p.dp.count(eps=10**5) for k, p in parts.items()}
    assert got == {k: frame["g"].to_list().count(k) for k in (0, 1, 2, None)}


def test_a_unit_of_a_file_that_says_it_is_sorted_is_one_unit(tmp_path):
    """The example of the fault: 500 runs of each of two ids were 1,000 units."""
    frame = pl.DataFrame({"user": [1, 2] * 500})
    pq.write_table(frame.to_arrow(), tmp_path / "c.parquet", sorting_columns=[pq.SortingColumn(0)])
    with dp.Session(eps=10**9, unit="user"):
        for f in (pl.read_parquet(tmp_path / "c.parquet"), pl.scan_parquet(tmp_path / "c.parquet")):
            assert f.dp.count(max_rows=1, eps=10**6) == 2


def test_categories_and_dictionaries_are_their_texts():
    """Neither the order of categories, nor a dictionary that names one text twice, makes another group."""
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0, None], pa.int8()), pa.array(["b", "b", "a"]))
    ordered = pl.Series(["b", "b", "a", "b", None], dtype=pl.Enum(["b", "a"])).set_sorted()
    for cells in (
        pl.DataFrame({"k": ordered}),
        pa.table({"k": twice}),
        pl.from_arrow(pa.table({"k": twice})),
    ):
        with dp.Session(eps=10**9):
            got = dp.frame(cells).groupby("k", keys=["a", "b", None]).count(eps=10**6)
            assert got["count"].to_list() == [1, 3, 1]
            assert dp.frame(cells).n_unique("k", eps=10**6) == 2


def test_the_optimizer_is_told_nothing_of_a_file(tmp_path):
    """No condition of ours reaches a scan, which would skip rows by what the file's statistics say."""
    pl.DataFrame({"u": [1, None, 2]}).write_parquet(tmp_path / "f.parquet")
    query = bare(pl.scan_parquet(tmp_path / "f.parquet"), ["u"]).drop_nulls("u")
    assert "SELECTION" not in query.explain()
    assert query.collect().height == 2


def test_a_plan_whose_types_are_others_than_it_says():
    """A function in a lazy plan may return another type than declared; cells are cast one by one, none raises."""
    frame = pl.LazyFrame({"x": [1, 300, 2]}).map_batches(
        lambda d: d, schema={"x": pl.UInt8}, validate_output_schema=False
    )
    with dp.Session(eps=10**9):
        assert frame.dp.groupby("x", keys=[1, 2, 44]).count(eps=10**6)["count"].to_list() == [1, 1, 0]
        assert frame.dp.count("x", eps=10**6) == 2
