"""What units count for, shared out over their groups by hand: an oracle that uses no engine's scaling."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from dpframe.frames.contract import ROW_STEPS, Ask, Counts, Measure, Source, unit_weight

Key = tuple[Hashable, ...]


def shared_out(source: Source, ask: Ask) -> Counts | None:
    """What ``source`` should say to ``ask``, from sums per pair of unit and group that nothing limits.

    None where a unit has to choose among its groups, or found groups can't be told apart here.
    """
    bounding = ask.bounding
    assert bounding is not None
    units = tuple(source.column(u) for u in bounding.unit)
    raw = source.aggregate(
        replace(ask, by=(*units, *ask.by), keys=None, bounding=None, tallies=(), found=None, weighed=False)
    )
    listed = _listed(ask)
    of_unit: dict[Key, dict[Key, int]] = defaultdict(dict)
    for i, line in enumerate(raw.found.iter_rows()):
        unit, key = line[: len(units)], line[len(units) :]
        if None not in unit and (listed is None or key in listed):
            of_unit[unit][key] = i
    if ask.chosen is not None and any(len(pairs) > ask.chosen for pairs in of_unit.values()):
        return None
    width = 2 + sum(1 + len(m.products) for m in ask.measures)
    sums: dict[Key, list[int]] = {key: [0] * width for key in listed or ()}
    weights: dict[Key, int] = defaultdict(int)
    for pairs in of_unit.values():
        rows = {key: min(int(raw.rows[i]), bounding.rows) for key, i in pairs.items()}
        for key, i in pairs.items():
            weights[key] += unit_weight(len(pairs))
            counted = _pair(raw, i, ask.measures, rows[key], sum(rows.values()), ask)
            sums[key] = [a + b for a, b in zip(sums.setdefault(key, [0] * width), counted)]
    found = raw.found[:, len(units) :]
    keys = list(listed) if listed is not None else _sorted(found, sums)
    columns = iter(np.array([sums[k] for k in keys], dtype=np.int64).reshape(-1, width).T)
    many, n = next(columns), next(columns)
    present, added = [], []
    for m in ask.measures:
        present.append(next(columns))
        added.append(tuple(next(columns) for _ in m.products))
    weighed = np.array([weights[k] for k in keys], dtype=np.int64) if ask.weighed else None
    return Counts(n, tuple(present), tuple(added), many, weights=weighed)


def _pair(raw: Counts, i: int, measures: tuple[Measure, ...], n: int, everything: int, ask: Ask) -> list[int]:
    """1, n' and for every measure c' and its sums: of one unit in one group, by exact whole numbers."""
    assert ask.bounding is not None
    total, most = ask.bounding.total, ask.bounding.rows
    row = (
        n if total is None else n * ROW_STEPS if everything <= total else n * total * ROW_STEPS // everything
    )
    out = [1, row]
    for j, m in enumerate(measures):
        c = int(raw.present[j][i])
        kept = min(c, most) * row // n
        sums = [_share(int(x[i]), kept, c, toward_zero=m.ball is not None) for x in raw.sums[j]]
        for p, product in enumerate(m.products):
            if len(product) == 2:
                sums[p] = _within(sums[p], product, m, sums, kept)
        out += [kept, *sums]
    return out


def _share(x: int, kept: int, c: int, *, toward_zero: bool) -> int:
    if not c:
        return 0
    if toward_zero:
        return (1 if x >= 0 else -1) * (abs(x) * kept // c)
    return (2 * kept * x + c) // (2 * c)


def _within(x: int, product: tuple[int, ...], m: Measure, sums: list[int], kept: int) -> int:
    a, b = product
    ka, kb = m.axes[a].steps, m.axes[b].steps
    halves = [sums[m.products.index((f,))] * k for f, k in ((a, kb), (b, ka)) if (f,) in m.products]
    low = max(0, sum(halves) - kept * ka * kb) if len(halves) == 2 else 0
    return min([max(x, low), *halves])


def _listed(ask: Ask) -> dict[Key, None] | None:
    """The keys of the groups, if it is known which there are."""
    if not ask.by:
        return {(): None}
    if ask.keys is None:
        return None
    return dict.fromkeys(zip(*(c.engine.to_list() for c in ask.keys.columns)))


def _sorted(found: Any, sums: dict[Key, list[int]]) -> list[Key]:
    return [key for key in found.unique().sort(found.columns).iter_rows() if key in sums]
