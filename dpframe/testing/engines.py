"""For authors of engines: the same questions to generated frames on an engine and on Polars."""

from __future__ import annotations

import datetime as dt
import hashlib
import random
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

import dpframe as dp
from dpframe.engine import polars_query as engine
from dpframe.errors import DPWarning
from dpframe.frames.contract import Ask, Bounding, Counts, Source
from dpframe.pipeline import _exact
from dpframe.planning.plan import Plan
from dpframe.testing.goodness_of_fit import fits
from dpframe.testing.shared_out import shared_out

SCHEMA: dict[str, Any] = {
    "x": pl.Float64,
    "y": pl.Float32,
    "i": pl.Int64,
    "j": pl.Int16,
    "b": pl.Boolean,
    "c": pl.Decimal(10, 2),
    "text": pl.String,
    "whole": pl.Int64,
    "day": pl.Date,
    "time": pl.Datetime("us"),
    "level": pl.Float64,
    "flag": pl.Boolean,
    "price": pl.Decimal(6, 2),
    "user": pl.Int64,
    "device": pl.String,
}
_FAR = (2.0**60, -(2.0**60), 1e300, -1e300, 5e-324, float("inf"), float("-inf"), float("nan"), -0.0)
_CELLS: dict[str, Sequence[Any]] = {
    "x": (*_FAR, 0.5, 1.5, 2.5, 0.1, 0.3, 3.0, 7.25, -4.0, 100.0, 1 / 3),
    "y": (0.5, -1.5, float("nan"), float("inf"), 0.1, 3.0, 99.0),
    "i": (2**62, -(2**62), 2**53 + 1, 0, 1, 2, 3, 5, -7, 40),
    "j": (-32768, 32767, 0, 1, 2, 3),
    "b": (True, False),
    "c": (Decimal("0.05"), Decimal("-1.50"), Decimal("12345678.99"), Decimal("2.50")),
    "text": ("a", "b", "", "A", "é", "1:a|", "日本", "-"),
    "whole": (0, 1, -1, 2**62),
    "day": (dt.date(2026, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29)),
    "time": (
        dt.datetime(2026, 1, 1, 12, 30, 0, 1),
        dt.datetime(1969, 12, 31, 23),
        dt.datetime(2026, 3, 29, 2, 30),
    ),
    "level": (0.0, -0.0, 1.5, -2.25, 1000.0, float("nan")),
    "flag": (True, False),
    "price": (Decimal("1.50"), Decimal("0.00"), Decimal("-3.25")),
    "user": (1, 2, 3, 2**40),
    "device": ("p", "q", "p|"),
}
KEYS = ("text", "whole", "day", "time", "level", "flag", "price")
MEASURED = ("x", "y", "i", "j", "c")
SIZES = (0, 1, 2, 3, 5, 8, 13, 40, 120)
BOUNDS = ((0, 10), (-5, 5), (0.1, 0.7), (-1e6, 1e6), (20, 100), (0, 1), (-3, 0))
_FALSE_ALARM = 1e-9
_UNITS, _GROUPS = 4_000, 5


@dataclass(frozen=True, slots=True)
class Conforms:
    """What :func:`check_engine` looked at.

    Attributes
    ----------
    frames : int
        Generated frames, each asked one question.
    bounded : int
        Of these, frames that were asked for units.
    statistics : dict of str -> int
        How often each was asked, "keys" (by the weights of units) among them.
    complete : int
        Of these, frames of which incomplete rows were left out.
    """

    frames: int
    bounded: int
    statistics: dict[str, int]
    complete: int = 0


