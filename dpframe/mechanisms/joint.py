"""Noise that is drawn together: several integers of one law, and the combinations of them that are released.

A joint law has coordinates; each released integer gets a whole-number combination of them. Two of one draw depend on
each other, so nothing may add up their variances: :mod:`dpframe.mechanisms.combine` merges them first.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpframe.accounting.events import Event
from dpframe.errors import Arg, MechanismError
from dpframe.mechanisms.base import Floats, Ints, Noise

Form = tuple[float, ...]  # a weight for every coordinate


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One number of a draw: the rows (``block`` None), a block's present rows (``cell`` None), or one of its cells."""

    block: int | None = None
    cell: int | None = None


class Joint(ABC):
    """Integers that are drawn together, symmetric about 0. Immutable and hashable; holds no data.

    Attributes
    ----------
    event : Event
        What one draw for every group costs.
    scale : Fraction
        In rows.
    """

    event: Event
    scale: Fraction

    @property
    @abstractmethod
    def coordinates(self) -> tuple[Coordinate, ...]:
        """What is drawn, in order; the first is the number of rows."""

    @property
    @abstractmethod
    def covariance(self) -> Floats:
        """Covariances of the coordinates, in rows and steps."""

    @abstractmethod
    def draw(self, size: int) -> Ints:
        """Return ``size`` independent draws: int64 of (coordinates, size)."""

    @abstractmethod
    def outside(self, form: Form, w: Floats) -> Floats:
        """P(\\|form\\| > w), or an upper bound of it (see :meth:`known`)."""

    @abstractmethod
    def halfwidth(self, form: Form, level: float) -> float:
        """A w with P(\\|form\\| <= w) >= level; the least one where the form's law is known."""

    @abstractmethod
    def known(self, form: Form) -> bool:
        """Whether the law of this form is computed, and not bounded by its standard deviation."""

    @abstractmethod
    def factor(self, level: float) -> float:
        """An f with P(\\|form\\| <= f * std) >= level, whatever the form."""

    @abstractmethod
    def tail(self, form: Form, least: int) -> float:
        """P(form >= least), rounded up: for thresholds, so never below the truth."""

    def rows_tail(self, least: int) -> float:
        """P(noise of the number of rows >= least), rounded up: for thresholds, so never below the truth."""
        return self.tail(self.form({Coordinate(): 1.0}), least)

    def std(self, form: Form) -> float:
        """The standard deviation of a weighted sum of coordinates."""
        w = np.asarray(form, dtype=np.float64)
        return math.sqrt(max(0.0, float(w @ self.covariance @ w)))

    def form(self, weights: dict[Coordinate, float]) -> Form:
        """Weights as a form; coordinates that are not named have 0."""
        return tuple(weights.get(c, 0.0) for c in self.coordinates)


@dataclass(frozen=True)
class Share(Noise):
    """The noise of one released integer: a combination of the coordinates of one draw.

    Attributes
    ----------
    joint : Joint
    number : int
        Which draw of the plan: two draws of equal laws are independent. Beside other releases: a hash of theirs and this.
    weights : tuple of int
        Over the joint law's coordinates.
    row : int
        Steps of one row in its block.
    """

    joint: Joint
    number: int
    weights: tuple[int, ...]
    row: int

    @property
    def scale(self) -> Fraction:
        return self.joint.scale * self.row

    @property
    def event(self) -> Event:
        """What the whole draw costs, once for all of its shares."""
        return self.joint.event

    def of(self, drawn: Ints) -> Ints:
        """This integer's noise, of draws of the joint law. Sums wrap modulo 2**64, which cancels."""
        return np.asarray(np.array(self.weights, dtype=np.int64) @ drawn, dtype=np.int64)

    def sample(self, size: int) -> Ints:
        """Draws of this integer alone: the other integers of the draw must not be released beside it."""
        return self.of(self.joint.draw(size))

    def cdf(self, k: npt.ArrayLike) -> Floats:
        at = np.asarray(k, dtype=np.float64)
        half = self._outside(np.where(at < 0, -at - 1, at)) / 2
        return np.asarray(np.where(at < 0, half, 1 - half))

    def pmf(self, k: npt.ArrayLike) -> Floats:
        at = np.asarray(k, dtype=np.float64)
        return np.asarray(self.cdf(at) - self.cdf(at - 1))

    @cached_property
    def std(self) -> float:
        return self.joint.std(self._form)

    @cached_property
    def mean_abs(self) -> float:
        """E|X|: the sum of P(|X| > w) over whole w, of a fine law the integral."""
        if self.std < 64:
            return float(np.sum(self._outside(np.arange(64.0 * 40))))
        step = self.std / 64
        return float(np.sum(self._outside(np.arange(0.5, 64 * 40) * step)) * step)

    def interval(self, level: float) -> int:
        return math.ceil(self.joint.halfwidth(self._form, level) * (1 - 2.0**-40))

    def upper_tail(self, k: int, draws: int = 1) -> float:
        if draws != 1:
            raise MechanismError(
                "The sum of several integers of one draw is one combination of it: combine.summed merges them.",
                hint=Arg("draws", 1),
            )
        return self.joint.tail(self._form, k)

    @property
    def _form(self) -> Form:
        return tuple(map(float, self.weights))

    def _outside(self, w: Floats) -> Floats:
        return self.joint.outside(self._form, w)

    def __repr__(self) -> str:
        return f"<dpframe noise Share: draw {self.number}, weights {self.weights}, {self.event.cost}>"


def merged(shares: Sequence[tuple[Share, float]]) -> Form:
    """The form of a weighted sum of integers of one draw."""
    weights = np.array([s.weights for s, _ in shares], dtype=np.float64)
    return tuple(float(x) for x in np.array([c for _, c in shares]) @ weights)
