"""Differential privacy for the dataframe you already have.

``import dpframe as dp`` puts ``.dp`` on pandas and Polars frames.
"""

import sys
from typing import TYPE_CHECKING

from dpframe._version import __version__
from dpframe.accounting.convert import delta_of_mu, eps_of_mu, eps_of_rho, mu_of_eps, rho_of_eps
from dpframe.accounting.events import Cost
from dpframe.api.bound_plan import BoundPlan
from dpframe.api.doors import frame, register
from dpframe.api.namespaces import FrameDP
from dpframe.api.prices import tradeoff
from dpframe.budget_plans.budget_plan import BudgetPlan
from dpframe.budget_plans.query import Query, query
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
from dpframe.frames.public import public
from dpframe.mechanisms.registry import mechanism, register_mechanism, unregister_mechanism
from dpframe.mechanisms.registry import names as mechanisms
from dpframe.planning.plan import Plan
from dpframe.release.derived import Derived, consistent, difference, ratio
from dpframe.release.release import Release
from dpframe.session.session import Session
from dpframe.statistics.table import *  # noqa: F403  (every statistic)
from dpframe.statistics.table import STATISTICS

if TYPE_CHECKING:
    from dpframe.api.advice import advise
    from dpframe.ledger.book import Ledger

from dpframe import display  # noqa: F401  (registers how things look)

register()
sys.modules["dpframe.budget"] = sys.modules[
    "dpframe.accounting.events"
]  # Event's address in 0.1, for plug-ins


def __getattr__(name: str) -> object:
    from importlib import import_module

    from dpframe.statistics.wrong_verbs import MEANT_VERBS

    if name in ("audit", "plot", "testing"):  # loaded on first use
        return import_module(f"dpframe.{name}")
    if name == "advise":  # tries everything, so it needs everything; loaded on first use
        globals()["advise"] = found = import_module("dpframe.api.advice").advise
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
    "consistent",
    "delta_of_mu",
    "difference",
    "eps_of_mu",
    "eps_of_rho",
    "frame",
    "mechanism",
    "mechanisms",
    "mu_of_eps",
    "public",
    "query",
    "ratio",
    "register_mechanism",
    "rho_of_eps",
    "tradeoff",
    "unregister_mechanism",
]
__all__ += STATISTICS
__all__.sort()
del STATISTICS
