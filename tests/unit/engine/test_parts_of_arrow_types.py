"""Parts of a pandas frame whose columns Arrow can't take rows of, used or not: answered, whoever is in which part."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

import dpframe as dp

pytestmark = pytest.mark.usefixtures("quiet")

CELLS = {
    "views of text": pa.array(["a", None, "b" * 40], pa.string_view()),
    "views of bytes": pa.array([b"a", None, b"b" * 40], pa.binary_view()),
    "lists of views": pa.array([["a"], None, []], pa.list_(pa.string_view())),
    "structs of views": pa.array([{"f": "a"}, None, {"f": None}], pa.struct([("f", pa.string_view())])),
    "runs of text": pa.RunEndEncodedArray.from_arrays(
        pa.array([1, 2, 3], pa.int32()), pa.array(["a", None, "b"])
    ),
    "runs of numbers": pa.RunEndEncodedArray.from_arrays(
        pa.array([1, 2, 3], pa.int32()), pa.array([1.0, None, 2.0])
    ),
    "opaque": pa.ExtensionArray.from_storage(
        pa.opaque(pa.string_view(), "t", "v"), pa.array(["a", None, "b"], pa.string_view())
    ),
    "lists": pa.array([[1], None, []], pa.list_(pa.int64())),
    "text": pa.array(["a", None, "b"], pa.string()),
}


def _frame(kind, n, index=None):
    cells = pd.arrays.ArrowExtensionArray(pa.chunked_array([CELLS[kind][:n]]))
    return pd.DataFrame(
        {"x": cells, "g": pd.Series([1, 1, 2][:n], dtype="int64"), "v": [1.0, 2.0, 3.0][:n]}, index=index
    )


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", CELLS)
def test_parts_beside_and_of_such_a_column(kind, n):
    """In 0.1.0 a part of any row failed in Arrow's words after the charge."""
    frame = _frame(kind, n, index=[7, 7, 7][:n])
    with dp.Session(eps=10**9):
        parts = frame.dp.partition_by("g", keys=[1, 2, 3], eps=10**7)
        for g, p in parts.items():
            rows = frame["v"][frame["g"] == g]
            assert p.dp.count(eps=10**6) == len(rows)
            assert p.dp.clip_sum("v", bounds=(0, 3), eps=10**6) == pytest.approx(rows.sum(), abs=1e-3)
            there = sum(c is not None for c, h in zip(CELLS[kind][:n].to_pylist(), frame["g"]) if h == g)
            assert p.dp.count("x", eps=10**6) == there


@pytest.mark.parametrize("kind", ["views of text", "text"])
def test_parts_by_such_a_column(kind):
    with dp.Session(eps=10**9):
        parts = _frame(kind, 3).dp.partition_by("x", keys=["a", None, "b"], eps=10**7)
        assert [p.dp.count(eps=10**6) for p in parts.values()] == [1, 1, int(kind == "text")]
        assert parts["a"].dp.n_unique("x", eps=10**6) == 1