def check_engine(
    make: Callable[[pl.DataFrame], Any], *, frames: int = 60, seed: int = 0, together: int = 1
) -> Conforms:
    """Check that an engine counts in the same integers as Polars, and chooses groups fairly.

    Frames of every type, with missing and extreme cells, are asked random questions: every statistic,
    no, listed and unknown keys, no unit, one, and a pair, with and without ``complete_cases=True``. The integers that
    would get noise are compared, one by one, under :func:`canonical_rank`; where incomplete rows are left out, also
    with those of the frame that has lost them row by row in Python, and sums of units, with limits on their rows in a
    group and over all groups, with what each unit counts for by whole numbers in Python. Then the engine's own choice is tested: 4,000
    units in five groups
    each count in one, and the groups that they get are compared with an even choice, under two salts,
    and between the two (a fair engine fails at most once in 10**9). An engine that refuses units or distinct
    values is not asked for them.

    Parameters
    ----------
    make : callable
        Takes a Polars frame and returns the same table as the engine has it; ``dp.frame`` must accept it.
    frames : int
        How many frames are generated, with one question each.
    seed : int
        Of the generator of frames; the frames are not private.
    together : int
        How many frames share a question, which is asked once of all of them: as one table, in which the
        number of the frame is a further key, and part of the unit. For engines that take seconds a question.

    Returns
    -------
    Conforms

    Raises
    ------
    AssertionError
        Naming the first question whose integers differ, and the number of the frame.

    Examples
    --------
    >>> from dpframe.testing.mechanisms import check_engine
    >>> check_engine(lambda frame: frame.lazy(), frames=3).frames
    3
    """
    statistics: Counter[str] = Counter()
    bounded = complete = 0
    for i in range(0, frames, together):
        rng = random.Random(f"{seed}/{i}")
        many = min(together, frames - i)
        table = make_frame(rng) if together == 1 else _numbered([make_frame(rng) for _ in range(many)])
        there = make(table)
        lacks = dp.frame(there)._source.lacks
        ask = _question(rng, lacks, many if together > 1 else None)
        plan, exact = ask(table)
        plan_there, exact_there = ask(there)
        if plan_there.measures != plan.measures or not same(exact, exact_there):
            raise AssertionError(
                f"frame {i} of seed {seed}: {plan.describe()} has other integers than on Polars"
            )
        if plan.bounding is not None and plan.summed and not _shared_as_by_hand(table, plan, exact):
            raise AssertionError(f"frame {i} of seed {seed}: {plan.describe()} is not shared out as by hand")
        if plan.complete and not same(exact, ask(table, by_hand=True)[1]):
            raise AssertionError(f"frame {i} of seed {seed}: {plan.describe()} is not of the complete rows")
        bounded += many * (plan.bounding is not None)
        complete += many * bool(plan.complete)
        statistics.update(many * ([o.question.verb for o in plan.outputs] or ["keys"]))
        if i == 0 and "units" not in lacks:
            _check_choice(make)
    return Conforms(frames, bounded, dict(statistics), complete)


