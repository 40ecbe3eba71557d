"""The benchmarks run, small: both sides of a comparison compute the same thing. Nothing is timed here."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the benchmarks are in the repository only")


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def table(answer) -> pl.DataFrame:
    """What an engine's plain or private answer says, as a Polars frame without an index."""
    if not isinstance(answer, pl.DataFrame):
        answer = pl.from_arrow(answer) if hasattr(answer, "schema") else pl.from_pandas(answer.reset_index())
    return answer.rename({"size": "n", "mean": "x"}, strict=False).sort(answer.columns[0])


@pytest.mark.parametrize("engine", ["polars", "polars-lazy", "pandas", "duckdb"])
def test_plain_and_private_questions_of_an_engine_agree(engine, load, tmp_path, no_noise, quiet):
    frames = load("engine_frames")
    if frames.missing(engine):
        pytest.skip(frames.missing(engine))
    files = frames.write(tmp_path, 3_000, groups=10)
    rows = pl.read_parquet(files)
    assert rows.group_by("person").agg(pl.col("g").n_unique())["g"].max() == 3
    with frames.opened(engine, files) as frame:
        private = table(frames.private(frame, "groups", groups=10)())
        for plain in frames.plain(engine, frame, "groups").values():
            got = table(plain())
            assert got["n"].cast(pl.Int64).to_list() == private["n"].to_list()
            assert np.allclose(got["x"], private["x"], atol=30)  # one step of the grid
        for question in frames.QUESTIONS:
            assert frames.private(frame, question, groups=10)() is not None
            for plain in frames.plain(engine, frame, question).values():
                assert plain() is not None


@pytest.mark.parametrize(("engine", "package"), [("sqlframe", "sqlframe"), ("spark", "pyspark")])
def test_a_plain_query_is_built_anew_at_every_call(engine, package, load, monkeypatch):
    """Spark skips the finished stages of a DataFrame that is asked again: nothing of it would be measured."""
    pytest.importorskip(package)
    frames, asked = load("engine_frames"), []

    class Query:
        def toArrow(self):  # noqa: N802
            asked.append(self)

    monkeypatch.setattr(frames, "_dataframe", lambda *_: Query())
    (call,) = frames.plain(engine, None, "sum").values()
    call()
    call()
    assert len(asked) == 2
    assert asked[0] is not asked[1]


def test_every_name_of_the_big_data_set_is_the_same_file(load, tmp_path):
    files = load("engine_frames").links(tmp_path, size=400_000, rows=3_000, people=100)
    assert len(files) > 2
    assert len({Path(f).stat().st_ino for f in files}) == 1
    assert sum(Path(f).stat().st_size for f in files) >= 400_000


def test_engines_measures_in_a_child_and_compares_with_targets(load, capsys):
    code = load("engines").main(["ratio", "--rows", "3000", "--repeat", "1", "--engines", "polars"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ratio")]
    assert len(lines) == 10  # five questions, CPU and wall
    assert code == any("| missed |" in line for line in lines)


def test_the_big_run_stops_before_the_machine_does(load, tmp_path):
    files = load("engine_frames").links(tmp_path, size=100, rows=300_000, people=100_000)
    (got,) = load("engines").child("memory", "polars-lazy", files * 3, "units", 0.01)
    assert got["stopped"]
    (got,) = load("engines").child("memory", "polars-lazy", files, "groups", 100)
    assert not got["stopped"]
    assert got["peak"] >= got["before"] > 0.01


def test_a_peer_answers_every_question_and_is_compared_with_the_truth(load, tmp_path):
    settings, runner, peers = load("peer_settings"), load("peer_runner"), load("peers")
    data = tmp_path / "visits.npz"
    np.savez(data, **settings.visits(5_000))
    for question in settings.QUESTIONS:
        got = runner.main(str(FOLDER / "peers" / "dpframe.py"), question, str(data), "2", "0")
        assert got["repeats"] == 2
        assert got["lines"] > 0
        assert 0 <= got["error"] < {"count": 40, "total": 4e6}.get(question, 1e5)
        assert json.dumps(got)
        assert peers.row("dpframe", question, got).count("|") == 10


def test_every_peer_says_what_is_installed_and_answers_what_it_can(load):
    peers, questions = load("peers"), load("peer_settings").QUESTIONS
    for peer in peers.PEERS:
        assert peers.packages(peer)
        source = (FOLDER / "peers" / f"{peer}.py").read_text()
        asked = [q for q in questions if f"\ndef {q}(" in source]
        assert asked == [q for q in questions if peer != "diffprivlib" or q not in ("unknown_keys", "units")]


def test_keys_are_told_in_expectation_as_often_as_the_rules_promise(load, quiet):
    """At least .98 of what was computed elsewhere for people made by the same law."""
    keys = load("keys")
    frame = keys.people()
    assert frame["person"].n_unique() == 50_000
    assert 7 <= frame.group_by("person").len()["len"].median() <= 8
    for limit, rule, promised in (
        (1, "truncated geometric", 310),
        (4, "weighted gaussian", 345),
        (50, "weighted gaussian", 516),
    ):
        taken, told, geometric = keys.told(frame, limit)
        assert taken == rule
        assert told >= 0.98 * promised
        assert told >= geometric
