"""What the default suite leaves to the audit, and what it keeps."""

from __future__ import annotations

import itertools

import pytest
from sizes import covering

VALUES = {"kind": "abc", "relation": "rs", "grouped": "gh", "unit": "uv", "question": "1234567"}
RUNS = [dict(zip(VALUES, run)) for run in itertools.product(*VALUES.values())]


@pytest.mark.parametrize(("strength", "most"), [(1, 12), (2, 45), (5, len(RUNS))])
def test_values_that_are_to_occur_together_do(strength, most):
    kept = [run for run, stays in zip(RUNS, covering(RUNS, strength)) if stays]
    assert len(kept) <= most
    for names in itertools.combinations(VALUES, strength):
        wanted = set(itertools.product(*(VALUES[n] for n in names)))
        assert {tuple(run[n] for n in names) for run in kept} == wanted


def test_every_process_keeps_the_same_runs():
    """Workers of one suite decide each for themselves."""
    assert covering(RUNS, 2) == covering([dict(reversed(run.items())) for run in RUNS], 2)
    assert covering([], 2) == []
