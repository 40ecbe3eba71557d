"""A plan with the frame it is for, and how a question and its options become one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any, Generic, cast

from dpframe import pipeline
from dpframe.accounting.events import Cost, Number, rational
from dpframe.api.options import Options, read_limits, read_target
from dpframe.base.arguments import check_flag, check_type, check_word
from dpframe.base.forks import check_fork
from dpframe.base.wrong_calls import checked
from dpframe.engine.recorded import Recorded
from dpframe.errors import Arg, InputError, MechanismError, NearNames
from dpframe.frames.contract import Source
from dpframe.mechanisms.auto import LOSSES, Loss
from dpframe.planning.accuracy import solve_error
from dpframe.planning.explain import Explanation, explain
from dpframe.planning.pieces import ChoicePiece
from dpframe.planning.plan import Plan
from dpframe.planning.planner import make_plan
from dpframe.planning.request import Request
from dpframe.release.answers import level_of
from dpframe.release.release import Release, V
from dpframe.session.forecast import forecast
from dpframe.session.payer import answer_to, current, stored_answer, terms_of
from dpframe.session.session import Session
from dpframe.statistics.base import Aggregate, post_processing
from dpframe.statistics.table import STATISTICS


class BoundPlan(NearNames, Generic[V]):
    """A plan with the frame it is for.

    Its figures are those of :class:`dpframe.Plan`; the whole of it is ``plan``. Making it costs nothing and reads
    no cell.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> plan = pl.DataFrame({"x": [1.0] * 50}).dp.plan.count(eps=0.5)
    >>> plan.eps, plan.mechanism, plan.error
    (0.5, 'laplace', 6.0)
    >>> with dp.Session(eps=0.5) as s:
    ...     r = plan.release()
    >>> s.spent == 0.5
    True
    """

    __slots__ = ("_ci", "_label", "_relative_to", "_request_id", "_rows", "_session", "_source", "plan")

    def __init__(
        self,
        plan: Plan,
        source: Source,
        session: Session | None,
        label: str | None,
        ci: float | None,
        rows: float | None,
        request_id: str | None,
        relative_to: float | None = None,
    ) -> None:
        self.plan = plan
        self._request_id, self._relative_to = request_id, relative_to
        self._source, self._session, self._label, self._ci, self._rows = source, session, label, ci, rows

    @checked(example="plan.release()")
    def release(self) -> Release[V]:
        """Charge the session, ask the frame, and return the :class:`~dpframe.Release`.

        Each call is a new charge with new noise, unless it has a ``request_id`` that was answered before.
        """
        payer = current(self._session)
        return pipeline.run(
            self.plan, self._source, payer, label=self._label, ci=self._ci, request_id=self._request_id
        )

    @checked(example="plan.explain(rows=10_000)")
    def explain(
        self, *, rows: Number | None = None, units: Number | None = None, relative_to: Number | None = None
    ) -> Explanation:
        """The plan in words: sensitivity, mechanism, eps, delta, expected error, what the session would grant.

        Parameters
        ----------
        rows : number, optional
            A public guess of the number of rows (in a group), for errors that depend on it.
        units : number, optional
            A public guess of the number of units (in a group), for the memory that bounding them takes:
            so many bytes for each pair of unit and group, on Polars more for further rows of a pair. Listed
            groups are taken for all that occur.
        relative_to : number, optional
            An expected answer; errors are then told as a fraction of it, too.

        Returns
        -------
        Explanation
            ``str`` is text, one line each; notebooks show a table. Nothing is spent and no cell is read.

        Raises
        ------
        InputError
            For ``rows``, ``units`` or ``relative_to`` that is no positive number.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"user": [1, 2], "city": ["Oslo", "Rome"]})
        >>> with dp.Session(eps=1, unit="user"):
        ...     p = df.dp.plan.groupby("city", keys=["Oslo", "Rome"]).count(max_groups=1, max_rows_per_group=1, eps=1)
        >>> [line.split(";")[1] for line in str(p.explain(units=10**7)).splitlines() if "memory" in line]
        [' 4.56 GB and further rows']
        """
        size = self._rows if rows is None else float(rational(rows, "rows"))
        many = None if units is None else float(rational(units, "units"))
        expected = self._relative_to if relative_to is None else float(rational(relative_to, "relative_to"))
        ahead = forecast(self._session, self.plan.event)
        before = None if ahead.state == "unclear" else answer_to(current(self._session), self.plan)
        return explain(self.plan, ahead, rows=size, units=many, relative_to=expected, asked_before=before)

    @property
    def cost(self) -> Cost:
        """What a release would cost (exact)."""
        return self.plan.cost

    @property
    def eps(self) -> float | None:
        """Epsilon, or None for a call with ``rho=``."""
        return self.plan.eps

    @property
    def delta(self) -> float:
        """The delta that would be charged (0 unless Gaussian noise is used)."""
        return self.plan.delta

    @property
    def rho(self) -> float:
        """The zCDP cost that would be charged."""
        return self.plan.rho

    @property
    def error(self) -> Any:
        """Expected 95 % half-width, in the answer's unit; None where it needs ``rows=``."""
        return self.plan.error(self._rows)

    @property
    def l1(self) -> Any:
        """L1 sensitivity (see :class:`~dpframe.Plan`)."""
        return self.plan.l1

    @property
    def l2(self) -> Any:
        """L2 sensitivity."""
        return self.plan.l2

    @property
    def mechanism(self) -> Any:
        """Registry name of the mechanism."""
        return self.plan.mechanism

    @property
    def scale(self) -> Any:
        """Noise scale."""
        return self.plan.scale

    def __repr__(self) -> str:
        return repr(self.plan)

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()


