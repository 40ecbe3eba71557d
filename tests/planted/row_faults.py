"""Faults of one draw for a whole row: its blocks, its sensitivity, and who shares it."""

from __future__ import annotations

from planted.fault import Fault

ONE_DRAW = ("unit/planning/test_one_draw.py",)
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
        "a draw has the eps of the whole call beside other parts",
        "planning/fused.py",
        "            part_of(target, p),\n",
        "            target,\n",
        ONE_DRAW,
    ),
)
