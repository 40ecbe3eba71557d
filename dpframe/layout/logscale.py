"""Bounds from a histogram whose edges are powers of two."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpframe.errors import InputError
from dpframe.frames.bins import Cuts
from dpframe.layout.answers import Answer, Laws, Noisy
from dpframe.mechanisms.base import Floats, Noise

FAILURE = 0.01
_POWERS = [2.0**j for j in range(-64, 65)]


@dataclass(frozen=True, slots=True)
class LogScale:
    """Bins from ``low`` to ``high``: away from zero from one power of two to the next, and zero itself.

    A power of two, or its negative, belongs to the bin that is nearer to zero, so it can be a bound.
    """

    low: float
    high: float

    @property
    def edges(self) -> tuple[tuple[float, float], ...]:
        """(low, high) of every bin, in order; both ends may be in it."""
        inner = [x for x in (*(-p for p in reversed(_POWERS)), 0.0, *_POWERS) if self.low < x < self.high]
        bins = list(zip((self.low, *inner), (*inner, self.high)))
        if 0.0 in inner:
            bins.insert(1 + inner.index(0.0), (0.0, 0.0))
        return tuple(bins)

    @property
    def binning(self) -> Cuts:
        """Bins end with their upper edge; below zero they begin with their lower one."""
        points = []
        for _, b in self.edges[:-1]:
            points.append(b)
        for i, b in enumerate(points):
            if b < 0 or (b == 0 and self.edges[i][0] < 0):
                points[i] = float(np.nextafter(b, -np.inf))
        return Cuts(tuple(points), closed=False)


def least_unlikely(law: Noise, bins: int) -> int:
    """The least T that any of ``bins`` empty bins reaches with a probability of at most 1 %."""
    low, high = 0, 1
    while bins * law.upper_tail(high) > FAILURE:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bins * law.upper_tail(middle) <= FAILURE else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class Outermost(Answer):
    """One end of the outermost bins whose noisy count reaches ``least``; of the range, if there are none."""

    piece: int
    scale: LogScale
    high: bool
    least: int = 0

    ranged = False
    margin_of = "the rows that a bin needs"

    def calibrated(self, laws: Laws) -> Outermost:
        return replace(self, least=least_unlikely(laws[self.piece], len(self.scale.edges)))

    def value(self, noisy: Noisy) -> npt.NDArray[Any]:
        lows, highs = (np.array(x) for x in zip(*self.scale.edges))
        seen = noisy[self.piece].reshape(-1, len(lows)) >= self.least
        none = ~seen.any(axis=1)
        first, last = seen.argmax(axis=1), len(lows) - 1 - seen[:, ::-1].argmax(axis=1)
        low, high = lows[first], highs[last]
        none |= low >= high  # nothing but zeros: no bounds
        return np.where(none, self.scale.high, high) if self.high else np.where(none, self.scale.low, low)

    def interval(self, noisy: Noisy, laws: Laws, level: float) -> tuple[Floats, Floats]:
        raise InputError(
            "Bounds have no interval.",
            hint=".facts['outputs'] holds the rows that a bin needs to count, margin_95",
        )

    def std(self, noisy: Noisy, laws: Laws) -> Floats:
        raise InputError(
            "Bounds have no standard deviation.",
            hint=".facts['outputs'] holds the rows that a bin needs to count, margin_95",
        )

    def error(self, laws: Laws, rows: float | None, level: float = 0.95) -> float:
        return float(self.least)

    def coordinates(self) -> tuple[int, ...]:
        return (self.piece,)
