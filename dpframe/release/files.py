"""Released tables as files, with their facts beside them."""

from __future__ import annotations

import io
import json
from typing import Any

import polars as pl
import polars.selectors as cs

from dpframe.base.files import write_together
from dpframe.errors import InputError


def write_facts(path: str, table: pl.DataFrame, facts: dict[str, Any]) -> None:
    """A table as the parquet or CSV file ``path``, its facts beside it: both, or neither."""
    text = json.dumps(facts, indent=2)
    write_together({f"{path}.json": f"{text}\n".encode(), path: table_bytes(table, path, text)})


def table_bytes(table: pl.DataFrame, path: str, facts: str | None = None) -> bytes:
    """A table as the parquet or CSV file ``path``; the same table and facts give the same bytes."""
    content = io.BytesIO()
    if path.endswith(".parquet"):
        table.write_parquet(content, metadata=None if facts is None else {"dpframe": facts})
    else:
        try:
            table.with_columns(cs.duration().dt.to_string("iso")).write_csv(content)
        except pl.exceptions.PanicException:  # of an instant beyond its calendar
            raise InputError(
                "A key of this release lies beyond the years that text can say (about 262,000).",
                hint="a .parquet file",
            ) from None
    return content.getvalue()


def holdable(frame: Any) -> Any:
    """pandas columns that no file format holds (intervals, periods, mixed objects) as text."""
    import pandas as pd

    out = frame.copy(deep=False)
    for name in out.columns:
        dtype = out[name].dtype
        if isinstance(dtype, pd.IntervalDtype | pd.PeriodDtype) or pd.api.types.is_object_dtype(dtype):
            out[name] = out[name].map(lambda v: None if pd.isna(v) else str(v)).astype("string")
    return out
