"""Sessions on a ledger: one durable budget, requests that are answered once, nothing lost in a crash."""

from __future__ import annotations

import contextlib
import logging
import os
import pathlib
import sys
import threading
import warnings
from fractions import Fraction

import pandas as pd
import polars as pl
import pytest
from ledger_tools import Clock, ForkServer
from sizes import AUDIT

import dpframe as dp
from conftest import as_kind, as_polars
from dpframe.engine.polars import PolarsSource
from dpframe.ledger.book import Ledger
from dpframe.release.payload import Payload, from_bytes, to_bytes

pytestmark = pytest.mark.usefixtures("quiet")

ROWS = pl.DataFrame({"g": ["a", "b"] * 500, "x": [1.0, 2.0] * 500, "user": list(range(1000))})


@pytest.fixture
def path(tmp_path):
    at = tmp_path / "budget.db"
    Ledger.create(at, eps=3, delta=1e-6).close()
    return at


def spent(path) -> Fraction:
    ledger = Ledger(path)
    try:
        budget, state = ledger.state()["total"]
        return budget.spent(state).eps
    finally:
        ledger.close()


def test_the_budget_outlives_the_session(path):
    for _ in range(3):
        with dp.Session(ledger=path) as s:
            ROWS.dp.count(eps=1)
    assert s.spent == 3
    assert s.remaining.eps == 0
    with dp.Session(ledger=path) as s:
        with pytest.raises(dp.BudgetExceeded, match="ledger's budget") as refused:
            ROWS.dp.count(eps=Fraction(1, 10**12))
        assert refused.value.component == "eps"
    assert len(s.ledger.entries()) == 3
    assert "ledger budget.db" in repr(s)


def test_a_ledger_says_what_is_spent_and_what_remains(tmp_path):
    ledger = Ledger.create(
        tmp_path / "l.db", eps=3, window="1d", lifetime={"eps": 2}, per_scope={"eps": 1}, unit="user"
    )
    with dp.Session(ledger=ledger, scope="a", max_rows=1) as s:
        assert (ledger.spent, ledger.remaining, s.remaining) == (0, 2, 1)
        ROWS.dp.count(eps=Fraction(1, 3))
        assert ledger.spent == s.spent == Fraction(1, 3)
        assert ledger.remaining == Fraction(5, 3)
        assert s.remaining == Fraction(2, 3)


def test_a_session_on_a_ledger_shows_what_is_spent_and_counts_releases(path):
    """A replay is no release; what others charged is spent."""
    with dp.Session(ledger=path):
        ROWS.dp.count(eps=0.5, request_id="n")
    with dp.Session(ledger=path) as s:
        assert repr(s).endswith(", spent eps=0.5, 0 releases here>")
        ROWS.dp.count(eps=0.5, request_id="n")
        assert repr(s).endswith(", spent eps=0.5, 0 releases here, 1 replayed>")
        ROWS.dp.count("x", eps=0.25)
        assert repr(s).endswith(", spent eps=0.75, 1 release here, 1 replayed>")
        ROWS.dp.count("g", eps=0.25)
        assert repr(s).endswith(", spent eps=1, 2 releases here, 1 replayed>")
    path.unlink()
    assert repr(s).endswith(", which can't be read, 2 releases here, 1 replayed>")


def test_opening_never_creates(tmp_path):
    with pytest.raises(dp.LedgerError):
        dp.Session(ledger=tmp_path / "nothing.db")
    assert not list(tmp_path.iterdir())


def test_what_is_typed_beside_a_ledger_must_match_it(path):
    with pytest.raises(dp.InputError, match="replace_one"):
        dp.Session(ledger=path, neighbors="replace_one")
    with pytest.raises(dp.InputError, match="user"):
        dp.Session(ledger=path, unit="user")
    with pytest.raises(dp.InputError, match="accountant"):
        dp.Session(ledger=path, accountant="gdp")
    with pytest.raises(dp.InputError, match="without scopes"):
        dp.Session(ledger=path, scope="monday")
    with pytest.raises(dp.InputError, match="scope="):
        dp.Session(eps=1, scope="monday")
    with pytest.raises(dp.InputError, match="split"):
        dp.Session(ledger=path).split(3)
    dp.Session(ledger=path, neighbors="add_remove").close()


def test_the_unit_is_the_ledgers(tmp_path):
    Ledger.create(tmp_path / "u.db", eps=3, unit="user", neighbors="replace_one").close()
    with dp.Session(ledger=tmp_path / "u.db", max_rows=2) as s:
        plan = ROWS.dp.plan.count(eps=1)
        assert (s.neighbors, plan.l1) == ("replace_one", 2)
        plan.release()
    assert s.spent == 1


