"""The most frequent of public candidates: top_k."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from dpframe.accounting.events import Number
from dpframe.base.calls import checked
from dpframe.errors import InputError
from dpframe.frames.bins import Among, Tally
from dpframe.frames.columns import Column
from dpframe.frames.keys import key_table
from dpframe.layout.answers import Answer
from dpframe.layout.choices import Places
from dpframe.layout.layouts import Layout
from dpframe.layout.tables import Chosen, Index
from dpframe.mechanisms.base import Target
from dpframe.mechanisms.choosers import Chooser, Reach, largest
from dpframe.statistics.base import common, one_column
from dpframe.statistics.base_choice import Counted, checked_k


@dataclass(frozen=True, slots=True)
class TopK(Counted):
    k: int = 1
    candidates: Any = field(default=None, hash=False, compare=False, repr=False)

    @property
    def verb(self) -> str:
        return "top_k"

    @property
    def default_name(self) -> str:
        return "rank"

    @property
    def flips(self) -> bool:
        return self.k == 1

    @property
    def missing(self) -> str:
        return "null and NaN are one candidate if None is listed, else left out"

    def tally(self, column: Column) -> Tally:
        try:
            keys = key_table((self.column,), (column,), self.candidates)
        except InputError as e:
            raise InputError(
                str(e).replace("keys=", "candidates=").replace("keys is", "candidates= is")
            ) from None
        if keys.size < self.k:
            raise InputError(
                f"top_k({column.name!r}, {self.k}) has only {keys.size} candidates to choose from. Hint: a smaller k"
            )
        return Tally(self.column, Among(keys))

    def chooser(self, column: Column, reach: Reach, target: Target, mechanism: str) -> Chooser:
        how = self.tally(column).how
        assert isinstance(how, Among)
        return largest(how.keys.size, self.k, reach, target, mechanism)

    def answer(self, layout: Layout) -> Answer:
        return Places(layout.start, self.k)

    def table(self, start: int, column: Column) -> Index:
        how = self.tally(column).how
        assert isinstance(how, Among)
        return Chosen(start, self.k, column, how.keys)

    def describe(self) -> str:
        return f"top_k({self.column!r}, {self.k}, candidates=...)"


@checked()
def top_k(column: Hashable, k: int, *, candidates: Any = None, eps: Number | None = None) -> TopK:
    """Ask for the k most frequent of public candidates, best first.

    Parameters
    ----------
    column : hashable
    k : int
    candidates : list, range, Enum class, ``dp.public(...)`` or "declared"
        As ``keys=`` of ``groupby``: the values that can be chosen, whether they occur or not.
    eps : number, optional
        As in :func:`~dpframe.count`.

    Returns
    -------
    TopK
        The answer has k rows, with the column and ``rank``; counts are not released.

    Raises
    ------
    InputError
        Without candidates, with fewer than k, or with ones that the column's dtype can't hold.

    Notes
    -----
    Privacy: k draws of the exponential mechanism without putting back, each with eps/k. One row moves every
    count the same way (add_remove), so weights are exp(eps/(k R) * count); replace_one: half of that.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.top_k("city", 3, candidates=["Ghent", "Lille", "Metz", "Nancy"]).describe()
    "top_k('city', 3, candidates=...)"
    """
    checked_k(column, k)
    if candidates is None:
        raise InputError(
            f"top_k({column!r}, {k}) needs candidates=: which values occur is private. Hint: candidates=[...] with the"
            f" values that {column!r} could have; or df.dp.top_k({column!r}, {k}, eps=0.5, delta=1e-6), and those with"
            " enough rows are found"
        )
    return TopK(one_column("top_k", column), k=k, candidates=candidates, **common(eps, False, None))
