"""Every statistic by name: the one table from which files, commands and the audit read what can be asked."""

from __future__ import annotations

from collections.abc import Callable

from dpframe.statistics.basic import Aggregate, clip_mean, clip_sum, count, count_units
from dpframe.statistics.histogram import bounds, histogram, n_unique
from dpframe.statistics.quantiles import iqr, median, quantile, top_k
from dpframe.statistics.select import select
from dpframe.statistics.spread import clip_corr, clip_cov, clip_std, clip_var, clip_wmean
from dpframe.statistics.vectors import vector_mean, vector_sum

STATISTICS: dict[str, Callable[..., Aggregate]] = {
    f.__name__: f
    for f in (
        bounds, clip_corr, clip_cov, clip_mean, clip_std, clip_sum, clip_var, clip_wmean, count, count_units,
        histogram, iqr, median, n_unique, quantile, select, top_k, vector_mean, vector_sum,
    )
}  # fmt: skip


def statistics() -> dict[str, Callable[..., Aggregate]]:
    return STATISTICS
