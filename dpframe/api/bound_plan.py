"""Plans bound to a frame, and how a call's options become one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Generic, TypedDict, cast

from dpframe import pipeline
from dpframe.accounting.events import Cost, Number, rational
from dpframe.accounting.policy import Limits
from dpframe.base.calls import checked
from dpframe.errors import InputError, NearNames, typed
from dpframe.frames.contract import Source
from dpframe.mechanisms.auto import LOSSES, Loss
from dpframe.mechanisms.base import Target
from dpframe.planning.explain import Explanation, explain
from dpframe.planning.plan import Plan, Request
from dpframe.planning.planner import make_plan, own_epsilons, solve_error
from dpframe.release.release import Release, V, _level
from dpframe.session.forecast import forecast
from dpframe.session.session import Session, budget_of, current, policy_of
from dpframe.statistics import base as stats


class Options(TypedDict, total=False):
    """What every verb takes beside its question.

    Attributes
    ----------
    eps : number, or dict of output name -> number
        Epsilon of the call. Exactly one of ``eps``, ``rho`` and ``error`` is given.
    delta : number
        Beside ``eps``: lets Gaussian noise be used; charged only if it is.
    rho : number
        zCDP cost of the call.
    error : number
        The wanted half-width of the 95 % interval, in the answer's unit; eps follows.
    rows : number
        Beside ``error``: a public guess of the number of rows, where the error depends on it.
    relative_to : number
        Makes ``error`` a fraction of this expected answer.
    mechanism : str
        A registry name, or "auto" (default): the least noise for the guarantee; of two laws within 2 %
        the simpler one, so that delta is left alone unless it gains more.
    loss : {"rmse", "l1"}
        What "auto" makes least: the root mean square error (default) or the mean absolute error.
    session : Session
        Pays instead of the current session.
    max_groups, max_rows_per_group, max_rows : int
        In a session with a unit: in how many groups a unit may count, for how many rows in each; for
        how many rows without groups. The noise grows with them; who has more is scaled down.
    threshold : {"units", "rows"}
        With unknown keys and a unit: what decides whether a group is large enough (default units).
    request_id : str
        In a session on a ledger: names the request for good. Asked again, it returns the stored answer and
        costs nothing.
    label : str
        Names the answer: ``s["label"]``, the first of that name.
    ci : float
        Adds ``<output>_moe`` columns: half-widths at this level. On scalars, the level that ``repr`` shows.
    nonnegative : bool
        Raise negative answers to zero, after the noise.
    round : int
        Round answers to this many decimals, after the noise.
    """

    eps: Number | Mapping[str, Number] | None
    delta: Number | None
    rho: Number | None
    error: float | None
    rows: float | None
    relative_to: float | None
    mechanism: str
    loss: str | None
    session: Session | None
    request_id: str | None
    max_groups: int | None
    max_rows_per_group: int | None
    max_rows: int | None
    threshold: str | None
    label: str | None
    ci: float | None
    nonnegative: bool
    round: int | None


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
        before = None if ahead.state == "unclear" else current(self._session)._answer_to(self.plan)
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


def question(a: Any, name: str | None) -> stats.Aggregate:
    if not isinstance(a, stats.Aggregate):
        where = f"{name}=" if name else "agg: "
        raise TypeError(
            f"{where}{type(a).__name__} is not a question that dpframe can make private."
            " Hint: dp_agg(n=dp.count(), mean=dp.clip_mean('x', bounds=(0, 100)), eps=0.5)"
        )
    return a if name is None else a.alias(name)


def bind(
    source: Source,
    aggregates: tuple[stats.Aggregate, ...],
    by: tuple[Hashable, ...] | None,
    keys: Any,
    options: Options,
    scalar: bool,
    top: int | None = None,
) -> BoundPlan:
    """Validate options and plan; nothing is spent."""
    session = options.get("session")
    if session is not None:
        current(session)
    label, ci = options.get("label"), options.get("ci")
    if label is not None and not isinstance(label, str):
        raise TypeError(f"label= takes a str, not a {type(label).__name__}. Hint: label='q1'")
    request_id = options.get("request_id")
    if request_id is not None and (not isinstance(request_id, str) or not request_id):
        raise InputError(
            f"request_id={typed(request_id)} must be text. Hint: request_id='arrivals-2026-11-29'"
        )
    if ci is not None:
        ci = _level(ci, "ci")
    mechanism = options.get("mechanism")
    mechanism = "auto" if mechanism is None else mechanism
    if not isinstance(mechanism, str):
        raise TypeError(
            f"mechanism= takes a registry name, not a {type(mechanism).__name__}. Hint: 'laplace'"
        )
    loss = options.get("loss")
    if loss is not None and (not isinstance(loss, str) or loss not in LOSSES):
        raise InputError(f"loss={typed(loss)} must be 'rmse' or 'l1'. Hint: loss='l1'")
    if loss is not None and mechanism != "auto":
        raise InputError(
            f"loss= is what mechanism='auto' chooses by; {mechanism!r} was named. Hint: leave one out"
        )
    after = stats.post_processing(options.get("nonnegative"), options.get("round"))
    if after:
        aggregates = tuple(replace(a, **after) for a in aggregates)
    aggregates, target, error, rows = _target(aggregates, options, unknown=by is not None and keys is None)
    budget, (policy, defaults) = budget_of(session), policy_of(session)
    limits = _limits(options, defaults, grouped=by is not None)
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
    )
    if error is not None:
        plan = solve_error(request, source, policy, error, rows)
    else:
        plan = make_plan(request, source, policy)
    relative = options.get("relative_to")
    expected = None if relative is None else float(rational(relative, "relative_to"))
    return BoundPlan(plan, source, session, label, ci, rows, request_id, expected)


def _limits(options: Options, defaults: Limits, *, grouped: bool) -> Limits:
    """The call's limits over the session's; those that don't fit the call are refused when typed."""
    wrong = ("max_rows",) if grouped else ("max_groups", "max_rows_per_group", "threshold")
    given: Mapping[str, Any] = options
    for name in wrong:
        if given.get(name) is not None:
            hint = (
                "max_rows_per_group=" if grouped else "max_rows=" if name != "threshold" else "leave it out"
            )
            raise InputError(f"{name}= does not go with {'groups' if grouped else 'no groups'}. Hint: {hint}")
    threshold = options.get("threshold")
    if threshold is not None and (not isinstance(threshold, str) or threshold not in ("units", "rows")):
        raise InputError(f"threshold={typed(threshold)} must be 'units' or 'rows'. Hint: threshold='rows'")
    if not grouped:
        return Limits(max_rows=_either(options.get("max_rows"), defaults.max_rows))
    groups = _either(options.get("max_groups"), defaults.max_groups)
    return Limits(
        groups, _either(options.get("max_rows_per_group"), defaults.max_rows_per_group), None, threshold
    )


