"""Sessions: who pays, in one step, and sessions inside sessions."""

from __future__ import annotations

import contextvars
import gc
import threading
import warnings
from fractions import Fraction

import polars as pl
import pytest

import dpframe as dp
from dpframe.session import payer as sessions

DF = pl.DataFrame({"x": [1.0, 2.0, 3.0], "g": ["a", "b", "a"], "s": ["u", "v", "w"]})

quiet = pytest.mark.usefixtures("quiet")


# ---- who pays ----


@quiet
def test_a_with_block_pays():
    with dp.Session(eps=1) as s:
        DF.dp.count(eps=0.1)
    assert s.spent == 0.1


@quiet
def test_a_session_left_on_the_table_stops_every_query():
    """H2."""
    ambient = sessions._ambient._charges
    s = dp.Session(eps=1)
    with pytest.raises(dp.NoSession) as e:
        DF.dp.count(eps=0.1)
    assert "with s:" in str(e.value)
    assert "s.use()" in str(e.value)
    assert s.spent == 0
    assert sessions._ambient._charges == ambient
    s.use()
    DF.dp.count(eps=0.1)
    assert s.spent == 0.1
    s.close()
    DF.dp.count(eps=0.1)
    assert s.spent == 0.1
    assert sessions._ambient._charges == ambient + 1


