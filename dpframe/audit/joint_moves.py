"""What a pair of neighbours costs a joint draw: the moves of released integers, told in the coordinates of the draw they share.

Each integer of a draw has a whole-number combination of its coordinates as noise, and moves by the same combination of what
a unit adds. So the moves of all integers of a group are solved for the coordinates; a move that no coordinates make contradicts
the shape of the draw, and no noise pays for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from dpframe.mechanisms.joint import Joint, Share
from dpframe.mechanisms.row import RowNoise
from dpframe.mechanisms.row_gaussian import LinearGaussian
from dpframe.planning.plan import Plan

Move = tuple[
    int | None, list[tuple[tuple[int, ...], int]]
]  # rows (None: not told); of each block its cells and its present rows


def cost_of_draws(plan: Plan, moves: Mapping[int, Sequence[int]]) -> Fraction | None:
    """What the moves of all pieces that share draws cost: in eps (row laws), or in rho (Gaussian ones), over all groups.

    Parameters
    ----------
    moves : mapping of int to sequence of int
        Of every piece, by its place, the differences of its exact integers, group by group.

    Returns
    -------
    Fraction or None
        None where the integers of one draw move as no row can move them together.
    """
    draws: dict[int, list[int]] = {}
    for i, p in enumerate(plan.pieces):
        if isinstance(p.noise, Share) and i in moves:
            draws.setdefault(p.noise.number, []).append(i)
    total = Fraction(0)
    for pieces in draws.values():
        shares: list[Share] = [plan.pieces[i].noise for i in pieces]  # type: ignore[misc]
        for group in zip(*(moves[i] for i in pieces)):
            if any(group):
                cost = _cost(shares, group)
                if cost is None:
                    return None
                total += cost
    return total


def _cost(shares: Sequence[Share], group: Sequence[int]) -> Fraction | None:
    joint = shares[0].joint
    move = solved(joint, [s.weights for s in shares], group)
    if move is None:
        return None
    if isinstance(joint, RowNoise):
        return rows_moved(joint, move) / joint.scale
    if isinstance(joint, LinearGaussian):
        return norm_squared(joint, move) / (2 * joint.sigma**2)
    return Fraction(0)


def solved(joint: Joint, weights: Sequence[Sequence[int]], group: Sequence[int]) -> Move | None:
    """A group's moves as coordinates, by elimination; None if there are none. Only the number of rows may be drawn and not told."""
    table = [[*map(Fraction, w), Fraction(d)] for w, d in zip(weights, group)]
    width, row = len(joint.coordinates), 0
    found: dict[int, int] = {}
    for column in reversed(range(width)):  # the rows last: they may be left over
        pivot = next((r for r in range(row, len(table)) if table[r][column]), None)
        if pivot is None:
            continue
        table[row], table[pivot] = table[pivot], table[row]
        table[row] = [x / table[row][column] for x in table[row]]
        for r in range(len(table)):
            if r != row and table[r][column]:
                factor = table[r][column]
                table[r] = [x - factor * y for x, y in zip(table[r], table[row])]
        found[column] = row
        row += 1
    values = {c: table[r][-1] for c, r in found.items()}
    free = set(range(width)) - set(found)
    if (
        free - {0}
        or any(line[-1] for line in table[row:])
        or any(v.denominator != 1 for v in values.values())
    ):
        return None
    if free and any(table[r][0] for r in found.values()):
        return None
    at = {c: int(values[i]) for i, c in enumerate(joint.coordinates) if i in values}
    blocks = range(1 + max((c.block for c in joint.coordinates if c.block is not None), default=-1))
    each = [
        (
            tuple(v for c, v in at.items() if c.block == j and c.cell is not None),
            next((v for c, v in at.items() if c.block == j and c.cell is None), 0),
        )
        for j in blocks
    ]
    return (None if free else int(values[0])), each


def rows_moved(joint: RowNoise, move: Move) -> int:
    """How far a move takes J at most, in rows: the least a + b that holds it with no slack."""
    k, blocks = move
    a = b = 0
    for block, (cells, here) in zip(joint.blocks, blocks):
        up = -(-sum(x for x in cells if x > 0) // block.steps)
        down = -(-sum(-x for x in cells if x < 0) // block.steps)
        if block.missing:  # (min(a, b + here), that less here) holds the cells, and -b <= here <= a
            a, b = max(a, up, down + here, here), max(b, down, up - here, -here)
        else:
            a, b = max(a, up), max(b, down)
    if k is None:
        return a + b
    return 2 * max(a, b + k) - k


def norm_squared(joint: LinearGaussian, move: Move) -> Fraction:
    """The square of a move in the coordinates of the linear map.

    Rows that are drawn and not told move by whatever costs least: what is told does not depend on them, so every number
    of them bounds what it costs.
    """
    rows, blocks = move
    if rows is None:
        m, pull, weight = joint.map, Fraction(0), joint.map.lam**2
        for block, (cells, here) in zip(joint.blocks, blocks):
            pull += m.beta**2 * m.share * here if block.missing else Fraction(2 * sum(cells), block.steps)
            weight += (m.beta * m.share) ** 2 if block.missing else 1
        best = pull / weight
        return min(norm_squared(joint, (k, blocks)) for k in (math.floor(best), math.ceil(best)))
    k, m = rows, joint.map
    out = (m.lam * k) ** 2
    for block, (cells, here) in zip(joint.blocks, blocks):
        counted = here if block.missing else k
        out += Fraction(2 * sum(cells) - block.steps * counted, block.steps) ** 2
        out += (m.beta * (here - m.share * k)) ** 2 if block.missing else 0
    return out
