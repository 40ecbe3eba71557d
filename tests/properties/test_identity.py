"""Different ids, keys and values stay different, in every type that a frame can hold, in all three roles.

``FRAMES`` has a column with every type: its cells, a listed key with the number of its rows, and how many
different values it holds. Another engine adds what it can hold there.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import math
import uuid
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpframe as dp
from dpframe.frames.cells import NoIdentity, as_key, identity, is_missing, known
from dpframe.frames.contract import Counts
from dpframe.pipeline import _check_groups

pytestmark = pytest.mark.usefixtures("quiet")

FAR = [0, 5, 2**62, -(2**62), 10**15, None]  # seconds: 2**62 * 1000 wraps around to 0
UTC = dt.UTC
NOON, DAY = dt.datetime(2026, 1, 1, 12), dt.date(2026, 1, 1)


def arrow(cells, dtype):
    return pa.table({"k": pa.array(cells, dtype)})


def backed(cells, dtype):
    return arrow(cells, dtype).to_pandas(types_mapper=pd.ArrowDtype)


def objects(*cells):
    held = np.empty(len(cells), dtype=object)
    held[:] = cells
    return pd.DataFrame({"k": pd.Series(held, dtype=object)})


def seconds(kind):
    return pd.DataFrame({"k": np.array([np.iinfo("i8").min if x is None else x for x in FAR], f"{kind}8[s]")})


def strings(*cells, dtype="object"):
    return pd.DataFrame({"k": pd.Series(list(cells), dtype=dtype)})


LONE = ("a\udc80", "a\udc81", "a", "a", "\0", None)
FRAMES = {  # name: (frame, a key, its rows, rows of the missing key, different values)
    "lone surrogates, objects": (strings(*LONE), "a", 2, 1, 4),
    "lone surrogates, python strings": (strings(*LONE, dtype=pd.StringDtype("python")), "\0", 1, 1, 4),
    "lone surrogates, categories": (
        pd.DataFrame(
            {"k": pd.Categorical.from_codes([0, 1, 2, 2, 3, -1], pd.Index([*LONE[:3], "\0"], dtype=object))}
        ),
        "a",
        2,
        1,
        4,
    ),
    "datetime64[s]": (seconds("M"), dt.datetime(1970, 1, 1), 1, 1, 5),
    "timedelta64[s]": (seconds("m"), dt.timedelta(0), 1, 1, 5),
    "datetime64[s], categories": (
        seconds("M").astype({"k": "category"}),
        dt.datetime(1970, 1, 1),
        1,
        1,
        5,
    ),
    "datetime64[s, UTC]": (
        pd.DataFrame({"k": seconds("M")["k"].dt.tz_localize("UTC")}),
        dt.datetime(1970, 1, 1, tzinfo=UTC),
        1,
        1,
        5,
    ),
    "timestamp[s], Arrow": (arrow(FAR, pa.timestamp("s")), dt.datetime(1970, 1, 1), 1, 1, 5),
    "timestamp[s, UTC], Arrow": (
        arrow(FAR, pa.timestamp("s", "UTC")),
        dt.datetime(1970, 1, 1, tzinfo=UTC),
        1,
        1,
        5,
    ),
    "duration[s], Arrow": (arrow(FAR, pa.duration("s")), dt.timedelta(seconds=5), 1, 1, 5),
    "timestamp[s][pyarrow]": (backed(FAR, pa.timestamp("s")), dt.datetime(1970, 1, 1), 1, 1, 5),
    "duration[s][pyarrow]": (backed(FAR, pa.duration("s")), dt.timedelta(0), 1, 1, 5),
    "picoseconds": (
        objects(np.datetime64(1, "ps"), np.datetime64(2, "ps"), np.datetime64(0, "ns"), None),
        np.datetime64(0, "ps"),
        1,
        1,
        3,
    ),
    "years": (
        objects(
            np.datetime64("2026"), dt.datetime(2026, 1, 1), np.datetime64(2**40, "Y"), np.datetime64("NaT")
        ),
        dt.date(2026, 1, 1),
        2,
        1,
        2,
    ),
    "Int64": (
        pd.DataFrame({"k": pd.array([2**53, 2**53 + 1, 2**63 - 1, None, 2**53 + 1], dtype="Int64")}),
        2**53 + 1,
        2,
        1,
        3,
    ),
    "int64": (pd.DataFrame({"k": np.array([2**53, 2**53 + 1, 2**63 - 1])}), 2**63 - 1, 1, 0, 3),
    "uint64": (pd.DataFrame({"k": np.array([2**53, 2**64 - 1, 2**64 - 2], dtype="u8")}), 2**64 - 1, 1, 0, 3),
    "UInt64": (
        pd.DataFrame({"k": pd.array([2**64 - 1, 2**64 - 2, None], dtype="UInt64")}),
        2**64 - 2,
        1,
        1,
        2,
    ),
    "int64[pyarrow]": (backed([2**53, 2**53 + 1, None], pa.int64()), 2**53, 1, 1, 2),
    "null[pyarrow]": (backed([None, None], pa.null()), "a", 0, 2, 0),
    "null, Arrow": (arrow([None, None], pa.null()), "a", 0, 2, 0),
    "dictionary[pyarrow]": (
        backed(["a", "b", None], pa.dictionary(pa.int8(), pa.string())),
        "a",
        1,
        1,
        2,
    ),
    "dictionary of integers": (backed([1, 2, None], pa.dictionary(pa.int8(), pa.int64())), 2, 1, 1, 2),
    "string_view[pyarrow]": (backed(["a", "b", "a", None], pa.string_view()), "a", 2, 1, 2),
    "decimal[pyarrow]": (backed([Decimal("1.50"), None], pa.decimal128(5, 2)), Decimal("1.5"), 1, 1, 1),
    "numbers": (
        objects(
            1, 1.0, True, 2**53, 2**53 + 1, float(2**53), Decimal("1E+50000000"), 10**5000, Fraction(1, 3)
        ),
        2**53 + 1,
        1,
        0,
        7,
    ),
    "more numbers": (
        objects(
            Decimal("1.50"), Fraction(3, 2), 1.5, Decimal("sNaN"), math.nan, math.inf, Decimal("Infinity")
        ),
        1.5,
        1,
        2,
        2,
    ),
    "tuples": (objects((1, "a"), (1, "a"), (1, "ab"), ("1", "a"), (), None), (1, "a"), 2, 1, 4),
    "nested": (objects((("a",), "b"), (("a", "b"),), ("a", ("b",))), (("a",), "b"), 1, 0, 3),
    "frozensets": (objects(frozenset("ab"), frozenset("ba"), frozenset("a")), frozenset("ab"), 2, 0, 2),
    "times": (objects(dt.time(3), dt.time(3, 0, 0, 1), dt.time(3, tzinfo=UTC)), dt.time(3), 1, 0, 3),
    "addresses": (
        objects(ipaddress.ip_address("::1"), ipaddress.ip_address("0.0.0.1"), ipaddress.ip_network("::1")),
        ipaddress.ip_address("::1"),
        1,
        0,
        3,
    ),
    "others": (
        objects(uuid.UUID(int=1), b"a", "a", PurePosixPath("a"), 1j, pd.Interval(0, 1), pd.Period("2026")),
        b"a",
        1,
        0,
        7,
    ),
    "moments": (
        objects(
            NOON, pd.Timestamp(NOON), NOON.replace(tzinfo=UTC), dt.timedelta(1), pd.Timedelta(1, "D"), DAY
        ),
        NOON,
        2,
        0,
        4,
    ),
    "Int128": (pl.DataFrame({"k": pl.Series([2**100, 2**100 + 1, None], dtype=pl.Int128)}), 2**100, 1, 1, 2),
    "Polars' nanoseconds": (
        pl.DataFrame({"k": pl.Series([0, 1, None], dtype=pl.Datetime("ns"))}),
        dt.datetime(1970, 1, 1),
        1,
        1,
        2,
    ),
    "names like ours": (
        pl.DataFrame(
            {"k": [1, 2, 2], **{n: [7, 8, 9] for n in ("k0", "u0", "code", "bin", "row", "n", "m0")}}
        ),
        2,
        2,
        0,
        2,
    ),
}


@pytest.mark.parametrize("name", FRAMES)
def test_keys_ids_and_values_stay_apart(name):
    frame, key, rows, missing, different = FRAMES[name]
    with dp.Session(eps=10**9, delta=0.9, unit="k"):
        assert dp.frame(frame).count_units(eps=10**6) == different
    with dp.Session(eps=10**9, delta=0.9):
        d = dp.frame(frame)
        assert d.n_unique("k", eps=10**6) == different
        keys = [key, None]
        table = d.groupby("k", keys=keys).count(eps=10**6)
        assert list(table["count"]) == [rows, missing]
        assert len(set(map(repr, table["k"]))) == 2


@pytest.mark.parametrize("name", [n for n in FRAMES if n != "null, Arrow"])
def test_found_keys_come_back_once_each(name):
    frame, *_ = FRAMES[name]
    many = pa.concat_tables([frame] * 60) if isinstance(frame, pa.Table) else None
    if isinstance(frame, pd.DataFrame):
        codes = isinstance(frame["k"].dtype, pd.CategoricalDtype)  # concat would hash lone surrogates
        many = frame.take(np.tile(range(len(frame)), 60)) if codes else pd.concat([frame] * 60)
    elif isinstance(frame, pl.DataFrame):
        many = pl.concat([frame] * 60)
    with dp.Session(eps=10**9, delta=0.9):
        d = dp.frame(many)
        if d._source.column("k").kind in ("interval", "other"):
            pytest.skip("no found keys of this type")
        table = d.groupby("k").count(eps=10**6, delta=1e-3)
    counts = [int(v) for v in table["count"]]
    assert sum(counts) == len(many)
    assert all(c % 60 == 0 for c in counts)


@pytest.mark.parametrize("far", [(2**62, -(2**62), 10**17, -(10**17)), (10**14,), ()])
@pytest.mark.parametrize(
    "dtype", [pa.timestamp("s"), pa.timestamp("s", "UTC"), pa.duration("s")], ids=lambda t: str(t)
)
def test_found_times_in_seconds_come_back_as_they_are(dtype, far):
    """As milliseconds, or all as whole seconds where one lies beyond what Polars can hold and print; never as null."""
    cells = [0, 5, None, *far]
    table = pa.table({"k": pa.array(cells * 20, dtype)})
    plain = all(abs(c) < (2**53 if pa.types.is_duration(dtype) else 8 * 10**12) for c in far)
    with dp.Session(eps=10**9, delta=0.9) as s:
        d = dp.frame(table)
        d.top_k("k", 1, eps=10**6, delta=1e-3)
        d.groupby("k").keys(eps=10**6, delta=1e-3)
        got = d.groupby("k").count(eps=10**6, delta=1e-3)
        assert repr(s.last)
    k = got["k"]
    assert k.dtype == (pl.Int64 if not plain else pl.Duration if pa.types.is_duration(dtype) else pl.Datetime)
    assert dict(zip(k.to_physical() // (1000 if plain else 1), got["count"])) == dict.fromkeys(cells, 20)


@pytest.mark.parametrize("missing", [[], [None]])
def test_large_integer_keys_go_out_as_they_came_in(missing):
    keys = [2**53, 2**53 + 1, 2**63 - 1]
    for dtype in ("int64", "Int64", "int64[pyarrow]"):
        frame = pd.DataFrame({"k": pd.array(keys, dtype=dtype)})
        with dp.Session(eps=10**9):
            table = frame.dp.groupby("k", keys=[*keys, *missing]).count(eps=10**6)
        assert [int(k) for k in table["k"].dropna()] == keys
        assert table["count"].tolist() == [1, 1, 1, *[0 for _ in missing]]


def test_another_units_odd_id_changes_nobodys_form():
    """Privacy: with one id that is no text, all others hash as they do without it."""
    ids = [f"p{i}" for i in range(50) for _ in range(6)]
    groups = list(range(6)) * 50
    for dtype in ("object", pd.StringDtype("python")):
        rows = []
        for extra in ([], ["\udc80"]):
            frame = pd.DataFrame(
                {"u": pd.Series([*ids, *extra], dtype=dtype), "g": [*groups, *[0 for _ in extra]]}
            )
            with dp.Session(eps=1, unit="u"):
                plan = frame.dp.plan.groupby("g", keys=range(6)).count(
                    eps=1, max_groups=2, max_rows_per_group=1
                )
            rows.append(dp.frame(frame)._source.aggregate(plan.plan.ask(9)).rows)
        assert (rows[1] - rows[0]).tolist() == [1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("cell", [{}, [], object(), {1}, (1, []), bytearray(b"a"), np.array([1])])
def test_what_has_no_identity_is_no_key_no_id_and_no_value(cell):
    assert identity(cell) is None
    assert not is_missing(cell)
    with pytest.raises(NoIdentity):
        known(cell)
    with dp.Session(eps=10**9, unit="k"):
        assert objects(cell, "a").dp.count_units(eps=10**6) == 1
    with dp.Session(eps=10**9):
        assert objects(cell, "a").dp.groupby("k", keys=["a", None]).count(eps=10**6)["count"].tolist() == [
            1,
            0,
        ]
        with pytest.raises(dp.InputError, match="does not fit"):
            objects("a", "b").dp.plan.groupby("k", keys=[cell]).count(eps=1)


def test_days_are_one_key_however_they_are_written():
    assert (
        as_key(DAY, text=False)
        == as_key(pd.Timestamp(DAY), text=False)
        == as_key(np.datetime64(DAY), text=False)
    )
    assert as_key(DAY, text=True) == as_key("2026-01-01", text=True)
    assert identity(DAY) != identity(pd.Timestamp(DAY))  # as ids they are two, as in Python
    for year in (-5000, -1, 0, 1, 1899, 1900, 2000, 2024, 2100, 9999):
        for month in range(12):
            v = np.datetime64(f"{year:05d}" if year < 0 else f"{year:04d}", "M") + month
            assert identity(v) == identity(v.astype("M8[D]"))


def test_groups_that_come_back_are_counted():
    """A found group in two lines, or too few lines, never reach the noise."""
    frame = pl.DataFrame({"k": ["a", "b"]})
    with dp.Session(eps=1, delta=0.1):
        listed = frame.dp.plan.groupby("k", keys=["a", "b"]).count(eps=1).plan
        found = frame.dp.plan.groupby("k").count(eps=1, delta=0.01).plan
    two = np.array([1, 1])
    _check_groups(listed, Counts(two, (), ()))
    _check_groups(found, Counts(two, (), (), None, pl.DataFrame({"k0": ["a", None]})))
    with pytest.raises(RuntimeError):
        _check_groups(listed, Counts(two[:1], (), ()))
    with pytest.raises(RuntimeError):
        _check_groups(listed, Counts(two, (two[:1],), ()))
    with pytest.raises(RuntimeError):
        _check_groups(found, Counts(two, (), (), None, pl.DataFrame({"k0": [None, None]})))


def test_dask_holds_no_cell_as_another():
    """257 is no uint8, 2.5 no integer, 2 no truth value: such cells are missing, not 1, 2 and True."""
    dd = pytest.importorskip("dask.dataframe")
    from dask import delayed

    for cells, dtype, keys, right in (
        ([1, 257, 3], "uint8", [1, 3, None], [1, 1, 1]),
        ([1, -255, 3], "UInt8", [1, 3, None], [1, 1, 1]),
        ([2.0, 2.5, np.nan], "Int64", [2, None], [1, 2]),
        ([0, 1, 2], "boolean", [True, False, None], [1, 1, 1]),
    ):
        meta = pd.DataFrame({"k": pd.Series([], dtype=dtype)})
        frame = dd.from_delayed([delayed(pd.DataFrame({"k": cells}))], meta=meta, verify_meta=False)
        with dp.Session(eps=10**9):
            assert dp.frame(frame).groupby("k", keys=keys).count(eps=10**6)["count"].to_list() == right
