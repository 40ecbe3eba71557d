"""A function of times passes in a strict session only if it answers on every cell of its type.

Cells beyond the years of a calendar, and hours that a zone has twice or not at all, make some of Polars' functions fail;
what passes is run on them.
"""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest

from dpframe.engine.polars_plan import foreign_step

EDGES = [0, 1, -1, 2**63 - 1, -(2**63), None]
HOURS = [dt.datetime(2021, m, d, 2, 30) for m, d in ((3, 27), (10, 31), (3, 28), (10, 30))]
COLUMNS = {
    "days": pl.Series([0, 1, -1, 2**31 - 1, -(2**31), None], dtype=pl.Int32).cast(pl.Date),
    "times": pl.Series([0, 86_399_999_999_999, None]).cast(pl.Time),
    "hours": pl.Series(HOURS),
    "hours in ns": pl.Series(HOURS).cast(pl.Datetime("ns")),
    "hours of a zone": pl.Series(HOURS).dt.replace_time_zone(
        "Europe/Paris", ambiguous="earliest", non_existent="null"
    ),
}
for unit in ("ms", "us", "ns"):
    COLUMNS[unit] = pl.Series(EDGES, dtype=pl.Int64).cast(pl.Datetime(unit))
    COLUMNS[f"{unit} in a zone"] = pl.Series(EDGES, dtype=pl.Int64).cast(pl.Datetime(unit, "Europe/Paris"))
    COLUMNS[f"{unit} in UTC"] = pl.Series(EDGES, dtype=pl.Int64).cast(pl.Datetime(unit, "UTC"))
    COLUMNS[f"spans in {unit}"] = pl.Series(EDGES, dtype=pl.Int64).cast(pl.Duration(unit))
ARGUMENTS = [
    (),
    ("1d",),
    ("1h",),
    ("1mo",),
    ("Europe/Paris",),
    ("UTC",),
    ("%Y-%m",),
    ("us",),
    ("ns",),
    (dt.time(2, 30),),
]
OPTIONS = [{}, {"non_existent": "null"}, {"non_existent": "null", "ambiguous": "null"}]
NAMES = [n for n in dir(pl.Expr.dt.__get__(pl.col("x"))) if not n.startswith("_")]
NEEDED = {  # at least these pass, in some form that people can write
    "year",
    "month",
    "day",
    "hour",
    "weekday",
    "date",
    "truncate",
    "round",
    "offset_by",
    "month_start",
    "month_end",
    "to_string",
    "replace_time_zone",
    "convert_time_zone",
    "total_seconds",
    "combine",
}


def steps(name):
    for arguments in ARGUMENTS:
        for options in OPTIONS:
            try:
                step = getattr(pl.col("x").dt, name)(*arguments, **options)
            except (TypeError, ValueError, pl.exceptions.PolarsError):
                continue
            yield step


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_passes_answers_on_every_cell():
    passed, raised = set(), set()
    for name in NAMES:
        for column, cells in COLUMNS.items():
            for step in steps(name):
                lazy = pl.DataFrame({"x": cells}).lazy().select(z=step)
                try:
                    if foreign_step(lazy, ()) is not None:
                        continue
                    pl.DataFrame({"x": cells[:1]}).lazy().select(z=step).collect()
                except pl.exceptions.PolarsError:
                    continue  # nothing that is done to any cell of this type
                try:
                    lazy.collect()
                except BaseException as e:  # a panic is no Exception
                    raised.add((name, column, type(e).__name__))
                passed.add(name)
    assert not raised
    assert passed >= NEEDED
