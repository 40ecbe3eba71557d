"""What is added up, and up to where: one small class for each accountant of a session.

==========  =======================================================  =======================
accountant  adds up                                                  takes
==========  =======================================================  =======================
``union``   eps (A), or rho where that is not enough (B)             everything
``sum``     eps and delta                                            everything with an eps
``zcdp``    rho                                                      everything
``rdp``     Renyi divergence at one order, fixed when opened         everything
``gdp``     mu**2 of Gaussian noise, as rho = mu**2 / 2              Gaussian noise
==========  =======================================================  =======================

Privacy: each is a filter that holds when costs are chosen adaptively, as its target is a constant.

* sum: basic composition (Rogers, Roth, Ullman, Vadhan, "Privacy odometers and filters", 2016).
* zcdp, rdp: the divergence at any one fixed order adds up, so a process that halts on a constant
  stays below it (Feldman and Zrnic 2021; for zCDP the order is that at which the constant converts).
* gdp: mu**2 adds up for Gaussian noise (Smith and Thakurta, "Fully adaptive composition for Gaussian
  differential privacy", 2022). Rounding is post-processing. The discrete Gaussian is *not* Gaussian
  noise in this sense (its curve lies above), nor is anything pure.

The deltas of single events weigh at most ``delta_calls`` in all, a constant as well; the rest of
delta is for the conversion (``sum`` needs none). ``union`` is argued in ``dpframe.accounting.filter``.
Privacy-loss distributions are not here: what they add up is no filter (``dpframe.accounting.pld``).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dpframe.accounting.conversion import eps_of_mu, eps_of_rho, mu_of_eps, rho_of_eps
from dpframe.accounting.renyi import chosen_order, eps_of_rho_at, pure_eps_of_rho_at, rho_at, rho_of_eps_at
from dpframe.budget import Event, round_down
from dpframe.mechanisms.laplace import eps_of_pure_rho

if TYPE_CHECKING:
    from dpframe.accounting.filter import Budget, State

ZERO = Fraction(0)
HALF = Fraction(1, 2)


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
    from dpframe.accounting.filter import State

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
