"""Who gets how much: the amounts of a budget plan's queries.

``even`` and ``weighted`` are settled beforehand: fixed amounts (eps, rho, share) and what a wanted error
costs are taken off the total, and the rest is divided (by weight) among the queries that name nothing.

``adaptive`` settles each amount at the query's turn. With ``left`` = the total, less what the queries before
it were charged, less the fixed amounts still to come, a query without a fixed amount is entitled to
``left * weight / (the weights from it onward)``. A wanted error is charged only what meets it, if that is
less than the entitlement; what it did not need is divided among those that follow.

Privacy: an amount is a function of typed numbers and of what was released before (costs, and the
intervals of released answers that ``rows=`` and ``relative_to=`` name). It is never a function of data
that was not released, so the plan is an adaptive analyst like any other, and the session's filter,
which grants adaptively chosen costs, bounds the whole. The filter decides, not this rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpframe.budget_plans.query import Query, QueryError
from dpframe.errors import Arg, show

ALLOCATIONS = ("even", "weighted", "adaptive")


@dataclass(frozen=True, slots=True)
class Turn:
    """What a query gets.

    Attributes
    ----------
    amount : Fraction
        In eps, or in rho for a plan with a budget in rho.
    decided : bool
        False while it may change with what earlier queries release.
    """

    amount: Fraction
    decided: bool


def check(queries: Mapping[str, Query], allocation: str, in_rho: bool) -> None:
    """Raise QueryError for a query that does not go with the allocation or the kind of budget."""
    before: list[str] = []
    for name, q in queries.items():
        if q.eps is not None and in_rho:
            raise QueryError(
                name, Arg("eps"), " does not go with a plan whose budget is in rho.", hint=Arg("rho", 0.01)
            )
        if q.rho is not None and not in_rho:
            raise QueryError(
                name, Arg("rho"), " does not go with a plan whose budget is in eps.", hint=Arg("eps", 0.5)
            )
        if q.weight is not None and allocation == "even":
            raise QueryError(
                name, Arg("weight"), " has no effect under 'even'.", hint=Arg("allocation", "weighted")
            )
        if q.weight is not None and q.error is not None and allocation != "adaptive":
            raise QueryError(
                name,
                Arg("weight"),
                " with ",
                Arg("error"),
                " has an effect under 'adaptive' only.",
                hint=Arg("allocation", "adaptive"),
            )
        for k, v in (("rows", q.rows), ("relative_to", q.relative_to)):
            if not isinstance(v, str):
                continue
            if allocation != "adaptive":
                raise QueryError(
                    name,
                    Arg(k, v),
                    " names a query, which needs ",
                    Arg("allocation", "adaptive"),
                    ".",
                    hint=Arg(k, 1000),
                )
            if v not in before or not queries[v].scalar:
                raise QueryError(
                    name, Arg(k, v), " is no earlier query with a number as its answer.", hint=Arg(k, 1000)
                )
        before.append(name)


def turns(
    queries: Mapping[str, Query],
    allocation: str,
    total: Fraction,
    charged: Mapping[str, Fraction],
    need: Callable[[str, Fraction | None], Fraction | None],
) -> dict[str, Turn]:
    """What each query gets, as far as it can be said now.

    Parameters
    ----------
    charged : mapping
        What the queries that were released so far cost.
    need : function of a query's name and a limit
        What meets its wanted error (at most the limit, where there is one); None if that depends on an
        answer that is not there yet.
    """
    fixed = {n: _fixed(q, total) for n, q in queries.items() if q.fixed}
    if allocation != "adaptive":
        for n, q in queries.items():
            if q.error is not None:
                fixed[n] = need(n, None) or Fraction(0)
    spent, decided, out = Fraction(0), True, {}
    names = list(queries)
    for i, n in enumerate(names):
        if n in charged:
            out[n] = Turn(charged[n], True)
            spent += charged[n]
            continue
        amount, sure = fixed.get(n), decided
        if amount is None:
            later = [x for x in names[i:] if x not in fixed]
            left = total - spent - sum((fixed[x] for x in names[i:] if x in fixed), Fraction(0))
            if left <= 0:
                raise QueryError(
                    n,
                    f"nothing is left for it of {show(total)}: the other queries take {show(total - left)}.",
                    hint="a larger budget, or smaller amounts",
                )
            weights = [queries[x].weight or Fraction(1) for x in later]
            amount = left * weights[0] / sum(weights)
            if queries[n].error is not None:
                needed = need(n, amount)
                sure = decided and needed is not None
                amount = amount if needed is None else min(amount, needed)
        else:
            sure = True
        if allocation == "adaptive" and queries[n].error is not None:
            decided = decided and sure
        out[n] = Turn(amount, sure)
        spent += amount
    return out


def _fixed(q: Query, total: Fraction) -> Fraction:
    if q.share is not None:
        return q.share * total
    amount = q.eps if q.eps is not None else q.rho
    assert amount is not None
    return amount
