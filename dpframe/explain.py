"""Plans in words: what is asked, who is protected, how much noise, at what cost. From public numbers."""

from __future__ import annotations

from html import escape
from typing import Any

from dpframe.errors import show
from dpframe.plan import Output, Plan
from dpframe.release import bounding_text

ROWS = (100, 1_000, 10_000)


class Explanation:
    """A plan in words. ``str`` is the text; notebooks display it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self._text)}</pre>"


def explain(plan: Plan, remaining: str | None, rows: float | None) -> Explanation:
    """Explain ``plan``; ``remaining`` is what the session would still grant, in words."""
    relation = {
        "add_remove": "one {} appears or vanishes",
        "replace_one": "one {} becomes another",
    }[plan.policy.neighbors].format(plan.policy.unit_name)
    lines = [
        plan.describe(),
        f"  protects    {relation}",
        f"  costs       {cost_text(plan)}",
    ]
    if plan.bounding is not None:
        chosen = ", groups are chosen by salted hash" if plan.bounding.groups else ""
        lines.append(f"  bounds      {bounding_text(plan)}; more is scaled down{chosen}")
    if plan.grouped:
        names = ", ".join(str(c.name) for c in plan.by)
        known = f"{plan.keys.size:,} listed" if plan.keys is not None else "those found with enough in them,"
        lines.append(f"  groups      {known} by {names}; the cost is paid once for all")
    lines += _survival(plan)
    for o in plan.outputs:
        lines += _output(plan, o, rows)
    if len({(p.event.eps, p.fused) for p in plan.parts}) > 1 and any(o.question.eps for o in plan.outputs):
        lines.append("  epsilons    some outputs have their own; the call costs the sum")
    fused = max((p.fused for p in plan.parts), default=1)
    if fused > 1:
        lines.append(f"  split       {fused} parts share the budget equally: {_parts(plan)}")
    lines.append(
        "  missing     null and NaN are left out of sums, means and count(column); infinities are clipped"
    )
    if remaining:
        lines.append(f"  session     {remaining}")
    return Explanation("\n".join(lines))


def _parts(plan: Plan) -> str:
    """What the parts are: columns, rows, or the units that a threshold counts."""
    names = {"units": f"number of {plan.policy.unit_name}, for the threshold", "rows": "number of rows"}
    return "; ".join(names.get(p.layout.kind, str(p.column)) for p in plan.parts)


def _survival(plan: Plan) -> list[str]:
    """The threshold and the odds that a group of a given size is released."""
    if plan.selection is not None:
        half, what = float(plan.selection.size), plan.policy.unit_name
        odds = [(n, plan.selection.odds(n)) for n in _sizes(half)]
    elif plan.threshold is not None:
        t = plan.threshold
        half, what = t.size, t.counted
        odds = [(n, t.odds(plan.pieces[t.coordinates[0]].noise, n)) for n in _sizes(half)]
    else:
        return []
    shown = ", ".join(f"{n:,} {p:.3g}" for n, p in odds)
    things = "rows" if what == "row" else f"distinct {what}"
    return [f"  threshold   about {half:,.4g} {things} in a group; chance of release by size: {shown}"]


def _sizes(half: float) -> list[int]:
    return sorted(
        {1, max(1, round(half / 2)), max(1, round(half)), max(1, round(half * 1.5)), max(1, round(half * 2))}
    )


def cost_text(plan: Plan) -> str:
    e = plan.event
    if e.eps is None:
        return f"rho={float(e.rho):.6g}" + (f", delta={show(e.delta)}" if e.delta else "")
    return f"eps={show(e.eps)}, delta={show(e.delta)} (rho={float(e.rho):.4g} where rho is added up)"


def _output(plan: Plan, o: Output, rows: float | None) -> list[str]:
    part = plan.parts[o.part]
    l1, l2 = plan.sensitivity(o)
    noises = len(o.answer.coordinates())
    unit = " rows" if o.answer.worth is None or o.question.verb == "count" else ""
    lines = [f"  {o.name}: {o.question.describe()}"]
    lines.append(f"    sensitivity  L1 {_n(l1)}, L2 {_n(l2)}{unit}")
    lines.append(
        f"    noise        {part.mechanism}, scale {_n(plan.noise_scale(o))}{unit}" + _shared(plan, o, noises)
    )
    if part.runner_up is not None:
        up = part.runner_up
        what = "RMSE" if up.loss == "rmse" else "E|X|"
        lines.append(f"    runner-up    {up.mechanism}, {what} × {up.ratio:.3g}")
    lines.append(f"    95 % error   {_error(plan, o, rows)}")
    return lines


def _shared(plan: Plan, o: Output, noises: int) -> str:
    with_same = [x.name for x in plan.outputs if x.part == o.part and x.name != o.name]
    text = f", {noises} draws" if noises > 1 else ""
    return text + (f", shared with {', '.join(with_same)} at no extra cost" if with_same else "")


def _error(plan: Plan, o: Output, rows: float | None) -> str:
    fixed = o.answer.error(plan.laws, None)
    if fixed is not None:
        return f"± {_n(fixed)}"
    sizes: tuple[float, ...] = (rows,) if rows else ROWS
    each: list[Any] = [f"± {_n(o.answer.error(plan.laws, n))} at {n:,.0f} rows" for n in sizes]
    return ", ".join(each) + (" a group" if plan.grouped else "")


def _n(x: float | None) -> str:
    return "?" if x is None else f"{x:,.6g}"
