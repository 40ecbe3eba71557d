"""Faults in what is believed of a frame, a file or a cluster's table."""

from __future__ import annotations

from planted.fault import Fault

FILES = ("properties/test_lying_files.py",)
SPARK = "properties/test_relational_identity_spark.py"

FRAME_FAULTS = (
    Fault(
        "a filter skips rows by the statistics of a file",
        "engine/polars_scans.py",
        "    return pl.QueryOptFlags(predicate_pushdown=_believes_nothing(plan, plan.get_node()))",
        "    return pl.QueryOptFlags()",
        FILES,
    ),
    Fault(
        "tallies skip rows by the statistics of a file",
        "engine/tally.py",
        "optimizations=as_read(rows))",
        "optimizations=pl.QueryOptFlags())",
        FILES,
    ),
    Fault(
        "rows of units are skipped by the statistics of a file",
        "engine/pairs.py",
        "optimizations=as_read(rows)",
        "optimizations=pl.QueryOptFlags()",
        FILES,
    ),
    Fault(
        "strict sessions let filters see the flags of a Python source",
        "engine/polars_plan.py",
        '        if self.steps and node.options[2] != "pyarrow":',
        "        if False:",
        FILES,
    ),
    Fault(
        "a file that is typed as a URI is taken for a remote one",
        "engine/polars_scans.py",
        '    if address.scheme == "file":',
        "    if False:",
        FILES,
    ),
    Fault(
        "strict sessions look at no file elsewhere",
        "engine/polars_scans.py",
        "            if path is None:\n                return",
        "            if path is None:\n                continue\n                return",
        FILES,
    ),
    Fault(
        "parts of pandas frames fail where there is a row with a view of text",
        "engine/pandas.py",
        "            if isinstance(t, pd.ArrowDtype):",
        "            if False:",
        ("unit/engine/test_parts_of_arrow_types.py",),
    ),
    Fault(
        "a place beyond an Arrow dictionary fails the release",
        "engine/bare.py",
        "    return pc.if_else(inside, places, None)",
        "    return places",
        ("unit/engine/test_places_beyond_a_dictionary.py",),
    ),
    Fault(
        "a rounded answer's margin leaves the rounding out",
        "planning/pieces.py",
        "        return error + self._rounding if error is not None and self.answer.ranged else error",
        "        return error",
        ("unit/session/test_statement_cuts.py",),
    ),
    Fault(
        "strict sessions take arithmetic of lists of any length",
        "engine/polars_fallible.py",
        "    nested = [t for t in types if t.is_nested()]",
        "    nested: list[Any] = []",
        ("unit/engine/test_polars_lists_and_texts.py",),
    ),
    Fault(
        "Spark's buckets are believed",
        "engine/spark.py",
        "functions.when(x.isNotNull(), x).alias(c)",
        "x.alias(c)",
        (f"{SPARK}::test_buckets_are_not_believed",),
    ),
    Fault(
        "Spark's local times before 1970 are counted from the beginning of a minute",
        "engine/spark.py",
        "    return functions.when(minutes < 0, before).otherwise(minutes * minute + micros)",
        "    return minutes * minute + micros",
        (f"{SPARK}::test_every_cell_is_itself_as_unit_key_and_value",),
    ),
    Fault(
        "Spark's texts that are filled up are keys",
        "engine/spark.py",
        'not t.lower().startswith("char(")',
        "True",
        (f"{SPARK}::test_texts_that_are_filled_up_are_refused_and_nobody_is_told_by_a_failure",),
    ),
)