def test_a_cap_of_ones_own_is_checked_with_the_ledger_and_neither_pays_alone(path):
    with dp.Session(ledger=path, eps=0.5) as s:
        assert s.remaining.eps == Fraction(1, 2)
        ROWS.dp.count(eps=0.3)
        with pytest.raises(dp.BudgetExceeded, match="eps does not suffice"):
            ROWS.dp.count(eps=0.3)
        assert s.remaining.eps == Fraction(1, 5)
    assert s.spent == 0.3
    with dp.Session(ledger=path, eps=10) as s, pytest.raises(dp.BudgetExceeded, match="ledger's budget"):
        ROWS.dp.count(eps=5)
    assert s._state.eps == 0
    assert spent(path) == Fraction(3, 10)


def test_scopes_have_budgets_of_their_own(tmp_path):
    Ledger.create(tmp_path / "s.db", eps=3, per_scope={"eps": 0.5}).close()
    with pytest.raises(dp.InputError, match="scope="):
        dp.Session(ledger=tmp_path / "s.db")
    for day in ("monday", "tuesday"):
        with dp.Session(ledger=tmp_path / "s.db", scope=day) as s:
            ROWS.dp.count(eps=0.4, request_id="n")
            assert s.remaining.eps == Fraction(1, 10)
            with pytest.raises(dp.BudgetExceeded, match="scope 'tuesday'" if day == "tuesday" else "monday"):
                ROWS.dp.count(eps=0.2)
            assert (s.scope, s.last.replayed) == (
                day,
                False,
            )  # the same id in another scope is another request
    assert s.spent == 0.8


# ---- requests ----


def test_a_request_is_charged_once_and_answered_alike(path, kind, caplog, tmp_path):
    frame = as_kind(kind, ROWS)
    asked = {
        "count": lambda f, **o: f.count(eps=0.1, **o),
        "mean": lambda f, **o: f.clip_mean("x", bounds=(0, 5), eps=0.1, ci=0.9, **o),
        "listed": lambda f, **o: f.groupby("g", keys=["b", "a", "c"]).dp_agg(
            n=dp.count(), t=dp.clip_sum("x", bounds=(0, 5)), eps=0.1, ci=0.9, **o
        ),
        "found": lambda f, **o: f.groupby("g").dp_agg(n=dp.count(), eps=0.5, delta=1e-8, **o),
        "keys": lambda f, **o: f.groupby("g").keys(eps=0.5, delta=1e-8, **o),
    }
    first, total = {}, 0
    for name, ask in asked.items():
        with dp.Session(ledger=path) as s:
            ask(frame.dp, request_id=name)
            first[name], total = s.last, s.spent
            assert not s.last.replayed
            s.last.write(tmp_path / f"{name}.csv")
    for name, ask in asked.items():
        with dp.Session(ledger=path) as s, caplog.at_level(logging.INFO, logger="dpframe"):
            caplog.clear()
            ask(frame.dp, request_id=name)
            again = s.last
            assert (again.replayed, again.time, again.head) == (True, first[name].time, first[name].head)
            assert str(again.released_at)[:19] in caplog.text
            assert "stored answer" in repr(again)
            assert again.facts == first[name].facts
            again.write(tmp_path / "again.csv")
            for end in ("", ".json"):
                old, new = tmp_path / f"{name}.csv{end}", tmp_path / f"again.csv{end}"
                assert old.read_bytes() == new.read_bytes()
            if not again._scalar:
                assert as_polars(again.value).equals(as_polars(first[name].value))
            report = s.report()
            assert report["replayed"].to_list() == [True]
            assert report["eps"].to_list() == [0.0]
            assert s.spent == total


def test_a_request_for_another_question_is_refused(path):
    with dp.Session(ledger=path) as s:
        ROWS.dp.count(eps=0.1, request_id="q")
        for ask in (
            lambda: ROWS.dp.count(eps=0.2, request_id="q"),
            lambda: ROWS.dp.count("x", eps=0.1, request_id="q"),
            lambda: ROWS.dp.count(eps=0.1, nonnegative=True, request_id="q"),
            lambda: ROWS.dp.groupby("g", keys=["a"]).count(eps=0.1, request_id="q"),
        ):
            with pytest.raises(dp.InputError, match="another question"):
                ask()
        ROWS.dp.groupby("g", keys=["a"]).count(eps=0.1, request_id="keyed")
        with pytest.raises(dp.InputError, match="another question"):
            ROWS.dp.groupby("g", keys=["b"]).count(eps=0.1, request_id="keyed")
    assert s.spent == 0.2


