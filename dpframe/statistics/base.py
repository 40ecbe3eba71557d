"""What every question has: its columns, its bounds and its answers; and the arguments that questions share, checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dpframe.accounting.events import Number, rational
from dpframe.base.arguments import check_flag
from dpframe.base.released import Released
from dpframe.errors import Arg, Call, Code, InputError, exactly, show, warn, wrong_type
from dpframe.frames.columns import Column
from dpframe.layout.answers import Answer
from dpframe.layout.choices import Selection
from dpframe.layout.families import Bounds, Family
from dpframe.layout.layouts import Layout
from dpframe.layout.tables import Index
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.choosers import Reach

BOOLEAN: Bounds = (Fraction(0), Fraction(1))


class ChoiceTerms(NamedTuple):
    """What a choice is calibrated for."""

    types: Mapping[Hashable, Column]
    reach: Reach  # how far one unit's rows go
    target: Target  # what it may cost
    mechanism: str  # what the caller asked for
    fold: int | None  # how many rows of one unit may count, when rows are scaled down
    pure: bool  # whether eps alone is what is paid
    alone: bool  # whether nothing is asked beside that gets noise
    row_steps: int = 1  # how many steps a row is in sums


@dataclass(frozen=True, slots=True)
class Aggregate(ABC):
    """One question about a column (or about rows). Immutable; holds no data.

    Attributes
    ----------
    column : hashable or None
    bounds : (Fraction, Fraction) or None
    name : str or None
        The name of the output column.
    eps : Fraction or None
        An epsilon of its own: the aggregate then shares no noise with others.
    nonnegative : bool
        Raise negative answers to zero (free post-processing; biases small answers upwards).
    round : int or None
        Round the answer to this many decimals (free post-processing).
    """

    column: Hashable | None
    bounds: Bounds | None = None
    name: str | None = None
    eps: Fraction | None = None
    nonnegative: bool = False
    round: int | None = None

    def alias(self, name: str) -> Aggregate:
        """Return the same question with an output name."""
        if not isinstance(name, str):
            raise wrong_type(f"alias takes a str, not {type(name).__name__}.", hint=Call("alias", "n"))
        return replace(self, name=name)

    @property
    def measured(self) -> tuple[tuple[Hashable, Bounds | None], ...]:
        """The columns whose values are measured, each with the bounds that it needs."""
        return ((self.column, self.bounds),)

    @property
    def clipped(self) -> str:
        """What its values are counted as, in words; empty if as they are. No margin holds what that cuts off."""
        if self.bounds is not None and all(b == self.bounds for _, b in self.measured):
            return f"values counted as {between(self.bounds)}"
        each = [f"{name} as {between(bounds)}" for name, bounds in self.measured if bounds is not None]
        return f"values of {', of '.join(each).replace(' as ', ' counted as ', 1)}" if each else ""

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """Every column that is read."""
        return tuple(name for name, _ in self.measured)

    @property
    def form(self) -> str:
        """What of its own column it needs when nothing else is asked of it: "sum", "centred", "block" or "triple"."""
        return "block"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the output columns."""
        return (self.name or self.default_name,)

    @property
    def beside(self) -> tuple[str, ...]:
        """The names of further columns of its table."""
        return ()

    def resolved(self, column: Callable[[Hashable], Column]) -> Aggregate:
        """The same question with what the columns' types say: Boolean columns need no bounds."""
        if not self.measured or self.bounds is not None or column(self.column).kind != "bool":
            return self
        return replace(self, bounds=BOOLEAN)

    @property
    def whole_rows(self) -> bool:
        """Whether rows that lack any of its columns are left out of all that it adds up, so of a call of it alone."""
        return False

    def among_complete(self) -> Aggregate:
        """The same question when rows that lack a value of any answer are left out of all of them.

        Raises
        ------
        InputError
            When it can't be asked so.
        """
        return self

    def families(self, types: Mapping[Hashable, Column]) -> tuple[Family, ...]:
        """What it needs."""
        return (Family("column", (self.column,), (self.bounds,)),)

    @property
    def numeric(self) -> tuple[Hashable, ...]:
        """Columns that must hold numbers though they have no bounds."""
        return ()

    @property
    def counts_rows(self) -> bool:
        """Whether it asks for the number of all rows, which every layout that holds one answers."""
        return False

    @property
    def chosen(self) -> bool:
        """Whether it is answered by choosing among candidates (``selection``), not by adding noise to sums."""
        return False

    def selection(self, terms: ChoiceTerms) -> Selection:
        """How it is answered by choosing, if it is."""
        raise NotImplementedError

    @property
    def in_rows(self) -> bool:
        """Whether noise and sensitivity are told in rows rather than in the answer's unit."""
        return False

    @property
    def missing(self) -> str:
        """What becomes of missing and infinite cells, in words."""
        return "null and NaN are left out of sums, means and count(column); infinities are clipped"

    @property
    def pair(self) -> bool:
        """Whether its two answers are one value, (low, high)."""
        return False

    def alone(self) -> Aggregate:
        """The same question when it is all that is asked of a whole frame."""
        return self

    def table(self, start: int, column: Column) -> Index | None:
        """The rows of its answer in every group, if there are several."""
        return None

    @property
    @abstractmethod
    def verb(self) -> str: ...

    @property
    @abstractmethod
    def default_name(self) -> str: ...

    def answer(self, layout: Layout) -> Answer:
        """How the noisy coordinates of its one family become its one answer."""
        raise NotImplementedError

    def answers(self, layouts: Sequence[Layout]) -> tuple[Answer, ...]:
        """An answer for each of ``names``, from the layouts of its ``families``."""
        return (self.answer(*layouts),)

    def arrange(self, columns: dict[str, Any]) -> dict[str, Any]:
        """The table of an answer to this question alone."""
        return columns

    def argument(self, name: str) -> Any:
        """What its function was given as ``name``; None for what it does not keep."""
        return getattr(self, name, None)

    def describe(self) -> str:
        """The call, as one would type it."""
        parts = [] if self.column is None else [repr(self.column)]
        if self.bounds is not None:
            parts.append(f"bounds=({exactly(self.bounds[0])}, {exactly(self.bounds[1])})")
        return f"{self.verb}({', '.join(parts)})"


