"""Fitting the scale of a table law: the least scale whose table keeps the claim at every shift.

Laws are built as float64 probabilities of 0, 1, 2, ... steps (the law is symmetric). The delta at
shift j is ``sum_i max(0, p_i - e**eps p_{i-j})`` over the law's whole support, so that the part cut
off at the end is paid for: there p_{i-j} is 0.

Privacy: the fit ends where every shift is at most ``delta*(1 - 2**-20) - SLACK``. A difference of two
float64 terms is wrong by less than 2**-52 of its first term, a whole sum by less than 1e-15, and the
rounding to integer weights and the logarithms of the certificate move it by less than 5e-15: SLACK
covers them. The certificate then recomputes it from the integer weights, which are what is drawn from.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from dpframe.accounting.conversion import pure_rho
from dpframe.accounting.events import Event
from dpframe.errors import Arg, MechanismError, show
from dpframe.mechanisms.base import Floats, Target
from dpframe.mechanisms.certificate import certified
from dpframe.mechanisms.table import BITS, TableNoise
from dpframe.mechanisms.targets import approximate

SLACK = 1e-14
LARGEST_EPS = 80  # beyond it e**eps times a probability leaves float64's room
LEAST_DELTA = Fraction(1, 10**13)
MOST_STEPS = 1 << 19  # on each side of zero
_SMALL = 1 << 18  # shifts times steps that are always looked at in full
_COARSER = 32  # steps from which a large table is first fitted on fewer

Law = Callable[[float, int], Floats]  # of a scale in sensitivities, and the steps to one


def asked(sensitivity: Fraction, target: Target, name: str) -> tuple[int, float, float]:
    """Return (steps, eps, delta) of a target that a table law can have.

    Raises
    ------
    MechanismError
        For rho targets, no delta, or a sensitivity or delta that a table can't serve.
    """
    eps, delta = approximate(name, sensitivity, target)
    if not LEAST_DELTA <= delta < 1:
        raise MechanismError(
            f"{name} is certified in float64, for delta from 1e-13 to 1; it was asked for {float(delta):.3g}.",
            hint=(Arg("mechanism", "gaussian"), "."),
        )
    if eps > LARGEST_EPS:
        raise MechanismError(
            f"{name} is fitted number by number, for eps up to {LARGEST_EPS}; it was asked for {show(eps)}.",
            hint=(Arg("mechanism", "laplace"), "."),
        )
    if sensitivity > 1 << 10:
        raise MechanismError(
            f"{name} lives on a coarse grid of at most 1024 steps to a sensitivity.",
            hint=(Arg("mechanism", "laplace"), "."),
        )
    return math.ceil(sensitivity), float(eps), float(delta)


def deltas(half: Floats, eps: float, shifts: Sequence[int]) -> Floats:
    """The delta of the law at every shift in ``shifts``; ``half`` holds P(0), P(1), ..."""
    most, up = max(shifts), math.exp(eps)
    # Where no P(i) exceeds up*P(i') for 0 <= i' < i, no term at i >= j can be positive: leave them out.
    falls = bool(np.all(half <= up * np.minimum.accumulate(half)))
    right = half[:most] if falls else half
    p = np.concatenate([half[:0:-1], right, np.zeros(0 if falls else most)])
    less = up * np.concatenate([np.zeros(most), p])
    gap = np.empty_like(p)
    found = np.empty(len(shifts))
    for n, j in enumerate(shifts):
        np.subtract(p, less[most - j : most - j + len(p)], out=gap)
        found[n] = np.maximum(gap, 0.0, out=gap).sum()
    return found


def room(steps: float, name: str) -> int:
    """Return ``steps`` rounded up, where a table may have so many.

    Raises
    ------
    MechanismError
        Before memory for it is taken.
    """
    if not steps <= MOST_STEPS:
        raise MechanismError(
            f"{name} would need a table of more than {MOST_STEPS} steps.",
            hint=("a larger eps, or ", Arg("mechanism", "laplace"), "."),
        )
    return math.ceil(steps)


def cut(half: Floats, eps: float, delta: float) -> Floats:
    """Leave out the end of a law that adds less than about 1e-6*delta to its delta.

    What is left out has up to exp(eps) times its mass at one sensitivity before it.
    """
    tail = np.cumsum(half[::-1])[::-1]
    least = 1e-6 * delta * math.exp(-eps)
    return np.asarray(half[: max(1, int(np.searchsorted(-tail, -least)))])


def fit(
    law: Law, low: float, high: float, steps: int, eps: float, delta: float, precise: float = 2.0**-14
) -> float:
    """Return a scale within a relative ``precise`` above one that fails, or ``low`` if that holds.

    Scales are in sensitivities. ``high`` is where the search starts; it is raised while it fails. A
    large table is first fitted on an eighth of the steps, then to 2**-12. While bisecting it only some shifts are
    looked at; all are at the end, and a shift that fails there joins them.

    Raises
    ------
    MechanismError
        When a scale that may hold needs too large a table (see :func:`room`).
    """
    goal = delta * (1 - 2.0**-20) - SLACK
    every = range(1, steps + 1)
    some = sorted({*range(1, steps + 1, max(1, steps // 6)), steps})

    def holds(scale: float, fully: bool = False) -> bool:
        half = law(scale, steps)
        shifts: Sequence[int] = every if fully or len(half) * steps <= _SMALL else some
        found = deltas(half, eps, shifts)
        worst = int(np.argmax(found))
        if found[worst] <= goal:
            return True
        near = range(max(1, shifts[worst] - 1), min(steps, shifts[worst] + 1) + 1)
        if shifts is every:
            some.extend(j for j in near if j not in some)
        return False

    if steps >= _COARSER and 8 * len(law(high, steps // 8)) * steps > _SMALL:
        guess = fit(law, low, high, steps // 8, eps, delta, 2.0**-10)
        low, high, precise = guess * (1 - 2.0**-9), guess * (1 + 2.0**-8), max(precise, 2.0**-12)
        while holds(low):
            low, high = low * (1 - 2.0**-6), low
    elif holds(low, fully=True):
        return low
    growth = 2.0**-6
    while not holds(high):
        low, high, growth = high, high * (1 + growth), 2 * growth
    while True:
        while high - low > high * precise:
            middle = (low + high) / 2 if high < 2 * low else math.sqrt(low * high)
            low, high = (low, middle) if holds(middle) else (middle, high)
        if holds(high, fully=True):
            return high
        growth = precise
        while not holds(high):
            low, high, growth = high, high * (1 + growth), 2 * growth


def weights(half: Floats) -> tuple[int, ...]:
    """Integers in proportion to ``half``, the largest of them 2**BITS; trailing zeros go.

    The table they make is the law; nothing depends on how well they follow ``half`` but the margin.
    """
    mantissa, exponent = np.frexp(half / half.max())
    whole = (mantissa * 2.0**53).astype(np.int64)
    up = exponent.astype(np.int64) + (BITS - 53)
    whole >>= np.clip(-up, 0, 62)
    made = list(map(operator.lshift, whole.tolist(), np.maximum(up, 0).tolist()))
    while len(made) > 1 and made[-1] == 0:
        made.pop()
    return tuple(made)


def table(half: Floats, spread: float, target: Target, steps: int, name: str) -> TableNoise:
    """The law as integer weights, with what it costs, certified for a coordinate that moves by ``steps``.

    Privacy: rho is that of the eps-DP part of the law (maths: an (eps, delta) pair is 1 - delta of an
    eps-DP pair); the law claims no rho without delta.
    """
    assert target.eps is not None
    cost = Event(target.eps, target.delta, pure_rho(target.eps))
    return certified(TableNoise(weights(half), Fraction(spread), cost), steps, name)
