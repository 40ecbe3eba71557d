"""What fails after the charge stays paid and tells nothing; what is shown or stored holds no cell."""

from __future__ import annotations

import logging
import pickle
import traceback
import warnings

import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.engine import polars as engine
from dpframe.mechanisms.laplace import DiscreteLaplace

DF = pl.DataFrame({"x": [1.0, 2.0, 3.0], "g": ["a", "b", "a"], "s": ["u", "v", "w"]})

quiet = pytest.mark.usefixtures("quiet")


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
