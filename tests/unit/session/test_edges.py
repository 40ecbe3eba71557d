"""Edges of sessions and ledgers: attributes that are not there yet, huge numbers, text that no file holds."""

from __future__ import annotations

import datetime as dt
import inspect
from fractions import Fraction

import polars as pl
import pytest

import dpframe as dp
from dpframe.ledger import declaration
from dpframe.session import payer as sessions

FRAME = pl.DataFrame({"x": [1.0] * 100})
HUGE = 10**400
HALF = "a\ud800"
pytestmark = pytest.mark.usefixtures("quiet")


def closed(**policy) -> dp.Session:
    s = dp.Session(**policy)
    s.close()
    return s


def test_what_a_session_has_not_yet_is_no_attribute():
    s = closed(eps=1)
    assert not hasattr(s, "last")
    assert not hasattr(sessions._ambient, "remaining")
    assert "last" not in dict(inspect.getmembers(s))
    with pytest.raises(dp.InputError, match="Nothing has been released"):
        s.last  # noqa: B018
    FRAME.dp.count(eps=0.1, session=s)
    assert dict(inspect.getmembers(s))["last"] is s.last


ACCOUNTANTS = ("union", "sum", "zcdp", "rdp", "gdp")


@pytest.mark.parametrize(
    "policy",
    [{"rho": HUGE}, {"eps": HUGE}]
    + [{"eps": e, "delta": 1e-6, "accountant": a} for e in (800, 10**12, HUGE) for a in ACCOUNTANTS],
    ids=lambda p: ",".join(f"{k}={str(v)[:5]}" for k, v in p.items()),
)
def test_budgets_beyond_floats_can_be_read_asked_and_stated(policy):
    s = closed(**policy)
    gdp = policy.get("accountant") == "gdp"
    for _ in range(2):
        for read in (repr, str, dp.Session.statement, dp.Session.report, dp.Session._repr_html_):
            assert read(s) is not None
        for cost in (s.spent, s.remaining):
            assert "Cost(" in repr(cost)
            assert float(cost) >= 0
        how = {"rho": 1} if policy.get("accountant") in ("zcdp", "gdp") or "rho" in policy else {"eps": 1}
        FRAME.dp.count(**how, **({"mechanism": "gaussian"} if gdp else {}), session=s)
    assert s.spent.rho > 0
    assert s.remaining.eps == 0 if gdp else s.remaining.eps > 100


@pytest.mark.parametrize("window", ["999999w", "999999d", dt.timedelta(days=365_251), dt.timedelta.max])
def test_a_window_beyond_the_calendar_is_refused(tmp_path, window):
    with pytest.raises(dp.InputError, match="longer than a thousand years"):
        dp.Ledger.create(tmp_path / "b.db", eps=1, window=window)
    assert not (tmp_path / "b.db").exists()


@pytest.mark.parametrize("window", ["999999w", dt.timedelta.max, dt.timedelta(days=365_250)])
def test_a_ledger_that_0_1_0_made_with_such_a_window_works(tmp_path, monkeypatch, window):
    with monkeypatch.context() as m:
        m.setattr(declaration, "_LONGEST", dt.timedelta.max)
        ledger = dp.Ledger.create(tmp_path / "b.db", eps=1, window=window)
    with dp.Session(ledger=ledger) as s:
        n = FRAME.dp.count(eps=Fraction(1, 2), request_id="a")
        assert FRAME.dp.count(eps=Fraction(1, 2), request_id="a") == n
        FRAME.dp.count(eps=Fraction(1, 2))
        with pytest.raises(dp.BudgetExceeded):
            FRAME.dp.count(eps=Fraction(1, 2))
        assert "Over time" in s.statement()
    ledger.verify()
    ledger.close()


def test_half_characters_are_refused_before_the_charge(tmp_path):
    path = tmp_path / "b.db"
    with pytest.raises(dp.InputError, match="half a character"):
        dp.Ledger.create(tmp_path / f"{HALF}.db", eps=1)
    with pytest.raises(dp.InputError, match="half a character"):
        dp.Ledger.create(path, eps=1, unit=HALF)
    ledger = dp.Ledger.create(path, eps=9, per_scope={"eps": 9})
    with pytest.raises(dp.InputError, match="half a character"):
        dp.Session(ledger=ledger, scope=HALF)
    for s in (closed(eps=1), closed(ledger=ledger, scope="n")):
        with pytest.raises(dp.InputError, match=r"label=.*half a character"):
            FRAME.dp.count(eps=0.1, label=HALF, session=s)
        assert s.spent == 0
    with pytest.raises(dp.InputError, match=r"request_id=.*half a character"):
        FRAME.dp.count(eps=0.1, request_id=HALF, session=s)
    assert s.spent == 0
    ledger.close()


def test_an_account_with_half_characters_from_before_is_exported(tmp_path, monkeypatch):
    """Ledgers of 0.1.0 may hold them in labels and scopes."""
    monkeypatch.setattr("dpframe.session.charging.check_text", lambda *x: x[0])
    monkeypatch.setattr("dpframe.ledger.book.check_text", lambda *x: x[0])
    ledger = dp.Ledger.create(tmp_path / "b.db", eps=9, per_scope={"eps": 9})
    with dp.Session(ledger=ledger, scope=HALF):
        FRAME.dp.count(eps=0.1, label=HALF)
    assert ledger.export().select("scope", "label").rows() == [("a\\ud800", "a\\ud800")]
    ledger.verify()
    ledger.close()
