"""From counts of bins to a choice by exact draws: what choosers are, and those of the largest. Ranks have their own file.

A chooser is calibrated to a :class:`Reach` (how far one unit's rows go) and a target, and takes the occupied
bins of one group at a time. ``choose`` returns ``width`` integers; ``event`` is what all groups cost together.

Source: Durfee and Rogers, "Practical differentially private top-k selection" (2019), for peeling.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpframe.accounting.conversion import eps_of_pure_rho, pure_rho
from dpframe.accounting.events import Event, round_up
from dpframe.errors import MechanismError
from dpframe.mechanisms.base import Ints, Target
from dpframe.mechanisms.selection import below, permute_and_flip, weighted

_GRAIN = 1 << 80


@dataclass(frozen=True, slots=True)
class Reach:
    """How far one protected unit goes.

    Attributes
    ----------
    replace : bool
        The replace_one relation (else add_remove).
    several : bool
        Whether there are several groups between which a row can move.
    rows, groups : int
        R and L0: its rows in a group, and its groups.
    total : int or None
        T: its rows in all groups together, where that is a limit of its own.
    """

    replace: bool = False
    several: bool = False
    rows: int = 1
    groups: int = 1
    total: int | None = None

    def in_steps(self, row: int) -> Reach:
        """The same reach in steps of which a row has ``row``."""
        total = None if self.total is None else self.total * row
        return replace(self, rows=self.rows * row, total=total)

    @property
    def most(self) -> int:
        """How many rows of a unit count in all groups together: min(T, L0*R)."""
        each = self.rows * self.groups
        return each if self.total is None else min(self.total, each)

    @property
    def each(self) -> int:
        """How many rows of a unit count in one group."""
        return min(self.rows, self.most)

    @property
    def full(self) -> tuple[int, int]:
        """(k, r): a unit that counts as much as it can fills k groups, and has r rows in one more."""
        k = self.most // self.each
        return k, self.most - k * self.each

    @property
    def squares(self) -> int:
        """The largest sum of squares of a unit's rows in each group: k*R**2 + r**2.

        Privacy: the rows a unit has are numbers from 0 to R of at most ``most`` together, in at most L0 groups; a
        convex function of them is largest where all but one are 0 or R.
        """
        k, r = self.full
        return k * self.each**2 + r**2

    @property
    def alike(self) -> Fraction:
        """most**2/squares: in so many groups, with equal shares, are the squares what they are at most."""
        return Fraction(self.most**2, self.squares)


class Chooser(ABC):
    """Chooses candidates by their utilities. Immutable and hashable; holds no data."""

    mechanism: str
    width: int
    event: Event
    sensitivity: Fraction  # of one utility, in rows

    @property
    @abstractmethod
    def scale(self) -> Fraction:
        """Utilities, in rows, are weighted by exp(utility/scale)."""

    @abstractmethod
    def choose(self, bins: Ints, rows: Ints) -> list[int]:
        """The choices for one group, given its occupied bins, in order, and their rows."""

    @abstractmethod
    def error(self, level: float, rows: float | None = None) -> float:
        """A bound, in rows, that the worst choice keeps with probability ``level``; with ``rows`` or fewer, if given."""


def share(target: Target, draws: int, groups: Fraction | int) -> tuple[Fraction, Event]:
    """(eps, event) of exponential draws in ``groups`` groups, ``draws`` of them one after another.

    Privacy: each draw in each group has a loss whose range is eps/(draws*groups), so it is
    (eps/(draws*groups))**2/8-zCDP, and all together eps**2/(8*draws*groups). Under replace_one a unit that
    moves to other groups is in up to 2*groups of them, with half that range in each: less. Of a unit with at most T
    rows in all, a draw loses eps*rows/(draws*T) in a group with so many of its rows: squared and added up over groups
    that is at most eps**2*squares/(draws*T)**2, as in ``groups`` = T**2/squares groups that are alike (:class:`Reach`).
    """
    parts = draws * groups
    if target.eps is not None:
        eps = target.eps
        rho = min(round_up(eps**2 / (8 * parts)), pure_rho(eps))
        return eps, Event(eps, Fraction(0), rho)
    assert target.rho is not None
    square = 8 * parts * target.rho
    eps = Fraction(math.isqrt(square.numerator * _GRAIN**2 // square.denominator), _GRAIN)
    if not eps:
        raise MechanismError("rho is too small to choose anything by.", hint="ask for a larger rho")
    return eps, Event(None, Fraction(0), target.rho)


@dataclass(frozen=True, slots=True)
class Largest(Chooser):
    """The k candidates with the most rows, one after another without putting back.

    Privacy: add_remove: all counts move the same way, by R at most, so weights are exp(rate * count) with
    rate = eps/(k m), m the unit's rows in all groups together (L0*R, or T); replace_one: half of it. A group with r of
    them loses its part r/m of eps. ``permute_and_flip``, for k = 1,
    has the same rate and is eps-DP.
    """

    candidates: int
    width: int
    rate: Fraction
    sensitivity: Fraction
    mechanism: str
    event: Event

    @property
    def scale(self) -> Fraction:
        return 1 / self.rate

    def choose(self, bins: Ints, rows: Ints) -> list[int]:
        counts = np.zeros(self.candidates, dtype=np.int64)
        counts[bins] = rows
        if self.mechanism == "permute_and_flip":
            return [permute_and_flip(counts, 1, self.rate, monotone=True)]
        left = np.arange(self.candidates)
        out = []
        for _ in range(self.width):
            values, sizes = np.unique(counts[left], return_counts=True)
            value = values[weighted(values[-1] - values, sizes, self.rate)]
            alike = np.flatnonzero(counts[left] == value)
            place = int(alike[below(len(alike))])
            out.append(int(left[place]))
            left = np.delete(left, place)
        return out

    def error(self, level: float, rows: float | None = None) -> float:
        """How far a chosen count is below the largest that was left: ln(C k/beta)/rate at most."""
        return math.log(self.candidates * self.width / (1 - level)) / float(self.rate)


def largest(candidates: int, k: int, reach: Reach, target: Target, mechanism: str) -> Largest:
    """Calibrate :class:`Largest`."""
    flip = mechanism == "permute_and_flip"
    if flip and target.eps is not None:
        eps, event = target.eps, Event(target.eps, Fraction(0), pure_rho(target.eps))
    elif flip:
        assert target.rho is not None
        eps, event = eps_of_pure_rho(target.rho), Event(None, Fraction(0), target.rho)
    else:
        eps, event = share(target, k, reach.alike)
    twice = 2 if reach.replace else 1
    rate = eps / (k * twice * reach.most)
    return Largest(candidates, k, rate, Fraction(twice * reach.rows), mechanism, event)


@dataclass(frozen=True, slots=True)
class Best(Largest):
    """:class:`Largest` for sums in steps of ``step``; everything it tells is in the answer's unit."""

    step: Fraction = Fraction(1)

    @property
    def scale(self) -> Fraction:
        return self.step / self.rate

    def error(self, level: float, rows: float | None = None) -> float:
        return float(self.step) * Largest.error(self, level)


def best(candidates: int, k: int, across: int, step: Fraction, reach: Reach, target: Target) -> Best:
    """Calibrate :class:`Best`; one row moves a candidate's sum by amounts that lie within ``across`` steps of each other.

    Privacy: a row adds to every sum a number of [low, high], or nothing, so a row that appears or vanishes moves
    all sums by amounts whose range is at most across = max(high, 0) - min(low, 0): the probability of no choice
    changes by more than e**(rate * across). A row that becomes another does both. A unit: R times, in L0
    groups; k draws share eps.
    """
    eps, event = share(target, k, reach.alike)
    twice = 2 if reach.replace else 1
    rate, moved = eps / (k * twice * across * reach.most), twice * across * reach.rows
    return Best(candidates, k, rate, moved * step, "exponential", event, step)
