"""Wrong calls: the right class, a message that names what was wrong and what to write, nothing spent.

One row of a table per call. Every call is made on a pandas frame, a Polars frame and a lazy frame; the
text must be the same (but for the names that libraries give to their types), and no cell may be in it.
"""

from __future__ import annotations

import datetime as dt
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from wrong_calls import MORE

import dpframe as dp

pytestmark = pytest.mark.usefixtures("quiet")

CANARY = 7731904  # in every cell of every column, in some form
KINDS = ("pandas", "polars", "lazy")
GUIDES = ("Hint:", "Did you mean", "There are")

TABLE = pl.DataFrame(
    {
        "city": [f"c{CANARY}", "c2", "c3"],
        "income": [float(CANARY), 2.0, 3.0],
        "age": [CANARY, 30, 40],
        "late": [True, False, True],
        "zip": [f"{CANARY}", "2", "3"],
        "when": [dt.datetime(2026, 1, 1, 7, 7, 31)] * 3,
        "day": [dt.date(2026, 1, 1)] * 3,
        "took": [dt.timedelta(seconds=CANARY)] * 3,
    }
)


def frame_of(kind: str):
    if kind == "pandas":
        frame = TABLE.to_pandas()
        text = {"city": "string", "zip": "string"}  # pandas 2 would make them object, which has no type
        return frame.astype(text).astype({"day": pd.ArrowDtype(__import__("pyarrow").date32())})
    return TABLE.lazy() if kind == "lazy" else TABLE


FRAMES = {kind: frame_of(kind) for kind in KINDS}


def column(df, name):
    """A Series, however lazy the frame."""
    return (df.collect() if isinstance(df, pl.LazyFrame) else df)[name]


def of_types(text: str) -> str:
    """Without the names of libraries and of their types, which may differ."""
    names = {"pandas", "polars", "Series", "DataFrame", "LazyFrame"}
    for kind in KINDS:
        df = FRAMES[kind]
        schema = df.dtypes.items() if kind == "pandas" else df.collect_schema().items()
        names |= {str(t) for _, t in schema}
    names |= {"StringArray", "ArrowStringArray", "pandas.core.series.Series", "polars.series.series.Series"}
    names |= {"pandas.Series", "pandas.arrays.StringArray"}
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, "TYPE")
    return text


Wrong = dp.InputError
NAN, INF = float("nan"), float("inf")

