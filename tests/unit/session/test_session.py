"""Sessions: who pays, in one step, whatever frame; what they keep; what a failure tells."""

from __future__ import annotations

import contextvars
import copy
import gc
import importlib
import json
import logging
import math
import multiprocessing
import os
import pickle
import struct
import subprocess
import sys
import threading
import traceback
import warnings
import weakref
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.api import doors
from dpframe.engine import polars as engine
from dpframe.mechanisms.laplace import DiscreteLaplace
from dpframe.session import session as sessions

DF = pl.DataFrame({"x": [1.0, 2.0, 3.0], "g": ["a", "b", "a"], "s": ["u", "v", "w"]})

quiet = pytest.mark.usefixtures("quiet")


# ---- who pays ----


@quiet
def test_a_with_block_pays():
    with dp.Session(eps=1) as s:
        DF.dp.count(eps=0.1)
    assert s.spent == 0.1


@quiet
def test_a_session_left_on_the_table_stops_every_query():
    """H2."""
    ambient = sessions._ambient._charges
    s = dp.Session(eps=1)
    with pytest.raises(dp.NoSession) as e:
        DF.dp.count(eps=0.1)
    assert "with s:" in str(e.value)
    assert "s.use()" in str(e.value)
    assert s.spent == 0
    assert sessions._ambient._charges == ambient
    s.use()
    DF.dp.count(eps=0.1)
    assert s.spent == 0.1
    s.close()
    DF.dp.count(eps=0.1)
    assert s.spent == 0.1
    assert sessions._ambient._charges == ambient + 1


