"""Plans as pages: what is asked, what it costs, how exact it will be, and what would be left."""

from __future__ import annotations

from fractions import Fraction

from dpframe.accounting.forecast import Forecast
from dpframe.api.advice import Advice
from dpframe.base.html import bar, card, facts, note, table
from dpframe.budget_plans.budget_plan import BudgetPlan
from dpframe.errors import show
from dpframe.planning.explain import Explanation, explain
from dpframe.planning.plan import Plan


def plan(p: Plan) -> str:
    """What a plan says without a session."""
    return explanation(explain(p, Forecast("unbound")))


def explanation(e: Explanation) -> str:
    """The lines of an explanation as tables, and a bar of what the budget has left."""
    parts: list[str] = []
    block: list[tuple[str, str]] = []
    inside = False
    for line in e.lines:
        if line.depth == 1 or (inside and line.depth == 0):
            parts.append(facts(block, indent=inside) if block else "")
            block, inside = [], line.depth == 1
        if line.depth == 1:
            parts.append(note(line.label if line.label == line.text else f"{line.label}: {line.text}"))
        else:
            block.append((line.label, line.text))
    parts.append(facts(block, indent=inside))
    return card("plan", e.title, *parts, _left(e.forecast))


def advice(a: Advice) -> str:
    """What to write and why, and the best of what was tried."""
    rows = [("session", a.session), ("each call", a.call), *(("because", r) for r in a.reasons)]
    tried = [
        (
            r["mechanism"],
            r["accountant"],
            f"eps={r['eps']:.4g}" if r["eps"] is not None else f"rho={r['rho']:.4g}",
            f"{r['delta']:.4g}" if r["delta"] else "",
            f"{r['loss']:.4g}",
            f"× {r['ratio']:.4g}",
        )
        for r in a.table.head(6).iter_rows(named=True)
    ]
    head = ("mechanism", "accountant", "each call", "delta", "noise", "")
    return card("advice", f"{a.mechanism}, accountant {a.accountant}", facts(rows), table(head, tried))


def _left(f: Forecast) -> str:
    if not f.total or f.before is None:
        return ""
    before = f.before.eps or Fraction(0)
    if f.after is None:
        words = f"{show(before)} of {show(f.total)} would still be granted, which is too little for this call"
        return bar("eps", [(1 - float(before / f.total), 0.75)], words)
    this = max(Fraction(0), before - (f.after.eps or Fraction(0)))
    words = (
        f"this call takes {show(this)}; {show(f.after.eps or Fraction(0))} of {show(f.total)} would be left"
    )
    return bar("eps", [(1 - float(before / f.total), 0.75), (float(this / f.total), 0.35)], words)


def budget_plan(plan: BudgetPlan) -> str:
    """What each query gets, and which have been released."""
    unit = "rho" if plan.session.budget.eps is None else "eps"
    done = plan.releases
    rows = []
    for r in plan.table().iter_rows(named=True):
        error = r["expected_error"]
        paid = r[unit]
        first = paid is not None
        rows.append(
            (
                r["query"] if first else "",
                r["statistic"],
                r["mechanism"],
                "" if paid is None else f"{paid:.6g}",
                "" if error is None else f"± {error:,.6g}",
                ("released" if r["query"] in done else "" if r["decided"] else "may change") if first else "",
            )
        )
    spent = sum((plan._charged(x) for x in done.values()), Fraction(0))
    words = f"{show(spent)} of {show(plan.total)} spent, {len(done)} of {len(plan.queries)} queries released"
    return card(
        "budget plan",
        plan._name or f"{len(plan.queries)} queries",
        bar(unit, [(float(spent / plan.total), 0.75)], words),
        table(("query", "statistic", "mechanism", unit, "95 % error", ""), rows),
    )
