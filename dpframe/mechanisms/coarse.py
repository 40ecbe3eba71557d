"""Coarse grids: laws that are certified number by number live on few steps per sensitivity.

The exact sum s becomes ``h * floor((2s + h) / (2h))`` (half up) once, before the noise, with h fine
steps to a coarse one; noise is drawn in coarse steps.

Privacy: half up is a translation-invariant rounding, so a sum that moves by at most m*h fine steps
moves by at most m coarse ones (ties to even would move it by m + 1). Where several coordinates move
they are each charged, so no joint bound is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpframe.accounting.events import Event
from dpframe.errors import MechanismError
from dpframe.mechanisms.base import Floats, Ints, Noise

STEPS = 64  # coarse steps to a sensitivity


@dataclass(frozen=True, repr=False)
class Coarse(Noise):
    """A law on a grid of ``step`` fine steps."""

    law: Noise
    step: int
    cost: Event

    @property
    def scale(self) -> Fraction:
        return self.law.scale * self.step

    @property
    def event(self) -> Event:
        return self.cost

    def prepare(self, exact: Ints) -> Ints:
        """Round exact integers to the coarse grid, half up."""
        whole, rest = np.divmod(exact, self.step)
        return np.asarray((whole + (2 * rest >= self.step)) * self.step)

    def sample(self, size: int) -> Ints:
        """Privacy: one number for several groups would cancel out of their differences; floats are not added."""
        drawn = self.law.sample(size)
        if not isinstance(drawn, np.ndarray) or drawn.dtype != np.int64 or drawn.shape != (size,):
            raise MechanismError(
                f"A mechanism was asked for {size} draws and gave other than an int64 array of that length.",
                hint="an independent integer for each",
            )
        return drawn * self.step

    def pmf(self, k: npt.ArrayLike) -> Floats:
        whole, rest = np.divmod(np.asarray(k, dtype=np.int64), self.step)
        return np.where(rest == 0, self.law.pmf(whole), 0.0)

    def cdf(self, k: npt.ArrayLike) -> Floats:
        return self.law.cdf(np.floor_divide(np.asarray(k, dtype=np.float64), self.step))

    @property
    def rounding(self) -> int:
        return self.step // 2

    @property
    def drawn_std(self) -> float:
        return self.law.std * self.step

    @property
    def std(self) -> float:
        """Of the noise and of the rounding before it, as if an integer were anywhere between two coarse ones."""
        rounding = 0.0 if self.step == 1 else self.step**2 / 12
        return float(np.sqrt(self.drawn_std**2 + rounding))

    @property
    def mean_abs(self) -> float:
        """Of the noise and of the rounding before it, which shows where the noise is 0."""
        rounding = 0.0 if self.step == 1 else float(self.law.pmf(0)) * self.step / 4
        return self.law.mean_abs * self.step + rounding

    def interval(self, level: float) -> int:
        """Holds the exact integer: the rounding's half step is added."""
        return self.law.interval(level) * self.step + self.rounding
