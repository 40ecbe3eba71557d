"""The namespaces: ``df.dp``, ``df.dp.plan``, ``df.dp.groupby(...)``, ``dp.frame(df)``. Stateless and thin."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Unpack

from dpframe.api.asking import Asking
from dpframe.api.bound_plan import BoundPlan
from dpframe.api.options import OPTIONS, KeysOptions, Options, PartOptions
from dpframe.api.partition import Partition, make_partition
from dpframe.api.verbs import F, N, P, R
from dpframe.base.wrong_calls import checked
from dpframe.errors import Arg, Call, Code, InputError, wrong_type
from dpframe.frames.contract import Source
from dpframe.release.answers import FloatAnswer, IntAnswer, PairAnswer
from dpframe.statistics.base import one_column
from dpframe.statistics.count import count


class Grouped(Asking[R, R, R, R]):
    """Groups of a frame: the same questions, one row of answers per group."""

    __slots__ = ("_finish",)
    _owner = "df.dp.groupby(...)"

    def __init__(
        self,
        source: Source,
        by: tuple[Hashable, ...],
        keys: Any,
        defaults: Mapping[str, Any],
        finish: Callable[[BoundPlan], R],
    ) -> None:
        super().__init__(source, by, keys, defaults)
        self._finish = finish

    def value_counts(self, column: Hashable, **_: Any) -> R:
        """Refused: a value is one more grouping column."""
        return self._values(column, None, {})

    def _values(self, column: Hashable, keys: Any, options: Any, top: int | None = None) -> R:
        by = ", ".join(map(repr, (*(self._by or ()), column)))
        raise InputError(
            f"Which values of {column!r} occur in a group is a question about one more grouping column.",
            hint=Call("count", on=Call("df.dp.groupby", Code(by), keys=...), eps=0.5),
        )

    @checked(example="keys(eps=0.5, delta=1e-6)", options=KeysOptions.__annotations__)
    def keys(self, **options: Unpack[KeysOptions]) -> R:
        """Release which groups occur, and nothing about them.

        Parameters
        ----------
        **options
            ``eps`` (or ``rho``) and ``delta``; with a unit ``max_groups``; ``session``, ``request_id``, ``label``, as in
            :class:`~dpframe.typing.Options`. A unit counts once in a group, so ``groupby`` takes no limit on rows here.

        Returns
        -------
        frame with the grouping columns, sorted

        Raises
        ------
        InputError, BudgetExceeded, NoSession
            As for ``count``; when keys were listed, or rows limited; and without ``delta=``.

        Notes
        -----
        Of several rules the one that tells the smallest groups is taken, by ``max_groups``, eps and delta alone:
        ``explain()`` says which, and how large a group must be under each. For few groups a unit it is the truncated
        geometric one: a group of n units appears with the largest probability that any (eps/L0, delta')-DP rule allows.
        For more each unit adds 1/sqrt(t) to each of its t groups, and groups are told whose noisy sum reaches a
        threshold; so a generous ``max_groups`` costs units that are in few groups nothing.

        Privacy: (eps, delta)-DP per protected unit, or delta and rho-zCDP. None of the keys that one unit alone has
        appears but with probability delta. See ``docs/proofs/thresholds.md``.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"city": ["Ghent"] * 500 + ["Metz"]})
        >>> with dp.Session(eps=1, delta=1e-6):
        ...     df.dp.groupby("city").keys(eps=1, delta=1e-9)["city"].to_list()
        ['Ghent']
        """
        if self._keys is not None:
            raise InputError(
                "keys() asks which groups occur, and ",
                Arg("keys"),
                " lists them already.",
                hint=("leave ", Arg("keys"), " out."),
            )
        typed = next(
            (k for k in ("max_rows_per_group", "max_rows") if self._defaults.get(k) is not None), None
        )
        if typed is not None:
            raise InputError(
                Arg(typed),
                " says for how many rows a unit counts, and in keys() it counts once in a group.",
                hint="leave it out",
            )
        return self._ask((), options, scalar=False)


class _FrameVerbs(Asking[N, F, P, R]):
    __slots__ = ()

    @checked(example="groupby('city', keys=[...])")
    def groupby(
        self,
        *by: Any,
        keys: Any = None,
        max_groups: int | None = None,
        max_rows_per_group: int | None = None,
        max_rows: int | None = None,
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
        max_groups, max_rows_per_group, max_rows : int
            See :class:`Options`.

        Returns
        -------
        Grouped
            With the verbs of a frame, ``dp_agg`` and ``keys``.

        Raises
        ------
        InputError
            When a question is asked: for keys that are duplicates, do not fit the column's type or may have been
            read from data, and without keys for a missing ``delta=``.
        TypeError
            For expressions in place of names.

        Notes
        -----
        Privacy: a row is in one group, so one charge covers all of them (parallel composition); under
        replace_one a row may move between two, and sensitivities double. A unit is in up to
        ``max_groups`` groups, and noise is made for all of them together.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"city": ["Ghent", "Lille", "Ghent"]})
        >>> with dp.Session(eps=1e6):
        ...     df.dp.groupby("city", keys=["Ghent", "Metz"]).count(eps=1e6).rows()
        [('Ghent', 2), ('Metz', 0)]
        """
        limits = {"max_groups": max_groups, "max_rows_per_group": max_rows_per_group, "max_rows": max_rows}
        return Grouped(self._source, _names(by), keys, {**self._defaults, **limits}, self._finish)

    group_by = groupby

    @checked(example="value_counts('x', keys=[...], eps=0.5)", options=OPTIONS)
    def value_counts(self, column: Hashable, *, keys: Any = None, **options: Unpack[Options]) -> R:
        """Count the rows of every value of a column: ``groupby(column, keys=keys).count()``.

        Parameters
        ----------
        column : hashable
        keys : list, range, Enum class, ``dp.public(...)`` or "declared"
            The values to count, whether they occur or not; others are left out, and missing cells are
            counted where None is listed. Without keys the call needs ``delta=``, and those values
            appear whose noisy count reaches a threshold.
        **options
            See :class:`~dpframe.typing.Options`. With a unit, ``max_groups`` is for how many values it may
            count, ``max_rows_per_group`` for how many rows of each.

        Returns
        -------
        frame with the column and ``count`` (Int64), in the order of ``keys`` or sorted

        Raises
        ------
        InputError, MechanismError, BudgetExceeded, NoSession
            As for ``groupby(...).count()``.

        Notes
        -----
        Privacy: that of a grouped count.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"city": ["Ghent", "Lille", "Ghent", None]})
        >>> with dp.Session(eps=1e6):
        ...     df.dp.value_counts("city", keys=["Lille", "Ghent", "Metz", None], eps=1e6).rows()
        [('Lille', 1), ('Ghent', 2), ('Metz', 0), (None, 1)]
        """
        one_column("value_counts", column)
        return self._values(column, keys, options)

    def _values(self, column: Hashable, keys: Any, options: Any, top: int | None = None) -> R:
        grouped = Grouped(self._source, (column,), keys, self._defaults, self._finish)
        return grouped._ask((count(),), options, scalar=True, top=top)


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
            raise wrong_type(
                f"groupby takes column names, not a {type(x).__name__}.",
                hint=Call("groupby", "city", keys=[...]),
            )
    return names


