"""At eps = 1e6 the noise is far below what anyone can see, so every answer is the plain clipped one.

Promise 4 of the project: within 40 sensitivities over eps plus one grid step per row (counts exactly;
the mean of nothing is the midpoint), for every verb, dtype, library and size at which an engine
changes its path. The plain answers are computed here in exact rationals, cell by cell.

False alarms: a Laplace variable of scale b exceeds 40 b with probability exp(-40), and the sum of the
two cells of a block (each of scale at most b) with less than 21 exp(-20)/2**20; a count of rows is
wrong when its noise of scale 1e-6 to 4e-6 rows reaches half a row. Some 30,000 cells are compared in all:
the chance that a right build fails is below 1e-9.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import polars as pl
import pytest
from oracle_frames import COLUMNS, EPS, INF, KEYS, NAN, SIZES, bounds_of, make

import dpframe as dp
from conftest import as_polars


class Plain:
    """The plain clipped answers about some rows."""

    def __init__(self, cells, where, low, high):
        self.low, self.high = Fraction(low), Fraction(high)
        self.rows, self.present, self.total = len(where), 0, Fraction(0)
        for i, times in Counter(where.tolist()).items():
            x = cells[i]
            if x is None or (isinstance(x, float) and math.isnan(x)):
                continue
            self.present += times
            if isinstance(x, float) and math.isinf(x):
                clipped = self.high if x > 0 else self.low
            else:
                clipped = min(max(Fraction(x), self.low), self.high)
            self.total += times * clipped

    @property
    def mean(self):
        return self.total / self.present if self.present else (self.low + self.high) / 2

    def mean_of(self, n):
        middle = (self.low + self.high) / 2
        return min(max(middle + (self.total - middle * self.present) / n, self.low), self.high)


def close(answer, exact, sensitivity, slack) -> bool:
    """Within 40 sensitivities over eps, and the grid's share; never NaN or inf."""
    if not math.isfinite(answer):
        return False
    margin = 40 * Fraction(sensitivity) / EPS + Fraction(slack)
    return abs(Fraction(float(answer)) - exact) <= margin + abs(exact) / 2**50


def grid_steps(rows, low, high) -> Fraction:
    """One step per row of the coarsest grid that the mathematics allows these bounds."""
    return Fraction(rows) * (high - low) / 2**28


@pytest.fixture(autouse=True)
def budget(quiet):
    with dp.Session(eps=10**12) as s:
        yield s


@pytest.mark.sweep(1)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("kind", "name"), COLUMNS)
def test_ungrouped_answers_are_the_plain_clipped_ones(kind, name, n):
    frame, cells, where, _ = make(kind, name, n)
    low, high = bounds_of(name)
    exact = Plain(cells, where, low, high)
    far, span, step = max(abs(low), abs(high)), high - low, grid_steps(n, low, high)
    public = max(n, 1)

    count = frame.dp.count(eps=EPS)
    assert isinstance(count, int)
    assert count == exact.rows
    present = frame.dp.count("x", eps=EPS)
    assert isinstance(present, int)
    assert present == exact.present
    assert close(frame.dp.clip_sum("x", bounds=(low, high), eps=EPS), exact.total, far, step)
    mean = frame.dp.clip_mean("x", bounds=(low, high), eps=EPS)
    assert low <= mean <= high
    assert close(mean, exact.mean, span, step / public)
    mean = frame.dp.clip_mean("x", bounds=(low, high), n=public, eps=EPS)
    assert low <= mean <= high
    assert close(mean, exact.mean_of(public), Fraction(span, public), step / public)
    if "bool" in name:  # Boolean columns need no bounds
        assert close(frame.dp.clip_sum("x", eps=EPS), exact.total, 1, step)
        assert close(frame.dp.clip_mean("x", eps=EPS), exact.mean, 1, step / public)

    table = as_polars(frame.dp.agg(**everything(low, high, public), eps=EPS))
    assert table.shape == (1, 6)
    check_row(table.row(0, named=True), exact, low, high, public)


def everything(low, high, public):
    return {
        "n": dp.count(),
        "c": dp.count("x"),
        "s": dp.clip_sum("x", bounds=(low, high)),
        "m": dp.clip_mean("x", bounds=(low, high)),
        "p": dp.clip_mean("x", bounds=(low, high), n=public),
        "other": dp.clip_sum("x", bounds=(1, 4)),  # bounds of its own: a second part
    }


def check_row(row, exact, low, high, public):
    """One row of ``everything``: two parts, so every part has half of eps; and sums of two cells of a block."""
    span, step = high - low, grid_steps(exact.rows, low, high)
    assert row["n"] == exact.rows
    assert row["c"] == exact.present
    assert close(row["s"], exact.total, 2 * (abs(low) + abs(high)), step)
    assert low <= row["m"] <= high
    assert close(row["m"], exact.mean, 2 * span, step / max(exact.present, 1))
    assert close(row["p"], exact.mean_of(public), Fraction(2 * span, public), step / public)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("kind", "name"), COLUMNS)
