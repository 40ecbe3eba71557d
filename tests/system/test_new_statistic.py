"""CONTRIBUTING's new statistic, done: one file, one line and one call in a copy of the package, and it is everywhere."""

from __future__ import annotations

import doctest
import os
import shutil
import subprocess
import sys
from pathlib import Path

import dpframe as dp

ROOT = Path(__file__).parents[2]
LINE = "from dpframe.statistics.mean_square import clip_mean_square as clip_mean_square\n"
ASKED = """
import dpframe as dp, pandas as pd, polars as pl
from dpframe.audit import questions
from dpframe.testing import check_statistic

assert "clip_mean_square" in dp.__all__ and "clip_mean_square" in questions.VERBS
plain = lambda d: (d["x"].fill_nan(None).drop_nulls().clip(-10, 10) ** 2).mean()
print(check_statistic(dp.clip_mean_square("x", B=10), plain, within=0.02))
df = pl.DataFrame({"g": ["a", "a", "b"], "x": [1.0, -2.0, 3.0]})
with dp.Session(eps=1e9):
    print(round(df.dp.clip_mean_square("x", B=10, eps=1e6), 1))
    print(round(df.to_pandas().dp.plan.clip_mean_square("x", B=10, eps=1e6).release().value, 1))
    print(df.dp.groupby("g", keys=["a", "b"]).clip_mean_square("x", B=10, eps=1e6, round=1).rows())
for wrong in (lambda: df.dp.mse("x"), lambda: df.dp.clip_mean_square("x", lower=1, eps=1), lambda: df.dp.clip_mean_square()):
    try:
        wrong()
    except Exception as e:
        print(str(e))
print("Privacy:" in df.dp.clip_mean_square.__doc__, "Short for ``bounds=(-B, B)``" in df.dp.clip_mean_square.__doc__)
"""


def page(start: str) -> str:
    """The source of the example that has ``start``, as a file."""
    for example in doctest.DocTestParser().get_examples((ROOT / "CONTRIBUTING.md").read_text()):
        if start in example.source:
            return example.source
    raise AssertionError(start)


def test_one_file_one_line_one_call(tmp_path):
    copy = tmp_path / "dpframe"
    shutil.copytree(Path(dp.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    imports = "".join(
        e.source
        for e in doctest.DocTestParser().get_examples((ROOT / "CONTRIBUTING.md").read_text())
        if e.source.startswith(
            ("from dataclasses", "from fractions", "from dpframe.layout", "from dpframe.statistics")
        )
    )
    text = imports + page("class ClipMeanSquare") + page("def clip_mean_square(")
    (copy / "statistics" / "mean_square.py").write_text(text)
    table = copy / "statistics" / "table.py"
    table.write_text(table.read_text().replace("\nSTATISTICS:", f"{LINE}\nSTATISTICS:", 1))
    run = subprocess.run(
        [sys.executable, "-c", ASKED],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "Agrees(values=102, pairs=148)",
        "4.7",
        "4.7",
        "[('a', 2.5), ('b', 9.0)]",
        "df.dp has no 'mse'. Hint: df.dp.clip_mean_square('x', B=100, eps=0.5)",
        "clip_mean_square has no argument 'lower'. Hint: bounds=(low, high)",
        "clip_mean_square needs a column. Hint: clip_mean_square('x', B=100, eps=0.5)",
        "True True",
    ]
