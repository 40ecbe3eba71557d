"""How a column's cells become bins that rows are counted in: data-free, from typed parameters alone.

Every rule maps one cell to one bin, so a row is in one bin of a tally whatever it holds.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from dpframe.frames.keys import KeyTable


@dataclass(frozen=True, slots=True)
class Cuts:
    """Bin = the number of ``points`` that are less than the value (``closed``: less than or equal)."""

    points: tuple[float, ...]
    closed: bool

    @property
    def size(self) -> int:
        return len(self.points) + 1


@dataclass(frozen=True, slots=True)
class Steps:
    """Bin = the nearest of ``low + i*width`` for i = 0 to ``last``; halfway goes down, beyond to the ends."""

    low: float
    width: float
    last: int

    @property
    def rate(self) -> float:
        """1/width: all engines multiply by it, as some divide by a constant in that way."""
        return 1 / self.width

    @property
    def size(self) -> int:
        return self.last + 1


@dataclass(frozen=True, slots=True)
class Among:
    """Bin = the place of the value among listed keys; other values are left out."""

    keys: KeyTable


@dataclass(frozen=True, slots=True)
class Distinct:
    """One bin, in which each different value counts once."""


Binning: TypeAlias = Cuts | Steps | Among | Distinct


@dataclass(frozen=True, slots=True)
class Tally:
    """Count the rows of every bin of ``column``.

    Attributes
    ----------
    column : hashable
    how : Cuts, Steps, Among or Distinct
    missing : int or None
        The bin in which missing cells are counted; None leaves their rows out, before a unit's rows
        are limited.
    """

    column: Hashable
    how: Binning
    missing: int | None = None

    @property
    def distinct(self) -> bool:
        """Whether it is a number of different values."""
        return isinstance(self.how, Distinct)


def nearest(candidates: tuple[Fraction, ...]) -> Cuts:
    """The rule that moves a value to the nearest candidate; halfway goes down.

    A float exceeds a midpoint exactly when it exceeds the greatest float that does not.
    """
    return Cuts(tuple(_float_down((a + b) / 2) for a, b in itertools.pairwise(candidates)), closed=False)


def between(edges: tuple[Fraction, ...]) -> Cuts:
    """Bins [a, b), the last one closed: 0 lies below the first edge, ``len(edges)`` above the last."""
    *points, last = map(float, edges)
    return Cuts((*points, float(np.nextafter(last, np.inf))), closed=True)


def _float_down(x: Fraction) -> float:
    f = float(x)
    return f if Fraction(f) <= x else float(np.nextafter(f, -np.inf))
