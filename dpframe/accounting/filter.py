"""The session's filter: which charges are granted.

A session opens with a target and a split of its delta that never moves: ``delta_calls`` for events
that carry a delta of their own, ``delta_z = delta - delta_calls`` for converting rho. An event
carries (eps_i, delta_i, rho_i). It is granted iff the deltas stay within ``delta_calls`` and

* (A) the sum of eps_i over *all* events is at most eps, or
* (B) the sum of rho_i over *all* events is at most rho(eps, delta_z).

That is the accountant ``union``. Others use A alone or B alone, with another rho_i and another
conversion (``dpframe.accounting.accountants``); the rule is the same.

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

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from dpframe.accounting.accountants import ACCOUNTANTS, Union
from dpframe.budget import Cost, Event, round_up

ZERO = Fraction(0)


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

    def state_of(self, events: Iterable[Event]) -> State:
        """The state after granted events, oldest first, however long ago they were granted."""
        state = State()
        for e in events:
            charged = self.charged(e, state)
            assert charged is not None
            state = state.after(charged, "")
        return state

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
