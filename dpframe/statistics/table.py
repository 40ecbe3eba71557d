"""Every statistic by name: the one table from which files, commands and the audit read what can be asked."""

from __future__ import annotations

from collections.abc import Callable

from dpframe.statistics.base import Aggregate
from dpframe.statistics.bounds import bounds
from dpframe.statistics.count import count, count_units
from dpframe.statistics.covariance import clip_corr, clip_cov
from dpframe.statistics.histogram import histogram
from dpframe.statistics.n_unique import n_unique
from dpframe.statistics.quantiles import iqr, median, quantile
from dpframe.statistics.select import select
from dpframe.statistics.sum_mean import clip_mean, clip_sum
from dpframe.statistics.top_k import top_k
from dpframe.statistics.variance import clip_std, clip_var
from dpframe.statistics.vectors import vector_mean, vector_sum
from dpframe.statistics.weighted_mean import clip_wmean

STATISTICS: dict[str, Callable[..., Aggregate]] = {
    f.__name__: f
    for f in (
        bounds, clip_corr, clip_cov, clip_mean, clip_std, clip_sum, clip_var, clip_wmean, count, count_units,
        histogram, iqr, median, n_unique, quantile, select, top_k, vector_mean, vector_sum,
    )
}  # fmt: skip


def statistics() -> dict[str, Callable[..., Aggregate]]:
    return STATISTICS
