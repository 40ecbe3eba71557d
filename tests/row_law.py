"""The row law by its definition, word for word and slowly."""

from __future__ import annotations

import itertools
import math

from dpframe.noise.row_shape import numerators


def holds(block, x, here, a, b):
    if block.missing:
        if not -b <= here <= a:
            return False
        a = min(a, b + here)
        b = a - here
    up, down = sum(v for v in x if v > 0), -sum(v for v in x if v < 0)
    return up <= a * block.steps + block.slack and down <= b * block.steps + block.slack


def gauge(blocks, k, noise, most=60):
    """J: the least a + b with a - b = k that holds all blocks."""
    for b in range(max(0, -k), most):
        if all(holds(block, x, here, b + k, b) for block, (x, here) in zip(blocks, noise)):
            return k + 2 * b
    raise AssertionError


def held(block, a, b):
    """Every (x, l) that a pair holds, by trying all."""
    reach = max(a, b) * block.steps + block.slack
    rows = range(-b, a + 1) if block.missing else (0,)
    cells = itertools.product(range(-reach, reach + 1), repeat=block.m)
    return [(x, here) for x in cells for here in rows if holds(block, x, here, a, b)]


def law(blocks, scale, top):
    """Probabilities of all noise with J < top, by the definition and the total of the closed form."""
    q = math.exp(-1 / float(scale))
    d = sum(b.size for b in blocks)
    z = (1 - q * q) * sum(h * q**i for i, h in enumerate(numerators(blocks))) / (1 - q) ** (d + 2)
    found = {}
    for s in range(top):
        for a in range(s + 1):
            for noise in itertools.product(*(held(b, a, s - a) for b in blocks)):
                found.setdefault((2 * a - s, noise), q ** gauge(blocks, 2 * a - s, noise) / z)
    return found
