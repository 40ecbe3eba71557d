"""What is inside a session stays in session/; and a session in memory needs no database."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import dpframe
from dpframe.session.session import Session

PACKAGE = Path(dpframe.__file__).parent
PRIVATE = {k for k in vars(Session(eps=1, accountant="sum")) if k.startswith("_")}


def test_no_other_room_reads_the_fields_of_a_session():
    """By the usual names of a session, and by every field that nothing but a session has."""
    shared = "_ledger _budget _policy _scope _limits _part _pid _labels _asked _paid"  # others have such fields, too
    owned = PRIVATE.difference(shared.split())
    own = re.compile(rf"\.({'|'.join(sorted(owned))})\b")
    named = re.compile(r"\b(session|payer|_session|spent)\._(?!conn\b)[a-z]")
    found = [
        f"{path.relative_to(PACKAGE)}:{n}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.parent.name != "session"
        for n, line in enumerate(path.read_text().splitlines(), 1)
        if named.search(line) or (own.search(line) and not re.search(r"self\._", line))
    ]
    assert found == []


@pytest.mark.parametrize("asked", ["count(eps=0.1)", "clip_sum('x', B=1, eps=0.1)"])
def test_a_call_in_memory_loads_no_database(asked):
    code = (
        "import sys, warnings, polars as pl, dpframe as dp; warnings.simplefilter('ignore')\n"
        f"with dp.Session(eps=1) as s: pl.DataFrame({{'x': [1.0]}}).dp.{asked}; repr(s); s.report(); s.statement()\n"
        "print(sorted(x for x in sys.modules if 'sqlite3' in x or x.startswith('dpframe.ledger')))"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.strip() == "[]"
