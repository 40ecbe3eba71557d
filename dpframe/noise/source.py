"""Where random bits come from: the operating system, at every draw.

Privacy: there is no generator state in the process. Nothing can be seeded, forked, copied or
pickled into repeating itself, and there is nothing to re-key after a fork. The one exception is a
source that a test puts in place with :func:`replaced`; sessions mark what they record meanwhile as
not private.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]

_source: Callable[[int], bytes] = os.urandom


def words(n: int) -> Words:
    """Return ``n`` uniform 64-bit words."""
    return np.frombuffer(_source(8 * n), dtype=np.uint64)


def bits(n: int) -> int:
    """Return a uniform integer of ``n`` bits (a multiple of 8)."""
    return int.from_bytes(_source(n // 8), "little")


def is_private() -> bool:
    """Whether the bits come from the operating system."""
    return _source is os.urandom


@contextmanager
def replaced(source: Callable[[int], bytes]) -> Iterator[None]:
    """Draw from ``source`` (n -> n bytes) inside the block. For tests only."""
    global _source
    before, _source = _source, source
    try:
        yield
    finally:
        _source = before
