"""The grey box: what reaches the mechanism on two neighbouring frames, compared with what the plan declares.

How it looks inside is in :mod:`dpframe.audit.recording`.

Privacy: a recorder sees exact values, as anybody in the process can who holds the frame. They are
compared and dropped here. A result holds distances and truth values, which are about the two frames: use made-up
frames, or treat results as you treat the data. Nothing is charged to a session of yours, and
nothing that was released leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpframe.audit.joint_moves import cost_of_draws
from dpframe.audit.recording import Asked, Query, alone, auditors_session, observe
from dpframe.mechanisms.choosers import Best, Chooser, Largest
from dpframe.mechanisms.joint import Share
from dpframe.mechanisms.ranks import Quantiles
from dpframe.noise.source import words
from dpframe.planning.bounding import reach_of
from dpframe.planning.pieces import Piece
from dpframe.planning.plan import Plan

Shifts = list[list[tuple[Fraction, Fraction]]]


@dataclass(frozen=True)
class Moved:
    """How far one part of a plan moved, and how far it may.

    In grid steps; of a choice, the utility that moved farthest in each group, in rows (of sums: in the answer's unit).

    Attributes
    ----------
    l1, l2_squared : int or Fraction
        Between the two frames.
    declared_l1, declared_l2_squared : int or Fraction
        What the noise is made for.
    """

    l1: int | Fraction
    l2_squared: int | Fraction
    declared_l1: int | Fraction
    declared_l2_squared: int | Fraction

    @property
    def within(self) -> bool:
        return self.l1 <= self.declared_l1 and self.l2_squared <= self.declared_l2_squared


@dataclass(frozen=True)
class GreyBox:
    """What :func:`grey_box` found: distances and truth values, no exact value.

    Attributes
    ----------
    moved : tuple of Moved
        One per part of every plan that was released.
    within : bool
        Whether every part moved within its declared L1 and L2.
    paid : bool
        Whether the noise on all that moved together costs no more than was charged (Laplace: the sum
        of distance/scale is at most eps; Gaussian: that of distance**2/(2 scale**2) at most rho; what shares a
        draw as a whole, by its own law; choices: the
        sum of rate * (highest - lowest difference of a utility) at most eps, or of its square/8 at most rho).
    same_plan, same_calls, same_schema, same_order, same_errors, same_warnings, same_row : bool
        Plans; calls of the mechanism with their sizes; types, columns, dtypes and facts; keys and their order;
        exception and its words; warnings; rows of the account and of a ledger. With unknown keys the
        calls' sizes and the keys depend on the frame and on noise, and are not compared, nor are choices.
    error : str or None
        The exception's name, if the query raised on the first frame.
    """

    moved: tuple[Moved, ...]
    within: bool
    paid: bool
    same_plan: bool
    same_calls: bool
    same_schema: bool
    same_order: bool
    same_errors: bool
    same_warnings: bool
    same_row: bool
    error: str | None

    @property
    def failures(self) -> tuple[str, ...]:
        """Names of what is not as it must be."""
        return tuple(k for k in ("within", "paid", *_SAME) if not getattr(self, k))

    @property
    def ok(self) -> bool:
        """Whether there is none."""
        return not self.failures


_SAME = (
    "same_plan",
    "same_calls",
    "same_schema",
    "same_order",
    "same_errors",
    "same_warnings",
    "same_row",
)


def grey_box(query: Query, frame: Any, neighbour: Any, **session: Any) -> GreyBox:
    """Ask two neighbouring frames, and compare everything but the noise.

    Parameters
    ----------
    query : callable
        A function of a frame accessor: ``lambda d: d.clip_sum("x", bounds=(0, 1), eps=1)``. It may ask several
        times, and raise.
    frame, neighbour : frames that have ``.dp``
        That differ by one unit, or by as many rows as are protected together, under the session's relation.
    **session
        ``neighbors=``, ``unit=``, ``contributions=``, ``max_groups=``, ``max_rows_per_group=``, ``max_rows=`` as in
        :class:`dpframe.Session`. The budget is the auditor's own.

    Returns
    -------
    GreyBox

    Raises
    ------
    InputError
        Inside a session in use (an audit is not part of anybody's account), and for queries that release past
        the accessor.

    Notes
    -----
    Privacy: results are about the frames; see the module. A released value never leaves this function.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> frame = pl.DataFrame({"x": [0.5, 7.0, None]})
    >>> found = dp.audit.grey_box(lambda d: d.clip_sum("x", bounds=(0, 4), eps=1), frame, frame[:2])
    >>> found.ok, found.moved[0].l1                       # a missing row moves a sum by nothing
    (True, 0)
    >>> found = dp.audit.grey_box(lambda d: d.count(eps=1), frame, frame[:1])
    >>> found.failures, found.moved[0].l1                 # two rows are not neighbours
    (('within', 'paid'), 2)
    """
    salt = int(words(1)[0])
    first, second = (observe(query, f, salt, **session) for f in (frame, neighbour))
    pairs = list(zip(first.asked, second.asked))
    listed = all(a.plan.threshold is None and a.plan.selection is None for a, _ in pairs)
    moved, paid = [], True
    for a, b in pairs:
        if a.plan == b.plan and a.exact.keys() == b.exact.keys():
            differences, shifts = a.differences(b), a.shifts(b)
            moved += moves(a.plan, differences, shifts)
            paid &= is_paid(a.plan, differences, shifts)
    return GreyBox(
        moved=tuple(moved),
        within=all(m.within for m in moved),
        paid=paid,
        same_plan=[a.plan for a in first.asked] == [b.plan for b in second.asked],
        same_calls=all(a.calls == b.calls if listed else len(a.calls) == len(b.calls) for a, b in pairs),
        same_schema=first.schema == second.schema,
        same_order=first.order == second.order,
        same_errors=first.error == second.error,
        same_warnings=first.warnings == second.warnings,
        same_row=first.rows == second.rows,
        error=None if first.error is None else first.error[0],
    )


# ---- comparing ----


def moves(plan: Plan, differences: dict[int, list[int]], shifts: dict[int, Shifts]) -> list[Moved]:
    """How far every part of a plan moved."""
    out = {}
    for i, groups in shifts.items():
        noise: Any = plan.pieces[i].noise
        unit = noise.step if isinstance(noise, Best) else Fraction(1)
        far = [max((max(-low, high) for low, high in ranks), default=Fraction(0)) * unit for ranks in groups]
        reach = reach_of(plan.policy, plan.bounding, plan.keys, grouped=plan.grouped)
        per_row = noise.sensitivity / reach.rows
        out[plan.pieces[i].part] = Moved(
            sum(far, Fraction(0)),
            sum((d * d for d in far), Fraction(0)),
            per_row * reach.most,
            per_row**2 * reach.squares,
        )
    for part in {plan.pieces[i].part for i in differences}:
        steps = [abs(d) for i, row in differences.items() if plan.pieces[i].part == part for d in row]
        p = plan.parts[part]
        out[part] = Moved(sum(steps), sum(d * d for d in steps), p.l1, p.l2_squared)
    return [out[part] for part in sorted(out)]


def is_paid(plan: Plan, differences: dict[int, list[int]], shifts: dict[int, Shifts]) -> bool:
    """Whether the noise that was drawn covers what moved; true for laws whose cost no sum tells."""
    if not all(_choice_is_paid(plan.pieces[i].noise, groups) for i, groups in shifts.items()):
        return False
    draws = cost_of_draws(plan, differences)
    if draws is None:
        return False
    kinds = {e.kind for e, _ in plan.event.leaves()} - {"keys"}
    laws = {i: _noise(plan, i) for i in differences}
    alone = {i: law for i, law in laws.items() if not isinstance(law, Share)}
    terms = [(Fraction(abs(d)), law.scale) for i, law in alone.items() for d in differences[i]]
    by_laplace = kinds <= {"laplace", "pure"} and all(law.event.kind == "laplace" for law in alone.values())
    if plan.event.eps is not None and by_laplace:
        return draws + sum((d / b for d, b in terms), Fraction(0)) <= plan.event.eps
    if kinds == {"gaussian"}:
        return draws + sum((d * d / (2 * b * b) for d, b in terms), Fraction(0)) <= plan.event.rho
    return True


def _noise(plan: Plan, i: int) -> Any:
    assert isinstance(plan.pieces[i], Piece)
    return plan.pieces[i].noise


def _choice_is_paid(chooser: Any, groups: Shifts) -> bool:
    """Whether a choice loses no more than its event: its log-odds move by rate * (highest - lowest difference).

    Several ranks are drawn in parts that depend on each other, which no sum over candidates tells.
    """
    if isinstance(chooser, Quantiles) and len(chooser.ranks) > 1:
        return True
    rate, event = _rate(chooser), chooser.event
    ranges = [rate * (high - low) for ((low, high),) in groups]
    if event.eps is not None:
        return bool(chooser.width * sum(ranges, Fraction(0)) <= event.eps)
    squares = sum((r * r for r in ranges), Fraction(0))
    return chooser.mechanism != "exponential" or bool(chooser.width * squares / 8 <= event.rho)


def _rate(chooser: Chooser) -> Fraction:
    if isinstance(chooser, Largest):
        return chooser.rate
    return 1 / chooser.scale


__all__ = [
    "Asked",
    "GreyBox",
    "Moved",
    "alone",
    "auditors_session",
    "grey_box",
    "is_paid",
    "moves",
    "observe",
]
