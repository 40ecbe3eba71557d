"""Tables and their side-cars are written together or not at all, for keys of every type; a draw is known in any copy."""

from __future__ import annotations

import copy
import datetime as dt
import json
import os
import pickle

import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.base import files

pytestmark = pytest.mark.usefixtures("quiet")

KEYS = {
    "text": ["02139", "x,y", '5" pipe', "line\nend"],
    "int": [-1, 0, 2**63 - 1],
    "bool": [True, False],
    "date": [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    "datetime": [dt.datetime(1970, 1, 1, 0, 0, 0, 1)],
    "duration": [dt.timedelta(0), dt.timedelta(days=-1, microseconds=1), dt.timedelta(days=400)],
}


@pytest.mark.parametrize("library", ["polars", "pandas"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_every_type_are_written_with_their_types_beside_them(kind, ending, library, tmp_path):
    frame = pl.DataFrame({"k": KEYS[kind], "x": [1.0] * len(KEYS[kind])})
    frame = frame.to_pandas() if library == "pandas" else frame
    path = tmp_path / f"t.{ending}"
    with dp.Session(eps=10**7) as s:
        frame.dp.groupby("k", keys=KEYS[kind]).count(eps=10**6)
        s.last.write(path)
    beside = json.loads((tmp_path / f"t.{ending}.json").read_text())
    assert list(beside["columns"]) == ["k", "count"]
    assert beside["columns"]["count"] == "Int64"
    if ending == "parquet":
        back = pl.read_parquet(path)
        assert {n: str(d) for n, d in back.schema.items()} == beside["columns"]
    else:
        back = pl.read_csv(path, infer_schema=False)
        assert back["count"].to_list() == ["1"] * len(KEYS[kind])
        if kind == "text":
            assert back["k"].to_list() == KEYS["text"], "as text they read back as they were"
    assert back.height == len(KEYS[kind])
    assert sorted(os.listdir(tmp_path)) == [f"t.{ending}", f"t.{ending}.json"]


def test_an_instant_that_no_text_can_say_is_refused_by_csv_alone(tmp_path):
    """Polars panics beyond its calendar; that leaves no file, old ones stay."""
    frame = pl.DataFrame({"k": pl.Series([2**62, 0] * 50).cast(pl.Datetime("ms"))})
    with dp.Session(eps=10**7, delta=0.1) as s:
        frame.dp.groupby("k").count(eps=10**6, delta=1e-6)
        with pytest.raises(dp.InputError, match=r"beyond the years that text can say .* \.parquet"):
            s.last.write(tmp_path / "t.csv")
        assert not os.listdir(tmp_path)
        s.last.write(tmp_path / "t.parquet")
    assert set(pl.read_parquet(tmp_path / "t.parquet")["k"].to_physical()) == {2**62, 0}


@pytest.mark.parametrize("fails", ["bytes", "second rename", "first rename", "disk"])
@pytest.mark.parametrize("old", [True, False])
def test_both_files_are_new_or_both_are_as_before(fails, old, tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    frame = pl.DataFrame({"k": ["a", "b"]})
    with dp.Session(eps=10**7) as s:
        frame.dp.groupby("k", keys=["a"]).count(eps=10**6)
        if old:
            s.last.write(path)
        frame.dp.groupby("k", keys=["a", "b"]).count(eps=10**6)
    before = {n: (tmp_path / n).read_bytes() for n in os.listdir(tmp_path)}
    assert len(before) == 2 * old
    renamed = 0

    def rename(a, b, true=os.replace):
        nonlocal renamed
        renamed += 1
        if renamed == {"first rename": 1, "second rename": 2}.get(fails):
            raise OSError(28, "no space")
        true(a, b)

    def flush(n, true=os.fsync):
        raise OSError(28, "no space")

    monkeypatch.setattr(files.os, "replace", rename)
    if fails == "disk":
        monkeypatch.setattr(files.os, "fsync", flush)
    if fails == "bytes":
        monkeypatch.setattr(pl.DataFrame, "write_csv", lambda *a, **k: (_ for _ in ()).throw(OSError("no")))
    with pytest.raises(OSError, match="no"):
        s.last.write(path)
    monkeypatch.undo()
    assert {n: (tmp_path / n).read_bytes() for n in os.listdir(tmp_path)} == before
    s.last.write(path)
    assert pl.read_csv(path).height == 2
    assert json.loads((tmp_path / "t.csv.json").read_text())["groups"] == 2


def test_a_name_as_long_as_the_file_system_takes_is_written(tmp_path):
    """250 bytes, and the side-car's five more: the temporary file has a short name of its own."""
    path = tmp_path / ("t" * (250 - 4) + ".csv")
    with dp.Session(eps=10**7) as s:
        pl.DataFrame({"k": ["a"]}).dp.count(eps=10**6)
        s.last.write(path)
    assert pl.read_csv(path).height == 1


def all_copies(release, tmp_path, ask):
    """The same draw by every way there is to a copy."""
    yield "itself", release
    yield "pickled", pickle.loads(pickle.dumps(release))
    yield "deep copy", copy.deepcopy(release)
    yield "shallow copy", copy.copy(release)
    yield "stored answer", ask()


def test_a_difference_from_a_copy_of_the_same_draw_is_exact(tmp_path):
    """0.1.0: an answer and its replay counted as independent (std 3.75 where 4.70 is right, coverage .918)."""
    ledger = tmp_path / "b.db"
    dp.Ledger.create(ledger, eps=10)
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0] * 30})

    def ask():
        with dp.Session(ledger=ledger) as s:
            frame.dp.agg(
                n=dp.count(), total=dp.clip_sum("x", bounds=(0, 3)), eps=1, request_id="r", label="r"
            )
            return s.last

    first = ask()
    sums = dp.difference((first, "total"), (first, "n"))
    for name, other in all_copies(first, tmp_path, ask):
        assert other.draw == first.draw, name
        same = dp.difference((first, "n"), (other, "n"))
        assert same.value == 0
        assert same.std == 0, name
        assert same.interval() == (0, 0), name
        mixed = dp.difference((first, "total"), (other, "n"))
        assert mixed.std == sums.std, name
        assert mixed.interval() == sums.interval(), name
        ratio = dp.ratio((first, "total"), (other, "n"))
        assert ratio.interval() == dp.ratio((first, "total"), (first, "n")).interval(), name
    with dp.Session(eps=10) as s:
        for _ in range(2):
            frame.dp.agg(n=dp.count(), total=dp.clip_sum("x", bounds=(0, 3)), eps=1)
        a, b = s.releases
    assert a.draw != b.draw
    independent = dp.difference((a, "n"), (b, "n"))
    assert independent.std == pytest.approx(2**0.5 * a.std["n"][0])


def test_draws_of_equal_numbers_are_still_two_draws():
    """At a huge eps both answers are the same number; their noises are not one."""
    frame = pl.DataFrame({"x": [1.0] * 9})
    with dp.Session(eps=100) as s:
        first = frame.dp.count(eps=40)
        frame.dp.count(eps=40)
    one, two = s.releases
    assert one._noisy[0].tolist() == two._noisy[0].tolist() == [9]
    assert dp.difference(one, two).std == pytest.approx(2**0.5 * first.std)


def test_a_payload_of_the_first_version_is_read():
    """Before draws had names; what it holds names it."""
    import numpy as np

    from dpframe.release.payload import from_bytes

    head = {"format": "dpframe release 1", "sizes": [2], "keys": False}
    old = json.dumps(head).encode() + b"\n" + np.array([5, 6], dtype="<i8").tobytes()
    read = from_bytes(old)
    assert read.noisy[0].tolist() == [5, 6]
    assert (read.found, read.columns, read.table, read.facts) == (None, None, None, None)
    assert read.draw == from_bytes(old).draw != from_bytes(old.replace(b"\x05", b"\x07")).draw


def test_pandas_columns_that_no_file_holds_are_text(tmp_path):
    frame = pd.DataFrame({"p": pd.PeriodIndex(["2024-01", "2024-02"], freq="M")})
    with dp.Session(eps=10**7) as s:
        frame.dp.groupby("p", keys=list(frame["p"].array)).count(eps=10**6)
        s.last.write(tmp_path / "t.csv")
    assert pl.read_csv(tmp_path / "t.csv", infer_schema=False)["p"].to_list() == ["2024-01", "2024-02"]


def test_a_key_that_no_file_holds_is_said_and_nothing_is_written(tmp_path):
    frame = pd.DataFrame({"k": pd.Series(["\ud800", "a"], dtype=object)})
    with dp.Session(eps=10**7) as s:
        frame.dp.groupby("k", keys=["\ud800", "a"]).count(eps=10**6)
    for name in ("t.csv", "t.parquet"):
        with pytest.raises(dp.InputError, match=r"not valid Unicode.*Hint"):
            s.last.write(tmp_path / name)
    assert os.listdir(tmp_path) == []
