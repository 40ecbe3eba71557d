"""Answers from second moments: variances, covariances, correlations; and quotients of noisy sums.

Each is a ratio with noise in both parts, or nearly one. Its interval is Fieller's: all v for which
``top - v*bottom`` is within ``f`` times its own size, a quadratic in v (``mechanisms.combine.width_factor``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.layout.answers import Answer, Laws, Noisy, Slopes, first_order
from dpframe.mechanisms.base import Floats
from dpframe.mechanisms.combine import product, sizes, width_factor


def fieller(top: Any, bottom: Any, p: Any, q: Any, r: Any, f: float) -> tuple[Floats, Floats]:
    """Ends of {v : (top - v*bottom)**2 <= f**2 * (p - 2*q*v + r*v**2)}; infinite where bottom is not clear of 0."""
    a, b, c = bottom**2 - f**2 * r, top * bottom - f**2 * q, top**2 - f**2 * p
    clear = (a > 0) & (bottom > 0)
    a = np.where(clear, a, 1.0)
    root = np.sqrt(np.maximum(b**2 - a * c, 0))
    return np.where(clear, (b - root) / a, -np.inf), np.where(clear, (b + root) / a, np.inf)


@dataclass(frozen=True, slots=True)
class Spread(Answer):
    """A variance or covariance from the cells of a block, on columns scaled to [-1, 1] and back.

    Of cell j, ``first`` and ``second`` are the two values and ``product`` is their product (the middle cell of a
    triple has both values 0 and product -1). The estimate is S/(n - ddof) with S = sum of products -
    (sum of first)(sum of second)/n, S at least 0 for a variance, at most n, and n - ddof at least 1: of
    fewer than ddof + 1 rows it is 0 plus noise.

    The interval: Fieller's for S and n with the means plugged in, widened by a bound on the product of the
    noises of the two sums (upwards only for a variance), then cut to what is possible.
    """

    cells: tuple[int, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]
    product: tuple[int, ...]
    steps: int
    scale: Fraction
    ddof: int
    square: bool
    raw: bool = False

    def value(self, noisy: Noisy) -> Floats:
        s, n, _, _ = self._sums(noisy)
        if not self.raw:
            s = np.clip(s, 0 if self.square else -n, n)
        return np.asarray(float(self.scale) * s / np.maximum(n - self.ddof, 1))

    def interval(self, noisy: Noisy, laws: Laws, level: float) -> tuple[Floats, Floats]:
        value, scale = self.value(noisy), float(self.scale)
        f = width_factor(tuple(laws[i] for i in self.cells), level)
        s, n, a, b = self._sums(noisy)
        p, q, r = self._noise(laws, a, b)
        extra = f**2 * self._shift(laws, self.first, a) * self._shift(laws, self.second, b) / n
        low, _ = fieller(s - (0 if self.square else extra), n - self.ddof, p, q, r, f)
        _, high = fieller(s + extra, n - self.ddof, p, q, r, f)
        floor = 0.0 if self.square else -self._cap
        low, high = (np.clip(scale * x, floor, self._cap) for x in (low, high))
        return np.minimum(low, value), np.maximum(high, value)

    def std(self, noisy: Noisy, laws: Laws) -> Floats:
        """To first order, and never more than the answer can be off."""
        most = np.inf if self.raw else self._cap + (0 if self.square else np.abs(self.value(noisy)))
        return np.minimum(first_order(self.slopes(noisy), laws), most)

    def slopes(self, noisy: Noisy) -> Slopes:
        _, n, a, b = self._sums(noisy)
        v = self.value(noisy) / float(self.scale)
        per_step = float(self.scale) / (np.maximum(n - self.ddof, 1) * self.steps)
        return {i: (w - v) * per_step for i, w in zip(self.cells, self._weights(a, b))}

    def error(self, laws: Laws, rows: float | None, level: float = 0.95) -> float | None:
        """At worst: every value at a bound."""
        if rows is None:
            return None
        f = width_factor(tuple(laws[i] for i in self.cells), level)
        corners = [(a, b) for a in (-1.0, 1.0) for b in (-1.0, 1.0) if a == b or not self.square]
        first = max(math.sqrt(float(self._noise(laws, a, b)[0])) for a, b in corners)
        both = max(
            float(self._shift(laws, self.first, a) * self._shift(laws, self.second, b)) for a, b in corners
        )
        off = f * first + f**2 * both / max(rows, 1)
        return min(float(self.scale) * off / max(rows - self.ddof, 1), self._cap)

    def usual_error(self, laws: Laws, rows: float, level: float, v: float) -> float:
        """The half-width on columns scaled to [-1, 1], with means 0 and spread ``v``."""
        f = width_factor(tuple(laws[i] for i in self.cells), level)
        weights = [(x - v) / self.steps for x in self.product]
        spread = product(sizes([laws[i] for i in self.cells]), weights, weights)
        return f * math.sqrt(max(float(spread), 0.0)) / max(rows - self.ddof, 1)

    def coordinates(self) -> tuple[int, ...]:
        return self.cells

    @property
    def _cap(self) -> float:
        return float(self.scale * (self.ddof + 1))

    def _sums(self, noisy: Noisy) -> tuple[Floats, Floats, Floats, Floats]:
        """S, n (at least 1), and the means of both columns."""
        cells = [noisy[i].astype(np.float64) / self.steps for i in self.cells]
        n = np.maximum(sum(cells), 1.0)
        a = sum(x * c for x, c in zip(self.first, cells))
        b = sum(x * c for x, c in zip(self.second, cells))
        s = sum(x * c for x, c in zip(self.product, cells)) - a * b / n
        return np.asarray(s), np.asarray(n), np.clip(a / n, -1, 1), np.clip(b / n, -1, 1)

    def _weights(self, a: Any, b: Any) -> list[Any]:
        """The slopes of S in the cells, in rows, where the means are ``a`` and ``b``."""
        every = zip(self.first, self.second, self.product)
        return [xy - a * y - b * x + a * b for x, y, xy in every]

    def _noise(self, laws: Laws, a: Any, b: Any) -> tuple[Floats, Floats, Floats]:
        """The square of the size of S - v*n, to first order: p - 2*q*v + r*v**2."""
        each, of_n = self._weights(a, b), [1.0] * len(self.cells)
        matrix = sizes([laws[i] for i in self.cells]) / self.steps**2
        return product(matrix, each, each), product(matrix, each, of_n), product(matrix, of_n, of_n)

    def _shift(self, laws: Laws, places: tuple[int, ...], mean: Any) -> Floats:
        """The size of (sum of a column) - mean*n."""
        weights = [(x - mean) / self.steps for x in places]
        found = product(sizes([laws[i] for i in self.cells]), weights, weights)
        return np.sqrt(np.maximum(found, 0.0))


@dataclass(frozen=True, slots=True)
class Root(Answer):
    """The square root of a variance; its interval is that of the variance, rooted."""

    spread: Spread

    def value(self, noisy: Noisy) -> Floats:
        return np.sqrt(self.spread.value(noisy))

    def interval(self, noisy: Noisy, laws: Laws, level: float) -> tuple[Floats, Floats]:
        low, high = self.spread.interval(noisy, laws, level)
        return np.sqrt(low), np.sqrt(high)

    def std(self, noisy: Noisy, laws: Laws) -> Floats:
        """To first order, and never more than the root of the variance's own."""
        most = np.sqrt(self.spread.std(noisy, laws))
        return np.asarray(most * np.minimum(1, most / np.maximum(2 * self.value(noisy), 1e-300)))

    def slopes(self, noisy: Noisy) -> Slopes:
        per_variance = 1 / np.maximum(2 * self.value(noisy), 1e-300)
        return {i: x * per_variance for i, x in self.spread.slopes(noisy).items()}

    def error(self, laws: Laws, rows: float | None, level: float = 0.95) -> float | None:
        """At worst: values that are all alike, where the root is steepest."""
        of_variance = self.spread.error(laws, rows, level)
        return None if of_variance is None else math.sqrt(of_variance)

    def cases(self, laws: Laws, rows: float, level: float = 0.95) -> tuple[tuple[str, float], ...]:
        half = math.sqrt(self.spread.scale)
        e = self.spread.usual_error(laws, rows, level, 1 / 3)
        worst = math.sqrt(self.spread.error(laws, rows, level) or 0)
        return (("values spread evenly between the bounds", min(half * e / (2 * math.sqrt(1 / 3)), worst)),)

    def coordinates(self) -> tuple[int, ...]:
        return self.spread.cells


