"""Covariance and correlation of two columns, or of every pair of several: clip_cov, clip_corr."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from dpframe.accounting.events import Number
from dpframe.errors import Arg, Call, Code, InputError, exactly
from dpframe.frames.columns import Column
from dpframe.layout.answers import Answer
from dpframe.layout.families import Bounds, Family
from dpframe.layout.layouts import Layout
from dpframe.layout.moments import Correlation, covariance, unscaled, variance
from dpframe.statistics.base import BOOLEAN, Aggregate, common, list_of_columns, parse_bounds
from dpframe.statistics.question import AUDIT_BOUNDS, question
from dpframe.statistics.variance import checked_ddof

MOST_COLUMNS = 64  # of a covariance matrix: 2,080 blocks


@dataclass(frozen=True, slots=True)
class ClipCov(Aggregate):
    """``matrix``: a variance of every column and a covariance of every pair, as a square table."""

    of: tuple[Hashable, ...] = ()
    each: tuple[Bounds | None, ...] = ()
    ddof: int = 1
    matrix: bool = False
    scaled: bool = False

    @property
    def measured(self) -> tuple[tuple[Hashable, Bounds | None], ...]:
        return tuple(zip(self.of, self.each))

    @property
    def verb(self) -> str:
        return "clip_corr" if self.scaled else "clip_cov"

    @property
    def default_name(self) -> str:
        return f"{'_'.join(map(str, self.of))}_{'corr' if self.scaled else 'cov'}"

    @property
    def names(self) -> tuple[str, ...]:
        if not self.matrix:
            return (self.name or self.default_name,)
        what = "corr" if self.scaled else "cov"
        pairs = [f"{a}_{b}_{what}" for a, b in combinations(self.of, 2)]
        return tuple(pairs) if self.scaled else (*(f"{a}_var" for a in self.of), *pairs)

    def argument(self, name: str) -> Any:
        if name == "bounds":
            return self.each if any(b is not None for b in self.each) else None
        return getattr(self, name, None)

    def resolved(self, column: Callable[[Hashable], Column]) -> Aggregate:
        each = tuple(BOOLEAN if b is None and column(c).kind == "bool" else b for c, b in self.measured)
        return replace(self, each=each)

    def families(self, types: Mapping[Hashable, Column]) -> tuple[Family, ...]:
        pairs = [Family("pair", self.of, self.each, p) for p in combinations(range(len(self.of)), 2)]
        if not (self.matrix or self.scaled):
            return tuple(pairs)
        return (*(Family("spread", self.of, self.each, (i,)) for i in range(len(self.of))), *pairs)

    def answers(self, layouts: Sequence[Layout]) -> tuple[Answer, ...]:
        pairs = list(combinations(range(len(self.of)), 2))
        spreads = [variance(x.cells, x.row, x.grid.half, self.ddof) for x in layouts[: -len(pairs)]]
        both = [
            covariance(x.cells, x.row, x.grid.half * x.second.half, self.ddof) for x in layouts[-len(pairs) :]
        ]
        if not self.scaled:
            return (*spreads, *both)
        plain = [unscaled(x) for x in spreads]
        return tuple(Correlation(unscaled(x), plain[i], plain[j]) for x, (i, j) in zip(both, pairs))

    def arrange(self, columns: dict[str, Any]) -> dict[str, Any]:
        """A square table, and one of margins beside it if there are any."""
        if not self.matrix:
            return columns
        table: dict[str, Any] = {"column": [str(c) for c in self.of]}
        for end in ("", "_moe") if f"{self.names[-1]}_moe" in columns else ("",):
            for b in self.of:
                table[f"{b}{end}"] = np.array([self._entry(columns, a, b, end) for a in self.of])
        return table

    def _entry(self, columns: dict[str, Any], a: Hashable, b: Hashable, end: str) -> float:
        if a == b:
            diagonal = 1.0 if end == "" else 0.0
            return diagonal if self.scaled else float(columns[f"{a}_var{end}"][0])
        first, second = (a, b) if self.of.index(a) < self.of.index(b) else (b, a)
        return float(columns[f"{first}_{second}_{'corr' if self.scaled else 'cov'}{end}"][0])

    def describe(self) -> str:
        same = len(set(self.each)) == 1
        shown = [f"({exactly(b[0])}, {exactly(b[1])})" for b in self.each if b is not None]
        bounds = f", bounds={shown[0] if same else '[' + ', '.join(shown) + ']'}" if shown else ""
        ddof = "" if self.ddof == 1 or self.scaled else f", ddof={self.ddof}"
        return f"{self.verb}({list(self.of)!r}{bounds}{ddof})"


@question(
    answer="columns",
    returns="frame with ``column`` and a Float64 column per input (ungrouped), or with keys and ``<a>_<b>_cov``",
    example="['x', 'y'], bounds=(0, 100)",
    known_as=("cov", "covariance"),
    audited={"clip_cov": {"columns": ["x", "y"], "bounds": AUDIT_BOUNDS}},
    whole=lambda columns, bounds=None, B=None, ddof=1: _pairwise(
        "clip_cov", columns, bounds, B, ddof, matrix=True
    ),
)
def clip_cov(
    columns: Sequence[Hashable],
    *,
    bounds: Any = None,
    B: Number | None = None,
    ddof: int = 1,
    eps: Number | None = None,
    round: int | None = None,
) -> ClipCov:
    """Take the covariance of two columns, or the matrix of more, each value clipped to public bounds.

    Parameters
    ----------
    columns : list of columns
        Two; the verb of a whole frame takes up to 64 and gives their matrix.
    bounds : (low, high), or a list or dict with one such pair per column
        In the columns' units, from knowledge about the world and never from the frame. Boolean columns need none.
    B : number
        Short for ``bounds=(-B, B)``, for all columns.
    ddof : int
        The divisor is n - ddof, as in pandas and Polars; 0, 1 or 2.

    Returns
    -------
    ClipCov
        The answer is Float64. A row in which any of the columns is missing is left out of all.

    Raises
    ------
    InputError
        For fewer than two columns, for more in groups and tables of answers, or bounds that do not fit them.

    Notes
    -----
    Privacy: (eps, delta)-DP per protected unit. A row is spread over four cells, (K-s)(L-t), s(L-t), (K-s)t and st
    of its places s and t, which sum to K*L whatever it holds: together they move by 1 row in L1. In a matrix every
    pair is one such block and every variance another; d columns are d(d+1)/2 blocks, which share the budget equally.
    The matrix need not be positive semidefinite. Values are rounded to a 2**-15 part of their span.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"x": [1.0, 2.0, 3.0], "y": [2.0, 4.0, 6.0]})
    >>> with dp.Session(eps=1e7):
    ...     t = df.dp.clip_cov(["x", "y"], bounds=(0, 10), eps=1e7, round=1)
    >>> t["column"].to_list(), t["x"].to_list(), t["y"].to_list()
    (['x', 'y'], [1.0, 2.0], [2.0, 4.0])
    """
    return _pairwise("clip_cov", columns, bounds, B, ddof, eps, round, matrix=False)


@question(
    answer="columns",
    returns="frame with ``column`` and a Float64 column per input (ungrouped), or with keys and ``<a>_<b>_corr``",
    example="['x', 'y'], bounds=(0, 100)",
    known_as=("corr", "correlation"),
    audited={"clip_corr": {"columns": ["x", "y"], "bounds": AUDIT_BOUNDS}},
    whole=lambda columns, bounds=None, B=None: _pairwise("clip_corr", columns, bounds, B, 1, matrix=True),
    like=clip_cov,
)
def clip_corr(
    columns: Sequence[Hashable],
    *,
    bounds: Any = None,
    B: Number | None = None,
    eps: Number | None = None,
    round: int | None = None,
) -> ClipCov:
    """Take the correlation of two columns, or the matrix of more, each value clipped to public bounds.

    Returns
    -------
    ClipCov
        The answer is Float64 within [-1, 1]; 0 where a noisy variance is not above 0.

    Raises
    ------
    InputError
        As for :func:`dpframe.clip_cov`.

    Notes
    -----
    Privacy: the blocks of :func:`dpframe.clip_cov`, one of every covariance and one of every variance, which share
    the epsilon equally.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"x": [1.0, 2.0, 3.0], "y": [6.0, 4.0, 2.0]})
    >>> with dp.Session(eps=1e7):
    ...     t = df.dp.clip_corr(["x", "y"], bounds=(0, 10), eps=1e7, round=2)
    >>> t["x"].to_list()
    [1.0, -1.0]
    """
    return _pairwise("clip_corr", columns, bounds, B, 1, eps, round, matrix=False)


def _pairwise(
    verb: str,
    columns: Any,
    bounds: Any,
    B: Any,
    ddof: Any,
    eps: Any = None,
    round: Any = None,
    *,
    matrix: bool,
) -> ClipCov:
    """The question about two columns, or about the matrix of several."""
    names = list_of_columns(verb, columns)
    if len(names) < 2:
        raise InputError(
            f"{verb} needs at least two columns.", hint=Call(f"{verb}", ["a", "b"], bounds=(0, 100))
        )
    if len(names) > 2 and not matrix:
        raise InputError(
            f"{verb} of {len(names)} columns is a matrix, which is no column of a table of answers.",
            hint=(
                Call(f"df.dp.{verb}", [...], bounds=..., eps=1),
                ", or one ",
                Call(f"{verb}", [Code("a"), Code("b")]),
                " per pair",
            ),
        )
    if len(names) > MOST_COLUMNS:
        raise InputError(f"{verb} takes at most {MOST_COLUMNS} columns, not {len(names)}.")
    each = bounds_of_each(verb, names, bounds, B)
    after = common(eps, False, round)
    return ClipCov(
        None,
        None,
        of=names,
        each=each,
        ddof=checked_ddof(ddof),
        matrix=matrix,
        scaled=verb == "clip_corr",
        **after,
    )


def bounds_of_each(verb: str, names: tuple[Hashable, ...], bounds: Any, B: Any) -> tuple[Bounds | None, ...]:
    """Bounds for every column from one pair, a list of pairs, or a dict."""
    if isinstance(bounds, Mapping):
        odd = [k for k in bounds if k not in names]
        if odd:
            raise InputError(Arg("bounds"), f" of {verb} names {odd[0]!r}, which is not among its columns.")
        return tuple(parse_bounds(verb, c, bounds.get(c), B) for c in names)
    if isinstance(bounds, list | tuple) and any(isinstance(b, list | tuple | None) for b in bounds):
        if len(bounds) != len(names):
            raise InputError(
                Arg("bounds"),
                f" of {verb} has {len(bounds)} pairs for {len(names)} columns.",
                hint="one pair for all, or one for each",
            )
        return tuple(parse_bounds(verb, c, b, B) for c, b in zip(names, bounds))
    return tuple(parse_bounds(verb, c, bounds, B) for c in names)
