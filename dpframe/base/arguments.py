"""Arguments of simple kinds, checked: of one type, True or False, one of a few words, a whole number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpframe.errors import Arg, Hint, InputError, wrong_type


def check_type(name: str, value: Any, kind: type, takes: str, hint: Hint) -> None:
    """TypeError for what is not of that type."""
    if not isinstance(value, kind):
        raise wrong_type(Arg(name), f" takes {takes}, not a {type(value).__name__}.", hint=hint)


def check_flag(name: str, value: Any, right: bool = True) -> None:
    """InputError for what is neither True nor False."""
    if not isinstance(value, bool):
        raise InputError(Arg(name, value), " must be True or False.", hint=Arg(name, right))


def check_word(name: str, value: Any, words: Sequence[str], right: str) -> None:
    """InputError for what is none of the words."""
    if not isinstance(value, str) or value not in words:
        raise InputError(
            Arg(name, value), f" must be {' or '.join(map(repr, words))}.", hint=Arg(name, right)
        )


def check_whole(
    name: str, value: Any, least: int, most: int | None = None, *, right: Any, said: str = ""
) -> None:
    """InputError for what is no whole number in the range; ``said`` is the upper end as one would type it."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least or value > (most or value):
        to = "" if most is None else f" to {said or most}"
        raise InputError(
            Arg(name, value), f" must be a whole number from {least}{to}.", hint=Arg(name, right)
        )
