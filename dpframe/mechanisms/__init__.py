"""Mechanisms: distributions of noise on the integers, each with the guarantee that it claims. One file for each.

What a plug-in needs is importable from here: a mechanism's ``calibrate`` gets a :class:`Target` and returns a
:class:`Noise`; a :class:`TableNoise` is the one for a finite table of weights, and an :class:`Event` is its cost.
"""

from dpframe.accounting.events import Event
from dpframe.mechanisms.base import Mechanism, Noise, Target
from dpframe.mechanisms.optimal_count import check_length, request
from dpframe.mechanisms.table import TableNoise, integer_weights

__all__ = [
    "Event",
    "Mechanism",
    "Noise",
    "TableNoise",
    "Target",
    "check_length",
    "integer_weights",
    "request",
]
