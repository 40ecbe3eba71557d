"""A stored answer needs no frame: asked again where the frame is gone or other, and read by its request alone."""

from __future__ import annotations

import datetime as dt
import json

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.cli import main
from dpframe.ledger.book import Ledger
from dpframe.release.payload import Payload, from_bytes, to_bytes

pytestmark = pytest.mark.usefixtures("quiet")

ROWS = pl.DataFrame(
    {
        "g": ["a", "b"] * 50,
        "day": [dt.date(2024, 1, 1), dt.date(2024, 1, 2)] * 50,
        "x": [1.0, 2.0] * 50,
        "i": [2**60, -1] * 50,
    }
)
ASKED = {
    "count": lambda f, r: f.count(eps=1, request_id=r),
    "mean of listed groups": lambda f, r: f.groupby("g", keys=["a", "b"]).clip_mean(
        "x", bounds=(0, 5), eps=1, ci=0.9, request_id=r
    ),
    "found groups": lambda f, r: f.groupby("g", "day").count(eps=9, delta=1e-6, request_id=r),
    "found integers": lambda f, r: f.groupby("i").count(eps=9, delta=1e-6, request_id=r),
    "keys": lambda f, r: f.groupby("g").keys(eps=9, delta=1e-6, request_id=r),
    "histogram": lambda f, r: f.histogram("x", edges=[0, 1, 2, 3], eps=1, request_id=r),
    "median": lambda f, r: f.median("x", bounds=(0, 5), eps=1, request_id=r),
    "top": lambda f, r: f.top_k("g", 1, delta=1e-6, eps=9, request_id=r),
    "of a wanted error": lambda f, r: f.clip_sum("x", bounds=(0, 5), error=10, request_id=r),
    "no question": lambda f, r: f.groupby("g", keys=["b"]).agg(
        n=dp.count(), s=dp.clip_sum("x", bounds=(0, 1)), eps=1, request_id=r
    ),
}


def pandas_of(frame):
    return frame.to_pandas().astype({"g": "category"})


KINDS = {  # the frame, one of other columns, and nothing that could be opened, if there can be such a thing
    "polars": (lambda place: ROWS.dp, lambda place: pl.DataFrame({"z": [1]}).dp),
    "lazy": (lambda place: pl.scan_parquet(place).dp, lambda place: pl.scan_parquet(f"{place}.gone").dp),
    "pandas": (lambda place: ROWS.to_pandas().dp, lambda place: pd.DataFrame({"z": [1]}).dp),
    "categories": (lambda place: pandas_of(ROWS).dp, lambda place: pd.DataFrame({"g": [1], "x": ["y"]}).dp),
    "duckdb": (
        lambda place: dp.frame(duckdb.connect().read_parquet(str(place))),
        lambda place: dp.frame(duckdb.sql("select 1 as z")),
    ),
}


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger.create(tmp_path / "b.db", eps=1000, delta=1e-3)
    yield ledger
    ledger.close()


