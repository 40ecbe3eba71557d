"""How large tests are: as large as the default suite, or at their full size, which takes hours (``make audit-tests``)."""

from __future__ import annotations

import itertools
import os
import random
from collections import defaultdict

AUDIT = os.environ.get("DPFRAME_AUDIT", "") not in ("", "0")
FRAMES = (
    int(os.environ.get("DPFRAME_FRAMES", "2000")) if AUDIT else 10
)  # generated ones that each engine is asked about


def covering(runs: list[dict[str, object]], strength: int) -> list[bool]:
    """Which runs of a test to keep so that every ``strength`` values of its parameters still occur together.

    Parameters
    ----------
    runs : list of dict
        The value of each parameter; the same object means the same value.
    strength : int
        1: every value occurs; 2: every two values of two parameters do; and so on.
    """
    kept, seen = [False] * len(runs), set()
    order = list(range(len(runs)))
    random.Random(0).shuffle(
        order
    )  # in the given order the first value of the outermost would get nearly all runs
    for i in order:
        values = [(name, id(value)) for name, value in sorted(runs[i].items(), key=lambda x: x[0])]
        together = set(itertools.combinations(values, min(strength, len(values))))
        kept[i] = not together <= seen
        seen |= together
    return kept


def left_to_the_audit(items) -> set[int]:
    """The places of those items that a ``sweep`` leaves to ``DPFRAME_AUDIT=1``."""
    runs = defaultdict(list)
    for place, item in enumerate(items):
        mark, given = item.get_closest_marker("sweep"), getattr(item, "callspec", None)
        if mark is not None and given is not None:
            runs[item.path, item.originalname].append((place, given.params, *mark.args))
    left = set()
    for several in runs.values():
        strength = several[0][2] if len(several[0]) > 2 else 2
        kept = covering([params for _, params, *_ in several], strength)
        left |= {place for (place, *_), stays in zip(several, kept) if not stays}
    return left
