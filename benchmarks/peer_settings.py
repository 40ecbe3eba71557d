"""What every peer is asked: the data, the bounds and the guarantee."""

from __future__ import annotations

from typing import Any

import numpy as np

EPS, DELTA = 1.0, 1e-6  # delta for unknown keys only
LOW, HIGH = 0.0, 100_000.0
CITIES = list(range(50))
MAX_GROUPS, MAX_ROWS = 3, 10  # of one person: cities, and rows in each
MOST_ROWS, MOST_ITEMS = 2_000_000, 2_000  # public bounds that some peers want; loose ones cost them noise
QUESTIONS = ("count", "total", "mean", "public_keys", "unknown_keys", "units")


def visits(rows: int) -> dict[str, np.ndarray[Any, Any]]:
    """People with some 20 rows in three cities each, items of which many are rare, and incomes."""
    rng = np.random.default_rng(0)
    person = rng.integers(0, max(rows // 20, 1), rows)
    return {
        "person": person,
        "city": (person * 7919 + rng.integers(0, 3, rows) * 17) % len(CITIES),
        "item": np.minimum(rng.zipf(1.3, rows), 2_000),
        "x": rng.standard_normal(rows) * 30_000 + 50_000,
    }


def truth(data: dict[str, np.ndarray[Any, Any]], question: str) -> Any:
    """The answer without noise and without a limit for people: a number, or (rows, mean) by key."""
    x = np.clip(data["x"], LOW, HIGH)
    if question in ("count", "total", "mean"):
        return {"count": len(x), "total": float(x.sum()), "mean": float(x.mean())}[question]
    key = data["item" if question == "unknown_keys" else "city"]
    n, t = np.bincount(key), np.bincount(key, weights=x)
    return {int(k): (int(n[k]), float(t[k] / n[k])) for k in np.flatnonzero(n)}