def same(a, b):
    if not hasattr(a, "columns"):
        return type(a) is type(b) and a == b
    return type(a) is type(b) and a.equals(b) and list(map(str, a.dtypes)) == list(map(str, b.dtypes))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_request_is_answered_without_its_frame(tmp_path, ledger, kind):
    now, gone = KINDS[kind]
    ROWS.write_parquet(tmp_path / "x.parquet")
    for name, ask in ASKED.items():
        with dp.Session(ledger=ledger.path) as s:
            first = ask(now(tmp_path / "x.parquet"), name)
            drawn = s.last
        before = ledger.spent
        with dp.Session(ledger=ledger.path, strict=kind != "duckdb") as s:
            again = ask(gone(tmp_path / "x.parquet"), name)
        assert same(first, again), name
        assert s.last.replayed
        assert ledger.spent == before
        table, facts = drawn.written()
        stored = ledger.answer(name)
        assert stored.table.equals(table)
        assert stored.facts == json.loads(json.dumps(facts))
        assert stored.facts["ledger_head"] == s.last.head
        drawn.write(tmp_path / "a.parquet")
        stored.write(tmp_path / "b.parquet")
        assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
        assert (tmp_path / "a.parquet.json").read_text() == (tmp_path / "b.parquet.json").read_text()


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas"])
def test_no_other_question_is_answered(tmp_path, ledger, kind):
    """Any two of the questions, and the same one at another price or with other bounds."""
    now, gone = KINDS[kind]
    ROWS.write_parquet(tmp_path / "x.parquet")
    others = {
        **ASKED,
        "another price": lambda f, r: f.count(eps=2, request_id=r),
        "another bound": lambda f, r: f.median("x", bounds=(0, 6), eps=1, request_id=r),
        "other keys": lambda f, r: f.groupby("g", keys=["a", "c"]).clip_mean(
            "x", bounds=(0, 5), eps=1, ci=0.9, request_id=r
        ),
        "another column": lambda f, r: f.median("i", bounds=(0, 5), eps=1, request_id=r),
    }
    for name in ("count", "mean of listed groups", "found groups", "median"):
        with dp.Session(ledger=ledger.path) as s:
            ASKED[name](now(tmp_path / "x.parquet"), name)
            charged = ledger.spent
            for other in others.keys() - {name}:
                for frame in (now, gone):
                    with pytest.raises(dp.InputError, match="another question"):
                        others[other](frame(tmp_path / "x.parquet"), name)
            assert ledger.spent == charged
            assert len(s.releases) == 1


def test_a_plan_of_a_stored_answer_is_for_its_ledger(tmp_path, ledger):
    """It was made without a frame, so it is refused before another ledger is charged."""
    with dp.Session(ledger=ledger.path) as s:
        ROWS.dp.count(eps=1, request_id="q")
        plan = pl.DataFrame({"z": [1]}).dp.plan.count(eps=1, request_id="q")
        assert plan.release().value == s.releases[0].value
    Ledger.create(tmp_path / "other.db", eps=1).close()
    with dp.Session(ledger=tmp_path / "other.db") as other:
        with pytest.raises(dp.InputError, match="another ledger"):
            plan.release()
        assert other.spent == 0


def test_a_request_of_a_scope_is_of_that_scope(tmp_path):
    ledger = Ledger.create(tmp_path / "b.db", eps=10, per_scope={"eps": 5})
    with dp.Session(ledger=ledger.path, scope="mon"):
        n = ROWS.dp.count(eps=1, request_id="q")
    assert ledger.answer("q", scope="mon").value == n
    with pytest.raises(dp.InputError, match=r"was not asked in the scope None.*scope='mon'"):
        ledger.answer("q")
    with pytest.raises(dp.InputError, match=r"no request 'p'.*'q'"):
        ledger.answer("p", scope="mon")
    with pytest.raises(dp.InputError, match="must be text"):
        ledger.answer("")
    with dp.Session(ledger=ledger.path, scope="tue"), pytest.raises(dp.InputError, match="no column"):
        pl.DataFrame({"z": [1]}).dp.clip_sum("x", bounds=(0, 1), eps=1, request_id="q")
    ledger.close()


def test_a_failed_request_has_no_answer(ledger, monkeypatch):
    from dpframe.engine.polars import PolarsSource

    def fails(self, *args):
        raise RuntimeError("cell 4711")

    monkeypatch.setattr(PolarsSource, "aggregate", fails)
    with dp.Session(ledger=ledger.path), pytest.raises(dp.ReleaseFailed):
        ROWS.dp.clip_sum("x", bounds=(0, 1), eps=1, request_id="q")
    with pytest.raises(dp.InputError, match="charged and has no answer"):
        ledger.answer("q")


