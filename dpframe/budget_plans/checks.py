"""What a budget plan checks before anything is spent: names, files, units, budgets. No data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dpframe.accounting.filter import Budget, State
from dpframe.accounting.policy import Charge
from dpframe.accounting.refusals import exceeded
from dpframe.base.files import writable
from dpframe.budget_plans.allocation import Turn
from dpframe.budget_plans.query import AMOUNTS, Query, QueryError, query
from dpframe.budget_plans.questions import Questions
from dpframe.budget_plans.sources import Named, identity, is_key_file, named
from dpframe.errors import Arg, BudgetExceeded, Call, Code, InputError, did_you_mean, wrong_type
from dpframe.ledger.book import Ledger
from dpframe.session.session import Session
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


def check_outputs(
    sources: Mapping[str, Any],
    queries: Mapping[str, Query],
    place: Callable[[str], str],
    ledger: Mapping[str, str],
) -> None:
    """Raise QueryError for a file that can't be written, or that another query, a source, keys or the ledger has.

    ``place`` says where a typed path lies; ``ledger`` names the files of a ledger by path. Files are known by
    device and inode: links and other spellings are the same file. A release's facts lie beside it as .json.
    """
    taken = {identity(p): what for p, what in ledger.items()}
    for n, s in sources.items():
        for p in s.paths if isinstance(s, Named) else ():
            taken[identity(place(p))] = f"the source {n!r}"
    for n, q in queries.items():
        if is_key_file(q.keys):
            taken[identity(place(q.keys))] = f"where the keys of {n!r} are"
    for n, q in queries.items():
        for path in q.outputs:
            try:
                where = place(path)
                for file in (where, f"{where}.json"):
                    if identity(file) in taken:
                        raise InputError(
                            Arg("outputs"),
                            f" has {path!r}, which is {taken[identity(file)]}.",
                            hint="another name",
                        )
                writable(where)  # as it will be written
            except InputError as e:
                raise QueryError(n, e, about=("outputs",)) from None
            taken |= dict.fromkeys(map(identity, (where, f"{where}.json")), f"an output of {n!r}")


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


def ledger_files(ledger: Ledger | None) -> dict[str, str]:
    """The files of a ledger by path: its own, those that SQLite keeps beside it, and the anchor's."""
    if ledger is None:
        return {}
    own = [f"{ledger.path}{x}" for x in ("", "-wal", "-shm", "-journal")]
    anchor = [f"{ledger.anchor}{x}" for x in ("", ".new")]
    return {**dict.fromkeys(own, "the ledger's"), **dict.fromkeys(anchor, "the ledger's anchor")}


def check_budget(session: Session, asked: Questions, turns: Mapping[str, Turn]) -> None:
    """Raise QueryError where the plan's own budget would not grant the queries one after another, or where a query
    needs an interval of an answer that will have none."""
    plans = {n: asked.bind(n, t.amount).plan for n, t in turns.items()}
    for n, q in asked.queries.items():
        for k, ref in (("rows", q.rows), ("relative_to", q.relative_to)):
            if not isinstance(ref, str):
                continue
            if not plans[ref].scalar:
                raise QueryError(
                    n, Arg(k, ref), " is a query whose answer is a table.", hint=Arg(k, 1000), about=(k,)
                )
            if not all(o.answer.ranged for o in plans[ref].outputs):
                raise QueryError(
                    n, Arg(k, ref), " is a query whose answer has no interval.", hint=Arg(k, 1000), about=(k,)
                )
    costs = {n: p.charge for n, p in plans.items()}
    refused = first_refused(session.budget, State(), costs)
    if refused is not None:
        name, over = refused
        raise QueryError(name, "more than the plan's budget: ", over, about=(over.component, *AMOUNTS))


def check_ledger(session: Session, asked: Questions, turns: Mapping[str, Turn]) -> None:
    """Raise BudgetExceeded where the ledger would not grant the queries that were not paid for yet.

    And QueryError for one that was paid for as another question (where its amount is settled).
    """
    ledger, scope = session.ledger, session.scope
    if ledger is None:
        return
    paid = {e.request_id: e for e in ledger.entries(scope) if e.scope == scope and not e.failed}
    charges = {n: asked.bind(n, t.amount).plan.charge for n, t in turns.items()}
    for n, charge in charges.items():
        entry = paid.get(asked.requests[n])
        if entry is not None and turns[n].decided and entry.fingerprint != charge.details().fingerprint:
            raise QueryError(
                n,
                f"it was charged for another question, or with other parameters: {entry.question}, {entry.cost}"
                f" ({entry.time.isoformat(' ', 'seconds')}). Nothing was spent.",
                hint="another name for the query, or for the plan",
            )
    costs = {n: charge for n, charge in charges.items() if asked.requests[n] not in paid}
    for domain, (budget, state) in ledger.state(scope).items():
        refused = first_refused(budget, state, costs, WHOSE[domain])
        if refused is not None:
            raise refused[1]
