"""Units scaled down: one definition in the expressions that Polars and narwhals share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dpframe.frames.contract import ROW_STEPS, WEIGHT, Bounding, Measure

MOST_ROWS = 1 << 31  # of a unit over all groups; with T one with more counts as nothing


def scaled(
    lib: Any,
    pairs: Any,
    measures: tuple[Measure, ...],
    unit: Sequence[str],
    bounding: Bounding,
    divided: Callable[[Any, Any], Any],
) -> Any:
    """Scale every (unit, group) pair down to R rows at most, and a unit to T in all: no row is chosen, none is dropped.

    n' = min(n, R), c' = min(c, R), S' = the nearest integer to c' * S / c for a sum S, computed without overflow; of
    vectors the one nearest to zero. With a limit T over all groups, n' and c' are in row steps (:func:`_shared_out`). A sum of products of two axes is then clipped to what the sums S'
    and T' of its factors allow: max(0, K_t*S' + K_s*T' - c'*K_s*K_t) to min(K_t*S', K_s*T').

    Parameters
    ----------
    lib : module
        ``polars``, or ``narwhals.stable.v2`` for tables that stay where they are.
    pairs : lazy frame of ``lib``
        One line a pair, with the columns n, c<i> of every measure, and t<i>_<p> of its products; of pairs that count
        alone (of listed and chosen groups).
    unit : names of columns
        That tell units apart.
    divided : callable
        The floor of a/b for integers a >= 0 and b > 0.

    Privacy: S' <= c' * K <= n' * K, so a unit's cells (S', c'K - S', (n' - c')K) sum to n'K <= R*K, over all groups to
    T*K where T is given; only S' is rounded to nearest, n' and c' are rounded down, and all cells are differences; within
    the clip every cell made of products is at least 0 too, and they sum to c' * K_s*K_t. A vector sum of c
    vectors of norm at most C, times c'/c and cut toward zero, has norm at most R*C.
    """
    sums = [(i, p, m) for i, m in enumerate(measures) for p in range(len(m.products))]
    most = bounding.rows
    top, one = (lib.lit(k).cast(lib.Int64) for k in (most, 1))
    begun, whole, rest, made, bounded = {}, {}, {}, {}, {}
    if bounding.total is not None:
        begun["rows"] = lib.col("n")
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
    shared = [] if bounding.total is None else _shared_out(lib, len(measures), unit, bounding.total, divided)
    for step in (begun, *shared, whole, rest, made, bounded):
        if step:
            pairs = pairs.with_columns(*(x.alias(name) for name, x in step.items()))
    return pairs


def _shared_out(
    lib: Any, measures: int, unit: Sequence[str], total: int, divided: Callable[[Any, Any], Any]
) -> list[dict[str, Any]]:
    """Steps that turn n and the kept c of every pair into row steps of 1/``ROW_STEPS``, of at most T rows a unit.

    With N the unit's n in all groups and Q = T * ROW_STEPS: n' = n * ROW_STEPS where N <= T, else floor(n*Q/N), as
    n*(Q div N) + (n*(Q mod N)) div N; c' = floor(c*n'/n) likewise. A unit of ``MOST_ROWS`` and more counts as nothing.

    Privacy: floors of n*Q/N sum to Q at most. N is of the unit's own rows, so nobody else's integers depend on it.
    Products stay below 2**62, so nothing wraps.
    """
    n, rows, everything = lib.col("n"), lib.col("rows"), lib.col("unit_rows")
    q, none = (lib.lit(k).cast(lib.Int64) for k in (total * ROW_STEPS, 0))
    some = (rows < MOST_ROWS) & (everything < MOST_ROWS)
    divisor = lib.when(everything > total).then(everything).otherwise(lib.lit(total).cast(lib.Int64))
    steps = [
        {"unit_rows": n.sum().over(*unit).cast(lib.Int64)},
        {"divisor": lib.when(some).then(divisor).otherwise(lib.lit(MOST_ROWS).cast(lib.Int64))},
        {"quotient": divided(q, lib.col("divisor"))},
        {"left": q - lib.col("quotient") * lib.col("divisor")},
        {"before": lib.when(some).then(n).otherwise(none)},
        {
            "wide": lib.col("before") * lib.col("quotient")
            + divided(lib.col("before") * lib.col("left"), lib.col("divisor"))
        },
        {"per_row": divided(lib.col("wide"), n)},
        {"over": lib.col("wide") - lib.col("per_row") * n},
    ]
    kept = {f"kept{i}": lib.col(f"kept{i}") for i in range(measures)}
    steps.append({k: c * lib.col("per_row") + divided(c * lib.col("over"), n) for k, c in kept.items()})
    steps.append({"n": lib.col("wide")})
    return steps


def weighed(lib: Any, pairs: Any, unit: Sequence[str], number: Callable[[float], Any]) -> Any:
    """``pairs`` with what their unit weighs in each of its t groups: ``weight``, floor(W / sqrt(t)) for W = ``WEIGHT``.

    ``number`` is a float in the expressions of ``lib``. The float is off by less than 1, and corrected in integers.

    Privacy: t is of the unit's own pairs. Integers decide, not floats: a weight of which t squares are more than W**2
    counts as nothing, so a unit's weights have the norm W at most whatever the engine's square roots are.
    """
    w, t, most = lib.col("weight"), lib.col("unit_groups"), WEIGHT**2
    none = lib.lit(0).cast(lib.Int64)
    near = (number(float(WEIGHT)) / t.cast(lib.Float64).sqrt()).floor().cast(lib.Int64)
    lower = lib.when(w * w * t > most).then(w - 1).otherwise(w)
    steps = {
        "unit_groups": lib.col("n").count().over(*unit).cast(lib.Int64),
        "weight": near,
        "corrected": lib.when((w + 1) * (w + 1) * t <= most).then(w + 1).otherwise(lower),
    }
    for name, x in steps.items():
        pairs = pairs.with_columns(x.alias(name))
    c = lib.col("corrected")
    return pairs.with_columns(
        lib.when((c >= 0) & (c <= WEIGHT) & (c * c * t <= most)).then(c).otherwise(none).alias("weight")
    )


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
