"""``dp.frame``: the door for every kind of frame, with types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from dpframe.api.namespaces import FrameDP
from dpframe.base.wrong_calls import checked
from dpframe.engine.opening import as_source

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


@overload
def frame(obj: pd.DataFrame) -> FrameDP[pd.DataFrame]: ...


@overload
def frame(obj: pl.DataFrame | pl.LazyFrame) -> FrameDP[pl.DataFrame]: ...


@overload
def frame(obj: Any) -> FrameDP[Any]: ...


@checked(example="dp.frame(df)")
def frame(obj: Any) -> FrameDP[Any]:
    """The typed door: ``dp.frame(df)`` is ``df.dp`` for pandas and Polars frames.

    Parameters
    ----------
    obj : pandas.DataFrame, polars.DataFrame, polars.LazyFrame or pyarrow.Table
        Or what the extras bring: a DuckDB relation, an Ibis table, a SQLFrame, PySpark or Dask DataFrame.
        Answers to questions about anything but pandas are Polars frames.

    Returns
    -------
    FrameDP
        All verbs; nothing is read.

    Returns
    -------
    FrameDP[pandas.DataFrame] for a pandas frame, FrameDP[polars.DataFrame] for a Polars frame
        So that a type checker knows what comes back: an int, a float, or a frame of that library.

    Raises
    ------
    TypeError
        For a Series, an expression, or any other object.

    Examples
    --------
    >>> import dpframe as dp, pandas as pd
    >>> with dp.Session(eps=1e6):
    ...     n = dp.frame(pd.DataFrame({"x": [1.0, 2.0]})).count(eps=1e6)
    >>> int(n)
    2
    """
    return FrameDP(as_source(obj))
