"""What type checkers see of ``dpframe``; written by ``tests/write_stubs.py``."""

from dpframe import audit as audit
from dpframe import plot as plot
from dpframe import testing as testing
from dpframe._version import __version__ as __version__
from dpframe.accounting.convert import delta_of_mu as delta_of_mu
from dpframe.accounting.convert import eps_of_mu as eps_of_mu
from dpframe.accounting.convert import eps_of_rho as eps_of_rho
from dpframe.accounting.convert import mu_of_eps as mu_of_eps
from dpframe.accounting.convert import rho_of_eps as rho_of_eps
from dpframe.accounting.events import Cost as Cost
from dpframe.api.advice import advise as advise
from dpframe.api.bound_plan import BoundPlan as BoundPlan
from dpframe.api.frame import frame as frame
from dpframe.api.namespaces import FrameDP as FrameDP
from dpframe.api.prices import tradeoff as tradeoff
from dpframe.budget_plans.budget_plan import BudgetPlan as BudgetPlan
from dpframe.budget_plans.query import Query as Query
from dpframe.budget_plans.query import query as query
from dpframe.errors import BudgetExceeded as BudgetExceeded
from dpframe.errors import DPError as DPError
from dpframe.errors import DPWarning as DPWarning
from dpframe.errors import InputError as InputError
from dpframe.errors import LedgerError as LedgerError
from dpframe.errors import MechanismError as MechanismError
from dpframe.errors import NoSession as NoSession
from dpframe.errors import ReleaseFailed as ReleaseFailed
from dpframe.frames.public import public as public
from dpframe.ledger.book import Ledger as Ledger
from dpframe.mechanisms.registry import mechanism as mechanism
from dpframe.mechanisms.registry import names as mechanisms
from dpframe.mechanisms.registry import register_mechanism as register_mechanism
from dpframe.mechanisms.registry import unregister_mechanism as unregister_mechanism
from dpframe.planning.plan import Plan as Plan
from dpframe.release.consistent import consistent as consistent
from dpframe.release.derived import Derived as Derived
from dpframe.release.derived import difference as difference
from dpframe.release.derived import ratio as ratio
from dpframe.release.release import Release as Release
from dpframe.session.session import Session as Session
from dpframe.statistics.bounds import bounds as bounds
from dpframe.statistics.count import count as count
from dpframe.statistics.count import count_units as count_units
from dpframe.statistics.covariance import clip_corr as clip_corr
from dpframe.statistics.covariance import clip_cov as clip_cov
from dpframe.statistics.histogram import histogram as histogram
from dpframe.statistics.n_unique import n_unique as n_unique
from dpframe.statistics.ols import ols as ols
from dpframe.statistics.quantiles import iqr as iqr
from dpframe.statistics.quantiles import median as median
from dpframe.statistics.quantiles import quantile as quantile
from dpframe.statistics.select import select as select
from dpframe.statistics.sum_mean import clip_mean as clip_mean
from dpframe.statistics.sum_mean import clip_sum as clip_sum
from dpframe.statistics.top_k import top_k as top_k
from dpframe.statistics.variance import clip_std as clip_std
from dpframe.statistics.variance import clip_var as clip_var
from dpframe.statistics.vectors import vector_mean as vector_mean
from dpframe.statistics.vectors import vector_sum as vector_sum
from dpframe.statistics.weighted_mean import clip_wmean as clip_wmean

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
    "ols",
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
