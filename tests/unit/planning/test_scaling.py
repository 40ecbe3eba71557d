"""Units with too many rows are scaled down, not sampled: the nearest integers, the same on every library."""

from __future__ import annotations

import math
from fractions import Fraction
from operator import floordiv

import numpy as np
import polars as pl
import pytest
from many_rows import bound_plan, by_part, frame_of, many_units

import dpframe as dp
from conftest import as_polars, exact_integers
from dpframe.engine.scaling import scaled
from dpframe.frames.contract import Axis, Bounding, Measure

# ---- scaled down, not sampled ----


def nearest(c, t, kept):
    """kept * t / c to the nearest integer, ties up."""
    return 0 if c == 0 else math.floor(Fraction(kept * t, c) + Fraction(1, 2))


def test_scaling_down_is_the_nearest_integer_to_the_share_also_of_huge_sums():
    rng = np.random.default_rng(5)
    rows = [
        (0, 0),
        (1, 0),
        (1, 2**30),
        (2**32, 2**62),
        (2**32 - 1, (2**32 - 1) * 2**30),
        (2**32 - 1, 2**61 + 1),
    ]
    rows += [(3, 1), (2, 1), (2, 3), (6, 3), (2**24, 2**54), (2**24 + 1, 2**54 + 3)]
    for _ in range(3000):
        c = int(rng.integers(1, 2 ** int(rng.integers(1, 33))))
        rows.append((c, int(rng.integers(0, c * 2 ** int(rng.integers(0, 31)) + 1))))
    table = pl.DataFrame(
        {"n": [c + 1 for c, _ in rows], "c0": [c for c, _ in rows], "t0_0": [t for _, t in rows]},
        schema={"n": pl.Int64, "c0": pl.Int64, "t0_0": pl.Int64},
    )
    for most in (1, 2, 3, 7, 1000, 2**20, 2**24):
        measures = (Measure((Axis("x", 0.0, 1.0, 1.0, 0, 1),), ((0,),)),)
        got = scaled(pl, table.lazy(), measures, ["u"], Bounding(("u",), most, None), floordiv).collect()
        assert got["n"].to_list() == [min(c + 1, most) for c, _ in rows]
        assert got["c0"].to_list() == [min(c, most) for c, _ in rows]
        assert got["t0_0"].to_list() == [nearest(c, t, min(c, most)) for c, t in rows]


def test_a_scaled_unit_adds_its_rows_times_k_to_a_block_and_never_a_negative_cell(no_noise, quiet, kind):
    """n' = min(n, R), c' = min(c, R): cells (T', c'K - T', (n' - c')K)."""
    rng = np.random.default_rng(6)
    for rows in ([5.0], [None], [10.0] * 9, [-3.0] * 9, [None] * 9, [None] * 4 + [1 / 3] * 3):
        for most in (1, 2, 3, 100):
            values = [rows[i] for i in rng.permutation(len(rows))]
            with dp.Session(eps=10**9, unit="u"):
                frame = frame_of(kind, [(1, v, "a", True) for v in values])
                bound = frame.dp.plan.agg(
                    n=dp.count(),
                    m=dp.clip_mean("x", bounds=(-3, 10)),
                    eps=1,
                    max_rows=most,
                    mechanism="laplace",
                )
                u, v, w = (x[0] for x in exact_integers(bound))
            k = bound.plan.parts[0].layout.grid.count
            present = sum(x is not None for x in values)
            assert min(u, v, w) >= 0
            assert u + v == min(present, most) * k
            assert u + v + w == min(len(values), most) * k
            assert 2**20 <= k <= 2**30


@pytest.mark.parametrize("grouped", [False, True])
def test_with_one_row_per_unit_the_share_of_true_is_the_average_of_the_units_shares(quiet, kind, grouped):
    """Within 1e-5 at eps = 1e6; a step of 1 would take a majority vote (.232 came out .0055)."""
    rng = np.random.default_rng(8)
    rows, shares = [], []
    for u in range(400):
        n = int(rng.integers(1, 30))
        late = rng.random(n) < 0.232
        shares.append(Fraction(int(late.sum()), n))
        rows += [(u, bool(x), "a") for x in late]
    frame = frame_of(kind, rows, {"u": pl.Int64, "late": pl.Boolean, "g": pl.String})
    want = float(sum(shares) / len(shares))
    with dp.Session(eps=10**7, unit="u"):
        if grouped:
            table = frame.dp.groupby("g", keys=["a", "b"], max_groups=2, max_rows_per_group=1).clip_mean(
                "late", eps=10**6
            )
            got = as_polars(table)["late_mean"][0]
        else:
            got = frame.dp.clip_mean("late", eps=10**6, max_rows=1)
    assert abs(float(got) - want) < 1e-5


def test_an_integer_column_is_scaled_on_a_fine_grid_and_answered_in_integers(no_noise, quiet, kind):
    """Unit 1 averages 4/3, unit 2 averages 5/2: 3.8333 with one row each, rounded once at the end."""
    rows = [(1, 1, "a"), (1, 1, "a"), (1, 2, "a"), (2, 2, "a"), (2, 3, "a")]
    frame = frame_of(kind, rows, {"u": pl.Int64, "x": pl.Int64, "g": pl.String})
    with dp.Session(eps=10**9, unit="u"):
        assert frame.dp.clip_sum("x", bounds=(0, 10), max_rows=1, eps=10**6) == 4
        assert isinstance(frame.dp.clip_sum("x", bounds=(0, 10), max_rows=1, eps=10**6), int)
        mean = frame.dp.clip_mean("x", bounds=(0, 10), max_rows=1, eps=10**6)
    assert float(mean) == pytest.approx((4 / 3 + 5 / 2) / 2, abs=1e-5)


@pytest.mark.parametrize("grouped", [False, True])
def test_every_library_order_and_chunking_gives_the_same_integers(no_noise, quiet, grouped):
    """Where max_groups does not bind nothing is chosen, so nothing can differ."""
    rng = np.random.default_rng(12)
    for _ in range(12):
        rows = [(None, 1.0, "a", True), (3, None, "b", True)]
        rows += many_units(rng, int(rng.integers(1, 60)), "abcd")
        got = []
        with dp.Session(eps=10**9, unit="u"):
            for kind in ("pandas", "polars", "lazy"):
                got.append(
                    [
                        x.tolist()
                        for x in by_part(bound_plan(frame_of(kind, rows), "two", grouped, 4, 2)).values()
                    ]
                )
            mixed = [rows[i] for i in rng.permutation(len(rows))]
            parts = [frame_of("polars", mixed[i::3]) for i in range(3)]
            chunked = pl.concat(parts, rechunk=False)
            got.append([x.tolist() for x in by_part(bound_plan(chunked, "two", grouped, 4, 2)).values()])
            got.append(
                [x.tolist() for x in by_part(bound_plan(chunked.to_pandas(), "two", grouped, 4, 2)).values()]
            )
        assert all(g == got[0] for g in got)
