"""Sessions in which any k rows are protected: what is typed, what is refused, who shares a ledger, and the words."""

from __future__ import annotations

import json
import sqlite3

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.accounting.policy import Policy
from dpframe.cli import main

FRAME = pl.DataFrame({"x": [1.0, 2.0, None, 9.0] * 50, "g": ["a", "b"] * 100, "u": range(200)})


@pytest.mark.parametrize(
    "wrong", [0, -1, 2.5, True, False, "36", 10**12, [36], np.int64(3), float("nan")], ids=repr
)
def test_wrong_numbers_are_refused_where_they_are_typed(wrong, tmp_path):
    said = r"contributions=.* must be a whole number from 1 to 2\*\*24\. Hint: contributions=36"
    for make in (
        lambda: dp.Session(eps=1, contributions=wrong),
        lambda: dp.BudgetPlan(FRAME, {"n": dp.count()}, eps=1, contributions=wrong),
        lambda: dp.Ledger.create(tmp_path / "new.db", eps=1, contributions=wrong),
    ):
        with pytest.raises(dp.InputError, match=said):
            make()
    assert not list(tmp_path.iterdir())


def test_a_unit_and_contributions_exclude_each_other():
    with pytest.raises(
        dp.InputError,
        match="contributions=36 is for rows that don't say whose they are, and unit='u' says it",
    ):
        dp.Session(eps=1, unit="u", contributions=36)
    with pytest.raises(dp.InputError, match="contributions=1 is for rows"):
        dp.Session(eps=1, unit="u", contributions=1)
    with pytest.raises(dp.InputError, match="go with unit="):
        dp.Session(eps=1, contributions=36, max_rows=3)
    with dp.Session(eps=1, contributions=36) as s:
        for limit in ("max_rows", "max_groups", "max_rows_per_group"):
            with pytest.raises(dp.InputError, match="protects any 36 rows, of which nothing is cut"):
                FRAME.dp.groupby("g", keys=["a"]).count(eps=0.1, **{limit: 2})
        with pytest.raises(
            dp.InputError, match="any 36 rows, whosever they are: there is no unit to be counted"
        ) as e:
            FRAME.dp.count_units(eps=0.1)
        assert "count()" in str(e.value)
        assert s.spent == 0


@pytest.mark.parametrize("other", ["max_contributions", "contribution_bound"])
def test_other_names_lead_to_it(other):
    with pytest.raises(TypeError, match="contributions"):
        dp.Session(eps=1, **{other: 36})


def test_one_row_is_the_relation_of_rows(tmp_path):
    """Equal policies, plans and fingerprints: stored answers are found, and a ledger of rows is shared."""
    assert Policy(contributions=1) == Policy()
    assert repr(Policy()) == "Policy(neighbors='add_remove', unit=None)"
    ledger = dp.Ledger.create(tmp_path / "rows.db", eps=1)
    with dp.Session(ledger=ledger, contributions=1):
        one = FRAME.dp.plan.count(eps=0.1)
        first = FRAME.dp.count(eps=0.1, request_id="a")
    with dp.Session(ledger=ledger):
        assert FRAME.dp.plan.count(eps=0.1).plan == one.plan
        assert FRAME.dp.count(eps=0.1, request_id="a") == first
    assert len(ledger.entries()) == 1
    ledger.close()
    with sqlite3.connect(tmp_path / "rows.db") as db:
        assert not any("contributions" in str(row) for row in db.iterdump())


