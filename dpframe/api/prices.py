"""The same question at other prices: what it would cost and how exact it would be. Nothing is charged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl

from dpframe.accounting.events import rational
from dpframe.api.bound_plan import BoundPlan
from dpframe.base.wrong_calls import checked
from dpframe.errors import Arg, InputError, Message, wrong_type
from dpframe.frames.columns import Column
from dpframe.mechanisms.base import Target
from dpframe.planning.pieces import Output
from dpframe.planning.plan import Plan
from dpframe.planning.planner import make_plan
from dpframe.session.forecast import forecast


class Types:
    """Column types by name: all that planning needs of a frame. What the frame lacks was checked when it was asked."""

    lacks: Mapping[str, Message] = {}

    def __init__(self, columns: Iterable[Column]) -> None:
        self._columns = {c.name: c for c in columns}

    def column(self, name: Any) -> Column:
        """The type of one column."""
        return self._columns[name]


def replanned(plan: Plan, target: Target, mechanism: str | None = None) -> Plan:
    """The same question at another price, or with another mechanism."""
    assert plan.request is not None
    request = replace(plan.request, target=target)
    if mechanism is not None:
        request = replace(request, mechanism=mechanism)
    return make_plan(request, Types(plan.columns), plan.policy)


def prices(name: str, values: Any) -> list[Fraction]:
    """A list of typed prices, exact."""
    if isinstance(values, int | float | Fraction) and not isinstance(values, bool):
        values = [values]
    if not isinstance(values, list | tuple | range | np.ndarray) or not len(values):
        raise InputError(Arg(name, values), " must be a list of numbers.", hint=Arg(name, [0.1, 0.5, 1]))
    return [rational(v, f"{name}[{i}]") for i, v in enumerate(values)]


def whole_plan(plan: Any) -> tuple[Plan, BoundPlan | None]:
    """The plan itself, and what binds it to a frame, if anything does."""
    if isinstance(plan, BoundPlan):
        return plan.plan, plan
    if isinstance(plan, Plan):
        return plan, None
    raise wrong_type(
        f"A plan is needed, not a {type(plan).__name__}.",
        hint="df.dp.plan.count(eps=0.5), which spends nothing",
    )


class Asked(NamedTuple):
    """At what a question is priced: the prices of one kind, and what its errors depend on or are fractions of."""

    axis: str
    prices: list[Fraction]
    rows: float | None
    expected: float

    def target(self, price: Fraction, delta: Fraction) -> Target:
        return Target(price, delta) if self.axis == "eps" else Target(None, Fraction(0), price)


def priced(plan: Plan, bound: BoundPlan | None, eps: Any, rho: Any, rows: Any, relative_to: Any) -> Asked:
    """What was typed beside a plan, or InputError: for a plan without errors, too."""
    if (eps is None) == (rho is None):
        raise InputError(
            "tradeoff takes prices: eps= or rho=, and one of them.", hint=Arg("eps", [0.1, 0.5, 1])
        )
    axis = "eps" if rho is None else "rho"
    asked = prices(axis, eps if rho is None else rho)
    if plan.request is None or not plan.outputs:
        raise InputError("This plan asks which groups occur, and that has no error.", hint="a plan of counts")
    size = bound._rows if rows is None and bound is not None else rows
    expected = 1.0 if relative_to is None else float(rational(relative_to, "relative_to"))
    return Asked(axis, asked, None if size is None else float(rational(size, "rows")), expected)


def error_of(plan: Plan, output: Output, rows: float | None) -> float:
    """The error of an output of a plan, or InputError where it depends on a number of rows that is not known."""
    error = output.error(plan.laws, rows)
    if error is None:
        raise InputError(
            f"The error of {output.name!r} depends on how many rows there are.",
            hint="rows=10_000, a public guess",
        )
    return error


@checked(example="dp.tradeoff(plan, eps=[0.1, 0.5, 1])")
def tradeoff(
    plan: BoundPlan | Plan,
    *,
    eps: Any = None,
    rho: Any = None,
    rows: float | None = None,
    relative_to: float | None = None,
) -> Any:
    """What one question would cost and how exact it would be, at several prices. Nothing is spent.

    Parameters
    ----------
    plan : BoundPlan or Plan
        ``df.dp.plan.<verb>(...)``; its own price is not used, its delta is.
    eps, rho : list of numbers
        One of them: the prices.
    rows : number, optional
        A public guess of the number of rows, where the error depends on it (default: the plan's).
    relative_to : number, optional
        An expected answer; errors are then fractions of it.

    Returns
    -------
    frame of the library of the frame that is asked (Polars when the plan is not bound)
        ``eps`` (or ``rho``), ``error`` (half-width of the 95 % interval in the answer's unit; with several
        outputs a column ``<output>_error`` for each), ``remaining`` (the eps that would still be granted
        after the call; null where it would be refused, or where nothing limits it). One row per price.

    Raises
    ------
    InputError
        For prices that are no positive numbers, a plan whose outputs have epsilons of their own, and an
        error that depends on ``rows`` when they are not given.
    TypeError
        For anything but a plan.

    Notes
    -----
    Privacy: made from the plan and from the account; no frame is read.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"x": [1.0, 2.0]})
    >>> with dp.Session(eps=1):
    ...     dp.tradeoff(df.dp.plan.count(eps=0.5), eps=[0.25, 0.5, 2]).rows()
    [(0.25, 12.0, 0.75), (0.5, 6.0, 0.5), (2.0, 1.0, None)]
    """
    bare, bound = whole_plan(plan)
    asked, request = priced(bare, bound, eps, rho, rows, relative_to), bare.request
    assert request is not None
    if any(a.eps is not None for a in request.aggregates):
        raise InputError(
            "The outputs of this plan have epsilons of their own.", hint="plan it with one eps= for the call"
        )
    columns: dict[str, list[float | None]] = {
        asked.axis: [],
        **{c: [] for c in _error_names(bare)},
        "remaining": [],
    }
    for price in asked.prices:
        made = replanned(bare, asked.target(price, request.target.delta))
        columns[asked.axis].append(float(price))
        for c, o in zip(_error_names(made), made.outputs):
            columns[c].append(error_of(made, o, asked.rows) / asked.expected)
        after = forecast(None if bound is None else bound._session, made.event).after
        columns["remaining"].append(None if after is None else float(after))
    if bound is not None and bound._source.library == "pandas":
        return pd.DataFrame(columns, dtype="float64")
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Float64))


def _error_names(plan: Plan) -> list[str]:
    return ["error"] if len(plan.outputs) == 1 else [f"{o.name}_error" for o in plan.outputs]
