"""Messages in the words of a release file and of the command line: what is said is data, and each reader says it."""

from __future__ import annotations

import pickle
from fractions import Fraction

import polars as pl
import pytest

import dpframe as dp
from dpframe.budget_plans.query import QueryError
from dpframe.budget_plans.wording import IN_COMMAND, IN_FILE, IN_RUN
from dpframe.errors import Arg, Call, Code, InPython, Message, exactly, show, typed, wrong_type

THIRD = Fraction(1, 3)
SAID = [  # pieces, hint, Python, release file
    (
        (Arg("eps", -1), " must be more."),
        Arg("eps", 0.5),
        "eps=-1 must be more. Hint: eps=0.5",
        "eps = -1 must be more. Hint: eps = 0.5",
    ),
    (
        (Arg("bounds", (3, 1)), "."),
        Arg("bounds", (0, 100)),
        "bounds=(3, 1). Hint: bounds=(0, 100)",
        "bounds = [3, 1]. Hint: bounds = [0, 100]",
    ),
    (
        ("needs ", Arg("keys"), " or ", Arg("delta"), ": private"),
        None,
        "needs keys= or delta=: private",
        "needs keys or delta: private",
    ),
    (("x.",), Arg("nonnegative", True), "x. Hint: nonnegative=True", "x. Hint: nonnegative = true"),
    (
        ("x.",),
        (Arg("keys", {"g": [1, 2], ...: ...}), " for"),
        "x. Hint: keys={'g': [1, 2], ...} for",
        "x. Hint: keys = { g = [1, 2] } for",
    ),
    (
        (Arg("eps", THIRD), " and ", Arg("eps", Fraction(2))),
        None,
        "eps=1/3 and eps=2",
        "eps = '1/3' and eps = 2",
    ),
    (
        ("clip_mean('x', B=3) needs it.",),
        Call("df.dp.clip_mean", "x", bounds=(0, 100), eps=0.5),
        "clip_mean('x', B=3) needs it. Hint: df.dp.clip_mean('x', bounds=(0, 100), eps=0.5)",
        "clip_mean('x', B=3) needs it. Hint: statistic = 'clip_mean', column = 'x', bounds = [0, 100], eps = 0.5",
    ),
    (
        ("x.",),
        Call("dp.query", Call("dp.count"), eps=0.5),
        "x. Hint: dp.query(dp.count(), eps=0.5)",
        "x. Hint: statistic = 'count', eps = 0.5",
    ),
    (
        ("x.",),
        (Call("count", on=Call("df.dp.groupby", "a", "b", keys=[...]), eps=0.5), " or so"),
        "x. Hint: df.dp.groupby('a', 'b', keys=[...]).count(eps=0.5) or so",
        "x. Hint: groupby = ['a', 'b'], keys = [...], statistic = 'count', eps = 0.5 or so",
    ),
    (
        ("x.",),
        Call("dp.Session", eps=1, unit="u"),
        "x. Hint: dp.Session(eps=1, unit='u')",
        "x. Hint: [budget] with eps = 1, unit = 'u'",
    ),
    (
        ("x.",),
        (Call("dp_agg", ..., eps=0.5), ", or ", Call("dp.public", ...)),
        "x. Hint: dp_agg(..., eps=0.5), or dp.public(...)",
        "x. Hint: eps = 0.5, or [...]",
    ),
    (
        ("nothing is left.", InPython(" Earlier answers are in s.releases.")),
        None,
        "nothing is left. Earlier answers are in s.releases.",
        "nothing is left.",
    ),
    (
        ("wait.",),
        InPython("ask again with the same request_id", "run again"),
        "wait. Hint: ask again with the same request_id",
        "wait. Hint: run again",
    ),
]


@pytest.mark.parametrize(("said", "hint", "python", "toml"), SAID)
@pytest.mark.parametrize("kind", [dp.InputError, dp.MechanismError, wrong_type])
def test_an_error_is_said_in_python_and_in_a_file(kind, said, hint, python, toml):
    e = kind(*said, hint=hint)
    assert str(e) == python
    assert IN_FILE.message(e) == toml
    again = pickle.loads(pickle.dumps(e))
    assert (type(again), str(again), IN_FILE.message(again)) == (type(e), python, toml)