def test_the_ambient_session_says_so_once(monkeypatch):
    monkeypatch.setattr(sessions, "_ambient", sessions._Ambient())
    with pytest.warns(dp.DPWarning, match="nothing limits the total"):
        DF.dp.count(eps=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DF.dp.count(eps=0.1)
    assert sessions._ambient.spent == 0.2
    with pytest.raises(dp.InputError, match="limit"):
        sessions._ambient.remaining  # noqa: B018


@quiet
@pytest.mark.parametrize(("value", "refused"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_a_required_session_forbids_the_ambient_one(monkeypatch, value, refused):
    monkeypatch.setenv("DPFRAME_REQUIRE_SESSION", value)
    if refused:
        with pytest.raises(dp.NoSession, match="DPFRAME_REQUIRE_SESSION"):
            DF.dp.count(eps=0.1)
        with dp.Session(eps=1) as s:
            DF.dp.count(eps=0.1)
        assert s.spent == 0.1
    else:
        DF.dp.count(eps=0.1)


@quiet
def test_an_open_session_elsewhere_blocks_the_ambient_one_until_it_is_closed():
    with dp.Session(eps=1) as first:
        forgotten = dp.Session(eps=1)
        DF.dp.count(eps=0.1)  # first is in use: no doubt who pays
    assert first.spent == 0.1
    with pytest.raises(dp.NoSession):
        DF.dp.count(eps=0.1)
    forgotten.close()
    DF.dp.count(eps=0.1)


@quiet
def test_a_session_that_is_gone_blocks_nothing():
    s = dp.Session(eps=1)
    del s
    gc.collect()
    DF.dp.count(eps=0.1)


@quiet
def test_an_explicit_session_pays_alone():
    a, b = dp.Session(eps=1), dp.Session(eps=1)
    with a:
        DF.dp.count(eps=0.1, session=b)
    assert (a.spent, b.spent) == (0, 0.1)


@pytest.mark.parametrize("wrong", [1, "s", ..., dp.Session], ids=repr)
def test_session_takes_a_session(wrong):
    with pytest.raises(TypeError, match="session="):
        DF.dp.count(eps=0.1, session=wrong)


@quiet
def test_use_replaces_and_does_not_close():
    a, b = dp.Session(eps=1).use(), dp.Session(eps=1)
    assert b.use() is b
    DF.dp.count(eps=0.1)
    assert (a.spent, b.spent) == (0, 0.1)
    b.close()
    with pytest.raises(dp.NoSession):  # a is open and not in use
        DF.dp.count(eps=0.1)
    a.use()
    a.use()
    DF.dp.count(eps=0.1)
    assert a.spent == 0.1
    a.close()
    a.close()


@quiet
def test_a_task_that_began_inside_others_still_pays_them_when_the_session_was_entered_alone_since():
    outer, inner = dp.Session(eps=1), dp.Session(eps=2)
    with outer, inner:
        task = contextvars.copy_context()
    with inner:
        DF.dp.count(eps=0.25)
    task.run(lambda: DF.dp.count(eps=0.5))
    assert (outer.spent, inner.spent) == (0.5, 0.75)


def test_the_same_session_inside_itself_pays_once():
    with dp.Session(eps=1) as s:
        with s:
            DF.dp.count(eps=0.1)
        DF.dp.count(eps=0.1)
    assert s.spent == 0.2


# ---- sessions inside sessions ----


@quiet
def test_an_inner_session_charges_both():
    with dp.Session(eps=1) as outer, dp.Session(eps=0.5) as inner:
        DF.dp.count(eps=0.2)
        assert (outer.spent, inner.spent) == (0.2, 0.2)
        assert outer.last is inner.last


@quiet
@pytest.mark.parametrize("outer_eps", [1, 0.3])
@pytest.mark.parametrize("inner_eps", [1, 0.3])
def test_both_are_charged_or_neither(outer_eps, inner_eps):
    with dp.Session(eps=outer_eps) as outer, dp.Session(eps=inner_eps) as inner:
        for _ in range(5):
            try:
                DF.dp.count(eps=0.2)
            except dp.BudgetExceeded:
                break
        granted = Fraction(min(outer_eps * 5, inner_eps * 5).__floor__(), 5)
        assert (outer.spent.eps, inner.spent.eps) == (granted, granted)
        assert outer.report().height == inner.report().height


@quiet
def test_an_inner_session_needs_the_same_relation():
    with dp.Session(eps=1), pytest.raises(dp.InputError, match="relation"):
        dp.Session(eps=1, neighbors="replace_one").__enter__()


@quiet
def test_a_plan_is_released_under_its_own_relation_only():
    with dp.Session(eps=1):
        bound = DF.dp.plan.count(eps=0.1)
    with dp.Session(eps=1, neighbors="replace_one") as s:
        with pytest.raises(dp.InputError, match="plan"):
            bound.release()
        assert s.spent == 0


@quiet
def test_closing_an_inner_session_does_not_free_its_calls_of_the_outer_one():
    """After inner.close() inside its own block a call is refused or charged to outer; never to neither."""
    with dp.Session(eps=1) as outer, dp.Session(eps=1) as inner:
        inner.close()
        try:
            DF.dp.count(eps=0.1)
        except dp.NoSession:
            assert outer.spent == inner.spent == 0
        else:
            assert outer.spent == 0.1


@quiet
def test_two_threads_may_enter_one_session():
    """The block of one thread ends while the other's goes on; neither end may fail or close the session."""
    s, errors = dp.Session(eps=1), []
    first_in, second_in, first_out = threading.Event(), threading.Event(), threading.Event()

    def first():
        try:
            with s:
                first_in.set()
                second_in.wait(200)
                DF.dp.count(eps=0.1)
        except Exception as e:
            errors.append(e)
        first_out.set()

    def second():
        first_in.wait(200)
        try:
            with s:
                second_in.set()
                first_out.wait(200)
                DF.dp.count(eps=0.1)
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=f) for f in (first, second)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert s.spent == 0.2


@quiet
def test_a_task_that_outlives_the_inner_session_still_pays_the_outer_one():
    """A context copied inside both sessions is inside both, also after the inner block has ended."""
    with dp.Session(eps=1) as outer:
        with dp.Session(eps=5) as inner:
            context = contextvars.copy_context()
        context.run(lambda: DF.dp.count(eps=0.1))
        assert outer.spent == inner.spent == 0.1


@quiet
def test_parts_of_a_session_pay_what_it_stood_in():
    with dp.Session(eps=1) as outer, dp.Session(eps=5) as inner:
        parts = inner.split(2)
        DF.dp.count(eps=0.1, session=parts[0])
        assert outer.spent == parts[0].spent == 0.1


@quiet
def test_the_session_of_a_part_pays_for_nothing_else():
    with dp.Session(eps=5):
        parts = DF.dp.partition_by("g", keys=["a", "b"], eps=1)
        with pytest.raises(dp.InputError, match="part"):
            DF.dp.count(eps=1, session=parts["a"].session)
        with pytest.raises(dp.InputError, match="part"):
            parts["b"].dp.count(eps=1, session=parts["a"].session)
        with pytest.raises(dp.InputError, match="part"):
            DF.dp.partition_by("g", keys=["a"], eps=1, session=parts["a"].session)
        assert parts["a"].session.spent == 0
        parts["a"].dp.count(eps=1)
