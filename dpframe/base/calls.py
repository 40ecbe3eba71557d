"""Wrong calls, and what to write instead: unknown arguments, unknown verbs, too much by position."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dpframe.errors import UnknownName, did_you_mean, typed

F = TypeVar("F", bound=Callable[..., Any])

_MEANT = {
    "epsilon": "eps",
    "e": "eps",
    "budget": "eps",
    "privacy_budget": "eps",
    "lower": "bounds",
    "upper": "bounds",
    "low": "bounds",
    "high": "bounds",
    "clip": "bounds",
    "range": "bounds",
    "limits": "bounds",
    "bound": "bounds",
    "max": "bounds",
    "min": "bounds",
    "b": "B",
    "noise": "mechanism",
    "mech": "mechanism",
    "confidence": "ci",
    "level": "ci",
    "alpha": "ci",
    "name": "label",
    "groups": "keys",
    "categories": "keys",
    "accuracy": "error",
    "size": "rows",
    "bins": "edges",
    "breaks": "edges",
    "percentile": "q",
    "clip_norm": "norm",
    "max_norm": "norm",
    "weight": "weights",
    "digits": "round",
    "decimals": "round",
    "neighbours": "neighbors",
    "relation": "neighbors",
    "adjacency": "neighbors",
    "user": "unit",
    "privacy_unit": "unit",
    "max_rows_per_unit": "max_rows",
}
_SPELLED = {
    "edges": "edges=[0, 10, 20, 50], which you type",
    "q": "q=0.99",
    "bounds": "bounds=(low, high)",
    "neighbors": "neighbors='replace_one'",
    "unit": "unit='user_id'",
}
MEANT_VERBS = {
    "mean": "clip_mean",
    "avg": "clip_mean",
    "average": "clip_mean",
    "sum": "clip_sum",
    "total": "clip_sum",
    "size": "count",
    "len": "count",
    "length": "count",
    "shape": "count",
    "aggregate": "agg",
    "group": "groupby",
    "by": "groupby",
    "std": "clip_std",
    "stddev": "clip_std",
    "var": "clip_var",
    "variance": "clip_var",
    "cov": "clip_cov",
    "covariance": "clip_cov",
    "corr": "clip_corr",
    "correlation": "clip_corr",
    "weighted_mean": "clip_wmean",
    "wmean": "clip_wmean",
    "hist": "histogram",
    "quantiles": "quantile",
    "percentile": "quantile",
    "nunique": "n_unique",
    "count_distinct": "n_unique",
    "mode": "top_k",
    "topk": "top_k",
    "nlargest": "top_k",
}
_STATISTICS = ("describe",)
_CROSSED = ("crosstab", "pivot", "pivot_table")
_EXTREMES = {"min": "0.01", "max": "0.99"}
_ELSEWHERE = {
    "unit": "dp.Session(eps=1, unit='user_id')",
    "neighbors": "dp.Session(eps=1, neighbors='replace_one')",
    "delta_calls": "dp.Session(eps=1, delta=1e-6, delta_calls=1e-6)",
    "eps": "groupby(...).dp_agg(..., eps=0.5)",
    "delta": "groupby(...).dp_agg(..., delta=1e-6)",
    "ci": "groupby(...).dp_agg(..., ci=0.95)",
    "by": "groupby('city', keys=[...])",
    "groupby": "groupby('city', keys=[...])",
    "group_by": "groupby('city', keys=[...])",
}


def checked(more: Sequence[str] = (), *, example: str | None = None) -> Callable[[F], F]:
    """Make wrong calls of a function say what to write.

    Parameters
    ----------
    more : names
        Keyword arguments that the function takes through ``**options``; shown in its signature.
    example : str, optional
        A right call, for hints; questions have their own.
    """

    def decorate(f: F) -> F:
        signature = inspect.signature(f)
        parameters = list(signature.parameters.values())
        method = bool(parameters) and parameters[0].name in ("self", "cls")
        positional = [p for p in parameters[method:] if p.kind is p.POSITIONAL_OR_KEYWORD]
        starred = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        open_names = any(p.name == "named" for p in parameters if p.kind is p.VAR_KEYWORD)
        named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        known = [*(p.name for p in positional), *named, *more]
        title = f.__qualname__.split(".")[0] if f.__name__ == "__init__" else f.__name__
        right = example or _example(title, named)

        @functools.wraps(f)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = len(args) - method
            if not starred and given > len(positional):
                names = [p.name.replace("column", "the column") for p in positional]
                first = f"only {' and '.join(names)}" if names else "nothing"
                raise TypeError(
                    f"{title} takes {first} by position, and {given} came so. Hint: name the"
                    f" {'rest' if positional else 'arguments'}, e.g. {right}"
                    if named or more
                    else f"{title} takes {first}, and {given} came. Hint: {right}"
                )
            if not open_names:
                for name in kwargs:
                    if name not in known:
                        raise unknown_argument(title, name, known)
            for p in positional[max(given, 0) :]:
                if p.default is p.empty and p.name not in kwargs:
                    raise TypeError(f"{title} needs a {p.name}. Hint: {right}")
            for p in parameters:
                if p.kind is p.KEYWORD_ONLY and p.default is p.empty and p.name not in kwargs:
                    raise TypeError(f"{title} needs {p.name}=. Hint: {right}")
            return f(*args, **kwargs)

        shown = [p for p in parameters if p.kind is not p.VAR_KEYWORD]
        shown += [inspect.Parameter(o, inspect.Parameter.KEYWORD_ONLY, default=None) for o in more]
        shown += [p for p in parameters if open_names and p.kind is p.VAR_KEYWORD]
        call.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


_EXAMPLES = {
    "quantile": "'x', 0.5, bounds=(0, 100)",
    "top_k": "'x', 3, candidates=[...]",
    "histogram": "'x', edges=[0, 10, 20]",
    "vector_sum": "['x', 'y'], norm=1",
    "vector_mean": "['x', 'y'], norm=1",
    "clip_wmean": "'x', weights='w', bounds=(0, 100)",
}


def _example(title: str, named: Sequence[str]) -> str:
    if title == "Session":
        return "dp.Session(eps=1, delta=1e-6)"
    if title in ("Ledger", "create"):
        return "dp.Ledger.create('budget.db', eps=3), then dp.Ledger('budget.db')"
    if title == "groupby" or title == "partition_by":
        return f"{title}('city', keys=[...])"
    if title in _EXAMPLES:
        return f"{title}({_EXAMPLES[title]}, eps=0.5)"
    if "bounds" in named:
        return f"{title}('x', bounds=(0, 100), eps=0.5)"
    return f"{title}('x', eps=0.5)"


def unknown_argument(where: str, name: str, known: Sequence[str]) -> TypeError:
    """The TypeError for an argument that ``where`` does not have."""
    meant = _MEANT.get(name.lower())
    if meant in known:
        return TypeError(f"{where} has no argument {name!r}. Hint: {_SPELLED.get(str(meant), f'{meant}=')}")
    if name in ("seed", "random_state", "rng"):
        return TypeError(
            f"{where} has no argument {name!r}: noise that can be repeated can be taken off again. Hint: leave it out"
        )
    place = _ELSEWHERE.get(meant or name)
    if place is not None and name.replace("_", "") not in known:
        return TypeError(f"{where} has no argument {name!r}. Hint: {place}")
    return TypeError(f"{where} has no argument {name!r}. {did_you_mean(name, known)}")


def not_a_question(name: str, value: object, options: Sequence[str], where: str = "agg") -> TypeError:
    """The TypeError for ``agg(name=value)`` where value is no question: a mistyped option, or a word."""
    near = did_you_mean(name, options)
    words = (*MEANT_VERBS, "count", "clip_sum", "clip_mean")
    if isinstance(value, str) and name not in _MEANT and (value in words or not near.startswith("Did")):
        word = MEANT_VERBS.get(value, value if value in words else "clip_mean")
        asked = "dp.count()" if word == "count" else f"dp.{word}('x', bounds=(0, 100))"
        return TypeError(f"{name}={typed(value)} is not a question. Hint: {name}={asked}")
    if name.lower() in _MEANT or name in ("seed", "random_state", "rng") or near.startswith("Did"):
        return unknown_argument(where, name, options)
    return TypeError(
        f"{name}={typed(value)} is not a question. Hint: {name}=dp.count() or {name}=dp.clip_mean('x', B=100)"
    )


def unknown_verb(owner: str, name: str, known: Sequence[str], columns: Sequence[object] = ()) -> UnknownName:
    """The error for a verb that ``owner`` does not have; a column's name gets the question about it."""
    if name in columns:
        return UnknownName(
            f"{owner}.{name} is a column. Hint: {owner}.clip_mean({name!r}, bounds=(0, 100), eps=0.5)"
        )
    if name in ("filter", "query", "where", "head", "sample", "assign", "with_columns", "drop", "sort"):
        return UnknownName(
            f"{owner} has no {name!r}. Hint: change the frame first, e.g. df[df.x > 5].dp.count(eps=0.5)"
        )
    if name in _EXTREMES:
        return UnknownName(
            f"{owner} has no {name!r}: it is one row's value. Hint: an extreme quantile, {owner}.quantile('x',"
            f" {_EXTREMES[name]}, bounds=(0, 100), eps=0.5)"
        )
    if name in _CROSSED:
        return UnknownName(
            f"{owner} has no {name!r}. Hint: df.dp.groupby('a', 'b', keys={{'a': [...], 'b': [...]}}).count(eps=0.5)"
        )
    if name in _STATISTICS:
        return UnknownName(
            f"{owner} has no {name!r} (yet). Hint: count by bins that you type, e.g. df.assign(bin=pd.cut(df.x, [0, 10,"
            " 20])).dp.groupby('bin', keys=list(pd.IntervalIndex.from_breaks([0, 10, 20]))).count(eps=0.5)"
        )
    meant = MEANT_VERBS.get(name)
    if meant in known:
        one, two = "'x', bounds=(0, 100), eps=0.5", "['x', 'y'], bounds=(0, 100), eps=0.5"
        example = {"clip_mean": one, "clip_sum": one, "clip_var": one, "clip_std": one}
        example |= {"clip_cov": two, "clip_corr": two, "clip_wmean": one.replace(",", ", weights='w',", 1)}
        example |= {"quantile": one.replace(",", ", 0.5,", 1), "histogram": "'x', edges=[0, 10, 20], eps=0.5"}
        example |= {"n_unique": "'x', eps=0.5", "top_k": "'x', 3, candidates=[...], eps=0.5"}
        return UnknownName(
            f"{owner} has no {name!r}. Hint: {owner}.{meant}({example.get(str(meant), '...')})"
        )
    if name == "plan":
        return UnknownName(f"{owner} has no 'plan'. Hint: df.dp.plan.groupby(...)")
    return UnknownName(f"{owner} has no {name!r} (yet). {did_you_mean(name, known)}")
