"""The sampler of the row law: its own probabilities against the definition, and its draws against both.

Chi-square tests have a false-alarm probability of 1e-9 each. Planted faults that they catch: a rejected a that draws s
again, a block that (a, b) does not hold (tests/planted).
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import chance
import numpy as np
import pytest
from row_law import gauge, held, law

from dpframe.noise import row_points, row_sampler, source
from dpframe.noise.row_sampler import RowSampler
from dpframe.noise.row_shape import Cells, numerators, peaks_in_the_middle, points, room

SHAPES = {
    "count": (Cells(1, 1),),
    "two fine": (Cells(1, 3, 1), Cells(1, 1)),
    "fine": (Cells(1, 5, 2),),
    "nullable": (Cells(1, 4, 1, True),),
    "nullable and count": (Cells(1, 4, 1, True), Cells(1, 1)),
    "two cells": (Cells(2, 3, 1),),
    "table": (Cells(1, 1), Cells(2, 1)),
    "nullable cells": (Cells(2, 2, 1, True),),
    "three cells": (Cells(3, 2, 1),),
}
ALL = pytest.mark.parametrize("blocks", SHAPES.values(), ids=SHAPES)


@ALL
def test_ways_count_what_a_pair_holds(blocks):
    for block, a, b in itertools.product(blocks, range(4), range(4)):
        if block.m < 3 or a + b < 5:
            assert block.ways(a, b) == len(held(block, a, b))


@pytest.mark.parametrize(("cells", "least"), [((1,), 9), ((1, 1), 39), ((2,), 27), ((1, 2), 153)], ids=str)
def test_the_probability_of_no_noise_at_q_one_half(cells, least):
    blocks = tuple(Cells(m, 1) for m in cells)
    q, d = Fraction(1, 2), sum(cells)
    total = sum(h * q**i for i, h in enumerate(numerators(blocks))) / (1 - q) ** (d + 2)
    assert (1 - q * q) * total == least


@ALL
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(2)])
def test_the_samplers_own_probabilities_are_those_of_the_law(blocks, scale):
    """P(s) from its table, then W(a, s-a), then one of W points: summed over (a, b), proportional to q**J."""
    made = RowSampler(blocks, scale)
    q = math.exp(-1 / float(scale))
    edges = made._cumulative(160)
    p_s = [(y - x) / 2**160 for x, y in itertools.pairwise(edges)]
    every = {}
    top = 5 if max(b.size for b in blocks) < 3 else 3
    for s in range(top):
        ways = [math.prod(b.ways(a, s - a) for b in blocks) for a in range(s + 1)]
        for a in range(s + 1):
            for noise in itertools.product(*(held(b, a, s - a) for b in blocks)):
                found = every.setdefault((2 * a - s, noise), [0.0, s])
                found[0] += p_s[s] / sum(ways)
    ratio = set()
    for (k, noise), (p, least) in every.items():
        j = gauge(blocks, k, noise)
        assert j == least
        seen = sum(q ** (2 * t) for t in range((top - 1 - j) // 2 + 1))  # of 1/(1-q**2)
        ratio.add(round(p / (q**j * seen), 12) / p_s[0])
    assert max(ratio) / min(ratio) == pytest.approx(1, abs=1e-9)


def counted(draws):
    """How often every noise was drawn."""
    size = len(draws.rows)
    here = [np.zeros(size, dtype=np.int64) if p is None else p for p in draws.present]
    columns = np.column_stack([draws.rows, *draws.cells, *here])
    rows, times = np.unique(columns, axis=0, return_counts=True)
    ends = np.cumsum([1, *(c.shape[1] for c in draws.cells)])
    cells = [rows[:, i:j] for i, j in itertools.pairwise(ends)]
    out = {}
    for i, n in enumerate(times.tolist()):
        noise = tuple((tuple(c[i].tolist()), int(rows[i, ends[-1] + j])) for j, c in enumerate(cells))
        out[int(rows[i, 0]), noise] = n
    return out


def fits_with_the_rest(seen, expected, n) -> bool:
    """Whether counts fit, what is not among them being a cell, or, if it is rare, a part of the last."""
    rest = n - sum(seen), n - sum(expected)
    if rest[1] > 20:
        return chance.fits([*seen, rest[0]], [*expected, rest[1]])
    return chance.fits([*seen[:-1], seen[-1] + rest[0]], [*expected[:-1], expected[-1] + rest[1]])


def follow(blocks, scale, draws, top) -> bool:
    """Whether draws fit the law: noise with J < top one by one where it is expected 20 times, all else together."""
    expected = law(blocks, scale, top)
    n = len(draws.rows)
    seen = counted(draws)
    often = [x for x, p in expected.items() if p * n >= 20]
    got = [seen.get(x, 0) for x in often]
    want = [expected[x] * n for x in often]
    assert len(want) > 5
    return fits_with_the_rest(got, want, n)


@ALL
@pytest.mark.parametrize("path", ["floats", "integers", "geometrics"])
def test_draws_follow_the_law(blocks, path, monkeypatch):
    """Once as it is, once with every decision taken in integers, once with s as a sum of geometrics."""
    n = 100_000 if path != "integers" else 15_000
    if path == "integers":
        monkeypatch.setattr(row_points, "_BAND", 2.0)
    if path == "geometrics":
        monkeypatch.setattr(row_sampler, "_LONGEST", 0)
    scale = Fraction(2, 3)
    made = RowSampler(blocks, scale)
    assert made._tabled == (path != "geometrics")
    assert follow(blocks, scale, made.sample(n), 4 if sum(b.size for b in blocks) < 4 else 3)


@pytest.mark.parametrize(
    "blocks",
    [(Cells(1, 2**30, 2**29, True),) * 3, (Cells(2, 2**20, 2**18),) * 4, (Cells(9, 1), Cells(1, 2**30, 7))],
    ids=["nullable", "cells", "table"],
)
def test_s_and_a_follow_their_weights_where_acceptance_is_low(blocks):
    """s by G(s) q**s, and a in its half for that s: a rejected a must not draw s again (false alarm: 1e-10)."""
    scale = Fraction(3)
    made = RowSampler(blocks, scale)
    n, q = 200_000, math.exp(-1 / 3)
    s = made._totals(n)
    a = made._sides(s)
    weights = {(t, x): math.prod(b.ways(x, t - x) for b in blocks) for t in range(90) for x in range(t + 1)}
    total = sum(Fraction(w) * Fraction(q) ** t for (t, _), w in weights.items())
    bins = {}
    for (t, x), w in weights.items():
        cell = bins.setdefault((t // 2, 4 * x // (t + 1)), [0.0, 0])
        cell[0] += float(w * Fraction(q) ** t / total) * n
    for t, x in zip(s.tolist(), a.tolist()):
        bins.setdefault((t // 2, 4 * x // (t + 1)), [0.0, 0])[1] += 1
    expected, seen = zip(*(cell for cell in bins.values() if cell[0] >= 20))
    assert fits_with_the_rest(seen, expected, n)


@ALL
def test_a_row_moves_the_gauge_by_one_at_most(blocks):
    """Every row there is: cells that add up to K at most, present or not, before and after; every noise up to J = 3."""
    rows = [
        [
            (y, here)
            for y in itertools.product(range(b.steps + 1), repeat=b.m)
            for here in ((1, 0) if b.missing else (1,))
            if sum(y) <= b.steps * here
        ]
        for b in blocks
    ]
    rng = np.random.default_rng(5)
    every = list(law(blocks, Fraction(1), 4 if sum(b.size for b in blocks) < 3 else 3))
    chosen = every if len(every) < 1500 else [every[i] for i in rng.choice(len(every), 1500, replace=False)]
    moved = set()
    for (k, noise), row in itertools.product(chosen, itertools.product(*rows)):
        after = tuple(
            (tuple(v + w for v, w in zip(x, y)), before + here if b.missing else 0)
            for b, (x, before), (y, here) in zip(blocks, noise, row)
        )
        moved.add(gauge(blocks, k + 1, after) - gauge(blocks, k, noise))
    assert moved <= {-1, 0, 1}
    assert {-1, 1} <= moved


def test_the_exact_path_agrees_with_the_table():
    made = RowSampler((Cells(1, 4, 1, True), Cells(1, 1)), Fraction(7, 3))
    words = np.random.default_rng(3).integers(0, 2**64, 300, dtype=np.uint64)
    with source.replaced(lambda n: words.tobytes()[:n]):
        quick = made._choice.sample(300)
    assert quick.tolist() == [made._choice._exactly(int(w)) for w in words]
    for t in made._choice._table[1:20].tolist():  # at an edge nothing but further digits decides
        assert abs(made._choice._exactly(t) - int(np.searchsorted(made._choice._table, t, "right")) + 1) <= 1


@pytest.mark.parametrize("n", [1, 2, 3, 7, 2**33 + 1, 2**60 - 1, 2**62 + 3])
def test_uniform_integers(n):
    """Equal tenths (chi-square), and words of the last, incomplete run are thrown back."""
    x = row_points.below(np.full(60_000, n, dtype=np.int64))
    assert 0 <= x.min() <= x.max() < n
    seen = np.bincount((x.astype(object) * min(n, 10) // n).astype(np.int64), minlength=min(n, 10))
    shares = [-(-(i + 1) * n // min(n, 10)) - -(-i * n // min(n, 10)) for i in range(min(n, 10))]
    assert chance.fits(seen, shares)
    words = iter([2**64 - 1, 2**64 - 2**64 % n - 1])
    with source.replaced(lambda size: next(words).to_bytes(8, "little") if size else b""):
        row_points.below(np.array([n]))
    assert len(list(words)) == (1 if 2**64 % n == 0 else 0)


@pytest.mark.parametrize("m", [2, 3, 5])
def test_points_are_uniform_where_there_is_little_room(m):
    for most, least in ((0, 0), (1, 0), (0, 2), (2, 1), (3, 3)):
        n = 20_000
        got = row_points._points_of(m, np.full(n, most), np.full(n, least))
        seen = {}
        for x in map(tuple, got.tolist()):
            seen[x] = seen.get(x, 0) + 1
        assert all(sum(v for v in x if v > 0) <= most and -sum(v for v in x if v < 0) <= least for x in seen)
        total = points(m, most, least)
        counts = [*seen.values(), *[0] * (total - len(seen))]
        assert len(counts) == total
        assert chance.fits(counts, np.ones(total))


@pytest.mark.parametrize("m", range(1, 13))
def test_the_middle_is_the_most_likely_side(m):
    """The check that is made, and the thing itself."""
    for block in (Cells(m, 1), Cells(m, 3, 1), *([Cells(m, 3, 2, True)] if m < 5 else [])):
        assert peaks_in_the_middle(block)
        for s in (1, 2, 5, 8):
            w = [block.ways(a, s - a) for a in range(s + 1)]
            assert max(w) == w[s // 2]
            assert w == w[::-1]


@pytest.mark.usefixtures("fixed_draws")
def test_shapes_and_scales_beyond_what_is_exact_are_refused():
    with pytest.raises(ValueError, match="exactly"):
        RowSampler((Cells(1, 2**50),), Fraction(1000))
    with pytest.raises(ValueError, match="256 cells"):
        RowSampler((Cells(200, 1), Cells(57, 1)), Fraction(1))
    with pytest.raises(ValueError, match="exactly"):
        RowSampler((Cells(1, 1),), Fraction(1, 100))
    fine = (Cells(1, 2**30, 2**29),)
    assert 2**40 < room(fine, Fraction(1000)) < 2**45
    drawn = RowSampler((Cells(1, 2**40, 3), Cells(1, 2**40, 2**39, True)), Fraction(2000)).sample(20_000)
    assert abs(float(drawn.cells[0].mean())) < 6 * float(drawn.cells[0].std()) / 20_000**0.5
    assert drawn.cells[1].shape == (20_000, 1)
    assert np.all(np.abs(drawn.present[1]) < 10**6)


def test_no_draw_at_all():
    none = RowSampler((Cells(1, 4, 1, True), Cells(3, 1)), Fraction(1)).sample(0)
    assert none.rows.shape == (0,)
    assert [c.shape for c in none.cells] == [(0, 1), (0, 3)]


def test_many_large_blocks_do_not_leave_float64():
    """Products of 60 numbers of 2**60 would: what is compared is a product of ratios."""
    made = RowSampler((Cells(1, 2**40, 2**39, True),) * 60, Fraction(50))
    drawn = made.sample(300)
    assert len(drawn.cells) == 60
    assert np.all(np.abs(drawn.rows) < 10**5)


def test_ways_of_many_rows_are_those_of_the_sum():
    """A polynomial where the sum would be long."""
    for block in (Cells(2, 5, 2, True), Cells(3, 2, 1, True)):
        for a, b in ((30, 2), (0, 40), (25, 25)):
            k, r, m = block.steps, block.slack, block.m
            by_sum = sum(points(m, t * k + r, b * k + r) for t in range(a + 1))
            by_sum += sum(points(m, a * k + r, t * k + r) for t in range(b))
            assert block.ways(a, b) == by_sum
