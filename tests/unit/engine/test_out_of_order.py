"""An engine that can't answer at all is refused before the charge: that it fails has nothing to do with the data."""

from __future__ import annotations

import duckdb
import pytest

import dpframe as dp


def unread(con):
    con.execute("select i from t order by i")
    assert con.fetchone() == (0,)


def aborted(con):
    con.execute("begin")
    with pytest.raises(duckdb.Error):
        con.execute("select nope")


STATES = {
    "a result that was not read": unread,
    "a transaction that failed": aborted,
    "a table that was dropped": lambda con: con.execute("drop table t"),
    "a closed connection": lambda con: con.close(),
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
@pytest.mark.parametrize("opened", ["before", "after"])
def test_nothing_is_spent_on_an_engine_that_can_t_answer(state, opened):
    con = duckdb.connect()
    con.execute("create table t as select range as i, range % 2 as g from range(100)")
    relation = con.table("t")
    with dp.Session(eps=1, delta=1e-6) as s:
        frame = dp.frame(relation) if opened == "before" else None
        state(con)
        try:
            answer = (frame or dp.frame(relation)).groupby("g", keys=[0, 1]).count(eps=1)
        except (dp.InputError, TypeError, duckdb.Error):
            assert s.spent == 0
        else:
            assert answer.height == 2


def test_a_relation_is_answered_when_its_connection_is_free_again(quiet):
    con = duckdb.connect()
    con.execute("create table t as select range as i from range(10000)")
    frame = dp.frame(con.table("t"))
    unread(con)
    with dp.Session(eps=2e6) as s:
        with pytest.raises(dp.InputError, match=r"can't be asked now.*Nothing was spent"):
            frame.count(eps=1e6)
        assert s.spent == 0
        assert len(con.fetchall()) == 9999, "and the user's result is whole"
        assert frame.count(eps=1e6) == 10000
