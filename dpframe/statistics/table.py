"""Every statistic by name: the one table that verbs, ``dpframe`` itself, files, commands and auditors read.

A new statistic is a file of its own and one line here.
"""

from dpframe.statistics.bounds import bounds as bounds
from dpframe.statistics.count import count as count
from dpframe.statistics.count import count_units as count_units
from dpframe.statistics.covariance import clip_corr as clip_corr
from dpframe.statistics.covariance import clip_cov as clip_cov
from dpframe.statistics.histogram import histogram as histogram
from dpframe.statistics.n_unique import n_unique as n_unique
from dpframe.statistics.ols import ols as ols
from dpframe.statistics.quantiles import iqr as iqr
from dpframe.statistics.quantiles import median as median
from dpframe.statistics.quantiles import quantile as quantile
from dpframe.statistics.question import Statistic as _Statistic
from dpframe.statistics.select import select as select
from dpframe.statistics.sum_mean import clip_mean as clip_mean
from dpframe.statistics.sum_mean import clip_sum as clip_sum
from dpframe.statistics.top_k import top_k as top_k
from dpframe.statistics.variance import clip_std as clip_std
from dpframe.statistics.variance import clip_var as clip_var
from dpframe.statistics.vectors import vector_mean as vector_mean
from dpframe.statistics.vectors import vector_sum as vector_sum
from dpframe.statistics.weighted_mean import clip_wmean as clip_wmean

STATISTICS: dict[str, _Statistic] = {
    name: f.statistic for name, f in sorted(globals().items()) if hasattr(f, "statistic")
}
