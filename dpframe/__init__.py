"""Differential privacy for the dataframe you already have.

``import dpframe as dp`` puts ``.dp`` on pandas and Polars frames.
"""

from dpframe._version import __version__
from dpframe.after import Derived, consistent, difference, ratio
from dpframe.api import FrameDP
from dpframe.bound import BoundPlan
from dpframe.budget import Cost
from dpframe.doors import frame, register
from dpframe.errors import (
    BudgetExceeded,
    DPError,
    DPWarning,
    InputError,
    LedgerError,
    MechanismError,
    NoSession,
    ReleaseFailed,
)
from dpframe.keys import public
from dpframe.mechanisms.registry import mechanism, register_mechanism, unregister_mechanism
from dpframe.mechanisms.registry import names as mechanisms
from dpframe.plan import Plan
from dpframe.release import Release
from dpframe.second import clip_corr, clip_cov, clip_std, clip_var, clip_wmean
from dpframe.session import Session
from dpframe.stats import clip_mean, clip_sum, count, count_units
from dpframe.vectors import vector_mean, vector_sum

register()


def __getattr__(name: str) -> object:
    from importlib import import_module

    from dpframe.calls import MEANT_VERBS

    if name == "testing":  # for plug-in authors; loaded on first use
        return import_module("dpframe.testing")

    meant = MEANT_VERBS.get(name)
    if meant in __all__:
        raise AttributeError(f"dpframe has no {name!r}. Hint: dp.{meant}(...)")
    raise AttributeError(f"module 'dpframe' has no attribute {name!r}")


__all__ = [
    "BoundPlan",
    "BudgetExceeded",
    "Cost",
    "DPError",
    "DPWarning",
    "Derived",
    "FrameDP",
    "InputError",
    "LedgerError",
    "MechanismError",
    "NoSession",
    "Plan",
    "Release",
    "ReleaseFailed",
    "Session",
    "__version__",
    "clip_corr",
    "clip_cov",
    "clip_mean",
    "clip_std",
    "clip_sum",
    "clip_var",
    "clip_wmean",
    "consistent",
    "count",
    "count_units",
    "difference",
    "frame",
    "mechanism",
    "mechanisms",
    "public",
    "ratio",
    "register_mechanism",
    "unregister_mechanism",
    "vector_mean",
    "vector_sum",
]
