"""How much of a unit counts: the bounds on its rows and groups that a call states, checked."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from dpframe.accounting.policy import Limits, Policy
from dpframe.errors import Arg, Call, InputError
from dpframe.frames.contract import Bounding
from dpframe.frames.keys import KeyTable


def make_bounding(
    limits: Limits,
    policy: Policy,
    column: Any,
    *,
    by: Sequence[Hashable],
    keys: KeyTable | None,
    rows_matter: bool,
) -> Bounding | None:
    """How much of a unit counts, from what was typed.

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
    if set(by) <= set(policy.unit):
        groups = 1
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
