"""The answer to one question about a whole frame: a plain number, or a pair, that shows its error."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, ClassVar

from dpframe.base.html import Page
from dpframe.base.wrong_calls import checked
from dpframe.errors import Arg, InputError


def level_of(level: Any, name: str = "level") -> float:
    """A level as a number; InputError unless it lies between 0 and 1."""
    ok = isinstance(level, int | float | Fraction) and not isinstance(level, bool) and 0 < level < 1
    if not ok:
        raise InputError(Arg(name, level), " must lie between 0 and 1.", hint=Arg(name, 0.95))
    return float(level)


class _Answer(Page):
    """Shared by the two scalar answers: plain in ``str``, ``format`` and every export, ± in ``repr``."""

    release: Any
    _plain: ClassVar[Any]  # the type of plain numbers

    def __new__(cls, value: Any, release: Any = None) -> Any:
        if release is None:  # somebody computes with the type: plain numbers come out
            return cls._plain(value)
        self = cls._plain.__new__(cls, value)
        self.release = release
        return self

    def __str__(self) -> str:
        return str(self._plain.__repr__(self))

    def __format__(self, spec: str) -> str:
        return str(self._plain.__format__(self, spec))

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self._plain(self), self.release))

    @property
    def std(self) -> float:
        """Standard deviation of the noise."""
        return float(self.release.std)

    @checked(example="s.last.interval(0.95)")
    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The interval that holds the exact clipped answer with probability ``level``."""
        low, high = self.release.interval(level)
        return low, high

    @property
    def moe(self) -> float:
        """The margin of error that ``repr`` shows: at 95 %, or at the call's ``ci=``."""
        low, high = self.interval(self.release._ci or 0.95)
        number = float(str(self))
        return max(high - number, number - low)

    def __repr__(self) -> str:
        level = self.release._ci or 0.95
        (output,) = self.release._plan.outputs
        if not output.answer.ranged:
            rank = self.release._plan.error(None, level)
            return f"{self!s} (rank within {math.ceil(rank)} rows, {level:.0%}; {self.release._paid})"
        number, margin = str(self), self.moe
        shown = f"{number} ± {margin:.0f}"
        if isinstance(self, float):  # as many decimals as two digits of the margin need
            decimals = 6 if margin <= 0 else min(12, max(0, 1 - math.floor(math.log10(margin))))
            near = round(float(number), decimals) + 0.0  # never -0
            shown = f"{near:.{decimals}f} ± {margin:.{decimals}f}"
        return f"{shown} ({level:.0%} interval; {self.release._paid})"


class PairAnswer(Page, tuple[float, float]):
    """A released pair (low, high): plain numbers, so it can be given on as ``bounds=``."""

    release: Any

    def __new__(cls, values: Iterable[float], release: Any) -> Any:
        self = tuple.__new__(cls, values)
        self.release = release
        return self

    def __repr__(self) -> str:
        return f"{tuple(self)!r} ({self.release._paid})"

    def __str__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return (PairAnswer, (tuple(self), self.release))


class IntAnswer(_Answer, int):
    """A released integer."""

    _plain = int


class FloatAnswer(_Answer, float):
    """A released float."""

    _plain = float
