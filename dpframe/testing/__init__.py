"""For authors of mechanisms and engines: one call that runs every check a law, or an engine, has to pass.

>>> from dpframe.testing.mechanisms import check_mechanism
>>> check_mechanism("gaussian", draws=20_000).laws > 5
True

Nothing else in dpframe imports this module.
"""

from dpframe.errors import unknown_name
from dpframe.testing.engines import Conforms, canonical_rank, check_engine
from dpframe.testing.mechanisms import Checked, check_mechanism

__all__ = ["Checked", "Conforms", "canonical_rank", "check_engine", "check_mechanism"]


def __getattr__(name: str) -> object:
    raise unknown_name("dp.testing", name, __all__)
