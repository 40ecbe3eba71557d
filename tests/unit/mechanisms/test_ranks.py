"""Dividing rows at a chosen rank: privacy on all small counts, draws, ranks among ties, and rank errors.

Statistical checks have a false-alarm rate of at most 1e-9 each.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import chance
import numpy as np
import polars as pl
import pytest
from laws import alarm, exp, furthest, joint_law, ranks_told, tells

import dpframe as dp
from conftest import as_kind, as_polars
from dpframe.mechanisms import ranks
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.choosers import Reach
from dpframe.mechanisms.ranks import Candidates, Places, draw, quantiles

RELATIONS = ("add_remove", "replace_one")
each_relation = pytest.mark.parametrize("relation", RELATIONS)


@pytest.fixture(autouse=True)
def _quiet(quiet):
    """No test here is about notices."""


def counted(rows):
    """Occupied bins and their rows."""
    bins = np.array([i for i, m in enumerate(rows) if m], dtype=np.int64)
    return bins, np.array([m for m in rows if m], dtype=np.int64)


def steps(rows, relation, size=1):
    """All counts that a unit of up to ``size`` rows makes of ``rows``: it comes, or it becomes another."""
    k = len(rows)
    come = [
        np.add(rows, np.bincount(at, minlength=k).astype(int))
        for r in range(1, size + 1)
        for at in itertools.combinations_with_replacement(range(k), r)
    ]
    if relation == "add_remove":
        return [(rows, tuple(c)) for c in come]
    return [(tuple(a), tuple(b)) for a, b in itertools.combinations([np.array(rows), *come], 2)]


class Laws:
    """The law of all places and candidates that a chooser draws, for each vector of counts."""

    def __init__(self, made):
        self.made, self.known = made, {}

    def __call__(self, rows):
        if rows not in self.known:
            self.known[rows] = joint_law(lambda: self.made.choose(*counted(rows)), self.made.width)
        return self.known[rows]


def largest_loss(laws, most, k, relation, size=1):
    shared = [r for r in itertools.product(range(most + 1), repeat=k) if sum(r) <= most]
    return max(furthest(laws(a), laws(b)) for r in shared for a, b in steps(r, relation, size))


RANKS = [((1, 2), 4), ((1, 3), 4), ((1, 2, 3), 4), ((0, 1), 2), ((1, 2), 2), ((0, 1, 2), 2), ((1, 9), 10)]


@pytest.mark.parametrize("places", [1, 2, 3, 5])
@pytest.mark.parametrize(("ranks_asked", "parts"), RANKS)
@each_relation
def test_all_that_is_drawn_loses_eps_and_no_more(monkeypatch, relation, ranks_asked, parts, places):
    """Every place and candidate of every draw, on all counts of up to 3 rows and one more; eps = 1."""
    monkeypatch.setattr(ranks, "PLACES", places)
    made = quantiles(1, ranks_asked, parts, Reach(replace=relation == "replace_one"), Target(Fraction(1)))
    loss = largest_loss(Laws(made), 3, 2, relation)
    assert loss <= 1 + 1e-9
    assert loss >= 0.1, "and the budget is not wasted"


@each_relation
def test_units_of_two_rows_lose_eps_over_all_parts(monkeypatch, relation):
    monkeypatch.setattr(ranks, "PLACES", 3)
    reach = Reach(replace=relation == "replace_one", rows=2)
    made = quantiles(2, (1, 2, 3), 4, reach, Target(Fraction(1)))
    assert 0.2 <= largest_loss(Laws(made), 2, 3, relation, 2) <= 1 + 1e-9


def parts_at(made, counts, place):
    """The counts of the two parts that rows are divided into when ``place`` is drawn."""
    found, between = [], ranks.Quantiles._between

    def noted(self, bins, rows, *rest):
        whole = np.zeros(made.last + 1, dtype=int)
        whole[bins] = rows
        found.append(whole)
        if len(found) == 1:  # the whole; its parts follow
            between(self, bins, rows, *rest)

    with ranks_told((place,)), pytest.MonkeyPatch.context() as m:
        m.setattr(ranks.Quantiles, "_between", noted)
        made.choose(*counted(counts))
    assert len(found) == 3
    assert (found[0] == found[1] + found[2]).all()
    return np.concatenate(found[1:])


def furthest_parts(made):
    """How far one row more moves the counts of both parts together, over all places and small counts."""
    shared = [r for r in itertools.product(range(4), repeat=3) if sum(r) <= 4]
    pairs = [(a, b) for r in shared for a, b in steps(r, "add_remove")]
    return max(
        np.abs(parts_at(made, a, place) - parts_at(made, b, place)).sum()
        for a, b in pairs
        for place in range(3 * ranks.PLACES)
    )


def test_a_row_more_is_in_one_part_and_the_other_does_not_change(monkeypatch):
    """And the rule that looks right is not: as many of a tie go left as the rank needs.

    One row more below then sends a row of the tie to the right: three counts move, in both parts.
    """
    monkeypatch.setattr(ranks, "PLACES", 3)
    made = quantiles(2, (1, 2, 3), 4, Reach(), Target(Fraction(1)))
    assert furthest_parts(made) == 1

    def needed(self, place):
        c, under, own = self._at(place)
        return c, np.clip(self._target // self.d - under, 0, own)

    monkeypatch.setattr(Places, "divide", needed)
    assert furthest_parts(made) > 1


@pytest.mark.parametrize("q", [0, 1])
@each_relation
def test_the_ends_spend_all_of_eps(relation, q):
    """At q = 0 and 1 one row moves all utilities the same way: the rate is eps, twice that of a median's bound."""
    made = quantiles(2, (q,), 1, Reach(replace=relation == "replace_one"), Target(Fraction(1)))
    assert made.scale == 1
    assert 0.9 <= largest_loss(Laws(made), 8, 3, relation) <= 1 + 1e-9


