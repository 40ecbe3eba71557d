"""The session's filter: which charges are granted.

A session opens with a target and a split of its delta that never moves: ``delta_calls`` for events
that carry a delta of their own, ``delta_z = delta - delta_calls`` for converting rho. An event
carries (eps_i, delta_i, rho_i). It is granted iff the deltas stay within ``delta_calls`` and

* (A) the sum of eps_i over *all* events is at most eps, or
* (B) the sum of rho_i over *all* events is at most rho(eps, delta_z).

That is the accountant ``union``. Others use A alone or B alone, with another rho_i and another
conversion (the classes below); the rule is the same.

Privacy: every event is (1 - delta_i) * (a pair that is eps_i-DP and rho_i-zCDP) + delta_i * (anything).
The bad parts weigh at most delta_calls together. Of the rest, a transcript that ends within A has
\\|loss\\| <= eps and adds nothing to delta; any other ends within B, where B held all along because sums
only grow, with the probability it has under the filter that halts on the constant rho(eps, delta_z),
so those add at most delta_z. Costs may be chosen adaptively: targets and split are constants, and
refusals depend on the transcript only. (Not sound: a target that moves with the deltas spent, an A
that counts some events only, an A that may use all of delta beside B.)

An event without eps (``rho=`` calls; Gaussian events when delta_calls is used up) closes A for good.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from dpframe.accounting.conversion import eps_of_mu, eps_of_pure_rho, eps_of_rho, mu_of_eps, rho_of_eps
from dpframe.accounting.events import Cost, Event, round_down, round_up
from dpframe.accounting.renyi import chosen_order, eps_of_rho_at, pure_eps_of_rho_at, rho_at, rho_of_eps_at
from dpframe.errors import show

ZERO = Fraction(0)
HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class State:
    """Sums over everything granted so far, as charged. ``eps`` is None once A is closed."""

    eps: Fraction | None = ZERO
    delta: Fraction = ZERO
    rho: Fraction = ZERO
    closed_by: str | None = None

    def after(self, e: Event, name: str) -> State:
        """The state after an event, which is given as it is charged."""
        closed = self.closed_by or (name if e.eps is None else None)
        eps = None if self.eps is None or e.eps is None else self.eps + e.eps
        return State(eps, self.delta + e.delta, self.rho + e.rho, closed)

    def since(self, before: State) -> Cost:
        """What was charged between an earlier state and this one."""
        eps = None if self.eps is None or before.eps is None else self.eps - before.eps
        return Cost(eps, self.delta - before.delta, self.rho - before.rho)


@dataclass(frozen=True, slots=True)
class Budget:
    """A fixed target. Without ``eps`` it is a rho budget; without either it is no limit.

    Attributes
    ----------
    eps : Fraction or None
    delta, delta_calls : Fraction
    rho : Fraction or None
        What rho may add up to, where that is typed or a share, rather than computed from (eps, delta_z).
    accountant : str
        A key of ``ACCOUNTANTS``; a rho budget of "union" is one of "zcdp".
    order : Fraction or None
        Of "rdp".
    """

    eps: Fraction | None = None
    delta: Fraction = ZERO
    delta_calls: Fraction = ZERO
    rho: Fraction | None = None
    accountant: str = "union"
    order: Fraction | None = None

    def text(self, sign: str = "=", *, zeros: bool = False) -> str:
        """The budget as one would type it: eps (and delta), or rho (and delta_calls); see :meth:`Cost.text`."""
        if self.eps is not None:
            return Cost(self.eps, self.delta).text(sign, zeros=zeros)
        calls = f", delta_calls{sign}{show(self.delta_calls)}" if self.delta_calls or zeros else ""
        return f"rho{sign}{show(self.rho or ZERO)}{calls}"

    @property
    def rules(self) -> Union:
        in_rho = self.eps is None and self.rho is not None and self.accountant == "union"
        return ACCOUNTANTS["zcdp" if in_rho else self.accountant]

    @property
    def unusual(self) -> str:
        """The accountant, where it is not the one that a budget of this kind has unless one says."""
        usual = ("zcdp",) if self.eps is None else ("union",) if self.delta else ("union", "sum")
        at = f" at order {float(self.order):.6g}" if self.order else ""
        return "" if self.rules.name in usual else self.rules.name + at

    @property
    def unlimited(self) -> bool:
        return self.eps is None and self.rho is None

    @property
    def delta_z(self) -> Fraction:
        return self.delta - self.delta_calls

    @property
    def rho_limit(self) -> Fraction:
        """What the sum of rho may reach (B)."""
        return self.rho if self.rho is not None else self.rules.limit(self)

    def grant(self, e: Event, state: State, name: str) -> tuple[State | None, str]:
        """(the next state, "") or (None, what is short: "eps", "delta" or "rho", or "law").

        "law" means that the accountant can't add up events of this kind at all.
        """
        charged = self.charged(e, state)
        if charged is None:
            return None, "law"
        after, short = self.admit(charged, state, name)
        return after, "delta" if short == "eps" and self.rules.by_eps and charged is not e else short

    def charged(self, e: Event, state: State) -> Event | None:
        """The event as it is charged; None if it is not of a kind that the accountant can add up."""
        return e if self.unlimited else self.rules.charged(self, e, state)

    def admit(self, charged: Event, state: State, name: str) -> tuple[State | None, str]:
        """As :meth:`grant`, for an event in the form in which it is charged."""
        after = state.after(charged, name)
        if self.unlimited:
            return after, ""
        if after.delta > self.delta_calls:
            return None, "delta"
        by_eps = self.rules.by_eps and self.eps is not None and after.eps is not None
        if (by_eps and after.eps <= self.eps) or after.rho <= self.rho_limit > 0:  # type: ignore[operator]
            return after, ""
        return None, "rho" if self.eps is None else "eps"

    def spent(self, state: State) -> Cost:
        """The odometer: the least eps that describes what was granted, its delta, and the sum of rho."""
        best, delta = state.eps, state.delta
        if self.delta_z > 0 and state.rho > 0 and self.rho_limit > 0:
            by_rho = round_up(self.rules.eps_of(self, state.rho))
            if best is None or by_rho < best:
                best, delta = by_rho, delta + self.delta_z
        return Cost(best, delta, state.rho)

    def remaining(self, state: State) -> Cost:
        """The largest pure eps that would be granted now, and what is left of delta_calls and of rho."""
        left_rho = max(ZERO, self.rho_limit - state.rho)
        by_rho = self.rules.pure_eps(self, left_rho) if left_rho else ZERO
        by_eps = ZERO
        if self.eps is not None and state.eps is not None and self.rules.by_eps:
            by_eps = max(ZERO, self.eps - state.eps)
        return Cost(max(by_eps, by_rho), max(ZERO, self.delta_calls - state.delta), left_rho)

    def share(self, fraction: Fraction, by: str) -> Budget:
        """An exact share of an unspent budget (see ``Session.split``).

        Shares of eps are granted by sums of eps alone, shares of rho by sums of rho alone, each
        measured as this budget measures it.
        """
        calls = self.delta_calls * fraction
        if by == "eps" and self.eps is not None:
            return Budget(self.eps * fraction, calls, calls, accountant="sum")
        alone = "zcdp" if self.rules.by_eps else self.accountant
        return replace(
            self, eps=None, delta=calls, delta_calls=calls, rho=self.rho_limit * fraction, accountant=alone
        )


# ---- the accountants ----


class Union:
    """Sums of eps, or sums of rho: whichever grants."""

    name = "union"
    by_eps = True  # whether sums of eps grant
    shares = "eps"  # what ``split`` shares
    auto = "auto"  # the mechanism of calls that name none
    calls = HALF  # the part of delta that single calls may use, unless one says

    def charged(self, budget: Budget, e: Event, state: State) -> Event | None:
        """The event as it is charged; None if it is not of a kind that can be added up.

        Gaussian events fall back to rho, and end the adding up of eps, when no delta is left for them.
        """
        if e.delta_alone is not None and e.eps is not None and state.delta + e.delta > budget.delta_calls:
            return Event(None, e.delta_alone, e.rho)
        return e

    def limit(self, budget: Budget) -> Fraction:
        """What rho may add up to for (eps, delta_z)."""
        return ZERO if budget.eps is None else rho_of_eps(budget.eps, budget.delta_z)

    def eps_of(self, budget: Budget, rho: Fraction) -> float:
        """The eps that a sum of rho stands for at delta_z, rounded up."""
        return eps_of_rho(float(rho), float(budget.delta_z))

    def pure_eps(self, budget: Budget, rho: Fraction) -> Fraction:
        """The largest eps of a pure event that costs at most ``rho``."""
        return eps_of_pure_rho(rho)


class Sum(Union):
    """Sums of eps and of delta; Gaussian events by their stand-alone (eps, delta)."""

    name, calls = "sum", Fraction(1)

    def charged(self, budget: Budget, e: Event, state: State) -> Event | None:
        return None if e.eps is None else e

    def limit(self, budget: Budget) -> Fraction:
        return ZERO

    def eps_of(self, budget: Budget, rho: Fraction) -> float:
        return math.inf


class ZCDP(Union):
    """Sums of rho. Gaussian events carry no delta of their own; pure ones keep an eps for ``spent``."""

    name, by_eps, shares = "zcdp", False, "rho"

    def charged(self, budget: Budget, e: Event, state: State) -> Event | None:
        return e if e.delta_alone is None else Event(None, e.delta_alone, e.rho)


class RDP(ZCDP):
    """Sums of the Renyi divergence at the session's order."""

    name = "rdp"

    def charged(self, budget: Budget, e: Event, state: State) -> Event | None:
        eps = e.eps if e.delta_alone is None else None
        return Event(eps, e.least_delta, rho_at(e, _order(budget)))

    def limit(self, budget: Budget) -> Fraction:
        return ZERO if budget.eps is None else rho_of_eps_at(budget.eps, _order(budget), budget.delta_z)

    def eps_of(self, budget: Budget, rho: Fraction) -> float:
        return eps_of_rho_at(float(rho), float(_order(budget)), float(budget.delta_z))

    def pure_eps(self, budget: Budget, rho: Fraction) -> Fraction:
        return pure_eps_of_rho_at(rho, _order(budget))


