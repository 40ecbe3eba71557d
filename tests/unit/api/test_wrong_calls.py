"""Wrong calls: the right class, a message that names what was wrong and what to write, nothing spent.

One row of a table per call. Every call is made on a pandas frame, a Polars frame and a lazy frame; the
text must be the same (but for the names that libraries give to their types), and no cell may be in it.
"""

from __future__ import annotations

import datetime as dt
import re

import pandas as pd
import polars as pl
import pytest
from wrong import CALLS

import dpframe as dp

pytestmark = pytest.mark.usefixtures("quiet")

CANARY = 7731904  # in every cell of every column, in some form
KINDS = ("pandas", "polars", "lazy")
GUIDES = ("Hint:", "Did you mean", "There are")

TABLE = pl.DataFrame(
    {
        "city": [f"c{CANARY}", "c2", "c3"],
        "income": [float(CANARY), 2.0, 3.0],
        "age": [CANARY, 30, 40],
        "late": [True, False, True],
        "zip": [f"{CANARY}", "2", "3"],
        "when": [dt.datetime(2026, 1, 1, 7, 7, 31)] * 3,
        "day": [dt.date(2026, 1, 1)] * 3,
        "took": [dt.timedelta(seconds=CANARY)] * 3,
    }
)


def frame_of(kind: str):
    if kind == "pandas":
        frame = TABLE.to_pandas()
        text = {"city": "string", "zip": "string"}  # pandas 2 would make them object, which has no type
        return frame.astype(text).astype({"day": pd.ArrowDtype(__import__("pyarrow").date32())})
    return TABLE.lazy() if kind == "lazy" else TABLE


FRAMES = {kind: frame_of(kind) for kind in KINDS}


def of_types(text: str) -> str:
    """Without the names of libraries and of their types, which may differ."""
    names = {"pandas", "polars", "Series", "DataFrame", "LazyFrame"}
    for kind in KINDS:
        df = FRAMES[kind]
        schema = df.dtypes.items() if kind == "pandas" else df.collect_schema().items()
        names |= {str(t) for _, t in schema}
    names |= {"StringArray", "ArrowStringArray", "pandas.core.series.Series", "polars.series.series.Series"}
    names |= {"pandas.Series", "pandas.arrays.StringArray"}
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, "TYPE")
    return text


Wrong = dp.InputError
NAN, INF = float("nan"), float("inf")


FIRST_WORDS = list(CALLS)[: list(CALLS).index("no_keys")]


def refuse(name: str, kind: str) -> BaseException:
    """Make the call on one kind of frame; the session must be as before."""
    call, expected, _ = CALLS[name]
    with dp.Session(eps=10, delta=1e-3) as s:
        with pytest.raises(expected) as caught:
            call(FRAMES[kind])
        assert s.report().height == 0
        assert s.spent == 0
        assert s.releases == []
    return caught.value


def test_the_table_is_long_enough():
    assert len(CALLS) >= 300
    assert len(FIRST_WORDS) >= 20


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_call_is_named_and_costs_nothing(name):
    """Class and ledger on every kind of frame, and one text for all."""
    errors = {kind: refuse(name, kind) for kind in KINDS}
    texts = {kind: str(e) for kind, e in errors.items()}
    for part in CALLS[name][2]:
        assert part in texts["polars"], f"the message does not name {part!r}: {texts['polars']}"
    for kind in KINDS:
        assert str(CANARY) not in texts[kind]
        assert "7, 7, 31" not in texts[kind]
        assert "07:07:31" not in texts[kind]
        assert len(texts[kind]) < 600
    assert of_types(texts["pandas"]) == of_types(texts["polars"]) == of_types(texts["lazy"])
    assert texts["polars"].replace("DataFrame", "LazyFrame") == texts["lazy"].replace(
        "DataFrame", "LazyFrame"
    )


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_call_says_what_to_write(name):
    text = str(refuse(name, "polars"))
    assert any(guide in text for guide in GUIDES), text


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_call_leaves_no_engine_words(name):
    """Messages are dpframe's own: one paragraph, no chained exception, no upstream advice."""
    error = refuse(name, "polars")
    assert "\n" not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    assert "Consider hashing" not in str(error)
    assert not re.search(r"__init__\(\)|unexpected keyword|is not iterable|is not subscriptable", str(error))