# (call, class, what the message must name)
CALLS = {
    # ---- the words people type first ----
    "mean": (lambda df: df.dp.mean("income", eps=1), AttributeError, ["mean", "clip_mean"]),
    "sum": (lambda df: df.dp.sum("income", eps=1), AttributeError, ["sum", "clip_sum"]),
    "size": (lambda df: df.dp.size(eps=1), AttributeError, ["size", "count"]),
    "len": (lambda df: df.dp.len(eps=1), AttributeError, ["len", "count"]),
    "average": (lambda df: df.dp.average("income", eps=1), AttributeError, ["average", "clip_mean"]),
    "median": (lambda df: df.dp.median("income", eps=1), Wrong, ["median", "bounds=", "candidates="]),
    "min": (lambda df: df.dp.min("income"), AttributeError, ["min", "quantile('x', 0.01"]),
    "max": (lambda df: df.dp.max("income"), AttributeError, ["max", "quantile('x', 0.99"]),
    "mode": (lambda df: df.dp.mode("city"), AttributeError, ["mode", "top_k"]),
    "nunique": (lambda df: df.dp.nunique("city"), AttributeError, ["nunique", "n_unique"]),
    "hist": (lambda df: df.dp.hist("income"), AttributeError, ["hist", "histogram", "edges="]),
    "describe": (lambda df: df.dp.describe(), AttributeError, ["describe"]),
    "value_counts": (lambda df: df.dp.value_counts("city", eps=1), Wrong, ["city", "keys=", "delta="]),
    "value_counts_in_groups": (
        lambda df: df.dp.groupby("city", keys=["c2"]).value_counts("income", eps=1),
        Wrong,
        ["groupby('city', 'income', keys=...)"],
    ),
    "edges_missing": (lambda df: df.dp.histogram("income", eps=1), Wrong, ["edges=", "income"]),
    "edges_one": (lambda df: df.dp.histogram("income", edges=[1], eps=1), Wrong, ["edges=", "two or more"]),
    "edges_order": (lambda df: df.dp.histogram("income", edges=[0, 2, 1], eps=1), Wrong, ["increase", "2"]),
    "edges_equal": (lambda df: df.dp.histogram("income", edges=[0, 0], eps=1), Wrong, ["increase"]),
    "edges_nan": (lambda df: df.dp.histogram("income", edges=[0, NAN], eps=1), Wrong, ["edges[1]", "finite"]),
    "edges_text": (lambda df: df.dp.histogram("income", edges="0,1", eps=1), Wrong, ["edges=", "str"]),
    "edges_from_the_frame": (
        lambda df: df.dp.histogram("income", edges=np.array([0.0, 1.0]), eps=1),
        Wrong,
        ["edges=", "ndarray", "dp.public"],
    ),
    "histogram_of_text": (
        lambda df: df.dp.histogram("city", edges=[0, 1], eps=1),
        Wrong,
        ["histogram", "city"],
    ),
    "histogram_beside": (
        lambda df: df.dp.agg(h=dp.histogram("income", edges=[0, 1]), n=dp.count(), eps=1),
        Wrong,
        ["histogram", "alone"],
    ),
    "quantile_both": (
        lambda df: df.dp.quantile("income", 0.5, bounds=(0, 1), candidates=[1], eps=1),
        Wrong,
        ["bounds=", "candidates="],
    ),
    "quantile_above_1": (
        lambda df: df.dp.quantile("income", 50, bounds=(0, 1), eps=1),
        Wrong,
        ["q=50", "between 0 and 1"],
    ),
    "quantile_negative": (lambda df: df.dp.quantile("income", -0.5, bounds=(0, 1), eps=1), Wrong, ["q=-0.5"]),
    "quantile_nan": (lambda df: df.dp.quantile("income", NAN, bounds=(0, 1), eps=1), Wrong, ["q=nan"]),
    "quantile_order": (
        lambda df: df.dp.quantile("income", [0.5, 0.5], bounds=(0, 1), eps=1),
        Wrong,
        ["increasing"],
    ),
    "quantile_none": (lambda df: df.dp.quantile("income", [], bounds=(0, 1), eps=1), Wrong, ["q="]),
    "quantile_of_text": (lambda df: df.dp.median("city", bounds=(0, 1), eps=1), Wrong, ["city", "median"]),
    "quantile_law": (
        lambda df: df.dp.median("income", bounds=(0, 1), mechanism="laplace", eps=1),
        dp.MechanismError,
        ["'laplace'", "exponential"],
    ),
    "quantile_flip": (
        lambda df: df.dp.median("income", bounds=(0, 1), mechanism="permute_and_flip", eps=1),
        dp.MechanismError,
        ["permute and flip"],
    ),
    "candidates_order": (
        lambda df: df.dp.median("income", candidates=[2, 1], eps=1),
        Wrong,
        ["candidates=", "increase"],
    ),
    "candidates_from_the_frame": (
        lambda df: df.dp.median("income", candidates=np.array([1.0]), eps=1),
        Wrong,
        ["candidates=", "ndarray", "dp.public"],
    ),
    "top_k_open": (lambda df: df.dp.top_k("city", 2, eps=1), Wrong, ["candidates=", "delta=1e-6"]),
    "top_k_zero": (lambda df: df.dp.top_k("city", 0, candidates=["a"], eps=1), Wrong, ["k=0"]),
    "top_k_few": (lambda df: df.dp.top_k("city", 2, candidates=["a"], eps=1), Wrong, ["only 1 candidates"]),
    "top_k_set": (lambda df: df.dp.top_k("city", 1, candidates={"a"}, eps=1), Wrong, ["set"]),
    "bounds_range": (lambda df: df.dp.bounds("income", range=(1, 0), eps=1), Wrong, ["the wrong way round"]),
    "aggregate": (lambda df: df.dp.aggregate(eps=1), AttributeError, ["aggregate", "agg"]),
    "cout": (lambda df: df.dp.cout(eps=1), AttributeError, ["cout", "'count'"]),
    "clip_average": (lambda df: df.dp.clip_maen("income", eps=1), AttributeError, ["'clip_mean'"]),
    "plan_mean": (lambda df: df.dp.plan.mean("income"), AttributeError, ["df.dp.plan.clip_mean"]),
    "grouped_mean": (
        lambda df: df.dp.groupby("city", keys=["c2"]).mean("income", eps=1),
        AttributeError,
        ["mean", "clip_mean"],
    ),
    "epsilon": (lambda df: df.dp.count(epsilon=1), TypeError, ["'epsilon'", "eps="]),
    "agg_epsilon": (lambda df: df.dp.agg(n=dp.count(), epsilon=1), TypeError, ["'epsilon'", "eps="]),
    "budget": (lambda df: df.dp.count(budget=1), TypeError, ["'budget'", "eps="]),
    "lower_upper": (
        lambda df: df.dp.clip_mean("income", lower=0, upper=1, eps=1),
        TypeError,
        ["'lower'", "bounds=(low, high)"],
    ),
    "clip": (lambda df: df.dp.clip_sum("income", clip=(0, 1), eps=1), TypeError, ["'clip'", "bounds="]),
    "range": (lambda df: df.dp.clip_sum("income", range=(0, 1), eps=1), TypeError, ["'range'", "bounds="]),
    "small_b": (lambda df: df.dp.clip_sum("income", b=3, eps=1), TypeError, ["'b'", "B="]),
    "seed": (lambda df: df.dp.count(eps=1, seed=3), TypeError, ["'seed'"]),
    "random_state": (lambda df: df.dp.count(eps=1, random_state=3), TypeError, ["'random_state'"]),
    "noise": (lambda df: df.dp.count(eps=1, noise="laplace"), TypeError, ["'noise'", "mechanism="]),
    "level": (lambda df: df.dp.count(eps=1, level=0.9), TypeError, ["'level'", "ci="]),
    "confidence": (lambda df: df.dp.count(eps=1, confidence=0.9), TypeError, ["'confidence'", "ci="]),
    "name": (lambda df: df.dp.count(eps=1, name="n"), TypeError, ["'name'", "label="]),
    "sensitivity": (lambda df: df.dp.count(eps=1, sensitivity=1), TypeError, ["'sensitivity'"]),
    "count_bounds": (lambda df: df.dp.count("income", bounds=(0, 1), eps=1), TypeError, ["'bounds'"]),
    "key": (lambda df: df.dp.groupby("city", key=["c2"]).count(eps=1), TypeError, ["'key'", "'keys'"]),
    "groups": (
        lambda df: df.dp.groupby("city", groups=["c2"]).count(eps=1),
        TypeError,
        ["'groups'", "keys="],
    ),
    "series_mean": (lambda df: column(df, "income").dp.mean(eps=1), TypeError, ["Series", "df.dp.clip_mean"]),
    "series_count": (lambda df: column(df, "income").dp.count(eps=1), TypeError, ["Series", "df.dp.count"]),
    "question_lower": (lambda df: dp.clip_mean("income", lower=0), TypeError, ["lower", "bounds="]),
    "question_epsilon": (lambda df: dp.count(epsilon=0), TypeError, ["epsilon", "eps="]),
    "session_epsilon": (lambda df: dp.Session(epsilon=1), TypeError, ["epsilon", "eps="]),
    "session_positional": (lambda df: dp.Session(1), TypeError, ["eps="]),
    "brackets": (
        lambda df: df.dp.groupby("city", keys=["c2"])["income"].clip_mean(eps=1),
        TypeError,
        ["clip_mean('income'"],
    ),
    # ---- groups and keys ----
    "no_keys": (lambda df: df.dp.groupby("city").count(eps=1), Wrong, ["'city'", "keys="]),
    "keys_unique": (
        lambda df: df.dp.groupby("city", keys=column(df, "city").unique()).count(eps=1),
        Wrong,
        ["keys", "dp.public"],
    ),
    "keys_series": (
        lambda df: df.dp.groupby("city", keys=column(df, "city")).count(eps=1),
        Wrong,
        ["keys", "dp.public"],
    ),
    "keys_index": (
        lambda df: df.dp.groupby("city", keys=pd.Index(["c2"])).count(eps=1),
        Wrong,
        ["keys", "Index", "dp.public"],
    ),
    "keys_array": (
        lambda df: df.dp.groupby("city", keys=np.array(["c2"])).count(eps=1),
        Wrong,
        ["keys", "ndarray", "dp.public"],
    ),
    "keys_array_in_dict": (
        lambda df: df.dp.groupby("city", keys={"city": np.array(["c2"])}).count(eps=1),
        Wrong,
        ["keys['city']", "ndarray", "dp.public"],
    ),
    "keys_frame": (
        lambda df: df.dp.groupby("city", keys=pd.DataFrame({"city": ["c2"]})).count(eps=1),
        Wrong,
        ["keys", "DataFrame", "dp.public"],
    ),
    "keys_generator": (
        lambda df: df.dp.groupby("city", keys=(x for x in "ab")).count(eps=1),
        Wrong,
        ["keys", "generator"],
    ),
    "keys_number": (lambda df: df.dp.groupby("age", keys=3).count(eps=1), Wrong, ["keys", "int"]),
    "keys_set": (lambda df: df.dp.groupby("city", keys={"c2"}).count(eps=1), Wrong, ["set", "sorted(keys)"]),
    "keys_string": (lambda df: df.dp.groupby("city", keys="c2").count(eps=1), Wrong, ["keys='c2'", "['c2']"]),
    "keys_public_string": (
        lambda df: df.dp.groupby("city", keys=dp.public("ab")).count(eps=1),
        (Wrong, TypeError),
        ["'ab'"],
    ),
    "keys_public_number": (
        lambda df: df.dp.groupby("age", keys=dp.public(3)).count(eps=1),
        (Wrong, TypeError),
        ["public"],
    ),
    "keys_twice": (lambda df: df.dp.groupby("city", keys=["a", "a"]).count(eps=1), Wrong, ["'a'", "once"]),
    "keys_twice_as_two_types": (
        lambda df: df.dp.groupby("age", keys=[1, 1.0]).count(eps=1),
        Wrong,
        ["1", "more than once"],
    ),
    "keys_mixed": (
        lambda df: df.dp.groupby("zip", keys=["02139", 2139]).count(eps=1),
        Wrong,
        ["'zip'", "mixes", "str"],
    ),
    "keys_bool_and_int": (
        lambda df: df.dp.groupby("age", keys=[1, True]).count(eps=1),
        Wrong,
        ["'age'", "bool"],
    ),
    "keys_of_text_for_int": (
        lambda df: df.dp.groupby("age", keys=["30", "40"]).count(eps=1),
        Wrong,
        ["'30'", "'age'", "nt64"],
    ),
    "keys_of_int_for_text": (
        lambda df: df.dp.groupby("zip", keys=[2139]).count(eps=1),
        Wrong,
        ["2139", "'zip'"],
    ),
    "keys_too_fine_for_int": (
        lambda df: df.dp.groupby("age", keys=[1.5]).count(eps=1),
        Wrong,
        ["1.5", "'age'"],
    ),
    "keys_not_a_date": (
        lambda df: df.dp.groupby("day", keys=["2026-13-41"]).count(eps=1),
        Wrong,
        ["'2026-13-41'", "'day'"],
    ),
    "keys_not_tuples": (
        lambda df: df.dp.groupby("city", "age", keys=["c2", "c3"]).count(eps=1),
        Wrong,
        ["tuples of 2", "'c2'"],
    ),
    "keys_short_tuple": (
        lambda df: df.dp.groupby("city", "age", keys=[("c2", 1), ("c3",)]).count(eps=1),
        Wrong,
        ["tuples of 2"],
    ),
    "keys_dict_lacks": (
        lambda df: df.dp.groupby("city", "age", keys={"city": ["c2"]}).count(eps=1),
        Wrong,
        ["'age'"],
    ),
    "keys_dict_typo": (
        lambda df: df.dp.groupby("city", keys={"citi": ["c2"]}).count(eps=1),
        Wrong,
        ["'citi'", "'city'"],
    ),
    "keys_not_declared": (
        lambda df: df.dp.groupby("city", keys="declared").count(eps=1),
        Wrong,
        ["declared", "'city'", "pl.Enum"],
    ),
    "public_frame_lacks": (
        lambda df: df.dp.groupby("city", keys=dp.public(pd.DataFrame({"town": ["c2"]}))).count(eps=1),
        Wrong,
        ["'city'", "'town'"],
    ),
    "too_many_keys": (
        lambda df: df.dp.groupby("city", "age", keys={"city": ["a", "b"], "age": range(6_000_000)}).count(
            eps=1
        ),
        Wrong,
        ["12,000,000", "10,000,000"],
    ),
    "range_too_long": (
        lambda df: df.dp.groupby("age", keys=range(20_000_000)).count(eps=1),
        Wrong,
        ["20,000,000", "10,000,000"],
    ),
    "by_unknown": (lambda df: df.dp.groupby("citi", keys=["c2"]).count(eps=1), Wrong, ["'citi'", "'city'"]),
    "by_nothing": (lambda df: df.dp.groupby(keys=["c2"]).count(eps=1), Wrong, ["at least one column"]),
    "by_twice": (lambda df: df.dp.groupby("city", "city", keys=[("a", "a")]).count(eps=1), Wrong, ["'city'"]),
    "by_expression": (
        lambda df: df.dp.groupby(pl.col("city"), keys=["c2"]).count(eps=1),
        TypeError,
        ["groupby", "Expr"],
    ),
    "by_function": (lambda df: df.dp.groupby(str, keys=["c2"]).count(eps=1), (Wrong, TypeError), ["str"]),
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
        lambda df: df.dp.clip_mean("income", bounds=column(df, "income"), eps=1),
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
    "frame_of_series": (lambda df: dp.frame(column(df, "income")), TypeError, ["dp.frame", "Series"]),
    "frame_of_expression": (lambda df: dp.frame(pl.col("income")), TypeError, ["dp.frame", "Expr"]),
    "frame_of_dict": (lambda df: dp.frame({"income": [1]}), TypeError, ["dp.frame", "dict"]),
    "frame_of_path": (lambda df: dp.frame("t.parquet"), TypeError, ["dp.frame", "str"]),
}

