"""PyArrow tables, and files that are read as they are aggregated."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest

import dpframe as dp
from dpframe.engine.pairs import _Sums

TABLE = pl.DataFrame(
    {
        "x": [1.0, None, float("nan"), 3.0, 99.0],
        "y": [1, 2, None, 4, 5],
        "g": ["a", "b", "a", None, "b"],
        "d": [dt.date(2026, 1, 1)] * 4 + [None],
        "u": [1, 1, 2, 3, 3],
        "wide": ["never read"] * 5,
    }
)


@pytest.fixture
def arrow():
    table = TABLE.to_arrow()
    odd = {
        "interval": pa.array([None, (1, 2, 3), None, None, (0, 0, 1)], pa.month_day_nano_interval()),
        "far": pa.array([Decimal("1.5"), None, None, None, None], pa.decimal256(40, 2)),
        "coded": pa.array(["p", "q", None, "p", "q"]).dictionary_encode(),
    }
    for name, values in odd.items():
        table = table.append_column(name, values)
    return table


def questions(frame, **options):
    return frame.groupby("g", keys=["b", None, "zz"]).dp_agg(
        n=dp.count(),
        x=dp.clip_sum("x", bounds=(0, 10)),
        y=dp.clip_mean("y", bounds=(0, 5)),
        present=dp.count("x"),
        eps=1,
        **options,
    )


def test_arrow_answers_are_those_of_polars(arrow, no_noise, quiet):
    with dp.Session(eps=10):
        got = questions(dp.frame(arrow))
        assert isinstance(got, pl.DataFrame)
        assert got.equals(questions(TABLE.dp))
    with dp.Session(eps=10, unit="u", max_groups=2, max_rows_per_group=1):
        assert questions(dp.frame(arrow)).equals(questions(TABLE.dp))


def test_arrow_types_that_polars_lacks_can_be_counted_but_not_measured(arrow, no_noise):
    frame = dp.frame(arrow)
    with dp.Session(eps=10) as s:
        assert frame.count(eps=1) == 5
        assert frame.count("interval", eps=1) == 2
        assert frame.count("far", eps=1) == 1
        spent = s.spent
        with pytest.raises(dp.InputError, match=r"decimal256\(40, 2\)"):
            frame.clip_sum("far", bounds=(0, 1), eps=1)
        assert s.spent == spent
        coded = frame.groupby("coded", keys=["q", None]).count(eps=1)
        assert coded["coded"].to_list() == ["q", None]
        assert coded["count"].to_list() == [2, 1]


def test_arrow_parts_and_unknown_keys(arrow, no_noise):
    frame = dp.frame(arrow)
    with dp.Session(eps=50, delta=0.9):
        parts = frame.partition_by("g", keys=["a", None], eps=1)
        assert [p.dp.count(eps=0.5) for p in parts.values()] == [2, 1]
        many = pa.table({"g": ["a"] * 500 + ["b"] * 400})
        found = dp.frame(many).groupby("g").dp_agg(n=dp.count(), eps=1, delta=1e-6)
        assert found.to_dict(as_series=False) == {"g": ["a", "b"], "n": [500, 400]}


def test_arrow_repr_and_messages_hold_no_cell(arrow):
    frame = dp.frame(arrow)
    assert "never read" not in repr(frame)
    with dp.Session(eps=1), pytest.raises(dp.InputError, match="no column 'z'"):
        frame.count("z", eps=1)
    twice = pa.table([[1], [2]], names=["a", "a"])
    with dp.Session(eps=1), pytest.raises(dp.InputError, match="2 columns named 'a'"):
        dp.frame(twice).count("a", eps=1)


def test_other_objects_are_refused():
    for odd in (pl.Series([1]), [1, 2], pl.col("x"), pa.array([1])):
        with pytest.raises(TypeError, match=r"dp\.frame takes"):
            dp.frame(odd)


@pytest.fixture(params=["parquet", "csv"])
def files(request, tmp_path):
    for i in range(3):
        path = tmp_path / f"{i}.{request.param}"
        TABLE.write_parquet(path) if request.param == "parquet" else TABLE.write_csv(path)
    if request.param == "parquet":
        return pl.scan_parquet(tmp_path / "*.parquet")
    return pl.scan_csv(tmp_path / "*.csv", schema=TABLE.schema)


@pytest.fixture
def plans(monkeypatch):
    """The optimized plan of everything that is collected, and the engine that is asked for."""
    seen = []

    def spied(run):
        def spy(self, *args, **options):
            seen.append((self.explain(), options.get("engine")))
            return run(self, *args, **options)

        return spy

    for name in ("collect", "sink_batches"):
        monkeypatch.setattr(pl.LazyFrame, name, spied(getattr(pl.LazyFrame, name)))
    return seen


@pytest.mark.parametrize("unit", [None, "u"])
def test_one_scan_of_the_used_columns_for_any_number_of_aggregates(files, plans, unit):
    bounds = {} if unit is None else {"max_groups": 1, "max_rows_per_group": 2}
    with dp.Session(eps=10, unit=unit):
        questions(files.dp, **bounds)
    assert {engine for _, engine in plans} == {"streaming"}
    (plan,) = [plan for plan, _ in plans if "SCAN" in plan]
    assert len(re.findall(r"\bSCAN \[", plan)) == 1
    used = 3 if unit is None else 4
    assert f"PROJECT {used}/6 COLUMNS" in plan
    assert "wide" not in plan
    assert '"d"' not in plan


@pytest.mark.parametrize("unit", [None, "u"])
def test_tallies_read_the_used_columns_once_for_all_of_them(files, plans, monkeypatch, unit):
    seen, collect_all = [], pl.collect_all

    def spy(queries, **options):
        seen.append(pl.explain_all(queries))
        return collect_all(queries, **options)

    monkeypatch.setattr(pl, "collect_all", spy)
    bounds = {} if unit is None else {"max_groups": 1, "max_rows_per_group": 2}
    with dp.Session(eps=10, unit=unit):
        files.dp.groupby("g", keys=["a", "b", None]).dp_agg(
            dp.median("x", bounds=(0, 5)), dp.n_unique("x"), eps=1, **bounds
        )
    scans = [plan for plan in [*seen, *(plan for plan, _ in plans)] if "SCAN [" in plan]
    (plan,) = scans
    assert len(re.findall(r"\bSCAN \[", plan)) == 1
    assert "wide" not in plan
    assert '"d"' not in plan


@pytest.mark.parametrize("rows", [1, 4, 1000])
def test_portions_of_any_size_add_up_to_the_same(files, monkeypatch, no_noise, quiet, rows):
    monkeypatch.setattr("dpframe.engine.pairs.AT_ONCE", rows)
    whole = pl.concat([TABLE] * 3)

    def asked(frame, options):
        summed = (dp.count("x"), dp.clip_mean("y", bounds=(0, 5)), dp.clip_var("x", bounds=(0, 5)))
        tallied = (dp.n_unique("x").alias("some"), dp.n_unique("y").alias("different"))
        return frame.dp.groupby("g", **options).dp_agg(dp.count(), *summed, *tallied, eps=1)

    limits = {"keys": ["b", None, "zz"], "max_groups": 3, "max_rows_per_group": 9}
    with dp.Session(eps=10, unit="u", max_rows=2):
        assert asked(files, limits).equals(asked(whole, limits))
        assert files.dp.histogram("y", edges=[0, 2, 5], max_rows=9, eps=1).equals(
            whole.dp.histogram("y", edges=[0, 2, 5], max_rows=9, eps=1)
        )
        once = limits | {"max_rows_per_group": 1}
        assert questions(files.dp, max_groups=3, max_rows_per_group=1).equals(
            questions(whole.dp, max_groups=3, max_rows_per_group=1)
        )
        assert asked(files.filter(pl.col("u") > 9), once).equals(asked(whole.filter(pl.col("u") > 9), once))


def test_rows_that_are_held_are_few_beside_the_pairs(monkeypatch):
    monkeypatch.setattr("dpframe.engine.pairs.AT_ONCE", 10)
    sums = _Sums(["u"], ["n"])
    for i in range(50):
        sums.add(pl.DataFrame({"u": [(i + j) % 12 for j in range(8)], "n": [1] * 8}))
        assert sum(frame.height for frame in sums._held) < 12 + 12 + 8
    lines = sums.lines()
    assert sorted(lines["u"]) == list(range(12))
    assert lines["n"].sum() == 400


def test_files_answer_as_frames_do(files, no_noise, quiet):
    whole = pl.concat([TABLE] * 3)
    with dp.Session(eps=10):
        assert questions(files.dp).equals(questions(whole.dp))
