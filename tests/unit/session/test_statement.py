"""The statement: right numbers, plain words, no data."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import polars as pl
import pytest

import dpframe as dp
from dpframe.session.statement import in_words, odds

FRAME = pl.DataFrame({"x": [1.0, 5.0] * 300, "who": ["a", "b<i>"] * 300})
JARGON = (
    "epsilon",
    "sensitivity",
    "laplace",
    "gaussian",
    "mechanism",
    "zcdp",
    "neighbo",
    "posterior",
    "noise",
)


def stated(**policy) -> str:
    s = dp.Session(**policy)
    s.close()
    return str(s.statement())


def flat(text: str) -> str:
    return " ".join(text.split())


def test_odds_are_those_of_the_relation():
    add, replace = flat(stated(eps=1)), flat(stated(eps=1, neighbors="replace_one"))
    for text in (add, replace):
        assert "at most 2.72 times more or less likely" in text
        assert "odds of at most 2.72 to 1 (73.2 %)" in text
    assert "Whether it is in the data at all is protected" in add
    assert "two stories about what the data say of it can be led to at most 7.39 to 1" in add
    assert "that it is in the data is taken as known" in replace
    assert "7.39" not in replace


def test_delta_rho_and_large_budgets_in_words():
    text = flat(stated(eps=1, delta=1e-6))
    assert (
        "at most 2.72 times the chance if it were not in the data, plus 1 in 1,000,000; and the other" in text
    )
    assert "to odds of more than 5.44 to 1 (84.5 %) with a chance of at most 1 in 500,000." in text
    assert "a chance of" not in stated(eps=1)
    assert "protect little" in flat(stated(eps=6))
    assert "protects nobody in practice" in flat(stated(eps=15))
    assert "(Technically: eps = 15, delta = 0.)" in stated(eps=15)
    rho = flat(stated(rho=0.5))
    assert "(Technically: rho = 0.5; that is eps = 5.22153, delta = 1e-06.)" in rho
    assert f"{odds(Fraction(5.221534).limit_denominator(10**6))} times" in rho


@pytest.mark.parametrize(
    "eps", [Fraction(1, 10**6), Fraction(1, 10), 1, Fraction(7, 3), 9, Fraction(139, 10), 28]
)
def test_odds_are_never_understated(eps):
    shown = float(odds(Fraction(eps)).replace(",", ""))
    assert math.exp(eps) <= shown <= math.exp(eps) * 1.011


def test_chances_are_never_understated():
    for delta in (Fraction(1, 3), Fraction(2, 7), Fraction(1, 10**6), Fraction(3, 10**7)):
        n = int(in_words(delta).split()[-1].replace(",", ""))
        assert Fraction(1, n) >= delta


def test_every_release_stands_there_with_date_bounds_and_error():
    with dp.Session(eps=1, unit="who", max_rows=2) as s:
        FRAME.dp.count(eps=0.2, label="rows")
        FRAME.dp.clip_sum("x", bounds=(0, 4), eps=0.3)
        FRAME.dp.clip_mean("x", bounds=(-1, 4), eps=0.1)
    text = str(s.statement())
    assert re.search(r"1\. \d{4}-\d\d-\d\d \d\d:\d\d UTC  rows: count\(\)  \(uses eps = 0.2\)", text)
    error = FRAME.dp.plan.clip_sum("x", bounds=(0, 4), eps=0.3, session=s).error
    assert (
        f"values counted as at least 0 and at most 4; within {error:.4g} of the exact figure of what counted"
        in text
    )
    assert "of each who at most 2 rows counted; what was beyond is missing" in text
    assert "values counted as at least -1 and at most 4; how exact it is depends" in text
    assert "eps = 0.6 of eps = 1 has been used" in text
    assert "Every single who by itself, with all rows that carry it." in text


def test_nothing_released_and_no_limit():
    assert "Nothing yet." in stated(eps=1)
    from dpframe.session.payer import _Ambient

    assert "Nothing limits the total" in flat(str(_Ambient().statement()))


def test_the_words_are_plain_and_name_what_is_not_promised():
    text = stated(eps=1, delta=1e-6).lower()
    assert not [w for w in JARGON if w in text]
    for said in (
        "how long a computation took",
        "the analyst",
        "other data sets",
        "true of people in general",
    ):
        assert said in flat(text)


def test_a_ledger_is_stated_as_a_whole_and_by_window(tmp_path):
    ledger = dp.Ledger.create(
        tmp_path / "b.db", eps=1, delta=1e-6, window="30d", per_scope={"eps": 0.5}, lifetime={"eps": 12}
    )
    with dp.Session(ledger=ledger, scope="n1") as s:
        FRAME.dp.count(eps=0.25, label="rows", request_id="r")
        FRAME.dp.count(eps=0.25, label="rows", request_id="r")
    text, plain = flat(str(s.statement())), str(s.statement())
    assert "at most 2.72 times" in text
    assert "the ledger, within the 30 days up to now: eps = 0.25 of eps = 1 has been used" in text
    assert "The scope 'n1': eps = 0.25 of eps = 0.5 has been used" in text
    assert "All windows together: eps = 0.25 of eps = 12 has been used" in text
    assert "within any 30 days" in text
    assert "not a budget for a lifetime" in text
    assert plain.count("an answer that was given and paid for before") == 1
    assert plain.index("\n2. ") < plain.index("an answer that was given")
    with dp.Session(eps=1) as other:
        pass
    assert "Over time" not in other.statement()
    ledger.close()


def test_a_statement_is_text_and_html_without_data():
    secret = 271_828
    frame = pl.DataFrame({"x": [float(secret)] * 400})
    with dp.Session(eps=1) as s:
        frame.dp.clip_sum("x", bounds=(0, 10**6), eps=0.001, label="<b>")
    page = s.statement()
    assert isinstance(page, str)
    assert "&lt;b&gt;" in page._repr_html_()
    assert "<b>" not in page._repr_html_()
    assert str(secret) not in page
    assert str(secret * 400) not in page.replace(",", "")
    assert max(map(len, stated(eps=1, delta=1e-6).splitlines())) <= 96
