"""Laws of noise as pages: scale, spread, cost, and their shape."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from dpframe.base.html import card, facts, note, shape
from dpframe.mechanisms.base import Noise
from dpframe.mechanisms.coarse import Coarse

COLUMNS = 61


def noise(law: Noise) -> str:
    """A law's figures in grid steps, and its probabilities as columns."""
    rows = [
        ("scale", f"{float(law.scale):,.6g} steps"),
        ("standard deviation", f"{law.std:,.6g} steps"),
        ("E|X|", f"{law.mean_abs:,.6g} steps"),
        ("95 %", f"within {law.interval(0.95):,} steps"),
        ("costs", law.event.cost.text(rho=True)),
    ]
    return card("noise", type(law).__name__, shape(heights(law), "The law's shape"), facts(rows))


def heights(law: Noise) -> list[float]:
    """The probabilities of equally wide bins around zero, the largest 1."""
    width = -(-2 * law.interval(0.99) // COLUMNS) + 1  # steps to a bin
    if isinstance(law, Coarse):  # every bin holds as many of the coarse steps
        width = -(-width // law.step) * law.step
    edges = (np.arange(COLUMNS + 1) - COLUMNS / 2) * width
    mass = np.diff(law.cdf(np.floor(edges)))
    top = float(mass.max())
    return [float(m) / top for m in mass] if top > 0 else [0.0] * COLUMNS


def mechanism(m: Any) -> str:
    """A mechanism's name, the norm in which it takes the sensitivity, and what its module says of it."""
    said = (sys.modules[type(m).__module__].__doc__ or "").strip().partition("\n")[0].partition(": ")[2]
    return card("mechanism", m.name, note(said) if said else "", facts([("sensitivity", m.norm)]))