def test_input_errors_are_value_errors_and_dpframe_errors():
    error = refuse("bounds_reversed", "pandas")
    assert isinstance(error, ValueError)
    assert isinstance(error, dp.DPError)


def test_an_unknown_verb_is_an_attribute_error_so_hasattr_works(kind):
    space = FRAMES[kind].dp
    assert hasattr(space, "clip_mean")
    assert not hasattr(space, "mean")
    assert getattr(space, "mean", None) is None


def test_names_that_a_thing_does_not_have_get_the_nearest_ones(tmp_path):
    """Like verbs; hasattr works, and what Python and notebooks look for by underscores is theirs."""
    book = dp.Ledger.create(tmp_path / "b.db", eps=1)
    with dp.Session(eps=2) as s:
        n = FRAMES["polars"].dp.count(eps=1)
        d = dp.difference(n, FRAMES["polars"].dp.count("age", eps=1))
    plan = FRAMES["polars"].dp.plan.count(eps=1)
    for thing, near in (
        (s, "spent"),
        (s.last, "value"),
        (plan, "release"),
        (plan.plan, "mechanism"),
        (d, "interval"),
        (book, "export"),
    ):
        typo = near[:-1]
        assert not hasattr(thing, typo)
        with pytest.raises(AttributeError, match=f"has no '{typo}'. Did you mean '{near}'") as caught:
            getattr(thing, typo)
        assert isinstance(caught.value, dp.InputError)
        with pytest.raises(AttributeError, match="no attribute '_repr_latex_'"):
            thing._repr_latex_()
    for ask in (lambda: n.interval(levl=0.9), lambda: s.last.interval(levl=0.9), lambda: d.interval(levl=1)):
        with pytest.raises(TypeError, match=r"interval has no argument 'levl'. Did you mean 'level'\?"):
            ask()
    with pytest.raises(TypeError, match=r"write needs a path. Hint: s.last.write\('table.parquet'\)"):
        s.last.write()


def test_an_upper_case_name_finds_its_column():
    assert "Did you mean 'income'" in str(refuse("upper_case_column", "polars"))


def test_hints_of_count_have_no_bounds():
    """Following the hint must work: count takes no bounds."""
    assert "bounds" not in str(refuse("eps_positional", "polars"))


def test_hints_of_delta_are_small():
    """delta=0.5 would be no privacy at all; nobody should be told to write it."""
    assert "delta=0.5" not in str(refuse("delta_text", "polars"))


def test_agg_words_are_not_taken_for_options():
    """agg(n="count") is a wrong question called n, not an unknown option."""
    assert "has no argument 'n'" not in str(refuse("agg_words", "polars"))


def test_a_number_as_column_of_count_is_pointed_out():
    """df.dp.count(0.5): the 0.5 was read as a column; say so."""
    assert "column" in str(refuse("eps_as_column", "polars"))


def test_one_bad_measure_refuses_the_whole_table(kind):
    """Three questions, the third wrong: nothing of the first two is released or charged."""
    bad = [
        dp.clip_sum("zip", bounds=(0, 1)),
        dp.clip_sum("salary", bounds=(0, 1)),
        dp.clip_mean("income"),
    ]
    with dp.Session(eps=10) as s:
        for question in bad:
            with pytest.raises(dp.InputError):
                FRAMES[kind].dp.agg(n=dp.count(), late=dp.clip_mean("late"), x=question, eps=1)
        assert s.report().height == 0


def test_a_question_about_two_columns_of_one_name_is_refused():
    df = pd.DataFrame([[1.0, 2.0, 3.0]], columns=["x", "x", "y"])
    with dp.Session(eps=1e6) as s:
        for ask in (
            lambda: df.dp.clip_sum("x", bounds=(0, 9), eps=1),
            lambda: df.dp.count("x", eps=1),
            lambda: df.dp.groupby("x", keys=[1.0]).count(eps=1),
        ):
            with pytest.raises(dp.InputError, match=r"2 columns named 'x'.*Hint"):
                ask()
        assert s.report().height == 0
        assert round(df.dp.clip_sum("y", bounds=(0, 9), eps=1e5), 2) == 3.0


