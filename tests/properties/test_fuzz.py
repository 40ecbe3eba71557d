"""Hostile inputs: parameters, dtypes, keys, release files, parquet, ledgers. Clear errors, nothing spent, nothing lost.

``DPFRAME_AUDIT=1`` raises examples about tenfold. Examples are derived from the code, so a run repeats itself.
"""

# ruff: noqa: PT017  (an error is one of two things that may happen)

from __future__ import annotations

import io
import math
import os
import shutil
import sqlite3
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ledger_tools import claim, spent
from sizes import AUDIT

import dpframe as dp
from dpframe.audit.neighbours import SPECIAL_CELLS

pytestmark = pytest.mark.filterwarnings("ignore")
BUDGET = 10**6


def examples(few, many):
    return settings(
        max_examples=many if AUDIT else few,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )


# ---- parameters ----

NUMBERS = st.one_of(
    st.sampled_from(
        [0, -0.0, 1, -1, 0.1, 0.5, 1e-6, 1e-320, 1e308, math.inf, -math.inf, math.nan, 2**70, -(2**70)]
    ),
    st.fractions(),
    st.decimals(),
    st.integers(),
    st.floats(),
    st.floats(width=32).map(np.float32),
    st.integers(0, 100).map(np.int64),
)
JUNK = st.one_of(
    NUMBERS,
    st.text(max_size=4),
    st.none(),
    st.booleans(),
    st.complex_numbers(max_magnitude=9),
    st.binary(max_size=3),
    st.lists(NUMBERS, max_size=3),
    st.tuples(NUMBERS, NUMBERS),
    st.dictionaries(st.text(max_size=2), NUMBERS, max_size=2),
    st.just(pl.Series([1.0, 2.0])),
    st.just(np.array([1.0, 2.0])),
    st.just(pd.Series([1.0])),
    st.just(pl.col("x")),
    st.just(object()),
    st.just({1, 2}),
    st.just(range(3)),
)
VERBS = {
    "count": ("column",),
    "clip_sum": ("column", "bounds", "B"),
    "clip_mean": ("column", "bounds", "B", "n"),
    "clip_var": ("column", "bounds", "ddof", "raw"),
    "clip_wmean": ("column", "weights", "bounds", "weight_bounds"),
    "clip_cov": ("columns", "bounds"),
    "ols": ("y", "x", "bounds"),
    "vector_sum": ("columns", "norm", "ord"),
    "histogram": ("column", "edges"),
    "n_unique": ("column",),
    "bounds": ("column", "range"),
    "quantile": ("column", "q", "bounds", "candidates"),
    "top_k": ("column", "k", "candidates"),
    "select": ("columns", "bounds", "k"),
}
GOOD = {
    "column": "x", "columns": ["x", "y"], "bounds": (0, 10), "weights": "y", "norm": 5, "edges": [0, 5, 9], "q": 0.5,
    "k": 1, "eps": 1, "y": "y", "x": ["x"], "weight_bounds": (0, 1), "candidates": [1, 2, 3],
}  # fmt: skip
OPTIONS = ("eps", "delta", "rho", "mechanism", "ci", "round", "nonnegative", "label", "error", "rows", "loss")
FRAME = pl.DataFrame({"x": [1.0, None, 7.0], "y": [2, 3, 4], "g": ["a", "b", None]})


@st.composite
def calls(draw):
    """A verb with good arguments, of which one or two are replaced by anything."""
    verb = draw(st.sampled_from(sorted(VERBS)))
    names = [*VERBS[verb], "eps"]
    given = {k: GOOD[k] for k in names if k in GOOD and k not in ("candidates",)}
    if verb == "top_k":
        given["candidates"] = GOOD["candidates"]
    for name in draw(st.lists(st.sampled_from([*names, *OPTIONS, "nonsense"]), min_size=1, max_size=2)):
        given[name] = draw(JUNK)
    return verb, given