FIRST_WORDS = list(CALLS)[: list(CALLS).index("no_keys")]
assert not set(CALLS) & set(MORE)
CALLS |= MORE


def refuse(name: str, kind: str) -> BaseException:
    """Make the call on one kind of frame; the session must be as before."""
    call, expected, _ = CALLS[name]
    with dp.Session(eps=10, delta=1e-3) as s:
        with pytest.raises(expected) as caught:
            call(FRAMES[kind])
        assert s.report().height == 0
        assert s.spent == 0
        assert s.releases == []
    return caught.value


def test_the_table_is_long_enough():
    assert len(CALLS) >= 300
    assert len(FIRST_WORDS) >= 20


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_call_is_named_and_costs_nothing(name):
    """Class and ledger on every kind of frame, and one text for all."""
    errors = {kind: refuse(name, kind) for kind in KINDS}
    texts = {kind: str(e) for kind, e in errors.items()}
    for part in CALLS[name][2]:
        assert part in texts["polars"], f"the message does not name {part!r}: {texts['polars']}"
    for kind in KINDS:
        assert str(CANARY) not in texts[kind]
        assert "7, 7, 31" not in texts[kind]
        assert "07:07:31" not in texts[kind]
        assert len(texts[kind]) < 600
    assert of_types(texts["pandas"]) == of_types(texts["polars"]) == of_types(texts["lazy"])
    assert texts["polars"].replace("DataFrame", "LazyFrame") == texts["lazy"].replace(
        "DataFrame", "LazyFrame"
    )


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_call_says_what_to_write(name):
    text = str(refuse(name, "polars"))
    assert any(guide in text for guide in GUIDES), text


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_call_leaves_no_engine_words(name):
    """Messages are dpframe's own: one paragraph, no chained exception, no upstream advice."""
    error = refuse(name, "polars")
    assert "\n" not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    assert "Consider hashing" not in str(error)
    assert not re.search(r"__init__\(\)|unexpected keyword|is not iterable|is not subscriptable", str(error))


