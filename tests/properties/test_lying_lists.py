"""Arrow's stated number of nulls is looked at, not believed: of nested columns and inside of them, whole and sliced."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpframe as dp
from dpframe.engine.bare import bare, counted

pytestmark = pytest.mark.usefixtures("quiet")

NESTED = {
    "lists": pa.array([[1.0], None, [2.0], None] * 5),
    "long lists": pa.array([[1.0], None, [2.0], None] * 5, pa.large_list(pa.float64())),
    "arrays": pa.array([[1.0, 2.0], None, [2.0, 3.0], None] * 5, pa.list_(pa.float64(), 2)),
    "structs": pa.array([{"a": 1}, None, {"a": 2}, None] * 5),
    "maps": pa.array([[("a", 1)], None, [("b", 2)], None] * 5, pa.map_(pa.string(), pa.int64())),
    "lists of structs": pa.array([[{"a": 1}], None, [{"a": 2}], None] * 5),
    "list views": pa.array([[1], None, [2], None] * 5, pa.list_view(pa.int64())),
    "integers": pa.array([1, None, 2, None] * 5),
    "texts": pa.array(["1", None, "2", None] * 5, pa.string_view()),
}
OWN = {
    "maps": 2,
    "lists": 2,
    "long lists": 2,
    "lists of structs": 2,
    "arrays": 1,
    "structs": 1,
    "list views": 3,
}


def lying(name, cells, said):
    """The same cells, which say that so many are null."""
    own = OWN.get(name)
    if own is None:
        return pa.Array.from_buffers(cells.type, len(cells), cells.buffers(), said, cells.offset)
    kids = [cells.field(i) for i in range(cells.type.num_fields)] if name == "structs" else [cells.values]
    return pa.Array.from_buffers(cells.type, len(cells), cells.buffers()[:own], said, cells.offset, kids)


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("slices", [slice(0, 20), slice(2, 15)])
@pytest.mark.parametrize("said", ["all", 1])
def test_stated_nulls_of_nested_columns_are_not_believed(name, slices, said):
    cells = NESTED[name][slices]
    there = len(cells) - cells.null_count
    if name == "structs" and slices.start:
        lied = lying(name, NESTED[name], 20 if said == "all" else said)[slices]
    else:
        lied = lying(name, cells, len(cells) if said == "all" else said)
    assert counted(lied).to_pylist() == cells.to_pylist()
    table = pa.table({"x": lied})
    frames = [dp.frame(table), table.to_pandas(types_mapper=pd.ArrowDtype).dp]
    if name != "list views" and not (name == "arrays" and slices.start):  # of which Polars makes no series
        series = pl.DataFrame({"x": pl.from_arrow(lied)})
        frames += [series.dp, series.lazy().dp]
    with dp.Session(eps=1e9):
        assert [int(f.count("x", eps=1e6)) for f in frames] == [there] * len(frames)


def test_nor_those_inside_of_lists():
    """A vector with a missing part is missing; one that only says so is there."""
    inner = pa.array([1.0, 2.0, 3.0, 4.0])
    buffers = [pa.py_buffer(b"\xff"), inner.buffers()[1]]
    lied = pa.Array.from_buffers(inner.type, 4, buffers, 4)
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 4], pa.int32()), lied)
    frame = pl.DataFrame({"x": pl.from_arrow(lists)})
    assert bare(frame).collect()["x"].to_list() == [[1.0, 2.0], [3.0, 4.0]]
    assert counted(lists).to_pylist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_frame_of_every_nested_type_is_itself():
    import datetime as dt

    frame = pl.DataFrame(
        {
            "list": [[1.0, None], None, []],
            "enum": pl.Series([["a"], None, []], dtype=pl.List(pl.Enum(["a"]))),
            "cat": pl.Series([["a"], None, []], dtype=pl.List(pl.Categorical)),
            "struct": [{"a": 1, "b": "x"}, None, {"a": None, "b": None}],
            "array": pl.Series([[dt.date(2020, 1, 1)], [None], None], dtype=pl.Array(pl.Date, 1)),
            "decimal": pl.Series([["1.5"], None, []]).cast(pl.List(pl.Decimal(10, 2))),
            "duration": pl.Series([[dt.timedelta(1)], None, []], dtype=pl.List(pl.Duration("ms"))),
            "bytes": [[b"x"], None, []],
            "wide": pl.Series([[1], None, []], dtype=pl.List(pl.Int128)),
        }
    )
    found = bare(frame).collect()
    assert found.schema == frame.schema
    assert found.equals(frame)