def output(a: Any, name: str | None) -> Aggregate:
    """What was given to ``agg`` as a question, with the name of its output; TypeError for what is no question."""
    if not isinstance(a, Aggregate):
        where = f"{name}=" if name else "agg: "
        raise wrong_type(
            f"{where}{type(a).__name__} is not a question that dpframe can make private.",
            hint=Call("dp_agg", n=Call("dp.count"), mean=Call("dp.clip_mean", "x", bounds=(0, 100)), eps=0.5),
        )
    return a if name is None else a.alias(name)


def public_rows(n: Any) -> int | None:
    """``n=`` as a Python int, or InputError."""
    if n is not None and (isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1):
        raise InputError(
            Arg("n", n),
            " must be a whole number of rows that is public, at least 1.",
            hint="leave n out, and the number of rows is estimated privately.",
        )
    return None if n is None else int(n)


def one_column(verb: str, column: Any) -> Any:
    """The column's name; TypeError for a list, an expression or anything else that is no name."""
    if isinstance(column, list):
        raise wrong_type(
            f"{verb} takes one column, not a list.",
            hint=Call("agg", Call(f"dp.{verb}", ...), Call(f"dp.{verb}", ...), eps=1),
        )
    try:
        hash(column)
    except TypeError:
        raise wrong_type(
            f"{verb} takes a column's name, not a {type(column).__name__}.",
            hint=(
                "add the expression as a column first, e.g. ",
                Call("df.with_columns", x=...),
                " or ",
                Call("df.assign", x=...),
            ),
        ) from None
    return column


def list_of_columns(verb: str, columns: Any) -> tuple[Hashable, ...]:
    """Column names from a list or tuple, each once."""
    if not isinstance(columns, list | tuple):
        raise wrong_type(
            f"{verb} takes a list of columns, not a {type(columns).__name__}.",
            hint=Call(f"{verb}", ["a", "b"], ...),
        )
    names = tuple(one_column(verb, c) for c in columns)
    twice = next((c for i, c in enumerate(names) if c in names[:i]), None)
    if twice is not None or len(set(map(str, names))) < len(names):
        raise InputError(f"{verb} lists a column twice: {twice!r}.", hint="name each once")
    return names


def common(eps: Number | None, nonnegative: bool, round: int | None) -> dict[str, Any]:
    """The arguments that every question takes, checked."""
    check_flag("nonnegative", nonnegative)
    if round is not None and (isinstance(round, bool) or not isinstance(round, int)):
        raise InputError(Arg("round", round), " must be a whole number of decimals.", hint=Arg("round", 2))
    if round is not None and abs(round) > 15:
        raise InputError(Arg("round", round), " must be from -15 to 15 decimals.", hint=Arg("round", 2))
    exact = None if eps is None else rational(eps, "eps")
    return {"eps": exact, "nonnegative": nonnegative, "round": round}


def between(bounds: Bounds) -> str:
    """Bounds in words."""
    return f"at least {show(bounds[0])} and at most {show(bounds[1])}"