def test_input_errors_are_value_errors_and_dpframe_errors():
    error = refuse("bounds_reversed", "pandas")
    assert isinstance(error, ValueError)
    assert isinstance(error, dp.DPError)


def test_an_unknown_verb_is_an_attribute_error_so_hasattr_works(kind):
    space = FRAMES[kind].dp
    assert hasattr(space, "clip_mean")
    assert not hasattr(space, "mean")
    assert getattr(space, "mean", None) is None


def test_names_that_a_thing_does_not_have_get_the_nearest_ones(tmp_path):
    """Like verbs; hasattr works, and what Python and notebooks look for by underscores is theirs."""
    book = dp.Ledger.create(tmp_path / "b.db", eps=1)
    with dp.Session(eps=2) as s:
        n = FRAMES["polars"].dp.count(eps=1)
        d = dp.difference(n, FRAMES["polars"].dp.count("age", eps=1))
    plan = FRAMES["polars"].dp.plan.count(eps=1)
    for thing, near in (
        (s, "spent"),
        (s.last, "value"),
        (plan, "release"),
        (plan.plan, "mechanism"),
        (d, "interval"),
        (book, "export"),
    ):
        typo = near[:-1]
        assert not hasattr(thing, typo)
        with pytest.raises(AttributeError, match=f"has no '{typo}'. Did you mean '{near}'") as caught:
            getattr(thing, typo)
        assert isinstance(caught.value, dp.InputError)
        with pytest.raises(AttributeError, match="no attribute '_repr_latex_'"):
            thing._repr_latex_()
    for ask in (lambda: n.interval(levl=0.9), lambda: s.last.interval(levl=0.9), lambda: d.interval(levl=1)):
        with pytest.raises(TypeError, match=r"interval has no argument 'levl'. Did you mean 'level'\?"):
            ask()
    with pytest.raises(TypeError, match=r"write needs a path. Hint: s.last.write\('table.parquet'\)"):
        s.last.write()


