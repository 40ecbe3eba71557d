"""Strict sessions take a scan of a file only if no row decides a type, and no cell makes it fail; in every session, what
is typed into a plan and can't be used is refused before the charge."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest

import dpframe as dp
from dpframe.engine.polars_plan import foreign_step

c = pl.col
TYPES = {"a": pl.Int64, "b": pl.String}
TEXTS = {"a": pl.String, "b": pl.String}
GUESSED, FAILS = "guesses types", "fails on cells"
CSV = {
    "nothing said": ({}, GUESSED),
    "of all rows": ({"infer_schema_length": None}, GUESSED),
    "one type said": ({"schema_overrides": {"a": pl.String}}, GUESSED),
    "types by place": ({"schema_overrides": [pl.Int64, pl.String]}, GUESSED),
    "no names, no types": ({"infer_schema": False, "has_header": False}, GUESSED),
    "types": ({"schema": TYPES}, FAILS),
    "types over guesses": ({"schema_overrides": TYPES}, FAILS),
    "types, null otherwise": ({"schema": TYPES, "ignore_errors": True}, None),
    "types over guesses, null otherwise": ({"schema_overrides": TYPES, "ignore_errors": True}, None),
    "texts": ({"schema": TEXTS}, None),
    "texts without names": ({"schema": TEXTS, "has_header": False}, None),
    "all texts": ({"infer_schema": False}, None),
}


@pytest.mark.parametrize(("options", "wanted"), CSV.values(), ids=CSV)
def test_a_csv_says_its_types_or_is_refused(tmp_path, options, wanted):
    place = tmp_path / "t.csv"
    place.write_text("a,b\n1,2\n3,4\n")
    scan = pl.scan_csv(place, **options)
    step = foreign_step(scan, ())
    assert step is None if wanted is None else wanted in step
    with dp.Session(eps=2e9, strict=True) as s:
        if wanted is not None:
            with pytest.raises(dp.InputError, match=wanted):
                scan.dp.count(eps=1e6)
            assert s.spent == 0
            return
        before = scan.dp.count(eps=1e6)
        place.write_text("a,b\n1,2\n3,4\nx,y\n")  # a row that no type of the others holds
        assert pl.scan_csv(place, **options).dp.count(eps=1e6) == before + 1


@pytest.mark.parametrize(
    ("options", "wanted"),
    [({}, GUESSED), ({"schema": TYPES}, FAILS), ({"schema": TYPES, "ignore_errors": True}, None)],
)
def test_so_does_ndjson(tmp_path, options, wanted):
    place = tmp_path / "t.ndjson"
    place.write_text('{"a":1,"b":"x"}\n{"a":2,"b":"y"}\n')
    step = foreign_step(pl.scan_ndjson(place, **options), ())
    assert step is None if wanted is None else wanted in step
    if wanted is None:
        place.write_text('{"a":1,"b":"x"}\n{"a":"q","b":"y"}\n')
        with dp.Session(eps=1e6, strict=True):
            assert pl.scan_ndjson(place, **options).dp.count(eps=1e6) == 2


def test_types_of_folders_are_said_too(tmp_path):
    """A folder is named by the value of its rows: y=2020 and y=2021 are whole numbers until somebody's is y=x."""
    for y in ("2020", "2021"):
        (tmp_path / f"y={y}").mkdir()
        pl.DataFrame({"a": [1]}).write_parquet(tmp_path / f"y={y}" / "0.parquet")
    assert "names of folders" in foreign_step(pl.scan_parquet(tmp_path), ())
    assert foreign_step(pl.scan_parquet(tmp_path, hive_schema={"y": pl.Int64}), ()) is None
    assert foreign_step(pl.scan_parquet(tmp_path, hive_partitioning=False), ()) is None


FRAME = pl.DataFrame(
    {
        "s": ["a", None],
        "x": [1.0, 2.0],
        "i": [1, 2],
        "d": [dt.date(2020, 1, 1), None],
        "m": [dt.time(1), None],
    }
)
CANT = {
    "contains": c("s").str.contains("("),
    "count_matches": c("s").str.count_matches("["),
    "find": c("s").str.find("("),
    "replace": c("s").str.replace("(", "x"),
    "replace_all": c("s").str.replace_all("(", "x"),
    "extract": c("s").str.extract("("),
    "extract_all": c("s").str.extract_all("("),
    "json_path_match": c("s").str.json_path_match("$[["),
    "to_integer": c("s").str.to_integer(base=99, strict=False),
    "strftime": c("d").dt.strftime("%Q"),
    "to_string": c("d").dt.to_string("%"),
    "to_string of times": c("m").dt.to_string("%Y"),
    "truncate": c("d").dt.truncate("1x"),
    "round": c("d").dt.round("x"),
    "offset_by": c("d").dt.offset_by("1q1"),
    "pow": c("i").pow(-1),
    "cut": c("x").cut([1, 1]),
}
CAN = {
    "contains": c("s").str.contains("a"),
    "contains the text": c("s").str.contains("(", literal=True),
    "contains or null": c("s").str.contains("(", strict=False),
    "find the text": c("s").str.find("(", literal=True),
    "replace the text": c("s").str.replace("(", "x", literal=True),
    "count the text": c("s").str.count_matches("(", literal=True),
    "split": c("s").str.split("("),
    "strftime": c("d").dt.strftime("%Y-%m"),
    "truncate": c("d").dt.truncate("1mo"),
    "pow": c("i").pow(2),
    "cut": c("x").cut([2, 1]),
}
PLACES = {
    "a column": lambda f, e: f.with_columns(z=e),
    "a filter": lambda f, e: f.filter(e.is_not_null()),
    "in a condition": lambda f, e: f.with_columns(z=pl.when(c("x") > 0).then(e.is_null()).otherwise(None)),
    "above a step": lambda f, e: f.with_columns(z=e).filter(c("x") > 0).select("x", "z"),
    "in groups": lambda f, e: f.group_by(e.alias("z")).agg(c("x").sum()),
    "below a sort": lambda f, e: f.with_columns(z=e).sort("x"),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("strict", [False, True])
def test_what_can_t_be_used_is_refused_before_the_charge(place, strict):
    with dp.Session(eps=10, strict=strict) as s:
        for step in CANT.values():
            with pytest.raises(dp.InputError, match=r"can't be done|not known to be row by row"):
                place(FRAME.lazy(), step).dp.count(eps=1)
        assert s.spent == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_what_can_is_answered(place, quiet):
    with dp.Session(eps=1e9):
        for step in CAN.values():
            lazy = place(FRAME.lazy(), step)
            assert lazy.dp.count(eps=1e6) == lazy.collect().height
