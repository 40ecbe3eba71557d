"""What to write instead of a verb or a question that does not exist; names of other libraries come from the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpframe.base.wrong_calls import MEANT, SEEDS, unknown_argument
from dpframe.errors import Arg, Call, Code, UnknownName, did_you_mean, wrong_type
from dpframe.statistics.table import STATISTICS

MEANT_VERBS: Mapping[str, str] = {
    "aggregate": "agg",
    "group": "groupby",
    "by": "groupby",
    **{other: s.name for s in STATISTICS.values() for other in s.known_as},
}
_CHANGES_THE_FRAME = ["filter", "query", "where", "head", "sample", "assign", "with_columns", "drop", "sort"]
_CROSSED = ("crosstab", "pivot", "pivot_table")
_EXTREMES = {"min": "0.01", "max": "0.99"}


def example(name: str) -> str:
    """The arguments of a right call of a verb; "..." for one that asks nothing itself."""
    if name not in STATISTICS:
        return "..."
    return ", ".join(filter(None, (STATISTICS[name].example, "eps=0.5")))


def not_a_question(name: str, value: object, options: Sequence[str], where: str = "agg") -> TypeError:
    """The TypeError for ``agg(name=value)`` where value is no question: a mistyped option, or a word."""
    near = did_you_mean(name, options)
    if isinstance(value, str) and name not in MEANT and (_asked(value) or not near.startswith("Did")):
        word = _asked(value) or "clip_mean"
        return wrong_type(
            Arg(name, value),
            " is not a question.",
            hint=Arg(name, Call(f"dp.{word}", Code(STATISTICS[word].example))),
        )
    if name.lower() in MEANT or name in SEEDS or near.startswith("Did"):
        return unknown_argument(where, name, options)
    return wrong_type(
        Arg(name, value),
        " is not a question.",
        hint=(Arg(name, Call("dp.count")), " or ", Arg(name, Call("dp.clip_mean", "x", B=100))),
    )


def _asked(word: str) -> str | None:
    """The statistic that a word means."""
    name = MEANT_VERBS.get(word, word)
    return name if name in STATISTICS else None


def unknown_verb(owner: str, name: str, known: Sequence[str], columns: Sequence[object] = ()) -> UnknownName:
    """The error for a verb that ``owner`` does not have; a column's name gets the question about it."""
    if name in columns:
        return UnknownName(
            f"{owner}.{name} is a column.", hint=Call(f"{owner}.clip_mean", name, bounds=(0, 100), eps=0.5)
        )
    said = f"{owner} has no {name!r}"
    if name in _CHANGES_THE_FRAME:
        return UnknownName(
            f"{said}.", hint=("change the frame first, e.g. df[df.x > 5]", Call("dp.count", eps=0.5))
        )
    if name in _EXTREMES:
        return UnknownName(
            f"{said}: it is one row's value.",
            hint=(
                "an extreme quantile, ",
                Call(f"{owner}.quantile", "x", Code(_EXTREMES[name]), bounds=(0, 100), eps=0.5),
            ),
        )
    if name in _CROSSED:
        return UnknownName(
            f"{said}.",
            hint=Call("count", on=Call("df.dp.groupby", "a", "b", keys={"a": [...], "b": [...]}), eps=0.5),
        )
    if name == "describe":
        return UnknownName(
            f"{said} (yet).",
            hint=(
                "count by bins that you type, e.g. ",
                Call("df.assign", bin=Call("pd.cut", Code("df.x"), [0, 10, 20])),
                Call(
                    "count",
                    on=Call(
                        "dp.groupby",
                        "bin",
                        keys=Call("list", Call("pd.IntervalIndex.from_breaks", [0, 10, 20])),
                    ),
                    eps=0.5,
                ),
            ),
        )
    meant = MEANT_VERBS.get(name)
    if meant in known:
        return UnknownName(f"{said}.", hint=Call(f"{owner}.{meant}", Code(example(str(meant)))))
    if name == "plan":
        return UnknownName(f"{said}.", hint=Call("df.dp.plan.groupby", ...))
    return UnknownName(f"{said} (yet). {did_you_mean(name, known)}")