def _either(typed: int | None, default: int | None) -> int | None:
    return default if typed is None else typed


def _target(
    aggregates: tuple[stats.Aggregate, ...], options: Options, *, unknown: bool
) -> tuple[tuple[stats.Aggregate, ...], Target, float | None, float | None]:
    """Exactly one of eps, rho, error; the rest must go with it."""
    eps, rho, error = options.get("eps"), options.get("rho"), options.get("error")
    given = [k for k, v in (("eps", eps), ("rho", rho), ("error", error)) if v is not None]
    own = bool(aggregates) and all(a.eps is not None for a in aggregates)
    if len(given) > 1:
        raise InputError(
            f"{' and '.join(x + '=' for x in given)} were given; a call takes one of eps=, rho=, error=. Hint: eps=0.5"
        )
    if not given and not own:
        odd = next((a.column for a in aggregates if isinstance(a.column, int | float)), None)
        read = "" if odd is None else f" ({odd!r} was read as a column.)"
        raise InputError(
            f"How much may this call spend?{read} Hint: eps=0.5 (or rho=, or error= for a wanted error)"
        )
    rows, relative = options.get("rows"), options.get("relative_to")
    numbers = {"rows": rows, "relative_to": relative, "error": error}
    exact = {k: rational(v, k) for k, v in numbers.items() if v is not None}
    if "relative_to" in exact and error is None:
        raise InputError(
            "relative_to= makes error= a fraction, and there is no error=. Hint: error=0.05, relative_to=1000"
        )
    for name, value in (("eps", eps), ("rho", rho)):
        if isinstance(value, int | Fraction) and not isinstance(value, bool) and value > 10**300:
            raise InputError(f"{name}={typed(value)} is beyond what noise can be drawn for. Hint: {name}=0.5")
    delta = options.get("delta")
    d = Fraction(0) if delta is None else rational(delta, "delta", zero=True, below=1)
    if d and rho is not None and not unknown:
        raise InputError(
            "delta= does not go with rho=: Gaussian noise has a rho without any delta. Hint: leave delta out."
        )
    if isinstance(eps, Mapping):
        aggregates, eps = own_epsilons(aggregates, eps, rational), None
        target = Target(None, d)
    elif rho is not None:
        target = Target(None, d, rational(rho, "rho"))
    else:
        target = Target(None if eps is None else rational(eps, "eps"), d)
    wanted = None
    if error is not None:
        wanted = float(exact["error"] * exact.get("relative_to", Fraction(1)))
    return aggregates, target, wanted, float(exact["rows"]) if rows is not None else None