def _numbered(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The rows of all frames, with the number of their frame."""
    return pl.concat(f.with_columns(frame=pl.lit(i, pl.Int64)) for i, f in enumerate(frames))


def make_frame(rng: random.Random, rows: int | None = None) -> pl.DataFrame:
    """A frame of ``SCHEMA`` with missing cells, ties, and cells far outside of all bounds."""
    n = rng.choice(SIZES) if rows is None else rows
    missing = rng.choice((0.0, 0.1, 0.5, 1.0)) if rng.random() < 0.9 else 1.0

    def cell(name: str) -> Any:
        if rng.random() < missing:
            return None
        if name == "x" and rng.random() < 0.5:
            return rng.uniform(-12, 12)
        return rng.choice(_CELLS[name])

    return pl.DataFrame({name: [cell(name) for _ in range(n)] for name in SCHEMA}, schema=SCHEMA)


def same(a: Counts, b: Counts) -> bool:
    """Whether two engines said the same, found keys included."""
    pairs = [(a.rows, b.rows), *zip(a.present, b.present)]
    pairs += [(s, t) for p, q in zip(a.sums, b.sums) for s, t in zip(p, q)]
    for s, t in zip(a.tallies, b.tallies):
        pairs += [(s.groups, t.groups), (s.bins, t.bins), (s.rows, t.rows)]
    if (a.units is None) != (b.units is None) or (a.found is None) != (b.found is None):
        return False
    if (a.weights is None) != (b.weights is None):
        return False
    pairs += [
        (x, y) for x, y in ((a.units, b.units), (a.weights, b.weights)) if x is not None and y is not None
    ]
    if a.found is not None and not a.found.equals(b.found):
        return False
    return all(np.array_equal(x, y) for x, y in pairs)


def _shared_as_by_hand(frame: pl.DataFrame, plan: Plan, exact: Counts) -> bool:
    """Whether the sums are those that :func:`shared_out` finds for the same units."""
    expected = shared_out(dp.frame(frame)._source, plan.ask(0))
    return expected is None or same(replace(exact, found=None, tallies=()), expected)


def _complete_rows(frame: pl.DataFrame, plan: Plan) -> pl.DataFrame:
    """The rows in which nothing that the plan reads is null or NaN, looked at one by one."""
    read = {str(a.column) for a in plan.complete}
    there = [all(r[c] is not None and r[c] == r[c] for c in read) for r in frame.iter_rows(named=True)]
    return frame.filter(pl.Series(there, dtype=pl.Boolean))


Questioned = Callable[..., tuple[Plan, Counts]]


def _question(rng: random.Random, lacks: Collection[str], many: int | None) -> Questioned:
    """A random question, to be asked of any frame; the answer is the exact integers.

    Of ``many`` frames in one table the question is asked of each. Asked ``by_hand``, incomplete rows are taken out of a
    Polars frame before it is an engine's.
    """
    unit: list[str] | None = rng.choice((None, None, ["user"], ["device"], ["user", "device"]))
    unit = None if "units" in lacks else unit
    by = rng.sample(KEYS, rng.choice((0, 1, 1, 2)))
    keys = None if rng.random() < 0.4 else _keys(rng, by)
    if many is not None:
        keys = None if keys is None and by else {"frame": range(many), **(keys or {})}
        unit, by = unit and ["frame", *unit], ["frame", *by]
    limits: dict[str, int] = {}
    if unit is not None:
        r = rng.choice((1, 2, 3, 50))
        limits = {"max_groups": rng.choice((1, 2, 100)), "max_rows_per_group": r} if by else {"max_rows": r}
        if by and rng.random() < 0.5:
            limits["max_rows"] = rng.choice((1, 2, 3, 5))
    listed = keys is not None or not by
    distinct = listed and "distinct" not in lacks
    asked = [_statistic(rng, listed=listed, distinct=distinct) for _ in range(rng.choice((1, 2, 3)))]
    if listed and rng.random() < 0.15:
        asked = [_alone(rng, grouped=bool(by))]
    elif unit is not None and rng.random() < 0.3:
        asked.append(dp.count_units())
    delta = {} if listed else {"delta": 1e-3}
    complete = rng.random() < 0.4
    salt = rng.getrandbits(64)
    weighed = unit is not None and not listed and rng.random() < 0.4

    def ask(frame: Any, *, by_hand: bool = False) -> tuple[Plan, Counts]:
        session = dp.Session(eps=10**9, delta=0.5, unit=unit)
        with warnings.catch_warnings(), session:
            warnings.simplefilter("ignore", DPWarning)
            plans = dp.frame(frame).plan
            questions = [a.alias(f"a{i}") for i, a in enumerate(asked)]
            grouped: Any = plans.groupby(*by, keys=keys) if by else plans
            if weighed:  # at rho units are weighed, whatever their limit is
                plan = plans.groupby(*by, max_groups=limits["max_groups"]).keys(rho=1, delta=1e-3).plan
            else:
                plan = grouped.agg(*questions, eps=1, complete_cases=complete, **delta, **limits).plan
        if by_hand:
            frame, plan = _complete_rows(frame, plan), replace(plan, complete=())
        source: Source = dp.frame(frame)._source
        with canonical_rank():
            return plan, _exact(plan, source, salt)

    return ask


def _keys(rng: random.Random, by: list[str]) -> Any:
    lists = {}
    for name in by:
        values = _distinct(_CELLS[name])
        few = rng.sample(values, rng.randint(1, len(values)))
        lists[name] = [*few, None] if rng.random() < 0.5 else few
    return lists


def _statistic(rng: random.Random, *, listed: bool, distinct: bool) -> Any:
    column, bounds = rng.choice(MEASURED), rng.choice(BOUNDS)
    points = _points(rng)
    kinds: list[Callable[[], Any]] = [
        lambda: dp.count(),
        lambda: dp.count(rng.choice((*MEASURED, "text", "day", "time"))),
        lambda: dp.clip_sum(column, bounds=bounds),
        lambda: dp.clip_mean(column, bounds=bounds),
        lambda: dp.clip_mean("b"),
        lambda: dp.clip_var(column, bounds=bounds),
        lambda: dp.clip_wmean("x", weights="i", bounds=bounds, weight_bounds=(0, 5)),
        lambda: dp.vector_sum(["x", "j", "y"], norm=rng.choice((0.5, 3, 1000)), ord=rng.choice((1, 2))),
    ]
    if distinct:
        kinds += [lambda: dp.n_unique(rng.choice(KEYS))]
    if listed:
        kinds += [
            lambda: dp.quantile(column, 0.5, candidates=points),
            lambda: dp.median("x", bounds=(-5, 5)),
        ]
    return rng.choice(kinds)()


def _alone(rng: random.Random, *, grouped: bool) -> Any:
    """A statistic whose answer is a table."""
    kind = rng.choice(("histogram", "top_k", "ols") if grouped else ("histogram", "top_k", "ols", "cov"))
    if kind == "histogram":
        return dp.histogram(rng.choice(MEASURED), edges=_points(rng))
    if kind == "top_k":
        name = rng.choice(("text", "whole", "level"))
        return dp.top_k(name, 2, candidates=_distinct(_CELLS[name]))
    if kind == "ols":
        return dp.ols("x", ["i", "b"], bounds={"x": rng.choice(BOUNDS), "i": rng.choice(BOUNDS)})
    return dp.clip_cov(["x", "i"], bounds={"x": rng.choice(BOUNDS), "i": rng.choice(BOUNDS)})


def _points(rng: random.Random) -> list[float]:
    return [p / 10 for p in sorted(rng.sample(range(-1000, 1000), rng.choice((2, 5, 40, 300))))]


def _distinct(values: Sequence[Any]) -> list[Any]:
    """Without NaN, and with one zero."""
    return list(dict.fromkeys(v for v in values if v == v))


# ---- the choice of groups ----


@contextmanager
def canonical_rank() -> Iterator[None]:
    """Rank a unit's groups and rows by md5 of one text on Polars too, as relational engines do.

    For tests: native hashes differ, so engines choose differently where a unit is in more groups than
    count. Within this context their integers agree there as well. Slow: a Python function is called per row.
    """
    native = engine.rank_key
    engine.rank_key = _md5_rank
    try:
        yield
    finally:
        engine.rank_key = native


def _md5_rank(unit: list[str], by: list[str], salt: int) -> pl.Expr:
    def number(row: dict[str, Any]) -> int:
        text = "|".join([str(salt), *map(_text, row.values())])
        return int(hashlib.md5(text.encode()).hexdigest()[:15], 16)

    return pl.struct(*unit, *by).map_elements(number, return_dtype=pl.Int64)


def _text(v: Any) -> str:
    if v is None:
        return "-"
    if isinstance(v, dt.datetime):
        v = (v - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    if isinstance(v, dt.date):
        v = (v - dt.date(1970, 1, 1)).days
    return f"{len(v.encode())}:{v}" if isinstance(v, str) else str(int(v) if isinstance(v, bool) else v)


def _check_choice(make: Callable[[pl.DataFrame], Any]) -> None:
    """The engine's own hash gives every group the same share of units, and salts are independent.

    Units and salts are fixed, so an engine passes always or never; a hash drawn at random passes but for 1e-9.
    """
    users, groups = np.divmod(np.arange(_UNITS * _GROUPS), _GROUPS)
    source: Source = dp.frame(make(pl.DataFrame({"user": users, "group": groups})))._source
    types = (source.column("user"), source.column("group"))
    got = []
    for salt in (11, 2**63 + 12):
        found = source.aggregate(Ask(by=types, bounding=Bounding(("user",), 1, 1), salt=salt)).found
        assert found["k0"].to_list() == list(range(_UNITS)), "not every unit counts in one group"
        got.append(found["k1"].to_numpy())
    table = np.zeros((_GROUPS, _GROUPS))
    np.add.at(table, tuple(got), 1)
    cells = (("of one salt", table.sum(1)), ("of another", table.sum(0)), ("of both together", table.ravel()))
    for what, seen in cells:
        even = fits(seen, np.ones(len(seen)), _FALSE_ALARM / len(cells))
        assert even, f"the choices {what} are not even: {seen.astype(int).tolist()}"
