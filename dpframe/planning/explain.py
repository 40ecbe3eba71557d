"""Plans in words: what is asked, who is protected, how much noise, at what cost. From public numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpframe.accounting.events import Cost
from dpframe.accounting.forecast import Forecast
from dpframe.base.html import Page
from dpframe.mechanisms import registry
from dpframe.mechanisms.thresholds import SMALL
from dpframe.planning.memory import memory_text
from dpframe.planning.pieces import Output
from dpframe.planning.plan import Plan, bounding_text

ROWS = (100, 1_000, 10_000)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an explanation: of the question as a whole (depth 0), an output's head (1), about an output (2)."""

    depth: int
    label: str
    text: str

    def __str__(self) -> str:
        if self.depth == 1:
            return f"  {self.label}: {self.text}"
        return f"  {self.label:<11} {self.text}" if self.depth == 0 else f"    {self.label:<12} {self.text}"


class Explanation(Page):
    """A plan in words. ``str`` is the text; notebooks display it as a table."""

    def __init__(self, title: str, lines: Sequence[Line], forecast: Forecast) -> None:
        self.title, self.lines, self.forecast = title, tuple(lines), forecast

    def __str__(self) -> str:
        return "\n".join([self.title, *map(str, self.lines)])

    __repr__ = __str__


def explain(
    plan: Plan,
    forecast: Forecast,
    *,
    rows: float | None = None,
    units: float | None = None,
    relative_to: float | None = None,
    asked_before: str | None = None,
) -> Explanation:
    """Explain ``plan``, from public numbers alone.

    Parameters
    ----------
    plan : Plan
    forecast : Forecast
        What who pays would still grant.
    rows : float, optional
        A public guess of the number of rows (of a group), for errors that depend on it.
    units : float, optional
        A public guess of the number of units (in a group), for the memory that bounding them takes.
    relative_to : float, optional
        An expected answer, of which errors are told as a fraction too.
    asked_before : str, optional
        Where the answer to the same question is, if who pays has paid for one.
    """
    lines = [Line(0, "protects", plan.policy.protects), Line(0, "costs", cost_text(plan))]
    if plan.bounding is not None:
        more = ["more is scaled down"] if plan.measures or not plan.tallies else []
        more += ["of more, rows are kept by salted hash for what is counted by bins"] if plan.tallies else []
        if plan.grouped and (plan.ask(0).chosen or plan.bounding.total is None):
            more.append("groups are chosen by salted hash")
        lines.append(Line(0, "bounds", f"{bounding_text(plan)}; {', '.join(more)}"))
        lines += _limits(plan)
    elif plan.policy.contributions > 1:
        where = ", all in one group or each in another" if plan.grouped else ""
        lines.append(Line(0, "bounds", f"{plan.policy.unit_name} count{where}; nothing is cut"))
    if plan.grouped:
        names = ", ".join(str(c.name) for c in plan.by)
        known = f"{plan.keys.size:,} listed" if plan.keys is not None else "those found with enough in them,"
        lines.append(Line(0, "groups", f"{known} by {names}; the cost is paid once for all"))
    lines += _survival(plan)
    for o in plan.outputs:
        lines += _output(plan, o, rows, relative_to)
    if len({(p.event.eps, p.fused) for p in plan.parts}) > 1 and any(o.question.eps for o in plan.outputs):
        lines.append(Line(0, "epsilons", "some outputs have their own; the call costs the sum"))
    fused = max((p.fused for p in plan.parts), default=1)
    draws = _draws(plan)
    if fused > 1:
        parts = _parts(plan)
        how = (
            "the budget equally" if fused == len(parts) else "the budget"
        )  # a draw beside choices has the parts of all its sums
        lines.append(Line(0, "split", f"{len(parts)} parts share {how}: {'; '.join(parts)}"))
    elif any("," in d for d in draws):
        lines.append(Line(0, "split", "; ".join(draws)))
    lines += [Line(0, "missing", said) for said in plan.missing]
    memory = memory_text(plan, rows, units)
    if memory is not None:
        lines.append(Line(0, "memory", memory))
    lines += [Line(0, "session", text) for text in forecast.texts]
    if asked_before is not None:
        lines.append(Line(0, "repeat", f"the same question was paid for before: {asked_before}"))
    return Explanation(plan.describe(), lines, forecast)


