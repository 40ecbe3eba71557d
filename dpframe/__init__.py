"""Differential privacy for the dataframe you already have.

``import dpframe as dp`` puts ``.dp`` on pandas and Polars frames.
"""

import sys
from importlib import import_module as _load

from dpframe._version import __version__ as __version__
from dpframe.accounting import events
from dpframe.api.accessors import register
from dpframe.base import forks, html
from dpframe.mechanisms.registry import names as mechanisms  # noqa: F401  (here, for a package has the same name)

# Where each name is. It is loaded on first use, so that importing dpframe is cheap; statistics are in their table.
# Type checkers read ``__init__.pyi``, which ``tests/write_stubs.py`` writes.
_HOMES = {
    "accounting.convert": ("delta_of_mu", "eps_of_mu", "eps_of_rho", "mu_of_eps", "rho_of_eps"),
    "accounting.events": ("Cost",),
    "api.advice": ("advise",),
    "api.bound_plan": ("BoundPlan",),
    "api.frame": ("frame",),
    "api.namespaces": ("FrameDP",),
    "api.prices": ("tradeoff",),
    "budget_plans.budget_plan": ("BudgetPlan",),
    "budget_plans.query": ("Query", "query"),
    "errors": (
        *(
            "BudgetExceeded",
            "DPError",
            "DPWarning",
            "InputError",
            "LedgerError",
            "MechanismError",
            "NoSession",
        ),
        "ReleaseFailed",
    ),
    "frames.public": ("public",),
    "ledger.book": ("Ledger",),
    "mechanisms.registry": ("mechanism", "register_mechanism", "unregister_mechanism"),
    "planning.plan": ("Plan",),
    "release.consistent": ("consistent",),
    "release.derived": ("Derived", "difference", "ratio"),
    "release.release": ("Release",),
    "session.session": ("Session",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = ("audit", "plot", "testing")

register()
forks.watch()  # now, for a process may fork before it asks anything
html.when_first_shown(lambda: _load("dpframe.display"))
sys.modules["dpframe.budget"] = events  # Event's address in 0.1, for plug-ins


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return _load(f"dpframe.{name}")
    if name in _HOME:
        globals()[name] = found = getattr(_load(f"dpframe.{_HOME[name]}"), name)
        return found
    if name.startswith("_") and name != "__all__":
        raise AttributeError(f"module 'dpframe' has no attribute {name!r}")
    from dpframe.errors import Call, unknown_name, worded
    from dpframe.statistics.table import STATISTICS
    from dpframe.statistics.wrong_verbs import MEANT_VERBS

    if name in STATISTICS:
        globals()[name] = found = STATISTICS[name].ask
        return found
    known = sorted([*_HOME, *STATISTICS, "__version__", "mechanisms"])
    if name == "__all__":
        return known
    if name == "value_counts":
        raise worded(
            AttributeError,
            "dpframe has no 'value_counts'.",
            hint=Call("df.dp.value_counts", "x", keys=[...], eps=0.5),
        )
    meant = MEANT_VERBS.get(name)
    if meant in known:
        raise worded(AttributeError, f"dpframe has no {name!r}.", hint=f"dp.{meant}(...)")
    raise unknown_name("dpframe", name, [*known, *_MODULES])


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__"), *_MODULES})
