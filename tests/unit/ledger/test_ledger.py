"""A ledger in one process: what is declared, granted, refused; scopes."""

from __future__ import annotations

import datetime as dt
import os
from fractions import Fraction

import pytest
from ledger_tools import claim, laplace, spent

import dpframe as dp
from dpframe.accounting.events import Event
from dpframe.accounting.filter import Budget, State
from dpframe.accounting.policy import Policy

# ---- declaring ----


def test_a_ledger_remembers_what_was_declared(path):
    dp.Ledger.create(
        path,
        eps=3,
        delta=1e-6,
        neighbors="replace_one",
        unit=["user_id", "day"],
        per_scope={"eps": 0.1},
        window="30d",
        lifetime={"rho": 0.5, "delta_calls": 1e-7},
    ).close()
    ledger = dp.Ledger(path)
    assert ledger.policy == Policy("replace_one", ("user_id", "day"))
    assert ledger.budget == Budget(Fraction(3), Fraction(1, 10**6), Fraction(1, 2 * 10**6))
    assert ledger.per_scope == Budget(Fraction(1, 10))
    assert ledger.lifetime == Budget(None, Fraction(1, 10**7), Fraction(1, 10**7), Fraction(1, 2))
    assert ledger.window == dt.timedelta(days=30)
    assert ledger.accountant == "union"
    assert ledger.path == os.path.realpath(path)
    assert ledger.state("a") == {
        "total": (ledger.budget, State()),
        "scope": (ledger.per_scope, State()),
        "lifetime": (ledger.lifetime, State()),
    }


def test_a_plain_ledger_has_one_budget(path):
    ledger = dp.Ledger.create(path, rho=0.1)
    assert (ledger.per_scope, ledger.lifetime, ledger.window) == (None, None, None)
    assert list(ledger.state()) == ["total"]
    assert ledger.head.sequence == 0


def test_create_refuses_what_is_there(path):
    dp.Ledger.create(path, eps=1).close()
    with pytest.raises(dp.InputError, match=r"there already.*Hint"):
        dp.Ledger.create(path, eps=1)
    path.unlink()
    with pytest.raises(dp.InputError, match=r"anchor is there already"):  # a deleted ledger is no fresh start
        dp.Ledger.create(path, eps=1)


def test_opening_never_creates(path):
    with pytest.raises(dp.LedgerError, match="does not exist"):
        dp.Ledger(path)
    assert os.listdir(path.parent) == []


def test_a_ledger_that_can_not_be_made_leaves_nothing(tmp_path):
    with pytest.raises(dp.LedgerError, match="can't be made"):
        dp.Ledger.create(tmp_path / "b.db", eps=1, anchor=tmp_path / "missing" / "anchor")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({}, "eps= or rho="),
        ({"eps": 1, "rho": 1}, "eps= or rho="),
        ({"eps": 0}, "eps=0"),
        ({"eps": float("nan")}, "eps=nan"),
        ({"eps": 1, "delta": 1}, "delta=1"),
        ({"eps": 1, "neighbors": "swap"}, "neighbors='swap'"),
        ({"eps": 1, "accountant": "pdl"}, "accountant='pdl'"),
        ({"eps": 1, "per_scope": 0.1}, "per_scope=0.1"),
        ({"eps": 1, "per_scope": {}}, "per_scope={}"),
        ({"eps": 1, "per_scope": {"epsilon": 1}}, "'epsilon'"),
        ({"eps": 1, "per_scope": {"eps": 1, "rho": 1}}, "per_scope="),
        ({"eps": 1, "per_scope": {"eps": -1}}, "eps=-1"),
        ({"eps": 1, "lifetime": {"eps": 9}}, "window="),
        ({"eps": 1, "window": "30"}, "window='30'"),
        ({"eps": 1, "window": "a month"}, "window='a month'"),
        ({"eps": 1, "window": "0d"}, "window='0d'"),
        ({"eps": 1, "window": 30}, "window=30"),
        ({"eps": 1, "window": dt.timedelta(-1)}, "window="),
    ],
    ids=str,
)
def test_a_wrong_declaration_is_refused_and_makes_nothing(path, wrong, says):
    with pytest.raises(dp.InputError, match=r"Hint:|There are") as e:
        dp.Ledger.create(path, **wrong)
    assert says in str(e.value)
    assert os.listdir(path.parent) == []


@pytest.mark.parametrize(
    ("typed", "means"),
    [
        ("45s", dt.timedelta(seconds=45)),
        ("90m", dt.timedelta(minutes=90)),
        ("12h", dt.timedelta(hours=12)),
        ("30d", dt.timedelta(days=30)),
        ("2w", dt.timedelta(weeks=2)),
        (dt.timedelta(hours=1.5), dt.timedelta(minutes=90)),
    ],
    ids=str,
)
def test_windows_are_text_or_timedelta(path, typed, means):
    assert dp.Ledger.create(path, eps=1, window=typed).window == means