def test_an_upper_case_name_finds_its_column():
    assert "Did you mean 'income'" in str(refuse("upper_case_column", "polars"))


def test_hints_of_count_have_no_bounds():
    """Following the hint must work: count takes no bounds."""
    assert "bounds" not in str(refuse("eps_positional", "polars"))


def test_hints_of_delta_are_small():
    """delta=0.5 would be no privacy at all; nobody should be told to write it."""
    assert "delta=0.5" not in str(refuse("delta_text", "polars"))


def test_agg_words_are_not_taken_for_options():
    """agg(n="count") is a wrong question called n, not an unknown option."""
    assert "has no argument 'n'" not in str(refuse("agg_words", "polars"))


def test_a_number_as_column_of_count_is_pointed_out():
    """df.dp.count(0.5): the 0.5 was read as a column; say so."""
    assert "column" in str(refuse("eps_as_column", "polars"))


def test_one_bad_measure_refuses_the_whole_table(kind):
    """Three questions, the third wrong: nothing of the first two is released or charged."""
    bad = [
        dp.clip_sum("zip", bounds=(0, 1)),
        dp.clip_sum("salary", bounds=(0, 1)),
        dp.clip_mean("income"),
    ]
    with dp.Session(eps=10) as s:
        for question in bad:
            with pytest.raises(dp.InputError):
                FRAMES[kind].dp.agg(n=dp.count(), late=dp.clip_mean("late"), x=question, eps=1)
        assert s.report().height == 0


