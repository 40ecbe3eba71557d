"""Every question that a frame of the corpus can be asked: those of the table of statistics, several at once, values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import dpframe as dp
from dpframe.audit.neighbours import HIGH, KEYS, LOW
from dpframe.statistics.table import STATISTICS

Ask = Callable[[Any], Any]
BOUNDS = (LOW, HIGH)


def _verb(name: str, arguments: Mapping[str, Any]) -> Callable[[Any, Any], Any]:
    return lambda d, eps: getattr(d, name)(**arguments, eps=eps)


_AUDITED = {title: (s, arguments) for s in STATISTICS.values() for title, arguments in s.audited.items()}
# Asked of a frame or of groups; ``eps`` is filled in.
VERBS: dict[str, Callable[[Any, Any], Any]] = {
    **{title: _verb(s.name, a) for title, (s, a) in _AUDITED.items() if not s.of_units},
    "agg": lambda d, eps: d.agg(
        n=dp.count(),
        c=dp.count("x"),
        s=dp.clip_sum("x", bounds=BOUNDS),
        m=dp.clip_mean("x", bounds=BOUNDS),
        other=dp.clip_sum("y", bounds=(1, 4)),
        eps=eps,
    ),
    "agg of complete rows": lambda d, eps: d.agg(
        n=dp.count(),
        m=dp.clip_mean("x", bounds=BOUNDS),
        other=dp.clip_sum("y", bounds=(1, 4)),
        eps=eps,
        complete_cases=True,
    ),
}
# Asked of a frame, and in groups as a count of the groups' values.
VALUES: dict[str, Callable[[Any, Any], Any]] = {
    "value_counts": lambda d, eps: d.value_counts("g", keys=KEYS, eps=eps),
}
# Their answer is which rows there are: no numbers for a black box.
ROWS_CHOSEN = tuple(title for title, (s, _) in _AUDITED.items() if s.answer == "choice")
OF_UNITS = {title: _verb(s.name, a) for title, (s, a) in _AUDITED.items() if s.of_units}
ROWS, PER_GROUP, GROUPS = 4, 3, 2  # limits of sessions with a unit
LIMITS = {"max_rows": ROWS, "max_rows_per_group": PER_GROUP, "max_groups": GROUPS}


def ungrouped(name: str, eps: Any = 1) -> Ask:
    """The question about the whole frame."""
    verb = {**VERBS, **OF_UNITS, **VALUES}[name]
    return lambda d: verb(d, eps)


def grouped(name: str, eps: Any = 1) -> Ask:
    """The question about the listed groups."""
    if name in VALUES:
        return lambda d: d.groupby("b", "g", keys={"b": [True, None], "g": KEYS}).count(eps=eps)
    verb = {**VERBS, **OF_UNITS}[name]
    return lambda d: verb(d.groupby("g", keys=KEYS), eps)


def asked_of(unit: str | None) -> list[str]:
    """Every question that a session of this unit can be asked."""
    return [*VERBS, *VALUES, *(OF_UNITS if unit else {})]


def session(relation: str, unit: str | None, contributions: int = 1) -> dict[str, Any]:
    """What a session of the corpus is opened with."""
    protected = (
        {"unit": unit, **LIMITS} if unit else {} if contributions == 1 else {"contributions": contributions}
    )
    return {"neighbors": relation, **protected}


def delta(name: str) -> float:
    """What the question charges beside eps."""
    return float(_AUDITED[name][1].get("delta", 0)) if name in _AUDITED else 0.0
