"""Scans of files in plans of lazy Polars frames: which read every row, with types that no row decides.

Privacy: a type that is guessed from the first rows depends on them, and the cells of all others with it; a cell that is
not of its column's type makes the scan fail, which tells of it without noise. A file's own form (quotes that do not
close, lines of too many fields, text in another encoding, how many rows lie in it) is the file's affair. What a file says of
its cells is not: comparisons and joins believe that a column is sorted, and where that is wrong one row decides about many.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import polars as pl
import pyarrow.parquet as pq

from dpframe.engine.polars_steps import SKIPPED

GUESSED = "a scan that guesses types from rows (schema=... says them)"
FAILS = "a scan that fails on cells of another type (with ignore_errors=True they are null)"


def foreign_scan(node: Any, columns: Iterable[str], steps: bool) -> str | None:
    """What a scan of these columns does beside reading all rows of its files, each by itself; None if nothing.

    ``steps`` says whether the plan does anything with these rows, and may so believe what they say of themselves.
    """
    options = node.file_options
    if options.n_rows is not None:
        return "SLICE"
    if options.row_index is not None:
        return "ROW INDEX"
    if node.predicate is not None or options.deletion_files is not None:
        return "a scan with a selection"
    if node.hive_parts is not None and (options.hive_options or {}).get("schema") is None:
        return "a scan that guesses types from the names of folders (hive_schema=... says them)"
    if options.row_count is not None or options.table_statistics is not None:
        return "a scan that is told of its rows"
    form, told, *_ = node.scan_type
    if form == "parquet" and steps:
        for path in map(_local, node.paths):
            if path is None:
                return "a step on remote Parquet files, which may say how they are sorted (a pl.scan_pyarrow_dataset does not)"
            if _says_order(path):
                return "a step on Parquet files that say how they are sorted"
    read = {"csv": _csv, "ndjson": _ndjson}.get(form)
    return None if read is None else read(json.loads(told), set(columns))


def _local(path: Any) -> Path | None:
    """The path of a file on this machine, typed as a path or as a URI; None for others."""
    address = urlsplit(str(path))
    if address.scheme == "file":
        path = unquote(address.path)
    found = Path(str(path))
    return found if found.is_file() else None


def _says_order(path: Path) -> bool:
    """Whether the footer of a Parquet file has ``sorting_columns``, which its writer did not check."""
    footer = pq.read_metadata(path)
    return any(footer.row_group(i).sorting_columns for i in range(footer.num_row_groups))


def _csv(told: Mapping[str, Any], columns: set[str]) -> str | None:
    if any(told[k] for k in SKIPPED):
        return "SLICE"  # which rows are the first depends on the others
    if told["schema"] is None:
        texts = told["infer_schema_length"] == 0
        if not told["has_header"] or not (texts or columns <= set(_said(told))):
            return GUESSED
    elif not told["has_header"] and told["raise_if_empty"]:
        return "a scan that fails on no row (with raise_if_empty=False it is empty)"
    types = _said(told)
    return FAILS if any(t != "String" for t in types.values()) and not told["ignore_errors"] else None


def _ndjson(told: Mapping[str, Any], columns: set[str]) -> str | None:
    if told["schema"] is None and not columns <= set(_said(told)):
        return GUESSED
    return None if told["ignore_errors"] else FAILS


def _said(told: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for place in ("schema", "schema_overwrite"):
        found |= (told[place] or {"fields": {}})["fields"]
    return found


def plain_ipc_scans(frame: pl.LazyFrame) -> bool:
    """Whether all scans of IPC files read whole files; the tree does not show them, its serialised form does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = json.loads(frame.serialize(format="json"))
    scans = [x["Scan"] for x in _dicts(tree) if isinstance(x.get("Scan"), dict)]
    whole = ("row_index", "pre_slice", "deletion_files", "row_count", "table_statistics")
    told = [s["unified_scan_args"] for s in scans]
    folders = any(t["hive_options"]["enabled"] and t["hive_options"]["schema"] is None for t in told)
    flags = any(
        s["scan_type"]["Ipc"]["options"]["record_batch_statistics"] for s in scans if "Ipc" in s["scan_type"]
    )
    return bool(scans) and not (folders or flags) and all(t[k] is None for t in told for k in whole)


def as_read(rows: pl.LazyFrame) -> pl.QueryOptFlags:
    """How a plan is optimized: the caller's own filters reach no scan that would leave out rows by what a file says.

    Statistics of Parquet files (least and greatest cell, number of nulls, of row groups and of pages) are written, and
    checked by nobody. So rows are read and then filtered, unless every scan was opened with ``use_statistics=False``:
    then a filter on the names of folders still saves reading the others.
    """
    plan = rows._ldf.with_optimizations(pl.QueryOptFlags.none()._pyoptflags).visit()
    return pl.QueryOptFlags(predicate_pushdown=_believes_nothing(plan, plan.get_node()))


def _believes_nothing(plan: Any, at: int) -> bool:
    plan.set_node(at)
    below = plan.get_inputs()
    if not below:
        try:
            node = plan.view_current_node()
        except NotImplementedError:
            return False
        if type(node).__name__ != "DataFrameScan":
            form, told, *_ = getattr(node, "scan_type", ("", "{}"))
            return form in ("csv", "ndjson") or (form == "parquet" and not json.loads(told)["use_statistics"])
    return all(_believes_nothing(plan, n) for n in below)


def _dicts(tree: Any) -> Iterable[Mapping[str, Any]]:
    """All dictionaries in a tree of JSON, its numbers left out."""
    if isinstance(tree, dict):
        yield tree
    if isinstance(tree, (dict, list)):
        for x in tree.values() if isinstance(tree, dict) else tree:
            if isinstance(x, (dict, list)):
                yield from _dicts(x)