def test_a_question_about_two_columns_of_one_name_is_refused():
    df = pd.DataFrame([[1.0, 2.0, 3.0]], columns=["x", "x", "y"])
    with dp.Session(eps=1e6) as s:
        for ask in (
            lambda: df.dp.clip_sum("x", bounds=(0, 9), eps=1),
            lambda: df.dp.count("x", eps=1),
            lambda: df.dp.groupby("x", keys=[1.0]).count(eps=1),
        ):
            with pytest.raises(dp.InputError, match=r"2 columns named 'x'.*Hint"):
                ask()
        assert s.report().height == 0
        assert round(df.dp.clip_sum("y", bounds=(0, 9), eps=1e5), 2) == 3.0


@pytest.mark.parametrize("values", [[1, 2.5, None], ["1", "2", "x"], [1, "2", None]])
def test_object_columns_are_not_measured(values):
    """Object cells have no type to check, so the refusal is the same whatever they hold."""
    df = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    with dp.Session(eps=1) as s:
        with pytest.raises(dp.InputError, match=r"'x'.*object.*Hint: .*astype\(float\)") as caught:
            df.dp.clip_sum("x", bounds=(0, 1), eps=1)
        assert s.report().height == 0
    assert "2.5" not in str(caught.value)


def test_hints_name_the_column_that_was_asked():
    """A line that can be pasted: the column in the hint is the caller's."""
    assert "'zip'" in str(refuse("text_measured", "pandas")).split("Hint:")[1]


