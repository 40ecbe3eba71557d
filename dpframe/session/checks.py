"""Strict sessions: lazy frames whose plan does anything but handle every row by itself are refused.

Privacy: the guarantee is about the rows that reach ``.dp``. If a step before it lets one row change others (a
mean over a window, a join that repeats rows, a rank), one person's data may move more than the one row that is
counted. What is not known to be row by row is refused: the list below says what passes.
"""

from __future__ import annotations

import re

from dpframe.errors import InputError
from dpframe.frames.contract import Source
from dpframe.session.session import Session

_NODES = "WITH_COLUMNS SELECT FILTER FROM DF PROJECT COLUMNS ESTIMATED ROWS SIMPLE SELECTION None"
_VALUES = "dyn int float str true false null lit col scalar inf NaN"
_TYPES = """
    Boolean Int8 Int16 Int32 Int64 Int128 UInt8 UInt16 UInt32 UInt64 UInt128 Float16 Float32 Float64 Decimal String
    Date Datetime Duration Time Enum Null
"""
_STEPS = """
    alias cast strict_cast reinterpret when then otherwise not and or xor is_null is_not_null is_nan is_not_nan
    is_finite is_infinite is_in is_between eq_missing ne_missing fill_null fill_nan coalesce replace replace_strict
    negate abs sign pow sqrt cbrt exp log log1p sin cos tan arcsin arccos arctan sinh cosh tanh floor ceil round
    round_sig_figs clip cut bin_intervals to_physical as_struct
    max_horizontal min_horizontal sum_horizontal mean_horizontal all_horizontal any_horizontal
"""
_SPACES = ("str", "dt", "bin", "list", "arr", "struct")  # functions in these take one row at a time, but for
_NOT_EVEN_THERE = (  # these, which look at other rows, or at the first ones to guess a format
    [
        "eval",
        "agg",
        "explode",
        "to_struct",
        "concat",
        "concat_vertical",
        "join",
        "sample",
        "strptime",
        "to_decimal",
        "json_decode",
    ]
)
_OF_LITERALS = ("is_in", "replace", "replace_strict")  # given a column, they look at all of it
_ALLOWED = frozenset(f"{_NODES} {_VALUES} {_TYPES} {_STEPS}".split())
_HINT = (
    " Hint: leave the step out, or do it row by row; what other rows say must not decide about a row (one group_by"
    " whose keys hold the unit may pass)"
)


def check_strict(session: Session, source: Source) -> None:
    """Refuse a lazy frame for a strict session, or for one inside a strict one, unless its plan is row by row.

    Raises
    ------
    InputError
        Before anything is spent. It names the step, which is the caller's own and no cell.
    """
    if not any(s.strict for s in (session, *session._outer)):
        return
    text = source.plan_text()
    step = None if text is None else foreign_step(text, session._policy.unit or ())
    if step is not None:
        raise InputError(
            f"This session is strict, and the lazy frame has a step that is not known to be row by row: {step}.{_HINT}"
        )


def foreign_step(text: str, unit: tuple[str, ...]) -> str | None:
    """The first word of a lazy plan that is not known to be row by row; None if all are.

    Quoted text (names and literals) and the places that are scanned are left out first; a group_by whose keys
    hold the whole unit makes rows of one unit from rows of that unit only, whatever it adds up.
    """
    text = re.sub(r"^\s*\w+ SCAN \[.*\]$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\s*CACHE\[id: [^\]]*\]$", "", text, flags=re.MULTILINE)
    if unit:
        text = re.sub(
            r"AGGREGATE\[[^\]]*\]\s*\[(?P<made>.*)\] BY \[(?P<keys>.*)\]", lambda m: _of_units(m, unit), text
        )
    if text.count('"') % 2:
        return "a name with a quotation mark"
    text = re.sub(r'"[^"]*"', "", text)
    text = re.sub(r"'[^']*'", "", text)
    for word in _OF_LITERALS:
        if re.search(rf"\b{word}\((?!\[\[)", text):
            return f"{word} of a column"
    for match in re.finditer(r"(?<![\w.])\.?((?:[^\W\d]\w*\.)?[^\W\d]\w*)", text):
        word = match.group(1)
        space, dot, name = word.rpartition(".")
        if space in _SPACES:
            known = name not in _NOT_EVEN_THERE
        else:  # a literal may stand before the dot
            known = name in _ALLOWED and (not dot or space in _ALLOWED)
        if not known:
            return word
    return None


def _of_units(match: re.Match[str], unit: tuple[str, ...]) -> str:
    """Nothing, for a group_by within units; else the text as it was."""
    keys = re.findall(r'(?:^|, )col\("([^"]*)"\)(?=, |$)', match["keys"])
    inside = re.search(r"python_udf|over\(|Series|OPAQUE", match["made"])
    return "" if set(unit) <= set(keys) and not inside else match.group(0)


def check_part(session: Session, source: Source) -> None:
    """Refuse a part's session for any frame but that part, and a part under another session.

    Privacy: a part's cap was paid for its own rows; spent on others it would be a budget nobody charged.
    """
    if (session._part or source.part_of is not None) and source.part_of is not session:
        raise InputError(
            "A part of a partition is asked with its own cap, and the cap is for it alone. Hint: part.dp"
        )


def check_windows(session: Session) -> None:
    """Refuse an answer of a part that would leave in a window that does not hold the partition's charge.

    Privacy: a window's budget is for what is released in it, and a charge that has left it is counted no more.
    """
    for ledger, ticket in session._paid:
        ledger.check_window(ticket)
