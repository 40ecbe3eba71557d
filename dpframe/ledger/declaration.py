"""What a ledger is opened with: budget, policy, scopes and window, fixed in its first row."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import Any

from dpframe.accounting.budgets import read_budget
from dpframe.accounting.filter import Budget
from dpframe.accounting.policy import Policy
from dpframe.errors import Arg, Call, InputError, did_you_mean

FORMAT = 1
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_MICROSECOND = dt.timedelta(microseconds=1)
_LONGEST = dt.timedelta(days=365_250)  # "now" less a window is a date of the calendar


@dataclass(frozen=True, slots=True)
class Declaration:
    """The first row of a ledger. ``window`` counts microseconds."""

    format: int
    ledger: str
    time: str
    version: str
    policy: Policy
    budget: Budget
    per_scope: Budget | None = None
    lifetime: Budget | None = None
    window: int | None = None
    anchor: str | None = None

    @property
    def window_length(self) -> dt.timedelta | None:
        return None if self.window is None else dt.timedelta(microseconds=self.window)

    def window_text(self) -> str:
        """What the budget promises over time, in words."""
        window = self.window_length
        if window is None:
            return f"The budget of {self.budget.text()} is for all releases of this ledger together, for its whole life."
        each = length(window)
        text = (
            f"The budget of {self.budget.text()} holds for everything that is released within any {each}, given what"
            f" was released before. It is not a budget for a lifetime: over a time T it adds up to that of T / ({each}),"
            f" rounded up, windows; over a year to {-(-dt.timedelta(days=365) // window)} times as much."
        )
        if self.lifetime is None:
            return f"{text} Nothing limits the total over all windows."
        return f"{text} All windows together have {self.lifetime.text()}."


def read_part(given: Any, name: str, accountant: str) -> Budget | None:
    """The budget of ``per_scope=`` or ``lifetime=``."""
    if given is None:
        return None
    hint = Arg(name, Call("dict", eps=0.1))
    if not isinstance(given, dict):
        raise InputError(Arg(name, given), " must be a dict of budget numbers.", hint=hint)
    for k in given:
        if k not in ("eps", "delta", "delta_calls", "rho"):
            raise InputError(
                Arg(name),
                f" has no {k!r}. {did_you_mean(str(k), ('eps', 'delta', 'delta_calls', 'rho'))}",
                hint=hint,
            )
    if ("eps" in given) + ("rho" in given) != 1:
        raise InputError(Arg(name, given), " needs eps or rho, one of them.", hint=hint)
    numbers: Any = given
    return read_budget(numbers, accountant)


def read_window(given: Any) -> int | None:
    """A length of time in microseconds: "30d", "12h", "90m", "45s", "2w", or a timedelta."""
    if given is None:
        return None
    hint = Arg("window", "30d")
    if isinstance(given, str):
        parts = re.fullmatch(r"(\d{1,6})([smhdw])", given.strip())
        if parts is None:
            raise InputError(
                Arg("window", given), " must be a whole number and one of s, m, h, d, w.", hint=hint
            )
        length = dt.timedelta(**{_UNITS[parts[2]]: int(parts[1])})
    elif isinstance(given, dt.timedelta):
        length = given
    else:
        raise InputError(Arg("window", given), " must be text or a timedelta.", hint=hint)
    if length <= dt.timedelta(0):
        raise InputError(Arg("window", given), " must be longer than nothing.", hint=hint)
    if length > _LONGEST:
        raise InputError(
            Arg("window", given),
            " is longer than a thousand years.",
            hint=("leave ", Arg("window"), " out: the budget is then for life"),
        )
    return length // _MICROSECOND


def length(window: dt.timedelta) -> str:
    """A window's length as one would say it."""
    for name in ("days", "hours", "minutes", "seconds"):
        n, rest = divmod(window, dt.timedelta(**{name: 1}))
        if not rest:
            return f"{n} {name[:-1] if n == 1 else name}"
    return str(window)