@pytest.mark.parametrize("wrong", [1, None, b"x", ...], ids=repr)
def test_a_path_is_a_path(wrong):
    with pytest.raises(TypeError, match="path"):
        dp.Ledger(wrong)
    with pytest.raises(TypeError, match="path"):
        dp.Ledger.create(wrong, eps=1)


def test_a_path_means_the_same_file_wherever_the_process_goes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = dp.Ledger.create("b.db", eps=1)
    os.mkdir("elsewhere")
    os.symlink(tmp_path / "b.db", tmp_path / "elsewhere" / "link.db")
    monkeypatch.chdir(tmp_path / "elsewhere")
    ledger.reserve(claim(0.25))
    assert spent(dp.Ledger("link.db")) == Fraction(1, 4)


# ---- granting ----


def test_sums_are_exact(path):
    """Ten tenths fit in 1, and nothing more: 0.1 + ... is not added up in floats."""
    ledger = dp.Ledger.create(path, eps=1)
    for _ in range(10):
        ledger.reserve(claim(0.1))
    with pytest.raises(dp.BudgetExceeded):
        ledger.reserve(claim("0.000000000001"))
    assert spent(ledger) == spent(dp.Ledger(path)) == 1


def test_a_refusal_names_the_budget_and_changes_nothing(path):
    ledger = dp.Ledger.create(path, eps=1, per_scope={"eps": 0.5})
    ledger.reserve(claim(0.4), "monday")
    before = ledger.head
    with pytest.raises(dp.BudgetExceeded, match=r"The budget of scope 'monday': eps does not suffice") as e:
        ledger.reserve(claim(0.2, label="arrivals"), "monday")
    assert (e.value.requested, e.value.remaining) == (0.2, 0.1)
    assert (e.value.component, e.value.label) == ("eps", "arrivals")
    assert "session" not in str(e.value)
    ledger.reserve(claim(0.4), "tuesday")
    with pytest.raises(dp.BudgetExceeded, match=r"The ledger's budget: eps does not suffice"):
        ledger.reserve(claim(0.3), "wednesday")
    assert ledger.head.sequence == before.sequence + 1
    assert spent(ledger) == Fraction(4, 5)


def test_delta_and_rho_run_out_too(path):
    ledger = dp.Ledger.create(path, rho=0.5, delta_calls=1e-6)
    with pytest.raises(dp.BudgetExceeded, match="rho does not suffice") as e:
        ledger.reserve(claim(event=laplace(2)))
    assert e.value.component == "rho"
    big = Event(Fraction(1, 10), Fraction(1, 10**5), Fraction(1, 200))
    with pytest.raises(dp.BudgetExceeded, match="delta does not suffice") as e:
        ledger.reserve(claim(event=big))
    assert e.value.component == "delta"


def test_a_gaussian_event_is_kept_in_the_form_in_which_it_was_granted(path):
    """While delta lasts it has eps; afterwards it is charged by rho, and epsilons can't be added up any more."""
    ledger = dp.Ledger.create(path, eps=3, delta=1e-6)
    event = Event(Fraction(1, 10), Fraction(3, 10**7), Fraction(1, 1000), Fraction(0))
    ledger.reserve(claim(event=event))
    ledger.reserve(claim(event=event, label="second"))
    again = dp.Ledger(path)
    assert [(e.cost.eps, e.cost.delta) for e in again.entries()] == [
        (Fraction(1, 10), Fraction(3, 10**7)),
        (None, 0),
    ]
    _, state = again.state()["total"]
    assert state == State(None, Fraction(3, 10**7), Fraction(1, 500), "second")


def test_what_is_charged_stays_charged_without_a_release(path):
    ledger = dp.Ledger.create(path, eps=1)
    ticket = ledger.reserve(claim(0.25, request_id="a"))
    ledger.fail(ticket)
    assert spent(ledger) == spent(dp.Ledger(path)) == Fraction(1, 4)


def test_an_exception_in_the_block_takes_back_what_was_not_committed(path):
    ledger = dp.Ledger.create(path, eps=1)
    with pytest.raises(ZeroDivisionError), ledger.charging() as t:  # noqa: PT012
        t.reserve(claim(0.25))
        1 / 0  # noqa: B018
    assert spent(ledger) == 0
    assert ledger.head.sequence == 0
    ledger.reserve(claim(1))
    assert spent(ledger) == 1


