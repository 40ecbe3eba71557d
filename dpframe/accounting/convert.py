"""Conversions between guarantees, for people: validated, and rounded outward.

``eps_of_...`` and ``delta_of_...`` are rounded up, ``rho_of_eps`` and ``mu_of_eps`` down, so that what is read as a
cost is never too low and what is read as a budget never too high. Formulas and sources are in
``dpframe.accounting.conversion``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from dpframe.accounting import conversion
from dpframe.accounting.events import Number, rational
from dpframe.base.docstrings import documented, entries
from dpframe.base.wrong_calls import checked

F = TypeVar("F", bound=Callable[..., Any])
_RAISES = """InputError
    For a number that is outside of its range, or not finite."""
_SHARED = entries("""\
eps : number
    Above 0.
rho : number
    0 or more.
mu : number
    Sensitivities to a sigma of Gaussian noise; 0 or more.
delta : number
    From 0 (then eps is inf, and rho or mu 0) to below 1.""")


def _conversion(example: str) -> Callable[[F], F]:
    """Wrong calls of a conversion say what to write; what all have in common is put into its docstring."""

    def decorate(f: F) -> F:
        call = checked(example=example)(f)
        call.__doc__ = documented(f, _SHARED, Raises=_RAISES)
        return call

    return decorate


def _delta(delta: Any) -> float:
    return float(rational(delta, "delta", zero=True, below=1))


@_conversion("dp.eps_of_rho(0.1, 1e-6)")
def eps_of_rho(rho: Number, delta: Number) -> float:
    """The eps at which anything rho-zCDP is (eps, delta)-DP.

    Returns
    -------
    float
        0 or more, rounded up.

    Examples
    --------
    >>> import dpframe as dp
    >>> round(dp.eps_of_rho(0.05, 1e-6), 6)
    1.471595
    """
    return conversion.eps_of_rho(float(rational(rho, "rho", zero=True)), _delta(delta))


@_conversion("dp.rho_of_eps(1, 1e-6)")
def rho_of_eps(eps: Number, delta: Number) -> float:
    """The largest rho for which anything rho-zCDP is (eps, delta)-DP; 0 when delta is 0.

    Returns
    -------
    float
        0 or more, rounded down.

    Examples
    --------
    >>> import dpframe as dp
    >>> round(dp.rho_of_eps(1, 1e-6), 6)
    0.024356
    """
    d = rational(delta, "delta", zero=True, below=1)
    return _down(float(conversion.rho_of_eps(rational(eps, "eps"), d)))


@_conversion("dp.mu_of_eps(1, 1e-6)")
def mu_of_eps(eps: Number, delta: Number) -> float:
    """The largest mu for which anything mu-GDP (such as Gaussian noise of sigma = 1/mu sensitivities) is (eps, delta)-DP.

    Returns
    -------
    float
        Sensitivities to a sigma, rounded down; 0 when delta is 0.

    Examples
    --------
    >>> import dpframe as dp
    >>> round(1 / dp.mu_of_eps(1, 1e-6), 4)
    4.2247
    """
    d = rational(delta, "delta", zero=True, below=1)
    return _down(float(conversion.mu_of_eps(rational(eps, "eps"), d)))


@_conversion("dp.eps_of_mu(1, 1e-6)")
def eps_of_mu(mu: Number, delta: Number) -> float:
    """The least eps for which anything mu-GDP is (eps, delta)-DP.

    Returns
    -------
    float
        0 or more, rounded up; inf when delta is 0.

    Examples
    --------
    >>> import dpframe as dp
    >>> round(dp.eps_of_mu(0.5, 1e-6), 4)
    2.2541
    """
    return conversion.eps_of_mu(float(rational(mu, "mu", zero=True)), _delta(delta))


@_conversion("dp.delta_of_mu(1, 0.5)")
def delta_of_mu(mu: Number, eps: Number) -> float:
    """The delta for which anything mu-GDP is (eps, delta)-DP.

    Parameters
    ----------
    eps : number
        0 or more.

    Returns
    -------
    float
        From 0 to 1, rounded up.

    Examples
    --------
    >>> import dpframe as dp
    >>> f"{dp.delta_of_mu(0.5, 2.254085):.3g}"
    '1e-06'
    """
    return conversion.delta_of_mu(
        float(rational(mu, "mu", zero=True)), float(rational(eps, "eps", zero=True))
    )


def _down(x: float) -> float:
    """A float whose reading as a budget (``dpframe.accounting.events.rational``) is not above ``x`` either."""
    return math.nextafter(math.nextafter(x, 0.0), 0.0)
