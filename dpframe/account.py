"""A session's account: what was typed as its budget, and a line for every charge."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import polars as pl

from dpframe.accounting.accountants import ACCOUNTANTS
from dpframe.accounting.filter import Budget
from dpframe.accounting.renyi import chosen_order
from dpframe.budget import Cost, Event, rational
from dpframe.errors import InputError, did_you_mean, show, typed

if TYPE_CHECKING:
    from dpframe.release import Release


@dataclass(slots=True)
class Entry:
    """One line of a session's account. Public: no value that was read from a frame."""

    index: int
    time: dt.datetime
    label: str | None
    question: str
    mechanism: str
    cost: Cost
    repeat_of: int | None
    private: bool
    closes: bool  # whether this charge ended the adding up of eps
    event: Event  # as it was asked for; ``cost`` is what it was charged as
    frame: int = 0  # which frame object it was asked of
    replayed: bool = False  # whether the answer was paid for and stored earlier
    release: Release | None = field(default=None, repr=False)


def as_frame(entries: Sequence[Entry]) -> pl.DataFrame:
    """The account as a frame; the columns are described in ``Session.report``."""
    schema: dict[str, Any] = {
        "index": pl.Int64,
        "label": pl.String,
        "question": pl.String,
        "eps": pl.Float64,
        "delta": pl.Float64,
        "rho": pl.Float64,
        "mechanism": pl.String,
        "time": pl.Datetime("us", "UTC"),
        "repeat_of": pl.Int64,
        "private": pl.Boolean,
        "replayed": pl.Boolean,
    }
    rows = [
        (
            e.index,
            e.label,
            e.question,
            None if e.cost.eps is None else float(e.cost.eps),
            float(e.cost.delta),
            None if e.cost.rho is None else float(e.cost.rho),
            e.mechanism,
            e.time,
            e.repeat_of,
            e.private,
            e.replayed,
        )
        for e in entries
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def read_unit(unit: Any) -> tuple[str, ...] | None:
    if unit is None:
        return None
    names = tuple(unit) if isinstance(unit, list | tuple) else (unit,)
    if not names or len(set(map(str, names))) < len(names):
        raise InputError(
            f"unit={typed(unit)} must name at least one column, and each once. Hint: unit='user_id'"
        )
    for n in names:
        if not isinstance(n, str):
            raise TypeError(f"unit= takes column names, not a {type(n).__name__}. Hint: unit='user_id'")
    return names


def read_budget(
    eps: Any, delta: Any, delta_calls: Any, rho: Any, accountant: Any = "union", order: Any = None
) -> Budget:
    """The budget that was typed, or InputError. The accountant's rules are in ``dpframe.accounting``."""
    if not isinstance(accountant, str) or accountant not in ACCOUNTANTS:
        near = did_you_mean(accountant if isinstance(accountant, str) else "", ACCOUNTANTS)
        pld = " A privacy-loss distribution is no filter: s.report(accountant='pld') reads one." * (
            accountant == "pld"
        )
        raise InputError(f"accountant={typed(accountant)} is not one. {near}{pld} Hint: accountant='zcdp'")
    if order is not None and accountant != "rdp":
        raise InputError(f"order={typed(order)} goes with accountant='rdp'. Hint: leave order= out")
    if eps is None and rho is None:
        raise InputError("A session needs a budget. Hint: dp.Session(eps=1) or dp.Session(eps=1, delta=1e-6)")
    if eps is not None and rho is not None:
        raise InputError(
            "A session has one budget: eps= (with delta=) or rho=, not both. Hint: eps=1, delta=1e-6"
        )
    if rho is not None:
        if accountant not in ("union", "zcdp"):
            raise InputError(
                f"rho= is a budget of accountant='zcdp', not of {accountant!r}. Hint: eps=1, delta=1e-6"
            )
        if delta is not None:
            raise InputError(
                "rho= goes with delta_calls=, not with delta=. Hint: dp.Session(rho=0.1, delta_calls=1e-6)"
            )
        calls = (
            Fraction(0) if delta_calls is None else rational(delta_calls, "delta_calls", zero=True, below=1)
        )
        return Budget(None, calls, calls, rational(rho, "rho"))
    total = Fraction(0) if delta is None else rational(delta, "delta", zero=True, below=1)
    rules, whole = ACCOUNTANTS[accountant], rational(eps, "eps")
    calls = (
        total * rules.calls
        if delta_calls is None
        else rational(delta_calls, "delta_calls", zero=True, below=1)
    )
    if calls > total:
        raise InputError(
            f"delta_calls={show(calls)} is more than delta={show(total)}. Hint: delta_calls={show(total / 2)}"
        )
    if not rules.by_eps and calls == total:
        raise InputError(
            f"accountant={accountant!r} converts with delta - delta_calls, and that is 0. Hint: delta=1e-6, or"
            " accountant='sum'"
        )
    at = _order(order, whole, total - calls) if accountant == "rdp" else None
    budget = Budget(whole, total, calls, accountant=accountant, order=at)
    if not rules.by_eps and not budget.rho_limit:
        raise InputError(
            f"accountant={accountant!r}{f' at order={show(at)}' if at else ''} grants nothing at eps={show(whole)},"
            f" delta={show(total - calls)}. Hint: {f'order={show(chosen_order(whole, total - calls))}' if at else 'a larger delta='}, or accountant='sum'"
        )
    return budget


def _order(order: Any, eps: Fraction, delta: Fraction) -> Fraction:
    if order is None:
        return chosen_order(eps, delta)
    exact = rational(order, "order")
    if not Fraction(1001, 1000) <= exact <= 10**6:
        raise InputError(f"order={typed(order)} must lie between 1.001 and 1e6. Hint: order=12")
    return exact
