"""What dpframe raises.

Every message is made from parameters and schema alone, names what is wrong and what to write
instead, and never holds a value that was read from a cell.
"""

from __future__ import annotations

import datetime as dt
import difflib
import logging
import os
import sys
import warnings
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol


class Cost(Protocol):
    """An exact cost, as a refusal tells it (:class:`dpframe.Cost`)."""

    @property
    def eps(self) -> Fraction | None: ...

    @property
    def delta(self) -> Fraction: ...

    @property
    def rho(self) -> Fraction | None: ...


class DPError(Exception):
    """Base of everything dpframe raises on purpose."""


class InputError(DPError, ValueError):
    """A parameter or the schema is not what the call needs. Nothing was spent."""


class NoSession(DPError):
    """A budgeted session exists but is not in use here, or a session is required and there is none."""


class BudgetExceeded(DPError):
    """The session would not grant this call. Nothing was spent and no data was read.

    Attributes
    ----------
    requested, remaining : Cost
        What the call asked for and what the session still grants.
    component : {"eps", "delta", "rho", "law"}
        The part that ran out; "law" if the session's accountant can't add up a charge of this kind.
    label : str or None
        The label of the refused call.
    """

    def __init__(
        self, message: str, *, requested: Cost, remaining: Cost, component: str, label: str | None = None
    ) -> None:
        super().__init__(message)
        self.requested = requested
        self.remaining = remaining
        self.component = component
        self.label = label

    def __reduce__(self) -> tuple[object, ...]:
        return (_budget_exceeded, (str(self), self.requested, self.remaining, self.component, self.label))


def _budget_exceeded(
    message: str, requested: Cost, remaining: Cost, component: str, label: str | None
) -> BudgetExceeded:
    return BudgetExceeded(message, requested=requested, remaining=remaining, component=component, label=label)


class LedgerError(DPError):
    """The record of what was spent can't be trusted or written; nothing is released."""


class MechanismError(DPError):
    """A mechanism is unknown, can't serve the request, or does not keep what it claims."""


class ReleaseFailed(DPError):
    """The engine failed after the charge. The charge stands; the cause is named without any data."""


class DPWarning(UserWarning):
    """Something a careful analyst wants to know: a repeat, the ambient session, an id column."""


class UnknownName(InputError, AttributeError):
    """A verb that dpframe does not have."""


class NearNames:
    """A public object: an attribute that it does not have is answered with the nearest names."""

    __slots__ = ()
    if not TYPE_CHECKING:  # a checker would take every name for one that is there

        def __getattr__(self, name: str) -> object:
            if hasattr(type(self), name):  # it is there, and failed: with its own words, then
                return object.__getattribute__(self, name)
            known = [] if name.startswith("_") else [x for x in dir(self) if not x.startswith("_")]
            raise unknown_name(type(self).__name__, name, known)


def unknown_name(owner: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for a name that ``owner`` does not have; what starts with an underscore is asked by machines."""
    if name.startswith("_"):
        return AttributeError(f"{owner} has no attribute {name!r}")
    return UnknownName(f"{owner} has no {name!r}. {did_you_mean(name, known)}")


def did_you_mean(name: str, known: Iterable[str], *, n: int = 3) -> str:
    """Return ``"Did you mean 'a' or 'b'?"`` for the nearest known names, or the list when none is near."""
    names = [str(k) for k in known]
    near = difflib.get_close_matches(name, names, n=n, cutoff=0.6)
    if near:
        return "Did you mean " + " or ".join(repr(x) for x in near) + "?"
    shown = ", ".join(repr(x) for x in names[:12]) + (", ..." if len(names) > 12 else "")
    return f"There are: {shown}." if names else "There are none."


def typed(value: object) -> str:
    """Quote what a caller typed. Anything that may hold cells (a Series, an array) is named by type only."""
    if isinstance(
        value, str | bool | int | float | complex | Fraction | Decimal | type(None) | dt.date | dt.timedelta
    ):
        text = repr(value)
        return text if len(text) <= 60 else text[:57] + "..."
    if type(value) in (list, tuple) and len(value) <= 5:  # type: ignore[arg-type]
        inner = ", ".join(typed(v) for v in value)  # type: ignore[attr-defined]
        return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    return f"a {type(value).__name__}"


def show(x: object) -> str:
    """Print an exact number the way a person typed it."""
    if isinstance(x, Fraction):
        if abs(x) > 10**300:
            return f"about 2**{x.numerator.bit_length() - x.denominator.bit_length()}"
        if x.denominator == 1:
            return str(x.numerator) if abs(x.numerator) < 10**15 else f"{float(x):.6g}"
        text = f"{float(x):.6g}"
        return text if Fraction(text) == x or x.denominator > 1000 else f"{x.numerator}/{x.denominator}"
    return repr(x)


def warn(text: str) -> None:
    level, here = 2, os.path.dirname(__file__)
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(here):
        frame, level = frame.f_back, level + 1
    try:
        warnings.warn(text, DPWarning, stacklevel=level)
    except DPWarning:  # warnings are errors here; the answer has been paid for and must not be lost
        logging.getLogger("dpframe").warning(text)
