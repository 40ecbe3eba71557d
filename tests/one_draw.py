"""One draw for a whole row, looked at from outside: what a plan releases, told in the coordinates of its draws."""

from __future__ import annotations

from row_law import gauge

import dpframe as dp
from dpframe.audit.joint_moves import solved
from dpframe.engine.opening import as_source
from dpframe.mechanisms.joint import Joint, Share
from dpframe.noise.row_shape import Cells
from dpframe.pipeline import _exact


def mean(c, low=0, high=100):
    return dp.clip_mean(c, bounds=(low, high))


def total(c, low=0, high=100):
    return dp.clip_sum(c, bounds=(low, high))


def draws_of(plan):
    """The pieces of each joint draw, by its number."""
    out = {}
    for i, p in enumerate(plan.pieces):
        if isinstance(p.noise, Share) and isinstance(p.noise.joint, Joint):
            out.setdefault(p.noise.number, []).append(i)
    return out


def released(plan, frame, salt=1):
    """By group, the exact integers that every piece adds noise to."""
    exact = _exact(plan, as_source(frame), salt)
    keys = range(len(exact.rows)) if exact.found is None else exact.found.rows()
    each = [[int(v) for v in p.exact(exact)] for p in plan.pieces]
    return {k: [x[i] for x in each] for i, k in enumerate(keys)}


def moved(plan, one, two, salt=1):
    """By draw, and by group that changes, the difference of what two frames release."""
    a, b = released(plan, one, salt), released(plan, two, salt)
    none = [0] * len(plan.pieces)
    found = {}
    for number, pieces in draws_of(plan).items():
        rows = [[y - x for x, y in zip(a.get(k, none), b.get(k, none))] for k in dict.fromkeys((*a, *b))]
        found[number] = [[row[i] for i in pieces] for row in rows if any(row[i] for i in pieces)]
    return found


def in_coordinates(plan, number, difference):
    """The differences of pieces as (k, [(cells, l) of every block]); k is None where no piece tells."""
    shares = [plan.pieces[i].noise for i in draws_of(plan)[number]]
    move = solved(shares[0].joint, [s.weights for s in shares], difference)
    assert move is not None, "released integers contradict the shape of their draw"
    return move


def steps_of(plan, number, difference, reach):
    """J of a difference, the constant r left out: how far a unit moves the draw, in rows (at most ``reach`` are looked at)."""
    pieces = draws_of(plan)[number]
    joint = plan.pieces[pieces[0]].noise.joint
    bare = tuple(Cells(b.m, b.steps, 0, b.missing) for b in joint.blocks)
    k, blocks = in_coordinates(plan, number, difference)
    tried = range(-reach, reach + 1) if k is None else (k,)
    return min(gauge(bare, k, blocks, most=4 * reach + 8) for k in tried)
