"""No way of getting another frame is a way of getting another budget.

A session of eps 1 is spent on one frame; whatever is derived from that frame, by whatever road, is then refused:
the budget is the session's, and nothing on a frame holds, copies or forgets any of it. Each derived frame
answers before the budget is gone (so the refusal is about the budget and not about the frame).
"""

from __future__ import annotations

import copy
import io
import json
import pickle
import sqlite3
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp

CELLS = {"x": [1.0, 2.0, None, 4.0], "g": ["a", "b", "a", None], "u": [1, 1, 2, 3]}


def through(write, read):
    """Out to a buffer and back in."""

    def road(frame):
        buffer = io.BytesIO()
        write(frame, buffer)
        buffer.seek(0)
        return read(buffer)

    return road


def with_attrs(frame):
    frame = frame.copy()
    frame.attrs["dp"] = {"eps": 100}
    return frame


def by_sql(frame):
    with sqlite3.connect(":memory:") as connection:
        frame.to_sql("t", connection, index=False)
        return pd.read_sql("select * from t", connection)


def in_place(frame):
    frame.loc[len(frame)] = [5.0, "b", 4]
    return frame


PANDAS = {
    "the frame itself": lambda f: f,
    "copy": lambda f: f.copy(),
    "shallow copy": lambda f: f.copy(deep=False),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda f: pickle.loads(pickle.dumps(f)),
    "filter": lambda f: f[f["x"] > 1],
    "query": lambda f: f.query("x > 1"),
    "loc": lambda f: f.loc[:, ["x", "g"]],
    "iloc": lambda f: f.iloc[1:],
    "head": lambda f: f.head(2),
    "sample": lambda f: f.sample(frac=1.0, random_state=1),
    "assign": lambda f: f.assign(z=f["x"] * 2),
    "a new column": lambda f: f.assign(x=f["x"].fillna(0)),
    "drop": lambda f: f.drop(columns="u"),
    "rename": lambda f: f.rename(columns={"u": "unit"}),
    "astype": lambda f: f.astype({"x": "Float64"}),
    "sort_values": lambda f: f.sort_values("x"),
    "reset_index": lambda f: f.set_index("u").reset_index(),
    "transpose twice": lambda f: f.T.T.assign(x=1.0),
    "merge": lambda f: f.merge(pd.DataFrame({"g": ["a", "b"], "size": [1, 2]}), on="g"),
    "self join": lambda f: f.merge(f, on="u", suffixes=("", "_y")),
    "concat": lambda f: pd.concat([f, f]),
    "explode": lambda f: f.assign(z=[[1, 2]] * len(f)).explode("z"),
    "a group": lambda f: f.groupby("g").get_group("a"),
    "groupby apply": lambda f: f.groupby("g", as_index=False).agg({"x": "sum"}),
    "in place": in_place,
    "the constructor": lambda f: pd.DataFrame(f),
    "a dictionary": lambda f: pd.DataFrame(f.to_dict("list")),
    "attrs": with_attrs,
    "attrs thrown away": lambda f: (f.attrs.clear(), f)[1],
    "parquet": through(lambda f, b: f.to_parquet(b), pd.read_parquet),
    "csv": through(lambda f, b: f.to_csv(b, index=False), pd.read_csv),
    "JSON": lambda f: pd.DataFrame(json.loads(f.to_json(orient="records"))),
    "SQL": by_sql,
    "to Polars": pl.from_pandas,
    "to Polars and back": lambda f: pl.from_pandas(f).to_pandas(),
    "a subclass": lambda f: type("Mine", (pd.DataFrame,), {})(f),
}
POLARS = {
    "the frame itself": lambda f: f,
    "clone": lambda f: f.clone(),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda f: pickle.loads(pickle.dumps(f)),
    "filter": lambda f: f.filter(pl.col("x") > 1),
    "select": lambda f: f.select("x", "g"),
    "with_columns": lambda f: f.with_columns(z=pl.col("x") * 2),
    "slice": lambda f: f[1:],
    "sample": lambda f: f.sample(fraction=1, shuffle=True, seed=1),
    "join": lambda f: f.join(pl.DataFrame({"g": ["a", "b"], "size": [1, 2]}), on="g"),
    "self join": lambda f: f.join(f, on="u"),
    "concat": lambda f: pl.concat([f, f]),
    "vstack": lambda f: f.vstack(f),
    "partition_by": lambda f: f.partition_by("g")[0],
    "group_by agg": lambda f: f.group_by("g").agg(pl.col("x").sum()),
    "rename": lambda f: f.rename({"u": "unit"}),
    "sort": lambda f: f.sort("x"),
    "unique": lambda f: f.unique(),
    "rechunk": lambda f: f.rechunk(),
    "in place": lambda f: f.insert_column(0, pl.Series("z", range(f.height))),
    "lazy": lambda f: f.lazy(),
    "lazy and collect": lambda f: f.lazy().collect(),
    "lazy, twice": lambda f: f.lazy().filter(pl.col("x") > 0).lazy(),
    "cached plan": lambda f: f.lazy().cache(),
    "a serialized plan": lambda f: pl.LazyFrame.deserialize(io.BytesIO(f.lazy().serialize())),
    "Arrow": lambda f: pl.from_arrow(f.to_arrow()),
    "a dictionary": lambda f: pl.DataFrame(f.to_dict()),
    "rows": lambda f: pl.DataFrame(f.rows(), schema=f.schema, orient="row"),
    "IPC": through(lambda f, b: f.write_ipc(b), pl.read_ipc),
    "parquet": through(lambda f, b: f.write_parquet(b), pl.read_parquet),
    "to pandas": lambda f: f.to_pandas(),
    "to pandas and back": lambda f: pl.from_pandas(f.to_pandas()),
    "to NumPy and back": lambda f: pl.DataFrame({"x": f["x"].to_numpy()}),
}
ROADS = [
    *(pytest.param(pd.DataFrame, r, id=f"pandas {k}") for k, r in PANDAS.items()),
    *(pytest.param(pl.DataFrame, r, id=f"polars {k}") for k, r in POLARS.items()),
]

