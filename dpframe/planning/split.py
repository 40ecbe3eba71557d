"""The noise of sums where every part has a draw of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpframe.accounting.events import Event, compose
from dpframe.layout.answers import Linear
from dpframe.layout.layouts import Layout
from dpframe.mechanisms.auto import Asked, Choice, choose, cost
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.thresholds import Threshold
from dpframe.planning.assembly import Draft, Laid, label
from dpframe.planning.pieces import Output, Part, Piece
from dpframe.statistics.base import Aggregate

COUNTING = ("rows", "block", "present")  # layouts that hold a number of rows


def add_split(draft: Draft, group: Sequence[Aggregate], target: Target, *, thresholded: bool) -> None:
    """Size the noise of all sums of ``group``, each part's by itself; append their pieces, parts, outputs and cost.

    Parameters
    ----------
    draft : Draft
    group : aggregates that share the target
    target : Target
        What all of them together may cost.
    thresholded : bool
        Whether groups are found, and this call's noise decides which of them are released.

    Privacy.

    *What moves.* The aggregates are laid out as families, one part each (:func:`dpframe.layout.families.lay_out`):
    everything asked of one column within one pair of bounds is read from the same noisy integers, which costs
    nothing more (post-processing). A part's ``move`` says how far one protected unit moves it, in steps: R rows in
    each of L0 groups under add_remove (a row unit: 1 and 1, whatever the number of groups, which are disjoint; any k rows: k
    times as far as one, :func:`~dpframe.planning.bounding.reach_of`);
    under replace_one the old rows go and the new ones come, in place or into other groups, so up to twice as
    far, and never 0 (:mod:`dpframe.layout.sensitivity`). R, L0 are enforced by the engine inside the release.

    *How eps is split.* Divided by its own L1 (its L2), each of p parts moves by 1, the p of them together by p
    (by sqrt(p)). So Laplace noise of each part is calibrated to target/p at its own L1; that of Gaussian laws
    to the whole target at sqrt(p) times its L2. That holds for vectors by theorem for the laws that
    ``mechanisms.auto`` counts among VECTOR_LAWS. Any other law covers one coordinate: then ``moving``
    coordinates (all that one unit can move, over its groups) get target/moving each, and all of them are charged.

    *What a draw covers.* Every coordinate of every group, empty ones too, has a draw of its own; a part's noise
    covers the move of all its coordinates in all groups together.

    *What is charged.* With Laplace noise the sum of the parts' events, each a guarantee at target/p; else the worst
    event of the parts' noises, as each of them claims it for the whole vector (``mechanisms.auto.cost``). Where
    groups are found, noise with delta may use half of it, and the threshold costs the rest (:func:`threshold_split`).
    """
    laid = draft.lay_split(group, thresholded)
    choice = sized(draft, laid, target, draft.request.mechanism, thresholded=thresholded)
    event, first = cost(choice), len(draft.parts)
    append(draft, laid, choice, event, len(laid))
    numbers = {family: first + i for i, (_, _, family) in enumerate(laid)}
    draft.answer(group, numbers)
    layouts = [layout for layout, _, _ in laid]
    _count_rows(draft, group, layouts, first)
    if thresholded:
        event = threshold_split(draft, group, layouts, event, target.delta)
    draft.events.append(event)


def sized(draft: Draft, laid: Sequence[Laid], target: Target, law: str, *, thresholded: bool) -> Choice:
    """The noise of parts that have ``target`` together."""
    layouts = [layout for layout, _, _ in laid]
    law = draft.request.auto if law == "auto" else law
    asked = Asked(
        tuple(map(draft.sensitivity, layouts)),
        tuple(x.move.furthest(draft.reach) for x in layouts),
        draft.moving(layouts),
        noise_target(target, thresholded=thresholded),
        thresholded,
    )
    return choose(law, asked, draft.request.loss)


def noise_target(target: Target, *, thresholded: bool) -> Target:
    """What of ``target`` is for noise: beside a threshold half of delta, and none where rho is what is paid."""
    delta = Fraction(0) if target.rho is not None else target.delta / 2 if thresholded else target.delta
    return replace(target, delta=delta)


def append(draft: Draft, laid: Sequence[Laid], choice: Choice, event: Event, fused: int) -> None:
    """Append a part, and its pieces, for each layout."""
    for (layout, measure, family), noise in zip(laid, choice.noises):
        part, (l1, l2sq) = len(draft.parts), draft.sensitivity(layout)
        draft.parts.append(
            Part(layout, label(family), l1, l2sq, choice.mechanism, fused, event, choice.runner_up)
        )
        draft.pieces += [Piece(c, measure, noise, part) for c in layout.coordinates]


def threshold_split(
    draft: Draft, group: Sequence[Aggregate], laid: list[Layout], event: Event, delta: Fraction
) -> Event:
    """Threshold the first layout that counts, and add what the keys cost.

    Privacy: a law without delta leaves all of delta to the keys, another half of it.
    """
    keys_delta = delta - event.delta
    rows = any(draft.counts_rows(a) for a in group)
    if draft.by_units:
        layout = next(x for x in laid if x.kind == "units")
        terms, row, counted = layout.rows, 1, draft.policy.unit_name
    else:
        holders = [x for x in laid if _holds_rows(draft, x)]
        layout = min(holders, key=lambda x: len(x.coordinates)) if rows else holders[0]
        terms = layout.rows if rows else layout.present
        units = any(draft.counts_rows(a) and not a.counts_rows for a in group)
        row, counted = layout.row, draft.policy.unit_name if units else "row"
    where = tuple(i for i, _ in terms)
    noise: Any = draft.pieces[where[0]].noise
    least = draft.own_keys(units=draft.by_units).least(noise, len(where), row, keys_delta)
    draft.threshold = Threshold(where, least, layout.row, counted, keys_delta, small=draft.small)
    return with_keys(event, keys_delta)


def with_keys(event: Event, delta: Fraction) -> Event:
    """What noise and the keys that a threshold lets through cost together."""
    return compose((event, Event(Fraction(0), delta, Fraction(0), kind="keys")))


def _holds_rows(draft: Draft, layout: Layout) -> bool:
    return layout.kind in COUNTING or (draft.rows_are_units and layout.kind == "units")


def _count_rows(draft: Draft, group: Sequence[Aggregate], laid: list[Layout], first: int) -> None:
    """count(): the mean of all layouts that hold the number of rows, weighted by 1/(number of noises)."""
    counts = [a for a in group if draft.counts_rows(a)]
    if not counts:
        return
    holders = [(first + i, x) for i, x in enumerate(laid) if _holds_rows(draft, x)]
    total = sum(Fraction(1, len(x.coordinates)) for _, x in holders)
    terms = tuple((i, c / len(x.coordinates) / total) for _, x in holders for i, c in x.rows)
    answer = Linear(terms, integer=True)
    draft.outputs += [Output(a.names[0], a, answer, holders[0][0]) for a in counts]
