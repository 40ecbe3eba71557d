"""Listed keys under which a release looks empty: mistyped ones, mostly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpframe.errors import Arg, Call, InputError
from dpframe.planning.pieces import Output
from dpframe.planning.plan import Plan


def least_count(plan: Plan) -> Output:
    """The number of rows or units of every listed group that has the least margin.

    Raises
    ------
    InputError
        Where groups were not listed, or nothing counts them.
    """
    if plan.keys is None:
        why = "found groups are told because they are not empty" if plan.grouped else "there are no groups"
        raise InputError(
            f"empty_looking() is about keys that were listed, and of {plan.describe()} {why}.",
            hint=Call("df.dp.groupby", "city", keys=[...]),
        )
    counts = [o for o in plan.outputs if o.question.verb in ("count", "count_units")]
    every = [o for o in counts if o.question.column is None] or counts
    if not every:
        raise InputError(
            f"empty_looking() reads a count, and there is none in {plan.describe()}.",
            hint=("ask for one beside it: ", Arg("n", Call("dp.count"))),
        )
    return min(every, key=lambda o: o.answer.error(plan.laws, None) or 0.0)


def holding_nothing(low: Sequence[float] | npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """The places of intervals that hold 0, or lie below it, as noise may be negative and a count is not."""
    return np.flatnonzero(np.asarray(low) <= 0)
