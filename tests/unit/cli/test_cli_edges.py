"""The command line at its edges: what is printed never decides what is released; odd input is one line and a code."""

from __future__ import annotations

import os
import subprocess
import sys

import polars as pl
import pytest

import dpframe as dp
from dpframe.cli import commands as cli

HEAD = 'name = "job"\n[source]\npath = "people.parquet"\n[budget]\neps = 1.0\n'
QUERY = '[[query]]\nname = "{0}"\nstatistic = "count"\noutputs = "{1}.csv"\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DPFRAME_REQUIRE_SESSION", "0")
    pl.DataFrame({"x": [1.0] * 100}).write_parquet(tmp_path / "people.parquet")
    (tmp_path / "job.toml").write_text(HEAD + QUERY.format("é→a", "a") + QUERY.format("b", "b"))
    return tmp_path


def shell(folder, line, **env):
    """A line of a shell in which ``dpframe`` is the command."""
    package = os.path.dirname(os.path.dirname(dp.__file__))
    line = line.replace("dpframe ", f"{sys.executable} -m dpframe ")
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": package, **env},
    )


@pytest.mark.parametrize(
    "line",
    [
        "dpframe run job.toml > /dev/full",
        "dpframe run job.toml | true",
        "dpframe run job.toml > /dev/full 2>&1",
        "PYTHONIOENCODING=ascii dpframe run job.toml",
        "dpframe run job.toml >&-",
    ],
)
def test_a_run_goes_to_its_end_where_nobody_reads(folder, line):
    done = shell(folder, line)
    assert done.returncode == 0, done
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert (folder / "a.csv").exists()
    assert (folder / "b.csv").exists()


@pytest.mark.parametrize("command", ["plan job.toml", "ledger export b.db", "ledger show b.db"])
def test_a_reader_that_has_enough_is_no_error(folder, command):
    dp.Ledger.create(folder / "b.db", eps=1).close()
    done = shell(folder, f"dpframe {command} | true")
    assert (done.returncode, done.stderr) == (0, "")
    done = shell(folder, f"dpframe {command} > /dev/full")
    assert done.returncode == 5
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr


def test_an_input_that_is_not_there_yet_is_exit_8(folder, capsys):
    os.rename(folder / "people.parquet", folder / "later.parquet")
    for command in ("plan", "run"):
        assert cli.main([command, str(folder / "job.toml")]) == 8
        assert "job.toml:3: There is no readable file" in capsys.readouterr().err
    os.rename(folder / "later.parquet", folder / "people.parquet")
    assert cli.main(["run", str(folder / "job.toml")]) == 0


def test_plan_says_what_is_left_in_the_ledger_and_not_in_the_files_own_cap(folder, capsys):
    dp.Ledger.create(folder / "b.db", eps=7, delta=1e-6).close()
    (folder / "job.toml").write_text(
        (folder / "job.toml").read_text().replace("eps = 1.0", 'eps = 1.0\nledger = "b.db"')
    )
    assert cli.main(["plan", str(folder / "job.toml")]) == 0
    assert "left in the ledger eps=7, delta=5e-07" in capsys.readouterr().out


def test_a_run_that_fails_says_for_each_query_what_happened(folder, capsys, monkeypatch):
    text = HEAD + "".join(QUERY.format(n, n) for n in "abc")
    (folder / "job.toml").write_text(text)
    write = dp.Release.write

    def failing(release, path):
        if path.endswith("b.csv"):
            raise OSError(28, "No space left on device", path)
        return write(release, path)

    monkeypatch.setattr(dp.Release, "write", failing)
    assert cli.main(["run", str(folder / "job.toml")]) == 5
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "released 'a': eps=1/3, a.csv",
        "not written 'b': charged eps=1/3",
        "not released 'c': not asked",
    ]
    assert "dpframe: No space left on device" in said.err


NINES = "9" * 5000


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("eps = 1.0", "eps = " + "[" * 5000 + "]" * 5000),
        ("eps = 1.0", f"eps = {NINES}"),
        ("eps = 1.0", f"eps = '{NINES}/3'"),
        ("eps = 1.0", "eps = 1e400000000"),
        ('outputs = "b.csv"', 'outputs = "b\\u0000.csv"'),
        ('path = "people.parquet"', 'path = "people\\u0000.parquet"'),
        ('path = "people.parquet"', "uri = 'duckdb://[x?table=a'"),
        ('path = "people.parquet"', "uri = 'spark://[::x?table=a'"),
        ('path = "people.parquet"', "uri = 'duckdb:people.parquet?table=x'"),
        ('name = "job"', "name = 1979-05-27"),
        ('name = "b"', 'name = "b"\nrows = [1]'),
        ('statistic = "count"', 'statistic = "count"\nkeys = { a = 1 }'),
    ],
)
def test_odd_files_are_one_line_and_exit_2(folder, capsys, old, new):
    text = (folder / "job.toml").read_text()
    assert old in text
    (folder / "job.toml").write_text(text.replace(old, new))
    assert cli.main(["run", str(folder / "job.toml")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert len(said) < 1000
    assert not (folder / "a.csv").exists()


@pytest.mark.parametrize(
    "number", ["1e400000000", "1E-400000000", f"{NINES}/7", "nan", "inf", "-1", "0x1", ""]
)
@pytest.mark.parametrize("option", ["eps", "rho", "delta", "order"])
def test_odd_numbers_are_one_line_at_once(folder, capsys, number, option):
    given = {"eps": "1", "delta": "1e-6", "accountant": "rdp"}
    given = ({"rho": number} if option == "rho" else {**given, option: number}) | {}
    arguments = [x for k, v in given.items() for x in (f"--{k}={v}",)]
    assert cli.main(["ledger", "create", str(folder / "b.db"), *arguments]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert len(said) < 600
    assert not (folder / "b.db").exists()
