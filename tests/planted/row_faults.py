"""Faults of one draw for a whole row: its blocks, its sensitivity, and who shares it."""

from __future__ import annotations

from planted.fault import Fault

ONE_DRAW = ("unit/planning/test_one_draw.py",)
RULE = ("unit/planning/test_rule.py",)
NO_WORSE = ("unit/planning/test_no_call_is_worse.py",)
ROW_FAULTS = (
    Fault(
        "a missing value lies outside the steps of a lone sum",
        "planning/runs.py",
        "low = min(grid.first, 0)",
        "low = grid.first",
        ONE_DRAW,
    ),
    Fault(
        "a mean of a public n has half the steps that it moves by",
        "planning/runs.py",
        "Block(2 * grid.count), (Weights(-grid.count, (1,)),)",
        "Block(grid.count), (Weights(0, (1,)),)",
        ONE_DRAW,
    ),
    Fault(
        "a block that may be missing is taken for one that may not",
        "planning/runs.py",
        "Block(layout.row, free, missing and not alone)",
        "Block(layout.row, free, False)",
        ONE_DRAW,
    ),
    Fault(
        "a block is alone though the rows are read",
        "planning/fused.py",
        "alone=len(run) == 1 and not needed.counts and not (by_rows and len(cut.runs) > 1)",
        "alone=len(run) == 1",
        ONE_DRAW,
    ),
    Fault(
        "every number of a draw is drawn again",
        "pipeline.py",
        "    if noise.number not in joint:\n        joint",
        "    if True:\n        joint",
        ONE_DRAW,
    ),
    Fault(
        "two draws of a plan are one",
        "planning/fused.py",
        "for number, r in enumerate(runs, draft.draws):",
        "for number, r in enumerate(runs):",
        ONE_DRAW,
    ),
    Fault(
        "what is read in a second pass shares the draw of the first",
        "planning/fused.py",
        'if f.kind == "column" or f.kind in BLOCKS)',
        'if f.kind == "column" or f.kind in BLOCKS or f.tally is not None)',
        (f"{ONE_DRAW[0]}::test_what_is_read_in_a_second_pass_has_a_draw_of_its_own",),
    ),
    Fault(
        "a draw has the eps of the whole call beside other parts",
        "planning/fused.py",
        "    each = part_of(noise_target(target, thresholded=thresholded), p)\n",
        "    each = noise_target(target, thresholded=thresholded)\n",
        ONE_DRAW,
    ),
    Fault(
        "a replaced row in the Gaussian of a row at root two of an added one",
        "mechanisms/row_gaussian.py",
        "(max(apart(n, n), 2 * apart(n, 0)) for n in (full, rest))",
        "(2 * apart(n, 0) for n in (full, rest))",
        ("unit/mechanisms/test_row_gaussian.py",),
    ),
    Fault(
        "what is read of a Gaussian draw tells whether the exact integer is even",
        "mechanisms/row_gaussian.py",
        "    return np.asarray((x + divisor // 2 - 1 + coin.astype(np.int64)) // divisor)\n",
        "    return np.rint(x / divisor).astype(np.int64)\n",
        ("unit/mechanisms/test_row_gaussian.py",),
    ),
    Fault(
        "a grey box takes the integers of a joint draw for independent ones",
        "audit/greybox.py",
        "    draws = cost_of_draws(plan, differences)\n",
        "    draws = Fraction(0)\n",
        ("unit/audit/test_joint_moves.py",),
    ),
    Fault(
        "the number of rows that two draws share is counted twice",
        "planning/fused.py",
        "Linear(tuple((i, w / total / steps) for i, w in zip(counters, weights)), integer=True)",
        "Linear(tuple((i, w / steps) for i, w in zip(counters, weights)), integer=True)",
        RULE,
    ),
    Fault(
        "one answer may be worse for the others to be better",
        "planning/candidates.py",
        "if max(ratios) <= WORST:",
        "if min(ratios) <= WORST:",
        NO_WORSE,
    ),
    Fault(
        "errors are looked at in the middle alone",
        "planning/candidates.py",
        "for share in (0.5, 1.0):",
        "for share in (0.5,):",
        NO_WORSE,
    ),
    Fault(
        "every mean of a draw has the interval of one in the middle of its bounds",
        "mechanisms/row_widths.py",
        '    return Law(blocks, scale, "mean", abs(weights[0]), j, max(share, 1 - share))\n',
        '    return Law(blocks, scale, "mean", abs(weights[0]), j, 0.5)\n',
        ("properties/test_row_coverage.py",),
    ),
    Fault(
        "the rows that lack a value have the width of those that have one",
        "mechanisms/row_widths.py",
        '            return None if used or present != -rows else Law(blocks, scale, "absent", abs(rows), j)\n',
        '            return None if used or present != -rows else Law(blocks, scale, "present", abs(rows) / 2, j)\n',
        ("unit/mechanisms/test_absent_rows.py",),
    ),
)
