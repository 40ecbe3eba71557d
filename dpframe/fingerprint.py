"""What a ledger says about a plan: everything that decides cost and noise, and no data."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, NamedTuple

from dpframe.budget import Event

if TYPE_CHECKING:
    from dpframe.plan import Plan


class Details(NamedTuple):
    """The columns of a ledger's row that describe a question."""

    fingerprint: str
    sensitivity: str
    scale: str


def fingerprint(plan: Plan) -> str:
    """A hash that is equal for equal questions at equal cost, in every process and version of the libraries.

    It covers questions with their bounds and options, unit and relation, groups and listed keys, bounding,
    threshold, mechanism, scale, sensitivity, the exact cost, and which integers are released, on which grids:
    a stored release is those integers. It covers no cell, and not which frame is asked.
    """
    content = {
        "question": plan.describe(),
        "outputs": [[o.name, repr(o.question)] for o in plan.outputs],
        "policy": [plan.policy.neighbors, plan.policy.unit],
        "by": [[str(c.name), c.kind] for c in plan.by],
        "keys": None if plan.keys is None else plan.keys.fingerprint,
        "bounding": None if plan.bounding is None else [plan.bounding.rows, plan.bounding.groups],
        "found": [repr(plan.threshold), repr(plan.selection)],
        "measures": [repr(m) for m in plan.measures],
        "pieces": [
            [repr(getattr(p, "coordinate", None)), p.measure, p.part, str(p.noise.scale)] for p in plan.pieces
        ],
        "grids": [[repr(p.layout.grid), repr(p.layout.second)] for p in plan.parts],
        "mechanism": plan.mechanism,
        "sensitivity": [plan.l1, plan.l2] if plan.outputs else None,
        "scale": plan.scale if plan.outputs else None,
        "cost": _numbers(plan.event),
    }
    if plan.tallies or plan.top is not None:
        content["tallies"] = [[repr(t) for t in plan.tallies], plan.top]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def details(plan: Plan) -> Details:
    """What a ledger's row says about the plan."""
    sizes = {"L1": plan.l1, "L2": plan.l2} if plan.outputs else {}
    return Details(fingerprint(plan), json.dumps(sizes), json.dumps(plan.scale if plan.outputs else None))


def _numbers(e: Event) -> list[str]:
    return [str(x) for x in (e.eps, e.delta, e.rho, e.delta_alone)]
