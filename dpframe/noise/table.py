"""Exact draws from a table of integer weights. The table is the law: nothing is rounded after it.

The total weight is W, of any size. A uniform integer below W is drawn 64 bits at a time: the first 64
bits of U in [0, 1) choose the entry unless they fall within one unit of an entry's edge, in which case
further bits are drawn until U's place among the exact edges ``C_i / W`` is decided.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from dpframe.noise import source


class TableSampler:
    """Draw indices with probability ``weights[i] / sum(weights)``, exactly.

    Parameters
    ----------
    weights : non-negative integers with a positive sum
    """

    def __init__(self, weights: tuple[int, ...]) -> None:
        self._edges = list(accumulate(weights))
        self._total = self._edges[-1]
        starts = [0, *self._edges[:-1]]
        self._table = np.array([(c << 64) // self._total for c in starts], dtype=object)
        self._table = np.minimum(self._table, 2**64 - 1).astype(np.uint64)

    def sample(self, size: int) -> npt.NDArray[np.int64]:
        """Return ``size`` independent indices as int64."""
        w = source.words(size)
        t = self._table
        index = np.searchsorted(t, w, side="right") - 1
        low = w - t[index] <= np.uint64(1)
        high = t[np.minimum(index + 1, len(t) - 1)] - w <= np.uint64(1)
        for i in np.flatnonzero(low | high):
            index[i] = self._exactly(int(w[i]))
        return index.astype(np.int64)

    def _exactly(self, word: int) -> int:
        """Place U among the exact edges, with as many bits as it takes."""
        n = 64
        while True:
            word, n = (word << 64) | source.bits(64), n + 64
            # U lies in [word, word + 1) / 2**n: index of the edges on either side, in integers.
            low = bisect_right(self._edges, (word * self._total) >> n)
            high = bisect_right(self._edges, ((word + 1) * self._total - 1) >> n)
            if low == high:
                return low


@lru_cache(maxsize=256)
def table_sampler(weights: tuple[int, ...]) -> TableSampler:
    """The sampler of a table (kept, as making it takes longer than drawing from it)."""
    return TableSampler(weights)
