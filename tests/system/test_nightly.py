"""Batch jobs on a ledger: nothing is paid twice, every file has its charge, a rerun is free and byte-equal."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import signal
import time
from fractions import Fraction

import polars as pl
import pytest
from ledger_tools import ForkServer
from sizes import AUDIT

import dpframe as dp
from dpframe.cli import commands as cli

NIGHTS = 60 if AUDIT else 3

JOB = """\
name = "{job}"
[source]
path = "{job}-{{scope}}.parquet"
[budget]
eps = 0.5
ledger = "budget.db"
allocation = "adaptive"
[[query]]
name = "rows"
statistic = "count"
error = 40
outputs = "out/{job}-{{scope}}-rows.csv"
[[query]]
name = "mean"
statistic = "clip_mean"
column = "x"
bounds = [0, 100]
error = 5
rows = "rows"
outputs = ["out/{job}-{{scope}}-mean.parquet", "out/{job}-{{scope}}-mean.csv"]
[[query]]
name = "by_city"
groupby = "city"
keys = ["a", "b", "c"]
outputs = "out/{job}-{{scope}}-city.parquet"
[query.ask.n]
statistic = "count"
"""
JOBS = ("arrivals", "departures")


@pytest.fixture(autouse=True)
def required(monkeypatch):
    monkeypatch.setenv("DPFRAME_REQUIRE_SESSION", "0")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "out").mkdir()
    for job in JOBS:
        (tmp_path / f"{job}.toml").write_text(JOB.format(job=job))
    return tmp_path


def data(folder, scope):
    for i, job in enumerate(JOBS):
        n = 1000 + 100 * i
        pl.DataFrame({"x": [20.0 + i] * n, "city": ["a", "b"] * (n // 2)}).write_parquet(
            folder / f"{job}-{scope}.parquet"
        )


def job(folder, *arguments):
    """The command, in a process that was forked for it."""
    os.chdir(folder)
    return cli.main(arguments)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with contextlib.closing(ForkServer(__name__, tmp_path_factory.mktemp("forks"))) as made:
        yield made


@pytest.fixture
def start(server):
    return lambda folder, name, scope: server.start(
        "job", str(folder), "run", f"{name}.toml", "--scope", scope
    )


def finish(process):
    said, wrong = process.communicate()
    return process.returncode, said.splitlines(), wrong


def written(folder, scope=""):
    return {p.name: p.read_bytes() for p in (folder / "out").iterdir() if scope in p.name}


def charges(folder):
    ledger = dp.Ledger(folder / "budget.db")
    ledger.verify()
    entries, states = ledger.entries(), ledger.state()
    ledger.close()
    return entries, states


def test_a_rerun_is_free_flagged_and_byte_equal(folder, start):
    dp.Ledger.create(folder / "budget.db", eps=1, per_scope={"eps": 1}).close()
    data(folder, "n1")
    code, said, wrong = finish(start(folder, "arrivals", "n1"))
    assert (code, wrong) == (0, "")
    assert [x.split(":")[0] for x in said] == ["released 'rows'", "released 'mean'", "released 'by_city'"]
    first, (entries, _) = written(folder), charges(folder)
    assert len(first) == 8
    for path in (folder / "out").iterdir():
        path.unlink()
    data(folder, "n1")
    code, said, wrong = finish(start(folder, "arrivals", "n1"))
    assert (code, wrong) == (0, "")
    assert all(x.startswith("replayed ") and ": free, drawn 20" in x for x in said)
    assert written(folder) == first
    assert len(charges(folder)[0]) == len(entries) == 3
    assert sum(e.cost.eps for e in entries) == Fraction(1, 2)


def test_files_carry_the_head_that_the_ledger_had(folder):
    dp.Ledger.create(folder / "budget.db", eps=1, per_scope={"eps": 1}).close()
    data(folder, "n1")
    assert cli.main(["run", str(folder / "arrivals.toml"), "--scope", "n1"]) == 0
    heads = [
        json.loads((folder / "out" / f"arrivals-n1-{n}.json").read_text())["ledger_head"]
        for n in ("rows.csv", "mean.parquet", "city.parquet")
    ]
    assert len(set(heads)) == 3
    ledger = dp.Ledger(folder / "budget.db")
    assert ledger.head.text == heads[-1]
    ledger.close()


def dying_job(folder, place, after):
    """The job, which kills itself when it enters ``place`` for the time after ``after``."""
    module, owner, name = place.rsplit(".", 2)
    at = getattr(importlib.import_module(module), owner)
    kept, calls = getattr(at, name), []

    def dying(*a, **k):
        calls.append(1)
        if len(calls) > after:
            os.kill(os.getpid(), signal.SIGKILL)
        return kept(*a, **k)

    setattr(at, name, dying)
    return job(folder, "run", "arrivals.toml", "--scope", "n1")


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_job_killed_between_queries_goes_on_and_pays_nothing_twice(folder, after, start, server):
    """The process kills itself once ``after`` queries are on disk; or, at 0, between a charge and its answer."""
    dp.Ledger.create(folder / "budget.db", eps=1, per_scope={"eps": 1}).close()
    data(folder, "n1")
    place = (
        "dpframe.release.release.Release.write" if after else "dpframe.engine.polars.PolarsSource.aggregate"
    )
    died = server.start("dying_job", str(folder), place, after)
    died.communicate()
    assert died.returncode == -signal.SIGKILL
    before, (paid, _) = written(folder), charges(folder)
    assert 1 <= len(paid) < 3
    code, said, wrong = finish(start(folder, "arrivals", "n1"))
    assert (code, wrong) == (0, "")
    entries, _ = charges(folder)
    assert [e.request_id for e in entries] == [f"arrivals/{q}" for q in ("rows", "mean", "by_city")]
    assert [e.sequence for e in entries][: len(paid)] == [e.sequence for e in paid]
    assert sum(e.cost.eps for e in entries) == Fraction(1, 2)
    now = written(folder)
    assert all(now[n] == b for n, b in before.items() if not n.endswith(".tmp"))
    assert len([x for x in said if x.startswith("replayed")]) == (len(paid) if after else 0)


def test_nights_of_two_jobs_with_kills(folder, start):
    """Two processes a night on one ledger, killed at random moments and started again until both are done.

    Every file has its charge, each scope's budget and the total hold, nothing is charged twice, and a rerun
    of a finished day is byte-equal, free and flagged.
    """
    per_night = Fraction(1)
    dp.Ledger.create(folder / "budget.db", eps=per_night * NIGHTS, per_scope={"eps": per_night}).close()
    rng, kills = random.Random(3), 0
    for night in range(NIGHTS):
        scope = f"2026-{night:03d}"
        data(folder, scope)
        todo = set(JOBS)
        tries = 0
        while todo:
            tries += 1
            running = {job: start(folder, job, scope) for job in todo}
            if tries <= 2:
                time.sleep(rng.uniform(0, 0.4))  # about as long as a job takes
                running[rng.choice(sorted(running))].kill()
            for job, process in running.items():
                code, said, wrong = finish(process)
                assert code in (0, -signal.SIGKILL), wrong
                kills += code != 0
                assert len(said) == 3 or code
                if code == 0:
                    todo.remove(job)
    entries, states = charges(folder)
    assert len(entries) == 2 * 3 * NIGHTS
    assert len({(e.scope, e.request_id) for e in entries}) == len(entries)
    assert all(e.released_at is not None for e in entries)
    by_scope = {e.scope: sum(x.cost.eps for x in entries if x.scope == e.scope) for e in entries}
    assert set(by_scope.values()) == {per_night}
    budget, state = states["total"]
    assert state.eps == per_night * NIGHTS == budget.eps
    for night in range(NIGHTS):
        assert len([n for n in written(folder, f"2026-{night:03d}") if not n.endswith(".tmp")]) == 16
    print(f"{NIGHTS} nights, {kills} kills, {len(entries)} charges")
    for night in rng.sample(range(NIGHTS), min(NIGHTS, 5)):
        scope = f"2026-{night:03d}"
        before = written(folder, scope)
        for job in JOBS:
            code, said, wrong = finish(start(folder, job, scope))
            assert (code, wrong) == (0, "")
            assert len([x for x in said if x.startswith("replayed")]) == 3
        assert written(folder, scope) == before
    assert len(charges(folder)[0]) == len(entries)


def test_two_processes_with_the_same_job_pay_once(folder, start):
    dp.Ledger.create(folder / "budget.db", eps=1, per_scope={"eps": 1}).close()
    data(folder, "n1")
    both = [start(folder, "arrivals", "n1") for _ in range(2)]
    done = [finish(p) for p in both]
    assert [d[0] for d in done] == [0, 0], done
    assert sorted(x.split()[0] for d in done for x in d[1]) == ["released"] * 3 + ["replayed"] * 3
    assert len(charges(folder)[0]) == 3


def test_a_budget_that_does_not_reach_is_exit_3_and_nothing_is_spent(folder, capsys):
    dp.Ledger.create(folder / "budget.db", eps=1, per_scope={"eps": 0.4}).close()
    data(folder, "n1")
    assert cli.main(["run", str(folder / "arrivals.toml"), "--scope", "n1"]) == 3
    said = capsys.readouterr()
    assert "eps does not suffice" in said.err
    assert said.err.count("\n") == 1
    assert not written(folder)
    assert not charges(folder)[0]


def test_a_ledger_that_is_gone_or_was_put_back_is_exit_4(folder, start):
    data(folder, "n1")
    assert finish(start(folder, "arrivals", "n1"))[0] == 4
    dp.Ledger.create(folder / "budget.db", eps=1, per_scope={"eps": 1}).close()
    old = (folder / "budget.db").read_bytes()
    assert finish(start(folder, "arrivals", "n1"))[0] == 0
    for path in (*folder.glob("budget.db-*"), *(folder / "out").iterdir()):
        path.unlink()
    (folder / "budget.db").write_bytes(old)
    code, said, wrong = finish(start(folder, "arrivals", "n1"))
    assert (code, said, wrong.count("\n")) == (4, [], 1)
    assert wrong.startswith("dpframe: ")
    assert not written(folder)


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ('name = "arrivals"\n', "", 5, "the plan needs one"),
        ('name = "arrivals"', "name = 3", 1, "name is a text"),
        ("ledger = ", 'neighbors = "replace_one"\nledger = ', 6, "protects add_remove"),
        ("ledger = ", "ledger = 3 # ", 6, "must be a text"),
        ("eps = 0.5\n", "", 4, "a total of its own"),
    ],
)
def test_what_does_not_fit_a_ledger_names_its_line(folder, old, new, line, says):
    dp.Ledger.create(folder / "budget.db", eps=1, per_scope={"eps": 1}).close()
    data(folder, "n1")
    (folder / "arrivals.toml").write_text((folder / "arrivals.toml").read_text().replace(old, new, 1))
    with pytest.raises(dp.InputError, match=rf"arrivals.toml:{line}: .*{says}"):
        dp.BudgetPlan.from_release_file(folder / "arrivals.toml", scope="n1")


def test_a_ledger_without_scopes_takes_no_scope(folder):
    """Else the second night would find the first night's answers."""
    dp.Ledger.create(folder / "budget.db", eps=1).close()
    data(folder, "n1")
    with pytest.raises(dp.InputError, match="declared without scopes"):
        dp.BudgetPlan.from_release_file(folder / "arrivals.toml", scope="n1")


