"""The grey box: what reaches the mechanism on two neighbouring frames, compared with what the plan declares.

How it looks inside: a plan's pieces carry their noise, and the pipeline hands every exact integer to
that noise. The auditor's accessor puts a recording noise around each before it releases. So the path of a release
has no hook, no switch and no observer that an accident could turn on: :mod:`dpframe.pipeline` runs
unchanged, and only a plan that this module made has a noise that remembers.

Privacy: a recorder sees exact values, as anybody in the process can who holds the frame. They are
compared and dropped here. A result holds distances and truth values, which are about the two frames: use made-up
frames, or treat results as you treat the data. Nothing is charged to a session of yours, and
nothing that was released leaves.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, cast

import numpy.typing as npt

from dpframe.api import FrameDP
from dpframe.bound import BoundPlan
from dpframe.engine.opening import as_source
from dpframe.errors import InputError
from dpframe.fingerprint import details
from dpframe.mechanisms.base import Floats, Ints, Noise
from dpframe.noise.source import words
from dpframe.plan import Piece, Plan
from dpframe.release import Release
from dpframe.schema import Counts, Source
from dpframe.session import Session, outside

Query = Callable[[Any], Any]


@dataclass(frozen=True)
class Moved:
    """How far one part of a plan moved, in grid steps, and how far it may.

    Attributes
    ----------
    l1, l2_squared : int
        Between the two frames.
    declared_l1, declared_l2_squared : int or Fraction
        What the noise is made for.
    """

    l1: int
    l2_squared: int
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
        One per part of every plan that was released. Parts that choose (quantiles, top_k, select) have no noise that
        exact integers are handed to: of those all the rest is compared, and the black box can audit them.
    within : bool
        Whether every part moved within its declared L1 and L2.
    paid : bool
        Whether the noise on all that moved together costs no more than was charged (Laplace: the sum
        of distance/scale is at most eps; Gaussian: that of distance**2/(2 scale**2) at most rho).
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
        That differ by one unit under the session's relation.
    **session
        ``neighbors=``, ``unit=``, ``max_groups=``, ``max_rows_per_group=``, ``max_rows=`` as in
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
            distances = a.distances(b)
            moved += [
                _moved(a.plan, i, distances) for i in sorted({a.plan.pieces[k].part for k in distances})
            ]
            paid &= _paid(a.plan, distances)
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


def alone() -> None:
    """Refuse to audit while a session is in use: its account is for releases."""
    if outside():
        raise InputError(
            "An audit has a budget of its own and belongs to no account; a session is in use here. Hint: leave it"
            " first, or s.close()"
        )


def auditors_session(**session: Any) -> Session:
    """A session that never runs dry."""
    return Session(eps=10**12, delta=Fraction(1, 2), **session)


# ---- recording ----


@dataclass(eq=False)
class Asked:
    """One release: its plan, and what reached its mechanism."""

    plan: Plan
    exact: dict[int, list[int]] = field(default_factory=dict, repr=False)  # by the place of the piece
    calls: list[tuple[str, int]] = field(default_factory=list)
    found: list[tuple[Any, ...]] | None = field(default=None, repr=False)

    def distances(self, other: Asked) -> dict[int, list[int]]:
        """Per piece the absolute differences, group by group; a group that one lacks counts as 0 there."""
        out = {}
        for i in self.exact:
            a, b = self._groups(i), other._groups(i)
            wide = max((len(v) for v in (*a.values(), *b.values())), default=0)
            none = [0] * wide
            out[i] = [abs(x - y) for k in {**a, **b} for x, y in zip(a.get(k, none), b.get(k, none))]
        return out

    def _groups(self, piece: int) -> dict[Any, list[int]]:
        """The integers of each found group; all of them under one name where the groups are listed."""
        exact = self.exact[piece]
        if self.found is None:
            return {None: exact}
        wide = len(exact) // max(1, len(self.found))  # several bins of every group
        return {k: exact[i * wide : (i + 1) * wide] for i, k in enumerate(self.found)}


@dataclass(frozen=True)
class Recorded(Noise):
    """Another noise, and a note of what it is added to. Equal to another recording of an equal noise."""

    noise: Noise
    asked: Asked = field(compare=False, repr=False)
    piece: int = field(compare=False, repr=False)

    @property
    def scale(self) -> Fraction:
        return self.noise.scale

    @property
    def event(self) -> Any:
        return self.noise.event

    def prepare(self, exact: Ints) -> Ints:
        self.asked.exact[self.piece] = [int(v) for v in exact]
        self.asked.calls.append(("prepare", len(exact)))
        return self.noise.prepare(exact)

    def sample(self, size: int) -> Ints:
        self.asked.calls.append(("sample", size))
        return self.noise.sample(size)

    def cdf(self, k: npt.ArrayLike) -> Floats:
        return self.noise.cdf(k)

    def pmf(self, k: npt.ArrayLike) -> Floats:
        return self.noise.pmf(k)

    @property
    def std(self) -> float:
        return self.noise.std

    @property
    def mean_abs(self) -> float:
        return self.noise.mean_abs

    def interval(self, level: float) -> int:
        return self.noise.interval(level)

    def upper_tail(self, k: int, draws: int = 1) -> float:
        return self.noise.upper_tail(k, draws)


class _Noted:
    """A source that notes which groups the engine found, and chooses groups of units by the audit's salt.

    One unit must change nobody else's groups whatever the salt is; with a salt of its own each frame's
    choice would be compared with another choice.
    """

    def __init__(self, source: Source, asked: Asked, salt: int) -> None:
        self._source, self._asked, self._salt = source, asked, salt

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def aggregate(self, measures: Any, by: Any, keys: Any, bounding: Any, salt: int) -> Counts:
        counts = self._source.aggregate(measures, by, keys, bounding, self._salt)
        if counts.found is not None:
            self._asked.found = counts.found.rows()
        return counts

    def tally(self, tallies: Any, by: Any, keys: Any, found: Any, bounding: Any, salt: int) -> Any:
        return self._source.tally(tallies, by, keys, found, bounding, self._salt)


class Watched(FrameDP):
    """``.dp`` of a frame under audit: the same verbs, releases through recording noise."""

    __slots__ = ("_log", "_salt")
    _owner = "the audited frame's .dp"

    def __init__(self, source: Source, log: list[Asked], salt: int) -> None:
        super().__init__(source)
        self._log, self._salt = log, salt

    @property
    def plan(self) -> Any:
        raise InputError(
            "An audit records what is released here. Hint: d.count(...) instead of d.plan.count(...)"
        )

    def partition_by(self, *by: Any, **options: Any) -> Any:
        raise InputError("An audit can't see into parts. Hint: audit the part's question on a filtered frame")

    def _finish(self, bound: BoundPlan) -> Any:
        asked = Asked(bound.plan)
        self._log.append(asked)
        pieces = tuple(
            replace(p, noise=Recorded(p.noise, asked, i)) if isinstance(p, Piece) else p
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
            if s._charges > len(seen.asked):
                raise InputError(
                    "The query released something past the accessor. Hint: use its argument only"
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


# ---- comparing ----


def _moved(plan: Plan, part: int, distances: dict[int, list[int]]) -> Moved:
    steps = [d for i, row in distances.items() if plan.pieces[i].part == part for d in row]
    declared = plan.parts[part]
    return Moved(sum(steps), sum(d * d for d in steps), declared.l1, declared.l2_squared)


def _paid(plan: Plan, distances: dict[int, list[int]]) -> bool:
    """Whether the noise that was drawn covers what moved; true for laws whose cost no sum tells."""
    kinds = {e.kind for e, _ in plan.event.leaves()} - {"keys"}
    terms = [(Fraction(d), plan.pieces[i].noise.scale) for i, row in distances.items() for d in row]
    if kinds == {"laplace"} and plan.event.eps is not None:
        return sum((d / b for d, b in terms), Fraction(0)) <= plan.event.eps
    if kinds == {"gaussian"}:
        return sum((d * d / (2 * b * b) for d, b in terms), Fraction(0)) <= plan.event.rho
    return True
