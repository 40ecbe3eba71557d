"""Answers of a linear regression: the coefficients, and what is told beside them, from the blocks of all its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dpframe.frames.contract import Ints, KeyColumns, Source
from dpframe.layout.answers import Answer, Laws, Noisy
from dpframe.layout.layouts import Layout
from dpframe.layout.least_squares import Fit, fit, nominal
from dpframe.layout.tables import Fixed
from dpframe.mechanisms.base import Floats, Noise
from dpframe.mechanisms.combine import covariances

BESIDE = ("std_error", "low", "high", "n", "residual_sd", "r_squared", "note")
TERM = "term"
CONSTANT = "intercept"


@dataclass(frozen=True, slots=True)
class Terms(Fixed):
    """The terms of a regression in every group, each of whose pieces is one integer a group."""

    def rows(self, keys: KeyColumns, source: Source, noisy: list[Ints]) -> KeyColumns:
        groups = np.repeat(np.arange(len(noisy[self.piece])), self.width)
        return keys.take(groups).beside(self.lines(source).take(self.places(groups)).columns)


@dataclass(frozen=True, slots=True)
class Coefficients(Answer):
    """The constant and the slope of every regressor, in the columns' units: one row a term in every group.

    ``spreads`` are the cells of every column's triple, the response's last, and ``products`` those of every pair, in the
    order of ``combinations``; ``rows`` is what a row adds to each of these blocks, and ``rounded`` the variance that
    rounding to the grid adds to each column, between -1 and 1.

    The interval is Student's, around an estimate from which the noise's bias is taken to second order, with the
    variances of noise and sampling added up (:mod:`dpframe.layout.least_squares`). Where rows are too few, or a regressor
    is not told apart from a constant or from the others, nothing is told: the estimate is NaN and the interval the line.
    """

    spreads: tuple[tuple[int, ...], ...]
    products: tuple[tuple[int, ...], ...]
    rows: tuple[int, ...]
    middles: tuple[Fraction, ...]
    halves: tuple[Fraction, ...]
    rounded: tuple[float, ...]
    names: tuple[str, ...]
    margin_of: str = "the coefficient in the population that the rows are drawn from"
    laws: tuple[Noise, ...] = ()

    def calibrated(self, laws: Laws) -> Answer:
        return replace(self, laws=tuple(laws[i] for i in self.coordinates()))

    def value(self, noisy: Noisy) -> Floats:
        return self._told(self._fit(noisy, self.laws))

    def beside(self, noisy: Noisy, laws: Laws, level: float) -> dict[str, npt.NDArray[Any]]:
        found = self._fit(noisy, self._of(laws))
        terms = len(self.spreads)
        w = self._halfwidth(found, level)
        centre = self._told(found)
        spread = np.where(found.spread > 0, found.spread, np.nan)
        columns: tuple[npt.NDArray[Any], ...] = (
            np.sqrt(found.variance).ravel(),
            centre - w,
            centre + w,
            np.repeat(np.rint(found.rows).astype(np.int64), terms),
            np.repeat(float(self.halves[-1]) * np.sqrt(spread), terms),
            np.repeat(found.explained, terms),
            np.repeat(self._notes(found), terms),
        )
        return dict(zip(BESIDE, columns, strict=True))

    def interval(self, noisy: Noisy, laws: Laws, level: float) -> tuple[Floats, Floats]:
        found = self._fit(noisy, self._of(laws))
        w, centre = self._halfwidth(found, level), self._told(found)
        told = ~np.isnan(centre)
        return np.where(told, centre - w, -np.inf), np.where(told, centre + w, np.inf)

    def std(self, noisy: Noisy, laws: Laws) -> Floats:
        """Of noise and sampling; where nothing is told, of noise with independent columns spread evenly."""
        of = self._of(laws)
        found = self._fit(noisy, of)
        usual = nominal(len(self.spreads) - 1, self._covariance(of), self._terms)[0]
        usual = np.sqrt(usual) / np.maximum(found.rows, 1.0)[:, None]
        return np.asarray(np.where(np.isnan(found.variance), usual, np.sqrt(found.variance)).ravel())

    def error(self, laws: Laws, rows: float | None, level: float = 0.95) -> float | None:
        """At worst: regressors that hardly vary, whose slopes can be anything, at every number of rows."""
        return None if rows is None else float("inf")

    def cases(self, laws: Laws, rows: float, level: float = 0.95) -> tuple[tuple[str, float], ...]:
        noise, sampling = nominal(len(self.spreads) - 1, self._covariance(self._of(laws)), self._terms)
        n = max(rows, 1.0)
        spread = np.sqrt(noise / n**2 + sampling / n)[1:].max()
        return (
            (
                "slopes of independent columns spread evenly between their bounds",
                float(_student(np.array(max(n - len(self.spreads), 1.0)), level) * spread),
            ),
        )

    def coordinates(self) -> tuple[int, ...]:
        return tuple(i for block in (*self.spreads, *self.products) for i in block)

    def _of(self, laws: Laws) -> tuple[Noise, ...]:
        return tuple(laws[i] for i in self.coordinates())

    def _fit(self, noisy: Noisy, laws: tuple[Noise, ...]) -> Fit:
        cells = np.array([noisy[i] for i in self.coordinates()], dtype=np.float64)
        sums = np.tensordot(cells, self._maps, axes=(0, 2))
        rounded = np.array([0.0, *self.rounded[:-1]])
        return fit(np.asarray(sums), self._covariance(laws), self._terms, rounded)

    def _told(self, found: Fit) -> Floats:
        centre = np.zeros(found.estimate.shape[1])
        centre[0] = float(self.middles[-1])
        return np.asarray((found.estimate + centre).ravel())

    def _halfwidth(self, found: Fit, level: float) -> Floats:
        return np.asarray((_student(found.freedom, level) * np.sqrt(found.variance)).ravel())

    def _notes(self, found: Fit) -> npt.NDArray[np.str_]:
        """Why something is not told, for every group; '' where all is."""
        notes = ["too few rows for this noise", "the residuals are not told apart from the noise", ""]
        beside = " beside the other columns" if len(self.names) > 2 else ""
        notes += [f"{name!r} hardly varies{beside}, compared to the noise" for name in self.names]
        which = np.where(found.spread > 0, 2, 1)
        which = np.where(found.tied >= 0, 3 + found.tied, which)
        return np.array(notes)[np.where(found.few, 0, which)]

    @property
    def _terms(self) -> Floats:
        """Of coefficients between -1 and 1, those in the columns' units: the constant is that at 0 of all regressors."""
        half = [float(self.halves[-1] / h) for h in self.halves[:-1]]
        out = np.diag([float(self.halves[-1]), *half])
        out[0, 1:] = [-float(m) * s for m, s in zip(self.middles[:-1], half)]
        return out

    @property
    def _maps(self) -> Floats:
        return _maps(len(self.spreads), self.rows)

    def _covariance(self, laws: tuple[Noise, ...]) -> Floats:
        return _covariance(len(self.spreads), self.rows, laws)


