"""Bounds for later questions, found among powers of two: bounds."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpframe.accounting.events import Number
from dpframe.base.calls import checked
from dpframe.errors import show
from dpframe.frames.bins import Tally
from dpframe.frames.columns import Column
from dpframe.layout.answers import Answer
from dpframe.layout.layouts import Layout
from dpframe.layout.logscale import LogScale, Outermost
from dpframe.statistics.base import common, one_column, parse_bounds
from dpframe.statistics.histogram import Binned


@dataclass(frozen=True, slots=True)
class Bracket(Binned):
    """Bounds from a histogram between powers of two; ``bounds`` is the range that they are in."""

    def argument(self, name: str) -> Any:
        return self.bounds if name == "range" else getattr(self, name, None)

    @property
    def numeric(self) -> tuple[Hashable, ...]:
        return (self.column,)

    @property
    def pair(self) -> bool:
        return True

    @property
    def missing(self) -> str:
        return "null and NaN are left out of bounds; infinities count at the ends of the range"

    @property
    def verb(self) -> str:
        return "bounds"

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
        return f"bounds({self.column!r}, range=({show(self.bounds[0])}, {show(self.bounds[1])}))"


@checked()
def bounds(
    column: Hashable, *, range: tuple[Number, Number] | None = None, eps: Number | None = None
) -> Bracket:
    """Ask for bounds that hold nearly all values of a column; see the verb ``df.dp.bounds``.

    Parameters
    ----------
    column : hashable
        A Boolean, integer, float or Decimal column.
    range : (low, high), optional
        What the bounds can be at most. Default (-2**64, 2**64).
    eps : number, optional
        As in :func:`~dpframe.count`.

    Returns
    -------
    Bracket
        Two columns, ``<name>_low`` and ``<name>_high``.

    Raises
    ------
    InputError
        For a ``range`` that is equal, reversed or not finite.

    Notes
    -----
    Privacy: that of :func:`histogram`; the rest is post-processing.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.bounds("pay", range=(0, 1000)).describe()
    "bounds('pay', range=(0, 1000))"
    """
    within = parse_bounds("bounds", one_column("bounds", column), range, None, "range")
    return Bracket(column, within or (Fraction(-(2**64)), Fraction(2**64)), **common(eps, False, None))