def test_hints_speak_the_library_of_the_frame():
    """astype is pandas; a Polars frame needs cast."""
    hint = str(refuse("text_measured", "polars")).split("Hint:")[1]
    assert "astype" not in hint or "cast(pl." in hint


def test_budget_exceeded_names_component_request_remaining_and_label(kind):
    with dp.Session(eps=1) as s:
        FRAMES[kind].dp.count(eps=0.75)
        with pytest.raises(dp.BudgetExceeded, match=r"eps is used up.*eps=0\.5.*0\.25") as caught:
            FRAMES[kind].dp.count(eps=0.5, label="again")
        error = caught.value
        assert error.component == "eps"
        assert error.requested == 0.5
        assert error.remaining == 0.25
        assert error.label == "again"
        assert "'again'" in str(error)
        assert s.spent == 0.75
        assert repr(FRAMES[kind].dp).startswith("<df.dp")


def test_every_refusal_has_the_same_text_on_another_frame_of_that_schema():
    """Messages come from parameters and schema: an empty frame is refused in the same words."""
    empty = FRAMES["polars"].clear()
    for name, (call, expected, _) in CALLS.items():
        with dp.Session(eps=10, delta=1e-3), pytest.raises(expected) as caught:
            call(empty)
        assert str(caught.value) == str(refuse(name, "polars")), name


WHOLE_CALL = re.compile(r"df\.dp\.(\w+\((?:[^()]|\([^()]*\))*\))")


def hinted_calls() -> list[str]:
    """Every call of a verb that a hint writes out in full."""
    found = set()
    for name in CALLS:
        found |= set(WHOLE_CALL.findall(str(refuse(name, "polars")).partition("Hint:")[2]))
    return sorted(c for c in found if "..." not in c and "groupby" not in c and "plan" not in c)


def test_calls_that_hints_write_out_can_be_pasted():
    """On a frame that has the columns they name, in a session that may grant them."""
    frame = TABLE.with_columns(x=pl.lit(1.0), y=pl.lit(2.0), w=pl.lit(0.5), column=pl.lit(1.0))
    calls = hinted_calls()
    assert len({c.partition("(")[0] for c in calls}) > 8
    with dp.Session(eps=1, delta=1e-5):
        for call in calls:
            assert isinstance(eval(f"df.dp.plan.{call}", {"df": frame}), dp.BoundPlan), call


def test_a_property_that_fails_says_so_in_its_own_words(tmp_path, monkeypatch):
    """And not that the name is not there."""

    def fails(*_):
        raise AttributeError("inside")

    ledger = dp.Ledger.create(tmp_path / "budget.db", eps=1)
    monkeypatch.setattr(ledger, "state", fails)
    with pytest.raises(AttributeError, match=r"^inside$"):
        ledger.spent  # noqa: B018
    ledger.close()
    for kind in (dp.Session, dp.Ledger, dp.BoundPlan, dp.Release):  # made in part, as copiers do
        half = kind.__new__(kind)
        with pytest.raises(AttributeError, match="no attribute '_"):
            half._budget  # noqa: B018
