"""Steps of a user's own plan over a column that says it is sorted and is not: windows, groups by the unit."""

from __future__ import annotations

import polars as pl
import pyarrow.parquet as pq
import pytest

import dpframe as dp

pytestmark = pytest.mark.usefixtures("quiet")
FRAME = pl.DataFrame({"g": [1, 2] * 50, "u": [3, 1, 2, 0] * 25})
PUBLIC = pl.DataFrame({"u": [3, 1, 2, 0], "v": [1, 2, 3, 4]})
LIARS = {
    "series": lambda f, down: f.with_columns(f[c].set_sorted(descending=down) for c in f.columns).lazy(),
    "expression": lambda f, down: f.lazy().with_columns(pl.col(f.columns).set_sorted(descending=down)),
    "frame": lambda f, down: f.lazy().set_sorted(f.columns[0], descending=down),
}


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("liar", LIARS)
def test_windows_of_columns_that_lie(liar, down):
    frame = LIARS[liar](FRAME, down)
    with dp.Session(eps=10**9):
        assert frame.with_columns(n=pl.len().over("g")).dp.clip_sum("n", bounds=(0, 100), eps=10**6) == 5_000


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("liar", LIARS)
def test_a_unit_that_a_lying_group_by_splits_is_one_unit_still(liar, down):
    """Polars may make 100 groups of two; each unit counts within its limits all the same."""
    frame = LIARS[liar](FRAME, down).group_by("g").agg(n=pl.len())
    with dp.Session(eps=10**9, unit="g"):
        assert frame.dp.count(max_rows=1, eps=10**6) == 2
        assert frame.dp.count_units(eps=10**6) == 2


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("liar", LIARS)
def test_strict_sessions_refuse_flags_that_comparisons_and_joins_believe(liar, down, tmp_path):
    """Planted by Polars itself: of 100 rows, 50 below 2, a filter over a lying flag counted 92, and a join 1."""
    frame = LIARS[liar](FRAME, down)
    with dp.Session(eps=10**9, strict=True) as s:
        for asked in (frame, frame.filter(pl.col("u") < 2), frame.join(dp.public(PUBLIC).lazy(), on="u")):
            with pytest.raises(dp.InputError, match="strict"):
                asked.dp.count(eps=10**6)
        assert not s.releases
        public = dp.public(PUBLIC.with_columns(PUBLIC[c].set_sorted(descending=down) for c in PUBLIC.columns))
        assert FRAME.lazy().join(public.lazy(), on="u").dp.count(eps=10**6) == 100
        bare = pl.DataFrame(FRAME.sort("u").to_arrow()).lazy()
        assert bare.filter(pl.col("u") < 2).dp.count(eps=10**6) == 50


def test_strict_sessions_refuse_files_that_say_how_they_are_sorted(tmp_path):
    said, silent = tmp_path / "said.parquet", tmp_path / "silent.parquet"
    pq.write_table(FRAME.to_arrow(), said, sorting_columns=[pq.SortingColumn(1)])
    pq.write_table(FRAME.to_arrow(), silent)
    with dp.Session(eps=10**9, strict=True):
        with pytest.raises(dp.InputError, match="how they are sorted"):
            pl.scan_parquet(said).filter(pl.col("u") < 2).dp.count(eps=10**6)
        assert pl.scan_parquet(silent).filter(pl.col("u") < 2).dp.count(eps=10**6) == 50