@pytest.mark.parametrize("eps", [1, 3], ids=str)
def test_a_stored_answer_is_not_read_on_another_grid(path, eps):
    """The same words about a column that became float have other steps: the stored answer is read on its own."""
    whole = ROWS.with_columns(pl.col("x").cast(pl.Int64))
    with dp.Session(ledger=path) as s:
        first = whole.dp.clip_sum("x", bounds=(0, 10), eps=eps, request_id="x")
        for other in (ROWS, as_kind("pandas", ROWS)):
            assert other.dp.clip_sum("x", bounds=(0, 10), eps=eps, request_id="x") == first
        again = as_kind("pandas", whole).dp.clip_sum("x", bounds=(0, 10), eps=eps, request_id="x")
        assert again == first
        assert s.spent == eps


def test_a_request_needs_a_ledger_and_a_name(path):
    with dp.Session(eps=1) as s, pytest.raises(dp.InputError, match="request_id="):
        ROWS.dp.count(eps=0.1, request_id="q")
    assert s.spent == 0
    with dp.Session(ledger=path) as s:
        for wrong in ("", 3, b"q"):
            with pytest.raises(dp.InputError, match="request_id"):
                ROWS.dp.count(eps=0.1, request_id=wrong)
    assert s.spent == 0


def test_a_replay_is_free_when_nothing_is_left(path):
    with dp.Session(ledger=path, eps=1) as s:
        n = ROWS.dp.count(eps=1, request_id="q")
        with pytest.raises(dp.BudgetExceeded):
            ROWS.dp.count(eps=0.1)
        assert ROWS.dp.count(eps=1, request_id="q") == n
    assert s.spent == 1


@pytest.mark.parametrize(("error", "spent"), [(RuntimeError, 2), (KeyboardInterrupt, 1), (MemoryError, 2)])
def test_a_failure_keeps_the_charge_and_the_same_request_may_try_again(path, monkeypatch, error, spent):
    def fails(*args):
        raise error("42")

    with dp.Session(ledger=path) as s:
        with monkeypatch.context() as m:
            m.setattr(PolarsSource, "aggregate", fails)
            with pytest.raises(error if error is KeyboardInterrupt else dp.ReleaseFailed) as failed:
                ROWS.dp.count(eps=1, request_id="q")
        assert "42" not in str(failed.value)
        assert s.spent == 1
        assert 900 < ROWS.dp.count(eps=1, request_id="q") < 1100
        assert not s.last.replayed
        assert s.spent == spent
        assert ROWS.dp.count(eps=1, request_id="q") == s.releases[0].value
        assert s.spent == spent


def test_an_answer_that_can_not_be_stored_is_not_handed_out(path, monkeypatch):
    def full(*args):
        raise dp.LedgerError("The disk is full.")

    with dp.Session(ledger=path) as s:
        with monkeypatch.context() as m:
            m.setattr(Ledger, "store", full)
            with pytest.raises(dp.LedgerError, match="full"):
                ROWS.dp.count(eps=1, request_id="q")
        assert (s.releases, s.spent) == ([], 1)
        ROWS.dp.count(eps=1, request_id="q")
        assert s.spent == 1


@pytest.mark.parametrize("request_id", ["q", None])
def test_an_answer_that_was_dropped_is_nowhere_in_the_traceback(path, monkeypatch, request_id):
    """The request is drawn anew under the same charge: two noisy answers would be one too many."""
    drawn = []

    def full(self, ticket, payload):
        drawn.append(payload)
        raise dp.LedgerError("The disk is full.")

    monkeypatch.setattr(Ledger, "store", full)
    with dp.Session(ledger=path), pytest.raises(dp.LedgerError, match="full") as failed:
        ROWS.dp.clip_sum("x", bounds=(0, 10), eps=1, request_id=request_id)
    noisy = int(from_bytes(drawn.pop()).noisy[0][0])
    error = failed.value
    assert error.__context__ is None
    at = error.__traceback__.tb_next
    held = []
    while at is not None:
        held += at.tb_frame.f_locals.values()
        at = at.tb_next
    assert held
    assert not any(str(noisy) in repr(x) for x in held)


# ---- nesting, threads, forks ----


