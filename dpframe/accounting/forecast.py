"""What a call would leave of the budgets that pay for it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpframe.accounting.events import Cost


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a call would leave.

    Attributes
    ----------
    state : {"open", "refused", "unlimited", "unclear", "unread", "unbound"}
        Whether all who pay would grant it, one would not, nothing limits it, it is unclear who pays, a
        ledger can't be read, or the plan is not for a session.
    before, after : Cost or None
        What would be granted now, and after it.
    total : Fraction or None
        The eps of the budget that is nearest to its end, if it is one in eps.
    """

    state: str
    before: Cost | None = None
    after: Cost | None = None
    total: Fraction | None = None

    @property
    def texts(self) -> list[str]:
        """In words; empty where there is nothing to say."""
        if self.state == "unclear":
            return ["a budgeted session is open but not in use here"]
        if self.state == "unread":
            return ["its ledger can't be read"]
        if self.state == "unbound":
            return []
        if self.before is None:
            return ["none is open: the call is recorded, and nothing limits the total"]
        would = f"would still grant {_asked(self.before)}"
        if self.after is None:
            return [f"{would}, and refuse this call"]
        return [f"{would}; after this call {_asked(self.after)}"]


def _asked(left: Cost) -> str:
    if left.eps or not left.rho:
        return Cost(left.eps).text()
    return f"{Cost(None, rho=left.rho).text()} of Gaussian noise"
