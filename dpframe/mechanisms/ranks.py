"""Quantiles: candidates chosen by their ranks, several of them recursively, by exact draws.

Source: Smith, "Privacy-preserving statistical estimation with optimal convergence rates" (2011), for one;
Kaplan, Schnapp, Stemmer, "Differentially private approximate quantiles" (2022), for the recursion.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.accounting.events import Event
from dpframe.mechanisms.base import Floats, Ints, Target
from dpframe.mechanisms.choosers import Chooser, Reach, share
from dpframe.mechanisms.selection import below, heads, weighted

PLACES = 1 << 30  # of every candidate, where its rows can be divided
MOST = PLACES // 2 - 1  # rows, for which rank errors are told when nothing is known of their number
_FAR = 800  # gaps beyond, in units of 1/rate, share one shell
_SHELLS = 2  # shells to a unit of 1/rate


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
        What a draw may spend on one row: its rate times the range of what a row does to its utilities.
    flat : bool
        Whether a row that becomes another stays among the same rows, and is met by one draw.
    event : Event

    Privacy: let a row come and move utilities by amounts that span ``spread``. Weights are
    exp(rate * utility), so log-probabilities move by amounts that span rate * spread, and by no more than
    that, as they sum to 1 before and after: a draw at base/spread loses ``base``. #(x < c) - qn moves by
    -q or 1-q, and so the utility by at most max(q, 1-q) either way: spread 2 max(q, 1-q). At q = 0 (and 1)
    nothing is too far left (right), all utilities move the same way, by 0 or 1: spread 1. A unit's R rows: R
    times that. One rank in one group under replace_one: a row on the other side moves #(x < c) by 1 and n not
    at all (or it vanishes: less), for all c the same way: spread 2, at q = 0 and 1 again 1. In all other cases under
    replace_one, half of eps twice: the row vanishes, another appears. A group with r of a unit's m rows in all groups (at
    most L0*R, or T) loses its part r/m of eps.

    Several ranks: the middle one is drawn, rows are divided there, and the same is done with either part.
    What is drawn is a *place*: a candidate c and one of ``PLACES`` numbers t. Of the m rows at c,
    L = floor(m t/PLACES + 1/2) go left. The utility is -|rank - qn|, the rank being the rows below c and
    m t/PLACES of its own (rounded down to 1/d of a row, for a rank a/d). The place is drawn, so it is a public
    number to the parts; given it, a row more at c makes L grow by 0 or 1, since t/PLACES < 1: the row is one
    more in *one* part, and the other part has exactly the same counts as before. A row elsewhere joins the
    part on its side and changes no L. (L must not depend on other rows otherwise: were the rows to go left
    those that the rank qn needs, one row more could move a row of c to the other side, and change both
    parts.) The rank moves by 0 to 1 and qn by q, as above. So a row is in one part of each of the
    floor(log2 m) + 1 levels: each may spend eps over their number, and the draws of a level compose in parallel (what
    a unit's rows lose in several parts is in proportion to the rows in them, and adds up to no more).
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
        if a in (0, d):
            return self.base
        return self.base / (2 if self.flat else Fraction(2 * max(a, d - a), d))

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
        line: Line = (Candidates if len(ranks) == 1 else Places)(bins, rows, span, a, d)
        place = np.array([draw(line, self._rate(a, d))])
        chosen, left = (int(x[0]) for x in line.divide(place))
        if len(ranks) == 1:
            out.append(chosen)
            return
        at, end = (int(np.searchsorted(bins, chosen, side=side)) for side in ("left", "right"))
        lower, upper = rows[:end].copy(), rows[at:].copy()
        lower[at:] = left
        upper[: end - at] -= left
        self._between(bins[:end], lower, (span[0], chosen), ranks[:middle], (ends[0], q), out)
        out.append(chosen)
        self._between(bins[at:], upper, (chosen, span[1]), ranks[middle + 1 :], (q, ends[1]), out)

    def error(self, level: float, rows: float | None = None) -> float:
        """Rank error, for any data: each draw is off by no more than (ln C + E)/rate, E exponential of mean 1.

        Of C candidates one has utility 0, so P(off by more than x) <= C exp(-rate x). Where rows are divided
        (several ranks), the tie at the rank has m rows, and places within 1/rate of it are only a part of its places: C
        is multiplied by ``_thin(m)``, at most at m = ``rows`` (None: 2**29 - 1), and 2 rows are added: 1/2 for the rounding of L,
        1/d and m/PLACES for what is between two places. A rank inside a
        part is off by what its ends are off, in proportion to how near they are. All ranks hold together, by
        the sum of their probabilities.
        """
        off: dict[int, tuple[float, dict[int, float]]] = {0: (0.0, {}), self.parts: (0.0, {})}
        most = MOST if rows is None else min(rows, MOST)
        self._off(self.ranks, (0, self.parts), most, off)
        beta = (1 - level) / len(self.ranks)
        return max(c + _exceeded(tuple(w.values()), beta) for c, w in (off[q] for q in self.ranks))

    def _off(
        self,
        ranks: tuple[int, ...],
        ends: tuple[int, int],
        most: float,
        off: dict[int, tuple[float, dict[int, float]]],
    ) -> None:
        """For every rank the constant, and the factor of every draw's E, in its error."""
        if not ranks:
            return
        middle = len(ranks) // 2
        q = ranks[middle]
        a, d = q - ends[0], ends[1] - ends[0]
        rate = float(self._rate(a, d))
        const = math.log(self.last + 1) / rate
        if len(ranks) > 1:
            const += math.log(_thin(most, rate)) / rate + 2
        draws = {q: 1 / rate}
        for end, weight in ((ends[0], (d - a) / d), (ends[1], a / d)):
            const += weight * off[end][0]
            for draw, w in off[end][1].items() if weight else ():
                draws[draw] = draws.get(draw, 0.0) + weight * w
        off[q] = const, draws
        self._off(ranks[:middle], (ends[0], q), most, off)
        self._off(ranks[middle + 1 :], (q, ends[1]), most, off)


