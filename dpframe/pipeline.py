"""The one line that data goes down, once: charge, aggregate, add noise, release."""

from __future__ import annotations

import contextlib
import datetime as dt
import secrets
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from dpframe.base.forks import check_fork
from dpframe.base.signals import interruptible, uninterrupted
from dpframe.engine.recorded import Recorded
from dpframe.errors import DPError, InputError, LedgerError, ReleaseFailed
from dpframe.frames.contract import Counts, KeyColumns, Source
from dpframe.mechanisms.base import Ints
from dpframe.mechanisms.joint import Share
from dpframe.noise.source import words
from dpframe.planning.pieces import ChoicePiece, Piece
from dpframe.planning.plan import Plan
from dpframe.release.payload import Payload, from_bytes, to_bytes
from dpframe.release.release import Release
from dpframe.session import charging
from dpframe.session.account import Receipt
from dpframe.session.checks import check_part, check_steps, check_windows
from dpframe.session.notices import say
from dpframe.session.payer import stored_answer
from dpframe.session.session import Session


def run(
    plan: Plan,
    source: Source,
    session: Session,
    *,
    label: str | None,
    ci: float | None,
    request_id: str | None = None,
) -> Release:
    """Charge ``plan`` to ``session``, then answer it from ``source``.

    Raises
    ------
    BudgetExceeded, NoSession, InputError
        Before the charge; nothing was spent or read.
    LedgerError
        Before the charge, or when the answer could not be stored: it is then dropped, and the charge stands.
    ReleaseFailed
        The engine failed. The charge stands, and nothing it said is passed on: its words may hold cells, and which
        kind of error it raised may depend on one.

    Privacy: this file alone sees both data and noise. The charge comes first and is never taken back. Exact integers
    live in :func:`_noisy` and what it calls, until each has its draw or the selection of keys has read the sizes of
    groups; errors are raised outside it, so that no traceback reaches them, nor an answer that was dropped.
    """
    check_fork()
    for column in plan.columns:
        if source.column(column.name) != column:
            raise InputError(
                f"{column.name!r} is not what the plan was made for ({column.text}).", hint="plan anew."
            )
    if plan.keys is not None and not plan.keys.size:  # no group is asked for: nothing to read, nothing to pay
        nothing = [np.empty(0, dtype=np.int64) for _ in plan.pieces]
        return Release(
            plan,
            nothing,
            _keys(plan, source, nothing, None),
            label=label,
            ci=ci,
            time=dt.datetime.now(dt.UTC),
            draw=secrets.token_hex(16),
        )
    if stored_answer(session, request_id) is None:
        if isinstance(source, Recorded):
            raise InputError(
                "This plan was made for an answer that another ledger stored.", hint="plan anew."
            )
        source.names()  # a frame that can't be opened costs nothing; a stored answer needs none
    check_part(session, source)
    check_steps(session, source)
    check_windows(session)
    with uninterrupted():
        receipt, release = _answered(plan, source, session, label, ci, request_id)
    say(session, receipt.entries[0][1], source.names())
    return release


def _answered(
    plan: Plan, source: Source, session: Session, label: str | None, ci: float | None, request_id: str | None
) -> tuple[Receipt, Release]:
    """From the charge to the release that is kept: Ctrl-C is heard while the engine works, and nowhere else.

    Privacy: an interrupted call has paid and got nothing: what was drawn for it, if anything, is dropped unseen. Its
    receipt is kept, and the same question, asked again, is drawn anew under it: one release for one charge. An engine
    that fails (out of memory and too deep a recursion included) is told of, so its charge is over, with a ledger
    and a request_id as without: whether it fails may depend on the data, and each asking is paid.
    """
    receipt = charging.charge(session, plan.charge, label, request_id)
    failure: type[BaseException] | None = None
    noisy = keys = found = told = None
    draw = secrets.token_hex(16)
    try:
        if receipt.stored is None:
            noisy, found = _noisy(plan, _exact(plan, source, int(words(1)[0])))
            check_windows(session)
            keys = _keys(plan, source, noisy, found)
            if receipt.tickets:
                kept = Release(plan, noisy, keys, label=label, ci=ci, time=receipt.time, draw=draw)
                receipt.store(to_bytes(_payload(kept, noisy, found)))
        else:
            stored = from_bytes(receipt.stored)
            noisy, draw = stored.noisy, stored.draw
            keys = _keys(plan, source, noisy, stored.found)
    except LedgerError as e:
        failure, told = LedgerError, (e.said, e.hint)
    except BaseException as e:
        failure = type(e)
    if failure is not None:
        noisy = keys = found = (
            None  # a dropped answer: asked again, the request is drawn anew under the same charge
        )
        receipt.fail(told=told is None and not issubclass(failure, KeyboardInterrupt | SystemExit))
    if failure is not None and issubclass(failure, KeyboardInterrupt | SystemExit):
        if issubclass(failure, KeyboardInterrupt):
            charging.owe(session, plan.charge, receipt, request_id)
        raise failure()  # a fresh one: the first one's traceback reaches exact integers
    if told is not None:
        raise LedgerError(*told[0], hint=told[1])
    if noisy is None or keys is None or failure is not None:
        raise ReleaseFailed(
            f"{plan.describe()} failed in the engine after it was charged ({plan.cost}). What the engine"
            " said is withheld, its kind of error too: both may depend on a cell.",
            hint="check that the frame collects.",
        )
    release = Release(plan, noisy, keys, label=label, ci=ci, time=receipt.time, draw=draw, stored=receipt)
    receipt.keep(release)
    return receipt, release


