"""Variances, covariances, correlations and weighted means: how far one row or one unit moves them.

One row or one unit moves what reaches the mechanism by at most what is declared (and by that much), groups that
nobody listed are thresholded, and neighbours look alike.

``DPFRAME_AUDIT=1`` tries every combination, not only every two parameters together, and 60 generated pairs of units
instead of 15 for each.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest
from many_rows import counts_at, pieces_of
from one_row import (
    ROOT2,
    alphabet,
    brute_force,
    each_grouping,
    each_relation,
    frame_of,
    same,
    verbs,
)
from oracle_frames import EPS
from sizes import AUDIT

import dpframe as dp
from conftest import as_kind, as_polars, exact_integers

pytestmark = pytest.mark.sweep

NAN, INF = math.nan, math.inf
SPLIT = {
    "eps": 1,
    "mechanism": "laplace",
}  # a draw for every part; what shares one: unit/planning/test_one_draw.py


@pytest.fixture(autouse=True)
def silence(quiet):
    """These tests are not about notices."""


@pytest.fixture
def budget():
    with dp.Session(eps=10**13) as s:
        yield s


in_a_session = pytest.mark.usefixtures("budget")


# ---- sensitivity, by trying ----

BLOCK = {"add_remove": (1, 1, 1), "replace_one": (2, ROOT2, 1)}


@each_relation
@each_grouping
@pytest.mark.parametrize("asked", ["var", "std", "everything"])
def test_a_triple_moves_by_one_row_in_l1(only_integers, kind, relation, grouped, asked):
    questions = {
        "var": {"v": dp.clip_var("x", bounds=(-3, 10))},
        "std": {"v": dp.clip_std("x", bounds=(-3, 10))},
        "everything": {
            "n": dp.count(),
            "v": dp.clip_var("x", bounds=(-3, 10)),
            "s": dp.clip_sum("x", bounds=(-3, 10)),
            "m": dp.clip_mean("x", bounds=(-3, 10)),
            "p": dp.clip_mean("x", bounds=(-3, 10), n=9),
        },
    }[asked]
    rows = alphabet(-3.0, 10.0, grouped=grouped)
    _, moved = brute_force(lambda p: verbs(p, grouped).agg(**questions, **SPLIT), kind, relation, rows, 2)
    assert len(moved) == 1, "one column and its bounds are one part"
    same(moved[0], BLOCK[relation])


TWO = {
    "cov": {"c": dp.clip_cov(["x", "y"], bounds=(-3, 10))},
    "wmean": {"m": dp.clip_wmean("x", weights="y", bounds=(-3, 10), weight_bounds=(0, 10))},
}


@each_relation
@each_grouping
@pytest.mark.parametrize("asked", TWO.values(), ids=TWO)
def test_blocks_of_two_columns_move_by_one_row_in_l1(only_integers, kind, relation, grouped, asked):
    rows = alphabet(-3.0, 10.0, grouped=grouped, second=True)
    if grouped:  # the corners are enough
        rows = [r for r in rows if r[0] != 0.0 and (r[2] == "a" or r[0] == r[1])]
    _, (moved,) = brute_force(
        lambda p: verbs(p, grouped).agg(**asked, **SPLIT), kind, relation, rows, 1 if grouped else 2
    )
    same(moved, BLOCK[relation])


@each_relation
def test_the_blocks_of_a_matrix_all_move_in_full(only_integers, kind, relation):
    rows = alphabet(-3.0, 10.0, grouped=False, second=True)
    plan, moved = brute_force(
        lambda p: p.clip_cov(["x", "y"], bounds=(-3, 10), **SPLIT), kind, relation, rows, 1
    )
    assert len(moved) == 3
    for m in moved:
        same(m, BLOCK[relation])
    for piece in plan.pieces:
        assert piece.noise.scale == 3 * plan.parts[piece.part].l1


@in_a_session
def test_every_row_adds_exactly_one_row_to_every_block(no_noise, kind):
    """Cells are not negative and sum to one row, whatever is in it; a row with a gap adds nothing."""
    values = (-3.0, 10.0, 0.1, INF, -INF, 1e300, 5e-324, 1 / 3, 9.999999, None)
    for x, y in itertools.product(values, repeat=2):
        bound = frame_of(kind, [(x, y, "a", True)]).dp.plan.agg(
            v=dp.clip_var("x", bounds=(-3, 10)),
            c=dp.clip_cov(["x", "y"], bounds=(-3, 10)),
            m=dp.clip_wmean("x", weights="y", bounds=(-3, 10), weight_bounds=(0, 10)),
            **SPLIT,
        )
        cells = {0: [], 1: [], 2: []}
        for piece, (value,) in zip(bound.plan.pieces, exact_integers(bound)):
            cells[piece.part].append(value)
        rows = [p.layout.row for p in bound.plan.parts]
        assert min(v for part in cells.values() for v in part) >= 0
        assert sum(cells[0]) == (0 if x is None else rows[0])
        assert sum(cells[1]) == (0 if x is None or y is None else rows[1])
        assert sum(cells[2]) <= (0 if x is None or y is None else rows[2])


# ---- units ----

UNIT_QUESTIONS = {
    "var": {"v": dp.clip_var("x", bounds=(-3, 10)), "n": dp.count()},
    "cov": {"c": dp.clip_cov(["x", "y"], bounds=(-3, 10))},
    "corr": {"r": dp.clip_corr(["x", "y"], bounds=(-3, 10))},
    "wmean": {"m": dp.clip_wmean("x", weights="y", bounds=(-3, 10), weight_bounds=(0, 10))},
    "ols": {"b": dp.ols("y", ["x"], bounds=(-3, 10))},
    "units": {"u": dp.count_units(), "n": dp.count()},
    "sum of vectors": {"t": dp.vector_sum(["x", "y"], norm=5)},
    "mean of vectors": {"t": dp.vector_mean(["x", "y"], norm=5, ord=1)},
}
UNIT_SCHEMA = {"u": pl.Int64, "x": pl.Float64, "y": pl.Float64, "g": pl.String}


def unit_rows(rng, u):
    """The rows of one unit: sometimes very many, at extremes, with gaps."""
    n = int(rng.choice([0, 1, 2, 9]))
    pool = [-3.0, 10.0, 10.0, 0.1, None, INF, 3.0]
    pick = lambda: pool[int(rng.integers(len(pool)))]  # noqa: E731
    fixed = (pick(), pick())  # often all rows of a unit are alike: that moves most
    alike = rng.random() < 0.5
    return [(u, *(fixed if alike else (pick(), pick())), str(rng.choice(list("abc")))) for _ in range(n)]


@each_relation
@pytest.mark.parametrize("grouped", [False, True], ids=["ungrouped", "grouped"])
@pytest.mark.parametrize("question", UNIT_QUESTIONS.values(), ids=UNIT_QUESTIONS)
def test_one_unit_moves_what_reaches_the_mechanism_by_at_most_what_is_declared(
    kind, relation, grouped, question
):
    rng = np.random.default_rng([11, len(question)])
    salts = (1, 2)
    for turn in range(60 if AUDIT else 15):
        others = [r for u in range(3) for r in unit_rows(rng, u)]
        before, after = unit_rows(rng, 9), unit_rows(rng, 9)
        if relation == "add_remove":
            after = []
        vectors = []
        for rows in (others + before, others + after):
            frame = as_kind(kind, pl.DataFrame(rows, schema=UNIT_SCHEMA, orient="row"))
            with dp.Session(eps=10, unit="u", neighbors=relation):
                if grouped:
                    verbs_ = frame.dp.plan.groupby("g", keys=list("abc"), max_groups=2, max_rows_per_group=3)
                    plan = verbs_.agg(**question, eps=1).plan
                else:
                    plan = frame.dp.plan.agg(**question, eps=1, max_rows=3).plan
            vectors.append([pieces_of(plan, counts_at(frame, plan, s)) for s in salts])
        for a, b in zip(*vectors):
            for i, part in enumerate(plan.parts):
                moved = a[i] - b[i]
                assert sum(abs(int(v)) for v in moved) <= part.l1, (turn, before, after)
                assert sum(int(v) ** 2 for v in moved) <= part.l2_squared, (turn, before, after)


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_a_scaled_unit_keeps_its_blocks_whole(no_noise, kind, rows):
    """Whatever is scaled down, no cell is negative and a block sums to the rows that are kept."""
    rng = np.random.default_rng(13)
    pool = [-3.0, 10.0, 0.1, 3.0, 9.9999, None, -2.999]
    for _ in range(60):
        n = int(rng.integers(1, 12))
        cells = [(1, *(pool[int(i)] for i in rng.integers(0, len(pool), 2)), "a") for _ in range(n)]
        frame = as_kind(kind, pl.DataFrame(cells, schema=UNIT_SCHEMA, orient="row"))
        with dp.Session(eps=10, unit="u"):
            bound = frame.dp.plan.agg(
                v=dp.clip_var("x", bounds=(-3, 10)),
                c=dp.clip_cov(["x", "y"], bounds=(-3, 10)),
                m=dp.clip_wmean("x", weights="y", bounds=(-3, 10), weight_bounds=(0, 10)),
                **SPLIT,
                max_rows=rows,
            )
            got = exact_integers(bound)
        parts = {i: [v for p, (v,) in zip(bound.plan.pieces, got) if p.part == i] for i in range(3)}
        row = [p.layout.row for p in bound.plan.parts]
        one = sum(c[1] is not None for c in cells)
        two = sum(c[1] is not None and c[2] is not None for c in cells)
        assert min(v for part in parts.values() for v in part) >= 0
        assert sum(parts[0]) == min(one, rows) * row[0]
        assert sum(parts[1]) == min(two, rows) * row[1]
        assert sum(parts[2]) <= min(two, rows) * row[2]


def test_the_number_of_units(kind):
    frame = as_kind(
        kind,
        pl.DataFrame({"u": [1, 1, 2, 3, None, 3], "g": ["a", "b", "a", "a", "a", "a"], "x": [1.0] * 6}),
    )
    with dp.Session(eps=10**8, unit="u"):
        value = frame.dp.count_units(eps=EPS)
        assert isinstance(value, int)
        assert value == 3
        groups = frame.dp.groupby("g", keys=["b", "a", "c"], max_groups=2)
        table = as_polars(groups.count_units(eps=EPS))
        assert table["units"].to_list() == [1, 3, 0]
        plan = frame.dp.plan.groupby("g", keys=["b", "a", "c"], max_groups=2)
        assert (plan.count_units(eps=1).l1, frame.dp.plan.count_units(eps=1).l1) == (2, 1)
    with dp.Session(eps=10**8, unit="u", neighbors="replace_one"):
        plan = frame.dp.plan.groupby("g", keys=["b", "a", "c"], max_groups=2).count_units(eps=1)
        assert (plan.l1, plan.l2) == (4, 2)
        assert frame.dp.plan.count_units(eps=1).l1 == 1


def test_units_that_are_asked_for_are_also_the_threshold_s():
    """With unknown keys one noisy number of units does both: no piece more."""
    frame = pl.DataFrame({"u": [i % 400 for i in range(800)], "g": ["a"] * 800, "x": [1.0] * 800})
    with dp.Session(eps=10, delta=1e-5, unit="u"):
        groups = frame.dp.plan.groupby("g", max_groups=1, max_rows_per_group=2)
        plan = groups.dp_agg(u=dp.count_units(), n=dp.count(), eps=1, delta=1e-6).plan
        assert [p.layout.kind for p in plan.parts] == ["units", "rows"]
        table = frame.dp.groupby("g", max_groups=1, max_rows_per_group=2).dp_agg(
            u=dp.count_units(), n=dp.count(), eps=5, delta=1e-6
        )
    assert abs(table["u"][0] - 400) < 40


def test_rows_have_no_units_to_count(budget):
    with pytest.raises(dp.InputError, match=r"protects single rows.*Hint"):
        pl.DataFrame({"x": [1]}).dp.count_units(eps=1)
    assert budget.spent == 0


# ---- thresholds ----


def test_unknown_groups_of_a_triple_and_of_a_covariance_are_thresholded():
    """A covariance counts no group: a count is added for the threshold. A triple with gaps adds up its rows, missing ones too."""
    frame = pl.DataFrame({"g": ["a"] * 3000 + ["b"], "x": [1.0, 5.0, 3.0] * 1000 + [1.0], "y": [2.0] * 3001})
    with dp.Session(eps=100, delta=1e-3):
        groups = frame.dp.groupby("g")
        table = groups.dp_agg(n=dp.count(), v=dp.clip_var("x", bounds=(0, 10)), eps=1, delta=1e-7)
        assert table["g"].to_list() == ["a"]
        plan = frame.dp.plan.groupby("g").dp_agg(
            n=dp.count(), v=dp.clip_var("x", bounds=(0, 10)), delta=1e-7, **SPLIT
        )
        assert len(plan.plan.threshold.coordinates) == 4
        table = groups.dp_agg(c=dp.clip_cov(["x", "y"], bounds=(0, 10)), eps=1, delta=1e-7)
        assert table["g"].to_list() == ["a"]
        plan = frame.dp.plan.groupby("g").dp_agg(
            c=dp.clip_cov(["x", "y"], bounds=(0, 10)), delta=1e-7, **SPLIT
        )
        assert [p.layout.kind for p in plan.plan.parts] == ["pair", "rows"]


# ---- neighbours look alike ----

ASKED = {
    "var": lambda f: f.dp.clip_var("x", bounds=(-3, 10), eps=1),
    "cov": lambda f: f.dp.clip_cov(["x", "y"], bounds=(-3, 10), eps=1),
    "corr": lambda f: f.dp.clip_corr(["x", "y"], bounds=(-3, 10), eps=1),
    "wmean": lambda f: f.dp.clip_wmean("x", weights="y", bounds=(-3, 10), eps=1),
    "vectors": lambda f: f.dp.vector_mean(["x", "y"], norm=3, eps=1),
    "groups": lambda f: f.dp.groupby("g", keys=["a", "b"]).dp_agg(
        v=dp.clip_std("x", B=3), t=dp.vector_sum(["x", "y"], norm=3), r=dp.clip_corr(["x", "y"], B=3), eps=1
    ),
}


def looks(frame, question):
    with dp.Session(eps=10) as s:
        value = question(frame)
        facts = {k: v for k, v in s.last.facts.items() if k != "time"}
        if not isinstance(value, float):
            numbers = as_polars(value).select(pl.col(pl.Float64))
            assert np.isfinite(numbers.to_numpy()).all()
            return type(value), value.shape, list(value.columns), list(map(str, value.dtypes)), facts
        assert math.isfinite(value)
        return type(value), facts


@pytest.mark.parametrize("question", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("row", [(NAN, 1.0), (None, None), (INF, -INF), (1e300, NAN), (1.0, 2.0)], ids=str)
def test_neighbours_look_alike(kind, question, row):
    base = [(1.0, 2.0, "a", True)] * 3
    for rows, other in ((base, [*base, (*row, "b", True)]), ([], [(*row, "a", True)])):
        assert looks(frame_of(kind, rows), question) == looks(frame_of(kind, other), question)
