"""Faults of ``complete_cases=True``: rows that lack a value come back in somewhere."""

from __future__ import annotations

from planted.fault import Fault

ROWS = ("unit/engine/test_complete_rows.py",)
DATABASES = ("unit/engine/test_complete_rows.py::test_engines_that_stay_where_they_are",)
CALLS = ("unit/api/test_complete_cases.py",)

COMPLETE_FAULTS = (
    Fault(
        "units are scaled before their incomplete rows are left out",
        "engine/polars.py",
        "complete_rows(frame, ask.complete, self",
        "complete_rows(frame, () if ask.bounding else ask.complete, self",
        ROWS,
    ),
    Fault(
        "a second pass over a Polars frame reads incomplete rows",
        "engine/polars.py",
        "        frame, height = self._rows(ask)\n        values = [",
        "        frame, height = self._opened(ask.columns)\n        values = [",
        ROWS,
    ),
    Fault(
        "a second pass over a pandas frame reads incomplete rows",
        "engine/pandas.py",
        "query = TallyQuery(\n            self._complete(ask, data),",
        "query = TallyQuery(\n            pl.DataFrame(data).lazy(),",
        ROWS,
    ),
    Fault(
        "units of a table in a database keep their incomplete rows",
        "engine/relational_query.py",
        "        if self.complete:",
        "        if self.complete and not self.unit:",
        DATABASES,
    ),
    Fault(
        "a second pass over a table in a database reads incomplete rows",
        "engine/relational_query.py",
        "        self.complete = ask.complete",
        "        self.complete = ask.complete if more is None else ()",
        DATABASES,
    ),
    Fault(
        "NaN is taken for a value of a complete row",
        "engine/polars_query.py",
        "        return x.fill_nan(None) if dtype.is_float() else x",
        "        return x",
        ROWS,
    ),
    Fault(
        "each answer with an eps of its own has complete rows of its own",
        "planning/request.py",
        "[*(c for a in request.aggregates for c in a.columns), *found]",
        "[*(c for a in request.aggregates if a.eps is None for c in a.columns), *found]",
        CALLS,
    ),
    Fault(
        "an engine that leaves nothing out is believed",
        "pipeline.py",
        "    if plan.complete and not all(",
        "    if False and not all(",
        CALLS,
    ),
)