class FrameDP(_FrameVerbs[IntAnswer, FloatAnswer, PairAnswer, R]):
    """Private questions about one frame; answers come back at once.

    A call is ``plan.<verb>(...).release().value``. For type checkers ``FrameDP[pandas.DataFrame]`` and
    ``FrameDP[polars.DataFrame]`` say what tables come back as.

    Examples
    --------
    >>> import dpframe as dp, pandas as pd
    >>> df = pd.DataFrame({"age": [20.0, 40.0] * 500})
    >>> with dp.Session(eps=1):
    ...     mean = df.dp.clip_mean("age", bounds=(0, 100), eps=1)
    >>> 25 < mean < 35, df.dp.plan.count(eps=0.1).error
    (True, 30.0)
    """

    __slots__ = ()

    @checked(example="partition_by('city', keys=[...], eps=1)", options=PartOptions.__annotations__)
    def partition_by(self, *by: Any, keys: Any = None, **options: Unpack[PartOptions]) -> Partition:
        """Divide the frame by public keys into parts that spend side by side.

        Parameters
        ----------
        *by, keys
            As in ``groupby``; keys are needed.
        **options
            ``eps`` (with ``delta``) or ``rho``, the cap of each part: the session is charged once, now, for the cap,
            times max_groups with a unit (times the session's ``contributions``, or the number of parts where that is less),
            times 2 under replace_one. ``max_groups``, ``session``, ``label`` are as in
            :class:`~dpframe.typing.Options`. For how many rows a unit counts in each part, unless a call says so, is the less
            of ``max_rows_per_group`` and ``max_rows``: parts are paid for by their number, however many rows are in
            them, so there ``max_rows`` saves noise, and nothing of the cap.

        Returns
        -------
        Partition
            A read-only mapping from key to part, in the order of ``keys``; ``parts["EWR"].dp`` has all verbs.

        Raises
        ------
        InputError, BudgetExceeded, NoSession
            As for ``count``; and without keys.

        Notes
        -----
        Privacy: see ``dpframe.api.partition``; parallel composition over disjoint parts, adaptively.

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
        if options.get("session") is None:
            options["session"] = self._defaults.get("session")
        return make_partition(
            self._source, _names(by), keys, options, lambda part, s: FrameDP(part, defaults={"session": s})
        )

    @property
    def plan(self) -> FramePlans[R]:
        """The same verbs, returning a :class:`BoundPlan` instead of an answer. Nothing is spent."""
        return FramePlans(self._source, defaults=self._defaults)

    def _finish(self, bound: BoundPlan) -> Any:
        return bound.release().value


class FramePlans(
    _FrameVerbs[BoundPlan[IntAnswer], BoundPlan[FloatAnswer], BoundPlan[PairAnswer], BoundPlan[R]]
):
    """Questions about one frame as plans: what they would cost and how exact they would be."""

    __slots__ = ()
    _owner = "df.dp.plan"

    def _finish(self, bound: BoundPlan) -> BoundPlan:
        return bound
