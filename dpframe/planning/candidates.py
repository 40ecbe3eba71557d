"""Which noise the sums of a call get: a draw for every part, one for the whole row, or several; the rule and its candidates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from dpframe.errors import MechanismError
from dpframe.frames.contract import Counts, Measure
from dpframe.layout.families import Family
from dpframe.layout.layouts import BinCounts
from dpframe.layout.moments import Root
from dpframe.mechanisms.base import Ints, Target
from dpframe.mechanisms.row_gaussian import maps
from dpframe.planning.assembly import Draft
from dpframe.planning.fused import Cut, Needs, add_runs, needs
from dpframe.planning.pieces import ChoicePiece, Output, Piece
from dpframe.planning.runs import FORMS
from dpframe.planning.split import add_split
from dpframe.statistics.base import BOOLEAN, Aggregate

WORST = 1.05  # no output may have more than this times the RMSE of a draw for every part
WORTH = 1.02  # of two candidates this close in squares, the one with fewer draws
FEW = 5  # blocks of which every cut is tried
MOST = 24  # free cells of a draw that ``auto`` takes: figures of more take long
ROWS = 1 << 28  # of a made-up group: so many that noise in a denominator is of second order
Errors = dict[str, tuple[float, ...]]


def add_sums(draft: Draft, group: Sequence[Aggregate], target: Target, *, thresholded: bool) -> None:
    """Plan the sums of ``group`` with the noise that the rule takes, or that was asked for by name.

    *The rule* (``mechanism="auto"``). Candidates are a draw for every part, as it stands; every number of draws of the
    row law among which the blocks are divided, where eps is paid; and, where delta or rho is, a Gaussian draw for all blocks of
    one cell, by each of the linear maps that are worth it. An output's errors are its RMSE where every column's mean is
    in the middle of its bounds, and where it is at a bound, in a group of so many rows that only the first order counts;
    a table is one output, and so is a threshold. A candidate in which any is more than 5 % worse than with
    a draw for every part is out. Of the others it is the one with the least sum of squared ratios; within 2 % the one with
    the fewest draws.

    Privacy: the rule reads questions, types and the policy, nothing else.
    """
    cut = None
    if draft.request.mechanism == "row":
        cut = forced(draft, needs(draft, group, thresholded))
    elif draft.request.mechanism == draft.request.auto == "auto":
        cut = _best(draft, group, target, thresholded)
    if cut is None:
        add_split(draft, group, target, thresholded=thresholded)
    else:
        add_runs(draft, group, cut, target, thresholded=thresholded)


def forced(draft: Draft, needed: Needs) -> Cut:
    """All blocks in one draw; MechanismError where there is nothing that a draw could cover for less."""
    run = _sorted(draft, needed)
    if not run or (needed.lone(run) and not needed.reading):
        what = {"vector": "vectors", "vectors": "vectors", "bins": "counts of bins", "distinct": "n_unique"}
        said = dict.fromkeys(what.get(f.kind, "the number of units") for f in needed.others)
        why = (
            "one plain number has nothing to share it with"
            if run or not said
            else f"{' and '.join(said)} are no sums that a row is shared among"
        )
        raise MechanismError(
            f"mechanism='row' makes one draw for several columns of a row, or for a mean and its count: {why}.",
            hint="mechanism='laplace', or ask for several columns in one call",
        )
    return Cut((run,), needed.others)


def _sorted(draft: Draft, needed: Needs) -> tuple[Family, ...]:
    """Blocks of one step first, then by their number of cells."""
    return tuple(sorted(needed.blocks, key=lambda f: _kind(draft, needed, f)))


def _kind(draft: Draft, needed: Needs, family: Family) -> tuple[int, int, bool, str]:
    """Blocks of one kind have noise of one size."""
    form, bounds = needed.forms.get(family, ""), family.bounds[0]
    cells = 1 if form and form != "triple" else {"pair": 3, "product": 1}.get(family.kind, 2)
    one = form == "present" or (
        form in ("block", "sum")
        and draft.fold is None
        and draft.types[family.columns[0]].kind in ("bool", "int")
        and bounds == BOOLEAN
    )
    return 0 if one else 1, cells, form not in FORMS and draft.missing(family), form


def _best(draft: Draft, group: Sequence[Aggregate], target: Target, thresholded: bool) -> Cut | None:
    needed = needs(draft, group, thresholded)
    if not needed.blocks or (needed.lone(needed.blocks) and not needed.reading):
        return None
    columns = tuple(draft.types[c] for a in group for c in a.columns)
    key = (
        tuple(group),
        columns,
        target,
        thresholded,
        draft.reach,
        draft.policy,
        draft.by_units,
        draft.small,
        draft.request.loss,
        draft.fold,
    )
    if key not in _kept:
        if len(_kept) > 4096:
            _kept.clear()
        _kept[key] = _ruled(draft, group, needed, target, thresholded)
    return _kept[key]


_kept: dict[object, Cut | None] = {}


def _ruled(
    draft: Draft, group: Sequence[Aggregate], needed: Needs, target: Target, thresholded: bool
) -> Cut | None:
    """The cut that the rule takes; None for a draw for every part."""
    split = draft.fork()
    add_split(split, group, target, thresholded=thresholded)
    today = errors(draft, split)
    tried: list[tuple[float, int, Cut | None]] = [
        (float(len(_flat(today))), len(split.parts) - len(draft.parts), None)
    ]
    by_eps = cuts(draft, needed) if target.rho is None else iter(())
    for cut in itertools.chain(by_eps, linear(draft, needed, target)):
        fused = draft.fork()
        try:
            add_runs(fused, group, cut, target, thresholded=thresholded)
        except MechanismError:
            continue
        ratios = [
            x / y if y else (1.0 if x == 0 else math.inf)
            for x, y in zip(_flat(errors(draft, fused)), _flat(today))
        ]
        if max(ratios) <= WORST:
            tried.append((sum(r * r for r in ratios), cut.draws, cut))
    least = min(loss for loss, _, _ in tried)
    near = [t for t in tried if t[0] <= WORTH * least]
    return min(near, key=lambda t: (t[1], t[2] is not None, t[0]))[2]


def _flat(found: Errors) -> list[float]:
    return [x for name in sorted(found) for x in found[name]]


def cuts(draft: Draft, needed: Needs) -> Iterator[Cut]:
    """The divisions of the sorted blocks into runs that are tried."""
    blocks = _sorted(draft, needed)
    kinds = [_kind(draft, needed, f) for f in blocks]
    seen = set()
    for lengths in _divisions(kinds):
        ends = list(itertools.accumulate(lengths, initial=0))
        runs = [range(a, b) for a, b in itertools.pairwise(ends)]
        shape = tuple(sorted(tuple(kinds[i] for i in run) for run in runs))
        if shape in seen or any(sum(kinds[i][1] + kinds[i][2] for i in run) > MOST for run in runs):
            continue
        seen.add(shape)
        named = [tuple(blocks[i] for i in run) for run in runs]
        plain = () if len(named) == 1 and needed.reading else tuple(r[0] for r in named if needed.lone(r))
        fused = tuple(r for r in named if r[0] not in plain)
        if fused:
            yield Cut(fused, plain + needed.others)


def linear(draft: Draft, needed: Needs, target: Target) -> Iterator[Cut]:
    """Gaussian draws for all blocks of one cell; at (eps, delta), which has no equal parts, where nothing else needs noise."""
    run = tuple(f for f in _sorted(draft, needed) if _kind(draft, needed, f)[1] == 1)
    plain = tuple(f for f in needed.blocks if f not in run) + needed.others
    if not run or (needed.lone(run) and not needed.reading):
        return
    if target.rho is None and (plain or not target.delta):
        return
    several = len(run) > 1 or bool(needed.counts)
    for m in maps(len(run), missing=several and any(_kind(draft, needed, f)[2] for f in run)):
        yield Cut((run,), plain, m)


def _divisions(kinds: Sequence[object]) -> Iterator[Sequence[int]]:
    """Lengths of runs: of few blocks all; else nearly equal ones, of all blocks or of those of each kind."""
    n = len(kinds)
    if n <= FEW:
        for ends in itertools.chain.from_iterable(itertools.combinations(range(1, n), r) for r in range(n)):
            yield [b - a for a, b in itertools.pairwise((0, *ends, n))]
        return
    longest = [x for x in (*range(1, 9), 12, 16, MOST) if x < n]
    groups = [len(list(same)) for _, same in itertools.groupby(kinds)]
    yield [n]
    yield groups
    for most in reversed(longest):
        yield _even(n, -(-n // most))
        yield [x for g in groups for x in _even(g, -(-g // most))]


def _even(n: int, parts: int) -> list[int]:
    return [n // parts + (i < n % parts) for i in range(parts)]


# ---- errors ----


def errors(before: Draft, planned: Draft) -> Errors:
    """Of every output that ``planned`` has and ``before`` had not: its RMSE with columns in the middle, and at a bound."""
    start, outputs = len(before.pieces), planned.outputs[len(before.outputs) :]
    laws = [p.noise for p in planned.pieces]
    found: dict[str, list[float]] = {}
    for share in (0.5, 1.0):
        exact = _made_up(planned.measures, share, planned.row_steps)
        nothing = np.zeros(1, dtype=np.int64)
        noisy = [nothing] * start + [_integers(p, exact) for p in planned.pieces[start:]]
        for o in _judged(planned, outputs):
            answer = o.answer.spread if isinstance(o.answer, Root) else o.answer
            found.setdefault(o.name, []).append(float(answer.std(noisy, laws)[0]))  # type: ignore[arg-type]
    if planned.threshold is not None and before.threshold is None:
        found[""] = [planned.threshold.size] * 2
    return {name: tuple(x) for name, x in found.items()}


def _judged(planned: Draft, outputs: Sequence[Output]) -> list[Output]:
    """The outputs that are looked at: one of the components of a vector, which are alike."""
    vectors = {o.part: o for o in reversed(outputs) if planned.parts[o.part].layout.kind == "vector"}
    return [o for o in outputs if vectors.get(o.part, o) is o]


def _integers(piece: Piece | ChoicePiece, exact: Counts) -> Ints:
    if isinstance(piece, ChoicePiece) or isinstance(piece.coordinate, BinCounts):
        return np.zeros(1, dtype=np.int64)
    return piece.exact(exact)


def _made_up(measures: Sequence[Measure], share: float, row_steps: int) -> Counts:
    """A group, counted in row steps, in which columns are spread evenly about the middle of their bounds (share 1/2), or lie at the upper one."""
    rows = ROWS * row_steps
    n = np.array([rows], dtype=np.int64)

    def total(m: Measure, product: tuple[int, ...]) -> Ints:
        steps = [m.axes[i].steps for i in product]
        part = 1 if share == 1 else 3 if len(product) > len(set(product)) else 2 ** len(product)
        return np.array([math.prod(steps) * rows // part], dtype=np.int64)

    sums = tuple(tuple(total(m, p) for p in m.products) for m in measures)
    return Counts(n, tuple(n for _ in measures), sums, units=n)
