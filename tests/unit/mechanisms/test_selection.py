"""The exponential mechanism and permute-and-flip: exact laws, exact draws, guarantees.

Statistical checks have a false-alarm rate of at most 1e-9 each.
"""

from __future__ import annotations

import io
import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import chance
import mpmath
import numpy as np
import pytest
from laws import exponential_law, permute_and_flip_law

import dpframe as dp
from dpframe.mechanisms import selection
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.choosers import Reach, largest
from dpframe.mechanisms.selection import (
    exponential,
    permute_and_flip,
)
from dpframe.noise import source

COUNTS = [100, 95, 80, 50, 10]
BOTH = pytest.mark.parametrize(
    ("choose", "law"),
    [(exponential, exponential_law), (permute_and_flip, permute_and_flip_law)],
    ids=["exponential", "permute_and_flip"],
)


# ---- the laws, another way ----


def weights(utilities, rate):
    top = max(utilities)
    return [mpmath.exp(-mpmath.mpf(1) * (top - u) * rate.numerator / rate.denominator) for u in utilities]


def by_exponential(utilities, rate):
    w = weights(utilities, rate)
    return [float(x / sum(w)) for x in w]


def by_permutations(utilities, rate):
    """The definition of permute and flip: every order, every coin."""
    w, n = weights(utilities, rate), len(utilities)
    p = [mpmath.mpf(0)] * n
    for order in itertools.permutations(range(n)):
        alive = mpmath.mpf(1)
        for i in order:
            p[i] += alive * w[i]
            alive *= 1 - w[i]
    return [float(x / math.factorial(n)) for x in p]


@pytest.mark.parametrize(
    ("law", "published"),
    [
        (exponential_law, (0.571844, 0.346841, 0.077391, 0.003853, 0.000071)),
        (permute_and_flip_law, (0.654554, 0.288938, 0.053879, 0.002582, 0.000047)),
    ],
)
def test_top_one_of_five_counts(law, published):
    p = law(COUNTS, 1, 0.1, monotone=True)
    assert p.round(6).tolist() == list(published)
    assert math.isclose(p.sum(), 1, rel_tol=1e-14)
    # Not monotone: half the rate.
    assert law(COUNTS, 1, 0.2).tolist() == p.tolist()
    assert law(COUNTS, 3, 0.3, monotone=True).tolist() == p.tolist()


CASES = [
    (COUNTS, Fraction(1, 10)),
    ([0], Fraction(1)),
    ([5, 5, 5], Fraction(3)),
    ([3, 1, 3, 2, -4, 0], Fraction(1, 2)),
    ([Fraction(1, 3), Fraction(-2, 7), 0, 1], Fraction(5, 3)),
    ([0, -700, -5000, 1], Fraction(1)),
    ([10**30, 10**30 - 1, 0], Fraction(2)),
]


@BOTH
@pytest.mark.parametrize(("utilities", "eps"), CASES)
def test_laws_equal_their_definitions(choose, law, utilities, eps):
    definition = by_exponential if law is exponential_law else by_permutations
    with mpmath.workdps(60):
        right = definition(utilities, eps)
    assert law(utilities, 1, eps, monotone=True) == pytest.approx(right, rel=1e-12, abs=1e-300)


def test_the_weights_of_the_quantile_reference():
    """Exponential mechanism over 6 intervals of equal length, utilities of the median of 1..5."""
    half = Fraction(1, 2)
    u = [-5 * half, -3 * half, -half, -half, -3 * half, -5 * half]
    for sensitivity, right in (
        (half, [0.045015, 0.122364, 0.33262]),  # add_remove
        (1, [0.093162, 0.153598, 0.25324]),  # replace_one
    ):
        p = exponential_law(u, sensitivity, 1).round(6).tolist()
        assert p == right + right[::-1]


def test_peeling_three_counts():
    """k=3 of the five counts at eps=1: P(exact order) = .83457."""
    p = 1.0
    for first in range(3):
        p *= exponential_law(COUNTS[first:], 1, Fraction(1, 3), monotone=True)[0]
    assert p == pytest.approx(0.83457, abs=1e-5)


# ---- guarantees ----


