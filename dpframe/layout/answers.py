"""How noisy integers become an answer, its standard deviation and its interval.

Everything here works on public numbers: noisy coordinates, and the laws of their noise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dpframe.mechanisms.base import Floats, Ints, Noise
from dpframe.mechanisms.combine import halfwidth, spread, std

Noisy = Sequence[Ints]
Laws = Sequence[Noise]
Bounds = tuple[Fraction, Fraction]
Slopes = Mapping[int, float | Floats]  # by coordinate; of every group, or of all


class Answer(ABC):
    """A rule from noisy coordinates to one output column."""

    integer: bool = False
    ranged: bool = True  # whether it has a standard deviation and an interval
    margin_of: str = "the answer"  # what ``error`` is about

    @property
    def worth(self) -> Fraction | None:
        """What one step of its first coordinate is worth, in the answer's unit; None for cells, which hold rows."""
        return None

    @abstractmethod
    def value(self, noisy: Noisy) -> npt.NDArray[Any]:
        """The answer, int64 when ``integer`` and float64 otherwise."""

    @abstractmethod
    def interval(self, noisy: Noisy, laws: Laws, level: float) -> tuple[Floats, Floats]:
        """Lower and upper ends of the interval that holds the exact clipped answer with ``level``."""

    @abstractmethod
    def std(self, noisy: Noisy, laws: Laws) -> Floats:
        """Standard deviation of the noise in the answer."""

    def slopes(self, noisy: Noisy) -> Slopes:
        """Its derivatives in its coordinates; what is cut off at a bound is not heeded."""
        self.std(noisy, ())  # says why it has none
        raise NotImplementedError

    @abstractmethod
    def error(self, laws: Laws, rows: float | None, level: float = 0.95) -> float | None:
        """How far the answer is off at most with ``level``, whatever the data; None if it needs ``rows``, not given."""

    def cases(self, laws: Laws, rows: float, level: float = 0.95) -> tuple[tuple[str, float], ...]:
        """Half-widths for data that are better than the worst, each with what it assumes of them."""
        return ()

    def beside(self, noisy: Noisy, laws: Laws, level: float) -> dict[str, npt.NDArray[Any]]:
        """Further columns that its table tells, intervals at ``level`` among them."""
        return {}

    def calibrated(self, laws: Laws) -> Answer:
        """The same rule, now that the noise is known."""
        return self

    @abstractmethod
    def coordinates(self) -> tuple[int, ...]:
        """The coordinates that the answer reads."""


@dataclass(frozen=True, slots=True)
class Linear(Answer):
    """A weighted sum of coordinates plus a constant: counts, sums, and means with a public n."""

    terms: tuple[tuple[int, Fraction], ...]
    const: Fraction = Fraction(0)
    integer: bool = False
    clamp: Bounds | None = None

    @property
    def worth(self) -> Fraction | None:
        return abs(self.terms[0][1]) if len(self.terms) == 1 else None

    def value(self, noisy: Noisy) -> npt.NDArray[Any]:
        if self.integer and self._exact:
            return noisy[self.terms[0][0]]
        total = sum(float(c) * noisy[i].astype(np.float64) for i, c in self.terms) + float(self.const)
        if self.integer:
            return np.rint(total).astype(np.int64)
        return np.asarray(_clamp(total, self.clamp))

    def interval(self, noisy: Noisy, laws: Laws, level: float) -> tuple[Floats, Floats]:
        centre = self.value(noisy).astype(np.float64)
        w = self._halfwidth(laws, level)
        low, high = centre - w, centre + w
        return np.asarray(_clamp(low, self.clamp)), np.asarray(_clamp(high, self.clamp))

    def std(self, noisy: Noisy, laws: Laws) -> Floats:
        off = std(self._weighted(laws))
        if self.integer and not self._exact:
            off = float(np.hypot(off, 12**-0.5))  # rounding to integers
        return np.full(len(noisy[self.terms[0][0]]), off)

    def slopes(self, noisy: Noisy) -> Slopes:
        return {i: float(c) for i, c in self.terms}

    def error(self, laws: Laws, rows: float | None, level: float = 0.95) -> float:
        return self._halfwidth(laws, level)

    def coordinates(self) -> tuple[int, ...]:
        return tuple(i for i, _ in self.terms)

    def _weighted(self, laws: Laws) -> tuple[tuple[Noise, float], ...]:
        return tuple((laws[i], float(c)) for i, c in self.terms)

    def _halfwidth(self, laws: Laws, level: float) -> float:
        w = halfwidth(self._weighted(laws), level)
        # An answer rounded to integers is within w exactly when the sum was within w + 1/2.
        return float(max(0, np.ceil(w - 0.5))) if self.integer and not self._exact else w

    @property
    def _exact(self) -> bool:
        """Whether the coordinate is the answer as it stands."""
        return len(self.terms) == 1 and self.terms[0][1] == 1


