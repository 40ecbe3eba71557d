"""Linear regression by least squares: ols."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import polars as pl

from dpframe.accounting.events import Number
from dpframe.errors import Call, InputError, exactly
from dpframe.frames.columns import Column
from dpframe.layout.answers import Answer
from dpframe.layout.families import Bounds, Family
from dpframe.layout.layouts import Layout
from dpframe.layout.regression import BESIDE, CONSTANT, TERM, Terms, regression
from dpframe.layout.tables import Index
from dpframe.statistics.base import BOOLEAN, Aggregate, common, list_of_columns, one_column
from dpframe.statistics.covariance import bounds_of_each
from dpframe.statistics.question import AUDIT_BOUNDS, question

MOST_REGRESSORS = 20  # 252 free cells, of which one draw has 256 at most


@dataclass(frozen=True, slots=True)
class Ols(Aggregate):
    """``column`` by the columns ``x``; ``each`` are the bounds of ``column``, then of ``x``."""

    x: tuple[Hashable, ...] = ()
    each: tuple[Bounds | None, ...] = ()

    @property
    def measured(self) -> tuple[tuple[Hashable, Bounds | None], ...]:
        return tuple(zip((self.column, *self.x), self.each))

    @property
    def verb(self) -> str:
        return "ols"

    @property
    def default_name(self) -> str:
        return "estimate"

    @property
    def beside(self) -> tuple[str, ...]:
        return (TERM, *BESIDE)

    @property
    def missing(self) -> str:
        return "infinities are clipped"

    @property
    def whole_rows(self) -> bool:
        return True

    def argument(self, name: str) -> Any:
        if name == "y":
            return self.column
        if name == "x":
            return list(self.x)
        if name == "bounds":
            typed = {c: b for c, b in self.measured if b is not None}
            return list(self.each) if len(typed) == len(self.each) else typed or None
        return getattr(self, name, None)

    def resolved(self, column: Callable[[Hashable], Column]) -> Aggregate:
        each = tuple(BOOLEAN if b is None and column(c).kind == "bool" else b for c, b in self.measured)
        return replace(self, each=each)

    def families(self, types: Mapping[Hashable, Column]) -> tuple[Family, ...]:
        columns, bounds = (*self.x, self.column), (*self.each[1:], self.each[0])
        spreads = [Family("spread", columns, bounds, (i,)) for i in range(len(columns))]
        pairs = combinations(range(len(columns)), 2)
        return (*spreads, *(Family("product", columns, bounds, p) for p in pairs))

    def answers(self, layouts: Sequence[Layout]) -> tuple[Answer, ...]:
        return (regression(layouts, tuple(map(str, self.x))),)

    def table(self, start: int, column: Column) -> Index:
        names = (CONSTANT, *map(str, self.x))
        return Terms(start, len(names), ((TERM, pl.String, names),))

    def describe(self) -> str:
        shown = {c: f"({exactly(b[0])}, {exactly(b[1])})" for c, b in self.measured if b is not None}
        same = len(set(self.each)) == 1
        listed = "{" + ", ".join(f"{c!r}: {b}" for c, b in shown.items()) + "}"
        bounds = f", bounds={shown[self.column] if same else listed}" if shown else ""
        return f"ols({self.column!r}, {list(self.x)!r}{bounds})"


@question(
    answer="table",
    returns="frame with ``term``, ``estimate`` and what is listed below; of groups those rows for each, after the keys",
    example="'y', ['a', 'b'], bounds=(0, 100)",
    known_as=("regression", "linear_regression", "linregress", "lm", "lstsq", "least_squares", "polyfit"),
    audited={"ols": {"y": "y", "x": ["x"], "bounds": AUDIT_BOUNDS}},
)
def ols(
    y: Hashable,
    x: Sequence[Hashable],
    *,
    bounds: Any = None,
    B: Number | None = None,
    eps: Number | None = None,
    round: int | None = None,
) -> Ols:
    """Regress a column on others by least squares, each value clipped to public bounds.

    Parameters
    ----------
    y : hashable
        The response: a Boolean, integer, float or Decimal column.
    x : list of columns
        The regressors, 1 to 20 of them, of the same types. There is always an intercept.
    bounds : (low, high), or a dict with one such pair per column, or a list of them (y's first)
        In the columns' units, from knowledge about the world and never from the frame. Boolean columns need none.
    B : number
        Short for ``bounds=(-B, B)``, for all columns.

    Returns
    -------
    Ols
        A row for each term: ``term`` (text: "intercept", then the regressors' names), ``estimate``, ``std_error``,
        ``low`` and ``high`` (Float64, in the response's unit over the regressor's; the interval is at ``ci=``, 0.95 by
        default, and holds noise and sampling). What is about the group stands in each of its rows: ``n`` (Int64; rows
        without a missing value, with noise), ``residual_sd`` (in the response's unit) and ``r_squared`` (within [0, 1]),
        both Float64, and ``note`` (text). Where the noise leaves nothing to tell, ``note`` says why and the cells are
        null (NaN in pandas): never a wild number. It is "" where all is told.

    Raises
    ------
    InputError
        For no regressors, more than 20, one that is the response, is listed twice or is called "intercept"; beside
        other questions; for bounds that do not fit the columns.

    Notes
    -----
    Privacy: (eps, delta)-DP per protected unit. A row in which no column is missing adds to one block for every column,
    as in :func:`dpframe.clip_var`, and to one for every two columns, (P, KL-P) of their product's place P from 0 to K*L,
    which sum to K*L whatever it holds; any other row adds nothing. All else is made of these noisy sums. Values are
    rounded to a 2**-15 part of their span.

    The interval is that of the linear model with residuals of equal variance, of the *clipped* columns and of rows that
    were drawn independently. A term is told when n, and what is left of each regressor beside the others, are
    4 standard deviations of their noise or more (``docs/regression.md``).

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"a": [0.0, 1.0, 2.0, 3.0] * 250, "y": [1.0, 3.1, 4.9, 7.0] * 250})
    >>> with dp.Session(eps=1e6):
    ...     t = df.dp.ols("y", ["a"], bounds={"y": (0, 10), "a": (0, 5)}, eps=1e6, round=2)
    >>> t.select("term", "estimate", "n", "residual_sd").rows()
    [('intercept', 1.03, 1000, 0.07), ('a', 1.98, 1000, 0.07)]
    """
    column = one_column("ols", y)
    names = list_of_columns("ols", x)
    if not names:
        raise InputError(
            "ols needs at least one regressor.", hint=Call("ols", "y", ["a", "b"], bounds=(0, 100))
        )
    if len(names) > MOST_REGRESSORS:
        raise InputError(f"ols takes at most {MOST_REGRESSORS} regressors, not {len(names)}.")
    if str(column) in map(str, names):
        raise InputError(f"ols: {column!r} is the response and a regressor.", hint="leave it out of x")
    if CONSTANT in map(str, names):
        raise InputError(
            f"ols: a regressor called {CONSTANT!r} would read like the constant, which is always there.",
            hint="leave a column of ones out, or rename the column",
        )
    each = bounds_of_each("ols", (column, *names), bounds, B)
    return Ols(column, None, x=names, each=each, **common(eps, False, round))
