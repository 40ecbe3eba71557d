"""Least squares from noisy sums of products: coefficients, and how far noise and sampling may put them off.

A group's rows are z = (1, x_1, ..., x_p, y), every column between -1 and 1, and what is released is A + N: the symmetric
matrix A of sums of z_i*z_j, with noise N of known covariance. With e = (-b, 1) for the coefficients b, A e is 0 in the rows
of the regressors, so b is off by inverse(A) N e to first order: linear in N, with a variance that is known from what was
released. Sampling adds s**2 inverse(A) of the linear model, s**2 the variance of the residuals.

To second order, noise biases b towards 0 and the inverse of A upwards. Both go when N inverse(A) N, as expected, is added
to A + N first (:func:`_debiased`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpframe.mechanisms.base import Floats

Weighed = Callable[[Floats], Floats]
CLEAR = 4.0  # standard deviations of noise that n, and what is left of a regressor beside the others, must be worth
_RESOLVED = 64.0  # the same over the variance that rounding to a grid makes up
_FLOAT = 1e-11  # a part of a column's sum of squares that is lost in float64
_TINY = 1e-300
_MOST = 1 << 22  # numbers that are worked on at a time


@dataclass(frozen=True, slots=True)
class Fit:
    """Least squares in every group; NaN where there is nothing to be told.

    Attributes
    ----------
    rows : (groups,)
    estimate, variance, sampling : (groups, terms)
        What was asked for, its variance with noise and sampling, and the part of sampling.
    freedom : (groups, terms)
        Degrees of freedom of ``variance``.
    spread : (groups,)
        The variance of the residuals, with n - terms; below 0 where noise has the last word.
    explained : (groups,)
        The part of the response's variance that is explained, within [0, 1].
    few, tied : (groups,)
        Whether rows are too few for the noise; else the number of a regressor that is not told apart, or -1.
    """

    rows: Floats
    estimate: Floats
    variance: Floats
    sampling: Floats
    freedom: Floats
    spread: Floats
    explained: Floats
    few: npt.NDArray[np.bool_]
    tied: npt.NDArray[np.int64]


def fit(sums: Floats, covariance: Floats, terms: Floats, rounded: Floats) -> Fit:
    """Fit the last column by the others in every group.

    Parameters
    ----------
    sums : (groups, p + 2, p + 2)
        The released sums of products.
    covariance : (p + 2,) * 4
        Of the noise: entry (i, j, k, l) is that of sums (i, j) and (k, l).
    terms : (m, p + 1)
        Which combinations of the coefficients are told.
    rounded : (p + 1,)
        Of each regressor (0 for the constant), the variance of one value's rounding.
    """
    size = sums.shape[1]
    at_once = max(1, _MOST // size**3)
    parts = [
        _fit(sums[i : i + at_once], covariance, terms, rounded) for i in range(0, max(1, len(sums)), at_once)
    ]
    if len(parts) == 1:
        return parts[0]
    return Fit(*(np.concatenate([getattr(p, name) for p in parts]) for name in Fit.__slots__))


def _fit(sums: Floats, covariance: Floats, terms: Floats, rounded: Floats) -> Fit:
    size = sums.shape[1]
    k = size - 1
    # Entry (j, k), (i, l) is the covariance of N_ij and N_kl: what weights on (j, k) are summed over.
    weighing = covariance.transpose(1, 2, 0, 3).reshape(size**2, size**2)

    def weighed(weights: Floats) -> Floats:
        """E[N weights N], of symmetric weights (..., size, size)."""
        return np.asarray(weights.reshape(*weights.shape[:-2], -1) @ weighing).reshape(weights.shape)

    n = sums[:, 0, 0]
    few = ~(n >= max(k + 2.0, CLEAR * np.sqrt(max(0.0, covariance[0, 0, 0, 0]))))
    apart = _positive(sums[:, :k, :k])
    safe = np.where((few | ~apart)[:, None, None], np.eye(size), sums)
    made = _debiased(safe, weighed)
    inverse = np.linalg.inv(made[:, :k, :k])
    b = np.einsum("gij,gj->gi", inverse, made[:, :k, k])
    e = np.concatenate([-b, np.ones((len(b), 1))], axis=1)
    rss = np.einsum("gi,gij,gj->g", e, made, e)
    off = weighed(e[:, :, None] * e[:, None, :])
    of_rss = np.einsum("gi,gij,gj->g", e, off, e)  # the variance of its noise

    told = np.einsum("ti,gij->gtj", terms, inverse)
    by_noise = np.einsum("gti,gij,gtj->gt", told, off[:, :k, :k], told)
    # b is noisy itself: what its own variance adds to e e' is taken back, to the same order.
    outer = np.zeros_like(off)
    outer[:, :k, :k] = inverse @ off[:, :k, :k] @ inverse
    too_much = np.einsum("gti,gij,gtj->gt", told, weighed(outer)[:, :k, :k], told)
    by_noise = by_noise**2 / np.maximum(by_noise + too_much, _TINY)
    per_variance = np.einsum("gti,ti->gt", told, terms)
    free = np.maximum(n - k, 1.0)
    s2 = rss / free
    by_sampling = np.maximum(s2, 0.0)[:, None] * per_variance
    variance = by_noise + by_sampling
    unsure = by_sampling**2 * (2 / free)[:, None] + (per_variance / free[:, None]) ** 2 * of_rss[:, None]
    freedom = 2 * variance**2 / np.maximum(unsure, _TINY)

    tied = np.where(few | apart, -1, _alike(sums[:, :k, :k]))
    tied = np.where(few | ~apart, tied, _unclear(safe, weighed, n, rounded))
    mean = made[:, 0, k] / np.maximum(n, 1)
    whole = made[:, k, k] - mean**2 * n
    explained = np.clip(1 - rss / np.where(whole > 0, whole, np.nan), 0, 1)
    out = few | (tied >= 0)

    def kept(x: Floats) -> Floats:
        return np.where(out[:, None] if x.ndim == 2 else out, np.nan, x)

    return Fit(
        n,
        kept(np.einsum("ti,gi->gt", terms, b)),
        kept(variance),
        kept(by_sampling),
        kept(np.clip(freedom, 1, 1e9)),
        kept(s2),
        kept(np.where(rss > 0, explained, np.nan)),
        few,
        tied.astype(np.int64),
    )


def _debiased(sums: Floats, weighed: Weighed) -> Floats:
    """The sums with what noise takes away from their inverse, to second order: N inverse N as expected."""
    k = sums.shape[1] - 1
    inner = np.zeros_like(sums)
    inner[:, :k, :k] = np.linalg.inv(sums[:, :k, :k])
    return np.asarray(sums + weighed(inner))


def _positive(squares: Floats) -> npt.NDArray[np.bool_]:
    """Whether a matrix is positive definite, beyond what float64 can tell."""
    size = np.sqrt(np.maximum(np.einsum("gii->gi", squares), 1e-300))
    least = np.linalg.eigvalsh(squares / size[:, :, None] / size[:, None, :])[:, 0]
    return np.asarray(least > _FLOAT)


def _alike(squares: Floats) -> npt.NDArray[np.int64]:
    """The regressor with the largest part in what is not told apart."""
    size = np.sqrt(np.maximum(np.einsum("gii->gi", squares), 1e-300))
    _, vectors = np.linalg.eigh(squares / size[:, :, None] / size[:, None, :])
    return np.asarray(1 + np.argmax(np.abs(vectors[:, 1:, 0]), axis=1), dtype=np.int64)


def _unclear(sums: Floats, weighed: Weighed, n: Floats, rounded: Floats) -> npt.NDArray[np.int64]:
    """The regressor of which least is left beside the others, if that is not clear of noise or rounding; else -1."""
    k = sums.shape[1] - 1
    inverse = np.linalg.inv(sums[:, :k, :k])
    own = np.einsum("gii->gi", inverse)
    g = np.zeros((*inverse.shape[:2], k + 1))
    g[:, :, :k] = inverse
    noise = np.einsum("gti,gtij,gtj->gt", g, weighed(g[..., :, None] * g[..., None, :]), g)
    # What is left of regressor j beside the others is 1/own_j, and noise moves it by noise**0.5/own_j**2.
    clear = own / np.sqrt(np.maximum(noise, _TINY)) / CLEAR
    finer = 1 / (own * np.maximum(n, 1)[:, None] * np.maximum(rounded, 1e-300) * _RESOLVED)
    worth = np.minimum(clear, finer)[:, 1:]
    worst = np.argmin(worth, axis=1)
    return np.where(worth.min(axis=1) < 1, worst + 1, -1)


def nominal(p: int, covariance: Floats, terms: Floats) -> tuple[Floats, Floats]:
    """Of independent columns that are spread evenly: variances by noise times n**2, and by sampling times n."""
    k = p + 1
    inverse = np.diag([1.0, *[3.0] * p])  # of the mean squares 1, 1/3, ...: the response's mean is 0
    off = covariance[:k, k, :k, k]
    told = terms @ inverse
    return np.einsum("ti,ij,tj->t", told, off, told), np.einsum("ti,ti->t", told, terms) / 3
