"""What dpframe raises, and the words of its messages.

Every message is made from parameters and schema alone, names what is wrong and what to write
instead, and never holds a value that was read from a cell.

A message is a row of pieces: texts, and parameters and calls as data (:class:`Arg`, :class:`Call`), which
:class:`Words` says as Python does. Whoever typed a release file or a command gets the same pieces in the
words of those (``dpframe.budget_plans.wording``).
"""

from __future__ import annotations

import datetime as dt
import difflib
import logging
import os
import re
import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

E = TypeVar("E", bound=Exception)


class Cost(Protocol):
    """An exact cost, as a refusal tells it (:class:`dpframe.Cost`)."""

    @property
    def eps(self) -> Fraction | None: ...

    @property
    def delta(self) -> Fraction: ...

    @property
    def rho(self) -> Fraction | None: ...


class Unset:
    """The value of a parameter that is only named."""


@dataclass(frozen=True, slots=True)
class Arg:
    """A parameter, with a value as one would type it: ``eps=0.5``. Without a value it is only named: ``eps=``."""

    name: str
    value: object = Unset


class Call:
    """A call, as one would type it; ``on`` is the call whose result it is a method of."""

    __slots__ = ("args", "named", "of", "on")

    def __init__(self, of: str, /, *args: object, on: Call | None = None, **named: object) -> None:
        self.of, self.args, self.on, self.named = of, args, on, named

    @property
    def verb(self) -> str:
        return self.of.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Code:
    """A value that is said as it stands here, by a reader of any language: a variable's name, a number's text."""

    text: str


@dataclass(frozen=True, slots=True)
class InPython:
    """What only Python has, and what is said elsewhere instead."""

    text: str
    elsewhere: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """What another error says, as part of a message; it holds on to no traceback."""

    said: tuple[Piece, ...]
    hint: tuple[Piece, ...] = ()


Piece = str | Arg | Call | Code | InPython | Message | BaseException
Hint = Piece | tuple[Piece, ...] | None


class Words:
    """How a message is said: here as Python would write it; others override the parts."""

    def message(self, of: object) -> str:
        """A message, or an error's."""
        made = message(of)
        return self.join(made.said, made.hint)

    def join(self, said: Iterable[Piece], hint: Iterable[Piece] = ()) -> str:
        told, advice = "".join(map(self.piece, said)), "".join(map(self.advice, hint))
        return f"{told} Hint: {advice}" if advice else told

    def piece(self, p: Piece) -> str:
        if isinstance(p, str):
            return p
        if isinstance(p, Arg):
            return self.arg(p)
        if isinstance(p, InPython):
            return self.only_python(p)
        return self.message(p) if isinstance(p, Message) else typed(p)

    def advice(self, p: Piece) -> str:
        """A piece of a hint: what stands there is what to type."""
        return self.call(p) if isinstance(p, Call) else self.piece(p)

    def only_python(self, p: InPython) -> str:
        return p.text

    def arg(self, a: Arg) -> str:
        return f"{a.name}=" + ("" if a.value is Unset else typed(a.value))

    def call(self, c: Call) -> str:
        return typed(c)


PYTHON = Words()


def listed(names: Iterable[str]) -> tuple[Piece, ...]:
    """Parameters by name: "eps= and rho="."""
    pieces = [p for n in names for p in (" and ", Arg(n))]
    return tuple(pieces[1:])


def message(of: object) -> Message:
    """What an error (or a text) says, without the error."""
    said = getattr(of, "said", None)
    return Message((str(of),)) if said is None else Message(said, getattr(of, "hint", ()))


def _pieces(given: Hint) -> tuple[Piece, ...]:
    pieces = () if given is None else given if isinstance(given, tuple) else (given,)
    return tuple(message(p) if isinstance(p, BaseException) else p for p in pieces)


class DPError(Exception):
    """Base of everything dpframe raises on purpose.

    Parameters
    ----------
    *said : str, Arg, Call, InPython or error
        What is wrong, piece by piece.
    hint : piece, or tuple of pieces, optional
        What to write instead.
    """

    said: tuple[Piece, ...]
    hint: tuple[Piece, ...]

    def __init__(self, *said: Piece, hint: Hint = None) -> None:
        self.said, self.hint = _pieces(said), _pieces(hint)
        super().__init__(PYTHON.join(self.said, self.hint))


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
        self,
        *said: Piece,
        requested: Cost,
        remaining: Cost,
        component: str,
        label: str | None = None,
        hint: Hint = None,
    ) -> None:
        super().__init__(*said, hint=hint)
        self.requested = requested
        self.remaining = remaining
        self.component = component
        self.label = label

    def __reduce__(self) -> tuple[object, ...]:
        return (_budget_exceeded, (self.said, self.hint, self.__dict__))


def _budget_exceeded(
    said: tuple[Piece, ...], hint: tuple[Piece, ...], rest: Mapping[str, Any]
) -> BudgetExceeded:
    known = {k: rest[k] for k in ("requested", "remaining", "component", "label")}
    return BudgetExceeded(*said, hint=hint, **known)


class LedgerError(DPError):
    """The record of what was spent can't be trusted or written; nothing is released."""