@examples(400, 20_000)
@given(calls(), st.booleans())
def test_any_parameter_is_used_or_named(call, grouped):
    """An answer, or an error of dpframe's (TypeError for a wrong kind of object) before anything is spent."""
    verb, given = call
    with dp.Session(eps=BUDGET, delta=0.1) as s:
        d = FRAME.dp.groupby("g", keys=["a", "b"]) if grouped else FRAME.dp
        if verb in ("top_k",):
            given = {"column": "y", **{k: v for k, v in given.items() if k != "column"}}
        try:
            getattr(d, verb)(**given)
        except (dp.DPError, TypeError) as e:
            assert not isinstance(e, dp.ReleaseFailed), (verb, given)
            assert str(e)
            assert s.spent == 0
            assert not s.releases
        else:
            assert len(s.releases) == 1


@examples(150, 5_000)
@given(st.dictionaries(st.sampled_from(["eps", "delta", "delta_calls", "rho", "order", "accountant", "neighbors", "unit", "contributions", "max_groups", "max_rows", "max_rows_per_group", "strict", "scope", "ledger"]), JUNK, min_size=1, max_size=3))  # fmt: skip
def test_any_session_is_opened_or_refused_by_name(given):
    try:
        s = dp.Session(**given)
    except (dp.DPError, TypeError) as e:
        assert str(e)
        return
    assert s.spent == 0
    s.close()


@examples(200, 5_000)
@given(NUMBERS)
def test_a_charge_is_what_was_typed_or_nothing(eps):
    """What is granted is charged exactly, as a rational; all else is refused, and charges nothing."""
    with dp.Session(eps=BUDGET) as s:
        try:
            FRAME.dp.count(eps=eps)
        except (dp.DPError, TypeError):
            assert s.spent == 0
        else:
            exact = Fraction(eps) if isinstance(eps, int | Fraction | Decimal) else Fraction(s.spent.eps)
            assert s.spent.eps == exact
            assert 0 < s.spent.eps <= BUDGET
            assert float(s.spent.eps) == float(eps)


# ---- dtypes and cells ----

DTYPES = {
    **{k: (t, c) for k, (t, c) in SPECIAL_CELLS.items()},
    "String": (pl.String, [None, "", "a", "1e3", "\0", "\ud7ff"]),
    "Categorical": (pl.Categorical, [None, "a", "z"]),
    "Enum": (pl.Enum(["a", "b"]), [None, "a", "b"]),
    "Date": (pl.Date, [None, 0, -10_000, 99_999]),
    "Datetime": (pl.Datetime("us"), [None, 0, 10**15]),
    "Duration": (pl.Duration("ms"), [None, 0, -5]),
    "Time": (pl.Time, [None, 0]),
    "Binary": (pl.Binary, [None, b"", b"\xff"]),
    "List": (pl.List(pl.Float64), [None, [], [1.0], [math.nan, 2.0]]),
    "Array": (pl.Array(pl.Float64, 2), [None, [1.0, 2.0], [math.inf, 0.0]]),
    "Struct": (pl.Struct({"a": pl.Int64}), [None, {"a": 1}]),
}
ASKS = {
    "count": lambda d: d.count("x", eps=1),
    "sum": lambda d: d.clip_sum("x", bounds=(0, 10), eps=1),
    "mean": lambda d: d.clip_mean("x", bounds=(0, 10), eps=1),
    "var": lambda d: d.clip_var("x", bounds=(0, 10), eps=1),
    "vector": lambda d: d.vector_sum("x", norm=3, eps=1),
    "histogram": lambda d: d.histogram("x", edges=[0, 5, 10], eps=1),
    "n_unique": lambda d: d.n_unique("x", eps=1),
    "median": lambda d: d.median("x", bounds=(0, 10), eps=1),
    "top_k": lambda d: d.top_k("x", 1, candidates=["a", "b"], eps=1),
    "values": lambda d: d.value_counts("x", keys=["a", None], eps=1),
    "numbers": lambda d: d.value_counts("x", keys=[0, 1, None], eps=1),
    "found": lambda d: d.groupby("x").count(eps=1, delta=1e-3),
}


