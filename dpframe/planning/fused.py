"""The noise of sums where one draw covers all blocks of a row, or a few draws cover some each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from dpframe.accounting.events import Event, compose
from dpframe.layout.answers import Linear
from dpframe.layout.families import UNITS, Family, lay_out, present_layout, rows_layout
from dpframe.layout.layouts import Layout
from dpframe.mechanisms import row, row_gaussian
from dpframe.mechanisms.auto import cost, part_of
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.choosers import Reach
from dpframe.mechanisms.joint import Joint, Share
from dpframe.mechanisms.row_gaussian import Map
from dpframe.mechanisms.thresholds import OwnKeys, Threshold
from dpframe.planning.assembly import Draft, Laid, label, presence
from dpframe.planning.pieces import Output, Part, Piece
from dpframe.planning.runs import BLOCKS, FORMS, Seat, seated
from dpframe.planning.split import append, noise_target, sized, threshold_split, with_keys
from dpframe.statistics.base import Aggregate

Runs = tuple[tuple[Family, ...], ...]
COARSEST = 1 << 20  # steps to which a grid is coarsened, so that the noise has room


@dataclass(frozen=True, slots=True)
class Cut:
    """Which families share a draw: the blocks of each of ``runs``; ``plain`` ones have noise of their own.

    ``map`` is that of Gaussian draws; None for draws of the row law.
    """

    runs: Runs
    plain: tuple[Family, ...]
    map: Map | None = None

    @property
    def draws(self) -> int:
        """Parts among which the budget is divided."""
        return len(self.runs) + len(self.plain)


@dataclass(frozen=True, slots=True)
class Needs:
    """What the sums of a group of questions need, if their rows are counted by the draws.

    Attributes
    ----------
    counts : tuple of Aggregate
        Answered by the number of rows.
    rest : tuple of Aggregate
    blocks, others : tuple of Family
        Families that may share a draw, and those that may not.
    forms : dict
        Of the families that are one column.
    reading : bool
        Whether the number of rows is asked for, or decides which groups are released.
    """

    counts: tuple[Aggregate, ...]
    rest: tuple[Aggregate, ...]
    blocks: tuple[Family, ...]
    others: tuple[Family, ...]
    forms: dict[Family, str]
    reading: bool

    def lone(self, run: Sequence[Family]) -> bool:
        """Whether it is one plain number, which has better laws and no use for the number of rows."""
        return len(run) == 1 and self.forms.get(run[0]) in FORMS


def needs(draft: Draft, group: Sequence[Aggregate], thresholded: bool) -> Needs:
    """Sort the questions of ``group`` and their families.

    A count of the cells that are there, of a column whose type has no missing values, is the number of rows.
    """
    counts = [a for a in group if draft.counts_rows(a) or _never_missing(draft, a)]
    rest = [a for a in group if a not in counts]
    families, forms = draft.families(rest)
    blocks = tuple(f for f in families if f.kind == "column" or f.kind in BLOCKS)
    others = [f for f in families if f not in blocks]
    if thresholded and draft.by_units:
        others.append(UNITS)
    reading = bool(counts) or (thresholded and not draft.by_units)
    return Needs(tuple(counts), tuple(rest), blocks, tuple(dict.fromkeys(others)), forms, reading)


def _never_missing(draft: Draft, a: Aggregate) -> bool:
    families = a.families(draft.types)
    return (
        a.verb == "count" and len(families) == 1 and presence(families[0]) and not draft.missing(families[0])
    )


def add_runs(
    draft: Draft, group: Sequence[Aggregate], cut: Cut, target: Target, *, thresholded: bool
) -> None:
    """Size the noise of all sums of ``group``, a draw for each run; append their pieces, parts, outputs and cost.

    Raises
    ------
    MechanismError
        Where a draw can't be made: too many cells, or noise beyond what can be drawn exactly.

    Privacy. Each of the p runs and other parts has target/p and is calibrated to a unit's whole reach, by the row law
    or the Gaussian of a linear map (:mod:`dpframe.planning.runs` says why a row of each run is a row of these laws) or as in
    :func:`~dpframe.planning.split.add_split`. Their draws are independent, so their events add up: p draws of eps/p
    are eps-DP, and eps*tanh(eps/2p)-zCDP. A run is of sums that the engine adds up in one pass: what is tallied, which is read
    again, has parts of its own. The number of rows that a run draws costs nothing more: it is part of the vector. Units that are
    scaled over all of their groups count in row steps, of which the law is then: what it takes of a row it takes of a
    step, as a unit's steps n', c' and sums keep 0 <= sums <= c'*K, c' <= n' exactly, and its n' add up to T rows' steps.
    """
    needed, p = needs(draft, group, thresholded), cut.draws
    by_rows = thresholded and not draft.by_units
    each = part_of(noise_target(target, thresholded=thresholded), p)
    runs = [
        _run(
            draft,
            run,
            needed,
            each,
            cut.map,
            alone=len(run) == 1 and not needed.counts and not (by_rows and len(cut.runs) > 1),
        )
        for run in cut.runs
    ]
    events = [r.joint.event for r in runs]
    laid: list[Laid] = []
    if cut.plain:
        start = len(draft.pieces)
        for family in cut.plain:
            laid.append(draft.lay(family, start, needed.forms.get(family, "")))
            start += len(laid[-1][0].coordinates)
        eps, rho = (None if x is None else x * len(laid) / p for x in (target.eps, target.rho))
        choice = sized(draft, laid, Target(eps, target.delta, rho), "auto", thresholded=thresholded)
        events.append(cost(choice))
    event, first = compose(tuple(events)), len(draft.parts)
    if cut.plain:
        append(draft, laid, choice, event, p)
    numbers = {family: first + i for i, (_, _, family) in enumerate(laid)}
    counted = runs if needed.counts else []
    if by_rows:
        least = _least_rows(draft, [r.joint for r in runs], target.delta - event.delta)
        found = min(range(len(runs)), key=lambda i: least[i])
        counted = counted or [runs[found]]
    counters = {}
    for number, r in enumerate(runs, draft.draws):
        for i, (family, seat, measure) in enumerate(r.seats):
            numbers[family] = part = len(draft.parts)
            layout = replace(seat.layout, start=len(draft.pieces)).weighed(draft.row_steps)
            draft.parts.append(_part(draft, layout, family, event, p, number, cut.map))
            draft.pieces += [
                Piece(c, measure, Share(r.joint, number, w, seat.block.steps), part)
                for c, w in zip(layout.coordinates, seat.shares(r.joint, i))
            ]
        if r in counted:
            layout, measure = r.counter(len(draft.pieces))
            layout = layout.weighed(draft.row_steps)
            rows = tuple(int(not i) for i in range(len(r.joint.coordinates)))
            counters[number] = len(draft.pieces)
            draft.pieces.append(
                Piece(layout.coordinates[0], measure, Share(r.joint, number, rows, 1), len(draft.parts))
            )
            draft.parts.append(_part(draft, layout, None, event, p, number, cut.map))
    draft.answer(needed.rest, numbers)
    if needed.counts:
        answer = _pooled(draft, tuple(counters.values()))
        part = draft.pieces[answer.terms[0][0]].part
        draft.outputs += [Output(a.names[0], a, answer, part) for a in needed.counts]
    if by_rows:
        keys_delta = target.delta - event.delta
        units = any(draft.counts_rows(a) and not a.counts_rows for a in group)
        said = draft.policy.unit_name if units else "row"
        where = (counters[draft.draws + found],)
        draft.threshold = Threshold(where, least[found], draft.row_steps, said, keys_delta, small=draft.small)
        event = with_keys(event, keys_delta)
    elif thresholded:
        layouts = [layout for layout, _, _ in laid]
        event = threshold_split(draft, group, layouts, event, target.delta)
    draft.draws += len(runs)
    draft.events.append(event)


@dataclass(frozen=True, slots=True)
class Run:
    """One draw: its blocks, each with its family and the place of its measure; ``alone`` as in :func:`seated`."""

    joint: Joint
    seats: tuple[tuple[Family, Seat, int], ...]
    alone: bool

    def counter(self, start: int) -> tuple[Layout, int]:
        """What holds the number of rows that its draw counts, and the place of its measure."""
        if not self.alone:
            return rows_layout(start), -1
        return present_layout(start, missing_cell=False), self.seats[0][2]


def _run(
    draft: Draft, run: Sequence[Family], needed: Needs, each: Target, m: Map | None, *, alone: bool
) -> Run:
    """Seat the blocks, on coarser grids where the noise needs the room, and calibrate their draw.

    Privacy: the grids are public, and what a row adds is bounded on the grid that is taken.
    """
    most, reach = draft.most_steps, draft.reach.in_steps(draft.row_steps)
    while True:
        found = []
        for family in run:
            form = needed.forms.get(family, "")
            layout, measure = lay_out(
                family, 0, draft.types, form=form, missing_cell=False, fold=draft.fold, most=most
            )
            seat = seated(layout, missing=draft.missing(family), alone=alone)
            assert seat is not None
            assert measure is not None
            found.append((family, seat, measure))
        blocks = tuple(seat.block for _, seat, _ in found)
        room = _finest(blocks, each, reach)
        if most > COARSEST and max(b.steps for b in blocks) > room:
            most = max(COARSEST, min(most // 2, 1 << max(0, room.bit_length() - 2)))
            continue
        if m is not None:
            joint: Joint = row_gaussian.calibrate(blocks, m, each, reach)
        else:
            joint = calibrated(blocks, each, reach)
        return Run(joint, tuple((f, s, draft.measure(m)) for f, s, m in found), alone)


@lru_cache(maxsize=1024)
def _finest(blocks: tuple[row.Block, ...], target: Target, reach: Reach) -> int:
    return row.finest(blocks, target, reach)


@lru_cache(maxsize=1024)
def calibrated(blocks: tuple[row.Block, ...], target: Target, reach: Reach) -> row.RowNoise:
    """The row law of a shape, kept."""
    return row.calibrate(blocks, target, reach)


def _part(
    draft: Draft,
    layout: Layout,
    family: Family | None,
    event: Event,
    fused: int,
    number: int,
    law: Map | None,
) -> Part:
    l1, l2sq = draft.sensitivity(layout)
    name = "row" if law is None else "gaussian"
    return Part(layout, None if family is None else label(family), l1, l2sq, name, fused, event, draw=number)


def _least_rows(draft: Draft, joints: Sequence[Joint], delta: Fraction) -> list[int]:
    """For each draw the least threshold of its number of rows, in row steps.

    Privacy: :class:`~dpframe.mechanisms.thresholds.OwnKeys`.
    """
    return [_least(j, draft.own_keys(), draft.row_steps, delta) for j in joints]


@lru_cache(maxsize=256)
def _least(joint: Joint, own: OwnKeys, row: int, delta: Fraction) -> int:
    rows = Share(joint, 0, tuple(int(not i) for i in range(len(joint.coordinates))), 1)
    return own.least(rows, 1, row, delta)


def _pooled(draft: Draft, counters: tuple[int, ...]) -> Linear:
    """count(): the mean of the numbers of rows that the draws hold, weighted by 1/variance.

    Draws are independent, and each number of rows is there once: pooling is post-processing.
    """
    steps = draft.row_steps
    if len(counters) == 1:
        return Linear(((counters[0], Fraction(1, steps)),), integer=True)
    weights = [Fraction(1 / draft.pieces[i].noise.std ** 2).limit_denominator(10**6) for i in counters]  # type: ignore[union-attr]
    if not all(weights):
        weights = [Fraction(1)] * len(counters)
    total = sum(weights, Fraction(0))
    return Linear(tuple((i, w / total / steps) for i, w in zip(counters, weights)), integer=True)