def test_the_ends_lose_eps_over_groups_and_units():
    """Between groups a row vanishes in one and appears in another: half of eps each."""
    for q in (0, 1):
        apart = quantiles(2, (q,), 1, Reach(replace=True, several=True), Target(Fraction(1)))
        loss = largest_loss(Laws(apart), 4, 3, "add_remove")
        assert 0.4 <= loss <= 0.5 + 1e-9
        pairs = quantiles(2, (q,), 1, Reach(rows=2, groups=3), Target(Fraction(1)))
        assert 0.2 <= largest_loss(Laws(pairs), 3, 3, "add_remove", 2) <= 1 / 3 + 1e-9


def test_the_checks_fail_when_a_rank_is_taken_for_an_end(monkeypatch):
    made = quantiles(2, (1,), 4, Reach(), Target(Fraction(1)))
    monkeypatch.setattr(ranks.Quantiles, "_rate", lambda self, a, d: self.base)
    assert largest_loss(Laws(made), 8, 3, "add_remove") > 1.05


def test_whatever_the_tie_one_row_more_sends_one_row_at_most_to_either_side():
    at = ranks.PLACES + np.array([0, 1, 12345, ranks.PLACES // 2, ranks.PLACES // 3, ranks.PLACES - 1])
    for m in (*range(200), 10**6, 2**31):
        less, more = (Places(np.array([1]), np.array([rows]), (0, 2), 1, 2).divide(at) for rows in (m, m + 1))
        assert (less[0] == 1).all()
        assert set(more[1] - less[1]) <= {0, 1}
        assert less[1].min() == 0
        assert less[1].max() <= m


@pytest.mark.parametrize("places", [1, 4, 7, None])
@pytest.mark.parametrize("rank", [(0, 1), (1, 2), (3, 10), (1, 1)])
@pytest.mark.parametrize("counts", [[0, 0, 4, 1, 0, 0, 9, 0], [0, 0, 0], [5], [7, 0, 7]])
def test_gaps_below_an_edge_are_one_interval_of_the_line(monkeypatch, places, rank, counts):
    """Of ``places`` to a candidate; None: candidates themselves."""
    monkeypatch.setattr(ranks, "PLACES", places)
    line = (Candidates if places is None else Places)(*counted(counts), (0, len(counts) - 1), *rank)
    gaps = line.gap(np.arange(line.size))
    edges = np.arange(1, line.most + 2)
    low, high = line.within(edges)
    for edge, first, end in zip(edges, low, high):
        inside = np.flatnonzero(gaps < edge)
        assert inside.tolist() == list(range(first, end))
    assert gaps.max() <= line.most


@pytest.mark.parametrize("kind", [Candidates, Places])
@pytest.mark.parametrize("rate", [Fraction(1, 40), Fraction(3, 2), Fraction(10**6)])
@pytest.mark.parametrize("counts", [[0, 0, 0], [3, 0, 40, 1, 0, 2], [0, 25, 0, 0], [1, 1, 1, 1, 1]])
def test_draws_follow_the_law(monkeypatch, kind, counts, rate):
    """Shells and coins are only how it is drawn: 1,500 draws against exp(-rate * gap) over all places."""
    monkeypatch.setattr(ranks, "PLACES", 16)
    monkeypatch.setattr(ranks, "_FAR", 2)  # so that the last shell is drawn from, too
    line = kind(*counted(counts), (0, len(counts) - 1), 2, 5)
    with ranks_told() as laws:
        ranks.draw(line, rate)
        ranks.draw(line, rate * 4)
    law, narrower = map(exp, laws)
    draws = np.bincount([draw(line, rate) for _ in range(1_500)], minlength=line.size)
    assert not alarm(draws, law)
    if counts[0] == 3 and rate < 1:
        assert tells(law, narrower, 1_500), "the check can fail"


@pytest.mark.parametrize("values", ["few", "one", "two", "runs"])
@pytest.mark.parametrize("n", [0, 1, 2, 999, 1000, 100_000])
def test_at_a_huge_eps_several_quantiles_are_the_plain_ones_whatever_the_ties(kind, values, n):
    """Ranks of parts are whole numbers of rows: half a row off for every level above."""
    rng = np.random.default_rng([n, len(values)])
    cells, p = {
        "few": ([0, 3, 4, 50], [0.02, 0.6, 0.3, 0.08]),
        "one": ([7], [1.0]),
        "two": ([0, 99], [0.5, 0.5]),
        "runs": (list(range(100)), [0.9, *[0.1 / 99] * 99]),
    }[values]
    table = pl.DataFrame({"x": rng.choice(np.array(cells), n, p=p)}, schema={"x": pl.Int64})
    asked = [0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.8, 0.9, 0.99, 1]
    ordered = np.sort(table["x"].to_numpy())
    with dp.Session(eps=10**9):
        got = as_polars(as_kind(kind, table).dp.quantile("x", asked, bounds=(0, 99), eps=10**6))
        few = as_polars(as_kind(kind, table).dp.quantile("x", asked, candidates=cells, eps=10**6))
        spread = as_kind(kind, table).dp.iqr("x", bounds=(0, 99), eps=10**6)
    slack = 0.5 * (len(asked).bit_length() - 1) + 1e-9
    for c, q in [*zip(got["x"], asked), *zip(few["x"], asked)]:
        assert (ordered < c).sum() - slack <= q * n <= (ordered <= c).sum() + slack
    if n > 2:
        low, high = (np.quantile(ordered, q, method="inverted_cdf") for q in (0.25, 0.75))
        assert spread == high - low


def test_grouped_and_unit_quantiles_keep_their_ranks_among_ties(kind):
    rng = np.random.default_rng(4)
    n = 6000
    table = pl.DataFrame(
        {"g": rng.choice(["a", "b"], n), "x": rng.choice([1, 5, 9], n, p=[0.2, 0.7, 0.1]), "u": range(n)}
    )
    asked = [0.1, 0.5, 0.85, 0.95]
    with dp.Session(eps=10**9, unit="u"):
        wide = as_polars(
            as_kind(kind, table)
            .dp.groupby("g", keys=["a", "b"], max_groups=1, max_rows_per_group=1)
            .quantile("x", asked, bounds=(0, 10), eps=10**6)
        )
    assert wide.drop("g").rows() == [(1, 5, 5, 9)] * 2


# ---- rank errors ----


def test_one_rank_has_the_error_of_its_only_draw():
    made = quantiles(99, (1,), 2, Reach(), Target(Fraction(1, 2)))
    assert made.error(0.95) == pytest.approx(math.log(100 / 0.05) / 0.5)
    assert made.error(0.95, 10) == made.error(0.95)


@pytest.mark.parametrize("weights", [(3.0, 3.0), (1.0, 0.5, 4.0), (0.2, 1.0, 1.1, 1.2, 3.0), (1e-9, 2.0)])
@pytest.mark.parametrize("beta", [0.3, 0.005, 1e-6])
def test_the_sum_of_exponentials_is_exceeded_as_often_as_is_said(weights, beta):
    """Against its Laplace transform, inverted in 40 digits; small weights are counted as a 32nd of the largest."""
    import mpmath

    x = ranks._exceeded(weights, beta)
    used = [max(w, max(weights) / 32) for w in weights]
    with mpmath.workdps(40):
        tail = mpmath.invertlaplace(
            lambda s: (1 - mpmath.fprod(1 / (1 + s * mpmath.mpf(w)) for w in used)) / s,
            x,
            method="talbot",
            degree=60,
        )
    assert float(tail) == pytest.approx(beta, rel=1e-4)


def gaps_of(made, counts):
    """How far the ranks of one release are off, the worst of them."""
    bins, rows = counted(counts)
    upto, n = np.cumsum(counts), sum(counts)
    worst = 0.0
    for c, q in zip(made.choose(bins, rows), made.ranks):
        want = q * n / made.parts
        worst = max(worst, upto[c] - counts[c] - want, want - upto[c])
    return worst


def hard(c, tie, gap):
    """A heavy tie that holds the median's rank ``gap`` rows from its end, and no rows at most candidates."""
    counts = [0] * c
    counts[0], counts[c // 2] = tie // 2 - gap, tie // 2 + gap
    return counts


@pytest.mark.parametrize("asked", [((1,), 2), ((1, 2, 3), 4), ((1, 3), 4), (tuple(range(1, 10)), 10)])
def test_rank_errors_hold_on_data_that_are_hard(asked):
    """Ties beside empty candidates, at many distances: in each, at most 5 % of 120 draws are beyond, but for 1e-10."""
    made = quantiles(255, *asked, Reach(), Target(Fraction(1)))
    rng = np.random.default_rng(1)
    cases = [hard(256, 400, gap) for gap in (5, 15, 25, 40)]
    cases += [np.bincount(rng.integers(0, 256, 400), minlength=256).tolist()]
    cases += [np.bincount(rng.choice([3, 90, 91, 200], 400), minlength=256).tolist()]
    for counts in cases:
        bound = made.error(0.95, sum(counts))
        assert sum(gaps_of(made, counts) > bound for _ in range(120)) <= chance.most_hits(120, 0.05)


def test_the_error_of_a_hard_median_is_not_far_below_its_bound():
    """So the bound can't be much smaller: one heavy tie, 255 empty candidates, two ranks."""
    made = quantiles(255, (1, 2), 4, Reach(), Target(Fraction(1)))
    bound = made.error(0.8, 20_000)
    off = [
        np.quantile([gaps_of(made, hard(256, 20_000, gap)) for _ in range(40)], 0.8)
        for gap in (15, 20, 25, 30)
    ]
    assert max(off) >= 0.4 * bound


def test_rank_errors_of_nine_quantiles_are_less_than_half_of_the_levels_added_up():
    """ln(C m/beta)/rate at every level, added up, was 432 rows."""
    made = quantiles(4095, tuple(range(1, 10)), 10, Reach(), Target(Fraction(1)))
    assert made.error(0.95, 1000) < 200
    assert made.error(0.95, 100) < made.error(0.95, 10**6) < made.error(0.95) < 350


def test_plans_tell_rank_errors_by_the_number_of_rows():
    frame = pl.DataFrame({"x": [1]})
    with dp.Session(eps=10):
        bound = frame.dp.plan.quantile("x", [0.25, 0.5, 0.75], bounds=(0, 99), eps=1)
        guess = frame.dp.plan.quantile("x", [0.25, 0.5, 0.75], bounds=(0, 99), error=25, rows=1000)
    assert bound.plan.error(1000) < bound.plan.error()
    text = str(bound.explain())
    assert "at 100 rows" in text
    assert guess.error <= 25 < guess.plan.error()


def test_the_rank_that_divides_the_rows_is_told_a_row_not_a_gap_beside_it():
    """Of 20, 30, 30, 40, 90 the 9th decile is 90: 4.5 rows are below it, and 4 below all between 40 and 90."""
    counts = [0] * 121
    for v in (20, 30, 30, 40, 90):
        counts[v] += 1
    made = quantiles(120, (5, 9), 10, Reach(), Target(Fraction(1000)))
    assert {tuple(made.choose(*counted(counts))) for _ in range(40)} == {(30, 90)}


def test_ranks_whose_products_need_more_than_64_bits_are_exact():
    """A tie of 2**31 rows, ranks in 2**-20: the gaps of single places against Python's integers."""
    d, m = 2**20, 2**31
    line = Places(np.array([1]), np.array([m]), (0, 2), d // 2 - 1, d)
    for t in (0, 1, 12345, ranks.PLACES // 2 - 1, ranks.PLACES - 1):
        place = np.array([ranks.PLACES + t])
        gap = abs(d * m * t // ranks.PLACES - (d // 2 - 1) * m)
        assert line.gap(place).tolist() == [gap]
        low, high = line.within(np.array([gap, gap + 1]))
        assert not low[0] <= place[0] < high[0]
        assert low[1] <= place[0] < high[1]
