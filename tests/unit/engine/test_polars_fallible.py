"""Strict sessions refuse what raises on some cells, and what leaves out rows by their place.

A failure is told without noise: that there is such a cell, or that there is a row at all. A step that passes is run on
hostile cells of every type and answers.
"""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest

import dpframe as dp
from dpframe.engine.polars_plan import foreign_step

c = pl.col
FRAME = pl.DataFrame(
    {
        "i8": pl.Series([-128, 127, 0], dtype=pl.Int8),
        "i": [2**63 - 1, -(2**63), 0],
        "w": pl.Series([2**64 - 1, 0, 1], dtype=pl.UInt64),
        "f": [float("nan"), float("inf"), -1e300],
        "b": [True, False, None],
        "s": ["1", "[", "x"],
        "d": pl.Series([dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
        "t": pl.Series([dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31), dt.datetime(2020, 3, 29, 2, 30)]),
        "l": [[1], [], None],
        "bin": [b"\xff", b"", None],
    }
).with_columns(
    cat=c("s").cast(pl.Categorical), en=c("s").cast(pl.Enum(["1", "[", "x"])), st=pl.struct("i", "s")
)
INTO = [
    pl.Int8,
    pl.Int32,
    pl.Int64,
    pl.UInt64,
    pl.Int128,
    pl.Float32,
    pl.Float64,
    pl.Boolean,
    pl.String,
    pl.Date,
]
INTO += [pl.Datetime("us"), pl.Datetime("ns"), pl.Duration("us"), pl.Time, pl.Decimal(38, 2), pl.Categorical]
INTO += [pl.Enum(["1"]), pl.List(pl.Int64), pl.List(pl.Int8), pl.List(pl.String), pl.Binary]
INTO += [pl.Struct({"i": pl.Float64, "s": pl.String}), pl.Struct({"i": pl.Int8, "s": pl.String})]
FAILS = {
    "text to integers": c("s").str.to_integer(),
    "text to days": c("s").str.to_date("%Y"),
    "hexadecimal": c("s").str.decode("hex"),
    "base64": c("s").str.decode("base64"),
    "a place in a list": c("l").list.get(0),
    "places in a list": c("l").list.gather([0]),
    "a list of a size": c("l").list.to_array(1),
    "a mapping": c("s").replace_strict({"1": 1}),
    "a power": c("i").pow(c("i")),
    "patterns": c("s").str.contains(c("s")),
    "patterns that are cut out": c("s").str.extract(c("s"), 0),
    "patterns that are replaced": c("s").str.replace_all(c("s"), ""),
    "offsets": c("d").dt.offset_by(c("s")),
    "periods": c("t").dt.truncate(c("s")),
    "times of a zone": c("t").dt.replace_time_zone("Europe/Brussels"),
    "a day 31": pl.datetime(2020, 2, c("i8").abs()),
    "quotients of decimals": c("i8").cast(pl.Decimal(10, 2), strict=False)
    / c("i8").cast(pl.Decimal(10, 2), strict=False),
}
ANSWERS = {
    "text to integers": c("s").str.to_integer(strict=False),
    "text to days": c("s").str.to_date("%Y", strict=False),
    "hexadecimal": c("s").str.decode("hex", strict=False),
    "a place in a list": c("l").list.get(0, null_on_oob=True),
    "places in a list": c("l").list.gather([0], null_on_oob=True),
    "a mapping": c("s").replace_strict({"1": 1}, default=None),
    "a power": c("f").pow(c("f")),
    "a pattern": c("s").str.contains("x"),
    "texts": c("s").str.contains(c("s"), literal=True),
    "an offset": c("d").dt.offset_by("1d"),
    "months": c("t").cast(pl.Datetime("ns"), strict=False).dt.truncate("1mo"),
    "times of a zone": c("t")
    .cast(pl.Datetime("ns"), strict=False)
    .dt.replace_time_zone("Europe/Brussels", non_existent="null", ambiguous="null"),
    "sums of decimals": c("i8").cast(pl.Decimal(10, 2), strict=False)
    + c("i8").cast(pl.Decimal(30, 0), strict=False),
    "days of a number": pl.from_epoch(c("i8").cast(pl.Int64)),
}


@pytest.mark.parametrize("strict", [True, False])
def test_a_cast_that_passes_never_raises(strict):
    """Types × types; and the casts that people need most do pass."""
    passed = set()
    for name in FRAME.columns:
        for new in INTO:
            lazy = FRAME.lazy().select(z=c(name).cast(new, strict=strict))
            if foreign_step(lazy, ()) is None:
                lazy.collect()
                passed.add((name, str(new)))
    wanted = {
        ("i8", "Int64"),
        ("i", "Float64"),
        ("b", "Int8"),
        ("s", "Categorical"),
        ("cat", "String"),
        ("f", "Float32"),
    }
    assert wanted <= passed
    assert (("s", "Int64") in passed) is not strict
    assert not passed & {
        ("en", "Int64"),
        ("cat", "Int64"),
        ("i", "Categorical"),
        ("i8", "Enum(categories=['1'])"),
    }


@pytest.mark.parametrize("step", FAILS.values(), ids=FAILS)
def test_a_step_that_raises_on_a_cell_is_refused_before_the_charge(step):
    lazy = FRAME.lazy().with_columns(z=step)
    with pytest.raises(pl.exceptions.PolarsError):
        lazy.collect()
    with dp.Session(eps=1, strict=True) as s, pytest.raises(dp.InputError, match="fails on some cells"):
        lazy.dp.count(eps=1)
    assert s.spent == 0


@pytest.mark.parametrize("step", ANSWERS.values(), ids=ANSWERS)
def test_its_form_that_gives_null_answers(step):
    lazy = FRAME.lazy().with_columns(z=step)
    with dp.Session(eps=1e6, strict=True):
        assert lazy.dp.count(eps=1e6) == 3
    lazy.collect()


@pytest.mark.parametrize("option", ["skip_rows", "skip_lines", "skip_rows_after_header"])
def test_a_csv_without_its_first_rows_is_a_slice(tmp_path, option):
    (tmp_path / "a.csv").write_text("x\n1\n2\n3\n")
    assert foreign_step(pl.scan_csv(tmp_path / "a.csv", infer_schema=False), ()) is None
    with dp.Session(eps=1, strict=True) as s, pytest.raises(dp.InputError, match="SLICE"):
        pl.scan_csv(tmp_path / "a.csv", **{option: 1}).dp.count(eps=1)
    assert s.spent == 0
