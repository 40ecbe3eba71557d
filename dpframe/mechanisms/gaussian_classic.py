"""``gaussian_classic``: the textbook Gaussian mechanism, for teaching and for reproducing older releases.

Law: the rounded Gaussian of ``gaussian``, P(k) = Phi((k+1/2)/sigma) - Phi((k-1/2)/sigma), with
sigma = Delta2 * sqrt(2 ln(1.25/delta)) / eps.

Guarantee: (eps, delta)-DP for any vector whose L2 sensitivity is at most Delta2 steps. The textbook's
proof covers eps < 1 only. Beyond, the formula first goes on holding without a proof and then fails: at
delta = 1e-5 its noise is too small from eps of about 8.42 on. So the true delta of every sigma is
recomputed (with the exact formula of ``gaussian``, which covers vectors too) and a sigma that
under-noises is refused. rho-zCDP holds with rho = Delta2**2 / (2 sigma**2), whatever eps is.

Source: Dwork and Roth, "The algorithmic foundations of differential privacy" (2014), theorem A.1; its
failure at large eps: Balle and Wang, "Improving the Gaussian mechanism for differential privacy" (2018).

Wins never: where it holds it wastes noise, for its true delta is below the one it is charged for (at
(1, 1e-5) sigma is 4.845 where 3.731 is enough). Use ``gaussian``, unless an older release's sigma
must be met.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpframe.accounting.conversion import analytic_delta
from dpframe.errors import Arg, Code, MechanismError, show
from dpframe.mechanisms.base import Norm, Shown, Target, checked_scale, float_up
from dpframe.mechanisms.gaussian import RoundedGaussian
from dpframe.mechanisms.targets import gaussian_cost

_LARGEST_EPS = Fraction(10**4)


def classic_sigma(eps: Fraction, delta: Fraction) -> float:
    """sqrt(2 ln(1.25/delta)) / eps, to float64's precision (what it guarantees is recomputed from the float)."""
    d = Fraction(5, 4) / delta
    log = math.log(d.numerator) - math.log(d.denominator)  # no overflow, whatever delta is
    return math.sqrt(2 * log) / float(eps)


class GaussianClassic(Shown):
    """Rounded Gaussian noise by the textbook formula; see the module."""

    name = "gaussian_classic"
    norm: Norm = "L2"

    def calibrate(self, sensitivity: Fraction, moving: int, target: Target) -> RoundedGaussian:
        """Privacy: the formula's delta is recomputed, rounded up, and refused where it exceeds the target's."""
        if target.eps is None or target.delta <= 0:
            raise MechanismError(
                "gaussian_classic is a formula for eps and delta.",
                hint=(
                    Arg("delta", 1e-6),
                    ", or ",
                    Arg("mechanism", "gaussian"),
                    " for rho, or ",
                    Arg("mechanism", "laplace"),
                    " for a pure guarantee.",
                ),
            )
        near = min(target.eps, _LARGEST_EPS)  # beyond, the formula under-noises at every delta there is
        unit = classic_sigma(near, target.delta)
        true = analytic_delta(unit, float(near))
        if Fraction(true) > target.delta or target.eps > _LARGEST_EPS:
            raise MechanismError(
                "gaussian_classic under-noises at ",
                Arg("eps", Code(show(target.eps))),
                f": its textbook formula is proved for eps < 1, and its true delta here is {true:.6g}, not {float(target.delta):.6g}.",
                hint=Arg("mechanism", "gaussian"),
            )
        sigma = checked_scale(Fraction(float_up(sensitivity * Fraction(unit))), sensitivity, self.name)
        return RoundedGaussian(sigma, gaussian_cost(target, Fraction(unit), moving))
