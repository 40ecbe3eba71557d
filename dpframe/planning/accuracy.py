"""The least epsilon for a margin of error that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpframe.accounting.policy import Policy
from dpframe.errors import Arg, Code, InputError
from dpframe.mechanisms.base import Target
from dpframe.planning.plan import Plan
from dpframe.planning.planner import make_plan
from dpframe.planning.request import Request


def solve_error(request: Request, source: Any, policy: Policy, error: float, rows: float | None) -> Plan:
    """The plan with the least eps (three significant digits) whose 95 % error is at most ``error``, whatever the data."""

    def plan_at(eps: Fraction) -> Plan:
        return make_plan(replace(request, target=Target(eps, request.target.delta)), source, policy)

    def meets(eps: Fraction) -> bool:
        errors = plan_at(eps).error(rows)
        values = list(errors.values()) if isinstance(errors, dict) else [errors]
        if any(v is None for v in values):
            raise InputError(
                Arg("error"),
                " depends on how many rows there are: give a public guess as ",
                Arg("rows"),
                ", for planning only.",
                hint=(Arg("error", Code(f"{error:g}")), ", ", Arg("rows", 10_000)),
            )
        return bool(max(values) <= error)

    most = plan_at(Fraction(10) ** 9)
    if not meets(Fraction(10) ** 9) and any(o.cases(most.laws, rows or 1) for o in most.outputs):
        raise InputError(
            Arg("error", Code(f"{error:g}")),
            " can't be met with any eps: it is a promise for all data, and the worst that the bounds allow are off by"
            f" up to {max(o.error(most.laws, rows) or 0 for o in most.outputs):g} at every price.",
            hint=(Arg("eps", 1), ", whose explain() names the error of better data"),
        )
    return plan_at(least_meeting(meets, f"error={error}"))


def least_meeting(meets: Callable[[Fraction], bool], what: str) -> Fraction:
    """The least amount with three significant digits for which ``meets`` holds (it is monotone)."""
    exponent = 0
    while not meets(Fraction(10) ** exponent):
        exponent += 1
        if exponent > 9:
            raise InputError(f"{what} can't be met with any eps up to 10**9.")
    while exponent > -9 and meets(Fraction(10) ** (exponent - 1)):
        exponent -= 1
    low, high = 100, 1000  # times 10**(exponent - 3)
    unit = Fraction(10) ** (exponent - 3)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle * unit) else (middle, high)
    return high * unit