def neighbours(rng, monotone):
    n = int(rng.integers(2, 6))
    u = rng.integers(-20, 21, size=n)
    size = int(rng.choice([1, 2, 5]))
    move = rng.integers(0 if monotone else -1, 2, size=n) * size
    return u.tolist(), (u + move).tolist(), size


@pytest.mark.parametrize("monotone", [True, False])
@BOTH
def test_guarantees_recomputed_at_300_pairs(choose, law, monotone):
    """Laws by their definitions at both neighbours: log-ratios at most eps, D_alpha at most alpha*rho."""
    rng = np.random.default_rng(7)
    definition = by_exponential if law is exponential_law else by_permutations
    mechanism = "exponential" if law is exponential_law else "permute_and_flip"
    closest = 0.0
    for i in range(300):
        eps = [Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4)][i % 5]
        u, v, size = neighbours(rng, monotone)
        rate = eps / size if monotone else eps / (2 * size)
        with mpmath.workdps(30):
            p, q = (np.array(definition(x, rate)) for x in (u, v))
        if i % 10 == 0:
            assert law(u, size, eps, monotone=monotone) == pytest.approx(p.tolist(), rel=1e-11)
        ratio = np.log(p) - np.log(q)
        closest = max(closest, np.abs(ratio).max() / float(eps))
        assert np.abs(ratio).max() <= float(eps) * (1 + 1e-12)
        cost = largest(2, 1, Reach(), Target(eps), mechanism).event
        assert cost.eps == eps
        for a in (1.01, 1.5, 2, 4, 16, 64):
            for x, y in ((p, q), (q, p)):
                top = np.logaddexp.reduce(a * np.log(x) - (a - 1) * np.log(y))
                assert top / (a - 1) <= a * float(cost.rho) * (1 + 1e-9) + 1e-12
    assert closest > 0.9  # the pairs come near what is claimed


def test_events():
    drawn, flipped = (
        [largest(2, 1, Reach(), Target(Fraction(eps)), name).event for eps in (1, 20)]
        for name in ("exponential", "permute_and_flip")
    )
    assert drawn[0].rho == Fraction(1, 8)
    assert float(flipped[0].rho) == pytest.approx(math.tanh(0.5))
    assert float(drawn[1].rho) == pytest.approx(20, rel=1e-6)  # the lesser of two bounds
    assert {e.delta for e in drawn + flipped} == {0}


@pytest.mark.parametrize("eps", [0.1, 0.5, 1, 3])
def test_permute_and_flip_is_never_worse(eps):
    u = np.array(COUNTS)
    assert permute_and_flip_law(COUNTS, 1, eps) @ u >= exponential_law(COUNTS, 1, eps) @ u


# ---- draws ----


@BOTH
def test_draws_follow_the_law(choose, law):
    n = 20_000
    seen = np.bincount([choose(COUNTS, 1, 0.1, monotone=True) for _ in range(n)], minlength=5)
    assert chance.fits(seen, law(COUNTS, 1, 0.1, monotone=True) * seen.sum())


@BOTH
def test_exact_decisions_follow_the_law(choose, law, monkeypatch):
    """With a band of 2 nothing is decided in floats."""
    monkeypatch.setattr(selection, "_BAND", 2.0)
    u = [Fraction(7, 3), 2, 0, 1]
    seen = np.bincount([choose(u, 1, 1) for _ in range(4_000)], minlength=4)
    assert chance.fits(seen, law(u, 1, 1) * seen.sum())


@BOTH
def test_exact_arithmetic_decides_the_same_words_alike(choose, law, monkeypatch):
    rng = np.random.default_rng(3)
    for _ in range(300):
        u = rng.integers(-9, 10, size=12).tolist()
        data, got = rng.bytes(4096), []
        for band in (selection._BAND, 2.0):
            monkeypatch.setattr(selection, "_BAND", band)
            with source.replaced(io.BytesIO(data).read):
                # The coins draw further digits one after another: only their heads can be compared.
                z = selection._exponents(u, 1, Fraction(1, 3), False)
                got.append(selection._draw(z) if choose is exponential else selection._coins(z).tolist())
        assert got[0] == got[1]
        monkeypatch.undo()


