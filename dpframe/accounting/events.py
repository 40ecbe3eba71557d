"""Exact budget numbers: what a call costs and how typed numbers become rationals.

Floats are never added up. ``0.1`` is one tenth, ``1/11`` is one eleventh, and sums of them are
exact, so ten calls of ``eps=0.1`` fit a budget of 1 and nothing more does; there is no tolerance
anywhere (a tolerance is a budget nobody declared).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from dpframe.errors import Arg, Call, Code, InputError, number, show, typed, wrong_type

Number = int | float | Fraction | Decimal
_LEAST = Fraction(1, 2**1000)  # a smaller delta would be drawn for as 0
_MOST = 10**308  # beyond which a float is infinite
_FORECAST = ("rows", "units", "relative_to", "error")  # what is computed with in floats, and multiplied
_FAR = 10**150
_DIGITS = 10_000  # a decimal of more would take its digits in memory: Decimal("1e400000000")
_GRAIN = 1 << 80  # rho values are kept on multiples of 2**-80 so that sums stay short


def rational(value: object, name: str, *, zero: bool = False, below: int | None = None) -> Fraction:
    """Turn a typed number into the exact rational it stands for.

    Parameters
    ----------
    value : int, float, Fraction, Decimal
        A float becomes the fraction with a denominator of at most 10**6 that rounds back to it,
        else the fraction of its shortest text.
    name : str
        The parameter, for the message.
    zero : bool
        Whether zero is allowed.
    below : int, optional
        The number must be less than this.

    Raises
    ------
    InputError
        For anything that is not a finite, positive, real number: bool, str, None, nan, inf, -1.

    Notes
    -----
    Privacy: a budget or cost is read as one exact number, the same in the filter and in the noise
    scale, so that what is charged is what is drawn.
    """
    x = value.item() if isinstance(value, np.generic) else value
    if isinstance(x, Cost):
        raise InputError(Arg(name), " takes a number, not a Cost.", hint=Arg(name, Code("s.remaining.eps")))
    hint = "1e-6" if name.startswith("delta") else "1000" if name in ("rows", "relative_to") else "0.5"
    if isinstance(x, bool) or not isinstance(x, int | float | Fraction | Decimal):
        raise InputError(
            Arg(name, value), f" must be a number ({type(value).__name__} given).", hint=Arg(name, Code(hint))
        )
    if (isinstance(x, float) and not math.isfinite(x)) or (isinstance(x, Decimal) and not x.is_finite()):
        raise InputError(Arg(name, x), " must be a finite number.", hint=Arg(name, Code(hint)))
    if isinstance(x, Decimal) and x and abs(x.adjusted()) > _DIGITS:
        raise InputError(Arg(name, x), " is beyond what is counted exactly.", hint=Arg(name, Code(hint)))
    if isinstance(x, float):
        near = Fraction(x).limit_denominator(10**6)
        exact = near if float(near) == x else Fraction(repr(x))
    else:
        exact = Fraction(x)
    if exact < 0 or (exact == 0 and not zero):
        least = "zero or more" if zero else "more than zero"
        raise InputError(Arg(name, value), f" must be {least}.", hint=Arg(name, Code(hint)))
    if name in _FORECAST and not Fraction(1, _FAR) <= exact <= _FAR:
        raise InputError(Arg(name), " is beyond what errors are forecast for.", hint=Arg(name, Code(hint)))
    if name.startswith("delta") and 0 < exact < _LEAST:
        raise InputError(
            Arg(name, value), " is beyond what noise can be drawn for.", hint=Arg(name, Code(hint))
        )
    if below is not None and (exact >= below or float(exact) >= below):
        raise InputError(Arg(name, value), f" must be less than {below}.", hint=Arg(name, Code(hint)))
    return exact


def round_up(x: Fraction | float) -> Fraction:
    """The least multiple of 2**-80 that is at least ``x`` (costs are rounded up)."""
    f = Fraction(x)
    return Fraction(-((-f.numerator * _GRAIN) // f.denominator), _GRAIN)


def round_down(x: Fraction | float) -> Fraction:
    """The greatest multiple of 2**-80 that is at most ``x`` (budgets are rounded down)."""
    f = Fraction(x)
    return Fraction((f.numerator * _GRAIN) // f.denominator, _GRAIN)


@dataclass(frozen=True, slots=True, eq=False)
class Cost:
    """An exact privacy cost or budget.

    ``float(cost)`` is its eps. A cost without delta equals its eps as a number.

    Attributes
    ----------
    eps : Fraction or None
        None when only rho is known (a call with ``rho=``).
    delta : Fraction
    rho : Fraction or None

    Examples
    --------
    >>> import dpframe as dp
    >>> s = dp.Session(eps=0.3)
    >>> s.remaining.eps, s.remaining == 0.3, float(s.spent)
    (Fraction(3, 10), True, 0.0)
    >>> s.close()
    """

    eps: Fraction | None
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None

    def __float__(self) -> float:
        return math.inf if self.eps is None or self.eps > _MOST else float(self.eps)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Cost):
            return (self.eps, self.delta, self.rho) == (other.eps, other.delta, other.rho)
        if isinstance(other, int | float | Fraction | Decimal) and not isinstance(other, bool):
            if self.delta or self.eps is None:
                return False
            return self.eps == (Fraction(other) if isinstance(other, int) else _plain(other))
        return NotImplemented

    def __lt__(self, other: float | Fraction | Cost) -> bool:
        """Costs are ordered by eps, among themselves and with numbers."""
        return float(self) < float(other) if self.eps is None else self.eps < _eps(other)

    def __le__(self, other: float | Fraction | Cost) -> bool:
        return float(self) <= float(other) if self.eps is None else self.eps <= _eps(other)

    def __hash__(self) -> int:
        return hash(self.eps) if not self.delta and self.eps is not None else hash((self.eps, self.delta))

    def text(self, sign: str = "=", *, zeros: bool = False, rho: bool = False) -> str:
        """The cost as one would type it: its eps and delta, or its rho where no eps is known.

        Parameters
        ----------
        sign : str
            What stands between a name and its number; " = " in prose.
        zeros : bool
            Whether to say a delta of 0, too.
        rho : bool
            Whether to say rho beside eps.
        """
        said = [] if self.eps is None else [f"eps{sign}{show(self.eps)}"]
        if self.eps is None or (rho and self.rho is not None):
            said.append(f"rho{sign}{number(self.rho or Fraction(0))}")
        delta = [f"delta{sign}{show(self.delta)}"] if self.delta or zeros else []
        return ", ".join([*said[:1], *delta, *said[1:]])

    def __repr__(self) -> str:
        return f"Cost({self.text(rho=True)})"


def _eps(x: float | Fraction | Cost) -> Fraction | float:
    if isinstance(x, Cost):
        return math.inf if x.eps is None else x.eps
    return Fraction(x) if isinstance(x, int) else _plain(x) or float(x)


def _plain(x: float | Fraction | Decimal) -> Fraction | None:
    try:
        return rational(x, "value", zero=True)
    except InputError:
        return None


def least(costs: Sequence[Cost]) -> Cost:
    """What several budgets would all grant: the least of each part."""
    zero = Fraction(0)
    return Cost(
        min(c.eps or zero for c in costs), min(c.delta for c in costs), min(c.rho or zero for c in costs)
    )


@dataclass(frozen=True, slots=True)
class Event:
    """What one charge does to a session, as the filter sees it.

    The first four fields are claims that hold together; the others say which law makes them, for
    accountants that know more about it.

    Attributes
    ----------
    eps : Fraction or None
        The pure or approximate epsilon; None for a charge that is known by rho alone.
    delta : Fraction
        Charged against the session's ``delta_calls``.
    rho : Fraction
        A zCDP bound of the good part (the whole, when delta is 0).
    delta_alone : Fraction or None
        The delta that remains when the event is charged by ``rho`` without its eps: 0 for Gaussian
        laws, the threshold's delta when keys are thresholded as well; None where rho holds only
        together with ``delta``.
    kind : str
        The law: "gaussian" (continuous or rounded, sensitivity over sigma sqrt(2 rho)),
        "discrete_gaussian", "laplace" (discrete), "pure" (anything eps-DP), "keys" (delta alone, for the
        keys that a threshold lets through), or "". A "laplace" or "pure" event without eps has the one
        whose ``pure_rho`` is rho.
    steps : int
        Of "laplace" and "discrete_gaussian": the sensitivity in grid steps (L1, L2), 0 if unknown.
    moving : int
        How many coordinates move together, 0 if unknown.
    parts : tuple of Event
        What it is composed of; the claims are ``times`` their sums.
    times : int

    Raises
    ------
    InputError
        For a negative part.
    TypeError
        For a part that is no exact rational: floats (nan and inf among them), bools, text.

    Notes
    -----
    Privacy: accountants believe ``kind``, so core sets it for laws that it knows by theorem and takes it
    off the events of all others (``dpframe.mechanisms.auto``). Sums that decide about grants only ever grow:
    a part below zero would refill a budget, so no event can hold one, wherever it comes from (a plug-in, a
    ledger's row, ``dataclasses.replace``).
    """

    eps: Fraction | None
    delta: Fraction
    rho: Fraction
    delta_alone: Fraction | None = None
    kind: str = ""
    steps: int = 0
    moving: int = 0
    parts: tuple[Event, ...] = ()
    times: int = 1

    def __post_init__(self) -> None:
        for name in ("eps", "delta", "rho", "delta_alone"):
            value = getattr(self, name)
            if value is None and name in ("eps", "delta_alone"):
                continue
            if isinstance(value, bool) or not isinstance(value, int | Fraction):
                raise wrong_type(
                    f"An event's {name} is an exact rational, not {typed(value)}.",
                    hint=Arg(name, Call("Fraction", 1, 2)),
                )
            if value < 0:
                raise InputError(
                    f"An event's {name}={show(Fraction(value))} is less than zero: no charge gives budget back."
                )
            if not isinstance(value, Fraction):
                object.__setattr__(self, name, Fraction(value))
        for name, least in (("steps", 0), ("moving", 0), ("times", 1)):
            count = getattr(self, name)
            if isinstance(count, bool) or not isinstance(count, int):
                raise wrong_type(
                    f"An event's {name} is a whole number, not {typed(count)}.", hint=Arg(name, 1)
                )
            if count < least:
                raise InputError(f"An event's {name}={count} is less than {least}.", hint=Arg(name, 1))
        if not all(isinstance(part, Event) for part in self.parts):
            raise TypeError("An event's parts are events.")

    @property
    def cost(self) -> Cost:
        """What the account shows of it."""
        return Cost(self.eps, self.delta, self.rho)

    @property
    def least_delta(self) -> Fraction:
        """The delta that is charged where the event is charged by rho."""
        return self.delta if self.delta_alone is None else self.delta_alone

    def leaves(self) -> Iterator[tuple[Event, int]]:
        """The events that this one is composed of in the end, and how often each occurs."""
        if not self.parts:
            yield self, 1
        for part in self.parts:
            for leaf, times in part.leaves():
                yield leaf, times * self.times


def compose(events: tuple[Event, ...]) -> Event:
    """The event of several parts of one call, drawn independently of each other.

    Privacy: sequential composition of pairs that are each (1-delta_i) of an eps_i-DP and rho_i-zCDP
    pair: eps, delta and rho add up. One part that is known by rho alone makes the whole so.
    """
    if len(events) == 1:
        return events[0]
    eps: Fraction | None = Fraction(0)
    delta = rho = Fraction(0)
    for e in events:
        eps = None if eps is None or e.eps is None else eps + e.eps
        delta += e.delta
        rho += e.rho
    alone = sum((e.least_delta for e in events), Fraction(0))
    return Event(eps, delta, rho, alone if alone < delta else None, parts=events)


def repeat(e: Event, times: int) -> Event:
    """The event of ``times`` equal parts of one call, drawn independently of each other.

    Privacy: as :func:`compose`.
    """
    if times == 1:
        return e
    alone = None if e.delta_alone is None else times * e.delta_alone
    eps = None if e.eps is None else times * e.eps
    return Event(eps, times * e.delta, times * e.rho, alone, parts=(e,), times=times)