def said(ask, frame):
    """What is seen of a question: the error with its words, or the answer's type, columns and dtypes."""
    with dp.Session(eps=BUDGET, delta=0.1) as s:
        try:
            value = ask(frame.dp)
        except (dp.DPError, TypeError) as e:
            assert not isinstance(e, dp.ReleaseFailed)
            assert s.spent == 0
            return type(e).__name__, str(e)
        assert len(s.releases) == 1
        table = [*map(str, value.columns), *map(str, value.dtypes)] if hasattr(value, "columns") else None
        return type(value).__name__, table


@st.composite
def columns(draw):
    dtype, cells = DTYPES[draw(st.sampled_from(sorted(DTYPES)))]
    return pl.Series("x", draw(st.lists(st.sampled_from(cells), max_size=5)), dtype=dtype, strict=False)


@examples(150, 6_000)
@given(columns(), st.sampled_from(sorted(ASKS)), st.sampled_from(["polars", "lazy", "pandas"]))
def test_any_column_is_answered_or_refused_by_its_type_alone(x, ask, library):
    """Full or empty: the same answer's type, or the same words of refusal, whatever the cells are."""
    frames = [pl.DataFrame([x]), pl.DataFrame([x.clear()])]
    if library == "lazy":
        frames = [f.lazy() for f in frames]
    elif library == "pandas":
        if x.dtype in (pl.Int128, pl.Time, pl.Null) or isinstance(x.dtype, pl.Array):
            return  # these have no dtype of their own there: pandas holds them as objects
        frames = [f.to_pandas(use_pyarrow_extension_array=True) for f in frames]
    full, empty = (said(ASKS[ask], f) for f in frames)
    assert full == empty


KEYS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.text(max_size=2), st.binary(max_size=2), st.dates(),
    st.datetimes(), st.timedeltas(), st.decimals(), st.fractions(), st.tuples(st.integers(0, 2)), st.lists(st.none(), max_size=1),
    st.just(pd.NA), st.just(pd.NaT), st.just(np.float32(1.5)), st.just("\ud800"), st.just(object), st.just(2**80),
)  # fmt: skip


@examples(200, 8_000)
@given(columns(), st.one_of(st.lists(KEYS, max_size=4), st.lists(KEYS, max_size=3).map(tuple), JUNK))
def test_any_list_of_keys_is_grouped_by_or_refused(x, keys):
    """As many rows as there are keys, in their order; or words, and nothing spent."""
    with dp.Session(eps=BUDGET) as s:
        try:
            table = pl.DataFrame([x]).dp.groupby("x", keys=keys).count(eps=1)
        except (dp.DPError, TypeError) as e:
            assert str(e)
            assert not isinstance(e, dp.ReleaseFailed)
            assert s.spent == 0
        else:
            assert table.height == len(keys)


# ---- files ----

RELEASE_FILE = b"""
name = "q3"
[source]
path = "people.parquet"
[budget]
eps = 2.0
delta = 1e-6
neighbors = "replace_one"
[[query]]
name = "rows"
statistic = "count"
eps = 0.4
outputs = ["rows.csv"]
[[query]]
name = "by_city"
groupby = "city"
keys = ["a", "b"]
share = 0.3
[query.ask.n]
statistic = "count"
[query.ask.x]
statistic = "clip_mean"
column = "x"
bounds = [0, 100]
"""
WORDS = [b"eps", b"[", b"]", b"=", b'"', b"'", b"\n", b"-", b"nan", b"inf", b"1e999", b"true", b"{", b"}", b"#", b"\xff",
         b"\0", b"keys", b"0.0", b"[[query]]", b"2026-01-01", b"9" * 400, b"[[[[[[", b"\xe2\x80\xae", b"delta", b"rho = 1\n"]  # fmt: skip