def parse_bounds(verb: str, column: Hashable, bounds: Any, B: Any, name: str = "bounds") -> Bounds | None:
    """Read ``bounds=(low, high)`` or ``B=b`` into exact rationals (None for neither).

    Privacy: bounds are typed by the caller. Anything that may have been read from a column (an
    array, a Series) is refused by type.
    """
    if isinstance(bounds, Released):
        bounds = bounds.value
    if bounds is not None and B is not None:
        raise InputError(
            f"{verb}({column!r}) got both ",
            Arg("bounds"),
            " and ",
            Arg("B"),
            ".",
            hint=(Arg("B", Code("b")), " means ", Arg("bounds", (Code("-b"), Code("b"))), "."),
        )
    if B is not None:
        b = one_number(B, "B", verb)
        if b <= 0:
            raise InputError(
                Arg("B", B),
                " must be more than zero: it means ",
                Arg("bounds", (Code("-B"), Code("B"))),
                ", and equal bounds would leave no room for an answer.",
                hint=Arg("B", -b if b else 100),
            )
        return (-b, b)
    if bounds is None:
        return None
    if isinstance(bounds, str) or not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise InputError(
            f"{name} of {verb}({column!r}) must be a pair (low, high) of numbers that you type, not {_kind(bounds)}.",
            hint=_example(name),
        )
    low, high = one_number(bounds[0], f"{name}[0]", verb), one_number(bounds[1], f"{name}[1]", verb)
    if low >= high:
        how = "equal" if low == high else "the wrong way round"
        room = (min(2 * low, Fraction(0)), max(2 * low, Fraction(0))) if low else (Fraction(-1), Fraction(1))
        right = room if low == high else (high, low)
        raise InputError(
            Arg(name, (low, high)), f" are {how}; low must be less than high.", hint=Arg(name, right)
        )
    return (low, high)


def one_number(x: Any, name: str, verb: str) -> Fraction:
    value = x.item() if isinstance(x, np.generic) else x
    if isinstance(x, np.generic):
        warn(
            f"{name} of {verb} is a {type(x).__name__}, not a number that was typed. Bounds computed from"
            " the frame are not private.",
            hint="type them, from knowledge about the world",
        )
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | Decimal):
        raise InputError(
            f"{name} of {verb} must be a number that you type, not {_kind(x)}.", hint=_example(name)
        )
    odd = isinstance(value, Decimal) and not value.is_finite()
    if odd or (isinstance(value, float) and not np.isfinite(value)):
        raise InputError(Arg(name, value), f" of {verb} must be finite.", hint=_example(name))
    exact = Fraction(value)
    if abs(exact) > 2**1023:
        raise InputError(f"{name} of {verb} is beyond 2**1023.", hint=_example(name))
    return exact


def _example(name: str) -> Arg:
    """What can be typed for an argument, or for the one that ``name`` is an item of."""
    argument = name.split("[")[0]
    right: Mapping[str, Any] = {
        "B": 100,
        "candidates": [0, 10, 20],
        "edges": [0, 10, 20],
        "weight_bounds": (0, 10),
    }
    return Arg(argument, right.get(argument, (0, 100)))


def _kind(x: object) -> str:
    if isinstance(x, tuple | list):
        return f"{len(x)} values"
    return repr(x) if isinstance(x, str | bool | type(None)) else f"a {type(x).__name__}"


def no_public_rows(a: Aggregate) -> InputError:
    """What is said of ``n=`` where incomplete rows are left out."""
    n = a.argument("n")
    return InputError(
        f"{a.describe()} takes ",
        Arg("n", n),
        " for the number of values, and with ",
        Arg("complete_cases", True),
        " how many are left depends on other columns.",
        hint=("leave ", Arg("n"), " out, and the number of complete rows is estimated from the same noise"),
    )


def post_processing(nonnegative: Any, round: Any) -> dict[str, Any]:
    """The call's ``nonnegative=`` and ``round=``, checked; only those that were given."""
    given: dict[str, Any] = {}
    if nonnegative is not None:
        given["nonnegative"] = nonnegative
    if round is not None:
        given["round"] = round
    common(None, given.get("nonnegative", False), given.get("round"))
    return given


def asking(a: Aggregate, **more: Any) -> Call:
    """How ``a`` would be asked with some more arguments, for hints."""
    several = getattr(a, "of", None)
    of = a.column if several is None else list(several)
    q, weights, x = (a.argument(name) for name in ("q", "weights", "x"))
    given = {} if weights is None else {"weights": weights}
    q = q if a.verb == "quantile" else None
    return Call(f"df.dp.{a.verb}", of, *(y for y in (q, x) if y is not None), **given, **more, eps=0.5)