def test_grouped_answers_are_the_plain_clipped_ones(kind, name, n):
    frame, cells, _, of_key = make(kind, name, n)
    low, high = bounds_of(name)
    public = 50
    table = as_polars(
        frame.dp.groupby("g", keys=KEYS).dp_agg(
            n=dp.count(),
            c=dp.count("x"),
            s=dp.clip_sum("x", bounds=(low, high)),
            m=dp.clip_mean("x", bounds=(low, high)),
            eps=EPS,
        )
    )
    alone = {
        "n": frame.dp.groupby("g", keys=KEYS).count(eps=EPS),
        "c": frame.dp.groupby("g", keys=KEYS).count("x", eps=EPS),
        "s": frame.dp.groupby("g", keys=KEYS).clip_sum("x", bounds=(low, high), eps=EPS),
        "m": frame.dp.groupby("g", keys=KEYS).clip_mean("x", bounds=(low, high), eps=EPS),
        "p": frame.dp.groupby("g", keys=KEYS).clip_mean("x", bounds=(low, high), n=public, eps=EPS),
    }
    alone = {k: as_polars(v) for k, v in alone.items()}
    assert table.columns == ["g", "n", "c", "s", "m"]
    for t in (table, *alone.values()):
        assert t["g"].to_list() == KEYS
    for i, where in enumerate(of_key):
        exact = Plain(cells, where, low, high)
        far, span, step = max(abs(low), abs(high)), high - low, grid_steps(len(where), low, high)
        assert table["n"][i] == alone["n"].item(i, 1) == exact.rows
        assert table["c"][i] == alone["c"].item(i, 1) == exact.present
        assert close(table["s"][i], exact.total, abs(low) + abs(high), step)
        assert close(alone["s"].item(i, 1), exact.total, far, step)
        for mean in (table["m"][i], alone["m"].item(i, 1)):
            assert low <= mean <= high
            assert close(mean, exact.mean, span, step / max(exact.present, 1))
        assert close(alone["p"].item(i, 1), exact.mean_of(public), Fraction(span, public), step / public)


def test_the_sum_of_zero_to_nine_is_forty_five(kind):
    """Case 29: a sum of 0..9 came out 9 elsewhere, and a sum of 20 as 0."""
    table = pl.DataFrame({"x": list(range(10))})
    frame = table.to_pandas() if kind == "pandas" else table.lazy() if kind == "lazy" else table
    assert frame.dp.clip_sum("x", bounds=(0, 100), eps=EPS) == 45
    assert frame.head(1).dp.clip_sum("x", bounds=(20, 100), eps=EPS) == 20
    assert frame.dp.count(eps=EPS) == 10


@pytest.mark.parametrize("bounds", [(-3, 10), (20, 100), (-50, -10), (0, 1e-9), (-1e12, 3e12), (0.49, 0.51)])
def test_the_mean_of_nothing_is_the_midpoint(kind, bounds):
    table = pl.DataFrame({"x": [None, NAN]}, schema={"x": pl.Float64})
    middle, span = sum(bounds) / 2, bounds[1] - bounds[0]
    for rows in (0, 2):
        frame = table.head(rows)
        frame = frame.to_pandas() if kind == "pandas" else frame.lazy() if kind == "lazy" else frame
        for mean in (
            frame.dp.clip_mean("x", bounds=bounds, eps=EPS),
            frame.dp.clip_mean("x", bounds=bounds, n=3, eps=EPS),
            as_polars(frame.dp.agg(n=dp.count(), m=dp.clip_mean("x", bounds=bounds), eps=EPS))["m"][0],
        ):
            assert bounds[0] <= mean <= bounds[1]
            assert abs(mean - middle) <= 40 * span / EPS + abs(middle) * 1e-12


@pytest.mark.parametrize("eps", [1e-3, 0.1, 1.0])
def test_no_answer_is_ever_nan_or_infinite_even_when_noise_drowns_it(kind, eps):
    """Empty groups, noisy denominators near zero, infinite and missing cells."""
    table = pl.DataFrame({"g": ["a", "a", "b", None], "x": [INF, NAN, None, -1e300]})
    frame = table.to_pandas() if kind == "pandas" else table.lazy() if kind == "lazy" else table
    keys = [None, "a", *(f"absent {i}" for i in range(500))]
    out = frame.dp.groupby("g", keys=keys).dp_agg(
        n=dp.count(),
        s=dp.clip_sum("x", bounds=(-1e-3, 7e9)),
        m=dp.clip_mean("x", bounds=(-1e-3, 7e9)),
        p=dp.clip_mean("x", bounds=(-1e-3, 7e9), n=2),
        eps=eps,
        ci=0.95,
    )
    out = as_polars(out)
    for column in out.get_columns()[1:]:
        assert column.null_count() == 0
        assert column.cast(pl.Float64).is_finite().all()
    assert out["m"].is_between(-1e-3, 7e9).all()
    assert out["p"].is_between(-1e-3, 7e9).all()
