"""An answer as a ledger stored it, read without the frame and without the question."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from dpframe.base.files import writable
from dpframe.base.wrong_calls import checked
from dpframe.errors import NearNames
from dpframe.release.files import write_facts


@dataclass(frozen=True, slots=True)
class StoredAnswer(NearNames):
    """What a ledger stored for a request: the released table and its facts.

    Attributes
    ----------
    request_id : str
    scope : str or None
    table : polars.DataFrame
        Keys, then one column for each output; of a single number one row.
    facts : dict
        As in the side-car of ``Release.write``: question, cost, margins, types of columns, the ledger's head.
    released_at : datetime
        When it was drawn and stored (UTC).
    version : str
        Of the dpframe that drew it.

    Notes
    -----
    Privacy: it was released and paid for before; reading it again costs nothing.
    """

    request_id: str
    scope: str | None
    table: pl.DataFrame
    facts: dict[str, Any] = field(repr=False)
    released_at: dt.datetime
    version: str

    @property
    def value(self) -> Any:
        """The number that was asked for; the table, if the answer has groups, rows or several outputs."""
        return self.table.item() if self.table.shape == (1, 1) else self.table

    @checked(example="answer.write('table.parquet')")
    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the table as parquet or CSV, and its facts beside it, the same files as ``Release.write`` made.

        Raises
        ------
        InputError
            For another ending than ``.parquet`` or ``.csv``, or a directory that can't be written to.
        OSError
            When the disk does not take it; older files are untouched.
        """
        text = os.fspath(path)
        writable(text)
        write_facts(text, self.table, self.facts)
