"""Faults of ``max_rows=`` with groups: a unit counts for more than its rows over all groups together."""

from __future__ import annotations

from planted.fault import Fault

FILE = "properties/test_rows_over_groups.py"
SHARED = (f"{FILE}::test_every_engine_shares_units_out_as_whole_numbers_do",)
PARTS = "unit/planning/test_one_draw_of_parts.py"
MOVED = (f"{FILE}::test_a_unit_moves_integers_by_what_is_declared",)

LIMIT_FAULTS = (
    Fault(
        "parts of rows are rounded up",
        "engine/scaling.py",
        'divided(lib.col("before") * lib.col("left"), lib.col("divisor"))',
        'divided(lib.col("before") * lib.col("left") + lib.col("divisor") - 1, lib.col("divisor"))',
        (f"{FILE}::test_pieces_of_rows_add_up_to_the_limit_and_not_beyond", *MOVED, *SHARED),
    ),
    Fault(
        "present rows are rounded by themselves",
        "engine/scaling.py",
        'c * lib.col("per_row") + divided(c * lib.col("over"), n)',
        'c * lib.col("per_row") + divided(2 * c * lib.col("over") + n, 2 * n)',
        SHARED,
    ),
    Fault(
        "each found group has a limit of its own",
        "engine/polars_query.py",
        "scaled(pl, pairs, measures, unit, ask.bounding, floordiv)",
        "scaled(pl, pairs, measures, unit + by if keys is None else unit, ask.bounding, floordiv)",
        SHARED,
    ),
    Fault(
        "rows of unlisted groups use up the limit",
        "engine/relational_query.py",
        "if listed is not None and (ask.chosen is not None or bounding.total is not None):",
        "if listed is not None and ask.chosen is not None:",
        SHARED,
    ),
    Fault(
        "rows of bins have a limit in each group only",
        "engine/tally.py",
        "        heavy |= pl.col",
        "        total = 1 << 62\n        heavy |= pl.col",
        MOVED,
    ),
    Fault(
        "a rest of a row beside a full group is forgotten",
        "layout/sensitivity.py",
        "beside = 2 * (far * unit.each",
        "beside = 1 * (far * unit.each",
        (f"{FILE}::test_where_the_rest_of_one_unit_meets_a_full_group_of_another_a_sum_moves_furthest",),
    ),
    Fault(
        "the squares of a unit leave out its rest",
        "mechanisms/choosers.py",
        "return k * self.each**2 + r**2",
        "return k * self.each**2",
        (f"{FILE}::test_sensitivities_are_those_of_the_rows_that_count", *MOVED),
    ),
    Fault(
        "a quantile of a group forgets the other groups",
        "mechanisms/ranks.py",
        "base = eps / (twice * levels * reach.most)",
        "base = eps / (twice * levels * reach.rows)",
        (f"{FILE}::test_a_grouped_quantile_has_all_of_eps_for_the_rows_of_a_unit",),
    ),
    Fault(
        "a threshold takes a unit for one row",
        "mechanisms/thresholds.py",
        "least_threshold(noise, draws, self.most * row, per_key_delta(delta, self.keys))",
        "least_threshold(noise, draws, row, per_key_delta(delta, self.keys))",
        (f"{FILE}::test_a_lone_unit_betrays_no_key",),
    ),
    Fault(
        "the threshold of a shared draw takes a unit for one step of a row",
        "planning/fused.py",
        "[_least(j, draft.own_keys(), draft.row_steps, delta) for j in joints]",
        "[_least(j, draft.own_keys(), 1, delta) for j in joints]",
        (f"{PARTS}::test_a_lone_unit_betrays_no_key_of_a_shared_draw",),
    ),
    Fault(
        "a draw for a row is for a row where units move it by steps of rows",
        "planning/fused.py",
        "reach = draft.most_steps, draft.reach.in_steps(draft.row_steps)",
        "reach = draft.most_steps, draft.reach",
        (f"{PARTS}::test_every_unit_moves_its_draw_by_the_steps_of_its_rows",),
    ),
    Fault(
        "in a Gaussian draw the rest of a unit meets no full group of another",
        "mechanisms/row_gaussian.py",
        "max(like + alike, 2 * apart(full, rest))",
        "like + alike",
        (f"{PARTS}::test_the_square_of_a_replaced_unit_is_that_of_its_worst_rows",),
    ),
)
