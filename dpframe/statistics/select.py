"""Choosing among candidates that the caller scores, one column of utilities each: select."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpframe.accounting.events import Number
from dpframe.errors import Call, InputError, exactly
from dpframe.frames.columns import Column
from dpframe.frames.contract import Measure
from dpframe.layout.answers import Answer
from dpframe.layout.choices import Places, Selection
from dpframe.layout.families import Bounds, sum_layout
from dpframe.layout.grids import MOST_STEPS, WEIGHED_STEPS, make_axis, make_grid
from dpframe.layout.layouts import Coordinate, Layout
from dpframe.layout.sensitivity import Move
from dpframe.layout.tables import Index, Named
from dpframe.mechanisms.choosers import best
from dpframe.statistics.base import ChoiceTerms, common, list_of_columns, parse_bounds
from dpframe.statistics.base_choice import Choosing, checked_k, mechanism_for
from dpframe.statistics.question import AUDIT_BOUNDS, question


@dataclass(frozen=True, slots=True)
class Scored(Choosing):
    """``of`` are the candidates: columns that hold what each row adds to a candidate's utility."""

    of: tuple[Hashable, ...] = ()
    k: int = 1
    in_rows = False
    verb = "select"
    default_name = "rank"

    def argument(self, name: str) -> Any:
        return list(self.of) if name == "columns" else getattr(self, name, None)

    @property
    def columns(self) -> tuple[Hashable, ...]:
        return self.of

    @property
    def measured(self) -> tuple[tuple[Hashable, Bounds | None], ...]:
        return tuple((c, self.bounds) for c in self.of)

    def sums(
        self, types: Mapping[Hashable, Column], fold: int | None, most: int = MOST_STEPS
    ) -> list[tuple[Coordinate, Measure, Layout]]:
        """The sum of every candidate, all on one grid.

        Privacy: columns of different types would have different steps, and sums that are compared must not; so
        unless all hold whole numbers, all have the grid of floats.
        """
        bounds = self.bounds or (Fraction(0), Fraction(1))
        whole = all(types[c].kind in ("int", "bool") for c in self.of)
        out = []
        for c in self.of:
            column = types[c] if whole else replace(types[c], kind="float")
            grid = make_grid(column, *bounds, sum_alone=True, fold=fold, most=most)
            layout, measure = sum_layout(0, grid), Measure((make_axis(c, bounds, grid),), ((0,),))
            (coordinate,) = layout.coordinates
            assert isinstance(coordinate, Coordinate)
            out.append((coordinate, measure, layout))
        return out

    def selection(self, terms: ChoiceTerms) -> Selection:
        mechanism_for(self, terms)
        sums = self.sums(terms.types, terms.fold, MOST_STEPS if terms.row_steps == 1 else WEIGHED_STEPS)
        layout = sums[0][2].weighed(terms.row_steps)
        assert isinstance(layout.move, Move)
        chooser = best(len(self.of), self.k, layout.move.across, layout.step, terms.reach, terms.target)
        return Selection(chooser, sums=tuple((c, m) for c, m, _ in sums))

    def answers(self, layouts: Sequence[Layout]) -> tuple[Answer, ...]:
        return (Places(layouts[0].start, self.k, "the utilities of those chosen"),)

    def table(self, start: int, column: Column) -> Index:
        return Named(start, self.k, "candidate", tuple(map(str, self.of)))

    def describe(self) -> str:
        names = list(map(repr, self.of))
        shown = ", ".join(names if len(names) <= 6 else [*names[:2], "...", names[-1]])
        within = (
            "" if self.bounds is None else f", bounds=({exactly(self.bounds[0])}, {exactly(self.bounds[1])})"
        )
        return f"select([{shown}]{within}{f', k={self.k}' if self.k > 1 else ''})"


@question(
    answer="choice",
    returns="frame with ``candidate`` and ``rank`` (k rows, best first); of groups k rows for each, after the keys",
    example="['a', 'b', 'c'], bounds=(0, 1)",
    audited={"select": {"columns": ["x", "y"], "bounds": AUDIT_BOUNDS}},
)
def select(
    columns: Any,
    *,
    bounds: tuple[Number, Number] | None = None,
    B: Number | None = None,
    k: int = 1,
    eps: Number | None = None,
) -> Scored:
    """Choose the candidate with the largest utility, where a column says what each row adds to it.

    Parameters
    ----------
    columns : list of column names
        One for each candidate, with what a row adds to its utility: Boolean, integer, float or Decimal.
    bounds : (low, high)
        Of every cell, as in :func:`dpframe.clip_sum`; Boolean columns need none.
    k : int
        How many candidates to choose, best first.

    Returns
    -------
    Scored
        k rows: ``candidate`` (a column's name) and ``rank``. Utilities are not released.

    Raises
    ------
    InputError
        Without bounds, for fewer than k columns, or for columns that hold no numbers.

    Notes
    -----
    Privacy: eps-DP per protected unit (rho = eps**2/(8 k)). k draws of the exponential mechanism without putting back
    (McSherry and Talwar 2007), each with eps/k, on the sums of the clipped columns. One row moves all of them by
    amounts within max(high, 0) - min(low, 0) of each other, so weights are exp(eps/k * sum / that); replace_one:
    half of that.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> votes = pl.DataFrame({"tea": [True, True, False], "coffee": [False, True, False]})
    >>> with dp.Session(eps=1e6):
    ...     votes.dp.select(["tea", "coffee"], eps=1e3).rows()
    [('tea', 1)]
    """
    of = list_of_columns("select", columns)
    checked_k(of[0] if of else "x", k)
    if len(of) < max(2, k):
        raise InputError(
            f"select needs at least {max(2, k)} columns to choose from, and has {len(of)}.",
            hint=Call("select", ["a", "b", "c"], bounds=(0, 1)),
        )
    return Scored(of[0], parse_bounds("select", of[0], bounds, B), of=of, k=k, **common(eps, False, None))
