"""What is asked, as planning takes it, and what can be refused of it from names and column types alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from dpframe.accounting.policy import Limits
from dpframe.errors import Arg, Call, InputError, did_you_mean
from dpframe.frames.columns import MEASURABLE, Column
from dpframe.frames.contract import Axis, Measure
from dpframe.frames.keys import KeyTable, key_table
from dpframe.mechanisms.auto import Loss
from dpframe.mechanisms.base import Target
from dpframe.statistics.base import Aggregate, asking


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked, as the planner takes it."""

    aggregates: tuple[Aggregate, ...]
    target: Target
    mechanism: str = "auto"
    loss: Loss = "rmse"
    by: tuple[Hashable, ...] | None = None
    keys: Any = field(default=None, hash=False, compare=False, repr=False)
    scalar: bool = False
    limits: Limits = field(default_factory=Limits)
    margins: bool = False
    pure: bool = False  # whether eps alone is what is paid
    top: int | None = None
    auto: str = "auto"  # the law of noise where none was named: the accountant's, if it takes one alone
    complete: bool = False  # whether rows that lack a value of any answer are left out of all of them


def output_names(request: Request) -> list[str]:
    """The names of the output columns, in the order that they were asked in; InputError where two are alike."""
    names: list[str] = []
    taken = {str(b) for b in request.by or ()}
    for a in request.aggregates:
        for name in (*a.names, *(a.beside if len(request.aggregates) == 1 else ())):
            if name in taken:
                what = (
                    "a grouping column" if request.by and name in map(str, request.by) else "another output"
                )
                raise InputError(
                    f"The output {name!r} has the name of {what}.",
                    hint=(f"{name}_2=... or ", Call("alias", "...")),
                )
            taken.add(name)
            names.append(name)
    for name in names if request.margins else ():
        if f"{name}_moe" in taken:
            raise InputError(
                Arg("ci"), f" adds a column '{name}_moe', and there is one already.", hint="rename that one"
            )
    return names


def columns_read(request: Request) -> tuple[Hashable, ...]:
    """The columns that answers are made from, each once; not the keys, but where the keys are the answer."""
    found = () if request.top is None else request.by or ()
    return tuple(dict.fromkeys([*(c for a in request.aggregates for c in a.columns), *found]))


def complete_axes(read: Iterable[Hashable], measures: Iterable[Measure]) -> tuple[Axis, ...]:
    """What a complete row has: a cell in every column that is ``read``, and every item of lists that are measured."""
    axes = [Axis(c) for c in read]
    measured = (a for m in measures for a in m.axes) if axes else ()
    items = [Axis(a.column, item=a.item, length=a.length) for a in measured if a.item is not None]
    return tuple(dict.fromkeys([*axes, *items]))


def grouping(request: Request, column: Any) -> tuple[tuple[Column, ...], KeyTable | None]:
    """The grouping columns, and the listed keys (None for keys that are found, at the price of delta)."""
    if request.by is None:
        return (), None
    if not request.by:
        raise InputError("groupby needs at least one column.", hint=Call("df.dp.groupby", "city", keys=[...]))
    if len(set(request.by)) < len(request.by):
        raise InputError(
            f"groupby lists a column twice: {', '.join(map(repr, request.by))}.", hint="name each once"
        )
    by = tuple(column(b) for b in request.by)
    if request.keys is not None:
        return by, key_table(request.by, by, request.keys)
    for c in by:
        inner = c.native if c.kind == "categorical" else c
        if inner.kind in ("other", "time"):
            raise InputError(
                f"{c.name!r} is {c.text}, which can't be a grouping column.", hint="make a text column of it"
            )
        if inner.kind == "interval":
            raise InputError(
                f"{c.name!r} has intervals, whose edges may come from the data, and released keys would show them.",
                hint=(
                    Arg("keys", Call("list", Call("pd.IntervalIndex.from_breaks", [0, 18, 65]))),
                    " with the edges that you typed",
                ),
            )
    if not request.target.delta and not request.aggregates:
        raise InputError(
            "keys() needs ",
            Arg("eps"),
            " (or ",
            Arg("rho"),
            ") and ",
            Arg("delta"),
            ".",
            hint=Call("keys", eps=1, delta=1e-6),
        )
    if not request.target.delta:
        first = request.by[0]
        raise InputError(
            f"groupby({', '.join(map(repr, request.by))}) needs ",
            Arg("keys"),
            " or ",
            Arg("delta"),
            ": which groups occur is private.",
            hint=(
                Call("df.dp.groupby", first, keys=[...]),
                f" with all values that {first!r} could have, whether they occur or not; or ",
                Call("dp_agg", ..., eps=0.5, delta=1e-7),
                " in a session with delta, such as ",
                Call("dp.Session", eps=1, delta=1e-6),
                ", and groups with enough rows are found and released.",
            ),
        )
    return by, None


