"""Advice: which mechanism and which accountant, for a question that is asked so many times under one budget.

Nothing here is a rule of thumb. Every pair is tried: the largest price at which the accountant grants all the
calls is found, the question is planned at that price with that mechanism, and the noise is compared.

Privacy: made from what was typed; no frame is read and nothing is charged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

import polars as pl

from dpframe.accounting.budgets import read_budget, read_policy
from dpframe.accounting.events import Cost, Number, rational, repeat
from dpframe.accounting.filter import ACCOUNTANTS, Budget, State
from dpframe.accounting.policy import Limits
from dpframe.api.prices import Types, replanned, whole_plan
from dpframe.base.arguments import check_whole, check_word
from dpframe.base.html import Page
from dpframe.base.wrong_calls import checked
from dpframe.errors import Arg, Call, Code, InputError, MechanismError, did_you_mean, show, typed
from dpframe.frames.columns import Column
from dpframe.mechanisms.auto import AUTO, LOSSES, MIXTURES, WORTH, Loss
from dpframe.mechanisms.base import Target
from dpframe.planning.pieces import Piece
from dpframe.planning.plan import Plan
from dpframe.planning.planner import make_plan
from dpframe.planning.request import Request
from dpframe.statistics import base as stats
from dpframe.statistics import count as counts
from dpframe.statistics import sum_mean as sums
from dpframe.statistics import vectors

QUESTIONS = ("count", "sum", "mean", "vector")
PURE = ("laplace", "staircase", "row")
GAUSSIAN = ("gaussian", "discrete_gaussian", "auto")  # auto: where it makes one Gaussian draw for a row
_TABLE: dict[str, Any] = {
    "mechanism": pl.String,
    "accountant": pl.String,
    "delta_calls": pl.Float64,
    "eps": pl.Float64,
    "delta": pl.Float64,
    "rho": pl.Float64,
    "loss": pl.Float64,
    "ratio": pl.Float64,
}


@dataclass(frozen=True, slots=True)
class Option:
    """One mechanism under one accountant: what each call may cost, and how noisy it then is."""

    mechanism: str
    accountant: str
    budget: Budget
    target: Target
    plan: Plan
    loss: float

    @property
    def call(self) -> str:
        """What each call says."""
        t = self.target
        return f"{Cost(t.eps, t.delta, t.rho).text()}, mechanism={self.mechanism!r}"

    @property
    def session(self) -> str:
        """The session that grants all calls."""
        b, policy = self.budget, self.plan.policy
        said = b.text()
        if policy.replace:
            said += f", neighbors={policy.neighbors!r}"
        if policy.contributions > 1:
            said += f", contributions={policy.contributions}"
        if b.eps is None:
            return f"dp.Session({said})"
        if b.delta_calls != ACCOUNTANTS[self.accountant].calls * b.delta:
            said += f", delta_calls={show(b.delta_calls)}"
        return (
            f"dp.Session({said}{'' if self.accountant == 'union' else f', accountant={self.accountant!r}'})"
        )


class Advice(Page):
    """What to write, why, and what else was tried.

    Attributes
    ----------
    mechanism, accountant : str
    session, call : str
        What to write: the session, and the price of each call.
    loss : float
        The noise of one number, RMSE (or E|X|), in the answer's unit (in rows, for a block).
    reasons : tuple of str
        Comparisons that decided.
    table : polars.DataFrame
        Everything that was tried, least noise first: ``mechanism``, ``accountant``, ``delta_calls``, ``eps``, ``delta``
        and ``rho`` of each call, ``loss``, ``ratio`` to the least.
    """

    def __init__(self, best: Option, options: list[Option], reasons: tuple[str, ...]) -> None:
        self.mechanism, self.accountant = best.mechanism, best.accountant
        self.session, self.call, self.loss = best.session, best.call, best.loss
        self.plan, self.reasons = best.plan, reasons
        ranked = sorted(options, key=lambda o: o.loss)
        rows = [
            (
                o.mechanism,
                o.accountant,
                float(o.budget.delta_calls),
                None if o.target.eps is None else float(o.target.eps),
                float(o.plan.event.delta),
                None if o.target.rho is None else float(o.target.rho),
                o.loss,
                o.loss / ranked[0].loss if ranked[0].loss else 1.0,
            )
            for o in ranked
        ]
        self.table = pl.DataFrame(rows, schema=_TABLE, orient="row")

    def __str__(self) -> str:
        lines = [
            f"mechanism {self.mechanism!r}, accountant {self.accountant!r}",
            f"  session     {self.session}",
            f"  each call   {self.call}",
        ]
        return "\n".join([*lines, *(f"  because     {r}" for r in self.reasons)])

    __repr__ = __str__


@checked(example="dp.advise(df.dp.plan.count(eps=0.5))")
def advise(
    plan: Any = None,
    *,
    eps: Number | None = None,
    delta: Number = 0,
    rho: Number | None = None,
    releases: int = 1,
    question: str | None = None,
    columns: int = 1,
    groups: int = 1,
    neighbors: str = "add_remove",
    loss: str = "rmse",
) -> Advice:
    """Say which mechanism and accountant give the least noise in your situation, and why.

    Parameters
    ----------
    plan : BoundPlan or Plan, optional
        The question, ``df.dp.plan.<verb>(...)``; its price is not used. Without one, a situation is described by
        ``question``, ``columns``, ``groups`` and ``neighbors``.
    eps, delta : number
        The whole budget, for all releases. Without delta the guarantee is pure.
    rho : number
        Instead of eps: the budget in zCDP; ``delta`` is then what single calls may use.
    releases : int, default 1
        How often a question like this is asked under the budget; you may choose each by earlier answers.
    question : {"count", "sum", "mean", "vector"}
        What is asked of each column (default "count"); "vector" is one vector with a norm, of ``columns`` components.
    columns : int, default 1
        Of how many columns, in one call.
    groups : int, default 1
        In how many groups one protected unit may be (its ``max_groups``); not how many groups there are.
    neighbors : {"add_remove", "replace_one"}
    loss : {"rmse", "l1"}
        What is made least.

    Returns
    -------
    Advice
        ``print`` it; ``.session`` and ``.call`` are what to write, ``.table`` is everything that was tried.

    Raises
    ------
    InputError
        For a situation that is not one, and a plan that chooses candidates (the exponential mechanism serves those).
    MechanismError
        When nothing can serve at this budget.

    Notes
    -----
    Privacy: every option keeps the whole budget, with calls chosen adaptively; see ``dpframe.accounting``. Of two
    within 2 % the simpler is taken. Nothing is charged.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.advise(eps=1)
    mechanism 'laplace', accountant 'union'
      session     dp.Session(eps=1)
      each call   eps=1, mechanism='laplace'
      because     The guarantee is pure: laws and accountants without delta serve, and only they.
      because     One release: nothing is added up.
    >>> dp.advise(eps=1, delta=1e-6, releases=200).mechanism
    'gaussian'
    """
    whole = _situation(plan, question, columns, groups, neighbors)
    check_word("loss", loss, LOSSES, "l1")
    check_whole("releases", releases, 1, 10**9, right=12, said="10**9")
    if (eps is None) == (rho is None):
        raise InputError(
            "The budget is eps= (with delta=) or rho=, one of them.",
            hint=(Arg("eps", 1), ", ", Arg("delta", 1e-6)),
        )
    if eps is not None:
        rational(eps, "eps")
    spare = rational(delta, "delta", zero=True, below=1)
    options = [
        o
        for budget, name in _budgets(eps, spare, rho)
        for o in _options(whole, budget, name, releases, cast(Loss, loss))
    ]
    if not options:
        raise MechanismError(
            f"Nothing can serve {releases:,} such calls at this budget.",
            hint="a larger eps=, or fewer releases=",
        )
    best = _least(options, WORTH)
    return Advice(best, options, tuple(_reasons(best, options, releases)))


def _situation(plan: Any, question: Any, columns: Any, groups: Any, neighbors: Any) -> Plan:
    if plan is not None:
        bare, _ = whole_plan(plan)
        if (question, columns, groups, neighbors) != (None, 1, 1, "add_remove"):
            raise InputError(
                "A plan says what is asked; question=, columns=, groups= and neighbors= go without one.",
                hint=Call("dp.advise", Code("plan"), eps=1),
            )
        if bare.request is None or not bare.outputs or not all(isinstance(p, Piece) for p in bare.pieces):
            raise InputError(
                "This plan chooses (candidates, or keys), for which there is one mechanism.",
                hint="docs/selection.md",
            )
        return bare
    asked = "count" if question is None else question
    if asked not in QUESTIONS:
        raise InputError(f"question={typed(question)} is not one. {did_you_mean(str(question), QUESTIONS)}")
    for name, n in (("columns", columns), ("groups", groups)):
        check_whole(name, n, 1, 4096, right=3)
    policy = read_policy({"neighbors": neighbors, "unit": "unit" if groups > 1 else None})
    names = [f"x{i}" for i in range(columns)]
    types = [Column(n, "float", "float", True, pl.Float64) for n in names]
    types += [
        Column("group", "int", "Int64", False, pl.Int64),
        Column("unit", "int", "Int64", False, pl.Int64),
    ]
    made: tuple[stats.Aggregate, ...]
    if asked == "vector":
        made = (vectors.vector_sum(names, norm=1),)
    elif asked == "count":
        made = (counts.count(),) if columns == 1 else tuple(counts.count(n) for n in names)
    else:
        verb = sums.clip_sum if asked == "sum" else sums.clip_mean
        made = tuple(verb(n, bounds=(0, 1)) for n in names)
    grouped = groups > 1
    request = Request(
        made,
        Target(Fraction(1)),
        by=("group",) if grouped else None,
        keys=list(range(groups)) if grouped else None,
        limits=Limits(groups, 1) if grouped else Limits(),
    )
    return make_plan(request, Types(types), policy)


def _budgets(eps: Any, delta: Fraction, rho: Any) -> Iterator[tuple[Budget, str]]:
    """Every way to hold the budget, the simplest first."""
    if rho is not None:
        yield read_budget({"delta_calls": delta, "rho": rho}), "union"
        return
    for name, rules in ACCOUNTANTS.items():
        for calls in dict.fromkeys((rules.calls * delta, Fraction(0))):
            try:
                yield read_budget({"eps": eps, "delta": delta, "delta_calls": calls}, name), name
            except InputError:  # this accountant can't hold it
                continue


def _options(whole: Plan, budget: Budget, name: str, releases: int, loss: Loss) -> Iterator[Option]:
    for mechanism in (*PURE, *GAUSSIAN, *(m for m in AUTO if m not in (*PURE, *GAUSSIAN)), *MIXTURES):
        for target in _targets(mechanism, budget, releases):
            found = _largest(whole, budget, mechanism, target, releases)
            drawn = found is not None and any(p.draw is not None for p in found.parts)
            if found is not None and (mechanism != "auto" or drawn):
                yield Option(mechanism, name, budget, found.target, found, _noise(found, loss))


def _targets(mechanism: str, budget: Budget, releases: int) -> Iterator[Target]:
    """The prices at which an accountant may grant all calls, the largest of each kind."""
    shares: list[Fraction] = []
    if budget.eps is not None and budget.rules.by_eps:
        shares.append(budget.eps / releases)
    if budget.rho_limit:
        shares.append(budget.rules.pure_eps(budget, budget.rho_limit / releases))
    eps, calls = max(shares, default=Fraction(0)), budget.delta_calls / releases
    if mechanism in GAUSSIAN and budget.rho_limit:
        yield Target(rho=_digits(budget.rho_limit / releases))
    if not eps:
        return
    if mechanism in PURE:
        yield Target(_digits(eps))
    elif mechanism not in ("discrete_gaussian", "auto") and calls:
        yield Target(_digits(eps), _digits(calls))


def _largest(whole: Plan, budget: Budget, mechanism: str, target: Target, releases: int) -> Plan | None:
    """The plan at ``target``, if all calls are granted; at a higher eps where the accountant knows more of the law."""

    def granted(t: Target) -> Plan | None:
        try:
            made = replanned(whole, t, mechanism)
        except MechanismError:
            return None
        fits = budget.grant(repeat(made.event, releases), State(), "")[0] is not None
        return replace(made, target=t) if fits else None

    best = granted(target)
    if mechanism != "laplace" or budget.order is None or target.eps is None:
        return best
    low, high = Fraction(1), Fraction(4)
    for _ in range(12):
        middle = (low + high) / 2
        more = granted(Target(_digits(target.eps * middle)))
        low, high, best = (middle, high, more) if more is not None else (low, middle, best)
    return best


def _least(options: list[Option], worth: float) -> Option:
    """The first with the least noise; a later one must have less than ``worth`` times a former's."""
    best = options[0]
    for o in options[1:]:
        if o.loss < best.loss * worth:
            best = o
    return best