@dataclass(frozen=True, slots=True)
class Ratio(Answer):
    """A mean from the cells B of a simplex block: middle + half * (sum of y*B)/max(sum of B, least).

    ``places`` are the cells' y: 1 and -1 for (U, V), and -1, 0, 1 for the triple. ``steps`` is what one row adds to the
    sum of B at most, and ``lightest`` the least part of that; ``bounds`` is what the answer is cut to. The interval is
    Fieller's: all tau for which T(tau) = sum of (y - tau)*B is within the noise of that sum, put on
    the column's scale and cut to the bounds.
    """

    cells: tuple[int, ...]
    places: tuple[int, ...]
    least: int
    steps: int
    middle: Fraction
    half: Fraction
    bounds: Bounds
    lightest: Fraction = Fraction(1)

    def value(self, noisy: Noisy) -> Floats:
        top, n = self._sums(noisy)
        return np.asarray(_clamp(float(self.middle) + float(self.half) * self._tau(top, n), self.bounds))

    def interval(self, noisy: Noisy, laws: Laws, level: float) -> tuple[Floats, Floats]:
        top, n = self._sums(noisy)
        grid, widths = self._widths(laws, level)

        def w(tau: Floats) -> Floats:
            return np.asarray(np.interp(np.abs(tau), grid, widths))

        tau = self._tau(top, n)
        low = _edge(lambda x: top - x * n > w(x), tau, -1.0)
        high = _edge(lambda x: top - x * n < -w(x), tau, 1.0)
        hopeless = n <= 0  # no rows are in sight: the data say nothing about their mean
        low, high = np.where(hopeless, -1.0, low), np.where(hopeless, 1.0, high)
        # Where noise put the estimate beyond a bound, little or nothing of the set may be left within. That
        # is no sign of precision: the nearest bound is then reported with the margin of the estimate.
        margin = w(tau) / np.maximum(n, self.least)
        outside = ~hopeless & (np.abs(tau) == 1) & (high - low < margin / 4)
        low = np.where(outside, np.maximum(np.minimum(low, tau - margin), -1), low)
        high = np.where(outside, np.minimum(np.maximum(high, tau + margin), 1), high)
        middle, half = float(self.middle), float(self.half)
        return (
            np.asarray(_clamp(middle + half * low, self.bounds)),
            np.asarray(_clamp(middle + half * high, self.bounds)),
        )

    def std(self, noisy: Noisy, laws: Laws) -> Floats:
        """To first order, and never more than the answer can be off: it lies between the bounds, as the exact one."""
        tau = self._tau(*self._sums(noisy))
        return np.minimum(first_order(self.slopes(noisy), laws), float(self.half) * (1 + np.abs(tau)))

    def slopes(self, noisy: Noisy) -> Slopes:
        top, n = self._sums(noisy)
        tau, per_step = self._tau(top, n), float(self.half) / np.maximum(n, self.least)
        return {i: (y - tau) * per_step for i, y in zip(self.cells, self.places)}

    def error(self, laws: Laws, rows: float | None, level: float = 0.95) -> float | None:
        """At either bound, where it is worst; of a weighted mean, for rows of the least weight."""
        if rows is None:
            return None
        return self._error(laws, rows * float(self.lightest), level)

    def cases(self, laws: Laws, rows: float, level: float = 0.95) -> tuple[tuple[str, float], ...]:
        return () if self.lightest == 1 else (("rows of full weight", self._error(laws, rows, level)),)

    def coordinates(self) -> tuple[int, ...]:
        return self.cells

    def _error(self, laws: Laws, full_rows: float, level: float) -> float:
        worst, most = float(self.half) * float(self._widths(laws, level)[1][-1]), 2 * float(self.half)
        return min(worst / (full_rows * self.steps), most) if full_rows else most

    def _widths(self, laws: Laws, level: float) -> tuple[Floats, Floats]:
        return _fieller_widths(tuple(laws[i] for i in self.cells), self.places, level)

    def _sums(self, noisy: Noisy) -> tuple[Floats, Floats]:
        cells = [noisy[i].astype(np.float64) for i in self.cells]
        return np.asarray(sum(y * b for y, b in zip(self.places, cells))), np.asarray(sum(cells))

    def _tau(self, top: Floats, n: Floats) -> Floats:
        return np.clip(top / np.maximum(n, self.least), -1, 1)


def first_order(slopes: Slopes, laws: Laws) -> Floats:
    """Standard deviation of what has these slopes."""
    return spread([laws[i] for i in slopes], list(slopes.values()))


def _clamp(x: Any, bounds: Bounds | None) -> Any:
    return x if bounds is None else np.clip(x, float(bounds[0]), float(bounds[1]))


def _edge(outside: Any, inside: Floats, end: float) -> Floats:
    """Bisect from ``inside`` to ``end`` for where ``outside`` begins; ``end`` itself if it is not outside.

    T is linear in tau and w convex, so each side has one crossing at most.
    """
    far = np.full_like(inside, end)
    reached = ~outside(far)
    near = inside.copy()
    for _ in range(48):
        middle = (near + far) / 2
        out = outside(middle)
        far = np.where(out, middle, far)
        near = np.where(out, near, middle)
    return np.where(reached, end, far)


@lru_cache(maxsize=256)
def _fieller_widths(laws: tuple[Noise, ...], places: tuple[int, ...], level: float) -> tuple[Floats, Floats]:
    """w(tau) on a grid; between its points the chord of a convex function errs upwards."""
    grid = np.linspace(0, 1, 17)
    widths = [
        max(halfwidth(tuple((law, y - t) for law, y in zip(laws, places)), level) for t in (tau, -tau))
        for tau in grid
    ]
    return grid, np.array(widths)