def _limits(plan: Plan) -> list[Line]:
    """Of each limit on a unit what it may cut, and what it costs in noise."""
    b, unit, lines = plan.bounding, plan.policy.unit_name, []
    if b is None:
        return []
    if b.total is not None:
        cut = f"a {unit} with more than {b.total} rows in these groups counts for {b.total}, shared out in proportion"
        costs = f"noise for {b.total} rows; without max_rows for {b.rows * (b.groups or 1):,} ({b.groups} × {b.rows})"
        lines.append(Line(0, "max_rows", f"{cut}; {costs}"))
    if b.rows != b.total and not all(p.layout.kind == "units" for p in plan.parts):
        name, where = ("max_rows", "") if b.groups is None else ("rows/group", " in a group")
        lines.append(Line(0, name, f"a {unit} with more{where} counts for {_rows(b.rows)}; noise × {b.rows}"))
    if b.groups is not None and (plan.keys is None or plan.keys.size > b.groups):
        cut = f"a {unit} in more groups counts in {b.groups} of them"
        lines.append(Line(0, "max_groups", cut if b.total else f"{cut}; noise × {_across(plan, b.groups)}"))
    return lines


def _rows(n: int) -> str:
    return f"{n} row{'s' * (n != 1)}"


def _across(plan: Plan, groups: int) -> str:
    """By how much noise grows with the groups of a unit: their root where it is calibrated to squares."""
    known = set(registry.names())
    squares = [p.mechanism in known and registry.mechanism(p.mechanism).norm == "L2" for p in plan.parts]
    return f"{groups**0.5:.3g}" if squares and all(squares) else str(groups)


def _parts(plan: Plan) -> list[str]:
    """What the parts are: draws that several columns share, columns, rows, or units; and what a threshold counts."""
    names = {"units": f"number of {plan.policy.unit_name}", "rows": "number of rows"}
    compared = {plan.pieces[i].part for i in (plan.threshold.coordinates if plan.threshold else ())}
    alone = [
        names.get(p.layout.kind, str(p.column)) + (", for the threshold" if i in compared else "")
        for i, p in enumerate(plan.parts)
        if p.draw is None
    ]
    return [*_draws(plan), *alone]


def _draws(plan: Plan) -> list[str]:
    """Draws of noise that cover several numbers of a row, with the names of the answers that are read from each."""
    numbers = dict.fromkeys(p.draw for p in plan.parts if p.draw is not None)
    out = []
    for number in numbers:
        parts = {i for i, p in enumerate(plan.parts) if p.draw == number}
        read = [o.name for o in plan.outputs if parts & {plan.pieces[i].part for i in o.answer.coordinates()}]
        rows = {plan.pieces[i].part for i in (plan.threshold.coordinates if plan.threshold else ())}
        out.append(f"one draw for {', '.join([*read, *(['the threshold'] if rows & parts else [])])}")
    return out


def _survival(plan: Plan) -> list[Line]:
    """The threshold and the odds that a group of a given size is released."""
    if plan.selection is not None:
        half, what = float(plan.selection.size), plan.policy.counted
        odds = [(n, plan.selection.odds(n)) for n in _sizes(half)]
    elif plan.threshold is not None:
        t = plan.threshold
        half, what = t.size, t.counted
        odds = [(n, t.odds(plan.laws[t.coordinates[0]], n)) for n in _sizes(half)]
    else:
        return []
    shown = ", ".join(f"{n:,} {p:.3g}" for n, p in odds)
    things = "rows" if what == "row" else f"distinct {what}"
    filled = plan.threshold.filled if plan.threshold is not None else None
    if filled is not None:
        things += f" (if each is in {filled:,} groups, fewer if in fewer)"
    text = f"about {half:,.4g} {things} in a group; chance of release by size: {shown}"
    if plan.threshold is not None and plan.threshold.small:
        text += f"; min_units: {plan.threshold.small:,} at most {SMALL:g}"
    return [Line(0, "threshold", text), *_rules(plan)]