def quantiles(last: int, ranks: tuple[int, ...], parts: int, reach: Reach, target: Target) -> Quantiles:
    """Calibrate :class:`Quantiles`."""
    levels = len(ranks).bit_length()
    eps, event = share(target, levels, reach.alike)
    flat = reach.replace and not reach.several and len(ranks) == 1
    twice = 2 if reach.replace and not flat else 1
    base = eps / (twice * levels * reach.most)
    q = Fraction(ranks[0], parts)
    worst = max(q, 1 - q) if len(ranks) == 1 else Fraction(1)  # the ranks of parts depend on what was drawn
    moved = Fraction(1) if flat else twice * worst
    return Quantiles(last, ranks, parts, base, flat, moved * reach.rows, event)


class Line(ABC):
    """What can be drawn for the rank a/d of counted rows, from left to right, numbered from 0.

    Gaps are counted in 1/d of a row. Along the line they fall to the least one and rise after it.
    """

    places: int  # of every candidate

    def __init__(self, bins: Ints, rows: Ints, span: tuple[int, int], a: int, d: int) -> None:
        self._low = span[0]
        self._bins, self._rows = np.append(bins, span[1] + 1), np.append(rows, 0)  # beyond: no rows
        self._upto = np.cumsum(self._rows)
        n, common = int(self._upto[-1]), math.gcd(a, d)
        a, d = a // common, d // common
        self.d, self._target, self.most = d, a * n, max(a, d - a) * n
        self._wide: Any = np.int64 if d * (n + 1) * self.places < 2**62 else object
        self.size = (span[1] + 1 - span[0]) * self.places

    def divide(self, place: Ints) -> tuple[Ints, Ints]:
        """(candidate, how many of its own rows go left)."""
        c, _, m = self._at(place)
        return c, (m * (place % self.places) + self.places // 2) // self.places

    def _at(self, place: Ints) -> tuple[Ints, Ints, Ints]:
        """(candidate, rows below it, rows of its own)."""
        c = self._low + place // self.places
        j = np.searchsorted(self._bins, c)
        return c, self._upto[j] - self._rows[j], np.where(self._bins[j] == c, self._rows[j], 0)

    @abstractmethod
    def gap(self, place: Ints) -> Ints:
        """How far the rank of a place is off."""

    @abstractmethod
    def within(self, edges: Ints) -> tuple[Ints, Ints]:
        """The places from ``low`` until before ``high`` are those with a gap below an edge."""

    def _beyond(self, ranks: Ints) -> Ints:
        """The bins that hold the first row that is not among the first ``ranks``."""
        return np.minimum(np.searchsorted(self._upto, ranks, side="right"), len(self._bins) - 1)

    def _counted(self, ranks: Ints, places: Ints) -> Ints:
        return np.where(ranks < 0, 0, np.minimum(places, self.size))


class Candidates(Line):
    """Candidates themselves; the rows on the wrong side of one are its gap."""

    places = 1

    def gap(self, place: Ints) -> Ints:
        _, under, own = self._at(place)
        right, left = self.d * under - self._target, self._target - self.d * (under + own)
        return np.asarray(np.maximum(np.maximum(right, left), 0))

    def within(self, edges: Ints) -> tuple[Ints, Ints]:
        left, right = (self._target - edges) // self.d, (self._target + edges - 1) // self.d
        low, high = (self._bins[self._beyond(r)] - self._low for r in (left, right))
        return self._counted(left, low), self._counted(right, high + 1)


class Places(Line):
    """Places of candidates, ``PLACES`` to each; the rank of place t is that of t/PLACES of its candidate's rows."""

    def __init__(self, bins: Ints, rows: Ints, span: tuple[int, int], a: int, d: int) -> None:
        self.places = PLACES
        super().__init__(bins, rows, span, a, d)

    def gap(self, place: Ints) -> Ints:
        _, under, own = self._at(place)
        inside = self.d * own.astype(self._wide) * (place % self.places) // self.places
        return np.asarray(np.abs(self.d * under + inside.astype(np.int64) - self._target))

    def within(self, edges: Ints) -> tuple[Ints, Ints]:
        return self._upto_rank(self._target - edges), self._upto_rank(self._target + edges - 1)

    def _upto_rank(self, ranks: Ints) -> Ints:
        """How many places have at most these ranks, in 1/d of a row."""
        j = self._beyond(ranks // self.d)
        m = self._rows[j]
        inside = (ranks - self.d * (self._upto[j] - m) + 1).astype(self._wide) * self.places
        own = -(-inside // (self.d * np.maximum(m, 1)))
        found = (self._bins[j] - self._low) * self.places + np.minimum(own, self.places).astype(np.int64)
        return self._counted(ranks, found)


def draw(line: Line, rate: Fraction) -> int:
    """One place, weighted by exp(-rate * gap / d).

    Those whose gap lies in a shell [e, e') are two intervals of the line. A shell is drawn with its places times
    exp(-rate e/d), a place of it uniformly, and it stays with probability exp(-rate (gap - e)/d); else all
    is drawn anew. That is the law itself, whatever the shells are.
    """
    one = np.array([1])
    first = int(line.within(one)[0][0])  # places before it are too far left
    near = np.array([p for p in (first - 1, first) if 0 <= p < line.size])
    least = int(line.gap(near).min())
    width = min(max(1, math.ceil(line.d / (_SHELLS * rate))), line.most + 1)
    shells = min((line.most - least) // width, _FAR * _SHELLS) + 1
    edges = np.append(least + width * np.arange(shells), line.most + 1)
    low, high = line.within(edges)
    low[0] = high[0] = first  # no gap is below the least
    sizes = low[:-1] - low[1:] + high[1:] - high[:-1]
    there = np.flatnonzero(sizes)
    while True:
        i = there[weighted(edges[there] - least, sizes[there], rate / line.d)]
        j, left = below(int(sizes[i])), int(low[i] - low[i + 1])
        place = int(low[i + 1]) + j if j < left else int(high[i]) + j - left
        if heads(int(line.gap(place * one)[0]) - int(edges[i]), rate / line.d):
            return place


def _thin(rows: float, rate: float) -> float:
    """m over the integral of exp(-rate x) for x = 0 to m, at m = ``rows``: it grows with m.

    A tie of m rows has PLACES/m places to a row, so those around the wanted rank, were it at an end, weigh PLACES / _thin.
    """
    x = max(1.0, rows) * rate
    return x / -math.expm1(-x)


def _exceeded(weights: Sequence[float], beta: float) -> float:
    """An x that the sum of weight * E, E exponential of mean 1, exceeds with probability at most ``beta``.

    The sum is how long it takes to go through states that are left at rates 1/weight: watched at events of the largest
    rate, it is a Poisson number of steps of a chain, so all that is added up is positive.
    """
    if len(weights) == 1:
        return -weights[0] * math.log(beta)
    w = np.maximum(weights, max(weights) / 32)  # the chain has few steps then, and the sum is larger
    stay = 1 - w.min() / w
    high = float(w.sum()) * (2 - math.log(beta))
    steps = int(high / w.min()) * 2 + 64
    state, there = np.eye(1, len(w))[0], np.ones(steps)
    for i in range(1, steps):
        state = state * stay + np.append(0, (state * (1 - stay))[:-1])
        there[i] = state.sum()
    logs: Floats = np.append(0, np.cumsum(np.log(np.arange(1, steps))))

    def tail(x: float) -> float:
        y = x / w.min()
        return float(np.sum(np.exp(np.arange(steps) * math.log(y) - y - logs) * there))

    low = 0.0
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if tail(middle) <= beta else (middle, high)
    return high
