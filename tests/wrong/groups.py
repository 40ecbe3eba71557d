"""Wrong calls: the words that people type first, groups and keys."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl

import dpframe as dp
from wrong.series import series

Wrong, NAN = dp.InputError, float("nan")

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
    "series_mean": (lambda df: series(df, "income").dp.mean(eps=1), TypeError, ["Series", "df.dp.clip_mean"]),
    "series_count": (lambda df: series(df, "income").dp.count(eps=1), TypeError, ["Series", "df.dp.count"]),
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
        lambda df: df.dp.groupby("city", keys=series(df, "city").unique()).count(eps=1),
        Wrong,
        ["keys", "dp.public"],
    ),
    "keys_series": (
        lambda df: df.dp.groupby("city", keys=series(df, "city")).count(eps=1),
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
}
