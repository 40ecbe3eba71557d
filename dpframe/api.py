"""The namespaces: ``df.dp``, ``df.dp.plan``, ``df.dp.groupby(...)``, ``dp.frame(df)``. Stateless and thin."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, Unpack

from dpframe import pipeline, stats
from dpframe.budget import Cost, Number, rational
from dpframe.calls import MEANT_VERBS, checked, not_a_question, unknown_verb
from dpframe.engine.polars import as_source
from dpframe.errors import InputError, show, typed
from dpframe.explain import Explanation, explain
from dpframe.mechanisms.base import Target
from dpframe.plan import Limits, Plan, Request, make_plan, own_epsilons, solve_error
from dpframe.release import Release, _level
from dpframe.schema import Source
from dpframe.session import Session, current, policy_of

if TYPE_CHECKING:
    from dpframe.partition import Partition

R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


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
        A registry name, or "auto" (default): the least noise for the guarantee.
    session : Session
        Pays instead of the current session.
    max_groups, max_rows_per_group, max_rows : int
        In a session with a unit: in how many groups a unit may count, for how many rows in each; for
        how many rows without groups. The noise grows with them; who has more is scaled down.
    threshold : {"units", "rows"}
        With unknown keys and a unit: what decides whether a group is large enough (default units).
    label : str
        Names the answer: ``s["label"]``.
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
    session: Session | None
    max_groups: int | None
    max_rows_per_group: int | None
    max_rows: int | None
    threshold: str | None
    label: str | None
    ci: float | None
    nonnegative: bool
    round: int | None


_OPTIONS = tuple(Options.__annotations__)
verb = checked(_OPTIONS)


class Verbs(Generic[R]):
    """The questions one can ask; what comes back is decided by the subclass."""

    __slots__ = ("_by", "_defaults", "_keys", "_source")
    _owner = "df.dp"

    def __init__(
        self,
        source: Source,
        by: tuple[Hashable, ...] | None = None,
        keys: Any = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self._source, self._by, self._keys = source, by, keys
        self._defaults = {k: v for k, v in (defaults or {}).items() if v is not None}

    def _finish(self, bound: BoundPlan) -> R:
        raise NotImplementedError

    @verb
    def count(self, column: Hashable | None = None, **options: Unpack[Options]) -> R:
        """Count rows, or the rows in which ``column`` is not missing.

        Parameters
        ----------
        column : hashable, optional
            None counts rows; a name counts its non-missing cells (null and NaN are missing).
        **options
            See :class:`Options`: one of ``eps``, ``rho``, ``error``; and ``delta``, ``mechanism``,
            ``session``, ``label``, ``ci``, ``nonnegative``, ``round``.

        Returns
        -------
        int (ungrouped), or a frame with keys and ``count``

        Raises
        ------
        InputError, MechanismError
            Wrong parameters; nothing was spent.
        BudgetExceeded, NoSession
            The session did not pay; no data was read.

        Notes
        -----
        Privacy: (eps, delta)-DP per protected unit under the session's relation; sensitivity 1
        (grouped under replace_one: L1 2, L2 sqrt 2). Source: Dwork et al. 2006; the law is the
        mechanism's.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"x": [1.0, None, 3.0]})
        >>> with dp.Session(eps=100):
        ...     n = df.dp.count(eps=50)
        >>> int(n)
        3
        """
        return self._ask((stats.count(column),), options, scalar=True)

    @verb
    def clip_sum(
        self,
        column: Hashable,
        *,
        bounds: tuple[Number, Number] | None = None,
        B: Number | None = None,
        **options: Unpack[Options],
    ) -> R:
        """Sum a column's values, each clipped to public bounds.

        Parameters
        ----------
        column : hashable
            Boolean, integer, float or Decimal. Missing cells add nothing; infinities are clipped.
        bounds : (low, high)
            In the column's unit; from knowledge, never from the frame. Boolean columns need none.
        B : number
            Short for ``bounds=(-B, B)``, for signed columns.
        **options
            See :class:`Options`.

        Returns
        -------
        int or float (ungrouped), or a frame with keys and ``<column>_sum``
            Int64 for integer and Boolean columns with integer bounds at most 2**30 apart, else Float64.

        Raises
        ------
        InputError, MechanismError, BudgetExceeded, NoSession
            As for ``count``.

        Notes
        -----
        Privacy: (eps, delta)-DP per protected unit. One row moves the sum by at most
        max(\\|low\\|, \\|high\\|); under replace_one by max(high, 0) - min(low, 0).

        Examples
        --------
        >>> import dpframe as dp, pandas as pd
        >>> df = pd.DataFrame({"minutes": [10, 500, None]})
        >>> with dp.Session(eps=1e6):
        ...     total = df.dp.clip_sum("minutes", bounds=(0, 60), eps=1e6)
        >>> round(total)
        70
        """
        return self._ask((stats.clip_sum(column, bounds=bounds, B=B),), options, scalar=True)

    @verb
    def clip_mean(
        self,
        column: Hashable,
        *,
        bounds: tuple[Number, Number] | None = None,
        B: Number | None = None,
        n: int | None = None,
        **options: Unpack[Options],
    ) -> R:
        """Average a column's non-missing values, each clipped to public bounds.

        Parameters
        ----------
        column, bounds, B
            As in ``clip_sum``.
        n : int, optional
            The number of values, if it is public: typed, never read from the frame.
        **options
            See :class:`Options`. With ``error=``, ``rows=`` is a public guess of the number of rows.

        Returns
        -------
        float within the bounds (ungrouped), or a frame with keys and ``<column>_mean``
            The mean of nothing is the midpoint of the bounds (plus noise).

        Raises
        ------
        InputError, MechanismError, BudgetExceeded, NoSession
            As for ``count``.

        Notes
        -----
        Privacy: (eps, delta)-DP per protected unit; the true number of rows is never used, nor needed.
        The 95 % error is at most 3 (high - low)/(eps * rows) with Laplace noise.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"age": [20.0, 30.0, 40.0]})
        >>> with dp.Session(eps=1e6):
        ...     mean = df.dp.clip_mean("age", bounds=(0, 100), eps=1e6)
        >>> round(mean, 2)
        30.0
        """
        return self._ask((stats.clip_mean(column, bounds=bounds, B=B, n=n),), options, scalar=True)

    def agg(self, *aggregates: stats.Aggregate, **named: Any) -> R:
        """Ask several questions at once; those of one column share one epsilon.

        Parameters
        ----------
        *aggregates, **named : Aggregate
            ``n=dp.count()``, or positionally ``dp.count().alias("n")``. Names of options are not names of outputs.
        **options
            See :class:`Options`. ``eps={"n": .2, "income": .8}`` gives every output its own.

        Returns
        -------
        frame of the caller's library
            One row (ungrouped) or one row per listed key, in the order of ``keys``.

        Notes
        -----
        Privacy: (eps, delta)-DP per protected unit for the whole table. All questions about one column
        and its bounds are one simplex block; blocks share the budget equally.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"g": ["a", "a", "b"], "x": [1.0, 2.0, 3.0]})
        >>> with dp.Session(eps=1e6):
        ...     t = df.dp.groupby("g", keys=["a", "b"]).dp_agg(
        ...         n=dp.count(), x=dp.clip_mean("x", bounds=(0, 10)), eps=1e6, round=3)
        >>> t["n"].to_list(), t["x"].to_list()
        ([2, 1], [1.5, 3.0])
        """
        options = {k: named.pop(k) for k in _OPTIONS if k in named}
        for name, value in options.items():
            if isinstance(value, stats.Aggregate):
                raise TypeError(
                    f"{name}= is an option of agg, not an output. Hint: n_{name}=dp.{value.verb}(...)"
                )
        asked = []
        for a in aggregates:
            asked.append(_aggregate(a, None))
        for name, a in named.items():
            if a is None or isinstance(a, int | float | str | Mapping):
                raise not_a_question(name, a, _OPTIONS)
            asked.append(_aggregate(a, name))
        if not asked:
            raise TypeError("agg needs at least one question. Hint: agg(n=dp.count(), eps=0.5)")
        return self._ask(tuple(asked), options, scalar=False)

    dp_agg = agg

    def _ask(self, aggregates: tuple[stats.Aggregate, ...], options: Any, *, scalar: bool) -> R:
        options = {**self._defaults, **options}
        return self._finish(_bind(self._source, aggregates, self._by, self._keys, options, scalar))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise unknown_verb(self._owner, name, [x for x in dir(type(self)) if not x.startswith("_")])

    def __repr__(self) -> str:
        verbs = ", ".join(x for x in dir(type(self)) if not x.startswith("_"))
        return f"<{self._owner} of {self._source!r}: {verbs}>"


class Grouped(Verbs[R]):
    """Groups of a frame: the same questions, one row of answers per group."""

    __slots__ = ("_then",)
    _owner = "df.dp.groupby(...)"

    def __init__(
        self,
        source: Source,
        by: tuple[Hashable, ...],
        keys: Any,
        defaults: Mapping[str, Any],
        then: Callable[[BoundPlan], R],
    ) -> None:
        super().__init__(source, by, keys, defaults)
        self._then = then

    def _finish(self, bound: BoundPlan) -> R:
        return self._then(bound)

    def __getitem__(self, column: Any) -> Any:
        raise TypeError(
            f"groupby(...)[...] is not how private questions are asked. Hint: groupby(...).clip_mean({column!r},"
            " bounds=(0, 100), eps=0.5)"
        )

    @verb
    def keys(self, **options: Unpack[Options]) -> R:
        """Release which groups occur, and nothing about them.

        Parameters
        ----------
        **options
            ``eps`` and ``delta``; with a unit ``max_groups``; ``session``, ``label``.

        Returns
        -------
        frame with the grouping columns, sorted

        Notes
        -----
        Privacy: (eps, delta)-DP per protected unit. A group of n units appears with the largest
        probability that any (eps/L0, delta')-DP rule allows (truncated geometric); one unit's key
        appears with probability at most delta.
        """
        if self._keys is not None:
            raise InputError(
                "keys() asks which groups occur, and keys= lists them already. Hint: leave keys= out."
            )
        return self._ask((), options, scalar=False)


class _FrameVerbs(Verbs[R]):
    __slots__ = ()

    @checked()
    def groupby(
        self,
        *by: Any,
        keys: Any = None,
        max_groups: int | None = None,
        max_rows_per_group: int | None = None,
    ) -> Grouped[R]:
        """Group rows by public keys, or by keys that are found at the price of delta.

        Parameters
        ----------
        *by : column names, or one list of them
        keys : list, dict of lists, range, Enum class, ``dp.public(...)`` or "declared"
            The groups to release, whether they occur or not: values for one column; tuples, or a dict
            of lists (every combination) for several. Rows of other groups are left out. Anything
            read from data must be declared with :func:`dpframe.public`. Without keys, the call needs
            ``delta=``, and groups appear if a noisy count of them reaches a threshold.
        max_groups, max_rows_per_group : int
            See :class:`Options`.

        Returns
        -------
        Grouped
            With ``count``, ``clip_sum``, ``clip_mean``, ``dp_agg`` and ``keys``.

        Notes
        -----
        Privacy: a row is in one group, so one charge covers all of them (parallel composition); under
        replace_one a row may move between two, and sensitivities double. A unit is in up to
        ``max_groups`` groups, and noise is made for all of them together.
        """
        limits = {"max_groups": max_groups, "max_rows_per_group": max_rows_per_group}
        return Grouped(self._source, _names(by), keys, {**self._defaults, **limits}, self._finish)

    group_by = groupby


def _is_name(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:  # expressions, lists and frames
        return False
    return True


def _names(by: tuple[Any, ...]) -> tuple[Hashable, ...]:
    names = tuple(by[0]) if len(by) == 1 and isinstance(by[0], list) else by
    for x in names:
        if not _is_name(x):
            raise TypeError(
                f"groupby takes column names, not a {type(x).__name__}. Hint: groupby('city', keys=[...])"
            )
    return names


class FrameDP(_FrameVerbs[Any]):
    """Private questions about one frame; answers come back at once.

    A call is ``plan.<verb>(...).release().value``.
    """

    __slots__ = ()

    @checked()
    def partition_by(
        self,
        *by: Any,
        keys: Any = None,
        eps: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        max_groups: int | None = None,
        max_rows_per_group: int | None = None,
        session: Session | None = None,
        label: str | None = None,
    ) -> Partition:
        """Divide the frame by public keys into parts that spend side by side.

        Parameters
        ----------
        *by, keys, max_groups, max_rows_per_group
            As in ``groupby``; keys are needed.
        eps, delta, rho : number
            The cap of each part. The session is charged once, now: the cap, times max_groups with a
            unit, times 2 under replace_one.

        Returns
        -------
        Partition
            A read-only mapping from key to part, in the order of ``keys``; ``parts["EWR"].dp`` has all verbs.

        Notes
        -----
        Privacy: see ``dpframe.partition``; parallel composition over disjoint parts, adaptively.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"g": ["a", "a", "b"], "x": [1.0, 2.0, 3.0]})
        >>> with dp.Session(eps=1e6) as s:
        ...     parts = df.dp.partition_by("g", keys=["a", "b"], eps=1e6)
        ...     counts = {k: int(p.dp.count(eps=1e6)) for k, p in parts.items()}
        >>> counts, float(s.spent)
        ({'a': 2, 'b': 1}, 1000000.0)
        """
        from dpframe.partition import make_partition

        return make_partition(
            self._source,
            _names(by),
            keys,
            eps=eps,
            delta=delta,
            rho=rho,
            max_groups=max_groups,
            max_rows_per_group=max_rows_per_group,
            session=session if session is not None else self._defaults.get("session"),
            label=label,
        )

    @property
    def plan(self) -> FramePlans:
        """The same verbs, returning a :class:`BoundPlan` instead of an answer. Nothing is spent."""
        return FramePlans(self._source, defaults=self._defaults)

    def _finish(self, bound: BoundPlan) -> Any:
        return bound.release().value


class FramePlans(_FrameVerbs["BoundPlan"]):
    """Questions about one frame as plans: what they would cost and how exact they would be."""

    __slots__ = ()
    _owner = "df.dp.plan"

    def _finish(self, bound: BoundPlan) -> BoundPlan:
        return bound


class BoundPlan:
    """A plan with the frame it is for.

    Attributes are those of :class:`dpframe.plan.Plan`. Making it costs nothing and reads no cell.
    """

    __slots__ = ("_ci", "_label", "_rows", "_session", "_source", "plan")

    def __init__(
        self,
        plan: Plan,
        source: Source,
        session: Session | None,
        label: str | None,
        ci: float | None,
        rows: float | None,
    ) -> None:
        self.plan = plan
        self._source, self._session, self._label, self._ci, self._rows = source, session, label, ci, rows

    def release(self) -> Release:
        """Charge the session, ask the frame, and return the :class:`~dpframe.release.Release`.

        Each call is a new charge with new noise.
        """
        return pipeline.run(self.plan, self._source, current(self._session), label=self._label, ci=self._ci)

    def explain(self) -> Explanation:
        """The plan in words: sensitivity, mechanism, eps, delta, expected error, what the session would grant."""
        return explain(self.plan, _remaining(self._session), self._rows)

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
        """L1 sensitivity (see :class:`~dpframe.plan.Plan`)."""
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
        return f"<dpframe plan: {self.plan.describe()}, {self.plan.cost}>"

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()


def _remaining(session: Session | None) -> str | None:
    try:
        s = current(session)
    except Exception:
        return "a budgeted session is open but not in use here"
    return None if s._budget.unlimited else f"would still grant eps={show(s.remaining.eps)}"


def _aggregate(a: Any, name: str | None) -> stats.Aggregate:
    if not isinstance(a, stats.Aggregate):
        where = f"{name}=" if name else "agg: "
        raise TypeError(
            f"{where}{type(a).__name__} is not a question that dpframe can make private."
            " Hint: dp.count(), dp.clip_sum(...), dp.clip_mean(...)"
        )
    return a if name is None else a.alias(name)


def _bind(
    source: Source,
    aggregates: tuple[stats.Aggregate, ...],
    by: tuple[Hashable, ...] | None,
    keys: Any,
    options: Options,
    scalar: bool,
) -> BoundPlan:
    """Validate options and plan; nothing is spent."""
    session = options.get("session")
    if session is not None:
        current(session)
    label, ci = options.get("label"), options.get("ci")
    if label is not None and not isinstance(label, str):
        raise TypeError(f"label= takes a str, not a {type(label).__name__}. Hint: label='q1'")
    if ci is not None:
        ci = _level(ci, "ci")
    mechanism = options.get("mechanism")
    mechanism = "auto" if mechanism is None else mechanism
    if not isinstance(mechanism, str):
        raise TypeError(
            f"mechanism= takes a registry name, not a {type(mechanism).__name__}. Hint: 'laplace'"
        )
    after = stats.post_processing(options.get("nonnegative"), options.get("round"))
    if after:
        aggregates = tuple(replace(a, **after) for a in aggregates)
    aggregates, target, error, rows = _target(aggregates, options, unknown=by is not None and keys is None)
    policy, defaults = policy_of(session)
    limits = _limits(options, defaults, grouped=by is not None)
    request = Request(aggregates, target, mechanism, by, keys, scalar and by is None, limits, ci is not None)
    if error is not None:
        plan = solve_error(request, source, policy, error, rows)
    else:
        plan = make_plan(request, source, policy)
    return BoundPlan(plan, source, session, label, ci, rows)


def _limits(options: Options, defaults: Limits, *, grouped: bool) -> Limits:
    """The call's limits over the session's; those that don't fit the call are refused when typed."""
    wrong = ("max_rows",) if grouped else ("max_groups", "max_rows_per_group", "threshold")
    given: Mapping[str, Any] = options
    for name in wrong:
        if given.get(name) is not None:
            hint = "max_rows_per_group=" if grouped else "max_rows="
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


