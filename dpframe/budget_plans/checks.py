"""What a budget plan checks before anything is spent: names, files, units, budgets. No data."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from dpframe.accounting.filter import Budget, State
from dpframe.accounting.policy import Charge, Policy
from dpframe.accounting.refusals import exceeded
from dpframe.base.files import writable
from dpframe.budget_plans.query import Query, QueryError, query
from dpframe.budget_plans.sources import KEY_FILES, Named, named
from dpframe.errors import Arg, BudgetExceeded, Call, Code, InputError, did_you_mean, wrong_type
from dpframe.frames.contract import Source
from dpframe.statistics.base import Aggregate

WHOSE = {
    "total": "The ledger's budget",
    "scope": "The scope's budget",
    "lifetime": "The ledger's lifetime budget",
}


def named_sources(sources: Any) -> dict[str, Any]:
    if not isinstance(sources, Mapping):
        sources = {"data": sources}
    if not sources:
        raise InputError("A plan needs a source.", hint=Arg("sources", {"people": Code("df")}))
    out = {}
    for name, value in sources.items():
        if not isinstance(name, str):
            raise wrong_type(
                Arg("sources"), f" takes names, not a {type(name).__name__}.", hint="{'people': df}"
            )
        found = named(value)
        out[name] = value if found is None else found
    return out


def named_queries(queries: Any, sources: Mapping[str, Any]) -> dict[str, Query]:
    if not isinstance(queries, Mapping) or not queries:
        raise wrong_type(
            Arg("queries"),
            " takes a mapping of names to questions.",
            hint=("{'n': ", Call("dp.query", Call("dp.count")), "}"),
        )
    out = {}
    for name, value in queries.items():
        if not isinstance(name, str):
            raise wrong_type(
                Arg("queries"),
                f" takes names, not a {type(name).__name__}.",
                hint=("{'n': ", Call("dp.count"), "}"),
            )
        if not isinstance(value, Query | Aggregate):
            raise wrong_type(
                f"query {name!r} is a {type(value).__name__}.",
                hint=Arg(name, Call("dp.query", Call("dp.count"))),
            )
        q = value if isinstance(value, Query) else query(value)
        if q.source is None and len(sources) > 1:
            raise QueryError(name, f"it must say which source. {did_you_mean('', sources)}", about=("name",))
        if q.source is not None and q.source not in sources:
            raise QueryError(
                name,
                Arg("source", q.source),
                f" is not one. {did_you_mean(q.source, sources)}",
                about=("source",),
            )
        out[name] = q
    return out


def check_unit(policy: Policy, sources: Mapping[str, Source]) -> None:
    """Raise InputError unless every source has the unit's columns."""
    for u in policy.unit or ():
        for n, source in sources.items():
            try:
                source.column(u)
            except InputError as e:
                raise InputError(Arg("unit", u), f": source {n!r}: ", e) from None


def check_outputs(
    sources: Mapping[str, Any], queries: Mapping[str, Query], place: Callable[[str], str]
) -> None:
    """Raise QueryError for a file that can't be written, or that two queries, a source or keys have.

    ``place`` says where a typed path lies.
    """
    taken: dict[str, str] = {}
    for n, s in sources.items():
        for p in s.paths if isinstance(s, Named) else ():
            taken[os.path.realpath(place(p))] = f"the source {n!r}"
    for n, q in queries.items():
        if isinstance(q.keys, str) and q.keys.endswith(KEY_FILES):
            taken[os.path.realpath(place(q.keys))] = f"where the keys of {n!r} are"
    for n, q in queries.items():
        for path in q.outputs:
            try:
                where = place(path)
                full = os.path.realpath(where)
                if full in taken:
                    raise InputError(
                        Arg("outputs"), f" has {path!r}, which is {taken[full]}.", hint="another name"
                    )
                writable(where)  # as it will be written
            except InputError as e:
                raise QueryError(n, e, about=("outputs",)) from None
            taken[full] = f"an output of {n!r}"


def first_refused(
    budget: Budget, state: State, charges: Mapping[str, Charge], whose: str = ""
) -> tuple[str, BudgetExceeded] | None:
    """The first of some charges that a budget would not grant, one after another, and its refusal."""
    for name, charge in charges.items():
        after, component = budget.grant(charge.event, state, name)
        if after is None:
            return name, exceeded(budget, state, charge, component, name if whose else None, whose)
        state = after
    return None
