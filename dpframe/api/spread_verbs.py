"""Verbs about how values are spread; part of every namespace of :mod:`dpframe.api.namespaces`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Generic, TypeVar, Unpack, overload

from dpframe.accounting.events import Number
from dpframe.api.bound_plan import Options
from dpframe.base.calls import checked
from dpframe.statistics import base as stats
from dpframe.statistics import base_choice as stats_choice
from dpframe.statistics import bounds as brackets
from dpframe.statistics import histogram as tabulate
from dpframe.statistics import n_unique as distinct
from dpframe.statistics import quantiles as choosing
from dpframe.statistics import select as scores
from dpframe.statistics import top_k as frequent

N = TypeVar("N")  # what a count comes back as
F = TypeVar("F")  # a number that is measured
P = TypeVar("P")  # a pair of numbers
R = TypeVar("R")  # a table
verb = checked(tuple(Options.__annotations__))


class SpreadVerbs(Generic[N, F, P, R]):
    """Histogram, number of different values, quantiles, choices."""

    __slots__ = ()

    def _ask(self, aggregates: tuple[stats.Aggregate, ...], options: Any, *, scalar: bool) -> Any:
        raise NotImplementedError

    def _values(self, column: Hashable, keys: Any, options: Any, top: int | None = None) -> Any:
        raise NotImplementedError

    @verb
    def histogram(
        self, column: Hashable, *, edges: Sequence[Number] | None = None, **options: Unpack[Options]
    ) -> R:
        """Count rows between public edges.

        Parameters
        ----------
        column : hashable
            Boolean, integer, float or Decimal.
        edges : list of numbers, increasing
            In the column's unit; typed. Bins are [a, b), the last one closed.
        **options
            See :class:`~dpframe.typing.Options`.

        Returns
        -------
        frame with ``bin``, ``lower``, ``upper`` and ``count`` (Int64)
            One row below the edges, one for each bin, one above, one for missing cells (null and NaN). Of
            groups: that many rows for each, after the keys.

        Raises
        ------
        InputError, MechanismError, BudgetExceeded, NoSession
            As for ``count``.

        Notes
        -----
        Privacy: (eps, delta)-DP per protected unit. A row is in one bin: L1 1, L2 1 (replace_one: 2 and
        sqrt 2); with a unit, R of whose rows are kept, R and R (2R and sqrt 2 R). Source: Dwork et al. 2006.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"age": [3.0, 40.0, 41.0, None]})
        >>> with dp.Session(eps=1e6):
        ...     h = df.dp.histogram("age", edges=[0, 18, 65], eps=1e6)
        >>> h.select("bin", "count").rows()
        [('< 0', 0), ('[0, 18)', 1), ('[18, 65]', 2), ('> 65', 0), ('missing', 1)]
        """
        return self._ask((tabulate.histogram(column, edges=edges),), options, scalar=True)

    @verb
    def n_unique(self, column: Hashable, **options: Unpack[Options]) -> N:
        """Count the different values of a column; missing cells are no value.

        Parameters
        ----------
        column : hashable
        **options
            See :class:`~dpframe.typing.Options`.

        Returns
        -------
        int (ungrouped), or a frame with keys and ``<column>_n_unique``

        Raises
        ------
        InputError, MechanismError, BudgetExceeded, NoSession
            As for ``count``.

        Notes
        -----
        Privacy: (eps, delta)-DP per protected unit. A row adds one value at most: sensitivity 1. With a unit,
        R of its values count in a group (``max_rows``): R; 1 when the column is the unit.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"city": ["Ghent", "Lille", "Ghent", None]})
        >>> with dp.Session(eps=1e6):
        ...     n = df.dp.n_unique("city", eps=1e6)
        >>> int(n)
        2
        """
        return self._ask((distinct.n_unique(column),), options, scalar=True)

    @overload
    def quantile(
        self,
        column: Hashable,
        q: Number,
        *,
        bounds: tuple[Number, Number] | None = None,
        candidates: Sequence[Number] | None = None,
        **options: Unpack[Options],
    ) -> N | F: ...

    @overload
    def quantile(
        self,
        column: Hashable,
        q: Sequence[Number],
        *,
        bounds: tuple[Number, Number] | None = None,
        candidates: Sequence[Number] | None = None,
        **options: Unpack[Options],
    ) -> R: ...

    @verb
    def quantile(
        self,
        column: Hashable,
        q: Number | Sequence[Number],
        *,
        bounds: tuple[Number, Number] | None = None,
        candidates: Sequence[Number] | None = None,
        **options: Unpack[Options],
    ) -> Any:
        """Estimate one quantile of a column's non-missing values, or several together.

        Parameters
        ----------
        column : hashable
            Boolean, integer, float or Decimal.
        q : number or list of numbers in increasing order
            Between 0 and 1.
        bounds : (low, high)
            In the column's unit; typed. Cut into 2**16 equal steps; of an integer column, its integers.
        candidates : list of numbers
            Instead of ``bounds``: what can be the answer.
        **options
            See :class:`~dpframe.typing.Options`. ``error=`` is a bound of the rank error, in rows.

        Returns
        -------
        number (one q); frame with ``q`` and ``<column>`` (a list); of groups a column ``<column>_q25`` for each
            Integers for integer columns. The quantile of nothing is any candidate, by chance.

        Raises
        ------
        InputError, MechanismError, BudgetExceeded, NoSession
            As for ``count``.

        Notes
        -----
        The error that is known is that of the rank; how far the value is off depends on the data, so there
        is no interval. Minimum and maximum are single rows' values: ask for extreme quantiles.

        Privacy: eps-DP per protected unit (rho = eps**2/8). Exponential mechanism over public candidates,
        drawn exactly; sensitivity max(q, 1-q), 1 under replace_one, times R with a unit. Source: McSherry and
        Talwar 2007, Smith 2011; several: Kaplan, Schnapp, Stemmer 2022.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"age": [20, 30, 30, 40, 90]})
        >>> with dp.Session(eps=1e6):
        ...     half = df.dp.quantile("age", 0.5, bounds=(0, 120), eps=1e3)
        ...     table = df.dp.quantile("age", [0.5, 0.9], bounds=(0, 120), eps=1e3)
        >>> int(half), table.rows()
        (30, [(0.5, 30), (0.9, 90)])
        """
        asked = choosing.quantile(column, q, bounds=bounds, candidates=candidates)
        return self._ask((asked,), options, scalar=True)

    @verb
    def median(
        self,
        column: Hashable,
        *,
        bounds: tuple[Number, Number] | None = None,
        candidates: Sequence[Number] | None = None,
        **options: Unpack[Options],
    ) -> N | F:
        """Estimate the median: ``quantile(column, 0.5)``.

        Parameters
        ----------
        column, bounds, candidates
            As in ``quantile``.
        **options
            See :class:`Options`.

        Returns
        -------
        a candidate (ungrouped), or a frame with keys and ``<column>_median``

        Raises
        ------
        InputError, MechanismError, BudgetExceeded, NoSession
            As for ``count``.

        Notes
        -----
        Privacy: that of ``quantile`` at 0.5. The error is one of rank, in rows.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"g": ["a", "a", "b"], "age": [20, 20, 40]})
        >>> with dp.Session(eps=1e6):
        ...     df.dp.groupby("g", keys=["a", "b"]).median("age", bounds=(0, 120), eps=1e3).rows()
        [('a', 20), ('b', 40)]
        """
        asked = choosing.median(column, bounds=bounds, candidates=candidates)
        return self._ask((asked,), options, scalar=True)

    @verb
    def iqr(
        self,
        column: Hashable,
        *,
        bounds: tuple[Number, Number] | None = None,
        candidates: Sequence[Number] | None = None,
        **options: Unpack[Options],
    ) -> N | F:
        """Estimate the interquartile range from two quantiles drawn together.

        Parameters
        ----------
        column, bounds, candidates
            As in ``quantile``.
        **options
            See :class:`Options`.

        Returns
        -------
        number, at least 0 (ungrouped), or a frame with keys and ``<column>_iqr``

        Raises
        ------
        InputError, MechanismError, BudgetExceeded, NoSession
            As for ``count``.

        Notes
        -----
        Privacy: that of ``quantile`` for [0.25, 0.75]; the difference is post-processing.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"age": list(range(101))})
        >>> with dp.Session(eps=1e6):
        ...     int(df.dp.iqr("age", bounds=(0, 120), eps=1e5))
        50
        """
        asked = choosing.iqr(column, bounds=bounds, candidates=candidates)
        return self._ask((asked,), options, scalar=True)

    @verb
    def top_k(self, column: Hashable, k: int, *, candidates: Any = None, **options: Unpack[Options]) -> R:
        """Choose the k most frequent of public candidates, best first.

        Parameters
        ----------
        column : hashable
        k : int
        candidates : list, range, Enum class, ``dp.public(...)`` or "declared"
            What can be chosen, as ``keys=`` of ``groupby``. Rows with other values count for nothing.
            Without them the call needs ``delta=``: values with enough rows are found, and those with the
            largest noisy counts are told, k at most, with their ``count`` instead of ``rank``.
        **options
            See :class:`~dpframe.typing.Options`. ``mechanism``: "exponential" or, for k = 1,
            "permute_and_flip", which "auto" takes in sessions without delta and rho.

        Returns
        -------
        frame with the column and ``rank`` (k rows, best first); of groups k rows for each, after the keys

        Raises
        ------
        InputError, MechanismError, BudgetExceeded, NoSession
            As for ``count``.

        Notes
        -----
        Privacy: eps-DP per protected unit (rho = eps**2/(8 k)); no count is released. k draws of the exponential
        mechanism with eps/k each, weights exp(eps/(k R) * count), replace_one half of that. Source: McSherry
        and Talwar 2007, Durfee and Rogers 2019; permute and flip: McKenna and Sheldon 2020.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"city": ["Ghent"] * 30 + ["Lille"] * 20 + ["Metz"]})
        >>> with dp.Session(eps=1e6):
        ...     df.dp.top_k("city", 2, candidates=["Lille", "Metz", "Nancy", "Ghent"], eps=1e3).rows()
        [('Ghent', 1), ('Lille', 2)]
        """
        if candidates is None and options.get("delta") is not None:
            return self._values(column, None, options, top=stats_choice.checked_k(column, k))
        return self._ask((frequent.top_k(column, k, candidates=candidates),), options, scalar=True)

    @verb
    def select(
        self,
        columns: Any,
        *,
        bounds: tuple[Number, Number] | None = None,
        B: Number | None = None,
        k: int = 1,
        **options: Unpack[Options],
    ) -> R:
        """Choose the candidate with the largest utility, where a column says what each row adds to it.

        Parameters
        ----------
        columns : list of column names
            One for each candidate: Boolean, integer, float or Decimal.
        bounds : (low, high), or B for (-B, B)
            Of every cell, from knowledge; Boolean columns need none.
        k : int
            How many to choose, best first.
        **options
            See :class:`~dpframe.typing.Options`.

        Returns
        -------
        frame with ``candidate`` and ``rank`` (k rows, best first); of groups k rows for each, after the keys

        Raises
        ------
        InputError, MechanismError, BudgetExceeded, NoSession
            As for ``count``.

        Notes
        -----
        Privacy: eps-DP per protected unit (rho = eps**2/(8 k)); no utility is released. See :func:`dpframe.select`.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> votes = pl.DataFrame({"tea": [True, True, False], "coffee": [False, True, False]})
        >>> with dp.Session(eps=1e6):
        ...     votes.dp.select(["tea", "coffee"], eps=1e3).rows()
        [('tea', 1)]
        """
        asked = scores.select(columns, bounds=bounds, B=B, k=k)
        return self._ask((asked,), options, scalar=True)

    @verb
    def bounds(
        self, column: Hashable, *, range: tuple[Number, Number] | None = None, **options: Unpack[Options]
    ) -> P:
        """Estimate bounds that hold nearly all values of a column, to be given to a later question.

        Parameters
        ----------
        column : hashable
            Boolean, integer, float or Decimal.
        range : (low, high)
            What the bounds can be at most; typed. Default (-2**64, 2**64).
        **options
            See :class:`~dpframe.typing.Options`.

        Returns
        -------
        (low, high), two numbers; of groups two columns ``<column>_low`` and ``<column>_high``
            Each is 0, a power of two or its negative, or an end of ``range``. It can be given on:
            ``clip_mean(column, bounds=that, ...)``; both are charged.

        Raises
        ------
        InputError, MechanismError, BudgetExceeded, NoSession
            As for ``count``.

        Notes
        -----
        Values are counted in bins between powers of two, with noise. The bounds are the outer edges of the
        outermost bins whose noisy count reaches T, where the probability that any empty bin does is at most
        1 % (``plan.error`` is T, about ln(100 bins)/eps rows). So with 99 % the bounds are no wider than
        the data but for the next power of two; and each end leaves out at most the bins beyond whose noisy
        counts stayed below T. When no bin reaches T they are ``range``. Knowing better is better: these
        bounds cost eps and are coarse.

        Privacy: that of a histogram with public edges; the rest is post-processing. Source: log-scale
        histograms for bounds, as in Wilson et al., "Differentially private SQL with bounded user
        contribution" (2020).

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"minutes": [3.0, 5.0, 90.0] * 50})
        >>> with dp.Session(eps=1e6):
        ...     b = df.dp.bounds("minutes", eps=10)
        ...     mean = df.dp.clip_mean("minutes", bounds=b, eps=1e3)
        >>> tuple(b), round(mean)
        ((2.0, 128.0), 33)
        """
        return self._ask((brackets.bounds(column, range=range),), options, scalar=True)