def test_a_changed_question_under_an_old_name_is_refused(folder, capsys):
    dp.Ledger.create(folder / "budget.db", eps=9, per_scope={"eps": 9}).close()
    data(folder, "n1")
    arguments = ["run", str(folder / "arrivals.toml"), "--scope", "n1"]
    assert cli.main(arguments) == 0
    text = (folder / "arrivals.toml").read_text()
    (folder / "arrivals.toml").write_text(text.replace("error = 40", "error = 50"))
    assert cli.main(arguments) == 2
    assert "was charged for another question" in capsys.readouterr().err
    assert len(charges(folder)[0]) == 3


def test_a_plan_on_a_ledger_is_written_and_read(folder):
    dp.Ledger.create(folder / "budget.db", eps=1, per_scope={"eps": 1}).close()
    data(folder, "n1")
    plan = dp.BudgetPlan.from_release_file(folder / "arrivals.toml", scope="n1")
    plan.to_release_file(folder / "again.toml")
    again = dp.BudgetPlan.from_release_file(folder / "again.toml", scope="n1")
    assert again.fingerprint == plan.fingerprint
    plan.run()
    assert again.run()["rows"].replayed
    assert again.log()["replayed"].to_list() == [True] * 3
    assert again.log()["eps"].to_list() == plan.log()["eps"].to_list()


