"""Forecasts of the memory that bounding units takes."""

from __future__ import annotations

from collections.abc import Sequence

from dpframe.frames.columns import Column
from dpframe.planning.plan import Plan

TEXT = ("string", "enum", "categorical", "object")


def bytes_per_pair(columns: Sequence[Column], numbers: int) -> int:
    """Memory that bounding units takes for each pair of unit and group, in bytes.

    Parameters
    ----------
    columns
        What a pair is known by: the unit's columns, the grouping columns, and of a tally the value or bin.
    numbers
        How many integers are added up for it.

    An upper bound of what Polars' streaming engine takes (measurements: docs/performance.md).
    """
    text = sum(c.kind in TEXT for c in columns)
    return 100 + 24 * len(columns) + 64 * text + 16 * numbers


def bytes_per_row(columns: Sequence[Column], numbers: int) -> int:
    """Memory that Polars takes for a row of a pair that it holds already, in bytes.

    An upper bound, for as many rows at a time as are asked of a lazy frame (measurements: docs/performance.md).
    """
    text = sum(c.kind in TEXT for c in columns)
    return 16 * (len(columns) + numbers) + 30 * text


def memory_text(plan: Plan, rows: float | None, units: float | None) -> str | None:
    """What bounding units takes, in words: so much for each pair of unit and group, and for each value of one.

    ``rows`` and ``units`` are public guesses of how many are in a group; of listed groups.
    """
    if plan.bounding is None:
        return None
    types = {c.name: c for c in plan.columns}
    known = [*(types[u] for u in plan.bounding.unit), *plan.by]
    unit, groups = plan.policy.unit_name, 1 if plan.keys is None else plan.keys.size
    each: dict[str, None] = {}
    least = most = 0.0  # in a group: with the guesses there are, and with every row
    pairs = min((x for x in (rows, units) if x is not None), default=0.0)
    if plan.summed:
        numbers = 1 + sum(1 + len(m.products) for m in plan.measures)
        size, further = bytes_per_pair(known, numbers), bytes_per_row(known, numbers)
        what = f"{unit} and group" if plan.grouped else unit
        each[f"{size:,} bytes a {what} (on Polars {further} more for each further row that is held)"] = None
        least += size * pairs
        most += further * ((rows or 0) - pairs)
    for t in plan.tallies:
        size = bytes_per_pair([*known, types[t.column]], 1)
        each[f"{size:,} bytes a {unit}{', group' if plan.grouped else ''} and value of {t.column}"] = None
        most += size * (rows or 0)
    text = f"about {' and '.join(each)}, as many as the data have"
    if (plan.grouped and plan.keys is None) or not pairs or (rows is None and plan.tallies):
        return text
    if rows is None:
        return f"{text}; {least * groups / 1e9:,.3g} GB and further rows"
    return f"{text}; at most {(least + most) * groups / 1e9:,.3g} GB"
