"""The notebooks run from top to bottom, and say what they claim."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dpframe as dp

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"


def run(name: str) -> dict:
    """Run a notebook's code cells in one namespace."""
    space: dict = {}
    for cell in json.loads((NOTEBOOKS / name).read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), name, "exec"), space)
    return space


def test_the_first_look_runs(quiet):
    assert isinstance(run("first-look.ipynb")["s"], dp.Session)


def test_a_hundred_rounds_of_gradients_stay_below_their_budget_and_learn(quiet, capsys):
    space = run("gradients.ipynb")
    s = space["s"]
    assert 100 <= len(s.releases) < 103
    assert float(s.spent.eps) <= 3
    assert "rho" in capsys.readouterr().out
    truth = space["accuracy"](space["truth"])
    assert truth > 0.8
    assert space["accuracy"](space["weights"]) > truth - 0.01


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda p: p.name)
def test_notebooks_are_kept_without_outputs(path):
    for cell in json.loads(path.read_text())["cells"]:
        assert not cell.get("outputs")
