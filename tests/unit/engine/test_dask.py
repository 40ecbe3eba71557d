"""Dask DataFrames: Polars' integers for all that adds up over partitions, and refusals before the charge for the rest."""

from __future__ import annotations

import pickle

import pandas as pd
import polars as pl
import pytest
from sizes import FRAMES

import dpframe as dp
from dpframe.testing.engines import check_engine

dask = pytest.importorskip("dask", reason="Dask is not installed: pip install 'dpframe[dask]'")
dd = pytest.importorskip("dask.dataframe", reason="Dask is not installed: pip install 'dpframe[dask]'")


pytestmark = pytest.mark.usefixtures("quiet")

TABLE = pl.DataFrame(
    {
        "x": [1.0, None, float("nan"), 3.0, 99.0, 2.5, -0.5, float("inf")],
        "i": [1, 2, None, 4, 5, -6, 7, 2**40],
        "g": ["a", "b", "a", None, "b", "a", "zz", "b"],
        "u": [1, 1, 2, 3, 3, 1, None, 2],
    }
)


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="sync"):
        yield


def make(frame: pl.DataFrame, partitions: int = 3):
    return dd.from_pandas(frame.to_pandas(use_pyarrow_extension_array=True), npartitions=partitions)


def ask(frame):
    return (
        dp.frame(frame)
        .groupby("g", keys=["b", None, "q"])
        .dp_agg(
            n=dp.count(),
            present=dp.count("x"),
            total=dp.clip_sum("i", bounds=(-5, 5)),
            mean=dp.clip_mean("x", bounds=(0, 10)),
            eps=1,
        )
    )


def test_conformance():
    sizes = iter([1, 2, 3, 20] * FRAMES)
    got = check_engine(lambda frame: make(frame, next(sizes)), frames=FRAMES)
    assert got.frames == FRAMES
    assert got.bounded == 0
    assert set(got.statistics) >= {"count", "clip_sum", "clip_mean"}
    assert "n_unique" not in got.statistics


def test_answers_are_polars_frames(no_noise):
    with dp.Session(eps=10):
        got = ask(make(TABLE))
        assert isinstance(got, pl.DataFrame)
        assert got.equals(ask(TABLE))
        assert got.schema == ask(TABLE).schema
        assert dp.frame(make(TABLE)).count(eps=1) == 8
        assert dp.frame(make(TABLE)).clip_mean("x", bounds=(0, 10), eps=1) == pytest.approx(26.5 / 6)


def test_however_the_rows_are_parted(no_noise):
    with dp.Session(eps=100):
        answers = [ask(make(TABLE.sample(fraction=1, shuffle=True, seed=i), i)) for i in range(1, 9)]
        assert all(a.equals(answers[0]) for a in answers)
        many = pl.concat([TABLE] * 100)  # more partitions than are added up at once
        assert ask(make(many, 60)).equals(ask(many))


def test_found_keys_of_all_partitions(no_noise):
    many = pl.concat([TABLE.filter(pl.col("g").ne_missing("zz"))] * 40 + [TABLE])
    with dp.Session(eps=10, delta=0.5):
        got, expected = (
            dp.frame(f).groupby("g").dp_agg(n=dp.count(), eps=1, delta=1e-3) for f in (make(many, 9), many)
        )
    assert got.equals(expected)
    assert got.schema == expected.schema
    assert got["g"].to_list() == [None, "a", "b"]


def test_histograms_and_quantiles_add_up_too(no_noise):
    with dp.Session(eps=10):
        got, expected = (dp.frame(f).histogram("x", edges=[0, 2, 4], eps=1) for f in (make(TABLE), TABLE))
        assert got.equals(expected)
        assert dp.frame(make(TABLE)).quantile("x", 0.5, candidates=[0, 2, 50], eps=1e-3) in (0, 2, 50)


def test_files_are_read_by_their_used_columns(tmp_path, monkeypatch, no_noise):
    many = pl.concat([TABLE] * 20)
    make(many, 4).to_parquet(tmp_path / "t")
    frame, read = dd.read_parquet(tmp_path / "t"), []
    monkeypatch.setattr(
        "dpframe.engine.dask._asked",
        lambda question, types, part: read.append([*part.columns]) or question.ask(_source(part)),
    )
    with dp.Session(eps=10):
        assert ask(frame).equals(ask(many))
        assert dp.frame(frame).count(eps=1) == 160
    assert {tuple(sorted(columns)) for columns in read} == {(), ("g", "i", "x")}


def _source(part):
    from dpframe.engine.pandas import PandasSource

    return PandasSource(part)


def test_other_processes(no_noise):
    """Questions and answers travel; the frame's own source does not."""
    with dask.config.set(scheduler="processes", num_workers=1), dp.Session(eps=10):
        assert ask(make(TABLE, 2)).equals(ask(TABLE))
    with pytest.raises(TypeError, match="can't be pickled"):
        pickle.dumps(dp.frame(make(TABLE))._source)