def test_sessions_inside_and_outside_pay_together(path, tmp_path):
    Ledger.create(tmp_path / "other.db", eps=1, delta=1e-6).close()
    with dp.Session(eps=2, delta=1e-6) as outer, dp.Session(ledger=path) as s:
        ROWS.dp.count(eps=0.5)
        with dp.Session(ledger=tmp_path / "other.db") as t, dp.Session(eps=1) as inner:
            ROWS.dp.count(eps=0.5, request_id="q")
            again = ROWS.dp.count(eps=0.5, request_id="q")
        assert again == inner.releases[0].value
    assert (float(outer.spent), float(s.spent), float(t.spent), float(inner.spent)) == (1, 1, 0.5, 0.5)
    with dp.Session(ledger=path) as s, dp.Session(ledger=tmp_path / "other.db") as t:
        with pytest.raises(dp.BudgetExceeded):
            ROWS.dp.count(eps=0.75)  # fits the outer ledger, not the inner one
        assert (float(s.spent), float(t.spent)) == (1, 0.5)
    with dp.Session(eps=0.1) as small, dp.Session(ledger=path) as s, pytest.raises(dp.BudgetExceeded):
        ROWS.dp.count(eps=0.75)  # fits the ledger, not the session outside
    assert (float(small.spent), float(s.spent)) == (0, 1)


def test_a_session_inside_another_on_the_same_ledger_pays_once(path, tmp_path):
    with dp.Session(ledger=path), dp.Session(ledger=path, eps=1) as s:
        ROWS.dp.count(eps=0.5)
    assert s.spent == 0.5
    Ledger.create(tmp_path / "w.db", eps=3, window="30d").close()
    with (
        dp.Session(ledger=tmp_path / "w.db", scope="a"),
        dp.Session(ledger=tmp_path / "w.db", scope="b") as s,
    ):
        with pytest.raises(dp.InputError, match="same scope"):
            ROWS.dp.count(eps=0.5)
        assert s.spent == 0


def in_threads(n, work):
    out, gate = [], threading.Barrier(n)

    def one(i):
        gate.wait()
        try:
            out.append(work(i))
        except dp.DPError as e:
            out.append(e)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return out


def test_threads_share_the_budget_to_the_last_bit(path):
    s = dp.Session(ledger=path)
    out = in_threads(24, lambda i: ROWS.dp.count(eps=0.2, session=s))
    assert sum(isinstance(x, dp.BudgetExceeded) for x in out) == 9
    assert sum(isinstance(x, int) for x in out) == 15
    assert s.spent == 3


def test_two_threads_that_ask_one_request_get_one_answer(path):
    s = dp.Session(ledger=path)
    out = in_threads(6, lambda i: ROWS.dp.count(eps=0.5, session=s, request_id="q"))
    assert len({int(x) for x in out}) == 1
    assert s.spent == 0.5


def charging_on_both_sides_of_a_fork(path):
    """Parent, child and parent again; the parent asks pandas for what needs no thread of Polars."""
    rows = pd.DataFrame({"x": [1.0, 2.0] * 500})
    with dp.Session(ledger=path) as s, dp.Session(ledger=path, eps=1) as capped:
        rows.dp.count(eps=0.5)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                ROWS.dp.count(eps=0.5, session=s)
                try:
                    ROWS.dp.count(eps=0.1, session=capped)
                except dp.NoSession:
                    code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert s.spent == 1
        rows.dp.count(eps=0.5)
        assert s.spent == 1.5


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a forked child is answered on Linux only")
def test_a_forked_child_charges_the_same_ledger(path, tmp_path):
    """In a process in which no engine has worked: the child of another is refused."""
    with contextlib.closing(ForkServer(__name__, tmp_path)) as server:
        trial = server.start("charging_on_both_sides_of_a_fork", str(path))
        _, wrong = trial.communicate()
    assert trial.returncode == 0, wrong
    assert spent(path) == 1.5


def test_a_partition_is_charged_to_the_ledger(path):
    with dp.Session(ledger=path) as s:
        for part in ROWS.dp.partition_by("g", keys=["a", "b"], eps=0.5).values():
            part.dp.count(eps=0.5)
    assert s.spent == 0.5


