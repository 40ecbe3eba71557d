"""Differential privacy for the dataframe you already have.

``import dpframe as dp`` puts ``.dp`` on pandas and Polars frames.
"""

from typing import TYPE_CHECKING

from dpframe._version import __version__
from dpframe.after import Derived, consistent, difference, ratio
from dpframe.api import FrameDP
from dpframe.bound import BoundPlan
from dpframe.budget import Cost
from dpframe.budget_plan import BudgetPlan
from dpframe.choosing import iqr, median, quantile, top_k
from dpframe.convert import delta_of_mu, eps_of_mu, eps_of_rho, mu_of_eps, rho_of_eps
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
from dpframe.forecast import tradeoff
from dpframe.keys import public
from dpframe.mechanisms.registry import mechanism, register_mechanism, unregister_mechanism
from dpframe.mechanisms.registry import names as mechanisms
from dpframe.plan import Plan
from dpframe.query import Query, query
from dpframe.release import Release
from dpframe.scores import select
from dpframe.second import clip_corr, clip_cov, clip_std, clip_var, clip_wmean
from dpframe.session import Session
from dpframe.stats import clip_mean, clip_sum, count, count_units
from dpframe.tabulate import bounds, histogram, n_unique
from dpframe.vectors import vector_mean, vector_sum

if TYPE_CHECKING:
    from dpframe.advice import advise
    from dpframe.ledger import Ledger

register()


def __getattr__(name: str) -> object:
    from importlib import import_module

    from dpframe.calls import MEANT_VERBS

    if name in ("audit", "plot", "testing"):  # loaded on first use
        return import_module(f"dpframe.{name}")
    if name == "advise":  # tries everything, so it needs everything; loaded on first use
        globals()["advise"] = found = import_module("dpframe.advice").advise
        return found
    if name == "Ledger":  # brings SQLite; loaded on first use
        globals()["Ledger"] = found = import_module("dpframe.ledger").Ledger
        return found

    if name == "value_counts":
        raise AttributeError(
            "dpframe has no 'value_counts'. Hint: df.dp.value_counts('x', keys=[...], eps=0.5)"
        )
    meant = MEANT_VERBS.get(name)
    if meant in __all__:
        raise AttributeError(f"dpframe has no {name!r}. Hint: dp.{meant}(...)")
    from dpframe.errors import unknown_name

    raise unknown_name("dpframe", name, [*__all__, "audit", "plot", "testing"])


__all__ = [
    "BoundPlan",
    "BudgetExceeded",
    "BudgetPlan",
    "Cost",
    "DPError",
    "DPWarning",
    "Derived",
    "FrameDP",
    "InputError",
    "Ledger",
    "LedgerError",
    "MechanismError",
    "NoSession",
    "Plan",
    "Query",
    "Release",
    "ReleaseFailed",
    "Session",
    "__version__",
    "advise",
    "bounds",
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
    "delta_of_mu",
    "difference",
    "eps_of_mu",
    "eps_of_rho",
    "frame",
    "histogram",
    "iqr",
    "mechanism",
    "mechanisms",
    "median",
    "mu_of_eps",
    "n_unique",
    "public",
    "quantile",
    "query",
    "ratio",
    "register_mechanism",
    "rho_of_eps",
    "select",
    "top_k",
    "tradeoff",
    "unregister_mechanism",
    "vector_mean",
    "vector_sum",
]