def test_what_the_first_version_stored_needs_its_frame(ledger, monkeypatch):
    """It kept no columns and no table: asked again with the frame it is answered, and read alone it is refused."""
    import dpframe.pipeline as pipeline

    def first(kept):
        head = {"format": "dpframe release 1", "sizes": [len(x) for x in kept.noisy], "keys": False}
        arrays = (np.ascontiguousarray(x, dtype="<i8").tobytes() for x in kept.noisy)
        return b"".join([json.dumps(head).encode(), b"\n", *arrays])

    with dp.Session(ledger=ledger.path):
        with monkeypatch.context() as m:
            m.setattr(pipeline, "to_bytes", first)
            n = ROWS.dp.count(eps=1, request_id="q")
        assert ROWS.dp.count(eps=1, request_id="q") == n
    with pytest.raises(dp.InputError, match="stored without its table"):
        ledger.answer("q")


def test_a_question_of_an_enum_needs_its_frame(ledger):
    """Its categories are of the frame's type and not of the question; the answer is read all the same."""
    frame = ROWS.with_columns(g=pl.col("g").cast(pl.Enum(["a", "b"])))
    with dp.Session(ledger=ledger.path):
        first = frame.dp.groupby("g", keys=["a"]).count(eps=1, request_id="q")
        assert frame.dp.groupby("g", keys=["a"]).count(eps=1, request_id="q").equals(first)
    assert from_bytes(ledger.stored("q")[1]).columns is None
    assert ledger.answer("q").table.equals(first)


@pytest.mark.parametrize(
    "dtype", [pl.Int128, pl.String, pl.Categorical, pl.Datetime("ns", "UTC"), pl.Decimal(38, 2)]
)
def test_tables_of_every_type_come_back(dtype):
    table = pl.DataFrame({"k": pl.Series([None], dtype=dtype)})
    back = from_bytes(to_bytes(Payload([], table, "d", (), table, {})))
    assert back.found.schema == back.table.schema == table.schema


RELEASE = """
name = "arr"
[source]
path = "p.csv"
types = { x = "float" }
[budget]
ledger = "b.db"
eps = 2
[[query]]
name = "n"
statistic = "count"
share = 0.5
outputs = "n.csv"
[[query]]
name = "m"
statistic = "clip_mean"
column = "x"
bounds = [0, 10]
groupby = "g"
keys = ["a", "b"]
share = 0.25
outputs = "m.parquet"
"""


def test_a_run_is_repeated_without_its_input(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ROWS.select("g", "x").write_csv("p.csv")
    (tmp_path / "r.toml").write_text(RELEASE)
    Ledger.create("b.db", eps=5).close()
    assert main(["plan", "r.toml"]) == main(["run", "r.toml"]) == 0
    fingerprint = capsys.readouterr().out.split("fingerprint ")[1].split()[0]
    files = ("n.csv", "n.csv.json", "m.parquet", "m.parquet.json")
    before = {name: (tmp_path / name).read_bytes() for name in files}

    def again():
        for name in files:
            (tmp_path / name).unlink()
        assert main(["run", "r.toml", "--approved", fingerprint]) == 0
        assert capsys.readouterr().out.count("replayed") == 2
        assert {name: (tmp_path / name).read_bytes() for name in files} == before

    (tmp_path / "p.csv").write_text("other,columns\n1,2\n")
    again()
    (tmp_path / "p.csv").unlink()
    again()
    assert main(["ledger", "answer", "b.db", "--request", "arr/n"]) == 0
    assert capsys.readouterr().out == before["n.csv"].decode()
    assert main(["ledger", "answer", "b.db", "--request", "arr/m", "--output", "z.parquet"]) == 0
    assert (tmp_path / "z.parquet").read_bytes() == before["m.parquet"]
    assert main(["ledger", "answer", "b.db", "--request", "arr/x"]) == 2
    assert "'arr/n' or 'arr/m'" in capsys.readouterr().err
    (tmp_path / "r.toml").write_text(
        RELEASE + '[[query]]\nname = "k"\nstatistic = "count"\nshare = 0.1\noutputs = "k.csv"\n'
    )
    assert main(["run", "r.toml"]) == 8, "what was not answered needs its input"
    (tmp_path / "r.toml").write_text(RELEASE.replace("[0, 10]", "[0, 11]"))
    assert main(["run", "r.toml"]) == 2
    assert "another question" in capsys.readouterr().err