def test_relations_of_other_numbers_never_share_a_ledger_nor_a_session(tmp_path):
    path = tmp_path / "any36.db"
    ledger = dp.Ledger.create(path, eps=1, contributions=36)
    assert "per 36 rows (add_remove)" in repr(ledger)
    ledger.close()
    ledger = dp.Ledger(path)
    assert ledger.policy == Policy(contributions=36)
    for wrong in ({"contributions": 12}, {"contributions": 1}, {"unit": "u"}):
        with pytest.raises(dp.InputError, match="protects add_remove, 36 rows"):
            dp.Session(ledger=ledger, **wrong)
    with dp.Session(ledger=ledger) as s:
        assert s.policy.contributions == 36
        assert FRAME.dp.plan.count(eps=0.1).plan.l1 == 36
    with dp.Session(ledger=ledger, contributions=36):
        FRAME.dp.count(eps=0.1)
    for unit in ({}, {"unit": "u"}):
        other = dp.Ledger.create(tmp_path / f"other{len(unit)}.db", eps=1, **unit)
        with pytest.raises(dp.InputError, match=f"protects add_remove, {'u' if unit else 'row'}"):
            dp.Session(ledger=other, contributions=36)
        other.close()
    with dp.Session(eps=1, contributions=12):
        made = FRAME.dp.plan.count(eps=0.1)
        for inner in ({}, {"contributions": 36}):
            with (
                pytest.raises(dp.InputError, match="needs the same relation and unit"),
                dp.Session(eps=1, **inner),
            ):
                pass
    with dp.Session(eps=1, contributions=36) as s:
        with pytest.raises(
            dp.InputError, match=r"made for add_remove, 12 rows; the session protects add_remove, 36 rows"
        ):
            made.release()
        assert s.spent == 0
    ledger.close()


def test_a_ledger_of_any_rows_is_made_from_the_command_line(tmp_path, capsys):
    assert main(["ledger", "create", str(tmp_path / "l.db"), "--eps", "1", "--contributions", "36"]) == 0
    assert "per 36 rows" in capsys.readouterr().out
    for wrong in ("2.5", "0", "many", "1000000000000"):
        assert main(["ledger", "create", str(tmp_path / "w.db"), "--eps", "1", "--contributions", wrong]) != 0
        assert "must be a whole number from 1 to 2**24" in capsys.readouterr().err
    assert not (tmp_path / "w.db").exists()


def test_a_release_file_keeps_it(tmp_path):
    FRAME.write_parquet(tmp_path / "rows.parquet")
    queries = {
        "n": dp.count(),
        "by": dp.query(dp.clip_sum("x", bounds=(0, 10)), groupby="g", keys=["a", "b"]),
    }
    plan = dp.BudgetPlan(tmp_path / "rows.parquet", queries, eps=2, contributions=36)
    plan.to_release_file(tmp_path / "plan.toml")
    assert "contributions = 36" in (tmp_path / "plan.toml").read_text()
    again = dp.BudgetPlan.from_release_file(tmp_path / "plan.toml")
    assert again.fingerprint == plan.fingerprint
    others = [dp.BudgetPlan(tmp_path / "rows.parquet", queries, eps=2, contributions=k) for k in (1, 12)]
    rows = dp.BudgetPlan(tmp_path / "rows.parquet", queries, eps=2)
    assert rows.fingerprint == others[0].fingerprint
    assert len({plan.fingerprint, *(p.fingerprint for p in others)}) == 3
    assert set(again.run()) == {"n", "by"}
    text = (tmp_path / "plan.toml").read_text()
    for wrong in ("0", "2.5", "true", '"36"', "1000000000000"):
        (tmp_path / "wrong.toml").write_text(text.replace("contributions = 36", f"contributions = {wrong}"))
        with pytest.raises(
            dp.InputError, match=r"wrong\.toml:\d+: contributions = .* must be a whole number"
        ):
            dp.BudgetPlan.from_release_file(tmp_path / "wrong.toml")


@pytest.mark.parametrize(
    ("relation", "does"), [("add_remove", "appear or vanish"), ("replace_one", "become others")]
)
def test_every_page_says_what_is_protected(relation, does, tmp_path):
    with dp.Session(eps=1, delta=1e-6, contributions=36, neighbors=relation) as s:
        explained = str(FRAME.dp.plan.count(eps=0.1).explain())
        FRAME.dp.groupby("g", keys=["a", "b"]).count(eps=0.1, label="n")
        keys = str(FRAME.dp.plan.groupby("g").keys(eps=0.1, delta=1e-7).explain())
    assert f"any 36 rows {does}" in explained
    assert "36 rows count; nothing is cut" in explained
    assert "36 rows count, all in one group or each in another; nothing is cut" in keys
    assert "rows in a group" in keys
    assert f"per 36 rows ({relation})" in repr(s)
    assert f"any 36 rows {does}" in s._repr_html_()
    assert "per 36 rows" in repr(s["n"]) + str(s["n"])
    assert s["n"].facts["unit"] == "36 rows"
    s["n"].write(tmp_path / "n.csv")
    assert json.loads((tmp_path / "n.csv.json").read_text())["unit"] == "36 rows"
    text = " ".join(str(s.statement()).split())
    assert "Any 36 rows of the data together, whosever they are." in text
    assert "one with more is protected less" in text
    assert "Take any one set of 36 rows, and all results together" in text
    assert "Every single row" not in text


