"""``.dp`` on pandas and Polars frames. Importing this imports nothing of what answers questions: that is for the first."""

from __future__ import annotations

import warnings
from typing import Any

from dpframe.errors import worded, wrong_type


class OnlyFrames:
    """``.dp`` on a Series: explains that questions are asked of frames."""

    def __init__(self, series: Any) -> None:
        self._library = type(series).__module__.split(".")[0]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        from dpframe.statistics.wrong_verbs import MEANT_VERBS

        raise wrong_type(
            f"Private questions are asked of a frame, not of a {self._library} Series: a column has no"
            " unit and no policy.",
            hint=f"df.dp.{'plan.count' if name == 'plan' else MEANT_VERBS.get(name, name)}('column', ...)",
        )

    def __dir__(self) -> list[str]:
        return []

    def __repr__(self) -> str:
        return "<df.dp is on frames; a Series has no private questions. Hint: df.dp.count('column', eps=0.1)>"


def ask(frame: Any) -> Any:
    """What ``df.dp`` is: everything that a frame can be asked."""
    from dpframe.api.frame import frame as door

    return door(frame)


def register() -> None:
    """Put ``.dp`` on pandas and Polars frames (and an explanation on Series). Idempotent."""

    import pandas as pd
    import polars as pl

    places: list[tuple[Any, Any, Any]] = [
        (pd.DataFrame, pd.api.extensions.register_dataframe_accessor, ask),
        (pl.DataFrame, pl.api.register_dataframe_namespace, ask),
        (pl.LazyFrame, pl.api.register_lazyframe_namespace, ask),
        (pd.Series, pd.api.extensions.register_series_accessor, OnlyFrames),
        (pl.Series, pl.api.register_series_namespace, OnlyFrames),
    ]
    for owner, registrar, accessor in places:
        there = owner.__dict__.get("dp")
        if there is not None:
            parts = [getattr(there, name, None) for name in ("_accessor", "_ns")]
            if any(str(getattr(x, "__module__", "")).startswith("dpframe") for x in parts):
                continue
            said = f"{owner.__module__}.{owner.__qualname__}.dp belongs to another library and is left alone."
            warnings.warn(worded(UserWarning, said, hint="dp.frame(df) instead of df.dp"), stacklevel=3)
            continue
        registrar("dp")(accessor)
