"""Choosing a mechanism and calibrating it for every part of a plan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, cast

from dpframe.accounting.events import Event, compose, repeat
from dpframe.errors import MechanismError
from dpframe.mechanisms import certificate
from dpframe.mechanisms.base import Mechanism, Noise, Target, checked_scale, sqrt_up
from dpframe.mechanisms.coarse import STEPS, Coarse
from dpframe.mechanisms.discrete_gaussian import DiscreteGaussian
from dpframe.mechanisms.gaussian import Gaussian
from dpframe.mechanisms.gaussian_classic import GaussianClassic
from dpframe.mechanisms.laplace import DiscreteLaplace, Laplace
from dpframe.mechanisms.registry import built_in
from dpframe.mechanisms.registry import mechanism as find_mechanism
from dpframe.mechanisms.staircase import Staircase

VECTOR_LAWS = frozenset({Laplace, Gaussian, GaussianClassic, DiscreteGaussian})  # hold for vectors by theorem
# What ``auto`` tries, simplest first. Not ``cactus`` (its first call takes seconds) nor ``gaussian_classic``
# (never better than ``gaussian``). The mixtures are fitted number by number, and below MIXTURES_FROM they
# gain nothing over the others.
AUTO = ("laplace", "staircase", "gaussian", "optimal_count", "tulap", "truncated_laplace")
MIXTURES = ("multi_gaussian", "quasi_gaussian", "flipped_huber")
MIXTURES_FROM = Fraction(1, 10_000)
LOSSES = ("rmse", "l1")
Loss = Literal["rmse", "l1"]
_STAIRCASES: dict[Loss, Staircase] = {"rmse": Staircase("rmse"), "l1": Staircase("l1")}
WORTH = 0.98  # a law must have less loss than this part of a simpler one's


@dataclass(frozen=True, slots=True)
class Asked:
    """What noise is for.

    Attributes
    ----------
    sensitivities : (L1, L2 squared) of every part, in its steps
    furthest : how far one coordinate of every part moves
    moving : how many coordinates move together, over all parts
    target : Target
    summed : bool
        Whether a threshold needs the law of a sum of draws.
    """

    sensitivities: tuple[tuple[int, int], ...]
    furthest: tuple[int, ...]
    moving: int
    target: Target
    summed: bool = False


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The best of the laws that ``auto`` did not take: its loss is ``ratio`` times that of the one taken."""

    mechanism: str
    loss: Loss
    ratio: float


@dataclass(frozen=True, slots=True)
class Choice:
    """A mechanism with its noise for every part."""

    mechanism: str
    noises: tuple[Noise, ...]
    runner_up: RunnerUp | None = None


def choose(name: str, asked: Asked, loss: Loss = "rmse") -> Choice:
    """Calibrate every part with one mechanism.

    ``auto`` takes the least loss (RMSE, or E\\|X\\|) among the laws that can give the guarantee, at the price
    asked for; of two within 2 % the simpler one, so that delta is left alone unless it gains more.
    """
    if name != "auto":
        mech = find_mechanism(name)
        return Choice(name, _noises(cast(Any, mech), asked, built_in(mech)))
    return _auto(asked, loss)


@lru_cache(maxsize=1024)
def _auto(asked: Asked, loss: Loss) -> Choice:
    tried = []
    for name, mech in _candidates(asked, loss):
        try:
            noises = _noises(cast(Any, mech), asked, True)
        except MechanismError as e:
            refused = e
            continue
        parts = [n.std if loss == "rmse" else n.mean_abs for n in noises]
        scaled = [x / float(l1) for x, (l1, _) in zip(parts, asked.sensitivities)]
        tried.append((sum(x * x for x in scaled) ** 0.5 if loss == "rmse" else sum(scaled), name, noises))
    if not tried:
        raise refused
    best = tried[0]
    for other in tried[1:]:
        if other[0] < best[0] * WORTH:
            best = other
    rest = min((t for t in tried if t[1] != best[1]), key=lambda t: t[0], default=None)
    if rest is None:
        return Choice(best[1], best[2], None)
    times = rest[0] / best[0] if best[0] else math.inf if rest[0] else 1.0  # noise too small for a float
    return Choice(best[1], best[2], RunnerUp(rest[1], loss, times))


def _candidates(asked: Asked, loss: Loss) -> list[tuple[str, Mechanism]]:
    target = asked.target
    if target.rho is not None:
        names: tuple[str, ...] = ("laplace", "gaussian") + (
            () if asked.summed else ("staircase", "discrete_gaussian")
        )
    elif asked.summed:
        names = ("laplace", "gaussian") if target.delta else ("laplace",)
    elif target.delta:
        names = AUTO + (MIXTURES if target.delta / asked.moving >= MIXTURES_FROM else ())
    else:
        names = ("laplace", "staircase")
    return [(n, _STAIRCASES[loss] if n == "staircase" else find_mechanism(n)) for n in names]


