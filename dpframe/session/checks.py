"""Strict sessions: lazy frames whose plan does anything but handle every row by itself are refused.

Privacy: the guarantee is about the rows that reach ``.dp``. If a step before it lets one row change others (a
mean over a window, a join that repeats rows, a rank), one person's data may move more than the one row that is
counted. What is not known to be row by row is refused: :mod:`dpframe.engine.polars_plan` says what passes.
"""

from __future__ import annotations

from dpframe.errors import InputError
from dpframe.frames.contract import Source
from dpframe.session.session import Session

_ROW_BY_ROW = (
    "leave the step out, or do it row by row; what other rows say must not decide about a row (a group_by, an over or a"
    " join whose keys hold the unit may pass)"
)


def check_steps(session: Session, source: Source) -> None:
    """Refuse an engine that can't answer now, a lazy frame whose plan can't be done as it was typed, and, in a strict
    session, one that is not row by row.

    A session inside a strict one is strict, too.

    Raises
    ------
    InputError
        Before anything is spent. It names the step, which is the caller's own and no cell.
    """
    if source.out_of_order():
        raise InputError(
            f"{source!r} can't be asked now: its connection is closed, in a transaction that failed, or has a result that was"
            " not read to its end; or its table is gone. Nothing was spent.",
            hint="frame.limit(0) outside of dpframe says more; give dpframe a connection of its own",
        )
    wrong = source.wrong_literal()
    if wrong is not None:
        raise InputError(
            f"The lazy frame has a step that can't be done: {wrong} with a pattern, format or number that it does not take.",
            hint="frame.head(1).collect() outside of dpframe says more",
        )
    if not any(s.strict for s in (session, *session._outer)):
        return
    step = source.foreign_step(tuple(map(str, session._policy.unit or ())))
    if step is not None:
        raise InputError(
            f"This session is strict, and the lazy frame has a step that is not known to be row by row: {step}.",
            hint=_ROW_BY_ROW,
        )


def check_part(session: Session, source: Source) -> None:
    """Refuse a part's session for any frame but that part, and a part under another session.

    Privacy: a part's cap was paid for its own rows; spent on others it would be a budget nobody charged.
    """
    if (session._part or source.part_of is not None) and source.part_of is not session:
        raise InputError(
            "A part of a partition is asked with its own cap, and the cap is for it alone.", hint="part.dp"
        )


def check_windows(session: Session) -> None:
    """Refuse an answer of a part that would leave in a window that does not hold the partition's charge.

    Privacy: a window's budget is for what is released in it, and a charge that has left it is counted no more.
    """
    for ledger, ticket in session._paid:
        ledger.check_window(ticket)
