"""exp(-z) of a rational z, bounded: what samplers and tables of weights compare with when float64 can't decide."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction


def exp_minus(z: Fraction, digits: int, *, up: bool) -> Fraction:
    """Bound exp(-z) from above (``up``) or below, to about ``digits`` places."""
    ctx = Context(prec=digits, rounding=ROUND_FLOOR if up else ROUND_CEILING)
    nearest = Context(prec=digits).exp(ctx.divide(Decimal(z.numerator), Decimal(z.denominator)).copy_negate())
    slack = Fraction(4, 10**digits)  # Decimal.exp is right to half a unit in the last place
    return Fraction(nearest) * (1 + slack if up else 1 - slack)


def fixed_exp_minus(z: Fraction, bits: int) -> int:
    """exp(-z) in units of ``2**-bits``, rounded down, within 2 units."""
    return int(exp_minus(z, bits // 3 + 4, up=False) * (1 << bits))
