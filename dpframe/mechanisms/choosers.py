"""From counts of bins to a choice: quantiles and the largest counts, by exact draws.

A chooser is calibrated to a :class:`Reach` (how far one unit's rows go) and a target, and takes the occupied
bins of one group at a time. ``choose`` returns ``width`` integers; ``event`` is what all groups cost together.

Source: Smith, "Privacy-preserving statistical estimation with optimal convergence rates" (2011), for quantiles;
Kaplan, Schnapp, Stemmer, "Differentially private approximate quantiles" (2022), for the recursion; Durfee and
Rogers, "Practical differentially private top-k selection" (2019), for peeling.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpframe.budget import Event, round_up
from dpframe.errors import MechanismError
from dpframe.mechanisms.base import Ints, Target
from dpframe.mechanisms.laplace import eps_of_pure_rho, pure_rho
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
    """

    replace: bool = False
    several: bool = False
    rows: int = 1
    groups: int = 1


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
    def error(self, level: float) -> float:
        """A bound, in rows, that the worst choice keeps with probability ``level``."""


def share(target: Target, draws: int, groups: int) -> tuple[Fraction, Event]:
    """(eps, event) of exponential draws in ``groups`` groups, ``draws`` of them one after another.

    Privacy: each draw in each group has a loss whose range is eps/(draws*groups), so it is
    (eps/(draws*groups))**2/8-zCDP, and all together eps**2/(8*draws*groups). Under replace_one a unit that
    moves to other groups is in up to 2*groups of them, with half that range in each: less.
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
        raise MechanismError("rho is too small to choose anything by. Hint: ask for a larger rho")
    return eps, Event(None, Fraction(0), target.rho)


@dataclass(frozen=True, slots=True)
class Quantiles(Chooser):
    """The exponential mechanism for one rank, or recursively for several.

    The utility of a candidate c for rank q among n rows is -max(0, #(x < c) - qn, qn - #(x <= c)): how many
    rows are on the wrong side.

    Attributes
    ----------
    last : int
        Candidates are numbered 0 to ``last``, in increasing order.
    ranks : tuple of int
        In units of 1/``parts``, increasing.
    parts : int
    base : Fraction
        Half of what a draw may spend on one row. A draw's rate is ``base`` over the sensitivity.
    flat : bool
        Whether that sensitivity is 1, else max(q, 1 - q).
    event : Event

    Privacy: add_remove: one row more moves #(x < c) - qn by max(q, 1-q) at most, either way, so the rate is
    eps/(2 max(q, 1-q)); over R. One rank in one group under replace_one: a row on the other side moves it
    by 1. In all other cases under replace_one, half of eps twice: the row vanishes, another appears.
    Groups share eps among L0. Several ranks: the middle one is drawn, rows up to the chosen candidate go
    left, others right, and the same is done there: a row is in one part of each of the floor(log2 m) + 1
    levels, so each level may spend eps over their number, and its draws compose in parallel (what a unit's
    rows lose in several parts is in proportion to the rows in them, and adds up to no more).
    """

    last: int
    ranks: tuple[int, ...]
    parts: int
    base: Fraction
    flat: bool
    sensitivity: Fraction
    event: Event

    mechanism = "exponential"

    @property
    def width(self) -> int:  # type: ignore[override]
        return len(self.ranks)

    @property
    def scale(self) -> Fraction:
        return 1 / self._rate(self.ranks[len(self.ranks) // 2], self.parts)

    def _rate(self, a: int, d: int) -> Fraction:
        return self.base if self.flat else self.base * Fraction(d, max(a, d - a))

    def choose(self, bins: Ints, rows: Ints) -> list[int]:
        out: list[int] = []
        self._between(bins, rows, (0, self.last), self.ranks, (0, self.parts), out)
        return out

    def _between(
        self,
        bins: Ints,
        rows: Ints,
        span: tuple[int, int],
        ranks: tuple[int, ...],
        ends: tuple[int, int],
        out: list[int],
    ) -> None:
        """Append a candidate within ``span`` for every rank; ``ends`` are the ranks of these rows' ends."""
        if not ranks:
            return
        middle = len(ranks) // 2
        q = ranks[middle]
        a, d = q - ends[0], ends[1] - ends[0]
        chosen = draw_rank(bins, rows, span, a, d, self._rate(a, d))
        cut = int(np.searchsorted(bins, chosen, side="right"))
        self._between(bins[:cut], rows[:cut], (span[0], chosen), ranks[:middle], (ends[0], q), out)
        out.append(chosen)
        self._between(bins[cut:], rows[cut:], (chosen, span[1]), ranks[middle + 1 :], (q, ends[1]), out)

    def error(self, level: float) -> float:
        """Rank error: with C candidates one draw misses by more than ln(C/beta)/rate with probability beta.

        A part's rank is wrong by what its levels miss together.
        """
        levels = len(self.ranks).bit_length()
        beta = (1 - level) / len(self.ranks)
        worst = self.base if len(self.ranks) > 1 else self._rate(self.ranks[0], self.parts)
        return levels * math.log((self.last + 1) / beta) / float(worst)


def quantiles(last: int, ranks: tuple[int, ...], parts: int, reach: Reach, target: Target) -> Quantiles:
    """Calibrate :class:`Quantiles`."""
    levels = len(ranks).bit_length()
    eps, event = share(target, levels, reach.groups)
    flat = reach.replace and not reach.several and len(ranks) == 1
    twice = 2 if reach.replace and not flat else 1
    base = eps / (2 * twice * levels * reach.rows * reach.groups)
    q = Fraction(ranks[0], parts)
    worst = max(q, 1 - q) if len(ranks) == 1 else Fraction(1)  # the ranks of parts depend on what was drawn
    moved = Fraction(1) if flat else twice * worst
    return Quantiles(last, ranks, parts, base, flat, moved * reach.rows, event)


def draw_rank(bins: Ints, rows: Ints, span: tuple[int, int], a: int, d: int, rate: Fraction) -> int:
    """One candidate from ``span[0]`` to ``span[1]``, weighted by exp(rate * utility) for the rank a/d.

    Candidates between two occupied bins have the same rows below and the same above, so they share a
    weight: there are at most 2 * len(bins) + 1 of them to compute.
    """
    upto = np.cumsum(rows)
    n = int(upto[-1]) if len(upto) else 0
    k = len(bins)
    starts = np.empty(2 * k + 1, dtype=np.int64)
    sizes = np.ones(2 * k + 1, dtype=np.int64)
    under = np.zeros(2 * k + 1, dtype=np.int64)  # rows below
    most = np.zeros(2 * k + 1, dtype=np.int64)  # rows not above
    starts[0], starts[1::2], starts[2::2] = span[0], bins, bins + 1
    sizes[::2] = np.append(bins, span[1] + 1) - starts[::2]
    most[1::2] = most[2::2] = under[2::2] = upto
    under[1::2] = upto - rows
    wrong = np.maximum(np.maximum(d * under - a * n, a * n - d * most), 0)
    there = sizes > 0
    starts, sizes, wrong = starts[there], sizes[there], wrong[there]
    i = weighted(wrong - wrong.min(), sizes, rate / d)
    return int(starts[i]) + (below(int(sizes[i])) if sizes[i] > 1 else 0)


@dataclass(frozen=True, slots=True)
class Largest(Chooser):
    """The k candidates with the most rows, one after another without putting back.

    Privacy: add_remove: all counts move the same way, by R at most, so weights are exp(rate * count) with
    rate = eps/(k R); replace_one: half of it. Groups share eps among L0. ``permute_and_flip``, for k = 1,
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

    def error(self, level: float) -> float:
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
        eps, event = share(target, k, reach.groups)
    twice = 2 if reach.replace else 1
    rate = eps / (k * twice * reach.rows * reach.groups)
    return Largest(candidates, k, rate, Fraction(twice * reach.rows), mechanism, event)


@dataclass(frozen=True, slots=True)
class Best(Largest):
    """:class:`Largest` for sums in steps of ``step``; everything it tells is in the answer's unit."""

    step: Fraction = Fraction(1)

    @property
    def scale(self) -> Fraction:
        return self.step / self.rate

    def error(self, level: float) -> float:
        return float(self.step) * Largest.error(self, level)


def best(candidates: int, k: int, across: int, step: Fraction, reach: Reach, target: Target) -> Best:
    """Calibrate :class:`Best`; one row moves a candidate's sum by amounts that lie within ``across`` steps of each other.

    Privacy: a row adds to every sum a number of [low, high], or nothing, so a row that appears or vanishes moves
    all sums by amounts whose range is at most across = max(high, 0) - min(low, 0): the probability of no choice
    changes by more than e**(rate * across). A row that becomes another does both. A unit: R times, in L0
    groups; k draws share eps.
    """
    eps, event = share(target, k, reach.groups)
    twice = 2 if reach.replace else 1
    moved = twice * across * reach.rows
    return Best(candidates, k, eps / (k * moved * reach.groups), moved * step, "exponential", event, step)
