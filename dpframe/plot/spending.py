"""Pictures of prices: error against what a question may cost, and a budget as it is spent."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpframe.accounting.events import Number
from dpframe.api.prices import error_of, priced, replanned, whole_plan
from dpframe.base.arguments import check_word
from dpframe.base.wrong_calls import checked
from dpframe.errors import Arg, Call, Code, InputError, MechanismError, wrong_type
from dpframe.plot.charts import alt, data, layers, short
from dpframe.session.forecast import forecast

if TYPE_CHECKING:
    import altair

    from dpframe.api.bound_plan import BoundPlan
    from dpframe.planning.plan import Plan


@checked(example="dp.plot.tradeoff(plan, eps=[0.1, 0.5, 1])")
def tradeoff(
    plan: BoundPlan | Plan,
    *,
    eps: Any = None,
    rho: Any = None,
    mechanisms: Sequence[str] | None = None,
    rows: Number | None = None,
    relative_to: Number | None = None,
) -> altair.LayerChart:
    """Draw the expected error of a question against its price: the privacy-utility curve.

    Parameters
    ----------
    plan, eps, rho, rows
        As in :func:`dpframe.tradeoff`.
    mechanisms : list of str, optional
        Draw a curve for each (default: the plan's own choice). One is missing where it can't serve.
    relative_to : number, optional
        An expected answer: errors are then shares of it.

    Returns
    -------
    altair.LayerChart
        A curve for each output or mechanism, and a rule at the eps that would still be granted.

    Raises
    ------
    InputError, MechanismError, TypeError
        As :func:`dpframe.tradeoff`; nothing is spent.

    Notes
    -----
    Privacy: made from the plan and from the account; no frame is read.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> plan = pl.DataFrame({"x": [1.0]}).dp.plan.clip_sum("x", bounds=(0, 10), eps=1)
    >>> chart = dp.plot.tradeoff(plan, eps=[0.1, 1, 10], mechanisms=["laplace", "staircase"])
    >>> len(chart.to_dict()["layer"])
    2
    """
    bare, bound = whole_plan(plan)
    asked = priced(bare, bound, eps, rho, rows, relative_to)
    axis, request = asked.axis, bare.request
    assert request is not None
    if mechanisms is not None and (isinstance(mechanisms, str) or not len(mechanisms)):
        raise InputError(
            Arg("mechanisms", mechanisms), " must be a list of names.", hint="['laplace', 'gaussian']"
        )
    several = len(bare.outputs) > 1
    points: list[dict[str, Any]] = []
    for name in mechanisms or (None,):
        for price in asked.prices:
            try:
                made = replanned(bare, asked.target(price, request.target.delta), name)
            except MechanismError:
                if mechanisms is None or len(mechanisms) == 1:
                    raise
                continue
            for o in made.outputs:
                error = error_of(made, o, asked.rows)
                curve = [x for x in (name, o.name if several else None) if x] or [
                    made.parts[o.part].mechanism
                ]
                points.append(
                    {axis: float(price), "error": short(error / asked.expected), "curve": ", ".join(curve)}
                )
    if mechanisms is None and not several:
        for p in points:
            p["curve"] = bare.outputs[0].name
    ahead = forecast(None if bound is None else bound._session, bare.event)
    return _curves(points, axis, bare.describe(), ahead.before, relative_to is not None)


def _curves(
    points: list[dict[str, Any]], axis: str, title: str, left: Any, relative: bool
) -> altair.LayerChart:
    log = alt.Scale(type="log")
    shown = "95 % error, of the expected answer" if relative else "95 % error (±)"
    y = alt.Y("error:Q", title=shown, scale=log, axis=alt.Axis(format="%") if relative else alt.Axis())
    x = alt.X(f"{axis}:Q", title=axis, scale=log)
    base = data(points).encode(
        x=x, y=y, color=alt.Color("curve:N", title=None, legend=alt.Legend(orient="top"))
    )
    made = [
        base.mark_line(),
        base.mark_point(filled=True).encode(tooltip=["curve:N", f"{axis}:Q", "error:Q"]),
    ]
    amount = None if left is None else left.eps if axis == "eps" else left.rho
    if amount:
        rule = data([{axis: float(amount), "what": "would still be granted"}])
        made.append(rule.mark_rule(strokeDash=[4, 4]).encode(x=f"{axis}:Q", tooltip=["what:N", f"{axis}:Q"]))
    return layers(*made, title=title)


@checked(example="dp.plot.budget(s)")
def budget(spent: Any, *, by: str = "charge") -> altair.LayerChart:
    """Draw a budget as it is spent: what had been charged after each call.

    Parameters
    ----------
    spent : Session or Ledger
    by : {"charge", "time"}
        The horizontal axis: the number of the charge, or when it was charged (UTC).

    Returns
    -------
    altair.LayerChart
        The sum of eps (of rho, where a charge has no eps), the whole budget as a rule, and a mark for each
        charge; hollow for a question that was asked before. What a ledger's window has let go is still added up.

    Raises
    ------
    TypeError
        For anything but a session or a ledger.
    InputError
        For ``by`` that is neither, and when nothing was charged.

    Notes
    -----
    Privacy: an account is public; reading it costs nothing.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"x": [1, 2]})
    >>> with dp.Session(eps=1) as s:
    ...     n, m = df.dp.count(eps=0.25), df.dp.count("x", eps=0.5)
    >>> [line.split(",")[1] for line in dp.plot.budget(s).layer[0].data.values.splitlines()]
    ['total', '0.0', '0.25', '0.75']
    """
    from dpframe.ledger.book import Ledger
    from dpframe.session.payer import standing
    from dpframe.session.session import Session

    check_word("by", by, ("charge", "time"), "time")
    if isinstance(spent, Session):
        lines = [
            (e.cost.eps, e.cost.rho, e.question, e.label, e.time, e.repeat_of is not None)
            for e in standing(spent).entries
            if not e.replayed
        ]
        whole = spent.budget if spent.ledger is None else spent.ledger.budget
    elif isinstance(spent, Ledger):
        asked: set[str] = set()
        lines = []
        for x in spent.entries():
            lines.append((x.cost.eps, x.cost.rho, x.question, x.label, x.time, x.fingerprint in asked))
            asked.add(x.fingerprint)
        whole = spent.budget
    else:
        raise wrong_type(
            f"A session or a ledger is drawn, not a {type(spent).__name__}.",
            hint=Call("dp.plot.budget", Code("s")),
        )
    if not lines:
        raise InputError(
            "Nothing was charged yet, so there is nothing to draw.", hint=Call("df.dp.count", eps=0.1)
        )
    in_eps = (whole.unlimited or (whole.eps is not None and whole.rules.by_eps)) and all(
        x[0] is not None for x in lines
    )
    limit = None if whole.unlimited else whole.eps if in_eps else whole.rho_limit
    unit, total = "eps" if in_eps else "rho", Fraction(0)
    points: list[dict[str, Any]] = [
        {"charge": 0, "total": 0.0, "time": lines[0][4].isoformat(), "first": True}
    ]
    for i, (e, rho, question, label, time, again) in enumerate(lines, 1):
        cost = (e if in_eps else rho) or Fraction(0)
        total += cost
        points.append(
            {
                "charge": i,
                "total": float(total),
                "cost": float(cost),
                "question": question,
                "label": label or "",
                "time": time.isoformat(),
                "asked": "again" if again else "first",
            }
        )
    x = (
        alt.X("charge:Q", title="charge", axis=alt.Axis(tickMinStep=1))
        if by == "charge"
        else alt.X("time:T", title="UTC")
    )
    base = data(points).encode(x=x, y=alt.Y("total:Q", title=f"{unit} charged"))
    fill = alt.condition("datum.asked == 'again'", alt.value("white"), alt.value("#4c78a8"))
    marks = base.transform_filter("isValid(datum.cost)").mark_point(size=60, opacity=1)
    marks = marks.encode(
        fill=fill, tooltip=["question:N", "label:N", "cost:Q", "total:Q", "asked:N", "time:T"]
    )
    made = [base.mark_area(interpolate="step-after", opacity=0.25, line=True), marks]
    if limit:
        made.append(
            data([{"total": float(limit)}])
            .mark_rule(strokeDash=[4, 4])
            .encode(y="total:Q", tooltip=["total:Q"])
        )
    return layers(
        *made,
        title=f"Spent: {float(total):.4g}" + (f" of {float(limit):.4g}" if limit else ", without a limit"),
    )
