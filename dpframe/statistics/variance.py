"""Variance and standard deviation of values within public bounds: clip_var, clip_std."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from dpframe.accounting.events import Number
from dpframe.base.calls import checked
from dpframe.errors import InputError, typed
from dpframe.layout.answers import Answer
from dpframe.layout.layouts import Layout
from dpframe.layout.moments import Root, variance
from dpframe.statistics.base import Aggregate, common, one_column, parse_bounds


@dataclass(frozen=True, slots=True)
class ClipVar(Aggregate):
    ddof: int = 1
    raw: bool = False
    root: bool = False

    @property
    def form(self) -> str:
        return "triple"

    @property
    def verb(self) -> str:
        return "clip_std" if self.root else "clip_var"

    @property
    def default_name(self) -> str:
        return f"{self.column}_{'std' if self.root else 'var'}"

    def answer(self, layout: Layout) -> Answer:
        spread = variance(layout.cells, layout.row, layout.grid.half, self.ddof, raw=self.raw)
        return Root(spread) if self.root else spread

    def describe(self) -> str:
        text = super(ClipVar, self).describe()[:-1]
        ddof = "" if self.ddof == 1 else f", ddof={self.ddof}"
        return f"{text}{ddof}{', raw=True' if self.raw else ''})"


@checked()
def clip_var(
    column: Hashable,
    *,
    bounds: tuple[Number, Number] | None = None,
    B: Number | None = None,
    ddof: int = 1,
    raw: bool = False,
    eps: Number | None = None,
    nonnegative: bool = False,
    round: int | None = None,
) -> ClipVar:
    """Ask for the variance of a column's non-missing values, each clipped to public bounds.

    Parameters
    ----------
    column, bounds, B, eps, nonnegative, round
        As in :func:`clip_sum`.
    ddof : int
        The divisor is n - ddof, as in pandas and Polars; 0, 1 or 2.
    raw : bool
        Leave out the limits: the answer may be negative, and is closer to the truth on average.

    Returns
    -------
    ClipVar
        The answer is Float64, in the square of the column's unit, and at least 0 unless ``raw``. The variance of
        fewer than ``ddof + 1`` values is 0 plus noise.

    Raises
    ------
    InputError
        As for ``clip_sum``, and for a ``ddof`` that is none of 0, 1 and 2.

    Notes
    -----
    Privacy: each row is spread over three cells, (K-t)**2, 2t(K-t) and t**2 of its place t between the bounds,
    which sum to K**2 whatever it holds; count, sum, mean, variance and standard deviation of the column come
    from the same noise, at one epsilon. Values are rounded to a 2**-15 part of the span.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.clip_var("income", bounds=(0, 100_000)).describe()
    "clip_var('income', bounds=(0, 100000))"
    """
    if not isinstance(raw, bool):
        raise InputError(f"raw={typed(raw)} must be True or False. Hint: raw=True")
    parsed = parse_bounds("clip_var", one_column("clip_var", column), bounds, B)
    return ClipVar(column, parsed, ddof=checked_ddof(ddof), raw=raw, **common(eps, nonnegative, round))


@checked()
def clip_std(
    column: Hashable,
    *,
    bounds: tuple[Number, Number] | None = None,
    B: Number | None = None,
    ddof: int = 1,
    eps: Number | None = None,
    nonnegative: bool = False,
    round: int | None = None,
) -> ClipVar:
    """Ask for the standard deviation of a column's non-missing values, each clipped to public bounds.

    Parameters
    ----------
    column, bounds, B, ddof, eps, nonnegative, round
        As in :func:`clip_var`.

    Returns
    -------
    ClipVar
        The answer is Float64, in the column's unit, and at least 0.

    Raises
    ------
    InputError
        As for :func:`clip_var`.

    Notes
    -----
    Privacy: the root of :func:`clip_var`'s answer.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.clip_std("income", bounds=(0, 100_000)).describe()
    "clip_std('income', bounds=(0, 100000))"
    """
    parsed = parse_bounds("clip_std", one_column("clip_std", column), bounds, B)
    return ClipVar(column, parsed, ddof=checked_ddof(ddof), root=True, **common(eps, nonnegative, round))


def checked_ddof(ddof: Any) -> int:
    if isinstance(ddof, bool) or not isinstance(ddof, int) or ddof not in (0, 1, 2):
        raise InputError(f"ddof={typed(ddof)} must be 0, 1 or 2. Hint: ddof=1")
    return ddof
