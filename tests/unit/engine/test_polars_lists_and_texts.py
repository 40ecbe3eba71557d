"""Strict sessions: steps that fail for the lengths of lists, or for texts that are no numbers or patterns."""

from __future__ import annotations

import polars as pl
import pytest

import dpframe as dp

c = pl.col
FRAME = pl.DataFrame(
    pl.DataFrame({"l": [[1, 2], [3, 4]], "s": ["1", "2"], "i": [2, 1], "a": [[1, 2], [3, 4]]}, schema_overrides={"a": pl.Array(pl.Int64, 2)}).to_arrow()
)  # fmt: skip
FAIL = {
    **{
        f"lists {name}": e
        for name, e in {
            "+": c("l") + c("l"), "-": c("l") - c("l"), "*": c("l") * c("l"), "/": c("l") / [1, 2], "//": c("l") // [1, 2], "%": c("l") % [1, 2],
        }.items()
    },
    "arrays +": c("a") + c("a"),
    "head": c("s").str.head(c("s")),
    "tail": c("s").str.tail(c("s")),
    "slice": c("s").str.slice(c("s"), c("s")),
    "json_path_match": c("s").str.json_path_match(c("s")),
}  # fmt: skip
PASS = {
    "head": c("s").str.head(2),
    "tail of a column": c("s").str.tail(c("i")),
    "slice": c("s").str.slice(1),
    "slice of columns": c("s").str.slice(c("i"), c("i")),
    "json_path_match": c("s").str.json_path_match("$.a"),
    "lists ==": c("l") == c("l"),
    "+": c("i") + c("i"),
}


@pytest.mark.parametrize("step", FAIL)
def test_what_fails_on_some_lists_or_texts_is_refused(step):
    """A list of another length, or a text that is no number, makes Polars' call fail for everybody."""
    with dp.Session(eps=10, strict=True) as s:
        with pytest.raises(dp.InputError, match="fails on some cells"):
            FRAME.lazy().with_columns(y=FAIL[step]).dp.count("y", eps=1)
        assert s.spent == 0


def test_and_does_fail():
    other = pl.DataFrame({"l": [[1, 2], [1]], "s": ["1", "q"], "i": [1, 2]})
    for step in ("lists /", "head", "slice"):
        with pytest.raises(pl.exceptions.PolarsError):
            other.select(FAIL[step])


@pytest.mark.parametrize("step", PASS)
def test_their_forms_that_never_fail_pass(step, quiet):
    with dp.Session(eps=10**9, strict=True):
        assert FRAME.lazy().with_columns(y=PASS[step]).dp.count(eps=10**6) == 2
