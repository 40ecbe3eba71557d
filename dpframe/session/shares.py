"""How a budget is divided: what is shared, and the fraction of each part."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from dpframe.accounting.events import Number, rational
from dpframe.accounting.filter import Budget
from dpframe.base.arguments import check_word
from dpframe.errors import Arg, Call, InputError, show, typed


def divided(
    budget: Budget, shares: int | Mapping[str, Number], by: str | None
) -> tuple[str, dict[str, Fraction]]:
    """What is shared, "eps" or "rho", and the fraction of each part; see ``Session.split``."""
    if by is not None:
        check_word("by", by, ("eps", "rho"), "eps")
    rules = budget.rules
    how = by or rules.shares
    if by == "eps" and not rules.by_eps and budget.eps is not None:
        raise InputError(
            f"The accountant {rules.name!r} adds up no epsilons that could be shared.", hint=Arg("by", "rho")
        )
    if isinstance(shares, Mapping):
        parts = {k: rational(v, f"shares[{k!r}]") for k, v in shares.items()}
    elif isinstance(shares, int) and not isinstance(shares, bool) and shares > 0:
        parts = {str(i): Fraction(1, shares) for i in range(shares)}
    else:
        raise InputError(
            f"split takes a number of parts or a dict of fractions, not {typed(shares)}.",
            hint=Call("s.split", 12),
        )
    if not parts or sum(parts.values()) > 1:
        raise InputError(
            f"The shares add up to {show(sum(parts.values(), Fraction(0)))}; at most 1 is there.",
            hint="{'a': 0.5, 'b': 0.5}",
        )
    return how, parts