@lru_cache(maxsize=1024)
def _noises(mech: Any, asked: Asked, own: bool) -> tuple[Noise, ...]:
    """Noise for every part; ``own`` is whether ``mech`` is this package's (``registry.built_in``)."""
    if own and type(mech) in VECTOR_LAWS:
        return tuple(_calibrate(mech, asked.sensitivities, asked.moving, asked.target))
    return tuple(_one_by_one(mech, f, asked.moving, asked.target, own) for f in asked.furthest)


def _calibrate(
    mech: Mechanism, sensitivities: Sequence[tuple[int, int]], moving: int, target: Target
) -> list[Noise]:
    p = len(sensitivities)
    if mech.norm == "L1":
        each = part_of(target, p)
        return [mech.calibrate(Fraction(l1), moving, each) for l1, _ in sensitivities]
    return [mech.calibrate(sqrt_up(Fraction(p * l2sq)), moving, target) for _, l2sq in sensitivities]


def part_of(target: Target, parts: int) -> Target:
    """An equal part of eps or rho, and of delta."""
    eps, rho = (None if x is None else x / parts for x in (target.eps, target.rho))
    return Target(eps, target.delta / parts, rho)


def cost(choice: Choice) -> Event:
    """What the noises of all parts cost together.

    Privacy: a part with Laplace noise is (target/p)-DP by itself, so p of them compose by addition: of p times eps/p that
    is eps, and rho = eps*tanh(eps/2p). Any other noise claims its event for the whole vector.
    """
    events = tuple(n.event for n in choice.noises)
    if not all(isinstance(n, DiscreteLaplace) for n in choice.noises):
        return worst(events)
    return repeat(events[0], len(events)) if len(set(events)) == 1 else compose(events)


def _one_by_one(mech: Mechanism, furthest: int, moving: int, target: Target, own: bool) -> Noise:
    """Calibrate a law that holds for one coordinate, and check that it does.

    Privacy: each of the ``moving`` coordinates has its share of the target, and all shares are charged
    (sequential composition). The law is asked on a coarse grid (see ``mechanisms.coarse``), where
    a plug-in's claim is recomputed at every shift (built-in tables certify themselves when they are
    calibrated, the other built-in laws hold by theorem); of what the event says about its law nothing else
    is believed.
    """
    step = -(-furthest // STEPS)
    moves = -(-furthest // step)
    share = Target(
        None if target.eps is None else target.eps / moving,
        target.delta / moving,
        None if target.rho is None else target.rho / moving,
    )
    law = _checked(cast(Any, mech), moves, share, own)
    e = law.event
    checked_scale(law.scale * step, Fraction(furthest), mech.name)  # draws are multiplied by the step
    kind = "pure" if e.eps is not None and not e.delta else ""
    cost = Event(e.eps, e.delta, e.rho, e.delta_alone, kind, moving=1)
    return Coarse(law, step, repeat(cost, moving))


@lru_cache(maxsize=1024)
def _checked(mech: Any, moves: int, target: Target, own: bool) -> Noise:
    law = mech.calibrate(Fraction(moves), 1, target)
    if not isinstance(law, Noise):
        raise MechanismError(f"The mechanism {mech.name!r} returned a {type(law).__name__}, not a Noise.")
    if not own:
        certificate.check(law, moves, mech.name)
        Coarse(law, 1, law.event).sample(2)  # refuses what are no draws, before anything is spent
    return law


def worst(events: Sequence[Event]) -> Event:
    """One event for a vector whose every noise claims one for all of it: the largest of each part.

    Privacy: of Laplace laws at one eps the one with the fewest steps to the sensitivity has the largest
    Renyi divergence (``dpframe.accounting.renyi``), so the least ``steps`` holds for all.
    """
    kinds = {e.kind for e in events}
    eps = None if any(e.eps is None for e in events) else max(e.eps for e in events if e.eps is not None)
    alone = [e.delta_alone for e in events if e.delta_alone is not None]
    return Event(
        eps,
        max(e.delta for e in events),
        max(e.rho for e in events),
        max(alone) if len(alone) == len(events) else None,
        kinds.pop() if len(kinds) == 1 and not any(e.parts for e in events) else "",
        min(e.steps for e in events),
        max(e.moving for e in events),
        events[0].parts if len(set(events)) == 1 else (),
        events[0].times if len(set(events)) == 1 else 1,
    )
