"""Wrong calls: one row of a table per call, for ``test_wrong_calls``."""

from __future__ import annotations

from wrong import groups, objects, questions, statistics

TABLES = (groups.CALLS, questions.CALLS, statistics.CALLS, objects.CALLS)
CALLS = {name: row for table in TABLES for name, row in table.items()}
assert len(CALLS) == sum(map(len, TABLES)), "two rows have one name"