def bind(
    source: Source,
    aggregates: tuple[Aggregate, ...],
    by: tuple[Hashable, ...] | None,
    keys: Any,
    options: Options,
    scalar: bool,
    top: int | None = None,
) -> BoundPlan:
    """Validate options and plan; nothing is spent."""
    check_fork()
    session = options.get("session")
    label, ci = options.get("label"), options.get("ci")
    if label is not None:
        check_type("label", label, str, "a str", Arg("label", "q1"))
    request_id = options.get("request_id")
    if request_id is not None and (not isinstance(request_id, str) or not request_id):
        raise InputError(
            Arg("request_id", request_id), " must be text.", hint=Arg("request_id", "arrivals-2026-11-29")
        )
    if ci is not None:
        ci = level_of(ci, "ci")
    mechanism = options.get("mechanism")
    mechanism = "auto" if mechanism is None else mechanism
    check_type("mechanism", mechanism, str, "a registry name", "'laplace'")
    loss = options.get("loss")
    if loss is not None:
        check_word("loss", loss, LOSSES, "l1")
    if loss is not None and mechanism != "auto":
        raise InputError(
            Arg("loss"),
            " is what ",
            Arg("mechanism", "auto"),
            f" chooses by; {mechanism!r} was named.",
            hint="leave one out",
        )
    aggregates = _after(aggregates, post_processing(options.get("nonnegative"), options.get("round")))
    complete = options.get("complete_cases")
    if complete is not None:
        check_flag("complete_cases", complete)
    aggregates, target, error, rows = read_target(
        aggregates, options, unknown=by is not None and keys is None
    )
    budget, policy, defaults = terms_of(session)
    limits = read_limits(options, defaults, grouped=by is not None)
    request = Request(
        aggregates,
        target,
        mechanism,
        cast(Loss, loss or "rmse"),
        by,
        keys,
        scalar and by is None,
        limits,
        ci is not None,
        target.rho is None and not budget.delta and budget.rho is None,
        top,
        budget.rules.auto,
        bool(complete),
    )

    def planned(of: Source) -> Plan:
        if error is not None:
            return solve_error(request, of, policy, error, rows)
        return make_plan(request, of, policy)

    recorded = _recorded(session, request_id, source)
    if recorded is None:
        plan = planned(source)
    else:
        try:
            plan, source = planned(recorded), recorded
        except (InputError, MechanismError):  # the stored question could be planned of these columns
            raise InputError(
                Arg("request_id", request_id),
                " was answered to another question, of other columns. Nothing was spent.",
                hint="another request_id",
            ) from None
    if ci is not None and not (plan.outputs and _has_margin(plan)):
        raise InputError(
            Arg("ci"),
            f" asks for margins, and {plan.describe()} has none: how far it is off depends on the data.",
            hint="leave it out; plan.error is what is known",
        )
    _check_used(options, plan)
    relative = options.get("relative_to")
    expected = None if relative is None else float(rational(relative, "relative_to"))
    return BoundPlan(plan, source, session, label, ci, rows, request_id, expected)


