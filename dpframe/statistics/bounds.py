"""Bounds for later questions, found among powers of two: bounds."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpframe.accounting.events import Number
from dpframe.errors import exactly
from dpframe.frames.bins import Tally
from dpframe.frames.columns import Column
from dpframe.layout.answers import Answer
from dpframe.layout.layouts import Layout
from dpframe.layout.logscale import LogScale, Outermost
from dpframe.statistics.base import common, one_column, parse_bounds
from dpframe.statistics.histogram import Binned
from dpframe.statistics.question import question


@dataclass(frozen=True, slots=True)
class Bracket(Binned):
    """Bounds from a histogram between powers of two; ``bounds`` is the range that they are in."""

    pair = True
    missing = "null and NaN are left out of bounds; infinities count at the ends of the range"
    verb = "bounds"

    def argument(self, name: str) -> Any:
        return self.bounds if name == "range" else getattr(self, name, None)

    @property
    def numeric(self) -> tuple[Hashable, ...]:
        return (self.column,)

    @property
    def default_name(self) -> str:
        return str(self.column)

    @property
    def names(self) -> tuple[str, ...]:
        name = self.name or self.default_name
        return (f"{name}_low", f"{name}_high")

    @property
    def _scale(self) -> LogScale:
        assert self.bounds is not None
        return LogScale(float(self.bounds[0]), float(self.bounds[1]))

    def tally(self, column: Column) -> Tally:
        return Tally(self.column, self._scale.binning)

    def width(self) -> int:
        return len(self._scale.edges)

    def answers(self, layouts: Sequence[Layout]) -> tuple[Answer, ...]:
        return tuple(Outermost(layouts[0].start, self._scale, high) for high in (False, True))

    def describe(self) -> str:
        assert self.bounds is not None
        return f"bounds({self.column!r}, range=({exactly(self.bounds[0])}, {exactly(self.bounds[1])}))"


@question(
    answer="pair",
    returns="(low, high), two numbers; of groups two columns ``<column>_low`` and ``<column>_high``",
    example="'x'",
    audited={"bounds": {"column": "x", "range": (-8, 64)}},
)
def bounds(
    column: Hashable, *, range: tuple[Number, Number] | None = None, eps: Number | None = None
) -> Bracket:
    """Estimate bounds that hold nearly all values of a column, to be given to a later question.

    Parameters
    ----------
    range : (low, high), optional
        What the bounds can be at most. Default (-2**64, 2**64).

    Returns
    -------
    Bracket
        Each bound is 0, a power of two or its negative, or an end of ``range``. The pair can be given on:
        ``clip_mean(column, bounds=that, ...)``; both are charged.

    Raises
    ------
    InputError
        For a ``range`` that is equal, reversed or not finite.

    Notes
    -----
    Values are counted in bins between powers of two, with noise. The bounds are the outer edges of the
    outermost bins whose noisy count reaches T, where the probability that any empty bin does is at most
    1 % (``plan.error`` is T, about ln(100 bins)/eps rows). So with 99 % the bounds are no wider than
    the data but for the next power of two; and each end leaves out at most the bins beyond whose noisy
    counts stayed below T. When no bin reaches T they are ``range``. Knowing better is better: these
    bounds cost eps and are coarse.

    Privacy: that of :func:`dpframe.histogram` with public edges; the rest is post-processing. Source: log-scale
    histograms for bounds, as in Wilson et al., "Differentially private SQL with bounded user
    contribution" (2020).

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"minutes": [3.0, 5.0, 90.0] * 50})
    >>> with dp.Session(eps=1e6):
    ...     b = df.dp.bounds("minutes", eps=100)
    ...     mean = df.dp.clip_mean("minutes", bounds=b, eps=1e3)
    >>> tuple(b), round(mean)
    ((2.0, 128.0), 33)
    """
    within = parse_bounds("bounds", one_column("bounds", column), range, None, "range")
    return Bracket(column, within or (Fraction(-(2**64)), Fraction(2**64)), **common(eps, False, None))