def frame(obj: Any) -> FrameDP:
    """The typed door: ``dp.frame(df)`` is ``df.dp`` for pandas and Polars frames.

    Parameters
    ----------
    obj : pandas.DataFrame, polars.DataFrame or polars.LazyFrame

    Raises
    ------
    TypeError
        For a Series, an expression, or any other object.
    """
    return FrameDP(as_source(obj))


class OnlyFrames:
    """``.dp`` on a Series: explains that questions are asked of frames."""

    def __init__(self, series: Any) -> None:
        self._library = type(series).__module__.split(".")[0]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise TypeError(
            f"Private questions are asked of a frame, not of a {self._library} Series: a column has no unit and no"
            f" policy. Hint: df.dp.{MEANT_VERBS.get(name, name)}('column', ...)"
        )

    def __repr__(self) -> str:
        return "<df.dp is on frames; a Series has no private questions. Hint: df.dp.count('column', eps=0.1)>"


def register() -> None:
    """Put ``.dp`` on pandas and Polars frames (and an explanation on Series). Idempotent."""
    import warnings

    import pandas as pd
    import polars as pl

    places: list[tuple[Any, Any, Any]] = [
        (pd.DataFrame, pd.api.extensions.register_dataframe_accessor, _accessor),
        (pl.DataFrame, pl.api.register_dataframe_namespace, _accessor),
        (pl.LazyFrame, pl.api.register_lazyframe_namespace, _accessor),
        (pd.Series, pd.api.extensions.register_series_accessor, OnlyFrames),
        (pl.Series, pl.api.register_series_namespace, OnlyFrames),
    ]
    for owner, registrar, accessor in places:
        there = owner.__dict__.get("dp")
        if there is not None:
            parts = [getattr(there, name, None) for name in ("_accessor", "_ns")]
            if any(str(getattr(x, "__module__", "")).startswith("dpframe") for x in parts):
                continue
            warnings.warn(
                f"{owner.__module__}.{owner.__qualname__}.dp belongs to another library and is left alone."
                " Hint: dp.frame(df) instead of df.dp",
                stacklevel=3,
            )
            continue
        registrar("dp")(accessor)


class _Accessor(FrameDP):
    __slots__ = ()

    def __init__(self, frame: Any) -> None:
        super().__init__(as_source(frame))


_accessor = _Accessor
