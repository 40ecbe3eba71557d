"""The audit of the package itself, at its smallest, and its command."""

from __future__ import annotations

import pytest

import dpframe as dp
from dpframe.audit import answers, inside, run
from dpframe.audit.run import SIZES, Figure
from dpframe.cli import main
from dpframe.noise.strips import StripSampler

pytestmark = pytest.mark.filterwarnings("ignore::dpframe.DPWarning")

SMALL = SIZES["small"]
SOME = {
    1: ["count", "clip_sum", "clip_mean", "vector_mean", "count, moved", "heavy units", "three rows"],
    2: [
        "agg; add_remove; row",
        "clip_cov; replace_one; unit",
        "count_units; add_remove; unit",
        "clip_mean; replace_one; 3 rows",
    ],
    3: answers.parts_3(),
    4: ["polars, Float64", "lazy, Decimal", "pandas, Int64", "pandas, Boolean"],
    7: inside.parts_7(),
    8: inside.parts_8(),
    9: [p for p in inside.parts_9() if p != "cactus"],
}
PARTS = [
    # forked children do not share the operating system's bits
    pytest.param(f, part, marks=[pytest.mark.fresh_draws] if f == 7 else [])
    for f, parts in SOME.items()
    for part in parts
]


@pytest.mark.parametrize(("number", "part"), PARTS, ids=lambda x: str(x))
def test_figures_are_as_promised(number, part):
    module = answers if number <= 4 else inside
    assert part in getattr(module, f"parts_{number}")()
    figure = getattr(module, f"figure_{number}")(part, SMALL)
    assert figure.ok, run.line(figure)


@pytest.mark.parametrize("verb", ["count", "clip_sum"])
def test_little_of_the_epsilon_is_wasted(verb):
    """At eps 1 the worst pair of a count or a sum is told apart by .85 or more."""
    figure = answers.figure_1(verb, run.Size(200_000, 3, 0, 0, 0, (), 0))
    assert figure.ok, run.line(figure)
    assert ".85" in figure.wanted


def test_a_wrong_mechanism_fails_the_figure_of_its_verb(monkeypatch):
    """A planted fault: noise of the same claim at a scale that is 30 % too small."""
    true = StripSampler.sample
    monkeypatch.setattr(StripSampler, "sample", lambda self, size: (true(self, size) * 70) // 100)
    assert not answers.figure_1("clip_sum", SMALL).ok


def test_the_command_prints_a_table(capsys):
    assert main(["audit", "--size", "small", "--figures", "8", "--jobs", "1"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 2
    assert out[0].startswith("ok   ")
    assert out[1].endswith(" 0 not as wanted")


def test_a_figure_that_is_not_as_wanted_is_exit_7(capsys, monkeypatch):
    bad = Figure(7, "seeds", "1 parameters that seed noise", "0", False)
    monkeypatch.setattr(inside, "figure_7", lambda part, size: bad)
    assert main(["audit", "--size", "small", "--figures", "7", "--jobs", "1"]) == 7
    assert "FAIL 7" in capsys.readouterr().out


def test_several_processes_measure_the_same():
    alone, together = (run.run("small", [8], jobs=j) for j in (1, 2))
    assert alone == together


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--size", "huge"], "--size huge is not one. Hint: --size small"),
        (["--figures", "5"], "figure 5"),
        (["--jobs", "0"], "--jobs 0 must be a whole number from 1. Hint: --jobs 2"),
    ],
)
def test_a_wrong_size_or_figure_is_named(arguments, says, capsys):
    assert main(["audit", *arguments]) == 2
    assert says in capsys.readouterr().err
    with pytest.raises(dp.InputError, match="Hint"):
        run.run("huge")
