"""Units: whose rows belong together, and how many of them count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpframe.accounting.policy import Limits, Policy
from dpframe.errors import Arg, Call, InputError
from dpframe.frames.columns import Column
from dpframe.frames.contract import Bounding
from dpframe.frames.keys import KeyTable
from dpframe.planning.plan import Plan

TEXT = ("string", "enum", "categorical", "object")


def make_bounding(
    limits: Limits,
    policy: Policy,
    column: Any,
    *,
    grouped: bool,
    keys: KeyTable | None,
    rows_matter: bool,
) -> Bounding | None:
    """How much of a unit counts, from what was typed.

    Privacy: the bounds multiply the sensitivity and are enforced in the engine, inside the release, after
    every transform the caller made.
    """
    typed = {k: getattr(limits.checked(), k) for k in ("max_groups", "max_rows_per_group", "max_rows")}
    if policy.unit is None:
        given = next((k for k, v in typed.items() if v is not None), None)
        if given is not None:
            raise InputError(
                Arg(given),
                " bounds what one unit may contribute, and this session protects single rows.",
                hint=Call("dp.Session", eps=1, unit="user_id"),
            )
        return None
    name = policy.unit_name
    for u in policy.unit:
        try:
            c = column(u)
        except InputError as e:
            raise InputError(
                f"The session protects {name}, and {u!r} must be in every frame that is asked. ",
                e,
                hint=f"keep {u!r} in the frame, or ask in another session",
            ) from None
        inner = c.native if c.kind == "categorical" else c
        if inner.kind in ("other", "interval", "time"):
            raise InputError(f"The unit {u!r} is {c.text}, which does not identify anybody.")
    if not grouped:
        if limits.max_rows is None and rows_matter:
            raise InputError(
                f"How many rows may one {name} count for?",
                hint=(
                    Arg("max_rows", 10),
                    f". A {name} with more rows is scaled down to 10; the noise grows with this number.",
                ),
            )
        return Bounding(policy.unit, (limits.max_rows or 1) if rows_matter else 1, None)
    rows, groups = limits.max_rows_per_group if rows_matter else 1, limits.max_groups
    if rows is None:
        raise InputError(
            f"How many rows may one {name} count for in a group?",
            hint=(
                Arg("max_rows_per_group", 10),
                " (and ",
                Arg("max_groups", 3),
                f", for how many groups). A {name} with more rows is scaled down to 10; the noise grows with these numbers.",
            ),
        )
    if groups is None and (keys is None or keys.size > 1):
        ceiling = (
            ""
            if keys is None
            else (
                f" {keys.size} keys: max_groups={keys.size} drops nothing, noise × {keys.size}, or ×"
                f" {keys.size**0.5:.1f} with delta."
            )
        )
        raise InputError(
            f"In how many groups may one {name} count?", hint=(Arg("max_groups", 3), f".{ceiling}")
        )
    groups = groups or 1
    return Bounding(policy.unit, rows, groups if keys is None else min(groups, max(1, keys.size)))


def bytes_per_pair(columns: Sequence[Column], numbers: int) -> int:
    """Memory that bounding units takes for each pair of unit and group, in bytes.

    Parameters
    ----------
    columns
        What a pair is known by: the unit's columns, the grouping columns, and of a tally the value or bin.
    numbers
        How many integers are added up for it.

    A law that stays above what was measured on Polars' streaming engine with 0.4 and 1.6 million pairs (0 to 4 means,
    one and two unit columns, ids of 20 letters): 0.65 to 0.95 of it, and some 50 MB once.
    """
    text = sum(c.kind in TEXT for c in columns)
    return 100 + 24 * len(columns) + 64 * text + 16 * numbers


def bytes_per_row(columns: Sequence[Column], numbers: int) -> int:
    """Memory that Polars takes for a row of a pair that it holds already, in bytes.

    With many pairs it keeps what it has added up of a few rows at a time until the end: 36 to 43 bytes a row were
    measured where this says 80. Of a lazy frame it is asked for so many rows at a time as there are pairs, at
    least 4 million (``engine.pairs``): 24 and 72 million rows of 4.4 million pairs took 386 and 393 bytes a pair.
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