@pytest.mark.parametrize(
    ("piece", "command"),
    [
        (Arg("delta_calls", 5e-7), "--delta-calls 5e-7"),
        (Arg("unit", ["a", "b c"]), "--unit a --unit 'b c'"),
        (Arg("per_scope", Call("dict", eps=0.1, delta=1e-8)), "--per-scope eps=0.1,delta=1e-8"),
        (Arg("per_scope", {"delta": THIRD}), "--per-scope delta=1/3"),
        (Call("dp.Ledger.create", Code("path"), eps=3), "dpframe ledger create --eps 3 budget.db"),
        (Call("dp.Ledger.create", ..., eps=...), "dpframe ledger create --eps ... ..."),
        (Call("dp.Ledger", "/a/b.db"), "dpframe ledger show /a/b.db"),
        (Call("dp.Session", rho=0.1, delta_calls=1e-6), "--rho 0.1 --delta-calls 1e-6"),
        (Arg("keys", ["a"]), "keys=['a']"),  # no option
    ],
)
def test_an_error_is_said_as_it_is_typed_in_a_shell(piece, command):
    assert IN_COMMAND.message(dp.InputError("x.", hint=piece)) == f"x. Hint: {command}"


@pytest.mark.parametrize("words", [IN_FILE, IN_COMMAND, IN_RUN])
def test_texts_stay_as_they_are(words):
    """Paths, names and quotations are never taken for parameters: nothing is read out of a text."""
    for text in (
        "There is no file '/data/eps=1/x.parquet'",
        "uri is a text. Hint: uri = 'duckdb:w.db?table=visits'",
        "the plan's name isn't count() or s; 'eps=3",
        "eps=" + "(" * 100_000,
        "'\udc80' \0",
    ):
        assert words.message(dp.InputError(text)) == words.message(ValueError(text)) == text


def test_a_scope_is_an_option_and_no_key():
    e = dp.InputError("x.", hint=(Arg("scope", "2026-11-29"), ", or another"))
    assert IN_FILE.message(e) == "x. Hint: scope='2026-11-29', or another"
    assert IN_RUN.message(e) == "x. Hint: --scope 2026-11-29, or another"


def test_an_error_inside_another_keeps_its_words_and_no_traceback():
    inner = dp.InputError(Arg("B", 0), " is wrong.", hint=Arg("bounds", (0, 1)))
    outer = QueryError("n", inner, about=("B",))
    assert str(outer) == "query 'n': B=0 is wrong. Hint: bounds=(0, 1)"
    assert IN_FILE.message(outer.cause) == "B = 0 is wrong. Hint: bounds = [0, 1]"
    assert all(not isinstance(p, BaseException) for p in outer.said)
    again = pickle.loads(pickle.dumps(outer))
    assert (again.query, again.about, str(again)) == ("n", ("B",), str(outer))
    assert isinstance(outer.said[1], Message)


def test_a_refusal_is_pickled_with_what_it_is_made_of():
    with dp.Session(eps=1), pytest.raises(dp.BudgetExceeded) as caught:
        pl.DataFrame({"x": [1]}).dp.count(eps=2)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert IN_FILE.message(again) == IN_FILE.message(caught.value) != str(again)
    assert (again.requested, again.component) == (caught.value.requested, "eps")


def test_numbers_keep_the_digits_that_were_typed():
    assert typed((Fraction(10**15 + 1), Fraction(10**15 + 2))) == "(1000000000000001, 1000000000000002)"
    assert typed(Fraction(10**15 + 1, 10**15)) == "1.000000000000001"
    assert show(-(Fraction(2) ** 1001)) == "about -2**1001"
    assert exactly(Fraction(1, 3)) == "1/3"
    assert typed(10**5000).startswith("about 2**")
    assert typed(1e-6) == "1e-6"


def test_hints_of_keys_and_of_mechanisms_are_what_a_file_holds():
    df = pl.DataFrame({"d": [1]}, schema={"d": pl.Date})
    with pytest.raises(dp.InputError) as caught:
        df.dp.plan.groupby("d", keys=[1]).count(eps=1)
    assert str(caught.value).endswith("Hint: keys=[datetime.date(2026, 1, 31)] or keys=['2026-01-31']")
    assert IN_FILE.message(caught.value).endswith("Hint: keys = [2026-01-31] or keys = ['2026-01-31']")
    with pytest.raises(dp.MechanismError) as refused:
        df.dp.plan.count(eps=20, delta=1e-6, mechanism="cactus")
    assert IN_FILE.message(refused.value).endswith("Hint: mechanism = 'staircase'")
