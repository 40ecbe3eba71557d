"""Answers from integers of one draw: intervals cover, standard deviations are right, alone and against each other.

Wrong by chance below 1e-9: binomial bounds at 1e-12 a comparison (some hundreds), and spreads of a fixed stream of bits.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import chance
import numpy as np
import polars as pl
import pytest
from joint_tools import FINE, ROWS, cells, exact_cells, mean, released, row_noise, share

import dpframe as dp
from dpframe.layout.answers import Linear
from dpframe.layout.moments import Quotient, Root, covariance, variance
from dpframe.mechanisms.joint import Coordinate
from dpframe.mechanisms.row import Block
from dpframe.release.release import Release

pytestmark = pytest.mark.usefixtures("quiet")
pytestmark = pytest.mark.usefixtures("fixed_draws")  # spreads have no exact tail
ALARM = 1e-12
MEANS = {
    "complete": [Block(FINE)] * 5,
    "nullable": [Block(FINE, 1, True)] * 3,
    "Boolean": [Block(1, 1, True), Block(FINE, 1, True)],
}


def covered(ends, truth):
    low, high = ends
    return float(np.mean((low <= truth + 1e-9) & (truth - 1e-9 <= high)))


@pytest.mark.parametrize("blocks", MEANS.values(), ids=MEANS)
@pytest.mark.parametrize("eps", ["0.1", "1", "3", "10"])
def test_intervals_of_means_cover(blocks, eps):
    noise, many, level = row_noise(blocks, eps), 50_000, 0.95
    laws, steps = cells(noise, 0), blocks[0].steps
    off = released(laws, (0, 0), many)
    widest = 0.0
    for n in (1, 30, 10**5):
        for mu in (0, 0.3, 1):
            exact = exact_cells(steps, n, mu)
            ends = mean(0, steps).interval([e + x for e, x in zip(exact, off)], laws, level)
            share_inside = covered(ends, exact[0] / steps / n)
            assert share_inside >= chance.least_share(many, level, ALARM)
            widest = max(widest, share_inside if n == 10**5 and mu == 0.3 else 0)
    assert steps == 1 or widest <= 0.96  # and are no wider than they need be


@pytest.mark.parametrize(
    ("missing", "n", "halves"),
    [
        (True, 1, (2.056, 2.448, 2.921, 2.996)),
        (True, 3, (3.74, 4.43, 5.24, 5.36)),
        (True, 10, (9.48, 10.84, 12.46, 12.72)),
        (False, 2, (2.599, 3.116, 3.724, 3.820)),
        (False, 5, (4.134, 5.043, 6.045, 6.199)),
    ],
)
def test_half_widths_of_means_are_those_of_the_limit(missing, n, halves):
    """What quadrature of the limit gives for bounds of width D, in D/n at eps 1/4: within 2 %."""
    noise = row_noise([Block(FINE, 1, missing)] * n, "0.25")
    laws, rows = cells(noise, n - 1), 10**7
    for mu, half in zip((0, 0.6, 0.95, 1), halves):
        low, high = mean(0, FINE).interval(
            [np.array([e]) for e in exact_cells(FINE, rows, (1 + mu) / 2)], laws, 0.95
        )
        # at the bound the interval is cut there
        found = (high - low)[0] / (1 if mu == 1 else 2) * rows * 0.25
        assert found == pytest.approx(half, rel=0.02)


def answers_of_one_draw(eps):
    """Laws, exact integers and answers of n rows: a count, a mean, a variance, a covariance, a sum over a count."""
    noise = row_noise([Block(FINE, 1, True), Block(2**16, 2, True), Block(2**16, 3, True)], eps)
    n = 10**6
    small = 2**16
    laws = [
        share(noise, {ROWS: 1}),
        *cells(noise, 0),
        *cells(noise, 1),
        *cells(noise, 2),
        share(noise, {Coordinate(0): 1}),
    ]
    exact = [n, *exact_cells(FINE, n, 0.3)]
    exact += [small * n // 2, small * n // 8, small * n - small * n // 2 - small * n // 8]
    exact += [small * n // 8, small * n // 4, small * n // 8, small * n - small * n // 2, n]
    spread = variance((3, 4, 5), small, Fraction(1, 4), 1)
    answers = {
        "count": Linear(((0, Fraction(1)),), integer=True),
        "sum": Linear(((1, Fraction(1, FINE)), (2, Fraction(-1, FINE)))),
        "mean": mean(1, FINE),
        "variance": spread,
        "root": Root(spread),
        "covariance": covariance((6, 7, 8, 9), small, Fraction(1, 4), 1),
        "quotient": Quotient(1, Fraction(1, FINE), 10, Fraction(1)),
    }
    return laws, exact, answers


@pytest.mark.parametrize("eps", ["0.2", "1", "4"])
def test_standard_deviations_are_those_of_the_draws(eps):
    laws, exact, answers = answers_of_one_draw(eps)
    noisy = released(laws, exact, 200_000)
    middle = [np.array([e]) for e in exact]
    for name, answer in answers.items():
        off = answer.value(noisy) - answer.value(middle)[0]
        said = answer.std(middle, laws)[0]
        error = 7 * np.std(off**2) / np.mean(off**2) / np.sqrt(len(off)) / 2
        assert np.sqrt(np.mean(off**2)) == pytest.approx(said, rel=max(0.02, error)), name
        if eps != "4" or name in ("count", "mean", "quotient"):
            assert error < 0.04
        inside = covered(answer.interval(noisy, laws, 0.95), answer.value(middle)[0])
        assert inside >= chance.least_share(len(off), 0.95, ALARM), name
        assert inside <= 0.995 or answer.integer or eps == "4", name


# ---- releases ----

GROUPS = 20_000
KEYS = range(GROUPS)
ROWS_EACH = 5_000


@pytest.fixture(scope="module")
def one_run():
    """A table of 20,000 groups, each with its own draw of n, present rows, and cells of two means and a sum: a function of eps."""
    frame = pl.DataFrame({"g": [0], "x": [0.5], "y": [0.5], "z": [0.5]})
    with dp.Session(eps=10**6) as s:
        frame.dp.groupby("g", keys=KEYS).dp_agg(
            n=dp.count(),
            a=dp.clip_mean("x", bounds=(0, 1)),
            b=dp.clip_mean("y", bounds=(0, 1)),
            c=dp.clip_sum("z", bounds=(0, 1)),
            eps=1,
            mechanism="laplace",
        )
        asked = s.last
    plan = asked.plan

    def make(eps, draw="0" * 32):
        noise = row_noise([Block(FINE, 1, True), Block(FINE, 1, True), Block(FINE)], eps)
        laws = [
            share(noise, {ROWS: 1}),
            *cells(noise, 0),
            *cells(noise, 1),
            share(noise, {Coordinate(2, 0): 1}),
        ]
        exact = (ROWS_EACH, *exact_cells(FINE, ROWS_EACH, 0.3), *exact_cells(FINE, ROWS_EACH, 0.9))
        noisy = released(laws, (*exact, ROWS_EACH * FINE // 4), GROUPS)
        pieces = tuple(replace(plan.pieces[0], noise=law) for law in laws)
        part = {o.name: o for o in plan.outputs}
        outputs = tuple(
            replace(part[name], answer=answer)
            for name, answer in (
                ("n", Linear(((0, Fraction(1)),), integer=True)),
                ("a", mean(1, FINE)),
                ("b", mean(3, FINE)),
                ("c", Linear(((5, Fraction(1, FINE)),))),
            )
        )
        made = replace(plan, pieces=pieces, outputs=outputs)
        return Release(made, noisy, asked._keys, label=None, ci=None, time=asked.time, draw=draw)

    return make


TRUTHS = {"n": ROWS_EACH, "a": 0.3, "b": 0.9, "c": ROWS_EACH / 4}


@pytest.mark.parametrize("eps", ["0.2", "1", "3"])
@pytest.mark.parametrize("pair", ["ab", "ba", "nc", "cn", "an", "ca"])
def test_differences_and_ratios_within_one_draw(one_run, pair, eps):
    release = one_run(eps)
    first, second = pair
    for made, name, truth in (
        (dp.difference, "difference", TRUTHS[first] - TRUTHS[second]),
        (dp.ratio, "ratio", TRUTHS[first] / TRUTHS[second]),
    ):
        found = made((release, first), (release, second))
        off = np.asarray(found.value[name]) - truth
        said = float(np.median(np.asarray(found.std[name])))
        error = 7 * np.std(off**2) / np.mean(off**2) / np.sqrt(GROUPS) / 2
        assert np.sqrt(np.mean(off**2)) == pytest.approx(said, rel=max(0.02, error))
        for level in (0.5, 0.95):
            ends = found.interval(level)
            inside = covered((ends[f"{name}_low"].to_numpy(), ends[f"{name}_high"].to_numpy()), truth)
            assert inside >= chance.least_share(GROUPS, level, ALARM)
        assert inside <= 0.9999


def test_what_is_of_one_draw_is_not_taken_as_independent(one_run):
    """The count and the sum of one row move together: their difference has less noise than that of two draws, the sum more."""
    release, other = one_run("1"), one_run("1", draw="1" * 32)
    n, c = release.plan.outputs[0], release.plan.outputs[3]
    together = dp.difference((release, "c"), (release, "n"))
    apart = dp.difference((release, "c"), (other, "n"))
    law, count = release.plan.laws[5], release.plan.laws[0]
    rho = np.corrcoef(c.answer.value(release._noisy), n.answer.value(release._noisy))[0, 1]
    assert 0.2 < rho < 0.8
    independent = np.hypot(law.std / FINE, count.std)
    assert apart.std["difference"][0] == pytest.approx(independent)
    assert together.std["difference"][0] < 0.9 * independent
    width = [x.interval(0.95)["difference_high"][0] - x.value["difference"][0] for x in (together, apart)]
    assert width[0] < 0.95 * width[1]


def test_one_release_with_itself(one_run):
    release = one_run("1")
    assert np.all(dp.difference((release, "n"), (release, "n")).std["difference"].to_numpy() == 0)
    with pytest.raises(dp.InputError, match="same noise"):
        dp.difference((release, "a"), (release, "a"))


def test_a_replayed_release_is_the_same_draw(one_run):
    release, again = one_run("1"), one_run("1")
    again._noisy = release._noisy
    again._columns = again._answers()
    assert dp.difference((release, "c"), (again, "n")).std["difference"][0] == pytest.approx(
        dp.difference((release, "c"), (release, "n")).std["difference"][0]
    )


def test_groups_that_add_up(one_run):
    """consistent: groups have draws of their own, and so has the total."""
    release = one_run("1")
    frame = pl.DataFrame({"z": [0.5] * 10, "x": [0.5] * 10})
    with dp.Session(eps=10**6) as s:
        frame.dp.clip_sum("z", bounds=(0, 1), eps=1)
        total = s.last
    found = dp.consistent((release, "c"), total)
    assert found.std["consistent"][0] == pytest.approx(release.plan.laws[5].std / FINE, rel=1e-3)
