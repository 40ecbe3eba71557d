"""Noise of the two oldest laws, calibrated to a budget."""

from __future__ import annotations

from fractions import Fraction

import dpframe as dp
from dpframe.mechanisms.base import Target


def laplace(eps, sensitivity=1, **target):
    return dp.mechanism("laplace").calibrate(Fraction(sensitivity), 1, Target(Fraction(eps), **target))


def gaussian(eps, delta, sensitivity=1):
    target = Target(Fraction(eps), Fraction(delta))
    return dp.mechanism("gaussian").calibrate(Fraction(sensitivity), 1, target)
