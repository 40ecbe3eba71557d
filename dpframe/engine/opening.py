"""From a frame of any library to its source."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import polars as pl

from dpframe.base.forks import check_fork
from dpframe.engine.polars import PolarsSource
from dpframe.errors import wrong_type

_FAMILIES = {  # by package: the module of what it has that others lack, and the extra that installs it
    "duckdb": ("duckdb", "duckdb"),
    "ibis": ("ibis", "ibis"),
    "sqlframe": ("sqlframe", "sqlframe"),
    "pyspark": ("spark", "spark"),
    "dask": ("dask", "dask"),
}


def as_source(frame: Any) -> Any:
    """The source for a frame of any library that has one.

    Raises
    ------
    TypeError
        For anything else.
    InputError
        In a forked child whose engine has lost its threads: opening a lazy frame would wait for them.
    """
    check_fork()
    if isinstance(frame, pl.DataFrame | pl.LazyFrame):
        return PolarsSource(frame)
    import pandas as pd
    import pyarrow as pa

    if isinstance(frame, pd.DataFrame):
        from dpframe.engine.pandas import PandasSource

        return PandasSource(frame)
    if isinstance(frame, pa.Table):
        from dpframe.engine.arrow import ArrowSource

        return ArrowSource(frame)
    family = _FAMILIES.get(type(frame).__module__.split(".")[0].lstrip("_"))
    if family is not None and hasattr(frame, "columns"):
        return _elsewhere(frame, *family)
    raise wrong_type(
        "dp.frame takes a pandas or Polars frame, a PyArrow table, a DuckDB relation, an Ibis table,"
        f" or a SQLFrame, PySpark or Dask DataFrame, not a {type(frame).__module__}.{type(frame).__qualname__}.",
        hint="dp.frame(df), dp.frame(connection.table('visits'))",
    )


def _elsewhere(frame: Any, family: str, extra: str) -> Any:
    try:
        engine = import_module(f"dpframe.engine.{family}")
        if family == "dask":
            return engine.open_frame(frame)
        relational = import_module("dpframe.engine.relational")
    except ModuleNotFoundError as e:
        raise wrong_type(
            f"dp.frame needs {e.name} for this frame.", hint=f"pip install 'dpframe[{extra}]'"
        ) from None
    return relational.open_frame(frame, engine)
