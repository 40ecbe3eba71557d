"""PipelineDP on its local runner, over Python rows. The same guarantees; people's rows are sampled."""

import pipeline_dp
from peer_settings import CITIES, DELTA, EPS, HIGH, LOW, MAX_GROUPS, MAX_ROWS

PACKAGES = ("pipeline-dp",)


def load(data):
    return list(zip(*(column.tolist() for column in data.values())))  # (person, city, item, x)


def count(rows):
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPS, total_delta=0)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    params = pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.COUNT],
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        contribution_bounds_already_enforced=True,
    )
    extractors = pipeline_dp.DataExtractors(
        partition_extractor=lambda row: None, value_extractor=lambda row: 0
    )
    result = engine.aggregate(rows, params, extractors, public_partitions=[None])
    accountant.compute_budgets()
    return next(metrics.count for _, metrics in result)


def total(rows):
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPS, total_delta=0)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    params = pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.SUM],
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=LOW,
        max_value=HIGH,
        contribution_bounds_already_enforced=True,
    )
    extractors = pipeline_dp.DataExtractors(
        partition_extractor=lambda row: None, value_extractor=lambda row: row[3]
    )
    result = engine.aggregate(rows, params, extractors, public_partitions=[None])
    accountant.compute_budgets()
    return next(metrics.sum for _, metrics in result)


def mean(rows):
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPS, total_delta=0)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    params = pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.MEAN],
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=LOW,
        max_value=HIGH,
        contribution_bounds_already_enforced=True,
    )
    extractors = pipeline_dp.DataExtractors(
        partition_extractor=lambda row: None, value_extractor=lambda row: row[3]
    )
    result = engine.aggregate(rows, params, extractors, public_partitions=[None])
    accountant.compute_budgets()
    return next(metrics.mean for _, metrics in result)


def public_keys(rows):
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPS, total_delta=0)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    params = pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.MEAN],
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=LOW,
        max_value=HIGH,
        contribution_bounds_already_enforced=True,
    )
    extractors = pipeline_dp.DataExtractors(
        partition_extractor=lambda row: row[1], value_extractor=lambda row: row[3]
    )
    result = engine.aggregate(rows, params, extractors, public_partitions=CITIES)
    accountant.compute_budgets()
    return [(city, metrics.count, metrics.mean) for city, metrics in result]


def unknown_keys(rows):
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPS, total_delta=DELTA)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    params = pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.MEAN],
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=LOW,
        max_value=HIGH,
        contribution_bounds_already_enforced=True,
    )
    extractors = pipeline_dp.DataExtractors(
        partition_extractor=lambda row: row[2], value_extractor=lambda row: row[3]
    )
    result = engine.aggregate(rows, params, extractors)
    accountant.compute_budgets()
    return [(item, metrics.count, metrics.mean) for item, metrics in result]


def units(rows):
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPS, total_delta=0)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    params = pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.MEAN],
        max_partitions_contributed=MAX_GROUPS,
        max_contributions_per_partition=MAX_ROWS,
        min_value=LOW,
        max_value=HIGH,
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[3],
    )
    result = engine.aggregate(rows, params, extractors, public_partitions=CITIES)
    accountant.compute_budgets()
    return [(city, metrics.count, metrics.mean) for city, metrics in result]


def read(answer):
    return answer if isinstance(answer, list) else float(answer)
