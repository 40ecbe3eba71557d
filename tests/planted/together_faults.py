"""Faults of ``Session(contributions=k)``: noise, thresholds or prices for fewer rows than are protected together."""

from __future__ import annotations

from planted.fault import Fault

MOVED = "properties/test_rows_together.py"
KEYS = "unit/mechanisms/test_thresholds_of_rows.py"
SESSION = "unit/session/test_contributions.py"

TOGETHER_FAULTS = (
    Fault(
        "any k rows are at most one in each group",
        "planning/bounding.py",
        "Reach(policy.replace, several, k, groups, k if groups > 1 else None)",
        "Reach(policy.replace, several, 1, groups, k if groups > 1 else None)",
        (f"{MOVED}::test_k_rows_move_integers_by_what_is_declared",),
    ),
    Fault(
        "any k rows are k in each of k groups",
        "planning/bounding.py",
        "Reach(policy.replace, several, k, groups, k if groups > 1 else None)",
        "Reach(policy.replace, several, k, groups, None)",
        (f"{MOVED}::test_k_rows_move_integers_by_what_is_declared",),
    ),
    Fault(
        "any k rows are in one part of a partition",
        "planning/bounding.py",
        "groups = 1 if not several else k if keys is None else min(k, keys.size)",
        "groups = 1",
        (f"{SESSION}::test_a_partition_is_paid_for_as_many_parts_as_rows_may_be_in",),
    ),
    Fault(
        "coordinates of one row are all that k rows move",
        "planning/assembly.py",
        "self.reach.most * sum(x.moving(one) for x in here)",
        "sum(x.moving(one) for x in here)",
        (f"{MOVED}::test_laws_of_one_coordinate_reckon_with_all_that_k_rows_move",),
    ),
    Fault(
        "a threshold reckons with one key of one row",
        "mechanisms/thresholds.py",
        "return least_of_rows(noise, draws, row, self.most, delta)",
        "return least_of_rows(noise, draws, row, 1, delta)",
        (f"{KEYS}::test_no_key_of_k_rows_appears_with_probability_above_delta",),
    ),
    Fault(
        "a threshold reckons with all rows in one key, and with one in each",
        "mechanisms/thresholds.py",
        "best[m] = (each[:m] + best[:m][::-1]).max()",
        "best[m] = max(each[m - 1], m * each[0])",
        (f"{KEYS}::test_on_coarse_laws_every_partition_is_looked_at",),
    ),
    Fault(
        "between the sizes that are looked at none is worse",
        "mechanisms/thresholds.py",
        "rows * max(x / (before + 1) for x, before in zip(h, [0, *sizes[:-1]]))",
        "rows * max(x / size for x, size in zip(h, sizes))",
        (f"{KEYS}::test_a_bound_covers_every_size_in_between",),
    ),
    Fault(
        "keys alone share delta equally among rows, as if it did not grow with them",
        "mechanisms/thresholds.py",
        "return cls(used / rows, delta * part * _SAFE)",
        "return cls(used / rows, delta / rows * _SAFE)",
        (f"{KEYS}::test_keys_of_k_rows_cost_what_is_charged",),
    ),
    Fault(
        "a ledger of any 36 rows is shared with any 12",
        "session/terms.py",
        "(p.unit is not None or rows != p.contributions)",
        "p.unit is not None",
        (f"{SESSION}::test_relations_of_other_numbers_never_share_a_ledger_nor_a_session",),
    ),
    Fault(
        "plans for other numbers of rows have one fingerprint",
        "accounting/policy.py",
        "        return [self.neighbors, self.unit, *rows]",
        "        return [self.neighbors, self.unit]",
        (f"{SESSION}::test_fingerprints_tell_numbers_of_rows_apart",),
    ),
    Fault(
        "equal policies whatever the number of rows",
        "accounting/policy.py",
        "    contributions: int = 1\n",
        "    contributions: int = field(default=1, compare=False)\n",
        (f"{SESSION}::test_relations_of_other_numbers_never_share_a_ledger_nor_a_session",),
    ),
)