def _recorded(session: Session | None, request_id: str | None, source: Source) -> Source | None:
    """What was recorded of the frame of a request that has an answer; None where there is none.

    The answer is then given without looking at the frame, which may be gone or have other columns by now.
    """
    kept = stored_answer(session, request_id)
    if kept is None or kept.columns is None:
        return None
    try:
        return Recorded(kept.columns, source.library, source.part_of)
    except InputError:
        return None


def _after(aggregates: tuple[Aggregate, ...], options: Mapping[str, Any]) -> tuple[Aggregate, ...]:
    """What comes after the noise, given to the questions whose functions take it; InputError where none does."""
    for name, value in options.items():
        takes = [a.verb not in STATISTICS or name in STATISTICS[a.verb].after for a in aggregates]
        if aggregates and value is not False and not any(takes):
            raise InputError(
                Arg(name, value),
                f" is about numbers that may be changed so; the answer of {aggregates[0].describe()} is left as it is.",
                hint="leave it out",
            )
        aggregates = tuple(replace(a, **{name: value}) if t else a for a, t in zip(aggregates, takes))
    return aggregates


def _check_used(options: Options, plan: Plan) -> None:
    """InputError for an option that the question would not use, though its verb takes it."""
    choice = bool(plan.pieces) and all(isinstance(p, ChoicePiece) for p in plan.pieces)
    for name, what in (("loss", "is what noise is chosen by"), ("delta", "lets Gaussian noise be used")):
        if options.get(name) and choice and plan.selection is None:
            raise InputError(
                Arg(name), f" {what}, and {plan.describe()} has a choice in its place.", hint="leave it out"
            )
    units = [q.verb in STATISTICS and STATISTICS[q.verb].of_units for q in plan.questions]
    if options.get("max_rows") is not None and units and all(units) and not plan.grouped:
        raise InputError(
            Arg("max_rows"),
            f" says for how many rows a unit counts, and in {plan.describe()} it counts once.",
            hint="leave it out",
        )
    if options.get("min_units") is not None:
        _check_counted(options, plan)
    if options.get("threshold") is not None and (plan.threshold is None or plan.bounding is None):
        why = "its groups are listed" if plan.keys is not None else "a row is the unit of this session"
        raise InputError(
            Arg("threshold"),
            f" says whether units or rows make a found group large enough; {why}.",
            hint="leave it out",
        )


def _check_counted(options: Options, plan: Plan) -> None:
    """InputError where no number of units decides which groups are told."""
    hint: Any = "leave it out"
    if plan.threshold is None:
        why = "and here they are listed: each has its row, however small it is"
        hint = "compare the counts of the answer with it, less their margin"
    elif plan.policy.contributions > 1:
        why = f"and this session protects any {plan.policy.unit_name}: there is no unit to be counted"
    elif options.get("threshold") == "rows" and plan.bounding is not None and plan.bounding.rows > 1:
        why = "and rows decide here"
        hint = ("leave ", Arg("threshold", "rows"), " out")
    else:
        return
    raise InputError(Arg("min_units"), f" says how many units a found group must have, {why}.", hint=hint)


def _has_margin(plan: Plan) -> bool:
    """Whether anything is shown at a level: an interval, or the rank of a single choice."""
    return any(o.answer.ranged for o in plan.outputs) or (
        plan.scalar and not plan.index and len(plan.outputs) == 1
    )
