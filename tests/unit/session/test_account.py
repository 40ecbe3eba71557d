"""What a session charges, refuses, keeps and reports, whatever frame it pays for."""

from __future__ import annotations

import gc
import json
import math
import pickle
import struct
import warnings
import weakref
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.engine import polars as engine

DF = pl.DataFrame({"x": [1.0, 2.0, 3.0], "g": ["a", "b", "a"], "s": ["u", "v", "w"]})

quiet = pytest.mark.usefixtures("quiet")


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
        with pytest.raises(dp.BudgetExceeded, match=r"^eps does not suffice: .* of eps=5\."):  # its own
            DF.dp.count(eps=6)
    assert outer.spent == 0
    assert inner.spent == 0


def test_a_refusal_says_which_part_ran_out():
    s = dp.Session(eps=1)
    DF.dp.count(eps=0.7, session=s)
    with pytest.raises(
        dp.BudgetExceeded, match=r"eps does not suffice.*count\(\).*'second'.*0\.5.*0\.3.*1\b"
    ) as e:
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


def repeats(frames) -> list[str]:
    """The warnings of one question, asked of each frame in turn."""
    with warnings.catch_warnings(record=True) as said, dp.Session(eps=10**6):
        warnings.simplefilter("always")
        for frame in frames:
            frame.dp.count(eps=0.1)
    return [str(w.message) for w in said]


def test_repeats_are_told_at_the_2nd_10th_and_100th_time_whatever_the_objects_are():
    """A function of the calls: in 0.1.0 it depended on where freed frames had lain, and came every time."""
    same = repeats(DF for _ in range(120))
    filters = repeats(DF.filter(pl.col("x") > i) for i in range(120))
    kept = repeats([DF.filter(pl.col("x") > i) for i in range(120)])
    assert same == filters == kept == repeats(DF.lazy() for _ in range(120))
    assert [next(n for n in ("2nd", "10th", "100th") if f"the {n} time" in x) for x in same] == [
        "2nd",
        "10th",
        "100th",
    ]
    assert all("groupby(...)" in x and "partition_by(...)" in x for x in same)
    assert len({x.replace("2nd", "10th").replace("100th", "10th") for x in same}) == 1


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
        margins, columns = facts.pop("margins_95"), facts.pop("columns")
        assert columns == {"g": "String", "n": "Int64", "m": "Float64"}
        assert facts == json.loads(json.dumps(kept.facts))
        assert set(margins) == {o.name for o in kept.plan.outputs}
        fact = facts["outputs"]["n"]
        assert facts["eps"] == "0.5"
        assert fact["mechanism"] == "laplace"
        # A stranger recomputes scale and margin: K l1 / eps steps of 1/K rows, two noises.
        assert math.isclose(fact["scale"], fact["l1"] * fact["fused_parts"] / 0.5)
        draws = np.random.default_rng(0).laplace(scale=fact["scale"], size=(fact["noises"], 40_000)).sum(0)
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
