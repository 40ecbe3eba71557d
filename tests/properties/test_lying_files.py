"""What a Parquet file says of its cells decides about no row: filters of the caller's own plan, over files that lie."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from lying_files import GROUP, all_null, served, with_statistics_of
from polars.io.plugins import register_io_source

import dpframe as dp
from dpframe.engine.polars_scans import as_read

pytestmark = pytest.mark.usefixtures("quiet")
N = 3 * GROUP
VALUES = {
    "int": lambda k: k,
    "float": lambda k: k / 2,
    "text": lambda k: f"{k:04}",
    "date": lambda k: dt.date(2020, 1, 1) + dt.timedelta(k),
    "decimal": lambda k: Decimal(1000 + k),  # of one precision
    "instant": lambda k: dt.datetime(2020, 1, 1) + dt.timedelta(hours=k),
}
SCANS = {
    "scan": pl.scan_parquet,
    "list": lambda f: pl.scan_parquet([f]),
    "bytes": lambda f: pl.scan_parquet(f.read_bytes()),
    "uri": lambda f: pl.scan_parquet(f.as_uri()),
    "dataset": lambda f: pl.scan_pyarrow_dataset(ds.dataset(f)),
    "silent": lambda f: pl.scan_parquet(f, use_statistics=False),
}


def _table(value, numbers):
    """``x`` and ``g`` hold the value of a number, ``u`` one of three units."""
    cells = [value(k) for k in numbers]
    return pa.table({"x": cells, "g": cells, "u": [k % 3 for k in range(len(cells))]})


def _liar(kind, place, n=N, **options):
    """Cells 0, 1, 2, ... of which the file says that none is above 4."""
    value = VALUES[kind]
    told = _table(value, [k % 5 for k in range(n)])
    return with_statistics_of(_table(value, range(n)), told, place, **options)


def _filters(kind, n=N):
    v = {k: pl.lit(VALUES[kind](k)) for k in (3, 60)}
    x, many = pl.col("x"), range(n)
    return {
        "above": (x > v[60], sum(k > 60 for k in many)),
        "below": (x < v[3], sum(k < 3 for k in many)),
        "equal": (x == v[60], sum(k == 60 for k in many)),
        "between": (x.is_between(v[3], v[60]), sum(3 <= k <= 60 for k in many)),
        "one of": (x.is_in([VALUES[kind](k) for k in (3, 60)]), sum(k in (3, 60) for k in many)),
        "other": (x != v[3], sum(k != 3 for k in many)),
        "both": ((x > v[3]) & (pl.col("u") == 1), sum(k > 3 and k % 3 == 1 for k in many)),
    }


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("scan", SCANS)
def test_statistics_that_lie_leave_out_no_row(kind, scan, tmp_path):
    """Planted by Polars itself: of 89 cells above 60 of a file that says none is, it counted 0."""
    frame = SCANS[scan](_liar(kind, tmp_path / "f.parquet"))
    for name, (condition, rows) in _filters(kind).items():
        kept = frame.filter(condition)
        with dp.Session(eps=10**9):
            assert kept.dp.count(eps=10**6) == rows, name
            assert kept.dp.n_unique("g", eps=10**6) == rows, name
            assert sum(kept.dp.groupby("u", keys=[0, 1, 2]).count(eps=10**6)["count"]) == rows, name
        with dp.Session(eps=10**9, unit="u"):
            assert kept.dp.count(max_rows=N, eps=10**7) == rows, name


@pytest.mark.parametrize(
    "options", [{}, {"use_dictionary": True}, {"write_page_index": False}, {"row_group_size": N}]
)
@pytest.mark.parametrize("n", [1, 2, N])
def test_of_any_form_and_size(n, options, tmp_path):
    value = VALUES["int"]
    place = with_statistics_of(
        _table(value, range(9, 9 + n)), _table(value, range(n)), tmp_path / "f.parquet", **options
    )
    frame = pl.scan_parquet(place).filter(pl.col("x") >= 9 + n // 2)
    with dp.Session(eps=10**9):
        assert frame.dp.count(eps=10**6) == n - n // 2
        assert frame.dp.clip_sum("x", bounds=(0, 1), eps=10**6) == pytest.approx(n - n // 2, abs=1e-2)
        parts = frame.dp.partition_by("u", keys=[0, 1, 2], eps=10**6)
        assert sum(p.dp.count(eps=10**6) for p in parts.values()) == n - n // 2


@pytest.mark.parametrize("scan", SCANS)
def test_numbers_of_nulls_that_lie(scan, tmp_path):
    frame = SCANS[scan](all_null(_table(VALUES["int"], range(N)), tmp_path / "f.parquet"))
    x = pl.col("x")
    there = (frame, frame.drop_nulls(), frame.filter(x.is_not_null()))
    asked = [*((f, N) for f in there), (frame.filter(x.is_null()), 0)]
    with dp.Session(eps=10**9):
        for f, rows in asked:
            assert f.dp.count(eps=10**6) == f.dp.count("x", eps=10**6) == rows


def test_filters_on_folders_still_save_reading(tmp_path):
    """Where statistics are off, nothing but the names of folders is left to skip by."""
    for y in (1, 2):
        (tmp_path / f"y={y}").mkdir()
        pl.DataFrame({"a": [1] * y}).write_parquet(tmp_path / f"y={y}" / "0.parquet")
    for on in (False, True):
        frame = pl.scan_parquet(tmp_path, use_statistics=on, hive_schema={"y": pl.Int64}).filter(
            pl.col("y") == 1
        )
        assert ("y=2" in frame.explain(optimizations=as_read(frame))) == on
        with dp.Session(eps=10**9, strict=True):
            assert frame.dp.count(eps=10**6) == 1


def test_strict_sessions_take_filters_over_files_that_lie(tmp_path):
    place = _liar("int", tmp_path / "f.parquet")
    with dp.Session(eps=10**9, strict=True):
        for scan in ("scan", "uri", "silent", "dataset"):
            frame = SCANS[scan](place)
            assert frame.filter(pl.col("x") > 60).dp.count(eps=10**6) == N - 61


# ---- queries that were made before dpframe: what docs/engines.md says of them ----

OFF = "SET disabled_optimizers='filter_pushdown,statistics_propagation'"


def _duckdb(place):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute(OFF)
    return connection.read_parquet(str(place)).filter("x > 60")


def _ibis(place):
    ibis = pytest.importorskip("ibis")
    backend = ibis.duckdb.connect()
    backend.raw_sql(OFF)
    table = backend.read_parquet(place)
    return table.filter(table.x > 60)


def _dask(place):
    frame = pytest.importorskip("dask.dataframe").read_parquet(place)
    return frame[frame.x > 60]


def _pandas(place):
    frame = pd.read_parquet(place)
    return frame[frame.x > 60]


QUERIES = {
    "duckdb": _duckdb,
    "ibis": _ibis,
    "dask": _dask,
    "pandas": _pandas,
    "pyarrow": lambda place: pq.read_table(place).filter(pc.field("x") > 60),
    "polars": lambda place: pl.read_parquet(place).filter(pl.col("x") > 60),
}


@pytest.mark.parametrize("engine", QUERIES)
def test_other_engines_read_every_row_where_they_are_told_to(engine, tmp_path):
    frame = QUERIES[engine](_liar("int", tmp_path / "f.parquet"))
    with dp.Session(eps=10**9):
        assert dp.frame(frame).count(eps=10**6) == N - 61


# ---- what says that it is sorted, and can't be looked at ----

UNSORTED = pl.DataFrame({"u": [3, 1, 2, 0] * 25})


def _flagged(with_columns, predicate, n_rows, batch_size):
    frame = UNSORTED.with_columns(UNSORTED["u"].set_sorted())
    yield frame if predicate is None else frame.filter(predicate)


def _ipc(place):
    UNSORTED.lazy().with_columns(pl.col("u").set_sorted()).sink_ipc(place, _record_batch_statistics=True)
    return pl.scan_ipc(place, _record_batch_statistics=True)


def _parquet(place):
    pq.write_table(UNSORTED.to_arrow(), place, sorting_columns=[pq.SortingColumn(0)])
    return place


SORTED = {
    "uri": lambda place: pl.scan_parquet(_parquet(place).as_uri()),
    "folder": lambda place: pl.scan_parquet(_parquet(place).parent),
    "pattern": lambda place: pl.scan_parquet(_parquet(place).parent / "*"),
    "bytes": lambda place: pl.scan_parquet(_parquet(place).read_bytes()),
    "function": lambda place: register_io_source(_flagged, schema=UNSORTED.schema),
    "ipc": _ipc,
}


@pytest.mark.parametrize("made", SORTED)
def test_strict_sessions_refuse_steps_on_what_may_say_that_it_is_sorted(made, tmp_path):
    """Planted by Polars itself: of 50 cells below 2 in a source that flags them, a filter kept 46."""
    frame = SORTED[made](tmp_path / "f")
    with dp.Session(eps=10**9, strict=True) as s:
        with pytest.raises(dp.InputError, match="strict"):
            frame.filter(pl.col("u") < 2).dp.count(eps=10**6)
        assert not s.releases


@pytest.mark.parametrize("made", ["uri", "folder", "pattern", "function"])
def test_and_take_them_as_they_are(made, tmp_path):
    """What dpframe does with rows believes no flag, so a plan without a step is fine."""
    with dp.Session(eps=10**9, strict=True):
        frame = SORTED[made](tmp_path / "f")
        assert frame.dp.n_unique("u", eps=10**6) == 4
        assert frame.dp.groupby("u", keys=[0, 1, 2, 3]).count(eps=10**6)["count"].to_list() == [25] * 4


def test_files_elsewhere_are_not_looked_at(tmp_path):
    with served(_parquet(tmp_path / "f.parquet")) as address, dp.Session(eps=10**9, strict=True):
        frame = pl.scan_parquet(address)
        assert frame.dp.count(eps=10**6) == 100
        with pytest.raises(dp.InputError, match="remote Parquet"):
            frame.filter(pl.col("u") < 2).dp.count(eps=10**6)
