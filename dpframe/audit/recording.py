"""Releases whose noise and choosers remember what they were handed.

How it looks inside: a plan's pieces carry their noise (a choice: its chooser), and the pipeline hands every exact
integer to that. The auditor's accessor puts a recording one around each before it releases. So the path of a release
has no hook, no switch and no observer that an accident could turn on: :mod:`dpframe.pipeline` runs
unchanged, and only a plan that this module made has a noise that remembers.

Privacy: a recorder sees exact values, as anybody in the process can who holds the frame; see :mod:`dpframe.audit.greybox`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import attrgetter
from typing import Any, cast

import numpy as np

from dpframe.api.bound_plan import BoundPlan
from dpframe.api.namespaces import FrameDP
from dpframe.engine.opening import as_source
from dpframe.errors import InputError
from dpframe.frames.contract import Ask, Counts, Source
from dpframe.mechanisms.base import Ints, Noise
from dpframe.mechanisms.choosers import Chooser
from dpframe.mechanisms.joint import Share
from dpframe.mechanisms.ranks import Quantiles
from dpframe.planning.pieces import Piece
from dpframe.planning.plan import Plan, details
from dpframe.release.release import Release
from dpframe.session.current import outside
from dpframe.session.session import Session

Query = Callable[[Any], Any]
Scored = tuple[tuple[int, ...], tuple[int, ...]]  # occupied places of a group, and their rows (or sums)


def alone() -> None:
    """Refuse to audit while a session is in use: its account is for releases."""
    if outside():
        raise InputError(
            "An audit has a budget of its own and belongs to no account; a session is in use here.",
            hint="leave it first, or s.close()",
        )


def auditors_session(**session: Any) -> Session:
    """A session that never runs dry."""
    return Session(eps=10**12, delta=Fraction(1, 2), **session)


@dataclass(eq=False)
class Asked:
    """One release: its plan, and what reached its mechanism."""

    plan: Plan
    exact: dict[int, list[int]] = field(default_factory=dict, repr=False)  # by the place of the piece
    scores: dict[int, list[Scored]] = field(default_factory=dict, repr=False)  # of choices, by group
    calls: list[tuple[str, int]] = field(default_factory=list)
    found: list[tuple[Any, ...]] | None = field(default=None, repr=False)

    @property
    def integers(self) -> list[Any]:
        """All that reached the mechanism, in order."""
        return [*self.exact.items(), *self.scores.items()]

    def differences(self, other: Asked) -> dict[int, list[int]]:
        """Per piece the other's integers less these, group by group; a group that one lacks counts as 0 there."""
        out = {}
        for i in self.exact:
            a, b = self._groups(i), other._groups(i)
            wide = max((len(v) for v in (*a.values(), *b.values())), default=0)
            none = [0] * wide
            out[i] = [y - x for k in {**a, **b} for x, y in zip(a.get(k, none), b.get(k, none))]
        return out

    def _groups(self, piece: int) -> dict[Any, list[int]]:
        """The integers of each found group; all of them under one name where the groups are listed."""
        exact = self.exact[piece]
        if self.found is None:
            return {None: exact}
        wide = len(exact) // max(1, len(self.found))  # several bins of every group
        return {k: exact[i * wide : (i + 1) * wide] for i, k in enumerate(self.found)}

    def shifts(self, other: Asked) -> dict[int, list[list[tuple[Fraction, Fraction]]]]:
        """Per choice and listed group: how far utilities moved, lowest and highest, for every rank that is asked."""
        if self.found is not None or other.found is not None:
            return {}
        return {
            i: [shifts(self.chooser(i), a, b) for a, b in zip(self.scores[i], other.scores[i])]
            for i in self.scores
        }

    def chooser(self, piece: int) -> Chooser:
        """What chose: the plan's own, which remembers nothing."""
        noise = self.plan.pieces[piece].noise
        assert isinstance(noise, Chooser)
        return noise


