"""What of a budget plan decides its costs and its noise, as JSON holds it. No data."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from dpframe._version import __version__
from dpframe.budget_plans.allocation import turns
from dpframe.budget_plans.query import Query
from dpframe.budget_plans.questions import Questions
from dpframe.budget_plans.sources import Named, is_key_file
from dpframe.planning.plan import Plan
from dpframe.session.payer import limits_of
from dpframe.session.session import Session


def decided_by(
    session: Session,
    asked: Questions,
    sources: Mapping[str, Any],
    allocation: str,
    total: Fraction,
    name: str | None,
    ledger: str | None,
) -> dict[str, Any]:
    """Everything that decides what a plan costs and how much noise its answers get, before anything is released."""
    budget, policy, limits = session.budget, session.policy, limits_of(session)

    def need(name: str, limit: Fraction | None) -> Fraction | None:
        q = asked.queries[name]
        named = isinstance(q.rows, str) or isinstance(q.relative_to, str)
        return None if named else asked.need(name, limit)

    first = turns(asked.queries, allocation, total, {}, need)
    return {
        "dpframe": __version__,
        "budget": repr(budget),
        "policy": [*policy.key, repr(limits)],
        "allocation": allocation,
        "ledger": ledger,
        "name": None if ledger is None else name,  # another name would be charged anew
        "sources": {n: repr(s) if isinstance(s, Named) else None for n, s in sources.items()},
        "queries": [
            decisive(n, asked.queries[n], asked.bind(n, t.amount).plan, t.amount, t.decided)
            for n, t in first.items()
        ],
    }


def decisive(name: str, q: Query, plan: Plan, amount: Fraction, decided: bool) -> dict[str, Any]:
    """What of a query decides its cost and its noise, as JSON holds it."""
    event = plan.event
    return {
        "name": name,
        "source": q.source,
        "asked": [repr(a.alias(a.name or a.default_name)) for a in q.statistics],
        "columns": [[repr(c.name), c.kind, c.text, c.nullable] for c in plan.columns],
        "by": [repr(c.name) for c in plan.by],
        "keys": None if plan.keys is None else _keys(q, plan.keys.rows()),
        "limits": repr(plan.bounding),
        "found": [repr(plan.threshold), repr(plan.selection)],
        "tallies": [[repr(t) for t in plan.tallies], repr(plan.top)],
        "options": {k: repr(v) for k, v in sorted(q.options.items())},
        "amount": exact_text(amount),
        "decided": decided,
        "rule": [exact_text(x) for x in (q.weight, q.error, q.rows, q.relative_to)],
        "event": [exact_text(x) for x in (event.eps, event.delta, event.rho, event.delta_alone)],
        "parts": [
            [p.mechanism, str(p.l1), str(p.l2_squared), p.fused, exact_text(p.layout.grid.step)]
            for p in plan.parts
        ],
        "scales": [repr(plan.noise_scale(o)) for o in plan.outputs],
    }


def exact_text(x: Fraction | str | None) -> str | None:
    """An exact number as text: ``"1/3"``."""
    return None if x is None else str(x)


def _keys(q: Query, keys: Sequence[Any]) -> str:
    """A digest of the listed keys; the path, where each scope has a file of its own."""
    return str(q.keys) if is_key_file(q.keys) and "{scope}" in q.keys else _digest(keys)


def plain(v: Any) -> Any:
    """A typed value as Python has it: exactly the same value, or the value itself where there is none.

    A pandas or NumPy time of microseconds is a datetime; one of nanoseconds stays what it is.
    """
    if isinstance(v, enum.Enum):
        return v.value
    if isinstance(v, pd.Timestamp):
        return v if v is pd.NaT or v.nanosecond else v.to_pydatetime()
    if isinstance(v, np.datetime64):
        made = v.astype("datetime64[us]")
        return made.item() if made == v and not isinstance(made.item(), int) else v
    if isinstance(v, np.timedelta64):
        return v
    return v.item() if isinstance(v, np.generic) else v


def _digest(keys: Sequence[Any]) -> str:
    digest = hashlib.sha256()
    for k in keys:
        k = tuple(map(plain, k)) if isinstance(k, tuple) else plain(k)
        digest.update(f"{k!r}\n".encode("utf-8", "backslashreplace"))
    return digest.hexdigest()
