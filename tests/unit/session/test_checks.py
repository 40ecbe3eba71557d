"""Strict sessions let row-by-row plans pass and nothing else."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import polars as pl
import pytest

import dpframe as dp

c = pl.col
FRAME = pl.DataFrame(
    {
        "a": [1, 2, 3],
        "x": [0.5, None, 2.0],
        "b": ["x", "y", "over("],
        "u": [1, 1, 2],
        "d": [dt.date(2020, 1, day) for day in (1, 2, 3)],
        "l": [[1, 2], [3], []],
    }
)

ROW_BY_ROW = {
    "nothing": lambda f: f,
    "filter": lambda f: f.filter(c("a") > 1, c("b").is_in(["x", "q (z) over("]), c("a").is_between(0, 9)),
    "select": lambda f: f.select("a", "x", (c("a") * 2 + c("x") / 3 - 1).alias("z over(")),
    "when": lambda f: f.with_columns(w=pl.when(c("a") > 1).then(c("x")).otherwise(None)),
    "text": lambda f: f.with_columns(c("b").str.to_uppercase(), k=c("b").str.contains("a|b").not_()),
    "dates": lambda f: f.with_columns(
        c("d").cast(pl.Datetime("ns"), strict=False).dt.truncate("1mo"), w=c("d").dt.weekday() + 1
    ),
    "missing": lambda f: f.drop_nulls("x").with_columns(c("x").fill_null(0).fill_nan(1.5)),
    "arithmetic": lambda f: f.with_columns(
        (c("x").abs().sqrt() + 1).log().floor().clip(0, 5).alias("y"),
        -c("a"),
        (c("a") ** 2 // 3 % 2).alias("m"),
    ),
    "across": lambda f: f.with_columns(
        m=pl.max_horizontal("a", "x"),
        n=pl.sum_horizontal("a", "x"),
        s=pl.struct("a", "b"),
        t=pl.concat_str("b", "b", separator="-"),
        z=pl.coalesce("x", "a"),
    ),
    "casts": lambda f: f.with_columns(c("a").cast(pl.Float64), c("d").cast(pl.Datetime("us"), strict=False)),
    "literals": lambda f: f.with_columns(
        q=pl.lit("group_by("), r=pl.lit(1.5), s=pl.lit(dt.date(2020, 1, 1)), t=pl.lit(True)
    ),
    "replace": lambda f: f.with_columns(c("b").replace({"x": "z"})),
    "rename and drop": lambda f: f.rename({"b": "over"}).drop("d"),
    "lists": lambda f: f.with_columns(c("l").list.sum(), n=c("l").list.len()),
    "cache": lambda f: f.cache().filter(c("a") > 0),
}

ACROSS_ROWS = {
    "window": (lambda f: f.with_columns(m=c("a").mean().over("u")), "mean"),
    "filter by a mean": (lambda f: f.filter(c("x") > c("x").mean()), "mean"),
    "group_by": (lambda f: f.group_by("b").agg(c("a").first(), c("u").first()), "AGGREGATE"),
    "join": (lambda f: f.join(f.select("a", k=c("a") + 1), on="a"), "INNER"),
    "concat": (lambda f: pl.concat([f, f]), "UNION"),
    "sort and head": (lambda f: f.sort("a").head(2), "SLICE"),
    "sort": (lambda f: f.sort("a"), "SORT"),
    "head": (lambda f: f.head(1), "SLICE"),
    "unique": (lambda f: f.unique("b"), "UNIQUE"),
    "explode": (lambda f: f.explode("l"), "EXPLODE"),
    "row numbers": (lambda f: f.with_row_index(), "ROW"),
    "rank": (lambda f: f.with_columns(r=c("a").rank()), "rank"),
    "cumulative": (lambda f: f.with_columns(r=c("a").cum_sum()), "cum_sum"),
    "shift": (lambda f: f.with_columns(r=c("a").shift(1)), "shift"),
    "rolling": (lambda f: f.with_columns(r=c("a").rolling_mean(2)), "rolling_mean"),
    "python on a column": (
        lambda f: f.with_columns(r=c("a").map_elements(lambda v: v, return_dtype=pl.Int64)),
        "python",
    ),
    "python on the frame": (lambda f: f.map_batches(lambda d: d), "PYTHON"),
    "a column of another frame": (lambda f: f.with_columns(r=pl.lit(pl.Series([1, 2, 3]))), "Series"),
    "membership in a column": (lambda f: f.with_columns(r=c("a").is_in(c("u").implode())), "i"),
    "lists evaluated": (lambda f: f.with_columns(r=c("l").list.eval(pl.element() + 1)), "list.eval"),
    "a guessed format": (lambda f: f.with_columns(r=c("d").cast(pl.String).str.to_date()), "str.strptime"),
    "unpivot": (lambda f: f.select("a", "u").unpivot(), "UNPIVOT"),
    "reverse": (lambda f: f.reverse(), "reverse"),
    "sampling": (lambda f: f.select(pl.all().sample(1)), "sample"),
    "median": (lambda f: f.with_columns(r=c("a") - c("a").median()), "median"),
}


@pytest.mark.parametrize("change", ROW_BY_ROW.values(), ids=ROW_BY_ROW)
def test_row_by_row_plans_pass(change, quiet):
    with dp.Session(eps=10**7, strict=True) as s:
        frame = change(FRAME.lazy())
        assert frame.dp.count(eps=10**6) == frame.collect().height
        assert s.strict


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("change", "word"), ACROSS_ROWS.values(), ids=ACROSS_ROWS)
def test_plans_in_which_rows_meet_are_refused_before_they_cost_anything(change, word, quiet):
    with dp.Session(eps=1, strict=True) as s:
        with pytest.raises(dp.InputError, match=rf"not known to be row by row: .*{word}.*Hint") as e:
            change(FRAME.lazy()).dp.count(eps=0.5)
        assert s.spent == 0
        assert "over(" not in str(e.value), "no cell is quoted"
        with pytest.raises(dp.InputError, match="row by row"):
            change(FRAME.lazy().filter(c("a") > 0)).select(pl.all()).dp.count(eps=0.5)
    with dp.Session(eps=10):
        change(FRAME.lazy()).dp.count(eps=0.5)  # other sessions don't look


def test_a_group_by_within_units_passes(quiet):
    def daily(f):
        return f.group_by("u", "d").agg(c("a").sum(), c("x").mean().alias("m"))

    lazy = daily(FRAME.lazy().filter(c("a") > 0)).filter(c("a") > 0)
    with dp.Session(eps=10**7, unit="u", strict=True) as s:
        assert lazy.dp.count(eps=10**6, max_rows=5) == 3
        spent = s.spent
        for other in (
            FRAME.lazy().group_by("d").agg(c("a").sum(), c("u").first()),
            daily(FRAME.lazy()).with_columns(c("a").cum_sum()),
            FRAME.lazy().with_columns(c("a").mean()).group_by("u").agg(c("a").sum()),
            FRAME.lazy().group_by("u").agg(c("a").map_elements(lambda v: v, return_dtype=pl.Int64).first()),
            FRAME.lazy().group_by((c("u") * 0).alias("u")).agg(c("a").sum()),
        ):
            with pytest.raises(dp.InputError, match="row by row"):
                other.dp.count(eps=1, max_rows=5)
        assert s.spent == spent
    with dp.Session(eps=1, unit=["u", "d"], strict=True):
        daily(FRAME.lazy()).dp.count(eps=0.1, max_rows=5)
        with pytest.raises(dp.InputError, match="row by row"):
            FRAME.lazy().group_by("u").agg(c("d").first()).dp.count(eps=0.1, max_rows=5)


def test_files_are_scanned_row_by_row(tmp_path, quiet):
    flat = FRAME.drop("l")
    flat.write_parquet(tmp_path / "a b (over).parquet")
    flat.write_csv(tmp_path / "t.csv")
    with dp.Session(eps=10**8, strict=True):
        assert pl.scan_parquet(tmp_path / "a b (over).parquet").filter(c("a") > 1).dp.count(eps=10**6) == 2
        said = {"schema": flat.schema, "ignore_errors": True}
        assert pl.scan_csv(tmp_path / "t.csv", **said).dp.count(eps=10**6) == 3
        with pytest.raises(dp.InputError, match="SLICE"):
            pl.scan_csv(tmp_path / "t.csv", n_rows=1, **said).dp.count(eps=1)


def test_eager_frames_pass_because_their_past_can_t_be_seen(quiet):
    with dp.Session(eps=10**8, strict=True):
        assert FRAME.sort("a").head(2).dp.count(eps=10**6) == 2
        assert pd.DataFrame({"a": [1]}).dp.count(eps=10**6) == 1


def test_strictness_reaches_inner_sessions_shares_and_partitions(quiet):
    bad = FRAME.lazy().sort("a")
    with dp.Session(eps=1, strict=True), dp.Session(eps=1), pytest.raises(dp.InputError, match="strict"):
        bad.dp.count(eps=0.1)
    first, _ = dp.Session(eps=1, strict=True).split(2)
    with first, pytest.raises(dp.InputError, match="strict"):
        bad.dp.count(eps=0.1)
    with dp.Session(eps=1, strict=True) as s:
        with pytest.raises(dp.InputError, match="strict"):
            bad.dp.partition_by("u", keys=[1, 2], eps=0.1)
        assert s.spent == 0
        parts = FRAME.lazy().dp.partition_by("u", keys=[1, 2], eps=0.5)
        parts[1].dp.count(eps=0.5)
    with pytest.raises(dp.InputError, match="strict=1"):
        dp.Session(eps=1, strict=1)


@pytest.mark.parametrize("name", ['a"', "mean", 'x").over("u', "[over(", ""])
def test_odd_names_of_columns_are_names(name, quiet):
    lazy = FRAME.lazy().rename({"a": name})
    with dp.Session(eps=10**7, strict=True):
        assert lazy.filter(c(name) > 1).dp.count(eps=10**6) == 2
        with pytest.raises(dp.InputError, match="row by row: mean"):
            lazy.filter(c(name) > c(name).mean()).dp.count(eps=0.1)
