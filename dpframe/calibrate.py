"""Choosing a mechanism and calibrating it for every part of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpframe.budget import Event
from dpframe.errors import MechanismError
from dpframe.mechanisms.base import Mechanism, Noise, Target, sqrt_up
from dpframe.mechanisms.registry import mechanism as find_mechanism

AUTO = ("laplace", "gaussian")


def choose(
    name: str, sensitivities: Sequence[tuple[int, int]], moving: int, target: Target
) -> tuple[str, list[Noise]]:
    """Calibrate every part with one mechanism; ``auto`` takes the least RMSE.

    A law without delta is preferred unless another gains more than 2 %.
    """
    if name != "auto":
        return name, _calibrate(find_mechanism(name), sensitivities, moving, target)
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


def worst(events: Sequence[Event]) -> Event:
    """One event for a vector whose every noise claims one for all of it: the largest of each part."""
    eps = None if any(e.eps is None for e in events) else max(e.eps for e in events if e.eps is not None)
    alone = [e.delta_alone for e in events if e.delta_alone is not None]
    return Event(
        eps,
        max(e.delta for e in events),
        max(e.rho for e in events),
        max(alone) if len(alone) == len(events) else None,
    )
