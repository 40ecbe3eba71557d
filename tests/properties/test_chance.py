"""The thresholds of random tests, checked by exact sums: they are passed by chance as seldom as they say, and can fail."""

from __future__ import annotations

import os

import chance
import numpy as np
import pytest
from scipy import stats
from sizes import AUDIT

from dpframe.noise import source


@pytest.mark.parametrize("n", [1, 60, 4_000, 200_000])
@pytest.mark.parametrize("p", [1e-6, 0.05, 0.5, 0.95, 1.0])
def test_limits_of_hits_are_the_tightest_that_keep_the_rate(n, p):
    least, most = chance.least_hits(n, p), chance.most_hits(n, p)
    assert stats.binom.cdf(least - 1, n, p) <= chance.ALARM
    assert stats.binom.sf(most, n, p) <= chance.ALARM * (1 + 1e-6)
    assert least == n or stats.binom.cdf(least, n, p) > chance.ALARM
    assert most == 0 or stats.binom.sf(most - 1, n, p) > chance.ALARM * (1 - 1e-6)
    likely = chance.likely_hits(n, p)
    assert stats.binom.cdf(likely[0] - 1, n, p) + stats.binom.sf(likely[-1], n, p) <= chance.ALARM * (
        1 + 1e-6
    )


@pytest.mark.parametrize("expected", [20, 21, 100])
@pytest.mark.parametrize("share", [0.5, 0.01])
@pytest.mark.parametrize("alarm", [1e-3, chance.ALARM])
def test_two_cells_are_taken_for_another_law_no_oftener_than_said(expected, share, alarm):
    """Exactly: the chance of all counts that do not fit; and they are not many fewer than there could be."""
    n = round(expected / share)
    k = np.arange(0, min(n, expected * 6 + 60) + 1)
    unfit = [x for x in k.tolist() if not chance.fits([x, n - x], [share, 1 - share], alarm)]
    rate = stats.binom.pmf(unfit, n, share).sum() + stats.binom.sf(k[-1], n, share)
    assert alarm / 1000 < rate < alarm


@pytest.mark.parametrize("alarm", [1e-4])
def test_three_cells_are_taken_for_another_law_no_oftener_than_said(alarm):
    n, p = 90, (20 / 90, 20 / 90, 50 / 90)
    total = 0.0
    for a in range(n + 1):
        unfit = [b for b in range(n - a + 1) if not chance.fits([a, b, n - a - b], p, alarm)]
        total += stats.binom.pmf(a, n, p[0]) * stats.binom.pmf(unfit, n - a, p[1] / (1 - p[0])).sum()
    assert alarm / 1000 < total < alarm


@pytest.mark.parametrize("cells", [60])
def test_of_many_cells_few_samples_are_taken_for_another_law(cells):
    """600 samples of 30 hits a cell. Were the rate 6 % where 1 % is said, this would see it; a right one fails 1e-9."""
    draws = np.random.default_rng(1).multinomial(30 * cells, [1 / cells] * cells, 600)
    unfit = sum(not chance.fits(d, np.ones(cells), 0.01) for d in draws)
    assert unfit <= chance.most_hits(600, 0.01, 1e-9)


def test_counts_of_another_law_do_not_fit():
    assert not chance.fits([100, 1], [101, 0]), "what is impossible was seen"
    assert not chance.fits([1_300, 1_000, 700], [1_000] * 3)
    assert not chance.fits([0] * 50 + [100], [2] * 51), "thin cells count together"
    assert not chance.fits([1_000 + 80 * (-1) ** i for i in range(60)], [1_000] * 60), (
        "every cell is a little off"
    )
    assert chance.fits([1_010, 985, 1_005], [1_000] * 3)


# ---- the stream ----


@pytest.mark.skipif(AUDIT, reason="the audit draws from the operating system")
def test_what_a_test_draws_is_fixed_by_its_name_and_passes_for_private(request):
    stream = np.random.default_rng(list(request.node.nodeid.encode()))
    assert source.words(3).tobytes() == stream.bytes(24)
    assert source.bits(64) == int.from_bytes(stream.bytes(8), "little")
    assert source.is_private()


@pytest.mark.fresh_draws
def test_a_test_may_draw_from_the_operating_system():
    assert source._source is os.urandom
