"""For authors of statistics: one question against its plain computation, and against every pair of neighbours."""

from __future__ import annotations

import json
import math
import pickle
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import polars as pl

import dpframe as dp
from dpframe.audit import grey_box, neighbours
from dpframe.audit.neighbours import INF, KEYS, LIBRARIES, NAN, Pair, Row, frame_of, row
from dpframe.base.docstrings import sections
from dpframe.statistics.base import Aggregate
from dpframe.statistics.table import STATISTICS

EXACT = 10**6  # an eps at which noise is far below any tolerance: beyond 0.001 sensitivities once in e**1000
LIMITS: dict[str, Any] = {"max_rows": 4, "max_rows_per_group": 3, "max_groups": 2}
TOGETHER = 3  # rows that are protected together
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Agrees:
    """What :func:`check_statistic` looked at.

    Attributes
    ----------
    values : int
        Answers that were compared with the plain computation.
    pairs : int
        Neighbouring pairs whose coordinates moved no more than declared.
    """

    values: int
    pairs: int


def check_statistic(
    question: Aggregate,
    plain: Callable[[pl.DataFrame], Any],
    *,
    within: float = 1e-3,
    seed: int = 0,
    **options: Any,
) -> Agrees:
    """Check a statistic: right at a huge eps, no unit tells more than it pays, told and stored as it is asked.

    - the value, at eps = 10**6: frames of 0, 1, 2 and many rows, with missing, infinite and extreme cells; alone and
      in groups; of pandas, Polars and lazy frames; under both relations, for one row, for a unit, and for any three rows;
    - the sensitivity: :func:`dpframe.audit.grey_box` over all of ``audit.neighbours``' pairs of rows, of three rows and
      of units, and generated ones, under both relations, alone and in groups;
    - the plan: explained before, and facts that are JSON after;
    - if it is in the table of statistics: its verb, the sections of its documentation, that it survives pickling, and
      that a release file gives it back.

    Parameters
    ----------
    question : Aggregate
        About the columns ``x`` and ``y`` (Float64), ``b`` (Boolean), ``i`` (Int64), ``g`` (text) or ``u`` (the unit) of
        :mod:`dpframe.audit.neighbours`; bounds of ``(-3, 10)`` leave cells beyond them.
    plain : callable
        The same without privacy: takes a Polars frame, returns a number, a tuple of one for each output, or for an
        answer of several rows a dict from column to list. None where any answer is right (the mean of nothing).
    within : float
        How far the two may be apart, in the answer's unit: what rounding to the grid amounts to for two rows.
    seed : int
        Of the generator of pairs.
    **options
        Of every call, such as ``delta=1e-6, mechanism="gaussian"``.

    Returns
    -------
    Agrees

    Raises
    ------
    AssertionError
        Listing all complaints. A right statistic gets none: the chance is below 1e-9 a call.

    Examples
    --------
    >>> import dpframe as dp
    >>> from dpframe.testing import check_statistic
    >>> check_statistic(dp.count("x"), lambda d: len(d.drop_nulls("x").drop_nans("x")), within=0.5).values > 100
    True
    """
    found: list[str] = []
    values = _values(question, plain, within, options, found)
    pairs = _pairs(question, seed, options, found)
    _told(question, options, found)
    if question.verb in STATISTICS:
        _named(question, found)
    if found:
        more = [f"- and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
        lines = [f"- {text}" for text in found[:_SHOWN]]
        raise AssertionError(
            "\n".join([f"{len(found)} complaints about {question.describe()}:", *lines, *more])
        )
    return Agrees(values, pairs)


# ---- the value ----

_SOME: list[Row] = [row(x, y, b, i) for x, y, b, i in ((1.0, 2.0, True, 3), (7.25, -1.0, False, 5))]
_ROWS: dict[str, list[Row]] = {
    "no row": [],
    "one row": _SOME[:1],
    "two rows": _SOME,
    "two equal rows": [_SOME[0], _SOME[0]],
    "one missing row": [row(None, None, None, None)],
    "a NaN": [row(NAN, NAN, None, None), _SOME[0]],
    "beyond the bounds": [row(1e300, -1e300, True, 6), row(-INF, INF, False, 0), _SOME[1]],
    "many rows": [row(k % 17 - 5.0, k % 11 - 2.5, k % 3 == 0, k % 7) for k in range(40)]
    + [row(None, 2.0, None, 1), row(3.0, NAN, True, None), row(None, None, None, None)],
}


def _values(
    question: Aggregate, plain: Callable[[pl.DataFrame], Any], within: float, options: Any, found: list[str]
) -> int:
    """Compare answers with the plain computation on every frame, relation and kind of unit; how many there were."""
    compared = 0
    kinds = cycle(LIBRARIES)
    for name, rows in _ROWS.items():
        placed = [(*r[:4], ("a", "b", "unlisted", None)[k % 4], 100 + k) for k, r in enumerate(rows)]
        frame = frame_of(placed)
        for relation in ("add_remove", "replace_one"):
            for protected in ({}, {"unit": "u", **LIMITS}, {"contributions": TOGETHER}):
                if "unit" not in protected and _of_units(question):
                    continue
                library = next(kinds)
                given, _ = Pair(name, frame, frame).of(library)
                where = f"{name}, {library}, {relation}, {protected}"
                try:
                    with dp.Session(eps=3 * EXACT, delta=0.1, neighbors=relation, **protected):
                        door = dp.frame(given)
                        whole = _columns(door.agg(question, eps=EXACT, **options))
                        groups = _columns(door.groupby("g", keys=KEYS).agg(question, eps=EXACT, **options))
                except Exception as e:
                    found.append(f"value ({where}): {type(e).__name__}: {e}")
                    continue
                compared += _compare(question, whole, plain(frame), within, where, found)
                size = len(groups["g"]) // len(KEYS)
                for at, key in enumerate(KEYS):
                    part = {k: v[at * size : (at + 1) * size] for k, v in groups.items() if k != "g"}
                    right = plain(frame.filter(pl.col("g").eq_missing(pl.lit(key, pl.String))))
                    compared += _compare(question, part, right, within, f"group {key!r} of {where}", found)
    return compared


def _of_units(question: Aggregate) -> bool:
    return question.verb in STATISTICS and STATISTICS[question.verb].of_units


def _columns(answer: Any) -> dict[str, list[Any]]:
    """A table of either library as lists; missing cells are None."""
    if not isinstance(answer, pl.DataFrame):
        answer = pl.from_pandas(answer)
    return {k: v.to_list() for k, v in answer.to_dict().items()}


def _compare(
    question: Aggregate, got: Mapping[str, list[Any]], right: Any, within: float, where: str, found: list[str]
) -> int:
    if right is None:
        return 0
    if not isinstance(right, Mapping):
        several: Sequence[Any] = right if isinstance(right, tuple) else (right,)
        right = {name: [value] for name, value in zip(question.names, several, strict=True)}
    for name, values in right.items():
        if name not in got:
            found.append(f"value ({where}): there is no column {name!r}, but {sorted(got)}")
        elif len(got[name]) != len(values) or not all(map(_near, got[name], values, cycle([within]))):
            found.append(f"value ({where}): {name} is {got[name]}, and should be {list(values)}")
    return 1


def _near(got: Any, right: Any, within: float) -> bool:
    if right is None or isinstance(right, str | bool):
        return bool(got == right)
    return got is not None and math.isfinite(got) and abs(got - right) <= within


# ---- the sensitivity ----


def _pairs(question: Aggregate, seed: int, options: Any, found: list[str]) -> int:
    """Ask both frames of every pair; how many pairs there were."""
    import numpy as np

    def alone(d: Any) -> Any:
        return d.agg(question, eps=1, **options)

    def grouped(d: Any) -> Any:
        return d.groupby("g", keys=KEYS).agg(question, eps=1, **options)

    many, kinds = 0, cycle(LIBRARIES)
    for pair in _neighbours(np.random.default_rng(seed)):
        if pair.unit is None and _of_units(question):
            continue
        session: dict[str, Any] = {
            "neighbors": pair.relation,
            **({"unit": "u", **LIMITS} if pair.unit else {"contributions": pair.contributions}),
        }
        library = next(kinds)
        for asked in (alone, grouped):
            seen = grey_box(asked, *pair.of(library), **session)
            where = f"{pair.name!r}, {pair.relation}, {session}, {library}, {asked.__name__}"
            if seen.error is not None:
                found.append(f"pair ({where}): {seen.error}")
            elif not seen.ok:
                found.append(f"pair ({where}): not {', '.join(seen.failures)}: {seen.moved}")
            elif not seen.moved:
                found.append(f"pair ({where}): no coordinate was seen")
        many += 1
    return many


def _neighbours(rng: Any) -> Iterator[Pair]:
    for relation in ("add_remove", "replace_one"):
        yield from neighbours.row_pairs(relation)
        yield from neighbours.unit_pairs(relation, heavy=20)
        yield from neighbours.several_pairs(relation, rows=TOGETHER)
        for unit, rows, many in ((None, 1, 10), ("u", 1, 10), (None, TOGETHER, 4)):
            yield from (neighbours.generated(rng, relation, unit, rows) for _ in range(many))


# ---- the words, and the files ----


def _told(question: Aggregate, options: Any, found: list[str]) -> None:
    """The plan before and the facts after, and the question as a value."""
    unit = {"unit": "u", **LIMITS} if _of_units(question) else {}
    with dp.Session(eps=2, delta=0.1, **unit):
        plan = dp.frame(frame_of(_ROWS["many rows"])).plan.agg(question, eps=1, **options)
        text = str(plan.explain(rows=100))
        if question.describe() not in text:
            found.append(f"plan: explain() does not name {question.describe()}")
        facts = plan.release().facts
    if json.loads(json.dumps(facts)) != facts:
        found.append("facts: are not the same after JSON")
    if question.alias("n") == question:
        found.append("question: is equal to one of another name")


def _named(question: Aggregate, found: list[str]) -> None:
    """What the table of statistics promises: a verb, its documentation, a release file."""
    statistic = STATISTICS[question.verb]
    verb = getattr(dp.FrameDP, statistic.name, None)
    if verb is None:
        found.append(f"verb: df.dp has no {statistic.name}")
    for what, f in (("question", statistic.ask), ("verb", verb)):
        parts = sections(f.__doc__ or "")
        missing = [s for s in ("Parameters", "Returns", "Raises", "Notes", "Examples") if s not in parts]
        missing += [p for p in statistic.parameters if p not in parts.get("Parameters", "")]
        if missing or "Privacy:" not in parts.get("Notes", ""):
            found.append(f"documentation of the {what}: lacks {missing or 'Privacy:'}")
    if pickle.loads(pickle.dumps(question)) != question:
        found.append("question: is not equal to its pickled copy")
    if not statistic.audited:
        found.append("audit: nothing is asked (audited=)")
    with tempfile.TemporaryDirectory() as folder:
        frame_of(_ROWS["many rows"]).write_parquet(Path(folder) / "rows.parquet")
        unit = {"unit": "u", **LIMITS} if _of_units(question) else {}
        plan = dp.BudgetPlan(Path(folder) / "rows.parquet", {"q": dp.query(question)}, eps=1, **unit)
        plan.to_release_file(Path(folder) / "plan.toml")
        if dp.BudgetPlan.from_release_file(Path(folder) / "plan.toml").fingerprint != plan.fingerprint:
            found.append("release file: gives another plan back")
