"""Types of what is handed out but never made by hand: for annotations, and for the reference."""

from dpframe.accounting.report import Report
from dpframe.api.advice import Advice
from dpframe.api.namespaces import FramePlans, Grouped
from dpframe.api.options import Options
from dpframe.api.partition import Part, Partition
from dpframe.ledger.sums import LedgerEntry
from dpframe.planning.explain import Explanation
from dpframe.release.answers import FloatAnswer, IntAnswer, PairAnswer
from dpframe.release.stored import StoredAnswer
from dpframe.session.statement import Statement

__all__ = [
    "Advice",
    "Explanation",
    "FloatAnswer",
    "FramePlans",
    "Grouped",
    "IntAnswer",
    "LedgerEntry",
    "Options",
    "PairAnswer",
    "Part",
    "Partition",
    "Report",
    "Statement",
    "StoredAnswer",
]