@pytest.mark.parametrize("side", [-1, 1], ids=["below", "above"])
def test_choices_are_decided_right_at_any_depth(side):
    """U agrees with an edge to 150 binary places; the digits after those decide."""
    places = 320
    z = selection._exponents(COUNTS, 1, Fraction(1, 10), True)
    with mpmath.workdps(150):
        w = weights(COUNTS, Fraction(1, 10))
        for v in (1, 2, 3, 4):
            u = mpmath.floor((sum(w[:v]) / sum(w) + side * mpmath.mpf(2) ** -150) * mpmath.mpf(2) ** places)
            left = [(int(u) >> (places - 64 * (i + 1))) & (2**64 - 1) for i in range(places // 64)] + [0] * 4
            with source.replaced(lambda n, left=left: left.pop(0).to_bytes(n, "little")):
                assert selection._draw(z) == (v if side > 0 else v - 1)


@pytest.mark.parametrize("side", [-1, 1], ids=["below", "above"])
@pytest.mark.parametrize("z", [Fraction(1, 3), Fraction(40), Fraction(70), Fraction(100)])
def test_coins_are_decided_right_at_any_depth(z, side):
    places = 640
    with mpmath.workdps(250):
        a = mpmath.exp(-mpmath.mpf(z.numerator) / z.denominator)
        u = int(mpmath.floor((a + side * mpmath.mpf(2) ** -250) * mpmath.mpf(2) ** places))
    left = [(u >> (places - 64 * (i + 1))) & (2**64 - 1) for i in range(places // 64)] + [0] * 4
    with source.replaced(lambda n: left.pop(0).to_bytes(n, "little")):
        assert selection._coin_exactly(z, left.pop(0)) is (side < 0)


def test_a_hopeless_candidate_is_not_impossible():
    """Its weight exp(-1000) is 0 in floats; words of zeros choose it, as the exact law says."""
    z = selection._exponents([-1000, 0], 1, 1, True)
    with source.replaced(lambda n: bytes(n)):
        assert selection._draw(z) == 0
        assert selection._coins(z).tolist() == [True, True]
    assert exponential([-(10**9), 0], 1, 1) == 1


def test_many_candidates():
    rng = np.random.default_rng(1)
    u = -np.abs(rng.integers(-3000, 3000, size=70_000))
    for choose in (exponential, permute_and_flip):
        assert u[choose(u, 1, 2)] >= -60  # P(u below -60) < 70000 * exp(-60)
    u = u[:60_000]
    assert u[exponential(u, 1, 2)] >= -60


@pytest.mark.parametrize("n", [1, 2, 3, 5, 1000])
def test_uniform_integers(n):
    seen = np.bincount([selection._below(n) for _ in range(20_000)], minlength=n)
    assert len(seen) == n
    assert chance.fits(seen, [20_000 / n] * n)


def test_the_last_incomplete_round_is_thrown_back():
    words = iter([2**64 - 1, 5])  # 2**64 is 1 more than a multiple of 3
    with source.replaced(lambda size: next(words).to_bytes(size, "little")):
        assert selection._below(3) == 2


def test_the_callers_decimal_context_changes_nothing():
    right = exponential_law(COUNTS, 1, 0.1).tolist()
    with localcontext() as context:
        context.prec = 3
        assert exponential_law(COUNTS, 1, 0.1).tolist() == right


# ---- what is taken ----


@BOTH
@pytest.mark.parametrize("u", [[1.0, 2.0], [True], ["a"], [Decimal(1)], np.array([0.5])])
def test_inexact_utilities_are_refused(choose, law, u):
    with pytest.raises(dp.InputError, match="integers or Fractions"):
        choose(u, 1, 1)


@BOTH
def test_empty_and_senseless_requests_are_refused(choose, law):
    with pytest.raises(dp.InputError, match="empty"):
        choose([], 1, 1)
    for sensitivity, eps in ((0, 1), (1, 0), (-1, 1), (1, float("nan")), (1, -2)):
        with pytest.raises(dp.InputError, match="Hint"):
            choose([1, 2], sensitivity, eps)


@BOTH
def test_extreme_rates(choose, law):
    assert choose([3, 2], 1, Fraction(10**400)) == 0
    assert choose([3, 2], 1, Fraction(1, 10**400)) in (0, 1)
    assert law([3, 2], 1, Fraction(1, 10**400)) == pytest.approx([0.5, 0.5])
    assert choose(np.array([2**63 - 1, -(2**63)]), 1, 1) == 0
