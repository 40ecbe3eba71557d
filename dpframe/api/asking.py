"""How a question gets from a verb to its plan: options that are set before, several questions at once, wrong names."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic

from dpframe.api.bound_plan import BoundPlan, bind
from dpframe.api.options import OPTIONS, Options
from dpframe.api.verbs import F, N, P, R, Verbs
from dpframe.errors import Arg, Call, wrong_type
from dpframe.frames.contract import Source
from dpframe.statistics.base import Aggregate, output
from dpframe.statistics.question import Statistic
from dpframe.statistics.wrong_verbs import not_a_question, unknown_verb


class Asking(Verbs[N, F, P, R], Generic[N, F, P, R]):
    """A frame or groups of one, to be asked; what comes back is decided by the subclass."""

    __slots__ = ("_by", "_defaults", "_keys", "_source")
    _owner = "df.dp"
    _finish: Callable[[BoundPlan], Any]  # what a question becomes: an answer, or itself

    def __init__(
        self,
        source: Source,
        by: tuple[Hashable, ...] | None = None,
        keys: Any = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self._source, self._by, self._keys = source, by, keys
        self._defaults = {k: v for k, v in (defaults or {}).items() if v is not None}

    def _ask_statistic(
        self, statistic: Statistic, args: tuple[Any, ...], arguments: dict[str, Any], options: Options
    ) -> Any:
        if statistic.found is not None and options.get("delta") is not None:
            found = statistic.found(*args, **arguments)
            if found is not None:
                return self._values(found[0], None, options, top=found[1])
        ask = statistic.ask if statistic.whole is None or self._by is not None else statistic.whole
        try:
            asked = ask(*args, **arguments)
        except TypeError:
            asked = None
        if asked is None:
            asked = statistic.ask(*args, **arguments)  # which says what is wrong with the call
        return self._ask((asked,), options, scalar=statistic.answer != "columns")

    def _values(self, column: Hashable, keys: Any, options: Any, top: int | None = None) -> Any:
        raise NotImplementedError

    def agg(self, *aggregates: Aggregate, **named: Any) -> R:
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

        Raises
        ------
        InputError, MechanismError, BudgetExceeded, NoSession
            As for ``count``; a question that is wrong refuses the whole call.
        TypeError
            For what is no question.

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
        options = {k: named.pop(k) for k in OPTIONS if k in named}
        for name, value in options.items():
            if isinstance(value, Aggregate):
                raise wrong_type(
                    Arg(name),
                    " is an option of agg, not an output.",
                    hint=Arg(f"n_{name}", Call(f"dp.{value.verb}", ...)),
                )
        asked = []
        for a in aggregates:
            asked.append(output(a, None))
        for name, a in named.items():
            if a is None or isinstance(a, int | float | str | Mapping):
                raise not_a_question(name, a, OPTIONS)
            asked.append(output(a, name))
        if not asked:
            raise wrong_type(
                "agg needs at least one question.", hint=Call("agg", n=Call("dp.count"), eps=0.5)
            )
        return self._ask(tuple(asked), options, scalar=False)

    dp_agg = agg

    def _ask(
        self, aggregates: tuple[Aggregate, ...], options: Any, *, scalar: bool, top: int | None = None
    ) -> Any:
        options = {**self._defaults, **options}
        return self._finish(bind(self._source, aggregates, self._by, self._keys, options, scalar, top))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise unknown_verb(self._owner, name, dir(self), self._source.names())

    def __getitem__(self, column: Any) -> Any:
        raise wrong_type(
            f"{self._owner}[...] is not how private questions are asked.",
            hint=Call(f"{self._owner}.clip_mean", column, bounds=(0, 100), eps=0.5),
        )

    def __dir__(self) -> list[str]:
        """The verbs, and nothing else: what an editor offers after ``df.dp.``."""
        return [x for x in dir(type(self)) if not x.startswith("_")]

    def __repr__(self) -> str:
        return f"<{self._owner} of {self._source!r}: {', '.join(dir(self))}>"
