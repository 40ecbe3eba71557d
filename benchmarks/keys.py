"""How many keys that nobody listed are told, by the number of groups that a person may be in.

    python benchmarks/keys.py   half a minute

People each have a set of items; both the sizes of the sets and how many people share an item have heavy tails. What is
printed is the expected number of items told, exactly: the sum over items of the probability that the drawn law gives them,
from the integers that the engine hands to it. Nothing is drawn but the people, who are the same each time.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl

import dpframe as dp
from dpframe.engine.opening import as_source
from dpframe.mechanisms.thresholds import KeySelection, per_key_delta
from dpframe.planning.pieces import Piece
from dpframe.planning.plan import Plan

LIMITS = (1, 4, 16, 50, 100, 300)


def people(many: int = 50_000, items: int = 200_000, seed: int = 0) -> pl.DataFrame:
    """One line for each item of a person: log-normal numbers of items (median 7), items by a power law."""
    rng = np.random.default_rng(seed)
    popular = np.arange(1, items + 1) ** -1.05
    until = np.cumsum(popular / popular.sum())
    number = np.rint(rng.lognormal(2.0, 1.1, many)).clip(1, 300).astype(np.int64)
    person = np.repeat(np.arange(many), number)
    item = np.searchsorted(until, rng.random(len(person))).clip(0, items - 1)
    return pl.DataFrame({"person": person, "item": item}).unique(maintain_order=True)


def expected(plan: Plan, frame: pl.DataFrame, salt: int = 1) -> float:
    """The sum of the odds of all keys under a plan of ``keys()``."""
    exact = as_source(frame).aggregate(plan.ask(salt))
    if plan.selection is not None:
        assert exact.units is not None
        return sum(plan.selection.odds(int(n)) for n in exact.units)
    assert plan.threshold is not None
    (where,) = plan.threshold.coordinates
    piece = plan.pieces[where]
    assert isinstance(piece, Piece)
    return float(piece.noise.cdf(piece.exact(exact) - plan.threshold.least).sum())


def told(frame: pl.DataFrame, limit: int, eps: float = 1, delta: float = 1e-6) -> tuple[str, float, float]:
    """The rule that is taken, the keys it tells, and those that the truncated geometric rule would."""
    with dp.Session(eps=eps, delta=2 * delta, unit="person"):
        plan = frame.dp.plan.groupby("item", max_groups=limit).keys(eps=eps, delta=delta).plan
    exact = as_source(frame).aggregate(plan.ask(1))
    geometric = KeySelection(Fraction(str(eps)) / limit, per_key_delta(Fraction(str(delta)), limit))
    assert exact.units is not None
    return plan.mechanism, expected(plan, frame), sum(geometric.odds(int(n)) for n in exact.units)


def main() -> None:
    frame = people()
    print("| max_groups | rule | keys | by truncated geometric |\n|---|---|---|---|")
    for limit in LIMITS:
        rule, taken, geometric = told(frame, limit)
        print(f"| {limit} | {rule} | {taken:.0f} | {geometric:.0f} |")


if __name__ == "__main__":
    main()