def _rules(plan: Plan) -> list[Line]:
    """By which rule keys alone are found, and how large a group must be by the others."""
    if not plan.rules:
        return []
    taken = plan.mechanism
    others = ", ".join(f"{name} {size:,.4g}" for name, size in plan.rules if name != taken)
    return [Line(0, "keys", f"by {taken}" + (f"; even odds by other rules at {others}" if others else ""))]


def _sizes(half: float) -> list[int]:
    return sorted(
        {1, max(1, round(half / 2)), max(1, round(half)), max(1, round(half * 1.5)), max(1, round(half * 2))}
    )


def cost_text(plan: Plan) -> str:
    cost = plan.event.cost
    return (
        cost.text()
        if cost.eps is None
        else f"{cost.text(zeros=True)} ({_in_rho(cost)} where rho is added up)"
    )


def _in_rho(cost: Cost) -> str:
    return Cost(None, rho=cost.rho).text()


def _output(plan: Plan, o: Output, rows: float | None, relative_to: float | None) -> list[Line]:
    part = plan.parts[o.part]
    l1, l2 = plan.sensitivity(o)
    noises = len(o.answer.coordinates())
    unit = " rows" if o.answer.worth is None or o.question.in_rows else ""
    lines = [Line(1, o.name, o.question.describe())]
    lines.append(Line(2, "sensitivity", f"L1 {_n(l1)}, L2 {_n(l2)}{unit}"))
    noise = f"{part.mechanism}, scale {_n(plan.noise_scale(o))}{unit}" + _shared(plan, o, noises)
    lines.append(Line(2, "noise", noise))
    if part.runner_up is not None:
        up = part.runner_up
        what = "RMSE" if up.loss == "rmse" else "E|X|"
        lines.append(Line(2, "runner-up", f"{up.mechanism}, {what} × {up.ratio:.3g}"))
    lines.append(Line(2, "95 % error", _error(plan, o, rows, relative_to)))
    return lines


def _shared(plan: Plan, o: Output, noises: int) -> str:
    with_same = [x.name for x in plan.outputs if x.part == o.part and x.name != o.name]
    joint = plan.parts[o.part].draw is not None
    text = f", {noises} {'numbers of a draw' if joint else 'draws'}" if noises > 1 else ""
    return text + (f", shared with {', '.join(with_same)} at no extra cost" if with_same else "")


def _error(plan: Plan, o: Output, rows: float | None, relative_to: float | None) -> str:
    fixed = o.error(plan.laws, None)
    sizes: tuple[float, ...] = (rows,) if rows else ROWS
    sized = [o.error(plan.laws, n) for n in sizes]
    about = "" if o.answer.ranged else f", of {o.margin_of}"

    def margin(x: float | None) -> str:
        return _margin(x, relative_to) if o.answer.ranged else _n(x)

    def at_sizes(errors: list[float | None]) -> str:
        each = [f"{margin(x)} at {n:,.0f} rows" for n, x in zip(sizes, errors)]
        return ", ".join(each) + (" a group" if plan.grouped else "")

    cases = [o.cases(plan.laws, n) for n in sizes]
    same = fixed is not None and sized[0] == fixed
    worst = margin(sized[0]) if same or sized[0] == math.inf else at_sizes(sized)
    better = [f"; of {case[0][0]}: {at_sizes([x for _, x in case])}" for case in zip(*cases)]
    return worst + about + (" at worst" if better else "") + "".join(better)


def _margin(error: float | None, relative_to: float | None) -> str:
    if error == math.inf:
        return "no limit"
    text = f"± {_n(error)}"
    if error is None or relative_to is None:
        return text
    return f"{text} ({100 * error / relative_to:.3g} % of {_n(relative_to)})"


def _n(x: Any) -> str:
    return "?" if x is None else f"{x:,.6g}"