class MechanismError(DPError):
    """A mechanism is unknown, can't serve the request, or does not keep what it claims."""


class ReleaseFailed(DPError):
    """The engine failed after the charge. The charge stands; the cause is named without any data."""


class DPWarning(UserWarning):
    """Something a careful analyst wants to know: a repeat, the ambient session, an id column."""


def wrong_type(*said: Piece, hint: Hint = None) -> TypeError:
    """A TypeError (a wrong kind of object, an unknown argument) whose message is made of pieces."""
    return worded(TypeError, *said, hint=hint)


def worded(kind: type[E], *said: Piece, hint: Hint = None) -> E:
    """An error of a kind that is not dpframe's, whose message is made of pieces."""
    told = Message(_pieces(said), _pieces(hint))
    made = kind(PYTHON.message(told))
    vars(made).update(said=told.said, hint=told.hint)
    return made


class UnknownName(InputError, AttributeError):
    """A verb that dpframe does not have."""


class NothingYet(InputError, AttributeError):
    """What an object will have, and has not yet: ``hasattr`` says so, and tools that list attributes go on."""


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


def typed(value: object, depth: int = 4) -> str:
    """Quote what a caller typed. Anything that may hold cells (a Series, an array) is named by type only.

    Lists within lists are shown so many levels deep.
    """
    if isinstance(value, Fraction):
        return exactly(value)
    if isinstance(value, float):
        return re.sub(r"e([+-])0(?=\d)", r"e\1", repr(value))
    if isinstance(value, str | bool | int | complex | Decimal | type(None) | dt.date | dt.timedelta):
        try:
            text = str(value) if isinstance(value, Decimal) else repr(value)
        except ValueError:  # more digits than Python prints
            return f"about 2**{int(value).bit_length() - 1}"  # type: ignore[arg-type]
        return text if len(text) <= 60 else text[:57] + "..."
    if value is ...:
        return "..."
    if isinstance(value, Code):
        return value.text
    if isinstance(value, Call):
        pairs = (f"{k}={typed(v)}" for k, v in value.named.items())
        before = "" if value.on is None else f"{typed(value.on)}."
        return f"{before}{value.of}({', '.join([*map(typed, value.args), *pairs])})"
    if depth == 0 and isinstance(value, list | tuple | dict):
        return "..."
    if type(value) in (list, tuple) and len(value) <= 5:  # type: ignore[arg-type]
        inner = ", ".join(typed(v, depth - 1) for v in value)  # type: ignore[attr-defined]
        return f"({inner}{',' * (len(value) == 1)})" if isinstance(value, tuple) else f"[{inner}]"
    if type(value) is dict and len(value) <= 5:
        inner = ", ".join(
            "..." if k is ... else f"{typed(k)}: {typed(v, depth - 1)}" for k, v in value.items()
        )
        return f"{{{inner}}}"
    return f"a {type(value).__name__}"


def show(x: object) -> str:
    """Print an exact number the way a person typed it, in six digits where it has more."""
    if isinstance(x, Fraction):
        if abs(x) > 10**300:
            return f"about {'-' * (x < 0)}2**{x.numerator.bit_length() - x.denominator.bit_length()}"
        if x.denominator == 1:
            return str(x.numerator) if abs(x.numerator) < 10**15 else f"{float(x):.6g}"
        text = f"{float(x):.6g}"
        return text if Fraction(text) == x or x.denominator > 1000 else f"{x.numerator}/{x.denominator}"
    return repr(x)


def number(x: Fraction | None) -> str:
    """Six digits of a rational that may be beyond what a float holds; "none" for None."""
    if x is None:
        return "none"
    return show(x) if abs(x) > 10**300 else f"{float(x):.6g}"


def exactly(x: Fraction) -> str:
    """Print an exact number with all digits that tell it from its neighbours."""
    text = show(x)
    if abs(x) > 10**300 or ("/" not in text and Fraction(text) == x):
        return text
    if x.denominator == 1 and abs(x) < 10**21:
        return str(x.numerator)
    digits = repr(float(x))
    return text if "/" in text and Fraction(digits) != x else digits


def check_text(value: str, name: str) -> str:
    """``value``, or InputError for text that no file can hold: half a character (a lone surrogate)."""
    if printable(value) != value:
        raise InputError(
            f"{name}={printable(value)!r} holds half a character (a lone surrogate), which can't be written.",
            hint=f"{name}=text.encode('utf-8', 'replace').decode()",
        )
    return value


def printable(text: str) -> str:
    """Text as it can be written: half characters by their code."""
    return text.encode("utf-8", "backslashreplace").decode()


def warn(*said: Piece, hint: Hint = None) -> None:
    """Warn at the caller's own line, outside of dpframe."""
    text = worded(DPWarning, *said, hint=hint)
    level, here = 2, os.path.dirname(__file__)
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(here):
        frame, level = frame.f_back, level + 1
    try:
        warnings.warn(text, stacklevel=level)
    except DPWarning:  # warnings are errors here; the answer has been paid for and must not be lost
        logging.getLogger("dpframe").warning(str(text))