def test_parts_answer_only_while_the_window_holds_their_charge(tmp_path, monkeypatch):
    clock = Clock(monkeypatch)
    Ledger.create(tmp_path / "w.db", eps=1, window="1h").close()
    with dp.Session(ledger=tmp_path / "w.db") as s:
        parts = ROWS.dp.partition_by("g", keys=["a", "b"], eps=1)
        inner = parts["b"].dp.partition_by("user", keys=[1, 3], eps=0.5)
        clock.move(3599)
        parts["a"].dp.count(eps=0.5)
        clock.move(1)
        ROWS.dp.count(eps=1)  # the window is empty again
        for part in (parts["a"], *inner.values()):
            before = part.session.spent
            with pytest.raises(dp.LedgerError, match="1 hour after its charge"):
                part.dp.count(eps=0.5)
            assert part.session.spent == before
        assert s.spent == 1


def test_a_part_that_answers_too_late_is_not_heard(tmp_path, monkeypatch):
    clock = Clock(monkeypatch)
    Ledger.create(tmp_path / "w.db", eps=1, window="1h").close()
    aggregate = PolarsSource.aggregate

    def slow(*args):
        clock.move(3600)
        return aggregate(*args)

    with dp.Session(ledger=tmp_path / "w.db"):
        part = ROWS.dp.partition_by("g", keys=["a", "b"], eps=1)["a"]
        monkeypatch.setattr(PolarsSource, "aggregate", slow)
        with pytest.raises(dp.LedgerError, match="1 hour after its charge"):
            part.dp.count(eps=1)
        assert part.session.releases == []


# ---- nothing true is kept; nothing is lost ----


def test_the_file_holds_no_true_value(path):
    canary = 7_318_294_651
    frame = pl.DataFrame({"x": [float(canary), 0.0]})
    with dp.Session(ledger=path):
        frame.dp.clip_sum("x", bounds=(0, 2**40), eps=0.001)
        with pytest.raises(dp.LedgerError):
            from_bytes(b"something else")
    raw = b"".join(f.read_bytes() for f in path.parent.rglob("*") if f.is_file())
    for form in (str(canary).encode(), canary.to_bytes(8, "little"), str(float(canary)).encode()):
        assert form not in raw


def test_payloads_come_back_as_they_were():
    noisy = [pl.Series([1, -(2**62), 5]).to_numpy(), pl.Series([], dtype=pl.Int64).to_numpy()]
    for found in (None, pl.DataFrame({"k0": ["a", None], "k1": [1.5, 2.5]})):
        back = from_bytes(to_bytes(Payload(noisy, found, "d")))
        assert back.draw == "d"
        assert [x.tolist() for x in back.noisy] == [x.tolist() for x in noisy]
        assert back.found is None if found is None else back.found.equals(found)


def dying_at(k: int, path: str) -> None:
    """Ask one question, and end at the k-th line of the package that it runs."""
    left = [k]
    here = os.path.dirname(dp.__file__)

    def trace(frame, event, arg):
        if not frame.f_code.co_filename.startswith(here):
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                os._exit(7)
        return trace

    frame = pl.DataFrame({"x": [1.0, 2.0] * 500})
    with warnings.catch_warnings(), dp.Session(ledger=path) as s:
        warnings.simplefilter("ignore")
        sys.settrace(trace)
        n = frame.dp.count(eps=0.125, request_id="q", session=s)
        sys.settrace(None)
    print(int(n), k - left[0])


def test_death_at_any_line_loses_no_charge_and_a_retry_pays_once(tmp_path):
    """The child dies at its k-th line; then the same request is asked again."""

    def child(k, path):
        died = server.start("dying_at", k, str(path))
        said, wrong = died.communicate()
        return died.returncode, said, wrong

    server = ForkServer(__name__, tmp_path)
    with contextlib.closing(server):
        probe = tmp_path / "probe.db"
        Ledger.create(probe, eps=1).close()
        code, said, wrong = child(10**9, probe)
        assert code == 0, wrong
        lines = int(said.split()[1])
        assert lines > 300
        for k in range(1, lines + 1, 1 if AUDIT else lines // 8):
            path = tmp_path / f"{k}.db"
            Ledger.create(path, eps=1).close()
            assert child(k, path)[:2] == (7, "")
            assert spent(path) in (0, Fraction(1, 8))
            with dp.Session(ledger=path) as s:
                n = pl.DataFrame({"x": [1.0, 2.0] * 500}).dp.count(eps=0.125, request_id="q")
                assert s.spent == 0.125
                assert pl.DataFrame({"x": [1.0, 2.0] * 500}).dp.count(eps=0.125, request_id="q") == n
                s.ledger.verify()
                s.ledger.close()
            for file in pathlib.Path(tmp_path).glob(f"{k}.db*"):
                if file.is_file():
                    file.unlink()