def test_two_ledgers_are_charged_both_or_not_at_all(tmp_path):
    rich = dp.Ledger.create(tmp_path / "a.db", eps=10)
    poor = dp.Ledger.create(tmp_path / "b.db", eps=0.5)
    with rich.charging() as a, poor.charging() as b:
        a.reserve(claim(0.5))
        b.reserve(claim(0.5))
    with pytest.raises(dp.BudgetExceeded), rich.charging() as a, poor.charging() as b:  # noqa: PT012
        a.reserve(claim(0.5))
        b.reserve(claim(0.5))
    assert (spent(rich), spent(poor)) == (Fraction(1, 2), Fraction(1, 2))


def test_several_charges_in_one_step_are_added_up(path):
    ledger = dp.Ledger.create(path, eps=1)
    with pytest.raises(dp.BudgetExceeded), ledger.charging() as t:  # noqa: PT012
        t.reserve(claim(0.6))
        t.reserve(claim(0.6))
    assert spent(ledger) == 0
    with ledger.charging() as t:
        first, second = t.reserve(claim(0.5)), t.reserve(claim(0.5))
    assert (first.sequence, second.sequence) == (1, 2)
    assert spent(ledger) == 1


def test_a_charge_that_is_over_grants_nothing(path):
    ledger = dp.Ledger.create(path, eps=1)
    with ledger.charging() as t:
        pass
    with pytest.raises(dp.LedgerError, match="over"):
        t.reserve(claim())


def test_a_ledger_in_the_middle_of_a_charge_says_so_instead_of_waiting_for_itself(path):
    ledger, same = dp.Ledger.create(path, eps=1), dp.Ledger(path)
    with ledger.charging():
        for other in (ledger, same):
            with pytest.raises(dp.LedgerError, match="in the middle of a charge"):
                other.reserve(claim())
        with pytest.raises(dp.LedgerError, match="in the middle of a charge"):
            ledger.state()
    ledger.reserve(claim())


def test_another_policy_is_refused(path):
    ledger = dp.Ledger.create(path, eps=1, unit="user_id")
    with pytest.raises(dp.InputError, match=r"row.*user_id"):
        ledger.reserve(claim())
    ledger.reserve(claim(policy=Policy("add_remove", ("user_id",))))


@pytest.mark.parametrize("accountant", ["union", "sum", "zcdp", "rdp", "gdp"])
def test_every_accountant_is_kept_and_adds_up_again(path, accountant):
    ledger = dp.Ledger.create(path, eps=3, delta=1e-6, accountant=accountant)
    event = Event(Fraction(1, 10), Fraction(1, 10**8), Fraction(1, 1000), Fraction(0), kind="gaussian")
    ledger.reserve(claim(event=event))
    if accountant == "gdp":
        with pytest.raises(dp.BudgetExceeded, match="The ledger's budget: The accountant 'gdp'"):
            ledger.reserve(claim(event=laplace(0.1)))
    else:
        ledger.reserve(claim(event=laplace(0.1)))
    again = dp.Ledger(path)
    assert again.accountant == accountant
    assert again.budget == ledger.budget
    assert again.state() == ledger.state()
    assert again.entries() == ledger.entries()
    again.verify()


# ---- scopes ----


def test_scopes_are_asked_for_where_they_were_declared(tmp_path):
    plain = dp.Ledger.create(tmp_path / "a.db", eps=1)
    plain.check_scope(None)
    with pytest.raises(dp.InputError, match=r"without scopes.*per_scope="):
        plain.check_scope("x")
    scoped = dp.Ledger.create(tmp_path / "b.db", eps=1, per_scope={"eps": 0.1})
    scoped.check_scope("x")
    with pytest.raises(dp.InputError, match=r"budget for each scope.*scope="):
        scoped.check_scope(None)
    window = dp.Ledger.create(tmp_path / "c.db", eps=1, window="1d")
    window.check_scope(None)
    window.check_scope("x")
    for wrong in (1, b"x", "", dt.date(2026, 1, 1)):
        with pytest.raises(dp.InputError, match="scope="):
            scoped.check_scope(wrong)
        with pytest.raises(dp.InputError, match="scope="), scoped.charging(wrong):
            pass


def test_every_scope_has_its_budget_and_all_share_the_total(path):
    ledger = dp.Ledger.create(path, eps=1, per_scope={"eps": 0.4})
    for scope in ("a", "b"):
        ledger.reserve(claim(0.4), scope)
        with pytest.raises(dp.BudgetExceeded, match=f"scope '{scope}'"):
            ledger.reserve(claim(0.1), scope)
    assert spent(ledger, "a", "scope") == spent(ledger, "b", "scope") == Fraction(2, 5)
    assert spent(ledger, "new", "scope") == 0
    assert [e.scope for e in ledger.entries()] == ["a", "b"]
    assert [e.scope for e in ledger.entries("b")] == ["b"]
