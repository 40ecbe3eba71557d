"""Certificates: what a distribution of noise really guarantees, computed from what is drawn from.

For a distribution p on the integers and an exact answer that moves by up to m steps, the curve is

    delta(eps) = max over shifts 1 <= j <= m of sum_i max(0, p_i - e**eps p_{i-j}).

Every shift is tried, as the worst one of a distribution with several bumps need not be the largest (where p
falls on both sides it is: every positive term has i < j/2, and grows with j). A value that is possible before
the shift and impossible after it (p_{i-j} = 0) counts in full: it is infinite loss, which no eps and no rho
covers. Asymmetric distributions are refused, so one direction is enough.

Three ways to a verdict:

* a table (:class:`~dpframe.mechanisms.table.TableNoise`) is decided from its integer weights. Terms that float64
  can't tell from 0 are computed in integers, with a lower bound of e**eps; so the verdict is exact up to the
  2**-64 of that bound. A table ends, so it has no guarantee without delta, and no rho but that of the part that is eps-DP;
* the noise of ``laplace``, ``staircase``, ``gaussian`` and ``discrete_gaussian``, by their theorems, in rationals, from
  their parameters;
* any other distribution by the probabilities that it states, in float64: on a window that reaches to 1e-60 for
  delta, and for pure claims and rho to 1e-250. Mass outside of it, or missing, counts as delta. Below 1e-250 nothing is
  seen; so pure claims above eps = 100 can't be decided, and are refused. Rho is recomputed at orders that lie 17 %
  apart (a - 1 from 0.01 to 600), where it must hold; between them (a - 1) D_a is convex, so it is exceeded
  by less than 1 %.

Privacy: built-in tables are held against this when they are calibrated, and everything that a plug-in makes
before its first use. It covers one moving coordinate; several are charged by composition (see
``dpframe.mechanisms.auto``). Source of the definition: Dwork et al. 2006; the sum form: Meiser and Mohammadi 2018.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from numbers import Rational
from typing import TypeVar

import numpy as np

from dpframe.accounting.conversion import analytic_delta, pure_rho
from dpframe.accounting.events import Event
from dpframe.errors import Arg, MechanismError
from dpframe.mechanisms.base import Floats, Noise
from dpframe.mechanisms.discrete_gaussian import DiscreteGaussianNoise
from dpframe.mechanisms.gaussian import RoundedGaussian
from dpframe.mechanisms.laplace import DiscreteLaplace
from dpframe.mechanisms.staircase import StaircaseNoise
from dpframe.mechanisms.table import TableNoise
from dpframe.noise.exponentials import exp_minus

ROUNDING = 1e-9
ABSOLUTE = 1e-15
WIDEST = 1 << 20  # steps on each side of zero
_ORDERS = tuple(1 + 0.01 * 1.17**i for i in range(71))
_SEEN = 1e-250  # smaller probabilities are not looked at
_LEAST = 1e-300  # smaller ones may be an underflow
_LARGEST_PURE = 100  # e**-100 times _SEEN is still far above _LEAST
_LARGEST_RHO = 100  # of a Gaussian, of which 1e-110 and more is then seen
_LARGEST_LOG = 512  # e**eps beyond this is more than any ratio of two weights
_MOST_BITS = 256  # of a table's weights
_UNSURE = 2.0**-49  # relative error of a difference of two products of floats, and some

N = TypeVar("N", bound=Noise)


@dataclass(frozen=True, slots=True)
class Finding:
    """The worst of a distribution: ``delta`` at the claimed eps, at ``shift``."""

    delta: float
    shift: int


def certified(noise: N, moves: int, name: str) -> N:
    """Return ``noise``, whose claim holds when one coordinate moves by up to ``moves``.

    Raises
    ------
    MechanismError
        Where it does not: a built-in distribution that rounding has spoilt is not used.
    """
    try:
        check(noise, moves, name)
    except MechanismError as e:
        raise MechanismError(str(e), hint=(Arg("mechanism", "laplace"), " or 'staircase'")) from None
    return noise


def check(noise: Noise, moves: int, name: str, *, theorems: bool = True) -> None:
    """Refuse noise that claims more than it keeps when one coordinate moves by up to ``moves``.

    ``theorems``: whether one about the noise's class will do; audits look at its probabilities all the same.

    Raises
    ------
    MechanismError
        Naming the shift and the true delta (or epsilon, or rho), or what can't be decided.
    """
    check_claim(noise.event, name)
    if type(noise) is TableNoise:
        _check_table(noise, moves, name)
    elif not (theorems and _by_theorem(noise, moves)):
        _check_probabilities(noise, moves, name)


def check_claim(claim: Event, name: str) -> None:
    """Refuse what is no exact cost of zero or more.

    Privacy: filters add claims up, so a negative part would refill a budget, and NaN never exceeds one.
    """
    if not isinstance(claim, Event):
        raise MechanismError(
            f"The mechanism {name!r} claims a {type(claim).__name__}, not an Event. It is refused."
        )
    for part, missing in (("eps", True), ("delta", False), ("rho", False), ("delta_alone", True)):
        if (value := getattr(claim, part)) is None and missing:
            continue
        if not isinstance(value, Rational):
            raise MechanismError(
                f"The mechanism {name!r} claims {part}={value!r}; claims are exact: Fractions. It is refused."
            )
        if value < 0:
            raise MechanismError(
                f"The mechanism {name!r} claims a negative cost: {part}={value}. It is refused."
            )


# ---- tables ----


def _check_table(noise: TableNoise, moves: int, name: str) -> None:
    claim = noise.event
    _check_weights(noise.weights, name)
    if claim.eps is None or not claim.delta:
        what = f"eps={float(claim.eps):.6g}" if claim.eps is not None else f"rho={float(claim.rho):.6g}"
        raise MechanismError(
            f"The mechanism {name!r} claims {what} without delta, and at shift 1 of {moves} a value becomes"
            " impossible, as its table ends: its probabilities differ by eps=inf, its true rho is inf. It is refused."
        )
    found = table_delta(noise.weights, moves, Fraction(claim.eps), Fraction(claim.delta))
    if found is not None:
        raise MechanismError(
            f"The mechanism {name!r} claims delta={float(claim.delta):.6g} at eps={float(claim.eps):.6g}, and at"
            f" shift {found.shift} of {moves} its true delta is {found.delta:.6g}. It is refused."
        )
    if claim.rho < pure_rho(Fraction(claim.eps)) or claim.least_delta < claim.delta:
        raise MechanismError(
            f"The mechanism {name!r} claims rho={float(claim.rho):.6g}, and its true rho is at least"
            f" {float(pure_rho(Fraction(claim.eps))):.6g} beside delta, that of anything eps-DP. It is refused."
        )


def _check_weights(weights: tuple[int, ...], name: str) -> None:
    wrong = ""
    if type(weights) is not tuple or not weights or any(type(w) is not int for w in weights):
        wrong = "are not a tuple of ints"
    elif min(weights) < 0 or max(weights) == 0:
        wrong = "are negative, or all 0"
    elif max(weights).bit_length() > _MOST_BITS or len(weights) > WIDEST:
        wrong = f"are more than can be decided: {_MOST_BITS} bits and {WIDEST} of them"
    if wrong:
        raise MechanismError(f"The mechanism {name!r} has weights that {wrong}. It is refused.")


@lru_cache(maxsize=1024)
def table_delta(weights: tuple[int, ...], moves: int, eps: Fraction, delta: Fraction) -> Finding | None:
    """The worst shift, if the delta of a symmetric table exceeds ``delta`` at ``eps``; None if it never does.

    In float64 a term counts as negative only where ``w_i`` is less than ``e**eps w_{i-j}`` by more than both are
    rounded; the errors of all other terms are added. Where the sum's two bounds do not decide, its terms are
    computed in integers.
    """
    rate = 1 / exp_minus(min(eps, Fraction(_LARGEST_LOG)), 60, up=True)  # at most e**eps
    up = (rate.numerator << 64) // rate.denominator  # in units of 2**-64, rounded down
    whole = [*weights[:0:-1], *weights]
    top = max(weights).bit_length()
    p = np.ldexp(np.array(whole, dtype=object).astype(np.float64), -top)
    less = np.concatenate([np.zeros(moves), p * math.ldexp(float(up), -64)])
    total, n = sum(whole), len(p)
    goal = float(delta * Fraction(total, 1 << top))
    falls = all(a >= b for a, b in itertools.pairwise(weights))
    worst: Finding | None = None
    for j in (moves,) if falls else range(moves, 0, -1):
        gap = p - less[moves - j : moves - j + n]
        doubtful = np.flatnonzero(gap > -_UNSURE * p)
        sure = float(np.maximum(gap[doubtful], 0.0).sum())
        error = _UNSURE * (float(p[doubtful].sum()) + sure) + 1e-300
        if sure + error <= goal * (1 - _UNSURE):
            continue
        if sure - error <= goal * (1 + _UNSURE):
            exact = sum(
                max(0, (whole[i] << 64) - (up * whole[i - j] if i >= j else 0)) for i in doubtful.tolist()
            )
            if exact * delta.denominator <= (delta.numerator * total) << 64:
                continue
        found = sure / float(Fraction(total, 1 << top))
        if worst is None or found > worst.delta:
            worst = Finding(found, j)
    return worst


# ---- the distributions of theorems ----


def _by_theorem(noise: Noise, moves: int) -> bool:
    """Whether a theorem about this very class gives the whole claim.

    Privacy: subclasses may have changed anything, so they are not asked.
    """
    claim = noise.event
    if type(noise) is DiscreteLaplace or type(noise) is StaircaseNoise:
        eps = moves / noise.b if type(noise) is DiscreteLaplace else Fraction(0)
        if type(noise) is StaircaseNoise:  # a shift changes the level by at most moves/width, rounded up
            eps = math.ceil(Fraction(moves, noise.width)) / noise.levels
        return (claim.eps is None or claim.eps >= eps) and claim.rho >= pure_rho(eps)
    if type(noise) is RoundedGaussian or type(noise) is DiscreteGaussianNoise:
        if claim.rho < Fraction(moves**2) / (2 * noise.sigma**2):
            return False
        if claim.eps is None:
            return True
        if type(noise) is RoundedGaussian and claim.delta > 0:
            ratio = float(noise.sigma / moves) * (1 - 2.0**-50)
            return Fraction(analytic_delta(ratio, float(claim.eps) * (1 - 2.0**-50))) <= claim.delta
    return False


# ---- anything else, by the probabilities that it states ----


def _check_probabilities(noise: Noise, moves: int, name: str) -> None:
    claim = noise.event
    _check_shape(noise, moves, name)
    if claim.eps is not None and claim.delta == 0:
        if claim.eps > _LARGEST_PURE:
            raise MechanismError(
                f"The mechanism {name!r} claims eps={float(claim.eps):.6g}; by the probabilities that it states only"
                f" pure claims up to {_LARGEST_PURE} can be decided. It is refused.",
                hint="a TableNoise, with a delta",
            )
        found = least_pure_eps(noise, moves)
        if found.delta > float(claim.eps) * (1 + ROUNDING) + 1e-12:
            raise MechanismError(
                f"The mechanism {name!r} claims eps={float(claim.eps):.6g}, and at shift {found.shift} of {moves}"
                f" its probabilities differ by eps={found.delta:.6g}. It is refused."
            )
    if claim.eps is not None and claim.delta > 0:
        found = worst_delta(noise, moves, float(claim.eps))
        if found.delta > float(claim.delta) * (1 + 4 * ROUNDING) + 2 * ABSOLUTE:
            raise MechanismError(
                f"The mechanism {name!r} claims delta={float(claim.delta):.6g} at eps={float(claim.eps):.6g}, and at"
                f" shift {found.shift} of {moves} its true delta is {found.delta:.6g}. It is refused."
            )
    whole = claim.least_delta >= claim.delta  # rho is claimed beside all of delta
    if claim.eps is not None and claim.rho >= pure_rho(Fraction(claim.eps)) and whole:
        return  # the part that is eps-DP is pure_rho(eps)-zCDP, whatever the distribution
    if claim.rho > _LARGEST_RHO:
        raise MechanismError(
            f"The mechanism {name!r} claims rho={float(claim.rho):.6g}; only up to {_LARGEST_RHO} is decided. It is refused."
        )
    found = least_pure_eps(noise, moves)
    if math.isfinite(found.delta) and float(pure_rho(Fraction(found.delta))) <= float(claim.rho) * (
        1 + ROUNDING
    ):
        return
    found = worst_rho(noise, moves, float(claim.rho))
    if found.delta > float(claim.rho) * (1 + ROUNDING) + 1e-12:
        raise MechanismError(
            f"The mechanism {name!r} claims rho={float(claim.rho):.6g}, and at shift {found.shift} of {moves} its"
            f" true rho is at least {found.delta:.6g}. It is refused."
        )


@lru_cache(maxsize=256)
def worst_delta(noise: Noise, moves: int, eps: float) -> Finding:
    """The largest delta over all shifts up to ``moves`` at ``eps``, rounded up.

    Each term is wrong by at most 2**-52 of p_i + e**eps p_{i-j} where it is not zero, together below
    ``ABSOLUTE``, which is added.

    Raises
    ------
    MechanismError
        For probabilities that are not probabilities.
    """
    seen = window(noise, moves, 1e-60)
    less = np.exp(min(eps, 700.0)) * seen.around
    worst, where = 0.0, 1
    for j in range(1, moves + 1):
        total = float(np.maximum(seen.p - less[moves - j : moves - j + len(seen.p)], 0.0).sum())
        if total > worst:
            worst, where = total, j
    return Finding(worst * (1 + ROUNDING) + ABSOLUTE + seen.outside, where)


def least_pure_eps(noise: Noise, moves: int) -> Finding:
    """The largest log-ratio of probabilities over all shifts up to ``moves`` (as ``delta`` of the finding)."""
    seen = window(noise, moves, _SEEN)
    worst, where = 0.0, 1
    for j, ratio in _ratios(seen, moves):
        largest = float(np.max(ratio, initial=0.0, where=seen.p > _SEEN))
        if largest > worst:
            worst, where = largest, j
    return Finding(worst, where)


def worst_rho(noise: Noise, moves: int, claim: float) -> Finding:
    """The least rho with D_a <= a*rho at the orders looked at and every shift up to ``moves``; inf where values
    become impossible.

    Shifts that stay 25 % below ``claim`` at every fourth order, which lie less than a factor 2 apart, are below it
    between them, too. A Gaussian of that rho falls from z to z + sqrt(2 rho) deviations; places from which that is
    an underflow are not looked at.
    """
    seen = window(noise, moves, _SEEN)
    unseen = max(_SEEN, math.exp(-(max(0.0, 37 - math.sqrt(2 * claim)) ** 2) / 2))
    logs = _logs(seen.p)
    worst, where = 0.0, 1
    for j, ratio in _ratios(seen, moves):
        if bool(np.any(np.isinf(ratio) & (seen.p > unseen))):
            return Finding(math.inf, j)
        ok = (seen.p > _LEAST) & (ratio < logs - math.log(_LEAST))
        found = max(_renyi(logs[ok], ratio[ok], a) for a in _ORDERS[::4])
        if 1.25 * found >= claim:
            found = max(_renyi(logs[ok], ratio[ok], a) for a in _ORDERS)
        if found > worst:
            worst, where = found, j
    return Finding(worst, where)


def _renyi(logs: Floats, ratio: Floats, a: float) -> float:
    """D_a / a."""
    terms = logs + (a - 1) * ratio
    top = float(np.max(terms))
    return (top + math.log(float(np.sum(np.exp(terms - top))))) / (a - 1) / a


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """Probabilities on a window around 0; ``around`` holds ``moves`` more on either side."""

    p: Floats
    around: Floats
    outside: float


def window(noise: Noise, moves: int, tail: float) -> _Seen:
    """Probabilities on a window around 0 beyond which there is at most ``tail``, and a bound on the mass outside."""
    w = 8 * max(1, moves)
    while w < WIDEST and 2 * float(noise.cdf(-w - 1)) > tail:
        w *= 2
    w = min(w, WIDEST)
    beyond = float(noise.cdf(-w - 1))
    if beyond > (1e-9 if tail > _SEEN else _SEEN):
        raise MechanismError(
            "The mechanism's law is too wide to be certified: more than 2**20 steps.",
            hint="ask for a larger eps",
        )
    around = np.asarray(noise.pmf(np.arange(-w - moves, w + moves + 1)), dtype=np.float64)
    if around.shape != (2 * (w + moves) + 1,) or not np.all(np.isfinite(around)) or np.any(around < 0):
        raise MechanismError("The mechanism's pmf is not a probability law: it is negative or not finite.")
    p = around[moves:-moves]
    missing = 1 - math.fsum(p.tolist())
    if abs(missing) > 1e-9:
        raise MechanismError("The mechanism's pmf is not a probability law: it does not sum to 1.")
    return _Seen(p, around, max(2 * beyond, missing if missing > ABSOLUTE else 0.0))


def _check_shape(noise: Noise, moves: int, name: str) -> None:
    """Refuse what intervals and thresholds can't be read off: an asymmetric law, or a cdf that is not its own.

    Privacy: a threshold is taken from the lower tail of ``cdf`` and used at the upper end of the draws.
    """
    seen = window(noise, moves, 1e-60)
    p, other = seen.p, seen.p[::-1]
    if bool(np.any(np.abs(p - other) > 1e-9 * np.maximum(p, other) + _SEEN)):
        raise MechanismError(f"The mechanism {name!r} has an asymmetric distribution. It is refused.")
    w = len(p) // 2
    said = np.asarray(noise.cdf(np.arange(-w, w + 1)), dtype=np.float64)
    sums = np.cumsum(p)
    low = sums[: w + 1] * (1 - 1e-6) > said[: w + 1] + 1e-30
    if said.shape != p.shape or bool(np.any(low)) or float(np.max(np.abs(sums - said))) > 1e-9 + seen.outside:
        raise MechanismError(
            f"The mechanism {name!r} has a cdf that is not the sum of its pmf. It is refused."
        )


def _logs(p: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(p, _LEAST)))


def _ratios(seen: _Seen, moves: int) -> Iterator[tuple[int, Floats]]:
    """(shift, log p_i - log p_{i-shift}) for every shift; inf where what was possible no longer is."""
    n = len(seen.p)
    logs, around = _logs(seen.p), _logs(seen.around)
    for j in range(1, moves + 1):
        where = slice(moves - j, moves - j + n)
        yield j, np.where(seen.around[where] > 0, logs - around[where], np.inf)
