"""Choosing a mechanism and calibrating it for every part of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

from dpframe.budget import Event, repeat
from dpframe.errors import MechanismError
from dpframe.mechanisms import certificate
from dpframe.mechanisms.base import Mechanism, Noise, Target, sqrt_up
from dpframe.mechanisms.coarse import STEPS, Coarse
from dpframe.mechanisms.registry import mechanism as find_mechanism

AUTO = ("laplace", "gaussian")
VECTOR_LAWS = tuple(  # hold for vectors by theorem
    f"dpframe.mechanisms.{name}" for name in ("laplace", "gaussian", "gaussian_classic", "discrete_gaussian")
)


def choose(
    name: str,
    sensitivities: Sequence[tuple[int, int]],
    furthest: Sequence[int],
    moving: int,
    target: Target,
) -> tuple[str, list[Noise]]:
    """Calibrate every part with one mechanism; ``auto`` takes the least RMSE.

    A law without delta is preferred unless another gains more than 2 %.

    Parameters
    ----------
    sensitivities : (L1, L2 squared) of every part, in its steps
    furthest : how far one coordinate of every part moves
    moving : how many coordinates move together, over all parts
    """
    if name != "auto":
        mech = find_mechanism(name)
        if type(mech).__module__ in VECTOR_LAWS:
            return name, _calibrate(mech, sensitivities, moving, target)
        return name, [_one_by_one(mech, f, moving, target) for f in furthest]
    best: tuple[float, str, list[Noise]] | None = None
    for candidate in AUTO:
        if candidate == "gaussian" and target.rho is None and not target.delta:
            continue
        noises = _calibrate(find_mechanism(candidate), sensitivities, moving, target)
        loss = sum((n.std / float(l1)) ** 2 for n, (l1, _) in zip(noises, sensitivities)) ** 0.5
        if best is None or loss < best[0] * 0.98:
            best = (loss, candidate, noises)
    assert best is not None
    return best[1], best[2]


def _calibrate(
    mech: Mechanism, sensitivities: Sequence[tuple[int, int]], moving: int, target: Target
) -> list[Noise]:
    p = len(sensitivities)
    noises = []
    for l1, l2sq in sensitivities:
        size = Fraction(p * l1) if mech.norm == "L1" else sqrt_up(Fraction(p * l2sq))
        noise = mech.calibrate(size, moving, target)
        if not isinstance(noise, Noise):
            raise MechanismError(
                f"The mechanism {mech.name!r} returned a {type(noise).__name__}, not a Noise."
            )
        noises.append(noise)
    return noises


def _one_by_one(mech: Mechanism, furthest: int, moving: int, target: Target) -> Noise:
    """Calibrate a law that holds for one coordinate, and check that it does.

    Privacy: each of the ``moving`` coordinates has its share of the target, and all shares are charged
    (sequential composition). The law is asked on a coarse grid (see ``mechanisms.coarse``), where
    its claim is recomputed at every shift; of what the event says about its law nothing is believed
    but what was recomputed.
    """
    step = -(-furthest // STEPS)
    moves = -(-furthest // step)
    share = Target(
        None if target.eps is None else target.eps / moving,
        target.delta / moving,
        None if target.rho is None else target.rho / moving,
    )
    law = _checked(cast(Any, mech), moves, share)
    e = law.event
    kind = "pure" if e.eps is not None and not e.delta else ""
    cost = Event(e.eps, e.delta, e.rho, e.delta_alone, kind, moving=1)
    return Coarse(law, step, repeat(cost, moving))


@lru_cache(maxsize=1024)
def _checked(mech: Any, moves: int, target: Target) -> Noise:
    law = mech.calibrate(Fraction(moves), 1, target)
    if not isinstance(law, Noise):
        raise MechanismError(f"The mechanism {mech.name!r} returned a {type(law).__name__}, not a Noise.")
    certificate.check(law, moves, mech.name)
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
