"""The command line: exit codes, one-line messages without data, outputs whole or not at all."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.base import files as atomic
from dpframe.cli import commands as cli

FILE = """\
name = "job"
[source]
path = "people.parquet"
[budget]
eps = 1.0
[[query]]
name = "rows"
statistic = "count"
eps = 0.25
outputs = ["rows.csv", "{scope}rows.parquet"]
[[query]]
name = "total"
statistic = "clip_sum"
column = "x"
bounds = [0, 100]
outputs = "total.csv"
"""
SECRET = 31.41592
PLAIN = FILE.replace("{scope}", "")


@pytest.fixture(autouse=True)
def required(monkeypatch):
    """The command sets this for its process; a test's process goes on."""
    monkeypatch.setenv("DPFRAME_REQUIRE_SESSION", "0")


@pytest.fixture
def folder(tmp_path):
    pl.DataFrame({"x": [SECRET] * 1000}).write_parquet(tmp_path / "people.parquet")
    (tmp_path / "job.toml").write_text(PLAIN)
    return tmp_path


def process(folder, *arguments):
    """Run the command in a process of its own, as a shell does."""
    return subprocess.run(
        [sys.executable, "-m", "dpframe", *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(dp.__file__))},
    )


def dpframe(folder, *arguments):
    """Run the command in this process: what it says, and its exit code."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = cli.main(list(map(str, arguments)))
        except SystemExit as e:  # argparse
            code = e.code
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def one_line(done, code):
    """The single line that a refusal says; nothing else is said anywhere."""
    assert done.returncode == code, done
    assert done.stderr.count("\n") == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert str(SECRET) not in done.stdout + done.stderr
    return done.stderr


def test_help_lists_the_commands():
    done = process(".", "--help")
    assert done.returncode == 0
    for command in ("plan", "run", "ledger", "demo"):
        assert re.search(rf"^    {command} ", done.stdout, re.MULTILINE)
    assert process(".", "--version").stdout == f"dpframe {dp.__version__}\n"


def test_plan_shows_costs_and_the_fingerprint_and_reads_no_cell(folder, capsys, monkeypatch):
    monkeypatch.setattr(pl.LazyFrame, "collect", lambda *a, **k: pytest.fail("cells were read"))
    assert cli.main(["plan", str(folder / "job.toml")]) == 0
    said = capsys.readouterr().out
    assert "133.333333" in said
    assert "total eps=1, delta=0" in said
    plan = dp.BudgetPlan.from_release_file(folder / "job.toml")
    assert said.endswith(f"fingerprint {plan.fingerprint}\n")
    assert sorted(os.listdir(folder)) == ["job.toml", "people.parquet"]


def test_run_writes_every_output_with_its_facts(folder):
    fingerprint = dpframe(folder, "plan", "job.toml").stdout.split()[-1]
    done = process(folder, "run", "job.toml", "--approved", fingerprint)
    assert done.returncode == 0, done
    assert done.stdout.splitlines() == [
        "released 'rows': eps=0.25, rows.csv, rows.parquet",
        "released 'total': eps=0.75, total.csv",
    ]
    assert abs(pl.read_csv(folder / "rows.csv")["count"][0] - 1000) < 200
    facts = json.loads((folder / "total.csv.json").read_text())
    assert (facts["eps"], facts["outputs"]["x_sum"]["bounds"]) == ("0.75", [0, 100])
    assert json.loads(pl.read_parquet_metadata(folder / "rows.parquet")["dpframe"])["eps"] == "0.25"
    assert not [n for n in os.listdir(folder) if n.endswith(".tmp")]


def test_a_scope_names_the_files_of_a_night(folder):
    (folder / "job.toml").write_text(FILE)
    assert "a place for a scope" in one_line(dpframe(folder, "run", "job.toml"), 2)
    assert dpframe(folder, "run", "job.toml", "--scope", "2026-11-29").returncode == 0
    assert (folder / "2026-11-29rows.parquet").exists()
    assert "part of a path" in one_line(dpframe(folder, "run", "job.toml", "--scope", "../x"), 2)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[budget]", "[bugdet]", "job.toml:4: there is no key 'bugdet' here"),
        ("eps = 0.25", "eps = 2.5", "job.toml:13: nothing is left for it of 1: the other queries take 2.5."),
        ('outputs = "total.csv"', "", "'total' has no outputs"),
    ],
)
def test_a_wrong_file_is_exit_2_and_nothing_is_written(folder, old, new, says):
    (folder / "job.toml").write_text(PLAIN.replace(old, new))
    assert says in one_line(dpframe(folder, "run", "job.toml"), 2)
    assert sorted(os.listdir(folder)) == ["job.toml", "people.parquet"]


def test_wrong_arguments_are_exit_2(folder):
    assert dpframe(folder).returncode == 2
    assert dpframe(folder, "rum", "job.toml").returncode == 2
    for how in (dpframe, process):
        assert "can't be read" in one_line(how(folder, "run", "none.toml"), 2)


def test_a_plan_that_nobody_approved_is_exit_6(folder):
    fingerprint = dpframe(folder, "plan", "job.toml").stdout.split()[-1]
    (folder / "job.toml").write_text(PLAIN.replace("[0, 100]", "[0, 101]"))
    assert fingerprint in one_line(dpframe(folder, "run", "job.toml", "--approved", fingerprint), 6)
    assert not (folder / "rows.csv").exists()


def test_an_engine_that_fails_is_exit_5_and_says_nothing_of_the_data(folder):
    values = np.random.default_rng(1).normal(SECRET, 1, 50_000)
    pl.DataFrame({"x": values}).write_parquet(folder / "people.parquet", compression="uncompressed")
    torn = bytearray((folder / "people.parquet").read_bytes())
    torn[4:200] = b"\xff" * 196
    (folder / "people.parquet").write_bytes(torn)
    assert "failed in the engine" in one_line(dpframe(folder, "run", "job.toml"), 5)
    assert not (folder / "total.csv").exists()


def test_a_disk_that_is_full_is_exit_5(folder, capsys, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    assert cli.main(["run", str(folder / "job.toml")]) == 5
    assert capsys.readouterr().err.startswith("dpframe: No space left on device")
    assert sorted(os.listdir(folder)) == ["job.toml", "people.parquet"]


def test_an_error_of_our_own_is_exit_1_and_its_words_are_withheld(folder, capsys, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError(f"the value {SECRET}")

    monkeypatch.setattr(dp.BudgetPlan, "run", broken)
    assert cli.main(["run", str(folder / "job.toml")]) == 1
    said = capsys.readouterr()
    assert said.err == f"dpframe: RuntimeError inside dpframe {dp.__version__}; its words are withheld\n"


def test_run_needs_sessions_and_warns_on_one_line(folder, capsys, monkeypatch):
    """While it runs no call may do without a session; afterwards the program's own rule holds again."""
    pl.DataFrame({"x": [1.0] * 9, "user_id": range(9)}).write_parquet(folder / "people.parquet")
    run, seen = dp.BudgetPlan.run, []

    def watched(*args, **kwargs):
        seen.append(os.environ["DPFRAME_REQUIRE_SESSION"])
        return run(*args, **kwargs)

    monkeypatch.setattr(dp.BudgetPlan, "run", watched)
    assert cli.main(["run", str(folder / "job.toml")]) == 0
    assert seen == ["1"]
    assert os.environ["DPFRAME_REQUIRE_SESSION"] == "0"
    said = capsys.readouterr().err
    assert said.startswith("dpframe: warning: One row is protected, not one 'user_id'")
    assert said.count("\n") == 1


