"""Pictures, each one call: laws of noise, errors and prices, budgets, releases. Extra: ``dpframe[plot]``.

Every function returns an Altair chart: ``chart.save("x.html", inline=True)`` (one file that needs no network),
``.svg`` or ``.png``. In a notebook it draws itself without network, too.

Privacy: drawn from laws, plans, accounts and releases, which are public; nothing is charged and no frame is read.

Examples
--------
>>> import dpframe as dp
>>> chart = dp.plot.noise(["laplace", "gaussian"], eps=1, delta=1e-5)
>>> sorted(p["name"] for p in chart.to_dict()["params"] if "bind" in p)
['delta_at', 'eps_at', 'sensitivity']
"""

from dpframe.errors import unknown_name
from dpframe.plot.laws import error, noise
from dpframe.plot.spending import budget, tradeoff
from dpframe.plot.tables import release

__all__ = ["budget", "error", "noise", "release", "tradeoff"]


def __getattr__(name: str) -> object:
    raise unknown_name("dp.plot", name, __all__)
