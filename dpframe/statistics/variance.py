"""Variance and standard deviation of values within public bounds: clip_var, clip_std."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from dpframe.accounting.events import Number
from dpframe.base.arguments import check_flag
from dpframe.errors import Arg, InputError
from dpframe.layout.answers import Answer
from dpframe.layout.layouts import Layout
from dpframe.layout.moments import Root, variance
from dpframe.statistics.base import Aggregate, common, one_column, parse_bounds
from dpframe.statistics.question import AUDIT_BOUNDS, question


@dataclass(frozen=True, slots=True)
class ClipVar(Aggregate):
    ddof: int = 1
    raw: bool = False
    root: bool = False
    form = "triple"

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


@question(
    answer="measure",
    returns="float, at least 0 unless ``raw`` (ungrouped), or a frame with keys and ``<column>_var``",
    example="'x', bounds=(0, 100)",
    known_as=("var", "variance"),
    audited={"clip_var": {"column": "x", "bounds": AUDIT_BOUNDS}},
)
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
    """Take the variance of a column's non-missing values, each clipped to public bounds.

    Parameters
    ----------
    raw : bool
        Leave out the limits: the answer may be negative, and is closer to the truth on average.
    ddof : int
        The divisor is n - ddof, as in pandas and Polars; 0, 1 or 2.

    Returns
    -------
    ClipVar
        The answer is Float64, in the square of the column's unit, and at least 0 unless ``raw``. The variance of
        fewer than ``ddof + 1`` values is 0 plus noise.

    Raises
    ------
    InputError
        As for :func:`dpframe.clip_sum`, and for a ``ddof`` that is none of 0, 1 and 2.

    Notes
    -----
    Privacy: (eps, delta)-DP per protected unit. Each row is spread over three cells, (K-t)**2, 2t(K-t) and t**2 of
    its place t between the bounds, which sum to K**2 whatever it holds: together they move by 1 row in L1. Count,
    sum, mean, variance and standard deviation of the column come from the same noise, at one epsilon. Values are
    rounded to a 2**-15 part of the span.

    The interval is Fieller's with the mean plugged in (see ``docs/statistics.md``); the expected error is that of
    values at the bounds, the worst case: 4 half-spans squared times the noise of a cell over n.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"age": [20.0, 30.0, 40.0]})
    >>> with dp.Session(eps=1e6):
    ...     v = df.dp.clip_var("age", bounds=(0, 100), eps=1e6)
    >>> round(v)
    100
    """
    check_flag("raw", raw)
    parsed = parse_bounds("clip_var", one_column("clip_var", column), bounds, B)
    return ClipVar(column, parsed, ddof=checked_ddof(ddof), raw=raw, **common(eps, nonnegative, round))


@question(
    answer="measure",
    returns="float, at least 0 (ungrouped), or a frame with keys and ``<column>_std``",
    example="'x', bounds=(0, 100)",
    known_as=("std", "stddev"),
    audited={"clip_std": {"column": "x", "bounds": AUDIT_BOUNDS}},
    like=clip_var,
)
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
    """Take the standard deviation of a column's non-missing values, each clipped to public bounds.

    Returns
    -------
    ClipVar
        The answer is Float64, in the column's unit, and at least 0.

    Raises
    ------
    InputError
        As for :func:`dpframe.clip_var`.

    Notes
    -----
    Privacy: the root of :func:`dpframe.clip_var`'s answer, at the same epsilon. The expected error is that of values that
    are all alike, the worst; ``explain()`` names that of values spread evenly between the bounds beside it.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"age": [20.0, 30.0, 40.0]})
    >>> with dp.Session(eps=1e6):
    ...     sd = df.dp.clip_std("age", bounds=(0, 100), eps=1e6)
    >>> round(sd, 1)
    10.0
    """
    parsed = parse_bounds("clip_std", one_column("clip_std", column), bounds, B)
    return ClipVar(column, parsed, ddof=checked_ddof(ddof), root=True, **common(eps, nonnegative, round))


def checked_ddof(ddof: Any) -> int:
    if isinstance(ddof, bool) or not isinstance(ddof, int) or ddof not in (0, 1, 2):
        raise InputError(Arg("ddof", ddof), " must be 0, 1 or 2.", hint=Arg("ddof", 1))
    return ddof
