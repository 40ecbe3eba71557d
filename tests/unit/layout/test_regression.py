"""What a regression takes from noisy cells: the sums of products, and the covariance of their noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from regression_runs import cells, columns, layouts, one_draw, split

from dpframe.layout.least_squares import fit
from dpframe.layout.regression import regression

DRAWS = 200_000


def made(p, laws):
    return regression(layouts(p + 1), [f"x{j}" for j in range(p)]).calibrated(laws)


@pytest.mark.parametrize("p", [1, 3])
def test_the_sums_of_products_are_those_of_the_rows(p):
    z = columns("uniform", p, 50, 0, np.random.default_rng(1))
    z = np.rint(z * 2**14) / 2**14
    rows = np.column_stack([np.ones(50), z])
    answer = made(p, one_draw(p + 1, Fraction(1))[1])
    sums = np.tensordot(np.array(cells(z), dtype=float), answer._maps, axes=(0, 2))
    np.testing.assert_allclose(sums, rows.T @ rows, atol=1e-9)


@pytest.mark.parametrize("noises", [one_draw, split])
@pytest.mark.parametrize("p", [1, 2])
def test_the_noise_of_the_sums_has_the_covariance_that_is_reckoned_with(noises, p):
    """Every entry within 7 of its standard errors: 100 entries at most, a false alarm below 1e-9."""
    joint, laws = noises(p + 1, Fraction(1))
    drawn = None if joint is None else joint.draw(DRAWS)
    noise = np.array([law.sample(DRAWS) if drawn is None else law.of(drawn) for law in laws], dtype=float)
    answer = made(p, laws)
    size = p + 2
    sums = np.tensordot(answer._maps, noise, axes=(2, 0)).reshape(size**2, DRAWS)
    reckoned = answer._covariance(laws).reshape(size**2, size**2)
    for i in range(size**2):
        products = sums[i] * sums
        error = products.std(axis=1) / np.sqrt(DRAWS)
        assert (abs(products.mean(axis=1) - reckoned[i]) <= 7 * error + 1e-9).all()


def test_groups_are_fitted_by_themselves_however_many_there_are_at_a_time(monkeypatch):
    from dpframe.layout import least_squares

    p = 2
    rng = np.random.default_rng(2)
    rows = [np.column_stack([np.ones(300), columns("uniform", p, 300, 0, rng)]) for _ in range(7)]
    sums = np.array([z.T @ z for z in rows])
    sums[3] = 0.0
    covariance = np.full((p + 2,) * 4, 1e-6)
    whole = fit(sums, covariance, np.eye(p + 1), np.zeros(p + 1))
    monkeypatch.setattr(least_squares, "_MOST", 2 * (p + 2) ** 3)
    apart = fit(sums, covariance, np.eye(p + 1), np.zeros(p + 1))
    for name in whole.__slots__:
        np.testing.assert_array_equal(getattr(whole, name), getattr(apart, name))
    assert whole.few.tolist() == [i == 3 for i in range(7)]
    found = np.linalg.lstsq(rows[0][:, :-1], rows[0][:, -1], rcond=None)[0]
    np.testing.assert_allclose(whole.estimate[0], found, atol=1e-5)
