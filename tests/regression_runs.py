"""Rows of linear models, the exact cells of a regression's blocks, and the noise on them: what tests of regressions share."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import combinations

import numpy as np
from scipy.special import ndtr

from dpframe.layout.families import product_layout, triple_layout
from dpframe.layout.grids import Grid
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.joint import Share
from dpframe.mechanisms.laplace import Laplace
from dpframe.mechanisms.row import Block, calibrate

GRID = Grid(Fraction(1, 2**14), -(2**14), 2**14, False)
K = GRID.count
SLOPES = (0.3, -0.2, 0.1, 0.15, -0.1)


def columns(kind, p, n, correlation, rng):
    """n rows of (x_1, ..., x_p, y) within [-1, 1]."""
    z = (
        rng.normal(size=(n, p))
        @ np.linalg.cholesky(np.full((p, p), correlation) + (1 - correlation) * np.eye(p)).T
    )
    u = ndtr(z)
    if kind == "uniform":
        x = 2 * u - 1
    elif kind == "skewed":
        x = 2 * np.minimum(-np.log1p(-u) / 4, 1) - 1
    else:
        x = np.where(u < 0.1, 1.0, -1.0)
    y = x @ np.array(SLOPES[:p]) + 0.15 * rng.normal(size=n)
    return np.column_stack([x, np.clip(y, -1, 1)])


def layouts(columns):
    made = [triple_layout(3 * j, GRID, missing_cell=False) for j in range(columns)]
    pairs = combinations(range(columns), 2)
    return made + [product_layout(3 * columns + 2 * i, GRID, GRID) for i, _ in enumerate(pairs)]


def cells(rows):
    """The exact integers of every block, from the engine's sums."""
    t = np.rint((rows + 1) * 2**14).astype(np.int64)
    n, d = t.shape
    s, q = t.sum(axis=0), t.T @ t
    out = []
    for j in range(d):
        out += [K * K * n - 2 * K * s[j] + q[j, j], 2 * K * s[j] - 2 * q[j, j], q[j, j]]
    for i, j in combinations(range(d), 2):
        place = 2 * q[i, j] - K * s[i] - K * s[j] + K * K * n
        out += [place, K * K * n - place]
    return out


@lru_cache
def one_draw(columns, eps):
    """The noise of every cell, when all blocks share a draw: free cells have their own, the last what is left of K*k."""
    pairs = columns * (columns - 1) // 2
    row = K * K
    joint = calibrate((Block(row, 2),) * columns + (Block(row),) * pairs, Target(eps))
    size = len(joint.coordinates)
    laws, at = [], 1
    for cells in [3] * columns + [2] * pairs:
        last = np.zeros(size, dtype=int)
        last[0] = row
        for _ in range(cells - 1):
            own = np.zeros(size, dtype=int)
            own[at] = 1
            last -= own
            at += 1
            laws.append(Share(joint, 0, tuple(map(int, own)), row))
        laws.append(Share(joint, 0, tuple(map(int, last)), row))
    return joint, tuple(laws)


@lru_cache
def split(columns, eps):
    parts = columns + columns * (columns - 1) // 2
    noise = Laplace().calibrate(Fraction(K * K) * parts, 1, Target(eps))
    return None, (noise,) * (3 * columns + columns * (columns - 1))