def shifts(chooser: Chooser, a: Scored, b: Scored) -> list[tuple[Fraction, Fraction]]:
    """The lowest and the highest difference of a candidate's utility, in rows (of sums: in steps).

    Utilities of ranks change only at occupied places, so those and the places after them are looked at.
    """
    if not isinstance(chooser, Quantiles):
        before, after = dict(zip(*a)), dict(zip(*b))
        counted = range(chooser.candidates)  # type: ignore[attr-defined]
        moved = [Fraction(after.get(c, 0) - before.get(c, 0)) for c in counted]
        return [(min(moved), max(moved))]
    places = sorted({0, *(p for bins, _ in (a, b) for x in bins for p in (x, x + 1) if p <= chooser.last)})
    out = []
    for rank in chooser.ranks:
        one, two = (_of_rank(s, rank, chooser.parts, places) for s in (a, b))
        moved = [y - x for x, y in zip(one, two)]
        out.append((min(moved), max(moved)))
    return out


def _of_rank(s: Scored, rank: int, parts: int, places: list[int]) -> list[Fraction]:
    """-max(0, #(x < c) - q n, q n - #(x <= c)) of every place c, by its definition."""
    out = []
    for c in places:
        below = sum(r for x, r in zip(*s) if x < c)
        upto = sum(r for x, r in zip(*s) if x <= c)
        at = Fraction(rank * sum(s[1]), parts)
        out.append(-max(Fraction(0), below - at, at - upto))
    return out


def _of(recorded: str) -> Callable[[str], Any]:
    """Makes attributes, and methods, of what is recorded."""
    return lambda name: property(attrgetter(f"{recorded}.{name}"))


@dataclass(frozen=True)
class Recorded(Noise):
    """Another noise, and a note of what it is added to. Equal to another recording of an equal noise."""

    noise: Noise
    asked: Asked = field(compare=False, repr=False)
    piece: int = field(compare=False, repr=False)
    scale, event, std, rounding = map(_of("noise"), ("scale", "event", "std", "rounding"))
    drawn_std, mean_abs, cdf, pmf = map(_of("noise"), ("drawn_std", "mean_abs", "cdf", "pmf"))
    interval, upper_tail = map(_of("noise"), ("interval", "upper_tail"))

    def prepare(self, exact: Ints) -> Ints:
        self.asked.exact[self.piece] = [int(v) for v in exact]
        self.asked.calls.append(("prepare", len(exact)))
        return self.noise.prepare(exact)

    def sample(self, size: int) -> Ints:
        self.asked.calls.append(("sample", size))
        return self.noise.sample(size)


@dataclass(frozen=True, repr=False)
class RecordedShare(Share):
    """A share of a joint draw, and a note of what it is added to: like :class:`Recorded`, and a share still."""

    asked: Asked = field(compare=False, repr=False)
    piece: int = field(compare=False, repr=False)

    def prepare(self, exact: Ints) -> Ints:
        self.asked.exact[self.piece] = [int(v) for v in exact]
        self.asked.calls.append(("prepare", len(exact)))
        return exact

    def of(self, drawn: Ints) -> Ints:
        self.asked.calls.append(("share", drawn.shape[1]))
        return super().of(drawn)


@dataclass(frozen=True)
class RecordedChooser(Chooser):
    """Another chooser, and a note of what it chooses by, group after group."""

    chooser: Chooser
    asked: Asked = field(compare=False, repr=False)
    piece: int = field(compare=False, repr=False)
    mechanism, width, event = map(_of("chooser"), ("mechanism", "width", "event"))
    sensitivity, scale, error = map(_of("chooser"), ("sensitivity", "scale", "error"))

    def choose(self, bins: Ints, rows: Ints) -> list[int]:
        noted = (tuple(np.asarray(bins).tolist()), tuple(np.asarray(rows).tolist()))
        self.asked.scores.setdefault(self.piece, []).append(noted)
        self.asked.calls.append(("choose", self.width))
        return self.chooser.choose(bins, rows)


def _recorded(noise: Noise, asked: Asked, piece: int) -> Noise:
    if not isinstance(noise, Share):
        return Recorded(noise, asked, piece)
    return RecordedShare(noise.joint, noise.number, noise.weights, noise.row, asked, piece)


