"""Frames of every library, dtype and size, and their cells, for tests against plain Python."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

SIZES = (0, 1, 2, 999, 1000, 1001, 100_000)
EPS = 10**6
NAN, INF = math.nan, math.inf

INTS = [None, -7, 0, 1, 5, 9, 10, 11, 100]
UINTS = [None, 0, 1, 5, 9, 10, 11, 100, 255]
FLOATS = [None, NAN, INF, -INF, 1e300, -1e300, 5e-324, -0.0, 0.1, 2.5, 9.999, 10.0, -3.25]
DECIMALS = [
    None,
    Decimal("0.01"),
    Decimal("-0.01"),
    Decimal("9.99"),
    Decimal("1" + "0" * 30),
    Decimal("-4.50"),
]

# name -> (Polars dtype, cells)
DTYPES = {
    "int8": (pl.Int8, INTS),
    "int16": (pl.Int16, INTS),
    "int32": (pl.Int32, [*INTS, 2**31 - 1]),
    "int64": (pl.Int64, [*INTS, 2**63 - 1, -(2**63)]),
    "uint8": (pl.UInt8, UINTS),
    "uint16": (pl.UInt16, UINTS),
    "uint32": (pl.UInt32, [*UINTS, 2**32 - 1]),
    "uint64": (pl.UInt64, [*UINTS, 2**64 - 1]),
    "int128": (pl.Int128, [*INTS, 2**127 - 1, -(2**127)]),
    "float32": (pl.Float32, [x for x in FLOATS if x is None or not 1e38 < abs(x) < INF]),
    "float64": (pl.Float64, FLOATS),
    "bool": (pl.Boolean, [True, False, True, None]),
    "decimal": (pl.Decimal(38, 2), DECIMALS),
    "null": (pl.Null, [None, None]),
}
ARROW = {
    "int64[pyarrow]": ("int64", pa.int64()),
    "double[pyarrow]": ("float64", pa.float64()),
    "decimal[pyarrow]": ("decimal", pa.decimal128(38, 2)),
    "bool[pyarrow]": ("bool", pa.bool_()),
    "uint8[pyarrow]": ("uint8", pa.uint8()),
}
NULLABLE = {"Int8": "int8", "Int64": "int64", "UInt64": "uint64", "Float64": "float64", "boolean": "bool"}
NUMPY = {n: n for n in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")}


def polars_column(name: str) -> tuple[list, pl.Series]:
    dtype, cells = DTYPES[name]
    if name == "decimal":
        return cells, pl.from_arrow(pa.array(cells, type=pa.decimal128(38, 2)))
    series = pl.Series(cells, dtype=dtype)
    return (series.to_list() if name == "float32" else cells), series


def pandas_column(dtype: str) -> tuple[list, pd.Series]:
    if dtype in ARROW:
        name, arrow_type = ARROW[dtype]
        cells = DTYPES[name][1]
        return cells, pd.Series(
            pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(cells, type=arrow_type)]))
        )
    if dtype == "Float64":
        missing = np.array([x is None for x in FLOATS])
        values = np.array([0.0 if x is None else x for x in FLOATS])
        return FLOATS, pd.Series(pd.arrays.FloatingArray(values, missing))  # NaN beside NA
    if dtype in NULLABLE:
        cells = DTYPES[NULLABLE[dtype]][1]
        return cells, pd.Series(cells, dtype=dtype)
    if dtype in NUMPY:
        cells = [x for x in DTYPES[dtype][1] if x is not None]
        return cells, pd.Series(np.array(cells, dtype=dtype))
    cells = [NAN if x is None else x for x in polars_column(dtype)[0]]
    return cells, pd.Series(np.array(cells, dtype=dtype))


COLUMNS = [
    *((kind, name) for kind in ("polars", "lazy") for name in DTYPES),
    *(("pandas", name) for name in (*NUMPY, "float32", "float64", *NULLABLE, *ARROW)),
]
KEYS = ["b", "absent", None, "a"]
CELLS_OF_KEYS = ["a", "b", None, "unlisted"]


def make(kind: str, name: str, n: int):
    """A frame of ``n`` rows, and its cells per key (as counters of positions in ``cells``)."""
    rng = np.random.default_rng([4, n, sum(map(ord, name))])
    cells, column = pandas_column(name) if kind == "pandas" else polars_column(name)
    where, groups = rng.integers(0, len(cells), n), rng.integers(0, 4, n)
    if kind == "pandas":
        key = pd.Series(CELLS_OF_KEYS, dtype=object)
        frame = pd.DataFrame(
            {"g": key.take(groups).reset_index(drop=True), "x": column.take(where).reset_index(drop=True)}
        )
    else:
        key = pl.Series(CELLS_OF_KEYS, dtype=pl.String)
        frame = pl.DataFrame({"g": key.gather(groups), "x": column.gather(where)})
        frame = frame.lazy() if kind == "lazy" else frame
    of_key = [where[groups == CELLS_OF_KEYS.index(k)] if k in CELLS_OF_KEYS else where[:0] for k in KEYS]
    return frame, cells, where, of_key


def bounds_of(name: str):
    return (0, 1) if "bool" in name else (-3, 10)
