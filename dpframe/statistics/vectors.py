"""Sums and means of vectors, each shortened to a public norm: vector_sum, vector_mean."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import polars as pl

from dpframe.accounting.events import Number, rational
from dpframe.base.arguments import check_whole
from dpframe.errors import Arg, Call, InputError, exactly, show
from dpframe.frames.columns import MEASURABLE, Column
from dpframe.layout.answers import Answer, Linear
from dpframe.layout.families import Family
from dpframe.layout.layouts import Layout
from dpframe.layout.moments import Quotient
from dpframe.statistics.base import (
    Aggregate,
    common,
    list_of_columns,
    no_public_rows,
    one_column,
    public_rows,
)
from dpframe.statistics.question import question

MOST_COMPONENTS = 1 << 12


@dataclass(frozen=True, slots=True)
class VectorSum(Aggregate):
    """``dims`` is the length of the lists in one column; 0 when every column is a component."""

    of: tuple[Hashable, ...] = ()
    norm: Fraction = Fraction(1)
    order: int = 2
    dims: int = 0
    mean: bool = False
    n: int | None = None
    measured = ()

    @property
    def clipped(self) -> str:
        """What vectors are counted as."""
        if self.order == 2:
            return f"vectors counted as at most {show(self.norm)} long"
        return f"vectors counted as of components that add up to at most {show(self.norm)}, signs left out"

    default_name = "vector"

    @property
    def columns(self) -> tuple[Hashable, ...]:
        return self.of

    @property
    def verb(self) -> str:
        return "vector_mean" if self.mean else "vector_sum"

    @property
    def names(self) -> tuple[str, ...]:
        prefix = "" if self.name is None else f"{self.name}_"
        parts = [f"{self.of[0]}{i}" for i in range(self.dims)] or list(map(str, self.of))
        return tuple(prefix + part for part in parts)

    def argument(self, name: str) -> Any:
        if name in ("ord", "dim"):
            return self.order if name == "ord" else self.dims or None
        return getattr(self, name, None)

    def resolved(self, column: Callable[[Hashable], Column]) -> VectorSum:
        types = [column(c) for c in self.of]
        dtype = types[0].native
        if len(types) == 1 and isinstance(dtype, pl.Array | pl.List):
            return replace(self, dims=_length(self, types[0]))
        for c in types:
            if c.kind not in MEASURABLE:
                hint = "make a numeric column of each component"
                if c.kind == "object" and len(types) == 1:
                    hint = "df.join(pd.DataFrame(df['v'].tolist()).add_prefix('v')), then name these columns"
                raise InputError(
                    f"{self.verb}: {c.name!r} is {c.text}, whose cells could be anything.", hint=hint
                )
        if self.dims:
            raise InputError(
                Arg("dim"), f" goes with one column of lists, and {self.of[0]!r} is {types[0].text}."
            )
        return self

    def among_complete(self) -> VectorSum:
        if self.n is not None:
            raise no_public_rows(self)
        return self

    def families(self, types: Mapping[Hashable, Column]) -> tuple[Family, ...]:
        total = Family("vector", self.of, (), (), self.norm, self.order, self.dims)
        return (total, replace(total, kind="vectors")) if self.mean and self.n is None else (total,)

    def answers(self, layouts: Sequence[Layout]) -> tuple[Answer, ...]:
        step, limit = layouts[0].step, self.norm
        parts = range(layouts[0].start, layouts[0].start + len(layouts[0].coordinates))
        if not self.mean:
            return tuple(Linear(((i, step),)) for i in parts)
        if self.n is not None:
            return tuple(Linear(((i, step / self.n),), clamp=(-limit, limit)) for i in parts)
        return tuple(Quotient(i, step, layouts[1].start, limit, layouts[1].row) for i in parts)

    def describe(self) -> str:
        names = list(map(repr, self.of))
        shown = ", ".join(names if len(names) <= 6 else [*names[:2], "...", names[-1]])
        text = f"{self.verb}([{shown}], norm={exactly(self.norm)}{', ord=1' if self.order == 1 else ''}"
        return text + (f", dim={self.dims}" if self.dims else "") + (f", n={self.n})" if self.n else ")")


@question(
    answer="columns",
    returns="frame with a Float64 column per component, after the keys if there are groups",
    example="['x', 'y'], norm=1",
    audited={"vector_sum": {"columns": ["x", "y"], "norm": 5, "ord": 1}},
)
def vector_sum(
    columns: Any,
    *,
    norm: Number,
    ord: int = 2,
    dim: int | None = None,
    eps: Number | None = None,
    round: int | None = None,
) -> VectorSum:
    """Add up vectors, each shortened to a public norm.

    Parameters
    ----------
    columns : list of columns, or one column of lists
        The components (at most 4096): Boolean, integer, float or Decimal columns; or the name of one
        Polars (or Arrow) column of arrays or lists.
    norm : number
        The longest that one vector may be, in the components' unit; longer ones keep their direction.
    ord : {2, 1}
        Which norm: Euclidean (goes well with Gaussian noise, and ``rho=``), or the sum of absolute values
        (Laplace noise).
    dim : int, optional
        How long lists are; needed for lists without a fixed length. A list of another length is missing.

    Returns
    -------
    VectorSum
        One Float64 column per component, named like it (``v0``, ``v1``, ... of a column ``v``), after the output's
        name if it has one. A row with a missing component is left out; infinities count as 2**400.

    Raises
    ------
    InputError
        For a norm that is not positive, too many components, columns that are no numbers.

    Notes
    -----
    Privacy: (eps, delta)-DP or rho-zCDP per protected unit. Vectors are scaled by (1 - 2**-20)*min(1, norm/length), cut
    toward zero to multiples of a step of 2**-25 norms, and their length is checked again in exact integers; one that
    fails counts as zero. One row moves the sum by at most ``norm``, by twice that when it becomes another. With a
    unit: times ``max_rows``, over groups times max_groups in L1 and its root in L2.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"gx": [3.0, 0.0], "gy": [4.0, 0.5]})
    >>> with dp.Session(rho=1e9):
    ...     t = df.dp.vector_sum(["gx", "gy"], norm=1, rho=1e9, round=3)
    >>> t.row(0)
    (0.6, 1.3)
    """
    return VectorSum(
        None, None, **_vector("vector_sum", columns, norm, ord, dim), **common(eps, False, round)
    )


@question(
    answer="columns",
    returns="frame with a Float64 column per component, after the keys if there are groups",
    example="['x', 'y'], norm=1",
    audited={
        "vector_mean": {"columns": ["x", "y"], "norm": 5, "delta": 1e-6, "mechanism": "gaussian"},
    },
    like=vector_sum,
)
def vector_mean(
    columns: Any,
    *,
    norm: Number,
    ord: int = 2,
    dim: int | None = None,
    n: int | None = None,
    eps: Number | None = None,
    round: int | None = None,
) -> VectorSum:
    """Average vectors, each shortened to a public norm.

    Parameters
    ----------
    n : int, optional
        The number of vectors, if it is public. Without it, the number is counted with noise of its own, at
        half of the epsilon.

    Returns
    -------
    VectorSum
        As for :func:`dpframe.vector_sum`, each component within ``norm`` of 0. The mean of nothing is 0 plus noise.

    Raises
    ------
    InputError
        As for :func:`dpframe.vector_sum`.

    Notes
    -----
    Privacy: a :func:`dpframe.vector_sum` and, without ``n``, a count of the rows in which all components are present.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"v": [[3.0, 4.0], [0.0, 0.5]]}, schema={"v": pl.Array(pl.Float64, 2)})
    >>> with dp.Session(eps=1e7):
    ...     t = df.dp.vector_mean("v", norm=5, eps=1e7, round=2)
    >>> t.row(0)
    (1.5, 2.25)
    """
    asked = _vector("vector_mean", columns, norm, ord, dim)
    n = public_rows(n)
    return VectorSum(None, None, **asked, mean=True, n=n, **common(eps, False, round))


def _vector(verb: str, columns: Any, norm: Any, ord: Any, dim: Any) -> dict[str, Any]:
    of = list_of_columns(verb, columns) if isinstance(columns, list | tuple) else (one_column(verb, columns),)
    if not of:
        raise InputError(f"{verb} needs at least one column.", hint=Call(f"{verb}", ["x", "y"], norm=1))
    if len(of) > MOST_COMPONENTS:
        raise InputError(f"{verb} takes at most {MOST_COMPONENTS} components, not {len(of)}.")
    if isinstance(ord, bool) or not isinstance(ord, int) or ord not in (1, 2):
        raise InputError(
            Arg("ord", ord), " must be 2 (Euclidean) or 1 (sum of absolute values).", hint=Arg("ord", 2)
        )
    if dim is not None:
        check_whole("dim", dim, 1, MOST_COMPONENTS, right=8)
    return {"of": of, "norm": rational(norm, "norm"), "order": ord, "dims": dim or 0}


def _length(a: VectorSum, c: Column) -> int:
    """How many components the lists of a column have, from its type or from ``dim=``."""
    inner = c.native.inner
    if not (inner.is_numeric() or inner == pl.Boolean):
        raise InputError(f"{a.verb}({c.name!r}): the column is {c.text}, not lists of numbers.")
    if isinstance(c.native, pl.List):
        if not a.dims:
            raise InputError(
                f"{a.verb}({c.name!r}): lists may have any length, and how long they are must be public.",
                hint=Arg("dim", 8),
            )
        return a.dims
    length = int(c.native.size)
    if a.dims not in (0, length):
        raise InputError(Arg("dim", a.dims), f", but {c.name!r} is {c.text}.", hint="leave dim out")
    if length > MOST_COMPONENTS:
        raise InputError(f"{a.verb} takes at most {MOST_COMPONENTS} components, not {length}.")
    return length
