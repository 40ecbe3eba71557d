"""Auditors: look for proof that a release tells more than it claims.

Loaded on first use, as ``dp.audit``. For whoever writes a mechanism, builds on dpframe, or wants to see
for themselves. Nothing in the path of a release imports it. What goes in is made-up data: results tell about it.
"""

from dpframe.audit import neighbours
from dpframe.audit.blackbox import BlackBox, Witness, black_box
from dpframe.audit.copies import copies
from dpframe.audit.greybox import GreyBox, Moved, grey_box
from dpframe.errors import unknown_name

__all__ = ["BlackBox", "GreyBox", "Moved", "Witness", "black_box", "copies", "grey_box", "neighbours"]


def __getattr__(name: str) -> object:
    raise unknown_name("dp.audit", name, __all__)
