"""The queries of a budget plan on their sources: bound to the session that pays, at a given amount."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from dpframe.accounting.policy import Policy
from dpframe.api.bound_plan import BoundPlan
from dpframe.api.namespaces import FramePlans
from dpframe.base.forks import check_fork
from dpframe.budget_plans.query import Query, QueryError
from dpframe.budget_plans.sources import Named, SourceError, is_key_file, read_keys
from dpframe.engine.opening import as_source
from dpframe.engine.recorded import Shut
from dpframe.errors import Arg, InputError, MechanismError, show
from dpframe.frames.contract import Source
from dpframe.planning.accuracy import least_meeting
from dpframe.release.release import Release
from dpframe.session.payer import stored_answer
from dpframe.session.session import Session


class Questions:
    """The queries of a plan.

    Attributes
    ----------
    queries : dict
        By name, in order.
    requests : dict
        The name of each query's request in a ledger; empty without one.

    Privacy: what is bound here depends on typed numbers, schemas and ``releases``, which are public.
    """

    def __init__(
        self,
        session: Session,
        sources: Mapping[str, Any],
        queries: Mapping[str, Query],
        releases: Mapping[str, Release],
        place: Callable[[str], str],
        requests: Mapping[str, str],
    ) -> None:
        self._session, self.queries, self._releases, self._place = session, queries, releases, place
        self.requests = requests
        self._made: dict[tuple[str, Fraction], BoundPlan] = {}
        self._key_files: dict[Any, Any] = {}
        answered = {n for n, r in requests.items() if _recorded(session, r)}
        first = next(iter(sources))
        needed = {q.source or first for n, q in queries.items() if n not in answered}
        self._doors = {n: self._door(n, s, n in needed or not answered) for n, s in sources.items()}
        _check_unit(session.policy, {n: self._doors[n]._source for n in needed})

    def _door(self, name: str, given: Any, needed: bool) -> FramePlans[Any]:
        """A source, opened; one that can't be, if all that is asked of it was answered before, stays shut."""
        check_fork()
        try:
            frame = given.open(self._place) if isinstance(given, Named) else given
            return FramePlans(as_source(frame))
        except InputError as e:
            if not needed:
                return FramePlans(Shut(SourceError(name, e)))
            raise SourceError(name, e) from None

    def need(self, name: str, limit: Fraction | None) -> Fraction | None:
        """The least amount that meets a query's wanted error; the limit, if that is less."""
        wanted, rows = self.wanted(name), self.size(self.queries[name].rows)
        if wanted is None or (rows is None and self.queries[name].rows is not None):
            return None
        if limit is not None and (rows == 0 or wanted == 0):  # an answer that may be 0 promises no rows
            return limit

        def meets(amount: Fraction) -> bool:
            errors = self.bind(name, amount).plan.error(None if rows is None else float(rows))
            values = list(errors.values()) if isinstance(errors, dict) else [errors]
            if any(v is None for v in values):
                raise QueryError(
                    name,
                    Arg("error"),
                    " depends on how many rows there are: give a public guess as ",
                    Arg("rows"),
                    ", for planning only.",
                    hint=Arg("rows", 10_000),
                    about=("error",),
                )
            return bool(max(values) <= wanted)

        if limit is not None and not meets(limit):
            return limit
        try:
            return least_meeting(meets, f"error={show(wanted)}")
        except QueryError:
            raise
        except InputError as e:
            raise QueryError(name, e, about=("error",)) from None

    def wanted(self, name: str) -> Fraction | None:
        """The wanted half-width; None without one, or while it depends on an answer that is not there."""
        q = self.queries[name]
        if q.error is None or q.relative_to is None:
            return q.error
        base = self.size(q.relative_to)
        return None if base is None else q.error * base

    def size(self, value: Fraction | str | None) -> Fraction | None:
        """A guess that was typed, or the end nearest to zero of a released interval."""
        if not isinstance(value, str):
            return value
        if value not in self._releases:
            return None
        low, high = self._releases[value].interval(0.95)
        return Fraction(0) if low <= 0 <= high else Fraction(min(abs(low), abs(high)))

    def bind(self, name: str, amount: Fraction) -> BoundPlan:
        if (name, amount) not in self._made:
            self._made[name, amount] = self._bound(name, amount)
        return self._made[name, amount]

    def _bound(self, name: str, amount: Fraction) -> BoundPlan:
        q = self.queries[name]
        door = self._doors[q.source or next(iter(self._doors))]
        options: dict[str, Any] = {
            **q.options,
            "session": self._session,
            "label": name,
            "request_id": self.requests.get(name),
            "rho" if self._session.budget.eps is None else "eps": amount,
        }
        try:
            if q.scalar:
                made: BoundPlan = door._ask(q.statistics, options, scalar=True)
                return made
            if not q.groupby:
                return door.agg(*q.statistics, **options)
            groups = door.groupby(*q.groupby, keys=self._keys(q, door))
            return groups.agg(*q.statistics, **options) if q.statistics else groups.keys(**options)
        except (InputError, MechanismError, TypeError) as e:
            raise QueryError(name, e) from None

    def _keys(self, q: Query, door: FramePlans[Any]) -> Any:
        if not is_key_file(q.keys):
            return q.keys
        which = (q.source, q.groupby, q.keys)
        if which not in self._key_files:
            columns = [door._source.column(b) for b in q.groupby]
            self._key_files[which] = read_keys(self._place(q.keys), columns)
        return self._key_files[which]


def _recorded(session: Session, request: str) -> bool:
    """Whether a request has an answer that can be given again without its source."""
    kept = stored_answer(session, request)
    return kept is not None and kept.columns is not None


def _check_unit(policy: Policy, sources: Mapping[str, Source]) -> None:
    """Raise InputError unless every source has the unit's columns."""
    for u in policy.unit or ():
        for n, source in sources.items():
            try:
                source.column(u)
            except InputError as e:
                raise InputError(Arg("unit", u), f": source {n!r}: ", e) from None
