"""The notebooks run from top to bottom, and say what they claim."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dpframe as dp

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


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


def test_an_afternoon_stays_within_its_budget_and_learns_when_to_fly(quiet, capsys):
    space = run("analysts-afternoon.ipynb")
    assert space["s"].spent == 1.65
    hours = space["hours"].set_index("hour")["late"]
    assert hours[6] < 0.15 < 0.25 < hours[19]
    assert "asks for eps=" in capsys.readouterr().out


def test_a_table_with_rare_categories_shows_no_rare_one_and_holds_its_margins(quiet, capsys):
    space = run("statistical-table.ipynb")
    assert space["table"].height == 56
    assert space["inside"] > 0.68  # 95 % are expected of 56: fewer than 39 by a chance of 2e-10
    assert "cancer" in set(space["found"]["cause"])
    assert "rabies" not in set(space["found"]["cause"])
    rare = space["printed"].filter(space["printed"]["cause"] == "rabies")
    assert (rare["shown"] == "few").sum() >= 6
    assert "Privacy statement" in capsys.readouterr().out


def test_a_nightly_job_is_charged_once_a_night_and_refused_the_eighth(quiet, capsys):
    space = run("nightly-job.ipynb")
    assert space["again"].replayed
    assert space["account"]["eps"].to_list() == [2.0] * 7
    assert "nothing is left of eps=14" in capsys.readouterr().out
    assert space["published"].shape[0] == 21


def test_the_mechanism_zoo_draws_what_it_says(quiet):
    pytest.importorskip("altair", reason="the pictures need dpframe[plot]")
    space = run("mechanism-zoo.ipynb")
    for name in ("founding", "zoo", "against_eps", "sixteen", "against_delta", "price"):
        assert space[name].to_dict()["datasets"], name
    assert space["chosen"] == {0.1: "laplace", 0.5: "laplace", 3: "staircase", 10: "staircase"}


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda p: p.name)
def test_notebooks_are_kept_without_outputs(path):
    for cell in json.loads(path.read_text())["cells"]:
        assert not cell.get("outputs")
