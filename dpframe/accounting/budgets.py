"""What is typed as a budget and a policy: the parameters, and how they are read and checked."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypedDict

from dpframe.accounting.events import Number, rational
from dpframe.accounting.filter import ACCOUNTANTS, Budget
from dpframe.accounting.policy import NEIGHBORS, Limits, Policy
from dpframe.accounting.renyi import chosen_order
from dpframe.base.arguments import check_type, check_whole
from dpframe.errors import Arg, Call, InputError, InPython, check_text, did_you_mean

MOST_CONTRIBUTIONS = 1 << 24


class BudgetOptions(TypedDict, total=False):
    """A budget; :class:`dpframe.Session` says what each means."""

    eps: Number | None
    delta: Number | None
    delta_calls: Number | None
    rho: Number | None
    accountant: str | None
    order: Number | None


class DeclaredOptions(BudgetOptions, total=False):
    """A budget, and whom it protects."""

    neighbors: str | None
    unit: str | list[str] | None
    contributions: int | None


class SessionOptions(DeclaredOptions, total=False):
    """A budget, whom it protects, and how much of a unit counts unless a call says so."""

    max_groups: int | None
    max_rows_per_group: int | None
    max_rows: int | None


def read_unit(unit: Any) -> tuple[str, ...] | None:
    """The columns of the unit that was typed; None for one row."""
    if unit is None:
        return None
    names = tuple(unit) if isinstance(unit, list | tuple) else (unit,)
    if not names or len(set(map(str, names))) < len(names):
        raise InputError(
            Arg("unit", unit), " must name at least one column, and each once.", hint=Arg("unit", "user_id")
        )
    for n in names:
        check_type("unit", n, str, "column names", Arg("unit", "user_id"))
        check_text(n, "unit")
    return names


def read_policy(typed: DeclaredOptions) -> Policy:
    """The relation, and the unit or the number of rows, that were typed; InputError (TypeError for a unit that is no name)."""
    given: Any = typed.get("neighbors")
    neighbors = "add_remove" if given is None else given
    if not isinstance(neighbors, str) or neighbors not in NEIGHBORS:
        near = did_you_mean(neighbors if isinstance(neighbors, str) else "", NEIGHBORS)
        raise InputError(Arg("neighbors", neighbors), f" is not a relation. {near}")
    unit, rows = read_unit(typed.get("unit")), typed.get("contributions")
    if rows is None:
        return Policy(neighbors, unit)
    check_whole("contributions", rows, 1, MOST_CONTRIBUTIONS, right=36, said="2**24")
    if unit is not None:
        raise InputError(
            Arg("contributions", rows),
            " is for rows that don't say whose they are, and ",
            Arg("unit", typed.get("unit")),
            " says it.",
            hint=(Arg("unit"), " with ", Arg("max_rows", rows), ", or ", Arg("contributions"), " alone"),
        )
    return Policy(neighbors, None, rows)


def read_limits(typed: SessionOptions, policy: Policy) -> Limits:
    """How much of a unit counts unless a call says so; InputError where there is no unit."""
    limits = Limits(typed.get("max_groups"), typed.get("max_rows_per_group"), typed.get("max_rows")).checked()
    if policy.unit is None and limits != Limits():
        raise InputError(
            "max_groups, max_rows_per_group and max_rows go with ",
            Arg("unit"),
            ".",
            hint=Arg("unit", "user_id"),
        )
    return limits


def read_budget(typed: BudgetOptions, usual: str = "union") -> Budget:
    """The budget that was typed, or InputError; the accountant is the ``usual`` one unless one was named."""
    eps, delta, delta_calls, rho = (typed.get(k) for k in ("eps", "delta", "delta_calls", "rho"))
    order, named = typed.get("order"), typed.get("accountant")
    accountant: Any = usual if named is None else named
    if not isinstance(accountant, str) or accountant not in ACCOUNTANTS:
        near = did_you_mean(accountant if isinstance(accountant, str) else "", ACCOUNTANTS)
        pld = " A privacy-loss distribution is no filter: s.report(accountant='pld') reads one."
        raise InputError(
            Arg("accountant", accountant),
            f" is not one. {near}",
            InPython(pld * (accountant == "pld")),
            hint=Arg("accountant", "zcdp"),
        )
    if order is not None and accountant != "rdp":
        raise InputError(
            Arg("order", order),
            " goes with ",
            Arg("accountant", "rdp"),
            ".",
            hint=("leave ", Arg("order"), " out"),
        )
    if eps is None and rho is None:
        raise InputError(
            "A session needs a budget.",
            hint=(Call("dp.Session", eps=1), " or ", Call("dp.Session", eps=1, delta=1e-6)),
        )
    if eps is not None and rho is not None:
        raise InputError(
            "A session has one budget: ",
            Arg("eps"),
            " (with ",
            Arg("delta"),
            ") or ",
            Arg("rho"),
            ", not both.",
            hint=(Arg("eps", 1), ", ", Arg("delta", 1e-6)),
        )
    if rho is not None:
        if accountant not in ("union", "zcdp"):
            raise InputError(
                Arg("rho"),
                " is a budget of ",
                Arg("accountant", "zcdp"),
                f", not of {accountant!r}.",
                hint=(Arg("eps", 1), ", ", Arg("delta", 1e-6)),
            )
        if delta is not None:
            raise InputError(
                Arg("rho"),
                " goes with ",
                Arg("delta_calls"),
                ", not with ",
                Arg("delta"),
                ".",
                hint=Call("dp.Session", rho=0.1, delta_calls=1e-6),
            )
        calls = _small(delta_calls, "delta_calls")
        return Budget(None, calls, calls, rational(rho, "rho"))
    total = _small(delta, "delta")
    rules, whole = ACCOUNTANTS[accountant], rational(eps, "eps")
    calls = total * rules.calls if delta_calls is None else _small(delta_calls, "delta_calls")
    if calls > total:
        raise InputError(
            Arg("delta_calls", calls),
            " is more than ",
            Arg("delta", total),
            ".",
            hint=Arg("delta_calls", total / 2),
        )
    if not rules.by_eps and calls == total:
        raise InputError(
            Arg("accountant", accountant),
            " converts with delta - delta_calls, and that is 0.",
            hint=(Arg("delta", 1e-6), ", or ", Arg("accountant", "sum")),
        )
    at = _order(order, whole, total - calls) if accountant == "rdp" else None
    budget = Budget(whole, total, calls, accountant=accountant, order=at)
    if not rules.by_eps and not budget.rho_limit:
        raise InputError(
            Arg("accountant", accountant),
            *((" at ", Arg("order", at)) if at else ()),
            " grants nothing at ",
            Arg("eps", whole),
            ", ",
            Arg("delta", total - calls),
            ".",
            hint=(
                *((Arg("order", chosen_order(whole, total - calls)),) if at else ("a larger ", Arg("delta"))),
                ", or ",
                Arg("accountant", "sum"),
            ),
        )
    return budget


def _small(x: Any, name: str) -> Fraction:
    return Fraction(0) if x is None else rational(x, name, zero=True, below=1)


def _order(order: Any, eps: Fraction, delta: Fraction) -> Fraction:
    if order is None:
        return chosen_order(eps, delta)
    exact = rational(order, "order")
    if not Fraction(1001, 1000) <= exact <= 10**6:
        raise InputError(Arg("order", order), " must lie between 1.001 and 1e6.", hint=Arg("order", 12))
    return exact
