"""What a question's function says of itself: the decorator ``question``, and what everything else reads from it.

The method of frames, groups and plans, hints, documentation, what auditors ask and what other libraries call it
all come from here, so a statistic is described where it is made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from dpframe.base.docstrings import documented, entries, sections
from dpframe.base.wrong_calls import checked
from dpframe.statistics.base import Aggregate

F = TypeVar("F", bound=Callable[..., Any])
Kind = Literal["count", "number", "measure", "pair", "table", "choice", "columns"]

AFTER = ("eps", "nonnegative", "round")  # parameters of a question that are options of its verb
AUDIT_BOUNDS = (-3, 10)  # within the columns ``x`` and ``y`` of the auditors' frames, which reach beyond

# What parameters of the same name mean in every question; a docstring has those of its own.
_SHARED = entries("""\
column : hashable
    A Boolean, integer, float or Decimal column. Missing cells (null and NaN) are left out; infinities are clipped.
bounds : (low, high)
    In the column's unit, from knowledge about the world and never from the frame. Boolean columns need none.
B : number
    Short for ``bounds=(-B, B)``, for signed columns.
eps : number, optional
    An epsilon of its own within ``agg`` or ``dp_agg``.
nonnegative : bool
    Raise negative answers to zero, after the noise.
round : int, optional
    Decimals to round to, after the noise (negative: tens, hundreds).""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """A question that can be asked by name.

    Attributes
    ----------
    name : str
    ask : function
        Makes the question of its arguments.
    answer : {"count", "number", "measure", "pair", "table", "choice", "columns"}
        What its verb gives for a whole frame: an int; an int or a float, as the column is; a float; two numbers;
        several rows; several rows that were chosen among candidates; one row.
    returns : str
        The same in words, for groups, too.
    example : str
        The arguments of a right call, as typed.
    known_as : tuple of str
        What other libraries call it.
    audited : dict of name -> arguments of the verb
        What auditors ask of their frames, which have the columns of ``dpframe.audit.neighbours``.
    several : str or None
        An argument that may be a list; the answer is a table then.
    of_units : bool
        Whether it can only be asked in a session with a unit.
    whole : function or None
        Makes the question that the verb asks of a whole frame, if that is another one.
    found : function or None
        Given the verb's arguments, the column whose values are to be found at the price of delta, and how many of
        them are told; or None, if the question is to be asked as it stands.
    """

    name: str
    ask: Callable[..., Aggregate]
    answer: Kind
    returns: str
    example: str
    known_as: tuple[str, ...]
    audited: Mapping[str, Mapping[str, Any]] = field(repr=False)
    several: str | None
    of_units: bool
    whole: Callable[..., Aggregate] | None
    found: Callable[..., tuple[Hashable, int] | None] | None

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """What its verb takes beside options."""
        all_of_them = inspect.signature(self.ask).parameters
        return {k: p for k, p in all_of_them.items() if k not in AFTER}

    @property
    def after(self) -> frozenset[str]:
        """Which of ``nonnegative`` and ``round`` its answer can be given to."""
        return frozenset(AFTER[1:]).intersection(inspect.signature(self.ask).parameters)


def question(
    *,
    answer: Kind,
    returns: str,
    example: str,
    audited: Mapping[str, Mapping[str, Any]],
    known_as: tuple[str, ...] = (),
    several: str | None = None,
    of_units: bool = False,
    whole: Callable[..., Aggregate] | None = None,
    found: Callable[..., tuple[Hashable, int] | None] | None = None,
    like: Callable[..., Aggregate] | None = None,
) -> Callable[[F], F]:
    """Mark the function that makes a question; the arguments are those of :class:`Statistic`.

    Wrong calls of it say what to write, and its docstring gets the parameters that are the same everywhere, or those
    of the question that it is ``like``.
    """
    same = {} if like is None else entries(sections(like.__doc__ or "")["Parameters"])

    def decorate(f: F) -> F:
        call: Any = checked(example=f"{f.__name__}({example}, eps=0.5)")(f)
        call.__doc__ = documented(f, _SHARED | same)
        call.statistic = Statistic(
            name=f.__name__,
            ask=call,
            answer=answer,
            returns=returns,
            example=example,
            known_as=known_as,
            audited=audited,
            several=several,
            of_units=of_units,
            whole=whole,
            found=found,
        )
        return call  # type: ignore[no-any-return]

    return decorate