@dataclass(frozen=True, slots=True)
class Correlation(Answer):
    """Covariance over the root of both variances, within [-1, 1]; 0 where a variance is not above 0.

    The interval is Fieller's for the covariance over that root, the root's noise to first order.
    """

    covariance: Spread
    first: Spread
    second: Spread

    def value(self, noisy: Noisy) -> Floats:
        c, size, _ = self._parts(noisy)
        return np.clip(np.where(size > 0, c / np.where(size > 0, size, 1), 0.0), -1, 1)

    def interval(self, noisy: Noisy, laws: Laws, level: float) -> tuple[Floats, Floats]:
        value, f = self.value(noisy), width_factor(tuple(laws[i] for i in self.coordinates()), level)
        c, size, clear = self._parts(noisy)
        coordinates, top, bottom = self._slopes(noisy)
        matrix = sizes([laws[i] for i in coordinates])
        p, q, r = (product(matrix, *both) for both in ((top, top), (top, bottom), (bottom, bottom)))
        low, high = fieller(c, size, p, q, r, f)
        low, high = np.where(clear, low, -1.0), np.where(clear, high, 1.0)
        return np.minimum(np.clip(low, -1, 1), value), np.maximum(np.clip(high, -1, 1), value)

    def std(self, noisy: Noisy, laws: Laws) -> Floats:
        _, _, clear = self._parts(noisy)
        return np.where(clear, np.minimum(first_order(self.slopes(noisy), laws), 1), 1.0)

    def slopes(self, noisy: Noisy) -> Slopes:
        _, size, clear = self._parts(noisy)
        value, per_size = self.value(noisy), 1 / np.where(clear, size, 1)
        return {i: (t - value * b) * per_size for i, t, b in zip(*self._slopes(noisy))}

    def error(self, laws: Laws, rows: float | None, level: float = 0.95) -> float | None:
        """At worst: of columns that hardly vary a correlation can be anything, at every number of rows."""
        return 2.0

    def cases(self, laws: Laws, rows: float, level: float = 0.95) -> tuple[tuple[str, float], ...]:
        usual = min(3 * self.covariance.usual_error(laws, rows, level, 0.0), 1.0)
        return (("independent columns spread evenly between their bounds", usual),)

    def coordinates(self) -> tuple[int, ...]:
        return self.covariance.cells + self.first.cells + self.second.cells

    def _parts(self, noisy: Noisy) -> tuple[Floats, Floats, Any]:
        """The covariance, the root of both variances, and whether both are above 0."""
        c, a, b = (s.value(noisy) for s in (self.covariance, self.first, self.second))
        clear = (a > 0) & (b > 0)
        return c, np.sqrt(np.where(clear, a * b, 0.0)), clear

    def _slopes(self, noisy: Noisy) -> tuple[tuple[int, ...], list[Any], list[Any]]:
        """Coordinates, and in them the slopes of the covariance and of the root of both variances."""
        a, b = np.maximum(self.first.value(noisy), 1e-9), np.maximum(self.second.value(noisy), 1e-9)
        top = dict(self.covariance.slopes(noisy))
        bottom: dict[int, Any] = {}
        for s, weight in ((self.first, np.sqrt(b / a) / 2), (self.second, np.sqrt(a / b) / 2)):
            for i, x in s.slopes(noisy).items():
                bottom[i] = bottom.get(i, 0.0) + weight * x
        every = tuple(dict.fromkeys((*top, *bottom)))
        return every, [top.get(i, 0.0) for i in every], [bottom.get(i, 0.0) for i in every]


