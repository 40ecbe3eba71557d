"""The most frequent of public candidates: top_k."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from dpframe.accounting.events import Number
from dpframe.errors import Arg, Call, InputError, Piece
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
from dpframe.statistics.question import question


@dataclass(frozen=True, slots=True)
class TopK(Counted):
    k: int = 1
    candidates: Any = field(default=None, hash=False, compare=False, repr=False)
    verb = "top_k"
    default_name = "rank"
    missing = "null and NaN are one candidate if None is listed, else left out"

    @property
    def flips(self) -> bool:
        return self.k == 1

    def tally(self, column: Column) -> Tally:
        try:
            keys = key_table((self.column,), (column,), self.candidates)
        except InputError as e:
            raise InputError(*_as_candidates(e.said), hint=_as_candidates(e.hint)) from None
        if keys.size < self.k:
            raise InputError(
                f"top_k({column.name!r}, {self.k}) has only {keys.size} candidates to choose from.",
                hint="a smaller k",
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


@question(
    answer="choice",
    returns="frame with the column and ``rank`` (k rows, best first); of groups k rows for each, after the keys",
    example="'x', 3, candidates=[...]",
    known_as=("mode", "topk", "nlargest"),
    audited={"top_k": {"column": "i", "k": 1, "candidates": [0, 3, 6, 9]}},
    found=lambda column, k, candidates=None: (column, checked_k(column, k)) if candidates is None else None,
)
def top_k(column: Hashable, k: int, *, candidates: Any = None, eps: Number | None = None) -> TopK:
    """Choose the k most frequent of public candidates, best first.

    Parameters
    ----------
    column : hashable
    k : int
    candidates : list, range, Enum class, ``dp.public(...)`` or "declared"
        What can be chosen, whether it occurs or not, as ``keys=`` of ``groupby``. Rows with other values count for
        nothing. ``df.dp.top_k`` without them needs ``delta=``: values with enough rows are found, and those with the
        largest noisy counts are told, k at most, with their ``count`` instead of ``rank``.

    Returns
    -------
    TopK
        k rows, with the column and ``rank``; counts are not released.

    Raises
    ------
    InputError
        Without candidates, with fewer than k, or with ones that the column's dtype can't hold.

    Notes
    -----
    ``mechanism``: "exponential" or, for k = 1, "permute_and_flip", which "auto" takes in sessions without delta and rho.

    Privacy: eps-DP per protected unit (rho = eps**2/(8 k)). k draws of the exponential mechanism without putting back,
    each with eps/k. One row moves every count the same way (add_remove), so weights are exp(eps/(k R) * count);
    replace_one: half of that. Source: McSherry and Talwar 2007, Durfee and Rogers 2019; permute and flip: McKenna
    and Sheldon 2020.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"city": ["Ghent"] * 30 + ["Lille"] * 20 + ["Metz"]})
    >>> with dp.Session(eps=1e6):
    ...     df.dp.top_k("city", 2, candidates=["Lille", "Metz", "Nancy", "Ghent"], eps=1e3).rows()
    [('Ghent', 1), ('Lille', 2)]
    """
    checked_k(column, k)
    if candidates is None:
        raise InputError(
            f"top_k({column!r}, {k}) needs ",
            Arg("candidates"),
            ": which values occur is private.",
            hint=(
                Arg("candidates", [...]),
                f" with the values that {column!r} could have; or ",
                Call("df.dp.top_k", column, k, eps=0.5, delta=1e-6),
                ", and those with enough rows are found",
            ),
        )
    return TopK(one_column("top_k", column), k=k, candidates=candidates, **common(eps, False, None))


def _as_candidates(pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """What is said of keys, said of candidates, which are read alike."""
    return tuple(
        Arg("candidates", p.value)
        if isinstance(p, Arg) and p.name == "keys"
        else p.replace("keys is", "candidates is")
        if isinstance(p, str)
        else p
        for p in pieces
    )