def _payload(release: Release, noisy: list[Ints], found: pl.DataFrame | None) -> Payload:
    """What a ledger keeps of a release: enough to answer again when the frame is gone.

    Integers are kept in the order of the found keys, which the largest of some are taken from each time.
    """
    table = facts = None
    # Keys that no file can hold leave no table: the question that is asked again is answered all the same.
    with contextlib.suppress(DPError, ValueError, TypeError, OverflowError, pl.exceptions.PolarsError):
        table, facts = release.written()
    return Payload(noisy, found, release.draw, release.plan.columns, table, facts)


def _exact(plan: Plan, source: Source, salt: int) -> Counts:
    """What the engine says: one pass for all sums, one for all tallies."""
    try:
        with interruptible():
            return _passes(plan, source, salt)
    except DPError:  # of a function inside the frame's plan, say: an engine's failure like any other
        pass
    raise RuntimeError


def _passes(plan: Plan, source: Source, salt: int) -> Counts:
    if plan.summed:
        exact = source.aggregate(plan.ask(salt))
    else:
        exact = Counts(np.zeros(plan.keys.size if plan.keys else 1, dtype=np.int64), (), ())
    _check_groups(plan, exact)
    if not plan.tallies:
        return exact
    return replace(exact, tallies=source.tally(plan.ask(salt, exact.found)))


def _check_groups(plan: Plan, exact: Counts) -> None:
    """Raise unless there is one line of integers for every group, and every found group is there once.

    Privacy: a group in two lines would have two draws, and one row could move both; an engine that takes different
    keys for one on the way back would do that. Where incomplete rows are left out, noise is made for columns without
    gaps; an engine that says there is one did not leave them out.
    """
    found = exact.found
    size = found.height if found is not None else plan.keys.size if plan.keys else 1
    lines = [exact.rows, *exact.present, *(t for sums in exact.sums for t in sums)]
    lines += [x for x in (exact.units, exact.weights) if x is not None]
    if any(len(x) != size for x in lines) or (found is not None and found.is_duplicated().any()):
        raise RuntimeError("the engine's groups are not those that were asked for")
    if plan.complete and not all(np.array_equal(there, exact.rows) for there in exact.present):
        raise RuntimeError("the engine counts rows that lack a value beside complete ones")


def _keys(plan: Plan, source: Source, noisy: list[Ints], found: Any) -> KeyColumns:
    keys = source.key_columns(plan.by, plan.keys, found)
    return keys if plan.index is None else plan.index.rows(keys, source, noisy)


def _noisy(plan: Plan, exact: Counts) -> tuple[list[Ints], Any]:
    """Every released integer with a draw of its own for every group, and the keys of found groups.

    Privacy: every cell, of absent groups too, has an independent draw, or its share of its group's draw. Of groups that
    were not listed only those above the threshold (or drawn by the key selection) leave this function; nothing
    tells how many there were.
    """
    joint: dict[Hashable, Ints] = {}
    out = [_drawn(p, exact, joint) for p in plan.pieces]
    if plan.threshold is None and plan.selection is None:
        return out, None
    if plan.threshold is not None:
        keep = plan.threshold.keep(out)
    else:
        assert plan.selection is not None
        keep = plan.selection.keep(exact.rows if exact.units is None else exact.units)
    # Rebuilt from values: a filtered Arrow column keeps the bytes of the rows it left out.
    kept = exact.found.filter(pl.Series(keep))
    wide = [np.repeat(keep, len(x) // max(1, len(keep))) for x in out]  # several integers of every group
    return [x[w] for x, w in zip(out, wide)], pl.DataFrame([_rebuilt(s) for s in kept.get_columns()])


def _drawn(piece: Piece | ChoicePiece, exact: Counts, joint: dict[Hashable, Ints]) -> Ints:
    """What one piece releases, integers of the first group first. The only lines that add noise to data.

    Privacy: every integer has a draw of its own, and every choice; nothing of the exact counts decides how many
    draws there are but the number of groups, which is public or thresholded. Integers that share a draw are those whose
    law is joint: ``joint`` holds, by the number of the draw, one for each group, made when the first of them is
    released and the same for all. Two draws differ in their number, so none is used for what another was made for.
    """
    if isinstance(piece, ChoicePiece):
        chosen = [piece.noise.choose(bins, weights) for bins, weights in piece.compared(exact)]
        return np.array(chosen, dtype=np.int64).ravel()
    value, noise = piece.exact(exact), piece.noise
    if not isinstance(noise, Share):
        return noise.prepare(value) + noise.sample(len(value))
    if noise.number not in joint:
        joint[noise.number] = noise.joint.draw(len(value))
    return np.asarray(noise.prepare(value) + noise.of(joint[noise.number]))


def _rebuilt(s: pl.Series) -> pl.Series:
    physical = s.to_physical() if s.dtype.is_temporal() else s  # Python's times hold no nanoseconds
    return pl.Series(s.name, physical.to_list(), dtype=physical.dtype).cast(s.dtype)
