"""Regression: plain least squares at a huge eps, whatever the columns; refusals before the charge; and shown as other tables."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp

pytestmark = pytest.mark.usefixtures("quiet")

EPS = 10**6
N = 4_000
rng = np.random.default_rng(5)
A, B, C = rng.uniform(0, 10, N), rng.uniform(-5, 5, N), rng.integers(0, 7, N)
Y = 3 + 0.5 * A - 1.2 * B + 0.25 * C + rng.normal(size=N)
G = rng.choice(["u", "v"], N)
FRAME = pl.DataFrame({"a": A, "b": B, "c": C, "late": C > 3, "y": Y, "g": G})
BOUNDS = {"y": (-20, 20), "a": (0, 10), "b": (-5, 5), "c": (0, 6)}
COLUMNS = ["term", "estimate", "std_error", "low", "high", "n", "residual_sd", "r_squared", "note"]


def asked(frame, x, *, eps=EPS, bounds=None, groups=None, y="y", session=None, **options):
    needed = {c: BOUNDS[c] for c in (y, *x) if c in BOUNDS} if bounds is None else bounds
    with dp.Session(eps=10**9, delta=0.1, **(session or {})):
        door = frame.dp if groups is None else frame.dp.groupby("g", keys=groups)
        return door.ols(y, x, bounds=needed, eps=eps, **options)


def plain(frame, x, y="y"):
    """(coefficients, residual sd, R squared, standard errors) of least squares."""
    kept = frame.select(pl.col(c).cast(pl.Float64).fill_nan(None) for c in (*x, y)).drop_nulls()
    z = [np.clip(kept[c].to_numpy(), *BOUNDS.get(c, (0, 1))) for c in (*x, y)]
    design = np.column_stack([np.ones(len(kept)), *z[:-1]])
    found = np.linalg.lstsq(design, z[-1], rcond=None)[0]
    rest = z[-1] - design @ found
    s2 = rest @ rest / (len(kept) - design.shape[1])
    errors = np.sqrt(s2 * np.diag(np.linalg.inv(design.T @ design)))
    return found, np.sqrt(s2), 1 - rest @ rest / (len(kept) * z[-1].var()), errors


def compare(table, frame, x, y="y"):
    found, sd, r2, errors = plain(frame, x, y)
    assert table["term"].to_list() == ["intercept", *x]
    np.testing.assert_allclose(table["estimate"].to_numpy(), found, atol=2e-4)
    np.testing.assert_allclose(table["std_error"].to_numpy(), errors, rtol=2e-3)
    np.testing.assert_allclose(table["residual_sd"].to_numpy(), sd, rtol=1e-3)
    np.testing.assert_allclose(table["r_squared"].to_numpy(), r2, atol=1e-3)
    assert set(table["note"]) == {""}


@pytest.mark.parametrize("x", [["a"], ["c"], ["late"], ["a", "b"], ["a", "b", "c"], ["b", "late", "a"]])
@pytest.mark.parametrize("library", ["polars", "pandas", "lazy"])
def test_plain_least_squares_at_a_huge_eps(x, library):
    frame = {"polars": FRAME, "pandas": FRAME.to_pandas(), "lazy": FRAME.lazy()}[library]
    table = asked(frame, x)
    assert list(table.columns) == COLUMNS
    assert set(table["n"]) == {N}
    compare(table, FRAME, x)


def test_a_response_of_yes_and_no():
    compare(asked(FRAME, ["a", "c"], y="late"), FRAME, ["a", "c"], y="late")


@pytest.mark.parametrize("kind", ["listed", "found"])
def test_groups_have_their_own_lines(kind):
    if kind == "listed":
        table = asked(FRAME, ["a", "b"], groups=["v", "u", "nobody"])
        keys = ["v", "u", "nobody"]
    else:
        with dp.Session(eps=10**9, delta=0.1):
            table = FRAME.dp.groupby("g").ols("y", ["a", "b"], bounds=within("a", "b"), eps=EPS, delta=1e-6)
        keys = sorted(table["g"].unique())
        assert keys == ["u", "v"]
    assert table.columns == ["g", *COLUMNS]
    assert table.height == 3 * len(keys)
    for key in ("u", "v"):
        compare(table.filter(pl.col("g") == key), FRAME.filter(pl.col("g") == key), ["a", "b"])
    gone = table.filter(pl.col("g") == "nobody")
    assert gone["estimate"].null_count() == gone.height
    assert set(gone["note"]) <= {"too few rows for this noise"}


def within(*x):
    return {c: BOUNDS[c] for c in ("y", *x)}


def test_in_agg_alone_and_with_a_name():
    with dp.Session(eps=10**9):
        table = FRAME.dp.agg(fit=dp.ols("y", ["a"], bounds=within("a")), eps=EPS)
    assert table.columns == ["term", "fit", *COLUMNS[2:]]
    with dp.Session(eps=1) as s, pytest.raises(dp.InputError, match=r"several rows of its own.*Hint"):
        FRAME.dp.agg(fit=dp.ols("y", ["a"], bounds=within("a")), n=dp.count(), eps=1)
    assert s.spent.eps == 0


def test_incomplete_rows_are_left_out_and_infinities_clipped():
    holes = FRAME.with_columns(
        a=pl.when(pl.int_range(pl.len()) % 7 == 0).then(None).otherwise("a"),
        b=pl.when(pl.int_range(pl.len()) % 5 == 0).then(float("nan")).otherwise("b"),
        y=pl.when(pl.int_range(pl.len()) % 11 == 0).then(float("inf")).otherwise("y"),
    )
    for frame in (holes, holes.to_pandas()):
        table = asked(frame, ["a", "b"])
        compare(table, holes, ["a", "b"])
        complete = sum(i % 7 != 0 and i % 5 != 0 for i in range(N))
        assert set(table["n"]) == {complete}


def test_values_are_clipped_before_anything_else():
    tight = {"y": (-2, 6), "a": (2, 8)}
    table = asked(FRAME, ["a"], bounds=tight)
    a, y = np.clip(A, 2, 8), np.clip(Y, -2, 6)
    np.testing.assert_allclose(table["estimate"].to_numpy()[::-1], np.polyfit(a, y, 1), atol=1e-3)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_units_with_several_rows_are_scaled(relation):
    """Units of 2 rows, scaled to 1: every unit counts as the mean of its rows."""
    frame = FRAME.with_columns(u=pl.int_range(pl.len()) // 2)
    session = {"unit": "u", "max_rows": 1, "neighbors": relation}
    table = asked(frame, ["a", "b"], session=session)
    assert set(table["n"]) == {N // 2}
    compare_with = plain(FRAME, ["a", "b"])[0]  # the sums of a unit's rows, halved: the same equations
    np.testing.assert_allclose(table["estimate"].to_numpy(), compare_with, atol=5e-3)


def test_decimals_and_bounds_far_from_zero():
    year = rng.integers(2000, 2020, N)
    frame = pl.DataFrame({"year": year, "y": 5 + 0.3 * (year - 2010)})
    frame = frame.with_columns(y=pl.col("y").cast(pl.Decimal(20, 4)))
    table = asked(frame, ["year"], bounds={"year": (2000, 2020), "y": (Decimal(0), Decimal(10))})
    assert abs(table["estimate"][1] - 0.3) < 1e-3
    assert abs(table["estimate"][0] - (5 - 0.3 * 2010)) < 1


@pytest.mark.parametrize("eps", [0.5, 10, EPS])
def test_columns_that_can_not_be_told_apart_are_named_and_not_guessed(eps):
    """400 groups: noise alone tells them apart in 1 of 200 at most (of 4,000), so in more than 20 by a chance of 1e-14."""
    rows = FRAME.head(400).with_columns(one=pl.lit(1.0), twice=2 * pl.col("a") + 1).drop("g")
    frame = pl.DataFrame({"g": range(400)}).join(rows, how="cross")
    bounds = BOUNDS | {"one": (0, 3), "twice": (0, 21)}
    for x, named in ((["one"], ["one"]), (["a", "one"], ["one"]), (["a", "b", "twice"], ["a", "twice"])):
        table = asked(frame, x, eps=eps, bounds={c: bounds[c] for c in ("y", *x)}, groups=range(400))
        untold = table.filter(pl.col("estimate").is_null())
        assert untold["g"].n_unique() >= 380
        for column in ("estimate", "std_error", "low", "high", "residual_sd", "r_squared"):
            assert untold[column].null_count() == untold.height, (column, table)
        notes = untold["note"].unique().to_list()
        assert all("hardly varies" in note or "too few rows" in note for note in notes), notes
        right = sum((untold["note"] == n).sum() for n in notes if any(f"'{c}' hardly" in n for c in named))
        assert right >= 380 * (len(x) + 1), notes


@pytest.mark.parametrize("rows", [0, 1, 2, 3])
def test_too_few_rows_are_said_to_be(rows):
    for eps in (1, EPS):
        table = asked(FRAME.head(rows), ["a", "b"], eps=eps)
        assert set(table["note"]) == {"too few rows for this noise"} or eps == 1
        assert table["estimate"].null_count() == 3


def test_never_a_wild_number_at_a_small_eps():
    """2,000 groups of 40 rows at eps .1: noise alone. What is told at all is within a few spans of the bounds."""
    groups = pl.DataFrame({"g": range(2_000)})
    frame = groups.join(FRAME.head(40).drop("g"), how="cross")
    for x in (["a"], ["a", "b", "c"]):
        table = asked(frame, x, eps=0.1, groups=range(2_000))
        told = table.filter(pl.col("note") == "")
        assert told.height <= 0.02 * table.height
        assert table.filter(pl.col("estimate").is_null())["high"].null_count() >= 0.9 * table.height


def test_a_perfect_fit_under_noise_tells_slopes_and_no_spread():
    """The sum of squares of residuals is noise alone, and in half of the groups below 0."""
    groups = pl.DataFrame({"g": range(200)})
    line = pl.DataFrame({"a": np.linspace(0, 10, 500), "y": np.linspace(0, 10, 500)})
    table = asked(groups.join(line, how="cross"), ["a"], eps=5, groups=range(200))
    below = table.filter(pl.col("residual_sd").is_null())
    assert (
        20 < below.height < 380
    )  # 200 +- 10 with 2 lines a group, at even chances: beyond 18 standard deviations
    assert set(below["note"]) == {"the residuals are not told apart from the noise"}
    assert below["r_squared"].null_count() == below.height
    assert table["estimate"].null_count() == 0
    slopes = table.filter(pl.col("term") == "a")["estimate"]
    assert abs(float(slopes.mean()) - 1) < 0.05


def test_ci_sets_the_level_of_low_and_high():
    with dp.Session(eps=100) as s:
        table = FRAME.dp.ols("y", ["a"], bounds=within("a"), eps=2, ci=0.5)
        again = s.last.interval(0.5)
        wide = s.last.interval(0.95)
    assert table.columns == COLUMNS
    np.testing.assert_allclose(table["low"].to_numpy(), again["estimate_low"].to_numpy())
    np.testing.assert_allclose(table["high"].to_numpy(), again["estimate_high"].to_numpy())
    ratio = (wide["estimate_high"] - wide["estimate_low"]) / (table["high"] - table["low"])
    np.testing.assert_allclose(ratio.to_numpy(), 1.96 / 0.6745, rtol=5e-3)


def test_round_is_for_the_whole_table():
    table = asked(FRAME, ["a"], round=1)
    for column in ("estimate", "std_error", "low", "high", "residual_sd", "r_squared"):
        assert table[column].to_list() == [round(v, 1) for v in table[column].to_list()]


def test_told_before_and_after(tmp_path):
    with dp.Session(eps=10) as s:
        plan = FRAME.dp.plan.ols("y", ["a", "b"], bounds=within("a", "b"), eps=1)
        text = str(plan.explain(rows=4_000))
        assert "no limit at worst; of slopes of independent columns" in text
        assert "rows that lack y, a or b are left out" in text
        assert "complete_cases" not in text
        table = plan.release().value
        release = s.last
    assert float(release.cost.eps) == 1
    facts = json.loads(json.dumps(release.facts))
    assert facts["outputs"]["estimate"]["margin_95"] is None
    assert facts["outputs"]["estimate"]["margin_of"].startswith("the coefficient in the population")
    assert pickle.loads(pickle.dumps(release)).value.equals(table)
    release.write(tmp_path / "fit.parquet")
    assert pl.read_parquet(tmp_path / "fit.parquet").equals(table)
    side = json.loads((tmp_path / "fit.parquet.json").read_text())
    np.testing.assert_allclose(side["margins_95"]["estimate"], (table["high"] - table["low"]).to_numpy() / 2)
    assert "estimate" in release._repr_html_()


def test_what_is_not_told_is_missing_in_files_too(tmp_path):
    with dp.Session(eps=10) as s:
        FRAME.head(2).dp.ols("y", ["a"], bounds=within("a"), eps=1)
        s.last.write(tmp_path / "fit.csv")
    side = json.loads((tmp_path / "fit.csv.json").read_text(), parse_constant=pytest.fail)
    assert side["margins_95"]["estimate"] == [None, None]


def test_partitions_and_plans_ask_it_too():
    with dp.Session(eps=10**7):
        parts = FRAME.dp.partition_by("g", keys=["u", "v"], eps=EPS)
        tables = {k: part.dp.ols("y", ["a"], bounds=within("a"), eps=EPS) for k, part in parts.items()}
    for key, table in tables.items():
        compare(table, FRAME.filter(pl.col("g") == key), ["a"])


def test_a_key_that_is_called_like_a_column_of_the_table():
    for name in ("term", "estimate", "n", "note"):
        frame = FRAME.rename({"g": name})
        with (
            dp.Session(eps=1) as s,
            pytest.raises(dp.InputError, match=rf"'{name}' has the name of a grouping column"),
        ):
            frame.dp.groupby(name, keys=["u"]).ols("y", ["a"], bounds=within("a"), eps=1)
        assert s.spent.eps == 0


WRONG = [
    (lambda d: d.ols("y", [], bounds=(0, 1), eps=1), r"at least one regressor.*Hint"),
    (lambda d: d.ols("y", ["y"], bounds=(0, 1), eps=1), r"the response and a regressor.*Hint"),
    (lambda d: d.ols("y", ["a", "a"], bounds=(0, 1), eps=1), r"lists a column twice.*Hint"),
    (lambda d: d.ols("y", "a", bounds=(0, 1), eps=1), r"takes a list of columns.*Hint"),
    (lambda d: d.ols(["y"], ["a"], bounds=(0, 1), eps=1), r"takes one column, not a list"),
    (lambda d: d.ols("y", ["a"], eps=1), r"needs bounds.*Hint.*ols\('y', \['a'\]"),
    (lambda d: d.ols("y", ["a"], bounds={"a": (0, 1)}, eps=1), r"\['y', 'a'\]\) needs bounds"),
    (lambda d: d.ols("y", ["a"], bounds={"q": (0, 1)}, eps=1), r"names 'q'"),
    (lambda d: d.ols("y", ["a"], bounds=[(0, 1)], eps=1), r"1 pairs for 2 columns"),
    (lambda d: d.ols("y", ["g"], bounds=(0, 1), eps=1), r"not numbers"),
    (lambda d: d.ols("y", ["z"], bounds=(0, 1), eps=1), r"no column 'z'"),
    (lambda d: d.ols("y", [f"x{i}" for i in range(21)], bounds=(0, 1), eps=1), r"at most 20 regressors"),
    (lambda d: d.ols("y", ["intercept"], bounds=(0, 1), eps=1), r"always there.*Hint"),
    (lambda d: d.ols("y", ["a"], bounds=(0, 1), eps=1, nonnegative=True), r"nonnegative=True.*Hint"),
    (lambda d: d.ols("y", ["a"], bounds=(0, 1), eps=1, weights="b"), r"weights"),
    (lambda d: d.ols("y", ["a"], bounds=(0, 1), error=0.1, rows=1_000), r"can't be met.*Hint"),
    (lambda d: d.linregress("y", ["a"]), r"df.dp.ols"),
]


@pytest.mark.parametrize(("call", "said"), WRONG)
@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_wrong_calls_are_refused_before_the_charge(call, said, library):
    frame = FRAME.rename({"c": "intercept"})
    frame = frame.to_pandas() if library == "pandas" else frame
    with dp.Session(eps=5) as s, pytest.raises((dp.InputError, TypeError, AttributeError), match=said):
        call(frame.dp)
    assert s.spent.eps == 0


def test_columns_with_names_that_are_no_text():
    frame = pd.DataFrame({0: A, 1: Y, 2: C > 3})
    with dp.Session(eps=10**7):
        table = frame.dp.ols(1, [0, 2], bounds={1: (-20, 20), 0: (0, 10)}, eps=EPS)
    assert table["term"].tolist() == ["intercept", "0", "2"]