@pytest.mark.parametrize("values", [[1, 2.5, None], ["1", "2", "x"], [1, "2", None]])
def test_object_columns_are_not_measured(values):
    """Object cells have no type to check, so the refusal is the same whatever they hold."""
    df = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    with dp.Session(eps=1) as s:
        with pytest.raises(dp.InputError, match=r"'x'.*object.*Hint: .*astype\(float\)") as caught:
            df.dp.clip_sum("x", bounds=(0, 1), eps=1)
        assert s.report().height == 0
    assert "2.5" not in str(caught.value)


def test_hints_name_the_column_that_was_asked():
    """A line that can be pasted: the column in the hint is the caller's."""
    assert "'zip'" in str(refuse("text_measured", "pandas")).split("Hint:")[1]


def test_hints_speak_the_library_of_the_frame():
    """astype is pandas; a Polars frame needs cast."""
    hint = str(refuse("text_measured", "polars")).split("Hint:")[1]
    assert "astype" not in hint or "cast(pl." in hint


def test_budget_exceeded_names_component_request_remaining_and_label(kind):
    with dp.Session(eps=1) as s:
        FRAMES[kind].dp.count(eps=0.75)
        with pytest.raises(dp.BudgetExceeded, match=r"eps does not suffice.*eps=0\.5.*0\.25") as caught:
            FRAMES[kind].dp.count(eps=0.5, label="again")
        error = caught.value
        assert error.component == "eps"
        assert error.requested == 0.5
        assert error.remaining == 0.25
        assert error.label == "again"
        assert "'again'" in str(error)
        assert s.spent == 0.75
        assert repr(FRAMES[kind].dp).startswith("<df.dp")


def test_every_refusal_has_the_same_text_on_another_frame_of_that_schema():
    """Messages come from parameters and schema: an empty frame is refused in the same words."""
    empty = FRAMES["polars"].clear()
    for name, (call, expected, _) in CALLS.items():
        with dp.Session(eps=10, delta=1e-3), pytest.raises(expected) as caught:
            call(empty)
        assert str(caught.value) == str(refuse(name, "polars")), name


WHOLE_CALL = re.compile(r"df\.dp\.(\w+\((?:[^()]|\([^()]*\))*\))")


def hinted_calls() -> list[str]:
    """Every call of a verb that a hint writes out in full."""
    found = set()
    for name in CALLS:
        found |= set(WHOLE_CALL.findall(str(refuse(name, "polars")).partition("Hint:")[2]))
    return sorted(c for c in found if "..." not in c and "groupby" not in c and "plan" not in c)


def test_calls_that_hints_write_out_can_be_pasted():
    """On a frame that has the columns they name, in a session that may grant them."""
    frame = TABLE.with_columns(x=pl.lit(1.0), y=pl.lit(2.0), w=pl.lit(0.5), column=pl.lit(1.0))
    calls = hinted_calls()
    assert len({c.partition("(")[0] for c in calls}) > 8
    with dp.Session(eps=1, delta=1e-5):
        for call in calls:
            assert isinstance(eval(f"df.dp.plan.{call}", {"df": frame}), dp.BoundPlan), call


def test_a_property_that_fails_says_so_in_its_own_words(tmp_path, monkeypatch):
    """And not that the name is not there."""

    def fails(*_):
        raise AttributeError("inside")

    ledger = dp.Ledger.create(tmp_path / "budget.db", eps=1)
    monkeypatch.setattr(ledger, "state", fails)
    with pytest.raises(AttributeError, match=r"^inside$"):
        ledger.spent  # noqa: B018
    ledger.close()
    for kind in (dp.Session, dp.Ledger, dp.BoundPlan, dp.Release):  # made in part, as copiers do
        half = kind.__new__(kind)
        with pytest.raises(AttributeError, match="no attribute '_"):
            half._budget  # noqa: B018
