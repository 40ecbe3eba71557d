"""Doors: ``.dp`` on frames, and ``dp.frame`` for whoever likes types."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, overload

from dpframe.api.namespaces import FrameDP
from dpframe.base.wrong_calls import checked
from dpframe.engine.opening import as_source
from dpframe.statistics.wrong_verbs import MEANT_VERBS

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


class OnlyFrames:
    """``.dp`` on a Series: explains that questions are asked of frames."""

    def __init__(self, series: Any) -> None:
        self._library = type(series).__module__.split(".")[0]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise TypeError(
            f"Private questions are asked of a frame, not of a {self._library} Series: a column has no unit and no"
            f" policy. Hint: df.dp.{'plan.count' if name == 'plan' else MEANT_VERBS.get(name, name)}('column', ...)"
        )

    def __dir__(self) -> list[str]:
        return []

    def __repr__(self) -> str:
        return "<df.dp is on frames; a Series has no private questions. Hint: df.dp.count('column', eps=0.1)>"


def register() -> None:
    """Put ``.dp`` on pandas and Polars frames (and an explanation on Series). Idempotent."""

    import pandas as pd
    import polars as pl

    places: list[tuple[Any, Any, Any]] = [
        (pd.DataFrame, pd.api.extensions.register_dataframe_accessor, _accessor),
        (pl.DataFrame, pl.api.register_dataframe_namespace, _accessor),
        (pl.LazyFrame, pl.api.register_lazyframe_namespace, _accessor),
        (pd.Series, pd.api.extensions.register_series_accessor, OnlyFrames),
        (pl.Series, pl.api.register_series_namespace, OnlyFrames),
    ]
    for owner, registrar, accessor in places:
        there = owner.__dict__.get("dp")
        if there is not None:
            parts = [getattr(there, name, None) for name in ("_accessor", "_ns")]
            if any(str(getattr(x, "__module__", "")).startswith("dpframe") for x in parts):
                continue
            warnings.warn(
                f"{owner.__module__}.{owner.__qualname__}.dp belongs to another library and is left alone."
                " Hint: dp.frame(df) instead of df.dp",
                stacklevel=3,
            )
            continue
        registrar("dp")(accessor)


class _Accessor(FrameDP[Any]):
    __slots__ = ()

    def __init__(self, frame: Any) -> None:
        super().__init__(as_source(frame))


_accessor = _Accessor