@dataclass(frozen=True, slots=True)
class Quotient(Answer):
    """A noisy sum over a noisy count, within ``limit`` of 0; a row is ``row`` steps of the count."""

    top: int
    unit: Fraction
    count: int
    limit: Fraction
    row: int = 1

    @property
    def worth(self) -> Fraction | None:
        return self.unit

    def value(self, noisy: Noisy) -> Floats:
        top, n = self._sums(noisy)
        return np.clip(top / np.maximum(n, 1), -float(self.limit), float(self.limit))

    def interval(self, noisy: Noisy, laws: Laws, level: float) -> tuple[Floats, Floats]:
        value, limit = self.value(noisy), float(self.limit)
        top, n = self._sums(noisy)
        f = width_factor((laws[self.top], laws[self.count]), level)
        low, high = fieller(top, n, *self._sizes(laws), f)
        low, high = np.clip(low, -limit, limit), np.clip(high, -limit, limit)
        return np.minimum(low, value), np.maximum(high, value)

    def std(self, noisy: Noisy, laws: Laws) -> Floats:
        """To first order, and never more than the answer can be off."""
        most = float(self.limit) + np.abs(self.value(noisy))
        return np.minimum(first_order(self.slopes(noisy), laws), most)

    def slopes(self, noisy: Noisy) -> Slopes:
        per_row = 1 / np.maximum(self._sums(noisy)[1], 1)
        return {self.top: float(self.unit) * per_row, self.count: -self.value(noisy) * per_row / self.row}

    def error(self, laws: Laws, rows: float | None, level: float = 0.95) -> float | None:
        """At worst: a mean at its limit."""
        if rows is None:
            return None
        f, limit = width_factor((laws[self.top], laws[self.count]), level), float(self.limit)
        p, q, r = self._sizes(laws)
        spread = math.sqrt(max(p + 2 * abs(q) * limit + r * limit**2, 0.0))
        return min(f * spread / max(rows, 1), 2 * limit)

    def coordinates(self) -> tuple[int, ...]:
        return (self.top, self.count)

    def _sizes(self, laws: Laws) -> tuple[float, float, float]:
        """The square of the size of top - v*count is p - 2*q*v + r*v**2."""
        matrix, unit = sizes((laws[self.top], laws[self.count])), float(self.unit)
        both = unit / self.row
        return float(matrix[0, 0] * unit**2), float(matrix[0, 1] * both), float(matrix[1, 1] / self.row**2)

    def _sums(self, noisy: Noisy) -> tuple[Floats, Floats]:
        top, count = (noisy[i].astype(np.float64) for i in (self.top, self.count))
        return top * float(self.unit), count / self.row


def variance(cells: tuple[int, ...], steps: int, half: Fraction, ddof: int, *, raw: bool = False) -> Spread:
    """The variance from a triple."""
    y = (-1, 0, 1)
    return Spread(cells, y, y, (1, -1, 1), steps, half**2, ddof, True, raw)


def covariance(cells: tuple[int, ...], steps: int, scale: Fraction, ddof: int) -> Spread:
    """The covariance from the four cells of a pair."""
    return Spread(cells, (-1, 1, -1, 1), (-1, -1, 1, 1), (1, -1, -1, 1), steps, scale, ddof, False)


def unscaled(s: Spread) -> Spread:
    """The same on columns scaled to [-1, 1], over n itself."""
    return replace(s, scale=Fraction(1), ddof=0)
