"""Units scaled down: one definition in the expressions that Polars and narwhals share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpframe.frames.contract import Measure


def scaled(
    lib: Any, pairs: Any, measures: tuple[Measure, ...], most: int, divided: Callable[[Any, Any], Any]
) -> Any:
    """Scale every (unit, group) pair down to at most ``most`` rows: no row is chosen, none is dropped.

    n' = min(n, R), c' = min(c, R), T' = the nearest integer to c' * T / c, computed without overflow; of
    vectors the one nearest to zero. A sum of products of two axes is then clipped to what the sums S'
    and T' of its factors allow: max(0, K_t*S' + K_s*T' - c'*K_s*K_t) to min(K_t*S', K_s*T').

    Parameters
    ----------
    lib : module
        ``polars``, or ``narwhals.stable.v2`` for tables that stay where they are.
    pairs : lazy frame of ``lib``
        One line a pair, with the columns n, c<i> of every measure, and t<i>_<p> of its products.
    divided : callable
        The floor of a/b for integers a >= 0 and b > 0.

    Privacy: T' <= c' * K <= n' * K, so a unit's cells (T', c'K - T', (n' - c')K) sum to n'K <= R*K; within
    the clip every cell made of products is at least 0 too, and they sum to c' * K_s*K_t. A vector sum of c
    vectors of norm at most C, times c'/c and cut toward zero, has norm at most R*C.
    """
    sums = [(i, p, m) for i, m in enumerate(measures) for p in range(len(m.products))]
    top, one = (lib.lit(k).cast(lib.Int64) for k in (most, 1))
    begun, whole, rest, made, bounded = {}, {}, {}, {}, {}
    begun["n"] = lib.when(lib.col("n") > most).then(top).otherwise(lib.col("n"))
    for i in range(len(measures)):
        c = lib.col(f"c{i}")
        begun[f"kept{i}"] = lib.when(c > most).then(top).otherwise(c)
        begun[f"safe{i}"] = lib.when(c > 0).then(c).otherwise(one)
        made[f"c{i}"] = lib.col(f"kept{i}")
    for i, p, m in sums:
        t, at, kept, safe = lib.col(f"t{i}_{p}"), f"{i}_{p}", lib.col(f"kept{i}"), lib.col(f"safe{i}")
        whole[f"whole{at}"] = divided(t.abs(), safe)
        rest[f"rest{at}"] = t.abs() - lib.col(f"whole{at}") * safe
        left = kept * lib.col(f"rest{at}")
        part = divided(left, safe) if m.ball is not None else divided(2 * left + safe, 2 * safe)
        near = kept * lib.col(f"whole{at}") + part
        made[f"t{at}"] = near if m.ball is None else lib.when(t < 0).then(0 - near).otherwise(near)
        if len(m.products[p]) == 2:
            bounded[f"t{at}"] = _product_bounds(lib, i, p, m)
    for step in (begun, whole, rest, made, bounded):
        if step:
            pairs = pairs.with_columns(*(x.alias(name) for name, x in step.items()))
    return pairs


def _product_bounds(lib: Any, i: int, p: int, m: Measure) -> Any:
    a, b = m.products[p]
    ka, kb = m.axes[a].steps, m.axes[b].steps
    halves = [
        lib.col(f"t{i}_{m.products.index((x,))}") * k for x, k in ((a, kb), (b, ka)) if (x,) in m.products
    ]
    low = [lib.lit(0).cast(lib.Int64)]
    if len(halves) == 2:
        low.append(halves[0] + halves[1] - lib.col(f"c{i}") * (ka * kb))
    return lib.min_horizontal(lib.max_horizontal(f"t{i}_{p}", *low), *halves)
