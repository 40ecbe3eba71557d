"""Messages in the words of a release file and of the command line."""

from __future__ import annotations

import time
import warnings

import pytest

from dpframe.budget_plans.wording import in_command, in_file, scope_in_command


@pytest.mark.parametrize(
    ("python", "toml"),
    [
        ("eps=-1 must be more. Hint: eps=0.5", "eps = -1 must be more. Hint: eps = 0.5"),
        ("bounds=(3, 1). Hint: bounds=(0, 100)", "bounds = [3, 1]. Hint: bounds = [0, 100]"),
        ("needs keys= or delta=: private", "needs keys or delta: private"),
        ("rho=, one of them", "rho, one of them"),
        ("x. Hint: nonnegative=True", "x. Hint: nonnegative = true"),
        ("x. Hint: keys={'g': [1, 2], ...} for", "x. Hint: keys = { g = [1, 2] } for"),
        ("eps=Fraction(1, 3) and eps=Fraction(2, 1)", "eps = '1/3' and eps = 2"),
        (
            "clip_mean('x', B=3) needs it. Hint: df.dp.clip_mean('x', bounds=(0, 1e5), eps=0.5)",
            "clip_mean('x', B=3) needs it. Hint: statistic = 'clip_mean', column = 'x', bounds = [0, 1e5], eps = 0.5",
        ),
        ("x. Hint: dp.query(dp.count(), eps=0.5)", "x. Hint: statistic = 'count', eps = 0.5"),
        (
            "x. Hint: df.dp.groupby('a', 'b', keys=[...]).count(eps=0.5) or so",
            "x. Hint: groupby = ['a', 'b'], keys = [...], statistic = 'count', eps = 0.5 or so",
        ),
        ("x. Hint: dp.Session(eps=1, unit='u')", "x. Hint: [budget] with eps = 1, unit = 'u'"),
        ("x. Hint: .dp_agg(..., eps=0.5), or dp.public(...)", "x. Hint: eps = 0.5, or [...]"),
        ("nothing is left. Earlier answers are in s.releases.", "nothing is left."),
        ("The first answer is s['n']; read it", "The first answer is that of query 'n'; read it"),
        ("wait. Hint: ask again with the same request_id", "wait. Hint: run again"),
    ],
)
def test_python_becomes_what_a_file_holds(python, toml):
    assert in_file(python) == toml
    assert in_file(toml) == toml  # said twice is said once


@pytest.mark.parametrize(
    ("python", "command"),
    [
        (
            "delta_calls=1e-05 is more. Hint: delta_calls=5e-07",
            "--delta-calls 1e-05 is more. Hint: --delta-calls 5e-07",
        ),
        ("unit=['a', 'b c']", "--unit a --unit 'b c'"),
        ("x. Hint: per_scope=dict(eps=0.1, delta=1e-8)", "x. Hint: --per-scope eps=0.1,delta=1e-8"),
        ("per_scope={'delta': Fraction(1, 3)}", "--per-scope delta=1/3"),
        ("x. Hint: dp.Ledger.create(path, eps=3)", "x. Hint: dpframe ledger create --eps 3 budget.db"),
        ("x. Hint: dp.Ledger('/a/b.db') opens", "x. Hint: dpframe ledger show /a/b.db opens"),
        ("x. Hint: dp.Session(rho=0.1, delta_calls=1e-6)", "x. Hint: --rho 0.1 --delta-calls 1e-6"),
    ],
)
def test_python_becomes_what_is_typed_in_a_shell(python, command):
    assert in_command(python) == command
    assert in_command(command) == command


@pytest.mark.parametrize("reword", [in_file, in_command, scope_in_command])
def test_paths_and_quotations_stay_as_they_are(reword):
    for text in (
        "There is no file '/data/eps=1/x.parquet'",
        "The ledger /data/eps=1/unit=2.db can't be read",
        "uri is a text. Hint: uri = 'duckdb:w.db?table=visits'",
        "the plan's name isn't count() or s",
    ):
        assert reword(text) == text


def test_a_scope_is_an_option_and_no_key():
    text = in_file("x. Hint: scope='2026-11-29', or another")
    assert text == "x. Hint: scope='2026-11-29', or another"
    assert scope_in_command(text) == "x. Hint: --scope 2026-11-29, or another"


@pytest.mark.parametrize("reword", [in_file, in_command, scope_in_command])
@pytest.mark.parametrize("hint", ["", "Hint: "])
def test_any_message_is_reworded_or_said_as_it_is(reword, hint):
    for value in (
        *(
            "(" + sign * n + "1)"
            for sign in ("-", "not ", "1+", "1**", "lambda:")
            for n in (400, 20_000 // len(sign))
        ),
        *("(1," * n + ")" * n for n in (199, 5_000)),
        "a" + ".b" * 10_000,
        "a()" + ".b()" * 2_000,
        "[" * 20_000,
        "'\0",
        "'\udc80' \udc80",
        "(1,\r2,\r\n3,\f4,\u20285)",
    ):
        assert reword(f"{hint}eps={value}").startswith(hint)


def test_a_long_list_is_reworded_at_once():
    start = time.process_time()
    assert in_file(f"eps=[{'-1.5, ' * 3_000}]").endswith("-1.5]")
    assert time.process_time() - start < 5


@pytest.mark.parametrize("reword", [in_file, in_command])
def test_what_was_typed_with_an_apostrophe_or_an_escape_stays(reword):
    for text in ('The column "it\'s eps=3 x" is not there', "unit='it\\'s'"):
        assert reword(text) == text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert reword(r"eps=5is, x") == r"eps=5is, x"
    assert in_file('unit="it\'s"') == 'unit = "it\'s"'
    assert in_file("unit='a, ...}'") == "unit = 'a, ...}'"
