"""Release files as they are written: a budget plan as TOML. What would not be read back as it is, is refused."""

from __future__ import annotations

import enum
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from dpframe.base.files import write_atomic
from dpframe.budget_plans.fingerprint import plain
from dpframe.budget_plans.query import AMOUNTS, Query, QueryError
from dpframe.budget_plans.release_file import read
from dpframe.budget_plans.sources import Named, identity, is_key_file
from dpframe.budget_plans.toml import to_toml
from dpframe.errors import Arg, DPError, InputError
from dpframe.frames.public import Public
from dpframe.statistics.base import Aggregate
from dpframe.statistics.table import STATISTICS


def dump(plan: Any, path: str | os.PathLike[str]) -> None:
    """Write a plan as a release file; see ``BudgetPlan.to_release_file``."""
    target = os.path.abspath(os.fspath(path))

    def moved(typed: str) -> str:
        """A relative path, seen from the release file."""
        if os.path.isabs(typed):
            return typed
        return os.path.relpath(os.path.join(plan._folder, typed), os.path.dirname(target))

    frames = [n for n, s in plan._given.items() if not isinstance(s, Named)]
    if frames:
        raise InputError(
            f"The source {frames[0]!r} is a frame, and a release file names files or tables.",
            hint=(
                "write it as parquet and make the plan with ",
                Arg("sources", {frames[0]: "people.parquet"}),
            ),
        )
    sources = {n: s.written(moved) for n, s in plan._given.items()}
    alone = list(sources) == ["data"]
    document: dict[str, Any] = {"source": sources["data"]} if alone else {"sources": sources}
    if plan._name is not None:
        document = {"name": plan._name, **document}
    budget = {**plan._typed, "ledger": None if plan._session.ledger is None else moved(plan._typed["ledger"])}
    document["budget"] = {k: _plain(v) for k, v in budget.items() if v is not None}
    document["query"] = [_written(n, q, moved) for n, q in plan.queries.items()]
    try:
        text = to_toml(document)
    except (TypeError, ValueError) as e:  # ValueError: more digits than Python writes
        raise InputError(f"The plan has a value that no file holds: {e}.", hint="keys from a file") from None
    try:
        again = read(type(plan), target, text, plan.scope)
        same = _whole(again) == _whole(plan)
    except DPError as e:
        raise InputError("The plan would be written so that it can't be read back: ", e) from None
    if not same:
        raise InputError(
            "The plan has a value that a release file would change (a time of nanoseconds, say, or a decimal).",
            hint="keys from a file",
        )
    write_atomic(target, text.encode())


def _whole(plan: Any) -> dict[str, Any]:
    """What a plan is, wherever its file lies: what decides it, and the files that it reads and writes."""
    ledger = plan.session.ledger
    places = {
        "sources": {n: s.written(lambda p: str(identity(plan._place(p)))) for n, s in plan._given.items()},
        "outputs": {n: [identity(plan._place(p)) for p in q.outputs] for n, q in plan.queries.items()},
        "ledger": None if ledger is None else identity(ledger.path),
    }
    return {**plan._decided(), **places}


def _written(name: str, q: Query, moved: Callable[[str], str]) -> dict[str, Any]:
    table: dict[str, Any] = {"name": name}
    if len(q.statistics) == 1 and q.statistics[0].name is None:
        table |= _asked(name, q.statistics[0])
    elif q.statistics:
        table["ask"] = {a.name or a.default_name: _asked(name, a) for a in q.statistics}
    given = {
        "source": q.source,
        "groupby": list(q.groupby) or None,
        "keys": moved(q.keys) if is_key_file(q.keys) else _plain(q.keys),
        **{k: getattr(q, k) for k in (*AMOUNTS, "weight", "rows", "relative_to")},
        **{k: _plain(v) for k, v in q.options.items()},
        "outputs": [moved(p) for p in q.outputs] or None,
    }
    return table | {k: v for k, v in given.items() if v is not None}


def _asked(name: str, a: Aggregate) -> dict[str, Any]:
    """A statistic as keys of a file: every parameter of its function that is not at its default."""
    make = STATISTICS[a.verb].ask if a.verb in STATISTICS else None
    parameters = {} if make is None else inspect.signature(make).parameters
    given = {k: v for k, p in parameters.items() if (v := a.argument(k)) not in (p.default, None)}
    try:
        same = make is not None and replace(make(**given), name=a.name) == a
    except (DPError, TypeError):
        same = False
    if not same:
        raise QueryError(name, f"{a.describe()} can't be written to a file.", hint="a statistic of dpframe")
    return {"statistic": a.verb, **{k: _measured(_plain(v)) for k, v in given.items()}}


def _measured(v: Any) -> Any:
    """Numbers of a statistic, which are read as the exact floats that they are: others as "1/3"."""
    if isinstance(v, list):
        return [_measured(x) for x in v]
    if not isinstance(v, Fraction) or v.denominator == 1:
        return v
    return float(v) if Fraction(float(v)) == v else f"{v.numerator}/{v.denominator}"


def _plain(v: Any) -> Any:
    """Values as TOML has them; what it lacks is refused when it is written."""
    if isinstance(v, Public):
        v = v.values.to_list() if hasattr(v.values, "to_list") else v.values
    if isinstance(v, Mapping):
        return {str(k): _plain(x) for k, x in v.items()}
    if isinstance(v, type) and issubclass(v, enum.Enum):
        return [m.value for m in v]
    if isinstance(v, list | tuple | range | np.ndarray | pd.Index):
        return [_plain(x) for x in v]
    return plain(v)
