"""The session's filter: which charges are granted.

A session opens with a target and a split of its delta that never moves: ``delta_calls`` for events
that carry a delta of their own, ``delta_z = delta - delta_calls`` for converting rho. An event
carries (eps_i, delta_i, rho_i). It is granted iff the deltas stay within ``delta_calls`` and

* (A) the sum of eps_i over *all* events is at most eps, or
* (B) the sum of rho_i over *all* events is at most rho(eps, delta_z).

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

from dataclasses import dataclass, replace
from fractions import Fraction

from dpframe.accounting.conversion import eps_of_rho, rho_of_eps
from dpframe.budget import Cost, Event, round_up
from dpframe.mechanisms.laplace import eps_of_pure_rho

ZERO = Fraction(0)


@dataclass(frozen=True, slots=True)
class State:
    """Sums over everything granted so far. ``eps`` is None once A is closed."""

    eps: Fraction | None = ZERO
    delta: Fraction = ZERO
    rho: Fraction = ZERO
    closed_by: str | None = None

    def after(self, e: Event, name: str) -> State:
        closed = self.closed_by or (name if e.eps is None else None)
        eps = None if self.eps is None or e.eps is None else self.eps + e.eps
        return State(eps, self.delta + e.delta, self.rho + e.rho, closed)


@dataclass(frozen=True, slots=True)
class Budget:
    """A fixed target. Without ``eps`` it is a rho budget; without either it is no limit.

    ``by`` restricts the rule for shares made by ``split``: "eps" leaves A alone, "rho" B alone.
    """

    eps: Fraction | None = None
    delta: Fraction = ZERO
    delta_calls: Fraction = ZERO
    rho: Fraction | None = None
    by: str = "both"

    @property
    def unlimited(self) -> bool:
        return self.eps is None and self.rho is None

    @property
    def delta_z(self) -> Fraction:
        return self.delta - self.delta_calls

    @property
    def rho_limit(self) -> Fraction:
        """What the sum of rho may reach (B)."""
        if self.by == "eps":
            return ZERO
        if self.rho is not None:
            return self.rho
        return ZERO if self.eps is None else rho_of_eps(self.eps, self.delta_z)

    def charged(self, e: Event, state: State) -> Event:
        """The event as it is charged: Gaussian events fall back to rho when no delta is left for them.

        A budget in rho charges them so from the start; rho holds without any delta.
        """
        if e.delta_alone is None or e.eps is None or self.unlimited:
            return e
        in_rho = self.eps is None
        if in_rho or (state.delta + e.delta > self.delta_calls and self.by != "eps"):
            return Event(None, e.delta_alone, e.rho)
        return e

    def grant(self, e: Event, state: State, name: str) -> tuple[State | None, str]:
        """(the next state, "") or (None, the part that ran out)."""
        charged = self.charged(e, state)
        after = state.after(charged, name)
        if self.unlimited:
            return after, ""
        if after.delta > self.delta_calls:
            return None, "delta"
        by_eps = self.by != "rho" and self.eps is not None and after.eps is not None and after.eps <= self.eps
        by_rho = self.rho_limit > 0 and after.rho <= self.rho_limit
        if by_eps or by_rho:
            return after, ""
        if self.eps is None:
            return None, "rho"
        return None, "eps" if charged is e else "delta"

    def spent(self, state: State) -> Cost:
        """The odometer: the least eps that describes what was granted, its delta, and the sum of rho."""
        best, delta = state.eps, state.delta
        if self.delta_z > 0 and state.rho > 0:
            by_rho = round_up(eps_of_rho(float(state.rho), float(self.delta_z)))
            if best is None or by_rho < best:
                best, delta = by_rho, delta + self.delta_z
        return Cost(best, delta, state.rho)

    def remaining(self, state: State) -> Cost:
        """The largest pure eps that would be granted now, and what is left of delta_calls and of rho."""
        left_rho = max(ZERO, self.rho_limit - state.rho)
        by_rho = eps_of_pure_rho(left_rho) if left_rho else ZERO
        by_eps = ZERO
        if self.eps is not None and state.eps is not None and self.by != "rho":
            by_eps = max(ZERO, self.eps - state.eps)
        return Cost(max(by_eps, by_rho), max(ZERO, self.delta_calls - state.delta), left_rho)

    def share(self, fraction: Fraction, by: str) -> Budget:
        """An exact share of an unspent budget (see ``Session.split``)."""
        rho = self.rho_limit * fraction if by == "rho" or self.eps is None else None
        eps = None if rho is not None else self.eps
        if eps is None:
            return Budget(None, self.delta_calls * fraction, self.delta_calls * fraction, rho, "rho")
        calls = self.delta_calls * fraction
        return replace(self, eps=eps * fraction, delta=calls, delta_calls=calls, by="eps")
