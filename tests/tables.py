"""One small table, every question about it, and the types of their answers."""

from __future__ import annotations

import polars as pl

FRAME = pl.DataFrame(
    {
        "g": ["a", "b", "a", "c", None, "a"],
        "x": [1.0, 2.0, None, 40.0, 5.0, 3.0],
        "k": [1, 2, 3, 4, 5, 6],
        "late": [True, False, True, None, True, False],
    }
)
