"""Families: questions answered from the same noisy integers, and for each the layout of those integers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from dpframe.errors import Arg, InputError
from dpframe.frames.bins import Tally
from dpframe.frames.columns import Column
from dpframe.frames.contract import Axis, Ball, Measure, unit_weight
from dpframe.layout.grids import FEW_STEPS, MOST_STEPS, UNIT_GRID, Grid, log2_ceil, make_axis, make_grid
from dpframe.layout.layouts import BinCounts, Coordinate, Layout, UnitWeights
from dpframe.layout.sensitivity import BallMove, Move, WeightMove

Bounds = tuple[Fraction, Fraction]
_FORMS = (
    "present",
    "centred",
    "sum",
    "block",
    "triple",
)  # of one column, each answering more than those before


@dataclass(frozen=True, slots=True)
class Family:
    """What a question needs.

    Attributes
    ----------
    kind : str
        "column" (everything asked of one column within one pair of bounds), "pair" and "spread" (the products
        of two columns, and the squares of one, over rows in which all ``columns`` are present), "product" (the
        product of two alone, over the same rows),
        "weighted" (a column and its weights), "vector" and "vectors" (the sum and the number of vectors), "units"
        and "rows" (their numbers), "bins" and "distinct" (the rows of ``dims`` bins; different values).
    columns, bounds : tuples
        The columns that must be present, with their bounds (None: only presence matters).
    of : tuple of int
        Which of the columns a pair or a spread is about.
    tally : Tally or None
        The bins.
    norm, order, dims
        Of vectors: their largest norm, which norm, and how many components a column of lists has (0: every
        column is one component).
    """

    kind: str
    columns: tuple[Hashable, ...] = ()
    bounds: tuple[Bounds | None, ...] = ()
    of: tuple[int, ...] = ()
    norm: Fraction = Fraction(0)
    order: int = 2
    dims: int = 0
    tally: Tally | None = None

    @property
    def label(self) -> str:
        """What it is about, in words."""
        names = [str(self.columns[i]) for i in dict.fromkeys(self.of)] or list(map(str, self.columns))
        return " and ".join(names) + (" (number)" if self.kind == "vectors" else "")


UNITS = Family("units")
ROWS = Family("rows")


def widest(forms: list[str]) -> str:
    """The form of a column that answers every question asked of it."""
    if len(set(forms)) == 1:
        return forms[0] if len(forms) == 1 or forms[0] not in ("sum", "centred") else "block"
    return max([*forms, "block"], key=_FORMS.index)


def lay_out(
    family: Family,
    start: int,
    types: Mapping[Hashable, Column],
    *,
    form: str,
    missing_cell: bool,
    fold: int | None,
    most: int = MOST_STEPS,
) -> tuple[Layout, Measure | None]:
    """The coordinates of a family from number ``start``, and what the engine adds up for them.

    Parameters
    ----------
    form, missing_cell
        Of a "column": what its questions need, and whether the rows in which it is missing are counted too.
    fold : int or None
        How many rows of one unit may count, when rows are scaled down.
    most : int
        The largest number of steps that a row may add to a cell.
    """
    few = min(FEW_STEPS, 1 << (most.bit_length() - 1) // 2)
    if family.kind in ("units", "rows"):
        return (units_layout if family.kind == "units" else rows_layout)(start), None
    if family.kind in ("vector", "vectors"):
        return _vector(family, start)
    if family.kind == "column":
        return _column(family, start, types, form, missing_cell, fold, most)
    pairs = list(zip(family.columns, family.bounds))
    if family.kind == "weighted":
        (x, bounds), (w, heavy) = pairs
        assert bounds is not None
        assert heavy is not None
        grid = make_grid(types[x], *bounds, fold=fold, most=few)
        weights = make_grid(types[w], Fraction(0), heavy[1], fold=fold, most=few)
        both = (make_axis(w, heavy, weights), make_axis(x, bounds, grid))
        return weighted_layout(start, grid, weights), Measure(both, ((0,), (0, 1)))
    chosen = [pairs[i] for i in dict.fromkeys(family.of)]
    for c, b in chosen:
        _check_squares(c, b)
    others = [Axis(c) for c, _ in pairs if c not in [name for name, _ in chosen]]
    grids = [make_grid(types[c], *b, fold=fold, most=few) for c, b in chosen if b is not None]
    axes = tuple(make_axis(c, b, g) for (c, b), g in zip(chosen, grids) if b is not None)
    if family.kind == "spread":
        layout = replace(triple_layout(start, grids[0], missing_cell=False), kind="spread")
        return layout, Measure((*axes, *others), ((0,), (0, 0)))
    layout_of = product_layout if family.kind == "product" else pair_layout
    return layout_of(start, *grids), Measure((*axes, *others), ((0,), (1,), (0, 1)))


def _column(
    family: Family,
    start: int,
    types: Mapping[Hashable, Column],
    form: str,
    missing_cell: bool,
    fold: int | None,
    most: int,
) -> tuple[Layout, Measure]:
    name, bounds = family.columns[0], family.bounds[0]
    if bounds is None:
        return present_layout(start, missing_cell=missing_cell), Measure((Axis(name),))
    if form == "triple":
        _check_squares(name, bounds)
    if form == "triple":
        most = min(FEW_STEPS, 1 << (most.bit_length() - 1) // 2)
    grid = make_grid(types[name], *bounds, sum_alone=form == "sum", fold=fold, most=most)
    axes = (make_axis(name, bounds, grid),)
    if form in ("sum", "centred"):
        return (sum_layout if form == "sum" else centred_layout)(start, grid), Measure(axes, ((0,),))
    if form == "triple":
        return triple_layout(start, grid, missing_cell=missing_cell), Measure(axes, ((0,), (0, 0)))
    return block_layout(start, grid, missing_cell=missing_cell), Measure(axes, ((0,),))


def _check_squares(name: Hashable, bounds: Bounds | None) -> None:
    """Refuse bounds whose squares are beyond float64, which answers are given in."""
    if bounds is not None and not Fraction(1, 2**450) <= max(map(abs, bounds)) <= 2**450:
        raise InputError(
            Arg("bounds", (bounds[0], bounds[1])),
            f" of {name!r} are squared here, and so must lie within 2**-450 to 2**450.",
            hint="divide the column by a constant first",
        )


def _vector(family: Family, start: int) -> tuple[Layout, Measure]:
    """Privacy: norm/step <= 2**25 with at most 2**12 components, so exact squared norms stay below 2**63."""
    if not Fraction(1, 2**300) <= family.norm <= 2**300:
        raise InputError(Arg("norm", family.norm), " is outside 2**-300 to 2**300.", hint=Arg("norm", 1))
    step = Fraction(2) ** (log2_ceil(family.norm) - 25)
    reach = int(family.norm / step)
    if family.dims:
        axes = tuple(Axis(family.columns[0], item=i, length=family.dims) for i in range(family.dims))
    else:
        axes = tuple(Axis(c) for c in family.columns)
    ball = Ball(float(family.norm), family.order, float(step), reach)
    measure = Measure(axes, tuple((i,) for i in range(len(axes))), ball)
    if family.kind == "vectors":
        return replace(present_layout(start, missing_cell=False), kind="vectors"), measure
    return vector_layout(start, step, BallMove(reach, len(axes), family.order)), measure


def units_layout(start: int) -> Layout:
    """The number of units with a row in the group: m."""
    return Layout("units", UNIT_GRID, (Coordinate(e=1),), Move(1, 1, once=True), start)


def weights_layout(start: int, groups: int) -> Layout:
    """What the units of the group weigh: a row is a unit that is in ``groups`` groups."""
    return Layout("weights", UNIT_GRID, (UnitWeights(),), WeightMove(), start, unit_weight(groups))


def rows_layout(start: int) -> Layout:
    """count() on its own: n."""
    return Layout("rows", UNIT_GRID, (Coordinate(a=1),), Move(1, 1), start)


def present_layout(start: int, *, missing_cell: bool) -> Layout:
    """count("x"): c; with count() of a column with gaps as well, the two cells (c, n - c)."""
    if not missing_cell:
        return Layout("present", UNIT_GRID, (Coordinate(b=1),), Move(1, 1), start)
    cells = (Coordinate(b=1), Coordinate(a=1, b=-1))
    return Layout("present", UNIT_GRID, cells, Move(1, 1, cells=True), start)


def bins_layout(start: int, width: int) -> Layout:
    """A histogram: the rows of every bin.

    Privacy: a row is in one bin, so R rows of a unit add R in L1 and at most R in L2; when others take
    their place, R go and R come.
    """
    return Layout("bins", UNIT_GRID, (BinCounts(width),), Move(1, 1, cells=True), start)


def distinct_layout(start: int, *, once: bool) -> Layout:
    """A number of different values: one unit has at most R of them (``once``: the column names the unit)."""
    return Layout("distinct", UNIT_GRID, (BinCounts(1),), Move(1, 1, once=once), start)


def sum_layout(start: int, grid: Grid) -> Layout:
    """clip_sum on its own: the sum of k = t + first*c."""
    far = max(abs(grid.first), abs(grid.last))
    across = max(grid.last, 0) - min(grid.first, 0)
    return Layout("sum", grid, (Coordinate(b=grid.first, sums=((0, 1),)),), Move(far, across), start)


def centred_layout(start: int, grid: Grid) -> Layout:
    """clip_mean with a public n on its own: the sum of 2t - K, in half steps."""
    k = grid.count
    return Layout("centred", grid, (Coordinate(b=-k, sums=((0, 2),)),), Move(k, 2 * k), start)


def block_layout(start: int, grid: Grid, *, missing_cell: bool) -> Layout:
    """The simplex block: t, K*c - t and, if count() is asked of a column with gaps, K*(n - c).

    Privacy: a row adds (t, K-t, 0) or (0, 0, K): exactly K in L1, whatever it holds, so each cell
    needs the noise of sensitivity K only once. All cells come from one integer t; cells rounded
    independently would add up to K+1 at ties.
    """
    k = grid.count
    cells = (Coordinate(sums=((0, 1),)), Coordinate(b=k, sums=((0, -1),)))
    return _simplex("block", start, grid, cells, k, (1, -1), missing_cell)


def triple_layout(start: int, grid: Grid, *, missing_cell: bool) -> Layout:
    """The block of a variance: the sums of (K-t)**2, 2t(K-t) and t**2.

    Privacy: as :func:`block_layout`; a row adds ((K-t)**2, 2t(K-t), t**2), which sum to K**2 exactly.
    """
    k = grid.count
    cells = (
        Coordinate(b=k * k, sums=((0, -2 * k), (1, 1))),
        Coordinate(sums=((0, 2 * k), (1, -2))),
        Coordinate(sums=((1, 1),)),
    )
    return _simplex("block", start, grid, cells, k * k, (-1, 0, 1), missing_cell)


def pair_layout(start: int, first: Grid, second: Grid) -> Layout:
    """The block of a covariance: the sums of (K-s)(L-t), s(L-t), (K-s)t and st.

    Privacy: as :func:`block_layout`; a row in which both are present adds K*L in L1, any other nothing.
    """
    k, m = first.count, second.count
    cells = (
        Coordinate(b=k * m, sums=((0, -m), (1, -k), (2, 1))),
        Coordinate(sums=((0, m), (2, -1))),
        Coordinate(sums=((1, k), (2, -1))),
        Coordinate(sums=((2, 1),)),
    )
    layout = _simplex("pair", start, first, cells, k * m, (-1, 1, -1, 1), False)
    return replace(layout, second=second)


def product_layout(start: int, first: Grid, second: Grid) -> Layout:
    """The product of two columns on [-1, 1], x*y, as a place between -1 and 1: P = 2st - Ls - Kt + KL, and KL*c - P.

    Privacy: as :func:`block_layout`; P is st + (K-s)(L-t), two cells of :func:`pair_layout`, so it is 0 to K*L, and a
    row in which all columns are present adds (P, KL-P), K*L in L1; any other nothing.
    """
    k, m = first.count, second.count
    cells = (
        Coordinate(b=k * m, sums=((0, -m), (1, -k), (2, 2))),
        Coordinate(sums=((0, m), (1, k), (2, -2))),
    )
    return replace(_simplex("product", start, first, cells, k * m, (1, -1), False), second=second)


def weighted_layout(start: int, grid: Grid, weights: Grid) -> Layout:
    """The block of a weighted mean: the sums of w*t, w*(K-t) and the weight that is left, (W-w)*K.

    Privacy: as :func:`block_layout`; a row in which both are present adds W*K in L1, any other nothing.
    The third cell is not released; leaving it out changes no guarantee.
    """
    k, w = grid.count, weights.count
    cells = (Coordinate(sums=((1, 1),)), Coordinate(sums=((0, k), (1, -1))))
    return _simplex("weighted", start, grid, cells, k * w, (1, -1), False)


def vector_layout(start: int, step: Fraction, move: BallMove) -> Layout:
    """The sums of the components of vectors."""
    cells = tuple(Coordinate(sums=((i, 1),)) for i in range(move.dims))
    return Layout("vector", Grid(step, -move.reach, move.reach, False), cells, move, start)


def _simplex(
    kind: str,
    start: int,
    grid: Grid,
    cells: tuple[Coordinate, ...],
    row: int,
    places: tuple[int, ...],
    missing_cell: bool,
) -> Layout:
    if missing_cell:
        cells = (*cells, Coordinate(a=row, b=-row))
    return Layout(kind, grid, cells, Move(row, row, cells=True), start, row, places)