@st.composite
def damaged(draw, data):
    """Bytes with pieces cut out, repeated, swapped or written over."""
    out = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(out)))
        to = min(len(out), at + draw(st.integers(0, 40)))
        kind = draw(st.sampled_from(["cut", "twice", "word", "flip", "end"]))
        if kind == "cut":
            del out[at:to]
        elif kind == "twice":
            out[at:at] = out[at:to]
        elif kind == "word":
            out[at : at + draw(st.integers(0, 4))] = draw(st.sampled_from(WORDS))
        elif kind == "flip" and at < len(out):
            out[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "end":
            del out[at:]
    return bytes(out)


def parquet():
    file = io.BytesIO()
    pl.DataFrame({"x": [1.0, 2.0] * 50, "city": ["a", "b"] * 50}).write_parquet(file)
    return file.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz")
    (path / "people.parquet").write_bytes(parquet())
    return path


@examples(250, 20_000)
@given(damaged(RELEASE_FILE))
def test_a_damaged_release_file_is_a_plan_or_an_error(folder, text):
    """Words of dpframe's, which name the file; nothing is asked, nothing written."""
    before = sorted(p.name for p in folder.iterdir())
    (folder / "plan.toml").write_bytes(text)
    try:
        plan = dp.BudgetPlan.from_release_file(folder / "plan.toml")
        plan.table()
    except (dp.DPError, TypeError) as e:
        assert str(e)
    finally:
        os.unlink(folder / "plan.toml")
    assert sorted(p.name for p in folder.iterdir()) == before


PARQUET = parquet()


@examples(60, 3_000)
@given(damaged(PARQUET))
def test_a_damaged_parquet_file_is_answered_or_refused(folder, data):
    """An error before the charge where the damage is in the schema; after it, the charge stands and no word leaks."""
    where = folder / "damaged"
    where.mkdir(exist_ok=True)
    (where / "people.parquet").write_bytes(data)
    (where / "plan.toml").write_bytes(RELEASE_FILE)
    try:
        plan = dp.BudgetPlan.from_release_file(where / "plan.toml")
        done = plan.run()
    except dp.ReleaseFailed as e:
        assert "withheld" in str(e)
    except dp.DPError as e:
        assert str(e)
    else:
        assert done is not None
    finally:
        shutil.rmtree(where)


def ledger_with_three_charges(path):
    book = dp.Ledger.create(path, eps=1)
    for _ in range(3):
        book.reserve(claim(0.1))
    book.close()
    c = sqlite3.connect(path)
    c.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    c.close()


@pytest.fixture(scope="module")
def ledger_files(tmp_path_factory):
    """What a ledger of 0.3 spent consists of: name -> bytes."""
    path = tmp_path_factory.mktemp("book")
    ledger_with_three_charges(path / "budget.db")
    return {p.name: p.read_bytes() for p in path.iterdir() if p.is_file()}


@examples(60, 3_000)
@given(st.data())
def test_a_damaged_ledger_never_has_more_budget(tmp_path_factory, ledger_files, data):
    """Refused, or the 0.3 are still spent and a charge adds to them; whatever happens to ledger, anchor or both."""
    path = tmp_path_factory.mktemp("damaged")
    hurt = data.draw(st.sets(st.sampled_from(sorted(ledger_files)), min_size=1))
    for name, content in ledger_files.items():
        (path / name).write_bytes(data.draw(damaged(content)) if name in hurt else content)
    try:
        book = dp.Ledger(path / "budget.db")
        assert spent(book) == Fraction(3, 10)
        book.reserve(claim(0.1))
        assert spent(book) == Fraction(4, 10)
        book.close()
    except dp.LedgerError as e:
        assert str(e)
    finally:
        shutil.rmtree(path)