class GDP(ZCDP):
    """Sums of mu**2 / 2 of Gaussian noise, and the deltas of keys that were found with it."""

    name, calls, auto = "gdp", ZERO, "gaussian"

    def charged(self, budget: Budget, e: Event, state: State) -> Event | None:
        if not all(leaf.kind in ("gaussian", "keys") for leaf, _ in e.leaves()):
            return None
        return Event(None, e.least_delta, e.rho)

    def limit(self, budget: Budget) -> Fraction:
        return ZERO if budget.eps is None else round_down(mu_of_eps(budget.eps, budget.delta_z) ** 2 / 2)

    def eps_of(self, budget: Budget, rho: Fraction) -> float:
        return eps_of_mu(math.sqrt(2 * float(rho)) * (1 + 2.0**-50), float(budget.delta_z))

    def pure_eps(self, budget: Budget, rho: Fraction) -> Fraction:
        return ZERO


def _order(budget: Budget) -> Fraction:
    assert budget.order is not None
    return budget.order


ACCOUNTANTS = {a.name: a for a in (Union(), Sum(), ZCDP(), RDP(), GDP())}


def others(budget: Budget, e: Event) -> list[str]:
    """The other accountants that would grant ``e`` first thing, at this (eps, delta) and their usual delta_calls."""
    if budget.eps is None:
        return []
    able = []
    for name, a in ACCOUNTANTS.items():
        calls = a.calls * budget.delta
        order = chosen_order(budget.eps, budget.delta - calls) if name == "rdp" and budget.delta else None
        if name == "rdp" and order is None:
            continue
        fresh = replace(budget, delta_calls=calls, accountant=name, order=order)
        if name != budget.accountant and fresh.grant(e, State(), "")[0] is not None:
            able.append(name)
    return able
