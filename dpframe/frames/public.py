"""What the caller declares to be public: keys, and frames that may be joined in a strict session."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from dpframe.base.wrong_calls import checked
from dpframe.errors import InputError

MARK = f"dpframe public frame {secrets.token_hex(16)}"  # in the plan of a frame that was declared public


@dataclass(frozen=True, slots=True)
class Public:
    """A marker: the caller declares that these values do not come from the protected data."""

    values: Any = field(repr=False)

    def lazy(self) -> pl.LazyFrame:
        """A public frame as a lazy Polars frame that a strict session knows to be public; for joins.

        Returns
        -------
        polars.LazyFrame
            Of all rows. Join with it as it is: what is done to it first makes it a frame like any other.

        Raises
        ------
        InputError
            When what was declared is no pandas or Polars DataFrame.

        Notes
        -----
        Privacy: a row of the data that is joined with at most one public row stays one row. So the columns that are
        joined on must hold each key once; strict sessions look.
        """
        frame = _as_polars(self.values)
        if frame is None:
            raise InputError(
                f"Only a frame can be joined with, not a {type(self.values).__name__}.",
                hint="dp.public(frame).lazy()",
            )
        bare = pl.DataFrame(
            frame.to_arrow(compat_level=pl.CompatLevel.newest())
        )  # no flags that say it is sorted
        return bare.lazy().filter(pl.lit(MARK) == pl.lit(MARK))


def _as_polars(values: Any) -> pl.DataFrame | None:
    if isinstance(values, pl.DataFrame):
        return values
    if type(values).__module__.partition(".")[0] == "pandas" and hasattr(values, "columns"):
        return pl.DataFrame(pl.from_pandas(values))
    return None


@checked(example="dp.public(codebook['icd'])")
def public(values: Any) -> Public:
    """Declare that a Series, Index, array or frame of keys is public.

    Write it only for values that would be the same whatever people the data describe: a code book,
    a calendar, the categories of a questionnaire. ``df["city"].unique()`` is not public: it tells
    which cities occur.

    Parameters
    ----------
    values : Series, Index, array, list, or a frame with one column per grouping column

    Returns
    -------
    Public
        For ``keys=``. It holds the values and shows none of them. Of a frame, ``.lazy()`` is what a strict session
        lets lazy frames be joined with, on columns that hold each key once.

    Raises
    ------
    InputError
        Not here, but where the keys are used: for duplicates, and values that do not fit the column's type.

    Examples
    --------
    >>> import dpframe as dp, pandas as pd
    >>> codebook = pd.DataFrame({"icd": ["A00", "A01"]})
    >>> dp.public(codebook["icd"])
    Public()
    """
    return Public(values)
