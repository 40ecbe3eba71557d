"""For authors of statistics, mechanisms and engines: one call that runs every check that one has to pass.

>>> from dpframe.testing.mechanisms import check_mechanism
>>> check_mechanism("gaussian", draws=20_000).laws > 5
True

Nothing else in dpframe imports this module.
"""

from dpframe.errors import unknown_name
from dpframe.testing.engines import Conforms, canonical_rank, check_engine
from dpframe.testing.mechanisms import Checked, check_mechanism
from dpframe.testing.statistics import Agrees, check_statistic

__all__ = [
    "Agrees",
    "Checked",
    "Conforms",
    "canonical_rank",
    "check_engine",
    "check_mechanism",
    "check_statistic",
]


def __getattr__(name: str) -> object:
    raise unknown_name("dp.testing", name, __all__)
