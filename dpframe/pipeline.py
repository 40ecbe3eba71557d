"""The one line that data goes down, once: charge, aggregate, add noise, release."""

from __future__ import annotations

from dpframe.errors import InputError, ReleaseFailed
from dpframe.mechanisms.base import Ints
from dpframe.plan import Plan
from dpframe.release import Release, make_release
from dpframe.schema import Counts, Source
from dpframe.session import Session, say


def run(plan: Plan, source: Source, session: Session, *, label: str | None, ci: float | None) -> Release:
    """Charge ``plan`` to ``session``, then answer it from ``source``.

    Raises
    ------
    BudgetExceeded, NoSession, InputError
        Before the charge; nothing was spent or read.
    ReleaseFailed
        The engine failed. The charge stands, and nothing it said is passed on: its words may hold cells.

    Privacy: this is the only place that sees both data and noise. The charge comes first and is never
    taken back. Exact integers live in :func:`_noisy` alone, and errors are raised outside it, so that
    no traceback reaches them.
    """
    for column in plan.columns:
        if source.column(column.name) != column:
            raise InputError(
                f"{column.name!r} is not what the plan was made for ({column.text}). Hint: plan anew."
            )
    entries = session._charge(plan, label)
    failure, noisy = "", None
    try:
        noisy = _noisy(plan, source.aggregate(plan.measures, plan.keys))
    except Exception as e:
        failure = type(e).__name__
    if noisy is None:
        raise ReleaseFailed(
            f"{plan.describe()} failed in the engine with {failure} after it was charged ({plan.cost}). The"
            " engine's words are withheld because they may quote data. Hint: check that the frame collects."
        )
    release = make_release(plan, noisy, source, label=label, ci=ci, time=entries[0].time)
    for s, entry in zip((session, *session._outer), entries):
        s._keep(entry, release)
    say(session, entries[0], source.names())
    return release


def _noisy(plan: Plan, exact: Counts) -> list[Ints]:
    """Every released integer: a*n + b*c + d*t and a draw of its own for every group.

    Privacy: sums stay below 2**62 and noise scales below 2**55, so nothing wraps; every cell, of absent
    groups too, has an independent draw.
    """
    out = []
    for p in plan.pieces:
        value = p.coordinate.a * exact.rows
        if p.measure >= 0:
            value = value + p.coordinate.b * exact.present[p.measure]
            if p.coordinate.d:
                value += p.coordinate.d * exact.steps[p.measure]
        out.append(value + p.noise.sample(len(value)))
    return out