def test_every_kind_of_release_is_stored_and_replayed(folder, tmp_path):
    """Sums, means, tables, choices and tallies come back from a ledger as they were."""
    frame = pl.DataFrame({"x": [1.0, 2.0, 9.0] * 100, "g": ["a", "b", "c"] * 100})
    queries = {
        "n": dp.count(),
        "var": dp.clip_var("x", bounds=(0, 9)),
        "median": dp.median("x", bounds=(0, 9)),
        "top": dp.top_k("g", 2, candidates=["a", "b", "c", "d"]),
        "bins": dp.histogram("x", edges=[0, 5, 10]),
        "groups": dp.query(groupby="g", delta=1e-6),
        "by": dp.query(dp.count(), m=dp.median("x", bounds=(0, 9)), groupby="g", keys=["a", "d"]),
    }
    dp.Ledger.create(folder / "all.db", eps=100, delta=1e-5).close()

    def plan():
        return dp.BudgetPlan(
            frame, queries, eps=100, delta=1e-5, name="all", ledger="all.db", folder=str(folder)
        )

    first, again = plan().run(), plan().run()
    assert all(r.replayed for r in again.values())
    for name in queries:
        for ending in ("csv", "parquet"):
            first[name].write(tmp_path / f"first.{ending}")
            again[name].write(tmp_path / f"again.{ending}")
            assert (tmp_path / f"first.{ending}").read_bytes() == (tmp_path / f"again.{ending}").read_bytes()
    ledger = dp.Ledger(folder / "all.db")
    assert len(ledger.entries()) == len(queries)
    ledger.close()
