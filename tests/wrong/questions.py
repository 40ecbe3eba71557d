"""Wrong calls: columns, bounds, budgets, options, ``agg``, ``dp.frame``."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl

import dpframe as dp
from wrong.series import series

Wrong, NAN, INF = dp.InputError, float("nan"), float("inf")

# (call, class, what the message must name)
CALLS = {
    # ---- columns ----
    "near_column": (
        lambda df: df.dp.clip_mean("incom", bounds=(0, 1), eps=1),
        Wrong,
        ["'incom'", "Did you mean 'income'"],
    ),
    "upper_case_column": (
        lambda df: df.dp.clip_mean("Income", bounds=(0, 1), eps=1),
        Wrong,
        ["'Income'", "'income'"],
    ),
    "far_column": (lambda df: df.dp.count("salary", eps=1), Wrong, ["'salary'", "'income'", "'age'"]),
    "no_column": (lambda df: df.dp.clip_sum(bounds=(0, 1), eps=1), TypeError, ["clip_sum", "column"]),
    "column_is_expression": (
        lambda df: df.dp.clip_mean(pl.col("income"), bounds=(0, 1), eps=1),
        TypeError,
        ["clip_mean", "Expr"],
    ),
    "column_is_list": (
        lambda df: df.dp.clip_mean(["income", "age"], bounds=(0, 1), eps=1),
        TypeError,
        ["clip_mean", "list"],
    ),
    "column_is_number": (lambda df: df.dp.count(0.5, eps=1), Wrong, ["0.5"]),
    "text_measured": (
        lambda df: df.dp.clip_sum("zip", bounds=(0, 1), eps=1),
        Wrong,
        ["clip_sum", "'zip'", "cast"],
    ),
    "datetime_measured": (
        lambda df: df.dp.clip_mean("when", bounds=(0, 1), eps=1),
        Wrong,
        ["clip_mean", "'when'", "unit"],
    ),
    "date_measured": (lambda df: df.dp.clip_mean("day", bounds=(0, 1), eps=1), Wrong, ["'day'", "unit"]),
    "duration_measured": (
        lambda df: df.dp.clip_sum("took", bounds=(0, 1), eps=1),
        Wrong,
        ["clip_sum", "'took'", "seconds"],
    ),
    # ---- bounds ----
    "no_bounds": (lambda df: df.dp.clip_mean("income", eps=1), Wrong, ["'income'", "bounds=(0, 100)"]),
    "no_bounds_sum": (lambda df: df.dp.clip_sum("income", eps=1), Wrong, ["clip_sum('income')", "bounds="]),
    "bounds_reversed": (
        lambda df: df.dp.clip_mean("income", bounds=(9, 2), eps=1),
        Wrong,
        ["(9, 2)", "wrong way round"],
    ),
    "bounds_equal": (lambda df: df.dp.clip_mean("income", bounds=(4, 4), eps=1), Wrong, ["(4, 4)", "equal"]),
    "bounds_equal_in_agg": (
        lambda df: df.dp.agg(dp.count(), dp.clip_mean("income", bounds=(4, 4)), eps=1),
        Wrong,
        ["(4, 4)", "equal"],
    ),
    "bounds_nan": (lambda df: df.dp.clip_mean("income", bounds=(NAN, 1), eps=1), Wrong, ["bounds[0]", "nan"]),
    "bounds_inf": (lambda df: df.dp.clip_mean("income", bounds=(0, INF), eps=1), Wrong, ["bounds[1]", "inf"]),
    "bounds_of_text": (
        lambda df: df.dp.clip_mean("income", bounds=("0", "1"), eps=1),
        Wrong,
        ["bounds[0]", "'0'"],
    ),
    "bounds_none": (
        lambda df: df.dp.clip_mean("income", bounds=(None, 1), eps=1),
        Wrong,
        ["bounds[0]", "None"],
    ),
    "bounds_bool": (lambda df: df.dp.clip_mean("income", bounds=(False, 1), eps=1), Wrong, ["bounds[0]"]),
    "bounds_auto": (lambda df: df.dp.clip_mean("income", bounds="auto", eps=1), Wrong, ["bounds", "'auto'"]),
    "bounds_number": (lambda df: df.dp.clip_mean("income", bounds=10, eps=1), Wrong, ["bounds", "int"]),
    "bounds_three": (lambda df: df.dp.clip_mean("income", bounds=(0, 1, 2), eps=1), Wrong, ["bounds", "3"]),
    "bounds_series": (
        lambda df: df.dp.clip_mean("income", bounds=series(df, "income"), eps=1),
        (Wrong, TypeError),
        ["bounds", "Series"],
    ),
    "bounds_array": (
        lambda df: df.dp.clip_mean("income", bounds=np.array([0, 1]), eps=1),
        (Wrong, TypeError),
        ["bounds", "ndarray"],
    ),
    "bounds_too_large": (
        lambda df: df.dp.clip_sum("income", bounds=(0, 1e300), eps=1),
        Wrong,
        ["'income'", "2**900"],
    ),
    "B_zero": (lambda df: df.dp.clip_sum("income", B=0, eps=1), Wrong, ["B=0"]),
    "B_zero_in_agg": (
        lambda df: df.dp.agg(n=dp.count(), s=dp.clip_sum("income", B=0), eps=1),
        Wrong,
        ["B=0"],
    ),
    "B_negative": (lambda df: df.dp.clip_sum("income", B=-5, eps=1), Wrong, ["B=-5"]),
    "B_nan": (lambda df: df.dp.clip_sum("income", B=NAN, eps=1), Wrong, ["B=nan"]),
    "B_inf": (lambda df: df.dp.clip_sum("income", B=INF, eps=1), Wrong, ["B=inf"]),
    "B_minus_inf": (lambda df: df.dp.clip_sum("income", B=-INF, eps=1), Wrong, ["B=-inf"]),
    "B_NA": (lambda df: df.dp.clip_sum("income", B=pd.NA, eps=1), Wrong, ["B ", "NAType"]),
    "B_float32_nan": (lambda df: df.dp.clip_sum("income", B=np.float32("nan"), eps=1), Wrong, ["B=nan"]),
    "B_text": (lambda df: df.dp.clip_sum("income", B="5", eps=1), Wrong, ["B ", "'5'"]),
    "B_and_bounds": (
        lambda df: df.dp.clip_sum("income", B=5, bounds=(0, 1), eps=1),
        Wrong,
        ["bounds=", "B="],
    ),
    "bounds_positional": (
        lambda df: df.dp.clip_mean("income", (0, 1), eps=1),
        TypeError,
        ["clip_mean", "position", "bounds="],
    ),
    "all_positional": (
        lambda df: df.dp.clip_mean("income", 0, 1, 0.5),
        TypeError,
        ["clip_mean", "position", "eps="],
    ),
    "eps_positional": (lambda df: df.dp.count("income", 0.5), TypeError, ["count", "position", "eps="]),
    "question_positional": (lambda df: dp.clip_mean("income", (0, 1)), TypeError, ["position", "bounds="]),
    "n_zero": (lambda df: df.dp.clip_mean("income", bounds=(0, 1), n=0, eps=1), Wrong, ["n=0"]),
    "n_true": (lambda df: df.dp.clip_mean("income", bounds=(0, 1), n=True, eps=1), Wrong, ["n=True"]),
    "n_half": (lambda df: df.dp.clip_mean("income", bounds=(0, 1), n=2.5, eps=1), Wrong, ["n=2.5"]),
    # ---- budget ----
    "eps_and_rho": (lambda df: df.dp.count(eps=1, rho=1), Wrong, ["eps=", "rho="]),
    "no_budget": (lambda df: df.dp.count(), Wrong, ["eps=0.5"]),
    "eps_as_column": (lambda df: df.dp.count(0.5), Wrong, ["eps=0.5"]),
    "delta_with_rho": (lambda df: df.dp.count(rho=0.1, delta=1e-6), Wrong, ["delta=", "rho="]),
    "eps_zero": (lambda df: df.dp.count(eps=0), Wrong, ["eps=0"]),
    "eps_negative": (lambda df: df.dp.count(eps=-1), Wrong, ["eps=-1"]),
    "eps_nan": (lambda df: df.dp.count(eps=NAN), Wrong, ["eps=nan"]),
    "eps_inf": (lambda df: df.dp.count(eps=INF), Wrong, ["eps=inf"]),
    "eps_true": (lambda df: df.dp.count(eps=True), Wrong, ["eps=True"]),
    "eps_text": (lambda df: df.dp.count(eps="0.5"), Wrong, ["eps='0.5'"]),
    "eps_list": (lambda df: df.dp.count(eps=[0.5]), Wrong, ["eps=[0.5]"]),
    "eps_complex": (lambda df: df.dp.count(eps=1 + 0j), Wrong, ["eps=(1+0j)"]),
    "delta_one": (lambda df: df.dp.count(eps=1, delta=1), Wrong, ["delta=1"]),
    "delta_negative": (lambda df: df.dp.count(eps=1, delta=-0.1), Wrong, ["delta=-0.1"]),
    "delta_text": (lambda df: df.dp.count(eps=1, delta="x"), Wrong, ["delta='x'"]),
    "eps_dict_typo": (
        lambda df: df.dp.agg(income=dp.count(), eps={"incom": 1}),
        Wrong,
        ["'incom'", "Did you mean 'income'"],
    ),
    "eps_dict_lacks": (
        lambda df: df.dp.agg(n=dp.count(), m=dp.clip_mean("late"), eps={"n": 1}),
        Wrong,
        ["'m'", "eps"],
    ),
    "error_needs_rows": (
        lambda df: df.dp.clip_mean("income", bounds=(0, 1), error=0.1),
        Wrong,
        ["error=", "rows="],
    ),
    "error_zero": (lambda df: df.dp.count(error=0), Wrong, ["error=0"]),
    "relative_without_error": (
        lambda df: df.dp.count(eps=1, relative_to=5),
        Wrong,
        ["relative_to=", "error="],
    ),
    # ---- other options ----
    "ci_percent": (lambda df: df.dp.count(eps=1, ci=95), Wrong, ["ci=95"]),
    "ci_true": (lambda df: df.dp.count(eps=1, ci=True), Wrong, ["ci=True"]),
    "mechanism_typo": (
        lambda df: df.dp.count(eps=1, mechanism="laplce"),
        dp.MechanismError,
        ["'laplce'", "'laplace'"],
    ),
    "mechanism_unknown": (
        lambda df: df.dp.count(eps=1, mechanism="laplacian"),
        dp.MechanismError,
        ["'laplacian'", "'laplace'"],
    ),
    "mechanism_number": (lambda df: df.dp.count(eps=1, mechanism=3), TypeError, ["mechanism=", "int"]),
    "label_number": (lambda df: df.dp.count(eps=1, label=3), TypeError, ["label=", "int"]),
    "session_number": (lambda df: df.dp.count(eps=1, session=1), TypeError, ["session=", "int"]),
    "round_text": (lambda df: df.dp.count(eps=1, round="2"), Wrong, ["round='2'"]),
    "nonnegative_text": (lambda df: df.dp.count(eps=1, nonnegative="yes"), Wrong, ["nonnegative='yes'"]),
    # ---- agg ----
    "agg_expression": (
        lambda df: df.dp.agg(pl.col("income").mean(), eps=1),
        TypeError,
        ["Expr", "dp.clip_mean"],
    ),
    "agg_named_expression": (
        lambda df: df.dp.groupby("city", keys=["c2"]).dp_agg(m=pl.col("income").mean(), eps=1),
        TypeError,
        ["m=", "Expr", "dp.clip_mean"],
    ),
    "agg_dict": (
        lambda df: df.dp.agg({"income": "mean"}, eps=1),
        TypeError,
        ["dict", "mean=dp.clip_mean('x', b"],
    ),
    "agg_words": (lambda df: df.dp.agg(n="count", eps=1), TypeError, ["n", "dp.count()"]),
    "agg_pandas_tuple": (
        lambda df: df.dp.agg(n=("income", "mean"), eps=1),
        TypeError,
        ["n=", "tuple", "dp.clip_mean"],
    ),
    "agg_function": (lambda df: df.dp.agg(n=dp.count, eps=1), TypeError, ["n=function", "n=dp.count()"]),
    "agg_nothing": (lambda df: df.dp.agg(eps=1), TypeError, ["agg", "dp.count()"]),
    "agg_key_name": (
        lambda df: df.dp.groupby("city", keys=["c2"]).dp_agg(city=dp.count(), eps=1),
        Wrong,
        ["'city'", "grouping column"],
    ),
    "agg_same_name": (
        lambda df: df.dp.agg(dp.count(), dp.count(), eps=1),
        Wrong,
        ["'count'", "another output"],
    ),
    "agg_moe_name": (
        lambda df: df.dp.agg(n=dp.count(), n_moe=dp.count("age"), eps=1, ci=0.9),
        Wrong,
        ["n_moe"],
    ),
    "agg_option_typo": (
        lambda df: df.dp.agg(n=dp.count(), eps=1, rounds=2),
        TypeError,
        ["'rounds'", "'round'"],
    ),
    "alias_number": (lambda df: df.dp.agg(dp.count().alias(3), eps=1), TypeError, ["alias", "int"]),
    # ---- the door ----
    "frame_of_series": (lambda df: dp.frame(series(df, "income")), TypeError, ["dp.frame", "Series"]),
    "frame_of_expression": (lambda df: dp.frame(pl.col("income")), TypeError, ["dp.frame", "Expr"]),
    "frame_of_dict": (lambda df: dp.frame({"income": [1]}), TypeError, ["dp.frame", "dict"]),
    "frame_of_path": (lambda df: dp.frame("t.parquet"), TypeError, ["dp.frame", "str"]),
}
