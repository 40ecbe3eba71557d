"""What a mechanism is: a law on the integers together with what it claims.

A mechanism turns a sensitivity, counted in integer steps, into a :class:`Noise`. Core adds the
noise to exact integers on the same grid; a mechanism never sees data and never touches a float
that depends on it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from dpframe.accounting.events import Event
from dpframe.base.html import Page
from dpframe.errors import Arg, MechanismError
from dpframe.noise.strips import LARGEST_SCALE, SMALLEST_SCALE

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Norm = Literal["L1", "L2"]


@dataclass(frozen=True, slots=True)
class Target:
    """The guarantee a release is asked to have: (eps, delta), or rho (zCDP)."""

    eps: Fraction | None = None
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None


class Noise(Page, ABC):
    """An integer law, calibrated. Instances are immutable and hashable; units are grid steps."""

    @property
    @abstractmethod
    def scale(self) -> Fraction:
        """The law's own scale parameter, in steps (b of Laplace, sigma of Gaussian)."""

    @property
    @abstractmethod
    def event(self) -> Event:
        """What a release with this noise costs."""

    def prepare(self, exact: Ints) -> Ints:
        """What the noise is added to, of the integers ``exact``; a law on a coarser grid rounds here."""
        return exact

    @abstractmethod
    def sample(self, size: int) -> Ints:
        """Return ``size`` independent draws (int64)."""

    @abstractmethod
    def cdf(self, k: npt.ArrayLike) -> Floats:
        """P(X <= k) for integers ``k``, as float64."""

    @abstractmethod
    def pmf(self, k: npt.ArrayLike) -> Floats:
        """P(X = k) for integers ``k``, as float64."""

    @property
    @abstractmethod
    def std(self) -> float:
        """Standard deviation in steps."""

    @property
    def rounding(self) -> int:
        """The most that ``prepare`` moves an integer, in steps."""
        return 0

    @property
    def drawn_std(self) -> float:
        """Standard deviation in steps of what is drawn, without the rounding before it."""
        return self.std

    @property
    @abstractmethod
    def mean_abs(self) -> float:
        """E|X| in steps."""

    def interval(self, level: float) -> int:
        """The least integer w with P(\\|X\\| <= w) >= level (the law is symmetric)."""
        high = 1
        while self._within(high) < level:
            high *= 2
        low = -1  # P(|X| <= -1) = 0
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._within(middle) >= level else (middle, high)
        return high

    def upper_tail(self, k: int, draws: int = 1) -> float:
        """P(X_1 + ... + X_draws >= k), rounded up; used for thresholds, so never below the truth.

        Raises
        ------
        MechanismError
            For several draws, unless the law knows their sum.
        """
        if draws != 1:
            raise MechanismError(
                "This mechanism can't bound the sum of several draws.", hint=Arg("mechanism", "laplace")
            )
        return float(self.cdf(-k)) * (1 + 2.0**-40)  # symmetric: P(X >= k) = P(X <= -k)

    def _within(self, w: int) -> float:
        return float(1.0 - 2.0 * self.cdf(-w - 1))

    def __repr__(self) -> str:
        return (
            f"<dpframe noise {type(self).__name__}: scale {float(self.scale):.6g} steps, {self.event.cost}>"
        )


class Shown(Page):
    """How the built-in mechanisms print."""

    name: str
    norm: Norm

    def __repr__(self) -> str:
        return f"<dpframe mechanism {self.name!r}: takes the {self.norm} sensitivity>"


@runtime_checkable
class Mechanism(Protocol):
    """What the registry holds.

    Attributes
    ----------
    name : str
    norm : {"L1", "L2"}
        The norm in which ``calibrate`` takes the sensitivity.

    Notes
    -----
    ``laplace``, ``gaussian``, ``gaussian_classic`` and ``discrete_gaussian`` hold for vectors by theorem. Any other law is used on one coordinate
    at a time, on a grid of at most ``coarse.STEPS`` steps to a sensitivity; where several coordinates
    move, each gets its share of the target and all are charged. Core checks such a law's claim, at
    every shift, before it is first used.
    """

    name: str
    norm: Norm

    def calibrate(self, sensitivity: Fraction, moving: int, target: Target) -> Noise:
        """Return the noise that gives ``target``.

        Parameters
        ----------
        sensitivity : Fraction
            In steps and in the mechanism's norm: how far the whole vector of coordinates moves,
            measured in the steps of the coordinate that this noise is for.
        moving : int
            How many coordinates move together.
        target : Target

        Raises
        ------
        MechanismError
            When the law can't give that guarantee.
        """
        ...


def checked_scale(scale: Fraction, sensitivity: Fraction, mechanism: str) -> Fraction:
    """Refuse what must never be drawn: noise for sensitivity 0, and noise beyond the integers' room.

    Privacy: sensitivity 0 means that a planner lost a bound, and noise of scale 0 releases the
    truth. A small scale is raised to the sampler's least one; more noise keeps every claim made for less.
    """
    if sensitivity <= 0:
        raise MechanismError(f"{mechanism} was asked for noise at sensitivity {sensitivity}.")
    if scale > LARGEST_SCALE:
        raise MechanismError(
            f"{mechanism} would need noise of 2**{scale.numerator.bit_length() - scale.denominator.bit_length()}"
            " grid steps; at most 2**55 can be added exactly.",
            hint="ask for a larger eps, or narrower bounds.",
        )
    return max(scale, SMALLEST_SCALE)


def sqrt_up(x: Fraction) -> Fraction:
    """A rational at least sqrt(x), within a relative 2**-60 of it."""
    shift = 128
    n = (x.numerator << (2 * shift)) // x.denominator + 1
    return Fraction(isqrt(n) + 1, 1 << shift)


def float_up(x: Fraction | float) -> float:
    """The nearest float that is not below ``x``."""
    f = float(x)
    return f if Fraction(f) >= Fraction(x) else float(np.nextafter(f, np.inf))
