"""A stored answer names the version that drew it, whatever version returns it."""

from __future__ import annotations

import polars as pl

import dpframe as dp
from dpframe.ledger import log
from dpframe.release import release


def test_a_replay_names_the_version_that_drew_it(tmp_path, monkeypatch):
    dp.Ledger.create(tmp_path / "b.db", eps=1).close()
    frame = pl.DataFrame({"x": [1.0] * 9})

    def facts():
        with dp.Session(ledger=tmp_path / "b.db") as s:
            frame.dp.count(eps=0.5, request_id="n")
            return s.last.facts

    with monkeypatch.context() as m:
        m.setattr(log, "__version__", "0.0.9")
        m.setattr(release, "__version__", "0.0.9")
        drawn = facts()
    replayed = facts()
    assert drawn["dpframe"] == "0.0.9"
    assert replayed == drawn
    assert dp.__version__ != "0.0.9"
