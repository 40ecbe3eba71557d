"""Reading a target: which guarantee was asked for, and the refusals that all mechanisms share."""

from __future__ import annotations

from fractions import Fraction

from dpframe.accounting.conversion import eps_of_pure_rho, pure_rho
from dpframe.accounting.events import Event, round_up
from dpframe.errors import Arg, MechanismError
from dpframe.mechanisms.base import Target, float_up, sqrt_up


def pure(name: str, target: Target, kind: str, steps: int = 0, moving: int = 0) -> tuple[Fraction, Event]:
    """The eps that an eps-DP mechanism is calibrated to, and what it costs.

    Privacy: eps is used exactly, as a rational, or is the largest whose zCDP cost is within rho, rounded
    down; a delta in the target is neither used nor charged.

    Raises
    ------
    MechanismError
        Without eps or rho, or where nothing is left of it.
    """
    if target.eps is not None:
        eps = target.eps
        cost = Event(eps, Fraction(0), pure_rho(eps), None, kind, steps, moving)
    elif target.rho is not None:
        eps = eps_of_pure_rho(target.rho)
        cost = Event(None, Fraction(0), target.rho, None, kind, steps, moving)
    else:
        raise MechanismError(f"{name} needs eps or rho.", hint=Arg("eps", 1))
    if eps <= 0:
        raise MechanismError(f"The target is too small to draw {name} noise for.", hint=Arg("eps", 1))
    return eps, cost


def zcdp_sigma(sensitivity: Fraction, rho: Fraction) -> Fraction:
    """sigma = Delta2 / sqrt(2 rho), rounded up to a float."""
    return Fraction(float_up(sqrt_up(sensitivity**2 / (2 * rho))))


def gaussian_cost(target: Target, unit: Fraction, moving: int) -> Event:
    """What a Gaussian of ``unit`` sensitivities costs at an (eps, delta) target.

    Privacy: beside (eps, delta), rho = 1/(2 unit**2), rounded up, holds whatever eps is, without delta.
    """
    return Event(target.eps, target.delta, round_up(1 / (2 * unit**2)), Fraction(0), "gaussian", 0, moving)


def approximate(name: str, sensitivity: Fraction, target: Target) -> tuple[Fraction, Fraction]:
    """(eps, delta) of a target for one number; refuses rho targets, targets without delta, and sensitivity 0.

    Raises
    ------
    MechanismError
    """
    if sensitivity <= 0:
        raise MechanismError(f"{name} was asked for noise at sensitivity {sensitivity}.")
    if target.eps is None:
        raise MechanismError(
            f"{name} has no rho guarantee: it needs eps and delta.",
            hint=(Arg("eps", 1), ", ", Arg("delta", 1e-6), ", or ", Arg("mechanism", "gaussian"), "."),
        )
    if target.delta <= 0:
        raise MechanismError(
            f"{name} noise has no pure guarantee: it needs a delta.",
            hint=(Arg("delta", 1e-6), ", or ", Arg("mechanism", "laplace"), "."),
        )
    return target.eps, target.delta