def regression(layouts: Sequence[Layout], names: Sequence[str]) -> Coefficients:
    """The coefficients, from the layouts of every column's spread (the response's last), then of every product."""
    columns = len(names) + 1
    spreads, products = layouts[:columns], layouts[columns:]
    grids = [x.grid for x in spreads]
    return Coefficients(
        tuple(x.cells for x in spreads),
        tuple(x.cells for x in products),
        tuple(x.row for x in layouts),
        tuple(g.middle for g in grids),
        tuple(g.half for g in grids),
        tuple(0.0 if g.integer and g.step == 1 else 1 / (3 * g.count**2) for g in grids),
        (CONSTANT, *names),
    )


def _student(freedom: Floats, level: float) -> Floats:
    from scipy.special import stdtrit

    return np.asarray(stdtrit(freedom, (1 + level) / 2))


@lru_cache(maxsize=64)
def _maps(columns: int, rows: tuple[int, ...]) -> Floats:
    """The sums of products of (1, columns) as sums over cells: of (columns + 1, columns + 1, cells).

    All blocks hold the number of rows; it is their mean, weighted by 1/(number of cells) as in a count.
    """
    pairs = [(i + 1, j + 1) for i in range(columns) for j in range(i + 1, columns)]
    sizes = [3] * columns + [2] * len(pairs)
    out = np.zeros((columns + 1, columns + 1, sum(sizes)))
    total = sum(1 / s for s in sizes)
    at = 0
    for block, (size, row) in enumerate(zip(sizes, rows, strict=True)):
        here = slice(at, at + size)
        out[0, 0, here] = 1 / (size * total * row)
        if block < columns:
            j = block + 1
            out[0, j, here] = out[j, 0, here] = np.array([-1, 0, 1]) / row
            out[j, j, here] = np.array([1, -1, 1]) / row
        else:
            i, j = pairs[block - columns]
            out[i, j, here] = out[j, i, here] = np.array([1, -1]) / row
        at += size
    out.setflags(write=False)
    return out


@lru_cache(maxsize=64)
def _covariance(columns: int, rows: tuple[int, ...], laws: tuple[Noise, ...]) -> Floats:
    """Covariances of the noise in the sums of products."""
    maps = _maps(columns, rows).reshape(-1, len(laws))
    size = columns + 1
    out = np.asarray(maps @ covariances(laws) @ maps.T).reshape(size, size, size, size)
    out.setflags(write=False)
    return out
