"""What type checkers and editors see: answers have types, completion shows verbs."""

from __future__ import annotations

import inspect
from pathlib import Path

import pandas as pd
import polars as pl
import pytest
import write_stubs

import dpframe as dp

ROOT = Path(__file__).parents[3]

SNIPPET = """
from typing import assert_type

import pandas as pd
import polars as pl

import dpframe as dp
from dpframe.release.answers import FloatAnswer, IntAnswer, PairAnswer
from dpframe.release.release import Release

pandas_frame = pd.DataFrame({"x": [1.0]})
polars_frame = pl.DataFrame({"x": [1.0]})

a = dp.frame(pandas_frame)
b = dp.frame(polars_frame)
c = dp.frame(polars_frame.lazy())

assert_type(a.count(eps=1), IntAnswer)
assert_type(a.clip_mean("x", bounds=(0, 1), eps=1), FloatAnswer)
assert_type(a.clip_sum("x", bounds=(0, 1), eps=1), IntAnswer | FloatAnswer)
assert_type(a.bounds("x", eps=1), PairAnswer)
assert_type(a.agg(n=dp.count(), eps=1), pd.DataFrame)
assert_type(a.groupby("x", keys=[1.0]).count(eps=1), pd.DataFrame)
assert_type(a.groupby("x", keys=[1.0]).dp_agg(n=dp.count(), eps=1), pd.DataFrame)
assert_type(a.quantile("x", 0.5, bounds=(0, 1), eps=1), IntAnswer | FloatAnswer)
assert_type(a.quantile("x", [0.25, 0.75], bounds=(0, 1), eps=1), pd.DataFrame)
assert_type(a.histogram("x", edges=[0, 1], eps=1), pd.DataFrame)
assert_type(a.top_k("x", 3, candidates=[1.0], eps=1), pd.DataFrame)
assert_type(b.agg(n=dp.count(), eps=1), pl.DataFrame)
assert_type(b.groupby("x", keys=[1.0]).clip_mean("x", bounds=(0, 1), eps=1), pl.DataFrame)
assert_type(b.vector_sum(["x"], norm=1, eps=1), pl.DataFrame)
assert_type(c.value_counts("x", keys=[1.0], eps=1), pl.DataFrame)
assert_type(a.plan.count(eps=1), dp.BoundPlan[IntAnswer])
assert_type(a.plan.groupby("x", keys=[1.0]).count(eps=1), dp.BoundPlan[pd.DataFrame])
assert_type(a.plan.count(eps=1).release(), Release[IntAnswer])
assert_type(a.plan.count(eps=1).release().value, IntAnswer)
assert_type(a.plan.clip_mean("x", bounds=(0, 1), eps=1).release().value, FloatAnswer)
assert_type(a.plan.clip_sum("x", bounds=(0, 1), eps=1).release().value, IntAnswer | FloatAnswer)
assert_type(a.plan.bounds("x", eps=1).release().value, PairAnswer)
assert_type(a.plan.agg(n=dp.count(), eps=1).release().value, pd.DataFrame)
assert_type(b.plan.groupby("x", keys=[1.0]).count(eps=1).release().value, pl.DataFrame)
assert_type(b.plan.quantile("x", [0.25, 0.75], bounds=(0, 1), eps=1).release().value, pl.DataFrame)
unsaid: dp.BoundPlan = a.plan.count(eps=1)  # may be left unsaid
anything: Release = unsaid.release()

n: int = a.count(eps=1)
x: float = a.clip_mean("x", bounds=(0, 1), eps=1) + 1
low, high = a.bounds("x", eps=1)
total: float = low + high
"""

WRONG = """
import pandas as pd

import dpframe as dp

df = dp.frame(pd.DataFrame({"x": [1.0]}))
df.count(epsilon=1)
df.clip_mean("x", bounds=3, eps=1)
text: str = df.count(eps=1)
table: str = df.agg(n=dp.count(), eps=1)
"""


def test_answers_have_types_and_wrong_calls_are_type_errors(tmp_path):
    """One run of mypy over both."""
    api = pytest.importorskip("mypy.api", reason="mypy is not installed: types are not checked")
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(SNIPPET)
    wrong.write_text(WRONG)
    out, _, code = api.run(
        ["--strict", "--config-file", str(ROOT / "pyproject.toml"), str(right), str(wrong)]
    )
    assert code == 1, out
    assert "right.py" not in out, out
    for line in (7, 8, 9, 10):
        assert f"wrong.py:{line}: error" in out, out


@pytest.mark.parametrize("stub", write_stubs.STUBS, ids=lambda path: path.name)
def test_what_type_checkers_see_is_what_there_is(stub):
    assert stub.read_text() == write_stubs.STUBS[stub](), "Hint: python tests/write_stubs.py"


VERBS = {
    "count",
    "clip_sum",
    "clip_mean",
    "agg",
    "dp_agg",
    "groupby",
    "group_by",
    "quantile",
    "plan",
    "histogram",
}


@pytest.mark.parametrize("df", [pd.DataFrame({"x": [1]}), pl.DataFrame({"x": [1]}), pl.LazyFrame({"x": [1]})])
def test_completion_shows_verbs_and_nothing_else(df):
    """Everything that is offered can be called, and is documented."""
    offered = dir(df.dp)
    assert set(offered) >= VERBS
    assert offered == sorted(set(offered))
    for name in offered:
        assert not name.startswith("_")
        assert name == "plan" or (callable(getattr(df.dp, name)) and getattr(df.dp, name).__doc__)
    assert set(dir(df.dp.plan)) == set(offered) - {"plan", "partition_by"}
    assert "keys" in dir(df.dp.groupby("x", keys=[1]))
    assert "groupby" not in dir(df.dp.groupby("x", keys=[1]))


def test_a_series_offers_nothing():
    assert dir(pd.Series([1]).dp) == []
    assert dir(pl.Series([1]).dp) == []


@pytest.mark.parametrize("verb", sorted(set(dir(dp.frame(pl.DataFrame({"x": [1]})))) - {"plan"}))
def test_signatures_and_docstrings_show(verb):
    """As an editor asks for them: every parameter by name, no *args."""
    bound = getattr(dp.frame(pl.DataFrame({"x": [1]})), verb)
    parameters = inspect.signature(bound).parameters
    assert "self" not in parameters
    assert "eps" in parameters or verb in ("agg", "dp_agg", "groupby", "group_by")
    text = inspect.getdoc(bound)
    assert "Privacy:" in text or "``quantile``" in text or "``quantile(" in text
