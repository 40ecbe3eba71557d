"""What is typed into a lazy Polars plan and can't be used: patterns, formats, periods, bases, edges.

Polars looks at them when it meets the first cell, or the first that is not null. So a typing mistake would fail after
the charge, and whether it fails may depend on a cell. Here each is tried on a made-up cell, before the charge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import polars as pl

from dpframe.engine.polars_fallible import NOT_LITERAL, Type
from dpframe.engine.polars_steps import bare_name

Trial = Callable[
    [pl.Expr, Sequence[Any], Sequence[Any]], pl.Expr
]  # of a cell, the tree's data, the other inputs


def _pattern(x: pl.Expr, data: Sequence[Any], values: Sequence[Any]) -> pl.Expr:
    return x.str.contains(values[0])


_NOT_PATTERNS = {  # where the tree says so: (place, value)
    "StringFunction.Contains": ((1, True), (2, False)),
    "StringFunction.CountMatches": ((1, True),),
    "StringFunction.Find": ((1, True), (2, False)),
    "StringFunction.Replace": ((2, True),),
    "StringFunction.SplitRegex": ((2, False),),
}
_TRIALS: dict[str, Trial] = {
    "StringFunction.Contains": _pattern,
    "StringFunction.CountMatches": _pattern,
    "StringFunction.Find": _pattern,
    "StringFunction.Replace": _pattern,
    "StringFunction.SplitRegex": _pattern,
    "StringFunction.Extract": _pattern,
    "StringFunction.ExtractAll": _pattern,
    "StringFunction.JsonPathMatch": lambda x, data, values: x.str.json_path_match(values[0]),
    "StringFunction.ToInteger": lambda x, data, values: x.str.to_integer(base=values[0], strict=False),
    "TemporalFunction.ToString": lambda x, data, values: x.dt.to_string(data[1]),
    "TemporalFunction.OffsetBy": lambda x, data, values: x.dt.offset_by(values[0]),
    "TemporalFunction.Round": lambda x, data, values: x.dt.round(values[0]),
    "TemporalFunction.Truncate": lambda x, data, values: x.dt.truncate(values[0]),
    "pow": lambda x, data, values: x.pow(values[0]),
}


def wrong_literal(frame: pl.LazyFrame) -> str | None:
    """The first function of the plan that was given something it can't use; None where none is seen.

    What the plan's tree does not show (other versions of Polars, Python functions) is passed over: it fails, if it does,
    in the engine, and that is what its charge bought.
    """
    try:
        plan = frame._ldf.with_optimizations(pl.QueryOptFlags.none()._pyoptflags).visit()
        return _in_node(plan, plan.get_node())
    except Exception:
        return None


def _in_node(plan: Any, at: int) -> str | None:
    plan.set_node(at)
    try:
        inputs, exprs = plan.get_inputs(), plan.get_exprs()
    except Exception:  # a node that the tree does not show
        return None
    for i in inputs:
        found = _in_node(plan, i)
        if found is not None:
            return found
    if inputs:  # expressions are of the columns of what they are made from
        plan.set_node(inputs[0])
    return next((f for e in exprs if (f := _in_expression(plan, e.node)) is not None), None)


def _in_expression(plan: Any, at: int) -> str | None:
    try:
        e = plan.view_expression(at)
        kind = type(e).__name__
        if kind == "Function" and not _usable(plan, e):
            return bare_name(e.function_data[0])
    except Exception:  # one that it does not show
        return None
    return next((f for i in inputs_of(e) if (f := _in_expression(plan, i)) is not None), None)


def _usable(plan: Any, e: Any) -> bool:
    name, data = str(e.function_data[0]), tuple(e.function_data)
    if name == "cut":
        breaks, labels = data[1], data[2]
        return len(set(breaks)) == len(breaks) and (labels is None or len(labels) == len(breaks) + 1)
    if name not in _TRIALS or any(data[place] == value for place, value in _NOT_PATTERNS.get(name, ())):
        return True
    values = tuple(literal(plan.view_expression(i)) for i in e.input[1:])
    if any(v is NOT_LITERAL or v is None for v in values):
        return True
    return _works(name, data[1:], values, plan.get_dtype(e.input[0]))


@lru_cache(maxsize=1024)
def _works(name: str, data: tuple[Any, ...], values: tuple[Any, ...], dtype: Type) -> bool:
    cell = pl.lit("") if dtype.base_type() == pl.String else pl.lit(1)
    try:
        pl.select(_TRIALS[name](cell.cast(dtype), (name, *data), values))
    except pl.exceptions.PolarsError:
        return False
    return True


def literal(e: Any) -> Any:
    """The value of a literal; NOT_LITERAL for anything else."""
    return e.value if type(e).__name__ == "Literal" else NOT_LITERAL


def inputs_of(e: Any) -> list[int]:
    """The expressions that an expression is made of."""
    found: list[int] = []
    for name in (
        "input",
        "left",
        "right",
        "predicate",
        "truthy",
        "falsy",
        "expr",
        "arguments",
        "by",
        "idx",
        "offset",
        "length",
        "function",
    ):
        x = getattr(e, name, None)
        found += [x] if isinstance(x, int) else [i for i in (x or ()) if isinstance(i, int)]
    return found
