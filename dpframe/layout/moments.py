"""Answers from second moments: variances, covariances, correlations; and quotients of noisy sums.

Each is a ratio with noise in both parts, or nearly one. Its interval is Fieller's: all v for which
``top - v*bottom`` is within ``f`` times its own size, a quadratic in v (``mechanisms.combine.width_factor``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.layout.answers import Answer, Laws, Noisy
from dpframe.mechanisms.base import Floats
from dpframe.mechanisms.combine import sizes, width_factor


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
        each = self._sizes(laws)
        p, q, r = self._noise(each, a, b)
        extra = f**2 * self._shift(each, self.first, a) * self._shift(each, self.second, b) / n
        low, _ = fieller(s - (0 if self.square else extra), n - self.ddof, p, q, r, f)
        _, high = fieller(s + extra, n - self.ddof, p, q, r, f)
        floor = 0.0 if self.square else -self._cap
        low, high = (np.clip(scale * x, floor, self._cap) for x in (low, high))
        return np.minimum(low, value), np.maximum(high, value)

    def std(self, noisy: Noisy, laws: Laws) -> Floats:
        """To first order, and never more than the answer can be off."""
        spread = self._off(noisy, [laws[i].std for i in self.cells])
        most = np.inf if self.raw else self._cap + (0 if self.square else np.abs(self.value(noisy)))
        return np.minimum(spread, most)

    def size(self, noisy: Noisy, laws: Laws) -> Floats:
        """Like ``std``, of the sizes that ``width_factor`` is for."""
        return self._off(noisy, self._sizes(laws))

    def error(self, laws: Laws, rows: float | None, level: float = 0.95) -> float | None:
        """At worst: every value at a bound."""
        if rows is None:
            return None
        f = width_factor(tuple(laws[i] for i in self.cells), level)
        sd = max(self._sizes(laws)) / self.steps
        second_order = (f * sd) ** 2 * sum((x + 1) ** 2 for x in self.first) / max(rows, 1)
        return min(float(self.scale) * (4 * f * sd + second_order) / max(rows - self.ddof, 1), self._cap)

    def usual_error(self, laws: Laws, rows: float, level: float, v: float) -> float:
        """The half-width on columns scaled to [-1, 1], with means 0 and spread ``v``."""
        f = width_factor(tuple(laws[i] for i in self.cells), level)
        spread = sum(((x - v) * s / self.steps) ** 2 for s, x in zip(self._sizes(laws), self.product))
        return f * math.sqrt(spread) / max(rows - self.ddof, 1)

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

    def _off(self, noisy: Noisy, each: Sequence[float]) -> Floats:
        """The size of the answer, of cells of these sizes, to first order."""
        _, n, a, b = self._sums(noisy)
        p, q, r = self._noise(each, a, b)
        v = self.value(noisy) / float(self.scale)
        spread = np.sqrt(np.maximum(p - 2 * q * v + r * v**2, 0)) / np.maximum(n - self.ddof, 1)
        return np.asarray(float(self.scale) * spread)

    def _sizes(self, laws: Laws) -> tuple[float, ...]:
        return sizes([laws[i] for i in self.cells])

    def _noise(self, each: Sequence[float], a: Floats, b: Floats) -> tuple[Any, Any, Any]:
        """The square of the size of S - v*n, of cells of these sizes, to first order: p - 2*q*v + r*v**2."""
        p: Any = 0.0
        q: Any = 0.0
        r = 0.0
        for size, x, y, xy in zip(each, self.first, self.second, self.product):
            weight, var = xy - a * y - b * x + a * b, (size / self.steps) ** 2
            p, q, r = p + var * weight**2, q + var * weight, r + var
        return p, q, r

    def _shift(self, each: Sequence[float], places: tuple[int, ...], mean: Floats) -> Floats:
        """The size of (sum of a column) - mean*n, of cells of these sizes."""
        total = sum(((x - mean) * size / self.steps) ** 2 for size, x in zip(each, places))
        return np.asarray(np.sqrt(total))


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
        p, r = self._reach(noisy, laws)
        low, high = fieller(c, size, p, 0.0, r, f)
        low, high = np.where(clear, low, -1.0), np.where(clear, high, 1.0)
        return np.minimum(np.clip(low, -1, 1), value), np.maximum(np.clip(high, -1, 1), value)

    def std(self, noisy: Noisy, laws: Laws) -> Floats:
        _, size, clear = self._parts(noisy)
        p, r = self._noise(noisy, laws)
        spread = np.sqrt(p + r * self.value(noisy) ** 2) / np.where(clear, size, 1)
        return np.where(clear, np.minimum(spread, 1), 1.0)

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

    def _noise(self, noisy: Noisy, laws: Laws) -> tuple[Floats, Floats]:
        """Variances of the noise in the covariance, and in the root of both variances."""
        return self._both(noisy, *(s.std(noisy, laws) for s in (self.covariance, self.first, self.second)))

    def _reach(self, noisy: Noisy, laws: Laws) -> tuple[Floats, Floats]:
        """The same of their sizes, which ``width_factor`` is for."""
        return self._both(noisy, *(s.size(noisy, laws) for s in (self.covariance, self.first, self.second)))

    def _both(self, noisy: Noisy, dc: Floats, da: Floats, db: Floats) -> tuple[Floats, Floats]:
        a, b = np.maximum(self.first.value(noisy), 1e-9), np.maximum(self.second.value(noisy), 1e-9)
        return dc**2, (b / a * da**2 + a / b * db**2) / 4


@dataclass(frozen=True, slots=True)
class Quotient(Answer):
    """A noisy sum over a noisy count, within ``limit`` of 0."""

    top: int
    unit: Fraction
    count: int
    limit: Fraction

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
        of_top, of_count = sizes((laws[self.top], laws[self.count]))
        low, high = fieller(top, n, (float(self.unit) * of_top) ** 2, 0, of_count**2, f)
        low, high = np.clip(low, -limit, limit), np.clip(high, -limit, limit)
        return np.minimum(low, value), np.maximum(high, value)

    def std(self, noisy: Noisy, laws: Laws) -> Floats:
        """To first order, and never more than the answer can be off."""
        _, n = self._sums(noisy)
        value = self.value(noisy)
        spread = np.hypot(float(self.unit) * laws[self.top].std, value * laws[self.count].std)
        return np.asarray(np.minimum(spread / np.maximum(n, 1), float(self.limit) + np.abs(value)))

    def error(self, laws: Laws, rows: float | None, level: float = 0.95) -> float | None:
        """At worst: a mean at its limit."""
        if rows is None:
            return None
        f, limit = width_factor((laws[self.top], laws[self.count]), level), float(self.limit)
        of_top, of_count = sizes((laws[self.top], laws[self.count]))
        spread = math.hypot(float(self.unit) * of_top, limit * of_count)
        return min(f * spread / max(rows, 1), 2 * limit)

    def coordinates(self) -> tuple[int, ...]:
        return (self.top, self.count)

    def _sums(self, noisy: Noisy) -> tuple[Floats, Floats]:
        return noisy[self.top].astype(np.float64) * float(self.unit), noisy[self.count].astype(np.float64)


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
