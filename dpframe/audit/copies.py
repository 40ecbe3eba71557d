"""Many draws of one query at the price of one release: a table with a group for each copy of the frame."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextvars import Context
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from dpframe.api.bound_plan import BoundPlan
from dpframe.api.namespaces import Grouped
from dpframe.audit.recording import Audited, Query, alone, auditors_session
from dpframe.engine.opening import as_source
from dpframe.errors import Arg, Call, InputError, typed
from dpframe.release.release import Release
from dpframe.statistics.count import count

ROWS = 2_000_000  # of copies in memory at once
COPY = "copy of the frame"


def copies(query: Query, frame: Any, **session: Any) -> Callable[[int], Any]:
    """A sampler for :func:`dpframe.audit.black_box`: n independent answers of a query about one frame.

    Parameters
    ----------
    query : callable
        A function of a frame accessor that asks once: ``lambda d: d.clip_mean("x", bounds=(0, 1), eps=1)``, or
        ``lambda d: d.groupby("g", keys=["a", "b"]).count(eps=1)``.
    frame : pandas or Polars frame
    **session
        As in :func:`dpframe.audit.grey_box`.

    Returns
    -------
    callable
        ``f(n)``: float64 or int64, (n, columns): the outputs, of every listed key.

    Raises
    ------
    InputError
        Inside a session in use; for queries with unknown keys, or that ask several times.

    Notes
    -----
    The answers are those of one release over many listed groups, each of which holds a copy of the frame (with units
    of its own). Each group has its own draw, made for the sensitivity of one question, and that is what the
    question alone has too, under add_remove. Under replace_one a table is made for a row that moves between groups:
    audit a grouped query, in which it does.

    Privacy: the answers are noisy, and there are n of them: enough to know the frame. For made-up frames.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> f = dp.audit.copies(lambda d: d.count(eps=1), pl.DataFrame({"x": [1.0, 2.0]}))
    >>> f(1000).shape
    (1000, 1)
    """

    def sample(n: int) -> Any:
        alone()
        rows = len(frame.collect() if isinstance(frame, pl.LazyFrame) else frame)
        step = max(1, min(n, ROWS // max(rows, 1)))
        parts = [min(step, n - start) for start in range(0, n, step)]
        return np.concatenate([Context().run(_release, query, frame, m, session) for m in parts])

    return sample


def _release(query: Query, frame: Any, n: int, options: dict[str, Any]) -> Any:
    unit = options.get("unit")
    units = [unit] if isinstance(unit, str) else list(unit or [])
    releases: list[Release] = []
    with auditors_session(**options):
        query(_Copies(_copied(frame, n, units), n, releases, bool(units), options.get("max_rows")))
    if len(releases) != 1:
        raise InputError(
            f"The query asked {len(releases)} times; a sampler takes one question.", hint=Call("d.agg", ...)
        )
    columns = [releases[0]._columns[o.name] for o in releases[0].plan.outputs]
    return np.stack(columns, axis=1).reshape(n, -1)


def _copied(frame: Any, n: int, units: list[str]) -> Any:
    """``n`` copies under each other, numbered; the ids of units are made different in every copy."""
    if isinstance(frame, pl.LazyFrame):
        return _copied(frame.collect(), n, units).lazy()
    where, copy = np.tile(np.arange(len(frame)), n), np.repeat(np.arange(n), len(frame))
    if isinstance(frame, pd.DataFrame):
        out = frame.take(where).reset_index(drop=True)
        for u in units[:1]:
            codes, ids = pd.factorize(frame[u])
            codes = codes[where]
            out[u] = pd.Series(codes + copy * (len(ids) + 1)).where(codes >= 0).astype("Int64")
        return out.assign(**{COPY: copy})
    out = frame[where].with_columns(pl.Series(COPY, copy))
    if units:  # the first column is enough to tell them apart
        code = pl.col(units[0]).rank("dense").cast(pl.Int64)
        out = out.with_columns((code + pl.col(COPY) * (len(frame) + 1)).alias(units[0]))
    return out


class _Copies(Audited):
    """``.dp`` of a frame whose every question is asked of each copy."""

    __slots__ = ("_max_rows", "_n", "_releases", "_units")

    def __init__(
        self, frame: Any, n: int, releases: list[Release], units: bool, max_rows: int | None
    ) -> None:
        super().__init__(as_source(frame), (COPY,), range(n))
        self._n, self._releases, self._units, self._max_rows = n, releases, units, max_rows

    def _ask(self, aggregates: Any, options: Any, *, scalar: bool, top: int | None = None) -> Any:
        rows = options.pop("max_rows", self._max_rows)
        if self._units:  # a unit is in one copy, and all rows of it are in that group
            options = {**options, "max_groups": 1, "max_rows_per_group": rows}
        return super()._ask(aggregates, options, scalar=False, top=top)

    def groupby(self, *by: Any, keys: Any = None, **limits: Any) -> Any:
        names: tuple[Hashable, ...] = tuple(by[0]) if len(by) == 1 and isinstance(by[0], list) else by
        if isinstance(keys, Mapping):
            product: Any = {COPY: range(self._n), **keys}
        elif isinstance(keys, list) and len(names) == 1:
            product = {COPY: range(self._n), names[0]: keys}
        elif isinstance(keys, list):
            product = [(i, *k) for i in range(self._n) for k in keys]
        else:
            raise InputError(
                f"A sampler takes keys as a list or a dict of lists, not {typed(keys)}.",
                hint=Arg("keys", [...]),
            )
        return Grouped(self._source, (COPY, *names), product, limits, self._finish)

    group_by = groupby

    def _values(self, column: Hashable, keys: Any, options: Any, top: int | None = None) -> Any:
        return self.groupby(column, keys=keys)._ask((count(),), options, scalar=True, top=top)

    def _finish(self, bound: BoundPlan) -> Any:
        release = bound.release()
        self._releases.append(release)
        return release.value