def test_progress_is_shown_to_a_terminal_only(folder):
    leader, follower = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "dpframe", "run", "job.toml"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=follower,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(dp.__file__))},
    )
    os.close(follower)
    shown = os.read(leader, 65536).decode()
    os.close(leader)
    assert done.returncode == 0
    assert "1/2 rows" in shown
    assert "2/2 total" in shown
    assert dpframe(folder, "run", "job.toml").stderr == ""


def test_an_interrupt_is_exit_130(folder):
    code = (
        "import sys, time, dpframe.cli.commands as c\n"
        "c.BudgetPlan.run = lambda *a, **k: (print('ready', flush=True), time.sleep(300))\n"
        "sys.exit(c.main(['run', 'job.toml']))"
    )
    job = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(dp.__file__))},
    )
    assert job.stdout.readline() == "ready\n"
    time.sleep(0.1)
    job.send_signal(signal.SIGINT)
    _, said = job.communicate(timeout=120)
    assert (job.returncode, said) == (130, "dpframe: interrupted; run again to go on\n")


# ---- the ledger's own commands ----


def test_a_ledger_is_made_shown_checked_and_exported(folder, capsys):
    path = str(folder / "budget.db")
    assert cli.main(["ledger", "create", path, "--eps", "1/3", "--delta", "1e-6", "--unit", "who"]) == 0
    made = capsys.readouterr().out
    ledger = dp.Ledger(path)
    head = ledger.head
    assert ledger.budget.eps * 3 == 1
    rho = float(ledger.budget.rho_limit)
    assert ledger.policy.unit == ("who",)
    ledger.close()
    assert made.endswith(f"head {head.sequence} {head.hash}\n")
    assert cli.main(["ledger", "show", path]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[1] == f"total: spent eps=0, delta=0, rho=0; left eps=1/3, delta=5e-07, rho={rho:.6g}"
    assert shown[2:] == ["charges: 0", f"head: {head.sequence} {head.hash}"]
    assert cli.main(["ledger", "verify", path]) == 0
    assert capsys.readouterr().out == f"whole: 0 charges, head {head.sequence} {head.hash}\n"
    assert cli.main(["ledger", "export", path]) == 0
    assert capsys.readouterr().out.startswith("sequence,time,scope,")
    assert cli.main(["ledger", "export", path, "--output", str(folder / "all.parquet")]) == 0
    assert pl.read_parquet(folder / "all.parquet").height == 0


def test_a_ledger_with_windows_and_scopes_says_what_they_mean(folder, capsys):
    path = str(folder / "budget.db")
    options = ["--eps", "1", "--per-scope", "eps=0.5, delta=1e-8", "--window", "30d", "--lifetime", "eps=9"]
    assert cli.main(["ledger", "create", path, *options, "--delta", "1e-6"]) == 0
    assert cli.main(["ledger", "show", path, "--scope", "2026-11-29"]) == 0
    shown = capsys.readouterr().out
    for domain in ("total: spent eps=0", "scope: spent eps=0", "lifetime: spent eps=0", "window: "):
        assert f"\n{domain}" in shown


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--eps", "much"], "--eps much is no number. Hint: --eps 0.5"),
        (["--eps", "1/0"], "--eps 1/0 is no number"),
        ([], "needs --eps or --rho, one of them. Hint: dpframe ledger create --eps 3 budget.db"),
    ],
)
def test_a_ledger_that_can_not_be_made_is_exit_2(folder, arguments, says):
    assert says in one_line(dpframe(folder, "ledger", "create", "b.db", *arguments), 2)
    assert not (folder / "b.db").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--eps 1 --rho 1", "needs --eps or --rho"),
        ("--eps 1 --per-scope 0.1", "--per-scope 0.1 is no budget. Hint: --per-scope eps=0.1,delta=1e-8"),
        ("--eps 1 --per-scope epsilon=1", "Did you mean 'eps'? Hint: --per-scope eps=0.1"),
        ("--eps 1 --per-scope delta=1", "--per-scope delta=1 needs eps or rho"),
        ("--eps 1 --window 1d --lifetime eps=x", "eps x is no number"),
        ("--eps 1 --lifetime eps=3", "--lifetime goes with --window; "),
        ("--eps 1 --window 0d", "--window 0d must be longer than nothing. Hint: --window 30d"),
        ("--eps 1 --neighbors near", "--neighbors near is not a relation"),
        ("--eps -1", "--eps -1 must be more than zero. Hint: --eps 0.5"),
        ("--eps 1 --delta 1e-6 --delta-calls 1e-5", "Hint: --delta-calls 5e-07"),
        ("--rho 1 --delta 1e-6", "Hint: --rho 0.1 --delta-calls 1e-6"),
        ("--eps 1 --accountant pld", "--accountant pld is not one"),
        ("--eps 1 --accountant zcdp", "Hint: --delta 1e-6, or --accountant sum"),
        ("--eps 1 --order 3", "--order 3 goes with --accountant rdp"),
        ("--eps 1 --unit a --unit a", "--unit a --unit a must name"),
    ],
)
def test_what_is_wrong_with_a_ledgers_options_is_said_in_options(folder, capsys, arguments, says):
    assert cli.main(["ledger", "create", str(folder / "b.db"), *arguments.split()]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert not re.search(r"\bdp\.|dict|\bs\.|[a-z]= |Fraction", said), said  # nothing of Python's
    assert not (folder / "b.db").exists()


def test_hints_of_the_command_line_are_commands(folder, monkeypatch, capsys):
    """What to type about a ledger and a scope, also where a release file is at fault."""
    monkeypatch.chdir(folder)

    def said(*arguments: str) -> str:
        assert cli.main(arguments) in (2, 3, 4)
        return capsys.readouterr().err

    assert "Hint: dpframe ledger create --eps ... " in said("ledger", "show", "b.db")
    assert cli.main(["ledger", "create", "b.db", "--eps", "1", "--per-scope", "eps=0.1"]) == 0
    assert "Hint: dpframe ledger show " in said("ledger", "create", "b.db", "--eps", "1")
    (folder / "job.toml").write_text(PAID)
    assert "Hint: --scope 2026-11-29, or another name" in said("plan", "job.toml")
    (folder / "job.toml").write_text(PAID.replace("b.db", "c.db"))
    assert cli.main(["ledger", "create", "c.db", "--eps", "1"]) == 0
    assert "so --scope x would have" in (text := said("run", "job.toml", "--scope", "x"))
    assert "or dpframe ledger create --per-scope eps=0.1 ..." in text
    (folder / "c.db.anchor").rename(folder / "elsewhere")
    assert "dpframe ledger show --anchor ... budget.db" in said("ledger", "verify", "c.db")
    for command in ("show", "verify", "export"):
        assert cli.main(["ledger", command, "c.db", "--anchor", "elsewhere"]) == 0


def test_a_ledger_takes_an_order(folder, capsys):
    options = ["--eps", "1", "--delta", "1e-6", "--accountant", "rdp", "--order", "20"]
    assert cli.main(["ledger", "create", str(folder / "b.db"), *options]) == 0
    ledger = dp.Ledger(folder / "b.db")
    assert ledger.budget.order == 20
    ledger.close()


@pytest.mark.parametrize("command", ["show", "verify", "export"])
def test_a_ledger_that_can_not_be_trusted_is_exit_4(folder, command):
    assert "does not exist" in one_line(dpframe(folder, "ledger", command, "b.db"), 4)
    assert dpframe(folder, "ledger", "create", "b.db", "--eps", "1").returncode == 0
    (folder / "b.db.anchor").unlink()
    assert "anchor" in one_line(dpframe(folder, "ledger", command, "b.db"), 4)


PAID = PLAIN.replace("eps = 1.0\n", 'eps = 1.0\nledger = "b.db"\n')


def test_a_request_that_was_paid_as_another_question_stops_the_run_before_anything_is_spent(folder):
    dp.Ledger.create(folder / "b.db", eps=3).close()
    job, (head, first, second) = folder / "job.toml", PAID.split("[[query]]")
    job.write_text(f"{head}[[query]]{second}eps = 0.5\n")
    assert cli.main(["run", str(job)]) == 0
    job.write_text(f"{head}[[query]]{first}[[query]]{second}eps = 0.6\n")
    said = one_line(dpframe(folder, "run", "job.toml"), 2)
    assert "'total'" in said
    assert "another question" in said
    assert "eps=0.5" in said
    ledger = dp.Ledger(folder / "b.db")
    assert [e.label for e in ledger.entries()] == ["total"]
    ledger.close()
    assert not (folder / "rows.csv").exists()
    job.write_text(f"{head}[[query]]{first}[[query]]{second}eps = 0.5\n")
    assert cli.main(["run", str(job)]) == 0


def test_two_plans_never_share_a_request(folder):
    """'a/b' and 'c' would be asked under the same name as 'a' and 'b/c'."""
    dp.Ledger.create(folder / "b.db", eps=3).close()
    (folder / "job.toml").write_text(PAID.replace('"job"', '"a/b"'))
    said = one_line(dpframe(folder, "run", "job.toml"), 2)
    assert "job.toml:5: name = 'a/b'" in said or "job.toml:4: name = 'a/b'" in said


@pytest.mark.parametrize(
    ("output", "says"), [("./places.csv", "where the keys of 'rows' are"), ("rows.csv/", "ends neither")]
)
def test_outputs_that_can_not_be_written_are_refused_before_anything_is_spent(folder, output, says):
    (folder / "places.csv").write_text("place\nGhent\n")
    pl.DataFrame({"x": [SECRET], "place": ["Ghent"]}).write_parquet(folder / "people.parquet")
    keyed = PLAIN.replace('"count"\n', '"count"\ngroupby = "place"\nkeys = "places.csv"\n')
    (folder / "job.toml").write_text(keyed.replace('"rows.csv", ', f'"{output}", '))
    for command in ("plan", "run"):
        said = one_line(dpframe(folder, command, "job.toml"), 2)
        assert says in said
        assert "job.toml:12" in said
    assert (folder / "places.csv").read_text() == "place\nGhent\n"
    assert not (folder / "total.csv").exists()