def check_numbers(aggregates: Sequence[Aggregate], column: Callable[[Hashable], Column]) -> None:
    """InputError for a column that does not exist, or is no numbers where numbers are needed, or lacks bounds."""
    for a in aggregates:
        for c in a.columns:
            column(c)
        for c, bounds in a.measured:
            _check_measure(a, column(c), bounds)
        for c in a.numeric:
            _check_number(a, column(c))


def _check_number(a: Aggregate, column: Column) -> None:
    if column.kind not in MEASURABLE:
        fix = {
            "string": f"cast {column.name!r} to a number first; for a CSV in a release file, types = {{ {column.name} = 'float' }}",
            "object": f"if it holds numbers, give it a dtype first, e.g. df[{column.name!r}].astype(float)",
            "duration": "turn it into a number of a unit you name, e.g. seconds",
            "datetime": "turn it into a number of a unit you name, e.g. days since a date",
            "date": "turn it into a number of a unit you name, e.g. days since a date",
        }.get(column.kind, "measure a numeric or Boolean column")
        if column.text.startswith("Sparse["):
            raise InputError(
                f"{a.verb}({column.name!r}): the column is {column.text}, and sparse columns are not read.",
                hint=f"df[{column.name!r}].sparse.to_dense()",
            )
        raise InputError(f"{a.verb}({column.name!r}): the column is {column.text}, not numbers.", hint=fix)


def _check_measure(a: Aggregate, column: Column, bounds: Any) -> None:
    _check_number(a, column)
    if bounds is None and column.kind != "bool":
        asked = repr(column.name) if len(a.measured) == 1 else repr([c for c, _ in a.measured])
        raise InputError(
            f"{a.verb}({asked}) needs bounds: they decide how far one row can move the answer, and must come from knowledge, not from the frame.",
            hint=asking(a, bounds=(0, 100)),
        )


def by_target(request: Request, unknown: bool) -> list[tuple[list[Aggregate], Target]]:
    """Aggregates that share a target, and those with an epsilon of their own.

    They share delta equally; with unknown keys the first has it all, for the threshold.
    """
    shared = [a for a in request.aggregates if a.eps is None]
    own = [([a], Target(a.eps, request.target.delta)) for a in request.aggregates if a.eps is not None]
    if own and request.target.rho is not None:
        raise InputError(
            "An aggregate's own ",
            Arg("eps"),
            " does not go with ",
            Arg("rho"),
            " for the call.",
            hint=("use ", Arg("eps"), " for both."),
        )
    groups = ([(shared, request.target)] if shared else []) + own
    if len(groups) > 1 and request.target.delta:
        shares = [request.target.delta / len(groups)] * len(groups)
        if unknown:
            shares = [request.target.delta, *[Fraction(0)] * (len(groups) - 1)]
        groups = [(g, replace(t, delta=d)) for (g, t), d in zip(groups, shares)]
    for _, t in groups:
        if t.eps is None and t.rho is None:
            raise InputError(
                "Some aggregates have no eps.",
                hint=("give ", Arg("eps"), " for the call, or for each aggregate."),
            )
    return groups


def own_epsilons(aggregates: Sequence[Aggregate], eps: Mapping[str, Any], read: Any) -> tuple[Aggregate, ...]:
    """Apply ``eps={"name": value, ...}``: an absolute epsilon for every output."""
    names = [a.name or a.default_name for a in aggregates]
    for key in eps:
        if key not in names:
            raise InputError(
                Arg("eps"), f" names {key!r}, which is not an output. {did_you_mean(str(key), names)}"
            )
    missing = [n for n in names if n not in eps]
    if missing:
        raise InputError(Arg("eps"), f" lacks the output {missing[0]!r}.", hint="give every output its eps.")
    return tuple(replace(a, eps=read(eps[n], f"eps[{n!r}]")) for n, a in zip(names, aggregates))
