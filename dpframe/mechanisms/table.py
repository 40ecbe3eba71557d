"""Symmetric laws given by a table of integer weights. The table is the law that is certified and drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpframe.accounting.events import Event
from dpframe.mechanisms.base import Floats, Ints, Noise
from dpframe.noise.table import table_sampler

BITS = 224  # of the largest weight: e**80 times a rounding of 1 still leaves less than 2**-100 of it


@dataclass(frozen=True, repr=False)
class TableNoise(Noise):
    """P(X = k) = weights[\\|k\\|] / total for \\|k\\| < len(weights), else 0.

    Attributes
    ----------
    weights : tuple of int
        Of 0, 1, 2, ... steps.
    spread : Fraction
        The law's own scale parameter, in steps.
    cost : Event
    """

    weights: tuple[int, ...] = field(repr=False)
    spread: Fraction
    cost: Event

    @property
    def scale(self) -> Fraction:
        return self.spread

    @property
    def event(self) -> Event:
        return self.cost

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.weights, self.spread, self.cost))

    @cached_property
    def _right(self) -> Floats:
        """P(X = 0), P(X = 1), ..."""
        total = 2 * sum(self.weights) - self.weights[0]
        return np.array([_divide(w, total) for w in self.weights], dtype=np.float64)

    @cached_property
    def _tails(self) -> Floats:
        """P(X >= k) for k = 0, 1, ..., len(weights), summed from the far end."""
        return np.append(np.cumsum(self._right[::-1])[::-1], 0.0)

    def sample(self, size: int) -> Ints:
        mirrored = (*self.weights[:0:-1], *self.weights)
        return table_sampler(mirrored).sample(size) - (len(self.weights) - 1)

    def pmf(self, k: npt.ArrayLike) -> Floats:
        k = np.abs(np.asarray(k, dtype=np.int64))
        return np.where(k < len(self._right), self._right[np.minimum(k, len(self._right) - 1)], 0.0)

    def cdf(self, k: npt.ArrayLike) -> Floats:
        k = np.floor(np.asarray(k, dtype=np.float64))
        last = len(self._tails) - 1
        lower = self._tails[np.clip(-k, 0, last).astype(np.int64)]  # P(X <= k) = P(X >= -k), k <= 0
        upper = 1 - self._tails[np.clip(k + 1, 0, last).astype(np.int64)]
        return np.where(k <= 0, lower, upper)

    @cached_property
    def std(self) -> float:
        k = np.arange(len(self._right), dtype=np.float64)
        return math.sqrt(2 * float(np.sum(k * k * self._right)))

    @cached_property
    def mean_abs(self) -> float:
        return 2 * float(np.sum(np.arange(len(self._right)) * self._right))


def integer_weights(log_weights: Sequence[float] | Floats) -> tuple[int, ...]:
    """Turn log-weights of 0, 1, 2, ... into integers, the largest of them 2**BITS; trailing zeros go."""
    logs = np.asarray(log_weights, dtype=np.float64)
    mantissa, exponent = np.frexp(np.exp(logs - logs.max()))
    whole = [
        int(m * 2**53) << (int(e) + BITS - 53) if e + BITS >= 53 else int(m * 2.0 ** (e + BITS))
        for m, e in zip(mantissa.tolist(), exponent.tolist())
    ]
    while len(whole) > 1 and whole[-1] == 0:
        whole.pop()
    return tuple(whole)


def _divide(a: int, b: int) -> float:
    return a / b  # Python's division of integers rounds correctly
