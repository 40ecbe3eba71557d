"""The verbs count_units, of second moments and of vectors, for frames, groups and plans alike."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Generic, TypeVar, Unpack

from dpframe.accounting.events import Number
from dpframe.api.bound_plan import Options
from dpframe.base.calls import checked
from dpframe.statistics import base as stats
from dpframe.statistics import count as counts
from dpframe.statistics import covariance as pairs
from dpframe.statistics import variance as spreads
from dpframe.statistics import vectors
from dpframe.statistics import weighted_mean as weighted

N = TypeVar("N")  # what a count comes back as
F = TypeVar("F")  # a number that is measured
R = TypeVar("R")  # a table
OPTIONS = tuple(Options.__annotations__)
verb = checked(OPTIONS)


class MoreVerbs(Generic[N, F, R]):
    """Questions beyond count, sum and mean. Each is one class of :mod:`dpframe.statistics`."""

    __slots__ = ()
    _by: tuple[Hashable, ...] | None

    def _ask(self, aggregates: tuple[stats.Aggregate, ...], options: Any, *, scalar: bool) -> Any:
        raise NotImplementedError

    @verb
    def count_units(self, **options: Unpack[Options]) -> N:
        """Count the distinct units (persons, say) that have a row.

        Parameters
        ----------
        **options
            See :class:`Options`.

        Returns
        -------
        int (ungrouped), or a frame with keys and ``units``

        Raises
        ------
        InputError
            In a session without ``unit=``; nothing was spent. The rest as for ``count``.

        Notes
        -----
        Privacy: (eps, delta)-DP per unit; L1 sensitivity 1, over groups ``max_groups``, twice that under
        replace_one. No ``max_rows`` is needed: a unit counts once.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"who": ["a", "a", "b"]})
        >>> with dp.Session(eps=100, unit="who"):
        ...     n = df.dp.count_units(eps=50)
        >>> int(n)
        2
        """
        return self._ask((counts.count_units(),), options, scalar=True)

    @verb
    def clip_var(
        self,
        column: Hashable,
        *,
        bounds: tuple[Number, Number] | None = None,
        B: Number | None = None,
        ddof: int = 1,
        raw: bool = False,
        **options: Unpack[Options],
    ) -> F:
        """Take the variance of a column's non-missing values, each clipped to public bounds.

        Parameters
        ----------
        column, bounds, B, ddof, raw
            As in :func:`dpframe.clip_var`.
        **options
            See :class:`Options`. With ``error=``, ``rows=`` is a public guess of the number of rows.

        Returns
        -------
        float, at least 0 unless ``raw`` (ungrouped), or a frame with keys and ``<column>_var``
            The variance of fewer than ``ddof + 1`` values is 0 plus noise.

        Raises
        ------
        InputError, MechanismError, BudgetExceeded, NoSession
            As for ``count``.

        Notes
        -----
        Privacy: (eps, delta)-DP per protected unit; one block of three cells, L1 sensitivity 1 row. The interval is
        Fieller's with the mean plugged in (see ``dpframe.layout.moments``); the expected error is that of values at the
        bounds, the worst case: 4 half-spans squared times the noise of a cell over n.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"age": [20.0, 30.0, 40.0]})
        >>> with dp.Session(eps=1e6):
        ...     v = df.dp.clip_var("age", bounds=(0, 100), eps=1e6)
        >>> round(v)
        100
        """
        return self._ask(
            (spreads.clip_var(column, bounds=bounds, B=B, ddof=ddof, raw=raw),), options, scalar=True
        )

    @verb
    def clip_std(
        self,
        column: Hashable,
        *,
        bounds: tuple[Number, Number] | None = None,
        B: Number | None = None,
        ddof: int = 1,
        **options: Unpack[Options],
    ) -> F:
        """Take the standard deviation of a column's non-missing values, each clipped to public bounds.

        Parameters
        ----------
        column, bounds, B, ddof
            As in :func:`dpframe.clip_std`.
        **options
            See :class:`Options`. With ``error=``, ``rows=`` is a public guess of the number of rows.

        Returns
        -------
        float, at least 0 (ungrouped), or a frame with keys and ``<column>_std``

        Raises
        ------
        InputError, MechanismError, BudgetExceeded, NoSession
            As for ``count``.

        Notes
        -----
        Privacy: the root of ``clip_var``'s answer. The expected error is that of values spread evenly between
        the bounds; it is larger when they are close together.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"age": [20.0, 30.0, 40.0]})
        >>> with dp.Session(eps=1e6):
        ...     sd = df.dp.clip_std("age", bounds=(0, 100), eps=1e6)
        >>> round(sd, 1)
        10.0
        """
        return self._ask((spreads.clip_std(column, bounds=bounds, B=B, ddof=ddof),), options, scalar=True)

    @verb
    def clip_wmean(
        self,
        column: Hashable,
        *,
        weights: Hashable,
        bounds: tuple[Number, Number] | None = None,
        B: Number | None = None,
        weight_bounds: tuple[Number, Number] = (0, 1),
        **options: Unpack[Options],
    ) -> F:
        """Take the weighted mean of a column, values and weights clipped to public bounds.

        Parameters
        ----------
        column, weights, bounds, B, weight_bounds
            As in :func:`dpframe.clip_wmean`.
        **options
            See :class:`Options`. With ``error=``, ``rows=`` is a public guess of how many rows of the largest
            weight all weights add up to.

        Returns
        -------
        float within the bounds (ungrouped), or a frame with keys and ``<column>_wmean``

        Raises
        ------
        InputError, MechanismError, BudgetExceeded, NoSession
            As for ``count``.

        Notes
        -----
        Privacy: (eps, delta)-DP per protected unit; one block, L1 sensitivity 1 row of the largest weight.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"x": [10.0, 40.0], "w": [2.0, 1.0]})
        >>> with dp.Session(eps=1e6):
        ...     m = df.dp.clip_wmean("x", weights="w", bounds=(0, 100), weight_bounds=(0, 2), eps=1e6)
        >>> round(m, 1)
        20.0
        """
        asked = weighted.clip_wmean(column, weights=weights, bounds=bounds, B=B, weight_bounds=weight_bounds)
        return self._ask((asked,), options, scalar=True)

    @verb
    def clip_cov(
        self,
        columns: Sequence[Hashable],
        *,
        bounds: Any = None,
        B: Number | None = None,
        ddof: int = 1,
        **options: Unpack[Options],
    ) -> R:
        """Take the covariance matrix of columns, each value clipped to public bounds.

        Parameters
        ----------
        columns, bounds, B, ddof
            As in :func:`dpframe.clip_cov`; any number of columns from 2 to 64 (with groups, 2).
        **options
            See :class:`Options`.

        Returns
        -------
        frame with ``column`` and a Float64 column per input (ungrouped), or with keys and ``<a>_<b>_cov``
            A row in which any of the columns is missing is left out of all.

        Raises
        ------
        InputError, MechanismError, BudgetExceeded, NoSession
            As for ``count``.

        Notes
        -----
        Privacy: (eps, delta)-DP per protected unit. Every pair is one block and every variance another, each of L1
        sensitivity 1 row; d columns are d(d+1)/2 blocks, which share the budget equally. The matrix need
        not be positive semidefinite.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"x": [1.0, 2.0, 3.0], "y": [2.0, 4.0, 6.0]})
        >>> with dp.Session(eps=1e7):
        ...     t = df.dp.clip_cov(["x", "y"], bounds=(0, 10), eps=1e7, round=1)
        >>> t["column"].to_list(), t["x"].to_list(), t["y"].to_list()
        (['x', 'y'], [1.0, 2.0], [2.0, 4.0])
        """
        asked = pairs.pairwise("clip_cov", columns, bounds, B, ddof, matrix=self._by is None)
        return self._ask((asked,), options, scalar=False)

    @verb
    def clip_corr(
        self,
        columns: Sequence[Hashable],
        *,
        bounds: Any = None,
        B: Number | None = None,
        **options: Unpack[Options],
    ) -> R:
        """Take the correlation matrix of columns, each value clipped to public bounds.

        Parameters
        ----------
        columns, bounds, B
            As in :func:`dpframe.clip_cov`; any number of columns from 2 to 64 (with groups, 2).
        **options
            See :class:`Options`.

        Returns
        -------
        frame with ``column`` and a Float64 column per input (ungrouped), or with keys and ``<a>_<b>_corr``
            Within [-1, 1]; 0 where a noisy variance is not above 0.

        Raises
        ------
        InputError, MechanismError, BudgetExceeded, NoSession
            As for ``count``.

        Notes
        -----
        Privacy: as for ``clip_cov``, with the same blocks.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"x": [1.0, 2.0, 3.0], "y": [6.0, 4.0, 2.0]})
        >>> with dp.Session(eps=1e7):
        ...     t = df.dp.clip_corr(["x", "y"], bounds=(0, 10), eps=1e7, round=2)
        >>> t["x"].to_list()
        [1.0, -1.0]
        """
        asked = pairs.pairwise("clip_corr", columns, bounds, B, 1, matrix=self._by is None)
        return self._ask((asked,), options, scalar=False)

    @verb
    def vector_sum(
        self,
        columns: Any,
        *,
        norm: Number,
        ord: int = 2,
        dim: int | None = None,
        **options: Unpack[Options],
    ) -> R:
        """Add up vectors, each shortened to a public norm.

        Parameters
        ----------
        columns, norm, ord, dim
            As in :func:`dpframe.vector_sum`.
        **options
            See :class:`Options`.

        Returns
        -------
        frame with a Float64 column per component, after the keys if there are groups

        Raises
        ------
        InputError, MechanismError, BudgetExceeded, NoSession
            As for ``count``.

        Notes
        -----
        Privacy: (eps, delta)-DP or rho-zCDP per protected unit; sensitivity ``norm`` in the norm ``ord`` (twice that
        under replace_one). With a unit: times ``max_rows``, over groups times max_groups in L1 and its root in L2.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"gx": [3.0, 0.0], "gy": [4.0, 0.5]})
        >>> with dp.Session(rho=1e9):
        ...     t = df.dp.vector_sum(["gx", "gy"], norm=1, rho=1e9, round=3)
        >>> t.row(0)
        (0.6, 1.3)
        """
        return self._ask((vectors.vector_sum(columns, norm=norm, ord=ord, dim=dim),), options, scalar=False)

    @verb
    def vector_mean(
        self,
        columns: Any,
        *,
        norm: Number,
        ord: int = 2,
        dim: int | None = None,
        n: int | None = None,
        **options: Unpack[Options],
    ) -> R:
        """Average vectors, each shortened to a public norm.

        Parameters
        ----------
        columns, norm, ord, dim, n
            As in :func:`dpframe.vector_mean`.
        **options
            See :class:`Options`.

        Returns
        -------
        frame with a Float64 column per component, after the keys if there are groups

        Raises
        ------
        InputError, MechanismError, BudgetExceeded, NoSession
            As for ``count``.

        Notes
        -----
        Privacy: as for ``vector_sum``, and a count of the vectors unless ``n`` is given.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"v": [[3.0, 4.0], [0.0, 0.5]]}, schema={"v": pl.Array(pl.Float64, 2)})
        >>> with dp.Session(eps=1e7):
        ...     t = df.dp.vector_mean("v", norm=5, eps=1e7, round=2)
        >>> t.row(0)
        (1.5, 2.25)
        """
        asked = vectors.vector_mean(columns, norm=norm, ord=ord, dim=dim, n=n)
        return self._ask((asked,), options, scalar=False)
