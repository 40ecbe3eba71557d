"""How much of a unit counts: the bounds on its rows and groups that a call states, checked."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from dpframe.accounting.policy import Limits, Policy
from dpframe.errors import Arg, Call, InputError
from dpframe.frames.contract import Bounding
from dpframe.frames.keys import KeyTable
from dpframe.mechanisms.choosers import Reach

MOST_IN_ALL = 1 << 18  # of which products with a unit's rows fit 62 bits


def reach_of(policy: Policy, bounding: Bounding | None, keys: KeyTable | None, *, grouped: bool) -> Reach:
    """How far one unit's rows go: as far as the limits on a unit let them, or any k rows, of which nothing is cut.

    Privacy: any k rows may all be in one group, or each in another: R = T = k, and L0 = k or all listed groups.
    """
    several = grouped and (keys is None or keys.size > 1)
    if bounding is not None:
        return Reach(policy.replace, several, bounding.rows, bounding.groups or 1, bounding.total)
    k = policy.contributions
    groups = 1 if not several else k if keys is None else min(k, keys.size)
    return Reach(policy.replace, several, k, groups, k if groups > 1 else None)


def make_bounding(
    limits: Limits,
    policy: Policy,
    column: Any,
    *,
    by: Sequence[Hashable],
    keys: KeyTable | None,
    rows_matter: bool,
    units_matter: bool = False,
) -> Bounding | None:
    """How much of a unit counts, from what was typed.

    With ``max_rows`` for all groups together, listed groups need no limit of their own, unless units are counted
    (``units_matter``), and rows in a group none. It is left out where the other limits say as much.

    Where the columns that are grouped ``by`` are among those of the unit, all rows of a unit have one key, so one
    group is what it counts in, whatever was typed.

    Privacy: the bounds multiply the sensitivity and are enforced in the engine, inside the release, after
    every transform the caller made; one group, too, is not believed but enforced.
    """
    typed = {k: getattr(limits.checked(), k) for k in ("max_groups", "max_rows_per_group", "max_rows")}
    if policy.unit is None:
        given = next((k for k, v in typed.items() if v is not None), None)
        if given is not None:
            raise InputError(
                Arg(given),
                " bounds what one unit may contribute, and this session protects ",
                "single rows."
                if policy.contributions == 1
                else f"any {policy.unit_name}, of which nothing is cut.",
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
    if not by:
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
    total = limits.max_rows if rows_matter else None
    if set(by) <= set(policy.unit):
        groups = 1
    if total is not None:
        rows = total if rows is None else min(rows, total)
        if groups is None and keys is not None and not units_matter:
            groups = max(1, keys.size)
    if rows is None:
        raise InputError(
            f"How many rows may one {name} count for in a group?",
            hint=(
                Arg("max_rows", 10),
                " for all groups together, or ",
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
        together: tuple[Any, ...] = ()
        if rows_matter and rows > 1 and keys is not None and not units_matter:
            together = (
                " Or ",
                Arg("max_rows", rows),
                f" for all groups together: noise × {rows}, however many they are.",
            )
        raise InputError(
            f"In how many groups may one {name} count?", hint=(Arg("max_groups", 3), f".{ceiling}", *together)
        )
    groups = groups or 1
    if keys is not None:
        groups = min(groups, max(1, keys.size))
    if total is not None and total >= rows * groups:
        total = None
    if total is not None and total > MOST_IN_ALL:
        raise InputError(
            Arg("max_rows", total),
            f" over several groups can be at most {MOST_IN_ALL:,}, as rows are then counted in parts.",
            hint=Arg("max_rows", MOST_IN_ALL),
        )
    return Bounding(policy.unit, rows, groups, total)
