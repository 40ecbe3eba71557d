"""Auditors: look for proof that a release tells more than it claims.

Loaded on first use, as ``dp.audit``. For whoever writes a mechanism, builds on dpframe, or wants to see
for themselves. Nothing in the path of a release imports it.
"""

from dpframe.audit.blackbox import BlackBox, Witness, black_box

__all__ = ["BlackBox", "Witness", "black_box"]
