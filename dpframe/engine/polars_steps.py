"""Steps of Polars plans that are row by row, or stay within groups, by their names in the plan's tree."""

from __future__ import annotations

import polars as pl

FUNCTIONS = frozenset(
    [
        "abs",
        "negate",
        "sqrt",
        "cbrt",
        "log",
        "log1p",
        "exp",
        "pow",
        "sign",
        "sin",
        "cos",
        "tan",
        "cot",
        "arcsin",
        "arccos",
        "arctan",
        "atan2",
        "sinh",
        "cosh",
        "tanh",
        "arcsinh",
        "arccosh",
        "arctanh",
        "degrees",
        "radians",
        "floor",
        "ceil",
        "round",
        "round_sig_figs",
        "truncate",
        "clip",
        "cut",
        "to_physical",
        "reinterpret",
        "as_struct",
        "fill_null",
        "coalesce",
        "replace",
        "replace_strict",
        "max_horizontal",
        "min_horizontal",
        "sum_horizontal",
        "mean_horizontal",
    ]
)
BOOLEAN = frozenset(
    [
        "AllHorizontal",
        "AnyHorizontal",
        "IsBetween",
        "IsClose",
        "IsFinite",
        "IsIn",
        "IsInfinite",
        "IsNan",
        "IsNotNan",
        "IsNotNull",
        "IsNull",
        "Not",
    ]
)
BITS = frozenset(["CountOnes", "CountZeros", "LeadingOnes", "LeadingZeros", "TrailingOnes", "TrailingZeros"])
NOT_EVEN_IN = {  # all functions of a family but these, which look at other rows, or guess from the first ones, or draw
    "StringFunction": "ConcatVertical JsonDecode Strptime ToDecimal",
    "TemporalFunction": "",
    "ListFunction": "Sample ToStruct",
    "ArrayFunction": "Explode ToStruct",
    "StructFunction": "WithFields",
}
LITERAL_REST = frozenset(
    [
        "replace",
        "replace_strict",
        "BooleanFunction.IsIn",
        "StringFunction.ContainsAny",
        "StringFunction.ReplaceMany",
        "StringFunction.ExtractMany",
        "StringFunction.FindMany",
    ]
)  # given a column as a second input, they look at all of it
WITHIN_UNITS = frozenset(
    [
        "rank",
        "cum_sum",
        "cum_count",
        "cum_min",
        "cum_max",
        "cum_prod",
        "shift",
        "diff",
        "pct_change",
        "reverse",
        "interpolate",
        "fill_null_with_strategy",
        "null_count",
        "arg_max",
        "arg_min",
        "drop_nulls",
        "drop_nans",
        "unique",
        "product",
        "skew",
        "kurtosis",
        "entropy",
        "quantile",
        "top_k",
        "mode",
        "rle_id",
        "peak_max",
        "peak_min",
    ]
)  # one result for a group, or one for each of its rows, from the rows of that group
WITHIN_BOOLEAN = frozenset(
    ["All", "Any", "HasNulls", "IsDuplicated", "IsUnique", "IsFirstDistinct", "IsLastDistinct"]
)
EQUALITIES = frozenset(["Eq", "NotEq", "EqValidity", "NotEqValidity"])
OF_CATEGORIES = frozenset(
    [
        "coalesce",
        "fill_null",
        "replace",
        "replace_strict",
        "as_struct",
        "BooleanFunction.IsIn",
        "BooleanFunction.IsNull",
        "BooleanFunction.IsNotNull",
        "ListFunction.Concat",
        "ListFunction.Get",
        "StructFunction.FieldByName",
    ]
)  # what is the same whatever number a category has; that depends on other rows
GUESSED = (
    pl.Date,
    pl.Datetime,
    pl.Time,
    pl.Duration,
)  # types that text is read as by a format of the first cells
SKIPPED = (
    "skip_rows",
    "skip_lines",
    "skip_rows_after_header",
)  # of a CSV: options that leave out its first rows
FAILS = (
    "fails on some cells (a form with strict=False or a default gives null; of times, cast(pl.Datetime('ns'), strict=False)"
    " first, without a zone or in UTC)"
)
UNSEEN = {
    "anonymousfunction": "a python function",
    "opaque python mapfunction": "a PYTHON function of the frame",
}
SPACES = {
    "StringFunction": "str.",
    "TemporalFunction": "dt.",
    "ListFunction": "list.",
    "ArrayFunction": "arr.",
    "StructFunction": "struct.",
    "RollingFunction": "rolling_",
    "EwmFunction": "ewm_",
}
READ = (15, 16)  # versions of the tree that these names were checked against: Polars 2.0 and 2.1


def bare_name(name: object) -> str:
    """A function as people write it: ``StringFunction.ToDecimal`` is ``str.to_decimal``."""
    family, _, member = str(name).rpartition(".")
    word = "".join(f"_{c.lower()}" if c.isupper() else c for c in member).lstrip("_") if family else member
    return SPACES.get(family, "") + word
