"""What a question would leave of the budgets that pay for it, and what its error would be at other prices.

Privacy: everything here is computed from plans and from accounts, which are public; nothing is charged, and
no frame is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl

from dpframe.budget import Cost, Event, least, rational
from dpframe.calls import checked
from dpframe.errors import InputError, LedgerError, NoSession, show, typed
from dpframe.mechanisms.base import Target
from dpframe.session import Session, current

if TYPE_CHECKING:
    from dpframe.bound import BoundPlan
    from dpframe.plan import Plan
    from dpframe.schema import Column


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a call would leave.

    Attributes
    ----------
    state : {"open", "refused", "unlimited", "unclear", "unread", "unbound"}
        Whether all who pay would grant it, one would not, nothing limits it, it is unclear who pays, a
        ledger can't be read, or the plan is not for a session.
    before, after : Cost or None
        What would be granted now, and after it.
    total : Fraction or None
        The eps of the budget that is nearest to its end, if it is one in eps.
    """

    state: str
    before: Cost | None = None
    after: Cost | None = None
    total: Fraction | None = None

    @property
    def texts(self) -> list[str]:
        """In words; empty where there is nothing to say."""
        if self.state == "unclear":
            return ["a budgeted session is open but not in use here"]
        if self.state == "unread":
            return ["its ledger can't be read"]
        if self.state == "unbound":
            return []
        if self.before is None:
            return ["none is open: the call is recorded, and nothing limits the total"]
        would = f"would still grant {_asked(self.before)}"
        if self.after is None:
            return [f"{would}, and refuse this call"]
        return [f"{would}; after this call {_asked(self.after)}"]


def forecast(session: Session | None, event: Event) -> Forecast:
    """What ``session`` (or the current one) and those it stands in would leave after ``event``."""
    try:
        payer = current(session)
        budgets = _budgets(payer)
    except NoSession:
        return Forecast("unclear")
    except LedgerError:
        return Forecast("unread")
    if not budgets:
        return Forecast("unlimited")
    before = least([b.remaining(state) for b, state in budgets])
    states = [b.grant(event, state, "")[0] for b, state in budgets]
    shares = [(left.eps or Fraction(0)) / b.eps for (b, s) in budgets if b.eps for left in [b.remaining(s)]]
    eps = [b.eps for b, _ in budgets if b.eps]
    total = None if len(eps) < len(budgets) else eps[shares.index(min(shares))]
    if any(s._split for s in payer._payers()):
        return Forecast("refused", Cost(Fraction(0), Fraction(0), Fraction(0)), None, total)
    after = [b.remaining(s) for (b, _), s in zip(budgets, states) if s is not None]
    if len(after) < len(budgets):
        return Forecast("refused", before, None, total)
    return Forecast("open", before, least(after), total)


def _budgets(payer: Session) -> list[tuple[Any, Any]]:
    """Every budget that a call is charged to, with its state."""
    found: list[tuple[Any, Any]] = []
    for s in payer._payers():
        if not s._budget.unlimited:
            found.append((s._budget, s._state))
        if s._ledger is not None:
            found += s._ledger.state(s._scope).values()
    return found


def _asked(left: Cost) -> str:
    if left.eps or not left.rho:
        return f"eps={show(left.eps)}"
    return f"rho={float(left.rho):.6g} of Gaussian noise"


# ---- the same question at other prices ----


class Types:
    """Column types by name: all that planning needs of a frame. What the frame lacks was checked when it was asked."""

    lacks: Mapping[str, str] = {}

    def __init__(self, columns: Iterable[Column]) -> None:
        self._columns = {c.name: c for c in columns}

    def column(self, name: Any) -> Column:
        """The type of one column."""
        return self._columns[name]


def replanned(plan: Plan, target: Target, mechanism: str | None = None) -> Plan:
    """The same question at another price, or with another mechanism."""
    from dpframe.planner import make_plan

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
        raise InputError(f"{name}={typed(values)} must be a list of numbers. Hint: {name}=[0.1, 0.5, 1]")
    return [rational(v, f"{name}[{i}]") for i, v in enumerate(values)]


def whole_plan(plan: Any) -> tuple[Plan, BoundPlan | None]:
    """The plan itself, and what binds it to a frame, if anything does."""
    from dpframe.bound import BoundPlan
    from dpframe.plan import Plan

    if isinstance(plan, BoundPlan):
        return plan.plan, plan
    if isinstance(plan, Plan):
        return plan, None
    raise TypeError(
        f"A plan is needed, not a {type(plan).__name__}. Hint: df.dp.plan.count(eps=0.5), which spends nothing"
    )


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
    if (eps is None) == (rho is None):
        raise InputError("tradeoff takes prices: eps= or rho=, and one of them. Hint: eps=[0.1, 0.5, 1]")
    name = "eps" if rho is None else "rho"
    asked = prices(name, eps if rho is None else rho)
    request = bare.request
    if request is None or not bare.outputs:
        raise InputError("This plan asks which groups occur, and that has no error. Hint: a plan of counts")
    if any(a.eps is not None for a in request.aggregates):
        raise InputError(
            "The outputs of this plan have epsilons of their own. Hint: plan it with one eps= for the call"
        )
    if rows is None and bound is not None:
        rows = bound._rows
    size = None if rows is None else float(rational(rows, "rows"))
    expected = Fraction(1) if relative_to is None else rational(relative_to, "relative_to")
    columns: dict[str, list[float | None]] = {
        name: [],
        **{c: [] for c in _error_names(bare)},
        "remaining": [],
    }
    for price in asked:
        target = Target(price, request.target.delta) if rho is None else Target(None, Fraction(0), price)
        made = replanned(bare, target)
        columns[name].append(float(price))
        for c, o in zip(_error_names(made), made.outputs):
            error = o.answer.error(made.laws, size)
            if error is None:
                raise InputError(
                    f"The error of {o.name!r} depends on how many rows there are. Hint: rows=10_000, a public guess"
                )
            columns[c].append(error / float(expected))
        after = forecast(None if bound is None else bound._session, made.event).after
        columns["remaining"].append(None if after is None else float(after))
    if bound is not None and bound._source.library == "pandas":
        return pd.DataFrame(columns, dtype="float64")
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Float64))


def _error_names(plan: Plan) -> list[str]:
    return ["error"] if len(plan.outputs) == 1 else [f"{o.name}_error" for o in plan.outputs]
