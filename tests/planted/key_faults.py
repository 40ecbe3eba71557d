"""Faults of keys that are found by the weights of units."""

from __future__ import annotations

from planted.fault import Fault

WEIGHTS = "unit/engine/test_weights.py"
RULES = "unit/mechanisms/test_weighted_keys.py"
MOVED = ("properties/test_neighbouring_weights.py::test_a_unit_moves_weights_by_what_is_declared",)
OWN = (f"{RULES}::test_none_of_a_units_own_keys_is_told_with_more_than_half_of_delta",)

KEY_FAULTS = (
    Fault(
        "a unit has all of its weight in each of its groups",
        "engine/scaling.py",
        'lib.col("n").count().over(*unit).cast(lib.Int64)',
        'lib.col("n").count().over(*unit).cast(lib.Int64) * 0 + 1',
        (*MOVED, WEIGHTS),
    ),
    Fault(
        "square roots decide what a unit weighs",
        "engine/scaling.py",
        ".then(c).otherwise(none).alias",
        '.then(c).otherwise(lib.col("weight")).alias',
        (f"{WEIGHTS}::test_square_roots_that_are_wrong_never_make_a_unit_heavier",),
    ),
    Fault(
        "groups of units that are weighed are not chosen",
        "frames/contract.py",
        "return None if most is None or (self.keys is not None",
        "return None if most is None or self.weighed or (self.keys is not None",
        (*MOVED, f"{WEIGHTS}::test_frames_in_memory_weigh_units_by_the_groups_that_they_chose"),
    ),
    Fault(
        "noise on weights is for units that appear where they are replaced",
        "layout/sensitivity.py",
        "return twice * isqrt(reach.groups * WEIGHT**2), twice * WEIGHT**2",
        "return twice * isqrt(reach.groups * WEIGHT**2), WEIGHT**2",
        (*MOVED, f"{RULES}::test_noise_is_made_for_a_norm_of_one_weight_at_half_of_delta"),
    ),
    Fault(
        "the threshold on weights is for units that fill their limit",
        "planning/key_rules.py",
        "[unit_weight(t) for t in numbers]",
        "[unit_weight(groups) for _ in numbers]",
        OWN,
    ),
    Fault(
        "the threshold on weights hides each key of a unit, not all of them",
        "planning/key_rules.py",
        "[per_key_delta(delta, t) for t in numbers]",
        "[per_key_delta(delta, 1) for t in numbers]",
        OWN,
    ),
    Fault(
        "the threshold on weights leaves out that noise is rounded",
        "mechanisms/thresholds.py",
        "noise.cdf(most - least) *",
        "noise.cdf(most - least - 1) *",
        (*OWN, f"{RULES}::test_the_noise_is_rounded_and_the_threshold_knows_it"),
    ),
    Fault(
        "noise and threshold of weights have all of delta each",
        "planning/key_rules.py",
        "keys_delta = target.delta - event.delta",
        "keys_delta = target.delta",
        OWN,
    ),
    Fault(
        "min_units takes the place of the threshold",
        "mechanisms/thresholds.py",
        "return max(least, least_threshold(noise, draws, self.small * row, SMALL)) if self.small else least",
        "return least_threshold(noise, draws, self.small * row, SMALL) if self.small else least",
        ("unit/planning/test_min_units.py",),
    ),
    Fault(
        "min_units leaves out the margin of the count",
        "mechanisms/thresholds.py",
        "least_threshold(noise, draws, self.small * row, SMALL)",
        "(self.small + 1) * row",
        ("unit/planning/test_min_units.py",),
    ),
    Fault(
        "the rule for keys is taken by the data",
        "planning/planner.py",
        "        planner.find_keys(request.target)",
        "        planner.reach = replace(planner.reach, groups=min(planner.reach.groups, max(1, getattr(source._frame, 'height', 1))))\n"
        "        planner.find_keys(request.target)",
        (f"{RULES}::test_the_choice_is_the_same_for_every_frame_of_the_same_types", *MOVED),
    ),
)
