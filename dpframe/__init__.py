"""Differential privacy for the dataframe you already have."""

from dpframe._version import __version__
from dpframe.errors import DPWarning

__all__ = ["DPWarning", "__version__"]
