"""Reports: what a finished transcript adds up to under some accountant. A reading, not a gate.

Privacy: a report reads public events and grants nothing. It describes the transcript truly where what
was asked did not depend on earlier answers; where it did, only the session's own budget holds. By how much a reading can be
exceeded otherwise: ``dpframe.accounting.pld``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpframe.accounting import pld
from dpframe.accounting.conversion import best_order, eps_of_mu, eps_of_rho
from dpframe.accounting.events import Event
from dpframe.accounting.renyi import eps_of_rho_at, pure_eps, rho_at
from dpframe.base.html import Page
from dpframe.errors import Arg, Call, Code, InputError

READERS = ("pld", "rdp", "gdp", "zcdp", "sum")


@dataclass(frozen=True, slots=True)
class Report(Page):
    """What a transcript adds up to.

    Attributes
    ----------
    accountant : str
    eps : float
        Rounded up; inf where this accountant can't say anything at this delta.
    delta : float
        At which eps holds.
    charges : int
        How many charges were added up.
    is_gate : bool
        False: no charge was granted by this.
    """

    accountant: str
    eps: float
    delta: float
    charges: int
    is_gate: bool = False

    def __str__(self) -> str:
        many = f"{self.charges} charge{'s' * (self.charges != 1)}"
        return (
            f"{many}, added up by {self.accountant}: eps={self.eps:.6g}, delta={self.delta:.6g}"
            " (a report for plans that were fixed beforehand, not a gate)"
        )

    def __repr__(self) -> str:
        return f"<dpframe report: {self}>"


def report(events: Sequence[Event], accountant: str, delta: Fraction) -> Report:
    """Add up ``events``, each as it was asked for.

    Parameters
    ----------
    events : sequence of Event
    accountant : {"pld", "rdp", "gdp", "zcdp", "sum"}
        "rdp" takes the best order, afterwards. "gdp" takes Gaussian noise as it is and anything eps-DP
        as Gaussian noise of mu = 2 Phi^-1(e**eps / (1 + e**eps)): its trade-off curve is convex and has the two chords
        of randomised response.
    delta : Fraction
        "sum" reports the sum of deltas instead.

    Raises
    ------
    InputError
        For an unknown accountant, no delta, or an event that "sum" or "gdp" can't add up.
    """
    if not isinstance(accountant, str) or accountant not in READERS:
        raise InputError(
            Arg("accountant", accountant),
            " is none that reports.",
            hint=f"one of {', '.join(map(repr, READERS))}",
        )
    if accountant == "sum":
        return _sum(events)
    if not delta:
        raise InputError(
            f"A report by {accountant!r} needs a delta, and this session has none.",
            hint=f"report(accountant={accountant!r}, delta=1e-6), or accountant='sum'",
        )
    leaves: Counter[Event] = Counter()
    for e in events:
        for leaf, times in e.leaves():
            leaves[leaf] += times
    if accountant == "pld":
        eps = _pld(leaves, float(delta))
    else:
        left = float(delta - sum((e.least_delta for e in events), Fraction(0)))
        eps = {"rdp": _rdp, "gdp": _gdp, "zcdp": _zcdp}[accountant](leaves, left)
    plain = [e.eps for e in events]
    if None not in plain and sum(e.delta for e in events) <= delta:  # adding up is a reading, too
        eps = min(eps, _sum(events).eps)
    return Report(accountant, eps, float(delta), len(events))


def _sum(events: Sequence[Event]) -> Report:
    if any(e.eps is None for e in events):
        raise InputError(
            "A call with rho= has no eps to be added up.", hint=Call("report", accountant="zcdp")
        )
    eps = sum((e.eps for e in events if e.eps is not None), Fraction(0))
    delta = sum((e.delta for e in events), Fraction(0))
    return Report("sum", float(eps), float(delta), len(events))


def _zcdp(leaves: Counter[Event], delta: float) -> float:
    return eps_of_rho(float(sum(e.rho * k for e, k in leaves.items())), delta)


def _rdp(leaves: Counter[Event], delta: float) -> float:
    """The least over a thousand orders around that of zCDP."""
    rho = float(sum(e.rho * k for e, k in leaves.items()))
    if not 0 < delta < 1 or not rho:
        return eps_of_rho(rho, delta)
    least = best_order(rho, delta)

    def at(u: float) -> float:
        order = 1 + Fraction(least * math.exp(u)).limit_denominator(1 << 20)
        total = sum(rho_at(e, order) * k for e, k in leaves.items())
        return eps_of_rho_at(float(total), float(order), delta)

    coarse = min((i / 8 for i in range(-16, 65)), key=at)
    return min(at(coarse + i / 128) for i in range(-16, 17))


def _gdp(leaves: Counter[Event], delta: float) -> float:
    from scipy.special import ndtri

    squares = 0.0
    for e, k in leaves.items():
        eps = pure_eps(e)
        if e.kind == "gaussian":
            squares += k * 2 * float(e.rho)
        elif eps is not None:
            squares += k * float(2 * ndtri(1 / (1 + math.exp(-float(eps))))) ** 2 * (1 + 1e-12)
        else:
            raise InputError(
                f"GDP can't add up {e.kind or 'a charge that is known by rho alone'}.",
                hint=Arg("accountant", Code("'pld' or 'zcdp'")),
            )
    return eps_of_mu(math.sqrt(squares) * (1 + 1e-14), delta)


def _pld(leaves: Counter[Event], delta: float) -> float:
    """Charges that are known by rho alone are first added up in rho, which is tighter than their curves."""
    bare = Counter({e: k for e, k in leaves.items() if not _has_law(e)})
    rho = sum((e.rho * k for e, k in bare.items()), Fraction(0))
    if rho:
        leaves = leaves - bare
        leaves[Event(None, sum((e.least_delta * k for e, k in bare.items()), Fraction(0)), rho)] += 1
    step = pld.step_for((float(e.rho), k) for e, k in leaves.items())
    return pld.Composition([(losses_of(e, step), k) for e, k in leaves.items()]).eps_of(delta)


def _has_law(leaf: Event) -> bool:
    alone = leaf.moving == 1 and leaf.steps > 0
    return (
        leaf.kind == "gaussian" or pure_eps(leaf) is not None or (leaf.kind == "discrete_gaussian" and alone)
    )


def losses_of(leaf: Event, step: float) -> pld.Losses:
    """The pair that dominates an event without parts (see ``dpframe.accounting.pld``)."""
    eps = pure_eps(leaf)
    if leaf.kind == "gaussian":
        return pld.gaussian(math.sqrt(2 * float(leaf.rho)) * (1 + 2.0**-50), step)
    if leaf.kind == "laplace" and leaf.moving == 1 and leaf.steps and eps is not None:
        return pld.laplace(float(eps), leaf.steps, step)
    if leaf.kind == "discrete_gaussian" and leaf.moving == 1 and leaf.steps:
        return pld.lattice(float(leaf.rho), leaf.steps, step)
    if eps is not None:
        return pld.response(float(eps), step).weakened(float(leaf.delta))
    return pld.concentrated(float(leaf.rho), step).weakened(float(leaf.least_delta))
