"""Wrong calls: vectors, spreads, weights, choices."""

from __future__ import annotations

import polars as pl

import dpframe as dp
from wrong.series import series

Wrong, NAN = dp.InputError, float("nan")

# (call, class, what the message must name)
CALLS = {
    # ---- vectors, spreads, weights, choices ----
    "vector_norm_missing": (lambda df: df.dp.vector_sum(["income"], eps=1), TypeError, ["norm=1"]),
    "vector_norm_zero": (lambda df: df.dp.vector_sum(["income"], norm=0, eps=1), Wrong, ["norm=0"]),
    "vector_norm_text": (
        lambda df: df.dp.vector_sum(["income"], norm="1", eps=1),
        Wrong,
        ["norm='1'", "number"],
    ),
    "vector_ord": (lambda df: df.dp.vector_sum(["income"], norm=1, ord=3, eps=1), Wrong, ["ord=3", "2", "1"]),
    "vector_no_columns": (
        lambda df: df.dp.vector_sum([], norm=1, eps=1),
        Wrong,
        ["vector_sum", "at least one"],
    ),
    "vector_of_text": (lambda df: df.dp.vector_sum(["income", "city"], norm=1, eps=1), Wrong, ["'city'"]),
    "vector_typo": (lambda df: df.dp.vector_sum(["incom"], norm=1, eps=1), Wrong, ["'incom'", "'income'"]),
    "vector_max_norm": (
        lambda df: df.dp.vector_mean(["age"], max_norm=1, eps=1),
        TypeError,
        ["max_norm", "norm="],
    ),
    "vector_n": (lambda df: df.dp.vector_mean(["income"], norm=1, n=0, eps=1), Wrong, ["n=0"]),
    "vector_expression": (
        lambda df: df.dp.vector_sum([pl.col("income")], norm=1, eps=1),
        TypeError,
        ["vector_sum", "Expr"],
    ),
    "var_no_bounds": (lambda df: df.dp.clip_var("income", eps=1), Wrong, ["clip_var('income')", "bounds="]),
    "var_word": (lambda df: df.dp.var("income", eps=1), AttributeError, ["'var'", "clip_var"]),
    "std_word": (lambda df: df.dp.std("income", eps=1), AttributeError, ["'std'", "clip_std"]),
    "std_of_text": (
        lambda df: df.dp.clip_std("city", bounds=(0, 1), eps=1),
        Wrong,
        ["clip_std('city')", "cast"],
    ),
    "wmean_no_weights": (
        lambda df: df.dp.clip_wmean("income", bounds=(0, 1), eps=1),
        TypeError,
        ["weights="],
    ),
    "wmean_weight": (
        lambda df: df.dp.clip_wmean("income", weight="age", bounds=(0, 1), eps=1),
        TypeError,
        ["'weight'", "weights="],
    ),
    "wmean_weight_bounds": (
        lambda df: df.dp.clip_wmean("income", weights="age", bounds=(0, 1), weight_bounds=(-1, 1), eps=1),
        Wrong,
        ["weight_bounds=(-1, 1)", "from 0"],
    ),
    "wmean_typo": (
        lambda df: df.dp.clip_wmean("income", weights="ages", bounds=(0, 1), eps=1),
        Wrong,
        ["'ages'", "'age'"],
    ),
    "cov_one": (
        lambda df: df.dp.clip_cov(["income"], bounds=(0, 1), eps=1),
        Wrong,
        ["clip_cov", "at least two"],
    ),
    "cov_twice": (lambda df: df.dp.clip_cov(["age", "age"], bounds=(0, 1), eps=1), Wrong, ["'age'", "once"]),
    "cov_text": (
        lambda df: df.dp.clip_cov("income", bounds=(0, 1), eps=1),
        TypeError,
        ["clip_cov", "str", "list"],
    ),
    "cov_no_bounds": (
        lambda df: df.dp.clip_cov(["income", "age"], eps=1),
        Wrong,
        ["['income', 'age']", "bounds="],
    ),
    "corr_word": (lambda df: df.dp.corr(["income", "age"], eps=1), AttributeError, ["'corr'", "clip_corr"]),
    "corr_typo": (
        lambda df: df.dp.clip_corr(["income", "agee"], bounds=(0, 1), eps=1),
        Wrong,
        ["'agee'", "'age'"],
    ),
    "select_one": (lambda df: df.dp.select(["late"], eps=1), Wrong, ["select", "at least 2"]),
    "select_k": (
        lambda df: df.dp.select(["late", "income"], k=5, bounds=(0, 1), eps=1),
        Wrong,
        ["at least 5", "has 2"],
    ),
    "select_no_bounds": (lambda df: df.dp.select(["income", "age"], eps=1), Wrong, ["select", "bounds="]),
    "select_text": (lambda df: df.dp.select("late", eps=1), TypeError, ["select", "str"]),
    "units_of_rows": (lambda df: df.dp.count_units(eps=1), Wrong, ["count_units", "unit='user_id'"]),
    "n_unique_typo": (lambda df: df.dp.n_unique("citi", eps=1), Wrong, ["'citi'", "'city'"]),
    "n_unique_nothing": (lambda df: df.dp.n_unique(eps=1), TypeError, ["n_unique", "column"]),
    "bounds_verb_of_text": (lambda df: df.dp.bounds("city", eps=1), Wrong, ["bounds('city')", "cast"]),
    "bounds_range_nan": (
        lambda df: df.dp.bounds("income", range=(0, NAN), eps=1),
        Wrong,
        ["range[1]", "nan"],
    ),
    "bounds_range_series": (
        lambda df: df.dp.bounds("income", range=series(df, "income"), eps=1),
        Wrong,
        ["range"],
    ),
    "top_k_text": (lambda df: df.dp.top_k("city", "3", candidates=["a"], eps=1), Wrong, ["k='3'"]),
    "top_k_typo": (
        lambda df: df.dp.top_k("ciyt", 1, candidates=["a", "b"], eps=1),
        Wrong,
        ["'ciyt'", "'city'"],
    ),
    "top_k_series": (
        lambda df: df.dp.top_k("city", 1, candidates=series(df, "city"), eps=1),
        Wrong,
        ["candidates=", "Series", "dp.public"],
    ),
    "top_k_no_k": (
        lambda df: df.dp.top_k("city", candidates=["a"], eps=1),
        TypeError,
        ["needs a k", "'x', 3"],
    ),
    "histogram_typo": (
        lambda df: df.dp.histogram("incme", edges=[0, 1], eps=1),
        Wrong,
        ["'incme'", "'income'"],
    ),
    "histogram_bins": (lambda df: df.dp.histogram("income", bins=10, eps=1), TypeError, ["'bins'", "edges="]),
    "histogram_series": (
        lambda df: df.dp.histogram("income", edges=series(df, "income"), eps=1),
        Wrong,
        ["edges=", "Series", "dp.public"],
    ),
    "quantile_typo": (
        lambda df: df.dp.quantile("incme", 0.5, bounds=(0, 1), eps=1),
        Wrong,
        ["'incme'", "'income'"],
    ),
    "quantile_no_q": (
        lambda df: df.dp.quantile("income", bounds=(0, 1), eps=1),
        TypeError,
        ["needs a q", "0.5"],
    ),
    "quantile_ci": (lambda df: df.dp.median("income", bounds=(0, 1), ci=2, eps=1), Wrong, ["ci=2"]),
    "quantile_expression": (
        lambda df: df.dp.quantile(pl.col("income"), 0.5, bounds=(0, 1), eps=1),
        TypeError,
        ["quantile", "Expr"],
    ),
    "iqr_no_bounds": (lambda df: df.dp.iqr("income", eps=1), Wrong, ["iqr('income')", "bounds="]),
    "count_expression": (lambda df: df.dp.count(pl.col("income"), eps=1), TypeError, ["count", "Expr"]),
    "sum_of_series": (
        lambda df: df.dp.clip_sum(series(df, "income"), bounds=(0, 1), eps=1),
        TypeError,
        ["clip_sum", "Series"],
    ),
    "series_plan": (lambda df: series(df, "income").dp.plan, TypeError, ["Series", "df.dp.plan.count"]),
    "series_quantile": (
        lambda df: series(df, "income").dp.quantile(0.5, eps=1),
        TypeError,
        ["Series", "quantile"],
    ),
}
