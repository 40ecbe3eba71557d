"""A planted fault: one small change of one file, and the tests that are to find it; and families of such tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A text of one file of the package, what it is replaced by, and the tests that are run on it.

    Attributes
    ----------
    name : str
    file : str
        Within ``dpframe``.
    old, new : str
        ``old`` must be there exactly once.
    tests : tuple of str
        Files (or single tests) within ``tests``, in the order in which they are tried.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def planted_in(self, text: str) -> str:
        """The text with the fault in it; ValueError if there is no one place for it."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.file} has its text {text.count(self.old)} times, not once")
        return text.replace(self.old, self.new)


MOVE = (
    "properties/test_sensitivity.py",
    "properties/test_generated_neighbours.py",
)
SESSION = (
    "unit/session/test_session.py",
    "unit/session/test_processes.py",
    "unit/session/test_account.py",
    "unit/session/test_silence.py",
)
LEDGER = (
    "unit/session/test_session_ledger.py",
    "unit/ledger/test_ledger.py",
    "unit/ledger/test_ledger_windows.py",
    "unit/ledger/test_ledger_requests.py",
    "unit/ledger/test_ledger_entries.py",
    "unit/ledger/test_ledger_crashes.py",
    "unit/ledger/test_ledger_faults.py",
    "unit/ledger/test_ledger_disk.py",
)
UNITS = (
    "unit/planning/test_bounding.py",
    "unit/planning/test_choice_of_groups.py",
    "unit/planning/test_scaling.py",
    "unit/planning/test_unit_ids.py",
    "unit/planning/test_limits.py",
)
UNKNOWN = (
    "unit/mechanisms/test_thresholds.py",
    "unit/mechanisms/test_found_groups.py",
    "unit/mechanisms/test_key_selection.py",
)
EXACT = ("properties/test_oracle.py", "unit/engine/test_exact_integers.py")