def test_the_ambient_session_says_so_once(monkeypatch):
    monkeypatch.setattr(sessions, "_ambient", sessions._Ambient())
    with pytest.warns(dp.DPWarning, match="nothing limits the total"):
        DF.dp.count(eps=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DF.dp.count(eps=0.1)
    assert sessions._ambient.spent == 0.2
    with pytest.raises(dp.InputError, match="limit"):
        sessions._ambient.remaining  # noqa: B018


@quiet
@pytest.mark.parametrize(("value", "refused"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_a_required_session_forbids_the_ambient_one(monkeypatch, value, refused):
    monkeypatch.setenv("DPFRAME_REQUIRE_SESSION", value)
    if refused:
        with pytest.raises(dp.NoSession, match="DPFRAME_REQUIRE_SESSION"):
            DF.dp.count(eps=0.1)
        with dp.Session(eps=1) as s:
            DF.dp.count(eps=0.1)
        assert s.spent == 0.1
    else:
        DF.dp.count(eps=0.1)


@quiet
def test_an_open_session_elsewhere_blocks_the_ambient_one_until_it_is_closed():
    with dp.Session(eps=1) as first:
        forgotten = dp.Session(eps=1)
        DF.dp.count(eps=0.1)  # first is in use: no doubt who pays
    assert first.spent == 0.1
    with pytest.raises(dp.NoSession):
        DF.dp.count(eps=0.1)
    forgotten.close()
    DF.dp.count(eps=0.1)


@quiet
def test_a_session_that_is_gone_blocks_nothing():
    s = dp.Session(eps=1)
    del s
    gc.collect()
    DF.dp.count(eps=0.1)


@quiet
def test_an_explicit_session_pays_alone():
    a, b = dp.Session(eps=1), dp.Session(eps=1)
    with a:
        DF.dp.count(eps=0.1, session=b)
    assert (a.spent, b.spent) == (0, 0.1)


@pytest.mark.parametrize("wrong", [1, "s", ..., dp.Session], ids=repr)
def test_session_takes_a_session(wrong):
    with pytest.raises(TypeError, match="session="):
        DF.dp.count(eps=0.1, session=wrong)


@quiet
def test_use_replaces_and_does_not_close():
    a, b = dp.Session(eps=1).use(), dp.Session(eps=1)
    assert b.use() is b
    DF.dp.count(eps=0.1)
    assert (a.spent, b.spent) == (0, 0.1)
    b.close()
    with pytest.raises(dp.NoSession):  # a is open and not in use
        DF.dp.count(eps=0.1)
    a.use()
    a.use()
    DF.dp.count(eps=0.1)
    assert a.spent == 0.1
    a.close()
    a.close()


@quiet
def test_a_task_that_began_inside_others_still_pays_them_when_the_session_was_entered_alone_since():
    outer, inner = dp.Session(eps=1), dp.Session(eps=2)
    with outer, inner:
        task = contextvars.copy_context()
    with inner:
        DF.dp.count(eps=0.25)
    task.run(lambda: DF.dp.count(eps=0.5))
    assert (outer.spent, inner.spent) == (0.5, 0.75)


def test_the_same_session_inside_itself_pays_once():
    with dp.Session(eps=1) as s:
        with s:
            DF.dp.count(eps=0.1)
        DF.dp.count(eps=0.1)
    assert s.spent == 0.2


# ---- sessions inside sessions ----


@quiet
def test_an_inner_session_charges_both():
    with dp.Session(eps=1) as outer, dp.Session(eps=0.5) as inner:
        DF.dp.count(eps=0.2)
        assert (outer.spent, inner.spent) == (0.2, 0.2)
        assert outer.last is inner.last


@quiet
@pytest.mark.parametrize("outer_eps", [1, 0.3])
@pytest.mark.parametrize("inner_eps", [1, 0.3])
def test_both_are_charged_or_neither(outer_eps, inner_eps):
    with dp.Session(eps=outer_eps) as outer, dp.Session(eps=inner_eps) as inner:
        for _ in range(5):
            try:
                DF.dp.count(eps=0.2)
            except dp.BudgetExceeded:
                break
        granted = Fraction(min(outer_eps * 5, inner_eps * 5).__floor__(), 5)
        assert (outer.spent.eps, inner.spent.eps) == (granted, granted)
        assert outer.report().height == inner.report().height


@quiet
def test_an_inner_session_needs_the_same_relation():
    with dp.Session(eps=1), pytest.raises(dp.InputError, match="relation"):
        dp.Session(eps=1, neighbors="replace_one").__enter__()


@quiet
def test_a_plan_is_released_under_its_own_relation_only():
    with dp.Session(eps=1):
        bound = DF.dp.plan.count(eps=0.1)
    with dp.Session(eps=1, neighbors="replace_one") as s:
        with pytest.raises(dp.InputError, match="plan"):
            bound.release()
        assert s.spent == 0


@quiet
def test_closing_an_inner_session_does_not_free_its_calls_of_the_outer_one():
    """After inner.close() inside its own block a call is refused or charged to outer; never to neither."""
    with dp.Session(eps=1) as outer, dp.Session(eps=1) as inner:
        inner.close()
        try:
            DF.dp.count(eps=0.1)
        except dp.NoSession:
            assert outer.spent == inner.spent == 0
        else:
            assert outer.spent == 0.1


@quiet
def test_two_threads_may_enter_one_session():
    """The block of one thread ends while the other's goes on; neither end may fail or close the session."""
    s, errors = dp.Session(eps=1), []
    first_in, second_in, first_out = threading.Event(), threading.Event(), threading.Event()

    def first():
        try:
            with s:
                first_in.set()
                second_in.wait(10)
                DF.dp.count(eps=0.1)
        except Exception as e:
            errors.append(e)
        first_out.set()

    def second():
        first_in.wait(10)
        try:
            with s:
                second_in.set()
                first_out.wait(10)
                DF.dp.count(eps=0.1)
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=f) for f in (first, second)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert s.spent == 0.2


# ---- threads: case 47 ----


def race(n: int, call) -> list:
    barrier, outcomes = threading.Barrier(n), []

    def run():
        barrier.wait()
        with warnings.catch_warnings():
            try:
                outcomes.append(call())
            except dp.DPError as e:
                outcomes.append(e)

    threads = [threading.Thread(target=run) for _ in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return outcomes


@quiet
@pytest.mark.parametrize("how", ["session=", "use", "nested"])
@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_32_threads_get_exactly_ten_tenths(how, library):
    frame = DF if library == "polars" else DF.to_pandas()
    for _ in range(3):
        s = dp.Session(eps=1)
        if how == "session=":
            outcomes = race(32, lambda s=s: frame.dp.count(eps=0.1, session=s))
        elif how == "use":
            s.use()
            outcomes = race(32, lambda: frame.dp.count(eps=0.1))
        else:
            outer = dp.Session(eps=1).use()
            with s:
                outcomes = race(32, lambda s=s: frame.dp.count(eps=0.1, session=s))
            assert outer.spent == 1
            outer.close()
        refused = [x for x in outcomes if isinstance(x, dp.BudgetExceeded)]
        assert len(refused) == 22
        assert sum(isinstance(x, int) for x in outcomes) == 10
        assert s.spent == 1
        assert s.report().height == len(s.releases) == 10
        s.close()


@quiet
def test_a_thread_does_not_inherit_a_with_block_and_is_told():
    with dp.Session(eps=1) as s:
        (outcome,) = race(1, lambda: DF.dp.count(eps=0.1))
        assert isinstance(outcome, dp.NoSession)
        assert s.spent == 0


# ---- no second budget ----


@pytest.mark.parametrize(
    "way",
    [
        copy.copy,
        copy.deepcopy,
        pickle.dumps,
        lambda s: pickle.dumps({"s": s}, protocol=2),
        lambda s: copy.deepcopy([s]),
    ],
    ids=["copy", "deepcopy", "pickle", "pickle in a dict", "deepcopy in a list"],
)
def test_sessions_refuse_to_be_copied(way):
    with pytest.raises(TypeError, match="budget twice"):
        way(dp.Session(eps=1))


def in_child(work) -> str:
    """Run ``work`` in a forked child and return what it says."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            text = str(work())
        except BaseException as e:
            text = f"{type(e).__name__}: {e}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as f:
        text = f.read()
    os.waitpid(pid, 0)
    return text


ONE = pd.DataFrame({"x": [1.0]})  # pandas' count() needs no Polars thread in the child

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@needs_fork
@quiet
@pytest.mark.parametrize("how", ["session=", "with", "use"])
def test_a_forked_child_can_not_spend_the_parents_budget(how):
    s = dp.Session(eps=1)
    if how == "session=":
        told = in_child(lambda: ONE.dp.count(eps=0.1, session=s))
    elif how == "with":
        with s:
            told = in_child(lambda: ONE.dp.count(eps=0.1))
    else:
        s.use()
        told = in_child(lambda: ONE.dp.count(eps=0.1))
    assert told.startswith("NoSession")
    assert "process" in told
    assert s.spent == 0


@needs_fork
@quiet
def test_a_forked_child_may_open_a_session_of_its_own():
    def own():
        with dp.Session(eps=1) as mine:
            ONE.dp.count(eps=0.1)
        return float(mine.spent)

    assert in_child(own) == "0.1"


@needs_fork
@quiet
def test_what_the_refusal_in_a_forked_child_advises_works():
    """Forked within a block, the child opens a session with its own budget, as the hint says."""

    def own():
        with dp.Session(eps=1) as mine:
            ONE.dp.count(eps=0.1)
        return float(mine.spent)

    with dp.Session(eps=1) as s:
        assert in_child(own) == "0.1"
    assert s.spent == 0


@needs_fork
@quiet
def test_a_child_forked_while_a_lock_is_held_does_not_hang():
    with sessions._lock:
        told = in_child(lambda: float(ONE.dp.count(eps=0.1, session=dp.Session(eps=1)) < math.inf))
    assert told == "1.0"


@quiet
def test_whatever_frame_the_session_pays():
    """Case 55: copies, filters, joins, clones and pickled frames draw on one budget."""
    pandas = DF.to_pandas()
    frames = [
        pandas, pandas.copy(), pandas[pandas.x > 1], pandas.merge(pandas, on="g"), pickle.loads(pickle.dumps(pandas)),
        DF, DF.clone(), DF.filter(pl.col("x") > 1), DF.lazy(), DF.join(DF, on="g"), pickle.loads(pickle.dumps(DF)),
    ]  # fmt: skip
    with dp.Session(eps=2) as s:
        for i, frame in enumerate(frames, 1):
            frame.dp.count(eps=0.1)
            assert s.spent == Fraction(i, 10)


@quiet
def test_nothing_is_left_on_the_frame(tmp_path):
    """Case 56: attrs stay empty, and a parquet round trip brings no budget back."""
    df = DF.to_pandas()
    with dp.Session(eps=1) as s:
        df.dp.count(eps=0.4)
        assert df.attrs == {}
        df.to_parquet(tmp_path / "t.parquet")
        again = pd.read_parquet(tmp_path / "t.parquet")
        assert again.attrs == {}
        again.dp.count(eps=0.4)
        assert s.spent == 0.8


@quiet
def test_a_prepared_plan_charges_at_every_release():
    """Case 46."""
    with dp.Session(eps=0.3) as s:
        bound = DF.dp.plan.count(eps=0.1)
        assert s.spent == 0
        for i in (1, 2, 3):
            bound.release()
            assert s.spent == Fraction(i, 10)
        with pytest.raises(dp.BudgetExceeded):
            bound.release()
        group = DF.dp.groupby("g", keys=["a"])
        with pytest.raises(dp.BudgetExceeded):
            group.count(eps=0.1)


# ---- refusals: cases 35, 50, 52 ----


def test_a_refusal_by_a_session_around_says_that_it_is_not_the_one_that_was_asked():
    with dp.Session(eps=1) as outer, dp.Session(eps=5, delta=1e-6) as inner:
        with pytest.raises(dp.BudgetExceeded, match=r"session around this one.*no delta"):
            DF.dp.groupby("g").count(eps=0.1, delta=1e-7)
        with pytest.raises(
            dp.BudgetExceeded, match=r"session around this one.*eps=2; at most eps=1 .* of eps=1\."
        ):
            DF.dp.count(eps=2)
        with pytest.raises(dp.BudgetExceeded, match=r"^eps is used up: .* of eps=5\."):  # its own
            DF.dp.count(eps=6)
    assert outer.spent == 0
    assert inner.spent == 0


def test_a_refusal_says_which_part_ran_out():
    s = dp.Session(eps=1)
    DF.dp.count(eps=0.7, session=s)
    with pytest.raises(dp.BudgetExceeded, match=r"eps is used up.*count\(\).*'second'.*0\.5.*0\.3.*1\b") as e:
        DF.dp.count(eps=0.5, session=s, label="second")
    x = e.value
    assert (x.component, x.label) == ("eps", "second")
    assert (x.requested.eps, x.remaining.eps) == (Fraction(1, 2), Fraction(3, 10))
    again = pickle.loads(pickle.dumps(x))
    assert (str(again), again.component, again.label, again.remaining) == (
        str(x),
        "eps",
        "second",
        x.remaining,
    )
    assert isinstance(x, dp.DPError)


@pytest.mark.parametrize(
    ("aggregates", "error"),
    [
        ({"c": "nowhere"}, dp.InputError),
        ({"c": "s"}, dp.InputError),
        ({"c": None}, TypeError),
    ],
    ids=repr,
)
def test_one_bad_measure_of_three_spends_nothing(aggregates, error):
    with dp.Session(eps=1) as s:
        with pytest.raises(error):
            DF.dp.dp_agg(
                a=dp.count(),
                b=dp.clip_sum("x", B=5),
                c=dp.clip_sum(aggregates["c"], B=5) if aggregates["c"] else 3,
                eps=0.3,
            )
        assert (s.spent, s.releases) == (0, [])


def test_a_budget_for_two_of_three_releases_none():
    with dp.Session(eps=0.5) as s:
        with pytest.raises(dp.BudgetExceeded):
            DF.dp.dp_agg(
                a=dp.count(), b=dp.clip_sum("x", B=5), c=dp.count("s"), eps={"a": 0.2, "b": 0.2, "c": 0.2}
            )
        assert (s.spent, s.releases) == (0, [])


def test_after_the_end_everything_is_refused_and_everything_still_prints():
    """Case 52."""
    with dp.Session(eps=0.1) as s:
        DF.dp.count(eps=0.1, label="n")
        for call in (
            lambda: DF.dp.count(eps=0.1),
            lambda: DF.dp.clip_sum("x", B=1, eps=1e-6),
            lambda: DF.dp.clip_mean("x", B=1, eps=1000),
            lambda: DF.dp.groupby("g", keys=["a"]).dp_agg(n=dp.count(), eps=0.1),
            lambda: DF.dp.count(rho=1e-9),
        ):
            with pytest.raises(dp.BudgetExceeded):
                call()
        for thing in (DF.dp, DF.dp.plan, DF.dp.groupby("g", keys=["a"]), s, s.last, s.spent, s.remaining):
            assert repr(thing)
        assert "count()" in str(DF.dp.plan.count(eps=0.1).explain())
        assert s["n"] is s.last


@quiet
def test_a_table_that_can_not_be_written_stays_paid(tmp_path):
    with dp.Session(eps=1) as s:
        DF.dp.count(eps=0.4)
        with pytest.raises(dp.InputError, match="nowhere"):
            s.last.write(tmp_path / "nowhere" / "t.csv")
        with pytest.raises(dp.InputError, match="parquet"):
            s.last.write(tmp_path / "t.xlsx")
        assert s.spent == 0.4
        assert len(s.releases) == 1
        s.last.write(tmp_path / "t.csv")


# ---- what is kept: cases 53, H3 ----


def test_a_repeat_is_charged_and_names_the_first_answer():
    with dp.Session(eps=1) as s:
        first = DF.dp.count(eps=0.1, label="q1")
        with pytest.warns(dp.DPWarning, match=r"2nd time.*charged again.*s\['q1'\]"):
            second = DF.dp.count(eps=0.1, label="q1")
        assert s.spent == 0.2
        assert s["q1"].value is first
        assert s.last.value is second
        assert s.report()["repeat_of"].to_list() == [None, 0]
        with pytest.warns(dp.DPWarning, match="3rd time"):
            DF.dp.count(eps=0.1)


def test_a_repeat_without_a_label_names_its_place():
    with dp.Session(eps=2) as s:
        DF.dp.clip_sum("x", B=2, eps=0.1)
        first = DF.dp.count(eps=0.1)
        DF.dp.clip_sum("x", B=3, eps=0.1)
        with pytest.warns(dp.DPWarning, match=r"s\.releases\[1\]"):
            DF.dp.count(eps=0.1)
        assert s.releases[1].value is first


def test_a_repeat_of_a_failed_call_names_no_other_answer(monkeypatch):
    """The first attempt failed in the engine; s.releases[0] answers another question."""
    with dp.Session(eps=2) as s:
        with monkeypatch.context() as m:
            m.setattr(engine.PolarsSource, "aggregate", lambda *a, **k: 1 / 0)
            with pytest.raises(dp.ReleaseFailed):
                DF.dp.count(eps=0.1)
        DF.dp.clip_sum("x", B=2, eps=0.1)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            DF.dp.count(eps=0.1)
        assert not any("s.releases[0]" in str(w.message) for w in said)
        assert s.spent == 0.3


def test_another_question_is_no_repeat():
    with warnings.catch_warnings():
        warnings.simplefilter("error", dp.DPWarning)
        with dp.Session(eps=9):
            DF.dp.count(eps=0.1)
            DF.dp.count(eps=0.2)
            DF.dp.count("x", eps=0.1)
            DF.dp.clip_sum("x", B=1, eps=0.1)
            DF.dp.clip_sum("x", B=2, eps=0.1)
            DF.dp.groupby("g", keys=["a"]).count(eps=0.1)
            DF.dp.groupby("g", keys=["a", "b"]).count(eps=0.1)
            DF.dp.groupby("g", keys=["a", "c"]).count(eps=0.1)


@quiet
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_an_answer_that_was_not_assigned_is_kept(library, tmp_path):
    """H3."""
    df = DF.to_pandas() if library == "pandas" else DF.clone()
    with dp.Session(eps=1) as s:
        table = df.dp.groupby("g", keys=["a", "b"]).dp_agg(
            n=dp.count(), m=dp.clip_mean("x", bounds=(0, 5)), eps=0.5
        )
        kept = s.last
        assert kept.value is table
        assert kept is s.releases[-1]
        kept.interval(0.9)
        kept.write(tmp_path / "t.csv")
        facts = json.loads((tmp_path / "t.csv.json").read_text())
        margins = facts.pop("margins_95")
        assert facts == json.loads(json.dumps(kept.facts))
        assert set(margins) == {o.name for o in kept.plan.outputs}
        fact = facts["outputs"]["n"]
        assert facts["eps"] == "0.5"
        assert fact["mechanism"] == "laplace"
        # A stranger recomputes scale and margin: K l1 / eps steps of 1/K rows, two noises.
        assert math.isclose(fact["scale"], fact["l1"] * fact["fused_parts"] / 0.5)
        draws = np.random.default_rng(0).laplace(scale=fact["scale"], size=(fact["noises"], 400_000)).sum(0)
        assert math.isclose(np.quantile(np.abs(draws), 0.95), fact["margin_95"], rel_tol=0.1)
        assert pl.read_csv(tmp_path / "t.csv").columns == ["g", "n", "m"]
        assert s.spent == 0.5
        with pytest.warns(dp.DPWarning, match=r"s\.releases\[0\]"):
            df.dp.groupby("g", keys=["a", "b"]).dp_agg(
                n=dp.count(), m=dp.clip_mean("x", bounds=(0, 5)), eps=0.5
            )
        assert s.spent == 1
        gone = weakref.ref(df)
        del df
        gc.collect()
        assert gone() is None
        assert kept.value is table


@quiet
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_pickled_release_holds_no_true_value(library):
    n, x = 12_347, 731.624
    df = pl.DataFrame({"g": ["a"] * n, "x": [x] * n})
    df = df.to_pandas() if library == "pandas" else df
    with dp.Session(eps=1) as s:
        df.dp.groupby("g", keys=["a", "b"]).dp_agg(
            n=dp.count("x"), t=dp.clip_sum("x", bounds=(0, 1000)), eps=1e-4
        )
        df.dp.clip_mean("x", bounds=(0, 1000), eps=1e-4)
        df.dp.count(eps=1e-4)
    step = 2.0**-20  # the block's grid: 1000 needs 30 bits
    true = [n, n * x, x, round(x / step), n * round(x / step), n * (round(1000 / step) - round(x / step))]
    for release in s.releases:
        again = pickle.loads(pickle.dumps(release))
        assert again.facts == release.facts
        assert again.cost == release.cost
        data = pickle.dumps(release)
        for t in true:
            assert struct.pack("<d", t) not in data
            assert struct.pack("<q", int(t)) not in data
        text = repr(release.__dict__)
        assert "731.62" not in text
        assert "12347" not in text


@quiet
def test_labels_keep_the_first_and_unknown_ones_are_helped():
    with dp.Session(eps=1) as s:
        with pytest.raises(dp.InputError, match="Nothing"):
            s.last  # noqa: B018
        DF.dp.count(eps=0.1, label="rows")
        with pytest.raises(KeyError, match="rows"):
            s["row"]
        with pytest.raises(TypeError, match="label"):
            DF.dp.count(eps=0.1, label=3)
        assert s.spent == 0.1


@quiet
def test_the_report_has_a_row_per_charge():
    with dp.Session(eps=9, delta=1e-5) as s:
        DF.dp.count(eps=0.5, label="n")
        DF.dp.count(rho=0.01)
        DF.dp.count(eps=0.5)
    report = s.report()
    known = {"index", "time", "label", "question", "mechanism", "eps", "delta", "rho", "repeat_of", "private"}
    assert known <= set(report.columns)
    assert report["index"].to_list() == [0, 1, 2]
    assert report["label"].to_list() == ["n", None, None]
    assert report["mechanism"].to_list() == ["laplace", "gaussian", "laplace"]
    assert report["repeat_of"].to_list() == [None, None, 0]
    assert report["question"].to_list() == ["count()"] * 3
    assert report["private"].all()
    assert report["rho"].to_list() == pytest.approx([0.5 * math.tanh(0.25), 0.01, 0.5 * math.tanh(0.25)])
    empty = dp.Session(eps=1).report()
    assert empty.schema == report.schema


# ---- the namespace: cases 58, 59 ----


@quiet
def test_importing_again_is_harmless():
    accessor = type(DF.dp)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        doors.register()
        doors.register()
        importlib.import_module("dpframe")
    assert type(DF.dp) is accessor
    with dp.Session(eps=1) as s:
        DF.dp.count(eps=0.1)
        DF.to_pandas().dp.count(eps=0.1)
    assert s.spent == 0.2


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, timeout=120
    )


def test_reloading_is_harmless():
    done = run_python(
        "import warnings; warnings.simplefilter('error')\n"
        "import importlib, dpframe, polars as pl, pandas as pd\n"
        "importlib.reload(dpframe)\n"
        "warnings.simplefilter('ignore')\n"
        "s = dpframe.Session(eps=1)\n"
        "pl.DataFrame({'x': [1]}).dp.count(eps=.1, session=s); pd.DataFrame({'x': [1]}).dp.count(eps=.1, session=s)\n"
        "print(float(s.spent))"
    )
    assert done.stdout.strip() == "0.2", done.stderr


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_namespace_of_another_library_is_left_alone_and_told(library):
    register = {
        "pandas": "pd.api.extensions.register_dataframe_accessor('dp')",
        "polars": "pl.api.register_dataframe_namespace('dp')",
    }[library]
    frame = {"pandas": "pd.DataFrame", "polars": "pl.DataFrame"}[library]
    done = run_python(
        "import pandas as pd, polars as pl\n"
        f"@{register}\n"
        "class Other:\n    def __init__(self, df): self.name = 'other'\n"
        "import dpframe as dp\n"
        f"df = {frame}({{'x': [1]}})\n"
        "print(df.dp.name)\n"
        "with dp.Session(eps=1) as s: dp.frame(df).count(eps=.1)\n"
        "print(float(s.spent))"
    )
    assert done.stdout.split() == ["other", "0.1"], done.stderr
    assert "another library" in done.stderr
    assert "dp.frame" in done.stderr


@quiet
def test_a_column_named_dp_is_measured_by_its_name():
    df = pd.DataFrame({"dp": [1.0, 2.0], "x": [1, 2]})
    with dp.Session(eps=2e6):
        assert round(df.dp.clip_sum("dp", bounds=(0, 5), eps=1e6), 3) == 3
        assert list(df["dp"]) == [1.0, 2.0]
        assert round(pl.from_pandas(df).dp.clip_sum("dp", bounds=(0, 5), eps=1e6), 3) == 3


@quiet
def test_a_lazy_answer_is_drawn_once():
    lazy = DF.lazy()
    with dp.Session(eps=1) as s:
        n = lazy.dp.count(eps=0.1)
        table = lazy.dp.groupby("g", keys=["a", "b"]).count(eps=0.1)
    assert isinstance(n, int)
    assert isinstance(table, pl.DataFrame)
    assert table.lazy().collect().equals(table.lazy().collect(engine="streaming"))
    assert s.spent == 0.2


# ---- a failure after the charge keeps it and tells nothing: promises 8 ----

SECRET = 7316245980917
NAME = f"Zaphod{SECRET}"
TRACES = ("7316245", "7.3162", "Zaphod")
SECRETS = pl.DataFrame(
    {"x": [float(SECRET)], "k": [SECRET], "s": [NAME], "g": ["a"], "d": ["not a date " + NAME]}
)


def fail(*_):
    raise ValueError(f"cell {SECRET} of {NAME}")


class Evil:
    """A cell that quotes itself whenever anything is asked of it."""

    def __repr__(self):
        return NAME

    def __hash__(self):
        raise TypeError(NAME)

    def __eq__(self, other):
        raise RuntimeError(NAME)

    __str__ = __repr__


def raising(error):
    def patch(monkeypatch):
        def aggregate(self, *args, **kwargs):
            secret = SECRETS["x"][0]  # noqa: F841  (a local that a traceback would show)
            raise error

        monkeypatch.setattr(engine.PolarsSource, "aggregate", aggregate)

    return patch


class Unprintable(Exception):
    def __str__(self):
        return NAME


class FromBelow(BaseException):
    """Rust panics arrive as one of these."""


ENGINE_ERRORS = [
    ValueError(NAME), TypeError(NAME), KeyError(NAME), IndexError(SECRET), RuntimeError(NAME), OSError(5, NAME),
    MemoryError(NAME), OverflowError(SECRET), ZeroDivisionError(NAME), UnicodeDecodeError("utf8", NAME.encode(), 0, 1, NAME),
    AssertionError(NAME), StopIteration(SECRET), ArithmeticError(NAME), RecursionError(NAME), LookupError(NAME),
    BufferError(NAME), EOFError(NAME), TimeoutError(NAME), Unprintable(SECRET), dp.InputError(NAME), AttributeError(NAME),
    pl.exceptions.ComputeError(NAME), pl.exceptions.InvalidOperationError(NAME), pl.exceptions.ShapeError(NAME),
    pl.exceptions.SchemaError(NAME), pl.exceptions.ColumnNotFoundError(NAME), ExceptionGroup(NAME, [ValueError(NAME)]),
    pl.exceptions.PanicException(NAME),
]  # fmt: skip

LAZY = {
    "a Python function": SECRETS.lazy().with_columns(pl.col("x").map_elements(fail, return_dtype=pl.Float64)),
    "a function on batches": SECRETS.lazy().with_columns(
        pl.col("x").map_batches(fail, return_dtype=pl.Float64)
    ),
    "a strict cast": SECRETS.lazy().with_columns(x=pl.col("s").cast(pl.Int64)),
    "a narrow cast": SECRETS.lazy().with_columns(x=pl.col("k").cast(pl.Int8)),
    "a date": SECRETS.lazy().with_columns(x=pl.col("d").str.to_date("%Y-%m-%d").dt.year()),
    "a decimal": SECRETS.lazy().with_columns(x=pl.col("k").cast(pl.Decimal(5, 2))),
    "an enum": SECRETS.lazy().with_columns(g=pl.col("s").cast(pl.Enum(["a"]))),
    "a list element": SECRETS.lazy().with_columns(x=pl.concat_list("k").list.get(3).cast(pl.Float64)),
}


def searched(e: BaseException, *, with_locals: bool) -> str:
    """Message, repr, and the traceback of the whole chain, with every local of frames that are not this file's."""
    parts = [str(e), repr(e), repr(e.args)]
    todo = [traceback.TracebackException(type(e), e, e.__traceback__, capture_locals=True)]
    while todo:
        t = todo.pop()
        parts += [str(t)]
        for f in t.stack:
            if with_locals and f.filename != __file__:
                parts += [f"{f.filename}:{f.lineno} {k}={v}" for k, v in (f.locals or {}).items()]
        todo += [x for x in (t.__cause__, t.__context__) if x is not None]
    return "\n".join(parts)


def traces(text: str) -> list[str]:
    return [line for line in text.splitlines() if any(t in line for t in TRACES)]


def assert_silent(caplog, call, session, *, charged, error, with_locals=True):
    with warnings.catch_warnings(record=True) as said, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        with pytest.raises(error) as e:
            call()
    assert traces(searched(e.value, with_locals=with_locals)) == []
    assert traces("\n".join(str(w.message) for w in said)) == []
    assert traces(caplog.text) == []
    assert traces(repr(session)) == traces(str(session.report())) == []
    assert (session.spent == 0.1) is charged
    assert session.releases == []


@pytest.mark.parametrize("error", ENGINE_ERRORS, ids=lambda e: type(e).__name__)
def test_a_failing_engine_is_paid_and_withheld(error, monkeypatch, caplog):
    raising(error)(monkeypatch)
    with dp.Session(eps=1) as s:
        assert_silent(
            caplog,
            lambda: SECRETS.dp.groupby("g", keys=["a"]).dp_agg(t=dp.clip_sum("x", bounds=(0, 10)), eps=0.1),
            s, charged=True, error=dp.ReleaseFailed,
        )  # fmt: skip
        monkeypatch.undo()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            SECRETS.dp.count(eps=0.1)  # the session goes on
        assert s.spent == 0.2


@pytest.mark.parametrize("frame", LAZY.values(), ids=list(LAZY))
@pytest.mark.parametrize("grouped", [False, True])
def test_a_lazy_frame_that_does_not_collect_is_paid_and_withheld(frame, grouped, caplog):
    with dp.Session(eps=1) as s:
        verbs = frame.dp.groupby("g", keys=["a"]) if grouped else frame.dp
        column = "x" if frame.collect_schema()["g"] == pl.String else "g"
        ask = (
            (lambda: verbs.clip_sum("x", bounds=(0, 10), eps=0.1))
            if column == "x"
            else (lambda: verbs.count("g", eps=0.1))
        )
        assert_silent(caplog, ask, s, charged=True, error=dp.ReleaseFailed)


def test_a_failing_noise_source_is_paid_and_releases_nothing(monkeypatch, caplog):
    monkeypatch.setattr(DiscreteLaplace, "sample", lambda self, size: fail())
    with dp.Session(eps=1) as s:
        assert_silent(
            caplog,
            lambda: SECRETS.dp.clip_sum("x", bounds=(0, 10), eps=0.1),
            s,
            charged=True,
            error=dp.ReleaseFailed,
        )


def test_an_interrupt_keeps_the_charge_and_passes_through(monkeypatch):
    raising(KeyboardInterrupt())(monkeypatch)
    s = dp.Session(eps=1)
    with pytest.raises(KeyboardInterrupt):
        SECRETS.dp.count(eps=0.1, session=s)
    assert s.spent == 0.1
    assert s.releases == []


PANDAS = SECRETS.to_pandas()
OBJECTS = pd.DataFrame({"x": pd.Series([SECRET, NAME, None], dtype=object), "g": ["a", "b", "c"]})
GIVEN = {
    "pandas Series as a column": lambda: PANDAS.dp.clip_sum(PANDAS["x"], bounds=(0, 10), eps=0.1),
    "polars Series as a column": lambda: SECRETS.dp.clip_sum(SECRETS["x"], bounds=(0, 10), eps=0.1),
    "pandas Series as a key": lambda: PANDAS.dp.groupby(PANDAS["s"], keys=["a"]).count(eps=0.1),
    "polars Series as a key": lambda: SECRETS.dp.groupby(SECRETS["s"], keys=["a"]).count(eps=0.1),
    "pandas Series counted": lambda: PANDAS.dp.count(PANDAS["s"], eps=0.1),
    "pandas Series as keys=": lambda: PANDAS.dp.groupby("g", keys=PANDAS["s"]).count(eps=0.1),
    "numpy array as keys=": lambda: PANDAS.dp.groupby("g", keys=PANDAS["s"].to_numpy()).count(eps=0.1),
    "polars Series as keys=": lambda: SECRETS.dp.groupby("g", keys=SECRETS["s"]).count(eps=0.1),
    "Series as bounds": lambda: PANDAS.dp.clip_sum("x", bounds=PANDAS["x"], eps=0.1),
    "Series as a bound": lambda: PANDAS.dp.clip_sum("x", bounds=(0, PANDAS["x"]), eps=0.1),
    "Series as eps": lambda: PANDAS.dp.count(eps=PANDAS["x"]),
    "Series as n": lambda: PANDAS.dp.clip_mean("x", bounds=(0, 1), n=PANDAS["k"], eps=0.1),
    "Series as round": lambda: PANDAS.dp.count(eps=0.1, round=PANDAS["k"]),
    "Series as label": lambda: PANDAS.dp.count(eps=0.1, label=PANDAS["s"]),
    "Series as session": lambda: PANDAS.dp.count(eps=0.1, session=PANDAS["s"]),
    "Series as mechanism": lambda: PANDAS.dp.count(eps=0.1, mechanism=PANDAS["s"]),
    "Series as aggregate": lambda: PANDAS.dp.dp_agg(PANDAS["x"], eps=0.1),
    "dp.frame of a Series": lambda: dp.frame(PANDAS["x"]),
    "dp.frame of an Arrow table": lambda: dp.frame(SECRETS.to_arrow()["x"]),
    "two positions": lambda: PANDAS.dp.clip_sum("x", PANDAS["x"]),
}
TYPED = {
    "verbs on a Series": lambda: PANDAS["x"].dp.mean(eps=0.1),
    "text measured": lambda: PANDAS.dp.clip_sum("s", bounds=(0, 1), eps=0.1),
    "objects measured": lambda: OBJECTS.dp.clip_sum("x", bounds=(0, 1), eps=0.1),
    "keys of another type": lambda: PANDAS.dp.groupby("k", keys=["a"]).count(eps=0.1),
    "no keys": lambda: PANDAS.dp.groupby("s").count(eps=0.1),
    "a column that is not there": lambda: PANDAS.dp.clip_sum("income", bounds=(0, 1), eps=0.1),
    "an unknown verb": lambda: PANDAS.dp.mean("x"),
    "an unknown argument": lambda: PANDAS.dp.count(epsilon=0.1),
    "no budget left": lambda: PANDAS.dp.clip_sum("x", bounds=(0, 1), eps=50),
}


@pytest.mark.parametrize("call", TYPED.values(), ids=list(TYPED))
def test_a_call_refused_beforehand_tells_nothing_of_cells(call, caplog):
    with dp.Session(eps=1) as s:
        assert_silent(caplog, call, s, charged=False, error=(dp.DPError, TypeError))


@pytest.mark.parametrize("call", GIVEN.values(), ids=list(GIVEN))
def test_a_column_given_for_something_else_is_not_quoted(call, caplog):
    """The caller hands cells over as an argument, so locals hold them; messages and warnings must not."""
    with dp.Session(eps=1) as s:
        assert_silent(caplog, call, s, charged=False, error=(dp.DPError, TypeError), with_locals=False)


def test_cells_that_fight_back_are_unlisted_and_raise_nothing(caplog):
    frame = pd.DataFrame({"g": pd.Series([Evil(), "a", [1], {"b": 2}, None, float("nan")], dtype=object)})
    with dp.Session(eps=2e6) as s, caplog.at_level(logging.DEBUG):
        table = frame.dp.groupby("g", keys=["a", None]).count(eps=1e6)
        assert table["count"].tolist() == [1, 2]
        assert traces(repr(s.last)) == traces(repr(s)) == []
        assert NAME.encode() not in pickle.dumps(s.last)
    assert traces(caplog.text) == []


@quiet
def test_reprs_show_no_cell():
    with dp.Session(eps=1):
        for frame in (SECRETS, PANDAS, SECRETS.lazy()):
            bound = frame.dp.plan.groupby("g", keys=["a"]).dp_agg(t=dp.clip_sum("x", bounds=(0, 10)), eps=0.1)
            release = bound.release()
            things = [
                frame.dp,
                frame.dp.plan,
                frame.dp.groupby("g", keys=["a"]),
                bound,
                bound.plan,
                bound.explain(),
            ]
            things += [bound._source, release.facts, release.cost, bound.plan.measures, bound.plan.keys]
            for thing in things:
                assert traces(f"{thing!r} {thing!s}") == []
            assert traces(bound._repr_html_()) == []


def test_a_missing_file_costs_nothing(tmp_path):
    with dp.Session(eps=1) as s:
        with pytest.raises(Exception, match="nowhere"):
            pl.scan_parquet(tmp_path / "nowhere.parquet").dp.count(eps=0.1)
        assert s.spent == 0


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@quiet
def test_worker_processes_are_refused_the_parents_session():
    """multiprocessing with fork: the job author passes the session along and is told."""
    s = dp.Session(eps=1)
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()

    def work():
        try:
            ONE.dp.count(eps=0.1, session=s)
        except dp.NoSession as e:
            answers.put(str(e))

    workers = [context.Process(target=work) for _ in range(3)]
    for w in workers:
        w.start()
    told = [answers.get() for _ in workers]
    for w in workers:
        w.join()
    assert all("own budget" in t for t in told)
    assert s.spent == 0


@quiet
def test_a_task_that_outlives_the_inner_session_still_pays_the_outer_one():
    """A context copied inside both sessions is inside both, also after the inner block has ended."""
    with dp.Session(eps=1) as outer:
        with dp.Session(eps=5) as inner:
            context = contextvars.copy_context()
        context.run(lambda: DF.dp.count(eps=0.1))
        assert outer.spent == inner.spent == 0.1


@quiet
def test_parts_of_a_session_pay_what_it_stood_in():
    with dp.Session(eps=1) as outer, dp.Session(eps=5) as inner:
        parts = inner.split(2)
        DF.dp.count(eps=0.1, session=parts[0])
        assert outer.spent == parts[0].spent == 0.1


@quiet
def test_a_forked_child_cannot_split_a_budget():
    s = dp.Session(eps=2)
    s._pid += 1  # as in a child
    with pytest.raises(dp.NoSession, match="another process"):
        s.split(2)


@quiet
def test_the_session_of_a_part_pays_for_nothing_else():
    with dp.Session(eps=5):
        parts = DF.dp.partition_by("g", keys=["a", "b"], eps=1)
        with pytest.raises(dp.InputError, match="part"):
            DF.dp.count(eps=1, session=parts["a"].session)
        with pytest.raises(dp.InputError, match="part"):
            parts["b"].dp.count(eps=1, session=parts["a"].session)
        with pytest.raises(dp.InputError, match="part"):
            DF.dp.partition_by("g", keys=["a"], eps=1, session=parts["a"].session)
        assert parts["a"].session.spent == 0
        parts["a"].dp.count(eps=1)


@quiet
def test_an_interrupt_carries_no_exact_value(monkeypatch):
    """Ctrl-C is the usual end of a long query; its traceback must not reach exact integers."""

    def interrupt(self, size):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpframe.noise.strips.StripSampler.sample", interrupt)
    with dp.Session(eps=5) as s, pytest.raises(KeyboardInterrupt) as caught:
        DF.dp.clip_sum("x", B=10, eps=1)
    frames = [f.name for f in traceback.extract_tb(caught.value.__traceback__)]
    assert "_noisy" not in frames
    assert caught.value.__context__ is None
    assert s.spent == 1


def test_what_holds_a_frame_is_not_pickled():
    for x in (DF.dp, DF.dp.plan.count(eps=1), DF.to_pandas().dp.groupby("g", keys=["a"])):
        with pytest.raises(TypeError, match="frame"):
            pickle.dumps(x)


def test_warnings_as_errors_do_not_lose_an_answer_that_was_paid():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with dp.Session(eps=5):
            DF.dp.count(eps=1)
            assert isinstance(DF.dp.count(eps=1), int)


def test_nobody_gets_in_between_checking_and_recording(monkeypatch):
    """While a charge is recorded, another thread can't begin one: it would be checked against the old sum."""
    from dpframe.session import charging

    entered = []
    record = charging._record

    def watched(*args):
        def knock():
            got = sessions._lock.acquire(blocking=False)
            entered.append(got)
            if got:
                sessions._lock.release()

        other = threading.Thread(target=knock)
        other.start()
        other.join()
        return record(*args)

    monkeypatch.setattr(charging, "_record", watched)
    with dp.Session(eps=1) as s:
        pl.DataFrame({"x": [1]}).dp.count(eps=0.5)
    assert s.spent == 0.5
    assert entered == [False]
