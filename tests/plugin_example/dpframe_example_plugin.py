"""An example plug-in: Laplace noise of three times the scale that is needed."""

from fractions import Fraction

import dpframe as dp
from dpframe.mechanisms.base import Noise, Target


class TripleLaplace:
    """``mechanism="triple_laplace"``: the entry point in pyproject.toml gives it that name.

    A plug-in has a name, the norm that its sensitivity is measured in, and ``calibrate``. More noise than
    is needed keeps the claim of the noise that would do.
    """

    name = "triple_laplace"
    norm = "L1"

    def calibrate(self, sensitivity: Fraction, moving: int, target: Target) -> Noise:
        return dp.mechanism("laplace").calibrate(3 * sensitivity, moving, target)
