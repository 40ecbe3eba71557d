"""Certificates: what a law really guarantees, computed from its own probabilities.

For a law p on the integers and an exact answer that moves by up to m steps, the curve is

    delta(eps) = max over shifts 1 <= j <= m, both ways, of sum_i max(0, p_i - e**eps p_{i-j}).

Every shift is tried: the worst one of a law with several bumps need not be the largest. Terms are made
of single probabilities, never of differences of distribution functions; where a neighbour's
probability lies outside the window it counts as 0, and all mass outside the window is added. So the
computed delta errs upwards, but for rounding: each term is wrong by at most 2**-52 of p_i + e**eps p_{i-j}
where it is not zero, together below ``ABSOLUTE``, which is added.

Privacy: this is what core holds a third-party law against before its first use. It covers one
moving coordinate; several are charged by composition (see ``dpframe.mechanisms.auto``). Source of the
definition: Dwork et al. 2006; the sum form: Meiser and Mohammadi 2018.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpframe.accounting import pld
from dpframe.errors import MechanismError
from dpframe.mechanisms.base import Floats, Noise

ROUNDING = 1e-9
ABSOLUTE = 1e-15
WIDEST = 1 << 20  # steps on each side of zero
_ORDERS = (1.05, 1.2, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0, 128.0, 256.0, 512.0)
_LEAST = 1e-300  # smaller probabilities may be an underflow


@dataclass(frozen=True, slots=True)
class Finding:
    """The worst of a law: ``delta`` at the claimed eps, at ``shift``."""

    delta: float
    shift: int


@lru_cache(maxsize=256)
def worst_delta(noise: Noise, moves: int, eps: float) -> Finding:
    """The largest delta over all shifts up to ``moves`` at ``eps``, rounded up.

    Raises
    ------
    MechanismError
        For probabilities that are not probabilities.
    """
    p, outside = _window(noise, moves, 1e-60)
    q = np.concatenate([np.zeros(moves), np.exp(min(eps, 700.0)) * p, np.zeros(moves)])
    worst, where = 0.0, 1
    for j in _shifts(p, moves):
        total = float(np.maximum(p - q[moves - j : moves - j + len(p)], 0.0).sum())
        if total > worst:
            worst, where = total, j
    return Finding(worst * (1 + ROUNDING) + ABSOLUTE + outside, where)


def least_pure_eps(noise: Noise, moves: int) -> Finding:
    """The largest log-ratio of probabilities over all shifts up to ``moves`` (as ``delta`` of the finding)."""
    p, _ = _window(noise, moves, 1e-280)
    logs = _logs(p)
    worst, where = 0.0, 1
    inside = slice(moves, len(p) - moves)  # at the window's ends neighbours are unknown, not absent
    for j, ratio in _ratios(logs, moves):
        largest = float(np.max(ratio[inside], initial=0.0, where=p[inside] > 1e-250))
        if largest > worst:
            worst, where = largest, j
    return Finding(worst, where)


def worst_rho(noise: Noise, moves: int) -> Finding:
    """The least rho with D_alpha <= alpha*rho at 16 orders and every shift up to ``moves``.

    A check that a claim holds where it is looked at, not a proof that it holds at every order.
    """
    p, _ = _window(noise, moves, 1e-60)
    logs = _logs(p)
    worst, where = 0.0, 1
    for j, ratio in _ratios(logs, moves):
        ok = (p > _LEAST) & (ratio < logs - math.log(_LEAST))
        for a in _ORDERS:
            terms = logs[ok] + (a - 1) * ratio[ok]
            top = float(np.max(terms))
            divergence = (top + math.log(float(np.sum(np.exp(terms - top))))) / (a - 1)
            if divergence / a > worst:
                worst, where = divergence / a, j
    return Finding(worst, where)


def check(noise: Noise, moves: int, name: str) -> None:
    """Refuse a law that claims more than it keeps when one coordinate moves by up to ``moves``.

    Raises
    ------
    MechanismError
        Naming the shift and the true delta (or epsilon, or rho).
    """
    claim = noise.event
    if min(claim.delta, claim.rho, claim.delta_alone or 0) < 0:
        raise MechanismError(f"The mechanism {name!r} claims a negative cost. It is refused.")
    if claim.eps is not None and claim.delta == 0:
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
    from dpframe.accounting.conversion import pure_rho  # registering a law imports this package's parts

    if claim.eps is not None and claim.delta_alone is None and claim.rho >= pure_rho(claim.eps):
        return  # the part that is eps-DP is pure_rho(eps)-zCDP, whatever the law
    found = worst_rho(noise, moves)
    if found.delta > float(claim.rho) * (1 + ROUNDING) + 1e-12:
        raise MechanismError(
            f"The mechanism {name!r} claims rho={float(claim.rho):.6g}, and at shift {found.shift} of {moves} its"
            f" true rho is at least {found.delta:.6g}. It is refused."
        )


def _window(noise: Noise, moves: int, tail: float) -> tuple[Floats, float]:
    """Probabilities on a window around 0, and a bound on the mass outside."""
    w = 8 * max(1, moves)
    while w < WIDEST and 2 * float(noise.cdf(-w - 1)) > tail:
        w *= 2
    w = min(w, WIDEST)
    if float(noise.cdf(-w - 1)) > 1e-9:
        raise MechanismError(
            "The mechanism's law is too wide to be certified: more than 2**20 steps. Hint: ask for a larger eps"
        )
    p = np.asarray(noise.pmf(np.arange(-w, w + 1)), dtype=np.float64)
    if not np.all(np.isfinite(p)) or np.any(p < 0) or abs(float(p.sum()) - 1) > 1e-9:
        raise MechanismError(
            "The mechanism's pmf is not a probability law: it is negative or does not sum to 1."
        )
    outside = float(noise.cdf(-w - 1)) + max(0.0, 1 - float(noise.cdf(w)))
    return p, outside if outside > 1e-15 else float(noise.cdf(-w - 1)) * 2


def _logs(p: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(p, _LEAST)))


def _shifts(p: Floats, moves: int) -> Iterator[int]:
    """1, ..., moves; both ways unless the law is symmetric."""
    symmetric = bool(np.array_equal(p, p[::-1]))
    for j in range(1, moves + 1):
        yield j
        if not symmetric:
            yield -j


def _ratios(logs: Floats, moves: int) -> Iterator[tuple[int, Floats]]:
    """(shift, log p_i - log p_{i-shift}) for every shift."""
    none = np.full(moves, math.log(_LEAST))
    around = np.concatenate([none, logs, none])
    for j in _shifts(logs, moves):
        yield j, logs - around[moves - j : moves - j + len(logs)]


def loss_distribution(noise: Noise, moves: int, step: float) -> pld.Losses:
    """A law by its probabilities, for one coordinate that moves by up to ``moves`` steps.

    Privacy: at every eps the largest delta over all shifts, both ways (see :mod:`dpframe.accounting.pld`).
    """
    p, outside = _window(noise, moves, 1e-60)
    shifts = list(_shifts(p, moves))
    laws = [
        np.concatenate([np.zeros(max(j, 0)), p, np.zeros(max(-j, 0))])[max(-j, 0) :][: len(p)] for j in shifts
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [np.where(p > 0, np.log(p) - np.log(q), -np.inf) for q in laws]  # inf where q is 0
    most = max(float(np.max(x, where=np.isfinite(x), initial=0.0)) for x in ratios)
    eps = np.arange(math.ceil(most / step) + 2) * step
    worst = np.zeros(len(eps))
    for q, ratio in zip(laws, ratios):
        order = np.argsort(-ratio, kind="stable")
        above = np.searchsorted(-ratio[order], -eps, side="left")  # how many have a loss > eps
        over_p = np.concatenate([[0.0], np.cumsum(p[order])])
        over_q = np.concatenate([[0.0], np.cumsum(q[order])])
        np.maximum(worst, over_p[above] - np.exp(eps) * over_q[above], out=worst)
    return pld.of_curve(np.minimum(worst + outside + ABSOLUTE, 1.0), step)
