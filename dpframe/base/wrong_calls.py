"""Wrong calls, and what to write instead: unknown arguments, missing ones, too many by position."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from dpframe.errors import Arg, InPython, did_you_mean, wrong_type

F = TypeVar("F", bound=Callable[..., Any])

# An argument, and what other libraries and other habits call it.
_OTHER_NAMES = {
    "eps": "epsilon e budget privacy_budget",
    "bounds": "lower upper low high clip range limits bound max min",
    "B": "b",
    "mechanism": "noise mech",
    "ci": "confidence level alpha",
    "label": "name",
    "keys": "groups categories",
    "error": "accuracy",
    "rows": "size",
    "edges": "bins breaks",
    "q": "percentile",
    "norm": "clip_norm max_norm",
    "weights": "weight",
    "round": "digits decimals",
    "neighbors": "neighbours relation adjacency",
    "unit": "user privacy_unit",
    "max_rows": "max_rows_per_unit",
    "contributions": "max_contributions contribution_bound max_contributions_per_unit",
}
MEANT = {other: name for name, others in _OTHER_NAMES.items() for other in others.split()}
SEEDS = ("seed", "random_state", "rng")
_SPELLED = {
    "edges": "edges=[0, 10, 20, 50], which you type",
    "q": "q=0.99",
    "bounds": "bounds=(low, high)",
    "neighbors": "neighbors='replace_one'",
    "unit": "unit='user_id'",
    "contributions": "contributions=36",
}
_ELSEWHERE = {
    "unit": "dp.Session(eps=1, unit='user_id')",
    "neighbors": "dp.Session(eps=1, neighbors='replace_one')",
    "contributions": "dp.Session(eps=1, contributions=36)",
    "delta_calls": "dp.Session(eps=1, delta=1e-6, delta_calls=1e-6)",
    "eps": "groupby(...).dp_agg(..., eps=0.5)",
    "delta": "groupby(...).dp_agg(..., delta=1e-6)",
    "ci": "groupby(...).dp_agg(..., ci=0.95)",
    "by": "groupby('city', keys=[...])",
    "groupby": "groupby('city', keys=[...])",
    "group_by": "groupby('city', keys=[...])",
}


def checked(*, example: str, options: Iterable[str] = ()) -> Callable[[F], F]:
    """Make wrong calls of a function say what to write; a right call costs nothing more.

    Parameters
    ----------
    example : str
        A right call, for hints.
    options : names, optional
        What a function with ``**options`` takes there, each None unless given. They are in the signature that is
        shown, and others are refused.
    """
    names = tuple(options)

    def decorate(f: F) -> F:
        own: list[inspect.Parameter] = []
        if names:
            own = [p for p in inspect.signature(f).parameters.values() if p.kind is not p.VAR_KEYWORD]
        known = frozenset((*(p.name for p in own if p.kind is not p.VAR_POSITIONAL), *names))

        @functools.wraps(f)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                if not names or known.issuperset(kwargs):
                    return f(*args, **kwargs)
            except TypeError as e:
                if e.__traceback__ is None or e.__traceback__.tb_next is not None:
                    raise  # the arguments fitted; it was raised inside
                raise (_wrong(call, len(args), kwargs, example) or e) from None
            raise _wrong(call, len(args), kwargs, example) or AssertionError(kwargs)

        if names:
            shown = [inspect.Parameter(o, inspect.Parameter.KEYWORD_ONLY, default=None) for o in names]
            call.__signature__ = inspect.Signature([*own, *shown])  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


def _wrong(f: Callable[..., Any], given: int, kwargs: dict[str, Any], right: str) -> TypeError | None:
    """What is wrong with a call whose arguments do not fit."""
    parameters = list(inspect.signature(f).parameters.values())
    if parameters and parameters[0].name in ("self", "cls"):
        parameters, given = parameters[1:], given - 1
    title = f.__qualname__.split(".")[0] if f.__name__ == "__init__" else f.__name__
    positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    named = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    starred = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if not starred and given > len(positional):
        names = [p.name.replace("column", "the column") for p in positional]
        first = f"only {' and '.join(names)}" if names else "nothing"
        if not named:
            return wrong_type(f"{title} takes {first}, and {given} came.", hint=InPython(right))
        rest = "rest" if positional else "arguments"
        return wrong_type(
            f"{title} takes {first} by position, and {given} came so.",
            hint=InPython(f"name the {rest}, e.g. {right}"),
        )
    known = [p.name for p in (*positional, *named)]
    for name in kwargs:
        if name not in known:
            return unknown_argument(title, name, known)
    for p in positional[max(given, 0) :]:
        if p.default is p.empty and p.name not in kwargs:
            return wrong_type(f"{title} needs a {p.name}.", hint=InPython(right))
    for p in named:
        if p.default is p.empty and p.name not in kwargs:
            return wrong_type(f"{title} needs ", Arg(p.name), ".", hint=InPython(right))
    return None


def unknown_argument(where: str, name: str, known: Sequence[str]) -> TypeError:
    """The TypeError for an argument that ``where`` does not have."""
    meant = MEANT.get(name.lower())
    if meant in known:
        return wrong_type(
            f"{where} has no argument {name!r}.", hint=InPython(_SPELLED.get(str(meant), f"{meant}="))
        )
    if name in SEEDS:
        return wrong_type(
            f"{where} has no argument {name!r}: noise that can be repeated can be taken off again.",
            hint="leave it out",
        )
    place = _ELSEWHERE.get(meant or name)
    if place is not None and name.replace("_", "") not in known:
        return wrong_type(f"{where} has no argument {name!r}.", hint=InPython(place))
    return TypeError(f"{where} has no argument {name!r}. {did_you_mean(name, known)}")