def test_a_partition_is_brought_to_the_types_that_the_frame_declares(no_noise):
    """Cells that can't be are missing; a partition that fails in Dask fails the release, without a word of what was in it."""

    def halves(part):
        return part.assign(i=part["i"].astype("float64" if part.index[0] else "int64"))

    whole = pd.DataFrame({"i": [1, 2, 3, 4]})
    declared = dd.from_pandas(whole, npartitions=2).map_partitions(halves, meta=whole.iloc[:0])
    with dp.Session(eps=10) as s:
        assert dp.frame(declared).clip_sum("i", bounds=(0, 9), eps=1) == 10
        text = declared.map_partitions(lambda p: p.assign(i="canary-4711"), meta=whole.iloc[:0])
        assert dp.frame(text).count("i", eps=1) == 0
        broken = text.map_partitions(lambda p: p.assign(i=p["i"].astype(int)), meta=whole.iloc[:0])
        with pytest.raises(dp.ReleaseFailed) as failed:
            dp.frame(broken).clip_sum("i", bounds=(0, 9), eps=1)
        assert s.spent == 3
    assert "canary" not in str(failed.value)
    assert failed.value.__context__ is None


def test_categories_must_be_declared():
    frame = make(TABLE).assign(c=lambda f: f["g"].astype("category"))
    with dp.Session(eps=1) as s:
        with pytest.raises(dp.InputError, match=r"category of unknown values.*Hint"):
            dp.frame(frame).groupby("c", keys=["a"]).count(eps=1)
        assert s.spent == 0


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (lambda f: f.n_unique("g", eps=1), r"n_unique does not take <Dask.*many partitions.*Hint"),
        (lambda f: f.partition_by("g", keys=["a"], eps=1), r"partition_by does not take <Dask.*Hint"),
        (lambda f: f.count("nope", eps=1), "no column 'nope'"),
    ],
)
def test_what_does_not_add_up_is_refused_before_the_charge(question, reason):
    with dp.Session(eps=1) as s:
        with pytest.raises(dp.InputError, match=reason):
            question(dp.frame(make(TABLE)))
        assert s.spent == 0


def test_units_and_strict_sessions_are_refused_before_the_charge():
    with dp.Session(eps=1, unit="u") as s:
        for verb in (lambda f: f.count(max_rows=1, eps=1), lambda f: f.count_units(eps=1)):
            with pytest.raises(dp.InputError, match=r"A session with a unit does not take <Dask.*Hint"):
                verb(dp.frame(make(TABLE)))
        assert s.spent == 0
    with dp.Session(eps=1, strict=True) as s:
        with pytest.raises(dp.InputError, match="not known to be row by row: Dask"):
            dp.frame(make(TABLE)).count(eps=1)
        assert s.spent == 0


def test_only_dataframes_are_taken():
    for odd in (make(TABLE)["x"], dd.from_pandas(pd.Series([1]), npartitions=1)):
        with pytest.raises(TypeError, match=r"dp\.frame takes Dask DataFrames.*Hint"):
            dp.frame(odd)


def test_a_frame_shows_no_cell():
    assert repr(dp.frame(make(TABLE))).startswith("<df.dp of <Dask DataFrame with 4 columns>")


def test_a_cell_that_does_not_fit_the_declared_type_is_missing(no_noise):
    """One row must not decide whether there is an answer: a partition may hold other types than it says."""
    whole = pd.DataFrame({"x": [0, 1, 2, 3], "b": [True] * 4, "t": pd.to_datetime(["2020-01-01"] * 4)})

    def made(wrong, x, b, t):
        return pd.DataFrame({"x": x, "b": b, "t": t}) if wrong else whole

    weird = [
        (
            [0.0, 1.0, None, float("inf")],
            [True, None, "no", True],
            ["2020-01-01", "never", None, "2020-01-01"],
        ),
        ([None] * 4, [None] * 4, [None] * 4),
        (["0", "1", "one", "1.5e"], [True, False, None, True], whole["t"].astype("datetime64[s]")),
        ([1.0, 1e300, -1e300, 2.0**63], whole["b"], whole["t"]),
    ]
    expected = [(6, 7, 6, 7), (4, 4, 4, 6), (6, 7, 8, 7), (5, 8, 8, 7)]
    for (x, b, t), (n_x, n_b, n_t, total) in zip(weird, expected):
        frame = dd.from_map(made, [False, True], x=x, b=b, t=t, meta=whole.iloc[:0])
        with dp.Session(eps=100):
            door = dp.frame(frame)
            assert door.count(eps=1) == 8
            assert [door.count(c, eps=1) for c in "xbt"] == [n_x, n_b, n_t]
            assert door.clip_sum("x", bounds=(0, 10), eps=1) == total
            listed = door.groupby("x", keys=[1, 2]).count(eps=1)
            assert listed["count"].sum() == 2 + (total == 7)