pytestmark = pytest.mark.filterwarnings("ignore::dpframe.DPWarning")


@pytest.mark.parametrize(("library", "road"), ROADS)
def test_a_derived_frame_has_no_budget_of_its_own(library, road):
    """Spent on the first frame, the session refuses the second, whenever and wherever it was derived."""
    frame = library(CELLS)
    with dp.Session(eps=1) as s:
        before = road(library(CELLS))
        before.dp.count(eps=0.25)
        frame.dp.clip_sum("x", B=10, eps=0.75)
        assert s.remaining.eps == 0
        after = road(frame)
        for derived in (before, after, frame):
            with pytest.raises(dp.BudgetExceeded):
                derived.dp.count(eps=1e-9)
        assert s.spent == 1


@pytest.mark.parametrize(("library", "road"), ROADS)
def test_a_derived_frame_is_no_way_out_of_an_open_session(library, road):
    """Outside the block, where the budget is open but not in use, a derived frame does not fall to the ambient session."""
    s = dp.Session(eps=1)
    derived = road(library(CELLS))
    with pytest.raises(dp.NoSession):
        derived.dp.count(eps=0.1)
    assert s.spent == 0
    s.close()


def groups(frame):
    return frame.dp.groupby("g", keys=["a"])


HANDLES = {
    "accessor": lambda f: f.dp,
    "typed door": dp.frame,
    "plan": lambda f: f.dp.plan.count(eps=0.5),
    "groups": groups,
    "groups of a copy": lambda f: groups(f.clone()),
}


@pytest.mark.parametrize("handle", HANDLES)
def test_handles_made_under_another_session_pay_the_session_in_use(handle):
    """An accessor, a plan or groups made while one session was in use spend the one that is in use when asked."""
    frame = pl.DataFrame(CELLS)
    with dp.Session(eps=1) as first:
        kept = HANDLES[handle](frame)

    def ask():
        return kept.release() if handle == "plan" else kept.count(eps=0.5)

    with dp.Session(eps=1) as second:
        for _ in range(2):
            ask()
        with pytest.raises(dp.BudgetExceeded):
            ask()
    assert first.spent == 0
    assert second.spent == 1


def test_handles_that_hold_a_frame_can_not_be_copied_into_another_process():
    """Neither pickle nor deepcopy: a plan's twin elsewhere would be asked there."""
    frame = pl.DataFrame(CELLS)
    for make in HANDLES.values():
        with pytest.raises(TypeError):
            pickle.dumps(make(frame))


def test_a_frame_sent_to_another_process_takes_no_session_along():
    """A pickled frame arrives as data: where a session is required, there is none."""
    with dp.Session(eps=1) as s:
        frame = pd.DataFrame(CELLS)
        frame.dp.count(eps=1)
        sent = pickle.dumps(frame)
    code = (
        "import os, pickle, sys\nos.environ['DPFRAME_REQUIRE_SESSION'] = '1'\nimport dpframe as dp\n"
        "frame = pickle.load(sys.stdin.buffer)\n"
        "try:\n    frame.dp.count(eps=1)\nexcept dp.NoSession as e:\n    print('refused', frame.attrs)"
    )
    out = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=True)
    assert out.stdout.decode().strip() == "refused {}"
    assert s.spent == 1


def test_parts_of_a_spent_session_and_second_names_for_it_are_refused():
    """Roads that lead over the session instead of the frame."""
    frame = pl.DataFrame(CELLS)
    with dp.Session(eps=1) as s:
        frame.dp.count(eps=1)
        for again in (
            lambda: frame.dp.count(eps=1e-9, session=s),
            lambda: s.use() and frame.dp.count(eps=1e-9),
            lambda: frame.dp.partition_by("g", keys=["a", "b"], eps=1e-9),
            lambda: s.split(2) and frame.dp.count(eps=1e-9),
        ):
            with pytest.raises(dp.DPError):
                again()
        with dp.Session(eps=100), pytest.raises(dp.BudgetExceeded):  # inside: the outer one pays, too
            frame.dp.count(eps=1e-9)
        for clone in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError):
                clone(s)
    assert s.spent == 1


def test_there_are_as_many_roads_as_promised():
    assert len(PANDAS) >= 27
    assert len(POLARS) >= 27


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_derived_frames_charge_one_after_the_other_in_one_account(library):
    """Twenty derived frames at 1/20 each: exactly the budget, and a row for each."""
    roads = list((PANDAS if library is pd.DataFrame else POLARS).values())[:20]
    with dp.Session(eps=1) as s:
        for road in roads:
            road(library(CELLS)).dp.count(eps=0.05)
        assert s.spent == 1
        assert s.report().height == 20
        assert np.isclose(s.report()["eps"].sum(), 1)
        with pytest.raises(dp.BudgetExceeded):
            roads[0](library(CELLS)).dp.count(eps=1e-12)