def test_a_column_of_persons_is_told_of(recwarn):
    frame = pl.DataFrame({"user_id": [1, 1, 2]})
    with dp.Session(eps=1, contributions=36):
        frame.dp.count("user_id", eps=0.1)
    (said,) = [str(w.message) for w in recwarn if "protected" in str(w.message)]
    assert said.startswith(
        "Any 36 rows are protected, not one 'user_id': whoever has more than 36 rows is protected less."
    )


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize(("k", "parts", "most"), [(36, 100, 36), (36, 3, 3), (1, 100, 1)])
def test_a_partition_is_paid_for_as_many_parts_as_rows_may_be_in(k, parts, most, relation):
    twice = 2 if relation == "replace_one" else 1
    with dp.Session(eps=100, contributions=k, neighbors=relation) as s:
        made = FRAME.dp.partition_by("g", keys=["a", "b", *map(str, range(parts - 2))], eps=0.5)
        assert s.spent == 0.5 * most * twice
        assert made["a"].dp.plan.count(eps=0.1).plan.l1 == k
        with pytest.raises(dp.InputError, match="count_units"):
            made["a"].dp.count_units(eps=0.1)
    with dp.Session(rho=100, contributions=k, neighbors=relation) as s:
        FRAME.dp.partition_by("g", keys=list(map(str, range(parts))), rho=0.125)
        assert s.spent.rho == most * twice / 8


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("cost", [{"eps": 1}, {"eps": 1, "delta": 1e-6}, {"rho": 0.1}], ids=str)
def test_advice_is_a_session_of_the_same_relation(cost, relation):
    with dp.Session(eps=9, contributions=36, neighbors=relation) as s:
        advice = dp.advise(FRAME.dp.plan.count(eps=1), **cost)
    assert eval(advice.session, {"dp": dp}).policy == s.policy


def test_shares_of_a_session_protect_the_same():
    parts = dp.Session(eps=1, contributions=36).split(2)
    with parts[0]:
        assert FRAME.dp.plan.count(eps=0.1).plan.l1 == 36


def test_a_dask_frame_needs_no_unit():
    dask = pytest.importorskip("dask.dataframe")
    frame = dask.from_pandas(FRAME.to_pandas(), npartitions=2)
    with dp.Session(eps=1e9, contributions=36):
        assert dp.frame(frame).count(eps=1e7) == 200


def test_many_rows_on_fine_grids_leave_room_for_the_noise():
    """2**24 rows at eps 0.01 on 2**30 steps would be noise beyond what is drawn: the grid is coarser."""
    with dp.Session(eps=1, contributions=2**24) as s:
        for ask in (
            lambda d: d.clip_sum("x", bounds=(0, 10), eps=0.001),
            lambda d: d.clip_mean("x", bounds=(0, 10), eps=0.001),
            lambda d: d.clip_var("x", bounds=(0, 10), eps=0.001),
            lambda d: d.agg(
                dp.clip_mean("x", bounds=(0, 10)), dp.clip_mean("u", bounds=(0, 10)), dp.count(), eps=0.001
            ),
            lambda d: d.clip_sum("u", bounds=(0, 2**29), eps=0.001),
            lambda d: d.groupby("g", keys=["a", "b"]).clip_sum("x", bounds=(0, 10), eps=0.001),
            lambda d: d.median("x", bounds=(0, 10), eps=0.001),
        ):
            ask(FRAME.dp)
        assert s.spent == 0.007
    with dp.Session(eps=1, contributions=3):
        assert FRAME.dp.plan.clip_sum("u", bounds=(0, 200), eps=0.1).plan.parts[0].layout.grid.step == 1


def test_fingerprints_tell_numbers_of_rows_apart():
    """By the policy itself, not only by the noise that follows from it; and rows have the fingerprint of 0.1.0."""
    found = [json.dumps(Policy(contributions=k).key) for k in (1, 12, 36)]
    assert found[0] == '["add_remove", null]'
    assert len(set(found)) == 3