def _noise(plan: Plan, loss: Loss) -> float:
    """The noise of one number of the first output, in its unit."""
    o = plan.outputs[0]
    law = plan.laws[o.answer.coordinates()[0]]
    return float((law.std if loss == "rmse" else law.mean_abs) * float(plan.output_unit(o)))


def _digits(x: Fraction) -> Fraction:
    """Four digits, rounded down, so that what is written is granted."""
    step = Fraction(10) ** (math.floor(math.log10(x)) - 3)
    return x // step * step


def _reasons(best: Option, options: list[Option], releases: int) -> Iterator[str]:
    if not best.budget.delta and best.budget.eps is not None:
        yield "The guarantee is pure: laws and accountants without delta serve, and only they."
    if releases == 1:
        yield "One release: nothing is added up."
    if any(p.draw is not None for p in best.plan.parts):
        found = "" if best.mechanism == "auto" else "; mechanism='auto' finds it, too"
        yield f"One draw covers what a row adds to all that is asked, instead of a part of the budget for each{found}."
    l1, l2 = best.plan.sensitivity(best.plan.outputs[0])
    fused = best.plan.parts[best.plan.outputs[0].part].fused
    if l1 * fused > l2 * math.sqrt(fused) * 1.001:
        yield (
            f"One unit moves several numbers together: sensitivity {l1 * fused:.4g} in L1, {l2 * math.sqrt(fused):.4g} in"
            " L2. Gaussian noise grows with the second, pure laws with the first."
        )
    if best.accountant == "gdp":
        yield "This accountant grants Gaussian noise alone; with other questions in the session, see the others."
    kinds = [PURE, GAUSSIAN, tuple(m for m in (*AUTO, *MIXTURES) if m not in (*PURE, *GAUSSIAN))]
    words = ["pure laws", "Gaussian noise", "other laws with a delta"]
    for kind, word in zip(kinds, words):
        rest = [o for o in options if o.mechanism in kind]
        if best.mechanism in kind or not rest:
            continue
        other = _least(rest, 0.999)
        yield _beside(f"The best of {word}, {other.mechanism!r} under {other.accountant!r}", other, best)
    for name in ACCOUNTANTS:
        same = [o for o in options if o.accountant == name and o.mechanism == best.mechanism]
        if name == best.accountant or not same:
            continue
        other = _least(same, 0.999)
        if not 1 - 1e-6 < other.loss / best.loss < 1 + 1e-3:
            yield _beside(f"With accountant={name!r} {best.mechanism!r}", other, best)


def _beside(what: str, other: Option, best: Option) -> str:
    ratio = other.loss / best.loss
    if ratio >= 1.0005:
        return f"{what} has {ratio:.4g} times the noise."
    return f"{what} has {100 * (1 - ratio):.2g} % less noise; within 2 % the simpler one is taken."