class _Noted:
    """A source that notes which groups the engine found, and chooses groups of units by the audit's salt.

    One unit must change nobody else's groups whatever the salt is; with a salt of its own each frame's
    choice would be compared with another choice.
    """

    def __init__(self, source: Source, asked: Asked, salt: int) -> None:
        self._source, self._asked, self._salt = source, asked, salt

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def aggregate(self, ask: Ask) -> Counts:
        counts = self._source.aggregate(replace(ask, salt=self._salt))
        if counts.found is not None:
            self._asked.found = counts.found.rows()
        return counts

    def tally(self, ask: Ask) -> Any:
        return self._source.tally(replace(ask, salt=self._salt))


class Audited(FrameDP[Any]):
    """``.dp`` of a frame under audit: the same verbs, whose answers the auditor takes."""

    __slots__ = ()
    _owner = "the audited frame's .dp"

    @property
    def plan(self) -> Any:
        raise InputError(
            "An audit takes the answers given here.", hint="d.count(...) instead of d.plan.count(...)"
        )

    def partition_by(self, *by: Any, **options: Any) -> Any:
        raise InputError(
            "An audit can't see into parts.", hint="audit the part's question on a filtered frame"
        )


class Watched(Audited):
    """Releases go through recording noise."""

    __slots__ = ("_log", "_salt")

    def __init__(self, source: Source, log: list[Asked], salt: int) -> None:
        super().__init__(source)
        self._log, self._salt = log, salt

    def _finish(self, bound: BoundPlan) -> Any:
        asked = Asked(bound.plan)
        self._log.append(asked)
        pieces: tuple[Any, ...] = tuple(
            replace(p, noise=_recorded(p.noise, asked, i))
            if isinstance(p, Piece)
            else replace(p, noise=RecordedChooser(p.noise, asked, i))
            for i, p in enumerate(bound.plan.pieces)
        )
        source = cast(Source, _Noted(bound._source, asked, self._salt))
        watched = BoundPlan(
            replace(bound.plan, pieces=pieces),
            source,
            bound._session,
            bound._label,
            bound._ci,
            bound._rows,
            bound._request_id,
        )
        return watched.release().value


@dataclass(eq=False)
class Observed:
    """All that may be seen of a query on one frame, and what reached the mechanism."""

    asked: list[Asked]
    schema: list[Any] = field(default_factory=list)
    order: list[Any] = field(default_factory=list)
    rows: list[Any] = field(default_factory=list)
    warnings: list[tuple[str, str]] = field(default_factory=list)
    error: tuple[str, str] | None = None


def observe(query: Query, frame: Any, salt: int, **session: Any) -> Observed:
    """Run a query in a session of the auditor's, and note everything."""
    alone()
    return Context().run(_observe, query, frame, salt, session)


def _observe(query: Query, frame: Any, salt: int, options: dict[str, Any]) -> Observed:
    seen = Observed([])
    with warnings.catch_warnings(record=True) as said, auditors_session(**options) as s:
        warnings.simplefilter("always")
        try:
            value = query(Watched(as_source(frame), seen.asked, salt))
        except Exception as e:  # whatever it is: it must be the same on both frames
            seen.error = (type(e).__name__, str(e))
        else:
            seen.schema.append(type(value).__name__)
            if s.report().height > len(seen.asked):
                raise InputError(
                    "The query released something past the accessor.", hint="use its argument only"
                )
        for r in s.releases:
            _look(r, seen)
        seen.rows = [s.report().drop("time").rows(), [details(a.plan) for a in seen.asked]]
    seen.warnings = sorted((type(w.message).__name__, str(w.message)) for w in said)
    return seen


def _look(r: Release, seen: Observed) -> None:
    value, listed = r.value, r.plan.threshold is None and r.plan.selection is None
    drawn = not all(isinstance(p, Piece) for p in r.plan.pieces)  # a choice may be a row of the table
    facts = {k: v for k, v in r.facts.items() if k != "time"}
    table = (
        [list(map(str, value.columns)), list(map(str, value.dtypes))] if hasattr(value, "columns") else None
    )
    seen.schema.append((type(value).__name__, table, facts, value.shape if listed and table else None))
    fixed = listed and not drawn
    seen.order.append([[str(k) for k in c] for c in r._keys.columns.values()] if fixed else None)
