"""What type checkers see of ``verbs.py``; written by ``tests/write_stubs.py`` from the table of statistics."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar, Unpack, overload

from dpframe.accounting.events import Number
from dpframe.api.options import Options
from dpframe.statistics.question import Statistic

N = TypeVar("N")
F = TypeVar("F")
P = TypeVar("P")
R = TypeVar("R")

def verb(statistic: Statistic) -> Callable[..., Any]: ...

class Verbs(Generic[N, F, P, R]):
    def _ask_statistic(
        self, statistic: Statistic, args: tuple[Any, ...], arguments: dict[str, Any], options: Options
    ) -> Any: ...
    def bounds(
        self,
        column: Hashable,
        *,
        range: tuple[Number, Number] | None = None,
        **options: Unpack[Options],
    ) -> P:
        """Estimate bounds that hold nearly all values of a column, to be given to a later question."""
    def clip_corr(
        self,
        columns: Sequence[Hashable],
        *,
        bounds: Any = None,
        B: Number | None = None,
        **options: Unpack[Options],
    ) -> R:
        """Take the correlation of two columns, or the matrix of more, each value clipped to public bounds."""
    def clip_cov(
        self,
        columns: Sequence[Hashable],
        *,
        bounds: Any = None,
        B: Number | None = None,
        ddof: int = 1,
        **options: Unpack[Options],
    ) -> R:
        """Take the covariance of two columns, or the matrix of more, each value clipped to public bounds."""
    def clip_mean(
        self,
        column: Hashable,
        *,
        bounds: tuple[Number, Number] | None = None,
        B: Number | None = None,
        n: int | None = None,
        **options: Unpack[Options],
    ) -> F:
        """Average a column's non-missing values, each clipped to public bounds."""
    def clip_std(
        self,
        column: Hashable,
        *,
        bounds: tuple[Number, Number] | None = None,
        B: Number | None = None,
        ddof: int = 1,
        **options: Unpack[Options],
    ) -> F:
        """Take the standard deviation of a column's non-missing values, each clipped to public bounds."""
    def clip_sum(
        self,
        column: Hashable,
        *,
        bounds: tuple[Number, Number] | None = None,
        B: Number | None = None,
        **options: Unpack[Options],
    ) -> N | F:
        """Sum a column's values, each clipped to public bounds."""
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
        """Take the variance of a column's non-missing values, each clipped to public bounds."""
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
        """Take the weighted mean of a column, values and weights clipped to public bounds."""
    def count(self, column: Hashable | None = None, **options: Unpack[Options]) -> N:
        """Count rows, or the rows in which ``column`` is not missing."""
    def count_units(self, **options: Unpack[Options]) -> N:
        """Count the distinct units (persons, say) that have a row."""
    def histogram(
        self,
        column: Hashable,
        *,
        edges: Sequence[Number] | None = None,
        **options: Unpack[Options],
    ) -> R:
        """Count rows between public edges."""
    def iqr(
        self,
        column: Hashable,
        *,
        bounds: tuple[Number, Number] | None = None,
        candidates: Sequence[Number] | None = None,
        **options: Unpack[Options],
    ) -> N | F:
        """Estimate the interquartile range from two quantiles that are drawn together."""
    def median(
        self,
        column: Hashable,
        *,
        bounds: tuple[Number, Number] | None = None,
        candidates: Sequence[Number] | None = None,
        **options: Unpack[Options],
    ) -> N | F:
        """Estimate the median: ``quantile(column, 0.5)``."""
    def n_unique(self, column: Hashable, **options: Unpack[Options]) -> N:
        """Count the different values of a column; missing cells are no value."""
    def ols(
        self,
        y: Hashable,
        x: Sequence[Hashable],
        *,
        bounds: Any = None,
        B: Number | None = None,
        **options: Unpack[Options],
    ) -> R:
        """Regress a column on others by least squares, each value clipped to public bounds."""
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
    def select(
        self,
        columns: Any,
        *,
        bounds: tuple[Number, Number] | None = None,
        B: Number | None = None,
        k: int = 1,
        **options: Unpack[Options],
    ) -> R:
        """Choose the candidate with the largest utility, where a column says what each row adds to it."""
    def top_k(self, column: Hashable, k: int, *, candidates: Any = None, **options: Unpack[Options]) -> R:
        """Choose the k most frequent of public candidates, best first."""
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
        """Average vectors, each shortened to a public norm."""
    def vector_sum(
        self,
        columns: Any,
        *,
        norm: Number,
        ord: int = 2,
        dim: int | None = None,
        **options: Unpack[Options],
    ) -> R:
        """Add up vectors, each shortened to a public norm."""
