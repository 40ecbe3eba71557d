"""Many pairs of neighbours in one release: a table with a group for each pair, asked on both sides.

The engine, the plan and the pipeline are those of any release; only the exact integers of a group are held against
what the question alone declares. Thousands of pairs so cost what one release costs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

import dpframe as dp
from dpframe.audit import questions
from dpframe.audit.greybox import is_paid, moves
from dpframe.audit.neighbours import KEYS, Pair
from dpframe.audit.recording import Asked, Observed, auditors_session, observe
from dpframe.planning.plan import Plan

PAIR = "pair of frames"
MATRICES = ("clip_cov",)  # about a frame alone these are a matrix, in groups one number


@dataclass(frozen=True)
class Wide:
    """The same verb asked of one frame, and of a table of frames.

    Attributes
    ----------
    alone, together : callable
        Functions of an accessor.
    """

    alone: questions.Ask
    together: questions.Ask


def wide(name: str, grouped: bool, pairs: int, law: str | None = None) -> Wide:
    """A question of :mod:`dpframe.audit.questions` in both forms, its noise by ``law`` where one is named."""
    if law is not None:
        free = wide(name, grouped, pairs)
        return Wide(lambda d: free.alone(_Named(d, law)), lambda d: free.together(_Named(d, law)))
    alone = (questions.grouped if grouped else questions.ungrouped)(name)
    numbers = range(pairs)
    if name in questions.VALUES:
        listed: dict[str, Any] = {PAIR: numbers, **({"b": [True, None]} if grouped else {}), "g": KEYS}
        return Wide(alone, lambda d: d.groupby(list(listed), keys=listed).count(eps=1))
    verb: Callable[[Any, Any], Any] = {**questions.VERBS, **questions.OF_UNITS}[name]
    if not grouped:
        if name in MATRICES:
            alone = lambda d: verb(d.groupby("g", keys=["a"]), 1)  # noqa: E731
        return Wide(alone, lambda d: verb(d.groupby(PAIR, keys=numbers), 1))
    return Wide(alone, lambda d: verb(d.groupby(PAIR, "g", keys={PAIR: numbers, "g": KEYS}), 1))


def differing(
    name: str, grouped: bool, pairs: Sequence[Pair], library: str, salt: int, *, law: str | None = None
) -> int:
    """How many of the pairs move farther than is declared; all of them if anything else differs between the tables.

    Privacy: what a unit may do in a table is what it may do in its frame, as the ids of each frame's units
    are its own. What is declared is taken from the plan of the question alone, which a replaced row of an
    ungrouped question needs: in a table it could move between groups.
    """
    asked = wide(name, grouped, len(pairs), law)
    one = pairs[0]
    options = questions.session(one.relation, one.unit, one.contributions)
    limits = dict(options)
    if (
        one.unit is not None and not grouped and name not in questions.VALUES
    ):  # all rows of a unit are in one group
        limits |= {"max_groups": 1, "max_rows_per_group": options["max_rows"]}
    plan = Context().run(_plan, asked.alone, one, limits if name in MATRICES else options)
    sides = [_together([getattr(p, side) for p in pairs]) for side in ("frame", "neighbour")]
    tables = Pair("", sides[0], sides[1], one.relation, one.unit, one.contributions)
    first, second = (observe(asked.together, f, salt, **limits) for f in tables.of(library))
    if first.error or not _alike(first, second):
        return len(pairs)
    (a,), (b,) = first.asked, second.asked
    if [p.text for p in plan.pieces] != [p.text for p in a.plan.pieces] and a.exact:
        if (
            law is None
        ):  # the rule may divide a table's columns among draws otherwise than those of a frame alone
            return differing(name, grouped, pairs, library, salt, law="laplace")
        return len(pairs)
    return sum(not _within(plan, x, y) for x, y in zip(_split(a, len(pairs)), _split(b, len(pairs))))


class _Named:
    """An accessor whose verbs are told which law their noise has."""

    def __init__(self, accessor: Any, law: str) -> None:
        self._accessor, self._law = accessor, law

    def groupby(self, *by: Any, **options: Any) -> Any:
        return _Named(self._accessor.groupby(*by, **options), self._law)

    def __getattr__(self, verb: str) -> Any:
        return partial(getattr(self._accessor, verb), mechanism=self._law)


def _plan(ask: questions.Ask, pair: Pair, options: dict[str, Any]) -> Plan:
    with auditors_session(**options):
        plan: Plan = ask(dp.frame(pair.frame).plan).plan
        return plan


def _together(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """All frames under each other, numbered, with ids of units that no two frames share."""
    numbered = [f.with_columns(pl.lit(i).alias(PAIR)) for i, f in enumerate(frames)]
    return pl.concat(numbered).with_columns(u=pl.col("u") + 1000 * pl.col(PAIR))


def _alike(a: Observed, b: Observed) -> bool:
    """As in a grey box, but for the distances."""
    seen = [(o.schema, o.order, o.warnings, o.rows, [(x.plan, x.calls) for x in o.asked]) for o in (a, b)]
    return bool(seen[0] == seen[1])


def _split(asked: Asked, pairs: int) -> list[Asked]:
    """What reached the mechanism of each pair: the groups of the first come first."""
    out = [Asked(asked.plan) for _ in range(pairs)]
    for name in ("exact", "scores"):
        for piece, of_all in getattr(asked, name).items():
            wide = len(of_all) // pairs
            for i, one in enumerate(out):
                getattr(one, name)[piece] = of_all[i * wide : (i + 1) * wide]
    return out


def _within(plan: Plan, a: Asked, b: Asked) -> bool:
    """Whether a pair moved within what the question alone declares, and would be paid by its noise."""
    one, two = Asked(plan, a.exact, a.scores), Asked(plan, b.exact, b.scores)
    differences, shifts = one.differences(two), one.shifts(two)
    return all(m.within for m in moves(plan, differences, shifts)) and is_paid(plan, differences, shifts)
